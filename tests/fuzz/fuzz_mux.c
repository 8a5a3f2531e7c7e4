// room: net
/* A yamux session against a peer that sends what it likes. First byte: role and how much the owner uses; then steps:
 * frames of the peer (any bytes, or a header from few bytes with as much data as it says), opens, writes, ends, resets,
 * expectations. Held against it: streams are told of once, output stays bounded by what was asked for, a broken
 * session says why. */
#include "net/libp2p/mux.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 300, STREAMS_MAX = 24 };

struct rig {
  struct mux mux;
  struct mux_stream *streams[STREAMS_MAX];
  uint8_t take;
  bool drops; /* ends streams from within callbacks */
};

static void require(bool condition) {
  if (!condition) abort();
}

static struct mux_stream **slot_of(struct rig *rig, const struct mux_stream *stream) {
  for (size_t i = 0; i < STREAMS_MAX; i++) {
    if (rig->streams[i] == stream) return &rig->streams[i];
  }
  return NULL;
}

static void forget(struct rig *rig, struct mux_stream *stream) {
  struct mux_stream **slot = slot_of(rig, stream);
  require(slot);
  *slot = NULL;
  free(stream);
}

static struct mux_stream *new_stream(struct rig *rig) {
  struct mux_stream **slot = slot_of(rig, NULL);
  if (slot) *slot = calloc(1, sizeof **slot);
  return slot ? *slot : NULL;
}

static struct mux_stream *accept_stream(struct mux *mux) {
  return new_stream(mux->user);
}

static void accepted(struct mux_stream *stream) {
  require(slot_of(stream->mux->user, stream));
  mux_write(stream, "hello", 5);
}

static size_t received(struct mux_stream *stream, uint8_t *data, size_t len) {
  struct rig *rig = stream->mux->user;
  require(slot_of(rig, stream) && len > 0);
  memset(data, 0x55, len);
  if (rig->drops && rig->take & 2) {
    mux_reset(stream);
    forget(rig, stream);
    return 0;
  }
  if (rig->take & 4) mux_expect(stream, len * 3);
  return rig->take & 1 ? len : len / 3;
}

static void ended(struct mux_stream *stream) {
  require(slot_of(stream->mux->user, stream));
  mux_end(stream);
}

static void drained(struct mux_stream *stream) {
  require(slot_of(stream->mux->user, stream) && mux_pending(stream) == 0);
}

static void closed(struct mux_stream *stream, enum mux_stream_end end) {
  (void)end;
  forget(stream->mux->user, stream);
}

static const struct mux_ops ops = {.accept = accept_stream,
    .accepted = accepted,
    .received = received,
    .ended = ended,
    .drained = drained,
    .closed = closed};

static void give(struct rig *rig, const uint8_t *data, size_t len) {
  uint8_t *copy = malloc(len ? len : 1);
  require(copy);
  if (len) memcpy(copy, data, len);
  bool good = mux_received(&rig->mux, copy, len);
  require(good == !rig->mux.failure);
  free(copy);
}

/* A header from few bytes, with data behind it that is as long as it says. */
static void give_frame(struct rig *rig, const uint8_t *data, size_t len) {
  static uint8_t bytes[YAMUX_HEADER_BYTES + 65536];
  if (len < 4) return;
  uint32_t length = data[3] & 0x80 ? (uint32_t)(data[3] & 0x7f) << 9 : data[3];
  struct yamux_header header = {.type = data[0] & 3, .flags = data[1] & 15, .stream = data[2], .length = length};
  yamux_write_header(bytes, &header);
  give(rig, bytes, YAMUX_HEADER_BYTES + (header.type == YAMUX_DATA ? length : 0));
}

static void act(struct rig *rig, uint8_t what, uint8_t amount) {
  static const uint8_t zeros[255 * 64];
  struct mux_stream *stream = rig->streams[amount % STREAMS_MAX];
  if (what == 0 && (stream = new_stream(rig))) {
    if (!mux_open(&rig->mux, stream)) forget(rig, stream);
    return;
  }
  if (!stream) return;
  if (what == 1) mux_write(stream, zeros, (size_t)amount * 64);
  if (what == 2) mux_end(stream);
  if (what == 3) {
    mux_reset(stream);
    forget(rig, stream);
  }
  if (what == 4) mux_expect(stream, (size_t)amount << 16);
  if (what == 5) mux_resume(stream);
}

static void step(struct rig *rig, uint8_t operation, const uint8_t *data, size_t len) {
  rig->take = operation >> 4;
  switch (operation & 7) {
  case 0:
  case 1:
  case 2:
    give_frame(rig, data, len);
    break;
  case 3:
    give(rig, data, len);
    break;
  case 4:
    mux_pump(&rig->mux);
    rig->mux.out.len = 0; /* the owner has taken it */
    break;
  case 5:
    mux_ping(&rig->mux, 1);
    break;
  default:
    if (len > 1) act(rig, data[0] % 6, data[1]);
  }
  require(rig->mux.out.len < 8U << 20);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct rig rig = {0};
  if (size == 0) return 0;
  rig.drops = data[0] & 2;
  mux_begin(&rig.mux, data[0] & 1, &ops, &rig, 1 << 18);
  data++;
  size--;
  for (int i = 0; i < STEPS_MAX && size >= 2 && !rig.mux.failure; i++) {
    size_t len = data[1] < size - 2 ? data[1] : size - 2;
    step(&rig, data[0], data + 2, len);
    data += 2 + len;
    size -= 2 + len;
  }
  struct mux_stream *stream;
  while ((stream = mux_take_any(&rig.mux)))
    forget(&rig, stream);
  for (size_t i = 0; i < STREAMS_MAX; i++)
    require(!rig.streams[i]);
  mux_free(&rig.mux);
  return 0;
}
