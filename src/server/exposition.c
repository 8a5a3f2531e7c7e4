#include "server/exposition.h"

#include "base/clock.h"
#include "build_facts.h"
#include "server/core.h"
#include "server/gateway.h"
#include "server/ricochet.h"
#include "server/shootout.h"

#include <dirent.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum type { GAUGE, COUNTER, HISTOGRAM, INFO };
enum place { GATEWAYS, GATEWAYS_MAX, CORE };

/* Rows of one name follow each other: they are one family. */
struct metric {
  const char *name;
  enum type type;
  const char *unit, *help;
  const char *label, *value; /* NULL: none */
  enum place place;
  size_t offset;
};

#define G(field) GATEWAYS, offsetof(struct gateway_stats, field)
#define C(field) CORE, offsetof(struct core_stats, field)
#define DELIVERIES "musterd_deliveries", COUNTER, NULL, "Messages given to clients, by the way they took."
#define DROPPED "musterd_connections_dropped", COUNTER, NULL, "Connections that the server ended, by cause."
#define DISCARDED "musterd_messages_discarded", COUNTER, NULL, "What lossy deliveries left out, by kind."
#define NOTICES "musterd_notices", COUNTER, NULL, "Notices that ask clients to pull, by kind."

static const struct metric metrics[] = {
    {"musterd_connections", GAUGE, NULL, "TCP connections that are open.", NULL, NULL, G(connections)},
    {"musterd_connections_accepted", COUNTER, NULL, "TCP connections accepted.", NULL, NULL, G(accepted)},
    {"musterd_connections_upgraded", COUNTER, NULL, "Connections upgraded to WebSocket.", NULL, NULL, G(upgraded)},
    {DROPPED, "cause", "slow_reader", G(slow_readers_dropped)},
    {DROPPED, "cause", "deadline", G(deadlines)},
    {DROPPED, "cause", "protocol_error", G(protocol_errors)},
    {DROPPED, "cause", "kicked", G(kicked)},
    {DROPPED, "cause", "table_full", G(refused)},
    {"musterd_sessions", GAUGE, NULL, "Sessions that are logged in.", NULL, NULL, G(sessions)},
    {"musterd_logins", COUNTER, NULL, "Logins, by outcome.", "outcome", "accepted", G(logins)},
    {"musterd_logins", COUNTER, NULL, "Logins, by outcome.", "outcome", "refused", G(login_failures)},
    {"musterd_users", GAUGE, NULL, "Users that are known.", NULL, NULL, C(users)},
    {"musterd_users_online", GAUGE, NULL, "Users with a session.", NULL, NULL, C(online)},
    {"musterd_frames_received", COUNTER, NULL, "Protocol frames from clients.", NULL, NULL, G(frames_in)},
    {"musterd_publishes", COUNTER, NULL, "Publishes that the core worked on.", NULL, NULL, C(publishes)},
    {"musterd_publish_acks", COUNTER, NULL, "Publishes acked with success.", NULL, NULL, C(acks)},
    {"musterd_publish_rejects", COUNTER, NULL, "Publishes answered with an error.", NULL, NULL, C(rejects)},
    {"musterd_publish_duplicates", COUNTER, NULL, "Repeated publishes, answered as before.", NULL, NULL, C(duplicates)},
    {"musterd_rate_limited", COUNTER, NULL, "Requests refused by the limit per connection.", NULL, NULL,
        G(rate_limited)},
    {"musterd_fan_out_copies", COUNTER, NULL, "Copies placed for recipients, online or not.", NULL, NULL,
        C(fan_out_targets)},
    {DELIVERIES, "how", "push", G(pushes)},
    {DELIVERIES, "how", "sync", C(synced)},
    {DELIVERIES, "how", "room_pull", C(room_pulled)},
    {DELIVERIES, "how", "state", G(states)},
    {"musterd_delivery_acks", COUNTER, NULL, "Acks of clients for pushes.", NULL, NULL, G(acks_in)},
    {"musterd_sender_copies", COUNTER, NULL, "Copies for other sessions of the sender.", NULL, NULL, G(copies)},
    {NOTICES, "kind", "message", G(notices)},
    {NOTICES, "kind", "room", G(room_notices_written)},
    {"musterd_notices_coalesced", COUNTER, NULL, "Notices left out: one was on its way.", NULL, NULL,
        G(notices_coalesced)},
    {DISCARDED, "kind", "state", G(states_dropped)},
    {DISCARDED, "kind", "room_notice", G(room_notices_dropped)},
    {DISCARDED, "kind", "room_message", C(room_dropped)},
    {"musterd_queries", COUNTER, NULL, "Queries of clients.", NULL, NULL, G(queries)},
    {"musterd_sync_queries", COUNTER, NULL, "Queries that pull messages.", NULL, NULL, C(sync_queries)},
    {"musterd_chatrooms", GAUGE, NULL, "Chatrooms.", NULL, NULL, C(rooms)},
    {"musterd_chatroom_members", GAUGE, NULL, "Members of all chatrooms.", NULL, NULL, C(room_members)},
    {"musterd_chatroom_messages", COUNTER, NULL, "Messages accepted by chatrooms.", NULL, NULL, C(room_messages)},
    {"musterd_backpressure_pauses", COUNTER, NULL, "Times that reading from a connection was paused.", NULL, NULL,
        G(pauses)},
    {"musterd_session_output_peak_bytes", GAUGE, "bytes", "Most output that ever waited for one session.", NULL, NULL,
        GATEWAYS_MAX, offsetof(struct gateway_stats, output_peak)},
    {"musterd_core_queue_requests", GAUGE, NULL, "Requests that wait for the core.", NULL, NULL, C(queue_depth)},
    {"musterd_store_rows", COUNTER, NULL, "Rows written to the store.", NULL, NULL, C(rows)},
};

const char *exposition_content_type(enum exposition format) {
  return format == EXPOSITION_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                          : "text/plain; version=0.0.4; charset=utf-8";
}

/* What a sample's name has behind the family's. */
static const char *suffix_of(enum type type) {
  return type == COUNTER ? "_total" : type == INFO ? "_info" : "";
}

/* OpenMetrics names the family, the older format the samples. */
static void put_head(FILE *page, enum exposition format, const struct metric *family) {
  static const char *const types[] = {"gauge", "counter", "histogram", "info"};
  bool open = format == EXPOSITION_OPENMETRICS;
  const char *suffix = open ? "" : suffix_of(family->type);
  const char *type = !open && family->type == INFO ? "gauge" : types[family->type];
  fprintf(page, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, suffix, family->help, family->name, suffix, type);
  if (open && family->unit) fprintf(page, "# UNIT %s %s\n", family->name, family->unit);
}

static uint64_t read_counter(const void *stats, size_t offset) {
  return atomic_load_explicit((const atomic_uint_fast64_t *)((const char *)stats + offset), memory_order_relaxed);
}

static uint64_t value_of(const struct metrics_source *source, const struct metric *metric) {
  uint64_t sum = 0;
  if (metric->place == CORE) return read_counter(core_stats(source->core), metric->offset);
  for (uint32_t i = 0; i < source->gateway_count; i++) {
    uint64_t value = read_counter(&source->gateways[i].stats, metric->offset);
    if (metric->place == GATEWAYS) sum += value;
    if (metric->place == GATEWAYS_MAX && value > sum) sum = value;
  }
  return sum;
}

static void put_counters(FILE *page, enum exposition format, const struct metrics_source *source) {
  const char *before = "";
  for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
    const struct metric *metric = &metrics[i];
    if (strcmp(metric->name, before) != 0) put_head(page, format, metric);
    before = metric->name;
    fprintf(page, "%s%s", metric->name, suffix_of(metric->type));
    if (metric->label) fprintf(page, "{%s=\"%s\"}", metric->label, metric->value);
    fprintf(page, " %" PRIu64 "\n", value_of(source, metric));
  }
}

static void put_commits(FILE *page, enum exposition format, const struct metrics_source *source) {
  static const struct metric family = {.name = "musterd_commit_duration_seconds",
      .type = HISTOGRAM,
      .unit = "seconds",
      .help = "Duration of commits of the store, each of which acks may wait for."};
  const struct core_stats *stats = core_stats(source->core);
  uint64_t count = 0;
  put_head(page, format, &family);
  for (int i = 0; i <= CORE_COMMIT_BOUNDS; i++) {
    count += atomic_load_explicit(&stats->commit_bucket[i], memory_order_relaxed);
    if (i < CORE_COMMIT_BOUNDS) {
      fprintf(page, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", family.name, (double)core_commit_bound_us[i] / 1e6, count);
    } else {
      fprintf(page, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", family.name, count);
    }
  }
  double sum_s = (double)atomic_load_explicit(&stats->commit_ns, memory_order_relaxed) / 1e9;
  fprintf(page, "%s_sum %.9f\n%s_count %" PRIu64 "\n", family.name, sum_s, family.name, count);
}

static void put_shootout(FILE *page, enum exposition format, const struct shootout *house) {
  struct shootout_totals totals;
  if (!house) return;
  shootout_read(house, &totals);
  const struct {
    struct metric family;
    uint64_t value;
  } rows[] = {
      {{.name = "musterd_shootout_connections", .type = GAUGE, .help = "Connections to the shootout port."},
          totals.connections},
      {{.name = "musterd_shootout_echoes", .type = COUNTER, .help = "Echoes answered."}, totals.echoes},
      {{.name = "musterd_shootout_broadcasts", .type = COUNTER, .help = "Broadcasts taken."}, totals.broadcasts},
      {{.name = "musterd_shootout_deliveries", .type = COUNTER, .help = "Copies of broadcasts given to connections."},
          totals.copies},
      {{.name = "musterd_shootout_slow_readers_dropped", .type = COUNTER, .help = "Connections that did not read."},
          totals.slow_readers_dropped},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    put_head(page, format, &rows[i].family);
    fprintf(page, "%s%s %" PRIu64 "\n", rows[i].family.name, suffix_of(rows[i].family.type), rows[i].value);
  }
}

static void put_answers(FILE *page, const char *name, enum ricochet_protocol protocol, const uint64_t *answered) {
  for (size_t i = 0; i < RICOCHET_OUTCOMES; i++) {
    char status[16] = "none";
    if (!answered[i]) continue;
    if (ricochet_outcomes[i]) snprintf(status, sizeof status, "%" PRId32, ricochet_outcomes[i]);
    fprintf(page, "%s_total{protocol=\"%s\",status=\"%s\"} %" PRIu64 "\n", name, ricochet_protocol_id(protocol), status,
        answered[i]);
  }
}

static void put_ricochet(FILE *page, enum exposition format, const struct ricochet_house *house) {
  static const struct metric connections = {
      .name = "musterd_ricochet_connections", .type = GAUGE, .help = "Peers that are connected."};
  static const struct metric streams = {
      .name = "musterd_ricochet_streams", .type = GAUGE, .help = "Streams whose response has not left."};
  static const struct metric requests = {.name = "musterd_ricochet_requests",
      .type = COUNTER,
      .help = "Requests answered, by protocol and status; none: refused without one."};
  struct ricochet_totals totals;
  if (!house) return;
  ricochet_house_read(house, &totals);
  put_head(page, format, &connections);
  fprintf(page, "%s %" PRIu64 "\n", connections.name, totals.connections);
  put_head(page, format, &streams);
  fprintf(page, "%s %" PRIu64 "\n", streams.name, totals.streams);
  put_head(page, format, &requests);
  for (int i = 0; i < RICOCHET_NOTIFY; i++)
    put_answers(page, requests.name, (enum ricochet_protocol)i, totals.answered[i]);
}

/* --- the process --- */

static void put_one(FILE *page, enum exposition format, const struct metric *family, double value) {
  put_head(page, format, family);
  fprintf(page, "%s%s %.15g\n", family->name, suffix_of(family->type), value);
}

static uint64_t count_descriptors(void) {
  uint64_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  if (!folder) return 0;
  while (readdir(folder))
    count++;
  closedir(folder);
  return count > 3 ? count - 3 : 0; /* without ".", ".." and the folder itself */
}

static double cpu_s(void) {
  struct timespec used;
  return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0 ? (double)used.tv_sec + (double)used.tv_nsec / 1e9 : 0;
}

static void put_process(FILE *page, enum exposition format, const struct metrics_source *source) {
  unsigned long pages = 0, resident = 0;
  struct rlimit limit = {0};
  FILE *statm = fopen("/proc/self/statm", "re");
  if (statm) {
    char line[128] = "", *end = line;
    if (fgets(line, sizeof line, statm)) pages = strtoul(line, &end, 10);
    resident = strtoul(end, NULL, 10);
    fclose(statm);
  }
  getrlimit(RLIMIT_NOFILE, &limit);
  double page_bytes = (double)sysconf(_SC_PAGESIZE);
  double age_s = (double)(clock_now_ns() - source->started_ns) / 1e9;
  const struct {
    struct metric family;
    double value;
  } rows[] = {
      {{.name = "process_cpu_seconds", .type = COUNTER, .unit = "seconds", .help = "CPU time, user and system."},
          cpu_s()},
      {{.name = "process_resident_memory_bytes", .type = GAUGE, .unit = "bytes", .help = "Resident memory."},
          (double)resident * page_bytes},
      {{.name = "process_virtual_memory_bytes", .type = GAUGE, .unit = "bytes", .help = "Virtual memory."},
          (double)pages * page_bytes},
      {{.name = "process_start_time_seconds", .type = GAUGE, .unit = "seconds", .help = "Start, since the epoch."},
          (double)clock_wall_ms() / 1e3 - age_s},
      {{.name = "process_open_fds", .type = GAUGE, .help = "Open file descriptors of the API's threads."},
          (double)count_descriptors()},
      {{.name = "process_max_fds", .type = GAUGE, .help = "Limit of open file descriptors."}, (double)limit.rlim_cur},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    put_one(page, format, &rows[i].family, rows[i].value);
}

static void put_build(FILE *page, enum exposition format, const struct metrics_source *source) {
  static const struct metric family = {.name = "musterd_build", .type = INFO, .help = "What this musterd is."};
  put_head(page, format, &family);
  fprintf(page, "musterd_build_info{version=\"%s\",commit=\"%s\",ack=\"%s\"} 1\n", MUSTER_VERSION, MUSTER_COMMIT,
      source->is_durable ? "durable" : "received");
}

char *exposition_page(const struct metrics_source *source, enum exposition format) {
  char *text = NULL;
  size_t len = 0;
  FILE *page = open_memstream(&text, &len);
  if (!page) return NULL;
  put_build(page, format, source);
  put_counters(page, format, source);
  put_commits(page, format, source);
  put_shootout(page, format, source->shootout);
  put_ricochet(page, format, source->ricochet);
  put_process(page, format, source);
  if (format == EXPOSITION_OPENMETRICS) fputs("# EOF\n", page);
  bool failed = ferror(page) != 0;
  if (fclose(page) == 0 && !failed) return text;
  free(text);
  return NULL;
}
