/* The null peer under real runs: it lets everybody in, ACKs everything and pushes it to whom it is addressed. */
#include "load/null_peer.h"

#include "base/clock.h"
#include "load/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct workload workload_of(const struct null_peer *peer) {
  return (struct workload){
      .name = "private",
      .target = peer->ws_url,
      .api_url = peer->api_url,
      .app_key = NULL_PEER_APP_KEY,
      .topology = TOPOLOGY_RING,
      .clients = 5,
      .senders = 5,
      .rate_per_sec = 100,
      .warmup_ns = 100 * NS_PER_MS,
      .duration_ns = 500 * NS_PER_MS,
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
  };
}

static void run_against(const struct null_peer *peer, const struct workload *workload, uint32_t recipients) {
  struct run_options options = {
      .workload = workload,
      .driver = driver_find("juggle"),
      .target = peer->ws_url,
      .api_url = peer->api_url,
      .app_key = NULL_PEER_APP_KEY,
      .secret = NULL_PEER_SECRET,
  };
  struct report report;
  struct err err = {0};
  if (run_execute(&options, &report, &err) != STATUS_OK) fail_msg("%s", err.text);
  const struct tally *tally = &report.measure;
  assert_int_equal(tally->connections.established, workload->clients);
  assert_int_equal(codes_total(&tally->connections.dropped), 0);
  assert_int_equal(tally->publishes.attempted, 50);
  assert_int_equal(tally->publishes.acked, 50);
  assert_int_equal(tally->deliveries.observed, 50 * recipients);
  assert_int_equal(tally->deliveries.lost, 0);
  assert_int_equal(tally->deliveries.duplicate, 0);
  assert_int_equal(tally->deliveries.unexpected, 0);
  assert_string_equal(report.target.server_version, "muster null peer");
  report_free(&report);
}

static void serves_private_and_group_messages(void **state) {
  (void)state;
  struct null_peer peer;
  struct err err = {0};
  if (null_peer_start(&peer, 5, &err) != STATUS_OK) fail_msg("%s", err.text);
  struct workload workload = workload_of(&peer);
  workload.obfuscate = true;
  run_against(&peer, &workload, 1);
  workload.obfuscate = false;
  run_against(&peer, &workload, 1); /* the same peer, another run of the same users */
  workload.topology = TOPOLOGY_GROUPS;
  workload.senders = 2;
  run_against(&peer, &workload, 4);
  null_peer_stop(&peer);
  null_peer_stop(&peer); /* harmless */
}

static void lets_nobody_in_whom_it_has_no_room_for(void **state) {
  (void)state;
  struct null_peer peer;
  assert_int_equal(null_peer_start(&peer, 3, NULL), STATUS_OK);
  struct workload workload = workload_of(&peer);
  struct run_options options = {
      .workload = &workload,
      .driver = driver_find("juggle"),
      .target = peer.ws_url,
      .api_url = peer.api_url,
      .app_key = NULL_PEER_APP_KEY,
      .secret = NULL_PEER_SECRET,
  };
  struct report report;
  assert_int_equal(run_execute(&options, &report, NULL), STATUS_OK);
  assert_int_equal(report.measure.connections.established, 3);
  report_free(&report);
  null_peer_stop(&peer);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(serves_private_and_group_messages),
      cmocka_unit_test(lets_nobody_in_whom_it_has_no_room_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
