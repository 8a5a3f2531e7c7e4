/* The workloads of `muster run` by name: which topology, which options belong to it, and how options become a
 * workload. */
#ifndef MUSTER_CLI_MUSTER_WORKLOADS_H
#define MUSTER_CLI_MUSTER_WORKLOADS_H

#include "base/err.h"
#include "cli/muster_options.h"

#include <stdbool.h>
#include <stdio.h>

/* The name as stored here, or NULL when there is no such workload. */
const char *workload_find(const char *name);
const char *workload_nearest(const char *word); /* NULL: none is near */
/* One line each: name and what it is. */
void workload_help(FILE *file);
/* The same for the scenarios of operations, which workload_help only points to. */
void workload_scenarios_help(FILE *file);

/* Turns the options into out->workload: topology, senders and receivers, load model and stop. name: the workload whose
 * name the command line gives, or that a scenario chooses (NULL: private). STATUS_USAGE with one line when options do
 * not go together. */
enum status workload_resolve(struct run_arguments *out, const char *name, struct err *err);

#endif
