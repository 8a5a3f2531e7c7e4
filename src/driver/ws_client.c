#include "driver/ws_client.h"

#include "base/rng.h"
#include "driver/fail.h"
#include "net/http.h"

#include <stdio.h>
#include <string.h>

#define REQUEST_MAX 2048
#define CONTROL_FRAME_MAX 131
#define MESSAGE_OVERHEAD (64 * 1024) /* pretty printing and members that servers add */

static bool write_raw(struct client *client, const void *data, size_t len) {
  if (!stream_write(&client->stream, data, len)) return false;
  client->run->bytes_sent += len;
  return true;
}

static void next_mask(struct ws_client *ws, uint8_t mask[4]) {
  uint32_t x = ws->mask_state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  ws->mask_state = x;
  memcpy(mask, &x, 4);
}

/* --- the upgrade --- */

static bool is_field_text(const char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < ' ' || *text == 0x7f) return false;
  }
  return true;
}

enum status ws_client_headers(
    char out[WS_CLIENT_HEADERS_MAX], const struct driver_settings *settings, const char *subprotocol, struct err *err) {
  const char *origin = settings->origin;
  if (origin && !is_field_text(origin)) return err_set(err, STATUS_USAGE, "--origin holds a control character");
  int len = snprintf(out, WS_CLIENT_HEADERS_MAX, "%s%s%s%s%s%s", subprotocol ? "Sec-WebSocket-Protocol: " : "",
      subprotocol ? subprotocol : "", subprotocol ? "\r\n" : "", origin ? "Origin: " : "", origin ? origin : "",
      origin ? "\r\n" : "");
  if (len >= 0 && len < WS_CLIENT_HEADERS_MAX) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "--origin is longer than 500 characters");
}

void ws_client_open(struct ws_client *ws, struct client *client, const char *path, const char *headers) {
  const struct driver_run *run = client->run;
  char request[REQUEST_MAX];
  ws_make_key(ws->upgrade_key);
  random_bytes(&ws->mask_state, sizeof ws->mask_state);
  ws->mask_state |= 1; /* xorshift must not start at 0 */
  size_t len = ws_write_request(
      request, sizeof request, run->server_name, run->settings.url.port, path, ws->upgrade_key, headers);
  if (len == 0 || !write_raw(client, request, len)) fail(client, CAUSE_UPGRADE);
}

/* *used stays 0 while more bytes are needed. */
static bool read_answer(struct ws_client *ws, struct client *client, const struct ws_client_ops *ops,
    const uint8_t *data, size_t len, size_t *used) {
  struct http_head head;
  enum http_result result = http_read_response(data, len, &head, used, NULL);
  if (result == HTTP_PARTIAL && len < HTTP_HEAD_MAX) {
    *used = 0;
    return true;
  }
  bool good = result == HTTP_COMPLETE && ws_check_response(&head, ws->upgrade_key, NULL) == STATUS_OK;
  if (!good) return fail(client, CAUSE_UPGRADE);
  ws_init(&ws->ws, WS_CLIENT, ops->message_limit(&client->run->settings));
  ws->upgraded = true;
  return ops->upgraded(client, http_field(&head, "sec-websocket-protocol"));
}

/* --- reading --- */

uint32_t ws_client_message_limit(const struct driver_settings *settings) {
  uint64_t limit = (uint64_t)settings->payload_bytes * 2 + MESSAGE_OVERHEAD;
  return limit > INT32_MAX ? INT32_MAX : (uint32_t)limit;
}

size_t ws_client_received(
    struct ws_client *ws, struct client *client, const struct ws_client_ops *ops, uint8_t *data, size_t len) {
  size_t used = 0;
  if (!ws->upgraded) {
    if (!read_answer(ws, client, ops, data, len, &used)) return 0;
    if (!ws->upgraded) return 0;
  }
  while (used < len) {
    struct ws_event event;
    size_t read = ws_read(&ws->ws, data + used, len - used, &event);
    used += read;
    if (event.kind == WS_EVENT_NONE) {
      if (read == 0) break;
      continue;
    }
    if (!ops->event(client, &event)) return 0;
  }
  return used;
}

bool ws_client_control(struct ws_client *ws, struct client *client, const struct ws_event *event, bool ready) {
  switch (event->kind) {
  case WS_EVENT_PING:
    return ws_client_write_control(ws, client, WS_PONG, event->data, event->len) || fail(client, CAUSE_RESET);
  case WS_EVENT_CLOSE:
    return fail(client, ready ? CAUSE_CLOSED_BY_PEER : CAUSE_CLOSED_EARLY);
  case WS_EVENT_ERROR:
    return fail(client, CAUSE_PROTOCOL);
  default:
    return true;
  }
}

/* --- writing --- */

bool ws_frame_begin(struct ws_client *ws, struct client *client, uint8_t opcode, size_t len, struct ws_frame *frame) {
  size_t header_len = ws ? ws_header_size(len, true) : 0;
  uint8_t *at = stream_reserve(&client->stream, header_len + len);
  if (!at) return false;
  if (ws) {
    next_mask(ws, frame->mask);
    ws_write_header(at, opcode, len, frame->mask);
  }
  frame->message = at + header_len;
  frame->header_len = header_len;
  frame->len = len;
  return true;
}

void ws_frame_end(struct client *client, const struct ws_frame *frame) {
  size_t total = frame->header_len + frame->len;
  if (frame->header_len > 0) ws_mask(frame->message, frame->len, frame->mask, 0);
  stream_commit(&client->stream, total);
  client->run->bytes_sent += total;
}

bool ws_client_write_control(
    struct ws_client *ws, struct client *client, uint8_t opcode, const void *data, size_t len) {
  uint8_t mask[4], frame[CONTROL_FRAME_MAX];
  next_mask(ws, mask);
  return write_raw(client, frame, ws_write_control(frame, opcode, data, len, mask));
}

bool ws_client_write_close(struct ws_client *ws, struct client *client) {
  static const uint8_t normal[2] = {1000 >> 8, 1000 & 0xff};
  return ws_client_write_control(ws, client, WS_CLOSE, normal, sizeof normal);
}

void ws_client_free(struct ws_client *ws) {
  if (ws->upgraded) ws_free(&ws->ws);
}
