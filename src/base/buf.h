/* A growable byte buffer of 16 bytes when idle. Out of memory is reported by the call that grows it. */
#ifndef MUSTER_BASE_BUF_H
#define MUSTER_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
  uint8_t *data; /* owned; NULL when cap is 0 */
  uint32_t len;
  uint32_t cap;
};

/* Room for extra more bytes behind data+len, or NULL when memory is out or the buffer would pass 2 GiB.
 * The caller writes there and then adds to len. */
uint8_t *buf_reserve(struct buf *buf, size_t extra);

/* False, with nothing changed, when memory is out. */
bool buf_append(struct buf *buf, const void *data, size_t len);

/* Drops the first count bytes and moves the rest to the front. */
void buf_consume(struct buf *buf, size_t count);

/* Frees the memory; the buffer is then empty and usable. */
/* Gives back what is not filled: for what stays as it is. */
void buf_trim(struct buf *buf);
void buf_free(struct buf *buf);

#endif
