#include "load/find.h"

#include "base/clock.h"
#include "base/rng.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SAMPLES_MARGIN 1.05
#define LENGTH_MAX_NS (600 * NS_PER_SEC)

/* --- lengths --- */

/* Values per second that a clock of published messages gets at the least: one a publish. */
static double samples_needed(const struct slo_list *objectives) {
  double most = 0;
  for (uint32_t i = 0; objectives && i < objectives->count; i++) {
    const struct slo *slo = &objectives->slo[i];
    bool per_connection = slo->kind == SLO_CLOCK && slo->clock <= CLOCK_CONNECT_PROTOCOL;
    double needed = per_connection ? 0 : slo_samples_needed(slo);
    if (needed > most) most = needed;
  }
  return most;
}

static double rate_of(const struct find_settings *settings, double load) {
  return settings->vary == FIND_RATE ? load : settings->workload->rate_per_sec;
}

uint64_t find_length_ns(const struct find_settings *settings, double load, bool full_length) {
  uint64_t asked_ns = full_length ? settings->full_ns : settings->short_ns;
  double rate = rate_of(settings, load);
  if (rate <= 0) return asked_ns;
  double needed_ns = samples_needed(settings->objectives) / rate * SAMPLES_MARGIN * 1e9;
  if (needed_ns > 1e18) return UINT64_MAX;
  return needed_ns > (double)asked_ns ? (uint64_t)needed_ns : asked_ns;
}

static enum status check_lengths(const struct find_settings *settings, struct err *err) {
  uint64_t length_ns = find_length_ns(settings, settings->search.from, true);
  if (length_ns <= LENGTH_MAX_NS || length_ns == settings->full_ns) return STATUS_OK;
  return err_set(err, STATUS_USAGE,
      "at %g publishes/s a step would have to last %.0f s to have enough values for every percentile of --slo: start "
      "higher or ask for a lower percentile",
      rate_of(settings, settings->search.from), (double)length_ns / 1e9);
}

static bool one_a_publish(enum report_clock clock) {
  return clock == CLOCK_ACK || clock == CLOCK_ACK_SERVICE || clock == CLOCK_FANOUT_FIRST ||
         clock == CLOCK_FANOUT_COMPLETE || clock == CLOCK_BROADCAST_RESULT || clock == CLOCK_SCHEDULE_LAG;
}

/* Where a number of publishes ends each step, no length can make up for too few of them. */
static enum status check_count(const struct find_settings *settings, struct err *err) {
  uint64_t limit = workload_limit(settings->workload);
  for (uint32_t i = 0; limit > 0 && settings->objectives && i < settings->objectives->count; i++) {
    const struct slo *slo = &settings->objectives->slo[i];
    double needed = slo->kind == SLO_CLOCK && one_a_publish(slo->clock) ? slo_samples_needed(slo) : 0;
    if (needed <= (double)limit) continue;
    return err_set(err, STATUS_USAGE,
        "%.80s needs %.0f values, but each step ends after %" PRIu64 " publishes: raise --count (--sample-size) or ask "
        "for a lower percentile",
        slo->text, needed, limit);
  }
  return STATUS_OK;
}

/* --- judging --- */

static const char *blamed(const struct report *report, enum blame blame) {
  for (uint32_t i = 0; i < report->reasons; i++) {
    if (report->blame[i] == blame) return report->reason[i];
  }
  return NULL;
}

static const struct report_objective *broken_objective(const struct report *report) {
  for (uint32_t i = 0; i < report->objectives; i++) {
    if (report->objective[i].evaluable && !report->objective[i].held) return &report->objective[i];
  }
  return NULL;
}

static enum search_outcome because(char why[256], const char *text, enum search_outcome outcome) {
  snprintf(why, 256, "%s", text);
  return outcome;
}

static void objective_text(char why[256], const struct report_objective *objective) {
  double value = objective->measured;
  if (strcmp(objective->unit, "ns") == 0) {
    snprintf(why, 256, "%s: %.3g ms", objective->text, value / 1e6);
  } else if (strcmp(objective->unit, "share") == 0) {
    snprintf(why, 256, "%s: %.4g %%", objective->text, value * 100);
  } else {
    snprintf(why, 256, "%s: %.10g", objective->text, value);
  }
}

/* Somebody else had the cores for a while, which may be all that broke the step. */
static enum search_outcome doubt(const struct report *report, char why[256]) {
  uint64_t gap_ns = 0;
  for (uint32_t i = 0; i < report->workers; i++) {
    if (report->worker[i].clock_gap_ns > gap_ns) gap_ns = report->worker[i].clock_gap_ns;
  }
  double share = report->measure_s > 0 ? (double)gap_ns / 1e9 / report->measure_s : 0;
  if (share <= FIND_DOUBT_GAP_SHARE) return SEARCH_BROKEN;
  size_t len = strlen(why);
  snprintf(why + len, 256 - len, " (doubtful: %.1f %% clock gaps)", share * 100);
  return SEARCH_DOUBTFUL;
}

static enum search_outcome judge_server(const struct report *report, char why[256]) {
  const char *reason = blamed(report, BLAME_GENERATOR);
  if (reason) return because(why, reason, SEARCH_INVALID);
  const struct report_objective *objective = broken_objective(report);
  if (objective) {
    objective_text(why, objective);
    return doubt(report, why);
  }
  reason = blamed(report, BLAME_SERVER);
  if (reason) {
    because(why, reason, SEARCH_BROKEN);
    return doubt(report, why);
  }
  if (report->reasons) return because(why, report->reason[0], SEARCH_INVALID);
  return because(why, "", SEARCH_HELD);
}

static enum search_outcome judge_generator(const struct report *report, char why[256]) {
  const char *reason = blamed(report, BLAME_GENERATOR);
  if (reason) return because(why, reason, SEARCH_BROKEN);
  if (report->reasons) return because(why, report->reason[0], SEARCH_INVALID);
  return because(why, "", SEARCH_HELD);
}

enum search_outcome find_judge(enum find_subject subject, const struct report *report, char why[256]) {
  return subject == FIND_SERVER ? judge_server(report, why) : judge_generator(report, why);
}

/* --- steps --- */

static struct find_clock clock_of(const struct report *report, enum report_clock clock) {
  const struct histogram *h = report->clock[clock];
  if (!h || h->count == 0) return (struct find_clock){0};
  return (struct find_clock){
      .known = true,
      .few = histogram_beyond(h, 99) < FEW_SAMPLES,
      .p50_ns = histogram_percentile(h, 50),
      .p99_ns = histogram_percentile(h, 99),
  };
}

static void fill_step(struct find_step *step, const struct report *report) {
  const struct tally *tally = &report->measure;
  step->has_report = true;
  memcpy(step->run_id, report->run_id, sizeof step->run_id);
  step->length_s = report->measure_s;
  step->attempts_per_second = report->attempts_per_second;
  step->acks_per_second = report->acks_per_second;
  step->deliveries_per_second = report->deliveries_per_second;
  step->rejected = codes_total(&tally->publishes.rejected);
  step->timed_out = codes_total(&tally->publishes.timed_out);
  step->unsent = codes_total(&tally->publishes.unsent);
  step->lost = tally->deliveries.lost;
  step->dropped = codes_total(&tally->connections.dropped);
  step->ack = clock_of(report, CLOCK_ACK);
  step->delivery = clock_of(report, CLOCK_DELIVERY);
  step->schedule_lag = clock_of(report, CLOCK_SCHEDULE_LAG);
  for (uint32_t i = 0; i < report->workers; i++)
    step->busy_share = fmax(step->busy_share, report->worker[i].busy_share);
  memcpy(step->objective, report->objective, sizeof step->objective);
  step->objectives = report->objectives;
}

static void fill_head(struct find *find, const struct report *report) {
  if (find->started_at[0]) return;
  memcpy(find->started_at, report->started_at, sizeof find->started_at);
  find->environment = report->environment;
  find->target = report->target;
  find->has_acks = report->has_acks;
}

static struct workload workload_at(const struct find_settings *settings, const struct search_step *step) {
  struct workload workload = *settings->workload;
  workload.duration_ns = find_length_ns(settings, step->load, step->full_length);
  if (settings->vary == FIND_RATE) {
    workload.rate_per_sec = step->load;
  } else {
    if (workload.senders == workload.clients) workload.senders = (uint32_t)step->load;
    workload.clients = (uint32_t)step->load;
    if (workload.in_flight > 0) workload_share_in_flight(&workload);
  }
  return workload;
}

/* A run that could not even start says that the server is gone, or nothing at all. */
static enum search_outcome judge_error(enum find_subject subject, const struct err *err) {
  bool server = err->status == STATUS_UNREACHABLE || err->status == STATUS_PROTOCOL || err->status == STATUS_TIMEOUT;
  return subject == FIND_SERVER && server ? SEARCH_BROKEN : SEARCH_INVALID;
}

/* Runs at a load. An error is the search's only when nothing was measured before; else the step says it. */
static enum status run_at(struct find *find, const struct search_step *asked, struct find_step *step, struct err *err) {
  const struct find_settings *settings = &find->settings;
  struct workload workload = workload_at(settings, asked);
  struct report report;
  *step = (struct find_step){
      .load = asked->load,
      .full_length = asked->full_length,
      .rate_per_sec = workload.rate_per_sec,
      .clients = workload.clients,
  };
  enum status status = settings->run(settings->context, &workload, &report, err);
  if (status == STATUS_INTERRUPTED) {
    find->interrupted = true;
    return status;
  }
  if (status != STATUS_OK) {
    if (!find->started_at[0]) return status;
    step->outcome = judge_error(settings->subject, err);
    snprintf(step->why, sizeof step->why, "%.250s", err->text);
  } else {
    fill_head(find, &report);
    fill_step(step, &report);
    step->outcome = find_judge(settings->subject, &report, step->why);
    step->generator_limited = blamed(&report, BLAME_GENERATOR) != NULL;
    find->interrupted = report.interrupted;
    report_free(&report);
  }
  return STATUS_OK;
}

static void say_ended(const struct find *find, const struct find_step *step) {
  if (find->settings.ended) find->settings.ended(find->settings.context, step);
}

static enum status take_step(struct find *find, const struct search_step *asked, struct err *err) {
  struct find_step *step = &find->step[find->steps];
  enum status status = run_at(find, asked, step, err);
  if (status != STATUS_OK) return status == STATUS_INTERRUPTED && find->steps ? STATUS_OK : status;
  if (!find->interrupted) step->outcome = search_feed(&find->search, step->outcome);
  if (step->outcome == SEARCH_DOUBTFUL) step->outcome = SEARCH_INVALID;
  find->steps++;
  say_ended(find, step);
  return STATUS_OK;
}

/* How the subject does where it is not at its limit, which is where one would run it. */
static void take_shares(struct find *find) {
  static const double shares[FIND_SHARES] = {0.5, 0.9};
  const struct search *search = &find->search;
  for (int i = 0; i < FIND_SHARES && search->held > 0 && !find->interrupted; i++) {
    struct search_step asked = {.load = search->held * shares[i], .full_length = true};
    if (search->settings.whole_numbers) asked.load = floor(asked.load);
    if (asked.load <= 0) continue;
    struct err err = {0};
    struct find_step *step = &find->share[find->shares];
    if (run_at(find, &asked, step, &err) != STATUS_OK || find->interrupted) continue;
    if (step->outcome == SEARCH_DOUBTFUL) step->outcome = SEARCH_INVALID;
    find->shares++;
    say_ended(find, step);
  }
}

enum status find_run(struct find *find, const struct find_settings *settings, struct err *err) {
  *find = (struct find){.settings = *settings};
  uint64_t id;
  random_bytes(&id, sizeof id);
  snprintf(find->id, sizeof find->id, "find-%016" PRIx64, id);
  if (settings->search.tests_max > FIND_TESTS_MAX) {
    return err_set(err, STATUS_USAGE, "at most %d tests in one search", FIND_TESTS_MAX);
  }
  enum status status = search_start(&find->search, &settings->search, err);
  if (status == STATUS_OK) status = check_lengths(settings, err);
  if (status == STATUS_OK) status = check_count(settings, err);
  struct search_step step;
  while (status == STATUS_OK && !find->interrupted && search_next(&find->search, &step))
    status = take_step(find, &step, err);
  bool interrupted = find->interrupted;
  if (status == STATUS_OK && settings->takes_shares && find_exit_code(find) == 0) take_shares(find);
  find->interrupted = interrupted; /* the answer was there before */
  return status;
}

int find_exit_code(const struct find *find) {
  if (find->interrupted) return 3;
  switch (find->search.end) {
  case SEARCH_FOUND:
  case SEARCH_ALL_HELD:
    return 0;
  case SEARCH_NONE_HELD:
    return 1;
  default:
    return 3;
  }
}
