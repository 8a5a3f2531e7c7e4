#include "report/trial.h"

#include "report/document.h"
#include "report/save.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const fact_names[] = {
    "run_id", "started_at", "muster", "verdict", "workload", "target", "environment", "comparability"};
#define FACTS (sizeof fact_names / sizeof fact_names[0])

/* --- the list --- */

/* NULL: err says why. */
static struct trial *new_trial(struct trial_list *list, const char *source, struct err *err) {
  if (list->count == TRIALS_MAX) {
    err_set(err, STATUS_USAGE, "more than %d trials: name fewer", TRIALS_MAX);
    return NULL;
  }
  struct trial *larger = realloc(list->trial, (list->count + 1) * sizeof *larger);
  if (!larger) {
    err_set(err, STATUS_MEMORY, "out of memory for %zu trials", list->count + 1);
    return NULL;
  }
  list->trial = larger;
  struct trial *trial = &larger[list->count++];
  memset(trial, 0, sizeof *trial);
  snprintf(trial->source, sizeof trial->source, "%s", source);
  return trial;
}

static bool verdict_is_known(const json_t *verdict) {
  const char *result = json_string_value(json_object_get(verdict, "result"));
  return result && (strcmp(result, "valid") == 0 || strcmp(result, "invalid") == 0);
}

static enum status keep_facts(struct trial *trial, const json_t *report, struct err *err) {
  trial->facts = json_object();
  if (!trial->facts) return err_set(err, STATUS_MEMORY, "out of memory for the trials");
  for (size_t i = 0; i < FACTS; i++) {
    json_t *fact = json_object_get(report, fact_names[i]);
    bool is_text = strcmp(fact_names[i], "run_id") == 0 || strcmp(fact_names[i], "started_at") == 0;
    if (is_text ? !json_is_string(fact) : !json_is_object(fact)) {
      return err_set(err, STATUS_USAGE, "%.300s is no run report: it has no %s", trial->source, fact_names[i]);
    }
    json_object_set(trial->facts, fact_names[i], fact);
  }
  if (verdict_is_known(json_object_get(trial->facts, "verdict"))) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "%.300s is no run report: its verdict is neither valid nor invalid", trial->source);
}

static int exit_code_of(const struct trial *trial) {
  if (!trial_is_valid(trial)) return 3;
  size_t i;
  json_t *objective;
  json_array_foreach(json_object_get(json_object_get(trial->facts, "verdict"), "objectives"), i, objective) {
    if (json_is_false(json_object_get(objective, "held"))) return 1;
  }
  return 0;
}

enum status trial_list_add(struct trial_list *list, const char *source, const json_t *report, struct err *err) {
  struct trial *trial = new_trial(list, source, err);
  if (!trial) return err->status;
  enum status status = keep_facts(trial, report, err);
  if (status != STATUS_OK) return status;
  metrics_read(report, &trial->metrics);
  trial->exit_code = exit_code_of(trial);
  return STATUS_OK;
}

enum status trial_list_add_failed(struct trial_list *list, const struct err *why, int exit_code, struct err *err) {
  struct trial *trial = new_trial(list, "", err);
  if (!trial) return err->status;
  snprintf(trial->error, sizeof trial->error, "%s", why->text);
  trial->exit_code = exit_code;
  return STATUS_OK;
}

void trial_list_free(struct trial_list *list) {
  for (size_t i = 0; i < list->count; i++)
    json_decref(list->trial[i].facts);
  free(list->trial);
  *list = (struct trial_list){0};
}

/* --- reading --- */

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

/* One trial of a trials document: its own members, and those that all its trials share. */
static enum status add_listed(struct trial_list *list, const json_t *document, const json_t *listed, struct err *err) {
  struct err why = {0};
  if (!json_is_string(json_object_get(listed, "run_id"))) {
    err_set(&why, STATUS_USAGE, "%.400s", text_of(listed, "error"));
    return trial_list_add_failed(list, &why, (int)json_integer_value(json_object_get(listed, "exit_code")), err);
  }
  json_t *report = json_copy((json_t *)(uintptr_t)listed);
  if (!report) return err_set(err, STATUS_MEMORY, "out of memory for the trials");
  for (size_t i = 0; i < FACTS; i++) {
    json_t *shared = json_object_get(document, fact_names[i]);
    if (!json_object_get(report, fact_names[i])) json_object_set(report, fact_names[i], shared);
  }
  /* The document's own verdict and start are not the trial's. */
  json_object_set(report, "verdict", json_object_get(listed, "verdict"));
  json_object_set(report, "started_at", json_object_get(listed, "started_at"));
  enum status status = trial_list_add(list, text_of(listed, "file"), report, err);
  json_decref(report);
  return status;
}

static void take_values(struct trial *trial, size_t metric, const json_t *row, size_t number) {
  const json_t *value = json_array_get(json_object_get(row, "values"), number);
  double figure;
  if (!metric_value(value, &figure)) return;
  trial->metrics.value[metric] = figure;
  trial->metrics.state[metric] = METRIC_KNOWN;
  size_t i;
  json_t *few;
  json_array_foreach(json_object_get(row, "few_samples"), i, few) {
    if (json_integer_value(few) == (json_int_t)number + 1) trial->metrics.state[metric] = METRIC_FEW;
  }
}

static void take_metrics(struct trial_list *list, size_t first, const json_t *document) {
  size_t i;
  json_t *row;
  json_array_foreach(json_object_get(document, "metrics"), i, row) {
    const char *name = text_of(row, "name");
    size_t metric = metric_find(name, strlen(name));
    for (size_t j = first; metric != METRIC_NONE && j < list->count; j++)
      take_values(&list->trial[j], metric, row, j - first);
  }
}

static enum status add_listed_all(struct trial_list *list, const struct document *document, struct err *err) {
  size_t i, first = list->count;
  json_t *listed, *trials = json_object_get(document->root, "trials");
  if (json_integer_value(json_object_get(document->root, "schema_version")) != TRIALS_SCHEMA_VERSION) {
    return err_set(err, STATUS_USAGE, "%.300s: this muster reads trials documents of schema version %d only",
        document->name, TRIALS_SCHEMA_VERSION);
  }
  if (json_array_size(trials) == 0) return err_set(err, STATUS_USAGE, "%.300s lists no trials", document->name);
  json_array_foreach(trials, i, listed) {
    enum status status = add_listed(list, document->root, listed, err);
    if (status != STATUS_OK) return err_prefix(err, "%.200s, trial %zu", document->name, i + 1);
  }
  take_metrics(list, first, document->root);
  return STATUS_OK;
}

/* Reading it back whole is what refuses a damaged one. */
static enum status add_run(struct trial_list *list, const struct document *document, struct err *err) {
  struct report report;
  enum status status = report_from_document(document, &report, err);
  if (status != STATUS_OK) return status;
  report_free(&report);
  return trial_list_add(list, document->name, document->root, err);
}

enum status trial_list_add_document(struct trial_list *list, const struct document *document, struct err *err) {
  if (document->kind == DOCUMENT_RUN) return add_run(list, document, err);
  if (document->kind == DOCUMENT_TRIALS) return add_listed_all(list, document, err);
  return err_set(err, STATUS_USAGE,
      "%.300s is no run report (%s): name run reports, folders of them or trials documents", document->name,
      document_kind_name(document->kind));
}

static enum status add_file(struct trial_list *list, const char *path, bool only_runs, struct err *err) {
  struct document document;
  enum status status = document_read(path, &document, err);
  bool is_skipped = status == STATUS_OK && only_runs && document.kind != DOCUMENT_RUN;
  if (status == STATUS_OK && !is_skipped) status = trial_list_add_document(list, &document, err);
  document_free(&document);
  return status;
}

static int is_json(const struct dirent *entry) {
  size_t len = strlen(entry->d_name);
  return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

/* A pipe of that name would be waited for. */
static bool is_other_than_file(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static enum status add_folder(struct trial_list *list, const char *path, struct err *err) {
  struct dirent **entry = NULL;
  size_t before = list->count;
  int count = scandir(path, &entry, is_json, alphasort);
  if (count < 0) return err_set(err, STATUS_USAGE, "cannot read the folder %.300s: %s", path, strerror(errno));
  enum status status = STATUS_OK;
  for (int i = 0; i < count; i++) {
    char file[TRIAL_SOURCE_MAX];
    int written = snprintf(file, sizeof file, "%s%s%s", path, save_slash(path), entry[i]->d_name);
    bool fits = written > 0 && (size_t)written < sizeof file;
    if (status == STATUS_OK && !fits) status = err_set(err, STATUS_USAGE, "the path is too long: %.80s...", path);
    if (status == STATUS_OK && !is_other_than_file(file)) status = add_file(list, file, true, err);
    free(entry[i]);
  }
  free(entry);
  if (status != STATUS_OK || list->count > before) return status;
  return err_set(err, STATUS_USAGE, "the folder %.300s holds no run reports (*.json)", path);
}

enum status trial_list_read(struct trial_list *list, const char *path, struct err *err) {
  struct stat info;
  if (stat(path, &info) != 0) return err_set(err, STATUS_USAGE, "cannot read %.300s: %s", path, strerror(errno));
  return S_ISDIR(info.st_mode) ? add_folder(list, path, err) : add_file(list, path, false, err);
}

/* --- asking --- */

const char *trial_fact(const struct trial *trial, const char *name) {
  return text_of(trial->facts, name);
}

bool trial_is_valid(const struct trial *trial) {
  return strcmp(text_of(json_object_get(trial->facts, "verdict"), "result"), "valid") == 0;
}

const char *trial_reason(const struct trial *trial) {
  if (!trial->facts) return trial->error;
  const json_t *reasons = json_object_get(json_object_get(trial->facts, "verdict"), "reasons");
  const char *first = json_string_value(json_array_get(reasons, 0));
  return first ? first : "it gives no reason";
}

const json_t *trial_comparability(const struct trial *trial) {
  return json_object_get(trial->facts, "comparability");
}

size_t trial_values(const struct trial_list *list, size_t metric, double *values, size_t *few) {
  size_t count = 0;
  if (few) *few = 0;
  for (size_t i = 0; i < list->count; i++) {
    const struct metrics *metrics = &list->trial[i].metrics;
    if (!trial_is_valid(&list->trial[i]) || metrics->state[metric] == METRIC_ABSENT) continue;
    values[count++] = metrics->value[metric];
    if (few) *few += metrics->state[metric] == METRIC_FEW;
  }
  return count;
}

size_t trial_valid_count(const struct trial_list *list) {
  size_t count = 0;
  for (size_t i = 0; i < list->count; i++)
    count += trial_is_valid(&list->trial[i]);
  return count;
}
