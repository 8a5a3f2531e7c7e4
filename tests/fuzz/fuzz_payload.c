// room: wire
/* Payloads in all forms. What reads as intact must be exactly what muster would have written, but for its padding. */
#include "wire/payload.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(enum payload_form form, size_t header_end, const uint8_t *data, size_t size) {
  struct payload payload;
  if (payload_read(form, data, size, &payload) != PAYLOAD_OK) return;
  if (payload.size != size) abort();
  uint8_t *again = malloc(size);
  if (!again) abort();
  payload_write(form, again, &payload);
  /* The checksum differs with the padding: what stands before it does not. */
  if (memcmp(data, again, header_end) != 0) abort();
  free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check(PAYLOAD_BINARY, 40, data, size);
  check(PAYLOAD_TEXT, 12 + 52, data, size);
  check(PAYLOAD_BARE, 52, data, size);
  return 0;
}
