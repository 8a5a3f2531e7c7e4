/* The null peer: a server that does nothing. A forked process that speaks just enough of JuggleIM on one loopback port
 * to let muster's clients in, ACKs every publish at once and pushes it on without storing or checking anything. What
 * the generator reaches against it is the generator's own ceiling, and no server's. */
#ifndef MUSTER_LOAD_NULL_PEER_H
#define MUSTER_LOAD_NULL_PEER_H

#include "base/err.h"

#include <stdint.h>
#include <sys/types.h>

#define NULL_PEER_APP_KEY "null"
#define NULL_PEER_SECRET "null"

struct null_peer {
  pid_t pid;
  int control_fd; /* closing it ends the peer, as our own end does */
  char ws_url[64], api_url[64];
};

/* Starts one for users 0..clients-1 of a run. Private messages go to the user that they address, group messages to
 * everybody but their sender. Must be called before any thread runs. */
enum status null_peer_start(struct null_peer *out, uint32_t clients, struct err *err);
void null_peer_stop(struct null_peer *peer);

#endif
