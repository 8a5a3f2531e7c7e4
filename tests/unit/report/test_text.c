#include "report/formats.h"
#include "report/layout.h"
#include "unit/report/sample.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static size_t line_length(const char *at) {
  return strcspn(at, "\n");
}

/* The line that starts with the label. */
static const char *line_of(const char *text, const char *label) {
  for (const char *at = text; *at; at += line_length(at) + (at[line_length(at)] == '\n')) {
    if (strncmp(at, label, strlen(label)) == 0) return at;
  }
  print_error("no line starts with '%s' in:\n%s", label, text);
  fail();
  return NULL;
}

/* The value stands under its name: both end in the same column of the label's table. */
static void assert_under(const char *text, const char *label, const char *name, uint64_t value) {
  const char *names = line_of(text, label);
  const char *found = strstr(names + strlen(label), name);
  assert_non_null(found);
  assert_true(found < names + line_length(names));
  size_t end = (size_t)(found - names) + strlen(name);
  const char *values = names + line_length(names) + 1;
  char expected[32];
  format_count(expected, value);
  size_t len = strlen(expected);
  assert_true(line_length(values) >= end);
  assert_memory_equal(values + end - len, expected, len);
  assert_true(values[end - len - 1] == ' ');
}

static void assert_narrow(const char *text) {
  for (const char *at = text; *at; at += line_length(at) + (at[line_length(at)] == '\n')) {
    size_t columns = 0;
    for (size_t i = 0; i < line_length(at); i++)
      columns += ((unsigned char)at[i] & 0xc0) != 0x80;
    if (columns > PAGE_COLUMNS) print_error("%zu columns: %.*s\n", columns, (int)line_length(at), at);
    assert_true(columns <= PAGE_COLUMNS);
  }
}

static void assert_says(const char *text, const char *part) {
  if (!strstr(text, part)) print_error("'%s' is not in:\n%s", part, text);
  assert_non_null(strstr(text, part));
}

static void every_count_stands_under_its_name(void **state) {
  (void)state;
  struct report r = sample_primes();
  char *text = sample_written(report_write_text, &r);
  assert_under(text, "connections", "attempted", 1000003);
  assert_under(text, "connections", "established", 1000033);
  assert_under(text, "connections", "failed", 1000039);
  assert_under(text, "connections", "dropped", 1000081);
  assert_under(text, "connections", "reconnected", 1000037);
  assert_under(text, "publishes", "scheduled", 1000099);
  assert_under(text, "publishes", "attempted", 1000117);
  assert_under(text, "publishes", "acked", 1000121);
  assert_under(text, "publishes", "rejected", 1000151 + 1000159);
  assert_under(text, "publishes", "timed out", 1000171);
  assert_under(text, "publishes", "unsent", 1000133);
  assert_under(text, "deliveries", "expected", 1000183);
  assert_under(text, "deliveries", "observed", 1000187);
  assert_under(text, "deliveries", "lost", 1000193);
  assert_under(text, "deliveries", "duplicate", 1000199);
  assert_under(text, "deliveries", "reordered", 1000211);
  assert_under(text, "deliveries", "corrupt", 1000213);
  assert_under(text, "deliveries", "unexpected", 1000231);
  assert_under(text, "deliveries", "late", 1000249);
  free(text);
  report_free(&r);
}

static void rates_errors_and_workers_are_named(void **state) {
  (void)state;
  struct report r = sample_primes();
  char *text = sample_written(report_write_text, &r);
  assert_says(text, "LOST 1,000,193 of 1,000,183");
  assert_says(text, "1,000,253 deliveries of publishes whose ACK failed");
  assert_says(text, "1.3125 observed deliveries per acked publish");
  assert_says(text, "acks_per_second 1000651.50");
  assert_says(text, "deliveries_per_second 1000667.50");
  assert_says(text, "without the 1000123 acks and 1000249 deliveries that came after");
  assert_says(text, "attempts_per_second 1000669.50 of 100 asked");
  assert_says(text, "connections_per_second 1000679.50");
  assert_says(text, "1,000,303 warm-up publishes");
  assert_says(text, "failed      1,000,039 of code -1 (connect_refused)");
  assert_says(text, "dropped     1,000,081 of code -13 (reset)");
  assert_says(text, "unsent      1,000,133 of code -11 (blocked)");
  assert_says(text, "rejected    1,000,151 of code 11014 (too many requests)");
  assert_says(text, "rejected    1,000,159 of code 12345 (unknown to muster)");
  assert_says(text, "timed out   1,000,171 of code -8 (no_answer)");
  assert_says(text, " 0   1000333    31.7%    21.1%     1000357      1.000      1.000    976.9 KiB DIED");
  assert_says(text, "- server and generator share the host");
  free(text);
  report_free(&r);
}

static void a_latency_row_keeps_one_unit(void **state) {
  (void)state;
  struct report r = sample_valid();
  histogram_reset(r.clock[CLOCK_ACK]);
  histogram_record_many(r.clock[CLOCK_ACK], 2000000, 100000);
  histogram_record_many(r.clock[CLOCK_ACK], 3000000000, 3);
  char *text = sample_written(report_write_text, &r);
  const char *row = line_of(text, "ack ");
  char line[PAGE_COLUMNS + 2];
  snprintf(line, sizeof line, "%.*s", (int)line_length(row), row);
  assert_says(line, "100,003 ms");
  char p50[16], max[16];
  struct page_unit ms = {"ms", 1e6};
  format_latency(p50, (double)histogram_percentile(r.clock[CLOCK_ACK], 50), ms);
  format_latency(max, 3e9, ms);
  assert_says(line, p50);
  assert_says(line, max);
  free(text);
  report_free(&r);
}

static void a_thin_percentile_is_marked_and_explained(void **state) {
  (void)state;
  struct report r = sample_valid();
  char *text = sample_written(report_write_text, &r);
  const char *row = line_of(text, "ack ");
  size_t marks = 0;
  for (size_t i = 0; i < line_length(row); i++)
    marks += row[i] == '*';
  assert_int_equal(marks, 2); /* 1,000 samples: 10 beyond p99, 1 beyond p99.9, none beyond p99.99 */
  assert_says(text, "* fewer than 10 samples");
  free(text);

  histogram_reset(r.clock[CLOCK_ACK]);
  histogram_reset(r.clock[CLOCK_SCHEDULE_LAG]);
  histogram_record_many(r.clock[CLOCK_ACK], 5000, 1000000);
  histogram_record_many(r.clock[CLOCK_SCHEDULE_LAG], 5000, 1000000);
  text = sample_written(report_write_text, &r);
  assert_null(strchr(text, '*'));
  free(text);
  report_free(&r);
}

static void the_verdict_comes_last(void **state) {
  (void)state;
  struct report r = sample_valid();
  report_judge(&r);
  char *text = sample_written(report_write_text, &r);
  const char *verdict = line_of(text, "verdict");
  assert_string_equal(verdict, "verdict     valid\n");
  free(text);

  r.interrupted = true;
  r.worker[0].died = true;
  report_judge(&r);
  text = sample_written(report_write_text, &r);
  verdict = line_of(text, "verdict");
  assert_says(verdict, "invalid");
  for (uint32_t i = 0; i < r.reasons; i++)
    assert_says(verdict, r.reason[i]);
  free(text);
  report_free(&r);
}

static void never_wider_than_the_page(void **state) {
  (void)state;
  struct report r = sample_primes();
  memset(r.target.url, 'x', sizeof r.target.url - 1);
  snprintf(r.target.storage, sizeof r.target.storage, "%0120d", 7);
  for (size_t i = 0; i + 3 < sizeof r.target.server_version; i += 2)
    memcpy(r.target.server_version + i, "\xc3\xa9", 3);
  r.measure.deliveries.expected = r.measure.deliveries.observed = r.measure.deliveries.late = UINT64_MAX;
  r.measure.deliveries.duplicate = r.measure.deliveries.reordered = UINT64_MAX;
  r.limitations[1] = "a sentence of more than one line: the server, its database and the generator share one machine, "
                     "so that each of them takes time from the others, and the figures are those of all together";
  r.workload.environment_label = "label";
  histogram_record_many(r.clock[CLOCK_ACK], HISTOGRAM_MAX_NS + 1, 3);
  for (int i = 0; i < REPORT_CLOCKS; i++) {
    if (!r.clock[i]) r.clock[i] = sample_histogram(INT64_C(1) << (2 * i + 10), (uint64_t)i * 100000000);
  }
  report_judge(&r);
  char *text = sample_written(report_write_text, &r);
  assert_narrow(text);
  for (int i = 0; i < REPORT_CLOCKS; i++)
    assert_non_null(line_of(text, report_clock_name((enum report_clock)i)));
  assert_says(text, "18,446,744,073,709,551,615");
  free(text);
  report_free(&r);
}

static void control_characters_do_not_reach_the_terminal(void **state) {
  (void)state;
  struct report r = sample_valid();
  snprintf(r.target.server_version, sizeof r.target.server_version, "evil\x1b[2J\xc2\x9b\nname");
  char *text = sample_written(report_write_text, &r);
  assert_null(strchr(text, '\x1b'));
  assert_null(strstr(text, "\xc2\x9b"));
  assert_says(text, "evil?[2J???name");
  free(text);
  report_free(&r);
}

static void options_of_the_protocol_are_told(void **state) {
  (void)state;
  struct report r = sample_valid();
  facts_add(&r.workload.options, "mqtt-version", "3.1.1");
  facts_add_number(&r.workload.options, "qos", 2);
  facts_add(&r.workload.target_options, "ack", "flush");
  char *text = sample_written(report_write_text, &r), *markdown = sample_written(report_write_markdown, &r);
  assert_says(text, "\n            with mqtt-version 3.1.1, qos 2, ack flush\n");
  assert_says(markdown, "\njuggle with mqtt-version 3.1.1, qos 2, ack flush\n");
  free(text);
  free(markdown);
  report_free(&r);
}

static void a_protocol_without_acks_has_no_ack_rate(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.has_acks = false;
  r.measure.publishes.acked = 0;
  report_judge(&r);
  char *text = sample_written(report_write_text, &r);
  assert_null(strstr(text, "acks_per_second"));
  assert_says(text, "per attempted publish");
  free(text);
  report_free(&r);
}

static void a_full_disk_is_an_error(void **state) {
  (void)state;
  struct report r = sample_valid();
  FILE *full = fopen("/dev/full", "w");
  assert_non_null(full);
  struct err err = {0};
  assert_int_equal(report_write_text(full, &r, &err), STATUS_IO);
  assert_says(err.text, "No space left");
  fclose(full);
  report_free(&r);
}

static void numbers_are_grouped(void **state) {
  (void)state;
  static const struct {
    uint64_t value;
    const char *text;
  } cases[] = {{0, "0"}, {999, "999"}, {1000, "1,000"}, {123456, "123,456"}, {1234567, "1,234,567"},
      {UINT64_MAX, "18,446,744,073,709,551,615"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[32];
    format_count(text, cases[i].value);
    assert_string_equal(text, cases[i].text);
  }
}

static void latencies_fit_their_column(void **state) {
  (void)state;
  for (int64_t typical = 1; typical < HISTOGRAM_MAX_NS; typical *= 7) {
    for (int64_t max = typical; max <= HISTOGRAM_MAX_NS; max *= 3) {
      char text[16];
      format_latency(text, (double)max, page_unit_for(typical, max));
      assert_true(strlen(text) <= 8);
      assert_true(strtod(text, NULL) > 0 || typical < 1000);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_count_stands_under_its_name),
      cmocka_unit_test(rates_errors_and_workers_are_named),
      cmocka_unit_test(a_latency_row_keeps_one_unit),
      cmocka_unit_test(a_thin_percentile_is_marked_and_explained),
      cmocka_unit_test(the_verdict_comes_last),
      cmocka_unit_test(never_wider_than_the_page),
      cmocka_unit_test(control_characters_do_not_reach_the_terminal),
      cmocka_unit_test(options_of_the_protocol_are_told),
      cmocka_unit_test(a_protocol_without_acks_has_no_ack_rate),
      cmocka_unit_test(a_full_disk_is_an_error),
      cmocka_unit_test(numbers_are_grouped),
      cmocka_unit_test(latencies_fit_their_column),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
