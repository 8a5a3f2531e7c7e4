/* Repeated publishes. A client that retries sends the same uid again; the answer is then the first one's. The key is
 * (sender, uid), and a sender belongs to one tenant, so neither tenants nor users can meet here. Entries live ten
 * minutes from the first publish, 2^20 of them at most; past that the oldest leave early. */
#include "server/core_state.h"

#include <stdlib.h>

void dedup_open(struct dedup *dedup) {
  *dedup = (struct dedup){0};
  table_open(&dedup->table);
}

static void drop_oldest(struct dedup *dedup) {
  struct dedup_entry *entry = dedup->oldest;
  dedup->oldest = entry->next;
  if (!dedup->oldest) dedup->newest = NULL;
  /* The replay at start may have met the uid twice, where the first had left early: the newer one answers then. */
  if (table_find(&dedup->table, entry->key) == entry) table_remove(&dedup->table, entry->key);
  free(entry);
}

void dedup_free(struct dedup *dedup) {
  while (dedup->oldest)
    drop_oldest(dedup);
  table_free(&dedup->table);
}

static struct view make_key(uint8_t *out, uint32_t sender, struct view client_uid) {
  memcpy(out, &sender, sizeof sender);
  if (client_uid.len) memcpy(out + sizeof sender, client_uid.data, client_uid.len);
  return view_of(out, sizeof sender + client_uid.len);
}

const struct dedup_entry *dedup_find(struct dedup *dedup, uint32_t sender, struct view client_uid, int64_t now_ms) {
  if (!client_uid.len || client_uid.len > CLIENT_UID_MAX) return NULL;
  while (dedup->oldest && dedup->oldest->at_ms <= now_ms - DEDUP_WINDOW_MS)
    drop_oldest(dedup);
  uint8_t key[sizeof sender + CLIENT_UID_MAX];
  return table_find(&dedup->table, make_key(key, sender, client_uid));
}

bool dedup_put(struct dedup *dedup, const struct message *message, struct view client_uid, int64_t now_ms) {
  if (dedup->table.count >= DEDUP_ENTRIES) drop_oldest(dedup);
  struct dedup_entry *entry = malloc(sizeof *entry + sizeof(uint32_t) + client_uid.len);
  if (!entry) return false;
  *entry = (struct dedup_entry){.at_ms = now_ms,
      .time_ms = message->time_ms,
      .seq = message->seq,
      .member_count = message->conversation && message->conversation->group ? message->member_count : 0};
  memcpy(entry->msg_id, message->msg_id, sizeof entry->msg_id);
  entry->key = make_key(entry->bytes, message->sender->num, client_uid);
  if (!table_insert(&dedup->table, (struct table_entry *)entry)) {
    free(entry);
    return false;
  }
  if (dedup->newest)
    dedup->newest->next = entry;
  else
    dedup->oldest = entry;
  dedup->newest = entry;
  return true;
}
