/* A run report from its JSON form: the mirror of json.c, part for part. */
#include "report/read.h"
#include "measure/hlog.h"
#include "report/json_reader.h"
#include "report/json_series.h"
#include "report/observed.h"
#include "report/operations.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define WORKERS_MAX (1u << 20)
#define READ(node, fields, out) json_read_fields(node, fields, sizeof(fields) / sizeof((fields)[0]), out)

static void read_tool(const struct json_node *root, struct report *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(CHARS, struct report_tool, version)},
      {JSON_FIELD(CHARS, struct report_tool, commit)},
      {JSON_FIELD(BOOL, struct report_tool, dirty)},
  };
  struct json_node node = json_object_at(root, "muster");
  READ(&node, fields, &out->tool);
}

static void read_objective(const struct json_node *node, struct report_objective *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(CHARS, struct report_objective, text)},
      {JSON_FIELD(TEXT, struct report_objective, unit)},
      {JSON_FIELD_OR_NULL("measured", DOUBLE, struct report_objective, measured)},
      {JSON_FIELD_OR_NULL("held", BOOL, struct report_objective, held)},
  };
  READ(node, fields, out);
  struct json_node measured = json_member(node, "measured");
  out->evaluable = !json_is_nothing(&measured);
}

static void read_bounds(const struct json_node *verdict, struct report_bounds *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD_AS("schedule_lag_p99_ns", I64, struct report_bounds, lag_p99_ns)},
      {JSON_FIELD_AS("worker_busy_share", DOUBLE, struct report_bounds, busy_share)},
      {JSON_FIELD_AS("clock_gap_share", DOUBLE, struct report_bounds, gap_share)},
      {JSON_FIELD_AS("achieved_share", DOUBLE, struct report_bounds, achieved_share)},
  };
  struct json_node node = json_object_at(verdict, "bounds");
  READ(&node, fields, out);
}

static void read_verdict(const struct json_node *root, struct report *out) {
  static const char *const results[] = {[VERDICT_VALID] = "valid", [VERDICT_INVALID] = "invalid"};
  struct json_node node = json_object_at(root, "verdict"), result = json_member(&node, "result");
  out->verdict = (enum verdict)json_choice_of(&result, results, sizeof results / sizeof results[0]);
  struct json_node reasons = json_array_at(&node, "reasons", REPORT_REASONS_MAX);
  out->reasons = (uint32_t)json_length(&reasons);
  for (uint32_t i = 0; i < out->reasons; i++) {
    struct json_node item = json_item(&reasons, i);
    json_chars_of(&item, out->reason[i], sizeof out->reason[i]);
  }
  struct json_node objectives = json_array_at(&node, "objectives", REPORT_OBJECTIVES_MAX);
  out->objectives = (uint32_t)json_length(&objectives);
  for (uint32_t i = 0; i < out->objectives; i++) {
    struct json_node item = json_item(&objectives, i);
    read_objective(&item, &out->objective[i]);
  }
  read_bounds(&node, &out->bounds);
}

static size_t topology_at(const struct json_node *workload) {
  const char *names[TOPOLOGY_HOLD + 1];
  for (int i = 0; i <= TOPOLOGY_HOLD; i++)
    names[i] = topology_name((enum topology_kind)i);
  struct json_node node = json_member(workload, "topology");
  return json_choice_of(&node, names, sizeof names / sizeof names[0]);
}

static void read_arrivals(const struct json_node *workload, struct workload *out) {
  const char *const arrivals[] = {arrivals_name(ARRIVALS_CONSTANT), arrivals_name(ARRIVALS_POISSON)};
  struct json_node node = json_member(workload, "arrivals");
  if (!json_is_nothing(&node)) out->arrivals = (enum arrivals)json_choice_of(&node, arrivals, 2);
}

static void read_steps(const struct json_node *workload, struct workload *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD_AS("rate_per_second", DOUBLE, struct rate_segment, from_per_sec)},
      {JSON_FIELD_AS("length_s", SECONDS, struct rate_segment, length_ns)},
  };
  struct json_node steps = json_array_at(workload, "steps", WORKLOAD_STEPS_MAX);
  out->steps = (uint32_t)json_length(&steps);
  for (uint32_t i = 0; i < out->steps; i++) {
    struct json_node item = json_item(&steps, i);
    READ(&item, fields, &out->step[i]);
    out->step[i].to_per_sec = out->step[i].from_per_sec;
  }
}

static void read_load(const struct json_node *workload, struct workload *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD_OR_NULL("rate_per_second", DOUBLE, struct workload, rate_per_sec)},
      {JSON_FIELD_OR_NULL("ramp_to_per_second", DOUBLE, struct workload, ramp_to_per_sec)},
      {JSON_FIELD_OR_NULL("outstanding", U32, struct workload, outstanding)},
      {JSON_FIELD_OR_NULL("rounds", U32, struct workload, rounds)},
      {JSON_FIELD_OR_NULL("interval_s", SECONDS, struct workload, interval_ns)},
      {JSON_FIELD_OR_NULL("max_rate_per_second", DOUBLE, struct workload, max_rate_per_sec)},
  };
  const char *const models[] = {load_model_name(LOAD_OPEN), load_model_name(LOAD_CLOSED), load_model_name(LOAD_ROUNDS)};
  struct json_node model = json_member(workload, "load_model");
  out->load = (enum load_model)json_choice_of(&model, models, sizeof models / sizeof models[0]);
  READ(workload, fields, out);
  read_arrivals(workload, out);
  read_steps(workload, out);
  struct json_node publishes = json_member(workload, "publishes");
  if (out->load != LOAD_ROUNDS && !json_is_nothing(&publishes)) {
    out->publishes = (uint32_t)json_uint_of(&publishes, UINT32_MAX);
  }
}

static void read_seed_and_limits(const struct json_node *workload, struct workload *out) {
  struct json_node seed = json_member(workload, "seed"), limits = json_member(workload, "rate_limits");
  const char *text = json_text_of(&seed);
  char *end;
  out->seed = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end) json_refuse(&seed, "a number in a text is expected here");
  static const char *const switches[] = {"off", "on"};
  if (!json_is_nothing(&limits)) out->rate_limits = json_choice_of(&limits, switches, 2) == 1;
}

/* Reports of older musters have none. */
static void read_facts(const struct json_node *object, const char *key, struct facts *out) {
  struct json_node node = json_nullable_object_at(object, key);
  if (!node.value) return;
  if (json_object_size(node.value) > FACTS_MAX) {
    json_refuse(&node, "has more than the %d options that a report may have", FACTS_MAX);
    return;
  }
  const char *name;
  json_t *value;
  json_object_foreach((json_t *)(uintptr_t)node.value, name, value) {
    struct json_node item = json_member(&node, name);
    char text[FACT_VALUE_MAX] = "";
    if (strlen(name) >= FACT_NAME_MAX) json_refuse(&item, "no option has so long a name");
    json_chars_of(&item, text, sizeof text);
    facts_add(out, name, text);
  }
}

static const char *read_optional_text(const struct json_node *object, const char *key) {
  struct json_node node = json_optional(object, key);
  return node.value ? json_text_of(&node) : NULL;
}

static void read_workload(const struct json_node *root, struct workload *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(TEXT, struct workload, name)},
      {JSON_FIELD(U32, struct workload, clients)},
      {JSON_FIELD(U32, struct workload, senders)},
      {JSON_FIELD(U32, struct workload, offline)},
      {JSON_FIELD_OR_NULL("groups", U32, struct workload, groups)},
      {JSON_FIELD(BOOL, struct workload, shared_groups)},
      {JSON_FIELD(BOOL, struct workload, backlog)},
      {JSON_FIELD_AS("warmup_s", SECONDS, struct workload, warmup_ns)},
      {JSON_FIELD_AS("duration_s", SECONDS, struct workload, duration_ns)},
      {JSON_FIELD_AS("delivery_grace_s", SECONDS, struct workload, grace_ns)},
      {JSON_FIELD_AS("setup_deadline_s", SECONDS, struct workload, setup_deadline_ns)},
      {JSON_FIELD_AS("connect_deadline_s", SECONDS, struct workload, connect_deadline_ns)},
      {JSON_FIELD_AS("ack_timeout_s", SECONDS, struct workload, ack_timeout_ns)},
      {JSON_FIELD_AS("teardown_deadline_s", SECONDS, struct workload, teardown_deadline_ns)},
      {JSON_FIELD_OR_NULL("catch_up_deadline_s", SECONDS, struct workload, catch_up_deadline_ns)},
      {JSON_FIELD(U32, struct workload, payload_bytes)},
      {JSON_FIELD(U32, struct workload, connect_concurrency)},
      {JSON_FIELD(U32, struct workload, setup_concurrency)},
      {JSON_FIELD_AS("connect_per_second", DOUBLE, struct workload, connect_per_sec)},
      {JSON_FIELD_AS("keep_alive_s", SECONDS, struct workload, keep_alive_ns)},
      {JSON_FIELD_OR_NULL("local_addresses", TEXT, struct workload, local_addresses)},
      {JSON_FIELD(U32, struct workload, workers)},
      {JSON_FIELD_AS("store_messages", BOOL, struct workload, store)},
      {JSON_FIELD_AS("count_messages", BOOL, struct workload, count)},
      {JSON_FIELD(BOOL, struct workload, obfuscate)},
      {JSON_FIELD(BOOL, struct workload, allow_non_loopback)},
      {JSON_FIELD(BOOL, struct workload, allow_partial)},
      {JSON_FIELD(BOOL, struct workload, tls_insecure)},
      {JSON_FIELD_OR_NULL("tls_ca_file", TEXT, struct workload, tls_ca_file)},
      {JSON_FIELD_OR_NULL("origin", TEXT, struct workload, origin)},
      {JSON_FIELD_OR_NULL("target", TEXT, struct workload, target)},
      {JSON_FIELD_OR_NULL("api_url", TEXT, struct workload, api_url)},
      {JSON_FIELD_OR_NULL("navigator_url", TEXT, struct workload, navigator_url)},
      {JSON_FIELD_OR_NULL("app_key", TEXT, struct workload, app_key)},
      {JSON_FIELD_OR_NULL("ack_policy", TEXT, struct workload, ack_policy)},
      {JSON_FIELD_OR_NULL("push_window", U32, struct workload, push_window)},
      {JSON_FIELD_OR_NULL("environment_label", TEXT, struct workload, environment_label)},
      {JSON_FIELD_OR_NULL("database_label", TEXT, struct workload, database_label)},
  };
  struct json_node node = json_object_at(root, "workload");
  out->topology = (enum topology_kind)topology_at(&node);
  READ(&node, fields, out);
  read_load(&node, out);
  read_seed_and_limits(&node, out);
  out->target_addresses = read_optional_text(&node, "target_addresses");
  out->operations = read_optional_text(&node, "scenario");
  out->user = read_optional_text(&node, "user");
  out->tls_certificate_file = read_optional_text(&node, "tls_certificate_file");
  out->tls_key_file = read_optional_text(&node, "tls_key_file");
  if (json_object_get(node.value, "delivery_grace_asked")) {
    struct json_node asked = json_member(&node, "delivery_grace_asked");
    out->grace_asked = json_bool_of(&asked);
  }
  read_facts(&node, "options", &out->options);
  read_facts(&node, "target_options", &out->target_options);
  struct json_node comparability = json_object_at(root, "comparability");
  read_facts(&comparability, "options", &out->key);
}

static void read_target(const struct json_node *root, struct report_target *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(CHARS, struct report_target, url)},
      {JSON_FIELD(CHARS, struct report_target, protocol)},
      {JSON_FIELD(CHARS, struct report_target, protocol_title)},
      {JSON_FIELD_OR_NULL("server_version", CHARS, struct report_target, server_version)},
      {JSON_FIELD(CHARS, struct report_target, ack_meaning)},
      {JSON_FIELD_AS("delivery_semantics", CHARS, struct report_target, delivery)},
      {JSON_FIELD_OR_NULL("tls", CHARS, struct report_target, tls)},
      {JSON_FIELD(BOOL, struct report_target, embedded)},
      {JSON_FIELD(BOOL, struct report_target, shares_host)},
      {JSON_FIELD(CHARS, struct report_target, ack_policy)},
      {JSON_FIELD(CHARS, struct report_target, rate_limits)},
      {JSON_FIELD_OR_NULL("storage", CHARS, struct report_target, storage)},
  };
  struct json_node node = json_object_at(root, "target");
  READ(&node, fields, out);
}

static void read_environment(const struct json_node *root, struct report_environment *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(CHARS, struct report_environment, cpu_model)},
      {JSON_FIELD(U32, struct report_environment, logical_cpus)},
      {JSON_FIELD(U32, struct report_environment, usable_cpus)},
      {JSON_FIELD(U64, struct report_environment, memory_bytes)},
      {JSON_FIELD(CHARS, struct report_environment, kernel)},
      {JSON_FIELD(CHARS, struct report_environment, os)},
      {JSON_FIELD(CHARS, struct report_environment, hostname)},
      {JSON_FIELD_OR_NULL("cgroup_cpus", DOUBLE, struct report_environment, cgroup_cpus)},
      {JSON_FIELD_OR_NULL("cgroup_memory_bytes", U64, struct report_environment, cgroup_memory_bytes)},
      {JSON_FIELD_OR_NULL("nofile_soft", U64, struct report_environment, nofile_soft)},
      {JSON_FIELD_OR_NULL("nofile_hard", U64, struct report_environment, nofile_hard)},
      {JSON_FIELD(CHARS, struct report_environment, congestion_control)},
  };
  struct json_node node = json_object_at(root, "environment");
  out->nofile_soft = RLIM_INFINITY;
  out->nofile_hard = RLIM_INFINITY;
  READ(&node, fields, out);
}

static void read_phases(const struct json_node *root, struct report *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(DOUBLE, struct report, setup_s)},
      {JSON_FIELD(DOUBLE, struct report, connect_s)},
      {JSON_FIELD(DOUBLE, struct report, warmup_s)},
      {JSON_FIELD(DOUBLE, struct report, measure_s)},
      {JSON_FIELD(DOUBLE, struct report, grace_s)},
      {JSON_FIELD_OR_NULL("catch_up_s", DOUBLE, struct report, catch_up_s)},
      {JSON_FIELD(BOOL, struct report, interrupted)},
  };
  const char *ends[ENDED_BY_INTERRUPTION + 1];
  for (int i = 0; i <= ENDED_BY_INTERRUPTION; i++)
    ends[i] = report_end_name((enum report_end)i);
  struct json_node node = json_object_at(root, "phases"), end = json_member(&node, "ended_by");
  READ(&node, fields, out);
  out->ended_by = (enum report_end)json_choice_of(&end, ends, sizeof ends / sizeof ends[0]);
}

/* Keeps the name that a code had, unless this build knows it by the same. */
static void keep_name(const struct json_node *name, int32_t code, struct report *out) {
  if (json_is_nothing(name)) return;
  const char *text = json_text_of(name), *known = report_code_text(out, code);
  if (known && strcmp(known, text) == 0) return;
  struct report_code_name *names = out->code_name;
  uint32_t count = out->code_names;
  for (uint32_t i = 0; i < count; i++) {
    if (names[i].code == code) return;
  }
  struct report_code_name *more = arena_alloc(&out->texts, (count + 1) * sizeof *more);
  if (!more) {
    json_refuse(name, "out of memory");
    return;
  }
  if (count) memcpy(more, names, count * sizeof *more);
  more[count] = (struct report_code_name){code, text};
  out->code_name = more;
  out->code_names = count + 1;
}

static void read_code(const struct json_node *item, struct codes *codes, struct report *out) {
  struct json_node code = json_member(item, "code"), name = json_member(item, "name");
  struct json_node number = json_member(item, "count");
  uint64_t count = json_uint_of(&number, INT64_MAX);
  if (json_is_null(code.value)) {
    codes->others += count;
  } else if (codes->used == CODES_MAX) {
    json_refuse(item, "more than %d codes", CODES_MAX);
  } else {
    codes->entry[codes->used].code = (int32_t)json_int_of(&code, INT32_MIN, INT32_MAX);
    codes->entry[codes->used].count = count;
    keep_name(&name, codes->entry[codes->used].code, out);
    codes->used++;
  }
}

void report_read_codes(const struct json_node *object, const char *key, struct codes *codes, struct report *out) {
  char by_code[32];
  snprintf(by_code, sizeof by_code, "%s_by_code", key);
  struct json_node total = json_member(object, key), list = json_array_at(object, by_code, CODES_MAX + 1);
  for (size_t i = 0; i < json_length(&list); i++) {
    struct json_node item = json_item(&list, i);
    read_code(&item, codes, out);
  }
  if (json_uint_of(&total, INT64_MAX) != codes_total(codes)) {
    json_refuse(&total, "is not the sum of %s: the file was changed by hand", by_code);
  }
}

static void read_publishes(const struct json_node *parent, struct tally *tally, struct report *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD_AS("scheduled", U64, struct tally, publishes.scheduled)},
      {JSON_FIELD_AS("attempted", U64, struct tally, publishes.attempted)},
      {JSON_FIELD_AS("acked", U64, struct tally, publishes.acked)},
      {JSON_FIELD_AS("acked_late", U64, struct tally, publishes.acked_late)},
  };
  struct json_node node = json_object_at(parent, "publishes");
  READ(&node, fields, tally);
  report_read_codes(&node, "rejected", &tally->publishes.rejected, out);
  report_read_codes(&node, "timed_out", &tally->publishes.timed_out, out);
  report_read_codes(&node, "unsent", &tally->publishes.unsent, out);
}

static void read_deliveries(const struct json_node *parent, struct tally *tally) {
  static const struct json_field fields[] = {
      {JSON_FIELD_AS("expected", U64, struct tally, deliveries.expected)},
      {JSON_FIELD_AS("observed", U64, struct tally, deliveries.observed)},
      {JSON_FIELD_AS("lost", U64, struct tally, deliveries.lost)},
      {JSON_FIELD_AS("duplicate", U64, struct tally, deliveries.duplicate)},
      {JSON_FIELD_AS("reordered", U64, struct tally, deliveries.reordered)},
      {JSON_FIELD_AS("corrupt", U64, struct tally, deliveries.corrupt)},
      {JSON_FIELD_AS("unexpected", U64, struct tally, deliveries.unexpected)},
      {JSON_FIELD_AS("late", U64, struct tally, deliveries.late)},
      {JSON_FIELD_AS("unacked_delivered", U64, struct tally, deliveries.unacked_delivered)},
      {JSON_FIELD_AS("recovered", U64, struct tally, deliveries.recovered)},
  };
  struct json_node node = json_object_at(parent, "deliveries");
  READ(&node, fields, tally);
  tally->deliveries.late_is_of_all = !json_object_get(node.value, "overlap"); /* older reports do not say it */
  if (tally->deliveries.late_is_of_all) return;
  struct json_node overlap = json_member(&node, "overlap");
  tally->deliveries.overlap = json_uint_of(&overlap, INT64_MAX);
}

static void read_bytes(const struct json_node *parent, struct tally *tally) {
  static const struct json_field fields[] = {
      {JSON_FIELD_AS("sent", U64, struct tally, bytes_sent)},
      {JSON_FIELD_AS("received", U64, struct tally, bytes_received)},
  };
  struct json_node node = json_object_at(parent, "bytes");
  READ(&node, fields, tally);
}

static void read_connections(const struct json_node *root, struct report *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD_AS("attempted", U64, struct tally, connections.attempted)},
      {JSON_FIELD_AS("established", U64, struct tally, connections.established)},
      {JSON_FIELD_AS("reconnected", U64, struct tally, connections.reconnected)},
  };
  struct json_node node = json_object_at(root, "connections");
  READ(&node, fields, &out->measure);
  report_read_codes(&node, "failed", &out->measure.connections.failed, out);
  report_read_codes(&node, "dropped", &out->measure.connections.dropped, out);
}

static void read_tallies(const struct json_node *root, struct report *out) {
  read_connections(root, out);
  read_publishes(root, &out->measure, out);
  read_deliveries(root, &out->measure);
  read_bytes(root, &out->measure);
  struct json_node warmup = json_object_at(root, "warmup");
  read_publishes(&warmup, &out->warmup, out);
  read_deliveries(&warmup, &out->warmup);
  read_bytes(&warmup, &out->warmup);
}

static void read_server_counters(const struct json_node *root, struct report *out) {
  struct json_node node = json_nullable_object_at(root, "server_counters");
  if (!node.value) return;
  const char **names = arena_alloc(&out->texts, (TALLY_EXTRAS + 1) * sizeof *names);
  size_t count = json_object_size(node.value), at = 0;
  if (!names || count > TALLY_EXTRAS) {
    json_refuse(&node, "has more than the %d counters that a report may have", TALLY_EXTRAS);
    return;
  }
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)node.value, key, value) {
    struct json_node item = json_member(&node, key);
    out->measure.extra[at] = json_uint_of(&item, INT64_MAX);
    names[at++] = arena_text(&out->texts, key, strlen(key));
  }
  out->server_counters = names;
}

static void read_rates(const struct json_node *root, struct report *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(DOUBLE, struct report, attempts_per_second)},
      {JSON_FIELD_OR_NULL("acks_per_second", DOUBLE, struct report, acks_per_second)},
      {JSON_FIELD(DOUBLE, struct report, deliveries_per_second)},
      {JSON_FIELD(DOUBLE, struct report, connections_per_second)},
  };
  static const struct json_field calibration_fields[] = {
      {JSON_FIELD_AS("ceiling_publishes_per_second", DOUBLE, struct report_calibration, ceiling_per_sec)},
      {JSON_FIELD(CHARS, struct report_calibration, measured_at)},
  };
  struct json_node node = json_object_at(root, "rates"), fan_out = json_member(root, "fan_out");
  READ(&node, fields, out);
  out->fan_out = json_double_of(&fan_out);
  struct json_node calibration = json_nullable_object_at(root, "calibration");
  if (!calibration.value) return;
  READ(&calibration, calibration_fields, &out->calibration);
  struct json_node bound = json_optional(&calibration, "is_lower_bound"); /* older musters did not say */
  out->calibration.is_lower_bound = bound.value && json_bool_of(&bound);
}

static void read_few(const struct json_node *clock, struct report_latency *out) {
  const char *keys[REPORT_PERCENTILES];
  for (int i = 0; i < REPORT_PERCENTILES; i++)
    keys[i] = report_percentile_key((enum report_percentile)i);
  struct json_node few = json_array_at(clock, "few_samples", REPORT_PERCENTILES);
  for (size_t i = 0; i < json_length(&few); i++) {
    struct json_node item = json_item(&few, i);
    out->few[json_choice_of(&item, keys, REPORT_PERCENTILES)] = true;
  }
}

static void read_summary(const struct json_node *clock, struct report_latency *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(U64, struct report_latency, count)},
      {JSON_FIELD(U64, struct report_latency, overflow)},
      {JSON_FIELD(U64, struct report_latency, negative)},
      {JSON_FIELD(I64, struct report_latency, min_ns)},
      {JSON_FIELD(I64, struct report_latency, mean_ns)},
      {JSON_FIELD(I64, struct report_latency, max_ns)},
  };
  READ(clock, fields, out);
  for (int i = 0; i < REPORT_PERCENTILES; i++) {
    struct json_node node = json_member(clock, report_percentile_key((enum report_percentile)i));
    out->percentile_ns[i] = json_int_of(&node, 0, INT64_MAX);
  }
  read_few(clock, out);
  if (out->min_ns < 0 || out->mean_ns < 0 || out->max_ns < 0) json_refuse(clock, "has a time below 0");
  if (out->mean_ns > INT64_MAX / 2) json_refuse(clock, "has a mean of centuries");
}

/* A histogram's text has its counters only: the exact extremes and the mean stand beside it. */
static void restore_exact(struct histogram *h, const struct report_latency *summary) {
  h->overflow = summary->overflow;
  h->negative = summary->negative;
  if (h->count == 0) return;
  h->min_ns = summary->min_ns;
  h->max_ns = summary->max_ns;
  h->sum_ns = (double)summary->mean_ns * (double)h->count;
  if ((int64_t)histogram_mean(h) != summary->mean_ns) h->sum_ns = ((double)summary->mean_ns + 0.5) * (double)h->count;
}

static int64_t within(int64_t value_ns) {
  return value_ns < HISTOGRAM_MAX_NS ? value_ns : HISTOGRAM_MAX_NS;
}

static bool is_of(const struct histogram *h, const struct report_latency *summary) {
  if (h->count != summary->count || summary->overflow > h->count) return false;
  if (h->count == 0) return true;
  return histogram_index(within(h->min_ns)) == histogram_index(within(summary->min_ns)) &&
         histogram_index(within(h->max_ns)) == histogram_index(within(summary->max_ns));
}

static bool same_percentiles(const struct histogram *h, const struct report_latency *summary) {
  struct report_latency made = report_latency_of(h);
  return memcmp(made.percentile_ns, summary->percentile_ns, sizeof made.percentile_ns) == 0 &&
         memcmp(made.few, summary->few, sizeof made.few) == 0;
}

static void read_histogram(const struct json_node *node, const struct report_latency *summary, struct histogram *out) {
  struct err err = {0};
  const char *text = json_string_value(node->value);
  if (!text) {
    json_refuse(node, "the base64 text of a histogram, or null, is expected here");
  } else if (histogram_decode(text, strlen(text), out, &err) != STATUS_OK) {
    json_refuse(node, "%.150s", err.text);
  } else if (!is_of(out, summary)) {
    json_refuse(node, "is not the histogram of the figures beside it: the file was changed by hand");
  } else {
    restore_exact(out, summary);
    if (!same_percentiles(out, summary)) json_refuse(node, "has other percentiles than those beside it");
  }
}

void report_read_histogram(const struct json_node *clock, struct histogram *out) {
  struct report_latency summary = {0};
  read_summary(clock, &summary);
  struct json_node text = json_member(clock, "histogram");
  if (!json_is_nothing(&text)) read_histogram(&text, &summary, out);
}

static void read_clock(const struct json_node *clock, int64_t version, enum report_clock which, struct report *out) {
  struct report_latency summary = {0};
  read_summary(clock, &summary);
  struct json_node text = {.reader = clock->reader};
  if (version > 1) text = json_member(clock, "histogram");
  void *room = json_is_nothing(&text) ? calloc(1, sizeof summary) : calloc(1, sizeof(struct histogram));
  if (!room) {
    json_refuse(clock, "out of memory");
  } else if (json_is_nothing(&text)) {
    out->summary[which] = room;
    *out->summary[which] = summary;
  } else {
    out->clock[which] = room;
    read_histogram(&text, &summary, out->clock[which]);
  }
}

static void read_latencies(const struct json_node *root, int64_t version, struct report *out) {
  struct json_node node = json_object_at(root, "latency");
  for (enum report_clock i = 0; i < REPORT_CLOCKS; i++) {
    struct json_node clock = json_nullable_object_at(&node, report_clock_name(i));
    if (clock.value) read_clock(&clock, version, i, out);
  }
}

/* A column of whole numbers or null, at `offset` in each row. */
static void read_column(const struct json_node *parent, const char *key, size_t offset, struct report *out) {
  struct json_node column = json_array_at(parent, key, out->seconds);
  if (column.value && json_length(&column) != out->seconds) {
    json_refuse(&column, "has %zu entries for %u rows", json_length(&column), out->seconds);
  }
  for (uint32_t i = 0; i < json_length(&column); i++) {
    struct json_node item = json_item(&column, i);
    uint64_t value = json_is_nothing(&item) ? 0 : json_uint_of(&item, INT64_MAX);
    memcpy((char *)&out->second[i] + offset, &value, sizeof value);
  }
}

static void read_series(const struct json_node *root, struct report *out) {
  struct json_node node = json_object_at(root, "series"), rows = json_member(&node, "rows");
  struct json_node first = json_array_at(&node, series_counts[0].key, UINT32_MAX);
  uint64_t count = json_uint_of(&rows, UINT32_MAX);
  if (count != json_length(&first)) json_refuse(&rows, "is not the length of the columns");
  if (node.reader->status != STATUS_OK) return;
  out->seconds = (uint32_t)count;
  out->second = calloc(count ? count : 1, sizeof *out->second);
  if (!out->second) {
    out->seconds = 0;
    json_refuse(&node, "out of memory");
    return;
  }
  for (size_t i = 0; i < SERIES_COUNTS; i++)
    read_column(&node, series_counts[i].key, series_counts[i].offset, out);
  for (size_t i = 0; i < SERIES_LATENCIES; i++) {
    const struct series_latency *latency = &series_latencies[i];
    struct json_node columns = json_object_at(&node, latency->key);
    read_column(&columns, "count", latency->count, out);
    read_column(&columns, "p50_ns", latency->p50, out);
    read_column(&columns, "p99_ns", latency->p99, out);
    read_column(&columns, "max_ns", latency->max, out);
  }
}

/* Older reports do not say it: there it is the clients. */
static void read_storm_by(const struct json_node *storm, struct workload *out) {
  static const char *const sides[] = {"client", "server"};
  if (!json_object_get(storm->value, "by")) return;
  struct json_node by = json_member(storm, "by");
  out->storm_by_server = json_choice_of(&by, sides, sizeof sides / sizeof sides[0]) == 1;
}

static void read_storm(const struct json_node *root, struct report *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD_AS("at_s", SECONDS, struct workload, storm_at_ns)},
      {JSON_FIELD_AS("backoff_first_s", SECONDS, struct workload, backoff_first_ns)},
      {JSON_FIELD_AS("backoff_max_s", SECONDS, struct workload, backoff_max_ns)},
      {JSON_FIELD(DOUBLE, struct workload, backoff_jitter)},
  };
  static const struct json_field storm_fields[] = {
      {JSON_FIELD(U64, struct report_storm, lost)},
      {JSON_FIELD(U64, struct report_storm, returned)},
      {JSON_FIELD(U64, struct report_storm, attempts)},
      {JSON_FIELD_OR_NULL("all_back_s", SECONDS, struct report_storm, last_returned_ns)},
  };
  struct json_node node = json_nullable_object_at(root, "storm");
  out->workload.storm = node.value != NULL;
  if (!node.value) return;
  READ(&node, fields, &out->workload);
  read_storm_by(&node, &out->workload);
  READ(&node, storm_fields, &out->storm); /* as if the first had been lost at 0 */
  report_read_codes(&node, "failed", &out->storm.failed, out);
}

static void read_backlog(const struct json_node *root, struct report *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(U64, struct report_backlog, returned)},
      {JSON_FIELD(U64, struct report_backlog, complete)},
      {JSON_FIELD_OR_NULL("read_s", SECONDS, struct report_backlog, read_ns)},
  };
  struct json_node node = json_nullable_object_at(root, "backlog");
  if (node.value) READ(&node, fields, &out->backlog);
}

static void read_growth(const struct json_node *memory, const char *key, uint64_t *before, uint64_t *held) {
  struct json_node node = json_object_at(memory, key);
  struct json_node first = json_member(&node, "before_bytes"), last = json_member(&node, "held_bytes");
  *before = json_uint_of(&first, INT64_MAX);
  *held = json_uint_of(&last, INT64_MAX);
}

/* What the workers held at the start is known as a sum only: the first one stands for all. */
static void read_memory(const struct json_node *root, struct report *out) {
  uint64_t before, held;
  struct json_node node = json_object_at(root, "memory");
  read_growth(&node, "generator", &before, &held);
  if (out->workers) out->worker[0].private_before_bytes = before;
  read_growth(&node, "server", &out->memory.server_before_bytes, &out->memory.server_held_bytes);
  read_growth(&node, "kernel_slab", &out->memory.kernel_before_bytes, &out->memory.kernel_held_bytes);
}

static void read_derived(const struct json_node *root, struct report *out) {
  struct json_node node = json_nullable_object_at(root, "derived");
  if (!node.value) return;
  struct json_node cpu = json_member(&node, "server_cpu_s"), send = json_member(&node, "send_cost_ns");
  out->server_cpu_s = json_double_of(&cpu);
  if (!json_is_nothing(&send)) out->workload.send_cost_ns = (uint64_t)json_double_of(&send);
}

static void read_workers(const struct json_node *root, struct report *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(U32, struct report_worker, clients)},
      {JSON_FIELD(DOUBLE, struct report_worker, busy_share)},
      {JSON_FIELD(DOUBLE, struct report_worker, cpu_share)},
      {JSON_FIELD(U64, struct report_worker, clock_gaps)},
      {JSON_FIELD(U64, struct report_worker, clock_gap_ns)},
      {JSON_FIELD(U64, struct report_worker, longest_gap_ns)},
      {JSON_FIELD(U64, struct report_worker, rss_bytes)},
      {JSON_FIELD(I32, struct report_worker, nice)},
      {JSON_FIELD(U64, struct report_worker, private_bytes)},
      {JSON_FIELD(BOOL, struct report_worker, died)},
  };
  struct json_node list = json_array_at(root, "workers", WORKERS_MAX);
  uint32_t count = (uint32_t)json_length(&list);
  out->worker = calloc(count ? count : 1, sizeof *out->worker);
  if (!out->worker) {
    json_refuse(&list, "out of memory");
    return;
  }
  out->workers = count;
  for (uint32_t i = 0; i < count; i++) {
    struct json_node item = json_item(&list, i);
    READ(&item, fields, &out->worker[i]);
  }
}

static void read_limitations(const struct json_node *root, struct report *out) {
  const size_t most = sizeof out->limitations / sizeof out->limitations[0] - 1;
  struct json_node list = json_array_at(root, "limitations", most);
  for (size_t i = 0; i < json_length(&list); i++) {
    struct json_node item = json_item(&list, i);
    out->limitations[i] = json_text_of(&item);
  }
}

static void read_head(const struct json_node *root, struct report *out) {
  static const struct json_field fields[] = {
      {JSON_FIELD(CHARS, struct report, run_id)},
      {JSON_FIELD(CHARS, struct report, started_at)},
      {JSON_FIELD_OR_NULL("measure_started_at", CHARS, struct report, measure_started_at)},
      {JSON_FIELD_OR_NULL("measure_ended_at", CHARS, struct report, measure_ended_at)},
      {JSON_FIELD(BOOL, struct report, has_acks)},
  };
  READ(root, fields, out);
}

static int64_t read_version(const struct json_node *root) {
  struct json_node node = json_member(root, "schema_version");
  int64_t version = json_int_of(&node, 1, INT64_MAX);
  if (version > REPORT_SCHEMA_VERSION) {
    json_refuse(&node, "the report has version %lld and this muster reads 1 to %d: use the muster that wrote it",
        (long long)version, REPORT_SCHEMA_VERSION);
  }
  return version;
}

static void read_report(const struct json_node *root, struct report *out) {
  int64_t version = read_version(root);
  if (root->reader->status != STATUS_OK) return;
  read_head(root, out);
  read_tool(root, out);
  read_verdict(root, out);
  read_workload(root, &out->workload);
  read_target(root, &out->target);
  read_environment(root, &out->environment);
  read_phases(root, out);
  read_tallies(root, out);
  read_server_counters(root, out);
  read_rates(root, out);
  read_latencies(root, version, out);
  read_series(root, out);
  operations_read_json(root, out);
  read_storm(root, out);
  read_backlog(root, out);
  read_workers(root, out);
  read_memory(root, out);
  read_derived(root, out);
  observed_read_json(root, out);
  read_limitations(root, out);
}

enum status report_from_document(const struct document *document, struct report *out, struct err *err) {
  *out = (struct report){0};
  if (document->kind != DOCUMENT_RUN) {
    return err_set(err, STATUS_USAGE, "%.200s: is a %s, and the report of a run is needed here", document->name,
        document_kind_name(document->kind));
  }
  struct json_reader reader = {.file = document->name, .texts = &out->texts, .err = err};
  struct json_node root = json_root(&reader, document->root);
  read_report(&root, out);
  if (reader.status != STATUS_OK) report_free(out);
  return reader.status;
}

enum status report_read_json(const char *path, struct report *out, struct err *err) {
  struct document document;
  *out = (struct report){0};
  enum status status = document_read(path, &document, err);
  if (status == STATUS_OK) status = report_from_document(&document, out, err);
  document_free(&document);
  return status;
}
