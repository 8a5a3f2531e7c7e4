/* A report as Markdown, for a comment on a pull request. */
#include "report/formats.h"
#include "report/layout.h"
#include "report/save.h"

#include <inttypes.h>
#include <string.h>

/* Texts that came from elsewhere can neither end a cell nor make markup. */
static void put(FILE *file, const char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < ' ' || *text == 0x7f) {
      fputc('?', file);
    } else if (*text == '<') {
      fputs("&lt;", file);
    } else if (*text == '&') {
      fputs("&amp;", file);
    } else {
      if (strchr("\\`*_[]|#~@!", *text)) fputc('\\', file);
      fputc(*text, file);
    }
  }
}

static void put_count(FILE *file, uint64_t value) {
  char text[32];
  format_count(text, value);
  fprintf(file, " %s |", text);
}

static void put_verdict(FILE *file, const struct report *r) {
  fputs("### muster ", file);
  put(file, r->workload.name);
  int code = report_exit_code(r);
  fprintf(file, ": %s\n\n", code == 0 ? "valid" : code == 1 ? "an objective is broken" : "invalid");
  for (uint32_t i = 0; i < r->reasons; i++) {
    fputs("- ", file);
    put(file, r->reason[i]);
    fputc('\n', file);
  }
  if (r->reasons) fputc('\n', file);
}

/* What makes one report of a protocol another than the next one. */
static void put_options(FILE *file, const struct report *r) {
  char text[WORKLOAD_OPTIONS_TEXT_MAX];
  if (!workload_options_text(&r->workload, text)) return;
  put(file, r->target.protocol);
  fputs(" with ", file);
  put(file, text);
  fputs("\n\n", file);
}

static void put_objectives(FILE *file, const struct report *r) {
  if (r->objectives == 0) return;
  fputs("| objective | measured | outcome |\n|---|---:|---|\n", file);
  for (uint32_t i = 0; i < r->objectives; i++) {
    const struct report_objective *objective = &r->objective[i];
    char measured[40] = "not measurable";
    if (objective->evaluable) report_format_measured(measured, objective);
    fputs("| ", file);
    put(file, objective->text);
    fprintf(file, " | %s | %s |\n", measured,
        !objective->evaluable ? "not judged"
        : objective->held     ? "held"
                              : "**broken**");
  }
  fputc('\n', file);
}

static void put_counters(FILE *file, const struct report *r) {
  const struct tally *t = &r->measure;
  fputs("| connections | attempted | established | failed | dropped |\n|---|---:|---:|---:|---:|\n| |", file);
  put_count(file, t->connections.attempted);
  put_count(file, t->connections.established);
  put_count(file, codes_total(&t->connections.failed));
  put_count(file, codes_total(&t->connections.dropped));
  fputc('\n', file);
  if (r->workload.topology == TOPOLOGY_HOLD) return;
  fputs("\n| publishes | scheduled | attempted | acked | rejected | timed out |\n|---|---:|---:|---:|---:|---:|\n| |",
      file);
  put_count(file, t->publishes.scheduled);
  put_count(file, t->publishes.attempted);
  put_count(file, t->publishes.acked);
  put_count(file, codes_total(&t->publishes.rejected));
  put_count(file, codes_total(&t->publishes.timed_out));
  fputs("\n\n| deliveries | expected | observed | lost | duplicate | reordered |\n|---|---:|---:|---:|---:|---:|\n| |",
      file);
  put_count(file, t->deliveries.expected);
  put_count(file, t->deliveries.observed);
  put_count(file, t->deliveries.lost);
  put_count(file, t->deliveries.duplicate);
  put_count(file, t->deliveries.reordered);
  fputc('\n', file);
}

static void put_latency(FILE *file, const char *name, const struct report_latency *latency, bool *any_marked) {
  static const enum report_percentile shown[] = {REPORT_P50, REPORT_P99, REPORT_P99_9};
  struct page_unit unit = page_unit_for(latency->percentile_ns[REPORT_P50], latency->max_ns);
  char text[16];
  fprintf(file, "| %s, %s |", name, unit.name);
  put_count(file, latency->count);
  for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
    format_latency(text, (double)latency->percentile_ns[shown[i]], unit);
    fprintf(file, " %s%s |", text, latency->few[shown[i]] ? " \\*" : "");
    *any_marked |= latency->few[shown[i]];
  }
  format_latency(text, (double)latency->max_ns, unit);
  fprintf(file, " %s |\n", text);
}

/* The clocks that a user feels; all others are in the text below. */
static void put_latencies(FILE *file, const struct report *r) {
  static const enum report_clock shown[] = {
      CLOCK_CONNECT, CLOCK_ACK, CLOCK_DELIVERY, CLOCK_FANOUT_COMPLETE, CLOCK_BROADCAST_RESULT, CLOCK_BACKLOG_COMPLETE};
  bool any_marked = false;
  struct report_latency latency;
  fputs("\n| latency | count | p50 | p99 | p99.9 | max |\n|---|---:|---:|---:|---:|---:|\n", file);
  for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
    bool has = report_latency(r, shown[i], &latency) && latency.count > 0;
    if (has) put_latency(file, report_clock_name(shown[i]), &latency, &any_marked);
  }
  if (any_marked) fprintf(file, "\n\\* fewer than %d samples lie beyond it: read it as a hint\n", FEW_SAMPLES);
}

static void put_rates(FILE *file, const struct report *r) {
  if (r->workload.topology == TOPOLOGY_HOLD) return;
  fputc('\n', file);
  if (r->has_acks) fprintf(file, "acks/s %.2f, ", r->acks_per_second);
  fprintf(file, "deliveries/s %.2f, fan-out %.4f\n", r->deliveries_per_second, r->fan_out);
}

enum status report_write_markdown(FILE *file, const struct report *report, struct err *err) {
  put_verdict(file, report);
  put_options(file, report);
  put_objectives(file, report);
  put_counters(file, report);
  put_latencies(file, report);
  put_rates(file, report);
  /* No line of the text begins with a tilde, so nothing in it ends the fence. */
  fputs("\n<details><summary>the whole report</summary>\n\n~~~text\n", file);
  enum status status = report_write_text(file, report, err);
  fputs("~~~\n\n</details>\n", file);
  return status == STATUS_OK ? save_flush(file, "report", err) : status;
}
