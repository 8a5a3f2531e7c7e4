/* Set-up of a JuggleIM population: users and tokens, the group or chatroom, the server's version, the navigator (fact
 * sheet sections 6, 7.1 and 10.3). Blocking, with many calls in flight over kept-alive connections. */
#include "driver/juggle_internal.h"
#include "driver/target.h"

#include "base/clock.h"
#include "base/rng.h"
#include "wire/juggle.h"
#include "wire/juggle_auth.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_MAX (64 * 1024)
#define BODY_MAX 512
#define USER_BODY_MAX 160 /* of one user in a registration */
#define BATCH_USERS 200   /* of musterd's registration in batches; its answer must fit ANSWER_MAX */
#define CALL_TIMEOUT_MS 15000
#define VERSION_TIMEOUT_MS 2000
#define POLL_MS 100
#define ATTEMPTS_MAX 3 /* of a call that the server itself timed out */
#define MEMBERS_PER_CALL 5000
#define CONCURRENCY_MAX 256
#define NAVIGATOR_HEADER_MAX 640

/* One call in flight, reused for the next. */
struct call {
  CURL *easy;
  struct curl_slist *headers;
  char url[1024];
  char *body; /* owned; NULL: GET */
  char answer[ANSWER_MAX];
  size_t answer_len;
  char curl_error[CURL_ERROR_SIZE];
  uint32_t user, users; /* registration: first client index, and how many */
  uint32_t attempts;
};

struct setup {
  struct driver_run *run;
  struct juggle_population *population;
  char api_url[1024];
  CURLM *multi;
  struct call *calls;
  uint32_t call_count;
  uint32_t next_user, registered;
  uint32_t batch; /* users of one registration call; 1 where the server knows no batches */
};

/* --- addresses --- */

static bool scheme_has_tls(const struct url *url) {
  return strcmp(url->scheme, "wss") == 0 || strcmp(url->scheme, "juggles") == 0;
}

static const char *bracket(const char *host, const char *which) {
  return strchr(host, ':') ? which : "";
}

/* Whether a URL of len characters, as snprintf says, fitted into size bytes. */
static enum status fitted(int len, size_t size, struct err *err) {
  if (len > 0 && (size_t)len < size) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "the URL is longer than %zu characters: shorten it", size - 1);
}

static enum status choose_api_url(struct setup *setup, struct err *err) {
  const struct driver_settings *settings = &setup->run->settings;
  const struct url *target = &settings->url;
  struct url api;
  if (!settings->api_url) {
    if (target->port <= 2) {
      return err_set(err, STATUS_USAGE, "no API address follows from %s: give --api-url", settings->target);
    }
    return fitted(snprintf(setup->api_url, sizeof(setup->api_url), "%s://%s%s%s:%u/apigateway",
                      scheme_has_tls(target) ? "https" : "http", bracket(target->host, "["), target->host,
                      bracket(target->host, "]"), target->port - 2U),
        sizeof(setup->api_url), err);
  }
  enum status status = url_parse(settings->api_url, &api, err);
  if (status != STATUS_OK) return err_prefix(err, "--api-url");
  if (strcmp(api.scheme, "http") != 0 && strcmp(api.scheme, "https") != 0) {
    return err_set(err, STATUS_USAGE, "--api-url %s: must begin with http:// or https://", settings->api_url);
  }
  size_t len = strlen(settings->api_url);
  while (len > 0 && settings->api_url[len - 1] == '/')
    len--;
  bool bare = api.path[0] == '\0' || strcmp(api.path, "/") == 0;
  return fitted(snprintf(setup->api_url, sizeof(setup->api_url), "%.*s%s", (int)len, settings->api_url,
                    bare ? "/apigateway" : ""),
      sizeof(setup->api_url), err);
}

/* --- one call --- */

static size_t take_answer(char *data, size_t size, size_t count, void *context) {
  struct call *call = context;
  size_t len = size * count;
  if (len > sizeof(call->answer) - 1 - call->answer_len) return 0; /* makes curl fail the call */
  memcpy(call->answer + call->answer_len, data, len);
  call->answer_len += len;
  call->answer[call->answer_len] = '\0';
  return len;
}

static bool add_header(struct call *call, const char *name, const char *value) {
  char line[NAVIGATOR_HEADER_MAX];
  int len = snprintf(line, sizeof(line), "%s: %s", name, value);
  if (len < 0 || (size_t)len >= sizeof(line)) return false;
  struct curl_slist *more = curl_slist_append(call->headers, line);
  if (!more) return false;
  call->headers = more;
  return true;
}

static bool sign(struct call *call, const struct driver_settings *settings) {
  char nonce[17], timestamp[24], signature[41];
  uint64_t random;
  random_bytes(&random, sizeof(random));
  snprintf(nonce, sizeof(nonce), "%016" PRIx64, random);
  snprintf(timestamp, sizeof(timestamp), "%" PRId64, clock_wall_ms());
  juggle_signature(view_str(settings->secret), view_str(nonce), view_str(timestamp), signature);
  return add_header(call, "appkey", settings->app_key) && add_header(call, "nonce", nonce) &&
         add_header(call, "timestamp", timestamp) && add_header(call, "signature", signature);
}

static long remaining_ms(const struct driver_settings *settings, long most_ms) {
  uint64_t now_ns = clock_now_ns();
  if (now_ns >= settings->deadline_ns) return 1;
  uint64_t left_ms = (settings->deadline_ns - now_ns) / NS_PER_MS;
  if (left_ms == 0) return 1;
  return left_ms > (uint64_t)most_ms ? most_ms : (long)left_ms;
}

static void call_reset(struct call *call) {
  curl_slist_free_all(call->headers);
  call->headers = NULL;
  free(call->body);
  call->body = NULL;
  call->answer_len = 0;
  call->answer[0] = '\0';
  call->curl_error[0] = '\0';
  curl_easy_reset(call->easy);
}

/* Everything but URL, headers and body. */
static void call_options(struct call *call, const struct driver_settings *settings, long timeout_ms) {
  CURL *easy = call->easy;
  curl_easy_setopt(easy, CURLOPT_URL, call->url);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->curl_error);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, remaining_ms(settings, timeout_ms));
  if (!settings->tls_verify) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (settings->tls_ca_file) curl_easy_setopt(easy, CURLOPT_CAINFO, settings->tls_ca_file);
  if (call->body) curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body);
}

static enum status out_of_memory(struct err *err) {
  return err_set(err, STATUS_MEMORY, "out of memory during set-up");
}

/* A signed POST of body, which the call takes over. */
static enum status call_post(struct setup *setup, struct call *call, const char *path, char *body, struct err *err) {
  call_reset(call);
  call->body = body;
  if (!body || !sign(call, &setup->run->settings) || !add_header(call, "Content-Type", "application/json") ||
      !add_header(call, "Expect", "")) {
    return out_of_memory(err);
  }
  enum status status =
      fitted(snprintf(call->url, sizeof(call->url), "%s%s", setup->api_url, path), sizeof(call->url), err);
  if (status != STATUS_OK) return status;
  call_options(call, &setup->run->settings, CALL_TIMEOUT_MS);
  if (curl_multi_add_handle(setup->multi, call->easy) != CURLM_OK) return out_of_memory(err);
  return STATUS_OK;
}

/* What a person should do about a code of the API; "" when the code's text says it all. */
static const char *mend(int32_t code) {
  switch (code) {
  case JUGGLE_API_NO_APPKEY:
  case JUGGLE_API_NO_APP:
    return ": check --app-key (a server remembers an unknown key for up to 10 minutes)";
  case JUGGLE_API_BAD_SIGNATURE:
    return ": the secret in MUSTER_APP_SECRET does not belong to this app key";
  case JUGGLE_API_TIMEOUT:
    return ": the server is overloaded; lower --setup-concurrency";
  case JUGGLE_GROUP_FULL:
    return ": raise the tenant's max_grp_member_count or use fewer clients";
  default:
    return "";
  }
}

static bool server_is_silent(CURLcode code) {
  return code == CURLE_OPERATION_TIMEDOUT;
}

static enum status transport_error(const struct setup *setup, const struct call *call, CURLcode code, struct err *err) {
  if (server_is_silent(code)) {
    return err_set(err, STATUS_UNREACHABLE,
        "%s did not answer in time: is the server alive? (--api-url, --setup-timeout)", setup->api_url);
  }
  return err_set(err, STATUS_UNREACHABLE,
      "cannot call the server's API at %s: %s; check that it runs, or give --api-url", setup->api_url,
      call->curl_error[0] ? call->curl_error : curl_easy_strerror(code));
}

/* The answer's envelope: *data is borrowed from *root, which the caller frees. *code is the server's. */
static bool read_answer(const struct call *call, json_t **root, json_t **data, int32_t *code) {
  *root = json_loads(call->answer, JSON_REJECT_DUPLICATES, NULL);
  json_t *number = json_object_get(*root, "code");
  if (!json_is_integer(number)) {
    json_decref(*root);
    return false;
  }
  *code = (int32_t)json_integer_value(number);
  *data = json_object_get(*root, "data");
  return true;
}

static enum status garbage(const struct setup *setup, struct call *call, const char *what, struct err *err) {
  long http_status = 0;
  curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &http_status);
  return err_set(err, STATUS_UNREACHABLE, "%s: %s was answered by HTTP %ld without a JuggleIM answer; check --api-url",
      setup->api_url, what, http_status);
}

static enum status refused(const struct setup *setup, const char *what, int32_t code, struct err *err) {
  const char *text = juggle_code_text(code);
  return err_set(err, STATUS_UNREACHABLE, "%s: %s was refused with code %d (%s)%s", setup->api_url, what, (int)code,
      text ? text : "unknown code", mend(code));
}

/* --- the machine that keeps calls in flight --- */

static enum status check_time(const struct setup *setup, struct err *err) {
  const struct driver_settings *settings = &setup->run->settings;
  if (settings->interrupted && *settings->interrupted) return err_set(err, STATUS_INTERRUPTED, "stopped during set-up");
  if (clock_now_ns() < settings->deadline_ns) return STATUS_OK;
  return err_set(err, STATUS_UNREACHABLE,
      "set-up was not over before its deadline (%u of %u users registered at %s): raise --setup-timeout or "
      "--setup-concurrency",
      setup->registered, settings->clients, setup->api_url);
}

/* Waits for and returns the next finished call, or NULL after POLL_MS at the latest. */
static struct call *next_finished(struct setup *setup, CURLcode *code) {
  int running, queued;
  curl_multi_perform(setup->multi, &running);
  CURLMsg *message = curl_multi_info_read(setup->multi, &queued);
  if (!message) {
    if (running > 0) curl_multi_poll(setup->multi, NULL, 0, POLL_MS, NULL);
    return NULL;
  }
  struct call *call = NULL;
  *code = message->data.result;
  curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
  curl_multi_remove_handle(setup->multi, call->easy);
  return call;
}

/* Runs the one call that is in flight to its end. */
static enum status finish_call(struct setup *setup, const char *what, struct err *err) {
  for (;;) {
    CURLcode result;
    struct call *call = next_finished(setup, &result);
    if (!call) {
      enum status status = check_time(setup, err);
      if (status != STATUS_OK) return status;
      continue;
    }
    json_t *root, *data;
    int32_t code;
    if (result != CURLE_OK) return transport_error(setup, call, result, err);
    if (!read_answer(call, &root, &data, &code)) return garbage(setup, call, what, err);
    json_decref(root);
    return code == JUGGLE_OK ? STATUS_OK : refused(setup, what, code, err);
  }
}

/* --- users --- */

static size_t write_user(const struct setup *setup, uint32_t user, char out[USER_BODY_MAX]) {
  char id[JUGGLE_ID_MAX];
  int len = (int)juggle_user_id(setup->population, user, id);
  return (size_t)snprintf(out, USER_BODY_MAX, "{\"user_id\":\"%.*s\",\"nickname\":\"%.*s\"}", len, id, len, id);
}

static char *register_body(const struct setup *setup, const struct call *call) {
  size_t size = 16 + (size_t)call->users * USER_BODY_MAX;
  char *body = malloc(size);
  if (!body) return NULL;
  if (setup->batch == 1) {
    write_user(setup, call->user, body);
    return body;
  }
  size_t len = (size_t)snprintf(body, size, "{\"users\":[");
  for (uint32_t i = 0; i < call->users; i++) {
    if (i > 0) body[len++] = ',';
    len += write_user(setup, call->user + i, body + len);
  }
  snprintf(body + len, size - len, "]}");
  return body;
}

static enum status start_registration(struct setup *setup, struct call *call, struct err *err) {
  return call_post(
      setup, call, setup->batch == 1 ? "/users/register" : "/users/register/batch", register_body(setup, call), err);
}

/* Takes the next users; the call must be idle and users must be left. */
static enum status register_next(struct setup *setup, struct call *call, struct err *err) {
  uint32_t left = setup->run->settings.clients - setup->next_user;
  call->user = setup->next_user;
  call->users = left < setup->batch ? left : setup->batch;
  call->attempts = 0;
  setup->next_user += call->users;
  return start_registration(setup, call, err);
}

static enum status keep_token(
    struct setup *setup, struct call *call, uint32_t user, const json_t *data, struct err *err) {
  const char *token = json_string_value(json_object_get(data, "token"));
  if (!token || !*token || strlen(token) >= JUGGLE_TOKEN_MAX) return garbage(setup, call, "users/register", err);
  char *kept = arena_text(&setup->run->arena, token, strlen(token));
  if (!kept) return out_of_memory(err);
  setup->population->tokens[user] = kept;
  setup->registered++;
  return STATUS_OK;
}

static enum status keep_tokens(struct setup *setup, struct call *call, const json_t *data, struct err *err) {
  if (setup->batch == 1) return keep_token(setup, call, call->user, data, err);
  const json_t *users = json_object_get(data, "users");
  if (json_array_size(users) != call->users) return garbage(setup, call, "users/register/batch", err);
  enum status status = STATUS_OK;
  for (uint32_t i = 0; i < call->users && status == STATUS_OK; i++)
    status = keep_token(setup, call, call->user + i, json_array_get(users, i), err);
  return status;
}

static enum status on_registered(struct setup *setup, struct call *call, CURLcode result, struct err *err) {
  json_t *root, *data;
  int32_t code;
  if (result != CURLE_OK) return transport_error(setup, call, result, err);
  if (!read_answer(call, &root, &data, &code)) return garbage(setup, call, "users/register", err);
  enum status status = STATUS_OK;
  if (code == JUGGLE_API_TIMEOUT && ++call->attempts < ATTEMPTS_MAX) {
    json_decref(root);
    return start_registration(setup, call, err);
  }
  status = code == JUGGLE_OK ? keep_tokens(setup, call, data, err) : refused(setup, "users/register", code, err);
  json_decref(root);
  if (status != STATUS_OK || setup->next_user == setup->run->settings.clients) return status;
  return register_next(setup, call, err);
}

static enum status register_users(struct setup *setup, struct err *err) {
  uint32_t clients = setup->run->settings.clients;
  enum status status = STATUS_OK;
  for (uint32_t i = 0; i < setup->call_count && setup->next_user < clients && status == STATUS_OK; i++)
    status = register_next(setup, &setup->calls[i], err);
  while (status == STATUS_OK && setup->registered < clients) {
    CURLcode result;
    struct call *call = next_finished(setup, &result);
    status = call ? on_registered(setup, call, result, err) : check_time(setup, err);
  }
  return status;
}

/* --- groups: client i is member i / groups of group i % groups, or member i of every group --- */

static uint32_t member_of(const struct driver_settings *settings, uint32_t group, uint32_t i) {
  return settings->shared_groups ? i : group + i * settings->groups;
}

static uint32_t members_of(const struct driver_settings *settings, uint32_t group) {
  if (settings->shared_groups) return settings->clients;
  return settings->clients / settings->groups + (group < settings->clients % settings->groups);
}

static char *group_body(const struct setup *setup, uint32_t group, uint32_t from, uint32_t to) {
  const size_t member_bytes = JUGGLE_ID_MAX + 3;
  size_t size = 256 + (to - from) * member_bytes;
  char *body = malloc(size);
  if (!body) return NULL;
  char id[JUGGLE_ID_MAX];
  int id_len = (int)juggle_group_id(setup->population, group, id);
  size_t len = (size_t)snprintf(
      body, size, "{\"group_id\":\"%.*s\",\"group_name\":\"muster load test\",\"member_ids\":[", id_len, id);
  for (uint32_t i = from; i < to; i++) {
    id_len = (int)juggle_user_id(setup->population, member_of(&setup->run->settings, group, i), id);
    len += (size_t)snprintf(body + len, size - len, "%s\"%.*s\"", i > from ? "," : "", id_len, id);
  }
  snprintf(body + len, size - len, "]}");
  return body;
}

static enum status make_group(struct setup *setup, uint32_t group, struct err *err) {
  uint32_t members = members_of(&setup->run->settings, group);
  for (uint32_t from = 0; from < members; from += MEMBERS_PER_CALL) {
    uint32_t to = members - from > MEMBERS_PER_CALL ? from + MEMBERS_PER_CALL : members;
    enum status status = call_post(setup, &setup->calls[0], "/groups/add", group_body(setup, group, from, to), err);
    if (status == STATUS_OK) status = finish_call(setup, "groups/add", err);
    if (status != STATUS_OK) return status;
  }
  return STATUS_OK;
}

static enum status make_groups(struct setup *setup, struct err *err) {
  enum status status = STATUS_OK;
  for (uint32_t group = 0; status == STATUS_OK && group < setup->run->settings.groups; group++)
    status = make_group(setup, group, err);
  return status;
}

/* --- the chatroom --- */

static enum status make_room(struct setup *setup, struct err *err) {
  struct call *call = &setup->calls[0];
  char *body = malloc(BODY_MAX);
  if (body) {
    snprintf(body, BODY_MAX, "{\"chat_id\":\"%s\",\"chat_name\":\"muster load test\"}", setup->population->room_id);
  }
  enum status status = call_post(setup, call, "/chatrooms/create", body, err);
  if (status != STATUS_OK) return status;
  status = finish_call(setup, "chatrooms/create", err);
  long http_status = 0;
  curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &http_status);
  if (status == STATUS_OK || http_status != 404) return status;
  return err_set(err, STATUS_UNREACHABLE,
      "%s has no chatrooms (JuggleIM's community edition does not): use another topology, or musterd", setup->api_url);
}

/* --- version and navigator --- */

/* What GET /version of the WebSocket port says; best effort: a report without it is still a report. */
static void read_version(struct setup *setup) {
  struct driver_run *run = setup->run;
  const struct url *url = &run->settings.url;
  struct call *call = &setup->calls[0];
  call_reset(call);
  if (fitted(snprintf(call->url, sizeof(call->url), "%s://%s%s%s:%u/version", scheme_has_tls(url) ? "https" : "http",
                 bracket(url->host, "["), url->host, bracket(url->host, "]"), (unsigned)url->port),
          sizeof(call->url), NULL) != STATUS_OK) {
    return;
  }
  call_options(call, &run->settings, VERSION_TIMEOUT_MS);
  if (curl_easy_perform(call->easy) != CURLE_OK) return;
  json_t *root = json_loads(call->answer, 0, NULL);
  const char *version = json_string_value(json_object_get(root, "version"));
  size_t len = 0;
  for (; version && version[len] && len < sizeof(run->server_version) - 1; len++)
    run->server_version[len] = version[len] >= ' ' && version[len] < 127 ? version[len] : '?';
  run->server_version[len] = '\0';
  json_decref(root);
}

/* Where the navigator sends user 0; every client then connects there. */
static enum status ask_navigator(struct setup *setup, struct err *err) {
  struct driver_settings *settings = &setup->run->settings;
  struct call *call = &setup->calls[0];
  struct url where;
  call_reset(call);
  if (!add_header(call, "x-appkey", settings->app_key) || !add_header(call, "x-token", setup->population->tokens[0])) {
    return out_of_memory(err);
  }
  int len = (int)strlen(settings->navigator_url);
  while (len > 0 && settings->navigator_url[len - 1] == '/')
    len--;
  enum status status =
      fitted(snprintf(call->url, sizeof(call->url), "%.*s/navigator/general", len, settings->navigator_url),
          sizeof(call->url), err);
  if (status != STATUS_OK) return status;
  call_options(call, settings, CALL_TIMEOUT_MS);
  CURLcode result = curl_easy_perform(call->easy);
  if (result != CURLE_OK) {
    return err_set(err, STATUS_UNREACHABLE, "cannot ask the navigator at %s: %s", settings->navigator_url,
        call->curl_error[0] ? call->curl_error : curl_easy_strerror(result));
  }
  json_t *root, *data;
  int32_t code;
  if (!read_answer(call, &root, &data, &code)) {
    return err_set(
        err, STATUS_UNREACHABLE, "%s does not answer like a navigator; check --navigator", settings->navigator_url);
  }
  const char *server = json_string_value(json_array_get(json_object_get(data, "servers"), 0));
  if (code != JUGGLE_OK || !server) {
    const char *text = juggle_code_text(code);
    json_decref(root);
    return err_set(err, STATUS_UNREACHABLE, "the navigator at %s names no server (code %d, %s)",
        settings->navigator_url, (int)code, text ? text : "unknown code");
  }
  status = url_parse(server, &where, err);
  json_decref(root);
  if (status != STATUS_OK) return err_prefix(err, "server named by the navigator");
  memcpy(settings->url.host, where.host, sizeof(where.host));
  settings->url.port = where.port ? where.port : settings->url.port;
  return STATUS_OK;
}

/* --- all of it --- */

static enum status check_settings(const struct driver_settings *settings, struct err *err) {
  if (!settings->app_key || !*settings->app_key) {
    return err_set(err, STATUS_USAGE, "no app key: give --app-key");
  }
  if (!settings->secret || !*settings->secret) {
    return err_set(err, STATUS_USAGE, "no app secret: put it into the environment variable MUSTER_APP_SECRET");
  }
  for (const char *at = settings->app_key; *at; at++) {
    if (*at <= ' ' || *at > '~') return err_set(err, STATUS_USAGE, "--app-key holds a character that no key has");
  }
  return STATUS_OK;
}

static enum status make_population(struct driver_run *run, struct err *err) {
  struct juggle_population *population = arena_alloc(&run->arena, sizeof(*population));
  if (!population) return out_of_memory(err);
  population->tokens = arena_alloc(&run->arena, run->settings.clients * sizeof(*population->tokens));
  if (!population->tokens) return out_of_memory(err);
  unsigned run_digits = (unsigned)(run->settings.run_id >> 32);
  population->prefix_len = (size_t)snprintf(population->prefix, sizeof(population->prefix), "muster-%08x-", run_digits);
  snprintf(population->group_prefix, sizeof(population->group_prefix), "muster-%08x-group-", run_digits);
  if (run->settings.room_members > 0) {
    snprintf(population->room_id, sizeof(population->room_id), "muster-%08x-room", run_digits);
  }
  run->population = population;
  return STATUS_OK;
}

static enum status setup_open(struct setup *setup, struct err *err) {
  uint32_t wanted = setup->run->settings.setup_concurrency;
  setup->call_count = wanted < 1 ? 1 : wanted > CONCURRENCY_MAX ? CONCURRENCY_MAX : wanted;
  setup->multi = curl_multi_init();
  setup->calls = calloc(setup->call_count, sizeof(*setup->calls));
  if (!setup->multi || !setup->calls) return out_of_memory(err);
  curl_multi_setopt(setup->multi, CURLMOPT_MAXCONNECTS, (long)setup->call_count);
  for (uint32_t i = 0; i < setup->call_count; i++) {
    setup->calls[i].easy = curl_easy_init();
    if (!setup->calls[i].easy) return out_of_memory(err);
  }
  return STATUS_OK;
}

static void setup_close(struct setup *setup) {
  for (uint32_t i = 0; setup->calls && i < setup->call_count; i++) {
    struct call *call = &setup->calls[i];
    if (!call->easy) continue;
    curl_multi_remove_handle(setup->multi, call->easy);
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    free(call->body);
  }
  free(setup->calls);
  curl_multi_cleanup(setup->multi);
}

/* Resolves where clients connect and makes the TLS context. */
static enum status provision(struct setup *setup, struct err *err) {
  struct driver_run *run = setup->run;
  enum status status = choose_api_url(setup, err);
  if (status == STATUS_OK) status = make_population(run, err);
  setup->population = run->population;
  if (status == STATUS_OK) status = setup_open(setup, err);
  /* A navigator may yet send us elsewhere: then the version is asked for there, too late for batches. */
  if (status == STATUS_OK && !run->settings.navigator_url) read_version(setup);
  bool batches = strncmp(run->server_version, "musterd-", 8) == 0;
  setup->batch = batches ? BATCH_USERS : 1;
  if (status == STATUS_OK) status = register_users(setup, err);
  if (status == STATUS_OK) status = make_groups(setup, err);
  if (status == STATUS_OK && run->settings.room_members > 0) status = make_room(setup, err);
  if (status == STATUS_OK && run->settings.navigator_url) status = ask_navigator(setup, err);
  if (status == STATUS_OK) status = target_open(run, scheme_has_tls(&run->settings.url), err);
  if (status == STATUS_OK && run->settings.navigator_url) read_version(setup);
  return status;
}

enum status juggle_prepare(struct driver_run *run, struct err *err) {
  enum status status = check_settings(&run->settings, err);
  if (status != STATUS_OK) return status;
  if (run->settings.url.port == 0) run->settings.url.port = run->driver->default_port;
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return out_of_memory(err);
  struct setup setup = {.run = run};
  status = provision(&setup, err);
  setup_close(&setup);
  curl_global_cleanup();
  if (status != STATUS_OK) target_release(run);
  return status;
}
