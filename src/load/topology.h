/* Topologies: who publishes to whom, as pure functions of client indices (no lists). Senders are the clients
 * 0..senders-1; recipients are numbered like the clients, but for queues, which are recipients as a whole. A sender
 * goes round its targets: its message `sequence` goes to target sequence % targets. */
#ifndef MUSTER_LOAD_TOPOLOGY_H
#define MUSTER_LOAD_TOPOLOGY_H

#include "driver/driver.h"
#include "measure/ledger.h"
#include "report/workload.h"

struct topology {
  enum topology_kind kind;
  uint32_t clients, senders;
  uint32_t targets; /* that one sender goes round */
  uint32_t groups;  /* of TOPOLOGY_GROUPS, and the queues of TOPOLOGY_QUEUE: 1 at least */
  bool shared_groups;
  bool group_echo; /* what goes to a group or a room comes back to its sender */
};

/* The shape of a workload; senders are the clients that really publish, whatever workload->senders says. */
struct topology topology_of(const struct workload *workload);

/* The shape with what a driver of such capabilities makes of it: whether a sender hears itself. */
struct topology topology_with(const struct workload *workload, unsigned capabilities);

/* Where a sender's message goes, as the driver is told. */
struct topology_address {
  enum publish_to to;
  uint32_t recipient; /* client or group */
};
struct topology_address topology_address(const struct topology *topology, uint32_t sender, uint32_t sequence);

/* As which recipient the ledger knows a client; UINT32_MAX: as none. */
static inline uint32_t topology_recipient(const struct topology *topology, uint32_t client) {
  if (topology->kind != TOPOLOGY_QUEUE) return client;
  return client < topology->senders ? UINT32_MAX : (client - topology->senders) % topology->groups;
}

/* The plan of a ledger of `slots` publishes; topology must outlive it. */
struct ledger_plan topology_plan(const struct topology *topology, uint64_t slots);

/* What answers a publish, and thereby frees its place among the outstanding ones. */
enum answer {
  ANSWER_ACK,
  ANSWER_ECHO, /* its delivery to the sender itself */
  ANSWER_NONE, /* nothing: the protocol has no ACKs */
};
enum answer topology_answer(const struct topology *topology, unsigned capabilities);

/* The driver capability that a topology needs, and what messages of it are called in texts ("group"). */
unsigned topology_capability(enum topology_kind kind);
const char *topology_messages(enum topology_kind kind);

#endif
