/* Pacer: the arrival process of one phase. The schedule is a pure function of rate, length and seed: it is known
 * before the run, every worker derives the same one, and nothing that a server does can change it. Publishes are
 * numbered in order of time (slots); slot k belongs to sender k % senders and is its message k / senders.
 * The rate may change: what is owed up to a moment is its integral, and the k-th publish falls due when k are owed
 * (constant), or when the k-th sum of random gaps of mean 1 is (Poisson). */
#ifndef MUSTER_LOAD_PACER_H
#define MUSTER_LOAD_PACER_H

#include "base/err.h"
#include "base/rng.h"
#include "report/workload.h"

#include <stdbool.h>
#include <stdint.h>

/* Poisson arrivals are sums of random gaps; a checkpoint every so many slots makes any slot cheap to look up. */
#define SCHEDULE_CHECKPOINT_SLOTS 256

struct schedule_checkpoint {
  struct rng rng; /* before the gap that follows the slot */
  double owed;    /* at the slot */
};

/* Where a segment begins. */
struct schedule_segment {
  double from_per_sec, to_per_sec;
  uint64_t length_ns;
  long double start_ns, owed;
};

struct schedule {
  enum arrivals arrivals;
  struct schedule_segment segment[WORKLOAD_STEPS_MAX];
  uint32_t segments;
  uint64_t length_ns;                     /* of all segments, or up to the slot after slots_max */
  uint64_t slots;                         /* all that fall due before length_ns */
  struct schedule_checkpoint *checkpoint; /* owned; NULL for constant arrivals */
};

/* What a schedule is made from. */
struct schedule_plan {
  enum arrivals arrivals;
  const struct rate_segment *segment;
  uint32_t segments; /* 0: nothing falls due */
  uint64_t seed;
  uint64_t slots_max; /* the schedule ends after so many; 0: with its segments */
};

/* STATUS_USAGE when there would be more than SCHEDULE_SLOTS_MAX slots. */
#define SCHEDULE_SLOTS_MAX (UINT64_C(1) << 31)
enum status schedule_make(struct schedule *out, const struct schedule_plan *plan, struct err *err);
void schedule_free(struct schedule *schedule);

/* When a slot is due, as an offset from the start of the phase. Constant arrivals at a constant rate: slot / rate,
 * exactly, without a sum that could drift. */
uint64_t schedule_offset_ns(const struct schedule *schedule, uint64_t slot);

/* One worker's walk through its own slots, in order of time. Senders are dealt out: sender s belongs to worker
 * s % workers. */
struct pacer {
  const struct schedule *schedule;
  uint32_t senders, workers, worker;
  uint64_t slot;      /* the worker's next; schedule->slots when there are no more */
  uint64_t offset_ns; /* when it is due; UINT64_MAX at the end */
  uint32_t sender;    /* whose it is */
  uint32_t sequence;
  struct rng rng;
  double owed; /* of Poisson arrivals: at the slot */
};

void pacer_start(
    struct pacer *pacer, const struct schedule *schedule, uint32_t senders, uint32_t workers, uint32_t worker);
void pacer_next(struct pacer *pacer);

/* What one sender owes: messages fall due in order of their sequence, and leave in that order. A sender that cannot
 * send keeps a number, not a queue: [sent, due) is its backlog. */
struct backlog {
  uint32_t due;  /* sequence that falls due next */
  uint32_t sent; /* sequence to send next */
};

static inline uint32_t backlog_size(const struct backlog *backlog) {
  return backlog->due - backlog->sent;
}

#endif
