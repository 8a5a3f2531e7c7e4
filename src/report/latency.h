/* What a report says of one clock: counts, extremes and percentiles. Made from its histogram, or read from an older
 * report file that has no histograms. */
#ifndef MUSTER_REPORT_LATENCY_H
#define MUSTER_REPORT_LATENCY_H

#include "measure/histogram.h"

#include <stdbool.h>
#include <stdint.h>

enum report_percentile {
  REPORT_P50,
  REPORT_P75,
  REPORT_P90,
  REPORT_P95,
  REPORT_P99,
  REPORT_P99_9,
  REPORT_P99_99,
  REPORT_PERCENTILES
};
const char *report_percentile_key(enum report_percentile percentile); /* "p99_9_ns" */

struct report_latency {
  uint64_t count, overflow, negative; /* as of struct histogram */
  int64_t min_ns, mean_ns, max_ns;    /* 0 while empty */
  int64_t percentile_ns[REPORT_PERCENTILES];
  bool few[REPORT_PERCENTILES]; /* fewer than FEW_SAMPLES values lie beyond it */
};

/* A percentile with fewer samples beyond it is marked, and no objective is judged by it. */
#define FEW_SAMPLES 10

struct report_latency report_latency_of(const struct histogram *histogram);

#endif
