/* Finding a capacity: carries out a search (search.h) by runs, each on a fresh population, and keeps what every step
 * showed: the capacity curve. The subject is the server, whose steps are judged by objectives, or the generator itself
 * (calibration against a null peer), whose steps are judged by the verdict alone. */
#ifndef MUSTER_LOAD_FIND_H
#define MUSTER_LOAD_FIND_H

#include "load/search.h"
#include "report/document.h"
#include "report/read.h"
#include "report/slo.h"

#define FIND_SCHEMA_VERSION 1
#define FIND_TESTS_MAX 100
#define FIND_DOUBT_GAP_SHARE 0.01 /* of a measure phase that a worker lost to clock gaps: a break then is doubtful */

enum find_vary { FIND_RATE, FIND_CLIENTS };
enum find_subject { FIND_SERVER, FIND_GENERATOR };

struct find_clock {
  bool known; /* the run has the clock and it has values */
  bool few;   /* too few for the p99 */
  int64_t p50_ns, p99_ns;
};

#define FIND_SHARES 2 /* of the capacity that are run afterwards: half and nine tenths */

struct find_step {
  double load;
  bool full_length;
  enum search_outcome outcome;
  bool generator_limited; /* its run was invalid by the generator's own doing */
  char why[256];          /* "" when it held */
  char run_id[40];
  double rate_per_sec, length_s;
  uint32_t clients;
  bool has_report; /* false: the run could not be carried out, and why says more; the rest is zero */
  double attempts_per_second, acks_per_second, deliveries_per_second, busy_share;
  uint64_t rejected, timed_out, unsent, lost, dropped;
  struct find_clock ack, delivery, schedule_lag;
  struct report_objective objective[REPORT_OBJECTIVES_MAX];
  uint32_t objectives;
};

struct find_settings {
  enum find_vary vary;
  enum find_subject subject;
  struct search_settings search;
  const struct workload *workload; /* of every step, but for what varies and the length */
  const struct slo_list *objectives;
  bool takes_shares;          /* runs at shares of the capacity when it is known */
  uint64_t short_ns, full_ns; /* measure phase of most steps, of the last ones */
  /* Carries out one run and judges it, objectives included. */
  enum status (*run)(void *context, const struct workload *workload, struct report *report, struct err *err);
  void (*ended)(void *context, const struct find_step *step); /* after each step */
  void *context;
};

struct find {
  struct find_settings settings;
  struct search search;
  struct find_step step[FIND_TESTS_MAX];
  uint32_t steps;
  struct find_step share[FIND_SHARES]; /* no part of the search */
  uint32_t shares;
  bool interrupted;
  char id[40], started_at[40]; /* of the first run */
  struct report_environment environment;
  struct report_target target;
  bool has_acks;
  char told[1024]; /* the answer of a saved search; "": it is made of the search */
};

/* Measure phase that a step at this load needs, so that every objective's percentile has its samples; at least the
 * length that was asked for. */
uint64_t find_length_ns(const struct find_settings *settings, double load, bool full_length);

/* Searches. STATUS_USAGE for settings that make no sense; an error of the first run ends the search with it, one of a
 * later run is a step that broke (the server was not to be reached any more) or said nothing. */
enum status find_run(struct find *find, const struct find_settings *settings, struct err *err);

/* What a run says about the subject; why gets the reason, "" when it held. */
enum search_outcome find_judge(enum find_subject subject, const struct report *report, char why[256]);

/* The exit code of a search for the server's capacity: 0 when it was found (or nothing broke), 1 when no load held,
 * 3 when there is no answer. */
int find_exit_code(const struct find *find);

/* One line of a table, its head, and the answer below it; for a person. */
void find_write_head(FILE *file, const struct find_settings *settings);
void find_write_step(FILE *file, const struct find_settings *settings, uint32_t number, const struct find_step *step);
enum status find_write_answer(FILE *file, const struct find *find, struct err *err);
/* All of that, of a search that was saved. */
enum status find_from_document(const struct document *document, struct find *out, struct err *err);
enum status find_write_text(FILE *file, const struct find *find, struct err *err);
/* As docs/find.schema.json says; content is a struct find. */
enum status find_write_json(FILE *file, const void *content, struct err *err);

#endif
