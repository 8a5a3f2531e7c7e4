#include "cli/muster_outputs.h"

#include "cli/muster_say.h"
#include "cli/muster_session.h"
#include "measure/hlog.h"
#include "report/formats.h"
#include "report/save.h"

#include <string.h>

/* Forms that are made of the report when it is there. */
static const struct {
  const char *option, *format;
  size_t offset;
  bool of_searches; /* which write it themselves */
} forms[] = {
    {"--hlog", "hlog", offsetof(struct run_arguments, hlog), false},
    {"--csv", "csv", offsetof(struct run_arguments, csv), false},
    {"--junit", "junit", offsetof(struct run_arguments, junit), false},
    {"--markdown", "markdown", offsetof(struct run_arguments, markdown), false},
    {"--html", "html", offsetof(struct run_arguments, html), true},
};
#define FORMS (sizeof forms / sizeof forms[0])

/* Everything that is of one run. */
static const size_t of_run[] = {offsetof(struct run_arguments, hlog), offsetof(struct run_arguments, csv),
    offsetof(struct run_arguments, junit), offsetof(struct run_arguments, markdown),
    offsetof(struct run_arguments, hlog_series), offsetof(struct run_arguments, jsonl)};
#define OF_RUN (sizeof of_run / sizeof of_run[0])
_Static_assert(OF_RUN == sizeof((struct trial_outputs *)0)->path / PATH_MAX, "a path for each");

static enum status number_path(
    char out[PATH_MAX], const char *path, const char *name, uint32_t trial, struct err *err) {
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
  int head = (int)(dot && dot > base ? (size_t)(dot - path) : strlen(path));
  int written =
      snprintf(out, PATH_MAX, "%.*s%s%s-%u%s", head, path, name ? "-" : "", name ? name : "", trial, path + head);
  if (written > 0 && written < PATH_MAX) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "the path is too long: %.80s...", path);
}

enum status outputs_of_trial(
    struct trial_outputs *out, const struct run_arguments *all, const char *name, uint32_t trial, struct err *err) {
  enum status status = STATUS_OK;
  out->arguments = *all;
  out->arguments.html = NULL;
  for (size_t i = 0; i < OF_RUN && status == STATUS_OK; i++) {
    const char **path = (const char **)(void *)((char *)&out->arguments + of_run[i]);
    if (!*path) continue;
    status = number_path(out->path[i], *path, name, trial, err);
    *path = out->path[i];
  }
  return status;
}

static const char *form_path(size_t form, const struct run_arguments *arguments) {
  return *(const char *const *)(const void *)((const char *)arguments + forms[form].offset);
}

bool outputs_take_stdout(const struct run_arguments *arguments) {
  return arguments->jsonl && strcmp(arguments->jsonl, "-") == 0;
}

const char *outputs_given(const struct run_arguments *arguments) {
  for (size_t i = 0; i < FORMS; i++) {
    if (!forms[i].of_searches && form_path(i, arguments)) return forms[i].option;
  }
  if (arguments->hlog_series) return "--hlog-series";
  return arguments->jsonl ? "--jsonl" : NULL;
}

static enum status check_file(const char *option, const char *path, struct err *err) {
  if (!path) return STATUS_OK;
  if (session_is_folder(path)) {
    return err_set(err, STATUS_USAGE, "%s %.200s is a folder: name a file in it", option, path);
  }
  return session_check_new_file(option, path, err);
}

enum status outputs_check(const struct run_arguments *arguments, struct err *err) {
  bool is_stream = outputs_take_stdout(arguments);
  if (is_stream && session_prints_json(arguments)) {
    return err_set(err, STATUS_USAGE, "--jsonl - and --json - both want standard output: name a file for one of them");
  }
  enum status status = is_stream ? STATUS_OK : check_file("--jsonl", arguments->jsonl, err);
  if (status == STATUS_OK) status = check_file("--hlog-series", arguments->hlog_series, err);
  for (size_t i = 0; i < FORMS && status == STATUS_OK; i++)
    status = check_file(forms[i].option, form_path(i, arguments), err);
  return status;
}

static void log_second(struct outputs *outputs, const struct report *report, const struct run_second *told) {
  static const char *const tags[SERIES_CLOCKS] = {"ack", "delivery", "schedule_lag"};
  struct err *err = &outputs->hlog_err;
  enum status status = STATUS_OK;
  if (told->second == 0) status = hlog_write_report_head(outputs->hlog_series, report, err);
  for (int i = 0; i < SERIES_CLOCKS && status == STATUS_OK; i++) {
    const struct histogram *clock = &told->clock[i];
    if (clock->count == 0) continue;
    status = hlog_write_interval(outputs->hlog_series, tags[i], told->second, told->length_s, clock, err);
  }
  if (outputs->hlog_status == STATUS_OK) outputs->hlog_status = status;
  fflush(outputs->hlog_series);
}

static void take_second(void *context, const struct report *report, const struct run_second *told) {
  struct outputs *outputs = context;
  if (outputs->jsonl) {
    jsonl_write_second(outputs->jsonl, told->second, told->figures);
    fflush(outputs->jsonl); /* an error stays in the file and is told at its end */
  }
  if (outputs->hlog_series) log_second(outputs, report, told);
}

enum status outputs_open(struct outputs *out, const struct run_arguments *arguments, struct err *err) {
  *out = (struct outputs){.arguments = arguments, .seconds = {take_second, out}};
  enum status status = STATUS_OK;
  if (outputs_take_stdout(arguments)) {
    out->jsonl = stdout;
  } else if (arguments->jsonl) {
    status = save_open(arguments->jsonl, &out->jsonl, err);
  }
  if (status == STATUS_OK && arguments->hlog_series) {
    status = save_open(arguments->hlog_series, &out->hlog_series, err);
  }
  if (status != STATUS_OK) outputs_drop(out);
  return status;
}

static enum status finish_jsonl(struct outputs *outputs, const struct report *report, struct err *err) {
  jsonl_write_summary(outputs->jsonl, report);
  if (outputs->jsonl == stdout) return STATUS_OK; /* a lost standard output is told at the end of the command */
  return save_close(outputs->arguments->jsonl, outputs->jsonl, STATUS_OK, err);
}

static enum status finish_hlog(struct outputs *outputs, const struct report *report, struct err *err) {
  *err = outputs->hlog_err;
  enum status status = outputs->hlog_status;
  if (status == STATUS_OK && report->seconds == 0) status = hlog_write_report_head(outputs->hlog_series, report, err);
  return save_close(outputs->arguments->hlog_series, outputs->hlog_series, status, err);
}

int outputs_finish(struct outputs *outputs, const struct report *report, int code) {
  struct err err = {0};
  for (size_t i = 0; i < FORMS; i++) {
    const char *path = form_path(i, outputs->arguments);
    bool saved = !path || report_save(path, forms[i].format, report, &err) == STATUS_OK;
    if (!saved) code = complain(&err);
  }
  if (outputs->jsonl && finish_jsonl(outputs, report, &err) != STATUS_OK) code = complain(&err);
  if (outputs->hlog_series && finish_hlog(outputs, report, &err) != STATUS_OK) code = complain(&err);
  outputs->jsonl = NULL;
  outputs->hlog_series = NULL;
  return code;
}

void outputs_drop(struct outputs *outputs) {
  struct err unused = {0};
  const struct run_arguments *arguments = outputs->arguments;
  if (outputs->jsonl && outputs->jsonl != stdout) {
    save_close(arguments->jsonl, outputs->jsonl, STATUS_INTERRUPTED, &unused);
  }
  if (outputs->hlog_series) {
    save_close(arguments->hlog_series, outputs->hlog_series, STATUS_INTERRUPTED, &unused);
  }
}
