/* MQTT 3.1.1 and 5 (OASIS standards of 2014 and 2019), control packets to structs and back, no I/O. Both directions are
 * here, so that tests and a server side can use them too. Nothing is allocated: reading hands out views into the
 * packet, writing fills memory of the size that was asked for before.
 *
 * Properties (version 5 only) travel as the view of their encoded bytes, without the length in front: a reader has
 * checked them (known, allowed in this packet, not repeated, well-formed) and mqtt_property_next takes them apart;
 * a writer makes them with mqtt_write_properties. With version 3.1.1 they must be empty. */
#ifndef MUSTER_WIRE_MQTT_H
#define MUSTER_WIRE_MQTT_H

#include "base/view.h"

enum mqtt_version { MQTT_3_1_1 = 4, MQTT_5 = 5 };

enum mqtt_type {
  MQTT_CONNECT = 1,
  MQTT_CONNACK,
  MQTT_PUBLISH,
  MQTT_PUBACK,
  MQTT_PUBREC,
  MQTT_PUBREL,
  MQTT_PUBCOMP,
  MQTT_SUBSCRIBE,
  MQTT_SUBACK,
  MQTT_UNSUBSCRIBE,
  MQTT_UNSUBACK,
  MQTT_PINGREQ,
  MQTT_PINGRESP,
  MQTT_DISCONNECT,
  MQTT_AUTH, /* version 5 only */
};

/* Reason codes of version 5 that the code names; from 0x80 on they are failures. */
enum mqtt_reason {
  MQTT_SUCCESS = 0x00,
  MQTT_NO_SUBSCRIBERS = 0x10, /* of a publish that was taken all the same */
  MQTT_UNSPECIFIED = 0x80,    /* version 3.1.1: a subscription that was refused */
  MQTT_MALFORMED = 0x81,
  MQTT_PROTOCOL_ERROR = 0x82,
  MQTT_BAD_CREDENTIALS = 0x86,
  MQTT_NOT_AUTHORIZED = 0x87,
  MQTT_SERVER_SHUTTING_DOWN = 0x8b,
  MQTT_SESSION_TAKEN_OVER = 0x8e,
  MQTT_ID_NOT_FOUND = 0x92,
  MQTT_RECEIVE_MAXIMUM = 0x93,
  MQTT_PACKET_TOO_LARGE = 0x95,
  MQTT_QUOTA_EXCEEDED = 0x97,
  MQTT_NO_RETAIN = 0x9a,
  MQTT_NO_QOS = 0x9b,
  MQTT_NO_SHARED = 0x9e,
};

/* The standard's name of a reason code, or of a CONNACK return code 1..5 of version 3.1.1 (the two do not overlap:
 * servers send failures only from 0x80 on in version 5); NULL for others. */
const char *mqtt_reason_name(int32_t code);

/* ---- Packets ---- */

struct mqtt_packet {
  enum mqtt_type type;
  uint8_t flags;    /* low half of the first byte, checked but for a PUBLISH's */
  struct view body; /* what follows the fixed header */
  size_t size;      /* of the whole packet */
};

enum mqtt_result { MQTT_OK, MQTT_PARTIAL, MQTT_BAD, MQTT_TOO_LARGE };

/* The packet at the front of data. PARTIAL: more bytes are needed; TOO_LARGE: it has more than max_bytes. */
enum mqtt_result mqtt_read_packet(const uint8_t *data, size_t len, uint32_t max_bytes, struct mqtt_packet *out);

/* The size of a packet with a body of so many bytes; 0 when that is more than the standard allows. */
size_t mqtt_packet_size(size_t body_len);

/* ---- Properties ---- */

enum mqtt_property_id {
  MQTT_PAYLOAD_FORMAT = 0x01,
  MQTT_MESSAGE_EXPIRY = 0x02,
  MQTT_CONTENT_TYPE = 0x03,
  MQTT_RESPONSE_TOPIC = 0x08,
  MQTT_CORRELATION_DATA = 0x09,
  MQTT_SUBSCRIPTION_ID = 0x0b,
  MQTT_SESSION_EXPIRY = 0x11,
  MQTT_ASSIGNED_CLIENT_ID = 0x12,
  MQTT_SERVER_KEEP_ALIVE = 0x13,
  MQTT_AUTH_METHOD = 0x15,
  MQTT_AUTH_DATA = 0x16,
  MQTT_REQUEST_PROBLEM_INFO = 0x17,
  MQTT_WILL_DELAY = 0x18,
  MQTT_REQUEST_RESPONSE_INFO = 0x19,
  MQTT_RESPONSE_INFO = 0x1a,
  MQTT_SERVER_REFERENCE = 0x1c,
  MQTT_REASON_STRING = 0x1f,
  MQTT_RECEIVE_MAXIMUM_PROPERTY = 0x21,
  MQTT_TOPIC_ALIAS_MAXIMUM = 0x22,
  MQTT_TOPIC_ALIAS = 0x23,
  MQTT_MAXIMUM_QOS = 0x24,
  MQTT_RETAIN_AVAILABLE = 0x25,
  MQTT_USER_PROPERTY = 0x26,
  MQTT_MAXIMUM_PACKET_SIZE = 0x27,
  MQTT_WILDCARD_AVAILABLE = 0x28,
  MQTT_SUBSCRIPTION_ID_AVAILABLE = 0x29,
  MQTT_SHARED_AVAILABLE = 0x2a,
};

struct mqtt_property {
  uint8_t id;
  uint32_t number;   /* of the numeric ones */
  struct view text;  /* of strings and binary data; the name of a user property */
  struct view value; /* of a user property */
};

/* Takes the first property off *properties; false at their end, or at one that is malformed (then *properties is not
 * empty). */
bool mqtt_property_next(struct view *properties, struct mqtt_property *out);
/* The number of the first property with that id, or otherwise. */
uint32_t mqtt_property_number(struct view properties, uint8_t id, uint32_t otherwise);

size_t mqtt_properties_size(const struct mqtt_property *property, size_t count);
uint8_t *mqtt_write_properties(uint8_t *out, const struct mqtt_property *property, size_t count);

/* ---- Contents. A _size is that of the whole packet (0: too large); a _write needs as much room and returns the end;
 * a _read returns false for a body that breaks the standard. ---- */

struct mqtt_will {
  uint8_t qos;
  bool retain;
  struct view properties, topic, message;
};

struct mqtt_connect {
  enum mqtt_version version;
  bool clean; /* session (3.1.1), start (5) */
  bool has_will, has_user, has_password;
  uint16_t keep_alive_s;
  struct view properties, client_id;
  struct mqtt_will will;
  struct view user, password;
};
size_t mqtt_connect_size(const struct mqtt_connect *connect);
uint8_t *mqtt_write_connect(uint8_t *out, const struct mqtt_connect *connect);
bool mqtt_read_connect(const struct mqtt_packet *packet, struct mqtt_connect *out);

struct mqtt_connack {
  bool session_present;
  uint8_t code;
  struct view properties;
};
uint8_t *mqtt_write_connack(uint8_t *out, enum mqtt_version version, const struct mqtt_connack *connack);
bool mqtt_read_connack(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_connack *out);

struct mqtt_publish {
  bool duplicate, retain;
  uint8_t qos;
  uint16_t id; /* of qos 1 and 2 */
  struct view topic, properties;
  struct view payload; /* data NULL when written: a hole of len bytes, which the caller fills */
};
size_t mqtt_publish_size(enum mqtt_version version, const struct mqtt_publish *publish);
/* Returns the start of the payload. */
uint8_t *mqtt_write_publish(uint8_t *out, enum mqtt_version version, const struct mqtt_publish *publish);
bool mqtt_read_publish(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_publish *out);

/* PUBACK, PUBREC, PUBREL, PUBCOMP. */
struct mqtt_ack {
  uint16_t id;
  uint8_t code;
  struct view properties;
};
size_t mqtt_ack_size(enum mqtt_version version, const struct mqtt_ack *ack);
uint8_t *mqtt_write_ack(uint8_t *out, enum mqtt_version version, enum mqtt_type type, const struct mqtt_ack *ack);
bool mqtt_read_ack(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_ack *out);

#define MQTT_NO_LOCAL 0x04            /* version 5: not what this client publishes itself */
#define MQTT_RETAIN_AS_PUBLISHED 0x08 /* version 5 */

struct mqtt_filter {
  struct view topic;
  uint8_t options; /* qos and, in version 5, flags; not in an UNSUBSCRIBE */
};

/* SUBSCRIBE and UNSUBSCRIBE. */
struct mqtt_subscribe {
  uint16_t id;
  struct view properties;
  struct view filters; /* encoded, not empty: mqtt_filter_next takes them apart */
};
size_t mqtt_filters_size(enum mqtt_type type, const struct mqtt_filter *filter, size_t count);
uint8_t *mqtt_write_filters(uint8_t *out, enum mqtt_type type, const struct mqtt_filter *filter, size_t count);
bool mqtt_filter_next(enum mqtt_type type, struct view *filters, struct mqtt_filter *out);
size_t mqtt_subscribe_size(enum mqtt_version version, const struct mqtt_subscribe *subscribe);
uint8_t *mqtt_write_subscribe(
    uint8_t *out, enum mqtt_version version, enum mqtt_type type, const struct mqtt_subscribe *subscribe);
bool mqtt_read_subscribe(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_subscribe *out);

/* SUBACK, and UNSUBACK, which has no codes in version 3.1.1. */
struct mqtt_suback {
  uint16_t id;
  struct view properties;
  struct view codes; /* one byte for each filter */
};
uint8_t *mqtt_write_suback(
    uint8_t *out, enum mqtt_version version, enum mqtt_type type, const struct mqtt_suback *suback);
bool mqtt_read_suback(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_suback *out);

/* DISCONNECT and AUTH; in version 3.1.1 the former is empty. */
struct mqtt_notice {
  uint8_t code;
  struct view properties;
};
size_t mqtt_notice_size(enum mqtt_version version, const struct mqtt_notice *notice);
uint8_t *mqtt_write_notice(
    uint8_t *out, enum mqtt_version version, enum mqtt_type type, const struct mqtt_notice *notice);
bool mqtt_read_notice(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_notice *out);

/* PINGREQ and PINGRESP: two bytes. */
#define MQTT_PING_BYTES 2
uint8_t *mqtt_write_ping(uint8_t *out, enum mqtt_type type);

#endif
