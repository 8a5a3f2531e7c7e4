#include "driver/driver.h"

#include <string.h>

static const struct driver *const drivers[] = {&driver_juggle, &driver_mqtt, &driver_shootout_json,
    &driver_shootout_binary, &driver_shootout_phoenix, &driver_shootout_actioncable, &driver_nats, &driver_redis,
    &driver_socketio, &driver_stomp, &driver_ricochet, NULL};

const struct driver *const *driver_all(void) {
  return drivers;
}

/* with_transport: an item "word+transport" will do too. */
static bool list_names(const char *list, const char *word, bool with_transport) {
  size_t len = strlen(word);
  for (const char *at = list; len > 0 && *at;) {
    size_t item = strcspn(at, ",");
    bool is_start = item >= len && memcmp(at, word, len) == 0;
    if (is_start && (item == len || (with_transport && at[len] == '+'))) return true;
    at += item + (at[item] == ',');
  }
  return false;
}

static bool list_has(const char *list, const char *word) {
  return list_names(list, word, false);
}

bool driver_takes(const struct driver *driver, const char *scheme) {
  return list_names(driver->schemes, scheme, true);
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
