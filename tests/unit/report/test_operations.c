/* What a report says of operations, written and read back. */
#include "report/operations.h"
#include "report/read.h"
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(come_back_as_they_were),
      cmocka_unit_test(are_told_to_a_person),
  };
  return cmocka_run_group_tests_name("report.operations", tests, NULL, NULL);
}
