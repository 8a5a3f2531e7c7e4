/* Before anything is started: does the plan fit itself, the driver and this machine? */
#include "load/check.h"
#include "load/run.h"

#include "base/clock.h"
#include "load/client.h"
#include "load/estimate.h"
#include "load/settings.h"
#include "load/shared.h"
#include "net/address.h"
#include "net/address_range.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define LEDGER_REACH_NS (4 * UINT64_C(3600) * NS_PER_SEC)
#define KERNEL_BYTES_PER_END 4300 /* slab of one end of an idle TCP connection */
#define EMBEDDED_BYTES 2048       /* of the embedded server's own memory for one connected user */
#define MEMORY_SHARE 0.9          /* of what is available */
#define GIB (1024.0 * 1024 * 1024)

static enum status usage(struct err *err, const char *text) {
  return err_set(err, STATUS_USAGE, "%s", text);
}

static enum status check_numbers(const struct workload *w, struct err *err) {
  bool sends = w->topology != TOPOLOGY_HOLD;
  bool scheduled = sends && w->load == LOAD_OPEN && w->steps == 0;
  if (!isfinite(w->rate_per_sec) || (scheduled && w->rate_per_sec <= 0)) return usage(err, "--rate must be above 0");
  if (!sends && w->rate_per_sec != 0) return usage(err, "held connections do not publish: leave --rate out");
  if (!isfinite(w->connect_per_sec) || w->connect_per_sec < 0) return usage(err, "--connect-rate must be above 0");
  if (w->duration_ns == 0) return usage(err, "--duration must be above 0");
  if (w->connect_concurrency == 0) return usage(err, "--connect-concurrency must be at least 1");
  if (w->setup_concurrency == 0) return usage(err, "--setup-concurrency must be at least 1");
  if (w->ack_timeout_ns == 0) return usage(err, "--ack-timeout must be above 0");
  if (w->setup_deadline_ns == 0 || w->connect_deadline_ns == 0 || w->teardown_deadline_ns == 0) {
    return usage(err, "every deadline must be above 0");
  }
  if (w->warmup_ns > LEDGER_REACH_NS || w->duration_ns > LEDGER_REACH_NS || w->grace_ns > LEDGER_REACH_NS ||
      w->warmup_ns + w->duration_ns + w->grace_ns > LEDGER_REACH_NS) {
    return usage(err, "warm-up, duration and grace together may take 4 hours at most: shorten --duration");
  }
  if (w->workers > workload_online(w)) return usage(err, "--workers must not exceed --clients");
  return STATUS_OK;
}

static enum status check_load(const struct workload *w, const struct driver *driver, struct err *err) {
  struct topology topology = topology_of(w);
  bool bends = w->steps > 0 || w->ramp_to_per_sec > 0;
  if (w->steps > WORKLOAD_STEPS_MAX) return usage(err, "too many --steps");
  if (bends && w->load != LOAD_OPEN) return usage(err, "a rate that changes needs an open loop");
  if (bends && w->publishes > 0) return usage(err, "--count does not go with a rate that changes: give --duration");
  if (w->load == LOAD_ROUNDS && w->rounds == 0) return usage(err, "--rounds must be at least 1");
  if (!workload_is_closed(w)) return STATUS_OK;
  if (w->outstanding == 0) return usage(err, "--outstanding must be at least 1");
  if (topology_answer(&topology, driver->capabilities) == ANSWER_NONE) {
    return err_set(
        err, STATUS_USAGE, "driver %s answers nothing, so there is no closed loop: give --rate", driver->name);
  }
  if (w->in_flight > 0 && (uint64_t)topology.senders * w->outstanding != w->in_flight) {
    return err_set(err, STATUS_USAGE,
        "--concurrent %u does not divide among %u clients: give at most as many, or a multiple", w->in_flight,
        w->clients);
  }
  if (w->outstanding <= driver->outstanding_max) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "--outstanding %u: driver %s takes %u at most", w->outstanding, driver->name,
      driver->outstanding_max);
}

static enum status check_groups(const struct workload *w, struct err *err) {
  uint32_t groups = w->groups > 1 ? w->groups : 1;
  if (w->shared_groups || groups == 1) return STATUS_OK;
  if (w->clients / groups < 2) {
    return err_set(
        err, STATUS_USAGE, "%u clients in %u groups: each group needs at least 2 members", w->clients, groups);
  }
  if (w->senders % groups == 0) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "%u senders in %u groups: each group must have as many", w->senders, groups);
}

static enum status check_senders(const struct workload *w, struct err *err) {
  uint32_t senders = topology_of(w).senders;
  bool star = w->topology == TOPOLOGY_STAR, queue = w->topology == TOPOLOGY_QUEUE;
  if (queue && w->clients < (uint64_t)senders + topology_of(w).groups) {
    return usage(err, "a queue run needs a consumer for each queue: --receivers, --queues");
  }
  if (queue && (w->storm || w->offline > 0)) {
    return usage(err, "consumers of a queue are all connected all the time: no storm, nobody offline");
  }
  if (star && (senders < 1 || senders >= w->clients)) {
    return usage(err, "a star needs at least one sender and one receiver: --senders, --receivers");
  }
  if (senders < 1 || senders > w->clients) {
    return err_set(err, STATUS_USAGE, "%s %u must lie between 1 and the %u clients",
        w->topology == TOPOLOGY_GROUPS ? "--group-senders" : "--senders", senders, w->clients);
  }
  if (w->offline > w->clients - senders) {
    return err_set(err, STATUS_USAGE, "%u clients of which %u send: at most %u can be offline", w->clients, senders,
        w->clients - senders);
  }
  return STATUS_OK;
}

/* A recipient's streams are numbered in 31 bits. */
static enum status check_streams(const struct workload *w, struct err *err) {
  struct topology topology = topology_of(w);
  if ((uint64_t)topology.senders * topology.targets <= INT32_MAX) return STATUS_OK;
  return err_set(err, STATUS_USAGE,
      "%u senders to %u targets each are too many pairs to account for: lower one of them", topology.senders,
      topology.targets);
}

static enum status check_storm(const struct workload *w, struct err *err) {
  if (!w->storm) return STATUS_OK;
  if (w->topology == TOPOLOGY_HOLD) return usage(err, "a storm needs publishes: it asks what was missed");
  if (w->storm_by_server && w->target) {
    return usage(err, "--storm-by server asks the embedded musterd to end the connections: leave --target out");
  }
  if (w->storm_at_ns >= w->duration_ns) return usage(err, "--storm-at must lie within --duration");
  if (w->backoff_first_ns == 0 || w->backoff_first_ns > w->backoff_max_ns) {
    return usage(err, "--backoff must be above 0 and not above --backoff-max");
  }
  if (!(w->backoff_jitter >= 0 && w->backoff_jitter <= 1))
    return usage(err, "--backoff-jitter must lie between 0 and 1");
  return STATUS_OK;
}

/* Every ring of the server has room for a power of two. */
static uint64_t ring_size(uint64_t messages) {
  uint64_t size = 8;
  while (size < messages)
    size *= 2;
  return size;
}

/* The embedded server forgets what is too old or too much, so that a loss would be no finding. */
static enum status check_embedded_backlog(const struct workload *w, const struct driver *driver, struct err *err) {
  uint64_t receivers = w->clients - w->senders, length_ns = w->duration_ns;
  struct totals totals;
  estimate_totals(w, driver->capabilities, &totals);
  uint64_t each = (totals.publishes + receivers - 1) / receivers;
  if (each > EMBEDDED_BACKLOG_MESSAGES) {
    return err_set(err, STATUS_USAGE,
        "%" PRIu64 " messages to each receiver, but the embedded server keeps %d for one who is offline: lower --rate, "
        "--count or --rounds, or give more --clients",
        each, EMBEDDED_BACKLOG_MESSAGES);
  }
  uint64_t sent = ring_size((totals.publishes + w->senders - 1) / w->senders);
  uint64_t entries = receivers * ring_size(each) + w->senders * sent;
  if (entries > EMBEDDED_BACKLOG_MESSAGES_IN_ALL) {
    return err_set(err, STATUS_USAGE,
        "%" PRIu64 " messages kept for receivers and senders are more than the %" PRIu64
        " that the embedded server keeps in all: lower --clients, --rate, --count or --rounds",
        entries, EMBEDDED_BACKLOG_MESSAGES_IN_ALL);
  }
  if (!workload_is_closed(w) && workload_limit(w) > 0) {
    uint64_t limited_ns = (uint64_t)((double)workload_limit(w) / workload_first_rate(w) * (double)NS_PER_SEC);
    if (limited_ns < length_ns) length_ns = limited_ns;
  }
  if (length_ns + w->grace_ns + w->catch_up_deadline_ns <= EMBEDDED_BACKLOG_NS) return STATUS_OK;
  return err_set(err, STATUS_USAGE,
      "the embedded server keeps messages for %d minutes, but sending, grace and catch-up may take %.0f s together: "
      "shorten --duration or --catch-up-timeout",
      (int)(EMBEDDED_BACKLOG_NS / NS_PER_SEC / 60),
      (double)(length_ns + w->grace_ns + w->catch_up_deadline_ns) / (double)NS_PER_SEC);
}

static enum status check_backlog(const struct workload *w, const struct driver *driver, struct err *err) {
  if (!w->backlog) return STATUS_OK;
  if (!(settings_capabilities(w, driver) & CAPABILITY_BACKLOG)) {
    return err_set(err, STATUS_USAGE,
        "with these settings driver %s keeps nothing for users who are offline: choose another workload (mqtt: --qos 1 "
        "or 2), or another driver (muster drivers)",
        driver->name);
  }
  if (w->topology != TOPOLOGY_STAR || w->storm || w->offline > 0) {
    return usage(err, "a backlog needs a star whose receivers all come back, without a storm");
  }
  if (w->warmup_ns > 0) return usage(err, "a backlog run has no warm-up, or it would be read too: leave --warmup out");
  if (w->catch_up_deadline_ns == 0) return usage(err, "--catch-up-timeout must be above 0");
  uint64_t spent_ns = w->duration_ns + w->grace_ns;
  if (w->catch_up_deadline_ns > LEDGER_REACH_NS || spent_ns + w->catch_up_deadline_ns > LEDGER_REACH_NS) {
    return usage(err, "duration, grace and catch-up together may take 4 hours at most: shorten --duration");
  }
  return w->target ? STATUS_OK : check_embedded_backlog(w, driver, err);
}

static enum status check_shape(const struct workload *w, struct err *err) {
  bool alone = w->topology == TOPOLOGY_HOLD || w->topology == TOPOLOGY_ECHO || w->topology == TOPOLOGY_SELF ||
               w->topology == TOPOLOGY_BROADCAST;
  if (w->clients < (alone ? 1 : 2)) return usage(err, "--clients must be at least 2: somebody has to listen");
  if (w->topology == TOPOLOGY_PAIRS && w->clients % 2 != 0) {
    return err_set(err, STATUS_USAGE, "--clients %u leaves one without a partner: give an even number", w->clients);
  }
  if (w->topology == TOPOLOGY_HOLD) return STATUS_OK;
  enum status status = check_senders(w, err);
  if (status == STATUS_OK && w->topology == TOPOLOGY_GROUPS) status = check_groups(w, err);
  if (status == STATUS_OK) status = check_streams(w, err);
  return status;
}

static enum status check_topology(const struct workload *w, const struct driver *driver, struct err *err) {
  unsigned needed = topology_capability(w->topology);
  if ((driver->capabilities & needed) != needed) {
    return err_set(err, STATUS_USAGE,
        "driver %s has no %s: choose another workload, or another driver (muster drivers)", driver->name,
        topology_messages(w->topology));
  }
  enum status status = check_shape(w, err);
  if (status == STATUS_OK) status = check_storm(w, err);
  if (status == STATUS_OK) status = check_load(w, driver, err);
  if (status == STATUS_OK) status = check_backlog(w, driver, err);
  if (status != STATUS_OK) return status;
  if (w->payload_bytes < driver->payload_min_bytes) {
    return err_set(err, STATUS_USAGE, "--payload-bytes %u: the accounting header needs at least %u", w->payload_bytes,
        driver->payload_min_bytes);
  }
  if (w->payload_bytes > 8 * 1024 * 1024) return usage(err, "--payload-bytes may be 8388608 at most");
  return STATUS_OK;
}

/* The embedded server is ours, so its limit is known; what another server allows is only said in the report. */
static enum status check_rate_limit(const struct workload *w, const struct driver *driver, struct err *err) {
  if (w->target || !w->rate_limits || driver->rate_limit == 0) return STATUS_OK;
  uint32_t senders = topology_of(w).senders;
  if (w->topology == TOPOLOGY_HOLD) return STATUS_OK;
  if (workload_is_closed(w)) return STATUS_OK;
  double each = workload_first_rate(w) / senders;
  if (each <= driver->rate_limit) return STATUS_OK;
  return err_set(err, STATUS_USAGE,
      "%.0f publishes/s over %u senders are %.0f/s each, above the server's limit of %u/s per connection: use at least "
      "%.0f senders, or switch the embedded server's rate limits off",
      workload_first_rate(w), senders, each, driver->rate_limit, ceil(workload_first_rate(w) / driver->rate_limit));
}

static bool is_loopback(const char *host) {
  struct address address;
  return strcmp(host, "localhost") == 0 ||
         (address_resolve(host, 1, &address, NULL) == STATUS_OK && address_is_loopback(&address));
}

static enum status check_url(const struct workload *w, const char *option, const char *text, struct err *err) {
  struct url url;
  if (!text) return STATUS_OK;
  if (url_parse(text, &url, err) != STATUS_OK) return err ? err_prefix(err, "%s", option) : STATUS_USAGE;
  if (w->allow_non_loopback || is_loopback(url.host)) return STATUS_OK;
  return err_set(err, STATUS_USAGE,
      "%s: %s is not this machine; load goes elsewhere only with --allow-non-loopback, and only where you may", option,
      url.host);
}

static enum status check_descriptors(const struct needs *n, struct err *err) {
  if (n->nofile_hard <= WORKER_DESCRIPTORS) {
    return err_set(err, STATUS_USAGE, "only %" PRIu64 " open files are allowed: raise the hard limit (ulimit -Hn)",
        n->nofile_hard);
  }
  if (n->worker_descriptors <= n->nofile_hard) return STATUS_OK;
  uint64_t room = n->nofile_hard - WORKER_DESCRIPTORS;
  return err_set(err, STATUS_USAGE,
      "%u clients in %u workers need %" PRIu64 " open files each, but only %" PRIu64
      " are allowed: give --workers %" PRIu64 " or more, or raise the hard limit (ulimit -Hn)",
      n->connections, n->workers, n->worker_descriptors, n->nofile_hard, (n->connections + room - 1) / room);
}

static bool target_is_loopback(const struct workload *w) {
  struct url url;
  struct address_ranges targets;
  if (w->target_addresses) {
    return address_ranges_parse(w->target_addresses, &targets, NULL) == STATUS_OK &&
           address_ranges_are_loopback(&targets);
  }
  return !w->target || (url_parse(w->target, &url, NULL) == STATUS_OK && is_loopback(url.host));
}

static enum status check_target_addresses(const struct workload *w, const struct driver *driver, struct err *err) {
  struct address_ranges targets;
  if (!w->target_addresses) return STATUS_OK;
  if (driver->connect) {
    return err_set(
        err, STATUS_USAGE, "--target-addr: driver %s connects to the one address of its target", driver->name);
  }
  enum status status = address_ranges_parse(w->target_addresses, &targets, err);
  if (status != STATUS_OK) return err ? err_prefix(err, "--target-addr") : status;
  if (!w->allow_non_loopback && !address_ranges_are_loopback(&targets)) {
    return err_set(err, STATUS_USAGE,
        "--target-addr: %.80s are not all of this machine; load goes elsewhere only with --allow-non-loopback, and "
        "only "
        "where you may",
        w->target_addresses);
  }
  if (w->target || targets.count < EMBEDDED_ADDRESSES_MAX) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "--target-addr: the embedded server listens on %d addresses at most",
      EMBEDDED_ADDRESSES_MAX - 1);
}

/* To a loopback target as many source addresses are used as are needed, unless the user gives them; elsewhere this
 * host's one address has to do. */
static enum status count_addresses(const struct workload *w, struct needs *out, struct err *err) {
  struct address_ranges sources = {.count = 1}, targets = {.count = 1};
  enum status status = w->target_addresses ? address_ranges_parse(w->target_addresses, &targets, err) : STATUS_OK;
  if (status != STATUS_OK) return err ? err_prefix(err, "--target-addr") : status;
  out->source_ports = address_source_ports();
  if (w->local_addresses) {
    status = address_ranges_parse(w->local_addresses, &sources, err);
    if (status == STATUS_OK) status = address_ranges_check(&sources, err);
    if (status != STATUS_OK) return err ? err_prefix(err, "--local-addr") : status;
  } else if (target_is_loopback(w)) {
    sources.count = client_source_addresses(out->connections, targets.count);
  }
  out->source_addresses = sources.count;
  out->target_addresses = targets.count;
  return STATUS_OK;
}

static enum status check_ports(const struct workload *w, const struct needs *n, struct err *err) {
  bool chosen_freely = !w->local_addresses && target_is_loopback(w);
  uint64_t pairs = (uint64_t)n->source_addresses * n->target_addresses;
  if (chosen_freely || n->connections <= n->source_ports * pairs) return STATUS_OK;
  return err_set(err, STATUS_USAGE,
      "%u connections from %u address%s to %u need more source ports than this machine has for each pair (%" PRIu64
      "): give more with --local-addr or --target-addr, or sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"",
      n->connections, n->source_addresses, n->source_addresses == 1 ? "" : "es", n->target_addresses, n->source_ports);
}

static uint64_t available_bytes(void) {
  char line[256];
  unsigned long long kib = 0;
  FILE *file = fopen("/proc/meminfo", "re");
  if (!file) return UINT64_MAX;
  while (kib == 0 && fgets(line, sizeof(line), file)) {
    if (sscanf(line, "MemAvailable: %llu kB", &kib) != 1) kib = 0; /* NOLINT(cert-err34-c): the kernel's own numbers */
  }
  fclose(file);
  return kib > 0 ? kib * 1024 : UINT64_MAX;
}

static enum status count_memory(
    const struct workload *w, const struct driver *driver, struct needs *out, struct err *err) {
  struct report_environment environment;
  report_environment_read(&environment);
  uint64_t limit = environment.cgroup_memory_bytes, available = available_bytes();
  out->available_bytes = limit > 0 && limit < available ? limit : available;
  out->kernel_bytes = (uint64_t)out->connections * KERNEL_BYTES_PER_END * (target_is_loopback(w) ? 2 : 1);
  out->server_bytes = w->target ? 0 : (uint64_t)out->connections * EMBEDDED_BYTES;
  return plan_memory_bytes(w, driver, &out->accounting_bytes, err);
}

static enum status check_memory(const struct needs *n, struct err *err) {
  double needed = (double)n->accounting_bytes + (double)n->kernel_bytes + (double)n->server_bytes;
  double available = (double)n->available_bytes;
  if (needed <= available * MEMORY_SHARE) return STATUS_OK;
  return err_set(err, STATUS_USAGE,
      "this run needs about %.1f GiB (connections and accounting), but only %.1f GiB are available: lower --clients, "
      "--rate or --duration",
      needed / GIB, available / GIB);
}

enum status check_needs(
    const struct workload *workload, const struct driver *driver, struct needs *out, struct err *err) {
  struct rlimit limit = {.rlim_max = RLIM_INFINITY};
  getrlimit(RLIMIT_NOFILE, &limit);
  uint32_t online = workload_online(workload), workers = plan_workers(workload, limit.rlim_max);
  *out = (struct needs){
      .connections = online,
      .workers = workers,
      .worker_descriptors = (online + workers - 1) / workers + WORKER_DESCRIPTORS,
      .nofile_hard = limit.rlim_max,
  };
  enum status status = count_addresses(workload, out, err);
  return status == STATUS_OK ? count_memory(workload, driver, out, err) : status;
}

enum status check_workload(const struct workload *workload, const struct driver *driver, struct err *err) {
  enum status status = check_numbers(workload, err);
  if (status == STATUS_OK) status = check_topology(workload, driver, err);
  if (status == STATUS_OK) status = check_rate_limit(workload, driver, err);
  if (status == STATUS_OK) status = check_url(workload, "--target", workload->target, err);
  if (status == STATUS_OK) status = check_target_addresses(workload, driver, err);
  if (status == STATUS_OK) status = check_url(workload, "--api-url", workload->api_url, err);
  if (status == STATUS_OK) status = check_url(workload, "--navigator", workload->navigator_url, err);
  return status;
}

enum status run_check(const struct workload *workload, const struct driver *driver, struct err *err) {
  struct needs needs;
  enum status status = check_workload(workload, driver, err);
  if (status == STATUS_OK) status = check_needs(workload, driver, &needs, err);
  if (status == STATUS_OK) status = check_descriptors(&needs, err);
  if (status == STATUS_OK) status = check_ports(workload, &needs, err);
  if (status == STATUS_OK) status = check_memory(&needs, err);
  return status;
}
