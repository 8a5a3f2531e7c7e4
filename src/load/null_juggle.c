/* What the null peer says as a JuggleIM server: the calls of the set-up, and everything that a client sends. */
#include "load/null_client.h"

#include "base/clock.h"
#include "wire/pb.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION_BODY "{\"version\":\"muster null peer\"}"

/* --- the set-up calls --- */

/* The number at the end of a user id; false when it is none of the run's users. */
static bool user_index(const struct null_house *house, struct view id, uint32_t *out) {
  size_t at = id.len;
  while (at > 0 && id.data[at - 1] >= '0' && id.data[at - 1] <= '9')
    at--;
  if (at == id.len || id.len - at > 9) return false;
  uint32_t value = 0;
  for (; at < id.len; at++)
    value = value * 10 + (uint32_t)(id.data[at] - '0');
  *out = value;
  return value < house->users;
}

/* A user's token is its id. */
static json_t *registered(const json_t *user) {
  json_t *id = json_object_get(user, "user_id");
  return json_is_string(id) ? json_pack("{s:O, s:O}", "user_id", id, "token", id) : NULL;
}

static json_t *registered_batch(const json_t *body) {
  json_t *users = json_array();
  size_t i;
  json_t *user;
  json_array_foreach(json_object_get(body, "users"), i, user) {
    json_array_append_new(users, registered(user));
  }
  return json_pack("{s:o}", "users", users);
}

static char *answer_text(const struct http_head *head, struct view body_text) {
  json_t *body = json_loadb((const char *)body_text.data, body_text.len, 0, NULL);
  json_t *data = NULL;
  if (view_is(head->target, "/apigateway/users/register")) data = registered(body);
  if (view_is(head->target, "/apigateway/users/register/batch")) data = registered_batch(body);
  if (!data) data = json_object();
  json_t *answer = json_pack("{s:i, s:s, s:o}", "code", 0, "msg", "", "data", data);
  char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
  json_decref(answer);
  json_decref(body);
  return text;
}

static bool write_answer(struct null_client *client, const char *body) {
  char head[128];
  size_t body_len = strlen(body);
  int len = snprintf(
      head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body_len);
  return stream_write(&client->stream, head, (size_t)len) && stream_write(&client->stream, body, body_len);
}

static bool on_call(struct null_client *client, const struct http_head *head, struct view body) {
  if (view_is(head->method, "GET")) return write_answer(client, VERSION_BODY);
  char *text = answer_text(head, body);
  bool written = text && write_answer(client, text);
  free(text);
  return written;
}

/* --- JuggleIM --- */

struct frame {
  uint8_t *body;
  size_t body_len, total;
};

/* Room for a whole frame, written up to its body. */
static bool frame_begin(struct null_client *client, int32_t cmd, int32_t qos, size_t body_len, struct frame *frame) {
  size_t message_len = juggle_envelope_head_size(cmd, qos, body_len, client->as.juggle.obfuscated) + body_len;
  size_t ws_len = ws_header_size(message_len, false);
  uint8_t *at = stream_reserve(&client->stream, ws_len + message_len);
  if (!at) return false;
  ws_write_header(at, WS_BINARY, message_len, NULL);
  frame->body = juggle_write_envelope_head(at + ws_len, cmd, qos, body_len, client->as.juggle.obfuscated);
  frame->body_len = body_len;
  frame->total = ws_len + message_len;
  return true;
}

static bool frame_end(struct null_client *client, const struct frame *frame) {
  if (client->as.juggle.obfuscated) juggle_xor(frame->body, frame->body_len, &client->as.juggle.key);
  stream_commit(&client->stream, frame->total);
  return true;
}

static bool on_connect(struct null_client *client, struct view body) {
  struct juggle_connect connect;
  struct frame frame;
  struct null_juggle_state *state = &client->as.juggle;
  if (state->ready || !juggle_read_connect(body, &connect)) return false;
  if (connect.token.len >= NULL_USER_ID_MAX || !user_index(client->house, connect.token, &state->user)) return false;
  memcpy(state->user_id, connect.token.data, connect.token.len);
  state->ready = true;
  client->house->user[state->user] = client;
  struct juggle_connect_ack ack = {
      .user_id = view_str(state->user_id), .session = view_str("null"), .timestamp_ms = clock_wall_ms()};
  if (!frame_begin(client, JUGGLE_CONNECT_ACK, 0, juggle_connect_ack_size(&ack), &frame)) return false;
  juggle_write_connect_ack(frame.body, &ack);
  return frame_end(client, &frame);
}

/* Whatever is asked: there is nothing, and that is all. */
static bool on_query(struct null_client *client, struct view body) {
  static const uint8_t empty_set[] = {3 << 3, 1}; /* DownMsgSet.is_finished = true */
  struct juggle_request query;
  struct frame frame;
  if (!juggle_read_request(body, &query)) return false;
  struct juggle_query_ack ack = {
      .index = query.index, .timestamp_ms = clock_wall_ms(), .data = view_of(empty_set, sizeof empty_set)};
  if (!frame_begin(client, JUGGLE_QUERY_ACK, 0, juggle_query_ack_size(&ack), &frame)) return false;
  juggle_write_query_ack(frame.body, &ack);
  return frame_end(client, &frame);
}

static bool write_ack(
    struct null_client *client, const struct juggle_request *request, struct view client_uid, int64_t now_ms) {
  struct frame frame;
  struct juggle_publish_ack ack = {.index = request->index,
      .msg_id = view_str("0000000000000000"),
      .client_msg_id = client_uid,
      .timestamp_ms = now_ms};
  if (!frame_begin(client, JUGGLE_PUBLISH_ACK, 0, juggle_publish_ack_size(&ack), &frame)) return false;
  juggle_write_publish_ack(frame.body, &ack);
  return frame_end(client, &frame);
}

struct down_msg {
  struct view target, msg_type, sender, content, client_uid;
  int32_t channel, flags;
  int64_t time_ms;
};

static size_t down_msg_size(const struct down_msg *msg) {
  return pb_bytes_field_size(1, msg->target.len) + pb_uint_field_size(2, (uint64_t)msg->channel) +
         pb_bytes_field_size(3, msg->msg_type.len) + pb_bytes_field_size(4, msg->sender.len) +
         pb_bytes_field_size(7, msg->content.len) + pb_uint_field_size(8, (uint64_t)msg->time_ms) +
         pb_uint_field_size(9, (uint64_t)msg->flags) + pb_bytes_field_size(12, msg->client_uid.len);
}

static void write_down_msg(uint8_t *at, const struct down_msg *msg) {
  at = pb_write_bytes_field(at, 1, msg->target);
  at = pb_write_uint_field(at, 2, (uint64_t)msg->channel);
  at = pb_write_bytes_field(at, 3, msg->msg_type);
  at = pb_write_bytes_field(at, 4, msg->sender);
  at = pb_write_bytes_field(at, 7, msg->content);
  at = pb_write_uint_field(at, 8, (uint64_t)msg->time_ms);
  at = pb_write_uint_field(at, 9, (uint64_t)msg->flags);
  pb_write_bytes_field(at, 12, msg->client_uid);
}

/* A recipient that cannot take it misses it, and the run that measures says so. */
static void push(struct null_client *to, const struct down_msg *msg) {
  struct frame frame;
  struct null_juggle_state *state = &to->as.juggle;
  struct juggle_request request = {
      .index = state->pushes = state->pushes == UINT16_MAX ? 1 : state->pushes + 1,
      .topic = view_str("msg"),
      .target = view_str(state->user_id),
      .timestamp_ms = msg->time_ms,
      .data = {NULL, down_msg_size(msg)},
  };
  if (!frame_begin(to, JUGGLE_PUBLISH, 1, juggle_request_size(&request), &frame)) return;
  write_down_msg(juggle_write_request(frame.body, &request), msg);
  frame_end(to, &frame);
}

static bool on_publish(struct null_client *client, struct view body) {
  struct null_house *house = client->house;
  struct juggle_request request;
  struct juggle_up_msg up;
  if (!juggle_read_request(body, &request) || !juggle_read_up_msg(request.data, &up)) return false;
  bool to_group = view_is(request.topic, "g_msg");
  struct down_msg down = {
      .target = to_group ? request.target : view_str(client->as.juggle.user_id),
      .msg_type = up.msg_type,
      .sender = view_str(client->as.juggle.user_id),
      .content = up.content,
      .client_uid = up.client_uid,
      .channel = to_group ? JUGGLE_GROUP : JUGGLE_PRIVATE,
      .flags = up.flags,
      .time_ms = clock_wall_ms(),
  };
  if (!write_ack(client, &request, up.client_uid, down.time_ms)) return false;
  uint32_t to;
  if (!to_group) {
    if (user_index(house, request.target, &to) && house->user[to]) push(house->user[to], &down);
    return true;
  }
  for (uint32_t i = client->as.juggle.user % house->groups; i < house->users; i += house->groups) {
    if (house->user[i] && house->user[i] != client) push(house->user[i], &down);
  }
  return true;
}

static bool on_ping(struct null_client *client) {
  struct frame frame;
  return frame_begin(client, JUGGLE_PONG, 0, 0, &frame) && frame_end(client, &frame);
}

static bool on_command(struct null_client *client, int32_t cmd, struct view body) {
  if (cmd == JUGGLE_CONNECT) return on_connect(client, body);
  if (!client->as.juggle.ready) return false;
  switch (cmd) {
  case JUGGLE_PUBLISH:
    return on_publish(client, body);
  case JUGGLE_QUERY:
    return on_query(client, body);
  case JUGGLE_PING:
    return on_ping(client);
  case JUGGLE_PUBLISH_ACK: /* of a push */
  case JUGGLE_QUERY_CONFIRM:
    return true;
  default: /* a good-bye, or what no client says */
    return false;
  }
}

static bool on_message(struct null_client *client, const struct ws_event *event) {
  struct juggle_envelope envelope;
  if (!juggle_read_envelope(view_of(event->data, event->len), &envelope)) return false;
  struct view body = envelope.body;
  if (envelope.payload.len > 0) {
    if (envelope.cmd == JUGGLE_CONNECT) {
      client->as.juggle.obfuscated = true;
      juggle_key_learn(envelope.payload, &client->as.juggle.key);
    }
    body = envelope.payload;
    juggle_xor(event->data + (body.data - event->data), body.len, &client->as.juggle.key);
  }
  return on_command(client, envelope.cmd, body);
}

static void on_closed(struct null_client *client) {
  struct null_house *house = client->house;
  const struct null_juggle_state *state = &client->as.juggle;
  if (state->ready && house->user[state->user] == client) house->user[state->user] = NULL;
}

const struct null_dialect null_juggle = {
    .driver = "juggle",
    .scheme = "ws",
    .topologies = 1U << TOPOLOGY_RING | 1U << TOPOLOGY_PAIRS | 1U << TOPOLOGY_STAR | 1U << TOPOLOGY_GROUPS,
    .message = on_message,
    .called = on_call,
    .closed = on_closed,
};
