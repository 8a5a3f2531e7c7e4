#include "wire/multiaddr.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

enum { CODE_IP4 = 0x04, CODE_TCP = 0x06, CODE_IP6 = 0x29 };

#define FORM "/ip4/127.0.0.1/udp/4001/udx/p2p/12D3KooW..."

struct cursor {
  const char *at;
};

/* The next part between slashes; {NULL, 0} at the end. */
static struct view next_part(struct cursor *cursor) {
  if (*cursor->at != '/') return (struct view){0};
  const char *start = cursor->at + 1;
  size_t len = strcspn(start, "/");
  cursor->at = start + len;
  return view_of(start, len);
}

static enum status bad(struct err *err, const char *what, struct view part) {
  return err_set(err, STATUS_USAGE, "multiaddr: %s \"%.*s\"; it looks like %s", what,
      (int)(part.len < 80 ? part.len : 80), part.data ? (const char *)part.data : "", FORM);
}

static bool host_fits(struct view kind, const char *host) {
  uint8_t bytes[16];
  if (view_is(kind, "ip4")) return inet_pton(AF_INET, host, bytes) == 1;
  if (view_is(kind, "ip6")) return inet_pton(AF_INET6, host, bytes) == 1;
  return true;
}

static enum status parse_host(struct cursor *cursor, struct multiaddr *out, struct err *err) {
  struct view kind = next_part(cursor);
  bool known = view_is(kind, "ip4") || view_is(kind, "ip6") || view_is(kind, "dns") || view_is(kind, "dns4") ||
               view_is(kind, "dns6");
  if (!known) return bad(err, "starts with no ip4, ip6 or dns but", kind);
  struct view host = next_part(cursor);
  if (host.len == 0 || host.len >= sizeof out->host) return bad(err, "the host is empty or too long:", host);
  memcpy(out->host, host.data, host.len);
  out->host[host.len] = 0;
  return host_fits(kind, out->host) ? STATUS_OK : bad(err, "no such address:", host);
}

static bool parse_port(struct view text, uint16_t *out) {
  unsigned port = 0;
  if (text.len == 0 || text.len > 5) return false;
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    port = port * 10 + (unsigned)(text.data[i] - '0');
  }
  *out = (uint16_t)port;
  return port <= UINT16_MAX;
}

static enum status parse_transport(struct cursor *cursor, struct multiaddr *out, struct err *err) {
  struct view kind = next_part(cursor);
  if (!view_is(kind, "udp") && !view_is(kind, "tcp")) return bad(err, "neither udp nor tcp but", kind);
  struct view port = next_part(cursor);
  if (!parse_port(port, &out->port)) return bad(err, "no port:", port);
  out->transport = view_is(kind, "tcp") ? MULTIADDR_TCP : MULTIADDR_UDX;
  if (out->transport == MULTIADDR_TCP) return STATUS_OK;
  struct view over = next_part(cursor);
  return view_is(over, "udx") ? STATUS_OK : bad(err, "only udx is spoken over udp, not", over);
}

enum status multiaddr_parse(const char *text, struct multiaddr *out, struct err *err) {
  struct cursor cursor = {text};
  memset(out, 0, sizeof *out);
  enum status status = parse_host(&cursor, out, err);
  if (status == STATUS_OK) status = parse_transport(&cursor, out, err);
  if (status != STATUS_OK || *cursor.at == 0) return status;
  struct view kind = next_part(&cursor);
  if (!view_is(kind, "p2p")) return bad(err, "nothing but /p2p/PEER may follow the transport, not", kind);
  struct view peer = next_part(&cursor);
  out->has_peer = peer_id_parse(peer, &out->peer);
  if (!out->has_peer) return bad(err, "no peer id:", peer);
  return *cursor.at == 0 ? STATUS_OK : bad(err, "nothing may follow the peer id, not", view_str(cursor.at));
}

static const char *kind_of(const char *host) {
  uint8_t bytes[16];
  if (inet_pton(AF_INET, host, bytes) == 1) return "ip4";
  return inet_pton(AF_INET6, host, bytes) == 1 ? "ip6" : "dns";
}

void multiaddr_text(const struct multiaddr *address, char *out) {
  char peer[PEER_ID_TEXT_BYTES] = "";
  bool udx = address->transport == MULTIADDR_UDX;
  if (address->has_peer) peer_id_text(&address->peer, peer);
  snprintf(out, MULTIADDR_TEXT_BYTES, "/%s/%s/%s/%u%s%s%s", kind_of(address->host), address->host, udx ? "udp" : "tcp",
      (unsigned)address->port, udx ? "/udx" : "", address->has_peer ? "/p2p/" : "", peer);
}

size_t multiaddr_write(const struct multiaddr *address, uint8_t out[MULTIADDR_BINARY_MAX]) {
  static const uint8_t udp[] = {0x91, 0x02}, udx[] = {0x80, 0x06}; /* codes 0x0111 and 0x0300 as varints */
  uint8_t *at = out;
  if (inet_pton(AF_INET, address->host, at + 1) == 1) {
    *at = CODE_IP4;
    at += 1 + 4;
  } else if (inet_pton(AF_INET6, address->host, at + 1) == 1) {
    *at = CODE_IP6;
    at += 1 + 16;
  } else {
    return 0;
  }
  bool is_udx = address->transport == MULTIADDR_UDX;
  if (is_udx) {
    memcpy(at, udp, sizeof udp);
    at += sizeof udp;
  } else {
    *at++ = CODE_TCP;
  }
  *at++ = (uint8_t)(address->port >> 8);
  *at++ = (uint8_t)address->port;
  if (is_udx) memcpy(at, udx, sizeof udx);
  return (size_t)(at - out) + (is_udx ? sizeof udx : 0);
}
