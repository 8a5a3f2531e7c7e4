#include "report/json_series.h"

#include <string.h>

#define COUNT(name, column)                                                                                            \
  { #name, column, offsetof(struct report_second, name) }
const struct series_count series_counts[SERIES_COUNTS] = {
    COUNT(scheduled, "publishes_scheduled"),
    COUNT(attempted, "publishes_attempted"),
    COUNT(acked, "publishes_acked"),
    COUNT(rejected, "publishes_rejected"),
    COUNT(delivered, "deliveries_first"),
    COUNT(established, "connections_established"),
    COUNT(dropped, "connections_dropped"),
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
