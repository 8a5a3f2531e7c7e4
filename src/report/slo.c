#include "report/slo.h"

#include "report/expression.h"
#include "report/layout.h"
#include "report/operations.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- what can be named --- */

enum whole { WHOLE_NONE, WHOLE_CONNECTIONS, WHOLE_PUBLISHES, WHOLE_DELIVERIES };

struct counter {
  const char *group, *name;
  size_t offset; /* in struct tally */
  bool is_codes;
  enum whole whole; /* what a share of it is a share of */
  bool is_unique;   /* may be named without its group */
};

static const struct counter counters[] = {
    {"connections", "attempted", offsetof(struct tally, connections.attempted), false, WHOLE_NONE, false},
    {"connections", "established", offsetof(struct tally, connections.established), false, WHOLE_CONNECTIONS, true},
    {"connections", "failed", offsetof(struct tally, connections.failed), true, WHOLE_CONNECTIONS, true},
    {"connections", "dropped", offsetof(struct tally, connections.dropped), true, WHOLE_CONNECTIONS, true},
    {"connections", "reconnected", offsetof(struct tally, connections.reconnected), false, WHOLE_NONE, true},
    {"publishes", "scheduled", offsetof(struct tally, publishes.scheduled), false, WHOLE_NONE, true},
    {"publishes", "attempted", offsetof(struct tally, publishes.attempted), false, WHOLE_NONE, false},
    {"publishes", "acked", offsetof(struct tally, publishes.acked), false, WHOLE_PUBLISHES, true},
    {"publishes", "acked_late", offsetof(struct tally, publishes.acked_late), false, WHOLE_PUBLISHES, true},
    {"publishes", "rejected", offsetof(struct tally, publishes.rejected), true, WHOLE_PUBLISHES, true},
    {"publishes", "timed_out", offsetof(struct tally, publishes.timed_out), true, WHOLE_PUBLISHES, true},
    {"publishes", "unsent", offsetof(struct tally, publishes.unsent), true, WHOLE_NONE, true},
    {"deliveries", "expected", offsetof(struct tally, deliveries.expected), false, WHOLE_NONE, true},
    {"deliveries", "observed", offsetof(struct tally, deliveries.observed), false, WHOLE_DELIVERIES, true},
    {"deliveries", "lost", offsetof(struct tally, deliveries.lost), false, WHOLE_DELIVERIES, true},
    {"deliveries", "duplicate", offsetof(struct tally, deliveries.duplicate), false, WHOLE_DELIVERIES, true},
    {"deliveries", "reordered", offsetof(struct tally, deliveries.reordered), false, WHOLE_DELIVERIES, true},
    {"deliveries", "corrupt", offsetof(struct tally, deliveries.corrupt), false, WHOLE_DELIVERIES, true},
    {"deliveries", "unexpected", offsetof(struct tally, deliveries.unexpected), false, WHOLE_DELIVERIES, true},
    {"deliveries", "late", offsetof(struct tally, deliveries.late), false, WHOLE_DELIVERIES, true},
    {"deliveries", "overlap", offsetof(struct tally, deliveries.overlap), false, WHOLE_DELIVERIES, true},
    {"deliveries", "recovered", offsetof(struct tally, deliveries.recovered), false, WHOLE_DELIVERIES, true},
    {"deliveries", "unacked_delivered", offsetof(struct tally, deliveries.unacked_delivered), false, WHOLE_NONE, true},
};
#define COUNTERS (sizeof counters / sizeof counters[0])

/* What a run has one of; each returns false where it has none. */
static bool acks_per_second(const struct report *report, double *out) {
  *out = report->acks_per_second;
  return true;
}

static bool deliveries_per_second(const struct report *report, double *out) {
  *out = report->deliveries_per_second;
  return true;
}

static bool connections_per_second(const struct report *report, double *out) {
  *out = report->connections_per_second;
  return true;
}

static bool attempts_per_second(const struct report *report, double *out) {
  *out = report->attempts_per_second;
  return true;
}

static bool fan_out(const struct report *report, double *out) {
  *out = report->fan_out;
  return true;
}

static bool error_rate(const struct report *report, double *out) {
  *out = operations_error_rate(report);
  return report->operation != NULL;
}

static bool storm_lost(const struct report *report, double *out) {
  *out = (double)report->storm.lost;
  return report->workload.storm;
}

static bool storm_returned(const struct report *report, double *out) {
  *out = (double)report->storm.returned;
  return report->workload.storm;
}

static bool storm_attempts(const struct report *report, double *out) {
  *out = (double)report->storm.attempts;
  return report->workload.storm;
}

static bool storm_failed(const struct report *report, double *out) {
  *out = (double)codes_total(&report->storm.failed);
  return report->workload.storm;
}

static bool storm_all_back_s(const struct report *report, double *out) {
  const struct report_storm *storm = &report->storm;
  *out = (double)(storm->last_returned_ns - storm->first_lost_ns) / 1e9;
  return storm->last_returned_ns > storm->first_lost_ns && storm->returned == storm->lost;
}

static const struct {
  const char *name, *unit;
  bool (*measure)(const struct report *report, double *out);
  const char *missing; /* why a run has none */
} figures[] = {
    {"acks_per_second", "per_second", acks_per_second, NULL},
    {"deliveries_per_second", "per_second", deliveries_per_second, NULL},
    {"connections_per_second", "per_second", connections_per_second, NULL},
    {"attempts_per_second", "per_second", attempts_per_second, NULL},
    {"fan_out", "ratio", fan_out, NULL},
    {"error_rate", "share", error_rate, "this is no run of operations"},
    {"storm.lost", "count", storm_lost, "this is no storm run"},
    {"storm.returned", "count", storm_returned, "this is no storm run"},
    {"storm.attempts", "count", storm_attempts, "this is no storm run"},
    {"storm.failed", "count", storm_failed, "this is no storm run"},
    {"storm.all_back_s", "s", storm_all_back_s, "this is no storm run, or not all came back"},
};
#define FIGURES (sizeof figures / sizeof figures[0])

void slo_list_names(FILE *file) {
  char text[EXPRESSION_LIST_MAX], name[64];
  expression_list_clocks(text);
  page_text(file, "clocks", "%s, each with .p50 .p99 .p99.9 ... .mean .max", text);
  text[0] = '\0';
  for (size_t i = 0; i < COUNTERS; i++) {
    const char *group = counters[i].is_unique ? "" : counters[i].group, *dot = counters[i].is_unique ? "" : ".";
    snprintf(name, sizeof name, "%s%s%s", group, dot, counters[i].name);
    expression_list_add(text, name);
  }
  page_text(file, "counters", "%s", text);
  text[0] = '\0';
  for (size_t i = 0; i < FIGURES; i++)
    expression_list_add(text, figures[i].name);
  page_text(file, "figures", "%s", text);
  expression_list_operations(text);
  page_text(file, "operations", "%s, each with .p99 ... .succeeded_per_second .items_per_second", text);
}

/* --- parsing --- */

struct parser {
  struct expression expression; /* this objective */
  const char *at;
};

static enum status bad(const struct parser *p, const char *at, const char *possible) {
  return expression_bad(&p->expression, at, possible);
}

static enum status unknown_name(const struct parser *p) {
  return bad(p, p->expression.text,
      "name a clock as delivery, a counter as lost or connections.failed, a rate as deliveries_per_second, or an "
      "operation's as put_document.p99: `muster help run objectives` lists them");
}

static bool find_counter(const char *word, size_t len, uint32_t *row) {
  for (uint32_t i = 0; i < COUNTERS; i++) {
    const struct counter *counter = &counters[i];
    size_t group = strlen(counter->group);
    bool whole = len > group && word[group] == '.' && memcmp(word, counter->group, group) == 0 &&
                 expression_is_word(word + group + 1, len - group - 1, counter->name);
    if (!whole && !(counter->is_unique && expression_is_word(word, len, counter->name))) continue;
    *row = i;
    return true;
  }
  return false;
}

static bool find_figure(const char *word, size_t len, uint32_t *row) {
  for (uint32_t i = 0; i < FIGURES; i++) {
    if (!expression_is_word(word, len, figures[i].name)) continue;
    *row = i;
    return true;
  }
  return false;
}

/* "99", "99.9", or the report's "99_9". */
static bool read_percentile(const char *text, size_t len, double *out) {
  char number[16];
  if (len == 0 || len >= sizeof number || !isdigit((unsigned char)text[0])) return false;
  for (size_t i = 0; i < len; i++)
    number[i] = text[i] == '_' ? '.' : text[i];
  number[len] = '\0';
  if (strspn(number, "0123456789.") != len) return false;
  char *end;
  *out = strtod(number, &end);
  return *end == '\0' && *out > 0 && *out < 100;
}

static enum status read_statistic(struct parser *p, const char *word, size_t len, struct slo *slo) {
  slo->statistic = SLO_PERCENTILE;
  if (expression_is_word(word, len, "mean")) {
    slo->statistic = SLO_MEAN;
  } else if (expression_is_word(word, len, "min")) {
    slo->statistic = SLO_MIN;
  } else if (expression_is_word(word, len, "max")) {
    slo->statistic = SLO_MAX;
  } else if (len < 2 || word[0] != 'p' || !read_percentile(word + 1, len - 1, &slo->percentile)) {
    return bad(p, word, "give .p50, .p95, .p99, .p99.9 (any percentile above 0 and below 100), .mean, .min or .max");
  }
  return STATUS_OK;
}

static enum status read_of_operation(struct parser *p, const char *word, size_t len, struct slo *slo) {
  slo->kind = SLO_OPERATION_RATE;
  for (uint32_t i = 0; i < OPERATION_RATES; i++) {
    slo->row = i;
    if (!expression_is_word(word, len, operation_rate_names[i])) continue;
    bool has_rate = operation_has_rate(&operation_names[slo->operation], (enum operation_rate)i);
    return has_rate ? STATUS_OK : bad(p, word, "this operation does one thing: it has no items");
  }
  slo->kind = SLO_OPERATION_CLOCK;
  return read_statistic(p, word, len, slo);
}

static enum status read_name(struct parser *p, struct slo *slo) {
  const char *word = p->at;
  size_t len = strcspn(word, "<>=");
  p->at = word + len;
  if (find_counter(word, len, &slo->row)) {
    slo->kind = SLO_COUNTER;
    return STATUS_OK;
  }
  if (find_figure(word, len, &slo->row)) {
    slo->kind = SLO_FIGURE;
    return STATUS_OK;
  }
  const char *dot = memchr(word, '.', len);
  size_t clock_len = dot ? (size_t)(dot - word) : len;
  size_t skipped = dot ? clock_len + 1 : len;
  if (expression_find_operation(word, clock_len, &slo->operation)) {
    return read_of_operation(p, word + skipped, len - skipped, slo);
  }
  if (!expression_find_clock(word, clock_len, &slo->clock)) return unknown_name(p);
  slo->kind = SLO_CLOCK;
  return read_statistic(p, word + skipped, len - skipped, slo);
}

static enum status read_operator(struct parser *p, struct slo *slo) {
  char first = p->at[0];
  bool or_equal = first && first != '=' && p->at[1] == '=';
  switch (first) {
  case '<':
    slo->operator= or_equal ? SLO_AT_MOST : SLO_BELOW;
    break;
  case '>':
    slo->operator= or_equal ? SLO_AT_LEAST : SLO_ABOVE;
    break;
  case '=':
    slo->operator= SLO_EQUAL;
    break;
  default:
    return bad(p, p->at, "an operator must follow: < <= > >= or =");
  }
  p->at += or_equal ? 2 : 1;
  return STATUS_OK;
}

static bool time_unit(const char *text, double *ns) {
  static const struct {
    const char *name;
    double ns;
  } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}};
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    if (strcmp(text, units[i].name) != 0) continue;
    *ns = units[i].ns;
    return true;
  }
  return false;
}

static bool is_clock(const struct slo *slo) {
  return slo->kind == SLO_CLOCK || slo->kind == SLO_OPERATION_CLOCK;
}

/* What may be given in percent: a part of something, or what is a share by itself. */
static bool may_be_share(const struct slo *slo) {
  if (slo->kind == SLO_COUNTER) return counters[slo->row].whole != WHOLE_NONE;
  return slo->kind == SLO_FIGURE && strcmp(figures[slo->row].unit, "share") == 0;
}

static enum status read_value(struct parser *p, struct slo *slo) {
  const char *at = p->at;
  const char *number = "give a number, as 0, 1.5, 50k or 2M";
  size_t digits = strspn(at, "0123456789.");
  char *end;
  double value = strtod(at, &end);
  if (digits == 0 || (size_t)(end - at) > digits) {
    return bad(p, at, is_clock(slo) ? "give a time, as 250ms or 1.5s" : number);
  }
  double factor = 1;
  if (is_clock(slo)) {
    if (!time_unit(end, &factor)) return bad(p, end, "a time needs its unit: ns, us, ms, s or m");
  } else if (strcmp(end, "%") == 0 && may_be_share(slo)) {
    slo->is_share = true;
    factor = 0.01;
  } else if (strcmp(end, "k") == 0 || strcmp(end, "M") == 0) {
    factor = *end == 'k' ? 1e3 : 1e6;
  } else if (*end) {
    return bad(
        p, end, may_be_share(slo) ? "only k, M or % may follow the number" : "only k or M may follow the number");
  }
  slo->value = value * factor;
  return STATUS_OK;
}

static enum status parse_one(struct slo *slo, struct err *err) {
  struct parser p = {{"objective", slo->text, err}, slo->text};
  enum status status = read_name(&p, slo);
  if (status == STATUS_OK) status = read_operator(&p, slo);
  if (status == STATUS_OK) status = read_value(&p, slo);
  return status;
}

enum status slo_parse(const char *text, struct slo_list *list, struct err *err) {
  for (const char *at = text;; at++) {
    size_t len = strcspn(at, ",");
    struct slo slo = {0};
    if (list->count == REPORT_OBJECTIVES_MAX) {
      return err_set(err, STATUS_USAGE, "more than %d objectives: leave some out", REPORT_OBJECTIVES_MAX);
    }
    if (!expression_copy(slo.text, sizeof slo.text, at, len)) {
      return err_set(err, STATUS_USAGE, "objective '%.40s...' is longer than %d characters: separate several by commas",
          at, OBJECTIVE_TEXT_MAX - 1);
    }
    if (slo.text[0] == '\0') {
      return err_set(err, STATUS_USAGE, "an objective is empty: write one as delivery.p99<250ms or lost=0");
    }
    enum status status = parse_one(&slo, err);
    if (status != STATUS_OK) return status;
    list->slo[list->count++] = slo;
    at += len;
    if (*at == '\0') return STATUS_OK;
  }
}

/* --- judging --- */

double slo_samples_needed(const struct slo *slo) {
  if (!is_clock(slo)) return 0;
  return slo->statistic == SLO_PERCENTILE ? ceil(FEW_SAMPLES / (1 - slo->percentile / 100) - 1e-6) : 1;
}

static double count_of(const struct counter *counter, const struct tally *tally) {
  const char *at = (const char *)tally + counter->offset;
  if (counter->is_codes) return (double)codes_total((const struct codes *)(const void *)at);
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return (double)value;
}

static double whole_of(const struct counter *counter, const struct tally *tally) {
  switch (counter->whole) {
  case WHOLE_CONNECTIONS:
    return (double)tally->connections.attempted;
  case WHOLE_PUBLISHES:
    return (double)tally->publishes.attempted;
  case WHOLE_DELIVERIES:
    return (double)tally->deliveries.expected;
  case WHOLE_NONE:
    break;
  }
  return 0;
}

/* The operation of an objective; NULL, with a reason in the report, when this run has none. */
static const struct report_operation *operation_of(struct report *report, const struct slo *slo) {
  const char *name = operation_names[slo->operation].name;
  const struct report_operation *operation = operations_find(report, name);
  if (!operation) {
    report_blame(report, BLAME_RUN, "objective %s cannot be judged: this run has no operation %s", slo->text, name);
  }
  return operation;
}

/* NULL, with a reason in the report, when this run does not have the clock. */
static const struct histogram *histogram_of(struct report *report, const struct slo *slo) {
  if (slo->kind == SLO_OPERATION_CLOCK) {
    const struct report_operation *operation = operation_of(report, slo);
    return operation ? &operation->tally->clock : NULL;
  }
  if (!report->clock[slo->clock]) {
    report_blame(report, BLAME_RUN, "objective %s cannot be judged: this run has no %s clock", slo->text,
        report_clock_name(slo->clock));
  }
  return report->clock[slo->clock];
}

static void blame_samples(struct report *report, const struct slo *slo, const struct histogram *h) {
  const char *name = slo->kind == SLO_CLOCK ? report_clock_name(slo->clock) : operation_names[slo->operation].name;
  report_blame(report, BLAME_RUN,
      "objective %s cannot be judged: %s has %llu values and needs %.0f: raise --duration or --count", slo->text, name,
      (unsigned long long)h->count, slo_samples_needed(slo));
}

static double statistic_of(const struct slo *slo, const struct histogram *h) {
  switch (slo->statistic) {
  case SLO_PERCENTILE:
    return (double)histogram_percentile(h, slo->percentile);
  case SLO_MEAN:
    return histogram_mean(h);
  case SLO_MIN:
    return (double)h->min_ns;
  case SLO_MAX:
    break;
  }
  return (double)h->max_ns;
}

static void measure_clock(struct report *report, const struct slo *slo, struct report_objective *out) {
  const struct histogram *h = histogram_of(report, slo);
  out->unit = "ns";
  if (!h) return;
  bool is_percentile = slo->statistic == SLO_PERCENTILE;
  if (h->count == 0 || (is_percentile && histogram_beyond(h, slo->percentile) < FEW_SAMPLES)) {
    blame_samples(report, slo, h);
    return;
  }
  out->evaluable = true;
  out->measured = statistic_of(slo, h);
}

static void measure_operation(struct report *report, const struct slo *slo, struct report_objective *out) {
  const struct report_operation *operation = operation_of(report, slo);
  out->unit = "per_second";
  if (!operation) return;
  const struct operation_tally *tally = operation->tally;
  out->measured = slo->row == OPERATION_RATE_ITEMS ? operations_per_second(report, tally->items, tally->items_late)
                                                   : operations_per_second(report, tally->succeeded, tally->late);
  out->evaluable = true;
}

static bool needs_acks(const char *name) {
  return strcmp(name, "acked") == 0 || strcmp(name, "acked_late") == 0 || strcmp(name, "rejected") == 0 ||
         strcmp(name, "timed_out") == 0 || strcmp(name, "acks_per_second") == 0;
}

static bool lacks_acks(struct report *report, const struct slo *slo, const char *name) {
  if (report->has_acks || !needs_acks(name)) return false;
  report_blame(report, BLAME_RUN, "objective %s cannot be judged: this protocol has no ACK", slo->text);
  return true;
}

static void measure_figure(struct report *report, const struct slo *slo, struct report_objective *out) {
  out->unit = figures[slo->row].unit;
  if (lacks_acks(report, slo, figures[slo->row].name)) return;
  out->evaluable = figures[slo->row].measure(report, &out->measured);
  if (out->evaluable) return;
  out->measured = 0;
  report_blame(report, BLAME_RUN, "objective %s cannot be judged: %s", slo->text, figures[slo->row].missing);
}

static void measure_counter(struct report *report, const struct slo *slo, struct report_objective *out) {
  const struct counter *counter = &counters[slo->row];
  out->unit = slo->is_share ? "share" : "count";
  if (lacks_acks(report, slo, counter->name)) return;
  out->measured = count_of(counter, &report->measure);
  out->evaluable = true;
  if (!slo->is_share) return;
  double whole = whole_of(counter, &report->measure);
  if (whole > 0) {
    out->measured /= whole;
    return;
  }
  out->evaluable = false;
  report_blame(report, BLAME_RUN, "objective %s cannot be judged: there is nothing to be a share of", slo->text);
}

static void measure(struct report *report, const struct slo *slo, struct report_objective *out) {
  switch (slo->kind) {
  case SLO_CLOCK:
  case SLO_OPERATION_CLOCK:
    measure_clock(report, slo, out);
    break;
  case SLO_OPERATION_RATE:
    measure_operation(report, slo, out);
    break;
  case SLO_FIGURE:
    measure_figure(report, slo, out);
    break;
  case SLO_COUNTER:
    measure_counter(report, slo, out);
    break;
  }
}

static bool holds(const struct slo *slo, double measured) {
  switch (slo->operator) {
  case SLO_BELOW:
    return measured < slo->value;
  case SLO_AT_MOST:
    return measured <= slo->value;
  case SLO_ABOVE:
    return measured > slo->value;
  case SLO_AT_LEAST:
    return measured >= slo->value;
  case SLO_EQUAL:
    break;
  }
  return measured == slo->value;
}

void slo_judge(const struct slo_list *list, struct report *report) {
  report->objectives = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    const struct slo *slo = &list->slo[i];
    struct report_objective *out = &report->objective[report->objectives++];
    *out = (struct report_objective){0};
    memcpy(out->text, slo->text, sizeof out->text);
    measure(report, slo, out);
    out->held = out->evaluable && holds(slo, out->measured);
  }
}
