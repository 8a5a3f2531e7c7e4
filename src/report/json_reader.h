/* Reading JSON documents of muster: a value with the path that leads to it, so that an error names the file, the key
 * and what was expected there. The first failure stays: later reads return zeros and keep quiet, so that a caller
 * checks once at the end. Keys that nobody asks for are passed over. */
#ifndef MUSTER_REPORT_JSON_READER_H
#define MUSTER_REPORT_JSON_READER_H

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_t;

struct json_reader {
  const char *file;    /* for errors */
  struct arena *texts; /* where texts go that outlive the JSON */
  struct err *err;
  enum status status;
};

/* A value in its document. It points to its parent, which must stay where it is. */
struct json_node {
  struct json_reader *reader;
  const struct json_t *value; /* NULL once the reader has failed */
  const struct json_node *parent;
  const char *key; /* NULL: index counts, or the root */
  size_t index;
};

struct json_node json_root(struct json_reader *reader, const struct json_t *value);
/* Notes a failure at a place, "FILE: verdict.reasons[3]: ...". */
void json_refuse(const struct json_node *at, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A member that must be there, of any type. */
struct json_node json_member(const struct json_node *object, const char *key);
/* One that may be missing, and gives a NULL value then. */
struct json_node json_optional(const struct json_node *object, const char *key);
/* Members of one type; a member that may be null too, or missing, gives a NULL value then. */
struct json_node json_object_at(const struct json_node *object, const char *key);
struct json_node json_nullable_object_at(const struct json_node *object, const char *key);
struct json_node json_array_at(const struct json_node *object, const char *key, size_t most);
size_t json_length(const struct json_node *array);
struct json_node json_item(const struct json_node *array, size_t index);
bool json_is_nothing(const struct json_node *node); /* null, or failed */

uint64_t json_uint_of(const struct json_node *node, uint64_t most);
int64_t json_int_of(const struct json_node *node, int64_t least, int64_t most);
double json_double_of(const struct json_node *node); /* 0 to JSON_DOUBLE_MAX */
double json_signed_of(const struct json_node *node); /* of null NaN */
bool json_bool_of(const struct json_node *node);
const char *json_text_of(const struct json_node *node);                   /* kept in texts */
void json_chars_of(const struct json_node *node, char *out, size_t size); /* as JSON_FIELD_CHARS */
/* The index of its text among names. */
size_t json_choice_of(const struct json_node *node, const char *const *names, size_t count);

#define JSON_DOUBLE_MAX 1e18

/* Members of an object into fields of a struct. */
enum json_type {
  JSON_FIELD_U32,
  JSON_FIELD_U64,
  JSON_FIELD_I32,
  JSON_FIELD_I64,
  JSON_FIELD_DOUBLE,
  JSON_FIELD_SECONDS, /* into uint64_t nanoseconds */
  JSON_FIELD_BOOL,
  JSON_FIELD_TEXT,  /* into const char * */
  JSON_FIELD_CHARS, /* into a char array; what does not fit is cut off at a character */
};

struct json_field {
  const char *key;
  enum json_type type;
  size_t offset;
  size_t size;   /* of JSON_FIELD_CHARS */
  bool nullable; /* null leaves the field as it is */
};
#define JSON_FIELD(type, s, member) #member, JSON_FIELD_##type, offsetof(s, member), sizeof(((s *)0)->member), false
#define JSON_FIELD_AS(key, type, s, member) key, JSON_FIELD_##type, offsetof(s, member), sizeof(((s *)0)->member), false
#define JSON_FIELD_OR_NULL(key, type, s, member)                                                                       \
  key, JSON_FIELD_##type, offsetof(s, member), sizeof(((s *)0)->member), true

void json_read_fields(const struct json_node *object, const struct json_field *fields, size_t count, void *out);

#endif
