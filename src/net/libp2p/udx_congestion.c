#include "net/libp2p/udx_congestion.h"

#include "base/clock.h"

#include <math.h>

#define FULL_DATAGRAM 1472U
#define INITIAL_WINDOW (10 * FULL_DATAGRAM)
#define MINIMUM_WINDOW (2 * FULL_DATAGRAM)
#define INITIAL_THRESHOLD 65535U
#define WINDOW_MAX (16U << 20)
#define RTO_MIN_NS (200 * NS_PER_MS)
#define RTO_MAX_NS (5 * NS_PER_SEC)
#define ACK_DELAY_MAX_NS (25 * NS_PER_MS)

static const double cubic_c = 0.4, beta = 0.7;

void udx_congestion_begin(struct udx_congestion *congestion) {
  *congestion = (struct udx_congestion){.window = INITIAL_WINDOW,
      .threshold = INITIAL_THRESHOLD,
      .smoothed_ns = 100 * NS_PER_MS,
      .variance_ns = 50 * NS_PER_MS};
}

void udx_congestion_measured(struct udx_congestion *congestion, uint64_t sample_ns, uint64_t ack_delay_ns) {
  uint64_t delay_ns = ack_delay_ns < ACK_DELAY_MAX_NS ? ack_delay_ns : ACK_DELAY_MAX_NS;
  if (sample_ns > delay_ns) sample_ns -= delay_ns;
  congestion->latest_ns = sample_ns;
  if (!congestion->is_measured) {
    congestion->is_measured = true;
    congestion->smoothed_ns = sample_ns;
    congestion->variance_ns = sample_ns / 2;
    return;
  }
  uint64_t smoothed_ns = congestion->smoothed_ns;
  uint64_t off_ns = smoothed_ns > sample_ns ? smoothed_ns - sample_ns : sample_ns - smoothed_ns;
  congestion->variance_ns = (3 * congestion->variance_ns + off_ns) / 4;
  congestion->smoothed_ns = (7 * smoothed_ns + sample_ns) / 8;
}

uint64_t udx_congestion_rto_ns(const struct udx_congestion *congestion) {
  uint64_t rto_ns =
      congestion->smoothed_ns / NS_PER_MS * NS_PER_MS + 4 * (congestion->variance_ns / NS_PER_MS * NS_PER_MS);
  if (rto_ns < RTO_MIN_NS) return RTO_MIN_NS;
  return rto_ns > RTO_MAX_NS ? RTO_MAX_NS : rto_ns;
}

/* The window that CUBIC wants after growing for some time, in bytes. */
static double cubic_window(const struct udx_congestion *congestion, uint64_t now_ns) {
  double at_loss = (double)congestion->window_at_loss / FULL_DATAGRAM;
  double t = (double)(now_ns - congestion->epoch_ns) / (double)NS_PER_SEC;
  double k = cbrt(at_loss * (1 - beta) / cubic_c);
  return (cubic_c * (t - k) * (t - k) * (t - k) + at_loss) * FULL_DATAGRAM;
}

static void avoid_congestion(struct udx_congestion *congestion, uint32_t bytes, uint64_t now_ns) {
  if (!congestion->epoch_ns) {
    congestion->epoch_ns = now_ns;
    congestion->reno_window = congestion->window;
    if (congestion->window_at_loss < congestion->window) congestion->window_at_loss = congestion->window;
  }
  congestion->reno_window += 3 * (1 - beta) / (1 + beta) * FULL_DATAGRAM * bytes / congestion->window;
  double target = cubic_window(congestion, now_ns + congestion->smoothed_ns);
  if (target < congestion->reno_window) target = congestion->reno_window;
  double growth = (target - congestion->window) * bytes / congestion->window;
  if (growth <= 0) return;
  /* Not faster than slow start would. */
  congestion->window += (uint32_t)(growth < bytes ? growth : bytes);
}

void udx_congestion_acked(struct udx_congestion *congestion, uint32_t bytes, uint32_t largest, uint64_t now_ns) {
  if (congestion->is_recovering && largest <= congestion->recovery_until) return;
  congestion->is_recovering = false;
  if (congestion->window < congestion->threshold) {
    congestion->window += bytes;
  } else {
    avoid_congestion(congestion, bytes, now_ns);
  }
  if (congestion->window > WINDOW_MAX) congestion->window = WINDOW_MAX;
}

void udx_congestion_lost(struct udx_congestion *congestion, uint32_t sequence, uint32_t last_sent) {
  if (congestion->is_recovering && sequence <= congestion->recovery_until) return;
  congestion->is_recovering = true;
  congestion->recovery_until = last_sent;
  congestion->window_at_loss = congestion->window;
  congestion->window = (uint32_t)(congestion->window * beta);
  if (congestion->window < MINIMUM_WINDOW) congestion->window = MINIMUM_WINDOW;
  congestion->threshold = congestion->window;
  congestion->epoch_ns = 0;
}
