/* The figures of a run report that trials summarize and comparisons test: its rates, the server's publishes per
 * core-second, of every clock, those of operations included, the mean, the percentiles and the maximum, and of every
 * operation its rates. Named as an objective names them: deliveries_per_second, delivery.p99.9, put_document.p50,
 * batch_put.items_per_second. */
#ifndef MUSTER_REPORT_METRICS_H
#define MUSTER_REPORT_METRICS_H

#include "report/document.h"
#include "report/operations.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define METRIC_RATES 5
#define METRIC_STATISTICS 9
#define METRIC_CLOCKS (REPORT_CLOCKS + OPERATIONS_KNOWN) /* the report's, then the operations' */
#define METRICS (METRIC_RATES + METRIC_CLOCKS * METRIC_STATISTICS + OPERATIONS_KNOWN * OPERATION_RATES)
#define METRIC_NONE METRICS
#define METRIC_NAME_MAX 48
#define METRIC_VALUE_MAX 1e18 /* larger ones, and those below 0, are no figures */

enum metric_state {
  METRIC_ABSENT, /* the run has no such figure */
  METRIC_FEW,    /* a percentile with fewer than FEW_SAMPLES values beyond it */
  METRIC_KNOWN
};

struct metrics {
  double value[METRICS]; /* ns for clocks; 0 when absent */
  uint8_t state[METRICS];
};

void metric_name(size_t metric, char out[METRIC_NAME_MAX]);
/* The same for a column of a table; a name that is wider goes on a line of its own, and out is "". */
void metric_column(FILE *file, size_t metric, size_t width, char out[METRIC_NAME_MAX]);
size_t metric_find(const char *name, size_t len); /* METRIC_NONE: unknown */
const char *metric_unit(size_t metric);           /* "ns", "per_second" */
bool metric_is_clock(size_t metric);
/* Of the headline metrics (docs/compare.md) in the order of their weight; METRIC_NONE behind the last. */
const size_t *metrics_headline(bool closed_loop);
const size_t *metrics_of_connecting(void); /* of runs that have none of those */

/* False: it is no figure. */
bool metric_value(const json_t *value, double *out);

/* Takes the figures out of a JSON run report. */
void metrics_read(const json_t *report, struct metrics *out);

#endif
