/* Nodes over loopback sockets: both transports, both roles, many connections on one UDP socket, streams that negotiate,
 * push back, end and break; and peers that are not there or not who they should be. */
#include "base/clock.h"
#include "net/libp2p/peer.h"
#include "wire/udx.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_NS (60 * NS_PER_SEC)
#define ECHO "/test/echo/1.0.0"
#define MESSAGE "/test/message/1.0.0"

struct world {
  struct loop *loop;
  struct libp2p *server, *client;
  struct libp2p_identity server_keys, client_keys;
  struct multiaddr to;
  struct address address;
  int server_opened, server_closed, server_streams_closed;
  struct libp2p_conn *server_conn;
  size_t message_len; /* what the message handler waits for */
  int messages;
  bool hold; /* the echo handler uses nothing */
  struct libp2p_stream *held;
};

static struct world world; /* protocols' handlers have no other way to it */

/* --- the server's side ---------------------------------------------------------------------------------------------
 */

static size_t echo_received(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  world.held = stream;
  if (world.hold) return 0;
  assert_true(libp2p_stream_write(stream, data, len));
  return len;
}

static void server_stream_closed(struct libp2p_stream *stream, enum libp2p_stream_end end) {
  (void)stream, (void)end;
  world.server_streams_closed++;
}

static const struct libp2p_stream_ops echo_ops = {.received = echo_received, .closed = server_stream_closed};

/* A message of message_len bytes, used only when it is whole; answers with one byte. */
static size_t message_received(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  if (len < world.message_len) {
    assert_true(libp2p_stream_expect(stream, world.message_len));
    return 0;
  }
  for (size_t i = 0; i < world.message_len; i++)
    assert_int_equal(data[i], (uint8_t)(i * 7));
  world.messages++;
  assert_true(libp2p_stream_write(stream, "!", 1));
  return world.message_len;
}

static const struct libp2p_stream_ops message_ops = {.received = message_received, .closed = server_stream_closed};
static const struct libp2p_protocol protocols[] = {{ECHO, &echo_ops, NULL}, {MESSAGE, &message_ops, NULL}};

static void server_opened(struct libp2p_conn *conn) {
  assert_ptr_equal(libp2p_conn_user(conn), &world);
  world.server_opened++;
  world.server_conn = conn;
}

static void server_closed(struct libp2p_conn *conn, const struct libp2p_end *end) {
  (void)conn, (void)end;
  world.server_closed++;
}

static const struct libp2p_conn_ops server_ops = {.opened = server_opened, .closed = server_closed};

static void make_world(enum multiaddr_transport transport, struct libp2p_config config) {
  memset(&world, 0, sizeof world);
  assert_int_equal(loop_create(&world.loop, NULL), STATUS_OK);
  assert_int_equal(libp2p_identity_make(&world.server_keys, NULL, NULL), STATUS_OK);
  assert_int_equal(libp2p_identity_make(&world.client_keys, NULL, NULL), STATUS_OK);
  struct libp2p_config server = config, client = config;
  server.identity = &world.server_keys;
  server.protocols = protocols;
  server.protocol_count = 2;
  server.incoming = &server_ops;
  server.user = &world;
  client.identity = &world.client_keys;
  assert_int_equal(libp2p_create(&world.server, world.loop, &server, NULL), STATUS_OK);
  assert_int_equal(libp2p_create(&world.client, world.loop, &client, NULL), STATUS_OK);
  assert_int_equal(address_resolve("127.0.0.1", 0, &world.address, NULL), STATUS_OK);
  assert_int_equal(libp2p_listen(world.server, transport, &world.address, false, NULL), STATUS_OK);
  world.to = (struct multiaddr){.transport = transport, .has_peer = true, .peer = world.server_keys.peer};
}

static void end_world(void) {
  libp2p_close(world.client);
  libp2p_close(world.server);
  loop_destroy(world.loop);
}

static void turn_until(const int *counter, int value) {
  uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;
  while (*counter < value) {
    assert_true(clock_now_ns() < deadline_ns);
    loop_turn(world.loop, clock_now_ns() + 10 * NS_PER_MS);
  }
}

/* --- the client's side ---------------------------------------------------------------------------------------------
 */

struct client {
  struct libp2p_conn *conn;
  struct libp2p_stream *stream;
  int opened, closed, stream_opened, stream_ended, stream_closed, drained, received;
  enum libp2p_cause cause;
  enum libp2p_stream_end stream_end;
  uint64_t sent, checked, total;
  void (*on_opened)(struct client *client);
};

static uint8_t pattern(uint64_t offset) {
  return (uint8_t)((offset * 2654435761U) >> 11);
}

static void write_more(struct client *client) {
  uint8_t bytes[10000];
  while (client->sent < client->total && libp2p_stream_pending(client->stream) < 100000) {
    size_t len = sizeof bytes;
    if (len > client->total - client->sent) len = (size_t)(client->total - client->sent);
    for (size_t i = 0; i < len; i++)
      bytes[i] = pattern(client->sent + i);
    assert_true(libp2p_stream_write(client->stream, bytes, len));
    client->sent += len;
    if (client->sent == client->total) libp2p_stream_end(client->stream);
  }
}

static size_t client_received(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  struct client *client = libp2p_stream_user(stream);
  for (size_t i = 0; client->total && i < len; i++)
    assert_int_equal(data[i], pattern(client->checked + i));
  client->checked += len;
  client->received++;
  return len;
}

static void client_stream_opened(struct libp2p_stream *stream) {
  ((struct client *)libp2p_stream_user(stream))->stream_opened++;
}

static void client_stream_ended(struct libp2p_stream *stream) {
  ((struct client *)libp2p_stream_user(stream))->stream_ended++;
}

static void client_drained(struct libp2p_stream *stream) {
  struct client *client = libp2p_stream_user(stream);
  client->drained++;
  write_more(client);
}

static void client_stream_closed(struct libp2p_stream *stream, enum libp2p_stream_end end) {
  struct client *client = libp2p_stream_user(stream);
  client->stream_closed++;
  client->stream_end = end;
  client->stream = NULL;
}

static const struct libp2p_stream_ops stream_ops = {.opened = client_stream_opened,
    .received = client_received,
    .ended = client_stream_ended,
    .drained = client_drained,
    .closed = client_stream_closed};

static void client_opened(struct libp2p_conn *conn) {
  struct client *client = libp2p_conn_user(conn);
  client->opened++;
  if (client->on_opened) client->on_opened(client);
}

static void client_closed(struct libp2p_conn *conn, const struct libp2p_end *end) {
  struct client *client = libp2p_conn_user(conn);
  client->closed++;
  client->cause = end->cause;
  client->conn = NULL;
  assert_non_null(end->text);
}

static const struct libp2p_conn_ops conn_ops = {.opened = client_opened, .closed = client_closed};

static void dial(struct client *client) {
  assert_int_equal(
      libp2p_dial(world.client, &world.to, &world.address, NULL, &conn_ops, client, &client->conn, NULL), STATUS_OK);
}

static void open_stream(struct client *client, const char *protocol) {
  client->stream = libp2p_open_stream(client->conn, protocol, &stream_ops, client);
  assert_non_null(client->stream);
}

static void connect_client(struct client *client) {
  dial(client);
  turn_until(&client->opened, 1);
  turn_until(&world.server_opened, 1);
}

static void exchange(enum multiaddr_transport transport, struct libp2p_config config, uint64_t total) {
  make_world(transport, config);
  struct client client = {.total = total};
  connect_client(&client);
  assert_true(peer_id_equal(libp2p_conn_peer(client.conn), &world.server_keys.peer));
  assert_true(peer_id_equal(libp2p_conn_peer(world.server_conn), &world.client_keys.peer));
  open_stream(&client, ECHO);
  write_more(&client);
  turn_until(&client.stream_closed, 1);
  assert_int_equal(client.stream_end, LIBP2P_STREAM_DONE);
  assert_int_equal(client.checked, total);
  assert_int_equal(client.stream_opened, 1);
  assert_int_equal(client.stream_ended, 1);
  turn_until(&world.server_streams_closed, 1);
  libp2p_disconnect(client.conn);
  turn_until(&world.server_closed, 1);
  end_world();
  assert_int_equal(client.closed, 0);
}

static void udx_carries_streams(void **state) {
  (void)state;
  exchange(MULTIADDR_UDX, (struct libp2p_config){0}, 100);
  exchange(MULTIADDR_UDX, (struct libp2p_config){0}, 4 << 20);
}

static void tcp_carries_streams(void **state) {
  (void)state;
  exchange(MULTIADDR_TCP, (struct libp2p_config){0}, 100);
  exchange(MULTIADDR_TCP, (struct libp2p_config){0}, 4 << 20);
}

static void large_datagrams_and_none_of_the_kernels_help(void **state) {
  (void)state;
  exchange(MULTIADDR_UDX, (struct libp2p_config){.datagram_max = 9000}, 4 << 20);
  exchange(MULTIADDR_UDX, (struct libp2p_config){.without_offload = true}, 2 << 20);
}

static void ipv6_carries_streams(void **state) {
  (void)state;
  make_world(MULTIADDR_UDX, (struct libp2p_config){0});
  struct address address;
  if (address_resolve("::1", 0, &address, NULL) != STATUS_OK ||
      libp2p_listen(world.server, MULTIADDR_UDX, &address, false, NULL) != STATUS_OK) {
    end_world();
    skip();
  }
  world.address = address;
  struct client client = {.total = 5000};
  connect_client(&client);
  open_stream(&client, ECHO);
  write_more(&client);
  turn_until(&client.stream_closed, 1);
  assert_int_equal(client.checked, 5000);
  end_world();
}

static void send_small(struct client *client) {
  open_stream(client, ECHO);
  write_more(client);
}

static void many_connections_share_a_socket(void **state) {
  (void)state;
  enum { MANY = 300 };
  static struct client clients[MANY];
  memset(clients, 0, sizeof clients);
  make_world(MULTIADDR_UDX, (struct libp2p_config){0});
  for (int i = 0; i < MANY; i++) {
    clients[i] = (struct client){.total = 3000, .on_opened = send_small};
    dial(&clients[i]);
  }
  for (int i = 0; i < MANY; i++) {
    turn_until(&clients[i].stream_closed, 1);
    assert_int_equal(clients[i].checked, 3000);
  }
  struct libp2p_stats stats;
  libp2p_stats(world.client, &stats);
  assert_int_equal(stats.connections, MANY);
  assert_true(stats.datagrams_in > MANY && stats.datagrams_out > MANY);
  end_world();
  for (int i = 0; i < MANY; i++)
    assert_int_equal(clients[i].closed, 1);
}

static void a_long_message_comes_whole(void **state) {
  (void)state;
  enum { LEN = 5 << 20 };
  static const enum multiaddr_transport transports[] = {MULTIADDR_UDX, MULTIADDR_TCP};
  uint8_t *message = malloc(LEN);
  assert_non_null(message);
  for (size_t i = 0; i < LEN; i++)
    message[i] = (uint8_t)(i * 7);
  for (int i = 0; i < 2; i++) {
    make_world(transports[i], (struct libp2p_config){0});
    struct client client = {0};
    world.message_len = LEN;
    connect_client(&client);
    open_stream(&client, MESSAGE);
    assert_true(libp2p_stream_write(client.stream, message, LEN));
    turn_until(&client.received, 1);
    assert_true(libp2p_stream_write(client.stream, message, LEN));
    turn_until(&client.received, 2);
    assert_int_equal(world.messages, 2);
    end_world();
    assert_int_equal(client.stream_end, LIBP2P_STREAM_LOST);
    assert_int_equal(client.cause, LIBP2P_CLOSED);
  }
  free(message);
}

static void a_reader_that_does_not_read_stops_the_writer(void **state) {
  (void)state;
  make_world(MULTIADDR_UDX, (struct libp2p_config){.out_max = 2 << 20});
  struct client client = {0};
  uint8_t *bytes = calloc(1, 1 << 20);
  assert_non_null(bytes);
  world.hold = true;
  connect_client(&client);
  open_stream(&client, ECHO);
  assert_true(libp2p_stream_write(client.stream, bytes, 1 << 20));
  for (int i = 0; i < 100; i++)
    loop_turn(world.loop, clock_now_ns() + NS_PER_MS);
  /* One window has gone, the rest waits; more than out_max is refused. */
  size_t pending = libp2p_stream_pending(client.stream);
  assert_true(pending >= (1U << 20) - (256U << 10) - 64);
  assert_false(libp2p_stream_write(client.stream, bytes, (2U << 20) - pending + 1));
  assert_int_equal(client.drained, 0);
  world.hold = false;
  libp2p_stream_resume(world.held);
  turn_until(&client.drained, 1);
  assert_int_equal(libp2p_stream_pending(client.stream), 0);
  end_world();
  free(bytes);
}

static void unknown_protocols_are_refused(void **state) {
  (void)state;
  make_world(MULTIADDR_UDX, (struct libp2p_config){0});
  struct client client = {0};
  connect_client(&client);
  open_stream(&client, "/nobody/speaks/this");
  turn_until(&client.stream_closed, 1);
  assert_int_equal(client.stream_end, LIBP2P_STREAM_REFUSED);
  assert_int_equal(client.stream_opened, 0);
  open_stream(&client, ECHO); /* the connection lives on */
  assert_true(libp2p_stream_write(client.stream, "x", 1));
  turn_until(&client.received, 1);
  end_world();
}

static void resets_reach_the_peer(void **state) {
  (void)state;
  make_world(MULTIADDR_UDX, (struct libp2p_config){0});
  struct client client = {0};
  connect_client(&client);
  open_stream(&client, ECHO);
  assert_true(libp2p_stream_write(client.stream, "x", 1));
  turn_until(&client.received, 1);
  libp2p_stream_reset(client.stream);
  turn_until(&world.server_streams_closed, 1);
  assert_int_equal(client.stream_closed, 0);
  open_stream(&client, ECHO);
  assert_true(libp2p_stream_write(client.stream, "x", 1));
  turn_until(&client.received, 2);
  libp2p_stream_reset(world.held);
  turn_until(&client.stream_closed, 1);
  assert_int_equal(client.stream_end, LIBP2P_STREAM_RESET);
  end_world();
}

static void both_sides_open_streams(void **state) {
  (void)state;
  make_world(MULTIADDR_UDX, (struct libp2p_config){.identify = true});
  struct client client = {0}, back = {0};
  connect_client(&client);
  back.conn = world.server_conn;
  open_stream(&back, "/ipfs/id/1.0.0");
  turn_until(&back.stream_ended, 1);
  assert_true(back.checked > 36);
  libp2p_stream_end(back.stream);
  turn_until(&back.stream_closed, 1);
  assert_int_equal(back.stream_end, LIBP2P_STREAM_DONE);
  end_world();
}

static void a_peer_with_another_id_is_refused(void **state) {
  (void)state;
  static const enum multiaddr_transport transports[] = {MULTIADDR_UDX, MULTIADDR_TCP};
  for (int i = 0; i < 2; i++) {
    make_world(transports[i], (struct libp2p_config){0});
    struct client client = {0};
    world.to.peer = world.client_keys.peer;
    dial(&client);
    turn_until(&client.closed, 1);
    assert_int_equal(client.cause, LIBP2P_INSECURE);
    assert_int_equal(client.opened, 0);
    end_world();
  }
}

static void nobody_there_is_told_as_refused(void **state) {
  (void)state;
  static const enum multiaddr_transport transports[] = {MULTIADDR_UDX, MULTIADDR_TCP};
  for (int i = 0; i < 2; i++) {
    make_world(transports[i], (struct libp2p_config){0});
    libp2p_close(world.server);
    world.server = NULL;
    struct client client = {0};
    dial(&client);
    turn_until(&client.closed, 1);
    assert_int_equal(client.cause, LIBP2P_REFUSED);
    end_world();
  }
}

static void a_server_that_goes_away_ends_its_connections(void **state) {
  (void)state;
  static const enum multiaddr_transport transports[] = {MULTIADDR_UDX, MULTIADDR_TCP};
  for (int i = 0; i < 2; i++) {
    make_world(transports[i], (struct libp2p_config){0});
    struct client client = {0};
    connect_client(&client);
    open_stream(&client, ECHO);
    libp2p_close(world.server);
    world.server = NULL;
    turn_until(&client.closed, 1);
    assert_int_equal(client.cause, LIBP2P_CLOSED);
    assert_int_equal(client.stream_end, LIBP2P_STREAM_LOST);
    end_world();
  }
}

/* A UDP socket at world.address. */
static int listen_by_hand(void) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in *in = (struct sockaddr_in *)&world.address.storage;
  socklen_t len = sizeof *in;
  in->sin_port = 0;
  assert_int_equal(bind(fd, (struct sockaddr *)in, len), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)in, &len), 0);
  return fd;
}

static void a_silent_port_runs_into_the_deadline(void **state) {
  (void)state;
  make_world(MULTIADDR_UDX, (struct libp2p_config){.setup_deadline_ns = 50 * NS_PER_MS});
  int fd = listen_by_hand();
  /* More than dial at once: each has its turn. */
  struct client clients[20] = {0};
  for (int i = 0; i < 20; i++)
    dial(&clients[i]);
  for (int i = 0; i < 20; i++) {
    turn_until(&clients[i].closed, 1);
    assert_int_equal(clients[i].cause, LIBP2P_TIMED_OUT);
  }
  close(fd);
  end_world();
}

/* Acknowledges every packet to fd; returns how many of them opened a connection. */
static int acknowledge_all(int fd) {
  uint8_t bytes[2048];
  struct sockaddr_storage from;
  socklen_t from_len = sizeof from;
  int opened = 0;
  ssize_t len;
  while ((len = recvfrom(fd, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&from, &from_len)) > 0) {
    struct udx_packet packet;
    assert_true(udx_read_packet(bytes, (size_t)len, &packet));
    if (packet.sequence == 0) opened++;
    struct udx_packet answer = {.to = packet.from, .from = packet.to, .to_stream = packet.from_stream};
    uint8_t *end = udx_write_header(bytes, &answer);
    end = udx_write_ack(end, &(struct udx_range){0, packet.sequence}, 1, 0);
    sendto(fd, bytes, (size_t)(end - bytes), 0, (struct sockaddr *)&from, from_len);
  }
  return opened;
}

/* As go-libp2p does with more than 16 that nobody has accepted. */
static void a_peer_that_only_acknowledges_is_not_dialed_more(void **state) {
  (void)state;
  make_world(MULTIADDR_UDX, (struct libp2p_config){.setup_deadline_ns = 200 * NS_PER_MS, .dials_at_once = 3});
  int fd = listen_by_hand(), opened = 0;
  struct client clients[10] = {0};
  for (int i = 0; i < 10; i++)
    dial(&clients[i]);
  while (!clients[0].closed) {
    opened += acknowledge_all(fd);
    loop_turn(world.loop, clock_now_ns() + NS_PER_MS);
  }
  assert_int_equal(opened, 3);
  close(fd);
  end_world();
}

static void more_connections_than_allowed_are_refused(void **state) {
  (void)state;
  make_world(MULTIADDR_TCP, (struct libp2p_config){.connections_max = 2});
  struct client clients[3] = {0};
  dial(&clients[0]);
  dial(&clients[1]);
  turn_until(&clients[0].opened, 1);
  turn_until(&clients[1].opened, 1);
  dial(&clients[2]);
  turn_until(&clients[2].closed, 1);
  assert_int_equal(clients[2].cause, LIBP2P_RESET);
  end_world();
}

/* SYNs of connections that never go on must not lock others out. */
static void a_flood_of_openings_locks_nobody_out(void **state) {
  (void)state;
  make_world(MULTIADDR_UDX, (struct libp2p_config){.connections_max = 4, .setup_deadline_ns = 2 * NS_PER_SEC});
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct libp2p_stats stats = {0};
  for (uint8_t i = 0; i < 20; i++) {
    uint8_t bytes[UDX_HEADER_MAX + UDX_STREAM_HEAD_BYTES];
    struct udx_packet syn = {.to = {8, {i}}, .from = {8, {i, 1}}};
    uint8_t *end = udx_write_stream_head(udx_write_header(bytes, &syn), UDX_SYN, 0, 0);
    sendto(fd, bytes, (size_t)(end - bytes), 0, (struct sockaddr *)&world.address.storage, world.address.len);
  }
  while (stats.datagrams_in < 20) {
    loop_turn(world.loop, clock_now_ns() + NS_PER_MS);
    libp2p_stats(world.server, &stats);
  }
  assert_int_equal(stats.connections, 4);
  struct client clients[4] = {0};
  for (int i = 0; i < 4; i++)
    dial(&clients[i]);
  for (int i = 0; i < 4; i++) {
    turn_until(&clients[i].opened, 1);
    assert_int_equal(clients[i].closed, 0);
  }
  /* Open ones keep their places. */
  struct client late = {0};
  dial(&late);
  turn_until(&late.closed, 1);
  assert_int_equal(late.opened, 0);
  close(fd);
  end_world();
}

static void idle_connections_are_kept_alive_by_pings(void **state) {
  (void)state;
  make_world(MULTIADDR_UDX, (struct libp2p_config){.keep_alive_ns = 5 * NS_PER_MS});
  struct client client = {0};
  struct libp2p_stats before, after;
  connect_client(&client);
  libp2p_stats(world.client, &before);
  int in = 0;
  while (in < 10) {
    loop_turn(world.loop, clock_now_ns() + NS_PER_MS);
    libp2p_stats(world.client, &after);
    in = (int)(after.datagrams_in - before.datagrams_in);
  }
  assert_int_equal(client.closed, 0);
  end_world();
}

static void drop_within_opened(struct client *client) {
  libp2p_disconnect(client->conn);
  client->conn = NULL;
}

static void connections_may_be_dropped_within_callbacks(void **state) {
  (void)state;
  static const enum multiaddr_transport transports[] = {MULTIADDR_UDX, MULTIADDR_TCP};
  for (int i = 0; i < 2; i++) {
    make_world(transports[i], (struct libp2p_config){0});
    struct client client = {.on_opened = drop_within_opened};
    dial(&client);
    turn_until(&client.opened, 1);
    turn_until(&world.server_closed, world.server_opened);
    assert_int_equal(client.closed, 0);
    end_world();
  }
}

/* Datagrams of somebody who knows no UDX, or nothing of a connection. */
static void strange_datagrams_are_dropped(void **state) {
  (void)state;
  make_world(MULTIADDR_UDX, (struct libp2p_config){0});
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  static const uint8_t strange[][48] = {{0}, {0, 0, 0, 3, 21}, {0, 0, 0, 2}, {0, 0, 0, 3, 1, 'x', 1, 'y'}};
  for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
    sendto(fd, strange[i], sizeof strange[i], 0, (struct sockaddr *)&world.address.storage, world.address.len);
  struct libp2p_stats stats = {0};
  while (stats.dropped < 4) {
    loop_turn(world.loop, clock_now_ns() + NS_PER_MS);
    libp2p_stats(world.server, &stats);
  }
  assert_int_equal(stats.connections, 0);
  close(fd);
  struct client client = {.total = 10};
  connect_client(&client);
  end_world();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(udx_carries_streams),
      cmocka_unit_test(tcp_carries_streams),
      cmocka_unit_test(large_datagrams_and_none_of_the_kernels_help),
      cmocka_unit_test(ipv6_carries_streams),
      cmocka_unit_test(many_connections_share_a_socket),
      cmocka_unit_test(a_long_message_comes_whole),
      cmocka_unit_test(a_reader_that_does_not_read_stops_the_writer),
      cmocka_unit_test(unknown_protocols_are_refused),
      cmocka_unit_test(resets_reach_the_peer),
      cmocka_unit_test(both_sides_open_streams),
      cmocka_unit_test(a_peer_with_another_id_is_refused),
      cmocka_unit_test(nobody_there_is_told_as_refused),
      cmocka_unit_test(a_server_that_goes_away_ends_its_connections),
      cmocka_unit_test(a_silent_port_runs_into_the_deadline),
      cmocka_unit_test(a_peer_that_only_acknowledges_is_not_dialed_more),
      cmocka_unit_test(more_connections_than_allowed_are_refused),
      cmocka_unit_test(a_flood_of_openings_locks_nobody_out),
      cmocka_unit_test(idle_connections_are_kept_alive_by_pings),
      cmocka_unit_test(connections_may_be_dropped_within_callbacks),
      cmocka_unit_test(strange_datagrams_are_dropped),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
