/* Hash maps of the core: one keyed by bytes, one by numbers. Open addressing, grown at three quarters full; they hold
 * pointers that somebody else owns. The hash of bytes is keyed with random numbers, so that nobody who chooses ids can
 * make them collide. */
#ifndef MUSTER_SERVER_TABLE_H
#define MUSTER_SERVER_TABLE_H

#include "base/view.h"

#include <stdbool.h>
#include <stdint.h>

/* Every entry of a byte-keyed table begins with its key. */
struct table_entry {
  struct view key;
};

struct table_slot {
  uint64_t hash;
  struct table_entry *entry;
};

struct table {
  struct table_slot *slots; /* owned */
  uint32_t capacity, count;
  uint64_t seed[2];
};

void table_open(struct table *table);
void table_free(struct table *table);
/* The entry with this key, or NULL. */
void *table_find(const struct table *table, struct view key);
/* An entry of the same key is replaced. The key must stay valid. False, with nothing changed, when memory is out. */
bool table_insert(struct table *table, struct table_entry *entry);
void table_remove(struct table *table, struct view key);

struct number_slot {
  uint64_t key;
  void *value; /* NULL: free */
};

struct number_table {
  struct number_slot *slots; /* owned; start with {0} */
  uint32_t capacity, count;
};

void number_table_free(struct number_table *table);
void *number_table_find(const struct number_table *table, uint64_t key);
/* Puts or replaces; value must not be NULL. False when memory is out. */
bool number_table_put(struct number_table *table, uint64_t key, void *value);
void number_table_remove(struct number_table *table, uint64_t key);

#endif
