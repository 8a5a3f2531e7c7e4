/* What a report says of operations, written and read back. */
#include "report/operations.h"

#include "report/gate.h"
#include "report/metrics.h"
#include "report/read.h"
#include "report/slo.h"
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct report sample_operations(void) {
  struct report r = sample_valid();
  r.workload.batch_size = 10;
  r.workload.documents = 50;
  r.operation = calloc(OPERATIONS_MAX, sizeof *r.operation);
  r.refusals = calloc(1, sizeof *r.refusals);
  r.operations = 2;
  for (uint32_t i = 0; i < r.operations; i++)
    r.operation[i] = (struct report_operation){
        i ? "batch_put" : "submit", i ? "documents" : NULL, calloc(1, sizeof(struct operation_tally))};
  struct operation_tally *submit = r.operation[0].tally, *batch = r.operation[1].tally;
  submit->attempted = 12, submit->succeeded = 9, submit->late = 1;
  codes_add(&submit->failed, 507, 2);
  histogram_record_many(&submit->clock, 3000000, 9);
  batch->attempted = batch->succeeded = 4;
  batch->items = 40, batch->items_late = 10;
  histogram_record_many(&batch->clock, 5000000, 4);
  refusals_add(r.refusals, view_str("mailbox full"), 2);
  r.refusals->others = 1;
  r.retry_hints = 3;
  r.retry_waited_ns = 1500000000;
  return r;
}

static void come_back_as_they_were(void **state) {
  (void)state;
  struct report r = sample_operations(), back;
  struct document document;
  struct err err = {0};
  char *text = sample_written(report_write_json, &r);
  assert_int_equal(document_parse("r.json", text, strlen(text), &document, &err), STATUS_OK);
  if (report_from_document(&document, &back, &err) != STATUS_OK) fail_msg("%s", err.text);
  char *again = sample_written(report_write_json, &back);
  assert_string_equal(text, again);
  assert_int_equal(back.operations, 2);
  assert_int_equal(codes_count(&back.operation[0].tally->failed, 507), 2);
  assert_int_equal(back.operation[1].tally->clock.count, 4);
  free(text);
  free(again);
  document_free(&document);
  report_free(&back);
  report_free(&r);
}

static void are_told_to_a_person(void **state) {
  (void)state;
  struct report r = sample_operations();
  char *text = sample_written(report_write_text, &r);
  assert_non_null(strstr(text, "submit: 12 attempted, 9 succeeded (0.80/s), 2 failed, 1 unanswered"));
  assert_non_null(strstr(text, "40 documents (3.00/s)"));
  assert_non_null(strstr(text, "2 x mailbox full"));
  assert_non_null(strstr(text, "3 retry hints honoured, 1.500 s waited"));
  free(text);
  report_free(&r);
}

static struct report_objective judged(struct report *report, const char *text) {
  struct slo_list list = {0};
  struct err err = {0};
  if (slo_parse(text, &list, &err) != STATUS_OK) fail_msg("%s: %s", text, err.text);
  report->reasons = 0;
  slo_judge(&list, report);
  return report->objective[0];
}

static void are_judged_by_their_names(void **state) {
  (void)state;
  struct report r = sample_operations();
  struct report_objective objective = judged(&r, "submit.max<=3.1ms");
  assert_true(objective.evaluable && objective.held);
  assert_string_equal(objective.unit, "ns");
  assert_false(judged(&r, "batch_put.mean<4ms").held);
  objective = judged(&r, "batch_put.items_per_second>=3");
  assert_true(objective.evaluable && objective.held && objective.measured == 3);
  assert_string_equal(objective.unit, "per_second");
  assert_true(judged(&r, "submit.succeeded_per_second<1").held);
  objective = judged(&r, "error_rate<=1%");
  assert_true(objective.evaluable);
  assert_string_equal(objective.unit, "share");
  assert_int_equal(r.reasons, 0);

  assert_false(judged(&r, "submit.p99<1s").evaluable); /* 9 values */
  assert_non_null(strstr(r.reason[0], "submit has 9 values"));
  assert_false(judged(&r, "query.p99<1s").evaluable);
  assert_non_null(strstr(r.reason[0], "no operation query"));
  assert_false(judged(&r, "storm.attempts<9").evaluable);
  assert_non_null(strstr(r.reason[0], "no storm run"));
  report_free(&r);
}

static void say_what_may_not_be_asked_of_them(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"submit.items_per_second>1", "it has no items"},
      {"submit.p99<5", "a time needs its unit"},
      {"submit.quick>1", "give .p50"},
      {"submitted.p99<1s", "an operation's as put_document"},
      {"batch_put.items_per_second>1%", "only k or M"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    struct slo_list list = {0};
    struct err err = {0};
    assert_int_equal(slo_parse(cases[i][0], &list, &err), STATUS_USAGE);
    if (!strstr(err.text, cases[i][1])) fail_msg("%s", err.text);
  }
}

/* Trials, comparisons and gates take their figures from the report's JSON. */
static void are_metrics_of_trials(void **state) {
  (void)state;
  struct report r = sample_operations();
  char *text = sample_written(report_write_json, &r);
  json_t *root = json_loads(text, 0, NULL);
  struct metrics metrics;
  metrics_read(root, &metrics);
  static const struct {
    const char *name, *unit;
    double value;
  } cases[] = {
      {"batch_put.items_per_second", "per_second", 3},
      {"submit.succeeded_per_second", "per_second", 0.8},
      {"submit.max", "ns", 0},
      {"batch_put.p50", "ns", 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t metric = metric_find(cases[i].name, strlen(cases[i].name));
    char name[METRIC_NAME_MAX];
    assert_int_not_equal(metric, METRIC_NONE);
    metric_name(metric, name);
    assert_string_equal(name, cases[i].name);
    assert_string_equal(metric_unit(metric), cases[i].unit);
    assert_int_not_equal(metrics.state[metric], METRIC_ABSENT);
    if (cases[i].value > 0) assert_true(metrics.value[metric] == cases[i].value);
    struct gate_list gates = {0};
    char gate[METRIC_NAME_MAX + 8];
    snprintf(gate, sizeof gate, "%s +10%%", cases[i].name);
    assert_int_equal(gate_parse(gate, &gates, NULL), STATUS_OK);
    assert_int_equal(gates.gate[0].metric, metric);
  }
  assert_int_equal(metrics.state[metric_find("query.p50", 9)], METRIC_ABSENT);
  assert_int_equal(metric_find("submit.items_per_second", strlen("submit.items_per_second")), METRIC_NONE);
  json_decref(root);
  free(text);
  report_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(come_back_as_they_were),
      cmocka_unit_test(are_told_to_a_person),
      cmocka_unit_test(are_judged_by_their_names),
      cmocka_unit_test(say_what_may_not_be_asked_of_them),
      cmocka_unit_test(are_metrics_of_trials),
  };
  return cmocka_run_group_tests_name("report.operations", tests, NULL, NULL);
}
