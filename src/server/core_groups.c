#include "server/core_groups.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct group *group_find(const struct app *app, struct view group_id) {
  return table_find(&app->groups, group_id);
}

void group_free(struct group *group) {
  if (!group) return;
  free(group->members);
  buf_free(&group->profile);
  free(group->name);
  free(group->portrait);
  free((void *)group->key.data);
  free(group);
}

struct group *group_add(struct core *core, struct app *app, uint32_t num, struct view group_id, bool dissolved) {
  struct group *group = calloc(1, sizeof *group);
  if (!group) return NULL;
  group->app = app;
  group->num = num;
  group->dissolved = dissolved;
  group->next_ordinal = 1;
  if (!key_copy(&group->key, group_id) || !group_profile_build(group) ||
      !reserve_num((void *)&core->group_by_num, &core->group_capacity, num) ||
      (!dissolved && !table_insert(&app->groups, (struct table_entry *)group))) {
    group_free(group);
    return NULL;
  }
  core->group_by_num[num] = group;
  if (num > core->group_count) core->group_count = num;
  return group;
}

static uint64_t membership_key(const struct group *group, const struct user *user) {
  return (uint64_t)group->num << 32 | user->num;
}

/* A membership is the member's slot + 1, kept where the table keeps pointers. */
static bool remember_slot(struct core *core, const struct group *group, uint32_t slot) {
  uint64_t key = membership_key(group, group->members[slot].user);
  return number_table_put(&core->memberships, key, (void *)(uintptr_t)(slot + 1));
}

struct member *member_find(struct core *core, struct group *group, struct user *user) {
  uintptr_t slot = (uintptr_t)number_table_find(&core->memberships, membership_key(group, user));
  return slot ? &group->members[slot - 1] : NULL;
}

bool group_join(struct core *core, struct group *group, struct user *user, int64_t ordinal) {
  if (group->slots == group->members_capacity) {
    uint32_t capacity = group->members_capacity ? group->members_capacity * 2 : 8;
    struct member *grown = realloc(group->members, capacity * sizeof *grown);
    if (!grown) return false;
    group->members = grown;
    group->members_capacity = capacity;
  }
  group->members[group->slots] = (struct member){.user = user, .ordinal = ordinal};
  if (!remember_slot(core, group, group->slots)) return false;
  group->slots++;
  group->member_count++;
  if (ordinal >= group->next_ordinal) group->next_ordinal = ordinal + 1;
  return true;
}

/* Closes the gaps that members who left have made. */
static void compact(struct core *core, struct group *group) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < group->slots; i++) {
    if (!group->members[i].user) continue;
    group->members[kept] = group->members[i];
    if (kept != i && !remember_slot(core, group, kept)) core_out_of_memory(core);
    kept++;
  }
  group->slots = kept;
}

static void forget_member(struct core *core, struct group *group, struct member *member) {
  number_table_remove(&core->memberships, membership_key(group, member->user));
  store_remove_member(core->store, group->num, member->user->num);
  member->user = NULL;
  group->member_count--;
}

static void leave(struct core *core, struct group *group, struct user *user) {
  struct member *member = member_find(core, group, user);
  if (!member) return;
  forget_member(core, group, member);
  if (group->slots > 2 * group->member_count + 8) compact(core, group);
}

static void group_store(struct core *core, const struct group *group) {
  store_put_group(core->store, &(struct store_group){.num = group->num,
                                   .app = group->app->num,
                                   .group_id = group->key,
                                   .name = text_view(group->name),
                                   .portrait = text_view(group->portrait),
                                   .dissolved = group->dissolved,
                                   .updated_ms = group->updated_ms});
}

static struct group *group_of(struct core *core, struct view app_key, struct view group_id) {
  struct app *app = app_find(core, app_key);
  return app ? group_find(app, group_id) : NULL;
}

static bool group_describe(struct core *core, struct group *group, const struct core_group *info) {
  bool fine = (!info->name.len || text_replace(&group->name, info->name)) &&
              (!info->portrait.len || text_replace(&group->portrait, info->portrait));
  group->updated_ms = core->now_ms;
  if (!fine || !group_profile_build(group)) {
    core_out_of_memory(core);
    return false;
  }
  group_store(core, group);
  return true;
}

/* All or none. Who is a member already, or named twice, is passed over. */
static int32_t join_all(struct core *core, struct group *group, const struct view *members, uint32_t count) {
  uint64_t mark = ++core->publish_serial;
  uint32_t joining = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!members[i].len || members[i].len > ID_MAX) return JUGGLE_API_BAD_PARAMETER;
    struct user *user = user_find(group->app, members[i]);
    if (user && (member_find(core, group, user) || user->publish_mark == mark)) continue;
    if (user) user->publish_mark = mark;
    joining++;
  }
  if (group->member_count + joining > GROUP_MAX) return JUGGLE_GROUP_FULL;
  for (uint32_t i = 0; i < count; i++) {
    struct user *user = user_get(core, group->app, members[i]);
    if (!user) return JUGGLE_API_BAD_PARAMETER;
    if (member_find(core, group, user)) continue;
    int64_t ordinal = group->next_ordinal;
    if (!group_join(core, group, user, ordinal)) {
      core_out_of_memory(core);
      return JUGGLE_API_TIMEOUT;
    }
    store_put_member(core->store, &(struct store_member){group->num, user->num, ordinal});
  }
  return JUGGLE_OK;
}

int32_t core_group_add(struct core *core, struct view app_key, const struct core_group *group,
    const struct view *members, uint32_t count) {
  struct app *app = app_find(core, app_key);
  if (!app) return JUGGLE_API_NO_APP;
  if (!group->group_id.len) return JUGGLE_API_NO_PARAMETER;
  if (group->group_id.len > ID_MAX) return JUGGLE_API_BAD_PARAMETER;
  struct group *known = group_find(app, group->group_id);
  if (known) return join_all(core, known, members, count);
  if (!group->name.len) return JUGGLE_API_NO_PARAMETER;
  known = group_add(core, app, core->group_count + 1, group->group_id, false);
  if (!known) {
    core_out_of_memory(core);
    return JUGGLE_API_TIMEOUT;
  }
  return group_describe(core, known, group) ? join_all(core, known, members, count) : JUGGLE_API_TIMEOUT;
}

int32_t core_group_update(struct core *core, struct view app_key, const struct core_group *group) {
  struct group *known = group_of(core, app_key, group->group_id);
  if (!known) return JUGGLE_GROUP_UNKNOWN;
  return group_describe(core, known, group) ? JUGGLE_OK : JUGGLE_API_TIMEOUT;
}

int32_t core_group_remove_members(
    struct core *core, struct view app_key, struct view group_id, const struct view *members, uint32_t count) {
  struct group *group = group_of(core, app_key, group_id);
  if (!group) return JUGGLE_GROUP_UNKNOWN;
  for (uint32_t i = 0; i < count; i++) {
    struct user *user = user_find(group->app, members[i]);
    if (user) leave(core, group, user);
  }
  return JUGGLE_OK;
}

int32_t core_group_dissolve(struct core *core, struct view app_key, struct view group_id) {
  struct group *group = group_of(core, app_key, group_id);
  if (!group) return JUGGLE_GROUP_UNKNOWN;
  /* The record stays for the conversations that point at it; a new group of this id is another group. */
  for (uint32_t i = 0; i < group->slots; i++)
    if (group->members[i].user) forget_member(core, group, &group->members[i]);
  group->slots = 0;
  table_remove(&group->app->groups, group->key);
  group->dissolved = true;
  group->updated_ms = core->now_ms;
  group_store(core, group);
  return JUGGLE_OK;
}

int32_t core_group_info(struct core *core, struct view app_key, struct view group_id, struct core_group *out) {
  const struct group *group = group_of(core, app_key, group_id);
  if (!group) return JUGGLE_GROUP_UNKNOWN;
  *out = (struct core_group){.group_id = group->key,
      .name = text_view(group->name),
      .portrait = text_view(group->portrait),
      .updated_ms = group->updated_ms,
      .member_count = group->member_count};
  return JUGGLE_OK;
}

static uint32_t first_behind(const struct group *group, int64_t ordinal) {
  uint32_t low = 0, high = group->slots;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (group->members[middle].ordinal > ordinal)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

int32_t core_group_members(struct core *core, struct view app_key, struct view group_id, uint32_t limit,
    const char *offset, void (*visit)(void *context, struct view member), void *context, char *next_offset) {
  const struct group *group = group_of(core, app_key, group_id);
  next_offset[0] = '\0';
  if (!group) return JUGGLE_GROUP_UNKNOWN;
  char *end = NULL;
  int64_t behind = offset && *offset ? strtoll(offset, &end, 10) : 0;
  if (end && *end) return JUGGLE_API_BAD_PARAMETER;
  uint32_t shown = 0;
  for (uint32_t i = first_behind(group, behind); i < group->slots; i++) {
    const struct member *member = &group->members[i];
    if (!member->user) continue;
    if (shown == limit) {
      snprintf(next_offset, 32, "%" PRId64, behind);
      break;
    }
    visit(context, member->user->key);
    behind = member->ordinal;
    shown++;
  }
  return JUGGLE_OK;
}
