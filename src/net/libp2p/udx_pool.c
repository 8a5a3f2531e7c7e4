/* Segments and buffers that wait for their next use. */
#include "net/libp2p/udx_private.h"

#include <stdlib.h>

enum { CHUNK_SEGMENTS = 256, SPARE_BUFS_MAX = 64, SPARE_BUF_BYTES_MAX = 64 * 1024 };

struct chunk {
  struct chunk *next;
  struct udx_segment segments[CHUNK_SEGMENTS];
};

struct udx_pool {
  struct chunk *chunks;
  struct udx_segment *spare;
  struct buf bufs[SPARE_BUFS_MAX];
  uint32_t buf_count;
  uint64_t resent;
};

struct udx_pool *udx_pool_create(void) {
  return calloc(1, sizeof(struct udx_pool));
}

void udx_pool_destroy(struct udx_pool *pool) {
  if (!pool) return;
  while (pool->chunks) {
    struct chunk *chunk = pool->chunks;
    pool->chunks = chunk->next;
    free(chunk);
  }
  while (pool->buf_count)
    buf_free(&pool->bufs[--pool->buf_count]);
  free(pool);
}

uint64_t udx_pool_resent(const struct udx_pool *pool) {
  return pool->resent;
}

void udx_count_resent(struct udx_pool *pool) {
  pool->resent++;
}

struct udx_segment *udx_take_segment(struct udx_pool *pool) {
  if (!pool->spare) {
    struct chunk *chunk = malloc(sizeof *chunk);
    if (!chunk) return NULL;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    for (size_t i = 0; i < CHUNK_SEGMENTS; i++)
      udx_give_segment(pool, &chunk->segments[i]);
  }
  struct udx_segment *segment = pool->spare;
  pool->spare = segment->after;
  *segment = (struct udx_segment){0};
  return segment;
}

void udx_give_segment(struct udx_pool *pool, struct udx_segment *segment) {
  segment->after = pool->spare;
  pool->spare = segment;
}

struct buf udx_take_buf(struct udx_pool *pool) {
  return pool->buf_count ? pool->bufs[--pool->buf_count] : (struct buf){0};
}

void udx_give_buf(struct udx_pool *pool, struct buf *buf) {
  if (!buf->cap || buf->cap > SPARE_BUF_BYTES_MAX || pool->buf_count == SPARE_BUFS_MAX) {
    buf_free(buf);
    return;
  }
  buf->len = 0;
  pool->bufs[pool->buf_count++] = *buf;
  *buf = (struct buf){0};
}

void udx_list_append(struct udx_list *list, struct udx_segment *segment) {
  segment->before = list->last;
  segment->after = NULL;
  *(list->last ? &list->last->after : &list->first) = segment;
  list->last = segment;
}

void udx_list_remove(struct udx_list *list, struct udx_segment *segment) {
  *(segment->before ? &segment->before->after : &list->first) = segment->after;
  *(segment->after ? &segment->after->before : &list->last) = segment->before;
}
