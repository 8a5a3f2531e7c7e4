/* The core: one thread that owns all state (tenants, users, presence, groups, conversations, inboxes, sequences,
 * de-duplication) and is the store's only writer. Gateways and API threads post requests; the core works through all
 * that have gathered, commits once, and only then lets the results of that batch out (group commit; with ACK_RECEIVED
 * acks leave first). Nothing here is locked but the queues.
 *
 * State is derived from the store's log of messages: one row a message, with its recipients and their receive times;
 * inboxes and unread counters are rebuilt from it at start (shared/protocols/juggleim.md sections 3 to 5). */
#ifndef MUSTER_SERVER_CORE_H
#define MUSTER_SERVER_CORE_H

#include "base/err.h"
#include "base/view.h"
#include "server/server.h"
#include "wire/juggle_auth.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct core;

/* A session as the core knows it: which gateway and which of its slots. The generation tells a reused slot apart. */
struct session_ref {
  uint16_t gateway;
  uint32_t slot;
  uint32_t generation;
};

/* ---- What a gateway posts (any thread may call these; each copies what it is given) ---- */

/* A client has sent Connect. Answer: OUT_CONNECTED. */
struct core_login {
  struct session_ref session;
  struct view app_key, token, platform, device_id;
};
enum status core_post_login(struct core *core, const struct core_login *login);

/* The session is gone (or was never answered); the core forgets it. */
void core_post_logout(struct core *core, struct session_ref session);

/* Posted before a logout: messages may not have reached the client, so the user's next login has inbox_pending. */
void core_post_unseen(struct core *core, struct session_ref session);

/* A Publish or a Query of a logged-in session, topic and data as they came. Answers: OUT_PUBLISH_ACK, OUT_QUERY_ACK.
 * STATUS_MEMORY: the core's queue is full (the gateway stops reading and tries again). All posts and core_call:
 * STATUS_IO once the core has failed, STATUS_INTERRUPTED once it is being stopped. */
enum status core_post_publish(struct core *core, struct session_ref session, int32_t index, struct view topic,
    struct view target, struct view data);
enum status core_post_query(struct core *core, struct session_ref session, int32_t index, struct view topic,
    struct view target, struct view data);

/* ---- What the core hands to a gateway ---- */

/* One message for its recipients: the three parts of a DownMsg around the two fields that differ by recipient
 * (field 8 msgTime and field 23 unreadIndex), immutable, shared by all gateways, freed by the last release. */
struct fan_out {
  atomic_uint references;
  bool state;     /* a state message: pushed with qos 0, never notified, no ack wanted */
  int32_t notice; /* 0, or the enum juggle_notify_type of a chatroom's notice: bytes is the room's id (head) */
  uint32_t head_len, middle_len, tail_len;
  uint8_t bytes[]; /* head (#1..#7), middle (#9..#22), tail (#30 and up) */
};
void fan_out_release(struct fan_out *message);

/* How one session gets one message. */
struct fan_out_target {
  uint32_t slot, generation;
  int64_t msg_time_ms;
  int64_t unread_index; /* 0: none */
  bool is_copy;         /* for the sender's other devices: qos 0 */
};

enum out_kind {
  OUT_CONNECTED,   /* code, text = user id, user = see below */
  OUT_PUBLISH_ACK, /* index, code, msg_id, timestamp_ms, seq, member_count, text = client uid */
  OUT_QUERY_ACK,   /* index, code, timestamp_ms, data; finished_sync: a sync_msgs answer with isFinished */
  OUT_FAN_OUT,     /* message and targets */
  OUT_KICK,        /* code, text = ext: Disconnect, then close */
};

struct out {
  struct out *next;
  enum out_kind kind;
  struct session_ref session; /* of all kinds but OUT_FAN_OUT */
  int32_t index, code, member_count;
  int64_t timestamp_ms, seq;
  char msg_id[24]; /* NUL-terminated; "" when there is none */
  bool is_sync, finished_sync;
  bool inbox_pending;      /* OUT_CONNECTED: messages wait, so the session is notified until it has synced */
  struct fan_out *message; /* one reference, owned */
  uint32_t targets;
  uint32_t text_len, data_len;
  /* Followed by text, data or struct fan_out_target[targets]; see out_text, out_data, out_targets. */
  _Alignas(8) uint8_t bytes[];
};
struct view out_text(const struct out *out);
struct view out_data(const struct out *out);
const struct fan_out_target *out_targets(const struct out *out);
void out_free(struct out *out);

/* A gateway's inbox of results. The core appends whole batches and then signals the eventfd once. */
struct gateway_port {
  int event_fd;                 /* readable when something came */
  _Atomic(struct out *) newest; /* a stack, newest first; taken whole and reversed by gateway_port_take */
};
enum status gateway_port_open(struct gateway_port *port, struct err *err);
void gateway_port_close(struct gateway_port *port);
/* Everything that has come, oldest first, linked by next; the caller frees each. NULL when nothing came. */
struct out *gateway_port_take(struct gateway_port *port);

/* ---- What API threads call: runs fn(core, argument) on the core thread and waits until its writes are committed.
 * fn returns a code of the fact sheet's appendix A. STATUS_TIMEOUT when fn has not begun within 5 s (it then never
 * runs; JUGGLE_API_TIMEOUT for the client). ----
 */
enum status core_call(
    struct core *core, int32_t (*fn)(struct core *core, void *argument), void *argument, int32_t *code);

/* ---- Calls that run on the core thread, to be used inside core_call. Texts are copied. ---- */

struct core_app {
  char app_key[24], app_secret[24], secure_key[JUGGLE_SECURE_KEY_LEN + 1], name[64];
};
/* Existing key: false in *created, and out is what is stored. app_secret NULL: 16 random characters. */
int32_t core_app_create(struct core *core, struct view app_key, struct view app_secret, struct view name,
    struct core_app *out, bool *created);
bool core_app_find(struct core *core, struct view app_key, struct core_app *out);

struct core_user {
  struct view user_id, nickname, portrait, ext_fields_json; /* ext_fields as JSON object text, or empty */
  bool is_admin;
  int64_t updated_ms;
};
/* Creates or refreshes; token: as section 2.3 wants it. */
int32_t core_user_register(
    struct core *core, struct view app_key, const struct core_user *user, char token[JUGGLE_TOKEN_MAX]);
int32_t core_user_update(struct core *core, struct view app_key, const struct core_user *user);
/* Views are valid until the next core call. JUGGLE_USER_UNKNOWN when there is none. */
int32_t core_user_info(struct core *core, struct view app_key, struct view user_id, struct core_user *out);
bool core_user_online(struct core *core, struct view app_key, struct view user_id);
int32_t core_user_kick(struct core *core, struct view app_key, struct view user_id, const struct view *platforms,
    uint32_t platform_count, const struct view *devices, uint32_t device_count, struct view ext);

struct core_group {
  struct view group_id, name, portrait;
  int64_t updated_ms;
  uint32_t member_count;
};
int32_t core_group_add(
    struct core *core, struct view app_key, const struct core_group *group, const struct view *members, uint32_t count);
int32_t core_group_update(struct core *core, struct view app_key, const struct core_group *group);
int32_t core_group_remove_members(
    struct core *core, struct view app_key, struct view group_id, const struct view *members, uint32_t count);
int32_t core_group_dissolve(struct core *core, struct view app_key, struct view group_id);
int32_t core_group_info(struct core *core, struct view app_key, struct view group_id, struct core_group *out);
/* Up to limit members in join order, starting behind the opaque offset ("" = from the start); each through visit.
 * next_offset: at least 32 bytes, "" at the end. */
int32_t core_group_members(struct core *core, struct view app_key, struct view group_id, uint32_t limit,
    const char *offset, void (*visit)(void *context, struct view member), void *context, char *next_offset);

/* Chatrooms, which live in memory only; a room made here stays until it is destroyed. JUGGLE_ROOM_UNKNOWN when there
 * is none. */
enum { CORE_ROOM_MEMBERS_SHOWN = 1000 };
struct core_room {
  struct view room_id, name;
  uint32_t member_count; /* users; all of them, though visit is called for the first CORE_ROOM_MEMBERS_SHOWN only */
};
struct core_room_member {
  struct view member_id, name;
  int64_t joined_ms;
};
int32_t core_room_create(struct core *core, struct view app_key, struct view room_id, struct view name);
int32_t core_room_destroy(struct core *core, struct view app_key, struct view room_id);
int32_t core_room_info(struct core *core, struct view app_key, struct view room_id, struct core_room *out,
    void (*visit)(void *context, const struct core_room_member *member), void *context);

/* A message sent through the HTTP API; the sender needs no session. is_notify_sender as in section 6.3. */
struct core_send {
  struct view sender_id, target_id, msg_type, content;
  int32_t channel; /* JUGGLE_PRIVATE, JUGGLE_GROUP or JUGGLE_SYSTEM */
  int32_t flags;
  const struct view *to_users; /* group only; NULL: all members */
  uint32_t to_users_count;
  bool is_notify_sender;
};
int32_t core_send(struct core *core, struct view app_key, const struct core_send *send, char msg_id[24]);

/* One message of a conversation as the history API shows it; views valid during visit. */
struct core_history_item {
  struct view sender_id, receiver_id, msg_id, msg_type, content;
  int32_t channel;
  int64_t msg_time_ms, seq;
};
int32_t core_history(struct core *core, struct view app_key, int32_t channel, struct view from_id,
    struct view target_id, int64_t start_ms, uint32_t count, bool oldest_first,
    void (*visit)(void *context, const struct core_history_item *item), void *context, bool *is_finished);

/* ---- Life ---- */

/* Upper bounds of the buckets of commit durations; one more takes the rest. */
#define CORE_COMMIT_BOUNDS 13
extern const uint32_t core_commit_bound_us[CORE_COMMIT_BOUNDS];

struct core_stats {
  atomic_uint_fast64_t users, sessions, publishes, acks, rejects, fan_out_targets, commits, commit_ns, rows,
      queue_depth, duplicates, sync_queries, synced /* messages of others in the answers to them */;
  atomic_uint_fast64_t commit_bucket[CORE_COMMIT_BOUNDS + 1];
  atomic_uint_fast64_t online; /* users with a session */
  /* Chatrooms: those and their members now; messages accepted, notices sent, messages given to members that pulled,
   * and messages that the history pushed out before a member had pulled them. */
  atomic_uint_fast64_t rooms, room_members, room_messages, room_notices, room_pulled, room_dropped;
};
const struct core_stats *core_stats(const struct core *core);

/* Opens the store, rebuilds what is derived from it, and starts the thread. ports: one for each gateway, which must
 * outlive the core. */
enum status core_start(struct core **out, const struct server_config *config, struct gateway_port *const *ports,
    uint32_t gateways, struct err *err);
/* Works through what was posted, commits and ends the thread. */
void core_stop(struct core *core);
bool core_failed(struct core *core, struct err *err);
/* What posting writes to: a thread with its own descriptor table must keep it open. */
int core_wake_fd(const struct core *core);

#endif
