#include "wire/payload.h"

#include "base/base64.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { VERSION = 1, CHECKED_BYTES = 40, TEXT_HEADER = 64, PADDING = '.' };

/* What stands around the characters of a form of text. */
struct frame {
  const char *prefix, *suffix;
  size_t prefix_len, suffix_len;
};
static const struct frame text_frame = {"{\"content\":\"", "\"}", 12, 2};
static const struct frame bare_frame = {"", "", 0, 0};

static void put_32(uint8_t *at, uint32_t value) {
  for (int i = 0; i < 4; i++) {
    at[i] = (uint8_t)(value >> (8 * i));
  }
}

static void put_64(uint8_t *at, uint64_t value) {
  put_32(at, (uint32_t)value);
  put_32(at + 4, (uint32_t)(value >> 32));
}

static uint32_t get_32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get_64(const uint8_t *at) {
  return get_32(at) | (uint64_t)get_32(at + 4) << 32;
}

static uint64_t checksum_of(const uint8_t header[PAYLOAD_HEADER_BYTES], const uint8_t *padding, size_t len) {
  return XXH3_64bits_withSeed(header, CHECKED_BYTES, XXH3_64bits(padding, len));
}

static void write_header(
    uint8_t out[PAYLOAD_HEADER_BYTES], const struct payload *payload, const uint8_t *padding, size_t len) {
  out[0] = 'M';
  out[1] = 'S';
  out[2] = VERSION;
  out[3] = payload->phase;
  put_32(out + 4, payload->sender);
  put_64(out + 8, payload->run_id);
  put_32(out + 16, payload->sequence);
  put_32(out + 20, payload->size);
  put_64(out + 24, payload->scheduled_ns);
  put_64(out + 32, payload->written_ns);
  put_64(out + 40, checksum_of(out, padding, len));
}

static enum payload_result read_header(
    const uint8_t header[PAYLOAD_HEADER_BYTES], size_t size, const uint8_t *padding, size_t len, struct payload *out) {
  if (header[2] != VERSION || get_32(header + 20) != size) return PAYLOAD_CORRUPT;
  if (header[3] != PAYLOAD_WARM_UP && header[3] != PAYLOAD_MEASURE) return PAYLOAD_CORRUPT;
  if (get_64(header + 40) != checksum_of(header, padding, len)) return PAYLOAD_CORRUPT;
  *out = (struct payload){.run_id = get_64(header + 8),
      .scheduled_ns = get_64(header + 24),
      .written_ns = get_64(header + 32),
      .sender = get_32(header + 4),
      .sequence = get_32(header + 16),
      .size = get_32(header + 20),
      .phase = header[3]};
  return PAYLOAD_OK;
}

static void write_text(uint8_t *out, const struct frame *frame, const struct payload *payload) {
  size_t padding_len = payload->size - TEXT_HEADER - frame->prefix_len - frame->suffix_len;
  uint8_t *padding = out + frame->prefix_len + TEXT_HEADER;
  uint8_t header[PAYLOAD_HEADER_BYTES];
  memset(padding, PADDING, padding_len);
  memcpy(out, frame->prefix, frame->prefix_len);
  memcpy(padding + padding_len, frame->suffix, frame->suffix_len);
  write_header(header, payload, padding, padding_len);
  base64_encode(BASE64_URL, (char *)out + frame->prefix_len, header, sizeof header);
}

void payload_write(enum payload_form form, uint8_t *out, const struct payload *payload) {
  if (form != PAYLOAD_BINARY) {
    write_text(out, form == PAYLOAD_TEXT ? &text_frame : &bare_frame, payload);
    return;
  }
  size_t padding_len = payload->size - PAYLOAD_BINARY_MIN;
  memset(out + PAYLOAD_HEADER_BYTES, PADDING, padding_len);
  write_header(out, payload, out + PAYLOAD_HEADER_BYTES, padding_len);
}

static enum payload_result read_binary(const uint8_t *data, size_t len, struct payload *out) {
  if (len < 2 || data[0] != 'M' || data[1] != 'S') return PAYLOAD_FOREIGN;
  if (len < PAYLOAD_BINARY_MIN) return PAYLOAD_CORRUPT;
  return read_header(data, len, data + PAYLOAD_HEADER_BYTES, len - PAYLOAD_HEADER_BYTES, out);
}

/* The first three characters say "MS" and the high bits of a version below 64. */
static bool is_text_header(const struct frame *frame, const uint8_t *data, size_t len) {
  return len >= frame->prefix_len + 3 && memcmp(data, frame->prefix, frame->prefix_len) == 0 &&
         memcmp(data + frame->prefix_len, "TVM", 3) == 0;
}

static enum payload_result read_text(const struct frame *frame, const uint8_t *data, size_t len, struct payload *out) {
  if (!is_text_header(frame, data, len)) return PAYLOAD_FOREIGN;
  size_t around = frame->prefix_len + TEXT_HEADER + frame->suffix_len;
  if (len < around || memcmp(data + len - frame->suffix_len, frame->suffix, frame->suffix_len) != 0) {
    return PAYLOAD_CORRUPT;
  }
  uint8_t header[PAYLOAD_HEADER_BYTES];
  size_t header_len;
  struct view text = view_of(data + frame->prefix_len, TEXT_HEADER);
  if (!base64_decode(BASE64_URL, text, header, &header_len) || header_len != sizeof header) return PAYLOAD_CORRUPT;
  return read_header(header, len, data + frame->prefix_len + TEXT_HEADER, len - around, out);
}

enum payload_result payload_read(enum payload_form form, const uint8_t *data, size_t len, struct payload *out) {
  switch (form) {
  case PAYLOAD_TEXT:
    return read_text(&text_frame, data, len, out);
  case PAYLOAD_BARE:
    return read_text(&bare_frame, data, len, out);
  default:
    return read_binary(data, len, out);
  }
}
