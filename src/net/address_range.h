/* Ranges of addresses to connect from, or to. One address has at most 64,511 source ports towards one server; whoever
 * wants more connections gives more addresses. Walked by index, no list is kept. */
#ifndef MUSTER_NET_ADDRESS_RANGE_H
#define MUSTER_NET_ADDRESS_RANGE_H

#include "net/address.h"

#define ADDRESS_RANGES_MAX 32
#define ADDRESSES_MAX 65536

struct address_range {
  struct address first;
  uint32_t count;
};

struct address_ranges {
  struct address_range range[ADDRESS_RANGES_MAX];
  uint32_t ranges;
  uint32_t count; /* addresses in all; 0: the kernel chooses */
};

/* Parses "127.0.0.1-127.0.0.20,10.1.0.0/28,::1": literals, ranges and networks, all of one family. A network of IPv4
 * stands for its hosts, without the first and the last address. The error quotes what is wrong. */
enum status address_ranges_parse(const char *text, struct address_ranges *out, struct err *err);

/* 127.1.0.1 and the count - 1 behind it: any address of 127.0.0.0/8 is a local one. */
void address_ranges_loopback(struct address_ranges *out, uint32_t count);

/* Whether all of them are of this machine's loopback. */
bool address_ranges_are_loopback(const struct address_ranges *ranges);

/* The address index % count, with port 0. */
struct address address_ranges_at(const struct address_ranges *ranges, uint32_t index);

/* Whether this machine has the addresses at both ends of every range. */
enum status address_ranges_check(const struct address_ranges *ranges, struct err *err);

/* Source ports that the kernel gives out by itself, for each pair of a local address and a server. */
uint32_t address_source_ports(void);

#endif
