/* Tenants, users, conversations and positions: finding, creating, loading. Groups are in core_groups.c. */
#include "server/core_groups.h"
#include "server/core_state.h"

#include <stdlib.h>

/* ---- Numbered arrays ---- */

bool reserve_num(void *array_of_pointers, uint32_t *capacity, uint32_t num) {
  if (num < *capacity) return true;
  if (num >= UINT32_C(1) << 30) return false;
  uint32_t wanted = *capacity ? *capacity : 64;
  while (wanted <= num)
    wanted *= 2;
  void **array;
  memcpy(&array, array_of_pointers, sizeof array);
  void **grown = realloc(array, wanted * sizeof *grown);
  if (!grown) return false;
  memset(grown + *capacity, 0, (wanted - *capacity) * sizeof *grown);
  memcpy(array_of_pointers, &grown, sizeof grown);
  *capacity = wanted;
  return true;
}

static void copy_text(char *out, size_t size, struct view text) {
  size_t len = text.len < size - 1 ? text.len : size - 1;
  if (len) memcpy(out, text.data, len);
  out[len] = '\0';
}

bool text_replace(char **text, struct view value) {
  if (!value.len) {
    free(*text);
    *text = NULL;
    return true;
  }
  char *copy = malloc(value.len + 1);
  if (!copy) return false;
  copy_text(copy, value.len + 1, value);
  free(*text);
  *text = copy;
  return true;
}

bool key_copy(struct view *out, struct view key) {
  uint8_t *copy = malloc(key.len ? key.len : 1);
  if (!copy) return false;
  if (key.len) memcpy(copy, key.data, key.len);
  *out = view_of(copy, key.len);
  return true;
}

/* ---- Apps ---- */

struct app *app_find(struct core *core, struct view app_key) {
  return table_find(&core->apps, app_key);
}

static void app_free(struct app *app) {
  if (!app) return;
  table_free(&app->users);
  table_free(&app->groups);
  free(app);
}

struct app *app_add(struct core *core, uint32_t num, const struct core_app *info) {
  struct app *app = calloc(1, sizeof *app);
  if (!app) return NULL;
  app->num = num;
  app->info = *info;
  app->key = view_str(app->info.app_key);
  table_open(&app->users);
  table_open(&app->groups);
  table_open(&app->rooms);
  if (!reserve_num((void *)&core->app_by_num, &core->app_capacity, num) ||
      !table_insert(&core->apps, (struct table_entry *)app)) {
    app_free(app);
    return NULL;
  }
  core->app_by_num[num] = app;
  if (num > core->app_count) core->app_count = num;
  return app;
}

/* ---- Users ---- */

struct user *user_find(const struct app *app, struct view user_id) {
  return table_find(&app->users, user_id);
}

static void user_free(struct user *user, struct inbox_limits *limits) {
  if (!user) return;
  while (user->positions) {
    struct position *next = user->positions->next_of_user;
    free(user->positions);
    user->positions = next;
  }
  inbox_free(&user->inbox, limits);
  inbox_free(&user->sent, limits);
  buf_free(&user->profile);
  free(user->nickname);
  free(user->portrait);
  free(user->ext_json);
  free((void *)user->key.data);
  free(user);
}

static struct user *user_add(struct core *core, struct app *app, uint32_t num, struct view user_id) {
  struct user *user = calloc(1, sizeof *user);
  if (!user) return NULL;
  user->app = app;
  user->num = num;
  if (!key_copy(&user->key, user_id) || !user_profile_build(user) ||
      !reserve_num((void *)&core->user_by_num, &core->user_capacity, num) ||
      !table_insert(&app->users, (struct table_entry *)user)) {
    user_free(user, &core->inbox_limits);
    return NULL;
  }
  core->user_by_num[num] = user;
  if (num > core->user_count) core->user_count = num;
  atomic_store_explicit(&core->stats.users, core->user_count, memory_order_relaxed);
  return user;
}

void user_store(struct core *core, const struct user *user) {
  store_put_user(core->store, &(struct store_user){.num = user->num,
                                  .app = user->app->num,
                                  .user_id = user->key,
                                  .nickname = text_view(user->nickname),
                                  .portrait = text_view(user->portrait),
                                  .ext_json = text_view(user->ext_json),
                                  .registered = user->registered,
                                  .is_admin = user->is_admin,
                                  .updated_ms = user->updated_ms});
}

struct user *user_get(struct core *core, struct app *app, struct view user_id) {
  struct user *user = user_find(app, user_id);
  if (user) return user;
  if (!user_id.len || user_id.len > ID_MAX) return NULL;
  user = user_add(core, app, core->user_count + 1, user_id);
  if (!user)
    core_out_of_memory(core);
  else
    user_store(core, user);
  return user;
}

/* ---- Conversations ---- */

static struct view conversation_key(
    uint8_t out[CONVERSATION_KEY_MAX], int32_t channel, uint32_t a, uint32_t b, struct view sub_channel) {
  memcpy(out, &channel, 4);
  memcpy(out + 4, &a, 4);
  memcpy(out + 8, &b, 4);
  if (sub_channel.len) memcpy(out + 12, sub_channel.data, sub_channel.len);
  return view_of(out, 12 + sub_channel.len);
}

/* The CRC that ids of this conversation carry: over the sorted user ids joined with ':', or over the group id. */
static uint32_t target_crc(const struct conversation *conversation) {
  if (conversation->group) return juggle_crc32(conversation->group->key);
  uint8_t text[2 * ID_MAX + 1];
  struct view a = conversation->a->key, b = conversation->b->key;
  size_t shorter = a.len < b.len ? a.len : b.len;
  int order = memcmp(a.data, b.data, shorter);
  bool swap = order > 0 || (order == 0 && a.len > b.len);
  struct view first = swap ? b : a, second = swap ? a : b;
  memcpy(text, first.data, first.len);
  text[first.len] = ':';
  memcpy(text + first.len + 1, second.data, second.len);
  return juggle_crc32(view_of(text, first.len + 1 + second.len));
}

static struct conversation *conversation_add(struct core *core, uint32_t num, int32_t channel, struct user *a,
    struct user *b, struct group *group, struct view key) {
  struct conversation *conversation = calloc(1, sizeof *conversation);
  if (!conversation) return NULL;
  *conversation = (struct conversation){
      .app = group ? group->app : a->app, .num = num, .channel = channel, .a = a, .b = b, .group = group};
  if (!key_copy(&conversation->key, key) ||
      !reserve_num((void *)&core->conversation_by_num, &core->conversation_capacity, num) ||
      !table_insert(&core->conversations_by_key, (struct table_entry *)conversation)) {
    free((void *)conversation->key.data);
    free(conversation);
    return NULL;
  }
  conversation->sub_channel = view_of(conversation->key.data + 12, key.len - 12);
  conversation->target_crc = target_crc(conversation);
  if (group && !conversation->sub_channel.len) group->conversation = conversation;
  core->conversation_by_num[num] = conversation;
  if (num > core->conversation_count) core->conversation_count = num;
  return conversation;
}

static struct conversation *conversation_new(
    struct core *core, int32_t channel, struct user *a, struct user *b, struct group *group, struct view key) {
  struct conversation *conversation = conversation_add(core, core->conversation_count + 1, channel, a, b, group, key);
  if (!conversation) {
    core_out_of_memory(core);
    return NULL;
  }
  conversation->tail_known = true;
  store_put_conversation(core->store, &(struct store_conversation){.num = conversation->num,
                                          .app = conversation->app->num,
                                          .a = group ? group->num : a->num,
                                          .b = group ? 0 : b->num,
                                          .channel = channel,
                                          .sub_channel = conversation->sub_channel});
  return conversation;
}

struct conversation *conversation_of_users(
    struct core *core, int32_t channel, struct user *a, struct user *b, struct view sub_channel, bool create) {
  if (sub_channel.len > ID_MAX) return NULL;
  if (a->num > b->num) {
    struct user *first = b;
    b = a;
    a = first;
  }
  uint8_t bytes[CONVERSATION_KEY_MAX];
  struct view key = conversation_key(bytes, channel, a->num, b->num, sub_channel);
  struct conversation *found = table_find(&core->conversations_by_key, key);
  if (found || !create) return found;
  return conversation_new(core, channel, a, b, NULL, key);
}

struct conversation *conversation_of_group(
    struct core *core, struct group *group, struct view sub_channel, bool create) {
  if (sub_channel.len > ID_MAX) return NULL;
  if (!sub_channel.len && group->conversation) return group->conversation;
  uint8_t bytes[CONVERSATION_KEY_MAX];
  struct view key = conversation_key(bytes, JUGGLE_GROUP, group->num, 0, sub_channel);
  struct conversation *found = table_find(&core->conversations_by_key, key);
  if (found || !create) return found;
  return conversation_new(core, JUGGLE_GROUP, NULL, NULL, group, key);
}

void conversation_tail(struct core *core, struct conversation *conversation) {
  if (conversation->tail_known) return;
  conversation->tail_known = true;
  int64_t seq, time_ms;
  store_conversation_tail(core->store, conversation->num, &seq, &time_ms);
  conversation->seq = seq;
  if (time_ms > conversation->time_ms) conversation->time_ms = time_ms;
}

struct user *conversation_peer(const struct conversation *conversation, const struct user *user) {
  return conversation->a == user ? conversation->b : conversation->a;
}

struct view conversation_target(const struct conversation *conversation, const struct user *user) {
  return conversation->group ? conversation->group->key : conversation_peer(conversation, user)->key;
}

/* ---- Positions ---- */

static uint64_t pair(uint32_t high, uint32_t low) {
  return (uint64_t)high << 32 | low;
}

struct position *position_find(struct core *core, struct user *user, struct conversation *conversation) {
  if (conversation->a == user && conversation->position[0]) return conversation->position[0];
  if (conversation->b == user && conversation->position[1]) return conversation->position[1];
  return number_table_find(&core->positions, pair(user->num, conversation->num));
}

struct position *position_get(struct core *core, struct user *user, struct conversation *conversation) {
  struct position *position = position_find(core, user, conversation);
  if (position) return position;
  position = calloc(1, sizeof *position);
  if (!position || !number_table_put(&core->positions, pair(user->num, conversation->num), position)) {
    free(position);
    core_out_of_memory(core);
    return NULL;
  }
  position->user = user;
  position->conversation = conversation;
  position->next_of_user = user->positions;
  user->positions = position;
  if (conversation->a == user) conversation->position[0] = position;
  if (conversation->b == user) conversation->position[1] = position;
  return position;
}

void position_touch(struct core *core, struct position *position) {
  if (position->dirty) return;
  position->dirty = true;
  position->next_dirty = NULL;
  if (core->dirty_last)
    core->dirty_last->next_dirty = position;
  else
    core->dirty_first = position;
  core->dirty_last = position;
}

void position_store(struct core *core, const struct position *position) {
  store_put_position(core->store, &(struct store_position){.user = position->user->num,
                                      .conversation = position->conversation->num,
                                      .unread_index = position->unread_index,
                                      .read_index = position->read_index,
                                      .sort_ms = position->sort_ms,
                                      .sync_ms = position->sync_ms,
                                      .last_message = position->last_message});
}

/* ---- Loading ---- */

static struct app *app_by_num(const struct core *core, uint32_t num) {
  return num && num <= core->app_count ? core->app_by_num[num] : NULL;
}

static struct user *user_by_num(const struct core *core, uint32_t num) {
  return num && num <= core->user_count ? core->user_by_num[num] : NULL;
}

static struct group *group_by_num(const struct core *core, uint32_t num) {
  return num && num <= core->group_count ? core->group_by_num[num] : NULL;
}

/* Numbers are given in turn and rows are never deleted, so a gap shows a damaged file. */
static bool load_app(void *context, const struct store_app *row) {
  struct core *core = context;
  struct core_app info;
  copy_text(info.app_key, sizeof info.app_key, row->app_key);
  copy_text(info.app_secret, sizeof info.app_secret, row->app_secret);
  copy_text(info.secure_key, sizeof info.secure_key, row->secure_key);
  copy_text(info.name, sizeof info.name, row->name);
  return row->num == core->app_count + 1 && app_add(core, row->num, &info) != NULL;
}

static bool is_id(struct view id) {
  return id.len > 0 && id.len <= ID_MAX;
}

static bool load_user(void *context, const struct store_user *row) {
  struct core *core = context;
  struct app *app = app_by_num(core, row->app);
  if (!app || row->num != core->user_count + 1 || !is_id(row->user_id)) return false;
  struct user *user = user_add(core, app, row->num, row->user_id);
  if (!user) return false;
  user->registered = row->registered;
  user->is_admin = row->is_admin;
  user->updated_ms = row->updated_ms;
  return text_replace(&user->nickname, row->nickname) && text_replace(&user->portrait, row->portrait) &&
         text_replace(&user->ext_json, row->ext_json) && user_profile_build(user);
}

static bool load_group(void *context, const struct store_group *row) {
  struct core *core = context;
  struct app *app = app_by_num(core, row->app);
  if (!app || row->num != core->group_count + 1 || !is_id(row->group_id)) return false;
  struct group *group = group_add(core, app, row->num, row->group_id, row->dissolved);
  if (!group) return false;
  group->updated_ms = row->updated_ms;
  return text_replace(&group->name, row->name) && text_replace(&group->portrait, row->portrait) &&
         group_profile_build(group);
}

static bool load_member(void *context, const struct store_member *row) {
  struct core *core = context;
  struct group *group = group_by_num(core, row->group);
  struct user *user = user_by_num(core, row->user);
  return group && user && group_join(core, group, user, row->ordinal);
}

static bool load_conversation(void *context, const struct store_conversation *row) {
  struct core *core = context;
  if (row->num != core->conversation_count + 1 || row->sub_channel.len > ID_MAX) return false;
  uint8_t bytes[CONVERSATION_KEY_MAX];
  struct view key = conversation_key(bytes, row->channel, row->a, row->b, row->sub_channel);
  if (row->channel == JUGGLE_GROUP) {
    struct group *group = group_by_num(core, row->a);
    return group && conversation_add(core, row->num, row->channel, NULL, NULL, group, key);
  }
  struct user *a = user_by_num(core, row->a), *b = user_by_num(core, row->b);
  return a && b && conversation_add(core, row->num, row->channel, a, b, NULL, key);
}

static bool load_position(void *context, const struct store_position *row) {
  struct core *core = context;
  struct user *user = user_by_num(core, row->user);
  if (!user || !row->conversation || row->conversation > core->conversation_count) return false;
  struct conversation *conversation = core->conversation_by_num[row->conversation];
  struct position *position = conversation ? position_get(core, user, conversation) : NULL;
  if (!position) return false;
  position->unread_index = row->unread_index;
  position->read_index = row->read_index;
  position->sort_ms = row->sort_ms;
  position->sync_ms = row->sync_ms;
  position->last_message = row->last_message;
  if (row->sync_ms > user->latest_ms) user->latest_ms = row->sync_ms;
  if (row->sort_ms > user->latest_ms) user->latest_ms = row->sort_ms;
  return true;
}

enum status people_load(struct core *core, struct err *err) {
  const struct store_visitor visitor = {
      .context = core,
      .app = load_app,
      .user = load_user,
      .group = load_group,
      .member = load_member,
      .conversation = load_conversation,
      .position = load_position,
  };
  return store_load(core->store, &visitor, err);
}

void people_free(struct core *core) {
  rooms_free(core);
  for (uint32_t i = 1; i <= core->conversation_count; i++) {
    if (!core->conversation_by_num[i]) continue;
    free((void *)core->conversation_by_num[i]->key.data);
    free(core->conversation_by_num[i]);
  }
  for (uint32_t i = 1; i <= core->group_count; i++)
    group_free(core->group_by_num[i]);
  for (uint32_t i = 1; i <= core->user_count; i++)
    user_free(core->user_by_num[i], &core->inbox_limits);
  for (uint32_t i = 1; i <= core->app_count; i++)
    app_free(core->app_by_num[i]);
  free(core->conversation_by_num);
  free(core->group_by_num);
  free(core->user_by_num);
  free(core->app_by_num);
  table_free(&core->apps);
  table_free(&core->conversations_by_key);
  number_table_free(&core->positions);
  number_table_free(&core->memberships);
}
