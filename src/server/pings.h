/* When musterd asks a session by Ping whether it is there. The automatic interval is 5 s, and longer where that would
 * be more than 5,000 Pings a second over all gateways, two thirds of the read deadline at most. Where it is longer, who
 * was heard within it is not asked. */
#ifndef MUSTER_SERVER_PINGS_H
#define MUSTER_SERVER_PINGS_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

#define PINGS_INTERVAL_MIN_MS 5000
#define PINGS_PER_SEC 5000

struct ping_rule {
  uint32_t asked_ms; /* an interval given by the user, which stays as it is; 0: automatic */
  uint32_t read_deadline_ms;
};

/* sessions: of all gateways together. */
static inline uint64_t ping_interval_ns(const struct ping_rule *rule, uint64_t sessions) {
  if (rule->asked_ms) return rule->asked_ms * NS_PER_MS;
  uint64_t interval_ms = sessions * 1000 / PINGS_PER_SEC;
  uint64_t most_ms = rule->read_deadline_ms / 3 * 2; /* the answer must come in time */
  if (interval_ms > most_ms) interval_ms = most_ms;
  if (interval_ms < PINGS_INTERVAL_MIN_MS) interval_ms = PINGS_INTERVAL_MIN_MS;
  return interval_ms * NS_PER_MS;
}

/* Whether a session whose turn has come is passed over; next_ns: when it is looked at again. heard_ns: its last input.
 */
static inline bool ping_passes_over(
    const struct ping_rule *rule, uint64_t interval_ns, uint64_t heard_ns, uint64_t now_ns, uint64_t *next_ns) {
  bool stretched = rule->asked_ms == 0 && interval_ns > PINGS_INTERVAL_MIN_MS * NS_PER_MS;
  bool heard = stretched && heard_ns + interval_ns > now_ns;
  *next_ns = (heard ? heard_ns : now_ns) + interval_ns;
  return heard;
}

#endif
