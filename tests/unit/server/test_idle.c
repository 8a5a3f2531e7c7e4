/* What an idle session costs in user space (architecture.md, Budgets), and that a closed one costs nothing. */
#include "support/test_client.h"

#include <malloc.h>
#include <sys/resource.h>

enum { SESSIONS = 2000, BUDGET_BYTES = 512 };

static struct test_server server;

static int stop(void **state) {
  (void)state;
  test_server_remove(&server);
  return 0;
}

static size_t allocated(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

static void log_in_all(struct test_client *clients, const char *token) {
  for (int i = 0; i < SESSIONS; i++) {
    assert_int_equal(test_try_login(&clients[i], server.config.ws_port, token, "Web", i % 2), JUGGLE_OK);
    buf_free(&clients[i].in);
    clients[i].consumed = 0;
  }
}

static void wait_for_sessions(const char *pattern) {
  for (int i = 0; i < 500; i++) {
    int status;
    char *text = test_http(server.config.ws_port, "GET", "/metrics", NULL, NULL, &status);
    bool reached = strstr(text, pattern) != NULL;
    free(text);
    if (reached) return;
    usleep(10000);
  }
  fail_msg("the metrics never said %s", pattern);
}

/* The core's side of a session is part of what is measured. */
static void idle_sessions_keep_to_the_budget(void **state) {
  (void)state;
  if (allocated() == 0) skip(); /* a sanitizer's allocator, which counts nothing here */
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2 * SESSIONS + 100) skip();
  test_server_prepare(&server);
  test_server_start(&server);
  char token[JUGGLE_TOKEN_MAX];
  test_register(&server, "alice", token);
  static struct test_client clients[SESSIONS];
  size_t before = allocated();
  log_in_all(clients, token);
  size_t used = allocated() - before;
  print_message("%zu bytes for each idle session\n", used / SESSIONS);
  assert_true(used / SESSIONS <= BUDGET_BYTES);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < SESSIONS; i++)
      test_close(&clients[i]);
    wait_for_sessions("\"sessions\":0");
    log_in_all(clients, token);
  }
  /* Slots are used again: three rounds cost what one did. */
  assert_true(allocated() - before <= used + used / 4);
  for (int i = 0; i < SESSIONS; i++)
    test_close(&clients[i]);
}

int main(void) {
  mallopt(M_ARENA_MAX, 1); /* mallinfo2 sees one arena only */
  const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(idle_sessions_keep_to_the_budget, stop)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
