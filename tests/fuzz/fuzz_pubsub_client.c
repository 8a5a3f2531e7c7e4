// room: driver
/* The NATS, Redis and STOMP drivers against a server that sends what it likes: the first byte chooses driver and
 * settings, and the rest is what the server says, in pieces, with publishes and ticks of the client between them. The
 * hooks hold what a driver promises: established once, nothing after a failure, no more ACKs than publishes. */
#include "driver/plans.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAYLOAD_BYTES = 100, RUN_ID = 0x0badcafe, STEPS_MAX = 64 };

struct peer {
  struct client *client;
  const struct driver *driver;
  struct loop *loop;
  int fd;
  uint32_t published, acked;
  bool established, failed;
};

static struct peer peer; /* hooks have no context of their own */

static void require(bool condition) {
  if (!condition) abort();
}

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
  (void)client, (void)token, (void)code;
  require(!peer.failed && peer.established);
  peer.acked++;
}

static void on_delivered(struct client *client, struct view content, bool overlap) {
  struct payload payload;
  require(!peer.failed && !overlap);
  payload_read(client->run->driver->payload_form, content.data, content.len, &payload);
}

static void on_wake(struct client *client, uint64_t due_ns) {
  (void)client, (void)due_ns;
  abort();
}

static const struct client_hooks hooks = {
    .established = on_established, .failed = on_failed, .acked = on_acked, .delivered = on_delivered, .wake = on_wake};

static void stream_opened(struct stream *stream) {
  peer.driver->opened((struct client *)stream);
}

static size_t stream_received(struct stream *stream, uint8_t *data, size_t len) {
  size_t used = peer.driver->received((struct client *)stream, data, len);
  require(used <= len && (!peer.failed || used == 0));
  return used;
}

static void stream_closed(struct stream *stream, enum stream_end end, int error) {
  (void)stream, (void)end, (void)error;
  peer.failed = true;
}

static const struct stream_ops ops = {.opened = stream_opened, .received = stream_received, .closed = stream_closed};

static void turn(void) {
  uint8_t sent[65536];
  for (int i = 0; i < 2; i++)
    loop_turn(peer.loop, 0);
  while (read(peer.fd, sent, sizeof sent) > 0)
    continue;
}

static void publish(uint8_t choice) {
  if (peer.failed) return;
  struct publish message = {.to = (enum publish_to)(choice % 6),
      .recipient = 1,
      .payload = {.run_id = RUN_ID, .sequence = peer.published, .size = PAYLOAD_BYTES, .phase = PAYLOAD_MEASURE}};
  message.token = publish_token(&message.payload);
  peer.published += peer.driver->publish(peer.client, &message) == PUBLISH_WRITTEN;
}

/* A step is a length, an action of the client, and that many bytes of the server; a long one takes all that is left. */
static void take_steps(const uint8_t *data, size_t size) {
  for (int i = 0; i < STEPS_MAX && size >= 2 && !peer.failed; i++) {
    size_t len = data[0] < size - 2 && data[0] < 0xf0 ? data[0] : size - 2;
    if (data[1] & 1) publish(data[1] >> 1);
    if ((data[1] & 0x81) == 0x80) peer.driver->tick(peer.client, 1);
    if (len > 0 && !peer.failed) require(write(peer.fd, data + 2, len) > 0);
    turn();
    data += 2 + len;
    size -= 2 + len;
  }
}

struct variant {
  const char *target;
  const struct driver *driver;
  enum status (*make_plan)(struct driver_run *run, struct err *err);
  bool only_sends; /* client 0 is no recipient */
  bool queues;
};

static const struct variant variants[] = {
    {"nats://127.0.0.1:4222", &driver_nats, nats_make_plan, false, false},
    {"nats://127.0.0.1:4222/?ack=flush&headers=on", &driver_nats, nats_make_plan, false, false},
    {"nats://127.0.0.1:4222/?ack=jetstream", &driver_nats, nats_make_plan, false, false},
    {"redis://127.0.0.1:6379", &driver_redis, redis_make_plan, false, false},
    {"redis://127.0.0.1:6379/?resp=2", &driver_redis, redis_make_plan, true, false},
    {"stomp://127.0.0.1:61613", &driver_stomp, stomp_make_plan, false, false},
    {"stomp://127.0.0.1:61613/?receipts=off", &driver_stomp, stomp_make_plan, false, false},
    {"nats://127.0.0.1:4222/?ack=flush", &driver_nats, nats_make_plan, true, true},
    {"redis://127.0.0.1:6379/?maxlen=9&claim_ms=1", &driver_redis, redis_make_plan, true, true},
    {"redis://127.0.0.1:6379/?resp=2", &driver_redis, redis_make_plan, true, true},
    {"stomp://127.0.0.1:61613", &driver_stomp, stomp_make_plan, true, true},
    {"nats://127.0.0.1:4222/?ack=jetstream", &driver_nats, nats_make_plan, true, true},
    {"nats://127.0.0.1:4222/?ack=jetstream&consume=pull&batch=2", &driver_nats, nats_make_plan, true, true},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static void set_up(struct driver_run *run, uint8_t choice) {
  const struct variant *variant = &variants[(choice & 0x0f) % VARIANTS];
  *run = (struct driver_run){.settings = {.target = variant->target, .payload_bytes = PAYLOAD_BYTES, .run_id = RUN_ID}};
  run->settings.clients = 2;
  run->settings.pure_senders = variant->only_sends;
  run->settings.queues = variant->queues ? 2 : 0;
  run->settings.groups = choice & 0x20 ? 3 : 0;
  run->settings.shared_groups = choice & 0x20 && choice & 0x40;
  run->settings.room_members = choice & 0x80 ? 2 : 0;
  require(url_parse(variant->target, &run->settings.url, NULL) == STATUS_OK);
  run->driver = peer.driver = variant->driver;
  require(variant->make_plan(run, NULL) == STATUS_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  struct driver_run run;
  int pair[2];
  peer = (struct peer){0};
  set_up(&run, data[0]);
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  fcntl(pair[1], F_SETFL, O_NONBLOCK);
  peer.fd = pair[1];
  peer.client = calloc(1, sizeof *peer.client + peer.driver->client_bytes);
  require(peer.client && loop_create(&peer.loop, NULL) == STATUS_OK);
  peer.client->hooks = &hooks;
  peer.client->run = &run;
  peer.client->index = data[0] >> 4 & 1;
  require(stream_accept(&peer.client->stream, peer.loop, &ops, pair[0], NULL, NULL) == STATUS_OK);
  take_steps(data + 1, size - 1);
  if (peer.driver == &driver_redis) require(peer.acked <= peer.published);
  if (!peer.failed && peer.established) peer.driver->closing(peer.client);
  stream_close(&peer.client->stream, true);
  peer.driver->released(peer.client);
  loop_destroy(peer.loop);
  free(peer.client);
  close(peer.fd);
  peer.driver->release(&run);
  return 0;
}
