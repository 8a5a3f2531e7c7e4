#include "base/clock.h"
#include "server/gateway.h"
#include "server/session.h"

#include <string.h>

static void count_written(struct session *session, size_t len) {
  session->written += len;
  atomic_uint_fast64_t *peak = &session->gateway->stats.output_peak;
  size_t pending = stream_pending(&session->stream);
  if (pending > atomic_load_explicit(peak, memory_order_relaxed)) {
    atomic_store_explicit(peak, pending, memory_order_relaxed);
  }
}

static uint8_t *room_for(struct session *session, size_t len) {
  uint8_t *room = stream_reserve(&session->stream, len);
  if (!room) session_close(session, true);
  return room;
}

bool session_write_raw(struct session *session, const void *data, size_t len) {
  uint8_t *room = room_for(session, len);
  if (!room) return false;
  memcpy(room, data, len);
  stream_commit(&session->stream, len);
  count_written(session, len);
  return true;
}

bool frame_begin(struct session *session, struct frame *frame, int32_t cmd, int32_t qos, size_t body_len) {
  size_t envelope_len = juggle_envelope_head_size(cmd, qos, body_len, session->obfuscated) + body_len;
  frame->body_len = body_len;
  frame->total = ws_header_size(envelope_len, false) + envelope_len;
  uint8_t *room = room_for(session, frame->total);
  if (!room) return false;
  uint8_t header[WS_HEADER_MAX];
  size_t header_len = ws_write_header(header, WS_BINARY, envelope_len, NULL);
  memcpy(room, header, header_len);
  frame->body = juggle_write_envelope_head(room + header_len, cmd, qos, body_len, session->obfuscated);
  return true;
}

void frame_end(struct session *session, const struct frame *frame) {
  if (session->obfuscated) juggle_xor(frame->body, frame->body_len, &session->key);
  stream_commit(&session->stream, frame->total);
  count_written(session, frame->total);
}

bool session_write_connect_ack(struct session *session, const struct juggle_connect_ack *ack) {
  struct frame frame;
  if (!frame_begin(session, &frame, JUGGLE_CONNECT_ACK, 0, juggle_connect_ack_size(ack))) return false;
  juggle_write_connect_ack(frame.body, ack);
  frame_end(session, &frame);
  return true;
}

bool session_write_publish_ack(struct session *session, const struct juggle_publish_ack *ack) {
  struct frame frame;
  if (!frame_begin(session, &frame, JUGGLE_PUBLISH_ACK, 0, juggle_publish_ack_size(ack))) return false;
  juggle_write_publish_ack(frame.body, ack);
  frame_end(session, &frame);
  return true;
}

/* Answers that the original's gateway gives itself carry qos 0 (section 1.4). */
static int32_t query_ack_qos(int32_t code) {
  bool refused = code == JUGGLE_TOPIC_UNSUPPORTED || code == JUGGLE_RATE_LIMIT || code == JUGGLE_TOPIC_MISSING;
  return refused ? 0 : 1;
}

bool session_write_query_ack(struct session *session, const struct juggle_query_ack *ack) {
  struct frame frame;
  size_t body_len = juggle_query_ack_size(ack);
  if (!frame_begin(session, &frame, JUGGLE_QUERY_ACK, query_ack_qos(ack->code), body_len)) return false;
  juggle_write_query_ack(frame.body, ack);
  frame_end(session, &frame);
  return true;
}

bool session_write_disconnect(struct session *session, int32_t code, struct view ext) {
  struct juggle_disconnect disconnect = {.code = code, .timestamp_ms = clock_wall_ms(), .ext = ext};
  struct frame frame;
  if (!frame_begin(session, &frame, JUGGLE_DISCONNECT, 0, juggle_disconnect_size(&disconnect))) return false;
  juggle_write_disconnect(frame.body, &disconnect);
  frame_end(session, &frame);
  return true;
}

bool session_write_pong(struct session *session) {
  struct frame frame;
  if (!frame_begin(session, &frame, JUGGLE_PONG, 0, 0)) return false;
  frame_end(session, &frame);
  return true;
}

bool session_output_open(struct session *session) {
  size_t limit = session->gateway->config->session_out_bytes;
  if (stream_pending(&session->stream) <= limit) return true;
  if (!stream_blocked(&session->stream)) stream_flush(&session->stream);
  if (session->state != SESSION_OPEN) return false;
  if (stream_pending(&session->stream) <= limit) return true;
  session_pause(session, PAUSE_OUTPUT);
  return false;
}
