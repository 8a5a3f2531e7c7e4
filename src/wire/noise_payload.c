#include "wire/noise_payload.h"

#include "wire/pb.h"

enum { FIELD_KEY = 1, FIELD_SIGNATURE = 2, FIELD_EXTENSIONS = 4, FIELD_MUXERS = 2 };

static bool read_extensions(struct view bytes, struct noise_payload *out) {
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
    if (field.number != FIELD_MUXERS || field.type != PB_BYTES) continue;
    out->has_muxers = true;
    out->has_yamux |= view_is(field.bytes, YAMUX_PROTOCOL);
  }
  return !reader.bad;
}

bool noise_payload_read(struct view bytes, struct noise_payload *out) {
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field;
  *out = (struct noise_payload){0};
  while (pb_next(&reader, &field)) {
    if (field.type != PB_BYTES) continue;
    if (field.number == FIELD_KEY) out->identity_key = field.bytes;
    if (field.number == FIELD_SIGNATURE) out->signature = field.bytes;
    if (field.number == FIELD_EXTENSIONS && !read_extensions(field.bytes, out)) return false;
  }
  return !reader.bad && out->identity_key.len && out->signature.len;
}

size_t noise_payload_write(uint8_t out[NOISE_PAYLOAD_MAX], const struct noise_payload *payload) {
  struct view yamux = view_str(YAMUX_PROTOCOL);
  uint8_t *at = pb_write_bytes_field(out, FIELD_KEY, payload->identity_key);
  at = pb_write_bytes_field(at, FIELD_SIGNATURE, payload->signature);
  if (!payload->has_yamux) return (size_t)(at - out);
  at = pb_write_bytes_head(at, FIELD_EXTENSIONS, pb_bytes_field_size(FIELD_MUXERS, yamux.len));
  at = pb_write_bytes_field(at, FIELD_MUXERS, yamux);
  return (size_t)(at - out);
}
