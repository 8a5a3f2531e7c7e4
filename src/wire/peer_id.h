/* Peer ids of libp2p: the multihash of a PublicKey message, printed in base58btc. Ed25519 keys are kept whole in the
 * id (identity multihash, 38 bytes, "12D3KooW..."); longer keys by their SHA-256 (34 bytes, "Qm..."). */
#ifndef MUSTER_WIRE_PEER_ID_H
#define MUSTER_WIRE_PEER_ID_H

#include "base/view.h"

#include <stdbool.h>
#include <stdint.h>

#define ED25519_PUBLIC_BYTES 32
#define PUBLIC_KEY_MESSAGE_BYTES 36
#define PEER_ID_MAX 38
#define PEER_ID_TEXT_BYTES 56 /* with the NUL */

struct peer_id {
  uint8_t len;
  uint8_t bytes[PEER_ID_MAX];
};

void peer_id_of_ed25519(const uint8_t *public_key, struct peer_id *out);
/* The key that the id holds; NULL for an id that is only a hash. */
const uint8_t *peer_id_ed25519(const struct peer_id *id);

/* False when the text is no peer id of one of the two forms. */
bool peer_id_parse(struct view text, struct peer_id *out);
/* out: PEER_ID_TEXT_BYTES. */
void peer_id_text(const struct peer_id *id, char *out);

static inline bool peer_id_equal(const struct peer_id *a, const struct peer_id *b) {
  return view_equal(view_of(a->bytes, a->len), view_of(b->bytes, b->len));
}

/* The PublicKey message (field 1 type, field 2 key) of an Ed25519 key, and back; NULL when it is none. */
void public_key_write(uint8_t out[PUBLIC_KEY_MESSAGE_BYTES], const uint8_t *public_key);
const uint8_t *public_key_read(struct view message);

#endif
