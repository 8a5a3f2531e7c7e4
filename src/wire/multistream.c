#include "wire/multistream.h"

enum { MESSAGE_BODY_MAX = 1024 };

enum multistream_result multistream_read(struct view bytes, struct view *text, size_t *used) {
  if (bytes.len == 0) return MULTISTREAM_PARTIAL;
  size_t len = bytes.data[0] & 0x7f, head = 1;
  if (bytes.data[0] & 0x80) {
    if (bytes.len < 2) return MULTISTREAM_PARTIAL;
    if (bytes.data[1] & 0x80) return MULTISTREAM_BAD;
    len |= (size_t)bytes.data[1] << 7;
    head = 2;
  }
  if (len < 2 || len > MESSAGE_BODY_MAX) return MULTISTREAM_BAD;
  if (bytes.len < head + len) return MULTISTREAM_PARTIAL;
  if (bytes.data[head + len - 1] != '\n') return MULTISTREAM_BAD;
  *text = view_of(bytes.data + head, len - 1);
  *used = head + len;
  return MULTISTREAM_COMPLETE;
}

enum multistream_result multistream_next(bool *got_header, struct view *bytes, struct view *text) {
  for (;;) {
    size_t used;
    enum multistream_result result = multistream_read(*bytes, text, &used);
    if (result != MULTISTREAM_COMPLETE) return result;
    bytes->data += used;
    bytes->len -= used;
    if (*got_header) return MULTISTREAM_COMPLETE;
    if (!view_is(*text, MULTISTREAM_HEADER)) return MULTISTREAM_BAD;
    *got_header = true;
  }
}

size_t multistream_size(size_t text_len) {
  return (text_len + 1 < 0x80 ? 1 : 2) + text_len + 1;
}

uint8_t *multistream_write(uint8_t *at, struct view text) {
  size_t len = text.len + 1;
  if (len < 0x80) {
    *at++ = (uint8_t)len;
  } else {
    *at++ = (uint8_t)(len | 0x80);
    *at++ = (uint8_t)(len >> 7);
  }
  memcpy(at, text.data, text.len);
  at[text.len] = '\n';
  return at + len;
}
