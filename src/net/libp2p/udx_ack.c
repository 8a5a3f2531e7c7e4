/* Acknowledgements: which numbers came and when to tell it; what the peer's ACK says of ours. */
#include "net/libp2p/udx_private.h"

/* An ACK tells again what came in so many numbers before its news, in case earlier ones were lost: no more, since a Go
 * peer looks up every number that it is told. What is older than HISTORY is never told. */
#define TOLD_AGAIN 512U
#define HISTORY 2048U
#define ACK_WAIT_MIN_NS NS_PER_MS
#define ACK_WAIT_MAX_NS (25 * NS_PER_MS)
#define ACK_EVERY 2

static void insert_range(struct udx *udx, size_t at, struct udx_range range) {
  size_t count = udx->got_count < UDX_RANGES_KEPT ? udx->got_count : UDX_RANGES_KEPT - 1;
  if (at > count) return;
  memmove(udx->got + at + 1, udx->got + at, (count - at) * sizeof *udx->got);
  udx->got[at] = range;
  udx->got_count = (uint8_t)(count + 1);
}

static void remove_range(struct udx *udx, size_t at) {
  memmove(udx->got + at, udx->got + at + 1, (udx->got_count - at - 1U) * sizeof *udx->got);
  udx->got_count--;
}

/* False: the number is there already. */
static bool add_number(struct udx *udx, uint32_t number) {
  size_t at = 0;
  while (at < udx->got_count && udx->got[at].low > number)
    at++;
  if (at < udx->got_count && udx->got[at].high >= number) return false;
  bool above = at > 0 && udx->got[at - 1].low == number + 1;
  bool below = at < udx->got_count && udx->got[at].high + 1 == number;
  if (above && below) {
    udx->got[at - 1].low = udx->got[at].low;
    remove_range(udx, at);
  } else if (above) {
    udx->got[at - 1].low = number;
  } else if (below) {
    udx->got[at].high = number;
  } else {
    insert_range(udx, at, (struct udx_range){number, number});
  }
  return true;
}

static void forget_old(struct udx *udx) {
  uint32_t largest = udx->got[0].high;
  while (udx->got_count > 1 && largest - udx->got[udx->got_count - 1].high > HISTORY)
    udx->got_count--;
}

static uint64_t ack_wait_ns(const struct udx *udx) {
  uint64_t quarter_ns = udx->congestion.smoothed_ns / 4;
  if (quarter_ns < ACK_WAIT_MIN_NS) return ACK_WAIT_MIN_NS;
  return quarter_ns > ACK_WAIT_MAX_NS ? ACK_WAIT_MAX_NS : quarter_ns;
}

void udx_note_received(struct udx *udx, const struct udx_packet *packet, bool at_once, uint64_t now_ns) {
  uint32_t number = packet->sequence;
  bool is_first = udx->got_count == 0;
  uint32_t largest = is_first ? 0 : udx->got[0].high;
  bool is_new = add_number(udx, number);
  bool in_order = is_first || !is_new || number == largest + 1;
  if (is_first || number > largest) udx->largest_came_ns = now_ns;
  forget_old(udx);
  udx->ack_to_stream = packet->from_stream;
  udx->ack_from_stream = packet->to_stream;
  if (!udx->unacked || number < udx->unacked_lowest) udx->unacked_lowest = number;
  if (udx->unacked < UINT8_MAX) udx->unacked++;
  if (at_once || !in_order || udx->unacked >= ACK_EVERY) {
    udx->ack_now = true;
  } else if (udx->ack_due_ns == UDX_NEVER) {
    udx->ack_due_ns = now_ns + ack_wait_ns(udx);
  }
}

/* The ranges to tell; returns how many. */
static size_t select_ranges(const struct udx *udx, struct udx_range out[UDX_RANGES_TOLD]) {
  uint32_t largest = udx->got[0].high, reach = largest - udx->unacked_lowest + TOLD_AGAIN;
  if (reach > HISTORY) reach = HISTORY;
  uint32_t lowest = largest > reach ? largest - reach : 0;
  size_t count = 0;
  while (count < udx->got_count && count < UDX_RANGES_TOLD && udx->got[count].high >= lowest) {
    out[count] = udx->got[count];
    if (out[count].low < lowest) out[count].low = lowest;
    count++;
  }
  return count;
}

uint8_t *udx_write_pending_ack(struct udx *udx, uint8_t *at, uint64_t now_ns) {
  if (!udx->unacked || !udx->got_count) return at;
  struct udx_range ranges[UDX_RANGES_TOLD];
  uint64_t delay_ms = (now_ns - udx->largest_came_ns) / NS_PER_MS;
  size_t count = select_ranges(udx, ranges);
  udx->unacked = 0;
  udx->ack_now = false;
  udx->ack_due_ns = UDX_NEVER;
  return udx_write_ack(at, ranges, count, (uint16_t)(delay_ms < UINT16_MAX ? delay_ms : UINT16_MAX));
}

/* What the walk over an ACK finds out. */
struct news {
  uint32_t bytes;
  bool largest_is_new;
  uint64_t largest_sent_ns;
};

static void acknowledge(struct udx *udx, struct udx_segment *segment, uint32_t largest, struct news *news) {
  news->bytes += udx_segment_bytes(udx, segment);
  if (segment->sequence == largest) {
    news->largest_is_new = true;
    news->largest_sent_ns = segment->sent_ns;
  }
  udx_segment_acked(udx, segment);
}

/* Takes what lies in [low, high] off a list; numbers in the list of what flies ascend. */
static void take_range(
    struct udx *udx, struct udx_list *list, uint32_t low, uint32_t high, uint32_t largest, struct news *news) {
  struct udx_segment *segment = list->first;
  bool ascends = list == &udx->flying;
  while (segment && !(ascends && segment->sequence > high)) {
    struct udx_segment *after = segment->after;
    if (segment->sequence >= low && segment->sequence <= high) acknowledge(udx, segment, largest, news);
    segment = after;
  }
}

static void handle_probe(struct udx *udx, uint32_t low, uint32_t high) {
  if (!udx->probe_sent_ns || udx->probe_sequence < low || udx->probe_sequence > high) return;
  udx->datagram = udx->probe_bytes;
  udx->probe_sent_ns = 0;
  udx->probe_failures = 0;
}

void udx_handle_ack(struct udx *udx, const struct udx_frame *frame, uint64_t now_ns) {
  struct udx_ack_walk walk = udx_ack_begin(frame);
  struct news news = {0};
  uint32_t low, high, lowest = 0;
  if (frame->largest >= udx->next_sequence) return; /* of what was never sent */
  while (udx_ack_next(&walk, &low, &high)) {
    take_range(udx, &udx->flying, low, high, frame->largest, &news);
    take_range(udx, &udx->lost, low, high, frame->largest, &news);
    handle_probe(udx, low, high);
    lowest = low;
  }
  /* A peer that tells fewer ranges than it may has told all: what lies below did not come. */
  if (frame->range_count + 1 < UDX_RANGES_TOLD) lowest = 0;
  if (news.largest_is_new) {
    udx_congestion_measured(&udx->congestion, now_ns - news.largest_sent_ns, frame->delay_ms * NS_PER_MS);
    udx_congestion_acked(&udx->congestion, news.bytes, frame->largest, now_ns);
  }
  udx_detect_losses(udx, lowest, frame->largest, now_ns);
}
