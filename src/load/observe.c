#include "load/observe.h"

#include "base/clock.h"
#include "load/observe_read.h"
#include "load/observe_scrape.h"

#include <curl/curl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define INTERVAL_NS NS_PER_SEC
#define LAST_LOOK_NS (100 * NS_PER_MS) /* a last sample so soon after another one would say little */
#define ROWS_FIRST 64
#define COLUMNS_MAX OBSERVE_SERIES_MAX
_Static_assert(PROCESS_COLUMNS <= COLUMNS_MAX, "a row of a process must fit");
_Static_assert(CGROUP_COLUMNS <= COLUMNS_MAX, "a row of a cgroup must fit");

struct member {
  int folder; /* -1: gone */
  pid_t pid;  /* 0: a cgroup */
  uint64_t before_ns;
  double before[COLUMNS_MAX];
};

/* One process or cgroup, several processes whose figures are added, or a page. */
struct source {
  struct report_observed out;
  uint32_t capacity; /* rows that out.value has room for */
  const struct observe_column *column;
  struct member *member; /* owned */
  uint32_t members;
  struct scrape *scrape; /* owned */
  uint64_t began_ns;     /* of the fetch under way */
  uint32_t samples, failed;
  char reason[160]; /* of the first that failed */
};

struct observer {
  uint64_t epoch_ns; /* rows count from here until they are handed over */
  uint64_t measure_ns;
  uint64_t due_ns, sampled_ns;
  bool stopped;
  uint32_t sources;
  struct source source[3 + OBSERVE_TARGETS_MAX];
};

/* --- rows --- */

static void note_failure(struct source *source, const char *reason) {
  if (source->failed++ == 0) snprintf(source->reason, sizeof source->reason, "%.159s", reason);
}

static bool make_room(struct source *source) {
  if (source->out.rows < source->capacity) return true;
  uint32_t capacity = source->capacity ? source->capacity * 2 : ROWS_FIRST;
  if (source->out.rows >= OBSERVE_ROWS_MAX) return false;
  double *value = reallocarray(source->out.value, capacity, (source->out.columns + 1) * sizeof *value);
  if (!value) return false;
  source->out.value = value;
  source->capacity = capacity;
  return true;
}

/* As many digits as such a figure can have. */
static double rounded(double value) {
  return round(value * 1e6) / 1e6;
}

static void add_row(const struct observer *observer, struct source *source, uint64_t at_ns, const double *value) {
  source->samples++;
  if (!make_room(source)) {
    note_failure(source, "no room for more rows");
    return;
  }
  double *row = &source->out.value[(size_t)source->out.rows++ * (source->out.columns + 1)];
  *row++ = ((double)at_ns - (double)observer->epoch_ns) / 1e9;
  memcpy(row, value, source->out.columns * sizeof *value);
}

/* --- processes and cgroups --- */

static enum status look(const struct member *member, double value[COLUMNS_MAX], struct err *err) {
  if (member->pid > 0) return observe_read_process(member->folder, member->pid, value, err);
  return observe_read_cgroup(member->folder, value, err);
}

/* A sum of threads or devices may shrink when one of them ends: that is no negative rate. */
static double rate(double now, double before, double seconds) {
  double growth = (now - before) / seconds;
  return growth < 0 ? 0 : rounded(growth);
}

static void add_member(
    const struct source *source, struct member *member, uint64_t at_ns, const double *value, double sum[COLUMNS_MAX]) {
  bool has_before = member->before_ns > 0 && at_ns > member->before_ns;
  double seconds = (double)(at_ns - member->before_ns) / 1e9;
  for (uint32_t i = 0; i < source->out.columns; i++) {
    double shown = value[i];
    if (source->column[i].is_rate) shown = has_before ? rate(value[i], member->before[i], seconds) : NAN;
    if (isnan(shown) || (source->column[i].is_common && !isnan(sum[i]))) continue;
    sum[i] = isnan(sum[i]) ? shown : rounded(sum[i] + shown);
  }
  memcpy(member->before, value, source->out.columns * sizeof *value);
  member->before_ns = at_ns;
}

static void drop_member(struct source *source, struct member *member, const struct err *err) {
  char reason[160];
  close(member->folder);
  member->folder = -1;
  snprintf(reason, sizeof reason, source->members > 1 ? "one of them: %.140s" : "%.150s", err->text);
  if (source->failed == 0) snprintf(source->reason, sizeof source->reason, "%s", reason);
}

static void sample_members(const struct observer *observer, struct source *source) {
  double sum[COLUMNS_MAX], value[COLUMNS_MAX];
  bool complete = true;
  for (int i = 0; i < COLUMNS_MAX; i++)
    sum[i] = NAN;
  uint64_t at_ns = clock_now_ns();
  for (uint32_t i = 0; i < source->members; i++) {
    struct member *member = &source->member[i];
    struct err err = {0};
    uint64_t now_ns = clock_now_ns();
    if (member->folder >= 0 && look(member, value, &err) == STATUS_OK) {
      add_member(source, member, now_ns, value, sum);
      continue;
    }
    complete = false;
    if (member->folder >= 0) drop_member(source, member, &err);
  }
  if (!complete) source->failed++;
  add_row(observer, source, at_ns, sum);
}

/* --- pages --- */

static void fetch_turn(const struct observer *observer, struct source *source) {
  double value[OBSERVE_SERIES_MAX];
  enum status status;
  struct err err = {0};
  if (!source->scrape || !scrape_turn(source->scrape, value, &status, &err)) return;
  if (status != STATUS_OK) {
    note_failure(source, err.text);
    for (int i = 0; i < OBSERVE_SERIES_MAX; i++)
      value[i] = NAN;
  }
  add_row(observer, source, source->began_ns, value);
}

static void fetch(struct source *source) {
  uint64_t now_ns = clock_now_ns();
  if (scrape_begin(source->scrape)) {
    source->began_ns = now_ns;
    return;
  }
  source->samples++;
  note_failure(source, "the page before was still under way");
}

/* --- the observer --- */

static void sample(struct observer *observer, uint64_t now_ns) {
  observer->sampled_ns = now_ns;
  for (uint32_t i = 0; i < observer->sources; i++) {
    struct source *source = &observer->source[i];
    if (source->scrape) {
      fetch(source);
    } else {
      sample_members(observer, source);
    }
  }
}

/* The next whole second from the origin that is not too near. */
static void set_due(struct observer *observer, uint64_t now_ns) {
  uint64_t origin_ns = observer->measure_ns ? observer->measure_ns : observer->epoch_ns;
  uint64_t earliest_ns = now_ns + INTERVAL_NS / 2;
  if (earliest_ns >= origin_ns) {
    uint64_t whole = (earliest_ns - origin_ns + INTERVAL_NS - 1) / INTERVAL_NS;
    observer->due_ns = origin_ns + whole * INTERVAL_NS;
  } else {
    observer->due_ns = origin_ns - (origin_ns - earliest_ns) / INTERVAL_NS * INTERVAL_NS;
  }
}

void observer_align(struct observer *observer, uint64_t measure_ns) {
  observer->measure_ns = measure_ns;
  set_due(observer, observer->sampled_ns);
}

void observer_turn(struct observer *observer, uint64_t now_ns) {
  if (observer->stopped) return;
  if (now_ns >= observer->due_ns) {
    sample(observer, now_ns);
    set_due(observer, now_ns);
  }
  for (uint32_t i = 0; i < observer->sources; i++)
    fetch_turn(observer, &observer->source[i]);
}

void observer_stop(struct observer *observer, uint64_t now_ns) {
  if (observer->stopped) return;
  observer_turn(observer, now_ns);
  for (uint32_t i = 0; i < observer->sources && now_ns >= observer->sampled_ns + LAST_LOOK_NS; i++) {
    if (!observer->source[i].scrape) sample_members(observer, &observer->source[i]);
  }
  observer->stopped = true;
}

/* --- opening --- */

static enum status make_columns(struct source *source, const struct observe_column *column, uint32_t count) {
  source->out.column = calloc(count, sizeof *source->out.column);
  if (!source->out.column) return STATUS_MEMORY;
  source->out.columns = count;
  source->column = column;
  for (uint32_t i = 0; column && i < count; i++)
    snprintf(source->out.column[i], OBSERVED_COLUMN_MAX, "%s", column[i].name);
  return STATUS_OK;
}

static struct source *add_source(struct observer *observer, enum observed_role role, const char *label) {
  struct source *source = &observer->source[observer->sources++];
  source->out.role = role;
  source->out.interval_s = (double)INTERVAL_NS / 1e9;
  snprintf(source->out.label, sizeof source->out.label, "%s", label);
  return source;
}

static enum status add_members(struct source *source, uint32_t count) {
  source->member = calloc(count ? count : 1, sizeof *source->member);
  if (!source->member) return STATUS_MEMORY;
  source->members = count;
  return STATUS_OK;
}

static enum status watch_processes(struct source *source, const pid_t *pid, uint32_t count) {
  enum status status = make_columns(source, observe_process_columns, PROCESS_COLUMNS);
  if (status == STATUS_OK) status = add_members(source, count);
  for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
    struct err err = {0};
    int folder = observe_open_process("", pid[i], &err);
    source->member[i] = (struct member){.folder = folder, .pid = pid[i]};
    if (folder < 0) snprintf(source->reason, sizeof source->reason, "%.159s", err.text);
  }
  return status;
}

static enum status watch_cgroup(struct source *source, const char *path) {
  struct err err = {0};
  enum status status = make_columns(source, observe_cgroup_columns, CGROUP_COLUMNS);
  if (status == STATUS_OK) status = add_members(source, 1);
  if (status != STATUS_OK) return status;
  source->member[0].folder = observe_open_cgroup(path, &err);
  if (source->member[0].folder < 0) snprintf(source->reason, sizeof source->reason, "%.159s", err.text);
  return STATUS_OK;
}

static enum status watch_page(struct source *source, const struct observe_target *target) {
  struct err err = {0};
  enum status status = make_columns(source, NULL, target->series_count);
  if (status == STATUS_OK) status = scrape_new(&source->scrape, target, &err);
  for (uint32_t i = 0; status == STATUS_OK && i < target->series_count; i++) {
    struct view text = target->series_text[i];
    snprintf(source->out.column[i], OBSERVED_COLUMN_MAX, "%.*s", (int)text.len, (const char *)text.data);
  }
  return status;
}

/* As it is named in reports and messages: without the password that a URL may hold. */
static void name_target(const struct observe_target *target, char *out, size_t size) {
  static const char *const kinds[] = {"pid", "cgroup", "prometheus"};
  const char *where = target->where, *rest = strstr(where, "://");
  const char *at = rest ? strchr(rest + 3, '@') : NULL;
  if (target->kind == OBSERVE_PROMETHEUS && at && at < rest + 3 + strcspn(rest + 3, "/?#")) {
    snprintf(out, size, "%s:%.*s***%.200s", kinds[target->kind], (int)(rest + 3 - where), where, at);
  } else {
    snprintf(out, size, "%s:%.240s", kinds[target->kind], where);
  }
}

static enum status add_target(struct observer *observer, const struct observe_target *target) {
  char name[256];
  name_target(target, name, sizeof name);
  struct source *source = add_source(observer, target->role, "");
  struct view label = target->label.len ? target->label : view_str(name);
  int len = (int)(label.len < OBSERVED_LABEL_MAX ? label.len : OBSERVED_LABEL_MAX - 1);
  snprintf(source->out.source, sizeof source->out.source, "%s", name);
  snprintf(source->out.label, sizeof source->out.label, "%.*s", len, (const char *)label.data);
  if (target->kind == OBSERVE_PID) return watch_processes(source, &target->pid, 1);
  return target->kind == OBSERVE_CGROUP ? watch_cgroup(source, target->where) : watch_page(source, target);
}

static enum status add_own(struct observer *observer, const struct observe_own *own) {
  enum status status = STATUS_OK;
  if (own->server > 0) {
    struct source *source = add_source(observer, OBSERVED_SERVER, "musterd (embedded)");
    snprintf(source->out.source, sizeof source->out.source, "pid:%ld", (long)own->server);
    status = watch_processes(source, &own->server, 1);
  }
  if (status == STATUS_OK && own->workers > 0) {
    struct source *source = add_source(observer, OBSERVED_GENERATOR, "");
    snprintf(source->out.source, sizeof source->out.source, "workers");
    snprintf(
        source->out.label, sizeof source->out.label, "muster, %u worker%s", own->workers, own->workers > 1 ? "s" : "");
    status = watch_processes(source, own->worker, own->workers);
  }
  if (status != STATUS_OK) return status;
  pid_t self = getpid();
  struct source *source = add_source(observer, OBSERVED_GENERATOR, "muster, control");
  snprintf(source->out.source, sizeof source->out.source, "control");
  return watch_processes(source, &self, 1);
}

static void free_source(struct source *source) {
  for (uint32_t i = 0; i < source->members; i++) {
    if (source->member[i].folder >= 0) close(source->member[i].folder);
  }
  free(source->member);
  scrape_free(source->scrape);
  report_observed_free(&source->out);
}

static void observer_free(struct observer *observer) {
  for (uint32_t i = 0; i < observer->sources; i++)
    free_source(&observer->source[i]);
  free(observer);
  curl_global_cleanup();
}

enum status observer_start(
    struct observer **out, const struct observe_list *list, const struct observe_own *own, struct err *err) {
  struct observer *observer = calloc(1, sizeof *observer);
  if (!observer) return err_set(err, STATUS_MEMORY, "out of memory to observe the run");
  curl_global_init(CURL_GLOBAL_DEFAULT);
  observer->epoch_ns = clock_now_ns();
  enum status status = add_own(observer, own);
  for (uint32_t i = 0; status == STATUS_OK && list && i < list->count; i++)
    status = add_target(observer, &list->target[i]);
  if (status != STATUS_OK) {
    observer_free(observer);
    return err_set(err, status, "out of memory to observe the run");
  }
  sample(observer, observer->epoch_ns);
  set_due(observer, observer->epoch_ns);
  *out = observer;
  return STATUS_OK;
}

/* --- the check before a run --- */

static enum status check_folder(const struct observe_target *target, struct err *err) {
  double value[COLUMNS_MAX];
  bool is_process = target->kind == OBSERVE_PID;
  struct member member = {.pid = target->pid};
  member.folder = is_process ? observe_open_process("", target->pid, err) : observe_open_cgroup(target->where, err);
  if (member.folder < 0) return STATUS_USAGE;
  enum status status = look(&member, value, err);
  close(member.folder);
  if (status == STATUS_OK) return status;
  err_prefix(err, "%s:%.200s", is_process ? "pid" : "cgroup", target->where);
  return err->status = STATUS_USAGE;
}

static enum status check_page(const struct observe_target *target, struct err *err) {
  double value[OBSERVE_SERIES_MAX];
  char name[256];
  struct scrape *scrape;
  curl_global_init(CURL_GLOBAL_DEFAULT);
  enum status status = scrape_new(&scrape, target, err);
  if (status == STATUS_OK) {
    status = scrape_once(scrape, value, err);
    scrape_free(scrape);
  }
  curl_global_cleanup();
  if (status == STATUS_OK) return status;
  name_target(target, name, sizeof name);
  return err_prefix(err, "%s", name);
}

enum status observer_check(const struct observe_list *list, struct err *err) {
  enum status status = STATUS_OK;
  for (uint32_t i = 0; status == STATUS_OK && list && i < list->count; i++) {
    const struct observe_target *target = &list->target[i];
    status = target->kind == OBSERVE_PROMETHEUS ? check_page(target, err) : check_folder(target, err);
  }
  if (status != STATUS_OK) err_prefix(err, "--observe");
  return status;
}

/* --- the end --- */

/* Infinities are no numbers of a report either. */
static bool was_never_seen(const struct report_observed *out, uint32_t column) {
  for (uint32_t row = 0; row < out->rows; row++) {
    if (isfinite(out->value[(size_t)row * (out->columns + 1) + 1 + column])) return false;
  }
  return out->rows > 0;
}

static void explain_gaps(struct source *source) {
  struct report_observed *out = &source->out;
  if (source->failed) {
    snprintf(out->error, sizeof out->error, "%u of %u samples: %s", source->failed, source->samples, source->reason);
    return;
  }
  for (uint32_t i = 0; source->scrape && i < out->columns; i++) {
    if (!was_never_seen(out, i)) continue;
    snprintf(out->error, sizeof out->error, "the page never held %s", out->column[i]);
    return;
  }
}

/* Rows count from the measure phase; without one they are of no use. */
static void settle_rows(const struct observer *observer, struct report_observed *out) {
  double shift_s = ((double)observer->measure_ns - (double)observer->epoch_ns) / 1e9;
  if (observer->measure_ns == 0) out->rows = 0;
  for (uint32_t row = 0; row < out->rows; row++) {
    double *at_s = &out->value[(size_t)row * (out->columns + 1)];
    *at_s = rounded(*at_s - shift_s);
  }
}

void observer_finish(struct observer *observer, struct report *report) {
  if (!observer) return;
  report->observed = calloc(observer->sources, sizeof *report->observed);
  for (uint32_t i = 0; report->observed && i < observer->sources; i++) {
    struct source *source = &observer->source[i];
    settle_rows(observer, &source->out);
    explain_gaps(source);
    report->observed[report->observations++] = source->out;
    source->out = (struct report_observed){0};
  }
  observer_free(observer);
}
