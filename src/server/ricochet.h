/* The Ricochet peer: a thread of its own with a libp2p node, over UDX and over TCP, in front of the service and its
 * store. What one turn of the loop brought is answered after one commit. Identity and store are files of the data
 * folder (ricochet.key, readable by its owner only; ricochet.db). */
#ifndef MUSTER_SERVER_RICOCHET_H
#define MUSTER_SERVER_RICOCHET_H

#include "base/err.h"
#include "server/ricochet_service.h"
#include "server/server.h"

struct ricochet_house;

/* What it has counted so far; connections and streams: now. */
struct ricochet_totals {
  uint64_t connections, streams; /* streams: with a request whose response has not left */
  uint64_t answered[RICOCHET_NOTIFY][RICOCHET_OUTCOMES];
};
void ricochet_house_read(const struct ricochet_house *house, struct ricochet_totals *out);

/* Fills config's ricochet addresses. */
enum status ricochet_house_start(struct ricochet_house **out, struct server_config *config, struct err *err);
/* Answers what came, commits, ends every connection. NULL is harmless. */
void ricochet_house_stop(struct ricochet_house *house);
/* The store failed: the server cannot go on. */
bool ricochet_house_failed(struct ricochet_house *house, struct err *err);

#endif
