#include "report/json_reader.h"

#include "report/characters.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PATH_TEXT_MAX 160
#define SECONDS_MAX 1e9

struct json_node json_root(struct json_reader *reader, const struct json_t *value) {
  return (struct json_node){.reader = reader, .value = value};
}

static void format_path(char *out, size_t size, const struct json_node *node) {
  size_t len = 0;
  if (node->parent) {
    format_path(out, size, node->parent);
    len = strlen(out);
  }
  if (node->key) {
    snprintf(out + len, size - len, "%s%s", len ? "." : "", node->key);
  } else if (node->parent) {
    snprintf(out + len, size - len, "[%zu]", node->index);
  }
}

void json_refuse(const struct json_node *at, const char *format, ...) {
  struct json_reader *reader = at->reader;
  if (reader->status != STATUS_OK) return;
  char path[PATH_TEXT_MAX] = "", what[200];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  format_path(path, sizeof path, at);
  reader->status = err_set(
      reader->err, STATUS_USAGE, "%.140s: %s%s%s", reader->file, path[0] ? path : "", path[0] ? ": " : "", what);
}

static struct json_node find(const struct json_node *object, const char *key) {
  struct json_node node = {object->reader, NULL, object, key, 0};
  if (object->reader->status == STATUS_OK && object->value) node.value = json_object_get(object->value, key);
  return node;
}

struct json_node json_member(const struct json_node *object, const char *key) {
  struct json_node node = find(object, key);
  if (!node.value) json_refuse(&node, "is missing: the file is no whole report of muster");
  return node;
}

static void refuse_type(struct json_node *node, const char *expected) {
  json_refuse(node, "%s is expected here", expected);
  node->value = NULL;
}

struct json_node json_object_at(const struct json_node *object, const char *key) {
  struct json_node node = json_member(object, key);
  if (node.value && !json_is_object(node.value)) refuse_type(&node, "an object");
  return node;
}

struct json_node json_optional(const struct json_node *object, const char *key) {
  return find(object, key);
}

struct json_node json_nullable_object_at(const struct json_node *object, const char *key) {
  struct json_node node = find(object, key);
  if (json_is_null(node.value)) node.value = NULL;
  if (node.value && !json_is_object(node.value)) refuse_type(&node, "an object or null");
  return node;
}

struct json_node json_array_at(const struct json_node *object, const char *key, size_t most) {
  struct json_node node = json_member(object, key);
  if (node.value && !json_is_array(node.value)) refuse_type(&node, "a list");
  if (node.value && json_array_size(node.value) > most) {
    json_refuse(&node, "has %zu entries, more than the %zu that a report may have", json_array_size(node.value), most);
    node.value = NULL;
  }
  return node;
}

size_t json_length(const struct json_node *array) {
  return json_array_size(array->value); /* of anything else 0 */
}

struct json_node json_item(const struct json_node *array, size_t index) {
  struct json_node node = {array->reader, NULL, array, NULL, index};
  if (array->reader->status == STATUS_OK) node.value = json_array_get(array->value, index);
  return node;
}

bool json_is_nothing(const struct json_node *node) {
  return !node->value || json_is_null(node->value);
}

uint64_t json_uint_of(const struct json_node *node, uint64_t most) {
  return (uint64_t)json_int_of(node, 0, most > INT64_MAX ? INT64_MAX : (int64_t)most);
}

int64_t json_int_of(const struct json_node *node, int64_t least, int64_t most) {
  if (!node->value) return 0;
  if (json_is_integer(node->value)) {
    json_int_t value = json_integer_value(node->value);
    if (value >= least && value <= most) return value;
  }
  json_refuse(node, "a whole number from %lld to %lld is expected here", (long long)least, (long long)most);
  return 0;
}

double json_double_of(const struct json_node *node) {
  if (!node->value) return 0;
  if (json_is_number(node->value)) {
    double value = json_number_value(node->value);
    if (value >= 0 && value <= JSON_DOUBLE_MAX) return value;
  }
  json_refuse(node, "a number from 0 to %g is expected here", JSON_DOUBLE_MAX);
  return 0;
}

double json_signed_of(const struct json_node *node) {
  if (json_is_nothing(node)) return NAN;
  double value = json_number_value(node->value);
  if (json_is_number(node->value)) return value; /* jansson takes finite ones only */
  json_refuse(node, "a number or null is expected here");
  return 0;
}

bool json_bool_of(const struct json_node *node) {
  if (!node->value) return false;
  if (!json_is_boolean(node->value)) json_refuse(node, "true or false is expected here");
  return json_is_true(node->value);
}

static const char *plain_text(const struct json_node *node) {
  if (!node->value) return "";
  if (json_is_string(node->value)) return json_string_value(node->value);
  json_refuse(node, "a text is expected here");
  return "";
}

const char *json_text_of(const struct json_node *node) {
  const char *text = plain_text(node);
  const char *kept = arena_text(node->reader->texts, text, strlen(text));
  if (kept) return kept;
  if (node->reader->status == STATUS_OK) {
    node->reader->status = err_set(node->reader->err, STATUS_MEMORY, "%s: out of memory", node->reader->file);
  }
  return "";
}

static void list_names(char *out, size_t size, const char *const *names, size_t count) {
  size_t len = 0;
  for (size_t i = 0; i < count && len < size; i++)
    len += (size_t)snprintf(out + len, size - len, "%s%s", i ? ", " : "", names[i]);
}

size_t json_choice_of(const struct json_node *node, const char *const *names, size_t count) {
  const char *text = plain_text(node);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(text, names[i]) == 0) return i;
  }
  char list[160];
  list_names(list, sizeof list, names, count);
  json_refuse(node, "one of %s is expected here", list);
  return 0;
}

/* Cuts at the start of a character, never within one. */
static void copy_chars(char *out, size_t size, const char *text) {
  size_t len = 0;
  while (text[len]) {
    size_t step = utf8_length(text + len);
    if (step == 0) step = 1;
    if (len + step >= size) break;
    len += step;
  }
  memcpy(out, text, len);
  out[len] = '\0';
}

void json_chars_of(const struct json_node *node, char *out, size_t size) {
  copy_chars(out, size, plain_text(node));
}

static uint64_t nanoseconds_of(const struct json_node *node) {
  double seconds = json_double_of(node);
  if (seconds > SECONDS_MAX) json_refuse(node, "at most %g seconds are expected here", SECONDS_MAX);
  return seconds > SECONDS_MAX ? 0 : (uint64_t)llround(seconds * 1e9);
}

static void store(const struct json_node *node, const struct json_field *field, void *to) {
  switch (field->type) {
  case JSON_FIELD_U32:
    *(uint32_t *)to = (uint32_t)json_uint_of(node, UINT32_MAX);
    break;
  case JSON_FIELD_U64:
    *(uint64_t *)to = json_uint_of(node, INT64_MAX);
    break;
  case JSON_FIELD_I32:
    *(int32_t *)to = (int32_t)json_int_of(node, INT32_MIN, INT32_MAX);
    break;
  case JSON_FIELD_I64:
    *(int64_t *)to = json_int_of(node, INT64_MIN, INT64_MAX);
    break;
  case JSON_FIELD_DOUBLE:
    *(double *)to = json_double_of(node);
    break;
  case JSON_FIELD_SECONDS:
    *(uint64_t *)to = nanoseconds_of(node);
    break;
  case JSON_FIELD_BOOL:
    *(bool *)to = json_bool_of(node);
    break;
  case JSON_FIELD_TEXT:
    *(const char **)to = json_text_of(node);
    break;
  case JSON_FIELD_CHARS:
    json_chars_of(node, to, field->size);
    break;
  }
}

void json_read_fields(const struct json_node *object, const struct json_field *fields, size_t count, void *out) {
  for (size_t i = 0; i < count; i++) {
    struct json_node node = json_member(object, fields[i].key);
    if (!node.value || (fields[i].nullable && json_is_null(node.value))) continue;
    store(&node, &fields[i], (char *)out + fields[i].offset);
  }
}
