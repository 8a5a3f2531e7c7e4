/* Ground truth: a WebSocket proxy between muster and a JuggleIM server that injects known faults into deliveries of the
 * measure phase and says at its end what it injected, so that a test can compare it with what muster counted.
 *
 *   fault_proxy UPSTREAM_HOST:PORT [drop=N] [duplicate=N] [swap=N] [corrupt=N] [delay=N] [delay_ms=N]
 * Every N-th delivery (each kind with an offset of its own, so that no delivery gets two faults) is
 *   dropped    and acknowledged to the server in the client's place
 *   duplicated sent twice
 *   swapped    held until the next delivery of the same sender on this connection has passed
 *   corrupted  one byte of the content is changed
 *   delayed    by delay_ms
 * Prints "port N" when it listens, and one JSON object at SIGTERM. */
#include "base/clock.h"
#include "net/http.h"
#include "net/stream.h"
#include "net/ws.h"
#include "wire/juggle.h"
#include "wire/payload.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fault { DROP, DUPLICATE, SWAP, CORRUPT, DELAY, FAULTS };
static const char *const fault_name[FAULTS] = {"drop", "duplicate", "swap", "corrupt", "delay"};
enum { MESSAGE_MAX = 1 << 20, SWAP_WAIT_MS = 3000 };

struct message {
  struct timer timer;
  struct pair *pair;
  uint8_t opcode;
  uint32_t sender;
  size_t len;
  uint8_t data[];
};

struct side {
  struct stream stream;
  struct pair *pair;
  struct ws ws;
  bool upgraded, ended;
};

struct pair {
  struct proxy *proxy;
  struct side client, server;
  struct buf early; /* the client's upgrade request, until the server side is open */
  bool learned, obfuscated;
  struct juggle_key key;
  struct message *held;
};

struct proxy {
  struct loop *loop;
  struct listener listener;
  struct address upstream;
  uint64_t every[FAULTS], injected[FAULTS], delay_ms, deliveries;
};

static volatile sig_atomic_t stopping;

static void on_signal(int number) {
  (void)number;
  stopping = 1;
}

static void send_frame(struct side *side, uint8_t opcode, const uint8_t *data, size_t len, bool masked) {
  if (side->ended) return;
  static const uint8_t mask[4] = {0x5a, 0xc3, 0x11, 0x7e};
  uint8_t *at = stream_reserve(&side->stream, WS_HEADER_MAX + len);
  if (!at) abort();
  size_t head = ws_write_header(at, opcode, len, masked ? mask : NULL);
  if (len) memcpy(at + head, data, len);
  if (masked) ws_mask(at + head, len, mask, 0);
  stream_commit(&side->stream, head + len);
}

static void end_pair(struct pair *pair) {
  struct side *sides[] = {&pair->client, &pair->server};
  for (int i = 0; i < 2; i++) {
    if (sides[i]->ended) continue;
    sides[i]->ended = true;
    stream_flush(&sides[i]->stream);
    stream_close(&sides[i]->stream, false);
  }
}

static void ack_to_server(struct pair *pair, int32_t index) {
  struct juggle_publish_ack ack = {.index = index};
  size_t body = juggle_publish_ack_size(&ack);
  uint8_t frame[64];
  uint8_t *at = juggle_write_envelope_head(frame, JUGGLE_PUBLISH_ACK, 0, body, pair->obfuscated);
  uint8_t *end = juggle_write_publish_ack(at, &ack);
  if (pair->obfuscated) juggle_xor(at, body, &pair->key);
  send_frame(&pair->server, WS_BINARY, frame, (size_t)(end - frame), true);
}

static struct message *keep(struct pair *pair, const struct ws_event *event, uint32_t sender) {
  struct message *message = calloc(1, sizeof *message + event->len);
  if (!message) abort();
  message->pair = pair;
  message->opcode = event->opcode;
  message->sender = sender;
  message->len = event->len;
  memcpy(message->data, event->data, event->len);
  return message;
}

static void forward_kept(struct message *message) {
  send_frame(&message->pair->client, message->opcode, message->data, message->len, false);
  free(message);
}

static void on_delay_over(struct timer *timer, uint64_t now_ns) {
  (void)now_ns;
  forward_kept((struct message *)timer);
}

static void on_swap_over(struct timer *timer, uint64_t now_ns) {
  (void)now_ns;
  struct message *message = (struct message *)timer;
  message->pair->held = NULL; /* nothing followed: passes in order, not counted */
  forward_kept(message);
}

static enum fault choose(struct proxy *proxy) {
  uint64_t n = proxy->deliveries++;
  for (int f = 0; f < FAULTS; f++) {
    if (proxy->every[f] && n % proxy->every[f] == ((uint64_t)f * 3 + 5) % proxy->every[f]) return (enum fault)f;
  }
  return FAULTS;
}

/* Finds the payload of a measured delivery inside an envelope copied from event; NULL when it is anything else. */
static const uint8_t *find_payload(struct pair *pair, uint8_t *copy, size_t len, struct payload *payload,
    struct juggle_request *push, size_t *content_len) {
  struct juggle_envelope envelope;
  if (!juggle_read_envelope(view_of(copy, len), &envelope) || envelope.cmd != JUGGLE_PUBLISH) return NULL;
  struct view body = envelope.body;
  if (pair->obfuscated) {
    body = envelope.payload;
    juggle_xor(copy + (body.data - copy), body.len, &pair->key);
  }
  struct juggle_down_msg msg;
  if (!juggle_read_request(body, push) || !view_is(push->topic, "msg")) return NULL;
  if (!juggle_read_down_msg(push->data, &msg)) return NULL;
  if (payload_read(PAYLOAD_TEXT, msg.content.data, msg.content.len, payload) != PAYLOAD_OK) return NULL;
  *content_len = msg.content.len;
  return payload->phase == PAYLOAD_MEASURE ? msg.content.data : NULL;
}

static void from_server(struct pair *pair, struct ws_event *event) {
  struct proxy *proxy = pair->proxy;
  static uint8_t copy[MESSAGE_MAX];
  memcpy(copy, event->data, event->len);
  struct payload payload;
  struct juggle_request push;
  size_t content_len = 0;
  const uint8_t *content = find_payload(pair, copy, event->len, &payload, &push, &content_len);
  if (!content) {
    send_frame(&pair->client, event->opcode, event->data, event->len, false);
    return;
  }
  enum fault fault = choose(proxy);
  if (fault == SWAP && pair->held) fault = FAULTS;
  if (fault < FAULTS && fault != SWAP) proxy->injected[fault]++;
  switch (fault) {
  case DROP:
    ack_to_server(pair, push.index);
    return;
  case CORRUPT:
    /* XOR with one bit is the same under obfuscation; behind the magic, so that it is still known as muster's */
    event->data[(content - copy) + (ptrdiff_t)content_len / 2] ^= 1;
    send_frame(&pair->client, event->opcode, event->data, event->len, false);
    return;
  case SWAP:
    pair->held = keep(pair, event, payload.sender);
    pair->held->timer.fire = on_swap_over;
    timer_arm(loop_wheel(proxy->loop), &pair->held->timer, clock_now_ns() + SWAP_WAIT_MS * NS_PER_MS);
    return;
  case DELAY: {
    struct message *message = keep(pair, event, payload.sender);
    message->timer.fire = on_delay_over;
    timer_arm(loop_wheel(proxy->loop), &message->timer, clock_now_ns() + proxy->delay_ms * NS_PER_MS);
    return;
  }
  case DUPLICATE:
    send_frame(&pair->client, event->opcode, event->data, event->len, false);
    break;
  case FAULTS:
    break;
  }
  send_frame(&pair->client, event->opcode, event->data, event->len, false);
  if (pair->held && pair->held->sender == payload.sender) {
    timer_cancel(loop_wheel(proxy->loop), &pair->held->timer);
    forward_kept(pair->held);
    pair->held = NULL;
    proxy->injected[SWAP]++;
  }
}

static void from_client(struct pair *pair, const struct ws_event *event) {
  if (!pair->learned) {
    struct juggle_envelope envelope;
    if (juggle_read_envelope(view_of(event->data, event->len), &envelope)) {
      pair->obfuscated = envelope.payload.len > 0;
      juggle_key_learn(envelope.payload, &pair->key);
    }
    pair->learned = true;
  }
  send_frame(&pair->server, event->opcode, event->data, event->len, true);
}

static size_t on_frames(struct side *side, uint8_t *data, size_t len) {
  struct pair *pair = side->pair;
  bool is_client = side == &pair->client;
  size_t used = 0;
  while (!side->ended) {
    struct ws_event event;
    size_t step = ws_read(&side->ws, data + used, len - used, &event);
    used += step;
    if (event.kind == WS_EVENT_NONE) break;
    if (event.kind == WS_EVENT_ERROR) {
      fprintf(stderr, "fault_proxy: %s\n", event.text);
      end_pair(pair);
      return 0;
    }
    if (event.kind == WS_EVENT_MESSAGE && is_client) {
      from_client(pair, &event);
    } else if (event.kind == WS_EVENT_MESSAGE) {
      from_server(pair, &event);
    } else if (event.kind == WS_EVENT_CLOSE) {
      end_pair(pair);
      return 0;
    } else {
      send_frame(is_client ? &pair->server : &pair->client, event.kind == WS_EVENT_PING ? WS_PING : WS_PONG, event.data,
          event.len, is_client);
    }
  }
  return used;
}

static size_t on_received(struct stream *stream, uint8_t *data, size_t len) {
  struct side *side = (struct side *)stream;
  struct pair *pair = side->pair;
  if (side->upgraded) return on_frames(side, data, len);
  struct http_head head;
  size_t used = 0;
  struct err err;
  bool is_client = side == &pair->client;
  enum http_result result =
      is_client ? http_read_request(data, len, &head, &used, &err) : http_read_response(data, len, &head, &used, &err);
  if (result == HTTP_PARTIAL) return 0;
  if (result == HTTP_BAD) {
    end_pair(pair);
    return 0;
  }
  side->upgraded = true;
  if (!is_client) {
    stream_write(&pair->client.stream, data, used);
  } else if (stream_is_open(&pair->server.stream)) {
    stream_write(&pair->server.stream, data, used);
  } else {
    buf_append(&pair->early, data, used);
  }
  return used + on_frames(side, data + used, len - used);
}

static void on_opened(struct stream *stream) {
  struct side *side = (struct side *)stream;
  struct pair *pair = side->pair;
  if (side != &pair->server || pair->early.len == 0) return;
  stream_write(stream, pair->early.data, pair->early.len);
  buf_free(&pair->early);
}

static void on_closed(struct stream *stream, enum stream_end end, int error) {
  (void)end;
  (void)error;
  struct side *side = (struct side *)stream;
  side->ended = true;
  end_pair(side->pair);
}

static const struct stream_ops side_ops = {.opened = on_opened, .received = on_received, .closed = on_closed};

static void on_accepted(struct listener *listener, int fd, const struct address *peer) {
  (void)peer;
  struct proxy *proxy = (struct proxy *)((char *)listener - offsetof(struct proxy, listener));
  struct pair *pair = calloc(1, sizeof *pair); /* lives until the process ends: timers may point to it */
  if (!pair) abort();
  pair->proxy = proxy;
  pair->client.pair = pair->server.pair = pair;
  ws_init(&pair->client.ws, WS_SERVER, MESSAGE_MAX);
  ws_init(&pair->server.ws, WS_CLIENT, MESSAGE_MAX);
  struct err err;
  if (stream_connect(&pair->server.stream, proxy->loop, &side_ops, &proxy->upstream, NULL, NULL, NULL, &err) ||
      stream_accept(&pair->client.stream, proxy->loop, &side_ops, fd, NULL, &err)) {
    fprintf(stderr, "fault_proxy: %s\n", err.text);
    exit(1);
  }
}

static void read_arguments(struct proxy *proxy, int argc, char **argv) {
  proxy->delay_ms = 500;
  for (int i = 2; i < argc; i++) {
    const char *value = strchr(argv[i], '=');
    if (!value) continue;
    uint64_t number = strtoull(value + 1, NULL, 10);
    size_t name_len = (size_t)(value - argv[i]);
    if (strncmp(argv[i], "delay_ms", name_len) == 0 && name_len == strlen("delay_ms")) proxy->delay_ms = number;
    for (int f = 0; f < FAULTS; f++) {
      if (strlen(fault_name[f]) == name_len && strncmp(argv[i], fault_name[f], name_len) == 0) proxy->every[f] = number;
    }
  }
}

int main(int argc, char **argv) {
  static struct proxy proxy;
  struct err err;
  struct url url;
  if (argc < 2 || url_parse(argv[1], &url, &err) || address_resolve(url.host, url.port, &proxy.upstream, &err) ||
      loop_create(&proxy.loop, &err)) {
    fprintf(
        stderr, "usage: fault_proxy HOST:PORT [drop=N] [duplicate=N] [swap=N] [corrupt=N] [delay=N] [delay_ms=N]\n");
    return 2;
  }
  read_arguments(&proxy, argc, argv);
  signal(SIGTERM, on_signal);
  signal(SIGINT, on_signal);

  struct address address;
  proxy.listener.accepted = on_accepted;
  if (address_resolve("127.0.0.1", 0, &address, &err) || listener_open(&proxy.listener, proxy.loop, &address, &err)) {
    fprintf(stderr, "fault_proxy: %s\n", err.text);
    return 1;
  }
  char text[64];
  address_text(&address, text, sizeof text);
  printf("port %s\n", strrchr(text, ':') + 1);
  fflush(stdout);
  while (!stopping)
    loop_turn(proxy.loop, clock_now_ns() + 50 * NS_PER_MS);

  printf("{\"deliveries\":%llu", (unsigned long long)proxy.deliveries);
  for (int f = 0; f < FAULTS; f++)
    printf(",\"%s\":%llu", fault_name[f], (unsigned long long)proxy.injected[f]);
  printf("}\n");
  return 0;
}
