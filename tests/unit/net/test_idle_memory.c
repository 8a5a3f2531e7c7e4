/* The user-space budget of idle connections (architecture.md), measured over many of them after traffic. */
#include "base/clock.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/ws.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* As the sanitizers' allocator_interface.h has it, which gcc does not ship. */
size_t __sanitizer_get_current_allocated_bytes(void);

static size_t heap_bytes(void) {
  return __sanitizer_get_current_allocated_bytes();
}
#else
static size_t heap_bytes(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}
#endif

#define PLAIN_BYTES_MAX 256
#define TLS_BYTES_MAX (20 * 1024)
#define DEADLINE_NS (60 * NS_PER_SEC)

/* An idle client as the load room has it: stream, framing, keep-alive. */
struct connection {
  struct stream stream;
  struct ws ws;
  struct timer keep_alive;
  bool opened;
  bool answered;
};

struct world {
  struct loop *loop;
  struct listener listener;
  struct address address;
  struct tls_context *server_tls, *client_tls;
  struct connection **server;
  size_t accepted;
};

static void opened(struct stream *stream) {
  ((struct connection *)stream)->opened = true;
}

static void closed(struct stream *stream, enum stream_end how, int error) {
  (void)stream;
  fail_msg("a connection ended: %d %d", (int)how, error);
}

static size_t received(struct stream *stream, uint8_t *data, size_t len) {
  struct connection *connection = (struct connection *)stream;
  size_t used = 0;
  struct ws_event event;
  do {
    used += ws_read(&connection->ws, data + used, len - used, &event);
    if (event.kind == WS_EVENT_MESSAGE) connection->answered = true;
    assert_int_not_equal(event.kind, WS_EVENT_ERROR);
  } while (event.kind != WS_EVENT_NONE);
  return used;
}

static const struct stream_ops ops = {.opened = opened, .received = received, .closed = closed};

static struct connection *new_connection(enum ws_role role) {
  struct connection *connection = calloc(1, sizeof *connection);
  assert_non_null(connection);
  ws_init(&connection->ws, role, 65536);
  return connection;
}

static void accepted(struct listener *listener, int fd, const struct address *peer) {
  (void)peer;
  struct world *world = (struct world *)((char *)listener - offsetof(struct world, listener));
  struct connection *connection = new_connection(WS_SERVER);
  struct err err;
  assert_int_equal(stream_accept(&connection->stream, world->loop, &ops, fd, world->server_tls, &err), STATUS_OK);
  world->server[world->accepted++] = connection;
}

static bool all_opened(struct connection *const *connections, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!connections[i]->opened) return false;
  }
  return true;
}

static bool all_answered(struct connection *const *connections, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!connections[i]->answered) return false;
  }
  return true;
}

static void turn_before(struct world *world, uint64_t deadline_ns) {
  assert_true(clock_now_ns() < deadline_ns);
  loop_turn(world->loop, clock_now_ns() + NS_PER_MS);
}

/* A message in two fragments, whose second one is cut, so that each kind of buffer is in use meanwhile. */
static void send_first_half(struct connection *connection) {
  assert_true(stream_write(&connection->stream, "\x01\x85\0\0\0\0Hello\x80\x85\0\0", 15));
}

static void send_second_half(struct connection *connection) {
  assert_true(stream_write(&connection->stream, "\0\0again", 7));
}

static void connect_all(struct world *world, struct connection **clients, size_t count) {
  uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;
  struct err err;
  for (size_t i = 0; i < count; i++) {
    clients[i] = new_connection(WS_CLIENT);
    if (stream_connect(&clients[i]->stream, world->loop, &ops, &world->address, NULL, world->client_tls, "localhost",
            &err) != STATUS_OK) {
      fail_msg("%s", err.text);
    }
    timer_arm(loop_wheel(world->loop), &clients[i]->keep_alive, UINT64_MAX);
    /* In step with the listener, so that its backlog does not overflow. */
    while (world->accepted + 50 < i)
      turn_before(world, deadline_ns);
  }
  while (world->accepted < count || !all_opened(clients, count) || !all_opened(world->server, count)) {
    turn_before(world, deadline_ns);
  }
}

static size_t bytes_per_connection(const char *certificate, const char *key, size_t count) {
  struct world world = {.listener.accepted = accepted};
  struct connection **clients = calloc(count, sizeof(struct connection *));
  world.server = calloc(count, sizeof(struct connection *));
  struct err err;
  assert_int_equal(loop_create(&world.loop, &err), STATUS_OK);
  assert_int_equal(address_resolve("127.0.0.1", 0, &world.address, &err), STATUS_OK);
  assert_int_equal(listener_open(&world.listener, world.loop, &world.address, &err), STATUS_OK);
  if (certificate) {
    assert_int_equal(tls_server_context(&world.server_tls, certificate, key, &err), STATUS_OK);
    assert_int_equal(tls_client_context(&world.client_tls, true, certificate, &err), STATUS_OK);
  }
  size_t before = heap_bytes();
  connect_all(&world, clients, count);
  uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;
  for (size_t i = 0; i < count; i++)
    send_first_half(clients[i]);
  for (int i = 0; i < 20; i++)
    turn_before(&world, deadline_ns);
  assert_true(heap_bytes() > before);
  for (size_t i = 0; i < count; i++)
    send_second_half(clients[i]);
  while (!all_answered(world.server, count))
    turn_before(&world, deadline_ns);
  for (int i = 0; i < 20; i++)
    turn_before(&world, deadline_ns);
  size_t bytes = (heap_bytes() - before) / (2 * count);
  for (size_t i = 0; i < count; i++) {
    stream_close(&clients[i]->stream, true);
    stream_close(&world.server[i]->stream, true);
    timer_cancel(loop_wheel(world.loop), &clients[i]->keep_alive);
    free(clients[i]);
    free(world.server[i]);
  }
  listener_close(&world.listener);
  loop_destroy(world.loop);
  tls_context_free(world.server_tls);
  tls_context_free(world.client_tls);
  free(world.server);
  free(clients);
  return bytes;
}

static void test_plain(void **state) {
  (void)state;
  size_t bytes = bytes_per_connection(NULL, NULL, 4000);
  print_message("idle plain connection: %zu bytes\n", bytes);
  assert_in_range(bytes, sizeof(struct connection), PLAIN_BYTES_MAX);
}

static char directory[] = "/tmp/muster-idle-XXXXXX";
static char certificate[64];
static char key[64];

static void test_tls(void **state) {
  (void)state;
  size_t bytes = bytes_per_connection(certificate, key, 300);
  print_message("idle TLS connection: %zu bytes\n", bytes);
  assert_in_range(bytes, sizeof(struct connection), TLS_BYTES_MAX);
}

static void run_openssl(const char *const *arguments) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (!freopen("/dev/null", "w", stderr)) _exit(126);
    execvp("openssl", (char *const *)arguments);
    _exit(127);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static int set_up(void **state) {
  (void)state;
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  assert_non_null(mkdtemp(directory));
  snprintf(certificate, sizeof certificate, "%s/cert.pem", directory);
  snprintf(key, sizeof key, "%s/key.pem", directory);
  const char *const arguments[] = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
      "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate, "-subj", "/CN=localhost",
      "-addext", "subjectAltName=DNS:localhost", "-days", "2", NULL};
  run_openssl(arguments);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(certificate);
  unlink(key);
  return rmdir(directory);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plain),
      cmocka_unit_test(test_tls),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
