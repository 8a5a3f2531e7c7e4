// room: wire
/* The messages of websocket-shootout, first byte: protocol and side. What a server passes on must be read by a client
 * as the same payload. */
#include "wire/shootout.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *put(const struct shootout_text *text) {
  if (text->count > SHOOTOUT_PIECES_MAX) abort();
  uint8_t *out = malloc(text->len);
  if (!out) abort();
  shootout_put(out, text);
  return out;
}

static void check_reply(
    enum shootout_protocol protocol, const struct shootout_text *text, enum shootout_kind kind, struct view payload) {
  uint8_t *reply = put(text);
  struct shootout_message message;
  if (!shootout_read_reply(protocol, reply, text->len, &message)) abort();
  if (message.kind != kind) abort();
  if (!view_equal(message.payload, payload)) abort();
  shootout_padding(protocol, message.payload);
  free(reply);
}

static void serve(enum shootout_protocol protocol, uint8_t *data, size_t size) {
  struct shootout_message request;
  if (!shootout_read_request(protocol, data, size, &request)) return;
  struct shootout_text text;
  bool channels = protocol >= SHOOTOUT_PHOENIX;
  switch (request.kind) {
  case SHOOTOUT_ECHO:
  case SHOOTOUT_BROADCAST:
    shootout_fan_out(&text, protocol, request.payload);
    check_reply(protocol, &text, SHOOTOUT_BROADCAST, request.payload);
    /* A reply on the topic of heartbeats is read as one. */
    if (protocol != SHOOTOUT_CABLE && channels && !shootout_is_lobby(request.topic)) return;
    shootout_answer(&text, protocol, SHOOTOUT_RESULT, &request);
    check_reply(protocol, &text, SHOOTOUT_RESULT, request.payload);
    shootout_answer(&text, protocol, SHOOTOUT_ECHO, &request);
    check_reply(protocol, &text, SHOOTOUT_ECHO, request.payload);
    return;
  case SHOOTOUT_JOIN:
  case SHOOTOUT_LEAVE:
  case SHOOTOUT_HEARTBEAT:
    if (!channels) abort();
    shootout_refuse(&text, protocol, &request, "no");
    check_reply(protocol, &text, SHOOTOUT_REFUSED, (struct view){0});
    if (protocol != SHOOTOUT_CABLE && !shootout_is_lobby(request.topic)) return;
    shootout_confirm(&text, protocol, &request);
    check_reply(protocol, &text, SHOOTOUT_JOINED, (struct view){0});
    return;
  default:
    return;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  enum shootout_protocol protocol = (enum shootout_protocol)(data[0] % 5);
  uint8_t *copy = malloc(size);
  if (!copy) return 0;
  memcpy(copy, data + 1, size - 1);
  struct shootout_message message;
  uint32_t ref;
  if (data[0] & 0x80) {
    if (shootout_read_reply(protocol, copy, size - 1, &message)) {
      shootout_padding(protocol, message.payload);
      shootout_ref_number(message.ref, &ref);
    }
  } else {
    serve(protocol, copy, size - 1);
  }
  free(copy);
  return 0;
}
