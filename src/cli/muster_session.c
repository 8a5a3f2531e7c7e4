#include "cli/muster_session.h"

#include "base/clock.h"
#include "build_facts.h"
#include "cli/muster_outputs.h"
#include "cli/muster_progress.h"
#include "cli/muster_say.h"
#include "cli/muster_unread.h"
#include "load/run.h"
#include "load/settings.h"
#include "net/address.h"
#include "report/html.h"
#include "report/save.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static volatile int interrupts;
static pid_t control_pid;

/* The first signal ends the phase, the second everything. A terminal that goes away may say so twice. Workers inherit
 * this handler but end through the control process. */
static void on_interrupt(int signal_number) {
  if (getpid() != control_pid || (signal_number == SIGHUP && interrupts > 0)) return;
  interrupts = interrupts + 1;
  if (interrupts > 1) _exit(EXIT_INTERRUPTED);
}

void session_catch_signals(void) {
  control_pid = getpid();
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  struct sigaction hang_up;
  bool stays = sigaction(SIGHUP, NULL, &hang_up) == 0 && hang_up.sa_handler == SIG_IGN; /* nohup */
  if (!stays) sigaction(SIGHUP, &action, NULL);
}

int session_interrupts(void) {
  return interrupts;
}

static const char *from_environment(const char *name) {
  const char *value = getenv(name);
  return value && value[0] ? value : NULL;
}

/* The driver that the scheme chooses, unless *out is chosen already: then it only has to take the target. */
static enum status driver_of_target(const char *target, const struct driver **out, struct err *err) {
  const struct driver *chosen = *out;
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
  if (chosen && !driver_takes(chosen, url.scheme)) {
    return err_set(err, STATUS_USAGE, "--target: driver %s takes no %s:// but %s: give another --target or --driver",
        chosen->name, url.scheme, chosen->schemes);
  }
  if (!chosen) *out = driver_find(url.scheme);
  if (*out) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "--target: no driver speaks '%s': `muster drivers` lists the schemes", url.scheme);
}

enum status session_driver(struct run_arguments *arguments, const struct driver **out, struct err *err) {
  struct workload *workload = &arguments->workload;
  *out = workload->driver ? driver_find(workload->driver) : workload->target ? NULL : driver_find("juggle");
  enum status status = driver_of_target(workload->target, out, err);
  if (status == STATUS_OK) status = unread_check(arguments, *out, err);
  if (status != STATUS_OK) return status;
  bool has_key = workload->target && driver_reads(*out, "app-key", NULL);
  if (has_key && !workload->app_key) workload->app_key = from_environment("MUSTER_APP_KEY");
  settings_describe(workload, *out);
  return STATUS_OK;
}

bool session_is_folder(const char *path) {
  struct stat info;
  return save_slash(path)[0] == '\0' || (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

bool session_prints_json(const struct run_arguments *arguments) {
  return arguments->json && strcmp(arguments->json, "-") == 0;
}

const char *session_place(const struct run_arguments *arguments) {
  if (arguments->output) return arguments->output;
  if (session_prints_json(arguments)) return NULL;
  return arguments->json ? arguments->json : "results/";
}

enum status session_folder(char out[PATH_MAX], const char *place, struct err *err) {
  struct stat info;
  if (stat(place, &info) == 0 && !S_ISDIR(info.st_mode)) {
    return err_set(err, STATUS_USAGE, "--output %.300s is a file: trials go into a folder", place);
  }
  int written = snprintf(out, PATH_MAX, "%s%s", place, save_slash(place));
  if (written > 0 && written < PATH_MAX) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "the path is too long: %.80s...", place);
}

struct index_entry session_index_entry(const struct report *report) {
  return (struct index_entry){.document = "run",
      .id = report->run_id,
      .name = report->workload.name,
      .started_at = report->started_at,
      .verdict = report->verdict == VERDICT_VALID ? "valid" : "invalid",
      .exit_code = report_exit_code(report)};
}

enum status session_check_new_file(const char *option, const char *path, struct err *err) {
  if (!path || session_is_folder(path)) return STATUS_OK;
  if (strcmp(path, "-") == 0) {
    return err_set(
        err, STATUS_USAGE, "%s -: name a file; of a run only --json and --jsonl take - for standard output", option);
  }
  if (access(path, F_OK) != 0) return STATUS_OK;
  return err_set(
      err, STATUS_USAGE, "%s: %.300s exists already and is never overwritten: choose another name", option, path);
}

enum status session_check_files(const struct run_arguments *arguments, struct err *err) {
  enum status status = session_check_new_file(arguments->output ? "--output" : "--json", session_place(arguments), err);
  return status == STATUS_OK ? outputs_check(arguments, err) : status;
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

void session_now(char out[40]) {
  char day[24];
  time_t now = time(NULL);
  struct tm tm;
  gmtime_r(&now, &tm);
  strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(out, 40, "%sZ", day);
}

void session_path(char out[PATH_MAX], const char *place, const struct session_document *document) {
  if (!session_is_folder(place)) {
    snprintf(out, PATH_MAX, "%s", place);
    return;
  }
  char utc[24];
  compact_time(utc, document->started_at);
  snprintf(out, PATH_MAX, "%s%s%s-%s-%s.json", place, save_slash(place), utc, document->id, document->name);
}

/* What only we know about the server that we started. */
static void describe_server(struct report *report, const struct embedded *embedded) {
  bool durable = strcmp(report->workload.ack_policy, "durable") == 0;
  const struct driver *driver = driver_find(report->target.protocol);
  if (driver_reads(driver, "push-window", NULL)) report->workload.push_window = embedded->push_window;
  if (!report->target.server_version[0]) { /* the protocol does not tell; it is of this very build */
    snprintf(report->target.server_version, sizeof report->target.server_version, "musterd-%s", MUSTER_VERSION);
  }
  if (!driver_reads(driver, "ack", NULL)) {
    report->workload.ack_policy = NULL;
    snprintf(report->target.ack_policy, sizeof report->target.ack_policy, "received");
    snprintf(report->target.storage, sizeof report->target.storage, "none: what passes through is not stored");
    return;
  }
  snprintf(report->target.storage, sizeof report->target.storage, "SQLite, WAL, synchronous=%s",
      durable ? "FULL" : "NORMAL");
}

void session_close_web(
    struct web *web, const char *title, session_writer *write, const void *content, const struct err *why) {
  if (!web) return;
  char *html = NULL;
  size_t len = 0;
  struct err err = {0};
  FILE *memory = content ? open_memstream(&html, &len) : NULL;
  bool is_whole = memory && html_write_of(memory, title, write, content, &err) == STATUS_OK;
  is_whole &= memory && fclose(memory) == 0;
  web_finish(web, is_whole ? html : NULL, len, why && why->text[0] ? why->text : "the run has no report");
  web_close(web);
  free(html);
}

struct display {
  struct progress progress;
  struct live live;
  struct web *web; /* NULL: none */
  bool is_shown;   /* on standard error */
};

static void show(void *context, const struct run_progress *progress) {
  struct display *display = context;
  double now_s = (double)clock_now_ns() / 1e9;
  live_update(&display->live, progress, now_s);
  if (display->is_shown) progress_show(&display->progress, &display->live, now_s);
  if (display->web) web_show(display->web, &display->live);
}

static void serve(void *context) {
  const struct display *display = context;
  web_serve(display->web);
}

enum status session_open_web(const struct run_arguments *arguments, struct web **out, struct err *err) {
  const char *listen = arguments->ui ? arguments->ui : arguments->metrics;
  *out = NULL;
  if (!listen) return STATUS_OK;
  if (arguments->ui && arguments->metrics) {
    return err_set(err, STATUS_USAGE, "--ui serves /metrics too: leave --metrics out");
  }
  enum status status = web_open(out, arguments->ui ? "--ui" : "--metrics", listen, arguments->ui != NULL, err);
  if (status == STATUS_OK) fprintf(stderr, "%s: %s\n", arguments->ui ? "page" : "metrics", web_url(*out));
  return status;
}

static enum status execute(const struct session *session, const struct workload *workload,
    const struct embedded *embedded, struct report *report, struct err *err) {
  struct display display = {
      .progress = progress_open(),
      .web = session->web,
      .live = {.workload = workload->name, .target = embedded ? "embedded musterd" : workload->target},
  };
  display.is_shown = !session->quiet && (display.progress.is_terminal || !session->is_one_of_many);
  struct run_options options = {
      .workload = workload,
      .driver = session->driver,
      .target = embedded ? embedded->ws_url : workload->target,
      .api_url = embedded ? embedded->api_url : workload->api_url,
      .app_key = embedded ? embedded->app_key : workload->app_key,
      .server_pid = embedded ? embedded->pid : 0,
      .observe = session->observe,
      .secret = embedded          ? embedded->secret
                : session->secret ? session->secret
                                  : from_environment("MUSTER_APP_SECRET"),
      .password = from_environment("MUSTER_PASSWORD"),
      .interrupted = &interrupts,
      .progress = display.is_shown || display.web ? show : NULL,
      .watch = {.fd = display.web ? web_fd(display.web) : -1, .ready = serve},
      .context = &display,
  };
  if (session->seconds) options.seconds = *session->seconds;
  enum status status = run_execute(&options, report, err);
  progress_clear(&display.progress);
  return status;
}

/* Runs against a server of its own, which it stops afterwards: that one's own failure explains more than ours. */
static enum status execute_embedded(
    const struct session *session, const struct workload *workload, struct report *report, struct err *err) {
  struct embedded embedded;
  struct err server_err = {0};
  enum status status = embedded_start(&embedded, workload, err);
  if (status != STATUS_OK) return status;
  status = execute(session, workload, &embedded, report, err);
  bool server_ok = embedded_stop(&embedded, &server_err) == STATUS_OK;
  if (status != STATUS_OK && !server_ok) *err = server_err;
  if (status != STATUS_OK) return err->status;
  if (!server_ok) complain(&server_err);
  describe_server(report, &embedded);
  return STATUS_OK;
}

enum status session_run(
    const struct session *session, const struct workload *workload, struct report *report, struct err *err) {
  enum status status;
  if (workload->target) {
    status = execute(session, workload, NULL, report, err);
  } else if (session->kept_server) {
    status = execute(session, workload, session->kept_server, report, err);
    if (status == STATUS_OK) describe_server(report, session->kept_server);
  } else {
    status = execute_embedded(session, workload, report, err);
  }
  if (status != STATUS_OK) return status;
  report_judge(report);
  if (session->objectives) slo_judge(session->objectives, report);
  return STATUS_OK;
}
