/* Unpacks protobuf-c messages into an arena under a budget: a few bytes on the wire can become hundreds in memory, so
 * a peer must not decide how much that is. Nothing is freed but with the arena. */
#ifndef MUSTER_WIRE_PB_ARENA_H
#define MUSTER_WIRE_PB_ARENA_H

#include "base/arena.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

struct pb_arena {
  ProtobufCAllocator allocator; /* pass its address to ..._unpack; never call ..._free_unpacked */
  struct arena *arena;          /* not owned */
  size_t left_bytes;
};

/* *out must stay where it is while its allocator is in use. An unpack that would need more than budget_bytes returns
 * NULL, as it does for malformed bytes. */
void pb_arena_init(struct pb_arena *out, struct arena *arena, size_t budget_bytes);

#endif
