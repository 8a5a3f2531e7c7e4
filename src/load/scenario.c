#include "load/scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#define QUOTED_MAX 40

/* Where the reader is: the levels are few and known, so a state is enough. */
enum level {
  LEVEL_START,   /* before the mapping */
  LEVEL_TOP,     /* in it */
  LEVEL_SECTION, /* in a mapping of it */
  LEVEL_LIST,    /* in a list of it */
  LEVEL_END,     /* behind it */
};

struct reader {
  struct scenario *scenario;
  struct err *err;
  enum level level;
  const char *section; /* of LEVEL_SECTION and LEVEL_LIST */
  const char *key;     /* waits for its value; NULL: a key comes next */
  struct scenario_place key_place, section_place;
  uint32_t section_entries;
};

struct scenario_quote scenario_quote(const char *text) {
  struct scenario_quote quote;
  size_t len = strlen(text), shown = len < QUOTED_MAX ? len : QUOTED_MAX, at = 0;
  while (shown > 0 && shown < len && ((unsigned char)text[shown] & 0xc0) == 0x80)
    shown--;
  quote.text[at++] = '"';
  for (size_t i = 0; i < shown; i++) {
    unsigned char c = (unsigned char)text[i];
    bool is_c1 = i + 1 < shown && c == 0xc2 && (unsigned char)text[i + 1] < 0xa0;
    if (is_c1) i++;
    quote.text[at++] = c < 0x20 || c == 0x7f || is_c1 ? '?' : (char)c;
  }
  snprintf(quote.text + at, sizeof quote.text - at, "%s\"", shown < len ? "..." : "");
  return quote;
}

enum status scenario_error(
    const struct scenario *scenario, struct scenario_place place, struct err *err, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return err_set(
      err, STATUS_USAGE, "%.100s:%" PRIu32 ":%" PRIu32 ": %s", scenario->source, place.line, place.column, text);
}

static struct scenario_place place_of(yaml_mark_t mark) {
  return (struct scenario_place){(uint32_t)mark.line + 1, (uint32_t)mark.column + 1};
}

static struct scenario_place place_of_offset(struct view text, size_t offset) {
  struct scenario_place place = {1, 1};
  for (size_t i = 0; i < offset && i < text.len; i++) {
    if (text.data[i] == '\n') {
      place.line++;
      place.column = 1;
    } else if ((text.data[i] & 0xc0) != 0x80) {
      place.column++;
    }
  }
  return place;
}

/* --- what the events mean --- */

static enum status refuse(const struct reader *reader, yaml_mark_t mark, const char *text) {
  return scenario_error(reader->scenario, place_of(mark), reader->err, "%s", text);
}

static bool is_nothing(const yaml_event_t *event) {
  const char *text = (const char *)event->data.scalar.value;
  if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return false;
  return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0;
}

/* Block texts keep their line breaks; every other control character is somebody's trick. */
static bool is_clean(const char *text, size_t len) {
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    bool is_c1 = c == 0xc2 && i + 1 < len && (unsigned char)text[i + 1] < 0xa0;
    if ((c < 0x20 && c != '\n') || c == 0x7f || is_c1) return false;
  }
  return true;
}

static enum status take_text(struct reader *reader, const yaml_event_t *event, const char **out) {
  const char *text = (const char *)event->data.scalar.value;
  size_t len = event->data.scalar.length;
  if (len > SCENARIO_VALUE_MAX) return refuse(reader, event->start_mark, "a text of more than 4096 bytes");
  if (!is_clean(text, len)) return refuse(reader, event->start_mark, "control characters have no place in a scenario");
  *out = arena_text(&reader->scenario->arena, text, len);
  if (*out) return STATUS_OK;
  return err_set(reader->err, STATUS_MEMORY, "out of memory for the scenario");
}

/* A key is given once, and so is a section. */
static enum status check_once(
    const struct reader *reader, const char *section, const char *key, struct scenario_place place) {
  const struct scenario *scenario = reader->scenario;
  bool top = section[0] == '\0';
  for (uint32_t i = 0; i < scenario->entries; i++) {
    const struct scenario_entry *entry = &scenario->entry[i];
    bool same = strcmp(entry->section, section) == 0 && strcmp(entry->key, key) == 0;
    bool same_section = top && strcmp(entry->section, key) == 0;
    if (!same && !same_section) continue;
    return scenario_error(scenario, place, reader->err, "%s is given twice: also in line %" PRIu32,
        scenario_quote(key).text, entry->key_place.line);
  }
  return STATUS_OK;
}

static enum status add_entry(struct reader *reader, const char *value, struct scenario_place place) {
  struct scenario *scenario = reader->scenario;
  if (scenario->entries == SCENARIO_ENTRIES_MAX) {
    return scenario_error(scenario, place, reader->err, "more than %d keys", SCENARIO_ENTRIES_MAX);
  }
  bool top = reader->level == LEVEL_TOP;
  scenario->entry[scenario->entries++] = (struct scenario_entry){
      .section = top ? "" : reader->section,
      .key = reader->level == LEVEL_LIST ? "" : reader->key,
      .value = value,
      .key_place = reader->level == LEVEL_LIST ? place : reader->key_place,
      .value_place = place,
  };
  reader->section_entries++;
  return STATUS_OK;
}

static enum status on_scalar(struct reader *reader, const yaml_event_t *event) {
  struct scenario_place place = place_of(event->start_mark);
  const char *text = "";
  if (reader->level == LEVEL_START) {
    return refuse(reader, event->start_mark, "a scenario is a mapping of keys: see docs/scenarios.md");
  }
  enum status status = take_text(reader, event, &text);
  if (status != STATUS_OK) return status;
  bool is_value = reader->key || reader->level == LEVEL_LIST;
  if (is_value) {
    if (is_nothing(event)) {
      return scenario_error(reader->scenario, place, reader->err, "%s holds nothing: give a value or leave it out",
          scenario_quote(reader->key ? reader->key : reader->section).text);
    }
    status = add_entry(reader, text, place);
    reader->key = NULL;
    return status;
  }
  if (text[0] == '\0') return refuse(reader, event->start_mark, "a key without a name");
  reader->key = text;
  reader->key_place = place;
  return check_once(reader, reader->level == LEVEL_TOP ? "" : reader->section, text, place);
}

static enum status on_open(struct reader *reader, const yaml_event_t *event, enum level inner) {
  if (reader->level == LEVEL_START && inner == LEVEL_SECTION) {
    reader->level = LEVEL_TOP;
    return STATUS_OK;
  }
  if (reader->level != LEVEL_TOP) {
    return refuse(reader, event->start_mark,
        reader->level == LEVEL_START ? "a scenario is a mapping of keys: see docs/scenarios.md"
                                     : "too deep: a section or list holds plain values only");
  }
  if (!reader->key) return refuse(reader, event->start_mark, "a key must be a plain word");
  reader->section = reader->key;
  reader->section_place = reader->key_place;
  reader->section_entries = 0;
  reader->key = NULL;
  reader->level = inner;
  return STATUS_OK;
}

static enum status on_close(struct reader *reader) {
  if (reader->level == LEVEL_TOP) {
    reader->level = LEVEL_END;
    return STATUS_OK;
  }
  reader->level = LEVEL_TOP;
  if (reader->section_entries > 0) return STATUS_OK;
  return scenario_error(reader->scenario, reader->section_place, reader->err, "%s is empty: leave it out",
      scenario_quote(reader->section).text);
}

static bool has_anchor_or_tag(const yaml_event_t *event) {
  switch (event->type) {
  case YAML_SCALAR_EVENT:
    return event->data.scalar.anchor || event->data.scalar.tag;
  case YAML_SEQUENCE_START_EVENT:
    return event->data.sequence_start.anchor || event->data.sequence_start.tag;
  case YAML_MAPPING_START_EVENT:
    return event->data.mapping_start.anchor || event->data.mapping_start.tag;
  default:
    return event->type == YAML_ALIAS_EVENT;
  }
}

static enum status on_event(struct reader *reader, const yaml_event_t *event) {
  if (has_anchor_or_tag(event)) {
    return refuse(reader, event->start_mark, "anchors, aliases and tags have no place in a scenario");
  }
  switch (event->type) {
  case YAML_DOCUMENT_START_EVENT:
    if (reader->level == LEVEL_START) return STATUS_OK;
    return refuse(reader, event->start_mark, "a second document: one scenario to a file");
  case YAML_SCALAR_EVENT:
    return on_scalar(reader, event);
  case YAML_MAPPING_START_EVENT:
    return on_open(reader, event, LEVEL_SECTION);
  case YAML_SEQUENCE_START_EVENT:
    return on_open(reader, event, LEVEL_LIST);
  case YAML_MAPPING_END_EVENT:
  case YAML_SEQUENCE_END_EVENT:
    return on_close(reader);
  default:
    return STATUS_OK;
  }
}

/* --- the loop --- */

static enum status broken(const struct reader *reader, const yaml_parser_t *parser, struct view text) {
  const char *problem = parser->problem ? parser->problem : "it cannot be read";
  if (parser->error == YAML_MEMORY_ERROR) {
    return err_set(reader->err, STATUS_MEMORY, "out of memory for the scenario");
  }
  struct scenario_place place = parser->error == YAML_READER_ERROR ? place_of_offset(text, parser->problem_offset)
                                                                   : place_of(parser->problem_mark);
  return scenario_error(reader->scenario, place, reader->err, "no YAML: %s%s%s", problem, parser->context ? " " : "",
      parser->context ? parser->context : "");
}

static enum status read_events(struct reader *reader, yaml_parser_t *parser, struct view text) {
  enum status status = STATUS_OK;
  bool over = false;
  while (status == STATUS_OK && !over) {
    yaml_event_t event;
    if (!yaml_parser_parse(parser, &event)) return broken(reader, parser, text);
    status = on_event(reader, &event);
    over = event.type == YAML_STREAM_END_EVENT;
    yaml_event_delete(&event);
  }
  if (status != STATUS_OK || reader->level == LEVEL_END) return status;
  return scenario_error(reader->scenario, (struct scenario_place){1, 1}, reader->err, "an empty file: no scenario");
}

static enum status check_bytes(const struct scenario *scenario, struct view text, struct err *err) {
  if (text.len > SCENARIO_BYTES_MAX) {
    return err_set(
        err, STATUS_USAGE, "%.100s: more than %d bytes: that is no scenario", scenario->source, SCENARIO_BYTES_MAX);
  }
  const uint8_t *nul = text.len ? memchr(text.data, 0, text.len) : NULL;
  if (!nul) return STATUS_OK;
  return scenario_error(
      scenario, place_of_offset(text, (size_t)(nul - text.data)), err, "a NUL byte: that is no text file");
}

static enum status parse(struct scenario *scenario, struct view text, struct err *err) {
  enum status status = check_bytes(scenario, text, err);
  if (status != STATUS_OK) return status;
  struct reader reader = {.scenario = scenario, .err = err};
  yaml_parser_t parser;
  if (!yaml_parser_initialize(&parser)) return err_set(err, STATUS_MEMORY, "out of memory for the scenario");
  yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&parser, text.data ? text.data : (const uint8_t *)"", text.len);
  status = read_events(&reader, &parser, text);
  yaml_parser_delete(&parser);
  return status;
}

enum status scenario_parse(struct view text, const char *source, struct scenario *out, struct err *err) {
  *out = (struct scenario){.source = source};
  const char *copy = arena_text(&out->arena, source, strlen(source));
  out->entry = arena_alloc(&out->arena, SCENARIO_ENTRIES_MAX * sizeof *out->entry);
  enum status status = STATUS_OK;
  if (!copy || !out->entry) {
    status = err_set(err, STATUS_MEMORY, "out of memory for the scenario");
  } else {
    out->source = copy;
    status = parse(out, text, err);
  }
  if (status != STATUS_OK) scenario_free(out);
  return status;
}

static enum status read_whole(int fd, const char *path, uint8_t *buffer, size_t room, size_t *len, struct err *err) {
  *len = 0;
  while (*len < room) {
    ssize_t got = read(fd, buffer + *len, room - *len);
    if (got == 0) return STATUS_OK;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return err_set(err, STATUS_USAGE, "cannot read %.300s: %s", path, strerror(errno));
    *len += (size_t)got;
  }
  return STATUS_OK;
}

enum status scenario_read(const char *path, struct scenario *out, struct err *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return err_set(err, STATUS_USAGE, "cannot open %.300s: %s", path, strerror(errno));
  size_t len = 0, room = SCENARIO_BYTES_MAX + 1; /* one more tells whether there is too much */
  uint8_t *buffer = malloc(room);
  enum status status = buffer ? read_whole(fd, path, buffer, room, &len, err)
                              : err_set(err, STATUS_MEMORY, "out of memory for the scenario");
  close(fd);
  if (status == STATUS_OK) status = scenario_parse(view_of(buffer, len), path, out, err);
  free(buffer);
  return status;
}

void scenario_free(struct scenario *scenario) {
  arena_free(&scenario->arena);
  *scenario = (struct scenario){0};
}

const struct scenario_entry *scenario_find(const struct scenario *scenario, const char *section, const char *key) {
  for (uint32_t i = 0; i < scenario->entries; i++) {
    const struct scenario_entry *entry = &scenario->entry[i];
    if (strcmp(entry->section, section) == 0 && strcmp(entry->key, key) == 0) return entry;
  }
  return NULL;
}
