#include "net/libp2p/noise.h"

#include "base/be.h"

#include <sodium.h>

enum { HASH_BYTES = crypto_hash_sha256_BYTES, NONCE_BYTES = crypto_aead_chacha20poly1305_ietf_NPUBBYTES };

_Static_assert(HASH_BYTES == NOISE_KEY_BYTES && crypto_scalarmult_BYTES == NOISE_KEY_BYTES, "one size for all");
_Static_assert(crypto_aead_chacha20poly1305_ietf_ABYTES == NOISE_TAG_BYTES, "tag");

/* What a step adds before its payload; both sides speak in turns, the initiator first. */
enum token { TOKEN_E = 1, TOKEN_EE = 2, TOKEN_S = 4, TOKEN_ES = 8, TOKEN_SE = 16 };
static const uint8_t pattern[] = {TOKEN_E, TOKEN_E | TOKEN_EE | TOKEN_S | TOKEN_ES, TOKEN_S | TOKEN_SE};

static void write_nonce(uint8_t out[NONCE_BYTES], uint64_t counter) {
  uint64_t little = htole64(counter);
  memset(out, 0, NONCE_BYTES - sizeof little);
  memcpy(out + NONCE_BYTES - sizeof little, &little, sizeof little);
}

static void seal(struct noise_cipher *cipher, uint8_t *out, struct view plain, struct view associated) {
  uint8_t nonce[NONCE_BYTES];
  write_nonce(nonce, cipher->counter++);
  crypto_aead_chacha20poly1305_ietf_encrypt(
      out, NULL, plain.data, plain.len, associated.data, associated.len, NULL, nonce, cipher->key);
}

static bool open_in_place(struct noise_cipher *cipher, uint8_t *message, size_t len, struct view associated) {
  uint8_t nonce[NONCE_BYTES];
  if (len < NOISE_TAG_BYTES) return false;
  write_nonce(nonce, cipher->counter);
  if (crypto_aead_chacha20poly1305_ietf_decrypt(
          message, NULL, NULL, message, len, associated.data, associated.len, nonce, cipher->key) != 0)
    return false;
  cipher->counter++;
  return true;
}

void noise_seal(struct noise_cipher *cipher, uint8_t *out, const uint8_t *plain, size_t len) {
  seal(cipher, out, view_of(plain, len), (struct view){0});
}

bool noise_open(struct noise_cipher *cipher, uint8_t *message, size_t len) {
  return open_in_place(cipher, message, len, (struct view){0});
}

static void mix_hash(struct noise_handshake *handshake, const uint8_t *data, size_t len) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  crypto_hash_sha256_update(&state, handshake->hash, HASH_BYTES);
  crypto_hash_sha256_update(&state, data, len);
  crypto_hash_sha256_final(&state, handshake->hash);
}

static void hmac(uint8_t *out, const uint8_t *key, struct view first, uint8_t last) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, key, HASH_BYTES);
  crypto_auth_hmacsha256_update(&state, first.data, first.len);
  if (last) crypto_auth_hmacsha256_update(&state, &last, 1);
  crypto_auth_hmacsha256_final(&state, out);
}

/* HKDF with two outputs. */
static void derive(const uint8_t *chaining_key, struct view input, uint8_t *first, uint8_t *second) {
  uint8_t temporary[HASH_BYTES], one[HASH_BYTES + 1];
  hmac(temporary, chaining_key, input, 0);
  hmac(one, temporary, (struct view){0}, 1);
  hmac(second, temporary, view_of(one, HASH_BYTES), 2);
  memcpy(first, one, HASH_BYTES);
  sodium_memzero(temporary, sizeof temporary);
  sodium_memzero(one, sizeof one);
}

/* False: the product is zero, which only a bad key makes. */
static bool mix_product(struct noise_handshake *handshake, const uint8_t *secret, const uint8_t *public) {
  uint8_t product[NOISE_KEY_BYTES];
  bool good = crypto_scalarmult(product, secret, public) == 0;
  derive(handshake->chaining_key, view_of(product, sizeof product), handshake->chaining_key, handshake->cipher.key);
  handshake->cipher.counter = 0;
  handshake->has_key = true;
  sodium_memzero(product, sizeof product);
  return good;
}

void noise_begin(struct noise_handshake *handshake, bool is_initiator, const uint8_t *static_secret,
    const uint8_t *static_public, const uint8_t *ephemeral_secret) {
  static const char name[] = "Noise_XX_25519_ChaChaPoly_SHA256";
  _Static_assert(sizeof name - 1 == HASH_BYTES, "a name of this length is its own hash");
  *handshake = (struct noise_handshake){.is_initiator = is_initiator};
  memcpy(handshake->hash, name, HASH_BYTES);
  memcpy(handshake->chaining_key, name, HASH_BYTES);
  memcpy(handshake->static_secret, static_secret, NOISE_KEY_BYTES);
  memcpy(handshake->static_public, static_public, NOISE_KEY_BYTES);
  memcpy(handshake->ephemeral_secret, ephemeral_secret, NOISE_KEY_BYTES);
  crypto_scalarmult_base(handshake->ephemeral_public, ephemeral_secret);
  mix_hash(handshake, NULL, 0); /* the empty prologue */
}

bool noise_is_done(const struct noise_handshake *handshake) {
  return handshake->step >= sizeof pattern;
}

bool noise_is_our_turn(const struct noise_handshake *handshake) {
  return !noise_is_done(handshake) && handshake->is_initiator == (handshake->step % 2 == 0);
}

/* Appends data to a message, encrypted once there is a key. */
static uint8_t *put_sealed(struct noise_handshake *handshake, uint8_t *at, struct view data) {
  size_t len = data.len;
  if (handshake->has_key) {
    seal(&handshake->cipher, at, data, view_of(handshake->hash, HASH_BYTES));
    len += NOISE_TAG_BYTES;
  } else if (data.len) {
    memcpy(at, data.data, data.len);
  }
  mix_hash(handshake, at, len);
  return at + len;
}

static bool mix_es(struct noise_handshake *handshake) {
  return handshake->is_initiator ? mix_product(handshake, handshake->ephemeral_secret, handshake->remote_static)
                                 : mix_product(handshake, handshake->static_secret, handshake->remote_ephemeral);
}

static bool mix_se(struct noise_handshake *handshake) {
  return handshake->is_initiator ? mix_product(handshake, handshake->static_secret, handshake->remote_ephemeral)
                                 : mix_product(handshake, handshake->ephemeral_secret, handshake->remote_static);
}

static bool mix_ee(struct noise_handshake *handshake) {
  return mix_product(handshake, handshake->ephemeral_secret, handshake->remote_ephemeral);
}

size_t noise_write(struct noise_handshake *handshake, struct view payload, uint8_t *out) {
  uint8_t tokens = pattern[handshake->step];
  uint8_t *at = out;
  bool good = true;
  if (tokens & TOKEN_E) {
    memcpy(at, handshake->ephemeral_public, NOISE_KEY_BYTES);
    mix_hash(handshake, at, NOISE_KEY_BYTES);
    at += NOISE_KEY_BYTES;
  }
  if (tokens & TOKEN_EE) good = mix_ee(handshake);
  if (tokens & TOKEN_S) at = put_sealed(handshake, at, view_of(handshake->static_public, NOISE_KEY_BYTES));
  if (tokens & TOKEN_ES) good = mix_es(handshake) && good;
  if (tokens & TOKEN_SE) good = mix_se(handshake) && good;
  at = put_sealed(handshake, at, payload);
  handshake->step++;
  return good ? (size_t)(at - out) : 0;
}

struct rest {
  uint8_t *at;
  size_t len;
};

/* Takes len bytes of data off the message and decrypts them once there is a key; NULL: not genuine or too short. */
static uint8_t *take_sealed(struct noise_handshake *handshake, struct rest *rest, size_t len) {
  uint8_t *data = rest->at;
  uint8_t hash[HASH_BYTES];
  size_t whole = handshake->has_key ? len + NOISE_TAG_BYTES : len;
  if (rest->len < whole) return NULL;
  memcpy(hash, handshake->hash, sizeof hash);
  mix_hash(handshake, data, whole);
  if (handshake->has_key && !open_in_place(&handshake->cipher, data, whole, view_of(hash, sizeof hash))) return NULL;
  rest->at += whole;
  rest->len -= whole;
  return data;
}

static bool take_ephemeral(struct noise_handshake *handshake, struct rest *rest) {
  if (rest->len < NOISE_KEY_BYTES) return false;
  memcpy(handshake->remote_ephemeral, rest->at, NOISE_KEY_BYTES);
  mix_hash(handshake, rest->at, NOISE_KEY_BYTES);
  rest->at += NOISE_KEY_BYTES;
  rest->len -= NOISE_KEY_BYTES;
  return true;
}

static bool take_static(struct noise_handshake *handshake, struct rest *rest) {
  const uint8_t *key = take_sealed(handshake, rest, NOISE_KEY_BYTES);
  if (key) memcpy(handshake->remote_static, key, NOISE_KEY_BYTES);
  return key;
}

bool noise_read(struct noise_handshake *handshake, uint8_t *message, size_t len, struct view *payload) {
  uint8_t tokens = pattern[handshake->step];
  struct rest rest = {message, len};
  if ((tokens & TOKEN_E) && !take_ephemeral(handshake, &rest)) return false;
  if ((tokens & TOKEN_EE) && !mix_ee(handshake)) return false;
  if ((tokens & TOKEN_S) && !take_static(handshake, &rest)) return false;
  if ((tokens & TOKEN_ES) && !mix_es(handshake)) return false;
  if ((tokens & TOKEN_SE) && !mix_se(handshake)) return false;
  size_t tag = handshake->has_key ? NOISE_TAG_BYTES : 0;
  if (rest.len < tag) return false;
  size_t payload_len = rest.len - tag;
  const uint8_t *plain = take_sealed(handshake, &rest, payload_len);
  if (!plain) return false;
  *payload = view_of(plain, payload_len);
  handshake->step++;
  return true;
}

void noise_split(const struct noise_handshake *handshake, struct noise_cipher *send, struct noise_cipher *receive) {
  struct noise_cipher *of_initiator = handshake->is_initiator ? send : receive;
  struct noise_cipher *of_responder = handshake->is_initiator ? receive : send;
  send->counter = receive->counter = 0;
  derive(handshake->chaining_key, (struct view){0}, of_initiator->key, of_responder->key);
}
