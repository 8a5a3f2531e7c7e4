/* A simulated client as the load room sees it: its connection's life, what it owes, and the hooks that turn what the
 * driver tells into counts. */
#ifndef MUSTER_LOAD_CLIENT_H
#define MUSTER_LOAD_CLIENT_H

#include "driver/driver.h"
#include "load/shared.h"
#include "net/timer.h"

enum client_state {
  CLIENT_IDLE, /* not started */
  CLIENT_CONNECTING,
  CLIENT_ESTABLISHED,
  CLIENT_AWAY, /* lost its connection and will connect again */
  CLIENT_OVER, /* failed, dropped or closed */
};

/* Clients per source address when several are used: a quarter of the usual port range. connect() tries the even ports
 * first and looks at each one in turn, so that an address with most of them taken costs milliseconds a connection. */
#define CLIENT_SOURCE_PORTS 7000

/* Source addresses that so many connections are spread over; each has its ports anew towards each target address. */
static inline uint32_t client_source_addresses(uint32_t connections, uint32_t target_addresses) {
  uint64_t ports = (uint64_t)CLIENT_SOURCE_PORTS * target_addresses;
  return (uint32_t)((connections + ports - 1) / ports);
}

/* What a sender owes and awaits in one phase. Sequences below `oldest` are answered or given up. */
struct sending {
  struct backlog backlog;
  uint32_t oldest, outstanding;
};

struct load_client {
  struct worker *worker;
  struct timer tick;   /* connect deadline, then keep-alive */
  struct timer answer; /* earliest moment at which a publish may have waited too long */
  struct sending sending[TRAFFIC_PHASES];
  uint64_t started_ns, connected_ns, opened_ns; /* of the connect */
  uint64_t lost_ns, returned_ns;                /* the last loss, and when the client was back; 0: never */
  uint32_t failures;                            /* to connect again, in a row */
  bool linked;                                  /* a transport of the driver's own is under way or up */
  bool finished;      /* its part of the closed loops is over: everything was sent and answered, or cannot be */
  struct client base; /* last: the driver's state lies behind it */
};

static inline size_t client_stride(const struct driver *driver) {
  return (sizeof(struct load_client) + driver->client_bytes + 15) / 16 * 16;
}

/* Starts to connect; the outcome comes through the worker's counters. */
void client_connect(struct load_client *client);

/* The storm: an established client loses its connection and returns after its backoff, again and again until it is
 * back. */
void client_lose(struct load_client *client);

/* A message of the phase fell due: sends it, or keeps it due, or writes it off when the client has no connection.
 * offset_ns: when, from the start of the phase. */
void client_due(struct load_client *client, enum traffic_phase phase, uint32_t sequence, uint64_t offset_ns);

/* The same, long after the end of the phase: writes the message off. */
void client_pass_over(struct load_client *client, enum traffic_phase phase, uint32_t sequence, uint64_t offset_ns);

/* Closed loops: publishes until as many answers are awaited as the workload says; every answer then makes the next
 * publish fall due. */
void client_start_loop(struct load_client *client, enum traffic_phase phase);

/* Writes off what is still due in a phase that is over. */
void client_give_up_backlog(struct load_client *client, enum traffic_phase phase, enum cause cause);

/* Ends a client at teardown: what is unanswered is timed out with cause; good_bye: through the driver. The stream is
 * still open afterwards when good_bye was said; client_close closes it. */
void client_settle(struct load_client *client, enum cause cause, bool good_bye);
void client_close(struct load_client *client);

#endif
