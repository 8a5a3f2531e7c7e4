/* Life of a connection and its streams; what packets say, frame by frame. */
#include "net/libp2p/udx.h"

#include "net/libp2p/udx_private.h"

#include <stdlib.h>

_Static_assert(sizeof(struct udx) + sizeof(struct udx_stream) <= 800, "many connections must fit");

struct udx *udx_create(const struct udx_options *options, uint64_t now_ns) {
  struct udx *udx = calloc(1, sizeof *udx);
  if (!udx) return NULL;
  udx->ops = options->ops;
  udx->user = options->user;
  udx->pool = options->pool;
  udx->local = options->local;
  udx->remote = options->remote;
  udx->streams_max = options->streams_max;
  udx->window_max = options->window_max < UDX_INITIAL_WINDOW ? UDX_INITIAL_WINDOW : options->window_max;
  udx->is_dialer = udx->syn_wanted = options->dialer;
  udx->datagram_max = options->datagram_max;
  udx->datagram = options->datagram_max < UDX_DATAGRAM_BYTES ? options->datagram_max : UDX_DATAGRAM_BYTES;
  udx->resend_due_ns = udx->ack_due_ns = UDX_NEVER;
  udx->heard_ns = now_ns;
  udx_congestion_begin(&udx->congestion);
  return udx;
}

static void free_list(struct udx_pool *pool, struct udx_list *list) {
  while (list->first) {
    struct udx_segment *segment = list->first;
    udx_list_remove(list, segment);
    udx_give_segment(pool, segment);
  }
}

void udx_destroy(struct udx *udx) {
  if (!udx) return;
  free_list(udx->pool, &udx->flying);
  free_list(udx->pool, &udx->lost);
  while (udx->streams) {
    struct udx_stream *stream = udx->streams;
    udx->streams = stream->next;
    udx_give_buf(udx->pool, &stream->out);
    udx_free_input(stream);
    free(stream);
  }
  free(udx);
}

void udx_close(struct udx *udx, uint32_t code) {
  if (udx->end != UDX_OPEN) return;
  udx->end = UDX_CLOSED;
  udx->end_code = code;
  udx->close_wanted = true;
}

void udx_violated(struct udx *udx, uint32_t code) {
  if (udx->end != UDX_OPEN) return;
  udx_close(udx, code);
  udx->end = UDX_VIOLATION;
}

void udx_out_of_memory(struct udx *udx) {
  if (udx->end != UDX_OPEN) return;
  udx_close(udx, UDX_ERROR_INTERNAL);
  udx->end = UDX_NO_MEMORY;
}

enum udx_end udx_ended(const struct udx *udx, uint32_t *code) {
  if (code) *code = udx->end_code;
  return udx->end;
}

void *udx_user(const struct udx *udx) {
  return udx->user;
}

const struct udx_cid *udx_local_cid(const struct udx *udx) {
  return &udx->local;
}

size_t udx_bytes_in_flight(const struct udx *udx) {
  return udx->flight_bytes;
}

uint32_t udx_datagram_bytes(const struct udx *udx) {
  return udx->datagram;
}

static struct udx_stream *add_stream(struct udx *udx, uint32_t local_id, uint32_t remote_id) {
  struct udx_stream *stream = calloc(1, sizeof *stream);
  if (!stream) return NULL;
  stream->udx = udx;
  stream->local_id = local_id;
  stream->remote_id = remote_id;
  stream->send_limit = stream->advertised = stream->window = UDX_INITIAL_WINDOW;
  stream->blocked_due_ns = UDX_NEVER;
  stream->next = udx->streams;
  udx->streams = stream;
  return stream;
}

static uint32_t next_local_id(struct udx *udx) {
  uint32_t count = udx->streams_opened + udx->streams_accepted;
  return count * 2 + (udx->is_dialer ? 1 : 2);
}

struct udx_stream *udx_open_stream(struct udx *udx) {
  if (udx->end != UDX_OPEN || udx->streams_opened >= UDX_STREAMS_EVER) return NULL;
  struct udx_stream *stream = add_stream(udx, next_local_id(udx), 0);
  if (stream) udx->streams_opened++;
  return stream;
}

struct udx *udx_of(const struct udx_stream *stream) {
  return stream->udx;
}

void *udx_stream_user(const struct udx_stream *stream) {
  return stream->user;
}

void udx_stream_set_user(struct udx_stream *stream, void *user) {
  stream->user = user;
}

uint8_t *udx_reserve(struct udx_stream *stream, size_t len) {
  if (stream->fin_wanted || stream->is_reset || stream->udx->end != UDX_OPEN) return NULL;
  if (!stream->out.cap) stream->out = udx_take_buf(stream->udx->pool);
  return buf_reserve(&stream->out, len);
}

void udx_commit(struct udx_stream *stream, size_t len) {
  stream->out.len += (uint32_t)len;
}

bool udx_write(struct udx_stream *stream, const void *data, size_t len) {
  if (len == 0) return !stream->fin_wanted && !stream->is_reset;
  uint8_t *room = udx_reserve(stream, len);
  if (!room) return false;
  memcpy(room, data, len);
  udx_commit(stream, len);
  return true;
}

size_t udx_unsent(const struct udx_stream *stream) {
  return (size_t)(udx_written(stream) - stream->sent);
}

void udx_end_stream(struct udx_stream *stream) {
  stream->fin_wanted = true;
}

void udx_reset_stream(struct udx_stream *stream, uint32_t code) {
  if (stream->is_reset) return;
  stream->is_reset = stream->reset_wanted = true;
  stream->reset_code = code;
  /* Nothing of it is worth sending again. */
  while (stream->lowest)
    udx_segment_acked(stream->udx, stream->lowest);
  udx_give_buf(stream->udx->pool, &stream->out);
  stream->out_base = stream->sent;
  udx_free_input(stream);
}

static struct udx_stream *find_stream(struct udx *udx, const struct udx_packet *packet) {
  struct udx_stream *stream = udx->streams;
  while (stream && (packet->to_stream == 0 || stream->local_id != packet->to_stream))
    stream = stream->next;
  if (stream || packet->from_stream == 0) return stream;
  stream = udx->streams;
  while (stream && stream->remote_id != packet->from_stream)
    stream = stream->next;
  return stream;
}

/* The stream of a STREAM frame; made when it is the peer's first sign of it. NULL: there is none to be. */
static struct udx_stream *stream_for(struct udx *udx, const struct udx_packet *packet, const struct udx_frame *frame) {
  struct udx_stream *stream = find_stream(udx, packet);
  if (stream) {
    if (!stream->remote_id) stream->remote_id = packet->from_stream;
    return stream;
  }
  bool opens = (frame->flags & UDX_SYN) || frame->data.len;
  if (!opens || packet->from_stream == 0 || udx->streams_accepted >= UDX_STREAMS_EVER) return NULL;
  stream = add_stream(udx, next_local_id(udx), packet->from_stream);
  if (!stream) {
    udx_out_of_memory(udx);
    return NULL;
  }
  udx->streams_accepted++;
  if (udx->streams_accepted > udx->streams_max) {
    udx_reset_stream(stream, UDX_ERROR_STREAM_LIMIT);
  } else {
    udx->ops->accepted(stream);
  }
  return stream;
}

static void handle_window(struct udx_stream *stream, uint32_t low_bits) {
  /* The value nearest to what we hold; never backwards. */
  int32_t forward = (int32_t)(low_bits - (uint32_t)stream->send_limit);
  if (forward <= 0) return;
  stream->send_limit += (uint32_t)forward;
  stream->blocked_due_ns = UDX_NEVER;
  stream->blocked_wanted = false;
}

static void handle_reset(struct udx_stream *stream, uint32_t code) {
  if (stream->is_reset) return;
  udx_reset_stream(stream, code);
  stream->reset_wanted = false;
  stream->udx->ops->reset(stream, code);
}

static void handle_close(struct udx *udx, const struct udx_frame *frame) {
  if (udx->end != UDX_OPEN) return;
  udx_close(udx, UDX_ERROR_NONE);
  udx->end = UDX_PEER_CLOSED;
  udx->end_code = frame->code;
}

static void handle_for_stream(struct udx *udx, const struct udx_packet *packet, const struct udx_frame *frame) {
  struct udx_stream *stream = find_stream(udx, packet);
  if (!stream || stream->is_reset) return;
  switch (frame->type) {
  case UDX_WINDOW_UPDATE:
    handle_window(stream, (uint32_t)frame->limit);
    break;
  case UDX_STREAM_DATA_BLOCKED:
    if (stream->advertised < stream->consumed + stream->window) stream->advertised = stream->consumed + stream->window;
    stream->update_wanted = true;
    break;
  case UDX_STOP_SENDING:
  case UDX_RESET_STREAM:
    handle_reset(stream, frame->code);
    break;
  default:
    break;
  }
}

static void handle_control(
    struct udx *udx, const struct udx_packet *packet, const struct udx_frame *frame, uint64_t now_ns) {
  switch (frame->type) {
  case UDX_ACK:
    udx_handle_ack(udx, frame, now_ns);
    break;
  case UDX_CONNECTION_CLOSE:
    handle_close(udx, frame);
    break;
  case UDX_PATH_CHALLENGE:
    memcpy(udx->challenge, frame->data.data, sizeof udx->challenge);
    udx->challenged = true;
    break;
  case UDX_DATA_BLOCKED:
    udx->max_data = frame->limit + (1U << 20);
    udx->max_data_wanted = true;
    break;
  default:
    handle_for_stream(udx, packet, frame);
  }
}

/* What a packet asks of its acknowledgement. */
struct judgement {
  bool counts; /* it bears data, or is a numbered PING */
  bool at_once;
  bool is_kept; /* all its data was taken */
};

static void handle_frame(struct udx *udx, const struct udx_packet *packet, const struct udx_frame *frame,
    struct judgement *judgement, uint64_t now_ns) {
  if (frame->type == UDX_PING && packet->sequence) judgement->counts = judgement->at_once = true;
  if (frame->type != UDX_STREAM) {
    handle_control(udx, packet, frame, now_ns);
    return;
  }
  if (!frame->data.len && !(frame->flags & (UDX_SYN | UDX_FIN))) return;
  judgement->counts = true;
  judgement->at_once |= frame->flags & (UDX_SYN | UDX_FIN);
  struct udx_stream *stream = stream_for(udx, packet, frame);
  if (stream && !stream->is_reset && !udx_receive_data(stream, frame)) judgement->is_kept = false;
}

void udx_received(struct udx *udx, const struct udx_packet *packet, uint64_t now_ns) {
  struct judgement judgement = {.is_kept = true};
  struct udx_frame frame;
  struct view frames = packet->frames;
  udx->heard_ns = now_ns;
  udx->is_heard = true;
  while (udx->end == UDX_OPEN && udx_next_frame(&frames, &frame))
    handle_frame(udx, packet, &frame, &judgement, now_ns);
  if (udx->end == UDX_OPEN && judgement.counts && judgement.is_kept)
    udx_note_received(udx, packet, judgement.at_once, now_ns);
}

static uint64_t idle_due_ns(const struct udx *udx) {
  uint64_t allowed_ns = 3 * udx_congestion_rto_ns(&udx->congestion);
  return udx->heard_ns + (allowed_ns > UDX_IDLE_NS ? allowed_ns : UDX_IDLE_NS);
}

void udx_tick(struct udx *udx, uint64_t now_ns) {
  if (udx->end != UDX_OPEN) return;
  if (now_ns >= idle_due_ns(udx)) {
    udx->end = UDX_IDLE_TIMEOUT;
    return;
  }
  if (now_ns >= udx->ack_due_ns) udx->ack_now = true;
  if (now_ns >= udx->resend_due_ns) udx_time_out_segments(udx, now_ns);
  for (struct udx_stream *stream = udx->streams; stream; stream = stream->next) {
    if (now_ns < stream->blocked_due_ns) continue;
    stream->blocked_wanted = true;
    stream->blocked_due_ns = now_ns + UDX_BLOCKED_AGAIN_NS;
  }
}

uint64_t udx_next_ns(const struct udx *udx) {
  if (udx->end != UDX_OPEN) return UDX_NEVER;
  uint64_t next_ns = udx_earlier(idle_due_ns(udx), udx_earlier(udx->ack_due_ns, udx->resend_due_ns));
  for (const struct udx_stream *stream = udx->streams; stream; stream = stream->next)
    next_ns = udx_earlier(next_ns, stream->blocked_due_ns);
  return next_ns;
}
