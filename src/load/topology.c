#include "load/topology.h"

struct topology topology_of(const struct workload *workload) {
  bool ring = workload->topology == TOPOLOGY_RING;
  return (struct topology){workload->topology, workload->clients, ring ? workload->clients : workload->senders};
}

uint32_t topology_neighbour(const struct topology *topology, uint32_t sender) {
  return sender + 1 == topology->clients ? 0 : sender + 1;
}

static int32_t ring_stream(const void *context, uint32_t sender, uint32_t recipient) {
  return topology_neighbour(context, sender) == recipient ? 0 : -1;
}

static uint32_t ring_recipients(const void *context, uint32_t sender) {
  (void)context, (void)sender;
  return 1;
}

static uint32_t ring_recipient(const void *context, uint32_t sender, uint32_t i) {
  (void)i;
  return topology_neighbour(context, sender);
}

static int32_t group_stream(const void *context, uint32_t sender, uint32_t recipient) {
  (void)context;
  return sender == recipient ? -1 : (int32_t)sender;
}

static uint32_t group_recipients(const void *context, uint32_t sender) {
  const struct topology *topology = context;
  (void)sender;
  return topology->clients - 1;
}

static uint32_t group_recipient(const void *context, uint32_t sender, uint32_t i) {
  (void)context;
  return i < sender ? i : i + 1;
}

struct ledger_plan topology_plan(const struct topology *topology, uint64_t slots) {
  bool ring = topology->kind == TOPOLOGY_RING;
  return (struct ledger_plan){
      .slots = slots,
      .senders = topology->senders,
      .recipients = topology->clients,
      .streams = ring ? 1 : topology->senders,
      .fan_out = ring ? 1 : topology->clients - 1,
      .stream = ring ? ring_stream : group_stream,
      .recipients_of = ring ? ring_recipients : group_recipients,
      .recipient = ring ? ring_recipient : group_recipient,
      .topology = topology,
  };
}
