#include "load/estimate.h"

#include "load/topology.h"

#include <math.h>

/* Slots that fall due before length_s; the tiny part forgives what a division of decimals leaves over. */
static double slots(double rate_per_sec, double length_s) {
  return length_s > 0 ? ceil(rate_per_sec * length_s - 1e-6) : 0;
}

static void count_publishes(const struct workload *w, struct totals *out) {
  double warmup_s = (double)w->warmup_ns / 1e9, length_s = (double)w->duration_ns / 1e9;
  uint64_t limit = workload_limit(w);
  if (workload_is_closed(w)) {
    out->known = limit > 0;
    out->publishes = limit;
    return;
  }
  out->known = true;
  out->warmup_publishes = (uint64_t)slots(workload_first_rate(w), warmup_s);
  out->publishes = (uint64_t)ceil(workload_owed(w, length_s) - 1e-6);
}

/* Online recipients of what a sender sends to a target; offline are the last clients, and never a sender. */
static uint32_t online_recipients(const struct ledger_plan *plan, uint32_t online, uint32_t sender, uint32_t target) {
  uint32_t count = plan->recipients_of(plan->topology, sender, target);
  /* Recipients come in ascending order, so the online ones are the first of them. */
  uint32_t low = 0, high = count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (plan->recipient(plan->topology, sender, target, middle) < online) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/* Deliveries of the first `publishes` slots of a cycle, in which each sender addresses each target once. */
static uint64_t count_deliveries(const struct workload *w, const struct ledger_plan *plan, uint64_t publishes) {
  uint32_t online = workload_online(w), targets = plan->targets > 0 ? plan->targets : 1;
  uint64_t deliveries = 0, left = publishes;
  for (uint32_t target = 0; target < targets && left > 0; target++) {
    for (uint32_t sender = 0; sender < plan->senders && left > 0; sender++, left--)
      deliveries += online_recipients(plan, online, sender, target);
  }
  return deliveries;
}

/* Only in a star and in groups that stand apart do publishes differ in how many hear them. */
static uint64_t all_deliveries(const struct workload *w, const struct ledger_plan *plan, uint64_t publishes) {
  bool apart = w->topology == TOPOLOGY_GROUPS && !w->shared_groups;
  if (!apart && !(w->topology == TOPOLOGY_STAR && w->offline > 0)) {
    return publishes * online_recipients(plan, workload_online(w), 0, 0);
  }
  uint64_t cycle = (uint64_t)plan->senders * (plan->targets > 0 ? plan->targets : 1);
  uint64_t whole = publishes / cycle;
  uint64_t deliveries = whole > 0 ? whole * count_deliveries(w, plan, cycle) : 0;
  return deliveries + count_deliveries(w, plan, publishes % cycle);
}

void estimate_totals(const struct workload *workload, struct totals *out) {
  *out = (struct totals){0};
  count_publishes(workload, out);
  out->copies = workload_copies(workload);
  out->distributions = (uint64_t)llround((double)out->publishes * out->copies);
  struct topology topology = topology_of(workload);
  bool apart = topology.kind == TOPOLOGY_GROUPS && !topology.shared_groups;
  bool sound = topology.senders > 0 && topology.senders <= topology.clients && workload->offline < topology.clients &&
               !(apart && topology.clients < topology.groups);
  if (out->publishes == 0 || !sound) return;
  struct ledger_plan plan = topology_plan(&topology, out->publishes);
  out->deliveries = all_deliveries(workload, &plan, out->publishes);
}
