/* What is read of processes and cgroups, below folders that this test makes; how `--observe` is written; and an
 * observer that looks at a real process until it ends. */
#include "base/clock.h"
#include "load/observe.h"
#include "load/observe_read.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch_folder.h"

static int make_machine(void **state) {
  (void)state;
  if (scratch_make() != 0) return -1;
  scratch_put("/proc/7/stat", "7 (a ) b) S 1 7 7 0 -1 4194560 100 0 0 0 300 200 0 0 20 0 2 0 12345 1000000 500");
  scratch_put("/proc/7/status", "Name:\ta\nVmRSS:\t    2048 kB\nRssAnon:\t 1024 kB\nThreads:\t2\n");
  scratch_put("/proc/7/io", "rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n");
  scratch_put("/proc/7/task/7/status", "voluntary_ctxt_switches:\t10\nnonvoluntary_ctxt_switches:\t3\n");
  scratch_put("/proc/7/task/8/status", "voluntary_ctxt_switches:\t30\nnonvoluntary_ctxt_switches:\t4\n");
  scratch_put("/proc/7/net/dev",
      "Inter-|   Receive  |  Transmit\n face |bytes packets\n"
      "    lo: 100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n  eth0:50 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n");
  scratch_put("/proc/9/stat", "9 (gone) Z 1 9 9 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 1 0 0");
  scratch_put("/v2/cgroup.procs", "");
  scratch_put("/v2/cpu.stat", "usage_usec 2500000\nuser_usec 1\nnr_periods 9\nnr_throttled 4\nthrottled_usec 500000\n");
  scratch_put("/v2/memory.current", "1000\n");
  scratch_put("/v2/memory.stat", "anon 600\nfile 300\nanon_thp 5\n");
  scratch_put("/v2/io.stat", "254:0 rbytes=10 wbytes=20 rios=1\n254:16 rbytes=1 wbytes=2 rios=1\n");
  scratch_put("/v1/cgroup.procs", "");
  scratch_put("/v1/cpuacct.usage", "3500000000\n");
  scratch_put("/empty/cgroup.procs", "");
  return 0;
}

static void a_process_is_read(void **state) {
  (void)state;
  double value[PROCESS_COLUMNS];
  struct err err = {0};
  int folder = observe_open_process(scratch_folder, 7, &err);
  assert_true(folder >= 0);
  assert_int_equal(observe_read_process(folder, 0, value, &err), STATUS_OK);
  assert_true(value[PROCESS_CPU] == 500.0 / (double)sysconf(_SC_CLK_TCK));
  assert_true(value[PROCESS_RSS] == 2048 * 1024);
  assert_true(value[PROCESS_ANONYMOUS] == 1024 * 1024);
  assert_true(value[PROCESS_THREADS] == 2);
  assert_true(isnan(value[PROCESS_DESCRIPTORS]));
  assert_true(value[PROCESS_DISK_READ] == 4096 && value[PROCESS_DISK_WRITE] == 8192);
  assert_true(value[PROCESS_VOLUNTARY] == 40 && value[PROCESS_INVOLUNTARY] == 7);
  assert_true(value[PROCESS_NET_RECEIVED] == 150 && value[PROCESS_NET_SENT] == 120);
  close(folder);
}

static void a_dead_process_is_not(void **state) {
  (void)state;
  double value[PROCESS_COLUMNS];
  struct err err = {0};
  int folder = observe_open_process(scratch_folder, 9, &err);
  assert_int_equal(observe_read_process(folder, 0, value, &err), STATUS_IO);
  assert_string_equal(err.text, "the process has ended");
  close(folder);
  assert_int_equal(observe_open_process(scratch_folder, 8, &err), -1);
  assert_string_equal(err.text, "pid:8: there is no such process");
}

static void read_group(const char *name, double value[CGROUP_COLUMNS], enum status expected) {
  char path[128];
  struct err err = {0};
  snprintf(path, sizeof path, "%s%s", scratch_folder, name);
  int folder = observe_open_cgroup(path, &err);
  assert_true(folder >= 0);
  assert_int_equal(observe_read_cgroup(folder, value, &err), expected);
  close(folder);
}

static void cgroups_of_both_versions_are_read(void **state) {
  (void)state;
  double value[CGROUP_COLUMNS];
  read_group("/v2", value, STATUS_OK);
  assert_true(value[CGROUP_CPU] == 2.5 && value[CGROUP_THROTTLED] == 4 && value[CGROUP_THROTTLED_TIME] == 0.5);
  assert_true(value[CGROUP_MEMORY] == 1000 && value[CGROUP_ANONYMOUS] == 600);
  assert_true(value[CGROUP_DISK_READ] == 11 && value[CGROUP_DISK_WRITE] == 22);
  assert_true(isnan(value[CGROUP_TASKS]));
  read_group("/v1", value, STATUS_OK);
  assert_true(value[CGROUP_CPU] == 3.5 && isnan(value[CGROUP_MEMORY]));
  read_group("/empty", value, STATUS_IO);
  read_group("/proc", value, STATUS_IO);
}

static void targets_are_parsed(void **state) {
  (void)state;
  struct observe_list list = {0};
  assert_int_equal(observe_parse("pid:12;role=other;label=a database", &list, NULL), STATUS_OK);
  assert_int_equal(observe_parse("cgroup:a/b", &list, NULL), STATUS_OK);
  assert_int_equal(
      observe_parse("prometheus:http://h:1/m?a=b;c&d=e;series=up,q{n=\";role=x\",m=\"1\"};role=server", &list, NULL),
      STATUS_OK);
  assert_int_equal(observe_parse("prometheus:https://h/metrics", &list, NULL), STATUS_OK);
  assert_int_equal(list.count, 4);
  assert_int_equal(list.target[0].pid, 12);
  assert_int_equal(list.target[0].role, OBSERVED_OTHER);
  assert_true(view_is(list.target[0].label, "a database"));
  assert_string_equal(list.target[1].where, "/sys/fs/cgroup/a/b");
  assert_int_equal(list.target[1].role, OBSERVED_SERVER);
  assert_string_equal(list.target[2].where, "http://h:1/m?a=b;c&d=e");
  assert_int_equal(list.target[2].series_count, 2);
  assert_true(view_is(list.target[2].series_text[1], "q{n=\";role=x\",m=\"1\"}"));
  assert_true(view_is(list.target[3].series_text[0], "process_cpu_seconds_total"));
}

static void what_is_no_target_is_refused(void **state) {
  (void)state;
  static const char *const cases[] = {"", "12", "pid:", "pid:0", "pid:-1", "pid:12x", "pid:99999999999",
      "cgroup:", "prometheus:", "prometheus:127.0.0.1/metrics", "prometheus:ftp://h/", "pid:1;series=up",
      "pid:1;role=boss", "prometheus:http://h/;series=a b", "prometheus:http://h/;series=a{b=c}",
      "prometheus:http://h/;series=1", "prometheus:http://h/;series=a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct observe_list list = {0};
    struct err err = {0};
    if (observe_parse(cases[i], &list, &err) != STATUS_USAGE) fail_msg("\"%s\" is taken", cases[i]);
    assert_true(err.text[0] && list.count == 0);
  }
  struct observe_list list = {.count = OBSERVE_TARGETS_MAX};
  assert_int_equal(observe_parse("pid:1", &list, NULL), STATUS_USAGE);
}

static void the_check_says_what_is_missing(void **state) {
  (void)state;
  struct observe_list list = {0};
  struct err err = {0};
  char text[128];
  snprintf(text, sizeof text, "cgroup:%s/proc", scratch_folder);
  assert_int_equal(observe_parse(text, &list, NULL), STATUS_OK);
  assert_int_equal(observer_check(&list, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "it is no cgroup"));
  list.count = 0;
  assert_int_equal(observe_parse("prometheus:http://user:secret@127.0.0.1:1/metrics", &list, NULL), STATUS_OK);
  assert_int_equal(observer_check(&list, &err), STATUS_UNREACHABLE);
  assert_non_null(strstr(err.text, "--observe: prometheus:http://***@127.0.0.1:1/metrics: "));
  assert_null(strstr(err.text, "secret"));
  list.count = 0;
  assert_int_equal(observer_check(NULL, &err), STATUS_OK);
}

static pid_t start_child(void) {
  pid_t pid = fork();
  if (pid == 0) {
    for (;;)
      pause();
  }
  return pid;
}

/* Times are made up: the observer takes them as they are given, and what it reads is of now. */
static void a_process_that_ends_is_a_gap(void **state) {
  (void)state;
  struct observe_list list = {0};
  struct observer *observer;
  struct report report = {0};
  char text[64];
  pid_t child = start_child();
  snprintf(text, sizeof text, "pid:%ld;label=child", (long)child);
  assert_int_equal(observe_parse(text, &list, NULL), STATUS_OK);
  assert_int_equal(observer_check(&list, NULL), STATUS_OK);
  const struct observe_own own = {.worker = &child, .workers = 1};
  uint64_t start_ns = clock_now_ns();
  assert_int_equal(observer_start(&observer, &list, &own, NULL), STATUS_OK);
  observer_align(observer, start_ns + NS_PER_SEC / 4);
  observer_turn(observer, start_ns + NS_PER_MS);
  observer_turn(observer, start_ns + 2 * NS_PER_SEC);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  observer_turn(observer, start_ns + 4 * NS_PER_SEC);
  observer_stop(observer, start_ns + 4 * NS_PER_SEC);
  observer_turn(observer, start_ns + 9 * NS_PER_SEC);
  observer_finish(observer, &report);
  assert_int_equal(report.observations, 3);
  const struct report_observed *o = &report.observed[2];
  assert_string_equal(o->label, "child");
  assert_int_equal(o->rows, 3);
  size_t width = o->columns + 1;
  assert_true(o->value[0] < 0);
  assert_true(isnan(o->value[1 + PROCESS_CPU]) && o->value[1 + PROCESS_RSS] > 0);
  assert_true(o->value[width + 1 + PROCESS_CPU] >= 0);
  assert_true(isnan(o->value[2 * width + 1 + PROCESS_RSS]));
  assert_string_equal(o->error, "1 of 3 samples: the process has ended");
  assert_string_equal(report.observed[0].source, "workers");
  assert_string_equal(report.observed[1].source, "control");
  assert_true(report.observed[1].value[2 * width + 1 + PROCESS_RSS] > 0);
  report_free(&report);
}

static void without_a_measure_phase_there_are_no_rows(void **state) {
  (void)state;
  struct observer *observer;
  struct report report = {0};
  pid_t self = getpid();
  const struct observe_own own = {.server = self};
  assert_int_equal(observer_start(&observer, NULL, &own, NULL), STATUS_OK);
  observer_finish(observer, &report);
  assert_int_equal(report.observations, 2);
  assert_int_equal(report.observed[0].rows, 0);
  assert_int_equal(report.observed[0].role, OBSERVED_SERVER);
  report_free(&report);
  observer_finish(NULL, &report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_process_is_read),
      cmocka_unit_test(a_dead_process_is_not),
      cmocka_unit_test(cgroups_of_both_versions_are_read),
      cmocka_unit_test(targets_are_parsed),
      cmocka_unit_test(what_is_no_target_is_refused),
      cmocka_unit_test(the_check_says_what_is_missing),
      cmocka_unit_test(a_process_that_ends_is_a_gap),
      cmocka_unit_test(without_a_measure_phase_there_are_no_rows),
  };
  return cmocka_run_group_tests(tests, make_machine, scratch_remove);
}
