/* Memory shared between the control process and its forked workers. */
#ifndef MUSTER_BASE_SHM_H
#define MUSTER_BASE_SHM_H

#include "base/err.h"

#include <stddef.h>

/* Zeroed pages that a fork shares; pages that nobody touches cost nothing. */
enum status shm_map(void **out, size_t size, struct err *err);
void shm_unmap(void *memory, size_t size);

#endif
