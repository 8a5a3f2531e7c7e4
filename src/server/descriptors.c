#include "server/descriptors.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define RESERVED 32 /* loop, listener, eventfds, standard streams, and some to spare */
#define LIMIT_MAX (UINT32_C(1) << 24)

static int by_number(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b;
}

enum status descriptors_own(const int *keep, size_t count, struct err *err) {
  int sorted[DESCRIPTORS_KEEP_MAX];
  if (count > DESCRIPTORS_KEEP_MAX) return err_set(err, STATUS_USAGE, "more than %d descriptors", DESCRIPTORS_KEEP_MAX);
  if (unshare(CLONE_FILES) != 0) {
    return err_set(err, STATUS_IO, "cannot give a thread its own table of open files: %s", strerror(errno));
  }
  memcpy(sorted, keep, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, by_number);
  unsigned next = STDERR_FILENO + 1;
  for (size_t i = 0; i < count; i++) {
    if (sorted[i] < (int)next) continue;
    if ((unsigned)sorted[i] > next) close_range(next, (unsigned)sorted[i] - 1, 0);
    next = (unsigned)sorted[i] + 1;
  }
  if (close_range(next, ~0U, 0) == 0) return STATUS_OK;
  return err_set(err, STATUS_IO, "cannot close what a thread does not own: %s", strerror(errno));
}

uint32_t descriptors_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return limit.rlim_cur > LIMIT_MAX ? LIMIT_MAX : (uint32_t)limit.rlim_cur;
}

uint32_t descriptors_connections(uint32_t limit) {
  return limit > RESERVED ? limit - RESERVED : 1;
}

uint32_t descriptors_shared(uint32_t connections) {
  return connections / 4 * 3;
}

uint32_t descriptors_gateways(uint32_t connections, uint32_t limit) {
  double room = descriptors_connections(limit);
  if (connections <= room) return 1;
  double share = room - 5 * sqrt(room);
  return (uint32_t)ceil(connections / (share > 1 ? share : 1));
}
