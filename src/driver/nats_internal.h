/* What the two halves of the NATS driver share: the plan, which the set-up makes (nats_setup.c), with JetStream's
 * stream and consumers, and which the connections use (nats.c). */
#ifndef MUSTER_DRIVER_NATS_INTERNAL_H
#define MUSTER_DRIVER_NATS_INTERNAL_H

#include "driver/driver.h"
#include "driver/name.h"

#define NATS_PREFIX_BYTES 32
#define NATS_NAME_BYTES 80 /* of a subject, and of a consumer */
#define NATS_CONNECT_BYTES 2048
#define NATS_QUEUE_GROUP "consumers"
#define NATS_TEXT_LIMIT 65536 /* of the API's answers */
#define NATS_NO_RESPONDERS 503

enum nats_sid { SID_MESSAGES = 1, SID_INBOX };
enum nats_ack { ACK_NONE, ACK_FLUSH, ACK_JETSTREAM };

/* What all clients share. */
struct nats_plan {
  enum nats_ack ack;
  char prefix[NATS_PREFIX_BYTES]; /* of every subject: "muster.0123456789abcdef" */
  char stream[NATS_PREFIX_BYTES]; /* its name */
  char connect[NATS_CONNECT_BYTES];
  size_t connect_len;
  struct view headers; /* empty unless asked for */
  bool in_memory;      /* the stream's storage */
  bool stream_exists;
  bool pulls;               /* consumers ask for their messages */
  uint32_t batch;           /* of one pull */
  uint32_t max_ack_pending; /* of a consumer; 0: as the server does by itself */
  uint32_t payload_limit;
  uint64_t max_payload; /* the server's */
  char delivery[160];
};

static inline bool nats_is_jetstream(const struct driver_run *run) {
  const struct nats_plan *plan = run->population;
  return plan->ack == ACK_JETSTREAM;
}

/* Durable consumers: one of each queue, or one of each receiver of a backlog. */
static inline bool nats_has_consumers(const struct driver_run *run) {
  return nats_is_jetstream(run) && (run->settings.queues > 0 || run->settings.backlog);
}

/* The name of such a consumer, "queue-3" or "client-3". */
static inline struct view nats_consumer_name(const struct driver_run *run, uint32_t number, char out[NATS_NAME_BYTES]) {
  return name_numbered(out, "", run->settings.queues > 0 ? "queue-" : "client-", number);
}

/* Where the durable consumer of a queue pushes to; outside the subjects that the stream takes in. */
static inline struct view nats_push_subject(const struct nats_plan *plan, uint32_t queue, char out[NATS_NAME_BYTES]) {
  size_t at = name_text(out, name_text(out, 0, view_str("_INBOX.")), view_str(plan->prefix));
  return view_of(out, name_number(out, name_text(out, at, view_str(".queue.")), queue));
}

/* driver.describe, without, prepare and release. */
void nats_tell_settings(const struct driver_settings *settings, struct driver_facts *out);
unsigned nats_without(const struct driver_settings *settings);
enum status nats_prepare(struct driver_run *run, struct err *err);
void nats_release(struct driver_run *run);

#endif
