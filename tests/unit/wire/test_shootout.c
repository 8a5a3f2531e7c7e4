/* The byte-exact vectors of the fact sheet (shared/protocols/shootout.md section 1), both ways. */
#include "wire/shootout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TIME UINT64_C(1476547890123456789)
#define TIME_TEXT "1476547890123456789"
#define CHANNEL "\"{\\\"channel\\\":\\\"BenchmarkChannel\\\"}\""

static uint8_t bytes[4096];

/* The text with the hole filled from "1234567890...", as the suite pads. */
static struct view put(const struct shootout_text *text) {
  assert_true(text->count <= SHOOTOUT_PIECES_MAX);
  assert_true(text->len <= sizeof bytes);
  memset(bytes, 0xee, sizeof bytes);
  uint8_t *hole = shootout_put(bytes, text);
  for (uint32_t i = 0; i < text->count; i++) {
    if (text->piece[i].data) continue;
    assert_non_null(hole);
    for (size_t k = 0; k < text->piece[i].len; k++)
      hole[k] = (uint8_t) "1234567890"[k % 10];
  }
  if (text->len < sizeof bytes) assert_int_equal(bytes[text->len], 0xee);
  return view_of(bytes, text->len);
}

static struct view request_of(enum shootout_protocol protocol, enum shootout_kind kind, size_t padding, uint32_t ref) {
  static struct shootout_text text;
  struct shootout_request request = {
      .kind = kind, .send_time_ns = TIME, .padding_len = padding, .ref = ref, .has_ref = ref != 0};
  shootout_request(&text, protocol, &request);
  return put(&text);
}

static void assert_text(struct view got, const char *want) {
  if (!view_is(got, want)) fail_msg("got %.*s\nwant %s", (int)got.len, (const char *)got.data, want);
}

static struct shootout_message read_request(enum shootout_protocol protocol, const char *text) {
  static uint8_t copy[4096];
  struct shootout_message message;
  size_t len = strlen(text);
  memcpy(copy, text, len);
  if (!shootout_read_request(protocol, copy, len, &message)) fail_msg("refused: %s", text);
  return message;
}

static struct shootout_message read_reply(enum shootout_protocol protocol, const char *text) {
  struct shootout_message message;
  if (!shootout_read_reply(protocol, (const uint8_t *)text, strlen(text), &message)) fail_msg("refused: %s", text);
  return message;
}

static void test_json_vectors(void **state) {
  (void)state;
  assert_text(request_of(SHOOTOUT_JSON, SHOOTOUT_ECHO, 0, 0),
      "{\"type\":\"echo\",\"payload\":{\"sendTime\":\"" TIME_TEXT "\"}}");
  assert_text(request_of(SHOOTOUT_JSON, SHOOTOUT_BROADCAST, 13, 0),
      "{\"type\":\"broadcast\",\"payload\":{\"sendTime\":\"" TIME_TEXT "\",\"padding\":\"1234567890123\"}}");
  assert_int_equal(request_of(SHOOTOUT_JSON, SHOOTOUT_ECHO, 200, 0).len, 273);
  struct shootout_message message =
      read_request(SHOOTOUT_JSON, "{\"type\":\"broadcast\",\"payload\":{\"sendTime\":\"1\"}}");
  assert_int_equal(message.kind, SHOOTOUT_BROADCAST);
  struct shootout_text text;
  shootout_fan_out(&text, SHOOTOUT_JSON, message.payload);
  assert_text(put(&text), "{\"type\":\"broadcast\",\"payload\":{\"sendTime\":\"1\"}}");
  shootout_answer(&text, SHOOTOUT_JSON, SHOOTOUT_RESULT, &message);
  assert_text(put(&text), "{\"type\":\"broadcastResult\",\"payload\":{\"sendTime\":\"1\"}}");
  shootout_answer(&text, SHOOTOUT_JSON, SHOOTOUT_ECHO, &message);
  assert_text(put(&text), "{\"type\":\"echo\",\"payload\":{\"sendTime\":\"1\"}}");
}

/* Lengths of the table in section 1.2: a 19-digit time without and with 200 characters of padding. */
static void test_json_sizes(void **state) {
  (void)state;
  static const size_t want[3][2] = {{60, 273}, {65, 278}, {71, 284}};
  for (int long_one = 0; long_one < 2; long_one++) {
    uint8_t copy[512];
    struct view sent = request_of(SHOOTOUT_JSON, SHOOTOUT_BROADCAST, long_one ? 200 : 0, 0);
    memcpy(copy, sent.data, sent.len);
    struct shootout_message message;
    assert_true(shootout_read_request(SHOOTOUT_JSON, copy, sent.len, &message));
    struct shootout_text text;
    shootout_answer(&text, SHOOTOUT_JSON, SHOOTOUT_ECHO, &message);
    assert_int_equal(text.len, want[0][long_one]);
    shootout_fan_out(&text, SHOOTOUT_JSON, message.payload);
    assert_int_equal(text.len, want[1][long_one]);
    shootout_answer(&text, SHOOTOUT_JSON, SHOOTOUT_RESULT, &message);
    assert_int_equal(text.len, want[2][long_one]);
  }
}

static void test_json_readings(void **state) {
  (void)state;
  /* As a pretty printer writes it, with a count, in another order. */
  struct shootout_message message =
      read_reply(SHOOTOUT_JSON, "{\n\t\"listenCount\" : 4,\n\t\"payload\" : \n\t{\n\t\t\"padding\" : "
                                "\"abc\",\n\t\t\"sendTime\" : \"12\"\n\t},\n\t"
                                "\"type\" : \"broadcastResult\"\n}\n");
  assert_int_equal(message.kind, SHOOTOUT_RESULT);
  assert_text(shootout_padding(SHOOTOUT_JSON, message.payload), "abc");
  assert_int_equal(read_reply(SHOOTOUT_JSON, "{\"type\":\"error\",\"payload\":\"ERROR: unknown message type\"}").kind,
      SHOOTOUT_ERROR);
  assert_int_equal(read_request(SHOOTOUT_JSON, "{\"type\":\"nonsense\",\"payload\":1}").kind, SHOOTOUT_UNKNOWN);
  assert_int_equal(read_request(SHOOTOUT_JSON, "{\"type\":\"echo\"}").kind, SHOOTOUT_UNKNOWN);
  assert_int_equal(read_request(SHOOTOUT_JSON, "{\"type\":1,\"payload\":1}").kind, SHOOTOUT_UNKNOWN);
  assert_int_equal(read_request(SHOOTOUT_JSON, "{}").kind, SHOOTOUT_UNKNOWN);
  assert_text(read_request(SHOOTOUT_JSON, "{\"payload\": [1, 2],\"type\":\"echo\"}").payload, "[1, 2]");
  assert_null(shootout_padding(SHOOTOUT_JSON, view_str("{\"sendTime\":\"1\"}")).data);
  assert_null(shootout_padding(SHOOTOUT_JSON, view_str("7")).data);
  struct shootout_message out;
  static const char *const bad[] = {
      "", "x", "[]", "{\"type\":\"echo\",\"payload\":}", "{\"type\":\"echo\"} {}", "null"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_false(shootout_read_reply(SHOOTOUT_JSON, (const uint8_t *)bad[i], strlen(bad[i]), &out));
}

static void test_binary_vectors(void **state) {
  (void)state;
  static const uint8_t echo[] = {0x65, 0, 0, 0, 8, 0x14, 0x7d, 0xc0, 0x7b, 0xa4, 0xa9, 0x41, 0x15};
  static const uint8_t padded[] = {
      0x62, 0, 0, 0, 0x0d, 0x14, 0x7d, 0xc0, 0x7b, 0xa4, 0xa9, 0x41, 0x15, '1', '2', '3', '4', '5'};
  assert_true(view_equal(request_of(SHOOTOUT_BINARY, SHOOTOUT_ECHO, 0, 0), view_of(echo, sizeof echo)));
  assert_true(view_equal(request_of(SHOOTOUT_BINARY, SHOOTOUT_BROADCAST, 5, 0), view_of(padded, sizeof padded)));
  struct view long_one = request_of(SHOOTOUT_BINARY, SHOOTOUT_BROADCAST, 200, 0);
  assert_int_equal(long_one.len, 213);
  assert_memory_equal(long_one.data, "b\0\0\0\xd0", 5);

  uint8_t copy[sizeof padded];
  memcpy(copy, padded, sizeof padded);
  struct shootout_message message;
  assert_true(shootout_read_request(SHOOTOUT_BINARY, copy, sizeof copy, &message));
  assert_int_equal(message.kind, SHOOTOUT_BROADCAST);
  assert_text(shootout_padding(SHOOTOUT_BINARY, message.payload), "12345");
  struct shootout_text text;
  shootout_fan_out(&text, SHOOTOUT_BINARY, message.payload);
  assert_true(view_equal(put(&text), view_of(padded, sizeof padded)));
  shootout_answer(&text, SHOOTOUT_BINARY, SHOOTOUT_RESULT, &message);
  copy[0] = 'r';
  assert_true(view_equal(put(&text), view_of(copy, sizeof copy)));
  assert_true(shootout_read_reply(SHOOTOUT_BINARY, copy, sizeof copy, &message));
  assert_int_equal(message.kind, SHOOTOUT_RESULT);

  copy[0] = 'x';
  assert_true(shootout_read_request(SHOOTOUT_BINARY, copy, sizeof copy, &message));
  assert_int_equal(message.kind, SHOOTOUT_UNKNOWN);
  assert_false(shootout_read_request(SHOOTOUT_BINARY, copy, 0, &message));
  copy[0] = 'e';
  assert_true(shootout_read_request(SHOOTOUT_BINARY, copy, 1, &message));
  assert_null(shootout_padding(SHOOTOUT_BINARY, message.payload).data);
}

static void test_phoenix_vectors(void **state) {
  (void)state;
  static const char join[] = "{\"topic\":\"room:lobby\",\"event\":\"phx_join\",\"payload\":null,\"ref\":\"\"}";
  assert_text(shootout_join(SHOOTOUT_PHOENIX), join);
  struct shootout_message message = read_request(SHOOTOUT_PHOENIX, join);
  assert_int_equal(message.kind, SHOOTOUT_JOIN);
  assert_true(shootout_is_lobby(message.topic));
  struct shootout_text text;
  shootout_confirm(&text, SHOOTOUT_PHOENIX, &message);
  static const char joined[] =
      "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"ok\",\"response\":{}},\"ref\":\"\"}";
  assert_text(put(&text), joined);
  assert_int_equal(read_reply(SHOOTOUT_PHOENIX, joined).kind, SHOOTOUT_JOINED);

  assert_text(request_of(SHOOTOUT_PHOENIX, SHOOTOUT_BROADCAST, 5, 0),
      "{\"topic\":\"room:lobby\",\"event\":\"broadcast\",\"payload\":{\"body\":{\"sendTime\":\"" TIME_TEXT
      "\",\"padding\":\"12345\"}},\"ref\":\"\"}");
  assert_text(request_of(SHOOTOUT_PHOENIX, SHOOTOUT_ECHO, 0, 4294967295U),
      "{\"topic\":\"room:lobby\",\"event\":\"echo\",\"payload\":{\"body\":{\"sendTime\":\"" TIME_TEXT
      "\"}},\"ref\":\"4294967295\"}");
  message = read_request(SHOOTOUT_PHOENIX,
      "{\"topic\":\"room:lobby\",\"event\":\"broadcast\",\"payload\":{\"body\":{\"a\":1}},\"ref\":\"7\"}");
  assert_int_equal(message.kind, SHOOTOUT_BROADCAST);
  shootout_fan_out(&text, SHOOTOUT_PHOENIX, message.payload);
  static const char fan_out[] = "{\"topic\":\"room:lobby\",\"event\":\"broadcast\",\"payload\":{\"type\":\"broadcast\","
                                "\"body\":{\"a\":1}},\"ref\":null}";
  assert_text(put(&text), fan_out);
  struct shootout_message reply = read_reply(SHOOTOUT_PHOENIX, fan_out);
  assert_int_equal(reply.kind, SHOOTOUT_BROADCAST);
  assert_text(reply.payload, "{\"a\":1}");
  shootout_answer(&text, SHOOTOUT_PHOENIX, SHOOTOUT_RESULT, &message);
  static const char result[] = "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"ok\","
                               "\"response\":{\"type\":\"broadcastResult\",\"body\":{\"a\":1}}},\"ref\":\"7\"}";
  assert_text(put(&text), result);
  reply = read_reply(SHOOTOUT_PHOENIX, result);
  assert_int_equal(reply.kind, SHOOTOUT_RESULT);
  uint32_t ref;
  assert_true(shootout_ref_number(reply.ref, &ref));
  assert_int_equal(ref, 7);
  shootout_answer(&text, SHOOTOUT_PHOENIX, SHOOTOUT_ECHO, &message);
  assert_text(put(&text), "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"ok\","
                          "\"response\":{\"type\":\"echo\",\"body\":{\"a\":1}}},\"ref\":\"7\"}");
  shootout_refuse(&text, SHOOTOUT_PHOENIX, &message, "why");
  static const char refused[] = "{\"topic\":\"room:lobby\",\"event\":\"phx_reply\",\"payload\":{\"status\":\"error\","
                                "\"response\":{\"reason\":\"why\"}},\"ref\":\"7\"}";
  assert_text(put(&text), refused);
  assert_int_equal(read_reply(SHOOTOUT_PHOENIX, refused).kind, SHOOTOUT_REFUSED);
}

static void test_phoenix_heartbeat_and_the_rest(void **state) {
  (void)state;
  struct view heartbeat = shootout_heartbeat(SHOOTOUT_PHOENIX);
  char copy[256];
  snprintf(copy, sizeof copy, "%.*s", (int)heartbeat.len, (const char *)heartbeat.data);
  struct shootout_message message = read_request(SHOOTOUT_PHOENIX, copy);
  assert_int_equal(message.kind, SHOOTOUT_HEARTBEAT);
  struct shootout_text text;
  shootout_confirm(&text, SHOOTOUT_PHOENIX, &message);
  struct view reply = put(&text);
  assert_true(shootout_read_reply(SHOOTOUT_PHOENIX, reply.data, reply.len, &message));
  assert_int_equal(message.kind, SHOOTOUT_HEARTBEAT);
  assert_int_equal(
      read_request(SHOOTOUT_PHOENIX, "{\"topic\":\"room:lobby\",\"event\":\"phx_leave\",\"payload\":{},\"ref\":\"2\"}")
          .kind,
      SHOOTOUT_LEAVE);
  assert_int_equal(
      read_reply(SHOOTOUT_PHOENIX, "{\"topic\":\"room:lobby\",\"event\":\"phx_error\",\"payload\":{},\"ref\":null}")
          .kind,
      SHOOTOUT_DISCONNECT);
  assert_int_equal(
      read_reply(SHOOTOUT_PHOENIX, "{\"topic\":\"a\",\"event\":\"presence_state\",\"payload\":{},\"ref\":null}").kind,
      SHOOTOUT_UNKNOWN);
  static const char *const bad[] = {"{}", "{\"topic\":1,\"event\":\"echo\"}", "[null,\"1\",\"t\",\"e\",{}]",
      "{\"topic\":\"t\",\"event\":\"echo\",\"ref\":7}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct shootout_message out;
    assert_false(shootout_read_reply(SHOOTOUT_PHOENIX, (const uint8_t *)bad[i], strlen(bad[i]), &out));
  }
  uint32_t ref;
  assert_false(shootout_ref_number(view_str("\"4294967296\""), &ref));
  assert_false(shootout_ref_number(view_str("\"\""), &ref));
  assert_false(shootout_ref_number(view_str("\"1a\""), &ref));
  assert_false(shootout_ref_number(view_str("null"), &ref));
}

static void test_phoenix_version_2(void **state) {
  (void)state;
  struct shootout_message message =
      read_request(SHOOTOUT_PHOENIX_2, "[\"3\",\"4\",\"room:lobby\",\"broadcast\",{\"body\":{\"a\":1}}]");
  assert_int_equal(message.kind, SHOOTOUT_BROADCAST);
  struct shootout_text text;
  shootout_fan_out(&text, SHOOTOUT_PHOENIX_2, message.payload);
  static const char fan_out[] = "[null,null,\"room:lobby\",\"broadcast\",{\"type\":\"broadcast\",\"body\":{\"a\":1}}]";
  assert_text(put(&text), fan_out);
  assert_int_equal(read_reply(SHOOTOUT_PHOENIX_2, fan_out).kind, SHOOTOUT_BROADCAST);
  shootout_answer(&text, SHOOTOUT_PHOENIX_2, SHOOTOUT_RESULT, &message);
  static const char result[] = "[\"3\",\"4\",\"room:lobby\",\"phx_reply\",{\"status\":\"ok\",\"response\":{\"type\":"
                               "\"broadcastResult\",\"body\":{\"a\":1}}}]";
  assert_text(put(&text), result);
  assert_int_equal(read_reply(SHOOTOUT_PHOENIX_2, result).kind, SHOOTOUT_RESULT);
  message = read_request(SHOOTOUT_PHOENIX_2, "[\"3\",\"3\",\"room:lobby\",\"phx_join\",{}]");
  assert_int_equal(message.kind, SHOOTOUT_JOIN);
  shootout_confirm(&text, SHOOTOUT_PHOENIX_2, &message);
  assert_text(put(&text), "[\"3\",\"3\",\"room:lobby\",\"phx_reply\",{\"status\":\"ok\",\"response\":{}}]");
  shootout_refuse(&text, SHOOTOUT_PHOENIX_2, &message, "no");
  assert_text(
      put(&text), "[\"3\",\"3\",\"room:lobby\",\"phx_reply\",{\"status\":\"error\",\"response\":{\"reason\":\"no\"}}]");
  message = read_request(SHOOTOUT_PHOENIX_2, "[null,\"9\",\"phoenix\",\"heartbeat\",{}]");
  assert_int_equal(message.kind, SHOOTOUT_HEARTBEAT);
  assert_text(request_of(SHOOTOUT_PHOENIX_2, SHOOTOUT_ECHO, 3, 0),
      "[null,null,\"room:lobby\",\"echo\",{\"body\":{\"sendTime\":\"" TIME_TEXT "\",\"padding\":\"123\"}}]");
  static const char *const bad[] = {"[]", "[1,2,3]", "[null,null,\"t\",\"e\",{},1]", "{}", "[null,null,\"t\",1,{}]"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct shootout_message out;
    assert_false(shootout_read_reply(SHOOTOUT_PHOENIX_2, (const uint8_t *)bad[i], strlen(bad[i]), &out));
  }
}

static void test_cable_vectors(void **state) {
  (void)state;
  static const char subscribe[] = "{\"command\":\"subscribe\",\"identifier\":" CHANNEL "}";
  assert_text(shootout_join(SHOOTOUT_CABLE), subscribe);
  struct shootout_message message = read_request(SHOOTOUT_CABLE, subscribe);
  assert_int_equal(message.kind, SHOOTOUT_JOIN);
  assert_true(shootout_is_benchmark_channel(message.identifier));
  struct shootout_text text;
  shootout_confirm(&text, SHOOTOUT_CABLE, &message);
  static const char confirmed[] = "{\"identifier\":" CHANNEL ",\"type\":\"confirm_subscription\"}";
  assert_text(put(&text), confirmed);
  assert_int_equal(read_reply(SHOOTOUT_CABLE, confirmed).kind, SHOOTOUT_JOINED);
  shootout_refuse(&text, SHOOTOUT_CABLE, &message, "");
  assert_text(put(&text), "{\"identifier\":" CHANNEL ",\"type\":\"reject_subscription\"}");

  static const char broadcast[] = "{\"command\":\"message\",\"identifier\":" CHANNEL
                                  ",\"data\":\"{\\\"action\\\":\\\"broadcast\\\",\\\"payload\\\":"
                                  "{\\\"sendTime\\\":\\\"1796075812073617003\\\",\\\"padding\\\":\\\"12345\\\"}}\"}";
  struct shootout_request request = {SHOOTOUT_BROADCAST, UINT64_C(1796075812073617003), 5, 0, false};
  shootout_request(&text, SHOOTOUT_CABLE, &request);
  assert_text(put(&text), broadcast);
  message = read_request(SHOOTOUT_CABLE, broadcast);
  assert_int_equal(message.kind, SHOOTOUT_BROADCAST);
  assert_text(message.payload, "{\"sendTime\":\"1796075812073617003\",\"padding\":\"12345\"}");
  assert_text(shootout_padding(SHOOTOUT_CABLE, message.payload), "12345");
  shootout_fan_out(&text, SHOOTOUT_CABLE, message.payload);
  static const char fan_out[] = "{\"identifier\":" CHANNEL ",\"message\":{\"action\":\"broadcast\",\"payload\":"
                                "{\"sendTime\":\"1796075812073617003\",\"padding\":\"12345\"}}}";
  assert_text(put(&text), fan_out);
  assert_int_equal(read_reply(SHOOTOUT_CABLE, fan_out).kind, SHOOTOUT_BROADCAST);
  shootout_answer(&text, SHOOTOUT_CABLE, SHOOTOUT_RESULT, &message);
  struct view result = put(&text);
  assert_true(shootout_read_reply(SHOOTOUT_CABLE, result.data, result.len, &message));
  assert_int_equal(message.kind, SHOOTOUT_RESULT);
}

static void test_cable_readings(void **state) {
  (void)state;
  assert_int_equal(read_reply(SHOOTOUT_CABLE, "{\"type\":\"welcome\"}").kind, SHOOTOUT_WELCOME);
  assert_text(shootout_welcome(), "{\"type\":\"welcome\"}");
  struct shootout_text text;
  shootout_cable_ping(&text, 1476547890);
  assert_text(put(&text), "{\"type\":\"ping\",\"message\":1476547890}");
  assert_int_equal(read_reply(SHOOTOUT_CABLE, "{\"type\":\"ping\",\"message\":1476547890}").kind, SHOOTOUT_HEARTBEAT);
  assert_int_equal(
      read_reply(SHOOTOUT_CABLE, "{\"type\":\"disconnect\",\"reason\":\"unauthorized\",\"reconnect\":false}").kind,
      SHOOTOUT_DISCONNECT);
  assert_int_equal(read_reply(SHOOTOUT_CABLE, "{\"identifier\":\"x\",\"message\":\"text\"}").kind, SHOOTOUT_UNKNOWN);
  struct shootout_message message = read_request(SHOOTOUT_CABLE,
      "{\"identifier\":\"{\\u0022channel\\u0022:\\u0022BenchmarkChannel\\u0022}\",\"command\":\"subscribe\"}");
  assert_true(shootout_is_benchmark_channel(message.identifier));
  message =
      read_request(SHOOTOUT_CABLE, "{\"command\":\"subscribe\",\"identifier\":\"{\\\"channel\\\":\\\"Other\\\"}\"}");
  assert_int_equal(message.kind, SHOOTOUT_JOIN);
  assert_false(shootout_is_benchmark_channel(message.identifier));
  assert_int_equal(
      read_request(SHOOTOUT_CABLE, "{\"command\":\"unsubscribe\",\"identifier\":" CHANNEL "}").kind, SHOOTOUT_LEAVE);
  assert_int_equal(read_request(SHOOTOUT_CABLE, "{\"command\":\"message\",\"identifier\":" CHANNEL
                                                ",\"data\":\"{\\\"action\\\":\\\"sing\\\"}\"}")
                       .kind,
      SHOOTOUT_UNKNOWN);
  static const char *const bad[] = {"{\"command\":\"message\",\"identifier\":\"x\"}",
      "{\"command\":\"message\",\"identifier\":\"x\",\"data\":7}",
      "{\"command\":\"message\",\"identifier\":\"x\",\"data\":\"{\\\"action\\\":\"}",
      "{\"command\":\"message\",\"identifier\":\"x\",\"data\":\"\\ud800\"}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint8_t copy[256];
    struct shootout_message out;
    memcpy(copy, bad[i], strlen(bad[i]));
    if (shootout_read_request(SHOOTOUT_CABLE, copy, strlen(bad[i]), &out)) fail_msg("accepted: %s", bad[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_json_vectors),
      cmocka_unit_test(test_json_sizes),
      cmocka_unit_test(test_json_readings),
      cmocka_unit_test(test_binary_vectors),
      cmocka_unit_test(test_phoenix_vectors),
      cmocka_unit_test(test_phoenix_heartbeat_and_the_rest),
      cmocka_unit_test(test_phoenix_version_2),
      cmocka_unit_test(test_cable_vectors),
      cmocka_unit_test(test_cable_readings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
