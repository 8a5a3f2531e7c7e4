/* Text written piece by piece into a buffer that is known to be large enough; each returns the position behind what it
 * wrote. Nothing ends in a NUL. */
#ifndef MUSTER_BASE_PUT_H
#define MUSTER_BASE_PUT_H

#include "base/view.h"

static inline uint8_t *put_view(uint8_t *out, struct view text) {
  if (text.len > 0) memcpy(out, text.data, text.len);
  return out + text.len;
}

static inline uint8_t *put_text(uint8_t *out, const char *text) {
  return put_view(out, view_str(text));
}

/* In decimal: 20 digits at most. */
static inline uint8_t *put_number(uint8_t *out, uint64_t number) {
  uint8_t digits[20];
  size_t count = 0;
  do {
    digits[count++] = (uint8_t)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (count > 0)
    *out++ = digits[--count];
  return out;
}

#endif
