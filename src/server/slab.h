/* The sessions of one gateway: they never move, a slot is found by its number in constant time, and a generation
 * tells apart the sessions that used a slot one after the other. */
#ifndef MUSTER_SERVER_SLAB_H
#define MUSTER_SERVER_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

struct slab {
  struct session **chunks; /* owned, each of SLAB_CHUNK sessions */
  uint32_t chunk_count;
  uint32_t used;       /* slots that were ever handed out */
  uint32_t first_free; /* SLAB_NONE: none */
};

#define SLAB_CHUNK 64
#define SLAB_NONE UINT32_MAX

void slab_init(struct slab *slab);
/* A zeroed session with slot and generation set; NULL when memory is out. */
struct session *slab_take(struct slab *slab);
void slab_give(struct slab *slab, struct session *session);
/* The session in that slot, whatever its state; NULL when the slot was never used. */
struct session *slab_at(const struct slab *slab, uint32_t slot);
/* Frees the memory of all sessions, which must have been closed. */
void slab_free(struct slab *slab);

#endif
