/* A cache of the tenants for the API threads, so that checking a signature does not have to ask the core. A tenant's
 * secrets never change. */
#ifndef MUSTER_SERVER_TENANTS_H
#define MUSTER_SERVER_TENANTS_H

#include "server/core.h"

#include <pthread.h>

#define TENANTS_MAX 256

struct tenants {
  struct core *core;
  pthread_mutex_t lock;
  uint32_t count;
  struct core_app app[TENANTS_MAX]; /* the oldest is overwritten when it is full */
};

void tenants_init(struct tenants *tenants, struct core *core);
void tenants_free(struct tenants *tenants);
/* JUGGLE_API_NO_APP: there is none; JUGGLE_API_TIMEOUT: the core does not answer. */
int32_t tenants_find(struct tenants *tenants, const char *app_key, struct core_app *out);

#endif
