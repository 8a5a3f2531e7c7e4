#include "load/merge.h"

#include <stdlib.h>
#include <string.h>

void merge_second(
    const struct plan *plan, uint32_t second, struct histogram clock[SERIES_CLOCKS], struct report_second *out) {
  struct report_second_clock *const summaries[SERIES_CLOCKS] = {
      [SERIES_ACK] = &out->ack, [SERIES_DELIVERY] = &out->delivery, [SERIES_LAG] = &out->schedule_lag};
  for (int i = 0; i < SERIES_CLOCKS; i++) {
    struct histogram *h = &clock[i];
    histogram_reset(h);
    for (uint32_t w = 0; w < plan->workers; w++)
      series_take(plan->shared.series[w], second, (enum series_clock)i, h);
    if (h->count == 0) continue;
    *summaries[i] =
        (struct report_second_clock){h->count, histogram_percentile(h, 50), histogram_percentile(h, 99), h->max_ns};
  }
}

void merge_counts(const struct plan *plan, uint32_t second, struct report_second *out) {
  for (uint32_t w = 0; w < plan->workers; w++) {
    const uint64_t *row = plan->shared.series[w]->rows[second];
    out->scheduled += peek(&row[SERIES_SCHEDULED]);
    out->attempted += peek(&row[SERIES_ATTEMPTED]);
    out->acked += peek(&row[SERIES_ACKED]);
    out->rejected += peek(&row[SERIES_REJECTED]);
    out->delivered += peek(&row[SERIES_DELIVERED]);
    out->established += peek(&row[SERIES_ESTABLISHED]);
    out->dropped += peek(&row[SERIES_DROPPED]);
  }
}

/* An interrupted run has fewer seconds than rows. */
static void merge_rows(const struct plan *plan, struct report *report) {
  for (uint32_t s = 0; s < report->seconds; s++)
    merge_counts(plan, s, &report->second[s]);
}

static bool clock_is_used(const struct plan *plan, enum report_clock clock) {
  switch (clock) {
  case CLOCK_CONNECT:
    return true;
  case CLOCK_CONNECT_TCP:
  case CLOCK_CONNECT_PROTOCOL:
    return plan->driver->connect == NULL;
  case CLOCK_CONNECT_TLS:
    return plan->run.tls != NULL;
  case CLOCK_RECOVER:
    return plan->workload->storm;
  case CLOCK_BACKLOG_FIRST:
  case CLOCK_BACKLOG_COMPLETE:
    return plan->workload->backlog;
  case CLOCK_ACK:
  case CLOCK_ACK_SERVICE:
    return plan->answer == ANSWER_ACK;
  case CLOCK_DELIVERY:
  case CLOCK_DELIVERY_SERVICE:
    return topology_plan(&plan->topology, 0).fan_out > 0 && !plan->workload->backlog;
  case CLOCK_BROADCAST_RESULT:
    return plan->answer == ANSWER_ACK && plan->topology.kind == TOPOLOGY_BROADCAST;
  case CLOCK_FANOUT_FIRST:
  case CLOCK_FANOUT_COMPLETE:
    return topology_plan(&plan->topology, 0).fan_out > 1;
  default:
    return plan->topology.kind != TOPOLOGY_HOLD;
  }
}

static enum status merge_clocks(const struct plan *plan, struct report *report, struct err *err) {
  for (int i = 0; i < REPORT_CLOCKS; i++) {
    if (!clock_is_used(plan, (enum report_clock)i)) continue;
    struct histogram *merged = malloc(sizeof(*merged));
    if (!merged) return err_set(err, STATUS_MEMORY, "out of memory for the report's histograms");
    histogram_reset(merged);
    int recorded = i == CLOCK_BROADCAST_RESULT ? CLOCK_ACK : i; /* the result frame is the ACK */
    for (uint32_t w = 0; w < plan->workers; w++)
      histogram_merge(merged, &plan->shared.area[w].clock[recorded]);
    report->clock[i] = merged;
  }
  return STATUS_OK;
}

static void charge_difference(uint64_t total, uint64_t accounted, struct codes *codes, enum cause cause) {
  if (total > accounted) codes_add(codes, cause, total - accounted);
}

/* A worker that died left things open, and may have died between two counters: the differences are charged to the
 * interruption, so that the identities hold and the loss shows. */
static void close_tally(struct tally *tally, bool has_acks) {
  charge_difference(tally->connections.attempted,
      tally->connections.established + codes_total(&tally->connections.failed), &tally->connections.failed,
      CAUSE_INTERRUPTED);
  charge_difference(tally->publishes.scheduled, tally->publishes.attempted + codes_total(&tally->publishes.unsent),
      &tally->publishes.unsent, CAUSE_INTERRUPTED);
  if (!has_acks) return;
  charge_difference(tally->publishes.attempted,
      tally->publishes.acked + codes_total(&tally->publishes.rejected) + codes_total(&tally->publishes.timed_out),
      &tally->publishes.timed_out, CAUSE_INTERRUPTED);
}

/* The same of those who were coming back. */
static void close_storm(struct report_storm *storm) {
  charge_difference(storm->attempts, storm->returned + codes_total(&storm->failed), &storm->failed, CAUSE_INTERRUPTED);
}

static void close_slots(const struct plan *plan, const bool *died) {
  uint32_t senders = plan->topology.senders;
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++) {
    struct ledger *ledger = plan->shared.ledger[phase];
    for (uint64_t slot = 0; slot < plan->schedule[phase].slots; slot++) {
      if (died[slot % senders % plan->workers] && ledger_pending(ledger, slot)) ledger_timed_out(ledger, slot);
    }
  }
}

static void merge_tallies(const struct plan *plan, const bool *died, struct report *report) {
  bool any_died = false;
  for (uint32_t w = 0; w < plan->workers; w++) {
    struct worker_area *area = &plan->shared.area[w];
    any_died |= died[w];
    for (int phase = 0; phase < TRAFFIC_PHASES; phase++) {
      if (died[w]) close_tally(&area->tally[phase], report->has_acks);
      tally_merge(phase == TRAFFIC_WARM_UP ? &report->warmup : &report->measure, &area->tally[phase]);
    }
  }
  if (any_died) close_slots(plan, died);
  ledger_settle(plan->shared.ledger[TRAFFIC_WARM_UP], report->has_acks, &report->warmup, NULL, NULL);
  ledger_settle(plan->shared.ledger[TRAFFIC_MEASURE], report->has_acks, &report->measure,
      report->clock[CLOCK_FANOUT_FIRST], report->clock[CLOCK_FANOUT_COMPLETE]);
}

static bool is_complete(const struct catch_up *receiver, const struct ledger_share *share) {
  return receiver->established_ns > 0 && share->expected > 0 && share->observed == share->expected;
}

/* A receiver that misses something has not reached the end of its backlog: its time would be one of a shorter one. */
static enum status merge_backlog(const struct plan *plan, struct report *report, struct err *err) {
  const struct catch_up *catch_up = plan->shared.catch_up;
  uint32_t senders = plan->topology.senders, receivers = plan->topology.clients - senders;
  if (!catch_up) return STATUS_OK;
  struct ledger_share *share = calloc(plan->topology.clients, sizeof(*share));
  if (!share) return err_set(err, STATUS_MEMORY, "out of memory for the report of the backlog");
  ledger_share_out(plan->shared.ledger[TRAFFIC_MEASURE], report->has_acks, share);
  uint64_t first_ns = UINT64_MAX, last_ns = 0;
  for (uint32_t i = 0; i < receivers; i++) {
    const struct catch_up *receiver = &catch_up[i];
    if (receiver->started_ns > 0 && receiver->started_ns < first_ns) first_ns = receiver->started_ns;
    if (receiver->last_ns > last_ns) last_ns = receiver->last_ns;
    report->backlog.returned += receiver->established_ns > 0;
    if (receiver->first_ns > 0) {
      histogram_record(report->clock[CLOCK_BACKLOG_FIRST], (int64_t)(receiver->first_ns - receiver->started_ns));
    }
    if (!is_complete(receiver, &share[senders + i])) continue;
    report->backlog.complete++;
    histogram_record(report->clock[CLOCK_BACKLOG_COMPLETE], (int64_t)(receiver->last_ns - receiver->started_ns));
  }
  report->backlog.read_ns = last_ns > first_ns ? last_ns - first_ns : 0;
  free(share);
  return STATUS_OK;
}

/* Operations that were used; names are the driver's. */
static enum status merge_operations(const struct plan *plan, struct report *report, struct err *err) {
  const struct operation_name *table = plan->driver->operations;
  if (plan->topology.kind != TOPOLOGY_SELF || !table) return STATUS_OK;
  report->operation = calloc(OPERATIONS_MAX, sizeof(*report->operation));
  report->refusals = calloc(1, sizeof(*report->refusals));
  if (!report->operation || !report->refusals) return err_set(err, STATUS_MEMORY, "out of memory for the report");
  for (uint32_t i = 0; table[i].name; i++) {
    struct operation_tally *merged = calloc(1, sizeof(*merged));
    if (!merged) return err_set(err, STATUS_MEMORY, "out of memory for the report's operations");
    for (uint32_t w = 0; w < plan->workers; w++)
      operation_tally_merge(merged, &plan->shared.area[w].operations.one[i]);
    if (merged->attempted == 0) {
      free(merged);
      continue;
    }
    report->operation[report->operations++] = (struct report_operation){table[i].name, table[i].item, merged};
  }
  for (uint32_t w = 0; w < plan->workers; w++) {
    const struct operations *operations = &plan->shared.area[w].operations;
    refusals_merge(report->refusals, &operations->refusals);
    report->retry_hints += operations->hints;
    report->retry_waited_ns += operations->waited_ns;
  }
  return STATUS_OK;
}

static enum status merge_workers(const struct plan *plan, const bool *died, struct report *report, struct err *err) {
  report->worker = calloc(plan->workers, sizeof(*report->worker));
  if (!report->worker) return err_set(err, STATUS_MEMORY, "out of memory for the report");
  report->workers = plan->workers;
  for (uint32_t w = 0; w < plan->workers; w++) {
    struct worker_area *area = &plan->shared.area[w];
    struct report_worker *out = &report->worker[w];
    const struct loop_stats *stats = &area->measured;
    uint64_t loop_ns = stats->busy_ns + stats->waited_ns;
    out->clients = area->clients;
    out->busy_share = loop_ns > 0 ? (double)stats->busy_ns / (double)loop_ns : 0;
    out->cpu_share = area->measured_ns > 0 ? (double)area->cpu_ns / (double)area->measured_ns : 0;
    out->clock_gaps = stats->gaps;
    out->clock_gap_ns = stats->gap_ns;
    out->longest_gap_ns = stats->longest_gap_ns;
    out->rss_bytes = area->rss_bytes;
    out->nice = area->nice;
    out->private_bytes = area->private_bytes;
    out->private_before_bytes = area->private_before_bytes;
    if (died[w]) close_storm(&area->storm);
    report_storm_merge(&report->storm, &area->storm);
    out->died = died[w];
    if (area->tls[0]) memcpy(report->target.tls, area->tls, sizeof(report->target.tls));
  }
  return STATUS_OK;
}

enum status merge_report(const struct plan *plan, const bool *died, struct report *report, struct err *err) {
  enum status status = merge_clocks(plan, report, err);
  if (status != STATUS_OK) return status;
  merge_rows(plan, report);
  merge_tallies(plan, died, report);
  status = merge_operations(plan, report, err);
  if (status == STATUS_OK) status = merge_backlog(plan, report, err);
  if (status != STATUS_OK) return status;
  return merge_workers(plan, died, report, err);
}
