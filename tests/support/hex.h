/* Bytes from a text of hexadecimal digits and blanks, for vectors in tests. */
#ifndef MUSTER_TESTS_HEX_H
#define MUSTER_TESTS_HEX_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static inline size_t hex_bytes(const char *text, uint8_t *out) {
  size_t len = 0;
  for (; *text; text++) {
    unsigned byte;
    if (*text == ' ' || *text == '\n') continue;
    if (sscanf(text++, "%2x", &byte) != 1) return 0;
    out[len++] = (uint8_t)byte;
  }
  return len;
}

#endif
