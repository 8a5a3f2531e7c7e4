#include "server/recipients.h"

enum { VARINT_MAX = 10 };

static uint8_t *put(uint8_t *at, int64_t value) {
  uint64_t rest = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
  while (rest >= 0x80) {
    *at++ = (uint8_t)(rest | 0x80);
    rest >>= 7;
  }
  *at++ = (uint8_t)rest;
  return at;
}

static bool get(struct recipients_reader *reader, int64_t *out) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
    uint8_t byte = *reader->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte & 0x80) continue;
    *out = (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
    return true;
  }
  return false;
}

bool recipients_add(struct recipients_writer *writer, const struct recipient *recipient) {
  uint8_t *start = buf_reserve(writer->out, (size_t)3 * VARINT_MAX);
  if (!start) return false;
  uint8_t *at = put(start, (int64_t)recipient->user - (int64_t)writer->last.user);
  at = put(at, recipient->time_ms - writer->message_ms);
  at = put(at, recipient->unread_index - writer->last.unread_index);
  writer->out->len += (uint32_t)(at - start);
  writer->last = *recipient;
  return true;
}

struct recipients_reader recipients_of(struct view bytes, int64_t message_ms) {
  return (struct recipients_reader){
      .at = bytes.data, .end = bytes.len ? bytes.data + bytes.len : bytes.data, .message_ms = message_ms};
}

/* Far from what any clock or counter reaches: more would overflow where it is added to. */
static bool is_sound(int64_t value) {
  return value > -(INT64_C(1) << 52) && value < INT64_C(1) << 52;
}

bool recipients_next(struct recipients_reader *reader, struct recipient *out) {
  int64_t user, time, unread;
  if (!get(reader, &user) || !get(reader, &time) || !get(reader, &unread)) return false;
  reader->last.user = (uint32_t)((uint64_t)reader->last.user + (uint64_t)user);
  reader->last.unread_index = (int64_t)((uint64_t)reader->last.unread_index + (uint64_t)unread);
  reader->last.time_ms = (int64_t)((uint64_t)reader->message_ms + (uint64_t)time);
  if (!is_sound(reader->last.unread_index) || !is_sound(reader->last.time_ms)) return false;
  *out = reader->last;
  return true;
}

bool recipients_find(struct view bytes, int64_t message_ms, uint32_t user, struct recipient *out) {
  struct recipients_reader reader = recipients_of(bytes, message_ms);
  while (recipients_next(&reader, out))
    if (out->user == user) return true;
  return false;
}
