/* What the HTTP API asks of the core, but for groups (core_groups.c), kicks (core_login.c) and sending
 * (core_publish.c). */
#include "server/core_groups.h"

#include <stdlib.h>

static void random_key(char *out, size_t len) {
  static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
  random_bytes(out, (uint32_t)len);
  for (size_t i = 0; i < len; i++)
    out[i] = alphabet[(uint8_t)out[i] & 63];
  out[len] = '\0';
}

static void put_text(char *out, size_t size, struct view text) {
  size_t len = text.len < size - 1 ? text.len : size - 1;
  if (len) memcpy(out, text.data, len);
  out[len] = '\0';
}

static bool holds_nul(struct view text) {
  return text.len && memchr(text.data, '\0', text.len);
}

int32_t core_app_create(struct core *core, struct view app_key, struct view app_secret, struct view name,
    struct core_app *out, bool *created) {
  struct app *app = app_find(core, app_key);
  *created = !app;
  if (app) {
    *out = app->info;
    return JUGGLE_OK;
  }
  struct core_app info = {0};
  if (!app_key.len || app_key.len > APP_KEY_MAX || holds_nul(app_key) || app_secret.len >= sizeof info.app_secret)
    return JUGGLE_API_BAD_PARAMETER;
  put_text(info.app_key, sizeof info.app_key, app_key);
  put_text(info.name, sizeof info.name, name);
  if (app_secret.len)
    put_text(info.app_secret, sizeof info.app_secret, app_secret);
  else
    random_key(info.app_secret, 16);
  random_key(info.secure_key, JUGGLE_SECURE_KEY_LEN);
  app = app_add(core, core->app_count + 1, &info);
  if (!app) {
    core_out_of_memory(core);
    return JUGGLE_API_TIMEOUT;
  }
  store_put_app(core->store, &(struct store_app){app->num, view_str(info.app_key), view_str(info.app_secret),
                                 view_str(info.secure_key), view_str(info.name)});
  *out = info;
  return JUGGLE_OK;
}

bool core_app_find(struct core *core, struct view app_key, struct core_app *out) {
  const struct app *app = app_find(core, app_key);
  if (app) *out = app->info;
  return app != NULL;
}

static int32_t describe(struct core *core, struct user *user, const struct core_user *info) {
  bool fine = (!info->nickname.len || text_replace(&user->nickname, info->nickname)) &&
              (!info->portrait.len || text_replace(&user->portrait, info->portrait)) &&
              (!info->ext_fields_json.len || text_replace(&user->ext_json, info->ext_fields_json));
  user->updated_ms = core->now_ms;
  if (!fine || !user_profile_build(user)) {
    core_out_of_memory(core);
    return JUGGLE_API_TIMEOUT;
  }
  user_store(core, user);
  return JUGGLE_OK;
}

int32_t core_user_register(
    struct core *core, struct view app_key, const struct core_user *user, char token[JUGGLE_TOKEN_MAX]) {
  token[0] = '\0';
  struct app *app = app_find(core, app_key);
  if (!app) return JUGGLE_API_NO_APP;
  if (holds_nul(user->user_id)) return JUGGLE_API_BAD_PARAMETER; /* its token would name another user */
  struct user *known = user_get(core, app, user->user_id);
  if (!known) return JUGGLE_API_BAD_PARAMETER;
  known->registered = true;
  known->is_admin = user->is_admin;
  int32_t code = describe(core, known, user);
  if (code != JUGGLE_OK) return code;
  struct juggle_token parts = {.time_ms = core->now_ms, .user_type = user->is_admin ? JUGGLE_ADMIN : JUGGLE_USER};
  put_text(parts.app_key, sizeof parts.app_key, app->key);
  put_text(parts.user_id, sizeof parts.user_id, known->key);
  enum status status = juggle_token_make(&parts, app->info.secure_key, token, NULL);
  return status == STATUS_OK ? JUGGLE_OK : JUGGLE_API_TIMEOUT;
}

static struct user *known_user(struct core *core, struct view app_key, struct view user_id) {
  const struct app *app = app_find(core, app_key);
  struct user *user = app ? user_find(app, user_id) : NULL;
  return user && user->registered ? user : NULL;
}

int32_t core_user_update(struct core *core, struct view app_key, const struct core_user *user) {
  struct user *known = known_user(core, app_key, user->user_id);
  return known ? describe(core, known, user) : JUGGLE_USER_UNKNOWN;
}

int32_t core_user_info(struct core *core, struct view app_key, struct view user_id, struct core_user *out) {
  const struct user *user = known_user(core, app_key, user_id);
  if (!user) return JUGGLE_USER_UNKNOWN;
  *out = (struct core_user){.user_id = user->key,
      .nickname = text_view(user->nickname),
      .portrait = text_view(user->portrait),
      .ext_fields_json = text_view(user->ext_json),
      .is_admin = user->is_admin,
      .updated_ms = user->updated_ms};
  return JUGGLE_OK;
}

bool core_user_online(struct core *core, struct view app_key, struct view user_id) {
  const struct app *app = app_find(core, app_key);
  const struct user *user = app ? user_find(app, user_id) : NULL;
  return user && user->sessions;
}

static void show(const struct message *message, const struct user *viewer,
    void (*visit)(void *context, const struct core_history_item *item), void *context) {
  struct juggle_up_msg up;
  if (!juggle_read_up_msg(view_of(message->body, message->body_len), &up)) return;
  visit(context, &(struct core_history_item){.sender_id = message->sender->key,
                     .receiver_id = conversation_target(message->conversation, viewer),
                     .msg_id = view_of(message->msg_id, JUGGLE_MSG_ID_LEN),
                     .msg_type = up.msg_type,
                     .content = up.content,
                     .channel = message->conversation->channel,
                     .msg_time_ms = message->time_ms,
                     .seq = message->seq});
}

int32_t core_history(struct core *core, struct view app_key, int32_t channel, struct view from_id,
    struct view target_id, int64_t start_ms, uint32_t count, bool oldest_first,
    void (*visit)(void *context, const struct core_history_item *item), void *context, bool *is_finished) {
  *is_finished = true;
  struct app *app = app_find(core, app_key);
  if (!app) return JUGGLE_API_NO_APP;
  struct user *viewer = user_find(app, from_id);
  struct conversation *conversation = NULL;
  if (channel == JUGGLE_GROUP) {
    struct group *group = group_find(app, target_id);
    if (group) conversation = conversation_of_group(core, group, view_of(NULL, 0), false);
  } else if (channel == JUGGLE_PRIVATE) {
    struct user *peer = user_find(app, target_id);
    if (viewer && peer) conversation = conversation_of_users(core, channel, viewer, peer, view_of(NULL, 0), false);
  } else {
    return JUGGLE_MSG_PARAMETER;
  }
  if (!conversation || !viewer) return JUGGLE_OK;
  if (start_ms <= 0) start_ms = oldest_first ? 0 : INT64_MAX;
  const struct history_query query = {.conversation = conversation,
      .viewer = viewer,
      .start_ms = start_ms,
      .limit = !count || count > HISTORY_PAGE ? HISTORY_PAGE : count,
      .oldest_first = oldest_first};
  struct history_page page;
  history_collect(core, &query, &page);
  for (uint32_t i = 0; i < page.count; i++)
    show(page.messages[i], viewer, visit, context);
  *is_finished = page.is_finished;
  history_page_free(&page);
  return JUGGLE_OK;
}
