/* WebSocket framing (RFC 6455 section 5), no I/O: the owner gives bytes and gets events. State is 32 bytes while idle;
 * a message in one frame is decoded in place, only fragmented messages are gathered in a buffer. */
#ifndef MUSTER_NET_WS_H
#define MUSTER_NET_WS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ws_opcode { WS_CONTINUATION = 0x0, WS_TEXT = 0x1, WS_BINARY = 0x2, WS_CLOSE = 0x8, WS_PING = 0x9, WS_PONG = 0xa };

enum ws_role { WS_CLIENT, WS_SERVER };

struct ws {
  struct buf fragments; /* of the message that is being gathered */
  uint32_t max_message_bytes;
  uint8_t role;
  uint8_t message_opcode; /* of the gathered message; 0: none */
};

void ws_init(struct ws *ws, enum ws_role role, uint32_t max_message_bytes);
void ws_free(struct ws *ws);

enum ws_event_kind {
  WS_EVENT_NONE,    /* more bytes are needed */
  WS_EVENT_MESSAGE, /* opcode TEXT or BINARY, data and len */
  WS_EVENT_PING,    /* answer with a PONG of the same data */
  WS_EVENT_PONG,
  WS_EVENT_CLOSE, /* close_code (1005 when the frame had none), data is the reason text */
  WS_EVENT_ERROR, /* the peer broke the protocol: close_code is what to send (1002, 1007, 1009, 1011), text says why */
};

struct ws_event {
  enum ws_event_kind kind;
  uint8_t opcode;
  uint16_t close_code;
  uint8_t *data; /* into the given bytes, or into fragments: valid until the next ws_read */
  size_t len;
  const char *text; /* static */
};

/* Reads at most one event from data (unmasking in place); returns how many bytes it used. With WS_EVENT_NONE and 0
 * used, call again with the same bytes and more behind them. After CLOSE or ERROR call no more.
 * A server refuses unmasked frames, a client masked ones. Text is checked to be UTF-8 (1007). */
size_t ws_read(struct ws *ws, uint8_t *data, size_t len, struct ws_event *event);

#define WS_HEADER_MAX 14

/* Writes a frame header for an unfragmented frame into out and returns its length (2 to 14). With mask, 4 key bytes
 * are part of it and the payload must then go through ws_mask. */
size_t ws_write_header(uint8_t out[WS_HEADER_MAX], uint8_t opcode, size_t payload_len, const uint8_t mask[4]);
size_t ws_header_size(size_t payload_len, bool masked);
/* XORs data with key, word by word; offset: position in the payload of data[0]. Its own inverse. */
void ws_mask(uint8_t *data, size_t len, const uint8_t key[4], size_t offset);

/* A whole small control frame; for CLOSE: code and reason (NULL: none; a longer one is cut at a whole character).
 * At most 125 bytes of data are taken. Returns its length; out of at least 131 bytes. */
size_t ws_write_control(uint8_t *out, uint8_t opcode, const void *data, size_t len, const uint8_t mask[4]);
size_t ws_write_close(uint8_t *out, uint16_t code, const char *reason, const uint8_t mask[4]);

#endif
