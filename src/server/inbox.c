#include "server/inbox.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 8 };

void inbox_free(struct inbox *inbox, struct inbox_limits *limits) {
  free(inbox->slots);
  limits->entries_held -= inbox->capacity;
  inbox->slots = NULL;
  inbox->first = inbox->count = inbox->capacity = 0;
}

struct inbox_entry inbox_at(const struct inbox *inbox, uint32_t position) {
  const struct inbox_slot *slot = &inbox->slots[(inbox->first + position) & (inbox->capacity - 1)];
  return (struct inbox_entry){
      .time_ms = inbox->newest_ms - (uint32_t)((uint32_t)inbox->newest_ms - slot->time_low),
      .message_id = inbox->newest_id - (uint32_t)((uint32_t)inbox->newest_id - slot->id_low),
      .unread_index = slot->unread_low,
  };
}

static void drop_expired(struct inbox *inbox, int64_t expired_ms) {
  while (inbox->count && inbox_at(inbox, 0).time_ms <= expired_ms) {
    inbox->first = (inbox->first + 1) & (inbox->capacity - 1);
    inbox->count--;
  }
}

static bool grow(struct inbox *inbox, struct inbox_limits *limits) {
  uint32_t capacity = inbox->capacity ? inbox->capacity * 2 : FIRST_CAPACITY;
  uint32_t more = capacity - inbox->capacity;
  if (capacity > limits->entries_per_inbox) return false;
  if (inbox->capacity && limits->entries_held + more > limits->entries_in_all) return false;
  struct inbox_slot *slots = malloc(capacity * sizeof *slots);
  if (!slots) return false;
  for (uint32_t i = 0; i < inbox->count; i++)
    slots[i] = inbox->slots[(inbox->first + i) & (inbox->capacity - 1)];
  free(inbox->slots);
  inbox->slots = slots;
  inbox->first = 0;
  inbox->capacity = capacity;
  limits->entries_held += more;
  return true;
}

bool inbox_append(
    struct inbox *inbox, struct inbox_limits *limits, const struct inbox_entry *entry, int64_t expired_ms) {
  drop_expired(inbox, expired_ms);
  if (inbox->count == inbox->capacity && !grow(inbox, limits)) {
    if (!inbox->capacity) return false;
    inbox->first = (inbox->first + 1) & (inbox->capacity - 1);
    inbox->count--;
    limits->entries_dropped++;
  }
  inbox->slots[(inbox->first + inbox->count) & (inbox->capacity - 1)] =
      (struct inbox_slot){(uint32_t)entry->time_ms, (uint32_t)entry->message_id, (uint32_t)entry->unread_index};
  inbox->count++;
  inbox->newest_ms = entry->time_ms;
  inbox->newest_id = entry->message_id;
  return true;
}

void inbox_expire(struct inbox *inbox, struct inbox_limits *limits, int64_t expired_ms) {
  drop_expired(inbox, expired_ms);
  if (!inbox->count && inbox->capacity) inbox_free(inbox, limits);
}

uint32_t inbox_after(const struct inbox *inbox, int64_t after_ms) {
  uint32_t low = 0, high = inbox->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (inbox_at(inbox, middle).time_ms > after_ms)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}
