/* Keep-alives of a worker leave in bundles, each bundle a small part of the interval apart, and the workers one after
 * the other: what comes together is read and answered together, which costs far less than one by one. */
#ifndef MUSTER_LOAD_BUNDLE_H
#define MUSTER_LOAD_BUNDLE_H

#include <stdint.h>

#define BUNDLES_PER_INTERVAL 128

/* When a client whose keep-alive leaves now sends its next one: at a bundle of its worker, at most one interval and
 * more than 127/128 of it away. */
static inline uint64_t bundle_next_ns(uint64_t now_ns, uint64_t interval_ns, uint32_t worker, uint32_t workers) {
  uint64_t bundle_ns = interval_ns / BUNDLES_PER_INTERVAL, next_ns = now_ns + interval_ns;
  if (bundle_ns == 0) return next_ns;
  uint64_t offset_ns = bundle_ns * worker / workers;
  return next_ns - (next_ns - offset_ns) % bundle_ns;
}

#endif
