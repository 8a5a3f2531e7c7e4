/* Seeded random numbers (xoshiro256++): the same seed gives the same schedule on every machine. Not for secrets. */
#ifndef MUSTER_BASE_RNG_H
#define MUSTER_BASE_RNG_H

#include <stdint.h>

struct rng {
  uint64_t state[4];
};

void rng_seed(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
/* Uniform in [0, 1). */
double rng_double(struct rng *rng);
/* Uniform in [0, bound); bound > 0. */
uint64_t rng_below(struct rng *rng, uint64_t bound);

/* Bytes from the kernel, for keys, tokens and run ids. */
void random_bytes(void *out, uint32_t len);

#endif
