/* How the handlers of a driver give up: each returns false once it has failed the client, so that its callers do no
 * more. */
#ifndef MUSTER_DRIVER_FAIL_H
#define MUSTER_DRIVER_FAIL_H

#include "driver/driver.h"

static inline bool fail(struct client *client, int32_t code) {
  client->hooks->failed(client, code);
  return false;
}

/* written: what the writing came to, false when memory is out or the stream is over. */
static inline bool check_written(struct client *client, bool written) {
  return written || fail(client, CAUSE_RESET);
}

#endif
