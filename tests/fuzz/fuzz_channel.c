// room: net
/* What a peer may say before and inside the secure channel: any bytes to a dialer or a listener; negotiation of the
 * muxer and data inside a channel that a genuine peer opened; and the small formats around it (multistream messages,
 * identity payloads, peer ids, multiaddrs), which must come back as they were. First byte: which. */
#include "net/libp2p/channel.h"
#include "wire/multiaddr.h"
#include "wire/multistream.h"
#include "wire/noise_payload.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
  if (!condition) abort();
}

static const struct libp2p_identity *identity(void) {
  static struct libp2p_identity keys;
  static const uint8_t seed[IDENTITY_SEED_BYTES] = {1}, secret[NOISE_KEY_BYTES] = {2};
  if (!keys.text[0]) require(libp2p_identity_make_fixed(&keys, seed, secret, NULL) == STATUS_OK);
  return &keys;
}

struct end {
  struct channel channel;
  struct buf out;
  bool established, failed;
};

static void begin(struct end *end, bool is_dialer, bool late) {
  static const uint8_t ephemeral[NOISE_KEY_BYTES] = {3};
  *end = (struct end){0};
  require(channel_begin_fixed(&end->channel, is_dialer, identity(), NULL, ephemeral, late, &end->out));
}

static void finish(struct end *end) {
  channel_free(&end->channel);
  buf_free(&end->out);
}

static void feed(struct end *end, const uint8_t *data, size_t len) {
  uint8_t *copy = malloc(len ? len : 1);
  size_t at = 0;
  enum channel_result result;
  require(copy);
  if (len) memcpy(copy, data, len);
  do {
    struct view plain;
    size_t used;
    result = channel_received(&end->channel, copy + at, len - at, &used, &plain, &end->out);
    at += used;
    require(at <= len);
    if (result == CHANNEL_PLAIN) require(plain.len > 0);
    if (result == CHANNEL_ESTABLISHED) end->established = true;
  } while (result == CHANNEL_PLAIN || result == CHANNEL_ESTABLISHED);
  end->failed = result != CHANNEL_MORE;
  require(!end->failed || end->channel.failure);
  free(copy);
}

static void from_outside(bool to_dialer, const uint8_t *data, size_t size) {
  struct end end;
  begin(&end, to_dialer, false);
  feed(&end, data, size);
  require(!end.established);
  finish(&end);
}

/* A genuine peer gets through the handshake, but names no muxer early. */
static void from_inside(bool to_dialer, const uint8_t *data, size_t size) {
  struct end dialer, listener;
  begin(&dialer, true, true);
  begin(&listener, false, true);
  struct end *ours = to_dialer ? &dialer : &listener, *peer = to_dialer ? &listener : &dialer;
  feed(&listener, dialer.out.data, dialer.out.len);
  feed(&dialer, listener.out.data, listener.out.len);
  size_t third = 20 + 8 + 34; /* behind what was fed already */
  if (!to_dialer) {
    /* Of the dialer's output only the third message, which has 104 bytes of payload. */
    require(dialer.out.len >= third + 2 + 64 + 104);
    feed(&listener, dialer.out.data + third, 2 + 64 + 104);
  }
  uint8_t *sealed = malloc(size + CHANNEL_OVERHEAD);
  require(sealed);
  peer->channel.send.counter = ours->channel.receive.counter;
  if (size && size <= NOISE_PLAIN_MAX) {
    channel_seal(&peer->channel, sealed, data, size);
    feed(ours, sealed, size + CHANNEL_OVERHEAD);
  }
  free(sealed);
  finish(&dialer);
  finish(&listener);
}

static void small_formats(const uint8_t *data, size_t size) {
  struct view bytes = view_of(data, size), text;
  struct noise_payload payload;
  struct peer_id id, again;
  struct multiaddr address, parsed;
  char printed[PEER_ID_TEXT_BYTES], line[MULTIADDR_TEXT_BYTES], input[512] = "";
  uint8_t message[MULTISTREAM_MESSAGE_MAX], binary[MULTIADDR_BINARY_MAX];
  size_t used;
  if (multistream_read(bytes, &text, &used) == MULTISTREAM_COMPLETE) {
    require(text.len <= MULTISTREAM_TEXT_MAX && used <= size);
    require(multistream_size(text.len) == (size_t)(multistream_write(message, text) - message));
  }
  if (noise_payload_read(bytes, &payload)) require(payload.identity_key.len && payload.signature.len);
  public_key_read(bytes);
  if (peer_id_parse(bytes, &id)) {
    peer_id_text(&id, printed);
    require(view_is(bytes, printed) && peer_id_parse(view_str(printed), &again) && peer_id_equal(&id, &again));
  }
  memcpy(input, data, size < sizeof input - 1 ? size : sizeof input - 1);
  if (multiaddr_parse(input, &address, NULL) != STATUS_OK) return;
  multiaddr_text(&address, line);
  require(multiaddr_parse(line, &parsed, NULL) == STATUS_OK && parsed.port == address.port);
  require(strcmp(parsed.host, address.host) == 0 && parsed.has_peer == address.has_peer);
  require(multiaddr_write(&address, binary) <= sizeof binary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  switch (data[0] & 7) {
  case 0:
  case 1:
    from_outside(data[0] & 1, data + 1, size - 1);
    break;
  case 2:
  case 3:
    from_inside(data[0] & 1, data + 1, size - 1);
    break;
  default:
    small_formats(data + 1, size - 1);
  }
  return 0;
}
