// room: server
/* A database that is damaged, or that somebody else has written: a sound one is changed as the input says, then the
 * core opens it, a client logs in, publishes and asks for everything. Each step of the input is a column, rows, a kind
 * of value and its bytes. */
#include "server/core.h"
#include "wire/juggle.h"
#include "wire/pb.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define APP "fuzzapp"
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { FILE_MAX = 1 << 20, STEPS_MAX = 16 };

static char folder[64], path[96];
static uint8_t *sound;
static size_t sound_len;
static struct server_config config;

static void require(bool condition) {
  if (!condition) abort();
}

/* ---- The core ---- */

static char token[JUGGLE_TOKEN_MAX];

static int32_t make_people(struct core *core, void *argument) {
  (void)argument;
  const struct view members[] = {view_str("alice"), view_str("bob")};
  core_user_register(core, view_str(APP), &(struct core_user){.user_id = view_str("bob")}, token);
  core_user_register(core, view_str(APP), &(struct core_user){.user_id = view_str("alice")}, token);
  return core_group_add(
      core, view_str(APP), &(struct core_group){.group_id = view_str("group"), .name = view_str("g")}, members, 2);
}

static int32_t send_some(struct core *core, void *argument) {
  (void)argument;
  char id[24];
  for (int i = 0; i < 4; i++) {
    const struct core_send send = {.channel = i & 1 ? JUGGLE_GROUP : JUGGLE_PRIVATE,
        .sender_id = view_str(i & 2 ? "alice" : "bob"),
        .target_id = view_str(i & 1   ? "group"
                              : i & 2 ? "bob"
                                      : "alice"),
        .msg_type = view_str("t"),
        .content = view_str("content"),
        .flags = JUGGLE_FLAG_STORE | JUGGLE_FLAG_COUNT,
        .is_notify_sender = true};
    require(core_send(core, view_str(APP), &send, id) == JUGGLE_OK);
  }
  return JUGGLE_OK;
}

static void ask(struct core *core, const char *topic, const char *target, struct view data) {
  core_post_query(core, (struct session_ref){0, 1, 1}, 1, view_str(topic), view_str(target), data);
}

static void use(struct core *core) {
  const struct core_login login = {.session = {0, 1, 1},
      .app_key = view_str(APP),
      .token = view_str(token),
      .platform = view_str("Web"),
      .device_id = view_str("d")};
  uint8_t room[128];
  core_post_login(core, &login);
  uint8_t *at = pb_write_bytes_field(room, 1, view_str("t"));
  at = pb_write_uint_field(at, 3, JUGGLE_FLAG_STORE | JUGGLE_FLAG_COUNT);
  struct view message = view_of(room, (size_t)(at - room));
  core_post_publish(core, login.session, 1, view_str("p_msg"), view_str("bob"), message);
  core_post_publish(core, login.session, 2, view_str("g_msg"), view_str("group"), message);
  at = pb_write_bytes_field(room, 1, view_str("bob"));
  at = pb_write_uint_field(at, 2, JUGGLE_PRIVATE);
  ask(core, "qry_hismsgs", "bob", view_of(room, (size_t)(at - room)));
  ask(core, "qry_conver", "bob", view_of(room, (size_t)(at - room)));
  at = pb_write_bytes_field(room, 1, view_str("group"));
  at = pb_write_uint_field(at, 2, JUGGLE_GROUP);
  ask(core, "qry_hismsgs", "group", view_of(room, (size_t)(at - room)));
  at = pb_write_uint_field(room, 2, 1);
  ask(core, "sync_msgs", "alice", view_of(room, (size_t)(at - room)));
  ask(core, "qry_convers", "alice", view_of(NULL, 0));
  ask(core, "sync_convers", "alice", view_of(NULL, 0));
  ask(core, "qry_total_unread_count", "alice", view_of(NULL, 0));
}

/* True when the core could be started; work is what it is given to do. */
static bool run_core(void (*work)(struct core *core)) {
  struct gateway_port port, *ports[] = {&port};
  struct core *core;
  require(gateway_port_open(&port, NULL) == STATUS_OK);
  bool started = core_start(&core, &config, ports, 1, NULL) == STATUS_OK;
  if (started) {
    int32_t code;
    core_call(core, make_people, NULL, &code);
    work(core);
    core_stop(core);
  }
  for (struct out *out = gateway_port_take(&port); out;) {
    struct out *next = out->next;
    out_free(out);
    out = next;
  }
  gateway_port_close(&port);
  return started;
}

/* ---- The file ---- */

static void remove_files(void) {
  static const char *const ends[] = {"", "-wal", "-shm"};
  char name[128];
  for (size_t i = 0; i < COUNT(ends); i++) {
    snprintf(name, sizeof name, "%s%s", path, ends[i]);
    unlink(name);
  }
}

static void remove_all(void) {
  remove_files();
  rmdir(folder);
  free(sound);
}

static void fill(struct core *core) {
  int32_t code;
  require(core_call(core, send_some, NULL, &code) == STATUS_OK && code == JUGGLE_OK);
}

static void make_sound(void) {
  const char *parent = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/muster-fuzz-XXXXXX", parent && strlen(parent) < 32 ? parent : "/tmp");
  require(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/musterd.db", folder);
  server_config_defaults(&config);
  config.data_dir = folder;
  config.ack = ACK_RECEIVED;
  config.app_key = APP;
  config.app_secret = "0123456789abcdef";
  require(run_core(fill));
  FILE *file = fopen(path, "rb");
  sound = malloc(FILE_MAX);
  require(file && sound);
  sound_len = fread(sound, 1, FILE_MAX, file);
  fclose(file);
  atexit(remove_all);
}

static void restore(void) {
  remove_files();
  FILE *file = fopen(path, "wb");
  require(file && fwrite(sound, 1, sound_len, file) == sound_len);
  fclose(file);
}

static const struct column {
  const char *table, *row, *column; /* row: what tells rows apart */
} columns[] = {{"messages", "id", "id"}, {"messages", "id", "conversation"}, {"messages", "id", "seq"},
    {"messages", "id", "time_ms"}, {"messages", "id", "at_ms"}, {"messages", "id", "sender"},
    {"messages", "id", "member_count"}, {"messages", "id", "flags"}, {"messages", "id", "marks"},
    {"messages", "id", "msg_id"}, {"messages", "id", "recipients"}, {"messages", "id", "body"}, {"users", "num", "num"},
    {"users", "num", "app"}, {"users", "num", "user_id"}, {"users", "num", "nickname"}, {"users", "num", "ext"},
    {"users", "num", "updated_ms"}, {"groups", "num", "num"}, {"groups", "num", "app"}, {"groups", "num", "group_id"},
    {"groups", "num", "dissolved"}, {"group_members", "user", "group_num"}, {"group_members", "user", "user"},
    {"group_members", "user", "ordinal"}, {"conversations", "num", "num"}, {"conversations", "num", "app"},
    {"conversations", "num", "channel"}, {"conversations", "num", "a"}, {"conversations", "num", "b"},
    {"conversations", "num", "sub_channel"}, {"user_conversations", "conversation", "user"},
    {"user_conversations", "conversation", "conversation"}, {"user_conversations", "conversation", "unread_index"},
    {"user_conversations", "conversation", "read_index"}, {"user_conversations", "conversation", "sort_ms"},
    {"user_conversations", "conversation", "sync_ms"}, {"user_conversations", "conversation", "last_message"},
    {"apps", "num", "num"}, {"apps", "num", "app_key"}, {"apps", "num", "app_secret"}, {"apps", "num", "secure_key"},
    {"meta", "1", "value"}, {"meta", "1", "name"}};

static void bind(sqlite3_stmt *statement, uint8_t kind, const uint8_t *data, size_t len) {
  int64_t whole = 0;
  if (len) memcpy(&whole, data, len < sizeof whole ? len : sizeof whole);
  switch (kind & 3) {
  case 0:
    sqlite3_bind_int64(statement, 1, len <= 1 ? (int8_t)whole : whole);
    return;
  case 1:
    sqlite3_bind_text(statement, 1, len ? (const char *)data : "", (int)len, SQLITE_STATIC);
    return;
  case 2:
    sqlite3_bind_blob(statement, 1, len ? (const void *)data : "", (int)len, SQLITE_STATIC);
    return;
  default:
    sqlite3_bind_zeroblob(statement, 1, (int)(whole & 0xfff));
  }
}

/* Byte 0: column; byte 1: kind of value, above it the rows: all, or those with an even or odd number; 0x80 deletes. */
static void change(sqlite3 *db, const uint8_t *head, const uint8_t *data, size_t len) {
  const struct column *column = &columns[head[0] % COUNT(columns)];
  char where[64] = "1", sql[256];
  if (head[1] & 12) snprintf(where, sizeof where, "%s %% 2 = %d", column->row, head[1] >> 2 & 1);
  if (head[1] & 0x80)
    snprintf(sql, sizeof sql, "DELETE FROM %s WHERE ?1 IS NOT NULL AND %s", column->table, where);
  else
    snprintf(sql, sizeof sql, "UPDATE OR IGNORE %s SET %s = ?1 WHERE %s", column->table, column->column, where);
  sqlite3_stmt *statement;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) abort();
  bind(statement, head[1], data, len);
  sqlite3_step(statement);
  sqlite3_finalize(statement);
}

static void change_all(const uint8_t *data, size_t size) {
  sqlite3 *db;
  require(sqlite3_open(path, &db) == SQLITE_OK);
  sqlite3_exec(db, "PRAGMA synchronous=OFF; BEGIN", NULL, NULL, NULL);
  for (int i = 0; i < STEPS_MAX && size >= 3; i++) {
    size_t len = data[2] < size - 3 ? data[2] : size - 3;
    change(db, data, data + 3, len);
    data += 3 + len;
    size -= 3 + len;
  }
  sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
  sqlite3_close(db);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!sound) make_sound();
  restore();
  change_all(data, size);
  run_core(use);
  return 0;
}
