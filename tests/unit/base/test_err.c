#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void tells_status_and_text(void **state) {
  (void)state;
  struct err err;
  assert_int_equal(err_set(&err, STATUS_IO, "cannot read %s: %d", "x", 5), STATUS_IO);
  assert_int_equal(err.status, STATUS_IO);
  assert_string_equal(err.text, "cannot read x: 5");
  assert_int_equal(err_set(NULL, STATUS_TIMEOUT, "nobody listens"), STATUS_TIMEOUT);
}

static void puts_context_in_front(void **state) {
  (void)state;
  struct err err;
  err_set(&err, STATUS_PROTOCOL, "bad length");
  assert_int_equal(err_prefix(&err, "line %d", 3), STATUS_PROTOCOL);
  assert_int_equal(err_prefix(&err, "file.hlog"), STATUS_PROTOCOL);
  assert_string_equal(err.text, "file.hlog: line 3: bad length");
}

static void cuts_what_is_too_long(void **state) {
  (void)state;
  char longest[2000];
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  struct err err;
  err_set(&err, STATUS_IO, "%s", longest);
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
  err_prefix(&err, "front");
  assert_int_equal(strlen(err.text), sizeof err.text - 1);
  assert_memory_equal(err.text, "front: xxx", 10);
  /* Context that leaves no room, or only a little, for the message. */
  for (int len = (int)sizeof err.text - 5; len < (int)sizeof err.text + 5; len++) {
    err_set(&err, STATUS_IO, "message");
    assert_int_equal(err_prefix(&err, "%.*s", len, longest), STATUS_IO);
    assert_in_range(strlen(err.text), sizeof err.text - 5, sizeof err.text - 1);
  }
}

static void stays_one_line(void **state) {
  (void)state;
  struct err err;
  err_set(&err, STATUS_USAGE, "%s: cannot open", "a\nb\x1b[2J\x7f\t\xc2\x9b\xc3\xa9");
  assert_string_equal(err.text, "a?b?[2J????\xc3\xa9: cannot open");
  err_prefix(&err, "--observe %s", "c\r\nd");
  assert_string_equal(err.text, "--observe c??d: a?b?[2J????\xc3\xa9: cannot open");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tells_status_and_text),
      cmocka_unit_test(puts_context_in_front),
      cmocka_unit_test(cuts_what_is_too_long),
      cmocka_unit_test(stays_one_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
