/* The series of a report as CSV, and as JSON lines. */
#include "report/formats.h"
#include "report/json_parts.h"
#include "report/json_series.h"
#include "report/json_writer.h"
#include "report/save.h"

#include <inttypes.h>

/* --- CSV --- */

static void write_csv_head(FILE *file) {
  fputs("t_s", file);
  for (size_t i = 0; i < SERIES_COUNTS; i++)
    fprintf(file, ",%s", series_counts[i].column);
  for (size_t i = 0; i < SERIES_LATENCIES; i++) {
    const char *key = series_latencies[i].key;
    fprintf(file, ",%s_count,%s_p50_ns,%s_p99_ns,%s_max_ns", key, key, key, key);
  }
  fputc('\n', file);
}

static void write_csv_row(FILE *file, uint32_t second, const struct report_second *figures) {
  fprintf(file, "%" PRIu32, second);
  for (size_t i = 0; i < SERIES_COUNTS; i++)
    fprintf(file, ",%" PRIu64, series_cell(figures, series_counts[i].offset));
  for (size_t i = 0; i < SERIES_LATENCIES; i++) {
    const struct series_latency *latency = &series_latencies[i];
    uint64_t count = series_cell(figures, latency->count);
    fprintf(file, ",%" PRIu64, count);
    if (count == 0) {
      fputs(",,,", file);
    } else {
      fprintf(file, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, series_cell(figures, latency->p50),
          series_cell(figures, latency->p99), series_cell(figures, latency->max));
    }
  }
  fputc('\n', file);
}

enum status report_write_csv(FILE *file, const struct report *report, struct err *err) {
  write_csv_head(file);
  for (uint32_t i = 0; i < report->seconds; i++)
    write_csv_row(file, i, &report->second[i]);
  return save_flush(file, "report", err);
}

/* --- JSON lines --- */

static void put_latency(struct json_writer *w, const struct report_second *figures, const struct series_latency *l) {
  if (series_cell(figures, l->count) == 0) {
    json_put_null(w, l->key);
    return;
  }
  json_open_object(w, l->key);
  json_put_uint(w, "count", series_cell(figures, l->count));
  json_put_uint(w, "p50_ns", series_cell(figures, l->p50));
  json_put_uint(w, "p99_ns", series_cell(figures, l->p99));
  json_put_uint(w, "max_ns", series_cell(figures, l->max));
  json_close_object(w);
}

void jsonl_write_second(FILE *file, uint32_t second, const struct report_second *figures) {
  struct json_writer w = {.file = file, .compact = true};
  json_open_object(&w, NULL);
  json_put_text(&w, "type", "second");
  json_put_uint(&w, "t_s", second);
  for (size_t i = 0; i < SERIES_COUNTS; i++)
    json_put_uint(&w, series_counts[i].key, series_cell(figures, series_counts[i].offset));
  for (size_t i = 0; i < SERIES_LATENCIES; i++)
    put_latency(&w, figures, &series_latencies[i]);
  json_close_object(&w);
  fputc('\n', file);
}

void jsonl_write_summary(FILE *file, const struct report *report) {
  struct json_writer w = {.file = file, .compact = true};
  json_open_object(&w, NULL);
  json_put_text(&w, "type", "summary");
  report_json_summary(&w, report);
  json_close_object(&w);
  fputc('\n', file);
}

enum status report_write_jsonl(FILE *file, const struct report *report, struct err *err) {
  for (uint32_t i = 0; i < report->seconds; i++)
    jsonl_write_second(file, i, &report->second[i]);
  jsonl_write_summary(file, report);
  return save_flush(file, "report", err);
}
