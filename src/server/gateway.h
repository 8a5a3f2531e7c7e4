/* A gateway: one thread with one event loop, its own listeners on the shared WebSocket port (SO_REUSEPORT), a slab of
 * sessions and, where one table of open files would not hold all connections, a table of its own. It turns frames into
 * requests to the core and the core's results into frames (session.h). Everything here belongs to the gateway's thread
 * but the port, the statistics and the phase. */
#ifndef MUSTER_SERVER_GATEWAY_H
#define MUSTER_SERVER_GATEWAY_H

#include "base/rng.h"
#include "net/stream.h"
#include "net/tls.h"
#include "server/core.h"
#include "server/doors.h"
#include "server/metrics.h"
#include "server/server.h"
#include "server/slab.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum gateway_phase {
  GATEWAY_RUNNING,
  GATEWAY_DRAINING, /* accepts and reads no more; nothing is posted to the core from now on */
  GATEWAY_FLUSHING, /* the core has ended: writes what is left, closes every session, ends */
};

struct gateway {
  const struct server_config *config;
  struct core *core;
  const struct metrics_source *metrics;
  struct gateway_port port;
  struct loop *loop;
  struct doors doors;
  struct tls_context *tls;
  struct watch port_watch;    /* results of the core */
  struct watch control_watch; /* a new phase */
  struct slab slab;
  struct gateway_stats stats;
  struct rng rng;
  uint64_t request_interval_ns; /* one token of the limiter */
  uint16_t number;
  pthread_t thread;
  bool started;
  bool own_table;                   /* of open files (descriptors.h) */
  uint32_t connections_max;         /* what that table has room for */
  int control_fd;                   /* an eventfd: a new phase */
  struct door_addresses *addresses; /* where to listen; of the caller of gateway_start */
  sem_t opened;                     /* posted once by the thread: status and err tell how its opening went */
  enum status status;
  struct err err;
  atomic_bool drops;  /* asked for: every session ends */
  atomic_int phase;   /* asked for */
  atomic_int reached; /* acted upon */
  uint64_t flush_until_ns;
};

/* Opens the port to the core and the control; nothing else runs yet. The gateway must stay where it is. */
enum status gateway_init(struct gateway *gateway, uint16_t number, const struct server_config *config, struct err *err);

/* Starts the thread and returns once it listens (addresses as in doors_open) or has failed to. */
enum status gateway_start(struct gateway *gateway, struct core *core, const struct metrics_source *metrics,
    struct door_addresses *addresses, struct err *err);

/* What the thread does first and last, for a caller that turns the loop itself: opens the loop and the doors (core,
 * metrics and addresses must be set) and gives them back. All in one thread, whose table of open files may change. */
enum status gateway_open(struct gateway *gateway, struct err *err);
void gateway_close(struct gateway *gateway);

/* Asks for a phase; gateway_wait returns once the gateway has acted upon it (the thread has ended for FLUSHING). */
void gateway_enter(struct gateway *gateway, enum gateway_phase phase);
void gateway_wait(struct gateway *gateway, enum gateway_phase phase);

/* Asks for the end of every session; the gateway goes on. */
void gateway_drop_sessions(struct gateway *gateway);

/* Gives back everything; the thread must have ended or never have run. */
void gateway_free(struct gateway *gateway);

#endif
