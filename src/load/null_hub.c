/* Who has subscribed to what at the null peer. */
#include "load/null_client.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define BUCKETS_FIRST 1024

static struct hub_topic **bucket_of(const struct hub *hub, struct view name) {
  return &hub->bucket[XXH3_64bits(name.data, name.len) & (hub->buckets - 1)];
}

static struct hub_topic *find(const struct hub *hub, struct view name) {
  if (hub->buckets == 0) return NULL;
  struct hub_topic *topic = *bucket_of(hub, name);
  while (topic && !view_equal(view_of(topic->name, topic->name_len), name))
    topic = topic->next;
  return topic;
}

const struct hub_topic *hub_find(const struct hub *hub, struct view name) {
  return find(hub, name);
}

/* Twice as many buckets, so that no chain grows long. */
static bool grow(struct hub *hub) {
  struct hub old = *hub;
  struct hub more = {.buckets = old.buckets ? old.buckets * 2 : BUCKETS_FIRST, .topics = old.topics};
  more.bucket = calloc(more.buckets, sizeof(struct hub_topic *));
  if (!more.bucket) return false;
  for (uint32_t i = 0; i < old.buckets; i++) {
    for (struct hub_topic *topic = old.bucket[i], *next; topic; topic = next) {
      next = topic->next;
      struct hub_topic **head = bucket_of(&more, view_of(topic->name, topic->name_len));
      topic->next = *head;
      *head = topic;
    }
  }
  free(old.bucket);
  *hub = more;
  return true;
}

static struct hub_topic *make(struct hub *hub, struct view name) {
  if (name.len == 0 || name.len > HUB_TOPIC_MAX || hub->topics >= HUB_TOPICS_MAX) return NULL;
  if (hub->topics >= hub->buckets && !grow(hub)) return NULL;
  struct hub_topic *topic = calloc(1, sizeof *topic + name.len);
  if (!topic) return NULL;
  memcpy(topic->name, name.data, name.len);
  topic->name_len = (uint16_t)name.len;
  struct hub_topic **head = bucket_of(hub, name);
  topic->next = *head;
  *head = topic;
  hub->topics++;
  return topic;
}

/* Room for one more of size bytes each, in an array that doubles. */
static bool has_room(void **array, uint32_t used, uint32_t *room, size_t size) {
  if (used < *room) return true;
  uint32_t more = *room ? *room * 2 : 1;
  void *grown = realloc(*array, more * size);
  if (!grown) return false;
  *array = grown;
  *room = more;
  return true;
}

bool hub_join(struct hub *hub, struct view name, const struct hub_seat *seat) {
  struct null_client *client = seat->client;
  struct hub_topic *topic = find(hub, name);
  if (!topic) topic = make(hub, name);
  if (!topic || client->topics >= HUB_TOPICS_MAX) return false;
  if (!has_room((void **)&topic->seat, topic->seats, &topic->room, sizeof *topic->seat)) return false;
  if (!has_room((void **)&client->topic, client->topics, &client->topics_room, sizeof(struct hub_topic *)))
    return false;
  topic->seat[topic->seats++] = *seat;
  client->topic[client->topics++] = topic;
  return true;
}

void hub_leave(struct null_client *client) {
  for (uint32_t i = 0; i < client->topics; i++) {
    struct hub_topic *topic = client->topic[i];
    uint32_t at = 0;
    while (at < topic->seats && topic->seat[at].client != client)
      at++;
    if (at < topic->seats) topic->seat[at] = topic->seat[--topic->seats];
  }
  free(client->topic);
  client->topic = NULL;
  client->topics = client->topics_room = 0;
}
