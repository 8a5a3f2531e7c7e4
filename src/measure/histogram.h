/* HDR histogram: log-linear buckets of nanoseconds, 3 significant digits, 1 us to over 1 h, in one flat struct
 * without pointers, so that it can lie in memory shared with forked workers and be merged by addition.
 *
 * Executive summary: values are counted in units of 2^9 ns (512 ns). Each power of two of the range is cut into
 * 1,024 steps (2,048 for the first), so a recorded value is off by less than 0.1 % of itself or by one unit.
 * About 24 thousand counters, 196 KB: one per worker and clock, never one per connection. No allocation. */
#ifndef MUSTER_MEASURE_HISTOGRAM_H
#define MUSTER_MEASURE_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define HISTOGRAM_UNIT_SHIFT 9     /* HdrHistogram: unitMagnitude of lowestDiscernibleValue 1,000 */
#define HISTOGRAM_SUB_BUCKETS 2048 /* HdrHistogram: subBucketCount of 3 significant digits */
#define HISTOGRAM_BUCKETS 23       /* doublings, the first included */
#define HISTOGRAM_COUNTERS ((HISTOGRAM_BUCKETS + 1) * (HISTOGRAM_SUB_BUCKETS / 2))
#define HISTOGRAM_MAX_NS INT64_C(3600000000000) /* one hour */

struct histogram {
  uint64_t count;    /* values recorded, overflowing ones included */
  uint64_t overflow; /* values above HISTOGRAM_MAX_NS, counted at the maximum */
  uint64_t negative; /* values below zero (a clock error): counted here and nowhere else */
  int64_t min_ns;    /* exact; meaningless while count is 0 */
  int64_t max_ns;    /* exact */
  double sum_ns;     /* of exact values */
  uint64_t counters[HISTOGRAM_COUNTERS];
};

/* Empties memory of any content. */
void histogram_reset(struct histogram *h);
/* Empties a valid histogram by touching only the counters between its minimum and maximum: cheap between sends. */
void histogram_clear(struct histogram *h);
void histogram_record(struct histogram *h, int64_t value_ns);
void histogram_record_many(struct histogram *h, int64_t value_ns, uint64_t times);
/* Adds from to into. */
void histogram_merge(struct histogram *into, const struct histogram *from);

/* The value at or below which `percentile` (0..100) of the values lie: the highest value that its bucket stands
 * for, never above the exact maximum; the exact minimum for 0; 0 while empty. As HdrHistogram's getValueAtPercentile.
 */
int64_t histogram_percentile(const struct histogram *h, double percentile);
double histogram_mean(const struct histogram *h); /* exact */
/* Standard deviation of the population, from the middle of each bucket. */
double histogram_stddev(const struct histogram *h);

/* How many values lie beyond the percentile's rank; a percentile with fewer than 10 is marked in reports. */
uint64_t histogram_beyond(const struct histogram *h, double percentile);

/* The index of a value's counter (of a value from 0 to HISTOGRAM_MAX_NS), and the lowest and highest value that a
 * counter stands for. */
uint32_t histogram_index(int64_t value_ns);
int64_t histogram_lowest(uint32_t index);
int64_t histogram_highest(uint32_t index);

#endif
