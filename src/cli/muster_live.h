/* What a live display shows of a run: the counts that the control process tells, and the rates of about the last
 * second, which this part works out. The terminal (muster_progress.h) and the web page (muster_web.h) show the same. */
#ifndef MUSTER_CLI_MUSTER_LIVE_H
#define MUSTER_CLI_MUSTER_LIVE_H

#include "load/run.h"

#include <stdbool.h>
#include <stddef.h>

struct live_counts {
  double at_s; /* on a clock that only goes forward */
  uint64_t established, scheduled, acked, delivered;
};

struct live {
  const char *workload, *target; /* names; the target's URL or "embedded musterd" */
  struct run_progress now;       /* zero before the first update */
  bool started;
  /* Of about the last second; 0 in a phase's first moments. */
  double established_per_sec, scheduled_per_sec, acked_per_sec, delivered_per_sec;
  struct live_counts mark, earlier;
};

/* Takes the next progress; at_s: seconds of a monotonic clock. Rates start anew with each phase. */
void live_update(struct live *live, const struct run_progress *progress, double at_s);

/* Deliveries that acked publishes still await: under way, or lost. */
uint64_t live_awaited(const struct run_progress *progress);

/* Done so far of the current phase, 0..1; of a phase without a length 0. */
double live_share(const struct run_progress *progress);

/* True while a phase has traffic to show. */
bool live_has_traffic(enum run_phase phase);

/* One JSON object without a line end; returns its length, or 0 when it does not fit. */
size_t live_json(const struct live *live, char *out, size_t size);
/* The same as OpenMetrics text. */
size_t live_openmetrics(const struct live *live, char *out, size_t size);

#endif
