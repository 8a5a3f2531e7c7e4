#include "base/clock.h"

#include <time.h>

uint64_t clock_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * NS_PER_SEC + (uint64_t)now.tv_nsec;
}

int64_t clock_wall_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * (int64_t)NS_PER_SEC + now.tv_nsec;
}

int64_t clock_wall_ms(void) {
  return clock_wall_ns() / (int64_t)NS_PER_MS;
}
