/* Chatrooms (section 4.8). A room lives in memory only, as long as it was made by the API or somebody is in it, and a
 * member is a session: with its end the membership ends.
 *
 * Rooms are lossy by policy. A message enters the room's short history, and each member gets one small notice of it
 * (ntf type 2), none while it has not pulled since the last; it pulls what lies behind its cursor (c_sync_msgs). So a
 * burst costs a slow member one pull and a busy room never queues anything for anybody; what the history has pushed
 * out before a member pulled is lost to that member and counted (room_dropped). */
#include "server/core_groups.h"

#include "base/utf8.h"
#include "wire/pb.h"

#include <stdlib.h>

enum {
  ROOM_MEMBERS_MAX = 100000,
  ROOMS_OF_APP = 10000,
  ROOMS_OF_SESSION = 32,
  ROOM_BYTES = 4 * 1024 * 1024, /* of one room's history */
  ROOM_BYTES_IN_ALL = 256 * 1024 * 1024,
  NOTICE_REPEAT_MS = 1000, /* a member that has not pulled for so long is noticed again by the next message */
};

/* A DownMsg in two parts, around the isSend that the sender's other sessions get. */
struct room_message {
  int64_t seq, time_ms;
  struct session_ref from;
  const struct user *sender;
  uint32_t head, len;
  uint8_t bytes[];
};

struct room_member {
  struct room *room;
  struct session *session;
  struct room_member *next; /* of the session */
  uint32_t slot;            /* in the room's members */
  int64_t seen_seq;         /* up to here it has pulled, or the history has lost what it had not */
  int64_t noticed_ms;       /* 0: it has pulled since */
  int64_t joined_ms;
};

struct room {
  struct view key; /* room id, owned */
  struct app *app;
  char *name; /* owned; NULL: empty */
  bool kept;  /* made by the API: stays when it is empty */
  uint32_t crc;
  struct room_member **members; /* owned */
  uint32_t count, capacity;
  struct room_message **history; /* owned ring by sequence; NULL until the first message */
  int64_t first_seq, seq;        /* held: first_seq to seq */
  int64_t time_ms;
  size_t bytes;
};

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static void count(atomic_uint_fast64_t *counter, uint64_t by) {
  atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

static void uncount(atomic_uint_fast64_t *counter, uint64_t by) {
  atomic_fetch_sub_explicit(counter, by, memory_order_relaxed);
}

/* ---- Rooms ---- */

static struct room *room_find(const struct app *app, struct view room_id) {
  return table_find(&app->rooms, room_id);
}

static struct room_message **room_slot(const struct core *core, const struct room *room, int64_t seq) {
  return &room->history[seq % core->room_history];
}

static void forget_oldest(struct core *core, struct room *room) {
  struct room_message **slot = room_slot(core, room, room->first_seq++);
  size_t size = sizeof **slot + (*slot)->len;
  room->bytes -= size;
  core->room_bytes -= size;
  free(*slot);
  *slot = NULL;
}

static void room_free(struct core *core, struct room *room) {
  while (room->history && room->first_seq <= room->seq)
    forget_oldest(core, room);
  free(room->history);
  free(room->members);
  free(room->name);
  free((void *)room->key.data);
  free(room);
}

static struct room *room_add(struct core *core, struct app *app, struct view room_id, struct view name) {
  struct room *room = calloc(1, sizeof *room);
  if (!room) return NULL;
  *room = (struct room){.app = app, .crc = juggle_crc32(room_id), .first_seq = 1};
  if (!key_copy(&room->key, room_id) || !text_replace(&room->name, name) ||
      !table_insert(&app->rooms, (struct table_entry *)room)) {
    room_free(core, room);
    return NULL;
  }
  count(&core->stats.rooms, 1);
  return room;
}

static void room_remove(struct core *core, struct room *room) {
  table_remove(&room->app->rooms, room->key);
  uncount(&core->stats.rooms, 1);
  room_free(core, room);
}

/* Finds or makes; *code says why there is none. */
static struct room *room_get(struct core *core, struct app *app, struct view room_id, struct view name, int32_t *code) {
  struct room *room = room_find(app, room_id);
  if (room) return room;
  *code = JUGGLE_ROOM_DEFAULT;
  if (room_id.len > ID_MAX || name.len > ID_MAX || app->rooms.count >= ROOMS_OF_APP) return NULL;
  return room_add(core, app, room_id, name);
}

void rooms_free(struct core *core) {
  for (uint32_t i = 1; i <= core->app_count; i++) {
    struct table *rooms = &core->app_by_num[i]->rooms;
    for (uint32_t at = 0; at < rooms->capacity; at++)
      if (rooms->slots[at].entry) room_free(core, (struct room *)rooms->slots[at].entry);
    table_free(rooms);
  }
}

/* ---- Members ---- */

static struct room_member *member_of(const struct room *room, const struct session *session) {
  struct room_member *member = session->rooms;
  while (member && member->room != room)
    member = member->next;
  return member;
}

static bool member_reserve(struct room *room) {
  if (room->count < room->capacity) return true;
  uint32_t capacity = room->capacity ? room->capacity * 2 : 8;
  struct room_member **grown = realloc(room->members, capacity * sizeof(struct room_member *));
  if (!grown) return false;
  room->members = grown;
  room->capacity = capacity;
  return true;
}

static bool member_add(struct core *core, struct room *room, struct session *session) {
  struct room_member *member = member_reserve(room) ? malloc(sizeof *member) : NULL;
  if (!member) return false;
  *member = (struct room_member){.room = room,
      .session = session,
      .next = session->rooms,
      .slot = room->count,
      .seen_seq = room->seq,
      .joined_ms = core->now_ms};
  session->rooms = member;
  session->room_count++;
  room->members[room->count++] = member;
  count(&core->stats.room_members, 1);
  return true;
}

/* Takes the member out of its room, which may end with it; the session's list is the caller's. */
static void member_end(struct core *core, struct room_member *member) {
  struct room *room = member->room;
  struct room_member *last = room->members[--room->count];
  room->members[member->slot] = last;
  last->slot = member->slot;
  member->session->room_count--;
  uncount(&core->stats.room_members, 1);
  free(member);
  if (!room->count && !room->kept) room_remove(core, room);
}

static void member_unlink(struct room_member *member) {
  struct room_member **at = &member->session->rooms;
  while (*at != member)
    at = &(*at)->next;
  *at = member->next;
}

static void leave(struct core *core, struct room_member *member) {
  member_unlink(member);
  member_end(core, member);
}

void rooms_leave(struct core *core, struct session *session) {
  struct room_member *member = session->rooms;
  session->rooms = NULL;
  while (member) {
    struct room_member *next = member->next;
    member_end(core, member);
    member = next;
  }
}

int32_t room_join(struct core *core, struct session *session, struct view target, struct view data, int64_t *time_ms) {
  struct juggle_room_request request;
  if (!juggle_read_room_request(data, &request) || !utf8_valid(request.name)) return JUGGLE_MSG_PARAMETER;
  struct app *app = session->user->app;
  int32_t code = JUGGLE_ROOM_UNKNOWN;
  struct room *room = request.auto_create ? room_get(core, app, target, request.name, &code) : room_find(app, target);
  if (!room) return code;
  /* What comes from now on is later than the time in the answer, which so serves as a first cursor. */
  room->time_ms = later(room->time_ms, core->now_ms);
  *time_ms = room->time_ms;
  if (member_of(room, session)) return JUGGLE_OK;
  bool may = room->count < ROOM_MEMBERS_MAX && session->room_count < ROOMS_OF_SESSION;
  if (may && member_add(core, room, session)) return JUGGLE_OK;
  if (!room->count && !room->kept) room_remove(core, room);
  return JUGGLE_ROOM_DEFAULT;
}

int32_t room_quit(struct core *core, struct session *session, struct view target) {
  struct room *room = room_find(session->user->app, target);
  if (!room) return JUGGLE_ROOM_UNKNOWN;
  struct room_member *member = member_of(room, session);
  if (!member) return JUGGLE_ROOM_NOT_MEMBER;
  leave(core, member);
  return JUGGLE_OK;
}

/* ---- Publishing ---- */

static bool is_from(const struct room_message *message, const struct session *session) {
  const struct session_ref *a = &message->from, *b = &session->ref;
  return a->gateway == b->gateway && a->slot == b->slot && a->generation == b->generation;
}

/* Pushes the oldest message out; whoever has not pulled it has lost it. */
static void push_out(struct core *core, struct room *room) {
  const struct room_message *message = *room_slot(core, room, room->first_seq);
  uint64_t dropped = 0;
  for (uint32_t i = 0; i < room->count; i++) {
    struct room_member *member = room->members[i];
    if (member->seen_seq >= message->seq) continue;
    member->seen_seq = message->seq;
    dropped += !is_from(message, member->session);
  }
  if (dropped) count(&core->stats.room_dropped, dropped);
  forget_oldest(core, room);
}

static bool emit_content(struct buf *out, const struct room *room, const struct user *sender,
    const struct juggle_up_msg *up, const struct published *published) {
  return emit_bytes(out, 1, room->key) && emit_uint(out, 2, JUGGLE_CHATROOM) && emit_bytes(out, 3, up->msg_type) &&
         emit_bytes(out, 4, sender->key) && emit_bytes(out, 5, view_of(published->msg_id, JUGGLE_MSG_ID_LEN)) &&
         emit_uint(out, 6, (uint64_t)published->seq) && emit_bytes(out, 7, up->content) &&
         emit_uint(out, 8, (uint64_t)published->time_ms) && emit_uint(out, 9, (uint64_t)(int64_t)up->flags);
}

static bool emit_rest(struct buf *out, const struct user *sender, const struct juggle_up_msg *up, int64_t time_ms) {
  struct view profile = buf_view(&sender->profile);
  uint64_t destroyed_ms = up->life_time_ms > 0 ? (uint64_t)time_ms + (uint64_t)up->life_time_ms : 0;
  return emit_bytes(out, 12, up->client_uid) && emit_bytes(out, 13, up->push_data) &&
         emit_bytes(out, 14, up->mention_info) && emit_bytes(out, 16, up->refer_msg) && emit_bytes(out, 17, profile) &&
         emit_bytes(out, 19, up->merged_msgs) && emit_bytes(out, 29, up->search_text) &&
         emit_uint(out, 31, destroyed_ms) && emit_uint(out, 32, (uint64_t)up->life_time_after_read_ms) &&
         emit_bytes(out, 34, up->sub_channel) && emit_bytes(out, 38, profile);
}

static struct room_message *message_make(struct core *core, const struct room *room, const struct session *from,
    const struct juggle_up_msg *up, const struct published *published) {
  struct buf *out = &core->down;
  out->len = 0;
  if (!emit_content(out, room, from->user, up, published)) return NULL;
  uint32_t head = out->len;
  if (!emit_rest(out, from->user, up, published->time_ms)) return NULL;
  struct room_message *message = malloc(sizeof *message + out->len);
  if (!message) return NULL;
  *message = (struct room_message){.seq = published->seq,
      .time_ms = published->time_ms,
      .from = from->ref,
      .sender = from->user,
      .head = head,
      .len = out->len};
  memcpy(message->bytes, out->data, out->len);
  return message;
}

static void keep(struct core *core, struct room *room, struct room_message *message) {
  size_t size = sizeof *message + message->len;
  while (room->first_seq <= room->seq &&
         (room->seq - room->first_seq + 1 >= core->room_history || room->bytes + size > ROOM_BYTES ||
             core->room_bytes + size > ROOM_BYTES_IN_ALL))
    push_out(core, room);
  room->seq = message->seq;
  room->time_ms = message->time_ms;
  room->bytes += size;
  core->room_bytes += size;
  *room_slot(core, room, message->seq) = message;
}

static void stage_member(struct core *core, struct room_member *member) {
  member->noticed_ms = core->now_ms;
  stage_target(core, member->session, member->room->time_ms, 0, false);
}

static void notice_members(struct core *core, const struct room *room, const struct session *from) {
  uint64_t noticed = 0;
  for (uint32_t i = 0; i < room->count; i++) {
    struct room_member *member = room->members[i];
    bool fresh = member->noticed_ms && core->now_ms - member->noticed_ms < NOTICE_REPEAT_MS;
    if (fresh || member->session == from) continue;
    stage_member(core, member);
    noticed++;
  }
  count(&core->stats.room_notices, noticed);
  stage_notice(core, JUGGLE_NOTIFY_ROOM_MSG, room->key);
}

/* A sender that had everything still has it, its own message included. */
static void see_own(const struct room *room, struct room_member *sender) {
  if (sender->seen_seq == room->seq - 1) sender->seen_seq = room->seq;
}

int32_t room_publish(struct core *core, struct session *from, struct view target, const struct juggle_up_msg *up,
    struct published *published) {
  struct room *room = room_find(from->user->app, target);
  if (!room) return JUGGLE_ROOM_UNKNOWN;
  struct room_member *sender = member_of(room, from);
  if (!sender) return JUGGLE_ROOM_NOT_MEMBER;
  if (!room->history) room->history = calloc((size_t)core->room_history, sizeof(struct room_message *));
  published->seq = room->seq + 1;
  published->time_ms = later(core->now_ms, room->time_ms + 1);
  juggle_msg_id(published->msg_id, published->time_ms, core->msg_id_counter++, JUGGLE_CHATROOM, room->crc);
  struct room_message *message = room->history ? message_make(core, room, from, up, published) : NULL;
  if (!message) {
    *published = (struct published){0};
    return JUGGLE_ROOM_DEFAULT;
  }
  keep(core, room, message);
  see_own(room, sender);
  count(&core->stats.room_messages, 1);
  notice_members(core, room, from);
  return JUGGLE_OK;
}

/* ---- Pulling ---- */

static int64_t first_after(const struct core *core, const struct room *room, int64_t after_ms) {
  int64_t low = room->first_seq, high = room->seq + 1;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if ((*room_slot(core, room, middle))->time_ms > after_ms)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static bool append_message(struct buf *out, const struct room_message *message, bool is_send) {
  size_t len = message->len + pb_uint_field_size(10, is_send);
  uint8_t *at = buf_reserve(out, pb_bytes_head_size(1, len) + len);
  if (!at) return false;
  const uint8_t *start = at;
  at = pb_write_bytes_head(at, 1, len);
  memcpy(at, message->bytes, message->head);
  at = pb_write_uint_field(at + message->head, 10, is_send);
  memcpy(at, message->bytes + message->head, message->len - message->head);
  at += message->len - message->head;
  out->len += (uint32_t)(at - start);
  return true;
}

int32_t room_sync(
    struct core *core, struct session *session, struct view target, struct view data, struct room_member **unfinished) {
  struct juggle_room_sync sync;
  *unfinished = NULL;
  if (!juggle_read_room_sync(data, &sync)) return JUGGLE_MSG_PARAMETER;
  struct room *room = room_find(session->user->app, sync.room_id.len ? sync.room_id : target);
  if (!room) return JUGGLE_ROOM_UNKNOWN;
  struct room_member *member = member_of(room, session);
  if (!member) return JUGGLE_ROOM_NOT_MEMBER;
  uint32_t limit = sync.count > 0 && sync.count < SYNC_PAGE ? (uint32_t)sync.count : SYNC_PAGE, shown = 0;
  int64_t seq = first_after(core, room, sync.sync_time_ms);
  for (; seq <= room->seq && shown < limit && core->reply.len < PAGE_BYTES; seq++) {
    const struct room_message *message = *room_slot(core, room, seq);
    if (is_from(message, session)) continue;
    if (!append_message(&core->reply, message, message->sender == session->user)) {
      core_out_of_memory(core);
      return JUGGLE_ROOM_DEFAULT;
    }
    shown++;
  }
  member->seen_seq = later(member->seen_seq, seq - 1);
  member->noticed_ms = 0;
  if (seq <= room->seq) *unfinished = member;
  count(&core->stats.room_pulled, shown);
  return JUGGLE_OK;
}

void room_notice_again(struct core *core, struct room_member *member) {
  stage_member(core, member);
  count(&core->stats.room_notices, 1);
  stage_notice(core, JUGGLE_NOTIFY_ROOM_MSG, member->room->key);
}

/* ---- The HTTP API ---- */

int32_t core_room_create(struct core *core, struct view app_key, struct view room_id, struct view name) {
  struct app *app = app_find(core, app_key);
  if (!app) return JUGGLE_API_NO_APP;
  if (room_id.len > ID_MAX || name.len > ID_MAX) return JUGGLE_API_BAD_PARAMETER;
  int32_t code = JUGGLE_OK;
  struct room *room = room_get(core, app, room_id, name, &code);
  if (!room) return code;
  room->kept = true;
  return text_replace(&room->name, name) ? JUGGLE_OK : JUGGLE_ROOM_DEFAULT;
}

int32_t core_room_destroy(struct core *core, struct view app_key, struct view room_id) {
  const struct app *app = app_find(core, app_key);
  if (!app) return JUGGLE_API_NO_APP;
  struct room *room = room_find(app, room_id);
  if (!room) return JUGGLE_ROOM_UNKNOWN;
  room->kept = true; /* until the last member is out */
  while (room->count) {
    struct room_member *member = room->members[room->count - 1];
    stage_target(core, member->session, later(room->time_ms, core->now_ms), 0, false);
    leave(core, member);
  }
  stage_notice(core, JUGGLE_NOTIFY_ROOM_DESTROYED, room->key);
  room_remove(core, room);
  return JUGGLE_OK;
}

int32_t core_room_info(struct core *core, struct view app_key, struct view room_id, struct core_room *out,
    void (*visit)(void *context, const struct core_room_member *member), void *context) {
  const struct app *app = app_find(core, app_key);
  if (!app) return JUGGLE_API_NO_APP;
  const struct room *room = room_find(app, room_id);
  if (!room) return JUGGLE_ROOM_UNKNOWN;
  *out = (struct core_room){.room_id = room->key, .name = room->name ? view_str(room->name) : view_of("", 0)};
  core->publish_serial++;
  for (uint32_t i = 0; i < room->count; i++) {
    struct user *user = room->members[i]->session->user;
    if (user->publish_mark == core->publish_serial) continue; /* by another session */
    user->publish_mark = core->publish_serial;
    struct core_room_member member = {.member_id = user->key,
        .name = user->nickname ? view_str(user->nickname) : view_of("", 0),
        .joined_ms = room->members[i]->joined_ms};
    if (out->member_count++ < CORE_ROOM_MEMBERS_SHOWN) visit(context, &member);
  }
  return JUGGLE_OK;
}
