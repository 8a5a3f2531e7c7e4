/* The Socket.IO driver against a scripted server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/driver_rig.h"

#include "base/clock.h"

#define TARGET "/socket.io/?EIO=4&transport=websocket"
#define OPEN "0{\"sid\":\"a\",\"upgrades\":[],\"pingInterval\":25000,\"pingTimeout\":20000,\"maxPayload\":1000000}"
#define OWN RIG_RUN ".client.7"

static const struct driver_settings plain;

static enum status make_plan(struct driver_run *run, struct err *err) {
  return driver_socketio.prepare(run, err);
}

static struct rig *start(const char *url, const struct driver_settings *settings) {
  return rig_start(&driver_socketio, make_plan, url, settings);
}

static struct rig *established(const char *url) {
  struct rig *r = start(url, &plain);
  rig_upgrade(r, TARGET, "");
  rig_write_text(r, OPEN);
  assert_string_equal(rig_take_text(r), "40");
  rig_write_text(r, "40{\"sid\":\"b\"}");
  assert_string_equal(rig_take_text(r), "420[\"join\",\"" OWN "\"]");
  assert_int_equal(r->established, 0);
  rig_write_text(r, "430[{\"status\":\"ok\"}]");
  assert_int_equal(r->established, 1);
  return r;
}

static void takes_publish(struct rig *r, const char *head, uint32_t sequence) {
  char want[512];
  snprintf(want, sizeof want, "%s\"%s\"]", head, rig_content(sequence));
  assert_string_equal(rig_take_text(r), want);
}

static void test_publish_and_callback(void **state) {
  (void)state;
  struct rig *r = established("socketio://127.0.0.1");
  assert_int_equal(r->run.settings.url.port, 3000);
  assert_int_equal(rig_publish(r, PUBLISH_TO_CLIENT, 12, 0), PUBLISH_WRITTEN);
  takes_publish(r, "421[\"publish\",\"" RIG_RUN ".client.12\",", 0);
  assert_int_equal(rig_publish(r, PUBLISH_TO_GROUP, 3, 1), PUBLISH_WRITTEN);
  takes_publish(r, "423[\"publish\",\"" RIG_RUN ".group.3\",", 1);
  rig_write_text(r, "433[]");
  assert_int_equal(r->acked_token, 3);
  assert_int_equal(r->acked_code, 0);
  rig_write_text(r, "431[{\"status\":\"error\",\"code\":429}]");
  assert_int_equal(r->acked, 2);
  assert_int_equal(r->acked_token, 1);
  assert_int_equal(r->acked_code, 429);
  driver_socketio.closing(r->client);
  assert_string_equal(rig_take_text(r), "41");
  rig_stop(r);
}

static void test_deliveries(void **state) {
  (void)state;
  struct rig *r = established("socketio://127.0.0.1");
  char text[256];
  snprintf(text, sizeof text, "42[\"message\",\"%s\"]", rig_content(9));
  rig_write_text(r, text);
  assert_int_equal(r->payload_result, PAYLOAD_OK);
  assert_int_equal(r->payload.sequence, 9);
  snprintf(text, sizeof text, "4277[\"message\",\"%s\"]", rig_content(10));
  rig_write_text(r, text);
  assert_string_equal(rig_take_text(r), "4377[]"); /* the server asked for it */
  assert_int_equal(r->delivered, 2);
  rig_write_text(r, "42[\"news\",\"of no interest\"]");
  rig_write_text(r, "42/other,[\"message\",\"elsewhere\"]");
  rig_write_text(r, "451-[\"news\",{\"_placeholder\":true,\"num\":0}]");
  rig_write_frame(r, WS_BINARY, "\x01\x02", 2);
  assert_int_equal(r->delivered, 2);
  rig_write_text(r, "42[\"message\",{\"not\":\"text\"}]");
  assert_int_equal(r->delivered, 3);
  assert_int_equal(r->payload_result, PAYLOAD_FOREIGN);
  assert_int_equal(r->failed, 0);
  rig_write_text(r, "451-[\"message\",{\"_placeholder\":true,\"num\":0}]");
  assert_int_equal(r->failed, 1);
  assert_non_null(strstr(driver_socketio.code_text(r->failed_code), "binary"));
  rig_stop(r);
}

static void test_names(void **state) {
  (void)state;
  const struct driver_settings settings = {.groups = 2, .shared_groups = true, .user = "al\"ice", .password = "secret"};
  struct rig *r = start("socketio://127.0.0.1/io/?nsp=/chat&join=enter&publish=say&message=said&echo=on", &settings);
  assert_true(r->run.capabilities & CAPABILITY_GROUP_ECHO);
  rig_upgrade(r, "/io/?EIO=4&transport=websocket", "");
  rig_write_text(r, OPEN);
  assert_string_equal(rig_take_text(r), "40/chat,{\"user\":\"al\\\"ice\",\"password\":\"secret\"}");
  rig_write_text(r, "40/chat,{\"sid\":\"b\"}");
  assert_string_equal(rig_take_text(r), "42/chat,0[\"enter\",\"" RIG_RUN ".group.0\"]");
  rig_write_text(r, "43/chat,0[]");
  assert_string_equal(rig_take_text(r), "42/chat,1[\"enter\",\"" RIG_RUN ".group.1\"]");
  rig_write_text(r, "43/chat,1[null]");
  assert_int_equal(r->established, 1);
  rig_publish(r, PUBLISH_TO_ALL, 0, 4);
  takes_publish(r, "42/chat,9[\"say\",\"" RIG_RUN ".all\",", 4);
  rig_write_text(r, "42/chat,[\"said\",\"x\"]");
  rig_write_text(r, "42/chat,[\"message\",\"x\"]");
  assert_int_equal(r->delivered, 1);
  rig_write_text(r, "41/chat,");
  assert_int_equal(r->failed_code, CAUSE_KICKED);
  rig_stop(r);

  r = start("socketio://127.0.0.1/?join=&ack=off", &plain);
  assert_false(r->run.capabilities & (CAPABILITY_ACKS | CAPABILITY_GROUP_ECHO | CAPABILITY_BROADCAST));
  rig_upgrade(r, TARGET, "");
  rig_write_text(r, OPEN);
  assert_string_equal(rig_take_text(r), "40");
  rig_write_text(r, "40{\"sid\":\"b\"}");
  assert_int_equal(r->established, 1);
  rig_publish(r, PUBLISH_TO_SELF, 0, 0);
  takes_publish(r, "42[\"publish\",\"" OWN "\",", 0);
  rig_stop(r);
}

static void test_pings(void **state) {
  (void)state;
  struct rig *r = established("socketio://127.0.0.1");
  uint64_t now_ns = clock_now_ns();
  rig_write_text(r, "2");
  assert_string_equal(rig_take_text(r), "3");
  rig_write_text(r, "2probe");
  assert_string_equal(rig_take_text(r), "3probe");
  driver_socketio.tick(r->client, now_ns + 20 * NS_PER_SEC); /* the next regular one comes at 50 s */
  assert_int_equal(r->wakes, 1);
  assert_true(r->wake_ns >= now_ns + 45 * NS_PER_SEC && r->wake_ns < now_ns + 60 * NS_PER_SEC);
  assert_int_equal(r->failed, 0);
  rig_is_silent(r);
  driver_socketio.tick(r->client, r->wake_ns);
  assert_int_equal(r->failed_code, CAUSE_KEEP_ALIVE);
  rig_stop(r);
}

static void test_refusals(void **state) {
  (void)state;
  static const struct {
    const char *texts[3];
    int32_t code;
    const char *name; /* a part of the code's text */
  } cases[] = {
      {{"40"}, CAUSE_PROTOCOL, NULL},
      {{"0{}"}, CAUSE_PROTOCOL, NULL},
      {{"x"}, CAUSE_PROTOCOL, NULL},
      {{"0{\"sid\":\"a\",\"maxPayload\":100}"}, 100003, "maxPayload"},
      {{OPEN, OPEN}, CAUSE_PROTOCOL, NULL},
      {{OPEN, "44{\"message\":\"Invalid namespace\"}"}, 100001, "Invalid namespace"},
      {{OPEN, "44{\"message\":\"no\"}"}, 100002, "CONNECT_ERROR"},
      {{OPEN, "1"}, CAUSE_CLOSED_EARLY, NULL},
      {{OPEN, "42[\"message\",\"early\"]"}, CAUSE_PROTOCOL, NULL},
      {{OPEN, "40", "431[]"}, CAUSE_PROTOCOL, NULL},
      {{OPEN, "40", "430[false]"}, 1, "refused"},
      {{OPEN, "40", "430[{\"error\":\"full\",\"code\":503}]"}, 503, NULL},
      {{OPEN, "40", "430{}"}, CAUSE_PROTOCOL, NULL},
      {{OPEN, "40", "43[]"}, CAUSE_PROTOCOL, NULL},
      {{OPEN, "40", "41"}, CAUSE_CLOSED_EARLY, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct rig *r = start("socketio://127.0.0.1", &plain);
    rig_upgrade(r, TARGET, "");
    for (int t = 0; t < 3 && cases[i].texts[t]; t++) {
      assert_int_equal(r->failed, 0);
      rig_write_text(r, cases[i].texts[t]);
    }
    assert_int_equal(r->established, 0);
    if (r->failed != 1 || r->failed_code != cases[i].code) fail_msg("case %zu: code %d", i, r->failed_code);
    if (cases[i].name) assert_non_null(strstr(driver_socketio.code_text(r->failed_code), cases[i].name));
    rig_stop(r);
  }
}

static void test_binary_out_of_place(void **state) {
  (void)state;
  struct rig *r = established("socketio://127.0.0.1");
  rig_write_frame(r, WS_BINARY, "\x01", 1);
  assert_int_equal(r->failed_code, CAUSE_PROTOCOL);
  rig_stop(r);
  r = established("socketio://127.0.0.1");
  rig_write_text(r, "452-[\"news\",{\"_placeholder\":true,\"num\":0},{\"_placeholder\":true,\"num\":1}]");
  rig_write_frame(r, WS_BINARY, "\x01", 1);
  rig_write_text(r, "2"); /* pings may come between */
  assert_int_equal(r->failed, 0);
  rig_write_text(r, "42[\"message\",\"x\"]");
  assert_int_equal(r->failed_code, CAUSE_PROTOCOL);
  rig_stop(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_publish_and_callback),
      cmocka_unit_test(test_deliveries),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_pings),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_binary_out_of_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
