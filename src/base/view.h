/* A view: bytes that somebody else owns. Decoders hand out views into the buffer that they were given. */
#ifndef MUSTER_BASE_VIEW_H
#define MUSTER_BASE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct view {
  const uint8_t *data; /* may be NULL when len is 0 */
  size_t len;
};

static inline struct view view_of(const void *data, size_t len) {
  return (struct view){(const uint8_t *)data, len};
}

static inline struct view view_str(const char *text) {
  return (struct view){(const uint8_t *)text, strlen(text)};
}

static inline bool view_equal(struct view a, struct view b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool view_is(struct view a, const char *text) {
  return view_equal(a, view_str(text));
}

#endif
