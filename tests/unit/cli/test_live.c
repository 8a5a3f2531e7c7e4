/* The live view: rates, what is awaited, and that every form of it fits where it is shown. */
#include "cli/muster_live.h"
#include "cli/muster_progress.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct run_progress measuring(uint64_t publishes) {
  return (struct run_progress){
      .phase = RUN_MEASURE,
      .phase_elapsed_s = 3,
      .phase_length_s = 10,
      .clients = 1000,
      .established = 1000,
      .scheduled = publishes,
      .attempted = publishes,
      .acked = publishes,
      .delivered = 9 * publishes - 5,
      .has_acks = true,
      .fan_out = 9,
      .ack_p50_ns = 1500000,
      .ack_p99_ns = 2500000,
      .worst_busy_share = 0.25,
  };
}

static struct live started_live(void) {
  struct live live = {.workload = "group", .target = "embedded musterd"};
  struct run_progress progress = measuring(1000);
  live_update(&live, &progress, 100);
  return live;
}

static void test_rates_are_of_the_last_second(void **state) {
  (void)state;
  struct live live = started_live();
  assert_float_equal(live.scheduled_per_sec, 0, 0);
  for (int i = 1; i <= 20; i++) { /* 200 in each 0.2 s at first, then twice as many */
    struct run_progress progress = measuring(1000 + (i <= 10 ? 200u * (unsigned)i : 2000 + 400u * (unsigned)(i - 10)));
    live_update(&live, &progress, 100 + 0.2 * i);
    if (i == 10) assert_float_equal(live.acked_per_sec, 1000, 1e-6);
  }
  assert_float_equal(live.scheduled_per_sec, 2000, 1e-6);
  assert_float_equal(live.delivered_per_sec, 18000, 1e-6);
}

static void test_a_new_phase_counts_anew(void **state) {
  (void)state;
  struct live live = started_live();
  live.now.phase = RUN_WARM_UP;
  struct run_progress progress = measuring(10);
  live_update(&live, &progress, 101);
  assert_float_equal(live.scheduled_per_sec, 0, 0);
  progress = measuring(110);
  live_update(&live, &progress, 102);
  assert_float_equal(live.scheduled_per_sec, 100, 1e-6);
}

static void test_awaited(void **state) {
  (void)state;
  struct run_progress progress = measuring(1000);
  assert_int_equal(live_awaited(&progress), 5);
  progress.delivered = 9001; /* more than expected is nothing that is awaited */
  assert_int_equal(live_awaited(&progress), 0);
  progress.has_acks = false;
  progress.acked = 0;
  progress.delivered = 8990;
  assert_int_equal(live_awaited(&progress), 10);
}

static void test_json(void **state) {
  (void)state;
  struct live live = started_live();
  char text[4096], small[40];
  size_t len = live_json(&live, text, sizeof text);
  assert_true(len > 0);
  assert_null(memchr(text, '\n', len));
  json_t *json = json_loadb(text, len, 0, NULL);
  assert_non_null(json);
  assert_string_equal(json_string_value(json_object_get(json, "phase")), "measure");
  json_t *deliveries = json_object_get(json, "deliveries");
  assert_int_equal(json_integer_value(json_object_get(deliveries, "awaited")), 5);
  assert_true(json_is_null(json_object_get(json, "delivery")));
  json_decref(json);
  assert_int_equal(live_json(&live, small, sizeof small), 0);
}

static void test_rows_fit(void **state) {
  (void)state;
  struct live live = started_live();
  live.workload = "a-workload-with-a-name-that-is-longer-than-any-terminal-would-be-wide-enough-for-or-so-one-hopes";
  static const size_t columns[] = {20, 79, 100, 500};
  for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
    char rows[PROGRESS_ROWS_MAX][PROGRESS_COLUMNS_MAX];
    uint32_t count = progress_rows(rows, columns[i], &live);
    assert_int_equal(count, 6);
    for (uint32_t row = 0; row < count; row++)
      assert_true(strlen(rows[row]) <= columns[i]);
  }
}

static void test_a_line_tells_what_went_wrong(void **state) {
  (void)state;
  struct live live = started_live();
  char line[512];
  live.now.failed = 3;
  live.now.rejected = 4;
  progress_line(line, sizeof line, &live);
  assert_non_null(strstr(line, "3 failed"));
  assert_non_null(strstr(line, "rejected 4"));
  assert_null(strstr(line, "dropped"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rates_are_of_the_last_second),
      cmocka_unit_test(test_a_new_phase_counts_anew),
      cmocka_unit_test(test_awaited),
      cmocka_unit_test(test_json),
      cmocka_unit_test(test_rows_fit),
      cmocka_unit_test(test_a_line_tells_what_went_wrong),
  };
  return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
