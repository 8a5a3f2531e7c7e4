/* The NATS client protocol: what a server sends is read in place, what a client sends is written around a payload that
 * the caller puts in itself. Text lines end in CRLF (a lone LF is taken too), names of operations know no case. */
#ifndef MUSTER_WIRE_NATS_H
#define MUSTER_WIRE_NATS_H

#include "base/view.h"

#include <stdint.h>

#define NATS_LINE_MAX 65536 /* INFO lists the servers of a cluster */
#define NATS_SUBJECT_MAX 256

enum nats_kind {
  NATS_PARTIAL, /* more bytes are needed */
  NATS_BAD,     /* no NATS, or over a limit */
  NATS_INFO,    /* text: the JSON object */
  NATS_MSG,     /* MSG or HMSG */
  NATS_PING,
  NATS_PONG,
  NATS_OK,
  NATS_ERROR, /* text: what stands between the quotes */
};

struct nats_message {
  enum nats_kind kind;
  struct view text;
  uint32_t sid; /* of NATS_MSG; subscriptions are numbered by the client */
  struct view subject, reply, headers, payload;
};

/* Reads the message at data; returns its length, 0 for NATS_PARTIAL and NATS_BAD. Headers and payload together may have
 * payload_max bytes. */
size_t nats_read(const uint8_t *data, size_t len, uint32_t payload_max, struct nats_message *out);

/* The status of a header block ("NATS/1.0 503"), 0 when it has none. */
uint32_t nats_status(struct view headers);

/* What muster needs of an INFO. */
struct nats_info {
  char version[32];
  uint64_t max_payload; /* 0: not said */
  bool tls_required, tls_available, auth_required, headers, jetstream;
};

bool nats_read_info(struct view text, struct nats_info *out);

/* Publishes with and without headers; reply and headers may be empty. */
struct nats_publish {
  struct view subject, reply;
  struct view headers; /* the whole block: "NATS/1.0\r\nName: value\r\n\r\n" */
  size_t payload_len;
};

/* An upper bound of what nats_write_publish, the payload and its end take together. */
size_t nats_publish_size(const struct nats_publish *publish);
/* Writes everything up to the payload; returns where it goes. nats_end writes what stands behind it. */
uint8_t *nats_write_publish(uint8_t *out, const struct nats_publish *publish);
uint8_t *nats_end(uint8_t *out);

/* "SUB subject sid"; out has NATS_SUBJECT_MAX + 32 bytes. Returns the end. */
uint8_t *nats_write_subscribe(uint8_t *out, struct view subject, struct view queue, uint32_t sid);

#define NATS_PING_TEXT "PING\r\n"
#define NATS_PONG_TEXT "PONG\r\n"

/* The errors that servers send by text have no numbers; these are muster's. */
enum nats_error {
  NATS_ERROR_OTHER = 1,
  NATS_ERROR_UNKNOWN_OPERATION,
  NATS_ERROR_ROUTE_PORT,
  NATS_ERROR_AUTHORIZATION,
  NATS_ERROR_AUTHORIZATION_TIMEOUT,
  NATS_ERROR_CLIENT_PROTOCOL,
  NATS_ERROR_CONTROL_LINE,
  NATS_ERROR_PARSER,
  NATS_ERROR_TLS_REQUIRED,
  NATS_ERROR_STALE_CONNECTION,
  NATS_ERROR_CONNECTIONS,
  NATS_ERROR_SLOW_CONSUMER,
  NATS_ERROR_PAYLOAD,
  NATS_ERROR_SUBJECT,
  NATS_ERROR_PERMISSIONS,
  NATS_ERROR_AUTHENTICATION_EXPIRED,
  NATS_ERROR_AUTHENTICATION_REVOKED,
  NATS_ERROR_SUBSCRIPTIONS,
  NATS_ERROR_SHUTDOWN,
};

enum nats_error nats_error_of(struct view text);
/* The error's name as servers write it; NULL for a number that is none. */
const char *nats_error_text(int32_t error);

/* What the subject says to which a message of a JetStream consumer wants its ACK. */
struct nats_delivery {
  uint64_t deliveries; /* of this message, with this one */
  uint64_t left;       /* messages that the consumer has not delivered yet */
};

/* False when the subject is no such one. */
bool nats_read_delivery(struct view reply, struct nats_delivery *out);

/* JetStream's answer to a publish. */
struct nats_puback {
  uint64_t sequence;
  int32_t error; /* err_code of the server, or its code where it has none; 0: stored */
  bool duplicate;
};

/* False when the text is no such answer. */
bool nats_read_puback(struct view text, struct nats_puback *out);

#endif
