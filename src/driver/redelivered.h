/* What a server sends and says that it has sent before: the ledger knows only whether it had arrived. */
#ifndef MUSTER_DRIVER_REDELIVERED_H
#define MUSTER_DRIVER_REDELIVERED_H

#include "driver/driver.h"

/* counter: its place in run->counted, which holds what belongs to the measure phase. */
static inline void count_redelivered(struct client *client, struct view content, int counter) {
  struct payload payload;
  enum payload_result result = payload_read(client->run->driver->payload_form, content.data, content.len, &payload);
  bool ours = result == PAYLOAD_OK && payload.run_id == client->run->settings.run_id;
  if (ours && payload.phase == PAYLOAD_MEASURE) client->run->counted[counter]++;
}

#endif
