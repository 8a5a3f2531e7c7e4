/* What the parts of a node share: node.c (sockets, dials, the turn's end), conn.c (a connection: link, channel, mux),
 * streams.c (streams and their protocol negotiation), identify.c. */
#ifndef MUSTER_NET_LIBP2P_NODE_H
#define MUSTER_NET_LIBP2P_NODE_H

#include "base/clock.h"
#include "net/libp2p/channel.h"
#include "net/libp2p/mux.h"
#include "net/libp2p/peer.h"
#include "net/libp2p/udp.h"
#include "net/libp2p/udx.h"
#include "net/stream.h"

#define NODE_LISTENERS_MAX 16
#define NODE_SOCKETS_MAX (NODE_LISTENERS_MAX + 2) /* two for dialing */
#define NODE_PING_ANSWER_NS (10 * NS_PER_SEC)
#define IDENTIFY_PROTOCOL "/ipfs/id/1.0.0"

enum conn_state {
  CONN_QUEUED,     /* waits for its turn to dial */
  CONN_CONNECTING, /* TCP */
  CONN_SECURING,
  CONN_OPEN,
  CONN_OVER, /* freed at the end of the turn */
};

struct conn_link {
  struct libp2p_conn *before, *after;
};

struct conn_list {
  struct libp2p_conn *first, *last;
};

struct libp2p_stream {
  struct mux_stream mux; /* first */
  struct libp2p_conn *conn;
  const struct libp2p_stream_ops *ops; /* NULL until the peer's protocol is known */
  void *user;
  const char *protocol;                             /* what we proposed; NULL: the peer opened the stream */
  struct libp2p_stream *next_resume, **resume_link; /* among those to be resumed; also the list of spare ones */
  uint8_t proposals;
  bool got_header, is_agreed;
};

struct libp2p_conn {
  struct libp2p *node;
  const struct libp2p_conn_ops *ops;
  void *user;
  struct conn_link all, setup; /* setup: in the queue, dialing and not taken, or accepted and not open */
  struct libp2p_conn *next_dirty, *next_over, *next_in_bucket;
  enum multiaddr_transport transport;
  uint8_t state; /* enum conn_state */
  bool is_dialer, is_dirty, is_dialing, is_new, has_expected;
  struct timer timer;
  uint64_t timer_due_ns;
  uint64_t setup_due_ns, ping_due_ns;
  const struct libp2p_identity *identity;
  struct address address;
  struct channel channel;
  struct mux mux;
  uint32_t incoming_streams;
  struct stream tcp;
  struct udp *udp;
  struct udx *udx;
  struct udx_stream *udx_stream;
};

struct node_listener {
  struct listener listener; /* first */
  struct libp2p *node;
};

struct libp2p {
  struct loop *loop;
  struct libp2p_config config;
  struct loop_hook hook;
  struct conn_list all, queued, dialing, fresh; /* fresh: accepted and not open, oldest first */
  uint32_t dialing_count, accepted_count, conn_count;
  struct libp2p_conn *dirty, *over;
  struct libp2p_stream *resume, *spare_streams;
  uint32_t spare_stream_count;
  struct udx_pool *pool;
  struct buf scratch; /* what a handshake answers */
  struct udp sockets[NODE_SOCKETS_MAX];
  uint8_t socket_count;
  struct udp *dial_sockets[2]; /* for IPv4 and IPv6; among sockets */
  struct node_listener listeners[NODE_LISTENERS_MAX];
  uint8_t listener_count;
  struct multiaddr addresses[NODE_LISTENERS_MAX]; /* where it listens */
  uint8_t address_count;
  uint8_t hash_key[16];
  struct libp2p_conn **buckets; /* UDX connections by their id */
  uint32_t bucket_mask;
  uint64_t dropped;
};

/* conn.c */
struct libp2p_conn *conn_make(struct libp2p *node, enum multiaddr_transport transport, bool is_dialer);
extern const struct stream_ops conn_tcp_ops;
extern const struct udx_ops conn_udx_ops;
/* The link is there (TCP is up, or UDX may begin): the channel begins. */
void conn_secure(struct libp2p_conn *conn);
/* Ends it with callbacks, unless it is over already. */
void conn_end(struct libp2p_conn *conn, enum libp2p_cause cause, uint32_t code, const char *text);
void conn_flush(struct libp2p_conn *conn);
void conn_free(struct libp2p_conn *conn);
/* After packets or time: ends the connection when UDX has. */
void conn_check_udx(struct libp2p_conn *conn);
void conn_schedule(struct libp2p_conn *conn);

/* node.c */
void node_mark_dirty(struct libp2p_conn *conn);
void node_ask_hook(struct libp2p *node);
/* The peer took the connection, or the connection is over: the next dial's turn. */
void node_end_dialing(struct libp2p_conn *conn);
/* An accepted connection has opened, or is over. */
void node_end_accepting(struct libp2p_conn *conn);
void node_forget(struct libp2p_conn *conn);
void conn_list_append(struct conn_list *list, struct libp2p_conn *conn, size_t link_offset);
void conn_list_remove(struct conn_list *list, struct libp2p_conn *conn, size_t link_offset);

/* streams.c */
extern const struct mux_ops streams_mux_ops;
void streams_free(struct libp2p_stream *stream);
void streams_close_all(struct libp2p_conn *conn, bool tell);
void streams_run_resumes(struct libp2p *node);

/* identify.c */
extern const struct libp2p_protocol identify_protocol;

#endif
