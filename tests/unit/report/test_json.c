#include "report/json_writer.h"
#include "unit/report/sample.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static json_t *parsed(const struct report *r) {
  char *text = sample_written(report_write_json, r);
  json_error_t error;
  json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  if (!root) print_error("%s at line %d:\n%s", error.text, error.line, text);
  assert_non_null(root);
  assert_true(text[strlen(text) - 1] == '\n');
  free(text);
  return root;
}

/* "deliveries.lost", "series.ack.count.0" */
static json_t *at(json_t *root, const char *path) {
  char part[64];
  json_t *value = root;
  for (const char *from = path; value && *from;) {
    size_t len = strcspn(from, ".");
    snprintf(part, sizeof part, "%.*s", (int)len, from);
    value =
        json_is_array(value) ? json_array_get(value, (size_t)strtoul(part, NULL, 10)) : json_object_get(value, part);
    from += len + (from[len] == '.');
  }
  if (!value) print_error("no %s\n", path);
  assert_non_null(value);
  return value;
}

static void assert_number(json_t *root, const char *path, double expected) {
  json_t *value = at(root, path);
  assert_true(json_is_number(value));
  if (json_number_value(value) != expected) print_error("%s is %.17g\n", path, json_number_value(value));
  assert_true(json_number_value(value) == expected);
}

static void assert_text(json_t *root, const char *path, const char *expected) {
  assert_true(json_is_string(at(root, path)));
  assert_string_equal(json_string_value(at(root, path)), expected);
}

static void every_number_stands_at_its_key(void **state) {
  (void)state;
  static const struct {
    const char *path;
    double value;
  } cases[] = {
      {"schema_version", REPORT_SCHEMA_VERSION},
      {"connections.attempted", 1000003},
      {"connections.established", 1000033},
      {"connections.reconnected", 1000037},
      {"connections.failed", 1000039},
      {"connections.failed_by_code.0.code", CAUSE_CONNECT_REFUSED},
      {"connections.failed_by_code.0.count", 1000039},
      {"connections.dropped", 1000081},
      {"connections.dropped_by_code.0.code", CAUSE_RESET},
      {"publishes.scheduled", 1000099},
      {"publishes.attempted", 1000117},
      {"publishes.acked", 1000121},
      {"publishes.acked_late", 1000123},
      {"publishes.unsent", 1000133},
      {"publishes.unsent_by_code.0.count", 1000133},
      {"publishes.rejected", 1000151 + 1000159},
      {"publishes.rejected_by_code.0.code", 11014},
      {"publishes.rejected_by_code.0.count", 1000151},
      {"publishes.rejected_by_code.1.count", 1000159},
      {"publishes.timed_out", 1000171},
      {"deliveries.expected", 1000183},
      {"deliveries.observed", 1000187},
      {"deliveries.lost", 1000193},
      {"deliveries.duplicate", 1000199},
      {"deliveries.overlap", 1000201},
      {"deliveries.reordered", 1000211},
      {"deliveries.corrupt", 1000213},
      {"deliveries.unexpected", 1000231},
      {"deliveries.late", 1000249},
      {"deliveries.unacked_delivered", 1000253},
      {"bytes.sent", 1000273},
      {"bytes.received", 1000289},
      {"warmup.publishes.scheduled", 1000291},
      {"warmup.publishes.attempted", 1000303},
      {"warmup.deliveries.observed", 1000313},
      {"workers.0.clients", 1000333},
      {"workers.0.busy_share", 0.317},
      {"workers.0.cpu_share", 0.211},
      {"workers.0.clock_gaps", 1000357},
      {"workers.0.clock_gap_ns", 1000367},
      {"workers.0.longest_gap_ns", 1000381},
      {"workers.0.rss_bytes", 1000393},
      {"workers.0.nice", -7},
      {"observed.0.interval_s", 1},
      {"observed.0.rows.0.0", -0.5},
      {"observed.0.rows.1.1", 0.25},
      {"observed.0.rows.2.2", 1000695},
      {"series.rows", 2},
      {"series.scheduled.0", 1000397},
      {"series.attempted.0", 1000403},
      {"series.acked.0", 1000409},
      {"series.rejected.0", 1000423},
      {"series.delivered.0", 1000427},
      {"series.established.0", 1000429},
      {"series.dropped.0", 1000453},
      {"series.ack.count.0", 1000457},
      {"series.ack.p50_ns.0", 1000507},
      {"series.ack.p99_ns.0", 1000537},
      {"series.ack.max_ns.0", 1000541},
      {"series.delivery.count.0", 1000547},
      {"series.delivery.p50_ns.0", 1000577},
      {"series.delivery.p99_ns.0", 1000579},
      {"series.delivery.max_ns.0", 1000589},
      {"series.schedule_lag.count.0", 1000609},
      {"series.schedule_lag.p50_ns.0", 1000619},
      {"series.schedule_lag.p99_ns.0", 1000621},
      {"series.schedule_lag.max_ns.0", 1000639},
      {"fan_out", 1.3125},
      {"rates.asked_publishes_per_second", 100},
      {"rates.acks_per_second", 1000651.5},
      {"rates.deliveries_per_second", 1000667.5},
      {"rates.attempts_per_second", 1000669.5},
      {"rates.connections_per_second", 1000679.5},
      {"phases.setup_s", 0.5},
      {"phases.connect_s", 0.25},
      {"phases.warmup_s", 2},
      {"phases.measure_s", 10},
      {"phases.grace_s", 0.125},
      {"verdict.bounds.schedule_lag_p99_ns", VERDICT_LAG_P99_NS},
      {"verdict.bounds.worker_busy_share", VERDICT_BUSY_SHARE},
      {"environment.memory_bytes", 1 << 30},
      {"environment.nofile_soft", 1024},
      {"environment.nofile_hard", 4096},
  };
  struct report r = sample_primes();
  json_t *root = parsed(&r);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_number(root, cases[i].path, cases[i].value);
  assert_text(root, "connections.failed_by_code.0.name", "connect_refused");
  assert_text(root, "publishes.rejected_by_code.0.name", "too many requests");
  assert_true(json_is_null(at(root, "publishes.rejected_by_code.1.name")));
  assert_true(json_is_null(at(root, "series.ack.p99_ns.1")));
  assert_true(json_is_true(at(root, "workers.0.died")));
  assert_text(root, "observed.0.source", "pid:7");
  assert_text(root, "observed.0.role", "server");
  assert_text(root, "observed.0.columns.1", "rss_bytes");
  assert_true(json_is_null(at(root, "observed.0.rows.0.1")));
  json_decref(root);
  report_free(&r);
}

static void the_whole_workload_is_there(void **state) {
  (void)state;
  static const struct {
    const char *path;
    double value;
  } cases[] = {
      {"workload.clients", 100003},
      {"workload.senders", 100019},
      {"workload.rate_per_second", 100043.25},
      {"workload.warmup_s", 1.003},
      {"workload.duration_s", 1.009},
      {"workload.delivery_grace_s", 1.013},
      {"workload.setup_deadline_s", 1.019},
      {"workload.connect_deadline_s", 1.021},
      {"workload.ack_timeout_s", 1.031},
      {"workload.teardown_deadline_s", 1.033},
      {"workload.payload_bytes", 100049},
      {"workload.connect_concurrency", 100057},
      {"workload.setup_concurrency", 100069},
      {"workload.workers", 100103},
      {"workload.push_window", 100109},
  };
  struct report r = sample_valid();
  struct workload *l = &r.workload;
  l->clients = 100003;
  l->senders = 100019;
  l->rate_per_sec = 100043.25;
  l->warmup_ns = 1003000000;
  l->duration_ns = 1009000000;
  l->grace_ns = 1013000000;
  l->setup_deadline_ns = 1019000000;
  l->connect_deadline_ns = 1021000000;
  l->ack_timeout_ns = 1031000000;
  l->teardown_deadline_ns = 1033000000;
  l->payload_bytes = 100049;
  l->connect_concurrency = 100057;
  l->setup_concurrency = 100069;
  l->workers = 100103;
  l->push_window = 100109;
  l->seed = UINT64_MAX;
  l->environment_label = "lab";
  l->database_label = "db";
  json_t *root = parsed(&r);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    assert_number(root, cases[i].path, cases[i].value);
  assert_text(root, "workload.seed", "18446744073709551615");
  assert_text(root, "workload.arrivals", "constant");
  assert_text(root, "workload.topology", "ring");
  assert_text(root, "workload.environment_label", "lab");
  assert_text(root, "workload.database_label", "db");
  assert_text(root, "workload.rate_limits", "off");
  assert_true(json_is_null(at(root, "workload.target")));
  assert_number(root, "comparability.clients", 100003);
  assert_number(root, "comparability.payload_bytes", 100049);
  assert_text(root, "comparability.persistence", "SQLite");
  json_decref(root);
  report_free(&r);
}

static void latency_objects_hold_all_percentiles(void **state) {
  (void)state;
  struct report r = sample_valid();
  struct histogram *h = r.clock[CLOCK_ACK];
  histogram_reset(h);
  for (int64_t i = 1; i <= 5000; i++)
    histogram_record(h, i * 1000003);
  histogram_record(h, -1);
  histogram_record(h, HISTOGRAM_MAX_NS + 1);
  json_t *root = parsed(&r);
  assert_number(root, "latency.ack.count", 5001);
  assert_number(root, "latency.ack.negative", 1);
  assert_number(root, "latency.ack.overflow", 1);
  assert_number(root, "latency.ack.min_ns", 1000003);
  assert_number(root, "latency.ack.p50_ns", (double)histogram_percentile(h, 50));
  assert_number(root, "latency.ack.p75_ns", (double)histogram_percentile(h, 75));
  assert_number(root, "latency.ack.p90_ns", (double)histogram_percentile(h, 90));
  assert_number(root, "latency.ack.p95_ns", (double)histogram_percentile(h, 95));
  assert_number(root, "latency.ack.p99_ns", (double)histogram_percentile(h, 99));
  assert_number(root, "latency.ack.p99_9_ns", (double)histogram_percentile(h, 99.9));
  assert_number(root, "latency.ack.p99_99_ns", (double)histogram_percentile(h, 99.99));
  assert_number(root, "latency.ack.max_ns", (double)h->max_ns);
  assert_int_equal(json_array_size(at(root, "latency.ack.few_samples")), 2);
  assert_text(root, "latency.ack.few_samples.0", "p99_9_ns");
  assert_text(root, "latency.ack.few_samples.1", "p99_99_ns");
  assert_null(json_object_get(at(root, "latency"), "delivery"));
  json_decref(root);
  report_free(&r);
}

static void the_verdict_says_why(void **state) {
  (void)state;
  struct report r = sample_valid();
  report_judge(&r);
  json_t *root = parsed(&r);
  assert_text(root, "verdict.result", "valid");
  assert_int_equal(json_array_size(at(root, "verdict.reasons")), 0);
  json_decref(root);
  r.interrupted = true;
  report_judge(&r);
  root = parsed(&r);
  assert_text(root, "verdict.result", "invalid");
  assert_text(root, "verdict.reasons.0", r.reason[0]);
  assert_true(json_is_true(at(root, "phases.interrupted")));
  json_decref(root);
  report_free(&r);
}

static void codes_beyond_the_table_are_counted(void **state) {
  (void)state;
  struct report r = sample_valid();
  for (int32_t code = 1; code <= CODES_MAX + 3; code++)
    codes_add(&r.measure.publishes.rejected, code, 10);
  json_t *root = parsed(&r);
  json_t *list = at(root, "publishes.rejected_by_code");
  double total = 0;
  size_t i;
  json_t *entry;
  json_array_foreach(list, i, entry) total += json_number_value(json_object_get(entry, "count"));
  assert_true(total == 10 * (CODES_MAX + 3));
  assert_true(json_is_null(json_object_get(json_array_get(list, json_array_size(list) - 1), "code")));
  json_decref(root);
  report_free(&r);
}

static void any_bytes_become_valid_json(void **state) {
  (void)state;
  struct report r = sample_valid();
  snprintf(r.target.server_version, sizeof r.target.server_version, "a\"b\\c\n\x01\xff\xc3\xa9\xed\xa0\x80z");
  r.fan_out = NAN;
  json_t *root = parsed(&r);
  assert_text(root, "target.server_version", "a\"b\\c\n\x01\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
  assert_true(json_is_null(at(root, "fan_out")));
  json_decref(root);
  report_free(&r);
}

static void doubles_survive(void **state) {
  (void)state;
  static const double values[] = {0, 0.1, 1.0 / 3, 1e300, 123456789.123456789, 200};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    struct json_writer w = {.file = file};
    json_put_double(&w, NULL, values[i]);
    fclose(file);
    assert_true(strtod(text, NULL) == values[i]);
    free(text);
  }
}

static void a_full_disk_is_an_error(void **state) {
  (void)state;
  struct report r = sample_valid();
  FILE *full = fopen("/dev/full", "w");
  assert_non_null(full);
  struct err err = {0};
  assert_int_equal(report_write_json(full, &r, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "No space left"));
  fclose(full);
  report_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_number_stands_at_its_key),
      cmocka_unit_test(the_whole_workload_is_there),
      cmocka_unit_test(latency_objects_hold_all_percentiles),
      cmocka_unit_test(the_verdict_says_why),
      cmocka_unit_test(codes_beyond_the_table_are_counted),
      cmocka_unit_test(any_bytes_become_valid_json),
      cmocka_unit_test(doubles_survive),
      cmocka_unit_test(a_full_disk_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
