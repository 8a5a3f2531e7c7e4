#include "report/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch_folder.h"

static int make_machine(void **state) {
  (void)state;
  if (scratch_make() != 0) return -1;
  scratch_put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Zuse Z3 @ 5 Hz\nmodel name\t: another\n");
  scratch_put("/proc/meminfo", "MemFree: 1 kB\nMemTotal:      2048 kB\n");
  scratch_put("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Some OS 12\"\n");
  scratch_put("/proc/sys/net/ipv4/tcp_congestion_control", "reno\n");
  scratch_put("/proc/self/cgroup", "0::/slice/job\n");
  return 0;
}

static void files_are_read(void **state) {
  (void)state;
  struct report_environment e = {0};
  environment_read_files(scratch_folder, &e);
  assert_string_equal(e.cpu_model, "Zuse Z3 @ 5 Hz");
  assert_string_equal(e.os, "Some OS 12");
  assert_string_equal(e.congestion_control, "reno");
  assert_int_equal(e.memory_bytes, 2048 * 1024);
  assert_true(e.cgroup_cpus == 0);
  assert_int_equal(e.cgroup_memory_bytes, 0);
}

static void the_tightest_cgroup_counts(void **state) {
  (void)state;
  scratch_put("/sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  scratch_put("/sys/fs/cgroup/slice/job/memory.max", "8388608\n");
  scratch_put("/sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  scratch_put("/sys/fs/cgroup/slice/memory.max", "max\n");
  scratch_put("/sys/fs/cgroup/memory.max", "4194304\n");
  struct report_environment e = {0};
  environment_read_files(scratch_folder, &e);
  assert_true(e.cgroup_cpus == 1.5);
  assert_int_equal(e.cgroup_memory_bytes, 4194304);
}

static void this_machine_has_facts(void **state) {
  (void)state;
  struct report_environment e;
  report_environment_read(&e);
  assert_true(e.logical_cpus >= 1 && e.usable_cpus >= 1 && e.usable_cpus <= e.logical_cpus);
  assert_true(e.memory_bytes > 0);
  assert_true(e.nofile_soft > 0 && e.nofile_soft <= e.nofile_hard);
  assert_true(strncmp(e.kernel, "Linux ", 6) == 0);
  assert_true(e.cpu_model[0] && e.hostname[0] && e.os[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_are_read),
      cmocka_unit_test(the_tightest_cgroup_counts),
      cmocka_unit_test(this_machine_has_facts),
  };
  return cmocka_run_group_tests(tests, make_machine, scratch_remove);
}
