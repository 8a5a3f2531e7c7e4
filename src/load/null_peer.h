/* The null peer: a server that does nothing. A forked process that speaks just enough of a protocol on one loopback
 * port to let muster's clients in, ACKs every publish at once and pushes it on without storing or checking anything.
 * What the generator reaches against it is the generator's own ceiling, and no server's. */
#ifndef MUSTER_LOAD_NULL_PEER_H
#define MUSTER_LOAD_NULL_PEER_H

#include "base/err.h"
#include "driver/driver.h"
#include "report/workload.h"

#include <stdint.h>
#include <sys/types.h>

#define NULL_PEER_APP_KEY "null"
#define NULL_PEER_SECRET "null"

struct null_peer {
  pid_t pid;
  int control_fd;   /* closing it ends the peer, as our own end does */
  char target[640]; /* URL to drive; path and query are those of the workload's target */
  char api_url[64]; /* of JuggleIM */
};

/* Whether it can answer this workload over this driver: STATUS_USAGE with one line when it cannot. */
enum status null_peer_check(const struct workload *workload, const struct driver *driver, struct err *err);

/* Starts one for a run of that workload. Of the workload's target only the scheme, the path and the query count. Must
 * be called before any thread runs. */
enum status null_peer_start(
    struct null_peer *out, const struct workload *workload, const struct driver *driver, struct err *err);
void null_peer_stop(struct null_peer *peer);

#endif
