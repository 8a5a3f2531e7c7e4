#include "report/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void indent(struct json_writer *w) {
  fputc('\n', w->file);
  for (unsigned i = 0; i < w->depth; i++)
    fputs("  ", w->file);
}

/* The length of the UTF-8 sequence at text, or 0 when it is none (overlong forms and surrogates included). */
static size_t utf8_len(const unsigned char *text) {
  if (text[0] < 0x80) return 1;
  size_t len = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
  if (text[0] < 0xc2 || text[0] > 0xf4) return 0;
  for (size_t i = 1; i < len; i++) {
    if ((text[i] & 0xc0) != 0x80) return 0;
  }
  if (text[0] == 0xe0 && text[1] < 0xa0) return 0;
  if (text[0] == 0xed && text[1] > 0x9f) return 0;
  if (text[0] == 0xf0 && text[1] < 0x90) return 0;
  if (text[0] == 0xf4 && text[1] > 0x8f) return 0;
  return len;
}

static void quote(FILE *file, const char *text) {
  fputc('"', file);
  const unsigned char *at = (const unsigned char *)text;
  while (*at) {
    size_t len = utf8_len(at);
    if (len == 0) {
      fputs("\xef\xbf\xbd", file);
      len = 1;
    } else if (*at == '"' || *at == '\\') {
      fprintf(file, "\\%c", *at);
    } else if (*at < 0x20 || *at == 0x7f) {
      fprintf(file, "\\u%04x", *at);
    } else {
      fwrite(at, 1, len, file);
    }
    at += len;
  }
  fputc('"', file);
}

static void begin(struct json_writer *w, const char *key) {
  if (w->has_items) fputs(w->flat ? ", " : ",", w->file);
  if (w->depth && !w->flat) indent(w);
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
  if (w->has_items && !w->flat) indent(w);
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
