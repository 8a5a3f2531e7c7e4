#include "server/api.h"
#include "wire/juggle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX 1000
#define HISTORY_PAGE 20
#define HISTORY_PAGE_MAX 50

struct send_call {
  struct api_call *call;
  struct core_send send;
  struct view *targets, *to_users;
  uint32_t count, to_users_count;
};

static int32_t do_send(struct core *core, void *argument) {
  struct send_call *it = argument;
  json_t *sent = json_array();
  int32_t first_error = JUGGLE_OK;
  for (uint32_t i = 0; i < it->count; i++) {
    char msg_id[24] = "";
    it->send.target_id = it->targets[i];
    int32_t code = core_send(core, it->call->app_key, &it->send, msg_id);
    if (code != JUGGLE_OK) {
      if (first_error == JUGGLE_OK) first_error = code;
      continue;
    }
    json_t *item = json_object();
    json_object_set_new(item, "target_id", api_json(it->targets[i]));
    json_object_set_new(item, "msg_id", json_string(msg_id));
    json_array_append_new(sent, item);
  }
  it->call->data = sent;
  return json_array_size(sent) ? JUGGLE_OK : first_error;
}

static void add_target(struct send_call *it, struct view target) {
  if (target.len == 0) return;
  for (uint32_t i = 0; i < it->count; i++) {
    if (view_equal(it->targets[i], target)) return;
  }
  it->targets[it->count++] = target;
}

/* receiver_id, target_id and target_ids without repetition. False: too many, or out of memory. */
static bool read_targets(struct send_call *it) {
  const json_t *body = it->call->body;
  struct view *more;
  uint32_t count;
  if (!api_texts(body, "target_ids", &more, &count)) return false;
  it->targets = count <= TARGETS_MAX ? calloc(count + 2, sizeof *it->targets) : NULL;
  if (!it->targets) {
    free(more);
    return false;
  }
  add_target(it, api_text(body, "receiver_id"));
  add_target(it, api_text(body, "target_id"));
  for (uint32_t i = 0; i < count; i++)
    add_target(it, more[i]);
  free(more);
  return true;
}

static int32_t read_flags(const json_t *body) {
  int32_t flags = 0;
  if (api_bool(body, "is_storage", true)) flags |= JUGGLE_FLAG_STORE;
  if (api_bool(body, "is_count", true)) flags |= JUGGLE_FLAG_COUNT;
  if (api_bool(body, "is_cmd", false)) flags |= JUGGLE_FLAG_COMMAND;
  if (api_bool(body, "is_state", false)) flags |= JUGGLE_FLAG_STATE;
  return flags;
}

static void send_message(struct api_call *call, int32_t channel) {
  const json_t *body = call->body;
  struct send_call it = {.call = call};
  it.send = (struct core_send){
      .sender_id = api_text(body, "sender_id"),
      .msg_type = api_text(body, "msg_type"),
      .content = api_text(body, "msg_content"),
      .channel = channel,
      .flags = read_flags(body),
      .is_notify_sender = channel != JUGGLE_SYSTEM && api_bool(body, "is_notify_sender", true),
  };
  bool read = read_targets(&it);
  if (read && channel == JUGGLE_GROUP) read = api_texts(body, "to_user_ids", &it.to_users, &it.to_users_count);
  it.send.to_users = it.to_users;
  it.send.to_users_count = it.to_users_count;
  bool whole = it.count && it.send.sender_id.len && it.send.msg_type.len && it.send.content.len;
  if (!read || !whole) {
    call->code = JUGGLE_API_BAD_BODY;
  } else {
    api_on_core(call, do_send, &it);
  }
  free(it.targets);
  free(it.to_users);
}

static void send_private(struct api_call *call) {
  send_message(call, JUGGLE_PRIVATE);
}

static void send_group(struct api_call *call) {
  send_message(call, JUGGLE_GROUP);
}

static void send_system(struct api_call *call) {
  send_message(call, JUGGLE_SYSTEM);
}

struct history_call {
  struct api_call *call;
  const char *from_id, *target_id;
  int64_t channel, start_ms;
  uint32_t count;
  bool oldest_first, is_finished;
  json_t *msgs;
};

static void add_history(void *context, const struct core_history_item *item) {
  json_t *msg = json_object();
  json_object_set_new(msg, "sender_id", api_json(item->sender_id));
  json_object_set_new(msg, "target_id", json_string(""));
  json_object_set_new(msg, "receiver_id", api_json(item->receiver_id));
  json_object_set_new(msg, "channel_type", json_integer(item->channel));
  json_object_set_new(msg, "msg_id", api_json(item->msg_id));
  json_object_set_new(msg, "msg_time", json_integer(item->msg_time_ms));
  json_object_set_new(msg, "msg_type", api_json(item->msg_type));
  json_t *content = api_json(item->content);
  json_object_set_new(msg, "msg_content", content ? content : json_string(""));
  json_array_append_new(context, msg);
}

static int32_t do_history(struct core *core, void *argument) {
  struct history_call *it = argument;
  return core_history(core, it->call->app_key, (int32_t)it->channel, view_str(it->from_id), view_str(it->target_id),
      it->start_ms, it->count, it->oldest_first, add_history, it->msgs, &it->is_finished);
}

/* A whole decimal number. */
static bool read_integer(const char *text, int64_t *out) {
  if (!text) return false;
  char *end;
  errno = 0;
  *out = strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0';
}

static void history(struct api_call *call) {
  const struct rest_request *request = call->request;
  const char *from_id = rest_query(request, "from_id"), *target_id = rest_query(request, "target_id");
  struct history_call it = {.call = call, .from_id = from_id ? from_id : "", .target_id = target_id ? target_id : ""};
  bool whole = read_integer(rest_query(request, "channel_type"), &it.channel) &&
               read_integer(rest_query(request, "start"), &it.start_ms);
  if (!whole || (it.channel != JUGGLE_PRIVATE && it.channel != JUGGLE_GROUP)) {
    call->code = JUGGLE_MSG_PARAMETER;
    return;
  }
  int64_t count, order;
  it.count = read_integer(rest_query(request, "count"), &count) && count >= 1 && count <= HISTORY_PAGE_MAX
                 ? (uint32_t)count
                 : HISTORY_PAGE;
  it.oldest_first = read_integer(rest_query(request, "order"), &order) && order == 1;
  it.msgs = json_array();
  api_on_core(call, do_history, &it);
  if (call->code != JUGGLE_OK) {
    json_decref(it.msgs);
    return;
  }
  call->data = json_object();
  json_object_set_new(call->data, "msgs", it.msgs);
  json_object_set_new(call->data, "is_finished", json_boolean(it.is_finished));
}

const struct api_endpoint api_message_endpoints[] = {
    {"POST", "/messages/private/send", send_private},
    {"POST", "/messages/group/send", send_group},
    {"POST", "/messages/system/send", send_system},
    {"GET", "/hismsgs/query", history},
    {NULL, NULL, NULL},
};
