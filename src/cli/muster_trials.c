#include "cli/muster_trials.h"

#include "base/rng.h"
#include "cli/muster_calibrate.h"
#include "cli/muster_outputs.h"
#include "cli/muster_say.h"
#include "cli/muster_session.h"
#include "load/run.h"
#include "report/formats.h"
#include "report/html.h"
#include "report/index.h"
#include "report/read.h"
#include "report/save.h"
#include "report/trials.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKLOADS_MAX 16

struct contender {
  char **argv; /* the command line with this workload only */
  struct run_arguments arguments;
  struct session session;
  struct trials trials;
};

struct series_of_trials {
  struct contender contender[WORKLOADS_MAX];
  const char *name[WORKLOADS_MAX];
  size_t count;
  char folder[PATH_MAX]; /* of the reports, with its slash */
  FILE *table;           /* NULL: none */
  int failure;           /* exit code of what could not be carried out or saved; 0: nothing */
};

/* --- before the first trial --- */

/* The line of one workload: everything but the other workloads' names. */
static enum status parse_contender(
    int argc, char **argv, const int *names, size_t count, size_t which, struct contender *out, struct err *err) {
  int length = 0;
  out->argv = calloc((size_t)argc + 1, sizeof *out->argv);
  if (!out->argv) return err_set(err, STATUS_MEMORY, "out of memory for the command line");
  for (int i = 0; i < argc; i++) {
    bool is_other = false;
    for (size_t j = 0; j < count; j++)
      is_other = is_other || (j != which && names[j] == i);
    if (!is_other) out->argv[length++] = argv[i];
  }
  return run_arguments_parse(length, out->argv, &out->arguments, err);
}

static enum status check_contender(struct contender *out, struct err *err) {
  struct run_arguments *arguments = &out->arguments;
  out->session = (struct session){.objectives = &arguments->slos,
      .observe = &arguments->observe,
      .quiet = arguments->quiet,
      .is_one_of_many = true};
  if (arguments->ui || arguments->metrics) {
    return err_set(err, STATUS_USAGE, "%s follows one run: leave it out; --html gives the page of all trials",
        arguments->ui ? "--ui" : "--metrics");
  }
  if (outputs_take_stdout(arguments)) {
    return err_set(
        err, STATUS_USAGE, "--jsonl -: standard output has room for one run: name a file, each trial gets its own");
  }
  enum status status = session_driver(arguments, &out->session.driver, err);
  if (status == STATUS_OK) status = run_check(&arguments->workload, out->session.driver, err);
  return status;
}

static enum status check_names(const struct series_of_trials *all, struct err *err) {
  for (size_t i = 0; i < all->count; i++) {
    for (size_t j = i + 1; j < all->count; j++) {
      if (strcmp(all->name[i], all->name[j]) != 0) continue;
      return err_set(
          err, STATUS_USAGE, "two workloads are named %.60s: give one of the files another name", all->name[i]);
    }
  }
  return STATUS_OK;
}

static enum status choose_folder(struct series_of_trials *all, struct err *err) {
  const struct run_arguments *first = &all->contender[0].arguments;
  if (first->json && all->count > 1) {
    return err_set(
        err, STATUS_USAGE, "--json takes one summary, and there are %zu workloads: give --output FOLDER", all->count);
  }
  if (first->json && !session_prints_json(first)) {
    return err_set(
        err, STATUS_USAGE, "--json %.100s: trials go into a folder: give --output FOLDER, or --json -", first->json);
  }
  return session_folder(all->folder, first->output ? first->output : "results", err);
}

/* Each trial's files, and the page of each workload. */
static enum status check_outputs(
    const struct series_of_trials *all, const struct contender *contender, struct err *err) {
  const struct run_arguments *arguments = &contender->arguments;
  const char *name = all->count > 1 ? arguments->workload.name : NULL;
  struct trial_outputs *outputs = malloc(sizeof *outputs);
  if (!outputs) return err_set(err, STATUS_MEMORY, "out of memory for the trials");
  enum status status = session_check_new_file("--html", arguments->html, err);
  for (uint32_t trial = 1; status == STATUS_OK && trial <= (arguments->trials ? arguments->trials : 1); trial++) {
    status = outputs_of_trial(outputs, arguments, name, trial, err);
    if (status == STATUS_OK) status = outputs_check(&outputs->arguments, err);
  }
  free(outputs);
  if (status != STATUS_OK || !arguments->html || !name || session_is_folder(arguments->html)) return status;
  return err_set(
      err, STATUS_USAGE, "--html %.200s: several workloads need a folder: write a / behind its name", arguments->html);
}

static enum status prepare(
    int argc, char **argv, const int *names, size_t count, struct series_of_trials *all, struct err *err) {
  if (count > WORKLOADS_MAX) {
    return err_set(err, STATUS_USAGE, "more than %d workloads: run them in several commands", WORKLOADS_MAX);
  }
  enum status status = STATUS_OK;
  for (size_t i = 0; i < count && status == STATUS_OK; i++) {
    struct contender *contender = &all->contender[all->count++];
    status = parse_contender(argc, argv, names, count, i, contender, err);
    if (status == STATUS_OK && contender->arguments.help) return STATUS_OK;
    if (status == STATUS_OK) status = check_contender(contender, err);
    if (status == STATUS_OK) all->name[i] = contender->arguments.workload.name;
  }
  if (status == STATUS_OK) status = check_names(all, err);
  for (size_t i = 0; i < all->count && status == STATUS_OK; i++)
    status = check_outputs(all, &all->contender[i], err);
  if (status == STATUS_OK) status = choose_folder(all, err);
  return status;
}

static void begin(struct series_of_trials *all) {
  for (size_t i = 0; i < all->count; i++) {
    struct trials *trials = &all->contender[i].trials;
    uint32_t asked = all->contender[i].arguments.trials;
    uint64_t id;
    random_bytes(&id, sizeof id);
    snprintf(trials->id, sizeof trials->id, "trials-%016" PRIx64, id);
    session_now(trials->started_at);
    trials->name = all->name[i];
    trials->asked = asked ? asked : 1;
    trials->alternating = all->name;
    trials->workloads = all->count;
  }
  if (session_prints_json(&all->contender[0].arguments)) return;
  all->table = stdout;
  trials_write_head(all->table);
  fflush(all->table);
}

/* --- a trial --- */

static enum status add_report(struct trial_list *list, const char *path, const struct report *report, struct err *err) {
  char *text = NULL;
  size_t len = 0;
  struct document document = {0};
  const char *slash = strrchr(path, '/');
  FILE *file = open_memstream(&text, &len);
  if (!file) return err_set(err, STATUS_MEMORY, "out of memory for the trials");
  enum status status = report_write_json(file, report, err);
  fclose(file);
  if (status == STATUS_OK) status = document_parse(path, text, len, &document, err);
  if (status == STATUS_OK) status = trial_list_add(list, slash ? slash + 1 : path, document.root, err);
  document_free(&document);
  free(text);
  return status;
}

static enum status keep(
    const struct series_of_trials *all, struct contender *contender, const struct report *report, struct err *err) {
  struct trials *trials = &contender->trials;
  char path[PATH_MAX];
  struct session_document document = {report->started_at, report->run_id, report->workload.name};
  session_path(path, all->folder, &document);
  enum status status = report_save(path, "json", report, err);
  if (status == STATUS_OK) status = add_report(&trials->list, path, report, err);
  if (status != STATUS_OK) return status;
  struct index_entry entry = session_index_entry(report);
  entry.trials_id = trials->id;
  entry.trial = (uint32_t)trials->list.count;
  return index_append(path, &entry, err);
}

/* What is random in a trial is so anew, unless a seed was given. */
static struct workload fresh_workload(const struct run_arguments *arguments) {
  struct workload workload = arguments->workload;
  uint32_t seed = 0;
  if (option_is_marked(arguments->given, option_find("seed"))) return workload;
  while (seed == 0)
    random_bytes(&seed, sizeof seed);
  workload.seed = seed;
  return workload;
}

/* Runs the trial, and writes its own files beside the report. */
static enum status run_trial(const struct series_of_trials *all, struct contender *contender, struct report *report,
    int *code, struct err *err) {
  struct outputs outputs;
  struct session session = contender->session;
  struct trial_outputs *of_trial = malloc(sizeof *of_trial);
  if (!of_trial) return err_set(err, STATUS_MEMORY, "out of memory for the trials");
  enum status status = outputs_of_trial(of_trial, &contender->arguments, all->count > 1 ? contender->trials.name : NULL,
      (uint32_t)contender->trials.list.count + 1, err);
  struct workload workload = fresh_workload(&contender->arguments);
  session.seconds = &outputs.seconds;
  if (status == STATUS_OK) status = outputs_open(&outputs, &of_trial->arguments, err);
  if (status == STATUS_OK) {
    status = session_run(&session, &workload, report, err);
    if (status == STATUS_OK) {
      *code = outputs_finish(&outputs, report, 0);
    } else {
      outputs_drop(&outputs);
    }
  }
  free(of_trial);
  return status;
}

/* False: the series ends here. */
static bool carry_out(struct series_of_trials *all, struct contender *contender) {
  struct err err = {0}, ignored = {0};
  struct report report;
  struct trials *trials = &contender->trials;
  size_t before = trials->list.count;
  int code = 0;
  enum status status = run_trial(all, contender, &report, &code, &err);
  if (status != STATUS_OK) {
    all->failure = complain(&err);
    trial_list_add_failed(&trials->list, &err, all->failure, &ignored);
  } else {
    if (code) all->failure = code;
    note_calibration(&report);
    status = keep(all, contender, &report, &err);
    if (status != STATUS_OK) all->failure = complain(&err);
    report_free(&report);
  }
  if (all->table && trials->list.count > before) {
    trials_write_row(all->table, trials->name, (uint32_t)trials->list.count, &trials->list.trial[before]);
    fflush(all->table);
  }
  trials->interrupted = session_interrupts() > 0;
  return status == STATUS_OK && !trials->interrupted;
}

/* There and back: A B, B A, A B ... A machine that grows slower meanwhile then favours nobody. */
static void take_turns(struct series_of_trials *all) {
  uint32_t rounds = all->contender[0].trials.asked;
  for (uint32_t round = 0; round < rounds; round++) {
    for (size_t i = 0; i < all->count; i++) {
      size_t turn = round % 2 ? all->count - 1 - i : i;
      if (!carry_out(all, &all->contender[turn])) return;
    }
  }
}

/* --- afterwards --- */

static enum status save_summary(
    const struct series_of_trials *all, const struct trials *trials, char path[PATH_MAX], struct err *err) {
  char name[64];
  snprintf(name, sizeof name, "%.48s-summary", trials->name);
  struct session_document document = {trials->started_at, trials->id, name};
  session_path(path, all->folder, &document);
  enum status status = save_new_file(path, trials_write_json, trials, err);
  struct index_entry entry = {.document = "trials",
      .id = trials->id,
      .name = trials->name,
      .started_at = trials->started_at,
      .verdict = trials_are_valid(trials) ? "valid" : "invalid",
      .exit_code = trials_exit_code(trials)};
  return status == STATUS_OK ? index_append(path, &entry, err) : status;
}

static enum status write_page(FILE *file, const void *content, struct err *err) {
  const struct trials *trials = content;
  char title[160];
  snprintf(title, sizeof title, "trials: %.80s, %s - muster", trials->name, trials->started_at);
  return html_write_of(file, title, trials_write_json, trials, err);
}

/* In a folder it is named as the summary. */
static enum status save_page(
    const struct run_arguments *arguments, const struct trials *trials, const char *summary, struct err *err) {
  const char *html = arguments->html, *slash = strrchr(summary, '/'), *base = slash ? slash + 1 : summary;
  char path[PATH_MAX];
  bool is_folder = html && session_is_folder(html);
  if (!html) return STATUS_OK;
  if (is_folder) {
    snprintf(path, sizeof path, "%s%s%.*s.html", html, save_slash(html), (int)strcspn(base, "."), base);
  }
  return save_new_file(is_folder ? path : html, write_page, trials, err);
}

static int publish(const struct series_of_trials *all, const struct contender *contender) {
  struct err err = {0};
  const struct trials *trials = &contender->trials;
  int code = trials_exit_code(trials);
  char path[PATH_MAX];
  bool saved = save_summary(all, trials, path, &err) == STATUS_OK;
  if (!saved) code = complain(&err);
  if (save_page(&contender->arguments, trials, path, &err) != STATUS_OK) code = complain(&err);
  enum status status =
      all->table ? trials_write_summary(all->table, trials, &err) : trials_write_json(stdout, trials, &err);
  if (status != STATUS_OK) return complain(&err);
  if (saved && !contender->arguments.quiet) fprintf(stderr, "trials: %s\n", path);
  return code;
}

static int publish_all(const struct series_of_trials *all) {
  int worst = all->failure;
  for (size_t i = 0; i < all->count; i++) {
    const struct contender *contender = &all->contender[i];
    if (contender->trials.list.count == 0) continue;
    int code = publish(all, contender);
    if (code > worst) worst = code;
  }
  return finish_stdout(worst);
}

static void free_contenders(struct series_of_trials *all) {
  for (size_t i = 0; i < all->count; i++) {
    struct contender *contender = &all->contender[i];
    trial_list_free(&contender->trials.list);
    run_arguments_free(&contender->arguments);
    free(contender->argv);
  }
  free(all);
}

/* Nothing but a failure: what complain said is all there is to say. */
static bool has_reports(const struct series_of_trials *all) {
  for (size_t i = 0; i < all->count; i++) {
    const struct trial_list *list = &all->contender[i].trials.list;
    for (size_t j = 0; j < list->count; j++) {
      if (list->trial[j].facts) return true;
    }
  }
  return false;
}

int run_trials(int argc, char **argv, const int *names, size_t count) {
  struct err err = {0};
  int code;
  struct series_of_trials *all = calloc(1, sizeof *all);
  if (!all) {
    err_set(&err, STATUS_MEMORY, "out of memory for the trials");
    return complain(&err);
  }
  if (prepare(argc, argv, names, count, all, &err) != STATUS_OK) {
    code = complain(&err);
  } else if (all->contender[0].arguments.help) {
    run_arguments_help(stdout, NULL);
    code = finish_stdout(EXIT_VALID);
  } else {
    session_catch_signals();
    begin(all);
    take_turns(all);
    code = has_reports(all) ? publish_all(all) : finish_stdout(all->failure);
  }
  free_contenders(all);
  return code;
}
