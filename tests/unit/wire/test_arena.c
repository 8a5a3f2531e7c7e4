#include "juggle.pb-c.h"
#include "unit/wire/vectors.h"
#include "wire/pb.h"
#include "wire/pb_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_unpack_into_an_arena(void **state) {
  (void)state;
  struct view m1 = vector_bytes("M1");
  struct arena arena = {0};
  struct pb_arena pb;
  pb_arena_init(&pb, &arena, 64 * 1024);
  Juggle__DownMsg *msg = juggle__down_msg__unpack(&pb.allocator, m1.len, m1.data);
  assert_non_null(msg);
  assert_string_equal(msg->receiver_info->nickname, "Bob");
  assert_true(pb.left_bytes < 64 * 1024);
  arena_free(&arena);
  free((void *)m1.data);
}

/* Whatever the budget, unpacking ends in a whole message or in NULL. */
static void test_budget_is_kept(void **state) {
  (void)state;
  struct view m1 = vector_bytes("M1");
  struct arena arena = {0};
  bool refused = false, granted = false;
  for (size_t budget = 0; budget < 4096; budget += 8) {
    struct pb_arena pb;
    pb_arena_init(&pb, &arena, budget);
    Juggle__DownMsg *msg = juggle__down_msg__unpack(&pb.allocator, m1.len, m1.data);
    refused = refused || !msg;
    granted = granted || msg;
    assert_true(pb.left_bytes <= budget);
    if (msg) assert_string_equal(msg->sender_info->user_id, "alice");
    arena_reset(&arena);
  }
  assert_true(refused && granted);
  arena_free(&arena);
  free((void *)m1.data);
}

/* Two bytes on the wire, hundreds in memory: the budget stops it. */
static void test_amplification_is_refused(void **state) {
  (void)state;
  enum { EMPTY_MESSAGES = 100000 };
  uint8_t *bytes = malloc(2 * EMPTY_MESSAGES);
  assert_non_null(bytes);
  for (size_t i = 0; i < EMPTY_MESSAGES; i++) {
    bytes[2 * i] = 0x0a;
    bytes[2 * i + 1] = 0;
  }
  struct arena arena = {0};
  struct pb_arena pb;
  pb_arena_init(&pb, &arena, 1024 * 1024);
  assert_null(juggle__down_msg_set__unpack(&pb.allocator, 2 * EMPTY_MESSAGES, bytes));
  arena_free(&arena);
  free(bytes);
}

/* A quote of a quote of a quote ...: as deep as the frame is long, and no deeper than one level here. */
static void test_nested_quotes_do_not_recurse(void **state) {
  (void)state;
  enum { DEPTH = 100000, REFER_MSG = 16, ROOM = 8 };
  uint8_t *bytes = malloc((size_t)DEPTH * ROOM);
  assert_non_null(bytes);
  uint8_t *at = bytes + (size_t)DEPTH * ROOM;
  size_t len = 0;
  for (int i = 0; i < DEPTH; i++) {
    uint8_t *start = at - pb_bytes_head_size(REFER_MSG, len);
    pb_write_bytes_head(start, REFER_MSG, len);
    len += (size_t)(at - start);
    at = start;
  }
  struct arena arena = {0};
  struct pb_arena pb;
  pb_arena_init(&pb, &arena, 16 * 1024 * 1024);
  Juggle__DownMsg *msg = juggle__down_msg__unpack(&pb.allocator, len, at);
  assert_non_null(msg);
  assert_true(msg->refer_msg.len > DEPTH);
  arena_free(&arena);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unpack_into_an_arena),
      cmocka_unit_test(test_budget_is_kept),
      cmocka_unit_test(test_amplification_is_refused),
      cmocka_unit_test(test_nested_quotes_do_not_recurse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
