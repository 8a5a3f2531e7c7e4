/* The columns of "series" in a report and where their values stand in struct report_second: one table for all that
 * writes or reads them. */
#ifndef MUSTER_REPORT_JSON_SERIES_H
#define MUSTER_REPORT_JSON_SERIES_H

#include "report/document.h"

#include <stddef.h>

/* Offsets of uint64_t or int64_t. */
struct series_count {
  const char *key, *column; /* in JSON, in CSV */
  size_t offset;
};
struct series_latency {
  const char *key;
  size_t count, p50, p99, max;
};

#define SERIES_COUNTS 7
#define SERIES_LATENCIES 3
extern const struct series_count series_counts[SERIES_COUNTS];
extern const struct series_latency series_latencies[SERIES_LATENCIES];

uint64_t series_cell(const struct report_second *second, size_t offset);

#endif
