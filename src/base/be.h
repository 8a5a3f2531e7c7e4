/* Big-endian integers in byte strings. A writer returns the position behind what it wrote. */
#ifndef MUSTER_BASE_BE_H
#define MUSTER_BASE_BE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint8_t *be_put16(uint8_t *at, uint16_t value) {
  value = htobe16(value);
  memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

static inline uint8_t *be_put32(uint8_t *at, uint32_t value) {
  value = htobe32(value);
  memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

static inline uint8_t *be_put64(uint8_t *at, uint64_t value) {
  value = htobe64(value);
  memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

static inline uint16_t be_get16(const uint8_t *at) {
  uint16_t value;
  memcpy(&value, at, sizeof value);
  return be16toh(value);
}

static inline uint32_t be_get32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return be32toh(value);
}

static inline uint64_t be_get64(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return be64toh(value);
}

#endif
