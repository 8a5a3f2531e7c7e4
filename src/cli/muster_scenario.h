/* Scenarios: what the keys of a scenario file (load/scenario.h) mean. A key is an option of the command line under the
 * heading of its group, and its value goes through the option's own parser; beside them stand the file's name, title,
 * description, driver, what it lets be scaled, and the totals that it expects of itself. */
#ifndef MUSTER_CLI_MUSTER_SCENARIO_H
#define MUSTER_CLI_MUSTER_SCENARIO_H

#include "cli/muster_options.h"
#include "load/scenario.h"

/* True when a word of the command line names a preset, or looks like a path. */
bool scenario_is_named(const char *word);
/* The preset nearest to a word that names none; NULL when none is near. */
const char *scenario_nearest(const char *word);

/* Reads the preset or file of that name. */
enum status scenario_load(const char *word, struct scenario *out, struct err *err);

/* Checks every key and puts the values into *out, which holds the defaults. The texts stay the scenario's. */
enum status scenario_apply(const struct scenario *scenario, struct run_arguments *out, struct err *err);

/* Compares the totals that the file expects with those of its workload, resolved without the command line and without
 * any scale: a mismatch is an error. */
enum status scenario_check_expected(
    const struct scenario *scenario, const struct run_arguments *plain, struct err *err);

/* Multiplies what the scenario marks as scalable by out->scale; what the command line gave itself stays as it is. */
enum status scenario_scale(const struct scenario *scenario, struct run_arguments *out, struct err *err);

#endif
