/* The report document: everything that a finished run says, ready to be printed as text or JSON. The load room fills
 * it; this room judges (verdict.c), prints (text.c, json.c) and gathers facts of the machine (environment.c). */
#ifndef MUSTER_REPORT_DOCUMENT_H
#define MUSTER_REPORT_DOCUMENT_H

#include "base/arena.h"
#include "base/err.h"
#include "measure/histogram.h"
#include "measure/operations.h"
#include "measure/tally.h"
#include "report/latency.h"
#include "report/workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define REPORT_SCHEMA_VERSION 2 /* docs/reports.md says what each version brought */

/* The clocks of methodology.md, in report order. */
enum report_clock {
  CLOCK_CONNECT,
  CLOCK_CONNECT_TCP,
  CLOCK_CONNECT_TLS,
  CLOCK_CONNECT_PROTOCOL,
  CLOCK_RECOVER,
  CLOCK_BACKLOG_FIRST,
  CLOCK_BACKLOG_COMPLETE,
  CLOCK_ACK,
  CLOCK_ACK_SERVICE,
  CLOCK_DELIVERY,
  CLOCK_DELIVERY_SERVICE,
  CLOCK_FANOUT_FIRST,
  CLOCK_FANOUT_COMPLETE,
  CLOCK_BROADCAST_RESULT,
  CLOCK_SCHEDULE_LAG,
  REPORT_CLOCKS
};
const char *report_clock_name(enum report_clock clock); /* "ack_service" ... */

/* Latencies of one second; count 0: nothing in that second. */
struct report_second_clock {
  uint64_t count;
  int64_t p50_ns, p99_ns, max_ns;
};

/* One second of the measure phase. */
struct report_second {
  uint64_t scheduled, attempted, acked, rejected, delivered, established, dropped;
  struct report_second_clock ack, delivery, schedule_lag;
};

struct report_environment {
  char cpu_model[128], kernel[128], hostname[128], os[128];
  uint32_t logical_cpus, usable_cpus; /* usable: by affinity and cgroup quota, rounded up */
  uint64_t memory_bytes;
  uint64_t cgroup_memory_bytes; /* 0: no limit */
  double cgroup_cpus;           /* 0: no limit */
  uint64_t nofile_soft, nofile_hard;
  char congestion_control[32];
};

struct report_target {
  char url[512], protocol[64], protocol_title[128], server_version[64];
  char ack_meaning[128], delivery[128];
  char tls[128]; /* version and cipher; "" for plain */
  bool embedded, shares_host;
  char ack_policy[32];  /* of the embedded server; "unknown" otherwise */
  char rate_limits[16]; /* "on", "off", "unknown" */
  char storage[128];    /* "SQLite, WAL, synchronous=FULL" of the embedded server, else the database label */
};

struct report_worker {
  uint32_t clients;
  double busy_share; /* of the measure phase, 0..1: time not spent waiting */
  double cpu_share;  /* CPU seconds per second of the measure phase */
  uint64_t clock_gaps, clock_gap_ns, longest_gap_ns;
  uint64_t rss_bytes;
  int32_t nice; /* scheduling priority: below 0 it goes before what else runs on the host */
  uint64_t private_bytes, private_before_bytes; /* changed pages: while holding, and before the first connection */
  bool died;
};

/* What clients that lost their connection went through (docs/counters.md, storm). */
struct report_storm {
  uint64_t lost, attempts, returned;
  struct codes failed;                      /* of the attempts */
  uint64_t first_lost_ns, last_returned_ns; /* CLOCK_MONOTONIC; 0: none */
};
void report_storm_merge(struct report_storm *into, const struct report_storm *from);
/* attempts = returned + failed; a broken identity is a bug in muster, as those of tally_check are. */
enum status report_storm_check(const struct report_storm *storm, struct err *err);

/* How the receivers of a backlog run caught up (docs/counters.md, backlog). */
struct report_backlog {
  uint64_t returned; /* receivers that were established: they have read to the end of what the server kept */
  uint64_t complete; /* of them, those that were sent something and got all of it */
  uint64_t read_ns;  /* from the first receiver's connect to the last message of any; 0: none came */
};

/* Memory before the first connection and at the end of the measure phase; 0: not known. */
struct report_memory {
  uint64_t kernel_before_bytes, kernel_held_bytes; /* slab of the whole machine, other programs' included */
  uint64_t server_before_bytes, server_held_bytes; /* private pages of the embedded server */
};

/* What one source of figures (a process, a cgroup, a metrics page) showed about once a second, from before the warm-up
 * to the end of the grace (docs/observe.md). */
enum observed_role { OBSERVED_SERVER, OBSERVED_GENERATOR, OBSERVED_OTHER };
const char *observed_role_name(enum observed_role role);
#define OBSERVED_COLUMN_MAX 128
#define OBSERVED_LABEL_MAX 96
struct report_observed {
  char source[256], label[OBSERVED_LABEL_MAX]; /* "pid:123", "musterd (embedded)" */
  char error[256];                             /* why values are missing; "" when none is */
  enum observed_role role;
  double interval_s;                   /* that was aimed at */
  char (*column)[OBSERVED_COLUMN_MAX]; /* owned */
  uint32_t columns, rows;
  double *value; /* owned; each row: its time in seconds since the measure phase began, then a value for each column;
                    NaN: not known. Rates are of the time since the row before. */
};
void report_observed_free(struct report_observed *observed);

/* One operation of a run of operations. */
struct report_operation {
  const char *name, *item;       /* item NULL: one operation does one thing */
  struct operation_tally *tally; /* owned */
};

/* What ended the measure phase. */
enum report_end {
  ENDED_BY_TIME,
  ENDED_BY_COUNT,       /* all that was asked for was answered, but for what lost senders owe */
  ENDED_BY_CAPACITY,    /* a closed loop used up the room of its accounting */
  ENDED_BY_INTERRUPTION /* a signal, or a worker that died */
};
const char *report_end_name(enum report_end end);

enum verdict { VERDICT_VALID, VERDICT_INVALID };

#define REPORT_REASONS_MAX 16

/* Who is to blame when a run is invalid: a search for the server's limit must never take the generator's for it. */
enum blame {
  BLAME_RUN,       /* the run itself: interrupted, too short for an objective, a broken identity */
  BLAME_GENERATOR, /* late, busy, without its core, or its clock is not to be trusted */
  BLAME_SERVER,    /* did not let clients in, dropped them, took or answered too little */
};

/* What the user demanded of the figures (report/slo.h), and what came of it. */
#define REPORT_OBJECTIVES_MAX 16
#define OBJECTIVE_TEXT_MAX 80
struct report_objective {
  char text[OBJECTIVE_TEXT_MAX]; /* "delivery.p99<250ms" */
  const char *unit;              /* of measured: "ns", "count", "share", "per_second", "ratio" */
  double measured;               /* meaningless unless evaluable */
  bool evaluable;                /* false: too few samples, or this run has no such clock */
  bool held;
};

/* The generator's own ceiling as `muster calibrate` found it on this machine for this shape of load. */
struct report_calibration {
  double ceiling_per_sec; /* publishes; 0: not calibrated */
  bool is_lower_bound;    /* nothing up to it broke, and nothing above it was tried */
  char measured_at[40];
};

/* The build of muster that made a report; version "": this one. */
struct report_tool {
  char version[32], commit[64];
  bool dirty;
};

/* The bounds of the verdict; lag_p99_ns 0: those of this build. */
struct report_bounds {
  int64_t lag_p99_ns;
  double busy_share, gap_share, achieved_share;
};

/* What a server's code meant, of a report that was read. */
struct report_code_name {
  int32_t code;
  const char *name;
};

struct report {
  struct report_tool tool;
  char run_id[40];
  char started_at[40], measure_started_at[40], measure_ended_at[40]; /* RFC 3339, UTC */
  struct workload workload;                                          /* with every default filled in */
  struct report_environment environment;
  struct report_target target;
  const char *limitations[12]; /* NULL-terminated list of sentences that belong to the figures */

  double setup_s, connect_s, warmup_s, measure_s, grace_s, catch_up_s; /* how long each phase really took */
  bool interrupted;
  enum report_end ended_by;
  bool has_acks;

  struct tally warmup, measure;           /* connections are in measure */
  struct histogram *clock[REPORT_CLOCKS]; /* owned; NULL: this run does not have that clock */
  /* Owned; of a file of schema version 1, which has no histograms: what it says of a clock. NULL: look at clock. */
  struct report_latency *summary[REPORT_CLOCKS];
  struct report_second *second; /* owned */
  uint32_t seconds;
  struct report_operation *operation; /* owned; those that were used; NULL: not a run of operations */
  uint32_t operations;
  struct refusals *refusals; /* owned; NULL without operations */
  uint64_t retry_hints, retry_waited_ns;
  struct report_storm storm;
  struct report_backlog backlog;
  struct report_memory memory;
  double server_cpu_s; /* of the embedded server, from the start of the measure phase to the end of the grace; 0:
                          unknown */
  struct report_worker *worker; /* owned */
  uint32_t workers;
  struct report_observed *observed; /* owned */
  uint32_t observations;
  const char *(*code_text)(int32_t code); /* text for a server's code, or NULL */
  const char *const *server_counters;     /* names of the tallies' extras, NULL behind the last; NULL: none */
  struct report_code_name *code_name;     /* owned by texts; goes before code_text */
  uint32_t code_names;
  struct arena texts; /* of a report that was read */

  /* Derived by report_judge. */
  double fan_out, acks_per_second, deliveries_per_second, connections_per_second, attempts_per_second;
  struct report_bounds bounds;
  enum verdict verdict;
  char reason[REPORT_REASONS_MAX][256];
  enum blame blame[REPORT_REASONS_MAX]; /* of each reason */
  uint32_t reasons;
  struct report_objective objective[REPORT_OBJECTIVES_MAX]; /* by slo_judge */
  uint32_t objectives;
  struct report_calibration calibration; /* by calibrate_note */
};

void report_free(struct report *report);

/* What the report says of a clock; false: this run does not have it. */
bool report_latency(const struct report *report, enum report_clock clock, struct report_latency *out);

/* A short name for a code in a tally, or NULL. */
const char *report_code_text(const struct report *report, int32_t code);

struct report_tool report_tool_of(const struct report *report);

/* Clients that were established before the traffic: without the receivers of a backlog run. */
uint64_t report_early(const struct report *report);

/* Publishes a second that the schedule asked for, on average over the measure phase; 0 for closed loops. */
double report_asked_rate(const struct report *report);

/* Gathers facts of this machine (CPU, memory, kernel, cgroup limits, nofile). */
void report_environment_read(struct report_environment *out);

/* Computes rates and fan-out, checks every identity, and decides (methodology.md, Verdict). Never fails: what is
 * wrong becomes a reason. */
void report_judge(struct report *report);
/* Adds a reason and makes the verdict invalid. */
void report_blame(struct report *report, enum blame blame, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Bounds of the verdict, printed in the JSON report beside it. */
#define VERDICT_LAG_P99_NS (5 * 1000 * 1000)
#define VERDICT_BUSY_SHARE 0.90
#define VERDICT_GAP_SHARE 0.05
#define VERDICT_ACHIEVED_SHARE 0.99

/* 0 valid with every objective held, 1 valid with one that was not, 3 invalid (methodology.md, Verdict). */
int report_exit_code(const struct report *report);

/* The workload in a paragraph, as the text report says it. */
void report_write_workload(FILE *file, const struct workload *workload);
/* What was measured for an evaluable objective, with its unit. */
void report_format_measured(char out[40], const struct report_objective *objective);
/* The whole report for a person, at most 100 columns. */
enum status report_write_text(FILE *file, const struct report *report, struct err *err);
/* As docs/report.schema.json says: keys in a fixed order, two-space indent, newline at the end. */
enum status report_write_json(FILE *file, const struct report *report, struct err *err);

#endif
