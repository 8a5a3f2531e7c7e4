#include "base/rng.h"
#include "server/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { NAMES = 3000 };

struct named {
  struct view key;
  char name[16];
  bool inside;
};

static void bytes_come_and_go(void **state) {
  (void)state;
  struct named *all = calloc(NAMES, sizeof *all);
  assert_non_null(all);
  for (int i = 0; i < NAMES; i++) {
    snprintf(all[i].name, sizeof all[i].name, "%d", i);
    all[i].key = view_str(all[i].name);
  }
  struct table table;
  table_open(&table);
  assert_null(table_find(&table, view_str("1")));
  table_remove(&table, view_str("1"));
  struct rng rng;
  rng_seed(&rng, 3);
  uint32_t count = 0;
  for (int step = 0; step < 60000; step++) {
    struct named *one = &all[rng_below(&rng, NAMES)];
    if (one->inside)
      table_remove(&table, one->key);
    else
      assert_true(table_insert(&table, (struct table_entry *)one));
    count += one->inside ? UINT32_MAX : 1;
    one->inside = !one->inside;
    assert_int_equal(table.count, count);
    if (step % 1000) continue;
    for (int i = 0; i < NAMES; i++)
      assert_ptr_equal(table_find(&table, all[i].key), all[i].inside ? &all[i] : NULL);
  }
  table_free(&table);
  free(all);
}

static void long_keys_and_empty_ones(void **state) {
  (void)state;
  struct table table;
  table_open(&table);
  struct table_entry empty = {view_of(NULL, 0)}, zero = {view_of("\0", 1)};
  char text[200] = {0};
  struct table_entry text_entry = {view_of(text, sizeof text)};
  assert_true(table_insert(&table, &empty));
  assert_true(table_insert(&table, &zero));
  assert_true(table_insert(&table, &text_entry));
  assert_ptr_equal(table_find(&table, view_of("", 0)), &empty);
  assert_ptr_equal(table_find(&table, view_of("\0", 1)), &zero);
  assert_null(table_find(&table, view_of(text, sizeof text - 1)));
  assert_ptr_equal(table_find(&table, view_of(text, sizeof text)), &text_entry);
  table_free(&table);
}

static void numbers_come_and_go(void **state) {
  (void)state;
  struct number_table table = {0};
  static char values[NAMES];
  static bool inside[NAMES];
  assert_null(number_table_find(&table, 1));
  struct rng rng;
  rng_seed(&rng, 5);
  for (int step = 0; step < 60000; step++) {
    uint64_t key = rng_below(&rng, NAMES);
    if (inside[key])
      number_table_remove(&table, key << 32);
    else
      assert_true(number_table_put(&table, key << 32, &values[key]));
    inside[key] = !inside[key];
    if (step % 1000) continue;
    for (uint64_t i = 0; i < NAMES; i++)
      assert_ptr_equal(number_table_find(&table, i << 32), inside[i] ? &values[i] : NULL);
  }
  assert_true(number_table_put(&table, 7, &values[0]));
  uint32_t count = table.count;
  assert_true(number_table_put(&table, 7, &values[1]));
  assert_int_equal(table.count, count);
  assert_ptr_equal(number_table_find(&table, 7), &values[1]);
  number_table_free(&table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_come_and_go),
      cmocka_unit_test(long_keys_and_empty_ones),
      cmocka_unit_test(numbers_come_and_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
