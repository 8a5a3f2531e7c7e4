/* What `muster run` writes beside its JSON report: logs and streams that grow while the run goes on, and other forms of
 * the report once it is there (report/formats.h). */
#ifndef MUSTER_CLI_MUSTER_OUTPUTS_H
#define MUSTER_CLI_MUSTER_OUTPUTS_H

#include "cli/muster_options.h"
#include "load/run.h"

#include <limits.h>
#include <stdio.h>

struct outputs {
  const struct run_arguments *arguments;
  FILE *jsonl, *hlog_series; /* NULL: not asked for */
  enum status hlog_status;   /* of the first second that could not be written */
  struct err hlog_err;
  struct run_seconds seconds; /* for the run */
};

/* Finds before the run what cannot be written. */
enum status outputs_check(const struct run_arguments *arguments, struct err *err);
/* The name of an option that writes such a file and was given, or NULL: for commands that have no single run. */
const char *outputs_given(const struct run_arguments *arguments);
/* True when a stream goes to standard output, so that nothing else may. */
bool outputs_take_stdout(const struct run_arguments *arguments);

/* The arguments of one trial: each of its files has the trial in front of its ending, as in "a-2.hlog", with several
 * workloads "a-NAME-2.hlog". A page is not of one trial, so there is none. */
struct trial_outputs {
  struct run_arguments arguments; /* borrows everything; its paths point into path */
  char path[6][PATH_MAX];
};
enum status outputs_of_trial(
    struct trial_outputs *out, const struct run_arguments *all, const char *name, uint32_t trial, struct err *err);

/* Begins the files that grow. *out must stay where it is until outputs_finish or outputs_drop. */
enum status outputs_open(struct outputs *out, const struct run_arguments *arguments, struct err *err);
/* Writes everything that was asked for; what fails is complained about. Returns code, or that of a failure. */
int outputs_finish(struct outputs *outputs, const struct report *report, int code);
/* There is no report: takes the begun files away. */
void outputs_drop(struct outputs *outputs);

#endif
