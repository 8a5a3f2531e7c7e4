/* The input of a stream: puts what came into order by its offset. In order and with nothing kept, data goes from the
 * datagram straight to the reader. */
#include "net/libp2p/udx_private.h"

#include <stdlib.h>

void udx_free_input(struct udx_stream *stream) {
  udx_give_buf(stream->udx->pool, &stream->in);
  free(stream->spans);
  stream->spans = NULL;
  stream->span_count = stream->span_cap = 0;
  stream->ready = 0;
}

static bool grow_spans(struct udx_stream *stream) {
  if (stream->span_count < stream->span_cap) return true;
  if (stream->span_cap >= UDX_SPANS_MAX) return false;
  uint16_t cap = stream->span_cap ? (uint16_t)(stream->span_cap * 2) : 8;
  struct udx_span *grown = realloc(stream->spans, cap * sizeof *grown);
  if (!grown) return false;
  stream->spans = grown;
  stream->span_cap = cap;
  return true;
}

static void remove_spans(struct udx_stream *stream, size_t at, size_t count) {
  struct udx_span *spans = stream->spans;
  memmove(spans + at, spans + at + count, (stream->span_count - at - count) * sizeof *spans);
  stream->span_count -= (uint16_t)count;
}

/* Merges [start, end) into the spans; false when there would be too many. */
static bool add_span(struct udx_stream *stream, uint64_t start, uint64_t end) {
  struct udx_span *spans = stream->spans;
  size_t at = 0, merged = 0;
  while (at < stream->span_count && spans[at].end < start)
    at++;
  while (at + merged < stream->span_count && spans[at + merged].start <= end)
    merged++;
  if (merged) {
    if (spans[at].start < start) start = spans[at].start;
    if (spans[at + merged - 1].end > end) end = spans[at + merged - 1].end;
    spans[at] = (struct udx_span){start, end};
    remove_spans(stream, at + 1, merged - 1);
    return true;
  }
  if (!grow_spans(stream)) return false;
  spans = stream->spans;
  memmove(spans + at + 1, spans + at, (stream->span_count - at) * sizeof *spans);
  spans[at] = (struct udx_span){start, end};
  stream->span_count++;
  return true;
}

/* Puts data at its place behind what is kept. */
static bool keep(struct udx_stream *stream, uint64_t offset, struct view data) {
  size_t at = (size_t)(offset - stream->consumed), end = at + data.len;
  if (!stream->in.cap) stream->in = udx_take_buf(stream->udx->pool);
  if (end > stream->in.len) {
    if (!buf_reserve(&stream->in, end - stream->in.len)) return false;
    stream->in.len = (uint32_t)end;
  }
  memcpy(stream->in.data + at, data.data, data.len);
  return true;
}

/* More credit for the peer when half of the window is gone: used by the reader, or in order and left by it, since a
 * reader that waits for a whole message must get it. */
static void give_credit(struct udx_stream *stream) {
  if (stream->fin_known || stream->advertised - stream->consumed - stream->ready >= stream->window / 2) return;
  uint32_t max = stream->udx->window_max;
  stream->window = stream->window > max / 2 ? max : stream->window * 2;
  uint64_t limit = stream->consumed + stream->window;
  if (limit < stream->advertised + stream->window / 4) return; /* the reader is slow */
  stream->advertised = limit;
  stream->update_wanted = true;
}

static void tell_end(struct udx_stream *stream) {
  bool all = stream->fin_known && stream->consumed == stream->fin_offset;
  if (!all || stream->is_ended || stream->is_reset) return;
  stream->is_ended = true;
  udx_give_buf(stream->udx->pool, &stream->in);
  stream->udx->ops->ended(stream);
}

/* Gives len bytes to the reader; returns what it used, 0 when the stream or connection is over. */
static size_t give(struct udx_stream *stream, uint8_t *data, size_t len) {
  size_t used = stream->udx->ops->received(stream, data, len);
  if (stream->is_reset || stream->udx->end != UDX_OPEN) return 0;
  stream->consumed += used;
  return used;
}

static void give_ready(struct udx_stream *stream) {
  if (!stream->ready) return;
  size_t used = give(stream, stream->in.data, stream->ready);
  if (!used) return;
  stream->ready -= (uint32_t)used;
  buf_consume(&stream->in, used);
  if (!stream->in.len) udx_give_buf(stream->udx->pool, &stream->in);
}

void udx_resume(struct udx_stream *stream) {
  if (stream->is_reset || stream->udx->end != UDX_OPEN) return;
  give_ready(stream);
  give_credit(stream);
  tell_end(stream);
}

/* Straight from the datagram, when nothing is kept. False: no memory for what the reader left. */
static bool pass_on(struct udx_stream *stream, struct view data) {
  size_t used = give(stream, (uint8_t *)(uintptr_t)data.data, data.len);
  if (used == data.len || stream->is_reset || stream->udx->end != UDX_OPEN) return true;
  struct view rest = view_of(data.data + used, data.len - used);
  if (!keep(stream, stream->consumed, rest)) {
    udx_out_of_memory(stream->udx);
    return false;
  }
  stream->ready = (uint32_t)rest.len;
  return true;
}

/* What follows on the data in order makes more of it ready. */
static void absorb_spans(struct udx_stream *stream) {
  size_t count = 0;
  uint64_t next = stream->consumed + stream->ready;
  while (count < stream->span_count && stream->spans[count].start <= next) {
    if (stream->spans[count].end > next) next = stream->spans[count].end;
    count++;
  }
  if (count) remove_spans(stream, 0, count);
  stream->ready = (uint32_t)(next - stream->consumed);
}

static bool keep_and_give(struct udx_stream *stream, uint64_t offset, struct view data) {
  bool in_order = offset == stream->consumed + stream->ready;
  if (!in_order && !add_span(stream, offset, offset + data.len)) return false;
  if (!keep(stream, offset, data)) {
    udx_out_of_memory(stream->udx);
    return false;
  }
  if (!in_order) return true;
  stream->ready += (uint32_t)data.len;
  absorb_spans(stream);
  give_ready(stream);
  return true;
}

static bool check_fin(struct udx_stream *stream, const struct udx_frame *frame) {
  uint64_t end = frame->offset + frame->data.len;
  if (stream->fin_known) return end <= stream->fin_offset && (!(frame->flags & UDX_FIN) || end == stream->fin_offset);
  if (!(frame->flags & UDX_FIN)) return true;
  uint64_t highest = stream->consumed + stream->in.len;
  if (end < highest) return false;
  stream->fin_known = true;
  stream->fin_offset = end;
  return true;
}

/* Refuses what passes our credit. */
static bool is_allowed(const struct udx_stream *stream, const struct udx_frame *frame) {
  return frame->data.len <= stream->advertised && frame->offset <= stream->advertised - frame->data.len;
}

bool udx_receive_data(struct udx_stream *stream, const struct udx_frame *frame) {
  if (!is_allowed(stream, frame)) {
    udx_violated(stream->udx, UDX_ERROR_FLOW_CONTROL);
    return false;
  }
  if (!check_fin(stream, frame)) {
    udx_violated(stream->udx, UDX_ERROR_PROTOCOL);
    return false;
  }
  struct view data = frame->data;
  uint64_t offset = frame->offset, next = stream->consumed + stream->ready;
  if (offset + data.len > next) {
    if (offset < next) {
      data = view_of(data.data + (next - offset), data.len - (size_t)(next - offset));
      offset = next;
    }
    bool direct = offset == stream->consumed && !stream->in.len;
    if (!(direct ? pass_on(stream, data) : keep_and_give(stream, offset, data))) return false;
  }
  if (stream->is_reset || stream->udx->end != UDX_OPEN) return true;
  give_credit(stream);
  tell_end(stream);
  return true;
}
