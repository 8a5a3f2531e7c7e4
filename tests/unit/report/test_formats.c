#include "report/formats.h"
#include "report/read.h"
#include "unit/report/sample.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_has(const char *text, const char *part) {
  if (!strstr(text, part)) print_error("no '%s' in:\n%s\n", part, text);
  assert_non_null(strstr(text, part));
}

static void csv_has_a_row_a_second(void **state) {
  (void)state;
  struct report r = sample_primes();
  char *text = sample_written(report_write_csv, &r);
  assert_string_equal(text,
      "t_s,publishes_scheduled,publishes_attempted,publishes_acked,publishes_rejected,deliveries_first,"
      "connections_established,connections_dropped,ack_count,ack_p50_ns,ack_p99_ns,ack_max_ns,delivery_count,"
      "delivery_p50_ns,delivery_p99_ns,delivery_max_ns,schedule_lag_count,schedule_lag_p50_ns,schedule_lag_p99_ns,"
      "schedule_lag_max_ns\n"
      "0,1000397,1000403,1000409,1000423,1000427,1000429,1000453,1000457,1000507,1000537,1000541,1000547,1000577,"
      "1000579,1000589,1000609,1000619,1000621,1000639\n"
      "1,0,0,0,0,0,0,0,0,,,,0,,,,0,,,\n");
  free(text);
  report_free(&r);
}

static void json_lines_are_seconds_and_a_summary(void **state) {
  (void)state;
  struct report r = sample_primes();
  char *text = sample_written(report_write_jsonl, &r), *rest = NULL;
  const char *line = strtok_r(text, "\n", &rest);
  json_t *first = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
  json_t *second = json_loads(strtok_r(NULL, "\n", &rest), JSON_REJECT_DUPLICATES, NULL);
  json_t *last = json_loads(strtok_r(NULL, "\n", &rest), JSON_REJECT_DUPLICATES, NULL);
  assert_null(strtok_r(NULL, "\n", &rest));
  assert_string_equal(json_string_value(json_object_get(first, "type")), "second");
  assert_int_equal(json_integer_value(json_object_get(first, "acked")), 1000409);
  assert_int_equal(json_integer_value(json_object_get(json_object_get(first, "ack"), "p99_ns")), 1000537);
  assert_int_equal(json_integer_value(json_object_get(second, "t_s")), 1);
  assert_true(json_is_null(json_object_get(second, "ack")));
  assert_string_equal(json_string_value(json_object_get(last, "type")), "summary");
  assert_int_equal(json_integer_value(json_object_get(json_object_get(last, "publishes"), "acked")), 1000121);
  assert_non_null(json_object_get(json_object_get(last, "latency"), "ack"));
  json_decref(first);
  json_decref(second);
  json_decref(last);
  free(text);
  report_free(&r);
}

/* A judged valid run with an objective of each outcome. */
static struct report with_objectives(void) {
  struct report r = sample_valid();
  report_judge(&r);
  r.objectives = 3;
  r.objective[0] = (struct report_objective){"ack.p99<250ms", "ns", 1000000, true, true};
  r.objective[1] = (struct report_objective){"lost<=0.1%", "share", 0.02, true, false};
  r.objective[2] = (struct report_objective){"delivery.p99<1ms", "ns", 0, false, false};
  return r;
}

static void junit_tells_outcomes_apart(void **state) {
  (void)state;
  struct report r = with_objectives();
  char *text = sample_written(report_write_junit, &r);
  assert_has(text, "<testsuite name=\"private\" tests=\"9\" failures=\"1\" errors=\"1\" skipped=\"0\" time=\"10.000\" "
                   "timestamp=\"2026-12-01T10:00:00\" hostname=\"host\">");
  assert_has(text, "<testcase classname=\"private\" name=\"verdict\" time=\"10.000\"/>");
  assert_has(text, "name=\"objective ack.p99&lt;250ms\" time=\"10.000\"/>");
  assert_has(text, "<failure type=\"objective\" message=\"lost&lt;=0.1% is broken: measured 2 %\">");
  assert_has(text, "<error type=\"objective\" message=\"delivery.p99&lt;1ms could not be judged");
  assert_has(text, "name=\"accounting of deliveries\" time=\"10.000\"/>");
  free(text);
  r.measure.deliveries.observed--;
  report_judge(&r);
  text = sample_written(report_write_junit, &r);
  assert_has(text, "failures=\"1\" errors=\"3\"");
  assert_has(text, "<error type=\"invalid\" message=\"measure phase: accounting identity broken");
  assert_has(text, "<error type=\"identity\" message=\"accounting identity broken (a bug in muster): deliveries");
  free(text);
  report_free(&r);
}

static void junit_holds_a_storm_to_its_account(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.workload.storm = true;
  r.storm = (struct report_storm){.lost = 3, .attempts = 4, .returned = 3};
  report_judge(&r);
  char *text = sample_written(report_write_junit, &r);
  assert_has(text, "tests=\"7\" failures=\"0\" errors=\"2\"");
  assert_has(text, "name=\"accounting of the storm\"");
  assert_has(text, "storm attempts 4 is not returned 3 + failed 0");
  free(text);
  codes_add(&r.storm.failed, CAUSE_INTERRUPTED, 1);
  report_judge(&r);
  text = sample_written(report_write_junit, &r);
  assert_has(text, "tests=\"7\" failures=\"0\" errors=\"0\"");
  free(text);
  report_free(&r);
}

static void junit_holds_any_text(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.workload.name = "<&\">'\x01\x1b\xff\xef\xbf\xbf\xc3\xa9";
  r.verdict = VERDICT_INVALID;
  r.reasons = 2;
  snprintf(r.reason[0], sizeof r.reason[0], "%s", "]]> & <b>");
  snprintf(r.reason[1], sizeof r.reason[1], "%s", "</error>");
  char *text = sample_written(report_write_junit, &r);
  assert_has(text, "name=\"&lt;&amp;&quot;&gt;'\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9\"");
  assert_has(text, "message=\"]]&gt; &amp; &lt;b&gt;\">]]&gt; &amp; &lt;b&gt;\n&lt;/error&gt;</error>");
  free(text);
  report_free(&r);
}

static void markdown_is_a_summary(void **state) {
  (void)state;
  struct report r = with_objectives();
  char *text = sample_written(report_write_markdown, &r);
  assert_has(text, "### muster private: an objective is broken\n");
  assert_has(text, "| ack.p99&lt;250ms | 1.000 ms | held |\n");
  assert_has(text, "| lost&lt;=0.1% | 2 % | **broken** |\n");
  assert_has(text, "| delivery.p99&lt;1ms | not measurable | not judged |\n");
  assert_has(text, "| | 1,000 | 1,000 | 1,000 | 0 | 0 |\n");
  assert_has(text, "| ack, ms | 1,000 | 1.000 | 1.000 | 1.000 \\* | 1.000 |\n");
  assert_has(text, "acks/s 100.00, deliveries/s 100.00, fan-out 1.0000\n");
  assert_has(text, "<details><summary>the whole report</summary>\n\n~~~text\nmuster ");
  free(text);
  r.verdict = VERDICT_INVALID;
  r.reasons = 1;
  snprintf(r.reason[0], sizeof r.reason[0], "%s", "a|b\n<script>*x* @someone");
  text = sample_written(report_write_markdown, &r);
  assert_has(text, "### muster private: invalid\n\n- a\\|b?&lt;script>\\*x\\* \\@someone\n");
  free(text);
  report_free(&r);
}

static void a_log_needs_histograms(void **state) {
  (void)state;
  struct report r = sample_valid();
  struct err err = {0};
  char *text = sample_written(report_write_hlog, &r);
  assert_has(text, "#[StartTime: 1796119203.500 (seconds since epoch)");
  assert_has(text, "\nTag=ack,0.000,10.000,1.000,HIST");
  free(text);
  for (int i = 0; i < REPORT_CLOCKS; i++) {
    free(r.clock[i]);
    r.clock[i] = NULL;
  }
  r.summary[CLOCK_ACK] = calloc(1, sizeof *r.summary[CLOCK_ACK]);
  FILE *file = fopen("/dev/null", "w");
  assert_int_equal(report_write_hlog(file, &r, &err), STATUS_USAGE);
  fclose(file);
  assert_has(err.text, "has no histograms (schema version 1)");
  report_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(csv_has_a_row_a_second),
      cmocka_unit_test(json_lines_are_seconds_and_a_summary),
      cmocka_unit_test(junit_tells_outcomes_apart),
      cmocka_unit_test(junit_holds_a_storm_to_its_account),
      cmocka_unit_test(junit_holds_any_text),
      cmocka_unit_test(markdown_is_a_summary),
      cmocka_unit_test(a_log_needs_histograms),
  };
  return cmocka_run_group_tests_name("report.formats", tests, NULL, NULL);
}
