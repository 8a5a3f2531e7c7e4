/* The payload that libp2p puts into the Noise handshake: who we are, signed, and which multiplexers we speak. */
#ifndef MUSTER_WIRE_NOISE_PAYLOAD_H
#define MUSTER_WIRE_NOISE_PAYLOAD_H

#include "base/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define YAMUX_PROTOCOL "/yamux/1.0.0"
#define NOISE_PAYLOAD_MAX 160 /* of what we write */

struct noise_payload {
  struct view identity_key; /* a PublicKey message */
  struct view signature;    /* of the Noise static key */
  bool has_muxers;          /* the peer told its multiplexers early */
  bool has_yamux;           /* YAMUX_PROTOCOL is among them */
};

/* False when the bytes are no payload, or key or signature is missing. */
bool noise_payload_read(struct view bytes, struct noise_payload *out);
/* Returns its length; key and signature of Ed25519's sizes. */
size_t noise_payload_write(uint8_t out[NOISE_PAYLOAD_MAX], const struct noise_payload *payload);

#endif
