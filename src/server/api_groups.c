#include "server/api.h"
#include "wire/juggle.h"

#include <stdlib.h>
#include <string.h>

#define MEMBERS_PAGE_MAX 100

struct group_call {
  struct api_call *call;
  struct core_group group;
  struct view *members;
  uint32_t count, limit;
  const char *offset;
  char next_offset[64];
  json_t *items;
};

typedef int32_t group_function(struct core *core, void *argument);

static int32_t do_add(struct core *core, void *argument) {
  struct group_call *it = argument;
  return core_group_add(core, it->call->app_key, &it->group, it->members, it->count);
}

static int32_t do_update(struct core *core, void *argument) {
  struct group_call *it = argument;
  return core_group_update(core, it->call->app_key, &it->group);
}

static int32_t do_remove(struct core *core, void *argument) {
  struct group_call *it = argument;
  return core_group_remove_members(core, it->call->app_key, it->group.group_id, it->members, it->count);
}

static int32_t do_dissolve(struct core *core, void *argument) {
  struct group_call *it = argument;
  return core_group_dissolve(core, it->call->app_key, it->group.group_id);
}

/* Runs fn with the group and the members of the body. */
static void with_group(struct api_call *call, group_function *fn) {
  struct group_call it = {.call = call};
  it.group.group_id = api_text(call->body, "group_id");
  it.group.name = api_text(call->body, "group_name");
  it.group.portrait = api_text(call->body, "group_portrait");
  if (it.group.group_id.len == 0 || !api_texts(call->body, "member_ids", &it.members, &it.count)) {
    call->code = JUGGLE_API_BAD_BODY;
  } else {
    api_on_core(call, fn, &it);
  }
  free(it.members);
}

static void group_add(struct api_call *call) {
  with_group(call, do_add);
}

static void group_update(struct api_call *call) {
  with_group(call, do_update);
}

static void group_remove(struct api_call *call) {
  with_group(call, do_remove);
}

static void group_dissolve(struct api_call *call) {
  with_group(call, do_dissolve);
}

static int32_t do_info(struct core *core, void *argument) {
  struct group_call *it = argument;
  struct core_group group = {0};
  int32_t code = core_group_info(core, it->call->app_key, it->group.group_id, &group);
  if (code != JUGGLE_OK) return code;
  json_t *data = json_object();
  json_object_set_new(data, "group_id", api_json(group.group_id));
  json_object_set_new(data, "group_name", api_json(group.name));
  json_object_set_new(data, "group_portrait", api_json(group.portrait));
  json_object_set_new(data, "is_mute", json_integer(0));
  json_object_set_new(data, "updated_time", json_integer(group.updated_ms));
  json_object_set_new(data, "ext_fields", json_object());
  json_object_set_new(data, "settings", json_null());
  json_object_set_new(data, "global_conver_tags", json_array());
  it->call->data = data;
  return JUGGLE_OK;
}

static void group_info(struct api_call *call) {
  const char *group_id = rest_query(call->request, "group_id");
  if (!group_id) {
    call->code = JUGGLE_API_NO_PARAMETER;
    return;
  }
  struct group_call it = {.call = call, .group.group_id = view_str(group_id)};
  api_on_core(call, do_info, &it);
}

static void add_member(void *context, struct view member) {
  json_t *item = json_object();
  json_object_set_new(item, "member_id", api_json(member));
  json_object_set_new(item, "is_mute", json_integer(0));
  json_object_set_new(item, "is_allow", json_integer(0));
  json_object_set_new(item, "grp_display_name", json_string(""));
  json_object_set_new(item, "ext_fields", json_object());
  json_array_append_new(context, item);
}

static int32_t do_members(struct core *core, void *argument) {
  struct group_call *it = argument;
  return core_group_members(
      core, it->call->app_key, it->group.group_id, it->limit, it->offset, add_member, it->items, it->next_offset);
}

static uint32_t page_limit(const struct rest_request *request) {
  const char *text = rest_query(request, "limit");
  long limit = text ? strtol(text, NULL, 10) : MEMBERS_PAGE_MAX;
  return limit < 1 || limit > MEMBERS_PAGE_MAX ? MEMBERS_PAGE_MAX : (uint32_t)limit;
}

static void group_members(struct api_call *call) {
  const char *group_id = rest_query(call->request, "group_id"), *offset = rest_query(call->request, "offset");
  if (!group_id) {
    call->code = JUGGLE_API_NO_PARAMETER;
    return;
  }
  struct group_call it = {
      .call = call,
      .group.group_id = view_str(group_id),
      .limit = page_limit(call->request),
      .offset = offset ? offset : "",
      .items = json_array(),
  };
  api_on_core(call, do_members, &it);
  if (call->code != JUGGLE_OK) {
    json_decref(it.items);
    return;
  }
  call->data = json_object();
  json_object_set_new(call->data, "items", it.items);
  json_object_set_new(call->data, "offset", json_string(it.next_offset));
}

/* The members among the asked ids. */
struct filter {
  const struct group_call *it;
  json_t *items;
};

static void add_if_asked(void *context, struct view member) {
  struct filter *filter = context;
  for (uint32_t i = 0; i < filter->it->count; i++) {
    if (!view_equal(filter->it->members[i], member)) continue;
    add_member(filter->items, member);
    return;
  }
}

static int32_t do_by_ids(struct core *core, void *argument) {
  struct group_call *it = argument;
  struct filter filter = {it, it->items};
  return core_group_members(
      core, it->call->app_key, it->group.group_id, UINT32_MAX, "", add_if_asked, &filter, it->next_offset);
}

static void group_members_by_ids(struct api_call *call) {
  struct group_call it = {.call = call, .items = json_array()};
  it.group.group_id = api_text(call->body, "group_id");
  bool read = api_texts(call->body, "member_ids", &it.members, &it.count);
  if (!read || it.group.group_id.len == 0 || it.count == 0 || it.count > MEMBERS_PAGE_MAX) {
    call->code = JUGGLE_API_BAD_BODY;
  } else {
    api_on_core(call, do_by_ids, &it);
  }
  free(it.members);
  if (call->code != JUGGLE_OK) {
    json_decref(it.items);
    return;
  }
  call->data = json_object();
  json_object_set_new(call->data, "items", it.items);
}

const struct api_endpoint api_group_endpoints[] = {
    {"POST", "/groups/add", group_add},
    {"POST", "/groups/members/add", group_add},
    {"POST", "/groups/members/del", group_remove},
    {"GET", "/groups/members/query", group_members},
    {"POST", "/groups/members/querybyids", group_members_by_ids},
    {"POST", "/groups/del", group_dissolve},
    {"POST", "/groups/update", group_update},
    {"GET", "/groups/info", group_info},
    {NULL, NULL, NULL},
};
