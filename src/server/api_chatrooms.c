#include "server/api.h"
#include "wire/juggle.h"

struct room_call {
  struct api_call *call;
  struct view room_id, name;
};

static int32_t do_create(struct core *core, void *argument) {
  const struct room_call *it = argument;
  return core_room_create(core, it->call->app_key, it->room_id, it->name);
}

static int32_t do_destroy(struct core *core, void *argument) {
  const struct room_call *it = argument;
  return core_room_destroy(core, it->call->app_key, it->room_id);
}

/* Runs fn with the chatroom of the body. */
static void with_room(struct api_call *call, int32_t (*fn)(struct core *core, void *argument)) {
  struct room_call it = {.call = call};
  it.room_id = api_text(call->body, "chat_id");
  it.name = api_text(call->body, "chat_name");
  if (it.room_id.len == 0) {
    call->code = JUGGLE_API_BAD_BODY;
    return;
  }
  api_on_core(call, fn, &it);
}

static void room_create(struct api_call *call) {
  with_room(call, do_create);
}

static void room_destroy(struct api_call *call) {
  with_room(call, do_destroy);
}

static void add_member(void *context, const struct core_room_member *member) {
  json_t *item = json_object();
  json_object_set_new(item, "member_id", api_json(member->member_id));
  json_object_set_new(item, "member_name", api_json(member->name));
  json_object_set_new(item, "added_time", json_integer(member->joined_ms));
  json_array_append_new(context, item);
}

static int32_t do_info(struct core *core, void *argument) {
  const struct room_call *it = argument;
  struct core_room room = {0};
  json_t *members = json_array();
  int32_t code = core_room_info(core, it->call->app_key, it->room_id, &room, add_member, members);
  if (code != JUGGLE_OK) {
    json_decref(members);
    return code;
  }
  json_t *data = json_object();
  json_object_set_new(data, "chat_id", api_json(room.room_id));
  json_object_set_new(data, "chat_name", api_json(room.name));
  json_object_set_new(data, "members", members);
  json_object_set_new(data, "atts", json_array());
  json_object_set_new(data, "member_count", json_integer(room.member_count));
  json_object_set_new(data, "is_mute", json_integer(0));
  it->call->data = data;
  return JUGGLE_OK;
}

static void room_info(struct api_call *call) {
  const char *room_id = rest_query(call->request, "chat_id");
  if (!room_id) {
    call->code = JUGGLE_API_NO_PARAMETER;
    return;
  }
  struct room_call it = {.call = call, .room_id = view_str(room_id)};
  api_on_core(call, do_info, &it);
}

const struct api_endpoint api_chatroom_endpoints[] = {
    {"POST", "/chatrooms/create", room_create},
    {"POST", "/chatrooms/destroy", room_destroy},
    {"GET", "/chatrooms/info", room_info},
    {NULL, NULL, NULL},
};
