/* The ceiling beside which muster + musterd is measured: a bare epoll client and a bare epoll server in two processes,
 * with the write pattern of a JuggleIM run and nothing else. No protocol, no accounting, no store: a frame is a length
 * and a kind.
 *
 *   bench_bare ring CONNECTIONS SECONDS    each message: ack to its sender, delivery to the next connection, which
 *                                          acks it; one message of each connection is outstanding
 *   bench_bare echo CONNECTIONS SECONDS    each message comes back to its sender; one of each connection is outstanding
 *   bench_bare fanout CONNECTIONS SECONDS  connection 0 publishes, every other one gets and acks a delivery; two
 *                                          publishes are outstanding
 * Frames of one turn to one connection leave in one send, as muster's do. Prints acks/s, deliveries/s and the CPU
 * seconds of both processes. */
#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Bytes on the wire of the four JuggleIM frames at --payload-bytes 256, and of shootout's binary echo. */
enum { PUBLISH_BYTES = 348, ACK_BYTES = 62, DELIVERY_BYTES = 470, DELIVERY_ACK_BYTES = 14, ECHO_BYTES = 277 };
enum { KIND_PUBLISH, KIND_ACK, KIND_DELIVERY, KIND_DELIVERY_ACK, KIND_ECHO };
static const uint16_t frame_bytes[] = {PUBLISH_BYTES, ACK_BYTES, DELIVERY_BYTES, DELIVERY_ACK_BYTES, ECHO_BYTES};

enum { CONNECTIONS_MAX = 15000, READ_BYTES = 65536, EVENTS = 128 };

struct connection {
  int fd;
  uint8_t *out;
  size_t out_len, out_cap;
  uint16_t skip; /* bytes of the current frame still to come */
  uint8_t head[4];
  uint8_t head_len;
  bool dirty;
};

struct end {
  int epoll;
  bool is_server, is_fan_out;
  uint32_t count;
  struct connection *connection;
  uint32_t *dirty, dirty_count;
  uint64_t acks, deliveries;
};

static void die(const char *what) {
  fprintf(stderr, "bench_bare: %s: %s\n", what, strerror(errno));
  exit(1);
}

static void put(struct end *end, uint32_t to, uint8_t kind) {
  struct connection *c = &end->connection[to];
  uint16_t size = frame_bytes[kind];
  if (c->out_cap - c->out_len < size) {
    c->out_cap = c->out_cap ? c->out_cap * 2 : 4096;
    c->out = realloc(c->out, c->out_cap);
    if (!c->out) die("realloc");
  }
  uint8_t *at = c->out + c->out_len;
  memset(at, 'x', size);
  memcpy(at, &size, sizeof size);
  at[2] = kind;
  c->out_len += size;
  if (c->dirty) return;
  c->dirty = true;
  end->dirty[end->dirty_count++] = to;
}

static void flush(struct end *end) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < end->dirty_count; i++) {
    struct connection *c = &end->connection[end->dirty[i]];
    ssize_t sent = send(c->fd, c->out, c->out_len, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) die("send");
    if (sent > 0) {
      memmove(c->out, c->out + sent, c->out_len - (size_t)sent);
      c->out_len -= (size_t)sent;
    }
    if (c->out_len > 0) {
      end->dirty[kept++] = end->dirty[i];
    } else {
      c->dirty = false;
    }
  }
  end->dirty_count = kept;
}

static void on_frame(struct end *end, uint32_t from, uint8_t kind) {
  if (kind == KIND_ECHO) {
    if (!end->is_server) end->deliveries++;
    put(end, from, KIND_ECHO);
    return;
  }
  if (end->is_server) {
    if (kind != KIND_PUBLISH) return;
    put(end, from, KIND_ACK);
    if (!end->is_fan_out) {
      put(end, (from + 1) % end->count, KIND_DELIVERY);
      return;
    }
    for (uint32_t i = 1; i < end->count; i++)
      put(end, i, KIND_DELIVERY);
    return;
  }
  if (kind == KIND_ACK) {
    end->acks++;
    put(end, from, KIND_PUBLISH);
  } else if (kind == KIND_DELIVERY) {
    end->deliveries++;
    put(end, from, KIND_DELIVERY_ACK);
  }
}

static void on_bytes(struct end *end, uint32_t from, const uint8_t *data, size_t len) {
  struct connection *c = &end->connection[from];
  while (len > 0) {
    if (c->skip > 0) {
      size_t step = len < c->skip ? len : c->skip;
      data += step;
      len -= step;
      c->skip -= (uint16_t)step;
      if (c->skip == 0) on_frame(end, from, c->head[2]);
      continue;
    }
    c->head[c->head_len++] = *data++;
    len--;
    if (c->head_len < sizeof c->head) continue;
    uint16_t size;
    memcpy(&size, c->head, sizeof size);
    c->skip = (uint16_t)(size - sizeof c->head);
    c->head_len = 0;
  }
}

static void turn(struct end *end, int wait_ms) {
  static uint8_t data[READ_BYTES];
  struct epoll_event events[EVENTS];
  int n = epoll_wait(end->epoll, events, EVENTS, wait_ms);
  for (int i = 0; i < n; i++) {
    uint32_t from = events[i].data.u32;
    ssize_t got = recv(end->connection[from].fd, data, sizeof data, 0);
    if (got > 0) on_bytes(end, from, data, (size_t)got);
    if (got == 0) exit(0);
  }
  flush(end);
}

static void adopt(struct end *end, uint32_t i, int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  end->connection[i].fd = fd;
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
  if (epoll_ctl(end->epoll, EPOLL_CTL_ADD, fd, &event) < 0) die("epoll_ctl");
}

static double cpu_seconds(int who) {
  struct rusage usage;
  getrusage(who, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
  long count = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
  long seconds = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
  if (count < 2 || count > CONNECTIONS_MAX || seconds < 1 || seconds > 60 ||
      (strcmp(argv[1], "ring") != 0 && strcmp(argv[1], "echo") != 0 && strcmp(argv[1], "fanout") != 0)) {
    fprintf(stderr, "usage: bench_bare ring|echo|fanout CONNECTIONS(2..%d) SECONDS(1..60)\n", CONNECTIONS_MAX);
    return 2;
  }
  struct end end = {.is_fan_out = argv[1][0] == 'f', .count = (uint32_t)count};
  end.connection = calloc(end.count, sizeof *end.connection);
  end.dirty = calloc(end.count, sizeof *end.dirty);
  if (!end.connection || !end.dirty) die("calloc");

  int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t address_len = sizeof address;
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 4096) < 0 ||
      getsockname(listener, (struct sockaddr *)&address, &address_len) < 0) {
    die("listen");
  }
  pid_t server = fork();
  if (server < 0) die("fork");
  end.epoll = epoll_create1(0);
  if (server == 0) {
    end.is_server = true;
    for (uint32_t i = 0; i < end.count; i++) {
      int fd = accept(listener, NULL, NULL);
      if (fd < 0) die("accept");
      adopt(&end, i, fd);
    }
    for (;;)
      turn(&end, -1);
  }
  for (uint32_t i = 0; i < end.count; i++) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) die("connect");
    adopt(&end, i, fd);
  }
  double cpu_before = cpu_seconds(RUSAGE_SELF);
  uint64_t start = clock_now_ns();
  if (end.is_fan_out) {
    put(&end, 0, KIND_PUBLISH);
    put(&end, 0, KIND_PUBLISH);
  } else {
    uint8_t kind = argv[1][0] == 'e' ? KIND_ECHO : KIND_PUBLISH;
    for (uint32_t i = 0; i < end.count; i++)
      put(&end, i, kind);
  }
  while (clock_now_ns() - start < (uint64_t)seconds * NS_PER_SEC)
    turn(&end, end.dirty_count ? 0 : 100);
  double elapsed = (double)(clock_now_ns() - start) / 1e9;
  double client_cpu = cpu_seconds(RUSAGE_SELF) - cpu_before;
  kill(server, SIGTERM);
  waitpid(server, NULL, 0);
  printf("bare %-6s %5u connections: %8.0f acks/s %8.0f deliveries/s, CPU client %.2f server %.2f of %.1f s\n", argv[1],
      end.count, (double)end.acks / elapsed, (double)end.deliveries / elapsed, client_cpu, cpu_seconds(RUSAGE_CHILDREN),
      elapsed);
  free(end.connection);
  free(end.dirty);
  return 0;
}
