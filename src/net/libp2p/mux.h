/* A yamux session: many streams in one ordered channel. Plaintext in, plaintext out (mux.out, which the owner takes);
 * no I/O, the time is given. Streams live in memory of the owner, which embeds struct mux_stream first.
 *
 * Callbacks run inside mux_received and mux_pump; each may open, write, end and reset streams and abandon the session
 * (mux_abandon). Bounded: a stream's input by its window, its output by out_max, the session's output by refusing a
 * peer that asks for answers without reading them. */
#ifndef MUSTER_NET_LIBP2P_MUX_H
#define MUSTER_NET_LIBP2P_MUX_H

#include "base/buf.h"
#include "wire/yamux.h"

#include <stddef.h>

#define MUX_WINDOW_MAX (16U << 20)
#define MUX_UNACKED_MAX 256

struct mux;

enum mux_stream_end { MUX_STREAM_DONE, MUX_STREAM_RESET };

struct mux_stream {
  struct mux *mux;
  struct mux_stream *next;           /* in its bucket */
  struct mux_stream *before, *after; /* among those with output that waits */
  uint32_t id;
  uint32_t send_credit;
  uint32_t window, receive_credit, uncredited; /* window = receive_credit + uncredited + in.len */
  struct buf in;                               /* what received left */
  struct buf out;                              /* what waits for credit or room */
  uint32_t out_sent;                           /* bytes at the front of out that are gone */
  bool is_acked, is_waiting, end_wanted, is_ended, peer_ended;
};

struct mux_ops {
  /* The peer opens a stream: zeroed memory for it, or NULL to refuse. */
  struct mux_stream *(*accept)(struct mux *mux);
  void (*accepted)(struct mux_stream *stream); /* it is in the session and may be written to */
  size_t (*received)(struct mux_stream *stream, uint8_t *data, size_t len); /* as libp2p_stream_ops */
  void (*ended)(struct mux_stream *stream);
  void (*drained)(struct mux_stream *stream);
  /* The stream has left the session, its memory is the owner's; not called after mux_reset. */
  void (*closed)(struct mux_stream *stream, enum mux_stream_end end);
  struct buf (*take_buf)(struct mux *mux); /* memory for mux->out; NULL: it is allocated */
};

struct mux {
  const struct mux_ops *ops;
  void *user;
  struct buf out; /* frames to be sent; the owner takes from its front */
  struct mux_stream **buckets;
  struct mux_stream *only_bucket; /* while there are few */
  uint32_t bucket_mask;           /* 0: only_bucket */
  uint32_t stream_count, unacked_count, next_id, highest_peer_id;
  struct mux_stream *waiting, *last_waiting;
  uint32_t waiting_count;
  /* The frame that is coming in. */
  uint8_t header[YAMUX_HEADER_BYTES];
  uint8_t header_len;
  uint16_t frame_flags;
  uint32_t frame_left;             /* bytes of its data still to come */
  struct mux_stream *frame_stream; /* NULL: the data is dropped */
  struct mux_stream *current;      /* whose callback runs; NULL once it left the session */
  uint32_t given;                  /* bytes that its received was given */
  bool is_dialer, is_over, peer_leaves;
  uint32_t peer_leaves_code, out_max;
  uint32_t ping_value;
  uint64_t ping_sent_ns; /* 0: none is out */
  const char *failure;
};

void mux_begin(struct mux *mux, bool is_dialer, const struct mux_ops *ops, void *user, uint32_t out_max);
/* Takes all streams off, one at a time, for the owner to free; NULL when none is left. */
struct mux_stream *mux_take_any(struct mux *mux);
/* No more callbacks: to be called when the session is ended from within one. */
void mux_abandon(struct mux *mux);
void mux_free(struct mux *mux);

/* Uses all of the data, which may be changed. False: the peer broke the rules (failure says which; a GO_AWAY is in
 * out), or memory is out. */
bool mux_received(struct mux *mux, uint8_t *data, size_t len);
/* Moves output of streams that wait to mux->out, as far as credit and about 64 KiB there allow. */
void mux_pump(struct mux *mux);

/* stream: zeroed. False: too many wait for the peer, the peer leaves, or memory is out. */
bool mux_open(struct mux *mux, struct mux_stream *stream);
bool mux_write(struct mux_stream *stream, const void *data, size_t len);
size_t mux_pending(const struct mux_stream *stream);
void mux_end(struct mux_stream *stream);
void mux_reset(struct mux_stream *stream);
/* See libp2p_stream_expect. */
bool mux_expect(struct mux_stream *stream, size_t len);
/* Gives what received has left once more, from within this call. */
void mux_resume(struct mux_stream *stream);

/* One ping at a time; nothing when one is out. */
void mux_ping(struct mux *mux, uint64_t now_ns);
void mux_go_away(struct mux *mux, enum yamux_go_away code);

#endif
