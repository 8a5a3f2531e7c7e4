/* The text form of a report: for a person, at most 100 columns, the verdict last. */
#include "report/costs.h"
#include "report/document.h"
#include "report/layout.h"
#include "report/observed.h"
#include "report/operations.h"
#include "report/save.h"

#include <inttypes.h>
#include <string.h>

#define WORKER_ROWS 16

static void write_head(FILE *file, const struct report *r) {
  struct report_tool tool = report_tool_of(r);
  page_text(file, "muster", "%s (%s%s), run %s, %s", tool.version, tool.commit, tool.dirty ? ", modified" : "",
      r->run_id, r->started_at);
}

static void describe_groups(char *out, size_t size, const struct workload *l) {
  if (l->groups <= 1) {
    snprintf(out, size, "one group of %" PRIu32 " members, %" PRIu32 " of them send", l->clients, l->senders);
  } else if (l->shared_groups) {
    snprintf(out, size, "%" PRIu32 " groups of the same %" PRIu32 " members, %" PRIu32 " of them send to each in turn",
        l->groups, l->clients, l->senders);
  } else {
    snprintf(out, size, "%" PRIu32 " groups of %" PRIu32 " members, %" PRIu32 " of each send", l->groups,
        l->clients / l->groups, l->senders / l->groups);
  }
}

static void describe_population(char *out, size_t size, const struct workload *l) {
  switch (l->topology) {
  case TOPOLOGY_RING:
    snprintf(out, size, "%" PRIu32 " clients in a ring", l->clients);
    break;
  case TOPOLOGY_PAIRS:
    snprintf(out, size, "%" PRIu32 " clients in pairs", l->clients);
    break;
  case TOPOLOGY_STAR:
    snprintf(out, size, "%" PRIu32 " senders to %" PRIu32 " receivers in turn%s", l->senders, l->clients - l->senders,
        l->backlog ? ", who connect when all is sent" : "");
    break;
  case TOPOLOGY_QUEUE:
    snprintf(out, size, "%" PRIu32 " senders to %" PRIu32 " consumers of %s", l->senders, l->clients - l->senders,
        l->groups > 1 ? "queues in turn" : "one queue");
    break;
  case TOPOLOGY_GROUPS:
    describe_groups(out, size, l);
    break;
  case TOPOLOGY_ROOM:
    snprintf(out, size, "one chatroom of %" PRIu32 " members, %" PRIu32 " of them send", l->clients, l->senders);
    break;
  case TOPOLOGY_BROADCAST:
    snprintf(out, size, "%" PRIu32 " clients, %" PRIu32 " of them broadcast to all", l->clients, l->senders);
    break;
  case TOPOLOGY_ECHO:
    if (l->senders < l->clients) {
      snprintf(out, size, "%" PRIu32 " clients, %" PRIu32 " of them hear their own echoes", l->clients, l->senders);
    } else {
      snprintf(out, size, "%" PRIu32 " clients, each hears its own echo", l->clients);
    }
    break;
  case TOPOLOGY_SELF:
    snprintf(out, size, "%" PRIu32 " clients, each works on itself", l->clients);
    break;
  case TOPOLOGY_HOLD:
    snprintf(out, size, "%" PRIu32 " clients, held", l->clients);
    break;
  }
}

static void describe_schedule(char *out, size_t size, const struct workload *l) {
  int len = 0;
  if (l->ramp_to_per_sec > 0) {
    len = snprintf(out, size, "%g to %g", l->rate_per_sec, l->ramp_to_per_sec);
  } else if (l->steps == 0) {
    len = snprintf(out, size, "%g", l->rate_per_sec);
  }
  for (uint32_t i = 0; i < l->steps && (size_t)len < size; i++)
    len += snprintf(out + len, size - (size_t)len, "%s%g", i ? ", " : "", l->step[i].from_per_sec);
  if ((size_t)len < size) {
    snprintf(out + len, size - (size_t)len, " publishes/s (open loop, %s arrivals)", arrivals_name(l->arrivals));
  }
}

static void describe_load(char *out, size_t size, const struct workload *l) {
  if (l->topology == TOPOLOGY_HOLD && l->keep_alive_ns > 0) {
    snprintf(out, size, "keep-alives every %g s", (double)l->keep_alive_ns / 1e9);
  } else if (l->topology == TOPOLOGY_HOLD) {
    snprintf(out, size, "keep-alives as the protocol's clients send them");
  } else if (l->load == LOAD_OPEN) {
    describe_schedule(out, size, l);
  } else if (l->load == LOAD_CLOSED) {
    snprintf(out, size, "closed loop of %" PRIu32 " per sender", l->outstanding);
  } else if (l->interval_ns > 0) {
    snprintf(out, size, "%" PRIu32 " rounds, each sender every %g ms", l->rounds, (double)l->interval_ns / 1e6);
  } else {
    snprintf(out, size, "%" PRIu32 " rounds in a closed loop of %" PRIu32 " per sender", l->rounds, l->outstanding);
  }
}

void report_write_workload(FILE *file, const struct workload *workload) {
  char who[160], offline[64] = "", load[512], stop[64] = "";
  describe_population(who, sizeof who, workload);
  describe_load(load, sizeof load, workload);
  if (workload->offline) snprintf(offline, sizeof offline, ", %" PRIu32 " clients stay offline", workload->offline);
  if (workload_limit(workload)) snprintf(stop, sizeof stop, ", %" PRIu64 " publishes in all", workload_limit(workload));
  page_text(file, "workload", "%s: %s%s, %s%s, %" PRIu32 " B payload, seed %" PRIu64, workload->name, who, offline,
      load, stop, workload->payload_bytes, workload->seed);
  char options[WORKLOAD_OPTIONS_TEXT_MAX];
  if (workload_options_text(workload, options)) page_text(file, "", "with %s", options);
}

static void write_target(FILE *file, const struct report *r) {
  const struct report_target *t = &r->target;
  page_text(file, "target", "%s %s, %s%s%s%s", t->protocol, t->url, t->embedded ? "embedded " : "",
      t->server_version[0] ? t->server_version : "version unknown", t->tls[0] ? ", " : "", t->tls);
  if (r->workload.target_addresses) {
    page_text(file, "", "clients connect to %s, at its port", r->workload.target_addresses);
  }
  page_text(file, "", "ack: %s (policy %s); rate limits %s; storage: %s", t->ack_meaning, t->ack_policy, t->rate_limits,
      t->storage[0] ? t->storage : "unknown");
}

static void write_environment(FILE *file, const struct report *r) {
  const struct report_environment *e = &r->environment;
  char memory[32], limit[32];
  format_bytes(memory, e->memory_bytes);
  format_bytes(limit, e->cgroup_memory_bytes);
  page_text(file, "machine", "%s, %" PRIu32 " of %" PRIu32 " CPUs, %s memory%s%s%s, %s, %s, nofile %" PRIu64 "; %s",
      e->cpu_model, e->usable_cpus, e->logical_cpus, memory, e->cgroup_memory_bytes ? " (limit " : "",
      e->cgroup_memory_bytes ? limit : "", e->cgroup_memory_bytes ? ")" : "", e->os, e->kernel, e->nofile_soft,
      r->target.shares_host ? "server and generator share it" : "the server is elsewhere");
  const struct workload *l = &r->workload;
  if (l->environment_label || l->database_label) {
    page_text(file, "labels", "environment: %s; database: %s", l->environment_label ? l->environment_label : "none",
        l->database_label ? l->database_label : "none");
  }
}

static void write_phases(FILE *file, const struct report *r) {
  char catch_up[40] = "";
  if (r->workload.backlog) snprintf(catch_up, sizeof catch_up, ", catch-up %.2f s", r->catch_up_s);
  page_text(file, "phases", "set-up %.2f s, connect %.2f s, warm-up %.2f s, measure %.2f s, grace %.2f s%s%s",
      r->setup_s, r->connect_s, r->warmup_s, r->measure_s, r->grace_s, catch_up, r->interrupted ? "; interrupted" : "");
}

static void write_counts(FILE *file, const struct report *r) {
  const struct tally *t = &r->measure;
  const struct page_cell connections[] = {
      {"attempted", t->connections.attempted},
      {"established", t->connections.established},
      {"failed", codes_total(&t->connections.failed)},
      {"dropped", codes_total(&t->connections.dropped)},
      {"reconnected", t->connections.reconnected},
  };
  const struct page_cell publishes[] = {
      {"scheduled", t->publishes.scheduled},
      {"attempted", t->publishes.attempted},
      {"acked", t->publishes.acked},
      {"rejected", codes_total(&t->publishes.rejected)},
      {"timed out", codes_total(&t->publishes.timed_out)},
      {"unsent", codes_total(&t->publishes.unsent)},
  };
  const struct page_cell deliveries[] = {
      {"expected", t->deliveries.expected},
      {"observed", t->deliveries.observed},
      {"lost", t->deliveries.lost},
      {"duplicate", t->deliveries.duplicate},
      {"reordered", t->deliveries.reordered},
      {"corrupt", t->deliveries.corrupt},
      {"unexpected", t->deliveries.unexpected},
      {"late", t->deliveries.late},
  };
  page_counts(file, "connections", connections, sizeof connections / sizeof connections[0]);
  if (r->workload.topology == TOPOLOGY_HOLD) return;
  page_counts(file, "publishes", publishes, sizeof publishes / sizeof publishes[0]);
  page_counts(file, "deliveries", deliveries, sizeof deliveries / sizeof deliveries[0]);
}

/* Lost deliveries do not make a run invalid: they are what it found, so they must not be overlooked. */
static void write_findings(FILE *file, const struct report *r) {
  const struct tally *t = &r->measure;
  char lost[32], expected[32], unacked[32];
  format_count(lost, t->deliveries.lost);
  format_count(expected, t->deliveries.expected);
  format_count(unacked, t->deliveries.unacked_delivered);
  if (t->deliveries.lost) {
    page_text(file, "", "LOST %s of %s expected deliveries (%.4g %%)", lost, expected,
        (double)t->deliveries.lost / (double)t->deliveries.expected * 100);
  }
  if (t->deliveries.unacked_delivered) {
    page_text(file, "", "%s deliveries of publishes whose ACK failed (unacked_delivered)", unacked);
  }
  if (t->deliveries.recovered) {
    format_count(unacked, t->deliveries.recovered);
    page_text(file, "", "%s deliveries pulled by recipients that were away when they were sent (recovered)", unacked);
  }
  if (t->deliveries.overlap) {
    format_count(unacked, t->deliveries.overlap);
    page_text(file, "", "%s repetitions that the protocol itself makes (overlap)", unacked);
  }
}

static void write_server_counters(FILE *file, const struct report *r) {
  for (int i = 0; r->server_counters && i < TALLY_EXTRAS && r->server_counters[i]; i++) {
    char count[32];
    format_count(count, r->measure.extra[i]);
    page_text(file, i == 0 ? "server says" : "", "%s %s", count, r->server_counters[i]);
  }
}

static void write_rates(FILE *file, const struct report *r) {
  char sent[32], received[32], warmed[32];
  format_bytes(sent, r->measure.bytes_sent);
  format_bytes(received, r->measure.bytes_received);
  if (r->workload.topology == TOPOLOGY_HOLD) {
    page_text(file, "rates", "connections_per_second %.2f", r->connections_per_second);
    page_text(file, "traffic", "%s sent, %s received", sent, received);
    return;
  }
  format_count(warmed, r->warmup.publishes.attempted);
  page_text(file, "fan-out", "%.4f observed deliveries per %s publish%s", r->fan_out,
      r->has_acks ? "acked" : "attempted", r->has_acks ? "" : " (the protocol has no ACK)");
  if (r->has_acks) {
    page_text(file, "rates", "acks_per_second %.2f, deliveries_per_second %.2f", r->acks_per_second,
        r->deliveries_per_second);
  } else {
    page_text(file, "rates", "deliveries_per_second %.2f", r->deliveries_per_second);
  }
  const struct tally *t = &r->measure;
  if (t->publishes.acked_late || t->deliveries.late) {
    page_text(file, "", "without the %" PRIu64 " acks and %" PRIu64 " deliveries that came after the measure phase",
        t->publishes.acked_late, t->deliveries.late);
  }
  char asked[48] = "";
  if (report_asked_rate(r) > 0) snprintf(asked, sizeof asked, " of %g asked", report_asked_rate(r));
  page_text(file, "", "attempts_per_second %.2f%s, connections_per_second %.2f", r->attempts_per_second, asked,
      r->connections_per_second);
  if (r->calibration.ceiling_per_sec > 0) {
    bool bound = r->calibration.is_lower_bound;
    page_text(file, "", "load %s%.1f %% of the generator's calibrated ceiling of %s%g publishes/s (%s)",
        bound ? "at most " : "", r->attempts_per_second / r->calibration.ceiling_per_sec * 100,
        bound ? "at least " : "", r->calibration.ceiling_per_sec, r->calibration.measured_at);
  }
  page_text(file, "traffic", "%s sent, %s received; %s warm-up publishes excluded", sent, received, warmed);
}

static void format_marked(char out[20], int64_t ns, bool few, struct page_unit unit) {
  char number[16];
  format_latency(number, (double)ns, unit);
  snprintf(out, 20, "%s%s", number, few ? "*" : " ");
}

void report_text_latency(FILE *file, const char *name, const struct report_latency *latency, bool *any_marked) {
  static const enum report_percentile shown[] = {REPORT_P50, REPORT_P90, REPORT_P99, REPORT_P99_9, REPORT_P99_99};
  char count[32], text[20];
  format_count(count, latency->count);
  if (latency->count == 0) {
    fprintf(file, "%-17s%12s\n", name, count);
    return;
  }
  struct page_unit unit = page_unit_for(latency->percentile_ns[REPORT_P50], latency->max_ns);
  fprintf(file, "%-17s%12s %-2s", name, count, unit.name);
  format_latency(text, (double)latency->mean_ns, unit);
  fprintf(file, "%9s ", text);
  for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
    bool few = latency->few[shown[i]];
    if (few) *any_marked = true;
    format_marked(text, latency->percentile_ns[shown[i]], few, unit);
    fprintf(file, "%9s", text);
  }
  format_latency(text, (double)latency->max_ns, unit);
  fprintf(file, "%9s\n", text);
}

static void write_latencies(FILE *file, const struct report *r) {
  bool any_marked = false;
  struct report_latency latency;
  fprintf(file, "\n%-17s%12s %-2s%9s %8s %8s %8s %8s %8s %9s\n", "latency", "count", "", "mean", "p50", "p90", "p99",
      "p99.9", "p99.99", "max");
  for (enum report_clock i = 0; i < REPORT_CLOCKS; i++) {
    if (report_latency(r, i, &latency)) report_text_latency(file, report_clock_name(i), &latency, &any_marked);
  }
  operations_write_clocks(file, r, &any_marked);
  if (any_marked) fprintf(file, "* fewer than %d samples lie beyond this percentile: read it as a hint\n", FEW_SAMPLES);
  for (enum report_clock i = 0; i < REPORT_CLOCKS; i++) {
    if (!report_latency(r, i, &latency) || (latency.overflow == 0 && latency.negative == 0)) continue;
    page_text(file, "", "%s: %" PRIu64 " above one hour (counted as one hour), %" PRIu64 " below zero (not counted)",
        report_clock_name(i), latency.overflow, latency.negative);
  }
}

static void write_codes(FILE *file, const char *what, const struct codes *codes, const struct report *r) {
  char count[32];
  for (uint32_t i = 0; i < codes->used; i++) {
    int32_t code = codes->entry[i].code;
    const char *name = report_code_text(r, code);
    format_count(count, codes->entry[i].count);
    page_text(file, "", "%-11s %s of code %" PRId32 " (%s)", what, count, code, name ? name : "unknown to muster");
  }
  if (codes->others) {
    format_count(count, codes->others);
    page_text(file, "", "%-11s %s of further codes", what, count);
  }
}

static void write_errors(FILE *file, const struct report *r) {
  const struct tally *t = &r->measure;
  const struct {
    const char *what;
    const struct codes *codes;
  } kinds[] = {
      {"failed", &t->connections.failed},
      {"dropped", &t->connections.dropped},
      {"unsent", &t->publishes.unsent},
      {"rejected", &t->publishes.rejected},
      {"timed out", &t->publishes.timed_out},
  };
  uint64_t total = 0;
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    total += codes_total(kinds[i].codes);
  if (total == 0) {
    page_text(file, "errors", "none");
    return;
  }
  page_text(file, "errors", "by code:");
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    write_codes(file, kinds[i].what, kinds[i].codes, r);
}

static void write_storm(FILE *file, const struct report *r) {
  const struct report_storm *storm = &r->storm;
  char lost[32], returned[32], attempts[32], all_back[64] = "not everybody is back";
  if (!r->workload.storm) return;
  format_count(lost, storm->lost);
  format_count(returned, storm->returned);
  format_count(attempts, storm->attempts);
  if (storm->returned == storm->lost && storm->last_returned_ns > storm->first_lost_ns) {
    snprintf(all_back, sizeof all_back, "all back after %.3f s",
        (double)(storm->last_returned_ns - storm->first_lost_ns) / 1e9);
  }
  page_text(file, "storm", "%s connections lost, %s came back in %s attempts: %s", lost, returned, attempts, all_back);
  write_codes(file, "failed", &storm->failed, r);
}

static void write_backlog(FILE *file, const struct report *r) {
  const struct report_backlog *backlog = &r->backlog;
  char receivers[32], returned[32], complete[32], read[48] = "nothing came";
  if (!r->workload.backlog) return;
  format_count(receivers, r->workload.clients - r->workload.senders);
  format_count(returned, backlog->returned);
  format_count(complete, backlog->complete);
  if (backlog->read_ns > 0) snprintf(read, sizeof read, "read within %.3f s", (double)backlog->read_ns / 1e9);
  page_text(file, "backlog", "%s of %s receivers came back, %s of them got all that was sent to them: %s", returned,
      receivers, complete, read);
}

/* One end's growth for each connection; "" when it is not known. */
static void describe_growth(char *out, size_t size, const char *what, uint64_t before, uint64_t held, uint64_t count) {
  out[0] = '\0';
  if (before == 0 || held <= before || count == 0) return;
  snprintf(out, size, "%s%s %.0f B", what[0] == 'g' ? "" : ", ", what, (double)(held - before) / (double)count);
}

/* Start-up alone would be shown for a few connections. */
#define MEMORY_CONNECTIONS_MIN 1000

static void write_memory(FILE *file, const struct report *r) {
  uint64_t connections = report_early(r), before = 0, held = 0;
  char generator[48], server[48], kernel[64];
  if (connections < MEMORY_CONNECTIONS_MIN) return;
  for (uint32_t i = 0; i < r->workers; i++) {
    before += r->worker[i].private_before_bytes;
    held += r->worker[i].private_bytes;
  }
  const struct report_memory *m = &r->memory;
  describe_growth(generator, sizeof generator, "generator", before, held, connections);
  describe_growth(server, sizeof server, "server", m->server_before_bytes, m->server_held_bytes, connections);
  describe_growth(kernel, sizeof kernel, "kernel slab", m->kernel_before_bytes, m->kernel_held_bytes, connections);
  if (!generator[0]) return;
  page_text(
      file, "memory", "a connection: %s%s%s%s", generator, server, kernel, kernel[0] ? " (of the whole machine)" : "");
}

static void write_worker(FILE *file, uint32_t number, const struct report_worker *worker) {
  char rss[32];
  format_bytes(rss, worker->rss_bytes);
  fprintf(file, "%-*s%6" PRIu32 " %9" PRIu32 " %7.1f%% %7.1f%% %11" PRIu64 " %10.3f %10.3f %12s%s\n", PAGE_LABEL, "",
      number, worker->clients, worker->busy_share * 100, worker->cpu_share * 100, worker->clock_gaps,
      (double)worker->clock_gap_ns / 1e6, (double)worker->longest_gap_ns / 1e6, rss, worker->died ? " DIED" : "");
}

static void write_workers(FILE *file, const struct report *r) {
  fprintf(file, "%-*s%6s %9s %8s %8s %11s %10s %10s %12s\n", PAGE_LABEL, "generator", "worker", "clients", "busy",
      "CPU", "clock gaps", "in all ms", "longest ms", "memory");
  for (uint32_t i = 0; i < r->workers && i < WORKER_ROWS; i++)
    write_worker(file, i, &r->worker[i]);
  if (r->workers > WORKER_ROWS) {
    page_text(file, "", "and %" PRIu32 " more, in the JSON report", r->workers - WORKER_ROWS);
  }
}

static void write_limitations(FILE *file, const struct report *r) {
  for (size_t i = 0; i < sizeof r->limitations / sizeof r->limitations[0] && r->limitations[i]; i++)
    page_text(file, i ? "" : "limitations", "- %s", r->limitations[i]);
}

void report_format_measured(char out[40], const struct report_objective *objective) {
  if (strcmp(objective->unit, "ns") == 0) {
    struct page_unit unit = page_unit_for((int64_t)objective->measured, (int64_t)objective->measured);
    char number[16];
    format_latency(number, objective->measured, unit);
    snprintf(out, 40, "%s %s", number, unit.name);
  } else if (strcmp(objective->unit, "share") == 0) {
    snprintf(out, 40, "%.4g %%", objective->measured * 100);
  } else if (strcmp(objective->unit, "count") == 0) {
    format_count(out, (uint64_t)objective->measured);
  } else {
    snprintf(out, 40, "%.2f", objective->measured);
  }
}

static void write_objectives(FILE *file, const struct report *r) {
  for (uint32_t i = 0; i < r->objectives; i++) {
    const struct report_objective *objective = &r->objective[i];
    char measured[40] = "not measurable";
    if (objective->evaluable) report_format_measured(measured, objective);
    page_text(file, i ? "" : "objectives", "%-10s %s (measured: %s)",
        !objective->evaluable ? "NOT JUDGED"
        : objective->held     ? "held"
                              : "BROKEN",
        objective->text, measured);
  }
}

static void write_verdict(FILE *file, const struct report *r) {
  if (r->verdict == VERDICT_VALID) {
    page_text(file, "verdict", "valid%s%s", r->measure.deliveries.lost ? ", and the server lost deliveries" : "",
        report_exit_code(r) ? ", but an objective is broken" : "");
    return;
  }
  page_text(file, "verdict", "invalid:%s%s", r->reasons == 1 ? " " : "", r->reasons == 1 ? r->reason[0] : "");
  for (uint32_t i = 0; i < r->reasons && r->reasons > 1; i++)
    page_text(file, "", "- %s", r->reason[i]);
}

enum status report_write_text(FILE *file, const struct report *report, struct err *err) {
  write_head(file, report);
  report_write_workload(file, &report->workload);
  write_target(file, report);
  write_environment(file, report);
  write_phases(file, report);
  fputc('\n', file);
  write_counts(file, report);
  write_findings(file, report);
  write_server_counters(file, report);
  write_rates(file, report);
  costs_write_text(file, report);
  write_latencies(file, report);
  fputc('\n', file);
  write_errors(file, report);
  operations_write_text(file, report);
  write_storm(file, report);
  write_backlog(file, report);
  write_memory(file, report);
  write_workers(file, report);
  observed_write_text(file, report);
  write_limitations(file, report);
  fputc('\n', file);
  write_objectives(file, report);
  write_verdict(file, report);
  return save_flush(file, "report", err);
}
