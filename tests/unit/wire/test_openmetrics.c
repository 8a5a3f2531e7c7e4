#include "wire/openmetrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void samples_are_read(void **state) {
  (void)state;
  static const struct {
    const char *line, *name, *labels;
    double value;
  } cases[] = {
      {"up 1", "up", "", 1},
      {"  up\t1.5e3 1395066363000", "up", "", 1500},
      {"a:b_total{code=\"200\",path=\"/x\"} 7", "a:b_total", "code=\"200\",path=\"/x\"", 7},
      {"a{b=\"c\",} -3", "a", "b=\"c\",", -3},
      {"a { b = \"c\" , d=\"e\" }3", "a", " b = \"c\" , d=\"e\" ", 3},
      {"a{b=\"}\\\"{\\\\\"} +Inf\r", "a", "b=\"}\\\"{\\\\\"", INFINITY},
      {"a_bucket{le=\"0.1\"} 17 # {trace=\"x\"} 0.05 1.5", "a_bucket", "le=\"0.1\"", 17},
      {"a{} 4", "a", "", 4},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct openmetrics_series series;
    double value;
    assert_int_equal(openmetrics_read(view_str(cases[i].line), &series, &value), OPENMETRICS_SAMPLE);
    assert_true(view_is(series.name, cases[i].name));
    assert_true(view_is(series.labels, cases[i].labels));
    assert_true(value == cases[i].value);
  }
}

static void other_lines_are_no_samples(void **state) {
  (void)state;
  static const struct {
    const char *line;
    enum openmetrics_line kind;
  } cases[] = {
      {"", OPENMETRICS_COMMENT},
      {"# HELP up Is it up?", OPENMETRICS_COMMENT},
      {"#", OPENMETRICS_COMMENT},
      {"# EOF", OPENMETRICS_END},
      {"# EOF\r", OPENMETRICS_END},
      {"up", OPENMETRICS_BAD},
      {"up ", OPENMETRICS_BAD},
      {"up one", OPENMETRICS_BAD},
      {"up 0x10", OPENMETRICS_BAD},
      {"up 1 never", OPENMETRICS_BAD},
      {"up-time 1", OPENMETRICS_BAD},
      {"1up 1", OPENMETRICS_BAD},
      {"a{b=\"c\" 1", OPENMETRICS_BAD},
      {"a{b=\"c\"d=\"e\"} 1", OPENMETRICS_BAD},
      {"a{b=c} 1", OPENMETRICS_BAD},
      {"a{=\"c\"} 1", OPENMETRICS_BAD},
      {"a{b=\"c\\\"} 1", OPENMETRICS_BAD},
      {"{\"a.b\"} 1", OPENMETRICS_BAD},
      {"<html>", OPENMETRICS_BAD},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct openmetrics_series series;
    double value;
    enum openmetrics_line kind = openmetrics_read(view_str(cases[i].line), &series, &value);
    if (kind != cases[i].kind) fail_msg("\"%s\" is read as %d", cases[i].line, (int)kind);
  }
}

static void nan_is_a_value(void **state) {
  (void)state;
  struct openmetrics_series series;
  double value = 0;
  assert_int_equal(openmetrics_read(view_str("a NaN"), &series, &value), OPENMETRICS_SAMPLE);
  assert_true(isnan(value));
}

static void selectors_ask_for_their_labels_only(void **state) {
  (void)state;
  static const struct {
    const char *selector, *series;
    bool selects;
  } cases[] = {
      {"a", "a", true},
      {"a", "a{b=\"c\"}", true},
      {"a{b=\"c\"}", "a{x=\"y\",b=\"c\"}", true},
      {"a{x=\"y\", b=\"c\"}", "a{b=\"c\",x=\"y\"}", true},
      {"a{b=\"c\"}", "a", false},
      {"a{b=\"c\"}", "a{b=\"cc\"}", false},
      {"a{b=\"c\",x=\"y\"}", "a{b=\"c\"}", false},
      {"a", "aa", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct openmetrics_series selector, series;
    struct view left = view_str(cases[i].selector), right = view_str(cases[i].series);
    assert_true(openmetrics_take_series(&left, &selector) && left.len == 0);
    assert_true(openmetrics_take_series(&right, &series) && right.len == 0);
    assert_int_equal(openmetrics_selects(&selector, &series), cases[i].selects);
  }
}

static void a_selector_is_taken_from_the_front(void **state) {
  (void)state;
  struct openmetrics_series series;
  struct view list = view_str("a{b=\",\"},c");
  assert_true(openmetrics_take_series(&list, &series));
  assert_true(view_is(list, ",c"));
  struct view broken = view_str("a{b=\"c\"");
  assert_false(openmetrics_take_series(&broken, &series));
  assert_int_equal(broken.len, 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_are_read),
      cmocka_unit_test(other_lines_are_no_samples),
      cmocka_unit_test(nan_is_a_value),
      cmocka_unit_test(selectors_ask_for_their_labels_only),
      cmocka_unit_test(a_selector_is_taken_from_the_front),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
