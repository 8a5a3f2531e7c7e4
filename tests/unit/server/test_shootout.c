/* The shootout server from outside: every protocol, the promises of server/shootout.h, and hostile peers. */
#include "support/test_client.h"

#include "wire/shootout.h"

#include <poll.h>

#define CHANNEL "\"{\\\"channel\\\":\\\"BenchmarkChannel\\\"}\""
#define JOIN_1 "{\"topic\":\"room:lobby\",\"event\":\"phx_join\",\"payload\":null,\"ref\":\"\"}"
#define JOINED_1                                                                                                       \
  "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"ok\",\"response\":{}},\"ref\":\"\"}"

struct peer {
  int fd;
  struct buf in;
  uint32_t used;
  struct ws ws;
};

static void start(struct test_server *it) {
  it->config.shootout = true;
  it->config.shootout_port = 0;
  test_server_start(it);
}

static void prepare_and_start(struct test_server *it) {
  test_server_prepare(it);
  start(it);
}

/* Sends the upgrade and reads the 101; answer (may be NULL) has room for 1024 bytes. */
static void upgrade(struct peer *peer, uint16_t port, const char *path, const char *extra, char *answer) {
  *peer = (struct peer){.fd = test_connect(port)};
  ws_init(&peer->ws, WS_CLIENT, 64 * 1024 * 1024);
  char request[512], key[25], text[1024];
  ws_make_key(key);
  test_send(peer->fd, request, ws_write_request(request, sizeof request, "127.0.0.1", port, path, key, extra));
  size_t got = 0, used;
  struct http_head head;
  struct err err = {0};
  do {
    assert_true(got < sizeof text - 1);
    if (recv(peer->fd, text + got, 1, 0) != 1) fail_msg("no answer to the upgrade of %s", path);
    got++;
  } while (http_read_response((uint8_t *)text, got, &head, &used, &err) != HTTP_COMPLETE);
  if (ws_check_response(&head, key, &err) != STATUS_OK) fail_msg("%s: %s", path, err.text);
  text[got] = '\0';
  if (answer) memcpy(answer, text, got + 1);
}

static struct peer open_peer(const struct test_server *it, const char *path) {
  struct peer peer;
  upgrade(&peer, it->config.shootout_port, path, NULL, NULL);
  return peer;
}

static void close_peer(struct peer *peer) {
  close(peer->fd);
  buf_free(&peer->in);
  ws_free(&peer->ws);
}

static void send_frame(struct peer *peer, uint8_t opcode, const void *data, size_t len) {
  static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
  uint8_t *frame = malloc(len + WS_HEADER_MAX);
  assert_non_null(frame);
  size_t header = ws_write_header(frame, opcode, len, mask);
  memcpy(frame + header, data, len);
  ws_mask(frame + header, len, mask, 0);
  test_send(peer->fd, frame, header + len);
  free(frame);
}

static void send_text(struct peer *peer, const char *text) {
  send_frame(peer, WS_TEXT, text, strlen(text));
}

/* The next event; its data is valid until the next call. Fails after 5 s. */
static struct ws_event next_event(struct peer *peer) {
  for (;;) {
    struct ws_event event;
    peer->used += (uint32_t)ws_read(&peer->ws, peer->in.data + peer->used, peer->in.len - peer->used, &event);
    if (event.kind != WS_EVENT_NONE) return event;
    buf_consume(&peer->in, peer->used);
    peer->used = 0;
    uint8_t *room = buf_reserve(&peer->in, 65536);
    assert_non_null(room);
    ssize_t n = recv(peer->fd, room, 65536, 0);
    if (n <= 0) fail_msg("no frame: %s", n == 0 ? "closed" : strerror(errno));
    peer->in.len += (uint32_t)n;
  }
}

static void expect(struct peer *peer, uint8_t opcode, const void *data, size_t len) {
  struct ws_event event = next_event(peer);
  assert_int_equal(event.kind, WS_EVENT_MESSAGE);
  assert_int_equal(event.opcode, opcode);
  if (event.len != len || memcmp(event.data, data, len) != 0) {
    fail_msg("got %.*s\nwant %.*s", (int)event.len, (const char *)event.data, (int)len, (const char *)data);
  }
}

static void expect_text(struct peer *peer, const char *text) {
  expect(peer, WS_TEXT, text, strlen(text));
}

static void expect_close(struct peer *peer, uint16_t code) {
  struct ws_event event = next_event(peer);
  assert_int_equal(event.kind, WS_EVENT_CLOSE);
  assert_int_equal(event.close_code, code);
  close_peer(peer);
}

/* A counter of GET /metrics. */
static unsigned long long metric(const struct test_server *it, const char *name) {
  int status;
  char *text = test_http(it->config.shootout_port, "GET", "/metrics", NULL, NULL, &status);
  assert_int_equal(status, 200);
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", name);
  const char *at = strstr(text, quoted);
  if (!at) fail_msg("no %s in %s", name, text);
  unsigned long long value = strtoull(at + strlen(quoted), NULL, 10);
  free(text);
  return value;
}

/* Waits until a counter has reached a value. */
static void await_metric(const struct test_server *it, const char *name, unsigned long long value) {
  for (int i = 0; i < 500; i++) {
    if (metric(it, name) >= value) return;
    usleep(10000);
  }
  fail_msg("%s stays at %llu", name, metric(it, name));
}

static void test_json(void **state) {
  (void)state;
  struct test_server it;
  prepare_and_start(&it);
  struct peer a = open_peer(&it, "/ws"), b = open_peer(&it, "/json");
  send_text(&a, "{\"type\":\"echo\",\"payload\":{\"sendTime\":\"1\"}}");
  expect_text(&a, "{\"type\":\"echo\",\"payload\":{\"sendTime\":\"1\"}}");
  send_text(&a, " {\"payload\" : {\"x\": [1, 2.50e1]}, \"type\":\"broadcast\"}");
  expect_text(&a, "{\"type\":\"broadcast\",\"payload\":{\"x\": [1, 2.50e1]}}");
  expect_text(&a, "{\"type\":\"broadcastResult\",\"payload\":{\"x\": [1, 2.50e1]}}");
  expect_text(&b, "{\"type\":\"broadcast\",\"payload\":{\"x\": [1, 2.50e1]}}");
  send_text(&b, "{\"type\":\"nonsense\",\"payload\":1}");
  expect_text(&b, "{\"type\":\"error\",\"payload\":\"unknown message type\"}");
  send_text(&b, "{\"type\":\"echo\"}");
  expect_text(&b, "{\"type\":\"error\",\"payload\":\"unknown message type\"}");
  send_text(&b, "{\"type\":");
  expect_close(&b, 1007);
  close_peer(&a);
  test_server_remove(&it);
}

static void test_binary(void **state) {
  (void)state;
  static const uint8_t echo[] = {'e', 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8};
  uint8_t frame[18] = "b\0\0\0\x0d\x14\x7d\xc0\x7b\xa4\xa9\x41\x15-----";
  struct test_server it;
  prepare_and_start(&it);
  static const char *const paths[] = {"/binary", "/ws"};
  for (int i = 0; i < 2; i++) {
    struct peer a = open_peer(&it, paths[i]), b = open_peer(&it, paths[i]);
    send_frame(&a, WS_BINARY, echo, sizeof echo);
    expect(&a, WS_BINARY, echo, sizeof echo);
    frame[0] = 'b';
    send_frame(&a, WS_BINARY, frame, sizeof frame);
    expect(&a, WS_BINARY, frame, sizeof frame);
    expect(&b, WS_BINARY, frame, sizeof frame);
    frame[0] = 'r';
    expect(&a, WS_BINARY, frame, sizeof frame);
    send_frame(&a, WS_BINARY, "x", 1);
    expect_close(&a, 1003);
    close_peer(&b);
  }
  struct peer text = open_peer(&it, "/binary");
  send_text(&text, "{}");
  expect_close(&text, 1003);
  test_server_remove(&it);
}

static void test_phoenix(void **state) {
  (void)state;
  struct test_server it;
  prepare_and_start(&it);
  struct peer one = open_peer(&it, "/socket/websocket"), two = open_peer(&it, "/socket/websocket?a=b&vsn=2.0.0");
  send_text(&one, "{\"topic\":\"room:lobby\",\"event\":\"echo\",\"payload\":{\"body\":1},\"ref\":\"1\"}");
  expect_text(&one, "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"error\",\"response\":"
                    "{\"reason\":\"unmatched topic\"}},\"ref\":\"1\"}");
  send_text(&one, JOIN_1);
  expect_text(&one, JOINED_1);
  send_text(&two, "[\"3\",\"4\",\"room:cellar\",\"phx_join\",{}]");
  expect_text(&two, "[\"3\",\"4\",\"room:cellar\",\"phx_reply\",{\"status\":\"error\",\"response\":{\"reason\":"
                    "\"unmatched topic\"}}]");
  send_text(&two, "[\"3\",\"5\",\"room:lobby\",\"phx_join\",{}]");
  expect_text(&two, "[\"3\",\"5\",\"room:lobby\",\"phx_reply\",{\"status\":\"ok\",\"response\":{}}]");
  send_text(&two, "[null,\"6\",\"phoenix\",\"heartbeat\",{}]");
  expect_text(&two, "[null,\"6\",\"phoenix\",\"phx_reply\",{\"status\":\"ok\",\"response\":{}}]");

  send_text(&one, "{\"topic\":\"room:lobby\",\"event\":\"echo\",\"payload\":{\"body\":{\"a\":1}},\"ref\":\"2\"}");
  expect_text(&one, "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"ok\",\"response\":"
                    "{\"type\":\"echo\",\"body\":{\"a\":1}}},\"ref\":\"2\"}");
  send_text(&two, "[\"3\",\"7\",\"room:lobby\",\"broadcast\",{\"body\":{\"a\":1}}]");
  expect_text(&two, "[null,null,\"room:lobby\",\"broadcast\",{\"type\":\"broadcast\",\"body\":{\"a\":1}}]");
  expect_text(&two, "[\"3\",\"7\",\"room:lobby\",\"phx_reply\",{\"status\":\"ok\",\"response\":"
                    "{\"type\":\"broadcastResult\",\"body\":{\"a\":1}}}]");
  expect_text(&one, "{\"topic\":\"room:lobby\",\"event\":\"broadcast\",\"payload\":{\"type\":\"broadcast\",\"body\":"
                    "{\"a\":1}},\"ref\":null}");
  send_text(&one, "{\"topic\":\"room:lobby\",\"event\":\"sing\",\"payload\":{},\"ref\":\"3\"}");
  expect_text(&one, "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"error\",\"response\":"
                    "{\"reason\":\"unknown message type\"}},\"ref\":\"3\"}");
  /* Who has left hears nothing more. */
  send_text(&one, "{\"topic\":\"room:lobby\",\"event\":\"phx_leave\",\"payload\":{},\"ref\":\"\"}");
  expect_text(&one, JOINED_1);
  send_text(&two, "[\"3\",\"8\",\"room:lobby\",\"broadcast\",{\"body\":2}]");
  next_event(&two);
  next_event(&two);
  send_text(&one, JOIN_1);
  expect_text(&one, JOINED_1);
  send_text(&one, "[]");
  expect_close(&one, 1007);
  send_frame(&two, WS_BINARY, "e", 1);
  expect_close(&two, 1003);
  test_server_remove(&it);
}

static void test_cable(void **state) {
  (void)state;
  struct test_server it;
  prepare_and_start(&it);
  struct peer a, b = open_peer(&it, "/cable");
  char answer[1024];
  upgrade(&a, it.config.shootout_port, "/cable",
      "Sec-WebSocket-Protocol: actioncable-v1-json, actioncable-unsupported\r\n", answer);
  assert_non_null(strstr(answer, "\r\nSec-WebSocket-Protocol: actioncable-v1-json\r\n"));
  expect_text(&a, "{\"type\":\"welcome\"}");
  expect_text(&b, "{\"type\":\"welcome\"}");
  send_text(&a, "{\"command\":\"subscribe\",\"identifier\":\"{\\\"channel\\\":\\\"Other\\\"}\"}");
  expect_text(&a, "{\"identifier\":\"{\\\"channel\\\":\\\"Other\\\"}\",\"type\":\"reject_subscription\"}");
  send_text(&a, "{\"command\":\"subscribe\",\"identifier\":" CHANNEL "}");
  expect_text(&a, "{\"identifier\":" CHANNEL ",\"type\":\"confirm_subscription\"}");
  send_text(&a, "{\"command\":\"message\",\"identifier\":" CHANNEL ",\"data\":\"{\\\"action\\\":\\\"echo\\\","
                "\\\"payload\\\":{\\\"a\\\":\\\"\\u00e9\\\"}}\"}");
  expect_text(&a, "{\"identifier\":" CHANNEL ",\"message\":{\"action\":\"echo\",\"payload\":{\"a\":\"\xc3\xa9\"}}}");
  send_text(&a, "{\"command\":\"message\",\"identifier\":" CHANNEL ",\"data\":\"{\\\"action\\\":\\\"broadcast\\\","
                "\\\"payload\\\":1}\"}");
  expect_text(&a, "{\"identifier\":" CHANNEL ",\"message\":{\"action\":\"broadcast\",\"payload\":1}}");
  expect_text(&a, "{\"identifier\":" CHANNEL ",\"message\":{\"action\":\"broadcastResult\",\"payload\":1}}");
  /* b never subscribed: its next message is a ping. */
  struct ws_event event = next_event(&b);
  struct shootout_message message;
  assert_true(shootout_read_reply(SHOOTOUT_CABLE, event.data, event.len, &message));
  assert_int_equal(message.kind, SHOOTOUT_HEARTBEAT);
  send_text(&b, "not JSON");
  expect_close(&b, 1007);
  close_peer(&a);
  test_server_remove(&it);
}

static void test_registered_before_the_101(void **state) {
  (void)state;
  enum { ROUNDS = 60 };
  struct test_server it;
  prepare_and_start(&it);
  static struct peer peers[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    peers[i] = open_peer(&it, "/ws");
    send_text(&peers[i / 2], "{\"type\":\"broadcast\",\"payload\":1}");
    for (int k = 0; k <= i; k++)
      expect_text(&peers[k], "{\"type\":\"broadcast\",\"payload\":1}");
    expect_text(&peers[i / 2], "{\"type\":\"broadcastResult\",\"payload\":1}");
  }
  assert_int_equal(metric(&it, "copies"), ROUNDS * (ROUNDS + 1) / 2);
  for (int i = 0; i < ROUNDS; i++)
    close_peer(&peers[i]);
  test_server_remove(&it);
}

/* Everybody sends many at once, over two threads: nothing is lost, each sender's order holds, and each result follows
 * the sender's own copy. */
static void test_many_at_once(void **state) {
  (void)state;
  enum { PEERS = 8, MESSAGES = 200 };
  struct test_server it;
  prepare_and_start(&it);
  static struct peer peers[PEERS];
  for (int i = 0; i < PEERS; i++)
    peers[i] = open_peer(&it, "/ws");
  char text[64];
  for (int m = 0; m < MESSAGES; m++) {
    for (int i = 0; i < PEERS; i++) {
      snprintf(text, sizeof text, "{\"type\":\"broadcast\",\"payload\":\"%d %d\"}", i, m);
      send_text(&peers[i], text);
    }
  }
  for (int i = 0; i < PEERS; i++) {
    int next[PEERS] = {0}, results = 0;
    for (int n = 0; n < PEERS * MESSAGES + MESSAGES; n++) {
      struct ws_event event = next_event(&peers[i]);
      int sender, number;
      snprintf(text, sizeof text, "%.*s", (int)event.len, (const char *)event.data);
      if (sscanf(text, "{\"type\":\"broadcast\",\"payload\":\"%d %d\"}", &sender, &number) == 2) {
        assert_in_range(sender, 0, PEERS - 1);
        assert_int_equal(number, next[sender]++);
      } else if (sscanf(text, "{\"type\":\"broadcastResult\",\"payload\":\"%d %d\"}", &sender, &number) == 2) {
        assert_int_equal(sender, i);
        assert_int_equal(number, results++);
        assert_true(number < next[i]);
      } else {
        fail_msg("unexpected: %s", text);
      }
    }
    assert_int_equal(results, MESSAGES);
  }
  for (int i = 0; i < PEERS; i++)
    close_peer(&peers[i]);
  test_server_remove(&it);
}

/* More than may be under way at once: the sender is read no further until results are back, and loses nothing. */
static void test_large_ones_in_a_row(void **state) {
  (void)state;
  enum { PADDING = 40000, MESSAGES = 20 };
  struct test_server it;
  test_server_prepare(&it);
  it.config.session_out_bytes = 64 * 1024;
  start(&it);
  struct peer peer = open_peer(&it, "/ws");
  static char text[PADDING + 64], want[PADDING + 64];
  for (int i = 0; i < MESSAGES; i++) {
    int len = snprintf(text, sizeof text, "{\"type\":\"broadcast\",\"payload\":\"%0*d\"}", PADDING, i);
    send_frame(&peer, WS_TEXT, text, (size_t)len);
  }
  int copies = 0, results = 0;
  while (results < MESSAGES) {
    struct ws_event event = next_event(&peer);
    bool result = event.len == PADDING + 39;
    snprintf(want, sizeof want, "{\"type\":\"broadcast%s\",\"payload\":\"%0*d\"}", result ? "Result" : "", PADDING,
        result ? results : copies);
    assert_int_equal(event.len, strlen(want));
    assert_memory_equal(event.data, want, event.len);
    if (result) {
      assert_true(results++ < copies);
    } else {
      copies++;
    }
  }
  assert_int_equal(copies, MESSAGES);
  assert_true(metric(&it, "pauses") > 0);
  close_peer(&peer);
  test_server_remove(&it);
}

static void test_slow_reader_is_dropped(void **state) {
  (void)state;
  enum { PADDING = 60000 };
  struct test_server it;
  test_server_prepare(&it);
  it.config.session_out_bytes = 128 * 1024;
  start(&it);
  struct peer slow = open_peer(&it, "/ws"), sender = open_peer(&it, "/ws");
  static char text[PADDING + 64];
  int len = snprintf(text, sizeof text, "{\"type\":\"broadcast\",\"payload\":\"%0*d\"}", PADDING, 7);
  for (int i = 0; i < 400 && metric(&it, "slow_readers_dropped") == 0; i++) {
    send_frame(&sender, WS_TEXT, text, (size_t)len);
    assert_int_equal(next_event(&sender).len, len);
    assert_int_equal(next_event(&sender).len, len + 6);
  }
  assert_int_equal(metric(&it, "slow_readers_dropped"), 1);
  assert_int_equal(metric(&it, "members"), 1);
  close_peer(&slow);
  close_peer(&sender);
  test_server_remove(&it);
}

/* Output below the bound that does not move: the time limit drops it. A reader that only echoes is held back first. */
static void test_stuck_output_is_dropped(void **state) {
  (void)state;
  enum { PADDING = 60000 };
  struct test_server it;
  test_server_prepare(&it);
  it.config.slow_reader_ms = 300;
  start(&it);
  struct peer peer = open_peer(&it, "/ws");
  static char text[PADDING + 64];
  int len = snprintf(text, sizeof text, "{\"type\":\"echo\",\"payload\":\"%0*d\"}", PADDING, 7);
  struct pollfd poll_fd = {.fd = peer.fd, .events = POLLOUT};
  while (poll(&poll_fd, 1, 100) > 0 && !(poll_fd.revents & (POLLERR | POLLHUP))) {
    static const uint8_t mask[4] = {1, 2, 3, 4};
    static uint8_t frame[PADDING + 128];
    size_t header = ws_write_header(frame, WS_TEXT, (size_t)len, mask);
    memcpy(frame + header, text, (size_t)len);
    ws_mask(frame + header, (size_t)len, mask, 0);
    size_t at = 0, total = header + (size_t)len;
    while (at < total) {
      ssize_t n = send(peer.fd, frame + at, total - at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) break;
      at += (size_t)n;
    }
    if (at < total) break;
  }
  await_metric(&it, "slow_readers_dropped", 1);
  assert_true(metric(&it, "pauses") > 0);
  close_peer(&peer);
  test_server_remove(&it);
}

static void test_plain_http(void **state) {
  (void)state;
  struct test_server it;
  test_server_prepare(&it);
  it.config.login_deadline_ms = 200;
  start(&it);
  int status;
  free(test_http(it.config.shootout_port, "GET", "/other", NULL, NULL, &status));
  assert_int_equal(status, 404);
  free(test_http(it.config.shootout_port, "GET", "/ws", NULL, NULL, &status));
  assert_int_equal(status, 426);
  int fd = test_connect(it.config.shootout_port);
  test_send(fd, "GARBAGE\r\n\r\n", 11);
  char *text = test_read_all(fd);
  assert_memory_equal(text, "HTTP/1.1 400 ", 13);
  free(text);
  close(fd);
  fd = test_connect(it.config.shootout_port);
  free(test_read_all(fd));
  close(fd);
  assert_int_equal(metric(&it, "deadlines"), 1);
  test_server_remove(&it);
}

static void test_pings_and_closes(void **state) {
  (void)state;
  struct test_server it;
  prepare_and_start(&it);
  struct peer peer = open_peer(&it, "/ws");
  send_frame(&peer, WS_PING, "abc", 3);
  struct ws_event event = next_event(&peer);
  assert_int_equal(event.kind, WS_EVENT_PONG);
  assert_memory_equal(event.data, "abc", 3);
  send_frame(&peer, WS_CLOSE, "\x03\xe8", 2);
  expect_close(&peer, 1000);
  peer = open_peer(&it, "/ws");
  test_send(peer.fd, "\x81\x01x", 3); /* not masked */
  expect_close(&peer, 1002);
  test_server_remove(&it);
}

static void test_stop_finishes_what_is_under_way(void **state) {
  (void)state;
  enum { PEERS = 6 };
  struct test_server it;
  prepare_and_start(&it);
  struct peer peers[PEERS];
  for (int i = 0; i < PEERS; i++)
    peers[i] = open_peer(&it, "/ws");
  send_text(&peers[0], "{\"type\":\"broadcast\",\"payload\":1}");
  await_metric(&it, "broadcasts", 1);
  test_server_stop(&it);
  for (int i = 0; i < PEERS; i++) {
    expect_text(&peers[i], "{\"type\":\"broadcast\",\"payload\":1}");
    if (i == 0) expect_text(&peers[i], "{\"type\":\"broadcastResult\",\"payload\":1}");
    expect_close(&peers[i], 1001);
  }
  test_server_remove(&it);
}

static void test_port_in_use(void **state) {
  (void)state;
  struct test_server it, other;
  prepare_and_start(&it);
  test_server_prepare(&other);
  other.config.shootout = true;
  other.config.shootout_port = it.config.api_port;
  struct err err = {0};
  assert_int_equal(server_start(&other.server, &other.config, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "cannot listen"));
  other.server = NULL;
  test_server_remove(&other);
  test_server_remove(&it);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_json),
      cmocka_unit_test(test_binary),
      cmocka_unit_test(test_phoenix),
      cmocka_unit_test(test_cable),
      cmocka_unit_test(test_registered_before_the_101),
      cmocka_unit_test(test_many_at_once),
      cmocka_unit_test(test_large_ones_in_a_row),
      cmocka_unit_test(test_slow_reader_is_dropped),
      cmocka_unit_test(test_stuck_output_is_dropped),
      cmocka_unit_test(test_plain_http),
      cmocka_unit_test(test_pings_and_closes),
      cmocka_unit_test(test_stop_finishes_what_is_under_way),
      cmocka_unit_test(test_port_in_use),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
