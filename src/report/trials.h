/* Trials of one workload, each on a fresh population, and their summary: the median of every metric with its bootstrap
 * interval (docs/compare.md). An invalid trial is listed, counts for no median, and makes the summary invalid. */
#ifndef MUSTER_REPORT_TRIALS_H
#define MUSTER_REPORT_TRIALS_H

#include "report/trial.h"

#include <stdio.h>

struct trials {
  char id[40], started_at[40];
  const char *name; /* of the workload */
  uint32_t asked;
  const char *const *alternating; /* names of the workloads that took turns, this one included */
  size_t workloads;
  bool interrupted;
  struct trial_list list; /* owned by whoever made it; each trial's source is its file in the summary's folder */
};

bool trials_are_valid(const struct trials *trials);
/* The worst of the trials' own, 3 when some are missing. */
int trials_exit_code(const struct trials *trials);

/* For a person, at most 100 columns: the head of the list, one line of it, the summary. */
void trials_write_head(FILE *file);
void trials_write_row(FILE *file, const char *name, uint32_t number, const struct trial *trial);
enum status trials_write_summary(FILE *file, const struct trials *trials, struct err *err);
/* All of that, of saved trials. */
enum status trials_rewrite_text(FILE *file, const struct document *document, struct err *err);
/* As docs/trials.schema.json says; content is a struct trials. */
enum status trials_write_json(FILE *file, const void *content, struct err *err);

#endif
