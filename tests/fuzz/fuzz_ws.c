// room: net
// The first byte chooses role, limit and cut; the frames that follow must give the same events whole and cut.
#include "net/ws.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct digest {
  uint64_t hash;
  size_t used;
};

static void mix(struct digest *digest, const void *data, size_t len) {
  const uint8_t *bytes = data;
  for (size_t i = 0; i < len; i++)
    digest->hash = (digest->hash ^ bytes[i]) * UINT64_C(1099511628211);
}

static void mix_event(struct digest *digest, const struct ws_event *event) {
  uint32_t facts[4] = {event->kind, event->opcode, event->close_code, (uint32_t)event->len};
  mix(digest, facts, sizeof facts);
  if (event->len) mix(digest, event->data, event->len);
}

/* Gives all bytes of tail to ws; false when the connection ended. */
static bool read_all(struct ws *ws, struct buf *tail, struct digest *digest) {
  uint8_t *copy = malloc(tail->len);
  if (!copy) abort();
  memcpy(copy, tail->data, tail->len);
  size_t used = 0;
  struct ws_event event;
  do {
    used += ws_read(ws, copy + used, tail->len - used, &event);
    if (used > tail->len) abort();
    if (event.kind != WS_EVENT_NONE) mix_event(digest, &event);
    if (event.kind == WS_EVENT_MESSAGE && event.len > ws->max_message_bytes) abort();
  } while (event.kind != WS_EVENT_NONE && event.kind != WS_EVENT_CLOSE && event.kind != WS_EVENT_ERROR);
  digest->used += used;
  buf_consume(tail, used);
  free(copy);
  return event.kind == WS_EVENT_NONE;
}

static struct digest read_in_pieces(uint8_t choice, const uint8_t *data, size_t size, size_t piece) {
  struct digest digest = {0};
  struct buf tail = {0};
  struct ws ws;
  ws_init(&ws, choice & 1 ? WS_SERVER : WS_CLIENT, choice & 2 ? 100 : 100000);
  for (size_t at = 0; at < size; at += piece) {
    size_t len = size - at < piece ? size - at : piece;
    if (!buf_append(&tail, data + at, len)) abort();
    if (!read_all(&ws, &tail, &digest)) break;
  }
  buf_free(&tail);
  ws_free(&ws);
  return digest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  size_t piece = 1 + (data[0] >> 2);
  struct digest whole = read_in_pieces(data[0], data + 1, size - 1, size - 1);
  struct digest cut = read_in_pieces(data[0], data + 1, size - 1, piece);
  /* An error may be seen earlier or later within a frame, but the events are the same. */
  if (whole.hash != cut.hash) abort();
  return 0;
}
