#include "measure/series.h"

#include "base/clock.h"

size_t series_size(uint32_t seconds) {
  uint32_t rows = seconds ? seconds : 1;
  return sizeof(struct series) + (size_t)rows * SERIES_COLUMNS * sizeof(uint64_t);
}

struct series *series_init(void *memory, uint32_t seconds) {
  struct series *series = memory;
  series->seconds = seconds ? seconds : 1;
  return series;
}

void series_start(struct series *series, uint64_t t0_ns) {
  series->t0_ns = t0_ns;
}

/* series->seconds: in no row. */
static uint32_t second_of(const struct series *series, uint64_t now_ns) {
  if (now_ns < series->t0_ns) return series->seconds;
  uint64_t second = (now_ns - series->t0_ns) / NS_PER_SEC;
  return second < series->seconds ? (uint32_t)second : series->seconds;
}

void series_count(struct series *series, enum series_column column, uint64_t now_ns, uint64_t count) {
  uint32_t second = second_of(series, now_ns);
  if (second < series->seconds) series->rows[second][column] += count;
}

static void reuse(struct series_interval *interval, uint64_t stamp) {
  atomic_store_explicit(&interval->second, 0, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
  for (int i = 0; i < SERIES_CLOCKS; i++)
    histogram_clear(&interval->clock[i]);
  atomic_store_explicit(&interval->second, stamp, memory_order_release);
}

void series_record(struct series *series, enum series_clock clock, uint64_t now_ns, int64_t value_ns) {
  uint32_t second = second_of(series, now_ns);
  if (second == series->seconds) return;
  uint64_t stamp = (uint64_t)second + 1;
  struct series_interval *interval = &series->ring[second % SERIES_RING];
  uint64_t held = atomic_load_explicit(&interval->second, memory_order_relaxed);
  if (held > stamp) return;
  if (held < stamp) reuse(interval, stamp);
  histogram_record(&interval->clock[clock], value_ns);
}

bool series_take(const struct series *series, uint32_t second, enum series_clock clock, struct histogram *out) {
  uint64_t stamp = (uint64_t)second + 1;
  const struct series_interval *interval = &series->ring[second % SERIES_RING];
  if (atomic_load_explicit(&interval->second, memory_order_acquire) != stamp) return false;
  struct histogram copy = interval->clock[clock];
  atomic_thread_fence(memory_order_acquire);
  if (atomic_load_explicit(&interval->second, memory_order_relaxed) != stamp) return false;
  if (copy.count == 0 && copy.negative == 0) return false;
  histogram_merge(out, &copy);
  return true;
}
