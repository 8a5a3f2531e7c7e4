#include "load/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct topology make(enum topology_kind kind, uint32_t clients, uint32_t senders) {
  struct workload workload = {.topology = kind, .clients = clients, .senders = senders};
  return topology_of(&workload);
}

/* Every plan must agree with itself: the i-th recipients of a sender are exactly those with a stream. */
static void check_plan(const struct topology *topology) {
  struct ledger_plan plan = topology_plan(topology, 10);
  for (uint32_t sender = 0; sender < plan.senders; sender++) {
    uint32_t addressed = 0;
    for (uint32_t recipient = 0; recipient < plan.recipients; recipient++) {
      int32_t stream = plan.stream(plan.topology, sender, recipient);
      assert_true(stream < (int32_t)plan.streams);
      if (stream >= 0) addressed++;
    }
    assert_int_equal(addressed, plan.recipients_of(plan.topology, sender));
    assert_true(addressed <= plan.fan_out);
    for (uint32_t i = 0; i < addressed; i++) {
      uint32_t recipient = plan.recipient(plan.topology, sender, i);
      assert_true(recipient < plan.recipients);
      assert_int_not_equal(recipient, sender);
      assert_true(plan.stream(plan.topology, sender, recipient) >= 0);
    }
  }
}

static void test_ring(void **state) {
  (void)state;
  struct topology ring = make(TOPOLOGY_RING, 5, 1);
  assert_int_equal(ring.senders, 5); /* all of them, whatever was asked */
  assert_int_equal(topology_neighbour(&ring, 0), 1);
  assert_int_equal(topology_neighbour(&ring, 4), 0);
  check_plan(&ring);
  struct topology pair = make(TOPOLOGY_RING, 2, 2);
  check_plan(&pair);
}

static void test_group(void **state) {
  (void)state;
  struct topology group = make(TOPOLOGY_GROUP, 6, 3);
  struct ledger_plan plan = topology_plan(&group, 10);
  assert_int_equal(plan.fan_out, 5);
  assert_int_equal(plan.streams, 3);
  assert_int_equal(plan.recipient(plan.topology, 1, 0), 0);
  assert_int_equal(plan.recipient(plan.topology, 1, 1), 2);
  check_plan(&group);
  struct topology all = make(TOPOLOGY_GROUP, 4, 4);
  check_plan(&all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ring),
      cmocka_unit_test(test_group),
  };
  return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
