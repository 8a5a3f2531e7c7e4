#include "cli/muster_run.h"

#include "cli/muster_calibrate.h"
#include "cli/muster_options.h"
#include "cli/muster_outputs.h"
#include "cli/muster_say.h"
#include "cli/muster_session.h"
#include "cli/muster_trials.h"
#include "load/run.h"
#include "report/document.h"
#include "report/formats.h"
#include "report/html.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* Files first, so that a broken standard output does not lose the report. */
static int publish_report(const struct run_arguments *arguments, struct outputs *outputs, const struct report *report) {
  struct err err = {0};
  int code = report_exit_code(report);
  char path[PATH_MAX];
  const char *place = session_place(arguments);
  bool saved = false;
  if (place) {
    struct session_document document = {report->started_at, report->run_id, report->workload.name};
    session_path(path, place, &document);
    saved = report_save(path, "json", report, &err) == STATUS_OK;
    struct index_entry entry = session_index_entry(report);
    bool listed = saved && (!session_is_folder(place) || index_append(path, &entry, &err) == STATUS_OK);
    if (!listed) code = complain(&err);
  }
  code = outputs_finish(outputs, report, code);
  enum status status = outputs_take_stdout(arguments)   ? STATUS_OK
                       : session_prints_json(arguments) ? report_write_json(stdout, report, &err)
                                                        : report_write_text(stdout, report, &err);
  if (status != STATUS_OK) return complain(&err);
  code = finish_stdout(code);
  if (saved && !arguments->quiet) fprintf(stderr, "report: %s\n", path);
  return code;
}

static enum status write_json(FILE *file, const void *content, struct err *err) {
  return report_write_json(file, content, err);
}

static int run(const struct run_arguments *arguments, struct session *session) {
  struct err err = {0};
  struct report report;
  struct outputs outputs;
  session_catch_signals();
  enum status status = outputs_open(&outputs, arguments, &err);
  if (status != STATUS_OK) return complain(&err);
  session->seconds = &outputs.seconds;
  status = session_open_web(arguments, &session->web, &err);
  if (status == STATUS_OK) status = session_run(session, &arguments->workload, &report, &err);
  if (status != STATUS_OK) {
    int code = complain(&err);
    outputs_drop(&outputs);
    session_close_web(session->web, NULL, NULL, NULL, &err);
    return code;
  }
  note_calibration(&report);
  int code = publish_report(arguments, &outputs, &report);
  session_close_web(session->web, report.workload.name, write_json, &report, NULL);
  report_free(&report);
  return code;
}

static int command(struct run_arguments *arguments, struct err *err) {
  struct session session = {.objectives = &arguments->slos, .observe = &arguments->observe, .quiet = arguments->quiet};
  enum status status = session_driver(arguments, &session.driver, err);
  if (status == STATUS_OK) status = session_check_files(arguments, err);
  if (status == STATUS_OK) status = run_check(&arguments->workload, session.driver, err);
  return status == STATUS_OK ? run(arguments, &session) : complain(err);
}

/* name: the place of the one workload, if any. */
static int run_one(int argc, char **argv, const int *name) {
  struct run_arguments arguments;
  struct err err = {0};
  int code;
  if (run_arguments_parse(argc, argv, &arguments, &err) != STATUS_OK) {
    code = complain(&err);
  } else if (arguments.help) {
    run_arguments_help(stdout, NULL);
    code = finish_stdout(EXIT_VALID);
  } else if (arguments.trials) {
    code = run_trials(argc, argv, name, 1);
  } else {
    code = command(&arguments, &err);
  }
  run_arguments_free(&arguments);
  return code;
}

int command_run(int argc, char **argv) {
  int *names = calloc((size_t)argc + 1, sizeof *names);
  if (!names) {
    struct err err = {0};
    err_set(&err, STATUS_MEMORY, "out of memory for the command line");
    return complain(&err);
  }
  size_t count = run_arguments_names(argc, argv, names);
  int code = count > 1 ? run_trials(argc, argv, names, count) : run_one(argc, argv, names);
  free(names);
  return code;
}
