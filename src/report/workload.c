#include "report/workload.h"

const char *topology_name(enum topology_kind topology) {
  static const char *const names[] = {
      "ring", "pairs", "star", "queue", "groups", "room", "broadcast", "echo", "self", "hold"};
  return names[topology];
}

const char *load_model_name(enum load_model load) {
  static const char *const names[] = {"open", "closed", "rounds"};
  return names[load];
}

const char *arrivals_name(enum arrivals arrivals) {
  return arrivals == ARRIVALS_CONSTANT ? "constant" : "poisson";
}

bool workload_options_text(const struct workload *workload, char out[WORKLOAD_OPTIONS_TEXT_MAX]) {
  const struct facts *const lists[] = {&workload->options, &workload->target_options};
  size_t used = 0;
  for (size_t list = 0; list < 2; list++) {
    for (uint32_t i = 0; i < lists[list]->count; i++) {
      const struct fact *fact = &lists[list]->fact[i];
      used += (size_t)snprintf(
          out + used, WORKLOAD_OPTIONS_TEXT_MAX - used, "%s%s %s", used ? ", " : "", fact->name, fact->value);
    }
  }
  return used > 0;
}

uint32_t workload_online(const struct workload *workload) {
  return workload->clients - workload->offline;
}

uint32_t workload_early(const struct workload *workload) {
  return workload->backlog ? workload->senders : workload_online(workload);
}

uint32_t workload_targets(const struct workload *workload) {
  if (workload->topology == TOPOLOGY_STAR && workload->clients > workload->senders) {
    return workload->clients - workload->senders;
  }
  if (workload->topology == TOPOLOGY_QUEUE) return workload->groups > 1 ? workload->groups : 1;
  bool goes_round = workload->topology == TOPOLOGY_GROUPS && workload->shared_groups && workload->groups > 1;
  return goes_round ? workload->groups : 1;
}

bool workload_is_closed(const struct workload *workload) {
  return workload->load == LOAD_CLOSED || (workload->load == LOAD_ROUNDS && workload->interval_ns == 0);
}

void workload_share_in_flight(struct workload *workload) {
  bool all = workload->in_flight > workload->clients;
  workload->senders = all ? workload->clients : workload->in_flight;
  workload->outstanding = all ? workload->in_flight / workload->clients : 1;
}

uint64_t workload_limit(const struct workload *workload) {
  if (workload->load != LOAD_ROUNDS) return workload->publishes;
  return (uint64_t)workload->rounds * workload_targets(workload) * workload->senders;
}

double workload_first_rate(const struct workload *workload) {
  if (workload->load == LOAD_ROUNDS && workload->interval_ns > 0) {
    return (double)workload->senders * 1e9 / (double)workload->interval_ns;
  }
  return workload->steps > 0 ? workload->step[0].from_per_sec : workload->rate_per_sec;
}

uint32_t workload_segments(const struct workload *workload, struct rate_segment out[WORKLOAD_STEPS_MAX]) {
  for (uint32_t i = 0; i < workload->steps; i++)
    out[i] = workload->step[i];
  if (workload->steps > 0) return workload->steps;
  double rate = workload_first_rate(workload);
  out[0] = (struct rate_segment){
      workload->duration_ns, rate, workload->ramp_to_per_sec > 0 ? workload->ramp_to_per_sec : rate};
  return 1;
}

double workload_owed(const struct workload *workload, double elapsed_s) {
  struct rate_segment segment[WORKLOAD_STEPS_MAX];
  uint32_t segments = workload_segments(workload, segment);
  double owed = 0;
  for (uint32_t i = 0; i < segments && elapsed_s > 0; i++) {
    double length_s = (double)segment[i].length_ns / 1e9;
    double part_s = elapsed_s < length_s || i + 1 == segments ? elapsed_s : length_s;
    double slope = length_s > 0 ? (segment[i].to_per_sec - segment[i].from_per_sec) / length_s : 0;
    owed += (segment[i].from_per_sec + slope * part_s / 2) * part_s;
    elapsed_s -= part_s;
  }
  uint64_t limit = workload_limit(workload);
  return limit > 0 && owed > (double)limit ? (double)limit : owed;
}

double workload_copies(const struct workload *workload) {
  double clients = workload->clients;
  switch (workload->topology) {
  case TOPOLOGY_RING:
  case TOPOLOGY_PAIRS:
  case TOPOLOGY_STAR:
    return 2;
  case TOPOLOGY_GROUPS:
    return workload->shared_groups || workload->groups <= 1 ? clients : clients / workload->groups;
  case TOPOLOGY_ROOM:
  case TOPOLOGY_BROADCAST:
    return clients;
  case TOPOLOGY_ECHO:
  case TOPOLOGY_QUEUE:
    return 1;
  default:
    return 0;
  }
}
