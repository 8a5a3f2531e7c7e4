#include "wire/mqtt.h"

#include "base/utf8.h"

#define REMAINING_MAX 268435455U /* four bytes of seven bits */
#define PROTOCOL "MQTT"

/* --- reading: a cursor that remembers that it ran over --- */

struct cursor {
  const uint8_t *at, *end;
  bool bad;
};

static struct cursor cursor_of(struct view view) {
  return (struct cursor){view.data, view.data ? view.data + view.len : view.data, false};
}

static size_t left(const struct cursor *cursor) {
  return (size_t)(cursor->end - cursor->at);
}

static struct view take(struct cursor *cursor, size_t len) {
  if (cursor->bad || left(cursor) < len) {
    cursor->bad = true;
    return (struct view){0};
  }
  const uint8_t *at = cursor->at;
  if (len > 0) cursor->at += len;
  return view_of(at, len);
}

static uint32_t take_number(struct cursor *cursor, size_t bytes) {
  struct view view = take(cursor, bytes);
  uint32_t number = 0;
  for (size_t i = 0; i < view.len; i++)
    number = number << 8 | view.data[i];
  return number;
}

/* A variable byte integer, which must be as short as it can be. */
static uint32_t take_varint(struct cursor *cursor) {
  uint32_t number = 0;
  for (unsigned i = 0; i < 4; i++) {
    uint32_t byte = take_number(cursor, 1);
    number |= (byte & 0x7f) << (7 * i);
    if (byte & 0x80) continue;
    if (i > 0 && byte == 0) cursor->bad = true;
    return number;
  }
  cursor->bad = true;
  return 0;
}

static struct view take_binary(struct cursor *cursor) {
  uint32_t len = take_number(cursor, 2);
  return take(cursor, len);
}

/* UTF-8 without the character 0, as the standard asks of every string. */
static bool is_text(struct view text) {
  return utf8_valid(text) && !(text.len && memchr(text.data, 0, text.len));
}

static struct view take_text(struct cursor *cursor) {
  struct view text = take_binary(cursor);
  if (!is_text(text)) cursor->bad = true;
  return text;
}

static bool is_topic(struct view topic) {
  return topic.len > 0 && !memchr(topic.data, '+', topic.len) && !memchr(topic.data, '#', topic.len);
}

/* --- properties --- */

enum form { FORM_NONE, FORM_FLAG, FORM_TWO, FORM_FOUR, FORM_VARINT, FORM_TEXT, FORM_BINARY, FORM_PAIR };

#define IN(type) (1U << (type))
#define IN_WILL 1U /* a will's properties: type 0, which no packet has */
#define IN_ACKS (IN(MQTT_PUBACK) | IN(MQTT_PUBREC) | IN(MQTT_PUBREL) | IN(MQTT_PUBCOMP))
#define IN_REPLIES                                                                                                     \
  (IN_ACKS | IN(MQTT_CONNACK) | IN(MQTT_SUBACK) | IN(MQTT_UNSUBACK) | IN(MQTT_DISCONNECT) | IN(MQTT_AUTH))
#define IN_AUTH (IN(MQTT_CONNECT) | IN(MQTT_CONNACK) | IN(MQTT_AUTH))
#define IN_BOTH_CONNECTS (IN(MQTT_CONNECT) | IN(MQTT_CONNACK))

static const struct {
  uint8_t form;     /* enum form */
  bool not_zero;    /* 0 is a protocol error */
  uint16_t packets; /* where it may stand: bits of enum mqtt_type */
} properties_known[] = {
    [MQTT_PAYLOAD_FORMAT] = {FORM_FLAG, false, IN(MQTT_PUBLISH) | IN_WILL},
    [MQTT_MESSAGE_EXPIRY] = {FORM_FOUR, false, IN(MQTT_PUBLISH) | IN_WILL},
    [MQTT_CONTENT_TYPE] = {FORM_TEXT, false, IN(MQTT_PUBLISH) | IN_WILL},
    [MQTT_RESPONSE_TOPIC] = {FORM_TEXT, false, IN(MQTT_PUBLISH) | IN_WILL},
    [MQTT_CORRELATION_DATA] = {FORM_BINARY, false, IN(MQTT_PUBLISH) | IN_WILL},
    [MQTT_SUBSCRIPTION_ID] = {FORM_VARINT, true, IN(MQTT_PUBLISH) | IN(MQTT_SUBSCRIBE)},
    [MQTT_SESSION_EXPIRY] = {FORM_FOUR, false, IN_BOTH_CONNECTS | IN(MQTT_DISCONNECT)},
    [MQTT_ASSIGNED_CLIENT_ID] = {FORM_TEXT, false, IN(MQTT_CONNACK)},
    [MQTT_SERVER_KEEP_ALIVE] = {FORM_TWO, false, IN(MQTT_CONNACK)},
    [MQTT_AUTH_METHOD] = {FORM_TEXT, false, IN_AUTH},
    [MQTT_AUTH_DATA] = {FORM_BINARY, false, IN_AUTH},
    [MQTT_REQUEST_PROBLEM_INFO] = {FORM_FLAG, false, IN(MQTT_CONNECT)},
    [MQTT_WILL_DELAY] = {FORM_FOUR, false, IN_WILL},
    [MQTT_REQUEST_RESPONSE_INFO] = {FORM_FLAG, false, IN(MQTT_CONNECT)},
    [MQTT_RESPONSE_INFO] = {FORM_TEXT, false, IN(MQTT_CONNACK)},
    [MQTT_SERVER_REFERENCE] = {FORM_TEXT, false, IN(MQTT_CONNACK) | IN(MQTT_DISCONNECT)},
    [MQTT_REASON_STRING] = {FORM_TEXT, false, IN_REPLIES},
    [MQTT_RECEIVE_MAXIMUM_PROPERTY] = {FORM_TWO, true, IN_BOTH_CONNECTS},
    [MQTT_TOPIC_ALIAS_MAXIMUM] = {FORM_TWO, false, IN_BOTH_CONNECTS},
    [MQTT_TOPIC_ALIAS] = {FORM_TWO, true, IN(MQTT_PUBLISH)},
    [MQTT_MAXIMUM_QOS] = {FORM_FLAG, false, IN(MQTT_CONNACK)},
    [MQTT_RETAIN_AVAILABLE] = {FORM_FLAG, false, IN(MQTT_CONNACK)},
    [MQTT_USER_PROPERTY] = {FORM_PAIR, false, UINT16_MAX & ~(IN(MQTT_PINGREQ) | IN(MQTT_PINGRESP))},
    [MQTT_MAXIMUM_PACKET_SIZE] = {FORM_FOUR, true, IN_BOTH_CONNECTS},
    [MQTT_WILDCARD_AVAILABLE] = {FORM_FLAG, false, IN(MQTT_CONNACK)},
    [MQTT_SUBSCRIPTION_ID_AVAILABLE] = {FORM_FLAG, false, IN(MQTT_CONNACK)},
    [MQTT_SHARED_AVAILABLE] = {FORM_FLAG, false, IN(MQTT_CONNACK)},
};
#define PROPERTY_IDS (sizeof properties_known / sizeof properties_known[0])

static enum form form_of(uint32_t id) {
  return id < PROPERTY_IDS ? (enum form)properties_known[id].form : FORM_NONE;
}

static void take_property(struct cursor *cursor, struct mqtt_property *out) {
  *out = (struct mqtt_property){.id = (uint8_t)take_number(cursor, 1)};
  switch (form_of(out->id)) {
  case FORM_FLAG:
    out->number = take_number(cursor, 1);
    break;
  case FORM_TWO:
    out->number = take_number(cursor, 2);
    break;
  case FORM_FOUR:
    out->number = take_number(cursor, 4);
    break;
  case FORM_VARINT:
    out->number = take_varint(cursor);
    break;
  case FORM_TEXT:
    out->text = take_text(cursor);
    break;
  case FORM_BINARY:
    out->text = take_binary(cursor);
    break;
  case FORM_PAIR:
    out->text = take_text(cursor);
    out->value = take_text(cursor);
    break;
  case FORM_NONE:
    cursor->bad = true;
    break;
  }
}

bool mqtt_property_next(struct view *properties, struct mqtt_property *out) {
  if (properties->len == 0) return false;
  struct cursor cursor = cursor_of(*properties);
  take_property(&cursor, out);
  if (cursor.bad) return false;
  *properties = view_of(cursor.at, left(&cursor));
  return true;
}

uint32_t mqtt_property_number(struct view properties, uint8_t id, uint32_t otherwise) {
  struct mqtt_property property;
  while (mqtt_property_next(&properties, &property)) {
    if (property.id == id) return property.number;
  }
  return otherwise;
}

static bool may_repeat(uint8_t id, uint16_t packet) {
  return id == MQTT_USER_PROPERTY || (id == MQTT_SUBSCRIPTION_ID && packet == IN(MQTT_PUBLISH));
}

static bool property_is_good(const struct mqtt_property *property, uint16_t packet) {
  if (!(properties_known[property->id].packets & packet)) return false;
  if (properties_known[property->id].not_zero && property->number == 0) return false;
  return form_of(property->id) != FORM_FLAG || property->number <= 1;
}

/* The length and the properties behind it; packet: where they stand. */
static struct view take_properties(struct cursor *cursor, enum mqtt_version version, uint16_t packet) {
  if (version != MQTT_5) return (struct view){0};
  uint32_t len = take_varint(cursor);
  struct view all = take(cursor, len), rest = all;
  struct mqtt_property property;
  uint64_t seen = 0;
  while (mqtt_property_next(&rest, &property)) {
    uint64_t bit = UINT64_C(1) << property.id;
    if (!property_is_good(&property, packet) || (seen & bit && !may_repeat(property.id, packet))) {
      cursor->bad = true;
    }
    seen |= bit;
  }
  if (rest.len > 0) cursor->bad = true;
  return all;
}

/* --- writing --- */

static uint8_t *put_number(uint8_t *out, uint32_t number, unsigned bytes) {
  while (bytes-- > 0)
    *out++ = (uint8_t)(number >> (8 * bytes));
  return out;
}

static size_t varint_size(size_t number) {
  return number < 128 ? 1 : number < 16384 ? 2 : number < 2097152 ? 3 : 4;
}

static uint8_t *put_varint(uint8_t *out, size_t number) {
  for (; number > 127; number >>= 7)
    *out++ = (uint8_t)(number | 0x80);
  *out++ = (uint8_t)number;
  return out;
}

static uint8_t *put_raw(uint8_t *out, struct view view) {
  if (view.len > 0) memcpy(out, view.data, view.len);
  return out + view.len;
}

static uint8_t *put_binary(uint8_t *out, struct view view) {
  return put_raw(put_number(out, (uint32_t)view.len, 2), view);
}

static size_t property_size(const struct mqtt_property *property) {
  switch (form_of(property->id)) {
  case FORM_FLAG:
    return 2;
  case FORM_TWO:
    return 3;
  case FORM_FOUR:
    return 5;
  case FORM_VARINT:
    return 1 + varint_size(property->number);
  case FORM_TEXT:
  case FORM_BINARY:
    return 3 + property->text.len;
  case FORM_PAIR:
    return 5 + property->text.len + property->value.len;
  case FORM_NONE:
    break;
  }
  return 0;
}

static uint8_t *put_property(uint8_t *out, const struct mqtt_property *property) {
  enum form form = form_of(property->id);
  if (form == FORM_NONE) return out;
  *out++ = property->id;
  switch (form) {
  case FORM_FLAG:
    return put_number(out, property->number, 1);
  case FORM_TWO:
    return put_number(out, property->number, 2);
  case FORM_FOUR:
    return put_number(out, property->number, 4);
  case FORM_VARINT:
    return put_varint(out, property->number);
  case FORM_PAIR:
    return put_binary(put_binary(out, property->text), property->value);
  default:
    return put_binary(out, property->text);
  }
}

size_t mqtt_properties_size(const struct mqtt_property *property, size_t count) {
  size_t size = 0;
  for (size_t i = 0; i < count; i++)
    size += property_size(&property[i]);
  return size;
}

uint8_t *mqtt_write_properties(uint8_t *out, const struct mqtt_property *property, size_t count) {
  for (size_t i = 0; i < count; i++)
    out = put_property(out, &property[i]);
  return out;
}

/* Properties with their length in front: nothing in version 3.1.1. */
static size_t block_size(enum mqtt_version version, struct view properties) {
  return version == MQTT_5 ? varint_size(properties.len) + properties.len : 0;
}

static uint8_t *put_block(uint8_t *out, enum mqtt_version version, struct view properties) {
  return version == MQTT_5 ? put_raw(put_varint(out, properties.len), properties) : out;
}

/* --- packets --- */

size_t mqtt_packet_size(size_t body_len) {
  return body_len > REMAINING_MAX ? 0 : 1 + varint_size(body_len) + body_len;
}

static uint8_t *put_header(uint8_t *out, enum mqtt_type type, uint8_t flags, size_t body_len) {
  *out++ = (uint8_t)((unsigned)type << 4 | flags);
  return put_varint(out, body_len);
}

static uint8_t reserved_flags(enum mqtt_type type) {
  return type == MQTT_PUBREL || type == MQTT_SUBSCRIBE || type == MQTT_UNSUBSCRIBE ? 2 : 0;
}

/* The remaining length behind the first byte: its bytes, 0 while some are missing, -1 when it is malformed. */
static int read_remaining(const uint8_t *data, size_t len, uint32_t *remaining) {
  *remaining = 0;
  for (unsigned i = 0; i < 4; i++) {
    if (1 + i >= len) return 0;
    uint8_t byte = data[1 + i];
    *remaining |= (uint32_t)(byte & 0x7f) << (7 * i);
    if (!(byte & 0x80)) return i > 0 && byte == 0 ? -1 : (int)i + 1;
  }
  return -1;
}

enum mqtt_result mqtt_read_packet(const uint8_t *data, size_t len, uint32_t max_bytes, struct mqtt_packet *out) {
  if (len == 0) return MQTT_PARTIAL;
  uint8_t type = data[0] >> 4, flags = data[0] & 0x0f;
  if (type == 0) return MQTT_BAD;
  if (type != MQTT_PUBLISH && flags != reserved_flags((enum mqtt_type)type)) return MQTT_BAD;
  uint32_t remaining;
  int head = read_remaining(data, len, &remaining);
  if (head < 0) return MQTT_BAD;
  if (head == 0) return MQTT_PARTIAL;
  size_t size = 1 + (size_t)head + remaining;
  if (size > max_bytes) return MQTT_TOO_LARGE;
  if (len < size) return MQTT_PARTIAL;
  *out = (struct mqtt_packet){
      .type = (enum mqtt_type)type, .flags = flags, .body = view_of(data + 1 + head, remaining), .size = size};
  return MQTT_OK;
}

static bool ended(const struct cursor *cursor) {
  return !cursor->bad && cursor->at == cursor->end;
}

/* --- CONNECT --- */

static size_t connect_body(const struct mqtt_connect *c) {
  size_t size = 2 + sizeof(PROTOCOL) - 1 + 4 + block_size(c->version, c->properties) + 2 + c->client_id.len;
  if (c->has_will) {
    size += block_size(c->version, c->will.properties) + 2 + c->will.topic.len + 2 + c->will.message.len;
  }
  if (c->has_user) size += 2 + c->user.len;
  if (c->has_password) size += 2 + c->password.len;
  return size;
}

size_t mqtt_connect_size(const struct mqtt_connect *connect) {
  return mqtt_packet_size(connect_body(connect));
}

uint8_t *mqtt_write_connect(uint8_t *out, const struct mqtt_connect *c) {
  out = put_header(out, MQTT_CONNECT, 0, connect_body(c));
  out = put_binary(out, view_str(PROTOCOL));
  *out++ = (uint8_t)c->version;
  unsigned flags = (c->has_user ? 0x80U : 0) | (c->has_password ? 0x40U : 0) | (c->clean ? 0x02U : 0);
  if (c->has_will) flags |= (c->will.retain ? 0x20U : 0) | (unsigned)c->will.qos << 3 | 0x04U;
  *out++ = (uint8_t)flags;
  out = put_number(out, c->keep_alive_s, 2);
  out = put_block(out, c->version, c->properties);
  out = put_binary(out, c->client_id);
  if (c->has_will) {
    out = put_block(out, c->version, c->will.properties);
    out = put_binary(put_binary(out, c->will.topic), c->will.message);
  }
  if (c->has_user) out = put_binary(out, c->user);
  return c->has_password ? put_binary(out, c->password) : out;
}

static bool connect_flags_are_good(const struct mqtt_connect *c, unsigned flags) {
  if (flags & 0x01) return false;
  if (!c->has_will) return (flags & 0x38) == 0;
  if (c->will.qos > 2) return false;
  return true;
}

bool mqtt_read_connect(const struct mqtt_packet *packet, struct mqtt_connect *out) {
  struct cursor cursor = cursor_of(packet->body);
  struct view protocol = take_text(&cursor);
  uint32_t version = take_number(&cursor, 1), flags = take_number(&cursor, 1);
  if (cursor.bad || !view_is(protocol, PROTOCOL) || (version != MQTT_3_1_1 && version != MQTT_5)) return false;
  *out = (struct mqtt_connect){
      .version = (enum mqtt_version)version,
      .clean = flags & 0x02,
      .has_will = flags & 0x04,
      .has_user = flags & 0x80,
      .has_password = flags & 0x40,
      .will = {.qos = flags >> 3 & 3, .retain = flags & 0x20},
  };
  if (!connect_flags_are_good(out, flags)) return false;
  if (version == MQTT_3_1_1 && out->has_password && !out->has_user) return false;
  out->keep_alive_s = (uint16_t)take_number(&cursor, 2);
  out->properties = take_properties(&cursor, out->version, IN(MQTT_CONNECT));
  out->client_id = take_text(&cursor);
  if (out->has_will) {
    out->will.properties = take_properties(&cursor, out->version, IN_WILL);
    out->will.topic = take_text(&cursor);
    out->will.message = take_binary(&cursor);
  }
  if (out->has_user) out->user = take_text(&cursor);
  if (out->has_password) out->password = take_binary(&cursor);
  return ended(&cursor) && (!out->has_will || is_topic(out->will.topic));
}

/* --- CONNACK --- */

uint8_t *mqtt_write_connack(uint8_t *out, enum mqtt_version version, const struct mqtt_connack *connack) {
  out = put_header(out, MQTT_CONNACK, 0, 2 + block_size(version, connack->properties));
  *out++ = connack->session_present;
  *out++ = connack->code;
  return put_block(out, version, connack->properties);
}

bool mqtt_read_connack(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_connack *out) {
  struct cursor cursor = cursor_of(packet->body);
  uint32_t flags = take_number(&cursor, 1);
  *out = (struct mqtt_connack){.session_present = flags & 1, .code = (uint8_t)take_number(&cursor, 1)};
  /* A server that refuses version 5 may answer in the form of 3.1.1. */
  if (version != MQTT_5 || left(&cursor) > 0) out->properties = take_properties(&cursor, version, IN(MQTT_CONNACK));
  return ended(&cursor) && flags <= 1 && !(out->session_present && out->code != 0);
}

/* --- PUBLISH --- */

static size_t publish_body(enum mqtt_version version, const struct mqtt_publish *p) {
  return 2 + p->topic.len + (p->qos > 0 ? 2 : 0) + block_size(version, p->properties) + p->payload.len;
}

size_t mqtt_publish_size(enum mqtt_version version, const struct mqtt_publish *publish) {
  return mqtt_packet_size(publish_body(version, publish));
}

uint8_t *mqtt_write_publish(uint8_t *out, enum mqtt_version version, const struct mqtt_publish *p) {
  unsigned flags = (p->duplicate ? 8U : 0) | (unsigned)p->qos << 1 | (p->retain ? 1U : 0);
  out = put_header(out, MQTT_PUBLISH, (uint8_t)flags, publish_body(version, p));
  out = put_binary(out, p->topic);
  if (p->qos > 0) out = put_number(out, p->id, 2);
  out = put_block(out, version, p->properties);
  if (p->payload.data) put_raw(out, p->payload);
  return out;
}

bool mqtt_read_publish(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_publish *out) {
  struct cursor cursor = cursor_of(packet->body);
  *out =
      (struct mqtt_publish){.duplicate = packet->flags & 8, .qos = packet->flags >> 1 & 3, .retain = packet->flags & 1};
  if (out->qos > 2 || (out->qos == 0 && out->duplicate)) return false;
  out->topic = take_text(&cursor);
  if (out->qos > 0) out->id = (uint16_t)take_number(&cursor, 2);
  out->properties = take_properties(&cursor, version, IN(MQTT_PUBLISH));
  if (cursor.bad || (out->qos > 0 && out->id == 0)) return false;
  bool aliased = version == MQTT_5 && out->topic.len == 0;
  if (aliased && mqtt_property_number(out->properties, MQTT_TOPIC_ALIAS, 0) == 0) return false;
  if (!aliased && !is_topic(out->topic)) return false;
  out->payload = take(&cursor, left(&cursor));
  return true;
}

/* --- PUBACK, PUBREC, PUBREL, PUBCOMP --- */

/* Version 5 leaves the properties out when there are none, and the code when it is 0 too. */
static size_t ack_body(enum mqtt_version version, const struct mqtt_ack *ack) {
  if (version != MQTT_5) return 2;
  if (ack->properties.len > 0) return 3 + block_size(version, ack->properties);
  return ack->code ? 3 : 2;
}

size_t mqtt_ack_size(enum mqtt_version version, const struct mqtt_ack *ack) {
  return mqtt_packet_size(ack_body(version, ack));
}

uint8_t *mqtt_write_ack(uint8_t *out, enum mqtt_version version, enum mqtt_type type, const struct mqtt_ack *ack) {
  size_t body = ack_body(version, ack);
  out = put_number(put_header(out, type, reserved_flags(type), body), ack->id, 2);
  if (body > 2) *out++ = ack->code;
  return body > 3 ? put_block(out, version, ack->properties) : out;
}

bool mqtt_read_ack(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_ack *out) {
  struct cursor cursor = cursor_of(packet->body);
  *out = (struct mqtt_ack){.id = (uint16_t)take_number(&cursor, 2)};
  if (version == MQTT_5 && left(&cursor) > 0) out->code = (uint8_t)take_number(&cursor, 1);
  if (version == MQTT_5 && left(&cursor) > 0) out->properties = take_properties(&cursor, version, IN(packet->type));
  return ended(&cursor) && out->id != 0;
}

/* --- SUBSCRIBE, UNSUBSCRIBE and their answers --- */

size_t mqtt_filters_size(enum mqtt_type type, const struct mqtt_filter *filter, size_t count) {
  size_t size = 0;
  for (size_t i = 0; i < count; i++)
    size += 2 + filter[i].topic.len + (type == MQTT_SUBSCRIBE);
  return size;
}

uint8_t *mqtt_write_filters(uint8_t *out, enum mqtt_type type, const struct mqtt_filter *filter, size_t count) {
  for (size_t i = 0; i < count; i++) {
    out = put_binary(out, filter[i].topic);
    if (type == MQTT_SUBSCRIBE) *out++ = filter[i].options;
  }
  return out;
}

bool mqtt_filter_next(enum mqtt_type type, struct view *filters, struct mqtt_filter *out) {
  if (filters->len == 0) return false;
  struct cursor cursor = cursor_of(*filters);
  *out = (struct mqtt_filter){.topic = take_text(&cursor)};
  if (type == MQTT_SUBSCRIBE) out->options = (uint8_t)take_number(&cursor, 1);
  if (cursor.bad || out->topic.len == 0) return false;
  *filters = view_of(cursor.at, left(&cursor));
  return true;
}

static size_t subscribe_body(enum mqtt_version version, const struct mqtt_subscribe *s) {
  return 2 + block_size(version, s->properties) + s->filters.len;
}

size_t mqtt_subscribe_size(enum mqtt_version version, const struct mqtt_subscribe *subscribe) {
  return mqtt_packet_size(subscribe_body(version, subscribe));
}

uint8_t *mqtt_write_subscribe(
    uint8_t *out, enum mqtt_version version, enum mqtt_type type, const struct mqtt_subscribe *subscribe) {
  out = put_header(out, type, reserved_flags(type), subscribe_body(version, subscribe));
  out = put_number(out, subscribe->id, 2);
  return put_raw(put_block(out, version, subscribe->properties), subscribe->filters);
}

/* Version 3.1.1 has but the two bits of the qos, version 5 reserves the upper two bits and the value 3 of a field. */
static bool options_are_good(enum mqtt_version version, uint8_t options) {
  if ((options & 3) == 3) return false;
  return version == MQTT_5 ? (options & 0xc0) == 0 && (options & 0x30) != 0x30 : options <= 2;
}

static bool filters_are_good(enum mqtt_version version, enum mqtt_type type, struct view filters) {
  struct mqtt_filter filter;
  if (filters.len == 0) return false;
  while (mqtt_filter_next(type, &filters, &filter)) {
    if (!options_are_good(version, filter.options)) return false;
  }
  return filters.len == 0;
}

bool mqtt_read_subscribe(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_subscribe *out) {
  struct cursor cursor = cursor_of(packet->body);
  *out = (struct mqtt_subscribe){.id = (uint16_t)take_number(&cursor, 2)};
  out->properties = take_properties(&cursor, version, IN(packet->type));
  out->filters = take(&cursor, left(&cursor));
  return !cursor.bad && out->id != 0 && filters_are_good(version, packet->type, out->filters);
}

static size_t suback_body(enum mqtt_version version, const struct mqtt_suback *s) {
  return 2 + block_size(version, s->properties) + s->codes.len;
}

uint8_t *mqtt_write_suback(
    uint8_t *out, enum mqtt_version version, enum mqtt_type type, const struct mqtt_suback *suback) {
  out = put_number(put_header(out, type, 0, suback_body(version, suback)), suback->id, 2);
  return put_raw(put_block(out, version, suback->properties), suback->codes);
}

bool mqtt_read_suback(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_suback *out) {
  struct cursor cursor = cursor_of(packet->body);
  *out = (struct mqtt_suback){.id = (uint16_t)take_number(&cursor, 2)};
  out->properties = take_properties(&cursor, version, IN(packet->type));
  out->codes = take(&cursor, left(&cursor));
  bool has_codes = packet->type == MQTT_SUBACK || version == MQTT_5;
  return !cursor.bad && out->id != 0 && (out->codes.len > 0) == has_codes;
}

/* --- DISCONNECT, AUTH, PINGREQ, PINGRESP --- */

static size_t notice_body(enum mqtt_version version, const struct mqtt_notice *notice) {
  if (version != MQTT_5) return 0;
  if (notice->properties.len > 0) return 1 + block_size(version, notice->properties);
  return notice->code ? 1 : 0;
}

size_t mqtt_notice_size(enum mqtt_version version, const struct mqtt_notice *notice) {
  return mqtt_packet_size(notice_body(version, notice));
}

uint8_t *mqtt_write_notice(
    uint8_t *out, enum mqtt_version version, enum mqtt_type type, const struct mqtt_notice *notice) {
  size_t body = notice_body(version, notice);
  out = put_header(out, type, 0, body);
  if (body > 0) *out++ = notice->code;
  return body > 1 ? put_block(out, version, notice->properties) : out;
}

bool mqtt_read_notice(enum mqtt_version version, const struct mqtt_packet *packet, struct mqtt_notice *out) {
  struct cursor cursor = cursor_of(packet->body);
  *out = (struct mqtt_notice){0};
  if (version == MQTT_5 && left(&cursor) > 0) out->code = (uint8_t)take_number(&cursor, 1);
  if (version == MQTT_5 && left(&cursor) > 0) out->properties = take_properties(&cursor, version, IN(packet->type));
  return ended(&cursor) && (packet->type != MQTT_AUTH || version == MQTT_5);
}

uint8_t *mqtt_write_ping(uint8_t *out, enum mqtt_type type) {
  return put_header(out, type, 0, 0);
}

/* --- names --- */

const char *mqtt_reason_name(int32_t code) {
  static const char *const returned[] = {
      [1] = "unacceptable protocol version",
      [2] = "identifier rejected",
      [3] = "server unavailable",
      [4] = "bad user name or password",
      [5] = "not authorized",
  };
  static const char *const reasons[] = {
      [0x00] = "unspecified error",
      [0x01] = "malformed packet",
      [0x02] = "protocol error",
      [0x03] = "implementation specific error",
      [0x04] = "unsupported protocol version",
      [0x05] = "client identifier not valid",
      [0x06] = "bad user name or password",
      [0x07] = "not authorized",
      [0x08] = "server unavailable",
      [0x09] = "server busy",
      [0x0a] = "banned",
      [0x0b] = "server shutting down",
      [0x0c] = "bad authentication method",
      [0x0d] = "keep alive timeout",
      [0x0e] = "session taken over",
      [0x0f] = "topic filter invalid",
      [0x10] = "topic name invalid",
      [0x11] = "packet identifier in use",
      [0x12] = "packet identifier not found",
      [0x13] = "receive maximum exceeded",
      [0x14] = "topic alias invalid",
      [0x15] = "packet too large",
      [0x16] = "message rate too high",
      [0x17] = "quota exceeded",
      [0x18] = "administrative action",
      [0x19] = "payload format invalid",
      [0x1a] = "retain not supported",
      [0x1b] = "QoS not supported",
      [0x1c] = "use another server",
      [0x1d] = "server moved",
      [0x1e] = "shared subscriptions not supported",
      [0x1f] = "connection rate exceeded",
      [0x20] = "maximum connect time",
      [0x21] = "subscription identifiers not supported",
      [0x22] = "wildcard subscriptions not supported",
  };
  if (code > 0 && code < (int32_t)(sizeof returned / sizeof returned[0])) return returned[code];
  int32_t reason = code - 0x80;
  if (reason < 0 || reason >= (int32_t)(sizeof reasons / sizeof reasons[0])) return NULL;
  return reasons[reason];
}
