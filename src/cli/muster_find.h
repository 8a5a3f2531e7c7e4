/* `muster find`: the load that a server holds, as an interval. Its parts also serve `muster calibrate`, which searches
 * in the same way. */
#ifndef MUSTER_CLI_MUSTER_FIND_H
#define MUSTER_CLI_MUSTER_FIND_H

#include "cli/muster_options.h"
#include "load/find.h"

/* argv holds what follows `find`. */
int command_find(int argc, char **argv);

/* The options of a search, beside those of a run. NULL: not given. */
struct find_options {
  const char *vary, *from, *to, *step_size, *resolution, *limit_percentile, *limit_rtt, *initial_clients;
  bool keep_server, show;
  bool help;
};

enum find_command { FIND_COMMAND, CALIBRATE_COMMAND };

/* Takes the command's own options out of argv; what is left goes to the run's parser, in order: rest has room for all.
 */
enum status find_options_split(enum find_command command, int argc, char **argv, struct find_options *out, char **rest,
    int *rest_count, struct err *err);
void find_options_help(enum find_command command);

/* Fills vary and search. */
enum status find_search_read(
    enum find_command command, const struct find_options *options, struct find_settings *out, struct err *err);

/* Fills workload and lengths from the run's options; the rest of *out is as it was. */
void find_settings_of(const struct run_arguments *arguments, struct find_settings *out);

/* Writes the JSON document and the answer; returns the exit code. */
int find_publish(const struct run_arguments *arguments, const struct find *find);

#endif
