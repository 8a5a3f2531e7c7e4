#include "wire/pb_arena.h"

static void *allocate(void *data, size_t size) {
  struct pb_arena *pb = data;
  if (size > pb->left_bytes) return NULL;
  pb->left_bytes -= size;
  return arena_alloc(pb->arena, size);
}

static void forget(void *data, void *memory) {
  (void)data;
  (void)memory;
}

void pb_arena_init(struct pb_arena *out, struct arena *arena, size_t budget_bytes) {
  out->allocator = (ProtobufCAllocator){.alloc = allocate, .free = forget, .allocator_data = out};
  out->arena = arena;
  out->left_bytes = budget_bytes;
}
