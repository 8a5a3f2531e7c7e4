#include "unit/server/core_rig.h"

#include "base/rng.h"

#include <pthread.h>
#include <semaphore.h>

static int setup(void **state) {
  struct rig *rig = malloc(sizeof *rig);
  rig_start(rig);
  *state = rig;
  return 0;
}

static int teardown(void **state) {
  rig_end(*state);
  free(*state);
  return 0;
}

/* ---- Login ---- */

static void login_codes(void **state) {
  struct rig *rig = *state;
  char token[JUGGLE_TOKEN_MAX];
  rig_register(rig, "benchapp", "alice", false, token);
  struct session_ref ref = rig_ref(rig, 0);
  assert_int_equal(rig_login_as(rig, ref, "benchapp", token, "web", "d", NULL), JUGGLE_PLATFORM_BAD);
  assert_int_equal(rig_login_as(rig, ref, "benchapp", "!", "Web", "d", NULL), JUGGLE_TOKEN_BAD);
  assert_int_equal(rig_login_as(rig, ref, "benchapp", "", "Web", "d", NULL), JUGGLE_TOKEN_BAD);
  assert_int_equal(rig_login_as(rig, ref, "nobody", token, "Web", "d", NULL), JUGGLE_APP_UNKNOWN);
  assert_int_equal(rig_login_as(rig, ref, "benchapp", "CghiZW5jaGFwcBoQxUUTN0KvwqD692ba434Daw==", "Web", "d", NULL),
      JUGGLE_TOKEN_BAD);
  bool pending = true;
  assert_int_equal(rig_login_as(rig, ref, "benchapp", token, "Web", "d", &pending), JUGGLE_OK);
  assert_false(pending);
  assert_int_equal(core_stats(rig->core)->sessions, 1);
}

static void token_of_another_tenant_is_refused(void **state) {
  struct rig *rig = *state;
  struct rig_app app = {.key = "other"};
  int32_t code;
  assert_int_equal(core_call(rig->core, rig_do_app, &app, &code), STATUS_OK);
  assert_true(code == JUGGLE_OK && app.created);
  char token[JUGGLE_TOKEN_MAX];
  rig_register(rig, "other", "alice", false, token);
  assert_int_equal(rig_login_as(rig, rig_ref(rig, 0), "benchapp", token, "Web", "d", NULL), JUGGLE_TOKEN_BAD);
  assert_int_equal(rig_login_as(rig, rig_ref(rig, 0), "other", token, "Web", "d", NULL), JUGGLE_OK);
}

static void phones_kick_phones(void **state) {
  struct rig *rig = *state;
  char token[JUGGLE_TOKEN_MAX];
  rig_register(rig, "benchapp", "alice", false, token);
  struct session_ref phone = rig_ref(rig, 0), same = rig_ref(rig, 0), web = rig_ref(rig, 1), pc = rig_ref(rig, 1);
  assert_int_equal(rig_login_as(rig, phone, "benchapp", token, "Android", "d1", NULL), JUGGLE_OK);
  assert_int_equal(rig_login_as(rig, same, "benchapp", token, "Android", "d1", NULL), JUGGLE_OK);
  assert_int_equal(rig_login_as(rig, web, "benchapp", token, "Web", "d2", NULL), JUGGLE_OK);
  assert_int_equal(rig_login_as(rig, pc, "benchapp", token, "PC", "d3", NULL), JUGGLE_OK);
  rig_expect_nothing(rig, 0);
  rig_expect_nothing(rig, 1);
  assert_int_equal(rig_login_as(rig, rig_ref(rig, 1), "benchapp", token, "iOS", "d4", NULL), JUGGLE_OK);
  for (int i = 0; i < 2; i++) {
    struct out *out = rig_next(rig, 0);
    assert_int_equal(out->kind, OUT_KICK);
    assert_int_equal(out->code, JUGGLE_KICKED);
    assert_true(out->session.slot == phone.slot || out->session.slot == same.slot);
    out_free(out);
  }
  rig_expect_nothing(rig, 0);
  assert_int_equal(core_stats(rig->core)->sessions, 3);
}

static int32_t kick_web(struct core *core, void *argument) {
  (void)argument;
  struct view platform = view_str("Web");
  return core_user_kick(core, view_str("benchapp"), view_str("alice"), &platform, 1, NULL, 0, view_str("bye"));
}

static void api_kicks_by_platform(void **state) {
  struct rig *rig = *state;
  char token[JUGGLE_TOKEN_MAX];
  struct session_ref web = rig_user(rig, "alice", 0);
  rig_register(rig, "benchapp", "alice", false, token);
  assert_int_equal(rig_login_as(rig, rig_ref(rig, 1), "benchapp", token, "PC", "d3", NULL), JUGGLE_OK);
  int32_t code;
  assert_int_equal(core_call(rig->core, kick_web, NULL, &code), STATUS_OK);
  struct out *out = rig_next(rig, 0);
  assert_int_equal(out->kind, OUT_KICK);
  assert_int_equal(out->session.slot, web.slot);
  assert_true(view_is(out_text(out), "bye"));
  out_free(out);
  rig_expect_nothing(rig, 1);
}

static void logout_and_reused_slot(void **state) {
  struct rig *rig = *state;
  struct session_ref bob = rig_user(rig, "bob", 1);
  struct session_ref alice = rig_user(rig, "alice", 0);
  core_post_logout(rig->core, (struct session_ref){bob.gateway, bob.slot, bob.generation + 1}); /* someone else's */
  rig_publish(rig, alice, "p_msg", "bob", "one", 10, "");
  out_free(rig_next_of(rig, 1, OUT_FAN_OUT));
  core_post_logout(rig->core, bob);
  rig_publish(rig, alice, "p_msg", "bob", "two", 10, "");
  rig_expect_nothing(rig, 1);
  char token[JUGGLE_TOKEN_MAX];
  rig_register(rig, "benchapp", "bob", false, token);
  bool pending = false;
  assert_int_equal(rig_login_as(rig, bob, "benchapp", token, "Web", "d", &pending), JUGGLE_OK);
  assert_true(pending);
  struct rig_page page;
  assert_int_equal(rig_sync(rig, bob, "bob", 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 2);
  core_post_logout(rig->core, bob);
  assert_int_equal(rig_login_as(rig, bob, "benchapp", token, "Web", "d", &pending), JUGGLE_OK);
  assert_false(pending);
}

/* ---- Private messages ---- */

static void private_message_arrives(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  struct rig_ack ack = rig_publish(rig, alice, "p_msg", "bob", "hello", 10, "c-1");
  assert_int_equal(ack.code, JUGGLE_OK);
  assert_int_equal(ack.seq, 1);
  assert_int_equal(strlen(ack.msg_id), JUGGLE_MSG_ID_LEN);
  assert_string_equal(ack.uid, "c-1");
  struct out *out = rig_next_of(rig, 1, OUT_FAN_OUT);
  assert_int_equal(out->targets, 1);
  const struct fan_out_target *target = out_targets(out);
  assert_int_equal(target->slot, bob.slot);
  assert_int_equal(target->generation, bob.generation);
  assert_false(target->is_copy);
  assert_int_equal(target->unread_index, 1);
  struct rig_message message = rig_assemble(out->message, target);
  assert_string_equal(message.content, "hello");
  assert_string_equal(message.target, "alice");
  assert_string_equal(message.sender, "alice");
  assert_string_equal(message.msg_id, ack.msg_id);
  assert_int_equal(message.seq, 1);
  assert_int_equal(message.channel, JUGGLE_PRIVATE);
  assert_false(message.is_send);
  out_free(out);
  ack = rig_publish(rig, bob, "p_msg", "alice", "well", 10, "");
  assert_int_equal(ack.seq, 2);
  assert_int_equal(strlen(ack.uid), 22);
}

static void other_devices_get_a_copy(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), other = rig_user(rig, "alice", 0);
  rig_publish(rig, alice, "p_msg", "bob", "hello", 10, "");
  struct out *out = rig_next_of(rig, 0, OUT_FAN_OUT);
  assert_int_equal(out->targets, 1);
  assert_int_equal(out_targets(out)->slot, other.slot);
  assert_true(out_targets(out)->is_copy);
  struct rig_message message = rig_assemble(out->message, out_targets(out));
  assert_true(message.is_send);
  assert_string_equal(message.target, "bob");
  out_free(out);
  rig_expect_nothing(rig, 0);
  /* To oneself: the other device alone hears of it. */
  struct rig_ack ack = rig_publish(rig, alice, "p_msg", "alice", "note", 10, "");
  assert_int_equal(ack.code, JUGGLE_OK);
  out = rig_next_of(rig, 0, OUT_FAN_OUT);
  assert_int_equal(out_targets(out)->slot, other.slot);
  out_free(out);
  rig_expect_nothing(rig, 0);
}

static void state_messages_leave_no_trace(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  struct rig_ack ack = rig_publish(rig, alice, "p_msg", "bob", "typing", JUGGLE_FLAG_STATE | 10, "");
  assert_int_equal(ack.code, JUGGLE_OK);
  assert_int_equal(ack.seq, -1);
  struct out *out = rig_next_of(rig, 1, OUT_FAN_OUT);
  assert_true(out->message->state);
  out_free(out);
  struct rig_page page;
  assert_int_equal(rig_sync_box(rig, bob, "bob", 0, true, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 0);
  assert_int_equal(rig_history(rig, bob, JUGGLE_PRIVATE, "alice", 0, 10, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 0);
  assert_int_equal(rig_publish(rig, alice, "p_msg", "bob", "text", 10, "").seq, 1);
}

static void unstored_messages_reach_the_inbox_only(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  assert_int_equal(rig_publish(rig, alice, "p_msg", "bob", "plain", 0, "").seq, -1);
  struct rig_page page;
  assert_int_equal(rig_sync(rig, bob, "bob", 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 1);
  assert_int_equal(rig_history(rig, bob, JUGGLE_PRIVATE, "alice", 0, 10, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 0);
}

static void refusals(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0);
  struct rig_ack ack = rig_publish(rig, alice, "x_msg", "room", "x", 10, "");
  assert_int_equal(ack.code, JUGGLE_TOPIC_UNSUPPORTED);
  assert_string_equal(ack.msg_id, "");
  assert_true(ack.timestamp_ms > 0);
  assert_int_equal(rig_publish(rig, alice, "s_msg", "bob", "x", 10, "").code, JUGGLE_TOPIC_UNSUPPORTED);
  assert_int_equal(rig_publish(rig, alice, "", "bob", "x", 10, "").code, JUGGLE_TOPIC_MISSING);
  ack = rig_publish(rig, alice, "p_msg", "", "x", 10, "");
  assert_int_equal(ack.code, JUGGLE_TOPIC_MISSING);
  assert_int_equal(ack.timestamp_ms, 0);
  char long_id[80] = {0};
  memset(long_id, 'x', sizeof long_id - 1);
  assert_int_equal(rig_publish(rig, alice, "p_msg", long_id, "x", 10, "").code, JUGGLE_MSG_PARAMETER);
  assert_int_equal(
      core_post_publish(rig->core, alice, 7, view_str("p_msg"), view_str("bob"), view_of("\xff", 1)), STATUS_OK);
  struct out *out = rig_next_of(rig, 0, OUT_PUBLISH_ACK);
  assert_int_equal(out->code, JUGGLE_MSG_PARAMETER);
  assert_int_equal(out->index, 7);
  out_free(out);
  /* Empty data is an empty message. */
  assert_int_equal(
      core_post_publish(rig->core, alice, 8, view_str("p_msg"), view_str("bob"), view_of(NULL, 0)), STATUS_OK);
  assert_int_equal(rig_ack(rig, 0).code, JUGGLE_OK);
  struct session_ref stranger = rig_ref(rig, 0);
  assert_int_equal(rig_publish(rig, stranger, "p_msg", "bob", "x", 10, "").code, JUGGLE_CONNECT_DEFAULT);
}

static void admins_may_send_system_messages(void **state) {
  struct rig *rig = *state;
  char token[JUGGLE_TOKEN_MAX];
  rig_register(rig, "benchapp", "root", true, token);
  struct session_ref root = rig_ref(rig, 0), bob = rig_user(rig, "bob", 1);
  assert_int_equal(rig_login_as(rig, root, "benchapp", token, "Web", "d", NULL), JUGGLE_OK);
  assert_int_equal(rig_publish(rig, root, "s_msg", "bob", "notice", 10, "").code, JUGGLE_OK);
  struct rig_page page;
  assert_int_equal(rig_history(rig, bob, JUGGLE_SYSTEM, "root", 0, 10, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 1);
  assert_int_equal(page.messages[0].channel, JUGGLE_SYSTEM);
  assert_int_equal(rig_publish(rig, root, "g_msg", "nowhere", "x", 10, "").code, JUGGLE_GROUP_UNKNOWN);
}

/* ---- Groups ---- */

static void group_message_reaches_members(void **state) {
  struct rig *rig = *state;
  static const char *const members[] = {"alice", "bob", "carol", "bob"};
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 0);
  struct session_ref carol = rig_user(rig, "carol", 1), mallory = rig_user(rig, "mallory", 1);
  rig_make_group(rig, "grp1", members, 4);
  assert_int_equal(rig_publish(rig, mallory, "g_msg", "grp1", "x", 10, "").code, JUGGLE_GROUP_NOT_MEMBER);
  assert_int_equal(rig_publish(rig, alice, "g_msg", "grp2", "x", 10, "").code, JUGGLE_GROUP_NOT_MEMBER);
  struct rig_ack ack = rig_publish(rig, alice, "g_msg", "grp1", "all", 10, "");
  assert_int_equal(ack.code, JUGGLE_OK);
  assert_int_equal(ack.member_count, 2);
  assert_int_equal(ack.seq, 1);
  struct out *first = rig_next_of(rig, 0, OUT_FAN_OUT), *second = rig_next_of(rig, 1, OUT_FAN_OUT);
  assert_ptr_equal(first->message, second->message);
  assert_int_equal(out_targets(first)->slot, bob.slot);
  assert_int_equal(out_targets(second)->slot, carol.slot);
  struct rig_message message = rig_assemble(second->message, out_targets(second));
  assert_string_equal(message.target, "grp1");
  assert_string_equal(message.sender, "alice");
  assert_int_equal(message.member_count, 2);
  out_free(first);
  message = rig_assemble(second->message, out_targets(second)); /* still alive */
  assert_string_equal(message.content, "all");
  out_free(second);
  struct rig_page page;
  assert_int_equal(rig_history(rig, mallory, JUGGLE_GROUP, "grp1", 0, 10, 0, &page), JUGGLE_GROUP_NOT_MEMBER);
  assert_int_equal(rig_history(rig, carol, JUGGLE_GROUP, "grp1", 0, 10, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 1);
}

static void directed_group_message(void **state) {
  struct rig *rig = *state;
  static const char *const members[] = {"alice", "bob", "carol"};
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  struct session_ref carol = rig_user(rig, "carol", 1);
  rig_make_group(rig, "grp1", members, 3);
  uint8_t data[256];
  uint32_t len = rig_up_msg(data, "psst", 10, "");
  uint8_t *end = pb_write_bytes_field(data + len, 8, view_str("bob"));
  end = pb_write_bytes_field(end, 8, view_str("bob"));
  end = pb_write_bytes_field(end, 8, view_str("alice"));
  end = pb_write_bytes_field(end, 8, view_str("mallory"));
  assert_int_equal(
      core_post_publish(rig->core, alice, 1, view_str("g_msg"), view_str("grp1"), view_of(data, (size_t)(end - data))),
      STATUS_OK);
  assert_int_equal(rig_ack(rig, 0).member_count, 1);
  struct out *out = rig_next_of(rig, 1, OUT_FAN_OUT);
  assert_int_equal(out->targets, 1);
  assert_int_equal(out_targets(out)->slot, bob.slot);
  out_free(out);
  struct rig_page page;
  assert_int_equal(rig_history(rig, bob, JUGGLE_GROUP, "grp1", 0, 10, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 1);
  assert_int_equal(rig_history(rig, alice, JUGGLE_GROUP, "grp1", 0, 10, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 1);
  assert_int_equal(rig_history(rig, carol, JUGGLE_GROUP, "grp1", 0, 10, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 0);
}

struct members_seen {
  uint32_t count;
  char names[8][16];
};

static void see_member(void *context, struct view member) {
  struct members_seen *seen = context;
  rig_text(seen->names[seen->count++], 16, member);
}

static int32_t change_group(struct core *core, void *argument) {
  (void)argument;
  struct view app = view_str("benchapp"), group = view_str("grp1"), gone[] = {view_str("bob"), view_str("who")};
  struct members_seen seen = {0};
  char offset[32];
  assert_int_equal(core_group_members(core, app, group, 2, "", see_member, &seen, offset), JUGGLE_OK);
  assert_int_equal(seen.count, 2);
  assert_string_equal(seen.names[0], "alice");
  assert_string_equal(seen.names[1], "bob");
  char next[32];
  assert_int_equal(core_group_members(core, app, group, 2, offset, see_member, &seen, next), JUGGLE_OK);
  assert_int_equal(seen.count, 3);
  assert_string_equal(seen.names[2], "carol");
  assert_string_equal(next, "");
  assert_int_equal(core_group_members(core, app, group, 2, "x", see_member, &seen, next), JUGGLE_API_BAD_PARAMETER);
  assert_int_equal(core_group_remove_members(core, app, group, gone, 2), JUGGLE_OK);
  struct core_group info;
  assert_int_equal(core_group_info(core, app, group, &info), JUGGLE_OK);
  assert_int_equal(info.member_count, 2);
  assert_int_equal(core_group_info(core, app, view_str("no"), &info), JUGGLE_GROUP_UNKNOWN);
  return JUGGLE_OK;
}

static int32_t dissolve(struct core *core, void *argument) {
  (void)argument;
  return core_group_dissolve(core, view_str("benchapp"), view_str("grp1"));
}

static void clear(struct rig *rig, struct session_ref from, const char *self, const char *target, int32_t channel,
    int64_t read_index) {
  uint8_t one[128], data[160];
  uint8_t *at = pb_write_bytes_field(one, 2, view_str(target));
  at = pb_write_uint_field(at, 3, (uint64_t)channel);
  at = pb_write_uint_field(at, 7, (uint64_t)read_index);
  uint8_t *end = pb_write_bytes_field(data, 1, view_of(one, (size_t)(at - one)));
  struct out *out = rig_query(rig, from, "clear_unread", self, view_of(data, (size_t)(end - data)));
  assert_int_equal(out->code, JUGGLE_OK);
  out_free(out);
}

static void leaving_a_group(void **state) {
  struct rig *rig = *state;
  static const char *const members[] = {"alice", "bob", "carol"};
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  struct session_ref carol = rig_user(rig, "carol", 1);
  rig_make_group(rig, "grp1", members, 3);
  rig_publish(rig, alice, "g_msg", "grp1", "x", 10, "");
  int32_t code;
  assert_int_equal(core_call(rig->core, change_group, NULL, &code), STATUS_OK);
  /* Bob has left: no history any more, but what he had not read he can still clear. */
  struct rig_page page;
  assert_int_equal(rig_history(rig, bob, JUGGLE_GROUP, "grp1", 0, 10, 0, &page), JUGGLE_GROUP_NOT_MEMBER);
  assert_int_equal(rig_total_unread(rig, bob, "bob"), 1);
  clear(rig, bob, "bob", "grp1", JUGGLE_GROUP, 0);
  assert_int_equal(rig_total_unread(rig, bob, "bob"), 0);
  assert_int_equal(rig_total_unread(rig, carol, "carol"), 1);
  assert_int_equal(core_call(rig->core, dissolve, NULL, &code), STATUS_OK);
  assert_int_equal(rig_total_unread(rig, carol, "carol"), 0);
}

static void group_life(void **state) {
  struct rig *rig = *state;
  static const char *const members[] = {"alice", "bob", "carol"};
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  rig_make_group(rig, "grp1", members, 3);
  int32_t code;
  assert_int_equal(core_call(rig->core, change_group, NULL, &code), STATUS_OK);
  assert_int_equal(rig_publish(rig, bob, "g_msg", "grp1", "x", 10, "").code, JUGGLE_GROUP_NOT_MEMBER);
  assert_int_equal(rig_publish(rig, alice, "g_msg", "grp1", "x", 10, "").member_count, 1);
  rig_restart(rig);
  alice = rig_user(rig, "alice", 0);
  assert_int_equal(rig_publish(rig, alice, "g_msg", "grp1", "x", 10, "").member_count, 1);
  assert_int_equal(core_call(rig->core, dissolve, NULL, &code), STATUS_OK);
  assert_int_equal(code, JUGGLE_OK);
  assert_int_equal(rig_publish(rig, alice, "g_msg", "grp1", "x", 10, "").code, JUGGLE_GROUP_NOT_MEMBER);
  assert_int_equal(core_call(rig->core, dissolve, NULL, &code), STATUS_OK);
  assert_int_equal(code, JUGGLE_GROUP_UNKNOWN);
  /* The same id again is another group, without the old one's history. */
  rig_make_group(rig, "grp1", members, 2);
  struct rig_page page;
  assert_int_equal(rig_history(rig, alice, JUGGLE_GROUP, "grp1", 0, 10, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 0);
  rig_restart(rig);
  alice = rig_user(rig, "alice", 0);
  assert_int_equal(rig_publish(rig, alice, "g_msg", "grp1", "x", 10, "").seq, 1);
}

static int32_t overfill(struct core *core, void *argument) {
  (void)argument;
  static char names[10001][8];
  static struct view members[10001];
  for (int i = 0; i < 10001; i++) {
    snprintf(names[i], sizeof names[i], "m%d", i);
    members[i] = view_str(names[i]);
  }
  struct core_group info = {.group_id = view_str("big"), .name = view_str("B")};
  assert_int_equal(core_group_add(core, view_str("benchapp"), &info, members, 10001), JUGGLE_GROUP_FULL);
  assert_int_equal(core_group_info(core, view_str("benchapp"), view_str("big"), &info), JUGGLE_OK);
  assert_int_equal(info.member_count, 0);
  return core_group_add(core, view_str("benchapp"), &info, members, 10000);
}

static void group_size_is_bounded(void **state) {
  struct rig *rig = *state;
  int32_t code;
  assert_int_equal(core_call(rig->core, overfill, NULL, &code), STATUS_OK);
  assert_int_equal(code, JUGGLE_OK);
}

/* ---- Duplicates ---- */

static void duplicates(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  struct rig_ack first = rig_publish(rig, alice, "p_msg", "bob", "one", 10, "u");
  out_free(rig_next_of(rig, 1, OUT_FAN_OUT));
  struct rig_ack again = rig_publish(rig, alice, "p_msg", "bob", "one", 10, "u");
  assert_int_equal(again.code, JUGGLE_OK);
  assert_string_equal(again.msg_id, first.msg_id);
  assert_int_equal(again.timestamp_ms, first.timestamp_ms);
  assert_int_equal(again.seq, first.seq);
  assert_string_equal(again.uid, "u");
  rig_expect_nothing(rig, 1);
  assert_int_equal(core_stats(rig->core)->duplicates, 1);
  /* No number is burnt, and nobody else's uid counts. */
  assert_int_equal(rig_publish(rig, alice, "p_msg", "bob", "two", 10, "v").seq, 2);
  assert_int_equal(rig_publish(rig, bob, "p_msg", "alice", "three", 10, "u").seq, 3);
  rig_restart(rig);
  alice = rig_user(rig, "alice", 0);
  again = rig_publish(rig, alice, "p_msg", "bob", "one", 10, "u");
  assert_string_equal(again.msg_id, first.msg_id);
  assert_int_equal(again.seq, first.seq);
  assert_int_equal(rig_publish(rig, alice, "p_msg", "bob", "four", 10, "w").seq, 4);
}

static void duplicates_stay_within_a_tenant(void **state) {
  struct rig *rig = *state;
  struct rig_app app = {.key = "other"};
  int32_t code;
  assert_int_equal(core_call(rig->core, rig_do_app, &app, &code), STATUS_OK);
  char token[JUGGLE_TOKEN_MAX];
  rig_register(rig, "other", "alice", false, token);
  struct session_ref alice = rig_user(rig, "alice", 0), stranger = rig_ref(rig, 1);
  assert_int_equal(rig_login_as(rig, stranger, "other", token, "Web", "d", NULL), JUGGLE_OK);
  struct rig_ack one = rig_publish(rig, alice, "p_msg", "bob", "one", 10, "u");
  struct rig_ack two = rig_publish(rig, stranger, "p_msg", "bob", "one", 10, "u");
  assert_string_not_equal(one.msg_id, two.msg_id);
  assert_int_equal(two.seq, 1);
}

static void duplicates_in_one_batch(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0);
  rig_user(rig, "bob", 1);
  for (int i = 0; i < 50; i++)
    rig_post(rig, alice, "p_msg", "bob", "one", 10, "same");
  struct rig_ack first = rig_ack(rig, 0);
  for (int i = 1; i < 50; i++) {
    struct rig_ack ack = rig_ack(rig, 0);
    assert_int_equal(ack.code, JUGGLE_OK);
    assert_string_equal(ack.msg_id, first.msg_id);
  }
  out_free(rig_next_of(rig, 1, OUT_FAN_OUT));
  rig_expect_nothing(rig, 1);
}

/* ---- Sync ---- */

static void receive_times_ascend_strictly(void **state) {
  struct rig *rig = *state;
  static const char *const members[] = {"alice", "bob", "carol"};
  struct session_ref alice = rig_user(rig, "alice", 0), carol = rig_user(rig, "carol", 0);
  struct session_ref bob = rig_user(rig, "bob", 1);
  rig_make_group(rig, "grp1", members, 3);
  enum { EACH = 100 };
  for (int i = 0; i < EACH; i++) {
    rig_post(rig, alice, "p_msg", "bob", "a", 10, "");
    rig_post(rig, carol, "p_msg", "bob", "c", 10, "");
    rig_post(rig, alice, "g_msg", "grp1", "g", 10, "");
  }
  int64_t last_ms = 0;
  for (uint32_t i = 0; i < 3 * EACH; i++) {
    struct out *out = rig_next_of(rig, 1, OUT_FAN_OUT);
    assert_int_equal(out->targets, 1);
    assert_true(out_targets(out)->msg_time_ms > last_ms);
    last_ms = out_targets(out)->msg_time_ms;
    out_free(out);
  }
  /* The same times come by sync, page by page, and none is missed or repeated. */
  struct rig_page page;
  uint32_t seen = 0;
  int64_t cursor_ms = 0;
  do {
    assert_int_equal(rig_sync(rig, bob, "bob", cursor_ms, &page), JUGGLE_OK);
    for (uint32_t i = 0; i < page.count; i++) {
      assert_true(page.messages[i].time_ms > cursor_ms);
      cursor_ms = page.messages[i].time_ms;
    }
    seen += page.count;
    assert_int_equal(page.is_finished, page.count < 200);
  } while (!page.is_finished);
  assert_int_equal(seen, 3 * EACH);
  assert_int_equal(cursor_ms, last_ms);
  rig_restart(rig);
  alice = rig_user(rig, "alice", 0);
  bob = rig_user(rig, "bob", 1);
  rig_publish(rig, alice, "p_msg", "bob", "after", 10, "");
  assert_int_equal(rig_sync(rig, bob, "bob", last_ms, &page), JUGGLE_OK);
  assert_int_equal(page.count, 1);
  assert_true(page.messages[0].time_ms > last_ms);
}

static void send_box(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  struct rig_ack one = rig_publish(rig, alice, "p_msg", "bob", "one", 10, "");
  rig_publish(rig, bob, "p_msg", "alice", "two", 10, "");
  rig_publish(rig, alice, "p_msg", "carol", "three", 10, "");
  struct rig_page page;
  assert_int_equal(rig_sync_box(rig, alice, "alice", 0, true, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 3);
  assert_true(page.is_finished);
  assert_true(page.messages[0].is_send && !page.messages[1].is_send && page.messages[2].is_send);
  assert_string_equal(page.messages[0].target, "bob");
  assert_string_equal(page.messages[1].target, "bob");
  assert_string_equal(page.messages[2].target, "carol");
  assert_int_equal(page.messages[0].time_ms, one.timestamp_ms);
  assert_int_equal(rig_sync_box(rig, alice, "alice", 0, true, one.timestamp_ms, &page), JUGGLE_OK);
  assert_int_equal(page.count, 2);
  assert_int_equal(rig_sync(rig, alice, "alice", 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 1);
  rig_restart(rig);
  alice = rig_user(rig, "alice", 0);
  assert_int_equal(rig_sync_box(rig, alice, "alice", 0, true, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 3);
}

static void own_inbox_only(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0);
  rig_user(rig, "bob", 1);
  struct rig_page page;
  assert_int_equal(rig_sync(rig, alice, "bob", 0, &page), 12010);
  static const char *const topics[] = {
      "qry_convers", "sync_convers", "qry_conver", "qry_total_unread_count", "clear_unread"};
  for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
    struct out *out = rig_query(rig, alice, topics[i], "bob", view_of(NULL, 0));
    assert_int_equal(out->code, 12010);
    assert_int_equal(out->data_len, 0);
    out_free(out);
  }
}

/* ---- History and conversations ---- */

static void history_order(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  char text[8];
  struct rig_ack acks[10];
  for (int i = 0; i < 10; i++) {
    snprintf(text, sizeof text, "m%d", i);
    acks[i] = rig_publish(rig, i % 2 ? bob : alice, "p_msg", i % 2 ? "alice" : "bob", text, 10, "");
  }
  struct rig_page page;
  assert_int_equal(rig_history(rig, alice, JUGGLE_PRIVATE, "bob", 0, 4, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 4);
  assert_false(page.is_finished);
  assert_string_equal(page.messages[0].content, "m6");
  assert_string_equal(page.messages[3].content, "m9");
  assert_true(page.messages[0].is_send && !page.messages[1].is_send);
  assert_string_equal(page.messages[0].target, "bob");
  assert_string_equal(page.messages[1].target, "bob");
  assert_int_equal(page.messages[1].seq, 8);
  assert_int_equal(rig_history(rig, alice, JUGGLE_PRIVATE, "bob", acks[6].timestamp_ms, 20, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 6);
  assert_true(page.is_finished);
  assert_string_equal(page.messages[5].content, "m5");
  assert_int_equal(rig_history(rig, alice, JUGGLE_PRIVATE, "bob", acks[6].timestamp_ms, 2, 1, &page), JUGGLE_OK);
  assert_int_equal(page.count, 2);
  assert_string_equal(page.messages[0].content, "m7");
  assert_string_equal(page.messages[1].content, "m8");
  assert_int_equal(rig_history(rig, alice, JUGGLE_PRIVATE, "bob", 0, 0, 1, &page), JUGGLE_OK);
  assert_int_equal(page.count, 10);
  assert_int_equal(rig_history(rig, alice, JUGGLE_PRIVATE, "nobody", 0, 5, 0, &page), JUGGLE_OK);
  assert_true(page.count == 0 && page.is_finished);
  assert_int_equal(rig_history(rig, alice, 3, "bob", 0, 5, 0, &page), JUGGLE_MSG_PARAMETER);
  /* By ids, and only those of this conversation. */
  uint8_t data[256];
  uint8_t *at = pb_write_bytes_field(data, 1, view_str("bob"));
  at = pb_write_uint_field(at, 2, JUGGLE_PRIVATE);
  at = pb_write_bytes_field(at, 3, view_str(acks[3].msg_id));
  at = pb_write_bytes_field(at, 3, view_str("aaaaaaaaaaaaaaaa"));
  at = pb_write_bytes_field(at, 3, view_str("!"));
  at = pb_write_bytes_field(at, 3, view_str(acks[0].msg_id));
  struct out *out = rig_query(rig, alice, "qry_hismsg_by_ids", "bob", view_of(data, (size_t)(at - data)));
  rig_read_page(out_data(out), &page);
  out_free(out);
  assert_int_equal(page.count, 2);
  assert_string_equal(page.messages[0].content, "m3");
  assert_string_equal(page.messages[1].content, "m0");
}

static void history_by_type(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0);
  rig_publish(rig, alice, "p_msg", "bob", "text", 10, "");
  uint8_t data[512];
  struct juggle_up_msg up = {.msg_type = view_str("jg:img"), .content = view_str("picture"), .flags = 10};
  uint8_t *end = juggle_write_up_msg(data, &up);
  assert_int_equal(
      core_post_publish(rig->core, alice, 1, view_str("p_msg"), view_str("bob"), view_of(data, (size_t)(end - data))),
      STATUS_OK);
  assert_int_equal(rig_ack(rig, 0).code, JUGGLE_OK);
  uint8_t *at = pb_write_bytes_field(data, 1, view_str("bob"));
  at = pb_write_uint_field(at, 2, JUGGLE_PRIVATE);
  at = pb_write_uint_field(at, 4, 10);
  at = pb_write_bytes_field(at, 6, view_str("jg:img"));
  struct out *out = rig_query(rig, alice, "qry_hismsgs", "bob", view_of(data, (size_t)(at - data)));
  struct rig_page page;
  rig_read_page(out_data(out), &page);
  out_free(out);
  assert_int_equal(page.count, 1);
  assert_string_equal(page.messages[0].content, "picture");
  for (int i = 0; i < 40; i++)
    at = pb_write_bytes_field(at, 6, view_str("t"));
  out = rig_query(rig, alice, "qry_hismsgs", "bob", view_of(data, (size_t)(at - data)));
  assert_int_equal(out->code, JUGGLE_MSG_PARAMETER);
  out_free(out);
}

struct conversation_seen {
  char target[80];
  int64_t channel, unread, read_index, unread_index, sort_ms, sync_ms;
  char last[160];
};

static struct conversation_seen conversation_of(struct view bytes) {
  struct conversation_seen seen = {0};
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (field.number == 2) rig_text(seen.target, sizeof seen.target, field.bytes);
    if (field.number == 3) seen.channel = (int64_t)field.value;
    if (field.number == 4) seen.sort_ms = (int64_t)field.value;
    if (field.number == 5) seen.unread = (int64_t)field.value;
    if (field.number == 6) rig_text(seen.last, sizeof seen.last, view_str(rig_message_of(field.bytes).content));
    if (field.number == 7) seen.read_index = (int64_t)field.value;
    if (field.number == 14) seen.sync_ms = (int64_t)field.value;
    if (field.number == 16) seen.unread_index = (int64_t)field.value;
  }
  assert_false(reader.bad);
  return seen;
}

static uint32_t list_conversations(struct rig *rig, struct session_ref from, const char *topic, const char *self,
    int64_t start_ms, int32_t count, int32_t order, struct conversation_seen seen[8], bool *is_finished) {
  uint8_t data[64];
  uint8_t *at = pb_write_uint_field(data, 1, (uint64_t)start_ms);
  at = pb_write_uint_field(at, 2, (uint64_t)count);
  at = pb_write_uint_field(at, 3, (uint64_t)order);
  struct out *out = rig_query(rig, from, topic, self, view_of(data, (size_t)(at - data)));
  assert_int_equal(out->code, JUGGLE_OK);
  struct pb_reader reader = pb_reader_of(out_data(out));
  struct pb_field field;
  uint32_t found = 0;
  *is_finished = false;
  while (pb_next(&reader, &field)) {
    if (field.number == 1) seen[found++] = conversation_of(field.bytes);
    if (field.number == 2) *is_finished = field.value;
  }
  out_free(out);
  return found;
}

static void conversations(void **state) {
  struct rig *rig = *state;
  static const char *const members[] = {"alice", "bob"};
  struct session_ref alice = rig_user(rig, "alice", 0), carol = rig_user(rig, "carol", 0);
  struct session_ref bob = rig_user(rig, "bob", 1);
  rig_make_group(rig, "grp1", members, 2);
  rig_publish(rig, alice, "p_msg", "bob", "a1", 10, "");
  rig_publish(rig, alice, "p_msg", "bob", "a2", 10, "");
  rig_publish(rig, carol, "p_msg", "bob", "c1", 10, "");
  rig_publish(rig, alice, "g_msg", "grp1", "g1", 10, "");
  rig_publish(rig, alice, "g_msg", "grp1", "g2", JUGGLE_FLAG_STORE, ""); /* not counted */
  struct conversation_seen seen[8];
  bool finished;
  assert_int_equal(list_conversations(rig, bob, "qry_convers", "bob", 0, 2, 0, seen, &finished), 2);
  assert_false(finished);
  assert_string_equal(seen[0].target, "grp1");
  assert_string_equal(seen[0].last, "g2");
  assert_int_equal(seen[0].unread, 1);
  assert_string_equal(seen[1].target, "carol");
  assert_int_equal(list_conversations(rig, bob, "qry_convers", "bob", seen[1].sort_ms, 2, 0, seen, &finished), 1);
  assert_true(finished);
  assert_string_equal(seen[0].target, "alice");
  assert_int_equal(seen[0].unread, 2);
  int64_t start_ms = seen[0].sort_ms;
  /* Order 1: the nearest newer ones, shown newest first. */
  assert_int_equal(list_conversations(rig, bob, "qry_convers", "bob", start_ms, 5, 1, seen, &finished), 2);
  assert_string_equal(seen[0].target, "grp1");
  assert_int_equal(list_conversations(rig, bob, "qry_convers", "bob", start_ms, 1, 1, seen, &finished), 1);
  assert_string_equal(seen[0].target, "carol");
  assert_int_equal(list_conversations(rig, bob, "sync_convers", "bob", 0, 2, 0, seen, &finished), 2);
  assert_string_equal(seen[0].target, "alice");
  assert_string_equal(seen[1].target, "carol");
  assert_int_equal(list_conversations(rig, bob, "sync_convers", "bob", seen[1].sync_ms, 2, 0, seen, &finished), 1);
  assert_true(finished);
  /* The sender's own side has nothing unread. */
  assert_int_equal(rig_total_unread(rig, alice, "alice"), 0);
  assert_int_equal(list_conversations(rig, alice, "qry_convers", "alice", 0, 10, 0, seen, &finished), 2);
}

static void unread_counts_survive_a_restart(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  for (int i = 0; i < 5; i++)
    rig_publish(rig, alice, "p_msg", "bob", "x", 10, "");
  assert_int_equal(rig_total_unread(rig, bob, "bob"), 5);
  clear(rig, bob, "bob", "alice", JUGGLE_PRIVATE, 3);
  assert_int_equal(rig_total_unread(rig, bob, "bob"), 2);
  clear(rig, bob, "bob", "alice", JUGGLE_PRIVATE, 2); /* reading does not go backwards */
  assert_int_equal(rig_total_unread(rig, bob, "bob"), 2);
  rig_restart(rig);
  alice = rig_user(rig, "alice", 0);
  bob = rig_user(rig, "bob", 1);
  assert_int_equal(rig_total_unread(rig, bob, "bob"), 2);
  rig_publish(rig, alice, "p_msg", "bob", "x", 10, "");
  struct out *out = rig_next_of(rig, 1, OUT_FAN_OUT);
  assert_int_equal(out_targets(out)->unread_index, 6);
  out_free(out);
  assert_int_equal(rig_total_unread(rig, bob, "bob"), 3);
  clear(rig, bob, "bob", "alice", JUGGLE_PRIVATE, 0);
  assert_int_equal(rig_total_unread(rig, bob, "bob"), 0);
  rig_restart(rig);
  bob = rig_user(rig, "bob", 1);
  assert_int_equal(rig_total_unread(rig, bob, "bob"), 0);
}

static void total_unread_filter(void **state) {
  struct rig *rig = *state;
  static const char *const members[] = {"alice", "bob"};
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  rig_make_group(rig, "grp1", members, 2);
  rig_publish(rig, alice, "p_msg", "bob", "x", 10, "");
  rig_publish(rig, alice, "g_msg", "grp1", "x", 10, "");
  rig_publish(rig, alice, "g_msg", "grp1", "x", 10, "");
  static const struct {
    struct view filter;
    int64_t unread;
  } cases[] = {
      {{(const uint8_t *)"\x12\x02\x08\x01", 4}, 1},         /* channel 1 */
      {{(const uint8_t *)"\x12\x03\x0a\x01\x02", 5}, 2},     /* channel 2, packed */
      {{(const uint8_t *)"\x12\x04\x0a\x02\x01\x02", 6}, 3}, /* both */
      {{(const uint8_t *)"\x12\x0c\x12\x0a\x0a\x04"
                         "grp1\x10\x02\x2a\x00",
           14},
          1}, /* all but the group */
      {{(const uint8_t *)"\x12\x0a\x1a\x08\x0a\x04"
                         "grp1\x10\x02",
           12},
          2}, /* the group alone */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct out *out = rig_query(rig, bob, "qry_total_unread_count", "bob", cases[i].filter);
    assert_int_equal(out->code, JUGGLE_OK);
    struct pb_reader reader = pb_reader_of(out_data(out));
    struct pb_field field = {0};
    assert_true(pb_next(&reader, &field));
    assert_int_equal(field.value, cases[i].unread);
    out_free(out);
  }
}

static void users_and_presence(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0);
  rig_publish(rig, alice, "p_msg", "ghost", "x", 10, "");
  uint8_t data[64];
  uint8_t *at = pb_write_bytes_field(data, 1, view_str("ghost"));
  at = pb_write_bytes_field(at, 1, view_str("alice"));
  struct view both = view_of(data, (size_t)(at - data));
  struct out *out = rig_query(rig, alice, "qry_online_status", "alice", both);
  static const uint8_t expected[] = "\x0a\x07\x0a\x05ghost\x0a\x09\x0a\x05"
                                    "alice\x10\x01";
  assert_true(view_equal(out_data(out), view_of(expected, sizeof expected - 1)));
  out_free(out);
  out = rig_query(rig, alice, "qry_user_info", "alice", both); /* the last id counts */
  assert_int_equal(out->code, JUGGLE_OK);
  struct pb_reader reader = pb_reader_of(out_data(out));
  struct pb_field field;
  assert_true(pb_next(&reader, &field) && field.number == 1 && view_is(field.bytes, "alice"));
  assert_true(pb_next(&reader, &field) && field.number == 2 && view_is(field.bytes, "alice"));
  assert_true(pb_next(&reader, &field) && field.number == 5);
  out_free(out);
  at = pb_write_bytes_field(data, 1, view_str("ghost"));
  out = rig_query(rig, alice, "qry_user_info", "alice", view_of(data, (size_t)(at - data)));
  assert_int_equal(out->code, JUGGLE_USER_UNKNOWN);
  out_free(out);
}

/* ---- The HTTP API's calls ---- */

struct sent {
  const char *channel_target;
  int32_t channel;
  bool notify_sender;
  char msg_id[24];
};

static int32_t do_send(struct core *core, void *argument) {
  struct sent *sent = argument;
  struct core_send send = {.sender_id = view_str("alice"),
      .target_id = view_str(sent->channel_target),
      .msg_type = view_str("jg:text"),
      .content = view_str("api"),
      .channel = sent->channel,
      .flags = 10,
      .is_notify_sender = sent->notify_sender};
  return core_send(core, view_str("benchapp"), &send, sent->msg_id);
}

struct items_seen {
  uint32_t count;
  char senders[8][16], receivers[8][16];
};

static void see_item(void *context, const struct core_history_item *item) {
  struct items_seen *seen = context;
  rig_text(seen->senders[seen->count], 16, item->sender_id);
  rig_text(seen->receivers[seen->count++], 16, item->receiver_id);
}

static int32_t do_history(struct core *core, void *argument) {
  bool finished;
  int32_t code = core_history(core, view_str("benchapp"), JUGGLE_PRIVATE, view_str("alice"), view_str("bob"), 0, 10,
      false, see_item, argument, &finished);
  assert_true(finished);
  return code;
}

static void api_sends_and_reads(void **state) {
  struct rig *rig = *state;
  struct session_ref bob = rig_user(rig, "bob", 1), alice = rig_user(rig, "alice", 0);
  int32_t code;
  struct sent sent = {.channel_target = "bob", .channel = JUGGLE_PRIVATE};
  assert_int_equal(core_call(rig->core, do_send, &sent, &code), STATUS_OK);
  assert_int_equal(code, JUGGLE_OK);
  assert_int_equal(strlen(sent.msg_id), JUGGLE_MSG_ID_LEN);
  struct out *out = rig_next_of(rig, 1, OUT_FAN_OUT);
  assert_int_equal(out_targets(out)->slot, bob.slot);
  out_free(out);
  rig_expect_nothing(rig, 0);
  sent.notify_sender = true;
  assert_int_equal(core_call(rig->core, do_send, &sent, &code), STATUS_OK);
  out = rig_next_of(rig, 0, OUT_FAN_OUT);
  assert_true(out_targets(out)->slot == alice.slot && out_targets(out)->is_copy);
  out_free(out);
  struct rig_page page;
  assert_int_equal(rig_sync_box(rig, alice, "alice", 0, true, 0, &page), JUGGLE_OK);
  assert_int_equal(page.count, 1);
  rig_publish(rig, bob, "p_msg", "alice", "back", 10, "");
  struct items_seen seen = {0};
  assert_int_equal(core_call(rig->core, do_history, &seen, &code), STATUS_OK);
  assert_int_equal(seen.count, 3);
  assert_string_equal(seen.senders[2], "bob");
  assert_string_equal(seen.receivers[0], "bob");
  assert_string_equal(seen.receivers[2], "bob");
  sent = (struct sent){.channel_target = "nogroup", .channel = JUGGLE_GROUP};
  assert_int_equal(core_call(rig->core, do_send, &sent, &code), STATUS_OK);
  assert_int_equal(code, JUGGLE_GROUP_UNKNOWN);
  assert_string_equal(sent.msg_id, "");
}

static int32_t check_profile(struct core *core, void *argument) {
  (void)argument;
  struct core_user user = {
      .user_id = view_str("dave"), .nickname = view_str("Dave"), .ext_fields_json = view_str("{\"k\":\"v\",\"n\":1}")};
  char token[JUGGLE_TOKEN_MAX];
  struct view app = view_str("benchapp");
  assert_int_equal(core_user_update(core, app, &user), JUGGLE_USER_UNKNOWN);
  assert_int_equal(core_user_register(core, app, &user, token), JUGGLE_OK);
  user.nickname = view_str("David");
  user.ext_fields_json = view_of(NULL, 0);
  assert_int_equal(core_user_update(core, app, &user), JUGGLE_OK);
  struct core_user out;
  assert_int_equal(core_user_info(core, app, view_str("dave"), &out), JUGGLE_OK);
  assert_true(view_is(out.nickname, "David"));
  assert_true(view_is(out.ext_fields_json, "{\"k\":\"v\",\"n\":1}"));
  assert_false(core_user_online(core, app, view_str("dave")));
  assert_int_equal(core_user_register(core, view_str("none"), &user, token), JUGGLE_API_NO_APP);
  user.user_id = view_of("alice\0x", 7);
  assert_int_equal(core_user_register(core, app, &user, token), JUGGLE_API_BAD_PARAMETER);
  struct core_app stored;
  bool created;
  assert_int_equal(core_app_create(core, app, view_str("ignored"), view_of(NULL, 0), &stored, &created), JUGGLE_OK);
  assert_false(created);
  assert_string_equal(stored.app_secret, "secret");
  assert_int_equal(strlen(stored.secure_key), JUGGLE_SECURE_KEY_LEN);
  assert_int_equal(
      core_app_create(core, view_str("123456789012345678901"), view_of(NULL, 0), view_of(NULL, 0), &stored, &created),
      JUGGLE_API_BAD_PARAMETER);
  return JUGGLE_OK;
}

static void profiles(void **state) {
  struct rig *rig = *state;
  int32_t code;
  assert_int_equal(core_call(rig->core, check_profile, NULL, &code), STATUS_OK);
}

/* ---- Hostile input ---- */

static void garbage_gets_an_answer(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0);
  static const char *const topics[] = {"p_msg", "g_msg", "s_msg", "c_msg", "sync_msgs", "qry_hismsgs",
      "qry_hismsg_by_ids", "qry_convers", "sync_convers", "qry_conver", "qry_total_unread_count", "clear_unread",
      "qry_user_info", "qry_online_status", "qry_first_unread_msg", "c_join", "c_sync_msgs", "c_quit", "", "\xff"};
  struct rng rng;
  rng_seed(&rng, 7);
  for (int round = 0; round < 200; round++) {
    uint8_t data[64];
    size_t len = rng_below(&rng, sizeof data);
    for (size_t i = 0; i < len; i++)
      data[i] = (uint8_t)rng_below(&rng, round % 2 ? 256 : 32);
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++) {
      struct view topic = view_str(topics[i]), target = view_str(round % 3 ? "alice" : "bob");
      assert_int_equal(core_post_publish(rig->core, alice, 1, topic, target, view_of(data, len)), STATUS_OK);
      assert_int_equal(core_post_query(rig->core, alice, 2, topic, target, view_of(data, len)), STATUS_OK);
      out_free(rig_next_of(rig, 0, OUT_PUBLISH_ACK));
      out_free(rig_next_of(rig, 0, OUT_QUERY_ACK));
    }
  }
  for (size_t i = 4; i < 14; i++) {
    struct out *out = rig_query(rig, alice, topics[i], "alice", view_of("\xff", 1));
    assert_int_equal(out->code, JUGGLE_MSG_PARAMETER);
    out_free(out);
  }
  struct out *out = rig_query(rig, alice, "qry_first_unread_msg", "alice", view_of(NULL, 0));
  assert_int_equal(out->code, JUGGLE_TOPIC_UNSUPPORTED);
  out_free(out);
  out = rig_query(rig, alice, "c_sync_atts", "alice", view_of(NULL, 0));
  assert_int_equal(out->code, JUGGLE_TOPIC_UNSUPPORTED);
  out_free(out);
}

struct blocker {
  struct rig *rig;
  int gate[2];
  sem_t begun; /* the core is inside the call */
};

static int32_t block(struct core *core, void *argument) {
  (void)core;
  struct blocker *blocker = argument;
  char byte;
  sem_post(&blocker->begun);
  return read(blocker->gate[0], &byte, 1) == 1 ? JUGGLE_OK : JUGGLE_API_TIMEOUT;
}

static void *call_block(void *argument) {
  struct blocker *blocker = argument;
  int32_t code;
  enum status status = core_call(blocker->rig->core, block, blocker, &code);
  return status == STATUS_OK && code == JUGGLE_OK ? blocker : NULL;
}

static pthread_t start_blocker(struct blocker *blocker) {
  pthread_t thread;
  assert_int_equal(pipe(blocker->gate), 0);
  sem_init(&blocker->begun, 0, 0);
  assert_int_equal(pthread_create(&thread, NULL, call_block, blocker), 0);
  while (sem_wait(&blocker->begun) != 0)
    ;
  return thread;
}

static void full_queue_refuses(void **state) {
  struct rig *rig = *state;
  struct session_ref alice = rig_user(rig, "alice", 0);
  struct blocker blocker = {.rig = rig};
  pthread_t thread = start_blocker(&blocker);
  uint32_t posted = 0;
  enum status status;
  do {
    status = core_post_query(rig->core, alice, 1, view_str("qry_online_status"), view_str("alice"), view_of(NULL, 0));
    posted += status == STATUS_OK;
  } while (status == STATUS_OK && posted < 10000000);
  assert_int_equal(status, STATUS_MEMORY);
  core_post_logout(rig->core, (struct session_ref){1, 5, 5}); /* never refused */
  assert_int_equal(write(blocker.gate[1], "x", 1), 1);
  void *returned;
  assert_int_equal(pthread_join(thread, &returned), 0);
  assert_ptr_equal(returned, &blocker);
  for (uint32_t i = 0; i < posted; i++)
    out_free(rig_next_of(rig, 0, OUT_QUERY_ACK));
  rig_expect_nothing(rig, 0);
  close(blocker.gate[0]);
  close(blocker.gate[1]);
  assert_int_equal(core_stats(rig->core)->queue_depth, 0);
}

/* Runs on the core thread after it was given up: must never happen. */
static int32_t never(struct core *core, void *argument) {
  (void)core;
  *(bool *)argument = true;
  return JUGGLE_OK;
}

static void a_call_given_up_never_runs(void **state) {
  struct rig *rig = *state;
  struct blocker blocker = {.rig = rig};
  pthread_t thread = start_blocker(&blocker);
  bool ran = false;
  int32_t code = 0;
  enum status status = core_call(rig->core, never, &ran, &code);
  assert_int_equal(write(blocker.gate[1], "x", 1), 1);
  void *returned;
  assert_int_equal(pthread_join(thread, &returned), 0);
  rig_settle(rig);
  if (ran) fail_msg("the call ran although it was given up");
  assert_int_equal(status, STATUS_TIMEOUT);
  assert_int_equal(code, JUGGLE_API_TIMEOUT);
  close(blocker.gate[0]);
  close(blocker.gate[1]);
}

/* More than the cache holds, so that old ones come out of the store, and answers end early by size. */
static void big_messages_come_in_small_pages(void **state) {
  struct rig *rig = *state;
  enum { COUNT = 80, SIZE = 1000000 };
  struct session_ref alice = rig_user(rig, "alice", 0), bob = rig_user(rig, "bob", 1);
  uint8_t *content = malloc(SIZE), *data = malloc(SIZE + 64);
  assert_non_null(content);
  assert_non_null(data);
  memset(content, 'x', SIZE);
  for (int i = 0; i < COUNT; i++) {
    memcpy(content, &i, sizeof i);
    struct juggle_up_msg up = {.msg_type = view_str("t"), .content = view_of(content, SIZE), .flags = 10};
    uint8_t *end = juggle_write_up_msg(data, &up);
    assert_int_equal(
        core_post_publish(rig->core, alice, 1, view_str("p_msg"), view_str("bob"), view_of(data, (size_t)(end - data))),
        STATUS_OK);
    assert_int_equal(rig_ack(rig, 0).code, JUGGLE_OK);
    rig_settle(rig);
    rig_take(rig, 1);
    rig_drop_results(rig);
  }
  int seen = 0;
  int64_t cursor_ms = 0;
  bool finished = false;
  while (!finished) {
    struct juggle_sync_request request = {.sync_time_ms = cursor_ms};
    uint8_t *end = juggle_write_sync_request(data, &request);
    struct out *out = rig_query(rig, bob, "sync_msgs", "bob", view_of(data, (size_t)(end - data)));
    assert_int_equal(out->code, JUGGLE_OK);
    assert_true(out->data_len < 6 * SIZE);
    struct juggle_set_reader reader = juggle_set_reader_of(out_data(out));
    struct view raw;
    while (juggle_set_next(&reader, &raw)) {
      struct juggle_down_msg down;
      assert_true(juggle_read_down_msg(raw, &down));
      assert_int_equal(down.content.len, SIZE);
      assert_memory_equal(down.content.data, &seen, sizeof seen);
      cursor_ms = down.msg_time_ms;
      seen++;
    }
    finished = reader.is_finished;
    out_free(out);
  }
  assert_int_equal(seen, COUNT);
  uint8_t *at = pb_write_bytes_field(data, 1, view_str("alice"));
  at = pb_write_uint_field(at, 2, JUGGLE_PRIVATE);
  struct out *out = rig_query(rig, bob, "qry_hismsgs", "alice", view_of(data, (size_t)(at - data)));
  struct juggle_set_reader reader = juggle_set_reader_of(out_data(out));
  struct view raw;
  int shown = 0;
  while (juggle_set_next(&reader, &raw))
    shown++;
  assert_true(shown > 1 && shown < 10);
  assert_false(reader.is_finished);
  out_free(out);
  free(content);
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(login_codes, setup, teardown),
      cmocka_unit_test_setup_teardown(token_of_another_tenant_is_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(phones_kick_phones, setup, teardown),
      cmocka_unit_test_setup_teardown(api_kicks_by_platform, setup, teardown),
      cmocka_unit_test_setup_teardown(logout_and_reused_slot, setup, teardown),
      cmocka_unit_test_setup_teardown(private_message_arrives, setup, teardown),
      cmocka_unit_test_setup_teardown(other_devices_get_a_copy, setup, teardown),
      cmocka_unit_test_setup_teardown(state_messages_leave_no_trace, setup, teardown),
      cmocka_unit_test_setup_teardown(unstored_messages_reach_the_inbox_only, setup, teardown),
      cmocka_unit_test_setup_teardown(refusals, setup, teardown),
      cmocka_unit_test_setup_teardown(admins_may_send_system_messages, setup, teardown),
      cmocka_unit_test_setup_teardown(group_message_reaches_members, setup, teardown),
      cmocka_unit_test_setup_teardown(directed_group_message, setup, teardown),
      cmocka_unit_test_setup_teardown(leaving_a_group, setup, teardown),
      cmocka_unit_test_setup_teardown(group_life, setup, teardown),
      cmocka_unit_test_setup_teardown(group_size_is_bounded, setup, teardown),
      cmocka_unit_test_setup_teardown(duplicates, setup, teardown),
      cmocka_unit_test_setup_teardown(duplicates_stay_within_a_tenant, setup, teardown),
      cmocka_unit_test_setup_teardown(duplicates_in_one_batch, setup, teardown),
      cmocka_unit_test_setup_teardown(receive_times_ascend_strictly, setup, teardown),
      cmocka_unit_test_setup_teardown(send_box, setup, teardown),
      cmocka_unit_test_setup_teardown(own_inbox_only, setup, teardown),
      cmocka_unit_test_setup_teardown(history_order, setup, teardown),
      cmocka_unit_test_setup_teardown(history_by_type, setup, teardown),
      cmocka_unit_test_setup_teardown(conversations, setup, teardown),
      cmocka_unit_test_setup_teardown(unread_counts_survive_a_restart, setup, teardown),
      cmocka_unit_test_setup_teardown(total_unread_filter, setup, teardown),
      cmocka_unit_test_setup_teardown(users_and_presence, setup, teardown),
      cmocka_unit_test_setup_teardown(api_sends_and_reads, setup, teardown),
      cmocka_unit_test_setup_teardown(profiles, setup, teardown),
      cmocka_unit_test_setup_teardown(garbage_gets_an_answer, setup, teardown),
      cmocka_unit_test_setup_teardown(full_queue_refuses, setup, teardown),
      cmocka_unit_test_setup_teardown(a_call_given_up_never_runs, setup, teardown),
      cmocka_unit_test_setup_teardown(big_messages_come_in_small_pages, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
