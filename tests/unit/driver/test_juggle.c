/* The JuggleIM driver against a scripted peer: a socket pair, with the driver's stream on one end and bytes that the
 * test writes and reads on the other. */
#include "base/clock.h"
#include "base/rng.h"
#include "driver/juggle_internal.h"
#include "net/http.h"
#include "net/ws.h"
#include "wire/juggle.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define T INT64_C(1700000000456)

struct fixture {
  struct loop *loop;
  struct client *client;
  struct driver_run run;
  struct juggle_population population;
  const char *tokens[2];
  int peer;
  uint8_t in[1 << 20]; /* what the client sent and the test has not read */
  size_t in_len;
  uint8_t message[1 << 20]; /* the last message of the client, unmasked */
  struct juggle_key key;
  /* What the hooks were told. */
  int established, failed, acked, delivered, overlaps, wakes;
  int32_t failed_code, acked_code;
  uint32_t acked_token;
  char content[64]; /* of the last delivery */
};

static struct fixture *fixture; /* of the test that runs: hooks have no context of their own */

static void on_established(struct client *client) {
  (void)client;
  fixture->established++;
}

static void on_failed(struct client *client, int32_t code) {
  fixture->failed++;
  fixture->failed_code = code;
  stream_close(&client->stream, false);
}

static void on_acked(struct client *client, uint32_t token, int32_t code) {
  (void)client;
  fixture->acked++;
  fixture->acked_token = token;
  fixture->acked_code = code;
}

static void on_delivered(struct client *client, struct view content, bool overlap) {
  (void)client;
  fixture->delivered++;
  fixture->overlaps += overlap;
  snprintf(fixture->content, sizeof(fixture->content), "%.*s", (int)content.len, (const char *)content.data);
}

static void on_wake(struct client *client, uint64_t due_ns) {
  (void)client;
  assert_true(due_ns > clock_now_ns() - NS_PER_SEC);
  fixture->wakes++;
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
  (void)stream, (void)end, (void)error;
}

static const struct stream_ops ops = {
    .opened = stream_opened,
    .received = stream_received,
    .closed = stream_closed,
};

static void turns(struct fixture *f, int count) {
  while (count-- > 0)
    loop_turn(f->loop, 0);
}

static int start(void **state, bool obfuscate) {
  struct fixture *f = calloc(1, sizeof(*f));
  int pair[2];
  fixture = f;
  *state = f;
  if (!f || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return -1;
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  fcntl(pair[1], F_SETFL, O_NONBLOCK);
  f->peer = pair[1];
  f->tokens[0] = f->tokens[1] = "CghiZW5jaGFwcBoQxUUTN0KvwqD692ba434Daw==";
  f->population.tokens = f->tokens;
  f->population.prefix_len = (size_t)snprintf(f->population.prefix, sizeof(f->population.prefix), "muster-0badcafe-");
  snprintf(f->population.group_prefix, sizeof(f->population.group_prefix), "muster-0badcafe-group-");
  f->run.driver = &driver_juggle;
  f->run.population = &f->population;
  f->run.settings = (struct driver_settings){
      .app_key = "benchapp", .payload_bytes = 256, .store = true, .count = true, .obfuscate = obfuscate};
  f->run.settings.url.port = 9003;
  snprintf(f->run.server_name, sizeof(f->run.server_name), "127.0.0.1");
  f->client = calloc(1, sizeof(struct client) + driver_juggle.client_bytes);
  f->client->hooks = &hooks;
  f->client->run = &f->run;
  assert_int_equal(loop_create(&f->loop, NULL), STATUS_OK);
  return stream_accept(&f->client->stream, f->loop, &ops, pair[0], NULL, NULL) == STATUS_OK ? 0 : -1;
}

static int start_plain(void **state) {
  return start(state, false);
}

static int start_obfuscated(void **state) {
  return start(state, true);
}

static int stop(void **state) {
  struct fixture *f = *state;
  stream_close(&f->client->stream, false);
  driver_juggle.released(f->client);
  loop_destroy(f->loop);
  close(f->peer);
  free(f->client);
  free(f);
  return 0;
}

/* --- the peer --- */

static void peer_read(struct fixture *f) {
  turns(f, 3);
  ssize_t got;
  while ((got = read(f->peer, f->in + f->in_len, sizeof(f->in) - f->in_len)) > 0)
    f->in_len += (size_t)got;
}

static void peer_write(struct fixture *f, const void *data, size_t len) {
  const uint8_t *at = data;
  while (len > 0 && f->failed == 0) {
    ssize_t put = write(f->peer, at, len);
    if (put > 0) at += put, len -= (size_t)put;
    turns(f, 2);
  }
  turns(f, 3);
}

static void peer_frame(struct fixture *f, const void *message, size_t len) {
  uint8_t *frame = malloc(len + WS_HEADER_MAX);
  size_t head = ws_write_header(frame, WS_BINARY, len, NULL);
  memcpy(frame + head, message, len);
  peer_write(f, frame, head + len);
  free(frame);
}

static size_t from_hex(const char *hex, uint8_t *out) {
  size_t len = strlen(hex) / 2;
  for (size_t i = 0; i < len; i++) {
    unsigned byte;
    assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
    out[i] = (uint8_t)byte;
  }
  return len;
}

static void peer_vector(struct fixture *f, const char *hex) {
  uint8_t message[512];
  peer_frame(f, message, from_hex(hex, message));
}

/* A message of the server around a body, in the mode of the connection. */
static void peer_send(struct fixture *f, int32_t cmd, int32_t qos, const uint8_t *body, size_t len) {
  bool obfuscated = f->run.settings.obfuscate;
  size_t head = juggle_envelope_head_size(cmd, qos, len, obfuscated);
  uint8_t *message = malloc(head + len + 1);
  uint8_t *at = juggle_write_envelope_head(message, cmd, qos, len, obfuscated);
  if (len > 0) memcpy(at, body, len);
  if (obfuscated) juggle_xor(at, len, &f->key);
  peer_frame(f, message, head + len);
  free(message);
}

/* Takes the client's next frame; its message is in f->message. Returns the opcode, 0 when there is none. */
static uint8_t peer_take(struct fixture *f, size_t *len) {
  peer_read(f);
  struct ws ws;
  struct ws_event event;
  ws_init(&ws, WS_SERVER, 1 << 20);
  size_t used = ws_read(&ws, f->in, f->in_len, &event);
  uint8_t opcode = event.kind == WS_EVENT_MESSAGE ? event.opcode
                   : event.kind == WS_EVENT_PONG  ? WS_PONG
                   : event.kind == WS_EVENT_PING  ? WS_PING
                                                  : 0;
  *len = opcode ? event.len : 0;
  if (opcode) memcpy(f->message, event.data, event.len);
  ws_free(&ws);
  memmove(f->in, f->in + used, f->in_len - used);
  f->in_len -= used;
  return opcode;
}

/* The client's next message, which must be that command; the body is bare of obfuscation. */
static struct view peer_expect(struct fixture *f, int32_t cmd) {
  struct juggle_envelope envelope;
  size_t len;
  assert_int_equal(peer_take(f, &len), WS_BINARY);
  assert_true(juggle_read_envelope(view_of(f->message, len), &envelope));
  assert_int_equal(envelope.cmd, cmd);
  if (!f->run.settings.obfuscate) {
    assert_int_equal(envelope.payload.len, 0);
    return envelope.body;
  }
  assert_int_equal(envelope.body_field, 0);
  if (cmd == JUGGLE_CONNECT) juggle_key_learn(envelope.payload, &f->key);
  juggle_xor(f->message + (envelope.payload.data - f->message), envelope.payload.len, &f->key);
  return envelope.payload;
}

static void peer_expect_nothing(struct fixture *f) {
  size_t len;
  assert_int_equal(peer_take(f, &len), 0);
  assert_int_equal(f->in_len, 0);
}

static void peer_upgrade(struct fixture *f) {
  struct http_head head;
  size_t used, len;
  char answer[512];
  peer_read(f);
  assert_int_equal(http_read_request(f->in, f->in_len, &head, &used, NULL), HTTP_COMPLETE);
  assert_true(view_is(head.target, "/im"));
  assert_int_equal(ws_answer_request(&head, answer, sizeof(answer), &len, NULL), STATUS_OK);
  f->in_len = 0;
  peer_write(f, answer, len);
}

static void peer_connect_ack(struct fixture *f, int32_t code, int64_t time_ms) {
  struct juggle_connect_ack ack = {.code = code, .session = view_str("Abc123Def45"), .timestamp_ms = time_ms};
  uint8_t body[128];
  peer_send(f, JUGGLE_CONNECT_ACK, 0, body, (size_t)(juggle_write_connect_ack(body, &ack) - body));
}

struct pull {
  int32_t index;
  int64_t from_ms;
};

static struct pull peer_expect_sync(struct fixture *f) {
  struct view body = peer_expect(f, JUGGLE_QUERY);
  struct juggle_request query;
  struct juggle_sync_request sync;
  assert_true(juggle_read_request(body, &query));
  assert_true(view_is(query.topic, "sync_msgs"));
  assert_true(view_is(query.target, "muster-0badcafe-0"));
  assert_true(juggle_read_sync_request(query.data, &sync));
  assert_false(sync.contains_send_box);
  return (struct pull){query.index, sync.sync_time_ms};
}

/* DownMsg with the fields that matter, by hand: target, channel, type, sender, id, content, time, clientUid. */
static size_t down_msg(uint8_t *out, int64_t time_ms, const char *content) {
  uint8_t *at = out;
  uint64_t time = (uint64_t)time_ms;
  size_t len = strlen(content);
  memcpy(at,
      "\x0a\x05"
      "alice"
      "\x10\x01"
      "\x1a\x07"
      "jg:text"
      "\x22\x05"
      "alice"
      "\x3a",
      26);
  at += 26;
  *at++ = (uint8_t)len;
  memcpy(at, content, len);
  at += len;
  *at++ = 0x40;
  for (; time >= 128; time >>= 7)
    *at++ = (uint8_t)(time | 128);
  *at++ = (uint8_t)time;
  return (size_t)(at - out);
}

static void peer_push(struct fixture *f, int32_t index, int64_t time_ms, const char *content) {
  uint8_t data[256], body[512];
  struct juggle_request push = {.index = index, .topic = view_str("msg"), .target = view_str("bob")};
  push.data = view_of(data, down_msg(data, time_ms, content));
  peer_send(f, JUGGLE_PUBLISH, 1, body, (size_t)(juggle_write_request(body, &push) - body));
}

static void peer_expect_push_ack(struct fixture *f, int32_t index) {
  struct juggle_publish_ack ack;
  assert_true(juggle_read_publish_ack(peer_expect(f, JUGGLE_PUBLISH_ACK), &ack));
  assert_int_equal(ack.index, index);
}

static void peer_notify(struct fixture *f, int64_t time_ms) {
  uint8_t data[32], body[128];
  struct juggle_notify notify = {.type = 1, .sync_time_ms = time_ms};
  struct juggle_request push = {.index = 9, .topic = view_str("ntf"), .target = view_str("bob")};
  push.data = view_of(data, (size_t)(juggle_write_notify(data, &notify) - data));
  peer_send(f, JUGGLE_PUBLISH, 1, body, (size_t)(juggle_write_request(body, &push) - body));
}

/* Answers a pull with one message for each of count times. */
static void peer_page(struct fixture *f, int32_t index, const int64_t *times, int count, bool finished) {
  uint8_t set[2048], body[4096];
  size_t len = 0;
  for (int i = 0; i < count; i++) {
    uint8_t message[256];
    size_t message_len = down_msg(message, times[i], "pulled");
    set[len++] = 0x0a;
    set[len++] = (uint8_t)message_len;
    memcpy(set + len, message, message_len);
    len += message_len;
  }
  if (finished) set[len++] = 0x18, set[len++] = 1;
  struct juggle_query_ack ack = {.index = index, .timestamp_ms = T, .data = view_of(set, len)};
  peer_send(f, JUGGLE_QUERY_ACK, 1, body, (size_t)(juggle_write_query_ack(body, &ack) - body));
}

static void peer_refuse_sync(struct fixture *f, int32_t index, int32_t code) {
  uint8_t body[64];
  struct juggle_query_ack ack = {.index = index, .code = code};
  peer_send(f, JUGGLE_QUERY_ACK, 0, body, (size_t)(juggle_write_query_ack(body, &ack) - body));
}

/* Through login and the first sync; the cursor is T afterwards. */
static void log_in(struct fixture *f) {
  peer_upgrade(f);
  struct juggle_connect connect;
  assert_true(juggle_read_connect(peer_expect(f, JUGGLE_CONNECT), &connect));
  assert_true(view_is(connect.proto_id, "jug9le1m"));
  assert_true(view_is(connect.appkey, "benchapp"));
  assert_true(view_is(connect.token, f->tokens[0]));
  assert_true(view_is(connect.platform, "Web"));
  peer_connect_ack(f, 0, T);
  assert_int_equal(f->established, 0);
  struct pull pull = peer_expect_sync(f);
  assert_int_equal(pull.from_ms, T);
  peer_page(f, pull.index, NULL, 0, true);
  assert_int_equal(f->established, 1);
  assert_int_equal(f->failed, 0);
}

static enum publish_result publish(struct fixture *f, bool to_group, uint32_t token) {
  struct publish publish = {.to = to_group ? PUBLISH_TO_GROUP : PUBLISH_TO_CLIENT, .recipient = 1, .token = token};
  publish.payload = (struct payload){.run_id = 7,
      .scheduled_ns = 1,
      .written_ns = 2,
      .sender = 0,
      .sequence = token,
      .size = 256,
      .phase = PAYLOAD_MEASURE};
  return driver_juggle.publish(f->client, &publish);
}

static void peer_publish_ack(struct fixture *f, int32_t index, int32_t code) {
  uint8_t body[64];
  struct juggle_publish_ack ack = {.index = index, .code = code};
  peer_send(f, JUGGLE_PUBLISH_ACK, 0, body, (size_t)(juggle_write_publish_ack(body, &ack) - body));
}

/* --- tests --- */

static void test_logs_in(void **state) {
  log_in(*state);
}

static void test_login_vectors(void **state) {
  struct fixture *f = *state;
  peer_upgrade(f);
  peer_expect(f, JUGGLE_CONNECT);
  peer_vector(f, "08011001621b1205616c6963651a0b416263313233446566343520fbd095ffbc31");
  struct pull pull = peer_expect_sync(f);
  assert_int_equal(pull.index, 1);
  assert_int_equal(pull.from_ms, INT64_C(1700000000123));
  assert_int_equal(f->failed, 0);
}

static void test_refused_login(void **state) {
  struct fixture *f = *state;
  peer_upgrade(f);
  peer_expect(f, JUGGLE_CONNECT);
  peer_vector(f, "08011001621708fd551a0b416263313233446566343520fbd095ffbc31");
  assert_int_equal(f->failed, 1);
  assert_int_equal(f->failed_code, JUGGLE_TOKEN_BAD);
}

/* Negative numbers are muster's own causes: one from a server must not pass for, say, a failed TLS handshake. */
static void test_negative_codes_break_the_protocol(void **state) {
  struct fixture *f = *state;
  peer_upgrade(f);
  peer_expect(f, JUGGLE_CONNECT);
  peer_connect_ack(f, CAUSE_TLS, T);
  assert_int_equal(f->failed, 1);
  assert_int_equal(f->failed_code, CAUSE_PROTOCOL);
}

static void check_published(struct fixture *f, bool to_group, int32_t index) {
  struct juggle_request request;
  struct juggle_up_msg msg;
  struct payload payload;
  assert_true(juggle_read_request(peer_expect(f, JUGGLE_PUBLISH), &request));
  assert_int_equal(request.index, index);
  assert_true(view_is(request.topic, to_group ? "g_msg" : "p_msg"));
  assert_true(view_is(request.target, to_group ? "muster-0badcafe-group-1" : "muster-0badcafe-1"));
  assert_true(juggle_read_up_msg(request.data, &msg));
  assert_true(view_is(msg.msg_type, "jg:text"));
  assert_int_equal(msg.flags, JUGGLE_FLAG_STORE | JUGGLE_FLAG_COUNT);
  assert_int_equal(msg.client_uid.len, 22);
  assert_int_equal(msg.content.len, 256);
  assert_int_equal(payload_read(PAYLOAD_TEXT, msg.content.data, msg.content.len, &payload), PAYLOAD_OK);
  assert_int_equal(payload.run_id, 7);
}

static void test_publishes_and_is_acked(void **state) {
  struct fixture *f = *state;
  log_in(f);
  assert_int_equal(publish(f, false, 41), PUBLISH_WRITTEN);
  assert_int_equal(publish(f, true, 42), PUBLISH_WRITTEN);
  check_published(f, false, 2); /* the sync took 1 */
  check_published(f, true, 3);
  peer_publish_ack(f, 3, 0);
  assert_int_equal(f->acked, 1);
  assert_int_equal(f->acked_token, 42);
  peer_publish_ack(f, 2, JUGGLE_RATE_LIMIT);
  assert_int_equal(f->acked, 2);
  assert_int_equal(f->acked_token, 41);
  assert_int_equal(f->acked_code, JUGGLE_RATE_LIMIT);
  /* A second answer, and one to nothing, are nobody's. */
  peer_publish_ack(f, 2, 0);
  peer_publish_ack(f, 777, 0);
  peer_publish_ack(f, 0, JUGGLE_TOPIC_MISSING);
  assert_int_equal(f->acked, 2);
  assert_int_equal(f->failed, 0);
}

static void test_publish_before_login_stays_due(void **state) {
  struct fixture *f = *state;
  assert_int_equal(publish(f, false, 1), PUBLISH_BLOCKED);
  peer_upgrade(f);
  assert_int_equal(publish(f, false, 1), PUBLISH_BLOCKED);
}

static void drain(struct fixture *f) {
  peer_read(f);
  f->in_len = 0;
}

static void test_many_outstanding_in_any_order(void **state) {
  struct fixture *f = *state;
  enum { COUNT = 3000 };
  int32_t order[COUNT];
  struct rng rng;
  log_in(f);
  for (uint32_t i = 0; i < COUNT; i++) {
    assert_int_equal(publish(f, false, 100000 + i), PUBLISH_WRITTEN);
    order[i] = (int32_t)i + 2;
    if (i % 100 == 99) drain(f);
  }
  rng_seed(&rng, 1);
  for (uint32_t i = COUNT - 1; i > 0; i--) {
    uint32_t j = (uint32_t)rng_below(&rng, i + 1);
    int32_t swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
  for (int i = 0; i < COUNT; i++) {
    peer_publish_ack(f, order[i], 0);
    assert_int_equal(f->acked, i + 1);
    assert_int_equal(f->acked_token, 100000 + order[i] - 2);
  }
}

static void test_index_wraps_around_what_is_outstanding(void **state) {
  struct fixture *f = *state;
  log_in(f);
  assert_int_equal(publish(f, false, 1), PUBLISH_WRITTEN); /* index 2, never answered */
  drain(f);
  for (uint32_t i = 0; i < 65533; i++) {
    assert_int_equal(publish(f, false, 5), PUBLISH_WRITTEN);
    if (i % 200 == 0) drain(f);
    peer_publish_ack(f, (int32_t)(3 + i), 0);
  }
  assert_int_equal(f->acked, 65533);
  drain(f);
  assert_int_equal(publish(f, false, 6), PUBLISH_WRITTEN);
  check_published(f, false, 1);
  assert_int_equal(publish(f, false, 7), PUBLISH_WRITTEN);
  check_published(f, false, 3);
  peer_publish_ack(f, 2, 0);
  assert_int_equal(f->acked_token, 1);
}

static void test_push_vector_is_delivered_and_acked(void **state) {
  struct fixture *f = *state;
  log_in(f);
  peer_vector(f, "08011003180172b501080112036d73671a03626f6220ccd395ffbc312a9f010a05616c69636510011a076a673a7465787422"
                 "05616c6963652a106e6d333975797675616163666d75677830013a137b22636f6e74656e74223a2268656c6c6f227d40c8d3"
                 "95ffbc31480a6208632d3030303030318a01150a05616c6963651205416c6963652898c895ffbc31b80101b202150a05616c"
                 "6963651205416c6963652898c895ffbc31aa06110a03626f621203426f6228b0c095ffbc31b20600");
  assert_int_equal(f->delivered, 1);
  assert_string_equal(f->content, "{\"content\":\"hello\"}");
  size_t len;
  uint8_t wanted[8];
  assert_int_equal(from_hex("080110047a020801", wanted), 8);
  assert_int_equal(peer_take(f, &len), WS_BINARY);
  assert_int_equal(len, 8);
  assert_memory_equal(f->message, wanted, 8);
}

static void test_second_push_is_no_overlap(void **state) {
  struct fixture *f = *state;
  log_in(f);
  peer_push(f, 1, T + 10, "one");
  peer_push(f, 2, T + 10, "one");
  peer_push(f, 3, T + 5, "older");
  peer_expect_push_ack(f, 1);
  peer_expect_push_ack(f, 2);
  peer_expect_push_ack(f, 3);
  assert_int_equal(f->delivered, 3); /* all go up: the ledger tells which were first */
  assert_int_equal(f->overlaps, 0);
}

static void test_notify_pulls_page_by_page(void **state) {
  struct fixture *f = *state;
  const int64_t first[] = {T + 1, T + 2}, second[] = {T + 3};
  log_in(f);
  peer_notify(f, T);
  peer_expect_nothing(f); /* nothing new */
  peer_notify(f, T + 2);
  struct pull pull = peer_expect_sync(f);
  assert_int_equal(pull.from_ms, T);
  peer_notify(f, T + 3);
  peer_notify(f, T + 4);
  peer_expect_nothing(f); /* one pull at a time */
  peer_page(f, pull.index, first, 2, false);
  pull = peer_expect_sync(f);
  assert_int_equal(pull.from_ms, T + 2);
  peer_page(f, pull.index, second, 1, true);
  pull = peer_expect_sync(f); /* "again" */
  assert_int_equal(pull.from_ms, T + 3);
  peer_page(f, pull.index, NULL, 0, true);
  peer_expect_nothing(f);
  assert_int_equal(f->delivered, 3);
  assert_int_equal(f->overlaps, 0);
  assert_int_equal(f->failed, 0);
}

static void test_push_after_pull_is_an_overlap_once(void **state) {
  struct fixture *f = *state;
  const int64_t times[] = {T + 1, T + 2};
  log_in(f);
  peer_notify(f, T + 2);
  struct pull pull = peer_expect_sync(f);
  peer_page(f, pull.index, times, 2, true);
  peer_push(f, 1, T + 2, "pulled");
  assert_int_equal(f->delivered, 3);
  assert_int_equal(f->overlaps, 1);
  peer_push(f, 2, T + 2, "pulled"); /* the server pushes it twice: no overlap any more */
  assert_int_equal(f->delivered, 4);
  assert_int_equal(f->overlaps, 1);
  peer_push(f, 3, T + 3, "new");
  assert_int_equal(f->overlaps, 1);
}

static void test_pull_of_what_was_pushed_meanwhile_is_an_overlap(void **state) {
  struct fixture *f = *state;
  const int64_t times[] = {T + 1, T + 2, T + 2};
  log_in(f);
  peer_notify(f, T + 1);
  struct pull pull = peer_expect_sync(f);
  peer_push(f, 1, T + 2, "pushed");
  assert_int_equal(f->overlaps, 0);
  peer_expect_push_ack(f, 1);
  peer_page(f, pull.index, times, 3, true);
  assert_int_equal(f->delivered, 4);
  /* T+1 lies below the push and might have been pushed too; the second T+2 of one page is the server's fault. */
  assert_int_equal(f->overlaps, 2);
  peer_notify(f, T + 2);
  peer_expect_nothing(f);
  peer_notify(f, T + 3);
  pull = peer_expect_sync(f);
  assert_int_equal(pull.from_ms, T + 2);
}

static void test_pull_behind_the_cursor_is_no_overlap(void **state) {
  struct fixture *f = *state;
  const int64_t times[] = {T + 1};
  log_in(f);
  peer_push(f, 1, T + 1, "pushed");
  peer_expect_push_ack(f, 1);
  peer_notify(f, T + 2);
  struct pull pull = peer_expect_sync(f);
  assert_int_equal(pull.from_ms, T + 1);
  peer_page(f, pull.index, times, 1, true);
  assert_int_equal(f->delivered, 2);
  assert_int_equal(f->overlaps, 0);
}

static void test_endless_page_ends(void **state) {
  struct fixture *f = *state;
  const int64_t times[] = {T + 1};
  log_in(f);
  peer_notify(f, T + 1);
  struct pull pull = peer_expect_sync(f);
  peer_page(f, pull.index, times, 1, false);
  pull = peer_expect_sync(f);
  peer_page(f, pull.index, times, 1, false); /* brings nothing new and says "more" */
  peer_expect_nothing(f);
  assert_int_equal(f->failed, 0);
}

static void test_rate_limited_sync_is_repeated(void **state) {
  struct fixture *f = *state;
  log_in(f);
  peer_notify(f, T + 1);
  struct pull pull = peer_expect_sync(f);
  peer_refuse_sync(f, pull.index, JUGGLE_RATE_LIMIT);
  peer_expect_nothing(f);
  assert_int_equal(f->wakes, 1);
  driver_juggle.tick(f->client, clock_now_ns());
  struct pull again = peer_expect_sync(f);
  assert_int_equal(again.from_ms, T);
  assert_int_not_equal(again.index, pull.index);
  assert_int_equal(f->failed, 0);
}

static void test_refused_first_sync_fails_the_connect(void **state) {
  struct fixture *f = *state;
  peer_upgrade(f);
  peer_expect(f, JUGGLE_CONNECT);
  peer_connect_ack(f, 0, T);
  struct pull pull = peer_expect_sync(f);
  peer_refuse_sync(f, pull.index, JUGGLE_TOPIC_UNSUPPORTED);
  assert_int_equal(f->failed_code, JUGGLE_TOPIC_UNSUPPORTED);
  assert_int_equal(f->established, 0);
}

static void test_kick(void **state) {
  struct fixture *f = *state;
  log_in(f);
  peer_vector(f, "080110026a0a08835610ccd395ffbc31");
  assert_int_equal(f->failed, 1);
  assert_int_equal(f->failed_code, JUGGLE_KICKED);
}

static void test_kick_without_a_code(void **state) {
  struct fixture *f = *state;
  log_in(f);
  peer_vector(f, "080110026a00");
  assert_int_equal(f->failed_code, CAUSE_KICKED);
}

static void test_keep_alive(void **state) {
  struct fixture *f = *state;
  uint64_t now_ns = clock_now_ns();
  log_in(f);
  for (int i = 1; i <= 3; i++) {
    driver_juggle.tick(f->client, now_ns + (uint64_t)i * driver_juggle.tick_ns);
    peer_expect(f, JUGGLE_PING);
  }
  peer_vector(f, "08011009"); /* Pong */
  for (int i = 4; i <= 6; i++) {
    driver_juggle.tick(f->client, now_ns + (uint64_t)i * driver_juggle.tick_ns);
    peer_expect(f, JUGGLE_PING);
  }
  assert_int_equal(f->failed, 0);
  driver_juggle.tick(f->client, now_ns + 7 * driver_juggle.tick_ns);
  assert_int_equal(f->failed_code, CAUSE_KEEP_ALIVE);
}

static void test_websocket_ping_is_answered(void **state) {
  struct fixture *f = *state;
  size_t len;
  log_in(f);
  peer_write(f,
      "\x89\x03"
      "abc",
      5);
  assert_int_equal(peer_take(f, &len), WS_PONG);
  assert_int_equal(len, 3);
  assert_memory_equal(f->message, "abc", 3);
}

static void test_says_good_bye(void **state) {
  struct fixture *f = *state;
  log_in(f);
  driver_juggle.closing(f->client);
  peer_expect(f, JUGGLE_DISCONNECT);
}

/* Everything that a server says, byte by byte. */
static void test_split_bytes(void **state) {
  struct fixture *f = *state;
  peer_upgrade(f);
  peer_expect(f, JUGGLE_CONNECT);
  uint8_t bytes[512];
  size_t len = 2 + from_hex("08011001621b1205616c6963651a0b416263313233446566343520fbd095ffbc31", bytes + 2);
  bytes[0] = 0x82;
  bytes[1] = (uint8_t)(len - 2);
  for (size_t i = 0; i < len; i++)
    peer_write(f, bytes + i, 1);
  struct pull pull = peer_expect_sync(f);
  uint8_t empty[] = "\x82\x16\x08\x01\x10\x06\x18\x01\x8a\x01\x0d\x08\x03\x18\xd1\xd3\x95\xff\xbc\x31\x22\x02\x18\x01";
  empty[12] = (uint8_t)pull.index;
  for (size_t i = 0; i < 24; i++)
    peer_write(f, empty + i, 1);
  assert_int_equal(f->established, 1);
  assert_int_equal(f->failed, 0);
}

static void test_upgrade_refusals(void **state) {
  static const char *const answers[] = {
      "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "
      "AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
      "SSH-2.0-OpenSSH_9.2\r\n",
      "\x16\x03\x01\x02",
  };
  for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
    if (i > 0) assert_int_equal(start_plain(state), 0);
    struct fixture *f = *state;
    peer_read(f);
    peer_write(f, answers[i], strlen(answers[i]));
    if (f->failed == 0) peer_write(f, "\r\n\r\n", 4);
    assert_int_equal(f->failed, 1);
    assert_int_equal(f->failed_code, CAUSE_UPGRADE);
    if (i + 1 < sizeof(answers) / sizeof(answers[0])) stop(state);
  }
}

static void test_endless_upgrade_head(void **state) {
  struct fixture *f = *state;
  char line[1024];
  peer_read(f);
  peer_write(f, "HTTP/1.1 101 Switching Protocols\r\n", 34);
  memset(line, 'a', sizeof(line));
  memcpy(line, "X: ", 3);
  memcpy(line + sizeof(line) - 2, "\r\n", 2);
  for (int i = 0; i < 40 && f->failed == 0; i++)
    peer_write(f, line, sizeof(line));
  assert_int_equal(f->failed_code, CAUSE_UPGRADE);
}

static void check_garbage(void **state, const void *bytes, size_t len) {
  struct fixture *f = *state;
  log_in(f);
  peer_write(f, bytes, len);
  assert_int_equal(f->failed, 1);
  assert_int_equal(f->failed_code, CAUSE_PROTOCOL);
}

static void test_broken_frames(void **state) {
  static const struct {
    const char *bytes;
    size_t len;
  } cases[] = {
      {"\x82\x01\xff", 3},                              /* no envelope */
      {"\x82\x04\x08\x01\x10\x01", 6},                  /* ConnectAck when none is due */
      {"\x82\x04\x08\x01\x10\x2a", 6},                  /* unknown command */
      {"\x82\x04\x08\x01\x10\x08", 6},                  /* Ping is the client's */
      {"\x82\x05\x08\x01\x10\x04\x22\x01\x00", 9},      /* payload in plain mode (and a frame that is too short) */
      {"\x82\x08\x08\x01\x10\x04\x72\x02\x08\x01", 10}, /* PublishAck in Publish's field */
      {"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", 10}, /* 8 EiB */
      {"\x82\x7f\x00\x00\x00\x01\x00\x00\x00\x00", 10}, /* 4 GiB */
      {"\xc2\x01\x00", 3},                              /* reserved bit */
      {"\x82\x81\x00\x00\x00\x00\x00", 7},              /* masked by a server */
      {"\x83\x01\x00", 3},                              /* reserved opcode */
      {"\x81\x01\xff", 3},                              /* text that is no UTF-8 */
      {"\x82\x0a\x08\x01\x10\x03\x72\x04\x12\x09\x6d\x73", 12}, /* a body that ends too early */
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (i > 0) assert_int_equal(start_plain(state), 0);
    check_garbage(state, cases[i].bytes, cases[i].len);
    if (i + 1 < sizeof(cases) / sizeof(cases[0])) stop(state);
  }
}

static void test_plain_body_in_obfuscated_mode(void **state) {
  struct fixture *f = *state;
  log_in(f);
  peer_vector(f, "080110047a0c080310865620c8d395ffbc31");
  assert_int_equal(f->failed_code, CAUSE_PROTOCOL);
}

static void test_random_bytes_never_crash(void **state) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    if (seed > 1) assert_int_equal(start(state, seed % 2), 0);
    struct fixture *f = *state;
    struct rng rng;
    uint8_t bytes[300];
    rng_seed(&rng, seed);
    log_in(f);
    for (int i = 0; i < 20 && f->failed == 0; i++) {
      size_t len = 1 + rng_below(&rng, sizeof(bytes) - 1);
      for (size_t at = 0; at < len; at++)
        bytes[at] = (uint8_t)rng_next(&rng);
      if (seed % 4 == 0) { /* a sound frame around it, and an envelope's head */
        bytes[0] = 0x82, bytes[1] = 100, bytes[2] = 8, bytes[3] = 1, bytes[4] = 0x10, bytes[5] = (uint8_t)(seed % 11);
        len = 102;
      }
      peer_write(f, bytes, len);
    }
    assert_true(f->failed <= 1);
    if (seed < 200) stop(state);
  }
}

static void test_close_frame(void **state) {
  struct fixture *f = *state;
  log_in(f);
  peer_write(f, "\x88\x02\x03\xe8", 4);
  assert_int_equal(f->failed_code, CAUSE_CLOSED_BY_PEER);
}

/* --- the backlog --- */

static void log_in_until_first_sync(struct fixture *f) {
  peer_upgrade(f);
  peer_expect(f, JUGGLE_CONNECT);
  peer_connect_ack(f, 0, T);
}

static void test_backlog_is_pulled_before_the_client_counts_as_connected(void **state) {
  struct fixture *f = *state;
  enum { PAGE = 8 };
  f->run.settings.backlog = true;
  log_in_until_first_sync(f);
  struct pull pull = peer_expect_sync(f);
  assert_int_equal(pull.from_ms, 0);
  for (int page = 0; page < 3; page++) {
    int64_t times[PAGE];
    for (int i = 0; i < PAGE; i++)
      times[i] = T - 1000 + page * PAGE + i;
    peer_page(f, pull.index, times, PAGE, false);
    assert_int_equal(f->delivered, (page + 1) * PAGE);
    assert_int_equal(f->established, 0);
    pull = peer_expect_sync(f);
    assert_int_equal(pull.from_ms, times[PAGE - 1]);
  }
  peer_notify(f, T - 500);
  const int64_t last[] = {T - 600, T - 500};
  peer_page(f, pull.index, last, 2, true);
  assert_int_equal(f->established, 1);
  assert_int_equal(f->delivered, 3 * PAGE + 2);
  assert_int_equal(f->overlaps, 0);
  pull = peer_expect_sync(f); /* the notice that came meanwhile */
  assert_int_equal(pull.from_ms, T - 500);
  assert_int_equal(f->failed, 0);
}

static void test_empty_backlog(void **state) {
  struct fixture *f = *state;
  f->run.settings.backlog = true;
  log_in_until_first_sync(f);
  peer_page(f, peer_expect_sync(f).index, NULL, 0, true);
  assert_int_equal(f->established, 1);
  assert_int_equal(f->delivered, 0);
}

/* --- a second connection of the same client --- */

static void reconnect(struct fixture *f) {
  int pair[2];
  stream_close(&f->client->stream, true);
  driver_juggle.released(f->client);
  driver_juggle.reconnecting(f->client);
  close(f->peer);
  f->in_len = 0;
  f->established = 0;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  fcntl(pair[1], F_SETFL, O_NONBLOCK);
  f->peer = pair[1];
  assert_int_equal(stream_accept(&f->client->stream, f->loop, &ops, pair[0], NULL, NULL), STATUS_OK);
}

static void test_who_comes_back_pulls_from_its_cursor(void **state) {
  struct fixture *f = *state;
  log_in_until_first_sync(f);
  peer_page(f, peer_expect_sync(f).index, NULL, 0, true);
  peer_push(f, 1, T + 10, "pushed");
  peer_expect_push_ack(f, 1);
  assert_int_equal(f->delivered, 1);
  reconnect(f);
  peer_upgrade(f);
  peer_expect(f, JUGGLE_CONNECT);
  peer_connect_ack(f, 0, T + 5000); /* the server's time moves no cursor that stands */
  struct pull pull = peer_expect_sync(f);
  assert_int_equal(pull.from_ms, T + 10);
  const int64_t missed[] = {T + 100, T + 200};
  peer_page(f, pull.index, missed, 2, true);
  assert_int_equal(f->established, 1);
  assert_int_equal(f->delivered, 3);
  assert_int_equal(f->overlaps, 0);
  peer_expect_nothing(f);
  assert_int_equal(f->failed, 0);
}

/* A pull was under way when the connection broke: what was pushed meanwhile will be pulled, and is no duplicate. */
static void test_a_pull_that_never_ended_may_bring_pushes_again(void **state) {
  struct fixture *f = *state;
  log_in_until_first_sync(f);
  peer_page(f, peer_expect_sync(f).index, NULL, 0, true);
  peer_notify(f, T + 50);
  assert_int_equal(peer_expect_sync(f).from_ms, T);
  peer_push(f, 1, T + 60, "pushed");
  assert_int_equal(f->delivered, 1);
  reconnect(f);
  peer_upgrade(f);
  peer_expect(f, JUGGLE_CONNECT);
  peer_connect_ack(f, 0, T + 5000);
  struct pull pull = peer_expect_sync(f);
  assert_int_equal(pull.from_ms, T);
  const int64_t page[] = {T + 50, T + 60, T + 70};
  peer_page(f, pull.index, page, 3, true);
  assert_int_equal(f->delivered, 4);
  assert_int_equal(f->overlaps, 2); /* up to the last push */
  assert_int_equal(f->failed, 0);
}

/* --- the chatroom --- */

#define ROOM "muster-0badcafe-room"

static void answer_query(struct fixture *f, int32_t index, int32_t code, int64_t time_ms) {
  uint8_t body[64];
  struct juggle_query_ack ack = {.index = index, .code = code, .timestamp_ms = time_ms};
  peer_send(f, JUGGLE_QUERY_ACK, 1, body, (size_t)(juggle_write_query_ack(body, &ack) - body));
}

static int32_t expect_join(struct fixture *f) {
  struct juggle_request query;
  struct juggle_room_request join;
  assert_true(juggle_read_request(peer_expect(f, JUGGLE_QUERY), &query));
  assert_true(view_is(query.topic, "c_join"));
  assert_true(view_is(query.target, ROOM));
  assert_true(juggle_read_room_request(query.data, &join));
  assert_true(view_is(join.room_id, ROOM));
  assert_true(join.auto_create);
  return query.index;
}

static struct pull expect_room_sync(struct fixture *f) {
  struct juggle_request query;
  struct juggle_room_sync sync;
  assert_true(juggle_read_request(peer_expect(f, JUGGLE_QUERY), &query));
  assert_true(view_is(query.topic, "c_sync_msgs"));
  assert_true(view_is(query.target, ROOM));
  assert_true(juggle_read_room_sync(query.data, &sync));
  assert_true(view_is(sync.room_id, ROOM));
  return (struct pull){query.index, sync.sync_time_ms};
}

static void peer_room_notify(struct fixture *f, int32_t type, const char *room, int64_t time_ms) {
  uint8_t data[64], body[128];
  struct juggle_notify notify = {.type = type, .sync_time_ms = time_ms, .room_id = view_str(room)};
  struct juggle_request push = {.index = 9, .topic = view_str("ntf"), .target = view_str("bob")};
  push.data = view_of(data, (size_t)(juggle_write_notify(data, &notify) - data));
  peer_send(f, JUGGLE_PUBLISH, 1, body, (size_t)(juggle_write_request(body, &push) - body));
}

/* Through the first sync up to the join's question; returns its index. */
static int32_t log_in_until_join(struct fixture *f) {
  f->run.settings.room_members = 1;
  snprintf(f->population.room_id, sizeof(f->population.room_id), ROOM);
  log_in_until_first_sync(f);
  peer_page(f, peer_expect_sync(f).index, NULL, 0, true);
  assert_int_equal(f->established, 0);
  return expect_join(f);
}

/* The room's cursor is T + 100 afterwards, the inbox's T. */
static void join_room(struct fixture *f) {
  int32_t index = log_in_until_join(f);
  answer_query(f, index, 0, T + 100);
  assert_int_equal(f->established, 1);
  peer_expect_nothing(f);
}

static void test_joins_and_publishes_to_the_room(void **state) {
  struct fixture *f = *state;
  join_room(f);
  struct publish publish = {.to = PUBLISH_TO_ROOM, .token = 5, .payload = {.run_id = 7, .size = 256}};
  assert_int_equal(driver_juggle.publish(f->client, &publish), PUBLISH_WRITTEN);
  struct juggle_request request;
  struct juggle_up_msg msg;
  assert_true(juggle_read_request(peer_expect(f, JUGGLE_PUBLISH), &request));
  assert_true(view_is(request.topic, "c_msg"));
  assert_true(view_is(request.target, ROOM));
  assert_true(juggle_read_up_msg(request.data, &msg));
  assert_int_equal(msg.content.len, 256);
  peer_publish_ack(f, request.index, 0);
  assert_int_equal(f->acked_token, 5);
}

static void test_clients_beyond_the_members_do_not_join(void **state) {
  struct fixture *f = *state;
  f->run.settings.room_members = 1;
  f->client->index = 1;
  log_in_until_first_sync(f);
  struct juggle_request query;
  assert_true(juggle_read_request(peer_expect(f, JUGGLE_QUERY), &query));
  peer_page(f, query.index, NULL, 0, true);
  assert_int_equal(f->established, 1);
  peer_expect_nothing(f);
}

static void test_room_notice_pulls(void **state) {
  struct fixture *f = *state;
  const int64_t first[] = {T + 101, T + 102}, second[] = {T + 103};
  join_room(f);
  peer_room_notify(f, JUGGLE_NOTIFY_ROOM_MSG, ROOM, T + 100);
  peer_room_notify(f, JUGGLE_NOTIFY_ROOM_MSG, "another", T + 900);
  peer_expect_nothing(f);
  peer_room_notify(f, JUGGLE_NOTIFY_ROOM_MSG, ROOM, T + 102);
  struct pull pull = expect_room_sync(f);
  assert_int_equal(pull.from_ms, T + 100);
  peer_room_notify(f, JUGGLE_NOTIFY_ROOM_MSG, ROOM, T + 103);
  peer_expect_nothing(f); /* one pull at a time */
  peer_notify(f, T + 1);
  struct pull inbox = peer_expect_sync(f); /* the inbox has its own */
  assert_int_equal(inbox.from_ms, T);
  peer_page(f, pull.index, first, 2, false);
  assert_int_equal(f->delivered, 2);
  pull = expect_room_sync(f); /* "again" */
  assert_int_equal(pull.from_ms, T + 102);
  peer_page(f, inbox.index, NULL, 0, true);
  peer_page(f, pull.index, second, 1, false);
  assert_int_equal(f->delivered, 3);
  assert_int_equal(f->overlaps, 0);
  peer_room_notify(f, JUGGLE_NOTIFY_ROOM_MSG, ROOM, T + 103);
  peer_expect_nothing(f);
  assert_int_equal(f->failed, 0);
}

/* A DownMsg of the room by push, which moves the room's cursor and not the inbox's. */
static void peer_push_room(struct fixture *f, int64_t time_ms) {
  uint8_t data[256], body[512];
  struct juggle_request push = {.index = 3, .topic = view_str("msg"), .target = view_str("bob")};
  push.data = view_of(data, down_msg(data, time_ms, "pushed"));
  assert_int_equal(data[7], 0x10);
  data[8] = JUGGLE_CHATROOM;
  peer_send(f, JUGGLE_PUBLISH, 0, body, (size_t)(juggle_write_request(body, &push) - body));
}

static void test_room_push_is_delivered(void **state) {
  struct fixture *f = *state;
  const int64_t times[] = {T + 105, T + 106};
  join_room(f);
  peer_push_room(f, T + 104);
  assert_int_equal(f->delivered, 1);
  peer_expect_nothing(f);
  peer_notify(f, T + 1);
  struct pull pull = peer_expect_sync(f);
  assert_int_equal(pull.from_ms, T);
  peer_page(f, pull.index, NULL, 0, true);
  peer_room_notify(f, JUGGLE_NOTIFY_ROOM_MSG, ROOM, T + 106);
  pull = expect_room_sync(f);
  assert_int_equal(pull.from_ms, T + 104);
  peer_push_room(f, T + 105);
  peer_page(f, pull.index, times, 2, false);
  assert_int_equal(f->delivered, 4);
  assert_int_equal(f->overlaps, 1);
}

static void test_refused_join_fails_the_connect(void **state) {
  struct fixture *f = *state;
  answer_query(f, log_in_until_join(f), JUGGLE_ROOM_UNKNOWN, T);
  assert_int_equal(f->established, 0);
  assert_int_equal(f->failed, 1);
  assert_int_equal(f->failed_code, JUGGLE_ROOM_UNKNOWN);
}

static void test_rate_limited_room_queries_are_repeated(void **state) {
  struct fixture *f = *state;
  answer_query(f, log_in_until_join(f), JUGGLE_RATE_LIMIT, T);
  assert_int_equal(f->wakes, 1);
  driver_juggle.tick(f->client, clock_now_ns());
  int32_t index = expect_join(f);
  peer_expect(f, JUGGLE_PING);                                /* the keep-alive of the same tick */
  peer_room_notify(f, JUGGLE_NOTIFY_ROOM_MSG, ROOM, T + 101); /* comes before the answer */
  answer_query(f, index, 0, T + 100);
  assert_int_equal(f->established, 1);
  struct pull pull = expect_room_sync(f);
  answer_query(f, pull.index, JUGGLE_RATE_LIMIT, T);
  assert_int_equal(f->wakes, 2);
  peer_expect_nothing(f);
  driver_juggle.tick(f->client, clock_now_ns());
  pull = expect_room_sync(f);
  assert_int_equal(pull.from_ms, T + 100);
  assert_int_equal(f->failed, 0);
}

static void test_destroyed_room_ends_the_client(void **state) {
  struct fixture *f = *state;
  join_room(f);
  peer_room_notify(f, JUGGLE_NOTIFY_ROOM_DESTROYED, ROOM, T + 101);
  assert_int_equal(f->failed, 1);
  assert_int_equal(f->failed_code, JUGGLE_ROOM_DELETED);
}

static void test_registry(void **state) {
  (void)state;
  assert_ptr_equal(driver_find("juggle"), &driver_juggle);
  assert_ptr_equal(driver_find("ws"), &driver_juggle);
  assert_ptr_equal(driver_find("juggles"), &driver_juggle);
  assert_null(driver_find("w"));
  assert_null(driver_find(""));
  assert_null(driver_find("http"));
  assert_ptr_equal(driver_all()[0], &driver_juggle);
}

#define PLAIN(test) cmocka_unit_test_setup_teardown(test, start_plain, stop)
#define OBFUSCATED(test) cmocka_unit_test_setup_teardown(test, start_obfuscated, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAIN(test_logs_in),
      OBFUSCATED(test_logs_in),
      PLAIN(test_login_vectors),
      PLAIN(test_refused_login),
      PLAIN(test_negative_codes_break_the_protocol),
      PLAIN(test_publishes_and_is_acked),
      OBFUSCATED(test_publishes_and_is_acked),
      PLAIN(test_publish_before_login_stays_due),
      PLAIN(test_many_outstanding_in_any_order),
      PLAIN(test_index_wraps_around_what_is_outstanding),
      PLAIN(test_push_vector_is_delivered_and_acked),
      PLAIN(test_second_push_is_no_overlap),
      PLAIN(test_notify_pulls_page_by_page),
      OBFUSCATED(test_notify_pulls_page_by_page),
      PLAIN(test_push_after_pull_is_an_overlap_once),
      PLAIN(test_pull_of_what_was_pushed_meanwhile_is_an_overlap),
      PLAIN(test_pull_behind_the_cursor_is_no_overlap),
      PLAIN(test_endless_page_ends),
      PLAIN(test_rate_limited_sync_is_repeated),
      PLAIN(test_refused_first_sync_fails_the_connect),
      PLAIN(test_kick),
      PLAIN(test_kick_without_a_code),
      PLAIN(test_keep_alive),
      PLAIN(test_websocket_ping_is_answered),
      PLAIN(test_says_good_bye),
      PLAIN(test_split_bytes),
      PLAIN(test_upgrade_refusals),
      PLAIN(test_endless_upgrade_head),
      PLAIN(test_broken_frames),
      OBFUSCATED(test_plain_body_in_obfuscated_mode),
      PLAIN(test_random_bytes_never_crash),
      PLAIN(test_close_frame),
      OBFUSCATED(test_backlog_is_pulled_before_the_client_counts_as_connected),
      PLAIN(test_empty_backlog),
      OBFUSCATED(test_who_comes_back_pulls_from_its_cursor),
      PLAIN(test_a_pull_that_never_ended_may_bring_pushes_again),
      OBFUSCATED(test_joins_and_publishes_to_the_room),
      PLAIN(test_clients_beyond_the_members_do_not_join),
      OBFUSCATED(test_room_notice_pulls),
      PLAIN(test_room_push_is_delivered),
      PLAIN(test_refused_join_fails_the_connect),
      PLAIN(test_rate_limited_room_queries_are_repeated),
      PLAIN(test_destroyed_room_ends_the_client),
      cmocka_unit_test(test_registry),
  };
  return cmocka_run_group_tests_name("juggle", tests, NULL, NULL);
}
