#include "base/clock.h"
#include "load/check.h"
#include "load/client.h"
#include "load/run.h"
#include "load/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

static struct workload valid(void) {
  return (struct workload){
      .name = "private",
      .target = "ws://127.0.0.1:9003",
      .topology = TOPOLOGY_RING,
      .clients = 50,
      .senders = 2,
      .rate_per_sec = 200,
      .duration_ns = 30 * NS_PER_SEC,
      .grace_ns = 3 * NS_PER_SEC,
      .setup_deadline_ns = NS_PER_SEC,
      .connect_deadline_ns = NS_PER_SEC,
      .ack_timeout_ns = NS_PER_SEC,
      .teardown_deadline_ns = NS_PER_SEC,
      .payload_bytes = 256,
      .connect_concurrency = 20,
      .setup_concurrency = 10,
      .workers = 2,
  };
}

static void refuse(const struct workload *workload, const char *part) {
  struct err err = {0};
  assert_int_equal(run_check(workload, &driver_juggle, &err), STATUS_USAGE);
  if (!strstr(err.text, part)) fail_msg("\"%s\" does not say \"%s\"", err.text, part);
  assert_null(strchr(err.text, '\n'));
}

static void test_accepts_a_sound_plan(void **state) {
  (void)state;
  struct workload workload = valid();
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
  workload.topology = TOPOLOGY_GROUPS;
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
}

static void test_numbers(void **state) {
  (void)state;
  struct workload workload = valid();
  workload.clients = 1;
  refuse(&workload, "--clients");
  workload = valid();
  workload.rate_per_sec = 0;
  refuse(&workload, "--rate");
  workload.rate_per_sec = 1.0 / 0.0;
  refuse(&workload, "--rate");
  workload = valid();
  workload.duration_ns = 0;
  refuse(&workload, "--duration");
  workload.duration_ns = 5 * 3600 * NS_PER_SEC;
  refuse(&workload, "4 hours");
  workload = valid();
  workload.workers = 51;
  refuse(&workload, "--workers");
  workload = valid();
  workload.payload_bytes = 77;
  refuse(&workload, "at least 78");
}

static void test_group_senders(void **state) {
  (void)state;
  struct workload workload = valid();
  workload.topology = TOPOLOGY_GROUPS;
  workload.senders = 51;
  refuse(&workload, "--group-senders 51");
  workload.senders = 0;
  refuse(&workload, "--group-senders 0");
}

static void test_shapes(void **state) {
  (void)state;
  struct workload workload = valid();
  workload.topology = TOPOLOGY_PAIRS;
  workload.clients = 51;
  refuse(&workload, "even number");
  workload = valid();
  workload.topology = TOPOLOGY_STAR;
  workload.senders = 50;
  refuse(&workload, "one receiver");
  workload.senders = 40;
  workload.offline = 11;
  refuse(&workload, "at most 10 can be offline");
  workload.offline = 10;
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
  workload = valid();
  workload.topology = TOPOLOGY_GROUPS;
  workload.groups = 26;
  refuse(&workload, "at least 2 members");
  workload.groups = 3;
  refuse(&workload, "as many");
  workload.shared_groups = true;
  workload.groups = 2000000000;
  refuse(&workload, "too many pairs");
}

static void test_in_flight_is_shared_out_evenly(void **state) {
  (void)state;
  static const struct {
    uint32_t clients, in_flight, senders, outstanding;
  } cases[] = {{10, 1, 1, 1}, {10, 4, 4, 1}, {10, 10, 10, 1}, {10, 30, 10, 3}, {1, 7, 1, 7}};
  struct workload workload = valid();
  workload.load = LOAD_CLOSED;
  workload.topology = TOPOLOGY_ECHO;
  workload.workers = 1;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    workload.clients = cases[i].clients;
    workload.in_flight = cases[i].in_flight;
    workload_share_in_flight(&workload);
    assert_int_equal(workload.senders, cases[i].senders);
    assert_int_equal(workload.outstanding, cases[i].outstanding);
    struct err err = {0};
    if (run_check(&workload, &driver_shootout_json, &err) != STATUS_OK) fail_msg("%s", err.text);
  }
  workload.topology = TOPOLOGY_RING;
  workload.clients = 10;
  workload.in_flight = 15;
  workload_share_in_flight(&workload);
  refuse(&workload, "--concurrent 15 does not divide among 10 clients");
}

static void test_a_driver_says_what_it_cannot(void **state) {
  (void)state;
  struct workload workload = valid();
  workload.topology = TOPOLOGY_BROADCAST;
  refuse(&workload, "juggle has no broadcasts");
  workload.topology = TOPOLOGY_ECHO;
  refuse(&workload, "juggle has no echoes");
  workload.topology = TOPOLOGY_SELF;
  refuse(&workload, "juggle has no operations");
  workload.topology = TOPOLOGY_BROADCAST;
  assert_int_equal(run_check(&workload, &driver_shootout_json, NULL), STATUS_OK);
}

static void test_other_hosts_need_permission(void **state) {
  (void)state;
  struct workload workload = valid();
  workload.target = "ws://192.0.2.1:9003";
  refuse(&workload, "--allow-non-loopback");
  workload.allow_non_loopback = true;
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
  workload = valid();
  workload.api_url = "http://192.0.2.1:9001";
  refuse(&workload, "--api-url");
}

static void test_source_ports_of_one_address(void **state) {
  (void)state;
  struct workload workload = valid();
  workload.target = "ws://192.0.2.1:9003";
  workload.allow_non_loopback = true;
  workload.workers = 0;
  workload.clients = 70000;
  refuse(&workload, "source ports");
  workload.target_addresses = "192.0.2.1-192.0.2.9"; /* each pair has its own */
  workload.clients = 5000;
  workload.local_addresses = "127.0.0.1";
  struct needs needs;
  assert_int_equal(check_needs(&workload, &driver_juggle, &needs, NULL), STATUS_OK);
  assert_int_equal(needs.source_addresses, 1);
  assert_int_equal(needs.target_addresses, 9);
}

static void test_target_addresses(void **state) {
  (void)state;
  struct workload workload = valid();
  struct needs needs;
  workload.clients = 60000;
  workload.target_addresses = "127.0.0.1-127.0.0.3,127.0.0.9";
  assert_int_equal(check_needs(&workload, &driver_juggle, &needs, NULL), STATUS_OK);
  assert_int_equal(needs.target_addresses, 4);
  assert_int_equal(needs.source_addresses, (60000 + 4 * CLIENT_SOURCE_PORTS - 1) / (4 * CLIENT_SOURCE_PORTS));

  workload.clients = 50;
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
  workload.target_addresses = "127.0.0.1,192.0.2.1";
  refuse(&workload, "--allow-non-loopback");
  workload.target_addresses = "127.255.255.250-128.0.0.1";
  refuse(&workload, "--allow-non-loopback");
  workload.target_addresses = "localhost";
  refuse(&workload, "--target-addr");
  workload.target = NULL;
  workload.ack_policy = "durable";
  workload.target_addresses = "127.0.0.2-127.0.0.16";
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
  workload.target_addresses = "127.0.0.2-127.0.0.17";
  refuse(&workload, "the embedded server listens on");
}

static void test_descriptors(void **state) {
  (void)state;
  struct rlimit before;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  struct workload workload = valid();
  workload.workers = 1;
  workload.clients = (uint32_t)(before.rlim_max < 4000000 ? before.rlim_max : 4000000);
  if (before.rlim_max > 4000000) skip();
  refuse(&workload, "--workers 2");
  workload.workers = 0; /* as many as it takes */
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
}

static void test_embedded_rate_limit(void **state) {
  (void)state;
  struct workload workload = valid();
  workload.target = NULL;
  workload.rate_limits = true;
  workload.topology = TOPOLOGY_GROUPS;
  workload.rate_per_sec = 201;
  refuse(&workload, "at least 3 senders");
  workload.rate_limits = false;
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
}

static void test_memory(void **state) {
  (void)state;
  struct workload workload = valid();
  workload.clients = 200000000;
  workload.workers = 100000;
  refuse(&workload, "GiB");
}

static void test_idle_client_keeps_to_its_budget(void **state) {
  (void)state;
  assert_true(client_stride(&driver_juggle) <= 512);
}

static struct workload backlog(void) {
  struct workload workload = valid();
  workload.target = NULL;
  workload.topology = TOPOLOGY_STAR;
  workload.backlog = true;
  workload.catch_up_deadline_ns = 60 * NS_PER_SEC;
  return workload;
}

static void test_backlog(void **state) {
  (void)state;
  struct workload workload = backlog();
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
  workload.warmup_ns = 1;
  refuse(&workload, "--warmup");
  workload = backlog();
  workload.catch_up_deadline_ns = 0;
  refuse(&workload, "--catch-up-timeout");
  workload.catch_up_deadline_ns = 4 * 3600 * NS_PER_SEC;
  refuse(&workload, "4 hours");
  workload = backlog();
  workload.topology = TOPOLOGY_RING;
  refuse(&workload, "star");
  workload = backlog();
  workload.offline = 1;
  refuse(&workload, "all come back");
  workload = backlog();
  struct driver forgetful = driver_juggle;
  struct err err = {0};
  forgetful.capabilities &= ~(unsigned)CAPABILITY_BACKLOG;
  assert_int_equal(run_check(&workload, &forgetful, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "who are offline"));
}

/* What the embedded server would forget is no loss worth measuring. */
static void test_backlog_that_the_embedded_server_cannot_keep(void **state) {
  (void)state;
  struct workload workload = backlog();
  workload.clients = 3; /* 2 senders, 1 receiver */
  workload.duration_ns = 3600 * NS_PER_SEC;
  workload.rate_per_sec = 1000;
  workload.publishes = 65536;
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
  workload.publishes = 65537;
  refuse(&workload, "65537 messages to each receiver");
  workload.target = "ws://127.0.0.1:9003"; /* what another server keeps is not known */
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);

  workload = backlog();
  workload.duration_ns = 537 * NS_PER_SEC; /* and 3 s of grace, and a minute to catch up */
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
  workload.duration_ns++;
  refuse(&workload, "10 minutes");
  workload.publishes = 1000; /* 5 s */
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);

  workload = backlog(); /* 2,048 rings of 32,770 messages take room for 65,536 each */
  workload.clients = 2050;
  workload.load = LOAD_ROUNDS;
  workload.outstanding = 1;
  workload.rounds = 16385;
  refuse(&workload, "in all");
  workload.rounds = 1000;
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_OK);
}

static void test_bad_url(void **state) {
  (void)state;
  struct workload workload = valid();
  workload.api_url = "http://[";
  refuse(&workload, "--api-url");
  assert_int_equal(run_check(&workload, &driver_juggle, NULL), STATUS_USAGE);
}

/* The same protocol over another transport is another thing to compare. */
static void test_transports_are_part_of_the_key(void **state) {
  (void)state;
  static const struct {
    const char *driver, *target, *transport;
  } cases[] = {
      {"mqtt", "mqtt://127.0.0.1", "tcp"},
      {"mqtt", "mqtts+ws://127.0.0.1", "websocket"},
      {"stomp", "stomp://127.0.0.1", "tcp"},
      {"stomp", "stomp+ws://127.0.0.1", "websocket"},
      {"ricochet", NULL, "udx"},
      {"ricochet", "ricochet+tcp://127.0.0.1", "tcp"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct workload workload = valid();
    workload.target = cases[i].target;
    settings_describe(&workload, driver_find(cases[i].driver));
    const struct fact *last = &workload.key.fact[workload.key.count - 1];
    assert_string_equal(last->name, "transport");
    assert_string_equal(last->value, cases[i].transport);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_accepts_a_sound_plan),
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_group_senders),
      cmocka_unit_test(test_shapes),
      cmocka_unit_test(test_in_flight_is_shared_out_evenly),
      cmocka_unit_test(test_a_driver_says_what_it_cannot),
      cmocka_unit_test(test_other_hosts_need_permission),
      cmocka_unit_test(test_source_ports_of_one_address),
      cmocka_unit_test(test_target_addresses),
      cmocka_unit_test(test_descriptors),
      cmocka_unit_test(test_embedded_rate_limit),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_idle_client_keeps_to_its_budget),
      cmocka_unit_test(test_backlog),
      cmocka_unit_test(test_backlog_that_the_embedded_server_cannot_keep),
      cmocka_unit_test(test_bad_url),
      cmocka_unit_test(test_transports_are_part_of_the_key),
  };
  return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
