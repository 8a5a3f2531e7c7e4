/* yamux sessions: the headers of ../shared/protocols/ricochet.md 6.5, a pair that talks through credit and pieces, and
 * peers that break the rules. */
#include "net/libp2p/mux.h"
#include "support/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One side of a session and its one stream. */
struct side {
  struct mux mux;
  struct mux_stream stream; /* ours, or the one that the peer opened */
  struct buf got;
  bool accepts, holds;
  size_t waits_for; /* uses nothing before this much is there */
  int accepted, ended, drained, closed;
  enum mux_stream_end end;
};

static struct side *side_of(struct mux_stream *stream) {
  return stream->mux->user;
}

static struct mux_stream *accept_stream(struct mux *mux) {
  struct side *side = mux->user;
  if (!side->accepts) return NULL;
  memset(&side->stream, 0, sizeof side->stream);
  return &side->stream;
}

static void accepted(struct mux_stream *stream) {
  side_of(stream)->accepted++;
}

static size_t received(struct mux_stream *stream, uint8_t *data, size_t len) {
  struct side *side = side_of(stream);
  if (side->holds) return 0;
  if (len < side->waits_for) {
    assert_true(mux_expect(stream, side->waits_for));
    return 0;
  }
  assert_true(buf_append(&side->got, data, len));
  return len;
}

static void ended(struct mux_stream *stream) {
  side_of(stream)->ended++;
}

static void drained(struct mux_stream *stream) {
  side_of(stream)->drained++;
}

static void closed(struct mux_stream *stream, enum mux_stream_end end) {
  struct side *side = side_of(stream);
  side->closed++;
  side->end = end;
}

static const struct mux_ops ops = {.accept = accept_stream,
    .accepted = accepted,
    .received = received,
    .ended = ended,
    .drained = drained,
    .closed = closed};

static void begin(struct side *side, bool is_dialer) {
  memset(side, 0, sizeof *side);
  side->accepts = true;
  mux_begin(&side->mux, is_dialer, &ops, side, 16U << 20);
}

static void finish(struct side *side) {
  while (mux_take_any(&side->mux))
    ;
  mux_free(&side->mux);
  buf_free(&side->got);
}

/* Carries all output to the other side, in pieces. */
static void carry(struct side *from, struct side *to, size_t piece) {
  do {
    mux_pump(&from->mux);
    struct buf bytes = from->mux.out;
    from->mux.out = (struct buf){0};
    for (size_t at = 0; at < bytes.len; at += piece) {
      size_t len = bytes.len - at < piece ? bytes.len - at : piece;
      assert_true(mux_received(&to->mux, bytes.data + at, len));
    }
    buf_free(&bytes);
    mux_pump(&from->mux);
  } while (from->mux.out.len);
}

static void talk(struct side *one, struct side *other, size_t piece) {
  for (int i = 0; i < 4 || one->mux.out.len || other->mux.out.len; i++) {
    carry(one, other, piece);
    carry(other, one, piece);
  }
}

static void expect_out(struct side *side, const char *hex) {
  uint8_t bytes[256];
  size_t len = hex_bytes(hex, bytes);
  assert_int_equal(side->mux.out.len, len);
  assert_memory_equal(side->mux.out.data, bytes, len);
  side->mux.out.len = 0;
}

static bool feed(struct side *side, const char *hex) {
  uint8_t bytes[256];
  return mux_received(&side->mux, bytes, hex_bytes(hex, bytes));
}

static void frames_are_those_of_the_vectors(void **state) {
  (void)state;
  struct side client, server;
  static const uint8_t zeros[367];
  begin(&client, true);
  begin(&server, false);
  assert_true(mux_open(&client.mux, &client.stream));
  expect_out(&client, "000100010000000100000000");
  assert_true(feed(&server, "000100010000000100000000"));
  expect_out(&server, "000100020000000100000000");
  assert_true(mux_write(&client.stream, zeros, sizeof zeros));
  assert_int_equal(client.mux.out.len, 12 + 367);
  client.mux.out.len = 12;
  expect_out(&client, "00000000000000010000016f");
  mux_end(&client.stream);
  mux_pump(&client.mux);
  expect_out(&client, "000100040000000100000000");
  mux_reset(&client.stream);
  expect_out(&client, "000100080000000100000000");
  assert_true(feed(&server, "000200010000000001020304"));
  expect_out(&server, "000200020000000001020304");
  mux_go_away(&server.mux, YAMUX_NORMAL);
  expect_out(&server, "000300000000000000000000");
  finish(&client);
  finish(&server);
}

static void data_passes_windows_and_pieces(void **state) {
  (void)state;
  enum { LEN = 1 << 20 };
  static const size_t pieces[] = {1, 7, 1000, 65536, SIZE_MAX};
  uint8_t *data = malloc(LEN);
  assert_non_null(data);
  for (size_t i = 0; i < LEN; i++)
    data[i] = (uint8_t)(i * 31 >> 3);
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    struct side client, server;
    size_t len = pieces[i] == 1 ? 100000 : LEN, piece = pieces[i] < LEN ? pieces[i] : LEN;
    begin(&client, true);
    begin(&server, false);
    assert_true(mux_open(&client.mux, &client.stream));
    assert_true(mux_write(&client.stream, data, len));
    mux_end(&client.stream);
    assert_false(mux_write(&client.stream, data, 1));
    talk(&client, &server, piece);
    assert_int_equal(server.got.len, len);
    assert_memory_equal(server.got.data, data, len);
    assert_int_equal(server.ended, 1);
    if (len == LEN) assert_int_equal(client.drained, 1);
    mux_end(&server.stream);
    talk(&server, &client, piece);
    assert_int_equal(client.closed, 1);
    assert_int_equal(server.closed, 1);
    assert_int_equal(client.end, MUX_STREAM_DONE);
    finish(&client);
    finish(&server);
  }
  free(data);
}

static void a_reader_that_holds_stops_the_writer_at_the_window(void **state) {
  (void)state;
  struct side client, server;
  static const uint8_t zeros[1 << 19];
  begin(&client, true);
  begin(&server, false);
  server.holds = true;
  assert_true(mux_open(&client.mux, &client.stream));
  assert_true(mux_write(&client.stream, zeros, sizeof zeros));
  talk(&client, &server, 65536);
  assert_int_equal(mux_pending(&client.stream), sizeof zeros - YAMUX_INITIAL_WINDOW);
  assert_int_equal(server.stream.in.len, YAMUX_INITIAL_WINDOW);
  server.holds = false;
  mux_resume(&server.stream);
  talk(&client, &server, 65536);
  assert_int_equal(server.got.len, sizeof zeros);
  assert_int_equal(client.drained, 1);
  finish(&client);
  finish(&server);
}

static void an_expected_message_comes_whole_again_and_again(void **state) {
  (void)state;
  enum { LEN = 900 * 1000 };
  struct side client, server;
  uint8_t *data = calloc(1, LEN);
  assert_non_null(data);
  begin(&client, true);
  begin(&server, false);
  server.waits_for = LEN;
  assert_true(mux_open(&client.mux, &client.stream));
  for (uint32_t i = 1; i <= 20; i++) {
    assert_true(mux_write(&client.stream, data, LEN));
    talk(&client, &server, 30000);
    assert_int_equal(server.got.len, i * LEN);
    /* The window has grown to what one message needs, not with each one. */
    assert_true(server.stream.window <= 2 * LEN);
  }
  assert_false(mux_expect(&server.stream, MUX_WINDOW_MAX + 1U));
  finish(&client);
  finish(&server);
  free(data);
}

static void streams_are_shared_out_fairly(void **state) {
  (void)state;
  enum { MANY = 40, LEN = 200 * 1000 };
  static struct mux_stream streams[MANY];
  struct side client;
  uint8_t *data = calloc(1, LEN);
  assert_non_null(data);
  memset(streams, 0, sizeof streams);
  begin(&client, true);
  for (int i = 0; i < MANY; i++) {
    assert_true(mux_open(&client.mux, &streams[i]));
    assert_true(mux_write(&streams[i], data, LEN));
  }
  client.mux.out.len = 0;
  /* Every stream that waits has sent something before one of them sends twice. */
  for (int i = 0; i < MANY; i++) {
    mux_pump(&client.mux);
    client.mux.out.len = 0;
  }
  for (int i = 0; i < MANY; i++)
    assert_true(mux_pending(&streams[i]) < LEN);
  finish(&client);
  free(data);
}

static void rules_are_kept(void **state) {
  (void)state;
  static const struct {
    bool to_dialer;
    const char *hex, *why;
  } cases[] = {
      {false, "010100010000000100000000", "no yamux frame"},
      {false, "000400010000000100000000", "no yamux frame"},
      {false, "000100100000000100000000", "no yamux frame"},
      {false, "000100010000000000000000", "no yamux frame"},
      {false, "000200010000000100000000", "no yamux frame"},
      {false, "000100010000000200000000", "id of ours"},
      {true, "000100010000000100000000", "id of ours"},
      {false, "000100010000000100000000 000100010000000100000000", "twice"},
      {false, "000100010000000100000000 000000000000000100040001", "more than its yamux window"},
      {false, "000100010000000100000000 0001000000000001ffffffff", "4 GiB"},
      {false, "000100010000000100000000 000100040000000100000000 000000000000000100000001 61", "behind the end"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct side side;
    begin(&side, cases[i].to_dialer);
    assert_false(feed(&side, cases[i].hex));
    assert_non_null(strstr(side.mux.failure, cases[i].why));
    /* The last word is a GO_AWAY with a protocol error. */
    uint8_t go_away[12];
    hex_bytes("000300000000000000000001", go_away);
    assert_memory_equal(side.mux.out.data + side.mux.out.len - 12, go_away, 12);
    finish(&side);
  }
}

static void frames_of_forgotten_streams_are_dropped(void **state) {
  (void)state;
  struct side side;
  begin(&side, false);
  assert_true(feed(&side, "000000000000000300000003 616263 000100080000000300000000 000100040000000500000000"));
  side.accepts = false;
  assert_true(feed(&side, "000000010000000300000003 616263"));
  expect_out(&side, "000100080000000300000000"); /* refused */
  assert_true(feed(&side, "000200010000000000000009"));
  expect_out(&side, "000200020000000000000009");
  finish(&side);
}

static void resets_end_streams(void **state) {
  (void)state;
  struct side client, server;
  begin(&client, true);
  begin(&server, false);
  assert_true(mux_open(&client.mux, &client.stream));
  talk(&client, &server, 100);
  mux_reset(&server.stream);
  talk(&server, &client, 100);
  assert_int_equal(client.closed, 1);
  assert_int_equal(client.end, MUX_STREAM_RESET);
  assert_int_equal(server.closed, 0);
  finish(&client);
  finish(&server);
}

static void a_peer_that_does_not_read_is_left(void **state) {
  (void)state;
  struct side server;
  begin(&server, false);
  int pings = 0;
  while (feed(&server, "000200010000000000000001"))
    assert_true(++pings < 200000);
  assert_non_null(strstr(server.mux.failure, "does not read"));
  finish(&server);
}

static void no_more_streams_than_the_peer_takes(void **state) {
  (void)state;
  static struct mux_stream streams[MUX_UNACKED_MAX + 1];
  struct side client;
  memset(streams, 0, sizeof streams);
  begin(&client, true);
  for (int i = 0; i < MUX_UNACKED_MAX; i++)
    assert_true(mux_open(&client.mux, &streams[i]));
  assert_false(mux_open(&client.mux, &streams[MUX_UNACKED_MAX]));
  assert_true(feed(&client, "000100020000000100000000"));
  assert_true(mux_open(&client.mux, &streams[MUX_UNACKED_MAX]));
  assert_true(feed(&client, "000300000000000000000000")); /* it goes away */
  mux_reset(&streams[5]);
  memset(&streams[5], 0, sizeof streams[5]);
  assert_false(mux_open(&client.mux, &streams[5]));
  finish(&client);
}

static void pings_are_asked_one_at_a_time(void **state) {
  (void)state;
  struct side client;
  begin(&client, true);
  mux_ping(&client.mux, 5);
  expect_out(&client, "000200010000000000000001");
  mux_ping(&client.mux, 6);
  expect_out(&client, "");
  assert_true(feed(&client, "000200020000000000000007")); /* not ours */
  assert_int_equal(client.mux.ping_sent_ns, 5);
  assert_true(feed(&client, "000200020000000000000001"));
  assert_int_equal(client.mux.ping_sent_ns, 0);
  finish(&client);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(frames_are_those_of_the_vectors),
      cmocka_unit_test(data_passes_windows_and_pieces),
      cmocka_unit_test(a_reader_that_holds_stops_the_writer_at_the_window),
      cmocka_unit_test(an_expected_message_comes_whole_again_and_again),
      cmocka_unit_test(streams_are_shared_out_fairly),
      cmocka_unit_test(rules_are_kept),
      cmocka_unit_test(frames_of_forgotten_streams_are_dropped),
      cmocka_unit_test(resets_end_streams),
      cmocka_unit_test(a_peer_that_does_not_read_is_left),
      cmocka_unit_test(no_more_streams_than_the_peer_takes),
      cmocka_unit_test(pings_are_asked_one_at_a_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
