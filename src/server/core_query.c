/* Queries of clients (section 5). A client reads its own inbox and conversations only: where the protocol takes the
 * owner from targetId, another user's id gives 12010. */
#include "server/core_state.h"

#include "wire/pb.h"

#include <stdlib.h>

struct query {
  struct core *core;
  struct user *user;
  struct session *session;
  struct view target, data;
  struct buf *reply; /* core->reply, empty at first */
  bool is_sync, finished;
  int64_t time_ms;                /* of the answer; 0: now */
  struct room_member *unfinished; /* a chatroom's member that has more to pull */
};

static bool reply_out_of_memory(struct query *query) {
  core_out_of_memory(query->core);
  return false;
}

static bool is_varint(const struct pb_field *field, uint32_t number) {
  return field->number == number && field->type == PB_VARINT;
}

static bool is_bytes(const struct pb_field *field, uint32_t number) {
  return field->number == number && field->type == PB_BYTES;
}

/* ---- sync_msgs ---- */

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static bool append_entry(struct query *query, const struct inbox_entry *entry, enum down_view view) {
  struct message *owned;
  const struct message *message = message_find(query->core, entry->message_id, &owned);
  if (!message) return true;
  bool fine =
      down_append(query->core, query->reply, 1, message, view, query->user, entry->time_ms, entry->unread_index);
  free(owned);
  return fine || reply_out_of_memory(query);
}

/* Merges inbox and send box by time into the reply; true when both came to their ends. */
static bool append_page(struct query *query, int64_t after_ms, bool with_sent, int64_t sent_after_ms) {
  const struct inbox *inbox = &query->user->inbox, *sent = &query->user->sent;
  uint32_t i = inbox_after(inbox, after_ms);
  uint32_t j = with_sent ? inbox_after(sent, sent_after_ms) : sent->count;
  uint32_t shown = 0;
  while ((i < inbox->count || j < sent->count) && shown < SYNC_PAGE && query->reply->len < PAGE_BYTES) {
    bool from_inbox = j >= sent->count || (i < inbox->count && inbox_at(inbox, i).time_ms <= inbox_at(sent, j).time_ms);
    struct inbox_entry entry = from_inbox ? inbox_at(inbox, i++) : inbox_at(sent, j++);
    if (!append_entry(query, &entry, from_inbox ? DOWN_RECEIVED : DOWN_SENT)) return false;
    shown++;
    if (from_inbox) atomic_fetch_add_explicit(&query->core->stats.synced, 1, memory_order_relaxed);
  }
  /* A full page is never called the last, as in the original. */
  return shown < SYNC_PAGE && i >= inbox->count && j >= sent->count;
}

static int32_t sync_msgs(struct query *query) {
  struct core *core = query->core;
  struct juggle_sync_request request;
  if (!juggle_read_sync_request(query->data, &request)) return JUGGLE_MSG_PARAMETER;
  atomic_fetch_add_explicit(&core->stats.sync_queries, 1, memory_order_relaxed);
  int64_t window_ms = core->now_ms - OFFLINE_WINDOW_MS;
  query->is_sync = true;
  query->finished = append_page(query, larger(request.sync_time_ms, window_ms), request.contains_send_box,
      larger(request.send_box_sync_time_ms, window_ms));
  if (query->finished) query->user->pending = false;
  if (!emit_uint(query->reply, 3, query->finished)) reply_out_of_memory(query);
  return JUGGLE_OK;
}

/* ---- Naming a conversation ---- */

struct naming {
  struct view target, sub_channel;
  int64_t channel;
  bool own_side; /* asks for the user's own position alone, which outlives its membership in a group */
};

/* Finds the conversation that user means; *out is NULL when it has no messages yet. */
static int32_t named(struct query *query, const struct naming *naming, struct conversation **out) {
  *out = NULL;
  if (!naming->target.len) return JUGGLE_MSG_PARAMETER;
  if (naming->channel == JUGGLE_GROUP) {
    struct group *group = group_find(query->user->app, naming->target);
    bool may = group && (naming->own_side || member_find(query->core, group, query->user));
    if (!may) return JUGGLE_GROUP_NOT_MEMBER;
    *out = conversation_of_group(query->core, group, naming->sub_channel, false);
    return JUGGLE_OK;
  }
  if (naming->channel != JUGGLE_PRIVATE && naming->channel != JUGGLE_SYSTEM) return JUGGLE_MSG_PARAMETER;
  struct user *peer = user_find(query->user->app, naming->target);
  if (peer)
    *out = conversation_of_users(query->core, (int32_t)naming->channel, query->user, peer, naming->sub_channel, false);
  return JUGGLE_OK;
}

/* ---- History ---- */

static void append_history(struct query *query, const struct conversation *conversation, struct history_page *page) {
  struct buf *reply = query->reply;
  bool fine = true;
  for (uint32_t i = 0; i < page->count && fine; i++)
    fine = down_append(query->core, reply, 1, page->messages[i], DOWN_HISTORY, query->user, page->messages[i]->time_ms,
        page->unread_index[i]);
  fine = fine && emit_uint(reply, 3, page->is_finished);
  if (fine && conversation && conversation->group)
    fine = emit_bytes(reply, 5, buf_view(&conversation->group->profile));
  else if (fine && conversation)
    fine = emit_bytes(reply, 4, buf_view(&conversation_peer(conversation, query->user)->profile));
  if (!fine) reply_out_of_memory(query);
  history_page_free(page);
}

static int32_t qry_hismsgs(struct query *query) {
  struct naming naming = {0};
  int64_t start_ms = 0, count = 0, order = 0;
  struct view types[QUERY_TYPES];
  uint32_t type_count = 0;
  struct pb_reader reader = pb_reader_of(query->data);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (is_bytes(&field, 1)) naming.target = field.bytes;
    if (is_varint(&field, 2)) naming.channel = (int32_t)field.value;
    if (is_varint(&field, 3)) start_ms = (int64_t)field.value;
    if (is_varint(&field, 4)) count = (int32_t)field.value;
    if (is_varint(&field, 5)) order = (int32_t)field.value;
    if (is_bytes(&field, 7)) naming.sub_channel = field.bytes;
    if (!is_bytes(&field, 6)) continue;
    if (type_count == QUERY_TYPES) return JUGGLE_MSG_PARAMETER;
    types[type_count++] = field.bytes;
  }
  if (reader.bad) return JUGGLE_MSG_PARAMETER;
  struct conversation *conversation;
  int32_t code = named(query, &naming, &conversation);
  if (code != JUGGLE_OK) return code;
  struct history_page page = {.is_finished = true};
  bool oldest_first = order == 1;
  if (start_ms <= 0) start_ms = oldest_first ? 0 : INT64_MAX;
  const struct history_query history = {
      .conversation = conversation,
      .viewer = query->user,
      .start_ms = start_ms,
      .limit = count <= 0 || count > HISTORY_PAGE ? HISTORY_PAGE : (uint32_t)count,
      .oldest_first = oldest_first,
      .types = types,
      .type_count = type_count,
  };
  if (conversation) history_collect(query->core, &history, &page);
  append_history(query, conversation, &page);
  return JUGGLE_OK;
}

static int32_t qry_hismsg_by_ids(struct query *query) {
  struct naming naming = {0};
  struct view ids[HISTORY_PAGE];
  uint32_t count = 0;
  struct pb_reader reader = pb_reader_of(query->data);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (is_bytes(&field, 1)) naming.target = field.bytes;
    if (is_varint(&field, 2)) naming.channel = (int32_t)field.value;
    if (is_bytes(&field, 4)) naming.sub_channel = field.bytes;
    if (!is_bytes(&field, 3)) continue;
    if (count == HISTORY_PAGE) return JUGGLE_MSG_PARAMETER;
    ids[count++] = field.bytes;
  }
  if (reader.bad) return JUGGLE_MSG_PARAMETER;
  struct conversation *conversation;
  int32_t code = named(query, &naming, &conversation);
  if (code != JUGGLE_OK) return code;
  struct history_page page = {.is_finished = true};
  if (conversation) history_by_ids(query->core, conversation, query->user, ids, count, &page);
  append_history(query, conversation, &page);
  return JUGGLE_OK;
}

/* ---- Conversations ---- */

static int64_t unread_count(const struct position *position) {
  return position->unread_index - position->read_index;
}

static bool write_conversation(struct query *query, struct buf *out, const struct position *position) {
  const struct conversation *conversation = position->conversation;
  struct user *user = query->user;
  struct message *owned;
  const struct message *message = message_find(query->core, position->last_message, &owned);
  bool fine = emit_bytes(out, 1, user->key) && emit_bytes(out, 2, conversation_target(conversation, user)) &&
              emit_uint(out, 3, (uint64_t)conversation->channel) && emit_uint(out, 4, (uint64_t)position->sort_ms) &&
              emit_uint(out, 5, (uint64_t)unread_count(position));
  if (fine && message) fine = down_append(query->core, out, 6, message, DOWN_HISTORY, user, message->time_ms, 0);
  free(owned);
  fine = fine && emit_uint(out, 7, (uint64_t)position->read_index);
  if (fine && !conversation->group)
    fine = emit_bytes(out, 12, buf_view(&conversation_peer(conversation, user)->profile));
  if (fine && conversation->group) fine = emit_bytes(out, 13, buf_view(&conversation->group->profile));
  return fine && emit_uint(out, 14, (uint64_t)position->sync_ms) &&
         emit_uint(out, 16, (uint64_t)position->unread_index) && emit_bytes(out, 21, conversation->sub_channel);
}

static bool append_conversation(struct query *query, const struct position *position) {
  struct buf *one = &query->core->scratch;
  one->len = 0;
  return (write_conversation(query, one, position) && emit_message(query->reply, 1, buf_view(one))) ||
         reply_out_of_memory(query);
}

struct listing {
  int64_t start_ms;
  uint32_t limit;
  bool by_sync, ascending; /* which time, and which side of start_ms */
  struct view target;      /* empty: all */
  int64_t channel;         /* 0: all */
};

static int64_t listing_time(const struct listing *listing, const struct position *position) {
  return listing->by_sync ? position->sync_ms : position->sort_ms;
}

static bool is_dissolved(const struct position *position) {
  return position->conversation->group && position->conversation->group->dissolved;
}

static bool is_listed(const struct listing *listing, const struct position *position) {
  if (position->sort_ms == 0 || is_dissolved(position)) return false;
  if (listing->channel && listing->channel != position->conversation->channel) return false;
  if (listing->target.len && !view_equal(listing->target, conversation_target(position->conversation, position->user)))
    return false;
  int64_t time_ms = listing_time(listing, position);
  return listing->ascending ? time_ms > listing->start_ms : time_ms < listing->start_ms;
}

static int by_sort_time(const void *a, const void *b) {
  const struct position *const *x = a, *const *y = b;
  return ((*x)->sort_ms > (*y)->sort_ms) - ((*x)->sort_ms < (*y)->sort_ms);
}

static int by_sync_time(const void *a, const void *b) {
  const struct position *const *x = a, *const *y = b;
  return ((*x)->sync_ms > (*y)->sync_ms) - ((*x)->sync_ms < (*y)->sync_ms);
}

/* Writes the page nearest to start_ms: by sort time newest first, by sync time oldest first. */
static void list_conversations(struct query *query, const struct listing *listing) {
  uint32_t count = 0;
  for (const struct position *at = query->user->positions; at; at = at->next_of_user)
    count += is_listed(listing, at);
  const struct position **found = calloc(count + 1, sizeof(struct position *));
  if (!found) {
    reply_out_of_memory(query);
    return;
  }
  uint32_t filled = 0;
  for (const struct position *at = query->user->positions; at; at = at->next_of_user)
    if (is_listed(listing, at)) found[filled++] = at;
  qsort(found, count, sizeof(struct position *), listing->by_sync ? by_sync_time : by_sort_time);
  uint32_t shown = count < listing->limit ? count : listing->limit;
  const struct position **page = listing->ascending ? found : found + (count - shown);
  bool fine = true;
  for (uint32_t i = 0; i < shown && fine; i++)
    fine = append_conversation(query, listing->by_sync ? page[i] : page[shown - 1 - i]);
  if (fine && !emit_uint(query->reply, 2, count < listing->limit)) reply_out_of_memory(query);
  free(found);
}

static uint32_t page_limit(int64_t count) {
  return count <= 0 || count > CONVERSATION_PAGE ? CONVERSATION_PAGE : (uint32_t)count;
}

static int32_t qry_convers(struct query *query) {
  struct listing listing = {0};
  int64_t count = 0, order = 0;
  struct pb_reader reader = pb_reader_of(query->data);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (is_varint(&field, 1)) listing.start_ms = (int64_t)field.value;
    if (is_varint(&field, 2)) count = (int32_t)field.value;
    if (is_varint(&field, 3)) order = (int32_t)field.value;
    if (is_bytes(&field, 5)) listing.target = field.bytes;
    if (is_varint(&field, 6)) listing.channel = (int32_t)field.value;
  }
  if (reader.bad) return JUGGLE_MSG_PARAMETER;
  listing.ascending = order == 1;
  listing.limit = page_limit(count);
  if (listing.start_ms <= 0 && !listing.ascending) listing.start_ms = INT64_MAX;
  list_conversations(query, &listing);
  return JUGGLE_OK;
}

static int32_t sync_convers(struct query *query) {
  struct listing listing = {.by_sync = true, .ascending = true};
  int64_t count = 0;
  struct pb_reader reader = pb_reader_of(query->data);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (is_varint(&field, 1)) listing.start_ms = (int64_t)field.value;
    if (is_varint(&field, 2)) count = (int32_t)field.value;
  }
  if (reader.bad) return JUGGLE_MSG_PARAMETER;
  listing.limit = page_limit(count);
  list_conversations(query, &listing);
  return JUGGLE_OK;
}

static int32_t qry_conver(struct query *query) {
  struct naming naming = {.own_side = true};
  struct pb_reader reader = pb_reader_of(query->data);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (is_bytes(&field, 1)) naming.target = field.bytes;
    if (is_varint(&field, 2)) naming.channel = (int32_t)field.value;
    if (is_bytes(&field, 5)) naming.sub_channel = field.bytes;
  }
  if (reader.bad) return JUGGLE_MSG_PARAMETER;
  struct conversation *conversation;
  int32_t code = named(query, &naming, &conversation);
  if (code != JUGGLE_OK) return code;
  const struct position *position = conversation ? position_find(query->core, query->user, conversation) : NULL;
  bool fine = position ? write_conversation(query, query->reply, position)
                       : emit_bytes(query->reply, 1, query->user->key) && emit_bytes(query->reply, 2, naming.target) &&
                             emit_uint(query->reply, 3, (uint64_t)naming.channel);
  if (!fine) reply_out_of_memory(query);
  return JUGGLE_OK;
}

/* A repeated enum, one by one or packed: does it hold value? *any: it holds something. */
static bool enum_holds(const struct pb_field *field, int64_t value, bool *any) {
  if (field->type == PB_VARINT) {
    *any = true;
    return (int64_t)field->value == value;
  }
  bool found = false;
  uint64_t number = 0;
  int shift = 0;
  for (size_t i = 0; field->type == PB_BYTES && i < field->bytes.len; i++) {
    number |= shift < 64 ? (uint64_t)(field->bytes.data[i] & 0x7f) << shift : 0;
    shift += 7;
    if (field->bytes.data[i] & 0x80) continue;
    *any = true;
    found = found || (int64_t)number == value;
    number = 0;
    shift = 0;
  }
  return found;
}

static bool names_position(struct view simple_conversation, const struct position *position) {
  struct naming naming = {0};
  struct pb_reader reader = pb_reader_of(simple_conversation);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (is_bytes(&field, 1)) naming.target = field.bytes;
    if (is_varint(&field, 2)) naming.channel = (int32_t)field.value;
    if (is_bytes(&field, 5)) naming.sub_channel = field.bytes;
  }
  const struct conversation *conversation = position->conversation;
  return naming.channel == conversation->channel && view_equal(naming.sub_channel, conversation->sub_channel) &&
         view_equal(naming.target, conversation_target(conversation, position->user));
}

/* ConverFilter: channel types, conversations to leave out, conversations to count alone. */
static bool passes_filter(struct view filter, const struct position *position) {
  bool any_channel = false, channel_fits = false, any_included = false, included = false;
  struct pb_reader reader = pb_reader_of(filter);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (field.number == 1) channel_fits |= enum_holds(&field, position->conversation->channel, &any_channel);
    if (is_bytes(&field, 2) && names_position(field.bytes, position)) return false;
    if (!is_bytes(&field, 3)) continue;
    any_included = true;
    included = included || names_position(field.bytes, position);
  }
  return (!any_channel || channel_fits) && (!any_included || included);
}

enum { FILTER_MAX = 4096 }; /* bytes; the filter is walked once for each conversation */

static int32_t qry_total_unread_count(struct query *query) {
  struct view filter = {0};
  struct pb_reader reader = pb_reader_of(query->data);
  struct pb_field field;
  while (pb_next(&reader, &field))
    if (is_bytes(&field, 2)) filter = field.bytes;
  if (reader.bad || filter.len > FILTER_MAX) return JUGGLE_MSG_PARAMETER;
  int64_t total = 0;
  for (const struct position *at = query->user->positions; at; at = at->next_of_user)
    if (unread_count(at) > 0 && !is_dissolved(at) && passes_filter(filter, at)) total += unread_count(at);
  if (!emit_uint(query->reply, 1, (uint64_t)total)) reply_out_of_memory(query);
  return JUGGLE_OK;
}

static int32_t clear_one(struct query *query, struct view bytes) {
  struct naming naming = {.own_side = true};
  int64_t read_index = 0;
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (is_bytes(&field, 2)) naming.target = field.bytes;
    if (is_varint(&field, 3)) naming.channel = (int32_t)field.value;
    if (is_varint(&field, 7)) read_index = (int64_t)field.value;
    if (is_bytes(&field, 21)) naming.sub_channel = field.bytes;
  }
  if (reader.bad) return JUGGLE_MSG_PARAMETER;
  struct conversation *conversation;
  int32_t code = named(query, &naming, &conversation);
  struct position *position =
      code == JUGGLE_OK && conversation ? position_find(query->core, query->user, conversation) : NULL;
  if (!position) return code;
  if (read_index <= 0 || read_index > position->unread_index) read_index = position->unread_index;
  position->read_index = larger(position->read_index, read_index);
  position->sync_ms = larger(position->sync_ms, query->core->now_ms);
  position_store(query->core, position);
  return JUGGLE_OK;
}

static int32_t clear_unread(struct query *query) {
  struct pb_reader reader = pb_reader_of(query->data);
  struct pb_field field;
  uint32_t count = 0;
  while (pb_next(&reader, &field))
    if (is_bytes(&field, 1)) count++;
  if (reader.bad || count > QUERY_IDS) return JUGGLE_MSG_PARAMETER;
  int32_t code = JUGGLE_OK;
  reader = pb_reader_of(query->data);
  while (pb_next(&reader, &field) && code == JUGGLE_OK)
    if (is_bytes(&field, 1)) code = clear_one(query, field.bytes);
  return code;
}

/* ---- Users ---- */

static int32_t qry_user_info(struct query *query) {
  struct view user_id = {0};
  struct pb_reader reader = pb_reader_of(query->data);
  struct pb_field field;
  while (pb_next(&reader, &field))
    if (is_bytes(&field, 1)) user_id = field.bytes;
  if (reader.bad) return JUGGLE_MSG_PARAMETER;
  const struct user *user = user_find(query->user->app, user_id);
  if (!user || !user->registered) return JUGGLE_USER_UNKNOWN;
  if (!buf_append(query->reply, user->profile.data, user->profile.len)) reply_out_of_memory(query);
  return JUGGLE_OK;
}

static int32_t qry_online_status(struct query *query) {
  struct pb_reader reader = pb_reader_of(query->data);
  struct pb_field field;
  uint32_t count = 0;
  bool fine = true;
  while (pb_next(&reader, &field) && fine) {
    if (!is_bytes(&field, 1)) continue;
    if (++count > QUERY_IDS) return JUGGLE_MSG_PARAMETER;
    const struct user *user = user_find(query->user->app, field.bytes);
    struct buf *item = &query->core->scratch;
    item->len = 0;
    fine = emit_bytes(item, 1, field.bytes) && emit_uint(item, 2, user && user->sessions) &&
           emit_message(query->reply, 1, buf_view(item));
  }
  if (!fine) reply_out_of_memory(query);
  return reader.bad ? JUGGLE_MSG_PARAMETER : JUGGLE_OK;
}

/* ---- Chatrooms ---- */

static int32_t c_join(struct query *query) {
  return room_join(query->core, query->session, query->target, query->data, &query->time_ms);
}

static int32_t c_quit(struct query *query) {
  return room_quit(query->core, query->session, query->target);
}

static int32_t c_sync_msgs(struct query *query) {
  return room_sync(query->core, query->session, query->target, query->data, &query->unfinished);
}

/* ---- Dispatch ---- */

static const struct topic {
  const char *name;
  int32_t (*run)(struct query *query);
  bool own; /* targetId must be the client's own id */
} topics[] = {
    {"sync_msgs", sync_msgs, true},
    {"qry_hismsgs", qry_hismsgs, false},
    {"qry_hismsg_by_ids", qry_hismsg_by_ids, false},
    {"qry_convers", qry_convers, true},
    {"sync_convers", sync_convers, true},
    {"qry_conver", qry_conver, true},
    {"qry_total_unread_count", qry_total_unread_count, true},
    {"clear_unread", clear_unread, true},
    {"qry_user_info", qry_user_info, false},
    {"qry_online_status", qry_online_status, false},
    {"c_join", c_join, false},
    {"c_quit", c_quit, false},
    {"c_sync_msgs", c_sync_msgs, false},
};

static const struct topic *topic_find(struct view name) {
  for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
    if (view_is(name, topics[i].name)) return &topics[i];
  return NULL;
}

static int32_t answer(struct query *query, struct session *session, const struct request *request) {
  struct view name = request->part[0], target = request->part[1];
  if (!session) return JUGGLE_CONNECT_DEFAULT;
  if (!name.len || !target.len) return JUGGLE_TOPIC_MISSING;
  const struct topic *topic = topic_find(name);
  if (!topic) return JUGGLE_TOPIC_UNSUPPORTED;
  if (query->data.len > QUERY_BYTES) return JUGGLE_MSG_PARAMETER;
  if (topic->own && !view_equal(target, session->user->key)) return CODE_NO_PERMISSION;
  query->user = session->user;
  query->session = session;
  query->target = target;
  return topic->run(query);
}

void query_run(struct core *core, const struct request *request) {
  core->reply.len = 0;
  struct query query = {.core = core, .data = request->part[2], .reply = &core->reply};
  int32_t code = answer(&query, core_session(core, request->session), request);
  struct view data = code == JUGGLE_OK ? buf_view(&core->reply) : view_of(NULL, 0);
  struct out *out = out_stage(core, OUT_QUERY_ACK, request->session, view_of(NULL, 0), data);
  if (core->reply.cap > PAGE_BYTES) buf_free(&core->reply);
  if (!out) return;
  out->index = request->index;
  out->code = code;
  out->timestamp_ms = query.time_ms ? query.time_ms : core->now_ms;
  out->is_sync = query.is_sync;
  out->finished_sync = query.finished;
  if (query.unfinished) room_notice_again(core, query.unfinished);
}
