/* Protobuf primitives for hot messages: a cursor that walks fields in place and a writer into memory that the caller
 * has reserved. No allocation. Everything cold goes through protobuf-c (juggle.proto). */
#ifndef MUSTER_WIRE_PB_H
#define MUSTER_WIRE_PB_H

#include "base/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_type { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_reader {
  const uint8_t *at, *end;
  bool bad; /* the bytes are not valid protobuf */
};

struct pb_field {
  uint32_t number;
  uint8_t type;      /* enum pb_type */
  uint64_t value;    /* of VARINT, FIXED64, FIXED32 */
  struct view bytes; /* of BYTES */
};

static inline struct pb_reader pb_reader_of(struct view bytes) {
  return (struct pb_reader){bytes.data, bytes.len ? bytes.data + bytes.len : bytes.data, false};
}

/* The next field; false at the end or when the bytes are malformed (then bad is set). Group types are malformed. */
bool pb_next(struct pb_reader *reader, struct pb_field *field);

/* Sizes and writers. A writer returns the position behind what it wrote; the caller has made sure that it fits. */
size_t pb_varint_size(uint64_t value);
uint8_t *pb_write_varint(uint8_t *at, uint64_t value);

/* Fields with a value that proto3 leaves out (0, empty) are left out: size 0 and nothing written. */
size_t pb_uint_field_size(uint32_t number, uint64_t value);
size_t pb_bytes_field_size(uint32_t number, size_t len);
uint8_t *pb_write_uint_field(uint8_t *at, uint32_t number, uint64_t value);
uint8_t *pb_write_bytes_field(uint8_t *at, uint32_t number, struct view bytes);
/* Key and length of a bytes field whose len bytes the caller writes behind it; written even when len is 0. */
uint8_t *pb_write_bytes_head(uint8_t *at, uint32_t number, size_t len);
size_t pb_bytes_head_size(uint32_t number, size_t len);

#endif
