#include "load/observe_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_MAX 16384
/* A process with more threads does not tell its context switches: reading them all takes long. */
#define TASKS_MAX 128

const struct observe_column observe_process_columns[PROCESS_COLUMNS] = {
    [PROCESS_CPU] = {"cpu_cores", true, false},
    [PROCESS_RSS] = {"rss_bytes", false, false},
    [PROCESS_ANONYMOUS] = {"anonymous_bytes", false, false},
    [PROCESS_THREADS] = {"threads", false, false},
    [PROCESS_DESCRIPTORS] = {"descriptors", false, false},
    [PROCESS_DISK_READ] = {"disk_read_bytes_per_second", true, false},
    [PROCESS_DISK_WRITE] = {"disk_write_bytes_per_second", true, false},
    [PROCESS_VOLUNTARY] = {"voluntary_switches_per_second", true, false},
    [PROCESS_INVOLUNTARY] = {"involuntary_switches_per_second", true, false},
    [PROCESS_NET_RECEIVED] = {"namespace_received_bytes_per_second", true, true},
    [PROCESS_NET_SENT] = {"namespace_sent_bytes_per_second", true, true},
};

const struct observe_column observe_cgroup_columns[CGROUP_COLUMNS] = {
    [CGROUP_CPU] = {"cpu_cores", true, false},
    [CGROUP_MEMORY] = {"memory_bytes", false, false},
    [CGROUP_ANONYMOUS] = {"anonymous_bytes", false, false},
    [CGROUP_TASKS] = {"tasks", false, false},
    [CGROUP_DISK_READ] = {"disk_read_bytes_per_second", true, false},
    [CGROUP_DISK_WRITE] = {"disk_write_bytes_per_second", true, false},
    [CGROUP_THROTTLED] = {"throttled_periods_per_second", true, false},
    [CGROUP_THROTTLED_TIME] = {"throttled_cores", true, false},
};

static int open_folder(const char *path) {
  return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int observe_open_process(const char *root, pid_t pid, struct err *err) {
  char path[256];
  snprintf(path, sizeof path, "%s/proc/%ld", root, (long)pid);
  int folder = open_folder(path);
  if (folder < 0) {
    const char *why = errno == ENOENT ? "there is no such process" : strerror(errno);
    err_set(err, STATUS_USAGE, "pid:%ld: %s", (long)pid, why);
  }
  return folder;
}

int observe_open_cgroup(const char *path, struct err *err) {
  int folder = open_folder(path);
  if (folder < 0) err_set(err, STATUS_USAGE, "cgroup:%.200s: %s", path, strerror(errno));
  return folder;
}

/* The beginning of a small file as text; false with errno when it cannot be read. */
static bool read_file(int folder, const char *name, char out[FILE_MAX]) {
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
  size_t len = 0;
  ssize_t got = 0;
  if (fd < 0) return false;
  while (len < FILE_MAX - 1 && (got = read(fd, out + len, FILE_MAX - 1 - len)) > 0)
    len += (size_t)got;
  int error = errno;
  close(fd);
  errno = error;
  out[len] = '\0';
  return got >= 0;
}

/* The number behind "name" at the start of a line; NaN when there is none. */
static double line_value(const char *text, const char *name) {
  size_t len = strlen(name);
  for (const char *line = text; line; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (strncmp(line, name, len) != 0) continue;
    char *end;
    const char *number = line + len + strspn(line + len, ": \t");
    double value = strtod(number, &end);
    return end > number ? value : NAN;
  }
  return NAN;
}

/* --- processes --- */

/* Field number (from 3) of /proc/N/stat, whose second one may hold anything. */
static const char *stat_field(const char *stat, int number) {
  const char *at = strrchr(stat, ')');
  for (int i = 2; at && i < number; i++)
    at = strchr(at + 1, ' ');
  return at ? at + 1 : NULL;
}

static enum status read_stat(int folder, double *cpu_s, struct err *err) {
  char text[FILE_MAX];
  if (!read_file(folder, "stat", text)) {
    if (errno == ESRCH || errno == ENOENT) return err_set(err, STATUS_IO, "the process has ended");
    return err_set(err, STATUS_IO, "cannot read its state: %s", strerror(errno));
  }
  const char *state = stat_field(text, 3), *user = stat_field(text, 14), *system = stat_field(text, 15);
  if (!state || !user || !system) return err_set(err, STATUS_IO, "its state is not as the kernel writes it");
  if (*state == 'Z' || *state == 'X') return err_set(err, STATUS_IO, "the process has ended");
  *cpu_s = (strtod(user, NULL) + strtod(system, NULL)) / (double)sysconf(_SC_CLK_TCK);
  return STATUS_OK;
}

static void add_switches(const char *status, double value[PROCESS_COLUMNS]) {
  value[PROCESS_VOLUNTARY] += line_value(status, "voluntary_ctxt_switches");
  value[PROCESS_INVOLUNTARY] += line_value(status, "nonvoluntary_ctxt_switches");
}

/* Of all threads: the file of the process tells of its first one only. */
static void read_switches(int folder, double value[PROCESS_COLUMNS]) {
  char text[FILE_MAX], name[300];
  value[PROCESS_VOLUNTARY] = value[PROCESS_INVOLUNTARY] = NAN;
  if (!(value[PROCESS_THREADS] <= TASKS_MAX)) return;
  int fd = openat(folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *tasks = fd < 0 ? NULL : fdopendir(fd);
  if (!tasks) {
    if (fd >= 0) close(fd);
    return;
  }
  value[PROCESS_VOLUNTARY] = value[PROCESS_INVOLUNTARY] = 0;
  for (const struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
    snprintf(name, sizeof name, "%s/status", task->d_name);
    if (task->d_name[0] != '.' && read_file(dirfd(tasks), name, text)) add_switches(text, value);
  }
  closedir(tasks);
}

/* "  eth0: received 7 others sent ..." */
static void add_interface(const char *line, double value[PROCESS_COLUMNS]) {
  const char *at = line + strcspn(line, ":\n");
  if (*at != ':') return;
  char *end = NULL;
  value[PROCESS_NET_RECEIVED] += (double)strtoull(at + 1, &end, 10);
  unsigned long long number = 0;
  for (int i = 0; i < 8; i++)
    number = strtoull(end, &end, 10);
  value[PROCESS_NET_SENT] += (double)number;
}

/* The sums of all interfaces that the process could use. */
static void read_network(int folder, double value[PROCESS_COLUMNS]) {
  char text[FILE_MAX];
  value[PROCESS_NET_RECEIVED] = value[PROCESS_NET_SENT] = NAN;
  if (!read_file(folder, "net/dev", text)) return;
  value[PROCESS_NET_RECEIVED] = value[PROCESS_NET_SENT] = 0;
  for (const char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n'))
    add_interface(line + 1, value);
}

/* Newer kernels tell the number of descriptors as the folder's size; counting them would take long. */
static double count_descriptors(int folder) {
  struct stat info;
  return fstatat(folder, "fd", &info, 0) == 0 && info.st_size > 0 ? (double)info.st_size : NAN;
}

enum status observe_read_process(int folder, pid_t pid, double value[PROCESS_COLUMNS], struct err *err) {
  char text[FILE_MAX];
  enum status status = read_stat(folder, &value[PROCESS_CPU], err);
  if (status != STATUS_OK) return status;
  double clock_s = pid > 0 ? observe_process_cpu_s(pid) : 0;
  if (clock_s > 0) value[PROCESS_CPU] = clock_s;
  if (!read_file(folder, "status", text)) text[0] = '\0';
  value[PROCESS_RSS] = line_value(text, "VmRSS") * 1024;
  value[PROCESS_ANONYMOUS] = line_value(text, "RssAnon") * 1024;
  value[PROCESS_THREADS] = line_value(text, "Threads");
  value[PROCESS_DESCRIPTORS] = count_descriptors(folder);
  if (!read_file(folder, "io", text)) text[0] = '\0';
  value[PROCESS_DISK_READ] = line_value(text, "read_bytes");
  value[PROCESS_DISK_WRITE] = line_value(text, "write_bytes");
  read_switches(folder, value);
  read_network(folder, value);
  return STATUS_OK;
}

double observe_process_cpu_s(pid_t pid) {
  clockid_t clock;
  struct timespec used;
  if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* --- cgroups --- */

/* A file that holds one number. */
static double number_of(int folder, const char *name) {
  char text[FILE_MAX];
  return read_file(folder, name, text) ? line_value(text, "") : NAN;
}

static double line_of(int folder, const char *name, const char *line) {
  char text[FILE_MAX];
  return read_file(folder, name, text) ? line_value(text, line) : NAN;
}

/* The sum of key=number over the devices of io.stat. */
static double io_sum(const char *text, const char *key) {
  double sum = 0;
  size_t len = strlen(key);
  for (const char *at = strstr(text, key); at; at = strstr(at + len, key))
    sum += strtod(at + len, NULL);
  return sum;
}

static void read_v2(int folder, const char *cpu, double value[CGROUP_COLUMNS]) {
  char io[FILE_MAX];
  value[CGROUP_CPU] = line_value(cpu, "usage_usec") / 1e6;
  value[CGROUP_THROTTLED] = line_value(cpu, "nr_throttled");
  value[CGROUP_THROTTLED_TIME] = line_value(cpu, "throttled_usec") / 1e6;
  value[CGROUP_MEMORY] = number_of(folder, "memory.current");
  value[CGROUP_ANONYMOUS] = line_of(folder, "memory.stat", "anon ");
  value[CGROUP_TASKS] = number_of(folder, "pids.current");
  value[CGROUP_DISK_READ] = value[CGROUP_DISK_WRITE] = NAN;
  if (!read_file(folder, "io.stat", io)) return;
  value[CGROUP_DISK_READ] = io_sum(io, " rbytes=");
  value[CGROUP_DISK_WRITE] = io_sum(io, " wbytes=");
}

/* Version 1 has one tree for each controller: the folder shows what its own one tells. */
static void read_v1(int folder, double value[CGROUP_COLUMNS]) {
  value[CGROUP_CPU] = number_of(folder, "cpuacct.usage") / 1e9;
  value[CGROUP_THROTTLED] = line_of(folder, "cpu.stat", "nr_throttled");
  value[CGROUP_THROTTLED_TIME] = line_of(folder, "cpu.stat", "throttled_time") / 1e9;
  value[CGROUP_MEMORY] = number_of(folder, "memory.usage_in_bytes");
  value[CGROUP_ANONYMOUS] = line_of(folder, "memory.stat", "total_rss ");
  value[CGROUP_TASKS] = number_of(folder, "pids.current");
  value[CGROUP_DISK_READ] = value[CGROUP_DISK_WRITE] = NAN;
}

enum status observe_read_cgroup(int folder, double value[CGROUP_COLUMNS], struct err *err) {
  char cpu[FILE_MAX];
  if (faccessat(folder, "cgroup.procs", F_OK, 0) != 0) {
    return err_set(err, STATUS_IO, "it is no cgroup, or it was removed");
  }
  if (read_file(folder, "cpu.stat", cpu) && !isnan(line_value(cpu, "usage_usec"))) {
    read_v2(folder, cpu, value);
  } else {
    read_v1(folder, value);
  }
  for (int i = 0; i < CGROUP_COLUMNS; i++) {
    if (!isnan(value[i])) return STATUS_OK;
  }
  return err_set(err, STATUS_IO, "none of its files tells anything that is observed");
}
