#include "load/pacer.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>

static uint64_t constant_offset_ns(double rate_per_sec, uint64_t slot) {
  return (uint64_t)((long double)slot * (long double)NS_PER_SEC / (long double)rate_per_sec);
}

static double gap_ns(const struct schedule *schedule, struct rng *rng) {
  return -log(1 - rng_double(rng)) / schedule->rate_per_sec * (double)NS_PER_SEC;
}

static enum status too_many(struct err *err) {
  return err_set(err, STATUS_USAGE, "more than %llu publishes in one phase: lower --rate or --duration",
      (unsigned long long)SCHEDULE_SLOTS_MAX);
}

static void make_constant(struct schedule *schedule) {
  long double exact = (long double)schedule->length_ns * (long double)schedule->rate_per_sec / (long double)NS_PER_SEC;
  uint64_t slots = (uint64_t)exact;
  while (slots > 0 && constant_offset_ns(schedule->rate_per_sec, slots - 1) >= schedule->length_ns)
    slots--;
  while (constant_offset_ns(schedule->rate_per_sec, slots) < schedule->length_ns)
    slots++;
  schedule->slots = slots;
}

static bool keep_checkpoint(struct schedule *schedule, uint64_t *room, const struct rng *rng, double offset_ns) {
  uint64_t at = schedule->slots / SCHEDULE_CHECKPOINT_SLOTS;
  if (at >= *room) {
    uint64_t wider = *room ? *room * 2 : 64;
    struct schedule_checkpoint *checkpoint = realloc(schedule->checkpoint, wider * sizeof(*checkpoint));
    if (!checkpoint) return false;
    schedule->checkpoint = checkpoint;
    *room = wider;
  }
  schedule->checkpoint[at] = (struct schedule_checkpoint){*rng, offset_ns};
  return true;
}

static enum status make_poisson(struct schedule *schedule, uint64_t seed, struct err *err) {
  struct rng rng;
  uint64_t room = 0;
  rng_seed(&rng, seed);
  double offset_ns = gap_ns(schedule, &rng);
  while ((uint64_t)offset_ns < schedule->length_ns) {
    if (schedule->slots == SCHEDULE_SLOTS_MAX) return too_many(err);
    if (schedule->slots % SCHEDULE_CHECKPOINT_SLOTS == 0 && !keep_checkpoint(schedule, &room, &rng, offset_ns)) {
      return err_set(err, STATUS_MEMORY, "out of memory for the schedule: lower --rate or --duration");
    }
    schedule->slots++;
    offset_ns += gap_ns(schedule, &rng);
  }
  return STATUS_OK;
}

enum status schedule_make(struct schedule *out, enum arrivals arrivals, double rate_per_sec, uint64_t length_ns,
    uint64_t seed, struct err *err) {
  *out = (struct schedule){.arrivals = arrivals, .rate_per_sec = rate_per_sec, .length_ns = length_ns};
  if (length_ns == 0) return STATUS_OK;
  if ((double)length_ns / (double)NS_PER_SEC * rate_per_sec > (double)SCHEDULE_SLOTS_MAX) return too_many(err);
  if (arrivals == ARRIVALS_CONSTANT) {
    make_constant(out);
    return STATUS_OK;
  }
  enum status status = make_poisson(out, seed, err);
  if (status != STATUS_OK) schedule_free(out);
  return status;
}

void schedule_free(struct schedule *schedule) {
  free(schedule->checkpoint);
  schedule->checkpoint = NULL;
  schedule->slots = 0;
}

uint64_t schedule_offset_ns(const struct schedule *schedule, uint64_t slot) {
  if (schedule->arrivals == ARRIVALS_CONSTANT) return constant_offset_ns(schedule->rate_per_sec, slot);
  struct schedule_checkpoint from = schedule->checkpoint[slot / SCHEDULE_CHECKPOINT_SLOTS];
  for (uint64_t i = slot % SCHEDULE_CHECKPOINT_SLOTS; i > 0; i--)
    from.offset_ns += gap_ns(schedule, &from.rng);
  return (uint64_t)from.offset_ns;
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
    if (schedule->arrivals == ARRIVALS_POISSON) pacer->poisson_ns += gap_ns(schedule, &pacer->rng);
  }
  if (pacer->slot >= schedule->slots) {
    pacer->slot = schedule->slots;
    pacer->offset_ns = UINT64_MAX;
    return;
  }
  pacer->offset_ns = schedule->arrivals == ARRIVALS_POISSON ? (uint64_t)pacer->poisson_ns
                                                            : constant_offset_ns(schedule->rate_per_sec, pacer->slot);
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
    pacer->poisson_ns = schedule->checkpoint[0].offset_ns;
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
  if (pacer->schedule->arrivals == ARRIVALS_POISSON) pacer->poisson_ns += gap_ns(pacer->schedule, &pacer->rng);
  find_mine(pacer);
}
