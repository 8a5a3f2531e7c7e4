#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

enum { BUF_FIRST = 256 };
#define BUF_LIMIT ((size_t)1 << 31)

uint8_t *buf_reserve(struct buf *buf, size_t extra) {
  size_t need = (size_t)buf->len + extra;
  if (extra > BUF_LIMIT || need > BUF_LIMIT) return NULL;
  if (need > buf->cap) {
    size_t cap = buf->cap ? buf->cap : BUF_FIRST;
    while (cap < need)
      cap *= 2;
    uint8_t *data = realloc(buf->data, cap);
    if (!data) return NULL;
    buf->data = data;
    buf->cap = (uint32_t)cap;
  }
  return buf->data + buf->len;
}

bool buf_append(struct buf *buf, const void *data, size_t len) {
  if (len == 0) return true;
  uint8_t *room = buf_reserve(buf, len);
  if (!room) return false;
  memcpy(room, data, len);
  buf->len += (uint32_t)len;
  return true;
}

void buf_consume(struct buf *buf, size_t count) {
  if (count >= buf->len) {
    buf->len = 0;
    return;
  }
  memmove(buf->data, buf->data + count, buf->len - count);
  buf->len -= (uint32_t)count;
}

void buf_trim(struct buf *buf) {
  if (buf->len == 0) {
    buf_free(buf);
    return;
  }
  uint8_t *data = realloc(buf->data, buf->len);
  if (!data) return;
  buf->data = data;
  buf->cap = buf->len;
}

void buf_free(struct buf *buf) {
  free(buf->data);
  *buf = (struct buf){0};
}
