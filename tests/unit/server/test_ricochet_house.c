/* The Ricochet peer over its transport, and clients that do not read what they asked for, or never end. */
#include "base/base64.h"
#include "base/clock.h"
#include "net/libp2p/peer.h"
#include "server/ricochet.h"
#include "wire/ricochet.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DEADLINE_NS (60 * NS_PER_SEC)
#define DOCUMENT_BYTES (6u << 20)
#define READERS 60

struct world {
  char folder[64];
  struct server_config config;
  struct ricochet_house *house;
  struct loop *loop;
  struct libp2p *node;
  struct libp2p_identity keys;
  struct libp2p_conn *conn;
  int opened, answers, whole, shed, notices, notices_over;
};

static struct world *world;

static void on_opened(struct libp2p_conn *conn) {
  (void)conn;
  world->opened++;
}

static const struct libp2p_conn_ops conn_ops = {.opened = on_opened};

/* A notification is read, but our half stays open. */
static size_t take_all(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  (void)stream, (void)data;
  return len;
}

static void keep_open(struct libp2p_stream *stream) {
  (void)stream;
}

static void on_notice(struct libp2p_stream *stream, void *user) {
  (void)stream, (void)user;
  world->notices++;
}

static void on_notice_over(struct libp2p_stream *stream, enum libp2p_stream_end end) {
  (void)stream, (void)end;
  world->notices_over++;
}

static const struct libp2p_stream_ops notice_ops = {.received = take_all, .ended = keep_open, .closed = on_notice_over};
static const struct libp2p_protocol protocols[] = {{"/ricochet/mailbox-notify/1.0.0", &notice_ops, on_notice}};

static void turn_until(const int *counter, int value) {
  uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;
  while (*counter < value) {
    assert_true(clock_now_ns() < deadline_ns);
    loop_turn(world->loop, clock_now_ns() + 10 * NS_PER_MS);
  }
}

static void connect_client(void) {
  struct err err = {0};
  struct multiaddr to;
  struct address address;
  uint8_t seed[IDENTITY_SEED_BYTES] = {7};
  struct libp2p_config config = {.identity = &world->keys, .protocols = protocols, .protocol_count = 1};
  assert_int_equal(libp2p_identity_make(&world->keys, seed, &err), STATUS_OK);
  assert_int_equal(loop_create(&world->loop, &err), STATUS_OK);
  assert_int_equal(libp2p_create(&world->node, world->loop, &config, &err), STATUS_OK);
  assert_int_equal(multiaddr_parse(world->config.ricochet_tcp.multiaddr, &to, &err), STATUS_OK);
  assert_int_equal(address_resolve(to.host, to.port, &address, &err), STATUS_OK);
  assert_int_equal(libp2p_dial(world->node, &to, &address, NULL, &conn_ops, NULL, &world->conn, &err), STATUS_OK);
  turn_until(&world->opened, 1);
}

static int set_up(void **state) {
  struct err err = {0};
  (void)state;
  world = calloc(1, sizeof *world);
  assert_non_null(world);
  snprintf(world->folder, sizeof world->folder, "/tmp/muster-house-XXXXXX");
  assert_non_null(mkdtemp(world->folder));
  server_config_defaults(&world->config);
  world->config.data_dir = world->folder;
  world->config.ack = ACK_RECEIVED;
  world->config.ricochet_host = "127.0.0.1";
  world->config.max_connections = 10;
  if (ricochet_house_start(&world->house, &world->config, &err) != STATUS_OK) fail_msg("%s", err.text);
  connect_client();
  return 0;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info, (void)kind, (void)where;
  return remove(path);
}

static int tear_down(void **state) {
  (void)state;
  libp2p_close(world->node);
  loop_destroy(world->loop);
  ricochet_house_stop(world->house);
  nftw(world->folder, remove_entry, 4, FTW_DEPTH | FTW_PHYS);
  free(world);
  return 0;
}

/* --- answers --- */

static size_t read_answer(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  struct view body;
  size_t used;
  (void)stream;
  if (ricochet_read_frame(view_of(data, len), &body, &used) != RICOCHET_FRAME_OK) return 0;
  world->answers++;
  return used;
}

static const struct libp2p_stream_ops answer_ops = {.received = read_answer};

/* Reads a short answer; leaves a long one where it is. */
static size_t peek(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  struct ricochet_response response;
  struct view body;
  size_t used;
  (void)stream;
  if (ricochet_read_frame(view_of(data, len), &body, &used) == RICOCHET_FRAME_OK) {
    assert_true(ricochet_read_response(body, &response));
    assert_int_equal(response.answer.status, RICOCHET_OVERLOADED);
    world->shed++;
    world->answers++;
    return used;
  }
  if (!libp2p_stream_user(stream)) {
    libp2p_stream_set_user(stream, world);
    world->whole++;
    world->answers++;
  }
  return 0;
}

static const struct libp2p_stream_ops peek_ops = {.received = peek};

static void ask(const char *protocol, const struct libp2p_stream_ops *ops, struct buf *request) {
  struct libp2p_stream *stream = libp2p_open_stream(world->conn, protocol, ops, NULL);
  assert_non_null(stream);
  assert_true(libp2p_stream_write(stream, request->data, request->len));
  libp2p_stream_end(stream);
  buf_free(request);
}

static void ask_document(const char *operation, struct view content, const struct libp2p_stream_ops *ops) {
  struct buf request = {0};
  struct ricochet_store_request document = {
      .operation = operation, .owner = view_str(world->keys.text), .path = view_str("big"), .body = content};
  assert_true(ricochet_write_request(&request, &document));
  ask("/ricochet/store/doc/1.0.0", ops, &request);
}

/* What waits to be read is bounded, however many ask for it and read nothing. */
static void test_answers_that_nobody_reads(void **state) {
  (void)state;
  uint8_t *content = calloc(1, DOCUMENT_BYTES);
  assert_non_null(content);
  ask_document("PUT", view_of(content, DOCUMENT_BYTES), &answer_ops);
  free(content);
  turn_until(&world->answers, 1);
  world->answers = 0;
  for (int i = 0; i < READERS; i++)
    ask_document("GET", (struct view){0}, &peek_ops);
  turn_until(&world->answers, READERS);
  assert_in_range(world->whole, 10, READERS - 10);
  assert_int_equal(world->shed, READERS - world->whole);
  assert_false(ricochet_house_failed(world->house, &(struct err){0}));
}

static void submit_to_oneself(int number) {
  char id[16];
  struct buf request = {0};
  struct view self = view_str(world->keys.text);
  snprintf(id, sizeof id, "m%d", number);
  struct ricochet_message message = {.message_id = view_str(id), .recipient = self, .sender = self};
  struct ricochet_writer w = ricochet_begin(&request);
  ricochet_put_message(&w, &message);
  assert_true(ricochet_end(&w));
  ask("/sf-network/submit/1.0.0", &answer_ops, &request);
  turn_until(&world->answers, number);
}

/* Notifications that a peer keeps open are given up: others are told again. */
static void test_notifications_that_never_end(void **state) {
  (void)state;
  for (int i = 1; i <= 4; i++) {
    submit_to_oneself(i);
    turn_until(&world->notices, i);
  }
  turn_until(&world->notices_over, 4);
  submit_to_oneself(5);
  turn_until(&world->notices, 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_answers_that_nobody_reads, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_notifications_that_never_end, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
