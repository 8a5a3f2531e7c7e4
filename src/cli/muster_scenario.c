#include "cli/muster_scenario.h"

#include "cli/muster_presets.h"
#include "load/estimate.h"
#include "load/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PRESETS_MAX 64
#define NAME_MAX_BYTES 40

/* --- finding one --- */

static const struct preset *find_preset(const char *name) {
  for (const struct preset *preset = presets; preset->name; preset++) {
    if (strcmp(preset->name, name) == 0) return preset;
  }
  return NULL;
}

static bool ends_with(const char *text, const char *end) {
  size_t len = strlen(text), end_len = strlen(end);
  return len > end_len && strcmp(text + len - end_len, end) == 0;
}

bool scenario_is_named(const char *word) {
  return find_preset(word) || strchr(word, '/') || ends_with(word, ".yaml") || ends_with(word, ".yml");
}

const char *scenario_nearest(const char *word) {
  const char *names[PRESETS_MAX];
  size_t count = 0;
  for (const struct preset *preset = presets; preset->name && count < PRESETS_MAX; preset++)
    names[count++] = preset->name;
  return nearest_word(word, names, count);
}

enum status scenario_load(const char *word, struct scenario *out, struct err *err) {
  const struct preset *preset = find_preset(word);
  if (!preset) return scenario_read(word, out, err);
  char source[NAME_MAX_BYTES + 32];
  snprintf(source, sizeof source, "scenarios/%.40s.yaml", preset->name);
  return scenario_parse(view_of(preset->text, preset->len), source, out, err);
}

/* --- its keys --- */

static enum status check_name(const struct scenario *scenario, const struct scenario_entry *entry, struct err *err) {
  size_t len = strspn(entry->value, "abcdefghijklmnopqrstuvwxyz0123456789-");
  if (len > 0 && len <= NAME_MAX_BYTES && entry->value[len] == '\0') return STATUS_OK;
  return scenario_error(scenario, entry->value_place, err,
      "name: %s is no name: give 1 to %d lower-case letters, digits and dashes", scenario_quote(entry->value).text,
      NAME_MAX_BYTES);
}

/* A text of the top level that is no option. True when it was one. */
static bool take_text(const struct scenario *scenario, const struct scenario_entry *entry, struct run_arguments *out,
    enum status *status, struct err *err) {
  *status = STATUS_OK;
  if (strcmp(entry->key, "name") == 0) {
    *status = check_name(scenario, entry, err);
    out->workload.name = entry->value;
    return true;
  }
  return strcmp(entry->key, "title") == 0 || strcmp(entry->key, "description") == 0;
}

static enum status take_expected(
    const struct scenario *scenario, const struct scenario_entry *entry, struct run_arguments *out, struct err *err) {
  const struct {
    const char *key;
    uint64_t *at;
  } totals[] = {
      {"connections", &out->expected.connections},
      {"publishes", &out->expected.publishes},
      {"distributions", &out->expected.distributions},
      {"deliveries", &out->expected.deliveries},
  };
  for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
    if (strcmp(entry->key, totals[i].key) != 0) continue;
    out->expected.given = true;
    if (parse_count(entry->value, EXPECTED_MAX, totals[i].at)) return STATUS_OK;
    return scenario_error(scenario, entry->value_place, err,
        "expect.%s: %s is not a number that fits: give a whole number, as 50, 2k or 1M", entry->key,
        scenario_quote(entry->value).text);
  }
  return scenario_error(scenario, entry->key_place, err,
      "expect: unknown key %s: it knows connections, publishes, distributions and deliveries",
      scenario_quote(entry->key).text);
}

static enum status unknown_key(const struct scenario *scenario, const struct scenario_entry *entry, struct err *err) {
  size_t option = option_find(entry->key);
  struct scenario_quote key = scenario_quote(entry->key);
  const char *section = option == OPTION_NONE ? NULL : option_section(option);
  if (section && section[0]) {
    return scenario_error(scenario, entry->key_place, err, "key %s belongs to section \"%s\"", key.text, section);
  }
  if (section) return scenario_error(scenario, entry->key_place, err, "key %s belongs to the top level", key.text);
  if (option != OPTION_NONE) {
    return scenario_error(
        scenario, entry->key_place, err, "%s is given on the command line only, as --%s", key.text, entry->key);
  }
  if (entry->section[0] && !option_is_section(entry->section)) {
    return scenario_error(scenario, entry->key_place, err, "unknown section %s: docs/scenarios.md lists them",
        scenario_quote(entry->section).text);
  }
  const char *near = option_nearest(entry->key, entry->section);
  if (near) return scenario_error(scenario, entry->key_place, err, "unknown key %s: did you mean %s?", key.text, near);
  return scenario_error(scenario, entry->key_place, err, "unknown key %s: `muster help run all` lists them", key.text);
}

static enum status take_option(
    const struct scenario *scenario, const struct scenario_entry *entry, struct run_arguments *out, struct err *err) {
  size_t option = option_find(entry->key);
  const char *section = option == OPTION_NONE ? NULL : option_section(option);
  if (!section || strcmp(section, entry->section) != 0) return unknown_key(scenario, entry, err);
  char accepted[OPTION_ACCEPTED_MAX];
  if (option_set(option, entry->value, out, accepted)) return STATUS_OK;
  return scenario_error(scenario, entry->value_place, err, "%s%s%s: %s is not %s: %.250s", section,
      section[0] ? "." : "", entry->key, scenario_quote(entry->value).text, option_noun(option), accepted);
}

static enum status check_scaled(const struct scenario *scenario, const struct scenario_entry *entry, struct err *err) {
  size_t option = option_find(entry->value);
  struct scenario_quote key = scenario_quote(entry->value);
  if (option == OPTION_NONE || !option_is_scalable(option)) {
    return scenario_error(scenario, entry->value_place, err,
        "scaled: %s cannot be scaled: name keys of this file that hold a number, a rate or a time", key.text);
  }
  if (scenario_find(scenario, option_section(option), entry->value)) return STATUS_OK;
  return scenario_error(
      scenario, entry->value_place, err, "scaled: this file gives no %s that could be scaled", key.text);
}

static enum status check_line(const struct scenario *scenario, const struct scenario_entry *entry, struct err *err) {
  if (!strchr(entry->value, '\n') || strcmp(entry->key, "description") == 0) return STATUS_OK;
  return scenario_error(scenario, entry->value_place, err, "%s: a value is one line",
      scenario_quote(entry->key[0] ? entry->key : entry->section).text);
}

static enum status take(
    const struct scenario *scenario, const struct scenario_entry *entry, struct run_arguments *out, struct err *err) {
  enum status status = check_line(scenario, entry, err);
  if (status != STATUS_OK) return status;
  if (entry->section[0] == '\0' && take_text(scenario, entry, out, &status, err)) return status;
  if (strcmp(entry->section, "expect") == 0) return take_expected(scenario, entry, out, err);
  if (entry->key[0] != '\0') return take_option(scenario, entry, out, err);
  if (strcmp(entry->section, "scaled") == 0) return check_scaled(scenario, entry, err);
  return scenario_error(
      scenario, entry->value_place, err, "%s is no list: only scaled is one", scenario_quote(entry->section).text);
}

enum status scenario_apply(const struct scenario *scenario, struct run_arguments *out, struct err *err) {
  static const char *const required[] = {"name", "title", "driver"};
  for (uint32_t i = 0; i < scenario->entries; i++) {
    enum status status = take(scenario, &scenario->entry[i], out, err);
    if (status != STATUS_OK) return status;
  }
  for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
    if (scenario_find(scenario, "", required[i])) continue;
    return scenario_error(scenario, (struct scenario_place){1, 1}, err, "a scenario needs a %s", required[i]);
  }
  return STATUS_OK;
}

enum status scenario_scale(const struct scenario *scenario, struct run_arguments *out, struct err *err) {
  for (uint32_t i = 0; i < scenario->entries; i++) {
    const struct scenario_entry *entry = &scenario->entry[i];
    if (strcmp(entry->section, "scaled") != 0) continue;
    size_t option = option_find(entry->value);
    if (option_was_typed(option, out) || option_scale(option, out->scale, out)) continue;
    return err_set(err, STATUS_USAGE, "--scale %g: %s would be more than it can be", out->scale, entry->value);
  }
  return STATUS_OK;
}

static enum status check_total(
    const struct scenario *scenario, const char *key, uint64_t expected, uint64_t total, struct err *err) {
  if (expected == 0 || expected == total) return STATUS_OK;
  return scenario_error(scenario, scenario_find(scenario, "expect", key)->value_place, err,
      "expect.%s: %" PRIu64 " is said, but this file comes to %" PRIu64, key, expected, total);
}

enum status scenario_check_expected(
    const struct scenario *scenario, const struct run_arguments *plain, struct err *err) {
  const struct expected_totals *expected = &plain->expected;
  if (!expected->given) return STATUS_OK;
  struct totals totals;
  const struct driver *driver = driver_find(plain->workload.driver ? plain->workload.driver : "juggle");
  estimate_totals(&plain->workload, settings_capabilities(&plain->workload, driver), &totals);
  enum status status =
      check_total(scenario, "connections", expected->connections, workload_online(&plain->workload), err);
  if (status == STATUS_OK) status = check_total(scenario, "publishes", expected->publishes, totals.publishes, err);
  if (status == STATUS_OK) {
    status = check_total(scenario, "distributions", expected->distributions, totals.distributions, err);
  }
  if (status == STATUS_OK) status = check_total(scenario, "deliveries", expected->deliveries, totals.deliveries, err);
  return status;
}
