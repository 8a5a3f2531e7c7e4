/* The options of `muster run`: one table makes the parser, the help and the error messages. */
#ifndef MUSTER_CLI_MUSTER_OPTIONS_H
#define MUSTER_CLI_MUSTER_OPTIONS_H

#include "base/err.h"
#include "load/observe_spec.h"
#include "load/scenario.h"
#include "report/slo.h"
#include "report/workload.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What a scenario says that it comes to, unscaled. */
struct expected_totals {
  bool given;
  uint64_t connections, publishes, distributions, deliveries; /* 0: not said */
};
#define CLIENTS_MAX 16000000
#define EXPECTED_MAX (UINT64_C(1) << 50)

#define OPTION_WORDS 2 /* of 64 options each */

/* What the command line and its scenario asked for. Texts point into argv, the environment or the scenario. */
struct run_arguments {
  struct workload workload;
  uint32_t group_senders, senders, receivers, receivers_online, members, queues;
  uint32_t backoff_jitter_percent;
  const char *kind;                           /* of a scenario: the workload that it is; NULL: private */
  const char *arrivals, *rate_limits, *steps; /* as chosen; workload holds them decoded */
  const char *storm_by;                       /* "client" or "server"; NULL: client */
  const char *server_type;                    /* websocket-bench's name of a driver; NULL: not given */
  const char *output;                         /* JSON report file or folder; NULL: results/ */
  const char *json;                           /* "-" or a file; NULL: --output decides */
  const char *hlog;                           /* NULL: none */
  /* As hlog; jsonl may be "-". */
  const char *hlog_series, *csv, *jsonl, *junit, *markdown;
  const char *ui, *metrics;    /* "[HOST:]PORT"; NULL: none */
  const char *html;            /* NULL: none */
  uint32_t trials;             /* 0: not given, one run */
  struct slo_list slos;        /* of every --slo */
  struct observe_list observe; /* of every --observe */
  bool quiet;
  bool help;                    /* --help was there: nothing else was checked */
  uint64_t given[OPTION_WORDS]; /* option_is_marked: the option of the table was given */
  uint64_t typed[OPTION_WORDS]; /* it was given on the command line */
  const char *driver;           /* of the scenario; NULL: the target's scheme decides */
  const char *chosen;           /* preset or file that the command line names; NULL: none */
  double scale;                 /* of the scenario's scalable numbers */
  struct scenario scenario;     /* owned; empty without one */
  struct expected_totals expected;
};

static inline void option_mark(uint64_t marks[OPTION_WORDS], size_t option) {
  marks[option / 64] |= UINT64_C(1) << option % 64;
}

static inline bool option_is_marked(const uint64_t marks[OPTION_WORDS], size_t option) {
  return option < 64 * OPTION_WORDS && marks[option / 64] >> option % 64 & 1;
}

/* Parses what follows `muster run`: the scenario that it names first, then the options, which override it. Fills every
 * default. STATUS_USAGE with one line for the user. Free *out afterwards, whatever came of it. */
enum status run_arguments_parse(int argc, char **argv, struct run_arguments *out, struct err *err);
void run_arguments_free(struct run_arguments *arguments);
/* The places on such a line where workloads stand; returns their number, at most argc. */
size_t run_arguments_names(int argc, char **argv, int *at);

/* The help of `muster run`. topic: NULL for what most runs need, a group of options, or "all" of them; false when there
 * is no such group. */
bool run_arguments_help(FILE *file, const char *topic);
const char *run_arguments_topic(size_t index); /* the groups one after the other; NULL behind the last */

/* Single options, for scenario files. */
#define OPTION_NONE SIZE_MAX
#define OPTION_ACCEPTED_MAX 480
size_t option_find(const char *name);   /* OPTION_NONE: unknown */
const char *option_name(size_t index);  /* one after the other; NULL behind the last */
bool option_is_embedded(size_t option); /* of the embedded server: a target sets it aside */
/* Where a scenario file may give it, "" for the top level; NULL: only the command line may. */
const char *option_section(size_t option);
bool option_is_section(const char *name);
const char *option_nearest(const char *text, const char *section); /* NULL: none is near */
const char *option_noun(size_t option);                            /* what its value is: "a time that fits" */
/* Parses and stores a value; false when it does not do, and then accepted says what would. */
bool option_set(size_t option, const char *value, struct run_arguments *out, char accepted[OPTION_ACCEPTED_MAX]);
bool option_was_typed(size_t option, const struct run_arguments *arguments);
bool option_takes_value(size_t option);
bool option_is_scalable(size_t option);
/* Multiplies a number, rounded down and at least the option's least; false when it leaves the option's range. */
bool option_scale(size_t option, double factor, struct run_arguments *out);

/* The known word nearest to text, or NULL when none is near enough to be a typing error. */
const char *nearest_word(const char *text, const char *const *words, size_t count);

/* Exposed for messages and tests: decode one value. */
bool parse_rate(const char *text, double *out_per_sec);
bool parse_duration_ns(const char *text, uint64_t *out_ns);
bool parse_count(const char *text, uint64_t max, uint64_t *out);

#endif
