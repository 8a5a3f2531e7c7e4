#include "report/formats.h"
#include "report/read.h"
#include "unit/report/sample.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

static enum status read_text(const char *text, struct report *out, struct err *err) {
  struct document document;
  enum status status = document_parse("a.json", text, strlen(text), &document, err);
  if (status == STATUS_OK) status = report_from_document(&document, out, err);
  document_free(&document);
  return status;
}

/* Written, read and written again is the same. */
static void assert_same_json(const struct report *report) {
  struct err err = {0};
  struct report back = {0};
  char *text = sample_written(report_write_json, report);
  if (read_text(text, &back, &err) != STATUS_OK) print_error("%s\n", err.text);
  assert_int_equal(err.status, STATUS_OK);
  char *again = sample_written(report_write_json, &back);
  assert_string_equal(text, again);
  free(text);
  free(again);
  report_free(&back);
}

static void assert_round_trip(const struct report *report) {
  struct err err = {0};
  struct report back = {0};
  assert_same_json(report);
  char *text = sample_written(report_write_json, report);
  assert_int_equal(read_text(text, &back, &err), STATUS_OK);
  free(text);
  char *page = sample_written(report_write_text, report), *page_again = sample_written(report_write_text, &back);
  assert_string_equal(page, page_again);
  free(page);
  free(page_again);
  report_free(&back);
}

static void reports_come_back_byte_for_byte(void **state) {
  (void)state;
  struct report r = sample_valid();
  assert_round_trip(&r);
  report_judge(&r);
  assert_round_trip(&r);
  histogram_reset(r.clock[CLOCK_ACK]);
  assert_round_trip(&r);
  for (int64_t i = 1; i <= 5000; i++)
    histogram_record(r.clock[CLOCK_ACK], i * 1000003);
  histogram_record(r.clock[CLOCK_ACK], 0);
  histogram_record(r.clock[CLOCK_ACK], -1);
  histogram_record(r.clock[CLOCK_ACK], HISTOGRAM_MAX_NS + 1);
  assert_round_trip(&r);
  report_free(&r);
  r = sample_primes();
  codes_add(&r.measure.publishes.rejected, -77, 1000691);
  r.measure.publishes.rejected.others = 1000697;
  report_judge(&r);
  assert_round_trip(&r);
  report_free(&r);
}

static void every_shape_of_a_run_comes_back(void **state) {
  (void)state;
  static const char *const counters[] = {"redis_receivers", NULL};
  struct report r = sample_valid();
  struct workload *l = &r.workload;
  r.has_acks = false;
  l->target = l->tls_ca_file = l->origin = l->app_key = l->api_url = "a \"text\"";
  l->user = l->tls_certificate_file = l->tls_key_file = l->operations = "another";
  facts_add(&l->options, "topic-prefix", "a/\"b\"");
  facts_add_number(&l->options, "qos", 2);
  facts_add(&l->target_options, "ack", "flush");
  facts_add_number(&l->key, "qos", 2);
  l->seed = UINT64_MAX;
  r.server_counters = counters;
  r.measure.extra[0] = 1000721;
  l->topology = TOPOLOGY_GROUPS;
  l->groups = 3;
  l->load = LOAD_CLOSED;
  l->outstanding = 4;
  l->publishes = 5;
  l->max_rate_per_sec = 6.5;
  assert_round_trip(&r);
  l->load = LOAD_ROUNDS;
  l->rounds = 7;
  l->interval_ns = 33333333;
  l->publishes = 0;
  assert_round_trip(&r);
  l->topology = TOPOLOGY_STAR;
  l->senders = 4;
  l->backlog = true;
  l->catch_up_deadline_ns = 1234567891;
  r.backlog = (struct report_backlog){.returned = 3, .complete = 2, .read_ns = 987654321};
  assert_round_trip(&r);
  l->target_addresses = "127.0.0.1-127.0.0.4";
  l->storm = true;
  l->storm_at_ns = 5;
  l->backoff_first_ns = 100000001;
  l->backoff_jitter = 0.3;
  r.storm = (struct report_storm){
      .lost = 9, .returned = 9, .attempts = 11, .first_lost_ns = 1234, .last_returned_ns = 1234567890123};
  codes_add(&r.storm.failed, 11014, 2);
  assert_round_trip(&r);
  l->storm_by_server = true;
  assert_round_trip(&r);
  l->load = LOAD_OPEN;
  l->arrivals = ARRIVALS_POISSON;
  l->steps = 2;
  l->step[0] = (struct rate_segment){1000000001, 50, 50};
  l->step[1] = (struct rate_segment){2000000003, 0.1 + 0.2, 0.1 + 0.2};
  r.environment.nofile_soft = r.environment.nofile_hard = RLIM_INFINITY;
  r.environment.cgroup_cpus = 1.5;
  r.environment.cgroup_memory_bytes = 1 << 29;
  r.has_acks = true;
  r.server_cpu_s = 1.0 / 3;
  l->send_cost_ns = 12345;
  r.worker[0].private_bytes = 5000;
  r.worker[0].private_before_bytes = 4000;
  r.memory = (struct report_memory){1, 2, 3, 4};
  r.ended_by = ENDED_BY_COUNT;
  assert_round_trip(&r);
  l->environment_label = "\xff no UTF-8";
  assert_same_json(&r);
  report_free(&r);
}

static json_t *parsed(const struct report *report) {
  char *text = sample_written(report_write_json, report);
  json_t *root = json_loads(text, 0, NULL);
  assert_non_null(root);
  free(text);
  return root;
}

static enum status read_json(json_t *root, struct report *out, struct err *err) {
  char *text = json_dumps(root, JSON_REAL_PRECISION(17));
  enum status status = read_text(text, out, err);
  free(text);
  return status;
}

static void version_1_keeps_its_percentiles(void **state) {
  (void)state;
  struct report r = sample_valid(), back = {0};
  struct err err = {0};
  json_t *root = parsed(&r), *clock;
  const char *name;
  json_object_set_new(root, "schema_version", json_integer(1));
  json_object_foreach(json_object_get(root, "latency"), name, clock) {
    json_object_del(clock, "histogram");
  }
  assert_int_equal(read_json(root, &back, &err), STATUS_OK);
  assert_null(back.clock[CLOCK_ACK]);
  char *page = sample_written(report_write_text, &r), *page_again = sample_written(report_write_text, &back);
  assert_string_equal(page, page_again);
  free(page);
  free(page_again);
  assert_round_trip(&back);
  report_free(&back);
  report_free(&r);
  json_decref(root);
}

/* Before there was overlap, late ones that nobody expected counted too: no identity is broken by them. */
static void older_late_ones_break_no_identity(void **state) {
  (void)state;
  struct report r = sample_valid(), back = {0};
  struct err err = {0};
  r.measure.deliveries.late = r.measure.deliveries.observed + 7;
  json_t *root = parsed(&r);
  assert_int_equal(read_json(root, &back, &err), STATUS_OK);
  assert_int_equal(tally_check_deliveries(&back.measure, back.has_acks, &err), STATUS_PROTOCOL);
  report_free(&back);
  assert_int_equal(json_object_del(json_object_get(root, "deliveries"), "overlap"), 0);
  err = (struct err){0};
  assert_int_equal(read_json(root, &back, &err), STATUS_OK);
  assert_int_equal(tally_check_deliveries(&back.measure, back.has_acks, &err), STATUS_OK);
  assert_int_equal(back.measure.deliveries.late, r.measure.deliveries.late);
  char *junit = sample_written(report_write_junit, &back);
  assert_null(strstr(junit, "accounting identity broken"));
  free(junit);
  assert_same_json(&back); /* still without it */
  report_free(&back);
  report_free(&r);
  json_decref(root);
}

static void unknown_keys_do_no_harm(void **state) {
  (void)state;
  struct report r = sample_valid(), back = {0};
  struct err err = {0};
  json_t *root = parsed(&r);
  json_object_set_new(root, "later", json_pack("{s:[i]}", "x", 1));
  json_object_set_new(json_object_get(root, "publishes"), "later", json_null());
  assert_int_equal(read_json(root, &back, &err), STATUS_OK);
  report_free(&back);
  report_free(&r);
  json_decref(root);
}

/* The value at "a.b.0" is replaced; NULL: removed. */
static void put(json_t *root, const char *path, json_t *value) {
  char part[64];
  json_t *at = root;
  const char *from = path;
  for (;;) {
    size_t len = strcspn(from, ".");
    snprintf(part, sizeof part, "%.*s", (int)len, from);
    if (!from[len]) break;
    at = json_is_array(at) ? json_array_get(at, strtoul(part, NULL, 10)) : json_object_get(at, part);
    assert_non_null(at);
    from += len + 1;
  }
  if (!value) {
    assert_int_equal(json_object_del(at, part), 0);
  } else if (json_is_array(at)) {
    assert_int_equal(json_array_set_new(at, strtoul(part, NULL, 10), value), 0);
  } else {
    assert_int_equal(json_object_set_new(at, part, value), 0);
  }
}

static void what_is_wrong_is_named(void **state) {
  (void)state;
  static const struct {
    const char *path, *json, *says;
  } cases[] = {
      {"schema_version", "3", "a.json: schema_version: the report has version 3 and this muster reads 1 to 2"},
      {"schema_version", "0", "schema_version: a whole number from 1"},
      {"schema_version", "\"2\"", "schema_version: a whole number"},
      {"run_id", "17", "a.json: run_id: a text is expected here"},
      {"publishes.acked", "-1", "a.json: publishes.acked: a whole number from 0"},
      {"publishes.acked", "1.5", "publishes.acked: a whole number from 0"},
      {"publishes.acked", NULL, "publishes.acked: is missing"},
      {"publishes.rejected", "1", "publishes.rejected: is not the sum of rejected_by_code"},
      {"workload.clients", "4294967296", "workload.clients: a whole number from 0 to 4294967295"},
      {"workload.topology", "\"moebius\"", "workload.topology: one of ring, pairs, star"},
      {"workload.warmup_s", "1e12", "workload.warmup_s: at most 1e+09 seconds"},
      {"workload.seed", "\"-7\"", "workload.seed: a number in a text"},
      {"workload.obfuscate", "1", "workload.obfuscate: true or false"},
      {"workload", "[]", "workload: an object is expected here"},
      {"measure_started_at", "{}", "measure_started_at: a text"},
      {"phases.measure_s", "-1", "phases.measure_s: a number from 0 to 1e+18"},
      {"phases.measure_s", "1e300", "phases.measure_s: a number from 0 to 1e+18"},
      {"verdict.reasons", "{}", "verdict.reasons: a list is expected here"},
      {"verdict.reasons", "[\"\",1]", "verdict.reasons[1]: a text"},
      {"verdict.reasons", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "verdict.reasons: has 17 entries, more than the 16"},
      {"verdict.result", "\"fine\"", "verdict.result: one of valid, invalid"},
      {"latency.ack.histogram", NULL, "latency.ack.histogram: is missing"},
      {"latency.ack.histogram", "7", "latency.ack.histogram: the base64 text"},
      {"latency.ack.histogram", "\"SGVsbG8=\"", "latency.ack.histogram: not a HdrHistogram V2 text"},
      {"latency.ack.count", "999", "latency.ack.histogram: is not the histogram of the figures beside it"},
      {"latency.ack.max_ns", "999999999", "latency.ack.histogram: is not the histogram"},
      {"latency.ack.mean_ns", "9223372036854775807", "latency.ack: has a mean of centuries"},
      {"latency.ack.p99_ns", "1", "latency.ack.histogram: has other percentiles"},
      {"latency.ack.few_samples", "[\"p1_ns\"]", "latency.ack.few_samples[0]: one of p50_ns"},
      {"series.rows", "3", "series.rows: is not the length of the columns"},
      {"series.acked", "[1]", "series.acked: has 1 entries for 2 rows"},
      {"series.ack.p50_ns.1", "\"x\"", "series.ack.p50_ns[1]: a whole number"},
      {"workers.0.died", "null", "workers[0].died: true or false"},
      {"observed", "[{\"source\":\"a\"}]", "observed[0].role: is missing"},
      {"observed",
          "[{\"source\":\"a\",\"role\":\"other\",\"label\":\"\",\"error\":null,\"interval_s\":1,\"columns\":[\"x\"],"
          "\"rows\":[[0,1],[1]]}]",
          "observed[0].rows[1]: a list of a time and 1 values"},
      {"limitations", "[\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\"]", "limitations: has 12 entries"},
  };
  struct report r = sample_valid(), back = {0};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct err err = {0};
    json_t *root = parsed(&r);
    put(root, cases[i].path, cases[i].json ? json_loads(cases[i].json, JSON_DECODE_ANY, NULL) : NULL);
    assert_int_equal(read_json(root, &back, &err), STATUS_USAGE);
    if (!strstr(err.text, cases[i].says)) print_error("%s: %s\n", cases[i].path, err.text);
    assert_non_null(strstr(err.text, cases[i].says));
    json_decref(root);
  }
  report_free(&r);
}

/* What a page of metrics shows may be any number, as nanoseconds since 1970 are. */
static void observed_values_may_be_large(void **state) {
  (void)state;
  struct report r = sample_valid(), back = {0};
  struct err err = {0};
  json_t *root = parsed(&r);
  put(root, "observed",
      json_loads("[{\"source\":\"a\",\"role\":\"other\",\"label\":\"\",\"error\":null,\"interval_s\":1,"
                 "\"columns\":[\"rss_bytes\",\"cpu_cores\"],\"rows\":[[0,1.8e18,-1e300]]}]",
          0, NULL));
  if (read_json(root, &back, &err) != STATUS_OK) fail_msg("%s", err.text);
  assert_true(back.observed && back.observed->value && back.observed->value[1] == 1.8e18);
  char *text = sample_written(report_write_text, &back);
  free(text);
  json_decref(root);
  report_free(&back);
  report_free(&r);
}

static void assert_refused(const char *text, const char *says) {
  struct report back = {0};
  struct err err = {0};
  assert_int_equal(read_text(text, &back, &err), STATUS_USAGE);
  if (!strstr(err.text, says)) print_error("%s\n", err.text);
  assert_non_null(strstr(err.text, says));
  assert_null(strchr(err.text, '\n'));
}

static void no_json_is_refused_in_one_line(void **state) {
  (void)state;
  struct report r = sample_valid();
  char *text = sample_written(report_write_json, &r);
  text[strlen(text) / 2] = '\0';
  assert_refused(text, "a.json: not JSON, or not whole: ");
  free(text);
  assert_refused("", "not JSON");
  assert_refused("garbage\nof two lines", "not JSON");
  assert_refused("[1]", "not a document of muster");
  assert_refused("{}", "not a document of muster");
  assert_refused("{\"run_id\":1,\"run_id\":2}", "duplicate");
  assert_refused("{\"schema_version\":99999999999999999999,\"run_id\":1}", "too big");
  assert_refused("{\"schema_version\":2,\"run_id\":\"\\u0000\"}", "not JSON");
  assert_refused("{\"schema_version\":7,\"run_id\":1,\"kind\":\"new\"}", "not a document of muster");
  char *deep = calloc(1, 200001);
  memset(deep, '[', 100000);
  assert_refused(deep, "depth");
  free(deep);
  char *crowd = calloc(1, 8000001);
  for (size_t i = 0; i < 8000000; i++)
    crowd[i] = ",[] "[i % 4];
  crowd[0] = '[';
  assert_refused(crowd, "holds more than 2000000 lists");
  free(crowd);
  report_free(&r);
}

static void kinds_are_told_apart(void **state) {
  (void)state;
  static const struct {
    const char *json;
    enum document_kind kind;
  } cases[] = {
      {"{\"schema_version\":2,\"run_id\":\"x\"}", DOCUMENT_RUN},
      {"{\"kind\":\"find\",\"schema_version\":1}", DOCUMENT_FIND},
      {"{\"kind\":\"calibrate\",\"schema_version\":1}", DOCUMENT_CALIBRATE},
      {"{\"document\":\"trials\"}", DOCUMENT_TRIALS},
      {"{\"document\":\"compare\"}", DOCUMENT_COMPARE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct document document;
    struct err err = {0};
    assert_int_equal(document_parse("a.json", cases[i].json, strlen(cases[i].json), &document, &err), STATUS_OK);
    assert_int_equal(document.kind, cases[i].kind);
    assert_string_equal(document.text, cases[i].json);
    document_free(&document);
  }
  assert_refused(cases[1].json, "a.json: is a search, and the report of a run is needed here");
}

static void files_that_cannot_be_read_are_named(void **state) {
  (void)state;
  struct report r;
  struct err err = {0};
  assert_int_equal(report_read_json("/nowhere/x.json", &r, &err), STATUS_USAGE);
  assert_string_equal(err.text, "/nowhere/x.json: cannot open: No such file or directory");
  assert_int_not_equal(report_read_json("/", &r, &err), STATUS_OK);
  assert_int_equal(report_read_json("/dev/zero", &r, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "longer than 32 MiB"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reports_come_back_byte_for_byte),
      cmocka_unit_test(every_shape_of_a_run_comes_back),
      cmocka_unit_test(version_1_keeps_its_percentiles),
      cmocka_unit_test(older_late_ones_break_no_identity),
      cmocka_unit_test(unknown_keys_do_no_harm),
      cmocka_unit_test(what_is_wrong_is_named),
      cmocka_unit_test(observed_values_may_be_large),
      cmocka_unit_test(no_json_is_refused_in_one_line),
      cmocka_unit_test(kinds_are_told_apart),
      cmocka_unit_test(files_that_cannot_be_read_are_named),
  };
  return cmocka_run_group_tests_name("report.read", tests, NULL, NULL);
}
