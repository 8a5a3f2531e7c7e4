#include "server/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void add(struct timeline *timeline, int64_t id, uint32_t conversation) {
  timeline_add(timeline, &(struct place){.time_ms = 1000 + id, .id = id, .conversation = conversation});
}

static void a_round_is_in_order(void **state) {
  (void)state;
  struct timeline timeline;
  assert_true(timeline_open(&timeline));
  for (int64_t id = 1; id <= TIMELINE_ROUND; id++) {
    timeline_seal(&timeline); /* does nothing before it is full */
    add(&timeline, id, (uint32_t)(id % 7 + 1));
  }
  struct place place, before = {0};
  assert_false(timeline_next(&timeline, &place));
  timeline_seal(&timeline);
  assert_int_equal(timeline.round_newest, TIMELINE_ROUND);
  assert_int_equal(timeline.gathered, 0);
  uint32_t count = 0;
  while (timeline_next(&timeline, &place)) {
    assert_true(place.conversation >= before.conversation);
    if (place.conversation == before.conversation) assert_true(place.time_ms > before.time_ms);
    assert_int_equal(place.time_ms, 1000 + place.id);
    before = place;
    count++;
  }
  assert_int_equal(count, TIMELINE_ROUND);
  timeline_free(&timeline);
}

static uint32_t take_all(struct timeline *timeline, uint32_t conversation) {
  struct place place;
  uint32_t at = 0, count = 0;
  while (timeline_take(timeline, conversation, &at, &place)) {
    assert_int_equal(place.conversation, conversation);
    count++;
  }
  return count;
}

static void a_conversation_is_taken_once(void **state) {
  (void)state;
  struct timeline timeline;
  assert_true(timeline_open(&timeline));
  for (int64_t id = 1; id <= TIMELINE_ROUND; id++)
    add(&timeline, id, id % 4 ? 1 : 2);
  assert_int_equal(take_all(&timeline, 3), 0);
  timeline_seal(&timeline);
  add(&timeline, TIMELINE_ROUND + 1, 2);
  add(&timeline, TIMELINE_ROUND + 2, 1);
  struct place place;
  assert_true(timeline_next(&timeline, &place));
  assert_int_equal(place.conversation, 1);
  assert_int_equal(take_all(&timeline, 2), TIMELINE_ROUND / 4 + 1);
  assert_int_equal(take_all(&timeline, 2), 0);
  uint32_t rest = 0;
  for (; timeline_next(&timeline, &place); rest++)
    assert_int_equal(place.conversation, 1);
  assert_int_equal(rest, TIMELINE_ROUND / 4 * 3 - 1);
  assert_int_equal(take_all(&timeline, 1), 1);
  timeline_free(&timeline);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_round_is_in_order),
      cmocka_unit_test(a_conversation_is_taken_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
