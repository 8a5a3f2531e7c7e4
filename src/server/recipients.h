/* The recipients of one message as its row keeps them: for each, three signed varints: user number less the one
 * before, receive time less the message's time, unread index less the one before. A group's members mostly share the
 * last two, so a recipient takes three to five bytes. */
#ifndef MUSTER_SERVER_RECIPIENTS_H
#define MUSTER_SERVER_RECIPIENTS_H

#include "base/buf.h"
#include "base/view.h"

#include <stdbool.h>
#include <stdint.h>

struct recipient {
  uint32_t user;
  int64_t time_ms, unread_index;
};

struct recipients_writer {
  struct buf *out; /* borrowed */
  struct recipient last;
  int64_t message_ms;
};

/* False when memory is out. */
bool recipients_add(struct recipients_writer *writer, const struct recipient *recipient);

struct recipients_reader {
  const uint8_t *at, *end;
  struct recipient last;
  int64_t message_ms;
};

struct recipients_reader recipients_of(struct view bytes, int64_t message_ms);
/* False at the end, or where the bytes make no sense. */
bool recipients_next(struct recipients_reader *reader, struct recipient *out);
bool recipients_find(struct view bytes, int64_t message_ms, uint32_t user, struct recipient *out);

#endif
