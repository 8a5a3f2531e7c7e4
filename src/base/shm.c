#include "base/shm.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum status shm_map(void **out, size_t size, struct err *err) {
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return err_set(err, STATUS_MEMORY, "cannot map %zu bytes of shared memory: %s", size, strerror(errno));
  }
  *out = memory;
  return STATUS_OK;
}

void shm_unmap(void *memory, size_t size) {
  if (memory) munmap(memory, size);
}
