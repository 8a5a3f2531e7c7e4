/* The server API, the admin API and the navigator of a running musterd. */
#include "support/test_client.h"

#include <jansson.h>
#include <signal.h>
#include <sys/resource.h>

static struct test_server server;

static int start(void **state) {
  (void)state;
  test_server_prepare(&server);
  test_server_start(&server);
  return 0;
}

static int stop(void **state) {
  (void)state;
  test_server_remove(&server);
  return 0;
}

/* The answer's JSON, owned by the caller. */
static json_t *parse(char *text) {
  const char *body = strstr(text, "\r\n\r\n");
  assert_non_null(body);
  json_t *root = json_loads(body + 4, JSON_DECODE_ANY, NULL);
  if (!root) fail_msg("no JSON: %s", text);
  free(text);
  return root;
}

static void expect_code(char *text, int status, int expected_status, json_int_t code) {
  json_t *root = parse(text);
  assert_int_equal(json_integer_value(json_object_get(root, "code")), code);
  assert_int_equal(status, expected_status);
  assert_true(json_is_string(json_object_get(root, "msg")));
  json_decref(root);
}

static void post_expect(const char *path, const char *body, int expected_status, json_int_t code) {
  int status;
  char *text = test_api(&server, "POST", path, body, &status);
  expect_code(text, status, expected_status, code);
}

static void get_expect(const char *path, int expected_status, json_int_t code) {
  int status;
  char *text = test_api(&server, "GET", path, NULL, &status);
  expect_code(text, status, expected_status, code);
}

/* The data of a successful call, owned by the caller. */
static json_t *data_of(const char *method, const char *path, const char *body) {
  int status;
  json_t *root = parse(test_api(&server, method, path, body, &status));
  assert_int_equal(status, 200);
  assert_int_equal(json_integer_value(json_object_get(root, "code")), 0);
  assert_string_equal(json_string_value(json_object_get(root, "msg")), "success");
  json_t *data = json_incref(json_object_get(root, "data"));
  json_decref(root);
  return data;
}

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  assert_non_null(text);
  return text;
}

static void headers_are_checked_in_order(void **state) {
  (void)state;
  static const struct {
    const char *headers;
    int status;
    json_int_t code;
  } cases[] = {
      {"", 400, JUGGLE_API_NO_APPKEY},
      {"appkey: benchapp\r\n", 400, JUGGLE_API_NO_NONCE},
      {"appkey: benchapp\r\nnonce: n\r\n", 400, JUGGLE_API_NO_TIMESTAMP},
      {"appkey: benchapp\r\nnonce: n\r\ntimestamp: 1\r\n", 400, JUGGLE_API_NO_SIGNATURE},
      {"appkey: nobody\r\nnonce: n\r\ntimestamp: 1\r\nsignature: x\r\n", 500, JUGGLE_API_NO_APP},
      {"appkey: benchapp\r\nnonce: n\r\ntimestamp: 1\r\nsignature: x\r\n", 403, JUGGLE_API_BAD_SIGNATURE},
      /* Right for another nonce. */
      {"appkey: benchapp\r\nnonce: n\r\ntimestamp: 1\r\nsignature: 1573c44ab2a13ae97021ea5a27f3625462013ade\r\n", 403,
          JUGGLE_API_BAD_SIGNATURE},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int status;
    char *text = test_http(server.config.api_port, "POST", "/apigateway/users/register", cases[i].headers,
        "{\"user_id\":\"alice\"}", &status);
    assert_non_null(strstr(text, "request-id: api_"));
    expect_code(text, status, cases[i].status, cases[i].code);
  }
  /* The fact sheet's worked example is accepted. */
  int status;
  char *text = test_http(server.config.api_port, "POST", "/apigateway/users/register",
      "appkey: benchapp\r\nnonce: a1b2c3d4e5f60718293a4b5c\r\ntimestamp: 1700000000000\r\n"
      "signature: 1573c44ab2a13ae97021ea5a27f3625462013ade\r\n",
      "{\"user_id\":\"alice\"}", &status);
  expect_code(text, status, 200, 0);
}

static void bodies_are_checked(void **state) {
  (void)state;
  post_expect("/apigateway/users/register", "not json", 400, JUGGLE_API_BAD_BODY);
  post_expect("/apigateway/users/register", "[]", 400, JUGGLE_API_BAD_BODY);
  post_expect("/apigateway/users/register", "{}", 400, JUGGLE_API_BAD_BODY);
  post_expect("/apigateway/users/register", "{\"user_id\":7}", 400, JUGGLE_API_BAD_BODY);
  post_expect("/apigateway/nothing", "{}", 404, JUGGLE_API_BAD_PARAMETER);
  get_expect("/apigateway/users/register", 404, JUGGLE_API_BAD_PARAMETER);
  size_t size = 9 * 1024 * 1024;
  char *large = malloc(size + 1);
  assert_non_null(large);
  memset(large, ' ', size);
  large[size] = '\0';
  post_expect("/apigateway/users/register", large, 413, JUGGLE_API_BAD_BODY);
  free(large);
}

/* {"user_ids":[text,text,...]}, owned by the caller. */
static char *many_texts(size_t count, const char *text) {
  size_t each = strlen(text) + 3;
  char *body = malloc(64 + count * each);
  char *at = body + sprintf(body, "{\"user_ids\":[");
  for (size_t i = 0; i < count; i++)
    at += sprintf(at, "\"%s\",", text);
  strcpy(at - 1, "]}");
  return body;
}

/* Each value costs the server memory and time, of which a body of the size allowed could ask too much. */
static void bodies_with_too_many_values_are_refused(void **state) {
  (void)state;
  char *body = many_texts(70000, "u");
  post_expect("/apigateway/users/onlinestatus/query", body, 400, 10007);
  free(body);
  body = many_texts(10001, "u");
  post_expect("/apigateway/users/onlinestatus/query", body, 200, 10011);
  free(body);
  body = many_texts(10000, "u,[{\\\",");
  post_expect("/apigateway/users/onlinestatus/query", body, 200, 0);
  free(body);
}

static void root_needs_no_signature(void **state) {
  (void)state;
  int status;
  json_t *root = parse(test_http(server.config.api_port, "GET", "/", NULL, NULL, &status));
  assert_int_equal(status, 200);
  assert_string_equal(json_string_value(root), "ok-ok");
  json_decref(root);
}

static void users_are_kept(void **state) {
  (void)state;
  json_t *data = data_of("POST", "/apigateway/users/register",
      "{\"user_id\":\"alice\",\"nickname\":\"Alice \\u00e9\",\"user_portrait\":\"p\",\"ext_fields\":{\"k\":\"v\"},"
      "\"unknown\":1}");
  assert_string_equal(text_of(data, "user_id"), "alice");
  char app_key[64];
  assert_int_equal(juggle_token_app_key(view_str(text_of(data, "token")), app_key, sizeof app_key, NULL), STATUS_OK);
  assert_string_equal(app_key, TEST_APP);
  json_decref(data);
  data = data_of("GET", "/apigateway/users/info?user_id=alice", NULL);
  assert_string_equal(text_of(data, "nickname"), "Alice \xc3\xa9");
  assert_string_equal(text_of(data, "user_portrait"), "p");
  assert_string_equal(text_of(json_object_get(data, "ext_fields"), "k"), "v");
  assert_true(json_integer_value(json_object_get(data, "updated_time")) > 0);
  json_decref(data);
  test_api_ok(&server, "/apigateway/users/update", "{\"user_id\":\"alice\",\"nickname\":\"New\"}");
  data = data_of("GET", "/apigateway/users/info?user_id=alice", NULL);
  assert_string_equal(text_of(data, "nickname"), "New");
  json_decref(data);
  get_expect("/apigateway/users/info", 400, JUGGLE_API_NO_PARAMETER);
  get_expect("/apigateway/users/info?user_id=nobody", 200, JUGGLE_USER_UNKNOWN);
}

static void presence_follows_sessions(void **state) {
  (void)state;
  post_expect("/apigateway/users/onlinestatus/query", "{\"user_ids\":[]}", 400, JUGGLE_API_NO_PARAMETER);
  struct test_client c;
  test_login_as(&c, &server, "alice", true);
  json_t *data = data_of("POST", "/apigateway/users/onlinestatus/query", "{\"user_ids\":[\"alice\",\"bob\"]}");
  json_t *items = json_object_get(data, "items");
  assert_int_equal(json_array_size(items), 2);
  for (size_t i = 0; i < 2; i++) {
    json_t *item = json_array_get(items, i);
    bool alice = strcmp(text_of(item, "user_id"), "alice") == 0;
    assert_int_equal(json_is_true(json_object_get(item, "is_online")), alice);
  }
  json_decref(data);
  test_close(&c);
}

static void groups_are_kept(void **state) {
  (void)state;
  post_expect("/apigateway/groups/add", "{\"group_id\":\"g\"}", 400, JUGGLE_API_NO_PARAMETER);
  post_expect("/apigateway/groups/add", "{\"group_name\":\"G\"}", 400, JUGGLE_API_BAD_BODY);
  char body[8192] = "{\"group_id\":\"g\",\"group_name\":\"G\",\"member_ids\":[";
  for (int i = 0; i < 150; i++)
    snprintf(body + strlen(body), sizeof body - strlen(body), "%s\"m%d\"", i ? "," : "", i);
  strcat(body, "]}");
  test_api_ok(&server, "/apigateway/groups/add", body);
  char path[256] = "/apigateway/groups/members/query?group_id=g", offset[128];
  size_t members = 0;
  for (int page = 0; page < 3; page++) {
    json_t *data = data_of("GET", path, NULL), *items = json_object_get(data, "items");
    members += json_array_size(items);
    snprintf(offset, sizeof offset, "%s", text_of(data, "offset"));
    snprintf(path, sizeof path, "/apigateway/groups/members/query?group_id=g&limit=100&offset=%s", offset);
    bool last = json_array_size(items) < 100;
    if (!last) assert_true(strlen(offset) > 0);
    json_decref(data);
    if (last) break;
  }
  assert_int_equal(members, 150);
  test_api_ok(&server, "/apigateway/groups/members/del", "{\"group_id\":\"g\",\"member_ids\":[\"m0\",\"m1\"]}");
  json_t *data = data_of("POST", "/apigateway/groups/members/querybyids",
      "{\"group_id\":\"g\",\"member_ids\":[\"m0\",\"m2\",\"nobody\"]}");
  assert_int_equal(json_array_size(json_object_get(data, "items")), 1);
  assert_string_equal(text_of(json_array_get(json_object_get(data, "items"), 0), "member_id"), "m2");
  json_decref(data);
  test_api_ok(&server, "/apigateway/groups/update", "{\"group_id\":\"g\",\"group_name\":\"New\"}");
  data = data_of("GET", "/apigateway/groups/info?group_id=g", NULL);
  assert_string_equal(text_of(data, "group_name"), "New");
  json_decref(data);
  test_api_ok(&server, "/apigateway/groups/del", "{\"group_id\":\"g\"}");
  get_expect("/apigateway/groups/info?group_id=g", 200, JUGGLE_GROUP_UNKNOWN);
  get_expect("/apigateway/groups/info?group_id=never", 200, JUGGLE_GROUP_UNKNOWN);
}

static void messages_are_sent_and_found_in_the_history(void **state) {
  (void)state;
  struct test_client bob;
  test_login_as(&bob, &server, "bob", true);
  json_t *data = data_of("POST", "/apigateway/messages/private/send",
      "{\"sender_id\":\"alice\",\"target_id\":\"bob\",\"target_ids\":[\"bob\",\"carol\"],\"msg_type\":\"jg:text\","
      "\"msg_content\":\"{\\\"content\\\":\\\"hi\\\"}\"}");
  assert_int_equal(json_array_size(data), 2);
  assert_string_equal(text_of(json_array_get(data, 0), "target_id"), "bob");
  char msg_id[32];
  snprintf(msg_id, sizeof msg_id, "%s", text_of(json_array_get(data, 0), "msg_id"));
  json_decref(data);
  struct test_push push;
  struct juggle_down_msg msg;
  test_expect_message(&bob, &push, &msg);
  assert_true(view_is(msg.sender_id, "alice"));
  assert_true(view_is(msg.msg_id, msg_id));
  assert_true(view_is(msg.content, "{\"content\":\"hi\"}"));
  data = data_of("GET", "/apigateway/hismsgs/query?channel_type=1&from_id=alice&target_id=bob&start=0", NULL);
  assert_true(json_is_true(json_object_get(data, "is_finished")));
  json_t *found = json_array_get(json_object_get(data, "msgs"), 0);
  assert_string_equal(text_of(found, "msg_id"), msg_id);
  assert_string_equal(text_of(found, "receiver_id"), "bob");
  assert_string_equal(text_of(found, "msg_content"), "{\"content\":\"hi\"}");
  json_decref(data);
  post_expect("/apigateway/messages/private/send", "{\"sender_id\":\"alice\",\"msg_type\":\"t\",\"msg_content\":\"c\"}",
      400, JUGGLE_API_BAD_BODY);
  get_expect("/apigateway/hismsgs/query?from_id=alice&target_id=bob&start=0", 200, JUGGLE_MSG_PARAMETER);
  get_expect("/apigateway/hismsgs/query?channel_type=1x&from_id=a&target_id=b&start=0", 200, JUGGLE_MSG_PARAMETER);
  test_close(&bob);
}

static char *admin_call(const char *secret, const char *method, const char *path, const char *body, int *status) {
  char signature[41], headers[256];
  juggle_signature(view_str(secret), view_str("n"), view_str("1"), signature);
  snprintf(headers, sizeof headers, "nonce: n\r\ntimestamp: 1\r\nsignature: %s\r\n", signature);
  return test_http(server.config.admin_port, method, path, headers, body, status);
}

static void admin_creates_tenants(void **state) {
  (void)state;
  int status;
  const char *path = "/admingateway/apps/create";
  char *text = test_http(server.config.admin_port, "POST", path, NULL, "{}", &status);
  expect_code(text, status, 401, 1001);
  text = admin_call("wrong", "POST", path, "{}", &status);
  expect_code(text, status, 401, 1001);
  text = admin_call(
      TEST_ADMIN_SECRET, "POST", "/admingateway/login", "{\"account\":\"admin\",\"password\":\"123456\"}", &status);
  expect_code(text, status, 404, 1002);
  const char *body = "{\"app_key\":\"bench1\",\"app_name\":\"Bench\",\"app_secret\":\"fedcba9876543210\"}";
  text = admin_call(TEST_ADMIN_SECRET, "POST", path, body, &status);
  assert_non_null(strstr(text, "request-id: admin_"));
  json_t *root = parse(text), *data = json_object_get(root, "data");
  assert_string_equal(text_of(data, "app_key"), "bench1");
  assert_string_equal(text_of(data, "app_secret"), "fedcba9876543210");
  assert_string_equal(text_of(data, "app_name"), "Bench");
  json_decref(root);
  text = admin_call(TEST_ADMIN_SECRET, "POST", path, body, &status);
  expect_code(text, status, 200, 1006);
  text = admin_call(TEST_ADMIN_SECRET, "GET", "/admingateway/apps/info?app_key=bench1", NULL, &status);
  root = parse(text);
  assert_string_equal(text_of(json_object_get(root, "data"), "app_secret"), "fedcba9876543210");
  json_decref(root);
  text = admin_call(TEST_ADMIN_SECRET, "GET", "/admingateway/apps/info?app_key=none", NULL, &status);
  expect_code(text, status, 200, 1009);
  text = admin_call(TEST_ADMIN_SECRET, "POST", path, "{\"app_key\":\"a key that is longer than twenty\"}", &status);
  expect_code(text, status, 200, 1002);
  text = admin_call(TEST_ADMIN_SECRET, "POST", path, "{}", &status);
  root = parse(text);
  assert_int_equal(strlen(text_of(json_object_get(root, "data"), "app_key")), 16);
  assert_int_equal(strlen(text_of(json_object_get(root, "data"), "app_secret")), 16);
  json_decref(root);
}

static void navigator_tells_where_to_connect(void **state) {
  (void)state;
  char token[JUGGLE_TOKEN_MAX], headers[1024], expected[64];
  test_register(&server, "alice", token);
  snprintf(headers, sizeof headers, "x-appkey: " TEST_APP "\r\nx-token: %s\r\n", token);
  int status;
  char *text = test_http(server.config.navigator_port, "GET", "/navigator/general", headers, NULL, &status);
  assert_non_null(strstr(text, "Access-Control-Allow-Origin: *"));
  json_t *root = parse(text), *data = json_object_get(root, "data");
  assert_string_equal(text_of(data, "user_id"), "alice");
  assert_string_equal(text_of(data, "app_key"), TEST_APP);
  snprintf(expected, sizeof expected, "127.0.0.1:%u", server.config.ws_port);
  assert_string_equal(json_string_value(json_array_get(json_object_get(data, "servers"), 0)), expected);
  json_decref(root);
  text = test_http(server.config.navigator_port, "GET", "/navigator/general", NULL, NULL, &status);
  expect_code(text, status, 401, JUGGLE_TOKEN_ILLEGAL);
  snprintf(headers, sizeof headers, "x-appkey: other\r\nx-token: %s\r\n", token);
  text = test_http(server.config.navigator_port, "GET", "/navigator/general", headers, NULL, &status);
  expect_code(text, status, 401, JUGGLE_TOKEN_BAD);
  text = test_http(server.config.navigator_port, "OPTIONS", "/navigator/general", NULL, NULL, &status);
  assert_int_equal(status, 204);
  free(text);
  root = parse(test_http(server.config.navigator_port, "GET", "/", NULL, NULL, &status));
  assert_string_equal(json_string_value(root), "ok");
  json_decref(root);
}

static void users_come_in_batches(void **state) {
  (void)state;
  json_t *data = data_of("POST", "/apigateway/users/register/batch",
      "{\"users\":[{\"user_id\":\"alice\",\"nickname\":\"Alice\"},{\"user_id\":\"bob\"}]}");
  json_t *users = json_object_get(data, "users");
  assert_int_equal(json_array_size(users), 2);
  assert_string_equal(text_of(json_array_get(users, 1), "user_id"), "bob");
  struct test_client c;
  const char *token = text_of(json_array_get(users, 0), "token");
  assert_int_equal(test_try_login(&c, server.config.ws_port, token, "Web", false), JUGGLE_OK);
  test_close(&c);
  json_decref(data);
  data = data_of("GET", "/apigateway/users/info?user_id=alice", NULL);
  assert_string_equal(text_of(data, "nickname"), "Alice");
  json_decref(data);
  post_expect("/apigateway/users/register/batch", "{}", 400, JUGGLE_API_BAD_BODY);
  post_expect("/apigateway/users/register/batch", "{\"users\":[]}", 400, JUGGLE_API_BAD_BODY);
  post_expect("/apigateway/users/register/batch", "{\"users\":[{\"nickname\":\"x\"}]}", 400, JUGGLE_API_BAD_BODY);
  post_expect("/apigateway/users/register/batch", "{\"users\":[7]}", 400, JUGGLE_API_BAD_BODY);
  char many[16 + 1001 * 20] = "{\"users\":[";
  size_t len = strlen(many);
  for (int i = 0; i < 1001; i++)
    len += (size_t)snprintf(many + len, sizeof many - len, "%s{\"user_id\":\"u\"}", i ? "," : "");
  snprintf(many + len, sizeof many - len, "]}");
  post_expect("/apigateway/users/register/batch", many, 400, JUGGLE_API_BAD_BODY);
}

/* ---- For whoever watches ---- */

static char *watch(const char *path, const char *headers, int expected_status) {
  int status;
  char *text = test_http(server.config.api_port, "GET", path, headers, NULL, &status);
  assert_int_equal(status, expected_status);
  return text;
}

static void assert_has(char *text, const char *const *parts) {
  for (; *parts; parts++) {
    if (!strstr(text, *parts)) fail_msg("no \"%s\" in: %s", *parts, text);
  }
  free(text);
}

static void head_answers_as_get_without_a_body(void **state) {
  (void)state;
  static const char *const paths[] = {"/metrics", "/metrics.json", "/health", "/"};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    int status;
    char *text = test_http(server.config.api_port, "HEAD", paths[i], NULL, NULL, &status);
    assert_int_equal(status, 200);
    assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
    free(text);
  }
}

static void metrics_come_in_the_format_that_is_asked_for(void **state) {
  (void)state;
  static const char *const open[] = {"Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8",
      "# TYPE musterd_publishes counter\n", "# UNIT process_cpu_seconds seconds\n", "\nmusterd_build_info{version=\"",
      "\n# EOF\n", NULL};
  static const char *const text[] = {"Content-Type: text/plain; version=0.0.4; charset=utf-8",
      "# TYPE musterd_publishes_total counter\n", "# TYPE musterd_build_info gauge\n", NULL};
  static const char *const json[] = {"Content-Type: application/json", "\"musterd\":{", NULL};
  assert_has(watch("/metrics", NULL, 200), open);
  assert_has(watch("/metrics", "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n", 200), open);
  assert_has(watch("/metrics", "Accept: */*\r\n", 200), open);
  assert_has(watch("/metrics", "Accept: text/plain\r\n", 200), text);
  assert_has(watch("/metrics", "Accept: application/json\r\n", 200), json);
  assert_has(watch("/metrics.json", NULL, 200), json);
  char *page = watch("/metrics", "Accept: text/plain\r\n", 200);
  assert_null(strstr(page, "# EOF"));
  assert_null(strstr(page, TEST_SECRET));
  free(page);
  int status;
  free(test_http(server.config.api_port, "POST", "/metrics", NULL, "{}", &status));
  assert_int_equal(status, 400);
}

static void assert_healthy(uint16_t port, int expected_status) {
  int status;
  char *text = test_http(port, "GET", "/health", NULL, NULL, &status);
  assert_int_equal(status, expected_status);
  assert_non_null(strstr(text, expected_status == 200 ? "{\"status\":\"ok\"}" : "the store failed"));
  free(text);
}

/* No file may grow while it registers users: the store fails. */
static void health_tells_of_a_failed_store(void **state) {
  (void)state;
  struct rlimit before, none;
  assert_healthy(server.config.api_port, 200);
  assert_healthy(server.config.ws_port, 200);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  none = (struct rlimit){4096, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
  struct err err = {0};
  for (int i = 0; i < 100 && !server_failed(server.server, &err); i++) {
    int status;
    free(
        test_api(&server, "POST", "/apigateway/users/register", "{\"user_id\":\"alice\",\"nickname\":\"A\"}", &status));
  }
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_true(server_failed(server.server, &err));
  assert_healthy(server.config.api_port, 503);
  assert_healthy(server.config.ws_port, 503);
}

/* What a proxy in front may cut elsewhere: refused, and the rest of the connection is no request. */
static void requests_without_a_clear_end_are_refused(void **state) {
  (void)state;
  static const char *const fields[] = {"Content-Length: 2\r\nContent-Length: 30",
      "Content-Length: 2\r\nContent-Length: 2", "Content-Length: 2\r\nTransfer-Encoding: chunked",
      "Transfer-Encoding: chunked\r\nContent-Length: 2", "Transfer-Encoding: gzip, chunked",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding : chunked\r\nContent-Length: 2"};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    char request[512];
    int fd = test_connect(server.config.api_port);
    int len = snprintf(request, sizeof request,
        "POST / HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n{}GET /health HTTP/1.1\r\nHost: h\r\n\r\n", fields[i]);
    test_send(fd, request, (size_t)len);
    char *text = test_read_all(fd);
    assert_ptr_equal(strstr(text, "HTTP/1.1 400"), text);
    assert_null(strstr(text + 1, "HTTP/1.1"));
    free(text);
    close(fd);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(headers_are_checked_in_order, start, stop),
      cmocka_unit_test_setup_teardown(bodies_are_checked, start, stop),
      cmocka_unit_test_setup_teardown(requests_without_a_clear_end_are_refused, start, stop),
      cmocka_unit_test_setup_teardown(bodies_with_too_many_values_are_refused, start, stop),
      cmocka_unit_test_setup_teardown(root_needs_no_signature, start, stop),
      cmocka_unit_test_setup_teardown(users_are_kept, start, stop),
      cmocka_unit_test_setup_teardown(users_come_in_batches, start, stop),
      cmocka_unit_test_setup_teardown(presence_follows_sessions, start, stop),
      cmocka_unit_test_setup_teardown(groups_are_kept, start, stop),
      cmocka_unit_test_setup_teardown(messages_are_sent_and_found_in_the_history, start, stop),
      cmocka_unit_test_setup_teardown(admin_creates_tenants, start, stop),
      cmocka_unit_test_setup_teardown(navigator_tells_where_to_connect, start, stop),
      cmocka_unit_test_setup_teardown(head_answers_as_get_without_a_body, start, stop),
      cmocka_unit_test_setup_teardown(metrics_come_in_the_format_that_is_asked_for, start, stop),
      cmocka_unit_test_setup_teardown(health_tells_of_a_failed_store, start, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
