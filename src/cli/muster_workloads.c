#include "cli/muster_workloads.h"

#include "base/clock.h"

#include <inttypes.h>
#include <string.h>

#define LIMITED_DURATION_NS (3600 * NS_PER_SEC) /* of a run that a number of publishes ends */

/* Options that belong to some workloads only. */
enum use {
  USE_CLIENTS = 1 << 0,
  USE_SENDERS = 1 << 1,
  USE_RECEIVERS = 1 << 2,
  USE_GROUP_SENDERS = 1 << 3,
  USE_GROUPS = 1 << 4,
  USE_ONLINE = 1 << 5,
  USE_STORM = 1 << 6,
  USE_BACKLOG = 1 << 7,
  USE_SHOOTOUT = 1 << 8,
  USE_QUEUES = 1 << 9,
  USE_OPERATIONS = 1 << 10,
  USE_BATCHES = 1 << 11,
  USE_VAULT = 1 << 12,
};

#define USE_OPERATES (USE_CLIENTS | USE_OPERATIONS)
#define USE_SYNCS (USE_OPERATES | USE_BATCHES | USE_VAULT)

static const struct {
  const char *option;
  enum use use;
  const char *belongs_to;
} uses[] = {
    {"clients", USE_CLIENTS,
        "workloads of equal clients: here --senders and --receivers or --groups and --members count"},
    {"senders", USE_SENDERS, "star, queue, backlog, room and broadcast runs"},
    {"receivers", USE_RECEIVERS, "star and queue runs"},
    {"queues", USE_QUEUES, "queue runs"},
    {"group-senders", USE_GROUP_SENDERS, "group runs"},
    {"groups", USE_GROUPS, "groups runs"},
    {"members", USE_GROUPS, "groups runs"},
    {"shared-groups", USE_GROUPS, "groups runs"},
    {"receivers-online", USE_ONLINE, "star and group runs"},
    {"storm-at", USE_STORM, "storm runs"},
    {"storm-by", USE_STORM, "storm runs"},
    {"backoff", USE_STORM, "storm runs"},
    {"backoff-max", USE_STORM, "storm runs"},
    {"backoff-jitter", USE_STORM, "storm runs"},
    {"catch-up-timeout", USE_BACKLOG, "backlog runs"},
    {"concurrent", USE_SHOOTOUT, "echo and broadcast runs"},
    {"server-type", USE_SHOOTOUT, "echo and broadcast runs"},
    {"batch-size", USE_BATCHES, "sda-batch, msa-batch and sync-* runs"},
    {"docs", USE_VAULT, "sync-* runs"},
    {"warmup-requests", USE_OPERATIONS, "runs of operations (msa ... sync-noop)"},
};

static const struct kind {
  const char *name;
  enum topology_kind topology;
  unsigned uses;
  const char *help;
} kinds[] = {
    {"private", TOPOLOGY_RING, USE_CLIENTS, "every client publishes to the next one, the last to the first"},
    {"group", TOPOLOGY_GROUPS, USE_CLIENTS | USE_GROUP_SENDERS | USE_ONLINE,
        "one group of all clients; --group-senders of them publish to it"},
    {"pairs", TOPOLOGY_PAIRS, USE_CLIENTS, "clients in twos, each publishes to its partner"},
    {"star", TOPOLOGY_STAR, USE_SENDERS | USE_RECEIVERS | USE_ONLINE, "each sender publishes to all receivers in turn"},
    {"queue", TOPOLOGY_QUEUE, USE_SENDERS | USE_RECEIVERS | USE_QUEUES,
        "each sender publishes to --queues in turn; one of a queue's consumers gets a message"},
    {"backlog", TOPOLOGY_STAR, USE_CLIENTS | USE_SENDERS | USE_BACKLOG,
        "star to --clients receivers who are offline; then they connect and read what waits"},
    {"groups", TOPOLOGY_GROUPS, USE_GROUPS | USE_GROUP_SENDERS | USE_ONLINE, "--groups of --members each"},
    {"room", TOPOLOGY_ROOM, USE_CLIENTS | USE_SENDERS, "one chatroom of all clients; --senders of them publish to it"},
    {"broadcast", TOPOLOGY_BROADCAST, USE_CLIENTS | USE_SENDERS | USE_SHOOTOUT,
        "everybody hears everything, its own publishes too"},
    {"echo", TOPOLOGY_ECHO, USE_CLIENTS | USE_SHOOTOUT, "every client hears its own publishes, and nothing else"},
    {"self", TOPOLOGY_SELF, USE_OPERATES, "every client carries out operations on its own: as mixed"},
    {"msa", TOPOLOGY_SELF, USE_OPERATES, "send a message to the client's recipient"},
    {"maa", TOPOLOGY_SELF, USE_OPERATES, "retrieve 10 messages of the own mailbox"},
    {"sda", TOPOLOGY_SELF, USE_OPERATES, "put a document, get it"},
    {"sfa", TOPOLOGY_SELF, USE_OPERATES, "append to a feed, get the entry"},
    {"sca", TOPOLOGY_SELF, USE_OPERATES, "put an item into a collection, query it"},
    {"mma", TOPOLOGY_SELF, USE_OPERATES, "create a mailbox, delete it"},
    {"mixed", TOPOLOGY_SELF, USE_OPERATES, "one of the six above at random"},
    {"sda-batch", TOPOLOGY_SELF, USE_OPERATES | USE_BATCHES, "put --batch-size documents at once"},
    {"msa-batch", TOPOLOGY_SELF, USE_OPERATES | USE_BATCHES, "send --batch-size messages at once"},
    {"sync-cold", TOPOLOGY_SELF, USE_SYNCS, "write a vault of --docs documents"},
    {"sync-warm", TOPOLOGY_SELF, USE_SYNCS, "write the same vault again"},
    {"sync-noop", TOPOLOGY_SELF, USE_SYNCS, "list the vault and compare"},
    {"mail-cycle", TOPOLOGY_SELF, USE_OPERATES, "send to oneself, retrieve, mark as delivered"},
    {"hold", TOPOLOGY_HOLD, USE_CLIENTS, "connections are held, with keep-alives and nothing else"},
    {"storm", TOPOLOGY_RING, USE_CLIENTS | USE_STORM, "private, and all lose their connection at once and return"},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static const struct kind *kind_of(const char *name) {
  for (size_t i = 0; i < KINDS; i++) {
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  }
  return NULL;
}

const char *workload_find(const char *name) {
  const struct kind *kind = kind_of(name);
  return kind ? kind->name : NULL;
}

const char *workload_nearest(const char *word) {
  const char *names[KINDS];
  for (size_t i = 0; i < KINDS; i++)
    names[i] = kinds[i].name;
  return nearest_word(word, names, KINDS);
}

static bool is_scenario(const struct kind *kind) {
  return kind->uses & USE_OPERATIONS && strcmp(kind->name, "self") != 0;
}

void workload_help(FILE *file) {
  for (size_t i = 0; i < KINDS; i++) {
    if (!is_scenario(&kinds[i])) fprintf(file, "  %-9s  %s\n", kinds[i].name, kinds[i].help);
  }
  fputs("  msa ...    the scenarios of ricochet-bench: `muster help ricochet` lists them\n", file);
}

void workload_scenarios_help(FILE *file) {
  for (size_t i = 0; i < KINDS; i++) {
    if (is_scenario(&kinds[i])) fprintf(file, "  %-10s  %s\n", kinds[i].name, kinds[i].help);
  }
}

static bool given(const struct run_arguments *a, const char *option) {
  return option_is_marked(a->given, option_find(option));
}

/* The first of the options that was given, or NULL. */
static const char *first_given(const struct run_arguments *a, const char *const *options) {
  for (; *options; options++) {
    if (given(a, *options)) return *options;
  }
  return NULL;
}

/* --- shape --- */

static enum status check_uses(const struct run_arguments *a, const struct kind *kind, struct err *err) {
  for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++) {
    if (!given(a, uses[i].option) || kind->uses & uses[i].use) continue;
    return err_set(
        err, STATUS_USAGE, "--%s belongs to %s; this one is a %s run", uses[i].option, uses[i].belongs_to, kind->name);
  }
  return STATUS_OK;
}

static enum status too_many_clients(struct err *err) {
  return err_set(err, STATUS_USAGE, "more than %u clients in all: lower their numbers", CLIENTS_MAX);
}

static enum status shape_groups(struct run_arguments *a, const struct kind *kind, struct err *err) {
  struct workload *l = &a->workload;
  bool apart = kind->uses & USE_GROUPS && !l->shared_groups;
  uint64_t groups = kind->uses & USE_GROUPS ? l->groups : 1;
  uint64_t members = kind->uses & USE_GROUPS ? a->members : l->clients;
  if (a->group_senders > members) {
    return err_set(err, STATUS_USAGE, "--group-senders %u of %s %u members: at most all members can send",
        a->group_senders, kind->uses & USE_GROUPS ? "--members" : "--clients", (uint32_t)members);
  }
  if (apart && groups * members > CLIENTS_MAX) return too_many_clients(err);
  l->groups = (uint32_t)groups;
  l->clients = (uint32_t)(apart ? groups * members : members);
  l->senders = (uint32_t)(apart ? groups * a->group_senders : a->group_senders);
  return STATUS_OK;
}

static enum status shape_star(struct run_arguments *a, const struct kind *kind, struct err *err) {
  struct workload *l = &a->workload;
  uint32_t senders = given(a, "senders") ? a->senders : 10;
  uint32_t receivers = kind->uses & USE_BACKLOG ? l->clients : a->receivers;
  if ((uint64_t)senders + receivers > CLIENTS_MAX) return too_many_clients(err);
  l->senders = senders;
  l->clients = senders + receivers;
  return STATUS_OK;
}

static enum status shape(struct run_arguments *a, const struct kind *kind, struct err *err) {
  struct workload *l = &a->workload;
  enum status status = STATUS_OK;
  l->topology = kind->topology;
  l->senders = kind->uses & USE_SENDERS ? a->senders : l->clients;
  if (kind->topology == TOPOLOGY_GROUPS) status = shape_groups(a, kind, err);
  if (kind->topology == TOPOLOGY_STAR || kind->topology == TOPOLOGY_QUEUE) status = shape_star(a, kind, err);
  if (kind->topology == TOPOLOGY_QUEUE) l->groups = a->queues;
  if (status != STATUS_OK || !given(a, "receivers-online")) return status;
  uint32_t listeners = l->clients - l->senders;
  if (a->receivers_online > listeners) {
    return err_set(
        err, STATUS_USAGE, "--receivers-online %u: there are only %u that do not send", a->receivers_online, listeners);
  }
  l->offline = listeners - a->receivers_online;
  return STATUS_OK;
}

/* --- load --- */

static enum status bad_steps(struct err *err) {
  return err_set(err, STATUS_USAGE,
      "--steps: give 1 to %d rates above 0, as 1000,2000,4000, or each with its length, as 1000@10s,4000@30s",
      WORKLOAD_STEPS_MAX);
}

static bool parse_step(const char *text, size_t len, struct rate_segment *out) {
  char rate[32], *length;
  if (len == 0 || len >= sizeof rate) return false;
  memcpy(rate, text, len);
  rate[len] = '\0';
  *out = (struct rate_segment){0};
  length = strchr(rate, '@');
  if (length) *length++ = '\0';
  if (length && (!parse_duration_ns(length, &out->length_ns) || out->length_ns == 0)) return false;
  if (!parse_rate(rate, &out->from_per_sec)) return false;
  out->to_per_sec = out->from_per_sec;
  return true;
}

/* "1000,2000": as long as one another; "1000@10s,2000@5s": as long as they say, which makes the duration. */
static enum status parse_steps(struct run_arguments *a, struct err *err) {
  struct workload *l = &a->workload;
  uint32_t with_length = 0;
  uint64_t total_ns = 0;
  for (const char *at = a->steps; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    if (l->steps == WORKLOAD_STEPS_MAX) return bad_steps(err);
    struct rate_segment *step = &l->step[l->steps++];
    if (!parse_step(at, strcspn(at, ","), step)) return bad_steps(err);
    with_length += step->length_ns > 0;
    total_ns += step->length_ns;
  }
  if (with_length > 0 && with_length < l->steps) return bad_steps(err);
  if (with_length > 0 && given(a, "duration")) {
    return err_set(err, STATUS_USAGE, "--steps with lengths make the duration: leave --duration or the lengths out");
  }
  if (with_length > 0) l->duration_ns = total_ns;
  for (uint32_t i = 0; i < l->steps && with_length == 0; i++)
    l->step[i].length_ns = l->duration_ns / l->steps;
  return STATUS_OK;
}

/* A scenario's own senders and outstanding give way. */
static enum status check_concurrent(const struct run_arguments *a, struct err *err) {
  static const char *const others[] = {"senders", "outstanding", NULL};
  if (a->workload.in_flight == 0) return STATUS_OK;
  if (a->workload.rounds > 0) {
    return err_set(err, STATUS_USAGE, "--concurrent and rounds are two ways to set the pace: leave one of them out");
  }
  for (const char *const *other = others; *other; other++) {
    if (!option_was_typed(option_find(*other), a)) continue;
    return err_set(err, STATUS_USAGE, "--concurrent is what all senders together await: leave --%s out", *other);
  }
  return STATUS_OK;
}

static enum status check_load(const struct run_arguments *a, struct err *err) {
  static const char *const open[] = {"rate", "arrivals", "ramp-to", "steps", NULL};
  static const char *const flat[] = {"rate", "ramp-to", NULL};
  const struct workload *l = &a->workload;
  const char *closed_by = l->rounds ? "rounds" : l->in_flight ? "concurrent" : l->outstanding ? "outstanding" : NULL;
  const char *option = first_given(a, open);
  if (closed_by && option) {
    return err_set(
        err, STATUS_USAGE, "--%s makes answers or intervals set the pace: leave --%s out", closed_by, option);
  }
  option = first_given(a, flat);
  if (a->steps && option) return err_set(err, STATUS_USAGE, "--steps are the rate: leave --%s out", option);
  if (a->workload.rounds && given(a, "count")) {
    return err_set(err, STATUS_USAGE, "--rounds says how many publishes there are: leave --count out");
  }
  if (!a->workload.rounds && given(a, "interval")) {
    return err_set(err, STATUS_USAGE, "--interval belongs to --rounds: otherwise --rate sets the pace");
  }
  if (a->workload.interval_ns > 0 && a->workload.outstanding) {
    return err_set(err, STATUS_USAGE, "--interval sets the pace, whatever is outstanding: leave one of them out");
  }
  if (!closed_by && given(a, "max-rate")) {
    return err_set(err, STATUS_USAGE, "--max-rate belongs to closed loops: --outstanding or --rounds");
  }
  return STATUS_OK;
}

static enum status load(struct run_arguments *a, struct err *err) {
  struct workload *l = &a->workload;
  enum status status = check_concurrent(a, err);
  if (status == STATUS_OK) status = check_load(a, err);
  if (status != STATUS_OK) return status;
  if (l->in_flight > 0) workload_share_in_flight(l);
  l->load = l->rounds ? LOAD_ROUNDS : l->outstanding ? LOAD_CLOSED : LOAD_OPEN;
  if (l->load == LOAD_ROUNDS && l->outstanding == 0) l->outstanding = 1;
  if (l->load == LOAD_ROUNDS && !given(a, "warmup")) l->warmup_ns = 0;
  if (l->load != LOAD_OPEN) l->rate_per_sec = 0;
  if (workload_limit(l) > 0 && !given(a, "duration")) l->duration_ns = LIMITED_DURATION_NS;
  return a->steps ? parse_steps(a, err) : STATUS_OK;
}

/* --- hold and storm --- */

#define GREAT_POPULATION 10000 /* from here on the default deadlines grow */
#define HUGE_POPULATION 500000

/* Default deadlines for so many clients: 500 registrations, 1,000 connects and 10,000 closes a second, beside what
 * small populations are given. They end what is hopeless; whoever measures these rates finds them in the report. */
static void stretch_deadlines(struct run_arguments *a) {
  struct workload *l = &a->workload;
  if (l->clients < GREAT_POPULATION) return;
  if (!given(a, "setup-timeout")) l->setup_deadline_ns += l->clients * (NS_PER_SEC / 500);
  if (!given(a, "connect-timeout")) l->connect_deadline_ns += l->clients * (NS_PER_SEC / 1000);
  l->teardown_deadline_ns += l->clients * (NS_PER_SEC / 10000);
}

/* Each of many workers needs several in progress, or every answer costs it a wake-up of its own. */
static uint32_t concurrency_of(uint32_t clients) {
  if (clients < GREAT_POPULATION) return 256;
  return clients < HUGE_POPULATION ? 1024 : 4096;
}

static enum status shape_hold(struct run_arguments *a, struct err *err) {
  static const char *const publishing[] = {"rate", "arrivals", "ramp-to", "steps", "outstanding", "max-rate", "rounds",
      "interval", "count", "payload-bytes", "delivery-grace", "ack-timeout", "store-messages", "count-messages",
      "retain", NULL};
  struct workload *l = &a->workload;
  const char *option = first_given(a, publishing);
  if (option) return err_set(err, STATUS_USAGE, "held connections do not publish: leave --%s out", option);
  l->senders = 0;
  l->rate_per_sec = 0;
  if (!given(a, "warmup")) l->warmup_ns = 0;
  /* A few slow connects must not hold up the others. */
  if (!given(a, "connect-concurrency")) l->connect_concurrency = concurrency_of(l->clients);
  if (!given(a, "keep-alive") && l->clients > 50000) l->keep_alive_ns = 30 * NS_PER_SEC;
  return STATUS_OK;
}

static void shape_storm(struct run_arguments *a) {
  struct workload *l = &a->workload;
  l->storm = true;
  l->storm_by_server = a->storm_by && strcmp(a->storm_by, "server") == 0;
  if (!given(a, "storm-at")) l->storm_at_ns = l->duration_ns / 3;
  if (!given(a, "delivery-grace")) l->grace_ns = 30 * NS_PER_SEC;
  l->backoff_jitter = a->backoff_jitter_percent / 100.0;
}

/* Of closed loops that a number ends: servers forget what was sent long before it is read. */
#define BACKLOG_DURATION_NS (300 * NS_PER_SEC)

static void shape_backlog(struct run_arguments *a) {
  struct workload *l = &a->workload;
  l->backlog = true;
  if (!given(a, "warmup")) l->warmup_ns = 0;
  bool counted = workload_is_closed(l) && workload_limit(l) > 0;
  if (counted && !given(a, "duration")) l->duration_ns = BACKLOG_DURATION_NS;
}

/* --- operations --- */

/* As ricochet-bench does when nothing else is said: a closed loop of few clients. */
static void shape_operations(struct run_arguments *a, const struct kind *kind) {
  static const char *const paced[] = {
      "rate", "arrivals", "ramp-to", "steps", "outstanding", "rounds", "interval", "concurrent", NULL};
  struct workload *l = &a->workload;
  bool sync = strncmp(kind->name, "sync-", 5) == 0;
  if (strcmp(kind->name, "self") != 0) l->operations = kind->name;
  if (!given(a, "clients")) l->clients = l->senders = sync ? 1 : 10;
  if (!given(a, "payload-bytes")) l->payload_bytes = 1024;
  if (!first_given(a, paced)) l->outstanding = 1;
}

/* --- both --- */

static const char *shootout_driver(const char *server_type) {
  static const char *const drivers[] = {
      "shootout-json", "shootout-binary", "shootout-phoenix", "shootout-actioncable", NULL};
  const char *const *driver = drivers;
  while (*driver && strcmp(strchr(*driver, '-') + 1, server_type) != 0)
    driver++;
  return *driver;
}

static void choose_driver(struct run_arguments *a) {
  struct workload *l = &a->workload;
  bool shouts = l->topology == TOPOLOGY_BROADCAST || l->topology == TOPOLOGY_ECHO;
  if (a->server_type) {
    l->driver = shootout_driver(a->server_type);
    return;
  }
  bool by_hand = a->driver && option_was_typed(option_find("driver"), a);
  if (a->driver && (by_hand || !l->target)) {
    l->driver = a->driver;
  } else if (!l->target && shouts) {
    l->driver = "shootout-json";
  } else if (!l->target && l->topology == TOPOLOGY_SELF) {
    l->driver = "ricochet";
  }
}

enum status workload_resolve(struct run_arguments *out, const char *name, struct err *err) {
  const struct kind *kind = kind_of(name ? name : "private");
  enum status status = check_uses(out, kind, err);
  if (status == STATUS_OK) status = shape(out, kind, err);
  if (kind->uses & USE_OPERATIONS) shape_operations(out, kind);
  if (status == STATUS_OK) status = load(out, err);
  if (status == STATUS_OK && kind->topology == TOPOLOGY_HOLD) status = shape_hold(out, err);
  if (kind->uses & USE_STORM) shape_storm(out);
  if (kind->uses & USE_BACKLOG) shape_backlog(out);
  stretch_deadlines(out);
  out->workload.grace_asked = given(out, "delivery-grace");
  if (status == STATUS_OK) choose_driver(out);
  return status;
}
