/* Live progress: one line on standard error that refreshes itself; nothing when that is no terminal. */
#ifndef MUSTER_CLI_MUSTER_PROGRESS_H
#define MUSTER_CLI_MUSTER_PROGRESS_H

#include "load/run.h"

#include <stdbool.h>

/* For run_options.progress; the context is not used. */
void progress_show(void *context, const struct run_progress *progress);

/* Removes the line. */
void progress_clear(void);

/* Writes the line, without an end, into out; exposed so that it can be read without a terminal. */
void progress_line(char *out, size_t size, const struct run_progress *progress);

#endif
