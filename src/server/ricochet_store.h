/* What the Ricochet peer keeps: mailboxes with their messages, documents, feeds and collections, in one SQLite file
 * (ricochet.db) of the data folder, opened for one thread. Writes gather in one transaction until a commit, and the
 * first failure sticks, as in store.h. Views of rows live until the next call; visitors must not call the store. */
#ifndef MUSTER_SERVER_RICOCHET_STORE_H
#define MUSTER_SERVER_RICOCHET_STORE_H

#include "base/err.h"
#include "base/view.h"
#include "wire/ricochet.h"

#include <stdbool.h>
#include <stdint.h>

struct ricochet_store;

enum status ricochet_store_open(struct ricochet_store **out, const char *data_dir, bool durable, struct err *err);
void ricochet_store_close(struct ricochet_store *store);
bool ricochet_store_pending(const struct ricochet_store *store);
enum status ricochet_store_commit(struct ricochet_store *store);
bool ricochet_store_failed(const struct ricochet_store *store, struct err *err);
/* Size of the file. */
uint64_t ricochet_store_bytes(struct ricochet_store *store);

/* --- mailboxes --- */

struct ricochet_mailbox {
  int64_t id, sequence, created_ms, accessed_ms; /* sequence: of the newest message */
  uint32_t count, max_messages, retention_days, retention_count;
  struct view owner, folder, type; /* type: "private", "shared", "public" */
};
bool ricochet_store_mailbox(
    struct ricochet_store *store, struct view owner, struct view folder, struct ricochet_mailbox *out);
/* Fills in id. */
void ricochet_store_add_mailbox(struct ricochet_store *store, struct ricochet_mailbox *mailbox);
/* Its limits, count, sequence and time of access. */
void ricochet_store_update_mailbox(struct ricochet_store *store, const struct ricochet_mailbox *mailbox);
void ricochet_store_delete_mailbox(struct ricochet_store *store, int64_t id);
/* Of one owner; of all with an empty one. */
uint32_t ricochet_store_count_mailboxes(struct ricochet_store *store, struct view owner);
void ricochet_store_list_mailboxes(struct ricochet_store *store, struct view owner,
    void (*visit)(void *context, const struct ricochet_mailbox *mailbox), void *context);

/* Access lists of mailboxes. mode: "readOnly", "writeOnly", "readWrite"; empty when there is no grant. */
void ricochet_store_grant(
    struct ricochet_store *store, int64_t mailbox, struct view peer, struct view mode, int64_t now_ms);
void ricochet_store_revoke(struct ricochet_store *store, int64_t mailbox, struct view peer);
struct view ricochet_store_granted(struct ricochet_store *store, int64_t mailbox, struct view peer);
void ricochet_store_list_grants(struct ricochet_store *store, int64_t mailbox,
    void (*visit)(void *context, struct view peer, struct view mode, int64_t granted_ms), void *context);

/* --- messages --- */

/* False when there is one of that id already. */
bool ricochet_store_add_message(struct ricochet_store *store, int64_t mailbox, const struct ricochet_message *message);
struct ricochet_range {
  int64_t mailbox, from_sequence, min_priority, now_ms;
};
/* Not expired, by priority and sequence; the visitor returns false to end the walk. */
void ricochet_store_walk_messages(struct ricochet_store *store, const struct ricochet_range *range,
    bool (*visit)(void *context, const struct ricochet_message *message), void *context);
struct ricochet_kept {
  int64_t mailbox;
  struct view owner;
  uint32_t message_flags;
  bool persistent;
};
bool ricochet_store_message(struct ricochet_store *store, struct view message_id, struct ricochet_kept *out);
void ricochet_store_flag_message(struct ricochet_store *store, struct view message_id, uint32_t flags);
/* Each also lowers the mailbox's count; returns how many there were. */
uint32_t ricochet_store_delete_message(struct ricochet_store *store, struct view message_id);
uint32_t ricochet_store_expunge(struct ricochet_store *store, int64_t mailbox, uint32_t flag);
/* Expired ones, and the oldest beyond keep (0: no bound). */
uint32_t ricochet_store_retain(struct ricochet_store *store, int64_t mailbox, int64_t now_ms, uint32_t keep);

/* --- documents --- */

struct ricochet_document {
  struct view owner, path, content_type, hash, visibility, content;
  int64_t version, updated_ms, size;
};
bool ricochet_store_document(
    struct ricochet_store *store, struct view owner, struct view path, struct ricochet_document *out);
void ricochet_store_put_document(struct ricochet_store *store, const struct ricochet_document *document);
void ricochet_store_delete_document(struct ricochet_store *store, struct view owner, struct view path);
/* Without content, behind a path, in its order; false ends the walk. */
void ricochet_store_walk_documents(struct ricochet_store *store, struct view owner, struct view behind,
    bool (*visit)(void *context, const struct ricochet_document *document), void *context);

/* --- feeds --- */

struct ricochet_feed {
  int64_t id, sequence, created_ms, last_entry_ms;
  struct view owner, path, title, description, visibility;
  bool collaborative;
};
bool ricochet_store_feed(struct ricochet_store *store, struct view owner, struct view path, struct ricochet_feed *out);
/* Fills in the id; an existing one gets title and description. */
void ricochet_store_put_feed(struct ricochet_store *store, struct ricochet_feed *feed);
void ricochet_store_delete_feed(struct ricochet_store *store, int64_t id);
void ricochet_store_list_feeds(struct ricochet_store *store, struct view owner,
    void (*visit)(void *context, const struct ricochet_feed *feed), void *context);

struct ricochet_entry {
  int64_t sequence, created_ms;
  struct view type, hash, created_by, content;
};
void ricochet_store_append(
    struct ricochet_store *store, const struct ricochet_feed *feed, const struct ricochet_entry *entry);
bool ricochet_store_entry(struct ricochet_store *store, int64_t feed, int64_t sequence, struct ricochet_entry *out);
void ricochet_store_walk_entries(struct ricochet_store *store, int64_t feed, int64_t from, int64_t to,
    bool (*visit)(void *context, const struct ricochet_entry *entry), void *context);

/* --- collections --- */

struct ricochet_collection {
  int64_t id, count, created_ms;
  struct view owner, path, name, visibility;
};
bool ricochet_store_collection(
    struct ricochet_store *store, struct view owner, struct view path, struct ricochet_collection *out);
/* Fills in the id. */
void ricochet_store_add_collection(struct ricochet_store *store, struct ricochet_collection *collection);
void ricochet_store_delete_collection(struct ricochet_store *store, int64_t id);
void ricochet_store_list_collections(struct ricochet_store *store, struct view owner,
    void (*visit)(void *context, const struct ricochet_collection *collection), void *context);

struct ricochet_item {
  struct view key, hash, content; /* content: JSON text */
  int64_t version, created_ms, updated_ms;
};
bool ricochet_store_item(struct ricochet_store *store, int64_t collection, struct view key, struct ricochet_item *out);
/* is_new: the collection's count rises. */
void ricochet_store_put_item(
    struct ricochet_store *store, int64_t collection, const struct ricochet_item *item, bool is_new);
void ricochet_store_delete_item(struct ricochet_store *store, int64_t collection, struct view key);
struct ricochet_order {
  int64_t collection, offset;
  struct view behind; /* a key, in the order of keys; empty: from the start */
  const char *field;  /* JSON path to sort by; NULL: by key */
  bool descending;
};
void ricochet_store_walk_items(struct ricochet_store *store, const struct ricochet_order *order,
    bool (*visit)(void *context, const struct ricochet_item *item), void *context);

#endif
