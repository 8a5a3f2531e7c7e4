/* Within the Ricochet driver: what a request of a scenario consists of (ricochet_steps.c), and how requests travel
 * (ricochet.c). */
#ifndef MUSTER_DRIVER_RICOCHET_INTERNAL_H
#define MUSTER_DRIVER_RICOCHET_INTERNAL_H

#include "base/rng.h"
#include "driver/driver.h"
#include "net/libp2p/peer.h"
#include "wire/ricochet.h"

/* A step of a request; each is one operation, or several of a kind. */
enum ricochet_step {
  STEP_END,
  STEP_SUBMIT,      /* to the client's recipient */
  STEP_SUBMIT_SELF, /* to itself; in a set-up as often as the scenario says */
  STEP_BATCH_SUBMIT,
  STEP_RETRIEVE,
  STEP_RETRIEVE_ONE, /* the message that the request itself sent */
  STEP_MARK_DELIVERED,
  STEP_PUT_DOCUMENT,
  STEP_GET_DOCUMENT,
  STEP_BATCH_PUT,
  STEP_WRITE_VAULT, /* batches until all documents are written; in a pass of the request's number */
  STEP_REWRITE_VAULT,
  STEP_LIST_VAULT, /* pages to the end */
  STEP_CREATE_FEED,
  STEP_APPEND,
  STEP_GET_ENTRY,
  STEP_CREATE_COLLECTION,
  STEP_PUT_ITEM,
  STEP_QUERY,
  STEP_CREATE_MAILBOX,
  STEP_DELETE_MAILBOX,
};
#define STEPS_MAX 4

struct ricochet_scenario {
  const char *name;
  uint8_t setup[STEPS_MAX], steps[STEPS_MAX]; /* enum ricochet_step, STEP_END behind the last */
  uint32_t setup_messages;
};
/* NULL: none of that name. "mixed" has no steps of its own: each request takes those of one of six others. */
const struct ricochet_scenario *ricochet_scenario_find(const char *name);
const struct ricochet_scenario *ricochet_scenario_mixed(uint64_t random);

/* What muster itself finds wrong with an answer; below every status. */
enum ricochet_finding {
  FINDING_NO_STATUS = 1, /* refused, and no status says why */
  FINDING_CONTENT,       /* success, but not what was stored, or not all of it */
  FINDING_MALFORMED,     /* no answer of this protocol */
  FINDING_STREAM_RESET,
  FINDING_NO_PROTOCOL, /* the server does not speak it */
  FINDING_TOO_LARGE,   /* the request does not fit a frame */
  FINDING_INSECURE,    /* of a connection: Noise failed, or the server is somebody else */
};
const char *ricochet_code_text(int32_t code);

#define CURSOR_MAX 260
#define UUID_TEXT 36

struct ricochet_plan; /* of the run */

/* One request of a client, from its first step to its last. */
struct ricochet_request {
  struct ricochet_request *next; /* of the client's, or of the free ones */
  struct client *client;
  struct libp2p_stream *stream; /* of the step that awaits its answer; NULL: none */
  const uint8_t *steps;
  uint64_t started_ns, due_ns; /* of the step; due_ns: when it is to be tried again, 0: it is not */
  int64_t number;              /* the client's own; of warm-ups -1, -2 ... */
  int64_t entry;               /* of a feed */
  uint32_t token, index;       /* index: of the step */
  uint32_t at;                 /* how far a step of several operations has come */
  uint32_t batch;              /* items of the operation under way */
  uint32_t retries;
  bool counts, failed; /* counts: it is the load room's, and not a set-up or a warm-up */
  char cursor[CURSOR_MAX];
  char message_id[UUID_TEXT + 1];
};

struct ricochet_plan {
  struct libp2p *node; /* of this process; NULL until the first client connects */
  struct multiaddr to;
  struct libp2p_identity *identity;      /* one for each client */
  char (*recipient)[PEER_ID_TEXT_BYTES]; /* the same */
  const struct ricochet_scenario *scenario;
  struct view payload, payload_base64, item; /* item: the payload as a collection keeps it */
  char payload_etag[72];
  uint32_t batch_size, documents, warmup_requests, clients;
  int document_digits; /* of the numbers in paths, which sort as texts */
  struct rng rng;
  struct buf out, scratch;        /* of one step at a time */
  struct ricochet_request *spare; /* free ones */
};

/* What came of an answer. */
struct ricochet_result {
  int32_t code; /* 0: success */
  uint32_t items;
  int64_t hint_ms; /* -1: none */
  struct view error;
};

enum operation_kind ricochet_step_operation(enum ricochet_step step);
enum ricochet_protocol ricochet_step_protocol(enum ricochet_step step);
/* Writes the step's frame into plan->out; false when memory is out or it does not fit a frame. */
bool ricochet_step_write(struct ricochet_plan *plan, struct ricochet_request *request);
/* Judges the answer and notes what later steps need. True when the step is over. */
bool ricochet_step_read(
    struct ricochet_plan *plan, struct ricochet_request *request, struct view body, struct ricochet_result *out);

#endif
