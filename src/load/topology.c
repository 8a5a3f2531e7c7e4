#include "load/topology.h"

static bool all_send(enum topology_kind kind) {
  return kind == TOPOLOGY_RING || kind == TOPOLOGY_PAIRS || kind == TOPOLOGY_SELF;
}

struct topology topology_of(const struct workload *workload) {
  return (struct topology){
      .kind = workload->topology,
      .clients = workload->clients,
      .senders = all_send(workload->topology) ? workload->clients : workload->senders,
      .targets = workload_targets(workload),
      .groups = workload->groups > 1 ? workload->groups : 1,
      .shared_groups = workload->shared_groups,
  };
}

struct topology topology_with(const struct workload *workload, unsigned capabilities) {
  struct topology topology = topology_of(workload);
  bool to_many = topology.kind == TOPOLOGY_GROUPS || topology.kind == TOPOLOGY_ROOM;
  topology.group_echo = to_many && capabilities & CAPABILITY_GROUP_ECHO;
  return topology;
}

/* --- one recipient: ring, pairs, star, echo --- */

static uint32_t only_recipient(const struct topology *topology, uint32_t sender, uint32_t target) {
  switch (topology->kind) {
  case TOPOLOGY_PAIRS:
    return sender ^ 1;
  case TOPOLOGY_STAR: /* each sender begins at another receiver, so that none has all of them at once */
    return topology->senders + (uint32_t)(((uint64_t)sender + target) % topology->targets);
  case TOPOLOGY_ECHO:
    return sender;
  default:
    return sender + 1 == topology->clients ? 0 : sender + 1;
  }
}

static int32_t one_stream(const void *context, uint32_t sender, uint32_t target, uint32_t recipient) {
  const struct topology *topology = context;
  if (only_recipient(topology, sender, target) != recipient) return -1;
  return topology->kind == TOPOLOGY_STAR ? (int32_t)sender : 0;
}

static uint32_t one_count(const void *context, uint32_t sender, uint32_t target) {
  (void)context, (void)sender, (void)target;
  return 1;
}

static uint32_t one_recipient(const void *context, uint32_t sender, uint32_t target, uint32_t i) {
  (void)i;
  return only_recipient(context, sender, target);
}

/* --- one of many: a recipient is a queue --- */

static uint32_t queue_of(const struct topology *topology, uint32_t sender, uint32_t target) {
  return (uint32_t)(((uint64_t)sender + target) % topology->targets);
}

static int32_t queue_stream(const void *context, uint32_t sender, uint32_t target, uint32_t recipient) {
  return queue_of(context, sender, target) == recipient ? (int32_t)sender : -1;
}

static uint32_t queue_recipient(const void *context, uint32_t sender, uint32_t target, uint32_t i) {
  (void)i;
  return queue_of(context, sender, target);
}

/* --- everybody, or everybody else: room, broadcast, groups that all share --- */

static bool hears_itself(const struct topology *topology) {
  return topology->kind == TOPOLOGY_BROADCAST || topology->group_echo;
}

static int32_t all_stream(const void *context, uint32_t sender, uint32_t target, uint32_t recipient) {
  const struct topology *topology = context;
  if (sender == recipient && !hears_itself(topology)) return -1;
  return (int32_t)(sender * topology->targets + target);
}

static uint32_t all_count(const void *context, uint32_t sender, uint32_t target) {
  const struct topology *topology = context;
  (void)sender, (void)target;
  return topology->clients - !hears_itself(topology);
}

static uint32_t all_recipient(const void *context, uint32_t sender, uint32_t target, uint32_t i) {
  (void)target;
  return hears_itself(context) || i < sender ? i : i + 1;
}

/* --- groups that stand apart: client i is member i / groups of group i % groups --- */

static uint32_t members_of(const struct topology *topology, uint32_t group) {
  return topology->clients / topology->groups + (group < topology->clients % topology->groups);
}

static int32_t group_stream(const void *context, uint32_t sender, uint32_t target, uint32_t recipient) {
  const struct topology *topology = context;
  (void)target;
  if (sender == recipient && !hears_itself(topology)) return -1;
  if (sender % topology->groups != recipient % topology->groups) return -1;
  return (int32_t)(sender / topology->groups);
}

static uint32_t group_count(const void *context, uint32_t sender, uint32_t target) {
  const struct topology *topology = context;
  (void)target;
  return members_of(topology, sender % topology->groups) - !hears_itself(topology);
}

static uint32_t group_recipient(const void *context, uint32_t sender, uint32_t target, uint32_t i) {
  const struct topology *topology = context;
  (void)target;
  uint32_t member = hears_itself(topology) || i < sender / topology->groups ? i : i + 1;
  return sender % topology->groups + member * topology->groups;
}

/* --- nobody: self --- */

static int32_t no_stream(const void *context, uint32_t sender, uint32_t target, uint32_t recipient) {
  (void)context, (void)sender, (void)target, (void)recipient;
  return -1;
}

static uint32_t no_count(const void *context, uint32_t sender, uint32_t target) {
  (void)context, (void)sender, (void)target;
  return 0;
}

static uint32_t no_recipient(const void *context, uint32_t sender, uint32_t target, uint32_t i) {
  (void)context, (void)target, (void)i;
  return sender;
}

/* --- what the others see of it --- */

static void plan_one(const struct topology *topology, struct ledger_plan *plan) {
  plan->streams = topology->kind == TOPOLOGY_STAR ? topology->senders : 1;
  plan->fan_out = 1;
  plan->stream = one_stream;
  plan->recipients_of = one_count;
  plan->recipient = one_recipient;
}

static void plan_queues(const struct topology *topology, struct ledger_plan *plan) {
  plan->recipients = topology->groups;
  plan->streams = topology->senders;
  plan->fan_out = 1;
  plan->shared_rows = true;
  plan->stream = queue_stream;
  plan->recipients_of = one_count;
  plan->recipient = queue_recipient;
}

static void plan_all(const struct topology *topology, struct ledger_plan *plan) {
  plan->streams = topology->senders * topology->targets;
  plan->fan_out = all_count(topology, 0, 0);
  plan->stream = all_stream;
  plan->recipients_of = all_count;
  plan->recipient = all_recipient;
}

static void plan_groups(const struct topology *topology, struct ledger_plan *plan) {
  plan->streams = topology->senders / topology->groups + (topology->senders % topology->groups != 0);
  plan->fan_out = group_count(topology, 0, 0);
  plan->stream = group_stream;
  plan->recipients_of = group_count;
  plan->recipient = group_recipient;
}

static void plan_nobody(struct ledger_plan *plan) {
  plan->stream = no_stream;
  plan->recipients_of = no_count;
  plan->recipient = no_recipient;
}

struct ledger_plan topology_plan(const struct topology *topology, uint64_t slots) {
  struct ledger_plan plan = {
      .slots = slots,
      .senders = topology->senders,
      .recipients = topology->clients,
      .targets = topology->targets,
      .topology = topology,
  };
  switch (topology->kind) {
  case TOPOLOGY_RING:
  case TOPOLOGY_PAIRS:
  case TOPOLOGY_STAR:
  case TOPOLOGY_ECHO:
    plan_one(topology, &plan);
    break;
  case TOPOLOGY_QUEUE:
    plan_queues(topology, &plan);
    break;
  case TOPOLOGY_GROUPS:
    if (topology->shared_groups) {
      plan_all(topology, &plan);
    } else {
      plan_groups(topology, &plan);
    }
    break;
  case TOPOLOGY_ROOM:
  case TOPOLOGY_BROADCAST:
    plan_all(topology, &plan);
    break;
  case TOPOLOGY_SELF:
    plan_nobody(&plan);
    break;
  case TOPOLOGY_HOLD:
    plan_nobody(&plan);
    plan.recipients = 0;
    break;
  }
  return plan;
}

struct topology_address topology_address(const struct topology *topology, uint32_t sender, uint32_t sequence) {
  uint32_t target = sequence % topology->targets;
  switch (topology->kind) {
  case TOPOLOGY_GROUPS: {
    uint32_t group = topology->shared_groups ? (sender + target) % topology->targets : sender % topology->groups;
    return (struct topology_address){PUBLISH_TO_GROUP, group};
  }
  case TOPOLOGY_QUEUE:
    return (struct topology_address){PUBLISH_TO_QUEUE, queue_of(topology, sender, target)};
  case TOPOLOGY_ROOM:
    return (struct topology_address){PUBLISH_TO_ROOM, 0};
  case TOPOLOGY_BROADCAST:
    return (struct topology_address){PUBLISH_TO_ALL, 0};
  case TOPOLOGY_ECHO:
  case TOPOLOGY_SELF:
    return (struct topology_address){PUBLISH_TO_SELF, sender};
  default:
    return (struct topology_address){PUBLISH_TO_CLIENT, only_recipient(topology, sender, target)};
  }
}

enum answer topology_answer(const struct topology *topology, unsigned capabilities) {
  if (topology->kind == TOPOLOGY_ECHO) return ANSWER_ECHO;
  if (topology->kind == TOPOLOGY_HOLD) return ANSWER_NONE;
  return capabilities & CAPABILITY_ACKS ? ANSWER_ACK : ANSWER_NONE;
}

unsigned topology_capability(enum topology_kind kind) {
  static const unsigned needed[] = {
      [TOPOLOGY_RING] = CAPABILITY_PRIVATE,
      [TOPOLOGY_PAIRS] = CAPABILITY_PRIVATE,
      [TOPOLOGY_STAR] = CAPABILITY_PRIVATE,
      [TOPOLOGY_QUEUE] = CAPABILITY_QUEUE,
      [TOPOLOGY_GROUPS] = CAPABILITY_GROUP,
      [TOPOLOGY_ROOM] = CAPABILITY_ROOM,
      [TOPOLOGY_BROADCAST] = CAPABILITY_BROADCAST,
      [TOPOLOGY_ECHO] = CAPABILITY_ECHO,
      [TOPOLOGY_SELF] = CAPABILITY_OPERATIONS,
      [TOPOLOGY_HOLD] = 0,
  };
  return needed[kind];
}

const char *topology_messages(enum topology_kind kind) {
  static const char *const names[] = {
      [TOPOLOGY_RING] = "private messages",
      [TOPOLOGY_PAIRS] = "private messages",
      [TOPOLOGY_STAR] = "private messages",
      [TOPOLOGY_QUEUE] = "queues that consumers share",
      [TOPOLOGY_GROUPS] = "groups",
      [TOPOLOGY_ROOM] = "chatrooms",
      [TOPOLOGY_BROADCAST] = "broadcasts",
      [TOPOLOGY_ECHO] = "echoes",
      [TOPOLOGY_SELF] = "operations on oneself",
      [TOPOLOGY_HOLD] = "connections",
  };
  return names[kind];
}
