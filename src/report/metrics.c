#include "report/metrics.h"

#include "report/expression.h"

#include <string.h>

static const struct {
  const char *name, *part; /* of the report that holds it */
} rates[METRIC_RATES] = {
    {"attempts_per_second", "rates"},
    {"acks_per_second", "rates"},
    {"deliveries_per_second", "rates"},
    {"connections_per_second", "rates"},
    {"publishes_per_core_second", "derived"},
};
enum { RATE_ATTEMPTS, RATE_ACKS, RATE_DELIVERIES, RATE_CONNECTIONS, RATE_PER_CORE };

static const struct {
  const char *name, *key;
} statistics[METRIC_STATISTICS] = {
    {"mean", "mean_ns"},
    {"p50", "p50_ns"},
    {"p75", "p75_ns"},
    {"p90", "p90_ns"},
    {"p95", "p95_ns"},
    {"p99", "p99_ns"},
    {"p99.9", "p99_9_ns"},
    {"p99.99", "p99_99_ns"},
    {"max", "max_ns"},
};
enum { STATISTIC_P50 = 1, STATISTIC_P99 = 5 };

#define CLOCK_METRIC(clock, statistic) (METRIC_RATES + (clock)*METRIC_STATISTICS + (statistic))

#define FIRST_OPERATION_RATE CLOCK_METRIC(METRIC_CLOCKS, 0)

static const char *clock_name(size_t metric) {
  size_t clock = (metric - METRIC_RATES) / METRIC_STATISTICS;
  return clock < REPORT_CLOCKS ? report_clock_name((enum report_clock)clock)
                               : operation_names[clock - REPORT_CLOCKS].name;
}

static size_t statistic_of(size_t metric) {
  return (metric - METRIC_RATES) % METRIC_STATISTICS;
}

static const struct operation_name *operation_of(size_t metric) {
  return &operation_names[(metric - FIRST_OPERATION_RATE) / OPERATION_RATES];
}

static size_t operation_rate_of(size_t metric) {
  return (metric - FIRST_OPERATION_RATE) % OPERATION_RATES;
}

bool metric_is_clock(size_t metric) {
  return metric >= METRIC_RATES && metric < FIRST_OPERATION_RATE;
}

const char *metric_unit(size_t metric) {
  return metric_is_clock(metric) ? "ns" : "per_second";
}

void metric_name(size_t metric, char out[METRIC_NAME_MAX]) {
  if (metric < METRIC_RATES) {
    snprintf(out, METRIC_NAME_MAX, "%s", rates[metric].name);
  } else if (metric_is_clock(metric)) {
    snprintf(out, METRIC_NAME_MAX, "%s.%s", clock_name(metric), statistics[statistic_of(metric)].name);
  } else {
    snprintf(
        out, METRIC_NAME_MAX, "%s.%s", operation_of(metric)->name, operation_rate_names[operation_rate_of(metric)]);
  }
}

void metric_column(FILE *file, size_t metric, size_t width, char out[METRIC_NAME_MAX]) {
  metric_name(metric, out);
  if (strlen(out) <= width) return;
  fprintf(file, "%s\n", out);
  out[0] = '\0';
}

static bool is_there(size_t metric) {
  if (metric < FIRST_OPERATION_RATE) return true;
  return operation_has_rate(operation_of(metric), (enum operation_rate)operation_rate_of(metric));
}

/* The report's own "p99_9" is as good as "p99.9". */
static bool same_name(const char *name, size_t len, const char *known) {
  if (strlen(known) != len) return false;
  const char *dot = strchr(known, '.');
  for (size_t i = 0; i < len; i++) {
    bool may_differ = dot && known + i > dot && known[i] == '.' && name[i] == '_';
    if (name[i] != known[i] && !may_differ) return false;
  }
  return true;
}

size_t metric_find(const char *name, size_t len) {
  for (size_t i = 0; i < METRICS; i++) {
    char known[METRIC_NAME_MAX];
    metric_name(i, known);
    if (is_there(i) && same_name(name, len, known)) return i;
  }
  return METRIC_NONE;
}

const size_t *metrics_headline(bool closed_loop) {
  /* An open loop's rates are its schedule's; they say nothing of the server. */
  static const size_t list[] = {RATE_DELIVERIES, RATE_PER_CORE, CLOCK_METRIC(CLOCK_DELIVERY, STATISTIC_P50),
      CLOCK_METRIC(CLOCK_DELIVERY, STATISTIC_P99), CLOCK_METRIC(CLOCK_ACK, STATISTIC_P50),
      CLOCK_METRIC(CLOCK_ACK, STATISTIC_P99), CLOCK_METRIC(CLOCK_BACKLOG_COMPLETE, STATISTIC_P50),
      CLOCK_METRIC(CLOCK_RECOVER, STATISTIC_P50), METRIC_NONE};
  return closed_loop ? list : list + 1;
}

const size_t *metrics_of_connecting(void) {
  static const size_t list[] = {RATE_CONNECTIONS, CLOCK_METRIC(CLOCK_CONNECT, STATISTIC_P50),
      CLOCK_METRIC(CLOCK_CONNECT, STATISTIC_P99), METRIC_NONE};
  return list;
}

bool metric_value(const json_t *value, double *out) {
  if (!json_is_number(value)) return false;
  *out = json_number_value(value);
  return *out >= 0 && *out <= METRIC_VALUE_MAX;
}

static bool has_few_samples(const json_t *clock, const char *key) {
  size_t i;
  json_t *item;
  json_array_foreach(json_object_get(clock, "few_samples"), i, item) {
    const char *text = json_string_value(item);
    if (text && strcmp(text, key) == 0) return true;
  }
  return false;
}

static void read_clock(const json_t *clock, size_t first, struct metrics *out) {
  if (json_integer_value(json_object_get(clock, "count")) <= 0) return;
  for (size_t i = 0; i < METRIC_STATISTICS; i++) {
    const json_t *value = json_object_get(clock, statistics[i].key);
    double figure;
    if (!metric_value(value, &figure)) continue;
    out->value[first + i] = figure;
    out->state[first + i] = has_few_samples(clock, statistics[i].key) ? METRIC_FEW : METRIC_KNOWN;
  }
}

static void read_rate(const json_t *value, size_t metric, struct metrics *out) {
  double rate;
  if (!metric_value(value, &rate) || rate <= 0) return;
  out->value[metric] = rate;
  out->state[metric] = METRIC_KNOWN;
}

static void read_operation(const json_t *row, struct metrics *out) {
  const char *name = json_string_value(json_object_get(row, "name"));
  for (size_t i = 0; name && i < OPERATIONS_KNOWN; i++) {
    if (strcmp(operation_names[i].name, name) != 0) continue;
    read_clock(json_object_get(row, "latency"), CLOCK_METRIC(REPORT_CLOCKS + i, 0), out);
    for (size_t rate = 0; rate < OPERATION_RATES; rate++) {
      size_t metric = FIRST_OPERATION_RATE + i * OPERATION_RATES + rate;
      if (is_there(metric)) read_rate(json_object_get(row, operation_rate_names[rate]), metric, out);
    }
  }
}

void metrics_read(const json_t *report, struct metrics *out) {
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < METRIC_RATES; i++)
    read_rate(json_object_get(json_object_get(report, rates[i].part), rates[i].name), i, out);
  const json_t *latency = json_object_get(report, "latency");
  for (int i = 0; i < REPORT_CLOCKS; i++)
    read_clock(json_object_get(latency, report_clock_name((enum report_clock)i)), CLOCK_METRIC((size_t)i, 0), out);
  size_t i;
  json_t *row;
  json_array_foreach(json_object_get(json_object_get(report, "operations"), "table"), i, row) {
    read_operation(row, out);
  }
}
