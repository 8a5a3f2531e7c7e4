/* Streams of a connection: which protocol they speak, and the owner's callbacks. */
#include "net/libp2p/node.h"

#include "net/loop_private.h"
#include "wire/multistream.h"

#include <stdlib.h>
#include <string.h>

enum { PROPOSALS_MAX = 8, SPARE_MAX = 256 };

static struct libp2p_stream *stream_of(struct mux_stream *mux) {
  return (struct libp2p_stream *)mux;
}

static struct libp2p_stream *take_stream(struct libp2p *node) {
  struct libp2p_stream *stream = node->spare_streams;
  if (!stream) return calloc(1, sizeof *stream);
  node->spare_streams = stream->next_resume;
  node->spare_stream_count--;
  memset(stream, 0, sizeof *stream);
  return stream;
}

static void unlink_resume(struct libp2p_stream *stream) {
  if (!stream->resume_link) return;
  *stream->resume_link = stream->next_resume;
  if (stream->next_resume) stream->next_resume->resume_link = stream->resume_link;
  stream->resume_link = NULL;
}

/* It has left the mux. */
void streams_free(struct libp2p_stream *stream) {
  struct libp2p *node = stream->conn->node;
  unlink_resume(stream);
  if (!stream->protocol) stream->conn->incoming_streams--;
  if (node->spare_stream_count == SPARE_MAX) {
    free(stream);
    return;
  }
  stream->next_resume = node->spare_streams;
  node->spare_streams = stream;
  node->spare_stream_count++;
}

static void tell_closed(struct libp2p_stream *stream, enum libp2p_stream_end end) {
  if (stream->ops && stream->ops->closed) stream->ops->closed(stream, end);
  streams_free(stream);
}

void streams_close_all(struct libp2p_conn *conn, bool tell) {
  struct mux_stream *mux;
  while ((mux = mux_take_any(&conn->mux))) {
    if (tell) {
      tell_closed(stream_of(mux), LIBP2P_STREAM_LOST);
    } else {
      streams_free(stream_of(mux));
    }
  }
}

/* --- negotiation ---------------------------------------------------------------------------------------------------
 */

static bool put_messages(struct libp2p_stream *stream, const char *first, const char *second) {
  uint8_t bytes[2 * MULTISTREAM_MESSAGE_MAX];
  uint8_t *at = multistream_write(bytes, view_str(first));
  if (second) at = multistream_write(at, view_str(second));
  return mux_write(&stream->mux, bytes, (size_t)(at - bytes));
}

static const struct libp2p_protocol *find_protocol(const struct libp2p *node, struct view id) {
  for (size_t i = 0; i < node->config.protocol_count; i++) {
    if (view_is(id, node->config.protocols[i].id)) return &node->config.protocols[i];
  }
  return node->config.identify && view_is(id, IDENTIFY_PROTOCOL) ? &identify_protocol : NULL;
}

static void drop(struct libp2p_stream *stream, enum libp2p_stream_end end) {
  mux_reset(&stream->mux);
  tell_closed(stream, end);
}

/* True when the stream is still there. */
static bool agree(struct libp2p_stream *stream) {
  struct mux *mux = &stream->conn->mux;
  stream->is_agreed = true;
  if (stream->ops->opened) stream->ops->opened(stream);
  return mux->current == &stream->mux;
}

static bool take_answer(struct libp2p_stream *stream, struct view text) {
  if (view_is(text, stream->protocol)) return agree(stream);
  drop(stream, view_is(text, MULTISTREAM_NOT_AVAILABLE) ? LIBP2P_STREAM_REFUSED : LIBP2P_STREAM_BROKEN);
  return false;
}

static bool take_proposal(struct libp2p_stream *stream, struct view text) {
  struct mux *mux = &stream->conn->mux;
  const struct libp2p_protocol *protocol = find_protocol(stream->conn->node, text);
  if (!protocol && ++stream->proposals >= PROPOSALS_MAX) {
    drop(stream, LIBP2P_STREAM_REFUSED);
    return false;
  }
  put_messages(stream, protocol ? protocol->id : MULTISTREAM_NOT_AVAILABLE, NULL);
  if (!protocol) return true;
  stream->is_agreed = true;
  stream->ops = protocol->ops;
  stream->user = protocol == &identify_protocol ? NULL : stream->conn->node->config.user;
  if (protocol->accepted) protocol->accepted(stream, stream->user);
  return mux->current == &stream->mux;
}

/* Takes messages off the bytes until the protocol is agreed on; false: the stream is gone. */
static bool negotiate(struct libp2p_stream *stream, struct view *bytes) {
  while (!stream->is_agreed) {
    struct view text;
    enum multistream_result result = multistream_next(&stream->got_header, bytes, &text);
    if (result == MULTISTREAM_PARTIAL) return true;
    if (result == MULTISTREAM_BAD) {
      drop(stream, LIBP2P_STREAM_BROKEN);
      return false;
    }
    if (!(stream->protocol ? take_answer(stream, text) : take_proposal(stream, text))) return false;
  }
  return true;
}

/* --- what the mux tells --------------------------------------------------------------------------------------------
 */

static struct mux_stream *accept_stream(struct mux *mux) {
  struct libp2p_conn *conn = mux->user;
  if (conn->incoming_streams >= conn->node->config.streams_max) return NULL;
  struct libp2p_stream *stream = take_stream(conn->node);
  if (!stream) return NULL;
  stream->conn = conn;
  conn->incoming_streams++;
  return &stream->mux;
}

static void accepted(struct mux_stream *mux) {
  put_messages(stream_of(mux), MULTISTREAM_HEADER, NULL);
}

static size_t received(struct mux_stream *mux, uint8_t *data, size_t len) {
  struct libp2p_stream *stream = stream_of(mux);
  struct view rest = view_of(data, len);
  if (!stream->is_agreed && !negotiate(stream, &rest)) return 0;
  size_t used = len - rest.len;
  if (!stream->is_agreed || !rest.len) return used;
  /* What is dropped without a handler is credited like all else. */
  mux->mux->given = (uint32_t)rest.len;
  return used + stream->ops->received(stream, data + used, rest.len);
}

static void ended(struct mux_stream *mux) {
  struct libp2p_stream *stream = stream_of(mux);
  if (!stream->is_agreed) {
    drop(stream, LIBP2P_STREAM_BROKEN);
  } else if (stream->ops->ended) {
    stream->ops->ended(stream);
  } else {
    mux_end(mux);
  }
}

static void drained(struct mux_stream *mux) {
  struct libp2p_stream *stream = stream_of(mux);
  if (stream->ops && stream->ops->drained) stream->ops->drained(stream);
}

static void closed(struct mux_stream *mux, enum mux_stream_end end) {
  tell_closed(stream_of(mux), end == MUX_STREAM_DONE ? LIBP2P_STREAM_DONE : LIBP2P_STREAM_RESET);
}

static struct buf take_buf(struct mux *mux) {
  struct libp2p_conn *conn = mux->user;
  return loop_take_buf(conn->node->loop);
}

const struct mux_ops streams_mux_ops = {.accept = accept_stream,
    .accepted = accepted,
    .received = received,
    .ended = ended,
    .drained = drained,
    .closed = closed,
    .take_buf = take_buf};

/* --- what peer.h asks of a stream ----------------------------------------------------------------------------------
 */

struct libp2p_stream *libp2p_open_stream(
    struct libp2p_conn *conn, const char *protocol_id, const struct libp2p_stream_ops *ops, void *user) {
  if (conn->state != CONN_OPEN || strlen(protocol_id) > MULTISTREAM_TEXT_MAX) return NULL;
  struct libp2p_stream *stream = take_stream(conn->node);
  if (!stream) return NULL;
  stream->conn = conn;
  stream->ops = ops;
  stream->user = user;
  stream->protocol = protocol_id;
  if (!mux_open(&conn->mux, &stream->mux)) {
    streams_free(stream);
    return NULL;
  }
  node_mark_dirty(conn);
  if (put_messages(stream, MULTISTREAM_HEADER, protocol_id)) return stream;
  libp2p_stream_reset(stream);
  return NULL;
}

void *libp2p_stream_user(const struct libp2p_stream *stream) {
  return stream->user;
}

void libp2p_stream_set_user(struct libp2p_stream *stream, void *user) {
  stream->user = user;
}

struct libp2p_conn *libp2p_stream_conn(const struct libp2p_stream *stream) {
  return stream->conn;
}

bool libp2p_stream_write(struct libp2p_stream *stream, const void *data, size_t len) {
  node_mark_dirty(stream->conn);
  return mux_write(&stream->mux, data, len);
}

size_t libp2p_stream_pending(const struct libp2p_stream *stream) {
  return mux_pending(&stream->mux);
}

void libp2p_stream_end(struct libp2p_stream *stream) {
  node_mark_dirty(stream->conn);
  mux_end(&stream->mux);
}

void libp2p_stream_reset(struct libp2p_stream *stream) {
  node_mark_dirty(stream->conn);
  mux_reset(&stream->mux);
  streams_free(stream);
}

bool libp2p_stream_expect(struct libp2p_stream *stream, size_t len) {
  node_mark_dirty(stream->conn);
  return mux_expect(&stream->mux, len);
}

void libp2p_stream_resume(struct libp2p_stream *stream) {
  struct libp2p *node = stream->conn->node;
  if (stream->resume_link) return;
  stream->next_resume = node->resume;
  stream->resume_link = &node->resume;
  if (node->resume) node->resume->resume_link = &stream->next_resume;
  node->resume = stream;
  node_ask_hook(node);
}

void streams_run_resumes(struct libp2p *node) {
  /* Those that ask again from within wait for the next turn. */
  struct libp2p_stream *rest = node->resume;
  node->resume = NULL;
  if (rest) rest->resume_link = &rest;
  while (rest) {
    struct libp2p_stream *stream = rest;
    struct libp2p_conn *conn = stream->conn;
    unlink_resume(stream);
    node_mark_dirty(conn);
    mux_resume(&stream->mux);
  }
}
