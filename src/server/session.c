#include "server/session.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "server/gateway.h"
#include "server/pings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOSE_DELAY_NS (50 * NS_PER_MS)
#define RETRY_NS (5 * NS_PER_MS)

static struct session *session_of(struct stream *stream) {
  return (struct session *)((char *)stream - offsetof(struct session, stream));
}

static struct session *session_of_timer(struct timer *timer) {
  return (struct session *)((char *)timer - offsetof(struct session, timer));
}

static uint64_t now_of(const struct session *session) {
  return loop_now_ns(session->gateway->loop);
}

struct session_ref session_ref(const struct session *session) {
  return (struct session_ref){session->gateway->number, session->slot, session->generation};
}

static bool running(const struct session *session) {
  return atomic_load_explicit(&session->gateway->reached, memory_order_relaxed) == GATEWAY_RUNNING;
}

/* ---- Life ---- */

static void release(void *memory) {
  struct session *session = memory;
  struct gateway *gateway = session->gateway;
  slab_give(&gateway->slab, session);
}

static void log_out(struct session *session) {
  if (!session->logged_in) return;
  session->logged_in = false;
  if (session->user_id) stat_sub(&session->gateway->stats.sessions, 1);
  if (!running(session)) return;
  if (session->notify || session->unacked) core_post_unseen(session->gateway->core, session_ref(session));
  core_post_logout(session->gateway->core, session_ref(session));
}

void session_close(struct session *session, bool reset) {
  if (session->state == SESSION_FREE) return;
  log_out(session);
  session->state = SESSION_FREE;
  timer_cancel(loop_wheel(session->gateway->loop), &session->timer);
  stream_close(&session->stream, reset);
  ws_free(&session->ws);
  free(session->held);
  session->held = NULL;
  free(session->user_id);
  session->user_id = NULL;
  stat_sub(&session->gateway->stats.connections, 1);
  loop_defer(session->gateway->loop, release, session);
}

void session_finish(struct session *session) {
  if (session->state == SESSION_FREE || session->state == SESSION_CLOSING) return;
  log_out(session);
  session->state = SESSION_CLOSING;
  session->deadline_ns = now_of(session) + CLOSE_DELAY_NS;
  session_arm(session);
  if (session->pauses) stream_resume(&session->stream);
  session->pauses = 0;
}

void session_pause(struct session *session, enum session_pause why) {
  if (session->pauses == 0) stream_pause(&session->stream);
  if (why != PAUSE_LOGIN && !(session->pauses & why)) stat_add(&session->gateway->stats.pauses, 1);
  session->pauses |= (uint8_t)why;
  if (why == PAUSE_OUTPUT && session->moved_ns == 0) {
    session->moved_ns = now_of(session);
    session->moved = session->written - stream_pending(&session->stream);
    session_arm(session);
  }
}

void session_resume(struct session *session, enum session_pause why) {
  if (!(session->pauses & why)) return;
  session->pauses &= (uint8_t)~why;
  if (session->pauses) return;
  session->input_ns = now_of(session);
  stream_resume(&session->stream);
}

static void protocol_error(struct session *session) {
  stat_add(&session->gateway->stats.protocol_errors, 1);
  session_close(session, false);
}

/* ---- Time ---- */

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static uint64_t slow_check_ns(const struct session *session) {
  return (uint64_t)session->gateway->config->slow_reader_ms * NS_PER_MS / 4 + NS_PER_MS;
}

void session_arm(struct session *session) {
  uint64_t due = session->deadline_ns;
  if (session->state == SESSION_OPEN) {
    if (session->moved_ns) due = earlier(due, now_of(session) + slow_check_ns(session));
    if (session->pauses & PAUSE_CORE) due = earlier(due, now_of(session) + RETRY_NS);
  }
  timer_arm(loop_wheel(session->gateway->loop), &session->timer, due);
}

/* Output that waits must move within slow_reader_ms. Returns false when the session was dropped. */
static bool check_output(struct session *session) {
  size_t pending = stream_pending(&session->stream);
  uint64_t now = now_of(session), left = session->written - pending;
  if (pending == 0) {
    session->moved_ns = 0;
    return true;
  }
  if (session->moved_ns == 0 || left != session->moved) {
    session->moved = left;
    session->moved_ns = now;
    return true;
  }
  if (now - session->moved_ns < (uint64_t)session->gateway->config->slow_reader_ms * NS_PER_MS) return true;
  stat_add(&session->gateway->stats.slow_readers_dropped, 1);
  if (!session_write_disconnect(session, JUGGLE_HEARTBEAT, (struct view){0})) return false;
  stream_flush(&session->stream);
  session_close(session, stream_pending(&session->stream) > 0);
  return false;
}

static bool check_input(struct session *session) {
  uint64_t limit = (uint64_t)session->gateway->config->read_deadline_ms * NS_PER_MS;
  if (session->pauses || now_of(session) - session->input_ns < limit) return true;
  stat_add(&session->gateway->stats.deadlines, 1);
  session_close(session, false);
  return false;
}

static struct ping_rule ping_rule(const struct session *session) {
  const struct server_config *config = session->gateway->config;
  return (struct ping_rule){.asked_ms = config->ping_interval_ms, .read_deadline_ms = config->read_deadline_ms};
}

/* The kernel deals connections out evenly, so this gateway's share tells of all. */
static uint64_t current_interval_ns(const struct session *session, const struct ping_rule *rule) {
  const struct gateway *gateway = session->gateway;
  uint64_t sessions = atomic_load_explicit(&gateway->stats.sessions, memory_order_relaxed);
  return ping_interval_ns(rule, sessions * (uint64_t)gateway->config->gateways);
}

static void ping_if_due(struct session *session) {
  uint64_t now = now_of(session);
  if (now < session->deadline_ns) return;
  struct ping_rule rule = ping_rule(session);
  uint64_t interval_ns = current_interval_ns(session, &rule);
  if (ping_passes_over(&rule, interval_ns, session->input_ns, now, &session->deadline_ns)) return;
  if (stream_pending(&session->stream)) return;
  uint8_t frame[131];
  session_write_raw(session, frame, ws_write_control(frame, WS_PING, NULL, 0, NULL));
}

static void retry_held(struct session *session);

static void open_tick(struct session *session) {
  if (!check_output(session) || !check_input(session)) return;
  if ((session->pauses & PAUSE_CORE) && running(session)) retry_held(session);
  if (session->state == SESSION_OPEN) session_notify_owed(session);
  if (session->state == SESSION_OPEN) ping_if_due(session);
  if (session->state == SESSION_OPEN) session_arm(session);
}

static void timer_fired(struct timer *timer, uint64_t now_ns) {
  (void)now_ns;
  struct session *session = session_of_timer(timer);
  if (session->state == SESSION_OPEN) {
    open_tick(session);
    return;
  }
  if (session->state != SESSION_CLOSING) stat_add(&session->gateway->stats.deadlines, 1);
  session_close(session, false);
}

/* ---- Requests ---- */

static void refuse(struct session *session, int32_t cmd, int32_t index, int32_t code, int64_t timestamp_ms) {
  if (cmd == JUGGLE_PUBLISH) {
    session_write_publish_ack(
        session, &(struct juggle_publish_ack){.index = index, .code = code, .timestamp_ms = timestamp_ms});
  } else {
    session_write_query_ack(
        session, &(struct juggle_query_ack){.index = index, .code = code, .timestamp_ms = timestamp_ms});
  }
}

static enum status post(struct session *session, int32_t cmd, const struct juggle_request *request) {
  struct core *core = session->gateway->core;
  struct session_ref ref = session_ref(session);
  if (cmd == JUGGLE_PUBLISH) {
    return core_post_publish(core, ref, request->index, request->topic, request->target, request->data);
  }
  bool sync = view_is(request->topic, "sync_msgs");
  enum status status = core_post_query(core, ref, request->index, request->topic, request->target, request->data);
  if (status == STATUS_OK && sync) session_sync_began(session);
  return status;
}

static void posted(struct session *session, int32_t cmd, size_t len) {
  session->requests++;
  session->request_bytes += (uint32_t)len;
  if (cmd == JUGGLE_QUERY) session->queries++;
  bool full = session->requests >= SESSION_REQUESTS_MAX || session->queries >= SESSION_QUERIES_MAX ||
              session->request_bytes >= SESSION_REQUEST_BYTES_MAX;
  if (full) session_pause(session, PAUSE_REQUESTS);
}

static void answered(struct session *session, bool query) {
  if (session->requests) session->request_bytes -= session->request_bytes / session->requests--;
  if (query && session->queries) session->queries--;
  bool room = session->requests <= SESSION_REQUESTS_MAX / 2 && session->queries < SESSION_QUERIES_MAX &&
              session->request_bytes <= SESSION_REQUEST_BYTES_MAX / 2;
  if (room) session_resume(session, PAUSE_REQUESTS);
}

/* The core has no room: keeps the request and reads no further until it could be posted. */
static void hold(struct session *session, int32_t cmd, struct view body) {
  session->held = malloc(sizeof *session->held + body.len);
  if (!session->held) {
    session_close(session, true);
    return;
  }
  session->held->cmd = cmd;
  session->held->len = body.len;
  memcpy(session->held->body, body.data, body.len);
  session_pause(session, PAUSE_CORE);
  session_arm(session);
}

static void retry_held(struct session *session) {
  struct juggle_request request;
  struct held_request *held = session->held;
  bool readable = juggle_read_request(view_of(held->body, held->len), &request);
  if (readable && post(session, held->cmd, &request) != STATUS_OK) return;
  if (readable) posted(session, held->cmd, held->len);
  session->held = NULL;
  free(held);
  session_resume(session, PAUSE_CORE);
}

static void request_received(struct session *session, int32_t cmd, struct view body) {
  struct gateway *gateway = session->gateway;
  bool publish = cmd == JUGGLE_PUBLISH;
  stat_add(publish ? &gateway->stats.publishes : &gateway->stats.queries, 1);
  struct juggle_request request;
  if (!juggle_read_request(body, &request) || !utf8_valid(request.topic) || !utf8_valid(request.target)) {
    refuse(session, cmd, 0, JUGGLE_DATA_ILLEGAL, clock_wall_ms());
    return;
  }
  if (request.topic.len == 0 || request.target.len == 0) {
    refuse(session, cmd, request.index, JUGGLE_TOPIC_MISSING, publish ? 0 : clock_wall_ms());
    return;
  }
  const struct server_config *config = gateway->config;
  bool allowed = !config->rate_limits || limiter_take(&session->limiter, now_of(session), gateway->request_interval_ns,
                                             config->rate_limit_burst);
  if (!allowed) {
    stat_add(&gateway->stats.rate_limited, 1);
    refuse(session, cmd, request.index, JUGGLE_RATE_LIMIT, clock_wall_ms());
    return;
  }
  if (post(session, cmd, &request) == STATUS_OK) {
    posted(session, cmd, body.len);
    return;
  }
  hold(session, cmd, body);
}

/* ---- Login ---- */

static void make_session_id(struct session *session, char out[12]) {
  static const char alphabet[64] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
  uint64_t bits = rng_next(&session->gateway->rng), more = rng_next(&session->gateway->rng);
  for (int i = 0; i < 10; i++)
    out[i] = alphabet[bits >> (6 * i) & 63];
  out[10] = alphabet[more & 63];
  out[11] = '\0';
}

static void send_connect_ack(struct session *session, int32_t code, struct view user_id, int64_t timestamp_ms) {
  char id[12];
  make_session_id(session, id);
  struct juggle_connect_ack ack = {
      .code = code,
      .user_id = user_id,
      .session = view_str(id),
      .timestamp_ms = timestamp_ms ? timestamp_ms : clock_wall_ms(),
  };
  if (session_write_connect_ack(session, &ack) && code != JUGGLE_OK) session_finish(session);
}

static void connect_received(struct session *session, struct view body) {
  struct juggle_connect connect;
  if (!juggle_read_connect(body, &connect)) {
    protocol_error(session);
    return;
  }
  struct core_login login = {
      .session = session_ref(session),
      .app_key = connect.appkey,
      .token = connect.token,
      .platform = connect.platform,
      .device_id = connect.device_id,
  };
  if (core_post_login(session->gateway->core, &login) != STATUS_OK) {
    send_connect_ack(session, JUGGLE_CONNECT_DEFAULT, (struct view){0}, 0);
    return;
  }
  session->logged_in = true;
  session->state = SESSION_LOGGING_IN;
  session_pause(session, PAUSE_LOGIN);
}

/* The first Ping falls at random into the second half of an interval, so that a mass login does not ping in step. */
static void open_session(struct session *session, struct view user_id) {
  session->user_id = malloc(user_id.len + 1);
  if (!session->user_id) {
    session_close(session, true);
    return;
  }
  memcpy(session->user_id, user_id.data, user_id.len);
  session->user_id[user_id.len] = '\0';
  session->user_id_len = (uint16_t)user_id.len;
  struct ping_rule rule = ping_rule(session);
  uint64_t interval = current_interval_ns(session, &rule);
  session->deadline_ns = now_of(session) + interval / 2 + rng_below(&session->gateway->rng, interval / 2 + 1);
  session->next_index = 1;
  session->ws.max_message_bytes = session->gateway->config->message_max_bytes;
  session->state = SESSION_OPEN;
  stat_add(&session->gateway->stats.logins, 1);
  stat_add(&session->gateway->stats.sessions, 1);
  session_arm(session);
}

void session_connected(struct session *session, const struct out *out) {
  if (session->state != SESSION_LOGGING_IN) return;
  if (out->code != JUGGLE_OK) {
    stat_add(&session->gateway->stats.login_failures, 1);
    session->logged_in = false;
    send_connect_ack(session, out->code, (struct view){0}, out->timestamp_ms);
    return;
  }
  open_session(session, out_text(out));
  if (session->state != SESSION_OPEN) return;
  send_connect_ack(session, JUGGLE_OK, out_text(out), out->timestamp_ms);
  if (session->state == SESSION_OPEN && out->inbox_pending) {
    session_notify(session, out->timestamp_ms ? out->timestamp_ms : clock_wall_ms());
  }
  if (session->state == SESSION_OPEN) session_resume(session, PAUSE_LOGIN);
}

/* ---- Results of the core ---- */

void session_publish_acked(struct session *session, const struct out *out) {
  if (session->state != SESSION_OPEN) return;
  struct juggle_publish_ack ack = {
      .index = out->index,
      .code = out->code,
      .member_count = out->member_count,
      .msg_id = view_str(out->msg_id),
      .client_msg_id = out_text(out),
      .timestamp_ms = out->timestamp_ms,
      .msg_seq_no = out->seq,
  };
  if (!session_write_publish_ack(session, &ack)) return;
  session_output_open(session);
  if (session->state == SESSION_OPEN) answered(session, false);
}

void session_query_acked(struct session *session, const struct out *out) {
  if (session->state != SESSION_OPEN) return;
  struct juggle_query_ack ack = {
      .index = out->index,
      .code = out->code,
      .timestamp_ms = out->timestamp_ms,
      .data = out_data(out),
  };
  if (!session_write_query_ack(session, &ack)) return;
  if (out->finished_sync) session_sync_finished(session);
  session_output_open(session);
  if (session->state == SESSION_OPEN) answered(session, true);
}

void session_kicked(struct session *session, const struct out *out) {
  if (session->state != SESSION_OPEN) return;
  stat_add(&session->gateway->stats.kicked, 1);
  if (session_write_disconnect(session, out->code, out_text(out))) session_finish(session);
}

/* ---- Frames ---- */

/* A body in the mode of this connection; in the other mode's place it counts as missing (section 1.5). */
static struct view body_of(struct session *session, const struct juggle_envelope *envelope) {
  if (!session->obfuscated) {
    return envelope->body_field == juggle_body_field(envelope->cmd) ? envelope->body : (struct view){0};
  }
  /* The views point into the received bytes, which may be changed in place. */
  juggle_xor((uint8_t *)envelope->payload.data, envelope->payload.len, &session->key);
  return envelope->payload;
}

static void first_frame(struct session *session, const struct juggle_envelope *envelope) {
  if (envelope->cmd != JUGGLE_CONNECT) {
    protocol_error(session);
    return;
  }
  if (envelope->payload.len) {
    session->obfuscated = true;
    juggle_key_learn(envelope->payload, &session->key);
  }
  connect_received(session, body_of(session, envelope));
}

static void ack_received(struct session *session, struct view body) {
  struct juggle_publish_ack ack;
  if (!juggle_read_publish_ack(body, &ack)) {
    protocol_error(session);
    return;
  }
  session_push_acked(session, ack.index);
}

static void envelope_received(struct session *session, const struct juggle_envelope *envelope) {
  struct view body = body_of(session, envelope);
  switch (envelope->cmd) {
  case JUGGLE_CONNECT:
    send_connect_ack(session, JUGGLE_CONNECT_DEFAULT, (struct view){0}, 0);
    return;
  case JUGGLE_DISCONNECT:
    session_close(session, false);
    return;
  case JUGGLE_PUBLISH:
  case JUGGLE_QUERY:
    request_received(session, envelope->cmd, body);
    return;
  case JUGGLE_PUBLISH_ACK:
    ack_received(session, body);
    return;
  case JUGGLE_QUERY_CONFIRM:
    return;
  case JUGGLE_PING:
    session_write_pong(session);
    return;
  default:
    protocol_error(session);
  }
}

static void message_received(struct session *session, const struct ws_event *event) {
  session->input_ns = now_of(session);
  stat_add(&session->gateway->stats.frames_in, 1);
  struct juggle_envelope envelope;
  if (!juggle_read_envelope(view_of(event->data, event->len), &envelope)) {
    protocol_error(session);
    return;
  }
  if (session->state == SESSION_AWAIT_CONNECT) {
    first_frame(session, &envelope);
  } else {
    envelope_received(session, &envelope);
  }
  if (session->state == SESSION_OPEN) session_output_open(session);
}

static void control_reply(struct session *session, const struct ws_event *event) {
  uint8_t frame[131];
  if (event->kind == WS_EVENT_PING) {
    size_t len = ws_write_control(frame, WS_PONG, event->data, event->len, NULL);
    if (session_write_raw(session, frame, len) && session->state == SESSION_OPEN) session_output_open(session);
    return;
  }
  uint16_t code = event->close_code == 1005 ? 1000 : event->close_code;
  if (!session_write_raw(session, frame, ws_write_close(frame, code, "", NULL))) return;
  if (event->kind == WS_EVENT_ERROR) stat_add(&session->gateway->stats.protocol_errors, 1);
  session_finish(session);
}

static void event_received(struct session *session, const struct ws_event *event) {
  switch (event->kind) {
  case WS_EVENT_NONE:
    return;
  case WS_EVENT_MESSAGE:
    message_received(session, event);
    return;
  case WS_EVENT_PONG:
    session->input_ns = now_of(session);
    return;
  default:
    control_reply(session, event);
  }
}

static size_t frames_received(struct session *session, uint8_t *data, size_t len) {
  size_t used = 0;
  while (used < len && !session->pauses) {
    if (session->state != SESSION_AWAIT_CONNECT && session->state != SESSION_OPEN) break;
    struct ws_event event;
    used += ws_read(&session->ws, data + used, len - used, &event);
    if (event.kind == WS_EVENT_NONE) break;
    event_received(session, &event);
  }
  return used;
}

/* ---- The stream ---- */

static size_t stream_received(struct stream *stream, uint8_t *data, size_t len) {
  struct session *session = session_of(stream);
  size_t used = 0;
  if (session->state == SESSION_HTTP) {
    used = session_http_received(session, data, len);
    if (session->state == SESSION_HTTP) return used;
  }
  used += frames_received(session, data + used, len - used);
  bool over = session->state == SESSION_FREE || session->state == SESSION_CLOSING;
  return over ? len : used;
}

static void stream_opened(struct stream *stream) {
  (void)stream;
}

static void stream_drained(struct stream *stream) {
  struct session *session = session_of(stream);
  session->moved_ns = 0;
  if (session->state != SESSION_OPEN) return;
  session_notify_owed(session);
  if (session->state == SESSION_OPEN) session_resume(session, PAUSE_OUTPUT);
}

static void stream_closed(struct stream *stream, enum stream_end end, int error) {
  (void)end;
  (void)error;
  session_close(session_of(stream), false);
}

const struct stream_ops session_stream_ops = {
    .opened = stream_opened,
    .received = stream_received,
    .drained = stream_drained,
    .closed = stream_closed,
};

void session_accept(struct gateway *gateway, int fd) {
  struct session *session = slab_take(&gateway->slab);
  if (!session) {
    close(fd);
    return;
  }
  session->gateway = gateway;
  session->state = SESSION_HTTP;
  session->timer.fire = timer_fired;
  session->deadline_ns = loop_now_ns(gateway->loop) + (uint64_t)gateway->config->login_deadline_ms * NS_PER_MS;
  stat_add(&gateway->stats.connections, 1);
  stat_add(&gateway->stats.accepted, 1);
  if (stream_accept(&session->stream, gateway->loop, &session_stream_ops, fd, gateway->tls, NULL) != STATUS_OK) {
    session_close(session, false);
    return;
  }
  session_arm(session);
}
