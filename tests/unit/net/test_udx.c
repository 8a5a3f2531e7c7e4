/* UDX connections in pairs over a simulated network with virtual time: loss, reordering, duplication, small MTUs; and
 * the byte-exact packets of ../shared/protocols/ricochet.md 6.4. */
#include "base/clock.h"
#include "base/rng.h"
#include "net/libp2p/udx.h"
#include "support/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DATAGRAMS_MAX = 4096, DEADLINE_S = 600 };

struct datagram {
  uint64_t due_ns;
  uint32_t len;
  int to;
  uint8_t bytes[UDX_DATAGRAM_MAX];
};

struct conditions {
  double loss, duplication, jitter; /* jitter: a share of datagrams that are late by up to 20 ms */
  uint64_t delay_ns;
  uint32_t mtu; /* longer datagrams vanish */
  uint32_t cut; /* of longer datagrams the reader gets so much, as in go-udx */
  uint32_t datagram_max;
  uint32_t window_max;
};

/* One side: sends `total` bytes of a pattern that depends on the offset, checks what comes. */
struct side {
  struct udx *udx;
  struct udx_stream *stream;
  struct world *world;
  uint64_t written, total, checked;
  uint32_t take; /* use what comes in pieces of this size; 0: all */
  uint8_t salt;
  bool is_closed, got_end, got_reset, ends;
  uint32_t reset_code, accepted;
  uint64_t sent_datagrams, largest_datagram;
};

struct world {
  struct side side[2];
  struct udx_pool *pool;
  struct rng rng;
  struct conditions conditions;
  uint64_t now_ns;
  struct datagram *queue; /* unordered */
  size_t count;
};

static uint8_t pattern(uint64_t offset, uint8_t salt) {
  return (uint8_t)((offset * 2654435761U) >> 13) ^ salt;
}

static size_t received(struct udx_stream *stream, uint8_t *data, size_t len) {
  struct side *side = udx_user(udx_of(stream));
  size_t used = side->take ? len / side->take * side->take : len;
  for (size_t i = 0; i < used; i++)
    assert_int_equal(data[i], pattern(side->checked + i, side->salt ^ 0xff));
  memset(data, 0, used); /* it is ours */
  side->checked += used;
  return used;
}

static void ended(struct udx_stream *stream) {
  struct side *side = udx_user(udx_of(stream));
  assert_false(side->got_end);
  side->got_end = true;
}

static void reset(struct udx_stream *stream, uint32_t code) {
  struct side *side = udx_user(udx_of(stream));
  side->got_reset = true;
  side->reset_code = code;
}

static void accepted(struct udx_stream *stream) {
  struct side *side = udx_user(udx_of(stream));
  side->stream = stream;
  side->accepted++;
}

static const struct udx_ops ops = {.received = received, .ended = ended, .reset = reset, .accepted = accepted};

static const struct udx_cid server_cid = {8, {1, 2, 3, 4, 5, 6, 7, 8}};
static const struct udx_cid client_cid = {8, {0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}};

static void begin(struct world *world, struct conditions conditions, uint64_t seed) {
  memset(world, 0, sizeof *world);
  world->conditions = conditions;
  world->now_ns = NS_PER_SEC;
  world->pool = udx_pool_create();
  world->queue = malloc(DATAGRAMS_MAX * sizeof *world->queue);
  assert_non_null(world->queue);
  rng_seed(&world->rng, seed);
  for (int i = 0; i < 2; i++) {
    struct udx_options options = {.ops = &ops,
        .user = &world->side[i],
        .pool = world->pool,
        .local = i ? server_cid : client_cid,
        .remote = i ? client_cid : server_cid,
        .dialer = i == 0,
        .datagram_max = conditions.datagram_max ? conditions.datagram_max : UDX_DATAGRAM_BYTES,
        .streams_max = 1,
        .window_max = conditions.window_max ? conditions.window_max : 1U << 20};
    world->side[i] = (struct side){.udx = udx_create(&options, world->now_ns), .world = world, .salt = i ? 0xff : 0};
    assert_non_null(world->side[i].udx);
  }
  world->side[0].stream = udx_open_stream(world->side[0].udx);
}

static void finish(struct world *world) {
  udx_destroy(world->side[0].udx);
  udx_destroy(world->side[1].udx);
  udx_pool_destroy(world->pool);
  free(world->queue);
}

static void put_on_the_way(struct world *world, int to, const uint8_t *bytes, size_t len) {
  const struct conditions *conditions = &world->conditions;
  if (conditions->mtu && len > conditions->mtu) return;
  if (conditions->cut && len > conditions->cut) len = conditions->cut;
  int copies = rng_double(&world->rng) < conditions->duplication ? 2 : 1;
  for (int i = 0; i < copies; i++) {
    if (rng_double(&world->rng) < conditions->loss) continue;
    assert_true(world->count < DATAGRAMS_MAX);
    struct datagram *datagram = &world->queue[world->count++];
    bool late = rng_double(&world->rng) < conditions->jitter;
    uint64_t extra_ns = late ? rng_below(&world->rng, 20 * NS_PER_MS) : world->count;
    *datagram =
        (struct datagram){.due_ns = world->now_ns + conditions->delay_ns + extra_ns, .len = (uint32_t)len, .to = to};
    memcpy(datagram->bytes, bytes, len);
  }
}

static void write_more(struct side *side) {
  while (side->stream && side->written < side->total && udx_unsent(side->stream) < 64 * 1024) {
    uint8_t bytes[3000];
    size_t len = 1 + rng_below(&side->world->rng, sizeof bytes);
    if (len > side->total - side->written) len = (size_t)(side->total - side->written);
    for (size_t i = 0; i < len; i++)
      bytes[i] = pattern(side->written + i, side->salt);
    assert_true(udx_write(side->stream, bytes, len));
    side->written += len;
    if (side->written == side->total && side->ends) udx_end_stream(side->stream);
  }
}

static void transmit(struct world *world, int from) {
  struct side *side = &world->side[from];
  uint8_t bytes[UDX_DATAGRAM_MAX];
  size_t len;
  write_more(side);
  while ((len = udx_transmit(side->udx, bytes, sizeof bytes, world->now_ns))) {
    side->sent_datagrams++;
    if (len > side->largest_datagram) side->largest_datagram = len;
    assert_true(udx_bytes_in_flight(side->udx) <= UDX_FLIGHT_MAX * (UDX_DATAGRAM_MAX + 100U));
    put_on_the_way(world, !from, bytes, len);
    write_more(side);
  }
}

static uint64_t next_ns(const struct world *world) {
  uint64_t next = UINT64_MAX;
  for (int i = 0; i < 2; i++) {
    uint64_t due_ns = udx_next_ns(world->side[i].udx);
    if (due_ns < next) next = due_ns;
  }
  for (size_t i = 0; i < world->count; i++) {
    if (world->queue[i].due_ns < next) next = world->queue[i].due_ns;
  }
  return next;
}

static void deliver_due(struct world *world) {
  for (size_t i = 0; i < world->count;) {
    if (world->queue[i].due_ns > world->now_ns) {
      i++;
      continue;
    }
    struct datagram datagram = world->queue[i];
    world->queue[i] = world->queue[--world->count];
    struct udx_packet packet;
    bool readable = udx_read_packet(datagram.bytes, datagram.len, &packet);
    assert_true(readable || world->conditions.cut);
    if (!readable) continue;
    udx_received(world->side[datagram.to].udx, &packet, world->now_ns);
  }
}

/* One step of virtual time; false when nothing is left to happen. */
static bool step(struct world *world) {
  transmit(world, 0);
  transmit(world, 1);
  uint64_t next = next_ns(world);
  if (next == UINT64_MAX) return false;
  if (next > world->now_ns) world->now_ns = next;
  deliver_due(world);
  udx_tick(world->side[0].udx, world->now_ns);
  udx_tick(world->side[1].udx, world->now_ns);
  return true;
}

static bool is_done(const struct world *world) {
  for (int i = 0; i < 2; i++) {
    const struct side *side = &world->side[i], *other = &world->side[!i];
    if (side->checked < other->total || (other->ends && !side->got_end)) return false;
    if (udx_bytes_in_flight(side->udx)) return false;
  }
  return true;
}

static void run(struct world *world) {
  while (!is_done(world)) {
    assert_true(step(world));
    assert_int_equal(udx_ended(world->side[0].udx, NULL), UDX_OPEN);
    assert_int_equal(udx_ended(world->side[1].udx, NULL), UDX_OPEN);
    assert_true(world->now_ns < DEADLINE_S * NS_PER_SEC);
  }
}

static void exchange(struct conditions conditions, uint64_t bytes_there, uint64_t bytes_back, uint64_t seed) {
  struct world world;
  begin(&world, conditions, seed);
  world.side[0].total = bytes_there;
  world.side[1].total = bytes_back;
  world.side[0].ends = true;
  world.side[1].ends = bytes_back > 0;
  run(&world);
  assert_int_equal(world.side[1].checked, bytes_there);
  assert_int_equal(world.side[0].checked, bytes_back);
  assert_int_equal(world.side[1].accepted, 1);
  if (conditions.loss == 0 && conditions.jitter == 0) assert_int_equal(udx_pool_resent(world.pool), 0);
  if (conditions.loss > 0) assert_true(udx_pool_resent(world.pool) > 0);
  finish(&world);
}

static void every_byte_arrives_without_loss(void **state) {
  (void)state;
  exchange((struct conditions){.delay_ns = NS_PER_MS}, 3 << 20, 3 << 20, 1);
}

static void every_byte_arrives_under_one_percent_loss(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++)
    exchange((struct conditions){.delay_ns = 5 * NS_PER_MS, .loss = 0.01}, 2 << 20, 1 << 20, seed);
}

static void every_byte_arrives_under_five_percent_loss(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++)
    exchange((struct conditions){.delay_ns = 5 * NS_PER_MS, .loss = 0.05}, 1 << 20, 1 << 20, seed);
}

static void every_byte_arrives_in_disorder_and_twice(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    exchange((struct conditions){.delay_ns = NS_PER_MS, .jitter = 0.3, .duplication = 0.2}, 1 << 20, 1 << 20, seed);
    exchange((struct conditions){.delay_ns = NS_PER_MS, .jitter = 0.2, .duplication = 0.1, .loss = 0.05}, 1 << 20,
        1 << 19, seed);
  }
}

static void every_byte_arrives_over_a_terrible_path(void **state) {
  (void)state;
  exchange((struct conditions){.delay_ns = 30 * NS_PER_MS, .jitter = 0.5, .duplication = 0.3, .loss = 0.3}, 64 << 10,
      64 << 10, 7);
}

static void a_reader_in_pieces_gets_all(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){.delay_ns = NS_PER_MS, .loss = 0.02, .window_max = 65536}, 5);
  world.side[0].total = 700 * 1000;
  world.side[1].take = 1000;
  run(&world);
  assert_int_equal(world.side[1].checked, world.side[0].total);
  finish(&world);
}

/* A Noise message is of up to 65,537 bytes, one more than the first window. */
static void a_reader_of_long_messages_gets_them_whole(void **state) {
  (void)state;
  enum { MESSAGE_BYTES = 65537 };
  struct world world;
  begin(&world, (struct conditions){.delay_ns = NS_PER_MS}, 5);
  world.side[0].total = (uint64_t)20 * MESSAGE_BYTES;
  world.side[1].take = MESSAGE_BYTES;
  run(&world);
  assert_int_equal(world.side[1].checked, world.side[0].total);
  assert_true(world.now_ns < 2 * NS_PER_SEC);
  finish(&world);
}

static void many_small_messages_share_the_window(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){.delay_ns = NS_PER_MS}, 9);
  for (int i = 0; i < 2000; i++) {
    world.side[0].total += 300;
    world.side[1].total += 100;
    run(&world);
  }
  assert_int_equal(world.side[1].checked, 600000);
  /* Data one way, an answer that takes the ACK with it, and an ACK for every second or by the timer. */
  assert_true(world.side[0].sent_datagrams < 2 * 2000 + 100);
  finish(&world);
}

static void probes_find_a_larger_datagram(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){.delay_ns = NS_PER_MS, .datagram_max = UDX_DATAGRAM_MAX}, 3);
  world.side[0].total = 2 << 20;
  run(&world);
  assert_int_equal(udx_datagram_bytes(world.side[0].udx), UDX_DATAGRAM_MAX);
  finish(&world);
}

static void probes_stop_below_what_the_path_carries(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){.delay_ns = 20 * NS_PER_MS, .datagram_max = UDX_DATAGRAM_MAX, .mtu = 4000}, 3);
  world.side[0].total = 16 << 20;
  run(&world);
  uint32_t found = udx_datagram_bytes(world.side[0].udx);
  assert_in_range(found, 3000, 4000);
  assert_true(world.side[0].largest_datagram > 4000);
  finish(&world);
}

static void probes_stop_below_what_the_peer_reads(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){.delay_ns = 20 * NS_PER_MS, .datagram_max = UDX_DATAGRAM_MAX, .cut = 1600}, 3);
  world.side[0].total = 8 << 20;
  run(&world);
  assert_in_range(udx_datagram_bytes(world.side[0].udx), UDX_DATAGRAM_BYTES, 1600);
  assert_true(world.side[0].largest_datagram > 1600);
  finish(&world);
}

static void without_wish_no_datagram_is_longer_than_usual(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){.delay_ns = NS_PER_MS, .loss = 0.03}, 3);
  world.side[0].total = world.side[1].total = 1 << 20;
  run(&world);
  assert_true(world.side[0].largest_datagram <= UDX_DATAGRAM_BYTES);
  assert_true(world.side[1].largest_datagram <= UDX_DATAGRAM_BYTES);
  finish(&world);
}

static void a_silent_peer_ends_the_connection_after_30_seconds(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){.delay_ns = NS_PER_MS}, 3);
  world.side[0].total = world.side[1].total = 1000;
  run(&world);
  uint64_t quiet_ns = world.now_ns;
  while (step(&world))
    ;
  assert_int_equal(udx_ended(world.side[0].udx, NULL), UDX_IDLE_TIMEOUT);
  assert_int_equal(udx_ended(world.side[1].udx, NULL), UDX_IDLE_TIMEOUT);
  assert_in_range((world.now_ns - quiet_ns) / NS_PER_SEC, 29, 31);
  finish(&world);
}

static void a_dead_path_is_tried_again_with_pauses(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){.delay_ns = NS_PER_MS, .loss = 1}, 3);
  world.side[0].total = 100;
  while (step(&world))
    ;
  assert_int_equal(udx_ended(world.side[0].udx, NULL), UDX_IDLE_TIMEOUT);
  /* SYN and data, at once, after 300 ms, then doubling up to 2 s: some 18 times each in 30 s. */
  assert_in_range(world.side[0].sent_datagrams, 30, 44);
  finish(&world);
}

static void closing_reaches_the_peer(void **state) {
  (void)state;
  struct world world;
  uint32_t code;
  begin(&world, (struct conditions){.delay_ns = NS_PER_MS}, 3);
  world.side[0].total = 1000;
  run(&world);
  udx_close(world.side[0].udx, UDX_ERROR_NONE);
  while (step(&world))
    ;
  assert_int_equal(udx_ended(world.side[0].udx, NULL), UDX_CLOSED);
  assert_int_equal(udx_ended(world.side[1].udx, &code), UDX_PEER_CLOSED);
  assert_int_equal(code, UDX_ERROR_NONE);
  finish(&world);
}

static void a_reset_reaches_the_peer(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){.delay_ns = NS_PER_MS}, 3);
  world.side[0].total = 1000;
  run(&world);
  udx_reset_stream(world.side[0].stream, 77);
  for (int i = 0; i < 10; i++)
    step(&world);
  assert_true(world.side[1].got_reset);
  assert_int_equal(world.side[1].reset_code, 77);
  assert_false(udx_write(world.side[1].stream, "x", 1));
  finish(&world);
}

static void more_streams_than_allowed_are_reset(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){.delay_ns = NS_PER_MS}, 3);
  world.side[0].total = 1000;
  run(&world);
  struct udx_stream *second = udx_open_stream(world.side[0].udx);
  assert_true(udx_write(second, "x", 1));
  for (int i = 0; i < 10; i++)
    step(&world);
  assert_int_equal(world.side[1].accepted, 1);
  assert_true(world.side[0].got_reset);
  assert_int_equal(world.side[0].reset_code, UDX_ERROR_STREAM_LIMIT);
  finish(&world);
}

/* Several streams of one connection, each with bytes of its own: the first of them says whose they are. */
enum { MANY = 8, MANY_BYTES = 200 * 1000 };

struct incoming {
  uint64_t checked;
  uint8_t salt;
};

struct many {
  struct incoming incoming[MANY];
  uint32_t accepted, ended;
};

static size_t many_received(struct udx_stream *stream, uint8_t *data, size_t len) {
  struct incoming *incoming = udx_stream_user(stream);
  if (incoming->checked == 0) incoming->salt = data[0];
  for (size_t i = incoming->checked ? 0 : 1; i < len; i++)
    assert_int_equal(data[i], pattern(incoming->checked + i, incoming->salt));
  incoming->checked += len;
  return len;
}

static void many_ended(struct udx_stream *stream) {
  ((struct many *)udx_user(udx_of(stream)))->ended++;
  assert_int_equal(((struct incoming *)udx_stream_user(stream))->checked, MANY_BYTES);
}

static void many_accepted(struct udx_stream *stream) {
  struct many *many = udx_user(udx_of(stream));
  assert_true(many->accepted < MANY);
  udx_stream_set_user(stream, &many->incoming[many->accepted++]);
}

static const struct udx_ops many_ops = {
    .received = many_received, .ended = many_ended, .reset = reset, .accepted = many_accepted};

static void begin_many(struct world *world, struct many *many, struct conditions conditions) {
  begin(world, conditions, 11);
  *many = (struct many){0};
  for (int i = 0; i < 2; i++) {
    struct udx_options options = {.ops = &many_ops,
        .user = many,
        .pool = world->pool,
        .local = i ? server_cid : client_cid,
        .remote = i ? client_cid : server_cid,
        .dialer = i == 0,
        .datagram_max = UDX_DATAGRAM_BYTES,
        .streams_max = MANY,
        .window_max = 1U << 18};
    udx_destroy(world->side[i].udx);
    world->side[i].stream = NULL;
    world->side[i].udx = udx_create(&options, world->now_ns);
    assert_non_null(world->side[i].udx);
  }
}

static void streams_share_a_connection(void **state) {
  (void)state;
  static uint8_t bytes[MANY_BYTES];
  struct world world;
  struct many many;
  begin_many(&world, &many, (struct conditions){.delay_ns = 2 * NS_PER_MS, .loss = 0.02, .jitter = 0.1});
  for (int salt = 0; salt < MANY; salt++) {
    struct udx_stream *stream = udx_open_stream(world.side[0].udx);
    bytes[0] = (uint8_t)salt;
    for (size_t at = 1; at < MANY_BYTES; at++)
      bytes[at] = pattern(at, salt);
    assert_true(udx_write(stream, bytes, MANY_BYTES));
    udx_end_stream(stream);
  }
  while (many.ended < MANY) {
    assert_true(step(&world));
    assert_true(world.now_ns < DEADLINE_S * NS_PER_SEC);
  }
  assert_int_equal(many.accepted, MANY);
  finish(&world);
}

/* Packets by hand to a listener's side. */
static void feed(struct world *world, int to, const char *hex) {
  uint8_t bytes[2048];
  struct udx_packet packet;
  assert_true(udx_read_packet(bytes, hex_bytes(hex, bytes), &packet));
  udx_received(world->side[to].udx, &packet, world->now_ns);
}

static void expect_packet(struct world *world, int from, const char *hex) {
  uint8_t expected[2048], bytes[UDX_DATAGRAM_MAX];
  size_t expected_len = hex_bytes(hex, expected);
  assert_int_equal(udx_transmit(world->side[from].udx, bytes, sizeof bytes, world->now_ns), expected_len);
  assert_memory_equal(bytes, expected, expected_len);
}

static void expect_nothing(struct world *world, int from) {
  uint8_t bytes[UDX_DATAGRAM_MAX];
  assert_int_equal(udx_transmit(world->side[from].udx, bytes, sizeof bytes, world->now_ns), 0);
}

#define TO_SERVER "00000003 08 0102030405060708 08 1112131415161718 "
#define TO_CLIENT "00000003 08 1112131415161718 08 0102030405060708 "
#define SYN TO_SERVER "00000000 00000000 00000000 03 02 0000000000000000 0000"
#define NEGOTIATION "132f6d756c746973747265616d2f312e302e300a072f6e6f6973650a"

static void packets_are_those_of_the_vectors(void **state) {
  (void)state;
  struct world world;
  uint8_t negotiation[28], noise[34];
  begin(&world, (struct conditions){0}, 1);
  struct side *client = &world.side[0];
  expect_packet(&world, 0, SYN);
  assert_true(udx_write(client->stream, negotiation, hex_bytes(NEGOTIATION, negotiation)));
  expect_packet(&world, 0, TO_SERVER "00000001 00000000 00000001 03 02 0000000000000000 001c " NEGOTIATION);
  hex_bytes("0020493e82fc74464a59268817623d2053c5eb8e2cc4a988b4fee179ec6b010d531d", noise);
  assert_true(udx_write(client->stream, noise, sizeof noise));
  expect_packet(&world, 0,
      TO_SERVER "00000002 00000000 00000001 03 00 000000000000001c 0022"
                "0020493e82fc74464a59268817623d2053c5eb8e2cc4a988b4fee179ec6b010d531d");
  expect_nothing(&world, 0);
  udx_close(client->udx, UDX_ERROR_NONE);
  expect_packet(&world, 0, TO_SERVER "00000000 00000000 00000000 0b 00000000 00000000 0000");
  expect_nothing(&world, 0);
  finish(&world);
}

static size_t ignore(struct udx_stream *stream, uint8_t *data, size_t len) {
  (void)stream, (void)data;
  return len;
}

static const struct udx_ops ignoring_ops = {.received = ignore, .ended = ended, .reset = reset, .accepted = accepted};

/* A server's end alone, whose input is not checked. */
static void begin_alone(struct world *world) {
  begin(world, (struct conditions){0}, 1);
  udx_destroy(world->side[1].udx);
  struct udx_options options = {.ops = &ignoring_ops,
      .user = &world->side[1],
      .pool = world->pool,
      .local = server_cid,
      .remote = client_cid,
      .datagram_max = UDX_DATAGRAM_BYTES,
      .streams_max = 1,
      .window_max = 1U << 20};
  world->side[1].udx = udx_create(&options, world->now_ns);
  assert_non_null(world->side[1].udx);
}

static void a_server_acknowledges_and_answers_as_in_the_vectors(void **state) {
  (void)state;
  struct world world;
  uint8_t negotiation[28];
  begin_alone(&world);
  feed(&world, 1, SYN);
  feed(&world, 1, TO_SERVER "00000001 00000000 00000001 03 02 0000000000000000 001c " NEGOTIATION);
  expect_packet(&world, 1, TO_CLIENT "00000000 00000001 00000000 02 00000001 0000 00 00000002");
  expect_nothing(&world, 1);
  assert_true(udx_write(world.side[1].stream, negotiation, hex_bytes(NEGOTIATION, negotiation)));
  expect_packet(&world, 1, TO_CLIENT "00000000 00000001 00000002 03 02 0000000000000000 001c " NEGOTIATION);
  finish(&world);
}

static void acknowledgements_follow_the_policy(void **state) {
  (void)state;
  struct world world;
  begin_alone(&world);
  feed(&world, 1, SYN);
  expect_packet(&world, 1, TO_CLIENT "00000000 00000000 00000000 02 00000000 0000 00 00000001"); /* SYN: at once */
  feed(&world, 1, TO_SERVER "00000001 00000000 00000001 03 00 0000000000000000 0001 61");
  expect_nothing(&world, 1); /* the first one waits */
  assert_int_equal(udx_next_ns(world.side[1].udx), world.now_ns + 25 * NS_PER_MS);
  world.now_ns += 25 * NS_PER_MS;
  udx_tick(world.side[1].udx, world.now_ns);
  expect_packet(&world, 1, TO_CLIENT "00000000 00000001 00000000 02 00000001 0019 00 00000002");
  feed(&world, 1, TO_SERVER "00000002 00000000 00000001 03 00 0000000000000001 0001 62");
  expect_nothing(&world, 1);
  feed(&world, 1, TO_SERVER "00000003 00000000 00000001 03 00 0000000000000002 0001 63");
  expect_packet(&world, 1, TO_CLIENT "00000000 00000001 00000000 02 00000003 0000 00 00000004"); /* the second */
  feed(&world, 1, TO_SERVER "00000006 00000000 00000001 03 00 0000000000000005 0001 64");
  expect_packet(
      &world, 1, TO_CLIENT "00000000 00000001 00000000 02 00000006 0000 01 00000001 02 00000004"); /* a hole */
  feed(&world, 1, TO_SERVER "00000005 00000000 00000001 03 00 0000000000000004 0001 65");
  expect_packet(&world, 1, TO_CLIENT "00000000 00000001 00000000 02 00000006 0000 01 00000002 01 00000004"); /* late */
  feed(&world, 1, TO_SERVER "00000007 00000000 00000000 01");
  expect_packet(&world, 1, TO_CLIENT "00000000 00000000 00000000 02 00000007 0000 01 00000003 01 00000004"); /* PING */
  feed(&world, 1, TO_SERVER "00000000 00000000 00000000 01");
  expect_nothing(&world, 1); /* a PING without a number is not acknowledged */
  finish(&world);
}

/* A Go peer looks up each number of a range: it must not be told all that ever came. */
static void acknowledgements_tell_the_last_numbers_only(void **state) {
  (void)state;
  enum { PACKETS = 3000 };
  struct world world;
  char hex[256];
  begin_alone(&world);
  feed(&world, 1, SYN);
  expect_packet(&world, 1, TO_CLIENT "00000000 00000000 00000000 02 00000000 0000 00 00000001");
  for (uint32_t number = 1; number <= PACKETS; number++) {
    snprintf(hex, sizeof hex, TO_SERVER "%08x 00000000 00000001 03 00 %016x 0001 61", number, number - 1);
    feed(&world, 1, hex);
    if (number % 2) continue;
    uint32_t told = number - 1 > 512 ? 514 : number + 1;
    snprintf(hex, sizeof hex, TO_CLIENT "00000000 00000001 00000000 02 %08x 0000 00 %08x", number, told);
    expect_packet(&world, 1, hex);
  }
  /* What a batch brings is told whole. */
  for (uint32_t number = PACKETS + 1; number <= PACKETS + 700; number++) {
    snprintf(hex, sizeof hex, TO_SERVER "%08x 00000000 00000001 03 00 %016x 0001 61", number, number - 1);
    feed(&world, 1, hex);
  }
  snprintf(hex, sizeof hex, TO_CLIENT "00000000 00000001 00000000 02 %08x 0000 00 %08x", PACKETS + 700, 700 + 512);
  expect_packet(&world, 1, hex);
  finish(&world);
}

/* What was sent again has a number of its own: a gap shows its loss too, without a time-out. */
static void what_is_lost_twice_is_sent_at_once(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){0}, 1);
  struct udx_stream *stream = world.side[0].stream;
  expect_packet(&world, 0, SYN);
  for (int i = 1; i <= 5; i++) {
    uint8_t ignored[UDX_DATAGRAM_MAX];
    assert_true(udx_write(stream, "a", 1));
    assert_true(udx_transmit(world.side[0].udx, ignored, sizeof ignored, world.now_ns) > 0);
  }
  feed(&world, 0, TO_CLIENT "00000000 00000001 00000000 02 00000005 0000 01 00000004 01 00000001");
  expect_packet(&world, 0, TO_SERVER "00000006 00000000 00000001 03 02 0000000000000000 0001 61");
  for (int i = 7; i <= 9; i++) {
    uint8_t ignored[UDX_DATAGRAM_MAX];
    assert_true(udx_write(stream, "a", 1));
    assert_true(udx_transmit(world.side[0].udx, ignored, sizeof ignored, world.now_ns) > 0);
  }
  feed(&world, 0, TO_CLIENT "00000000 00000001 00000000 02 00000009 0000 02 00000003 01 00000004 01 00000001");
  expect_packet(&world, 0, TO_SERVER "0000000a 00000000 00000001 03 02 0000000000000000 0001 61");
  expect_nothing(&world, 0);
  finish(&world);
}

static void credit_is_given_and_asked_for(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){0}, 1);
  struct side *client = &world.side[0];
  uint8_t bytes[UDX_DATAGRAM_MAX], zeros[70000] = {0};
  assert_true(udx_write(client->stream, zeros, sizeof zeros));
  uint32_t number = 0;
  size_t len, last_len = 0;
  char hex[256];
  /* Acknowledged all along, it sends 64 KiB, then says that it is blocked, and again 500 ms later. */
  while ((len = udx_transmit(client->udx, bytes, sizeof bytes, world.now_ns))) {
    last_len = len;
    struct udx_packet packet;
    assert_true(udx_read_packet(bytes, len, &packet));
    if (packet.sequence) number = packet.sequence;
    snprintf(hex, sizeof hex, TO_CLIENT "00000000 00000001 00000000 02 %08x 0000 00 %08x", number, number + 1);
    feed(&world, 0, hex);
  }
  uint8_t blocked[64];
  size_t blocked_len = hex_bytes(TO_SERVER "00000000 00000000 00000001 0f 00000001 0000000000010000", blocked);
  assert_int_equal(last_len, blocked_len);
  assert_memory_equal(bytes, blocked, blocked_len);
  world.now_ns += 500 * NS_PER_MS;
  udx_tick(client->udx, world.now_ns);
  expect_packet(&world, 0, TO_SERVER "00000000 00000000 00000001 0f 00000001 0000000000010000");
  expect_nothing(&world, 0);
  feed(&world, 0, TO_CLIENT "00000000 00000001 00000002 04 00008000"); /* backwards: ignored */
  expect_nothing(&world, 0);
  feed(&world, 0, TO_CLIENT "00000000 00000001 00000002 04 00020000");
  assert_true(udx_transmit(client->udx, bytes, sizeof bytes, world.now_ns) > 1400);
  feed(&world, 0, TO_CLIENT "00000000 00000001 00000002 0f 00000002 0000000000010000");
  while (udx_transmit(client->udx, bytes, sizeof bytes, world.now_ns) > 100)
    ;
  finish(&world);
}

static void a_blocked_peer_is_answered(void **state) {
  (void)state;
  struct world world;
  begin_alone(&world);
  feed(&world, 1, TO_SERVER "00000000 00000000 00000001 03 02 0000000000000000 0001 61");
  expect_packet(&world, 1, TO_CLIENT "00000000 00000001 00000000 02 00000000 0000 00 00000001");
  feed(&world, 1, TO_SERVER "00000000 00000000 00000001 0f 00000001 0000000000010000");
  expect_packet(&world, 1, TO_CLIENT "00000000 00000001 00000002 04 00010001");
  feed(&world, 1, TO_SERVER "00000000 00000000 00000000 09 0102030405060708");
  expect_packet(&world, 1, TO_CLIENT "00000000 00000000 00000000 0a 0102030405060708");
  feed(&world, 1, TO_SERVER "00000000 00000000 00000000 0e 0000000000100000");
  expect_packet(&world, 1, TO_CLIENT "00000000 00000000 00000000 05 0000000000200000");
  finish(&world);
}

static void violations_end_the_connection(void **state) {
  (void)state;
  static const struct {
    const char *hex;
    uint32_t code;
  } bad[] = {
      {TO_SERVER "00000001 00000000 00000001 03 00 0000000000010000 0001 61", UDX_ERROR_FLOW_CONTROL},
      {TO_SERVER "00000001 00000000 00000001 03 00 ffffffffffffffff 0001 61", UDX_ERROR_FLOW_CONTROL},
      {TO_SERVER "00000001 00000000 00000001 03 01 0000000000000000 0000", UDX_ERROR_PROTOCOL},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct world world;
    uint32_t code;
    begin_alone(&world);
    feed(&world, 1, TO_SERVER "00000000 00000000 00000001 03 02 0000000000000000 0001 61");
    feed(&world, 1, bad[i].hex);
    assert_int_equal(udx_ended(world.side[1].udx, &code), UDX_VIOLATION);
    assert_int_equal(code, bad[i].code);
    finish(&world);
  }
}

static void acks_of_what_was_never_sent_change_nothing(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){0}, 1);
  expect_packet(&world, 0, SYN);
  feed(&world, 0, TO_CLIENT "00000000 00000000 00000000 02 00000063 0000 00 00000064");
  feed(&world, 0, TO_CLIENT "00000000 00000000 00000000 02 00000000 0000 00 00000063");
  feed(&world, 0, TO_CLIENT "00000000 00000000 00000000 02 00000000 0000 01 00000000 ff 00000001");
  assert_true(udx_bytes_in_flight(world.side[0].udx) > 0);
  feed(&world, 0, TO_CLIENT "00000000 00000000 00000000 02 00000000 0000 00 00000001");
  assert_int_equal(udx_bytes_in_flight(world.side[0].udx), 0);
  finish(&world);
}

/* A lost segment goes again under a new number with its offset and length, although more was written since. */
static void segments_keep_their_boundaries(void **state) {
  (void)state;
  struct world world;
  begin(&world, (struct conditions){0}, 1);
  struct side *client = &world.side[0];
  uint8_t bytes[UDX_DATAGRAM_MAX];
  expect_packet(&world, 0, SYN);
  assert_true(udx_write(client->stream, "abc", 3));
  expect_packet(&world, 0, TO_SERVER "00000001 00000000 00000001 03 02 0000000000000000 0003 616263");
  assert_true(udx_write(client->stream, "defgh", 5));
  for (int i = 0; i < 3; i++) {
    assert_true(udx_transmit(client->udx, bytes, sizeof bytes, world.now_ns) > 0 || i);
    assert_true(udx_write(client->stream, "z", 1));
  }
  assert_true(udx_transmit(client->udx, bytes, sizeof bytes, world.now_ns) > 0);
  feed(&world, 0, TO_CLIENT "00000000 00000001 00000000 02 00000005 0000 01 00000004 01 00000001");
  expect_packet(&world, 0, TO_SERVER "00000006 00000000 00000001 03 02 0000000000000000 0003 616263");
  finish(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_byte_arrives_without_loss),
      cmocka_unit_test(every_byte_arrives_under_one_percent_loss),
      cmocka_unit_test(every_byte_arrives_under_five_percent_loss),
      cmocka_unit_test(every_byte_arrives_in_disorder_and_twice),
      cmocka_unit_test(every_byte_arrives_over_a_terrible_path),
      cmocka_unit_test(a_reader_in_pieces_gets_all),
      cmocka_unit_test(a_reader_of_long_messages_gets_them_whole),
      cmocka_unit_test(many_small_messages_share_the_window),
      cmocka_unit_test(probes_find_a_larger_datagram),
      cmocka_unit_test(probes_stop_below_what_the_path_carries),
      cmocka_unit_test(probes_stop_below_what_the_peer_reads),
      cmocka_unit_test(without_wish_no_datagram_is_longer_than_usual),
      cmocka_unit_test(a_silent_peer_ends_the_connection_after_30_seconds),
      cmocka_unit_test(a_dead_path_is_tried_again_with_pauses),
      cmocka_unit_test(closing_reaches_the_peer),
      cmocka_unit_test(a_reset_reaches_the_peer),
      cmocka_unit_test(more_streams_than_allowed_are_reset),
      cmocka_unit_test(streams_share_a_connection),
      cmocka_unit_test(packets_are_those_of_the_vectors),
      cmocka_unit_test(a_server_acknowledges_and_answers_as_in_the_vectors),
      cmocka_unit_test(acknowledgements_follow_the_policy),
      cmocka_unit_test(acknowledgements_tell_the_last_numbers_only),
      cmocka_unit_test(what_is_lost_twice_is_sent_at_once),
      cmocka_unit_test(credit_is_given_and_asked_for),
      cmocka_unit_test(a_blocked_peer_is_answered),
      cmocka_unit_test(violations_end_the_connection),
      cmocka_unit_test(acks_of_what_was_never_sent_change_nothing),
      cmocka_unit_test(segments_keep_their_boundaries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
