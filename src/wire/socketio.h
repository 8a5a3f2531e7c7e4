/* Socket.IO protocol 5 inside Engine.IO protocol 4, the texts of WebSocket messages: what a server sends is read in
 * place, what a client sends is written around a payload that the caller puts in itself.
 *
 * A message is an Engine.IO packet: a digit (its type) and data. The data of type 4 is a Socket.IO packet:
 *   type digit [count of attachments "-"] ["/namespace" ","] [acknowledgement id] [JSON]
 * Binary attachments follow as messages of their own. */
#ifndef MUSTER_WIRE_SOCKETIO_H
#define MUSTER_WIRE_SOCKETIO_H

#include "base/view.h"

#include <stdint.h>

enum engineio_type {
  ENGINEIO_OPEN,
  ENGINEIO_CLOSE,
  ENGINEIO_PING,
  ENGINEIO_PONG,
  ENGINEIO_MESSAGE,
  ENGINEIO_UPGRADE,
  ENGINEIO_NOOP,
};

enum socketio_type {
  SOCKETIO_CONNECT,
  SOCKETIO_DISCONNECT,
  SOCKETIO_EVENT,
  SOCKETIO_ACK,
  SOCKETIO_CONNECT_ERROR,
  SOCKETIO_BINARY_EVENT,
  SOCKETIO_BINARY_ACK,
};

#define SOCKETIO_ATTACHMENTS_MAX 64
#define SOCKETIO_NAMESPACE_MAX 128

struct engineio_packet {
  enum engineio_type type;
  struct view data;
};

/* False when the text is no Engine.IO packet. */
bool engineio_read(struct view text, struct engineio_packet *out);

/* What an OPEN packet says; 0 where it is silent. */
struct engineio_open {
  uint32_t ping_interval_ms, ping_timeout_ms;
  uint64_t max_payload;
};

/* False when the data is no such JSON object, or names no session. */
bool engineio_read_open(struct view data, struct engineio_open *out);

struct socketio_packet {
  enum socketio_type type;
  uint32_t attachments;  /* binary messages that follow; only of the binary types */
  struct view namespace; /* "/" when the packet names none */
  bool has_id;
  uint32_t id;
  struct view data; /* JSON, or empty; checked by whoever reads it */
};

/* False when the data of a MESSAGE is no Socket.IO packet. */
bool socketio_read(struct view data, struct socketio_packet *out);

/* The name (raw JSON) of an event, and the text of its first argument: the content when that is a string without
 * escapes, else {NULL, 0}. False when the data is no event. */
bool socketio_read_event(struct view data, struct view *name, struct view *content);

/* What an acknowledgement says: 0 when it accepts, that is when its first argument is missing, null, true, or an object
 * whose "status", if it has one, is "ok" and which has no "error"; else the object's positive integer "code", or
 * SOCKETIO_REFUSED. False when the data is no array. */
#define SOCKETIO_REFUSED 1
bool socketio_read_ack(struct view data, int32_t *code);

/* "message" of a CONNECT_ERROR as it stands, with its escapes; {NULL, 0} when there is none. */
struct view socketio_read_error(struct view data);

/* Each writes at out and returns the end. A namespace of "/" is not written. */
uint8_t *socketio_write_connect(uint8_t *out, struct view namespace, struct view auth_json);
uint8_t *socketio_write_disconnect(uint8_t *out, struct view namespace);

/* An acknowledgement without arguments. */
uint8_t *socketio_write_ack(uint8_t *out, struct view namespace, uint32_t id);

/* An EVENT packet up to and with the opening of its last string argument; socketio_event_end closes it behind what the
 * caller put there. Texts are JSON without their quotes: the caller has escaped them. */
struct socketio_event {
  struct view namespace, name, first; /* first: another argument before; data NULL: none */
  bool has_id;
  uint32_t id;
};

#define SOCKETIO_EVENT_FIXED 32 /* of what surrounds the texts */
uint8_t *socketio_write_event(uint8_t *out, const struct socketio_event *event);
uint8_t *socketio_event_end(uint8_t *out);

#endif
