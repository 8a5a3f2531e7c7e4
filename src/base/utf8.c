#include "base/utf8.h"

static bool is_continuation_byte(uint8_t byte) {
  return (byte & 0xc0) == 0x80;
}

size_t utf8_sequence(const uint8_t *data, size_t len) {
  uint8_t first = data[0];
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (len < size) return 0;
  for (size_t i = 1; i < size; i++) {
    if (!is_continuation_byte(data[i])) return 0;
  }
  uint8_t second = data[1];
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (first == 0xf0 && second < 0x90) return 0;
  if (first == 0xf4 && second > 0x8f) return 0;
  return size;
}

#define NOT_ASCII UINT64_C(0x8080808080808080)

/* How many bytes at the front are ASCII. */
static size_t ascii_front(const uint8_t *data, size_t len) {
  uint64_t word[4];
  size_t at = 0;
  for (; len - at >= sizeof word; at += sizeof word) {
    memcpy(word, data + at, sizeof word);
    if ((word[0] | word[1] | word[2] | word[3]) & NOT_ASCII) break;
  }
  for (; len - at >= sizeof *word; at += sizeof *word) {
    memcpy(word, data + at, sizeof *word);
    if (*word & NOT_ASCII) break;
  }
  while (at < len && data[at] < 0x80)
    at++;
  return at;
}

bool utf8_valid(struct view text) {
  size_t at = 0;
  while (at < text.len) {
    at += ascii_front(text.data + at, text.len - at);
    if (at == text.len) return true;
    size_t size = utf8_sequence(text.data + at, text.len - at);
    if (!size) return false;
    at += size;
  }
  return true;
}
