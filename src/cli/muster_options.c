#include "cli/muster_options.h"

#include "base/clock.h"
#include "base/rng.h"
#include "cli/muster_scenario.h"
#include "cli/muster_unread.h"
#include "cli/muster_workloads.h"
#include "driver/driver.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind {
  KIND_TEXT,
  KIND_COUNT,
  KIND_RATE,
  KIND_SCALE,
  KIND_DURATION,
  KIND_SEED,
  KIND_FLAG,
  KIND_CHOICE,
  KIND_SLO,
  KIND_OBSERVE,
  KIND_DRIVER,
  KIND_WORKLOAD
};
enum group {
  GROUP_SCENARIO,
  GROUP_POPULATION,
  GROUP_TOPOLOGY,
  GROUP_ARRIVALS,
  GROUP_PAYLOAD,
  GROUP_STOP,
  GROUP_PHASES,
  GROUP_SHOOTOUT,
  GROUP_TARGET,
  GROUP_MQTT,
  GROUP_OPERATIONS,
  GROUP_EMBEDDED,
  GROUP_OBJECTIVES,
  GROUP_LIMITS,
  GROUP_LABELS,
  GROUP_OUTPUT,
  GROUPS
};

/* section: where a scenario file may give the group's options; NULL: only the command line gives them. topic: what
 * `muster help run` calls it. */
static const struct {
  const char *section, *title, *topic;
} groups[GROUPS] = {
    [GROUP_SCENARIO] = {"", "Scenario", "scenario"},
    [GROUP_POPULATION] = {"population", "Population", "population"},
    [GROUP_TOPOLOGY] = {"topology", "Topology", "topology"},
    [GROUP_ARRIVALS] = {"arrivals", "Arrivals", "arrivals"},
    [GROUP_PAYLOAD] = {"payload", "Payload", "payload"},
    [GROUP_STOP] = {"stop", "Stop", "stop"},
    [GROUP_PHASES] = {"phases", "Phases", "phases"},
    [GROUP_SHOOTOUT] = {NULL, "Echo and broadcast as websocket-bench spells them (its searches: `muster help find`)",
        "shootout"},
    [GROUP_TARGET] = {"server", "Target (without --target an embedded musterd is started and driven)", "target"},
    [GROUP_MQTT] = {"mqtt", "MQTT (mqtt://, mqtts://, mqtt+ws://, mqtt+wss://)", "mqtt"},
    [GROUP_OPERATIONS] = {"operations", "Operations (msa ... sync-noop: `muster help ricochet`)", "operations"},
    [GROUP_EMBEDDED] = {"server", "Embedded musterd (only without --target)", "embedded"},
    [GROUP_OBJECTIVES] = {"objectives", "Objectives", "objectives"},
    [GROUP_LIMITS] = {"generator", "Generator and limits", "limits"},
    [GROUP_LABELS] = {"labels", "Labels", "labels"},
    [GROUP_OUTPUT] = {NULL, "Report", "report"},
};

struct option {
  const char *name;
  const char *value; /* what stands for the value in the help; for KIND_CHOICE the words, separated by '|' */
  const char *help;
  size_t offset; /* in struct run_arguments */
  uint64_t min, max;
  enum kind kind;
  enum group group;
};

#define AT(member) offsetof(struct run_arguments, member)
#define RATE_MAX 1e8
#define HOUR_NS (3600 * NS_PER_SEC)

static const struct option options[] = {
    {"scale", "X", "multiply what the scenario marks as scalable [1]", AT(scale), 0, 1000, KIND_SCALE, GROUP_SCENARIO},

    {"driver", "NAME", "protocol [juggle or shootout-json by the workload; --target's scheme]", AT(driver), 0, 0,
        KIND_DRIVER, GROUP_SCENARIO},

    {"clients", "N", "clients; group: its members, backlog: the receivers [50]", AT(workload.clients), 1, CLIENTS_MAX,
        KIND_COUNT, GROUP_POPULATION},
    {"senders", "N", "star, queue, backlog: more clients [10]; room, broadcast: of all [2]", AT(senders), 1,
        CLIENTS_MAX, KIND_COUNT, GROUP_POPULATION},
    {"receivers", "N", "star, queue: clients that only listen [40]", AT(receivers), 1, CLIENTS_MAX, KIND_COUNT,
        GROUP_POPULATION},
    {"receivers-online", "N", "star, group: listeners that connect; the others stay offline [all]",
        AT(receivers_online), 0, CLIENTS_MAX, KIND_COUNT, GROUP_POPULATION},
    {"queues", "N", "queue: queues that the receivers share [1]", AT(queues), 1, CLIENTS_MAX, KIND_COUNT,
        GROUP_POPULATION},
    {"groups", "N", "groups [4]", AT(workload.groups), 1, 1000000, KIND_COUNT, GROUP_POPULATION},
    {"members", "N", "members of each group [10]", AT(members), 2, CLIENTS_MAX, KIND_COUNT, GROUP_POPULATION},
    {"kind", "WORKLOAD", "of a scenario: the workload that it is, as star [private]", AT(kind), 0, 0, KIND_WORKLOAD,
        GROUP_TOPOLOGY},
    {"shared-groups", NULL, "groups have the same members; each sender goes round all groups",
        AT(workload.shared_groups), 0, 0, KIND_FLAG, GROUP_TOPOLOGY},
    {"rate", "N", "publishes per second, all senders together [200]", AT(workload.rate_per_sec), 0, 100000000,
        KIND_RATE, GROUP_ARRIVALS},
    {"group-senders", "N", "members of each group that publish [2]", AT(group_senders), 1, CLIENTS_MAX, KIND_COUNT,
        GROUP_TOPOLOGY},
    {"ramp-to", "N", "let the rate go to this one, linearly over the measure phase", AT(workload.ramp_to_per_sec), 0,
        100000000, KIND_RATE, GROUP_ARRIVALS},
    {"steps", "RATE,...", "rates one after the other, of equal length or each as RATE@TIME", AT(steps), 0, 0, KIND_TEXT,
        GROUP_ARRIVALS},
    {"outstanding", "N", "closed loop: every sender awaits so many answers at once", AT(workload.outstanding), 1, 32768,
        KIND_COUNT, GROUP_ARRIVALS},
    {"max-rate", "N", "closed loop: publishes per second that the accounting has room for",
        AT(workload.max_rate_per_sec), 0, 100000000, KIND_RATE, GROUP_ARRIVALS},
    {"rounds", "N", "every sender to each of its targets so often, then end", AT(workload.rounds), 1, 1000000000,
        KIND_COUNT, GROUP_ARRIVALS},
    {"interval", "TIME", "rounds: between two publishes of a sender [0s: as fast as answered]",
        AT(workload.interval_ns), 0, HOUR_NS, KIND_DURATION, GROUP_ARRIVALS},
    {"arrivals", "constant|poisson", "how publishes fall due [constant]", AT(arrivals), 0, 0, KIND_CHOICE,
        GROUP_ARRIVALS},
    {"payload-bytes", "N", "size of a message's content [256]", AT(workload.payload_bytes), 1, 1048576, KIND_COUNT,
        GROUP_PAYLOAD},
    {"warmup", "TIME", "traffic before the measure phase, not counted [2s]", AT(workload.warmup_ns), 0, 4 * HOUR_NS,
        KIND_DURATION, GROUP_PHASES},
    {"duration", "TIME", "length of the measure phase [10s]", AT(workload.duration_ns), 1, 4 * HOUR_NS, KIND_DURATION,
        GROUP_STOP},
    {"count", "N", "end the measure phase after so many publishes", AT(workload.publishes), 1, 2000000000, KIND_COUNT,
        GROUP_STOP},
    {"delivery-grace", "TIME", "wait for deliveries; in full where more may come, when given [3s]",
        AT(workload.grace_ns), 0, HOUR_NS, KIND_DURATION, GROUP_PHASES},
    {"store-messages", NULL, "ask the server to store messages [true]", AT(workload.store), 0, 0, KIND_FLAG,
        GROUP_PAYLOAD},
    {"count-messages", NULL, "let messages count as unread [true]", AT(workload.count), 0, 0, KIND_FLAG, GROUP_PAYLOAD},
    {"plain", NULL, "JuggleIM without its XOR obfuscation", AT(workload.obfuscate), 0, 0, KIND_FLAG, GROUP_PAYLOAD},
    {"seed", "N", "repeat the random parts of an earlier run [random]", AT(workload.seed), 1, UINT64_MAX, KIND_SEED,
        GROUP_ARRIVALS},

    {"concurrent", "N", "closed loop: all clients together await so many answers", AT(workload.in_flight), 1,
        CLIENTS_MAX, KIND_COUNT, GROUP_SHOOTOUT},
    {"server-type", "json|binary|phoenix|actioncable", "as --driver shootout-...", AT(server_type), 0, 0, KIND_CHOICE,
        GROUP_SHOOTOUT},

    {"target", "URL", "server to drive, as ws://127.0.0.1:9003", AT(workload.target), 0, 0, KIND_TEXT, GROUP_TARGET},
    {"api-url", "URL", "its set-up API [derived from the target]", AT(workload.api_url), 0, 0, KIND_TEXT, GROUP_TARGET},
    {"navigator", "URL", "ask this navigator for the connect address", AT(workload.navigator_url), 0, 0, KIND_TEXT,
        GROUP_TARGET},
    {"app-key", "KEY", "tenant [$MUSTER_APP_KEY]; its secret only from $MUSTER_APP_SECRET", AT(workload.app_key), 0, 0,
        KIND_TEXT, GROUP_TARGET},
    {"allow-non-loopback", NULL, "drive a server that is not on this machine", AT(workload.allow_non_loopback), 0, 0,
        KIND_FLAG, GROUP_TARGET},
    {"insecure", NULL, "accept any TLS certificate", AT(workload.tls_insecure), 0, 0, KIND_FLAG, GROUP_TARGET},
    {"ca-file", "FILE", "certificates to trust besides the system's", AT(workload.tls_ca_file), 0, 0, KIND_TEXT,
        GROUP_TARGET},

    {"origin", "URL", "Origin header of WebSocket upgrades [the target]", AT(workload.origin), 0, 0, KIND_TEXT,
        GROUP_TARGET},
    {"user", "NAME", "log in as; the password only from $MUSTER_PASSWORD", AT(workload.user), 0, 0, KIND_TEXT,
        GROUP_TARGET},
    {"cert", "FILE", "certificate that the clients show (PEM)", AT(workload.tls_certificate_file), 0, 0, KIND_TEXT,
        GROUP_TARGET},
    {"key", "FILE", "its private key (PEM)", AT(workload.tls_key_file), 0, 0, KIND_TEXT, GROUP_TARGET},

    {"mqtt-version", "3.1.1|5", "version of the protocol [5]", AT(workload.mqtt_version), 0, 0, KIND_CHOICE,
        GROUP_MQTT},
    {"qos", "N", "0, 1 or 2, of publishes and subscriptions [1]", AT(workload.qos), 0, 2, KIND_COUNT, GROUP_MQTT},
    {"clean-session", NULL, "forget sessions when connections end [true]", AT(workload.keep_session), 0, 0, KIND_FLAG,
        GROUP_MQTT},
    {"retain", NULL, "let the broker keep the last message of each topic during the run", AT(workload.retain), 0, 0,
        KIND_FLAG, GROUP_MQTT},
    {"receive-maximum", "N", "version 5: messages that a client takes before it has acked [65535]",
        AT(workload.receive_maximum), 1, 65535, KIND_COUNT, GROUP_MQTT},
    {"topic-prefix", "TEXT", "in front of every topic [muster]", AT(workload.topic_prefix), 0, 0, KIND_TEXT,
        GROUP_MQTT},

    {"batch-size", "N", "documents or messages of one request of a batch [100]", AT(workload.batch_size), 1, 100,
        KIND_COUNT, GROUP_OPERATIONS},
    {"docs", "N", "documents of the vault of sync-* [500]", AT(workload.documents), 1, 1000000, KIND_COUNT,
        GROUP_OPERATIONS},
    {"warmup-requests", "N", "requests before clients count as connected [0]", AT(workload.warmup_requests), 0, 1000000,
        KIND_COUNT, GROUP_OPERATIONS},

    {"ack", "durable|received", "ACK after the commit, or before it [durable]", AT(workload.ack_policy), 0, 0,
        KIND_CHOICE, GROUP_EMBEDDED},
    {"push-window", "N", "direct pushes without an ack from the client", AT(workload.push_window), 1, 16384, KIND_COUNT,
        GROUP_EMBEDDED},
    {"rate-limits", "on|off", "the server's limits per connection [off]", AT(rate_limits), 0, 0, KIND_CHOICE,
        GROUP_EMBEDDED},

    {"slo", "OBJECTIVE,...", "demands on the figures, as delivery.p99<250ms,lost=0", AT(slos), 0, 0, KIND_SLO,
        GROUP_OBJECTIVES},

    {"workers", "N", "generator processes [one per core]", AT(workload.workers), 1, 1024, KIND_COUNT, GROUP_LIMITS},
    {"connect-concurrency", "N", "connections in progress at once [20; hold: 256 to 4096]",
        AT(workload.connect_concurrency), 1, 65536, KIND_COUNT, GROUP_LIMITS},
    {"connect-rate", "N", "connections begun per second [as many as --connect-concurrency lets]",
        AT(workload.connect_per_sec), 0, 100000000, KIND_RATE, GROUP_LIMITS},
    {"keep-alive", "TIME", "between two keep-alives of a client [10s; above 50,000: 30s]", AT(workload.keep_alive_ns),
        1, HOUR_NS, KIND_DURATION, GROUP_POPULATION},
    {"local-addr", "ADDRESS,...", "connect from these, as 127.0.0.1-127.0.0.20 or 10.1.0.0/28",
        AT(workload.local_addresses), 0, 0, KIND_TEXT, GROUP_LIMITS},
    {"target-addr", "ADDRESS,...", "connect to these, at the target's port, as 127.0.0.1-127.0.0.4",
        AT(workload.target_addresses), 0, 0, KIND_TEXT, GROUP_LIMITS},
    {"storm-at", "TIME", "storm: when all lose their connection [a third of --duration]", AT(workload.storm_at_ns), 1,
        4 * HOUR_NS, KIND_DURATION, GROUP_ARRIVALS},
    {"storm-by", "client|server", "storm: who ends the connections [client]", AT(storm_by), 0, 0, KIND_CHOICE,
        GROUP_ARRIVALS},
    {"backoff", "TIME", "storm: wait before the first return, doubled by each [100ms]", AT(workload.backoff_first_ns),
        1, HOUR_NS, KIND_DURATION, GROUP_ARRIVALS},
    {"backoff-max", "TIME", "storm: wait no longer than this [5s]", AT(workload.backoff_max_ns), 1, HOUR_NS,
        KIND_DURATION, GROUP_ARRIVALS},
    {"backoff-jitter", "PERCENT", "storm: leave up to so much of each wait out, at random [50]",
        AT(backoff_jitter_percent), 0, 100, KIND_COUNT, GROUP_ARRIVALS},
    {"setup-concurrency", "N", "set-up calls in progress at once [10]", AT(workload.setup_concurrency), 1, 1024,
        KIND_COUNT, GROUP_LIMITS},
    {"setup-timeout", "TIME", "users and groups are made by then [2m]", AT(workload.setup_deadline_ns), 1, HOUR_NS,
        KIND_DURATION, GROUP_LIMITS},
    {"connect-timeout", "TIME", "all clients are connected by then, or count as failed [30s]",
        AT(workload.connect_deadline_ns), 1, HOUR_NS, KIND_DURATION, GROUP_LIMITS},
    {"catch-up-timeout", "TIME", "backlog: who has not connected and read by then failed [60s]",
        AT(workload.catch_up_deadline_ns), 1, HOUR_NS, KIND_DURATION, GROUP_LIMITS},
    {"ack-timeout", "TIME", "a publish without an answer has timed out [10s]", AT(workload.ack_timeout_ns), 1, HOUR_NS,
        KIND_DURATION, GROUP_LIMITS},
    {"allow-partial", NULL, "go on, and be valid, when some clients cannot connect", AT(workload.allow_partial), 0, 0,
        KIND_FLAG, GROUP_LIMITS},

    {"output", "PATH", "JSON report: a new file, or a folder [results]", AT(output), 0, 0, KIND_TEXT, GROUP_OUTPUT},
    {"json", "PATH|-", "as --output; '-' prints JSON instead of text and saves nothing", AT(json), 0, 0, KIND_TEXT,
        GROUP_OUTPUT},
    {"observe", "WHAT", "sample pid:N, cgroup:PATH or prometheus:URL;series=A,B each second", AT(observe), 0, 0,
        KIND_OBSERVE, GROUP_OUTPUT},
    {"trials", "N", "repeat, keep every report, sum up; several workloads take turns", AT(trials), 1, 1000, KIND_COUNT,
        GROUP_OUTPUT},
    {"hlog", "FILE", "HdrHistogram log of every clock, a new file; of each trial its own", AT(hlog), 0, 0, KIND_TEXT,
        GROUP_OUTPUT},
    {"html", "FILE", "the report as a page for a browser, a new file", AT(html), 0, 0, KIND_TEXT, GROUP_OUTPUT},
    {"hlog-series", "FILE", "HdrHistogram log of ack, delivery and lag, each second", AT(hlog_series), 0, 0, KIND_TEXT,
        GROUP_OUTPUT},
    {"csv", "FILE", "CSV with a row a second", AT(csv), 0, 0, KIND_TEXT, GROUP_OUTPUT},
    {"jsonl", "FILE|-", "JSON lines: one each second, at last the summary; '-' instead of text", AT(jsonl), 0, 0,
        KIND_TEXT, GROUP_OUTPUT},
    {"junit", "FILE", "JUnit XML: verdict, objectives and accounting as tests", AT(junit), 0, 0, KIND_TEXT,
        GROUP_OUTPUT},
    {"markdown", "FILE", "Markdown summary for a pull request", AT(markdown), 0, 0, KIND_TEXT, GROUP_OUTPUT},
    {"send-cost", "TIME", "send_ns of a single-send report: tells notify + pull apart", AT(workload.send_cost_ns), 1,
        NS_PER_SEC, KIND_DURATION, GROUP_LABELS},
    {"environment", "TEXT", "label: what the machine cannot tell of itself", AT(workload.environment_label), 0, 0,
        KIND_TEXT, GROUP_LABELS},
    {"database", "TEXT", "label: the server's database and its settings", AT(workload.database_label), 0, 0, KIND_TEXT,
        GROUP_LABELS},
    {"ui", "[HOST:]PORT", "a web page that follows the run and ends with its report", AT(ui), 0, 0, KIND_TEXT,
        GROUP_OUTPUT},
    {"metrics", "[HOST:]PORT", "the run's own figures as OpenMetrics while it goes on", AT(metrics), 0, 0, KIND_TEXT,
        GROUP_OUTPUT},
    {"quiet", NULL, "no progress, no notes: the report only", AT(quiet), 0, 0, KIND_FLAG, GROUP_OUTPUT},
};
#define OPTIONS (sizeof options / sizeof options[0])
_Static_assert(OPTIONS <= 64 * OPTION_WORDS, "run_arguments.given holds a bit for each option");

/* Other names of options, which websocket-bench has. */
static const struct {
  const char *name, *option;
} aliases[] = {
    {"sample-size", "count"},
    {"payload-padding", "payload-bytes"},
    {"c", "concurrent"},
    {"s", "count"},
    {"l", "local-addr"},
    {"o", "origin"},
};
#define ALIASES (sizeof aliases / sizeof aliases[0])

/* Names that are not muster's, and what to do instead. */
static const struct {
  const char *name, *advice;
} strange[] = {
    {"ws-url", "the server is given with --target"},
    {"scenario", "the workload follows `run`, as in `muster run private`"},
    {"initial-clients", "searches have it: `muster find`"},
    {"step-size", "searches have it: `muster find`"},
    {"limit-rtt", "searches have it, `muster find`; --slo judges a run"},
    {"limit-percentile", "searches have it, `muster find`; --slo judges a run"},
    {"total-steps", "a search ends at its answer, or at `muster find --to`"},
    {"worker-addr", "workers are processes of this machine, --workers of them"},
    {"w", "workers are processes of this machine, --workers of them"},
};

static size_t distance(const char *a, const char *b) {
  size_t row[64];
  size_t b_len = strlen(b);
  if (b_len >= sizeof row / sizeof row[0]) return SIZE_MAX;
  for (size_t j = 0; j <= b_len; j++)
    row[j] = j;
  for (size_t i = 1; a[i - 1]; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b_len; j++) {
      size_t best = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[b_len];
}

const char *nearest_word(const char *text, const char *const *words, size_t count) {
  const char *best = NULL;
  if (strlen(text) < 2) return NULL; /* anything is near to it */
  size_t best_distance = strlen(text) / 3 + 1;
  for (size_t i = 0; i < count; i++) {
    size_t d = distance(text, words[i]);
    if (d > best_distance || (best && d == best_distance)) continue;
    best = words[i];
    best_distance = d;
  }
  return best;
}

/* "1500", "1.5k", "2M": a decimal number with a suffix. */
static bool parse_scaled(const char *text, double *out) {
  if ((text[0] < '0' || text[0] > '9') && text[0] != '.') return false;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return false;
  char *end;
  double value = strtod(text, &end);
  if (end == text || !isfinite(value)) return false;
  if (*end == 'k' || *end == 'K') {
    value *= 1e3;
    end++;
  } else if (*end == 'M') {
    value *= 1e6;
    end++;
  }
  *out = value;
  return *end == '\0';
}

bool parse_count(const char *text, uint64_t max, uint64_t *out) {
  double value;
  if (!parse_scaled(text, &value) || value != floor(value) || value > (double)max) return false;
  *out = (uint64_t)value;
  return true;
}

static bool duration_unit(const char *text, size_t *len, double *ns) {
  static const struct {
    const char *name;
    double ns;
  } units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    size_t name_len = strlen(units[i].name);
    if (strncmp(text, units[i].name, name_len) != 0) continue;
    *len = name_len;
    *ns = units[i].ns;
    return true;
  }
  return false;
}

/* "500ms", "1m30s", "0": as Go writes durations. */
bool parse_duration_ns(const char *text, uint64_t *out_ns) {
  if (strcmp(text, "0") == 0) {
    *out_ns = 0;
    return true;
  }
  if (*text == '\0') return false;
  double total_ns = 0;
  while (*text) {
    if ((text[0] < '0' || text[0] > '9') && text[0] != '.') return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) return false;
    char *end;
    double value = strtod(text, &end), unit_ns;
    size_t unit_len;
    if (end == text || !duration_unit(end, &unit_len, &unit_ns)) return false;
    total_ns += value * unit_ns;
    text = end + unit_len;
  }
  if (!(total_ns < 1e18)) return false;
  *out_ns = (uint64_t)llround(total_ns);
  return true;
}

static bool parse_seed(const char *text, uint64_t *out) {
  if (text[0] < '0' || text[0] > '9') return false;
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  return errno == 0 && *end == '\0' && *out > 0;
}

/* The setters return false when the value does not do, and say what would in the text `accepted`. */
struct accepted {
  char text[480];
};

static bool set_count(const struct option *option, const char *value, void *at, struct accepted *accepted) {
  uint64_t count;
  snprintf(accepted->text, sizeof accepted->text, "give a whole number from %llu to %llu, as 50, 2k or 1M",
      (unsigned long long)option->min, (unsigned long long)option->max);
  if (!parse_count(value, option->max, &count) || count < option->min) return false;
  *(uint32_t *)at = (uint32_t)count;
  return true;
}

bool parse_rate(const char *text, double *out_per_sec) {
  return parse_scaled(text, out_per_sec) && *out_per_sec > 0 && *out_per_sec <= RATE_MAX;
}

static bool set_rate(const struct option *option, const char *value, void *at, struct accepted *accepted) {
  double rate;
  snprintf(accepted->text, sizeof accepted->text, "%s",
      "give publishes per second above 0 and up to 100M, as 200, 0.5 or 5k");
  (void)option;
  if (!parse_rate(value, &rate)) return false;
  *(double *)at = rate;
  return true;
}

static bool set_scale(const struct option *option, const char *value, void *at, struct accepted *accepted) {
  double scale;
  snprintf(accepted->text, sizeof accepted->text, "give a factor above 0 and up to %llu, as 0.1 or 2",
      (unsigned long long)option->max);
  if (!parse_scaled(value, &scale) || scale <= 0 || scale > (double)option->max) return false;
  *(double *)at = scale;
  return true;
}

static void duration_text(char out[32], uint64_t ns) {
  if (ns >= HOUR_NS) {
    snprintf(out, 32, "%gh", (double)ns / (double)HOUR_NS);
  } else {
    snprintf(out, 32, "%s", ns ? "1ns" : "0s");
  }
}

static bool set_duration(const struct option *option, const char *value, void *at, struct accepted *accepted) {
  uint64_t ns;
  char least[32], most[32];
  duration_text(least, option->min);
  duration_text(most, option->max);
  snprintf(accepted->text, sizeof accepted->text, "give a time with its unit from %s to %s, as 500ms, 30s, 2m or 1h",
      least, most);
  if (!parse_duration_ns(value, &ns) || ns < option->min || ns > option->max) return false;
  *(uint64_t *)at = ns;
  return true;
}

static bool set_choice(const struct option *option, const char *value, void *at, struct accepted *accepted) {
  snprintf(accepted->text, sizeof accepted->text, "give one of %s", option->value);
  size_t len = strlen(value);
  for (const char *word = option->value; word; word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL) {
    size_t word_len = strcspn(word, "|");
    if (word_len != len || memcmp(word, value, len) != 0) continue;
    *(const char **)at = value;
    return true;
  }
  return false;
}

static bool set_flag(const char *value, void *at, struct accepted *accepted) {
  snprintf(accepted->text, sizeof accepted->text, "%s", "give true or false, or nothing for true");
  if (value && strcmp(value, "true") != 0 && strcmp(value, "false") != 0) return false;
  *(bool *)at = !value || strcmp(value, "true") == 0;
  return true;
}

static bool set_seed(const char *value, void *at, struct accepted *accepted) {
  snprintf(accepted->text, sizeof accepted->text, "%s", "give a whole number from 1 to 18446744073709551615");
  return parse_seed(value, at);
}

static bool set_text(const char *value, void *at, struct accepted *accepted) {
  snprintf(accepted->text, sizeof accepted->text, "%s", "give something, or leave the option out");
  if (value[0] == '\0') return false;
  *(const char **)at = value;
  return true;
}

static bool set_slo(const char *value, void *at, struct accepted *accepted) {
  struct err err = {0};
  bool parsed = slo_parse(value, at, &err) == STATUS_OK;
  snprintf(accepted->text, sizeof accepted->text, "%.470s", err.text);
  return parsed;
}

static bool set_observe(const char *value, void *at, struct accepted *accepted) {
  struct err err = {0};
  bool parsed = observe_parse(value, at, &err) == STATUS_OK;
  snprintf(accepted->text, sizeof accepted->text, "%.470s", err.text);
  return parsed;
}

static bool set_driver(const char *value, void *at, struct accepted *accepted) {
  snprintf(accepted->text, sizeof accepted->text, "%s", "`muster drivers` lists the drivers");
  for (const struct driver *const *driver = driver_all(); *driver; driver++) {
    if (strcmp((*driver)->name, value) == 0) *(const char **)at = (*driver)->name;
  }
  return *(const char **)at && strcmp(*(const char **)at, value) == 0;
}

static bool set_kind(const char *value, void *at, struct accepted *accepted) {
  const char *name = workload_find(value);
  snprintf(accepted->text, sizeof accepted->text, "%s", "give a workload, as private, group or star");
  if (name) *(const char **)at = name;
  return name != NULL;
}

static bool set_value(
    const struct option *option, const char *value, struct run_arguments *out, struct accepted *accepted) {
  void *at = (char *)out + option->offset;
  switch (option->kind) {
  case KIND_COUNT:
    return set_count(option, value, at, accepted);
  case KIND_RATE:
    return set_rate(option, value, at, accepted);
  case KIND_SCALE:
    return set_scale(option, value, at, accepted);
  case KIND_DURATION:
    return set_duration(option, value, at, accepted);
  case KIND_CHOICE:
    return set_choice(option, value, at, accepted);
  case KIND_FLAG:
    return set_flag(value, at, accepted);
  case KIND_SEED:
    return set_seed(value, at, accepted);
  case KIND_SLO:
    return set_slo(value, at, accepted);
  case KIND_OBSERVE:
    return set_observe(value, at, accepted);
  case KIND_DRIVER:
    return set_driver(value, at, accepted);
  case KIND_WORKLOAD:
    return set_kind(value, at, accepted);
  case KIND_TEXT:
    break;
  }
  return set_text(value, at, accepted);
}

static enum status unknown_option(const char *name, size_t len, struct err *err) {
  const char *names[OPTIONS + ALIASES];
  char typed[48];
  for (size_t i = 0; i < OPTIONS; i++)
    names[i] = options[i].name;
  for (size_t i = 0; i < ALIASES; i++)
    names[OPTIONS + i] = aliases[i].name;
  snprintf(typed, sizeof typed, "%.*s", (int)(len < 40 ? len : 40), name);
  for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
    if (strcmp(typed, strange[i].name) != 0) continue;
    return err_set(err, STATUS_USAGE, "unknown option --%s: %s", typed, strange[i].advice);
  }
  const char *near = nearest_word(typed, names, OPTIONS + ALIASES);
  if (near) return err_set(err, STATUS_USAGE, "unknown option --%s: did you mean --%s?", typed, near);
  return err_set(err, STATUS_USAGE, "unknown option --%s: `muster help run all` lists them all", typed);
}

static size_t find_option(const char *name, size_t len) {
  for (size_t i = 0; i < OPTIONS; i++) {
    if (strlen(options[i].name) == len && memcmp(options[i].name, name, len) == 0) return i;
  }
  return OPTIONS;
}

static size_t find_option_or_alias(const char *name, size_t len) {
  for (size_t i = 0; i < ALIASES; i++) {
    bool is = strlen(aliases[i].name) == len && memcmp(aliases[i].name, name, len) == 0;
    if (is) return find_option(aliases[i].option, strlen(aliases[i].option));
  }
  return find_option(name, len);
}

/* Parses the option at argv[*at] and moves *at behind it. */
static enum status parse_option(int argc, char **argv, int *at, struct run_arguments *out, struct err *err) {
  const char *name = argv[*at] + (argv[*at][1] == '-' ? 2 : 1);
  size_t len = strcspn(name, "=");
  const char *value = name[len] == '=' ? name + len + 1 : NULL;
  (*at)++;
  size_t index = find_option_or_alias(name, len);
  if (index == OPTIONS) return unknown_option(name, len, err);
  const struct option *option = &options[index];
  char typed[48];
  snprintf(typed, sizeof typed, "%s%.*s", len == 1 ? "-" : "--", (int)len, name);
  if (!value && option->kind != KIND_FLAG) {
    if (*at == argc) return err_set(err, STATUS_USAGE, "%s needs a value: %s %s", typed, typed, option->value);
    value = argv[(*at)++];
  }
  if (strcmp(option->name, "local-addr") == 0 && option_is_marked(out->typed, index)) {
    return err_set(err, STATUS_USAGE, "%s is there already: give one list, as 127.0.0.2,127.0.0.3", typed);
  }
  option_mark(out->given, index);
  option_mark(out->typed, index);
  struct accepted accepted;
  if (set_value(option, value, out, &accepted)) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "%s %.60s: %s", typed, value && value[0] ? value : "''", accepted.text);
}

static enum status set_workload(const char *name, struct run_arguments *out, struct err *err) {
  if (out->chosen) {
    return err_set(err, STATUS_USAGE, "one workload at a time: '%.40s' after '%.40s' is too much", name, out->chosen);
  }
  out->chosen = name;
  const char *known = workload_find(name);
  if (known) out->workload.name = out->kind = known;
  if (known || scenario_is_named(name)) return STATUS_OK;
  const char *near = workload_nearest(name);
  if (!near) near = scenario_nearest(name);
  if (near) return err_set(err, STATUS_USAGE, "unknown workload '%.40s': did you mean %s?", name, near);
  return err_set(err, STATUS_USAGE,
      "unknown workload '%.40s': choose private, group or another of `muster help run`, a preset (`muster scenarios`) "
      "or "
      "a FILE.yaml",
      name);
}

static void set_defaults(struct run_arguments *out) {
  *out = (struct run_arguments){
      .workload =
          {
              .clients = 50,
              .groups = 4,
              .rate_per_sec = 200,
              .warmup_ns = 2 * NS_PER_SEC,
              .duration_ns = 10 * NS_PER_SEC,
              .grace_ns = 3 * NS_PER_SEC,
              .setup_deadline_ns = 120 * NS_PER_SEC,
              .connect_deadline_ns = 30 * NS_PER_SEC,
              .ack_timeout_ns = 10 * NS_PER_SEC,
              .catch_up_deadline_ns = 60 * NS_PER_SEC,
              .teardown_deadline_ns = 10 * NS_PER_SEC,
              .payload_bytes = 256,
              .connect_concurrency = 20,
              .setup_concurrency = 10,
              .store = true,
              .count = true,
              .ack_policy = "durable",
              .qos = 1,
              .batch_size = 100,
              .documents = 500,
              .keep_session = true,
              .backoff_first_ns = 100 * NS_PER_MS,
              .backoff_max_ns = 5 * NS_PER_SEC,
          },
      .backoff_jitter_percent = 50,
      .group_senders = 2,
      .senders = 2,
      .receivers = 40,
      .queues = 1,
      .members = 10,
      .arrivals = "constant",
      .rate_limits = "off",
      .scale = 1,
  };
}

static bool was_given(const struct run_arguments *arguments, const char *name) {
  return option_is_marked(arguments->given, find_option(name, strlen(name)));
}

/* The first option of a group that is marked, or NULL. */
static const char *first_of(const uint64_t marks[OPTION_WORDS], enum group group) {
  for (size_t i = 0; i < OPTIONS; i++) {
    if (options[i].group == group && option_is_marked(marks, i)) return options[i].name;
  }
  return NULL;
}

/* A file that says how to reach a server says which one, or leaves that to the command line. */
static enum status refuse_without_target(const struct run_arguments *a, const char *option, struct err *err) {
  const struct scenario_entry *entry = scenario_find(&a->scenario, groups[GROUP_TARGET].section, option);
  if (entry && !option_is_marked(a->typed, option_find(option))) {
    return scenario_error(&a->scenario, entry->key_place, err,
        "%s needs a target, in this file or as --target: the embedded musterd has its own", option);
  }
  return err_set(err, STATUS_USAGE, "--%s needs --target: the embedded musterd has its own", option);
}

static enum status check_combination(const struct run_arguments *a, struct err *err) {
  const char *embedded = first_of(a->typed, GROUP_EMBEDDED);
  if (a->workload.target && embedded) {
    return err_set(err, STATUS_USAGE, "--%s belongs to the embedded musterd: leave it or --target out", embedded);
  }
  if (a->server_type && option_is_marked(a->typed, find_option("driver", strlen("driver")))) {
    return err_set(err, STATUS_USAGE, "--server-type and --driver name the same thing: give one of them");
  }
  const char *target = first_of(a->given, GROUP_TARGET);
  if (!a->workload.target && target) return refuse_without_target(a, target, err);
  if (a->output && a->json) {
    bool is_stdout = strcmp(a->json, "-") == 0;
    if (!is_stdout) return err_set(err, STATUS_USAGE, "--output and --json name the same report: give one of them");
  }
  return STATUS_OK;
}

static void finish(struct run_arguments *out) {
  struct workload *l = &out->workload;
  l->arrivals = strcmp(out->arrivals, "poisson") == 0 ? ARRIVALS_POISSON : ARRIVALS_CONSTANT;
  l->rate_limits = strcmp(out->rate_limits, "on") == 0;
  l->obfuscate = !l->obfuscate;       /* the option is --plain */
  l->keep_session = !l->keep_session; /* the option is --clean-session */
  while (l->seed == 0) {
    uint32_t seed;
    random_bytes(&seed, sizeof seed);
    l->seed = seed;
  }
}

static bool asks_help(const char *argument) {
  return strcmp(argument, "--help") == 0 || strcmp(argument, "-help") == 0 || strcmp(argument, "-h") == 0;
}

static enum status parse_line(int argc, char **argv, struct run_arguments *out, struct err *err) {
  out->chosen = NULL;
  for (int at = 0; at < argc && !out->help;) {
    enum status status = STATUS_OK;
    if (asks_help(argv[at])) {
      out->help = true;
    } else if (argv[at][0] == '-' && argv[at][1]) {
      status = parse_option(argc, argv, &at, out, err);
    } else {
      status = set_workload(argv[at++], out, err);
    }
    if (status != STATUS_OK) return status;
  }
  return STATUS_OK;
}

/* The scenario by itself must be sound, and come to what it expects. */
static enum status check_plain(const struct run_arguments *scenario, struct err *err) {
  struct run_arguments plain = *scenario;
  enum status status = workload_resolve(&plain, plain.kind, err);
  if (status != STATUS_OK) return err_prefix(err, "%.100s", scenario->scenario.source);
  finish(&plain);
  return scenario_check_expected(&scenario->scenario, &plain, err);
}

/* The line was parsed once, so it is sound and names a scenario: now the scenario first, and the line over it. */
static enum status parse_over_scenario(int argc, char **argv, struct run_arguments *out, struct err *err) {
  const char *chosen = out->chosen;
  set_defaults(out);
  enum status status = scenario_load(chosen, &out->scenario, err);
  if (status == STATUS_OK) status = scenario_apply(&out->scenario, out, err);
  if (status == STATUS_OK) status = check_plain(out, err);
  if (status == STATUS_OK) status = parse_line(argc, argv, out, err);
  if (status == STATUS_OK) status = scenario_scale(&out->scenario, out, err);
  return status;
}

enum status run_arguments_parse(int argc, char **argv, struct run_arguments *out, struct err *err) {
  set_defaults(out);
  enum status status = parse_line(argc, argv, out, err);
  if (status != STATUS_OK || out->help) return status;
  if (!out->chosen) {
    return err_set(err, STATUS_USAGE,
        "say what to run: private, group, another workload, a preset (`muster scenarios`) or a FILE.yaml");
  }
  if (!out->workload.name) {
    status = parse_over_scenario(argc, argv, out, err);
  } else if (was_given(out, "scale")) {
    status = err_set(err, STATUS_USAGE, "--scale belongs to scenarios: %s is none", out->chosen);
  }
  if (status == STATUS_OK) status = check_combination(out, err);
  if (status == STATUS_OK) status = workload_resolve(out, out->kind, err);
  if (status == STATUS_OK) finish(out);
  return status;
}

size_t run_arguments_names(int argc, char **argv, int *at) {
  size_t count = 0;
  for (int i = 0; i < argc; i++) {
    if (argv[i][0] != '-' || !argv[i][1]) {
      at[count++] = i;
      continue;
    }
    const char *name = argv[i] + (argv[i][1] == '-' ? 2 : 1);
    size_t len = strcspn(name, "="), option = find_option_or_alias(name, len);
    if (option < OPTIONS && options[option].kind != KIND_FLAG && name[len] != '=') i++;
  }
  return count;
}

void run_arguments_free(struct run_arguments *arguments) {
  scenario_free(&arguments->scenario);
}

/* --- single options --- */

static const char *const nouns[] = {
    [KIND_TEXT] = "a text",
    [KIND_COUNT] = "a number that fits",
    [KIND_RATE] = "a rate that fits",
    [KIND_SCALE] = "a factor that fits",
    [KIND_DURATION] = "a time that fits",
    [KIND_SEED] = "a number that fits",
    [KIND_FLAG] = "true or false",
    [KIND_CHOICE] = "a word that it knows",
    [KIND_SLO] = "an objective",
    [KIND_OBSERVE] = "something to observe",
    [KIND_DRIVER] = "a driver",
    [KIND_WORKLOAD] = "a workload",
};

size_t option_find(const char *name) {
  size_t option = find_option(name, strlen(name));
  return option == OPTIONS ? OPTION_NONE : option;
}

const char *option_name(size_t index) {
  return index < OPTIONS ? options[index].name : NULL;
}

bool option_is_embedded(size_t option) {
  return options[option].group == GROUP_EMBEDDED;
}

const char *option_section(size_t option) {
  /* Who lets load out of this machine does so by hand, each time. */
  if (strcmp(options[option].name, "allow-non-loopback") == 0) return NULL;
  return groups[options[option].group].section;
}

bool option_is_section(const char *name) {
  for (int group = 0; group < GROUPS; group++) {
    if (groups[group].section && strcmp(groups[group].section, name) == 0) return true;
  }
  return false;
}

const char *option_nearest(const char *text, const char *section) {
  const char *names[OPTIONS];
  size_t count = 0;
  for (size_t i = 0; i < OPTIONS; i++) {
    const char *its = option_section(i);
    if (its && strcmp(its, section) == 0) names[count++] = options[i].name;
  }
  return nearest_word(text, names, count);
}

const char *option_noun(size_t option) {
  return nouns[options[option].kind];
}

bool option_set(size_t option, const char *value, struct run_arguments *out, char accepted[OPTION_ACCEPTED_MAX]) {
  struct accepted reason;
  option_mark(out->given, option);
  if (set_value(&options[option], value, out, &reason)) return true;
  snprintf(accepted, OPTION_ACCEPTED_MAX, "%s", reason.text);
  return false;
}

bool option_was_typed(size_t option, const struct run_arguments *arguments) {
  return option_is_marked(arguments->typed, option);
}

bool option_takes_value(size_t option) {
  return options[option].kind != KIND_FLAG;
}

bool option_is_scalable(size_t option) {
  enum kind kind = options[option].kind;
  return kind == KIND_COUNT || kind == KIND_RATE || kind == KIND_DURATION;
}

bool option_scale(size_t option, double factor, struct run_arguments *out) {
  const struct option *o = &options[option];
  void *at = (char *)out + o->offset;
  double old = o->kind == KIND_RATE    ? *(double *)at
               : o->kind == KIND_COUNT ? (double)*(uint32_t *)at
                                       : (double)*(uint64_t *)at;
  double value = o->kind == KIND_RATE ? old * factor : fmax(floor(old * factor + 1e-6), (double)o->min);
  if (value > (double)o->max) return false;
  if (o->kind == KIND_RATE) *(double *)at = value;
  if (o->kind == KIND_COUNT) *(uint32_t *)at = (uint32_t)value;
  if (o->kind == KIND_DURATION) *(uint64_t *)at = (uint64_t)value;
  return true;
}

static void help_aliases(FILE *file) {
  for (size_t i = 0; i < ALIASES; i++) {
    char left[64];
    snprintf(left, sizeof left, "-%s%s %s", strlen(aliases[i].name) == 1 ? "" : "-", aliases[i].name,
        options[find_option(aliases[i].option, strlen(aliases[i].option))].value);
    fprintf(file, "  %-28s as --%s\n", left, aliases[i].option);
  }
}

static void help_option(FILE *file, const struct option *option) {
  char left[64];
  snprintf(left, sizeof left, "--%s%s%s", option->name, option->value ? " " : "", option->value ? option->value : "");
  fprintf(file, "  %-28s %s\n", left, option->help);
}

/* The options of a group that only the drivers of the list read, on one line. */
static void help_readers(FILE *file, int group, const char *list) {
  char its[DRIVERS_LIST_MAX];
  fprintf(file, "  (only %s:", list);
  for (size_t i = 0; i < OPTIONS; i++) {
    bool is_one = (int)options[i].group == group && unread_by_some(options[i].name, its) && strcmp(its, list) == 0;
    if (is_one) fprintf(file, " --%s", options[i].name);
  }
  fputs(")\n", file);
}

/* What only some drivers read, by who reads it. */
static void help_unread(FILE *file, int group) {
  char told[8][DRIVERS_LIST_MAX], list[DRIVERS_LIST_MAX];
  size_t count = 0;
  for (size_t i = 0; i < OPTIONS; i++) {
    if ((int)options[i].group != group || !unread_by_some(options[i].name, list)) continue;
    size_t known = 0;
    while (known < count && strcmp(told[known], list) != 0)
      known++;
    if (known < count || count == sizeof told / sizeof *told) continue;
    snprintf(told[count++], DRIVERS_LIST_MAX, "%s", list);
    help_readers(file, group, list);
  }
}

static void help_group(FILE *file, int group) {
  fprintf(file, "\n%s:\n", groups[group].title);
  if (group == GROUP_SHOOTOUT) help_aliases(file);
  for (size_t i = 0; i < OPTIONS; i++) {
    if ((int)options[i].group == group) help_option(file, &options[i]);
  }
  if (group == GROUP_OBJECTIVES) slo_list_names(file);
  help_unread(file, group);
}

/* What most runs need, on one screen; the groups of all the others by their names. */
static void help_short(FILE *file) {
  static const char *const first[] = {
      "target", "clients", "rate", "outstanding", "payload-bytes", "duration", "slo", "trials", "output", "html"};
  fputs("Usage: muster run WORKLOAD|PRESET|FILE.yaml ... [options]\n\n", file);
  workload_help(file);
  fputs("  PRESET     one of `muster scenarios`, or a file of the same form; options override it\n\n", file);
  for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
    size_t option = option_find(first[i]);
    if (option != OPTION_NONE) help_option(file, &options[option]);
  }
  fputs("\nMore: `muster help run all`, or one of the groups\n ", file);
  for (int group = 0; group < GROUPS; group++)
    fprintf(file, " %s%s", groups[group].topic, group == GROUPS / 2 ? "\n " : "");
  fputs("\n", file);
}

bool run_arguments_help(FILE *file, const char *topic) {
  bool wants_all = topic && strcmp(topic, "all") == 0, known = !topic || wants_all;
  if (!topic) help_short(file);
  for (int group = 0; topic && group < GROUPS; group++) {
    if (!wants_all && strcmp(topic, groups[group].topic) != 0) continue;
    help_group(file, group);
    known = true;
  }
  if (!known) return false;
  fputs("\nTIME is a number with its unit: 500ms, 30s, 2m, 1h. N may end in k or M. --name=value and -name\n"
        "value are accepted too; switches take =true or =false. Ctrl-C ends the phase and still reports,\n"
        "a second one ends everything at once.\n"
        "\nExit codes: 0 valid, 1 an objective (--slo) is broken, 2 usage, 3 invalid run or a report that could\n"
        "not be written, 4 target unreachable or refusing, 130 interrupted before there was a report.\n",
      file);
  return true;
}

const char *run_arguments_topic(size_t index) {
  return index < GROUPS ? groups[index].topic : NULL;
}
