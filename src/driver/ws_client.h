/* The WebSocket part of a client, for drivers whose protocol runs over it: the upgrade, masked frames, and the events
 * that come. A driver embeds struct ws_client, zeroed, in its own state. */
#ifndef MUSTER_DRIVER_WS_CLIENT_H
#define MUSTER_DRIVER_WS_CLIENT_H

#include "driver/driver.h"
#include "net/ws.h"

#define WS_UPGRADE_KEY_BYTES 25

struct ws_client {
  union {
    char upgrade_key[WS_UPGRADE_KEY_BYTES]; /* until upgraded */
    struct ws ws;                           /* from then on */
  };
  uint32_t mask_state;
  bool upgraded;
};

/* What the driver does about what comes. The last two return false once they have failed the client. */
struct ws_client_ops {
  uint32_t (*message_limit)(const struct driver_settings *settings); /* bytes of a received message */
  /* The server has switched to WebSocket; subprotocol is what it chose, {NULL, 0} when it named none. */
  bool (*upgraded)(struct client *client, struct view subprotocol);
  bool (*event)(struct client *client, const struct ws_event *event);
};

/* For ops.message_limit of a protocol of texts: room for a payload with every character escaped, and for what stands
 * around it. */
uint32_t ws_client_message_limit(const struct driver_settings *settings);

#define WS_CLIENT_HEADERS_MAX 600

/* The header lines of an upgrade: the subprotocol (NULL: none) and the origin that was asked for, if any. */
enum status ws_client_headers(
    char out[WS_CLIENT_HEADERS_MAX], const struct driver_settings *settings, const char *subprotocol, struct err *err);

/* For driver.opened: asks for the upgrade; fails the client with CAUSE_UPGRADE when the request does not fit or cannot
 * be written. headers: further whole header lines, or NULL. */
void ws_client_open(struct ws_client *ws, struct client *client, const char *path, const char *headers);

/* As driver.received. A server that does not answer with a good 101 fails the client with CAUSE_UPGRADE. */
size_t ws_client_received(
    struct ws_client *ws, struct client *client, const struct ws_client_ops *ops, uint8_t *data, size_t len);

/* For ops.event: does what every protocol does about all but messages. Answers a PING; fails the client on CLOSE (by
 * the peer when it was ready, else early) and ERROR, and then returns false. */
bool ws_client_control(struct ws_client *ws, struct client *client, const struct ws_event *event, bool ready);

/* A frame that lies in the stream's buffer while its message is written. */
struct ws_frame {
  uint8_t *message;
  size_t header_len, len; /* len: of the message; header_len: 0 for a bare one */
  uint8_t mask[4];
};

/* Reserves a whole frame and writes its header; the caller writes len bytes at frame->message and ends the frame.
 * ws is NULL where the protocol runs over TCP as well, and this client does: then the message is bare. False when
 * memory is out or the stream is over. */
bool ws_frame_begin(struct ws_client *ws, struct client *client, uint8_t opcode, size_t len, struct ws_frame *frame);
void ws_frame_end(struct client *client, const struct ws_frame *frame);

/* A whole control frame of at most 125 bytes of data; false as above. */
bool ws_client_write_control(struct ws_client *ws, struct client *client, uint8_t opcode, const void *data, size_t len);
/* CLOSE with the code 1000. */
bool ws_client_write_close(struct ws_client *ws, struct client *client);

void ws_client_free(struct ws_client *ws);

#endif
