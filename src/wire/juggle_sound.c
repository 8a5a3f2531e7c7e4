/* A library that refuses a message (a text that is no UTF-8, a nested message that is none) can read nothing behind it
 * any more, so what is passed on as raw bytes is checked first. */
#include "base/utf8.h"
#include "juggle.pb-c.h"
#include "wire/juggle.h"
#include "wire/pb.h"

enum { DEPTH_MAX = 32, QUOTED_MESSAGE = 16 };

static uint8_t wire_type(ProtobufCType type) {
  switch (type) {
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_BYTES:
  case PROTOBUF_C_TYPE_MESSAGE:
    return PB_BYTES;
  default:
    return PB_VARINT; /* juggle.proto has no other numbers */
  }
}

static bool is_sound(const ProtobufCMessageDescriptor *descriptor, struct view bytes, unsigned depth);

static bool is_sound_field(const ProtobufCFieldDescriptor *known, const struct pb_field *field, unsigned depth) {
  if (field->type != wire_type(known->type)) return false;
  if (known->type == PROTOBUF_C_TYPE_STRING) return utf8_valid(field->bytes);
  if (known->type == PROTOBUF_C_TYPE_MESSAGE) return is_sound(known->descriptor, field->bytes, depth - 1);
  /* A message may quote another, which juggle.proto has as bytes. */
  bool quotes = known->type == PROTOBUF_C_TYPE_BYTES && known->id == QUOTED_MESSAGE;
  return !quotes || is_sound(&juggle__down_msg__descriptor, field->bytes, depth - 1);
}

/* Fields that the descriptor does not know may hold anything. */
static bool is_sound(const ProtobufCMessageDescriptor *descriptor, struct view bytes, unsigned depth) {
  if (depth == 0) return false;
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(descriptor, field.number);
    if (known && !is_sound_field(known, &field, depth)) return false;
  }
  return !reader.bad;
}

bool juggle_up_msg_is_sound(const struct juggle_up_msg *msg) {
  return utf8_valid(msg->msg_type) && utf8_valid(msg->client_uid) && utf8_valid(msg->search_text) &&
         utf8_valid(msg->sub_channel) && is_sound(&juggle__push_data__descriptor, msg->push_data, DEPTH_MAX) &&
         is_sound(&juggle__mention_info__descriptor, msg->mention_info, DEPTH_MAX) &&
         is_sound(&juggle__down_msg__descriptor, msg->refer_msg, DEPTH_MAX) &&
         is_sound(&juggle__merged_msgs__descriptor, msg->merged_msgs, DEPTH_MAX);
}
