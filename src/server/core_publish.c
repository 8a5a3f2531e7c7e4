/* Publishing (sections 3.6, 3.7, 4.1): who may, id, time and sequence, recipients, the row, the fan-out.
 *
 * Each user has one clock for what it sends and receives, which never shows the same millisecond twice: a message's
 * time is above all earlier times of its conversation and of its sender, and a receive time above all earlier ones of
 * the receiver. So inbox, send box, history and conversation list can be paged by time without loss. The price: above
 * 1,000 messages a second to one user or conversation, these times run ahead of the wall clock. */
#include "server/core_state.h"
#include "server/recipients.h"

#include "base/clock.h"
#include "wire/pb.h"

#include <stdlib.h>

struct publish {
  struct user *sender, *receiver; /* receiver: private and system */
  struct group *group;
  int32_t channel;
  bool directed;              /* to to_users, or to the ids in up.to_user_ids */
  bool no_copy;               /* the sender wants no copy of its own */
  const struct session *from; /* gets no copy; NULL: the HTTP API */
  struct juggle_up_msg up;
  const struct view *to_users;
  uint32_t to_users_count;

  /* While it runs. */
  struct message *message;
  bool state, stored, counted;
  struct recipients_writer recipients;
  char uid[24];
  bool client_uid;
};

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* ---- Recipients ---- */

static void receive(struct core *core, struct publish *publish, struct user *user, struct position *position) {
  struct message *message = publish->message;
  int64_t time_ms = later(message->time_ms, user->latest_ms + 1);
  user->latest_ms = time_ms;
  message->member_count++;
  int64_t unread = 0;
  if (position) {
    if (publish->counted) unread = ++position->unread_index;
    if (publish->stored) {
      position->sort_ms = time_ms;
      position->last_message = message->id;
    }
    position->sync_ms = time_ms;
    position_touch(core, position);
  }
  for (const struct session *session = user->sessions; session; session = session->next)
    stage_target(core, session, time_ms, unread, false);
  if (publish->state) return;
  if (!user->sessions) user->pending = true;
  struct inbox_entry entry = {time_ms, message->id, unread};
  struct recipient recipient = {user->num, time_ms, unread};
  if (!inbox_append(&user->inbox, &core->inbox_limits, &entry, core->now_ms - OFFLINE_WINDOW_MS) ||
      !recipients_add(&publish->recipients, &recipient))
    core_out_of_memory(core);
}

static bool wants_position(const struct publish *publish) {
  return !publish->state && (publish->stored || publish->counted);
}

static void receive_as_member(
    struct core *core, struct publish *publish, const struct group *group, struct member *member) {
  struct user *user = member->user;
  if (!user || user == publish->sender) return;
  if (!wants_position(publish)) {
    receive(core, publish, user, NULL);
    return;
  }
  struct conversation *conversation = publish->message->conversation;
  if (conversation != group->conversation) {
    receive(core, publish, user, position_get(core, user, conversation));
    return;
  }
  if (!member->position) member->position = position_get(core, user, conversation);
  receive(core, publish, user, member->position);
}

static void receive_if_member(struct core *core, struct publish *publish, struct group *group, struct view user_id) {
  struct user *user = user_find(publish->sender->app, user_id);
  if (!user || user->publish_mark == core->publish_serial) return;
  user->publish_mark = core->publish_serial;
  struct member *member = member_find(core, group, user);
  if (member) receive_as_member(core, publish, group, member);
}

static void receive_all(struct core *core, struct publish *publish) {
  if (publish->receiver) {
    if (publish->receiver == publish->sender) return;
    struct position *position =
        wants_position(publish) ? position_get(core, publish->receiver, publish->message->conversation) : NULL;
    receive(core, publish, publish->receiver, position);
    return;
  }
  struct group *group = publish->group;
  if (!group) return;
  if (!publish->directed) {
    for (uint32_t i = 0; i < group->slots; i++)
      receive_as_member(core, publish, group, &group->members[i]);
    return;
  }
  core->publish_serial++;
  for (uint32_t i = 0; i < publish->to_users_count; i++)
    receive_if_member(core, publish, group, publish->to_users[i]);
  struct pb_reader reader = pb_reader_of(publish->up.to_user_ids);
  struct pb_field field;
  while (pb_next(&reader, &field))
    if (field.number == 8 && field.type == PB_BYTES) receive_if_member(core, publish, group, field.bytes);
}

/* The sender's side: send box and conversation. */
static void send_box(struct core *core, const struct publish *publish) {
  const struct message *message = publish->message;
  struct user *sender = publish->sender;
  if (publish->no_copy) return;
  struct inbox_entry entry = {message->time_ms, message->id, 0};
  if (!inbox_append(&sender->sent, &core->inbox_limits, &entry, core->now_ms - OFFLINE_WINDOW_MS))
    core_out_of_memory(core);
  if (!publish->stored) return;
  struct position *position = position_get(core, sender, message->conversation);
  if (!position) return;
  position->sort_ms = message->time_ms;
  position->sync_ms = later(position->sync_ms, message->time_ms);
  position->last_message = message->id;
  position_touch(core, position);
}

/* ---- The message ---- */

static void make_uid(struct core *core, char out[24]) {
  static const char alphabet[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  for (int i = 0; i < 22; i++)
    out[i] = alphabet[rng_below(&core->rng, sizeof alphabet - 1)];
  out[22] = '\0';
}

static struct message *message_make(
    struct core *core, const struct publish *publish, struct conversation *conversation) {
  size_t size = juggle_up_msg_size(&publish->up);
  struct message *message = message_new(size);
  if (!message) return NULL;
  juggle_write_up_msg(message->body, &publish->up);
  conversation_tail(core, conversation);
  message->conversation = conversation;
  message->sender = publish->sender;
  message->flags = publish->up.flags;
  message->marks = (publish->directed ? STORE_DIRECTED : 0) | (publish->client_uid ? STORE_CLIENT_UID : 0) |
                   (publish->no_copy ? STORE_NO_COPY : 0);
  message->time_ms = later(core->now_ms, later(conversation->time_ms, publish->sender->latest_ms) + 1);
  message->seq = publish->stored ? ++conversation->seq : -1;
  if (!publish->state) message->id = ++core->newest_message;
  conversation->time_ms = message->time_ms;
  publish->sender->latest_ms = message->time_ms;
  juggle_msg_id(
      message->msg_id, message->time_ms, core->msg_id_counter++, conversation->channel, conversation->target_crc);
  return message;
}

static void store_row(struct core *core, const struct publish *publish) {
  const struct message *message = publish->message;
  store_put_message(core->store, &(struct store_message){.id = message->id,
                                     .seq = message->seq,
                                     .time_ms = message->time_ms,
                                     .at_ms = core->now_ms,
                                     .conversation = message->conversation->num,
                                     .sender = message->sender->num,
                                     .member_count = message->member_count,
                                     .flags = message->flags,
                                     .marks = message->marks,
                                     .msg_id = view_of(message->msg_id, JUGGLE_MSG_ID_LEN),
                                     .body = view_of(message->body, message->body_len),
                                     .recipients = buf_view(&core->recipients)});
  atomic_fetch_add_explicit(&core->stats.rows, 1, memory_order_relaxed);
}

static void answer_from_message(const struct message *message, struct published *out) {
  out->time_ms = message->time_ms;
  out->seq = message->seq;
  out->member_count = message->conversation->group ? message->member_count : 0;
  memcpy(out->msg_id, message->msg_id, JUGGLE_MSG_ID_LEN);
}

static void answer_from_duplicate(const struct dedup_entry *entry, struct published *out) {
  out->time_ms = entry->time_ms;
  out->seq = entry->seq;
  out->member_count = entry->member_count;
  memcpy(out->msg_id, entry->msg_id, JUGGLE_MSG_ID_LEN);
}

/* A publish that the sender repeats gets the first answer again. */
static bool answer_repeated(struct core *core, const struct publish *publish, struct published *out) {
  const struct dedup_entry *first =
      dedup_find(&core->dedup, publish->sender->num, publish->up.client_uid, core->now_ms);
  if (!first) return false;
  atomic_fetch_add_explicit(&core->stats.duplicates, 1, memory_order_relaxed);
  answer_from_duplicate(first, out);
  return true;
}

static void give_uid(struct core *core, struct publish *publish) {
  if (publish->client_uid) return;
  make_uid(core, publish->uid);
  publish->up.client_uid = view_str(publish->uid);
}

/* Everything but the delivery, whose targets are then staged. A duplicate leaves publish->message NULL. */
static int32_t apply(struct core *core, struct publish *publish, struct published *out) {
  struct juggle_up_msg *up = &publish->up;
  if (up->client_uid.len > CLIENT_UID_MAX || up->sub_channel.len > ID_MAX) return JUGGLE_MSG_PARAMETER;
  publish->client_uid = up->client_uid.len > 0;
  if (answer_repeated(core, publish, out)) return JUGGLE_OK;
  give_uid(core, publish);
  publish->state = (up->flags & JUGGLE_FLAG_STATE) != 0;
  publish->stored = !publish->state && (up->flags & JUGGLE_FLAG_STORE);
  publish->counted = !publish->state && (up->flags & JUGGLE_FLAG_COUNT);

  struct conversation *conversation =
      publish->group
          ? conversation_of_group(core, publish->group, up->sub_channel, true)
          : conversation_of_users(core, publish->channel, publish->sender, publish->receiver, up->sub_channel, true);
  publish->message = conversation ? message_make(core, publish, conversation) : NULL;
  if (!publish->message) return JUGGLE_MSG_DEFAULT;
  core->recipients.len = 0;
  publish->recipients = (struct recipients_writer){.out = &core->recipients, .message_ms = publish->message->time_ms};
  receive_all(core, publish);
  if (!publish->state) {
    send_box(core, publish);
    store_row(core, publish);
  }
  answer_from_message(publish->message, out);
  if (publish->client_uid && !dedup_put(&core->dedup, publish->message, up->client_uid, core->now_ms))
    core_out_of_memory(core);
  return JUGGLE_OK;
}

/* ---- Delivery ---- */

static void deliver(struct core *core, struct publish *publish) {
  struct message *message = publish->message;
  if (!message) return;
  struct down_parts parts;
  if (any_target_staged(core)) {
    if (down_encode(message, DOWN_RECEIVED, publish->receiver, &core->down, &parts))
      stage_fan_out(core, core->down.data, parts, publish->state);
    else
      core_out_of_memory(core);
  }
  if (!publish->no_copy && !publish->state)
    for (const struct session *session = publish->sender->sessions; session; session = session->next)
      if (session != publish->from) stage_target(core, session, message->time_ms, 0, true);
  if (any_target_staged(core)) {
    if (down_encode(message, DOWN_SENT, publish->sender, &core->down, &parts))
      stage_fan_out(core, core->down.data, parts, false);
    else
      core_out_of_memory(core);
  }
  if (publish->state)
    free(message);
  else
    cache_put(core, message);
  publish->message = NULL;
}

/* ---- From a session ---- */

static int32_t address(struct core *core, struct publish *publish, struct view topic, struct view target) {
  bool is_admin = publish->from->user_type == JUGGLE_ADMIN;
  struct app *app = publish->sender->app;
  if (!topic.len || !target.len) return JUGGLE_TOPIC_MISSING;
  if (view_is(topic, "g_msg")) {
    publish->channel = JUGGLE_GROUP;
    publish->group = group_find(app, target);
    if (!publish->group) return is_admin ? JUGGLE_GROUP_UNKNOWN : JUGGLE_GROUP_NOT_MEMBER;
    bool may = is_admin || member_find(core, publish->group, publish->sender);
    return may ? JUGGLE_OK : JUGGLE_GROUP_NOT_MEMBER;
  }
  if (view_is(topic, "p_msg"))
    publish->channel = JUGGLE_PRIVATE;
  else if (view_is(topic, "s_msg") && is_admin)
    publish->channel = JUGGLE_SYSTEM;
  else
    return JUGGLE_TOPIC_UNSUPPORTED;
  return target.len <= ID_MAX ? JUGGLE_OK : JUGGLE_MSG_PARAMETER;
}

/* c_msg, and c_join and c_quit, which SDKs send as publishes too. */
static bool is_room_topic(struct view topic) {
  return view_is(topic, "c_msg") || view_is(topic, "c_join") || view_is(topic, "c_quit");
}

static int32_t publish_to_room(struct core *core, const struct request *request, struct session *from,
    struct publish *publish, struct published *result) {
  struct view topic = request->part[0], target = request->part[1];
  struct juggle_up_msg *up = &publish->up;
  if (!target.len) return JUGGLE_TOPIC_MISSING;
  if (view_is(topic, "c_join")) return room_join(core, from, target, request->part[2], &result->time_ms);
  if (view_is(topic, "c_quit")) return room_quit(core, from, target);
  bool readable = juggle_read_up_msg(request->part[2], up) && juggle_up_msg_is_sound(up);
  if (!readable || up->client_uid.len > CLIENT_UID_MAX) return JUGGLE_MSG_PARAMETER;
  publish->client_uid = up->client_uid.len > 0;
  if (answer_repeated(core, publish, result)) return JUGGLE_OK;
  give_uid(core, publish);
  int32_t code = room_publish(core, from, target, up, result);
  if (code != JUGGLE_OK || !publish->client_uid) return code;
  struct message memo = {.seq = result->seq, .time_ms = result->time_ms, .sender = from->user};
  memcpy(memo.msg_id, result->msg_id, sizeof memo.msg_id);
  if (!dedup_put(&core->dedup, &memo, up->client_uid, core->now_ms)) core_out_of_memory(core);
  return JUGGLE_OK;
}

static int32_t publish_from(
    struct core *core, const struct request *request, struct publish *publish, struct published *result) {
  struct session *from = core_session(core, request->session);
  publish->from = from;
  if (!from) return JUGGLE_CONNECT_DEFAULT;
  publish->sender = from->user;
  if (is_room_topic(request->part[0])) return publish_to_room(core, request, from, publish, result);
  struct view target = request->part[1];
  int32_t code = address(core, publish, request->part[0], target);
  if (code == JUGGLE_TOPIC_UNSUPPORTED) result->time_ms = core->now_ms;
  if (code != JUGGLE_OK) return code;
  bool readable = juggle_read_up_msg(request->part[2], &publish->up) && juggle_up_msg_is_sound(&publish->up);
  if (!readable) return JUGGLE_MSG_PARAMETER;
  publish->directed = publish->group && publish->up.to_user_ids.len;
  publish->no_copy = publish->channel == JUGGLE_SYSTEM;
  if (!publish->group) publish->receiver = user_get(core, publish->sender->app, target);
  if (!publish->group && !publish->receiver) return JUGGLE_MSG_PARAMETER;
  return apply(core, publish, result);
}

void publish_run(struct core *core, const struct request *request) {
  struct publish publish = {0};
  struct published result = {0};
  int32_t code = publish_from(core, request, &publish, &result);
  atomic_fetch_add_explicit(&core->stats.publishes, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(code == JUGGLE_OK ? &core->stats.acks : &core->stats.rejects, 1, memory_order_relaxed);
  struct out *out = out_stage(core, OUT_PUBLISH_ACK, request->session, publish.up.client_uid, view_of(NULL, 0));
  if (out) {
    out->index = request->index;
    out->code = code;
    out->timestamp_ms = result.time_ms;
    out->seq = result.seq;
    out->member_count = (int32_t)result.member_count;
    memcpy(out->msg_id, result.msg_id, sizeof result.msg_id);
  }
  deliver(core, &publish);
}

/* ---- From the HTTP API ---- */

int32_t core_send(struct core *core, struct view app_key, const struct core_send *send, char msg_id[24]) {
  struct app *app = app_find(core, app_key);
  msg_id[0] = '\0';
  if (!app) return JUGGLE_API_NO_APP;
  struct publish publish = {
      .channel = send->channel,
      .no_copy = !send->is_notify_sender || send->channel == JUGGLE_SYSTEM,
      .up = {.msg_type = send->msg_type, .content = send->content, .flags = send->flags},
  };
  publish.sender = user_get(core, app, send->sender_id);
  if (!publish.sender) return JUGGLE_API_BAD_PARAMETER;
  if (send->channel == JUGGLE_GROUP) {
    publish.group = group_find(app, send->target_id);
    if (!publish.group) return JUGGLE_GROUP_UNKNOWN;
    publish.directed = send->to_users != NULL;
    publish.to_users = send->to_users;
    publish.to_users_count = send->to_users ? send->to_users_count : 0;
  } else if (send->channel == JUGGLE_PRIVATE || send->channel == JUGGLE_SYSTEM) {
    publish.receiver = user_get(core, app, send->target_id);
    if (!publish.receiver) return JUGGLE_API_BAD_PARAMETER;
  } else {
    return JUGGLE_API_BAD_PARAMETER;
  }
  struct published result = {0};
  int32_t code = apply(core, &publish, &result);
  if (code == JUGGLE_OK) memcpy(msg_id, result.msg_id, sizeof result.msg_id);
  deliver(core, &publish);
  return code;
}

/* ---- Rebuilding at start ---- */

static void replay_sender(struct core *core, const struct message *message, bool in_window, int64_t at_ms) {
  struct user *sender = message->sender;
  sender->latest_ms = later(sender->latest_ms, message->time_ms);
  if (message->marks & STORE_NO_COPY) return;
  struct inbox_entry entry = {message->time_ms, message->id, 0};
  if (in_window && !inbox_append(&sender->sent, &core->inbox_limits, &entry, at_ms - OFFLINE_WINDOW_MS))
    core_out_of_memory(core);
  if (message->seq <= 0 || message->id <= core->checkpoint) return;
  struct position *position = position_get(core, sender, message->conversation);
  if (!position) return;
  position->sort_ms = later(position->sort_ms, message->time_ms);
  position->sync_ms = later(position->sync_ms, message->time_ms);
  position->last_message = later(position->last_message, message->id);
  position_touch(core, position);
}

static void replay_recipient(struct core *core, const struct message *message, const struct recipient *recipient,
    bool in_window, int64_t at_ms) {
  if (!recipient->user || recipient->user > core->user_count) return;
  struct user *user = core->user_by_num[recipient->user];
  if (!user) return;
  user->latest_ms = later(user->latest_ms, recipient->time_ms);
  struct inbox_entry entry = {recipient->time_ms, message->id, recipient->unread_index};
  if (in_window) {
    user->pending = true;
    if (!inbox_append(&user->inbox, &core->inbox_limits, &entry, at_ms - OFFLINE_WINDOW_MS)) core_out_of_memory(core);
  }
  if (message->id <= core->checkpoint || (message->seq <= 0 && !recipient->unread_index)) return;
  struct position *position = position_get(core, user, message->conversation);
  if (!position) return;
  position->unread_index = later(position->unread_index, recipient->unread_index);
  position->sync_ms = later(position->sync_ms, recipient->time_ms);
  if (message->seq > 0) {
    position->sort_ms = later(position->sort_ms, recipient->time_ms);
    position->last_message = later(position->last_message, message->id);
  }
  position_touch(core, position);
}

void message_replay(struct core *core, const struct store_message *row, int64_t window_ms) {
  struct message *message = message_of_row(core, row);
  if (!message) {
    core_out_of_memory(core);
    return;
  }
  bool in_window = row->at_ms > window_ms;
  struct conversation *conversation = message->conversation;
  if (message->seq > 0) {
    conversation->tail_known = true;
    conversation->seq = later(conversation->seq, message->seq);
  }
  conversation->time_ms = later(conversation->time_ms, message->time_ms);
  replay_sender(core, message, in_window, row->at_ms);
  struct recipients_reader reader = recipients_of(row->recipients, row->time_ms);
  struct recipient recipient;
  while (recipients_next(&reader, &recipient))
    replay_recipient(core, message, &recipient, in_window, row->at_ms);
  struct juggle_up_msg up;
  bool known_uid = in_window && (message->marks & STORE_CLIENT_UID) &&
                   juggle_read_up_msg(view_of(message->body, message->body_len), &up);
  if (known_uid && !dedup_put(&core->dedup, message, up.client_uid, row->at_ms)) core_out_of_memory(core);
  if (in_window)
    cache_put(core, message);
  else
    free(message);
}
