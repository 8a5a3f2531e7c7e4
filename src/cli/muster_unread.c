#include "cli/muster_unread.h"

#include "cli/muster_scenario.h"

#include <string.h>

static bool has(const char *list, const char *name) {
  size_t len = strlen(name);
  for (const char *at = strstr(list, name); at; at = strstr(at + 1, name)) {
    bool starts = at == list || at[-1] == ' ', ends = at[len] == '\0' || at[len] == ',';
    if (starts && ends) return true;
  }
  return false;
}

/* Variants of one protocol, as shootout-json and shootout-binary, read the same: one word for all of them. */
bool unread_by_some(const char *option, char list[DRIVERS_LIST_MAX]) {
  bool all = true;
  size_t used = 0;
  list[0] = '\0';
  for (const struct driver *const *driver = driver_all(); *driver; driver++) {
    char name[32];
    bool reads = driver_reads(*driver, option, NULL);
    all = all && reads;
    snprintf(name, sizeof name, "%.*s", (int)strcspn((*driver)->name, "-"), (*driver)->name);
    if (!reads || has(list, name)) continue;
    int written = snprintf(list + used, DRIVERS_LIST_MAX - used, "%s%s", used ? ", " : "", name);
    if (written > 0 && used + (size_t)written < DRIVERS_LIST_MAX) used += (size_t)written;
  }
  return used > 0 && !all;
}

static const char *schemes_of(const struct driver *driver, const char *option) {
  for (const struct driver_option *at = driver->options; at && at->name; at++) {
    if (strcmp(at->name, option) == 0) return at->schemes;
  }
  return NULL;
}

/* True when one of the run's URLs has a scheme with which the driver reads the option. */
static bool is_read(const struct run_arguments *a, const struct driver *driver, const char *option) {
  const char *const urls[] = {a->workload.target, a->workload.api_url, a->workload.navigator_url};
  if (!driver_reads(driver, option, NULL)) return false;
  if (!schemes_of(driver, option)) return true;
  for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
    struct url url;
    bool is_url = urls[i] && url_parse(urls[i], &url, NULL) == STATUS_OK;
    if (is_url && driver_reads(driver, option, url.scheme)) return true;
  }
  return false;
}

/* Why it has no effect, and what would give it one. */
static void say_why(char out[300], const struct run_arguments *a, const struct driver *driver, const char *option) {
  char list[DRIVERS_LIST_MAX];
  unread_by_some(option, list);
  if (!driver_reads(driver, option, NULL)) {
    snprintf(out, 300, "has no effect with driver %s, only with %s: leave it out", driver->name, list);
  } else {
    snprintf(out, 300, "has no effect with target %.80s, only with URLs of %s: leave it out, or change the target",
        a->workload.target, schemes_of(driver, option));
  }
}

static enum status refuse(
    const struct run_arguments *a, const struct driver *driver, size_t option, const char *name, struct err *err) {
  char why[300];
  say_why(why, a, driver, name);
  const char *section = option_section(option);
  const struct scenario_entry *entry = section ? scenario_find(&a->scenario, section, name) : NULL;
  if (entry && !option_was_typed(option, a)) {
    return scenario_error(&a->scenario, entry->key_place, err, "%s %s", name, why);
  }
  return err_set(err, STATUS_USAGE, "--%s %s", name, why);
}

enum status unread_check(const struct run_arguments *arguments, const struct driver *driver, struct err *err) {
  char list[DRIVERS_LIST_MAX];
  const char *name;
  for (size_t option = 0; (name = option_name(option)); option++) {
    bool set_aside = option_is_embedded(option) && arguments->workload.target;
    if (!option_is_marked(arguments->given, option) || set_aside) continue;
    if (unread_by_some(name, list) && !is_read(arguments, driver, name)) {
      return refuse(arguments, driver, option, name, err);
    }
  }
  return STATUS_OK;
}
