/* Scenario files: a small YAML (one mapping of texts, mappings of texts and lists of texts) read into a flat list of
 * entries, each with its place, so that whoever gives them meaning can point at the line and column of an error. */
#ifndef MUSTER_LOAD_SCENARIO_H
#define MUSTER_LOAD_SCENARIO_H

#include "base/arena.h"
#include "base/err.h"
#include "base/view.h"

#include <stdint.h>

#define SCENARIO_BYTES_MAX 65536
#define SCENARIO_ENTRIES_MAX 128
#define SCENARIO_VALUE_MAX 4096

struct scenario_place {
  uint32_t line, column; /* from 1; column in characters */
};

struct scenario_entry {
  const char *section; /* "" on the top level */
  const char *key;     /* of a list's item: "" */
  const char *value;
  struct scenario_place key_place, value_place;
};

struct scenario {
  const char *source; /* as messages name it; a copy */
  struct scenario_entry *entry;
  uint32_t entries;
  struct arena arena; /* of every text */
};

/* Parses text into *out; source names it in messages. STATUS_USAGE with "source:line:column: ..." for anything that is
 * no scenario: broken YAML, NUL or other control characters, not UTF-8, too large, too deep, a key given twice,
 * anchors, aliases and tags. On an error nothing needs to be freed. */
enum status scenario_parse(struct view text, const char *source, struct scenario *out, struct err *err);

/* The same from a file; STATUS_USAGE too when it cannot be read. */
enum status scenario_read(const char *path, struct scenario *out, struct err *err);
void scenario_free(struct scenario *scenario);

/* The value of a key; NULL when it is not there. */
const struct scenario_entry *scenario_find(const struct scenario *scenario, const char *section, const char *key);

/* Fills err with "source:line:column: text" and returns STATUS_USAGE. */
enum status scenario_error(const struct scenario *scenario, struct scenario_place place, struct err *err,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* A text of the file as a message may show it: quoted, at most 40 bytes of it, without control characters. */
struct scenario_quote {
  char text[64];
};
struct scenario_quote scenario_quote(const char *text);

#endif
