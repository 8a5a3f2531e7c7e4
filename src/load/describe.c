#include "load/describe.h"

#include <inttypes.h>
#include <stdio.h>

void describe_target(const struct plan *plan, const char *url, struct report *report) {
  const struct driver_run *driver_run = &plan->run;
  const struct driver *driver = driver_run->driver;
  const struct workload *workload = plan->workload;
  struct report_target *target = &report->target;
  bool embedded = workload->target == NULL;
  snprintf(target->url, sizeof(target->url), "%s", url);
  snprintf(target->protocol, sizeof(target->protocol), "%s", driver->name);
  report->server_counters = driver_run->counters;
  snprintf(target->protocol_title, sizeof(target->protocol_title), "%s", driver_run->title);
  snprintf(target->server_version, sizeof(target->server_version), "%s", driver_run->server_version);
  snprintf(target->ack_meaning, sizeof(target->ack_meaning), "%s", driver_run->ack_meaning);
  snprintf(target->delivery, sizeof(target->delivery), "%s", driver_run->delivery);
  target->embedded = embedded;
  target->shares_host = embedded || address_is_own(&driver_run->address);
  snprintf(target->ack_policy, sizeof(target->ack_policy), "%s",
      embedded && workload->ack_policy ? workload->ack_policy : "unknown");
  snprintf(target->rate_limits, sizeof(target->rate_limits), "%s",
      !embedded               ? "unknown"
      : workload->rate_limits ? "on"
                              : "off");
  snprintf(target->storage, sizeof(target->storage), "%s",
      workload->database_label ? workload->database_label : "unspecified");
}

static void add_limitation(struct report *report, const char *sentence) {
  const size_t max = sizeof(report->limitations) / sizeof(report->limitations[0]) - 1;
  for (size_t i = 0; i < max; i++) {
    if (report->limitations[i]) continue;
    report->limitations[i] = sentence;
    return;
  }
}

void describe_limitations(const struct plan *plan, struct report *report) {
  const struct driver *driver = plan->driver;
  const struct workload *workload = plan->workload;
  add_limitation(report, "All latencies are differences of CLOCK_MONOTONIC on the generator's host.");
  if (report->target.shares_host) {
    add_limitation(report, "Generator and server share one host: they compete for its cores, and no network lies "
                           "between them.");
  }
  if (!report->target.embedded) {
    add_limitation(report, "What an ACK and the storage of this server guarantee is not known to muster: see the "
                           "labels.");
  }
  if (workload_is_closed(workload)) {
    add_limitation(report, "A closed loop: a slow server is offered less, so stalls hardly show in the latencies. A "
                           "publish is due when the answer to an earlier one came; `ack` is therefore `ack_service`.");
  }
  if (report->ended_by == ENDED_BY_CAPACITY) {
    add_limitation(report, "The measure phase ended when a sender had used up the room of the accounting: give a "
                           "higher --max-rate for a longer one.");
  }
  if (workload->storm_by_server) {
    add_limitation(report, "The storm came from the server, which ended every connection at once (SIGUSR1).");
  }
  if (workload->backlog && !report->target.embedded) {
    add_limitation(report, "How much this server keeps for users who are offline, and for how long, is not known to "
                           "muster: lost deliveries may be its policy.");
  }
  double each = workload->rate_per_sec / workload->senders;
  if (!report->target.embedded && driver->rate_limit > 0 && each > driver->rate_limit) {
    add_limitation(report, "The rate per sender is above the limit that servers of this protocol usually set for one "
                           "connection: rejections may be that limit and not a lack of capacity.");
  }
  add_limitation(report, "One trial: the spread between trials is not known.");
}

void describe_rejections(struct report *report) {
  if (codes_total(&report->measure.publishes.rejected) * 100 <= report->measure.publishes.attempted) return;
  add_limitation(report, "More than one publish in a hundred was rejected: latencies and deliveries are those of the "
                         "others.");
}

void describe_left_behind(struct report *report) {
  add_limitation(report,
      "Not every client could take away in the end what the server keeps for it: sessions of this run "
      "may still be there and queue.");
}

/* Only what this driver has can be wrong. */
static const char *mend_login(const struct driver *driver) {
  if (driver_reads(driver, "app-key", NULL)) return "the server refuses the login: check --app-key, and its log";
  if (driver_reads(driver, "user", NULL)) {
    return "the server refuses the login: check --user and MUSTER_PASSWORD, and its log";
  }
  return "the server refuses us: its log says why";
}

static const char *mend_connect(const struct driver *driver, int32_t code) {
  switch (code) {
  case CAUSE_CONNECT_REFUSED:
    return "nothing listens there: is the server running, and is the port right?";
  case CAUSE_CONNECT_TIMEOUT:
    return "it accepts connections but does not answer in time: is the server alive, and of this protocol? "
           "(--connect-timeout)";
  case CAUSE_TLS:
    return "the TLS handshake failed: check the certificate, --ca-file or --insecure, and that the port speaks TLS";
  case CAUSE_UPGRADE:
    return "it is no WebSocket endpoint of this protocol: check port and path";
  case CAUSE_CLOSED_EARLY:
    return "it closes the connection before the login is through: is it the right port, and does it want TLS or not "
           "(`muster "
           "drivers` lists the schemes)?";
  case CAUSE_PROTOCOL:
    return "what it answers is not this protocol: check that the target's scheme names the server's protocol";
  case CAUSE_CONNECT_ERROR:
    return "check the address, the route to it, and the limits of open files and of local ports";
  default:
    return mend_login(driver);
  }
}

enum status describe_unreached(const struct plan *plan, const struct report *report, struct err *err) {
  const struct codes *failed = &report->measure.connections.failed;
  uint32_t most = 0;
  for (uint32_t i = 1; i < failed->used; i++) {
    if (failed->entry[i].count > failed->entry[most].count) most = i;
  }
  int32_t code = failed->entry[most].code;
  const char *name = cause_name(code);
  if (!name && report->code_text) name = report->code_text(code);
  return err_set(err, STATUS_UNREACHABLE, "none of %u clients could connect to %s: %" PRIu64 " failed with %s (%d); %s",
      workload_early(plan->workload), report->target.url, failed->entry[most].count, name ? name : "a code", (int)code,
      mend_connect(plan->driver, code));
}
