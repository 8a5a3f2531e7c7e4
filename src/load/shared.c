#include "load/shared.h"

#include "base/clock.h"
#include "base/shm.h"
#include "load/client.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>

#define PAGE 4096
#define CLOSED_RATE_MAX 200e3     /* publishes a second that one host's closed loops are given room for */
#define CLOSED_DELIVERIES_MAX 2e6 /* and deliveries */
#define CLOSED_UNEVENNESS 4       /* how much faster than the others one sender may be */
#define CLOSED_SEQUENCES_MIN 64

static size_t whole_pages(size_t size) {
  return (size + PAGE - 1) / PAGE * PAGE;
}

static uint32_t usable_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  int count = CPU_COUNT(&set);
  return count > 0 ? (uint32_t)count : 1;
}

/* When the closed loops of all workers were through; 0: not yet, or nothing but time ends them. */
static uint64_t loops_done_ns(const struct plan *plan) {
  uint64_t last_ns = 0;
  if (!plan->closed || workload_limit(plan->workload) == 0) return 0;
  for (uint32_t i = 0; i < plan->workers; i++) {
    uint64_t done_ns = plan->shared.area[i].done_ns;
    if (done_ns == 0) return 0;
    if (done_ns > last_ns) last_ns = done_ns;
  }
  return last_ns;
}

bool plan_end_loops(const struct plan *plan) {
  struct control *control = plan->shared.control;
  uint64_t start_ns = control->start_ns[TRAFFIC_MEASURE], done_ns = loops_done_ns(plan);
  if (done_ns == 0 || done_ns > control->end_ns[TRAFFIC_MEASURE]) return false;
  if (done_ns <= start_ns) done_ns = start_ns + 1; /* every sender was lost in the warm-up */
  control->end_ns[TRAFFIC_MEASURE] = done_ns;
  return true;
}

uint32_t plan_workers(const struct workload *workload, uint64_t nofile) {
  if (workload->workers > 0) return workload->workers;
  uint64_t room = nofile > WORKER_DESCRIPTORS ? nofile - WORKER_DESCRIPTORS : 1;
  uint64_t needed = (workload_online(workload) + room - 1) / room;
  uint32_t cores = usable_cores();
  uint64_t workers = needed > cores ? needed : cores;
  uint32_t online = workload_online(workload);
  return workers > online ? online : (uint32_t)workers;
}

uint32_t plan_seconds(const struct workload *workload) {
  return (uint32_t)((workload->duration_ns + NS_PER_SEC - 1) / NS_PER_SEC);
}

double plan_max_rate(const struct workload *workload) {
  if (workload->max_rate_per_sec > 0) return workload->max_rate_per_sec;
  struct topology topology = topology_of(workload);
  uint32_t fan_out = topology_plan(&topology, 0).fan_out;
  return fmin(CLOSED_RATE_MAX, CLOSED_DELIVERIES_MAX / (fan_out > 0 ? fan_out : 1));
}

/* Slots for a closed loop, whose rate nobody knows beforehand: as many publishes as are asked for, or room for each
 * sender to be some times as fast as its share of the highest rate. */
static uint64_t closed_slots(const struct workload *workload, uint64_t length_ns, uint64_t limit) {
  if (limit > 0) return limit;
  if (length_ns == 0) return 0;
  uint32_t senders = topology_of(workload).senders;
  double share = plan_max_rate(workload) * (double)length_ns / (double)NS_PER_SEC / senders;
  return (uint64_t)fmax(ceil(share * CLOSED_UNEVENNESS), CLOSED_SEQUENCES_MIN) * senders;
}

enum status plan_schedule(
    const struct workload *workload, enum traffic_phase phase, struct schedule *out, struct err *err) {
  bool measure = phase == TRAFFIC_MEASURE;
  uint64_t length_ns = measure ? workload->duration_ns : workload->warmup_ns;
  uint64_t limit = measure ? workload_limit(workload) : 0;
  if (workload_is_closed(workload)) {
    *out = (struct schedule){.length_ns = length_ns, .slots = closed_slots(workload, length_ns, limit)};
    if (out->slots <= SCHEDULE_SLOTS_MAX) return STATUS_OK;
    return err_set(err, STATUS_USAGE, "room for more than %llu publishes in one phase: lower --max-rate or --duration",
        (unsigned long long)SCHEDULE_SLOTS_MAX);
  }
  struct rate_segment segment[WORKLOAD_STEPS_MAX];
  uint32_t segments = workload_segments(workload, segment);
  if (!measure) {
    double rate = workload_first_rate(workload);
    segment[0] = (struct rate_segment){length_ns, rate, rate};
    segments = 1;
  }
  struct schedule_plan plan = {workload->arrivals, segment, segments, workload->seed + (uint64_t)phase, limit};
  return schedule_make(out, &plan, err);
}

static enum status make_schedules(struct plan *plan, struct err *err) {
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++) {
    enum status status = plan_schedule(plan->workload, (enum traffic_phase)phase, &plan->schedule[phase], err);
    if (status != STATUS_OK) return status;
  }
  return STATUS_OK;
}

static size_t catch_up_size(const struct workload *workload) {
  if (!workload->backlog) return 0;
  return (size_t)(workload->clients - workload->senders) * sizeof(struct catch_up);
}

static enum status make_mapping(struct plan *plan, struct err *err) {
  struct shared *shared = &plan->shared;
  uint32_t seconds = plan_seconds(plan->workload);
  size_t control_size = whole_pages(sizeof(struct control));
  size_t areas_size = whole_pages(sizeof(struct worker_area) * plan->workers);
  size_t one_series = whole_pages(series_size(seconds));
  size_t ledgers_size = 0;
  struct ledger_plan ledger_plan[TRAFFIC_PHASES];
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++) {
    ledger_plan[phase] = topology_plan(&plan->topology, plan->schedule[phase].slots);
    size_t size = ledger_size(&ledger_plan[phase]);
    if (size > SIZE_MAX / 4) return err_set(err, STATUS_USAGE, "the accounting does not fit any memory: lower --rate");
    ledgers_size += whole_pages(size);
  }
  size_t catch_up = whole_pages(catch_up_size(plan->workload));
  shared->size = control_size + areas_size + one_series * plan->workers + ledgers_size + catch_up;
  enum status status = shm_map(&shared->memory, shared->size, err);
  if (status != STATUS_OK) return status;
  shared->series = calloc(plan->workers, sizeof(struct series *));
  if (!shared->series) return err_set(err, STATUS_MEMORY, "out of memory for the plan of the run");

  uint8_t *at = shared->memory;
  shared->control = (struct control *)at;
  shared->area = (struct worker_area *)(at + control_size);
  at += control_size + areas_size;
  for (uint32_t i = 0; i < plan->workers; i++, at += one_series)
    shared->series[i] = series_init(at, seconds);
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++) {
    shared->ledger[phase] = ledger_init(at, &ledger_plan[phase]);
    at += whole_pages(ledger_size(&ledger_plan[phase]));
  }
  shared->catch_up = catch_up > 0 ? (struct catch_up *)at : NULL;
  return STATUS_OK;
}

enum status plan_make(struct plan *plan, struct err *err) {
  enum status status = make_schedules(plan, err);
  if (status == STATUS_OK) status = make_mapping(plan, err);
  if (status != STATUS_OK) plan_free(plan);
  return status;
}

void plan_free(struct plan *plan) {
  shm_unmap(plan->shared.memory, plan->shared.size);
  free(plan->shared.series);
  plan->shared = (struct shared){0};
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++)
    schedule_free(&plan->schedule[phase]);
}

enum status plan_memory_bytes(
    const struct workload *workload, const struct driver *driver, uint64_t *bytes, struct err *err) {
  struct topology topology = topology_of(workload);
  double warmup_s = (double)workload->warmup_ns / (double)NS_PER_SEC;
  double publishes = warmup_s * workload_first_rate(workload);
  publishes += workload_owed(workload, (double)workload->duration_ns / (double)NS_PER_SEC);
  if (workload_is_closed(workload)) {
    publishes = (double)closed_slots(workload, workload->warmup_ns, 0);
    publishes += (double)closed_slots(workload, workload->duration_ns, workload_limit(workload));
  }
  if (publishes > (double)SCHEDULE_SLOTS_MAX) {
    return err_set(err, STATUS_USAGE, "%.3g publishes in one run: lower --rate, --max-rate or --duration", publishes);
  }
  struct ledger_plan plan = topology_plan(&topology, publishes > 0 ? (uint64_t)publishes + 1 : 0);
  uint64_t ledger = ledger_size(&plan);
  uint64_t clients = (uint64_t)workload_online(workload) * client_stride(driver);
  clients += (uint64_t)workload->clients * 256; /* id and token */
  clients += catch_up_size(workload);
  *bytes = ledger > UINT64_MAX - clients ? UINT64_MAX : ledger + clients;
  return STATUS_OK;
}
