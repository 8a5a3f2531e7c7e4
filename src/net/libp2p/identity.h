/* Who we are: an Ed25519 key pair, its peer id, and a Noise static key signed with it. Made once and shared by all
 * connections that go out under the name; read-only afterwards. */
#ifndef MUSTER_NET_LIBP2P_IDENTITY_H
#define MUSTER_NET_LIBP2P_IDENTITY_H

#include "base/err.h"
#include "base/view.h"
#include "net/libp2p/noise.h"
#include "wire/peer_id.h"

#include <stdbool.h>
#include <stdint.h>

#define IDENTITY_SEED_BYTES 32
#define IDENTITY_SIGNATURE_BYTES 64

struct libp2p_identity {
  uint8_t secret_key[64]; /* Ed25519: seed, then public key */
  struct peer_id peer;
  char text[PEER_ID_TEXT_BYTES]; /* of the peer id: "12D3KooW..." */
  uint8_t noise_secret[NOISE_KEY_BYTES], noise_public[NOISE_KEY_BYTES];
  uint8_t noise_signature[IDENTITY_SIGNATURE_BYTES];
};

/* From a seed, with a fresh Noise key; seed NULL: a fresh identity. Fails (STATUS_IO) only when libsodium cannot be
 * initialized. */
enum status libp2p_identity_make(struct libp2p_identity *out, const uint8_t *seed, struct err *err);
/* The same with a given Noise secret, for tests. */
enum status libp2p_identity_make_fixed(
    struct libp2p_identity *out, const uint8_t *seed, const uint8_t *noise_secret, struct err *err);

/* The Ed25519 key of public_key signed the Noise static key. */
bool libp2p_identity_verify(const uint8_t *public_key, const uint8_t *noise_public, struct view signature);

#endif
