/* Addresses and URLs. */
#ifndef MUSTER_NET_ADDRESS_H
#define MUSTER_NET_ADDRESS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct url {
  char scheme[16]; /* lower case */
  char host[256];  /* without the brackets of an IPv6 literal */
  uint16_t port;   /* 0: none was given */
  char path[512];  /* with the query; "" when none was given */
};

/* "scheme://host:port/path" and "host:port" (scheme ""). The error quotes what is wrong. */
enum status url_parse(const char *text, struct url *out, struct err *err);

struct address {
  struct sockaddr_storage storage;
  socklen_t len;
};

/* Resolves a name or literal (blocking: set-up only). */
enum status address_resolve(const char *host, uint16_t port, struct address *out, struct err *err);
bool address_is_loopback(const struct address *address);
/* Whether it is one of this machine: loopback, or of one of its interfaces. */
bool address_is_own(const struct address *address);
uint16_t address_port(const struct address *address);
void address_set_port(struct address *address, uint16_t port);
/* "127.0.0.1:9003" or "[::1]:9003"; out of at least 64 bytes. */
void address_text(const struct address *address, char *out, size_t size);

#endif
