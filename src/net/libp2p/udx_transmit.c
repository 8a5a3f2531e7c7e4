/* Output: which packet goes next. Control first, then what was lost, then new data, then a probe; a pending ACK and the
 * control frames of a stream travel in its data packets. */
#include "net/libp2p/udx_private.h"

#include <assert.h>

enum {
  PROBE_FAILURES_MAX = 8,
  PROBE_STEP_MIN = 64,
  PROBE_BACKLOG_CHUNKS = 16, /* larger datagrams are worth it only for much data */
  ACK_BYTES_MAX = 12 + 5 * (UDX_RANGES_TOLD - 1),
  CONTROL_BYTES_MAX = 5 + 13, /* a reset stream sends no data */
};

static uint8_t *begin_packet(const struct udx *udx, uint8_t *out, uint32_t sequence, uint32_t to, uint32_t from) {
  struct udx_packet packet = {
      .to = udx->remote, .from = udx->local, .sequence = sequence, .to_stream = to, .from_stream = from};
  return udx_write_header(out, &packet);
}

static bool has_control(const struct udx_stream *stream) {
  return stream->reset_wanted || stream->update_wanted || stream->blocked_wanted;
}

static uint8_t *write_stream_control(struct udx_stream *stream, uint8_t *at) {
  if (stream->reset_wanted) at = udx_write_reset(at, stream->reset_code);
  if (stream->update_wanted && !stream->is_reset) at = udx_write_window_update(at, stream->advertised);
  if (stream->blocked_wanted && !stream->is_reset)
    at = udx_write_stream_data_blocked(at, stream->local_id, stream->send_limit);
  stream->reset_wanted = stream->update_wanted = stream->blocked_wanted = false;
  return at;
}

static size_t transmit_close(struct udx *udx, uint8_t *out) {
  uint8_t *at = begin_packet(udx, out, 0, 0, 0);
  udx->close_wanted = false;
  uint32_t code = udx->end == UDX_PEER_CLOSED ? UDX_ERROR_NONE : udx->end_code;
  return (size_t)(udx_write_close(at, code, (struct view){0}) - out);
}

static size_t transmit_connection_control(struct udx *udx, uint8_t *out) {
  uint8_t *at = begin_packet(udx, out, 0, 0, 0);
  if (udx->challenged) at = udx_write_path_response(at, view_of(udx->challenge, sizeof udx->challenge));
  if (udx->max_data_wanted) at = udx_write_max_data(at, udx->max_data);
  udx->challenged = udx->max_data_wanted = false;
  return (size_t)(at - out);
}

static size_t transmit_ack(struct udx *udx, uint8_t *out, uint64_t now_ns) {
  uint8_t *at = begin_packet(udx, out, 0, udx->ack_to_stream, udx->ack_from_stream);
  return (size_t)(udx_write_pending_ack(udx, at, now_ns) - out);
}

static size_t transmit_stream_control(struct udx_stream *stream, uint8_t *out, uint64_t now_ns) {
  uint8_t *at = begin_packet(stream->udx, out, 0, stream->remote_id, stream->local_id);
  at = udx_write_pending_ack(stream->udx, at, now_ns);
  return (size_t)(write_stream_control(stream, at) - out);
}

/* Sends a segment, for the first time or again, under the next number. */
static size_t transmit_segment(struct udx *udx, struct udx_segment *segment, uint8_t *out, uint64_t now_ns) {
  struct udx_stream *stream = segment->stream;
  segment->sequence = udx->next_sequence++;
  segment->sent_ns = now_ns;
  udx_list_append(&udx->flying, segment);
  udx->resend_due_ns = udx_earlier(udx->resend_due_ns, udx_segment_due_ns(udx, segment));
  uint8_t *at =
      begin_packet(udx, out, segment->sequence, stream ? stream->remote_id : 0, stream ? stream->local_id : 0);
  uint32_t bytes = udx_segment_bytes(udx, segment), room = udx->datagram > bytes ? udx->datagram - bytes : 0;
  if (room >= ACK_BYTES_MAX) at = udx_write_pending_ack(udx, at, now_ns);
  if (stream && has_control(stream) && room >= ACK_BYTES_MAX + CONTROL_BYTES_MAX) at = write_stream_control(stream, at);
  at = udx_write_stream_head(at, segment->flags, segment->offset, segment->len);
  if (stream && segment->len) memcpy(at, stream->out.data + (segment->offset - stream->out_base), segment->len);
  return (size_t)(at - out) + segment->len;
}

static size_t transmit_again(struct udx *udx, uint8_t *out, uint64_t now_ns) {
  struct udx_segment *segment = udx->lost.first;
  udx_list_remove(&udx->lost, segment);
  segment->is_lost = false;
  udx_count_resent(udx->pool);
  return transmit_segment(udx, segment, out, now_ns);
}

static size_t transmit_new(
    struct udx *udx, struct udx_stream *stream, uint8_t flags, uint32_t len, uint8_t *out, uint64_t now_ns) {
  struct udx_segment *segment = udx_take_segment(udx->pool);
  if (!segment) {
    udx_out_of_memory(udx);
    return transmit_close(udx, out);
  }
  segment->stream = stream;
  segment->flags = flags;
  segment->len = (uint16_t)len;
  if (stream) {
    segment->offset = stream->sent;
    stream->sent += len;
    segment->lower = stream->highest;
    *(stream->highest ? &stream->highest->higher : &stream->lowest) = segment;
    stream->highest = segment;
  }
  udx->flight_count++;
  udx->flight_bytes += udx_segment_bytes(udx, segment);
  return transmit_segment(udx, segment, out, now_ns);
}

static bool may_fly(const struct udx *udx, uint32_t len) {
  if (!udx->flight_count) return true;
  return udx->flight_count < UDX_FLIGHT_MAX && udx->flight_bytes + len + 100 <= udx->congestion.window;
}

static uint32_t next_chunk(const struct udx_stream *stream) {
  uint64_t len = udx_written(stream) - stream->sent;
  len = udx_earlier(len, udx_chunk_bytes(stream->udx));
  return (uint32_t)udx_earlier(len, stream->send_limit - stream->sent);
}

/* Something new of this stream; 0: nothing, or it has to wait. */
static size_t transmit_from(struct udx_stream *stream, uint8_t *out, uint64_t now_ns) {
  struct udx *udx = stream->udx;
  if (stream->is_reset) return 0;
  bool has_data = udx_unsent(stream);
  uint32_t len = has_data ? next_chunk(stream) : 0;
  if (has_data && !len && stream->blocked_due_ns == UDX_NEVER) {
    stream->blocked_due_ns = now_ns + UDX_BLOCKED_AGAIN_NS;
    stream->blocked_wanted = true;
    return transmit_stream_control(stream, out, now_ns);
  }
  if (len && may_fly(udx, len)) {
    uint8_t flags = stream->syn_sent ? 0 : UDX_SYN;
    stream->syn_sent = true;
    return transmit_new(udx, stream, flags, len, out, now_ns);
  }
  if (has_data || !stream->fin_wanted || stream->fin_sent || !may_fly(udx, 0)) return 0;
  stream->fin_sent = true;
  return transmit_new(udx, stream, UDX_FIN, 0, out, now_ns);
}

/* The size to try next: all at first, then half of what is left; 0: enough is known. */
static uint32_t next_probe(const struct udx *udx) {
  if (udx->probe_sent_ns || udx->probe_failures >= PROBE_FAILURES_MAX) return 0;
  uint32_t step = (udx->datagram_max - udx->datagram) >> udx->probe_failures;
  return step >= PROBE_STEP_MIN || (step && !udx->probe_failures) ? udx->datagram + step : 0;
}

/* Padding with a PING behind it, not an MTU_PROBE frame: a Go peer reads 1,600 bytes of a datagram, and what it cuts
 * off must not be acknowledged. */
static size_t transmit_probe(struct udx *udx, uint8_t *out, uint64_t now_ns) {
  udx->probe_bytes = next_probe(udx);
  udx->probe_sequence = udx->next_sequence++;
  udx->probe_sent_ns = now_ns;
  udx->resend_due_ns = udx_earlier(udx->resend_due_ns, now_ns + udx_congestion_rto_ns(&udx->congestion));
  uint8_t *at = begin_packet(udx, out, udx->probe_sequence, 0, 0);
  memset(at, UDX_PADDING, udx->probe_bytes - (size_t)(at - out));
  out[udx->probe_bytes - 1] = UDX_PING;
  return udx->probe_bytes;
}

static bool wants_probe(const struct udx *udx) {
  if (!udx->streams || udx->datagram >= udx->datagram_max || !udx->is_heard || !next_probe(udx)) return false;
  /* Number 0 would say that it bears nothing. */
  return udx->next_sequence && udx_unsent(udx->streams) > (size_t)PROBE_BACKLOG_CHUNKS * udx_chunk_bytes(udx);
}

static size_t transmit_control(struct udx *udx, uint8_t *out, uint64_t now_ns) {
  if (udx->challenged || udx->max_data_wanted) return transmit_connection_control(udx, out);
  for (struct udx_stream *stream = udx->streams; stream; stream = stream->next) {
    if (has_control(stream)) return transmit_stream_control(stream, out, now_ns);
  }
  return udx->ack_now && udx->unacked ? transmit_ack(udx, out, now_ns) : 0;
}

static size_t transmit_data(struct udx *udx, uint8_t *out, uint64_t now_ns) {
  if (udx->lost.first) return transmit_again(udx, out, now_ns);
  if (udx->syn_wanted) {
    udx->syn_wanted = false;
    return transmit_new(udx, NULL, UDX_SYN, 0, out, now_ns);
  }
  if (wants_probe(udx)) return transmit_probe(udx, out, now_ns);
  for (struct udx_stream *stream = udx->streams; stream; stream = stream->next) {
    size_t len = transmit_from(stream, out, now_ns);
    if (len) return len;
  }
  return 0;
}

size_t udx_transmit(struct udx *udx, uint8_t *out, size_t cap, uint64_t now_ns) {
  assert(cap >= UDX_DATAGRAM_MAX);
  (void)cap;
  if (udx->close_wanted) return transmit_close(udx, out);
  if (udx->end != UDX_OPEN) return 0;
  size_t len = transmit_data(udx, out, now_ns);
  return len ? len : transmit_control(udx, out, now_ns);
}
