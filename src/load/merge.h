/* From what the workers counted to a report: seconds while the run goes on, everything else once all workers have
 * ended. */
#ifndef MUSTER_LOAD_MERGE_H
#define MUSTER_LOAD_MERGE_H

#include "load/shared.h"

/* Fills second's latencies from the interval histograms of all workers, which clock then holds. */
void merge_second(
    const struct plan *plan, uint32_t second, struct histogram clock[SERIES_CLOCKS], struct report_second *out);

/* Adds the counters of all workers in this second, which the series has. */
void merge_counts(const struct plan *plan, uint32_t second, struct report_second *out);

/* Adds up tallies, clocks, seconds' counters and workers; settles the ledgers. died[i]: worker i ended without having
 * settled its own counts, so what it left open is charged to cause here. Allocates what the report owns. */
enum status merge_report(const struct plan *plan, const bool *died, struct report *report, struct err *err);

#endif
