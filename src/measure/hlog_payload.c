/* HdrHistogram V2: one histogram as base64 of zlib of a head and a list of varint counters. All integers are
 * big-endian but the varints. A varint is ZigZag and LEB128 of at most 9 bytes, the ninth with 8 bits; a negative one
 * is a run of that many empty counters. */
#include "base/base64.h"
#include "measure/hlog.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define COOKIE 0x1c849313u
#define COOKIE_COMPRESSED 0x1c849314u
#define COOKIE_WORD_SIZE 0xf0u /* bits that say nothing in V2 */
#define OUTER_BYTES 8          /* cookie, length of the zlib stream */
#define HEAD_BYTES 40
#define VARINT_BYTES 9
#define DIGITS 3
#define LOWEST_DISCERNIBLE_NS 1000
#define HALF (HISTOGRAM_SUB_BUCKETS / 2)
#define UNIT_SHIFT_MAX 51 /* of a foreign histogram; its values still fit 63 bits */
#define FOREIGN_COUNTERS(shift) ((54u - (shift)) * HALF)
#define INNER_MAX (HEAD_BYTES + VARINT_BYTES * FOREIGN_COUNTERS(0))
#define TEXT_MAX (1u << 20)

static void put_u32(uint8_t *out, uint32_t value) {
  for (int i = 0; i < 4; i++)
    out[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void put_u64(uint8_t *out, uint64_t value) {
  put_u32(out, (uint32_t)(value >> 32));
  put_u32(out + 4, (uint32_t)value);
}

static uint32_t get_u32(const uint8_t *in) {
  return (uint32_t)in[0] << 24 | (uint32_t)in[1] << 16 | (uint32_t)in[2] << 8 | in[3];
}

static uint64_t get_u64(const uint8_t *in) {
  return (uint64_t)get_u32(in) << 32 | get_u32(in + 4);
}

static size_t put_varint(uint8_t *out, int64_t value) {
  uint64_t rest = (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
  size_t len = 0;
  while (rest >= 0x80 && len < VARINT_BYTES - 1) {
    out[len++] = (uint8_t)(rest | 0x80);
    rest >>= 7;
  }
  out[len++] = (uint8_t)rest;
  return len;
}

/* Bytes read, or 0 when the varint is cut off. */
static size_t get_varint(const uint8_t *in, size_t len, int64_t *value) {
  uint64_t bits = 0;
  for (size_t i = 0; i < len && i < VARINT_BYTES; i++) {
    bool last = i == VARINT_BYTES - 1;
    bits |= (uint64_t)(last ? in[i] : in[i] & 0x7f) << (7 * i);
    if (!last && in[i] & 0x80) continue;
    *value = (int64_t)(bits >> 1 ^ (bits & 1 ? UINT64_MAX : 0));
    return i + 1;
  }
  return 0;
}

static size_t put_counters(uint8_t *out, const struct histogram *h) {
  uint32_t end = 0;
  if (h->count) end = histogram_index(h->max_ns < HISTOGRAM_MAX_NS ? h->max_ns : HISTOGRAM_MAX_NS) + 1;
  size_t len = 0;
  for (uint32_t i = 0; i < end;) {
    uint32_t run = 0;
    while (i + run < end && h->counters[i + run] == 0)
      run++;
    if (run > 1) {
      len += put_varint(out + len, -(int64_t)run);
      i += run;
    } else {
      len += put_varint(out + len, (int64_t)h->counters[i++]);
    }
  }
  return len;
}

static size_t put_inner(uint8_t *out, const struct histogram *h) {
  const double ratio = 1.0; /* of integer to double values */
  uint64_t ratio_bits;
  memcpy(&ratio_bits, &ratio, sizeof ratio_bits);
  size_t len = put_counters(out + HEAD_BYTES, h);
  put_u32(out, COOKIE);
  put_u32(out + 4, (uint32_t)len);
  put_u32(out + 8, 0); /* normalizing index offset */
  put_u32(out + 12, DIGITS);
  put_u64(out + 16, LOWEST_DISCERNIBLE_NS);
  put_u64(out + 24, HISTOGRAM_MAX_NS);
  put_u64(out + 32, ratio_bits);
  return HEAD_BYTES + len;
}

static enum status no_memory(struct err *err) {
  return err_set(err, STATUS_MEMORY, "no memory for the text of a histogram");
}

static enum status pack(const uint8_t *inner, size_t inner_len, char **text, struct err *err) {
  uLongf packed_len = compressBound(inner_len);
  uint8_t *outer = malloc(OUTER_BYTES + packed_len);
  if (!outer) return no_memory(err);
  if (compress2(outer + OUTER_BYTES, &packed_len, inner, inner_len, Z_DEFAULT_COMPRESSION) != Z_OK) {
    free(outer);
    return no_memory(err);
  }
  put_u32(outer, COOKIE_COMPRESSED);
  put_u32(outer + 4, (uint32_t)packed_len);
  *text = malloc(base64_encoded_size(OUTER_BYTES + packed_len) + 1);
  if (*text) *base64_encode(BASE64_STANDARD, *text, outer, OUTER_BYTES + packed_len) = '\0';
  free(outer);
  return *text ? STATUS_OK : no_memory(err);
}

enum status histogram_encode(const struct histogram *h, char **text, struct err *err) {
  *text = NULL;
  if (h->count > INT64_MAX) {
    return err_set(err, STATUS_USAGE, "a histogram of more than 2^63 values cannot be written as HdrHistogram V2");
  }
  uint8_t *inner = malloc(HEAD_BYTES + (size_t)HISTOGRAM_COUNTERS * VARINT_BYTES);
  if (!inner) return no_memory(err);
  enum status status = pack(inner, put_inner(inner, h), text, err);
  free(inner);
  return status;
}

/* The layout that the sender of a text used. */
struct foreign {
  uint32_t unit_shift;
  uint32_t counters;
};

static void value_range(const struct foreign *from, uint32_t index, int64_t *lowest, int64_t *width) {
  uint32_t bucket = index < HISTOGRAM_SUB_BUCKETS ? 0 : index / HALF - 1;
  *lowest = (int64_t)((uint64_t)(index - bucket * HALF) << (bucket + from->unit_shift));
  *width = INT64_C(1) << (bucket + from->unit_shift);
}

static void add_counter(const struct foreign *from, uint32_t index, uint64_t count, struct histogram *out) {
  int64_t lowest;
  int64_t width;
  value_range(from, index, &lowest, &width);
  int64_t middle = lowest + width / 2;
  bool straddles = lowest <= HISTOGRAM_MAX_NS && middle > HISTOGRAM_MAX_NS;
  histogram_record_many(out, straddles ? HISTOGRAM_MAX_NS : middle, count);
}

static enum status malformed(struct err *err, const char *what) {
  return err_set(err, STATUS_PROTOCOL, "not a HdrHistogram V2 text: %s", what);
}

static enum status read_counters(
    const struct foreign *from, const uint8_t *in, size_t len, struct histogram *out, struct err *err) {
  uint64_t index = 0;
  uint64_t total = 0;
  while (len) {
    int64_t value = 0;
    size_t used = get_varint(in, len, &value);
    if (used == 0) return malformed(err, "a counter is cut off");
    in += used;
    len -= used;
    uint64_t places = value < 0 ? 0 - (uint64_t)value : 1;
    if (places > from->counters - index) return malformed(err, "more counters than its range has");
    if (value > 0) {
      total += (uint64_t)value;
      if (total > INT64_MAX) return malformed(err, "more than 2^63 values");
      add_counter(from, (uint32_t)index, (uint64_t)value, out);
    }
    index += places;
  }
  return STATUS_OK;
}

/* A text in our own layout keeps its counters as they are, so its extremes are the ends of the outer buckets. */
static void widen_to_buckets(struct histogram *h) {
  if (h->count == 0) return;
  h->min_ns = histogram_lowest(histogram_index(h->min_ns));
  if (h->max_ns <= HISTOGRAM_MAX_NS) h->max_ns = histogram_highest(histogram_index(h->max_ns));
}

static enum status read_inner(const uint8_t *in, size_t len, struct histogram *out, struct err *err) {
  if (len < HEAD_BYTES) return malformed(err, "its head is cut off");
  if ((get_u32(in) & ~COOKIE_WORD_SIZE) != (COOKIE & ~COOKIE_WORD_SIZE)) return malformed(err, "unknown inner cookie");
  uint32_t counters_len = get_u32(in + 4);
  if (counters_len > len - HEAD_BYTES) return malformed(err, "its counters are cut off");
  if (get_u32(in + 12) != DIGITS) return malformed(err, "it was not made with 3 significant digits");
  uint64_t lowest_discernible = get_u64(in + 16);
  if (lowest_discernible == 0 || lowest_discernible >> (UNIT_SHIFT_MAX + 1)) {
    return malformed(err, "its lowest discernible value is out of range");
  }
  struct foreign from = {.unit_shift = 63 - (uint32_t)__builtin_clzll(lowest_discernible)};
  from.counters = FOREIGN_COUNTERS(from.unit_shift);
  enum status status = read_counters(&from, in + HEAD_BYTES, counters_len, out, err);
  if (status == STATUS_OK && from.unit_shift == HISTOGRAM_UNIT_SHIFT) widen_to_buckets(out);
  return status;
}

static enum status read_outer(uint8_t *outer, size_t len, uint8_t *inner, struct histogram *out, struct err *err) {
  if (len < OUTER_BYTES) return malformed(err, "its cookie is cut off");
  if ((get_u32(outer) & ~COOKIE_WORD_SIZE) != (COOKIE_COMPRESSED & ~COOKIE_WORD_SIZE)) {
    return malformed(err, "unknown cookie");
  }
  uint32_t packed_len = get_u32(outer + 4);
  if (packed_len > len - OUTER_BYTES) return malformed(err, "its zlib stream is cut off");
  uLongf inner_len = INNER_MAX;
  if (uncompress(inner, &inner_len, outer + OUTER_BYTES, packed_len) != Z_OK) {
    return malformed(err, "its zlib stream is broken or too long");
  }
  return read_inner(inner, inner_len, out, err);
}

enum status histogram_decode(const char *text, size_t len, struct histogram *out, struct err *err) {
  histogram_reset(out);
  if (len > TEXT_MAX) return malformed(err, "it is longer than 1 MiB");
  size_t room = len / 4 * 3;
  uint8_t *outer = malloc(room + INNER_MAX);
  if (!outer) return no_memory(err);
  size_t outer_len = 0;
  enum status status = base64_decode(BASE64_STANDARD, view_of(text, len), outer, &outer_len)
                           ? read_outer(outer, outer_len, outer + room, out, err)
                           : malformed(err, "it is not base64");
  free(outer);
  if (status != STATUS_OK) histogram_reset(out);
  return status;
}
