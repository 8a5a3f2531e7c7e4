#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_BLOCK = 64 * 1024, ARENA_ALIGN = 16 };

struct arena_block {
  struct arena_block *next;
  size_t used, size;
  _Alignas(ARENA_ALIGN) uint8_t data[];
};

void *arena_alloc(struct arena *arena, size_t size) {
  if (size > SIZE_MAX / 2) return NULL;
  size = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
  struct arena_block *block = arena->blocks;
  if (!block || block->size - block->used < size) {
    size_t room = size > ARENA_BLOCK ? size : ARENA_BLOCK;
    block = malloc(sizeof *block + room);
    if (!block) return NULL;
    *block = (struct arena_block){.next = arena->blocks, .size = room};
    arena->blocks = block;
  }
  void *memory = block->data + block->used;
  block->used += size;
  return memset(memory, 0, size);
}

char *arena_text(struct arena *arena, const void *text, size_t len) {
  char *copy = arena_alloc(arena, len + 1);
  if (copy && len) memcpy(copy, text, len);
  return copy;
}

static void free_from(struct arena_block *block) {
  while (block) {
    struct arena_block *next = block->next;
    free(block);
    block = next;
  }
}

void arena_reset(struct arena *arena) {
  if (!arena->blocks) return;
  free_from(arena->blocks->next);
  arena->blocks->next = NULL;
  arena->blocks->used = 0;
}

void arena_free(struct arena *arena) {
  free_from(arena->blocks);
  arena->blocks = NULL;
}
