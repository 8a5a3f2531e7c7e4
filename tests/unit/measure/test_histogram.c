#include "measure/histogram.h"

#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct histogram h, other, third;

static void lays_buckets_as_hdr_histogram(void **state) {
  (void)state;
  /* By hand from lowestDiscernibleValue 1,000, highestTrackableValue 3.6e12, 3 digits. */
  assert_int_equal(HISTOGRAM_COUNTERS, 24576);
  assert_int_equal(histogram_index(0), 0);
  assert_int_equal(histogram_index(511), 0);
  assert_int_equal(histogram_index(512), 1);
  assert_int_equal(histogram_index((INT64_C(2048) << 9) - 1), 2047);
  assert_int_equal(histogram_index(INT64_C(2048) << 9), 2048);
  assert_int_equal(histogram_index((INT64_C(2048) << 9) + 1023), 2048);
  assert_int_equal(histogram_index((INT64_C(4096) << 9) - 1), 3071);
  assert_int_equal(histogram_index(INT64_C(4096) << 9), 3072);
  assert_true(histogram_index(HISTOGRAM_MAX_NS) < HISTOGRAM_COUNTERS);
  assert_int_equal(histogram_index((INT64_C(1) << 42) - 1), HISTOGRAM_COUNTERS - 1);
}

static void covers_the_range_without_gap_or_overlap(void **state) {
  (void)state;
  assert_int_equal(histogram_lowest(0), 0);
  for (uint32_t i = 0; i < HISTOGRAM_COUNTERS; i++) {
    int64_t lowest = histogram_lowest(i);
    int64_t highest = histogram_highest(i);
    assert_int_equal(histogram_index(lowest), i);
    assert_int_equal(histogram_index(highest), i);
    if (i + 1 < HISTOGRAM_COUNTERS) assert_int_equal(histogram_lowest(i + 1), highest + 1);
    int64_t width = highest - lowest + 1;
    assert_true(width == 512 || width * 1000 <= lowest);
  }
}

static int by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a;
  int64_t y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static const double percentiles[] = {0.001, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100};

/* Against the sorted list: the value at the rank, rounded up to the end of its bucket. */
static void compare(int64_t *values, size_t count) {
  histogram_reset(&h);
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    histogram_record(&h, values[i]);
    sum += (double)values[i];
  }
  qsort(values, count, sizeof values[0], by_value);
  assert_int_equal(h.count, count);
  assert_int_equal(h.min_ns, values[0]);
  assert_int_equal(h.max_ns, values[count - 1]);
  assert_int_equal(histogram_percentile(&h, 0), values[0]);
  assert_true(fabs(histogram_mean(&h) - sum / (double)count) <= 1e-9 * sum / (double)count);
  for (size_t i = 0; i < sizeof percentiles / sizeof percentiles[0]; i++) {
    /* Whole numbers of hundred-thousandths, so that the rank is exact: ceil(count * p / 100). */
    uint64_t parts = (uint64_t)llround(percentiles[i] * 1000);
    uint64_t rank = ((uint64_t)count * parts + 99999) / 100000;
    if (rank == 0) rank = 1;
    int64_t exact = values[rank - 1];
    int64_t end = histogram_highest(histogram_index(exact));
    int64_t expected = end < values[count - 1] ? end : values[count - 1];
    int64_t got = histogram_percentile(&h, percentiles[i]);
    assert_int_equal(got, expected);
    assert_true(got >= exact && (double)(got - exact) <= fmax(512, (double)exact * 0.001));
    assert_int_equal(histogram_beyond(&h, percentiles[i]), count - rank);
  }
}

static void agrees_with_sorted_lists(void **state) {
  (void)state;
  static int64_t values[20000];
  struct rng rng;
  rng_seed(&rng, 7);
  for (int round = 0; round < 60; round++) {
    size_t count = 1 + rng_below(&rng, round < 20 ? 30 : 20000);
    for (size_t i = 0; i < count; i++) {
      double u = rng_double(&rng);
      if (round % 3 == 0) values[i] = (int64_t)(u * 5e6);
      if (round % 3 == 1) values[i] = (int64_t)exp(u * log(3.6e12));
      if (round % 3 == 2) values[i] = (int64_t)rng_below(&rng, 4) * 1000000;
    }
    compare(values, count);
  }
}

static void counts_overflow_and_clock_errors(void **state) {
  (void)state;
  histogram_reset(&h);
  histogram_record(&h, HISTOGRAM_MAX_NS);
  histogram_record(&h, HISTOGRAM_MAX_NS + 1);
  histogram_record_many(&h, INT64_MAX, 3);
  histogram_record_many(&h, -1, 2);
  histogram_record_many(&h, 5, 0);
  assert_int_equal(h.count, 5);
  assert_int_equal(h.overflow, 4);
  assert_int_equal(h.negative, 2);
  assert_int_equal(h.min_ns, HISTOGRAM_MAX_NS);
  assert_int_equal(h.max_ns, INT64_MAX);
  assert_int_equal(h.counters[histogram_index(HISTOGRAM_MAX_NS)], 5);
}

static void is_all_zero_while_empty(void **state) {
  (void)state;
  histogram_reset(&h);
  assert_int_equal(histogram_percentile(&h, 50), 0);
  assert_int_equal(histogram_percentile(&h, 100), 0);
  assert_int_equal(histogram_beyond(&h, 50), 0);
  assert_true(histogram_mean(&h) == 0 && histogram_stddev(&h) == 0);
}

static void merges_to_the_same_as_one(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 11);
  histogram_reset(&h);
  histogram_reset(&other);
  histogram_reset(&third);
  for (int i = 0; i < 50000; i++) {
    int64_t value = (int64_t)exp(rng_double(&rng) * 30) - 5; /* some negative, some over the hour */
    histogram_record(i % 3 ? &h : &other, value);
    histogram_record(&third, value);
  }
  histogram_merge(&h, &other);
  assert_true(fabs(h.sum_ns - third.sum_ns) <= 1e-9 * third.sum_ns);
  h.sum_ns = third.sum_ns;
  assert_memory_equal(&h, &third, sizeof h);
  assert_true(third.overflow > 0 && third.negative > 0);

  histogram_reset(&other);
  histogram_merge(&other, &h);
  assert_memory_equal(&other, &h, sizeof h);
  histogram_reset(&other);
  histogram_merge(&h, &other);
  assert_memory_equal(&h, &third, sizeof h);
}

static void clears_without_a_trace(void **state) {
  (void)state;
  histogram_reset(&h);
  histogram_reset(&other);
  histogram_clear(&h);
  assert_memory_equal(&h, &other, sizeof h);
  for (int64_t value = -3; value < INT64_C(1) << 43; value = value * 2 + 7)
    histogram_record(&h, value);
  histogram_clear(&h);
  assert_memory_equal(&h, &other, sizeof h);
}

static void knows_the_spread(void **state) {
  (void)state;
  histogram_reset(&h);
  histogram_record_many(&h, 3000000000, 10);
  assert_true(histogram_stddev(&h) == 0);
  histogram_record_many(&h, 1000000000, 10);
  assert_true(fabs(histogram_stddev(&h) - 1e9) < 1e6);
  assert_true(histogram_mean(&h) == 2e9);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lays_buckets_as_hdr_histogram),
      cmocka_unit_test(covers_the_range_without_gap_or_overlap),
      cmocka_unit_test(agrees_with_sorted_lists),
      cmocka_unit_test(counts_overflow_and_clock_errors),
      cmocka_unit_test(is_all_zero_while_empty),
      cmocka_unit_test(merges_to_the_same_as_one),
      cmocka_unit_test(clears_without_a_trace),
      cmocka_unit_test(knows_the_spread),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
