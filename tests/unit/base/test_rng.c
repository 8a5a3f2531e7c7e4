#include "base/rng.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define DRAWS 100000

static void repeats_from_the_same_seed(void **state) {
  (void)state;
  struct rng a, b, c;
  rng_seed(&a, 42);
  rng_seed(&b, 42);
  rng_seed(&c, 43);
  int equal_to_other_seed = 0;
  for (int i = 0; i < DRAWS; i++) {
    uint64_t drawn = rng_next(&a);
    assert_int_equal(drawn, rng_next(&b));
    equal_to_other_seed += drawn == rng_next(&c);
  }
  assert_int_equal(equal_to_other_seed, 0);
}

/* The algorithm's first output from a state of 1, 2, 3, 4, worked out by hand: rotl(1 + 4, 23) + 1. */
static void is_xoshiro256_plus_plus(void **state) {
  (void)state;
  struct rng rng = {{1, 2, 3, 4}};
  assert_int_equal(rng_next(&rng), (UINT64_C(5) << 23) + 1);
}

static void stays_below_its_bound_and_reaches_all(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 1);
  int seen[7] = {0};
  double sum = 0;
  for (int i = 0; i < DRAWS; i++) {
    uint64_t drawn = rng_below(&rng, 7);
    assert_true(drawn < 7);
    seen[drawn]++;
    double d = rng_double(&rng);
    assert_true(d >= 0 && d < 1);
    sum += d;
  }
  for (int i = 0; i < 7; i++)
    assert_in_range(seen[i], DRAWS / 7 - 700, DRAWS / 7 + 700); /* six sigma */
  assert_true(sum > DRAWS * 0.49 && sum < DRAWS * 0.51);
  assert_int_equal(rng_below(&rng, 1), 0);
}

static void fills_all_random_bytes(void **state) {
  (void)state;
  uint8_t a[4096], b[4096];
  random_bytes(a, sizeof a);
  random_bytes(b, sizeof b);
  assert_memory_not_equal(a, b, sizeof a);
  uint8_t tail[16];
  memset(tail, 0, sizeof tail);
  uint8_t ored = 0;
  for (int i = 0; i < 20; i++) {
    random_bytes(tail, 15);
    ored |= tail[14];
    assert_int_equal(tail[15], 0);
  }
  assert_int_not_equal(ored, 0);
}

static void clocks_go_forward(void **state) {
  (void)state;
  uint64_t last = clock_now_ns();
  for (int i = 0; i < 1000; i++) {
    uint64_t now = clock_now_ns();
    assert_true(now >= last);
    last = now;
  }
  assert_true(clock_wall_ms() > INT64_C(1600000000000)); /* September 2020 in milliseconds */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(repeats_from_the_same_seed),
      cmocka_unit_test(is_xoshiro256_plus_plus),
      cmocka_unit_test(stays_below_its_bound_and_reaches_all),
      cmocka_unit_test(fills_all_random_bytes),
      cmocka_unit_test(clocks_go_forward),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
