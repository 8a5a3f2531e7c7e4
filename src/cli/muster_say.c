#include "cli/muster_say.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int code_of(enum status status) {
  switch (status) {
  case STATUS_OK:
    return EXIT_VALID;
  case STATUS_USAGE:
    return EXIT_USAGE;
  case STATUS_UNREACHABLE:
  case STATUS_TIMEOUT:
  case STATUS_PROTOCOL:
    return EXIT_UNREACHABLE;
  case STATUS_INTERRUPTED:
    return EXIT_INTERRUPTED;
  case STATUS_IO:
  case STATUS_MEMORY:
    break;
  }
  return EXIT_INVALID;
}

int complain(const struct err *err) {
  fprintf(stderr, "muster: %s\n", err->text);
  return code_of(err->status);
}

int finish_stdout(int code) {
  if (!ferror(stdout)) errno = 0; /* else it is likely that of the write that failed */
  if (fflush(stdout) == 0 && !ferror(stdout)) return code;
  fprintf(stderr, "muster: cannot write to standard output: %s\n", errno ? strerror(errno) : "it is broken");
  return EXIT_INVALID;
}
