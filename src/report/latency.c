#include "report/latency.h"

static const struct {
  const char *key;
  double percentile;
} percentiles[REPORT_PERCENTILES] = {
    [REPORT_P50] = {"p50_ns", 50},
    [REPORT_P75] = {"p75_ns", 75},
    [REPORT_P90] = {"p90_ns", 90},
    [REPORT_P95] = {"p95_ns", 95},
    [REPORT_P99] = {"p99_ns", 99},
    [REPORT_P99_9] = {"p99_9_ns", 99.9},
    [REPORT_P99_99] = {"p99_99_ns", 99.99},
};

const char *report_percentile_key(enum report_percentile percentile) {
  return percentiles[percentile].key;
}

struct report_latency report_latency_of(const struct histogram *h) {
  struct report_latency latency = {
      .count = h->count,
      .overflow = h->overflow,
      .negative = h->negative,
      .min_ns = h->count ? h->min_ns : 0,
      .mean_ns = (int64_t)histogram_mean(h),
      .max_ns = h->count ? h->max_ns : 0,
  };
  for (int i = 0; i < REPORT_PERCENTILES; i++) {
    latency.percentile_ns[i] = histogram_percentile(h, percentiles[i].percentile);
    latency.few[i] = histogram_beyond(h, percentiles[i].percentile) < FEW_SAMPLES;
  }
  return latency;
}
