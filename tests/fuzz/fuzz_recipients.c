// room: server
/* The recipients of a row that a damaged file may hold. What is read is written again and must read the same. */
#include "server/recipients.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t MESSAGE_MS = INT64_C(1700000000000);

static bool same(const struct recipient *a, const struct recipient *b) {
  return a->user == b->user && a->time_ms == b->time_ms && a->unread_index == b->unread_index;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct buf out = {0};
  struct recipients_writer writer = {.out = &out, .message_ms = MESSAGE_MS};
  struct recipients_reader reader = recipients_of(view_of(data, size), MESSAGE_MS);
  struct recipient first, second;
  while (recipients_next(&reader, &first))
    if (!recipients_add(&writer, &first)) abort();
  reader = recipients_of(view_of(data, size), MESSAGE_MS);
  struct recipients_reader again = recipients_of(view_of(out.data, out.len), MESSAGE_MS);
  while (recipients_next(&reader, &first)) {
    if (!recipients_next(&again, &second) || !same(&first, &second)) abort();
  }
  if (recipients_next(&again, &second)) abort();
  buf_free(&out);
  return 0;
}
