#include "server/api.h"
#include "wire/juggle.h"

#include <stdlib.h>
#include <string.h>

struct user_call {
  struct api_call *call;
  struct core_user user;
  char token[JUGGLE_TOKEN_MAX];
};

/* The user of a register or update body; *ext is owned by the caller. False: there is no user_id. */
static bool read_user(const json_t *body, struct core_user *user, char **ext) {
  user->user_id = api_text(body, "user_id");
  user->nickname = api_text(body, "nickname");
  user->portrait = api_text(body, "user_portrait");
  user->is_admin = api_bool(body, "is_admin", false);
  const json_t *fields = json_object_get(body, "ext_fields");
  *ext = json_object_size(fields) ? json_dumps(fields, JSON_COMPACT) : NULL;
  if (*ext) user->ext_fields_json = view_str(*ext);
  return user->user_id.len > 0;
}

static int32_t do_register(struct core *core, void *argument) {
  struct user_call *it = argument;
  return core_user_register(core, it->call->app_key, &it->user, it->token);
}

static void user_register(struct api_call *call) {
  struct user_call it = {.call = call};
  char *ext;
  if (read_user(call->body, &it.user, &ext)) {
    api_on_core(call, do_register, &it);
  } else {
    call->code = JUGGLE_API_BAD_BODY;
  }
  free(ext);
  if (call->code != JUGGLE_OK) return;
  call->data = json_object();
  json_object_set_new(call->data, "user_id", api_json(it.user.user_id));
  json_object_set_new(call->data, "token", json_string(it.token));
}

static int32_t do_update(struct core *core, void *argument) {
  struct user_call *it = argument;
  return core_user_update(core, it->call->app_key, &it->user);
}

static void user_update(struct api_call *call) {
  struct user_call it = {.call = call};
  char *ext;
  if (read_user(call->body, &it.user, &ext)) {
    api_on_core(call, do_update, &it);
  } else {
    call->code = JUGGLE_API_BAD_BODY;
  }
  free(ext);
}

static int32_t do_info(struct core *core, void *argument) {
  struct user_call *it = argument;
  struct core_user user = {0};
  int32_t code = core_user_info(core, it->call->app_key, it->user.user_id, &user);
  if (code != JUGGLE_OK) return code;
  struct view ext = user.ext_fields_json;
  json_t *fields = ext.len ? json_loadb((const char *)ext.data, ext.len, 0, NULL) : NULL;
  json_t *data = json_object();
  json_object_set_new(data, "user_id", api_json(user.user_id));
  json_object_set_new(data, "nickname", api_json(user.nickname));
  json_object_set_new(data, "user_portrait", api_json(user.portrait));
  json_object_set_new(data, "ext_fields", fields ? fields : json_object());
  json_object_set_new(data, "updated_time", json_integer(user.updated_ms));
  json_object_set_new(data, "is_admin", json_false());
  it->call->data = data;
  return JUGGLE_OK;
}

static void user_info(struct api_call *call) {
  const char *user_id = rest_query(call->request, "user_id");
  if (!user_id) {
    call->code = JUGGLE_API_NO_PARAMETER;
    return;
  }
  struct user_call it = {.call = call, .user.user_id = view_str(user_id)};
  api_on_core(call, do_info, &it);
}

struct list_call {
  struct api_call *call;
  struct view *items, *devices;
  uint32_t count, device_count;
};

static int32_t do_online(struct core *core, void *argument) {
  struct list_call *it = argument;
  json_t *items = json_array();
  for (uint32_t i = 0; i < it->count; i++) {
    json_t *item = json_object();
    json_object_set_new(item, "user_id", api_json(it->items[i]));
    json_object_set_new(item, "is_online", json_boolean(core_user_online(core, it->call->app_key, it->items[i])));
    json_array_append_new(items, item);
  }
  it->call->data = json_object();
  json_object_set_new(it->call->data, "items", items);
  return JUGGLE_OK;
}

#define STATUS_IDS_MAX 10000

static void online_status(struct api_call *call) {
  struct list_call it = {.call = call};
  if (!api_texts(call->body, "user_ids", &it.items, &it.count) || it.count == 0) {
    call->code = JUGGLE_API_NO_PARAMETER;
  } else if (it.count > STATUS_IDS_MAX) {
    call->code = JUGGLE_API_BAD_PARAMETER;
  } else {
    api_on_core(call, do_online, &it);
  }
  free(it.items);
}

static int32_t do_kick(struct core *core, void *argument) {
  struct list_call *it = argument;
  const json_t *body = it->call->body;
  return core_user_kick(core, it->call->app_key, api_text(body, "user_id"), it->items, it->count, it->devices,
      it->device_count, api_text(body, "ext"));
}

static void user_kick(struct api_call *call) {
  struct list_call it = {.call = call};
  bool read = api_texts(call->body, "platforms", &it.items, &it.count) &&
              api_texts(call->body, "device_ids", &it.devices, &it.device_count);
  if (!read || api_text(call->body, "user_id").len == 0) {
    call->code = JUGGLE_API_BAD_BODY;
  } else {
    api_on_core(call, do_kick, &it);
  }
  free(it.items);
  free(it.devices);
}

/* Many users in one commit; musterd's own, the original registers one by one. */
#define BATCH_MAX 1000

struct batch_call {
  struct api_call *call;
  const json_t *items;
};

static int32_t do_register_batch(struct core *core, void *argument) {
  struct batch_call *it = argument;
  json_t *users = json_array();
  int32_t code = JUGGLE_OK;
  for (size_t i = 0; i < json_array_size(it->items) && code == JUGGLE_OK; i++) {
    const json_t *item = json_array_get(it->items, i);
    struct core_user user = {.user_id = api_text(item, "user_id"), .nickname = api_text(item, "nickname")};
    char token[JUGGLE_TOKEN_MAX];
    code = user.user_id.len ? core_user_register(core, it->call->app_key, &user, token) : JUGGLE_API_BAD_BODY;
    if (code != JUGGLE_OK) break;
    json_t *registered = json_object();
    json_object_set_new(registered, "user_id", api_json(user.user_id));
    json_object_set_new(registered, "token", json_string(token));
    json_array_append_new(users, registered);
  }
  if (code != JUGGLE_OK) {
    json_decref(users);
    return code;
  }
  it->call->data = json_object();
  json_object_set_new(it->call->data, "users", users);
  return JUGGLE_OK;
}

static void user_register_batch(struct api_call *call) {
  struct batch_call it = {.call = call, .items = json_object_get(call->body, "users")};
  size_t count = json_array_size(it.items);
  if (count == 0 || count > BATCH_MAX) {
    call->code = JUGGLE_API_BAD_BODY;
    return;
  }
  api_on_core(call, do_register_batch, &it);
}

const struct api_endpoint api_user_endpoints[] = {
    {"POST", "/users/register", user_register},
    {"POST", "/users/register/batch", user_register_batch},
    {"POST", "/users/update", user_update},
    {"GET", "/users/info", user_info},
    {"POST", "/users/onlinestatus/query", online_status},
    {"POST", "/users/kick", user_kick},
    {NULL, NULL, NULL},
};
