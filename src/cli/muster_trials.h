/* `muster run --trials N` and `muster run A B`: workloads several times, each time on a fresh population, taking turns;
 * every report is kept, and a summary for each workload. */
#ifndef MUSTER_CLI_MUSTER_TRIALS_H
#define MUSTER_CLI_MUSTER_TRIALS_H

#include "cli/muster_options.h"

/* argv holds what follows `run`; names are the places in it of the workloads. */
int run_trials(int argc, char **argv, const int *names, size_t count);

#endif
