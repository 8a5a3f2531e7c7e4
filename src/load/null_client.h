/* The inside of the null peer: its connections, the protocols it speaks, and who has subscribed to what. */
#ifndef MUSTER_LOAD_NULL_CLIENT_H
#define MUSTER_LOAD_NULL_CLIENT_H

#include "base/view.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/ws.h"
#include "report/workload.h"
#include "wire/juggle.h"
#include "wire/mqtt.h"
#include "wire/shootout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NULL_USER_ID_MAX 40

struct null_client;

/* --- topics: of MQTT, subjects of NATS, channels of Redis, the one channel of the shootout --- */

#define HUB_TOPIC_MAX 256
#define HUB_TOPICS_MAX (1U << 20) /* of all clients */

struct hub_seat {
  struct null_client *client;
  uint32_t id;         /* as the subscriber numbers it */
  uint8_t qos;         /* of MQTT */
  bool leaves_out_own; /* what the client publishes itself */
};

struct hub_topic {
  struct hub_topic *next; /* of the same bucket */
  struct hub_seat *seat;  /* owned */
  uint32_t seats, room;
  uint16_t name_len;
  uint8_t name[];
};

struct hub {
  struct hub_topic **bucket; /* owned */
  uint32_t buckets;          /* a power of two */
  uint32_t topics;
};

/* False when memory is out or there are too many topics. */
bool hub_join(struct hub *hub, struct view name, const struct hub_seat *seat);
/* Takes the client out of all its topics. */
void hub_leave(struct null_client *client);
/* NULL: nobody has ever joined it. */
const struct hub_topic *hub_find(const struct hub *hub, struct view name);

/* --- protocols --- */

#define NULL_PUBSUB_TOPOLOGIES                                                                                         \
  (1U << TOPOLOGY_RING | 1U << TOPOLOGY_PAIRS | 1U << TOPOLOGY_STAR | 1U << TOPOLOGY_GROUPS | 1U << TOPOLOGY_ROOM |    \
      1U << TOPOLOGY_BROADCAST | 1U << TOPOLOGY_ECHO)

struct null_dialect {
  const char *driver, *scheme;
  unsigned topologies; /* bits of enum topology_kind that it can answer */
  /* The transport is up, with a WebSocket once the upgrade is through; NULL: nothing to say. Each of these returns
   * false when the connection is not worth keeping. */
  bool (*opened)(struct null_client *client);
  /* One message of a WebSocket; NULL: plain TCP. */
  bool (*message)(struct null_client *client, const struct ws_event *event);
  /* Bytes of plain TCP, *used of them; 0: more are needed. */
  bool (*bytes)(struct null_client *client, uint8_t *data, size_t len, size_t *used);
  /* A request that is no upgrade; NULL: not served. */
  bool (*called)(struct null_client *client, const struct http_head *head, struct view body);
  /* The connection is ending; NULL: nothing to do. */
  void (*closed)(struct null_client *client);
};

extern const struct null_dialect null_juggle, null_mqtt, null_nats, null_redis, null_socketio;
extern const struct null_dialect null_shootout_json, null_shootout_binary, null_shootout_phoenix, null_shootout_cable;

/* --- the process --- */

struct null_house {
  const struct null_dialect *dialect;
  struct loop *loop;
  struct listener listener;
  struct watch control;
  struct hub hub;
  struct null_client **user; /* of JuggleIM: owned; connection of each user index, or NULL */
  uint32_t users, groups;    /* groups: 1 when every user is in every group */
  bool echoes;               /* of Socket.IO: what goes to a room comes back to its sender too */
  bool stop;
};

struct null_juggle_state {
  bool ready, obfuscated;
  struct juggle_key key;
  char user_id[NULL_USER_ID_MAX];
  uint32_t user; /* its index; only when ready */
  int32_t pushes;
};

struct null_mqtt_state {
  enum mqtt_version version; /* 0: no CONNECT yet */
  uint16_t last_id;
};

struct null_nats_state {
  bool hears_itself;
};

struct null_redis_state {
  bool resp3;
};

struct null_client {
  struct stream stream;
  struct ws ws;
  struct null_house *house;
  bool upgraded;
  struct hub_topic **topic; /* owned: where it has a seat */
  uint32_t topics, topics_room;
  union {
    struct null_juggle_state juggle;
    struct null_mqtt_state mqtt;
    struct null_nats_state nats;
    struct null_redis_state redis;
  } as;
};

/* Takes over a connection. */
void null_client_accept(struct null_house *house, int fd);
/* A WebSocket message in room for len bytes, which the caller fills; NULL when memory is out. */
uint8_t *null_client_begin(struct null_client *client, uint8_t opcode, size_t len, size_t *total);

#endif
