#include "driver/tokens.h"

#include <stdlib.h>

#define SIZE_MIN 16
#define SIZE_MAX_TOKENS (1U << 20)

static uint32_t *place(struct tokens *tokens, uint32_t i) {
  uint32_t *all = tokens->more ? tokens->more : tokens->first;
  uint32_t size = tokens->more ? tokens->size : TOKENS_INLINE;
  return &all[(tokens->head + i) & (size - 1)];
}

static bool grow(struct tokens *tokens) {
  uint32_t size = tokens->more ? tokens->size * 2 : SIZE_MIN;
  if (size > SIZE_MAX_TOKENS) return false;
  uint32_t *more = malloc(size * sizeof *more);
  if (!more) return false;
  for (uint32_t i = 0; i < tokens->count; i++)
    more[i] = *place(tokens, i);
  free(tokens->more);
  tokens->more = more;
  tokens->size = size;
  tokens->head = 0;
  return true;
}

bool tokens_push(struct tokens *tokens, uint32_t token) {
  uint32_t size = tokens->more ? tokens->size : TOKENS_INLINE;
  if (tokens->count == size && !grow(tokens)) return false;
  *place(tokens, tokens->count) = token;
  tokens->count++;
  return true;
}

bool tokens_pop(struct tokens *tokens, uint32_t *token) {
  if (tokens->count == 0) return false;
  *token = *place(tokens, 0);
  tokens->head++;
  if (--tokens->count == 0) tokens_free(tokens);
  return true;
}

void tokens_free(struct tokens *tokens) {
  free(tokens->more);
  *tokens = (struct tokens){0};
}
