#include "server/tenants.h"

#include "wire/juggle.h"

#include <string.h>

void tenants_init(struct tenants *tenants, struct core *core) {
  *tenants = (struct tenants){.core = core};
  pthread_mutex_init(&tenants->lock, NULL);
}

void tenants_free(struct tenants *tenants) {
  pthread_mutex_destroy(&tenants->lock);
}

static bool cached(struct tenants *tenants, const char *app_key, struct core_app *out) {
  uint32_t filled = tenants->count < TENANTS_MAX ? tenants->count : TENANTS_MAX;
  for (uint32_t i = 0; i < filled; i++) {
    if (strcmp(tenants->app[i].app_key, app_key) != 0) continue;
    *out = tenants->app[i];
    return true;
  }
  return false;
}

struct lookup {
  const char *app_key;
  struct core_app *out;
};

static int32_t look_up(struct core *core, void *argument) {
  struct lookup *lookup = argument;
  return core_app_find(core, view_str(lookup->app_key), lookup->out) ? JUGGLE_OK : JUGGLE_API_NO_APP;
}

int32_t tenants_find(struct tenants *tenants, const char *app_key, struct core_app *out) {
  pthread_mutex_lock(&tenants->lock);
  bool found = cached(tenants, app_key, out);
  pthread_mutex_unlock(&tenants->lock);
  if (found) return JUGGLE_OK;
  int32_t code;
  if (core_call(tenants->core, look_up, &(struct lookup){app_key, out}, &code) != STATUS_OK) return JUGGLE_API_TIMEOUT;
  if (code != JUGGLE_OK) return code;
  struct core_app other;
  pthread_mutex_lock(&tenants->lock);
  if (!cached(tenants, app_key, &other)) tenants->app[tenants->count++ % TENANTS_MAX] = *out;
  pthread_mutex_unlock(&tenants->lock);
  return JUGGLE_OK;
}
