/* multistream-select 1.0.0: messages of a varint length, a text and a newline. */
#ifndef MUSTER_WIRE_MULTISTREAM_H
#define MUSTER_WIRE_MULTISTREAM_H

#include "base/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MULTISTREAM_HEADER "/multistream/1.0.0"
#define MULTISTREAM_NOT_AVAILABLE "na"
#define MULTISTREAM_TEXT_MAX 1023
#define MULTISTREAM_MESSAGE_MAX (2 + MULTISTREAM_TEXT_MAX + 1)

enum multistream_result { MULTISTREAM_COMPLETE, MULTISTREAM_PARTIAL, MULTISTREAM_BAD };

/* On COMPLETE *text is without the newline and *used what the message took. BAD: longer than 1,024 bytes, empty, or
 * not ended by a newline. */
enum multistream_result multistream_read(struct view bytes, struct view *text, size_t *used);

/* The next message but the header, which must come first (*got_header tells whether it has); takes what it used off the
 * bytes. BAD also when the header is another one. */
enum multistream_result multistream_next(bool *got_header, struct view *bytes, struct view *text);

/* Bytes of a message for a text of at most MULTISTREAM_TEXT_MAX bytes; the writer returns the position behind it. */
size_t multistream_size(size_t text_len);
uint8_t *multistream_write(uint8_t *at, struct view text);

#endif
