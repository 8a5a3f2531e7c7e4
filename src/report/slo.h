/* Objectives: what a user demands of a run's figures, in the report's own names, as in
 *   delivery.p99<250ms   lost=0   lost<=0.1%   deliveries_per_second>=50k   connections.failed=0
 *   put_document.p99<20ms   batch_put.items_per_second>=5k   error_rate<=1%   storm.all_back_s<10
 * A clock's value is a time with its unit; a counter's is a number, or a share of what it is a part of (%); a rate's
 * and other figures' are numbers. Operators are < <= > >= and =. */
#ifndef MUSTER_REPORT_SLO_H
#define MUSTER_REPORT_SLO_H

#include "report/document.h"

#include <stdio.h>

enum slo_operator { SLO_BELOW, SLO_AT_MOST, SLO_ABOVE, SLO_AT_LEAST, SLO_EQUAL };
enum slo_statistic { SLO_PERCENTILE, SLO_MEAN, SLO_MIN, SLO_MAX };
enum slo_kind { SLO_CLOCK, SLO_OPERATION_CLOCK, SLO_OPERATION_RATE, SLO_COUNTER, SLO_FIGURE };

struct slo {
  char text[OBJECTIVE_TEXT_MAX]; /* as given, without blanks */
  enum slo_kind kind;
  enum report_clock clock;       /* of SLO_CLOCK */
  enum operation_kind operation; /* of SLO_OPERATION_... */
  enum slo_statistic statistic;  /* of clocks */
  double percentile;             /* of SLO_PERCENTILE: above 0, below 100 */
  uint32_t row;                  /* of the others: in their table */
  enum slo_operator operator;
  bool is_share; /* the value is a share (0.001 for 0.1%) of what the counter is a part of */
  double value;  /* ns for clocks */
};

struct slo_list {
  struct slo slo[REPORT_OBJECTIVES_MAX];
  uint32_t count;
};

/* Adds one or several objectives, separated by commas, to the list. STATUS_USAGE with one line: which, at which
 * character, and what is possible there. */
enum status slo_parse(const char *text, struct slo_list *list, struct err *err);

/* What an objective can name, for a person. */
void slo_list_names(FILE *file);

/* Measures each objective on a judged report and notes the outcome in it. One that cannot be measured (fewer than
 * FEW_SAMPLES values beyond its percentile, no such clock in this run) makes the report invalid. */
void slo_judge(const struct slo_list *list, struct report *report);

/* How many values a clock must have before its percentile may be judged; 1 for other statistics, 0 for counters and
 * rates. */
double slo_samples_needed(const struct slo *slo);

#endif
