/* UTF-8 in bytes that came from elsewhere. */
#ifndef MUSTER_BASE_UTF8_H
#define MUSTER_BASE_UTF8_H

#include "base/view.h"

/* Length of the sequence at data (len > 0); 0 when it is none (overlong, surrogate, beyond U+10FFFF, cut off). */
size_t utf8_sequence(const uint8_t *data, size_t len);

bool utf8_valid(struct view text);

#endif
