/* An arena: many small allocations, freed all at once. Pointers stay valid until arena_reset or arena_free. */
#ifndef MUSTER_BASE_ARENA_H
#define MUSTER_BASE_ARENA_H

#include <stddef.h>

struct arena_block;

struct arena {
  struct arena_block *blocks; /* owned, newest first; start an arena with {0} */
};

/* Zeroed memory aligned to 16 bytes, or NULL when memory is out. */
void *arena_alloc(struct arena *arena, size_t size);

/* A NUL-terminated copy of len bytes. */
char *arena_text(struct arena *arena, const void *text, size_t len);

/* Forgets everything but keeps the newest block for reuse. */
void arena_reset(struct arena *arena);

void arena_free(struct arena *arena);

#endif
