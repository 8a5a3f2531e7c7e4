#include "server/slab.h"

#include "server/session.h"

#include <stdlib.h>
#include <string.h>

void slab_init(struct slab *slab) {
  *slab = (struct slab){.first_free = SLAB_NONE};
}

struct session *slab_at(const struct slab *slab, uint32_t slot) {
  if (slot >= slab->used) return NULL;
  return &slab->chunks[slot / SLAB_CHUNK][slot % SLAB_CHUNK];
}

static bool slab_grow(struct slab *slab) {
  if (slab->used < slab->chunk_count * SLAB_CHUNK) return true;
  struct session **chunks = realloc(slab->chunks, (slab->chunk_count + 1) * sizeof(struct session *));
  if (!chunks) return false;
  slab->chunks = chunks;
  struct session *chunk = calloc(SLAB_CHUNK, sizeof *chunk);
  if (!chunk) return false;
  slab->chunks[slab->chunk_count++] = chunk;
  return true;
}

struct session *slab_take(struct slab *slab) {
  if (slab->first_free != SLAB_NONE) {
    struct session *session = slab_at(slab, slab->first_free);
    slab->first_free = session->next_free;
    return session;
  }
  if (!slab_grow(slab)) return NULL;
  uint32_t slot = slab->used++;
  struct session *session = slab_at(slab, slot);
  session->slot = slot;
  return session;
}

void slab_give(struct slab *slab, struct session *session) {
  uint32_t slot = session->slot, generation = session->generation;
  memset(session, 0, sizeof *session);
  session->slot = slot;
  session->generation = generation + 1;
  session->next_free = slab->first_free;
  slab->first_free = slot;
}

void slab_free(struct slab *slab) {
  for (uint32_t i = 0; i < slab->chunk_count; i++)
    free(slab->chunks[i]);
  free(slab->chunks);
  slab_init(slab);
}
