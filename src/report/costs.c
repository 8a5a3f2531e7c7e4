#include "report/costs.h"

#include "report/layout.h"

/* Of a private run: with no more deliveries than this for each ACK its receivers count as offline. */
#define OFFLINE_SHARE 0.1

static bool is_private(const struct workload *workload) {
  return workload->topology == TOPOLOGY_RING || workload->topology == TOPOLOGY_PAIRS ||
         workload->topology == TOPOLOGY_STAR;
}

/* Private publishes to receivers who are online cost send and notify + pull; costs add up. */
static void derive_private(const struct report *report, struct costs *costs) {
  const struct tally *t = &report->measure;
  bool offline =
      report->workload.backlog || (double)t->deliveries.observed <= (double)t->publishes.acked * OFFLINE_SHARE;
  double send_ns = (double)report->workload.send_cost_ns;
  if (offline) {
    costs->send_ns = costs->publish_ns;
    costs->formula = "send_ns = server CPU / acked publishes to receivers who are offline; their copies neglected";
  } else if (send_ns > 0 && send_ns < costs->publish_ns) {
    costs->notify_pull_ns = costs->publish_ns - send_ns;
    costs->formula = "notify_pull_ns = server CPU / acked publishes - send_ns of a run with receivers offline";
  }
}

struct costs costs_of(const struct report *report) {
  struct costs costs = {0};
  double acked = (double)report->measure.publishes.acked, length_s = report->measure_s + report->grace_s;
  if (report->server_cpu_s <= 0 || acked <= 0 || length_s <= 0) return costs;
  costs.known = true;
  costs.cores = report->server_cpu_s / length_s;
  costs.distributions = acked * workload_copies(&report->workload);
  costs.publishes_per_core_second = acked / report->server_cpu_s;
  costs.distributions_per_core_second = costs.distributions / report->server_cpu_s;
  costs.publish_ns = report->server_cpu_s * 1e9 / acked;
  if (is_private(&report->workload)) derive_private(report, &costs);
  if (report->workload.topology == TOPOLOGY_GROUPS) {
    costs.distribute_ns = report->server_cpu_s * 1e9 / costs.distributions;
    costs.formula = "distribute_ns = server CPU / (acked publishes x members)";
  }
  return costs;
}

static void put_or_null(struct json_writer *w, const char *key, double value) {
  if (value > 0) {
    json_put_double(w, key, value);
  } else {
    json_put_null(w, key);
  }
}

void costs_write_json(struct json_writer *w, const struct report *report) {
  struct costs costs = costs_of(report);
  if (!costs.known) {
    json_put_null(w, "derived");
    return;
  }
  json_open_object(w, "derived");
  json_put_double(w, "server_cpu_s", report->server_cpu_s);
  json_put_double(w, "server_cores", costs.cores);
  json_put_double(w, "distributions", costs.distributions);
  json_put_double(w, "publishes_per_core_second", costs.publishes_per_core_second);
  json_put_double(w, "distributions_per_core_second", costs.distributions_per_core_second);
  json_put_double(w, "publish_ns", costs.publish_ns);
  put_or_null(w, "send_cost_ns", (double)report->workload.send_cost_ns);
  json_open_object(w, "stages");
  put_or_null(w, "send_ns", costs.send_ns);
  put_or_null(w, "distribute_ns", costs.distribute_ns);
  put_or_null(w, "notify_pull_ns", costs.notify_pull_ns);
  json_put_text(w, "formula", costs.formula);
  json_close_object(w);
  json_close_object(w);
}

void costs_write_text(FILE *file, const struct report *report) {
  struct costs costs = costs_of(report);
  if (!costs.known) return;
  page_text(file, "server", "%.2f cores; for each of them %.1f publishes/s and %.1f distributions/s (copies)",
      costs.cores, costs.publishes_per_core_second, costs.distributions_per_core_second);
  page_text(file, "", "%.2f us of its CPU for a publish and all that follows", costs.publish_ns / 1e3);
  double stage_ns = costs.send_ns + costs.distribute_ns + costs.notify_pull_ns;
  if (stage_ns > 0) page_text(file, "", "stage: %.2f us; %s", stage_ns / 1e3, costs.formula);
}
