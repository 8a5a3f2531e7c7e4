#include "measure/hlog.h"
#include "report/formats.h"
#include "unit/report/sample.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/muster-save-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder);
}

static const char *in_folder(char out[128], const char *name) {
  snprintf(out, 128, "%s/%s", folder, name);
  return out;
}

static void parents_are_made(void **state) {
  (void)state;
  struct report r = sample_valid();
  struct err err = {0};
  char path[128], parent[128];
  assert_int_equal(report_save(in_folder(path, "a/b/report.json"), "json", &r, &err), STATUS_OK);
  json_t *root = json_load_file(path, 0, NULL);
  assert_non_null(root);
  assert_string_equal(json_string_value(json_object_get(root, "run_id")), r.run_id);
  json_decref(root);
  unlink(path);
  rmdir(in_folder(parent, "a/b"));
  rmdir(in_folder(parent, "a"));
  report_free(&r);
}

static void nothing_is_overwritten(void **state) {
  (void)state;
  struct report r = sample_valid();
  struct err err = {0};
  char path[128], text[8] = "";
  FILE *file = fopen(in_folder(path, "old.json"), "w");
  assert_non_null(file);
  fputs("old", file);
  fclose(file);
  assert_int_equal(report_save(path, "json", &r, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "never overwritten"));
  assert_int_equal(report_save(path, "hlog", &r, &err), STATUS_IO);
  file = fopen(path, "r");
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  assert_string_equal(text, "old");
  unlink(path);
  report_free(&r);
}

static void a_file_is_no_folder(void **state) {
  (void)state;
  struct report r = sample_valid();
  struct err err = {0};
  assert_int_equal(report_save("/dev/null/report.json", "json", &r, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "/dev/null"));
  assert_int_equal(report_save("", "json", &r, &err), STATUS_USAGE);
  report_free(&r);
}

static void the_log_holds_each_clock(void **state) {
  (void)state;
  struct report r = sample_valid();
  struct err err = {0};
  char path[128];
  assert_int_equal(report_save(in_folder(path, "run.hlog"), "hlog", &r, &err), STATUS_OK);
  FILE *file = fopen(path, "r");
  struct hlog_interval *interval = calloc(1, sizeof *interval);
  unsigned line = 0, found = 0;
  for (;;) {
    bool end = false;
    assert_int_equal(hlog_read_interval(file, &line, interval, &end, &err), STATUS_OK);
    if (end) break;
    bool is_ack = strcmp(interval->tag, "ack") == 0;
    if (!is_ack) assert_string_equal(interval->tag, "schedule_lag");
    const struct histogram *clock = r.clock[is_ack ? CLOCK_ACK : CLOCK_SCHEDULE_LAG];
    assert_int_equal(interval->histogram.count, clock->count);
    assert_int_equal(histogram_percentile(&interval->histogram, 50) / 1000, histogram_percentile(clock, 50) / 1000);
    assert_true(interval->length_s == r.measure_s);
    found++;
  }
  assert_int_equal(found, 2);
  free(interval);
  fclose(file);
  unlink(path);
  report_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parents_are_made),
      cmocka_unit_test(nothing_is_overwritten),
      cmocka_unit_test(a_file_is_no_folder),
      cmocka_unit_test(the_log_holds_each_clock),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
