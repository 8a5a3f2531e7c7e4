#include "report/layout.h"
#include "report/observed.h"

#include <math.h>
#include <string.h>

/* Only the series that the user chose have such names, and not many of them fit a page. */
#define SERIES_LINES 8

static uint32_t find_column(const struct report_observed *observed, const char *column) {
  uint32_t i = 0;
  while (i < observed->columns && strcmp(observed->column[i], column) != 0)
    i++;
  return i;
}

/* The middle of the time that a row tells of. */
static double middle_s(const struct report_observed *observed, uint32_t row) {
  const double *at_s = &observed->value[(size_t)row * (observed->columns + 1)];
  return row ? (at_s[0] + at_s[-(ptrdiff_t)(observed->columns + 1)]) / 2 : at_s[0];
}

struct observed_summary observed_summary(
    const struct report_observed *observed, const char *column, double from_s, double to_s) {
  struct observed_summary summary = {0};
  uint32_t index = find_column(observed, column);
  double sum = 0;
  if (index == observed->columns) return summary;
  for (uint32_t row = 0; row < observed->rows; row++) {
    double value = observed->value[(size_t)row * (observed->columns + 1) + 1 + index], at_s = middle_s(observed, row);
    if (at_s < from_s || at_s > to_s || isnan(value)) continue;
    if (summary.count == 0 || value < summary.min) summary.min = value;
    if (summary.count == 0 || value > summary.max) summary.max = value;
    sum += value;
    summary.count++;
  }
  if (summary.count) summary.mean = sum / summary.count;
  return summary;
}

static struct observed_summary in_measure(
    const struct report_observed *observed, const char *column, const struct report *report) {
  return observed_summary(observed, column, 0, report->measure_s);
}

/* A file may say what no process has. */
static uint64_t whole_bytes(double value) {
  return value <= 0 ? 0 : value < 1e19 ? (uint64_t)value : (uint64_t)1e19;
}

static void bytes_text(char out[112], const struct observed_summary *s) {
  char min[32], mean[32], max[32];
  format_bytes(min, whole_bytes(s->min));
  format_bytes(mean, whole_bytes(s->mean));
  format_bytes(max, whole_bytes(s->max));
  snprintf(out, 112, "; memory %s / %s / %s", min, mean, max);
}

static void write_usage(FILE *file, const char *label, const struct report_observed *o, const struct report *report) {
  struct observed_summary cpu = in_measure(o, "cpu_cores", report);
  struct observed_summary memory = in_measure(o, "rss_bytes", report);
  char cpu_text[64] = "CPU not known", memory_text[112] = "";
  if (memory.count == 0) memory = in_measure(o, "memory_bytes", report);
  if (cpu.count) snprintf(cpu_text, sizeof cpu_text, "CPU %.2f / %.2f / %.2f cores", cpu.min, cpu.mean, cpu.max);
  if (memory.count) bytes_text(memory_text, &memory);
  page_text(file, label, "%s: %s%s", o->label, cpu_text, memory_text);
}

static void write_series(FILE *file, const char *label, const struct report_observed *o, const struct report *report) {
  page_text(file, label, "%s:", o->label);
  for (uint32_t i = 0; i < o->columns && i < SERIES_LINES; i++) {
    struct observed_summary s = in_measure(o, o->column[i], report);
    if (s.count == 0) {
      page_text(file, "", "  %s: no value", o->column[i]);
    } else {
      page_text(file, "", "  %s: %.6g / %.6g / %.6g", o->column[i], s.min, s.mean, s.max);
    }
  }
  if (o->columns > SERIES_LINES) page_text(file, "", "  and %u more, in the JSON report", o->columns - SERIES_LINES);
}

void observed_write_text(FILE *file, const struct report *report) {
  for (uint32_t i = 0; i < report->observations; i++) {
    const struct report_observed *o = &report->observed[i];
    const char *label = i == 0 ? "observed" : "";
    bool is_machine = find_column(o, "cpu_cores") < o->columns;
    if (is_machine) {
      write_usage(file, label, o, report);
    } else {
      write_series(file, label, o, report);
    }
    if (o->error[0]) page_text(file, "", "  values are missing: %s", o->error);
  }
  if (report->observations) page_text(file, "", "(least / mean / greatest of the seconds of the measure phase)");
}
