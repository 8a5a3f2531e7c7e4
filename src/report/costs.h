/* What the server's CPU time says about one publish: rates per core, and the costs of the stages send, distribute and
 * notify + pull as Wildfire's benchmark derives them from its tests (docs/counters.md, derived). Only for an embedded
 * server, whose CPU time is known. */
#ifndef MUSTER_REPORT_COSTS_H
#define MUSTER_REPORT_COSTS_H

#include "report/document.h"
#include "report/json_writer.h"

struct costs {
  bool known;           /* false: no embedded server, or nothing that could be divided */
  double cores;         /* that the server kept busy */
  double distributions; /* copies of acked publishes, the sender's own included */
  double publishes_per_core_second, distributions_per_core_second;
  double publish_ns; /* server CPU of one acked publish, with all that follows from it */
  /* The stage that this workload shows; 0: it does not. */
  double send_ns, distribute_ns, notify_pull_ns;
  const char *formula; /* of the stage; NULL: none is shown */
};

struct costs costs_of(const struct report *report);

/* The member "derived": null when nothing is known. */
void costs_write_json(struct json_writer *writer, const struct report *report);
void costs_write_text(FILE *file, const struct report *report);

#endif
