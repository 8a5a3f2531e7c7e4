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

#define AT(clock, member) (offsetof(struct report_second, clock) + offsetof(struct report_second_clock, member))
#define CLOCK(name)                                                                                                    \
  { #name, AT(name, count), AT(name, p50_ns), AT(name, p99_ns), AT(name, max_ns) }
const struct series_latency series_latencies[SERIES_LATENCIES] = {
    CLOCK(ack),
    CLOCK(delivery),
    CLOCK(schedule_lag),
};

uint64_t series_cell(const struct report_second *second, size_t offset) {
  uint64_t value;
  memcpy(&value, (const char *)second + offset, sizeof value);
  return value;
}
