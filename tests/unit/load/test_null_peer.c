/* The null peer under real runs: it lets everybody in, ACKs everything and pushes it to whom it is addressed. */
#include "load/null_peer.h"

#include "base/clock.h"
#include "load/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct workload workload_of(const char *driver) {
  return (struct workload){
      .name = "private",
      .driver = driver,
      .topology = TOPOLOGY_RING,
      .clients = 5,
      .senders = 5,
      .rate_per_sec = 200,
      .warmup_ns = 50 * NS_PER_MS,
      .duration_ns = 250 * NS_PER_MS,
      .grace_ns = 10 * NS_PER_SEC,
      .setup_deadline_ns = 30 * NS_PER_SEC,
      .connect_deadline_ns = 30 * NS_PER_SEC,
      .ack_timeout_ns = 10 * NS_PER_SEC,
      .teardown_deadline_ns = 10 * NS_PER_SEC,
      .payload_bytes = 200,
      .connect_concurrency = 5,
      .setup_concurrency = 2,
      .workers = 1,
      .seed = 7,
      .store = true,
      .ack_policy = "durable",
      .qos = 1,
  };
}

static void run_at(const struct null_peer *peer, const struct workload *workload, struct report *report) {
  struct workload against = *workload;
  bool juggle = strcmp(workload->driver, "juggle") == 0;
  against.target = peer->target;
  struct run_options options = {
      .workload = &against,
      .driver = driver_find(workload->driver),
      .target = peer->target,
      .api_url = juggle ? peer->api_url : NULL,
      .app_key = juggle ? NULL_PEER_APP_KEY : NULL,
      .secret = NULL_PEER_SECRET,
  };
  struct err err = {0};
  if (run_execute(&options, report, &err) != STATUS_OK) fail_msg("%s: %s", workload->driver, err.text);
}

/* recipients: of each of the 50 publishes. */
static void check_run(const struct null_peer *peer, const struct workload *workload, uint32_t recipients) {
  struct report report;
  run_at(peer, workload, &report);
  const struct tally *tally = &report.measure;
  assert_int_equal(tally->connections.established, workload->clients);
  assert_int_equal(codes_total(&tally->connections.dropped), 0);
  assert_int_equal(tally->publishes.attempted, 50);
  if (report.has_acks) assert_int_equal(tally->publishes.acked, 50);
  if (tally->deliveries.observed != 50 * (uint64_t)recipients) {
    fail_msg("%s, %s, %u groups: %lu expected, %lu observed, %lu unexpected, %lu lost", workload->driver,
        topology_name(workload->topology), workload->groups, (unsigned long)tally->deliveries.expected,
        (unsigned long)tally->deliveries.observed, (unsigned long)tally->deliveries.unexpected,
        (unsigned long)tally->deliveries.lost);
  }
  assert_int_equal(tally->deliveries.observed, 50 * recipients);
  assert_int_equal(tally->deliveries.lost, 0);
  assert_int_equal(tally->deliveries.duplicate, 0);
  assert_int_equal(tally->deliveries.unexpected, 0);
  report_free(&report);
}

static void run_against_own_peer(const struct workload *workload, uint32_t recipients) {
  struct null_peer peer;
  struct err err = {0};
  if (null_peer_start(&peer, workload, driver_find(workload->driver), &err) != STATUS_OK) fail_msg("%s", err.text);
  check_run(&peer, workload, recipients);
  null_peer_stop(&peer);
}

static void is_a_juggle_server_for_one_run_after_another(void **state) {
  (void)state;
  struct null_peer peer;
  struct err err = {0};
  struct workload workload = workload_of("juggle");
  if (null_peer_start(&peer, &workload, driver_find("juggle"), &err) != STATUS_OK) fail_msg("%s", err.text);
  workload.obfuscate = true;
  check_run(&peer, &workload, 1);
  workload.obfuscate = false;
  check_run(&peer, &workload, 1); /* the same peer, another run of the same users */
  struct report report;
  run_at(&peer, &workload, &report);
  assert_string_equal(report.target.server_version, "muster null peer");
  report_free(&report);
  null_peer_stop(&peer);
  null_peer_stop(&peer); /* harmless */
}

/* Every driver with topics or users: privately, in one group, in two, in groups that are shared. */
static void serves_private_and_group_messages(void **state) {
  (void)state;
  static const char *const drivers[] = {"juggle", "mqtt", "nats", "redis", "socketio"};
  for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
    bool echoes = driver_find(drivers[i])->capabilities & CAPABILITY_GROUP_ECHO;
    /* MQTT's version 5 leaves it out, Socket.IO when nothing else is asked. */
    uint32_t own = echoes && strcmp(drivers[i], "mqtt") != 0 && strcmp(drivers[i], "socketio") != 0;
    struct workload workload = workload_of(drivers[i]);
    run_against_own_peer(&workload, 1);
    workload.topology = TOPOLOGY_GROUPS;
    workload.senders = 2;
    run_against_own_peer(&workload, 4 + own);
    workload.clients = 6;
    workload.groups = 2;
    run_against_own_peer(&workload, 2 + own);
    workload.shared_groups = true;
    run_against_own_peer(&workload, 5 + own);
  }
}

static void serves_what_only_some_protocols_have(void **state) {
  (void)state;
  static const struct {
    const char *driver, *target;
    enum topology_kind topology;
    uint32_t qos, recipients;
    const char *mqtt_version;
  } cases[] = {
      {"mqtt", NULL, TOPOLOGY_RING, 0, 1, NULL},
      {"mqtt", NULL, TOPOLOGY_RING, 2, 1, NULL},
      {"mqtt", NULL, TOPOLOGY_GROUPS, 1, 5, "3.1.1"}, /* which has no No Local */
      {"mqtt", NULL, TOPOLOGY_BROADCAST, 1, 5, NULL},
      {"nats", "nats://127.0.0.1:1/?ack=flush", TOPOLOGY_RING, 0, 1, NULL},
      {"nats", "nats://127.0.0.1:1/?headers=on", TOPOLOGY_GROUPS, 0, 4, NULL},
      {"nats", NULL, TOPOLOGY_ROOM, 0, 4, NULL},
      {"nats", NULL, TOPOLOGY_BROADCAST, 0, 5, NULL},
      {"redis", NULL, TOPOLOGY_ECHO, 0, 1, NULL},
      {"redis", NULL, TOPOLOGY_BROADCAST, 0, 5, NULL},
      {"socketio", "socketio://127.0.0.1:1/?echo=on", TOPOLOGY_GROUPS, 0, 5, NULL},
      {"socketio", "socketio://127.0.0.1:1/?echo=on", TOPOLOGY_BROADCAST, 0, 5, NULL},
      {"socketio", "socketio://127.0.0.1:1/?nsp=/chat&ack=off", TOPOLOGY_RING, 0, 1, NULL},
      {"shootout-json", NULL, TOPOLOGY_ECHO, 0, 1, NULL},
      {"shootout-json", "ws://127.0.0.1:1/ws", TOPOLOGY_BROADCAST, 0, 5, NULL},
      {"shootout-binary", NULL, TOPOLOGY_ECHO, 0, 1, NULL},
      {"shootout-binary", NULL, TOPOLOGY_BROADCAST, 0, 5, NULL},
      {"shootout-phoenix", NULL, TOPOLOGY_ECHO, 0, 1, NULL},
      {"shootout-phoenix", NULL, TOPOLOGY_BROADCAST, 0, 5, NULL},
      {"shootout-actioncable", NULL, TOPOLOGY_ECHO, 0, 1, NULL},
      {"shootout-actioncable", NULL, TOPOLOGY_BROADCAST, 0, 5, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct workload workload = workload_of(cases[i].driver);
    workload.target = cases[i].target;
    workload.topology = cases[i].topology;
    workload.qos = cases[i].qos;
    workload.mqtt_version = cases[i].mqtt_version;
    run_against_own_peer(&workload, cases[i].recipients);
  }
}

/* A star's senders are no recipients, so RESP2 will do. */
static void serves_a_star_in_resp2(void **state) {
  (void)state;
  struct workload workload = workload_of("redis");
  workload.topology = TOPOLOGY_STAR;
  workload.senders = 2;
  workload.target = "redis://127.0.0.1:1/?resp=2";
  run_against_own_peer(&workload, 1);
}

static void lets_nobody_in_whom_it_has_no_room_for(void **state) {
  (void)state;
  struct null_peer peer;
  struct workload workload = workload_of("juggle");
  workload.clients = workload.senders = 3;
  assert_int_equal(null_peer_start(&peer, &workload, driver_find("juggle"), NULL), STATUS_OK);
  workload.clients = workload.senders = 5;
  struct report report;
  run_at(&peer, &workload, &report);
  assert_int_equal(report.measure.connections.established, 3);
  report_free(&report);
  null_peer_stop(&peer);
}

static void refuses(const struct workload *workload, const char *why) {
  struct err err = {0};
  assert_int_equal(null_peer_check(workload, driver_find(workload->driver), &err), STATUS_USAGE);
  if (!strstr(err.text, why)) fail_msg("%s", err.text);
  assert_null(strchr(err.text, '\n'));
}

static void refuses_what_it_cannot_answer(void **state) {
  (void)state;
  struct workload workload = workload_of("stomp");
  refuses(&workload, "driver stomp");
  workload = workload_of("mqtt");
  workload.target = "mqtts://127.0.0.1";
  refuses(&workload, "mqtt:// only");
  workload = workload_of("mqtt");
  workload.topology = TOPOLOGY_QUEUE;
  refuses(&workload, "cannot be calibrated over mqtt");
  workload = workload_of("mqtt");
  workload.load = LOAD_CLOSED;
  refuses(&workload, "--rate");
  workload = workload_of("juggle");
  workload.topology = TOPOLOGY_ROOM;
  refuses(&workload, "cannot be calibrated over juggle");
  workload = workload_of("shootout-json");
  refuses(&workload, "cannot be calibrated over shootout-json");
  workload = workload_of("socketio");
  workload.target = "socketio://127.0.0.1/?message=said";
  refuses(&workload, "message=");
  workload = workload_of("nats");
  workload.storm = true;
  refuses(&workload, "cannot be calibrated");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(is_a_juggle_server_for_one_run_after_another),
      cmocka_unit_test(serves_private_and_group_messages),
      cmocka_unit_test(serves_what_only_some_protocols_have),
      cmocka_unit_test(serves_a_star_in_resp2),
      cmocka_unit_test(lets_nobody_in_whom_it_has_no_room_for),
      cmocka_unit_test(refuses_what_it_cannot_answer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
