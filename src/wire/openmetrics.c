#include "wire/openmetrics.h"

#include <stdlib.h>

#define NUMBER_MAX 64

static bool is_blank(uint8_t c) {
  return c == ' ' || c == '\t';
}

static bool is_name_start(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}

static bool is_name(uint8_t c) {
  return is_name_start(c) || (c >= '0' && c <= '9');
}

static void skip(struct view *text, size_t count) {
  text->data += count;
  text->len -= count;
}

static void skip_blanks(struct view *text) {
  while (text->len && is_blank(*text->data))
    skip(text, 1);
}

static bool take_char(struct view *text, uint8_t c) {
  if (text->len == 0 || *text->data != c) return false;
  skip(text, 1);
  return true;
}

static bool take_name(struct view *text, struct view *out) {
  size_t len = 0;
  if (text->len == 0 || !is_name_start(*text->data)) return false;
  while (len < text->len && is_name(text->data[len]))
    len++;
  *out = view_of(text->data, len);
  skip(text, len);
  return true;
}

/* A text in quotes; *out is what stands between them, its escapes untouched. */
static bool take_quoted(struct view *text, struct view *out) {
  if (text->len == 0 || *text->data != '"') return false;
  for (size_t i = 1; i < text->len; i++) {
    if (text->data[i] == '\\') {
      i++;
    } else if (text->data[i] == '"') {
      *out = view_of(text->data + 1, i - 1);
      skip(text, i + 1);
      return true;
    }
  }
  return false;
}

/* name="value" and the comma behind it, if there is one. */
static bool take_label(struct view *text, struct view *name, struct view *value) {
  skip_blanks(text);
  if (!take_name(text, name)) return false;
  skip_blanks(text);
  if (!take_char(text, '=')) return false;
  skip_blanks(text);
  if (!take_quoted(text, value)) return false;
  skip_blanks(text);
  return take_char(text, ',') || text->len == 0 || *text->data == '}';
}

static bool take_labels(struct view *text, struct view *out) {
  struct view rest = *text, name, value;
  const uint8_t *start = rest.data;
  for (;;) {
    skip_blanks(&rest);
    if (rest.len && *rest.data == '}') break;
    if (!take_label(&rest, &name, &value)) return false;
  }
  *out = view_of(start, (size_t)(rest.data - start));
  skip(&rest, 1);
  *text = rest;
  return true;
}

bool openmetrics_take_series(struct view *text, struct openmetrics_series *out) {
  struct view rest = *text;
  struct openmetrics_series series = {0};
  if (!take_name(&rest, &series.name)) return false;
  struct view behind = rest;
  skip_blanks(&behind);
  if (take_char(&behind, '{')) {
    if (!take_labels(&behind, &series.labels)) return false;
    rest = behind;
  }
  *out = series;
  *text = rest;
  return true;
}

static bool has_label(const struct openmetrics_series *series, struct view name, struct view value) {
  struct view rest = series->labels, other, its;
  while (rest.len && take_label(&rest, &other, &its)) {
    if (view_equal(other, name)) return view_equal(its, value);
  }
  return false;
}

bool openmetrics_selects(const struct openmetrics_series *selector, const struct openmetrics_series *series) {
  if (!view_equal(selector->name, series->name)) return false;
  struct view rest = selector->labels, name, value;
  while (rest.len && take_label(&rest, &name, &value)) {
    if (!has_label(series, name, value)) return false;
  }
  return true;
}

/* A decimal number, NaN or an infinity, as both formats write them. */
static bool take_value(struct view *text, double *out) {
  char number[NUMBER_MAX], *end;
  size_t len = 0;
  while (len < text->len && !is_blank(text->data[len]))
    len++;
  if (len == 0 || len >= sizeof number) return false;
  memcpy(number, text->data, len);
  number[len] = '\0';
  if (memchr(number, 'x', len) || memchr(number, 'X', len) || memchr(number, '(', len)) return false;
  *out = strtod(number, &end);
  skip(text, len);
  return end == number + len;
}

/* What follows a value: nothing, a time, an exemplar. */
static bool is_tail(struct view text) {
  skip_blanks(&text);
  if (text.len == 0) return true;
  uint8_t c = *text.data;
  return c == '#' || c == '-' || c == '+' || (c >= '0' && c <= '9');
}

enum openmetrics_line openmetrics_read(struct view line, struct openmetrics_series *series, double *value) {
  if (line.len > OPENMETRICS_LINE_MAX) return OPENMETRICS_BAD;
  if (line.len && line.data[line.len - 1] == '\r') line.len--;
  if (view_is(line, "# EOF")) return OPENMETRICS_END;
  skip_blanks(&line);
  if (line.len == 0 || *line.data == '#') return OPENMETRICS_COMMENT;
  if (!openmetrics_take_series(&line, series)) return OPENMETRICS_BAD;
  if (line.len && !is_blank(*line.data) && series->labels.data == NULL) return OPENMETRICS_BAD;
  skip_blanks(&line);
  return take_value(&line, value) && is_tail(line) ? OPENMETRICS_SAMPLE : OPENMETRICS_BAD;
}
