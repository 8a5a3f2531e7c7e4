#include "server/doors.h"

#include "net/address_range.h"

#include <stddef.h>
#include <string.h>

static bool is_listed(const struct door_addresses *addresses, const struct address *address) {
  for (uint32_t i = 0; i < addresses->count; i++) {
    const struct address *known = &addresses->address[i];
    if (known->len == address->len && memcmp(&known->storage, &address->storage, known->len) == 0) return true;
  }
  return false;
}

enum status door_addresses_read(
    const char *host, const char *more, uint16_t port, struct door_addresses *out, struct err *err) {
  struct address_ranges ranges = {0};
  *out = (struct door_addresses){.count = 1};
  enum status status = address_resolve(host, port, &out->address[0], err);
  if (status == STATUS_OK && more) status = address_ranges_parse(more, &ranges, err);
  if (status != STATUS_OK) return status;
  for (uint32_t i = 0; i < ranges.count; i++) {
    struct address address = address_ranges_at(&ranges, i);
    address_set_port(&address, port);
    if (is_listed(out, &address)) continue;
    if (out->count == DOORS_MAX) {
      return err_set(err, STATUS_USAGE, "%.80s: more than the %d addresses that a server listens on", more, DOORS_MAX);
    }
    out->address[out->count++] = address;
  }
  return STATUS_OK;
}

static void accepted(struct listener *listener, int fd, const struct address *peer) {
  (void)peer;
  struct doors *doors = ((struct door *)((char *)listener - offsetof(struct door, listener)))->doors;
  doors->accepted(doors, fd);
}

enum status doors_open(
    struct doors *doors, struct loop *loop, struct door_addresses *addresses, bool joins, struct err *err) {
  for (uint32_t i = 0; i < addresses->count; i++) {
    struct door *door = &doors->door[i];
    door->doors = doors;
    door->listener.accepted = accepted;
    door->listener.joins = joins;
    if (i > 0) address_set_port(&addresses->address[i], address_port(&addresses->address[0]));
    enum status status = listener_open(&door->listener, loop, &addresses->address[i], err);
    if (status != STATUS_OK) return status;
    doors->open++;
  }
  return STATUS_OK;
}

void doors_close(struct doors *doors) {
  while (doors->open > 0)
    listener_close(&doors->door[--doors->open].listener);
}
