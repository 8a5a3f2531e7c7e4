// room: wire
/* What a NATS server sends: messages one after the other, and what stands in their texts. */
#include "wire/nats.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(const uint8_t *data, size_t len, struct view part) {
  if (part.len > 0 && (part.data < data || part.data + part.len > data + len)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  struct nats_message message;
  struct nats_info info;
  struct nats_puback ack;
  struct nats_delivery delivery;
  for (size_t at = 0; at < size;) {
    size_t used = nats_read(copy + at, size - at, 4096, &message);
    if ((used == 0) != (message.kind == NATS_PARTIAL || message.kind == NATS_BAD)) abort();
    if (used == 0 || used > size - at) break;
    check_inside(copy + at, used, message.text);
    check_inside(copy + at, used, message.subject);
    check_inside(copy + at, used, message.reply);
    check_inside(copy + at, used, message.headers);
    check_inside(copy + at, used, message.payload);
    if (message.headers.len + message.payload.len > 4096) abort();
    if (message.kind == NATS_INFO) nats_read_info(message.text, &info);
    if (message.kind == NATS_ERROR && !nats_error_text((int32_t)nats_error_of(message.text))) abort();
    if (message.kind == NATS_MSG) {
      nats_status(message.headers);
      nats_read_puback(message.payload, &ack);
      nats_read_delivery(message.reply, &delivery);
    }
    at += used;
  }
  free(copy);
  return 0;
}
