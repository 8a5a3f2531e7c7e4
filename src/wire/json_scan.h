/* A JSON reader without a tree: it walks over the members of an object or the elements of an array and hands out each
 * value as a view of its text, so that fixed places of a message are found in one pass and without allocation. Strict
 * (RFC 8259): what it passes over is checked in full, but for the UTF-8, which the WebSocket room has checked.
 * Nesting beyond SCAN_DEPTH_MAX is refused. */
#ifndef MUSTER_WIRE_JSON_SCAN_H
#define MUSTER_WIRE_JSON_SCAN_H

#include "base/view.h"

#define SCAN_DEPTH_MAX 64

struct scan_walk {
  const uint8_t *at, *end;
  uint8_t close; /* '}' or ']' */
  bool first, bad;
};

/* Begins to walk over an object or an array; white space may surround it. The walk is bad when the text is none. */
struct scan_walk scan_object(struct view text);
struct scan_walk scan_array(struct view text);

/* The next member or element; keys and values are raw: strings still have their quotes and escapes. False at the end
 * (then only white space follows) and when the text is malformed: bad tells them apart. */
bool scan_next_member(struct scan_walk *walk, struct view *key, struct view *value);
bool scan_next_element(struct scan_walk *walk, struct view *value);

/* Whether a raw value is a string of this text (escapes count as what they stand for). text: at most 63 bytes. */
bool scan_is(struct view raw, const char *text);
/* The text of a raw string that has no escapes; {NULL, 0} for everything else. */
struct view scan_plain_string(struct view raw);
/* Resolves the escapes of a raw string into out, which has room for raw.len bytes and may be the raw string's own
 * memory. False when it is no string or has half a surrogate pair. */
bool scan_unescape(struct view raw, uint8_t *out, size_t *len);

#endif
