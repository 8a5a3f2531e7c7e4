/* The navigator (section 7.1): tells a client with a token where the WebSocket port is. */
#ifndef MUSTER_SERVER_NAVIGATOR_H
#define MUSTER_SERVER_NAVIGATOR_H

#include "server/rest.h"
#include "server/tenants.h"

struct navigator {
  struct tenants *tenants;
  char ws_address[64]; /* "127.0.0.1:9003" */
};

int32_t navigator_authorize(void *context, const struct rest_request *request, struct rest_answer *answer);
void navigator_handle(void *context, const struct rest_request *request, struct rest_answer *answer);

#endif
