/* The store: one SQLite file in the data folder, opened for one thread. A message is one row whatever its fan-out.
 *
 * Writes gather in one transaction, which the first of them opens, until store_commit. The first failure sticks: from
 * then on nothing is written and store_commit keeps refusing, so nobody can take a lost write for a kept one.
 * With durable the commit returns after the log has reached the disk (synchronous=FULL); without, the operating system
 * holds it (synchronous=NORMAL: a crash of the process loses nothing, one of the machine may lose the newest commits).
 * The file is locked for as long as it is open, so two servers cannot share one data folder. */
#ifndef MUSTER_SERVER_STORE_H
#define MUSTER_SERVER_STORE_H

#include "base/err.h"
#include "base/view.h"

#include <stdbool.h>
#include <stdint.h>

/* No number or time of a row that is read is further from 0. */
#define STORE_WHOLE_MAX (INT64_C(1) << 52)

struct store;

enum status store_open(struct store **out, const char *data_dir, bool durable, struct err *err);
/* Rolls back what was not committed. */
void store_close(struct store *store);

/* True when there was something to commit. */
bool store_pending(const struct store *store);
enum status store_commit(struct store *store);
bool store_failed(const struct store *store, struct err *err);

struct store_app {
  uint32_t num;
  struct view app_key, app_secret, secure_key, name;
};
struct store_user {
  uint32_t num, app;
  struct view user_id, nickname, portrait, ext_json;
  bool registered, is_admin;
  int64_t updated_ms;
};
struct store_group {
  uint32_t num, app;
  struct view group_id, name, portrait;
  bool dissolved;
  int64_t updated_ms;
};
struct store_member {
  uint32_t group, user;
  int64_t ordinal; /* join order within the group */
};
/* a and b: user numbers, the smaller one first; or the group and 0. */
struct store_conversation {
  uint32_t num, app, a, b;
  int32_t channel;
  struct view sub_channel;
};
/* What one user has of one conversation. */
struct store_position {
  uint32_t user, conversation;
  int64_t unread_index, read_index, sort_ms, sync_ms, last_message;
};

/* Inserts or replaces by number. */
void store_put_app(struct store *store, const struct store_app *app);
void store_put_user(struct store *store, const struct store_user *user);
void store_put_group(struct store *store, const struct store_group *group);
void store_put_member(struct store *store, const struct store_member *member);
void store_remove_member(struct store *store, uint32_t group, uint32_t user);
void store_put_conversation(struct store *store, const struct store_conversation *conversation);
void store_put_position(struct store *store, const struct store_position *position);

/* Every message up to this one is contained in the positions. */
void store_put_checkpoint(struct store *store, int64_t message_id);

/* Everything but messages, in the order of this struct; each row through its visitor. Views live during the visit.
 * A visitor returns false when memory is out, which ends the loading. */
struct store_visitor {
  void *context;
  bool (*app)(void *context, const struct store_app *row);
  bool (*user)(void *context, const struct store_user *row);
  bool (*group)(void *context, const struct store_group *row);
  bool (*member)(void *context, const struct store_member *row); /* by group, then ordinal */
  bool (*conversation)(void *context, const struct store_conversation *row);
  bool (*position)(void *context, const struct store_position *row);
};
enum status store_load(struct store *store, const struct store_visitor *visitor, struct err *err);
int64_t store_checkpoint(struct store *store);

enum store_message_mark {
  STORE_DIRECTED = 1,   /* addressed to some of the group's members only */
  STORE_CLIENT_UID = 2, /* the uid in the body came from the client */
  STORE_NO_COPY = 4,    /* the sender asked for no copy of its own */
};
struct store_message {
  int64_t id, seq; /* seq: -1 when the message is not part of the history */
  int64_t time_ms; /* strictly ascending in a conversation */
  int64_t at_ms;   /* when the core took it: never descending from one id to the next */
  uint32_t conversation, sender, member_count;
  int32_t flags, marks;
  struct view msg_id, body, recipients;
};
void store_put_message(struct store *store, const struct store_message *message);

/* A visitor of messages returns false to end the walk. */
typedef bool (*store_message_visit)(void *context, const struct store_message *message);

/* Highest message id, 0 when there is none. */
int64_t store_newest_message(struct store *store);
/* The id of the last message that the core took before at_ms, 0 when there is none. */
int64_t store_message_before(struct store *store, int64_t at_ms);
/* Messages behind after_id, ascending. */
void store_replay(struct store *store, int64_t after_id, store_message_visit visit, void *context);
/* The history of a conversation: older than start_ms, newest first; or newer than start_ms, oldest first. */
void store_history(struct store *store, uint32_t conversation, int64_t start_ms, bool oldest_first,
    store_message_visit visit, void *context);
/* One message by id; by conversation and exact time. False when there is none. */
bool store_message_by_id(struct store *store, int64_t id, store_message_visit visit, void *context);
bool store_message_by_time(
    struct store *store, uint32_t conversation, int64_t time_ms, store_message_visit visit, void *context);
/* Sequence and time of the newest message in a conversation's history; 0 and 0 when there is none. */
void store_conversation_tail(struct store *store, uint32_t conversation, int64_t *seq, int64_t *time_ms);

/* The file of a database before SQLite opens it. Secrets and messages lie inside: the owner's alone, whatever the
 * folder allows. The WAL takes the same mode. */
void store_make_file(const char *path);

#endif
