#include "measure/histogram.h"

#include <math.h>
#include <string.h>

#define HALF (HISTOGRAM_SUB_BUCKETS / 2)

void histogram_reset(struct histogram *h) {
  memset(h, 0, sizeof *h);
}

uint32_t histogram_index(int64_t value_ns) {
  const uint64_t first_bucket = ((uint64_t)HISTOGRAM_SUB_BUCKETS << HISTOGRAM_UNIT_SHIFT) - 1;
  const int first_top = 63 - __builtin_clzll(first_bucket);
  uint64_t value = (uint64_t)value_ns;
  uint32_t bucket = (uint32_t)(63 - __builtin_clzll(value | first_bucket) - first_top);
  return bucket * HALF + (uint32_t)(value >> (bucket + HISTOGRAM_UNIT_SHIFT));
}

static uint32_t bucket_of(uint32_t index) {
  return index < HISTOGRAM_SUB_BUCKETS ? 0 : index / HALF - 1;
}

int64_t histogram_lowest(uint32_t index) {
  uint32_t bucket = bucket_of(index);
  return (int64_t)(index - bucket * HALF) << (bucket + HISTOGRAM_UNIT_SHIFT);
}

int64_t histogram_highest(uint32_t index) {
  return histogram_lowest(index) + (INT64_C(1) << (bucket_of(index) + HISTOGRAM_UNIT_SHIFT)) - 1;
}

static uint32_t clamped_index(int64_t value_ns) {
  return histogram_index(value_ns > HISTOGRAM_MAX_NS ? HISTOGRAM_MAX_NS : value_ns);
}

void histogram_clear(struct histogram *h) {
  if (h->count) {
    uint32_t from = clamped_index(h->min_ns);
    uint32_t to = clamped_index(h->max_ns);
    memset(h->counters + from, 0, (to - from + 1) * sizeof h->counters[0]);
  }
  h->count = h->overflow = h->negative = 0;
  h->min_ns = h->max_ns = 0;
  h->sum_ns = 0;
}

void histogram_record(struct histogram *h, int64_t value_ns) {
  histogram_record_many(h, value_ns, 1);
}

void histogram_record_many(struct histogram *h, int64_t value_ns, uint64_t times) {
  if (times == 0) return;
  if (value_ns < 0) {
    h->negative += times;
    return;
  }
  if (h->count == 0 || value_ns < h->min_ns) h->min_ns = value_ns;
  if (h->count == 0 || value_ns > h->max_ns) h->max_ns = value_ns;
  if (value_ns > HISTOGRAM_MAX_NS) h->overflow += times;
  h->count += times;
  h->sum_ns += (double)value_ns * (double)times;
  h->counters[clamped_index(value_ns)] += times;
}

void histogram_merge(struct histogram *into, const struct histogram *from) {
  into->negative += from->negative;
  if (from->count == 0) return;
  if (into->count == 0 || from->min_ns < into->min_ns) into->min_ns = from->min_ns;
  if (into->count == 0 || from->max_ns > into->max_ns) into->max_ns = from->max_ns;
  into->count += from->count;
  into->overflow += from->overflow;
  into->sum_ns += from->sum_ns;
  uint32_t last = clamped_index(from->max_ns);
  for (uint32_t i = clamped_index(from->min_ns); i <= last; i++)
    into->counters[i] += from->counters[i];
}

/* 1-based rank of the percentile's value. The product can come out one rounding step above the whole number that it
 * stands for, hence the step back. */
static uint64_t rank_of(const struct histogram *h, double percentile) {
  if (!(percentile > 0)) return 1;
  if (percentile >= 100) return h->count;
  double product = percentile / 100 * (double)h->count;
  double rank = ceil(nextafter(product, 0));
  if (rank < 1) return 1;
  return rank >= (double)h->count ? h->count : (uint64_t)rank;
}

int64_t histogram_percentile(const struct histogram *h, double percentile) {
  if (h->count == 0) return 0;
  if (!(percentile > 0)) return h->min_ns;
  uint64_t rank = rank_of(h, percentile);
  uint64_t passed = 0;
  uint32_t last = clamped_index(h->max_ns);
  for (uint32_t i = clamped_index(h->min_ns); i <= last; i++) {
    passed += h->counters[i];
    if (passed < rank) continue;
    int64_t highest = histogram_highest(i);
    return highest < h->max_ns ? highest : h->max_ns;
  }
  return h->max_ns;
}

double histogram_mean(const struct histogram *h) {
  return h->count ? h->sum_ns / (double)h->count : 0;
}

static double middle_of(uint32_t index) {
  return ((double)histogram_lowest(index) + (double)histogram_highest(index) + 1) / 2;
}

/* Around the mean of the buckets' middles: around the exact mean, equal values would come out as spread. */
double histogram_stddev(const struct histogram *h) {
  if (h->count == 0) return 0;
  uint32_t from = clamped_index(h->min_ns);
  uint32_t last = clamped_index(h->max_ns);
  double mean = 0;
  for (uint32_t i = from; i <= last; i++)
    mean += middle_of(i) * (double)h->counters[i];
  mean /= (double)h->count;
  double squares = 0;
  for (uint32_t i = from; i <= last; i++) {
    double off = middle_of(i) - mean;
    squares += off * off * (double)h->counters[i];
  }
  return sqrt(squares / (double)h->count);
}

uint64_t histogram_beyond(const struct histogram *h, double percentile) {
  return h->count ? h->count - rank_of(h, percentile) : 0;
}
