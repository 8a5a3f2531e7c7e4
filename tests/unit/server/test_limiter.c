/* The token bucket against one that counts tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "server/limiter.h"

static void burst_then_one_an_interval(void **state) {
  (void)state;
  struct limiter limiter = {0};
  uint64_t now = 1000000;
  for (int i = 0; i < 10; i++)
    assert_true(limiter_take(&limiter, now, 100, 10));
  assert_false(limiter_take(&limiter, now, 100, 10));
  assert_false(limiter_take(&limiter, now + 99, 100, 10));
  assert_true(limiter_take(&limiter, now + 100, 100, 10));
  assert_false(limiter_take(&limiter, now + 100, 100, 10));
  /* A long rest fills the bucket and no more. */
  now += 1000000;
  for (int i = 0; i < 10; i++)
    assert_true(limiter_take(&limiter, now, 100, 10));
  assert_false(limiter_take(&limiter, now, 100, 10));
}

/* Level of the bucket in time units: one token is one interval. */
struct model {
  uint64_t level, at;
};

static int model_take(struct model *model, uint64_t now, uint64_t interval, uint32_t burst) {
  model->level += now - model->at;
  if (model->level > interval * burst) model->level = interval * burst;
  model->at = now;
  if (model->level < interval) return 0;
  model->level -= interval;
  return 1;
}

static void agrees_with_counting(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 20);
  for (int round = 0; round < 50; round++) {
    uint64_t interval = 1 + rng_below(&rng, 1000), now = 1 + rng_below(&rng, 1000000);
    uint32_t burst = 1 + (uint32_t)rng_below(&rng, 20);
    struct limiter limiter = {0};
    struct model model = {interval * burst, now};
    for (int i = 0; i < 2000; i++) {
      now += rng_below(&rng, 2 * interval);
      assert_int_equal(limiter_take(&limiter, now, interval, burst), model_take(&model, now, interval, burst));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(burst_then_one_an_interval),
      cmocka_unit_test(agrees_with_counting),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
