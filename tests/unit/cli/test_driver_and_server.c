/* The JuggleIM driver against a musterd in the same process, for what needs both sides: a chatroom, and a backlog that
 * gathered while the recipient was offline. */
#include "driver/driver.h"
#include "load/check.h"
#include "server/core_state.h"
#include "server/doors.h"
#include "support/test_client.h"

enum { CLIENTS = 20, BACKLOG = 450, ROOM_MESSAGES = 50, SEQUENCES = 512 };

/* A client with what it was told; the driver's state lies behind it. */
struct peer {
  int established, failed, acked, refused, delivered, repeated, before_established;
  int32_t failed_code;
  bool seen[CLIENTS][SEQUENCES];
  struct client client; /* last */
};

static struct test_server server;
static struct loop *loop;
static struct driver_run run;
static struct peer *peers[CLIENTS];

static struct peer *peer_of(struct client *client) {
  return (struct peer *)((char *)client - offsetof(struct peer, client));
}

static void on_established(struct client *client) {
  peer_of(client)->established++;
}

static void on_failed(struct client *client, int32_t code) {
  peer_of(client)->failed++;
  peer_of(client)->failed_code = code;
  stream_close(&client->stream, true);
}

static void on_acked(struct client *client, uint32_t token, int32_t code) {
  (void)token;
  peer_of(client)->acked += code == 0;
  peer_of(client)->refused += code != 0;
}

static void on_delivered(struct client *client, struct view content, bool overlap) {
  struct peer *peer = peer_of(client);
  struct payload payload;
  (void)overlap;
  assert_int_equal(payload_read(PAYLOAD_TEXT, content.data, content.len, &payload), PAYLOAD_OK);
  assert_int_equal(payload.run_id, run.settings.run_id);
  assert_true(payload.sender < CLIENTS && payload.sequence < SEQUENCES);
  bool *seen = &peer->seen[payload.sender][payload.sequence];
  peer->repeated += *seen;
  peer->delivered += !*seen;
  peer->before_established += !peer->established;
  *seen = true;
}

static void on_wake(struct client *client, uint64_t due_ns) {
  (void)client;
  (void)due_ns;
}

static const struct client_hooks hooks = {
    .established = on_established, .failed = on_failed, .acked = on_acked, .delivered = on_delivered, .wake = on_wake};

static void stream_opened(struct stream *stream) {
  driver_juggle.opened((struct client *)stream);
}

static size_t stream_received(struct stream *stream, uint8_t *data, size_t len) {
  return driver_juggle.received((struct client *)stream, data, len);
}

static void stream_closed(struct stream *stream, enum stream_end end, int error) {
  (void)end;
  (void)error;
  peer_of((struct client *)stream)->failed++;
}

static const struct stream_ops ops = {.opened = stream_opened, .received = stream_received, .closed = stream_closed};

/* ---- Set-up ---- */

static void start(const struct driver_settings *settings) {
  static char target[64], api_url[64];
  test_server_prepare(&server);
  server.config.rate_limits = false;
  test_server_start(&server);
  snprintf(target, sizeof target, "ws://127.0.0.1:%u", server.config.ws_port);
  snprintf(api_url, sizeof api_url, "http://127.0.0.1:%u", server.config.api_port);
  run = (struct driver_run){.driver = &driver_juggle, .settings = *settings};
  struct driver_settings *all = &run.settings;
  all->target = target;
  all->api_url = api_url;
  all->app_key = TEST_APP;
  all->secret = TEST_SECRET;
  all->run_id = UINT64_C(0x0badcafe00000001);
  all->clients = CLIENTS;
  all->setup_concurrency = 4;
  all->payload_bytes = 256;
  all->deadline_ns = clock_now_ns() + 20 * NS_PER_SEC;
  all->store = all->count = all->obfuscate = true;
  assert_int_equal(url_parse(target, &all->url, NULL), STATUS_OK);
  struct err err = {0};
  if (driver_juggle.prepare(&run, &err) != STATUS_OK) fail_msg("%s", err.text);
  assert_int_equal(loop_create(&loop, NULL), STATUS_OK);
}

static void connect_peer(uint32_t index) {
  struct peer *peer = calloc(1, sizeof *peer + driver_juggle.client_bytes);
  assert_non_null(peer);
  peers[index] = peer;
  peer->client.hooks = &hooks;
  peer->client.run = &run;
  peer->client.index = index;
  assert_int_equal(stream_connect(&peer->client.stream, loop, &ops, &run.address, NULL, NULL, NULL, NULL), STATUS_OK);
}

static int stop(void **state) {
  (void)state;
  for (int i = 0; i < CLIENTS; i++) {
    if (!peers[i]) continue;
    stream_close(&peers[i]->client.stream, true);
    driver_juggle.released(&peers[i]->client);
    free(peers[i]);
    peers[i] = NULL;
  }
  loop_destroy(loop);
  driver_juggle.release(&run);
  test_server_remove(&server);
  return 0;
}

/* Turns the loop until done says so. */
static void run_until(bool (*done)(void), const char *what) {
  uint64_t deadline_ns = clock_now_ns() + 30 * NS_PER_SEC;
  while (!done()) {
    for (int i = 0; i < CLIENTS; i++)
      if (peers[i] && peers[i]->failed) fail_msg("client %d failed with code %d", i, (int)peers[i]->failed_code);
    if (clock_now_ns() > deadline_ns) fail_msg("%s: waited too long", what);
    loop_turn(loop, clock_now_ns() + 10 * NS_PER_MS);
  }
}

static void send_message(uint32_t sender, enum publish_to to, uint32_t recipient, uint32_t sequence) {
  struct publish publish = {.to = to,
      .recipient = recipient,
      .payload = {.run_id = run.settings.run_id,
          .scheduled_ns = clock_now_ns(),
          .written_ns = clock_now_ns(),
          .sender = sender,
          .sequence = sequence,
          .size = 256,
          .phase = PAYLOAD_MEASURE}};
  publish.token = publish_token(&publish.payload);
  assert_int_equal(driver_juggle.publish(&peers[sender]->client, &publish), PUBLISH_WRITTEN);
}

static bool all_established(void) {
  for (int i = 0; i < CLIENTS; i++)
    if (peers[i] && !peers[i]->established) return false;
  return true;
}

/* ---- A chatroom ---- */

/* Senders 0 and 1, who get the other's messages. */
static bool room_is_through(void) {
  for (int i = 0; i < CLIENTS; i++)
    if (peers[i]->delivered < (i < 2 ? ROOM_MESSAGES : 2 * ROOM_MESSAGES)) return false;
  return peers[0]->acked == ROOM_MESSAGES && peers[1]->acked == ROOM_MESSAGES;
}

static void every_member_gets_what_is_said_in_the_room(void **state) {
  (void)state;
  start(&(struct driver_settings){.room_members = CLIENTS});
  for (uint32_t i = 0; i < CLIENTS; i++)
    connect_peer(i);
  run_until(all_established, "connecting");
  for (uint32_t sequence = 0; sequence < ROOM_MESSAGES; sequence++) {
    send_message(0, PUBLISH_TO_ROOM, 0, sequence);
    send_message(1, PUBLISH_TO_ROOM, 0, sequence);
    loop_turn(loop, 0);
  }
  run_until(room_is_through, "the room's messages");
  for (int i = 0; i < CLIENTS; i++) {
    assert_int_equal(peers[i]->delivered, i < 2 ? ROOM_MESSAGES : 2 * ROOM_MESSAGES);
    assert_int_equal(peers[i]->repeated, 0);
    assert_int_equal(peers[i]->refused, 0);
  }
}

/* ---- A backlog ---- */

static void muster_knows_what_musterd_keeps(void **state) {
  (void)state;
  assert_int_equal(EMBEDDED_ADDRESSES_MAX, DOORS_MAX);
  assert_int_equal(EMBEDDED_BACKLOG_MESSAGES, INBOX_ENTRIES);
  assert_int_equal(EMBEDDED_BACKLOG_MESSAGES_IN_ALL, INBOX_ENTRIES_IN_ALL);
  assert_int_equal(EMBEDDED_BACKLOG_NS, OFFLINE_WINDOW_MS * NS_PER_MS);
}

static bool backlog_is_acked(void) {
  return peers[0]->acked + peers[0]->refused == BACKLOG;
}

static void a_backlog_is_read_to_its_end(void **state) {
  (void)state;
  start(&(struct driver_settings){.backlog = true});
  connect_peer(0);
  run_until(all_established, "connecting the sender");
  for (uint32_t sequence = 0; sequence < BACKLOG; sequence++) {
    send_message(0, PUBLISH_TO_CLIENT, 1, sequence);
    loop_turn(loop, 0);
  }
  run_until(backlog_is_acked, "the acks of the backlog");
  assert_int_equal(peers[0]->refused, 0);

  connect_peer(1);
  run_until(all_established, "reading the backlog");
  assert_int_equal(peers[1]->delivered, BACKLOG);
  assert_int_equal(peers[1]->before_established, BACKLOG);
  assert_int_equal(peers[1]->repeated, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(every_member_gets_what_is_said_in_the_room, stop),
      cmocka_unit_test_teardown(a_backlog_is_read_to_its_end, stop),
      cmocka_unit_test(muster_knows_what_musterd_keeps),
  };
  return cmocka_run_group_tests_name("driver_and_server", tests, NULL, NULL);
}
