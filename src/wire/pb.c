#include "wire/pb.h"

enum { MAX_VARINT_BYTES = 10, MAX_LENGTH_BYTES = 5, MAX_FIELD_NUMBER = (1 << 29) - 1 };

/* A varint of at most max_bytes whose first byte goes on. */
static const uint8_t *read_long_varint(const uint8_t *at, const uint8_t *end, int max_bytes, uint64_t *out) {
  uint64_t value = 0;
  for (int i = 0; i < max_bytes && at < end; i++) {
    uint8_t byte = *at++;
    if (i == MAX_VARINT_BYTES - 1 && byte > 1) return NULL;
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *out = value;
      return at;
    }
  }
  return NULL;
}

/* NULL when the varint is cut short, longer than max_bytes, or does not fit into 64 bits. */
static inline const uint8_t *read_varint(const uint8_t *at, const uint8_t *end, int max_bytes, uint64_t *out) {
  if (at < end && *at < 0x80) {
    *out = *at;
    return at + 1;
  }
  return read_long_varint(at, end, max_bytes, out);
}

static const uint8_t *read_fixed(const uint8_t *at, const uint8_t *end, int bytes, uint64_t *out) {
  if (end - at < bytes) return NULL;
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) {
    value |= (uint64_t)at[i] << (8 * i);
  }
  *out = value;
  return at + bytes;
}

static inline const uint8_t *read_bytes(const uint8_t *at, const uint8_t *end, struct view *out) {
  uint64_t len;
  at = read_varint(at, end, MAX_LENGTH_BYTES, &len);
  if (!at || len > (uint64_t)(end - at)) return NULL;
  *out = view_of(at, (size_t)len);
  return at + len;
}

static inline const uint8_t *read_value(const uint8_t *at, const uint8_t *end, struct pb_field *field) {
  switch (field->type) {
  case PB_VARINT:
    return read_varint(at, end, MAX_VARINT_BYTES, &field->value);
  case PB_FIXED64:
    return read_fixed(at, end, 8, &field->value);
  case PB_BYTES:
    return read_bytes(at, end, &field->bytes);
  case PB_FIXED32:
    return read_fixed(at, end, 4, &field->value);
  default:
    return NULL;
  }
}

bool pb_next(struct pb_reader *reader, struct pb_field *field) {
  if (reader->bad || reader->at == reader->end) return false;
  uint64_t key;
  const uint8_t *at = read_varint(reader->at, reader->end, MAX_LENGTH_BYTES, &key);
  if (at && key >> 3 != 0 && key >> 3 <= MAX_FIELD_NUMBER) {
    field->number = (uint32_t)(key >> 3);
    field->type = key & 7;
    at = read_value(at, reader->end, field);
  } else {
    at = NULL;
  }
  if (!at) {
    reader->bad = true;
    return false;
  }
  reader->at = at;
  return true;
}

size_t pb_varint_size(uint64_t value) {
  unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
  return (bits + 6) / 7;
}

uint8_t *pb_write_varint(uint8_t *at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = (uint8_t)(value | 0x80);
    value >>= 7;
  }
  *at++ = (uint8_t)value;
  return at;
}

static uint64_t key_of(uint32_t number, enum pb_type type) {
  return (uint64_t)number << 3 | type;
}

size_t pb_uint_field_size(uint32_t number, uint64_t value) {
  return value ? pb_varint_size(key_of(number, PB_VARINT)) + pb_varint_size(value) : 0;
}

size_t pb_bytes_head_size(uint32_t number, size_t len) {
  return pb_varint_size(key_of(number, PB_BYTES)) + pb_varint_size(len);
}

size_t pb_bytes_field_size(uint32_t number, size_t len) {
  return len ? pb_bytes_head_size(number, len) + len : 0;
}

uint8_t *pb_write_uint_field(uint8_t *at, uint32_t number, uint64_t value) {
  if (!value) return at;
  return pb_write_varint(pb_write_varint(at, key_of(number, PB_VARINT)), value);
}

uint8_t *pb_write_bytes_head(uint8_t *at, uint32_t number, size_t len) {
  return pb_write_varint(pb_write_varint(at, key_of(number, PB_BYTES)), len);
}

uint8_t *pb_write_bytes_field(uint8_t *at, uint32_t number, struct view bytes) {
  if (!bytes.len) return at;
  at = pb_write_bytes_head(at, number, bytes.len);
  memcpy(at, bytes.data, bytes.len);
  return at + bytes.len;
}
