/* A UDX connection: a pure state machine. Packets and the time go in, packets come out; it knows no socket and no
 * clock. Reliable ordered streams over datagrams: acknowledgements (every second packet and a timer), loss detection
 * by gaps and by time, resending under new numbers on the segment boundaries of the first sending, a congestion
 * window (slow start, CUBIC), flow control of each stream, probing for larger datagrams, idle time-out.
 *
 * The owner calls udx_received for each packet, udx_tick when udx_next_ns has come, udx_transmit until it returns 0
 * after either of them and after writing, and looks at udx_ended. Callbacks run inside udx_received; they may write to
 * and end streams and close the connection, but not destroy it.
 *
 * Bounded: 256 packets in flight; what the peer may send ahead by the windows (64 KiB growing to window_max a stream);
 * 100 streams in a connection's life. What is written and not acknowledged is kept: the owner bounds it (udx_unsent).
 */
#ifndef MUSTER_NET_LIBP2P_UDX_H
#define MUSTER_NET_LIBP2P_UDX_H

#include "wire/udx.h"

#define UDX_DATAGRAM_BYTES 1472 /* until probes show more; data of a segment is 100 less */
#define UDX_DATAGRAM_MIN 1200
#define UDX_DATAGRAM_MAX 9000
#define UDX_FLIGHT_MAX 256
#define UDX_IDLE_NS UINT64_C(30000000000)

struct udx;
struct udx_stream;

/* Memory that connections of one thread share: segments and buffers that wait for their next use. */
struct udx_pool;
struct udx_pool *udx_pool_create(void); /* NULL: memory is out */
void udx_pool_destroy(struct udx_pool *pool);
uint64_t udx_pool_resent(const struct udx_pool *pool); /* packets that were sent again, in all */

struct udx_ops {
  /* Bytes in order, in memory that may be changed in place; returns how many were used, the rest is given again with
   * what comes next (or by udx_resume). */
  size_t (*received)(struct udx_stream *stream, uint8_t *data, size_t len);
  void (*ended)(struct udx_stream *stream); /* the peer's FIN, all before it was used */
  void (*reset)(struct udx_stream *stream, uint32_t code);
  void (*accepted)(struct udx_stream *stream); /* the peer opened it */
};

struct udx_options {
  const struct udx_ops *ops;
  void *user;
  struct udx_pool *pool;
  struct udx_cid local, remote;
  bool dialer;           /* sends the connection's SYN and numbers its streams 1, 3, 5 ... */
  uint32_t datagram_max; /* UDX_DATAGRAM_BYTES: no probing */
  uint32_t streams_max;  /* of the peer, at most 100; more are reset */
  uint32_t window_max;   /* bytes, to which receive windows grow */
};

/* Why a connection is over. */
enum udx_end {
  UDX_OPEN = 0,
  UDX_CLOSED,       /* by us */
  UDX_PEER_CLOSED,  /* CONNECTION_CLOSE came */
  UDX_IDLE_TIMEOUT, /* nothing came for 30 s */
  UDX_VIOLATION,    /* the peer broke a rule; it is told */
  UDX_NO_MEMORY,
};

struct udx *udx_create(const struct udx_options *options, uint64_t now_ns); /* NULL: memory is out */
void udx_destroy(struct udx *udx);

/* A packet for this connection. The memory of its datagram may be changed. */
void udx_received(struct udx *udx, const struct udx_packet *packet, uint64_t now_ns);
/* Writes the next datagram of at most cap >= UDX_DATAGRAM_MAX bytes; 0: nothing to send now. */
size_t udx_transmit(struct udx *udx, uint8_t *out, size_t cap, uint64_t now_ns);
void udx_tick(struct udx *udx, uint64_t now_ns);
/* When udx_tick has something to do. */
uint64_t udx_next_ns(const struct udx *udx);

/* The next udx_transmit gives a CONNECTION_CLOSE, then nothing more. */
void udx_close(struct udx *udx, uint32_t code);
/* code: of the peer's CONNECTION_CLOSE. */
enum udx_end udx_ended(const struct udx *udx, uint32_t *code);
void *udx_user(const struct udx *udx);
const struct udx_cid *udx_local_cid(const struct udx *udx);
size_t udx_bytes_in_flight(const struct udx *udx);
uint32_t udx_datagram_bytes(const struct udx *udx); /* as far as probes have shown */

/* NULL: memory is out or 100 streams were opened. It opens at the peer with its first data. */
struct udx_stream *udx_open_stream(struct udx *udx);
struct udx *udx_of(const struct udx_stream *stream);
void *udx_stream_user(const struct udx_stream *stream);
void udx_stream_set_user(struct udx_stream *stream, void *user);

/* Room for len bytes behind what is written; then how many were filled. NULL: memory is out, or the stream is ended. */
uint8_t *udx_reserve(struct udx_stream *stream, size_t len);
void udx_commit(struct udx_stream *stream, size_t len);
bool udx_write(struct udx_stream *stream, const void *data, size_t len);
size_t udx_unsent(const struct udx_stream *stream); /* written, never sent */
void udx_end_stream(struct udx_stream *stream);     /* FIN behind all that is written */
void udx_reset_stream(struct udx_stream *stream, uint32_t code);
/* Gives what received has left once more, from within this call. */
void udx_resume(struct udx_stream *stream);

#endif
