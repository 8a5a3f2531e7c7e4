/* JuggleIM over WebSocket: upgrade, login, first sync, a chatroom's join, then publishes, pushes, notifications and
 * pulls.
 *
 * A message can reach a client by push (topic `msg`) and by pull (`sync_msgs`); the receiver's msgTime orders both.
 * Which repetitions are the protocol's own, and which are duplicates of the server:
 *   - the cursor is the msgTime up to which this client has everything; a pull asks for what lies behind it;
 *   - a pulled message that was pushed while that pull was under way is an overlap;
 *   - a pushed message inside the range that the last pull brought is an overlap, once, since msgTime only rises;
 *   - everything else goes up as an ordinary delivery, so that a repetition counts as a duplicate: a second push of
 *     one message, a pull that returns what lies at or before its cursor, one message twice in a page.
 * No message is ever dropped here: overlaps are delivered too, marked, and count when they were in fact the first.
 *
 * A chatroom has a cursor of its own, which begins at the time of the join's answer, and pulls of its own (c_sync_msgs)
 * that go beside those of the inbox. */
#include "driver/fail.h"
#include "driver/juggle_internal.h"
#include "driver/name.h"
#include "driver/target.h"
#include "driver/ws_client.h"

#include "base/clock.h"
#include "base/rng.h"
#include "wire/juggle.h"
#include "wire/pb.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS (10 * NS_PER_SEC)
#define PINGS_UNANSWERED_MAX 3
#define SYNC_TIMEOUT_NS (9 * NS_PER_SEC)
#define SYNC_RETRY_NS (200 * NS_PER_MS)
#define INLINE_OUTSTANDING 4
#define TABLE_MIN 16
#define INDEX_MAX 65535
#define OUTSTANDING_MAX 32768 /* half of the index space, so that a free index is always near */
#define CLIENT_UID_LEN 22
#define MESSAGE_MIN_LIMIT (1024 * 1024)
#define SYNC_PAGE 200
#define DOWN_MSG_OVERHEAD 4096 /* profiles, ids and settings around a content */

enum step { STEP_LOGIN, STEP_FIRST_SYNC, STEP_JOIN, STEP_READY };

struct outstanding {
  uint32_t token;
  uint16_t index; /* 0: free */
};

struct juggle_client {
  struct ws_client ws;
  struct juggle_key key;
  struct outstanding first[INLINE_OUTSTANDING]; /* enough at a low rate: no allocation */
  struct outstanding *table;                    /* owned; open addressing by index; only while it holds something */
  uint32_t table_size, table_used;
  int64_t cursor_ms;
  int64_t sync_from_ms;    /* of the pull that is under way or was the last */
  int64_t pushed_until_ms; /* highest push that came while a pull was under way */
  int64_t pulled_from_ms, pulled_until_ms;
  int64_t overlap_until_ms;
  int64_t room_cursor_ms, room_from_ms; /* everything up to here came; where the last pull began */
  uint64_t sync_sent_ns, ping_sent_ns, room_sent_ns;
  uint16_t last_index, sync_index, room_index;
  uint8_t step; /* enum step */
  uint8_t pings_unanswered;
  bool sync_under_way, sync_again, sync_first_page;
  bool room_under_way, room_again; /* a join or a pull awaits its answer; another is due */
  bool returned;                   /* was connected before: its cursors stand */
};

static_assert(sizeof(struct client) + sizeof(struct juggle_client) <= 352, "leaves 160 bytes for the load room");

static struct juggle_client *state_of(struct client *client) {
  return client_state(client);
}

static const struct juggle_population *population_of(const struct client *client) {
  return client->run->population;
}

static size_t write_id(const char *prefix, size_t prefix_len, uint32_t index, char out[JUGGLE_ID_MAX]) {
  return name_number(out, name_text(out, 0, view_of(prefix, prefix_len)), index);
}

size_t juggle_user_id(const struct juggle_population *population, uint32_t index, char out[JUGGLE_ID_MAX]) {
  return write_id(population->prefix, population->prefix_len, index, out);
}

size_t juggle_group_id(const struct juggle_population *population, uint32_t index, char out[JUGGLE_ID_MAX]) {
  return write_id(population->group_prefix, strlen(population->group_prefix), index, out);
}

/* --- outstanding publishes: index on the wire to token of the load room --- */

static uint32_t table_place(const struct juggle_client *state, uint16_t index) {
  uint32_t mask = state->table_size - 1;
  uint32_t at = index & mask;
  while (state->table[at].index != 0 && state->table[at].index != index)
    at = (at + 1) & mask;
  return at;
}

static bool index_is_taken(const struct juggle_client *state, uint16_t index) {
  for (int i = 0; i < INLINE_OUTSTANDING; i++) {
    if (state->first[i].index == index) return true;
  }
  return state->table && state->table[table_place(state, index)].index == index;
}

static bool table_grow(struct juggle_client *state) {
  if (state->table && state->table_used * 2 < state->table_size) return true;
  if (state->table_used >= OUTSTANDING_MAX) return false;
  struct outstanding *old = state->table;
  uint32_t old_size = old ? state->table_size : 0;
  uint32_t size = old ? old_size * 2 : TABLE_MIN;
  struct outstanding *table = calloc(size, sizeof(*table));
  if (!table) return false;
  state->table = table;
  state->table_size = size;
  for (uint32_t i = 0; i < old_size; i++) {
    if (old[i].index != 0) table[table_place(state, old[i].index)] = old[i];
  }
  free(old);
  return true;
}

static bool outstanding_put(struct juggle_client *state, uint16_t index, uint32_t token) {
  for (int i = 0; i < INLINE_OUTSTANDING; i++) {
    if (state->first[i].index != 0) continue;
    state->first[i] = (struct outstanding){token, index};
    return true;
  }
  if (!table_grow(state)) return false;
  state->table[table_place(state, index)] = (struct outstanding){token, index};
  state->table_used++;
  return true;
}

/* Closes the hole at `at` so that every entry stays reachable from its home place. */
static void table_remove(struct juggle_client *state, uint32_t at) {
  uint32_t mask = state->table_size - 1;
  state->table[at].index = 0;
  for (uint32_t next = (at + 1) & mask; state->table[next].index != 0; next = (next + 1) & mask) {
    uint32_t home = state->table[next].index & mask;
    if (((next - home) & mask) < ((next - at) & mask)) continue;
    state->table[at] = state->table[next];
    state->table[next].index = 0;
    at = next;
  }
  if (--state->table_used > 0) return;
  free(state->table);
  state->table = NULL;
  state->table_size = 0;
}

static bool outstanding_take(struct juggle_client *state, uint16_t index, uint32_t *token) {
  for (int i = 0; i < INLINE_OUTSTANDING; i++) {
    if (state->first[i].index != index) continue;
    *token = state->first[i].token;
    state->first[i].index = 0;
    return true;
  }
  if (!state->table) return false;
  uint32_t at = table_place(state, index);
  if (state->table[at].index != index) return false;
  *token = state->table[at].token;
  table_remove(state, at);
  return true;
}

static uint16_t next_index(struct juggle_client *state) {
  do {
    state->last_index = state->last_index == INDEX_MAX ? 1 : (uint16_t)(state->last_index + 1);
  } while (index_is_taken(state, state->last_index) ||
           (state->sync_under_way && state->last_index == state->sync_index) ||
           (state->room_under_way && state->last_index == state->room_index));
  return state->last_index;
}

/* --- writing --- */

struct frame {
  struct ws_frame whole;
  uint8_t *body;
  size_t body_len;
};

/* Reserves a whole frame and writes everything up to the body, which the caller then fills with body_len bytes. */
static bool frame_begin(struct client *client, int32_t cmd, int32_t qos, size_t body_len, struct frame *frame) {
  bool obfuscated = client->run->settings.obfuscate;
  size_t len = juggle_envelope_head_size(cmd, qos, body_len, obfuscated) + body_len;
  if (!ws_frame_begin(&state_of(client)->ws, client, WS_BINARY, len, &frame->whole)) return false;
  frame->body = juggle_write_envelope_head(frame->whole.message, cmd, qos, body_len, obfuscated);
  frame->body_len = body_len;
  return true;
}

static void frame_end(struct client *client, const struct frame *frame) {
  if (client->run->settings.obfuscate) juggle_xor(frame->body, frame->body_len, &state_of(client)->key);
  ws_frame_end(client, &frame->whole);
}

static bool write_ping(struct client *client) {
  struct frame frame;
  if (!frame_begin(client, JUGGLE_PING, 1, 0, &frame)) return false;
  frame_end(client, &frame);
  return true;
}

static bool write_push_ack(struct client *client, int32_t index) {
  struct juggle_publish_ack ack = {.index = index};
  struct frame frame;
  if (!frame_begin(client, JUGGLE_PUBLISH_ACK, 0, juggle_publish_ack_size(&ack), &frame)) return false;
  juggle_write_publish_ack(frame.body, &ack);
  frame_end(client, &frame);
  return true;
}

static bool write_connect(struct client *client) {
  char user[JUGGLE_ID_MAX];
  size_t user_len = juggle_user_id(population_of(client), client->index, user);
  struct juggle_connect connect = {
      .proto_id = view_str("jug9le1m"),
      .sdk_version = view_str("1.0.1"),
      .appkey = view_str(client->run->settings.app_key),
      .token = view_str(population_of(client)->tokens[client->index]),
      .device_id = view_of(user, user_len),
      .platform = view_str("Web"),
  };
  struct frame frame;
  if (!frame_begin(client, JUGGLE_CONNECT, 1, juggle_connect_size(&connect), &frame)) return false;
  juggle_write_connect(frame.body, &connect);
  frame_end(client, &frame);
  return true;
}

/* Pulls what lies behind from_ms. */
static bool write_sync(struct client *client, int64_t from_ms) {
  struct juggle_client *state = state_of(client);
  char user[JUGGLE_ID_MAX];
  size_t user_len = juggle_user_id(population_of(client), client->index, user);
  struct juggle_sync_request sync = {.sync_time_ms = from_ms};
  struct juggle_request query = {
      .index = next_index(state),
      .topic = view_str("sync_msgs"),
      .target = view_of(user, user_len),
      .data = {NULL, juggle_sync_request_size(&sync)},
  };
  struct frame frame;
  if (!frame_begin(client, JUGGLE_QUERY, 1, juggle_request_size(&query), &frame)) return false;
  juggle_write_sync_request(juggle_write_request(frame.body, &query), &sync);
  frame_end(client, &frame);
  state->sync_index = (uint16_t)query.index;
  state->sync_from_ms = from_ms;
  state->sync_sent_ns = clock_now_ns();
  state->sync_under_way = true;
  return true;
}

static bool start_sync(struct client *client) {
  struct juggle_client *state = state_of(client);
  state->sync_again = false;
  state->sync_first_page = true;
  return write_sync(client, state->cursor_ms);
}

/* --- the chatroom --- */

static bool in_room(const struct client *client) {
  return client->index < client->run->settings.room_members;
}

/* A query to the room with room for data_len bytes of data, which the caller writes at *data. */
static bool room_query_begin(
    struct client *client, const char *topic, size_t data_len, struct frame *frame, uint8_t **data) {
  struct juggle_client *state = state_of(client);
  struct juggle_request query = {
      .index = next_index(state),
      .topic = view_str(topic),
      .target = view_str(population_of(client)->room_id),
      .data = {NULL, data_len},
  };
  if (!frame_begin(client, JUGGLE_QUERY, 1, juggle_request_size(&query), frame)) return false;
  *data = juggle_write_request(frame->body, &query);
  state->room_index = (uint16_t)query.index;
  state->room_sent_ns = clock_now_ns();
  state->room_under_way = true;
  state->room_again = false;
  return true;
}

static bool write_join(struct client *client) {
  struct juggle_room_request join = {.room_id = view_str(population_of(client)->room_id), .auto_create = true};
  struct frame frame;
  uint8_t *data;
  if (!room_query_begin(client, "c_join", juggle_room_request_size(&join), &frame, &data)) return false;
  juggle_write_room_request(data, &join);
  frame_end(client, &frame);
  return true;
}

static bool write_room_sync(struct client *client) {
  struct juggle_client *state = state_of(client);
  struct juggle_room_sync sync = {
      .room_id = view_str(population_of(client)->room_id), .sync_time_ms = state->room_cursor_ms};
  struct frame frame;
  uint8_t *data;
  if (!room_query_begin(client, "c_sync_msgs", juggle_room_sync_size(&sync), &frame, &data)) return false;
  juggle_write_room_sync(data, &sync);
  frame_end(client, &frame);
  state->room_from_ms = state->room_cursor_ms;
  return true;
}

static bool write_room_query(struct client *client) {
  return state_of(client)->step == STEP_JOIN ? write_join(client) : write_room_sync(client);
}

/* Unique per run, phase, sender and sequence, since servers look for duplicates by it alone: 128 bits as base64url. */
static void write_client_uid(const struct payload *payload, char out[CLIENT_UID_LEN]) {
  static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  uint64_t high = (payload->run_id << 2) | (payload->phase & 3);
  uint64_t low = (uint64_t)payload->sender << 32 | payload->sequence;
  for (int i = 0; i < 11; i++, high >>= 6, low >>= 6) {
    out[i] = alphabet[high & 63];
    out[11 + i] = alphabet[low & 63];
  }
}

static int32_t message_flags(const struct driver_settings *settings) {
  return (settings->store ? JUGGLE_FLAG_STORE : 0) | (settings->count ? JUGGLE_FLAG_COUNT : 0);
}

/* UpMsg around a payload that is written in place. */
static void write_up_msg(uint8_t *at, const struct juggle_up_msg *msg, const struct payload *payload) {
  at = pb_write_bytes_field(at, 1, msg->msg_type);
  at = pb_write_bytes_head(at, 2, payload->size);
  payload_write(PAYLOAD_TEXT, at, payload);
  at = pb_write_uint_field(at + payload->size, 3, (uint64_t)msg->flags);
  pb_write_bytes_field(at, 4, msg->client_uid);
}

struct destination {
  struct view topic, target;
};

static struct destination destination_of(
    const struct juggle_population *population, const struct publish *publish, char id[JUGGLE_ID_MAX]) {
  if (publish->to == PUBLISH_TO_GROUP) {
    size_t len = juggle_group_id(population, publish->recipient, id);
    return (struct destination){view_str("g_msg"), view_of(id, len)};
  }
  if (publish->to == PUBLISH_TO_ROOM) return (struct destination){view_str("c_msg"), view_str(population->room_id)};
  size_t len = juggle_user_id(population, publish->recipient, id);
  return (struct destination){view_str("p_msg"), view_of(id, len)};
}

static enum publish_result juggle_publish(struct client *client, const struct publish *publish) {
  struct juggle_client *state = state_of(client);
  if (state->step != STEP_READY || state->table_used >= OUTSTANDING_MAX) return PUBLISH_BLOCKED;

  char id[JUGGLE_ID_MAX], uid[CLIENT_UID_LEN];
  struct destination destination = destination_of(population_of(client), publish, id);
  write_client_uid(&publish->payload, uid);
  struct juggle_up_msg msg = {
      .msg_type = view_str("jg:text"),
      .content = {NULL, publish->payload.size},
      .client_uid = view_of(uid, sizeof(uid)),
      .flags = message_flags(&client->run->settings),
  };
  struct juggle_request request = {
      .index = next_index(state),
      .topic = destination.topic,
      .target = destination.target,
      .data = {NULL, juggle_up_msg_size(&msg)},
  };
  struct frame frame;
  if (!frame_begin(client, JUGGLE_PUBLISH, 1, juggle_request_size(&request), &frame)) return PUBLISH_BLOCKED;
  if (!outstanding_put(state, (uint16_t)request.index, publish->token)) return PUBLISH_BLOCKED;
  write_up_msg(juggle_write_request(frame.body, &request), &msg, &publish->payload);
  frame_end(client, &frame);
  return PUBLISH_WRITTEN;
}

/* --- reading: each handler returns false once it has failed the client --- */

/* A server's own code; a negative one is none, and would read as one of muster's causes. */
static bool refused(struct client *client, int32_t code) {
  return fail(client, code < 0 ? CAUSE_PROTOCOL : code);
}

static int64_t later(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static bool on_connect_ack(struct client *client, struct view body) {
  struct juggle_client *state = state_of(client);
  struct juggle_connect_ack ack;
  if (state->step != STEP_LOGIN || !juggle_read_connect_ack(body, &ack)) return fail(client, CAUSE_PROTOCOL);
  if (ack.code != JUGGLE_OK) return refused(client, ack.code);
  state->step = STEP_FIRST_SYNC;
  if (!state->returned) state->cursor_ms = client->run->settings.backlog ? 0 : later(ack.timestamp_ms, 0);
  return check_written(client, start_sync(client));
}

static bool on_disconnect(struct client *client, struct view body) {
  struct juggle_disconnect disconnect;
  if (!juggle_read_disconnect(body, &disconnect)) return fail(client, CAUSE_PROTOCOL);
  return fail(client, disconnect.code > 0 ? disconnect.code : CAUSE_KICKED);
}

static void deliver(struct client *client, const struct juggle_down_msg *msg, bool overlap) {
  if (msg->is_send || !view_is(msg->msg_type, "jg:text")) return;
  client->hooks->delivered(client, msg->content, overlap);
}

static bool push_is_overlap(struct juggle_client *state, int64_t time_ms) {
  if (time_ms <= state->pulled_from_ms || time_ms > state->pulled_until_ms) return false;
  if (time_ms <= state->overlap_until_ms) return false;
  state->overlap_until_ms = time_ms;
  return true;
}

static bool on_message(struct client *client, const struct juggle_request *push, int32_t qos) {
  struct juggle_client *state = state_of(client);
  struct juggle_down_msg msg;
  if (!juggle_read_down_msg(push->data, &msg)) return fail(client, CAUSE_PROTOCOL);
  if (msg.channel == JUGGLE_CHATROOM) {
    state->room_cursor_ms = later(state->room_cursor_ms, msg.msg_time_ms);
    deliver(client, &msg, false);
  } else if (!msg.is_send) {
    bool overlap = push_is_overlap(state, msg.msg_time_ms);
    if (state->sync_under_way || state->sync_again) {
      state->pushed_until_ms = later(state->pushed_until_ms, msg.msg_time_ms);
    } else {
      state->cursor_ms = later(state->cursor_ms, msg.msg_time_ms);
    }
    deliver(client, &msg, overlap);
  }
  return qos == 0 || check_written(client, write_push_ack(client, push->index));
}

static bool on_room_notify(struct client *client, const struct juggle_notify *notify) {
  struct juggle_client *state = state_of(client);
  bool ours = in_room(client) && state->step >= STEP_JOIN && view_is(notify->room_id, population_of(client)->room_id);
  if (!ours) return true;
  if (notify->type == JUGGLE_NOTIFY_ROOM_DESTROYED) return fail(client, JUGGLE_ROOM_DELETED);
  if (notify->type != JUGGLE_NOTIFY_ROOM_MSG || notify->sync_time_ms <= state->room_cursor_ms) return true;
  if (state->room_under_way || state->room_again) {
    state->room_again = true;
    return true;
  }
  return check_written(client, write_room_sync(client));
}

static bool on_notify(struct client *client, struct view data) {
  struct juggle_client *state = state_of(client);
  struct juggle_notify notify;
  if (!juggle_read_notify(data, &notify)) return fail(client, CAUSE_PROTOCOL);
  if (notify.type > JUGGLE_NOTIFY_MSG) return on_room_notify(client, &notify);
  if (notify.sync_time_ms <= state->cursor_ms) return true;
  if (state->sync_under_way || state->sync_again) {
    state->sync_again = true;
    return true;
  }
  return check_written(client, start_sync(client));
}

static bool on_push(struct client *client, struct view body, int32_t qos) {
  struct juggle_request push;
  if (state_of(client)->step < STEP_FIRST_SYNC || !juggle_read_request(body, &push)) {
    return fail(client, CAUSE_PROTOCOL);
  }
  if (view_is(push.topic, "msg")) return on_message(client, &push, qos);
  if (view_is(push.topic, "ntf")) return on_notify(client, push.data);
  return true;
}

static bool on_publish_ack(struct client *client, struct view body) {
  struct juggle_publish_ack ack;
  uint32_t token;
  if (!juggle_read_publish_ack(body, &ack) || ack.code < 0) return fail(client, CAUSE_PROTOCOL);
  if (ack.index <= 0 || ack.index > INDEX_MAX) return true;
  if (outstanding_take(state_of(client), (uint16_t)ack.index, &token)) client->hooks->acked(client, token, ack.code);
  return true;
}

/* Delivers a page; *last_ms becomes the msgTime up to which it reaches. */
static bool read_page(struct client *client, struct view data, bool *finished, int64_t *last_ms) {
  struct juggle_client *state = state_of(client);
  struct juggle_set_reader reader = juggle_set_reader_of(data);
  struct view raw;
  *last_ms = state->sync_from_ms;
  while (juggle_set_next(&reader, &raw)) {
    struct juggle_down_msg msg;
    if (!juggle_read_down_msg(raw, &msg)) return false;
    bool overlap = msg.msg_time_ms > *last_ms && msg.msg_time_ms <= state->pushed_until_ms;
    *last_ms = later(*last_ms, msg.msg_time_ms);
    deliver(client, &msg, overlap);
  }
  *finished = reader.is_finished;
  return !reader.bad;
}

static void become_ready(struct client *client) {
  state_of(client)->step = STEP_READY;
  client->hooks->established(client);
}

/* What comes after the first sync. */
static bool enter(struct client *client) {
  if (in_room(client)) {
    state_of(client)->step = STEP_JOIN;
    return check_written(client, write_join(client));
  }
  become_ready(client);
  return true;
}

static bool finish_sync(struct client *client) {
  struct juggle_client *state = state_of(client);
  if (state->step == STEP_FIRST_SYNC && !enter(client)) return false;
  if (state->sync_again) return check_written(client, start_sync(client));
  state->cursor_ms = later(state->cursor_ms, state->pushed_until_ms);
  return true;
}

static bool on_sync_refused(struct client *client, int32_t code) {
  struct juggle_client *state = state_of(client);
  if (code != JUGGLE_RATE_LIMIT && state->step == STEP_FIRST_SYNC) return refused(client, code);
  state->sync_again = true;
  client->hooks->wake(client, clock_now_ns() + SYNC_RETRY_NS);
  return true;
}

static void retry_room(struct client *client) {
  state_of(client)->room_again = true;
  client->hooks->wake(client, clock_now_ns() + SYNC_RETRY_NS);
}

static bool on_joined(struct client *client, const struct juggle_query_ack *ack) {
  struct juggle_client *state = state_of(client);
  if (ack->code == JUGGLE_RATE_LIMIT) {
    retry_room(client);
    return true;
  }
  if (ack->code != JUGGLE_OK) return refused(client, ack->code);
  state->room_cursor_ms = later(state->room_cursor_ms, ack->timestamp_ms);
  become_ready(client);
  return !state->room_again || check_written(client, write_room_sync(client));
}

/* What was pushed while the pull was under way may come again with it. */
static bool read_room_page(struct client *client, struct view data) {
  struct juggle_client *state = state_of(client);
  int64_t pushed_until_ms = state->room_cursor_ms, last_ms = state->room_from_ms;
  struct juggle_set_reader reader = juggle_set_reader_of(data);
  struct view raw;
  while (juggle_set_next(&reader, &raw)) {
    struct juggle_down_msg msg;
    if (!juggle_read_down_msg(raw, &msg)) return false;
    bool overlap = msg.msg_time_ms > last_ms && msg.msg_time_ms <= pushed_until_ms;
    last_ms = later(last_ms, msg.msg_time_ms);
    deliver(client, &msg, overlap);
  }
  state->room_cursor_ms = later(state->room_cursor_ms, last_ms);
  return !reader.bad;
}

static bool on_room_answer(struct client *client, const struct juggle_query_ack *ack) {
  struct juggle_client *state = state_of(client);
  state->room_under_way = false;
  if (state->step == STEP_JOIN) return on_joined(client, ack);
  if (ack->code == JUGGLE_ROOM_NOT_MEMBER || ack->code == JUGGLE_ROOM_UNKNOWN) return fail(client, ack->code);
  if (ack->code != JUGGLE_OK) {
    retry_room(client);
    return true;
  }
  if (!read_room_page(client, ack->data)) return fail(client, CAUSE_PROTOCOL);
  return !state->room_again || check_written(client, write_room_sync(client));
}

static bool on_query_ack(struct client *client, struct view body) {
  struct juggle_client *state = state_of(client);
  struct juggle_query_ack ack;
  if (!juggle_read_query_ack(body, &ack)) return fail(client, CAUSE_PROTOCOL);
  if (state->room_under_way && ack.index == state->room_index) return on_room_answer(client, &ack);
  if (!state->sync_under_way || ack.index != state->sync_index) return true;
  state->sync_under_way = false;
  if (ack.code != JUGGLE_OK) return on_sync_refused(client, ack.code);

  bool finished;
  int64_t last_ms;
  if (!read_page(client, ack.data, &finished, &last_ms)) return fail(client, CAUSE_PROTOCOL);
  if (state->sync_first_page) {
    state->sync_first_page = false;
    state->pulled_from_ms = state->sync_from_ms;
  }
  bool moved = last_ms > state->sync_from_ms;
  state->cursor_ms = later(state->cursor_ms, last_ms);
  state->pulled_until_ms = last_ms;
  /* A page that brings nothing new and yet says "more" would loop for ever. */
  if (finished || !moved) return finish_sync(client);
  return check_written(client, write_sync(client, last_ms));
}

static bool on_envelope(struct client *client, const struct juggle_envelope *envelope, struct view body) {
  switch (envelope->cmd) {
  case JUGGLE_CONNECT_ACK:
    return on_connect_ack(client, body);
  case JUGGLE_DISCONNECT:
    return on_disconnect(client, body);
  case JUGGLE_PUBLISH:
    return on_push(client, body, envelope->qos);
  case JUGGLE_PUBLISH_ACK:
    return on_publish_ack(client, body);
  case JUGGLE_QUERY_ACK:
    return on_query_ack(client, body);
  case JUGGLE_PONG:
    return true;
  default:
    return fail(client, CAUSE_PROTOCOL);
  }
}

static bool on_frame(struct client *client, uint8_t *data, size_t len) {
  struct juggle_envelope envelope;
  if (!juggle_read_envelope(view_of(data, len), &envelope)) return fail(client, CAUSE_PROTOCOL);
  struct view body = envelope.body;
  if (client->run->settings.obfuscate) {
    if (envelope.body_field != 0) return fail(client, CAUSE_PROTOCOL);
    body = envelope.payload;
    if (body.len > 0) juggle_xor(data + (body.data - data), body.len, &state_of(client)->key);
  } else if (envelope.payload.len > 0 ||
             (envelope.body_field != 0 && envelope.body_field != juggle_body_field(envelope.cmd))) {
    return fail(client, CAUSE_PROTOCOL);
  }
  return on_envelope(client, &envelope, body);
}

static bool on_event(struct client *client, const struct ws_event *event) {
  struct juggle_client *state = state_of(client);
  state->pings_unanswered = 0;
  if (event->kind == WS_EVENT_MESSAGE) return on_frame(client, event->data, event->len);
  return ws_client_control(&state->ws, client, event, state->step == STEP_READY);
}

static uint32_t message_limit(const struct driver_settings *settings) {
  uint64_t page = (uint64_t)SYNC_PAGE * (settings->payload_bytes + DOWN_MSG_OVERHEAD);
  if (page < MESSAGE_MIN_LIMIT) return MESSAGE_MIN_LIMIT;
  return page > INT32_MAX ? INT32_MAX : (uint32_t)page;
}

static bool on_upgraded(struct client *client, struct view subprotocol) {
  (void)subprotocol;
  return check_written(client, write_connect(client));
}

static size_t juggle_received(struct client *client, uint8_t *data, size_t len) {
  static const struct ws_client_ops ops = {message_limit, on_upgraded, on_event};
  return ws_client_received(&state_of(client)->ws, client, &ops, data, len);
}

static void juggle_opened(struct client *client) {
  struct juggle_client *state = state_of(client);
  const char *path = client->run->settings.url.path;
  random_bytes(&state->key, sizeof(state->key));
  ws_client_open(&state->ws, client, path[0] && strcmp(path, "/") != 0 ? path : "/im", NULL);
}

static void juggle_tick(struct client *client, uint64_t now_ns) {
  struct juggle_client *state = state_of(client);
  if (state->step < STEP_FIRST_SYNC) return;
  if (state->sync_under_way && now_ns >= state->sync_sent_ns + SYNC_TIMEOUT_NS) {
    state->sync_under_way = false;
    state->sync_again = true;
  }
  if (state->sync_again && !state->sync_under_way && !check_written(client, start_sync(client))) return;
  if (state->room_under_way && now_ns >= state->room_sent_ns + SYNC_TIMEOUT_NS) {
    state->room_under_way = false;
    state->room_again = true;
  }
  if (state->room_again && !state->room_under_way && !check_written(client, write_room_query(client))) return;
  if (now_ns < state->ping_sent_ns + driver_tick_ns(client->run) / 2) return;
  if (state->pings_unanswered >= PINGS_UNANSWERED_MAX) {
    fail(client, CAUSE_KEEP_ALIVE);
    return;
  }
  state->ping_sent_ns = now_ns;
  state->pings_unanswered++;
  check_written(client, write_ping(client));
}

static void juggle_closing(struct client *client) {
  struct frame frame;
  if (state_of(client)->step < STEP_FIRST_SYNC) return;
  if (frame_begin(client, JUGGLE_DISCONNECT, 0, 0, &frame)) frame_end(client, &frame);
}

static void juggle_released(struct client *client) {
  struct juggle_client *state = state_of(client);
  ws_client_free(&state->ws);
  free(state->table);
  state->table = NULL;
  state->table_size = state->table_used = 0;
}

/* Cursors stay, and with them which pushes the next pull may bring again. */
static void juggle_reconnecting(struct client *client) {
  struct juggle_client *state = state_of(client);
  *state = (struct juggle_client){
      .cursor_ms = state->cursor_ms,
      .pushed_until_ms = state->pushed_until_ms,
      .room_cursor_ms = state->room_cursor_ms,
      .returned = true,
  };
}

/* The set-up API and the navigator are HTTP, and read the certificates too. */
static const struct driver_option options[] = {{"app-key", NULL}, {"api-url", NULL}, {"navigator", NULL},
    {"setup-concurrency", NULL}, {"store-messages", NULL}, {"count-messages", NULL}, {"plain", NULL},
    {"keep-alive", NULL}, {"ca-file", "wss,juggles,https"}, {"insecure", "wss,juggles,https"}, {"cert", "wss,juggles"},
    {"key", "wss,juggles"}, {"ack", NULL}, {"push-window", NULL}, {"rate-limits", NULL}, {NULL, NULL}};

const struct driver driver_juggle = {
    .name = "juggle",
    .schemes = "ws,wss,juggle,juggles",
    .title = "JuggleIM (protobuf over WebSocket)",
    .ack_meaning = "PublishAck: accepted by the server, with id, time and sequence",
    .delivery = "push with ack, or notify and pull; at least once, in order of the receiver's time",
    .capabilities = CAPABILITY_ACKS | CAPABILITY_PRIVATE | CAPABILITY_GROUP | CAPABILITY_ROOM | CAPABILITY_BACKLOG,
    .default_port = 9003,
    .payload_form = PAYLOAD_TEXT,
    .payload_min_bytes = PAYLOAD_TEXT_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .rate_limit = 100,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct juggle_client),
    .options = options,
    .prepare = juggle_prepare,
    .release = target_release,
    .opened = juggle_opened,
    .received = juggle_received,
    .publish = juggle_publish,
    .tick = juggle_tick,
    .closing = juggle_closing,
    .released = juggle_released,
    .reconnecting = juggle_reconnecting,
    .code_text = juggle_code_text,
};
