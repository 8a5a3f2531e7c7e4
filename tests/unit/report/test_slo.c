/* Objectives: what may be written, what is said about what may not, and how they are judged. */
#include "report/slo.h"

#include "unit/report/sample.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct slo parsed(const char *text) {
  struct slo_list list = {0};
  struct err err = {0};
  if (slo_parse(text, &list, &err) != STATUS_OK) fail_msg("%s: %s", text, err.text);
  assert_int_equal(list.count, 1);
  return list.slo[0];
}

static void reads_names_operators_and_units(void **state) {
  (void)state;
  struct slo slo = parsed("delivery.p99<250ms");
  assert_int_equal(slo.kind, SLO_CLOCK);
  assert_int_equal(slo.clock, CLOCK_DELIVERY);
  assert_true(slo.percentile == 99 && slo.value == 250e6);
  assert_int_equal(slo.operator, SLO_BELOW);

  slo = parsed(" ack_service.p99_9 <= 1.5 s ");
  assert_int_equal(slo.clock, CLOCK_ACK_SERVICE);
  assert_true(slo.percentile > 99.89 && slo.percentile < 99.91 && slo.value == 1.5e9);
  assert_int_equal(slo.operator, SLO_AT_MOST);
  assert_string_equal(slo.text, "ack_service.p99_9<=1.5s");

  assert_int_equal(parsed("connect.mean<1s").statistic, SLO_MEAN);
  assert_int_equal(parsed("connect.max>1us").statistic, SLO_MAX);
  assert_int_equal(parsed("connect.min>=100ns").statistic, SLO_MIN);

  slo = parsed("deliveries_per_second>=50k");
  assert_int_equal(slo.kind, SLO_FIGURE);
  assert_true(slo.value == 50000);
  slo = parsed("lost<=0.1%");
  assert_true(slo.is_share && slo.value > 0.000999 && slo.value < 0.001001);
  assert_int_equal(parsed("lost=0").row, parsed("deliveries.lost=0").row);
  assert_int_equal(parsed("connections.failed=0").row, parsed("failed=0").row);
}

static void reads_several_at_once(void **state) {
  (void)state;
  struct slo_list list = {0};
  assert_int_equal(slo_parse("lost=0,ack.p95<50ms", &list, NULL), STATUS_OK);
  assert_int_equal(slo_parse("rejected=0", &list, NULL), STATUS_OK);
  assert_int_equal(list.count, 3);
  for (uint32_t i = list.count; i < REPORT_OBJECTIVES_MAX; i++)
    assert_int_equal(slo_parse("lost=0", &list, NULL), STATUS_OK);
  struct err err = {0};
  assert_int_equal(slo_parse("lost=0", &list, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "more than 16"));
}

static void refuses_with_place_and_choice(void **state) {
  (void)state;
  static const struct {
    const char *text, *place, *choice;
  } cases[] = {
      {"delivry.p99<250ms", "character 1:", "muster help run objectives"},
      {"attempted=0", "character 1:", "connections.failed"},
      {"delivery<250ms", "character 9:", ".p99"},
      {"delivery.q99<250ms", "character 10:", ".p99"},
      {"delivery.p100<250ms", "character 10:", "below 100"},
      {"delivery.p0<250ms", "character 10:", "above 0"},
      {"delivery.p9e1<1s", "character 10:", ".p99"},
      {"delivery.p99", "character 13:", "< <= > >= or ="},
      {"delivery.p99<", "character 14:", "250ms"},
      {"delivery.p99<<1s", "character 14:", "250ms"},
      {"delivery.p99==1s", "character 14:", "250ms"},
      {"delivery.p99<250", "character 17:", "ns, us, ms, s or m"},
      {"delivery.p99<-1s", "character 14:", "250ms"},
      {"delivery.p99<0x1s", "character 14:", "250ms"},
      {"delivery.p99<1h", "character 15:", "unit"},
      {"lost=", "character 6:", "give a number"},
      {"lost=0ms", "character 7:", "k, M or %"},
      {"scheduled>1%", "character 12:", "k or M"},
      {"acks_per_second>=1%", "character 19:", "k or M"},
      {"=0", "character 1:", "name a clock"},
      {"", "", "is empty"},
      {"lost=0,", "", "is empty"},
      {",", "", "is empty"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct slo_list list = {0};
    struct err err = {0};
    if (slo_parse(cases[i].text, &list, &err) != STATUS_USAGE) fail_msg("'%s' is accepted", cases[i].text);
    bool told = strstr(err.text, cases[i].place) && strstr(err.text, cases[i].choice) && !strchr(err.text, '\n');
    if (!told) fail_msg("'%s': %s", cases[i].text, err.text);
  }
  char longest[200];
  memset(longest, 'p', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  struct slo_list list = {0};
  assert_int_equal(slo_parse(longest, &list, NULL), STATUS_USAGE);
}

static struct report_objective judged(struct report *report, const char *text) {
  struct slo_list list = {0};
  assert_int_equal(slo_parse(text, &list, NULL), STATUS_OK);
  report_judge(report);
  slo_judge(&list, report);
  assert_int_equal(report->objectives, 1);
  return report->objective[0];
}

static void judges_clocks_counters_and_rates(void **state) {
  (void)state;
  struct report report = sample_valid(); /* 1000 ACKs of 1 ms, 100/s */
  struct report_objective objective = judged(&report, "ack.p95<2ms");
  assert_true(objective.evaluable && objective.held && objective.measured == 1e6);
  assert_string_equal(objective.unit, "ns");
  assert_int_equal(report_exit_code(&report), 0);

  assert_false(judged(&report, "ack.p95<1ms").held); /* strict */
  assert_int_equal(report.verdict, VERDICT_VALID);
  assert_int_equal(report_exit_code(&report), 1);
  assert_true(judged(&report, "ack.p95<=1ms").held);
  assert_true(judged(&report, "ack.max=1ms").held);
  assert_false(judged(&report, "ack.min>1ms").held);
  assert_true(judged(&report, "ack.mean>=1ms").held);

  assert_true(judged(&report, "lost=0").held);
  report.measure.deliveries.observed -= 10;
  report.measure.deliveries.lost = 10;
  objective = judged(&report, "lost=0");
  assert_true(objective.evaluable && !objective.held && objective.measured == 10);
  assert_int_equal(report_exit_code(&report), 1);
  objective = judged(&report, "lost<=1%");
  assert_true(objective.held && objective.measured == 0.01);
  assert_string_equal(objective.unit, "share");
  assert_true(judged(&report, "acks_per_second=100").held);
  assert_false(judged(&report, "deliveries_per_second>=100").held);
  assert_true(judged(&report, "fan_out<1").held);

  codes_add(&report.measure.connections.dropped, CAUSE_RESET, 3);
  assert_true(judged(&report, "dropped=3").held);
  assert_int_equal(report_exit_code(&report), 3); /* an objective does not mend an invalid run */
  report_free(&report);
}

/* Every name that a report has for a figure of a run is one of an objective. */
static void judges_late_acks_recovered_deliveries_and_storms(void **state) {
  (void)state;
  struct report report = sample_valid();
  report.measure.publishes.acked_late = 3;
  report.measure.deliveries.recovered = 2;
  assert_true(judged(&report, "acked_late=3").held);
  assert_true(judged(&report, "publishes.acked_late<=0.3%").held);
  assert_true(judged(&report, "recovered=2").held);
  assert_true(judged(&report, "deliveries.recovered<=1%").held);
  assert_false(judged(&report, "storm.lost=0").evaluable);
  report.workload.storm = true;
  report.storm = (struct report_storm){
      .lost = 5, .attempts = 7, .returned = 5, .first_lost_ns = 1000000000, .last_returned_ns = 3000000000};
  codes_add(&report.storm.failed, CAUSE_RESET, 2);
  assert_true(judged(&report, "storm.lost=5").held);
  assert_true(judged(&report, "storm.returned=5").held);
  assert_true(judged(&report, "storm.attempts<=7").held);
  assert_true(judged(&report, "storm.failed=2").held);
  struct report_objective objective = judged(&report, "storm.all_back_s<=2");
  assert_true(objective.held);
  assert_string_equal(objective.unit, "s");
  report.storm.returned = 4; /* then there is no moment in which all were back */
  assert_false(judged(&report, "storm.all_back_s<=2").evaluable);
  assert_false(judged(&report, "error_rate=0").evaluable);
  report_free(&report);
}

static void refuses_to_judge_by_few_samples(void **state) {
  (void)state;
  struct report report = sample_valid(); /* 1000 values: 10 beyond p99, 1 beyond p99.9 */
  assert_true(judged(&report, "ack.p99<1s").held);
  struct report_objective objective = judged(&report, "ack.p99.9<1s");
  assert_false(objective.evaluable || objective.held);
  assert_int_equal(report_exit_code(&report), 3);
  assert_non_null(strstr(report.reason[0], "needs 10000"));
  assert_int_equal(report.blame[0], BLAME_RUN);

  assert_false(judged(&report, "delivery.p50<1s").evaluable); /* the sample has no such clock */
  assert_int_equal(report_exit_code(&report), 3);
  report.has_acks = false;
  report.measure.publishes.acked = 0;
  assert_false(judged(&report, "rejected=0").evaluable);
  assert_false(judged(&report, "acks_per_second>0").evaluable);
  report_free(&report);
}

static void counts_the_samples_that_are_needed(void **state) {
  (void)state;
  struct slo slo = parsed("ack.p99<1s");
  assert_true(slo_samples_needed(&slo) == 1000);
  slo = parsed("ack.p50<1s");
  assert_true(slo_samples_needed(&slo) == 20);
  slo = parsed("ack.max<1s");
  assert_true(slo_samples_needed(&slo) == 1);
  slo = parsed("lost=0");
  assert_true(slo_samples_needed(&slo) == 0);
}

static void blames_the_server_for_what_it_held_back(void **state) {
  (void)state;
  struct report report = sample_valid();
  free(report.clock[CLOCK_SCHEDULE_LAG]);
  report.clock[CLOCK_SCHEDULE_LAG] = sample_histogram(50000000, 1000);
  report_judge(&report);
  assert_int_equal(report.reasons, 1);
  assert_int_equal(report.blame[0], BLAME_GENERATOR);
  codes_add(&report.measure.publishes.unsent, CAUSE_BLOCKED, 5);
  report.measure.publishes.scheduled += 5;
  report_judge(&report);
  assert_int_equal(report.reasons, 1);
  assert_int_equal(report.blame[0], BLAME_SERVER);
  report_free(&report);
}

static void prints_objectives_and_calibration(void **state) {
  (void)state;
  struct report report = sample_valid();
  struct slo_list list = {0};
  assert_int_equal(slo_parse("ack.p95<2ms,ack.max<1us,ack.p99.9<1s", &list, NULL), STATUS_OK);
  report_judge(&report);
  slo_judge(&list, &report);
  report.calibration.ceiling_per_sec = 400;
  char *text = sample_written(report_write_text, &report);
  assert_non_null(strstr(text, "held       ack.p95<2ms (measured: 1"));
  assert_non_null(strstr(text, "BROKEN     ack.max<1us"));
  assert_non_null(strstr(text, "NOT JUDGED ack.p99.9<1s"));
  assert_non_null(strstr(text, "load 25.0 % of the generator's calibrated ceiling of 400 publishes/s"));
  free(text);
  text = sample_written(report_write_json, &report);
  assert_non_null(strstr(text, "\"measured\": 1000000,"));
  assert_non_null(strstr(text, "\"held\": null"));
  assert_non_null(strstr(text, "\"load_share\": 0.25"));
  free(text);
  report_free(&report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_names_operators_and_units),
      cmocka_unit_test(reads_several_at_once),
      cmocka_unit_test(refuses_with_place_and_choice),
      cmocka_unit_test(judges_clocks_counters_and_rates),
      cmocka_unit_test(judges_late_acks_recovered_deliveries_and_storms),
      cmocka_unit_test(refuses_to_judge_by_few_samples),
      cmocka_unit_test(counts_the_samples_that_are_needed),
      cmocka_unit_test(blames_the_server_for_what_it_held_back),
      cmocka_unit_test(prints_objectives_and_calibration),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
