#include "server/navigator.h"

#include "wire/juggle.h"
#include "wire/juggle_auth.h"

#include <string.h>

int32_t navigator_authorize(void *context, const struct rest_request *request, struct rest_answer *answer) {
  (void)context;
  (void)request;
  (void)answer;
  return JUGGLE_OK;
}

/* The tenant and user of the headers, or a code. */
static int32_t read_token(struct navigator *navigator, const struct rest_request *request, struct juggle_token *token) {
  const char *app_key = rest_header(request, "x-appkey"), *text = rest_header(request, "x-token");
  char token_app_key[64];
  if (!text || juggle_token_app_key(view_str(text), token_app_key, sizeof token_app_key, NULL) != STATUS_OK) {
    return JUGGLE_TOKEN_ILLEGAL;
  }
  if (!app_key || strcmp(app_key, token_app_key) != 0) return JUGGLE_TOKEN_BAD;
  struct core_app app;
  int32_t code = tenants_find(navigator->tenants, app_key, &app);
  if (code == JUGGLE_API_NO_APP) return JUGGLE_APP_UNKNOWN;
  if (code != JUGGLE_OK) return code;
  if (juggle_token_read(view_str(text), app.secure_key, token, NULL) != STATUS_OK) return JUGGLE_TOKEN_BAD;
  return token->user_id[0] ? JUGGLE_OK : JUGGLE_TOKEN_BAD;
}

static void general(struct navigator *navigator, const struct rest_request *request, struct rest_answer *answer) {
  struct juggle_token token;
  answer->code = read_token(navigator, request, &token);
  if (answer->code != JUGGLE_OK) return;
  answer->data = json_pack(
      "{s:s, s:s, s:[s]}", "app_key", token.app_key, "user_id", token.user_id, "servers", navigator->ws_address);
}

void navigator_handle(void *context, const struct rest_request *request, struct rest_answer *answer) {
  bool get = strcmp(request->method, "GET") == 0;
  if (get && strcmp(request->path, "/") == 0) {
    answer->text = "\"ok\"";
  } else if (get && strcmp(request->path, "/navigator/general") == 0) {
    general(context, request, answer);
  } else {
    answer->http_status = 404;
    answer->code = JUGGLE_API_BAD_PARAMETER;
    answer->msg = "no such endpoint";
  }
}
