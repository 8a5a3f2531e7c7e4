/* Topologies: who publishes to whom, as pure functions of client indices (no lists). Senders are the clients
 * 0..senders-1; recipients are numbered like the clients. */
#ifndef MUSTER_LOAD_TOPOLOGY_H
#define MUSTER_LOAD_TOPOLOGY_H

#include "measure/ledger.h"
#include "report/workload.h"

struct topology {
  enum topology_kind kind;
  uint32_t clients, senders;
};

struct topology topology_of(const struct workload *workload);

/* The recipient of a sender's private messages: its right-hand neighbour in the ring. */
uint32_t topology_neighbour(const struct topology *topology, uint32_t sender);

/* The plan of a ledger of `slots` publishes; topology must outlive it. */
struct ledger_plan topology_plan(const struct topology *topology, uint64_t slots);

#endif
