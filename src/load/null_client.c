/* A connection to the null peer: HTTP and the upgrade where the protocol begins with them, then its messages. */
#include "load/null_client.h"

#include <stdlib.h>
#include <unistd.h>

#define BODY_MAX (4U << 20)
#define MESSAGE_MAX (4U << 20)
#define BYTES_MAX (4U << 20) /* of a message of plain TCP */

static void drop(struct null_client *client) {
  const struct null_dialect *dialect = client->house->dialect;
  if (dialect->closed) dialect->closed(client);
  hub_leave(client);
  stream_close(&client->stream, false);
  ws_free(&client->ws);
  loop_defer(client->house->loop, free, client);
}

static void on_closed(struct stream *stream, enum stream_end end, int error) {
  (void)end;
  (void)error;
  drop((struct null_client *)(void *)stream);
}

static bool open_dialect(struct null_client *client) {
  const struct null_dialect *dialect = client->house->dialect;
  return !dialect->opened || dialect->opened(client);
}

/* --- HTTP --- */

static bool on_upgrade(struct null_client *client, const struct http_head *head) {
  char answer[512];
  size_t len = 0;
  if (ws_answer_request(head, answer, sizeof answer, &len, NULL) != STATUS_OK) return false;
  ws_init(&client->ws, WS_SERVER, MESSAGE_MAX);
  client->upgraded = true;
  return stream_write(&client->stream, answer, len) && open_dialect(client);
}

/* One request; *used stays 0 while more bytes are needed. */
static bool on_http(struct null_client *client, const uint8_t *data, size_t len, size_t *used) {
  const struct null_dialect *dialect = client->house->dialect;
  struct http_head head;
  enum http_result result = http_read_request(data, len, &head, used, NULL);
  if (result == HTTP_BAD) return false;
  if (result == HTTP_PARTIAL) {
    *used = 0;
    return len < HTTP_HEAD_MAX;
  }
  if (http_field(&head, "Sec-WebSocket-Key").len > 0) return on_upgrade(client, &head);
  int64_t body_len = http_content_length(&head);
  if (body_len == -1) body_len = 0;
  if (!dialect->called || body_len < 0 || body_len > BODY_MAX) return false;
  if (len - *used < (size_t)body_len) {
    *used = 0;
    return true;
  }
  struct view body = view_of(data + *used, (size_t)body_len);
  *used += (size_t)body_len;
  return dialect->called(client, &head, body);
}

/* --- WebSocket --- */

uint8_t *null_client_begin(struct null_client *client, uint8_t opcode, size_t len, size_t *total) {
  size_t head_len = ws_header_size(len, false);
  uint8_t *at = stream_reserve(&client->stream, head_len + len);
  *total = head_len + len;
  return at ? at + ws_write_header(at, opcode, len, NULL) : NULL;
}

static bool write_pong(struct null_client *client, const struct ws_event *ping) {
  uint8_t frame[131];
  return stream_write(&client->stream, frame, ws_write_control(frame, WS_PONG, ping->data, ping->len, NULL));
}

/* At most one frame; *used stays 0 while more bytes are needed. */
static bool on_frame(struct null_client *client, uint8_t *data, size_t len, size_t *used) {
  struct ws_event event;
  do {
    size_t read = ws_read(&client->ws, data + *used, len - *used, &event);
    *used += read;
    if (read == 0 && event.kind == WS_EVENT_NONE) return true;
  } while (event.kind == WS_EVENT_NONE && *used < len);
  switch (event.kind) {
  case WS_EVENT_MESSAGE:
    return client->house->dialect->message(client, &event);
  case WS_EVENT_PING:
    return write_pong(client, &event);
  case WS_EVENT_NONE:
  case WS_EVENT_PONG:
    return true;
  default:
    return false;
  }
}

/* --- the stream --- */

static bool on_bytes(struct null_client *client, uint8_t *data, size_t len, size_t *used) {
  const struct null_dialect *dialect = client->house->dialect;
  if (dialect->message) return client->upgraded ? on_frame(client, data, len, used) : on_http(client, data, len, used);
  return dialect->bytes(client, data, len, used) && (*used > 0 || len < BYTES_MAX);
}

static size_t on_received(struct stream *stream, uint8_t *data, size_t len) {
  struct null_client *client = (struct null_client *)(void *)stream;
  size_t used = 0;
  bool keep = true;
  while (keep && used < len) {
    size_t read = 0;
    keep = on_bytes(client, data + used, len - used, &read);
    used += read;
    if (read == 0) break;
  }
  if (keep) return used;
  drop(client);
  return 0;
}

static void on_opened(struct stream *stream) {
  struct null_client *client = (struct null_client *)(void *)stream;
  if (!client->house->dialect->message) open_dialect(client);
}

static const struct stream_ops client_ops = {.opened = on_opened, .received = on_received, .closed = on_closed};

void null_client_accept(struct null_house *house, int fd) {
  struct null_client *client = calloc(1, sizeof *client);
  if (client) client->house = house;
  if (client && stream_accept(&client->stream, house->loop, &client_ops, fd, NULL, NULL) == STATUS_OK) return;
  close(fd);
  free(client);
}
