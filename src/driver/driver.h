/* Drivers: how a simulated client speaks one protocol. A driver is a const struct of callbacks and numbers; it knows
 * the wire and the net, never the workload. It reports what happened by calling the client (the hooks below); the load
 * room counts. A new protocol is one file here, one codec in wire/, one line in the registry (docs/drivers.md). */
#ifndef MUSTER_DRIVER_DRIVER_H
#define MUSTER_DRIVER_DRIVER_H

#include "base/arena.h"
#include "base/err.h"
#include "base/facts.h"
#include "base/view.h"
#include "measure/operations.h"
#include "measure/tally.h"
#include "net/stream.h"
#include "wire/payload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
struct driver_run;

enum capability {
  CAPABILITY_ACKS = 1 << 0,
  CAPABILITY_PRIVATE = 1 << 1,
  CAPABILITY_GROUP = 1 << 2,
  CAPABILITY_ROOM = 1 << 3,
  CAPABILITY_BROADCAST = 1 << 4,
  CAPABILITY_ECHO = 1 << 5,
  CAPABILITY_OPERATIONS = 1 << 6,
  CAPABILITY_GROUP_ECHO = 1 << 7, /* what goes to a group or a room comes back to its sender too */
  CAPABILITY_BACKLOG = 1 << 8,    /* what is sent to users who are offline waits for them */
  CAPABILITY_QUEUE = 1 << 9,      /* consumers share a queue: each message goes to one of them */
};

/* What only MQTT asks. */
struct mqtt_settings {
  const char *version;      /* "3.1.1" or "5"; NULL: 5 */
  const char *topic_prefix; /* in front of every topic; NULL: "muster" */
  uint32_t qos;             /* of publishes and subscriptions: 0, 1 or 2 */
  uint32_t receive_maximum; /* announced by clients of version 5; 0: none */
  bool keep_session;        /* across connections */
  bool retain;              /* publishes are kept as the last one of their topic */
};

/* What only Ricochet asks: what a request is, and how much of it. */
struct ricochet_settings {
  const char *scenario;     /* "msa" ...; NULL: "mixed" */
  uint32_t batch_size;      /* documents or messages of one batch request */
  uint32_t documents;       /* of a vault that is synchronized */
  uint32_t warmup_requests; /* that all clients together make before they are established */
};

/* What the load room wants provisioned and how; filled before prepare, read-only afterwards. */
struct driver_settings {
  const char *target;        /* as the user gave it, for messages */
  const char *app_key;       /* tenant; NULL where the protocol has none */
  const char *secret;        /* from the environment; never logged; NULL when absent */
  const char *api_url;       /* of the set-up API; NULL: derived from the target */
  const char *navigator_url; /* NULL: not asked */
  struct url url;            /* the target, parsed */
  uint64_t run_id;
  uint32_t clients;
  uint32_t workers; /* processes that share them */
  uint32_t groups;  /* 0: none; client i is a member of group i % groups, of all when shared_groups */
  bool shared_groups;
  uint32_t room_members; /* of the one chatroom of a room workload: clients 0..n-1; 0: no room */
  bool broadcast;        /* publishes go to all */
  uint32_t queues;       /* 0: none; client i from pure_senders on consumes from queue (i - pure_senders) % queues */
  uint32_t pure_senders; /* clients 0..n-1 publish and are no recipients, the others receive only; 0: not so */
  uint32_t setup_concurrency;
  uint32_t payload_bytes;
  uint64_t deadline_ns; /* absolute: when set-up must be over */
  bool store, count;    /* JuggleIM's message flags */
  bool obfuscate;       /* JuggleIM's XOR mode */
  /* Clients pure_senders.. stay offline until all is sent; prepare has made them known to the server (visit.h, where
   * that takes a login). They first pull all that waits for them; each message is reported through
   * client_hooks.delivered, and established comes when the backlog has been read to its end. */
  bool backlog;
  const char *origin;      /* Origin header of the upgrade; NULL: as the driver does by itself */
  uint64_t keep_alive_ns;  /* between two keep-alives of a client; 0: as the driver does by itself */
  bool tls_verify;         /* of every TLS connection, the set-up API's included */
  const char *tls_ca_file; /* NULL: the system's */
  const char *tls_certificate_file, *tls_key_file; /* of the clients; NULL: none */
  const char *user;     /* whom all clients log in as; NULL: nobody, or the driver's own users */
  const char *password; /* from the environment; never logged; NULL when absent */
  struct mqtt_settings mqtt;
  struct ricochet_settings ricochet;
  uint64_t seed;
  const volatile int *interrupted; /* set by a signal: stop soon */
};

/* One run's shared state: made by prepare in the control process, inherited by the workers through fork. */
struct driver_run {
  const struct driver *driver;
  struct driver_settings settings;
  struct arena arena;      /* of everything below */
  void *population;        /* the driver's own: user ids, tokens, groups */
  struct address address;  /* where clients connect */
  struct tls_context *tls; /* made by prepare; NULL: plain */
  char server_name[256];   /* SNI and Host */
  char server_version[64]; /* what the target says of itself, or "" */
  /* The driver's own, unless prepare finds that the settings leave less, or make it more exact. Texts that live as long
   * as the run. */
  unsigned capabilities;
  const char *title, *ack_meaning, *delivery;
  uint32_t left_behind;        /* by release: clients of whom the target keeps something that was to be taken away */
  bool redelivers;             /* by prepare: what is not acknowledged in time comes again */
  const char *const *counters; /* NULL: it tells nothing that is counted in this run */
  uint64_t bytes_sent;         /* handed to the transport by this process; counted by the driver */
  uint64_t bytes_received;     /* the same of a driver with its own transport; otherwise the load room counts them */
  /* What counters names, of publishes of the measure phase; counted by the driver in this process. */
  uint64_t counted[TALLY_EXTRAS];
};

enum publish_to {
  PUBLISH_TO_CLIENT, /* privately, to client `recipient` */
  PUBLISH_TO_GROUP,  /* to group `recipient`, of which the sender is a member */
  PUBLISH_TO_QUEUE,  /* to queue `recipient`; the sender is none of its consumers */
  PUBLISH_TO_ROOM,   /* to the run's one chatroom, of which the sender is a member */
  PUBLISH_TO_ALL,    /* broadcast: to every connection of the server, the sender's included */
  PUBLISH_TO_SELF,   /* echo: the sender is the recipient, its delivery the answer, no ACK; operations: its own store */
};

/* A publish as the load room asks for it: where to, and the header that the driver must put into the message
 * with payload_write in its form (payload.written_ns is already stamped). */
struct publish {
  enum publish_to to;
  uint32_t recipient; /* client index of PUBLISH_TO_CLIENT, group or queue */
  uint32_t token;     /* publish_token of the payload; comes back in client_acked */
  struct payload payload;
};

/* Names a publish among those of its sender, so that a driver whose ACK returns the payload keeps no table. */
static inline uint32_t publish_token(const struct payload *payload) {
  return payload->sequence << 1 | (payload->phase == PAYLOAD_MEASURE);
}

enum publish_result {
  PUBLISH_WRITTEN, /* in the connection's buffer */
  PUBLISH_BLOCKED, /* not now (window of the protocol, or no memory): stays due */
};

/* One operation came to its end. */
struct operation_done {
  uint32_t operation;  /* index in driver.operations */
  uint32_t token;      /* of the request that it is part of */
  int32_t code;        /* 0: the status says success, and what came is what was asked for */
  uint32_t items;      /* that succeeded */
  uint64_t started_ns; /* when it was written */
  struct view error;   /* the server's text, or muster's own; may be empty */
};

/* An option of a run that only some drivers read. */
struct driver_option {
  const char *name;    /* as on the command line; NULL behind the last */
  const char *schemes; /* only where a URL of the run has one of these, comma-separated; NULL: always */
};

/* What every driver with TLS reads. */
#define DRIVER_TLS_OPTIONS(schemes)                                                                                    \
  {"ca-file", schemes}, {"insecure", schemes}, {"cert", schemes}, {                                                    \
    "key", schemes                                                                                                     \
  }

/* What the settings come to, defaults filled in, for reports. */
struct driver_facts {
  struct facts options; /* by the names of the command line */
  struct facts target;  /* by those of the target's query */
  struct facts key;     /* of both, what must be equal before two reports are compared */
};

struct driver {
  const char *name;        /* "juggle" */
  const char *schemes;     /* target schemes that choose it, comma-separated */
  const char *title;       /* "JuggleIM (protobuf over WebSocket)" */
  const char *ack_meaning; /* what an ACK says; "none" without ACKs */
  const char *delivery;    /* delivery semantics, part of the comparability key */
  unsigned capabilities;   /* enum capability */
  uint16_t default_port;
  enum payload_form payload_form;
  uint32_t payload_min_bytes;
  uint32_t outstanding_max; /* publishes without an answer on one connection */
  uint32_t rate_limit;      /* publishes and queries a second that servers usually allow on one; 0: not known */
  uint64_t tick_ns;         /* interval of tick, unless settings.keep_alive_ns says another; 0: none */
  size_t client_bytes;      /* driver state of one client, zeroed, behind struct client */
  /* Connections begin in the clear although run->tls is there: the driver starts TLS itself (stream_start_tls), and
   * opened is called a second time when it is through. */
  bool starts_tls;
  /* Operations that a request of `operate` consists of; NULL: the driver has none. */
  const struct operation_name *operations;
  /* What the server tells that no other counter says, by its names in the report; NULL behind the last. */
  const char *counters[TALLY_EXTRAS];

  /* The options that it reads, of those that not every driver does; NULL: none. Others are refused. */
  const struct driver_option *options;
  /* Tells what the settings come to; asks nothing of the server, and secrets have no place in it. NULL: nothing that a
   * report has not got by itself. */
  void (*describe)(const struct driver_settings *settings, struct driver_facts *out);

  /* Capabilities that the settings take away, as far as they say so before anything is asked of the server; NULL: none.
   */
  unsigned (*without)(const struct driver_settings *settings);

  /* Checks the settings and provisions the population; blocking, but keeps to settings.deadline_ns and interrupted.
   * Fills run->population, address, server_name, server_version and tls. When it fails it leaves nothing behind. */
  enum status (*prepare)(struct driver_run *run, struct err *err);
  void (*release)(struct driver_run *run);

  /* A transport of the driver's own: starts to connect on the loop, and the outcome comes through established or
   * failed, never from within; client->stream is then not used, and released ends it. NULL: the load room connects
   * client->stream, and opened and received are called. */
  enum status (*connect)(struct client *client, struct loop *loop);
  void (*opened)(struct client *client);                                /* the transport is up: start the handshake */
  size_t (*received)(struct client *client, uint8_t *data, size_t len); /* as stream_ops.received */
  enum publish_result (*publish)(struct client *client, const struct publish *publish);
  /* In a run of operations (PUBLISH_TO_SELF) instead of publish: one request of the scenario, which is one operation or
   * several, and answered with acked: code 0 only when all of them succeeded. */
  enum publish_result (*operate)(struct client *client, const struct publish *publish);
  void (*tick)(struct client *client, uint64_t now_ns); /* keep-alive */
  void (*closing)(struct client *client);               /* say good-bye; the load room closes the stream afterwards */
  void (*released)(struct client *client);              /* the stream is gone: free what the state holds */
  /* The client will connect again after released: resets its state but for what a real client remembers (a cursor).
   * NULL: nothing is remembered, the load room zeroes the state. */
  void (*reconnecting)(struct client *client);

  /* Text for a server's code in reports, or NULL. */
  const char *(*code_text)(int32_t code);
};

/* What a driver tells the load room. */
struct client_hooks {
  void (*established)(struct client *client); /* may publish and will be delivered to */
  /* Connected and logged in, but with set-up of its own before established: ends the clocks of the connect. */
  void (*logged_in)(struct client *client);
  /* Ends the client: before established it counts as failed, afterwards as dropped. code: the server's, or a cause.
   * The stream is closed by the hook; the driver must touch neither afterwards and return 0 from received. */
  void (*failed)(struct client *client, int32_t code);
  void (*acked)(struct client *client, uint32_t token, int32_t code); /* code 0: accepted */
  /* Of an operation of a request: it was written, and it is answered. retried: its answer was a refusal with a hint,
   * and it is written again after wait_ns. */
  void (*operation_started)(struct client *client, uint32_t operation, uint32_t token);
  void (*operation_done)(struct client *client, const struct operation_done *done);
  void (*operation_retried)(struct client *client, uint32_t token, uint64_t wait_ns);
  /* The message content, a payload of the form. overlap: the protocol itself may have brought this message before by
   * another path (pushed and pulled), so that a repetition is no duplicate. */
  void (*delivered)(struct client *client, struct view content, bool overlap);
  /* Asks for a tick at due_ns, if that is before the next regular one. */
  void (*wake)(struct client *client, uint64_t due_ns);
};

/* What a client is connected for: the run, or a visit outside of it (visit.h), of which the server shall remember it or
 * not. */
enum visit { VISIT_NONE, VISIT_TO_BE_KNOWN, VISIT_TO_BE_FORGOTTEN };

/* The part of a simulated client that a driver sees; the driver's state lies right behind it. */
struct client {
  struct stream stream;
  const struct client_hooks *hooks;
  struct driver_run *run;
  uint32_t index; /* in the population */
  uint8_t state;  /* enum client_state of the load room */
  uint8_t visit;  /* enum visit */
};

static inline void *client_state(struct client *client) {
  return client + 1;
}

/* The interval of tick in this run; 0: none. */
static inline uint64_t driver_tick_ns(const struct driver_run *run) {
  bool asked = run->driver->tick_ns > 0 && run->settings.keep_alive_ns > 0;
  return asked ? run->settings.keep_alive_ns : run->driver->tick_ns;
}

/* The queue from which client `index` consumes; false when it consumes from none. */
static inline bool driver_queue_of(const struct driver_settings *settings, uint32_t index, uint32_t *queue) {
  if (settings->queues == 0 || index < settings->pure_senders) return false;
  *queue = (index - settings->pure_senders) % settings->queues;
  return true;
}

/* The driver for a URL scheme or a driver name; NULL when there is none. */
const struct driver *driver_find(const char *scheme_or_name);
/* Whether the driver reads an option; scheme: of a URL of the run, NULL: of any. */
bool driver_reads(const struct driver *driver, const char *option, const char *scheme);
/* Whether it takes such a target: one of its schemes, or what stands before the '+' of one (ws of ws+json). */
bool driver_takes(const struct driver *driver, const char *scheme);
/* All drivers, NULL at the end. */
const struct driver *const *driver_all(void);

extern const struct driver driver_juggle;
extern const struct driver driver_mqtt;
extern const struct driver driver_shootout_json, driver_shootout_binary, driver_shootout_phoenix,
    driver_shootout_actioncable;
extern const struct driver driver_nats, driver_redis, driver_socketio, driver_stomp, driver_ricochet;

#endif
