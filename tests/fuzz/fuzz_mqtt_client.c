// room: driver
/* The MQTT driver against a broker that sends what it likes. First byte: version, QoS, kept session, backlog; then
 * steps: bytes of the broker (cut where the step ends), the CONNACK and SUBACK that are awaited, publishes, ticks, a
 * new connection. The hooks hold what a driver promises: established once a connection, nothing after a failure, no
 * more ACKs than publishes. */
#include "base/clock.h"
#include "driver/driver.h"
#include "driver/plans.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 64, PAYLOAD_BYTES = 100, RUN_ID = 0x0badcafe };

struct rig {
  struct client *client;
  struct loop *loop;
  struct driver_run run;
  int fd;
  uint32_t published, acked;
  bool established, failed;
};

static struct rig rig; /* hooks have no context of their own */

static void require(bool condition) {
  if (!condition) abort();
}

static void on_established(struct client *client) {
  (void)client;
  require(!rig.failed && !rig.established);
  rig.established = true;
}

static void on_failed(struct client *client, int32_t code) {
  require(!rig.failed && code != 0);
  rig.failed = true;
  stream_close(&client->stream, true);
}

static void on_acked(struct client *client, uint32_t token, int32_t code) {
  (void)client, (void)token, (void)code;
  require(!rig.failed && rig.established);
  require(++rig.acked <= rig.published);
}

static void on_delivered(struct client *client, struct view content, bool overlap) {
  struct payload payload;
  (void)client, (void)overlap;
  require(!rig.failed && content.len > 0);
  payload_read(PAYLOAD_BINARY, content.data, content.len, &payload);
}

static void on_wake(struct client *client, uint64_t due_ns) {
  (void)client;
  require(!rig.failed && due_ns > 0);
}

static const struct client_hooks hooks = {
    .established = on_established, .failed = on_failed, .acked = on_acked, .delivered = on_delivered, .wake = on_wake};

static void stream_opened(struct stream *stream) {
  driver_mqtt.opened((struct client *)stream);
}

static size_t stream_received(struct stream *stream, uint8_t *data, size_t len) {
  return driver_mqtt.received((struct client *)stream, data, len);
}

static void stream_closed(struct stream *stream, enum stream_end end, int error) {
  (void)stream, (void)end, (void)error;
  rig.failed = true;
}

static const struct stream_ops ops = {.opened = stream_opened, .received = stream_received, .closed = stream_closed};

static void turn(void) {
  uint8_t bytes[16384];
  loop_turn(rig.loop, 0);
  while (recv(rig.fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    ;
}

static void put(const void *data, size_t len) {
  if (rig.failed || len == 0) return;
  if (send(rig.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) turn();
}

static void open_stream(void) {
  int pair[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
  rig.fd = pair[1];
  rig.established = rig.failed = false;
  require(stream_accept(&rig.client->stream, rig.loop, &ops, pair[0], NULL, NULL) == STATUS_OK);
  turn();
}

static void close_stream(void) {
  stream_close(&rig.client->stream, true);
  driver_mqtt.released(rig.client);
  close(rig.fd);
}

static void publish(uint8_t times) {
  for (uint8_t i = 0; i < times && rig.established && !rig.failed; i++) {
    struct publish what = {.to = PUBLISH_TO_CLIENT,
        .recipient = i,
        .payload = {.run_id = RUN_ID, .sequence = rig.published, .size = PAYLOAD_BYTES, .phase = PAYLOAD_MEASURE}};
    what.token = publish_token(&what.payload);
    if (driver_mqtt.publish(rig.client, &what) == PUBLISH_WRITTEN) rig.published++;
  }
  turn();
}

/* The way in: what a well-behaved broker says first. */
static void let_in(void) {
  bool is_5 = !rig.run.settings.mqtt.version;
  uint8_t qos = (uint8_t)rig.run.settings.mqtt.qos;
  const uint8_t suback_5[] = {0x90, 4, 0, 1, 0, qos}, suback[] = {0x90, 3, 0, 1, qos};
  const uint8_t connack[] = {0x20, is_5 ? 3 : 2, rig.run.settings.backlog, 0, 0};
  put(connack, is_5 ? 5 : 4);
  put(is_5 ? suback_5 : suback, is_5 ? sizeof suback_5 : sizeof suback);
}

static void step(uint8_t operation, const uint8_t *data, size_t len) {
  switch (operation & 7) {
  case 0:
    let_in();
    return;
  case 1:
    publish(len > 0 ? data[0] : 1);
    return;
  case 2:
    if (!rig.failed) driver_mqtt.tick(rig.client, clock_now_ns());
    turn();
    return;
  case 3:
    close_stream();
    driver_mqtt.reconnecting(rig.client);
    open_stream();
    return;
  default:
    put(data, len);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  rig = (struct rig){.run = {.driver = &driver_mqtt, .capabilities = driver_mqtt.capabilities}};
  struct driver_settings *settings = &rig.run.settings;
  *settings = (struct driver_settings){.target = "mqtt://127.0.0.1",
      .payload_bytes = PAYLOAD_BYTES,
      .run_id = RUN_ID,
      .clients = 2,
      .backlog = data[0] & 8,
      .mqtt = {.version = data[0] & 1 ? "3.1.1" : NULL, .qos = (data[0] >> 1 & 3) % 3, .keep_session = data[0] & 16}};
  require(url_parse("mqtt://127.0.0.1", &settings->url, NULL) == STATUS_OK);
  require(mqtt_make_plan(&rig.run, NULL) == STATUS_OK);
  rig.client = calloc(1, sizeof *rig.client + driver_mqtt.client_bytes);
  require(rig.client && loop_create(&rig.loop, NULL) == STATUS_OK);
  rig.client->hooks = &hooks;
  rig.client->run = &rig.run;
  open_stream();
  data++;
  size--;
  for (int i = 0; i < STEPS_MAX && size >= 2; i++) {
    size_t len = data[1] < size - 2 ? data[1] : size - 2;
    step(data[0], data + 2, len);
    data += 2 + len;
    size -= 2 + len;
  }
  if (rig.established && !rig.failed) driver_mqtt.closing(rig.client);
  settings->mqtt.keep_session = settings->backlog = false;
  close_stream();
  loop_destroy(rig.loop);
  free(rig.client);
  driver_mqtt.release(&rig.run);
  return 0;
}
