/* Engine.IO 4 and Socket.IO 5: byte-exact examples of the two protocols' documentation. */
#include "wire/socketio.h"

#include "wire/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_view(struct view got, const char *want) {
  if (!view_is(got, want)) fail_msg("got \"%.*s\", want \"%s\"", (int)got.len, (const char *)got.data, want);
}

static struct view engine_data(const char *text, enum engineio_type type) {
  struct engineio_packet packet;
  assert_true(engineio_read(view_str(text), &packet));
  assert_int_equal(packet.type, type);
  return packet.data;
}

/* The Socket.IO packet in an Engine.IO message. */
static struct socketio_packet packet_of(const char *text) {
  struct socketio_packet packet;
  if (!socketio_read(engine_data(text, ENGINEIO_MESSAGE), &packet)) fail_msg("%s is no packet", text);
  return packet;
}

static void test_engine(void **state) {
  (void)state;
  struct engineio_open open;
  struct view data =
      engine_data("0{\"sid\":\"lv_VI97HAXpY6yYWAAAC\",\"upgrades\":[\"websocket\"],\"pingInterval\":25000,"
                  "\"pingTimeout\":20000,\"maxPayload\":1000000}",
          ENGINEIO_OPEN);
  assert_true(engineio_read_open(data, &open));
  assert_int_equal(open.ping_interval_ms, 25000);
  assert_int_equal(open.ping_timeout_ms, 20000);
  assert_int_equal(open.max_payload, 1000000);
  assert_int_equal(engine_data("2", ENGINEIO_PING).len, 0);
  assert_view(engine_data("2probe", ENGINEIO_PING), "probe");
  assert_view(engine_data("4hello", ENGINEIO_MESSAGE), "hello");
  assert_int_equal(engine_data("1", ENGINEIO_CLOSE).len, 0);
  assert_int_equal(engine_data("6", ENGINEIO_NOOP).len, 0);

  struct engineio_packet packet;
  assert_false(engineio_read(view_str(""), &packet));
  assert_false(engineio_read(view_str("7"), &packet));
  assert_false(engineio_read(view_str("x"), &packet));
  assert_true(engineio_read_open(view_str("{\"sid\":\"a\"}"), &open));
  assert_int_equal(open.max_payload, 0);
  assert_false(engineio_read_open(view_str("{\"pingInterval\":25000}"), &open));
  assert_false(engineio_read_open(view_str("{\"sid\":\"a\",\"pingInterval\":-1}"), &open));
  assert_false(engineio_read_open(view_str("{\"sid\":\"a\",\"pingInterval\":1e3}"), &open));
  assert_false(engineio_read_open(view_str("{\"sid\":\"a\",\"maxPayload\":9999999999999999999}"), &open));
  assert_false(engineio_read_open(view_str("{\"sid\":\"a\""), &open));
}

static void test_connection(void **state) {
  (void)state;
  struct socketio_packet p = packet_of("40{\"sid\":\"oSO0OpakMV_3jnilAAAA\"}");
  assert_int_equal(p.type, SOCKETIO_CONNECT);
  assert_view(p.namespace, "/");
  assert_false(p.has_id);
  assert_view(p.data, "{\"sid\":\"oSO0OpakMV_3jnilAAAA\"}");
  p = packet_of("40/admin,{\"sid\":\"oSO0OpakMV_3jnilAAAA\"}");
  assert_view(p.namespace, "/admin");
  p = packet_of("44{\"message\":\"Not authorized\"}");
  assert_int_equal(p.type, SOCKETIO_CONNECT_ERROR);
  assert_view(socketio_read_error(p.data), "Not authorized");
  assert_null(socketio_read_error(view_str("\"Not authorized\"")).data);
  assert_null(socketio_read_error(view_str("{\"message\":5}")).data);
  p = packet_of("41/admin,");
  assert_int_equal(p.type, SOCKETIO_DISCONNECT);
  assert_view(p.namespace, "/admin");
  assert_view(packet_of("41/admin").namespace, "/admin");
}

static void test_events(void **state) {
  (void)state;
  struct view name, content;
  struct socketio_packet p = packet_of("42[\"foo\"]");
  assert_int_equal(p.type, SOCKETIO_EVENT);
  assert_true(socketio_read_event(p.data, &name, &content));
  assert_true(scan_is(name, "foo"));
  assert_null(content.data);

  p = packet_of("42/admin,12[\"foo\",\"bar\",{\"a\":1}]");
  assert_view(p.namespace, "/admin");
  assert_true(p.has_id);
  assert_int_equal(p.id, 12);
  assert_true(socketio_read_event(p.data, &name, &content));
  assert_view(content, "bar");

  p = packet_of("451-[\"baz\",{\"_placeholder\":true,\"num\":0}]");
  assert_int_equal(p.type, SOCKETIO_BINARY_EVENT);
  assert_int_equal(p.attachments, 1);
  assert_true(socketio_read_event(p.data, &name, &content));
  assert_null(content.data);
  p = packet_of("452-/admin,13[\"baz\",{\"_placeholder\":true,\"num\":0},{\"_placeholder\":true,\"num\":1}]");
  assert_int_equal(p.attachments, 2);
  assert_view(p.namespace, "/admin");
  assert_int_equal(p.id, 13);

  static const char *const wrong[] = {"", "[]", "[1]", "[\"a\"", "[\"a\",]", "{\"a\":1}", "[\"a\"] x"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    if (socketio_read_event(view_str(wrong[i]), &name, &content)) fail_msg("%s is no event", wrong[i]);
  }
}

static void test_hostile(void **state) {
  (void)state;
  static const char *const wrong[] = {"", "7", "a", "5[\"a\"]", "5-[\"a\"]", "565-[\"a\"]", "51",
      "5999999999999999999999-", "24294967296[\"a\"]", "299999999999999999999999[\"a\"]"};
  struct socketio_packet packet;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    if (socketio_read(view_str(wrong[i]), &packet)) fail_msg("%s is no packet", wrong[i]);
  }
  char namespace[SOCKETIO_NAMESPACE_MAX + 4] = "2/";
  memset(namespace + 2, 'n', SOCKETIO_NAMESPACE_MAX);
  assert_false(socketio_read(view_of(namespace, SOCKETIO_NAMESPACE_MAX + 2), &packet));
}

static void test_acknowledgements(void **state) {
  (void)state;
  struct socketio_packet p = packet_of("43/admin,13[\"bar\"]");
  assert_int_equal(p.type, SOCKETIO_ACK);
  assert_int_equal(p.id, 13);
  p = packet_of("461-15[{\"_placeholder\":true,\"num\":0}]");
  assert_int_equal(p.type, SOCKETIO_BINARY_ACK);
  assert_int_equal(p.id, 15);

  static const struct {
    const char *text;
    int32_t code;
  } acks[] = {{"[]", 0}, {"[null]", 0}, {"[true]", 0}, {"[{}]", 0}, {"[{\"status\":\"ok\"}]", 0},
      {"[{\"status\":\"ok\",\"code\":7,\"error\":null}, 5]", 0}, {"[\"bar\"]", SOCKETIO_REFUSED},
      {"[false]", SOCKETIO_REFUSED}, {"[5]", SOCKETIO_REFUSED}, {"[{\"status\":\"error\"}]", SOCKETIO_REFUSED},
      {"[{\"status\":\"error\",\"code\":429}]", 429}, {"[{\"error\":\"no\",\"code\":-3}]", SOCKETIO_REFUSED},
      {"[{\"code\":413,\"error\":{}}]", 413}, {"[{\"status\":200}]", SOCKETIO_REFUSED}};
  int32_t code;
  for (size_t i = 0; i < sizeof acks / sizeof acks[0]; i++) {
    assert_true(socketio_read_ack(view_str(acks[i].text), &code));
    if (code != acks[i].code) fail_msg("%s: %d", acks[i].text, code);
  }
  static const char *const wrong[] = {"", "{}", "[", "[{]", "[null,", "[null] 5"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    if (socketio_read_ack(view_str(wrong[i]), &code)) fail_msg("%s is no acknowledgement", wrong[i]);
  }
}

static void assert_written(const uint8_t *out, const uint8_t *end, const char *want) {
  assert_view(view_of(out, (size_t)(end - out)), want);
}

static void test_writing(void **state) {
  (void)state;
  uint8_t out[256];
  struct view root = view_str("/"), admin = view_str("/admin");
  assert_written(out, socketio_write_connect(out, root, (struct view){0}), "40");
  assert_written(
      out, socketio_write_connect(out, admin, view_str("{\"token\":\"123\"}")), "40/admin,{\"token\":\"123\"}");
  assert_written(out, socketio_write_disconnect(out, root), "41");
  assert_written(out, socketio_write_disconnect(out, admin), "41/admin,");
  assert_written(out, socketio_write_ack(out, root, 12), "4312[]");
  assert_written(out, socketio_write_ack(out, admin, 0), "43/admin,0[]");

  struct socketio_event event = {.namespace = root, .name = view_str("join")};
  uint8_t *end = socketio_write_event(out, &event);
  memcpy(end, "room", 4);
  assert_written(out, socketio_event_end(end + 4), "42[\"join\",\"room\"]");
  event = (struct socketio_event){admin, view_str("publish"), view_str("room"), true, UINT32_MAX};
  end = socketio_write_event(out, &event);
  memcpy(end, "text", 4);
  end = socketio_event_end(end + 4);
  assert_written(out, end, "42/admin,4294967295[\"publish\",\"room\",\"text\"]");
  size_t texts = strlen("/admin") + strlen("publish") + strlen("room") + strlen("text");
  assert_true((size_t)(end - out) <= texts + SOCKETIO_EVENT_FIXED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_engine),
      cmocka_unit_test(test_connection),
      cmocka_unit_test(test_events),
      cmocka_unit_test(test_hostile),
      cmocka_unit_test(test_acknowledgements),
      cmocka_unit_test(test_writing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
