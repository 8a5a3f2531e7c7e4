/* What the parts of the core share: its state and the functions between core_*.c. Included by them alone; all of it
 * belongs to the core thread except the request queue and the statistics.
 *
 * Users, groups and conversations have small numbers, given in order and kept in the store, so that a message's
 * recipients are a few bytes each. They live as long as the core. */
#ifndef MUSTER_SERVER_CORE_STATE_H
#define MUSTER_SERVER_CORE_STATE_H

#include "base/buf.h"
#include "base/rng.h"
#include "server/core.h"
#include "server/inbox.h"
#include "server/store.h"
#include "server/table.h"
#include "wire/juggle.h"

#include <pthread.h>

/* Appendix A codes that only the core names. */
enum { CODE_NO_PERMISSION = 12010 };

enum {
  ID_MAX = 64, /* bytes of a user, group or sub-channel id */
  CLIENT_UID_MAX = 128,
  APP_KEY_MAX = 20,
  GROUP_MAX = 10000,            /* members */
  SYNC_PAGE = 200,              /* messages of one sync_msgs answer */
  HISTORY_PAGE = 200,           /* most messages of one history answer, and what count <= 0 means */
  PAGE_BYTES = 4 * 1024 * 1024, /* an answer that passes this ends early and unfinished */
  HISTORY_SCAN =
      2000, /* rows that one history query looks at for messages of the wanted types; none among so many: the end */
  CONVERSATION_PAGE = 100,
  QUERY_IDS = 1000, /* ids that one query may name */
  QUERY_TYPES = 32, /* message types that one history query may name */
  QUERY_BYTES = 1 << 16,
  OFFLINE_WINDOW_MS = 10 * 60 * 1000,
  DEDUP_WINDOW_MS = 10 * 60 * 1000,
  DEDUP_ENTRIES = 1 << 20,
  INBOX_ENTRIES = 1 << 16, /* of one user */
  INBOX_ENTRIES_IN_ALL = 1 << 26,
  CACHE_BYTES = 64 * 1024 * 1024,
  FAN_OUT_TARGETS = 4096, /* of one OUT_FAN_OUT */
  QUEUE_REQUESTS = 1 << 16,
  QUEUE_BYTES = 128 * 1024 * 1024,
  BATCH_REQUESTS = 1024, /* of one commit */
  BATCH_BYTES = 16 * 1024 * 1024,
  GATEWAY_SLOTS = 1 << 24,
};

struct app {
  struct view key; /* first, as table.h wants it: info.app_key */
  uint32_t num;
  struct core_app info;
  struct table users, groups, rooms;
};

/* A user's side of a conversation. */
struct position {
  struct user *user;
  struct conversation *conversation;
  struct position *next_of_user;
  struct position *next_dirty;
  int64_t unread_index, read_index;
  int64_t sort_ms; /* when the user sent or got its newest message; 0: never, and then it is not listed */
  int64_t sync_ms; /* the user's receive time of the newest change */
  int64_t last_message;
  bool dirty;
};

struct session {
  struct session *next, *previous; /* of the same user */
  struct session_ref ref;
  struct user *user;
  struct room_member *rooms; /* see core_rooms.c */
  uint32_t room_count;
  int32_t user_type;
  char platform[8];
  char *device_id; /* owned, may be "" */
};

struct user {
  struct view key; /* user id, owned */
  struct app *app;
  uint32_t num;
  bool registered, is_admin;
  bool pending; /* something was delivered while no session was there */
  int64_t updated_ms;
  char *nickname, *portrait, *ext_json; /* owned; NULL: empty */
  struct buf profile;                   /* the UserInfo that messages carry, encoded */
  struct session *sessions;
  struct position *positions;
  struct inbox inbox, sent;
  int64_t latest_ms;     /* of what the user has sent or received; see core_publish.c */
  uint64_t publish_mark; /* the publish that has this user among its recipients already */
};

struct member {
  struct user *user;         /* NULL: has left */
  struct position *position; /* in the group's main conversation; NULL until the first message */
  int64_t ordinal;
};

struct group {
  struct view key; /* group id, owned */
  struct app *app;
  uint32_t num;
  bool dissolved;
  int64_t updated_ms, next_ordinal;
  char *name, *portrait;  /* owned; NULL: empty */
  struct buf profile;     /* the GroupInfo that messages carry, encoded */
  struct member *members; /* in join order */
  uint32_t slots, members_capacity, member_count;
  struct conversation *conversation; /* the main one; NULL until the first message */
};

#define CONVERSATION_KEY_MAX (12 + ID_MAX)

struct conversation {
  struct view key; /* owned: channel, a, b, sub channel */
  struct app *app;
  uint32_t num;
  int32_t channel;
  struct user *a, *b;      /* private and system: by ascending number */
  struct group *group;     /* group */
  struct view sub_channel; /* in key */
  bool tail_known;
  int64_t seq, time_ms; /* of the newest message */
  uint32_t target_crc;
  struct position *position[2]; /* of a and b; NULL until needed */
};

/* A message in memory. */
struct message {
  int64_t id, seq, time_ms;
  struct conversation *conversation;
  struct user *sender;
  uint32_t member_count, body_len;
  int32_t flags, marks;
  char msg_id[JUGGLE_MSG_ID_LEN];
  uint8_t body[]; /* an UpMsg with clientUid and without toUserIds */
};

/* The newest messages by id: slot id & (capacity - 1). */
struct message_cache {
  struct message **slots; /* owned, with what they point to */
  uint32_t capacity;
  int64_t oldest, next; /* ids held: oldest <= id < next */
  uint64_t bytes;
};

/* The first answer to a client uid, see core_dedup.c. */
struct dedup_entry {
  struct view key;          /* sender number and client uid */
  struct dedup_entry *next; /* younger */
  int64_t at_ms, time_ms, seq;
  uint32_t member_count;
  char msg_id[JUGGLE_MSG_ID_LEN];
  uint8_t bytes[];
};
struct dedup {
  struct table table;
  struct dedup_entry *oldest, *newest;
};

enum request_kind { REQUEST_LOGIN, REQUEST_LOGOUT, REQUEST_UNSEEN, REQUEST_PUBLISH, REQUEST_QUERY, REQUEST_CALL };

enum { REQUEST_PARTS = 4 };
struct request {
  struct request *next;
  enum request_kind kind;
  struct session_ref session;
  int32_t index;
  uint32_t size; /* of the whole request */
  struct call *call;
  struct view part[REQUEST_PARTS]; /* login: app key, token, platform, device; others: topic, target, data */
  uint8_t bytes[];
};

/* What this batch has for one gateway: results, and targets of the message at hand. */
struct outbox {
  struct out *newest, *oldest;
  struct fan_out_target *targets; /* owned */
  uint32_t target_count, target_capacity;
};

struct gateway_sessions {
  struct session **by_slot; /* owned, with the sessions */
  uint32_t capacity;
};

struct core {
  struct store *store;
  enum ack_policy ack;

  /* The queue of requests: a stack, newest first, taken whole. */
  _Atomic(struct request *) newest;
  atomic_uint_fast64_t queue_bytes;
  atomic_bool sleeping, stopping, failed;
  int wake_fd;
  pthread_t thread;
  pthread_mutex_t failure_lock;
  struct err failure;

  struct gateway_port *const *ports;
  uint32_t gateways;
  struct outbox *outboxes;
  struct gateway_sessions *sessions;
  uint64_t batch_bytes;
  bool out_of_memory;

  int64_t now_ms; /* wall clock of the request at hand, never stepping back */
  struct table apps, conversations_by_key;
  struct number_table positions, memberships; /* by user << 32 | conversation; by group << 32 | user: slot + 1 */
  struct app **app_by_num;
  struct user **user_by_num;
  struct group **group_by_num;
  struct conversation **conversation_by_num;
  uint32_t app_count, user_count, group_count, conversation_count; /* highest number in use */
  uint32_t app_capacity, user_capacity, group_capacity, conversation_capacity;

  int64_t newest_message;
  uint32_t msg_id_counter;
  uint64_t publish_serial; /* gives each publish its mark on users */
  struct rng rng;          /* for uids, which are no secrets */
  struct message_cache cache;
  struct dedup dedup;
  struct inbox_limits inbox_limits;
  int64_t room_history; /* messages that a chatroom keeps */
  size_t room_bytes;    /* of all chatrooms' histories */

  /* Positions that the store does not have yet, oldest change first. A round writes those that were there when it
   * began, and then the checkpoint moves. */
  struct position *dirty_first, *dirty_last, *round_last;
  int64_t round_checkpoint, checkpoint;
  uint64_t round_began_ns;
  uint32_t sweep_at; /* the user whose inbox was looked at last */
  int64_t swept_ms;

  struct buf down, reply, recipients, scratch; /* reused */
  struct core_stats stats;
};

/* A text that may be NULL for none. */
static inline struct view text_view(const char *text) {
  return text ? view_str(text) : view_of("", 0);
}

/* ---- core.c ---- */

/* Notes that memory ran out amid a change; the batch then fails as a whole and the core stops. */
void core_out_of_memory(struct core *core);
struct session *core_session(struct core *core, struct session_ref ref);

/* ---- core_out.c ---- */

/* A result for a session's gateway, or NULL when memory is out. It leaves with the batch. */
struct out *out_stage(
    struct core *core, enum out_kind kind, struct session_ref session, struct view text, struct view data);
void stage_target(struct core *core, const struct session *session, int64_t time_ms, int64_t unread_index, bool copy);
bool any_target_staged(const struct core *core);
/* Sends a DownMsg in three parts to all staged targets. */
struct down_parts {
  uint32_t head, middle, tail; /* lengths; the parts stand one behind the other */
};
void stage_fan_out(struct core *core, const uint8_t *bytes, struct down_parts parts, bool state);
/* Sends a chatroom's notice to all staged targets. */
void stage_notice(struct core *core, enum juggle_notify_type type, struct view room_id);
/* Hands everything staged to the gateways. */
void outs_release(struct core *core);
void outs_discard(struct core *core);

/* ---- core_people.c: apps, users, groups, conversations, positions ---- */

struct app *app_find(struct core *core, struct view app_key);
struct user *user_find(const struct app *app, struct view user_id);
/* Finds or creates; NULL when the id is unusable or memory is out. */
struct user *user_get(struct core *core, struct app *app, struct view user_id);
struct group *group_find(const struct app *app, struct view group_id);
struct member *member_find(struct core *core, struct group *group, struct user *user);
/* For private and system channels a and b in any order. NULL when there is none (create false) or memory is out. */
struct conversation *conversation_of_users(
    struct core *core, int32_t channel, struct user *a, struct user *b, struct view sub_channel, bool create);
struct conversation *conversation_of_group(
    struct core *core, struct group *group, struct view sub_channel, bool create);
/* Makes seq and time_ms known. */
void conversation_tail(struct core *core, struct conversation *conversation);
struct position *position_find(struct core *core, struct user *user, struct conversation *conversation);
struct position *position_get(struct core *core, struct user *user, struct conversation *conversation);
void position_touch(struct core *core, struct position *position);
void position_store(struct core *core, const struct position *position);
/* Who a conversation is with, as user sees it. */
struct user *conversation_peer(const struct conversation *conversation, const struct user *user);
struct view conversation_target(const struct conversation *conversation, const struct user *user);
enum status people_load(struct core *core, struct err *err);
void people_free(struct core *core);

/* ---- core_message.c: the cache and the encoding ---- */

struct message *message_new(size_t body_len);
void cache_put(struct core *core, struct message *message); /* takes it over */
const struct message *cache_find(const struct core *core, int64_t id);
void cache_free(struct core *core);
/* False for a row that only a damaged file has. */
bool message_row_is_sound(const struct core *core, const struct store_message *row);
/* A message out of a sound row; the caller frees it. NULL when memory is out. */
struct message *message_of_row(struct core *core, const struct store_message *row);

enum down_view { DOWN_RECEIVED, DOWN_SENT, DOWN_HISTORY };
/* Encodes a message as viewer gets it, in three parts, into out (which is emptied first). viewer matters for private
 * channels only. False when memory is out. */
bool down_encode(const struct message *message, enum down_view view, const struct user *viewer, struct buf *out,
    struct down_parts *parts);
/* Appends field number = the whole DownMsg to a message under construction. */
bool down_append(struct core *core, struct buf *out, uint32_t field, const struct message *message, enum down_view view,
    const struct user *viewer, int64_t time_ms, int64_t unread_index);

/* Growing protobuf writers; false when memory is out. */
bool emit_uint(struct buf *out, uint32_t field, uint64_t value);
bool emit_bytes(struct buf *out, uint32_t field, struct view bytes);
/* Like emit_bytes, but written when empty too. */
bool emit_message(struct buf *out, uint32_t field, struct view bytes);
struct view buf_view(const struct buf *buf);
bool user_profile_build(struct user *user);
bool group_profile_build(struct group *group);

/* ---- core_dedup.c ---- */

void dedup_open(struct dedup *dedup);
void dedup_free(struct dedup *dedup);
const struct dedup_entry *dedup_find(struct dedup *dedup, uint32_t sender, struct view client_uid, int64_t now_ms);
/* False when memory is out. */
bool dedup_put(struct dedup *dedup, const struct message *message, struct view client_uid, int64_t now_ms);

/* ---- core_login.c ---- */

void login_run(struct core *core, const struct request *request);
void session_forget(struct core *core, struct session *session);

/* ---- core_publish.c ---- */

/* What a publish is answered with. */
struct published {
  int64_t time_ms, seq;
  uint32_t member_count;
  char msg_id[JUGGLE_MSG_ID_LEN + 1];
};
void publish_run(struct core *core, const struct request *request);
/* Applies one stored message to inboxes, positions and de-duplication (at start). */
void message_replay(struct core *core, const struct store_message *row, int64_t window_ms);

/* ---- core_history.c ---- */

struct history_query {
  struct conversation *conversation;
  const struct user *viewer; /* messages that were directed past this user are left out */
  int64_t start_ms;
  uint32_t limit; /* at most HISTORY_PAGE */
  bool oldest_first;
  const struct view *types; /* wanted message types; none: all */
  uint32_t type_count;
};
struct history_page {
  struct message *messages[HISTORY_PAGE]; /* owned, ascending by time */
  int64_t unread_index[HISTORY_PAGE];     /* the viewer's */
  uint32_t count;
  bool is_finished;
};
void history_collect(struct core *core, const struct history_query *query, struct history_page *page);
void history_page_free(struct history_page *page);
/* The messages of a conversation with these ids that the viewer may see, in the order of asking. */
void history_by_ids(struct core *core, struct conversation *conversation, const struct user *viewer,
    const struct view *msg_ids, uint32_t count, struct history_page *page);
/* A message by its number, from the cache or out of the store; then *owned is to be freed. NULL when it is gone. */
const struct message *message_find(struct core *core, int64_t id, struct message **owned);

/* ---- core_rooms.c: chatrooms; each returns a code of appendix A ---- */

int32_t room_join(struct core *core, struct session *session, struct view target, struct view data, int64_t *time_ms);
int32_t room_quit(struct core *core, struct session *session, struct view target);
int32_t room_publish(struct core *core, struct session *from, struct view target, const struct juggle_up_msg *up,
    struct published *published);
/* Appends the messages behind the cursor to core->reply; *unfinished is the member when more are left. */
int32_t room_sync(
    struct core *core, struct session *session, struct view target, struct view data, struct room_member **unfinished);
void room_notice_again(struct core *core, struct room_member *member);
/* Ends a session's memberships. */
void rooms_leave(struct core *core, struct session *session);
void rooms_free(struct core *core);

/* ---- core_query.c ---- */

void query_run(struct core *core, const struct request *request);

#endif
