#include "load/scenario.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void refuse_bytes(const char *text, size_t len, const char *expected) {
  struct scenario scenario;
  struct err err = {0};
  assert_int_equal(scenario_parse(view_of(text, len), "x.yaml", &scenario, &err), STATUS_USAGE);
  if (strncmp(err.text, expected, strlen(expected)) != 0) fail_msg("\"%s\" is not \"%s\"", err.text, expected);
  assert_null(strchr(err.text, '\n'));
}

static void refuse(const char *text, const char *expected) {
  refuse_bytes(text, strlen(text), expected);
}

static void assert_entry(const struct scenario_entry *entry, const char *section, const char *key, const char *value,
    uint32_t line, uint32_t column) {
  assert_string_equal(entry->section, section);
  assert_string_equal(entry->key, key);
  assert_string_equal(entry->value, value);
  assert_int_equal(entry->value_place.line, line);
  assert_int_equal(entry->value_place.column, column);
}

static void test_reads_entries_with_their_places(void **state) {
  (void)state;
  static const char text[] = "name: small\n"
                             "description: >\n"
                             "  two\n"
                             "  lines\n"
                             "population:\n"
                             "  clients: 1000 # many\n"
                             "stop: {duration: \"10s\"}\n"
                             "scaled: [clients, rate]\n";
  struct scenario scenario;
  assert_int_equal(scenario_parse(view_str(text), "x.yaml", &scenario, NULL), STATUS_OK);
  assert_int_equal(scenario.entries, 6);
  assert_entry(&scenario.entry[0], "", "name", "small", 1, 7);
  assert_entry(&scenario.entry[1], "", "description", "two lines\n", 2, 14);
  assert_entry(&scenario.entry[2], "population", "clients", "1000", 6, 12);
  assert_int_equal(scenario.entry[2].key_place.line, 6);
  assert_int_equal(scenario.entry[2].key_place.column, 3);
  assert_entry(&scenario.entry[3], "stop", "duration", "10s", 7, 18);
  assert_entry(&scenario.entry[4], "scaled", "", "clients", 8, 10);
  assert_entry(&scenario.entry[5], "scaled", "", "rate", 8, 19);
  assert_ptr_equal(scenario_find(&scenario, "population", "clients"), &scenario.entry[2]);
  assert_null(scenario_find(&scenario, "", "clients"));
  scenario_free(&scenario);
}

static void test_says_where_it_is_wrong(void **state) {
  (void)state;
  refuse("", "x.yaml:1:1: an empty file");
  refuse("# only a comment\n", "x.yaml:1:1: an empty file");
  refuse("word", "x.yaml:1:1: a scenario is a mapping");
  refuse("[a, b]", "x.yaml:1:1: a scenario is a mapping");
  refuse("name: a\nname: b\n", "x.yaml:2:1: \"name\" is given twice: also in line 1");
  refuse("stop:\n  duration: 1s\n  duration: 2s\n", "x.yaml:3:3: \"duration\" is given twice: also in line 2");
  refuse("stop:\n  duration: 1s\nname: a\nstop:\n  count: 1\n", "x.yaml:4:1: \"stop\" is given twice");
  refuse("name:\n", "x.yaml:1:6: \"name\" holds nothing");
  refuse("stop:\n  duration: ~\n", "x.yaml:2:13: \"duration\" holds nothing");
  refuse("stop: {}\n", "x.yaml:1:1: \"stop\" is empty");
  refuse("a:\n  b:\n    c: 1\n", "x.yaml:3:5: too deep");
  refuse("a: [[1]]\n", "x.yaml:1:5: too deep");
  refuse("? [a]\n: 1\n", "x.yaml:1:3: a key must be a plain word");
  refuse("'': 1\n", "x.yaml:1:1: a key without a name");
  refuse("a: 1\n---\nb: 2\n", "x.yaml:2:1: a second document");
  refuse("a: 1\n b: 2\n", "x.yaml:2:3: no YAML: ");
  refuse("a: \"open\n", "x.yaml:2:1: no YAML: ");
  refuse("a: \tb: c\n", "x.yaml:1:6: no YAML: ");
}

static void test_columns_count_characters(void **state) {
  (void)state;
  refuse("{größe: 1, größe: 2}\n", "x.yaml:1:12: \"größe\" is given twice");
}

static void test_refuses_hostile_files(void **state) {
  (void)state;
  refuse("a: &x 1\nb: *x\n", "x.yaml:1:4: anchors, aliases and tags");
  refuse("a: *x\n", "x.yaml:1:4: anchors, aliases and tags");
  refuse("a: !!int 1\n", "x.yaml:1:4: anchors, aliases and tags");
  refuse("bomb: &a [x, x]\nb: &b [*a, *a]\n", "x.yaml:1:7: anchors, aliases and tags");
  refuse("a: \"\\e[31m\"\n", "x.yaml:1:4: control characters");
  refuse("a: \"\\0\"\n", "x.yaml:1:4: control characters");
  refuse_bytes("name: a\nti\0le: b\n", 17, "x.yaml:2:3: a NUL byte");
  refuse("name: a\nt: \xff\n", "x.yaml:2:4: no YAML: ");
  refuse("name: a\nt: \x01\n", "x.yaml:2:4: no YAML: ");
  refuse_bytes("\xff\xfe"
               "a",
      3, "x.yaml:1:1: no YAML: ");
}

static void test_bounds_size_depth_and_number(void **state) {
  (void)state;
  char *text = malloc(SCENARIO_BYTES_MAX + 2);
  memset(text, '[', SCENARIO_BYTES_MAX + 1);
  text[SCENARIO_BYTES_MAX + 1] = '\0';
  refuse(text, "x.yaml: more than 65536 bytes");
  memcpy(text, "a: ", 3);
  text[SCENARIO_BYTES_MAX] = '\0';
  refuse(text, "x.yaml:1:5: too deep");
  memset(text + 3, 'x', SCENARIO_BYTES_MAX - 3);
  refuse(text, "x.yaml:1:4: a text of more than 4096 bytes");
  size_t len = 0;
  for (int i = 0; i <= SCENARIO_ENTRIES_MAX; i++)
    len += (size_t)snprintf(text + len, 16, "k%d: 1\n", i);
  refuse(text, "x.yaml:129:7: more than 128 keys");
  free(text);
}

static void test_quotes_without_harm(void **state) {
  (void)state;
  assert_string_equal(scenario_quote("many").text, "\"many\"");
  assert_string_equal(scenario_quote("a\x1b[31m\n\x7f").text, "\"a?[31m??\"");
  assert_string_equal(scenario_quote("\xc2\x9b").text, "\"?\"");
  assert_string_equal(scenario_quote("123456789012345678901234567890123456789ä").text,
      "\"123456789012345678901234567890123456789...\"");
}

static void test_reads_files(void **state) {
  (void)state;
  char path[] = "/tmp/test_scenario_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, "name: a\n", 8), 8);
  close(fd);
  struct scenario scenario;
  struct err err = {0};
  assert_int_equal(scenario_read(path, &scenario, &err), STATUS_OK);
  assert_string_equal(scenario.source, path);
  scenario_free(&scenario);
  unlink(path);
  assert_int_equal(scenario_read(path, &scenario, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "cannot open"));
  assert_int_equal(scenario_read("/", &scenario, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "cannot read /"));
  assert_int_equal(scenario_read("/dev/zero", &scenario, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "more than 65536 bytes"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reads_entries_with_their_places),
      cmocka_unit_test(test_says_where_it_is_wrong),
      cmocka_unit_test(test_columns_count_characters),
      cmocka_unit_test(test_refuses_hostile_files),
      cmocka_unit_test(test_bounds_size_depth_and_number),
      cmocka_unit_test(test_quotes_without_harm),
      cmocka_unit_test(test_reads_files),
  };
  return cmocka_run_group_tests_name("scenario", tests, NULL, NULL);
}
