#include "load/observe_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PID_MAX 4194304 /* the kernel's own bound */
/* What most clients of Prometheus export. */
#define USUAL_SERIES "process_cpu_seconds_total,process_resident_memory_bytes"

static const char *const option_names[] = {";series=", ";role=", ";label="};

static bool starts_with(struct view text, const char *start) {
  size_t len = strlen(start);
  return text.len >= len && memcmp(text.data, start, len) == 0;
}

static bool is_option(struct view text) {
  for (size_t i = 0; i < sizeof option_names / sizeof *option_names; i++) {
    if (starts_with(text, option_names[i])) return true;
  }
  return false;
}

/* How far it is to the next option outside of quotes, or to the end. */
static size_t until_option(struct view text) {
  bool quoted = false;
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] == '"') quoted = !quoted;
    if (quoted && text.data[i] == '\\') i++;
    if (!quoted && is_option(view_of(text.data + i, text.len - i))) return i;
  }
  return text.len;
}

static struct view take(struct view *text, size_t len) {
  struct view part = view_of(text->data, len);
  text->data += len;
  text->len -= len;
  return part;
}

static enum status parse_series(struct view list, struct observe_target *target, struct err *err) {
  while (list.len) {
    struct view before = list;
    if (target->series_count == OBSERVE_SERIES_MAX) {
      return err_set(err, STATUS_USAGE, "more than %d series of one page", OBSERVE_SERIES_MAX);
    }
    uint32_t i = target->series_count;
    bool taken = openmetrics_take_series(&list, &target->series[i]);
    size_t len = before.len - list.len;
    if (!taken || len >= OBSERVED_COLUMN_MAX || (list.len && *list.data != ',')) {
      return err_set(err, STATUS_USAGE,
          "series=%.*s: write names with labels where needed, as up,queue_depth{name=\"a\"}, each shorter than %d "
          "bytes",
          (int)(before.len < 80 ? before.len : 80), (const char *)before.data, OBSERVED_COLUMN_MAX);
    }
    target->series_text[i] = view_of(before.data, len);
    target->series_count++;
    if (list.len) take(&list, 1);
  }
  return STATUS_OK;
}

static bool parse_role(struct view text, enum observed_role *out) {
  for (int i = OBSERVED_SERVER; i <= OBSERVED_OTHER; i++) {
    *out = (enum observed_role)i;
    if (view_is(text, observed_role_name(*out))) return true;
  }
  return false;
}

static enum status parse_option(struct view option, struct observe_target *target, struct err *err) {
  const uint8_t *equals = memchr(option.data, '=', option.len);
  struct view value = view_of(equals + 1, option.len - (size_t)(equals + 1 - option.data));
  if (starts_with(option, ";label=")) {
    target->label = value;
    return STATUS_OK;
  }
  if (starts_with(option, ";role=")) {
    if (parse_role(value, &target->role)) return STATUS_OK;
    return err_set(err, STATUS_USAGE, "role= takes server, generator or other");
  }
  if (target->kind == OBSERVE_PROMETHEUS) return parse_series(value, target, err);
  return err_set(err, STATUS_USAGE, "series= goes with prometheus: only");
}

static enum status parse_pid(struct observe_target *target, struct err *err) {
  char *end;
  errno = 0;
  unsigned long pid = strtoul(target->where, &end, 10);
  bool is_number = target->where[0] >= '1' && target->where[0] <= '9' && *end == '\0' && errno == 0;
  if (!is_number || pid > PID_MAX) return err_set(err, STATUS_USAGE, "pid:%.40s is no process id", target->where);
  target->pid = (pid_t)pid;
  return STATUS_OK;
}

/* A relative path is one below the mount point of cgroups. */
static enum status parse_cgroup(struct observe_target *target, struct err *err) {
  char path[OBSERVE_WHERE_MAX];
  if (target->where[0] == '/') return STATUS_OK;
  int len = snprintf(path, sizeof path, "/sys/fs/cgroup/%s", target->where);
  if ((size_t)len >= sizeof path) return err_set(err, STATUS_USAGE, "cgroup: the path is too long");
  memcpy(target->where, path, sizeof path);
  return STATUS_OK;
}

static enum status parse_url(const struct observe_target *target, struct err *err) {
  struct view url = view_str(target->where);
  if (starts_with(url, "http://") || starts_with(url, "https://")) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "prometheus: takes a URL, as prometheus:http://127.0.0.1:9090/metrics");
}

static enum status parse_where(struct observe_target *target, struct view where, struct err *err) {
  if (where.len == 0 || where.len >= sizeof target->where) {
    return err_set(err, STATUS_USAGE, where.len ? "it is too long" : "what to observe is missing behind the colon");
  }
  memcpy(target->where, where.data, where.len);
  target->where[where.len] = '\0';
  if (target->kind == OBSERVE_PID) return parse_pid(target, err);
  return target->kind == OBSERVE_CGROUP ? parse_cgroup(target, err) : parse_url(target, err);
}

static bool take_kind(struct view *text, enum observe_kind *out) {
  static const char *const kinds[] = {"pid:", "cgroup:", "prometheus:"};
  for (int i = OBSERVE_PID; i <= OBSERVE_PROMETHEUS; i++) {
    if (!starts_with(*text, kinds[i])) continue;
    *out = (enum observe_kind)i;
    take(text, strlen(kinds[i]));
    return true;
  }
  return false;
}

enum status observe_parse(const char *text, struct observe_list *list, struct err *err) {
  struct view rest = view_str(text);
  struct observe_target target = {.role = OBSERVED_SERVER};
  if (list->count == OBSERVE_TARGETS_MAX) {
    return err_set(err, STATUS_USAGE, "more than %d things to observe", OBSERVE_TARGETS_MAX);
  }
  if (!take_kind(&rest, &target.kind)) {
    return err_set(err, STATUS_USAGE, "write pid:N, cgroup:PATH or prometheus:URL;series=NAME,...");
  }
  enum status status = parse_where(&target, take(&rest, until_option(rest)), err);
  while (status == STATUS_OK && rest.len) {
    struct view behind = view_of(rest.data + 1, rest.len - 1);
    status = parse_option(take(&rest, 1 + until_option(behind)), &target, err);
  }
  bool wants_usual = target.kind == OBSERVE_PROMETHEUS && target.series_count == 0;
  if (status == STATUS_OK && wants_usual) status = parse_series(view_str(USUAL_SERIES), &target, err);
  if (status != STATUS_OK) return status;
  list->target[list->count++] = target;
  return STATUS_OK;
}
