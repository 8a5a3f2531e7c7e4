/* Series: what happened in each second of a phase. Counters are plain columns of one row a second; latencies use a
 * small ring of interval histograms that the control process empties a second later, so memory does not grow with
 * the run. One struct series per worker, flat, in shared memory; written by that worker only. */
#ifndef MUSTER_MEASURE_SERIES_H
#define MUSTER_MEASURE_SERIES_H

#include "measure/histogram.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum series_column {
  SERIES_SCHEDULED,
  SERIES_ATTEMPTED,
  SERIES_ACKED,
  SERIES_REJECTED,
  SERIES_DELIVERED, /* first arrivals, whether their publish is acked or not */
  SERIES_ESTABLISHED,
  SERIES_DROPPED,
  SERIES_COLUMNS
};

enum series_clock { SERIES_ACK, SERIES_DELIVERY, SERIES_LAG, SERIES_CLOCKS };

#define SERIES_RING 8 /* seconds that a reader may be late */

struct series_interval {
  _Atomic uint64_t second; /* 1 + the second that the histograms hold; 0: none */
  struct histogram clock[SERIES_CLOCKS];
};

struct series {
  uint64_t t0_ns;
  uint32_t seconds; /* rows */
  struct series_interval ring[SERIES_RING];
  uint64_t rows[][SERIES_COLUMNS];
};

/* A series has one row at least. series_init takes zeroed, 64-byte aligned memory of series_size bytes. */
size_t series_size(uint32_t seconds);
struct series *series_init(void *memory, uint32_t seconds);
void series_start(struct series *series, uint64_t t0_ns);

/* Events before t0 or beyond the last row are left out, and so is a value of a second whose place in the ring is taken
 * by a later one. */
void series_count(struct series *series, enum series_column column, uint64_t now_ns, uint64_t count);
void series_record(struct series *series, enum series_clock clock, uint64_t now_ns, int64_t value_ns);

/* The reader's side (control process): adds second's interval histogram of one worker to out. False when the
 * worker has recorded nothing in it or has already reused the place (the reader came too late). */
bool series_take(const struct series *series, uint32_t second, enum series_clock clock, struct histogram *out);

#endif
