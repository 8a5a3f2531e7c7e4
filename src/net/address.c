#include "net/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static enum status bad_url(const char *text, const char *why, struct err *err) {
  return err_set(
      err, STATUS_USAGE, "\"%.200s\" is no address: %s (write scheme://host:port/path or host:port)", text, why);
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_scheme_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

/* Puts the scheme into out and returns what follows "://"; NULL when the scheme is malformed. */
static const char *parse_scheme(const char *text, struct url *out) {
  const char *mark = text + strcspn(text, ":/?#");
  if (strncmp(mark, "://", 3) != 0) return text;
  size_t len = (size_t)(mark - text);
  if (len == 0 || len >= sizeof out->scheme) return NULL;
  for (size_t i = 0; i < len; i++) {
    out->scheme[i] = lower(text[i]);
    if (!is_scheme_char(out->scheme[i])) return NULL;
  }
  return mark + 3;
}

static bool parse_port(const char *text, size_t len, uint16_t *port) {
  if (len == 0 || len > 5) return false;
  unsigned value = 0;
  for (size_t i = 0; i < len; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (unsigned)(text[i] - '0');
  }
  if (value == 0 || value > 65535) return false;
  *port = (uint16_t)value;
  return true;
}

static bool host_chars_good(const char *host, size_t len) {
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)host[i];
    if (c <= ' ' || c == 0x7f || strchr("@[]\\\"<>^`{|}", c)) return false;
  }
  return true;
}

/* Splits host and port; returns what is wrong, NULL when nothing is. */
static const char *parse_authority(const char *text, size_t len, struct url *out) {
  const char *end = text + len;
  const char *host = text;
  const char *host_end;
  const char *after;
  if (len && *text == '[') {
    host = text + 1;
    host_end = memchr(host, ']', (size_t)(end - host));
    if (!host_end) return "the bracket of the IPv6 address is not closed";
    after = host_end + 1;
  } else {
    host_end = memchr(text, ':', len);
    if (!host_end) host_end = end;
    after = host_end;
    if (host_end != end && memchr(host_end + 1, ':', (size_t)(end - host_end - 1))) {
      return "an IPv6 address needs brackets";
    }
  }
  size_t host_len = (size_t)(host_end - host);
  if (host_len == 0) return "the host is missing";
  if (host_len >= sizeof out->host) return "the host is too long";
  if (!host_chars_good(host, host_len)) return "the host has a character that no host name has";
  memcpy(out->host, host, host_len);
  if (after == end) return NULL;
  if (*after != ':' || !parse_port(after + 1, (size_t)(end - after - 1), &out->port)) {
    return "the port is not a number from 1 to 65535";
  }
  return NULL;
}

enum status url_parse(const char *text, struct url *out, struct err *err) {
  *out = (struct url){0};
  const char *authority = parse_scheme(text, out);
  if (!authority) return bad_url(text, "the scheme is malformed", err);
  size_t authority_len = strcspn(authority, "/?#");
  if (memchr(authority, '@', authority_len)) { /* may be a password: not repeated */
    return err_set(err, STATUS_USAGE, "an address holds no user and no password: use --user and $MUSTER_PASSWORD");
  }
  const char *wrong = parse_authority(authority, authority_len, out);
  if (wrong) return bad_url(text, wrong, err);
  const char *path = authority + authority_len;
  size_t path_len = strcspn(path, "#");
  if (path_len + 2 > sizeof out->path) return bad_url(text, "the path is too long", err);
  for (size_t i = 0; i < path_len; i++) {
    if ((unsigned char)path[i] <= ' ' || (unsigned char)path[i] >= 0x7f) {
      return bad_url(text, "the path has a blank or a character that must be percent-encoded", err);
    }
  }
  size_t at = 0;
  if (path_len && path[0] == '?') out->path[at++] = '/';
  memcpy(out->path + at, path, path_len);
  return STATUS_OK;
}

enum status address_resolve(const char *host, uint16_t port, struct address *out, struct err *err) {
  *out = (struct address){0};
  char service[8];
  snprintf(service, sizeof service, "%u", (unsigned)port);
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
  struct addrinfo *found = NULL;
  int code = getaddrinfo(host, service, &hints, &found);
  if (code != 0) {
    return err_set(err, STATUS_UNREACHABLE,
        "cannot resolve host \"%.200s\": %s; check the spelling or name the address", host, gai_strerror(code));
  }
  memcpy(&out->storage, found->ai_addr, found->ai_addrlen);
  out->len = found->ai_addrlen;
  freeaddrinfo(found);
  return STATUS_OK;
}

bool address_is_loopback(const struct address *address) {
  if (address->storage.ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->storage;
    return ntohl(in->sin_addr.s_addr) >> 24 == 127;
  }
  if (address->storage.ss_family != AF_INET6) return false;
  const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->storage;
  if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) return in6->sin6_addr.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static bool same_host(const struct sockaddr *a, const struct sockaddr *b) {
  if (!a || a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
  }
  return a->sa_family == AF_INET6 &&
         IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr);
}

bool address_is_own(const struct address *address) {
  struct ifaddrs *all = NULL;
  bool own = address_is_loopback(address);
  if (own || getifaddrs(&all) != 0) return own;
  for (const struct ifaddrs *one = all; one && !own; one = one->ifa_next)
    own = same_host(one->ifa_addr, (const struct sockaddr *)&address->storage);
  freeifaddrs(all);
  return own;
}

uint16_t address_port(const struct address *address) {
  if (address->storage.ss_family == AF_INET6) return ntohs(((const struct sockaddr_in6 *)&address->storage)->sin6_port);
  return ntohs(((const struct sockaddr_in *)&address->storage)->sin_port);
}

void address_set_port(struct address *address, uint16_t port) {
  if (address->storage.ss_family == AF_INET6) {
    ((struct sockaddr_in6 *)&address->storage)->sin6_port = htons(port);
  } else {
    ((struct sockaddr_in *)&address->storage)->sin_port = htons(port);
  }
}

void address_text(const struct address *address, char *out, size_t size) {
  char host[INET6_ADDRSTRLEN] = "?";
  if (address->storage.ss_family == AF_INET) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->storage;
    inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
    snprintf(out, size, "%s:%u", host, (unsigned)ntohs(in->sin_port));
    return;
  }
  if (address->storage.ss_family == AF_INET6) {
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->storage;
    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
    snprintf(out, size, "[%s]:%u", host, (unsigned)ntohs(in6->sin6_port));
    return;
  }
  snprintf(out, size, "?");
}
