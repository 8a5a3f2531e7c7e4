/* The file of calibrations: kept, replaced, matched; damaged ones are neither used nor overwritten. */
#include "load/calibrate.h"

#include "unit/report/sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
  char folder[64], path[128];
};

static int set_up(void **state) {
  struct place *place = calloc(1, sizeof *place);
  snprintf(place->folder, sizeof place->folder, "/tmp/muster-calibrate-XXXXXX");
  if (!mkdtemp(place->folder)) return -1;
  snprintf(place->path, sizeof place->path, "%s/state/muster/calibrations.json", place->folder);
  *state = place;
  return 0;
}

static int tear_down(void **state) {
  struct place *place = *state;
  char path[128];
  static const char *const names[] = {"state/muster/calibrations.json", "state/muster", "state", ""};
  for (size_t i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/%s", place->folder, names[i]);
    remove(path);
  }
  free(place);
  return 0;
}

static struct report sample_of_groups(void) {
  struct report report = sample_valid();
  report.workload.topology = TOPOLOGY_GROUPS;
  report.workload.groups = 1;
  return report;
}

static struct calibration of_sample(double ceiling) {
  struct report report = sample_of_groups();
  struct calibration calibration;
  calibration_of_report(&report, &calibration);
  report_free(&report);
  calibration.ceiling_per_sec = ceiling;
  snprintf(calibration.measured_at, sizeof calibration.measured_at, "2026-12-01T09:00:00.000Z");
  return calibration;
}

static void is_found_again_by_the_same_load(void **state) {
  struct place *place = *state;
  struct calibrations *all = calloc(1, sizeof *all);
  assert_int_equal(calibrations_read(place->path, all, NULL), STATUS_OK);
  assert_int_equal(all->count, 0);
  struct calibration calibration = of_sample(400);
  struct err err = {0};
  if (calibration_store(place->path, &calibration, &err) != STATUS_OK) fail_msg("%s", err.text);
  assert_int_equal(calibrations_read(place->path, all, NULL), STATUS_OK);
  assert_int_equal(all->count, 1);

  struct report report = sample_of_groups();
  calibration_note(all, &report);
  assert_true(report.calibration.ceiling_per_sec == 400);
  assert_string_equal(report.calibration.measured_at, "2026-12-01T09:00:00.000Z");
  report.workload.rate_per_sec = 5; /* the load's height is no part of its shape */
  report.calibration.ceiling_per_sec = 0;
  calibration_note(all, &report);
  assert_true(report.calibration.ceiling_per_sec == 400);
  report_free(&report);
  free(all);
}

static void is_not_taken_for_another_load_or_machine(void **state) {
  struct place *place = *state;
  struct calibration calibration = of_sample(400);
  assert_int_equal(calibration_store(place->path, &calibration, NULL), STATUS_OK);
  struct calibrations *all = calloc(1, sizeof *all);
  assert_int_equal(calibrations_read(place->path, all, NULL), STATUS_OK);
  for (int change = 0; change < 19; change++) {
    struct report report = sample_of_groups();
    struct workload *l = &report.workload;
    if (change == 0) l->clients++;
    if (change == 1) l->senders--;
    if (change == 2) l->payload_bytes++;
    if (change == 3) l->workers++;
    if (change == 4) l->obfuscate = false;
    if (change == 5) report.environment.usable_cpus++;
    if (change == 6) report.environment.kernel[0] = 'X';
    if (change == 7) report.target.protocol[0] = 'X';
    if (change == 8) l->arrivals = ARRIVALS_POISSON;
    if (change == 9) l->groups = 2;
    if (change == 10) l->shared_groups = true;
    if (change == 11) l->load = LOAD_CLOSED;
    if (change == 12) l->load = LOAD_ROUNDS;
    if (change == 13) l->offline = 1;
    if (change == 14) snprintf(report.target.tls, sizeof report.target.tls, "TLSv1.3");
    if (change == 15) report.target.protocol_title[0] = 'X';
    if (change == 16) report.target.ack_meaning[0] = 'X';
    if (change == 17) l->storm = true;
    if (change == 18) l->backlog = true;
    calibration_note(all, &report);
    if (report.calibration.ceiling_per_sec != 0) fail_msg("change %d is not noticed", change);
    report_free(&report);
  }
  free(all);
}

/* A search that ended at --to with everything held does not know how high the ceiling is. */
static void is_a_lower_bound_where_nothing_broke(void **state) {
  struct place *place = *state;
  struct calibrations *all = calloc(1, sizeof *all);
  for (int broke = 0; broke < 2; broke++) {
    struct calibration calibration = of_sample(400);
    calibration.broken_per_sec = broke ? 450 : 0;
    assert_int_equal(calibration_store(place->path, &calibration, NULL), STATUS_OK);
    assert_int_equal(calibrations_read(place->path, all, NULL), STATUS_OK);
    struct report report = sample_of_groups();
    calibration_note(all, &report);
    assert_int_equal(report.calibration.is_lower_bound, !broke);
    report_free(&report);
  }
  free(all);
}

static void replaces_its_own_kind_only_and_forgets_the_oldest(void **state) {
  struct place *place = *state;
  struct calibrations *all = calloc(1, sizeof *all);
  struct calibration calibration = of_sample(1);
  assert_int_equal(calibration_store(place->path, &calibration, NULL), STATUS_OK);
  calibration.ceiling_per_sec = 2;
  assert_int_equal(calibration_store(place->path, &calibration, NULL), STATUS_OK);
  for (int i = 0; i < CALIBRATIONS_MAX; i++) {
    assert_int_equal(calibrations_read(place->path, all, NULL), STATUS_OK);
    assert_int_equal(all->count, i + 1);
    assert_true(all->entry[0].ceiling_per_sec == 2);
    if (i + 1 == CALIBRATIONS_MAX) break;
    snprintf(calibration.shape, sizeof calibration.shape, "shape %d", i);
    calibration.ceiling_per_sec = 10 + i;
    assert_int_equal(calibration_store(place->path, &calibration, NULL), STATUS_OK);
  }
  snprintf(calibration.shape, sizeof calibration.shape, "one more");
  assert_int_equal(calibration_store(place->path, &calibration, NULL), STATUS_OK);
  assert_int_equal(calibrations_read(place->path, all, NULL), STATUS_OK);
  assert_int_equal(all->count, CALIBRATIONS_MAX);
  assert_true(all->entry[0].ceiling_per_sec == 10);
  assert_string_equal(all->entry[CALIBRATIONS_MAX - 1].shape, "one more");
  free(all);
}

static void leaves_damaged_files_alone(void **state) {
  struct place *place = *state;
  struct calibration calibration = of_sample(400);
  assert_int_equal(calibration_store(place->path, &calibration, NULL), STATUS_OK);
  static const char no_cpus[] =
      "{\"kind\":\"muster calibrations\",\"version\":1,\"calibrations\":[{\"machine\":{\"hostname\":\"a\","
      "\"cpu_model\":\"b\",\"kernel\":\"c\",\"usable_cpus\":-1},\"protocol\":\"p\",\"shape\":\"s\","
      "\"measured_at\":\"t\",\"ceiling_publishes_per_second\":1}]}";
  static const char *const damaged[] = {
      "",
      "{",
      "[]",
      "{\"kind\":\"muster calibrations\",\"version\":2,\"calibrations\":[]}",
      "{\"kind\":\"other\",\"version\":1,\"calibrations\":[]}",
      "{\"kind\":\"muster calibrations\",\"version\":1,\"calibrations\":[{}]}",
      no_cpus,
  };
  struct calibrations *all = calloc(1, sizeof *all);
  for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
    FILE *file = fopen(place->path, "w");
    fputs(damaged[i], file);
    fclose(file);
    struct err err = {0};
    assert_int_equal(calibrations_read(place->path, all, &err), STATUS_PROTOCOL);
    assert_int_equal(all->count, 0);
    assert_non_null(strstr(err.text, place->path));
    assert_int_equal(calibration_store(place->path, &calibration, NULL), STATUS_PROTOCOL);
    struct stat info;
    assert_int_equal(stat(place->path, &info), 0);
    assert_int_equal(info.st_size, strlen(damaged[i]));
  }
  free(all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(is_found_again_by_the_same_load, set_up, tear_down),
      cmocka_unit_test_setup_teardown(is_not_taken_for_another_load_or_machine, set_up, tear_down),
      cmocka_unit_test_setup_teardown(is_a_lower_bound_where_nothing_broke, set_up, tear_down),
      cmocka_unit_test_setup_teardown(replaces_its_own_kind_only_and_forgets_the_oldest, set_up, tear_down),
      cmocka_unit_test_setup_teardown(leaves_damaged_files_alone, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
