/* Names of subjects and channels, put together piece by piece; they are not NUL-terminated. */
#ifndef MUSTER_DRIVER_NAME_H
#define MUSTER_DRIVER_NAME_H

#include "base/put.h"
#include "driver/driver.h"

/* Each writes at out + at and returns the position behind it. */
static inline size_t name_text(char *out, size_t at, struct view text) {
  return (size_t)((char *)put_view((uint8_t *)out + at, text) - out);
}

static inline size_t name_number(char *out, size_t at, uint32_t number) {
  return (size_t)((char *)put_number((uint8_t *)out + at, number) - out);
}

/* "<prefix><kind>" and "<prefix><kind><number>". */
static inline struct view name_whole(char *out, const char *prefix, const char *kind) {
  return view_of(out, name_text(out, name_text(out, 0, view_str(prefix)), view_str(kind)));
}

static inline struct view name_numbered(char *out, const char *prefix, const char *kind, uint32_t number) {
  return view_of(out, name_number(out, name_whole(out, prefix, kind).len, number));
}

/* The same plan of names in every protocol that has no shorter one: ".client.<n>" is a client's own, ".group.<n>" a
 * group's, ".queue.<n>" a queue's, ".room" and ".all" the others'. Where a publish goes, and the i-th name that a
 * client hears. */
struct view name_of_destination(
    char *out, const char *prefix, const struct client *client, const struct publish *publish);
struct view name_of_subscription(char *out, const char *prefix, const struct client *client, uint32_t i);

/* How many names a client hears. */
uint32_t name_subscriptions(const struct driver_settings *settings);

#endif
