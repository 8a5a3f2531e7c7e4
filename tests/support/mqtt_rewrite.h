/* Reads any MQTT packet and writes it again: what was read must be a packet, and the same one. */
#ifndef MUSTER_TESTS_SUPPORT_MQTT_REWRITE_H
#define MUSTER_TESTS_SUPPORT_MQTT_REWRITE_H

#include "wire/mqtt.h"

/* Writes the packet into out (of at least its size + 8 bytes) and returns its length; 0 when a reader refuses it. */
static inline size_t mqtt_rewrite(enum mqtt_version version, const struct mqtt_packet *packet, uint8_t *out) {
  union {
    struct mqtt_connect connect;
    struct mqtt_connack connack;
    struct mqtt_publish publish;
    struct mqtt_ack ack;
    struct mqtt_subscribe subscribe;
    struct mqtt_suback suback;
    struct mqtt_notice notice;
  } it;
  switch (packet->type) {
  case MQTT_CONNECT:
    if (!mqtt_read_connect(packet, &it.connect)) return 0;
    return (size_t)(mqtt_write_connect(out, &it.connect) - out);
  case MQTT_CONNACK:
    if (!mqtt_read_connack(version, packet, &it.connack)) return 0;
    return (size_t)(mqtt_write_connack(out, version, &it.connack) - out);
  case MQTT_PUBLISH:
    if (!mqtt_read_publish(version, packet, &it.publish)) return 0;
    return (size_t)(mqtt_write_publish(out, version, &it.publish) - out) + it.publish.payload.len;
  case MQTT_PUBACK:
  case MQTT_PUBREC:
  case MQTT_PUBREL:
  case MQTT_PUBCOMP:
    if (!mqtt_read_ack(version, packet, &it.ack)) return 0;
    return (size_t)(mqtt_write_ack(out, version, packet->type, &it.ack) - out);
  case MQTT_SUBSCRIBE:
  case MQTT_UNSUBSCRIBE:
    if (!mqtt_read_subscribe(version, packet, &it.subscribe)) return 0;
    return (size_t)(mqtt_write_subscribe(out, version, packet->type, &it.subscribe) - out);
  case MQTT_SUBACK:
  case MQTT_UNSUBACK:
    if (!mqtt_read_suback(version, packet, &it.suback)) return 0;
    return (size_t)(mqtt_write_suback(out, version, packet->type, &it.suback) - out);
  case MQTT_DISCONNECT:
  case MQTT_AUTH:
    if (!mqtt_read_notice(version, packet, &it.notice)) return 0;
    return (size_t)(mqtt_write_notice(out, version, packet->type, &it.notice) - out);
  case MQTT_PINGREQ:
  case MQTT_PINGRESP:
    return packet->body.len == 0 ? (size_t)(mqtt_write_ping(out, packet->type) - out) : 0;
  }
  return 0;
}

#endif
