/* Settings of a target that stand in its URL: "nats://host:4222/?headers=on&replicas=3". */
#ifndef MUSTER_DRIVER_QUERY_H
#define MUSTER_DRIVER_QUERY_H

#include "base/err.h"
#include "net/address.h"

struct query_choice {
  const char *name;
  const char *values; /* separated by '|'; the first is the default */
};

/* Checks that the path is nothing but a query of these settings, each at most once; STATUS_USAGE with one line.
 * choices ends with a name of NULL. chosen[i] becomes the number of the value. */
enum status query_read(const struct url *url, const struct query_choice *choices, unsigned *chosen, struct err *err);

#endif
