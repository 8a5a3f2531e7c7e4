/* The timing wheel against a list that is searched naively, over virtual time. */
#include "base/clock.h"
#include "base/rng.h"
#include "net/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define START_NS UINT64_C(123456789)

struct probe {
  struct timer timer;
  uint64_t due_ns; /* 0: not armed, as the model sees it */
  struct model *model;
  uint64_t fired;
};

struct model {
  struct wheel *wheel;
  struct probe *probes;
  size_t count;
  uint64_t now_ns;
  uint64_t fired;
  struct rng rng;
  int again; /* out of 4 fires re-arm and cancel others */
};

static uint64_t random_delay(struct rng *rng) {
  /* All levels of the wheel, short delays most often. */
  unsigned bits = (unsigned)rng_below(rng, 40);
  return rng_next(rng) & ((UINT64_C(1) << bits) - 1);
}

static void arm(struct model *model, struct probe *probe, uint64_t due_ns) {
  probe->due_ns = due_ns;
  timer_arm(model->wheel, &probe->timer, due_ns);
  assert_true(timer_armed(&probe->timer));
}

static void cancel(struct model *model, struct probe *probe) {
  probe->due_ns = 0;
  timer_cancel(model->wheel, &probe->timer);
  assert_false(timer_armed(&probe->timer));
}

static void fire(struct timer *timer, uint64_t now_ns) {
  struct probe *probe = (struct probe *)timer;
  struct model *model = probe->model;
  assert_int_equal(now_ns, model->now_ns);
  assert_int_not_equal(probe->due_ns, 0);
  assert_true(probe->due_ns <= now_ns);
  assert_false(timer_armed(timer));
  probe->due_ns = 0;
  probe->fired++;
  model->fired++;
  if (rng_below(&model->rng, 4) >= (uint64_t)model->again) return;
  arm(model, probe, now_ns + random_delay(&model->rng));
  struct probe *other = &model->probes[rng_below(&model->rng, model->count)];
  if (rng_below(&model->rng, 2)) {
    cancel(model, other);
  } else {
    arm(model, other, now_ns + random_delay(&model->rng) - rng_below(&model->rng, 1000));
  }
}

/* Nothing that is due longer than a tick may be left, and the wheel's next time is before every due time. */
static void check(const struct model *model) {
  uint64_t earliest_ns = UINT64_MAX;
  for (size_t i = 0; i < model->count; i++) {
    const struct probe *probe = &model->probes[i];
    assert_int_equal(timer_armed(&probe->timer), probe->due_ns != 0);
    if (!probe->due_ns) continue;
    if (probe->due_ns < earliest_ns) earliest_ns = probe->due_ns;
  }
  uint64_t next_ns = wheel_next_ns(model->wheel);
  if (earliest_ns == UINT64_MAX) {
    assert_true(next_ns == UINT64_MAX);
  } else {
    assert_true(next_ns != UINT64_MAX);
    assert_true(next_ns < earliest_ns + NS_PER_MS);
  }
}

static void make_model(struct model *model, size_t count, uint64_t seed) {
  *model = (struct model){.count = count, .now_ns = START_NS};
  rng_seed(&model->rng, seed);
  model->wheel = wheel_create(START_NS);
  model->probes = calloc(count, sizeof *model->probes);
  assert_non_null(model->wheel);
  assert_non_null(model->probes);
  for (size_t i = 0; i < count; i++) {
    model->probes[i].model = model;
    model->probes[i].timer.fire = fire;
  }
}

static void free_model(struct model *model) {
  wheel_destroy(model->wheel);
  free(model->probes);
}

static void advance(struct model *model, uint64_t to_ns) {
  model->now_ns = to_ns;
  wheel_advance(model->wheel, to_ns);
}

static void test_random(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct model model;
    make_model(&model, 200, seed);
    model.again = 2;
    for (int step = 0; step < 2000; step++) {
      struct probe *probe = &model.probes[rng_below(&model.rng, model.count)];
      switch (rng_below(&model.rng, 4)) {
      case 0:
      case 1:
        arm(&model, probe, model.now_ns + random_delay(&model.rng));
        break;
      case 2:
        cancel(&model, probe);
        break;
      default:
        advance(&model, model.now_ns + random_delay(&model.rng));
        for (size_t i = 0; i < model.count; i++) {
          /* A handler's re-arm for a time already past may wait for the next advance; else a tick at most. */
          uint64_t due_ns = model.probes[i].due_ns;
          if (due_ns && due_ns + NS_PER_MS <= model.now_ns) {
            advance(&model, model.now_ns);
            break;
          }
        }
      }
      check(&model);
    }
    assert_true(model.fired > 100);
    free_model(&model);
  }
}

static void test_one_tick_late_at_most(void **state) {
  (void)state;
  struct model model;
  make_model(&model, 1000, 7);
  for (size_t i = 0; i < model.count; i++) {
    arm(&model, &model.probes[i], START_NS + rng_below(&model.rng, 100 * NS_PER_SEC));
  }
  while (model.fired < model.count) {
    advance(&model, model.now_ns + NS_PER_MS / 3);
    for (size_t i = 0; i < model.count; i++) {
      uint64_t due_ns = model.probes[i].due_ns;
      assert_true(!due_ns || due_ns + NS_PER_MS > model.now_ns);
    }
    uint64_t next_ns = wheel_next_ns(model.wheel);
    /* Jumps as a loop would sleep. */
    if (next_ns != UINT64_MAX && next_ns > model.now_ns) advance(&model, next_ns);
  }
  assert_true(wheel_next_ns(model.wheel) == UINT64_MAX);
  free_model(&model);
}

static void test_far_and_past(void **state) {
  (void)state;
  struct model model;
  make_model(&model, 4, 1);
  arm(&model, &model.probes[0], UINT64_MAX);
  arm(&model, &model.probes[1], 1);
  arm(&model, &model.probes[2], START_NS + 365 * 24 * 3600 * NS_PER_SEC);
  advance(&model, START_NS);
  assert_int_equal(model.probes[1].fired, 1);
  assert_int_equal(model.fired, 1);
  advance(&model, START_NS + 364 * 24 * 3600 * NS_PER_SEC);
  assert_int_equal(model.fired, 1);
  advance(&model, START_NS + 366 * 24 * 3600 * NS_PER_SEC);
  assert_int_equal(model.probes[2].fired, 1);
  assert_true(timer_armed(&model.probes[0].timer));
  cancel(&model, &model.probes[0]);
  cancel(&model, &model.probes[0]);
  check(&model);
  free_model(&model);
}

static void refire(struct timer *timer, uint64_t now_ns) {
  struct probe *probe = (struct probe *)timer;
  probe->fired++;
  timer_arm(probe->model->wheel, timer, now_ns);
}

static void test_rearm_for_now_waits_for_next_advance(void **state) {
  (void)state;
  struct model model;
  make_model(&model, 1, 1);
  model.probes[0].timer.fire = refire;
  timer_arm(model.wheel, &model.probes[0].timer, START_NS);
  for (uint64_t i = 1; i <= 10; i++) {
    advance(&model, START_NS + i * NS_PER_MS);
    assert_int_equal(model.probes[0].fired, i);
  }
  free_model(&model);
}

static void test_a_million(void **state) {
  (void)state;
  struct model model;
  make_model(&model, 1000000, 3);
  for (size_t i = 0; i < model.count; i++) {
    arm(&model, &model.probes[i], START_NS + rng_below(&model.rng, 60 * NS_PER_SEC));
  }
  for (size_t i = 0; i < model.count; i += 10)
    cancel(&model, &model.probes[i]);
  for (int i = 0; i < 61000; i++)
    advance(&model, model.now_ns + NS_PER_MS);
  assert_int_equal(model.fired, 900000);
  for (size_t i = 0; i < model.count; i++)
    assert_int_equal(model.probes[i].fired, i % 10 != 0);
  free_model(&model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_one_tick_late_at_most),
      cmocka_unit_test(test_far_and_past),
      cmocka_unit_test(test_rearm_for_now_waits_for_next_advance),
      cmocka_unit_test(test_a_million),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
