/* Set-up calls against a scripted HTTP server: what is asked, what comes out, and one clear error, without the secret,
 * for everything that can go wrong. */
#include "base/clock.h"
#include "driver/juggle_internal.h"
#include "wire/juggle_auth.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SECRET "0123456789abcdef"
#define REQUEST_MAX (1 << 20)

enum conduct {
  GOOD,
  NO_ROOMS,
  REFUSES,
  OVERLOADED_ONCE,
  GARBAGE,
  HTML,
  CLOSES,
  SILENT,
  NO_TOKEN,
  HUGE_ANSWER,
  BATCHES,
  SHORT_BATCHES
};

struct api {
  int listener;
  uint16_t port;
  enum conduct conduct;
  int refusal; /* code of REFUSES */
  const char *refused_path;
  atomic_uint users, batches, groups, members, rooms, bad_signatures, overloads, connections;
  atomic_bool stopping;
  pthread_t thread;
};

struct exchange {
  struct api *api;
  int fd;
};

static void header(const char *request, const char *name, char *out, size_t size) {
  char wanted[64];
  snprintf(wanted, sizeof(wanted), "\n%s: ", name);
  const char *at = strcasestr(request, wanted);
  out[0] = '\0';
  if (at) snprintf(out, size, "%.*s", (int)strcspn(at + strlen(wanted), "\r\n"), at + strlen(wanted));
}

static void check_signature(struct api *api, const char *request) {
  char key[64], nonce[64], timestamp[64], signature[64], wanted[41];
  header(request, "appkey", key, sizeof(key));
  header(request, "nonce", nonce, sizeof(nonce));
  header(request, "timestamp", timestamp, sizeof(timestamp));
  header(request, "signature", signature, sizeof(signature));
  juggle_signature(view_str(SECRET), view_str(nonce), view_str(timestamp), wanted);
  if (strcmp(key, "benchapp") != 0 || strcmp(signature, wanted) != 0) api->bad_signatures++;
}

static unsigned count_of(const char *text, const char *part) {
  unsigned count = 0;
  for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
    count++;
  return count;
}

static void answer_batch(struct api *api, const char *request, char *out, size_t size) {
  unsigned users = count_of(request, "\"user_id\"");
  size_t len = (size_t)snprintf(out, size, "{\"code\":0,\"data\":{\"users\":[");
  api->batches++;
  if (api->conduct == SHORT_BATCHES) users--;
  for (unsigned i = 0; i < users; i++)
    len += (size_t)snprintf(out + len, size - len, "%s{\"token\":\"token-%u\"}", i ? "," : "", api->users++);
  snprintf(out + len, size - len, "]}}");
}

/* The JSON that answers a request. */
static void answer_json(struct api *api, const char *request, char *out, size_t size) {
  bool refused = api->conduct == REFUSES && strstr(request, api->refused_path);
  bool overloaded = api->conduct == OVERLOADED_ONCE && api->overloads++ == 0;
  snprintf(out, size, "{\"code\":0,\"msg\":\"success\",\"data\":null}");
  if (refused || overloaded) {
    snprintf(out, size, "{\"code\":%d,\"msg\":\"\"}", overloaded ? 10008 : api->refusal);
  } else if (strncmp(request, "POST /apigateway/users/register ", 32) == 0) {
    unsigned user = api->users++;
    check_signature(api, request);
    snprintf(out, size, "{\"code\":0,\"msg\":\"success\",\"data\":{\"user_id\":\"x\",\"token\":\"%s%u\"}}",
        api->conduct == NO_TOKEN ? "\",\"other\":\"" : "token-", user);
  } else if (strncmp(request, "POST /apigateway/users/register/batch ", 38) == 0) {
    check_signature(api, request);
    answer_batch(api, request, out, size);
  } else if (strncmp(request, "POST /apigateway/groups/add ", 28) == 0) {
    check_signature(api, request);
    api->groups++;
    api->members += count_of(strstr(request, "member_ids"), "\"muster-");
  } else if (strncmp(request, "POST /apigateway/chatrooms/create ", 34) == 0) {
    check_signature(api, request);
    api->rooms += strstr(request, "{\"chat_id\":\"muster-0badcafe-room\",") != NULL;
  } else if (strncmp(request, "GET /version ", 13) == 0) {
    snprintf(out, size, "{\"version\":\"%s\"}",
        api->conduct == BATCHES || api->conduct == SHORT_BATCHES ? "musterd-1.0.0" : "1.8.14");
  } else if (strncmp(request, "GET /navigator/general ", 23) == 0) {
    snprintf(out, size, "{\"code\":0,\"data\":{\"servers\":[\"127.0.0.2:%u\"]}}", api->port);
  }
}

static void answer(struct exchange *exchange, const char *request) {
  struct api *api = exchange->api;
  char json[16384], head[256];
  if (api->conduct == CLOSES) return;
  while (api->conduct == SILENT && !api->stopping)
    usleep(1000);
  answer_json(api, request, json, sizeof(json));
  if (api->conduct == NO_ROOMS && strstr(request, "/chatrooms/")) snprintf(json, sizeof(json), "404 page not found");
  const char *body = api->conduct == GARBAGE ? "{\"code\":" : api->conduct == HTML ? "<html>moved</html>" : json;
  size_t len = api->conduct == HUGE_ANSWER ? 10000000 : strlen(body);
  bool missing = api->conduct == NO_ROOMS && strstr(request, "/chatrooms/");
  int head_len = snprintf(
      head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", missing ? "404 Not Found" : "200 OK", len);
  if (send(exchange->fd, head, (size_t)head_len, MSG_NOSIGNAL) < 0) return;
  for (size_t sent = 0; sent < len;) {
    size_t part = api->conduct == HUGE_ANSWER ? (len - sent < 512 ? len - sent : 512) : len - sent;
    ssize_t put = send(exchange->fd, api->conduct == HUGE_ANSWER ? json : body + sent, part, MSG_NOSIGNAL);
    if (put <= 0) return;
    sent += (size_t)put;
  }
}

static void *serve_connection(void *context) {
  struct exchange *exchange = context;
  char *request = malloc(REQUEST_MAX);
  size_t len = 0;
  ssize_t got;
  while ((got = recv(exchange->fd, request + len, REQUEST_MAX - 1 - len, 0)) > 0) {
    len += (size_t)got;
    request[len] = '\0';
    const char *body = strstr(request, "\r\n\r\n");
    char length[32];
    header(request, "content-length", length, sizeof(length));
    if (!body || strlen(body + 4) < strtoul(length, NULL, 10)) continue;
    answer(exchange, request);
    if (exchange->api->conduct == CLOSES) break;
    len = 0;
  }
  close(exchange->fd);
  free(request);
  free(exchange);
  return NULL;
}

static void *serve(void *context) {
  struct api *api = context;
  pthread_t threads[64];
  unsigned count = 0;
  int fd;
  while (count < 64 && (fd = accept(api->listener, NULL, NULL)) >= 0 && !api->stopping) {
    struct exchange *exchange = malloc(sizeof(*exchange));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* head and body leave apart */
    *exchange = (struct exchange){api, fd};
    api->connections++;
    pthread_create(&threads[count++], NULL, serve_connection, exchange);
  }
  for (unsigned i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
  return NULL;
}

static struct api *start(enum conduct conduct) {
  struct api *api = calloc(1, sizeof(*api));
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof(address);
  api->conduct = conduct;
  api->listener = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(api->listener, (struct sockaddr *)&address, len), 0);
  assert_int_equal(listen(api->listener, 64), 0);
  getsockname(api->listener, (struct sockaddr *)&address, &len);
  api->port = ntohs(address.sin_port);
  pthread_create(&api->thread, NULL, serve, api);
  return api;
}

static void stop(struct api *api) {
  api->stopping = true;
  shutdown(api->listener, SHUT_RDWR);
  pthread_join(api->thread, NULL);
  close(api->listener);
  free(api);
}

struct set_up {
  struct driver_run run;
  char api_url[64], target[64];
  volatile int interrupted;
  struct err err;
};

static enum status set_up(struct set_up *set_up, const struct api *api) {
  struct driver_settings *settings = &set_up->run.settings;
  snprintf(set_up->api_url, sizeof(set_up->api_url), "http://127.0.0.1:%u/", api->port);
  snprintf(set_up->target, sizeof(set_up->target), "ws://127.0.0.1:%u", api->port);
  set_up->run.driver = &driver_juggle;
  settings->target = set_up->target;
  settings->api_url = set_up->api_url;
  settings->app_key = "benchapp";
  if (!settings->secret) settings->secret = SECRET;
  settings->run_id = UINT64_C(0x0badcafe00000001);
  if (settings->clients == 0) settings->clients = 20;
  settings->setup_concurrency = 4;
  if (settings->deadline_ns == 0) settings->deadline_ns = clock_now_ns() + 20 * NS_PER_SEC;
  settings->tls_verify = true;
  settings->interrupted = &set_up->interrupted;
  assert_int_equal(url_parse(set_up->target, &settings->url, NULL), STATUS_OK);
  enum status status = driver_juggle.prepare(&set_up->run, &set_up->err);
  assert_null(strstr(set_up->err.text, SECRET));
  assert_null(strchr(set_up->err.text, '\n'));
  return status;
}

static void test_registers_everybody(void **state) {
  (void)state;
  struct api *api = start(GOOD);
  struct set_up it = {.run.settings.clients = 100};
  assert_int_equal(set_up(&it, api), STATUS_OK);
  const struct juggle_population *population = it.run.population;
  assert_int_equal(api->users, 100);
  assert_int_equal(api->bad_signatures, 0);
  assert_true(api->connections <= 6); /* kept alive: one per call in flight, and one for the version */
  for (uint32_t i = 0; i < 100; i++)
    assert_int_equal(strncmp(population->tokens[i], "token-", 6), 0);
  char id[JUGGLE_ID_MAX];
  size_t len = juggle_user_id(population, 42, id);
  assert_true(view_is(view_of(id, len), "muster-0badcafe-42"));
  assert_string_equal(it.run.server_version, "1.8.14");
  assert_true(address_is_loopback(&it.run.address));
  assert_null(it.run.tls);
  driver_juggle.release(&it.run);
  stop(api);
}

static void test_registers_in_batches_where_it_can(void **state) {
  (void)state;
  struct api *api = start(BATCHES);
  struct set_up it = {.run.settings.clients = 450};
  assert_int_equal(set_up(&it, api), STATUS_OK);
  const struct juggle_population *population = it.run.population;
  assert_int_equal(api->users, 450);
  assert_int_equal(api->batches, 3);
  assert_int_equal(api->bad_signatures, 0);
  for (uint32_t i = 0; i < 450; i++)
    assert_int_equal(strncmp(population->tokens[i], "token-", 6), 0);
  driver_juggle.release(&it.run);
  stop(api);
}

static void test_an_answer_for_fewer_users_is_garbage(void **state) {
  (void)state;
  struct api *api = start(SHORT_BATCHES);
  struct set_up it = {.run.settings.clients = 20};
  assert_int_equal(set_up(&it, api), STATUS_UNREACHABLE);
  stop(api);
}

static void test_longest_user_id_fits(void **state) {
  (void)state;
  struct juggle_population population = {.prefix = "muster-ffffffff-", .prefix_len = 16};
  char id[JUGGLE_ID_MAX];
  assert_int_equal(juggle_user_id(&population, UINT32_MAX, id), 26);
  assert_memory_equal(id + 16, "4294967295", 10);
  assert_int_equal(juggle_user_id(&population, 0, id), 17);
}

static void test_group_is_made_in_chunks(void **state) {
  (void)state;
  struct api *api = start(GOOD);
  struct set_up it = {.run.settings = {.clients = 5200, .groups = 1}};
  assert_int_equal(set_up(&it, api), STATUS_OK);
  assert_int_equal(api->users, 5200);
  assert_int_equal(api->groups, 2);
  assert_int_equal(api->members, 5200);
  driver_juggle.release(&it.run);
  stop(api);
}

static void test_room_is_made(void **state) {
  (void)state;
  struct api *api = start(GOOD);
  struct set_up it = {.run.settings.room_members = 20};
  assert_int_equal(set_up(&it, api), STATUS_OK);
  const struct juggle_population *population = it.run.population;
  assert_int_equal(api->rooms, 1);
  assert_int_equal(api->groups, 0);
  assert_int_equal(api->bad_signatures, 0);
  assert_string_equal(population->room_id, "muster-0badcafe-room");
  driver_juggle.release(&it.run);
  stop(api);
}

static void test_server_without_rooms_is_told(void **state) {
  (void)state;
  struct api *api = start(NO_ROOMS);
  struct set_up it = {.run.settings.room_members = 20};
  assert_int_equal(set_up(&it, api), STATUS_UNREACHABLE);
  assert_non_null(strstr(it.err.text, "no chatrooms"));
  stop(api);
}

static void test_navigator_decides_where_to_connect(void **state) {
  (void)state;
  struct api *api = start(GOOD);
  char navigator[64];
  snprintf(navigator, sizeof(navigator), "http://127.0.0.1:%u/", api->port);
  struct set_up it = {.run.settings.navigator_url = navigator};
  assert_int_equal(set_up(&it, api), STATUS_OK);
  assert_string_equal(it.run.server_name, "127.0.0.2");
  driver_juggle.release(&it.run);
  stop(api);
}

static void test_a_timed_out_call_is_repeated(void **state) {
  (void)state;
  struct api *api = start(OVERLOADED_ONCE);
  struct set_up it = {0};
  assert_int_equal(set_up(&it, api), STATUS_OK);
  assert_int_equal(api->users, 20);
  driver_juggle.release(&it.run);
  stop(api);
}

static void refuse(enum conduct conduct, const char *path, int code, const char *part) {
  struct api *api = start(conduct);
  struct set_up it = {.run.settings.groups = 1};
  api->refused_path = path;
  api->refusal = code;
  assert_int_equal(set_up(&it, api), STATUS_UNREACHABLE);
  if (!strstr(it.err.text, part)) fail_msg("\"%s\" does not say \"%s\"", it.err.text, part);
  assert_null(it.run.population);
  stop(api);
}

static void test_refusals_say_how_to_mend(void **state) {
  (void)state;
  refuse(REFUSES, "/users/register", 10006, "MUSTER_APP_SECRET");
  refuse(REFUSES, "/users/register", 10005, "--app-key");
  refuse(REFUSES, "/groups/add", 13005, "max_grp_member_count");
  refuse(REFUSES, "/users/register", 10008, "overloaded");
  refuse(REFUSES, "/users/register", 99999, "99999");
}

static void test_garbage_is_one_clear_error(void **state) {
  (void)state;
  refuse(GARBAGE, "", 0, "without a JuggleIM answer");
  refuse(HTML, "", 0, "--api-url");
  refuse(NO_TOKEN, "", 0, "without a JuggleIM answer");
  refuse(CLOSES, "", 0, "cannot call the server's API");
  refuse(HUGE_ANSWER, "", 0, "cannot call the server's API");
}

static void test_silence_ends_at_the_deadline(void **state) {
  (void)state;
  struct api *api = start(SILENT);
  struct set_up it = {.run.settings.deadline_ns = clock_now_ns() + 300 * NS_PER_MS};
  assert_int_equal(set_up(&it, api), STATUS_UNREACHABLE);
  assert_true(it.err.text[0] != '\0');
  stop(api);
}

static void test_interruption_ends_it(void **state) {
  (void)state;
  struct api *api = start(SILENT);
  struct set_up it = {.interrupted = 1};
  assert_int_equal(set_up(&it, api), STATUS_INTERRUPTED);
  stop(api);
}

static void test_nobody_listens(void **state) {
  (void)state;
  struct api *api = start(GOOD);
  struct api gone = {.port = api->port};
  stop(api);
  struct set_up it = {0};
  assert_int_equal(set_up(&it, &gone), STATUS_UNREACHABLE);
  assert_non_null(strstr(it.err.text, "check that it runs"));
}

static void test_missing_credentials(void **state) {
  (void)state;
  struct driver_run run = {.driver = &driver_juggle, .settings = {.target = "ws://127.0.0.1:1", .clients = 2}};
  struct err err = {0};
  assert_int_equal(driver_juggle.prepare(&run, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "--app-key"));
  run.settings.app_key = "benchapp";
  assert_int_equal(driver_juggle.prepare(&run, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "MUSTER_APP_SECRET"));
  run.settings.secret = SECRET;
  run.settings.app_key = "bench\r\nX-Evil: 1";
  assert_int_equal(driver_juggle.prepare(&run, &err), STATUS_USAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_registers_everybody),
      cmocka_unit_test(test_registers_in_batches_where_it_can),
      cmocka_unit_test(test_an_answer_for_fewer_users_is_garbage),
      cmocka_unit_test(test_longest_user_id_fits),
      cmocka_unit_test(test_group_is_made_in_chunks),
      cmocka_unit_test(test_room_is_made),
      cmocka_unit_test(test_server_without_rooms_is_told),
      cmocka_unit_test(test_navigator_decides_where_to_connect),
      cmocka_unit_test(test_a_timed_out_call_is_repeated),
      cmocka_unit_test(test_refusals_say_how_to_mend),
      cmocka_unit_test(test_garbage_is_one_clear_error),
      cmocka_unit_test(test_silence_ends_at_the_deadline),
      cmocka_unit_test(test_interruption_ends_it),
      cmocka_unit_test(test_nobody_listens),
      cmocka_unit_test(test_missing_credentials),
  };
  return cmocka_run_group_tests_name("juggle_api", tests, NULL, NULL);
}
