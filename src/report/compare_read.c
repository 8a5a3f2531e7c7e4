/* A saved comparison, as far as its text needs it: the mirror of compare_write.c. */
#include "report/compare.h"
#include "report/json_reader.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define READ(node, fields, out) json_read_fields(node, fields, sizeof(fields) / sizeof((fields)[0]), out)

static size_t metric_at(const struct json_node *node, const char *key) {
  struct json_node name = json_member(node, key);
  const char *text = json_text_of(&name);
  size_t metric = metric_find(text, strlen(text));
  if (metric == METRIC_NONE) json_refuse(&name, "this muster knows no such metric");
  return metric == METRIC_NONE ? 0 : metric;
}

static void read_side(const struct json_node *row, const char *key, struct compare_side *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(DOUBLE, struct compare_side, median)},
      {JSON_FIELD(DOUBLE, struct compare_side, min)},
      {JSON_FIELD(DOUBLE, struct compare_side, max)},
  };
  struct json_node node = json_object_at(row, key);
  READ(&node, fields, out);
}

static void read_test(const struct json_node *row, struct compare_metric *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(DOUBLE, struct compare_metric, ratio)},
      {JSON_FIELD(DOUBLE, struct compare_metric, p_corrected)},
      {JSON_FIELD(BOOL, struct compare_metric, apart)},
  };
  READ(row, fields, out);
  read_side(row, "base", &out->base);
  read_side(row, "candidate", &out->candidate);
  struct json_node interval = json_array_at(row, "ratio_interval", 2);
  struct json_node low = json_item(&interval, 0), high = json_item(&interval, 1);
  out->interval = (struct interval){json_double_of(&low), json_double_of(&high)};
}

static void read_metric(const struct json_node *row, struct comparison *out) {
  static const char *const outcomes[] = {[COMPARE_NONE_SHOWN] = "none_shown",
      [COMPARE_FASTER] = "faster",
      [COMPARE_SLOWER] = "slower",
      [COMPARE_NOT_COMPARED] = "not_compared"};
  struct compare_metric *m = &out->metric[out->metrics++];
  struct json_node outcome = json_member(row, "outcome"), headline = json_member(row, "headline");
  struct json_node why = json_member(row, "why");
  m->metric = metric_at(row, "name");
  m->headline = json_bool_of(&headline);
  m->outcome = (enum compare_outcome)json_choice_of(&outcome, outcomes, sizeof outcomes / sizeof *outcomes);
  m->why = json_is_nothing(&why) ? NULL : json_text_of(&why);
  out->headlines += m->headline;
  if (m->outcome != COMPARE_NOT_COMPARED) read_test(row, m);
}

static void read_gate(const struct json_node *row, struct gate *asked, struct compare_gate *out) {
  static const char *const results[] = {[GATE_HELD] = "held", [GATE_BROKEN] = "broken", [GATE_UNDECIDED] = "undecided"};
  static const struct json_field fields[] = {
      {JSON_FIELD_OR_NULL("p_corrected", DOUBLE, struct compare_gate, p_corrected)},
      {JSON_FIELD_OR_NULL("why", CHARS, struct compare_gate, why)},
  };
  struct json_node result = json_member(row, "result"), text = json_member(row, "text");
  struct json_node change = json_member(row, "change");
  json_chars_of(&text, asked->text, sizeof asked->text);
  out->result = (enum gate_result)json_choice_of(&result, results, sizeof results / sizeof *results);
  READ(row, fields, out);
  if (!json_is_nothing(&change)) out->change = json_signed_of(&change);
}

static void read_gates(const struct json_node *root, struct compare_settings *settings, struct comparison *out) {
  struct json_node list = json_array_at(root, "gates", GATES_MAX);
  settings->gates.count = (uint32_t)json_length(&list);
  for (uint32_t i = 0; i < settings->gates.count; i++) {
    struct json_node item = json_item(&list, i);
    read_gate(&item, &settings->gates.gate[i], &out->gate[i]);
  }
}

static void read_differences(const struct json_node *root, struct comparison *out) {
  struct json_node list = json_array_at(root, "different", COMPARE_KEYS_MAX);
  out->differences = json_length(&list);
  for (size_t i = 0; i < out->differences; i++) {
    struct json_node item = json_item(&list, i), key = json_member(&item, "key");
    out->difference[i] = (struct compare_difference){
        json_text_of(&key), json_object_get(item.value, "base"), json_object_get(item.value, "candidate")};
  }
  struct json_node warnings = json_array_at(root, "warnings", COMPARE_WARNINGS_MAX);
  out->warnings = json_length(&warnings);
  for (size_t i = 0; i < out->warnings; i++) {
    struct json_node item = json_item(&warnings, i);
    json_chars_of(&item, out->warning[i], sizeof out->warning[i]);
  }
}

/* The first trial of a side stands for all of them. */
static void read_trials(const struct json_node *root, const char *key, struct trial_list *out) {
  struct json_node side = json_object_at(root, key), list = json_array_at(&side, "trials", TRIALS_MAX);
  struct json_node first = json_item(&list, 0), file = json_member(&first, "file");
  struct json_node started = json_member(&first, "started_at"), workload = json_object_at(&side, "workload");
  const char *started_at = json_text_of(&started);
  out->trial = calloc(1, sizeof *out->trial);
  json_t *facts = json_pack("{s:s, s:O?}", "started_at", started_at, "workload", workload.value);
  if (!out->trial || !facts) {
    json_decref(facts);
    json_refuse(&side, "out of memory");
    return;
  }
  json_chars_of(&file, out->trial->source, sizeof out->trial->source);
  out->trial->facts = facts;
  out->count = json_length(&list);
}

static void read_verdict(const struct json_node *root, struct comparison *out) {
  struct json_node verdict = json_object_at(root, "verdict"), needed = json_member(&verdict, "trials_needed");
  if (!json_is_nothing(&needed)) out->trials_needed = json_uint_of(&needed, TRIALS_MAX);
}

static void read_whole(const struct json_node *root, struct compare_settings *settings, struct trial_list *base,
    struct trial_list *candidate, struct comparison *out) {
  struct json_node version = json_member(root, "schema_version"), metrics = json_array_at(root, "metrics", METRICS);
  if (json_uint_of(&version, UINT32_MAX) != COMPARE_SCHEMA_VERSION) {
    json_refuse(&version, "this muster reads comparisons of version %d only", COMPARE_SCHEMA_VERSION);
  }
  read_verdict(root, out);
  read_gates(root, settings, out);
  read_differences(root, out);
  read_trials(root, "base", base);
  read_trials(root, "candidate", candidate);
  for (size_t i = 0; i < json_length(&metrics); i++) {
    struct json_node item = json_item(&metrics, i);
    read_metric(&item, out);
  }
}

static void free_trials(struct trial_list *list) {
  if (list->trial) json_decref(list->trial->facts);
  free(list->trial);
}

enum status compare_rewrite_text(FILE *file, const struct document *document, struct err *err) {
  struct arena texts = {0};
  struct json_reader reader = {.file = document->name, .texts = &texts, .err = err};
  struct json_node root = json_root(&reader, document->root);
  struct compare_settings settings = {0};
  struct trial_list base = {0}, candidate = {0};
  struct comparison *c = calloc(1, sizeof *c);
  if (!c) return err_set(err, STATUS_MEMORY, "out of memory for the comparison");
  *c = (struct comparison){.settings = &settings, .base = &base, .candidate = &candidate};
  read_whole(&root, &settings, &base, &candidate, c);
  enum status status = reader.status == STATUS_OK ? compare_write_text(file, c, err) : reader.status;
  free_trials(&base);
  free_trials(&candidate);
  free(c);
  arena_free(&texts);
  return status;
}
