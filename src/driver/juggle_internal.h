/* What the two halves of the JuggleIM driver share: the population that the set-up calls provision (juggle_api.c) and
 * that the connections use (juggle.c). */
#ifndef MUSTER_DRIVER_JUGGLE_INTERNAL_H
#define MUSTER_DRIVER_JUGGLE_INTERNAL_H

#include "driver/driver.h"

#define JUGGLE_ID_MAX 32 /* a server's column is no wider */

struct juggle_population {
  char prefix[JUGGLE_ID_MAX + 1]; /* of every user id: "muster-<8 hex digits of the run>-" */
  size_t prefix_len;
  char group_prefix[JUGGLE_ID_MAX + 1]; /* of every group id */
  char room_id[JUGGLE_ID_MAX + 1];      /* "" without a chatroom */
  const char **tokens;                  /* one per client, in the run's arena */
};

/* Writes the user id of a client, not NUL-terminated; returns its length. */
size_t juggle_user_id(const struct juggle_population *population, uint32_t index, char out[JUGGLE_ID_MAX]);
/* The same for a group. */
size_t juggle_group_id(const struct juggle_population *population, uint32_t index, char out[JUGGLE_ID_MAX]);

/* driver.prepare. */
enum status juggle_prepare(struct driver_run *run, struct err *err);

#endif
