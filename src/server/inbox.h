/* A user's recent messages: a ring of 12-byte entries in ascending order of time. Entries keep the low 32 bits of time
 * and id; the ring's owner knows the newest of both, and everything in the ring is less than 2^32 behind it. */
#ifndef MUSTER_SERVER_INBOX_H
#define MUSTER_SERVER_INBOX_H

#include <stdbool.h>
#include <stdint.h>

/* Bounds of one ring and of all rings that share the limits. */
struct inbox_limits {
  uint32_t entries_per_inbox; /* a power of two */
  uint64_t entries_in_all;
  uint64_t entries_held;    /* capacity of all rings together */
  uint64_t entries_dropped; /* pushed out although they were inside the window */
};

struct inbox_slot {
  uint32_t time_low, id_low, unread_low;
};

struct inbox {
  struct inbox_slot *slots; /* owned; start with {0} */
  uint32_t first, count, capacity;
  int64_t newest_ms, newest_id;
};

struct inbox_entry {
  int64_t time_ms, message_id, unread_index;
};

void inbox_free(struct inbox *inbox, struct inbox_limits *limits);
/* time_ms must be above newest_ms. Entries that are not newer than expired_ms leave first; when no room can be had the
 * oldest is dropped and counted. False when there is no memory for even a first entry. */
bool inbox_append(
    struct inbox *inbox, struct inbox_limits *limits, const struct inbox_entry *entry, int64_t expired_ms);
/* Forgets entries that are not newer than expired_ms; gives memory back when nothing is left. */
void inbox_expire(struct inbox *inbox, struct inbox_limits *limits, int64_t expired_ms);
/* Position of the first entry newer than after_ms; count when there is none. */
uint32_t inbox_after(const struct inbox *inbox, int64_t after_ms);
struct inbox_entry inbox_at(const struct inbox *inbox, uint32_t position);

#endif
