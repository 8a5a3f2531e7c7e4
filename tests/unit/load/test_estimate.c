#include "load/estimate.h"

#include "base/clock.h"
#include "load/settings.h"
#include "load/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct totals totals_of(const struct workload *workload) {
  struct totals totals;
  estimate_totals(workload, 0, &totals);
  return totals;
}

static void test_ring(void **state) {
  (void)state;
  struct workload w = {.topology = TOPOLOGY_RING,
      .clients = 50,
      .rate_per_sec = 200,
      .warmup_ns = 10 * NS_PER_SEC,
      .duration_ns = 30 * NS_PER_SEC};
  struct totals totals = totals_of(&w);
  assert_true(totals.known);
  assert_int_equal(totals.warmup_publishes, 2000);
  assert_int_equal(totals.publishes, 6000);
  assert_int_equal(totals.deliveries, 6000);
  assert_int_equal(totals.distributions, 12000);
  w.rate_per_sec = 0.3; /* due at 0 s, 3.3 s, 6.7 s */
  w.duration_ns = 10 * NS_PER_SEC;
  assert_int_equal(totals_of(&w).publishes, 3);
}

static void test_star_with_one_observer(void **state) {
  (void)state;
  struct workload w = {.topology = TOPOLOGY_STAR,
      .clients = 1200,
      .senders = 200,
      .offline = 999,
      .load = LOAD_ROUNDS,
      .rounds = 50,
      .outstanding = 1,
      .duration_ns = NS_PER_SEC};
  struct totals totals = totals_of(&w);
  assert_int_equal(totals.publishes, 10000000);
  assert_int_equal(totals.distributions, 20000000);
  assert_int_equal(totals.deliveries, 10000);
  w.offline = 0;
  assert_int_equal(totals_of(&w).deliveries, 10000000);
}

static void test_parts_of_a_cycle(void **state) {
  (void)state;
  /* 2 senders, receivers 2 3 4 of which 4 is offline; 9 publishes: one cycle of 6, then target 0 of both, 1 of one. */
  struct workload w = {.topology = TOPOLOGY_STAR,
      .clients = 5,
      .senders = 2,
      .offline = 1,
      .load = LOAD_CLOSED,
      .outstanding = 1,
      .publishes = 9,
      .duration_ns = NS_PER_SEC};
  /* The cycle: each sender to 2 of 3. Then sender 0 to 2, sender 1 to 3, sender 0 to 3. */
  assert_int_equal(totals_of(&w).deliveries, 4 + 3);
  w.publishes = 10; /* sender 1 to 4, which is offline */
  assert_int_equal(totals_of(&w).deliveries, 4 + 3);
}

/* Any number of publishes of a star comes to what going through them one by one comes to. */
static void test_star_against_counting(void **state) {
  (void)state;
  struct workload w = {.topology = TOPOLOGY_STAR,
      .clients = 12,
      .senders = 5,
      .offline = 3,
      .load = LOAD_CLOSED,
      .outstanding = 1,
      .duration_ns = NS_PER_SEC};
  struct topology topology = topology_of(&w);
  uint64_t deliveries = 0;
  for (uint32_t slot = 0; slot < 120; slot++) {
    deliveries += topology_address(&topology, slot % 5, slot / 5).recipient < workload_online(&w);
    w.publishes = slot + 1;
    assert_int_equal(totals_of(&w).deliveries, deliveries);
  }
}

static void test_greatest_numbers_end_soon(void **state) {
  (void)state;
  struct workload w = {.topology = TOPOLOGY_STAR,
      .clients = 16000000,
      .senders = 8000000,
      .offline = 4000000,
      .load = LOAD_CLOSED,
      .outstanding = 1,
      .publishes = UINT64_C(2000000000),
      .duration_ns = NS_PER_SEC};
  assert_int_equal(totals_of(&w).publishes, 2000000000);
  w.senders = 16000000; /* of no star that could be */
  w.offline = 0;
  assert_int_equal(totals_of(&w).deliveries, 0);
}

static void test_groups(void **state) {
  (void)state;
  struct workload w = {.topology = TOPOLOGY_GROUPS,
      .clients = 100,
      .senders = 50,
      .offline = 49,
      .groups = 100,
      .shared_groups = true,
      .load = LOAD_ROUNDS,
      .rounds = 20,
      .outstanding = 1,
      .duration_ns = NS_PER_SEC};
  struct totals totals = totals_of(&w);
  assert_int_equal(totals.publishes, 100000);
  assert_int_equal(totals.distributions, 10000000);
  assert_int_equal(totals.deliveries, 100000 * 50);
  /* The same clients in 10 groups of 10, 5 senders each: members 5..9 of every group, of whom 49 are offline. */
  w.groups = 10;
  w.shared_groups = false;
  totals = totals_of(&w);
  assert_int_equal(totals.publishes, 50 * 20);
  assert_int_equal(totals.distributions, 50 * 20 * 10);
  assert_int_equal(totals.deliveries, 20 * (5 * 5 + 45 * 4)); /* group 0 has the one who is online */
}

/* A driver that echoes to the sender adds one delivery to each message of a group or a room, and none elsewhere. */
static void test_senders_who_hear_themselves(void **state) {
  (void)state;
  struct workload w = {
      .topology = TOPOLOGY_GROUPS, .clients = 10, .senders = 2, .rate_per_sec = 5, .duration_ns = NS_PER_SEC};
  struct totals totals;
  estimate_totals(&w, CAPABILITY_GROUP_ECHO, &totals);
  assert_int_equal(totals.deliveries, 50);
  assert_int_equal(totals_of(&w).deliveries, 45);
  w.topology = TOPOLOGY_ROOM;
  estimate_totals(&w, CAPABILITY_GROUP_ECHO, &totals);
  assert_int_equal(totals.deliveries, 50);
  w.topology = TOPOLOGY_RING;
  estimate_totals(&w, CAPABILITY_GROUP_ECHO, &totals);
  assert_int_equal(totals.deliveries, 5);
  w.topology = TOPOLOGY_GROUPS;
  unsigned of_mqtt = settings_capabilities(&w, driver_find("mqtt"));
  assert_false(of_mqtt & CAPABILITY_GROUP_ECHO); /* No Local of version 5 */
  w.mqtt_version = "3.1.1";
  assert_true(settings_capabilities(&w, driver_find("mqtt")) & CAPABILITY_GROUP_ECHO);
}

static void test_room_broadcast_echo_self(void **state) {
  (void)state;
  struct workload w = {.topology = TOPOLOGY_ROOM,
      .clients = 1100,
      .senders = 100,
      .load = LOAD_ROUNDS,
      .rounds = 100,
      .interval_ns = 10 * NS_PER_MS,
      .duration_ns = 3600 * NS_PER_SEC};
  struct totals totals = totals_of(&w);
  assert_int_equal(totals.publishes, 10000);
  assert_int_equal(totals.distributions, 11000000);
  assert_int_equal(totals.deliveries, 10000 * 1099);
  w.topology = TOPOLOGY_BROADCAST;
  assert_int_equal(totals_of(&w).deliveries, 11000000);
  w.topology = TOPOLOGY_ECHO;
  w.load = LOAD_CLOSED;
  w.publishes = 10000;
  assert_int_equal(totals_of(&w).deliveries, 10000);
  w.topology = TOPOLOGY_SELF;
  assert_int_equal(totals_of(&w).deliveries, 0);
  w.publishes = 0;
  assert_false(totals_of(&w).known);
}

static void test_ramp(void **state) {
  (void)state;
  struct workload w = {.topology = TOPOLOGY_RING,
      .clients = 2,
      .rate_per_sec = 100,
      .ramp_to_per_sec = 300,
      .duration_ns = 10 * NS_PER_SEC};
  assert_int_equal(totals_of(&w).publishes, 2000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ring),
      cmocka_unit_test(test_star_with_one_observer),
      cmocka_unit_test(test_parts_of_a_cycle),
      cmocka_unit_test(test_star_against_counting),
      cmocka_unit_test(test_greatest_numbers_end_soon),
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_senders_who_hear_themselves),
      cmocka_unit_test(test_room_broadcast_echo_self),
      cmocka_unit_test(test_ramp),
  };
  return cmocka_run_group_tests_name("estimate", tests, NULL, NULL);
}
