#include "server/api.h"

#include "server/exposition.h"

#include "wire/juggle.h"
#include "wire/juggle_auth.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX "/apigateway"
/* A body's values cost far more memory than its text ("[]," takes three bytes of it), and time on the core. */
#define BODY_VALUES_MAX (1u << 16)

static bool is_path(const struct rest_request *request, const char *path) {
  return strcmp(request->path, path) == 0;
}

/* ---- For whoever watches ---- */

static void out_of_memory(struct rest_answer *answer) {
  answer->text = "{\"error\":\"out of memory\"}";
  answer->http_status = 500;
}

static void give_json(const struct api *api, struct rest_answer *answer) {
  answer->page = metrics_json(api->metrics);
  if (!answer->page) out_of_memory(answer);
}

/* Prometheus names the formats that it takes; who names none gets OpenMetrics. */
static void give_metrics(const struct api *api, const struct rest_request *request, struct rest_answer *answer) {
  const char *accept = rest_header(request, "Accept");
  bool wants_open = !accept || strstr(accept, "openmetrics");
  if (!wants_open && strstr(accept, "application/json")) {
    give_json(api, answer);
    return;
  }
  enum exposition format = !wants_open && strstr(accept, "text/plain") ? EXPOSITION_TEXT : EXPOSITION_OPENMETRICS;
  answer->page = exposition_page(api->metrics, format);
  answer->type = exposition_content_type(format);
  if (answer->page) return;
  answer->type = NULL;
  out_of_memory(answer);
}

static void give_health(const struct api *api, struct rest_answer *answer) {
  bool failed = core_failed(api->core, NULL);
  answer->text = failed ? "{\"status\":\"the store failed\"}" : "{\"status\":\"ok\"}";
  answer->http_status = failed ? 503 : 200;
}

static bool is_unsigned(const struct rest_request *request) {
  static const char *const paths[] = {"/", "/metrics", "/metrics.json", "/health"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    if (is_path(request, paths[i]) && (i == 0 || strcmp(request->method, "GET") == 0)) return true;
  }
  return false;
}

static void handle_unsigned(const struct api *api, const struct rest_request *request, struct rest_answer *answer) {
  if (is_path(request, "/metrics")) {
    give_metrics(api, request, answer);
  } else if (is_path(request, "/metrics.json")) {
    give_json(api, answer);
  } else if (is_path(request, "/health")) {
    give_health(api, answer);
  } else {
    answer->text = "\"ok-ok\"";
  }
}

/* ---- Signed calls ---- */

int32_t api_authorize(void *context, const struct rest_request *request, struct rest_answer *answer) {
  (void)answer;
  if (is_unsigned(request)) return JUGGLE_OK;
  struct api *api = context;
  const char *app_key = rest_header(request, "appkey");
  const char *nonce = rest_header(request, "nonce");
  const char *timestamp = rest_header(request, "timestamp");
  const char *signature = rest_header(request, "signature");
  if (!app_key) return JUGGLE_API_NO_APPKEY;
  if (!nonce) return JUGGLE_API_NO_NONCE;
  if (!timestamp) return JUGGLE_API_NO_TIMESTAMP;
  if (!signature) return JUGGLE_API_NO_SIGNATURE;
  struct core_app app;
  int32_t code = tenants_find(api->tenants, app_key, &app);
  if (code != JUGGLE_OK) return code;
  char expected[41];
  juggle_signature(view_str(app.app_secret), view_str(nonce), view_str(timestamp), expected);
  return rest_secret_equal(expected, signature) ? JUGGLE_OK : JUGGLE_API_BAD_SIGNATURE;
}

struct view api_text(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  return json_is_string(value) ? view_of(json_string_value(value), json_string_length(value)) : (struct view){0};
}

bool api_bool(const json_t *object, const char *name, bool otherwise) {
  const json_t *value = json_object_get(object, name);
  return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

bool api_texts(const json_t *object, const char *name, struct view **out, uint32_t *count) {
  const json_t *array = json_object_get(object, name);
  size_t size = json_array_size(array);
  *out = NULL;
  *count = 0;
  if (size == 0) return true;
  struct view *texts = calloc(size, sizeof *texts);
  if (!texts) return false;
  for (size_t i = 0; i < size; i++) {
    const json_t *item = json_array_get(array, i);
    if (json_string_length(item) == 0) continue;
    texts[(*count)++] = view_of(json_string_value(item), json_string_length(item));
  }
  *out = texts;
  return true;
}

json_t *api_json(struct view text) {
  return json_stringn(text.len ? (const char *)text.data : "", text.len);
}

void api_on_core(struct api_call *call, int32_t (*fn)(struct core *core, void *argument), void *argument) {
  if (core_call(call->core, fn, argument, &call->code) != STATUS_OK) call->code = JUGGLE_API_TIMEOUT;
}

static const struct api_endpoint *find_in(
    const struct api_endpoint *endpoint, const struct rest_request *request, const char *path) {
  for (; endpoint->path; endpoint++) {
    if (strcmp(endpoint->path, path) == 0 && strcmp(endpoint->method, request->method) == 0) return endpoint;
  }
  return NULL;
}

static const struct api_endpoint *find(const struct rest_request *request) {
  if (strncmp(request->path, PREFIX, strlen(PREFIX)) != 0) return NULL;
  const char *path = request->path + strlen(PREFIX);
  const struct api_endpoint *endpoint = find_in(api_user_endpoints, request, path);
  if (!endpoint) endpoint = find_in(api_group_endpoints, request, path);
  if (!endpoint) endpoint = find_in(api_message_endpoints, request, path);
  if (!endpoint) endpoint = find_in(api_chatroom_endpoints, request, path);
  return endpoint;
}

/* True when a JSON text has no more than BODY_VALUES_MAX values; texts with commas in them count as one. */
static bool is_modest(struct view text) {
  uint32_t values = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.len; i++) {
    uint8_t c = text.data[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') i++;
      continue;
    }
    if ((c == ',' || c == '[' || c == '{') && ++values > BODY_VALUES_MAX) return false;
  }
  return true;
}

static json_t *read_body(struct view text) {
  return is_modest(text) ? json_loadb((const char *)text.data, text.len, 0, NULL) : NULL;
}

static void run(struct api_call *call, const struct api_endpoint *endpoint) {
  if (strcmp(endpoint->method, "POST") == 0) {
    call->body = read_body(call->request->body);
    if (!json_is_object(call->body)) call->code = JUGGLE_API_BAD_BODY;
  }
  if (call->code == JUGGLE_OK) endpoint->handle(call);
  json_decref(call->body);
}

void api_handle(void *context, const struct rest_request *request, struct rest_answer *answer) {
  struct api *api = context;
  if (is_unsigned(request)) {
    handle_unsigned(api, request, answer);
    return;
  }
  const struct api_endpoint *endpoint = find(request);
  if (!endpoint) {
    answer->code = JUGGLE_API_BAD_PARAMETER;
    answer->msg = "no such endpoint";
    answer->http_status = 404;
    return;
  }
  struct api_call call = {.core = api->core, .app_key = view_str(rest_header(request, "appkey")), .request = request};
  run(&call, endpoint);
  answer->code = call.code;
  answer->data = call.data;
}
