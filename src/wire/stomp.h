/* STOMP 1.2: what a server sends is read in place, what a client sends is written around a body that the caller puts in
 * itself. Lines end in LF or CRLF. Headers are handed out as they stand in the frame; stomp_unescape resolves them. */
#ifndef MUSTER_WIRE_STOMP_H
#define MUSTER_WIRE_STOMP_H

#include "base/view.h"

#include <stdint.h>

#define STOMP_HEAD_MAX 65536 /* command and headers of a frame that is read */
#define STOMP_HEADER_MAX 320 /* value of one that is written, unescaped */

enum stomp_kind {
  STOMP_PARTIAL, /* more bytes are needed */
  STOMP_BAD,     /* no STOMP server, or over a limit */
  STOMP_BEAT,    /* an end of line between frames: a heart-beat */
  STOMP_CONNECTED,
  STOMP_MESSAGE,
  STOMP_RECEIPT,
  STOMP_ERROR,
};

struct stomp_frame {
  enum stomp_kind kind;
  struct view headers; /* whole lines, checked */
  struct view body;
};

/* Reads the frame or the heart-beat at data; returns its length, 0 for STOMP_PARTIAL and STOMP_BAD. A body may have
 * body_max bytes. */
size_t stomp_read(const uint8_t *data, size_t len, uint32_t body_max, struct stomp_frame *out);

/* The raw value of the first header of that name (repeated ones do not count); {NULL, 0} when there is none. */
struct view stomp_header(const struct stomp_frame *frame, const char *name);
/* Resolves \r, \n, \c and \\ into out, which has room for raw.len bytes; returns the length. What is no such escape
 * has made its frame STOMP_BAD before. Headers of CONNECTED have no escapes. */
size_t stomp_unescape(struct view raw, uint8_t *out);

/* A header value of digits alone, as receipts that muster asked for; false for everything else. */
bool stomp_number(struct view raw, uint32_t *out);
/* "heart-beat:sx,sy": what a server can send, and what it wants to get, in milliseconds; false when it is malformed. No
 * such header means 0,0. */
bool stomp_heart_beat(const struct stomp_frame *frame, uint32_t *sends_ms, uint32_t *wants_ms);

struct stomp_connect {
  struct view host;
  struct view login, passcode; /* not escaped, as CONNECT wants it: without line ends and NUL; data NULL: left out */
  uint32_t sends_ms, wants_ms;
};

/* Each writes a frame up to its body and returns the end; stomp_end writes the NUL behind the body. Bounds: with
 * values of at most STOMP_HEADER_MAX bytes a head takes at most STOMP_WRITE_MAX. */
#define STOMP_WRITE_MAX 2200

uint8_t *stomp_write_connect(uint8_t *out, const struct stomp_connect *connect);
uint8_t *stomp_write_disconnect(uint8_t *out);

/* Its receipt is "s" and the id. */
struct stomp_subscribe {
  struct view destination;
  uint32_t id;
  bool individual;   /* ack:client-individual, which wants an ACK of each message; otherwise ack:auto */
  bool auto_delete;  /* RabbitMQ: the queue ends with its last consumer */
  uint32_t prefetch; /* RabbitMQ: messages on the way without an ACK; 0: not said */
};

uint8_t *stomp_write_subscribe(uint8_t *out, const struct stomp_subscribe *subscribe);
/* id: the MESSAGE's "ack" header as it stands in the frame, of at most STOMP_HEADER_MAX bytes. */
uint8_t *stomp_write_ack(uint8_t *out, struct view id);

struct stomp_send {
  struct view destination, content_type;
  size_t body_len;
  bool auto_delete; /* as that of a subscription to the same queue */
  bool has_receipt;
  uint32_t receipt;
};

uint8_t *stomp_write_send(uint8_t *out, const struct stomp_send *send);

static inline uint8_t *stomp_end(uint8_t *out) {
  *out++ = 0;
  return out;
}

/* STOMP's errors are texts; these numbers are muster's. */
enum stomp_error {
  STOMP_ERROR_OTHER = 1,
  STOMP_ERROR_CONNECT,
  STOMP_ERROR_VERSION,
  STOMP_ERROR_ACCESS,
  STOMP_ERROR_NOT_FOUND,
  STOMP_ERROR_DESTINATION,
  STOMP_ERROR_COMMAND,
  STOMP_ERROR_FRAME,
  STOMP_ERROR_SUBSCRIPTION,
  STOMP_ERROR_PRECONDITION,
  STOMP_ERROR_LOCKED,
  STOMP_ERROR_RESOURCE,
  STOMP_ERROR_PROCESSING,
  STOMP_ERROR_FORCED,
};

/* From an ERROR's "message" header, as RabbitMQ and ActiveMQ write it. */
enum stomp_error stomp_error_of(struct view message);
/* NULL for a number that is none. */
const char *stomp_error_text(int32_t error);

#endif
