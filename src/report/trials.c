#include "report/trials.h"

#include "report/document.h"
#include "report/json_parts.h"
#include "report/json_writer.h"
#include "report/layout.h"
#include "report/save.h"

#include <string.h>

#define SEED 1 /* of every bootstrap: the same trials give the same intervals */

struct figure {
  size_t count, few; /* valid trials that have it, and those with too few samples for it */
  double median, min, max;
  struct interval interval;
};

static bool sum_up(const struct trials *trials, size_t metric, struct figure *out) {
  double values[TRIALS_MAX];
  out->count = trial_values(&trials->list, metric, values, &out->few);
  if (out->count == 0) return false;
  out->median = statistics_median(values, out->count);
  out->interval = statistics_median_interval(values, out->count, SEED);
  out->min = out->max = values[0];
  for (size_t i = 1; i < out->count; i++) {
    if (values[i] < out->min) out->min = values[i];
    if (values[i] > out->max) out->max = values[i];
  }
  return true;
}

bool trials_are_valid(const struct trials *trials) {
  return trials->list.count == trials->asked && trial_valid_count(&trials->list) == trials->asked;
}

int trials_exit_code(const struct trials *trials) {
  int worst = trials->list.count < trials->asked ? 3 : 0;
  for (size_t i = 0; i < trials->list.count; i++) {
    int code = trials->list.trial[i].exit_code;
    if (code > worst) worst = code;
  }
  return worst;
}

/* --- text --- */

#define LIST_ROW "%5s  %-22.22s %-8s %14s %10s %10s  %s\n"

void trials_write_head(FILE *file) {
  fprintf(file, LIST_ROW, "trial", "workload", "verdict", "deliveries/s", "p50 ms", "p99 ms", "run");
}

/* The percentile of deliveries, or of ACKs where there are none. */
static void format_ms(char out[24], const struct trial *trial, const char *statistic) {
  static const char *const clocks[] = {"delivery", "ack"};
  snprintf(out, 24, "-");
  for (size_t i = 0; i < 2; i++) {
    char name[METRIC_NAME_MAX];
    int len = snprintf(name, sizeof name, "%s.%s", clocks[i], statistic);
    size_t metric = metric_find(name, (size_t)len);
    if (trial->metrics.state[metric] == METRIC_ABSENT) continue;
    bool few = trial->metrics.state[metric] == METRIC_FEW;
    snprintf(out, 24, "%.3f%s", trial->metrics.value[metric] / 1e6, few ? "*" : "");
    return;
  }
}

void trials_write_row(FILE *file, const char *name, uint32_t number, const struct trial *trial) {
  char of_list[16], rate[24] = "-", p50[24], p99[24];
  size_t deliveries = metric_find("deliveries_per_second", strlen("deliveries_per_second"));
  snprintf(of_list, sizeof of_list, "%u", number);
  if (trial->metrics.state[deliveries] != METRIC_ABSENT) {
    snprintf(rate, sizeof rate, "%.1f", trial->metrics.value[deliveries]);
  }
  format_ms(p50, trial, "p50");
  format_ms(p99, trial, "p99");
  bool valid = trial_is_valid(trial);
  fprintf(file, LIST_ROW, of_list, name,
      valid          ? "valid"
      : trial->facts ? "invalid"
                     : "failed",
      rate, p50, p99, trial->facts ? trial_fact(trial, "run_id") : "-");
  if (!valid) page_text(file, "", "%s", trial_reason(trial));
  if (valid && trial->exit_code == 1) page_text(file, "", "an objective is broken: its report says which");
}

static void verdict_text(char *out, size_t size, const struct trials *trials) {
  size_t valid = trial_valid_count(&trials->list);
  snprintf(out, size, "%s: %zu of %u trials valid%s%s", trials_are_valid(trials) ? "valid" : "invalid", valid,
      trials->asked, trials->list.count < trials->asked ? ", ended early" : "",
      trials_exit_code(trials) == 1 ? ", objectives broken" : "");
}

#define NAME_WIDTH 26
#define FIGURE_ROW "%-26s %2s %10s %23s %23s  %s\n"

static void format_range(char out[40], size_t metric, double low, double high, struct page_unit unit) {
  char from[16], to[16];
  if (metric_is_clock(metric)) {
    format_latency(from, low, unit);
    format_latency(to, high, unit);
  } else {
    snprintf(from, sizeof from, "%.1f", low);
    snprintf(to, sizeof to, "%.1f", high);
  }
  snprintf(out, 40, "%s..%s", from, to);
}

static void write_figure(FILE *file, size_t metric, const struct figure *figure) {
  char name[METRIC_NAME_MAX], median[40], interval[40], range[40], note[24] = "";
  struct page_unit unit = page_unit_for((int64_t)figure->median, (int64_t)figure->max);
  metric_column(file, metric, NAME_WIDTH, name);
  format_range(median, metric, figure->median, figure->median, unit);
  *strstr(median, "..") = '\0';
  format_range(interval, metric, figure->interval.low, figure->interval.high, unit);
  format_range(range, metric, figure->min, figure->max, unit);
  if (figure->few) snprintf(note, sizeof note, "few");
  fprintf(file, FIGURE_ROW, name, metric_is_clock(metric) ? unit.name : "/s", median, interval, range, note);
}

enum status trials_write_summary(FILE *file, const struct trials *trials, struct err *err) {
  char text[200];
  bool few = false;
  verdict_text(text, sizeof text, trials);
  fputc('\n', file);
  page_text(file, trials->name, "%s", text);
  if (trial_valid_count(&trials->list) == 0) return save_flush(file, "summary", err);
  fprintf(file, FIGURE_ROW, "of the valid trials", "", "median", "95% interval", "least..largest", "");
  for (size_t metric = 0; metric < METRICS; metric++) {
    struct figure figure;
    /* What no trial has enough values for is in the JSON document only. */
    if (!sum_up(trials, metric, &figure) || figure.few == figure.count) continue;
    write_figure(file, metric, &figure);
    few = few || figure.few;
  }
  if (few) page_text(file, "few", "a trial has fewer than %d values beyond this percentile", FEW_SAMPLES);
  return save_flush(file, "summary", err);
}

enum status trials_rewrite_text(FILE *file, const struct document *document, struct err *err) {
  struct trials trials = {.name = json_string_value(json_object_get(document->root, "name"))};
  const json_t *verdict = json_object_get(document->root, "verdict");
  enum status status = trial_list_add_document(&trials.list, document, err);
  if (status == STATUS_OK && !trials.name) status = err_set(err, STATUS_USAGE, "%.300s: no name", document->name);
  trials.asked = (uint32_t)json_integer_value(json_object_get(verdict, "asked"));
  if (status == STATUS_OK) trials_write_head(file);
  for (size_t i = 0; status == STATUS_OK && i < trials.list.count; i++)
    trials_write_row(file, trials.name, (uint32_t)i + 1, &trials.list.trial[i]);
  if (status == STATUS_OK) status = trials_write_summary(file, &trials, err);
  trial_list_free(&trials.list);
  return status;
}

/* --- JSON --- */

static void write_verdict(struct json_writer *w, const struct trials *trials) {
  char text[700];
  json_open_object(w, "verdict");
  json_put_text(w, "result", trials_are_valid(trials) ? "valid" : "invalid");
  json_open_array(w, "reasons");
  for (size_t i = 0; i < trials->list.count; i++) {
    const struct trial *trial = &trials->list.trial[i];
    if (trial_is_valid(trial)) continue;
    snprintf(text, sizeof text, "trial %zu %s: %s", i + 1, trial->facts ? "is invalid" : "failed", trial_reason(trial));
    json_put_text(w, NULL, text);
  }
  if (trials->list.count < trials->asked) {
    snprintf(text, sizeof text, "%s after %zu of %u trials", trials->interrupted ? "interrupted" : "ended",
        trials->list.count, trials->asked);
    json_put_text(w, NULL, text);
  }
  json_close_array(w);
  json_put_uint(w, "asked", trials->asked);
  json_put_uint(w, "listed", trials->list.count);
  json_put_uint(w, "valid", trial_valid_count(&trials->list));
  json_put_int(w, "exit_code", trials_exit_code(trials));
  json_close_object(w);
}

static void write_order(struct json_writer *w, const struct trials *trials) {
  json_open_object(w, "order");
  json_put_text(w, "rule", "forth_and_back");
  json_open_array(w, "workloads");
  for (size_t i = 0; i < trials->workloads; i++)
    json_put_text(w, NULL, trials->alternating[i]);
  json_close_array(w);
  json_close_object(w);
}

static void write_trial(struct json_writer *w, const struct trial *trial, size_t number) {
  json_open_object(w, NULL);
  json_put_uint(w, "number", number);
  json_put_text(w, "file", trial->source[0] ? trial->source : NULL);
  json_put_text(w, "run_id", trial->facts ? trial_fact(trial, "run_id") : NULL);
  json_put_text(w, "started_at", trial->facts ? trial_fact(trial, "started_at") : NULL);
  json_put_int(w, "exit_code", trial->exit_code);
  json_put_text(w, "error", trial->facts ? NULL : trial->error);
  report_json_value(w, "verdict", json_object_get(trial->facts, "verdict"));
  json_close_object(w);
}

static void write_values(struct json_writer *w, const struct trials *trials, size_t metric) {
  json_open_flat_array(w, "values");
  for (size_t i = 0; i < trials->list.count; i++) {
    const struct metrics *metrics = &trials->list.trial[i].metrics;
    if (metrics->state[metric] == METRIC_ABSENT) {
      json_put_null(w, NULL);
    } else {
      json_put_double(w, NULL, metrics->value[metric]);
    }
  }
  json_close_array(w);
  json_open_flat_array(w, "few_samples");
  for (size_t i = 0; i < trials->list.count; i++) {
    if (trials->list.trial[i].metrics.state[metric] == METRIC_FEW) json_put_uint(w, NULL, i + 1);
  }
  json_close_array(w);
}

static void write_metric(struct json_writer *w, const struct trials *trials, size_t metric) {
  struct figure figure;
  char name[METRIC_NAME_MAX];
  if (!sum_up(trials, metric, &figure)) return;
  metric_name(metric, name);
  json_open_object(w, NULL);
  json_put_text(w, "name", name);
  json_put_text(w, "unit", metric_unit(metric));
  json_put_text(w, "better", metric_is_clock(metric) ? "lower" : "higher");
  json_put_uint(w, "count", figure.count);
  json_put_double(w, "median", figure.median);
  json_open_flat_array(w, "interval");
  json_put_double(w, NULL, figure.interval.low);
  json_put_double(w, NULL, figure.interval.high);
  json_close_array(w);
  json_put_double(w, "min", figure.min);
  json_put_double(w, "max", figure.max);
  write_values(w, trials, metric);
  json_close_object(w);
}

static void write_method(struct json_writer *w) {
  json_open_object(w, "method");
  json_put_text(w, "interval", "percentile_bootstrap_of_the_median");
  json_put_double(w, "confidence", STATISTICS_CONFIDENCE);
  json_put_uint(w, "resamples", STATISTICS_RESAMPLES);
  json_close_object(w);
}

/* Facts that all trials share, of the first that has a report. */
static void write_facts(struct json_writer *w, const struct trials *trials) {
  static const char *const shared[] = {"workload", "target", "environment", "comparability"};
  const json_t *facts = NULL;
  for (size_t i = 0; i < trials->list.count && !facts; i++)
    facts = trials->list.trial[i].facts;
  for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
    report_json_value(w, shared[i], json_object_get(facts, shared[i]));
}

enum status trials_write_json(FILE *file, const void *content, struct err *err) {
  const struct trials *trials = content;
  struct json_writer writer = {.file = file};
  struct json_writer *w = &writer;
  json_open_object(w, NULL);
  json_put_text(w, "document", "trials");
  json_put_uint(w, "schema_version", TRIALS_SCHEMA_VERSION);
  json_put_text(w, "id", trials->id);
  report_json_tool(w);
  json_put_text(w, "started_at", trials->started_at);
  json_put_text(w, "name", trials->name);
  write_verdict(w, trials);
  write_order(w, trials);
  json_open_array(w, "trials");
  for (size_t i = 0; i < trials->list.count; i++)
    write_trial(w, &trials->list.trial[i], i + 1);
  json_close_array(w);
  json_open_array(w, "metrics");
  for (size_t metric = 0; metric < METRICS; metric++)
    write_metric(w, trials, metric);
  json_close_array(w);
  write_method(w);
  write_facts(w, trials);
  json_close_object(w);
  fputc('\n', file);
  return save_flush(file, "summary", err);
}
