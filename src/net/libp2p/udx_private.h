/* What the parts of a UDX connection share: udx.c (life and dispatch), udx_receive.c (streams' input), udx_ack.c
 * (acknowledgements, both ways), udx_loss.c (losses and timers of what was sent), udx_transmit.c (output). */
#ifndef MUSTER_NET_LIBP2P_UDX_PRIVATE_H
#define MUSTER_NET_LIBP2P_UDX_PRIVATE_H

#include "base/buf.h"
#include "base/clock.h"
#include "net/libp2p/udx.h"
#include "net/libp2p/udx_congestion.h"

#define UDX_INITIAL_WINDOW 65536U
#define UDX_STREAMS_EVER 100
#define UDX_RANGES_TOLD 6 /* in an ACK */
#define UDX_RANGES_KEPT 8
#define UDX_SPANS_MAX 128 /* pieces ahead of a gap, in one stream */
#define UDX_NEVER UINT64_MAX
#define UDX_BLOCKED_AGAIN_NS (500 * NS_PER_MS)

/* A numbered packet that is not acknowledged; its bytes are in the stream's output. Linked by offset in its stream,
 * and by number in the connection's list of what is on its way, or in that of what is lost. */
struct udx_segment {
  struct udx_segment *before, *after; /* by number, or in the order of loss */
  struct udx_segment *lower, *higher; /* by offset */
  struct udx_stream *stream;          /* NULL: the connection's SYN */
  uint64_t offset;
  uint64_t sent_ns;
  uint32_t sequence;
  uint16_t len;
  uint8_t flags; /* enum udx_stream_flag */
  uint8_t resends : 6;
  uint8_t is_lost : 1;
};

struct udx_list {
  struct udx_segment *first, *last;
};

/* [start, end) of what came ahead of a gap. */
struct udx_span {
  uint64_t start, end;
};

struct udx_stream {
  struct udx *udx;
  struct udx_stream *next;
  void *user;
  uint32_t local_id, remote_id; /* remote 0: not known */
  uint32_t reset_code;
  uint32_t window; /* receive window */
  /* Output: out.data[0] is at out_base, the lowest byte that is kept. */
  struct buf out;
  uint64_t out_base, sent, send_limit;
  uint64_t blocked_due_ns; /* when STREAM_DATA_BLOCKED is to be sent (again) */
  struct udx_segment *lowest, *highest;
  /* Input: in.data[0] is at consumed; ready bytes of it are in order, spans are behind. */
  struct buf in;
  uint64_t consumed, advertised, fin_offset;
  struct udx_span *spans; /* owned; ascending, apart from each other */
  uint32_t ready;
  uint16_t span_count, span_cap;
  bool syn_sent, fin_wanted, fin_sent;
  bool reset_wanted, is_reset; /* is_reset: either side */
  bool update_wanted, blocked_wanted;
  bool fin_known, is_ended;
};

struct udx {
  const struct udx_ops *ops;
  void *user;
  struct udx_pool *pool;
  struct udx_cid local, remote;
  uint32_t streams_max, streams_opened, streams_accepted;
  uint32_t window_max;
  struct udx_stream *streams;
  struct udx_congestion congestion;
  /* What was sent. */
  struct udx_list flying, lost;
  uint32_t next_sequence;
  uint32_t flight_count, flight_bytes;
  uint64_t resend_due_ns; /* a lower bound of the first time-out; UDX_NEVER */
  /* What was received: numbers from the highest range down. */
  struct udx_range got[UDX_RANGES_KEPT];
  uint8_t got_count;
  uint8_t unacked; /* data packets since the last ACK */
  bool ack_now;
  uint32_t unacked_lowest; /* of them, the lowest number */
  uint32_t ack_to_stream, ack_from_stream;
  uint64_t ack_due_ns, largest_came_ns, heard_ns;
  /* Probing. */
  uint32_t datagram, datagram_max, probe_bytes, probe_sequence;
  uint64_t probe_sent_ns; /* 0: none on its way */
  uint8_t probe_failures;
  /* Control. */
  uint8_t challenge[8];
  bool challenged, is_dialer, is_heard, syn_wanted, max_data_wanted;
  bool close_wanted;
  uint8_t end; /* enum udx_end */
  uint32_t end_code;
  uint64_t max_data;
};

struct udx_segment *udx_take_segment(struct udx_pool *pool);
void udx_give_segment(struct udx_pool *pool, struct udx_segment *segment);
struct buf udx_take_buf(struct udx_pool *pool);
void udx_give_buf(struct udx_pool *pool, struct buf *buf);
void udx_count_resent(struct udx_pool *pool);

void udx_list_append(struct udx_list *list, struct udx_segment *segment);
void udx_list_remove(struct udx_list *list, struct udx_segment *segment);

/* udx.c: ends the connection from within, telling the peer. */
void udx_violated(struct udx *udx, uint32_t code);
void udx_out_of_memory(struct udx *udx);

/* udx_receive.c. False: the packet must not be acknowledged, since its data could not be kept. */
bool udx_receive_data(struct udx_stream *stream, const struct udx_frame *frame);
void udx_free_input(struct udx_stream *stream);

/* udx_ack.c */
void udx_note_received(struct udx *udx, const struct udx_packet *packet, bool at_once, uint64_t now_ns);
uint8_t *udx_write_pending_ack(struct udx *udx, uint8_t *at, uint64_t now_ns);
void udx_handle_ack(struct udx *udx, const struct udx_frame *frame, uint64_t now_ns);

/* udx_loss.c */
void udx_segment_acked(struct udx *udx, struct udx_segment *segment);
void udx_detect_losses(struct udx *udx, uint32_t lowest_told, uint32_t largest, uint64_t now_ns);
void udx_time_out_segments(struct udx *udx, uint64_t now_ns);
uint64_t udx_segment_due_ns(const struct udx *udx, const struct udx_segment *segment);

static inline uint64_t udx_written(const struct udx_stream *stream) {
  return stream->out_base + stream->out.len;
}

static inline uint32_t udx_chunk_bytes(const struct udx *udx) {
  return udx->datagram - 100;
}

static inline uint32_t udx_segment_bytes(const struct udx *udx, const struct udx_segment *segment) {
  return 18U + udx->local.len + udx->remote.len + UDX_STREAM_HEAD_BYTES + segment->len;
}

static inline uint64_t udx_earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

#endif
