/* Made-up reports: a plausible valid one, and one whose every number is a prime of its own. */
#ifndef UNIT_REPORT_SAMPLE_H
#define UNIT_REPORT_SAMPLE_H

#include "report/document.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline const char *sample_code_text(int32_t code) {
  return code == 11014 ? "too many requests" : NULL;
}

static inline struct histogram *sample_histogram(int64_t value_ns, uint64_t count) {
  struct histogram *h = calloc(1, sizeof *h);
  histogram_reset(h);
  histogram_record_many(h, value_ns, count);
  return h;
}

/* One process, a row before the measure phase (half of it unknown) and two in it. */
static inline void sample_observe(struct report *r) {
  static const double values[] = {-0.5, NAN, 1000691, 1.005, 0.25, 1000693, 2.005, 0.75, 1000695};
  r->observed = calloc(1, sizeof *r->observed);
  r->observations = 1;
  *r->observed = (struct report_observed){.source = "pid:7",
      .label = "a server",
      .error = "1 of 3 samples: gone for a while",
      .role = OBSERVED_SERVER,
      .interval_s = 1,
      .columns = 2,
      .rows = 3,
      .column = calloc(2, sizeof *r->observed->column),
      .value = malloc(sizeof values)};
  snprintf(r->observed->column[0], OBSERVED_COLUMN_MAX, "cpu_cores");
  snprintf(r->observed->column[1], OBSERVED_COLUMN_MAX, "rss_bytes");
  memcpy(r->observed->value, values, sizeof values);
}

/* 20 clients in a ring, 100/s for 10 s, everything well. The caller frees it with report_free. */
static inline struct report sample_valid(void) {
  struct report r = {
      .run_id = "0123456789abcdef",
      .started_at = "2026-12-01T10:00:00Z",
      .measure_started_at = "2026-12-01T10:00:03.5Z",
      .measure_ended_at = "2026-12-01T10:00:13.5Z",
      .workload = {.name = "private",
          .topology = TOPOLOGY_RING,
          .clients = 20,
          .senders = 20,
          .rate_per_sec = 100,
          .warmup_ns = 2000000000,
          .duration_ns = 10000000000,
          .grace_ns = 3000000000,
          .setup_deadline_ns = 120000000000,
          .connect_deadline_ns = 30000000000,
          .ack_timeout_ns = 10000000000,
          .teardown_deadline_ns = 10000000000,
          .payload_bytes = 256,
          .connect_concurrency = 20,
          .setup_concurrency = 10,
          .workers = 1,
          .seed = 7,
          .store = true,
          .count = true,
          .obfuscate = true,
          .ack_policy = "durable"},
      .environment = {.cpu_model = "A CPU",
          .kernel = "Linux 6",
          .hostname = "host",
          .os = "An OS",
          .logical_cpus = 2,
          .usable_cpus = 2,
          .memory_bytes = 1 << 30,
          .nofile_soft = 1024,
          .nofile_hard = 4096,
          .congestion_control = "cubic"},
      .target = {.url = "ws://127.0.0.1:9003",
          .protocol = "juggle",
          .protocol_title = "JuggleIM",
          .server_version = "musterd-0.1.0",
          .ack_meaning = "stored",
          .delivery = "pushed once",
          .embedded = true,
          .shares_host = true,
          .ack_policy = "durable",
          .rate_limits = "off",
          .storage = "SQLite"},
      .limitations = {"server and generator share the host"},
      .setup_s = 0.5,
      .connect_s = 0.25,
      .warmup_s = 2,
      .measure_s = 10,
      .grace_s = 0.125,
      .has_acks = true,
      .code_text = sample_code_text,
  };
  r.measure.connections.attempted = r.measure.connections.established = 20;
  r.measure.publishes.scheduled = r.measure.publishes.attempted = r.measure.publishes.acked = 1000;
  r.measure.deliveries.expected = r.measure.deliveries.observed = 1000;
  r.clock[CLOCK_ACK] = sample_histogram(1000000, 1000);
  r.clock[CLOCK_SCHEDULE_LAG] = sample_histogram(20000, 1000);
  r.seconds = 2;
  r.second = calloc(r.seconds, sizeof *r.second);
  r.workers = 1;
  r.worker = calloc(r.workers, sizeof *r.worker);
  r.worker[0] = (struct report_worker){.clients = 20, .busy_share = 0.1, .cpu_share = 0.05, .rss_bytes = 1 << 20};
  return r;
}

/* Not consistent with itself, only recognisable: every figure differs from every other one. */
static inline struct report sample_primes(void) {
  struct report r = sample_valid();
  struct tally *t = &r.measure;
  t->connections.attempted = 1000003;
  t->connections.established = 1000033;
  t->connections.reconnected = 1000037;
  codes_add(&t->connections.failed, CAUSE_CONNECT_REFUSED, 1000039);
  codes_add(&t->connections.dropped, CAUSE_RESET, 1000081);
  t->publishes.scheduled = 1000099;
  t->publishes.attempted = 1000117;
  t->publishes.acked = 1000121;
  t->publishes.acked_late = 1000123;
  codes_add(&t->publishes.unsent, CAUSE_BLOCKED, 1000133);
  codes_add(&t->publishes.rejected, 11014, 1000151);
  codes_add(&t->publishes.rejected, 12345, 1000159);
  codes_add(&t->publishes.timed_out, CAUSE_NO_ANSWER, 1000171);
  t->deliveries.expected = 1000183;
  t->deliveries.observed = 1000187;
  t->deliveries.lost = 1000193;
  t->deliveries.duplicate = 1000199;
  t->deliveries.overlap = 1000201;
  t->deliveries.reordered = 1000211;
  t->deliveries.corrupt = 1000213;
  t->deliveries.unexpected = 1000231;
  t->deliveries.late = 1000249;
  t->deliveries.unacked_delivered = 1000253;
  t->bytes_sent = 1000273;
  t->bytes_received = 1000289;
  r.warmup.publishes.scheduled = 1000291;
  r.warmup.publishes.attempted = 1000303;
  r.warmup.deliveries.observed = 1000313;
  r.worker[0] = (struct report_worker){.clients = 1000333,
      .busy_share = 0.317,
      .cpu_share = 0.211,
      .clock_gaps = 1000357,
      .clock_gap_ns = 1000367,
      .longest_gap_ns = 1000381,
      .rss_bytes = 1000393,
      .nice = -7,
      .died = true};
  r.second[0] = (struct report_second){.scheduled = 1000397,
      .attempted = 1000403,
      .acked = 1000409,
      .rejected = 1000423,
      .delivered = 1000427,
      .established = 1000429,
      .dropped = 1000453,
      .ack = {1000457, 1000507, 1000537, 1000541},
      .delivery = {1000547, 1000577, 1000579, 1000589},
      .schedule_lag = {1000609, 1000619, 1000621, 1000639}};
  sample_observe(&r);
  r.fan_out = 1.3125;
  r.acks_per_second = 1000651.5;
  r.deliveries_per_second = 1000667.5;
  r.attempts_per_second = 1000669.5;
  r.connections_per_second = 1000679.5;
  return r;
}

/* What a report function writes, as one NUL-terminated text that the caller frees. */
static inline char *sample_written(
    enum status (*write)(FILE *, const struct report *, struct err *), const struct report *report) {
  char *text = NULL;
  size_t len = 0;
  FILE *file = open_memstream(&text, &len);
  struct err err = {0};
  if (write(file, report, &err) != STATUS_OK) abort();
  fclose(file);
  return text;
}

#endif
