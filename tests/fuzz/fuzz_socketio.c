// room: wire
/* What a Socket.IO server sends: the text of one WebSocket message. */
#include "wire/socketio.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(const uint8_t *data, size_t len, struct view part) {
  if (part.len > 0 && (part.data < data || part.data + part.len > data + len)) abort();
}

static void check_message(const uint8_t *data, size_t len, struct view text) {
  struct socketio_packet packet;
  struct view name, content;
  int32_t code;
  if (!socketio_read(text, &packet)) return;
  if (packet.attachments > SOCKETIO_ATTACHMENTS_MAX || packet.namespace.len > SOCKETIO_NAMESPACE_MAX) abort();
  check_inside(data, len, packet.data);
  if (socketio_read_event(packet.data, &name, &content)) {
    check_inside(data, len, name);
    check_inside(data, len, content);
  }
  if (socketio_read_ack(packet.data, &code) && code < 0) abort();
  check_inside(data, len, socketio_read_error(packet.data));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  struct engineio_packet packet;
  struct engineio_open open;
  if (engineio_read(view_of(copy, size), &packet)) {
    check_inside(copy, size, packet.data);
    if (packet.type == ENGINEIO_OPEN) engineio_read_open(packet.data, &open);
    if (packet.type == ENGINEIO_MESSAGE) check_message(copy, size, packet.data);
  }
  free(copy);
  return 0;
}
