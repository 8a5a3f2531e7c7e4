#include "report/json_series.h"

#include <string.h>

#define COUNT(name)                                                                                                    \
  { #name, offsetof(struct report_second, name) }
const struct series_count series_counts[SERIES_COUNTS] = {
    COUNT(scheduled),
    COUNT(attempted),
    COUNT(acked),
    COUNT(rejected),
    COUNT(delivered),
    COUNT(established),
    COUNT(dropped),
};

#define LATENCY(name)                                                                                                  \
  {                                                                                                                    \
#name, offsetof(struct report_second, name.count), offsetof(struct report_second, name.p50_ns),                    \
        offsetof(struct report_second, name.p99_ns), offsetof(struct report_second, name.max_ns)                       \
  }
const struct series_latency series_latencies[SERIES_LATENCIES] = {
    LATENCY(ack), LATENCY(delivery), LATENCY(schedule_lag)};

uint64_t series_cell(const struct report_second *second, size_t offset) {
  uint64_t value;
  memcpy(&value, (const char *)second + offset, sizeof value);
  return value;
}
