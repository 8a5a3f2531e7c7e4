// room: server
/* Requests of any kind to a Ricochet peer: the first byte chooses the protocol, the rest is the JSON. Whatever comes is
 * answered with one whole frame, and the store goes on. */
#include "server/ricochet_service.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ricochet_store *open_store(void) {
  char folder[] = "/tmp/muster-fuzz-XXXXXX";
  struct ricochet_store *store = NULL;
  struct err err;
  if (!mkdtemp(folder) || ricochet_store_open(&store, folder, false, &err) != STATUS_OK) abort();
  /* The files live as long as they are open, and leave nothing behind. */
  static const char *const names[] = {"ricochet.db", "ricochet.db-wal"};
  char path[64];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
  return store;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct ricochet_store *store;
  static struct ricochet_peer peer = {.id = "12D3KooWA4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeSB"};
  if (!store) store = open_store();
  if (size == 0) return 0;
  struct ricochet_service service = {.store = store};
  ricochet_limits_defaults(&service.limits);
  struct buf out = {0};
  struct view body;
  size_t used;
  enum ricochet_protocol protocol = (enum ricochet_protocol)(data[0] % RICOCHET_NOTIFY);
  ricochet_serve(&service, protocol, &peer, view_of(data + 1, size - 1), 1700000000000, &out);
  if (ricochet_read_frame(view_of(out.data, out.len), &body, &used) != RICOCHET_FRAME_OK || used != out.len) abort();
  if (ricochet_store_failed(store, NULL)) abort();
  buf_free(&out);
  return 0;
}
