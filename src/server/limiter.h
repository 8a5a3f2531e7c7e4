/* A token bucket in eight bytes: it stores when the next token is due (generic cell rate algorithm), so that a full
 * bucket is all zero. */
#ifndef MUSTER_SERVER_LIMITER_H
#define MUSTER_SERVER_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

struct limiter {
  uint64_t due_ns;
};

/* Takes a token if there is one. interval_ns: time in which one token grows; burst: what the bucket holds (>= 1). */
static inline bool limiter_take(struct limiter *limiter, uint64_t now_ns, uint64_t interval_ns, uint32_t burst) {
  uint64_t due = limiter->due_ns > now_ns ? limiter->due_ns : now_ns;
  if (due - now_ns > interval_ns * (burst - 1)) return false;
  limiter->due_ns = due + interval_ns;
  return true;
}

#endif
