/* Names of subjects and channels, put together piece by piece; they are not NUL-terminated. */
#ifndef MUSTER_DRIVER_NAME_H
#define MUSTER_DRIVER_NAME_H

#include "base/view.h"

/* Each writes at out + at and returns the position behind it. */
static inline size_t name_text(char *out, size_t at, struct view text) {
  memcpy(out + at, text.data, text.len);
  return at + text.len;
}

static inline size_t name_number(char *out, size_t at, uint32_t number) {
  char digits[10];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + number % 10);
    number /= 10;
  } while (number > 0);
  while (count > 0)
    out[at++] = digits[--count];
  return at;
}

#endif
