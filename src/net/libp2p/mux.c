#include "net/libp2p/mux.h"

#include <stdlib.h>
#include <string.h>

enum {
  FEW_STREAMS = 8,
  BUCKETS = 256, /* a power of two */
  FRAME_MAX = 65524,
  PUMP_BYTES = 64 * 1024,
  OUT_BYTES_MAX = 1 << 20, /* a peer that lets this much wait while it asks for more does not read */
};

void mux_begin(struct mux *mux, bool is_dialer, const struct mux_ops *ops, void *user, uint32_t out_max) {
  *mux =
      (struct mux){.ops = ops, .user = user, .is_dialer = is_dialer, .next_id = is_dialer ? 1 : 2, .out_max = out_max};
}

static struct mux_stream **bucket_of(struct mux *mux, uint32_t id) {
  return mux->buckets ? &mux->buckets[id / 2 & mux->bucket_mask] : &mux->only_bucket;
}

static struct mux_stream *find(struct mux *mux, uint32_t id) {
  struct mux_stream *stream = *bucket_of(mux, id);
  while (stream && stream->id != id)
    stream = stream->next;
  return stream;
}

/* Without memory for buckets the one list goes on. */
static void spread(struct mux *mux) {
  struct mux_stream **buckets = calloc(BUCKETS, sizeof(struct mux_stream *));
  if (!buckets) return;
  struct mux_stream *rest = mux->only_bucket;
  mux->buckets = buckets;
  mux->bucket_mask = BUCKETS - 1;
  mux->only_bucket = NULL;
  while (rest) {
    struct mux_stream *stream = rest, **bucket = bucket_of(mux, stream->id);
    rest = stream->next;
    stream->next = *bucket;
    *bucket = stream;
  }
}

static void insert(struct mux *mux, struct mux_stream *stream, uint32_t id) {
  if (mux->stream_count == FEW_STREAMS && !mux->buckets) spread(mux);
  struct mux_stream **bucket = bucket_of(mux, id);
  stream->mux = mux;
  stream->id = id;
  stream->send_credit = stream->receive_credit = stream->window = YAMUX_INITIAL_WINDOW;
  stream->next = *bucket;
  *bucket = stream;
  mux->stream_count++;
}

static void wait_for_room(struct mux_stream *stream) {
  struct mux *mux = stream->mux;
  if (stream->is_waiting) return;
  stream->is_waiting = true;
  stream->before = mux->last_waiting;
  stream->after = NULL;
  *(mux->last_waiting ? &mux->last_waiting->after : &mux->waiting) = stream;
  mux->last_waiting = stream;
  mux->waiting_count++;
}

static void wait_no_more(struct mux_stream *stream) {
  struct mux *mux = stream->mux;
  if (!stream->is_waiting) return;
  stream->is_waiting = false;
  mux->waiting_count--;
  *(stream->before ? &stream->before->after : &mux->waiting) = stream->after;
  *(stream->after ? &stream->after->before : &mux->last_waiting) = stream->before;
}

/* Takes a stream out of the session; its memory is the owner's from here. */
static void leave(struct mux_stream *stream) {
  struct mux *mux = stream->mux;
  struct mux_stream **link = bucket_of(mux, stream->id);
  while (*link != stream)
    link = &(*link)->next;
  *link = stream->next;
  mux->stream_count--;
  if (mux->is_dialer == (stream->id % 2 == 1) && !stream->is_acked) mux->unacked_count--;
  wait_no_more(stream);
  if (mux->frame_stream == stream) mux->frame_stream = NULL;
  if (mux->current == stream) mux->current = NULL;
  buf_free(&stream->in);
  buf_free(&stream->out);
  if (mux->stream_count || !mux->buckets) return;
  free(mux->buckets);
  mux->buckets = NULL;
  mux->bucket_mask = 0;
}

struct mux_stream *mux_take_any(struct mux *mux) {
  struct mux_stream *stream = mux->only_bucket;
  for (uint32_t i = 0; !stream && mux->buckets && i <= mux->bucket_mask; i++)
    stream = mux->buckets[i];
  if (stream) leave(stream);
  return stream;
}

void mux_abandon(struct mux *mux) {
  mux->is_over = true;
  mux->current = NULL;
}

void mux_free(struct mux *mux) {
  buf_free(&mux->out);
  free(mux->buckets);
  mux->buckets = NULL;
}

static bool fail(struct mux *mux, const char *why) {
  if (!mux->failure) mux->failure = why;
  return false;
}

static bool put_header(struct mux *mux, uint8_t type, uint16_t flags, uint32_t stream, uint32_t length) {
  if (!mux->out.cap && mux->ops->take_buf) mux->out = mux->ops->take_buf(mux);
  uint8_t *at = buf_reserve(&mux->out, YAMUX_HEADER_BYTES);
  if (!at) return fail(mux, "out of memory");
  struct yamux_header header = {.type = type, .flags = flags, .stream = stream, .length = length};
  yamux_write_header(at, &header);
  mux->out.len += YAMUX_HEADER_BYTES;
  return true;
}

static bool put_data(struct mux_stream *stream, const uint8_t *data, size_t len) {
  struct mux *mux = stream->mux;
  if (!mux->out.cap && mux->ops->take_buf) mux->out = mux->ops->take_buf(mux);
  size_t frames = (len + FRAME_MAX - 1) / FRAME_MAX;
  if (!buf_reserve(&mux->out, len + frames * YAMUX_HEADER_BYTES)) return fail(mux, "out of memory");
  while (len) {
    size_t part = len < FRAME_MAX ? len : FRAME_MAX;
    put_header(mux, YAMUX_DATA, 0, stream->id, (uint32_t)part);
    memcpy(mux->out.data + mux->out.len, data, part);
    mux->out.len += (uint32_t)part;
    stream->send_credit -= (uint32_t)part;
    data += part;
    len -= part;
  }
  return true;
}

size_t mux_pending(const struct mux_stream *stream) {
  return stream->out.len - stream->out_sent;
}

/* Tells that the stream is over, when both sides have ended. True when it is gone. */
static bool close_if_done(struct mux_stream *stream) {
  if (!stream->is_ended || !stream->peer_ended) return false;
  struct mux *mux = stream->mux;
  leave(stream);
  mux->ops->closed(stream, MUX_STREAM_DONE);
  return true;
}

/* Calls something of the owner for a stream; false when it has left the session, or the session is over. */
static bool call(struct mux_stream *stream, void (*function)(struct mux_stream *stream)) {
  struct mux *mux = stream->mux;
  mux->current = stream;
  function(stream);
  bool stays = !mux->is_over && mux->current == stream;
  mux->current = NULL;
  return stays;
}

/* Moves what credit and room allow. False when the stream has left the session. */
static bool pump_stream(struct mux_stream *stream) {
  struct mux *mux = stream->mux;
  size_t len = mux_pending(stream);
  bool had_some = len;
  if (len > stream->send_credit) len = stream->send_credit;
  if (len > PUMP_BYTES) len = PUMP_BYTES;
  if (len && !put_data(stream, stream->out.data + stream->out_sent, len)) return true;
  stream->out_sent += (uint32_t)len;
  if (mux_pending(stream)) return true;
  buf_free(&stream->out);
  stream->out_sent = 0;
  wait_no_more(stream);
  if (stream->end_wanted && !stream->is_ended) {
    stream->is_ended = put_header(mux, YAMUX_WINDOW_UPDATE, YAMUX_FIN, stream->id, 0);
    if (close_if_done(stream)) return false;
  }
  return !had_some || call(stream, mux->ops->drained);
}

void mux_pump(struct mux *mux) {
  for (uint32_t rounds = mux->waiting_count; rounds && mux->waiting && mux->out.len < PUMP_BYTES; rounds--) {
    struct mux_stream *stream = mux->waiting;
    bool stays = pump_stream(stream);
    if (mux->is_over) return;
    if (!stays || !stream->is_waiting) continue;
    /* The others first, if there is more; credit will bring it back. */
    wait_no_more(stream);
    if (stream->send_credit) wait_for_room(stream);
  }
}

bool mux_open(struct mux *mux, struct mux_stream *stream) {
  if (mux->is_over || mux->peer_leaves || mux->unacked_count >= MUX_UNACKED_MAX || mux->next_id > INT32_MAX)
    return false;
  if (!put_header(mux, YAMUX_WINDOW_UPDATE, YAMUX_SYN, mux->next_id, 0)) return false;
  insert(mux, stream, mux->next_id);
  mux->next_id += 2;
  mux->unacked_count++;
  return true;
}

static bool keep_output(struct mux_stream *stream, const void *data, size_t len) {
  size_t pending = mux_pending(stream);
  if (len > stream->mux->out_max || pending > stream->mux->out_max - len) return false;
  if (stream->out_sent > pending) {
    buf_consume(&stream->out, stream->out_sent);
    stream->out_sent = 0;
  }
  if (!buf_append(&stream->out, data, len)) return false;
  if (stream->send_credit) wait_for_room(stream);
  return true;
}

bool mux_write(struct mux_stream *stream, const void *data, size_t len) {
  struct mux *mux = stream->mux;
  if (stream->end_wanted || mux->is_over) return false;
  if (len == 0) return true;
  bool direct = !mux_pending(stream) && len <= stream->send_credit && mux->out.len + len <= PUMP_BYTES * 4;
  return direct ? put_data(stream, data, len) : keep_output(stream, data, len);
}

void mux_end(struct mux_stream *stream) {
  if (stream->end_wanted || stream->mux->is_over) return;
  stream->end_wanted = true;
  /* From the pump, so that closed is never called from within this. */
  if (!mux_pending(stream)) wait_for_room(stream);
}

void mux_reset(struct mux_stream *stream) {
  struct mux *mux = stream->mux;
  put_header(mux, YAMUX_WINDOW_UPDATE, YAMUX_RST, stream->id, 0);
  leave(stream);
}

/* Lets the peer send what was used, once it is half of the window. */
static bool give_credit(struct mux_stream *stream) {
  if (stream->peer_ended || stream->uncredited < stream->window / 2) return true;
  if (!put_header(stream->mux, YAMUX_WINDOW_UPDATE, 0, stream->id, stream->uncredited)) return false;
  stream->receive_credit += stream->uncredited;
  stream->uncredited = 0;
  return true;
}

bool mux_expect(struct mux_stream *stream, size_t len) {
  struct mux *mux = stream->mux;
  if (len > MUX_WINDOW_MAX) return false;
  size_t here = mux->current == stream ? mux->given : stream->in.len, can_come = here + stream->receive_credit;
  if (len <= can_come || stream->peer_ended) return true;
  uint32_t more = (uint32_t)(len - can_come);
  if (!put_header(mux, YAMUX_WINDOW_UPDATE, 0, stream->id, more)) return false;
  uint32_t owed = more < stream->uncredited ? more : stream->uncredited;
  stream->uncredited -= owed;
  stream->window += more - owed;
  stream->receive_credit += more;
  return true;
}

/* Gives data to the owner; *used tells how much of it is used. False when the stream left or the session is over. */
static bool give(struct mux_stream *stream, uint8_t *data, size_t len, size_t *used) {
  struct mux *mux = stream->mux;
  mux->current = stream;
  mux->given = (uint32_t)len;
  *used = mux->ops->received(stream, data, len);
  bool stays = !mux->is_over && mux->current == stream;
  mux->current = NULL;
  return stays;
}

/* False: the session is broken or over. */
static bool give_kept(struct mux_stream *stream) {
  struct mux *mux = stream->mux;
  size_t used;
  if (!stream->in.len) return true;
  if (!give(stream, stream->in.data, stream->in.len, &used)) return !mux->is_over;
  buf_consume(&stream->in, used);
  if (!stream->in.len) buf_free(&stream->in);
  stream->uncredited += (uint32_t)used;
  return give_credit(stream);
}

void mux_resume(struct mux_stream *stream) {
  if (!stream->mux->is_over) give_kept(stream);
}

/* Data of a frame for its stream; false: the session is broken or over. */
static bool take_data(struct mux_stream *stream, uint8_t *data, size_t len) {
  struct mux *mux = stream->mux;
  size_t used;
  if (stream->in.len) return buf_append(&stream->in, data, len) ? give_kept(stream) : fail(mux, "out of memory");
  if (!give(stream, data, len, &used)) return !mux->is_over;
  stream->uncredited += (uint32_t)used;
  if (used < len && !buf_append(&stream->in, data + used, len - used)) return fail(mux, "out of memory");
  return give_credit(stream);
}

static void handle_end(struct mux_stream *stream) {
  if (stream->peer_ended) return;
  stream->peer_ended = true;
  if (call(stream, stream->mux->ops->ended)) close_if_done(stream);
}

static void handle_reset(struct mux_stream *stream) {
  struct mux *mux = stream->mux;
  leave(stream);
  mux->ops->closed(stream, MUX_STREAM_RESET);
}

/* Makes the stream of a SYN; false: the session is broken. *out NULL: refused. */
static bool handle_syn(struct mux *mux, uint32_t id, struct mux_stream **out) {
  bool by_peer = mux->is_dialer == (id % 2 == 0);
  if (!by_peer) return fail(mux, "the peer opens a yamux stream with an id of ours");
  if (find(mux, id)) return fail(mux, "the peer opens a yamux stream twice");
  *out = mux->ops->accept(mux);
  if (mux->is_over) return false;
  if (!*out) return put_header(mux, YAMUX_WINDOW_UPDATE, YAMUX_RST, id, 0);
  insert(mux, *out, id);
  if (!put_header(mux, YAMUX_WINDOW_UPDATE, YAMUX_ACK, id, 0)) return false;
  if (!call(*out, mux->ops->accepted)) *out = NULL;
  return !mux->is_over;
}

static bool handle_credit(struct mux_stream *stream, uint32_t more) {
  if (more > UINT32_MAX - stream->send_credit)
    return fail(stream->mux, "the peer gives more than 4 GiB of yamux credit");
  stream->send_credit += more;
  if (stream->send_credit && mux_pending(stream)) wait_for_room(stream);
  return true;
}

static bool begin_data(struct mux_stream *stream, uint32_t len) {
  if (stream->peer_ended && len) return fail(stream->mux, "the peer sends yamux data behind the end of its stream");
  if (len > stream->receive_credit) return fail(stream->mux, "the peer sends more than its yamux window");
  stream->receive_credit -= len;
  return true;
}

/* A header of DATA or WINDOW_UPDATE. */
static bool handle_stream_frame(struct mux *mux, const struct yamux_header *header) {
  bool is_data = header->type == YAMUX_DATA;
  struct mux_stream *stream = NULL;
  if (header->flags & YAMUX_SYN) {
    if (!handle_syn(mux, header->stream, &stream)) return false;
  } else {
    stream = find(mux, header->stream);
  }
  mux->frame_left = is_data ? header->length : 0;
  mux->frame_flags = header->flags;
  mux->frame_stream = stream;
  if (!stream) return true; /* of a stream that was forgotten: its data is dropped */
  if ((header->flags & YAMUX_ACK) && !stream->is_acked) {
    stream->is_acked = true;
    if (mux->is_dialer == (stream->id % 2 == 1)) mux->unacked_count--;
  }
  if (header->flags & YAMUX_RST) {
    handle_reset(stream);
    return !mux->is_over;
  }
  return is_data ? begin_data(stream, header->length) : handle_credit(stream, header->length);
}

static bool handle_ping(struct mux *mux, const struct yamux_header *header) {
  if (!(header->flags & YAMUX_ACK)) return put_header(mux, YAMUX_PING, YAMUX_ACK, 0, header->length);
  if (header->length == mux->ping_value) mux->ping_sent_ns = 0;
  return true;
}

static bool handle_header(struct mux *mux) {
  struct yamux_header header;
  if (!yamux_read_header(mux->header, &header)) return fail(mux, "the peer sends something that is no yamux frame");
  if (mux->out.len > OUT_BYTES_MAX) return fail(mux, "the peer asks for answers and does not read them");
  mux->frame_left = 0;
  mux->frame_flags = 0;
  mux->frame_stream = NULL;
  switch (header.type) {
  case YAMUX_PING:
    return handle_ping(mux, &header);
  case YAMUX_GO_AWAY:
    mux->peer_leaves = true;
    mux->peer_leaves_code = header.length;
    return true;
  default:
    return handle_stream_frame(mux, &header);
  }
}

/* When all of a frame has come. */
static bool end_frame(struct mux *mux) {
  struct mux_stream *stream = mux->frame_stream;
  mux->header_len = 0;
  if (stream && (mux->frame_flags & YAMUX_FIN)) handle_end(stream);
  mux->frame_stream = NULL;
  return !mux->is_over;
}

static size_t take_header(struct mux *mux, const uint8_t *data, size_t len) {
  size_t part = YAMUX_HEADER_BYTES - (size_t)mux->header_len;
  if (part > len) part = len;
  memcpy(mux->header + mux->header_len, data, part);
  mux->header_len += (uint8_t)part;
  return part;
}

/* One step; *used grows. False: broken or over. */
static bool advance(struct mux *mux, uint8_t *data, size_t len, size_t *used) {
  if (mux->header_len < YAMUX_HEADER_BYTES) {
    *used = take_header(mux, data, len);
    if (mux->header_len < YAMUX_HEADER_BYTES) return true;
    if (!handle_header(mux)) return false;
  } else {
    size_t part = mux->frame_left < len ? mux->frame_left : len;
    *used = part;
    mux->frame_left -= (uint32_t)part;
    if (mux->frame_stream && !take_data(mux->frame_stream, data, part)) return false;
  }
  return mux->frame_left > 0 || end_frame(mux);
}

bool mux_received(struct mux *mux, uint8_t *data, size_t len) {
  while (len && !mux->is_over && !mux->failure) {
    size_t used = 0;
    if (!advance(mux, data, len, &used)) break;
    data += used;
    len -= used;
  }
  if (mux->failure) mux_go_away(mux, YAMUX_PROTOCOL_ERROR);
  return !mux->failure;
}

void mux_ping(struct mux *mux, uint64_t now_ns) {
  if (mux->ping_sent_ns) return;
  mux->ping_value++;
  if (put_header(mux, YAMUX_PING, YAMUX_SYN, 0, mux->ping_value)) mux->ping_sent_ns = now_ns;
}

void mux_go_away(struct mux *mux, enum yamux_go_away code) {
  put_header(mux, YAMUX_GO_AWAY, 0, 0, code);
}
