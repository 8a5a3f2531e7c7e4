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

const struct series_latency series_latencies[SERIES_LATENCIES] = {
    {"ack", offsetof(struct report_second, ack.count), offsetof(struct report_second, ack.p50_ns),
        offsetof(struct report_second, ack.p99_ns), offsetof(struct report_second, ack.max_ns)},
    {"delivery", offsetof(struct report_second, delivery.count), offsetof(struct report_second, delivery.p50_ns),
        offsetof(struct report_second, delivery.p99_ns), offsetof(struct report_second, delivery.max_ns)},
    {"schedule_lag", offsetof(struct report_second, schedule_lag.count),
        offsetof(struct report_second, schedule_lag.p50_ns), offsetof(struct report_second, schedule_lag.p99_ns),
        offsetof(struct report_second, schedule_lag.max_ns)},
};

uint64_t series_cell(const struct report_second *second, size_t offset) {
  uint64_t value;
  memcpy(&value, (const char *)second + offset, sizeof value);
  return value;
}
