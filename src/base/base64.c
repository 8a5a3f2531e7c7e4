#include "base/base64.h"

#define COMMON "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
static const char *const characters[] = {[BASE64_URL] = COMMON "-_", [BASE64_STANDARD] = COMMON "+/"};

#define FOREIGN (~63U)

/* The value of a character, plus 1; 0 for every other. */
/* clang-format off */
#define COMMON_VALUES \
  ['A'] = 1, ['B'] = 2, ['C'] = 3, ['D'] = 4, ['E'] = 5, ['F'] = 6, ['G'] = 7, ['H'] = 8, ['I'] = 9, \
  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16, ['Q'] = 17, \
  ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, \
  ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, \
  ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, \
  ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49, \
  ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56, ['4'] = 57, \
  ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62
/* clang-format on */
static const uint8_t values[][256] = {
    [BASE64_URL] = {COMMON_VALUES, ['-'] = 63, ['_'] = 64},
    [BASE64_STANDARD] = {COMMON_VALUES, ['+'] = 63, ['/'] = 64},
};

/* Above 63 for a character that the alphabet has not. */
static uint32_t value_of(const uint8_t table[256], uint8_t character) {
  return table[character] - 1U;
}

size_t base64_encoded_size(size_t len) {
  return (len + 2) / 3 * 4;
}

char *base64_encode(enum base64_alphabet alphabet, char *out, const uint8_t *data, size_t len) {
  const char *digits = characters[alphabet];
  size_t i = 0;
  for (; i + 3 <= len; i += 3) {
    uint32_t bits = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];
    *out++ = digits[bits >> 18];
    *out++ = digits[bits >> 12 & 63];
    *out++ = digits[bits >> 6 & 63];
    *out++ = digits[bits & 63];
  }
  if (i == len) return out;
  uint32_t bits = (uint32_t)data[i] << 16 | (i + 1 < len ? (uint32_t)data[i + 1] << 8 : 0);
  *out++ = digits[bits >> 18];
  *out++ = digits[bits >> 12 & 63];
  *out++ = i + 1 < len ? digits[bits >> 6 & 63] : '=';
  *out++ = '=';
  return out;
}

static size_t padding_of(struct view text) {
  if (text.data[text.len - 1] != '=') return 0;
  return text.data[text.len - 2] == '=' ? 2 : 1;
}

/* The last group: 4 - padding characters make 3 - padding bytes. */
static bool decode_last(enum base64_alphabet alphabet, const uint8_t *text, size_t padding, uint8_t *out) {
  uint32_t bits = 0;
  for (size_t i = 0; i < 4; i++) {
    uint32_t value = i < 4 - padding ? value_of(values[alphabet], text[i]) : 0;
    if (value & FOREIGN) return false;
    bits = bits << 6 | value;
  }
  if (bits & ((1U << (8 * padding)) - 1)) return false;
  for (size_t i = 0; i < 3 - padding; i++) {
    out[i] = (uint8_t)(bits >> (16 - 8 * i));
  }
  return true;
}

bool base64_decode(enum base64_alphabet alphabet, struct view text, uint8_t *out, size_t *len) {
  *len = 0;
  if (text.len % 4) return false;
  if (!text.len) return true;
  const uint8_t *at = text.data, *last = text.data + text.len - 4;
  const uint8_t *table = values[alphabet];
  uint8_t *to = out;
  for (; at < last; at += 4, to += 3) {
    uint32_t a = value_of(table, at[0]), b = value_of(table, at[1]);
    uint32_t c = value_of(table, at[2]), d = value_of(table, at[3]);
    if ((a | b | c | d) & FOREIGN) return false;
    uint32_t bits = a << 18 | b << 12 | c << 6 | d;
    to[0] = (uint8_t)(bits >> 16);
    to[1] = (uint8_t)(bits >> 8);
    to[2] = (uint8_t)bits;
  }
  size_t padding = padding_of(text);
  if (!decode_last(alphabet, last, padding, to)) return false;
  *len = (size_t)(to - out) + 3 - padding;
  return true;
}
