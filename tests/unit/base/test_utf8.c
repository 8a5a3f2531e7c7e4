#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool valid(const char *text) {
  return utf8_valid(view_str(text));
}

static void texts_are_valid(void **state) {
  (void)state;
  assert_true(utf8_valid((struct view){0}));
  assert_true(utf8_valid(view_of("a\0b", 3)));
  assert_true(valid("plain and longer than one word"));
  assert_true(valid("\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"));
}

static void what_is_no_utf8_is_not(void **state) {
  (void)state;
  static const char *const wrong[] = {"\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
      "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xc3(", "seven..\xe2\x82", "\xf0\x9f\x98"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_false(valid(wrong[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_valid),
      cmocka_unit_test(what_is_no_utf8_is_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
