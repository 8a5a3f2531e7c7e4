/* What the null peer says as an MQTT broker: nothing is kept, retained or held back. */
#include "load/null_client.h"

#include <string.h>

#define PACKET_MAX (4U << 20)
#define FILTERS_MAX 64
#define ANSWER_MAX (FILTERS_MAX + 16) /* bytes of a CONNACK or SUBACK without properties */

static enum mqtt_version version_of(const struct null_client *client) {
  return client->as.mqtt.version;
}

static bool on_connect(struct null_client *client, const struct mqtt_packet *packet) {
  struct mqtt_connect connect;
  struct mqtt_connack connack = {.code = MQTT_SUCCESS};
  if (version_of(client) || !mqtt_read_connect(packet, &connect)) return false;
  client->as.mqtt.version = connect.version;
  uint8_t out[ANSWER_MAX];
  return stream_write(&client->stream, out, (size_t)(mqtt_write_connack(out, connect.version, &connack) - out));
}

static bool on_subscribe(struct null_client *client, const struct mqtt_packet *packet) {
  struct mqtt_subscribe subscribe;
  struct mqtt_filter filter;
  uint8_t code[FILTERS_MAX];
  size_t count = 0;
  if (!mqtt_read_subscribe(version_of(client), packet, &subscribe)) return false;
  while (count < FILTERS_MAX && mqtt_filter_next(MQTT_SUBSCRIBE, &subscribe.filters, &filter)) {
    struct hub_seat seat = {
        .client = client, .qos = filter.options & 3, .leaves_out_own = filter.options & MQTT_NO_LOCAL};
    if (!hub_join(&client->house->hub, filter.topic, &seat)) return false;
    code[count++] = seat.qos;
  }
  struct mqtt_suback suback = {.id = subscribe.id, .codes = view_of(code, count)};
  uint8_t out[ANSWER_MAX];
  return stream_write(
      &client->stream, out, (size_t)(mqtt_write_suback(out, version_of(client), MQTT_SUBACK, &suback) - out));
}

static bool write_ack(struct null_client *client, enum mqtt_type type, uint16_t id) {
  struct mqtt_ack ack = {.id = id, .code = MQTT_SUCCESS};
  size_t size = mqtt_ack_size(version_of(client), &ack);
  uint8_t *out = stream_reserve(&client->stream, size);
  if (!out) return false;
  mqtt_write_ack(out, version_of(client), type, &ack);
  stream_commit(&client->stream, size);
  return true;
}

/* A recipient that cannot take it misses it, and the run that measures says so. */
static void push(const struct hub_seat *seat, const struct mqtt_publish *from) {
  struct null_client *to = seat->client;
  struct mqtt_publish publish = {
      .qos = seat->qos < from->qos ? seat->qos : from->qos,
      .topic = from->topic,
      .payload = {NULL, from->payload.len},
  };
  if (publish.qos > 0) publish.id = to->as.mqtt.last_id = (uint16_t)(to->as.mqtt.last_id % UINT16_MAX + 1);
  size_t size = mqtt_publish_size(version_of(to), &publish);
  uint8_t *out = stream_reserve(&to->stream, size);
  if (!out) return;
  memcpy(mqtt_write_publish(out, version_of(to), &publish), from->payload.data, from->payload.len);
  stream_commit(&to->stream, size);
}

static bool on_publish(struct null_client *client, const struct mqtt_packet *packet) {
  struct mqtt_publish publish;
  if (!mqtt_read_publish(version_of(client), packet, &publish)) return false;
  if (publish.qos > 0 && !write_ack(client, publish.qos == 1 ? MQTT_PUBACK : MQTT_PUBREC, publish.id)) return false;
  const struct hub_topic *topic = hub_find(&client->house->hub, publish.topic);
  for (uint32_t i = 0; topic && i < topic->seats; i++) {
    bool own = topic->seat[i].client == client;
    if (!own || !topic->seat[i].leaves_out_own) push(&topic->seat[i], &publish);
  }
  return true;
}

static bool on_ack(struct null_client *client, const struct mqtt_packet *packet) {
  struct mqtt_ack ack;
  if (!mqtt_read_ack(version_of(client), packet, &ack)) return false;
  if (packet->type == MQTT_PUBREL) return write_ack(client, MQTT_PUBCOMP, ack.id);
  return packet->type != MQTT_PUBREC || write_ack(client, MQTT_PUBREL, ack.id);
}

static bool on_ping(struct null_client *client) {
  uint8_t answer[MQTT_PING_BYTES];
  mqtt_write_ping(answer, MQTT_PINGRESP);
  return stream_write(&client->stream, answer, sizeof answer);
}

static bool on_packet(struct null_client *client, const struct mqtt_packet *packet) {
  if (packet->type == MQTT_CONNECT) return on_connect(client, packet);
  if (!version_of(client)) return false;
  switch (packet->type) {
  case MQTT_PUBLISH:
    return on_publish(client, packet);
  case MQTT_PUBACK:
  case MQTT_PUBREC:
  case MQTT_PUBREL:
  case MQTT_PUBCOMP:
    return on_ack(client, packet);
  case MQTT_SUBSCRIBE:
    return on_subscribe(client, packet);
  case MQTT_PINGREQ:
    return on_ping(client);
  default: /* a good-bye, or what no client says */
    return false;
  }
}

static bool on_bytes(struct null_client *client, uint8_t *data, size_t len, size_t *used) {
  struct mqtt_packet packet;
  enum mqtt_result result = mqtt_read_packet(data, len, PACKET_MAX, &packet);
  if (result == MQTT_PARTIAL) return true;
  if (result != MQTT_OK) return false;
  *used = packet.size;
  return on_packet(client, &packet);
}

const struct null_dialect null_mqtt = {
    .driver = "mqtt",
    .scheme = "mqtt",
    .topologies = NULL_PUBSUB_TOPOLOGIES,
    .bytes = on_bytes,
};
