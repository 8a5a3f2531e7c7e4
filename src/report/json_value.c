/* Values of one document put into another. */
#include "report/json_parts.h"

static void write_object(struct json_writer *w, const char *key, const json_t *object) {
  const char *name;
  json_t *value;
  json_open_object(w, key);
  json_object_foreach((json_t *)(uintptr_t)object, name, value) report_json_value(w, name, value);
  json_close_object(w);
}

static void write_array(struct json_writer *w, const char *key, const json_t *array) {
  size_t i;
  json_t *value;
  json_open_array(w, key);
  json_array_foreach(array, i, value) report_json_value(w, NULL, value);
  json_close_array(w);
}

void report_json_value(struct json_writer *w, const char *key, const json_t *value) {
  switch (value ? json_typeof(value) : JSON_NULL) {
  case JSON_OBJECT:
    write_object(w, key, value);
    break;
  case JSON_ARRAY:
    write_array(w, key, value);
    break;
  case JSON_STRING:
    json_put_text(w, key, json_string_value(value));
    break;
  case JSON_INTEGER:
    json_put_int(w, key, json_integer_value(value));
    break;
  case JSON_REAL:
    json_put_double(w, key, json_real_value(value));
    break;
  case JSON_TRUE:
  case JSON_FALSE:
    json_put_bool(w, key, json_is_true(value));
    break;
  case JSON_NULL:
    json_put_null(w, key);
    break;
  }
}
