/* What muster says to its user: errors as one line on standard error, exit codes, and a standard output whose loss is
 * noticed. */
#ifndef MUSTER_CLI_MUSTER_SAY_H
#define MUSTER_CLI_MUSTER_SAY_H

#include "base/err.h"

enum exit_code {
  EXIT_VALID = 0,
  EXIT_THRESHOLD = 1,
  EXIT_USAGE = 2,
  EXIT_INVALID = 3,
  EXIT_UNREACHABLE = 4,
  EXIT_INTERRUPTED = 130,
};

/* Prints "muster: text" and returns the exit code that belongs to the status. */
int complain(const struct err *err);

/* Flushes standard output; what could not be written is complained about and turns code into EXIT_INVALID. */
int finish_stdout(int code);

#endif
