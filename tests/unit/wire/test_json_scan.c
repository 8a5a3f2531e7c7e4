#include "base/rng.h"
#include "wire/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

/* Whether the text, put as the only element of an array, is walked over to the end. */
static bool accepts(const char *text, size_t len) {
  char *array = malloc(len + 2);
  assert_non_null(array);
  array[0] = '[';
  memcpy(array + 1, text, len);
  array[len + 1] = ']';
  struct scan_walk walk = scan_array(view_of(array, len + 2));
  struct view value;
  bool one = scan_next_element(&walk, &value);
  bool good = one && !scan_next_element(&walk, &value) && !walk.bad;
  free(array);
  return good;
}

static void test_values(void **state) {
  (void)state;
  static const char *const good[] = {"0", "-0", "12", "-1.5e+10", "1E5", "true", "false", "null", "\"\"",
      "\"a\\n\\u00e9\"", "{}", "[]", " { \"a\" : [ 1 , { } , [ ] ] , \"b\" : null } ", "[[[[]]]]", "\"\\ud800\"",
      "\t\n\r 1 "};
  static const char *const bad[] = {"", "01", "+1", "1.", ".5", "1e", "--1", "-", "tru", "nul", "True", "\"", "\"\\x\"",
      "\"\\u12g4\"", "\"\n\"", "{", "}", "{]", "[}", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "[1,]", "[,1]",
      "[1 2]", "{\"a\":1 \"b\":2}", "'a'", "1 2", "{,}", "\"\\", "[1]]", "{\"a\":1}}"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    if (!accepts(good[i], strlen(good[i]))) fail_msg("refused: %s", good[i]);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    if (accepts(bad[i], strlen(bad[i]))) fail_msg("accepted: %s", bad[i]);
  }
}

/* jansson agrees about random changes of a text; it refuses half surrogate pairs and \u0000, which we hand on raw. */
static void test_jansson_agrees(void **state) {
  (void)state;
  static const char seed[] =
      "{\"type\": \"broadcast\", \"payload\": {\"sendTime\":\"14\", \"n\": [1, -2.5e3, true, null]}, "
      "\"s\":\"a\\\"b\\\\\", \"e\":[{},[]]}";
  static const char letters[] = "{}[]\",:\\ 0123456789.eE+-tfn\tabu";
  struct rng rng;
  rng_seed(&rng, 7);
  size_t agreed = 0;
  for (int round = 0; round < 40000; round++) {
    char text[sizeof seed];
    memcpy(text, seed, sizeof seed);
    size_t len = sizeof seed - 1;
    for (uint64_t change = rng_below(&rng, 3) + 1; change > 0; change--)
      text[rng_below(&rng, len)] = letters[rng_below(&rng, sizeof letters - 1)];
    json_t *tree = json_loadb(text, len, JSON_DECODE_ANY, NULL);
    if (accepts(text, len) != (tree != NULL)) fail_msg("jansson says %d: %s", tree != NULL, text);
    agreed += tree != NULL;
    json_decref(tree);
  }
  assert_true(agreed > 100);
}

static void test_depth_is_bounded(void **state) {
  (void)state;
  char text[4096];
  memset(text, '[', sizeof text);
  assert_false(accepts(text, sizeof text));
  memset(text + SCAN_DEPTH_MAX, ']', SCAN_DEPTH_MAX);
  assert_true(accepts(text, (size_t)2 * SCAN_DEPTH_MAX));
  memset(text, '[', SCAN_DEPTH_MAX + 1);
  memset(text + SCAN_DEPTH_MAX + 1, ']', SCAN_DEPTH_MAX + 1);
  assert_false(accepts(text, (size_t)2 * (SCAN_DEPTH_MAX + 1)));
}

static void test_members(void **state) {
  (void)state;
  static const char text[] = " {\"a\" : [1,2] ,\n\"\\u0062\":\"x\"} ";
  struct scan_walk walk = scan_object(view_str(text));
  struct view key, value;
  assert_true(scan_next_member(&walk, &key, &value));
  assert_true(scan_is(key, "a"));
  assert_true(view_is(value, "[1,2]"));
  assert_true(scan_next_member(&walk, &key, &value));
  assert_true(scan_is(key, "b"));
  assert_true(view_is(scan_plain_string(value), "x"));
  assert_false(scan_next_member(&walk, &key, &value));
  assert_false(walk.bad);
  walk = scan_object(view_str("{} x"));
  assert_false(scan_next_member(&walk, &key, &value));
  assert_true(walk.bad);
  assert_true(scan_object(view_str("[]")).bad);
  assert_true(scan_object(view_of(NULL, 0)).bad);
}

static void test_every_cut_is_bad(void **state) {
  (void)state;
  static const char text[] = "{\"a\":{\"b\":[1.5e2,\"\\u0041\"]},\"c\":true}";
  for (size_t len = 0; len < sizeof text - 1; len++) {
    char *cut = malloc(len ? len : 1);
    assert_non_null(cut);
    memcpy(cut, text, len);
    struct scan_walk walk = scan_object(view_of(cut, len));
    struct view key, value;
    while (scan_next_member(&walk, &key, &value))
      ;
    assert_true(walk.bad);
    free(cut);
  }
}

static void test_unescape(void **state) {
  (void)state;
  char text[] = "\"{\\\"a\\\":\\\"\\/\\b\\f\\n\\r\\t\\\\ \\u0041\\u00e9\\u20ac\\ud83d\\ude00\\\"}\"";
  size_t len;
  struct view raw = view_of(text, strlen(text));
  assert_true(scan_unescape(raw, (uint8_t *)text, &len));
  assert_true(view_is(view_of(text, len), "{\"a\":\"/\b\f\n\r\t\\ A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"}"));
  uint8_t out[64];
  assert_false(scan_unescape(view_str("\"\\ud83d\""), out, &len));
  assert_false(scan_unescape(view_str("\"\\ud83dx\""), out, &len));
  assert_false(scan_unescape(view_str("\"\\ud83d\\u0041\""), out, &len));
  assert_false(scan_unescape(view_str("\"\\ude00\""), out, &len));
  assert_false(scan_unescape(view_str("12"), out, &len));
  assert_null(scan_plain_string(view_str("\"a\\n\"")).data);
  assert_null(scan_plain_string(view_str("1")).data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_jansson_agrees),
      cmocka_unit_test(test_depth_is_bounded),
      cmocka_unit_test(test_members),
      cmocka_unit_test(test_every_cut_is_bad),
      cmocka_unit_test(test_unescape),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
