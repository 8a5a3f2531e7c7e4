#include "net/address_range.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LITERAL_MAX 64

static enum status bad_range(const char *text, const char *why, struct err *err) {
  return err_set(
      err, STATUS_USAGE, "\"%.80s\" is no address: %s (write 127.0.0.1-127.0.0.20, 10.1.0.0/28 or ::1)", text, why);
}

static bool read_literal(const char *text, struct address *out) {
  *out = (struct address){0};
  struct sockaddr_in *in = (struct sockaddr_in *)&out->storage;
  struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out->storage;
  if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
    in->sin_family = AF_INET;
    out->len = sizeof *in;
    return true;
  }
  if (inet_pton(AF_INET6, text, &in6->sin6_addr) != 1) return false;
  in6->sin6_family = AF_INET6;
  out->len = sizeof *in6;
  return true;
}

static uint8_t *bytes_of(struct address *address, size_t *len) {
  if (address->storage.ss_family == AF_INET) {
    *len = 4;
    return (uint8_t *)&((struct sockaddr_in *)&address->storage)->sin_addr;
  }
  *len = 16;
  return ((struct sockaddr_in6 *)&address->storage)->sin6_addr.s6_addr;
}

static void advance(struct address *address, uint32_t by) {
  size_t len;
  uint8_t *bytes = bytes_of(address, &len);
  uint64_t carry = by;
  for (size_t i = len; i > 0 && carry > 0; i--) {
    carry += bytes[i - 1];
    bytes[i - 1] = (uint8_t)carry;
    carry >>= 8;
  }
}

/* last - first; ADDRESSES_MAX when that is more, or negative. */
static uint32_t distance(struct address *first, struct address *last) {
  size_t len;
  const uint8_t *from = bytes_of(first, &len), *to = bytes_of(last, &len);
  int64_t difference = 0;
  for (size_t i = 0; i < len; i++) {
    difference = difference * 256 + to[i] - from[i];
    if (difference > ADDRESSES_MAX || difference < -ADDRESSES_MAX) return ADDRESSES_MAX;
  }
  return difference < 0 || difference > ADDRESSES_MAX ? ADDRESSES_MAX : (uint32_t)difference;
}

static enum status parse_span(
    const char *text, const char *from, const char *to, struct address_range *out, struct err *err) {
  struct address last;
  if (!read_literal(from, &out->first) || !read_literal(to, &last)) {
    return bad_range(text, "a range has an address at each end", err);
  }
  if (out->first.storage.ss_family != last.storage.ss_family) {
    return bad_range(text, "both ends must be of one family", err);
  }
  out->count = distance(&out->first, &last) + 1;
  if (out->count <= ADDRESSES_MAX) return STATUS_OK;
  return bad_range(text, "the range is empty, or longer than 65536 addresses", err);
}

static enum status parse_network(
    const char *text, const char *base, const char *length, struct address_range *out, struct err *err) {
  if (!read_literal(base, &out->first)) return bad_range(text, "the network has no address", err);
  size_t len;
  uint8_t *bytes = bytes_of(&out->first, &len);
  char *end;
  unsigned long prefix = strtoul(length, &end, 10);
  bool whole = length[0] >= '0' && length[0] <= '9' && *end == '\0';
  if (!whole || prefix > len * 8) return bad_range(text, "the length of the network is wrong", err);
  unsigned host_bits = (unsigned)(len * 8 - prefix);
  if (host_bits > 16) return bad_range(text, "the network is larger than 65536 addresses", err);
  for (unsigned bit = 0; bit < host_bits; bit++)
    bytes[len - 1 - bit / 8] &= (uint8_t) ~(1U << bit % 8);
  out->count = UINT32_C(1) << host_bits;
  if (len != 4 || host_bits < 2) return STATUS_OK;
  advance(&out->first, 1);
  out->count -= 2;
  return STATUS_OK;
}

static enum status parse_one(char *text, struct address_range *out, struct err *err) {
  char whole[LITERAL_MAX * 2];
  snprintf(whole, sizeof whole, "%s", text);
  char *dash = strchr(text, '-'), *slash = strchr(text, '/');
  if (dash) {
    *dash = '\0';
    return parse_span(whole, text, dash + 1, out, err);
  }
  if (slash) {
    *slash = '\0';
    return parse_network(whole, text, slash + 1, out, err);
  }
  out->count = 1;
  return read_literal(text, &out->first) ? STATUS_OK : bad_range(whole, "it is no address in digits", err);
}

enum status address_ranges_parse(const char *text, struct address_ranges *out, struct err *err) {
  *out = (struct address_ranges){0};
  for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    char one[LITERAL_MAX * 2];
    size_t len = strcspn(at, ",");
    if (len >= sizeof one) return bad_range(at, "it is too long", err);
    memcpy(one, at, len);
    one[len] = '\0';
    if (out->ranges == ADDRESS_RANGES_MAX) return bad_range(at, "there are more than 32 ranges", err);
    struct address_range *range = &out->range[out->ranges];
    enum status status = parse_one(one, range, err);
    if (status != STATUS_OK) return status;
    if (range->first.storage.ss_family != out->range[0].first.storage.ss_family) {
      return bad_range(at, "IPv4 and IPv6 do not mix", err);
    }
    out->ranges++;
    out->count += range->count;
    if (out->count > ADDRESSES_MAX) return bad_range(at, "there are more than 65536 addresses", err);
  }
  return STATUS_OK;
}

void address_ranges_loopback(struct address_ranges *out, uint32_t count) {
  *out = (struct address_ranges){.ranges = 1, .count = count};
  read_literal("127.1.0.1", &out->range[0].first);
  out->range[0].count = count;
}

/* The loopback network of IPv4 has no holes, and IPv6 has one address of it. */
bool address_ranges_are_loopback(const struct address_ranges *ranges) {
  for (uint32_t i = 0; i < ranges->ranges; i++) {
    struct address last = ranges->range[i].first;
    advance(&last, ranges->range[i].count - 1);
    if (!address_is_loopback(&ranges->range[i].first) || !address_is_loopback(&last)) return false;
  }
  return true;
}

struct address address_ranges_at(const struct address_ranges *ranges, uint32_t index) {
  uint32_t at = index % ranges->count, range = 0;
  while (at >= ranges->range[range].count)
    at -= ranges->range[range++].count;
  struct address address = ranges->range[range].first;
  advance(&address, at);
  return address;
}

static enum status check_address(const struct address *address, struct err *err) {
  int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return err_set(err, STATUS_IO, "cannot open a socket: %s", strerror(errno));
  int failed = bind(fd, (const struct sockaddr *)&address->storage, address->len);
  int error = errno;
  close(fd);
  if (failed == 0) return STATUS_OK;
  char text[64];
  address_text(address, text, sizeof text);
  return err_set(err, STATUS_USAGE, "cannot connect from %.*s: %s%s", (int)(strrchr(text, ':') - text), text,
      strerror(error), error == EADDRNOTAVAIL ? "; add it to an interface (ip address add)" : "");
}

enum status address_ranges_check(const struct address_ranges *ranges, struct err *err) {
  for (uint32_t i = 0; i < ranges->ranges; i++) {
    struct address last = ranges->range[i].first;
    enum status status = check_address(&last, err);
    advance(&last, ranges->range[i].count - 1);
    if (status == STATUS_OK) status = check_address(&last, err);
    if (status != STATUS_OK) return status;
  }
  return STATUS_OK;
}

uint32_t address_source_ports(void) {
  unsigned low = 32768, high = 60999;
  FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
  if (file) {
    if (fscanf(file, "%u %u", &low, &high) != 2) high = 60999; /* NOLINT(cert-err34-c): the kernel's own numbers */
    fclose(file);
  }
  return high >= low ? high - low + 1 : 0;
}
