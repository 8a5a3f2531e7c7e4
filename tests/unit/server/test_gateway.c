/* musterd as a client sees it: a whole server on free ports for each test. */
#include "support/test_client.h"

#include <pthread.h>

static struct test_server server;

static void start(void (*change)(struct server_config *config)) {
  test_server_prepare(&server);
  if (change) change(&server.config);
  test_server_start(&server);
}

static void no_limits(struct server_config *config) {
  config->rate_limits = false;
  config->push_window = 16384;
}

static int stop(void **state) {
  (void)state;
  test_server_remove(&server);
  return 0;
}

static uint64_t metric(const char *name) {
  int status;
  char *text = test_http(server.config.ws_port, "GET", "/metrics", NULL, NULL, &status), pattern[64];
  snprintf(pattern, sizeof pattern, "\"%s\":", name);
  const char *at = strstr(text, pattern);
  assert_non_null(at);
  uint64_t value = strtoull(at + strlen(pattern), NULL, 10);
  free(text);
  return value;
}

/* ---- Login ---- */

static void login_checks_what_it_is_told(void **state) {
  (void)state;
  start(NULL);
  char token[JUGGLE_TOKEN_MAX];
  test_register(&server, "alice", token);
  struct test_client c;
  for (int obfuscated = 0; obfuscated < 2; obfuscated++) {
    assert_int_equal(test_try_login(&c, server.config.ws_port, token, "Web", obfuscated), JUGGLE_OK);
    test_expect_silence(&c);
    test_close(&c);
    assert_int_equal(test_try_login(&c, server.config.ws_port, token, "web", obfuscated), JUGGLE_PLATFORM_BAD);
    assert_true(test_closed(&c));
    test_close(&c);
    assert_int_equal(test_try_login(&c, server.config.ws_port, "not a token", "Web", obfuscated), JUGGLE_TOKEN_BAD);
    assert_true(test_closed(&c));
    test_close(&c);
  }
}

static void truncated_cipher_text_is_answered(void **state) {
  (void)state;
  start(NULL);
  struct test_client c;
  /* Section 9.2's wrap with 15 of the 16 cipher bytes, on which the original falls silent. */
  const char *token = "CghiZW5jaGFwcBoPxUUTN0KvwqD692ba434D";
  assert_int_equal(test_try_login(&c, server.config.ws_port, token, "Web", false), JUGGLE_TOKEN_BAD);
  assert_true(test_closed(&c));
  test_close(&c);
}

static void second_connect_is_refused(void **state) {
  (void)state;
  start(NULL);
  char token[JUGGLE_TOKEN_MAX];
  test_register(&server, "alice", token);
  struct test_client c;
  assert_int_equal(test_try_login(&c, server.config.ws_port, token, "Web", true), JUGGLE_OK);
  test_send_connect(&c, token, "Web");
  struct test_frame frame;
  test_expect(&c, JUGGLE_CONNECT_ACK, &frame);
  struct juggle_connect_ack ack;
  assert_true(juggle_read_connect_ack(frame.body, &ack));
  assert_int_equal(ack.code, JUGGLE_CONNECT_DEFAULT);
  assert_true(test_closed(&c));
  test_close(&c);
}

static void short_deadline(struct server_config *config) {
  config->login_deadline_ms = 1000;
}

static void login_has_a_deadline(void **state) {
  (void)state;
  start(short_deadline);
  struct test_client silent, upgraded;
  test_open(&silent, server.config.ws_port);
  test_upgrade(&upgraded, server.config.ws_port);
  assert_true(test_closed(&silent));
  assert_true(test_closed(&upgraded));
  test_close(&silent);
  test_close(&upgraded);
}

static void short_silence(struct server_config *config) {
  config->ping_interval_ms = 50;
  config->read_deadline_ms = 1000;
}

static void silent_clients_are_dropped_and_answering_ones_are_not(void **state) {
  (void)state;
  start(short_silence);
  struct test_client quiet, lively;
  test_login_as(&quiet, &server, "alice", false);
  test_login_as(&lively, &server, "bob", false);
  struct ws_event event;
  uint64_t until = clock_now_ns() + 2500 * NS_PER_MS;
  while (clock_now_ns() < until) {
    struct timeval wait = {.tv_usec = 20000};
    setsockopt(lively.fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    assert_false(test_event(&lively, &event)); /* answers Pings until nothing comes for 20 ms */
  }
  assert_true(test_closed(&quiet));
  struct timeval wait = {.tv_sec = 5};
  setsockopt(lively.fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  test_expect_silence(&lively);
  test_close(&quiet);
  test_close(&lively);
}

/* ---- Publish and delivery ---- */

static void exchange_between(
    const char *from, const char *to, bool alice_obfuscated, bool bob_obfuscated, const char *client_uid) {
  struct test_client alice, bob;
  test_login_as(&alice, &server, from, alice_obfuscated);
  test_login_as(&bob, &server, to, bob_obfuscated);
  test_publish(&alice, 7, "p_msg", to, "{\"content\":\"hello\"}", client_uid);
  struct juggle_publish_ack ack;
  test_expect_publish_ack(&alice, &ack);
  assert_int_equal(ack.index, 7);
  assert_int_equal(ack.code, JUGGLE_OK);
  assert_int_equal(ack.msg_id.len, JUGGLE_MSG_ID_LEN);
  assert_true(view_is(ack.client_msg_id, client_uid));
  assert_true(ack.msg_seq_no >= 1);
  struct test_push push;
  struct juggle_down_msg msg;
  test_expect_message(&bob, &push, &msg);
  assert_int_equal(push.qos, 1);
  assert_int_equal(push.request.index, 1);
  assert_true(view_is(push.request.target, to));
  assert_true(view_is(msg.target_id, from));
  assert_true(view_is(msg.sender_id, from));
  assert_true(view_is(msg.content, "{\"content\":\"hello\"}"));
  assert_true(view_equal(msg.msg_id, ack.msg_id));
  assert_int_equal(msg.msg_seq_no, ack.msg_seq_no);
  assert_int_equal(msg.channel, JUGGLE_PRIVATE);
  assert_int_equal(msg.flags, 10);
  assert_true(msg.msg_time_ms > 0);
  assert_false(msg.is_send);
  test_ack_push(&bob, push.request.index);
  test_close(&alice);
  test_close(&bob);
}

static void exchange(bool alice_obfuscated, bool bob_obfuscated, const char *client_uid) {
  exchange_between("alice", "bob", alice_obfuscated, bob_obfuscated, client_uid);
}

static void messages_are_delivered_in_both_modes(void **state) {
  (void)state;
  start(NULL);
  exchange(false, false, "c-1");
  exchange(true, true, "c-2");
  exchange(true, false, "c-3");
  exchange(false, true, "c-4");
}

static void repeated_publish_is_delivered_once(void **state) {
  (void)state;
  start(NULL);
  struct test_client alice, bob;
  test_login_as(&alice, &server, "alice", true);
  test_login_as(&bob, &server, "bob", true);
  struct juggle_publish_ack ack;
  char first[JUGGLE_MSG_ID_LEN];
  test_publish(&alice, 1, "p_msg", "bob", "{}", "same");
  test_expect_publish_ack(&alice, &ack);
  assert_int_equal(ack.code, JUGGLE_OK);
  memcpy(first, ack.msg_id.data, sizeof first);
  int64_t time_ms = ack.timestamp_ms, seq = ack.msg_seq_no;
  test_publish(&alice, 2, "p_msg", "bob", "{}", "same");
  test_expect_publish_ack(&alice, &ack);
  assert_int_equal(ack.code, JUGGLE_OK);
  assert_memory_equal(ack.msg_id.data, first, sizeof first);
  assert_int_equal(ack.timestamp_ms, time_ms);
  assert_int_equal(ack.msg_seq_no, seq);
  test_publish(&alice, 3, "p_msg", "bob", "last", "other");
  struct test_push push;
  struct juggle_down_msg msg;
  test_expect_message(&bob, &push, &msg);
  assert_true(view_is(msg.content, "{}"));
  test_expect_message(&bob, &push, &msg);
  assert_true(view_is(msg.content, "last"));
  test_close(&alice);
  test_close(&bob);
}

static void other_devices_get_a_copy_without_ack(void **state) {
  (void)state;
  start(NULL);
  struct test_client alice, other;
  test_login_as(&alice, &server, "alice", false);
  test_login_as(&other, &server, "alice", false);
  test_publish(&alice, 1, "p_msg", "bob", "x", "c-1");
  struct test_push push;
  struct juggle_down_msg msg;
  test_expect_message(&other, &push, &msg);
  assert_int_equal(push.qos, 0);
  assert_true(msg.is_send);
  assert_true(view_is(msg.target_id, "bob"));
  struct juggle_publish_ack ack;
  test_expect_publish_ack(&alice, &ack);
  test_close(&alice);
  test_close(&other);
}

static void state_messages_want_no_ack(void **state) {
  (void)state;
  start(NULL);
  struct test_client alice, bob;
  test_login_as(&alice, &server, "alice", false);
  test_login_as(&bob, &server, "bob", false);
  test_publish_flags(&alice, 1, "p_msg", "bob", "{}", "c-1", JUGGLE_FLAG_STATE);
  struct test_push push;
  struct juggle_down_msg msg;
  test_expect_message(&bob, &push, &msg);
  assert_int_equal(push.qos, 0);
  struct juggle_publish_ack ack;
  test_expect_publish_ack(&alice, &ack);
  assert_int_equal(ack.code, JUGGLE_OK);
  assert_int_equal(ack.msg_seq_no, -1);
  test_close(&alice);
  test_close(&bob);
}

enum { GROUP_MEMBERS = 50 };

static void group_messages_reach_every_member(void **state) {
  (void)state;
  start(NULL);
  static struct test_client member[GROUP_MEMBERS];
  char body[2048] = "{\"group_id\":\"grp1\",\"group_name\":\"G\",\"member_ids\":[";
  for (int i = 0; i < GROUP_MEMBERS; i++) {
    char name[16];
    snprintf(name, sizeof name, "m%d", i);
    test_login_as(&member[i], &server, name, i % 2);
    size_t used = strlen(body);
    snprintf(body + used, sizeof body - used, "%s\"%s\"", i ? "," : "", name);
  }
  strcat(body, "]}");
  test_api_ok(&server, "/apigateway/groups/add", body);
  test_publish(&member[0], 1, "g_msg", "grp1", "to all", "g-1");
  struct juggle_publish_ack ack;
  test_expect_publish_ack(&member[0], &ack);
  assert_int_equal(ack.code, JUGGLE_OK);
  assert_int_equal(ack.member_count, GROUP_MEMBERS - 1);
  for (int i = 1; i < GROUP_MEMBERS; i++) {
    struct test_push push;
    struct juggle_down_msg msg;
    test_expect_message(&member[i], &push, &msg);
    assert_true(view_is(msg.target_id, "grp1"));
    assert_true(view_is(msg.content, "to all"));
    assert_int_equal(msg.unread_index, 1);
  }
  struct test_client stranger;
  test_login_as(&stranger, &server, "stranger", false);
  test_publish(&stranger, 2, "g_msg", "grp1", "x", "g-2");
  test_expect_publish_ack(&stranger, &ack);
  assert_int_equal(ack.code, JUGGLE_GROUP_NOT_MEMBER);
  test_close(&stranger);
  for (int i = 0; i < GROUP_MEMBERS; i++)
    test_close(&member[i]);
}

/* ---- The push window ---- */

static void window_of_one(struct server_config *config) {
  config->push_window = 1;
  config->rate_limits = false;
}

static void window_of_one_pushes_then_notifies_then_pushes(void **state) {
  (void)state;
  start(window_of_one);
  struct test_client alice, bob;
  test_login_as(&alice, &server, "alice", false);
  test_login_as(&bob, &server, "bob", true);
  struct juggle_publish_ack ack;
  struct test_push push;
  struct juggle_down_msg msg;
  struct juggle_notify notify;
  int64_t cursor = 0;
  int32_t index = 0;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 4; i++) {
      char uid[16];
      snprintf(uid, sizeof uid, "w-%d-%d", round, i);
      test_publish(&alice, ++index, "p_msg", "bob", uid, uid);
      test_expect_publish_ack(&alice, &ack);
      assert_int_equal(ack.code, JUGGLE_OK);
    }
    test_expect_message(&bob, &push, &msg);
    cursor = msg.msg_time_ms;
    /* The ack comes too late: newer messages are there, and only a sync brings them. */
    test_ack_push(&bob, push.request.index);
    test_expect_push(&bob, "ntf", &push);
    assert_true(juggle_read_notify(push.request.data, &notify));
    assert_int_equal(notify.type, 1);
    assert_true(notify.sync_time_ms > cursor);
    test_expect_silence(&bob);
    char late[16];
    snprintf(late, sizeof late, "w-%d-late", round);
    test_publish(&alice, ++index, "p_msg", "bob", late, late);
    test_expect_publish_ack(&alice, &ack);
    test_send_sync(&bob, 1, "bob", cursor);
    bool finished = false;
    assert_int_equal(test_expect_sync(&bob, &finished, &cursor), 4);
    assert_true(finished);
  }
  /* A prompt ack keeps the window open. */
  for (int i = 0; i < 5; i++) {
    char uid[16];
    snprintf(uid, sizeof uid, "p-%d", i);
    test_publish(&alice, ++index, "p_msg", "bob", uid, uid);
    test_expect_publish_ack(&alice, &ack);
    test_expect_message(&bob, &push, &msg);
    test_ack_push(&bob, push.request.index);
    test_expect_silence(&bob);
  }
  test_close(&alice);
  test_close(&bob);
}

static void what_waits_at_login_is_notified_once(void **state) {
  (void)state;
  start(window_of_one);
  struct test_client alice, bob;
  char token[JUGGLE_TOKEN_MAX];
  test_register(&server, "bob", token);
  test_login_as(&alice, &server, "alice", false);
  struct juggle_publish_ack ack;
  for (int i = 0; i < 5; i++) {
    char uid[16];
    snprintf(uid, sizeof uid, "o-%d", i);
    test_publish(&alice, i, "p_msg", "bob", uid, uid);
    test_expect_publish_ack(&alice, &ack);
  }
  assert_int_equal(test_try_login(&bob, server.config.ws_port, token, "Web", false), JUGGLE_OK);
  struct test_push push;
  test_expect_push(&bob, "ntf", &push);
  test_send_sync(&bob, 1, "bob", 0);
  bool finished = false;
  int64_t newest = 0;
  assert_int_equal(test_expect_sync(&bob, &finished, &newest), 5);
  assert_true(finished);
  test_publish(&alice, 9, "p_msg", "bob", "direct", "d");
  struct juggle_down_msg msg;
  test_expect_message(&bob, &push, &msg);
  assert_true(view_is(msg.content, "direct"));
  test_close(&alice);
  test_close(&bob);
}

static void what_was_not_acked_is_notified_at_the_next_login(void **state) {
  (void)state;
  start(window_of_one);
  struct test_client alice, bob;
  test_login_as(&alice, &server, "alice", false);
  test_login_as(&bob, &server, "bob", false);
  struct juggle_publish_ack ack;
  test_publish(&alice, 1, "p_msg", "bob", "unseen", "u-1");
  test_expect_publish_ack(&alice, &ack);
  struct test_push push;
  struct juggle_down_msg msg;
  test_expect_message(&bob, &push, &msg);
  test_close(&bob);
  test_login_as(&bob, &server, "bob", false);
  test_expect_push(&bob, "ntf", &push);
  test_close(&alice);
  test_close(&bob);
}

static void window_of_three(struct server_config *config) {
  config->push_window = 3;
  config->rate_limits = false;
}

static void publish_acked(struct test_client *it, int32_t index, const char *text) {
  test_publish(it, index, "p_msg", "bob", text, text);
  struct juggle_publish_ack ack;
  test_expect_publish_ack(it, &ack);
  assert_int_equal(ack.code, JUGGLE_OK);
}

static void an_ack_counts_once(void **state) {
  (void)state;
  start(window_of_three);
  struct test_client alice, bob;
  test_login_as(&alice, &server, "alice", false);
  test_login_as(&bob, &server, "bob", false);
  struct test_push push;
  struct juggle_down_msg msg;
  publish_acked(&alice, 1, "a");
  publish_acked(&alice, 2, "b");
  publish_acked(&alice, 3, "c");
  for (int i = 1; i <= 3; i++) {
    test_expect_message(&bob, &push, &msg);
    assert_int_equal(push.request.index, i);
  }
  for (int i = 0; i < 3; i++)
    test_ack_push(&bob, 1);
  test_ack_push(&bob, 0);
  test_ack_push(&bob, 4);
  test_ack_push(&bob, -1);
  test_expect_silence(&bob);
  publish_acked(&alice, 4, "d");
  test_expect_message(&bob, &push, &msg);
  publish_acked(&alice, 5, "e");
  test_expect_push(&bob, "ntf", &push);
  test_close(&alice);
  test_close(&bob);
}

enum { MESSAGES = 400 };

/* A client as section 4.4 describes the Web SDK: it drops what is not newer than its cursor, so a push that overtakes
 * pending messages would lose them. This one forgets to ack, too. */
struct reader {
  struct test_client client;
  bool seen[MESSAGES];
  int count;
  int64_t cursor;
  bool syncing;
  uint32_t random;
};

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525 + 1013904223;
  return *state >> 16;
}

static void reader_sync(struct reader *it) {
  test_send_sync(&it->client, 1, "bob", it->cursor);
  it->syncing = true;
}

static void reader_take(struct reader *it, struct view data) {
  struct juggle_down_msg msg;
  assert_true(juggle_read_down_msg(data, &msg));
  if (msg.msg_time_ms <= it->cursor) return;
  it->cursor = msg.msg_time_ms;
  char text[16] = "";
  assert_true(msg.content.len < sizeof text);
  memcpy(text, msg.content.data, msg.content.len);
  int number = atoi(text);
  assert_in_range(number, 0, MESSAGES - 1);
  if (!it->seen[number]) it->count++;
  it->seen[number] = true;
}

static void reader_pushed(struct reader *it, struct view body) {
  struct juggle_request request;
  assert_true(juggle_read_request(body, &request));
  if (view_is(request.topic, "msg")) {
    reader_take(it, request.data);
    if (next_random(&it->random) % 2) test_ack_push(&it->client, request.index);
    return;
  }
  struct juggle_notify notify;
  assert_true(juggle_read_notify(request.data, &notify));
  if (notify.sync_time_ms > it->cursor && !it->syncing) reader_sync(it);
}

static void reader_synced(struct reader *it, struct view body) {
  struct juggle_query_ack ack;
  assert_true(juggle_read_query_ack(body, &ack));
  struct juggle_set_reader set = juggle_set_reader_of(ack.data);
  struct view raw;
  while (juggle_set_next(&set, &raw))
    reader_take(it, raw);
  it->syncing = false;
  if (!set.is_finished) reader_sync(it);
}

/* Takes what comes until nothing has come for so long. */
static void reader_run(struct reader *it, int quiet_ms) {
  struct timeval wait = {.tv_sec = quiet_ms / 1000, .tv_usec = quiet_ms % 1000 * 1000};
  setsockopt(it->client.fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  struct test_frame frame;
  while (it->count < MESSAGES && test_receive(&it->client, &frame)) {
    if (frame.envelope.cmd == JUGGLE_PUBLISH) reader_pushed(it, frame.body);
    if (frame.envelope.cmd == JUGGLE_QUERY_ACK) reader_synced(it, frame.body);
  }
}

static void no_message_is_missed_whatever_is_acked(void **state) {
  (void)state;
  start(window_of_three);
  static struct reader bob;
  bob = (struct reader){.random = 7};
  struct test_client alice;
  test_login_as(&alice, &server, "alice", false);
  test_login_as(&bob.client, &server, "bob", true);
  uint32_t random = 42;
  for (int sent = 0; sent < MESSAGES;) {
    int burst = 1 + (int)(next_random(&random) % 12);
    int until = sent + burst < MESSAGES ? sent + burst : MESSAGES;
    for (int i = sent; i < until; i++) {
      char text[16];
      snprintf(text, sizeof text, "%d", i);
      test_publish(&alice, i, "p_msg", "bob", text, text);
    }
    for (; sent < until; sent++) {
      struct juggle_publish_ack ack;
      test_expect_publish_ack(&alice, &ack);
      assert_int_equal(ack.code, JUGGLE_OK);
    }
    if (next_random(&random) % 3) reader_run(&bob, 1);
  }
  reader_run(&bob, 5000);
  assert_int_equal(bob.count, MESSAGES);
  test_close(&alice);
  test_close(&bob.client);
}

/* ---- What clients do wrong ---- */

static void first_frame_must_be_connect(void **state) {
  (void)state;
  start(NULL);
  const char *frames[] = {
      "080110081801", /* PI */
      "080110031801723a08011205705f6d73671a03626f622a2a0a076a673a7465787412137b22636f6e74656e74223a2268656c6c6f227d"
      "180a2208632d303030303031",                                                                   /* P1 */
      "0801100518018201240803120973796e635f6d7367731a03626f622a1008c7d395ffbc31100118c7d395ffbc31", /* Y1 */
      "ff",
  };
  for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
    struct test_client c;
    test_upgrade(&c, server.config.ws_port);
    test_send_hex(&c, frames[i]);
    uint8_t byte;
    assert_true(recv(c.fd, &byte, 1, 0) <= 0);
    test_close(&c);
  }
}

static void garbage_after_login_closes(void **state) {
  (void)state;
  start(NULL);
  const char *frames[] = {"ff", "08011001", "08011006", "0801100a"};
  for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
    struct test_client c;
    test_login_as(&c, &server, "alice", i % 2);
    test_send_hex(&c, frames[i]);
    uint8_t byte;
    assert_true(recv(c.fd, &byte, 1, 0) <= 0);
    test_close(&c);
  }
}

#define P1                                                                                                             \
  "080110031801723a08011205705f6d73671a03626f622a2a0a076a673a7465787412137b22636f6e74656e74223a2268656c6c6f227d"       \
  "180a2208632d303030303031"
#define P1O                                                                                                            \
  "080110031801223a0903110175596a7b661800666a642d220b0569633f7262707510107f2765686675676d70273c2560646e6f6b277b1f"     \
  "02230a6029353637383133"
#define P5                                                                                                             \
  "080110031801723508061205705f6d73672a2a0a076a673a7465787412137b22636f6e74656e74223a2268656c6c6f227d180a"             \
  "2208632d303030303031"
#define R5 "080110047a050806108756"
#define E1 "08011005180182010f0808120b7172795f636f6e76657273"
#define J1 "08011005180182011a08071206635f6a6f696e1a05726f6f6d312a070a05726f6f6d31"
#define H_NO_TOPIC "0801100518018201020808"

static void expect_ack_code(struct test_client *it, int32_t index, int32_t code) {
  struct juggle_publish_ack ack;
  test_expect_publish_ack(it, &ack);
  assert_int_equal(ack.index, index);
  assert_int_equal(ack.code, code);
}

static void bodies_in_the_wrong_mode_are_answered(void **state) {
  (void)state;
  start(NULL);
  struct test_client plain, obfuscated;
  test_login_as(&plain, &server, "alice", false);
  test_send_hex(&plain, P1O);
  expect_ack_code(&plain, 0, JUGGLE_TOPIC_MISSING);
  test_send_hex(&plain, P1);
  expect_ack_code(&plain, 1, JUGGLE_OK);
  test_close(&plain);
  test_login_as(&obfuscated, &server, "carol", true);
  test_send_hex(&obfuscated, P1);
  expect_ack_code(&obfuscated, 0, JUGGLE_TOPIC_MISSING);
  test_send_hex(&obfuscated, P1O);
  expect_ack_code(&obfuscated, 1, JUGGLE_OK);
  test_close(&obfuscated);
}

static void refusals_are_the_vectors(void **state) {
  (void)state;
  start(NULL);
  struct test_client c;
  test_login_as(&c, &server, "alice", false);
  test_send_hex(&c, P5);
  struct ws_event event;
  assert_true(test_event(&c, &event));
  uint8_t expected[32];
  size_t len = test_unhex(R5, expected, sizeof expected);
  assert_int_equal(event.len, len);
  assert_memory_equal(event.data, expected, len);

  test_send_hex(&c, E1);
  struct test_frame frame;
  test_expect(&c, JUGGLE_QUERY_ACK, &frame);
  struct juggle_query_ack ack;
  assert_true(juggle_read_query_ack(frame.body, &ack));
  assert_int_equal(frame.envelope.qos, 0);
  assert_int_equal(ack.index, 8);
  assert_int_equal(ack.code, JUGGLE_TOPIC_MISSING);
  assert_true(ack.timestamp_ms > 0);

  /* The original has no chatrooms and answers 11013; here the room is only unknown. */
  test_send_hex(&c, J1);
  test_expect(&c, JUGGLE_QUERY_ACK, &frame);
  assert_true(juggle_read_query_ack(frame.body, &ack));
  assert_int_equal(frame.envelope.qos, 1);
  assert_int_equal(ack.index, 7);
  assert_int_equal(ack.code, JUGGLE_ROOM_UNKNOWN);
  assert_true(ack.timestamp_ms > 0);

  test_send_request(&c, JUGGLE_QUERY, 9, "c_sync_atts", "room1", NULL, 0);
  test_expect(&c, JUGGLE_QUERY_ACK, &frame);
  assert_true(juggle_read_query_ack(frame.body, &ack));
  assert_int_equal(frame.envelope.qos, 0);
  assert_int_equal(ack.index, 9);
  assert_int_equal(ack.code, JUGGLE_TOPIC_UNSUPPORTED);
  assert_true(ack.timestamp_ms > 0);

  test_send_hex(&c, H_NO_TOPIC);
  test_expect(&c, JUGGLE_QUERY_ACK, &frame);
  assert_true(juggle_read_query_ack(frame.body, &ack));
  assert_int_equal(ack.code, JUGGLE_TOPIC_MISSING);
  test_close(&c);
}

static void undecodable_data_is_answered(void **state) {
  (void)state;
  start(NULL);
  struct test_client c;
  test_login_as(&c, &server, "alice", false);
  const uint8_t bad = 0xff;
  test_send_request(&c, JUGGLE_PUBLISH, 3, "p_msg", "bob", &bad, 1);
  struct juggle_publish_ack ack;
  test_expect_publish_ack(&c, &ack);
  assert_int_equal(ack.index, 3);
  assert_true(ack.code != JUGGLE_OK);
  test_close(&c);
}

/* It would reach recipients whose libraries refuse the page that it stands on, and all behind it. */
static void what_recipients_cannot_decode_is_refused(void **state) {
  (void)state;
  start(NULL);
  struct test_client c;
  test_login_as(&c, &server, "alice", false);
  uint8_t text[64], mention[64], name[64];
  size_t text_len = (size_t)(juggle_write_up_msg(text, &(struct juggle_up_msg){.msg_type = view_str("\xff")}) - text);
  const struct juggle_up_msg mentions = {.msg_type = view_str("t"), .mention_info = view_str("\xff\xff")};
  size_t mention_len = (size_t)(juggle_write_up_msg(mention, &mentions) - mention);
  const struct juggle_room_request room = {.name = view_str("\xff"), .auto_create = true};
  size_t name_len = (size_t)(juggle_write_room_request(name, &room) - name);
  test_send_request(&c, JUGGLE_PUBLISH, 1, "p_msg", "bob", text, text_len);
  expect_ack_code(&c, 1, JUGGLE_MSG_PARAMETER);
  test_send_request(&c, JUGGLE_PUBLISH, 2, "p_msg", "bob", mention, mention_len);
  expect_ack_code(&c, 2, JUGGLE_MSG_PARAMETER);
  test_send_request(&c, JUGGLE_PUBLISH, 3, "c_msg", "room", mention, mention_len);
  expect_ack_code(&c, 3, JUGGLE_MSG_PARAMETER);
  test_send_request(&c, JUGGLE_PUBLISH, 4, "c_join", "room", name, name_len);
  expect_ack_code(&c, 4, JUGGLE_MSG_PARAMETER);
  test_send_request(&c, JUGGLE_PUBLISH, 5, "p_msg", "\xff", NULL, 0);
  expect_ack_code(&c, 0, JUGGLE_DATA_ILLEGAL);
  test_close(&c);
}

static void byte_by_byte_is_the_same(void **state) {
  (void)state;
  start(NULL);
  struct test_client c;
  test_login_as(&c, &server, "alice", true);
  uint8_t message[256], frame[512];
  size_t len = test_unhex(P1O, message, sizeof message);
  for (int i = 0; i < 3; i++) {
    size_t frame_len = test_mask_frame(frame, 0x82, message, len);
    for (size_t at = 0; at < frame_len; at++)
      test_send(c.fd, frame + at, 1);
    expect_ack_code(&c, 1, JUGGLE_OK);
  }
  test_close(&c);
  struct test_client slow;
  test_open(&slow, server.config.ws_port);
  const char *request = "GET /im HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  for (const char *at = request; *at; at++)
    test_send(slow.fd, at, 1);
  char answer[16] = "";
  assert_int_equal(recv(slow.fd, answer, 12, MSG_WAITALL), 12);
  assert_string_equal(answer, "HTTP/1.1 101");
  test_close(&slow);
}

static void fragments_are_gathered(void **state) {
  (void)state;
  start(NULL);
  struct test_client c;
  test_login_as(&c, &server, "alice", true);
  uint8_t message[256], frame[512];
  size_t len = test_unhex(P1O, message, sizeof message);
  size_t used = test_mask_frame(frame, 0x02, message, 10);
  used += test_mask_frame(frame + used, 0x89, "hi", 2); /* a Ping in between is allowed */
  used += test_mask_frame(frame + used, 0x00, message + 10, 20);
  used += test_mask_frame(frame + used, 0x80, message + 30, len - 30);
  test_send(c.fd, frame, used);
  struct ws_event event;
  assert_true(test_event(&c, &event));
  assert_int_equal(event.kind, WS_EVENT_PONG);
  assert_int_equal(event.len, 2);
  expect_ack_code(&c, 1, JUGGLE_OK);
  test_close(&c);
}

/* Damaged copies of frames that are good, in both modes: whatever happens to that session, the server goes on. */
static void damaged_frames_harm_only_their_session(void **state) {
  (void)state;
  start(no_limits);
  static const char *const frames[] = {P1, P1O, P5, E1, J1, "080110081801", "080110047a020801", "080110026a00"};
  char token[JUGGLE_TOKEN_MAX];
  test_register(&server, "mallory", token);
  uint32_t random = 3;
  for (int i = 0; i < 300; i++) {
    struct test_client c;
    bool before_login = i % 5 == 0;
    if (before_login) test_upgrade(&c, server.config.ws_port);
    if (!before_login) assert_int_equal(test_try_login(&c, server.config.ws_port, token, "Web", i % 2), JUGGLE_OK);
    uint8_t bytes[256], frame[512];
    size_t total = 0;
    for (int j = 0; j < 4 && total < 300; j++) {
      size_t len = test_unhex(frames[next_random(&random) % (sizeof frames / sizeof *frames)], bytes, sizeof bytes);
      for (uint32_t flips = next_random(&random) % 4; flips > 0; flips--)
        bytes[next_random(&random) % len] ^= (uint8_t)(1u << next_random(&random) % 8);
      total = test_mask_frame(frame, 0x82, bytes, len);
      if (next_random(&random) % 8 == 0) frame[next_random(&random) % total] ^= (uint8_t)next_random(&random);
      if (send(c.fd, frame, total, MSG_NOSIGNAL) < 0) break;
    }
    test_close(&c);
  }
  exchange_between("carol", "dave", true, true, "unharmed");
}

static void small_messages(struct server_config *config) {
  config->message_max_bytes = 2048;
}

static void too_long_messages_close_with_1009(void **state) {
  (void)state;
  start(small_messages);
  struct test_client c;
  test_login_as(&c, &server, "alice", false);
  uint8_t header[WS_HEADER_MAX];
  static const uint8_t mask[4] = {1, 2, 3, 4};
  test_send(c.fd, header, ws_write_header(header, WS_BINARY, UINT64_C(1) << 40, mask));
  struct ws_event event;
  assert_true(test_event(&c, &event));
  assert_int_equal(event.kind, WS_EVENT_CLOSE);
  assert_int_equal(event.close_code, 1009);
  assert_true(test_closed(&c));
  test_close(&c);
}

static void limiter_refuses_the_rest_of_a_burst(void **state) {
  (void)state;
  start(NULL);
  struct test_client c;
  test_login_as(&c, &server, "alice", false);
  enum { BURST = 200 };
  struct buf all = {0};
  uint64_t before = clock_now_ns();
  for (int i = 0; i < BURST; i++) {
    struct juggle_request request = {
        .index = i, .topic = view_str("p_msg"), .target = view_str("bob"), .data = {NULL, 0}};
    uint8_t body[64], frame[128];
    size_t body_len = juggle_request_size(&request), len;
    juggle_write_request(body, &request);
    uint8_t *envelope = test_envelope(&c, JUGGLE_PUBLISH, 1, body, body_len, &len);
    assert_true(buf_append(&all, frame, test_mask_frame(frame, 0x82, envelope, len)));
    free(envelope);
  }
  test_send(c.fd, all.data, all.len);
  buf_free(&all);
  int accepted = 0, refused = 0;
  for (int i = 0; i < BURST; i++) {
    struct juggle_publish_ack ack;
    test_expect_publish_ack(&c, &ack);
    if (ack.code == JUGGLE_OK) {
      accepted++;
      continue;
    }
    assert_int_equal(ack.code, JUGGLE_RATE_LIMIT);
    assert_true(ack.timestamp_ms > 0);
    assert_int_equal(ack.msg_id.len, 0);
    refused++;
  }
  uint64_t elapsed = clock_now_ns() - before;
  assert_int_equal(accepted + refused, BURST);
  assert_true(accepted >= 10);
  assert_true((uint64_t)accepted <= 11 + elapsed / (10 * NS_PER_MS));
  test_close(&c);
}

static void disconnect_and_kick_end_a_session(void **state) {
  (void)state;
  start(NULL);
  struct test_client c;
  test_login_as(&c, &server, "alice", false);
  test_send_hex(&c, "080110026a00"); /* D1 */
  assert_true(test_closed(&c));
  test_close(&c);
  test_login_as(&c, &server, "alice", true);
  test_api_ok(&server, "/apigateway/users/kick", "{\"user_id\":\"alice\",\"ext\":\"bye\"}");
  struct test_frame frame;
  test_expect(&c, JUGGLE_DISCONNECT, &frame);
  struct juggle_disconnect disconnect;
  assert_true(juggle_read_disconnect(frame.body, &disconnect));
  assert_int_equal(disconnect.code, JUGGLE_KICKED);
  assert_true(view_is(disconnect.ext, "bye"));
  assert_true(test_closed(&c));
  test_close(&c);
}

/* ---- HTTP on the WebSocket port ---- */

static void plain_http_is_answered(void **state) {
  (void)state;
  start(NULL);
  int status;
  char *text = test_http(server.config.ws_port, "GET", "/health", NULL, NULL, &status);
  assert_int_equal(status, 200);
  assert_non_null(strstr(text, "{\"status\":\"ok\"}"));
  assert_non_null(strstr(text, "Access-Control-Allow-Origin: *"));
  free(text);
  text = test_http(server.config.ws_port, "GET", "/version?x=1", NULL, NULL, &status);
  assert_non_null(strstr(text, "{\"version\":\"musterd-"));
  free(text);
  text = test_http(server.config.ws_port, "GET", "/metrics", NULL, NULL, &status);
  assert_int_equal(status, 200);
  assert_non_null(strstr(text, "\"client_connect\":{\"online_user_count\":"));
  free(text);
  text = test_http(server.config.ws_port, "POST", "/im/publish", NULL, "x", &status);
  assert_int_equal(status, 404);
  free(text);
  text = test_http(server.config.ws_port, "GET", "/im", NULL, NULL, &status);
  assert_true(status == 400 || status == 426);
  free(text);
}

static void garbage_on_every_port_is_survived(void **state) {
  (void)state;
  start(NULL);
  const uint16_t ports[] = {
      server.config.ws_port, server.config.api_port, server.config.navigator_port, server.config.admin_port};
  static char garbage[32768];
  for (size_t i = 0; i < sizeof garbage; i++)
    garbage[i] = (char)(i * 2654435761u >> 13);
  for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
    int fd = test_connect(ports[i]);
    for (size_t at = 0; at < sizeof garbage; at += 4096)
      if (send(fd, garbage + at, 4096, MSG_NOSIGNAL) < 0) break;
    shutdown(fd, SHUT_WR);
    free(test_read_all(fd));
    close(fd);
  }
  /* An endless head. */
  int fd = test_connect(server.config.ws_port);
  const char *line = "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n";
  send(fd, "GET /im HTTP/1.1\r\n", 18, MSG_NOSIGNAL);
  for (int i = 0; i < 1000; i++)
    if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0) break;
  char *text = test_read_all(fd);
  assert_true(text == NULL || *text == '\0' || strncmp(text, "HTTP/1.1 400", 12) == 0);
  free(text);
  close(fd);
  exchange(true, true, "after");
}

static void wait_for_metric(const char *name, uint64_t value) {
  for (int i = 0; i < 500 && metric(name) != value; i++)
    usleep(10000);
  assert_int_equal(metric(name), value);
}

static void metrics_follow_the_sessions(void **state) {
  (void)state;
  start(NULL);
  struct test_client first, second, other;
  test_login_as(&first, &server, "alice", false);
  test_login_as(&second, &server, "alice", true);
  test_login_as(&other, &server, "bob", true);
  wait_for_metric("online_user_count", 2);
  wait_for_metric("user_connect_count", 3);
  test_close(&first);
  wait_for_metric("user_connect_count", 2);
  wait_for_metric("online_user_count", 2);
  test_close(&second);
  wait_for_metric("online_user_count", 1);
  test_close(&other);
  wait_for_metric("online_user_count", 0);
  wait_for_metric("user_connect_count", 0);
}

static void half_open_connections_do_no_harm(void **state) {
  (void)state;
  start(short_deadline);
  enum { HALF_OPEN = 300 };
  static int fds[HALF_OPEN];
  for (int i = 0; i < HALF_OPEN; i++) {
    fds[i] = test_connect(server.config.ws_port);
    if (i % 2) test_send(fds[i], "GET /im HTT", 11);
  }
  exchange(true, false, "among");
  for (int i = 0; i < HALF_OPEN; i++) {
    uint8_t byte;
    assert_true(recv(fds[i], &byte, 1, 0) <= 0);
    close(fds[i]);
  }
}

/* ---- Back-pressure ---- */

static void impatient(struct server_config *config) {
  config->rate_limits = false;
  config->push_window = 16384;
  config->session_out_bytes = 64 * 1024;
  config->slow_reader_ms = 400;
  config->ping_interval_ms = 200;
}

static void slow_reader_is_notified_then_dropped(void **state) {
  (void)state;
  start(impatient);
  char token[JUGGLE_TOKEN_MAX];
  test_register(&server, "bob", token);
  struct test_client alice, bob;
  assert_int_equal(test_try_login(&bob, server.config.ws_port, token, "Web", false), JUGGLE_OK);
  int small = 4096;
  setsockopt(bob.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  test_login_as(&alice, &server, "alice", false);
  static char content[16001];
  memset(content, 'x', sizeof content - 1);
  /* More than any socket buffer holds, to someone who reads nothing. */
  int sent = 0;
  while (sent < 2000 && metric("notices_coalesced") == 0 && metric("slow_readers_dropped") == 0) {
    for (int i = 0; i < 10; i++, sent++) {
      char uid[16];
      snprintf(uid, sizeof uid, "s-%d", sent);
      test_publish(&alice, i, "p_msg", "bob", content, uid);
      struct juggle_publish_ack ack;
      test_expect_publish_ack(&alice, &ack);
      assert_int_equal(ack.code, JUGGLE_OK);
    }
  }
  assert_true(metric("pushes") < 2000);
  uint64_t until = clock_now_ns() + 5 * NS_PER_SEC;
  while (metric("slow_readers_dropped") == 0 && clock_now_ns() < until)
    usleep(20000);
  assert_int_equal(metric("slow_readers_dropped"), 1);
  assert_in_range(metric("output_peak_bytes"), 16000, 64 * 1024 + 2 * 16500);
  test_close(&bob);
  /* Nothing is lost: the messages wait in the inbox. */
  assert_int_equal(test_try_login(&bob, server.config.ws_port, token, "Web", false), JUGGLE_OK);
  struct test_push push;
  test_expect_push(&bob, "ntf", &push);
  bool finished = false;
  int64_t newest = 0;
  int pulled = 0;
  for (int i = 0; i < 100 && !finished; i++) {
    test_send_sync(&bob, i, "bob", newest);
    pulled += (int)test_expect_sync(&bob, &finished, &newest);
  }
  assert_int_equal(pulled, sent);
  test_close(&alice);
  test_close(&bob);
}

static void pipelined_requests_are_all_answered(void **state) {
  (void)state;
  start(no_limits);
  struct test_client c;
  test_login_as(&c, &server, "alice", true);
  enum { REQUESTS = 3000 };
  struct buf all = {0};
  for (int i = 0; i < REQUESTS; i++) {
    bool query = i % 3 == 0;
    struct juggle_request request = {
        .index = i, .topic = view_str(query ? "sync_msgs" : "p_msg"), .target = view_str(query ? "alice" : "bob")};
    uint8_t body[64], frame[128];
    size_t body_len = juggle_request_size(&request), len;
    juggle_write_request(body, &request);
    uint8_t *envelope = test_envelope(&c, query ? JUGGLE_QUERY : JUGGLE_PUBLISH, 1, body, body_len, &len);
    assert_true(buf_append(&all, frame, test_mask_frame(frame, 0x82, envelope, len)));
    free(envelope);
  }
  test_send(c.fd, all.data, all.len);
  buf_free(&all);
  static bool seen[REQUESTS];
  memset(seen, 0, sizeof seen);
  for (int i = 0; i < REQUESTS; i++) {
    struct test_frame frame;
    assert_true(test_receive(&c, &frame));
    int32_t index, code;
    if (frame.envelope.cmd == JUGGLE_PUBLISH_ACK) {
      struct juggle_publish_ack ack;
      assert_true(juggle_read_publish_ack(frame.body, &ack));
      index = ack.index;
      code = ack.code;
    } else {
      struct juggle_query_ack ack;
      assert_int_equal(frame.envelope.cmd, JUGGLE_QUERY_ACK);
      assert_true(juggle_read_query_ack(frame.body, &ack));
      index = ack.index;
      code = ack.code;
    }
    assert_int_equal(code, JUGGLE_OK);
    assert_in_range(index, 0, REQUESTS - 1);
    assert_false(seen[index]);
    seen[index] = true;
  }
  test_close(&c);
}

/* ---- Stop ---- */

struct publisher {
  struct test_client client;
  int acked;
};

static void *publish_until_closed(void *context) {
  struct publisher *it = context;
  uint8_t frame[256];
  int sent = 0;
  for (;;) {
    for (; sent < it->acked + 50; sent++) {
      char uid[32];
      snprintf(uid, sizeof uid, "load-%d", sent);
      struct juggle_up_msg msg = {
          .msg_type = view_str("jg:text"), .content = view_str(uid), .flags = 10, .client_uid = view_str(uid)};
      uint8_t data[128], body[192];
      struct juggle_request request = {.index = sent,
          .topic = view_str("p_msg"),
          .target = view_str("bob"),
          .data = view_of(data, juggle_up_msg_size(&msg))};
      juggle_write_up_msg(data, &msg);
      size_t body_len = juggle_request_size(&request), len;
      juggle_write_request(body, &request);
      uint8_t *envelope = test_envelope(&it->client, JUGGLE_PUBLISH, 1, body, body_len, &len);
      size_t frame_len = test_mask_frame(frame, 0x82, envelope, len);
      free(envelope);
      if (send(it->client.fd, frame, frame_len, MSG_NOSIGNAL) < 0) break;
    }
    struct test_frame answer;
    if (!test_receive(&it->client, &answer)) return NULL;
    if (answer.envelope.cmd == JUGGLE_PUBLISH_ACK) it->acked++;
  }
}

static void stop_under_load_loses_nothing_acked(void **state) {
  (void)state;
  start(no_limits);
  char token[JUGGLE_TOKEN_MAX];
  test_register(&server, "bob", token);
  static struct publisher publisher;
  publisher = (struct publisher){0};
  test_login_as(&publisher.client, &server, "alice", false);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, publish_until_closed, &publisher), 0);
  /* At most 50 are ever unanswered, so that many are acked by then. */
  for (int i = 0; i < 3000 && metric("publishes") < 500; i++)
    usleep(10000);
  test_server_stop(&server);
  pthread_join(thread, NULL);
  test_close(&publisher.client);
  assert_true(publisher.acked >= 450);

  test_server_start(&server);
  struct test_client bob;
  assert_int_equal(test_try_login(&bob, server.config.ws_port, token, "Web", false), JUGGLE_OK);
  struct test_push push;
  test_expect_push(&bob, "ntf", &push);
  bool finished = false;
  int64_t newest = 0;
  int pulled = 0;
  for (int i = 0; i < 10000 && !finished; i++) {
    test_send_sync(&bob, i, "bob", newest);
    pulled += (int)test_expect_sync(&bob, &finished, &newest);
  }
  assert_true(finished);
  assert_in_range(pulled, publisher.acked, publisher.acked + 50);
  test_close(&bob);
}

static void two_servers_cannot_share_a_port(void **state) {
  (void)state;
  start(NULL);
  struct test_server second;
  test_server_prepare(&second);
  second.config.api_port = server.config.api_port;
  struct err err = {0};
  assert_int_equal(server_start(&second.server, &second.config, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "HTTP API"));
  test_server_remove(&second);
}

static void many_tables(struct server_config *config) {
  config->gateways = 3;
  config->max_connections = 16000000;
}

/* Each gateway has its own table of open files; whoever sits in one hears from another, and nothing stays open. */
static void gateways_with_their_own_tables_are_one_server(void **state) {
  (void)state;
#ifdef __SANITIZE_THREAD__
  skip(); /* takes equal numbers in different tables for one descriptor */
#endif
  enum { CLIENTS = 24 };
  struct test_client clients[CLIENTS];
  char name[CLIENTS][8];
  start(many_tables);
  for (int i = 0; i < CLIENTS; i++) {
    snprintf(name[i], sizeof name[i], "u%d", i);
    test_login_as(&clients[i], &server, name[i], false);
  }
  assert_int_equal(metric("user_connect_count"), CLIENTS);
  for (int i = 0; i < CLIENTS; i++) {
    struct juggle_publish_ack ack;
    struct test_push push;
    struct juggle_down_msg msg;
    int next = (i + 1) % CLIENTS;
    test_publish(&clients[i], 1, "p_msg", name[next], name[i], name[i]);
    test_expect_publish_ack(&clients[i], &ack);
    assert_int_equal(ack.code, JUGGLE_OK);
    test_expect_message(&clients[next], &push, &msg);
    test_ack_push(&clients[next], push.request.index);
  }
  for (int i = 0; i < CLIENTS / 2; i++)
    test_close(&clients[i]);
  uint16_t port = server.config.ws_port;
  test_server_stop(&server);
  for (int i = CLIENTS / 2; i < CLIENTS; i++) {
    assert_true(test_closed(&clients[i]));
    test_close(&clients[i]);
  }
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), -1);
  assert_int_equal(errno, ECONNREFUSED);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(login_checks_what_it_is_told, stop),
      cmocka_unit_test_teardown(truncated_cipher_text_is_answered, stop),
      cmocka_unit_test_teardown(second_connect_is_refused, stop),
      cmocka_unit_test_teardown(login_has_a_deadline, stop),
      cmocka_unit_test_teardown(silent_clients_are_dropped_and_answering_ones_are_not, stop),
      cmocka_unit_test_teardown(messages_are_delivered_in_both_modes, stop),
      cmocka_unit_test_teardown(repeated_publish_is_delivered_once, stop),
      cmocka_unit_test_teardown(other_devices_get_a_copy_without_ack, stop),
      cmocka_unit_test_teardown(state_messages_want_no_ack, stop),
      cmocka_unit_test_teardown(group_messages_reach_every_member, stop),
      cmocka_unit_test_teardown(window_of_one_pushes_then_notifies_then_pushes, stop),
      cmocka_unit_test_teardown(what_waits_at_login_is_notified_once, stop),
      cmocka_unit_test_teardown(what_was_not_acked_is_notified_at_the_next_login, stop),
      cmocka_unit_test_teardown(an_ack_counts_once, stop),
      cmocka_unit_test_teardown(no_message_is_missed_whatever_is_acked, stop),
      cmocka_unit_test_teardown(first_frame_must_be_connect, stop),
      cmocka_unit_test_teardown(garbage_after_login_closes, stop),
      cmocka_unit_test_teardown(bodies_in_the_wrong_mode_are_answered, stop),
      cmocka_unit_test_teardown(refusals_are_the_vectors, stop),
      cmocka_unit_test_teardown(undecodable_data_is_answered, stop),
      cmocka_unit_test_teardown(what_recipients_cannot_decode_is_refused, stop),
      cmocka_unit_test_teardown(byte_by_byte_is_the_same, stop),
      cmocka_unit_test_teardown(fragments_are_gathered, stop),
      cmocka_unit_test_teardown(damaged_frames_harm_only_their_session, stop),
      cmocka_unit_test_teardown(too_long_messages_close_with_1009, stop),
      cmocka_unit_test_teardown(limiter_refuses_the_rest_of_a_burst, stop),
      cmocka_unit_test_teardown(disconnect_and_kick_end_a_session, stop),
      cmocka_unit_test_teardown(plain_http_is_answered, stop),
      cmocka_unit_test_teardown(metrics_follow_the_sessions, stop),
      cmocka_unit_test_teardown(garbage_on_every_port_is_survived, stop),
      cmocka_unit_test_teardown(half_open_connections_do_no_harm, stop),
      cmocka_unit_test_teardown(slow_reader_is_notified_then_dropped, stop),
      cmocka_unit_test_teardown(pipelined_requests_are_all_answered, stop),
      cmocka_unit_test_teardown(stop_under_load_loses_nothing_acked, stop),
      cmocka_unit_test_teardown(two_servers_cannot_share_a_port, stop),
      cmocka_unit_test_teardown(gateways_with_their_own_tables_are_one_server, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
