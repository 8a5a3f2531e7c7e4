#include "report/document.h"

#include "build_facts.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *const clock_names[REPORT_CLOCKS] = {
    [CLOCK_CONNECT] = "connect",
    [CLOCK_CONNECT_TCP] = "connect_tcp",
    [CLOCK_CONNECT_TLS] = "connect_tls",
    [CLOCK_CONNECT_PROTOCOL] = "connect_protocol",
    [CLOCK_RECOVER] = "recover",
    [CLOCK_BACKLOG_FIRST] = "backlog_first",
    [CLOCK_BACKLOG_COMPLETE] = "backlog_complete",
    [CLOCK_ACK] = "ack",
    [CLOCK_ACK_SERVICE] = "ack_service",
    [CLOCK_DELIVERY] = "delivery",
    [CLOCK_DELIVERY_SERVICE] = "delivery_service",
    [CLOCK_FANOUT_FIRST] = "fanout_first",
    [CLOCK_FANOUT_COMPLETE] = "fanout_complete",
    [CLOCK_BROADCAST_RESULT] = "broadcast_result",
    [CLOCK_SCHEDULE_LAG] = "schedule_lag",
};

const char *report_clock_name(enum report_clock clock) {
  return clock_names[clock];
}

const char *report_end_name(enum report_end end) {
  static const char *const names[] = {"time", "count", "capacity", "interruption"};
  return names[end];
}

const char *observed_role_name(enum observed_role role) {
  static const char *const names[] = {"server", "generator", "other"};
  return names[role];
}

void report_observed_free(struct report_observed *observed) {
  free(observed->column);
  free(observed->value);
  observed->column = NULL;
  observed->value = NULL;
  observed->columns = 0;
  observed->rows = 0;
}

uint64_t report_early(const struct report *report) {
  uint64_t established = report->measure.connections.established, later = report->backlog.returned;
  return established > later ? established - later : 0;
}

double report_asked_rate(const struct report *report) {
  const struct workload *workload = &report->workload;
  if (workload_is_closed(workload)) return 0;
  double length_s = report->measure_s > 0 ? report->measure_s : (double)workload->duration_ns / 1e9;
  bool is_flat = workload->steps == 0 && workload->ramp_to_per_sec <= 0;
  if (is_flat || length_s <= 0) return workload_first_rate(workload);
  return workload_owed(workload, length_s) / length_s;
}

void report_storm_merge(struct report_storm *into, const struct report_storm *from) {
  into->lost += from->lost;
  into->attempts += from->attempts;
  into->returned += from->returned;
  codes_merge(&into->failed, &from->failed);
  bool earlier = from->first_lost_ns > 0 && (into->first_lost_ns == 0 || from->first_lost_ns < into->first_lost_ns);
  if (earlier) into->first_lost_ns = from->first_lost_ns;
  if (from->last_returned_ns > into->last_returned_ns) into->last_returned_ns = from->last_returned_ns;
}

enum status report_storm_check(const struct report_storm *storm, struct err *err) {
  uint64_t failed = codes_total(&storm->failed);
  if (storm->attempts != storm->returned + failed) {
    return err_set(err, STATUS_PROTOCOL,
        "accounting identity broken (a bug in muster): storm attempts %" PRIu64 " is not returned %" PRIu64
        " + failed %" PRIu64,
        storm->attempts, storm->returned, failed);
  }
  if (storm->returned <= storm->lost) return STATUS_OK;
  return err_set(err, STATUS_PROTOCOL,
      "accounting identity broken (a bug in muster): storm returned %" PRIu64 " is above lost %" PRIu64,
      storm->returned, storm->lost);
}

void report_free(struct report *report) {
  for (int i = 0; i < REPORT_CLOCKS; i++) {
    free(report->clock[i]);
    free(report->summary[i]);
    report->clock[i] = NULL;
    report->summary[i] = NULL;
  }
  for (uint32_t i = 0; i < report->observations; i++)
    report_observed_free(&report->observed[i]);
  for (uint32_t i = 0; i < report->operations; i++)
    free(report->operation[i].tally);
  free(report->operation);
  free(report->refusals);
  report->operation = NULL;
  report->refusals = NULL;
  report->operations = 0;
  free(report->observed);
  free(report->second);
  free(report->worker);
  report->second = NULL;
  report->worker = NULL;
  report->observed = NULL;
  report->observations = 0;
  report->seconds = 0;
  report->workers = 0;
  arena_free(&report->texts);
  report->code_name = NULL;
  report->code_names = 0;
}

bool report_latency(const struct report *report, enum report_clock clock, struct report_latency *out) {
  if (report->clock[clock]) {
    *out = report_latency_of(report->clock[clock]);
  } else if (report->summary[clock]) {
    *out = *report->summary[clock];
  } else {
    return false;
  }
  return true;
}

const char *report_code_text(const struct report *report, int32_t code) {
  for (uint32_t i = 0; i < report->code_names; i++) {
    if (report->code_name[i].code == code) return report->code_name[i].name;
  }
  if (code < 0) return cause_name(code);
  return report->code_text ? report->code_text(code) : NULL;
}

struct report_tool report_tool_of(const struct report *report) {
  if (report->tool.version[0]) return report->tool;
  return (struct report_tool){MUSTER_VERSION, MUSTER_COMMIT, MUSTER_DIRTY};
}

int report_exit_code(const struct report *report) {
  if (report->verdict != VERDICT_VALID) return 3;
  for (uint32_t i = 0; i < report->objectives; i++) {
    if (!report->objective[i].held) return 1;
  }
  return 0;
}
