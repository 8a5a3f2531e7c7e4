/* What `--observe` asks for (docs/observe.md):
 *   pid:123   cgroup:/sys/fs/cgroup/a   prometheus:http://host/metrics?x=y;series=a_total,b{c="d"}
 * each with ;role=server|generator|other and ;label=TEXT if wanted. A URL ends where ;series=, ;role= or ;label=
 * begins; without series it is process_cpu_seconds_total and process_resident_memory_bytes. */
#ifndef MUSTER_LOAD_OBSERVE_SPEC_H
#define MUSTER_LOAD_OBSERVE_SPEC_H

#include "base/err.h"
#include "report/document.h"
#include "wire/openmetrics.h"

#include <stdint.h>
#include <sys/types.h>

#define OBSERVE_TARGETS_MAX 16
#define OBSERVE_SERIES_MAX 16
#define OBSERVE_WHERE_MAX 512

enum observe_kind { OBSERVE_PID, OBSERVE_CGROUP, OBSERVE_PROMETHEUS };

struct observe_target {
  enum observe_kind kind;
  enum observed_role role;
  pid_t pid;                     /* of OBSERVE_PID */
  char where[OBSERVE_WHERE_MAX]; /* folder or URL */
  struct view label;             /* empty: none was given */
  struct openmetrics_series series[OBSERVE_SERIES_MAX];
  struct view series_text[OBSERVE_SERIES_MAX]; /* each as it was written */
  uint32_t series_count;
};

struct observe_list {
  struct observe_target target[OBSERVE_TARGETS_MAX];
  uint32_t count;
};

/* Adds one target to the list; the text must outlive it. STATUS_USAGE with one line that says what would do. */
enum status observe_parse(const char *text, struct observe_list *list, struct err *err);

#endif
