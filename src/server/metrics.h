/* What musterd counts about itself, and the JSON snapshot of it (GET /metrics of the WebSocket port). */
#ifndef MUSTER_SERVER_METRICS_H
#define MUSTER_SERVER_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct core;
struct gateway;
struct ricochet_house;
struct shootout;

/* Written by one gateway thread, read by anyone. */
struct gateway_stats {
  atomic_uint_fast64_t connections; /* open now */
  atomic_uint_fast64_t sessions;    /* logged in now */
  atomic_uint_fast64_t accepted, upgraded, logins, login_failures, frames_in, publishes, queries, acks_in, pushes,
      notices, notices_coalesced, copies, states, states_dropped, room_notices_written, room_notices_dropped,
      rate_limited, protocol_errors, deadlines, slow_readers_dropped, kicked,
      refused /* at accept: the gateway holds as many as it may */, pauses /* of reading, for back-pressure */;
  atomic_uint_fast64_t output_peak; /* most bytes that ever waited for one session */
};

static inline void stat_add(atomic_uint_fast64_t *counter, uint64_t count) {
  atomic_fetch_add_explicit(counter, count, memory_order_relaxed);
}
static inline void stat_sub(atomic_uint_fast64_t *counter, uint64_t count) {
  atomic_fetch_sub_explicit(counter, count, memory_order_relaxed);
}

struct metrics_source {
  struct gateway *gateways;
  uint32_t gateway_count;
  const struct core *core;
  const char *data_dir;
  uint64_t started_ns;
  const struct shootout *shootout;       /* NULL: not served */
  const struct ricochet_house *ricochet; /* NULL: not served */
  bool is_durable;
};

/* The snapshot as JSON text, to be freed; NULL when memory is out. */
char *metrics_json(const struct metrics_source *source);

#endif
