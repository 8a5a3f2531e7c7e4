/* The secure channel of a connection: agrees on /noise, shakes hands, checks who the peer is, agrees on yamux (early,
 * in the handshake, or by a second negotiation inside the channel), and then encrypts and decrypts. Bytes in, bytes
 * out; no I/O. */
#ifndef MUSTER_NET_LIBP2P_CHANNEL_H
#define MUSTER_NET_LIBP2P_CHANNEL_H

#include "base/buf.h"
#include "net/libp2p/identity.h"
#include "net/libp2p/noise.h"

#define CHANNEL_OVERHEAD (2 + NOISE_TAG_BYTES)

enum channel_result {
  CHANNEL_MORE,        /* nothing more can be done with what is here */
  CHANNEL_ESTABLISHED, /* the handshake ended just now; *plain is what came behind it, if anything */
  CHANNEL_PLAIN,       /* *plain is what came, of at least one byte */
  CHANNEL_INSECURE,    /* failures: failure says why */
  CHANNEL_NO_PROTOCOL,
  CHANNEL_BROKEN,
  CHANNEL_NO_MEMORY,
};

struct channel_handshake;

struct channel {
  const struct libp2p_identity *identity;
  struct channel_handshake *handshake; /* owned; NULL once established */
  struct noise_cipher send, receive;
  struct peer_id peer; /* of the peer; before that whom we expect (len 0: anybody) */
  const char *failure; /* a fixed text */
  bool is_dialer, without_early_muxer;
  uint8_t state;
};

/* expected: NULL: anybody. Appends what is to be sent first to out. False: memory is out. */
bool channel_begin(struct channel *channel, bool is_dialer, const struct libp2p_identity *identity,
    const struct peer_id *expected, struct buf *out);
/* For tests and vectors, before channel_begin's bytes are made: a given ephemeral key, and no muxers told early. */
bool channel_begin_fixed(struct channel *channel, bool is_dialer, const struct libp2p_identity *identity,
    const struct peer_id *expected, const uint8_t *ephemeral_secret, bool without_early_muxer, struct buf *out);
void channel_free(struct channel *channel);

/* Takes what it can use off the front of data (*used; the rest is to be given again with what comes next) and changes
 * it in place. Appends answers to out. To be called again until it returns MORE or a failure. */
enum channel_result channel_received(
    struct channel *channel, uint8_t *data, size_t len, size_t *used, struct view *plain, struct buf *out);

/* Encrypts at most NOISE_PLAIN_MAX bytes into len + CHANNEL_OVERHEAD. */
void channel_seal(struct channel *channel, uint8_t *out, const uint8_t *plain, size_t len);

#endif
