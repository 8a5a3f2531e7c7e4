#include "report/environment.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define LINE_BYTES 512

static void copy(char *out, size_t size, const char *text) {
  snprintf(out, size, "%.*s", (int)size - 1, text);
}

static void strip_end(char *line) {
  size_t len = strlen(line);
  while (len && (line[len - 1] == '\n' || line[len - 1] == ' ' || line[len - 1] == '"'))
    line[--len] = '\0';
}

/* The first line of a file that starts with prefix, without it; false when there is none. */
static bool find_line(const char *root, const char *path, const char *prefix, char line[LINE_BYTES]) {
  char full[PATH_BYTES];
  snprintf(full, sizeof full, "%s%s", root, path);
  FILE *file = fopen(full, "re");
  if (!file) return false;
  size_t skip = strlen(prefix);
  bool found = false;
  while (!found && fgets(line, LINE_BYTES, file))
    found = strncmp(line, prefix, skip) == 0;
  fclose(file);
  if (!found) return false;
  memmove(line, line + skip, strlen(line + skip) + 1);
  strip_end(line);
  return true;
}

static void read_cpu_model(const char *root, struct report_environment *out) {
  char line[LINE_BYTES];
  if (!find_line(root, "/proc/cpuinfo", "model name", line)) return;
  const char *value = line + strspn(line, " \t:");
  copy(out->cpu_model, sizeof out->cpu_model, value);
}

static void read_memory(const char *root, struct report_environment *out) {
  char line[LINE_BYTES];
  if (!find_line(root, "/proc/meminfo", "MemTotal:", line)) return;
  out->memory_bytes = strtoull(line, NULL, 10) * 1024;
}

static void read_os(const char *root, struct report_environment *out) {
  char line[LINE_BYTES];
  if (!find_line(root, "/etc/os-release", "PRETTY_NAME=", line)) return;
  copy(out->os, sizeof out->os, line + (line[0] == '"'));
}

static void read_congestion_control(const char *root, struct report_environment *out) {
  char line[LINE_BYTES];
  if (!find_line(root, "/proc/sys/net/ipv4/tcp_congestion_control", "", line)) return;
  copy(out->congestion_control, sizeof out->congestion_control, line);
}

/* cpu.max is "max 100000" or "quota period", memory.max "max" or bytes. */
static void apply_cgroup(const char *root, const char *folder, struct report_environment *out) {
  char path[PATH_BYTES], line[LINE_BYTES];
  snprintf(path, sizeof path, "%s/cpu.max", folder);
  if (find_line(root, path, "", line)) {
    char *rest = line;
    double quota = strtod(line, &rest);
    double period = strtod(rest, NULL);
    if (rest != line && quota > 0 && period > 0) {
      double cpus = quota / period;
      if (out->cgroup_cpus == 0 || cpus < out->cgroup_cpus) out->cgroup_cpus = cpus;
    }
  }
  snprintf(path, sizeof path, "%s/memory.max", folder);
  if (find_line(root, path, "", line)) {
    uint64_t bytes = strtoull(line, NULL, 10);
    if (bytes && (out->cgroup_memory_bytes == 0 || bytes < out->cgroup_memory_bytes)) out->cgroup_memory_bytes = bytes;
  }
}

/* The tightest limit of our cgroup and of all above it. */
static void read_cgroup(const char *root, struct report_environment *out) {
  char group[LINE_BYTES];
  if (!find_line(root, "/proc/self/cgroup", "0::", group)) return;
  for (;;) {
    char folder[LINE_BYTES + sizeof "/sys/fs/cgroup"];
    snprintf(folder, sizeof folder, "/sys/fs/cgroup%s", strcmp(group, "/") == 0 ? "" : group);
    apply_cgroup(root, folder, out);
    char *slash = strrchr(group, '/');
    if (!slash || group[0] == '\0') return;
    *slash = '\0';
  }
}

void environment_read_files(const char *root, struct report_environment *out) {
  read_cpu_model(root, out);
  read_memory(root, out);
  read_os(root, out);
  read_congestion_control(root, out);
  read_cgroup(root, out);
}

static void read_kernel(struct report_environment *out) {
  struct utsname name;
  if (uname(&name) != 0) return;
  snprintf(out->kernel, sizeof out->kernel, "%.30s %.60s %.30s", name.sysname, name.release, name.machine);
  copy(out->hostname, sizeof out->hostname, name.nodename);
}

static void read_cpus(struct report_environment *out) {
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  out->logical_cpus = online > 0 ? (uint32_t)online : 1;
  out->usable_cpus = out->logical_cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) out->usable_cpus = (uint32_t)CPU_COUNT(&set);
  uint32_t quota = (uint32_t)ceil(out->cgroup_cpus);
  if (quota && quota < out->usable_cpus) out->usable_cpus = quota;
}

static void read_nofile(struct report_environment *out) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  out->nofile_soft = limit.rlim_cur;
  out->nofile_hard = limit.rlim_max;
}

void report_environment_read(struct report_environment *out) {
  memset(out, 0, sizeof *out);
  copy(out->cpu_model, sizeof out->cpu_model, "unknown");
  copy(out->os, sizeof out->os, "unknown");
  copy(out->congestion_control, sizeof out->congestion_control, "unknown");
  environment_read_files("", out);
  read_kernel(out);
  read_cpus(out);
  read_nofile(out);
}
