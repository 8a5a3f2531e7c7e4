/* Clocks. Every latency is a difference of two clock_now_ns readings on one host (methodology.md, Clocks). */
#ifndef MUSTER_BASE_CLOCK_H
#define MUSTER_BASE_CLOCK_H

#include <stdint.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_SEC UINT64_C(1000000000)

/* CLOCK_MONOTONIC in nanoseconds; about 28 ns a call. */
uint64_t clock_now_ns(void);

/* Unix time in milliseconds or nanoseconds, for protocol time stamps only, never for a latency. */
int64_t clock_wall_ms(void);
int64_t clock_wall_ns(void);

#endif
