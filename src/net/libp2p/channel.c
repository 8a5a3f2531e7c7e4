#include "net/libp2p/channel.h"

#include "base/be.h"
#include "wire/multistream.h"
#include "wire/noise_payload.h"

#include <sodium.h>
#include <stdlib.h>

#define NOISE_PROTOCOL "/noise"

enum { PROPOSALS_MAX = 8, PREFIX_BYTES = 2, TEXT_MAX = 2 * MULTISTREAM_MESSAGE_MAX };

enum channel_state { STATE_SECURITY, STATE_HANDSHAKE, STATE_MUXER, STATE_OPEN, STATE_FAILED };

/* What is needed only until the channel is open. */
struct channel_handshake {
  struct noise_handshake noise;
  bool got_header;
  bool peer_has_muxers, peer_has_yamux;
  uint8_t proposals;
  /* Plaintext of the negotiation of the muxer, which may come in pieces. */
  struct buf text;
};

static enum channel_result fail(struct channel *channel, enum channel_result how, const char *why) {
  channel->state = STATE_FAILED;
  channel->failure = why;
  return how;
}

static bool put_message(struct buf *out, const char *text) {
  struct view view = view_str(text);
  size_t size = multistream_size(view.len);
  uint8_t *at = buf_reserve(out, size);
  if (!at) return false;
  multistream_write(at, view);
  out->len += (uint32_t)size;
  return true;
}

static size_t write_payload(const struct channel *channel, uint8_t out[NOISE_PAYLOAD_MAX]) {
  uint8_t key[PUBLIC_KEY_MESSAGE_BYTES];
  public_key_write(key, peer_id_ed25519(&channel->identity->peer));
  struct noise_payload payload = {.identity_key = view_of(key, sizeof key),
      .signature = view_of(channel->identity->noise_signature, IDENTITY_SIGNATURE_BYTES),
      .has_yamux = !channel->without_early_muxer};
  return noise_payload_write(out, &payload);
}

/* The next message of the handshake; the first has no payload. */
static enum channel_result put_handshake(struct channel *channel, struct buf *out) {
  struct noise_handshake *noise = &channel->handshake->noise;
  uint8_t payload[NOISE_PAYLOAD_MAX];
  size_t payload_len = noise->step ? write_payload(channel, payload) : 0;
  uint8_t *at = buf_reserve(out, PREFIX_BYTES + payload_len + NOISE_HANDSHAKE_OVERHEAD);
  if (!at) return fail(channel, CHANNEL_NO_MEMORY, "out of memory");
  size_t len = noise_write(noise, view_of(payload, payload_len), at + PREFIX_BYTES);
  if (!len) return fail(channel, CHANNEL_INSECURE, "the peer's Noise key is a bad one");
  be_put16(at, (uint16_t)len);
  out->len += (uint32_t)(PREFIX_BYTES + len);
  return CHANNEL_MORE;
}

bool channel_begin_fixed(struct channel *channel, bool is_dialer, const struct libp2p_identity *identity,
    const struct peer_id *expected, const uint8_t *ephemeral_secret, bool without_early_muxer, struct buf *out) {
  *channel = (struct channel){.identity = identity, .is_dialer = is_dialer, .without_early_muxer = without_early_muxer};
  if (expected) channel->peer = *expected;
  channel->handshake = calloc(1, sizeof *channel->handshake);
  if (!channel->handshake) return false;
  noise_begin(&channel->handshake->noise, is_dialer, identity->noise_secret, identity->noise_public, ephemeral_secret);
  if (!put_message(out, MULTISTREAM_HEADER)) return false;
  /* A dialer does not wait for answers that can only be yes or the end. */
  return !is_dialer || (put_message(out, NOISE_PROTOCOL) && put_handshake(channel, out) == CHANNEL_MORE);
}

bool channel_begin(struct channel *channel, bool is_dialer, const struct libp2p_identity *identity,
    const struct peer_id *expected, struct buf *out) {
  uint8_t ephemeral[NOISE_KEY_BYTES];
  randombytes_buf(ephemeral, sizeof ephemeral);
  bool good = channel_begin_fixed(channel, is_dialer, identity, expected, ephemeral, false, out);
  sodium_memzero(ephemeral, sizeof ephemeral);
  return good;
}

static void end_handshake(struct channel *channel) {
  if (!channel->handshake) return;
  buf_free(&channel->handshake->text);
  sodium_memzero(channel->handshake, sizeof *channel->handshake);
  free(channel->handshake);
  channel->handshake = NULL;
}

void channel_free(struct channel *channel) {
  end_handshake(channel);
  sodium_memzero(&channel->send, sizeof channel->send);
  sodium_memzero(&channel->receive, sizeof channel->receive);
}

static enum channel_result refuse(struct channel *channel) {
  bool security = channel->state == STATE_SECURITY;
  return fail(channel, CHANNEL_NO_PROTOCOL,
      security ? "the peer does not speak " NOISE_PROTOCOL : "the peer does not speak " YAMUX_PROTOCOL);
}

/* One message of a negotiation: MORE, or ESTABLISHED when the protocol is agreed on. The answer goes to out. */
static enum channel_result negotiate(
    struct channel *channel, const char *protocol, struct view *bytes, struct buf *out) {
  struct channel_handshake *handshake = channel->handshake;
  struct view text;
  switch (multistream_next(&handshake->got_header, bytes, &text)) {
  case MULTISTREAM_PARTIAL:
    return CHANNEL_MORE;
  case MULTISTREAM_BAD:
    return fail(channel, CHANNEL_BROKEN, "the peer does not speak multistream-select 1.0.0");
  default:
    break;
  }
  bool agreed = view_is(text, protocol);
  if (channel->is_dialer) return agreed ? CHANNEL_ESTABLISHED : refuse(channel);
  if (!put_message(out, agreed ? protocol : MULTISTREAM_NOT_AVAILABLE))
    return fail(channel, CHANNEL_NO_MEMORY, "out of memory");
  if (agreed) return CHANNEL_ESTABLISHED;
  return ++handshake->proposals < PROPOSALS_MAX ? CHANNEL_MORE : refuse(channel);
}

static enum channel_result in_security(
    struct channel *channel, uint8_t *data, size_t len, size_t *used, struct buf *out) {
  struct view bytes = view_of(data, len);
  enum channel_result result;
  size_t before;
  do {
    before = bytes.len;
    result = negotiate(channel, NOISE_PROTOCOL, &bytes, out);
  } while (result == CHANNEL_MORE && bytes.len < before);
  *used = len - bytes.len;
  if (result != CHANNEL_ESTABLISHED) return result;
  channel->state = STATE_HANDSHAKE;
  return CHANNEL_MORE;
}

/* Who the peer says it is, and whether it can prove it. */
static enum channel_result check_peer(struct channel *channel, struct view bytes) {
  struct channel_handshake *handshake = channel->handshake;
  struct noise_payload payload;
  struct peer_id peer;
  if (!noise_payload_read(bytes, &payload))
    return fail(channel, CHANNEL_INSECURE, "the peer's Noise payload is not readable");
  const uint8_t *key = public_key_read(payload.identity_key);
  if (!key) return fail(channel, CHANNEL_INSECURE, "the peer's identity is no Ed25519 key");
  if (!libp2p_identity_verify(key, handshake->noise.remote_static, payload.signature))
    return fail(channel, CHANNEL_INSECURE, "the peer's Noise key is not signed by its identity");
  peer_id_of_ed25519(key, &peer);
  if (channel->peer.len && !peer_id_equal(&peer, &channel->peer))
    return fail(channel, CHANNEL_INSECURE, "the peer has another peer id than the one that was asked for");
  channel->peer = peer;
  handshake->peer_has_muxers = payload.has_muxers;
  handshake->peer_has_yamux = payload.has_yamux;
  return CHANNEL_MORE;
}

static enum channel_result open_channel(struct channel *channel) {
  channel->state = STATE_OPEN;
  end_handshake(channel);
  return CHANNEL_ESTABLISHED;
}

static bool put_sealed(struct channel *channel, struct buf *plain, struct buf *out) {
  uint8_t *at = buf_reserve(out, plain->len + CHANNEL_OVERHEAD);
  if (at) channel_seal(channel, at, plain->data, plain->len);
  if (at) out->len += plain->len + CHANNEL_OVERHEAD;
  buf_free(plain);
  return at;
}

/* After the third message: the muxer is known early, or is negotiated inside the channel. */
static enum channel_result end_noise(struct channel *channel, struct buf *out) {
  struct channel_handshake *handshake = channel->handshake;
  struct buf plain = {0};
  noise_split(&handshake->noise, &channel->send, &channel->receive);
  if (handshake->peer_has_yamux && !channel->without_early_muxer) return open_channel(channel);
  channel->state = STATE_MUXER;
  handshake->got_header = false;
  handshake->proposals = 0;
  bool good = put_message(&plain, MULTISTREAM_HEADER) && (!channel->is_dialer || put_message(&plain, YAMUX_PROTOCOL)) &&
              put_sealed(channel, &plain, out);
  return good ? CHANNEL_MORE : fail(channel, CHANNEL_NO_MEMORY, "out of memory");
}

/* The message that the data begins with; 0: it is not whole yet. */
static size_t message_len(const uint8_t *data, size_t len) {
  if (len < PREFIX_BYTES) return 0;
  size_t whole = PREFIX_BYTES + (size_t)be_get16(data);
  return len < whole ? 0 : whole;
}

static enum channel_result in_handshake(
    struct channel *channel, uint8_t *data, size_t len, size_t *used, struct buf *out) {
  struct noise_handshake *noise = &channel->handshake->noise;
  struct view payload;
  size_t whole = message_len(data, len);
  if (!whole) return CHANNEL_MORE;
  *used = whole;
  if (!noise_read(noise, data + PREFIX_BYTES, whole - PREFIX_BYTES, &payload))
    return fail(channel, CHANNEL_INSECURE, "a Noise handshake message is not genuine");
  enum channel_result result = noise->step > 1 ? check_peer(channel, payload) : CHANNEL_MORE;
  if (result == CHANNEL_MORE && noise_is_our_turn(noise)) result = put_handshake(channel, out);
  if (result != CHANNEL_MORE) return result;
  return noise_is_done(noise) ? end_noise(channel, out) : CHANNEL_MORE;
}

/* Plaintext of the muxer's negotiation; what lies behind it is the muxer's first. */
static enum channel_result in_muxer(struct channel *channel, struct view *plain, struct buf *out) {
  struct buf *text = &channel->handshake->text;
  struct buf answer = {0};
  if (text->len + plain->len > TEXT_MAX + NOISE_MESSAGE_MAX)
    return fail(channel, CHANNEL_BROKEN, "the peer negotiates without end");
  if (!buf_append(text, plain->data, plain->len)) return fail(channel, CHANNEL_NO_MEMORY, "out of memory");
  struct view bytes = view_of(text->data, text->len);
  enum channel_result result;
  size_t before;
  do {
    before = bytes.len;
    result = negotiate(channel, YAMUX_PROTOCOL, &bytes, &answer);
  } while (result == CHANNEL_MORE && bytes.len < before);
  size_t rest = bytes.len;
  buf_consume(text, text->len - rest);
  if (answer.len && !put_sealed(channel, &answer, out)) return fail(channel, CHANNEL_NO_MEMORY, "out of memory");
  buf_free(&answer);
  if (result != CHANNEL_ESTABLISHED) return result;
  /* The rest of what came is the end of this message. */
  if (rest > plain->len) return fail(channel, CHANNEL_BROKEN, "the peer's negotiation is mixed up");
  *plain = view_of(plain->data + (plain->len - rest), rest);
  return open_channel(channel);
}

static enum channel_result in_open(
    struct channel *channel, uint8_t *data, size_t len, size_t *used, struct view *plain, struct buf *out) {
  size_t whole = message_len(data, len);
  if (!whole) return CHANNEL_MORE;
  *used = whole;
  if (!noise_open(&channel->receive, data + PREFIX_BYTES, whole - PREFIX_BYTES))
    return fail(channel, CHANNEL_INSECURE, "an encrypted message is not genuine");
  *plain = view_of(data + PREFIX_BYTES, whole - CHANNEL_OVERHEAD);
  if (channel->state == STATE_MUXER) return in_muxer(channel, plain, out);
  return plain->len ? CHANNEL_PLAIN : CHANNEL_MORE;
}

/* One step. */
static enum channel_result advance(
    struct channel *channel, uint8_t *data, size_t len, size_t *used, struct view *plain, struct buf *out) {
  switch ((enum channel_state)channel->state) {
  case STATE_SECURITY:
    return in_security(channel, data, len, used, out);
  case STATE_HANDSHAKE:
    return in_handshake(channel, data, len, used, out);
  case STATE_MUXER:
  case STATE_OPEN:
    return in_open(channel, data, len, used, plain, out);
  default:
    return CHANNEL_BROKEN;
  }
}

enum channel_result channel_received(
    struct channel *channel, uint8_t *data, size_t len, size_t *used, struct view *plain, struct buf *out) {
  size_t total = 0, step;
  enum channel_result result;
  *plain = (struct view){0};
  do {
    step = 0;
    result = advance(channel, data + total, len - total, &step, plain, out);
    total += step;
  } while (result == CHANNEL_MORE && step && total < len);
  *used = total;
  return result;
}

void channel_seal(struct channel *channel, uint8_t *out, const uint8_t *plain, size_t len) {
  be_put16(out, (uint16_t)(len + NOISE_TAG_BYTES));
  noise_seal(&channel->send, out + PREFIX_BYTES, plain, len);
}
