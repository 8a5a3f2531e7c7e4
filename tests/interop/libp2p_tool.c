/* A libp2p peer made of the net room, for the interop test with npm's libp2p:
 *   libp2p_tool listen tcp|udx    prints its multiaddr, echoes /muster/echo/1.0.0 until its standard input ends
 *   libp2p_tool dial multiaddr    echoes messages of many sizes on many streams, is refused, resets; prints what it did
 */
#include "base/clock.h"
#include "net/libp2p/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ECHO "/muster/echo/1.0.0"
#define DEADLINE_NS (60 * NS_PER_SEC)

enum { SMALL_STREAMS = 100, STREAMS = SMALL_STREAMS + 3, LARGE_BYTES = 3 << 20, ECHO_PENDING_BYTES = 1 << 20 };

struct tool;

/* One stream of the dialer: sends len bytes of a pattern, expects them back. */
struct message {
  struct tool *tool;
  struct libp2p_stream *stream;
  size_t len, sent, checked;
  bool must_be_refused;
};

struct tool {
  struct loop *loop;
  struct libp2p *node;
  struct watch input;
  struct libp2p_conn *conn;
  struct message messages[STREAMS];
  int done, refused;
  int exit_code; /* -1: still at work */
};

static void fail(struct tool *tool, const char *what) {
  fprintf(stderr, "libp2p_tool: %s\n", what);
  tool->exit_code = 1;
}

/* --- listening ------------------------------------------------------------------------------------------------------
 */

/* No more than a peer that reads slowly is worth: the rest waits on the peer's side. */
static size_t echo(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  bool has_room = libp2p_stream_pending(stream) < ECHO_PENDING_BYTES;
  return has_room && libp2p_stream_write(stream, data, len) ? len : 0;
}

static const struct libp2p_stream_ops echo_ops = {.received = echo, .drained = libp2p_stream_resume};
static const struct libp2p_protocol protocols[] = {{ECHO, &echo_ops, NULL}};

static void input_ready(struct watch *watch, uint32_t events) {
  struct tool *tool = (struct tool *)((char *)watch - offsetof(struct tool, input));
  char ignored[64];
  (void)events;
  if (read(watch->fd, ignored, sizeof ignored) <= 0) tool->exit_code = 0;
}

static enum status listen_on(
    struct tool *tool, const char *transport, const struct libp2p_identity *keys, struct err *err) {
  struct multiaddr shown = {.transport = strcmp(transport, "udx") == 0 ? MULTIADDR_UDX : MULTIADDR_TCP,
      .host = "127.0.0.1",
      .has_peer = true,
      .peer = keys->peer};
  struct address address;
  char text[MULTIADDR_TEXT_BYTES];
  if (address_resolve(shown.host, 0, &address, err) != STATUS_OK) return err->status;
  if (libp2p_listen(tool->node, shown.transport, &address, false, err) != STATUS_OK) return err->status;
  tool->input.ready = input_ready;
  if (loop_watch(tool->loop, &tool->input, STDIN_FILENO, EPOLLIN, err) != STATUS_OK) return err->status;
  address_text(&address, text, sizeof text);
  shown.port = (uint16_t)strtoul(strrchr(text, ':') + 1, NULL, 10);
  multiaddr_text(&shown, text);
  printf("%s\n", text);
  fflush(stdout);
  return STATUS_OK;
}

/* --- dialing --------------------------------------------------------------------------------------------------------
 */

static uint8_t pattern(const struct message *message, size_t offset) {
  return (uint8_t)(offset * 31 + message->len);
}

static void write_more(struct message *message) {
  uint8_t bytes[8192];
  while (message->sent < message->len && libp2p_stream_pending(message->stream) < 65536) {
    size_t len = message->len - message->sent < sizeof bytes ? message->len - message->sent : sizeof bytes;
    for (size_t i = 0; i < len; i++)
      bytes[i] = pattern(message, message->sent + i);
    if (!libp2p_stream_write(message->stream, bytes, len)) fail(message->tool, "a write was refused");
    message->sent += len;
  }
  if (message->sent == message->len) libp2p_stream_end(message->stream);
}

static size_t received(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  struct message *message = libp2p_stream_user(stream);
  for (size_t i = 0; i < len; i++) {
    if (data[i] != pattern(message, message->checked + i)) fail(message->tool, "an echo differs");
  }
  message->checked += len;
  return len;
}

static void drained(struct libp2p_stream *stream) {
  write_more(libp2p_stream_user(stream));
}

static void open_others(struct tool *tool);

static void closed(struct libp2p_stream *stream, enum libp2p_stream_end end) {
  struct message *message = libp2p_stream_user(stream);
  struct tool *tool = message->tool;
  bool good = message->must_be_refused ? end == LIBP2P_STREAM_REFUSED
                                       : end == LIBP2P_STREAM_DONE && message->checked == message->len;
  if (!good) fail(tool, "a stream ended in another way than it should");
  if (message->must_be_refused) {
    tool->refused++;
  } else if (++tool->done == 1 && tool->exit_code < 0) {
    open_others(tool);
  }
}

static const struct libp2p_stream_ops message_ops = {.received = received, .drained = drained, .closed = closed};

static void open_message(struct tool *tool, int index, const char *protocol, size_t len) {
  struct message *message = &tool->messages[index];
  *message = (struct message){.tool = tool, .len = len, .must_be_refused = strcmp(protocol, ECHO) != 0};
  message->stream = libp2p_open_stream(tool->conn, protocol, &message_ops, message);
  if (!message->stream) {
    fail(tool, "a stream could not be opened");
  } else if (!message->must_be_refused) {
    write_more(message);
  }
}

/* One stream shows that the peer is ready: npm's libp2p takes only 10 before it is. */
static void opened(struct libp2p_conn *conn) {
  open_message(libp2p_conn_user(conn), 0, ECHO, 0);
}

static void open_others(struct tool *tool) {
  for (int i = 1; i < SMALL_STREAMS; i++)
    open_message(tool, i, ECHO, (size_t)i * 97);
  open_message(tool, SMALL_STREAMS, ECHO, LARGE_BYTES);
  open_message(tool, SMALL_STREAMS + 1, ECHO, LARGE_BYTES);
  open_message(tool, SMALL_STREAMS + 2, "/nobody/speaks/this", 0);
  struct libp2p_stream *broken = libp2p_open_stream(tool->conn, ECHO, &message_ops, NULL);
  if (broken) libp2p_stream_reset(broken);
}

static void conn_closed(struct libp2p_conn *conn, const struct libp2p_end *end) {
  struct tool *tool = libp2p_conn_user(conn);
  fprintf(stderr, "libp2p_tool: %s: %s\n", libp2p_cause_text(end->cause), end->text);
  if (tool->exit_code < 0) tool->exit_code = 1;
}

static const struct libp2p_conn_ops conn_ops = {.opened = opened, .closed = conn_closed};

static enum status dial(struct tool *tool, const char *text, struct err *err) {
  struct multiaddr to;
  struct address address;
  if (multiaddr_parse(text, &to, err) != STATUS_OK) return err->status;
  if (address_resolve(to.host, to.port, &address, err) != STATUS_OK) return err->status;
  return libp2p_dial(tool->node, &to, &address, NULL, &conn_ops, tool, &tool->conn, err);
}

static void run(struct tool *tool, bool is_dialer) {
  uint64_t deadline_ns = clock_now_ns() + DEADLINE_NS;
  while (tool->exit_code < 0) {
    loop_turn(tool->loop, clock_now_ns() + 100 * NS_PER_MS);
    if (!is_dialer) continue;
    if (clock_now_ns() > deadline_ns) fail(tool, "the exchange takes too long");
    if (tool->done < STREAMS - 1 || !tool->refused) continue;
    printf("%d echoed, %d refused\n", tool->done, tool->refused);
    tool->exit_code = 0;
    libp2p_disconnect(tool->conn);
  }
  loop_turn(tool->loop, clock_now_ns());
}

int main(int argc, char **argv) {
  bool listens = argc == 3 && strcmp(argv[1], "listen") == 0, dials = argc == 3 && strcmp(argv[1], "dial") == 0;
  if (!listens && !dials) {
    fprintf(stderr, "usage: libp2p_tool listen tcp|udx | dial multiaddr\n");
    return 2;
  }
  static struct tool tool = {.exit_code = -1, .input.fd = -1};
  struct libp2p_identity keys;
  struct err err;
  struct libp2p_config config = {
      .identity = &keys, .protocols = protocols, .protocol_count = 1, .identify = true, .keep_alive_ns = NS_PER_SEC};
  enum status status = loop_create(&tool.loop, &err);
  if (status == STATUS_OK) status = libp2p_identity_make(&keys, NULL, &err);
  if (status == STATUS_OK) status = libp2p_create(&tool.node, tool.loop, &config, &err);
  if (status == STATUS_OK) status = listens ? listen_on(&tool, argv[2], &keys, &err) : dial(&tool, argv[2], &err);
  if (status != STATUS_OK) {
    fprintf(stderr, "libp2p_tool: %s\n", err.text);
    return 1;
  }
  run(&tool, dials);
  libp2p_close(tool.node);
  loop_destroy(tool.loop);
  return tool.exit_code;
}
