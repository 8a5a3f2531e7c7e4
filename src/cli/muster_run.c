#include "cli/muster_run.h"

#include "cli/muster_embed.h"
#include "cli/muster_options.h"
#include "cli/muster_progress.h"
#include "cli/muster_say.h"
#include "driver/driver.h"
#include "load/run.h"
#include "net/address.h"
#include "report/document.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile int interrupts;
static pid_t control_pid;

/* The first signal ends the phase, the second everything. Workers inherit this handler but end through the control
 * process. */
static void on_interrupt(int signal_number) {
  (void)signal_number;
  if (getpid() != control_pid) return;
  interrupts = interrupts + 1;
  if (interrupts > 1) _exit(EXIT_INTERRUPTED);
}

static void catch_signals(void) {
  control_pid = getpid();
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

static const char *from_environment(const char *name) {
  const char *value = getenv(name);
  return value && value[0] ? value : NULL;
}

static enum status choose_driver(const char *target, const struct driver **out, struct err *err) {
  *out = driver_find("juggle");
  if (!target) return STATUS_OK;
  struct url url;
  enum status status = url_parse(target, &url, err);
  if (status != STATUS_OK) {
    err_prefix(err, "--target");
    err->status = STATUS_USAGE;
    return STATUS_USAGE;
  }
  if (url.scheme[0] == '\0') {
    return err_set(err, STATUS_USAGE, "--target %.200s has no scheme, which chooses the protocol: write ws://%.200s",
        target, target);
  }
  *out = driver_find(url.scheme);
  if (*out) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "--target: no driver speaks '%s': `muster drivers` lists the schemes", url.scheme);
}

static bool is_folder(const char *path) {
  struct stat info;
  size_t len = strlen(path);
  return (len && path[len - 1] == '/') || (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

static bool prints_json(const struct run_arguments *arguments) {
  return arguments->json && strcmp(arguments->json, "-") == 0;
}

/* Where the report goes, as a file or a folder; NULL: nowhere. */
static const char *report_place(const struct run_arguments *arguments) {
  if (arguments->output) return arguments->output;
  if (prints_json(arguments)) return NULL;
  return arguments->json ? arguments->json : "results/";
}

/* A file that cannot be written is found before the run, not after it. */
static enum status check_new_file(const char *option, const char *path, struct err *err) {
  if (!path || is_folder(path)) return STATUS_OK;
  if (access(path, F_OK) != 0) return STATUS_OK;
  return err_set(
      err, STATUS_USAGE, "%s: %.300s exists already and is never overwritten: choose another name", option, path);
}

static enum status check_files(const struct run_arguments *arguments, struct err *err) {
  enum status status = check_new_file(arguments->output ? "--output" : "--json", report_place(arguments), err);
  if (status == STATUS_OK) status = check_new_file("--hlog", arguments->hlog, err);
  if (status == STATUS_OK && arguments->hlog && is_folder(arguments->hlog)) {
    status = err_set(err, STATUS_USAGE, "--hlog %.200s is a folder: name a file in it", arguments->hlog);
  }
  return status;
}

/* "2026-12-01T10:20:30Z" as "20261201T102030Z", for file names. */
static void compact_time(char out[24], const char *rfc3339) {
  size_t len = 0;
  for (; *rfc3339 && *rfc3339 != '.' && len < 16; rfc3339++) {
    if (*rfc3339 != '-' && *rfc3339 != ':') out[len++] = *rfc3339;
  }
  if (len && out[len - 1] != 'Z') out[len++] = 'Z';
  out[len] = '\0';
}

static void report_path(char out[PATH_MAX], const char *place, const struct report *report) {
  if (!is_folder(place)) {
    snprintf(out, PATH_MAX, "%s", place);
    return;
  }
  char utc[24];
  compact_time(utc, report->started_at);
  snprintf(out, PATH_MAX, "%s%s%s-%s-%s.json", place, place[strlen(place) - 1] == '/' ? "" : "/", utc, report->run_id,
      report->workload.name);
}

/* What only we know about the server that we started. */
static void describe_server(struct report *report, const struct embedded *embedded) {
  bool durable = strcmp(report->workload.ack_policy, "durable") == 0;
  report->workload.push_window = embedded->push_window;
  snprintf(report->target.storage, sizeof report->target.storage, "SQLite, WAL, synchronous=%s",
      durable ? "FULL" : "NORMAL");
}

/* Files first, so that a broken standard output does not lose the report. */
static int publish_report(const struct run_arguments *arguments, const struct report *report) {
  struct err err = {0};
  int code = report_exit_code(report);
  char path[PATH_MAX];
  const char *place = report_place(arguments);
  bool saved = false;
  if (place) {
    report_path(path, place, report);
    saved = report_save_json(path, report, &err) == STATUS_OK;
    if (!saved) code = complain(&err);
  }
  if (arguments->hlog && report_save_hlog(arguments->hlog, report, &err) != STATUS_OK) code = complain(&err);
  enum status status =
      prints_json(arguments) ? report_write_json(stdout, report, &err) : report_write_text(stdout, report, &err);
  if (status != STATUS_OK) return complain(&err);
  code = finish_stdout(code);
  if (saved && !arguments->quiet) fprintf(stderr, "report: %s\n", path);
  return code;
}

static enum status execute(const struct run_arguments *arguments, const struct driver *driver,
    const struct embedded *embedded, struct report *report, struct err *err) {
  const struct workload *workload = &arguments->workload;
  bool is_live = !arguments->quiet && isatty(STDERR_FILENO);
  struct run_options options = {
      .workload = workload,
      .driver = driver,
      .target = embedded ? embedded->ws_url : workload->target,
      .api_url = embedded ? embedded->api_url : workload->api_url,
      .app_key = embedded ? embedded->app_key : workload->app_key,
      .secret = embedded ? embedded->secret : from_environment("MUSTER_APP_SECRET"),
      .interrupted = &interrupts,
      .progress = is_live ? progress_show : NULL,
  };
  enum status status = run_execute(&options, report, err);
  if (is_live) progress_clear();
  return status;
}

static int run(const struct run_arguments *arguments, const struct driver *driver) {
  struct err err = {0};
  struct embedded server;
  struct embedded *embedded = arguments->workload.target ? NULL : &server;
  if (embedded && embedded_start(embedded, &arguments->workload, &err) != STATUS_OK) return complain(&err);
  catch_signals();
  struct report report;
  enum status status = execute(arguments, driver, embedded, &report, &err);
  struct err server_err = {0};
  bool server_ok = !embedded || embedded_stop(embedded, &server_err) == STATUS_OK;
  if (status != STATUS_OK) return complain(server_ok ? &err : &server_err);
  if (!server_ok) complain(&server_err);
  if (embedded) describe_server(&report, embedded);
  report_judge(&report);
  int code = publish_report(arguments, &report);
  report_free(&report);
  return code;
}

int command_run(int argc, char **argv) {
  struct run_arguments arguments;
  struct err err = {0};
  if (run_arguments_parse(argc, argv, &arguments, &err) != STATUS_OK) return complain(&err);
  if (arguments.help) {
    run_arguments_help(stdout);
    return finish_stdout(EXIT_VALID);
  }
  struct workload *workload = &arguments.workload;
  if (workload->target && !workload->app_key) workload->app_key = from_environment("MUSTER_APP_KEY");
  const struct driver *driver = NULL;
  enum status status = choose_driver(workload->target, &driver, &err);
  if (status == STATUS_OK) status = check_files(&arguments, &err);
  if (status == STATUS_OK) status = run_check(workload, driver, &err);
  if (status != STATUS_OK) return complain(&err);
  return run(&arguments, driver);
}
