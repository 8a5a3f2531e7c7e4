/* The verdict: may the figures of this run be used? (methodology.md, Verdict) What the server did badly (lost,
 * duplicate, rejected) is a result; what makes the measurement itself doubtful is a reason. */
#include "report/document.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void report_blame(struct report *report, enum blame blame, const char *format, ...) {
  report->verdict = VERDICT_INVALID;
  if (report->reasons >= REPORT_REASONS_MAX) return;
  va_list args;
  va_start(args, format);
  vsnprintf(report->reason[report->reasons], sizeof report->reason[0], format, args);
  va_end(args);
  report->blame[report->reasons++] = blame;
}

static uint64_t never_handed_out(const struct report *report) {
  return codes_count(&report->measure.publishes.unsent, CAUSE_GENERATOR_LATE);
}

/* Publishes that were still due at the end because the connection took no more: then the server held them up, and
 * their lateness is not the generator's, unless it did not even come to all that was due. */
static bool server_held_back(const struct report *report) {
  bool blocked = codes_count(&report->measure.publishes.unsent, CAUSE_BLOCKED) > 0;
  return blocked && never_handed_out(report) == 0;
}

static double per_second(uint64_t count, double seconds) {
  return seconds > 0 ? (double)count / seconds : 0;
}

/* A server that fell behind goes on answering in the grace: a rate over the phase counts what came within it. */
static uint64_t in_time(uint64_t all, uint64_t late) {
  return all > late ? all - late : 0;
}

/* A backlog is delivered while its receivers read it, and not while it is sent. */
static double deliveries_per_second(const struct report *report) {
  const struct tally *t = &report->measure;
  if (report->workload.backlog) return per_second(t->deliveries.observed, (double)report->backlog.read_ns / 1e9);
  return per_second(in_time(t->deliveries.observed, t->deliveries.late), report->measure_s);
}

static void derive(struct report *report) {
  const struct tally *t = &report->measure;
  uint64_t accepted = report->has_acks ? t->publishes.acked : t->publishes.attempted;
  report->fan_out = accepted ? (double)t->deliveries.observed / (double)accepted : 0;
  report->acks_per_second = per_second(in_time(t->publishes.acked, t->publishes.acked_late), report->measure_s);
  report->deliveries_per_second = deliveries_per_second(report);
  report->attempts_per_second = per_second(t->publishes.attempted, report->measure_s);
  report->connections_per_second = per_second(report_early(report), report->connect_s);
}

/* A phase that ended early has fewer messages, which rates over its true length would hide. */
static void judge_length(struct report *report) {
  double asked_s = (double)report->workload.duration_ns / 1e9;
  bool as_meant = report->ended_by == ENDED_BY_COUNT || report->ended_by == ENDED_BY_CAPACITY;
  if (report->interrupted) {
    report_blame(report, BLAME_RUN, "the run was interrupted after %.2f s of measuring", report->measure_s);
  } else if (!as_meant && report->measure_s > 0 && report->measure_s < asked_s * VERDICT_ACHIEVED_SHARE) {
    report_blame(
        report, BLAME_RUN, "the measure phase ended after %.2f s of the asked %.2f s", report->measure_s, asked_s);
  }
}

static void judge_identities(struct report *report) {
  struct err err = {0};
  if (tally_check(&report->measure, report->has_acks, &err) != STATUS_OK) {
    report_blame(report, BLAME_RUN, "measure phase: %.230s", err.text);
  }
  if (tally_check(&report->warmup, report->has_acks, &err) != STATUS_OK) {
    report_blame(report, BLAME_RUN, "warm-up phase: %.230s", err.text);
  }
  if (report_storm_check(&report->storm, &err) != STATUS_OK) report_blame(report, BLAME_RUN, "%.250s", err.text);
}

static void judge_connections(struct report *report) {
  const struct tally *t = &report->measure;
  uint32_t clients = workload_early(&report->workload);
  uint64_t established = report_early(report);
  if (established < clients && !report->workload.allow_partial) {
    report_blame(report, BLAME_SERVER,
        "only %llu of %u clients were established: mend the cause shown under errors, or accept it with "
        "--allow-partial",
        (unsigned long long)established, clients);
  }
  uint64_t dropped = codes_total(&t->connections.dropped);
  if (dropped) {
    report_blame(report, BLAME_SERVER, "%llu of %llu established connections were dropped during the run",
        (unsigned long long)dropped, (unsigned long long)t->connections.established);
  }
}

static void judge_generator(struct report *report) {
  uint32_t dead = 0, busiest = 0, gappiest = 0;
  for (uint32_t i = 0; i < report->workers; i++) {
    if (report->worker[i].died) dead++;
    if (report->worker[i].busy_share > report->worker[busiest].busy_share) busiest = i;
    if (report->worker[i].clock_gap_ns > report->worker[gappiest].clock_gap_ns) gappiest = i;
  }
  if (dead) {
    report_blame(report, BLAME_GENERATOR, "%u of %u generator workers died during the run", dead, report->workers);
  }

  const struct histogram *lag = report->clock[CLOCK_SCHEDULE_LAG];
  int64_t lag_p99_ns = lag && lag->count ? histogram_percentile(lag, 99) : 0;
  if (lag_p99_ns > VERDICT_LAG_P99_NS) {
    bool held_back = server_held_back(report);
    report_blame(report, held_back ? BLAME_SERVER : BLAME_GENERATOR, "schedule_lag p99 %.1f ms is above %.0f ms: %s",
        (double)lag_p99_ns / 1e6, VERDICT_LAG_P99_NS / 1e6,
        held_back ? "connections took no more (see unsent), so publishes had to wait; lower --rate"
                  : "the generator was late; lower --rate or add --workers");
  }
  if (report->workers == 0) return;
  double busy = report->worker[busiest].busy_share;
  if (busy > VERDICT_BUSY_SHARE) {
    report_blame(report, BLAME_GENERATOR,
        "worker %u was %.1f %% busy, above %.0f %%: the generator was at its limit; add --workers or cores", busiest,
        busy * 100, VERDICT_BUSY_SHARE * 100);
  }
  double gap_s = (double)report->worker[gappiest].clock_gap_ns / 1e9;
  if (report->measure_s > 0 && gap_s / report->measure_s > VERDICT_GAP_SHARE) {
    report_blame(report, BLAME_GENERATOR,
        "worker %u lost %.2f s of %.2f s to clock gaps (%.1f %%, above %.0f %%): the machine took the core away; use "
        "a quieter one",
        gappiest, gap_s, report->measure_s, gap_s / report->measure_s * 100, VERDICT_GAP_SHARE * 100);
  }
}

/* How many publishes the window owed. Poisson arrivals are random: what was scheduled counts, unless that itself is
 * more than 5 standard deviations short. */
static double owed(const struct report *report) {
  double asked = workload_owed(&report->workload, report->measure_s);
  if (report->workload.arrivals == ARRIVALS_CONSTANT) return asked;
  return fmax((double)report->measure.publishes.scheduled, asked - 5 * sqrt(asked));
}

/* A closed loop owes no rate; where a number was asked for, it owes that. */
static void judge_achieved(struct report *report) {
  const struct tally *t = &report->measure;
  uint64_t limit = workload_limit(&report->workload);
  if (workload_is_closed(&report->workload)) {
    if (limit > t->publishes.attempted) {
      report_blame(report, BLAME_SERVER,
          "%llu of the asked %llu publishes were made before the measure phase ended: raise --duration",
          (unsigned long long)t->publishes.attempted, (unsigned long long)limit);
    }
    return;
  }
  double attempted = (double)t->publishes.attempted + 1; /* one of slack for the edge of the window */
  if (report->workload.storm) attempted += (double)codes_count(&t->publishes.unsent, CAUSE_NOT_CONNECTED);
  double asked = report_asked_rate(report);
  if (attempted < owed(report) * VERDICT_ACHIEVED_SHARE) {
    bool server = never_handed_out(report) == 0;
    report_blame(report, server ? BLAME_SERVER : BLAME_GENERATOR,
        "achieved %.2f publishes/s of the asked %.2f (%.1f %%, below %.0f %%): %s", report->attempts_per_second, asked,
        report->attempts_per_second / asked * 100, VERDICT_ACHIEVED_SHARE * 100,
        server ? "see unsent and schedule_lag" : "the generator did not come to all of them; lower --rate");
  }
}

static void judge_publishes(struct report *report) {
  const struct tally *t = &report->measure;
  if (t->publishes.attempted == 0) {
    report_blame(report, BLAME_SERVER, "no publish was attempted in the measure phase: there is nothing to report on");
    return;
  }
  judge_achieved(report);
  if (report->has_acks && t->publishes.acked == 0) {
    report_blame(report, BLAME_SERVER, "none of %llu attempted publishes was acked: see the errors by code",
        (unsigned long long)t->publishes.attempted);
  }
}

static void judge_storm(struct report *report) {
  const struct report_storm *storm = &report->storm;
  if (report->workload.storm && storm->lost == 0) {
    report_blame(report, BLAME_RUN, "no client lost its connection: the storm did not come");
  }
  if (storm->returned < storm->lost) {
    report_blame(report, BLAME_SERVER, "%llu of %llu lost connections did not come back: see storm",
        (unsigned long long)(storm->lost - storm->returned), (unsigned long long)storm->lost);
  }
}

static void judge_backlog(struct report *report) {
  uint32_t receivers = report->workload.clients - report->workload.senders;
  if (!report->workload.backlog || report->workload.allow_partial || report->backlog.returned >= receivers) return;
  report_blame(report, BLAME_SERVER,
      "only %llu of %u receivers came back and read their backlog to its end: see the errors by code, or raise "
      "--catch-up-timeout",
      (unsigned long long)report->backlog.returned, receivers);
}

static void judge_clocks(struct report *report) {
  for (int i = 0; i < REPORT_CLOCKS; i++) {
    const struct histogram *h = report->clock[i];
    if (!h || h->negative == 0) continue;
    report_blame(report, BLAME_GENERATOR,
        "the %s clock ran backwards %llu times: the clocks of this machine cannot be trusted",
        report_clock_name((enum report_clock)i), (unsigned long long)h->negative);
    return;
  }
}

void report_judge(struct report *report) {
  report->reasons = 0;
  report->verdict = VERDICT_VALID;
  derive(report);
  judge_length(report);
  judge_identities(report);
  judge_connections(report);
  judge_generator(report);
  if (report->workload.topology != TOPOLOGY_HOLD) judge_publishes(report);
  judge_storm(report);
  judge_backlog(report);
  judge_clocks(report);
}
