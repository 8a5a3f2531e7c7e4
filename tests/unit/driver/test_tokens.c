/* The queue of tokens against a plain list, across its growth and its return to nothing. */
#include "driver/tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_order(void **state) {
  (void)state;
  struct tokens tokens = {0};
  uint32_t in = 0, out = 0, token;
  for (int round = 0; round < 200; round++) {
    for (int i = 0; i < round % 37; i++)
      assert_true(tokens_push(&tokens, in++));
    for (int i = 0; i < round % 31 && out < in; i++) {
      assert_true(tokens_pop(&tokens, &token));
      assert_int_equal(token, out++);
    }
    assert_int_equal(tokens.count, in - out);
  }
  while (tokens_pop(&tokens, &token))
    assert_int_equal(token, out++);
  assert_int_equal(out, in);
  assert_null(tokens.more);
}

static void test_idle_needs_no_memory(void **state) {
  (void)state;
  struct tokens tokens = {0};
  uint32_t token;
  assert_false(tokens_pop(&tokens, &token));
  for (uint32_t i = 0; i < TOKENS_INLINE; i++)
    assert_true(tokens_push(&tokens, i));
  assert_null(tokens.more);
  assert_true(tokens_push(&tokens, 9));
  assert_non_null(tokens.more);
  tokens_free(&tokens);
  assert_null(tokens.more);
  assert_int_equal(tokens.count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_order),
      cmocka_unit_test(test_idle_needs_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
