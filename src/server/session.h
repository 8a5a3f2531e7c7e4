/* A session: one client connection from accept to close. It speaks HTTP until the upgrade, then JuggleIM's envelopes
 * (shared facts: sections 1, 2, 4 of the protocol). session.c reads, session_write.c writes frames, session_push.c
 * decides how a message reaches the client, session_http.c answers plain HTTP.
 *
 * Memory is bounded: output beyond session_out_bytes stops reading and turns deliveries into notices, and a client
 * whose output does not move is dropped. All functions run on the gateway's thread. */
#ifndef MUSTER_SERVER_SESSION_H
#define MUSTER_SERVER_SESSION_H

#include "net/stream.h"
#include "net/ws.h"
#include "server/core.h"
#include "server/limiter.h"
#include "wire/juggle.h"

#include <stdbool.h>
#include <stdint.h>

struct gateway;

enum session_state {
  SESSION_FREE,
  SESSION_HTTP,          /* waits for a request head */
  SESSION_AWAIT_CONNECT, /* upgraded */
  SESSION_LOGGING_IN,    /* the core is asked; reading is paused */
  SESSION_OPEN,
  SESSION_CLOSING, /* the last frame is written; what comes is thrown away until the close */
};

/* Why reading is paused. */
enum session_pause {
  PAUSE_LOGIN = 1,
  PAUSE_OUTPUT = 2,   /* too much output waits */
  PAUSE_REQUESTS = 4, /* too many requests are unanswered */
  PAUSE_CORE = 8,     /* the core's queue is full; a request is held */
  PAUSE_DRAIN = 16,   /* the server stops */
};

/* A request that the core's queue had no room for. */
struct held_request {
  int32_t cmd;
  size_t len;
  uint8_t body[];
};

#define SESSION_REQUESTS_MAX 1024                    /* publishes and queries posted and not yet answered */
#define SESSION_QUERIES_MAX 4                        /* queries among them: their answers can be long */
#define SESSION_REQUEST_BYTES_MAX (4u * 1024 * 1024) /* of those requests together, about */
#define SESSION_CONNECT_BYTES_MAX (16u * 1024)       /* of a message before the login */
#define SESSION_PUSH_WINDOW_MAX 16384

struct session {
  struct stream stream;
  struct ws ws;
  struct timer timer; /* the earliest of the session's deadlines */
  struct gateway *gateway;
  struct held_request *held; /* owned, normally NULL */
  char *user_id;             /* owned, while logged in */
  struct juggle_key key;
  struct limiter limiter;
  uint64_t input_ns;    /* of the last data frame or Pong */
  uint64_t deadline_ns; /* HTTP to LOGGING_IN: of the login; OPEN: the next Ping; CLOSING: of the close */
  uint64_t moved_ns;    /* when output last moved, while the socket is blocked */
  uint64_t written;     /* bytes ever given to the stream */
  uint64_t moved;       /* bytes that had left it at moved_ns */
  uint64_t notice_ns;   /* when the last ntf was written */
  int64_t noticed_ms;   /* syncTime of the last ntf */
  int64_t newest_ms;    /* newest receive time of a message that was not pushed */
  uint32_t slot, generation, next_free;
  uint32_t next_index;    /* of the next push; the low 16 bits go out */
  uint32_t oldest_index;  /* no outstanding push is older */
  uint32_t unacked;       /* direct pushes without a PublishAck */
  uint32_t request_bytes; /* of the unanswered requests; each answer takes off their mean */
  uint16_t requests, queries;
  uint16_t user_id_len;
  uint8_t state;  /* enum session_state */
  uint8_t pauses; /* set of enum session_pause */
  bool obfuscated;
  bool logged_in;     /* the core knows it: a logout is due */
  bool notify;        /* pulls instead of being pushed to */
  bool notice_out;    /* an ntf went out and no sync has come since */
  bool slow_reported; /* the slow reader was told to go */
};

/* architecture.md: an idle plain connection costs at most 512 bytes of user space. 64 are left for the user id. */
_Static_assert(sizeof(struct session) <= 448, "idle session budget");

extern const struct stream_ops session_stream_ops;

/* ---- session.c ---- */

/* Takes over an accepted descriptor, or closes it when memory is out. */
void session_accept(struct gateway *gateway, int fd);
/* Ends the session at once. */
void session_close(struct session *session, bool reset);
/* Ends the session after 50 ms, so that the last frame can leave. */
void session_finish(struct session *session);
void session_pause(struct session *session, enum session_pause why);
void session_resume(struct session *session, enum session_pause why);
/* Arms the timer for the earliest deadline. */
void session_arm(struct session *session);
struct session_ref session_ref(const struct session *session);
/* Results of the core. */
void session_connected(struct session *session, const struct out *out);
void session_publish_acked(struct session *session, const struct out *out);
void session_query_acked(struct session *session, const struct out *out);
void session_kicked(struct session *session, const struct out *out);

/* ---- session_http.c ---- */

/* Reads a request head; returns the bytes used. On an upgrade the state becomes SESSION_AWAIT_CONNECT. */
size_t session_http_received(struct session *session, const uint8_t *data, size_t len);

/* ---- session_write.c: each returns false when memory is out and the session was closed ---- */

/* Room for a frame around body_len bytes; the caller fills *body and calls frame_end. */
struct frame {
  uint8_t *body;
  size_t body_len, total;
};
bool frame_begin(struct session *session, struct frame *frame, int32_t cmd, int32_t qos, size_t body_len);
void frame_end(struct session *session, const struct frame *frame);
bool session_write_raw(struct session *session, const void *data, size_t len);
bool session_write_connect_ack(struct session *session, const struct juggle_connect_ack *ack);
bool session_write_publish_ack(struct session *session, const struct juggle_publish_ack *ack);
bool session_write_query_ack(struct session *session, const struct juggle_query_ack *ack);
bool session_write_disconnect(struct session *session, int32_t code, struct view ext);
bool session_write_pong(struct session *session);
/* True when no more than session_out_bytes wait; else tries to write first and, when that does not help, pauses
 * reading until the output has drained. */
bool session_output_open(struct session *session);

/* ---- session_push.c ---- */

void session_push(struct session *session, const struct fan_out *message, const struct fan_out_target *target);
/* A PublishAck of the client. */
void session_push_acked(struct session *session, int32_t index);
/* A sync was posted; and one was answered with isFinished. */
void session_sync_began(struct session *session);
void session_sync_finished(struct session *session);
/* Messages wait at login. */
void session_notify(struct session *session, int64_t sync_time_ms);
/* Sends the notice that is still owed, if any. */
void session_notify_owed(struct session *session);

#endif
