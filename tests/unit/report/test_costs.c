/* Held against the figures that Wildfire published for 16 cores (protocols' fact sheet, 6.4 and 6.7). */
#include "report/costs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define CORES 16

static struct report star(double seconds, uint64_t observed) {
  struct report report = {
      .workload = {.topology = TOPOLOGY_STAR, .clients = 1200, .senders = 200},
      .measure_s = seconds,
      .server_cpu_s = seconds * CORES,
  };
  report.measure.publishes.acked = 10000000;
  report.measure.deliveries.observed = observed;
  return report;
}

static void assert_near(double value, double expected, double tolerance) {
  if (fabs(value - expected) > expected * tolerance) fail_msg("%.6g is not %.6g", value, expected);
}

static void test_single_send(void **state) {
  (void)state;
  struct report report = star(509, 10000);
  struct costs costs = costs_of(&report);
  assert_true(costs.known);
  assert_near(costs.cores, CORES, 1e-9);
  assert_near(costs.publishes_per_core_second, 1227, 0.001);
  assert_near(costs.distributions_per_core_second, 2455, 0.001);
  assert_near(costs.send_ns, 1e9 / 1227, 0.001);
  assert_true(costs.distribute_ns == 0 && costs.notify_pull_ns == 0);
  assert_non_null(strstr(costs.formula, "send_ns ="));
}

static void test_notify_and_pull(void **state) {
  (void)state;
  struct report report = star(719, 10000000);
  struct costs costs = costs_of(&report);
  assert_near(costs.publishes_per_core_second, 869, 0.001);
  assert_null(costs.formula); /* without the cost of sending nothing can be told apart */
  report.workload.send_cost_ns = (uint64_t)(1e9 / 1227);
  costs = costs_of(&report);
  assert_near(1e9 / costs.notify_pull_ns, 2978, 0.003);
  assert_true(costs.send_ns == 0);
  report.workload.send_cost_ns = 2000000; /* more than the whole: of another machine */
  assert_true(costs_of(&report).notify_pull_ns == 0);
}

static void test_distribute(void **state) {
  (void)state;
  struct report report = {
      .workload = {.topology = TOPOLOGY_GROUPS, .clients = 1000, .senders = 100, .groups = 100, .shared_groups = true},
      .measure_s = 142.8,
      .server_cpu_s = 142.8 * CORES,
  };
  report.measure.publishes.acked = 20000;
  struct costs costs = costs_of(&report);
  assert_near(costs.publishes_per_core_second, 8.75, 0.001);
  assert_near(costs.distributions_per_core_second, 8750, 0.001);
  assert_near(costs.distribute_ns, 1e9 / 8750, 0.001);
}

static void test_unknown(void **state) {
  (void)state;
  struct report report = star(509, 0);
  report.server_cpu_s = 0;
  assert_false(costs_of(&report).known);
  report = star(509, 0);
  report.measure.publishes.acked = 0;
  assert_false(costs_of(&report).known);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_single_send),
      cmocka_unit_test(test_notify_and_pull),
      cmocka_unit_test(test_distribute),
      cmocka_unit_test(test_unknown),
  };
  return cmocka_run_group_tests_name("costs", tests, NULL, NULL);
}
