/* The examples of Redis's protocol specification (RESP2 and RESP3), each also split at every byte. */
#include "wire/resp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define BULK_MAX 1000

/* Measures text, after every shorter prefix (in memory of its own size) was found partial; returns its parts. */
static struct view measure(const char *text, size_t len) {
  size_t size;
  for (size_t cut = 0; cut < len; cut++) {
    uint8_t *copy = malloc(cut ? cut : 1);
    assert_non_null(copy);
    memcpy(copy, text, cut);
    if (resp_measure(copy, cut, BULK_MAX, &size) != RESP_PARTIAL) fail_msg("cut at %zu of \"%s\"", cut, text);
    assert_int_equal(size, 0);
    free(copy);
  }
  if (resp_measure((const uint8_t *)text, len, BULK_MAX, &size) != RESP_COMPLETE) fail_msg("refused: \"%s\"", text);
  assert_int_equal(size, len);
  return view_of(text, len);
}

static struct view measure_text(const char *text) {
  return measure(text, strlen(text));
}

static struct resp_value next(struct view *rest) {
  struct resp_value value;
  assert_true(resp_next(rest, &value));
  return value;
}

static void assert_text(struct view *rest, enum resp_type type, const char *want) {
  struct resp_value value = next(rest);
  assert_int_equal(value.type, type);
  if (!view_is(value.text, want)) fail_msg("got \"%.*s\"", (int)value.text.len, (const char *)value.text.data);
}

static void assert_number(struct view *rest, enum resp_type type, int64_t want) {
  struct resp_value value = next(rest);
  assert_int_equal(value.type, type);
  assert_int_equal(value.number, want);
}

static void assert_end(struct view *rest) {
  struct resp_value value;
  assert_false(resp_next(rest, &value));
}

static void assert_one_text(const char *text, enum resp_type type, const char *want) {
  struct view rest = measure_text(text);
  assert_text(&rest, type, want);
  assert_end(&rest);
}

static void assert_one_number(const char *text, enum resp_type type, int64_t want) {
  struct view rest = measure_text(text);
  assert_number(&rest, type, want);
  assert_end(&rest);
}

static void test_simple(void **state) {
  (void)state;
  assert_one_text("+OK\r\n", RESP_STRING, "OK");
  assert_one_text("-ERR unknown command 'asdf'\r\n", RESP_ERROR, "ERR unknown command 'asdf'");
  assert_one_number(":0\r\n", RESP_INTEGER, 0);
  assert_one_number(":1000\r\n", RESP_INTEGER, 1000);
  assert_one_number(":-9223372036854775808\r\n", RESP_INTEGER, INT64_MIN);
  assert_one_number(":+9223372036854775807\r\n", RESP_INTEGER, INT64_MAX);
  assert_one_text("$5\r\nhello\r\n", RESP_STRING, "hello");
  assert_one_text("$0\r\n\r\n", RESP_STRING, "");
  struct view rest = measure("$4\r\n\r\n\0x\r\n", 10);
  struct resp_value value = next(&rest);
  assert_memory_equal(value.text.data, "\r\n\0x", 4);
  rest = measure_text("$-1\r\n");
  assert_int_equal(next(&rest).type, RESP_NULL);
  rest = measure_text("*-1\r\n");
  assert_int_equal(next(&rest).type, RESP_NULL);
  assert_end(&rest);
}

static void test_resp3(void **state) {
  (void)state;
  struct view rest = measure_text("_\r\n");
  assert_int_equal(next(&rest).type, RESP_NULL);
  assert_one_number("#t\r\n", RESP_BOOLEAN, 1);
  assert_one_number("#f\r\n", RESP_BOOLEAN, 0);
  assert_one_text(",1.23\r\n", RESP_OTHER, "1.23");
  assert_one_text(",-inf\r\n", RESP_OTHER, "-inf");
  assert_one_text(
      "(3492890328409238509324850943850943825024385\r\n", RESP_OTHER, "3492890328409238509324850943850943825024385");
  assert_one_text("!21\r\nSYNTAX invalid syntax\r\n", RESP_ERROR, "SYNTAX invalid syntax");
  assert_one_text("=15\r\ntxt:Some string\r\n", RESP_STRING, "Some string");
}

static void test_aggregates(void **state) {
  (void)state;
  assert_one_number("*0\r\n", RESP_ARRAY, 0);
  struct view rest = measure_text("*2\r\n$5\r\nhello\r\n$5\r\nworld\r\n");
  assert_number(&rest, RESP_ARRAY, 2);
  assert_text(&rest, RESP_STRING, "hello");
  assert_text(&rest, RESP_STRING, "world");
  assert_end(&rest);

  rest = measure_text("*2\r\n*3\r\n:1\r\n:2\r\n:3\r\n*2\r\n+Hello\r\n-World\r\n");
  assert_number(&rest, RESP_ARRAY, 2);
  resp_skip(&rest);
  assert_number(&rest, RESP_ARRAY, 2);
  assert_text(&rest, RESP_STRING, "Hello");
  assert_text(&rest, RESP_ERROR, "World");
  assert_end(&rest);

  rest = measure_text("%2\r\n+first\r\n:1\r\n+second\r\n:2\r\n");
  assert_number(&rest, RESP_MAP, 4);
  assert_text(&rest, RESP_STRING, "first");
  assert_number(&rest, RESP_INTEGER, 1);
  resp_skip(&rest);
  resp_skip(&rest);
  assert_end(&rest);

  rest = measure_text("~5\r\n+orange\r\n+apple\r\n#t\r\n:100\r\n:999\r\n");
  assert_number(&rest, RESP_ARRAY, 5);

  rest = measure_text(">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$5\r\nhello\r\n");
  assert_number(&rest, RESP_PUSH, 3);
  assert_text(&rest, RESP_STRING, "message");
}

static void test_attributes(void **state) {
  (void)state;
  struct view rest = measure_text("|1\r\n+key-popularity\r\n%2\r\n$1\r\na\r\n,0.1923\r\n$1\r\nb\r\n,0.0012\r\n"
                                  "*2\r\n:2039123\r\n:9543892\r\n");
  assert_number(&rest, RESP_ARRAY, 2);
  assert_number(&rest, RESP_INTEGER, 2039123);
  assert_number(&rest, RESP_INTEGER, 9543892);
  assert_end(&rest);

  rest = measure_text("*3\r\n:1\r\n:2\r\n|1\r\n+ttl\r\n:3600\r\n:3\r\n");
  assert_number(&rest, RESP_ARRAY, 3);
  resp_skip(&rest);
  resp_skip(&rest);
  resp_skip(&rest);
  assert_end(&rest);
}

static void assert_bad(const char *text) {
  size_t size;
  if (resp_measure((const uint8_t *)text, strlen(text), BULK_MAX, &size) != RESP_BAD) fail_msg("taken: \"%s\"", text);
}

static void test_bad(void **state) {
  (void)state;
  static const char *const texts[] = {"hello\r\n", "\r\n", "+a\rb\r\n", "+a\nb\r\n", ":\r\n", ":1x\r\n",
      ":99999999999999999999\r\n", ":9223372036854775808\r\n", "$-2\r\n", "$+1\r\n", "$1001\r\n", "$2\r\nabcd",
      "*-2\r\n", "*65537\r\n", "*99999999999999999999\r\n", "%32769\r\n", ">-1\r\n", "~-1\r\n", "#x\r\n", "_x\r\n",
      ",\r\n", ",1 2\r\n", "$?\r\n", "*?\r\n", "=3\r\ntxt\r\n", "=5\r\nabcde\r\n", "HTTP/1.1 400 Bad Request\r\n"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    assert_bad(texts[i]);
  assert_bad("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
  measure_text("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
  /* Many times the greatest count, one in the other. */
  assert_bad("*65536\r\n*65536\r\n*65536\r\n*65536\r\n*65536\r\n*65536\r\n*65536\r\n*65536\r\n*65536\r\n");
}

static void test_limits(void **state) {
  (void)state;
  size_t len = RESP_LINE_MAX + 1, size;
  uint8_t *line = malloc(len);
  assert_non_null(line);
  memset(line, '+', len);
  assert_int_equal(resp_measure(line, len - 1, BULK_MAX, &size), RESP_PARTIAL);
  assert_int_equal(resp_measure(line, len, BULK_MAX, &size), RESP_BAD);
  free(line);

  uint32_t count = RESP_ELEMENTS_MAX;
  len = 32 + (size_t)count * 3;
  char *many = malloc(len);
  assert_non_null(many);
  for (int more = -1; more <= 0; more++) { /* the array itself counts */
    size_t at = (size_t)((uint8_t *)resp_write_array((uint8_t *)many, count + (uint32_t)more) - (uint8_t *)many);
    for (uint32_t i = 0; i < count; i++, at += 3)
      memcpy(many + at, "_\r\n", 3);
    assert_int_equal(resp_measure((const uint8_t *)many, at, BULK_MAX, &size), more < 0 ? RESP_COMPLETE : RESP_BAD);
  }
  free(many);
}

static void test_writing(void **state) {
  (void)state;
  uint8_t out[128];
  uint8_t *at = resp_write_array(out, 2);
  at = resp_write_bulk(at, view_str("LLEN"));
  at = resp_write_bulk(at, view_str("mylist"));
  assert_true(view_is(view_of(out, (size_t)(at - out)), "*2\r\n$4\r\nLLEN\r\n$6\r\nmylist\r\n"));
  assert_true((size_t)(at - out) <= RESP_HEAD_MAX + resp_bulk_size(4) + resp_bulk_size(6));
  at = resp_write_bulk_head(out, 12345);
  assert_true(view_is(view_of(out, (size_t)(at - out)), "$12345\r\n"));
}

static void test_errors(void **state) {
  (void)state;
  assert_int_equal(resp_error_of(view_str("WRONGPASS invalid username-password pair")), RESP_ERROR_WRONGPASS);
  assert_int_equal(resp_error_of(view_str("NOAUTH Authentication required.")), RESP_ERROR_NOAUTH);
  assert_int_equal(resp_error_of(view_str("ERR max number of clients reached")), RESP_ERROR_MAXCLIENTS);
  assert_int_equal(resp_error_of(view_str("ERR unknown command 'x'")), RESP_ERROR_ERR);
  assert_int_equal(resp_error_of(view_str("ERRX")), RESP_ERROR_OTHER);
  assert_int_equal(resp_error_of(view_str("")), RESP_ERROR_OTHER);
  for (int32_t error = RESP_ERROR_OTHER; error <= RESP_ERROR_MAXCLIENTS; error++)
    assert_non_null(resp_error_text(error));
  assert_null(resp_error_text(0));
  assert_null(resp_error_text(RESP_ERROR_MAXCLIENTS + 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_simple),
      cmocka_unit_test(test_resp3),
      cmocka_unit_test(test_aggregates),
      cmocka_unit_test(test_attributes),
      cmocka_unit_test(test_bad),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_writing),
      cmocka_unit_test(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
