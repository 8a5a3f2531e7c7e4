/* libp2p connections, as dialer and as listener, over UDX (many connections on one UDP socket) or over TCP: the
 * transport, multistream-select, Noise XX, yamux, and one protocol negotiation for each stream. The layers below are
 * pure state machines of their own (udx.h, channel.h, yamux.h); this header is all that a driver or a server needs.
 *
 * Ownership: the node owns its connections, a connection owns its streams. A pointer is good until its closed callback
 * has returned, or until the call that ends it (libp2p_disconnect, libp2p_stream_reset) has been made. Callbacks run
 * inside loop_turn, never from within a call of this header, but for closed in libp2p_close; each may call anything
 * here, on its own object too. One node belongs to one loop and one thread.
 *
 * Memory: an idle UDX connection takes LIBP2P_CONN_BYTES, buffers exist while they hold something. Bounded by the
 * config: connections and streams by count, what a peer can make us keep by the windows (256 KiB a stream unless the
 * handler expects more, 1 MiB of datagrams out of order a connection), output by out_max a stream. */
#ifndef MUSTER_NET_LIBP2P_PEER_H
#define MUSTER_NET_LIBP2P_PEER_H

#include "net/address.h"
#include "net/libp2p/identity.h"
#include "net/loop.h"
#include "wire/multiaddr.h"

#define LIBP2P_CONN_BYTES 2048 /* at most, idle, without the streams' own */

struct libp2p;        /* a node: what the connections of a loop share */
struct libp2p_conn;   /* one secured, multiplexed connection */
struct libp2p_stream; /* one of its streams */

/* Why a connection ended. */
enum libp2p_cause {
  LIBP2P_CLOSED = 1,  /* the peer ended it in good order */
  LIBP2P_RESET,       /* the peer or the network broke it; code holds errno or the peer's error code */
  LIBP2P_REFUSED,     /* nobody listens there */
  LIBP2P_UNREACHABLE, /* the operating system cannot send there; code holds errno */
  LIBP2P_TIMED_OUT,   /* set-up took too long, a ping was not answered, or nothing came for 30 s */
  LIBP2P_INSECURE,    /* Noise failed, or the peer is not who it was said to be */
  LIBP2P_NO_PROTOCOL, /* the peer speaks no /noise or no /yamux/1.0.0 */
  LIBP2P_BROKEN,      /* the peer broke the rules of a layer */
  LIBP2P_NO_MEMORY,
};

struct libp2p_end {
  enum libp2p_cause cause;
  uint32_t code;
  const char *text; /* one line for a person; good during the callback */
};

/* A short fixed text for a cause ("refused", "timed out" ...). */
const char *libp2p_cause_text(enum libp2p_cause cause);

struct libp2p_conn_ops {
  /* Secured and multiplexed: streams may be opened. For accepted connections it is the first sign of life. */
  void (*opened)(struct libp2p_conn *conn);
  /* Ended by the peer, by a failure or by libp2p_close; not called for libp2p_disconnect, nor for an accepted
   * connection that never opened. Its streams' closed callbacks come first. Freed afterwards. */
  void (*closed)(struct libp2p_conn *conn, const struct libp2p_end *end);
};

/* How a stream ended. */
enum libp2p_stream_end {
  LIBP2P_STREAM_DONE = 1, /* both sides ended their half */
  LIBP2P_STREAM_RESET,    /* by the peer */
  LIBP2P_STREAM_REFUSED,  /* the peer does not speak the protocol */
  LIBP2P_STREAM_BROKEN,   /* the peer's protocol negotiation was not readable */
  LIBP2P_STREAM_LOST,     /* the connection ended */
};

struct libp2p_stream_ops {
  /* The protocol is agreed. Data may be written before: it travels right behind the proposal. NULL: not told. */
  void (*opened)(struct libp2p_stream *stream);
  /* Bytes that came, in order, in memory that may be changed in place. Returns how many were used; the rest is given
   * again with what comes next, or after libp2p_stream_resume. The peer gets credit for what was used only: a handler
   * that leaves data stops the peer after the stream's window; one that waits for a long message to be whole must
   * tell so with libp2p_stream_expect. */
  size_t (*received)(struct libp2p_stream *stream, uint8_t *data, size_t len);
  /* The peer ended its half: no more data. NULL: our half is ended too. */
  void (*ended)(struct libp2p_stream *stream);
  /* All that was written has been handed to the transport, after some of it had to wait. NULL: not told. */
  void (*drained)(struct libp2p_stream *stream);
  /* The stream is over; not called after libp2p_stream_reset. Freed afterwards. */
  void (*closed)(struct libp2p_stream *stream, enum libp2p_stream_end end);
};

/* What answers streams that the peer opens: chosen by protocol id; all others are answered "na". */
struct libp2p_protocol {
  const char *id; /* "/ricochet/store/doc/1.0.0" */
  const struct libp2p_stream_ops *ops;
  /* A stream of this protocol came (ops->opened is not called as well). user: libp2p_config.user. May be NULL. */
  void (*accepted)(struct libp2p_stream *stream, void *user);
};

struct libp2p_config {
  /* Of accepted connections, and of dials that bring none; read-only and alive as long as the node. */
  const struct libp2p_identity *identity;
  const struct libp2p_protocol *protocols; /* alive as long as the node */
  size_t protocol_count;
  const struct libp2p_conn_ops *incoming; /* of accepted connections; NULL: as if both did nothing */
  void *user;                             /* of accepted connections and streams */
  const struct address *from;             /* the UDP socket for dialing is bound to it; NULL: any */
  bool identify;                          /* answer /ipfs/id/1.0.0 with key, addresses and protocols; else "na" */
  bool without_offload;                   /* UDP_SEGMENT and UDP_GRO are not used even where the kernel has them */
  /* 0 takes the default in brackets. */
  uint32_t connections_max;   /* accepted ones at once (10,000); more displace those not open yet, or are refused */
  uint32_t streams_max;       /* of the peer, on one connection (512); more are reset */
  uint32_t dials_at_once;     /* UDX dials that the peer has not said a word to; the others wait their turn (8) */
  uint32_t out_max;           /* bytes that wait in one stream (16 MiB) */
  uint32_t datagram_max;      /* to which datagrams may grow where probes get through (1,472; 1,200 to 9,000) */
  uint64_t setup_deadline_ns; /* from when a dial's turn came, or from accept, to opened (15 s) */
  uint64_t keep_alive_ns;     /* between two pings of our own, each answered within 10 s (15 s); UINT64_MAX: none */
};

enum status libp2p_create(struct libp2p **out, struct loop *loop, const struct libp2p_config *config, struct err *err);
/* Ends all connections with LIBP2P_CLOSED after telling the peers, and frees the node. Not from within a callback. */
void libp2p_close(struct libp2p *node);

/* Listens, over UDX or TCP, for as long as the node lives; port 0 takes a free one and *address is updated. Several
 * nodes may share a port when all of them say joins. At most 16 addresses a node. */
enum status libp2p_listen(
    struct libp2p *node, enum multiaddr_transport transport, struct address *address, bool joins, struct err *err);

/* Connects. The outcome comes through opened or closed, never before this returns. The peer is checked against
 * to->peer when to->has_peer. address: where to->host was resolved to (address_resolve). identity may be NULL: the
 * node's. user: libp2p_conn_user. Fails with STATUS_MEMORY or STATUS_IO. */
enum status libp2p_dial(struct libp2p *node, const struct multiaddr *to, const struct address *address,
    const struct libp2p_identity *identity, const struct libp2p_conn_ops *ops, void *user, struct libp2p_conn **out,
    struct err *err);

/* Ends the connection in good order: tells the peer what can be told without waiting. No callback follows, neither
 * its own nor its streams'. The pointer is void afterwards. */
void libp2p_disconnect(struct libp2p_conn *conn);

void *libp2p_conn_user(const struct libp2p_conn *conn);
void libp2p_conn_set_user(struct libp2p_conn *conn, void *user);
/* Who the peer is; from opened on. */
const struct peer_id *libp2p_conn_peer(const struct libp2p_conn *conn);

/* Opens a stream and proposes the protocol (a text that outlives the stream); the proposal leaves with what is written
 * in this turn. NULL: the connection is not open, memory is out, or 256 streams wait for the peer to take them. */
struct libp2p_stream *libp2p_open_stream(
    struct libp2p_conn *conn, const char *protocol_id, const struct libp2p_stream_ops *ops, void *user);

void *libp2p_stream_user(const struct libp2p_stream *stream);
void libp2p_stream_set_user(struct libp2p_stream *stream, void *user);
struct libp2p_conn *libp2p_stream_conn(const struct libp2p_stream *stream);

/* Appends to the stream's output; what the peer's window or the transport does not take waits. False, with nothing
 * taken: our half is ended, the stream is over, memory is out, or out_max would be passed. */
bool libp2p_stream_write(struct libp2p_stream *stream, const void *data, size_t len);
/* Bytes that wait; drained is called when they are gone. */
size_t libp2p_stream_pending(const struct libp2p_stream *stream);
/* Ends our half behind all that was written. The stream is over when the peer has ended its half too. */
void libp2p_stream_end(struct libp2p_stream *stream);
/* Ends the stream at once; no callback follows. */
void libp2p_stream_reset(struct libp2p_stream *stream);
/* What comes is to be kept until len bytes of it are here (counted from the first byte that received is given just now,
 * or would be given next): lets the peer send them. False: more than 16 MiB. */
bool libp2p_stream_expect(struct libp2p_stream *stream, size_t len);
/* Gives what received has left once more, at the end of the turn. */
void libp2p_stream_resume(struct libp2p_stream *stream);

/* What the node's UDP sockets did, and what its UDX connections had to do twice. */
struct libp2p_stats {
  uint64_t datagrams_in, datagrams_out, bytes_in, bytes_out;
  uint64_t receive_calls, send_calls; /* system calls */
  uint64_t dropped;                   /* datagrams that are no UDX packet or belong to nobody */
  uint64_t resent;                    /* packets sent again */
  uint32_t connections;               /* now */
};
void libp2p_stats(const struct libp2p *node, struct libp2p_stats *out);

#endif
