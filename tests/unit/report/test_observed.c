#include "report/observed.h"

#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_summary_leaves_out_what_is_not_known(void **state) {
  (void)state;
  struct report r = sample_primes();
  struct observed_summary all = observed_summary(r.observed, "cpu_cores", -10, 10);
  assert_int_equal(all.count, 2);
  assert_true(all.min == 0.25 && all.mean == 0.5 && all.max == 0.75);
  struct observed_summary late = observed_summary(r.observed, "rss_bytes", 1.5, 1.6);
  assert_int_equal(late.count, 1);
  assert_true(late.mean == 1000695);
  assert_int_equal(observed_summary(r.observed, "threads", -10, 10).count, 0);
  assert_int_equal(observed_summary(r.observed, "rss_bytes", 1.6, 10).count, 0);
  report_free(&r);
}

static void the_text_has_a_line_for_each_source(void **state) {
  (void)state;
  struct report r = sample_primes();
  char *text = sample_written(report_write_text, &r);
  assert_non_null(strstr(text, "observed    a server: CPU 0.25 / 0.50 / 0.75 cores; memory 977.2 KiB / "));
  assert_non_null(strstr(text, "values are missing: 1 of 3 samples: gone for a while"));
  free(text);
  report_free(&r);
}

static void series_are_named_one_by_one(void **state) {
  (void)state;
  struct report r = sample_primes();
  snprintf(r.observed->column[0], OBSERVED_COLUMN_MAX, "queue{name=\"a\"}");
  char *text = sample_written(report_write_text, &r);
  assert_non_null(strstr(text, "queue{name=\"a\"}: 0.25 / 0.5 / 0.75"));
  assert_null(strstr(text, "cores; memory"));
  free(text);
  report_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_summary_leaves_out_what_is_not_known),
      cmocka_unit_test(the_text_has_a_line_for_each_source),
      cmocka_unit_test(series_are_named_one_by_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
