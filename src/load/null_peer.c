#include "load/null_peer.h"

#include "base/clock.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/ws.h"
#include "wire/juggle.h"
#include "wire/pb.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BODY_MAX (4U << 20)
#define MESSAGE_MAX (4U << 20)
#define USER_ID_MAX 40
#define START_DEADLINE_MS 10000
#define VERSION_BODY "{\"version\":\"muster null peer\"}"

struct peer {
  struct loop *loop;
  struct listener listener;
  struct watch control;
  struct peer_client **user; /* owned: connection of each user index, or NULL */
  uint32_t users;
  bool stop;
};

enum peer_step { PEER_HTTP, PEER_LOGIN, PEER_READY };

struct peer_client {
  struct stream stream;
  struct ws ws;
  struct peer *peer;
  enum peer_step step;
  bool obfuscated;
  struct juggle_key key;
  char user_id[USER_ID_MAX];
  uint32_t user; /* its index; only when ready */
  int32_t pushes;
};

/* --- the end of a connection --- */

static void client_drop(struct peer_client *client) {
  struct peer *peer = client->peer;
  if (client->step == PEER_READY && peer->user[client->user] == client) peer->user[client->user] = NULL;
  stream_close(&client->stream, false);
  ws_free(&client->ws);
  loop_defer(peer->loop, free, client);
}

static void on_closed(struct stream *stream, enum stream_end end, int error) {
  (void)end;
  (void)error;
  client_drop((struct peer_client *)(void *)stream);
}

/* --- HTTP: the set-up calls --- */

/* The number at the end of a user id; false when it is none of the run's users. */
static bool user_index(const struct peer *peer, struct view id, uint32_t *out) {
  size_t at = id.len;
  while (at > 0 && id.data[at - 1] >= '0' && id.data[at - 1] <= '9')
    at--;
  if (at == id.len || id.len - at > 9) return false;
  uint32_t value = 0;
  for (; at < id.len; at++)
    value = value * 10 + (uint32_t)(id.data[at] - '0');
  *out = value;
  return value < peer->users;
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

static bool write_answer(struct peer_client *client, const char *body) {
  char head[128];
  size_t body_len = strlen(body);
  int len = snprintf(
      head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body_len);
  return stream_write(&client->stream, head, (size_t)len) && stream_write(&client->stream, body, body_len);
}

static bool on_call(struct peer_client *client, const struct http_head *head, struct view body) {
  if (view_is(head->method, "GET")) return write_answer(client, VERSION_BODY);
  char *text = answer_text(head, body);
  bool written = text && write_answer(client, text);
  free(text);
  return written;
}

static bool on_upgrade(struct peer_client *client, const struct http_head *head) {
  char answer[512];
  size_t len = 0;
  if (ws_answer_request(head, answer, sizeof answer, &len, NULL) != STATUS_OK) return false;
  ws_init(&client->ws, WS_SERVER, MESSAGE_MAX);
  client->step = PEER_LOGIN;
  return stream_write(&client->stream, answer, len);
}

/* One request; *used stays 0 while more bytes are needed. False: the connection is not worth keeping. */
static bool on_http(struct peer_client *client, const uint8_t *data, size_t len, size_t *used) {
  struct http_head head;
  enum http_result result = http_read_request(data, len, &head, used, NULL);
  if (result == HTTP_BAD) return false;
  if (result == HTTP_PARTIAL) {
    *used = 0;
    return len < HTTP_HEAD_MAX;
  }
  if (http_field(&head, "Sec-WebSocket-Key").len > 0) return on_upgrade(client, &head);
  int64_t body_len = http_content_length(&head);
  if (body_len == -1) body_len = 0;
  if (body_len < 0 || body_len > BODY_MAX) return false;
  if (len - *used < (size_t)body_len) {
    *used = 0;
    return true;
  }
  struct view body = view_of(data + *used, (size_t)body_len);
  *used += (size_t)body_len;
  return on_call(client, &head, body);
}

/* --- JuggleIM --- */

struct frame {
  uint8_t *body;
  size_t body_len, total;
};

/* Room for a whole frame, written up to its body. */
static bool frame_begin(struct peer_client *client, int32_t cmd, int32_t qos, size_t body_len, struct frame *frame) {
  size_t message_len = juggle_envelope_head_size(cmd, qos, body_len, client->obfuscated) + body_len;
  size_t ws_len = ws_header_size(message_len, false);
  uint8_t *at = stream_reserve(&client->stream, ws_len + message_len);
  if (!at) return false;
  ws_write_header(at, WS_BINARY, message_len, NULL);
  frame->body = juggle_write_envelope_head(at + ws_len, cmd, qos, body_len, client->obfuscated);
  frame->body_len = body_len;
  frame->total = ws_len + message_len;
  return true;
}

static bool frame_end(struct peer_client *client, const struct frame *frame) {
  if (client->obfuscated) juggle_xor(frame->body, frame->body_len, &client->key);
  stream_commit(&client->stream, frame->total);
  return true;
}

static bool on_connect(struct peer_client *client, struct view body) {
  struct juggle_connect connect;
  struct frame frame;
  if (client->step != PEER_LOGIN || !juggle_read_connect(body, &connect)) return false;
  if (connect.token.len >= USER_ID_MAX || !user_index(client->peer, connect.token, &client->user)) return false;
  memcpy(client->user_id, connect.token.data, connect.token.len);
  client->step = PEER_READY;
  client->peer->user[client->user] = client;
  struct juggle_connect_ack ack = {
      .user_id = view_str(client->user_id), .session = view_str("null"), .timestamp_ms = clock_wall_ms()};
  if (!frame_begin(client, JUGGLE_CONNECT_ACK, 0, juggle_connect_ack_size(&ack), &frame)) return false;
  juggle_write_connect_ack(frame.body, &ack);
  return frame_end(client, &frame);
}

/* Whatever is asked: there is nothing, and that is all. */
static bool on_query(struct peer_client *client, struct view body) {
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
    struct peer_client *client, const struct juggle_request *request, struct view client_uid, int64_t now_ms) {
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
static void push(struct peer_client *to, const struct down_msg *msg) {
  struct frame frame;
  struct juggle_request request = {
      .index = to->pushes = to->pushes == UINT16_MAX ? 1 : to->pushes + 1,
      .topic = view_str("msg"),
      .target = view_str(to->user_id),
      .timestamp_ms = msg->time_ms,
      .data = {NULL, down_msg_size(msg)},
  };
  if (!frame_begin(to, JUGGLE_PUBLISH, 1, juggle_request_size(&request), &frame)) return;
  write_down_msg(juggle_write_request(frame.body, &request), msg);
  frame_end(to, &frame);
}

static bool on_publish(struct peer_client *client, struct view body) {
  struct peer *peer = client->peer;
  struct juggle_request request;
  struct juggle_up_msg up;
  if (!juggle_read_request(body, &request) || !juggle_read_up_msg(request.data, &up)) return false;
  bool to_group = view_is(request.topic, "g_msg");
  struct down_msg down = {
      .target = to_group ? request.target : view_str(client->user_id),
      .msg_type = up.msg_type,
      .sender = view_str(client->user_id),
      .content = up.content,
      .client_uid = up.client_uid,
      .channel = to_group ? JUGGLE_GROUP : JUGGLE_PRIVATE,
      .flags = up.flags,
      .time_ms = clock_wall_ms(),
  };
  if (!write_ack(client, &request, up.client_uid, down.time_ms)) return false;
  uint32_t to;
  if (!to_group) {
    if (user_index(peer, request.target, &to) && peer->user[to]) push(peer->user[to], &down);
    return true;
  }
  for (uint32_t i = 0; i < peer->users; i++) {
    if (peer->user[i] && peer->user[i] != client) push(peer->user[i], &down);
  }
  return true;
}

static bool on_ping(struct peer_client *client) {
  struct frame frame;
  return frame_begin(client, JUGGLE_PONG, 0, 0, &frame) && frame_end(client, &frame);
}

static bool on_command(struct peer_client *client, int32_t cmd, struct view body) {
  if (cmd == JUGGLE_CONNECT) return on_connect(client, body);
  if (client->step != PEER_READY) return false;
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

static bool on_message(struct peer_client *client, uint8_t *data, size_t len) {
  struct juggle_envelope envelope;
  if (!juggle_read_envelope(view_of(data, len), &envelope)) return false;
  struct view body = envelope.body;
  if (envelope.payload.len > 0) {
    if (envelope.cmd == JUGGLE_CONNECT) {
      client->obfuscated = true;
      juggle_key_learn(envelope.payload, &client->key);
    }
    body = envelope.payload;
    juggle_xor(data + (body.data - data), body.len, &client->key);
  }
  return on_command(client, envelope.cmd, body);
}

static size_t on_received(struct stream *stream, uint8_t *data, size_t len) {
  struct peer_client *client = (struct peer_client *)(void *)stream;
  size_t used = 0;
  bool keep = true;
  while (keep && used < len) {
    size_t read = 0;
    struct ws_event event = {.kind = WS_EVENT_NONE};
    if (client->step == PEER_HTTP) {
      keep = on_http(client, data + used, len - used, &read);
    } else {
      read = ws_read(&client->ws, data + used, len - used, &event);
      if (event.kind == WS_EVENT_MESSAGE) keep = on_message(client, event.data, event.len);
      if (event.kind == WS_EVENT_CLOSE || event.kind == WS_EVENT_ERROR) keep = false;
    }
    used += read;
    if (read == 0 && event.kind == WS_EVENT_NONE) break;
  }
  if (keep) return used;
  client_drop(client);
  return 0;
}

/* --- the process --- */

static void on_opened(struct stream *stream) {
  (void)stream;
}

static const struct stream_ops peer_ops = {.opened = on_opened, .received = on_received, .closed = on_closed};

static void on_accepted(struct listener *listener, int fd, const struct address *from) {
  (void)from;
  struct peer *peer = (struct peer *)(void *)((char *)listener - offsetof(struct peer, listener));
  struct peer_client *client = calloc(1, sizeof *client);
  if (!client) {
    close(fd);
    return;
  }
  client->peer = peer;
  if (stream_accept(&client->stream, peer->loop, &peer_ops, fd, NULL, NULL) != STATUS_OK) {
    close(fd);
    free(client);
  }
}

static void on_control(struct watch *watch, uint32_t events) {
  (void)events;
  struct peer *peer = (struct peer *)(void *)((char *)watch - offsetof(struct peer, control));
  peer->stop = true;
}

static enum status open_peer(struct peer *peer, int control_fd, struct address *address, struct err *err) {
  peer->user = calloc(peer->users, sizeof(struct peer_client *));
  if (!peer->user) return err_set(err, STATUS_MEMORY, "out of memory for the null peer");
  peer->listener.accepted = on_accepted;
  peer->control.ready = on_control;
  peer->control.fd = -1;
  enum status status = loop_create(&peer->loop, err);
  if (status == STATUS_OK) status = address_resolve("127.0.0.1", 0, address, err);
  if (status == STATUS_OK) status = listener_open(&peer->listener, peer->loop, address, err);
  if (status == STATUS_OK) status = loop_watch(peer->loop, &peer->control, control_fd, EPOLLIN, err);
  return status;
}

/* The whole life of the child; its memory goes with its process. */
static int serve(uint32_t users, int control_fd, int report_fd) {
  struct peer peer = {.users = users};
  struct address address;
  struct rlimit limit;
  char where[64] = "";
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (open_peer(&peer, control_fd, &address, NULL) != STATUS_OK) return 1;
  address_text(&address, where, sizeof where);
  if (write(report_fd, where, sizeof where) != (ssize_t)sizeof where) return 1;
  while (!peer.stop)
    loop_turn(peer.loop, UINT64_MAX);
  return 0;
}

static void become_child(pid_t parent) {
  signal(SIGINT, SIG_IGN); /* what a terminal says is the parent's to handle */
  signal(SIGHUP, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

static enum status hear(int fd, char where[64], struct err *err) {
  struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
  int ready;
  do {
    ready = poll(&poll_fd, 1, START_DEADLINE_MS);
  } while (ready < 0 && errno == EINTR);
  if (ready > 0 && read(fd, where, 64) == 64) return STATUS_OK;
  return err_set(err, STATUS_IO, "the null peer did not start");
}

static enum status spawn(struct null_peer *out, uint32_t clients, int control[2], int report[2], struct err *err) {
  pid_t parent = getpid();
  out->pid = fork();
  if (out->pid == 0) {
    close(control[1]);
    close(report[0]);
    become_child(parent);
    _exit(serve(clients, control[0], report[1]));
  }
  close(control[0]);
  close(report[1]);
  out->control_fd = control[1];
  if (out->pid < 0) return err_set(err, STATUS_IO, "cannot fork the null peer: %s", strerror(errno));
  char where[64];
  enum status status = hear(report[0], where, err);
  if (status != STATUS_OK) return status;
  snprintf(out->ws_url, sizeof out->ws_url, "ws://%.40s", where);
  snprintf(out->api_url, sizeof out->api_url, "http://%.40s/apigateway", where);
  return STATUS_OK;
}

enum status null_peer_start(struct null_peer *out, uint32_t clients, struct err *err) {
  *out = (struct null_peer){.pid = -1, .control_fd = -1};
  int control[2], report[2];
  if (pipe2(control, O_CLOEXEC) != 0) return err_set(err, STATUS_IO, "cannot make a pipe: %s", strerror(errno));
  if (pipe2(report, O_CLOEXEC) != 0) {
    err_set(err, STATUS_IO, "cannot make a pipe: %s", strerror(errno));
    close(control[0]);
    close(control[1]);
    return STATUS_IO;
  }
  enum status status = spawn(out, clients, control, report, err);
  close(report[0]);
  if (status != STATUS_OK) null_peer_stop(out);
  return status;
}

void null_peer_stop(struct null_peer *peer) {
  if (peer->control_fd >= 0) close(peer->control_fd);
  peer->control_fd = -1;
  if (peer->pid > 0) {
    while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR)
      ;
  }
  peer->pid = -1;
}
