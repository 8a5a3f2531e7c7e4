/* The addresses that a WebSocket port of the server is open on: a first one, and more that are served alike, so that
 * clients have more pairs of addresses, and so more source ports, to connect over. */
#ifndef MUSTER_SERVER_DOORS_H
#define MUSTER_SERVER_DOORS_H

#include "net/stream.h"

#define DOORS_MAX 16

struct door_addresses {
  struct address address[DOORS_MAX]; /* each one once */
  uint32_t count;
};

/* host: a name or literal. more: as address_ranges_parse reads it; NULL: none. STATUS_USAGE when they are too many or
 * of several families. */
enum status door_addresses_read(
    const char *host, const char *more, uint16_t port, struct door_addresses *out, struct err *err);

struct door {
  struct listener listener;
  struct doors *doors;
};

/* One loop's listeners. */
struct doors {
  struct door door[DOORS_MAX];
  uint32_t open;
  void (*accepted)(struct doors *doors, int fd);
};

/* Listens on all of them at one port; port 0 takes one that is free at the first, and the addresses are updated with
 * it. joins as in struct listener. On failure the doors that are open already are left for doors_close. */
enum status doors_open(
    struct doors *doors, struct loop *loop, struct door_addresses *addresses, bool joins, struct err *err);
void doors_close(struct doors *doors);

#endif
