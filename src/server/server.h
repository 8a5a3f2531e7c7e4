/* musterd: a messaging server with production semantics, wire-compatible with JuggleIM. Gateway threads (one loop
 * each) own the connections; one core thread owns all state and is the store's only writer (group commit); a small
 * thread pool serves the HTTP API. */
#ifndef MUSTER_SERVER_SERVER_H
#define MUSTER_SERVER_SERVER_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum ack_policy {
  ACK_DURABLE,  /* PublishAck after the commit that holds the message (default) */
  ACK_RECEIVED, /* PublishAck once the message has its id, time and sequence */
};

/* Of chatroom_history: default and bound. */
#define SERVER_CHATROOM_HISTORY 200
#define SERVER_CHATROOM_HISTORY_MAX 10000
/* Of message_max_bytes: a longer one would never fit into the core's queue. */
#define SERVER_MESSAGE_MAX (64u * 1024 * 1024)

/* Where the Ricochet peer listens over one transport. */
struct ricochet_place {
  uint16_t port;       /* 0: a free one */
  char multiaddr[360]; /* with the peer id; filled in by server_start */
};

struct server_config {
  const char *bind_host; /* "127.0.0.1" */
  const char *bind_more; /* further addresses of the WebSocket and shootout ports (server/doors.h); NULL: none */
  uint16_t api_port, navigator_port, ws_port, admin_port; /* 0: a free one. Defaults 9001, 9002, 9003, 8090 */
  const char *data_dir;                                   /* folder of the store; made when missing */
  enum ack_policy ack;
  uint32_t gateways;        /* threads; 0: half the cores, at least one, and as many as max_connections needs */
  uint32_t max_connections; /* that must find room, in several tables of open files if need be; 0: in one */
  bool rate_limits;         /* publishes and queries per connection: true unless asked off explicitly */
  uint32_t rate_limit_per_sec, rate_limit_burst; /* 100 and 10 */
  uint32_t push_window; /* direct pushes without an ack before a session is notified instead; 1: as the original */
  uint32_t session_out_bytes; /* output that may wait for one session */
  uint32_t message_max_bytes; /* of one WebSocket message */
  uint32_t chatroom_history;  /* messages that a chatroom keeps; 0: SERVER_CHATROOM_HISTORY */
  uint32_t slow_reader_ms;    /* a session whose output does not move for so long is dropped */
  uint32_t ping_interval_ms;  /* WebSocket Pings of the server; 0: 5,000, more with many sessions (pings.h) */
  uint32_t login_deadline_ms; /* from accept to a successful login: 10,000 */
  uint32_t read_deadline_ms;  /* without a data frame or a Pong: 60,000 */
  const char *admin_secret;   /* of the signed admin API; never logged. NULL: admin calls are refused */
  /* A tenant made at start unless it exists; NULL: none. */
  const char *app_key, *app_secret;
  const char *tls_certificate, *tls_key; /* NULL: plain ws */
  bool shootout;                         /* serves websocket-shootout's protocols too (server/shootout.h); off */
  uint16_t shootout_port;                /* 0: a free one */
  bool ricochet;                         /* serves Ricochet's protocols too (server/ricochet.h); off */
  const char *ricochet_host;             /* NULL: bind_host */
  struct ricochet_place ricochet_udx, ricochet_tcp;
  char ricochet_peer[64];     /* peer id; filled in by server_start */
  uint32_t ricochet_rate;     /* requests per second and peer; 0: no limit */
  uint32_t ricochet_messages; /* of one mailbox; 0: 1,000 */
};

/* Fills in every default. */
void server_config_defaults(struct server_config *config);

struct server;

/* Opens the store, binds every port and starts all threads. On OK the config's ports and number of gateways hold what
 * was chosen. The config is copied, the texts in it are not: they must outlive the server. */
enum status server_start(struct server **out, struct server_config *config, struct err *err);

/* Stops accepting, answers what was received, commits, closes every connection and the store. Nothing acked is lost. */
void server_stop(struct server *server);

/* Ends every JuggleIM connection at once, as when a machine dies; who comes back is welcome. */
void server_drop_sessions(struct server *server);

/* Set once the server cannot go on (the store failed): the caller should stop and exit; err says why. */
bool server_failed(struct server *server, struct err *err);

#define SERVER_VERSION_PREFIX "musterd-"

#endif
