/* Multiaddrs, as far as muster needs them: /ip4|ip6|dns|dns4|dns6/HOST/udp/PORT/udx or .../tcp/PORT, with or without
 * /p2p/PEER at the end. */
#ifndef MUSTER_WIRE_MULTIADDR_H
#define MUSTER_WIRE_MULTIADDR_H

#include "base/err.h"
#include "wire/peer_id.h"

#include <stddef.h>

#define MULTIADDR_TEXT_BYTES 360
#define MULTIADDR_BINARY_MAX 24

enum multiaddr_transport { MULTIADDR_UDX, MULTIADDR_TCP };

struct multiaddr {
  enum multiaddr_transport transport;
  char host[256]; /* literal or name, as address_resolve takes it */
  uint16_t port;
  bool has_peer;
  struct peer_id peer;
};

/* The error quotes the part that is wrong. */
enum status multiaddr_parse(const char *text, struct multiaddr *out, struct err *err);
/* out: MULTIADDR_TEXT_BYTES. Hosts that are no literal are written as /dns. */
void multiaddr_text(const struct multiaddr *address, char *out);
/* The binary form of the part before /p2p, as identify carries it; 0 when the host is no literal. */
size_t multiaddr_write(const struct multiaddr *address, uint8_t out[MULTIADDR_BINARY_MAX]);

#endif
