/* A worker: one process with one loop, which owns the clients index % workers == its number, and leads them through
 * the run as the control block says. */
#ifndef MUSTER_LOAD_WORKER_H
#define MUSTER_LOAD_WORKER_H

#include "base/rng.h"
#include "load/client.h"
#include "load/shared.h"

struct worker {
  struct plan *plan;
  struct control *control;
  struct worker_area *area;
  struct series *series;
  struct loop *loop;
  uint8_t *clients; /* owned: client_stride bytes each */
  size_t stride;
  uint32_t number, count;
  uint32_t started;                  /* clients whose connect was started */
  uint32_t connect_from, connect_to; /* clients that connect now; in a backlog run the receivers wait */
  uint32_t in_progress;              /* of them not yet decided */
  uint32_t in_progress_max;
  uint64_t connecting_ns; /* when connecting began */
  bool in_traffic;
  struct rng rng;
  struct pacer_hook hook;
  struct pacer pacer;
  uint32_t phase; /* enum traffic_phase that is being paced; TRAFFIC_PHASES: none any more */
  /* Of closed loops. */
  uint32_t kicked;     /* clients that were started in the phase */
  uint32_t unfinished; /* senders that still have something to send or to await, where a number ends the phase */
};

static inline struct load_client *worker_client(const struct worker *worker, uint32_t local) {
  return (struct load_client *)(worker->clients + (size_t)local * worker->stride);
}

/* Whether the traffic has begun. A worker may hear of it from a message of another one before it has looked at the
 * control block: it starts then. */
bool worker_in_traffic(struct worker *worker);

/* The whole life of a forked worker; the caller exits afterwards. */
void worker_main(struct plan *plan, uint32_t number);

#endif
