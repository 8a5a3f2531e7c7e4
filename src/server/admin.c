#include "server/admin.h"

#include "base/rng.h"
#include "server/api.h"
#include "wire/juggle.h"
#include "wire/juggle_auth.h"

#include <stdio.h>
#include <string.h>

#define ADMIN_AUTH_FAILED 1001
#define ADMIN_PARAMETER 1002
#define ADMIN_APP_EXISTS 1006
#define ADMIN_NO_APP 1009

#define APP_KEY_MAX 20
#define APP_SECRET_LEN 16

static int32_t fail(struct rest_answer *answer, int32_t code, const char *msg) {
  answer->code = code;
  answer->msg = msg;
  return code;
}

int32_t admin_authorize(void *context, const struct rest_request *request, struct rest_answer *answer) {
  const struct admin *admin = context;
  const char *nonce = rest_header(request, "nonce");
  const char *timestamp = rest_header(request, "timestamp");
  const char *signature = rest_header(request, "signature");
  if (admin->secret && nonce && timestamp && signature) {
    char expected[41];
    juggle_signature(view_str(admin->secret), view_str(nonce), view_str(timestamp), expected);
    if (rest_secret_equal(expected, signature)) return JUGGLE_OK;
  }
  answer->http_status = 401;
  return fail(answer, ADMIN_AUTH_FAILED, "auth failed");
}

struct app_call {
  struct view app_key, app_secret, name;
  struct core_app app;
  bool created;
};

static int32_t do_create(struct core *core, void *argument) {
  struct app_call *it = argument;
  return core_app_create(core, it->app_key, it->app_secret, it->name, &it->app, &it->created);
}

static int32_t do_find(struct core *core, void *argument) {
  struct app_call *it = argument;
  return core_app_find(core, it->app_key, &it->app) ? JUGGLE_OK : ADMIN_NO_APP;
}

static json_t *app_json(const struct core_app *app) {
  return json_pack("{s:i, s:s, s:i, s:i, s:s, s:s, s:i, s:s, s:i, s:i, s:n, s:n, s:i}", "app_type", 0, "app_name",
      app->name, "created_time", 0, "updated_time", 0, "app_key", app->app_key, "app_secret", app->app_secret,
      "app_status", 0, "alias", "100000", "max_user_count", 0, "cur_user_count", 0, "restricted_fields",
      "config_fields", "expired_time", 0);
}

static void call_core(
    const struct admin *admin, int32_t (*fn)(struct core *, void *), struct app_call *it, struct rest_answer *answer) {
  if (core_call(admin->core, fn, it, &answer->code) != STATUS_OK) answer->code = JUGGLE_API_TIMEOUT;
}

static void create_from(const struct admin *admin, const json_t *body, struct rest_answer *answer) {
  struct app_call it = {.app_key = api_text(body, "app_key"), .name = api_text(body, "app_name")};
  struct view secret = api_text(body, "app_secret");
  if (secret.len == APP_SECRET_LEN) it.app_secret = secret;
  char key[17];
  if (it.app_key.len == 0) {
    uint8_t bytes[8];
    random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
      snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    it.app_key = view_str(key);
  }
  if (it.app_key.len > APP_KEY_MAX || memchr(it.app_key.data, 0, it.app_key.len)) {
    fail(answer, ADMIN_PARAMETER, "app_key is longer than 20 characters");
    return;
  }
  call_core(admin, do_create, &it, answer);
  if (answer->code != JUGGLE_OK) return;
  if (!it.created) {
    fail(answer, ADMIN_APP_EXISTS, "");
    return;
  }
  answer->data = app_json(&it.app);
}

static void apps_create(const struct admin *admin, const struct rest_request *request, struct rest_answer *answer) {
  json_t *body = json_loadb((const char *)request->body.data, request->body.len, 0, NULL);
  if (json_is_object(body)) {
    create_from(admin, body, answer);
  } else {
    fail(answer, ADMIN_PARAMETER, "the body is not a JSON object");
  }
  json_decref(body);
}

static void apps_info(const struct admin *admin, const struct rest_request *request, struct rest_answer *answer) {
  const char *app_key = rest_query(request, "app_key");
  if (!app_key) {
    fail(answer, ADMIN_PARAMETER, "app_key is missing");
    return;
  }
  struct app_call it = {.app_key = view_str(app_key)};
  call_core(admin, do_find, &it, answer);
  if (answer->code == JUGGLE_OK) answer->data = app_json(&it.app);
  if (answer->code == ADMIN_NO_APP) answer->msg = "no such app";
}

void admin_handle(void *context, const struct rest_request *request, struct rest_answer *answer) {
  const struct admin *admin = context;
  bool post = strcmp(request->method, "POST") == 0, get = strcmp(request->method, "GET") == 0;
  if (post && strcmp(request->path, "/admingateway/apps/create") == 0) {
    apps_create(admin, request, answer);
  } else if (get && strcmp(request->path, "/admingateway/apps/info") == 0) {
    apps_info(admin, request, answer);
  } else {
    answer->http_status = 404;
    fail(answer, ADMIN_PARAMETER, "no such endpoint");
  }
}
