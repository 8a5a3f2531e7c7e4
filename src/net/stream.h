/* A stream: one non-blocking TCP connection, with TLS or without, on a loop. Embedded in its owner; the user-space
 * budget of an idle plain connection is 512 bytes in all (architecture.md), so buffers exist only while they hold
 * something: input is read into the loop's buffer and only an unconsumed tail is kept, output goes back to the loop's
 * pool once it is written. */
#ifndef MUSTER_NET_STREAM_H
#define MUSTER_NET_STREAM_H

#include "base/buf.h"
#include "net/address.h"
#include "net/loop.h"

struct stream;
struct tls_context; /* net/tls.h */
struct tls_session;

enum stream_end {
  STREAM_END_CLOSED,  /* the peer closed (FIN) */
  STREAM_END_RESET,   /* reset or any other error while open; error holds errno */
  STREAM_END_REFUSED, /* connect: nobody listens */
  STREAM_END_CONNECT, /* connect: any other error; error holds errno */
  STREAM_END_TLS,     /* TLS handshake or record error */
  STREAM_END_MEMORY,
};

/* Callbacks run inside loop_turn. Each may write to and close any stream, its own included. */
struct stream_ops {
  void (*connected)(struct stream *stream); /* TCP is up, TLS is not yet; may be NULL */
  void (*opened)(struct stream *stream);    /* ready for data */
  /* Bytes that came, in order, in memory that may be changed in place. Returns how many were used; the rest is given
   * again with what comes next. Called until a short read or until the stream is closed or paused. */
  size_t (*received)(struct stream *stream, uint8_t *data, size_t len);
  /* All output has left user space, after some of it had to wait for the socket; may be NULL. */
  void (*drained)(struct stream *stream);
  /* The stream ended and was closed; not called for stream_close. */
  void (*closed)(struct stream *stream, enum stream_end end, int error);
};

struct stream {
  struct watch watch;
  struct loop *loop;
  const struct stream_ops *ops;
  struct tls_session *tls; /* owned; NULL for plain TCP */
  struct buf in;           /* the unconsumed tail */
  struct buf out;          /* not yet written */
  struct stream *next_dirty;
  struct stream **dirty_link; /* NULL while not in the loop's list of streams to flush */
  uint32_t out_sent;          /* bytes at the front of out that are already written */
  uint16_t error;             /* errno of a failure that closed will tell */
  uint8_t state;              /* enum stream_state in stream.c */
  uint8_t flags;
};

/* Starts to connect; the outcome comes through opened or closed (never before this returns OK).
 * from may be NULL; else the source address, bound with IP_BIND_ADDRESS_NO_PORT. tls may be NULL; server_name is for
 * SNI and certificate checks. Sets TCP_NODELAY. */
enum status stream_connect(struct stream *stream, struct loop *loop, const struct stream_ops *ops,
    const struct address *to, const struct address *from, struct tls_context *tls, const char *server_name,
    struct err *err);

/* Puts TLS over a plain stream that is open and has nothing left to write, for protocols that begin in the clear;
 * opened is called again once it is through. Meant to be called from within received, which must then have used all it
 * was given: what came in the clear behind the last plain word is nobody's. */
enum status stream_start_tls(struct stream *stream, struct tls_context *tls, const char *server_name, struct err *err);

/* Takes over an accepted, non-blocking descriptor; opened is called from a later turn once TLS is through,
 * or from within this call when tls is NULL. */
enum status stream_accept(struct stream *stream, struct loop *loop, const struct stream_ops *ops, int fd,
    struct tls_context *tls, struct err *err);

/* Appends to the output, which leaves at the end of the turn (or at once when much has gathered). False when memory
 * is out or the stream is not open. */
bool stream_write(struct stream *stream, const void *data, size_t len);
/* The same without a copy: room for len bytes (or NULL), then how many of them were filled. */
uint8_t *stream_reserve(struct stream *stream, size_t len);
void stream_commit(struct stream *stream, size_t len);
/* Writes now what can be written. */
void stream_flush(struct stream *stream);

/* Bytes that wait in user space, and whether the socket refused some of them. */
size_t stream_pending(const struct stream *stream);
bool stream_blocked(const struct stream *stream);
bool stream_is_open(const struct stream *stream);

/* Stops and resumes reading (back-pressure). Data that is already here is given on resume. */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);

/* Ends the stream at once, closing the descriptor and giving back all memory; closed is not called. Output that waits
 * is offered to the socket once more, what it refuses is lost. The owner may free or reuse the stream right away.
 * reset: RST instead of FIN, so that a mass teardown leaves no TIME_WAIT. Harmless when not open. */
void stream_close(struct stream *stream, bool reset);

/* Listening (set accepted before): calls accepted with each new non-blocking descriptor. The descriptor is in
 * listener->watch.fd; port 0 takes a free one, and address is updated with it. Several listeners may share a port
 * (SO_REUSEPORT): the second and later ones say so with joins (set before). Without it a port on which anybody listens
 * is refused, another process of the same user included, which the kernel would let share the connections. */
struct listener {
  struct watch watch;
  struct loop *loop;
  bool joins;
  void (*accepted)(struct listener *listener, int fd, const struct address *peer);
  struct timer retry; /* pauses accepting while descriptors are out */
};
enum status listener_open(struct listener *listener, struct loop *loop, struct address *address, struct err *err);
void listener_close(struct listener *listener);

#endif
