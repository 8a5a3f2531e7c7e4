// room: driver
/* Visits that come to nothing: nobody listens, nobody answers, and the user has had enough. Those that succeed are
 * tested against real brokers. */
#include "driver/plans.h"
#include "driver/target.h"
#include "driver/visit.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* A port that takes connections (or refuses them) and never says a word. */
static int open_port(bool listens, char url[64]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof address;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
  if (listens) assert_int_equal(listen(fd, 16), 0);
  snprintf(url, 64, "mqtt://127.0.0.1:%d", ntohs(address.sin_port));
  return fd;
}

static enum status visit(bool listens, const volatile int *interrupted, uint64_t limit_ns, struct err *err) {
  char url[64];
  int fd = open_port(listens, url);
  struct driver_run run = {.driver = &driver_mqtt, .capabilities = driver_mqtt.capabilities};
  run.settings = (struct driver_settings){.target = url,
      .clients = 4,
      .pure_senders = 1,
      .backlog = true,
      .setup_concurrency = 2,
      .mqtt = {.qos = 1},
      .interrupted = interrupted};
  assert_int_equal(url_parse(url, &run.settings.url, err), STATUS_OK);
  assert_int_equal(mqtt_make_plan(&run, err), STATUS_OK);
  enum status status = visit_to_be_known(&run, 1, 4, clock_now_ns() + limit_ns, err);
  target_release(&run);
  close(fd);
  return status;
}

static void test_nobody_listens(void **state) {
  (void)state;
  struct err err = {0};
  assert_int_equal(visit(false, NULL, 10 * NS_PER_SEC, &err), STATUS_UNREACHABLE);
  if (!strstr(err.text, "does not let client 1 in") && !strstr(err.text, "does not let client 2 in")) {
    fail_msg("%s", err.text);
  }
  assert_non_null(strstr(err.text, "connect_refused"));
}

static void test_nobody_answers(void **state) {
  (void)state;
  struct err err = {0};
  assert_int_equal(visit(true, NULL, 100 * NS_PER_MS, &err), STATUS_UNREACHABLE);
  assert_non_null(strstr(err.text, "0 of 3 clients"));
  assert_non_null(strstr(err.text, "--setup-timeout"));
}

static void test_interrupted(void **state) {
  (void)state;
  struct err err = {0};
  const volatile int interrupted = 1;
  assert_int_equal(visit(true, &interrupted, 10 * NS_PER_SEC, &err), STATUS_INTERRUPTED);
}

/* Lets everybody in but the first, one after the other, until nobody is left. */
static void serve_visits(int fd, int visits) {
  static const uint8_t connack[] = {0x20, 3, 0, 0, 0};
  uint8_t bytes[512];
  for (int i = 0; i < visits; i++) {
    int peer = accept(fd, NULL, NULL);
    if (peer < 0 || read(peer, bytes, sizeof bytes) <= 0) _exit(1);
    if (i > 0 && write(peer, connack, sizeof connack) != sizeof connack) _exit(1);
    if (i > 0 && read(peer, bytes, sizeof bytes) < 0) _exit(1); /* the good-bye */
    close(peer);
  }
  _exit(0);
}

static uint32_t forget(const char *url, const volatile int *interrupted) {
  struct err err = {0};
  struct driver_run run = {.driver = &driver_mqtt, .capabilities = driver_mqtt.capabilities};
  run.settings = (struct driver_settings){.target = url,
      .clients = 6,
      .pure_senders = 1,
      .backlog = true,
      .setup_concurrency = 2,
      .mqtt = {.qos = 1},
      .interrupted = interrupted};
  assert_int_equal(url_parse(url, &run.settings.url, &err), STATUS_OK);
  assert_int_equal(mqtt_make_plan(&run, &err), STATUS_OK);
  uint32_t behind = visit_to_be_forgotten(&run, 1, 6, clock_now_ns() + 60 * NS_PER_SEC);
  target_release(&run);
  return behind;
}

static void test_one_who_is_not_let_in_is_alone(void **state) {
  (void)state;
  char url[64];
  const volatile int interrupted = 1; /* the run was: what it left is taken away all the same */
  int result, fd = open_port(true, url);
  pid_t server = fork();
  assert_true(server >= 0);
  if (server == 0) serve_visits(fd, 5);
  close(fd);
  assert_int_equal(forget(url, &interrupted), 1);
  assert_int_equal(waitpid(server, &result, 0), server);
  assert_int_equal(result, 0);
}

static void test_nobody_can_be_forgotten(void **state) {
  (void)state;
  char url[64];
  int fd = open_port(false, url);
  assert_int_equal(forget(url, NULL), 5);
  close(fd);
}

static void test_a_second_interrupt_ends_the_forgetting(void **state) {
  (void)state;
  char url[64];
  const volatile int interrupted = 2;
  int fd = open_port(true, url);
  assert_int_equal(forget(url, &interrupted), 5);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nobody_listens),
      cmocka_unit_test(test_nobody_answers),
      cmocka_unit_test(test_interrupted),
      cmocka_unit_test(test_one_who_is_not_let_in_is_alone),
      cmocka_unit_test(test_nobody_can_be_forgotten),
      cmocka_unit_test(test_a_second_interrupt_ends_the_forgetting),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
