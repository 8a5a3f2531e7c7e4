#include "server/timeline.h"

#include <stdlib.h>

bool timeline_open(struct timeline *timeline) {
  *timeline = (struct timeline){0};
  timeline->gathering = malloc(TIMELINE_ROUND * sizeof *timeline->gathering);
  timeline->round = malloc(TIMELINE_ROUND * sizeof *timeline->round);
  return timeline->gathering && timeline->round;
}

void timeline_free(struct timeline *timeline) {
  free(timeline->gathering);
  free(timeline->round);
}

void timeline_add(struct timeline *timeline, const struct place *place) {
  timeline->gathering[timeline->gathered++] = *place;
}

static int by_conversation_and_id(const void *left, const void *right) {
  const struct place *a = left, *b = right;
  if (a->conversation != b->conversation) return a->conversation < b->conversation ? -1 : 1;
  return a->id < b->id ? -1 : a->id > b->id;
}

void timeline_seal(struct timeline *timeline) {
  if (timeline->gathered < TIMELINE_ROUND) return;
  struct place *places = timeline->gathering;
  timeline->round_newest = places[TIMELINE_ROUND - 1].id;
  timeline->gathering = timeline->round;
  timeline->gathered = 0;
  timeline->round = places;
  timeline->round_count = TIMELINE_ROUND;
  timeline->round_at = 0;
  qsort(places, TIMELINE_ROUND, sizeof *places, by_conversation_and_id);
}

bool timeline_next(struct timeline *timeline, struct place *out) {
  while (timeline->round_at < timeline->round_count) {
    *out = timeline->round[timeline->round_at++];
    if (out->conversation) return true;
  }
  return false;
}

bool timeline_take(struct timeline *timeline, uint32_t conversation, uint32_t *at, struct place *out) {
  for (; *at < TIMELINE_ROUND + timeline->gathered; ++*at) {
    bool is_gathering = *at >= TIMELINE_ROUND;
    if (!is_gathering && (*at < timeline->round_at || *at >= timeline->round_count)) continue;
    struct place *place = is_gathering ? &timeline->gathering[*at - TIMELINE_ROUND] : &timeline->round[*at];
    if (place->conversation != conversation) continue;
    *out = *place;
    place->conversation = 0;
    return true;
  }
  return false;
}
