/* The MQTT driver against a scripted peer: a socket pair, with the driver's stream on one end and packets that the test
 * writes and reads on the other. */
#include "driver/driver.h"
#include "driver/plans.h"
#include "net/http.h"
#include "net/ws.h"
#include "wire/mqtt.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define RUN_ID UINT64_C(0x1234567890abcdef)
#define INDEX 7
#define OWN_TOPIC "muster/1234567890abcdef/c/7"
#define GROUP_TOPIC "muster/1234567890abcdef/g/1"
#define SIZE 64

struct fixture {
  struct loop *loop;
  struct client *client;
  struct driver_run run;
  int peer;
  uint8_t in[65536]; /* what the client sent and the test has not read */
  size_t in_len;
  uint8_t taken[4096]; /* the packet that was taken last */
  struct mqtt_packet packet;
  enum mqtt_version version;
  /* What the hooks were told. */
  int established, failed, acked, delivered, overlaps, wakes;
  int32_t failed_code, acked_code;
  uint32_t acked_token;
  uint64_t wake_ns;
  struct payload payload; /* of the last delivery */
};

static enum visit next_visit;   /* of the fixture that starts next */
static struct fixture *fixture; /* of the test that runs: hooks have no context of their own */

static void on_established(struct client *client) {
  (void)client;
  fixture->established++;
}

static void on_failed(struct client *client, int32_t code) {
  fixture->failed++;
  fixture->failed_code = code;
  stream_close(&client->stream, false);
}

static void on_acked(struct client *client, uint32_t token, int32_t code) {
  (void)client;
  fixture->acked++;
  fixture->acked_token = token;
  fixture->acked_code = code;
}

static void on_delivered(struct client *client, struct view content, bool overlap) {
  (void)client;
  fixture->delivered++;
  fixture->overlaps += overlap;
  assert_int_equal(payload_read(PAYLOAD_BINARY, content.data, content.len, &fixture->payload), PAYLOAD_OK);
}

static void on_wake(struct client *client, uint64_t due_ns) {
  (void)client;
  fixture->wakes++;
  fixture->wake_ns = due_ns;
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
}

static const struct stream_ops ops = {.opened = stream_opened, .received = stream_received, .closed = stream_closed};

static enum status prepare(
    struct driver_run *run, const char *url, const struct driver_settings *settings, struct err *err) {
  *run = (struct driver_run){.driver = &driver_mqtt, .capabilities = driver_mqtt.capabilities, .settings = *settings};
  run->settings.target = url;
  run->settings.run_id = RUN_ID;
  run->settings.payload_bytes = SIZE;
  assert_int_equal(url_parse(url, &run->settings.url, err), STATUS_OK);
  enum status status = mqtt_make_plan(run, err);
  if (status != STATUS_OK) driver_mqtt.release(run);
  return status;
}

static void connect_peer(struct fixture *f) {
  int pair[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  fcntl(pair[0], F_SETFL, O_NONBLOCK);
  fcntl(pair[1], F_SETFL, O_NONBLOCK);
  f->peer = pair[1];
  f->in_len = 0;
  assert_int_equal(stream_accept(&f->client->stream, f->loop, &ops, pair[0], NULL, NULL), STATUS_OK);
}

static struct fixture *start(const char *url, const struct driver_settings *settings) {
  struct fixture *f = calloc(1, sizeof *f);
  struct err err = {0};
  assert_non_null(f);
  fixture = f;
  if (prepare(&f->run, url, settings, &err) != STATUS_OK) fail_msg("%s", err.text);
  const char *version = settings->mqtt.version;
  f->version = version && strcmp(version, "3.1.1") == 0 ? MQTT_3_1_1 : MQTT_5;
  f->client = calloc(1, sizeof(struct client) + driver_mqtt.client_bytes);
  assert_non_null(f->client);
  f->client->hooks = &hooks;
  f->client->run = &f->run;
  f->client->index = INDEX;
  f->client->visit = (uint8_t)next_visit;
  assert_int_equal(loop_create(&f->loop, NULL), STATUS_OK);
  connect_peer(f);
  return f;
}

static void stop(struct fixture *f) {
  f->run.settings.mqtt.keep_session = f->run.settings.backlog = false;
  stream_close(&f->client->stream, false);
  driver_mqtt.released(f->client);
  driver_mqtt.release(&f->run);
  loop_destroy(f->loop);
  close(f->peer);
  free(f->client);
  free(f);
}

/* --- the peer --- */

static void peer_read(struct fixture *f) {
  for (int i = 0; i < 3; i++)
    loop_turn(f->loop, 0);
  ssize_t got;
  while ((got = read(f->peer, f->in + f->in_len, sizeof f->in - f->in_len)) > 0)
    f->in_len += (size_t)got;
}

static void peer_write(struct fixture *f, const void *data, size_t len) {
  assert_int_equal(write(f->peer, data, len), len);
  for (int i = 0; i < 3; i++)
    loop_turn(f->loop, 0);
}

/* The client's next packet, which must be of that type. */
static const struct mqtt_packet *peer_take(struct fixture *f, enum mqtt_type type) {
  peer_read(f);
  enum mqtt_result result = mqtt_read_packet(f->in, f->in_len, sizeof f->taken, &f->packet);
  if (result != MQTT_OK) fail_msg("no packet of type %d came", type);
  assert_int_equal(f->packet.type, type);
  memcpy(f->taken, f->in, f->packet.size);
  memmove(f->in, f->in + f->packet.size, f->in_len - f->packet.size);
  f->in_len -= f->packet.size;
  assert_int_equal(mqtt_read_packet(f->taken, sizeof f->taken, sizeof f->taken, &f->packet), MQTT_OK);
  return &f->packet;
}

static void peer_is_silent(struct fixture *f) {
  peer_read(f);
  assert_int_equal(f->in_len, 0);
}

static void peer_connack(struct fixture *f, bool present, const struct mqtt_property *property, size_t count) {
  uint8_t encoded[64], out[96];
  mqtt_write_properties(encoded, property, count);
  struct mqtt_connack connack = {
      .session_present = present, .properties = view_of(encoded, mqtt_properties_size(property, count))};
  peer_write(f, out, (size_t)(mqtt_write_connack(out, f->version, &connack) - out));
}

/* Grants the one topic that the client asks for. */
static void peer_grant(struct fixture *f, const char *topic, uint8_t options, uint8_t code) {
  struct mqtt_subscribe subscribe;
  struct mqtt_filter filter;
  assert_true(mqtt_read_subscribe(f->version, peer_take(f, MQTT_SUBSCRIBE), &subscribe));
  struct view filters = subscribe.filters;
  assert_true(mqtt_filter_next(MQTT_SUBSCRIBE, &filters, &filter));
  assert_true(view_is(filter.topic, topic));
  assert_int_equal(filter.options, options);
  assert_int_equal(filters.len, 0);
  struct mqtt_suback suback = {.id = subscribe.id, .codes = view_of(&code, 1)};
  uint8_t out[16];
  peer_write(f, out, (size_t)(mqtt_write_suback(out, f->version, MQTT_SUBACK, &suback) - out));
}

static void peer_ack(struct fixture *f, enum mqtt_type type, uint16_t id, uint8_t code) {
  uint8_t out[8];
  struct mqtt_ack ack = {.id = id, .code = code};
  peer_write(f, out, (size_t)(mqtt_write_ack(out, f->version, type, &ack) - out));
}

static void peer_takes_ack(struct fixture *f, enum mqtt_type type, uint16_t id, uint8_t code) {
  struct mqtt_ack ack;
  assert_true(mqtt_read_ack(f->version, peer_take(f, type), &ack));
  assert_int_equal(ack.id, id);
  assert_int_equal(ack.code, code);
}

static struct payload payload_of(uint32_t sequence) {
  return (struct payload){
      .run_id = RUN_ID, .sender = INDEX, .sequence = sequence, .size = SIZE, .phase = PAYLOAD_MEASURE};
}

static size_t write_delivery(const struct fixture *f, uint8_t *out, struct mqtt_publish publish, uint32_t sequence) {
  struct payload payload = payload_of(sequence);
  publish.topic = view_str(OWN_TOPIC);
  publish.payload = (struct view){NULL, SIZE};
  payload_write(PAYLOAD_BINARY, mqtt_write_publish(out, f->version, &publish), &payload);
  return mqtt_publish_size(f->version, &publish);
}

static void peer_delivers(struct fixture *f, struct mqtt_publish publish, uint32_t sequence) {
  uint8_t out[256];
  peer_write(f, out, write_delivery(f, out, publish, sequence));
}

static enum publish_result publish(struct fixture *f, enum publish_to to, uint32_t recipient, uint32_t sequence) {
  struct publish publish = {.to = to, .recipient = recipient, .payload = payload_of(sequence)};
  publish.token = publish_token(&publish.payload);
  return driver_mqtt.publish(f->client, &publish);
}

/* The client's publish, which must be to that topic; returns its identifier. */
static uint16_t peer_takes_publish(struct fixture *f, const char *topic, uint8_t qos, uint32_t sequence) {
  struct mqtt_publish message;
  struct payload payload;
  assert_true(mqtt_read_publish(f->version, peer_take(f, MQTT_PUBLISH), &message));
  assert_true(view_is(message.topic, topic));
  assert_int_equal(message.qos, qos);
  assert_int_equal(payload_read(PAYLOAD_BINARY, message.payload.data, message.payload.len, &payload), PAYLOAD_OK);
  assert_int_equal(payload.sequence, sequence);
  return message.id;
}

static struct fixture *established(const struct driver_settings *settings) {
  struct fixture *f = start("mqtt://127.0.0.1", settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, NULL, 0);
  uint8_t qos = (uint8_t)settings->mqtt.qos;
  peer_grant(f, OWN_TOPIC, qos, qos);
  assert_int_equal(f->established, 1);
  return f;
}

static const struct driver_settings qos_0 = {.mqtt = {.qos = 0}}, qos_1 = {.mqtt = {.qos = 1}},
                                    qos_2 = {.mqtt = {.qos = 2}}, old = {.mqtt = {.qos = 1, .version = "3.1.1"}};

/* --- tests --- */

static void test_the_connect(void **state) {
  (void)state;
  struct driver_settings settings = {.user = "alice",
      .password = "secret",
      .keep_alive_ns = UINT64_C(20000000000),
      .mqtt = {.qos = 1, .keep_session = true, .receive_maximum = 30}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  struct mqtt_connect connect;
  assert_true(mqtt_read_connect(peer_take(f, MQTT_CONNECT), &connect));
  assert_int_equal(connect.version, MQTT_5);
  assert_false(connect.clean);
  assert_false(connect.has_will);
  assert_int_equal(connect.keep_alive_s, 30); /* a PINGREQ every 20 s is well within it */
  assert_true(view_is(connect.client_id, "567890abcdefc7"));
  assert_true(view_is(connect.user, "alice") && view_is(connect.password, "secret"));
  assert_int_equal(mqtt_property_number(connect.properties, MQTT_SESSION_EXPIRY, 0), 3600);
  assert_int_equal(mqtt_property_number(connect.properties, MQTT_RECEIVE_MAXIMUM_PROPERTY, 0), 30);
  stop(f);

  f = start("mqtt://127.0.0.1", &old);
  assert_true(mqtt_read_connect(peer_take(f, MQTT_CONNECT), &connect));
  assert_int_equal(connect.version, MQTT_3_1_1);
  assert_true(connect.clean);
  assert_false(connect.has_user || connect.has_password);
  assert_int_equal(connect.keep_alive_s, 60);
  stop(f);
}

static void test_what_a_run_can_do(void **state) {
  (void)state;
  struct driver_run run;
  struct err err = {0};
  assert_int_equal(prepare(&run, "mqtt://127.0.0.1", &qos_0, &err), STATUS_OK);
  assert_int_equal(run.capabilities & (CAPABILITY_ACKS | CAPABILITY_GROUP_ECHO), 0);
  assert_false(run.redelivers);
  assert_string_equal(run.ack_meaning, "none");
  assert_string_equal(run.title, "MQTT 5 over TCP, QoS 0, clean session, keep alive 60 s");
  assert_int_equal(run.settings.url.port, 1883);
  driver_mqtt.release(&run);
  assert_int_equal(prepare(&run, "mqtts+ws://127.0.0.1", &old, &err), STATUS_OK);
  assert_true(run.capabilities & CAPABILITY_ACKS);
  assert_true(run.redelivers);
  assert_true(run.capabilities & CAPABILITY_GROUP_ECHO);
  assert_non_null(run.tls);
  assert_string_equal(run.title, "MQTT 3.1.1 over WebSocket and TLS, QoS 1, clean session, keep alive 60 s");
  assert_int_equal(run.settings.url.port, 443);
  driver_mqtt.release(&run);
}

static void test_settings_that_cannot_be(void **state) {
  (void)state;
  const struct driver_settings bad[] = {
      {.mqtt = {.qos = 3}},
      {.mqtt = {.version = "4"}},
      {.mqtt = {.version = "3.1.1", .receive_maximum = 5}},
      {.mqtt = {.receive_maximum = 65536}},
      {.mqtt = {.topic_prefix = "a/+/b"}},
      {.mqtt = {.topic_prefix = "$SYS"}},
      {.tls_certificate_file = "only.pem"},
      {.origin = "a\r\nb"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct driver_run run;
    struct err err = {0};
    assert_int_equal(prepare(&run, "mqtt://127.0.0.1", &bad[i], &err), STATUS_USAGE);
    assert_true(err.text[0] != '\0');
  }
}

static void test_established_when_subscribed(void **state) {
  (void)state;
  struct fixture *f = start("mqtt://127.0.0.1", &qos_1);
  peer_take(f, MQTT_CONNECT);
  assert_int_equal(publish(f, PUBLISH_TO_CLIENT, 3, 0), PUBLISH_BLOCKED);
  peer_connack(f, false, NULL, 0);
  assert_int_equal(f->established, 0);
  assert_int_equal(publish(f, PUBLISH_TO_CLIENT, 3, 0), PUBLISH_BLOCKED);
  peer_grant(f, OWN_TOPIC, 1, 1);
  assert_int_equal(f->established, 1);
  assert_int_equal(f->failed, 0);
  stop(f);
}

static void test_topics_of_groups(void **state) {
  (void)state;
  struct driver_settings settings = {.groups = 3, .mqtt = {.qos = 1}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, NULL, 0);
  peer_grant(f, GROUP_TOPIC, 1 | MQTT_NO_LOCAL, 1); /* 7 % 3 */
  assert_int_equal(f->established, 1);
  assert_int_equal(publish(f, PUBLISH_TO_GROUP, 1, 5), PUBLISH_WRITTEN);
  peer_takes_publish(f, GROUP_TOPIC, 1, 5);
  stop(f);

  settings = (struct driver_settings){.groups = 2, .shared_groups = true, .mqtt = {.qos = 0, .version = "3.1.1"}};
  f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, NULL, 0);
  peer_grant(f, "muster/1234567890abcdef/g/0", 0, 0);
  assert_int_equal(f->established, 0);
  peer_grant(f, GROUP_TOPIC, 0, 0);
  assert_int_equal(f->established, 1);
  stop(f);

  settings = (struct driver_settings){.broadcast = true, .mqtt = {.topic_prefix = "load/test"}};
  f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, NULL, 0);
  peer_grant(f, "load/test/1234567890abcdef/all", 0, 0);
  assert_int_equal(publish(f, PUBLISH_TO_ALL, 0, 1), PUBLISH_WRITTEN);
  assert_int_equal(peer_takes_publish(f, "load/test/1234567890abcdef/all", 0, 1), 0);
  assert_int_equal(f->acked, 0);
  stop(f);
}

/* Client 7 is the fourth consumer, of the second of two queues; then it is the last of eight senders. */
static void test_queues(void **state) {
  (void)state;
  struct driver_settings settings = {.queues = 2, .pure_senders = 4, .mqtt = {.qos = 1}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  assert_non_null(strstr(f->run.delivery, "shared subscription"));
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, NULL, 0);
  peer_grant(f, "$share/muster/muster/1234567890abcdef/q/1", 1, 1);
  assert_int_equal(f->established, 1);
  stop(f);

  settings.pure_senders = 8;
  f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, NULL, 0);
  assert_int_equal(f->established, 1);
  assert_int_equal(publish(f, PUBLISH_TO_QUEUE, 1, 0), PUBLISH_WRITTEN);
  peer_takes_publish(f, "muster/1234567890abcdef/q/1", 1, 0);
  stop(f);

  const struct mqtt_property none = {.id = MQTT_SHARED_AVAILABLE, .number = 0};
  f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, &none, 1);
  assert_int_equal(f->failed_code, MQTT_NO_SHARED);
  stop(f);
}

static void test_qos_1(void **state) {
  (void)state;
  struct fixture *f = established(&qos_1);
  assert_int_equal(publish(f, PUBLISH_TO_CLIENT, 12345, 1), PUBLISH_WRITTEN);
  assert_int_equal(publish(f, PUBLISH_TO_CLIENT, 0, 2), PUBLISH_WRITTEN);
  uint16_t first = peer_takes_publish(f, "muster/1234567890abcdef/c/12345", 1, 1);
  uint16_t second = peer_takes_publish(f, "muster/1234567890abcdef/c/0", 1, 2);
  assert_int_not_equal(first, second);
  peer_ack(f, MQTT_PUBACK, second, 0x10); /* accepted, though nobody listens */
  assert_int_equal(f->acked, 1);
  assert_int_equal(f->acked_code, 0);
  assert_int_equal(f->acked_token, 2 << 1 | 1);
  peer_ack(f, MQTT_PUBACK, first, MQTT_QUOTA_EXCEEDED);
  assert_int_equal(f->acked_code, MQTT_QUOTA_EXCEEDED);
  assert_int_equal(f->acked_token, 1 << 1 | 1);
  peer_ack(f, MQTT_PUBACK, first, MQTT_SUCCESS); /* a second time: nobody's */
  assert_int_equal(f->acked, 2);

  peer_delivers(f, (struct mqtt_publish){.qos = 1, .id = 500}, 9);
  assert_int_equal(f->delivered, 1);
  assert_int_equal(f->payload.sequence, 9);
  peer_takes_ack(f, MQTT_PUBACK, 500, 0);
  /* Sent again, it is a repetition, which is not hidden; a retained one may have come before by itself. */
  peer_delivers(f, (struct mqtt_publish){.qos = 1, .id = 500, .duplicate = true}, 9);
  peer_delivers(f, (struct mqtt_publish){.qos = 0, .retain = true}, 9);
  assert_int_equal(f->delivered, 3);
  assert_int_equal(f->overlaps, 1);
  stop(f);
}

static void test_qos_2(void **state) {
  (void)state;
  struct fixture *f = established(&qos_2);
  publish(f, PUBLISH_TO_CLIENT, 1, 1);
  publish(f, PUBLISH_TO_CLIENT, 1, 2);
  uint16_t first = peer_takes_publish(f, "muster/1234567890abcdef/c/1", 2, 1);
  uint16_t second = peer_takes_publish(f, "muster/1234567890abcdef/c/1", 2, 2);
  peer_ack(f, MQTT_PUBREC, first, MQTT_SUCCESS);
  peer_takes_ack(f, MQTT_PUBREL, first, MQTT_SUCCESS);
  assert_int_equal(f->acked, 0);
  peer_ack(f, MQTT_PUBCOMP, first, MQTT_SUCCESS);
  assert_int_equal(f->acked, 1);
  assert_int_equal(f->acked_token, 1 << 1 | 1);
  peer_ack(f, MQTT_PUBREC, second, MQTT_NOT_AUTHORIZED);
  assert_int_equal(f->acked_code, MQTT_NOT_AUTHORIZED);
  peer_is_silent(f);
  peer_ack(f, MQTT_PUBREC, 4711, MQTT_SUCCESS);
  peer_takes_ack(f, MQTT_PUBREL, 4711, MQTT_ID_NOT_FOUND);

  peer_delivers(f, (struct mqtt_publish){.qos = 2, .id = 8}, 3);
  peer_takes_ack(f, MQTT_PUBREC, 8, MQTT_SUCCESS);
  peer_delivers(f, (struct mqtt_publish){.qos = 2, .id = 8, .duplicate = true}, 3);
  peer_takes_ack(f, MQTT_PUBREC, 8, MQTT_SUCCESS);
  assert_int_equal(f->delivered, 1);
  peer_ack(f, MQTT_PUBREL, 8, MQTT_SUCCESS);
  peer_takes_ack(f, MQTT_PUBCOMP, 8, MQTT_SUCCESS);
  peer_delivers(f, (struct mqtt_publish){.qos = 2, .id = 8}, 4);
  assert_int_equal(f->delivered, 2);
  assert_int_equal(f->failed, 0);
  stop(f);
}

static void test_the_receive_maximum(void **state) {
  (void)state;
  struct mqtt_property three = {.id = MQTT_RECEIVE_MAXIMUM_PROPERTY, .number = 3};
  struct driver_settings settings = {.mqtt = {.qos = 2, .receive_maximum = 2}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, &three, 1);
  peer_grant(f, OWN_TOPIC, 2, 2);
  for (uint32_t i = 0; i < 3; i++)
    assert_int_equal(publish(f, PUBLISH_TO_SELF, 0, i), PUBLISH_WRITTEN);
  assert_int_equal(publish(f, PUBLISH_TO_SELF, 0, 3), PUBLISH_BLOCKED);
  uint16_t id = peer_takes_publish(f, OWN_TOPIC, 2, 0);
  peer_ack(f, MQTT_PUBREC, id, MQTT_SUCCESS);
  assert_int_equal(publish(f, PUBLISH_TO_SELF, 0, 3), PUBLISH_BLOCKED);
  peer_ack(f, MQTT_PUBCOMP, id, MQTT_SUCCESS);
  assert_int_equal(publish(f, PUBLISH_TO_SELF, 0, 3), PUBLISH_WRITTEN);
  /* The other way round the server breaks it with the third. */
  for (uint16_t i = 1; i <= 3; i++) {
    assert_int_equal(f->failed, 0);
    peer_delivers(f, (struct mqtt_publish){.qos = 2, .id = i}, i);
  }
  assert_int_equal(f->failed_code, CAUSE_PROTOCOL);
  assert_int_equal(f->delivered, 2);
  stop(f);
}

/* One publish without an answer, and all identifiers are used once and again around it. */
static void test_identifiers_go_round(void **state) {
  (void)state;
  struct fixture *f = established(&qos_1);
  publish(f, PUBLISH_TO_CLIENT, 1, 0);
  uint16_t stuck = peer_takes_publish(f, "muster/1234567890abcdef/c/1", 1, 0);
  for (uint32_t i = 1; i <= 70000; i++) {
    assert_int_equal(publish(f, PUBLISH_TO_CLIENT, 1, i), PUBLISH_WRITTEN);
    if (i % 100 != 0) continue;
    for (uint32_t k = 0; k < 100; k++) {
      uint16_t id = peer_takes_publish(f, "muster/1234567890abcdef/c/1", 1, i - 99 + k);
      assert_int_not_equal(id, stuck);
      assert_int_not_equal(id, 0);
      peer_ack(f, MQTT_PUBACK, id, MQTT_SUCCESS);
      assert_int_equal(f->acked_token, (i - 99 + k) << 1 | 1);
    }
  }
  peer_ack(f, MQTT_PUBACK, stuck, MQTT_SUCCESS);
  assert_int_equal(f->acked_token, 1);
  stop(f);
}

static void fails_with(const struct driver_settings *settings, const void *connack, size_t len, int32_t code) {
  struct fixture *f = start("mqtt://127.0.0.1", settings);
  peer_take(f, MQTT_CONNECT);
  peer_write(f, connack, len);
  assert_int_equal(f->failed, 1);
  assert_int_equal(f->failed_code, code);
  assert_int_equal(f->established, 0);
  stop(f);
}

static void test_refusals(void **state) {
  (void)state;
  static const struct driver_settings retained = {.mqtt = {.retain = true}};
  fails_with(&old, "\x20\x02\x00\x05", 4, 5);
  fails_with(&qos_1, "\x20\x03\x00\x87\x00", 5, MQTT_NOT_AUTHORIZED);
  fails_with(&qos_1, "\x20\x02\x00\x01", 4, 1); /* a server that does not know version 5 */
  fails_with(&qos_2, "\x20\x05\x00\x00\x02\x24\x01", 7, MQTT_NO_QOS);
  fails_with(&retained, "\x20\x05\x00\x00\x02\x25\x00", 7, MQTT_NO_RETAIN);
  fails_with(&qos_1, "\x20\x08\x00\x00\x05\x27\x00\x00\x00\x40", 10, MQTT_PACKET_TOO_LARGE);
  fails_with(&qos_1, "\x90\x04\x00\x01\x00\x00", 6, CAUSE_PROTOCOL);
  fails_with(&qos_1, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, CAUSE_PROTOCOL);
}

static void test_refused_subscriptions(void **state) {
  (void)state;
  static const int32_t codes[][2] = {{0x87, 0x87}, {0x80, 0x80}, {0, MQTT_NO_QOS}};
  for (size_t i = 0; i < 3; i++) {
    struct fixture *f = start("mqtt://127.0.0.1", &qos_1);
    peer_take(f, MQTT_CONNECT);
    peer_connack(f, false, NULL, 0);
    peer_grant(f, OWN_TOPIC, 1, (uint8_t)codes[i][0]);
    assert_int_equal(f->failed_code, codes[i][1]);
    assert_int_equal(f->established, 0);
    stop(f);
  }
}

static void test_goodbyes_of_the_server(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t len;
    int32_t code;
  } ends[] = {
      {"\xe0\x01\x8e", 3, MQTT_SESSION_TAKEN_OVER}, {"\xe0\x01\x97", 3, MQTT_QUOTA_EXCEEDED},
      {"\xe0\x02\x8b\x00", 4, MQTT_SERVER_SHUTTING_DOWN}, {"\xe0\x00", 2, CAUSE_KICKED},
      {"\xf0\x00", 2, CAUSE_PROTOCOL}, {"\xc0\x00", 2, CAUSE_PROTOCOL}, {"\x30\x00", 2, CAUSE_PROTOCOL},
      {"\x30\x06\x00\x00\x03\x23\x00\x01", 8, CAUSE_PROTOCOL}, /* an alias that nobody allowed */
      {"\x30\xff\xff\xff\x7f", 5, CAUSE_PROTOCOL},             /* 256 MiB */
      {"\x50\x02\x00\x01", 4, CAUSE_PROTOCOL},                 /* a PUBREC at QoS 1 */
  };
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    struct fixture *f = established(&qos_1);
    peer_write(f, ends[i].bytes, ends[i].len);
    assert_int_equal(f->failed, 1);
    assert_int_equal(f->failed_code, ends[i].code);
    stop(f);
  }
  struct fixture *f = established(&old);
  peer_write(f, "\xe0\x00", 2); /* only clients say it in version 3.1.1 */
  assert_int_equal(f->failed_code, CAUSE_PROTOCOL);
  stop(f);
}

static void test_keep_alive(void **state) {
  (void)state;
  struct fixture *f = established(&qos_1);
  assert_int_equal(f->wakes, 0);
  for (int round = 0; round < 3; round++) {
    driver_mqtt.tick(f->client, 1000);
    peer_take(f, MQTT_PINGREQ);
    if (round == 0) peer_write(f, "\xd0\x00", 2);
  }
  driver_mqtt.tick(f->client, 1000);
  assert_int_equal(f->failed, 0);
  driver_mqtt.tick(f->client, 1000);
  assert_int_equal(f->failed_code, CAUSE_KEEP_ALIVE);
  stop(f);

  /* A server that wants to hear from its clients every 15 s. */
  struct mqtt_property sooner = {.id = MQTT_SERVER_KEEP_ALIVE, .number = 15};
  f = start("mqtt://127.0.0.1", &qos_1);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, &sooner, 1);
  peer_grant(f, OWN_TOPIC, 1, 1);
  assert_int_equal(f->wakes, 1);
  driver_mqtt.tick(f->client, 1000);
  assert_int_equal(f->wakes, 2);
  assert_int_equal(f->wake_ns, 1000 + UINT64_C(10000000000));
  stop(f);
}

static void test_a_session_that_is_kept(void **state) {
  (void)state;
  struct driver_settings settings = {.mqtt = {.qos = 2, .keep_session = true}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, NULL, 0);
  peer_grant(f, OWN_TOPIC, 2, 2);
  publish(f, PUBLISH_TO_SELF, 0, 1);
  uint16_t before = peer_takes_publish(f, OWN_TOPIC, 2, 1);
  peer_delivers(f, (struct mqtt_publish){.qos = 2, .id = 3}, 7);
  peer_takes_ack(f, MQTT_PUBREC, 3, MQTT_SUCCESS);

  stream_close(&f->client->stream, true);
  close(f->peer);
  driver_mqtt.released(f->client);
  driver_mqtt.reconnecting(f->client);
  connect_peer(f);
  struct mqtt_connect connect;
  assert_true(mqtt_read_connect(peer_take(f, MQTT_CONNECT), &connect));
  assert_false(connect.clean);
  peer_connack(f, true, NULL, 0);
  /* It has this one already, and takes the next before the subscription is confirmed again. */
  peer_delivers(f, (struct mqtt_publish){.qos = 2, .id = 3, .duplicate = true}, 7);
  peer_delivers(f, (struct mqtt_publish){.qos = 2, .id = 4}, 8);
  assert_int_equal(f->delivered, 2);
  peer_grant(f, OWN_TOPIC, 2, 2);
  peer_takes_ack(f, MQTT_PUBREC, 3, MQTT_SUCCESS);
  peer_takes_ack(f, MQTT_PUBREC, 4, MQTT_SUCCESS);
  publish(f, PUBLISH_TO_SELF, 0, 2);
  assert_int_not_equal(peer_takes_publish(f, OWN_TOPIC, 2, 2), before);

  /* The good-bye ends the session, so that nothing stays in the broker. */
  struct mqtt_notice notice;
  driver_mqtt.closing(f->client);
  assert_true(mqtt_read_notice(MQTT_5, peer_take(f, MQTT_DISCONNECT), &notice));
  assert_int_equal(mqtt_property_number(notice.properties, MQTT_SESSION_EXPIRY, 1), 0);
  stop(f);
}

static void test_a_backlog(void **state) {
  (void)state;
  struct driver_settings settings = {.backlog = true, .mqtt = {.qos = 1, .version = "3.1.1"}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, true, NULL, 0);
  peer_take(f, MQTT_PINGREQ);
  peer_delivers(f, (struct mqtt_publish){.qos = 1, .id = 1}, 1);
  peer_takes_ack(f, MQTT_PUBACK, 1, MQTT_SUCCESS);
  peer_write(f, "\xd0\x00", 2);
  peer_take(f, MQTT_PINGREQ);
  peer_delivers(f, (struct mqtt_publish){.qos = 1, .id = 2}, 2);
  peer_write(f, "\xd0\x00", 2);
  assert_int_equal(f->established, 0);
  peer_takes_ack(f, MQTT_PUBACK, 2, MQTT_SUCCESS);
  peer_take(f, MQTT_PINGREQ);
  peer_write(f, "\xd0\x00", 2);
  assert_int_equal(f->established, 1);
  assert_int_equal(f->delivered, 2);
  stop(f);
}

/* Of QoS 2 more comes when what has come is complete: an answered PINGREQ says nothing before. */
static void test_a_backlog_of_qos_2(void **state) {
  (void)state;
  struct driver_settings settings = {.backlog = true, .mqtt = {.qos = 2}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, true, NULL, 0);
  peer_take(f, MQTT_PINGREQ);
  peer_delivers(f, (struct mqtt_publish){.qos = 2, .id = 1}, 1);
  peer_takes_ack(f, MQTT_PUBREC, 1, MQTT_SUCCESS);
  peer_write(f, "\xd0\x00", 2);
  peer_take(f, MQTT_PINGREQ);
  peer_write(f, "\xd0\x00", 2);
  peer_take(f, MQTT_PINGREQ);
  peer_write(f, "\x62\x02\x00\x01\xd0\x00", 6);
  assert_int_equal(f->established, 0);
  peer_takes_ack(f, MQTT_PUBCOMP, 1, MQTT_SUCCESS);
  peer_take(f, MQTT_PINGREQ);
  peer_write(f, "\xd0\x00", 2);
  assert_int_equal(f->established, 1);
  stop(f);
}

static void test_a_session_that_is_gone(void **state) {
  (void)state;
  struct driver_settings settings = {.backlog = true, .mqtt = {.qos = 1}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, NULL, 0);
  assert_int_equal(f->failed, 1);
  assert_string_equal(driver_mqtt.code_text(f->failed_code), "the server has forgotten the session");
  stop(f);
}

static void test_a_server_that_keeps_no_sessions(void **state) {
  (void)state;
  struct driver_settings settings = {.mqtt = {.qos = 1, .keep_session = true}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  const struct mqtt_property expiry = {.id = MQTT_SESSION_EXPIRY, .number = 0};
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, &expiry, 1);
  assert_string_equal(driver_mqtt.code_text(f->failed_code), "the server keeps no sessions");
  stop(f);
}

/* What the server says about a message, and no other counter: nobody is there for it, or it comes again. */
static void test_what_the_server_says(void **state) {
  (void)state;
  struct driver_settings settings = {.mqtt = {.qos = 1}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  assert_string_equal(driver_mqtt.counters[0], "redelivered");
  assert_string_equal(driver_mqtt.counters[1], "no_subscribers");
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, false, NULL, 0);
  peer_grant(f, OWN_TOPIC, 1, 1);
  publish(f, PUBLISH_TO_SELF, 0, 1);
  uint16_t id = peer_takes_publish(f, OWN_TOPIC, 1, 1);
  uint8_t puback[] = {0x40, 3, (uint8_t)(id >> 8), (uint8_t)id, MQTT_NO_SUBSCRIBERS};
  peer_write(f, puback, sizeof puback);
  assert_int_equal(f->acked, 1);
  assert_int_equal(f->acked_code, 0);
  peer_write(f, puback, sizeof puback);
  assert_int_equal(f->run.counted[1], 1);
  peer_delivers(f, (struct mqtt_publish){.qos = 1, .id = 9}, 1);
  peer_delivers(f, (struct mqtt_publish){.qos = 1, .id = 9, .duplicate = true}, 1);
  assert_int_equal(f->delivered, 2);
  assert_int_equal(f->run.counted[0], 1);
  stop(f);
}

/* Nobody may resume what was not asked to be kept. */
static void test_a_session_that_was_not_asked_for(void **state) {
  (void)state;
  struct driver_settings settings = {.mqtt = {.qos = 1}};
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  peer_take(f, MQTT_CONNECT);
  peer_connack(f, true, NULL, 0);
  assert_int_equal(f->failed_code, CAUSE_PROTOCOL);
  stop(f);
}

/* A receiver of a backlog subscribes and leaves its session; afterwards it takes it away. */
static void test_visits(void **state) {
  (void)state;
  struct driver_settings settings = {.backlog = true, .mqtt = {.qos = 1}};
  struct mqtt_connect connect;
  struct mqtt_notice notice;
  next_visit = VISIT_TO_BE_KNOWN;
  struct fixture *f = start("mqtt://127.0.0.1", &settings);
  assert_true(mqtt_read_connect(peer_take(f, MQTT_CONNECT), &connect));
  assert_false(connect.clean);
  peer_connack(f, false, NULL, 0);
  peer_grant(f, OWN_TOPIC, 1, 1);
  assert_int_equal(f->established, 1);
  driver_mqtt.closing(f->client);
  assert_true(mqtt_read_notice(MQTT_5, peer_take(f, MQTT_DISCONNECT), &notice));
  assert_int_equal(mqtt_property_number(notice.properties, MQTT_SESSION_EXPIRY, 1), 1);
  stop(f);

  next_visit = VISIT_TO_BE_FORGOTTEN;
  f = start("mqtt://127.0.0.1", &settings);
  next_visit = VISIT_NONE;
  assert_true(mqtt_read_connect(peer_take(f, MQTT_CONNECT), &connect));
  assert_true(connect.clean);
  peer_connack(f, false, NULL, 0);
  assert_int_equal(f->established, 1);
  stop(f);
}

static void test_retained(void **state) {
  (void)state;
  struct driver_settings settings = {.mqtt = {.qos = 1, .retain = true}};
  struct fixture *f = established(&settings);
  struct mqtt_publish message;
  publish(f, PUBLISH_TO_CLIENT, 1, 1);
  assert_true(mqtt_read_publish(MQTT_5, peer_take(f, MQTT_PUBLISH), &message));
  assert_true(message.retain);
  peer_write(f, "\x31\x04\x00\x01\x61\x00", 6); /* somebody takes a retained message away */
  assert_int_equal(f->delivered, 0);
  driver_mqtt.closing(f->client);
  assert_true(mqtt_read_publish(MQTT_5, peer_take(f, MQTT_PUBLISH), &message));
  assert_true(message.retain && view_is(message.topic, OWN_TOPIC));
  assert_int_equal(message.payload.len, 0);
  peer_take(f, MQTT_DISCONNECT);
  stop(f);
}

/* Answers the upgrade; headers are those of the answer. */
static void peer_upgrade(struct fixture *f, const char *headers) {
  struct http_head head;
  size_t used, len;
  char answer[512];
  peer_read(f);
  assert_int_equal(http_read_request(f->in, f->in_len, &head, &used, NULL), HTTP_COMPLETE);
  assert_true(view_is(head.target, "/mqtt"));
  assert_true(http_has_token(&head, "sec-websocket-protocol", "mqtt"));
  assert_int_equal(ws_answer_request_with(&head, headers, answer, sizeof answer, &len, NULL), STATUS_OK);
  f->in_len = 0;
  peer_write(f, answer, len);
}

static void peer_frame(struct fixture *f, uint8_t opcode, const uint8_t *data, size_t len) {
  uint8_t frame[1024];
  size_t header = ws_write_header(frame, opcode, len, NULL);
  memcpy(frame + header, data, len);
  peer_write(f, frame, header + len);
}

/* The packet in the client's next WebSocket message. */
static enum mqtt_type peer_unframe(struct fixture *f, struct ws *ws, uint16_t *id) {
  struct ws_event event;
  struct mqtt_packet packet;
  peer_read(f);
  size_t used = ws_read(ws, f->in, f->in_len, &event);
  assert_int_equal(event.kind, WS_EVENT_MESSAGE);
  assert_int_equal(event.opcode, WS_BINARY);
  assert_int_equal(mqtt_read_packet(event.data, event.len, 4096, &packet), MQTT_OK);
  assert_int_equal(packet.size, event.len);
  *id = packet.body.len >= 2 ? (uint16_t)(packet.body.data[0] << 8 | packet.body.data[1]) : 0;
  memmove(f->in, f->in + used, f->in_len - used);
  f->in_len -= used;
  return packet.type;
}

/* Packets and WebSocket messages need not end at the same places: all of them, cut at each place, and byte by byte. */
static void test_websocket(void **state) {
  (void)state;
  for (size_t cut = 0; cut <= 2 * SIZE; cut++) {
    struct fixture *f = start("mqtt+ws://127.0.0.1", &qos_1);
    struct ws ws;
    uint16_t id;
    ws_init(&ws, WS_SERVER, 65536);
    peer_upgrade(f, "Sec-WebSocket-Protocol: mqtt\r\n");
    assert_int_equal(peer_unframe(f, &ws, &id), MQTT_CONNECT);
    peer_frame(f, WS_BINARY, (const uint8_t *)"\x20\x03\x00\x00\x00", 5);
    assert_int_equal(peer_unframe(f, &ws, &id), MQTT_SUBSCRIBE);
    const uint8_t suback[] = {0x90, 4, (uint8_t)(id >> 8), (uint8_t)id, 0, 1};
    peer_frame(f, WS_BINARY, suback, sizeof suback);
    assert_int_equal(f->established, 1);
    uint8_t stream[512];
    size_t len = write_delivery(f, stream, (struct mqtt_publish){.qos = 0}, 1);
    len += write_delivery(f, stream + len, (struct mqtt_publish){.qos = 0}, 2);
    if (cut == 0) {
      for (size_t i = 0; i < len; i++)
        peer_frame(f, WS_BINARY, stream + i, 1);
    } else {
      peer_frame(f, WS_BINARY, stream, cut);
      peer_frame(f, WS_BINARY, stream + cut, len - cut);
    }
    assert_int_equal(f->delivered, 2);
    assert_int_equal(f->payload.sequence, 2);
    assert_int_equal(f->failed, 0);
    ws_free(&ws);
    stop(f);
  }
}

static void test_websocket_refusals(void **state) {
  (void)state;
  struct fixture *f = start("mqtt+ws://127.0.0.1", &qos_1);
  peer_upgrade(f, "Sec-WebSocket-Protocol: mqttv3.1\r\n");
  assert_int_equal(f->failed_code, CAUSE_UPGRADE);
  stop(f);
  f = start("mqtt+ws://127.0.0.1", &qos_1);
  peer_upgrade(f, "Sec-WebSocket-Protocol: mqtt\r\n");
  peer_frame(f, WS_TEXT, (const uint8_t *)" ", 1);
  assert_int_equal(f->failed_code, CAUSE_PROTOCOL);
  stop(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_connect),
      cmocka_unit_test(test_what_a_run_can_do),
      cmocka_unit_test(test_settings_that_cannot_be),
      cmocka_unit_test(test_established_when_subscribed),
      cmocka_unit_test(test_topics_of_groups),
      cmocka_unit_test(test_queues),
      cmocka_unit_test(test_qos_1),
      cmocka_unit_test(test_qos_2),
      cmocka_unit_test(test_the_receive_maximum),
      cmocka_unit_test(test_identifiers_go_round),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_refused_subscriptions),
      cmocka_unit_test(test_goodbyes_of_the_server),
      cmocka_unit_test(test_keep_alive),
      cmocka_unit_test(test_a_session_that_is_kept),
      cmocka_unit_test(test_a_backlog),
      cmocka_unit_test(test_a_backlog_of_qos_2),
      cmocka_unit_test(test_a_session_that_is_gone),
      cmocka_unit_test(test_a_server_that_keeps_no_sessions),
      cmocka_unit_test(test_what_the_server_says),
      cmocka_unit_test(test_a_session_that_was_not_asked_for),
      cmocka_unit_test(test_visits),
      cmocka_unit_test(test_retained),
      cmocka_unit_test(test_websocket),
      cmocka_unit_test(test_websocket_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
