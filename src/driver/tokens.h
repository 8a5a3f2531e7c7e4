/* The publishes of one connection that await answers which come in their order: a queue of their tokens. Up to four
 * need no memory of their own. */
#ifndef MUSTER_DRIVER_TOKENS_H
#define MUSTER_DRIVER_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#define TOKENS_INLINE 4

struct tokens {
  uint32_t *more; /* owned; NULL while the first will do */
  uint32_t size;  /* of more, a power of two */
  uint32_t head, count;
  uint32_t first[TOKENS_INLINE];
};

/* False when memory is out. */
bool tokens_push(struct tokens *tokens, uint32_t token);
/* The oldest; false when there is none. */
bool tokens_pop(struct tokens *tokens, uint32_t *token);
void tokens_free(struct tokens *tokens);

#endif
