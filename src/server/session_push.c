/* How a message reaches a session: pushed while its window is open, else noted for one small notice (ntf), after
 * which the client pulls.
 *
 * Notify mode begins with the first message that is not pushed and ends with a finished sync: the core answers a sync
 * after every fan-out that it posted before, so nothing older is left once isFinished has come back. Within the mode
 * nothing is pushed directly, because a client's cursor would pass over what it has not pulled. One notice is enough
 * until the next sync arrives: a sync that is posted later than a fan-out was seen includes that message. */
#include "base/clock.h"
#include "server/gateway.h"
#include "server/session.h"
#include "wire/pb.h"

#include <string.h>

#define NOTICE_REPEAT_NS NS_PER_SEC

static struct view user_view(const struct session *session) {
  return view_of(session->user_id, session->user_id_len);
}

/* Counts every push of the server, of which the wire shows 16 bits (section 4.2). */
static uint32_t take_index(struct session *session) {
  return session->next_index++;
}

static uint8_t *append(uint8_t *at, const uint8_t *bytes, uint32_t len) {
  if (len) memcpy(at, bytes, len);
  return at + len;
}

/* The DownMsg for this recipient: the shared parts around its own receive time and unread index. */
static void write_down_msg(uint8_t *at, const struct fan_out *message, const struct fan_out_target *target) {
  at = append(at, message->bytes, message->head_len);
  at = pb_write_uint_field(at, 8, (uint64_t)target->msg_time_ms);
  at = append(at, message->bytes + message->head_len, message->middle_len);
  at = pb_write_uint_field(at, 23, (uint64_t)target->unread_index);
  append(at, message->bytes + message->head_len + message->middle_len, message->tail_len);
}

static bool write_push(
    struct session *session, const struct fan_out *message, const struct fan_out_target *target, int32_t qos) {
  size_t data_len = (size_t)message->head_len + message->middle_len + message->tail_len +
                    pb_uint_field_size(8, (uint64_t)target->msg_time_ms) +
                    pb_uint_field_size(23, (uint64_t)target->unread_index);
  struct juggle_request publish = {
      .index = (uint16_t)session->next_index,
      .topic = view_str("msg"),
      .target = user_view(session),
      .timestamp_ms = clock_wall_ms(),
      .data = {NULL, data_len},
  };
  struct frame frame;
  if (!frame_begin(session, &frame, JUGGLE_PUBLISH, qos, juggle_request_size(&publish))) return false;
  write_down_msg(juggle_write_request(frame.body, &publish), message, target);
  frame_end(session, &frame);
  take_index(session);
  return true;
}

static bool write_notice(struct session *session, const struct juggle_notify *notify) {
  struct juggle_request publish = {
      .index = (uint16_t)session->next_index,
      .topic = view_str("ntf"),
      .target = user_view(session),
      .timestamp_ms = clock_wall_ms(),
      .data = {NULL, juggle_notify_size(notify)},
  };
  struct frame frame;
  if (!frame_begin(session, &frame, JUGGLE_PUBLISH, 1, juggle_request_size(&publish))) return false;
  juggle_write_notify(juggle_write_request(frame.body, &publish), notify);
  frame_end(session, &frame);
  take_index(session);
  return true;
}

static void send_notice(struct session *session) {
  if (!session_output_open(session)) return;
  struct juggle_notify notify = {.type = JUGGLE_NOTIFY_MSG, .sync_time_ms = session->newest_ms};
  if (!write_notice(session, &notify)) return;
  session->notice_out = true;
  session->noticed_ms = session->newest_ms;
  session->notice_ns = loop_now_ns(session->gateway->loop);
  stat_add(&session->gateway->stats.notices, 1);
}

void session_notify(struct session *session, int64_t sync_time_ms) {
  session->notify = true;
  if (sync_time_ms > session->newest_ms) session->newest_ms = sync_time_ms;
  bool fresh = session->notice_out && loop_now_ns(session->gateway->loop) - session->notice_ns < NOTICE_REPEAT_NS;
  if (fresh) {
    stat_add(&session->gateway->stats.notices_coalesced, 1);
    return;
  }
  send_notice(session);
}

void session_notify_owed(struct session *session) {
  if (session->state != SESSION_OPEN || !session->notify) return;
  if (session->noticed_ms >= session->newest_ms) return;
  send_notice(session);
}

static void push_state(struct session *session, const struct fan_out *message, const struct fan_out_target *target) {
  if (!session_output_open(session)) {
    stat_add(&session->gateway->stats.states_dropped, 1);
    return;
  }
  if (write_push(session, message, target, 0)) stat_add(&session->gateway->stats.states, 1);
}

/* A chatroom is lossy: a notice that finds too much waiting is dropped, and the room's next one a second later tries
 * again. */
static void push_room_notice(
    struct session *session, const struct fan_out *message, const struct fan_out_target *target) {
  if (!session_output_open(session)) {
    stat_add(&session->gateway->stats.room_notices_dropped, 1);
    return;
  }
  struct juggle_notify notify = {.type = message->notice,
      .sync_time_ms = target->msg_time_ms,
      .room_id = view_of(message->bytes, message->head_len)};
  if (write_notice(session, &notify)) stat_add(&session->gateway->stats.room_notices_written, 1);
}

static bool window_open(const struct session *session) {
  return session->unacked < session->gateway->config->push_window;
}

void session_push(struct session *session, const struct fan_out *message, const struct fan_out_target *target) {
  if (session->state != SESSION_OPEN) return;
  if (message->notice) {
    push_room_notice(session, message, target);
    return;
  }
  if (message->state) {
    push_state(session, message, target);
    return;
  }
  bool window = target->is_copy || window_open(session);
  if (session->notify || !window || !session_output_open(session)) {
    if (session->state == SESSION_OPEN) session_notify(session, target->msg_time_ms);
    return;
  }
  uint32_t index = session->next_index;
  if (!write_push(session, message, target, target->is_copy ? 0 : 1)) return;
  stat_add(target->is_copy ? &session->gateway->stats.copies : &session->gateway->stats.pushes, 1);
  if (target->is_copy) return;
  if (session->unacked++ == 0) session->oldest_index = index;
}

void session_push_acked(struct session *session, int32_t index) {
  stat_add(&session->gateway->stats.acks_in, 1);
  if (session->unacked == 0) return;
  /* The newest push whose low 16 bits are this index. */
  uint32_t age = (uint16_t)(session->next_index - 1 - (uint32_t)index);
  uint32_t outstanding = session->next_index - session->oldest_index;
  if (age >= outstanding) return;
  uint32_t acked = session->next_index - 1 - age;
  if (acked == session->oldest_index) session->oldest_index++;
  session->unacked--;
}

void session_sync_began(struct session *session) {
  session->notice_out = false;
}

void session_sync_finished(struct session *session) {
  session->notify = false;
  session->notice_out = false;
  session->unacked = 0;
  session->newest_ms = session->noticed_ms = 0;
}
