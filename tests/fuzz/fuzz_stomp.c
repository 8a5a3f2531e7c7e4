// room: wire
/* What a STOMP server sends: frames and heart-beats one after the other, and what stands in their headers. */
#include "wire/stomp.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 4096 };

static void check_inside(const uint8_t *data, size_t len, struct view part) {
  if (part.len > 0 && (part.data < data || part.data + part.len > data + len)) abort();
}

static void check_header(const struct stomp_frame *frame, const char *name) {
  uint8_t out[256];
  uint32_t number;
  struct view value = stomp_header(frame, name);
  check_inside(frame->headers.data, frame->headers.len, value);
  if (value.len <= sizeof out && stomp_unescape(value, out) > value.len) abort();
  stomp_number(value, &number);
}

static void check_frame(const struct stomp_frame *frame) {
  uint32_t sends_ms, wants_ms;
  if (frame->body.len > BODY_MAX) abort();
  check_header(frame, "version");
  check_header(frame, "receipt-id");
  check_header(frame, "message");
  if (frame->kind == STOMP_CONNECTED) stomp_heart_beat(frame, &sends_ms, &wants_ms);
  if (frame->kind == STOMP_ERROR && !stomp_error_text((int32_t)stomp_error_of(stomp_header(frame, "message")))) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  struct stomp_frame frame;
  for (size_t at = 0; at < size;) {
    size_t used = stomp_read(copy + at, size - at, BODY_MAX, &frame);
    if ((used == 0) != (frame.kind == STOMP_PARTIAL || frame.kind == STOMP_BAD)) abort();
    if (used == 0) break;
    if (used > size - at) abort();
    check_inside(copy + at, used, frame.headers);
    check_inside(copy + at, used, frame.body);
    if (frame.kind != STOMP_BEAT) check_frame(&frame);
    at += used;
  }
  free(copy);
  return 0;
}
