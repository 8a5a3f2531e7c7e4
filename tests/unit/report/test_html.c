/* The HTML page: what a document or a title holds stays text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/html.h"
#include "sample.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *page_of(const char *title, const char *json) {
  char *text = NULL;
  size_t size = 0;
  struct err err = {0};
  FILE *file = open_memstream(&text, &size);
  assert_non_null(file);
  assert_int_equal(html_write(file, title, json, &err), STATUS_OK);
  fclose(file);
  assert_int_equal(strlen(text), size);
  return text;
}

static unsigned occurrences(const char *text, const char *part) {
  unsigned count = 0;
  for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
    count++;
  return count;
}

/* The JSON of the page; free it. */
static char *document_of(const char *page) {
  static const char start[] = "id=\"document\">";
  const char *from = strstr(page, start);
  assert_non_null(from);
  from += strlen(start);
  const char *to = strstr(from, "</script>");
  assert_non_null(to);
  char *text = malloc((size_t)(to - from) + 1);
  assert_non_null(text);
  memcpy(text, from, (size_t)(to - from));
  text[to - from] = '\0';
  return text;
}

static void hostile_strings_stay_inside(void **state) {
  (void)state;
  const char *json = "{\"name\": \"</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> ]]>\"}";
  char *plain = page_of("plain", "{}");
  char *page = page_of("</title><script>alert(3)</script> & \"more\"\x02", json);
  assert_int_equal(occurrences(page, "<script"), occurrences(plain, "<script"));
  assert_int_equal(occurrences(page, "</script"), occurrences(plain, "</script"));
  assert_int_equal(occurrences(page, "<!--"), occurrences(plain, "<!--"));
  assert_int_equal(occurrences(page, "<img"), 0);
  assert_non_null(strstr(
      page, "<title>&lt;/title&gt;&lt;script&gt;alert(3)&lt;/script&gt; &amp; &quot;more&quot;\xef\xbf\xbd</title>"));

  char *text = document_of(page);
  json_t *read = json_loads(text, 0, NULL);
  json_t *written = json_loads(json, 0, NULL);
  assert_non_null(read);
  assert_true(json_equal(read, written));
  json_decref(read);
  json_decref(written);
  free(text);
  free(page);
  free(plain);
}

static void a_page_holds_its_report(void **state) {
  (void)state;
  struct report r = sample_valid();
  report_judge(&r);
  char *text = NULL;
  size_t size = 0;
  struct err err = {0};
  FILE *file = open_memstream(&text, &size);
  assert_int_equal(report_write_html(file, &r, &err), STATUS_OK);
  fclose(file);
  char *json = document_of(text);
  json_t *read = json_loads(json, 0, NULL);
  assert_non_null(read);
  assert_string_equal(json_string_value(json_object_get(read, "run_id")), r.run_id);
  assert_null(strstr(text, "@MUSTER_"));
  json_decref(read);
  free(json);
  free(text);
  report_free(&r);
}

static void a_full_disk_is_an_error(void **state) {
  (void)state;
  struct err err = {0};
  FILE *file = fopen("/dev/full", "w");
  assert_non_null(file);
  assert_int_equal(html_write(file, "title", "{}", &err), STATUS_IO);
  assert_non_null(strstr(err.text, "HTML report"));
  fclose(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hostile_strings_stay_inside),
      cmocka_unit_test(a_page_holds_its_report),
      cmocka_unit_test(a_full_disk_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
