#include "report/json_writer.h"
#include "report/characters.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void indent(struct json_writer *w) {
  fputc('\n', w->file);
  for (unsigned i = 0; i < w->depth; i++)
    fputs("  ", w->file);
}

static void quote(FILE *file, const char *text) {
  fputc('"', file);
  while (*text) {
    size_t len = utf8_length(text);
    unsigned char first = (unsigned char)*text;
    if (len == 0) {
      fputs(REPLACEMENT, file);
      len = 1;
    } else if (first == '"' || first == '\\') {
      fprintf(file, "\\%c", first);
    } else if (first < 0x20 || first == 0x7f) {
      fprintf(file, "\\u%04x", first);
    } else {
      fwrite(text, 1, len, file);
    }
    text += len;
  }
  fputc('"', file);
}

static void begin(struct json_writer *w, const char *key) {
  bool one_line = w->flat || w->compact;
  if (w->has_items) fputs(one_line ? ", " : ",", w->file);
  if (w->depth && !one_line) indent(w);
  w->has_items = true;
  if (!key) return;
  quote(w->file, key);
  fputs(": ", w->file);
}

static void open_container(struct json_writer *w, const char *key, char bracket) {
  begin(w, key);
  fputc(bracket, w->file);
  w->depth++;
  w->has_items = false;
}

static void close_container(struct json_writer *w, char bracket) {
  w->depth--;
  if (w->has_items && !w->flat && !w->compact) indent(w);
  fputc(bracket, w->file);
  w->has_items = true;
  w->flat = false;
}

void json_open_object(struct json_writer *w, const char *key) {
  open_container(w, key, '{');
}

void json_close_object(struct json_writer *w) {
  close_container(w, '}');
}

void json_open_array(struct json_writer *w, const char *key) {
  open_container(w, key, '[');
}

void json_close_array(struct json_writer *w) {
  close_container(w, ']');
}

void json_open_flat_array(struct json_writer *w, const char *key) {
  open_container(w, key, '[');
  w->flat = true;
}

void json_put_text(struct json_writer *w, const char *key, const char *text) {
  if (!text) {
    json_put_null(w, key);
    return;
  }
  begin(w, key);
  quote(w->file, text);
}

void json_put_uint(struct json_writer *w, const char *key, uint64_t value) {
  begin(w, key);
  fprintf(w->file, "%" PRIu64, value);
}

void json_put_int(struct json_writer *w, const char *key, int64_t value) {
  begin(w, key);
  fprintf(w->file, "%" PRId64, value);
}

void json_put_double(struct json_writer *w, const char *key, double value) {
  if (!isfinite(value)) {
    json_put_null(w, key);
    return;
  }
  char text[40];
  snprintf(text, sizeof text, "%.15g", value);
  if (strtod(text, NULL) != value) snprintf(text, sizeof text, "%.17g", value);
  begin(w, key);
  fputs(text, w->file);
}

void json_put_bool(struct json_writer *w, const char *key, bool value) {
  begin(w, key);
  fputs(value ? "true" : "false", w->file);
}

void json_put_null(struct json_writer *w, const char *key) {
  begin(w, key);
  fputs("null", w->file);
}
