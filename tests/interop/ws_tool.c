/* An echo peer made of the net room, for the interop test with npm's ws:
 *   ws_tool server [certificate key]   prints its port, then serves until its standard input ends
 *   ws_tool client url [ca_file]       connects, echoes until the server closes, prints the close code */
#include "base/clock.h"
#include "base/rng.h"
#include "net/http.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/ws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MESSAGE_MAX (32U << 20)

struct peer {
  struct stream stream;
  struct tool *tool;
  struct ws ws;
  bool upgraded;
};

struct tool {
  struct loop *loop;
  struct listener listener;
  struct watch input;
  struct tls_context *tls;
  struct url url;
  char key[25];
  bool done;
  int exit_code;
};

static void finish(struct tool *tool, int exit_code) {
  tool->done = true;
  tool->exit_code = exit_code;
}

static void complain(struct tool *tool, const char *what) {
  fprintf(stderr, "ws_tool: %s\n", what);
  if (tool->listener.watch.fd < 0) finish(tool, 1);
}

static void write_frame(struct peer *peer, uint8_t opcode, const void *data, size_t len) {
  uint8_t random[4];
  const uint8_t *mask = NULL;
  if (peer->ws.role == WS_CLIENT) {
    random_bytes(random, sizeof random);
    mask = random;
  }
  uint8_t *room = stream_reserve(&peer->stream, WS_HEADER_MAX + len);
  if (!room) return;
  size_t header_len = ws_write_header(room, opcode, len, mask);
  if (len) memcpy(room + header_len, data, len);
  if (mask) ws_mask(room + header_len, len, mask, 0);
  stream_commit(&peer->stream, header_len + len);
}

static void write_close(struct peer *peer, uint16_t code, const char *reason) {
  static const uint8_t mask[4] = {1, 2, 3, 4};
  uint8_t frame[131];
  size_t len = ws_write_close(frame, code, reason, peer->ws.role == WS_CLIENT ? mask : NULL);
  stream_write(&peer->stream, frame, len);
}

/* The stream and its buffers are gone afterwards; the memory goes with the turn. */
static void drop(struct peer *peer) {
  stream_close(&peer->stream, false);
  ws_free(&peer->ws);
  if (peer->ws.role == WS_SERVER) loop_defer(peer->tool->loop, free, peer);
}

static void on_close(struct peer *peer, const struct ws_event *event) {
  char reason[126] = "";
  memcpy(reason, event->data ? event->data : (const uint8_t *)"", event->len);
  write_close(peer, event->close_code == 1005 ? 1000 : event->close_code, reason);
  if (peer->ws.role == WS_CLIENT) {
    printf("%u %s\n", (unsigned)event->close_code, reason);
    finish(peer->tool, 0);
  }
}

/* False when no more events are to be read. */
static bool on_event(struct peer *peer, const struct ws_event *event) {
  switch (event->kind) {
  case WS_EVENT_MESSAGE:
    write_frame(peer, event->opcode, event->data, event->len);
    return true;
  case WS_EVENT_PING:
    write_frame(peer, WS_PONG, event->data, event->len);
    return true;
  case WS_EVENT_PONG:
    return true;
  case WS_EVENT_CLOSE:
    on_close(peer, event);
    return false;
  case WS_EVENT_ERROR:
    write_close(peer, event->close_code, event->text);
    complain(peer->tool, event->text);
    return false;
  default:
    return false;
  }
}

/* Bytes of the head that were used; 0: more are needed. Negative: refused. */
static ssize_t upgrade(struct peer *peer, const uint8_t *data, size_t len) {
  struct http_head head;
  struct err err;
  size_t used = 0;
  bool server = peer->ws.role == WS_SERVER;
  enum http_result result =
      server ? http_read_request(data, len, &head, &used, &err) : http_read_response(data, len, &head, &used, &err);
  if (result == HTTP_PARTIAL) return 0;
  enum status status = STATUS_PROTOCOL;
  if (result == HTTP_COMPLETE && server) {
    char answer[256];
    size_t answer_len;
    status = ws_answer_request(&head, answer, sizeof answer, &answer_len, &err);
    stream_write(&peer->stream, answer, answer_len);
  }
  if (result == HTTP_COMPLETE && !server) status = ws_check_response(&head, peer->tool->key, &err);
  if (status != STATUS_OK) {
    complain(peer->tool, err.text);
    return -1;
  }
  peer->upgraded = true;
  return (ssize_t)used;
}

static size_t received(struct stream *stream, uint8_t *data, size_t len) {
  struct peer *peer = (struct peer *)stream;
  size_t used = 0;
  if (!peer->upgraded) {
    ssize_t head_len = upgrade(peer, data, len);
    if (head_len < 0) drop(peer);
    if (head_len <= 0) return 0;
    used = (size_t)head_len;
  }
  struct ws_event event;
  do {
    used += ws_read(&peer->ws, data + used, len - used, &event);
    if (event.kind != WS_EVENT_NONE && !on_event(peer, &event)) {
      drop(peer);
      return len;
    }
  } while (event.kind != WS_EVENT_NONE);
  return used;
}

static void opened(struct stream *stream) {
  struct peer *peer = (struct peer *)stream;
  if (peer->ws.role == WS_SERVER) return;
  struct tool *tool = peer->tool;
  char request[1024];
  ws_make_key(tool->key);
  size_t len =
      ws_write_request(request, sizeof request, tool->url.host, tool->url.port, tool->url.path, tool->key, NULL);
  stream_write(stream, request, len);
}

static void closed(struct stream *stream, enum stream_end how, int error) {
  struct peer *peer = (struct peer *)stream;
  char text[320];
  snprintf(text, sizeof text, "the connection ended (%d): %s %s", (int)how, error ? strerror(error) : "",
      peer->tool->tls ? tls_context_failure(peer->tool->tls) : "");
  complain(peer->tool, text);
  ws_free(&peer->ws);
  if (peer->ws.role == WS_SERVER) loop_defer(peer->tool->loop, free, peer);
}

static const struct stream_ops ops = {.opened = opened, .received = received, .closed = closed};

static void accepted(struct listener *listener, int fd, const struct address *from) {
  (void)from;
  struct tool *tool = (struct tool *)((char *)listener - offsetof(struct tool, listener));
  struct peer *peer = calloc(1, sizeof *peer);
  struct err err;
  if (!peer) {
    close(fd);
    return;
  }
  peer->tool = tool;
  ws_init(&peer->ws, WS_SERVER, MESSAGE_MAX);
  if (stream_accept(&peer->stream, tool->loop, &ops, fd, tool->tls, &err) == STATUS_OK) return;
  complain(tool, err.text);
  free(peer);
}

static void input_ready(struct watch *watch, uint32_t events) {
  (void)events;
  char ignored[64];
  struct tool *tool = (struct tool *)((char *)watch - offsetof(struct tool, input));
  if (read(watch->fd, ignored, sizeof ignored) <= 0) finish(tool, 0);
}

static enum status serve(struct tool *tool, const char *certificate, const char *key, struct err *err) {
  struct address address;
  char text[64];
  if (certificate && tls_server_context(&tool->tls, certificate, key, err) != STATUS_OK) return err->status;
  if (address_resolve("127.0.0.1", 0, &address, err) != STATUS_OK) return err->status;
  tool->listener.accepted = accepted;
  if (listener_open(&tool->listener, tool->loop, &address, err) != STATUS_OK) return err->status;
  tool->input.ready = input_ready;
  if (loop_watch(tool->loop, &tool->input, STDIN_FILENO, EPOLLIN, err) != STATUS_OK) return err->status;
  address_text(&address, text, sizeof text);
  printf("%s\n", strrchr(text, ':') + 1);
  fflush(stdout);
  return STATUS_OK;
}

static enum status join(struct tool *tool, struct peer *peer, const char *url, const char *ca, struct err *err) {
  struct address address;
  peer->tool = tool;
  ws_init(&peer->ws, WS_CLIENT, MESSAGE_MAX);
  if (url_parse(url, &tool->url, err) != STATUS_OK) return err->status;
  if (ca && tls_client_context(&tool->tls, true, ca, err) != STATUS_OK) return err->status;
  if (address_resolve("127.0.0.1", tool->url.port, &address, err) != STATUS_OK) return err->status;
  return stream_connect(&peer->stream, tool->loop, &ops, &address, NULL, tool->tls, tool->url.host, err);
}

int main(int argc, char **argv) {
  bool server = argc > 1 && strcmp(argv[1], "server") == 0 && (argc == 2 || argc == 4);
  bool client = argc > 2 && strcmp(argv[1], "client") == 0 && argc <= 4;
  if (!server && !client) {
    fprintf(stderr, "usage: ws_tool server [certificate key] | client url [ca_file]\n");
    return 2;
  }
  struct tool tool = {.listener.watch.fd = -1};
  struct peer peer = {0};
  struct err err;
  enum status status = loop_create(&tool.loop, &err);
  if (status == STATUS_OK && server)
    status = serve(&tool, argc == 4 ? argv[2] : NULL, argc == 4 ? argv[3] : NULL, &err);
  if (status == STATUS_OK && client) status = join(&tool, &peer, argv[2], argc == 4 ? argv[3] : NULL, &err);
  if (status != STATUS_OK) {
    fprintf(stderr, "ws_tool: %s\n", err.text);
    return 1;
  }
  while (!tool.done)
    loop_turn(tool.loop, clock_now_ns() + NS_PER_SEC);
  if (server) listener_close(&tool.listener);
  loop_destroy(tool.loop);
  tls_context_free(tool.tls);
  return tool.exit_code;
}
