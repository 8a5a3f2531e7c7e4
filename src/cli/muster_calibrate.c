#include "cli/muster_calibrate.h"

#include "cli/muster_find.h"
#include "cli/muster_options.h"
#include "cli/muster_outputs.h"
#include "cli/muster_say.h"
#include "cli/muster_session.h"
#include "load/calibrate.h"
#include "load/find.h"
#include "load/null_peer.h"
#include "load/run.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the XDG base directory specification puts state. */
static enum status state_path(char out[PATH_MAX], struct err *err) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  int len = -1;
  if (state && state[0] == '/') {
    len = snprintf(out, PATH_MAX, "%s/muster/calibrations.json", state);
  } else if (home && home[0] == '/') {
    len = snprintf(out, PATH_MAX, "%s/.local/state/muster/calibrations.json", home);
  }
  if (len > 0 && len < PATH_MAX) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "no place for calibrations: set XDG_STATE_HOME or HOME to an absolute path");
}

static enum status read_state(struct calibrations **out, char path[PATH_MAX], struct err *err) {
  *out = calloc(1, sizeof **out);
  if (!*out) return err_set(err, STATUS_MEMORY, "out of memory for calibrations");
  enum status status = state_path(path, err);
  return status == STATUS_OK ? calibrations_read(path, *out, err) : status;
}

void note_calibration(struct report *report) {
  struct calibrations *calibrations;
  char path[PATH_MAX];
  if (read_state(&calibrations, path, NULL) == STATUS_OK) calibration_note(calibrations, report);
  free(calibrations);
}

static int show(void) {
  struct err err = {0};
  struct calibrations *calibrations;
  char path[PATH_MAX];
  enum status status = read_state(&calibrations, path, &err);
  if (status == STATUS_OK) printf("%u calibrations in %s\n", calibrations->count, path);
  for (uint32_t i = 0; status == STATUS_OK && i < calibrations->count; i++) {
    const struct calibration *c = &calibrations->entry[i];
    printf("\n%s: %s%g publishes/s (%s)\n  %s\n  %s, %s, %u CPUs, %s\n", c->protocol,
        c->broken_per_sec > 0 ? "" : "at least ", c->ceiling_per_sec, c->measured_at, c->shape, c->hostname,
        c->cpu_model, c->usable_cpus, c->kernel);
  }
  free(calibrations);
  return status == STATUS_OK ? finish_stdout(EXIT_VALID) : complain(&err);
}

static void print_help(void) {
  fputs("Usage: muster calibrate WORKLOAD [options of a search] [options of `muster run`]\n"
        "       muster calibrate --show\n\n"
        "Finds the highest rate at which the generator itself stays valid on this machine, against a peer that\n"
        "ACKs and pushes every publish at once and does nothing else. Later reports of the same load then say how\n"
        "near to that ceiling they were.\n\nSearch:\n",
      stdout);
  find_options_help(CALIBRATE_COMMAND);
  puts("\n`muster help run all` lists the options of a run; those of a target or a server do not apply.\n"
       "Exit codes: 0 calibrated, 1 not even the first load was valid, 2 usage, 3 no answer.");
}

struct calibrating {
  struct session session;
  const struct find_settings *settings;
  FILE *table; /* NULL: none */
  uint32_t steps;
  struct calibration calibration; /* as the last run says, without its result */
};

/* Each run has a peer of its own. */
static enum status run_step(void *context, const struct workload *workload, struct report *report, struct err *err) {
  struct calibrating *calibrating = context;
  struct null_peer peer;
  struct workload against = *workload;
  enum status status = null_peer_start(&peer, workload, calibrating->session.driver, err);
  if (status != STATUS_OK) return status;
  against.target = peer.target;
  if (strcmp(calibrating->session.driver->name, "juggle") == 0) {
    against.api_url = peer.api_url;
    against.app_key = NULL_PEER_APP_KEY;
  }
  status = run_check(&against, calibrating->session.driver, err);
  if (status == STATUS_OK) status = session_run(&calibrating->session, &against, report, err);
  null_peer_stop(&peer);
  if (status != STATUS_OK) return status;
  calibration_of_report(report, &calibrating->calibration);
  snprintf(report->target.url, sizeof report->target.url, "the null peer");
  return STATUS_OK;
}

static void show_step(void *context, const struct find_step *step) {
  struct calibrating *calibrating = context;
  calibrating->steps++;
  if (!calibrating->table) return;
  if (calibrating->steps == 1) find_write_head(calibrating->table, calibrating->settings);
  find_write_step(calibrating->table, calibrating->settings, calibrating->steps, step);
  fflush(calibrating->table);
}

/* Keeps the ceiling for later reports. */
static enum status keep(struct calibrating *calibrating, const struct find *find, struct err *err) {
  char path[PATH_MAX];
  struct calibration *calibration = &calibrating->calibration;
  calibration->ceiling_per_sec = find->search.held;
  calibration->broken_per_sec = find->search.broken;
  memcpy(calibration->measured_at, find->started_at, sizeof calibration->measured_at);
  enum status status = state_path(path, err);
  if (status == STATUS_OK) status = calibration_store(path, calibration, err);
  if (status == STATUS_OK && !calibrating->session.quiet) fprintf(stderr, "kept in %s\n", path);
  return status;
}

static int search(const struct run_arguments *arguments, struct find_settings *settings, struct session *session) {
  struct err err = {0};
  struct calibrating calibrating = {.session = *session, .settings = settings};
  struct find *find = calloc(1, sizeof *find);
  if (!find) {
    err_set(&err, STATUS_MEMORY, "out of memory for the search");
    return complain(&err);
  }
  if (!session_prints_json(arguments)) calibrating.table = stdout;
  settings->run = run_step;
  settings->ended = show_step;
  settings->context = &calibrating;
  session_catch_signals();
  enum status status = find_run(find, settings, &err);
  int code = status == STATUS_OK ? find_publish(arguments, find) : complain(&err);
  if (code == EXIT_VALID && keep(&calibrating, find, &err) != STATUS_OK) code = complain(&err);
  free(find);
  return code;
}

/* An option of `muster run` that a search of the generator would not look at, or NULL. */
static const char *option_without_effect(const struct run_arguments *arguments) {
  if (arguments->trials) return "--trials";
  if (arguments->observe.count) return "--observe";
  if (arguments->ui) return "--ui";
  return arguments->metrics ? "--metrics" : outputs_given(arguments);
}

static enum status check(const struct run_arguments *arguments, const struct session *session, struct err *err) {
  const struct workload *workload = &arguments->workload;
  const char *without_effect = option_without_effect(arguments);
  if (option_was_typed(option_find("slo"), arguments)) {
    return err_set(err, STATUS_USAGE, "--slo judges a server, calibrate the generator: leave it out");
  }
  if (without_effect) {
    return err_set(
        err, STATUS_USAGE, "%s belongs to `muster run`, calibrate does nothing with it: leave it out", without_effect);
  }
  enum status status = null_peer_check(workload, session->driver, err);
  return status == STATUS_OK ? session_check_files(arguments, err) : status;
}

static int calibrate(const struct find_options *options, struct run_arguments *arguments) {
  struct err err = {0};
  struct find_settings settings = {.subject = FIND_GENERATOR};
  struct session session = {.quiet = arguments->quiet, .is_one_of_many = true, .secret = NULL_PEER_SECRET};
  enum status status = find_search_read(CALIBRATE_COMMAND, options, &settings, &err);
  if (status == STATUS_OK) status = session_driver(arguments, &session.driver, &err);
  if (status == STATUS_OK) status = check(arguments, &session, &err);
  if (status != STATUS_OK) return complain(&err);
  arguments->slos.count = 0; /* a scenario's are about its server */
  find_settings_of(arguments, &settings);
  return search(arguments, &settings, &session);
}

static int parse_and_calibrate(int argc, char **argv, char **rest) {
  struct find_options options = {0};
  struct run_arguments arguments;
  struct err err = {0};
  int rest_count;
  if (find_options_split(CALIBRATE_COMMAND, argc, argv, &options, rest, &rest_count, &err) != STATUS_OK) {
    return complain(&err);
  }
  if (options.help) {
    print_help();
    return finish_stdout(EXIT_VALID);
  }
  if (options.show) return show();
  if (rest_count == 0) {
    err_set(&err, STATUS_USAGE, "say which load: `muster calibrate private`, or --show what there is");
    return complain(&err);
  }
  bool parsed = run_arguments_parse(rest_count, rest, &arguments, &err) == STATUS_OK;
  int code = parsed ? calibrate(&options, &arguments) : complain(&err);
  run_arguments_free(&arguments);
  return code;
}

int command_calibrate(int argc, char **argv) {
  char **rest = calloc((size_t)argc + 1, sizeof *rest);
  if (!rest) {
    struct err err = {0};
    err_set(&err, STATUS_MEMORY, "out of memory for the command line");
    return complain(&err);
  }
  int code = parse_and_calibrate(argc, argv, rest);
  free(rest);
  return code;
}
