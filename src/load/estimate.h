/* What a workload comes to, as arithmetic before anything is started: how many publishes, copies and deliveries. */
#ifndef MUSTER_LOAD_ESTIMATE_H
#define MUSTER_LOAD_ESTIMATE_H

#include "report/workload.h"

#include <stdbool.h>
#include <stdint.h>

struct totals {
  bool known; /* false: a closed loop that only time ends makes as many as the server answers */
  uint64_t warmup_publishes, publishes;
  uint64_t deliveries; /* of the measure phase, to clients that connect */
  /* What the server has to place: a copy for each addressed client, online or not, and where the protocol keeps one for
   * the sender (private, group, room), that one too. */
  uint64_t distributions;
  double copies; /* distributions per publish */
};

/* Totals of a workload of which every publish is acked and every delivery arrives, over a driver of such capabilities
 * (settings_capabilities). Poisson arrivals: the mean. */
void estimate_totals(const struct workload *workload, unsigned capabilities, struct totals *out);

#endif
