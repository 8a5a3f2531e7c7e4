/* The round trip and the congestion window of a connection: slow start, then CUBIC (C = 0.4, beta = 0.7) with the
 * window of Reno as its floor. Sizes in bytes of datagrams. */
#ifndef MUSTER_NET_LIBP2P_UDX_CONGESTION_H
#define MUSTER_NET_LIBP2P_UDX_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

struct udx_congestion {
  uint32_t window, threshold, window_at_loss;
  uint32_t recovery_until; /* sequence number: losses up to it belong to one epoch */
  bool is_recovering;
  bool is_measured;                             /* a round trip was measured */
  uint64_t smoothed_ns, variance_ns, latest_ns; /* of the round trip */
  uint64_t epoch_ns;                            /* when growth after the last loss began; 0: not yet */
  double reno_window;
};

void udx_congestion_begin(struct udx_congestion *congestion);
void udx_congestion_measured(struct udx_congestion *congestion, uint64_t sample_ns, uint64_t ack_delay_ns);
/* An ACK whose largest number was new took bytes off the flight. */
void udx_congestion_acked(struct udx_congestion *congestion, uint32_t bytes, uint32_t largest, uint64_t now_ns);
/* A gap showed the loss of sequence; last_sent is the highest number that was sent. */
void udx_congestion_lost(struct udx_congestion *congestion, uint32_t sequence, uint32_t last_sent);
uint64_t udx_congestion_rto_ns(const struct udx_congestion *congestion);

#endif
