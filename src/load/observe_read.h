/* One look at a process or a cgroup through the kernel's files. The folder is held open, so that a process number that
 * is given out again is never taken for the process that was meant. */
#ifndef MUSTER_LOAD_OBSERVE_READ_H
#define MUSTER_LOAD_OBSERVE_READ_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct observe_column {
  const char *name;
  bool is_rate;   /* what is read is a sum since the beginning; its growth per second is reported */
  bool is_common; /* it is the same for all processes of one machine: never added up */
};

enum {
  PROCESS_CPU,
  PROCESS_RSS,
  PROCESS_ANONYMOUS,
  PROCESS_THREADS,
  PROCESS_DESCRIPTORS,
  PROCESS_DISK_READ,
  PROCESS_DISK_WRITE,
  PROCESS_VOLUNTARY,
  PROCESS_INVOLUNTARY,
  PROCESS_NET_RECEIVED,
  PROCESS_NET_SENT,
  PROCESS_COLUMNS
};
enum {
  CGROUP_CPU,
  CGROUP_MEMORY,
  CGROUP_ANONYMOUS,
  CGROUP_TASKS,
  CGROUP_DISK_READ,
  CGROUP_DISK_WRITE,
  CGROUP_THROTTLED,
  CGROUP_THROTTLED_TIME,
  CGROUP_COLUMNS
};
extern const struct observe_column observe_process_columns[PROCESS_COLUMNS];
extern const struct observe_column observe_cgroup_columns[CGROUP_COLUMNS];

/* The folder of a process or a cgroup; -1 with one line in err. root: "" or, in tests, what stands for it. */
int observe_open_process(const char *root, pid_t pid, struct err *err);
int observe_open_cgroup(const char *path, struct err *err);

/* NaN for what the kernel does not tell (us). Anything but OK, with the reason, when there is nothing more to see.
 * pid: whose CPU clock is read, which is finer than what the files say; 0: none. */
enum status observe_read_process(int folder, pid_t pid, double value[PROCESS_COLUMNS], struct err *err);
enum status observe_read_cgroup(int folder, double value[CGROUP_COLUMNS], struct err *err);

/* CPU time that a process has used so far; 0: not known. */
double observe_process_cpu_s(pid_t pid);

#endif
