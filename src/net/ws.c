#include "net/ws.h"

#include "base/utf8.h"

#include <endian.h>
#include <string.h>

#define FIN 0x80
#define RESERVED_BITS 0x70
#define MASKED 0x80
#define CONTROL_MAX 125

void ws_init(struct ws *ws, enum ws_role role, uint32_t max_message_bytes) {
  *ws = (struct ws){.role = (uint8_t)role, .max_message_bytes = max_message_bytes};
}

void ws_free(struct ws *ws) {
  buf_free(&ws->fragments);
  ws->message_opcode = 0;
}

void ws_mask(uint8_t *data, size_t len, const uint8_t key[4], size_t offset) {
  uint8_t turned[8];
  for (size_t i = 0; i < sizeof turned; i++)
    turned[i] = key[(offset + i) % 4];
  uint64_t mask;
  memcpy(&mask, turned, sizeof mask);
  size_t at = 0;
  for (; at + 8 <= len; at += 8) {
    uint64_t word;
    memcpy(&word, data + at, sizeof word);
    word ^= mask;
    memcpy(data + at, &word, sizeof word);
  }
  for (size_t i = 0; at < len; at++, i++)
    data[at] ^= turned[i];
}

static bool is_continuation_byte(uint8_t byte) {
  return (byte & 0xc0) == 0x80;
}

static bool close_code_valid(unsigned code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

static size_t fail(struct ws_event *event, size_t used, uint16_t close_code, const char *text) {
  *event = (struct ws_event){.kind = WS_EVENT_ERROR, .close_code = close_code, .text = text};
  return used;
}

struct frame {
  bool fin;
  bool masked;
  uint8_t opcode;
  size_t header_len;
  uint64_t payload_len;
  const char *error; /* static; NULL: none */
  uint16_t error_code;
};

static bool is_control(uint8_t opcode) {
  return opcode >= WS_CLOSE;
}

/* What is wrong with the first two bytes of a frame, NULL when nothing is. */
static const char *check_start(const struct ws *ws, uint8_t first, uint8_t second) {
  uint8_t opcode = first & 0x0f;
  uint8_t len = second & 0x7f;
  if (first & RESERVED_BITS) return "a reserved bit is set";
  if ((opcode > WS_BINARY && opcode < WS_CLOSE) || opcode > WS_PONG) return "the opcode is reserved";
  if (ws->role == WS_SERVER && !(second & MASKED)) return "a frame from a client is not masked";
  if (ws->role == WS_CLIENT && (second & MASKED)) return "a frame from a server is masked";
  if (is_control(opcode)) {
    if (!(first & FIN)) return "a control frame is fragmented";
    if (len > CONTROL_MAX) return "a control frame is longer than 125 bytes";
    return NULL;
  }
  if (opcode == WS_CONTINUATION && !ws->message_opcode) return "a continuation without a message";
  if (opcode != WS_CONTINUATION && ws->message_opcode) return "a new message inside a fragmented one";
  return NULL;
}

static void frame_fail(struct frame *frame, uint16_t code, const char *text) {
  frame->error = text;
  frame->error_code = code;
}

/* False when the header is not complete yet. */
static bool read_header(const struct ws *ws, const uint8_t *data, size_t len, struct frame *frame) {
  if (len < 2) return false;
  *frame = (struct frame){.fin = data[0] & FIN, .masked = data[1] & MASKED, .opcode = data[0] & 0x0f};
  const char *wrong = check_start(ws, data[0], data[1]);
  if (wrong) {
    frame_fail(frame, 1002, wrong);
    return true;
  }
  uint8_t short_len = data[1] & 0x7f;
  size_t len_bytes = short_len == 127 ? 8 : short_len == 126 ? 2 : 0;
  frame->header_len = 2 + len_bytes + (frame->masked ? 4 : 0);
  if (len < 2 + len_bytes) return false;
  frame->payload_len = short_len;
  if (len_bytes) {
    uint64_t wide = 0;
    for (size_t i = 0; i < len_bytes; i++)
      wide = wide << 8 | data[2 + i];
    frame->payload_len = wide;
    if (wide >> 63) frame_fail(frame, 1002, "the length has its highest bit set");
    if (wide < (len_bytes == 2 ? 126U : 65536U)) frame_fail(frame, 1002, "the length is not in its shortest form");
  }
  if (!frame->error && !is_control(frame->opcode) &&
      frame->payload_len + ws->fragments.len > (uint64_t)ws->max_message_bytes) {
    frame_fail(frame, 1009, "the message is longer than allowed");
  }
  return frame->error || len >= frame->header_len;
}

static size_t read_close(uint8_t *payload, size_t len, size_t used, struct ws_event *event) {
  *event = (struct ws_event){.kind = WS_EVENT_CLOSE, .opcode = WS_CLOSE, .close_code = 1005};
  if (len == 0) return used;
  if (len == 1) return fail(event, used, 1002, "a close frame of one byte");
  unsigned code = (unsigned)payload[0] << 8 | payload[1];
  if (!close_code_valid(code)) return fail(event, used, 1002, "the close code is not allowed");
  if (!utf8_valid(view_of(payload + 2, len - 2))) return fail(event, used, 1007, "the close reason is not UTF-8");
  event->close_code = (uint16_t)code;
  event->data = payload + 2;
  event->len = len - 2;
  return used;
}

static size_t read_message(uint8_t opcode, uint8_t *data, size_t len, size_t used, struct ws_event *event) {
  if (opcode == WS_TEXT && !utf8_valid(view_of(data, len)))
    return fail(event, used, 1007, "a text message is not UTF-8");
  *event = (struct ws_event){.kind = WS_EVENT_MESSAGE, .opcode = opcode, .data = data, .len = len};
  return used;
}

static size_t read_control(uint8_t opcode, uint8_t *payload, size_t len, size_t used, struct ws_event *event) {
  if (opcode == WS_CLOSE) return read_close(payload, len, used, event);
  enum ws_event_kind kind = opcode == WS_PING ? WS_EVENT_PING : WS_EVENT_PONG;
  *event = (struct ws_event){.kind = kind, .opcode = opcode, .data = payload, .len = len};
  return used;
}

/* A part of a fragmented message: gathers it, and makes the event when it was the last one. */
static void read_fragment(
    struct ws *ws, const struct frame *frame, const uint8_t *payload, size_t used, struct ws_event *event) {
  if (frame->opcode != WS_CONTINUATION) ws->message_opcode = frame->opcode;
  if (!buf_append(&ws->fragments, payload, (size_t)frame->payload_len)) {
    fail(event, used, 1011, "out of memory for a fragmented message");
    return;
  }
  if (!frame->fin) return;
  uint8_t opcode = ws->message_opcode;
  ws->message_opcode = 0;
  read_message(opcode, ws->fragments.data, ws->fragments.len, used, event);
}

size_t ws_read(struct ws *ws, uint8_t *data, size_t len, struct ws_event *event) {
  *event = (struct ws_event){.kind = WS_EVENT_NONE};
  if (!ws->message_opcode && ws->fragments.cap) buf_free(&ws->fragments);
  if (len == 0) return 0;
  size_t used = 0;
  struct frame frame;
  while (event->kind == WS_EVENT_NONE && read_header(ws, data + used, len - used, &frame)) {
    if (frame.error) return fail(event, used, frame.error_code, frame.error);
    if (frame.payload_len > len - used - frame.header_len) return used;
    uint8_t *payload = data + used + frame.header_len;
    size_t payload_len = (size_t)frame.payload_len;
    if (frame.masked) ws_mask(payload, payload_len, payload - 4, 0);
    used += frame.header_len + payload_len;
    if (is_control(frame.opcode)) return read_control(frame.opcode, payload, payload_len, used, event);
    if (frame.fin && frame.opcode != WS_CONTINUATION) {
      return read_message(frame.opcode, payload, payload_len, used, event);
    }
    read_fragment(ws, &frame, payload, used, event);
  }
  return used;
}

size_t ws_header_size(size_t payload_len, bool masked) {
  size_t len_bytes = payload_len > 65535 ? 8 : payload_len > 125 ? 2 : 0;
  return 2 + len_bytes + (masked ? 4 : 0);
}

size_t ws_write_header(uint8_t out[WS_HEADER_MAX], uint8_t opcode, size_t payload_len, const uint8_t mask[4]) {
  uint8_t mask_bit = mask ? MASKED : 0;
  size_t at = 2;
  out[0] = FIN | opcode;
  if (payload_len <= 125) {
    out[1] = mask_bit | (uint8_t)payload_len;
  } else if (payload_len <= 65535) {
    uint16_t wide = htobe16((uint16_t)payload_len);
    out[1] = mask_bit | 126;
    memcpy(out + at, &wide, sizeof wide);
    at += sizeof wide;
  } else {
    uint64_t wide = htobe64(payload_len);
    out[1] = mask_bit | 127;
    memcpy(out + at, &wide, sizeof wide);
    at += sizeof wide;
  }
  if (!mask) return at;
  memcpy(out + at, mask, 4);
  return at + 4;
}

size_t ws_write_control(uint8_t *out, uint8_t opcode, const void *data, size_t len, const uint8_t mask[4]) {
  if (len > CONTROL_MAX) len = CONTROL_MAX;
  size_t at = ws_write_header(out, opcode, len, mask);
  if (len) memcpy(out + at, data, len);
  if (mask) ws_mask(out + at, len, mask, 0);
  return at + len;
}

size_t ws_write_close(uint8_t *out, uint16_t code, const char *reason, const uint8_t mask[4]) {
  uint8_t payload[CONTROL_MAX];
  size_t len = reason ? strnlen(reason, CONTROL_MAX - 1) : 0;
  /* A cut must not split a character. */
  if (len > CONTROL_MAX - 2) {
    len = CONTROL_MAX - 2;
    while (len && is_continuation_byte((uint8_t)reason[len]))
      len--;
  }
  payload[0] = (uint8_t)(code >> 8);
  payload[1] = (uint8_t)code;
  if (len) memcpy(payload + 2, reason, len);
  return ws_write_control(out, WS_CLOSE, payload, len + 2, mask);
}
