/* The answer to /ipfs/id/1.0.0: who we are, where we listen and what we speak, so that a peer need not ask for each
 * protocol. One message, then the end. */
#include "net/libp2p/node.h"

#include "wire/pb.h"

#include <stdlib.h>
#include <string.h>

enum {
  FIELD_PUBLIC_KEY = 1,
  FIELD_LISTEN_ADDRESSES = 2,
  FIELD_PROTOCOLS = 3,
  FIELD_PROTOCOL_VERSION = 5,
  FIELD_AGENT_VERSION = 6,
  MESSAGE_MAX = 8192,
};

static bool put(struct buf *out, uint32_t field, struct view bytes) {
  size_t size = pb_bytes_field_size(field, bytes.len);
  if (out->len + size > MESSAGE_MAX) return false;
  uint8_t *at = buf_reserve(out, size);
  if (!at) return false;
  pb_write_bytes_field(at, field, bytes);
  out->len += (uint32_t)size;
  return true;
}

static void put_message(const struct libp2p *node, const struct libp2p_identity *identity, struct buf *out) {
  uint8_t key[PUBLIC_KEY_MESSAGE_BYTES], address[MULTIADDR_BINARY_MAX];
  public_key_write(key, peer_id_ed25519(&identity->peer));
  put(out, FIELD_PUBLIC_KEY, view_of(key, sizeof key));
  for (uint8_t i = 0; i < node->address_count; i++)
    put(out, FIELD_LISTEN_ADDRESSES, view_of(address, multiaddr_write(&node->addresses[i], address)));
  for (size_t i = 0; i < node->config.protocol_count; i++)
    put(out, FIELD_PROTOCOLS, view_str(node->config.protocols[i].id));
  put(out, FIELD_PROTOCOLS, view_str(IDENTIFY_PROTOCOL));
  put(out, FIELD_PROTOCOL_VERSION, view_str("ipfs/0.1.0"));
  put(out, FIELD_AGENT_VERSION, view_str("muster"));
}

static void accepted(struct libp2p_stream *stream, void *user) {
  struct buf message = {0};
  uint8_t length[10];
  (void)user;
  put_message(stream->conn->node, stream->conn->identity, &message);
  size_t len = (size_t)(pb_write_varint(length, message.len) - length);
  libp2p_stream_write(stream, length, len);
  libp2p_stream_write(stream, message.data, message.len);
  libp2p_stream_end(stream);
  buf_free(&message);
}

static size_t received(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  (void)stream, (void)data;
  return len;
}

static const struct libp2p_stream_ops ops = {.received = received};

const struct libp2p_protocol identify_protocol = {.id = IDENTIFY_PROTOCOL, .ops = &ops, .accepted = accepted};
