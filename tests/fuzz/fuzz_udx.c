// room: net
/* UDX packets and a connection that is fed with them. First byte: dialer or listener, window, datagrams. Then steps:
 * frames in a packet with a good header (its numbers are the step's first bytes), any bytes as a datagram, time that
 * passes, writes, ends, resets. Held against it: what is read is written as it was, memory stays bounded, nothing is
 * told behind the end, transmitting comes to an end. */
#include "base/clock.h"
#include "net/libp2p/udx.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 200, STREAMS_MAX = 4, DATAGRAMS_MAX = 2000 };

struct rig {
  struct udx *udx;
  struct udx_pool *pool;
  struct udx_stream *streams[STREAMS_MAX];
  size_t stream_count;
  uint8_t take; /* how much of what comes is used */
  bool ended;
  uint64_t now_ns;
};

static void require(bool condition) {
  if (!condition) abort();
}

static size_t received(struct udx_stream *stream, uint8_t *data, size_t len) {
  struct rig *rig = udx_user(udx_of(stream));
  require(len > 0 && udx_ended(rig->udx, NULL) == UDX_OPEN);
  memset(data, 0x55, len);
  return rig->take & 1 ? len : len / 2;
}

static void ended(struct udx_stream *stream) {
  require(udx_ended(udx_of(stream), NULL) == UDX_OPEN);
}

static void reset(struct udx_stream *stream, uint32_t code) {
  (void)code;
  require(!udx_reserve(stream, 1));
}

static void accepted(struct udx_stream *stream) {
  struct rig *rig = udx_user(udx_of(stream));
  if (rig->stream_count < STREAMS_MAX) rig->streams[rig->stream_count++] = stream;
}

static const struct udx_ops ops = {.received = received, .ended = ended, .reset = reset, .accepted = accepted};
static const struct udx_cid local = {8, {1, 2, 3, 4, 5, 6, 7, 8}}, remote = {8, {8, 7, 6, 5, 4, 3, 2, 1}};

/* A packet that can be read has frames that can be walked, and its header is written as it was. */
static bool read_and_check(const uint8_t *data, size_t len, struct udx_packet *packet) {
  uint8_t header[UDX_HEADER_MAX];
  struct udx_frame frame;
  bool syn;
  if (!udx_read_packet(data, len, packet)) return false;
  size_t header_len = (size_t)(udx_write_header(header, packet) - header);
  require(header_len + packet->frames.len == len && memcmp(header, data, header_len) == 0);
  struct view frames = packet->frames;
  while (udx_next_frame(&frames, &frame)) {
    struct udx_ack_walk walk = udx_ack_begin(&frame);
    uint32_t low, high, last = UINT32_MAX;
    while (frame.type == UDX_ACK && udx_ack_next(&walk, &low, &high)) {
      require(low <= high && high <= last);
      last = low;
    }
  }
  require(frames.len == 0);
  udx_bears_data(packet->frames, &syn);
  return true;
}

static void transmit(struct rig *rig) {
  uint8_t out[UDX_DATAGRAM_MAX];
  struct udx_packet packet;
  size_t len, count = 0;
  while ((len = udx_transmit(rig->udx, out, sizeof out, rig->now_ns))) {
    require(len <= sizeof out && ++count < DATAGRAMS_MAX);
    require(read_and_check(out, len, &packet));
  }
}

static void feed(struct rig *rig, const uint8_t *data, size_t len) {
  uint8_t *copy = malloc(len ? len : 1);
  struct udx_packet packet;
  require(copy);
  if (len) memcpy(copy, data, len);
  if (read_and_check(copy, len, &packet)) udx_received(rig->udx, &packet, rig->now_ns);
  free(copy);
}

/* Frames behind a good header. */
static void feed_frames(struct rig *rig, const uint8_t *data, size_t len) {
  uint8_t bytes[1024];
  if (len < 3) return;
  struct udx_packet packet = {
      .to = local, .from = remote, .sequence = data[0], .to_stream = data[1] & 7, .from_stream = data[2] & 7};
  uint8_t *at = udx_write_header(bytes, &packet);
  memcpy(at, data + 3, len - 3);
  feed(rig, bytes, (size_t)(at - bytes) + len - 3);
}

static void act(struct rig *rig, uint8_t what, uint8_t amount) {
  struct udx_stream *stream = rig->stream_count ? rig->streams[amount % rig->stream_count] : NULL;
  static const uint8_t zeros[4096];
  if (what == 0 && rig->stream_count < STREAMS_MAX && (stream = udx_open_stream(rig->udx)))
    rig->streams[rig->stream_count++] = stream;
  if (!stream) return;
  if (what == 1 && udx_unsent(stream) < 1 << 20) udx_write(stream, zeros, (size_t)amount * 16);
  if (what == 2) udx_end_stream(stream);
  if (what == 3) udx_reset_stream(stream, amount);
  if (what == 4) udx_resume(stream);
  if (what == 5 && amount > 250) udx_close(rig->udx, amount);
}

static void step(struct rig *rig, uint8_t operation, const uint8_t *data, size_t len) {
  uint8_t amount = len ? data[0] : 0;
  rig->take = operation >> 4;
  switch (operation & 7) {
  case 0:
  case 1:
  case 2:
    feed_frames(rig, data, len);
    break;
  case 3:
    feed(rig, data, len);
    break;
  case 4:
    rig->now_ns += (uint64_t)amount * amount * NS_PER_MS;
    udx_tick(rig->udx, rig->now_ns);
    break;
  default:
    act(rig, len > 1 ? data[1] % 6 : 1, amount);
  }
  transmit(rig);
  require(udx_next_ns(rig->udx) > rig->now_ns || udx_ended(rig->udx, NULL) == UDX_OPEN);
  require(udx_bytes_in_flight(rig->udx) <= (UDX_FLIGHT_MAX + 8) * (size_t)UDX_DATAGRAM_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct udx_packet packet;
  if (size == 0) return 0;
  read_and_check(data, size, &packet);
  struct rig rig = {.now_ns = NS_PER_SEC, .pool = udx_pool_create()};
  struct udx_options options = {.ops = &ops,
      .user = &rig,
      .pool = rig.pool,
      .local = local,
      .remote = remote,
      .dialer = data[0] & 1,
      .datagram_max = data[0] & 2 ? UDX_DATAGRAM_MAX : UDX_DATAGRAM_BYTES,
      .streams_max = 1 + (data[0] >> 2 & 3),
      .window_max = 1U << 18};
  rig.udx = udx_create(&options, rig.now_ns);
  require(rig.pool && rig.udx);
  data++;
  size--;
  for (int i = 0; i < STEPS_MAX && size >= 2; i++) {
    size_t len = data[1] < size - 2 ? data[1] : size - 2;
    step(&rig, data[0], data + 2, len);
    data += 2 + len;
    size -= 2 + len;
  }
  udx_destroy(rig.udx);
  udx_pool_destroy(rig.pool);
  return 0;
}
