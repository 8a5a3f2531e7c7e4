/* Messages in memory and on the wire. */
#include "server/core_state.h"

#include "wire/pb.h"

#include <jansson.h>
#include <stdlib.h>

/* ---- Writers ---- */

struct view buf_view(const struct buf *buf) {
  return view_of(buf->data, buf->len);
}

bool emit_uint(struct buf *out, uint32_t field, uint64_t value) {
  size_t size = pb_uint_field_size(field, value);
  if (!size) return true;
  uint8_t *at = buf_reserve(out, size);
  if (!at) return false;
  pb_write_uint_field(at, field, value);
  out->len += (uint32_t)size;
  return true;
}

bool emit_bytes(struct buf *out, uint32_t field, struct view bytes) {
  return bytes.len == 0 || emit_message(out, field, bytes);
}

bool emit_message(struct buf *out, uint32_t field, struct view bytes) {
  size_t size = pb_bytes_head_size(field, bytes.len) + bytes.len;
  uint8_t *at = buf_reserve(out, size);
  if (!at) return false;
  at = pb_write_bytes_head(at, field, bytes.len);
  if (bytes.len) memcpy(at, bytes.data, bytes.len);
  out->len += (uint32_t)size;
  return true;
}

static bool emit_item(struct buf *out, struct buf *item, const char *key, const char *value, int64_t updated_ms) {
  item->len = 0;
  return emit_bytes(item, 1, view_str(key)) && emit_bytes(item, 2, view_str(value)) &&
         emit_uint(item, 3, (uint64_t)updated_ms) && emit_message(out, 4, buf_view(item));
}

/* The members of a JSON object as KvItems; values that are no strings as their JSON text. */
static bool emit_ext_fields(struct buf *out, const struct user *user) {
  json_t *object = user->ext_json ? json_loads(user->ext_json, 0, NULL) : NULL;
  struct buf item = {0};
  bool fine = true;
  const char *key;
  json_t *value;
  json_object_foreach(object, key, value) {
    char *dumped = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const char *text = json_is_string(value) ? json_string_value(value) : dumped;
    fine = fine && text && emit_item(out, &item, key, text, user->updated_ms);
    free(dumped);
  }
  buf_free(&item);
  json_decref(object);
  return fine;
}

bool user_profile_build(struct user *user) {
  struct buf *out = &user->profile;
  out->len = 0;
  if (!emit_bytes(out, 1, user->key)) return false;
  bool written = !user->registered ||
                 (emit_bytes(out, 2, text_view(user->nickname)) && emit_bytes(out, 3, text_view(user->portrait)) &&
                     emit_ext_fields(out, user) && emit_uint(out, 5, (uint64_t)user->updated_ms) &&
                     emit_uint(out, 8, user->is_admin ? JUGGLE_ADMIN : JUGGLE_USER));
  buf_trim(out); /* one for each user, and it seldom changes */
  return written;
}

bool group_profile_build(struct group *group) {
  struct buf *out = &group->profile;
  out->len = 0;
  return emit_bytes(out, 1, group->key) && emit_bytes(out, 2, text_view(group->name)) &&
         emit_bytes(out, 3, text_view(group->portrait)) && emit_uint(out, 6, (uint64_t)group->updated_ms);
}

/* ---- The cache ---- */

struct message *message_new(size_t body_len) {
  struct message *message = calloc(1, sizeof *message + body_len);
  if (message) message->body_len = (uint32_t)body_len;
  return message;
}

static size_t message_size(const struct message *message) {
  return sizeof *message + message->body_len;
}

static struct message **cache_slot(const struct message_cache *cache, int64_t id) {
  return &cache->slots[id & (cache->capacity - 1)];
}

static void cache_drop_oldest(struct message_cache *cache) {
  struct message **slot = cache_slot(cache, cache->oldest++);
  cache->bytes -= message_size(*slot);
  free(*slot);
  *slot = NULL;
}

static bool cache_grow(struct message_cache *cache) {
  uint32_t capacity = cache->capacity ? cache->capacity * 2 : 1024;
  struct message **slots = calloc(capacity, sizeof(struct message *));
  if (!slots) return false;
  for (int64_t id = cache->oldest; id < cache->next; id++)
    slots[id & (capacity - 1)] = *cache_slot(cache, id);
  free(cache->slots);
  cache->slots = slots;
  cache->capacity = capacity;
  return true;
}

void cache_put(struct core *core, struct message *message) {
  struct message_cache *cache = &core->cache;
  /* Ids come without gaps; should one appear, the cache starts anew behind it. */
  while (cache->oldest < cache->next && message->id != cache->next)
    cache_drop_oldest(cache);
  if (cache->oldest == cache->next) cache->oldest = cache->next = message->id;
  while (cache->oldest < cache->next && cache->bytes + message_size(message) > CACHE_BYTES)
    cache_drop_oldest(cache);
  if (cache->next - cache->oldest >= cache->capacity && !cache_grow(cache)) {
    free(message);
    core_out_of_memory(core);
    return;
  }
  *cache_slot(cache, message->id) = message;
  cache->next = message->id + 1;
  cache->bytes += message_size(message);
}

const struct message *cache_find(const struct core *core, int64_t id) {
  if (id < core->cache.oldest || id >= core->cache.next) return NULL;
  return *cache_slot(&core->cache, id);
}

void cache_free(struct core *core) {
  while (core->cache.oldest < core->cache.next)
    cache_drop_oldest(&core->cache);
  free(core->cache.slots);
}

bool message_row_is_sound(const struct core *core, const struct store_message *row) {
  struct juggle_up_msg up;
  return row->conversation && row->conversation <= core->conversation_count && row->sender &&
         row->sender <= core->user_count && core->conversation_by_num[row->conversation] &&
         core->user_by_num[row->sender] && row->msg_id.len == JUGGLE_MSG_ID_LEN && juggle_read_up_msg(row->body, &up);
}

struct message *message_of_row(struct core *core, const struct store_message *row) {
  struct message *message = message_new(row->body.len);
  if (!message) return NULL;
  message->id = row->id;
  message->seq = row->seq;
  message->time_ms = row->time_ms;
  message->conversation = core->conversation_by_num[row->conversation];
  message->sender = core->user_by_num[row->sender];
  message->member_count = row->member_count;
  message->flags = row->flags;
  message->marks = row->marks;
  memcpy(message->msg_id, row->msg_id.data, JUGGLE_MSG_ID_LEN);
  if (row->body.len) memcpy(message->body, row->body.data, row->body.len);
  return message;
}

/* ---- DownMsg (section 4.5) ---- */

/* An upper bound of what surrounds the texts: keys, lengths and numbers of some 30 fields. */
enum { DOWN_OVERHEAD = 512 };

struct down_sides {
  struct view target, target_user, group, receiver;
  bool is_send, is_private;
};

static struct down_sides down_sides(const struct message *message, enum down_view view, const struct user *viewer) {
  const struct conversation *conversation = message->conversation;
  struct view sender = buf_view(&message->sender->profile);
  if (conversation->group)
    return (struct down_sides){.target = conversation->group->key,
        .target_user = sender,
        .group = view == DOWN_HISTORY ? view_of(NULL, 0) : buf_view(&conversation->group->profile),
        .is_send = view == DOWN_SENT || (view == DOWN_HISTORY && viewer == message->sender)};
  struct user *peer = conversation_peer(conversation, viewer);
  return (struct down_sides){.target = peer->key,
      .target_user = view == DOWN_HISTORY ? view_of(NULL, 0) : buf_view(&peer->profile),
      .receiver = view == DOWN_RECEIVED ? buf_view(&viewer->profile) : view_of(NULL, 0),
      .is_send = view == DOWN_SENT || (view == DOWN_HISTORY && viewer == message->sender),
      .is_private = true};
}

bool down_encode(const struct message *message, enum down_view view, const struct user *viewer, struct buf *out,
    struct down_parts *parts) {
  struct juggle_up_msg up;
  struct view body = view_of(message->body, message->body_len);
  if (!juggle_read_up_msg(body, &up)) return false;
  struct down_sides sides = down_sides(message, view, viewer);
  struct view sender = buf_view(&message->sender->profile);
  out->len = 0;
  uint8_t *start = buf_reserve(out, (size_t)message->body_len + 2 * sender.len + sides.target_user.len +
                                        sides.group.len + sides.receiver.len + DOWN_OVERHEAD);
  if (!start) return false;

  uint8_t *at = pb_write_bytes_field(start, 1, sides.target);
  at = pb_write_uint_field(at, 2, (uint64_t)message->conversation->channel);
  at = pb_write_bytes_field(at, 3, up.msg_type);
  at = pb_write_bytes_field(at, 4, message->sender->key);
  at = pb_write_bytes_field(at, 5, view_of(message->msg_id, JUGGLE_MSG_ID_LEN));
  at = pb_write_uint_field(at, 6, (uint64_t)message->seq);
  at = pb_write_bytes_field(at, 7, up.content);
  parts->head = (uint32_t)(at - start);

  uint8_t *middle = at;
  at = pb_write_uint_field(at, 9, (uint64_t)(int64_t)message->flags);
  at = pb_write_uint_field(at, 10, sides.is_send);
  at = pb_write_bytes_field(at, 12, up.client_uid);
  at = pb_write_bytes_field(at, 13, up.push_data);
  at = pb_write_bytes_field(at, 14, up.mention_info);
  at = pb_write_bytes_field(at, 16, up.refer_msg);
  at = pb_write_bytes_field(at, 17, sides.target_user);
  at = pb_write_bytes_field(at, 18, sides.group);
  at = pb_write_bytes_field(at, 19, up.merged_msgs);
  at = pb_write_uint_field(at, 21, message->conversation->group ? message->member_count : 0);
  parts->middle = (uint32_t)(at - middle);

  uint8_t *tail = at;
  at = pb_write_bytes_field(at, 29, up.search_text);
  at = pb_write_uint_field(at, 31, up.life_time_ms > 0 ? (uint64_t)message->time_ms + (uint64_t)up.life_time_ms : 0);
  at = pb_write_uint_field(at, 32, (uint64_t)up.life_time_after_read_ms);
  at = pb_write_bytes_field(at, 34, up.sub_channel);
  at = pb_write_bytes_field(at, 38, sender);
  if (sides.receiver.len) at = pb_write_bytes_field(at, 101, sides.receiver);
  if (sides.is_private && view == DOWN_RECEIVED) at = pb_write_bytes_head(at, 102, 0);
  parts->tail = (uint32_t)(at - tail);
  out->len = (uint32_t)(at - start);
  return true;
}

bool down_append(struct core *core, struct buf *out, uint32_t field, const struct message *message, enum down_view view,
    const struct user *viewer, int64_t time_ms, int64_t unread_index) {
  struct down_parts parts;
  if (!down_encode(message, view, viewer, &core->down, &parts)) return false;
  const uint8_t *bytes = core->down.data;
  size_t len = (size_t)core->down.len + pb_uint_field_size(8, (uint64_t)time_ms) +
               pb_uint_field_size(23, (uint64_t)unread_index);
  size_t size = pb_bytes_head_size(field, len) + len;
  uint8_t *at = buf_reserve(out, size);
  if (!at) return false;
  at = pb_write_bytes_head(at, field, len);
  memcpy(at, bytes, parts.head);
  at = pb_write_uint_field(at + parts.head, 8, (uint64_t)time_ms);
  memcpy(at, bytes + parts.head, parts.middle);
  at = pb_write_uint_field(at + parts.middle, 23, (uint64_t)unread_index);
  memcpy(at, bytes + parts.head + parts.middle, parts.tail);
  out->len += (uint32_t)size;
  return true;
}
