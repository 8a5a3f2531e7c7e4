#include "cli/muster_unread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void parse(const char *const *words, int count, struct run_arguments *out) {
  struct err err = {0};
  if (run_arguments_parse(count, (char **)(uintptr_t)words, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static enum status check(const char *option, const char *target, const char *driver, struct err *err) {
  const char *const words[] = {"private", "--target", target, option};
  struct run_arguments arguments;
  parse(words, 4, &arguments);
  enum status status = unread_check(&arguments, driver_find(driver), err);
  run_arguments_free(&arguments);
  return status;
}

static void drivers_read_options_that_there_are(void **state) {
  (void)state;
  for (const struct driver *const *driver = driver_all(); *driver; driver++) {
    assert_non_null((*driver)->options);
    for (const struct driver_option *at = (*driver)->options; at->name; at++) {
      if (option_find(at->name) == OPTION_NONE) fail_msg("%s reads --%s, which is none", (*driver)->name, at->name);
      bool once = true;
      for (const struct driver_option *other = (*driver)->options; other != at; other++)
        once = once && strcmp(other->name, at->name) != 0;
      assert_true(once);
    }
  }
}

static void schemes_decide(void **state) {
  (void)state;
  struct err err = {0};
  assert_int_equal(check("--insecure", "mqtts://127.0.0.1", "mqtt", &err), STATUS_OK);
  assert_int_equal(check("--insecure", "mqtt+wss://127.0.0.1", "mqtt", &err), STATUS_OK);
  assert_int_equal(check("--insecure", "mqtt://127.0.0.1", "mqtt", &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "mqtts"));
  assert_int_equal(check("--origin=a", "mqtt+ws://127.0.0.1", "mqtt", &err), STATUS_OK);
  assert_int_equal(check("--origin=a", "mqtts://127.0.0.1", "mqtt", &err), STATUS_USAGE);
  assert_int_equal(check("--insecure", "wss://127.0.0.1", "shootout-json", &err), STATUS_OK);
  assert_int_equal(check("--insecure", "ricochet://127.0.0.1", "ricochet", &err), STATUS_USAGE);
}

/* Receivers of a backlog, and sessions that are to be forgotten, visit the broker so many at a time. */
static void visits_have_a_concurrency(void **state) {
  (void)state;
  struct err err = {0};
  assert_int_equal(check("--setup-concurrency=50", "mqtt://127.0.0.1", "mqtt", &err), STATUS_OK);
  assert_int_equal(check("--setup-concurrency=50", "nats://127.0.0.1", "nats", &err), STATUS_USAGE);
}

/* JuggleIM's set-up API and navigator have URLs of their own. */
static void any_url_of_the_run_decides(void **state) {
  (void)state;
  const char *const words[] = {
      "private", "--target", "ws://127.0.0.1:1", "--insecure", "--api-url", "https://127.0.0.1:2/apigateway"};
  struct run_arguments arguments;
  struct err err = {0};
  parse(words, 6, &arguments);
  assert_int_equal(unread_check(&arguments, driver_find("juggle"), &err), STATUS_OK);
  arguments.workload.api_url = "http://127.0.0.1:2/apigateway";
  assert_int_equal(unread_check(&arguments, driver_find("juggle"), &err), STATUS_USAGE);
  run_arguments_free(&arguments);
}

static void variants_are_named_once(void **state) {
  (void)state;
  char list[DRIVERS_LIST_MAX];
  assert_true(unread_by_some("origin", list));
  assert_string_equal(list, "mqtt, shootout, socketio, stomp");
  assert_false(unread_by_some("clients", list));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(drivers_read_options_that_there_are),
      cmocka_unit_test(schemes_decide),
      cmocka_unit_test(visits_have_a_concurrency),
      cmocka_unit_test(any_url_of_the_run_decides),
      cmocka_unit_test(variants_are_named_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
