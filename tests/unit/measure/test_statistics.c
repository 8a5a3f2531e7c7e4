/* Medians, intervals, the Mann-Whitney test and Holm's correction against values of SciPy 1.17 and statsmodels and
 * against the published table of critical values. */
#include "measure/statistics.h"

#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define P(a, b) statistics_mann_whitney(a, COUNT(a), b, COUNT(b))

static void close_to(double value, double expected) {
  if (fabs(value - expected) > 1e-12) fail_msg("%.17g is not %.17g", value, expected);
}

static void medians_are_the_middle(void **state) {
  (void)state;
  close_to(statistics_median((double[]){5, 1, 3}, 3), 3);
  close_to(statistics_median((double[]){4, 1, 3, 2}, 4), 2.5);
  close_to(statistics_median((double[]){7}, 1), 7);
}

/* scipy.stats.mannwhitneyu(method="exact"), two-sided. */
static void matches_scipy_without_ties(void **state) {
  (void)state;
  const double low[] = {1, 2, 3, 4, 5}, high[] = {6, 7, 8, 9, 10}, near_low[] = {1, 2, 3, 4, 6},
               near_high[] = {5, 7, 8, 9, 10};
  close_to(P(low, high).p, 0.007936507936507936);
  close_to(P(low, high).u, 0);
  close_to(P(high, low).u, 25);
  close_to(P(high, low).p, 0.007936507936507936);
  close_to(P(near_low, near_high).p, 0.015873015873015872);
  const double three[] = {1, 2, 3}, other[] = {4, 5, 6}, mixed[] = {4, 9, 2}, four[] = {5, 1, 7, 8};
  close_to(P(three, other).p, 0.1);
  close_to(P(mixed, four).p, 1);
  close_to(P(mixed, four).u, 6);
  const double a[] = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const double b[] = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06001, 3.14, 1.28};
  close_to(P(a, b).u, 58);
  close_to(P(a, b).p, 0.13591114767585355);
  assert_true(P(a, b).exact);
}

/* All ways to share out the mean ranks of scipy.stats.rankdata, enumerated. */
static void matches_enumeration_with_ties(void **state) {
  (void)state;
  const double a[] = {1, 2, 2, 3, 5}, b[] = {2, 4, 4, 5, 6};
  close_to(P(a, b).u, 5.5);
  close_to(P(a, b).p, 0.18253968253968253);
  const double ones[] = {1, 1, 1}, more[] = {1, 1, 1, 1};
  close_to(P(ones, more).p, 1);
  const double small[] = {10, 10, 12}, large[] = {12, 12, 15, 16};
  close_to(P(small, large).u, 1);
  close_to(P(small, large).p, 0.17142857142857143);
  close_to(P(large, small).p, 0.17142857142857143);
}

/* scipy.stats.mannwhitneyu(method="asymptotic", use_continuity=True). */
static void matches_scipy_for_large_samples(void **state) {
  (void)state;
  const double a[] = {
      9.3, 9.8, 11.7, 10.7, 8.4, 10.0, 9.4, 10.1, 8.4, 10.2, 10.2, 11.6, 10.3, 10.5, 8.5, 12.3, 8.1, 11.1, 9.7, 9.1};
  const double b[] = {10.1, 10.1, 11.2, 10.7, 12.3, 9.0, 10.8, 9.9, 11.6, 8.7, 10.5, 11.0, 9.3, 11.8, 11.0, 11.8, 11.8,
      9.8, 10.0, 10.6, 11.5, 11.7};
  struct mann_whitney test = P(a, b);
  assert_false(test.exact);
  close_to(test.u, 139);
  close_to(test.p, 0.042468539057209105);
  double same[40];
  for (size_t i = 0; i < 40; i++)
    same[i] = 3;
  close_to(statistics_mann_whitney(same, 20, same + 20, 20).p, 1);
}

/* Two samples of n without ties whose U is the one asked for: a below b, then one of a moved up past u of b. */
static double p_of_u(size_t n, size_t u) {
  double a[15], b[15];
  for (size_t i = 0; i < n; i++) {
    a[i] = (double)i;
    b[i] = 100 + (double)i;
  }
  for (size_t i = 0; i < n && u > 0; i++) {
    size_t passed = u < n ? u : n;
    a[i] = 100 + (double)passed - 0.5 - (double)i / 1e3;
    u -= passed;
  }
  return statistics_mann_whitney(a, n, b, n).p;
}

/* Largest U that is significant at 5 %, two-sided, from the published tables. */
static void agrees_with_the_table_of_critical_values(void **state) {
  (void)state;
  static const struct {
    size_t n, u;
  } critical[] = {{4, 0}, {5, 2}, {6, 5}, {7, 8}, {8, 13}, {9, 17}, {10, 23}, {12, 37}, {15, 64}};
  for (size_t i = 0; i < COUNT(critical); i++) {
    assert_true(p_of_u(critical[i].n, critical[i].u) <= 0.05);
    assert_true(p_of_u(critical[i].n, critical[i].u + 1) > 0.05);
  }
  assert_true(p_of_u(3, 0) > 0.05);
}

static void knows_the_least_p(void **state) {
  (void)state;
  close_to(statistics_least_p(5, 5), 2.0 / 252);
  close_to(statistics_least_p(3, 3), 0.1);
  close_to(statistics_least_p(1, 1), 1);
  close_to(statistics_least_p(3, 6), 2.0 / 84);
}

/* statsmodels.stats.multitest.multipletests(method="holm"). */
static void corrects_as_holm(void **state) {
  (void)state;
  double adjusted[6];
  statistics_holm((double[]){0.01, 0.04, 0.03, 0.005}, 4, adjusted);
  const double expected[] = {0.03, 0.06, 0.06, 0.02};
  for (size_t i = 0; i < 4; i++)
    close_to(adjusted[i], expected[i]);
  const double least = 2.0 / 252;
  statistics_holm((double[]){0.9, least, 0.3, least, 0.6, 1.0}, 6, adjusted);
  close_to(adjusted[1], least * 6);
  close_to(adjusted[3], least * 6);
  close_to(adjusted[0], 1);
}

/* Of few values the interval is their range: 3 of 5 draws are the least one in 5.8 % of the resamples. */
static void intervals_of_few_values_are_their_range(void **state) {
  (void)state;
  struct interval of_5 = statistics_median_interval((double[]){30, 10, 50, 20, 40}, 5, 1);
  close_to(of_5.low, 10);
  close_to(of_5.high, 50);
  struct interval of_1 = statistics_median_interval((double[]){7}, 1, 1);
  close_to(of_1.low, 7);
  close_to(of_1.high, 7);
  struct interval ratio = statistics_ratio_interval((double[]){10, 20, 30}, 3, (double[]){40, 60, 80}, 3, 1);
  close_to(ratio.low, 40.0 / 30);
  close_to(ratio.high, 8);
}

/* With many values: the interval's ends are the order statistics that the binomial distribution of the draws names,
 * places 40 to 60 of 99 (one more or less by the draw of the lots). */
static void intervals_of_many_values_follow_the_binomial(void **state) {
  (void)state;
  double values[99];
  for (size_t i = 0; i < 99; i++)
    values[i] = (double)(i * 37 % 99 + 1);
  struct interval interval = statistics_median_interval(values, 99, 5);
  assert_true(interval.low >= 39 && interval.low <= 41);
  assert_true(interval.high >= 59 && interval.high <= 61);
  struct interval again = statistics_median_interval(values, 99, 5);
  assert_true(interval.low == again.low && interval.high == again.high);
}

/* Two samples of equals alarm no more often than they may. */
static void equals_seldom_alarm(void **state) {
  (void)state;
  struct rng rng;
  unsigned alarms = 0, comparisons = 2000;
  rng_seed(&rng, 11);
  for (unsigned i = 0; i < comparisons; i++) {
    double a[8], b[8];
    for (size_t j = 0; j < 8; j++) {
      a[j] = rng_double(&rng);
      b[j] = rng_double(&rng);
    }
    alarms += P(a, b).p <= 0.05;
  }
  assert_true(alarms > 0 && alarms < comparisons * 6 / 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(medians_are_the_middle),
      cmocka_unit_test(matches_scipy_without_ties),
      cmocka_unit_test(matches_enumeration_with_ties),
      cmocka_unit_test(matches_scipy_for_large_samples),
      cmocka_unit_test(agrees_with_the_table_of_critical_values),
      cmocka_unit_test(knows_the_least_p),
      cmocka_unit_test(corrects_as_holm),
      cmocka_unit_test(intervals_of_few_values_are_their_range),
      cmocka_unit_test(intervals_of_many_values_follow_the_binomial),
      cmocka_unit_test(equals_seldom_alarm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
