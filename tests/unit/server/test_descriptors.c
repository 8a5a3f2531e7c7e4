/* A thread's own table of open files: what it keeps, what it closes, and that the rest of the process keeps its own. */
#include "server/descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

struct seen {
  int keep[3];
  int other, opened;
  enum status status;
  bool kept[3], other_open;
};

static bool is_open(int fd) {
  return fcntl(fd, F_GETFD) != -1;
}

static void *own_table(void *context) {
  struct seen *seen = context;
  struct err err;
  seen->status = descriptors_own(seen->keep, 3, &err);
  for (int i = 0; i < 3; i++)
    seen->kept[i] = is_open(seen->keep[i]);
  seen->other_open = is_open(seen->other);
  seen->opened = dup(seen->keep[0]);
  return NULL;
}

static void a_table_keeps_what_it_is_told_to(void **state) {
  (void)state;
  close_range(3, ~0U, 0); /* what the test runner left open would be free in the thread's table */
  struct seen seen = {.other = open("/dev/null", O_RDONLY)};
  for (int i = 0; i < 3; i++) {
    seen.keep[2 - i] = open("/dev/null", O_RDONLY); /* in falling order */
    close(open("/dev/null", O_RDONLY));
  }
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, own_table, &seen), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(seen.status, STATUS_OK);
  for (int i = 0; i < 3; i++)
    assert_true(seen.kept[i]);
  assert_false(seen.other_open);
  assert_true(is_open(seen.other));
  assert_int_equal(seen.opened, seen.other); /* free in the thread's table, taken in ours */
  close(seen.other);
  for (int i = 0; i < 3; i++) {
    assert_true(is_open(seen.keep[i]));
    close(seen.keep[i]);
  }
}

static void too_many_are_refused(void **state) {
  (void)state;
  const int keep[DESCRIPTORS_KEEP_MAX + 1] = {0};
  struct err err;
  assert_int_equal(descriptors_own(keep, DESCRIPTORS_KEEP_MAX + 1, &err), STATUS_USAGE);
}

static void gateways_follow_from_the_limit(void **state) {
  (void)state;
  assert_int_equal(descriptors_gateways(0, 1024), 1);
  assert_int_equal(descriptors_gateways(descriptors_connections(1024), 1024), 1);
  assert_int_equal(descriptors_gateways(descriptors_connections(1024) + 1, 1024), 2);
  uint32_t many = descriptors_gateways(1000000, 20000);
  assert_in_range(many, 51, 54);
  assert_true(descriptors_gateways(100, 8) >= 100); /* hopeless, but no division by zero */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_table_keeps_what_it_is_told_to),
      cmocka_unit_test(too_many_are_refused),
      cmocka_unit_test(gateways_follow_from_the_limit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
