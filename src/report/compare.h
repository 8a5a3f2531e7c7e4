/* Comparisons of two sets of trials (docs/compare.md): refused unless what the figures mean is equal; then for every
 * metric a Mann-Whitney test, the ratio of the medians with its interval, and whether the candidate is faster, slower,
 * or no difference is shown. */
#ifndef MUSTER_REPORT_COMPARE_H
#define MUSTER_REPORT_COMPARE_H

#include "report/gate.h"
#include "report/trial.h"

#include <stdio.h>

#define COMPARE_SCHEMA_VERSION 1
/* Chance that a family of metrics alarms although nothing differs, and the least change that is called one. */
#define COMPARE_ALPHA 0.05
#define COMPARE_LEAST_CHANGE 0.02
#define COMPARE_HEADLINE_MAX 6
#define COMPARE_KEYS_MAX 64
#define COMPARE_WARNINGS_MAX 24

struct compare_settings {
  const char *const *allowed; /* comparability keys that may differ */
  size_t allowed_count;
  struct gate_list gates;
};

struct compare_side {
  size_t count;
  double median, min, max;
};

enum compare_outcome { COMPARE_NONE_SHOWN, COMPARE_FASTER, COMPARE_SLOWER, COMPARE_NOT_COMPARED };

struct compare_metric {
  size_t metric;
  bool headline;
  struct compare_side base, candidate; /* meaningless when not compared */
  double ratio;                        /* candidate's median / base's */
  struct interval interval;            /* of the ratio */
  double p, p_corrected;
  bool exact, apart; /* apart: every value of one side is above every value of the other */
  enum compare_outcome outcome;
  const char *why; /* it was not compared; else NULL */
};

enum gate_result { GATE_HELD, GATE_BROKEN, GATE_UNDECIDED };

struct compare_gate {
  double change, p_corrected; /* meaningless when undecided */
  enum gate_result result;
  char why[160]; /* of an undecided one */
};

struct compare_difference {
  const char *key;                /* of the base's comparability, or the candidate's */
  const json_t *base, *candidate; /* NULL: it does not have the key */
};

struct comparison {
  const struct compare_settings *settings;
  const struct trial_list *base, *candidate;
  struct compare_metric metric[METRICS]; /* headline metrics first, in their order */
  size_t metrics, headlines;
  struct compare_gate gate[GATES_MAX];
  struct compare_difference difference[COMPARE_KEYS_MAX]; /* all allowed */
  size_t differences;
  char warning[COMPARE_WARNINGS_MAX][320];
  size_t warnings;
  size_t trials_needed; /* a side, for the headline metrics to be able to show anything; 0: there are enough */
};

/* STATUS_USAGE with one line when the sets may not be compared: an invalid trial, the same run twice, differing
 * comparability. The lists must outlive the comparison. */
enum status compare_trials(const struct trial_list *base, const struct trial_list *candidate,
    const struct compare_settings *settings, struct comparison *out, struct err *err);

/* STATUS_USAGE for an allowed key that no trial has: a typing error would allow nothing. */
enum status compare_check_allowed(const struct trial_list *base, const struct trial_list *candidate,
    const struct compare_settings *settings, struct err *err);

enum compare_verdict { VERDICT_NONE_SHOWN, VERDICT_FASTER, VERDICT_SLOWER, VERDICT_MIXED };
/* Of the headline metrics. */
enum compare_verdict compare_verdict_of(const struct comparison *comparison);
/* 0, 1 when a gate broke, 3 when one could not be decided. */
int compare_exit_code(const struct comparison *comparison);

/* The whole comparison for a person, at most 100 columns. */
enum status compare_write_text(FILE *file, const struct comparison *comparison, struct err *err);
/* The same of a saved comparison. */
enum status compare_rewrite_text(FILE *file, const struct document *document, struct err *err);
/* As docs/compare.schema.json says; content is a struct comparison. */
enum status compare_write_json(FILE *file, const void *content, struct err *err);

/* As JUnit XML: a test case for whether the sides may be compared, one for each gate; content is a compare_junit. */
struct compare_junit {
  const struct comparison *comparison;
  const char *refusal; /* why they may not; NULL: they may */
  const char *at;      /* RFC 3339 */
};
enum status compare_write_junit(FILE *file, const void *content, struct err *err);

#endif
