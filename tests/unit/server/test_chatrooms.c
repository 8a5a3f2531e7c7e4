/* Chatrooms of a running musterd with two gateways: members that keep up get everything, one that does not loses
 * messages, which is counted, and nobody waits for it. */
#include "support/test_client.h"

#include <poll.h>

enum { MEMBERS = 100, MESSAGES = 60, HISTORY = 20 };

static struct test_server server;

static void start(uint32_t history) {
  test_server_prepare(&server);
  server.config.rate_limits = false;
  server.config.chatroom_history = history;
  test_server_start(&server);
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

/* ---- Members ---- */

struct member {
  struct test_client client;
  int64_t cursor;
  int got;      /* messages, which must come in order */
  int next;     /* the number that is expected next */
  bool pulling; /* an answer is awaited */
  bool again;   /* a notice came meanwhile */
  bool gaps;    /* may miss messages */
};

static struct member members[MEMBERS];

static int64_t join(struct test_client *client, const char *room) {
  uint8_t data[64];
  struct juggle_room_request request = {.room_id = view_str(room), .auto_create = true};
  size_t len = (size_t)(juggle_write_room_request(data, &request) - data);
  test_send_request(client, JUGGLE_QUERY, 1, "c_join", room, data, len);
  struct test_frame frame;
  test_expect(client, JUGGLE_QUERY_ACK, &frame);
  struct juggle_query_ack ack;
  assert_true(juggle_read_query_ack(frame.body, &ack));
  assert_int_equal(ack.code, JUGGLE_OK);
  return ack.timestamp_ms;
}

static void pull(struct member *member) {
  uint8_t data[64];
  struct juggle_room_sync sync = {.room_id = view_str("room"), .sync_time_ms = member->cursor};
  size_t len = (size_t)(juggle_write_room_sync(data, &sync) - data);
  test_send_request(&member->client, JUGGLE_QUERY, 2, "c_sync_msgs", "room", data, len);
  member->pulling = true;
  member->again = false;
}

static void noticed(struct member *member, struct view body) {
  struct juggle_request request;
  struct juggle_notify notify;
  assert_true(juggle_read_request(body, &request));
  assert_true(view_is(request.topic, "ntf"));
  assert_true(juggle_read_notify(request.data, &notify));
  assert_int_equal(notify.type, JUGGLE_NOTIFY_ROOM_MSG);
  assert_true(view_is(notify.room_id, "room"));
  if (notify.sync_time_ms <= member->cursor) return;
  if (member->pulling)
    member->again = true;
  else
    pull(member);
}

static void pulled(struct member *member, struct view body) {
  struct juggle_query_ack ack;
  assert_true(juggle_read_query_ack(body, &ack));
  assert_int_equal(ack.code, JUGGLE_OK);
  struct juggle_set_reader set = juggle_set_reader_of(ack.data);
  struct view raw;
  while (juggle_set_next(&set, &raw)) {
    struct juggle_down_msg msg;
    assert_true(juggle_read_down_msg(raw, &msg));
    assert_int_equal(msg.channel, JUGGLE_CHATROOM);
    assert_true(view_is(msg.target_id, "room"));
    assert_true(msg.msg_time_ms > member->cursor);
    member->cursor = msg.msg_time_ms;
    char text[16] = "";
    assert_true(msg.content.len < sizeof text);
    memcpy(text, msg.content.data, msg.content.len);
    int number = (int)strtol(text, NULL, 10);
    if (member->gaps)
      assert_true(number >= member->next);
    else
      assert_int_equal(number, member->next);
    member->next = number + 1;
    member->got++;
  }
  assert_false(set.bad);
  member->pulling = false;
  if (member->again) pull(member);
}

static void take(struct member *member) {
  struct test_frame frame;
  if (!test_receive(&member->client, &frame)) fail_msg("a member's connection ended");
  if (frame.envelope.cmd == JUGGLE_PUBLISH)
    noticed(member, frame.body);
  else if (frame.envelope.cmd == JUGGLE_QUERY_ACK)
    pulled(member, frame.body);
}

/* Serves the members from first on until each has seen the message before `next`. */
static void run_until(int first, int next) {
  uint64_t deadline_ns = clock_now_ns() + 30 * NS_PER_SEC;
  for (;;) {
    struct pollfd waiting[MEMBERS];
    bool all = true;
    for (int i = first; i < MEMBERS; i++) {
      waiting[i - first] = (struct pollfd){.fd = members[i].client.fd, .events = POLLIN};
      all = all && members[i].next == next;
    }
    if (all) return;
    if (clock_now_ns() > deadline_ns) fail_msg("not every member got message %d", next - 1);
    poll(waiting, (nfds_t)(MEMBERS - first), 100);
    for (int i = first; i < MEMBERS; i++)
      if (waiting[i - first].revents || members[i].client.consumed < members[i].client.in.len) take(&members[i]);
  }
}

static void say(struct test_client *speaker, int number) {
  char text[16];
  snprintf(text, sizeof text, "%d", number);
  test_publish_flags(speaker, number + 1, "c_msg", "room", text, text, 0);
  struct juggle_publish_ack ack;
  test_expect_publish_ack(speaker, &ack);
  assert_int_equal(ack.code, JUGGLE_OK);
  assert_int_equal(ack.msg_seq_no, number + 1);
  assert_int_equal(ack.msg_id.len, JUGGLE_MSG_ID_LEN);
}

static void members_that_read_get_everything_and_one_that_does_not_is_counted(void **state) {
  (void)state;
  start(HISTORY);
  struct test_client speaker;
  test_login_as(&speaker, &server, "speaker", true);
  join(&speaker, "room");
  char token[JUGGLE_TOKEN_MAX];
  test_register(&server, "crowd", token);
  for (int i = 0; i < MEMBERS; i++) {
    members[i] = (struct member){0};
    assert_int_equal(test_try_login(&members[i].client, server.config.ws_port, token, "Web", i % 2), JUGGLE_OK);
    members[i].cursor = join(&members[i].client, "room");
  }
  assert_int_equal(metric("rooms"), 1);
  assert_int_equal(metric("room_members"), MEMBERS + 1);
  for (int number = 0; number < MESSAGES; number++) {
    say(&speaker, number);
    /* Members 1 and up follow in steps that the history covers; member 0 sleeps. */
    if (number % (HISTORY / 2) == HISTORY / 2 - 1) run_until(1, number + 1);
  }
  for (int i = 1; i < MEMBERS; i++)
    assert_int_equal(members[i].got, MESSAGES);
  assert_int_equal(metric("room_dropped"), MESSAGES - HISTORY);
  assert_int_equal(metric("room_messages"), MESSAGES);

  members[0].gaps = true;
  run_until(0, MESSAGES);
  assert_int_equal(members[0].got, HISTORY);
  assert_int_equal(metric("room_pulled"), (MEMBERS - 1) * MESSAGES + HISTORY);
  assert_int_equal(metric("room_dropped"), MESSAGES - HISTORY);
  assert_true(metric("room_notices_written") >= MEMBERS);
  for (int i = 0; i < MEMBERS; i++)
    test_close(&members[i].client);
  test_close(&speaker);
}

/* ---- HTTP ---- */

static void expect_in_info(const char *room, const char *what) {
  char path[128];
  snprintf(path, sizeof path, "/apigateway/chatrooms/info?chat_id=%s", room);
  int status;
  char *text = test_api(&server, "GET", path, NULL, &status);
  if (!strstr(text, what)) fail_msg("%s is not in %s", what, text);
  free(text);
}

static void the_api_makes_shows_and_destroys(void **state) {
  (void)state;
  start(0);
  expect_in_info("room", "\"code\":14005");
  test_api_ok(&server, "/apigateway/chatrooms/create", "{\"chat_id\":\"room\",\"chat_name\":\"The Room\"}");
  struct test_client alice;
  test_login_as(&alice, &server, "alice", true);
  join(&alice, "room");
  expect_in_info("room", "\"chat_name\":\"The Room\"");
  expect_in_info("room", "\"member_count\":1");
  expect_in_info("room", "\"member_id\":\"alice\"");
  expect_in_info("room", "\"member_name\":\"N-alice\"");
  test_api_ok(&server, "/apigateway/chatrooms/destroy", "{\"chat_id\":\"room\"}");
  struct test_push push;
  test_expect_push(&alice, "ntf", &push);
  struct juggle_notify notify;
  assert_true(juggle_read_notify(push.request.data, &notify));
  assert_int_equal(notify.type, JUGGLE_NOTIFY_ROOM_DESTROYED);
  assert_true(view_is(notify.room_id, "room"));
  expect_in_info("room", "\"code\":14005");
  int status;
  char *text = test_api(&server, "POST", "/apigateway/chatrooms/create", "{\"chat_name\":\"no id\"}", &status);
  assert_int_equal(status, 400);
  assert_non_null(strstr(text, "\"code\":10007"));
  free(text);
  test_close(&alice);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(members_that_read_get_everything_and_one_that_does_not_is_counted, stop),
      cmocka_unit_test_teardown(the_api_makes_shows_and_destroys, stop),
  };
  return cmocka_run_group_tests_name("chatrooms", tests, NULL, NULL);
}
