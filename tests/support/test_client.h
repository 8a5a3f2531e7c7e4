/* A small blocking JuggleIM client and HTTP caller for tests of musterd, and a server on free ports with a data folder
 * of its own. Everything fails the running test when something is out of order; every read ends after 5 s. */
#ifndef MUSTER_TESTS_SUPPORT_TEST_CLIENT_H
#define MUSTER_TESTS_SUPPORT_TEST_CLIENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "net/http.h"
#include "net/ws.h"
#include "server/server.h"
#include "wire/juggle.h"
#include "wire/juggle_auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEST_APP "benchapp"
#define TEST_SECRET "0123456789abcdef"
#define TEST_ADMIN_SECRET "admin-secret"

/* ---- Server ---- */

struct test_server {
  struct server_config config;
  struct server *server;
  char data_dir[64];
};

static inline void test_server_prepare(struct test_server *it) {
  *it = (struct test_server){0};
  server_config_defaults(&it->config);
  it->config.api_port = it->config.navigator_port = it->config.ws_port = it->config.admin_port = 0;
  snprintf(it->data_dir, sizeof it->data_dir, "/tmp/musterd-test-XXXXXX");
  assert_non_null(mkdtemp(it->data_dir));
  it->config.data_dir = it->data_dir;
  it->config.app_key = TEST_APP;
  it->config.app_secret = TEST_SECRET;
  it->config.admin_secret = TEST_ADMIN_SECRET;
  it->config.gateways = 2;
}

static inline void test_server_start(struct test_server *it) {
  struct err err = {0};
  it->config.api_port = it->config.navigator_port = it->config.ws_port = it->config.admin_port = 0;
  if (server_start(&it->server, &it->config, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static inline int test_remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info;
  (void)kind;
  (void)where;
  return remove(path);
}

static inline void test_server_stop(struct test_server *it) {
  server_stop(it->server);
  it->server = NULL;
}

static inline void test_server_remove(struct test_server *it) {
  if (it->server) test_server_stop(it);
  nftw(it->data_dir, test_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- TCP ---- */

static inline int test_connect(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  struct timeval limit = {.tv_sec = 5};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) fail_msg("connect: %s", strerror(errno));
  return fd;
}

static inline void test_send(int fd, const void *data, size_t len) {
  const uint8_t *at = data;
  while (len) {
    ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
    if (n < 0) fail_msg("send: %s", strerror(errno));
    at += n;
    len -= (size_t)n;
  }
}

/* Reads until the peer closes; the text is NUL-terminated and owned by the caller. Fails when it does not close. */
static inline char *test_read_all(int fd) {
  struct buf all = {0};
  for (;;) {
    uint8_t *room = buf_reserve(&all, 4096);
    assert_non_null(room);
    ssize_t n = recv(fd, room, 4095, 0);
    if (n < 0 && errno == ECONNRESET) n = 0;
    if (n < 0) fail_msg("the peer does not close: %s", strerror(errno));
    room[n] = 0;
    if (n == 0) return (char *)all.data;
    all.len += (uint32_t)n;
  }
}

/* One request; *status is that of the answer, the result its whole text. */
static inline char *test_http(
    uint16_t port, const char *method, const char *path, const char *headers, const char *body, int *status) {
  int fd = test_connect(port);
  char head[2048];
  int len = snprintf(head, sizeof head,
      "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n", method, path,
      body ? strlen(body) : 0, headers ? headers : "");
  assert_true(len > 0 && (size_t)len < sizeof head);
  test_send(fd, head, (size_t)len);
  if (body) test_send(fd, body, strlen(body));
  char *text = test_read_all(fd);
  close(fd);
  *status = 0;
  assert_int_equal(sscanf(text, "HTTP/1.1 %d", status), 1);
  return text;
}

/* A signed call of the server API. */
static inline char *test_api(
    const struct test_server *it, const char *method, const char *path, const char *body, int *status) {
  char signature[41], headers[512];
  juggle_signature(view_str(TEST_SECRET), view_str("nonce"), view_str("1700000000000"), signature);
  snprintf(headers, sizeof headers,
      "appkey: " TEST_APP "\r\nnonce: nonce\r\ntimestamp: 1700000000000\r\nsignature: %s\r\n"
      "Content-Type: application/json\r\n",
      signature);
  return test_http(it->config.api_port, method, path, headers, body, status);
}

static inline void test_api_ok(const struct test_server *it, const char *path, const char *body) {
  int status;
  char *text = test_api(it, "POST", path, body, &status);
  if (status != 200 || !strstr(text, "\"code\":0")) fail_msg("POST %s: %s", path, text);
  free(text);
}

/* Registers a user; token has room for JUGGLE_TOKEN_MAX bytes. */
static inline void test_register(const struct test_server *it, const char *user_id, char *token) {
  char body[256];
  snprintf(body, sizeof body, "{\"user_id\":\"%s\",\"nickname\":\"N-%s\"}", user_id, user_id);
  int status;
  char *text = test_api(it, "POST", "/apigateway/users/register", body, &status);
  const char *at = strstr(text, "\"token\":\"");
  if (status != 200 || !at) fail_msg("register: %s", text);
  assert_int_equal(sscanf(at, "\"token\":\"%511[^\"]", token), 1);
  free(text);
}

/* ---- WebSocket ---- */

struct test_client {
  int fd;
  struct buf in;
  uint32_t consumed; /* of in */
  struct ws ws;
  bool obfuscated;
  struct juggle_key key;
};

struct test_frame {
  struct juggle_envelope envelope; /* views valid until the next receive */
  struct view body;                /* without obfuscation, in either mode */
};

static inline void test_open(struct test_client *it, uint16_t port) {
  *it = (struct test_client){.fd = test_connect(port)};
  ws_init(&it->ws, WS_CLIENT, 64 * 1024 * 1024);
}

static inline void test_close(struct test_client *it) {
  if (it->fd >= 0) close(it->fd);
  it->fd = -1;
  buf_free(&it->in);
  ws_free(&it->ws);
}

static inline void test_upgrade(struct test_client *it, uint16_t port) {
  test_open(it, port);
  char request[512], key[25], answer[1024];
  ws_make_key(key);
  size_t len = ws_write_request(request, sizeof request, "127.0.0.1", port, "/im", key, NULL);
  test_send(it->fd, request, len);
  size_t got = 0;
  struct http_head head;
  struct err err = {0};
  for (;;) {
    ssize_t n = recv(it->fd, answer + got, 1, 0);
    if (n <= 0) fail_msg("no answer to the upgrade");
    got += (size_t)n;
    size_t used;
    if (http_read_response((uint8_t *)answer, got, &head, &used, &err) == HTTP_COMPLETE) break;
    assert_true(got < sizeof answer);
  }
  if (ws_check_response(&head, key, &err) != STATUS_OK) fail_msg("%s", err.text);
}

/* One masked WebSocket frame as bytes; out has room for len + WS_HEADER_MAX. */
static inline size_t test_mask_frame(uint8_t *out, uint8_t first_byte, const void *data, size_t len) {
  static const uint8_t mask[4] = {0x11, 0x22, 0x33, 0x44};
  size_t header = ws_write_header(out, WS_BINARY, len, mask);
  out[0] = first_byte;
  if (len) memcpy(out + header, data, len);
  ws_mask(out + header, len, mask, 0);
  return header + len;
}

static inline void test_send_message(struct test_client *it, const void *data, size_t len) {
  uint8_t *frame = malloc(len + WS_HEADER_MAX);
  assert_non_null(frame);
  test_send(it->fd, frame, test_mask_frame(frame, 0x80 | WS_BINARY, data, len));
  free(frame);
}

static inline size_t test_unhex(const char *hex, uint8_t *out, size_t size) {
  size_t len = strlen(hex) / 2;
  assert_true(len <= size);
  for (size_t i = 0; i < len; i++) {
    unsigned value;
    assert_int_equal(sscanf(hex + 2 * i, "%2x", &value), 1);
    out[i] = (uint8_t)value;
  }
  return len;
}

static inline void test_send_hex(struct test_client *it, const char *hex) {
  uint8_t bytes[1024];
  test_send_message(it, bytes, test_unhex(hex, bytes, sizeof bytes));
}

/* The bytes of one message of ours; owned by the caller. */
static inline uint8_t *test_envelope(
    const struct test_client *it, int32_t cmd, int32_t qos, const uint8_t *body, size_t body_len, size_t *len) {
  size_t head = juggle_envelope_head_size(cmd, qos, body_len, it->obfuscated);
  uint8_t *bytes = malloc(head + body_len + 1);
  assert_non_null(bytes);
  uint8_t *at = juggle_write_envelope_head(bytes, cmd, qos, body_len, it->obfuscated);
  if (body_len) memcpy(at, body, body_len);
  if (it->obfuscated) juggle_xor(at, body_len, &it->key);
  *len = head + body_len;
  return bytes;
}

static inline void test_send_envelope(
    struct test_client *it, int32_t cmd, int32_t qos, const uint8_t *body, size_t body_len) {
  size_t len;
  uint8_t *bytes = test_envelope(it, cmd, qos, body, body_len, &len);
  test_send_message(it, bytes, len);
  free(bytes);
}

/* The next WebSocket event that is no Ping; false when the peer has closed or nothing came for 5 s. */
static inline bool test_event(struct test_client *it, struct ws_event *event) {
  for (;;) {
    while (it->consumed < it->in.len) {
      size_t used = ws_read(&it->ws, it->in.data + it->consumed, it->in.len - it->consumed, event);
      it->consumed += (uint32_t)used;
      if (event->kind == WS_EVENT_NONE) break;
      if (event->kind != WS_EVENT_PING) return true;
      uint8_t pong[WS_HEADER_MAX + 125];
      test_send(it->fd, pong, test_mask_frame(pong, 0x80 | WS_PONG, event->data, event->len));
    }
    buf_consume(&it->in, it->consumed);
    it->consumed = 0;
    uint8_t *room = buf_reserve(&it->in, 65536);
    assert_non_null(room);
    ssize_t n = recv(it->fd, room, 65536, 0);
    if (n <= 0) return false;
    it->in.len += (uint32_t)n;
  }
}

static inline bool test_receive(struct test_client *it, struct test_frame *frame) {
  struct ws_event event;
  if (!test_event(it, &event)) return false;
  assert_int_equal(event.kind, WS_EVENT_MESSAGE);
  assert_int_equal(event.opcode, WS_BINARY);
  assert_true(juggle_read_envelope(view_of(event.data, event.len), &frame->envelope));
  assert_int_equal(frame->envelope.version, 1);
  frame->body = it->obfuscated ? frame->envelope.payload : frame->envelope.body;
  if (it->obfuscated) juggle_xor((uint8_t *)frame->body.data, frame->body.len, &it->key);
  return true;
}

static inline void test_expect(struct test_client *it, int32_t cmd, struct test_frame *frame) {
  if (!test_receive(it, frame)) fail_msg("connection ended where command %d was expected", cmd);
  assert_int_equal(frame->envelope.cmd, cmd);
}

/* True when the server has closed; anything that comes before is thrown away. */
static inline bool test_closed(struct test_client *it) {
  uint8_t bytes[4096];
  for (;;) {
    ssize_t n = recv(it->fd, bytes, sizeof bytes, 0);
    if (n > 0) continue;
    return n == 0 || errno == ECONNRESET;
  }
}

/* The next frame that is no notice: the server may repeat one when a second has passed. */
static inline void test_expect_past_notices(struct test_client *it, int32_t cmd, struct test_frame *frame) {
  struct juggle_request request;
  do {
    if (!test_receive(it, frame)) fail_msg("connection ended where command %d was expected", cmd);
    if (frame->envelope.cmd != JUGGLE_PUBLISH) break;
    assert_true(juggle_read_request(frame->body, &request));
  } while (view_is(request.topic, "ntf"));
  assert_int_equal(frame->envelope.cmd, cmd);
}

static inline void test_send_connect(struct test_client *it, const char *token, const char *platform) {
  struct juggle_connect connect = {.proto_id = view_str("jug9le1m"),
      .sdk_version = view_str("1.0.1"),
      .appkey = view_str(TEST_APP),
      .token = view_str(token),
      .device_id = view_str("dev"),
      .platform = view_str(platform)};
  uint8_t body[1024];
  size_t len = juggle_connect_size(&connect);
  assert_true(len <= sizeof body);
  juggle_write_connect(body, &connect);
  test_send_envelope(it, JUGGLE_CONNECT, 1, body, len);
}

/* Upgrade and Connect; returns the code of the ConnectAck. */
static inline int32_t test_try_login(
    struct test_client *it, uint16_t port, const char *token, const char *platform, bool obfuscated) {
  test_upgrade(it, port);
  it->obfuscated = obfuscated;
  for (uint8_t i = 0; i < JUGGLE_KEY_BYTES; i++)
    it->key.byte[i] = obfuscated ? (uint8_t)(i + 1) : 0;
  test_send_connect(it, token, platform);
  struct test_frame frame;
  test_expect(it, JUGGLE_CONNECT_ACK, &frame);
  struct juggle_connect_ack ack;
  assert_true(juggle_read_connect_ack(frame.body, &ack));
  assert_int_equal(ack.session.len, 11);
  assert_true(ack.timestamp_ms > 0);
  return ack.code;
}

static inline void test_login_as(
    struct test_client *it, const struct test_server *server, const char *user_id, bool obfuscated) {
  char token[JUGGLE_TOKEN_MAX];
  test_register(server, user_id, token);
  assert_int_equal(test_try_login(it, server->config.ws_port, token, "Web", obfuscated), 0);
}

static inline void test_send_request(struct test_client *it, int32_t cmd, int32_t index, const char *topic,
    const char *target, const uint8_t *data, size_t len) {
  struct juggle_request request = {
      .index = index, .topic = view_str(topic), .target = view_str(target), .data = view_of(data, len)};
  size_t size = juggle_request_size(&request);
  uint8_t *body = malloc(size);
  assert_non_null(body);
  juggle_write_request(body, &request);
  test_send_envelope(it, cmd, 1, body, size);
  free(body);
}

static inline void test_publish_flags(struct test_client *it, int32_t index, const char *topic, const char *target,
    const char *content, const char *client_uid, int32_t flags) {
  struct juggle_up_msg msg = {.msg_type = view_str("jg:text"),
      .content = view_str(content),
      .flags = flags,
      .client_uid = view_str(client_uid)};
  size_t size = juggle_up_msg_size(&msg);
  uint8_t *data = malloc(size);
  assert_non_null(data);
  juggle_write_up_msg(data, &msg);
  test_send_request(it, JUGGLE_PUBLISH, index, topic, target, data, size);
  free(data);
}

static inline void test_publish(struct test_client *it, int32_t index, const char *topic, const char *target,
    const char *content, const char *client_uid) {
  test_publish_flags(it, index, topic, target, content, client_uid, JUGGLE_FLAG_STORE | JUGGLE_FLAG_COUNT);
}

static inline void test_expect_publish_ack(struct test_client *it, struct juggle_publish_ack *ack) {
  struct test_frame frame;
  test_expect(it, JUGGLE_PUBLISH_ACK, &frame);
  assert_true(juggle_read_publish_ack(frame.body, ack));
}

/* A push; its views are valid until the next receive. */
struct test_push {
  int32_t qos;
  struct juggle_request request;
};

static inline void test_expect_push(struct test_client *it, const char *topic, struct test_push *push) {
  struct test_frame frame;
  test_expect(it, JUGGLE_PUBLISH, &frame);
  push->qos = frame.envelope.qos;
  assert_true(juggle_read_request(frame.body, &push->request));
  if (!view_is(push->request.topic, topic)) {
    fail_msg("%.*s came where %s was expected", (int)push->request.topic.len, push->request.topic.data, topic);
  }
}

static inline void test_expect_message(struct test_client *it, struct test_push *push, struct juggle_down_msg *msg) {
  test_expect_push(it, "msg", push);
  assert_true(juggle_read_down_msg(push->request.data, msg));
}

static inline void test_ack_push(struct test_client *it, int32_t index) {
  struct juggle_publish_ack ack = {.index = index};
  uint8_t body[16];
  size_t len = juggle_publish_ack_size(&ack);
  juggle_write_publish_ack(body, &ack);
  test_send_envelope(it, JUGGLE_PUBLISH_ACK, 0, body, len);
}

static inline void test_send_sync(struct test_client *it, int32_t index, const char *owner, int64_t sync_time_ms) {
  struct juggle_sync_request sync = {.sync_time_ms = sync_time_ms};
  uint8_t data[32];
  size_t len = juggle_sync_request_size(&sync);
  juggle_write_sync_request(data, &sync);
  test_send_request(it, JUGGLE_QUERY, index, "sync_msgs", owner, data, len);
}

/* Number of messages in the answer; *newest_ms is raised to the newest time in it. */
static inline uint32_t test_expect_sync(struct test_client *it, bool *finished, int64_t *newest_ms) {
  struct test_frame frame;
  test_expect_past_notices(it, JUGGLE_QUERY_ACK, &frame);
  struct juggle_query_ack ack;
  assert_true(juggle_read_query_ack(frame.body, &ack));
  assert_int_equal(ack.code, 0);
  struct juggle_set_reader reader = juggle_set_reader_of(ack.data);
  struct view raw;
  uint32_t count = 0;
  while (juggle_set_next(&reader, &raw)) {
    struct juggle_down_msg msg;
    assert_true(juggle_read_down_msg(raw, &msg));
    if (msg.msg_time_ms > *newest_ms) *newest_ms = msg.msg_time_ms;
    count++;
  }
  assert_false(reader.bad);
  *finished = reader.is_finished;
  return count;
}

/* A Ping of ours is answered before anything else but a repeated notice comes. */
static inline void test_expect_silence(struct test_client *it) {
  test_send_hex(it, "080110081801");
  struct test_frame frame;
  test_expect_past_notices(it, JUGGLE_PONG, &frame);
}

#endif
