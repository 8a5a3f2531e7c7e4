/* Noise_XX_25519_ChaChaPoly_SHA256: the handshake's three messages and the ciphers that follow. Messages are without
 * their length prefix. No I/O; the ephemeral key is given, so that vectors can be tested. */
#ifndef MUSTER_NET_LIBP2P_NOISE_H
#define MUSTER_NET_LIBP2P_NOISE_H

#include "base/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOISE_KEY_BYTES 32
#define NOISE_TAG_BYTES 16
#define NOISE_MESSAGE_MAX 65535
#define NOISE_PLAIN_MAX (NOISE_MESSAGE_MAX - NOISE_TAG_BYTES)
/* What a handshake message adds to its payload, at most. */
#define NOISE_HANDSHAKE_OVERHEAD 96

struct noise_cipher {
  uint8_t key[NOISE_KEY_BYTES];
  uint64_t counter;
};

/* Writes len + NOISE_TAG_BYTES; out may be where plain is. */
void noise_seal(struct noise_cipher *cipher, uint8_t *out, const uint8_t *plain, size_t len);
/* Opens in place; the plaintext is len - NOISE_TAG_BYTES long. False: it is not genuine. */
bool noise_open(struct noise_cipher *cipher, uint8_t *message, size_t len);

struct noise_handshake {
  bool is_initiator;
  bool has_key;
  uint8_t step; /* messages that were written or read */
  struct noise_cipher cipher;
  uint8_t hash[NOISE_KEY_BYTES], chaining_key[NOISE_KEY_BYTES];
  uint8_t static_secret[NOISE_KEY_BYTES], static_public[NOISE_KEY_BYTES];
  uint8_t ephemeral_secret[NOISE_KEY_BYTES], ephemeral_public[NOISE_KEY_BYTES];
  uint8_t remote_static[NOISE_KEY_BYTES], remote_ephemeral[NOISE_KEY_BYTES];
};

void noise_begin(struct noise_handshake *handshake, bool is_initiator, const uint8_t *static_secret,
    const uint8_t *static_public, const uint8_t *ephemeral_secret);
/* The next message is ours to write (else to read); neither after the third. */
bool noise_is_our_turn(const struct noise_handshake *handshake);
bool noise_is_done(const struct noise_handshake *handshake);
/* Returns the length, at most payload.len + NOISE_HANDSHAKE_OVERHEAD; 0: the peer's key is a bad one. */
size_t noise_write(struct noise_handshake *handshake, struct view payload, uint8_t *out);
/* Reads the message in place; the payload points into it. False: it is not genuine or too short. */
bool noise_read(struct noise_handshake *handshake, uint8_t *message, size_t len, struct view *payload);
/* After the third message. */
void noise_split(const struct noise_handshake *handshake, struct noise_cipher *send, struct noise_cipher *receive);

#endif
