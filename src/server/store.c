#include "server/store.h"

#include "server/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  SCHEMA_VERSION = 1,
  PLACES_BEHIND = 64, /* so many messages later places are written, twice as many: each round ends before the next */
  CATCH_UP = 1 << 16, /* messages of one commit of the catching up at the start */
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS apps(num INTEGER PRIMARY KEY, app_key TEXT NOT NULL UNIQUE, app_secret TEXT NOT NULL,"
    " secure_key TEXT NOT NULL, name TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS users(num INTEGER PRIMARY KEY, app INTEGER NOT NULL, user_id TEXT NOT NULL,"
    " nickname TEXT NOT NULL, portrait TEXT NOT NULL, ext TEXT NOT NULL, registered INTEGER NOT NULL,"
    " is_admin INTEGER NOT NULL, updated_ms INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS groups(num INTEGER PRIMARY KEY, app INTEGER NOT NULL, group_id TEXT NOT NULL,"
    " name TEXT NOT NULL, portrait TEXT NOT NULL, dissolved INTEGER NOT NULL, updated_ms INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS group_members(group_num INTEGER NOT NULL, user INTEGER NOT NULL,"
    " ordinal INTEGER NOT NULL, PRIMARY KEY(group_num, user)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS conversations(num INTEGER PRIMARY KEY, app INTEGER NOT NULL, channel INTEGER NOT NULL,"
    " a INTEGER NOT NULL, b INTEGER NOT NULL, sub_channel TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS user_conversations(user INTEGER NOT NULL, conversation INTEGER NOT NULL,"
    " unread_index INTEGER NOT NULL, read_index INTEGER NOT NULL, sort_ms INTEGER NOT NULL, sync_ms INTEGER NOT NULL,"
    " last_message INTEGER NOT NULL, PRIMARY KEY(user, conversation)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS messages(id INTEGER PRIMARY KEY, conversation INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " time_ms INTEGER NOT NULL, at_ms INTEGER NOT NULL, sender INTEGER NOT NULL, member_count INTEGER NOT NULL,"
    " flags INTEGER NOT NULL, marks INTEGER NOT NULL, msg_id TEXT NOT NULL, recipients BLOB NOT NULL,"
    " body BLOB NOT NULL);"
    /* The history's order. Written behind, see timeline.h: up to the message that meta names, it is complete. */
    "CREATE TABLE IF NOT EXISTS timeline(conversation INTEGER NOT NULL, time_ms INTEGER NOT NULL, id INTEGER NOT NULL,"
    " PRIMARY KEY(conversation, time_ms)) WITHOUT ROWID;"
    "DROP INDEX IF EXISTS history;"; /* of earlier versions */

#define MESSAGE_COLUMNS                                                                                                \
  "m.id,m.conversation,m.seq,m.time_ms,m.at_ms,m.sender,m.member_count,m.flags,m.marks,m.msg_id,m.recipients,m.body "
/* CROSS JOIN keeps SQLite from turning the order round. */
#define BY_TIMELINE "FROM timeline AS t CROSS JOIN messages AS m ON m.id=t.id WHERE t.conversation=?"

enum statement {
  BEGIN,
  COMMIT,
  PUT_APP,
  PUT_USER,
  PUT_GROUP,
  PUT_MEMBER,
  REMOVE_MEMBER,
  PUT_CONVERSATION,
  PUT_POSITION,
  PUT_META,
  GET_META,
  PUT_MESSAGE,
  PUT_PLACE,
  PLACES_END,
  PUT_PLACES,
  NEWEST_MESSAGE,
  MESSAGE_AT,
  REPLAY,
  HISTORY_OLDER,
  HISTORY_NEWER,
  MESSAGE_BY_ID,
  MESSAGE_BY_TIME,
  CONVERSATION_TAIL,
  STATEMENTS
};

static const char *const statement_sql[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [PUT_APP] = "INSERT OR REPLACE INTO apps VALUES(?,?,?,?,?)",
    [PUT_USER] = "INSERT OR REPLACE INTO users VALUES(?,?,?,?,?,?,?,?,?)",
    [PUT_GROUP] = "INSERT OR REPLACE INTO groups VALUES(?,?,?,?,?,?,?)",
    [PUT_MEMBER] = "INSERT OR REPLACE INTO group_members VALUES(?,?,?)",
    [REMOVE_MEMBER] = "DELETE FROM group_members WHERE group_num=? AND user=?",
    [PUT_CONVERSATION] = "INSERT INTO conversations VALUES(?,?,?,?,?,?)",
    [PUT_POSITION] = "INSERT OR REPLACE INTO user_conversations VALUES(?,?,?,?,?,?,?)",
    [PUT_META] = "INSERT OR REPLACE INTO meta VALUES(?,?)",
    [GET_META] = "SELECT value FROM meta WHERE name=?",
    [PUT_MESSAGE] = "INSERT INTO messages(" /* the columns in the order of the table, blobs last */
                    "id,conversation,seq,time_ms,at_ms,sender,member_count,flags,marks,msg_id,recipients,body)"
                    " VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
    [PUT_PLACE] = "INSERT OR IGNORE INTO timeline VALUES(?,?,?)",
    [PLACES_END] = "SELECT max(id) FROM (SELECT id FROM messages WHERE id>? ORDER BY id LIMIT ?)",
    [PUT_PLACES] = "INSERT OR IGNORE INTO timeline SELECT conversation,time_ms,id FROM messages"
                   " WHERE id>? AND id<=? AND seq>0 ORDER BY conversation,time_ms",
    [NEWEST_MESSAGE] = "SELECT max(id) FROM messages",
    [MESSAGE_AT] = "SELECT id,at_ms FROM messages WHERE id>=? ORDER BY id LIMIT 1",
    [REPLAY] = "SELECT " MESSAGE_COLUMNS "FROM messages AS m WHERE id>? ORDER BY id",
    [HISTORY_OLDER] = "SELECT " MESSAGE_COLUMNS BY_TIMELINE " AND t.time_ms<? ORDER BY t.time_ms DESC",
    [HISTORY_NEWER] = "SELECT " MESSAGE_COLUMNS BY_TIMELINE " AND t.time_ms>? ORDER BY t.time_ms",
    [MESSAGE_BY_ID] = "SELECT " MESSAGE_COLUMNS "FROM messages AS m WHERE id=?",
    [MESSAGE_BY_TIME] = "SELECT " MESSAGE_COLUMNS BY_TIMELINE " AND t.time_ms=?",
    [CONVERSATION_TAIL] = "SELECT m.seq,m.time_ms " BY_TIMELINE " ORDER BY t.time_ms DESC LIMIT 1",
};

struct store {
  sqlite3 *db;
  sqlite3_stmt *statements[STATEMENTS];
  struct timeline timeline;
  bool in_transaction, failed;
  struct err err; /* of the first failure */
  char path[512];
};

/* How to mend the last error of the database. */
static const char *mend(sqlite3 *db) {
  switch (sqlite3_errcode(db) & 0xff) {
  case SQLITE_FULL:
    return "; free some space and start again";
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    return "; restore it from a backup or choose another data folder";
  case SQLITE_CANTOPEN:
  case SQLITE_IOERR:
  case SQLITE_READONLY:
    return "; check that folder and file can be written to";
  default:
    return "";
  }
}

static enum status fail(struct store *store, const char *what) {
  if (store->failed) return store->err.status;
  store->failed = true;
  return err_set(
      &store->err, STATUS_IO, "cannot %s %s: %s%s", what, store->path, sqlite3_errmsg(store->db), mend(store->db));
}

bool store_failed(const struct store *store, struct err *err) {
  if (store->failed && err) *err = store->err;
  return store->failed;
}

static void bind_int(sqlite3_stmt *statement, int column, int64_t value) {
  sqlite3_bind_int64(statement, column, value);
}

/* The bytes must stay valid until the statement has run. */
static void bind_text(sqlite3_stmt *statement, int column, struct view text) {
  const char *bytes = text.data ? (const char *)text.data : "";
  sqlite3_bind_text64(statement, column, bytes, text.len, SQLITE_STATIC, SQLITE_UTF8);
}

static void bind_blob(sqlite3_stmt *statement, int column, struct view blob) {
  sqlite3_bind_blob64(statement, column, blob.data ? (const void *)blob.data : "", blob.len, SQLITE_STATIC);
}

static struct view column_view(sqlite3_stmt *statement, int column) {
  const void *bytes = sqlite3_column_blob(statement, column);
  return view_of(bytes, (size_t)sqlite3_column_bytes(statement, column));
}

static uint32_t column_num(sqlite3_stmt *statement, int column) {
  return (uint32_t)sqlite3_column_int64(statement, column);
}

/* Bounded, so that no sum of what a damaged file says overflows. */
static int64_t column_whole(sqlite3_stmt *statement, int column) {
  int64_t value = sqlite3_column_int64(statement, column);
  return value > STORE_WHOLE_MAX ? STORE_WHOLE_MAX : value < -STORE_WHOLE_MAX ? -STORE_WHOLE_MAX : value;
}

/* Runs a statement that returns no rows. */
static void run(struct store *store, enum statement which, const char *what) {
  sqlite3_stmt *statement = store->statements[which];
  if (!store->failed && sqlite3_step(statement) != SQLITE_DONE) fail(store, what);
  sqlite3_reset(statement);
}

/* The statement to bind for a write; the first write of a batch opens its transaction. */
static sqlite3_stmt *writing(struct store *store, enum statement which) {
  if (!store->in_transaction && !store->failed) {
    run(store, BEGIN, "begin a transaction in");
    store->in_transaction = !store->failed;
  }
  return store->statements[which];
}

bool store_pending(const struct store *store) {
  return store->in_transaction;
}

enum status store_commit(struct store *store) {
  if (store->failed) return store->err.status;
  if (!store->in_transaction) return STATUS_OK;
  run(store, COMMIT, "commit to");
  if (store->failed) return store->err.status;
  store->in_transaction = false;
  return STATUS_OK;
}

void store_put_app(struct store *store, const struct store_app *app) {
  sqlite3_stmt *statement = writing(store, PUT_APP);
  bind_int(statement, 1, app->num);
  bind_text(statement, 2, app->app_key);
  bind_text(statement, 3, app->app_secret);
  bind_text(statement, 4, app->secure_key);
  bind_text(statement, 5, app->name);
  run(store, PUT_APP, "write an app to");
}

void store_put_user(struct store *store, const struct store_user *user) {
  sqlite3_stmt *statement = writing(store, PUT_USER);
  bind_int(statement, 1, user->num);
  bind_int(statement, 2, user->app);
  bind_text(statement, 3, user->user_id);
  bind_text(statement, 4, user->nickname);
  bind_text(statement, 5, user->portrait);
  bind_text(statement, 6, user->ext_json);
  bind_int(statement, 7, user->registered);
  bind_int(statement, 8, user->is_admin);
  bind_int(statement, 9, user->updated_ms);
  run(store, PUT_USER, "write a user to");
}

void store_put_group(struct store *store, const struct store_group *group) {
  sqlite3_stmt *statement = writing(store, PUT_GROUP);
  bind_int(statement, 1, group->num);
  bind_int(statement, 2, group->app);
  bind_text(statement, 3, group->group_id);
  bind_text(statement, 4, group->name);
  bind_text(statement, 5, group->portrait);
  bind_int(statement, 6, group->dissolved);
  bind_int(statement, 7, group->updated_ms);
  run(store, PUT_GROUP, "write a group to");
}

void store_put_member(struct store *store, const struct store_member *member) {
  sqlite3_stmt *statement = writing(store, PUT_MEMBER);
  bind_int(statement, 1, member->group);
  bind_int(statement, 2, member->user);
  bind_int(statement, 3, member->ordinal);
  run(store, PUT_MEMBER, "write a group member to");
}

void store_remove_member(struct store *store, uint32_t group, uint32_t user) {
  sqlite3_stmt *statement = writing(store, REMOVE_MEMBER);
  bind_int(statement, 1, group);
  bind_int(statement, 2, user);
  run(store, REMOVE_MEMBER, "remove a group member from");
}

void store_put_conversation(struct store *store, const struct store_conversation *conversation) {
  sqlite3_stmt *statement = writing(store, PUT_CONVERSATION);
  bind_int(statement, 1, conversation->num);
  bind_int(statement, 2, conversation->app);
  bind_int(statement, 3, conversation->channel);
  bind_int(statement, 4, conversation->a);
  bind_int(statement, 5, conversation->b);
  bind_text(statement, 6, conversation->sub_channel);
  run(store, PUT_CONVERSATION, "write a conversation to");
}

void store_put_position(struct store *store, const struct store_position *position) {
  sqlite3_stmt *statement = writing(store, PUT_POSITION);
  bind_int(statement, 1, position->user);
  bind_int(statement, 2, position->conversation);
  bind_int(statement, 3, position->unread_index);
  bind_int(statement, 4, position->read_index);
  bind_int(statement, 5, position->sort_ms);
  bind_int(statement, 6, position->sync_ms);
  bind_int(statement, 7, position->last_message);
  run(store, PUT_POSITION, "write a read position to");
}

static void put_meta(struct store *store, const char *name, int64_t value) {
  sqlite3_stmt *statement = writing(store, PUT_META);
  bind_text(statement, 1, view_str(name));
  bind_int(statement, 2, value);
  run(store, PUT_META, "write to");
}

/* True when a statement that asks for one row has it; a failed read fails the store. Reset it afterwards. */
static bool one_row(struct store *store, enum statement which) {
  if (store->failed) return false;
  int code = sqlite3_step(store->statements[which]);
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail(store, "read from");
  return code == SQLITE_ROW;
}

static int64_t get_meta(struct store *store, const char *name, int64_t otherwise) {
  sqlite3_stmt *statement = store->statements[GET_META];
  bind_text(statement, 1, view_str(name));
  int64_t value = one_row(store, GET_META) ? column_whole(statement, 0) : otherwise;
  sqlite3_reset(statement);
  return value;
}

void store_put_checkpoint(struct store *store, int64_t message_id) {
  put_meta(store, "checkpoint", message_id);
}

int64_t store_checkpoint(struct store *store) {
  return get_meta(store, "checkpoint", 0);
}

/* ---- The timeline, behind the messages ---- */

static void put_place(struct store *store, const struct place *place) {
  sqlite3_stmt *statement = writing(store, PUT_PLACE);
  bind_int(statement, 1, place->conversation);
  bind_int(statement, 2, place->time_ms);
  bind_int(statement, 3, place->id);
  run(store, PUT_PLACE, "write to the timeline of");
}

static void put_places(struct store *store, uint32_t limit) {
  struct timeline *timeline = &store->timeline;
  struct place place;
  if (timeline->round_at == timeline->round_count) return;
  while (limit-- && timeline_next(timeline, &place))
    put_place(store, &place);
  if (timeline->round_at == timeline->round_count) put_meta(store, "timeline", timeline->round_newest);
}

static void add_place(struct store *store, const struct place *place) {
  struct timeline *timeline = &store->timeline;
  timeline_add(timeline, place);
  if (timeline->gathered % PLACES_BEHIND == 0) put_places(store, 2 * PLACES_BEHIND);
  timeline_seal(timeline);
}

/* Before a conversation's history is read. */
static void put_places_of(struct store *store, uint32_t conversation) {
  struct place place;
  uint32_t at = 0;
  while (timeline_take(&store->timeline, conversation, &at, &place))
    put_place(store, &place);
}

/* At the start: the places that the process before had not written; with a store of an earlier version, all. */
static enum status catch_up(struct store *store, struct err *err) {
  int64_t done = get_meta(store, "timeline", 0);
  while (!store->failed) {
    bind_int(store->statements[PLACES_END], 1, done);
    bind_int(store->statements[PLACES_END], 2, CATCH_UP);
    int64_t end = one_row(store, PLACES_END) ? column_whole(store->statements[PLACES_END], 0) : 0;
    sqlite3_reset(store->statements[PLACES_END]);
    if (end <= done) break;
    sqlite3_stmt *statement = writing(store, PUT_PLACES);
    bind_int(statement, 1, done);
    bind_int(statement, 2, end);
    run(store, PUT_PLACES, "write to the timeline of");
    put_meta(store, "timeline", end);
    store_commit(store);
    done = end;
  }
  return store_failed(store, err) ? STATUS_IO : STATUS_OK;
}

void store_put_message(struct store *store, const struct store_message *message) {
  sqlite3_stmt *statement = writing(store, PUT_MESSAGE);
  bind_int(statement, 1, message->id);
  bind_int(statement, 2, message->conversation);
  bind_int(statement, 3, message->seq);
  bind_int(statement, 4, message->time_ms);
  bind_int(statement, 5, message->at_ms);
  bind_int(statement, 6, message->sender);
  bind_int(statement, 7, message->member_count);
  bind_int(statement, 8, message->flags);
  bind_int(statement, 9, message->marks);
  bind_text(statement, 10, message->msg_id);
  bind_blob(statement, 11, message->recipients);
  bind_blob(statement, 12, message->body);
  run(store, PUT_MESSAGE, "write a message to");
  if (message->seq > 0) add_place(store, &(struct place){message->time_ms, message->id, message->conversation});
}

/* Steps through a bound statement's messages; returns how many there were. */
static uint32_t walk(struct store *store, enum statement which, store_message_visit visit, void *context) {
  sqlite3_stmt *row = store->statements[which];
  uint32_t count = 0;
  int code = SQLITE_DONE;
  while (!store->failed && (code = sqlite3_step(row)) == SQLITE_ROW) {
    count++;
    struct store_message message = {
        .id = column_whole(row, 0),
        .conversation = column_num(row, 1),
        .seq = column_whole(row, 2),
        .time_ms = column_whole(row, 3),
        .at_ms = column_whole(row, 4),
        .sender = column_num(row, 5),
        .member_count = column_num(row, 6),
        .flags = (int32_t)sqlite3_column_int64(row, 7),
        .marks = (int32_t)sqlite3_column_int64(row, 8),
        .msg_id = column_view(row, 9),
        .recipients = column_view(row, 10),
        .body = column_view(row, 11),
    };
    if (!visit(context, &message)) break;
  }
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail(store, "read messages from");
  sqlite3_reset(row);
  return count;
}

int64_t store_newest_message(struct store *store) {
  sqlite3_stmt *statement = store->statements[NEWEST_MESSAGE];
  int64_t newest = one_row(store, NEWEST_MESSAGE) ? column_whole(statement, 0) : 0;
  sqlite3_reset(statement);
  return newest;
}

int64_t store_message_before(struct store *store, int64_t at_ms) {
  /* at_ms never descends from one id to the next, so this is a binary search over ids. */
  sqlite3_stmt *statement = store->statements[MESSAGE_AT];
  int64_t low = 0, high = store_newest_message(store);
  while (low < high) {
    int64_t middle = low + (high - low + 1) / 2;
    bind_int(statement, 1, middle);
    bool before = one_row(store, MESSAGE_AT) && column_whole(statement, 1) < at_ms;
    sqlite3_reset(statement);
    if (before)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

void store_replay(struct store *store, int64_t after_id, store_message_visit visit, void *context) {
  bind_int(store->statements[REPLAY], 1, after_id);
  walk(store, REPLAY, visit, context);
}

void store_history(struct store *store, uint32_t conversation, int64_t start_ms, bool oldest_first,
    store_message_visit visit, void *context) {
  enum statement which = oldest_first ? HISTORY_NEWER : HISTORY_OLDER;
  put_places_of(store, conversation);
  bind_int(store->statements[which], 1, conversation);
  bind_int(store->statements[which], 2, start_ms);
  walk(store, which, visit, context);
}

bool store_message_by_id(struct store *store, int64_t id, store_message_visit visit, void *context) {
  bind_int(store->statements[MESSAGE_BY_ID], 1, id);
  return walk(store, MESSAGE_BY_ID, visit, context) > 0;
}

bool store_message_by_time(
    struct store *store, uint32_t conversation, int64_t time_ms, store_message_visit visit, void *context) {
  put_places_of(store, conversation);
  bind_int(store->statements[MESSAGE_BY_TIME], 1, conversation);
  bind_int(store->statements[MESSAGE_BY_TIME], 2, time_ms);
  return walk(store, MESSAGE_BY_TIME, visit, context) > 0;
}

void store_conversation_tail(struct store *store, uint32_t conversation, int64_t *seq, int64_t *time_ms) {
  sqlite3_stmt *statement = store->statements[CONVERSATION_TAIL];
  put_places_of(store, conversation);
  bind_int(statement, 1, conversation);
  *seq = *time_ms = 0;
  if (one_row(store, CONVERSATION_TAIL)) {
    *seq = column_whole(statement, 0);
    *time_ms = column_whole(statement, 1);
  }
  sqlite3_reset(statement);
}

/* ---- Loading ---- */

static bool load_app(const struct store_visitor *visitor, sqlite3_stmt *row) {
  return visitor->app(visitor->context, &(struct store_app){column_num(row, 0), column_view(row, 1),
                                            column_view(row, 2), column_view(row, 3), column_view(row, 4)});
}

static bool load_user(const struct store_visitor *visitor, sqlite3_stmt *row) {
  return visitor->user(visitor->context, &(struct store_user){.num = column_num(row, 0),
                                             .app = column_num(row, 1),
                                             .user_id = column_view(row, 2),
                                             .nickname = column_view(row, 3),
                                             .portrait = column_view(row, 4),
                                             .ext_json = column_view(row, 5),
                                             .registered = sqlite3_column_int(row, 6) != 0,
                                             .is_admin = sqlite3_column_int(row, 7) != 0,
                                             .updated_ms = column_whole(row, 8)});
}

static bool load_group(const struct store_visitor *visitor, sqlite3_stmt *row) {
  return visitor->group(visitor->context, &(struct store_group){.num = column_num(row, 0),
                                              .app = column_num(row, 1),
                                              .group_id = column_view(row, 2),
                                              .name = column_view(row, 3),
                                              .portrait = column_view(row, 4),
                                              .dissolved = sqlite3_column_int(row, 5) != 0,
                                              .updated_ms = column_whole(row, 6)});
}

static bool load_member(const struct store_visitor *visitor, sqlite3_stmt *row) {
  return visitor->member(
      visitor->context, &(struct store_member){column_num(row, 0), column_num(row, 1), column_whole(row, 2)});
}

static bool load_conversation(const struct store_visitor *visitor, sqlite3_stmt *row) {
  return visitor->conversation(visitor->context, &(struct store_conversation){.num = column_num(row, 0),
                                                     .app = column_num(row, 1),
                                                     .channel = sqlite3_column_int(row, 2),
                                                     .a = column_num(row, 3),
                                                     .b = column_num(row, 4),
                                                     .sub_channel = column_view(row, 5)});
}

static bool load_position(const struct store_visitor *visitor, sqlite3_stmt *row) {
  return visitor->position(visitor->context, &(struct store_position){.user = column_num(row, 0),
                                                 .conversation = column_num(row, 1),
                                                 .unread_index = column_whole(row, 2),
                                                 .read_index = column_whole(row, 3),
                                                 .sort_ms = column_whole(row, 4),
                                                 .sync_ms = column_whole(row, 5),
                                                 .last_message = column_whole(row, 6)});
}

static enum status load_table(struct store *store, const char *sql, const struct store_visitor *visitor,
    bool (*load)(const struct store_visitor *visitor, sqlite3_stmt *row), struct err *err) {
  sqlite3_stmt *row = NULL;
  if (sqlite3_prepare_v2(store->db, sql, -1, &row, NULL) != SQLITE_OK)
    return err_set(err, STATUS_IO, "cannot read %s: %s", store->path, sqlite3_errmsg(store->db));
  enum status status = STATUS_OK;
  int code;
  while (status == STATUS_OK && (code = sqlite3_step(row)) != SQLITE_DONE) {
    if (code != SQLITE_ROW)
      status = err_set(err, STATUS_IO, "cannot read %s: %s%s", store->path, sqlite3_errmsg(store->db), mend(store->db));
    else if (!load(visitor, row))
      status = err_set(err, STATUS_MEMORY, "cannot load %s: a row makes no sense or memory is out", store->path);
  }
  sqlite3_finalize(row);
  return status;
}

enum status store_load(struct store *store, const struct store_visitor *visitor, struct err *err) {
  static const struct {
    const char *sql;
    bool (*load)(const struct store_visitor *visitor, sqlite3_stmt *row);
  } tables[] = {
      {"SELECT * FROM apps ORDER BY num", load_app},
      {"SELECT * FROM users ORDER BY num", load_user},
      {"SELECT * FROM groups ORDER BY num", load_group},
      {"SELECT * FROM group_members ORDER BY group_num, ordinal", load_member},
      {"SELECT * FROM conversations ORDER BY num", load_conversation},
      {"SELECT * FROM user_conversations", load_position},
  };
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    enum status status = load_table(store, tables[i].sql, visitor, tables[i].load, err);
    if (status != STATUS_OK) return status;
  }
  return STATUS_OK;
}

/* ---- Opening ---- */

static enum status execute(struct store *store, const char *sql, struct err *err) {
  int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
  if (code == SQLITE_OK) return STATUS_OK;
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    return err_set(
        err, STATUS_IO, "%s is in use by another process: stop it or choose another data folder", store->path);
  return err_set(err, STATUS_IO, "cannot open %s: %s%s", store->path, sqlite3_errmsg(store->db), mend(store->db));
}

static enum status check_version(struct store *store, struct err *err) {
  int64_t version = get_meta(store, "schema_version", 0);
  if (store_failed(store, err)) return STATUS_IO;
  if (version > SCHEMA_VERSION)
    return err_set(err, STATUS_USAGE,
        "%s has schema version %lld, which is newer than this program's %d: use the newer musterd", store->path,
        (long long)version, SCHEMA_VERSION);
  if (version == SCHEMA_VERSION) return STATUS_OK;
  put_meta(store, "schema_version", SCHEMA_VERSION);
  if (store_commit(store) == STATUS_OK) return STATUS_OK;
  if (err) *err = store->err;
  return STATUS_IO;
}

static enum status prepare(struct store *store, enum statement first, enum statement last, struct err *err) {
  for (int i = first; i <= (int)last; i++) {
    if (store->statements[i]) continue;
    if (sqlite3_prepare_v3(store->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &store->statements[i], NULL))
      return err_set(err, STATUS_IO, "cannot use %s: %s", store->path, sqlite3_errmsg(store->db));
  }
  return STATUS_OK;
}

void store_make_file(const char *path) {
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd); /* otherwise SQLite says what is wrong */
}

/* SQLite answers with the mode that it could set, and a file system may not allow WAL. */
static enum status check_journal(struct store *store, struct err *err) {
  sqlite3_stmt *row = NULL;
  bool is_wal = sqlite3_prepare_v2(store->db, "PRAGMA journal_mode", -1, &row, NULL) == SQLITE_OK &&
                sqlite3_step(row) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(row, 0), "wal") == 0;
  sqlite3_finalize(row);
  if (is_wal) return STATUS_OK;
  return err_set(err, STATUS_IO, "%s cannot keep a write-ahead log: put the data folder on a local disk", store->path);
}

static enum status open_database(struct store *store, bool durable, struct err *err) {
  store_make_file(store->path);
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(store->path, &store->db, flags, NULL) != SQLITE_OK)
    return err_set(err, STATUS_IO, "cannot open %s: %s%s", store->path,
        store->db ? sqlite3_errmsg(store->db) : "memory is out", store->db ? mend(store->db) : "");
  enum status status = execute(store,
      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=4000;"
      " PRAGMA cache_size=-32768; PRAGMA temp_store=MEMORY; BEGIN IMMEDIATE; COMMIT;",
      err);
  if (status == STATUS_OK) status = check_journal(store, err);
  if (status != STATUS_OK) return status;
  status = execute(store, durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", err);
  if (status != STATUS_OK) return status;
  /* The meta table is asked before the rest of the schema is touched. */
  status = execute(
      store, "CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID", err);
  if (status != STATUS_OK) return status;
  status = prepare(store, BEGIN, COMMIT, err);
  if (status == STATUS_OK) status = prepare(store, PUT_META, GET_META, err);
  if (status != STATUS_OK) return status;
  status = check_version(store, err);
  if (status != STATUS_OK) return status;
  status = execute(store, schema, err);
  if (status != STATUS_OK) return status;
  status = prepare(store, BEGIN, CONVERSATION_TAIL, err);
  return status == STATUS_OK ? catch_up(store, err) : status;
}

/* A new folder is only as durable as its name in the folder around it; SQLite sees to the files inside. */
static enum status make_folder(const char *data_dir, struct err *err) {
  if (mkdir(data_dir, 0700) != 0) {
    if (errno == EEXIST) return STATUS_OK;
    return err_set(err, STATUS_IO, "cannot make the data folder %s: %s", data_dir, strerror(errno));
  }
  char around[512];
  snprintf(around, sizeof around, "%s/..", data_dir);
  int fd = open(around, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool synced = fd >= 0 && fsync(fd) == 0;
  int error = errno;
  if (fd >= 0) close(fd);
  if (synced) return STATUS_OK;
  return err_set(err, STATUS_IO, "cannot sync the folder around %s: %s", data_dir, strerror(error));
}

enum status store_open(struct store **out, const char *data_dir, bool durable, struct err *err) {
  *out = NULL;
  struct store *store = calloc(1, sizeof *store);
  if (!store) return err_set(err, STATUS_MEMORY, "no memory to open the store");
  int len = snprintf(store->path, sizeof store->path, "%s/musterd.db", data_dir);
  enum status status = STATUS_OK;
  if (!timeline_open(&store->timeline)) status = err_set(err, STATUS_MEMORY, "no memory to open the store");
  if (len < 0 || (size_t)len >= sizeof store->path)
    status = err_set(err, STATUS_USAGE, "the data folder's path is too long");
  if (status == STATUS_OK) status = make_folder(data_dir, err);
  if (status == STATUS_OK) status = open_database(store, durable, err);
  if (status != STATUS_OK) {
    store_close(store);
    return status;
  }
  *out = store;
  return STATUS_OK;
}

void store_close(struct store *store) {
  if (!store) return;
  for (int i = 0; i < STATEMENTS; i++)
    sqlite3_finalize(store->statements[i]);
  sqlite3_close(store->db);
  timeline_free(&store->timeline);
  free(store);
}
