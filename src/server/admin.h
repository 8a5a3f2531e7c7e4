/* The admin API (section 7.2): create and look up tenants. Every call must be signed with the admin secret; there is no
 * built-in account and no login. */
#ifndef MUSTER_SERVER_ADMIN_H
#define MUSTER_SERVER_ADMIN_H

#include "server/core.h"
#include "server/rest.h"

struct admin {
  struct core *core;
  const char *secret; /* NULL: every call is refused */
};

int32_t admin_authorize(void *context, const struct rest_request *request, struct rest_answer *answer);
void admin_handle(void *context, const struct rest_request *request, struct rest_answer *answer);

#endif
