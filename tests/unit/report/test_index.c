/* The index of a results folder: whole lines, also behind half a one. */
#include "report/index.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct index_entry entry = {
    .document = "run", .id = "muster-1", .name = "a \"name\"\n", .started_at = "t", .verdict = "valid"};

static void appends_a_line_behind_half_a_line(void **state) {
  (void)state;
  char folder[] = "/tmp/muster-index-XXXXXX", path[64], index[64], line[512];
  struct err err = {0};
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/report.json", folder);
  snprintf(index, sizeof index, "%s/" INDEX_NAME, folder);
  FILE *file = fopen(index, "w");
  assert_non_null(file);
  fputs("{\"file\":\"ha", file);
  fclose(file);
  assert_int_equal(index_append(path, &entry, &err), STATUS_OK);
  assert_int_equal(index_append(path, &entry, &err), STATUS_OK);
  file = fopen(index, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  assert_string_equal(line, "{\"file\":\"ha\n");
  for (int i = 0; i < 2; i++) {
    assert_non_null(fgets(line, sizeof line, file));
    json_t *read = json_loads(line, 0, NULL);
    assert_non_null(read);
    assert_string_equal(json_string_value(json_object_get(read, "file")), "report.json");
    assert_string_equal(json_string_value(json_object_get(read, "name")), entry.name);
    assert_true(json_is_null(json_object_get(read, "trial")));
    json_decref(read);
  }
  assert_null(fgets(line, sizeof line, file));
  fclose(file);
  unlink(index);
  rmdir(folder);
}

static void says_where_it_cannot_write(void **state) {
  (void)state;
  struct err err = {0};
  assert_int_equal(index_append("/nowhere/at/all/report.json", &entry, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "/nowhere/at/all/" INDEX_NAME));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(appends_a_line_behind_half_a_line),
      cmocka_unit_test(says_where_it_cannot_write),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
