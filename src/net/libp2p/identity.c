#include "net/libp2p/identity.h"

#include <sodium.h>
#include <string.h>

static const char signature_prefix[] = "noise-libp2p-static-key:";

enum { SIGNED_BYTES = sizeof signature_prefix - 1 + NOISE_KEY_BYTES };

_Static_assert(crypto_sign_SECRETKEYBYTES == sizeof(((struct libp2p_identity *)0)->secret_key), "Ed25519");
_Static_assert(crypto_sign_BYTES == IDENTITY_SIGNATURE_BYTES, "Ed25519");

static void write_signed(uint8_t out[SIGNED_BYTES], const uint8_t *noise_public) {
  memcpy(out, signature_prefix, sizeof signature_prefix - 1);
  memcpy(out + sizeof signature_prefix - 1, noise_public, NOISE_KEY_BYTES);
}

enum status libp2p_identity_make_fixed(
    struct libp2p_identity *out, const uint8_t *seed, const uint8_t *noise_secret, struct err *err) {
  uint8_t public_key[ED25519_PUBLIC_BYTES], message[SIGNED_BYTES];
  if (sodium_init() < 0) return err_set(err, STATUS_IO, "libsodium finds no source of random numbers");
  crypto_sign_seed_keypair(public_key, out->secret_key, seed);
  peer_id_of_ed25519(public_key, &out->peer);
  peer_id_text(&out->peer, out->text);
  memcpy(out->noise_secret, noise_secret, NOISE_KEY_BYTES);
  crypto_scalarmult_base(out->noise_public, out->noise_secret);
  write_signed(message, out->noise_public);
  crypto_sign_detached(out->noise_signature, NULL, message, sizeof message, out->secret_key);
  return STATUS_OK;
}

enum status libp2p_identity_make(struct libp2p_identity *out, const uint8_t *seed, struct err *err) {
  uint8_t fresh_seed[IDENTITY_SEED_BYTES], noise_secret[NOISE_KEY_BYTES];
  if (sodium_init() < 0) return err_set(err, STATUS_IO, "libsodium finds no source of random numbers");
  randombytes_buf(fresh_seed, sizeof fresh_seed);
  randombytes_buf(noise_secret, sizeof noise_secret);
  enum status status = libp2p_identity_make_fixed(out, seed ? seed : fresh_seed, noise_secret, err);
  sodium_memzero(fresh_seed, sizeof fresh_seed);
  sodium_memzero(noise_secret, sizeof noise_secret);
  return status;
}

bool libp2p_identity_verify(const uint8_t *public_key, const uint8_t *noise_public, struct view signature) {
  uint8_t message[SIGNED_BYTES];
  if (signature.len != IDENTITY_SIGNATURE_BYTES) return false;
  write_signed(message, noise_public);
  return crypto_sign_verify_detached(signature.data, message, sizeof message, public_key) == 0;
}
