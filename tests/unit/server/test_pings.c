/* When a session is asked by Ping: intervals, and who is passed over. */
#include "server/pings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct ping_rule automatic = {.read_deadline_ms = 60000};

static void stretches_with_the_sessions(void **state) {
  (void)state;
  assert_int_equal(ping_interval_ns(&automatic, 0), 5000 * NS_PER_MS);
  assert_int_equal(ping_interval_ns(&automatic, 25000), 5000 * NS_PER_MS);
  assert_int_equal(ping_interval_ns(&automatic, 100000), 20000 * NS_PER_MS); /* 5,000 a second */
  assert_int_equal(ping_interval_ns(&automatic, 200000), 40000 * NS_PER_MS);
  assert_int_equal(ping_interval_ns(&automatic, 1000000), 40000 * NS_PER_MS); /* two thirds of the deadline */
  struct ping_rule asked = {.asked_ms = 700, .read_deadline_ms = 60000};
  assert_int_equal(ping_interval_ns(&asked, 1000000), 700 * NS_PER_MS);
}

static void passes_over_who_was_heard(void **state) {
  (void)state;
  uint64_t interval_ns = 20000 * NS_PER_MS, now_ns = 100000 * NS_PER_MS, next_ns = 0;
  assert_true(ping_passes_over(&automatic, interval_ns, 90000 * NS_PER_MS, now_ns, &next_ns));
  assert_int_equal(next_ns, 110000 * NS_PER_MS); /* an interval after it was heard */
  assert_false(ping_passes_over(&automatic, interval_ns, 80000 * NS_PER_MS, now_ns, &next_ns));
  assert_int_equal(next_ns, now_ns + interval_ns);
  assert_true(ping_passes_over(&automatic, interval_ns, 80000 * NS_PER_MS + 1, now_ns, &next_ns));
  assert_true(next_ns > now_ns);
}

/* Few sessions, or an interval that somebody asked for: a Ping each interval, whoever says what. */
static void asks_everybody_where_nothing_is_stretched(void **state) {
  (void)state;
  uint64_t now_ns = 100000 * NS_PER_MS, next_ns = 0;
  struct ping_rule asked = {.asked_ms = 20000, .read_deadline_ms = 60000};
  assert_false(ping_passes_over(&asked, 20000 * NS_PER_MS, now_ns, now_ns, &next_ns));
  assert_int_equal(next_ns, 120000 * NS_PER_MS);
  assert_false(ping_passes_over(&automatic, 5000 * NS_PER_MS, now_ns, now_ns, &next_ns));
  assert_int_equal(next_ns, 105000 * NS_PER_MS);
}

/* Whoever falls silent is asked so early that an answer can come within the read deadline. */
static void asks_the_silent_in_time(void **state) {
  (void)state;
  for (uint64_t sessions = 0; sessions < 2000000; sessions += 7919) {
    uint64_t interval_ns = ping_interval_ns(&automatic, sessions), heard_ns = 1000 * NS_PER_MS, next_ns = 0;
    uint64_t turn_ns = heard_ns + interval_ns - 1; /* its turn comes just before that */
    while (ping_passes_over(&automatic, interval_ns, heard_ns, turn_ns, &next_ns))
      turn_ns = next_ns;
    assert_true(turn_ns <= heard_ns + interval_ns);
    assert_true(turn_ns < heard_ns + automatic.read_deadline_ms * NS_PER_MS);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stretches_with_the_sessions),
      cmocka_unit_test(passes_over_who_was_heard),
      cmocka_unit_test(asks_everybody_where_nothing_is_stretched),
      cmocka_unit_test(asks_the_silent_in_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
