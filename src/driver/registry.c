#include "driver/driver.h"

#include <string.h>

static const struct driver *const drivers[] = {&driver_juggle, &driver_mqtt, &driver_shootout_json,
    &driver_shootout_binary, &driver_shootout_phoenix, &driver_shootout_actioncable, &driver_nats, &driver_redis,
    &driver_socketio, &driver_stomp, &driver_ricochet, NULL};

const struct driver *const *driver_all(void) {
  return drivers;
}

static bool list_has(const char *list, const char *word) {
  size_t len = strlen(word);
  for (const char *at = list; *at;) {
    size_t item = strcspn(at, ",");
    if (len > 0 && item == len && memcmp(at, word, len) == 0) return true;
    at += item + (at[item] == ',');
  }
  return false;
}

bool driver_takes(const struct driver *driver, const char *scheme) {
  size_t len = strlen(scheme);
  for (const char *at = driver->schemes; len > 0 && *at;) {
    size_t item = strcspn(at, ",");
    bool is_same = item >= len && memcmp(at, scheme, len) == 0 && (item == len || at[len] == '+');
    if (is_same) return true;
    at += item + (at[item] == ',');
  }
  return false;
}

bool driver_reads(const struct driver *driver, const char *option, const char *scheme) {
  for (const struct driver_option *at = driver->options; at && at->name; at++) {
    if (strcmp(at->name, option) != 0) continue;
    if (!at->schemes || !scheme || list_has(at->schemes, scheme)) return true;
  }
  return false;
}

const struct driver *driver_find(const char *scheme_or_name) {
  for (const struct driver *const *at = drivers; *at; at++) {
    if (strcmp((*at)->name, scheme_or_name) == 0 || list_has((*at)->schemes, scheme_or_name)) return *at;
  }
  return NULL;
}
