/* Datagrams in batches on one UDP socket: recvmmsg and sendmmsg, with UDP_GRO and UDP_SEGMENT where the kernel has
 * them. What is sent gathers until udp_flush; a full socket keeps the batch and tells when it can go on. */
#ifndef MUSTER_NET_LIBP2P_UDP_H
#define MUSTER_NET_LIBP2P_UDP_H

#include "net/address.h"
#include "net/loop.h"

#define UDP_DATAGRAM_MAX 9000

struct udp;
struct udp_batch;

struct udp_ops {
  /* A datagram; its memory may be changed until this returns. */
  void (*received)(struct udp *udp, uint8_t *data, size_t len, const struct address *from);
  /* The network says that nothing can be sent to that address (ECONNREFUSED: nobody listens). */
  void (*unreachable)(struct udp *udp, const struct address *to, int error);
  /* The socket takes datagrams again. */
  void (*writable)(struct udp *udp);
};

struct udp_counts {
  uint64_t datagrams_in, datagrams_out, bytes_in, bytes_out, receive_calls, send_calls;
};

struct udp {
  struct watch watch;
  struct loop *loop;
  const struct udp_ops *ops;
  void *user;
  struct address address;  /* ours */
  struct udp_batch *batch; /* owned */
  struct udp_counts counts;
  bool has_gso, is_blocked;
};

/* Binds to *address (port 0: a free one) and updates it. joins: shares the port with others that say so too.
 * whole: datagrams are never fragmented, those that are too long for the path are lost. */
enum status udp_open(struct udp *udp, struct loop *loop, const struct udp_ops *ops, struct address *address, bool joins,
    bool whole, bool without_offload, struct err *err);
/* What gathers is offered to the socket once more. */
void udp_close(struct udp *udp);

/* Room for a datagram of UDP_DATAGRAM_MAX bytes; NULL while the socket is full. Then its length and address. */
uint8_t *udp_reserve(struct udp *udp);
void udp_commit(struct udp *udp, size_t len, const struct address *to);
void udp_flush(struct udp *udp);

#endif
