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

/* Numbers below n whose remainder by `targets` is below `online`. */
static uint64_t below(uint64_t n, uint64_t targets, uint64_t online) {
  uint64_t rest = n % targets;
  return n / targets * online + (rest < online ? rest : online);
}

/* In a star, message t of sender s goes to receiver (s + t) % receivers; the first receivers are online. A cycle may
 * have 2^31 publishes, so whole rows of it are counted at once. */
static uint64_t star_deliveries(const struct workload *w, uint64_t publishes) {
  uint64_t senders = w->senders, receivers = w->clients - w->senders, online = workload_online(w) - w->senders;
  uint64_t cycle = senders * receivers, rest = publishes % cycle;
  uint64_t deliveries = publishes / cycle * senders * online;
  for (uint64_t row = 0; rest > 0; row++) {
    uint64_t in_row = rest < senders ? rest : senders;
    deliveries += below(row + in_row, receivers, online) - below(row, receivers, online);
    rest -= in_row;
  }
  return deliveries;
}

/* In groups that stand apart members differ in number and in who is offline. */
static uint64_t group_deliveries(const struct workload *w, const struct ledger_plan *plan, uint64_t publishes) {
  uint64_t whole = publishes / plan->senders, deliveries = 0;
  for (uint32_t sender = 0; sender < plan->senders; sender++) {
    uint64_t sent = whole + (sender < publishes % plan->senders);
    deliveries += sent * online_recipients(plan, workload_online(w), sender, 0);
  }
  return deliveries;
}

static uint64_t all_deliveries(const struct workload *w, const struct ledger_plan *plan, uint64_t publishes) {
  if (w->topology == TOPOLOGY_QUEUE) return publishes;
  if (w->topology == TOPOLOGY_STAR) return star_deliveries(w, publishes);
  if (w->topology == TOPOLOGY_GROUPS && !w->shared_groups) return group_deliveries(w, plan, publishes);
  return publishes * online_recipients(plan, workload_online(w), 0, 0);
}

void estimate_totals(const struct workload *workload, unsigned capabilities, struct totals *out) {
  *out = (struct totals){0};
  count_publishes(workload, out);
  out->copies = workload_copies(workload);
  out->distributions = (uint64_t)fmin(round((double)out->publishes * out->copies), 9e18);
  struct topology topology = topology_with(workload, capabilities);
  bool apart = topology.kind == TOPOLOGY_GROUPS && !topology.shared_groups;
  bool sound = topology.senders > 0 && topology.senders <= topology.clients &&
               workload->offline <= topology.clients - topology.senders &&
               !(apart && topology.clients < topology.groups) &&
               !(topology.kind == TOPOLOGY_STAR && topology.senders == topology.clients);
  if (out->publishes == 0 || !sound) return;
  struct ledger_plan plan = topology_plan(&topology, out->publishes);
  out->deliveries = all_deliveries(workload, &plan, out->publishes);
}
