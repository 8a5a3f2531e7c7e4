#include "server/table.h"

#include "base/rng.h"

#include <stdlib.h>

enum { SMALLEST = 16 };

static uint64_t rotate(uint64_t x, int bits) {
  return (x << bits) | (x >> (64 - bits));
}

static void sip_round(uint64_t v[4]) {
  v[0] += v[1];
  v[1] = rotate(v[1], 13) ^ v[0];
  v[0] = rotate(v[0], 32);
  v[2] += v[3];
  v[3] = rotate(v[3], 16) ^ v[2];
  v[0] += v[3];
  v[3] = rotate(v[3], 21) ^ v[0];
  v[2] += v[1];
  v[1] = rotate(v[1], 17) ^ v[2];
  v[2] = rotate(v[2], 32);
}

/* SipHash-1-3. */
static uint64_t hash_bytes(const uint64_t seed[2], struct view key) {
  uint64_t v[4] = {seed[0] ^ UINT64_C(0x736f6d6570736575), seed[1] ^ UINT64_C(0x646f72616e646f6d),
      seed[0] ^ UINT64_C(0x6c7967656e657261), seed[1] ^ UINT64_C(0x7465646279746573)};
  size_t whole = key.len & ~(size_t)7;
  for (size_t i = 0; i < whole; i += 8) {
    uint64_t word;
    memcpy(&word, key.data + i, 8);
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
  }
  uint64_t last = (uint64_t)key.len << 56;
  for (size_t i = whole; i < key.len; i++)
    last |= (uint64_t)key.data[i] << (8 * (i & 7));
  v[3] ^= last;
  sip_round(v);
  v[0] ^= last;
  v[2] ^= 0xff;
  for (int i = 0; i < 3; i++)
    sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void table_open(struct table *table) {
  *table = (struct table){0};
  random_bytes(table->seed, sizeof table->seed);
}

void table_free(struct table *table) {
  free(table->slots);
  table->slots = NULL;
  table->capacity = table->count = 0;
}

/* The slot of the key, or the free slot where it would go. */
static uint32_t table_place(const struct table *table, uint64_t hash, struct view key) {
  uint32_t mask = table->capacity - 1;
  uint32_t at = (uint32_t)hash & mask;
  while (table->slots[at].entry && (table->slots[at].hash != hash || !view_equal(table->slots[at].entry->key, key)))
    at = (at + 1) & mask;
  return at;
}

void *table_find(const struct table *table, struct view key) {
  if (!table->count) return NULL;
  return table->slots[table_place(table, hash_bytes(table->seed, key), key)].entry;
}

static bool table_grow(struct table *table) {
  struct table_slot *old = table->slots;
  uint32_t old_capacity = table->capacity;
  if (old_capacity >= UINT32_C(1) << 30) return false;
  uint32_t capacity = old_capacity ? old_capacity * 2 : SMALLEST;
  struct table_slot *slots = calloc(capacity, sizeof *slots);
  if (!slots) return false;
  for (uint32_t i = 0; i < old_capacity; i++) {
    if (!old[i].entry) continue;
    uint32_t at = (uint32_t)old[i].hash & (capacity - 1);
    while (slots[at].entry)
      at = (at + 1) & (capacity - 1);
    slots[at] = old[i];
  }
  free(old);
  table->slots = slots;
  table->capacity = capacity;
  return true;
}

bool table_insert(struct table *table, struct table_entry *entry) {
  if (table->count >= table->capacity / 4 * 3 && !table_grow(table)) return false;
  uint64_t hash = hash_bytes(table->seed, entry->key);
  struct table_slot *slot = &table->slots[table_place(table, hash, entry->key)];
  if (!slot->entry) table->count++;
  *slot = (struct table_slot){hash, entry};
  return true;
}

void table_remove(struct table *table, struct view key) {
  if (!table->count) return;
  uint32_t mask = table->capacity - 1;
  uint32_t hole = table_place(table, hash_bytes(table->seed, key), key);
  if (!table->slots[hole].entry) return;
  /* Entries behind the hole move up as long as they have been displaced past it. */
  for (uint32_t at = (hole + 1) & mask; table->slots[at].entry; at = (at + 1) & mask) {
    uint32_t home = (uint32_t)table->slots[at].hash & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    table->slots[hole] = table->slots[at];
    hole = at;
  }
  table->slots[hole].entry = NULL;
  table->count--;
}

static uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= UINT64_C(0xbf58476d1ce4e5b9);
  x ^= x >> 27;
  x *= UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

void number_table_free(struct number_table *table) {
  free(table->slots);
  *table = (struct number_table){0};
}

static uint32_t number_place(const struct number_slot *slots, uint32_t mask, uint64_t key) {
  uint32_t at = (uint32_t)mix(key) & mask;
  while (slots[at].value && slots[at].key != key)
    at = (at + 1) & mask;
  return at;
}

void *number_table_find(const struct number_table *table, uint64_t key) {
  if (!table->count) return NULL;
  return table->slots[number_place(table->slots, table->capacity - 1, key)].value;
}

static bool number_grow(struct number_table *table) {
  if (table->capacity >= UINT32_C(1) << 30) return false;
  uint32_t capacity = table->capacity ? table->capacity * 2 : SMALLEST;
  struct number_slot *slots = calloc(capacity, sizeof *slots);
  if (!slots) return false;
  for (uint32_t i = 0; i < table->capacity; i++)
    if (table->slots[i].value) slots[number_place(slots, capacity - 1, table->slots[i].key)] = table->slots[i];
  free(table->slots);
  table->slots = slots;
  table->capacity = capacity;
  return true;
}

bool number_table_put(struct number_table *table, uint64_t key, void *value) {
  if (table->count >= table->capacity / 4 * 3 && !number_grow(table)) return false;
  uint32_t at = number_place(table->slots, table->capacity - 1, key);
  if (!table->slots[at].value) table->count++;
  table->slots[at] = (struct number_slot){key, value};
  return true;
}

void number_table_remove(struct number_table *table, uint64_t key) {
  if (!table->count) return;
  uint32_t mask = table->capacity - 1;
  uint32_t hole = number_place(table->slots, mask, key);
  if (!table->slots[hole].value) return;
  for (uint32_t at = (hole + 1) & mask; table->slots[at].value; at = (at + 1) & mask) {
    uint32_t home = (uint32_t)mix(table->slots[at].key) & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    table->slots[hole] = table->slots[at];
    hole = at;
  }
  table->slots[hole].value = NULL;
  table->count--;
}
