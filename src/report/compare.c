#include "report/compare.h"

#include <stdarg.h>
#include <string.h>

#define SEED 1 /* of every bootstrap: the same trials give the same intervals */

/* --- what may be compared --- */

static bool is_allowed(const struct compare_settings *settings, const char *key) {
  for (size_t i = 0; i < settings->allowed_count; i++) {
    if (strcmp(settings->allowed[i], key) == 0) return true;
  }
  return false;
}

/* An object within is no key: its own keys are. */
static bool is_key(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return value && !json_is_object(value);
}

static bool has_key(const struct trial_list *list, const char *key) {
  for (size_t i = 0; i < list->count; i++) {
    const json_t *comparability = trial_comparability(&list->trial[i]);
    if (is_key(comparability, key) || is_key(json_object_get(comparability, "options"), key)) return true;
  }
  return false;
}

static void list_keys(char *out, size_t size, const json_t *object) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)object, key, value) {
    size_t used = strlen(out);
    if (!json_is_object(value)) snprintf(out + used, size - used, "%s%.40s", used ? " " : "", key);
  }
}

enum status compare_check_allowed(const struct trial_list *base, const struct trial_list *candidate,
    const struct compare_settings *settings, struct err *err) {
  char keys[480] = "";
  for (size_t i = 0; i < settings->allowed_count; i++) {
    const char *key = settings->allowed[i];
    if (has_key(base, key) || has_key(candidate, key)) continue;
    list_keys(keys, sizeof keys, trial_comparability(&base->trial[0]));
    list_keys(keys, sizeof keys, json_object_get(trial_comparability(&base->trial[0]), "options"));
    return err_set(err, STATUS_USAGE, "--allow-different %.40s: no such key; these runs have %s", key, keys);
  }
  return STATUS_OK;
}

static bool same(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
  return json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b) || (!a && !b);
}

static void show(char out[80], const json_t *value) {
  char *text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
  snprintf(out, 80, "%.79s", text ? text : "not there");
  free(text);
}

/* Calls for each key of either object whose values differ; an object within speaks for itself, by its own keys. */
static void each_difference(const json_t *a, const json_t *b,
    void (*found)(void *context, const char *key, const json_t *a, const json_t *b), void *context) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)a, key, value) {
    const json_t *other = json_object_get(b, key);
    if (json_is_object(value)) {
      each_difference(value, other, found, context);
    } else if (!same(value, other)) {
      found(context, key, value, other);
    }
  }
  json_object_foreach((json_t *)(uintptr_t)b, key, value) {
    if (json_object_get(a, key)) continue;
    if (json_is_object(value)) {
      each_difference(NULL, value, found, context);
    } else {
      found(context, key, NULL, value);
    }
  }
}

struct refusal {
  const struct compare_settings *settings; /* NULL: nothing may differ */
  struct comparison *comparison;           /* keeps what may differ and does */
  const char *left, *right;                /* what is compared, in words */
  char keys[300], first[400];
  size_t used;
};

static void keep_difference(struct comparison *c, const char *key, const json_t *a, const json_t *b) {
  if (c->differences < COMPARE_KEYS_MAX) c->difference[c->differences++] = (struct compare_difference){key, a, b};
}

static void note_difference(void *context, const char *key, const json_t *a, const json_t *b) {
  struct refusal *refusal = context;
  if (refusal->settings && is_allowed(refusal->settings, key)) {
    keep_difference(refusal->comparison, key, a, b);
    return;
  }
  if (refusal->used == 0) {
    char left[80], right[80];
    show(left, a);
    show(right, b);
    snprintf(refusal->first, sizeof refusal->first, "%.40s is %s in %s and %s in %s", key, left, refusal->left, right,
        refusal->right);
  }
  size_t room = sizeof refusal->keys - refusal->used;
  int written = snprintf(refusal->keys + refusal->used, room, "%s%.40s", refusal->used ? ", " : "", key);
  if (written > 0) refusal->used += (size_t)written < room ? (size_t)written : room - 1;
}

/* Within a side nothing may differ: one median over two kinds of runs means nothing. */
static enum status check_side(const struct trial_list *list, const char *side, struct err *err) {
  for (size_t i = 1; i < list->count; i++) {
    struct refusal refusal = {.left = list->trial[0].source, .right = list->trial[i].source};
    each_difference(
        trial_comparability(&list->trial[0]), trial_comparability(&list->trial[i]), note_difference, &refusal);
    if (refusal.used == 0) continue;
    return err_set(
        err, STATUS_USAGE, "not compared: the runs of the %s differ among themselves: %s", side, refusal.first);
  }
  return STATUS_OK;
}

static enum status check_comparability(struct comparison *c, struct err *err) {
  struct refusal refusal = {.settings = c->settings, .comparison = c, .left = "the base", .right = "the candidate"};
  enum status status = check_side(c->base, "base", err);
  if (status == STATUS_OK) status = check_side(c->candidate, "candidate", err);
  if (status != STATUS_OK) return status;
  each_difference(
      trial_comparability(&c->base->trial[0]), trial_comparability(&c->candidate->trial[0]), note_difference, &refusal);
  if (refusal.used == 0) return STATUS_OK;
  return err_set(err, STATUS_USAGE,
      "not comparable: %s (differing: %s): make them equal, or accept each with --allow-different KEY", refusal.first,
      refusal.keys);
}

static enum status check_valid(const struct trial_list *list, const char *side, struct err *err) {
  if (list->count == 0) return err_set(err, STATUS_USAGE, "the %s has no trials", side);
  for (size_t i = 0; i < list->count; i++) {
    if (trial_is_valid(&list->trial[i])) continue;
    return err_set(err, STATUS_USAGE, "not compared: trial %zu of the %s is invalid (%.120s): %.250s", i + 1, side,
        list->trial[i].source[0] ? list->trial[i].source : "no report", trial_reason(&list->trial[i]));
  }
  return STATUS_OK;
}

/* Every run counts once. */
static enum status check_runs(const struct comparison *c, struct err *err) {
  size_t all = c->base->count + c->candidate->count;
  for (size_t i = 0; i < all; i++) {
    const struct trial *a = i < c->base->count ? &c->base->trial[i] : &c->candidate->trial[i - c->base->count];
    for (size_t j = i + 1; j < all; j++) {
      const struct trial *b = j < c->base->count ? &c->base->trial[j] : &c->candidate->trial[j - c->base->count];
      if (strcmp(trial_fact(a, "run_id"), trial_fact(b, "run_id")) != 0) continue;
      return err_set(err, STATUS_USAGE, "not compared: run %.40s is there twice (%.150s and %.150s): name each once",
          trial_fact(a, "run_id"), a->source, b->source);
    }
  }
  return STATUS_OK;
}

/* --- what does not forbid a comparison, but belongs to it --- */

static void warn(struct comparison *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void warn(struct comparison *c, const char *format, ...) {
  if (c->warnings == COMPARE_WARNINGS_MAX) return;
  va_list args;
  va_start(args, format);
  vsnprintf(c->warning[c->warnings], sizeof c->warning[0], format, args);
  va_end(args);
  for (size_t i = 0; i < c->warnings; i++) {
    if (strcmp(c->warning[i], c->warning[c->warnings]) == 0) return;
  }
  c->warnings++;
}

struct warning {
  struct comparison *comparison;
  const char *what;
};

static void warn_difference(void *context, const char *key, const json_t *a, const json_t *b) {
  struct warning *warning = context;
  char left[80], right[80];
  show(left, a);
  show(right, b);
  warn(warning->comparison, "%s differs: %.40s %s | %s", warning->what, key, left, right);
}

static json_t *members(const json_t *object, const char *const *names, size_t count) {
  json_t *out = json_object();
  for (size_t i = 0; i < count; i++)
    json_object_set(out, names[i], json_object_get(object, names[i]));
  return out;
}

static void warn_of_members(
    struct comparison *c, const char *what, const char *fact, const char *const *names, size_t count) {
  struct warning warning = {c, what};
  json_t *a = members(json_object_get(c->base->trial[0].facts, fact), names, count);
  json_t *b = members(json_object_get(c->candidate->trial[0].facts, fact), names, count);
  each_difference(a, b, warn_difference, &warning);
  json_decref(a);
  json_decref(b);
}

static void warn_of_environments(struct comparison *c) {
  struct warning warning = {c, "the environment"};
  const struct trial_list *sides[] = {c->base, c->candidate};
  const json_t *first = json_object_get(c->base->trial[0].facts, "environment");
  for (size_t side = 0; side < 2; side++) {
    for (size_t i = 0; i < sides[side]->count; i++)
      each_difference(first, json_object_get(sides[side]->trial[i].facts, "environment"), warn_difference, &warning);
  }
}

static bool knows_persistence(const struct trial_list *side) {
  const char *text = json_string_value(json_object_get(trial_comparability(&side->trial[0]), "persistence"));
  return text && strcmp(text, "unspecified") != 0 && strcmp(text, "unknown") != 0;
}

/* Two texts that say nothing are equal, and two brokers are not by that. Of one side alone it is a difference. */
static void warn_of_persistence(struct comparison *c) {
  if (knows_persistence(c->base) || knows_persistence(c->candidate)) return;
  warn(c, "what the servers keep and when it is on disk is not known of either side: say it with --database when you "
          "run them, so that it can be compared");
}

static void collect_warnings(struct comparison *c) {
  static const char *const lengths[] = {"warmup_s", "duration_s", "workers", "obfuscate", "environment_label"};
  static const char *const versions[] = {"version", "commit", "dirty"};
  static const char *const server[] = {"server_version", "embedded"};
  warn_of_environments(c);
  warn_of_persistence(c);
  warn_of_members(c, "the workload", "workload", lengths, sizeof lengths / sizeof *lengths);
  warn_of_members(c, "muster itself", "muster", versions, sizeof versions / sizeof *versions);
  warn_of_members(c, "the server", "target", server, sizeof server / sizeof *server);
}

/* --- the metrics --- */

static void sum_up(const double *values, size_t count, struct compare_side *out) {
  *out = (struct compare_side){count, statistics_median(values, count), values[0], values[0]};
  for (size_t i = 1; i < count; i++) {
    if (values[i] < out->min) out->min = values[i];
    if (values[i] > out->max) out->max = values[i];
  }
}

static void test_metric(const struct comparison *c, struct compare_metric *m) {
  double base[TRIALS_MAX], candidate[TRIALS_MAX];
  size_t few_base, few_candidate;
  size_t n = trial_values(c->base, m->metric, base, &few_base);
  size_t k = trial_values(c->candidate, m->metric, candidate, &few_candidate);
  m->outcome = COMPARE_NOT_COMPARED;
  if (n < c->base->count || k < c->candidate->count) {
    m->why = "not every trial has it";
    return;
  }
  if (few_base || few_candidate) {
    m->why = "too few samples in a trial";
    return;
  }
  sum_up(base, n, &m->base);
  sum_up(candidate, k, &m->candidate);
  if (m->base.min <= 0 || m->candidate.min <= 0) {
    m->why = "a value is 0 or below, which has no ratio";
    return;
  }
  struct mann_whitney test = statistics_mann_whitney(base, n, candidate, k);
  m->ratio = m->candidate.median / m->base.median;
  m->interval = statistics_ratio_interval(base, n, candidate, k, SEED);
  m->p = test.p;
  m->exact = test.exact;
  m->apart = m->base.max < m->candidate.min || m->candidate.max < m->base.min;
  m->outcome = COMPARE_NONE_SHOWN;
}

static void add_metric(struct comparison *c, size_t metric, bool headline) {
  struct compare_metric *m = &c->metric[c->metrics];
  *m = (struct compare_metric){.metric = metric, .headline = headline};
  test_metric(c, m);
  /* A headline metric that cannot be compared takes no place; it comes again among the others. */
  if (headline && m->outcome == COMPARE_NOT_COMPARED) return;
  c->metrics++;
  c->headlines += headline;
}

static bool has_metric(const struct comparison *c, size_t metric) {
  for (size_t i = 0; i < c->metrics; i++) {
    if (c->metric[i].metric == metric) return true;
  }
  return false;
}

static bool any_trial_has(const struct trial_list *list, size_t metric) {
  for (size_t i = 0; i < list->count; i++) {
    if (list->trial[i].metrics.state[metric] != METRIC_ABSENT) return true;
  }
  return false;
}

static void collect_metrics(struct comparison *c) {
  bool closed = json_is_true(json_object_get(trial_comparability(&c->base->trial[0]), "closed_loop"));
  for (const size_t *metric = metrics_headline(closed); *metric != METRIC_NONE; metric++) {
    if (c->headlines < COMPARE_HEADLINE_MAX) add_metric(c, *metric, true);
  }
  bool traffic = c->headlines > 0;
  for (const size_t *metric = metrics_of_connecting(); !traffic && *metric != METRIC_NONE; metric++)
    add_metric(c, *metric, true);
  for (size_t metric = 0; metric < METRICS; metric++) {
    bool is_there = any_trial_has(c->base, metric) || any_trial_has(c->candidate, metric);
    if (is_there && !has_metric(c, metric)) add_metric(c, metric, false);
  }
}

/* Corrects the p of one family and gives each of its metrics its word. */
static void judge_family(struct comparison *c, bool headline) {
  double p[METRICS] = {0}, corrected[METRICS];
  size_t row[METRICS], count = 0;
  for (size_t i = 0; i < c->metrics; i++) {
    if (c->metric[i].headline != headline || c->metric[i].outcome == COMPARE_NOT_COMPARED) continue;
    p[count] = c->metric[i].p;
    row[count++] = i;
  }
  statistics_holm(p, count, corrected);
  for (size_t i = 0; i < count; i++) {
    struct compare_metric *m = &c->metric[row[i]];
    double change = m->ratio - 1;
    m->p_corrected = corrected[i];
    if (corrected[i] > COMPARE_ALPHA) continue;
    if (change < COMPARE_LEAST_CHANGE && change > -COMPARE_LEAST_CHANGE) continue;
    m->outcome = (change > 0) == metric_is_clock(m->metric) ? COMPARE_SLOWER : COMPARE_FASTER;
  }
}

/* The least number of trials a side with which Holm's first step can be passed. */
static size_t trials_for(size_t tests) {
  size_t n = 1;
  while (n < TRIALS_MAX && statistics_least_p(n, n) * (double)tests > COMPARE_ALPHA)
    n++;
  return n;
}

/* --- gates --- */

static const struct compare_metric *metric_of(const struct comparison *c, size_t metric) {
  for (size_t i = 0; i < c->metrics; i++) {
    if (c->metric[i].metric == metric) return &c->metric[i];
  }
  return NULL;
}

static void judge_gates(struct comparison *c) {
  const struct gate_list *gates = &c->settings->gates;
  double p[GATES_MAX] = {0}, corrected[GATES_MAX];
  double least = statistics_least_p(c->base->count, c->candidate->count) * gates->count;
  for (uint32_t i = 0; i < gates->count; i++) {
    const struct compare_metric *m = metric_of(c, gates->gate[i].metric);
    p[i] = m && !m->why ? m->p : 1;
  }
  statistics_holm(p, gates->count, corrected);
  for (uint32_t i = 0; i < gates->count; i++) {
    const struct compare_metric *m = metric_of(c, gates->gate[i].metric);
    struct compare_gate *out = &c->gate[i];
    double limit = gates->gate[i].change;
    *out = (struct compare_gate){.result = GATE_UNDECIDED};
    if (!m || m->why) {
      snprintf(out->why, sizeof out->why, "%s", m ? m->why : "no trial has it");
    } else if (least > COMPARE_ALPHA) {
      snprintf(out->why, sizeof out->why, "%zu + %zu trials can show nothing with %u gate%s: %zu + %zu can",
          c->base->count, c->candidate->count, gates->count, gates->count == 1 ? "" : "s", trials_for(gates->count),
          trials_for(gates->count));
    } else {
      out->change = m->ratio - 1;
      out->p_corrected = corrected[i];
      bool beyond = limit > 0 ? out->change >= limit : out->change <= limit;
      out->result = beyond && corrected[i] <= COMPARE_ALPHA ? GATE_BROKEN : GATE_HELD;
    }
  }
}

enum status compare_trials(const struct trial_list *base, const struct trial_list *candidate,
    const struct compare_settings *settings, struct comparison *out, struct err *err) {
  *out = (struct comparison){.settings = settings, .base = base, .candidate = candidate};
  enum status status = check_valid(base, "base", err);
  if (status == STATUS_OK) status = check_valid(candidate, "candidate", err);
  if (status == STATUS_OK) status = check_runs(out, err);
  if (status == STATUS_OK) status = check_comparability(out, err);
  if (status != STATUS_OK) return status;
  collect_warnings(out);
  collect_metrics(out);
  judge_family(out, true);
  judge_family(out, false);
  judge_gates(out);
  bool enough = statistics_least_p(base->count, candidate->count) * (double)out->headlines <= COMPARE_ALPHA;
  out->trials_needed = enough ? 0 : trials_for(out->headlines);
  return STATUS_OK;
}

enum compare_verdict compare_verdict_of(const struct comparison *c) {
  bool faster = false, slower = false;
  for (size_t i = 0; i < c->headlines; i++) {
    faster = faster || c->metric[i].outcome == COMPARE_FASTER;
    slower = slower || c->metric[i].outcome == COMPARE_SLOWER;
  }
  if (faster && slower) return VERDICT_MIXED;
  return faster ? VERDICT_FASTER : slower ? VERDICT_SLOWER : VERDICT_NONE_SHOWN;
}

int compare_exit_code(const struct comparison *c) {
  int code = 0;
  for (uint32_t i = 0; i < c->settings->gates.count; i++) {
    if (c->gate[i].result == GATE_UNDECIDED) return 3;
    if (c->gate[i].result == GATE_BROKEN) code = 1;
  }
  return code;
}
