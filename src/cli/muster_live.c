#include "cli/muster_live.h"

#include "report/json_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RATE_SPAN_S 1.0

bool live_has_traffic(enum run_phase phase) {
  return phase == RUN_WARM_UP || phase == RUN_MEASURE || phase == RUN_GRACE || phase == RUN_CATCH_UP;
}

static struct live_counts counts_at(const struct run_progress *p, double at_s) {
  return (struct live_counts){at_s, p->established, p->scheduled, p->acked, p->delivered};
}

static double rate(uint64_t from, uint64_t to, double span_s) {
  return to > from && span_s > 0 ? (double)(to - from) / span_s : 0;
}

/* Warm-up and measure count anew; the phases behind them go on with what was measured. */
static bool counts_start_anew(enum run_phase from, enum run_phase to) {
  return from != to && to <= RUN_MEASURE;
}

void live_update(struct live *live, const struct run_progress *progress, double at_s) {
  struct live_counts now = counts_at(progress, at_s);
  if (!live->started || counts_start_anew(live->now.phase, progress->phase)) live->mark = live->earlier = now;
  live->started = true;
  live->now = *progress;
  /* Two marks, so that a rate is always of at least half the span. */
  if (at_s - live->mark.at_s >= RATE_SPAN_S / 2) {
    live->earlier = live->mark;
    live->mark = now;
  }
  double span_s = at_s - live->earlier.at_s;
  live->established_per_sec = rate(live->earlier.established, now.established, span_s);
  live->scheduled_per_sec = rate(live->earlier.scheduled, now.scheduled, span_s);
  live->acked_per_sec = rate(live->earlier.acked, now.acked, span_s);
  live->delivered_per_sec = rate(live->earlier.delivered, now.delivered, span_s);
}

uint64_t live_awaited(const struct run_progress *progress) {
  double expected = (double)(progress->has_acks ? progress->acked : progress->attempted) * progress->fan_out;
  return expected > (double)progress->delivered ? (uint64_t)(expected - (double)progress->delivered + 0.5) : 0;
}

double live_share(const struct run_progress *progress) {
  if (progress->phase == RUN_CONNECT && progress->clients > 0)
    return (double)(progress->established + progress->failed) / (double)progress->clients;
  if (progress->phase_length_s <= 0) return 0;
  double share = progress->phase_elapsed_s / progress->phase_length_s;
  return share > 1 ? 1 : share;
}

static double ms_of(int64_t ns) {
  return (double)ns / 1e6;
}

static void put_counts(struct json_writer *w, const struct live *live) {
  const struct run_progress *p = &live->now;
  json_open_object(w, "connections");
  json_put_uint(w, "clients", p->clients);
  json_put_uint(w, "established", p->established);
  json_put_uint(w, "failed", p->failed);
  json_put_uint(w, "dropped", p->dropped);
  json_put_double(w, "established_per_second", live->established_per_sec);
  json_close_object(w);
  json_open_object(w, "publishes");
  json_put_uint(w, "scheduled", p->scheduled);
  json_put_uint(w, "attempted", p->attempted);
  json_put_bool(w, "has_acks", p->has_acks);
  json_put_uint(w, "acked", p->acked);
  json_put_uint(w, "rejected", p->rejected);
  json_put_uint(w, "timed_out", p->timed_out);
  json_put_double(w, "scheduled_per_second", live->scheduled_per_sec);
  json_put_double(w, "acked_per_second", live->acked_per_sec);
  json_close_object(w);
  json_open_object(w, "deliveries");
  json_put_uint(w, "observed", p->delivered);
  json_put_uint(w, "awaited", live_awaited(p));
  json_put_double(w, "observed_per_second", live->delivered_per_sec);
  json_close_object(w);
}

static void put_latency(struct json_writer *w, const char *key, int64_t p50_ns, int64_t p99_ns) {
  if (p50_ns == 0) {
    json_put_null(w, key);
    return;
  }
  json_open_object(w, key);
  json_put_double(w, "p50_ms", ms_of(p50_ns));
  json_put_double(w, "p99_ms", ms_of(p99_ns));
  json_close_object(w);
}

static void write_json(FILE *file, const struct live *live) {
  const struct run_progress *p = &live->now;
  struct json_writer w = {.file = file};
  json_open_object(&w, NULL);
  json_put_text(&w, "workload", live->workload);
  json_put_text(&w, "target", live->target);
  json_put_text(&w, "phase", run_phase_name(p->phase));
  json_put_double(&w, "elapsed_s", p->phase_elapsed_s);
  json_put_double(&w, "length_s", p->phase_length_s);
  json_put_double(&w, "share", live_share(p));
  put_counts(&w, live);
  put_latency(&w, "ack", p->ack_p50_ns, p->ack_p99_ns);
  put_latency(&w, "delivery", p->delivery_p50_ns, p->delivery_p99_ns);
  json_put_double(&w, "worst_core_busy", p->worst_busy_share);
  json_close_object(&w);
}

struct metric {
  const char *name, *type, *help;
  double value;
};

static void write_openmetrics(FILE *file, const struct live *live) {
  const struct run_progress *p = &live->now;
  const struct metric metrics[] = {
      {"muster_clients", "gauge", "Clients that the current phase wants connected.", (double)p->clients},
      {"muster_connections_established", "counter", "Connections established.", (double)p->established},
      {"muster_connections_failed", "counter", "Connections that failed.", (double)p->failed},
      {"muster_connections_dropped", "counter", "Established connections lost.", (double)p->dropped},
      {"muster_publishes_scheduled", "counter", "Publishes of the traffic phase that fell due.", (double)p->scheduled},
      {"muster_publishes_attempted", "counter", "Publishes handed to a transport.", (double)p->attempted},
      {"muster_publishes_acked", "counter", "Publishes that the server acknowledged.", (double)p->acked},
      {"muster_publishes_rejected", "counter", "Publishes that the server refused.", (double)p->rejected},
      {"muster_publishes_timed_out", "counter", "Publishes without an answer in time.", (double)p->timed_out},
      {"muster_deliveries_observed", "counter",
          "First arrivals at recipients who could hear, also of publishes not acked.", (double)p->delivered},
      {"muster_deliveries_awaited", "gauge", "Deliveries under way, or lost.", (double)live_awaited(p)},
      {"muster_worst_core_busy_ratio", "gauge", "Busy share of the busiest worker.", p->worst_busy_share},
      {"muster_phase_elapsed_seconds", "gauge", "Time in the current phase.", p->phase_elapsed_s},
  };
  for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
    const struct metric *m = &metrics[i];
    fprintf(file, "# TYPE %s %s\n# HELP %s %s\n%s%s %.17g\n", m->name, m->type, m->name, m->help, m->name,
        strcmp(m->type, "counter") == 0 ? "_total" : "", m->value);
  }
  fputs("# TYPE muster_phase stateset\n# HELP muster_phase The phase that the run is in.\n", file);
  for (int phase = RUN_SETUP; phase <= RUN_TEARDOWN; phase++)
    fprintf(file, "muster_phase{muster_phase=\"%s\"} %d\n", run_phase_name((enum run_phase)phase),
        p->phase == (enum run_phase)phase);
  fputs("# TYPE muster_latency_seconds gauge\n# UNIT muster_latency_seconds seconds\n"
        "# HELP muster_latency_seconds Percentiles of the last whole second, on the scheduled clock.\n",
      file);
  const struct {
    const char *clock, *percentile;
    int64_t ns;
  } latencies[] = {{"ack", "50", p->ack_p50_ns}, {"ack", "99", p->ack_p99_ns}, {"delivery", "50", p->delivery_p50_ns},
      {"delivery", "99", p->delivery_p99_ns}};
  for (size_t i = 0; i < sizeof latencies / sizeof latencies[0]; i++) {
    if (latencies[i].ns > 0)
      fprintf(file, "muster_latency_seconds{clock=\"%s\",percentile=\"%s\"} %.9g\n", latencies[i].clock,
          latencies[i].percentile, (double)latencies[i].ns / 1e9);
  }
  fputs("# EOF\n", file);
}

static size_t written(
    void (*write)(FILE *file, const struct live *live), const struct live *live, char *out, size_t size) {
  FILE *file = fmemopen(out, size, "w");
  if (!file) return 0;
  write(file, live);
  long end = ftell(file);
  bool is_whole = fflush(file) == 0 && !ferror(file);
  is_whole &= fclose(file) == 0;
  return is_whole && end > 0 && (size_t)end < size ? (size_t)end : 0;
}

size_t live_json(const struct live *live, char *out, size_t size) {
  size_t len = written(write_json, live, out, size);
  for (size_t i = 0; i < len; i++) {
    if (out[i] == '\n') out[i] = ' ';
  }
  return len;
}

size_t live_openmetrics(const struct live *live, char *out, size_t size) {
  return written(write_openmetrics, live, out, size);
}
