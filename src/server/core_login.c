/* Sessions: login (section 2.2), kick rules (2.6), logout. */
#include "server/core_state.h"

#include <stdlib.h>
#include <string.h>

static const char *const known_platforms[] = {"Android", "iOS", "Web", "PC", "Harmony"};

static const char *platform_of(struct view text) {
  for (size_t i = 0; i < sizeof known_platforms / sizeof *known_platforms; i++)
    if (view_is(text, known_platforms[i])) return known_platforms[i];
  return NULL;
}

struct session *core_session(struct core *core, struct session_ref ref) {
  if (ref.gateway >= core->gateways || ref.slot >= core->sessions[ref.gateway].capacity) return NULL;
  struct session *session = core->sessions[ref.gateway].by_slot[ref.slot];
  return session && session->ref.generation == ref.generation ? session : NULL;
}

void session_forget(struct core *core, struct session *session) {
  rooms_leave(core, session);
  if (session->previous)
    session->previous->next = session->next;
  else
    session->user->sessions = session->next;
  if (session->next) session->next->previous = session->previous;
  if (!session->user->sessions) atomic_fetch_sub_explicit(&core->stats.online, 1, memory_order_relaxed);
  core->sessions[session->ref.gateway].by_slot[session->ref.slot] = NULL;
  atomic_fetch_sub_explicit(&core->stats.sessions, 1, memory_order_relaxed);
  free(session->device_id);
  free(session);
}

static bool reserve_slot(struct core *core, struct session_ref ref) {
  struct gateway_sessions *sessions = &core->sessions[ref.gateway];
  if (ref.slot < sessions->capacity) return true;
  if (ref.slot >= GATEWAY_SLOTS) return false;
  uint32_t capacity = sessions->capacity ? sessions->capacity : 256;
  while (capacity <= ref.slot)
    capacity *= 2;
  struct session **grown = realloc(sessions->by_slot, capacity * sizeof(struct session *));
  if (!grown) return false;
  memset(grown + sessions->capacity, 0, (capacity - sessions->capacity) * sizeof(struct session *));
  sessions->by_slot = grown;
  sessions->capacity = capacity;
  return true;
}

static bool is_phone(const char *platform) {
  return strcmp(platform, "Android") == 0 || strcmp(platform, "iOS") == 0;
}

static bool kicks(const char *newer, const char *older) {
  if (is_phone(newer)) return is_phone(older);
  return strcmp(newer, "PC") == 0 && strcmp(older, "PC") == 0;
}

static void kick(struct core *core, struct session *session, struct view ext) {
  struct out *out = out_stage(core, OUT_KICK, session->ref, ext, view_of(NULL, 0));
  if (out) {
    out->code = JUGGLE_KICKED;
    out->timestamp_ms = core->now_ms;
  }
  session_forget(core, session);
}

static void kick_others(struct core *core, const struct session *newer) {
  if (!kicks(newer->platform, newer->platform)) return; /* a user may have many sessions from the web */
  for (struct session *at = newer->user->sessions, *next; at; at = next) {
    next = at->next;
    if (at == newer || !kicks(newer->platform, at->platform)) continue;
    if (*newer->device_id && strcmp(at->device_id, newer->device_id) == 0) continue;
    kick(core, at, view_of(NULL, 0));
  }
}

static struct session *session_new(
    struct core *core, const struct request *request, struct user *user, const char *platform, int32_t user_type) {
  struct session_ref ref = request->session;
  struct view device = request->part[3];
  if (!reserve_slot(core, ref)) return NULL;
  struct session *session = calloc(1, sizeof *session);
  char *device_id = malloc(device.len + 1);
  if (!session || !device_id) {
    free(session);
    free(device_id);
    return NULL;
  }
  if (device.len) memcpy(device_id, device.data, device.len);
  device_id[device.len] = '\0';
  *session = (struct session){
      .next = user->sessions, .ref = ref, .user = user, .user_type = user_type, .device_id = device_id};
  memcpy(session->platform, platform, strlen(platform) + 1);
  if (user->sessions)
    user->sessions->previous = session;
  else
    atomic_fetch_add_explicit(&core->stats.online, 1, memory_order_relaxed);
  user->sessions = session;
  struct session **slot = &core->sessions[ref.gateway].by_slot[ref.slot];
  if (*slot) session_forget(core, *slot); /* its logout was lost, or the client logs in again */
  *slot = session;
  atomic_fetch_add_explicit(&core->stats.sessions, 1, memory_order_relaxed);
  return session;
}

static int32_t login(struct core *core, const struct request *request, struct user **user) {
  struct view app_key = request->part[0], token_text = request->part[1];
  const char *platform = platform_of(request->part[2]);
  if (!platform) return JUGGLE_PLATFORM_BAD;
  char token_app[sizeof(((struct juggle_token *)0)->app_key)];
  if (juggle_token_app_key(token_text, token_app, sizeof token_app, NULL) != STATUS_OK) return JUGGLE_TOKEN_BAD;
  struct app *app = app_find(core, app_key);
  if (!app) return JUGGLE_APP_UNKNOWN;
  struct juggle_token token;
  bool fine = juggle_token_read(token_text, app->info.secure_key, &token, NULL) == STATUS_OK &&
              view_is(app_key, token.app_key) && *token.user_id && strlen(token.user_id) <= ID_MAX;
  if (!fine) return JUGGLE_TOKEN_BAD;
  *user = user_get(core, app, view_str(token.user_id));
  struct session *session = *user ? session_new(core, request, *user, platform, token.user_type) : NULL;
  if (!session) return JUGGLE_CONNECT_DEFAULT;
  kick_others(core, session);
  return JUGGLE_OK;
}

void login_run(struct core *core, const struct request *request) {
  if (request->session.gateway >= core->gateways) return;
  struct user *user = NULL;
  int32_t code = login(core, request, &user);
  struct view user_id = code == JUGGLE_OK ? user->key : view_of(NULL, 0);
  struct out *out = out_stage(core, OUT_CONNECTED, request->session, user_id, view_of(NULL, 0));
  if (!out) return;
  out->code = code;
  out->timestamp_ms = core->now_ms;
  out->inbox_pending = code == JUGGLE_OK && user->pending;
}

static bool is_listed(struct view text, const struct view *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (view_equal(text, list[i])) return true;
  return false;
}

int32_t core_user_kick(struct core *core, struct view app_key, struct view user_id, const struct view *platforms,
    uint32_t platform_count, const struct view *devices, uint32_t device_count, struct view ext) {
  struct app *app = app_find(core, app_key);
  if (!app) return JUGGLE_API_NO_APP;
  struct user *user = user_find(app, user_id);
  if (!user) return JUGGLE_OK;
  for (struct session *at = user->sessions, *next; at; at = next) {
    next = at->next;
    bool all = !platform_count && !device_count;
    if (all || is_listed(view_str(at->platform), platforms, platform_count) ||
        is_listed(view_str(at->device_id), devices, device_count))
      kick(core, at, ext);
  }
  return JUGGLE_OK;
}
