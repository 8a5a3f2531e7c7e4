#include "measure/series.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T0 (1000 * NS_PER_SEC)

static struct histogram out;

static struct series *make(uint32_t seconds) {
  size_t size = (series_size(seconds) + 63) / 64 * 64;
  void *memory = aligned_alloc(64, size);
  assert_non_null(memory);
  memset(memory, 0, size);
  struct series *series = series_init(memory, seconds);
  series_start(series, T0);
  return series;
}

static uint64_t at(uint32_t second, uint64_t ns) {
  return T0 + second * NS_PER_SEC + ns;
}

static void counts_in_the_right_row(void **state) {
  (void)state;
  struct series *series = make(4);
  series_count(series, SERIES_ACKED, at(0, 0), 1);
  series_count(series, SERIES_ACKED, at(0, NS_PER_SEC - 1), 2);
  series_count(series, SERIES_ACKED, at(1, 0), 4);
  series_count(series, SERIES_DROPPED, at(3, 5), 8);
  series_count(series, SERIES_DROPPED, at(900, 0), 16); /* beyond the last row */
  series_count(series, SERIES_SCHEDULED, T0 - 1, 32);   /* before the first */
  assert_int_equal(series->rows[0][SERIES_ACKED], 3);
  assert_int_equal(series->rows[1][SERIES_ACKED], 4);
  assert_int_equal(series->rows[3][SERIES_DROPPED], 8);
  assert_int_equal(series->rows[0][SERIES_SCHEDULED], 0);
  assert_int_equal(series->rows[0][SERIES_DROPPED], 0);
  free(series);
}

static void has_a_row_even_for_no_seconds(void **state) {
  (void)state;
  struct series *series = make(0);
  series_count(series, SERIES_ACKED, at(0, 7), 1);
  assert_int_equal(series->rows[0][SERIES_ACKED], 1);
  free(series);
}

static void hands_out_each_second_apart(void **state) {
  (void)state;
  struct series *series = make(100);
  for (uint32_t second = 0; second < 30; second++) {
    for (uint32_t i = 0; i <= second; i++)
      series_record(series, SERIES_ACK, at(second, i), (int64_t)second * 1000000);
    series_record(series, SERIES_LAG, at(second, 0), 77);
    histogram_reset(&out);
    assert_true(series_take(series, second, SERIES_ACK, &out));
    assert_int_equal(out.count, second + 1);
    assert_int_equal(out.max_ns, (int64_t)second * 1000000);
    assert_int_equal(out.min_ns, out.max_ns);
    assert_false(series_take(series, second, SERIES_DELIVERY, &out));
    assert_true(series_take(series, second, SERIES_LAG, &out)); /* added to what is there */
    assert_int_equal(out.count, second + 2);
  }
  free(series);
}

static void gives_a_late_reader_nothing_false(void **state) {
  (void)state;
  struct series *series = make(100);
  for (uint32_t second = 0; second < 20; second++)
    series_record(series, SERIES_ACK, at(second, 0), 1000);
  histogram_reset(&out);
  for (uint32_t second = 0; second < 20; second++) {
    assert_int_equal(series_take(series, second, SERIES_ACK, &out), second >= 20 - SERIES_RING);
  }
  assert_int_equal(out.count, SERIES_RING);
  assert_false(series_take(series, 20, SERIES_ACK, &out)); /* not yet written */
  series_record(series, SERIES_ACK, at(3, 0), 1000);       /* its place is taken by second 19 */
  assert_false(series_take(series, 3, SERIES_ACK, &out));
  histogram_reset(&out);
  assert_true(series_take(series, 19, SERIES_ACK, &out));
  assert_int_equal(out.count, 1);
  free(series);
}

static void skipped_seconds_stay_empty(void **state) {
  (void)state;
  struct series *series = make(100);
  series_record(series, SERIES_ACK, at(0, 0), 5);
  series_record(series, SERIES_ACK, at(9, 0), 5);
  histogram_reset(&out);
  assert_true(series_take(series, 0, SERIES_ACK, &out));
  assert_false(series_take(series, 1, SERIES_ACK, &out)); /* its place was taken by second 9 */
  assert_false(series_take(series, 5, SERIES_ACK, &out));
  assert_true(series_take(series, 9, SERIES_ACK, &out));
  free(series);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_in_the_right_row),
      cmocka_unit_test(has_a_row_even_for_no_seconds),
      cmocka_unit_test(hands_out_each_second_apart),
      cmocka_unit_test(gives_a_late_reader_nothing_false),
      cmocka_unit_test(skipped_seconds_stay_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
