/* The benchmark servers of websocket-shootout in one: beside the messaging server, with threads, listeners and a port
 * of its own. By path: /ws, /json and / (JSON text; binary frames on the same connection speak the binary protocol),
 * /binary, /socket/websocket (Phoenix channels, version 1, or 2 with vsn=2.0.0) and /cable (ActionCable). A broadcast
 * goes to every open connection of the same path group, the sender included, in the form it came in; channels count as
 * open once joined.
 *
 * Promises that the originals did not all keep: a connection is in the broadcast set before its 101 (its join's reply,
 * its confirm_subscription) leaves; a result leaves after the broadcast was put on the output of each recipient, on
 * all threads; output that waits is bounded, and who does not read is dropped and counted (GET /metrics). */
#ifndef MUSTER_SERVER_SHOOTOUT_H
#define MUSTER_SERVER_SHOOTOUT_H

#include "base/err.h"
#include "server/server.h"

struct shootout;

/* What it has counted so far; connections: now. */
struct shootout_totals {
  uint64_t connections, echoes, broadcasts, copies, slow_readers_dropped;
};
void shootout_read(const struct shootout *house, struct shootout_totals *out);

/* One thread for each gateway of the config, which must outlive the server. *port: 0 takes a free one. */
enum status shootout_start(struct shootout **out, const struct server_config *config, uint16_t *port, struct err *err);

/* Stops reading, finishes the fan-outs under way, closes every connection with 1001. NULL is harmless. */
void shootout_stop(struct shootout *house);

#endif
