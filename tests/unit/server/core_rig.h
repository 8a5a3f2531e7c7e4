/* A core with fake gateways for tests: posts what a gateway would post and keeps what the core hands out. */
#ifndef MUSTER_TESTS_SERVER_CORE_RIG_H
#define MUSTER_TESTS_SERVER_CORE_RIG_H

#include "base/buf.h"
#include "base/clock.h"
#include "server/core.h"
#include "wire/juggle.h"
#include "wire/pb.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { RIG_GATEWAYS = 2, RIG_WAIT_MS = 20000 };

struct rig {
  char folder[64];
  struct server_config config;
  struct gateway_port ports[RIG_GATEWAYS];
  struct gateway_port *port_list[RIG_GATEWAYS];
  struct core *core;
  struct out *waiting[RIG_GATEWAYS]; /* taken from the port, oldest first */
  uint32_t next_slot;
  int32_t next_index;
};

static inline void rig_open(struct rig *rig) {
  struct err err = {0};
  for (int i = 0; i < RIG_GATEWAYS; i++) {
    assert_int_equal(gateway_port_open(&rig->ports[i], &err), STATUS_OK);
    rig->port_list[i] = &rig->ports[i];
    rig->waiting[i] = NULL;
  }
  enum status status = core_start(&rig->core, &rig->config, rig->port_list, RIG_GATEWAYS, &err);
  if (status != STATUS_OK) fail_msg("%s", err.text);
}

static inline void rig_start(struct rig *rig) {
  *rig = (struct rig){.next_slot = 1, .next_index = 1};
  snprintf(rig->folder, sizeof rig->folder, "/tmp/muster-core-XXXXXX");
  assert_non_null(mkdtemp(rig->folder));
  rig->config.data_dir = rig->folder;
  rig->config.ack = ACK_DURABLE;
  rig->config.app_key = "benchapp";
  rig->config.app_secret = "secret";
  rig_open(rig);
}

static inline void rig_drop_results(struct rig *rig) {
  for (int i = 0; i < RIG_GATEWAYS; i++) {
    while (rig->waiting[i]) {
      struct out *next = rig->waiting[i]->next;
      out_free(rig->waiting[i]);
      rig->waiting[i] = next;
    }
  }
}

static inline void rig_close(struct rig *rig) {
  core_stop(rig->core);
  rig_drop_results(rig);
  for (int i = 0; i < RIG_GATEWAYS; i++)
    gateway_port_close(&rig->ports[i]);
}

static inline void rig_restart(struct rig *rig) {
  rig_close(rig);
  rig_open(rig);
}

static inline void rig_remove(const struct rig *rig) {
  static const char *const names[] = {"musterd.db", "musterd.db-wal", "musterd.db-shm", "musterd.db-journal"};
  char path[128];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", rig->folder, names[i]);
    unlink(path);
  }
  rmdir(rig->folder);
}

static inline void rig_end(struct rig *rig) {
  rig_close(rig);
  rig_remove(rig);
}

static inline void rig_take(struct rig *rig, uint32_t gateway) {
  struct out **end = &rig->waiting[gateway];
  while (*end)
    end = &(*end)->next;
  *end = gateway_port_take(&rig->ports[gateway]);
}

/* The next result of a gateway; fails the test when none comes. The caller frees it. */
static inline struct out *rig_next(struct rig *rig, uint32_t gateway) {
  uint64_t deadline_ns = clock_now_ns() + RIG_WAIT_MS * NS_PER_MS;
  while (!rig->waiting[gateway]) {
    rig_take(rig, gateway);
    if (rig->waiting[gateway]) break;
    struct err err;
    if (core_failed(rig->core, &err)) fail_msg("the core failed: %s", err.text);
    if (clock_now_ns() > deadline_ns) fail_msg("nothing came for gateway %u", gateway);
    struct pollfd readable = {.fd = rig->ports[gateway].event_fd, .events = POLLIN};
    poll(&readable, 1, 100);
  }
  struct out *out = rig->waiting[gateway];
  rig->waiting[gateway] = out->next;
  return out;
}

/* The next result of one kind; those before it of other kinds are dropped. */
static inline struct out *rig_next_of(struct rig *rig, uint32_t gateway, enum out_kind kind) {
  for (;;) {
    struct out *out = rig_next(rig, gateway);
    if (out->kind == kind) return out;
    out_free(out);
  }
}

static inline int32_t rig_nothing(struct core *core, void *argument) {
  (void)core;
  (void)argument;
  return 0;
}

/* Waits until the core has worked through everything posted before. */
static inline void rig_settle(struct rig *rig) {
  int32_t code;
  assert_int_equal(core_call(rig->core, rig_nothing, NULL, &code), STATUS_OK);
}

static inline void rig_expect_nothing(struct rig *rig, uint32_t gateway) {
  rig_settle(rig);
  rig_take(rig, gateway);
  assert_null(rig->waiting[gateway]);
}

/* ---- Users ---- */

struct rig_registration {
  const char *app_key, *user_id;
  bool is_admin;
  char token[JUGGLE_TOKEN_MAX];
};

static inline int32_t rig_do_register(struct core *core, void *argument) {
  struct rig_registration *user = argument;
  struct core_user info = {
      .user_id = view_str(user->user_id), .nickname = view_str(user->user_id), .is_admin = user->is_admin};
  return core_user_register(core, view_str(user->app_key), &info, user->token);
}

static inline void rig_register(
    struct rig *rig, const char *app_key, const char *user_id, bool is_admin, char token[JUGGLE_TOKEN_MAX]) {
  struct rig_registration user = {.app_key = app_key, .user_id = user_id, .is_admin = is_admin};
  int32_t code;
  assert_int_equal(core_call(rig->core, rig_do_register, &user, &code), STATUS_OK);
  assert_int_equal(code, JUGGLE_OK);
  memcpy(token, user.token, JUGGLE_TOKEN_MAX);
}

struct rig_app {
  const char *key;
  struct core_app info;
  bool created;
};

static inline int32_t rig_do_app(struct core *core, void *argument) {
  struct rig_app *app = argument;
  return core_app_create(core, view_str(app->key), view_of(NULL, 0), view_str("an app"), &app->info, &app->created);
}

static inline int32_t rig_login_as(struct rig *rig, struct session_ref ref, const char *app_key, const char *token,
    const char *platform, const char *device, bool *inbox_pending) {
  struct core_login login = {.session = ref,
      .app_key = view_str(app_key),
      .token = view_str(token),
      .platform = view_str(platform),
      .device_id = view_str(device)};
  assert_int_equal(core_post_login(rig->core, &login), STATUS_OK);
  struct out *out = rig_next_of(rig, ref.gateway, OUT_CONNECTED);
  int32_t code = out->code;
  assert_int_equal(out->session.slot, ref.slot);
  assert_int_equal(out->session.generation, ref.generation);
  assert_true(out->timestamp_ms > 0);
  if (inbox_pending) *inbox_pending = out->inbox_pending;
  out_free(out);
  return code;
}

static inline struct session_ref rig_ref(struct rig *rig, uint16_t gateway) {
  uint32_t slot = rig->next_slot++;
  return (struct session_ref){gateway, slot, 100 + slot};
}

/* Registers the user in benchapp and logs in from the web. */
static inline struct session_ref rig_user(struct rig *rig, const char *user_id, uint16_t gateway) {
  char token[JUGGLE_TOKEN_MAX];
  rig_register(rig, "benchapp", user_id, false, token);
  struct session_ref ref = rig_ref(rig, gateway);
  assert_int_equal(rig_login_as(rig, ref, "benchapp", token, "Web", "dev", NULL), JUGGLE_OK);
  return ref;
}

struct rig_group {
  const char *id;
  const char *const *members;
  uint32_t count;
};

static inline int32_t rig_do_group(struct core *core, void *argument) {
  const struct rig_group *group = argument;
  struct view members[64];
  assert_true(group->count <= 64);
  for (uint32_t i = 0; i < group->count; i++)
    members[i] = view_str(group->members[i]);
  struct core_group info = {.group_id = view_str(group->id), .name = view_str("G")};
  return core_group_add(core, view_str("benchapp"), &info, members, group->count);
}

static inline void rig_make_group(struct rig *rig, const char *id, const char *const *members, uint32_t count) {
  struct rig_group group = {id, members, count};
  int32_t code;
  assert_int_equal(core_call(rig->core, rig_do_group, &group, &code), STATUS_OK);
  assert_int_equal(code, JUGGLE_OK);
}

/* ---- Publishing ---- */

struct rig_ack {
  int32_t code, member_count;
  int64_t timestamp_ms, seq;
  char msg_id[24], uid[160];
};

static inline uint32_t rig_up_msg(uint8_t *out, const char *content, int32_t flags, const char *uid) {
  struct juggle_up_msg up = {
      .msg_type = view_str("jg:text"), .content = view_str(content), .flags = flags, .client_uid = view_str(uid)};
  return (uint32_t)(juggle_write_up_msg(out, &up) - out);
}

static inline void rig_post(struct rig *rig, struct session_ref from, const char *topic, const char *target,
    const char *content, int32_t flags, const char *uid) {
  uint8_t data[1024];
  uint32_t len = rig_up_msg(data, content, flags, uid);
  enum status status =
      core_post_publish(rig->core, from, rig->next_index++, view_str(topic), view_str(target), view_of(data, len));
  assert_int_equal(status, STATUS_OK);
}

/* The ack of whatever was posted last by from. */
static inline struct rig_ack rig_ack(struct rig *rig, uint16_t gateway) {
  struct out *out = rig_next_of(rig, gateway, OUT_PUBLISH_ACK);
  struct rig_ack ack = {out->code, out->member_count, out->timestamp_ms, out->seq, "", ""};
  memcpy(ack.msg_id, out->msg_id, sizeof ack.msg_id);
  struct view uid = out_text(out);
  assert_true(uid.len < sizeof ack.uid);
  memcpy(ack.uid, uid.data, uid.len);
  out_free(out);
  return ack;
}

static inline struct rig_ack rig_publish(struct rig *rig, struct session_ref from, const char *topic,
    const char *target, const char *content, int32_t flags, const char *uid) {
  rig_post(rig, from, topic, target, content, flags, uid);
  return rig_ack(rig, from.gateway);
}

/* One DownMsg as a recipient sees it. */
struct rig_message {
  char content[160], msg_id[24], target[80], sender[80];
  int64_t time_ms, seq, unread_index;
  bool is_send;
  int32_t channel, member_count;
};

static inline void rig_text(char *out, size_t size, struct view text) {
  assert_true(text.len < size);
  if (text.len) memcpy(out, text.data, text.len);
  out[text.len] = '\0';
}

static inline struct rig_message rig_message_of(struct view bytes) {
  struct juggle_down_msg down;
  assert_true(juggle_read_down_msg(bytes, &down));
  struct rig_message message = {.time_ms = down.msg_time_ms,
      .seq = down.msg_seq_no,
      .unread_index = down.unread_index,
      .is_send = down.is_send,
      .channel = down.channel,
      .member_count = down.member_count};
  rig_text(message.content, sizeof message.content, down.content);
  rig_text(message.msg_id, sizeof message.msg_id, down.msg_id);
  rig_text(message.target, sizeof message.target, down.target_id);
  rig_text(message.sender, sizeof message.sender, down.sender_id);
  return message;
}

/* Puts one target's DownMsg together as a gateway does. */
static inline struct rig_message rig_assemble(const struct fan_out *message, const struct fan_out_target *target) {
  uint8_t bytes[4096];
  assert_true(message->head_len + message->middle_len + message->tail_len + 32 < sizeof bytes);
  uint8_t *at = bytes;
  memcpy(at, message->bytes, message->head_len);
  at = pb_write_uint_field(at + message->head_len, 8, (uint64_t)target->msg_time_ms);
  memcpy(at, message->bytes + message->head_len, message->middle_len);
  at = pb_write_uint_field(at + message->middle_len, 23, (uint64_t)target->unread_index);
  memcpy(at, message->bytes + message->head_len + message->middle_len, message->tail_len);
  at += message->tail_len;
  return rig_message_of(view_of(bytes, (size_t)(at - bytes)));
}

/* ---- Queries ---- */

/* The answer's data must be freed by the caller through out_free. */
static inline struct out *rig_query(
    struct rig *rig, struct session_ref from, const char *topic, const char *target, struct view data) {
  int32_t index = rig->next_index++;
  assert_int_equal(core_post_query(rig->core, from, index, view_str(topic), view_str(target), data), STATUS_OK);
  struct out *out = rig_next_of(rig, from.gateway, OUT_QUERY_ACK);
  assert_int_equal(out->index, index);
  return out;
}

struct rig_page {
  struct rig_message messages[256];
  uint32_t count;
  bool is_finished;
};

static inline void rig_read_page(struct view data, struct rig_page *page) {
  page->count = 0;
  struct juggle_set_reader reader = juggle_set_reader_of(data);
  struct view raw;
  while (juggle_set_next(&reader, &raw)) {
    assert_true(page->count < 256);
    page->messages[page->count++] = rig_message_of(raw);
  }
  assert_false(reader.bad);
  page->is_finished = reader.is_finished;
}

static inline int32_t rig_sync_box(struct rig *rig, struct session_ref from, const char *target, int64_t after_ms,
    bool with_sent, int64_t sent_after_ms, struct rig_page *page) {
  struct juggle_sync_request request = {after_ms, sent_after_ms, with_sent};
  uint8_t data[64];
  uint8_t *end = juggle_write_sync_request(data, &request);
  struct out *out = rig_query(rig, from, "sync_msgs", target, view_of(data, (size_t)(end - data)));
  int32_t code = out->code;
  page->count = 0;
  page->is_finished = false;
  if (code == JUGGLE_OK) {
    assert_true(out->is_sync);
    rig_read_page(out_data(out), page);
    assert_int_equal(out->finished_sync, page->is_finished);
  }
  out_free(out);
  return code;
}

static inline int32_t rig_sync(
    struct rig *rig, struct session_ref from, const char *target, int64_t after_ms, struct rig_page *page) {
  return rig_sync_box(rig, from, target, after_ms, false, 0, page);
}

static inline int32_t rig_history(struct rig *rig, struct session_ref from, int32_t channel, const char *target,
    int64_t start_ms, int32_t count, int32_t order, struct rig_page *page) {
  uint8_t data[256];
  uint8_t *at = pb_write_bytes_field(data, 1, view_str(target));
  at = pb_write_uint_field(at, 2, (uint64_t)channel);
  at = pb_write_uint_field(at, 3, (uint64_t)start_ms);
  at = pb_write_uint_field(at, 4, (uint64_t)(int64_t)count);
  at = pb_write_uint_field(at, 5, (uint64_t)order);
  struct out *out = rig_query(rig, from, "qry_hismsgs", target, view_of(data, (size_t)(at - data)));
  int32_t code = out->code;
  page->count = 0;
  if (code == JUGGLE_OK) rig_read_page(out_data(out), page);
  out_free(out);
  return code;
}

static inline int64_t rig_total_unread(struct rig *rig, struct session_ref from, const char *self) {
  struct out *out = rig_query(rig, from, "qry_total_unread_count", self, view_of(NULL, 0));
  assert_int_equal(out->code, JUGGLE_OK);
  struct pb_reader reader = pb_reader_of(out_data(out));
  struct pb_field field;
  int64_t total = 0;
  while (pb_next(&reader, &field))
    if (field.number == 1) total = (int64_t)field.value;
  out_free(out);
  return total;
}

#endif
