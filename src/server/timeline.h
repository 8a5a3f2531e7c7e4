/* The places of the newest messages in their conversations' history, before the store has written them.
 *
 * An index in place would write about one page a message: messages of a thousand conversations belong in a thousand
 * places of it. So places gather here, and a full round of them is written in order, neighbours into the same page,
 * while the next one gathers. Nothing is lost with them: each can be read off its message again. */
#ifndef MUSTER_SERVER_TIMELINE_H
#define MUSTER_SERVER_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

enum { TIMELINE_ROUND = 16384 };

struct place {
  int64_t time_ms, id;
  uint32_t conversation; /* 0: taken before its turn */
};

struct timeline {
  struct place *gathering, *round; /* owned, TIMELINE_ROUND each */
  uint32_t gathered, round_count, round_at;
  int64_t round_newest; /* the newest message of the round */
};

/* False when memory is out. */
bool timeline_open(struct timeline *timeline);
void timeline_free(struct timeline *timeline);

/* There must be room: see timeline_seal. Ids ascend. */
void timeline_add(struct timeline *timeline, const struct place *place);
/* Makes a round of what has gathered, once that is TIMELINE_ROUND; the round before must have been taken. */
void timeline_seal(struct timeline *timeline);
/* The next place of the round, by conversation and time; false at its end. */
bool timeline_next(struct timeline *timeline, struct place *out);
/* Takes the first place of a conversation, of *at and up, before its turn. Start with *at = 0. */
bool timeline_take(struct timeline *timeline, uint32_t conversation, uint32_t *at, struct place *out);

#endif
