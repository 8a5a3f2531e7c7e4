#include "server/ricochet_store.h"

#include "server/store.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS mailboxes(id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, created_ms INTEGER NOT "
    "NULL,"
    " accessed_ms INTEGER NOT NULL, count INTEGER NOT NULL, max_messages INTEGER NOT NULL,"
    " retention_days INTEGER NOT NULL, retention_count INTEGER NOT NULL, owner TEXT NOT NULL, folder TEXT NOT NULL,"
    " type TEXT NOT NULL, UNIQUE(owner, folder));"
    "CREATE TABLE IF NOT EXISTS grants(mailbox INTEGER NOT NULL, peer TEXT NOT NULL, mode TEXT NOT NULL,"
    " granted_ms INTEGER NOT NULL, PRIMARY KEY(mailbox, peer)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS messages(id INTEGER PRIMARY KEY, message_id TEXT NOT NULL UNIQUE,"
    " mailbox INTEGER NOT NULL, sequence INTEGER NOT NULL, priority INTEGER NOT NULL, expiry_ms INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL, hop_count INTEGER NOT NULL, flags INTEGER NOT NULL, message_flags INTEGER NOT NULL,"
    " persistent INTEGER NOT NULL, sender TEXT NOT NULL, payload BLOB NOT NULL);"
    "CREATE UNIQUE INDEX IF NOT EXISTS by_mailbox ON messages(mailbox, priority DESC, sequence);"
    "CREATE TABLE IF NOT EXISTS documents(owner TEXT NOT NULL, path TEXT NOT NULL, content_type TEXT NOT NULL,"
    " hash TEXT NOT NULL, visibility TEXT NOT NULL, version INTEGER NOT NULL, updated_ms INTEGER NOT NULL,"
    " size INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY(owner, path));"
    "CREATE TABLE IF NOT EXISTS feeds(id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
    " last_entry_ms INTEGER NOT NULL, owner TEXT NOT NULL, path TEXT NOT NULL, title TEXT NOT NULL,"
    " description TEXT NOT NULL, visibility TEXT NOT NULL, collaborative INTEGER NOT NULL, UNIQUE(owner, path));"
    "CREATE TABLE IF NOT EXISTS entries(feed INTEGER NOT NULL, sequence INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
    " type TEXT NOT NULL, hash TEXT NOT NULL, created_by TEXT NOT NULL, content BLOB NOT NULL,"
    " PRIMARY KEY(feed, sequence));"
    "CREATE TABLE IF NOT EXISTS collections(id INTEGER PRIMARY KEY, count INTEGER NOT NULL, created_ms INTEGER NOT "
    "NULL,"
    " owner TEXT NOT NULL, path TEXT NOT NULL, name TEXT NOT NULL, visibility TEXT NOT NULL, UNIQUE(owner, path));"
    "CREATE TABLE IF NOT EXISTS items(collection INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, hash TEXT NOT NULL, content TEXT NOT NULL,"
    " PRIMARY KEY(collection, key));";

#define MAILBOX                                                                                                        \
  "SELECT id,sequence,created_ms,accessed_ms,count,max_messages,retention_days,retention_count,owner,folder,type"      \
  " FROM mailboxes WHERE owner=?1"
#define DOCUMENT "SELECT owner,path,content_type,hash,visibility,version,updated_ms,size"
#define FEED                                                                                                           \
  "SELECT id,sequence,created_ms,last_entry_ms,owner,path,title,description,visibility,collaborative FROM feeds"       \
  " WHERE owner=?1"
#define ENTRY "SELECT sequence,created_ms,type,hash,created_by,content FROM entries WHERE feed=?1"
#define COLLECTION "SELECT id,count,created_ms,owner,path,name,visibility FROM collections WHERE owner=?1"
#define ITEM "SELECT key,hash,content,version,created_ms,updated_ms FROM items WHERE collection=?1"

enum statement {
  BEGIN,
  COMMIT,
  GET_MAILBOX,
  ADD_MAILBOX,
  UPDATE_MAILBOX,
  DELETE_MAILBOX,
  EMPTY_MAILBOX,
  DROP_GRANTS,
  COUNT_MAILBOXES,
  COUNT_ALL_MAILBOXES,
  LIST_MAILBOXES,
  GRANT,
  REVOKE,
  GRANTED,
  LIST_GRANTS,
  ADD_MESSAGE,
  WALK_MESSAGES,
  GET_MESSAGE,
  FLAG_MESSAGE,
  LOWER_COUNT_OF,
  DELETE_MESSAGE,
  EXPUNGE,
  EXPIRE,
  KEEP_NEWEST,
  LOWER_COUNT,
  GET_DOCUMENT,
  PUT_DOCUMENT,
  DELETE_DOCUMENT,
  WALK_DOCUMENTS,
  GET_FEED,
  PUT_FEED,
  DELETE_FEED,
  EMPTY_FEED,
  LIST_FEEDS,
  APPEND,
  RAISE_FEED,
  GET_ENTRY,
  WALK_ENTRIES,
  GET_COLLECTION,
  ADD_COLLECTION,
  DELETE_COLLECTION,
  EMPTY_COLLECTION,
  LIST_COLLECTIONS,
  GET_ITEM,
  PUT_ITEM,
  RAISE_COLLECTION,
  DELETE_ITEM,
  WALK_KEYS,
  WALK_KEYS_DOWN,
  WALK_FIELD,
  WALK_FIELD_DOWN,
  FILE_BYTES,
  STATEMENTS
};

static const char *const statement_sql[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [GET_MAILBOX] = MAILBOX " AND folder=?2",
    [ADD_MAILBOX] = "INSERT INTO mailboxes(sequence,created_ms,accessed_ms,count,max_messages,retention_days,"
                    "retention_count,owner,folder,type) VALUES(0,?1,?1,0,?2,?3,?4,?5,?6,?7)",
    [UPDATE_MAILBOX] = "UPDATE mailboxes SET sequence=?2,accessed_ms=?3,count=?4,max_messages=?5,retention_days=?6,"
                       "retention_count=?7 WHERE id=?1",
    [DELETE_MAILBOX] = "DELETE FROM mailboxes WHERE id=?1",
    [EMPTY_MAILBOX] = "DELETE FROM messages WHERE mailbox=?1",
    [DROP_GRANTS] = "DELETE FROM grants WHERE mailbox=?1",
    [COUNT_MAILBOXES] = "SELECT count(*) FROM mailboxes WHERE owner=?1",
    [COUNT_ALL_MAILBOXES] = "SELECT count(*) FROM mailboxes",
    [LIST_MAILBOXES] = MAILBOX " ORDER BY folder",
    [GRANT] = "INSERT OR REPLACE INTO grants VALUES(?1,?2,?3,?4)",
    [REVOKE] = "DELETE FROM grants WHERE mailbox=?1 AND peer=?2",
    [GRANTED] = "SELECT mode FROM grants WHERE mailbox=?1 AND peer=?2",
    [LIST_GRANTS] = "SELECT peer,mode,granted_ms FROM grants WHERE mailbox=?1 ORDER BY peer",
    [ADD_MESSAGE] =
        "INSERT OR IGNORE INTO messages(message_id,mailbox,sequence,priority,expiry_ms,created_ms,hop_count,"
        "flags,message_flags,persistent,sender,payload) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)",
    [WALK_MESSAGES] = "SELECT message_id,m.sequence,priority,expiry_ms,m.created_ms,hop_count,flags,message_flags,"
                      "persistent,sender,payload,owner,folder FROM messages m JOIN mailboxes b ON b.id=m.mailbox"
                      " WHERE mailbox=?1 AND m.sequence>=?2 AND priority>?3 AND expiry_ms>?4"
                      " ORDER BY priority DESC, m.sequence",
    [GET_MESSAGE] = "SELECT mailbox,owner,message_flags,persistent FROM messages m JOIN mailboxes b ON b.id=m.mailbox"
                    " WHERE message_id=?1",
    [FLAG_MESSAGE] = "UPDATE messages SET message_flags=?2 WHERE message_id=?1",
    [LOWER_COUNT_OF] = "UPDATE mailboxes SET count=count-1"
                       " WHERE id=(SELECT mailbox FROM messages WHERE message_id=?1)",
    [DELETE_MESSAGE] = "DELETE FROM messages WHERE message_id=?1",
    [EXPUNGE] = "DELETE FROM messages WHERE mailbox=?1 AND message_flags&?2",
    [EXPIRE] = "DELETE FROM messages WHERE mailbox=?1 AND expiry_ms<=?2",
    [KEEP_NEWEST] = "DELETE FROM messages WHERE mailbox=?1 AND sequence<="
                    "(SELECT sequence FROM messages WHERE mailbox=?1 ORDER BY sequence DESC LIMIT 1 OFFSET ?2)",
    [LOWER_COUNT] = "UPDATE mailboxes SET count=count-?2 WHERE id=?1",
    [GET_DOCUMENT] = DOCUMENT ",content FROM documents WHERE owner=?1 AND path=?2",
    [PUT_DOCUMENT] = "INSERT OR REPLACE INTO documents VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [DELETE_DOCUMENT] = "DELETE FROM documents WHERE owner=?1 AND path=?2",
    [WALK_DOCUMENTS] = DOCUMENT " FROM documents WHERE owner=?1 AND path>?2 ORDER BY path",
    [GET_FEED] = FEED " AND path=?2",
    [PUT_FEED] = "INSERT INTO feeds(sequence,created_ms,last_entry_ms,owner,path,title,description,visibility,"
                 "collaborative) VALUES(0,?1,0,?2,?3,?4,?5,?6,?7) ON CONFLICT(owner,path) DO UPDATE SET"
                 " title=excluded.title,description=excluded.description RETURNING id",
    [DELETE_FEED] = "DELETE FROM feeds WHERE id=?1",
    [EMPTY_FEED] = "DELETE FROM entries WHERE feed=?1",
    [LIST_FEEDS] = FEED " ORDER BY path",
    [APPEND] = "INSERT INTO entries VALUES(?1,?2,?3,?4,?5,?6,?7)",
    [RAISE_FEED] = "UPDATE feeds SET sequence=?2,last_entry_ms=?3 WHERE id=?1",
    [GET_ENTRY] = ENTRY " AND sequence=?2",
    [WALK_ENTRIES] = ENTRY " AND sequence>=?2 AND sequence<=?3 ORDER BY sequence",
    [GET_COLLECTION] = COLLECTION " AND path=?2",
    [ADD_COLLECTION] = "INSERT INTO collections(count,created_ms,owner,path,name,visibility) VALUES(0,?1,?2,?3,?4,?5)",
    [DELETE_COLLECTION] = "DELETE FROM collections WHERE id=?1",
    [EMPTY_COLLECTION] = "DELETE FROM items WHERE collection=?1",
    [LIST_COLLECTIONS] = COLLECTION " ORDER BY path",
    [GET_ITEM] = ITEM " AND key=?2",
    [PUT_ITEM] = "INSERT OR REPLACE INTO items VALUES(?1,?2,?3,?4,?5,?6,?7)",
    [RAISE_COLLECTION] = "UPDATE collections SET count=count+?2 WHERE id=?1",
    [DELETE_ITEM] = "DELETE FROM items WHERE collection=?1 AND key=?2",
    [WALK_KEYS] = ITEM " AND key>?2 ORDER BY key LIMIT -1 OFFSET ?3",
    [WALK_KEYS_DOWN] = ITEM " AND (?2='' OR key<?2) ORDER BY key DESC LIMIT -1 OFFSET ?3",
    [WALK_FIELD] = ITEM " ORDER BY CAST(json_extract(content,?2) AS TEXT),key LIMIT -1 OFFSET ?3",
    [WALK_FIELD_DOWN] = ITEM " ORDER BY CAST(json_extract(content,?2) AS TEXT) DESC,key DESC LIMIT -1 OFFSET ?3",
    [FILE_BYTES] = "SELECT page_count*page_size FROM pragma_page_count, pragma_page_size",
};

struct ricochet_store {
  sqlite3 *db;
  sqlite3_stmt *statements[STATEMENTS];
  sqlite3_stmt *open; /* whose row is in somebody's hands */
  bool in_transaction, failed;
  struct err err;
  char path[512];
};

static void fail(struct ricochet_store *store, const char *what) {
  if (store->failed) return;
  store->failed = true;
  err_set(&store->err, STATUS_IO, "cannot %s %s: %s", what, store->path, sqlite3_errmsg(store->db));
}

bool ricochet_store_failed(const struct ricochet_store *store, struct err *err) {
  if (store->failed && err) *err = store->err;
  return store->failed;
}

static void put_back(struct ricochet_store *store) {
  if (store->open) sqlite3_reset(store->open);
  store->open = NULL;
}

static sqlite3_stmt *reading(struct ricochet_store *store, enum statement which) {
  put_back(store);
  store->open = store->statements[which];
  return store->open;
}

static bool step(struct ricochet_store *store) {
  if (store->failed) return false;
  int code = sqlite3_step(store->open);
  if (code != SQLITE_ROW && code != SQLITE_DONE) fail(store, "use");
  return code == SQLITE_ROW;
}

static void run_plain(struct ricochet_store *store, enum statement which) {
  reading(store, which);
  step(store);
  put_back(store);
}

/* The first write of a batch opens its transaction. Views that a caller holds of an open row end here. */
static sqlite3_stmt *writing(struct ricochet_store *store, enum statement which) {
  if (!store->in_transaction && !store->failed) {
    run_plain(store, BEGIN);
    store->in_transaction = !store->failed;
  }
  return reading(store, which);
}

/* Runs the write that is open; returns how many rows it changed. */
static uint32_t run(struct ricochet_store *store) {
  while (step(store)) {
  }
  put_back(store);
  return store->failed ? 0 : (uint32_t)sqlite3_changes(store->db);
}

bool ricochet_store_pending(const struct ricochet_store *store) {
  return store->in_transaction;
}

enum status ricochet_store_commit(struct ricochet_store *store) {
  put_back(store);
  if (store->in_transaction && !store->failed) {
    run_plain(store, COMMIT);
    store->in_transaction = store->failed;
  }
  return store->failed ? store->err.status : STATUS_OK;
}

static void bind_int(struct ricochet_store *store, int column, int64_t value) {
  sqlite3_bind_int64(store->open, column, value);
}

/* The bytes must live until the statement has run. */
static void bind_text(struct ricochet_store *store, int column, struct view text) {
  sqlite3_bind_text64(
      store->open, column, text.data ? (const char *)text.data : "", text.len, SQLITE_STATIC, SQLITE_UTF8);
}

static void bind_blob(struct ricochet_store *store, int column, struct view blob) {
  sqlite3_bind_blob64(store->open, column, blob.data ? (const void *)blob.data : "", blob.len, SQLITE_STATIC);
}

static int64_t int_at(const struct ricochet_store *store, int column) {
  return sqlite3_column_int64(store->open, column);
}

static struct view view_at(const struct ricochet_store *store, int column) {
  const void *bytes = sqlite3_column_blob(store->open, column);
  return view_of(bytes, (size_t)sqlite3_column_bytes(store->open, column));
}

/* --- open and close --- */

static enum status open_database(struct ricochet_store *store, bool durable, struct err *err) {
  char pragmas[256];
  snprintf(pragmas, sizeof pragmas,
      "PRAGMA locking_mode=EXCLUSIVE;PRAGMA journal_mode=WAL;PRAGMA synchronous=%s;PRAGMA busy_timeout=2000",
      durable ? "FULL" : "NORMAL");
  store_make_file(store->path);
  bool ok = sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                NULL) == SQLITE_OK &&
            sqlite3_exec(store->db, pragmas, NULL, NULL, NULL) == SQLITE_OK &&
            sqlite3_exec(store->db, schema, NULL, NULL, NULL) == SQLITE_OK;
  for (int i = 0; ok && i < STATEMENTS; i++) {
    ok = sqlite3_prepare_v3(store->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &store->statements[i], NULL) ==
         SQLITE_OK;
  }
  if (ok) return STATUS_OK;
  return err_set(err, STATUS_IO, "cannot open %s: %s; is another musterd using that folder?", store->path,
      store->db ? sqlite3_errmsg(store->db) : "out of memory");
}

enum status ricochet_store_open(struct ricochet_store **out, const char *data_dir, bool durable, struct err *err) {
  struct ricochet_store *store = calloc(1, sizeof *store);
  if (!store) return err_set(err, STATUS_MEMORY, "out of memory for the Ricochet store");
  int len = snprintf(store->path, sizeof store->path, "%s/ricochet.db", data_dir);
  enum status status = STATUS_OK;
  if (len < 0 || (size_t)len >= sizeof store->path) {
    status = err_set(err, STATUS_USAGE, "the data folder's name is too long: %.100s...", data_dir);
  } else if (mkdir(data_dir, 0700) != 0 && errno != EEXIST) {
    status = err_set(err, STATUS_IO, "cannot make the data folder %s: %s", data_dir, strerror(errno));
  } else {
    status = open_database(store, durable, err);
  }
  if (status == STATUS_OK) {
    *out = store;
  } else {
    ricochet_store_close(store);
  }
  return status;
}

void ricochet_store_close(struct ricochet_store *store) {
  if (!store) return;
  for (int i = 0; i < STATEMENTS; i++)
    sqlite3_finalize(store->statements[i]);
  sqlite3_close(store->db);
  free(store);
}

uint64_t ricochet_store_bytes(struct ricochet_store *store) {
  reading(store, FILE_BYTES);
  return step(store) ? (uint64_t)int_at(store, 0) : 0;
}

/* --- mailboxes --- */

static void take_mailbox(const struct ricochet_store *store, struct ricochet_mailbox *out) {
  *out = (struct ricochet_mailbox){
      .id = int_at(store, 0),
      .sequence = int_at(store, 1),
      .created_ms = int_at(store, 2),
      .accessed_ms = int_at(store, 3),
      .count = (uint32_t)int_at(store, 4),
      .max_messages = (uint32_t)int_at(store, 5),
      .retention_days = (uint32_t)int_at(store, 6),
      .retention_count = (uint32_t)int_at(store, 7),
      .owner = view_at(store, 8),
      .folder = view_at(store, 9),
      .type = view_at(store, 10),
  };
}

bool ricochet_store_mailbox(
    struct ricochet_store *store, struct view owner, struct view folder, struct ricochet_mailbox *out) {
  reading(store, GET_MAILBOX);
  bind_text(store, 1, owner);
  bind_text(store, 2, folder);
  if (!step(store)) return false;
  take_mailbox(store, out);
  return true;
}

void ricochet_store_add_mailbox(struct ricochet_store *store, struct ricochet_mailbox *mailbox) {
  writing(store, ADD_MAILBOX);
  bind_int(store, 1, mailbox->created_ms);
  bind_int(store, 2, mailbox->max_messages);
  bind_int(store, 3, mailbox->retention_days);
  bind_int(store, 4, mailbox->retention_count);
  bind_text(store, 5, mailbox->owner);
  bind_text(store, 6, mailbox->folder);
  bind_text(store, 7, mailbox->type);
  run(store);
  mailbox->id = sqlite3_last_insert_rowid(store->db);
}

void ricochet_store_update_mailbox(struct ricochet_store *store, const struct ricochet_mailbox *mailbox) {
  writing(store, UPDATE_MAILBOX);
  bind_int(store, 1, mailbox->id);
  bind_int(store, 2, mailbox->sequence);
  bind_int(store, 3, mailbox->accessed_ms);
  bind_int(store, 4, mailbox->count);
  bind_int(store, 5, mailbox->max_messages);
  bind_int(store, 6, mailbox->retention_days);
  bind_int(store, 7, mailbox->retention_count);
  run(store);
}

static uint32_t run_with_id(struct ricochet_store *store, enum statement which, int64_t id) {
  writing(store, which);
  bind_int(store, 1, id);
  return run(store);
}

void ricochet_store_delete_mailbox(struct ricochet_store *store, int64_t id) {
  run_with_id(store, EMPTY_MAILBOX, id);
  run_with_id(store, DROP_GRANTS, id);
  run_with_id(store, DELETE_MAILBOX, id);
}

uint32_t ricochet_store_count_mailboxes(struct ricochet_store *store, struct view owner) {
  reading(store, owner.len > 0 ? COUNT_MAILBOXES : COUNT_ALL_MAILBOXES);
  if (owner.len > 0) bind_text(store, 1, owner);
  return step(store) ? (uint32_t)int_at(store, 0) : 0;
}

void ricochet_store_list_mailboxes(struct ricochet_store *store, struct view owner,
    void (*visit)(void *context, const struct ricochet_mailbox *mailbox), void *context) {
  reading(store, LIST_MAILBOXES);
  bind_text(store, 1, owner);
  struct ricochet_mailbox mailbox;
  while (step(store)) {
    take_mailbox(store, &mailbox);
    visit(context, &mailbox);
  }
}

void ricochet_store_grant(
    struct ricochet_store *store, int64_t mailbox, struct view peer, struct view mode, int64_t now_ms) {
  writing(store, GRANT);
  bind_int(store, 1, mailbox);
  bind_text(store, 2, peer);
  bind_text(store, 3, mode);
  bind_int(store, 4, now_ms);
  run(store);
}

void ricochet_store_revoke(struct ricochet_store *store, int64_t mailbox, struct view peer) {
  writing(store, REVOKE);
  bind_int(store, 1, mailbox);
  bind_text(store, 2, peer);
  run(store);
}

struct view ricochet_store_granted(struct ricochet_store *store, int64_t mailbox, struct view peer) {
  reading(store, GRANTED);
  bind_int(store, 1, mailbox);
  bind_text(store, 2, peer);
  return step(store) ? view_at(store, 0) : (struct view){NULL, 0};
}

void ricochet_store_list_grants(struct ricochet_store *store, int64_t mailbox,
    void (*visit)(void *context, struct view peer, struct view mode, int64_t granted_ms), void *context) {
  reading(store, LIST_GRANTS);
  bind_int(store, 1, mailbox);
  while (step(store))
    visit(context, view_at(store, 0), view_at(store, 1), int_at(store, 2));
}

/* --- messages --- */

bool ricochet_store_add_message(struct ricochet_store *store, int64_t mailbox, const struct ricochet_message *message) {
  writing(store, ADD_MESSAGE);
  bind_text(store, 1, message->message_id);
  bind_int(store, 2, mailbox);
  bind_int(store, 3, message->sequence);
  bind_int(store, 4, message->priority);
  bind_int(store, 5, message->expiry_ms);
  bind_int(store, 6, message->created_ms);
  bind_int(store, 7, message->hop_count);
  bind_int(store, 8, message->flags);
  bind_int(store, 9, message->message_flags);
  bind_int(store, 10, message->persistent);
  bind_text(store, 11, message->sender);
  bind_blob(store, 12, message->payload);
  return run(store) == 1;
}

static void take_message(const struct ricochet_store *store, struct ricochet_message *out) {
  *out = (struct ricochet_message){
      .message_id = view_at(store, 0),
      .sequence = int_at(store, 1),
      .priority = (uint32_t)int_at(store, 2),
      .expiry_ms = int_at(store, 3),
      .created_ms = int_at(store, 4),
      .hop_count = (uint32_t)int_at(store, 5),
      .flags = (uint32_t)int_at(store, 6),
      .message_flags = (uint32_t)int_at(store, 7),
      .persistent = int_at(store, 8) != 0,
      .sender = view_at(store, 9),
      .payload = view_at(store, 10),
      .recipient = view_at(store, 11),
      .folder = view_at(store, 12),
  };
}

void ricochet_store_walk_messages(struct ricochet_store *store, const struct ricochet_range *range,
    bool (*visit)(void *context, const struct ricochet_message *message), void *context) {
  reading(store, WALK_MESSAGES);
  bind_int(store, 1, range->mailbox);
  bind_int(store, 2, range->from_sequence);
  bind_int(store, 3, range->min_priority);
  bind_int(store, 4, range->now_ms);
  struct ricochet_message message;
  while (step(store)) {
    take_message(store, &message);
    if (!visit(context, &message)) break;
  }
  put_back(store);
}

bool ricochet_store_message(struct ricochet_store *store, struct view message_id, struct ricochet_kept *out) {
  reading(store, GET_MESSAGE);
  bind_text(store, 1, message_id);
  if (!step(store)) return false;
  *out = (struct ricochet_kept){int_at(store, 0), view_at(store, 1), (uint32_t)int_at(store, 2), int_at(store, 3) != 0};
  return true;
}

void ricochet_store_flag_message(struct ricochet_store *store, struct view message_id, uint32_t flags) {
  writing(store, FLAG_MESSAGE);
  bind_text(store, 1, message_id);
  bind_int(store, 2, flags);
  run(store);
}

uint32_t ricochet_store_delete_message(struct ricochet_store *store, struct view message_id) {
  writing(store, LOWER_COUNT_OF);
  bind_text(store, 1, message_id);
  run(store);
  writing(store, DELETE_MESSAGE);
  bind_text(store, 1, message_id);
  return run(store);
}

/* Runs the deletion that is open and bound. */
static uint32_t delete_from(struct ricochet_store *store, int64_t mailbox) {
  uint32_t count = run(store);
  if (count == 0) return 0;
  writing(store, LOWER_COUNT);
  bind_int(store, 1, mailbox);
  bind_int(store, 2, count);
  run(store);
  return count;
}

uint32_t ricochet_store_expunge(struct ricochet_store *store, int64_t mailbox, uint32_t flag) {
  writing(store, EXPUNGE);
  bind_int(store, 1, mailbox);
  bind_int(store, 2, flag);
  return delete_from(store, mailbox);
}

uint32_t ricochet_store_retain(struct ricochet_store *store, int64_t mailbox, int64_t now_ms, uint32_t keep) {
  writing(store, EXPIRE);
  bind_int(store, 1, mailbox);
  bind_int(store, 2, now_ms);
  uint32_t count = delete_from(store, mailbox);
  if (keep == 0) return count;
  writing(store, KEEP_NEWEST);
  bind_int(store, 1, mailbox);
  bind_int(store, 2, keep);
  return count + delete_from(store, mailbox);
}

/* --- documents --- */

static void take_document(const struct ricochet_store *store, struct ricochet_document *out) {
  *out = (struct ricochet_document){
      .owner = view_at(store, 0),
      .path = view_at(store, 1),
      .content_type = view_at(store, 2),
      .hash = view_at(store, 3),
      .visibility = view_at(store, 4),
      .version = int_at(store, 5),
      .updated_ms = int_at(store, 6),
      .size = int_at(store, 7),
  };
}

bool ricochet_store_document(
    struct ricochet_store *store, struct view owner, struct view path, struct ricochet_document *out) {
  reading(store, GET_DOCUMENT);
  bind_text(store, 1, owner);
  bind_text(store, 2, path);
  if (!step(store)) return false;
  take_document(store, out);
  out->content = view_at(store, 8);
  return true;
}

void ricochet_store_put_document(struct ricochet_store *store, const struct ricochet_document *document) {
  writing(store, PUT_DOCUMENT);
  bind_text(store, 1, document->owner);
  bind_text(store, 2, document->path);
  bind_text(store, 3, document->content_type);
  bind_text(store, 4, document->hash);
  bind_text(store, 5, document->visibility);
  bind_int(store, 6, document->version);
  bind_int(store, 7, document->updated_ms);
  bind_int(store, 8, (int64_t)document->content.len);
  bind_blob(store, 9, document->content);
  run(store);
}

void ricochet_store_delete_document(struct ricochet_store *store, struct view owner, struct view path) {
  writing(store, DELETE_DOCUMENT);
  bind_text(store, 1, owner);
  bind_text(store, 2, path);
  run(store);
}

void ricochet_store_walk_documents(struct ricochet_store *store, struct view owner, struct view behind,
    bool (*visit)(void *context, const struct ricochet_document *document), void *context) {
  reading(store, WALK_DOCUMENTS);
  bind_text(store, 1, owner);
  bind_text(store, 2, behind);
  struct ricochet_document document;
  while (step(store)) {
    take_document(store, &document);
    if (!visit(context, &document)) break;
  }
  put_back(store);
}

/* --- feeds --- */

static void take_feed(const struct ricochet_store *store, struct ricochet_feed *out) {
  *out = (struct ricochet_feed){
      .id = int_at(store, 0),
      .sequence = int_at(store, 1),
      .created_ms = int_at(store, 2),
      .last_entry_ms = int_at(store, 3),
      .owner = view_at(store, 4),
      .path = view_at(store, 5),
      .title = view_at(store, 6),
      .description = view_at(store, 7),
      .visibility = view_at(store, 8),
      .collaborative = int_at(store, 9) != 0,
  };
}

bool ricochet_store_feed(struct ricochet_store *store, struct view owner, struct view path, struct ricochet_feed *out) {
  reading(store, GET_FEED);
  bind_text(store, 1, owner);
  bind_text(store, 2, path);
  if (!step(store)) return false;
  take_feed(store, out);
  return true;
}

void ricochet_store_put_feed(struct ricochet_store *store, struct ricochet_feed *feed) {
  writing(store, PUT_FEED);
  bind_int(store, 1, feed->created_ms);
  bind_text(store, 2, feed->owner);
  bind_text(store, 3, feed->path);
  bind_text(store, 4, feed->title);
  bind_text(store, 5, feed->description);
  bind_text(store, 6, feed->visibility);
  bind_int(store, 7, feed->collaborative);
  if (step(store)) feed->id = int_at(store, 0);
  run(store);
}

void ricochet_store_delete_feed(struct ricochet_store *store, int64_t id) {
  run_with_id(store, EMPTY_FEED, id);
  run_with_id(store, DELETE_FEED, id);
}

void ricochet_store_list_feeds(struct ricochet_store *store, struct view owner,
    void (*visit)(void *context, const struct ricochet_feed *feed), void *context) {
  reading(store, LIST_FEEDS);
  bind_text(store, 1, owner);
  struct ricochet_feed feed;
  while (step(store)) {
    take_feed(store, &feed);
    visit(context, &feed);
  }
}

void ricochet_store_append(
    struct ricochet_store *store, const struct ricochet_feed *feed, const struct ricochet_entry *entry) {
  int64_t id = feed->id;
  writing(store, APPEND);
  bind_int(store, 1, id);
  bind_int(store, 2, entry->sequence);
  bind_int(store, 3, entry->created_ms);
  bind_text(store, 4, entry->type);
  bind_text(store, 5, entry->hash);
  bind_text(store, 6, entry->created_by);
  bind_blob(store, 7, entry->content);
  run(store);
  writing(store, RAISE_FEED);
  bind_int(store, 1, id);
  bind_int(store, 2, entry->sequence);
  bind_int(store, 3, entry->created_ms);
  run(store);
}

static void take_entry(const struct ricochet_store *store, struct ricochet_entry *out) {
  *out = (struct ricochet_entry){
      .sequence = int_at(store, 0),
      .created_ms = int_at(store, 1),
      .type = view_at(store, 2),
      .hash = view_at(store, 3),
      .created_by = view_at(store, 4),
      .content = view_at(store, 5),
  };
}

bool ricochet_store_entry(struct ricochet_store *store, int64_t feed, int64_t sequence, struct ricochet_entry *out) {
  reading(store, GET_ENTRY);
  bind_int(store, 1, feed);
  bind_int(store, 2, sequence);
  if (!step(store)) return false;
  take_entry(store, out);
  return true;
}

void ricochet_store_walk_entries(struct ricochet_store *store, int64_t feed, int64_t from, int64_t to,
    bool (*visit)(void *context, const struct ricochet_entry *entry), void *context) {
  reading(store, WALK_ENTRIES);
  bind_int(store, 1, feed);
  bind_int(store, 2, from);
  bind_int(store, 3, to);
  struct ricochet_entry entry;
  while (step(store)) {
    take_entry(store, &entry);
    if (!visit(context, &entry)) break;
  }
  put_back(store);
}

/* --- collections --- */

static void take_collection(const struct ricochet_store *store, struct ricochet_collection *out) {
  *out = (struct ricochet_collection){
      .id = int_at(store, 0),
      .count = int_at(store, 1),
      .created_ms = int_at(store, 2),
      .owner = view_at(store, 3),
      .path = view_at(store, 4),
      .name = view_at(store, 5),
      .visibility = view_at(store, 6),
  };
}

bool ricochet_store_collection(
    struct ricochet_store *store, struct view owner, struct view path, struct ricochet_collection *out) {
  reading(store, GET_COLLECTION);
  bind_text(store, 1, owner);
  bind_text(store, 2, path);
  if (!step(store)) return false;
  take_collection(store, out);
  return true;
}

void ricochet_store_add_collection(struct ricochet_store *store, struct ricochet_collection *collection) {
  writing(store, ADD_COLLECTION);
  bind_int(store, 1, collection->created_ms);
  bind_text(store, 2, collection->owner);
  bind_text(store, 3, collection->path);
  bind_text(store, 4, collection->name);
  bind_text(store, 5, collection->visibility);
  run(store);
  collection->id = sqlite3_last_insert_rowid(store->db);
}

void ricochet_store_delete_collection(struct ricochet_store *store, int64_t id) {
  run_with_id(store, EMPTY_COLLECTION, id);
  run_with_id(store, DELETE_COLLECTION, id);
}

void ricochet_store_list_collections(struct ricochet_store *store, struct view owner,
    void (*visit)(void *context, const struct ricochet_collection *collection), void *context) {
  reading(store, LIST_COLLECTIONS);
  bind_text(store, 1, owner);
  struct ricochet_collection collection;
  while (step(store)) {
    take_collection(store, &collection);
    visit(context, &collection);
  }
}

static void take_item(const struct ricochet_store *store, struct ricochet_item *out) {
  *out = (struct ricochet_item){
      .key = view_at(store, 0),
      .hash = view_at(store, 1),
      .content = view_at(store, 2),
      .version = int_at(store, 3),
      .created_ms = int_at(store, 4),
      .updated_ms = int_at(store, 5),
  };
}

bool ricochet_store_item(struct ricochet_store *store, int64_t collection, struct view key, struct ricochet_item *out) {
  reading(store, GET_ITEM);
  bind_int(store, 1, collection);
  bind_text(store, 2, key);
  if (!step(store)) return false;
  take_item(store, out);
  return true;
}

static void change_count(struct ricochet_store *store, int64_t collection, int64_t by) {
  writing(store, RAISE_COLLECTION);
  bind_int(store, 1, collection);
  bind_int(store, 2, by);
  run(store);
}

void ricochet_store_put_item(
    struct ricochet_store *store, int64_t collection, const struct ricochet_item *item, bool is_new) {
  writing(store, PUT_ITEM);
  bind_int(store, 1, collection);
  bind_text(store, 2, item->key);
  bind_int(store, 3, item->version);
  bind_int(store, 4, item->created_ms);
  bind_int(store, 5, item->updated_ms);
  bind_text(store, 6, item->hash);
  bind_text(store, 7, item->content);
  run(store);
  if (is_new) change_count(store, collection, 1);
}

void ricochet_store_delete_item(struct ricochet_store *store, int64_t collection, struct view key) {
  writing(store, DELETE_ITEM);
  bind_int(store, 1, collection);
  bind_text(store, 2, key);
  if (run(store) == 1) change_count(store, collection, -1);
}

void ricochet_store_walk_items(struct ricochet_store *store, const struct ricochet_order *order,
    bool (*visit)(void *context, const struct ricochet_item *item), void *context) {
  if (order->field) {
    reading(store, order->descending ? WALK_FIELD_DOWN : WALK_FIELD);
  } else {
    reading(store, order->descending ? WALK_KEYS_DOWN : WALK_KEYS);
  }
  bind_int(store, 1, order->collection);
  bind_text(store, 2, order->field ? view_str(order->field) : order->behind);
  bind_int(store, 3, order->offset);
  struct ricochet_item item;
  while (step(store)) {
    take_item(store, &item);
    if (!visit(context, &item)) break;
  }
  put_back(store);
}
