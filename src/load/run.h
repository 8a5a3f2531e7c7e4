/* A run: provisions the population, forks the workers, leads them through the phases connect, warm-up, measure, grace
 * and teardown (in a backlog run catch-up before it), each with a deadline, merges what they counted and fills a report
 * (methodology.md, Phases). */
#ifndef MUSTER_LOAD_RUN_H
#define MUSTER_LOAD_RUN_H

#include "base/err.h"
#include "driver/driver.h"
#include "load/observe_spec.h"
#include "measure/series.h"
#include "report/document.h"

#include <sys/types.h>

enum run_phase { RUN_SETUP, RUN_CONNECT, RUN_WARM_UP, RUN_MEASURE, RUN_GRACE, RUN_CATCH_UP, RUN_TEARDOWN };
const char *run_phase_name(enum run_phase phase);

/* What a live display is told, about every 200 ms and at each change of phase. */
struct run_progress {
  enum run_phase phase;
  double phase_elapsed_s, phase_length_s; /* length 0: unknown */
  uint64_t clients, established, failed;
  uint64_t dropped;
  uint64_t scheduled, attempted, acked, rejected, timed_out, delivered; /* of the current traffic phase */
  bool has_acks;
  double fan_out; /* deliveries that one publish should bring, on average; 0: none or not known */
  int64_t ack_p50_ns, ack_p99_ns, delivery_p50_ns, delivery_p99_ns; /* of the last whole second; 0: none */
  double worst_busy_share;
};

/* A descriptor that is watched while the run goes on, so that a display can be served without a thread. */
struct run_watch {
  int fd; /* -1: none */
  void (*ready)(void *context);
};

/* A second of the measure phase; the last one may be shorter. */
struct run_second {
  uint32_t second;
  double length_s;
  const struct report_second *figures;
  const struct histogram *clock; /* SERIES_CLOCKS of them */
};

/* What each second brought, told when a second more has passed, at the latest when all is over. Called by the control
 * process. */
struct run_seconds {
  void (*over)(void *context, const struct report *report, const struct run_second *told); /* may be NULL */
  void *context;
};

struct run_options {
  const struct workload *workload;
  const struct driver *driver;
  const char *target;                 /* URL to drive: workload->target or the embedded server's */
  const char *api_url;                /* or NULL */
  const char *app_key;                /* or NULL */
  const char *secret;                 /* or NULL */
  const char *password;               /* of workload->user, or NULL */
  pid_t server_pid;                   /* of the embedded server, which is observed; 0: none */
  const struct observe_list *observe; /* besides what is observed anyway; NULL: nothing */
  /* 0: go on. 1: end the current phase early, skip to the grace, and still report. 2: give up at once. Set by a
   * signal handler. */
  const volatile int *interrupted;
  void (*progress)(void *context, const struct run_progress *progress); /* may be NULL */
  struct run_watch watch;                                               /* ready gets the context; must not block */
  void *context;
  struct run_seconds seconds;
};

/* Checks a workload against itself, a driver and this machine (descriptors, memory, source ports) before anything is
 * started: impossible combinations get STATUS_USAGE with one line that says how to mend it. */
enum status run_check(const struct workload *workload, const struct driver *driver, struct err *err);

/* Runs and fills *report (zeroed by this call; report_free it on OK). Not judged yet. STATUS_UNREACHABLE when the
 * target cannot be reached or refuses us, STATUS_INTERRUPTED when given up before anything was measured. A run that
 * went wrong later is OK here: its report says so. */
enum status run_execute(const struct run_options *options, struct report *report, struct err *err);

#endif
