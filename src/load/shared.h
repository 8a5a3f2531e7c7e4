/* Plan and shared memory of a run. The plan is made before the fork and read-only afterwards, so that workers inherit
 * it; the mapping holds the control block (written by the control process), one area per worker (written by that worker
 * alone), and the ledgers. Nothing is locked. */
#ifndef MUSTER_LOAD_SHARED_H
#define MUSTER_LOAD_SHARED_H

#include "base/err.h"
#include "driver/driver.h"
#include "load/pacer.h"
#include "load/topology.h"
#include "measure/histogram.h"
#include "measure/ledger.h"
#include "measure/operations.h"
#include "measure/series.h"
#include "measure/tally.h"
#include "net/address_range.h"
#include "net/loop.h"
#include "report/document.h"

#include <stdatomic.h>

enum traffic_phase { TRAFFIC_WARM_UP, TRAFFIC_MEASURE, TRAFFIC_PHASES };

enum stage {
  STAGE_CONNECT,
  STAGE_TRAFFIC,  /* start_ns and end_ns are set: warm-up, measure and grace follow by the clock */
  STAGE_CATCH_UP, /* of a backlog run: connect_deadline_ns is set anew, and the receivers connect */
  STAGE_TEARDOWN, /* settle what is open, say good-bye, end */
  STAGE_ABORT,    /* settle what is open as interrupted, end at once */
};

struct control {
  _Atomic uint32_t stage; /* enum stage */
  _Atomic uint64_t connect_deadline_ns;
  _Atomic uint64_t start_ns[TRAFFIC_PHASES];
  _Atomic uint64_t end_ns[TRAFFIC_PHASES]; /* moves, to an earlier time, only when a phase is cut short */
};

enum worker_state {
  WORKER_STARTED,
  WORKER_CONNECTED,    /* every client is established or has failed */
  WORKER_TRAFFIC_OVER, /* all slots of both phases were handed out */
  WORKER_CAUGHT_UP,    /* of a backlog run: every receiver is established or has failed */
  WORKER_ENDED,        /* everything is settled and written here */
};

struct worker_area {
  _Atomic uint32_t state; /* enum worker_state */
  uint32_t clients;
  struct tally tally[TRAFFIC_PHASES];
  uint64_t delivered[TRAFFIC_PHASES]; /* first deliveries, for the live display */
  struct loop_stats live, measured;   /* measured: of the measure phase */
  uint64_t connect_started_ns, connect_ended_ns;
  uint64_t measured_ns, cpu_ns; /* how long the worker saw the measure phase, and its CPU time in it */
  uint64_t rss_bytes;
  int32_t nice; /* what the kernel granted */
  uint64_t private_bytes, private_before_bytes;
  struct report_storm storm;
  char tls[128];
  char error[256]; /* why the worker could not go on; "" when it could */
  /* Of closed loops. */
  _Atomic uint64_t done_ns;         /* when the last of its senders had its last answer; 0: not yet, or no limit */
  _Atomic uint32_t out_of_capacity; /* a sender used up its slots before the time was over */
  struct histogram clock[REPORT_CLOCKS];
  struct operations operations;
};

/* Of one receiver of a backlog run, in clock_now_ns time; 0: not (yet). Written by its worker. */
struct catch_up {
  uint64_t started_ns, established_ns; /* of its connect */
  uint64_t first_ns, last_ns;          /* of its messages of the measure phase */
};

struct shared {
  void *memory;
  size_t size;
  struct control *control;
  struct worker_area *area; /* one per worker */
  struct series **series;   /* one per worker; the array is owned, outside the mapping */
  struct ledger *ledger[TRAFFIC_PHASES];
  struct catch_up *catch_up; /* one per receiver, client senders + i; NULL: no backlog run */
};

struct plan {
  const struct workload *workload;
  const struct driver *driver;
  struct driver_run run;
  struct topology topology;
  enum answer answer;
  bool closed; /* answers make publishes fall due, and not the schedules */
  struct schedule schedule[TRAFFIC_PHASES];
  struct shared shared;
  uint32_t workers;
  struct address_ranges sources; /* client i connects from address i % count; count 0: as the kernel chooses */
  struct address_ranges targets; /* and to one of these, so that all pairs are used alike; count 0: run.address */
};

/* Makes the schedules and the mapping; plan->workload, topology and workers are set. */
enum status plan_make(struct plan *plan, struct err *err);
void plan_free(struct plan *plan);

/* The schedule of one phase; of a closed loop only its slots, which are room and not a promise. */
enum status plan_schedule(
    const struct workload *workload, enum traffic_phase phase, struct schedule *out, struct err *err);
/* Publishes a second that the accounting of closed loops has room for. */
double plan_max_rate(const struct workload *workload);

/* Closed loops of a number of publishes: true when those of all workers are through, in the measure phase, which then
 * ends with the last answer. */
bool plan_end_loops(const struct plan *plan);

/* How many workers a workload gets: as asked, else one per usable core and more where the descriptor limit asks. */
uint32_t plan_workers(const struct workload *workload, uint64_t nofile);
/* Descriptors that a worker needs beside its connections. */
#define WORKER_DESCRIPTORS 32

/* Rows of the per-second series. */
uint32_t plan_seconds(const struct workload *workload);

/* Memory that workers and ledgers will take, for the check before the start; without the kernel's. */
enum status plan_memory_bytes(
    const struct workload *workload, const struct driver *driver, uint64_t *bytes, struct err *err);

/* A counter that another process is writing. */
static inline uint64_t peek(const uint64_t *counter) {
  return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif
