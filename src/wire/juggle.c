#include "wire/juggle.h"

#include "wire/pb.h"

/* Each body is described by a table from field number to the member that holds it; one reader, one sizer and one
 * writer serve them all. */
enum slot_kind { SLOT_NONE, SLOT_INT32, SLOT_INT64, SLOT_BOOL, SLOT_BYTES, SLOT_WHOLE_INPUT };

struct slot {
  uint8_t kind; /* enum slot_kind */
  uint8_t offset;
};

struct shape {
  const struct slot *slots; /* indexed by field number */
  uint32_t count;
};

#define SHAPE(table) ((struct shape){(table), sizeof(table) / sizeof(table)[0]})

static inline void read_number(struct slot slot, uint64_t value, uint8_t *member) {
  if (slot.kind == SLOT_INT64) {
    *(int64_t *)member = (int64_t)value;
  } else if (slot.kind == SLOT_INT32) {
    *(int32_t *)member = (int32_t)(uint32_t)value;
  } else {
    *(bool *)member = value != 0;
  }
}

static inline bool read_slot(struct slot slot, const struct pb_field *field, struct view input, uint8_t *out) {
  uint8_t *member = out + slot.offset;
  if (slot.kind >= SLOT_BYTES) {
    if (field->type != PB_BYTES) return false;
    *(struct view *)member = slot.kind == SLOT_BYTES ? field->bytes : input;
    return true;
  }
  if (field->type != PB_VARINT) return false;
  read_number(slot, field->value, member);
  return true;
}

/* out: zeroed by the caller. */
static inline bool read_shape(struct shape shape, struct view bytes, void *out) {
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (field.number >= shape.count || shape.slots[field.number].kind == SLOT_NONE) continue;
    if (!read_slot(shape.slots[field.number], &field, bytes, out)) return false;
  }
  return !reader.bad;
}

static uint64_t slot_value(struct slot slot, const uint8_t *member) {
  if (slot.kind == SLOT_BOOL) return *(const bool *)member;
  if (slot.kind == SLOT_INT64) return (uint64_t) * (const int64_t *)member;
  return (uint64_t)(int64_t) * (const int32_t *)member;
}

static inline size_t shape_size(struct shape shape, const void *in) {
  size_t size = 0;
  for (uint32_t number = 1; number < shape.count; number++) {
    struct slot slot = shape.slots[number];
    const uint8_t *member = (const uint8_t *)in + slot.offset;
    if (slot.kind == SLOT_NONE || slot.kind == SLOT_WHOLE_INPUT) continue;
    size += slot.kind == SLOT_BYTES ? pb_bytes_field_size(number, ((const struct view *)member)->len)
                                    : pb_uint_field_size(number, slot_value(slot, member));
  }
  return size;
}

/* A view without data gets its head only: the caller writes the bytes. */
static uint8_t *write_bytes_slot(uint8_t *at, uint32_t number, const struct view *bytes) {
  if (bytes->len && !bytes->data) return pb_write_bytes_head(at, number, bytes->len);
  return pb_write_bytes_field(at, number, *bytes);
}

static inline uint8_t *write_shape(uint8_t *at, struct shape shape, const void *in) {
  for (uint32_t number = 1; number < shape.count; number++) {
    struct slot slot = shape.slots[number];
    const uint8_t *member = (const uint8_t *)in + slot.offset;
    if (slot.kind == SLOT_NONE || slot.kind == SLOT_WHOLE_INPUT) continue;
    at = slot.kind == SLOT_BYTES ? write_bytes_slot(at, number, (const struct view *)member)
                                 : pb_write_uint_field(at, number, slot_value(slot, member));
  }
  return at;
}

/* ---- Envelope ---- */

enum { ENVELOPE_PAYLOAD = 4, ENVELOPE_BODY_FIRST = 11, ENVELOPE_BODY_LAST = 18 };

void juggle_xor(uint8_t *data, size_t len, const struct juggle_key *key) {
  uint64_t mask;
  memcpy(&mask, key->byte, sizeof mask);
  size_t i = 0;
  for (; i + sizeof mask <= len; i += sizeof mask) {
    uint64_t word;
    memcpy(&word, data + i, sizeof word);
    word ^= mask;
    memcpy(data + i, &word, sizeof word);
  }
  for (; i < len; i++) {
    data[i] ^= key->byte[i % JUGGLE_KEY_BYTES];
  }
}

void juggle_key_learn(struct view connect_payload, struct juggle_key *out) {
  static const uint8_t known[JUGGLE_KEY_BYTES] = {0x0a, 8, 'j', 'u', 'g', '9', 'l', 'e'};
  memset(out, 0, sizeof *out);
  if (connect_payload.len <= JUGGLE_KEY_BYTES) return;
  for (size_t i = 0; i < JUGGLE_KEY_BYTES; i++) {
    out->byte[i] = connect_payload.data[i] ^ known[i];
  }
}

static const struct slot envelope_slots[] = {
    [1] = {SLOT_INT32, offsetof(struct juggle_envelope, version)},
    [2] = {SLOT_INT32, offsetof(struct juggle_envelope, cmd)},
    [3] = {SLOT_INT32, offsetof(struct juggle_envelope, qos)},
    [4] = {SLOT_BYTES, offsetof(struct juggle_envelope, payload)},
    [11] = {SLOT_BYTES, offsetof(struct juggle_envelope, body)},
    [12] = {SLOT_BYTES, offsetof(struct juggle_envelope, body)},
    [13] = {SLOT_BYTES, offsetof(struct juggle_envelope, body)},
    [14] = {SLOT_BYTES, offsetof(struct juggle_envelope, body)},
    [15] = {SLOT_BYTES, offsetof(struct juggle_envelope, body)},
    [16] = {SLOT_BYTES, offsetof(struct juggle_envelope, body)},
    [17] = {SLOT_BYTES, offsetof(struct juggle_envelope, body)},
    [18] = {SLOT_BYTES, offsetof(struct juggle_envelope, body)},
};

bool juggle_read_envelope(struct view bytes, struct juggle_envelope *out) {
  *out = (struct juggle_envelope){0};
  struct shape shape = SHAPE(envelope_slots);
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (field.number >= shape.count || shape.slots[field.number].kind == SLOT_NONE) continue;
    if (!read_slot(shape.slots[field.number], &field, bytes, (uint8_t *)out)) return false;
    if (field.number >= ENVELOPE_BODY_FIRST) out->body_field = field.number;
  }
  return !reader.bad;
}

uint32_t juggle_body_field(int32_t cmd) {
  if (cmd < JUGGLE_CONNECT || cmd > JUGGLE_QUERY_CONFIRM) return 0;
  return ENVELOPE_BODY_FIRST + (uint32_t)cmd;
}

/* The field that carries the body, 0 when there is none: an empty body is written in plain mode only. */
static uint32_t carrier(int32_t cmd, size_t body_len, bool obfuscated) {
  uint32_t field = juggle_body_field(cmd);
  if (!field || !obfuscated) return field;
  return body_len ? ENVELOPE_PAYLOAD : 0;
}

size_t juggle_envelope_head_size(int32_t cmd, int32_t qos, size_t body_len, bool obfuscated) {
  uint32_t field = carrier(cmd, body_len, obfuscated);
  size_t size = pb_uint_field_size(1, 1) + pb_uint_field_size(2, (uint64_t)(int64_t)cmd) +
                pb_uint_field_size(3, (uint64_t)(int64_t)qos);
  return field ? size + pb_bytes_head_size(field, body_len) : size;
}

uint8_t *juggle_write_envelope_head(uint8_t *at, int32_t cmd, int32_t qos, size_t body_len, bool obfuscated) {
  uint32_t field = carrier(cmd, body_len, obfuscated);
  at = pb_write_uint_field(at, 1, 1);
  at = pb_write_uint_field(at, 2, (uint64_t)(int64_t)cmd);
  at = pb_write_uint_field(at, 3, (uint64_t)(int64_t)qos);
  return field ? pb_write_bytes_head(at, field, body_len) : at;
}

/* ---- Bodies ---- */

static const struct slot connect_slots[] = {
    [1] = {SLOT_BYTES, offsetof(struct juggle_connect, proto_id)},
    [2] = {SLOT_BYTES, offsetof(struct juggle_connect, sdk_version)},
    [3] = {SLOT_BYTES, offsetof(struct juggle_connect, appkey)},
    [4] = {SLOT_BYTES, offsetof(struct juggle_connect, token)},
    [5] = {SLOT_BYTES, offsetof(struct juggle_connect, device_id)},
    [6] = {SLOT_BYTES, offsetof(struct juggle_connect, platform)},
    [11] = {SLOT_BYTES, offsetof(struct juggle_connect, network_id)},
    [12] = {SLOT_BYTES, offsetof(struct juggle_connect, isp_num)},
    [13] = {SLOT_BYTES, offsetof(struct juggle_connect, client_ip)},
    [14] = {SLOT_BYTES, offsetof(struct juggle_connect, package_name)},
    [15] = {SLOT_BYTES, offsetof(struct juggle_connect, push_channel)},
    [16] = {SLOT_BYTES, offsetof(struct juggle_connect, ext)},
    [17] = {SLOT_BYTES, offsetof(struct juggle_connect, instance_id)},
};

bool juggle_read_connect(struct view body, struct juggle_connect *out) {
  *out = (struct juggle_connect){0};
  return read_shape(SHAPE(connect_slots), body, out);
}

size_t juggle_connect_size(const struct juggle_connect *connect) {
  return shape_size(SHAPE(connect_slots), connect);
}

uint8_t *juggle_write_connect(uint8_t *at, const struct juggle_connect *connect) {
  return write_shape(at, SHAPE(connect_slots), connect);
}

static const struct slot connect_ack_slots[] = {
    [1] = {SLOT_INT32, offsetof(struct juggle_connect_ack, code)},
    [2] = {SLOT_BYTES, offsetof(struct juggle_connect_ack, user_id)},
    [3] = {SLOT_BYTES, offsetof(struct juggle_connect_ack, session)},
    [4] = {SLOT_INT64, offsetof(struct juggle_connect_ack, timestamp_ms)},
    [5] = {SLOT_BYTES, offsetof(struct juggle_connect_ack, ext)},
};

bool juggle_read_connect_ack(struct view body, struct juggle_connect_ack *out) {
  *out = (struct juggle_connect_ack){0};
  return read_shape(SHAPE(connect_ack_slots), body, out);
}

size_t juggle_connect_ack_size(const struct juggle_connect_ack *ack) {
  return shape_size(SHAPE(connect_ack_slots), ack);
}

uint8_t *juggle_write_connect_ack(uint8_t *at, const struct juggle_connect_ack *ack) {
  return write_shape(at, SHAPE(connect_ack_slots), ack);
}

static const struct slot disconnect_slots[] = {
    [1] = {SLOT_INT32, offsetof(struct juggle_disconnect, code)},
    [2] = {SLOT_INT64, offsetof(struct juggle_disconnect, timestamp_ms)},
    [3] = {SLOT_BYTES, offsetof(struct juggle_disconnect, ext)},
};

bool juggle_read_disconnect(struct view body, struct juggle_disconnect *out) {
  *out = (struct juggle_disconnect){0};
  return read_shape(SHAPE(disconnect_slots), body, out);
}

size_t juggle_disconnect_size(const struct juggle_disconnect *disconnect) {
  return shape_size(SHAPE(disconnect_slots), disconnect);
}

uint8_t *juggle_write_disconnect(uint8_t *at, const struct juggle_disconnect *disconnect) {
  return write_shape(at, SHAPE(disconnect_slots), disconnect);
}

static const struct slot request_slots[] = {
    [1] = {SLOT_INT32, offsetof(struct juggle_request, index)},
    [2] = {SLOT_BYTES, offsetof(struct juggle_request, topic)},
    [3] = {SLOT_BYTES, offsetof(struct juggle_request, target)},
    [4] = {SLOT_INT64, offsetof(struct juggle_request, timestamp_ms)},
    [5] = {SLOT_BYTES, offsetof(struct juggle_request, data)},
};

bool juggle_read_request(struct view body, struct juggle_request *out) {
  *out = (struct juggle_request){0};
  return read_shape(SHAPE(request_slots), body, out);
}

size_t juggle_request_size(const struct juggle_request *request) {
  return shape_size(SHAPE(request_slots), request);
}

uint8_t *juggle_write_request(uint8_t *at, const struct juggle_request *request) {
  return write_shape(at, SHAPE(request_slots), request);
}

static const struct slot publish_ack_slots[] = {
    [1] = {SLOT_INT32, offsetof(struct juggle_publish_ack, index)},
    [2] = {SLOT_INT32, offsetof(struct juggle_publish_ack, code)},
    [3] = {SLOT_BYTES, offsetof(struct juggle_publish_ack, msg_id)},
    [4] = {SLOT_INT64, offsetof(struct juggle_publish_ack, timestamp_ms)},
    [5] = {SLOT_INT64, offsetof(struct juggle_publish_ack, msg_seq_no)},
    [6] = {SLOT_INT32, offsetof(struct juggle_publish_ack, member_count)},
    [7] = {SLOT_BYTES, offsetof(struct juggle_publish_ack, client_msg_id)},
};

bool juggle_read_publish_ack(struct view body, struct juggle_publish_ack *out) {
  *out = (struct juggle_publish_ack){0};
  return read_shape(SHAPE(publish_ack_slots), body, out);
}

size_t juggle_publish_ack_size(const struct juggle_publish_ack *ack) {
  return shape_size(SHAPE(publish_ack_slots), ack);
}

uint8_t *juggle_write_publish_ack(uint8_t *at, const struct juggle_publish_ack *ack) {
  return write_shape(at, SHAPE(publish_ack_slots), ack);
}

static const struct slot query_ack_slots[] = {
    [1] = {SLOT_INT32, offsetof(struct juggle_query_ack, index)},
    [2] = {SLOT_INT32, offsetof(struct juggle_query_ack, code)},
    [3] = {SLOT_INT64, offsetof(struct juggle_query_ack, timestamp_ms)},
    [4] = {SLOT_BYTES, offsetof(struct juggle_query_ack, data)},
};

bool juggle_read_query_ack(struct view body, struct juggle_query_ack *out) {
  *out = (struct juggle_query_ack){0};
  return read_shape(SHAPE(query_ack_slots), body, out);
}

size_t juggle_query_ack_size(const struct juggle_query_ack *ack) {
  return shape_size(SHAPE(query_ack_slots), ack);
}

uint8_t *juggle_write_query_ack(uint8_t *at, const struct juggle_query_ack *ack) {
  return write_shape(at, SHAPE(query_ack_slots), ack);
}

/* ---- Topic messages ---- */

static const struct slot up_msg_slots[] = {
    [1] = {SLOT_BYTES, offsetof(struct juggle_up_msg, msg_type)},
    [2] = {SLOT_BYTES, offsetof(struct juggle_up_msg, content)},
    [3] = {SLOT_INT32, offsetof(struct juggle_up_msg, flags)},
    [4] = {SLOT_BYTES, offsetof(struct juggle_up_msg, client_uid)},
    [5] = {SLOT_BYTES, offsetof(struct juggle_up_msg, push_data)},
    [6] = {SLOT_BYTES, offsetof(struct juggle_up_msg, mention_info)},
    [7] = {SLOT_BYTES, offsetof(struct juggle_up_msg, refer_msg)},
    [8] = {SLOT_WHOLE_INPUT, offsetof(struct juggle_up_msg, to_user_ids)},
    [9] = {SLOT_BYTES, offsetof(struct juggle_up_msg, merged_msgs)},
    [10] = {SLOT_BYTES, offsetof(struct juggle_up_msg, search_text)},
    [11] = {SLOT_INT64, offsetof(struct juggle_up_msg, life_time_ms)},
    [12] = {SLOT_INT64, offsetof(struct juggle_up_msg, life_time_after_read_ms)},
    [13] = {SLOT_BYTES, offsetof(struct juggle_up_msg, sub_channel)},
};

bool juggle_read_up_msg(struct view data, struct juggle_up_msg *out) {
  *out = (struct juggle_up_msg){0};
  return read_shape(SHAPE(up_msg_slots), data, out);
}

size_t juggle_up_msg_size(const struct juggle_up_msg *msg) {
  return shape_size(SHAPE(up_msg_slots), msg);
}

uint8_t *juggle_write_up_msg(uint8_t *at, const struct juggle_up_msg *msg) {
  return write_shape(at, SHAPE(up_msg_slots), msg);
}

static const struct slot user_slots[] = {
    [1] = {SLOT_BYTES, offsetof(struct juggle_user, user_id)},
    [2] = {SLOT_BYTES, offsetof(struct juggle_user, nickname)},
    [3] = {SLOT_BYTES, offsetof(struct juggle_user, portrait)},
    [5] = {SLOT_INT64, offsetof(struct juggle_user, updated_ms)},
    [8] = {SLOT_INT32, offsetof(struct juggle_user, user_type)},
};

size_t juggle_user_size(const struct juggle_user *user) {
  return shape_size(SHAPE(user_slots), user);
}

uint8_t *juggle_write_user(uint8_t *at, const struct juggle_user *user) {
  return write_shape(at, SHAPE(user_slots), user);
}

static const struct slot down_msg_slots[] = {
    [1] = {SLOT_BYTES, offsetof(struct juggle_down_msg, target_id)},
    [2] = {SLOT_INT32, offsetof(struct juggle_down_msg, channel)},
    [3] = {SLOT_BYTES, offsetof(struct juggle_down_msg, msg_type)},
    [4] = {SLOT_BYTES, offsetof(struct juggle_down_msg, sender_id)},
    [5] = {SLOT_BYTES, offsetof(struct juggle_down_msg, msg_id)},
    [6] = {SLOT_INT64, offsetof(struct juggle_down_msg, msg_seq_no)},
    [7] = {SLOT_BYTES, offsetof(struct juggle_down_msg, content)},
    [8] = {SLOT_INT64, offsetof(struct juggle_down_msg, msg_time_ms)},
    [9] = {SLOT_INT32, offsetof(struct juggle_down_msg, flags)},
    [10] = {SLOT_BOOL, offsetof(struct juggle_down_msg, is_send)},
    [12] = {SLOT_BYTES, offsetof(struct juggle_down_msg, client_uid)},
    [21] = {SLOT_INT32, offsetof(struct juggle_down_msg, member_count)},
    [23] = {SLOT_INT64, offsetof(struct juggle_down_msg, unread_index)},
};

bool juggle_read_down_msg(struct view data, struct juggle_down_msg *out) {
  *out = (struct juggle_down_msg){0};
  return read_shape(SHAPE(down_msg_slots), data, out);
}

static const struct slot notify_slots[] = {
    [1] = {SLOT_INT32, offsetof(struct juggle_notify, type)},
    [2] = {SLOT_INT64, offsetof(struct juggle_notify, sync_time_ms)},
    [3] = {SLOT_BYTES, offsetof(struct juggle_notify, room_id)},
};

bool juggle_read_notify(struct view data, struct juggle_notify *out) {
  *out = (struct juggle_notify){0};
  return read_shape(SHAPE(notify_slots), data, out);
}

size_t juggle_notify_size(const struct juggle_notify *notify) {
  return shape_size(SHAPE(notify_slots), notify);
}

uint8_t *juggle_write_notify(uint8_t *at, const struct juggle_notify *notify) {
  return write_shape(at, SHAPE(notify_slots), notify);
}

static const struct slot sync_request_slots[] = {
    [1] = {SLOT_INT64, offsetof(struct juggle_sync_request, sync_time_ms)},
    [2] = {SLOT_BOOL, offsetof(struct juggle_sync_request, contains_send_box)},
    [3] = {SLOT_INT64, offsetof(struct juggle_sync_request, send_box_sync_time_ms)},
};

bool juggle_read_sync_request(struct view data, struct juggle_sync_request *out) {
  *out = (struct juggle_sync_request){0};
  return read_shape(SHAPE(sync_request_slots), data, out);
}

size_t juggle_sync_request_size(const struct juggle_sync_request *request) {
  return shape_size(SHAPE(sync_request_slots), request);
}

uint8_t *juggle_write_sync_request(uint8_t *at, const struct juggle_sync_request *request) {
  return write_shape(at, SHAPE(sync_request_slots), request);
}

static const struct slot room_request_slots[] = {
    [1] = {SLOT_BYTES, offsetof(struct juggle_room_request, room_id)},
    [2] = {SLOT_BYTES, offsetof(struct juggle_room_request, name)},
    [3] = {SLOT_BOOL, offsetof(struct juggle_room_request, auto_create)},
};

bool juggle_read_room_request(struct view data, struct juggle_room_request *out) {
  *out = (struct juggle_room_request){0};
  return read_shape(SHAPE(room_request_slots), data, out);
}

size_t juggle_room_request_size(const struct juggle_room_request *request) {
  return shape_size(SHAPE(room_request_slots), request);
}

uint8_t *juggle_write_room_request(uint8_t *at, const struct juggle_room_request *request) {
  return write_shape(at, SHAPE(room_request_slots), request);
}

static const struct slot room_sync_slots[] = {
    [1] = {SLOT_BYTES, offsetof(struct juggle_room_sync, room_id)},
    [2] = {SLOT_INT64, offsetof(struct juggle_room_sync, sync_time_ms)},
    [3] = {SLOT_INT32, offsetof(struct juggle_room_sync, count)},
};

bool juggle_read_room_sync(struct view data, struct juggle_room_sync *out) {
  *out = (struct juggle_room_sync){0};
  return read_shape(SHAPE(room_sync_slots), data, out);
}

size_t juggle_room_sync_size(const struct juggle_room_sync *sync) {
  return shape_size(SHAPE(room_sync_slots), sync);
}

uint8_t *juggle_write_room_sync(uint8_t *at, const struct juggle_room_sync *sync) {
  return write_shape(at, SHAPE(room_sync_slots), sync);
}

enum { SET_MSGS = 1, SET_IS_FINISHED = 3 };

struct juggle_set_reader juggle_set_reader_of(struct view data) {
  struct pb_reader reader = pb_reader_of(data);
  return (struct juggle_set_reader){.at = reader.at, .end = reader.end};
}

bool juggle_set_next(struct juggle_set_reader *reader, struct view *down_msg) {
  struct pb_reader fields = {reader->at, reader->end, reader->bad};
  struct pb_field field;
  bool found = false;
  while (!found && pb_next(&fields, &field)) {
    if (field.number == SET_MSGS) {
      found = field.type == PB_BYTES;
      fields.bad = !found;
    } else if (field.number == SET_IS_FINISHED) {
      fields.bad = field.type != PB_VARINT;
      reader->is_finished = !fields.bad && field.value != 0;
    }
  }
  reader->at = fields.at;
  reader->bad = fields.bad;
  if (found) *down_msg = field.bytes;
  return found;
}

/* ---- Message ids ---- */

uint32_t juggle_crc32(struct view text) {
  static const uint32_t nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
      0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278,
      0xbdbdf21c};
  uint32_t crc = UINT32_MAX;
  for (size_t i = 0; i < text.len; i++) {
    crc ^= text.data[i];
    crc = crc >> 4 ^ nibble[crc & 15];
    crc = crc >> 4 ^ nibble[crc & 15];
  }
  return ~crc;
}

/* 40 bits as 8 characters of 5 bits. */
static void write_id_half(char out[8], uint64_t bits) {
  static const char alphabet[] = "abcdefghjklmnpqrstuvwxyz23456789";
  for (int i = 7; i >= 0; i--) {
    out[i] = alphabet[bits & 31];
    bits >>= 5;
  }
}

void juggle_msg_id(
    char out[JUGGLE_MSG_ID_LEN], int64_t time_ms, uint32_t counter, int32_t channel, uint32_t target_crc) {
  uint64_t time_42 = (uint64_t)time_ms & ((UINT64_C(1) << 42) - 1);
  uint64_t low = (time_42 & 3) << 38 | (uint64_t)(counter & 0xfff) << 26 | (uint64_t)((uint32_t)channel & 15) << 22 |
                 (target_crc & 0x3fffff);
  write_id_half(out, time_42 >> 2);
  write_id_half(out + 8, low);
}
