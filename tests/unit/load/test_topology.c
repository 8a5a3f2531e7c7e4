#include "load/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Said again and naively: does recipient hear the message that sender sends as its sequence-th? */
static bool hears(const struct workload *w, bool echo, uint32_t sender, uint32_t sequence, uint32_t recipient) {
  uint32_t receivers = w->clients - w->senders;
  switch (w->topology) {
  case TOPOLOGY_RING:
    return recipient == (sender + 1) % w->clients;
  case TOPOLOGY_PAIRS:
    return recipient / 2 == sender / 2 && recipient != sender;
  case TOPOLOGY_STAR:
    return recipient == w->senders + (sender + sequence) % receivers;
  case TOPOLOGY_GROUPS:
    return (echo || recipient != sender) && (w->shared_groups || recipient % w->groups == sender % w->groups);
  case TOPOLOGY_ROOM:
    return echo || recipient != sender;
  case TOPOLOGY_BROADCAST:
    return true;
  case TOPOLOGY_ECHO:
    return recipient == sender;
  case TOPOLOGY_QUEUE:
    return recipient == (sender + sequence) % w->groups;
  case TOPOLOGY_SELF:
  case TOPOLOGY_HOLD:
    return false;
  }
  return false;
}

/* No two messages of the phase may share a bit of a recipient. */
static void check_places(const struct ledger_plan *plan, uint32_t sequences) {
  uint32_t rounds = (sequences + plan->targets - 1) / plan->targets;
  size_t bits = (size_t)rounds * plan->streams;
  uint8_t *taken = calloc(bits + 1, 1);
  for (uint32_t recipient = 0; recipient < plan->recipients; recipient++) {
    memset(taken, 0, bits + 1);
    for (uint32_t sender = 0; sender < plan->senders; sender++) {
      for (uint32_t sequence = 0; sequence < sequences; sequence++) {
        int32_t stream = plan->stream(plan->topology, sender, sequence % plan->targets, recipient);
        if (stream < 0) continue;
        assert_true((uint32_t)stream < plan->streams);
        size_t bit = (size_t)(sequence / plan->targets) * plan->streams + (size_t)stream;
        assert_int_equal(taken[bit], 0);
        taken[bit] = 1;
      }
    }
  }
  free(taken);
}

static void check_message(
    const struct workload *workload, const struct ledger_plan *plan, uint32_t sender, uint32_t sequence) {
  uint32_t target = sequence % plan->targets;
  bool echo = ((const struct topology *)plan->topology)->group_echo;
  uint32_t addressed = 0;
  for (uint32_t recipient = 0; recipient < plan->recipients; recipient++) {
    bool heard = plan->stream(plan->topology, sender, target, recipient) >= 0;
    assert_int_equal(heard, hears(workload, echo, sender, sequence, recipient));
    addressed += heard;
  }
  assert_int_equal(addressed, plan->recipients_of(plan->topology, sender, target));
  assert_true(addressed <= plan->fan_out);
  uint32_t before = 0;
  for (uint32_t i = 0; i < addressed; i++) {
    uint32_t recipient = plan->recipient(plan->topology, sender, target, i);
    assert_true(recipient < plan->recipients);
    assert_true(i == 0 || recipient > before);
    assert_true(hears(workload, echo, sender, sequence, recipient));
    before = recipient;
  }
}

static void check_topology(const struct workload *workload, struct topology topology) {
  struct ledger_plan plan = topology_plan(&topology, 10);
  uint32_t sequences = plan.targets * 2 + 1;
  assert_int_equal(plan.recipients, workload->topology == TOPOLOGY_QUEUE ? workload->groups : workload->clients);
  for (uint32_t sender = 0; sender < plan.senders; sender++) {
    for (uint32_t sequence = 0; sequence < sequences; sequence++)
      check_message(workload, &plan, sender, sequence);
  }
  check_places(&plan, sequences);
}

static void check_workload(const struct workload *workload) {
  struct topology topology = topology_of(workload);
  check_topology(workload, topology);
  topology.group_echo = workload->topology == TOPOLOGY_GROUPS || workload->topology == TOPOLOGY_ROOM;
  if (topology.group_echo) check_topology(workload, topology);
}

static void test_plans_agree_with_brute_force(void **state) {
  (void)state;
  static const enum topology_kind kinds[] = {
      TOPOLOGY_RING, TOPOLOGY_PAIRS, TOPOLOGY_ROOM, TOPOLOGY_BROADCAST, TOPOLOGY_ECHO, TOPOLOGY_SELF};
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    for (uint32_t clients = 2; clients <= 12; clients += 2) {
      struct workload workload = {.topology = kinds[k], .clients = clients, .senders = 1 + clients / 3};
      check_workload(&workload);
      workload.senders = clients;
      check_workload(&workload);
    }
  }
}

static void test_stars_agree_with_brute_force(void **state) {
  (void)state;
  for (uint32_t senders = 1; senders <= 5; senders++) {
    for (uint32_t receivers = 1; receivers <= 7; receivers++) {
      struct workload workload = {.topology = TOPOLOGY_STAR, .clients = senders + receivers, .senders = senders};
      check_workload(&workload);
    }
  }
}

static void test_queues_agree_with_brute_force(void **state) {
  (void)state;
  for (uint32_t senders = 1; senders <= 4; senders++) {
    for (uint32_t queues = 1; queues <= 3; queues++) {
      struct workload workload = {
          .topology = TOPOLOGY_QUEUE, .clients = senders + 7, .senders = senders, .groups = queues};
      check_workload(&workload);
      struct topology topology = topology_of(&workload);
      for (uint32_t client = 0; client < workload.clients; client++) {
        uint32_t recipient = topology_recipient(&topology, client);
        assert_int_equal(recipient, client < senders ? UINT32_MAX : (client - senders) % queues);
      }
      assert_int_equal(topology_address(&topology, 0, 5).to, PUBLISH_TO_QUEUE);
      assert_int_equal(topology_address(&topology, 0, 5).recipient, 5 % queues);
    }
  }
}

static void test_groups_agree_with_brute_force(void **state) {
  (void)state;
  for (uint32_t groups = 1; groups <= 4; groups++) {
    for (uint32_t members = 2; members <= 6; members++) {
      for (uint32_t each = 1; each <= members; each++) {
        struct workload workload = {
            .topology = TOPOLOGY_GROUPS, .groups = groups, .clients = groups * members, .senders = groups * each};
        check_workload(&workload);
        workload.clients = members;
        workload.senders = each;
        workload.shared_groups = true;
        check_workload(&workload);
      }
    }
  }
}

static void test_groups_of_unequal_size(void **state) {
  (void)state;
  struct workload workload = {.topology = TOPOLOGY_GROUPS, .groups = 3, .clients = 11, .senders = 3};
  check_workload(&workload);
}

static void test_addresses(void **state) {
  (void)state;
  struct workload workload = {.topology = TOPOLOGY_STAR, .clients = 7, .senders = 3};
  struct topology topology = topology_of(&workload);
  for (uint32_t sequence = 0; sequence < 9; sequence++) {
    struct topology_address address = topology_address(&topology, 2, sequence);
    assert_int_equal(address.to, PUBLISH_TO_CLIENT);
    assert_true(hears(&workload, false, 2, sequence, address.recipient));
  }
  workload = (struct workload){.topology = TOPOLOGY_GROUPS, .groups = 4, .clients = 12, .senders = 8};
  topology = topology_of(&workload);
  assert_int_equal(topology_address(&topology, 6, 5).to, PUBLISH_TO_GROUP);
  assert_int_equal(topology_address(&topology, 6, 5).recipient, 2);
  workload.topology = TOPOLOGY_ECHO;
  topology = topology_of(&workload);
  assert_int_equal(topology.senders, 8);
  assert_int_equal(topology_address(&topology, 6, 5).to, PUBLISH_TO_SELF);
  assert_int_equal(topology_address(&topology, 6, 5).recipient, 6);
}

static void test_shared_groups_are_all_visited(void **state) {
  (void)state;
  struct workload workload = {
      .topology = TOPOLOGY_GROUPS, .groups = 5, .shared_groups = true, .clients = 6, .senders = 2};
  struct topology topology = topology_of(&workload);
  for (uint32_t sender = 0; sender < 2; sender++) {
    unsigned visited = 0;
    for (uint32_t sequence = 0; sequence < 5; sequence++)
      visited |= 1u << topology_address(&topology, sender, sequence).recipient;
    assert_int_equal(visited, 31);
  }
}

static void test_who_answers(void **state) {
  (void)state;
  struct topology echo = {.kind = TOPOLOGY_ECHO}, room = {.kind = TOPOLOGY_ROOM};
  assert_int_equal(topology_answer(&echo, CAPABILITY_ACKS), ANSWER_ECHO);
  assert_int_equal(topology_answer(&room, CAPABILITY_ACKS), ANSWER_ACK);
  assert_int_equal(topology_answer(&room, 0), ANSWER_NONE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plans_agree_with_brute_force),
      cmocka_unit_test(test_stars_agree_with_brute_force),
      cmocka_unit_test(test_queues_agree_with_brute_force),
      cmocka_unit_test(test_groups_agree_with_brute_force),
      cmocka_unit_test(test_groups_of_unequal_size),
      cmocka_unit_test(test_addresses),
      cmocka_unit_test(test_shared_groups_are_all_visited),
      cmocka_unit_test(test_who_answers),
  };
  return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
