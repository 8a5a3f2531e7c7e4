/* The options of `muster run`: one table makes the parser, the help and the error messages. */
#ifndef MUSTER_CLI_MUSTER_OPTIONS_H
#define MUSTER_CLI_MUSTER_OPTIONS_H

#include "base/err.h"
#include "report/slo.h"
#include "report/workload.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What the command line asked for. Texts point into argv or the environment. */
struct run_arguments {
  struct workload workload;
  uint32_t group_senders;
  const char *arrivals, *rate_limits; /* as chosen; workload holds them decoded */
  const char *output;                 /* JSON report file or folder; NULL: results/ */
  const char *json;                   /* "-" or a file; NULL: --output decides */
  const char *hlog;                   /* NULL: none */
  struct slo_list slos;               /* of every --slo */
  bool quiet;
  bool help;      /* --help was there: nothing else was checked */
  uint64_t given; /* bit i: option i of the table was on the command line */
};

/* Parses what follows `muster run`. Fills every default. STATUS_USAGE with one line for the user. */
enum status run_arguments_parse(int argc, char **argv, struct run_arguments *out, struct err *err);

/* The help of `muster run`: usage, options by group, exit codes. */
void run_arguments_help(FILE *file);

/* The known word nearest to text, or NULL when none is near enough to be a typing error. */
const char *nearest_word(const char *text, const char *const *words, size_t count);

/* Exposed for messages and tests: decode one value. */
bool parse_duration_ns(const char *text, uint64_t *out_ns);
bool parse_count(const char *text, uint64_t max, uint64_t *out);

#endif
