#include "wire/json_scan.h"

#include <endian.h>

#define LANES 16
#define NAME_MAX_BYTES 64

typedef uint8_t lanes __attribute__((vector_size(LANES)));

static const uint8_t *skip_space(const uint8_t *at, const uint8_t *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
    at++;
  return at;
}

/* How many of the bytes at `at`, of which there are LANES, come before a quote, a backslash or a control character. */
static size_t plain_bytes(const uint8_t *at) {
  lanes bytes;
  uint64_t half[2];
  memcpy(&bytes, at, sizeof bytes);
  bytes = (lanes)(bytes == '"') | (lanes)(bytes == '\\') | (lanes)(bytes < 0x20);
  memcpy(half, &bytes, sizeof half);
  if (half[0]) return (size_t)__builtin_ctzll(le64toh(half[0])) / 8;
  return half[1] ? 8 + (size_t)__builtin_ctzll(le64toh(half[1])) / 8 : LANES;
}

static int hex_digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Four hexadecimal digits, or -1. */
static int32_t hex_quad(const uint8_t *at, const uint8_t *end) {
  if (end - at < 4) return -1;
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    int digit = hex_digit(at[i]);
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

/* Behind the escape whose backslash is at `at`; NULL when it is none. */
static const uint8_t *skip_escape(const uint8_t *at, const uint8_t *end) {
  if (end - at < 2) return NULL;
  if (at[1] == 'u') return hex_quad(at + 2, end) < 0 ? NULL : at + 6;
  return at[1] && strchr("\"\\/bfnrt", at[1]) ? at + 2 : NULL;
}

static const uint8_t *skip_string(const uint8_t *at, const uint8_t *end) {
  if (at == end || *at != '"') return NULL;
  at++;
  while (at < end) {
    if (end - at >= LANES) {
      size_t plain = plain_bytes(at);
      at += plain;
      if (plain == LANES) continue;
    }
    if (*at == '"') return at + 1;
    if (*at < 0x20) return NULL;
    at = *at == '\\' ? skip_escape(at, end) : at + 1;
    if (!at) return NULL;
  }
  return NULL;
}

static bool is_digit(const uint8_t *at, const uint8_t *end) {
  return at < end && *at >= '0' && *at <= '9';
}

static const uint8_t *skip_digits(const uint8_t *at, const uint8_t *end) {
  if (!is_digit(at, end)) return NULL;
  while (is_digit(at, end))
    at++;
  return at;
}

static const uint8_t *skip_number(const uint8_t *at, const uint8_t *end) {
  if (at < end && *at == '-') at++;
  bool zero = at < end && *at == '0';
  at = skip_digits(at, zero ? at + 1 : end);
  if (at && at < end && *at == '.') at = skip_digits(at + 1, end);
  if (!at || at == end || (*at | 0x20) != 'e') return at;
  at++;
  if (at < end && (*at == '+' || *at == '-')) at++;
  return skip_digits(at, end);
}

static const uint8_t *skip_word(const uint8_t *at, const uint8_t *end, const char *word) {
  size_t len = strlen(word);
  return (size_t)(end - at) >= len && memcmp(at, word, len) == 0 ? at + len : NULL;
}

static const uint8_t *skip_scalar(const uint8_t *at, const uint8_t *end) {
  switch (*at) {
  case '"':
    return skip_string(at, end);
  case 't':
    return skip_word(at, end, "true");
  case 'f':
    return skip_word(at, end, "false");
  case 'n':
    return skip_word(at, end, "null");
  default:
    return skip_number(at, end);
  }
}

/* Behind the colon of a member; white space may precede the key. */
static const uint8_t *skip_key(const uint8_t *at, const uint8_t *end) {
  at = skip_string(skip_space(at, end), end);
  if (!at) return NULL;
  at = skip_space(at, end);
  return at < end && *at == ':' ? at + 1 : NULL;
}

/* The containers that are open around a place: one bit each, set for an object. */
struct nesting {
  uint64_t objects;
  unsigned depth;
};

static uint8_t closer(const struct nesting *nesting) {
  return nesting->objects & 1 ? '}' : ']';
}

static const uint8_t *close_one(struct nesting *nesting, const uint8_t *at) {
  nesting->objects >>= 1;
  nesting->depth--;
  return at + 1;
}

/* Enters the container at `at`. *open says whether a value of it comes next (else it was empty and is closed). */
static const uint8_t *enter(struct nesting *nesting, const uint8_t *at, const uint8_t *end, bool *open) {
  if (nesting->depth == SCAN_DEPTH_MAX) return NULL;
  bool object = *at == '{';
  nesting->objects = nesting->objects << 1 | object;
  nesting->depth++;
  at = skip_space(at + 1, end);
  *open = at == end || *at != closer(nesting);
  if (!*open) return close_one(nesting, at);
  return object ? skip_key(at, end) : at;
}

/* Behind a value: closes containers until a comma says that another value follows (*open) or none is left open. */
static const uint8_t *leave(struct nesting *nesting, const uint8_t *at, const uint8_t *end, bool *open) {
  *open = false;
  while (nesting->depth > 0) {
    at = skip_space(at, end);
    if (at == end) return NULL;
    if (*at == ',') {
      *open = true;
      return nesting->objects & 1 ? skip_key(at + 1, end) : at + 1;
    }
    if (*at != closer(nesting)) return NULL;
    at = close_one(nesting, at);
  }
  return at;
}

/* Behind the value that starts at `at` (no white space before it); NULL when it is malformed. */
static const uint8_t *skip_value(const uint8_t *at, const uint8_t *end) {
  struct nesting nesting = {0};
  bool open = true;
  while (open) {
    at = skip_space(at, end);
    if (at == end) return NULL;
    open = false;
    at = *at == '{' || *at == '[' ? enter(&nesting, at, end, &open) : skip_scalar(at, end);
    if (!at) return NULL;
    if (!open) at = leave(&nesting, at, end, &open);
    if (!at) return NULL;
  }
  return at;
}

static struct scan_walk walk_of(struct view text, uint8_t opener, uint8_t closer_char) {
  struct scan_walk walk = {.close = closer_char, .first = true, .bad = true};
  if (text.len == 0) return walk;
  walk.end = text.data + text.len;
  walk.at = skip_space(text.data, walk.end);
  if (walk.at == walk.end || *walk.at != opener) return walk;
  walk.at++;
  walk.bad = false;
  return walk;
}

struct scan_walk scan_object(struct view text) {
  return walk_of(text, '{', '}');
}

struct scan_walk scan_array(struct view text) {
  return walk_of(text, '[', ']');
}

static bool spoil(struct scan_walk *walk) {
  walk->bad = true;
  return false;
}

/* Moves to the start of the next item; false at the end. */
static bool next_item(struct scan_walk *walk) {
  if (walk->bad || !walk->close) return false;
  walk->at = skip_space(walk->at, walk->end);
  if (walk->at == walk->end) return spoil(walk);
  if (*walk->at == walk->close) {
    walk->close = 0;
    walk->at = skip_space(walk->at + 1, walk->end);
    if (walk->at != walk->end) walk->bad = true;
    return false;
  }
  if (!walk->first) {
    if (*walk->at != ',') return spoil(walk);
    walk->at = skip_space(walk->at + 1, walk->end);
  }
  walk->first = false;
  return true;
}

static bool take_value(struct scan_walk *walk, struct view *value) {
  const uint8_t *start = skip_space(walk->at, walk->end);
  const uint8_t *behind = skip_value(start, walk->end);
  if (!behind) return spoil(walk);
  *value = view_of(start, (size_t)(behind - start));
  walk->at = behind;
  return true;
}

bool scan_next_member(struct scan_walk *walk, struct view *key, struct view *value) {
  if (!next_item(walk)) return false;
  const uint8_t *behind = skip_string(walk->at, walk->end);
  if (!behind) return spoil(walk);
  *key = view_of(walk->at, (size_t)(behind - walk->at));
  walk->at = skip_space(behind, walk->end);
  if (walk->at == walk->end || *walk->at != ':') return spoil(walk);
  walk->at++;
  return take_value(walk, value);
}

bool scan_next_element(struct scan_walk *walk, struct view *value) {
  return next_item(walk) && take_value(walk, value);
}

static bool is_string(struct view raw) {
  return raw.len >= 2 && raw.data[0] == '"';
}

struct view scan_plain_string(struct view raw) {
  if (!is_string(raw) || memchr(raw.data, '\\', raw.len)) return (struct view){0};
  return view_of(raw.data + 1, raw.len - 2);
}

static uint8_t *put_utf8(uint8_t *out, uint32_t point) {
  if (point < 0x80) {
    *out++ = (uint8_t)point;
    return out;
  }
  if (point < 0x800) {
    *out++ = (uint8_t)(0xc0 | point >> 6);
  } else {
    if (point < 0x10000) {
      *out++ = (uint8_t)(0xe0 | point >> 12);
    } else {
      *out++ = (uint8_t)(0xf0 | point >> 18);
      *out++ = (uint8_t)(0x80 | (point >> 12 & 0x3f));
    }
    *out++ = (uint8_t)(0x80 | (point >> 6 & 0x3f));
  }
  *out++ = (uint8_t)(0x80 | (point & 0x3f));
  return out;
}

/* The code point of the \u escape at *at (and of its second half); -1 for half a pair. Moves *at behind it. */
static int32_t take_point(const uint8_t **at, const uint8_t *end) {
  int32_t point = hex_quad(*at + 2, end);
  *at += 6;
  if (point < 0xd800 || point > 0xdfff) return point;
  if (point > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u') return -1;
  int32_t low = hex_quad(*at + 2, end);
  if (low < 0xdc00 || low > 0xdfff) return -1;
  *at += 6;
  return 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
}

static uint8_t unescaped(uint8_t c) {
  switch (c) {
  case 'b':
    return '\b';
  case 'f':
    return '\f';
  case 'n':
    return '\n';
  case 'r':
    return '\r';
  case 't':
    return '\t';
  default:
    return c;
  }
}

bool scan_unescape(struct view raw, uint8_t *out, size_t *len) {
  if (!is_string(raw)) return false;
  const uint8_t *at = raw.data + 1, *end = raw.data + raw.len - 1;
  uint8_t *to = out;
  while (at < end) {
    if (*at != '\\') {
      *to++ = *at++;
    } else if (at[1] != 'u') {
      *to++ = unescaped(at[1]);
      at += 2;
    } else {
      int32_t point = take_point(&at, end);
      if (point < 0) return false;
      to = put_utf8(to, (uint32_t)point);
    }
  }
  *len = (size_t)(to - out);
  return true;
}

bool scan_is(struct view raw, const char *text) {
  if (!is_string(raw)) return false;
  size_t text_len = strlen(text);
  if (raw.len == text_len + 2 && memcmp(raw.data + 1, text, text_len) == 0) return true;
  if (!memchr(raw.data, '\\', raw.len) || raw.len > NAME_MAX_BYTES * 6) return false;
  uint8_t name[NAME_MAX_BYTES * 6];
  size_t len;
  return scan_unescape(raw, name, &len) && len == text_len && memcmp(name, text, len) == 0;
}
