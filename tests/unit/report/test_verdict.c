#include "unit/report/sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_valid(struct report *r) {
  report_judge(r);
  for (uint32_t i = 0; i < r->reasons; i++)
    print_error("reason: %s\n", r->reason[i]);
  assert_int_equal(r->verdict, VERDICT_VALID);
  assert_int_equal(r->reasons, 0);
  assert_int_equal(report_exit_code(r), 0);
  report_free(r);
}

/* Exactly one reason, which has all the parts, and exit code 3. */
static void assert_invalid(struct report *r, const char *const *parts) {
  report_judge(r);
  for (uint32_t i = 0; i < r->reasons; i++)
    print_message("reason: %s\n", r->reason[i]);
  assert_int_equal(r->verdict, VERDICT_INVALID);
  assert_int_equal(r->reasons, 1);
  for (; *parts; parts++)
    assert_non_null(strstr(r->reason[0], *parts));
  assert_int_equal(report_exit_code(r), 3);
  report_free(r);
}
#define PARTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_clean_run_is_valid(void **state) {
  (void)state;
  struct report r = sample_valid();
  assert_valid(&r);
}

static void rates_use_the_true_window(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.measure_s = 10.05;
  r.measure.deliveries.expected = r.measure.deliveries.observed = 500;
  report_judge(&r);
  assert_true(r.acks_per_second == 1000 / 10.05);
  assert_true(r.attempts_per_second == 1000 / 10.05);
  assert_true(r.deliveries_per_second == 500 / 10.05);
  assert_true(r.connections_per_second == 20 / 0.25);
  assert_true(r.fan_out == 0.5);
  report_free(&r);
}

static void rates_leave_out_what_came_after_the_window(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.measure_s = 10;
  r.measure.publishes.acked_late = 400;
  r.measure.deliveries.late = 300;
  report_judge(&r);
  assert_true(r.acks_per_second == (1000 - 400) / 10.0);
  assert_true(r.deliveries_per_second == (double)(r.measure.deliveries.observed - 300) / 10);
  assert_true(r.attempts_per_second == 1000 / 10.0);
  report_free(&r);
}

static void judging_twice_changes_nothing(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.interrupted = true;
  report_judge(&r);
  assert_invalid(&r, PARTS("interrupted"));
}

static void interruption(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.interrupted = true;
  r.measure_s = 5;
  r.measure.publishes.scheduled = r.measure.publishes.attempted = r.measure.publishes.acked = 500;
  assert_invalid(&r, PARTS("interrupted", "5.00 s"));
}

static void a_phase_that_ended_early(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.measure_s = 9.8;
  assert_invalid(&r, PARTS("9.80 s", "10.00 s"));
}

static void a_dead_worker(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.worker[0].died = true;
  assert_invalid(&r, PARTS("1 of 1", "died"));
}

static void broken_identity_of_the_measure_phase(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.measure.deliveries.observed = 999;
  assert_invalid(&r, PARTS("measure phase", "bug in muster", "1000", "999"));
}

static void broken_identity_of_the_warmup(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.warmup.publishes.scheduled = 77;
  assert_invalid(&r, PARTS("warm-up phase", "bug in muster", "77"));
}

static void clients_that_did_not_connect(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.measure.connections.established = 17;
  codes_add(&r.measure.connections.failed, CAUSE_CONNECT_REFUSED, 3);
  assert_invalid(&r, PARTS("17 of 20", "--allow-partial"));
}

static void a_partial_population_may_be_accepted(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.workload.allow_partial = true;
  r.measure.connections.established = 17;
  codes_add(&r.measure.connections.failed, CAUSE_CONNECT_REFUSED, 3);
  assert_valid(&r);
}

static void dropped_connections(void **state) {
  (void)state;
  struct report r = sample_valid();
  codes_add(&r.measure.connections.dropped, CAUSE_RESET, 2);
  assert_invalid(&r, PARTS("2 of 20", "dropped"));
}

static void a_late_generator(void **state) {
  (void)state;
  struct report r = sample_valid();
  histogram_record_many(r.clock[CLOCK_SCHEDULE_LAG], 12300000, 20);
  assert_invalid(&r, PARTS("schedule_lag p99 12.3 ms", "5 ms", "--rate", "--workers"));
}

static void lag_at_the_bound_is_accepted(void **state) {
  (void)state;
  struct report r = sample_valid();
  histogram_record_many(r.clock[CLOCK_SCHEDULE_LAG], 4900000, 20);
  assert_valid(&r);
}

static void a_busy_worker(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.worker[0].busy_share = 0.934;
  assert_invalid(&r, PARTS("worker 0", "93.4 %", "90 %"));
}

static void a_core_that_was_taken_away(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.worker[0].clock_gap_ns = 600000000;
  assert_invalid(&r, PARTS("worker 0", "0.60 s", "10.00 s", "6.0 %", "5 %"));
}

static void a_rate_that_was_not_reached(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.measure.publishes.attempted = r.measure.publishes.acked = 980;
  codes_add(&r.measure.publishes.unsent, CAUSE_BLOCKED, 20);
  assert_invalid(&r, PARTS("98.00", "100.00", "99 %"));
}

static void ninety_nine_percent_are_enough(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.measure.publishes.attempted = r.measure.publishes.acked = 990;
  codes_add(&r.measure.publishes.unsent, CAUSE_BLOCKED, 10);
  assert_valid(&r);
}

static struct report poisson(uint64_t scheduled, uint64_t attempted) {
  struct report r = sample_valid();
  r.workload.arrivals = ARRIVALS_POISSON;
  r.measure.publishes.scheduled = scheduled;
  r.measure.publishes.attempted = r.measure.publishes.acked = attempted;
  if (scheduled > attempted) codes_add(&r.measure.publishes.unsent, CAUSE_BLOCKED, scheduled - attempted);
  return r;
}

static void poisson_may_fall_short_by_chance(void **state) {
  (void)state;
  struct report r = poisson(900, 900);
  assert_valid(&r);
}

static void poisson_must_not_fall_short_by_more(void **state) {
  (void)state;
  struct report r = poisson(800, 800);
  assert_invalid(&r, PARTS("80.00", "100.00"));
}

static void poisson_must_attempt_what_it_scheduled(void **state) {
  (void)state;
  struct report r = poisson(1100, 1050);
  assert_invalid(&r, PARTS("105.00"));
}

static void nothing_attempted(void **state) {
  (void)state;
  struct report r = sample_valid();
  memset(&r.measure.publishes, 0, sizeof r.measure.publishes);
  memset(&r.measure.deliveries, 0, sizeof r.measure.deliveries);
  assert_invalid(&r, PARTS("no publish was attempted"));
}

static void nothing_acked(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.measure.publishes.acked = 0;
  codes_add(&r.measure.publishes.rejected, 11014, 1000);
  memset(&r.measure.deliveries, 0, sizeof r.measure.deliveries);
  assert_invalid(&r, PARTS("none of 1000", "acked"));
}

static void without_acks_none_are_missed(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.has_acks = false;
  r.measure.publishes.acked = 0;
  report_judge(&r);
  assert_true(r.fan_out == 1);
  assert_valid(&r);
}

static void a_clock_that_ran_backwards(void **state) {
  (void)state;
  struct report r = sample_valid();
  histogram_record(r.clock[CLOCK_ACK], -5);
  assert_invalid(&r, PARTS("ack clock", "1 times"));
}

static void lost_deliveries_are_a_result(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.measure.deliveries.observed = 900;
  r.measure.deliveries.lost = 100;
  assert_valid(&r);
}

static void everything_wrong_at_once_fits(void **state) {
  (void)state;
  struct report r = sample_primes();
  r.interrupted = true;
  r.worker[0].busy_share = 1;
  r.worker[0].clock_gap_ns = 9000000000;
  histogram_record_many(r.clock[CLOCK_SCHEDULE_LAG], 50000000, 5000);
  histogram_record(r.clock[CLOCK_ACK], -1);
  report_judge(&r);
  assert_int_equal(r.verdict, VERDICT_INVALID);
  assert_true(r.reasons >= 8 && r.reasons <= REPORT_REASONS_MAX);
  report_free(&r);
}

static void storms_add_up(void **state) {
  (void)state;
  struct report r = sample_valid();
  r.workload.storm = true;
  r.storm = (struct report_storm){.lost = 3, .attempts = 4, .returned = 3};
  assert_invalid(&r, PARTS("storm attempts 4 is not returned 3 + failed 0"));
  r = sample_valid();
  r.workload.storm = true;
  r.storm = (struct report_storm){.lost = 3, .attempts = 4, .returned = 4};
  assert_invalid(&r, PARTS("storm returned 4 is above lost 3"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_clean_run_is_valid),
      cmocka_unit_test(rates_use_the_true_window),
      cmocka_unit_test(rates_leave_out_what_came_after_the_window),
      cmocka_unit_test(judging_twice_changes_nothing),
      cmocka_unit_test(interruption),
      cmocka_unit_test(a_phase_that_ended_early),
      cmocka_unit_test(a_dead_worker),
      cmocka_unit_test(broken_identity_of_the_measure_phase),
      cmocka_unit_test(broken_identity_of_the_warmup),
      cmocka_unit_test(clients_that_did_not_connect),
      cmocka_unit_test(a_partial_population_may_be_accepted),
      cmocka_unit_test(dropped_connections),
      cmocka_unit_test(a_late_generator),
      cmocka_unit_test(storms_add_up),
      cmocka_unit_test(lag_at_the_bound_is_accepted),
      cmocka_unit_test(a_busy_worker),
      cmocka_unit_test(a_core_that_was_taken_away),
      cmocka_unit_test(a_rate_that_was_not_reached),
      cmocka_unit_test(ninety_nine_percent_are_enough),
      cmocka_unit_test(poisson_may_fall_short_by_chance),
      cmocka_unit_test(poisson_must_not_fall_short_by_more),
      cmocka_unit_test(poisson_must_attempt_what_it_scheduled),
      cmocka_unit_test(nothing_attempted),
      cmocka_unit_test(nothing_acked),
      cmocka_unit_test(without_acks_none_are_missed),
      cmocka_unit_test(a_clock_that_ran_backwards),
      cmocka_unit_test(lost_deliveries_are_a_result),
      cmocka_unit_test(everything_wrong_at_once_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
