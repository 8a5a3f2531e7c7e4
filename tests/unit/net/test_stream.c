/* Loop and streams over real loopback sockets, plain and TLS. */
#include "base/clock.h"
#include "net/stream.h"
#include "net/tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_NS (60 * NS_PER_SEC)

static char directory[] = "/tmp/muster-net-XXXXXX";
static char certificate[64];
static char key[64];

enum { PEERS_MAX = 64 };

/* One end of a connection, with what a test looks at. */
struct end {
  struct stream stream;
  struct world *world;
  struct buf got;
  size_t take; /* consume in pieces of this size, 0: all */
  bool echo;   /* the server's side writes back what comes */
  int opened, closed, drained, connected;
  enum stream_end how;
  int error;
  void (*on_opened)(struct end *end);
  void (*on_received)(struct end *end);
  void (*on_closed)(struct end *end);
};

struct world {
  struct loop *loop;
  struct listener listener;
  struct address address;
  struct tls_context *server_tls, *client_tls;
  struct end server[PEERS_MAX];
  int accepted;
  bool server_echo;
  void (*on_server_opened)(struct end *end);
  void (*on_server_received)(struct end *end);
};

static void opened(struct stream *stream) {
  struct end *end = (struct end *)stream;
  end->opened++;
  if (end->on_opened) end->on_opened(end);
}

static void connected(struct stream *stream) {
  ((struct end *)stream)->connected++;
}

static size_t received(struct stream *stream, uint8_t *data, size_t len) {
  struct end *end = (struct end *)stream;
  assert_true(len > 0);
  size_t used = end->take ? len / end->take * end->take : len;
  assert_true(buf_append(&end->got, data, used));
  if (end->echo) assert_true(stream_write(stream, data, used));
  if (end->on_received) end->on_received(end);
  return used;
}

static void drained(struct stream *stream) {
  struct end *end = (struct end *)stream;
  end->drained++;
  assert_int_equal(stream_pending(stream), 0);
  assert_false(stream_blocked(stream));
}

static void closed(struct stream *stream, enum stream_end how, int error) {
  struct end *end = (struct end *)stream;
  end->closed++;
  end->how = how;
  end->error = error;
  assert_false(stream_is_open(stream));
  assert_int_equal(stream->watch.fd, -1);
  if (end->on_closed) end->on_closed(end);
}

static const struct stream_ops ops = {
    .connected = connected, .opened = opened, .received = received, .drained = drained, .closed = closed};

static void on_accepted(struct listener *listener, int fd, const struct address *peer) {
  struct world *world = (struct world *)((char *)listener - offsetof(struct world, listener));
  assert_true(address_is_loopback(peer));
  assert_true(world->accepted < PEERS_MAX);
  struct end *end = &world->server[world->accepted++];
  end->world = world;
  end->echo = world->server_echo;
  end->on_opened = world->on_server_opened;
  end->on_received = world->on_server_received;
  struct err err;
  assert_int_equal(stream_accept(&end->stream, world->loop, &ops, fd, world->server_tls, &err), STATUS_OK);
}

static void make_world(struct world *world, bool tls) {
  struct err err;
  memset(world, 0, sizeof *world);
  world->listener.accepted = on_accepted;
  assert_int_equal(loop_create(&world->loop, &err), STATUS_OK);
  assert_int_equal(address_resolve("127.0.0.1", 0, &world->address, &err), STATUS_OK);
  assert_int_equal(listener_open(&world->listener, world->loop, &world->address, &err), STATUS_OK);
  if (!tls) return;
  assert_int_equal(tls_server_context(&world->server_tls, certificate, key, &err), STATUS_OK);
  assert_int_equal(tls_client_context(&world->client_tls, true, certificate, &err), STATUS_OK);
}

static void free_world(struct world *world) {
  for (int i = 0; i < world->accepted; i++) {
    stream_close(&world->server[i].stream, true);
    buf_free(&world->server[i].got);
  }
  listener_close(&world->listener);
  tls_context_free(world->server_tls);
  tls_context_free(world->client_tls);
  loop_destroy(world->loop);
}

static void start_client(struct world *world, struct end *client) {
  struct err err;
  client->world = world;
  assert_int_equal(
      stream_connect(&client->stream, world->loop, &ops, &world->address, NULL, world->client_tls, "localhost", &err),
      STATUS_OK);
  assert_int_equal(client->opened + client->closed, 0);
}

static void free_client(struct end *client) {
  stream_close(&client->stream, true);
  buf_free(&client->got);
}

/* Turns until the condition holds; fails after a long time. */
#define RUN_UNTIL(world, condition)                                                                                    \
  do {                                                                                                                 \
    uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;                                                               \
    while (!(condition)) {                                                                                             \
      assert_true(clock_now_ns() < deadline_ns);                                                                       \
      loop_turn((world)->loop, clock_now_ns() + 10 * NS_PER_MS);                                                       \
    }                                                                                                                  \
  } while (0)

static void turns(struct world *world, int count) {
  for (int i = 0; i < count; i++)
    loop_turn(world->loop, clock_now_ns() + NS_PER_MS);
}

static uint8_t pattern(size_t at) {
  return (uint8_t)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

static void write_pattern(struct end *end, size_t from, size_t len) {
  uint8_t *room = stream_reserve(&end->stream, len);
  assert_non_null(room);
  for (size_t i = 0; i < len; i++)
    room[i] = pattern(from + i);
  stream_commit(&end->stream, len);
}

static void check_pattern(const struct buf *got, size_t len) {
  assert_int_equal(got->len, len);
  for (size_t i = 0; i < len; i++) {
    if (got->data[i] != pattern(i)) fail_msg("byte %zu differs", i);
  }
}

static void echo(bool tls, size_t total, size_t piece, size_t take, bool small_buffer) {
  struct world world;
  make_world(&world, tls);
  world.server_echo = true;
  struct end client = {.take = take};
  start_client(&world, &client);
  if (small_buffer) {
    int bytes = 4096;
    setsockopt(client.stream.watch.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  }
  RUN_UNTIL(&world, client.opened);
  assert_int_equal(client.connected, 1);
  size_t written = 0;
  uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;
  while (client.got.len < total) {
    assert_true(clock_now_ns() < deadline_ns);
    if (written < total && stream_pending(&client.stream) < 1024 * 1024) {
      size_t len = total - written < piece ? total - written : piece;
      write_pattern(&client, written, len);
      written += len;
    }
    loop_turn(world.loop, written < total ? 0 : clock_now_ns() + NS_PER_MS);
  }
  check_pattern(&client.got, total);
  assert_int_equal(client.closed, 0);
  turns(&world, 2);
  /* Idle again: no buffer is held. */
  assert_null(client.stream.out.data);
  assert_null(client.stream.in.data);
  assert_null(world.server[0].stream.out.data);
  if (small_buffer) assert_true(client.drained > 0);
  free_client(&client);
  free_world(&world);
}

static void test_echo_plain(void **state) {
  (void)state;
  echo(false, 1, 1, 0, false);
  echo(false, 8000000, 500000, 0, false);
  echo(false, 3000000, 900001, 1, true);
  echo(false, 300000, 1000, 1000, false);
  /* The tail grows beyond what is copied, and beyond the read buffer. */
  echo(false, 600000, 200000, 100000, false);
}

static void test_echo_tls(void **state) {
  (void)state;
  echo(true, 1, 1, 0, false);
  echo(true, 8000000, 500000, 0, false);
  echo(true, 3000000, 900001, 1, true);
  echo(true, 600000, 200000, 100000, false);
}

static struct tls_context *later_server_tls, *later_client_tls;

static void greet_and_start_tls(struct end *end) {
  if (end->opened > 1) return;
  assert_true(stream_write(&end->stream, "hello", 5));
  assert_int_equal(stream_start_tls(&end->stream, later_server_tls, NULL, NULL), STATUS_PROTOCOL); /* it waits yet */
  stream_flush(&end->stream);
  assert_int_equal(stream_start_tls(&end->stream, later_server_tls, NULL, NULL), STATUS_OK);
}

static void start_tls_when_greeted(struct end *end) {
  if (end->opened > 1 || end->got.len < 5) return;
  assert_int_equal(stream_start_tls(&end->stream, later_client_tls, "localhost", NULL), STATUS_OK);
  assert_int_equal(stream_start_tls(&end->stream, later_client_tls, "localhost", NULL), STATUS_PROTOCOL);
  assert_false(stream_write(&end->stream, "x", 1));
}

static void speak_when_secret(struct end *end) {
  if (end->opened == 2) assert_true(stream_write(&end->stream, "secret", 6));
}

static void test_tls_behind_a_greeting(void **state) {
  (void)state;
  struct world world;
  struct err err;
  make_world(&world, false);
  assert_int_equal(tls_server_context(&later_server_tls, certificate, key, &err), STATUS_OK);
  assert_int_equal(tls_client_context(&later_client_tls, true, certificate, &err), STATUS_OK);
  world.on_server_opened = greet_and_start_tls;
  world.server_echo = true;
  struct end client = {.on_opened = speak_when_secret, .on_received = start_tls_when_greeted};
  start_client(&world, &client);
  RUN_UNTIL(&world, client.got.len == 11);
  assert_memory_equal(client.got.data, "hellosecret", 11);
  assert_int_equal(client.opened, 2);
  assert_int_equal(world.server[0].opened, 2);
  assert_int_equal(strncmp(tls_context_facts(later_client_tls), "TLSv1.3", 7), 0);
  free_client(&client);
  free_world(&world);
  tls_context_free(later_server_tls);
  tls_context_free(later_client_tls);
}

static void write_and_close(struct end *end) {
  assert_true(stream_write(&end->stream, "bye", 3));
  stream_close(&end->stream, false);
}

static void test_close_sends_what_waits(void **state) {
  (void)state;
  for (int tls = 0; tls < 2; tls++) {
    struct world world;
    make_world(&world, tls);
    world.on_server_opened = write_and_close;
    struct end client = {0};
    start_client(&world, &client);
    RUN_UNTIL(&world, client.closed);
    assert_int_equal(client.how, STREAM_END_CLOSED);
    assert_int_equal(client.got.len, 3);
    assert_int_equal(world.server[0].closed, 0);
    free_client(&client);
    free_world(&world);
  }
}

static void test_half_close_still_answers(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  world.server_echo = true;
  struct end client = {0};
  start_client(&world, &client);
  RUN_UNTIL(&world, client.opened);
  write_pattern(&client, 0, 1000);
  stream_flush(&client.stream);
  assert_int_equal(shutdown(client.stream.watch.fd, SHUT_WR), 0);
  RUN_UNTIL(&world, client.closed);
  check_pattern(&client.got, 1000);
  assert_int_equal(client.how, STREAM_END_CLOSED);
  assert_int_equal(world.server[0].closed, 1);
  assert_int_equal(world.server[0].how, STREAM_END_CLOSED);
  free_client(&client);
  free_world(&world);
}

static void reset_it(struct end *end) {
  stream_close(&end->stream, true);
}

static void test_reset(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  world.on_server_opened = reset_it;
  struct end client = {0};
  start_client(&world, &client);
  RUN_UNTIL(&world, client.closed);
  assert_int_equal(client.how, STREAM_END_RESET);
  assert_int_equal(client.error, ECONNRESET);
  assert_false(stream_write(&client.stream, "x", 1));
  assert_null(stream_reserve(&client.stream, 1));
  free_client(&client);
  free_world(&world);
}

static void test_reset_while_paused(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  struct end client = {0};
  start_client(&world, &client);
  RUN_UNTIL(&world, client.opened && world.accepted);
  stream_pause(&client.stream);
  stream_close(&world.server[0].stream, true);
  RUN_UNTIL(&world, client.closed);
  assert_int_equal(client.how, STREAM_END_RESET);
  assert_int_equal(client.error, ECONNRESET);
  free_client(&client);
  free_world(&world);
}

static void test_write_error_comes_through_closed(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  struct end client = {0};
  start_client(&world, &client);
  RUN_UNTIL(&world, client.opened && world.accepted);
  assert_int_equal(shutdown(client.stream.watch.fd, SHUT_WR), 0);
  /* Much is written at once, so this fails inside stream_write; closed must not be called from there. */
  write_pattern(&client, 0, 200000);
  assert_int_equal(client.closed, 0);
  RUN_UNTIL(&world, client.closed);
  assert_int_equal(client.how, STREAM_END_RESET);
  assert_int_equal(client.error, EPIPE);
  free_client(&client);
  free_world(&world);
}

static void reconnect(struct end *end) {
  if (end->closed < 5) {
    int so_far = end->closed;
    struct err err;
    assert_int_equal(
        stream_connect(&end->stream, end->world->loop, &ops, &end->world->address, NULL, NULL, NULL, &err), STATUS_OK);
    assert_int_equal(end->closed, so_far);
  }
}

static void test_refused(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  listener_close(&world.listener);
  listener_close(&world.listener);
  struct end client = {.on_closed = reconnect};
  start_client(&world, &client);
  RUN_UNTIL(&world, client.closed == 5);
  assert_int_equal(client.how, STREAM_END_REFUSED);
  assert_int_equal(client.error, ECONNREFUSED);
  assert_int_equal(client.opened + client.connected, 0);
  free_client(&client);
  free_world(&world);
}

static void test_connect_from(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  struct err err;
  struct address from;
  struct end client = {.world = &world};
  assert_int_equal(address_resolve("127.0.0.7", 0, &from, &err), STATUS_OK);
  assert_int_equal(
      stream_connect(&client.stream, world.loop, &ops, &world.address, &from, NULL, NULL, &err), STATUS_OK);
  RUN_UNTIL(&world, client.opened && world.accepted);
  struct address peer = {.len = sizeof peer.storage};
  assert_int_equal(getpeername(world.server[0].stream.watch.fd, (struct sockaddr *)&peer.storage, &peer.len), 0);
  char text[64];
  address_text(&peer, text, sizeof text);
  assert_memory_equal(text, "127.0.0.7:", 10);
  free_client(&client);

  assert_int_equal(address_resolve("192.0.2.1", 0, &from, &err), STATUS_OK);
  assert_int_equal(
      stream_connect(&client.stream, world.loop, &ops, &world.address, &from, NULL, NULL, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "192.0.2.1:0"));
  free_world(&world);
}

static void test_out_of_descriptors(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  struct end client = {0};
  start_client(&world, &client);
  RUN_UNTIL(&world, client.opened && world.accepted);
  struct end late = {0};
  start_client(&world, &late);
  int next = dup(0);
  close(next);
  struct rlimit tight = {.rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
  struct end failing = {0};
  struct err err;
  assert_int_equal(
      stream_connect(&failing.stream, world.loop, &ops, &world.address, NULL, NULL, NULL, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "ulimit -n"));
  /* The listener must rest, not spin: turns end by time, not by an event each. */
  RUN_UNTIL(&world, late.opened);
  turns(&world, 5);
  loop_stats_reset(world.loop);
  turns(&world, 10);
  struct loop_stats stats;
  loop_stats(world.loop, &stats);
  assert_true(stats.events <= 2);
  assert_int_equal(world.accepted, 1);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
  RUN_UNTIL(&world, world.accepted == 2);
  free_client(&late);
  free_client(&client);
  free_world(&world);
}

static void test_pause_and_resume(void **state) {
  (void)state;
  for (int tls = 0; tls < 2; tls++) {
    struct world world;
    make_world(&world, tls);
    struct end client = {0};
    start_client(&world, &client);
    RUN_UNTIL(&world, client.opened && world.accepted && world.server[0].opened);
    stream_pause(&world.server[0].stream);
    write_pattern(&client, 0, 2000000);
    turns(&world, 50);
    assert_int_equal(world.server[0].got.len, 0);
    stream_resume(&world.server[0].stream);
    RUN_UNTIL(&world, world.server[0].got.len == 2000000);
    check_pattern(&world.server[0].got, 2000000);
    free_client(&client);
    free_world(&world);
  }
}

static void pause_it(struct end *end) {
  stream_pause(&end->stream);
}

/* Pauses in each callback, having used only a part: resuming gives the rest even when the socket is silent. */
static void test_resume_gives_the_tail(void **state) {
  (void)state;
  for (int tls = 0; tls < 2; tls++) {
    struct world world;
    make_world(&world, tls);
    world.on_server_received = pause_it;
    struct end client = {0};
    start_client(&world, &client);
    RUN_UNTIL(&world, client.opened && world.accepted && world.server[0].opened);
    struct end *server = &world.server[0];
    server->take = 7;
    write_pattern(&client, 0, 700);
    RUN_UNTIL(&world, server->got.len == 700);
    stream_resume(&server->stream);
    write_pattern(&client, 700, 10);
    RUN_UNTIL(&world, server->got.len == 707);
    assert_int_equal(server->stream.in.len, 3);
    server->take = 3;
    stream_resume(&server->stream);
    RUN_UNTIL(&world, server->got.len == 710);
    check_pattern(&server->got, 710);
    free_client(&client);
    free_world(&world);
  }
}

/* What comes while a stream pauses, its end included, is there when it resumes, however the pause fell. */
static void test_pauses_lose_nothing(void **state) {
  (void)state;
  for (int tls = 0; tls < 2; tls++) {
    struct world world;
    make_world(&world, tls);
    world.on_server_received = pause_it;
    struct end client = {0};
    start_client(&world, &client);
    RUN_UNTIL(&world, client.opened && world.accepted && world.server[0].opened);
    struct end *server = &world.server[0];
    for (size_t sent = 0; sent < 300000; sent += 100000) {
      write_pattern(&client, sent, 100000); /* more than one buffer */
      while (server->got.len < sent + 100000) {
        turns(&world, 3);
        stream_resume(&server->stream);
      }
    }
    stream_close(&client.stream, false);
    turns(&world, 3);
    stream_resume(&server->stream);
    RUN_UNTIL(&world, server->closed);
    assert_int_equal(server->how, STREAM_END_CLOSED);
    check_pattern(&server->got, 300000);
    free_client(&client);
    free_world(&world);
  }
}

static void test_streams_send_at_once(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  struct end client = {0};
  start_client(&world, &client);
  RUN_UNTIL(&world, client.opened && world.accepted);
  const int fds[] = {client.stream.watch.fd, world.server[0].stream.watch.fd};
  for (int i = 0; i < 2; i++) {
    int on = 0;
    socklen_t len = sizeof on;
    assert_int_equal(getsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
    assert_true(on);
  }
  free_client(&client);
  free_world(&world);
}

static void close_all_servers(struct end *end) {
  for (int i = 0; i < end->world->accepted; i++) {
    stream_close(&end->world->server[i].stream, true);
    /* Whoever touches a closed stream now reads nonsense. */
    memset(&end->world->server[i].stream, 0xa5, sizeof end->world->server[i].stream);
    end->world->server[i].stream.state = 0;
  }
}

static bool all_closed(const struct end *ends, int count) {
  for (int i = 0; i < count; i++) {
    if (!ends[i].closed) return false;
  }
  return true;
}

static void test_close_others_in_a_callback(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  enum { COUNT = 20 };
  struct end *clients = calloc(COUNT, sizeof *clients);
  for (int i = 0; i < COUNT; i++)
    start_client(&world, &clients[i]);
  RUN_UNTIL(&world, world.accepted == COUNT);
  turns(&world, 3);
  for (int i = 0; i < COUNT; i++) {
    world.server[i].on_received = close_all_servers;
    write_pattern(&clients[i], 0, 10);
    stream_flush(&clients[i].stream);
  }
  RUN_UNTIL(&world, all_closed(clients, COUNT));
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(clients[i].how, STREAM_END_RESET);
    free_client(&clients[i]);
  }
  free(clients);
  free_world(&world);
}

static void free_in_callback(struct stream *stream, enum stream_end how, int error) {
  (void)how;
  (void)error;
  ((struct end *)stream)->world->accepted++;
  free(stream);
}

static size_t free_when_received(struct stream *stream, uint8_t *data, size_t len) {
  (void)data;
  stream_write(stream, "y", 1);
  ((struct end *)stream)->world->accepted++;
  stream_close(stream, false);
  free(stream);
  return len;
}

static const struct stream_ops freeing_ops = {
    .opened = opened, .received = free_when_received, .closed = free_in_callback};

static void accept_freeing(struct listener *listener, int fd, const struct address *peer) {
  (void)peer;
  struct world *world = (struct world *)((char *)listener - offsetof(struct world, listener));
  struct end *end = calloc(1, sizeof *end);
  end->world = world;
  struct err err;
  assert_int_equal(stream_accept(&end->stream, world->loop, &freeing_ops, fd, world->server_tls, &err), STATUS_OK);
}

/* The owner may free the stream inside its callbacks (a sanitizer would tell). */
static void test_free_in_callbacks(void **state) {
  (void)state;
  for (int tls = 0; tls < 2; tls++) {
    struct world world;
    make_world(&world, tls);
    world.listener.accepted = accept_freeing;
    struct end client = {0};
    start_client(&world, &client);
    RUN_UNTIL(&world, client.opened);
    stream_write(&client.stream, "x", 1);
    RUN_UNTIL(&world, client.closed);
    assert_int_equal(client.got.len, 1);
    assert_int_equal(world.accepted, 1);
    free_client(&client);
    struct end other = {0};
    start_client(&world, &other);
    RUN_UNTIL(&world, other.opened);
    turns(&world, 5);
    free_client(&other);
    RUN_UNTIL(&world, world.accepted == 2);
    world.accepted = 0;
    free_world(&world);
  }
}

static void close_the_listener(struct listener *listener, int fd, const struct address *peer) {
  (void)peer;
  close(fd);
  listener_close(listener);
}

static void test_listener_closed_while_accepting(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  world.listener.accepted = close_the_listener;
  struct end clients[2] = {0};
  start_client(&world, &clients[0]);
  start_client(&world, &clients[1]);
  RUN_UNTIL(&world, clients[0].closed && clients[1].closed);
  free_client(&clients[0]);
  free_client(&clients[1]);
  free_world(&world);
}

static void test_port_taken(void **state) {
  (void)state;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct address address;
  struct err err;
  assert_int_equal(address_resolve("127.0.0.1", 0, &address, &err), STATUS_OK);
  assert_int_equal(bind(fd, (struct sockaddr *)&address.storage, address.len), 0);
  assert_int_equal(listen(fd, 1), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address.storage, &address.len), 0);
  struct loop *loop;
  assert_int_equal(loop_create(&loop, &err), STATUS_OK);
  struct listener listener = {0};
  assert_int_equal(listener_open(&listener, loop, &address, &err), STATUS_IO);
  char text[64];
  address_text(&address, text, sizeof text);
  assert_non_null(strstr(err.text, text));
  assert_int_equal(listener.watch.fd, -1);
  loop_destroy(loop);
  close(fd);
}

static void test_port_is_shared_only_with_who_joins(void **state) {
  (void)state;
  struct loop *loop;
  struct err err;
  struct address address;
  struct listener first = {0}, stranger = {0}, second = {.joins = true};
  assert_int_equal(loop_create(&loop, &err), STATUS_OK);
  assert_int_equal(address_resolve("127.0.0.1", 0, &address, &err), STATUS_OK);
  assert_int_equal(listener_open(&first, loop, &address, &err), STATUS_OK);
  struct address same = address;
  assert_int_equal(listener_open(&stranger, loop, &same, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "another program listens there"));
  assert_int_equal(listener_open(&second, loop, &same, &err), STATUS_OK);
  assert_memory_equal(&same.storage, &address.storage, address.len);
  listener_close(&first);
  listener_close(&second);
  loop_destroy(loop);
}

static void test_tls_refuses_unknown_certificates(void **state) {
  (void)state;
  struct err err;
  for (int verify = 0; verify < 2; verify++) {
    struct world world;
    make_world(&world, true);
    tls_context_free(world.client_tls);
    assert_int_equal(tls_client_context(&world.client_tls, verify, NULL, &err), STATUS_OK);
    struct end client = {0};
    start_client(&world, &client);
    RUN_UNTIL(&world, client.opened || client.closed);
    if (verify) {
      assert_int_equal(client.how, STREAM_END_TLS);
      assert_int_equal(client.closed, 1);
      assert_non_null(strstr(tls_context_failure(world.client_tls), "certificate verify failed"));
      RUN_UNTIL(&world, world.accepted && world.server[0].closed);
      assert_int_equal(world.server[0].how, STREAM_END_TLS);
    } else {
      assert_int_equal(client.opened, 1);
      assert_string_equal(tls_context_failure(world.client_tls), "");
      assert_memory_equal(tls_context_facts(world.client_tls), "TLSv1.3 TLS_", 12);
    }
    free_client(&client);
    free_world(&world);
  }
}

static void test_tls_checks_the_host_name(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool good;
  } names[] = {{"localhost", true}, {"127.0.0.1", true}, {"example.com", false}, {"127.0.0.2", false}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct world world;
    make_world(&world, true);
    struct end client = {.world = &world};
    struct err err;
    assert_int_equal(
        stream_connect(&client.stream, world.loop, &ops, &world.address, NULL, world.client_tls, names[i].name, &err),
        STATUS_OK);
    RUN_UNTIL(&world, client.opened || client.closed);
    assert_int_equal(client.opened, names[i].good);
    free_client(&client);
    free_world(&world);
  }
}

static void write_rubbish(struct end *end) {
  stream_write(&end->stream, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
}

static void test_tls_against_a_plain_server(void **state) {
  (void)state;
  struct world world;
  make_world(&world, true);
  struct tls_context *server_tls = world.server_tls;
  world.server_tls = NULL;
  world.on_server_opened = write_rubbish;
  struct end client = {0};
  start_client(&world, &client);
  RUN_UNTIL(&world, client.closed);
  assert_int_equal(client.how, STREAM_END_TLS);
  assert_int_equal(client.opened, 0);
  world.server_tls = server_tls;
  free_client(&client);
  free_world(&world);
}

static void test_tls_files(void **state) {
  (void)state;
  struct tls_context *context;
  struct err err;
  assert_int_equal(tls_server_context(&context, "/nonexistent.pem", key, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "/nonexistent.pem"));
  assert_int_equal(tls_server_context(&context, certificate, "/nonexistent.key", &err), STATUS_USAGE);
  assert_int_equal(tls_client_context(&context, true, "/nonexistent.ca", &err), STATUS_USAGE);
}

struct beat {
  struct pacer_hook hook;
  int runs;
  bool early;
};

static void beat_run(struct pacer_hook *hook, uint64_t now_ns) {
  struct beat *beat = (struct beat *)hook;
  beat->runs++;
  if (now_ns < hook->due_ns) beat->early = true;
  hook->due_ns += 2 * NS_PER_MS;
}

static void test_pacer_runs_and_readiness_is_served(void **state) {
  (void)state;
  struct world world;
  make_world(&world, false);
  world.server_echo = true;
  struct beat beat = {.hook = {.run = beat_run, .due_ns = clock_now_ns() + NS_PER_MS}};
  loop_set_pacer(world.loop, &beat.hook, 500 * NS_PER_US);
  struct end client = {0};
  start_client(&world, &client);
  RUN_UNTIL(&world, client.opened);
  write_pattern(&client, 0, 3000);
  RUN_UNTIL(&world, client.got.len == 3000 && beat.runs >= 20);
  assert_false(beat.early);
  struct loop_stats stats;
  loop_stats(world.loop, &stats);
  assert_true(stats.waited_ns > 0);
  assert_true(stats.busy_ns > 0);
  loop_set_pacer(world.loop, NULL, 0);
  free_client(&client);
  free_world(&world);
}

static void count_release(void *memory) {
  ++*(int *)memory;
}

static void test_defer(void **state) {
  (void)state;
  struct err err;
  struct loop *loop;
  assert_int_equal(loop_create(&loop, &err), STATUS_OK);
  int released = 0;
  for (int i = 0; i < 1000; i++)
    loop_defer(loop, count_release, &released);
  assert_int_equal(released, 0);
  loop_turn(loop, UINT64_MAX);
  assert_int_equal(released, 1000);
  loop_defer(loop, count_release, &released);
  loop_destroy(loop);
  assert_int_equal(released, 1001);
}

/* A hook that notes when it ran, and asks again from within a number of times. */
struct noting_hook {
  struct loop_hook hook;
  struct loop *loop;
  int *order, *count;
  int name, again;
};

static void note(struct loop_hook *hook) {
  struct noting_hook *noting = (struct noting_hook *)hook;
  noting->order[(*noting->count)++] = noting->name;
  if (noting->again-- > 0) loop_before_flush(noting->loop, hook);
}

static void test_hooks_run_before_the_flush(void **state) {
  (void)state;
  struct err err;
  struct loop *loop;
  int order[8], count = 0;
  assert_int_equal(loop_create(&loop, &err), STATUS_OK);
  struct noting_hook hooks[3];
  for (int i = 0; i < 3; i++) {
    hooks[i] = (struct noting_hook){
        .hook = {.run = note}, .loop = loop, .order = order, .count = &count, .name = i, .again = i == 0};
    loop_before_flush(loop, &hooks[i].hook);
    loop_before_flush(loop, &hooks[i].hook); /* once is enough */
  }
  loop_forget_hook(loop, &hooks[1].hook);
  loop_forget_hook(loop, &hooks[1].hook);
  loop_turn(loop, UINT64_MAX); /* does not sleep */
  while (count < 3)
    loop_turn(loop, UINT64_MAX);
  assert_int_equal(order[0], 0);
  assert_int_equal(order[1], 2);
  assert_int_equal(order[2], 0);
  loop_turn(loop, 0);
  assert_int_equal(count, 3);
  loop_destroy(loop);
}

static void run_openssl(const char *const *arguments) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    assert_non_null(freopen("/dev/null", "w", stderr));
    execvp("openssl", (char *const *)arguments);
    _exit(127);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static int make_certificate(void **state) {
  (void)state;
  assert_non_null(mkdtemp(directory));
  snprintf(certificate, sizeof certificate, "%s/cert.pem", directory);
  snprintf(key, sizeof key, "%s/key.pem", directory);
  const char *const arguments[] = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
      "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate, "-subj", "/CN=localhost",
      "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2", NULL};
  run_openssl(arguments);
  return 0;
}

static int remove_certificate(void **state) {
  (void)state;
  unlink(certificate);
  unlink(key);
  return rmdir(directory);
}

static void test_busy_share_is_of_the_time_since_the_last_look(void **state) {
  (void)state;
  struct loop_look look = {0};
  assert_true(loop_busy_share(&look, 10, 90) == 0.1);
  assert_true(loop_busy_share(&look, 110, 90) == 1);
  assert_true(loop_busy_share(&look, 110, 90) == 1);  /* no time went by */
  assert_true(loop_busy_share(&look, 5, 15) == 0.25); /* after a reset */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_echo_plain),
      cmocka_unit_test(test_echo_tls),
      cmocka_unit_test(test_tls_behind_a_greeting),
      cmocka_unit_test(test_close_sends_what_waits),
      cmocka_unit_test(test_half_close_still_answers),
      cmocka_unit_test(test_reset),
      cmocka_unit_test(test_reset_while_paused),
      cmocka_unit_test(test_write_error_comes_through_closed),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_connect_from),
      cmocka_unit_test(test_out_of_descriptors),
      cmocka_unit_test(test_pause_and_resume),
      cmocka_unit_test(test_resume_gives_the_tail),
      cmocka_unit_test(test_pauses_lose_nothing),
      cmocka_unit_test(test_streams_send_at_once),
      cmocka_unit_test(test_close_others_in_a_callback),
      cmocka_unit_test(test_free_in_callbacks),
      cmocka_unit_test(test_listener_closed_while_accepting),
      cmocka_unit_test(test_port_taken),
      cmocka_unit_test(test_port_is_shared_only_with_who_joins),
      cmocka_unit_test(test_tls_refuses_unknown_certificates),
      cmocka_unit_test(test_tls_checks_the_host_name),
      cmocka_unit_test(test_tls_against_a_plain_server),
      cmocka_unit_test(test_tls_files),
      cmocka_unit_test(test_pacer_runs_and_readiness_is_served),
      cmocka_unit_test(test_defer),
      cmocka_unit_test(test_hooks_run_before_the_flush),
      cmocka_unit_test(test_busy_share_is_of_the_time_since_the_last_look),
  };
  return cmocka_run_group_tests(tests, make_certificate, remove_certificate);
}
