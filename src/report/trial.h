/* Trials: finished runs as their JSON reports tell them, reduced to what summaries (trials.h) and comparisons
 * (compare.h) need: who they are, whether they count, what makes them comparable, and their figures. They come from run
 * reports, from folders of them, and from trials documents, which hold the same. */
#ifndef MUSTER_REPORT_TRIAL_H
#define MUSTER_REPORT_TRIAL_H

#include "base/err.h"
#include "measure/statistics.h"
#include "report/metrics.h"
#include "report/read.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define TRIALS_MAX STATISTICS_SAMPLE_MAX
#define TRIAL_SOURCE_MAX 1024
#define TRIALS_SCHEMA_VERSION 1

struct trial {
  char source[TRIAL_SOURCE_MAX]; /* the file of its report */
  /* Owned; members of the report as they are there: run_id, started_at, muster, verdict, workload, target, environment,
   * comparability. NULL: the run ended without a report, and error says why. */
  json_t *facts;
  char error[512];
  int exit_code; /* of the run */
  struct metrics metrics;
};

struct trial_list {
  struct trial *trial; /* owned */
  size_t count;
};

/* Adds the trial of a run report, or one that has none. */
enum status trial_list_add(struct trial_list *list, const char *source, const json_t *report, struct err *err);
enum status trial_list_add_failed(struct trial_list *list, const struct err *why, int exit_code, struct err *err);
/* Adds a run report's trial or a trials document's. */
enum status trial_list_add_document(struct trial_list *list, const struct document *document, struct err *err);
/* Adds what the path holds: a run report, a trials document, or a folder's run reports in the order of their names. */
enum status trial_list_read(struct trial_list *list, const char *path, struct err *err);
void trial_list_free(struct trial_list *list);

const char *trial_fact(const struct trial *trial, const char *name); /* a text of facts; "" when there is none */
bool trial_is_valid(const struct trial *trial);
/* The first reason of one that is not valid. */
const char *trial_reason(const struct trial *trial);
/* What reports must have in common before they may be compared; NULL without a report. */
const json_t *trial_comparability(const struct trial *trial);

/* The values of a metric in the trials that are valid and have it; returns their number. few: how many of them have too
 * few samples for it; may be NULL. */
size_t trial_values(const struct trial_list *list, size_t metric, double *values, size_t *few);
size_t trial_valid_count(const struct trial_list *list);

#endif
