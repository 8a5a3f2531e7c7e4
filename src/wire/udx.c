#include "wire/udx.h"

#include "base/be.h"

enum {
  ACK_FIXED_BYTES = 11, /* behind the type */
  ACK_RANGE_BYTES = 5,
  PATH_BYTES = 8,
  RESET_TOKEN_BYTES = 16,
};

/* Takes count bytes off the front; NULL when there are fewer. */
static const uint8_t *take(struct view *bytes, size_t count) {
  if (bytes->len < count) return NULL;
  const uint8_t *at = bytes->data;
  bytes->data += count;
  bytes->len -= count;
  return at;
}

static bool take_view(struct view *bytes, size_t count, struct view *out) {
  const uint8_t *at = take(bytes, count);
  *out = view_of(at, at ? count : 0);
  return at;
}

static bool take_cid(struct view *bytes, struct udx_cid *out) {
  const uint8_t *len = take(bytes, 1);
  if (!len || *len > UDX_CID_MAX) return false;
  const uint8_t *id = take(bytes, *len);
  if (!id) return false;
  *out = (struct udx_cid){.len = *len};
  memcpy(out->bytes, id, *len);
  return true;
}

static bool read_ack(struct view *rest, struct udx_frame *out) {
  const uint8_t *at = take(rest, ACK_FIXED_BYTES);
  if (!at) return false;
  out->largest = be_get32(at);
  out->delay_ms = be_get16(at + 4);
  out->range_count = at[6];
  out->first = be_get32(at + 7);
  return take_view(rest, (size_t)out->range_count * ACK_RANGE_BYTES, &out->data);
}

static bool read_stream(struct view *rest, struct udx_frame *out) {
  const uint8_t *at = take(rest, UDX_STREAM_HEAD_BYTES - 1);
  if (!at) return false;
  out->flags = at[0];
  out->offset = be_get64(at + 1);
  return take_view(rest, be_get16(at + 9), &out->data);
}

static bool read_close(struct view *rest, struct udx_frame *out) {
  const uint8_t *at = take(rest, 10);
  if (!at) return false;
  out->code = be_get32(at);
  return take_view(rest, be_get16(at + 8), &out->data);
}

static bool read_new_id(struct view *rest, struct udx_frame *out) {
  const uint8_t *at = take(rest, 17);
  if (!at) return false;
  out->limit = be_get64(at);
  return take_view(rest, at[16], &out->data) && take(rest, RESET_TOKEN_BYTES);
}

static bool read_u32(struct view *rest, uint32_t *out) {
  const uint8_t *at = take(rest, 4);
  if (at) *out = be_get32(at);
  return at;
}

static bool read_u64(struct view *rest, uint64_t *out) {
  const uint8_t *at = take(rest, 8);
  if (at) *out = be_get64(at);
  return at;
}

static bool read_small_limit(struct view *rest, struct udx_frame *out) {
  uint32_t limit;
  if (!read_u32(rest, &limit)) return false;
  out->limit = limit;
  return true;
}

static bool read_body(struct view *rest, struct udx_frame *out) {
  switch (out->type) {
  case UDX_PADDING:
  case UDX_PING:
    return true;
  case UDX_ACK:
    return read_ack(rest, out);
  case UDX_STREAM:
    return read_stream(rest, out);
  case UDX_WINDOW_UPDATE:
  case UDX_MAX_STREAMS:
    return read_small_limit(rest, out);
  case UDX_MAX_DATA:
  case UDX_DATA_BLOCKED:
  case UDX_RETIRE_CONNECTION_ID:
    return read_u64(rest, &out->limit);
  case UDX_RESET_STREAM:
    return read_u32(rest, &out->code);
  case UDX_MTU_PROBE:
    return take(rest, rest->len);
  case UDX_PATH_CHALLENGE:
  case UDX_PATH_RESPONSE:
    return take_view(rest, PATH_BYTES, &out->data);
  case UDX_CONNECTION_CLOSE:
    return read_close(rest, out);
  case UDX_STOP_SENDING:
    return read_u32(rest, &out->stream) && read_u32(rest, &out->code);
  case UDX_STREAM_DATA_BLOCKED:
    return read_u32(rest, &out->stream) && read_u64(rest, &out->limit);
  case UDX_NEW_CONNECTION_ID:
    return read_new_id(rest, out);
  default:
    return false;
  }
}

static bool read_frame(struct view *rest, struct udx_frame *out) {
  *out = (struct udx_frame){.type = *rest->data};
  take(rest, 1);
  return read_body(rest, out);
}

bool udx_read_packet(const uint8_t *data, size_t len, struct udx_packet *out) {
  struct view rest = view_of(data, len);
  uint32_t version;
  if (!read_u32(&rest, &version) || version != UDX_VERSION) return false;
  if (!take_cid(&rest, &out->to) || !take_cid(&rest, &out->from)) return false;
  const uint8_t *at = take(&rest, 12);
  if (!at) return false;
  out->sequence = be_get32(at);
  out->to_stream = be_get32(at + 4);
  out->from_stream = be_get32(at + 8);
  out->frames = rest;
  struct udx_frame frame;
  while (rest.len) {
    if (!read_frame(&rest, &frame)) return false;
  }
  return true;
}

bool udx_next_frame(struct view *frames, struct udx_frame *out) {
  return frames->len && read_frame(frames, out);
}

bool udx_bears_data(struct view frames, bool *syn) {
  struct udx_frame frame;
  bool bears = false;
  *syn = false;
  while (udx_next_frame(&frames, &frame)) {
    if (frame.type != UDX_STREAM) continue;
    bears |= frame.data.len || (frame.flags & (UDX_SYN | UDX_FIN));
    *syn |= frame.flags & UDX_SYN;
  }
  return bears;
}

struct udx_ack_walk udx_ack_begin(const struct udx_frame *ack) {
  return (struct udx_ack_walk){.cursor = (uint64_t)ack->largest + 1, .rest = ack->data, .first = ack->first};
}

bool udx_ack_next(struct udx_ack_walk *walk, uint32_t *low, uint32_t *high) {
  uint64_t gap = 0, count = walk->first;
  walk->first = 0;
  while (count == 0) {
    const uint8_t *at = take(&walk->rest, ACK_RANGE_BYTES);
    if (!at) return false;
    gap += at[0];
    count = be_get32(at + 1);
  }
  if (gap + count > walk->cursor) {
    walk->rest = (struct view){0};
    return false;
  }
  *high = (uint32_t)(walk->cursor - gap - 1);
  walk->cursor -= gap + count;
  *low = (uint32_t)walk->cursor;
  return true;
}

static uint8_t *write_cid(uint8_t *at, const struct udx_cid *cid) {
  *at++ = cid->len;
  memcpy(at, cid->bytes, cid->len);
  return at + cid->len;
}

uint8_t *udx_write_header(uint8_t *at, const struct udx_packet *packet) {
  at = be_put32(at, UDX_VERSION);
  at = write_cid(at, &packet->to);
  at = write_cid(at, &packet->from);
  at = be_put32(at, packet->sequence);
  at = be_put32(at, packet->to_stream);
  return be_put32(at, packet->from_stream);
}

uint8_t *udx_write_stream_head(uint8_t *at, uint8_t flags, uint64_t offset, uint16_t len) {
  *at++ = UDX_STREAM;
  *at++ = flags;
  at = be_put64(at, offset);
  return be_put16(at, len);
}

static uint32_t range_count(struct udx_range range) {
  return range.high - range.low + 1;
}

uint8_t *udx_write_ack(uint8_t *at, const struct udx_range *ranges, size_t count, uint16_t delay_ms) {
  *at++ = UDX_ACK;
  at = be_put32(at, ranges[0].high);
  at = be_put16(at, delay_ms);
  uint8_t *told = at++;
  at = be_put32(at, range_count(ranges[0]));
  *told = 0;
  for (size_t i = 1; i < count && i <= UDX_ACK_RANGES_MAX; i++) {
    uint32_t gap = ranges[i - 1].low - ranges[i].high - 1;
    if (gap > UINT8_MAX) break;
    *at++ = (uint8_t)gap;
    at = be_put32(at, range_count(ranges[i]));
    ++*told;
  }
  return at;
}

uint8_t *udx_write_window_update(uint8_t *at, uint64_t limit) {
  *at++ = UDX_WINDOW_UPDATE;
  return be_put32(at, (uint32_t)limit);
}

uint8_t *udx_write_max_data(uint8_t *at, uint64_t limit) {
  *at++ = UDX_MAX_DATA;
  return be_put64(at, limit);
}

uint8_t *udx_write_reset(uint8_t *at, uint32_t code) {
  *at++ = UDX_RESET_STREAM;
  return be_put32(at, code);
}

uint8_t *udx_write_path_response(uint8_t *at, struct view challenge) {
  *at++ = UDX_PATH_RESPONSE;
  memcpy(at, challenge.data, PATH_BYTES);
  return at + PATH_BYTES;
}

uint8_t *udx_write_close(uint8_t *at, uint32_t code, struct view reason) {
  *at++ = UDX_CONNECTION_CLOSE;
  at = be_put32(at, code);
  at = be_put32(at, 0);
  at = be_put16(at, (uint16_t)reason.len);
  if (reason.len) memcpy(at, reason.data, reason.len);
  return at + reason.len;
}

uint8_t *udx_write_stream_data_blocked(uint8_t *at, uint32_t stream, uint64_t limit) {
  *at++ = UDX_STREAM_DATA_BLOCKED;
  at = be_put32(at, stream);
  return be_put64(at, limit);
}
