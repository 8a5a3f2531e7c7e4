/* What the loop shares with stream.c and no one else: its buffers, its list of streams to flush, and guards, which
 * tell after a callback whether the stream is still there. */
#ifndef MUSTER_NET_LOOP_PRIVATE_H
#define MUSTER_NET_LOOP_PRIVATE_H

#include "base/buf.h"
#include "net/loop.h"

struct stream;

/* Lives on the C stack around a callback; closing clears the guards of what is closed. */
struct guard {
  const void *object; /* a stream or listener; NULL: it was closed, and perhaps freed or reused */
  struct guard *outer;
};

/* LOOP_READ_BYTES each; the second is made when first asked for (NULL: memory is out). */
uint8_t *loop_read_buffer(struct loop *loop);
uint8_t *loop_plain_buffer(struct loop *loop);

/* A buffer from the pool, or an empty one. */
struct buf loop_take_buf(struct loop *loop);
/* Takes the memory of buf, which is then empty. */
void loop_give_buf(struct loop *loop, struct buf *buf);

struct stream **loop_dirty(struct loop *loop);
struct stream **loop_failed(struct loop *loop);
struct guard **loop_guards(struct loop *loop);

/* In stream.c. The end of a turn for a stream that was taken off its list (dirty or failed). */
void stream_settle(struct stream *stream);
void stream_leave_list(struct stream *stream);
void stream_move_list(struct stream **from, struct stream **to);

#endif
