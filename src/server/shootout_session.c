#include "base/clock.h"
#include "net/http.h"
#include "server/metrics.h"
#include "server/shootout_room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLOSE_DELAY_NS (50 * NS_PER_MS)
#define CABLE_PROTOCOL "actioncable-v1-json"

static struct shootout_session *session_of(struct stream *stream) {
  return (struct shootout_session *)((char *)stream - offsetof(struct shootout_session, stream));
}

static const struct server_config *config_of(const struct shootout_session *session) {
  return session->loop->house->config;
}

static struct wheel *wheel_of(const struct shootout_session *session) {
  return loop_wheel(session->loop->loop);
}

static uint64_t now_of(const struct shootout_session *session) {
  return loop_now_ns(session->loop->loop);
}

/* ---- Membership ---- */

static void join(struct shootout_session *session) {
  if (session->member_link) return;
  struct shootout_session **head = &session->loop->members[session->room];
  session->next_member = *head;
  session->member_link = head;
  if (*head) (*head)->member_link = &session->next_member;
  *head = session;
  stat_add(&session->loop->stats.members, 1);
}

static void leave(struct shootout_session *session) {
  if (!session->member_link) return;
  *session->member_link = session->next_member;
  if (session->next_member) session->next_member->member_link = session->member_link;
  session->member_link = NULL;
  stat_sub(&session->loop->stats.members, 1);
}

/* ---- Life ---- */

static void release_when_done(struct shootout_session *session) {
  if (session->state == SHOOTOUT_GONE && session->awaited == 0) loop_defer(session->loop->loop, free, session);
}

void shootout_close(struct shootout_session *session, bool reset) {
  if (session->state == SHOOTOUT_GONE) return;
  session->state = SHOOTOUT_GONE;
  leave(session);
  *session->link = session->next;
  if (session->next) session->next->link = session->link;
  timer_cancel(wheel_of(session), &session->timer);
  stream_close(&session->stream, reset);
  ws_free(&session->ws);
  stat_sub(&session->loop->stats.connections, 1);
  release_when_done(session);
}

void shootout_pause(struct shootout_session *session, enum shootout_pause why) {
  if (session->pauses == 0) {
    stream_pause(&session->stream);
    stat_add(&session->loop->stats.pauses, 1);
  }
  session->pauses |= (uint8_t)why;
}

static void resume(struct shootout_session *session, enum shootout_pause why) {
  if (!(session->pauses & why)) return;
  session->pauses &= (uint8_t)~why;
  if (session->pauses == 0) stream_resume(&session->stream);
}

/* Ends the session a little later, so that what was written can leave; what comes is thrown away. */
static void linger(struct shootout_session *session) {
  leave(session);
  session->state = SHOOTOUT_CLOSING;
  timer_arm(wheel_of(session), &session->timer, now_of(session) + CLOSE_DELAY_NS);
  if (session->pauses) stream_resume(&session->stream);
  session->pauses = 0;
}

/* ---- Writing ---- */

static bool write_raw(struct shootout_session *session, const void *data, size_t len) {
  if (!stream_write(&session->stream, data, len)) {
    shootout_close(session, true);
    return false;
  }
  session->written += len;
  return true;
}

void shootout_finish(struct shootout_session *session, uint16_t code, const char *reason) {
  if (session->state != SHOOTOUT_OPEN) return;
  uint8_t frame[131];
  if (write_raw(session, frame, ws_write_close(frame, code, reason, NULL))) linger(session);
}

/* While the socket is blocked, looks from time to time whether output moves. */
static void watch_output(struct shootout_session *session) {
  if (!stream_blocked(&session->stream) || timer_armed(&session->timer)) return;
  session->moved = session->written - stream_pending(&session->stream);
  session->moved_ns = now_of(session);
  uint64_t period_ns = (uint64_t)config_of(session)->slow_reader_ms * NS_PER_MS / 4 + NS_PER_MS;
  timer_arm(wheel_of(session), &session->timer, now_of(session) + period_ns);
}

static void drop_slow(struct shootout_session *session) {
  stat_add(&session->loop->stats.slow_readers_dropped, 1);
  shootout_close(session, true);
}

/* Whether len more bytes may wait. One message may always wait alone, however long. */
static bool has_room(struct shootout_session *session, size_t len) {
  size_t limit = config_of(session)->session_out_bytes;
  if (stream_pending(&session->stream) + len <= limit) return true;
  if (!stream_blocked(&session->stream)) stream_flush(&session->stream);
  size_t pending = stream_pending(&session->stream);
  return pending == 0 || pending + len <= limit;
}

bool shootout_give(struct shootout_session *session, const uint8_t *frame, size_t len) {
  if (session->state != SHOOTOUT_OPEN) return false;
  if (!has_room(session, len)) {
    drop_slow(session);
    return false;
  }
  if (!write_raw(session, frame, len)) return false;
  watch_output(session);
  return true;
}

static void write_text(struct shootout_session *session, enum shootout_protocol protocol, struct shootout_text *text) {
  size_t len = shootout_frame_size(text);
  uint8_t *room = stream_reserve(&session->stream, len);
  if (!room) {
    shootout_close(session, true);
    return;
  }
  shootout_write_frame(room, protocol, text);
  stream_commit(&session->stream, len);
  session->written += len;
  watch_output(session);
}

static void write_view(struct shootout_session *session, struct view message) {
  struct shootout_text text = {.piece = {message}, .count = 1, .len = message.len};
  write_text(session, (enum shootout_protocol)session->protocol, &text);
}

void shootout_result(struct shootout_session *session, size_t held_bytes, const uint8_t *frame, size_t len) {
  session->awaited--;
  session->awaited_bytes -= held_bytes;
  if (session->state == SHOOTOUT_GONE) {
    release_when_done(session);
    return;
  }
  stat_add(&session->loop->stats.results, 1);
  shootout_give(session, frame, len);
  bool few = session->awaited_bytes <= config_of(session)->session_out_bytes / 2;
  if (session->state == SHOOTOUT_OPEN && few) resume(session, SHOOTOUT_PAUSE_RESULTS);
}

/* ---- Messages ---- */

static void protocol_error(struct shootout_session *session, uint16_t code, const char *reason) {
  stat_add(&session->loop->stats.protocol_errors, 1);
  shootout_finish(session, code, reason);
}

static bool has_channels(const struct shootout_session *session) {
  return session->room == ROOM_PHOENIX || session->room == ROOM_CABLE;
}

/* Whether a message names the one channel that there is. */
static bool names_channel(const struct shootout_session *session, const struct shootout_message *message) {
  if (session->room == ROOM_PHOENIX) return shootout_is_lobby(message->topic);
  return shootout_is_benchmark_channel(message->identifier);
}

static void refuse(struct shootout_session *session, enum shootout_protocol protocol,
    const struct shootout_message *message, const char *reason) {
  struct shootout_text text;
  shootout_refuse(&text, protocol, message, reason);
  write_text(session, protocol, &text);
}

static void confirm(
    struct shootout_session *session, enum shootout_protocol protocol, const struct shootout_message *message) {
  struct shootout_text text;
  shootout_confirm(&text, protocol, message);
  write_text(session, protocol, &text);
}

static void echo(
    struct shootout_session *session, enum shootout_protocol protocol, const struct shootout_message *message) {
  struct shootout_text text;
  shootout_answer(&text, protocol, SHOOTOUT_ECHO, message);
  stat_add(&session->loop->stats.echoes, 1);
  write_text(session, protocol, &text);
}

/* What no channel takes: JSON and Phoenix say so, ActionCable is silent, of the binary protocol it is garbage. */
static void not_understood(
    struct shootout_session *session, enum shootout_protocol protocol, const struct shootout_message *message) {
  if (protocol == SHOOTOUT_BINARY) {
    protocol_error(session, 1003, "unknown message type");
    return;
  }
  stat_add(&session->loop->stats.protocol_errors, 1);
  if (protocol == SHOOTOUT_CABLE) return;
  bool elsewhere = session->room == ROOM_PHOENIX && (!session->member_link || !names_channel(session, message));
  refuse(session, protocol, message, elsewhere ? "unmatched topic" : "unknown message type");
}

static void dispatch(
    struct shootout_session *session, enum shootout_protocol protocol, const struct shootout_message *message) {
  bool reaches = !has_channels(session) || (session->member_link && names_channel(session, message));
  switch (message->kind) {
  case SHOOTOUT_ECHO:
    if (!reaches) break;
    echo(session, protocol, message);
    return;
  case SHOOTOUT_BROADCAST:
    if (!reaches) break;
    if (!shootout_broadcast(session, protocol, message)) shootout_close(session, true);
    return;
  case SHOOTOUT_JOIN:
    if (!names_channel(session, message)) {
      refuse(session, protocol, message, "unmatched topic");
      return;
    }
    join(session);
    confirm(session, protocol, message);
    return;
  case SHOOTOUT_LEAVE:
    if (names_channel(session, message)) leave(session);
    if (protocol != SHOOTOUT_CABLE) confirm(session, protocol, message);
    return;
  case SHOOTOUT_HEARTBEAT:
    confirm(session, protocol, message);
    return;
  default:
    break;
  }
  not_understood(session, protocol, message);
}

static void message_received(struct shootout_session *session, const struct ws_event *event) {
  bool binary = event->opcode == WS_BINARY;
  bool takes = binary ? session->room == ROOM_JSON || session->room == ROOM_BINARY : session->room != ROOM_BINARY;
  if (!takes) {
    protocol_error(session, 1003, binary ? "this path takes text only" : "this path takes binary frames only");
    return;
  }
  enum shootout_protocol protocol = binary ? SHOOTOUT_BINARY : (enum shootout_protocol)session->protocol;
  struct shootout_message message;
  if (!shootout_read_request(protocol, event->data, event->len, &message)) {
    protocol_error(session, 1007, "not a message of this protocol");
    return;
  }
  dispatch(session, protocol, &message);
}

static void event_received(struct shootout_session *session, const struct ws_event *event) {
  uint8_t frame[131];
  switch (event->kind) {
  case WS_EVENT_MESSAGE:
    message_received(session, event);
    return;
  case WS_EVENT_PING:
    write_raw(session, frame, ws_write_control(frame, WS_PONG, event->data, event->len, NULL));
    return;
  case WS_EVENT_CLOSE:
    shootout_finish(session, event->close_code == 1005 ? 1000 : event->close_code, NULL);
    return;
  case WS_EVENT_ERROR:
    protocol_error(session, event->close_code, event->text);
    return;
  default:
    return;
  }
}

/* Reads no further while answers pile up. */
static void hold_back(struct shootout_session *session) {
  size_t limit = config_of(session)->session_out_bytes / 2;
  if (session->awaited_bytes > limit) shootout_pause(session, SHOOTOUT_PAUSE_RESULTS);
  if (stream_pending(&session->stream) <= limit) return;
  if (!stream_blocked(&session->stream)) stream_flush(&session->stream);
  if (stream_blocked(&session->stream)) shootout_pause(session, SHOOTOUT_PAUSE_OUTPUT);
}

static size_t frames_received(struct shootout_session *session, uint8_t *data, size_t len) {
  size_t used = 0;
  while (used < len && session->state == SHOOTOUT_OPEN && session->pauses == 0) {
    struct ws_event event;
    size_t read = ws_read(&session->ws, data + used, len - used, &event);
    used += read;
    if (event.kind == WS_EVENT_NONE) {
      if (read == 0) break;
      continue;
    }
    event_received(session, &event);
    if (session->state == SHOOTOUT_OPEN) hold_back(session);
  }
  return session->state == SHOOTOUT_OPEN ? used : len;
}

/* ---- HTTP ---- */

static void answer_http(struct shootout_session *session, const char *status, const char *body) {
  char text[2048];
  int len = snprintf(text, sizeof text,
      "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status,
      strlen(body), body);
  if (len > 0 && (size_t)len < sizeof text && write_raw(session, text, (size_t)len)) linger(session);
}

static struct view path_of(struct view target) {
  const uint8_t *query = target.len ? memchr(target.data, '?', target.len) : NULL;
  if (query) target.len = (size_t)(query - target.data);
  return target;
}

/* Whether the query asks for version 2 of Phoenix's frames. */
static bool wants_version_2(struct view target) {
  static const char parameter[] = "vsn=2";
  size_t len = sizeof parameter - 1;
  for (size_t i = path_of(target).len; i + 1 + len <= target.len; i++) {
    bool starts = target.data[i] == '?' || target.data[i] == '&';
    if (starts && memcmp(target.data + i + 1, parameter, len) == 0) return true;
  }
  return false;
}

/* False when the path is none of ours. */
static bool choose_protocol(struct shootout_session *session, struct view target) {
  struct view path = path_of(target);
  if (view_is(path, "/ws") || view_is(path, "/json") || view_is(path, "/")) {
    session->room = ROOM_JSON;
    session->protocol = SHOOTOUT_JSON;
  } else if (view_is(path, "/binary")) {
    session->room = ROOM_BINARY;
    session->protocol = SHOOTOUT_BINARY;
  } else if (view_is(path, "/socket/websocket")) {
    session->room = ROOM_PHOENIX;
    session->protocol = wants_version_2(target) ? SHOOTOUT_PHOENIX_2 : SHOOTOUT_PHOENIX;
  } else if (view_is(path, "/cable")) {
    session->room = ROOM_CABLE;
    session->protocol = SHOOTOUT_CABLE;
  } else {
    return false;
  }
  return true;
}

static void upgrade(struct shootout_session *session, const struct http_head *head) {
  bool subprotocol = session->room == ROOM_CABLE && http_has_token(head, "sec-websocket-protocol", CABLE_PROTOCOL);
  const char *extra = subprotocol ? "Sec-WebSocket-Protocol: " CABLE_PROTOCOL "\r\n" : "";
  char text[512];
  size_t len = 0;
  enum status status = ws_answer_request_with(head, extra, text, sizeof text, &len, NULL);
  if (status != STATUS_OK) {
    if (write_raw(session, text, len)) linger(session);
    return;
  }
  timer_cancel(wheel_of(session), &session->timer);
  ws_init(&session->ws, WS_SERVER, config_of(session)->message_max_bytes);
  session->state = SHOOTOUT_OPEN;
  stat_add(&session->loop->stats.upgraded, 1);
  /* First the set, then the answer: whoever has seen the 101 misses no broadcast. What another thread has under way
   * comes from this thread's inbox later, behind the answer. */
  if (!has_channels(session)) join(session);
  if (write_raw(session, text, len) && session->room == ROOM_CABLE) write_view(session, shootout_welcome());
}

static size_t head_received(struct shootout_session *session, const uint8_t *data, size_t len) {
  struct http_head head;
  size_t used = 0;
  enum http_result result = http_read_request(data, len, &head, &used, NULL);
  if (result == HTTP_PARTIAL && len < HTTP_HEAD_MAX) return 0;
  if (result != HTTP_COMPLETE) {
    stat_add(&session->loop->stats.protocol_errors, 1);
    answer_http(session, "400 Bad Request", "{\"error\":\"not an HTTP request\"}");
    return len;
  }
  if (view_is(path_of(head.target), "/metrics")) {
    char body[1024];
    shootout_metrics(session->loop->house, body, sizeof body);
    answer_http(session, "200 OK", body);
  } else if (choose_protocol(session, head.target)) {
    upgrade(session, &head);
  } else {
    answer_http(session, "404 Not Found", "{\"error\":\"no such path\"}");
  }
  return used;
}

/* ---- The stream ---- */

static size_t received(struct stream *stream, uint8_t *data, size_t len) {
  struct shootout_session *session = session_of(stream);
  size_t used = 0;
  if (session->state == SHOOTOUT_HTTP) {
    used = head_received(session, data, len);
    if (session->state == SHOOTOUT_HTTP) return used;
  }
  if (session->state != SHOOTOUT_OPEN) return len;
  return used + frames_received(session, data + used, len - used);
}

static void opened(struct stream *stream) {
  (void)stream;
}

static void drained(struct stream *stream) {
  struct shootout_session *session = session_of(stream);
  if (session->state == SHOOTOUT_OPEN) resume(session, SHOOTOUT_PAUSE_OUTPUT);
}

static void closed(struct stream *stream, enum stream_end end, int error) {
  (void)end;
  (void)error;
  shootout_close(session_of(stream), false);
}

static const struct stream_ops stream_ops = {
    .opened = opened,
    .received = received,
    .drained = drained,
    .closed = closed,
};

static void check_output(struct shootout_session *session) {
  size_t pending = stream_pending(&session->stream);
  if (pending == 0) return;
  uint64_t limit_ns = (uint64_t)config_of(session)->slow_reader_ms * NS_PER_MS;
  if (session->written - pending == session->moved && now_of(session) - session->moved_ns >= limit_ns) {
    drop_slow(session);
    return;
  }
  uint64_t since_ns = session->moved_ns, moved = session->moved;
  watch_output(session);
  if (session->moved == moved) session->moved_ns = since_ns;
}

static void timer_fired(struct timer *timer, uint64_t now_ns) {
  (void)now_ns;
  struct shootout_session *session =
      (struct shootout_session *)((char *)timer - offsetof(struct shootout_session, timer));
  if (session->state == SHOOTOUT_OPEN) {
    check_output(session);
    return;
  }
  if (session->state == SHOOTOUT_HTTP) stat_add(&session->loop->stats.deadlines, 1);
  shootout_close(session, false);
}

void shootout_accept(struct shootout_loop *loop, int fd) {
  struct shootout_session *session = calloc(1, sizeof *session);
  if (!session) {
    close(fd);
    return;
  }
  /* No protocol here lets the server ask whether an idle client is still there, so TCP does. */
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  session->loop = loop;
  session->timer.fire = timer_fired;
  if (stream_accept(&session->stream, loop->loop, &stream_ops, fd, loop->tls, NULL) != STATUS_OK) {
    free(session);
    return;
  }
  session->next = loop->sessions;
  session->link = &loop->sessions;
  if (session->next) session->next->link = &session->next;
  loop->sessions = session;
  stat_add(&loop->stats.accepted, 1);
  stat_add(&loop->stats.connections, 1);
  uint64_t deadline_ns = (uint64_t)loop->house->config->login_deadline_ms * NS_PER_MS;
  timer_arm(loop_wheel(loop->loop), &session->timer, loop_now_ns(loop->loop) + deadline_ns);
}
