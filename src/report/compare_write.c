/* What a comparison says: a page for a person, and everything as JSON. */
#include "report/compare.h"
#include "report/json_parts.h"
#include "report/json_writer.h"
#include "report/layout.h"
#include "report/save.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const outcome_names[] = {[COMPARE_NONE_SHOWN] = "none_shown",
    [COMPARE_FASTER] = "faster",
    [COMPARE_SLOWER] = "slower",
    [COMPARE_NOT_COMPARED] = "not_compared"};
static const char *const outcome_words[] = {[COMPARE_NONE_SHOWN] = "none shown",
    [COMPARE_FASTER] = "faster",
    [COMPARE_SLOWER] = "slower",
    [COMPARE_NOT_COMPARED] = "-"};
static const char *const verdict_names[] = {[VERDICT_NONE_SHOWN] = "none_shown",
    [VERDICT_FASTER] = "faster",
    [VERDICT_SLOWER] = "slower",
    [VERDICT_MIXED] = "mixed"};
static const char *const gate_names[] = {
    [GATE_HELD] = "held", [GATE_BROKEN] = "broken", [GATE_UNDECIDED] = "undecided"};

#define VERDICT_TEXT_MAX 1024

/* --- sentences --- */

struct sentence {
  char *text;
  size_t size, used;
};

static void say(struct sentence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct sentence *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int written = vsnprintf(s->text + s->used, s->size - s->used, format, args);
  va_end(args);
  if (written > 0) s->used += (size_t)written < s->size - s->used ? (size_t)written : s->size - s->used - 1;
}

static void say_metrics(struct sentence *s, const struct comparison *c, enum compare_outcome outcome) {
  bool any = false;
  for (size_t i = 0; i < c->headlines; i++) {
    const struct compare_metric *m = &c->metric[i];
    if (m->outcome != outcome) continue;
    char name[METRIC_NAME_MAX];
    metric_name(m->metric, name);
    say(s, "%s%s %+.1f %%", any ? ", " : "", name, (m->ratio - 1) * 100);
    any = true;
  }
}

static void say_apart(struct sentence *s, const struct comparison *c) {
  bool any = false;
  for (size_t i = 0; i < c->headlines; i++) {
    const struct compare_metric *m = &c->metric[i];
    if (!m->apart) continue;
    char name[METRIC_NAME_MAX];
    metric_name(m->metric, name);
    say(s, "%s%s %+.1f %%",
        any ? ", " : " (though every trial of one side is above every trial of the other in: ", name,
        (m->ratio - 1) * 100);
    any = true;
  }
  if (any) say(s, ")");
}

static void verdict_text(char out[VERDICT_TEXT_MAX], const struct comparison *c) {
  struct sentence s = {out, VERDICT_TEXT_MAX, 0};
  enum compare_verdict verdict = compare_verdict_of(c);
  out[0] = '\0';
  if (verdict == VERDICT_SLOWER || verdict == VERDICT_MIXED) {
    say(&s, "the candidate is slower: ");
    say_metrics(&s, c, COMPARE_SLOWER);
  }
  if (verdict == VERDICT_MIXED) say(&s, "; ");
  if (verdict == VERDICT_FASTER || verdict == VERDICT_MIXED) {
    say(&s, "the candidate is faster: ");
    say_metrics(&s, c, COMPARE_FASTER);
  }
  if (verdict == VERDICT_NONE_SHOWN) say(&s, "no difference shown");
  if (c->trials_needed) {
    /* Said without a claim: it is what the trials were. */
    say_apart(&s, c);
    say(&s, ", and none could be: %zu + %zu trials are too few at %.0f %% for %zu headline metrics; %zu + %zu would do",
        c->base->count, c->candidate->count, COMPARE_ALPHA * 100, c->headlines, c->trials_needed, c->trials_needed);
  }
}

static void method_text(char out[VERDICT_TEXT_MAX], const struct comparison *c) {
  snprintf(out, VERDICT_TEXT_MAX,
      "Mann-Whitney over trials, two-sided; p corrected by Holm for %zu headline metrics, and apart from them for the "
      "others; a difference is shown when that p is at most %.2f and the medians differ by %.0f %% or more. Change: "
      "ratio of the medians with its %.0f %% bootstrap interval. Spread: largest less smallest, of the median.",
      c->headlines, COMPARE_ALPHA, COMPARE_LEAST_CHANGE * 100, STATISTICS_CONFIDENCE * 100);
}

/* --- text --- */

#define NAME_WIDTH 25
#define ROW "%-25s %2s %8s %6s %8s %6s %7s %14s %5s %s\n"

/* At most 6 characters, or 7 with a sign; a hundredfold and more comes out as the ratio, "x250". */
static void format_change(char out[16], double change) {
  double percent = change * 100;
  if (change >= 1e5 - 2) {
    snprintf(out, 16, "x1e5+");
  } else if (percent >= 9999.5) {
    snprintf(out, 16, "x%.0f", change + 1);
  } else {
    snprintf(out, 16, "%+.*f%%", percent >= 99.95 ? 0 : 1, percent);
  }
}

static void format_spread(char out[16], double share) {
  double percent = share * 100;
  if (percent >= 9999.5) {
    snprintf(out, 16, ">9999%%");
  } else {
    snprintf(out, 16, "%.*f%%", percent >= 99.95 ? 0 : 1, percent);
  }
}

static void format_value(char out[16], size_t metric, double value, struct page_unit unit) {
  if (metric_is_clock(metric)) {
    format_latency(out, value, unit);
  } else {
    snprintf(out, 16, value < 999.95 ? "%.1f" : value < 1e8 ? "%.0f" : "%.2e", value);
  }
}

static double spread(const struct compare_side *side) {
  return (side->max - side->min) / side->median;
}

static void write_row(FILE *file, const struct compare_metric *m) {
  char name[METRIC_NAME_MAX], base[16], candidate[16], of_base[16], of_candidate[16], change[16], low[16], high[16];
  char interval[40], p[16];
  metric_column(file, m->metric, NAME_WIDTH, name);
  double largest = m->base.median > m->candidate.median ? m->base.median : m->candidate.median;
  struct page_unit unit = page_unit_for((int64_t)m->base.median, (int64_t)largest);
  format_value(base, m->metric, m->base.median, unit);
  format_value(candidate, m->metric, m->candidate.median, unit);
  format_spread(of_base, spread(&m->base));
  format_spread(of_candidate, spread(&m->candidate));
  format_change(change, m->ratio - 1);
  format_change(low, m->interval.low - 1);
  format_change(high, m->interval.high - 1);
  snprintf(interval, sizeof interval, "%s..%s", low, high);
  snprintf(p, sizeof p, m->p_corrected < 0.0005 ? "<.001" : "%.3f", m->p_corrected);
  fprintf(file, ROW, name, metric_is_clock(m->metric) ? unit.name : "/s", base, of_base, candidate, of_candidate,
      change, interval, p, outcome_words[m->outcome]);
}

static void write_table(FILE *file, const struct comparison *c, bool headline) {
  fputc('\n', file);
  fprintf(file, ROW, headline ? "headline metrics" : "other metrics", "", "base", "spread", "cand.", "spread", "change",
      "95% interval", "p", "");
  for (size_t i = 0; i < c->metrics; i++) {
    bool is_row = c->metric[i].headline == headline && c->metric[i].outcome != COMPARE_NOT_COMPARED;
    if (is_row) write_row(file, &c->metric[i]);
  }
}

/* By what kept them from it. */
static void write_not_compared(FILE *file, const struct comparison *c) {
  const char *done[8] = {0};
  size_t reasons = 0;
  for (size_t i = 0; i < c->metrics && reasons < 8; i++) {
    char text[2048];
    struct sentence s = {text, sizeof text, 0};
    const char *why = c->metric[i].why;
    for (size_t j = 0; why && j < reasons; j++)
      why = strcmp(done[j], why) == 0 ? NULL : why;
    if (!why) continue;
    done[reasons++] = why;
    say(&s, "%s:", why);
    for (size_t j = i; j < c->metrics; j++) {
      char name[METRIC_NAME_MAX];
      if (!c->metric[j].why || strcmp(c->metric[j].why, why) != 0) continue;
      metric_name(c->metric[j].metric, name);
      say(&s, " %s", name);
    }
    page_text(file, reasons == 1 ? "left out" : "", "%s", text);
  }
}

static void write_side(FILE *file, const char *label, const struct trial_list *list) {
  const struct trial *first = &list->trial[0];
  const json_t *workload = json_object_get(first->facts, "workload");
  const char *name = json_string_value(json_object_get(workload, "name"));
  page_text(file, label, "%zu valid trial%s of %s since %s: %s%s", list->count, list->count == 1 ? "" : "s",
      name ? name : "?", trial_fact(first, "started_at"), first->source, list->count == 1 ? "" : " ...");
}

static void write_differences(FILE *file, const struct comparison *c) {
  for (size_t i = 0; i < c->differences; i++) {
    char *base = json_dumps(c->difference[i].base, JSON_ENCODE_ANY | JSON_COMPACT);
    char *candidate = json_dumps(c->difference[i].candidate, JSON_ENCODE_ANY | JSON_COMPACT);
    page_text(file, i ? "" : "NOT EQUAL", "%.40s: base %.300s | candidate %.300s", c->difference[i].key,
        base ? base : "not there", candidate ? candidate : "not there");
    free(base);
    free(candidate);
  }
  if (c->differences == 0) return;
  page_text(file, "", "Accepted by --allow-different: the figures compare two things that do not mean the same.");
}

static void write_gates(FILE *file, const struct comparison *c) {
  for (uint32_t i = 0; i < c->settings->gates.count; i++) {
    const struct compare_gate *gate = &c->gate[i];
    const char *text = c->settings->gates.gate[i].text, *label = i ? "" : "gates";
    if (gate->result == GATE_UNDECIDED) {
      page_text(file, label, "%s UNDECIDED: %s", text, gate->why);
    } else {
      page_text(file, label, "%s %s: changed by %+.1f %%, p %.3f corrected for %u gate%s", text,
          gate->result == GATE_BROKEN ? "BROKEN" : "held", gate->change * 100, gate->p_corrected,
          c->settings->gates.count, c->settings->gates.count == 1 ? "" : "s");
    }
  }
}

enum status compare_write_text(FILE *file, const struct comparison *c, struct err *err) {
  char text[VERDICT_TEXT_MAX];
  verdict_text(text, c);
  page_text(file, "verdict", "%s", text);
  write_gates(file, c);
  write_differences(file, c);
  write_side(file, "base", c->base);
  write_side(file, "candidate", c->candidate);
  for (size_t i = 0; i < c->warnings; i++)
    page_text(file, i ? "" : "warning", "%s", c->warning[i]);
  write_table(file, c, true);
  if (c->metrics > c->headlines) write_table(file, c, false);
  fputc('\n', file);
  write_not_compared(file, c);
  method_text(text, c);
  page_text(file, "method", "%s", text);
  return save_flush(file, "comparison", err);
}

/* --- JSON --- */

static void write_verdict(struct json_writer *w, const struct comparison *c) {
  char text[VERDICT_TEXT_MAX];
  verdict_text(text, c);
  json_open_object(w, "verdict");
  json_put_text(w, "result", verdict_names[compare_verdict_of(c)]);
  json_put_text(w, "text", text);
  json_put_bool(w, "enough_trials", c->trials_needed == 0);
  if (c->trials_needed) {
    json_put_uint(w, "trials_needed", c->trials_needed);
  } else {
    json_put_null(w, "trials_needed");
  }
  json_close_object(w);
}

static void write_method(struct json_writer *w, const struct comparison *c) {
  char text[VERDICT_TEXT_MAX];
  method_text(text, c);
  json_open_object(w, "method");
  json_put_text(w, "test", "mann_whitney");
  json_put_text(w, "correction", "holm");
  json_put_double(w, "alpha", COMPARE_ALPHA);
  json_put_double(w, "least_change", COMPARE_LEAST_CHANGE);
  json_put_double(w, "confidence", STATISTICS_CONFIDENCE);
  json_put_uint(w, "resamples", STATISTICS_RESAMPLES);
  json_put_text(w, "text", text);
  json_close_object(w);
}

static void write_side_json(struct json_writer *w, const char *key, const struct trial_list *list) {
  static const char *const facts[] = {"muster", "workload", "target", "environment"};
  json_open_object(w, key);
  json_open_array(w, "trials");
  for (size_t i = 0; i < list->count; i++) {
    json_open_object(w, NULL);
    json_put_text(w, "file", list->trial[i].source);
    json_put_text(w, "run_id", trial_fact(&list->trial[i], "run_id"));
    json_put_text(w, "started_at", trial_fact(&list->trial[i], "started_at"));
    json_close_object(w);
  }
  json_close_array(w);
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    report_json_value(w, facts[i], json_object_get(list->trial[0].facts, facts[i]));
  json_close_object(w);
}

static void write_differences_json(struct json_writer *w, const struct comparison *c) {
  json_open_array(w, "different");
  for (size_t i = 0; i < c->differences; i++) {
    json_open_object(w, NULL);
    json_put_text(w, "key", c->difference[i].key);
    report_json_value(w, "base", c->difference[i].base);
    report_json_value(w, "candidate", c->difference[i].candidate);
    json_close_object(w);
  }
  json_close_array(w);
  json_open_array(w, "warnings");
  for (size_t i = 0; i < c->warnings; i++)
    json_put_text(w, NULL, c->warning[i]);
  json_close_array(w);
}

static void write_values(struct json_writer *w, const char *key, size_t metric, const struct compare_side *side,
    const struct trial_list *list) {
  json_open_object(w, key);
  json_put_double(w, "median", side->median);
  json_put_double(w, "min", side->min);
  json_put_double(w, "max", side->max);
  json_open_flat_array(w, "values");
  for (size_t i = 0; i < list->count; i++)
    json_put_double(w, NULL, list->trial[i].metrics.value[metric]);
  json_close_array(w);
  json_close_object(w);
}

static void write_test(struct json_writer *w, const struct comparison *c, const struct compare_metric *m) {
  write_values(w, "base", m->metric, &m->base, c->base);
  write_values(w, "candidate", m->metric, &m->candidate, c->candidate);
  json_put_double(w, "ratio", m->ratio);
  json_open_flat_array(w, "ratio_interval");
  json_put_double(w, NULL, m->interval.low);
  json_put_double(w, NULL, m->interval.high);
  json_close_array(w);
  json_put_double(w, "p", m->p);
  json_put_double(w, "p_corrected", m->p_corrected);
  json_put_bool(w, "exact", m->exact);
  json_put_bool(w, "apart", m->apart);
}

static void write_no_test(struct json_writer *w) {
  static const char *const keys[] = {
      "base", "candidate", "ratio", "ratio_interval", "p", "p_corrected", "exact", "apart"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    json_put_null(w, keys[i]);
}

static void write_metrics(struct json_writer *w, const struct comparison *c) {
  json_open_array(w, "metrics");
  for (size_t i = 0; i < c->metrics; i++) {
    const struct compare_metric *m = &c->metric[i];
    char name[METRIC_NAME_MAX];
    metric_name(m->metric, name);
    json_open_object(w, NULL);
    json_put_text(w, "name", name);
    json_put_text(w, "unit", metric_unit(m->metric));
    json_put_text(w, "better", metric_is_clock(m->metric) ? "lower" : "higher");
    json_put_bool(w, "headline", m->headline);
    json_put_text(w, "outcome", outcome_names[m->outcome]);
    json_put_text(w, "why", m->why);
    if (m->outcome == COMPARE_NOT_COMPARED) {
      write_no_test(w);
    } else {
      write_test(w, c, m);
    }
    json_close_object(w);
  }
  json_close_array(w);
}

static void write_gates_json(struct json_writer *w, const struct comparison *c) {
  json_open_array(w, "gates");
  for (uint32_t i = 0; i < c->settings->gates.count; i++) {
    const struct gate *gate = &c->settings->gates.gate[i];
    bool decided = c->gate[i].result != GATE_UNDECIDED;
    char name[METRIC_NAME_MAX];
    metric_name(gate->metric, name);
    json_open_object(w, NULL);
    json_put_text(w, "text", gate->text);
    json_put_text(w, "metric", name);
    json_put_double(w, "limit", gate->change);
    json_put_text(w, "result", gate_names[c->gate[i].result]);
    json_put_text(w, "why", decided ? NULL : c->gate[i].why);
    if (decided) {
      json_put_double(w, "change", c->gate[i].change);
      json_put_double(w, "p_corrected", c->gate[i].p_corrected);
    } else {
      json_put_null(w, "change");
      json_put_null(w, "p_corrected");
    }
    json_close_object(w);
  }
  json_close_array(w);
}

enum status compare_write_json(FILE *file, const void *content, struct err *err) {
  const struct comparison *c = content;
  struct json_writer writer = {.file = file};
  struct json_writer *w = &writer;
  json_open_object(w, NULL);
  json_put_text(w, "document", "compare");
  json_put_uint(w, "schema_version", COMPARE_SCHEMA_VERSION);
  report_json_tool(w);
  write_verdict(w, c);
  write_gates_json(w, c);
  write_differences_json(w, c);
  write_side_json(w, "base", c->base);
  write_side_json(w, "candidate", c->candidate);
  report_json_value(w, "comparability", trial_comparability(&c->base->trial[0]));
  write_metrics(w, c);
  write_method(w, c);
  json_close_object(w);
  fputc('\n', file);
  return save_flush(file, "comparison", err);
}
