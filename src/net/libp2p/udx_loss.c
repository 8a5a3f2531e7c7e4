/* What was sent and is not acknowledged: losses by gaps in ACKs and by time. */
#include "net/libp2p/udx_private.h"

enum { GAP = 3, BACKOFF_MAX = 16, RESENDS_MAX = 63 };

#define BACKOFF_CEILING_NS (2 * NS_PER_SEC)
#define RESEND_MIN_NS (200 * NS_PER_MS)
/* Output below the lowest byte that is needed is dropped when it is this much, or all. */
#define TRIM_BYTES 16384U

static void trim_output(struct udx_stream *stream) {
  uint64_t needed = stream->lowest ? stream->lowest->offset : stream->sent;
  uint64_t done = needed - stream->out_base;
  if (done == stream->out.len) {
    udx_give_buf(stream->udx->pool, &stream->out);
  } else if (done >= TRIM_BYTES && done >= stream->out.len / 2) {
    buf_consume(&stream->out, (size_t)done);
  } else {
    return;
  }
  stream->out_base = needed;
}

static void leave_stream(struct udx_segment *segment) {
  struct udx_stream *stream = segment->stream;
  if (!stream) return;
  *(segment->lower ? &segment->lower->higher : &stream->lowest) = segment->higher;
  *(segment->higher ? &segment->higher->lower : &stream->highest) = segment->lower;
  trim_output(stream);
}

void udx_segment_acked(struct udx *udx, struct udx_segment *segment) {
  udx_list_remove(segment->is_lost ? &udx->lost : &udx->flying, segment);
  udx->flight_count--;
  udx->flight_bytes -= udx_segment_bytes(udx, segment);
  leave_stream(segment);
  udx_give_segment(udx->pool, segment);
  if (!udx->flight_count) udx->resend_due_ns = udx->probe_sent_ns ? udx->resend_due_ns : UDX_NEVER;
}

uint64_t udx_segment_due_ns(const struct udx *udx, const struct udx_segment *segment) {
  uint64_t rto_ns = udx_congestion_rto_ns(&udx->congestion);
  if (!segment->resends) return segment->sent_ns + rto_ns;
  unsigned doublings = segment->resends - 1U < BACKOFF_MAX ? segment->resends - 1U : BACKOFF_MAX;
  uint64_t ceiling_ns = rto_ns > BACKOFF_CEILING_NS ? rto_ns : BACKOFF_CEILING_NS;
  uint64_t wait_ns = udx_earlier(rto_ns << doublings, ceiling_ns);
  return segment->sent_ns + (wait_ns < RESEND_MIN_NS ? RESEND_MIN_NS : wait_ns);
}

static void mark_lost(struct udx *udx, struct udx_segment *segment) {
  udx_list_remove(&udx->flying, segment);
  udx_list_append(&udx->lost, segment);
  segment->is_lost = true;
  if (segment->resends < RESENDS_MAX) segment->resends++;
}

static bool is_lost(const struct udx *udx, const struct udx_segment *segment, uint32_t largest, uint64_t now_ns) {
  const struct udx_congestion *congestion = &udx->congestion;
  uint64_t rtt_ns = congestion->smoothed_ns > congestion->latest_ns ? congestion->smoothed_ns : congestion->latest_ns;
  uint64_t patience_ns = rtt_ns * 9 / 8 > NS_PER_MS ? rtt_ns * 9 / 8 : NS_PER_MS;
  return largest - segment->sequence >= GAP || now_ns - segment->sent_ns > patience_ns;
}

void udx_detect_losses(struct udx *udx, uint32_t lowest_told, uint32_t largest, uint64_t now_ns) {
  struct udx_segment *segment = udx->flying.first;
  while (segment && segment->sequence < largest) {
    struct udx_segment *after = segment->after;
    if (segment->sequence >= lowest_told && is_lost(udx, segment, largest, now_ns)) {
      udx_congestion_lost(&udx->congestion, segment->sequence, udx->next_sequence - 1);
      mark_lost(udx, segment);
    }
    segment = after;
  }
}

static void time_out_probe(struct udx *udx, uint64_t now_ns) {
  if (!udx->probe_sent_ns || now_ns < udx->probe_sent_ns + udx_congestion_rto_ns(&udx->congestion)) return;
  udx->probe_sent_ns = 0;
  udx->probe_failures++;
}

void udx_time_out_segments(struct udx *udx, uint64_t now_ns) {
  struct udx_segment *segment = udx->flying.first;
  uint64_t next_ns = UDX_NEVER;
  time_out_probe(udx, now_ns);
  if (udx->probe_sent_ns) next_ns = udx->probe_sent_ns + udx_congestion_rto_ns(&udx->congestion);
  while (segment) {
    struct udx_segment *after = segment->after;
    uint64_t due_ns = udx_segment_due_ns(udx, segment);
    if (due_ns <= now_ns) {
      mark_lost(udx, segment);
    } else {
      next_ns = udx_earlier(next_ns, due_ns);
    }
    segment = after;
  }
  udx->resend_due_ns = next_ns;
}
