#include "base/arena.h"
#include "base/buf.h"
#include "base/rng.h"
#include "base/shm.h"
#include "base/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Random appends and takes against a plain array. */
static void buf_keeps_bytes_in_order(void **state) {
  (void)state;
  static uint8_t model[1 << 20];
  size_t from = 0, to = 0;
  struct buf buf = {0};
  struct rng rng;
  rng_seed(&rng, 9);
  while (to + 700 < sizeof model) {
    size_t add = rng_below(&rng, 700);
    for (size_t i = 0; i < add; i++)
      model[to + i] = (uint8_t)rng_next(&rng);
    assert_true(buf_append(&buf, model + to, add));
    to += add;
    size_t take = rng_below(&rng, to - from + 1);
    buf_consume(&buf, take);
    from += take;
    assert_int_equal(buf.len, to - from);
    assert_true(buf.len <= buf.cap);
    if (buf.len) assert_memory_equal(buf.data, model + from, buf.len);
  }
  buf_consume(&buf, SIZE_MAX);
  assert_int_equal(buf.len, 0);
  buf_free(&buf);
  assert_null(buf.data);
  buf_consume(&buf, 1);
  assert_true(buf_append(&buf, "x", 1));
  buf_free(&buf);
}

static void buf_trims_to_what_it_holds(void **state) {
  (void)state;
  struct buf buf = {0};
  assert_true(buf_append(&buf, "abc", 3));
  assert_true(buf.cap > 3);
  buf_trim(&buf);
  assert_int_equal(buf.cap, 3);
  assert_true(buf_append(&buf, "defg", 4));
  assert_int_equal(buf.len, 7);
  assert_memory_equal(buf.data, "abcdefg", 7);
  buf_consume(&buf, 7);
  buf_trim(&buf);
  assert_null(buf.data);
  assert_int_equal(buf.cap, 0);
}

static void buf_refuses_to_grow_past_its_limit(void **state) {
  (void)state;
  struct buf buf = {0};
  assert_true(buf_append(&buf, "abc", 3));
  assert_null(buf_reserve(&buf, (size_t)1 << 31));
  assert_null(buf_reserve(&buf, SIZE_MAX));
  assert_false(buf_append(&buf, "abc", SIZE_MAX - 1));
  assert_int_equal(buf.len, 3);
  assert_memory_equal(buf.data, "abc", 3);
  buf_free(&buf);
}

static void arena_gives_zeroed_memory_apart(void **state) {
  (void)state;
  struct arena arena = {0};
  struct rng rng;
  rng_seed(&rng, 4);
  for (int round = 0; round < 3; round++) {
    struct {
      uint8_t *data;
      size_t len;
    } given[400];
    for (size_t i = 0; i < 400; i++) {
      given[i].len = i % 40 == 0 ? 100000 : rng_below(&rng, 900);
      given[i].data = arena_alloc(&arena, given[i].len);
      assert_non_null(given[i].data);
      assert_int_equal((uintptr_t)given[i].data % 16, 0);
      for (size_t k = 0; k < given[i].len; k++)
        assert_true(given[i].data[k] == 0);
      memset(given[i].data, (int)(i % 255 + 1), given[i].len);
    }
    for (size_t i = 0; i < 400; i++) {
      for (size_t k = 0; k < given[i].len; k++)
        assert_true(given[i].data[k] == i % 255 + 1);
    }
    arena_reset(&arena);
  }
  assert_null(arena_alloc(&arena, SIZE_MAX));
  assert_string_equal(arena_text(&arena, "word", 3), "wor");
  assert_string_equal(arena_text(&arena, NULL, 0), "");
  arena_free(&arena);
  arena_reset(&arena);
}

static void shm_is_shared_with_a_fork(void **state) {
  (void)state;
  void *memory;
  assert_int_equal(shm_map(&memory, 1 << 20, NULL), STATUS_OK);
  int *number = memory;
  assert_int_equal(number[1000], 0);
  pid_t child = fork();
  if (child == 0) {
    number[1000] = 42;
    _exit(0);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(number[1000], 42);
  shm_unmap(memory, 1 << 20);
  shm_unmap(NULL, 5);
}

static void shm_says_when_there_is_none(void **state) {
  (void)state;
  void *memory = NULL;
  struct err err;
  assert_int_equal(shm_map(&memory, SIZE_MAX / 2, &err), STATUS_MEMORY);
  assert_non_null(strstr(err.text, "shared memory"));
  assert_null(memory);
}

static void views_compare_by_content(void **state) {
  (void)state;
  assert_true(view_is(view_of("abcd", 3), "abc"));
  assert_false(view_is(view_of("abcd", 4), "abc"));
  assert_true(view_equal(view_of(NULL, 0), view_str("")));
  assert_false(view_equal(view_str("ab"), view_str("ac")));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(buf_keeps_bytes_in_order),
      cmocka_unit_test(buf_trims_to_what_it_holds),
      cmocka_unit_test(buf_refuses_to_grow_past_its_limit),
      cmocka_unit_test(arena_gives_zeroed_memory_apart),
      cmocka_unit_test(shm_is_shared_with_a_fork),
      cmocka_unit_test(shm_says_when_there_is_none),
      cmocka_unit_test(views_compare_by_content),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
