/* The server API (section 6): signed HTTP calls that become calls of the core; and, unsigned, for whoever watches the
 * server: GET /metrics (OpenMetrics), /metrics.json and /health. */
#ifndef MUSTER_SERVER_API_H
#define MUSTER_SERVER_API_H

#include "server/core.h"
#include "server/metrics.h"
#include "server/rest.h"
#include "server/tenants.h"

struct api {
  struct core *core;
  struct tenants *tenants;
  const struct metrics_source *metrics;
};

int32_t api_authorize(void *context, const struct rest_request *request, struct rest_answer *answer);
void api_handle(void *context, const struct rest_request *request, struct rest_answer *answer);

/* One call on its way: the endpoints (api_users.c, api_groups.c, api_messages.c, api_chatrooms.c) fill in code and
 * data. */
struct api_call {
  struct core *core;
  struct view app_key;
  const struct rest_request *request;
  json_t *body; /* of a POST: always an object */
  int32_t code;
  json_t *data; /* owned; taken over by the answer */
};

struct api_endpoint {
  const char *method, *path; /* path behind /apigateway */
  void (*handle)(struct api_call *call);
};
extern const struct api_endpoint api_user_endpoints[], api_group_endpoints[], api_message_endpoints[],
    api_chatroom_endpoints[];

/* Runs fn on the core thread with the call as its argument and stores the code. */
void api_on_core(struct api_call *call, int32_t (*fn)(struct core *core, void *argument), void *argument);
/* A text member of the body, {NULL, 0} when it is absent or not a text; likewise a bool and an integer. */
struct view api_text(const json_t *object, const char *name);
bool api_bool(const json_t *object, const char *name, bool otherwise);
/* The texts of an array; *out is owned by the caller (free), NULL when there are none. False: out of memory. */
bool api_texts(const json_t *object, const char *name, struct view **out, uint32_t *count);
json_t *api_json(struct view text);

#endif
