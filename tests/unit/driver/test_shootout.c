/* The shootout drivers against a scripted peer: a socket pair, with the driver's stream on one end and bytes that the
 * test writes and reads on the other. */
#include "driver/driver.h"
#include "net/http.h"
#include "net/ws.h"
#include "wire/shootout.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define RUN_ID UINT64_C(0x1234567890abcdef)
#define INDEX 7
#define CHANNEL "\"{\\\"channel\\\":\\\"BenchmarkChannel\\\"}\""

struct fixture {
  const struct driver *driver;
  struct loop *loop;
  struct client *client;
  struct driver_run run;
  int peer;
  uint8_t in[65536]; /* what the client sent and the test has not read */
  size_t in_len;
  char message[4096]; /* the last message of the client */
  size_t message_len;
  /* What the hooks were told. */
  int established, failed, acked, delivered;
  int32_t failed_code, acked_code;
  uint32_t acked_token;
  struct payload payload; /* of the last delivery */
  enum payload_result payload_result;
};

static struct fixture *fixture; /* of the test that runs: hooks have no context of their own */

static void on_established(struct client *client) {
  (void)client;
  fixture->established++;
}

static void on_failed(struct client *client, int32_t code) {
  fixture->failed++;
  fixture->failed_code = code;
  stream_close(&client->stream, false);
}

static void on_acked(struct client *client, uint32_t token, int32_t code) {
  (void)client;
  fixture->acked++;
  fixture->acked_token = token;
  fixture->acked_code = code;
}

static void on_delivered(struct client *client, struct view content, bool overlap) {
  (void)client;
  assert_false(overlap);
  fixture->delivered++;
  fixture->payload_result = payload_read(fixture->driver->payload_form, content.data, content.len, &fixture->payload);
}

static void on_wake(struct client *client, uint64_t due_ns) {
  (void)client, (void)due_ns;
  fail_msg("asked for a tick");
}

static const struct client_hooks hooks = {
    .established = on_established, .failed = on_failed, .acked = on_acked, .delivered = on_delivered, .wake = on_wake};

static void stream_opened(struct stream *stream) {
  fixture->driver->opened((struct client *)stream);
}

static size_t stream_received(struct stream *stream, uint8_t *data, size_t len) {
  return fixture->driver->received((struct client *)stream, data, len);
}

static void stream_closed(struct stream *stream, enum stream_end end, int error) {
  (void)stream, (void)end, (void)error;
}

static const struct stream_ops ops = {.opened = stream_opened, .received = stream_received, .closed = stream_closed};

static enum status prepare(struct fixture *f, const char *url, const char *origin, struct err *err) {
  f->run = (struct driver_run){.driver = f->driver};
  f->run.settings = (struct driver_settings){.target = url, .run_id = RUN_ID, .payload_bytes = 100, .origin = origin};
  assert_int_equal(url_parse(url, &f->run.settings.url, err), STATUS_OK);
  return f->driver->prepare(&f->run, err);
}

static struct fixture *start(const struct driver *driver, const char *url, const char *origin) {
  struct fixture *f = calloc(1, sizeof(*f));
  int pair[2];
  struct err err = {0};
  assert_non_null(f);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  fixture = f;
  f->driver = driver;
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  fcntl(pair[1], F_SETFL, O_NONBLOCK);
  f->peer = pair[1];
  if (prepare(f, url, origin, &err) != STATUS_OK) fail_msg("%s", err.text);
  f->client = calloc(1, sizeof(struct client) + driver->client_bytes);
  assert_non_null(f->client);
  f->client->hooks = &hooks;
  f->client->run = &f->run;
  f->client->index = INDEX;
  assert_int_equal(loop_create(&f->loop, NULL), STATUS_OK);
  assert_int_equal(stream_accept(&f->client->stream, f->loop, &ops, pair[0], NULL, NULL), STATUS_OK);
  return f;
}

static void stop(struct fixture *f) {
  stream_close(&f->client->stream, false);
  f->driver->released(f->client);
  f->driver->release(&f->run);
  loop_destroy(f->loop);
  close(f->peer);
  free(f->client);
  free(f);
}

/* --- the peer --- */

static void peer_read(struct fixture *f) {
  for (int i = 0; i < 3; i++)
    loop_turn(f->loop, 0);
  ssize_t got;
  while ((got = read(f->peer, f->in + f->in_len, sizeof(f->in) - f->in_len)) > 0)
    f->in_len += (size_t)got;
}

static void peer_write(struct fixture *f, const void *data, size_t len) {
  assert_int_equal(write(f->peer, data, len), len);
  for (int i = 0; i < 3; i++)
    loop_turn(f->loop, 0);
}

static void peer_frame(struct fixture *f, uint8_t opcode, const void *data, size_t len) {
  uint8_t frame[8192];
  size_t header = ws_write_header(frame, opcode, len, NULL);
  memcpy(frame + header, data, len);
  peer_write(f, frame, header + len);
}

static void peer_text(struct fixture *f, const char *text) {
  peer_frame(f, WS_TEXT, text, strlen(text));
}

/* The client's next frame; the message is in f->message. Returns the opcode, 0 when there is none. */
static uint8_t peer_take(struct fixture *f) {
  peer_read(f);
  struct ws ws;
  struct ws_event event;
  ws_init(&ws, WS_SERVER, 65536);
  size_t used = ws_read(&ws, f->in, f->in_len, &event);
  assert_int_not_equal(event.kind, WS_EVENT_ERROR);
  uint8_t opcode = event.kind == WS_EVENT_NONE ? 0 : event.opcode;
  f->message_len = opcode ? event.len : 0;
  if (f->message_len) memcpy(f->message, event.data, event.len);
  f->message[f->message_len] = '\0';
  ws_free(&ws);
  memmove(f->in, f->in + used, f->in_len - used);
  f->in_len -= used;
  return opcode;
}

/* Answers the upgrade, which must be of this path; returns its Origin in out. */
static void peer_upgrade(struct fixture *f, const char *path, const char *extra, char out[256]) {
  struct http_head head;
  size_t used, len;
  char answer[512];
  peer_read(f);
  assert_int_equal(http_read_request(f->in, f->in_len, &head, &used, NULL), HTTP_COMPLETE);
  assert_true(view_is(head.target, path));
  struct view origin = http_field(&head, "origin");
  if (out) snprintf(out, 256, "%.*s", (int)origin.len, (const char *)origin.data);
  bool cable = f->driver == &driver_shootout_actioncable;
  assert_int_equal(http_has_token(&head, "sec-websocket-protocol", "actioncable-v1-json"), cable);
  assert_int_equal(ws_answer_request_with(&head, extra, answer, sizeof(answer), &len, NULL), STATUS_OK);
  f->in_len = 0;
  peer_write(f, answer, len);
}

/* Sends the client's own request back, as a server's echo. */
static void peer_echo(struct fixture *f, enum shootout_protocol protocol) {
  struct shootout_message message;
  struct shootout_text text;
  uint8_t frame[8192], copy[4096];
  memcpy(copy, f->message, f->message_len);
  assert_true(shootout_read_request(protocol, copy, f->message_len, &message));
  assert_int_equal(message.kind, SHOOTOUT_ECHO);
  shootout_answer(&text, protocol, SHOOTOUT_ECHO, &message);
  shootout_put(frame, &text);
  peer_frame(f, protocol == SHOOTOUT_BINARY ? WS_BINARY : WS_TEXT, frame, text.len);
}

static struct publish publish_of(enum publish_to to, uint32_t sequence, uint32_t size) {
  struct publish publish = {.to = to,
      .payload = {.run_id = RUN_ID,
          .scheduled_ns = 5,
          .written_ns = 6,
          .sender = INDEX,
          .sequence = sequence,
          .size = size,
          .phase = PAYLOAD_MEASURE}};
  publish.token = publish_token(&publish.payload);
  return publish;
}

static const char *const urls[] = {"ws+json://127.0.0.1:3000", "ws+binary://127.0.0.1:3000",
    "ws+phoenix://127.0.0.1:3000", "ws+cable://127.0.0.1:3000"};
static const char *const paths[] = {"/ws", "/binary", "/socket/websocket", "/cable"};
static const enum shootout_protocol protocols[] = {SHOOTOUT_JSON, SHOOTOUT_BINARY, SHOOTOUT_PHOENIX, SHOOTOUT_CABLE};

static const struct driver *driver_at(int i) {
  const struct driver *const drivers[] = {
      &driver_shootout_json, &driver_shootout_binary, &driver_shootout_phoenix, &driver_shootout_actioncable};
  return drivers[i];
}

/* A client of variant i that has just been established. */
static struct fixture *established(int i) {
  struct fixture *f = start(driver_at(i), urls[i], NULL);
  peer_upgrade(f, paths[i], "", NULL);
  switch (protocols[i]) {
  case SHOOTOUT_PHOENIX:
    assert_int_equal(peer_take(f), WS_TEXT);
    assert_string_equal(f->message, "{\"topic\":\"room:lobby\",\"event\":\"phx_join\",\"payload\":null,\"ref\":\"\"}");
    assert_int_equal(f->established, 0);
    peer_text(f, "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"ok\",\"response\":{}},"
                 "\"ref\":\"\"}");
    break;
  case SHOOTOUT_CABLE:
    assert_int_equal(peer_take(f), 0);
    peer_text(f, "{\"type\":\"ping\",\"message\":1}");
    peer_text(f, "{\"type\":\"welcome\"}");
    assert_int_equal(peer_take(f), WS_TEXT);
    assert_string_equal(f->message, "{\"command\":\"subscribe\",\"identifier\":" CHANNEL "}");
    assert_int_equal(f->established, 0);
    peer_text(f, "{\"identifier\":" CHANNEL ",\"type\":\"confirm_subscription\"}");
    break;
  default:
    peer_take(f);
    assert_int_equal(f->established, 0);
    peer_echo(f, protocols[i]);
  }
  assert_int_equal(f->established, 1);
  assert_int_equal(f->failed, 0);
  return f;
}

static void test_broadcast(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    struct fixture *f = established(i);
    uint8_t opcode = protocols[i] == SHOOTOUT_BINARY ? WS_BINARY : WS_TEXT;
    struct publish publish = publish_of(PUBLISH_TO_ALL, 41, 100);
    assert_int_equal(f->driver->publish(f->client, &publish), PUBLISH_WRITTEN);
    assert_int_equal(peer_take(f), opcode);
    struct shootout_message message;
    struct shootout_text text;
    uint8_t frame[4096];
    assert_true(shootout_read_request(protocols[i], (uint8_t *)f->message, f->message_len, &message));
    assert_int_equal(message.kind, SHOOTOUT_BROADCAST);
    assert_int_equal(shootout_padding(protocols[i], message.payload).len, 100);
    shootout_fan_out(&text, protocols[i], message.payload);
    shootout_put(frame, &text);
    peer_frame(f, opcode, frame, text.len);
    assert_int_equal(f->delivered, 1);
    assert_int_equal(f->acked, 0);
    assert_int_equal(f->payload_result, PAYLOAD_OK);
    assert_int_equal(f->payload.sender, INDEX);
    assert_int_equal(f->payload.sequence, 41);
    assert_int_equal(f->payload.written_ns, 6);
    shootout_answer(&text, protocols[i], SHOOTOUT_RESULT, &message);
    shootout_put(frame, &text);
    peer_frame(f, opcode, frame, text.len);
    assert_int_equal(f->delivered, 1);
    assert_int_equal(f->acked, 1);
    assert_int_equal(f->acked_code, 0);
    assert_int_equal(f->acked_token, publish.token);
    assert_true(f->run.bytes_sent > 100);
    stop(f);
  }
}

static void test_echo_is_a_delivery(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    struct fixture *f = established(i);
    struct publish publish = publish_of(PUBLISH_TO_SELF, 3, 80);
    assert_int_equal(f->driver->publish(f->client, &publish), PUBLISH_WRITTEN);
    peer_take(f);
    peer_echo(f, protocols[i]);
    assert_int_equal(f->delivered, 1);
    assert_int_equal(f->acked, 0);
    assert_int_equal(f->payload_result, PAYLOAD_OK);
    assert_int_equal(f->payload.sequence, 3);
    stop(f);
  }
}

/* Results that name another sender, another run or nothing of ours ack nothing. */
static void test_foreign_results(void **state) {
  (void)state;
  struct fixture *f = established(0);
  struct publish publish = publish_of(PUBLISH_TO_ALL, 1, 64);
  for (int i = 0; i < 3; i++) {
    char padding[65] = "12345", text[256];
    publish.payload.sender = i == 0 ? INDEX + 1 : INDEX;
    publish.payload.run_id = i == 1 ? 1 : RUN_ID;
    if (i < 2) payload_write(PAYLOAD_BARE, (uint8_t *)padding, &publish.payload);
    snprintf(text, sizeof text,
        "{\"listenerCount\":2,\"payload\":{\"padding\":\"%.64s\"},\"type\":\"broadcastResult\"}", padding);
    peer_text(f, text);
  }
  assert_int_equal(f->acked, 0);
  /* As jsoncpp prints it. */
  char padding[65] = "", text[256];
  payload_write(PAYLOAD_BARE, (uint8_t *)padding, &publish.payload);
  snprintf(text, sizeof text,
      "{\n\t\"listenCount\" : 2,\n\t\"payload\" : \n\t{\n\t\t\"padding\" : \"%s\",\n\t\t\"sendTime\" : \"1\"\n\t},\n"
      "\t\"type\" : \"broadcastResult\"\n}\n",
      padding);
  peer_text(f, text);
  assert_int_equal(f->acked, 1);
  peer_text(f, "{\"type\":\"broadcast\",\"payload\":{\"sendTime\":\"1\"}}");
  assert_int_equal(f->delivered, 1);
  assert_int_equal(f->payload_result, PAYLOAD_FOREIGN);
  peer_text(f, "{\"type\":\"error\",\"payload\":\"ERROR: unknown message type\"}");
  peer_text(f, "{\"type\":\"something else\",\"payload\":{}}");
  assert_int_equal(f->failed, 0);
  stop(f);
}

static void test_only_the_probe_establishes(void **state) {
  (void)state;
  struct fixture *f = start(&driver_shootout_json, urls[0], NULL);
  struct publish publish = publish_of(PUBLISH_TO_ALL, 1, 64);
  assert_int_equal(f->driver->publish(f->client, &publish), PUBLISH_BLOCKED);
  peer_upgrade(f, "/ws", "", NULL);
  assert_int_equal(peer_take(f), WS_TEXT);
  peer_text(f, "{\"type\":\"broadcast\",\"payload\":{\"padding\":\"x\"}}");
  peer_text(f, "{\"type\":\"echo\",\"payload\":{\"padding\":\"muster-probe-00000008\"}}");
  assert_int_equal(f->established, 0);
  assert_int_equal(f->delivered, 0);
  assert_int_equal(f->driver->publish(f->client, &publish), PUBLISH_BLOCKED);
  peer_text(f, "{\"type\":\"echo\",\"payload\":{\"padding\":\"muster-probe-00000007\"}}");
  assert_int_equal(f->established, 1);
  stop(f);
}

static void test_refusals(void **state) {
  (void)state;
  struct fixture *f = start(&driver_shootout_phoenix, urls[2], NULL);
  peer_upgrade(f, paths[2], "", NULL);
  peer_text(f, "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"error\",\"response\":"
               "{\"reason\":\"unmatched topic\"}},\"ref\":\"\"}");
  assert_int_equal(f->failed_code, 1);
  assert_non_null(f->driver->code_text(1));
  assert_null(f->driver->code_text(2));
  stop(f);

  f = start(&driver_shootout_actioncable, urls[3], NULL);
  peer_upgrade(f, paths[3], "Sec-WebSocket-Protocol: actioncable-v1-json\r\n", NULL);
  peer_text(f, "{\"type\":\"welcome\"}");
  peer_text(f, "{\"identifier\":" CHANNEL ",\"type\":\"reject_subscription\"}");
  assert_int_equal(f->failed_code, 1);
  stop(f);

  f = start(&driver_shootout_actioncable, urls[3], NULL);
  peer_upgrade(f, paths[3], "", NULL);
  peer_text(f, "{\"type\":\"disconnect\",\"reason\":\"unauthorized\",\"reconnect\":false}");
  assert_int_equal(f->failed_code, CAUSE_CLOSED_EARLY);
  stop(f);

  /* A refused publish is told by its ref. */
  f = established(2);
  struct publish publish = publish_of(PUBLISH_TO_ALL, 9, 64);
  f->driver->publish(f->client, &publish);
  peer_text(f, "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"error\",\"response\":{}},"
               "\"ref\":\"19\"}");
  assert_int_equal(f->acked, 1);
  assert_int_equal(f->acked_token, 19);
  assert_int_equal(f->acked_code, 1);
  peer_text(f, "{\"topic\":\"room:lobby\",\"event\":\"phx_error\",\"payload\":{},\"ref\":null}");
  assert_int_equal(f->failed_code, CAUSE_KICKED);
  stop(f);
}

static void test_broken_peers(void **state) {
  (void)state;
  static const char *const garbage[] = {"{", "[]", "x", "{}", ""};
  for (int i = 0; i < 4; i++) {
    for (size_t k = 0; k < sizeof garbage / sizeof *garbage; k++) {
      struct fixture *f = established(i);
      peer_text(f, garbage[k]);
      bool is_object = k == 3 && (protocols[i] == SHOOTOUT_JSON || protocols[i] == SHOOTOUT_CABLE);
      assert_int_equal(f->failed, !is_object);
      if (!is_object) assert_int_equal(f->failed_code, CAUSE_PROTOCOL);
      stop(f);
    }
    struct fixture *f = established(i);
    peer_frame(f, WS_CLOSE, "\x03\xe9", 2);
    assert_int_equal(f->failed_code, CAUSE_CLOSED_BY_PEER);
    stop(f);
  }
  struct fixture *f = start(&driver_shootout_json, urls[0], NULL);
  peer_upgrade(f, "/ws", "Sec-WebSocket-Protocol: chat\r\n", NULL);
  assert_int_equal(f->failed_code, CAUSE_UPGRADE);
  stop(f);
  f = start(&driver_shootout_json, urls[0], NULL);
  peer_write(f, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 45);
  assert_int_equal(f->failed_code, CAUSE_UPGRADE);
  stop(f);
}

static void test_keep_alive(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    struct fixture *f = established(i);
    f->driver->tick(f->client, 1);
    assert_int_equal(peer_take(f), protocols[i] == SHOOTOUT_PHOENIX ? WS_TEXT : WS_PING);
    peer_frame(f, WS_PING, "hello", 5);
    assert_int_equal(peer_take(f), WS_PONG);
    assert_string_equal(f->message, "hello");
    for (int k = 0; k < 3; k++)
      f->driver->tick(f->client, 2);
    assert_int_equal(f->failed, 0);
    f->driver->tick(f->client, 3);
    assert_int_equal(f->failed_code, CAUSE_KEEP_ALIVE);
    stop(f);
  }
}

static void test_good_bye(void **state) {
  (void)state;
  struct fixture *f = established(1);
  f->driver->closing(f->client);
  assert_int_equal(peer_take(f), WS_CLOSE);
  stop(f);
}

static void test_origin_and_path(void **state) {
  (void)state;
  char origin[256];
  struct fixture *f = start(&driver_shootout_json, "ws+json://127.0.0.1", NULL);
  assert_int_equal(f->run.settings.url.port, 3000);
  peer_upgrade(f, "/ws", "", origin);
  assert_string_equal(origin, "http://127.0.0.1:3000");
  stop(f);
  f = start(&driver_shootout_phoenix, "ws+phoenix://[::1]/", "https://example.org");
  assert_int_equal(f->run.settings.url.port, 4000);
  peer_upgrade(f, "/", "", origin);
  assert_string_equal(origin, "https://example.org");
  stop(f);
  f = start(&driver_shootout_binary, "wss+binary://[::1]:1/a?b=c", NULL);
  assert_non_null(f->run.tls);
  peer_upgrade(f, "/a?b=c", "", origin);
  assert_string_equal(origin, "https://[::1]:1");
  stop(f);
  struct fixture bad = {.driver = &driver_shootout_json};
  struct err err = {0};
  assert_int_equal(prepare(&bad, "ws+json://127.0.0.1", "a\r\nX: y", &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "--origin"));
  char long_origin[1024];
  memset(long_origin, 'a', sizeof long_origin - 1);
  long_origin[sizeof long_origin - 1] = '\0';
  assert_int_equal(prepare(&bad, "ws+json://127.0.0.1", long_origin, &err), STATUS_USAGE);
  assert_null(bad.run.population);
}

static void test_registry(void **state) {
  (void)state;
  static const char *const schemes[] = {"ws+json", "ws+binary", "ws+phoenix", "ws+cable"};
  for (int i = 0; i < 4; i++) {
    char secure[16];
    snprintf(secure, sizeof secure, "wss%s", schemes[i] + 2);
    assert_ptr_equal(driver_find(schemes[i]), driver_at(i));
    assert_ptr_equal(driver_find(secure), driver_at(i));
    assert_ptr_equal(driver_find(driver_at(i)->name), driver_at(i));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_broadcast),
      cmocka_unit_test(test_echo_is_a_delivery),
      cmocka_unit_test(test_foreign_results),
      cmocka_unit_test(test_only_the_probe_establishes),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_broken_peers),
      cmocka_unit_test(test_keep_alive),
      cmocka_unit_test(test_good_bye),
      cmocka_unit_test(test_origin_and_path),
      cmocka_unit_test(test_registry),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
