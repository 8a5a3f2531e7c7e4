/* The shootout drivers against a scripted peer: a socket pair, with the driver's stream on one end and bytes that the
 * test writes and reads on the other. */
#include "wire/shootout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/driver_rig.h"

#define CHANNEL "\"{\\\"channel\\\":\\\"BenchmarkChannel\\\"}\""

static struct rig *start(const struct driver *driver, const char *url, const char *origin) {
  const struct driver_settings settings = {.origin = origin};
  return rig_start(driver, driver->prepare, url, &settings);
}

static void stop(struct rig *f) {
  assert_int_equal(f->wakes, 0);
  rig_stop(f);
}

/* --- the peer --- */

/* The client's next frame; the message is in f->text. Returns the opcode, 0 when there is none. */
static uint8_t peer_take(struct rig *f) {
  rig_read(f);
  struct ws ws;
  struct ws_event event;
  ws_init(&ws, WS_SERVER, 65536);
  size_t used = ws_read(&ws, f->in, f->in_len, &event);
  assert_int_not_equal(event.kind, WS_EVENT_ERROR);
  uint8_t opcode = event.kind == WS_EVENT_NONE ? 0 : event.opcode;
  f->text_len = opcode ? event.len : 0;
  if (f->text_len) memcpy(f->text, event.data, event.len);
  f->text[f->text_len] = '\0';
  ws_free(&ws);
  rig_drop(f, used);
  return opcode;
}

/* Answers the upgrade, which must be of this path; returns its Origin in out. */
static void peer_upgrade(struct rig *f, const char *path, const char *extra, char out[256]) {
  struct http_head head;
  size_t used, len;
  char answer[512];
  rig_read(f);
  assert_int_equal(http_read_request(f->in, f->in_len, &head, &used, NULL), HTTP_COMPLETE);
  assert_true(view_is(head.target, path));
  struct view origin = http_field(&head, "origin");
  if (out) snprintf(out, 256, "%.*s", (int)origin.len, (const char *)origin.data);
  bool cable = f->run.driver == &driver_shootout_actioncable;
  assert_int_equal(http_has_token(&head, "sec-websocket-protocol", "actioncable-v1-json"), cable);
  assert_int_equal(ws_answer_request_with(&head, extra, answer, sizeof(answer), &len, NULL), STATUS_OK);
  f->in_len = 0;
  rig_write(f, answer, len);
}

/* Sends the client's own request back, as a server's echo. */
static void peer_echo(struct rig *f, enum shootout_protocol protocol) {
  struct shootout_message message;
  struct shootout_text text;
  uint8_t frame[8192], copy[4096];
  memcpy(copy, f->text, f->text_len);
  assert_true(shootout_read_request(protocol, copy, f->text_len, &message));
  assert_int_equal(message.kind, SHOOTOUT_ECHO);
  shootout_answer(&text, protocol, SHOOTOUT_ECHO, &message);
  shootout_put(frame, &text);
  rig_write_frame(f, protocol == SHOOTOUT_BINARY ? WS_BINARY : WS_TEXT, frame, text.len);
}

static struct publish publish_of(enum publish_to to, uint32_t sequence, uint32_t size) {
  struct publish publish = {.to = to,
      .payload = {.run_id = RIG_RUN_ID,
          .scheduled_ns = 5,
          .written_ns = 6,
          .sender = RIG_INDEX,
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
static struct rig *established(int i) {
  struct rig *f = start(driver_at(i), urls[i], NULL);
  peer_upgrade(f, paths[i], "", NULL);
  switch (protocols[i]) {
  case SHOOTOUT_PHOENIX:
    assert_int_equal(peer_take(f), WS_TEXT);
    assert_string_equal(f->text, "{\"topic\":\"room:lobby\",\"event\":\"phx_join\",\"payload\":null,\"ref\":\"\"}");
    assert_int_equal(f->established, 0);
    rig_write_text(f,
        "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"ok\",\"response\":{}},"
        "\"ref\":\"\"}");
    break;
  case SHOOTOUT_CABLE:
    assert_int_equal(peer_take(f), 0);
    rig_write_text(f, "{\"type\":\"ping\",\"message\":1}");
    rig_write_text(f, "{\"type\":\"welcome\"}");
    assert_int_equal(peer_take(f), WS_TEXT);
    assert_string_equal(f->text, "{\"command\":\"subscribe\",\"identifier\":" CHANNEL "}");
    assert_int_equal(f->established, 0);
    rig_write_text(f, "{\"identifier\":" CHANNEL ",\"type\":\"confirm_subscription\"}");
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
    struct rig *f = established(i);
    uint8_t opcode = protocols[i] == SHOOTOUT_BINARY ? WS_BINARY : WS_TEXT;
    struct publish publish = publish_of(PUBLISH_TO_ALL, 41, 100);
    assert_int_equal(f->run.driver->publish(f->client, &publish), PUBLISH_WRITTEN);
    assert_int_equal(peer_take(f), opcode);
    struct shootout_message message;
    struct shootout_text text;
    uint8_t frame[4096];
    assert_true(shootout_read_request(protocols[i], (uint8_t *)f->text, f->text_len, &message));
    assert_int_equal(message.kind, SHOOTOUT_BROADCAST);
    assert_int_equal(shootout_padding(protocols[i], message.payload).len, 100);
    shootout_fan_out(&text, protocols[i], message.payload);
    shootout_put(frame, &text);
    rig_write_frame(f, opcode, frame, text.len);
    assert_int_equal(f->delivered, 1);
    assert_int_equal(f->acked, 0);
    assert_int_equal(f->payload_result, PAYLOAD_OK);
    assert_int_equal(f->payload.sender, RIG_INDEX);
    assert_int_equal(f->payload.sequence, 41);
    assert_int_equal(f->payload.written_ns, 6);
    shootout_answer(&text, protocols[i], SHOOTOUT_RESULT, &message);
    shootout_put(frame, &text);
    rig_write_frame(f, opcode, frame, text.len);
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
    struct rig *f = established(i);
    struct publish publish = publish_of(PUBLISH_TO_SELF, 3, 80);
    assert_int_equal(f->run.driver->publish(f->client, &publish), PUBLISH_WRITTEN);
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
  struct rig *f = established(0);
  struct publish publish = publish_of(PUBLISH_TO_ALL, 1, 64);
  for (int i = 0; i < 3; i++) {
    char padding[65] = "12345", text[256];
    publish.payload.sender = i == 0 ? RIG_INDEX + 1 : RIG_INDEX;
    publish.payload.run_id = i == 1 ? 1 : RIG_RUN_ID;
    if (i < 2) payload_write(PAYLOAD_BARE, (uint8_t *)padding, &publish.payload);
    snprintf(text, sizeof text,
        "{\"listenerCount\":2,\"payload\":{\"padding\":\"%.64s\"},\"type\":\"broadcastResult\"}", padding);
    rig_write_text(f, text);
  }
  assert_int_equal(f->acked, 0);
  /* As jsoncpp prints it. */
  char padding[65] = "", text[256];
  payload_write(PAYLOAD_BARE, (uint8_t *)padding, &publish.payload);
  snprintf(text, sizeof text,
      "{\n\t\"listenCount\" : 2,\n\t\"payload\" : \n\t{\n\t\t\"padding\" : \"%s\",\n\t\t\"sendTime\" : \"1\"\n\t},\n"
      "\t\"type\" : \"broadcastResult\"\n}\n",
      padding);
  rig_write_text(f, text);
  assert_int_equal(f->acked, 1);
  rig_write_text(f, "{\"type\":\"broadcast\",\"payload\":{\"sendTime\":\"1\"}}");
  assert_int_equal(f->delivered, 1);
  assert_int_equal(f->payload_result, PAYLOAD_FOREIGN);
  rig_write_text(f, "{\"type\":\"error\",\"payload\":\"ERROR: unknown message type\"}");
  rig_write_text(f, "{\"type\":\"something else\",\"payload\":{}}");
  assert_int_equal(f->failed, 0);
  stop(f);
}

static void test_only_the_probe_establishes(void **state) {
  (void)state;
  struct rig *f = start(&driver_shootout_json, urls[0], NULL);
  struct publish publish = publish_of(PUBLISH_TO_ALL, 1, 64);
  assert_int_equal(f->run.driver->publish(f->client, &publish), PUBLISH_BLOCKED);
  peer_upgrade(f, "/ws", "", NULL);
  assert_int_equal(peer_take(f), WS_TEXT);
  rig_write_text(f, "{\"type\":\"broadcast\",\"payload\":{\"padding\":\"x\"}}");
  rig_write_text(f, "{\"type\":\"echo\",\"payload\":{\"padding\":\"muster-probe-00000008\"}}");
  assert_int_equal(f->established, 0);
  assert_int_equal(f->delivered, 0);
  assert_int_equal(f->run.driver->publish(f->client, &publish), PUBLISH_BLOCKED);
  rig_write_text(f, "{\"type\":\"echo\",\"payload\":{\"padding\":\"muster-probe-00000007\"}}");
  assert_int_equal(f->established, 1);
  stop(f);
}

static void test_refusals(void **state) {
  (void)state;
  struct rig *f = start(&driver_shootout_phoenix, urls[2], NULL);
  peer_upgrade(f, paths[2], "", NULL);
  rig_write_text(f, "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"error\",\"response\":"
                    "{\"reason\":\"unmatched topic\"}},\"ref\":\"\"}");
  assert_int_equal(f->failed_code, 1);
  assert_non_null(f->run.driver->code_text(1));
  assert_null(f->run.driver->code_text(2));
  stop(f);

  f = start(&driver_shootout_actioncable, urls[3], NULL);
  peer_upgrade(f, paths[3], "Sec-WebSocket-Protocol: actioncable-v1-json\r\n", NULL);
  rig_write_text(f, "{\"type\":\"welcome\"}");
  rig_write_text(f, "{\"identifier\":" CHANNEL ",\"type\":\"reject_subscription\"}");
  assert_int_equal(f->failed_code, 1);
  stop(f);

  f = start(&driver_shootout_actioncable, urls[3], NULL);
  peer_upgrade(f, paths[3], "", NULL);
  rig_write_text(f, "{\"type\":\"disconnect\",\"reason\":\"unauthorized\",\"reconnect\":false}");
  assert_int_equal(f->failed_code, CAUSE_CLOSED_EARLY);
  stop(f);

  /* A refused publish is told by its ref. */
  f = established(2);
  struct publish publish = publish_of(PUBLISH_TO_ALL, 9, 64);
  f->run.driver->publish(f->client, &publish);
  rig_write_text(f,
      "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"error\",\"response\":{}},"
      "\"ref\":\"19\"}");
  assert_int_equal(f->acked, 1);
  assert_int_equal(f->acked_token, 19);
  assert_int_equal(f->acked_code, 1);
  rig_write_text(f, "{\"topic\":\"room:lobby\",\"event\":\"phx_error\",\"payload\":{},\"ref\":null}");
  assert_int_equal(f->failed_code, CAUSE_KICKED);
  stop(f);
}

static void test_broken_peers(void **state) {
  (void)state;
  static const char *const garbage[] = {"{", "[]", "x", "{}", ""};
  for (int i = 0; i < 4; i++) {
    for (size_t k = 0; k < sizeof garbage / sizeof *garbage; k++) {
      struct rig *f = established(i);
      rig_write_text(f, garbage[k]);
      bool is_object = k == 3 && (protocols[i] == SHOOTOUT_JSON || protocols[i] == SHOOTOUT_CABLE);
      assert_int_equal(f->failed, !is_object);
      if (!is_object) assert_int_equal(f->failed_code, CAUSE_PROTOCOL);
      stop(f);
    }
    struct rig *f = established(i);
    rig_write_frame(f, WS_CLOSE, "\x03\xe9", 2);
    assert_int_equal(f->failed_code, CAUSE_CLOSED_BY_PEER);
    stop(f);
  }
  struct rig *f = start(&driver_shootout_json, urls[0], NULL);
  peer_upgrade(f, "/ws", "Sec-WebSocket-Protocol: chat\r\n", NULL);
  assert_int_equal(f->failed_code, CAUSE_UPGRADE);
  stop(f);
  f = start(&driver_shootout_json, urls[0], NULL);
  rig_write(f, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", 45);
  assert_int_equal(f->failed_code, CAUSE_UPGRADE);
  stop(f);
}

static void test_keep_alive(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    struct rig *f = established(i);
    f->run.driver->tick(f->client, 1);
    assert_int_equal(peer_take(f), protocols[i] == SHOOTOUT_PHOENIX ? WS_TEXT : WS_PING);
    rig_write_frame(f, WS_PING, "hello", 5);
    assert_int_equal(peer_take(f), WS_PONG);
    assert_string_equal(f->text, "hello");
    for (int k = 0; k < 3; k++)
      f->run.driver->tick(f->client, 2);
    assert_int_equal(f->failed, 0);
    f->run.driver->tick(f->client, 3);
    assert_int_equal(f->failed_code, CAUSE_KEEP_ALIVE);
    stop(f);
  }
}

static void test_good_bye(void **state) {
  (void)state;
  struct rig *f = established(1);
  f->run.driver->closing(f->client);
  assert_int_equal(peer_take(f), WS_CLOSE);
  stop(f);
}

static void test_origin_and_path(void **state) {
  (void)state;
  char origin[256];
  struct rig *f = start(&driver_shootout_json, "ws+json://127.0.0.1", NULL);
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
  struct driver_run bad;
  struct err err = {0};
  struct driver_settings settings = {.origin = "a\r\nX: y"};
  const struct driver *json = &driver_shootout_json;
  assert_int_equal(rig_prepare(&bad, json, json->prepare, "ws+json://127.0.0.1", &settings, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "--origin"));
  char long_origin[1024];
  memset(long_origin, 'a', sizeof long_origin - 1);
  long_origin[sizeof long_origin - 1] = '\0';
  settings.origin = long_origin;
  assert_int_equal(rig_prepare(&bad, json, json->prepare, "ws+json://127.0.0.1", &settings, &err), STATUS_USAGE);
  assert_null(bad.population);
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
