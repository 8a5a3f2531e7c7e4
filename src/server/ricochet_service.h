/* The Ricochet peer without its transport: a request's bytes in, a response's bytes out, over the store. Checks in the
 * order of the original: rate limit, draining, admission, storage budget (writes only), JSON, authorisation, the
 * operation itself. Whoever calls it holds responses back until the store's commit. */
#ifndef MUSTER_SERVER_RICOCHET_SERVICE_H
#define MUSTER_SERVER_RICOCHET_SERVICE_H

#include "server/ricochet_store.h"
#include "wire/ricochet.h"

#include <stdatomic.h>

struct ricochet_limits {
  uint32_t max_messages;   /* of a mailbox (1,000) */
  uint32_t retention_days; /* (30) */
  uint32_t mailboxes_each; /* of one owner (100) */
  uint32_t mailboxes;      /* of all (100,000) */
  uint32_t feed_entries;   /* of one feed (10,000) */
  uint32_t in_flight;      /* requests whose responses are held back (1,000); more are shed with 503 */
  uint32_t rate_per_sec;   /* requests of one peer; 0: no limit */
  uint64_t storage_bytes;  /* of the store (10 GB); then writes get 507 */
  uint64_t waiting_bytes;  /* of responses that have not left (256 MiB); then requests are shed with 503 */
};
void ricochet_limits_defaults(struct ricochet_limits *out);

/* What the service keeps of one connected peer; zeroed but for the id. */
struct ricochet_peer {
  char id[64];
  double tokens; /* of the rate limit */
  int64_t refilled_ms;
};

/* How requests are answered: the statuses of Ricochet, 0 where a refusal has none. */
#define RICOCHET_OUTCOMES 14
extern const int32_t ricochet_outcomes[RICOCHET_OUTCOMES];

struct ricochet_service {
  struct ricochet_store *store;
  struct ricochet_limits limits;
  bool draining;
  uint32_t in_flight;     /* kept by the caller */
  uint64_t waiting_bytes; /* of responses that are not over yet; kept by the caller */
  /* A message landed in a private mailbox. The views live during the call. */
  void (*arrived)(void *context, struct view owner, struct view folder);
  void *context;
  /* Kept by the service. */
  uint64_t calls, store_bytes;
  atomic_uint_fast64_t answered[RICOCHET_NOTIFY][RICOCHET_OUTCOMES]; /* requests; anyone may read them */
};

/* Appends the response frame to out; nothing when memory is out, which ends the stream. */
void ricochet_serve(struct ricochet_service *service, enum ricochet_protocol protocol, struct ricochet_peer *peer,
    struct view body, int64_t now_ms, struct buf *out);

#endif
