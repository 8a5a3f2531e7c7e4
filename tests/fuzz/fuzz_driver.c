// room: driver
/* Every driver against a server that sends what it likes: the input chooses the driver, the upgrade is answered
 * properly, and the rest is a list of steps of that server. The hooks hold what a driver promises to the load room:
 * established once, nothing after a failure, no ACK of a publish that is not under way. */
#include "base/clock.h"
#include "driver/juggle_internal.h"
#include "net/http.h"
#include "net/ws.h"
#include "wire/juggle.h"
#include "wire/shootout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 64, FRAME_MAX = 70000, PAYLOAD_BYTES = 100, RUN_ID = 0x0badcafe };

struct peer {
  struct client *client;
  const struct driver *driver;
  struct loop *loop;
  int fd;
  struct juggle_key key;
  uint32_t published, acked;
  bool established, failed, deaf;
};

static struct peer peer; /* hooks have no context of their own */

static void require(bool condition) {
  if (!condition) abort();
}

/* ---- The load room ---- */

static void on_established(struct client *client) {
  (void)client;
  require(!peer.failed && !peer.established);
  peer.established = true;
}

static void on_failed(struct client *client, int32_t code) {
  require(!peer.failed && code != 0);
  peer.failed = true;
  stream_close(&client->stream, true);
}

static void on_acked(struct client *client, uint32_t token, int32_t code) {
  (void)client, (void)code, (void)token;
  require(!peer.failed && peer.established);
  peer.acked++;
}

static void on_delivered(struct client *client, struct view content, bool overlap) {
  (void)overlap;
  require(!peer.failed);
  struct payload payload;
  payload_read(client->run->driver->payload_form, content.data, content.len, &payload);
}

static void on_wake(struct client *client, uint64_t due_ns) {
  (void)client;
  require(!peer.failed && due_ns > 0);
}

static const struct client_hooks hooks = {
    .established = on_established, .failed = on_failed, .acked = on_acked, .delivered = on_delivered, .wake = on_wake};

static void stream_opened(struct stream *stream) {
  peer.driver->opened((struct client *)stream);
}

static size_t stream_received(struct stream *stream, uint8_t *data, size_t len) {
  return peer.driver->received((struct client *)stream, data, len);
}

static void stream_closed(struct stream *stream, enum stream_end end, int error) {
  (void)stream, (void)end, (void)error;
  peer.failed = true;
}

static const struct stream_ops ops = {.opened = stream_opened, .received = stream_received, .closed = stream_closed};

/* ---- The server ---- */

static void turn(void) {
  uint8_t bytes[16384];
  loop_turn(peer.loop, 0);
  while (!peer.deaf && recv(peer.fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    ;
}

static void put(const uint8_t *data, size_t len) {
  for (int i = 0; i < 16 && len && !peer.failed; i++) {
    ssize_t sent = send(peer.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) data += sent, len -= (size_t)sent;
    turn();
  }
}

static void put_frame(uint8_t first, const uint8_t *message, size_t len) {
  uint8_t frame[WS_HEADER_MAX + FRAME_MAX];
  if (len > FRAME_MAX) return;
  size_t head = ws_write_header(frame, WS_BINARY, len, NULL);
  frame[0] = first;
  if (len) memcpy(frame + head, message, len);
  put(frame, head + len);
}

static void put_envelope(int32_t cmd, const uint8_t *body, size_t len) {
  uint8_t message[FRAME_MAX];
  bool obfuscated = peer.client->run->settings.obfuscate;
  size_t head = juggle_envelope_head_size(cmd, 1, len, obfuscated);
  if (head + len > sizeof message) return;
  uint8_t *at = juggle_write_envelope_head(message, cmd, 1, len, obfuscated);
  if (len) memcpy(at, body, len);
  if (obfuscated) juggle_xor(at, len, &peer.key);
  put_frame(0x80 | WS_BINARY, message, head + len);
}

static void answer_upgrade(void) {
  uint8_t request[4096];
  char answer[512];
  struct http_head head;
  size_t used, len = 0;
  loop_turn(peer.loop, 0);
  ssize_t got = recv(peer.fd, request, sizeof request, MSG_DONTWAIT);
  require(got > 0 && http_read_request(request, (size_t)got, &head, &used, NULL) == HTTP_COMPLETE);
  require(ws_answer_request(&head, answer, sizeof answer, &len, NULL) == STATUS_OK);
  require(send(peer.fd, answer, len, MSG_NOSIGNAL) == (ssize_t)len);
}

/* The client's Connect shows its key. */
static void learn_key(void) {
  uint8_t bytes[4096];
  struct ws ws;
  struct ws_event event;
  struct juggle_envelope envelope;
  loop_turn(peer.loop, 0);
  ssize_t got = recv(peer.fd, bytes, sizeof bytes, MSG_DONTWAIT);
  ws_init(&ws, WS_SERVER, sizeof bytes);
  require(got > 0);
  ws_read(&ws, bytes, (size_t)got, &event);
  require(event.kind == WS_EVENT_MESSAGE && juggle_read_envelope(view_of(event.data, event.len), &envelope));
  juggle_key_learn(envelope.payload, &peer.key);
}

static void publish(void) {
  if (peer.failed || !peer.established) return;
  struct publish what = {
      .to = peer.driver->capabilities & CAPABILITY_PRIVATE ? PUBLISH_TO_CLIENT : PUBLISH_TO_ALL,
      .recipient = 1,
      .payload = {.run_id = RUN_ID, .sequence = peer.published, .size = PAYLOAD_BYTES, .phase = PAYLOAD_MEASURE},
  };
  what.token = publish_token(&what.payload);
  if (peer.driver->publish(peer.client, &what) == PUBLISH_WRITTEN) peer.published++;
  turn();
}

static void step(uint8_t operation, const uint8_t *data, size_t len) {
  switch (operation & 7) {
  case 0:
    put(data, len);
    return;
  case 1:
    put_frame(0x80 | WS_BINARY, data, len);
    return;
  case 2:
    put_frame(0x80 | WS_TEXT, data, len);
    return;
  case 3:
    if (len) put_frame(data[0], data + 1, len - 1);
    return;
  case 4:
    if (len) put_envelope(data[0] & 15, data + 1, len - 1);
    return;
  case 5:
    publish();
    return;
  case 6:
    peer.deaf = !peer.deaf;
    turn();
    return;
  default:
    if (!peer.failed) peer.driver->tick(peer.client, clock_now_ns() + (uint64_t)(operation >> 3) * NS_PER_SEC);
    turn();
  }
}

static void take_steps(const uint8_t *data, size_t size) {
  for (int i = 0; i < STEPS_MAX && size >= 2 && !peer.failed; i++) {
    size_t len = data[1] < size - 2 ? data[1] : size - 2;
    /* A long step takes all that is left. */
    if (data[0] & 0x80) len = size - 2;
    step(data[0] & 0x7f, data + 2, len);
    data += 2 + len;
    size -= 2 + len;
  }
}

/* ---- One run ---- */

static void set_up(struct driver_run *run, struct juggle_population *population, uint8_t choice) {
  static const char *tokens[] = {"CghiZW5jaGFwcBoQxUUTN0KvwqD692ba434Daw==", "x"};
  *population = (struct juggle_population){.tokens = tokens, .group_prefix = "group-", .room_id = "room"};
  memcpy(population->prefix, "muster-", 8);
  population->prefix_len = 7;
  /* Those whose prepare asks no server. */
  static const struct driver *const drivers[] = {&driver_juggle, &driver_shootout_json, &driver_shootout_binary,
      &driver_shootout_phoenix, &driver_shootout_actioncable, &driver_socketio, &driver_stomp, NULL};
  const struct driver *const *driver = drivers;
  for (uint8_t i = choice & 7; i && driver[1]; i--)
    driver++;
  *run = (struct driver_run){.driver = *driver, .capabilities = (*driver)->capabilities};
  run->settings = (struct driver_settings){.app_key = "benchapp",
      .target = *driver == &driver_stomp ? "stomp+ws://127.0.0.1:9003" : "ws://127.0.0.1:9003",
      .payload_bytes = PAYLOAD_BYTES,
      .run_id = RUN_ID,
      .clients = 2,
      .store = true,
      .obfuscate = choice & 8,
      .backlog = choice & 16,
      .room_members = choice & 32 ? 2 : 0};
  require(url_parse(run->settings.target, &run->settings.url, NULL) == STATUS_OK);
  memcpy(run->server_name, "127.0.0.1", 10);
  peer.driver = *driver;
  if (*driver == &driver_juggle) {
    run->population = population;
  } else {
    require((*driver)->prepare(run, NULL) == STATUS_OK);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  struct driver_run run;
  struct juggle_population population;
  int pair[2];
  peer = (struct peer){0};
  set_up(&run, &population, data[0]);
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  peer.fd = pair[1];
  peer.client = calloc(1, sizeof *peer.client + peer.driver->client_bytes);
  require(peer.client && loop_create(&peer.loop, NULL) == STATUS_OK);
  peer.client->hooks = &hooks;
  peer.client->run = &run;
  require(stream_accept(&peer.client->stream, peer.loop, &ops, pair[0], NULL, NULL) == STATUS_OK);
  answer_upgrade();
  if (run.settings.obfuscate && peer.driver == &driver_juggle) learn_key();
  take_steps(data + 1, size - 1);
  require(peer.acked <= peer.published || peer.driver != &driver_juggle);
  if (!peer.failed && peer.established) peer.driver->closing(peer.client);
  stream_close(&peer.client->stream, true);
  peer.driver->released(peer.client);
  loop_destroy(peer.loop);
  free(peer.client);
  close(peer.fd);
  if (peer.driver != &driver_juggle) peer.driver->release(&run);
  return 0;
}
