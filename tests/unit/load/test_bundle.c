/* Keep-alives leave in bundles: few moments, no interval longer than asked, workers one after the other. */
#include "load/bundle.h"

#include "base/clock.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#define INTERVAL_NS (30 * NS_PER_SEC)
#define BUNDLE_NS (INTERVAL_NS / BUNDLES_PER_INTERVAL)

static void never_waits_longer_than_the_interval(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 1);
  for (int i = 0; i < 100000; i++) {
    uint64_t now_ns = NS_PER_SEC + rng_below(&rng, 1000 * NS_PER_SEC);
    uint32_t workers = 1 + (uint32_t)rng_below(&rng, 64), worker = (uint32_t)rng_below(&rng, workers);
    uint64_t next_ns = bundle_next_ns(now_ns, INTERVAL_NS, worker, workers);
    assert_true(next_ns <= now_ns + INTERVAL_NS);
    assert_true(next_ns > now_ns + INTERVAL_NS - BUNDLE_NS);
    assert_int_equal(next_ns % BUNDLE_NS, BUNDLE_NS * worker / workers);
  }
}

/* 10,000 clients that came in at random moments leave at 128 or 129 moments of an interval. */
static void gathers_what_came_apart(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 2);
  bool used[2 * BUNDLES_PER_INTERVAL + 2] = {false};
  uint64_t start_ns = 1000 * NS_PER_SEC;
  for (int i = 0; i < 10000; i++) {
    uint64_t next_ns = bundle_next_ns(start_ns + rng_below(&rng, INTERVAL_NS), INTERVAL_NS, 3, 7);
    used[(next_ns - start_ns) / BUNDLE_NS] = true;
  }
  int moments = 0;
  for (int i = 0; i < 2 * BUNDLES_PER_INTERVAL + 2; i++)
    moments += used[i];
  assert_in_range(moments, BUNDLES_PER_INTERVAL - 1, BUNDLES_PER_INTERVAL + 1);
}

/* Once in a bundle a client stays in it, and the workers' bundles do not meet. */
static void keeps_its_place(void **state) {
  (void)state;
  uint64_t before_ns = 0;
  for (uint32_t worker = 0; worker < 50; worker++) {
    uint64_t first_ns = bundle_next_ns(12345 * BUNDLE_NS, INTERVAL_NS, worker, 50);
    uint64_t offset_ns = first_ns % BUNDLE_NS;
    if (worker > 0) assert_true(offset_ns > before_ns);
    before_ns = offset_ns;
    uint64_t second_ns = bundle_next_ns(first_ns + NS_PER_MS, INTERVAL_NS, worker, 50); /* its timer fired late */
    assert_int_equal(second_ns % BUNDLE_NS, offset_ns);
    assert_true(second_ns > first_ns + INTERVAL_NS - BUNDLE_NS && second_ns <= first_ns + INTERVAL_NS);
  }
}

static void leaves_intervals_alone_that_are_too_short(void **state) {
  (void)state;
  assert_int_equal(bundle_next_ns(1000, 100, 0, 2), 1100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(never_waits_longer_than_the_interval),
      cmocka_unit_test(gathers_what_came_apart),
      cmocka_unit_test(keeps_its_place),
      cmocka_unit_test(leaves_intervals_alone_that_are_too_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
