/* The four application protocols of websocket-shootout, one WebSocket message to a struct and back: standard JSON,
 * binary, Phoenix channels (version 1 as the suite speaks it, and version 2 as today's phoenix.js does) and
 * ActionCable. Facts: shared/protocols/shootout.md section 1. Nothing is allocated: reading hands out views of the
 * message, writing gathers pieces and copies them once.
 *
 * What a message carries is `payload`: of the JSON protocols the raw text of a JSON value, which a server passes on as
 * it is; of the binary protocol the bytes behind the type. A generator's payload has two members (places):
 *   sendTime  Unix time in nanoseconds, decimal (binary: u64 at offset 5 of the message)
 *   padding   free text without escapes (binary: from offset 13); muster's own header travels in it
 */
#ifndef MUSTER_WIRE_SHOOTOUT_H
#define MUSTER_WIRE_SHOOTOUT_H

#include "base/view.h"

enum shootout_protocol { SHOOTOUT_JSON, SHOOTOUT_BINARY, SHOOTOUT_PHOENIX, SHOOTOUT_PHOENIX_2, SHOOTOUT_CABLE };

enum shootout_kind {
  SHOOTOUT_UNKNOWN, /* well-formed, but of a type that the protocol does not know or without what the type needs */
  SHOOTOUT_ECHO,
  SHOOTOUT_BROADCAST,
  SHOOTOUT_RESULT,     /* to the sender of a broadcast: the fan-out was issued */
  SHOOTOUT_ERROR,      /* JSON's "error" */
  SHOOTOUT_WELCOME,    /* ActionCable's first message */
  SHOOTOUT_JOIN,       /* phx_join, subscribe */
  SHOOTOUT_JOINED,     /* its confirmation */
  SHOOTOUT_REFUSED,    /* a reply whose status is not ok, reject_subscription */
  SHOOTOUT_LEAVE,      /* phx_leave, unsubscribe */
  SHOOTOUT_HEARTBEAT,  /* Phoenix both ways; ActionCable's ping */
  SHOOTOUT_DISCONNECT, /* the server ends the channel or the connection */
};

struct shootout_message {
  enum shootout_kind kind;
  struct view payload;
  /* Raw JSON values of Phoenix, as they are to be given back; empty where there was none. */
  struct view topic, ref, join_ref;
  struct view identifier; /* ActionCable's, a raw JSON string */
};

/* Reads what a client sent. The bytes may be changed in place: ActionCable's text inside a text loses its escapes.
 * False when the message is none of the protocol. */
bool shootout_read_request(enum shootout_protocol protocol, uint8_t *data, size_t len, struct shootout_message *out);
/* Reads what a server sent. */
bool shootout_read_reply(
    enum shootout_protocol protocol, const uint8_t *data, size_t len, struct shootout_message *out);

/* The padding of a payload; {NULL, 0} when it has none (or, in JSON, one with escapes). */
struct view shootout_padding(enum shootout_protocol protocol, struct view payload);

/* Whether a raw topic or identifier names the benchmark's channel. */
bool shootout_is_lobby(struct view topic);
bool shootout_is_benchmark_channel(struct view identifier);
/* A Phoenix ref in decimal. */
bool shootout_ref_number(struct view ref, uint32_t *out);

/* ---- Writing ---- */

#define SHOOTOUT_PIECES_MAX 12

/* A message to be written, in pieces. Views point into it: it must stay where it is. */
struct shootout_text {
  struct view piece[SHOOTOUT_PIECES_MAX]; /* data NULL: the hole, which the caller fills */
  uint32_t count;
  size_t len;         /* of the whole message */
  uint8_t binary[13]; /* head of a binary message */
  char time[20], ref[10];
};

/* Copies the pieces; returns the start of the hole (NULL without one). */
uint8_t *shootout_put(uint8_t *out, const struct shootout_text *text);

/* A client's echo or broadcast with a hole of padding_len bytes, which must need no escapes in JSON; without padding
 * the member is left out. ref: of Phoenix only, "" unless has_ref. */
struct shootout_request {
  enum shootout_kind kind; /* SHOOTOUT_ECHO or SHOOTOUT_BROADCAST */
  uint64_t send_time_ns;
  size_t padding_len;
  uint32_t ref;
  bool has_ref;
};
void shootout_request(
    struct shootout_text *text, enum shootout_protocol protocol, const struct shootout_request *request);
/* phx_join and subscribe; empty for the protocols that have none. */
struct view shootout_join(enum shootout_protocol protocol);
/* Phoenix's heartbeat, version 1; empty for the others. */
struct view shootout_heartbeat(enum shootout_protocol protocol);

/* A server's echo or result for a request, to its sender. */
void shootout_answer(struct shootout_text *text, enum shootout_protocol protocol, enum shootout_kind kind,
    const struct shootout_message *request);
/* A server's broadcast of a payload to everybody. */
void shootout_fan_out(struct shootout_text *text, enum shootout_protocol protocol, struct view payload);
/* What else a server answers: JOINED, LEAVE or HEARTBEAT done, REFUSED with a reason (which needs no escapes). */
void shootout_confirm(
    struct shootout_text *text, enum shootout_protocol protocol, const struct shootout_message *request);
void shootout_refuse(struct shootout_text *text, enum shootout_protocol protocol,
    const struct shootout_message *request, const char *reason);
struct view shootout_welcome(void);
void shootout_cable_ping(struct shootout_text *text, uint64_t unix_seconds);

#endif
