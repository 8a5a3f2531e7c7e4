#include "measure/operations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void texts_with_numbers_are_one(void **state) {
  (void)state;
  struct refusals *r = calloc(1, sizeof *r), *other = calloc(1, sizeof *other);
  refusals_add(r, view_str("retry after 12ms"), 1);
  refusals_add(r, view_str("retry after 98ms"), 2);
  refusals_add(other, view_str("retry after 77ms"), 4);
  refusals_add(other, view_str("mailbox full\n"), 1);
  refusals_merge(r, other);
  assert_int_equal(r->used, 2);
  assert_string_equal(r->entry[0].text, "retry after ##ms");
  assert_int_equal(r->entry[0].count, 7);
  assert_string_equal(r->entry[1].text, "mailbox full?");
  free(r);
  free(other);
}

static void texts_are_bounded(void **state) {
  (void)state;
  struct refusals *r = calloc(1, sizeof *r);
  char text[400];
  for (int i = 0; i < 26 + 26; i++) {
    memset(text, i < 26 ? 'a' + i : 'A' + i - 26, sizeof text);
    refusals_add(r, view_of(text, sizeof text), 1);
  }
  assert_int_equal(r->used, REFUSALS_MAX);
  assert_int_equal(r->others, 52 - REFUSALS_MAX);
  assert_int_equal(strlen(r->entry[0].text), REFUSAL_TEXT_MAX - 1);
  free(r);
}

static void tallies_add_up(void **state) {
  (void)state;
  struct operation_tally *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
  a->attempted = 5, a->succeeded = 3, a->items = 7;
  b->attempted = 4, b->succeeded = 1, b->items_late = 2;
  codes_add(&b->failed, 507, 2);
  histogram_record(&b->clock, 1000000);
  operation_tally_merge(a, b);
  assert_int_equal(a->attempted, 9);
  assert_int_equal(a->succeeded, 4);
  assert_int_equal(a->items, 7);
  assert_int_equal(a->items_late, 2);
  assert_int_equal(codes_count(&a->failed, 507), 2);
  assert_int_equal(a->clock.count, 1);
  assert_int_equal(operation_unanswered(a), 3);
  free(a);
  free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_with_numbers_are_one),
      cmocka_unit_test(texts_are_bounded),
      cmocka_unit_test(tallies_add_up),
  };
  return cmocka_run_group_tests_name("measure.operations", tests, NULL, NULL);
}
