#include "cli/muster_words.h"

#include "cli/muster_options.h"

#include <stdio.h>
#include <string.h>

#define NAMES_MAX 16

void word_help(const struct word_option *option) {
  char left[64];
  snprintf(left, sizeof left, "--%s%s%s", option->name, option->value ? " " : "", option->value ? option->value : "");
  printf("  %-28s %s\n", left, option->help);
}

bool word_is_option(const char *word) {
  return word[0] == '-' && word[1] && strcmp(word, "--") != 0;
}

static const char *name_of(const char *word) {
  return word + (word[1] == '-' ? 2 : 1);
}

bool word_is_help(const char *word) {
  return strcmp(word, "-h") == 0 || (word_is_option(word) && strcmp(name_of(word), "help") == 0);
}

bool word_names(const char *word, const struct word_option *option) {
  if (!word_is_option(word)) return false;
  size_t len = strcspn(name_of(word), "=");
  return strlen(option->name) == len && memcmp(name_of(word), option->name, len) == 0;
}

enum status word_value(const struct word_option *option, int argc, char **argv, int *at, char **out, struct err *err) {
  char *equals = strchr(argv[*at], '=');
  *out = NULL;
  if (!option->value) {
    return equals ? err_set(err, STATUS_USAGE, "--%s takes no value", option->name) : STATUS_OK;
  }
  *out = equals ? equals + 1 : *at + 1 < argc ? argv[++*at] : NULL;
  if (*out && **out) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "--%s needs a value: --%s %s", option->name, option->name, option->value);
}

enum status word_unknown(
    const char *word, const struct word_option *options, size_t count, const char *command, struct err *err) {
  const char *names[NAMES_MAX], *name = name_of(word);
  char typed[41];
  snprintf(typed, sizeof typed, "%.*s", (int)strcspn(name, "="), name);
  for (size_t i = 0; i < count && i < NAMES_MAX; i++)
    names[i] = options[i].name;
  const char *near = nearest_word(typed, names, count < NAMES_MAX ? count : NAMES_MAX);
  if (near) return err_set(err, STATUS_USAGE, "unknown option %.60s: did you mean --%s?", word, near);
  return err_set(err, STATUS_USAGE, "unknown option %.60s: `muster help %s` lists them", word, command);
}
