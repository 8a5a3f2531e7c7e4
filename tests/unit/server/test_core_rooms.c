/* Chatrooms in the core: membership, the history that members pull from, notices and what is lost. */
#include "core_rig.h"

static int setup_with(void **state, uint32_t history) {
  struct rig *rig = calloc(1, sizeof *rig);
  assert_non_null(rig);
  *rig = (struct rig){.next_slot = 1, .next_index = 1};
  snprintf(rig->folder, sizeof rig->folder, "/tmp/muster-core-XXXXXX");
  assert_non_null(mkdtemp(rig->folder));
  rig->config.data_dir = rig->folder;
  rig->config.ack = ACK_DURABLE;
  rig->config.app_key = "benchapp";
  rig->config.app_secret = "secret";
  rig->config.chatroom_history = history;
  rig_open(rig);
  *state = rig;
  return 0;
}

static int setup(void **state) {
  return setup_with(state, 0);
}

static int setup_short_history(void **state) {
  return setup_with(state, 5);
}

static int teardown(void **state) {
  rig_end(*state);
  free(*state);
  return 0;
}

struct answer {
  int32_t code;
  int64_t time_ms;
};

static struct answer room_query(
    struct rig *rig, struct session_ref from, const char *topic, const char *room, bool auto_create) {
  uint8_t data[128];
  struct juggle_room_request request = {.room_id = view_str(room), .auto_create = auto_create};
  size_t len = (size_t)(juggle_write_room_request(data, &request) - data);
  struct out *out = rig_query(rig, from, topic, room, view_of(data, len));
  struct answer answer = {out->code, out->timestamp_ms};
  out_free(out);
  return answer;
}

static int64_t join(struct rig *rig, struct session_ref from, const char *room) {
  struct answer answer = room_query(rig, from, "c_join", room, true);
  assert_int_equal(answer.code, JUGGLE_OK);
  return answer.time_ms;
}

static struct rig_ack say(struct rig *rig, struct session_ref from, const char *room, const char *content) {
  return rig_publish(rig, from, "c_msg", room, content, 0, "");
}

static int32_t pull(struct rig *rig, struct session_ref from, const char *room, int64_t after_ms, int32_t count,
    struct rig_page *page) {
  uint8_t data[128];
  struct juggle_room_sync sync = {.room_id = view_str(room), .sync_time_ms = after_ms, .count = count};
  size_t len = (size_t)(juggle_write_room_sync(data, &sync) - data);
  struct out *out = rig_query(rig, from, "c_sync_msgs", room, view_of(data, len));
  int32_t code = out->code;
  assert_false(out->is_sync);
  page->count = 0;
  if (code == JUGGLE_OK) rig_read_page(out_data(out), page);
  out_free(out);
  return code;
}

/* The next fan-out of a gateway is a notice of that type and room for so many sessions. */
static void expect_notice(struct rig *rig, uint32_t gateway, int32_t type, const char *room, uint32_t targets) {
  struct out *out = rig_next_of(rig, gateway, OUT_FAN_OUT);
  assert_int_equal(out->message->notice, type);
  assert_true(view_is(view_of(out->message->bytes, out->message->head_len), room));
  assert_int_equal(out->targets, targets);
  assert_true(out_targets(out)->msg_time_ms > 0);
  out_free(out);
}

static uint64_t value_of(const atomic_uint_fast64_t *counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

static void members_are_noticed_and_pull(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  join(rig, alice, "room");
  int64_t cursor = join(rig, bob, "room");
  struct rig_ack first = say(rig, alice, "room", "one");
  assert_int_equal(first.code, JUGGLE_OK);
  assert_int_equal(first.seq, 1);
  assert_int_equal(strlen(first.msg_id), JUGGLE_MSG_ID_LEN);
  assert_int_equal(strlen(first.uid), 22);
  assert_true(first.timestamp_ms > cursor);
  expect_notice(rig, 1, JUGGLE_NOTIFY_ROOM_MSG, "room", 1);
  assert_int_equal(say(rig, alice, "room", "two").seq, 2);
  rig_expect_nothing(rig, 0); /* the sender is not told of its own */
  rig_expect_nothing(rig, 1); /* one notice until bob pulls */

  struct rig_page page;
  assert_int_equal(pull(rig, bob, "room", cursor, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 2);
  assert_string_equal(page.messages[0].content, "one");
  assert_string_equal(page.messages[0].msg_id, first.msg_id);
  assert_string_equal(page.messages[0].sender, "alice");
  assert_string_equal(page.messages[0].target, "room");
  assert_int_equal(page.messages[0].channel, JUGGLE_CHATROOM);
  assert_int_equal(page.messages[0].time_ms, first.timestamp_ms);
  assert_false(page.messages[0].is_send);
  assert_true(page.messages[1].time_ms > page.messages[0].time_ms);
  assert_int_equal(pull(rig, bob, "room", page.messages[1].time_ms, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 0);
  say(rig, alice, "room", "three");
  expect_notice(rig, 1, JUGGLE_NOTIFY_ROOM_MSG, "room", 1);
}

static void refusals(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  struct rig_page page;
  assert_int_equal(room_query(rig, alice, "c_join", "none", false).code, JUGGLE_ROOM_UNKNOWN);
  assert_int_equal(room_query(rig, alice, "c_quit", "none", false).code, JUGGLE_ROOM_UNKNOWN);
  assert_int_equal(say(rig, alice, "none", "x").code, JUGGLE_ROOM_UNKNOWN);
  assert_int_equal(pull(rig, alice, "none", 0, 0, &page), JUGGLE_ROOM_UNKNOWN);
  join(rig, alice, "room");
  struct rig_ack ack = say(rig, bob, "room", "x");
  assert_int_equal(ack.code, JUGGLE_ROOM_NOT_MEMBER);
  assert_string_equal(ack.msg_id, "");
  assert_int_equal(pull(rig, bob, "room", 0, 0, &page), JUGGLE_ROOM_NOT_MEMBER);
  assert_int_equal(room_query(rig, bob, "c_quit", "room", false).code, JUGGLE_ROOM_NOT_MEMBER);
  struct out *out = rig_query(rig, alice, "c_join", "room", view_of((const uint8_t *)"\x0a\x05x", 3));
  assert_int_equal(out->code, JUGGLE_MSG_PARAMETER);
  out_free(out);
  char long_id[80];
  memset(long_id, 'r', sizeof long_id);
  long_id[sizeof long_id - 1] = '\0';
  assert_int_equal(room_query(rig, alice, "c_join", long_id, true).code, JUGGLE_ROOM_DEFAULT);
}

static void membership_ends_with_quit_and_with_the_session(void **state) {
  struct rig *rig = *state;
  const struct core_stats *stats = core_stats(rig->core);
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1),
                     carol = rig_user(rig, "carol", 1);
  join(rig, alice, "room");
  join(rig, bob, "room");
  join(rig, bob, "room"); /* again: nothing changes */
  join(rig, carol, "room");
  assert_int_equal(value_of(&stats->room_members), 3);
  assert_int_equal(room_query(rig, bob, "c_quit", "room", false).code, JUGGLE_OK);
  core_post_logout(rig->core, carol);
  rig_settle(rig);
  assert_int_equal(value_of(&stats->room_members), 1);
  assert_int_equal(say(rig, alice, "room", "alone").code, JUGGLE_OK);
  rig_expect_nothing(rig, 1);
  /* A room that nobody made by the API goes with its last member. */
  assert_int_equal(value_of(&stats->rooms), 1);
  core_post_logout(rig->core, alice);
  rig_settle(rig);
  assert_int_equal(value_of(&stats->rooms), 0);
  assert_int_equal(room_query(rig, bob, "c_join", "room", false).code, JUGGLE_ROOM_UNKNOWN);
}

static void join_and_quit_work_as_publishes(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0);
  uint8_t data[64];
  struct juggle_room_request request = {.room_id = view_str("room"), .auto_create = true};
  struct view body = view_of(data, (size_t)(juggle_write_room_request(data, &request) - data));
  assert_int_equal(core_post_publish(rig->core, alice, 7, view_str("c_join"), view_str("room"), body), STATUS_OK);
  assert_int_equal(rig_ack(rig, 0).code, JUGGLE_OK);
  assert_int_equal(say(rig, alice, "room", "hello").code, JUGGLE_OK);
  assert_int_equal(core_post_publish(rig->core, alice, 8, view_str("c_quit"), view_str("room"), body), STATUS_OK);
  assert_int_equal(rig_ack(rig, 0).code, JUGGLE_OK);
  assert_int_equal(say(rig, alice, "room", "hello").code, JUGGLE_ROOM_UNKNOWN);
}

static void repeated_publish_enters_once(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  join(rig, alice, "room");
  join(rig, bob, "room");
  struct rig_ack first = rig_publish(rig, alice, "c_msg", "room", "once", 0, "same");
  struct rig_ack again = rig_publish(rig, alice, "c_msg", "room", "once", 0, "same");
  assert_int_equal(again.code, JUGGLE_OK);
  assert_string_equal(again.msg_id, first.msg_id);
  assert_int_equal(again.seq, first.seq);
  struct rig_page page;
  assert_int_equal(pull(rig, bob, "room", 0, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 1);
}

static void a_users_other_session_gets_a_copy(void **state) {
  struct rig *rig = *state;
  struct session_ref here = rig_user(rig, "alice", 0), there = rig_user(rig, "alice", 1);
  join(rig, here, "room");
  join(rig, there, "room");
  say(rig, here, "room", "mine");
  struct rig_page page;
  assert_int_equal(pull(rig, there, "room", 0, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 1);
  assert_true(page.messages[0].is_send);
  assert_int_equal(pull(rig, here, "room", 0, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 0);
}

static void a_page_that_is_not_the_last_is_followed_by_a_notice(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  join(rig, alice, "room");
  join(rig, bob, "room");
  for (int i = 0; i < 5; i++)
    say(rig, alice, "room", "x");
  expect_notice(rig, 1, JUGGLE_NOTIFY_ROOM_MSG, "room", 1);
  struct rig_page page;
  assert_int_equal(pull(rig, bob, "room", 0, 3, &page), JUGGLE_OK);
  assert_int_equal(page.count, 3);
  expect_notice(rig, 1, JUGGLE_NOTIFY_ROOM_MSG, "room", 1);
  assert_int_equal(pull(rig, bob, "room", page.messages[2].time_ms, 3, &page), JUGGLE_OK);
  assert_int_equal(page.count, 2);
  rig_expect_nothing(rig, 1);
}

static void what_the_history_pushes_out_is_counted(void **state) {
  struct rig *rig = *state;
  const struct core_stats *stats = core_stats(rig->core);
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1),
                     carol = rig_user(rig, "carol", 1);
  join(rig, alice, "room");
  join(rig, bob, "room");
  join(rig, carol, "room");
  struct rig_page page;
  for (int i = 0; i < 8; i++) {
    char text[16];
    snprintf(text, sizeof text, "%d", i);
    say(rig, alice, "room", text);
    if (i == 3) assert_int_equal(pull(rig, bob, "room", 0, 0, &page), JUGGLE_OK);
  }
  /* Five of eight are kept: carol has lost three, bob and the sender none. */
  assert_int_equal(value_of(&stats->room_dropped), 3);
  assert_int_equal(pull(rig, carol, "room", 0, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 5);
  assert_string_equal(page.messages[0].content, "3");
  assert_string_equal(page.messages[4].content, "7");
  say(rig, bob, "room", "8"); /* pushes 3 out, which all have seen or sent */
  assert_int_equal(value_of(&stats->room_dropped), 3);
  say(rig, bob, "room", "9"); /* pushes 4 out, which bob has not */
  assert_int_equal(value_of(&stats->room_dropped), 4);
  assert_int_equal(value_of(&stats->room_messages), 10);
  assert_int_equal(value_of(&stats->room_pulled), 4 + 5);
}

/* ---- The API's calls ---- */

struct room_call {
  const char *id, *name;
  struct core_room info;
  uint32_t visited;
  char first[80], info_name[80];
};

static int32_t do_create(struct core *core, void *argument) {
  const struct room_call *call = argument;
  return core_room_create(core, view_str("benchapp"), view_str(call->id), view_str(call->name));
}

static int32_t do_destroy(struct core *core, void *argument) {
  const struct room_call *call = argument;
  return core_room_destroy(core, view_str("benchapp"), view_str(call->id));
}

static void visit(void *context, const struct core_room_member *member) {
  struct room_call *call = context;
  if (!call->visited++) rig_text(call->first, sizeof call->first, member->member_id);
  assert_true(member->joined_ms > 0);
}

static int32_t do_info(struct core *core, void *argument) {
  struct room_call *call = argument;
  int32_t code = core_room_info(core, view_str("benchapp"), view_str(call->id), &call->info, visit, call);
  if (code == JUGGLE_OK) rig_text(call->info_name, sizeof call->info_name, call->info.name);
  return code;
}

static int32_t run(
    struct rig *rig, int32_t (*fn)(struct core *core, void *argument), struct room_call *call, const char *id) {
  int32_t code;
  call->id = id;
  assert_int_equal(core_call(rig->core, fn, call, &code), STATUS_OK);
  return code;
}

static void api_makes_shows_and_destroys(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), twice = rig_user(rig, "alice", 1),
                     bob = rig_user(rig, "bob", 1);
  struct room_call call = {.name = "The Room"};
  assert_int_equal(run(rig, do_info, &call, "room"), JUGGLE_ROOM_UNKNOWN);
  assert_int_equal(run(rig, do_create, &call, "room"), JUGGLE_OK);
  assert_int_equal(run(rig, do_create, &call, "room"), JUGGLE_OK);
  assert_int_equal(room_query(rig, alice, "c_join", "room", false).code, JUGGLE_OK);
  assert_int_equal(room_query(rig, twice, "c_join", "room", false).code, JUGGLE_OK);
  assert_int_equal(room_query(rig, bob, "c_join", "room", false).code, JUGGLE_OK);
  assert_int_equal(run(rig, do_info, &call, "room"), JUGGLE_OK);
  assert_int_equal(call.info.member_count, 2);
  assert_int_equal(call.visited, 2);
  assert_string_equal(call.first, "alice");
  assert_string_equal(call.info_name, "The Room");

  assert_int_equal(room_query(rig, bob, "c_quit", "room", false).code, JUGGLE_OK);
  assert_int_equal(run(rig, do_destroy, &call, "room"), JUGGLE_OK);
  expect_notice(rig, 0, JUGGLE_NOTIFY_ROOM_DESTROYED, "room", 1);
  expect_notice(rig, 1, JUGGLE_NOTIFY_ROOM_DESTROYED, "room", 1);
  assert_int_equal(say(rig, alice, "room", "x").code, JUGGLE_ROOM_UNKNOWN);
  assert_int_equal(run(rig, do_destroy, &call, "room"), JUGGLE_ROOM_UNKNOWN);
  assert_int_equal(value_of(&core_stats(rig->core)->room_members), 0);
}

static void rooms_of_a_session_are_bounded(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0);
  int32_t code = JUGGLE_OK;
  int joined = 0;
  while (code == JUGGLE_OK && joined < 1000) {
    char id[24];
    snprintf(id, sizeof id, "room-%d", joined);
    code = room_query(rig, alice, "c_join", id, true).code;
    joined += code == JUGGLE_OK;
  }
  assert_int_equal(code, JUGGLE_ROOM_DEFAULT);
  assert_int_equal(joined, 32);
  assert_int_equal(value_of(&core_stats(rig->core)->rooms), 32);
}

/* The sanitizers watch the sum of life time and clock. */
static void a_life_without_end_is_carried(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0);
  join(rig, alice, "room");
  uint8_t data[64];
  const struct juggle_up_msg up = {.content = view_str("x"), .life_time_ms = INT64_MAX};
  size_t len = (size_t)(juggle_write_up_msg(data, &up) - data);
  enum status status = core_post_publish(rig->core, alice, 1, view_str("c_msg"), view_str("room"), view_of(data, len));
  assert_int_equal(status, STATUS_OK);
  assert_int_equal(rig_ack(rig, 0).code, JUGGLE_OK);
}

static void a_big_room_shares_one_message(void **state) {
  struct rig *rig = *state;
  enum { MEMBERS = 300 };
  char token[JUGGLE_TOKEN_MAX];
  rig_register(rig, "benchapp", "crowd", false, token);
  struct session_ref speaker = rig_user(rig, "speaker", 0);
  join(rig, speaker, "room");
  for (uint32_t i = 0; i < MEMBERS; i++) {
    struct session_ref ref = rig_ref(rig, (uint16_t)(i % RIG_GATEWAYS));
    assert_int_equal(rig_login_as(rig, ref, "benchapp", token, "Web", "dev", NULL), JUGGLE_OK);
    join(rig, ref, "room");
  }
  rig_post(rig, speaker, "c_msg", "room", "to all", 0, "");
  struct out *first = rig_next_of(rig, 0, OUT_FAN_OUT), *second = rig_next_of(rig, 1, OUT_FAN_OUT);
  assert_ptr_equal(first->message, second->message);
  assert_int_equal(first->targets, MEMBERS / 2);
  assert_int_equal(second->targets, MEMBERS / 2);
  out_free(first);
  out_free(second);
}

int main(void) {
#define ROOMS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
  const struct CMUnitTest tests[] = {
      ROOMS(members_are_noticed_and_pull),
      ROOMS(refusals),
      ROOMS(membership_ends_with_quit_and_with_the_session),
      ROOMS(join_and_quit_work_as_publishes),
      ROOMS(repeated_publish_enters_once),
      ROOMS(a_users_other_session_gets_a_copy),
      ROOMS(a_page_that_is_not_the_last_is_followed_by_a_notice),
      cmocka_unit_test_setup_teardown(what_the_history_pushes_out_is_counted, setup_short_history, teardown),
      ROOMS(api_makes_shows_and_destroys),
      ROOMS(rooms_of_a_session_are_bounded),
      ROOMS(a_life_without_end_is_carried),
      ROOMS(a_big_room_shares_one_message),
  };
  return cmocka_run_group_tests_name("core_rooms", tests, NULL, NULL);
}
