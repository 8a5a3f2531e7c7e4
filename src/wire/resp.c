#include "wire/resp.h"

#include "base/put.h"

/* One part as it stands on the wire. */
struct part {
  uint8_t mark;
  struct view line; /* behind the mark, without CRLF */
  int64_t count;    /* of strings with a length and of aggregates; -1: null */
  struct view text; /* of strings with a length */
  size_t size;      /* of mark, line and string; an aggregate's elements are parts of their own */
};

static bool is_digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

static bool is_one_of(uint8_t c, const char *all) {
  return c != '\0' && strchr(all, c);
}

static bool read_integer(struct view text, int64_t *out) {
  bool negative = text.len > 0 && text.data[0] == '-';
  size_t at = negative || (text.len > 0 && text.data[0] == '+');
  uint64_t value = 0;
  if (at == text.len || text.len - at > 19) return false;
  for (; at < text.len; at++) {
    if (!is_digit(text.data[at])) return false;
    value = value * 10 + (text.data[at] - '0');
  }
  if (value > (uint64_t)INT64_MAX + negative) return false;
  *out = negative ? (int64_t)(0 - value) : (int64_t)value;
  return true;
}

/* A length or a count: digits only, or -1 where RESP2 writes null so. */
static bool read_count(struct view text, int64_t max, bool may_be_null, int64_t *out) {
  if (may_be_null && view_is(text, "-1")) {
    *out = -1;
    return true;
  }
  if (text.len == 0 || !is_digit(text.data[0])) return false;
  return read_integer(text, out) && *out <= max;
}

static enum resp_result read_line(const uint8_t *data, size_t len, struct view *out) {
  size_t looked = len < RESP_LINE_MAX ? len : RESP_LINE_MAX;
  const uint8_t *end = memchr(data, '\r', looked);
  if (!end) return len >= RESP_LINE_MAX ? RESP_BAD : RESP_PARTIAL;
  size_t at = (size_t)(end - data);
  if (at + 1 == len) return RESP_PARTIAL;
  if (end[1] != '\n') return RESP_BAD;
  *out = view_of(data, at);
  return RESP_COMPLETE;
}

static bool has_newline(struct view line) {
  return line.len > 0 && memchr(line.data, '\n', line.len);
}

static bool is_number_text(struct view line) {
  if (line.len == 0) return false;
  for (size_t i = 0; i < line.len; i++) {
    if (!is_digit(line.data[i]) && !is_one_of(line.data[i], "+-.eEinfa")) return false;
  }
  return true;
}

static bool line_is_good(struct part *part) {
  int64_t ignored;
  switch (part->mark) {
  case '+':
  case '-':
    return !has_newline(part->line);
  case ':':
    return read_integer(part->line, &ignored);
  case '(':
  case ',':
    return is_number_text(part->line);
  case '#':
    return view_is(part->line, "t") || view_is(part->line, "f");
  case '_':
    return part->line.len == 0;
  default:
    return false;
  }
}

static enum resp_result read_string(const uint8_t *data, size_t len, uint32_t bulk_max, struct part *out) {
  if (!read_count(out->line, bulk_max, out->mark == '$', &out->count)) return RESP_BAD;
  if (out->count < 0) return RESP_COMPLETE;
  size_t text_len = (size_t)out->count;
  if (len - out->size < text_len + 2) return RESP_PARTIAL;
  out->text = view_of(data + out->size, text_len);
  const uint8_t *end = data + out->size + text_len;
  if (end[0] != '\r' || end[1] != '\n') return RESP_BAD;
  if (out->mark == '=' && (text_len < 4 || out->text.data[3] != ':')) return RESP_BAD;
  out->size += text_len + 2;
  return RESP_COMPLETE;
}

static enum resp_result read_part(const uint8_t *data, size_t len, uint32_t bulk_max, struct part *out) {
  if (len == 0) return RESP_PARTIAL;
  *out = (struct part){.mark = data[0]};
  enum resp_result result = read_line(data + 1, len - 1, &out->line);
  if (result != RESP_COMPLETE) return is_one_of(out->mark, "+-:$*_,#(!=%~>|") ? result : RESP_BAD;
  out->size = out->line.len + 3;
  switch (out->mark) {
  case '$':
  case '!':
  case '=':
    return read_string(data, len, bulk_max, out);
  case '*':
    return read_count(out->line, RESP_ELEMENTS_MAX, true, &out->count) ? RESP_COMPLETE : RESP_BAD;
  case '~':
  case '>':
    return read_count(out->line, RESP_ELEMENTS_MAX, false, &out->count) ? RESP_COMPLETE : RESP_BAD;
  case '%':
  case '|':
    if (!read_count(out->line, RESP_ELEMENTS_MAX / 2, false, &out->count)) return RESP_BAD;
    out->count *= 2;
    return RESP_COMPLETE;
  default:
    return line_is_good(out) ? RESP_COMPLETE : RESP_BAD;
  }
}

static bool is_aggregate(const struct part *part) {
  return is_one_of(part->mark, "*~>%|") && part->count >= 0;
}

enum resp_result resp_measure(const uint8_t *data, size_t len, uint32_t bulk_max, size_t *size) {
  uint32_t open[RESP_DEPTH_MAX + 1] = {1}; /* parts that each level still lacks */
  uint32_t depth = 0, elements = 0;
  size_t at = 0;
  *size = 0;
  for (;;) {
    while (open[depth] == 0) {
      if (depth == 0) {
        *size = at;
        return RESP_COMPLETE;
      }
      depth--;
    }
    struct part part;
    enum resp_result result = read_part(data + at, len - at, bulk_max, &part);
    if (result != RESP_COMPLETE) return result;
    at += part.size;
    if (part.mark != '|') open[depth]--; /* an attribute is no element: its value follows */
    if (++elements > RESP_ELEMENTS_MAX) return RESP_BAD;
    if (!is_aggregate(&part)) continue;
    if (depth == RESP_DEPTH_MAX) return RESP_BAD;
    open[++depth] = (uint32_t)part.count;
  }
}

static void skip_elements(struct view *rest, uint64_t count) {
  struct part part;
  for (; count > 0; count--) {
    if (read_part(rest->data, rest->len, UINT32_MAX, &part) != RESP_COMPLETE) {
      rest->len = 0;
      return;
    }
    *rest = view_of(rest->data + part.size, rest->len - part.size);
    if (is_aggregate(&part)) count += (uint64_t)part.count;
    if (part.mark == '|') count++;
  }
}

static enum resp_type type_of(const struct part *part) {
  switch (part->mark) {
  case '-':
  case '!':
    return RESP_ERROR;
  case ':':
    return RESP_INTEGER;
  case '(':
  case ',':
    return RESP_OTHER;
  case '#':
    return RESP_BOOLEAN;
  case '_':
    return RESP_NULL;
  case '%':
    return RESP_MAP;
  case '>':
    return RESP_PUSH;
  case '*':
  case '~':
    return part->count < 0 ? RESP_NULL : RESP_ARRAY;
  case '$':
  case '=':
    return part->count < 0 ? RESP_NULL : RESP_STRING;
  default:
    return RESP_STRING;
  }
}

/* A verbatim text begins with its format: "txt:". */
static struct view text_of(const struct part *part) {
  if (part->mark == '=' && part->count >= 0) return view_of(part->text.data + 4, part->text.len - 4);
  return is_one_of(part->mark, "!$=") ? part->text : part->line;
}

static void fill_value(const struct part *part, struct resp_value *out) {
  *out = (struct resp_value){.type = type_of(part), .text = text_of(part), .number = part->count};
  if (part->mark == ':') read_integer(part->line, &out->number);
  if (part->mark == '#') out->number = view_is(part->line, "t");
}

bool resp_next(struct view *rest, struct resp_value *out) {
  struct part part;
  for (;;) {
    if (read_part(rest->data, rest->len, UINT32_MAX, &part) != RESP_COMPLETE) return false;
    *rest = view_of(rest->data + part.size, rest->len - part.size);
    if (part.mark != '|') break;
    skip_elements(rest, (uint64_t)part.count);
  }
  fill_value(&part, out);
  return true;
}

void resp_skip(struct view *rest) {
  skip_elements(rest, 1);
}

/* --- writing --- */

static uint8_t *write_head(uint8_t *out, uint8_t mark, uint64_t number) {
  *out++ = mark;
  return resp_end(put_number(out, number));
}

uint8_t *resp_write_array(uint8_t *out, uint32_t count) {
  return write_head(out, '*', count);
}

uint8_t *resp_write_bulk_head(uint8_t *out, size_t len) {
  return write_head(out, '$', len);
}

uint8_t *resp_end(uint8_t *out) {
  out[0] = '\r';
  out[1] = '\n';
  return out + 2;
}

uint8_t *resp_write_bulk(uint8_t *out, struct view text) {
  out = resp_write_bulk_head(out, text.len);
  if (text.len > 0) memcpy(out, text.data, text.len);
  return resp_end(out + text.len);
}

/* --- errors --- */

static const char *const errors[] = {
    [RESP_ERROR_OTHER] = "another error",
    [RESP_ERROR_ERR] = "ERR",
    [RESP_ERROR_WRONGPASS] = "WRONGPASS",
    [RESP_ERROR_NOAUTH] = "NOAUTH",
    [RESP_ERROR_NOPERM] = "NOPERM",
    [RESP_ERROR_NOPROTO] = "NOPROTO",
    [RESP_ERROR_OOM] = "OOM",
    [RESP_ERROR_LOADING] = "LOADING",
    [RESP_ERROR_BUSY] = "BUSY",
    [RESP_ERROR_READONLY] = "READONLY",
    [RESP_ERROR_MASTERDOWN] = "MASTERDOWN",
    [RESP_ERROR_NOREPLICAS] = "NOREPLICAS",
    [RESP_ERROR_MISCONF] = "MISCONF",
    [RESP_ERROR_MOVED] = "MOVED",
    [RESP_ERROR_ASK] = "ASK",
    [RESP_ERROR_CLUSTERDOWN] = "CLUSTERDOWN",
    [RESP_ERROR_TRYAGAIN] = "TRYAGAIN",
    [RESP_ERROR_WRONGTYPE] = "WRONGTYPE",
    [RESP_ERROR_MAXCLIENTS] = "ERR max number of clients reached",
};
#define ERRORS ((int32_t)(sizeof errors / sizeof errors[0]))

enum resp_error resp_error_of(struct view text) {
  size_t word_len = 0;
  if (view_is(text, errors[RESP_ERROR_MAXCLIENTS])) return RESP_ERROR_MAXCLIENTS;
  while (word_len < text.len && text.data[word_len] != ' ')
    word_len++;
  for (int32_t i = RESP_ERROR_ERR; i < RESP_ERROR_MAXCLIENTS; i++) {
    if (view_is(view_of(text.data, word_len), errors[i])) return (enum resp_error)i;
  }
  return RESP_ERROR_OTHER;
}

const char *resp_error_text(int32_t error) {
  return error > 0 && error < ERRORS ? errors[error] : NULL;
}
