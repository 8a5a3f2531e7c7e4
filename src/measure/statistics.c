#include "measure/statistics.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_of_sorted(const double *sorted, size_t count) {
  return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double statistics_median(const double *values, size_t count) {
  double sorted[STATISTICS_SAMPLE_MAX];
  memcpy(sorted, values, count * sizeof *values);
  qsort(sorted, count, sizeof *sorted, by_value);
  return median_of_sorted(sorted, count);
}

/* --- bootstrap --- */

/* The median of as many values, drawn from sorted with replacement: drawn by place, so that nothing is sorted again. */
static double resampled_median(const double *sorted, size_t count, struct rng *rng) {
  uint32_t drawn[STATISTICS_SAMPLE_MAX] = {0};
  for (size_t i = 0; i < count; i++)
    drawn[rng_below(rng, count)]++;
  size_t below = 0, low = (count - 1) / 2, high = count / 2;
  double at_low = 0;
  for (size_t i = 0; i < count; i++) {
    bool has_low = low >= below && low < below + drawn[i];
    if (has_low) at_low = sorted[i];
    if (high >= below && high < below + drawn[i]) return (at_low + sorted[i]) / 2;
    below += drawn[i];
  }
  return sorted[count - 1];
}

static struct interval middle_of(double *estimates) {
  const double tail = (1 - STATISTICS_CONFIDENCE) / 2;
  qsort(estimates, STATISTICS_RESAMPLES, sizeof *estimates, by_value);
  size_t low = (size_t)floor(tail * STATISTICS_RESAMPLES);
  return (struct interval){estimates[low], estimates[STATISTICS_RESAMPLES - 1 - low]};
}

struct interval statistics_median_interval(const double *values, size_t count, uint64_t seed) {
  double sorted[STATISTICS_SAMPLE_MAX], estimates[STATISTICS_RESAMPLES];
  struct rng rng;
  rng_seed(&rng, seed);
  memcpy(sorted, values, count * sizeof *values);
  qsort(sorted, count, sizeof *sorted, by_value);
  for (size_t i = 0; i < STATISTICS_RESAMPLES; i++)
    estimates[i] = resampled_median(sorted, count, &rng);
  return middle_of(estimates);
}

struct interval statistics_ratio_interval(
    const double *a, size_t a_count, const double *b, size_t b_count, uint64_t seed) {
  double sorted_a[STATISTICS_SAMPLE_MAX], sorted_b[STATISTICS_SAMPLE_MAX], estimates[STATISTICS_RESAMPLES];
  struct rng rng;
  rng_seed(&rng, seed);
  memcpy(sorted_a, a, a_count * sizeof *a);
  memcpy(sorted_b, b, b_count * sizeof *b);
  qsort(sorted_a, a_count, sizeof *sorted_a, by_value);
  qsort(sorted_b, b_count, sizeof *sorted_b, by_value);
  for (size_t i = 0; i < STATISTICS_RESAMPLES; i++) {
    double base = resampled_median(sorted_a, a_count, &rng);
    estimates[i] = resampled_median(sorted_b, b_count, &rng) / base;
  }
  return middle_of(estimates);
}

/* --- Mann-Whitney --- */

struct ranked {
  double value;
  bool of_a;
};

static int by_ranked_value(const void *a, const void *b) {
  return by_value(&((const struct ranked *)a)->value, &((const struct ranked *)b)->value);
}

/* Doubled mean ranks, which are whole numbers, of both samples together; returns a's sum, and what ties make of
 * sum(t^3 - t) over their groups. */
static uint64_t rank_sum(struct ranked *all, size_t count, uint32_t *doubled_rank, double *tie_term) {
  uint64_t sum = 0;
  *tie_term = 0;
  qsort(all, count, sizeof *all, by_ranked_value);
  for (size_t i = 0; i < count;) {
    size_t end = i + 1;
    while (end < count && all[end].value == all[i].value)
      end++;
    double ties = (double)(end - i);
    *tie_term += ties * ties * ties - ties;
    for (size_t j = i; j < end; j++) {
      doubled_rank[j] = (uint32_t)(i + 1 + end);
      if (all[j].of_a) sum += doubled_rank[j];
    }
    i = end;
  }
  return sum;
}

#define EXACT_SUBSET_MAX (STATISTICS_EXACT_MAX / 2)
#define EXACT_SUMS (STATISTICS_EXACT_MAX * (STATISTICS_EXACT_MAX + 1) + 1)

/* Of all ways to draw `size` of the ranks (at most half of them), the share whose sum lies at least as far from the
 * mean as `sum`. Counted by sums: ways[k][s] draws of k ranks have the sum s. */
static double exact_p(const uint32_t *doubled_rank, size_t count, size_t size, uint64_t sum) {
  double ways[EXACT_SUBSET_MAX + 1][EXACT_SUMS];
  memset(ways, 0, sizeof ways);
  ways[0][0] = 1;
  size_t top = 0;
  for (size_t i = 0; i < count; i++) {
    top += doubled_rank[i];
    for (size_t k = size; k > 0; k--) {
      for (size_t s = top; s >= doubled_rank[i]; s--)
        ways[k][s] += ways[k - 1][s - doubled_rank[i]];
    }
  }
  double mean = (double)(size * (count + 1)), distance = fabs((double)sum - mean), far = 0, all = 0;
  for (size_t s = 0; s <= top; s++) {
    all += ways[size][s];
    if (fabs((double)s - mean) >= distance) far += ways[size][s];
  }
  return far / all;
}

static double normal_p(double u, double a_count, double b_count, double tie_term) {
  double n = a_count + b_count, mean = a_count * b_count / 2;
  double variance = a_count * b_count / 12 * (n + 1 - tie_term / (n * (n - 1)));
  if (variance <= 0) return 1;
  double distance = fabs(u - mean) - 0.5;
  if (distance <= 0) return 1;
  return erfc(distance / sqrt(2 * variance));
}

struct mann_whitney statistics_mann_whitney(const double *a, size_t a_count, const double *b, size_t b_count) {
  struct ranked all[2 * STATISTICS_SAMPLE_MAX];
  uint32_t doubled_rank[2 * STATISTICS_SAMPLE_MAX];
  size_t count = a_count + b_count;
  for (size_t i = 0; i < count; i++)
    all[i] = i < a_count ? (struct ranked){a[i], true} : (struct ranked){b[i - a_count], false};
  double tie_term;
  uint64_t sum = rank_sum(all, count, doubled_rank, &tie_term);
  struct mann_whitney out = {.exact = count <= STATISTICS_EXACT_MAX};
  out.u = (double)sum / 2 - (double)a_count * ((double)a_count + 1) / 2;
  if (!out.exact) {
    out.p = normal_p(out.u, (double)a_count, (double)b_count, tie_term);
    return out;
  }
  uint64_t total = (uint64_t)count * (count + 1);
  out.p = a_count <= b_count ? exact_p(doubled_rank, count, a_count, sum)
                             : exact_p(doubled_rank, count, b_count, total - sum);
  return out;
}

double statistics_least_p(size_t a_count, size_t b_count) {
  double ways = 1;
  for (size_t i = 1; i <= a_count; i++)
    ways *= (double)(b_count + i) / (double)i;
  return ways > 2 ? 2 / ways : 1;
}

/* --- several tests at once --- */

void statistics_holm(const double *p, size_t count, double *adjusted) {
  for (size_t i = 0; i < count; i++) {
    /* Its place among the sorted: of equals, the earlier one first. */
    double corrected = 0;
    for (size_t j = 0; j < count; j++) {
      if (p[j] > p[i] || (p[j] == p[i] && j > i)) continue;
      size_t smaller = 0;
      for (size_t k = 0; k < count; k++)
        smaller += p[k] < p[j] || (p[k] == p[j] && k < j);
      corrected = fmax(corrected, p[j] * (double)(count - smaller));
    }
    adjusted[i] = fmin(1, corrected);
  }
}
