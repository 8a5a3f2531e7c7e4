/* Statistics of a few repeated measurements: medians with bootstrap intervals, the Mann-Whitney test of two samples,
 * Holm's correction for several tests. Pure functions over arrays; the same input and seed give the same output on
 * every machine. Values are finite, samples are not empty. */
#ifndef MUSTER_MEASURE_STATISTICS_H
#define MUSTER_MEASURE_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATISTICS_SAMPLE_MAX 1000
#define STATISTICS_RESAMPLES 4000
#define STATISTICS_CONFIDENCE 0.95
/* Two samples of so many values together are tested exactly, larger ones by the normal approximation. */
#define STATISTICS_EXACT_MAX 30

struct interval {
  double low, high;
};

/* Of an even number of values: the mean of the middle two. */
double statistics_median(const double *values, size_t count);

/* Percentile bootstrap interval of the median, and of the median of b divided by that of a (values above 0). */
struct interval statistics_median_interval(const double *values, size_t count, uint64_t seed);
struct interval statistics_ratio_interval(
    const double *a, size_t a_count, const double *b, size_t b_count, uint64_t seed);

struct mann_whitney {
  double u; /* pairs (a, b) in which a is larger, ties counted half */
  double p; /* two-sided: how often equals would be at least so far apart */
  bool exact;
};
/* Ties get their mean rank. Exact: over all ways to share the ranks out, ties included. Else: normal, with the
 * correction for ties and for continuity. */
struct mann_whitney statistics_mann_whitney(const double *a, size_t a_count, const double *b, size_t b_count);
/* The least p that samples of these sizes can give: everything in one below everything in the other. */
double statistics_least_p(size_t a_count, size_t b_count);

/* Holm: adjusted[i] is p[i] corrected for count tests at once; the chance that any of them alarms although nothing
 * differs stays below alpha when adjusted[i] <= alpha is asked for. */
void statistics_holm(const double *p, size_t count, double *adjusted);

#endif
