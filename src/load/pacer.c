#include "load/pacer.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

/* The time into a segment at which `owed` more are owed: from + slope * t / 2 = owed / t, solved without cancellation.
 */
static long double time_in_segment(const struct schedule_segment *segment, long double owed) {
  long double from = segment->from_per_sec;
  if (segment->from_per_sec == segment->to_per_sec) return owed * (long double)NS_PER_SEC / from;
  long double slope = (segment->to_per_sec - from) * (long double)NS_PER_SEC / (long double)segment->length_ns;
  long double square = from * from + 2 * slope * owed;
  if (square < 0) return INFINITY; /* a falling rate never gets there */
  return 2 * owed / (from + sqrtl(square)) * (long double)NS_PER_SEC;
}

static uint64_t due_ns(const struct schedule *schedule, long double owed) {
  uint32_t i = 0;
  while (i + 1 < schedule->segments && owed >= schedule->segment[i + 1].owed)
    i++;
  const struct schedule_segment *segment = &schedule->segment[i];
  long double ns = segment->start_ns + time_in_segment(segment, owed - segment->owed);
  return ns < 9e18L ? (uint64_t)ns : UINT64_MAX;
}

/* A random gap of mean 1. */
static double gap(struct rng *rng) {
  return -log(1 - rng_double(rng));
}

static enum status too_many(struct err *err) {
  return err_set(err, STATUS_USAGE, "more than %llu publishes in one phase: lower --rate or --duration",
      (unsigned long long)SCHEDULE_SLOTS_MAX);
}

/* Returns what all segments owe together. */
static long double lay_segments(struct schedule *schedule, const struct schedule_plan *plan) {
  long double owed = 0;
  schedule->segments = plan->segments;
  for (uint32_t i = 0; i < plan->segments; i++) {
    const struct rate_segment *from = &plan->segment[i];
    schedule->segment[i] = (struct schedule_segment){
        from->from_per_sec, from->to_per_sec, from->length_ns, (long double)schedule->length_ns, owed};
    long double mean_per_sec = ((long double)from->from_per_sec + (long double)from->to_per_sec) / 2;
    owed += (long double)from->length_ns * mean_per_sec / (long double)NS_PER_SEC;
    schedule->length_ns += from->length_ns;
  }
  return owed;
}

static void make_constant(struct schedule *schedule, long double owed) {
  uint64_t slots = (uint64_t)owed;
  while (slots > 0 && due_ns(schedule, (long double)(slots - 1)) >= schedule->length_ns)
    slots--;
  while (due_ns(schedule, (long double)slots) < schedule->length_ns)
    slots++;
  schedule->slots = slots;
}

static bool keep_checkpoint(struct schedule *schedule, uint64_t *room, const struct rng *rng, double owed) {
  uint64_t at = schedule->slots / SCHEDULE_CHECKPOINT_SLOTS;
  if (at >= *room) {
    uint64_t wider = *room ? *room * 2 : 64;
    struct schedule_checkpoint *checkpoint = realloc(schedule->checkpoint, wider * sizeof(*checkpoint));
    if (!checkpoint) return false;
    schedule->checkpoint = checkpoint;
    *room = wider;
  }
  schedule->checkpoint[at] = (struct schedule_checkpoint){*rng, owed};
  return true;
}

/* A slot more than slots_max is made where there is one: its time is where the schedule ends. */
static enum status make_poisson(struct schedule *schedule, const struct schedule_plan *plan, struct err *err) {
  struct rng rng;
  uint64_t room = 0;
  rng_seed(&rng, plan->seed);
  double owed = gap(&rng);
  while (due_ns(schedule, owed) < schedule->length_ns) {
    if (plan->slots_max > 0 && schedule->slots > plan->slots_max) return STATUS_OK;
    if (schedule->slots == SCHEDULE_SLOTS_MAX) return too_many(err);
    if (schedule->slots % SCHEDULE_CHECKPOINT_SLOTS == 0 && !keep_checkpoint(schedule, &room, &rng, owed)) {
      return err_set(err, STATUS_MEMORY, "out of memory for the schedule: lower --rate or --duration");
    }
    schedule->slots++;
    owed += gap(&rng);
  }
  return STATUS_OK;
}

/* The schedule ends where its next slot would fall due. */
static void cut(struct schedule *schedule, uint64_t slots_max) {
  if (slots_max == 0 || schedule->slots < slots_max) return;
  if (schedule->slots > slots_max) schedule->length_ns = schedule_offset_ns(schedule, slots_max);
  schedule->slots = slots_max;
}

enum status schedule_make(struct schedule *out, const struct schedule_plan *plan, struct err *err) {
  *out = (struct schedule){.arrivals = plan->arrivals};
  long double owed = lay_segments(out, plan);
  if (out->length_ns == 0 || owed <= 0) {
    out->segments = 0;
    return STATUS_OK;
  }
  bool bounded = plan->slots_max > 0 && plan->slots_max < SCHEDULE_SLOTS_MAX;
  if (owed > (long double)SCHEDULE_SLOTS_MAX && !bounded) return too_many(err);
  enum status status = STATUS_OK;
  if (plan->arrivals == ARRIVALS_CONSTANT) {
    make_constant(out, owed);
  } else {
    status = make_poisson(out, plan, err);
  }
  if (status == STATUS_OK) cut(out, plan->slots_max);
  if (status != STATUS_OK) schedule_free(out);
  return status;
}

void schedule_free(struct schedule *schedule) {
  free(schedule->checkpoint);
  schedule->checkpoint = NULL;
  schedule->slots = 0;
}

uint64_t schedule_offset_ns(const struct schedule *schedule, uint64_t slot) {
  if (schedule->arrivals == ARRIVALS_CONSTANT) return due_ns(schedule, (long double)slot);
  struct schedule_checkpoint from = schedule->checkpoint[slot / SCHEDULE_CHECKPOINT_SLOTS];
  for (uint64_t i = slot % SCHEDULE_CHECKPOINT_SLOTS; i > 0; i--)
    from.owed += gap(&from.rng);
  return due_ns(schedule, from.owed);
}

static bool is_mine(const struct pacer *pacer) {
  return pacer->sender % pacer->workers == pacer->worker;
}

static void find_mine(struct pacer *pacer) {
  const struct schedule *schedule = pacer->schedule;
  while (pacer->slot < schedule->slots && !is_mine(pacer)) {
    pacer->slot++;
    if (++pacer->sender == pacer->senders) {
      pacer->sender = 0;
      pacer->sequence++;
    }
    if (schedule->arrivals == ARRIVALS_POISSON) pacer->owed += gap(&pacer->rng);
  }
  if (pacer->slot >= schedule->slots) {
    pacer->slot = schedule->slots;
    pacer->offset_ns = UINT64_MAX;
    return;
  }
  bool poisson = schedule->arrivals == ARRIVALS_POISSON;
  pacer->offset_ns = due_ns(schedule, poisson ? pacer->owed : (long double)pacer->slot);
}

void pacer_start(
    struct pacer *pacer, const struct schedule *schedule, uint32_t senders, uint32_t workers, uint32_t worker) {
  *pacer = (struct pacer){.schedule = schedule, .senders = senders, .workers = workers, .worker = worker};
  if (worker >= senders || schedule->slots == 0) {
    pacer->slot = schedule->slots;
    pacer->offset_ns = UINT64_MAX;
    return;
  }
  if (schedule->arrivals == ARRIVALS_POISSON) {
    pacer->rng = schedule->checkpoint[0].rng;
    pacer->owed = schedule->checkpoint[0].owed;
  }
  find_mine(pacer);
}

void pacer_next(struct pacer *pacer) {
  if (pacer->slot >= pacer->schedule->slots) return;
  pacer->slot++;
  if (++pacer->sender == pacer->senders) {
    pacer->sender = 0;
    pacer->sequence++;
  }
  if (pacer->schedule->arrivals == ARRIVALS_POISSON) pacer->owed += gap(&pacer->rng);
  find_mine(pacer);
}
