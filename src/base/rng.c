#include "base/rng.h"

#include <stdlib.h>
#include <sys/random.h>
#include <sys/types.h>

static uint64_t splitmix(uint64_t *x) {
  uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int k) {
  return (x << k) | (x >> (64 - k));
}

void rng_seed(struct rng *rng, uint64_t seed) {
  for (int i = 0; i < 4; i++)
    rng->state[i] = splitmix(&seed);
}

uint64_t rng_next(struct rng *rng) {
  uint64_t *s = rng->state;
  uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
  uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = rotate_left(s[3], 45);
  return result;
}

double rng_double(struct rng *rng) {
  return (double)(rng_next(rng) >> 11) * 0x1.0p-53;
}

uint64_t rng_below(struct rng *rng, uint64_t bound) {
  return (uint64_t)(((unsigned __int128)rng_next(rng) * bound) >> 64);
}

void random_bytes(void *out, uint32_t len) {
  uint8_t *at = out;
  while (len > 0) {
    ssize_t got = getrandom(at, len, 0);
    if (got <= 0) continue; /* interrupted: getrandom(flags 0) fails in no other way */
    at += got;
    len -= (uint32_t)got;
  }
}
