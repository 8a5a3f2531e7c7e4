/* The JSON form of a report; docs/report.schema.json is its contract and docs/counters.md explains its names. */
#include "build_facts.h"
#include "measure/hlog.h"
#include "report/costs.h"
#include "report/document.h"
#include "report/json_parts.h"
#include "report/json_series.h"
#include "report/json_writer.h"
#include "report/observed.h"
#include "report/operations.h"
#include "report/save.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static double seconds(uint64_t ns) {
  return (double)ns / 1e9;
}

static void write_tool(struct json_writer *w, const struct report_tool *tool) {
  json_open_object(w, "muster");
  json_put_text(w, "version", tool->version);
  json_put_text(w, "commit", tool->commit);
  json_put_bool(w, "dirty", tool->dirty);
  json_close_object(w);
}

/* What could not be measured is null, not 0, and was neither held nor broken. */
void report_json_objectives(struct json_writer *w, const struct report_objective *objectives, uint32_t count) {
  json_open_array(w, "objectives");
  for (uint32_t i = 0; i < count; i++) {
    const struct report_objective *objective = &objectives[i];
    json_open_object(w, NULL);
    json_put_text(w, "text", objective->text);
    json_put_text(w, "unit", objective->unit);
    if (objective->evaluable) {
      json_put_double(w, "measured", objective->measured);
      json_put_bool(w, "held", objective->held);
    } else {
      json_put_null(w, "measured");
      json_put_null(w, "held");
    }
    json_close_object(w);
  }
  json_close_array(w);
}

static void write_bounds(struct json_writer *w, const struct report *r) {
  static const struct report_bounds own = {
      VERDICT_LAG_P99_NS, VERDICT_BUSY_SHARE, VERDICT_GAP_SHARE, VERDICT_ACHIEVED_SHARE};
  const struct report_bounds *bounds = r->bounds.lag_p99_ns ? &r->bounds : &own;
  json_open_object(w, "bounds");
  json_put_int(w, "schedule_lag_p99_ns", bounds->lag_p99_ns);
  json_put_double(w, "worker_busy_share", bounds->busy_share);
  json_put_double(w, "clock_gap_share", bounds->gap_share);
  json_put_double(w, "achieved_share", bounds->achieved_share);
  json_close_object(w);
}

static void write_verdict(struct json_writer *w, const struct report *r) {
  json_open_object(w, "verdict");
  json_put_text(w, "result", r->verdict == VERDICT_VALID ? "valid" : "invalid");
  json_open_array(w, "reasons");
  for (uint32_t i = 0; i < r->reasons; i++)
    json_put_text(w, NULL, r->reason[i]);
  json_close_array(w);
  report_json_objectives(w, r->objective, r->objectives);
  write_bounds(w, r);
  json_close_object(w);
}

static void put_uint_or_null(struct json_writer *w, const char *key, uint64_t value, bool has_value) {
  if (has_value) {
    json_put_uint(w, key, value);
  } else {
    json_put_null(w, key);
  }
}

static void put_rate_or_null(struct json_writer *w, const char *key, double rate) {
  if (rate > 0) {
    json_put_double(w, key, rate);
  } else {
    json_put_null(w, key);
  }
}

static void put_seconds_or_null(struct json_writer *w, const char *key, double value, bool has_value) {
  if (has_value) {
    json_put_double(w, key, value);
  } else {
    json_put_null(w, key);
  }
}

/* Null: this load model has no such thing. */
static void write_load(struct json_writer *w, const struct workload *l) {
  bool open = l->load == LOAD_OPEN, rounds = l->load == LOAD_ROUNDS;
  json_put_text(w, "load_model", load_model_name(l->load));
  json_put_bool(w, "closed_loop", workload_is_closed(l));
  put_rate_or_null(w, "rate_per_second", workload_is_closed(l) ? 0 : workload_first_rate(l));
  json_put_text(w, "arrivals", open ? arrivals_name(l->arrivals) : NULL);
  put_rate_or_null(w, "ramp_to_per_second", l->ramp_to_per_sec);
  json_open_array(w, "steps");
  for (uint32_t i = 0; i < l->steps; i++) {
    json_open_object(w, NULL);
    json_put_double(w, "rate_per_second", l->step[i].from_per_sec);
    json_put_double(w, "length_s", seconds(l->step[i].length_ns));
    json_close_object(w);
  }
  json_close_array(w);
  put_uint_or_null(w, "outstanding", l->outstanding, workload_is_closed(l));
  put_uint_or_null(w, "rounds", l->rounds, rounds);
  put_seconds_or_null(w, "interval_s", seconds(l->interval_ns), rounds);
  put_uint_or_null(w, "publishes", workload_limit(l), workload_limit(l) > 0);
}

static void write_shape(struct json_writer *w, const struct workload *l) {
  bool groups = l->topology == TOPOLOGY_GROUPS;
  json_put_text(w, "topology", topology_name(l->topology));
  json_put_uint(w, "clients", l->clients);
  json_put_uint(w, "senders", l->senders);
  json_put_uint(w, "offline", l->offline);
  put_uint_or_null(w, "groups", l->groups > 1 ? l->groups : 1, groups || l->topology == TOPOLOGY_QUEUE);
  json_put_bool(w, "shared_groups", groups && l->shared_groups);
  json_put_bool(w, "backlog", l->backlog);
}

/* Only what there is: other drivers have other names. */
static void write_facts(struct json_writer *w, const char *key, const struct facts *facts) {
  if (facts->count == 0) return;
  json_open_object(w, key);
  for (uint32_t i = 0; i < facts->count; i++)
    json_put_text(w, facts->fact[i].name, facts->fact[i].value);
  json_close_object(w);
}

static void write_workload(struct json_writer *w, const struct workload *l) {
  char seed[24];
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)l->seed);
  json_open_object(w, "workload");
  json_put_text(w, "name", l->name);
  write_shape(w, l);
  write_load(w, l);
  put_rate_or_null(w, "max_rate_per_second", workload_is_closed(l) ? l->max_rate_per_sec : 0);
  json_put_double(w, "warmup_s", seconds(l->warmup_ns));
  json_put_double(w, "duration_s", seconds(l->duration_ns));
  json_put_double(w, "delivery_grace_s", seconds(l->grace_ns));
  json_put_bool(w, "delivery_grace_asked", l->grace_asked);
  json_put_double(w, "setup_deadline_s", seconds(l->setup_deadline_ns));
  json_put_double(w, "connect_deadline_s", seconds(l->connect_deadline_ns));
  json_put_double(w, "ack_timeout_s", seconds(l->ack_timeout_ns));
  json_put_double(w, "teardown_deadline_s", seconds(l->teardown_deadline_ns));
  put_seconds_or_null(w, "catch_up_deadline_s", seconds(l->catch_up_deadline_ns), l->backlog);
  json_put_uint(w, "payload_bytes", l->payload_bytes);
  json_put_uint(w, "connect_concurrency", l->connect_concurrency);
  json_put_uint(w, "setup_concurrency", l->setup_concurrency);
  json_put_double(w, "connect_per_second", l->connect_per_sec);
  json_put_double(w, "keep_alive_s", seconds(l->keep_alive_ns));
  json_put_text(w, "local_addresses", l->local_addresses);
  if (l->target_addresses) json_put_text(w, "target_addresses", l->target_addresses);
  json_put_uint(w, "workers", l->workers);
  json_put_text(w, "seed", seed);
  json_put_bool(w, "store_messages", l->store);
  json_put_bool(w, "count_messages", l->count);
  json_put_bool(w, "obfuscate", l->obfuscate);
  json_put_bool(w, "allow_non_loopback", l->allow_non_loopback);
  json_put_bool(w, "allow_partial", l->allow_partial);
  json_put_bool(w, "tls_insecure", l->tls_insecure);
  json_put_text(w, "tls_ca_file", l->tls_ca_file);
  json_put_text(w, "origin", l->origin);
  json_put_text(w, "target", l->target);
  json_put_text(w, "api_url", l->api_url);
  json_put_text(w, "navigator_url", l->navigator_url);
  json_put_text(w, "app_key", l->app_key);
  json_put_text(w, "ack_policy", l->target ? NULL : l->ack_policy);
  if (l->target || l->push_window == 0) {
    json_put_null(w, "push_window");
  } else {
    json_put_uint(w, "push_window", l->push_window);
  }
  json_put_text(w, "rate_limits", l->target ? NULL : l->rate_limits ? "on" : "off");
  json_put_text(w, "environment_label", l->environment_label);
  json_put_text(w, "database_label", l->database_label);
  if (l->operations) json_put_text(w, "scenario", l->operations);
  if (l->user) json_put_text(w, "user", l->user);
  if (l->tls_certificate_file) json_put_text(w, "tls_certificate_file", l->tls_certificate_file);
  if (l->tls_key_file) json_put_text(w, "tls_key_file", l->tls_key_file);
  write_facts(w, "options", &l->options);
  write_facts(w, "target_options", &l->target_options);
  json_close_object(w);
}

static void write_target(struct json_writer *w, const struct report_target *t) {
  json_open_object(w, "target");
  json_put_text(w, "url", t->url);
  json_put_text(w, "protocol", t->protocol);
  json_put_text(w, "protocol_title", t->protocol_title);
  json_put_text(w, "server_version", t->server_version[0] ? t->server_version : NULL);
  json_put_text(w, "ack_meaning", t->ack_meaning);
  json_put_text(w, "delivery_semantics", t->delivery);
  json_put_text(w, "tls", t->tls[0] ? t->tls : NULL);
  json_put_bool(w, "embedded", t->embedded);
  json_put_bool(w, "shares_host", t->shares_host);
  json_put_text(w, "ack_policy", t->ack_policy);
  json_put_text(w, "rate_limits", t->rate_limits);
  json_put_text(w, "storage", t->storage[0] ? t->storage : NULL);
  json_close_object(w);
}

static void write_limit(struct json_writer *w, const char *key, uint64_t value, uint64_t unlimited) {
  if (value == unlimited) {
    json_put_null(w, key);
  } else {
    json_put_uint(w, key, value);
  }
}

static void write_environment(struct json_writer *w, const struct report_environment *e) {
  json_open_object(w, "environment");
  json_put_text(w, "cpu_model", e->cpu_model);
  json_put_uint(w, "logical_cpus", e->logical_cpus);
  json_put_uint(w, "usable_cpus", e->usable_cpus);
  json_put_uint(w, "memory_bytes", e->memory_bytes);
  json_put_text(w, "kernel", e->kernel);
  json_put_text(w, "os", e->os);
  json_put_text(w, "hostname", e->hostname);
  if (e->cgroup_cpus > 0) {
    json_put_double(w, "cgroup_cpus", e->cgroup_cpus);
  } else {
    json_put_null(w, "cgroup_cpus");
  }
  write_limit(w, "cgroup_memory_bytes", e->cgroup_memory_bytes, 0);
  write_limit(w, "nofile_soft", e->nofile_soft, RLIM_INFINITY);
  write_limit(w, "nofile_hard", e->nofile_hard, RLIM_INFINITY);
  json_put_text(w, "congestion_control", e->congestion_control);
  json_close_object(w);
}

static void write_phases(struct json_writer *w, const struct report *r) {
  json_open_object(w, "phases");
  json_put_double(w, "setup_s", r->setup_s);
  json_put_double(w, "connect_s", r->connect_s);
  json_put_double(w, "warmup_s", r->warmup_s);
  json_put_double(w, "measure_s", r->measure_s);
  json_put_double(w, "grace_s", r->grace_s);
  put_seconds_or_null(w, "catch_up_s", r->catch_up_s, r->workload.backlog);
  json_put_bool(w, "interrupted", r->interrupted);
  json_put_text(w, "ended_by", report_end_name(r->ended_by));
  json_close_object(w);
}

/* "failed": total, and "failed_by_code": what it is made of. */
void report_json_codes(struct json_writer *w, const char *key, const struct codes *codes, const struct report *r) {
  char by_code[32];
  snprintf(by_code, sizeof by_code, "%s_by_code", key);
  json_put_uint(w, key, codes_total(codes));
  json_open_array(w, by_code);
  for (uint32_t i = 0; i < codes->used; i++) {
    json_open_object(w, NULL);
    json_put_int(w, "code", codes->entry[i].code);
    json_put_text(w, "name", report_code_text(r, codes->entry[i].code));
    json_put_uint(w, "count", codes->entry[i].count);
    json_close_object(w);
  }
  if (codes->others) {
    json_open_object(w, NULL);
    json_put_null(w, "code");
    json_put_text(w, "name", "other codes");
    json_put_uint(w, "count", codes->others);
    json_close_object(w);
  }
  json_close_array(w);
}

static void write_publishes(struct json_writer *w, const struct tally *t, const struct report *r) {
  json_open_object(w, "publishes");
  json_put_uint(w, "scheduled", t->publishes.scheduled);
  json_put_uint(w, "attempted", t->publishes.attempted);
  json_put_uint(w, "acked", t->publishes.acked);
  json_put_uint(w, "acked_late", t->publishes.acked_late);
  report_json_codes(w, "rejected", &t->publishes.rejected, r);
  report_json_codes(w, "timed_out", &t->publishes.timed_out, r);
  report_json_codes(w, "unsent", &t->publishes.unsent, r);
  json_close_object(w);
}

static void write_deliveries(struct json_writer *w, const struct tally *t) {
  json_open_object(w, "deliveries");
  json_put_uint(w, "expected", t->deliveries.expected);
  json_put_uint(w, "observed", t->deliveries.observed);
  json_put_uint(w, "lost", t->deliveries.lost);
  json_put_uint(w, "duplicate", t->deliveries.duplicate);
  json_put_uint(w, "reordered", t->deliveries.reordered);
  json_put_uint(w, "corrupt", t->deliveries.corrupt);
  json_put_uint(w, "unexpected", t->deliveries.unexpected);
  json_put_uint(w, "late", t->deliveries.late);
  json_put_uint(w, "unacked_delivered", t->deliveries.unacked_delivered);
  json_put_uint(w, "recovered", t->deliveries.recovered);
  if (!t->deliveries.late_is_of_all) json_put_uint(w, "overlap", t->deliveries.overlap);
  json_close_object(w);
}

static void write_server_counters(struct json_writer *w, const struct report *r) {
  const char *const *name = r->server_counters;
  if (!name || !name[0]) return;
  json_open_object(w, "server_counters");
  for (int i = 0; i < TALLY_EXTRAS && name[i]; i++)
    json_put_uint(w, name[i], r->measure.extra[i]);
  json_close_object(w);
}

static void write_bytes(struct json_writer *w, const struct tally *t) {
  json_open_object(w, "bytes");
  json_put_uint(w, "sent", t->bytes_sent);
  json_put_uint(w, "received", t->bytes_received);
  json_close_object(w);
}

static void write_connections(struct json_writer *w, const struct report *r) {
  const struct tally *t = &r->measure;
  json_open_object(w, "connections");
  json_put_uint(w, "attempted", t->connections.attempted);
  json_put_uint(w, "established", t->connections.established);
  report_json_codes(w, "failed", &t->connections.failed, r);
  report_json_codes(w, "dropped", &t->connections.dropped, r);
  json_put_uint(w, "reconnected", t->connections.reconnected);
  json_close_object(w);
}

static void write_warmup(struct json_writer *w, const struct report *r) {
  json_open_object(w, "warmup");
  write_publishes(w, &r->warmup, r);
  write_deliveries(w, &r->warmup);
  write_bytes(w, &r->warmup);
  json_close_object(w);
}

static void write_rates(struct json_writer *w, const struct report *r) {
  json_open_object(w, "rates");
  put_rate_or_null(w, "asked_publishes_per_second", report_asked_rate(r));
  json_put_double(w, "attempts_per_second", r->attempts_per_second);
  if (r->has_acks) {
    json_put_double(w, "acks_per_second", r->acks_per_second);
  } else {
    json_put_null(w, "acks_per_second");
  }
  json_put_double(w, "deliveries_per_second", r->deliveries_per_second);
  json_put_double(w, "connections_per_second", r->connections_per_second);
  json_close_object(w);
}

static void write_calibration(struct json_writer *w, const struct report *r) {
  if (r->calibration.ceiling_per_sec <= 0) {
    json_put_null(w, "calibration");
    return;
  }
  json_open_object(w, "calibration");
  json_put_double(w, "ceiling_publishes_per_second", r->calibration.ceiling_per_sec);
  json_put_bool(w, "is_lower_bound", r->calibration.is_lower_bound);
  json_put_double(w, "load_share", r->attempts_per_second / r->calibration.ceiling_per_sec);
  json_put_text(w, "measured_at", r->calibration.measured_at);
  json_close_object(w);
}

/* A histogram that cannot be encoded leaves null: its percentiles are there all the same. */
static void write_histogram(struct json_writer *w, const struct histogram *h) {
  char *text = NULL;
  struct err unused;
  if (h && histogram_encode(h, &text, &unused) != STATUS_OK) text = NULL;
  json_put_text(w, "histogram", text);
  free(text);
}

/* Leaves the clock's object open. */
static void write_latency(struct json_writer *w, const char *name, const struct report_latency *latency) {
  json_open_object(w, name);
  json_put_uint(w, "count", latency->count);
  json_put_uint(w, "overflow", latency->overflow);
  json_put_uint(w, "negative", latency->negative);
  json_put_int(w, "min_ns", latency->min_ns);
  json_put_int(w, "mean_ns", latency->mean_ns);
  for (int i = 0; i < REPORT_PERCENTILES; i++)
    json_put_int(w, report_percentile_key((enum report_percentile)i), latency->percentile_ns[i]);
  json_put_int(w, "max_ns", latency->max_ns);
  json_open_flat_array(w, "few_samples");
  for (int i = 0; i < REPORT_PERCENTILES; i++) {
    if (latency->few[i]) json_put_text(w, NULL, report_percentile_key((enum report_percentile)i));
  }
  json_close_array(w);
}

void report_json_latency(
    struct json_writer *w, const char *name, const struct report_latency *latency, const struct histogram *h) {
  write_latency(w, name, latency);
  write_histogram(w, h);
  json_close_object(w);
}

static void write_latencies(struct json_writer *w, const struct report *r, bool with_histograms) {
  struct report_latency latency;
  json_open_object(w, "latency");
  for (enum report_clock i = 0; i < REPORT_CLOCKS; i++) {
    if (!report_latency(r, i, &latency)) continue;
    write_latency(w, report_clock_name(i), &latency);
    if (with_histograms) write_histogram(w, r->clock[i]);
    json_close_object(w);
  }
  json_close_object(w);
}

static void write_column(struct json_writer *w, const char *key, const struct report *r, size_t offset) {
  json_open_flat_array(w, key);
  for (uint32_t i = 0; i < r->seconds; i++)
    json_put_uint(w, NULL, series_cell(&r->second[i], offset));
  json_close_array(w);
}

/* A second without a value has no percentile: null, not 0. */
static void write_ns_column(
    struct json_writer *w, const char *key, const struct report *r, size_t offset, size_t count_offset) {
  json_open_flat_array(w, key);
  for (uint32_t i = 0; i < r->seconds; i++) {
    if (series_cell(&r->second[i], count_offset) == 0) {
      json_put_null(w, NULL);
    } else {
      json_put_int(w, NULL, (int64_t)series_cell(&r->second[i], offset));
    }
  }
  json_close_array(w);
}

static void write_series(struct json_writer *w, const struct report *r) {
  json_open_object(w, "series");
  json_put_uint(w, "interval_s", 1);
  json_put_uint(w, "rows", r->seconds);
  for (size_t i = 0; i < SERIES_COUNTS; i++)
    write_column(w, series_counts[i].key, r, series_counts[i].offset);
  for (size_t i = 0; i < SERIES_LATENCIES; i++) {
    const struct series_latency *latency = &series_latencies[i];
    json_open_object(w, latency->key);
    write_column(w, "count", r, latency->count);
    write_ns_column(w, "p50_ns", r, latency->p50, latency->count);
    write_ns_column(w, "p99_ns", r, latency->p99, latency->count);
    write_ns_column(w, "max_ns", r, latency->max, latency->count);
    json_close_object(w);
  }
  json_close_object(w);
}

static void write_workers(struct json_writer *w, const struct report *r) {
  json_open_array(w, "workers");
  for (uint32_t i = 0; i < r->workers; i++) {
    const struct report_worker *worker = &r->worker[i];
    json_open_object(w, NULL);
    json_put_uint(w, "clients", worker->clients);
    json_put_double(w, "busy_share", worker->busy_share);
    json_put_double(w, "cpu_share", worker->cpu_share);
    json_put_uint(w, "clock_gaps", worker->clock_gaps);
    json_put_uint(w, "clock_gap_ns", worker->clock_gap_ns);
    json_put_uint(w, "longest_gap_ns", worker->longest_gap_ns);
    json_put_uint(w, "rss_bytes", worker->rss_bytes);
    json_put_int(w, "nice", worker->nice);
    json_put_uint(w, "private_bytes", worker->private_bytes);
    json_put_bool(w, "died", worker->died);
    json_close_object(w);
  }
  json_close_array(w);
}

static void write_storm(struct json_writer *w, const struct report *r) {
  const struct report_storm *storm = &r->storm;
  const struct workload *l = &r->workload;
  if (!l->storm) {
    json_put_null(w, "storm");
    return;
  }
  bool returned = storm->last_returned_ns > storm->first_lost_ns;
  json_open_object(w, "storm");
  json_put_text(w, "by", l->storm_by_server ? "server" : "client");
  json_put_double(w, "at_s", seconds(l->storm_at_ns));
  json_put_double(w, "backoff_first_s", seconds(l->backoff_first_ns));
  json_put_double(w, "backoff_max_s", seconds(l->backoff_max_ns));
  json_put_double(w, "backoff_jitter", l->backoff_jitter);
  json_put_uint(w, "lost", storm->lost);
  json_put_uint(w, "returned", storm->returned);
  json_put_uint(w, "attempts", storm->attempts);
  report_json_codes(w, "failed", &storm->failed, r);
  if (returned && storm->returned == storm->lost) {
    json_put_double(w, "all_back_s", seconds(storm->last_returned_ns - storm->first_lost_ns));
  } else {
    json_put_null(w, "all_back_s");
  }
  json_close_object(w);
}

static void write_backlog(struct json_writer *w, const struct report *r) {
  const struct report_backlog *backlog = &r->backlog;
  if (!r->workload.backlog) {
    json_put_null(w, "backlog");
    return;
  }
  json_open_object(w, "backlog");
  json_put_uint(w, "receivers", r->workload.clients - r->workload.senders);
  json_put_uint(w, "returned", backlog->returned);
  json_put_uint(w, "complete", backlog->complete);
  put_seconds_or_null(w, "read_s", seconds(backlog->read_ns), backlog->read_ns > 0);
  json_close_object(w);
}

static void write_memory_growth(
    struct json_writer *w, const char *key, uint64_t before, uint64_t held, uint64_t connections) {
  json_open_object(w, key);
  json_put_uint(w, "before_bytes", before);
  json_put_uint(w, "held_bytes", held);
  if (before > 0 && held > before && connections > 0) {
    json_put_double(w, "per_connection_bytes", (double)(held - before) / (double)connections);
  } else {
    json_put_null(w, "per_connection_bytes");
  }
  json_close_object(w);
}

/* Of the measure phase's end against the moment before the first connection. */
static void write_memory(struct json_writer *w, const struct report *r) {
  uint64_t connections = report_early(r);
  uint64_t before = 0, held = 0;
  for (uint32_t i = 0; i < r->workers; i++) {
    before += r->worker[i].private_before_bytes;
    held += r->worker[i].private_bytes;
  }
  json_open_object(w, "memory");
  write_memory_growth(w, "generator", before, held, connections);
  write_memory_growth(w, "server", r->memory.server_before_bytes, r->memory.server_held_bytes, connections);
  write_memory_growth(w, "kernel_slab", r->memory.kernel_before_bytes, r->memory.kernel_held_bytes, connections);
  json_close_object(w);
}

/* A run of the same name without a storm has none of these, and so differs. */
static void write_storm_keys(struct json_writer *w, const struct workload *l) {
  if (!l->storm) return;
  json_put_text(w, "storm_by", l->storm_by_server ? "server" : "client");
  json_put_double(w, "storm_at_s", seconds(l->storm_at_ns));
  json_put_double(w, "storm_backoff_first_s", seconds(l->backoff_first_ns));
  json_put_double(w, "storm_backoff_max_s", seconds(l->backoff_max_ns));
  json_put_double(w, "storm_backoff_jitter", l->backoff_jitter);
}

/* What must be equal before two reports may be compared. */
static void write_comparability(struct json_writer *w, const struct report *r) {
  const struct workload *l = &r->workload;
  json_open_object(w, "comparability");
  json_put_text(w, "protocol", r->target.protocol);
  json_put_text(w, "tls", r->target.tls[0] ? "on" : "off");
  write_facts(w, "options", &l->key);
  write_shape(w, l);
  write_load(w, l);
  json_put_uint(w, "payload_bytes", l->payload_bytes);
  json_put_bool(w, "store_messages", l->store);
  json_put_bool(w, "count_messages", l->count);
  json_put_text(w, "persistence", r->target.storage[0] ? r->target.storage : "unknown");
  json_put_text(w, "ack_meaning", r->target.ack_meaning);
  json_put_text(w, "ack_policy", r->target.ack_policy);
  json_put_text(w, "delivery_semantics", r->target.delivery);
  json_put_text(w, "rate_limits", r->target.rate_limits);
  json_put_bool(w, "shares_host", r->target.shares_host);
  operations_write_key(w, r);
  write_storm_keys(w, l);
  json_close_object(w);
}

static void write_limitations(struct json_writer *w, const struct report *r) {
  json_open_array(w, "limitations");
  for (size_t i = 0; i < sizeof r->limitations / sizeof r->limitations[0] && r->limitations[i]; i++)
    json_put_text(w, NULL, r->limitations[i]);
  json_close_array(w);
}

enum status report_write_json(FILE *file, const struct report *report, struct err *err) {
  struct json_writer writer = {.file = file};
  struct json_writer *w = &writer;
  json_open_object(w, NULL);
  json_put_uint(w, "schema_version", REPORT_SCHEMA_VERSION);
  json_put_text(w, "run_id", report->run_id);
  struct report_tool tool = report_tool_of(report);
  write_tool(w, &tool);
  json_put_text(w, "started_at", report->started_at);
  json_put_text(w, "measure_started_at", report->measure_started_at[0] ? report->measure_started_at : NULL);
  json_put_text(w, "measure_ended_at", report->measure_ended_at[0] ? report->measure_ended_at : NULL);
  write_verdict(w, report);
  write_workload(w, &report->workload);
  write_target(w, &report->target);
  write_environment(w, &report->environment);
  write_phases(w, report);
  json_put_bool(w, "has_acks", report->has_acks);
  write_connections(w, report);
  write_publishes(w, &report->measure, report);
  write_deliveries(w, &report->measure);
  write_server_counters(w, report);
  json_put_double(w, "fan_out", report->fan_out);
  write_rates(w, report);
  write_calibration(w, report);
  write_bytes(w, &report->measure);
  write_latencies(w, report, true);
  write_warmup(w, report);
  write_series(w, report);
  operations_write_json(w, report);
  write_storm(w, report);
  write_backlog(w, report);
  write_memory(w, report);
  costs_write_json(w, report);
  write_workers(w, report);
  observed_write_json(w, report);
  write_comparability(w, report);
  write_limitations(w, report);
  json_close_object(w);
  fputc('\n', file);
  return save_flush(file, "report", err);
}

void report_json_summary(struct json_writer *w, const struct report *report) {
  json_put_uint(w, "schema_version", REPORT_SCHEMA_VERSION);
  json_put_text(w, "run_id", report->run_id);
  json_put_text(w, "started_at", report->started_at);
  json_put_text(w, "name", report->workload.name);
  write_verdict(w, report);
  write_phases(w, report);
  write_connections(w, report);
  write_publishes(w, &report->measure, report);
  write_deliveries(w, &report->measure);
  json_put_double(w, "fan_out", report->fan_out);
  write_rates(w, report);
  write_bytes(w, &report->measure);
  write_latencies(w, report, false);
}

void report_json_tool(struct json_writer *w) {
  static const struct report_tool own = {MUSTER_VERSION, MUSTER_COMMIT, MUSTER_DIRTY};
  write_tool(w, &own);
}

void report_json_workload(struct json_writer *w, const struct workload *workload) {
  write_workload(w, workload);
}

void report_json_target(struct json_writer *w, const struct report_target *target) {
  write_target(w, target);
}

void report_json_environment(struct json_writer *w, const struct report_environment *environment) {
  write_environment(w, environment);
}
