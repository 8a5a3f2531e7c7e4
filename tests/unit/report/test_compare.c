/* Comparisons: what is refused, what is shown and what is not, on recorded trials (recorded/record.mjs says how they
 * were made) and on made-up ones. */
#include "report/compare.h"
#include "report/trials.h"

#include "unit/report/sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define RECORDED TEST_FOLDER "/unit/report/recorded/"
#define FIVE 5

static struct trial_list recorded(const char *name) {
  struct trial_list list = {0};
  struct err err = {0};
  char path[1024];
  snprintf(path, sizeof path, RECORDED "%s", name);
  if (trial_list_read(&list, path, &err) != STATUS_OK) fail_msg("%s", err.text);
  assert_int_equal(list.count, 2 * FIVE);
  return list;
}

/* The trials whose bits are set: five of ten, or those that are not. Borrows from the list. */
static struct trial_list chosen(const struct trial_list *from, unsigned bits, struct trial out[2 * FIVE]) {
  struct trial_list list = {.trial = out};
  for (size_t i = 0; i < from->count; i++) {
    if (bits >> i & 1) out[list.count++] = from->trial[i];
  }
  return list;
}

static unsigned bit_count(unsigned bits) {
  return (unsigned)__builtin_popcount(bits);
}

static size_t metric(const char *name) {
  size_t found = metric_find(name, strlen(name));
  assert_true(found != METRIC_NONE);
  return found;
}

static void slow_down(struct trial_list *list, double factor) {
  for (size_t i = 0; i < list->count; i++) {
    for (size_t m = 0; m < METRICS; m++) {
      if (metric_is_clock(m)) {
        list->trial[i].metrics.value[m] *= factor;
      } else {
        list->trial[i].metrics.value[m] /= factor;
      }
    }
  }
}

static void compared(const struct trial_list *base, const struct trial_list *candidate, struct comparison *out) {
  static const struct compare_settings settings;
  struct err err = {0};
  if (compare_trials(base, candidate, &settings, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static const struct compare_metric *row_of(const struct comparison *c, const char *name) {
  for (size_t i = 0; i < c->metrics; i++) {
    if (c->metric[i].metric == metric(name)) return &c->metric[i];
  }
  fail_msg("%s is not compared", name);
  return NULL;
}

/* Every way to split ten trials of one thing into five and five: at most one in twenty may alarm, and the honest ones
 * (by turns, first against last) do not. */
static void equals_do_not_alarm(void **state) {
  (void)state;
  static const char *const files[] = {"local.json", "near.json", "far.json"};
  static struct comparison c;
  for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
    struct trial_list all = recorded(files[f]);
    unsigned splits = 0, alarms = 0;
    for (unsigned bits = 0; bits < 1u << 2 * FIVE; bits++) {
      struct trial a[2 * FIVE], b[2 * FIVE];
      if (bit_count(bits) != FIVE) continue;
      struct trial_list base = chosen(&all, bits, a), candidate = chosen(&all, ~bits, b);
      compared(&base, &candidate, &c);
      bool alarm = compare_verdict_of(&c) != VERDICT_NONE_SHOWN;
      splits++;
      alarms += alarm;
      if (bits == 0x155 || bits == 0x2aa) assert_false(alarm);
    }
    print_message("%s: %u of %u splits alarm\n", files[f], alarms, splits);
    assert_int_equal(splits, 252);
    assert_true(alarms * 20 <= splits);
    trial_list_free(&all);
  }
}

/* Of the recorded trials every other one gets 5 % slower in all its figures. */
static void five_percent_are_found(void **state) {
  (void)state;
  static struct comparison c;
  struct trial_list all = recorded("near.json");
  struct trial a[2 * FIVE], b[2 * FIVE];
  struct trial_list base = chosen(&all, 0x155, a), candidate = chosen(&all, 0x2aa, b);
  slow_down(&candidate, 1.05);
  compared(&base, &candidate, &c);
  assert_int_equal(compare_verdict_of(&c), VERDICT_SLOWER);
  assert_int_equal(row_of(&c, "delivery.p50")->outcome, COMPARE_SLOWER);
  assert_true(row_of(&c, "delivery.p50")->interval.low > 1.02);
  compared(&candidate, &base, &c);
  assert_int_equal(compare_verdict_of(&c), VERDICT_FASTER);
  trial_list_free(&all);
}

/* The same server, its deliveries held up for 40 and for 42 ms: 5 % that were really there. */
static void five_percent_that_were_there_are_found(void **state) {
  (void)state;
  static struct comparison c;
  struct trial_list near = recorded("near.json"), far = recorded("far.json");
  struct trial a[2 * FIVE], b[2 * FIVE];
  struct trial_list base = chosen(&near, 0x1f, a), candidate = chosen(&far, 0x1f, b);
  compared(&base, &candidate, &c);
  assert_int_equal(compare_verdict_of(&c), VERDICT_SLOWER);
  const struct compare_metric *row = row_of(&c, "delivery.p50");
  assert_int_equal(row->outcome, COMPARE_SLOWER);
  assert_true(row->ratio > 1.02 && row->ratio < 1.08);
  assert_int_equal(row_of(&c, "ack.p50")->outcome, COMPARE_NONE_SHOWN);
  trial_list_free(&near);
  trial_list_free(&far);
}

static void three_trials_show_nothing_and_say_so(void **state) {
  (void)state;
  static struct comparison c;
  struct trial_list near = recorded("near.json"), far = recorded("far.json");
  struct trial a[2 * FIVE], b[2 * FIVE];
  struct trial_list base = chosen(&near, 7, a), candidate = chosen(&far, 7, b);
  compared(&base, &candidate, &c);
  assert_int_equal(compare_verdict_of(&c), VERDICT_NONE_SHOWN);
  assert_int_equal(c.trials_needed, 5);
  assert_true(row_of(&c, "delivery.p50")->apart);
  trial_list_free(&near);
  trial_list_free(&far);
}

/* --- refusals --- */

static void refused(const struct trial_list *base, const struct trial_list *candidate, const char *says) {
  static struct comparison c;
  static const struct compare_settings settings;
  struct err err = {0};
  assert_int_equal(compare_trials(base, candidate, &settings, &c, &err), STATUS_USAGE);
  if (!strstr(err.text, says)) fail_msg("'%s' does not say '%s'", err.text, says);
}

/* Gives one trial a comparability of its own in which the key differs. */
static json_t *with_other(struct trial *trial, const char *key) {
  json_t *facts = json_deep_copy(trial->facts), *before = trial->facts;
  json_t *comparability = json_object_get(facts, "comparability");
  json_object_set_new(comparability, key, json_string("something else"));
  trial->facts = facts;
  return before;
}

static void every_key_that_differs_refuses(void **state) {
  (void)state;
  struct trial_list all = recorded("near.json");
  struct trial a[2 * FIVE], b[2 * FIVE];
  struct trial_list base = chosen(&all, 1, a), candidate = chosen(&all, 2, b);
  const char *key;
  json_t *value;
  size_t tried = 0;
  json_object_foreach(json_object_get(all.trial[0].facts, "comparability"), key, value) {
    json_t *before = with_other(&candidate.trial[0], key);
    refused(&base, &candidate, key);
    static struct comparison c;
    struct err err = {0};
    struct compare_settings allows = {.allowed = &key, .allowed_count = 1};
    assert_int_equal(compare_trials(&base, &candidate, &allows, &c, &err), STATUS_OK);
    assert_int_equal(c.differences, 1);
    assert_string_equal(c.difference[0].key, key);
    json_decref(candidate.trial[0].facts);
    candidate.trial[0].facts = before;
    tried++;
  }
  assert_true(tried >= 20);
  trial_list_free(&all);
}

/* One trial of the list with a comparability that has these options. */
static struct trial with_options(const struct trial *trial, const char *version, const char *qos) {
  struct trial with = *trial;
  with.facts = json_deep_copy(trial->facts);
  json_t *options = json_pack("{s:s, s:s}", "mqtt-version", version, "qos", qos);
  json_object_set_new(json_object_get(with.facts, "comparability"), "options", options);
  return with;
}

/* Each option by its own name; what an older report does not tell differs too. */
static void options_of_the_protocol_refuse(void **state) {
  (void)state;
  struct trial_list all = recorded("near.json");
  struct trial five = with_options(&all.trial[0], "5", "1"), old = with_options(&all.trial[1], "3.1.1", "1");
  struct trial twice = with_options(&all.trial[1], "5", "2");
  struct trial_list base = {&five, 1}, of_old = {&old, 1}, of_twice = {&twice, 1}, without = {&all.trial[1], 1};
  refused(&base, &without, "mqtt-version is \"5\" in the base and not there in the candidate");
  refused(&without, &base, "(differing: mqtt-version, qos)");
  refused(&base, &of_old, "mqtt-version is \"5\" in the base and \"3.1.1\" in the candidate (differing: mqtt-version)");
  refused(&base, &of_twice, "qos is \"1\" in the base and \"2\" in the candidate (differing: qos)");
  static struct comparison c;
  struct err err = {0};
  const char *key = "qos";
  struct compare_settings allows = {.allowed = &key, .allowed_count = 1};
  assert_int_equal(compare_check_allowed(&base, &of_twice, &allows, &err), STATUS_OK);
  assert_int_equal(compare_check_allowed(&without, &without, &allows, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "--allow-different qos: no such key; these runs have protocol tls "));
  assert_int_equal(compare_trials(&base, &of_twice, &allows, &c, &err), STATUS_OK);
  assert_int_equal(c.differences, 1);
  key = "options"; /* which holds the keys, and is none */
  assert_int_equal(compare_check_allowed(&base, &of_twice, &allows, &err), STATUS_USAGE);
  json_decref(five.facts);
  json_decref(old.facts);
  json_decref(twice.facts);
  trial_list_free(&all);
}

static void runs_of_one_side_must_agree(void **state) {
  (void)state;
  struct trial_list all = recorded("near.json");
  struct trial a[2 * FIVE], b[2 * FIVE];
  struct trial_list base = chosen(&all, 3, a), candidate = chosen(&all, 4, b);
  json_t *before = with_other(&base.trial[1], "payload_bytes");
  refused(&base, &candidate, "the runs of the base differ among themselves: payload_bytes");
  json_decref(base.trial[1].facts);
  base.trial[1].facts = before;
  trial_list_free(&all);
}

static void invalid_and_repeated_runs_are_refused(void **state) {
  (void)state;
  struct trial_list all = recorded("near.json");
  struct trial a[2 * FIVE], b[2 * FIVE];
  struct trial_list base = chosen(&all, 3, a), candidate = chosen(&all, 6, b);
  refused(&base, &candidate, "is there twice");
  candidate = chosen(&all, 12, b);
  json_t *before = candidate.trial[1].facts;
  candidate.trial[1].facts = json_deep_copy(before);
  json_object_set_new(candidate.trial[1].facts, "verdict",
      json_pack("{s:s, s:[s]}", "result", "invalid", "reasons", "the generator was late"));
  refused(&base, &candidate, "trial 2 of the candidate is invalid");
  refused(&base, &candidate, "the generator was late");
  json_decref(candidate.trial[1].facts);
  candidate.trial[1].facts = before;
  trial_list_free(&all);
}

static bool warns(const struct comparison *c, const char *what) {
  for (size_t i = 0; i < c->warnings; i++) {
    if (strstr(c->warning[i], what)) return true;
  }
  return false;
}

static void other_environments_are_named(void **state) {
  (void)state;
  static struct comparison c;
  struct trial_list all = recorded("near.json");
  struct trial a[2 * FIVE], b[2 * FIVE];
  struct trial_list base = chosen(&all, 3, a), candidate = chosen(&all, 12, b);
  compared(&base, &candidate, &c);
  assert_int_equal(c.warnings, 1); /* of the persistence, which is not known here */
  json_t *before = candidate.trial[1].facts;
  candidate.trial[1].facts = json_deep_copy(before);
  json_object_set_new(json_object_get(candidate.trial[1].facts, "environment"), "kernel", json_string("Linux 99"));
  compared(&base, &candidate, &c);
  assert_int_equal(c.warnings, 2);
  assert_true(warns(&c, "kernel") && warns(&c, "Linux 99"));
  json_decref(candidate.trial[1].facts);
  candidate.trial[1].facts = before;
  trial_list_free(&all);
}

/* What muster writes of two runs that differ in their storm, or of which only one has one. */
static void storms_refuse(void **state) {
  (void)state;
  struct report report = sample_valid();
  struct workload *l = &report.workload;
  json_t *written[4];
  for (int i = 0; i < 4; i++) {
    l->storm = i > 0;
    l->storm_at_ns = i == 2 ? 2000000000 : 1000000000;
    l->backoff_first_ns = i == 3 ? 50000000 : 100000000;
    l->backoff_max_ns = 5000000000;
    char *text = sample_written(report_write_json, &report);
    written[i] = json_loads(text, 0, NULL);
    free(text);
  }
  report_free(&report);
  struct trial_list all = recorded("near.json");
  static const char *const keys[] = {"storm_by", "storm_at_s", "storm_backoff_first_s"};
  for (int i = 0; i < 3; i++) {
    struct trial a = all.trial[0], b = all.trial[1];
    a.facts = json_deep_copy(a.facts), b.facts = json_deep_copy(b.facts);
    json_object_set(a.facts, "comparability", json_object_get(written[i == 0 ? 0 : 1], "comparability"));
    json_object_set(b.facts, "comparability", json_object_get(written[i + 1], "comparability"));
    struct trial_list base = {&a, 1}, candidate = {&b, 1};
    refused(&base, &candidate, keys[i]);
    json_decref(a.facts), json_decref(b.facts);
  }
  for (int i = 0; i < 4; i++)
    json_decref(written[i]);
  trial_list_free(&all);
}

static void persistence_that_nobody_knows_is_a_warning(void **state) {
  (void)state;
  static struct comparison c;
  struct trial_list all = recorded("near.json");
  struct trial a = all.trial[0], b = all.trial[1];
  struct trial_list base = {&a, 1}, candidate = {&b, 1};
  compared(&base, &candidate, &c);
  assert_true(warns(&c, "--database"));
  a.facts = json_deep_copy(a.facts), b.facts = json_deep_copy(b.facts);
  json_object_set_new(json_object_get(a.facts, "comparability"), "persistence", json_string("MySQL"));
  json_object_set_new(json_object_get(b.facts, "comparability"), "persistence", json_string("MySQL"));
  compared(&base, &candidate, &c);
  assert_false(warns(&c, "--database"));
  /* Known of one side only: the difference says it, whichever side that is. */
  const char *key = "persistence";
  struct compare_settings allows = {.allowed = &key, .allowed_count = 1};
  struct err err = {0};
  json_object_set_new(json_object_get(a.facts, "comparability"), "persistence", json_string("unknown"));
  assert_int_equal(compare_trials(&base, &candidate, &allows, &c, &err), STATUS_OK);
  assert_false(warns(&c, "of either side"));
  assert_int_equal(c.differences, 1);
  assert_int_equal(compare_trials(&candidate, &base, &allows, &c, &err), STATUS_OK);
  assert_false(warns(&c, "of either side"));
  json_decref(a.facts), json_decref(b.facts);
  trial_list_free(&all);
}

/* --- gates --- */

static void gates_hold_and_break(void **state) {
  (void)state;
  static struct comparison c;
  struct err err = {0};
  struct trial_list near = recorded("near.json"), far = recorded("far.json");
  struct compare_settings settings = {0};
  assert_int_equal(
      gate_parse("delivery.p50 +3%, delivery.p50 +50%, delivery.p50 -3%", &settings.gates, &err), STATUS_OK);
  assert_int_equal(compare_trials(&near, &far, &settings, &c, &err), STATUS_OK);
  assert_int_equal(c.gate[0].result, GATE_BROKEN);
  assert_int_equal(c.gate[1].result, GATE_HELD);
  assert_int_equal(c.gate[2].result, GATE_HELD);
  assert_int_equal(compare_exit_code(&c), 1);
  assert_int_equal(compare_trials(&far, &near, &settings, &c, &err), STATUS_OK);
  assert_int_equal(c.gate[0].result, GATE_HELD);
  assert_int_equal(c.gate[2].result, GATE_BROKEN);
  trial_list_free(&near);
  trial_list_free(&far);
}

static void gates_that_cannot_be_decided_are_no_pass(void **state) {
  (void)state;
  static struct comparison c;
  struct err err = {0};
  struct trial_list near = recorded("near.json"), far = recorded("far.json");
  struct trial a[2 * FIVE], b[2 * FIVE];
  struct trial_list base = chosen(&near, 7, a), candidate = chosen(&far, 7, b);
  struct compare_settings settings = {0};
  assert_int_equal(gate_parse("delivery.p50 +3%", &settings.gates, &err), STATUS_OK);
  assert_int_equal(compare_trials(&base, &candidate, &settings, &c, &err), STATUS_OK);
  assert_int_equal(c.gate[0].result, GATE_UNDECIDED);
  assert_int_equal(compare_exit_code(&c), 3);
  settings.gates.count = 0;
  assert_int_equal(gate_parse("recover.p99 +3%", &settings.gates, &err), STATUS_OK);
  assert_int_equal(compare_trials(&near, &far, &settings, &c, &err), STATUS_OK);
  assert_int_equal(c.gate[0].result, GATE_UNDECIDED);
  trial_list_free(&near);
  trial_list_free(&far);
}

static char *junit_of(const struct compare_junit *junit) {
  char *text = NULL;
  size_t len = 0;
  FILE *file = open_memstream(&text, &len);
  assert_non_null(file);
  assert_int_equal(compare_write_junit(file, junit, NULL), STATUS_OK);
  fclose(file);
  return text;
}

static void gates_are_tests_of_a_ci_server(void **state) {
  (void)state;
  static struct comparison c;
  struct err err = {0};
  struct trial_list near = recorded("near.json"), far = recorded("far.json");
  struct compare_settings settings = {0};
  struct compare_junit junit = {.comparison = &c, .at = "2026-12-01T09:00:00Z"};
  assert_int_equal(
      gate_parse("delivery.p50 +3%, delivery.p50 +50%, recover.p99 +3%", &settings.gates, &err), STATUS_OK);
  assert_int_equal(compare_trials(&near, &far, &settings, &c, &err), STATUS_OK);
  char *text = junit_of(&junit);
  assert_non_null(strstr(text, "tests=\"4\" failures=\"1\" errors=\"1\""));
  assert_non_null(strstr(text, "name=\"comparable\" time=\"0.000\"/>"));
  assert_non_null(strstr(text, "name=\"gate delivery.p50+3%\" time=\"0.000\">\n      <failure type=\"gate\""));
  assert_non_null(strstr(text, "name=\"gate delivery.p50+50%\" time=\"0.000\"/>"));
  assert_non_null(strstr(text, "recover.p99+3% could not be decided: "));
  free(text);
  junit.refusal = "key <payload_bytes> differs";
  text = junit_of(&junit);
  assert_non_null(strstr(text, "tests=\"1\" failures=\"0\" errors=\"1\""));
  assert_non_null(strstr(text, "key &lt;payload_bytes&gt; differs"));
  free(text);
  trial_list_free(&near);
  trial_list_free(&far);
}

static void gates_say_where_they_are_wrong(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } bad[] = {
      {"", "a gate is empty"},
      {"delivery.p98 +10%", "character 1: name a clock's percentile"},
      {"lost +10%", "character 1: name a clock's percentile"},
      {"delivery.p99", "character 13: a change must follow"},
      {"delivery.p99 +", "character 14: give a number"},
      {"delivery.p99 +ten%", "character 14: give a number"},
      {"delivery.p99 +0%", "character 14: give a change above 0 %"},
      {"delivery.p99 +10", "character 16: a change ends in %"},
      {"delivery.p99 +10%x", "character 16: a change ends in %"},
      {"acks_per_second -100%", "character 17: nothing falls by 100 %"},
      {"delivery.p99 +10%,", "a gate is empty"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct gate_list list = {0};
    struct err err = {0};
    assert_int_equal(gate_parse(bad[i].text, &list, &err), STATUS_USAGE);
    if (!strstr(err.text, bad[i].says)) fail_msg("%s: '%s' does not say '%s'", bad[i].text, err.text, bad[i].says);
  }
  struct gate_list list = {0};
  struct err err = {0};
  assert_int_equal(gate_parse("delivery.p99_9 +2.5%,acks_per_second -5%", &list, &err), STATUS_OK);
  assert_int_equal(list.gate[0].metric, metric("delivery.p99.9"));
  assert_true(list.gate[0].change == 0.025 && list.gate[1].change == -0.05);
}

/* --- the text --- */

static void the_page_is_at_most_100_columns_wide(void **state) {
  (void)state;
  static struct comparison c;
  struct err err = {0};
  struct trial_list near = recorded("near.json"), far = recorded("far.json");
  for (size_t m = 0; m < METRICS; m++) { /* a figure for every metric, some of them far apart */
    for (size_t i = 0; i < near.count; i++) {
      near.trial[i].metrics.value[m] = m % 3 ? 1.5e6 : 3e9 + 1e8 * (double)i;
      far.trial[i].metrics.value[m] = m % 2 ? 4e12 + 1e10 * (double)i : 5;
      near.trial[i].metrics.state[m] = far.trial[i].metrics.state[m] = METRIC_KNOWN;
    }
  }
  compared(&near, &far, &c);
  char *text = NULL;
  size_t len = 0;
  FILE *file = open_memstream(&text, &len);
  assert_non_null(file);
  assert_int_equal(compare_write_text(file, &c, &err), STATUS_OK);
  struct trials trials = {.name = "near", .asked = 10, .list = near};
  trials_write_head(file);
  trials_write_row(file, "near", 1, &near.trial[0]);
  assert_int_equal(trials_write_summary(file, &trials, &err), STATUS_OK);
  fclose(file);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    if (strlen(line) > 100) fail_msg("%zu columns: %s", strlen(line), line);
  }
  free(text);
  trial_list_free(&near);
  trial_list_free(&far);
}

static char *written(enum status (*write)(FILE *, const void *, struct err *), const void *content) {
  char *text = NULL;
  size_t len = 0;
  struct err err = {0};
  FILE *file = open_memstream(&text, &len);
  assert_non_null(file);
  if (write(file, content, &err) != STATUS_OK) fail_msg("%s", err.text);
  fclose(file);
  return text;
}

static enum status write_comparison(FILE *file, const void *content, struct err *err) {
  return compare_write_text(file, content, err);
}

static enum status write_trials(FILE *file, const void *content, struct err *err) {
  const struct trials *trials = content;
  trials_write_head(file);
  for (size_t i = 0; i < trials->list.count; i++)
    trials_write_row(file, trials->name, (uint32_t)i + 1, &trials->list.trial[i]);
  return trials_write_summary(file, trials, err);
}

static enum status rewrite(FILE *file, const void *content, struct err *err) {
  struct document document;
  enum status status = document_parse("a.json", content, strlen(content), &document, err);
  bool is_comparison = status == STATUS_OK && document.kind == DOCUMENT_COMPARE;
  if (status == STATUS_OK) status = (is_comparison ? compare_rewrite_text : trials_rewrite_text)(file, &document, err);
  document_free(&document);
  return status;
}

/* What is saved says the same as what was printed. */
static void assert_rewritten(enum status (*text)(FILE *, const void *, struct err *),
    enum status (*json)(FILE *, const void *, struct err *), const void *content) {
  char *printed = written(text, content), *saved = written(json, content), *again = written(rewrite, saved);
  assert_string_equal(again, printed);
  free(printed);
  free(saved);
  free(again);
}

static void saved_documents_print_the_same(void **state) {
  (void)state;
  static struct comparison c;
  struct trial_list near = recorded("near.json"), far = recorded("far.json");
  const char *key = "payload_bytes";
  struct compare_settings settings = {.allowed = &key, .allowed_count = 1};
  struct err err = {0};
  assert_int_equal(gate_parse("ack.p99 +1%,ack.p99.99 -1%", &settings.gates, &err), STATUS_OK);
  json_object_set_new(json_object_get(far.trial[0].facts, "comparability"), key, json_integer(7));
  assert_int_equal(compare_trials(&near, &far, &settings, &c, &err), STATUS_OK);
  assert_int_equal(c.differences, 1);
  assert_rewritten(write_comparison, compare_write_json, &c);
  struct trial_list three = {near.trial, 3}, others = {near.trial + 3, 3};
  struct compare_settings plain = {0};
  assert_int_equal(compare_trials(&three, &others, &plain, &c, &err), STATUS_OK);
  assert_true(c.trials_needed > 0);
  assert_rewritten(write_comparison, compare_write_json, &c);
  const char *names[] = {"near"};
  struct trials trials = {.name = "near", .asked = 12, .alternating = names, .workloads = 1, .list = near};
  assert_rewritten(write_trials, trials_write_json, &trials);
  err_set(&err, STATUS_UNREACHABLE, "it is gone");
  assert_int_equal(trial_list_add_failed(&near, &err, 4, NULL), STATUS_OK);
  trials.list = near;
  assert_rewritten(write_trials, trials_write_json, &trials);
  trial_list_free(&near);
  trial_list_free(&far);
}

static void saved_documents_that_were_changed_are_refused(void **state) {
  (void)state;
  static const char *const texts[] = {"{\"document\": \"compare\", \"schema_version\": 1}",
      "{\"document\": \"compare\", \"schema_version\": 2}", "{\"document\": \"trials\", \"schema_version\": 1}",
      "{\"document\": \"trials\", \"schema_version\": 1, \"trials\": [{\"run_id\": 7}]}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct err err = {0};
    FILE *file = fopen("/dev/null", "w");
    assert_int_not_equal(rewrite(file, texts[i], &err), STATUS_OK);
    assert_non_null(strstr(err.text, "a.json"));
    fclose(file);
  }
}

/* A pipe among the reports of a folder is passed over: nobody may ever write into it. */
static void a_folder_may_hold_other_things(void **state) {
  (void)state;
  char folder[] = "/tmp/muster-compare-XXXXXX", pipe[64], hidden[64];
  struct trial_list list = {0};
  struct err err = {0};
  assert_non_null(mkdtemp(folder));
  snprintf(pipe, sizeof pipe, "%s/pipe.json", folder);
  snprintf(hidden, sizeof hidden, "%s/a\nb.json", folder);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  assert_int_equal(mkdir(hidden, 0700), 0);
  assert_int_equal(trial_list_read(&list, folder, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "holds no run reports"));
  trial_list_free(&list);
  unlink(pipe);
  rmdir(hidden);
  rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equals_do_not_alarm),
      cmocka_unit_test(five_percent_are_found),
      cmocka_unit_test(five_percent_that_were_there_are_found),
      cmocka_unit_test(three_trials_show_nothing_and_say_so),
      cmocka_unit_test(every_key_that_differs_refuses),
      cmocka_unit_test(options_of_the_protocol_refuse),
      cmocka_unit_test(runs_of_one_side_must_agree),
      cmocka_unit_test(invalid_and_repeated_runs_are_refused),
      cmocka_unit_test(other_environments_are_named),
      cmocka_unit_test(storms_refuse),
      cmocka_unit_test(persistence_that_nobody_knows_is_a_warning),
      cmocka_unit_test(gates_hold_and_break),
      cmocka_unit_test(gates_that_cannot_be_decided_are_no_pass),
      cmocka_unit_test(gates_are_tests_of_a_ci_server),
      cmocka_unit_test(gates_say_where_they_are_wrong),
      cmocka_unit_test(the_page_is_at_most_100_columns_wide),
      cmocka_unit_test(saved_documents_print_the_same),
      cmocka_unit_test(saved_documents_that_were_changed_are_refused),
      cmocka_unit_test(a_folder_may_hold_other_things),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
