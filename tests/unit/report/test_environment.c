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

static char root[64];

static void make_parents(char *path) {
  for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0755);
    *slash = '/';
  }
}

static void put(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s%s", root, name);
  make_parents(path);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int make_machine(void **state) {
  (void)state;
  snprintf(root, sizeof root, "/tmp/muster-machine-XXXXXX");
  if (!mkdtemp(root)) return -1;
  put("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Zuse Z3 @ 5 Hz\nmodel name\t: another\n");
  put("/proc/meminfo", "MemFree: 1 kB\nMemTotal:      2048 kB\n");
  put("/etc/os-release", "NAME=x\nPRETTY_NAME=\"Some OS 12\"\n");
  put("/proc/sys/net/ipv4/tcp_congestion_control", "reno\n");
  put("/proc/self/cgroup", "0::/slice/job\n");
  return 0;
}

static int remove_machine(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", root);
  return system(command); // NOLINT(cert-env33-c): a folder that this test made
}

static void files_are_read(void **state) {
  (void)state;
  struct report_environment e = {0};
  environment_read_files(root, &e);
  assert_string_equal(e.cpu_model, "Zuse Z3 @ 5 Hz");
  assert_string_equal(e.os, "Some OS 12");
  assert_string_equal(e.congestion_control, "reno");
  assert_int_equal(e.memory_bytes, 2048 * 1024);
  assert_true(e.cgroup_cpus == 0);
  assert_int_equal(e.cgroup_memory_bytes, 0);
}

static void the_tightest_cgroup_counts(void **state) {
  (void)state;
  put("/sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
  put("/sys/fs/cgroup/slice/job/memory.max", "8388608\n");
  put("/sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
  put("/sys/fs/cgroup/slice/memory.max", "max\n");
  put("/sys/fs/cgroup/memory.max", "4194304\n");
  struct report_environment e = {0};
  environment_read_files(root, &e);
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
  return cmocka_run_group_tests(tests, make_machine, remove_machine);
}
