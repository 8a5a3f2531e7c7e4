#include "base/clock.h"
#include "load/pacer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct schedule make_of(const struct schedule_plan *plan) {
  struct schedule schedule;
  assert_int_equal(schedule_make(&schedule, plan, NULL), STATUS_OK);
  return schedule;
}

static struct schedule make(enum arrivals arrivals, double rate, uint64_t length_ns, uint64_t seed) {
  struct rate_segment flat = {length_ns, rate, rate};
  struct schedule_plan plan = {.arrivals = arrivals, .segment = &flat, .segments = 1, .seed = seed};
  return make_of(&plan);
}

static void test_constant_counts_are_exact(void **state) {
  (void)state;
  static const struct {
    double rate;
    uint64_t length_ns, slots;
  } cases[] = {
      {200, 30 * NS_PER_SEC, 6000},
      {1, NS_PER_SEC, 1},
      {3, NS_PER_SEC, 3},
      {7, 10 * NS_PER_SEC, 70},
      {1000, NS_PER_MS, 1},
      {1000, NS_PER_MS + 1, 2},
      {0.5, NS_PER_SEC, 1},
      {0.5, 10 * NS_PER_SEC, 5},
      {100000, 60 * NS_PER_SEC, 6000000},
      {100, 0, 0},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct schedule schedule = make(ARRIVALS_CONSTANT, cases[i].rate, cases[i].length_ns, 1);
    assert_int_equal(schedule.slots, cases[i].slots);
    schedule_free(&schedule);
  }
}

static void test_constant_does_not_drift_in_an_hour(void **state) {
  (void)state;
  struct schedule schedule = make(ARRIVALS_CONSTANT, 333, 3600 * NS_PER_SEC, 1);
  assert_int_equal(schedule.slots, 333 * 3600);
  struct pacer pacer;
  pacer_start(&pacer, &schedule, 1, 1, 0);
  for (uint64_t slot = 0; slot < schedule.slots; slot++, pacer_next(&pacer)) {
    assert_int_equal(pacer.slot, slot);
    if (slot % 333 == 0) assert_int_equal(pacer.offset_ns, slot / 333 * NS_PER_SEC);
  }
  assert_int_equal(pacer.offset_ns, UINT64_MAX);
  schedule_free(&schedule);
}

/* Four workers' walks, merged, are one worker's walk: same slots, same times, same senders. */
static void check_workers_agree(enum arrivals arrivals, uint32_t senders) {
  struct schedule schedule = make(arrivals, 5000, 2 * NS_PER_SEC, 42);
  struct pacer one, four[4];
  pacer_start(&one, &schedule, senders, 1, 0);
  for (uint32_t w = 0; w < 4; w++)
    pacer_start(&four[w], &schedule, senders, 4, w);
  uint64_t seen = 0;
  for (; one.slot < schedule.slots; pacer_next(&one), seen++) {
    struct pacer *owner = &four[one.sender % 4];
    assert_int_equal(owner->slot, one.slot);
    assert_int_equal(owner->offset_ns, one.offset_ns);
    assert_int_equal(owner->sender, one.slot % senders);
    assert_int_equal(owner->sequence, one.slot / senders);
    assert_int_equal(schedule_offset_ns(&schedule, one.slot), one.offset_ns);
    pacer_next(owner);
  }
  assert_int_equal(seen, schedule.slots);
  for (uint32_t w = 0; w < 4; w++)
    assert_int_equal(four[w].offset_ns, UINT64_MAX);
  schedule_free(&schedule);
}

static void test_workers_derive_the_same_schedule(void **state) {
  (void)state;
  check_workers_agree(ARRIVALS_CONSTANT, 50);
  check_workers_agree(ARRIVALS_POISSON, 50);
  check_workers_agree(ARRIVALS_POISSON, 3); /* fewer senders than workers: one worker has none */
  check_workers_agree(ARRIVALS_CONSTANT, 1);
}

static void test_poisson_has_the_right_mean_and_variance(void **state) {
  (void)state;
  const double rate = 1000;
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct schedule schedule = make(ARRIVALS_POISSON, rate, 100 * NS_PER_SEC, seed);
    /* The count of a Poisson process: mean and variance are both rate * time. */
    assert_true(fabs((double)schedule.slots - 100000) < 5 * sqrt(100000));
    struct pacer pacer;
    pacer_start(&pacer, &schedule, 1, 1, 0);
    double sum = 0, squares = 0;
    uint64_t before_ns = 0;
    for (; pacer.slot < schedule.slots; pacer_next(&pacer)) {
      assert_true(pacer.offset_ns >= before_ns);
      assert_true(pacer.offset_ns < schedule.length_ns);
      double gap_s = (double)(pacer.offset_ns - before_ns) / 1e9;
      sum += gap_s;
      squares += gap_s * gap_s;
      before_ns = pacer.offset_ns;
    }
    double mean = sum / (double)schedule.slots;
    double variance = squares / (double)schedule.slots - mean * mean;
    assert_true(fabs(mean * rate - 1) < 0.02);
    assert_true(fabs(variance * rate * rate - 1) < 0.05);
    schedule_free(&schedule);
  }
}

static void test_poisson_repeats_by_seed(void **state) {
  (void)state;
  struct schedule a = make(ARRIVALS_POISSON, 500, 4 * NS_PER_SEC, 7);
  struct schedule b = make(ARRIVALS_POISSON, 500, 4 * NS_PER_SEC, 7);
  struct schedule c = make(ARRIVALS_POISSON, 500, 4 * NS_PER_SEC, 8);
  assert_int_equal(a.slots, b.slots);
  uint64_t differing = 0;
  for (uint64_t slot = 0; slot < a.slots; slot++) {
    assert_int_equal(schedule_offset_ns(&a, slot), schedule_offset_ns(&b, slot));
    if (slot < c.slots && schedule_offset_ns(&a, slot) != schedule_offset_ns(&c, slot)) differing++;
  }
  assert_true(differing > a.slots / 2);
  schedule_free(&a);
  schedule_free(&b);
  schedule_free(&c);
}

static void test_senders_get_equal_shares(void **state) {
  (void)state;
  struct schedule schedule = make(ARRIVALS_CONSTANT, 1003, NS_PER_SEC, 1);
  uint32_t count[10] = {0};
  for (uint32_t w = 0; w < 3; w++) {
    struct pacer pacer;
    pacer_start(&pacer, &schedule, 10, 3, w);
    for (; pacer.slot < schedule.slots; pacer_next(&pacer)) {
      assert_int_equal(pacer.sender % 3, w);
      assert_int_equal(pacer.sequence, count[pacer.sender]);
      count[pacer.sender]++;
    }
  }
  for (uint32_t s = 0; s < 10; s++)
    assert_int_equal(count[s], s < 3 ? 101 : 100);
  schedule_free(&schedule);
}

static void test_refuses_endless_schedules(void **state) {
  (void)state;
  struct schedule schedule;
  struct err err;
  struct rate_segment flat = {3600 * NS_PER_SEC, 1e9, 1e9};
  struct schedule_plan plan = {.arrivals = ARRIVALS_CONSTANT, .segment = &flat, .segments = 1, .seed = 1};
  assert_int_equal(schedule_make(&schedule, &plan, &err), STATUS_USAGE);
  plan.arrivals = ARRIVALS_POISSON;
  assert_int_equal(schedule_make(&schedule, &plan, &err), STATUS_USAGE);
}

/* Slots that fall due in [from, to). */
static uint64_t count_between(const struct schedule *schedule, uint64_t from_ns, uint64_t to_ns) {
  uint64_t count = 0;
  for (uint64_t slot = 0; slot < schedule->slots; slot++) {
    uint64_t offset_ns = schedule_offset_ns(schedule, slot);
    count += offset_ns >= from_ns && offset_ns < to_ns;
  }
  return count;
}

static void test_steps_hold_their_rates(void **state) {
  (void)state;
  const struct rate_segment steps[] = {
      {NS_PER_SEC, 1000, 1000}, {2 * NS_PER_SEC, 250, 250}, {500 * NS_PER_MS, 4000, 4000}};
  struct schedule_plan plan = {.arrivals = ARRIVALS_CONSTANT, .segment = steps, .segments = 3};
  struct schedule schedule = make_of(&plan);
  assert_int_equal(schedule.length_ns, 3500 * NS_PER_MS);
  assert_int_equal(schedule.slots, 1000 + 500 + 2000);
  assert_int_equal(count_between(&schedule, 0, NS_PER_SEC), 1000);
  assert_int_equal(count_between(&schedule, NS_PER_SEC, 3 * NS_PER_SEC), 500);
  assert_int_equal(schedule_offset_ns(&schedule, 1), NS_PER_MS);
  assert_int_equal(schedule_offset_ns(&schedule, 1001), NS_PER_SEC + 4 * NS_PER_MS);
  schedule_free(&schedule);
}

/* The integral of the rate says how many are due by any moment. */
static void check_ramp(double from, double to) {
  struct rate_segment ramp = {10 * NS_PER_SEC, from, to};
  struct schedule_plan plan = {.arrivals = ARRIVALS_CONSTANT, .segment = &ramp, .segments = 1};
  struct schedule schedule = make_of(&plan);
  assert_true(fabs((double)schedule.slots - (from + to) * 5) <= 1);
  for (uint64_t second = 1; second <= 10; second++) {
    double t = (double)second;
    double owed = from * t + (to - from) / 10 * t * t / 2;
    assert_true(fabs((double)count_between(&schedule, 0, second * NS_PER_SEC) - owed) <= 1);
  }
  uint64_t before_ns = 0;
  for (uint64_t slot = 1; slot < schedule.slots; slot++) {
    uint64_t offset_ns = schedule_offset_ns(&schedule, slot);
    assert_true(offset_ns > before_ns);
    before_ns = offset_ns;
  }
  schedule_free(&schedule);
}

static void test_ramps_rise_and_fall(void **state) {
  (void)state;
  check_ramp(10, 1000);
  check_ramp(1000, 10);
  check_ramp(500, 500.001);
}

static void test_poisson_follows_the_rate(void **state) {
  (void)state;
  const struct rate_segment steps[] = {{10 * NS_PER_SEC, 1000, 1000}, {10 * NS_PER_SEC, 100, 2000}};
  struct schedule_plan plan = {.arrivals = ARRIVALS_POISSON, .segment = steps, .segments = 2, .seed = 3};
  struct schedule schedule = make_of(&plan);
  double first = (double)count_between(&schedule, 0, 10 * NS_PER_SEC);
  double second = (double)count_between(&schedule, 10 * NS_PER_SEC, 20 * NS_PER_SEC);
  assert_true(fabs(first - 10000) < 5 * sqrt(10000));
  assert_true(fabs(second - 10500) < 5 * sqrt(10500));
  struct pacer pacer;
  pacer_start(&pacer, &schedule, 7, 1, 0);
  for (; pacer.slot < schedule.slots; pacer_next(&pacer))
    assert_int_equal(pacer.offset_ns, schedule_offset_ns(&schedule, pacer.slot));
  schedule_free(&schedule);
}

/* A number cuts a schedule where the slot after the last one would fall due. */
static void test_a_number_ends_a_schedule(void **state) {
  (void)state;
  struct rate_segment flat = {3600 * NS_PER_SEC, 500, 500};
  struct schedule_plan plan = {.segment = &flat, .segments = 1, .seed = 9, .slots_max = 250};
  struct schedule schedule = make_of(&plan);
  assert_int_equal(schedule.slots, 250);
  assert_int_equal(schedule.length_ns, 500 * NS_PER_MS);
  schedule_free(&schedule);
  plan.arrivals = ARRIVALS_POISSON;
  schedule = make_of(&plan);
  assert_int_equal(schedule.slots, 250);
  assert_true(schedule.length_ns > schedule_offset_ns(&schedule, 249));
  struct schedule_plan whole = plan;
  flat.length_ns = 2 * NS_PER_SEC;
  whole.slots_max = 0;
  struct schedule longer = make_of(&whole);
  assert_int_equal(schedule.length_ns, schedule_offset_ns(&longer, 250));
  schedule_free(&longer);
  schedule_free(&schedule);
  plan.slots_max = 100000; /* more than fall due: the segments end it */
  schedule = make_of(&plan);
  assert_int_equal(schedule.length_ns, 2 * NS_PER_SEC);
  assert_true(schedule.slots < 2000);
  schedule_free(&schedule);
}

static void test_no_rate_no_slots(void **state) {
  (void)state;
  struct schedule schedule = make(ARRIVALS_POISSON, 0, NS_PER_SEC, 1);
  assert_int_equal(schedule.slots, 0);
  struct pacer pacer;
  pacer_start(&pacer, &schedule, 5, 1, 0);
  assert_int_equal(pacer.offset_ns, UINT64_MAX);
  schedule_free(&schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_constant_counts_are_exact),
      cmocka_unit_test(test_constant_does_not_drift_in_an_hour),
      cmocka_unit_test(test_workers_derive_the_same_schedule),
      cmocka_unit_test(test_poisson_has_the_right_mean_and_variance),
      cmocka_unit_test(test_poisson_repeats_by_seed),
      cmocka_unit_test(test_senders_get_equal_shares),
      cmocka_unit_test(test_refuses_endless_schedules),
      cmocka_unit_test(test_steps_hold_their_rates),
      cmocka_unit_test(test_ramps_rise_and_fall),
      cmocka_unit_test(test_poisson_follows_the_rate),
      cmocka_unit_test(test_a_number_ends_a_schedule),
      cmocka_unit_test(test_no_rate_no_slots),
  };
  return cmocka_run_group_tests_name("pacer", tests, NULL, NULL);
}
