#include "measure/ledger.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/shm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BIG_PAIRS 2000000
#else
#define BIG_PAIRS 20000000
#endif

#define T0 (500 * NS_PER_SEC)
#define END (T0 + 5000)

/* ring: member i sends to member i + 1. */
static int32_t ring_stream(const void *topology, uint32_t sender, uint32_t target, uint32_t recipient) {
  const uint32_t *members = topology;
  (void)target;
  return recipient == (sender + 1) % *members ? 0 : -1;
}
static uint32_t ring_recipients_of(const void *topology, uint32_t sender, uint32_t target) {
  (void)topology;
  (void)sender;
  (void)target;
  return 1;
}
static uint32_t ring_recipient(const void *topology, uint32_t sender, uint32_t target, uint32_t i) {
  const uint32_t *members = topology;
  (void)target;
  (void)i;
  return (sender + 1) % *members;
}

/* groups of size members; the first senders members of each send to the others of their group. */
struct groups {
  uint32_t groups, size, senders;
};
static uint32_t self_of(const struct groups *g, uint32_t sender) {
  return sender / g->senders * g->size + sender % g->senders;
}
static int32_t group_stream(const void *topology, uint32_t sender, uint32_t target, uint32_t recipient) {
  const struct groups *g = topology;
  (void)target;
  if (sender / g->senders != recipient / g->size || recipient == self_of(g, sender)) return -1;
  return (int32_t)(sender % g->senders);
}
static uint32_t group_recipients_of(const void *topology, uint32_t sender, uint32_t target) {
  const struct groups *g = topology;
  (void)sender;
  (void)target;
  return g->size - 1;
}
static uint32_t group_recipient(const void *topology, uint32_t sender, uint32_t target, uint32_t i) {
  const struct groups *g = topology;
  (void)target;
  uint32_t self = self_of(g, sender);
  uint32_t recipient = sender / g->senders * g->size + i;
  return recipient + (recipient >= self);
}

/* star: every sender goes round all receivers, each from another one on. */
struct star {
  uint32_t senders, receivers;
};
static uint32_t star_receiver(const struct star *star, uint32_t sender, uint32_t target) {
  return (sender + target) % star->receivers;
}
static int32_t star_stream(const void *topology, uint32_t sender, uint32_t target, uint32_t recipient) {
  return star_receiver(topology, sender, target) == recipient ? (int32_t)sender : -1;
}
static uint32_t star_recipient(const void *topology, uint32_t sender, uint32_t target, uint32_t i) {
  (void)i;
  return star_receiver(topology, sender, target);
}

/* shared: every sender goes round groups that all have the same members, so that all hear each of its streams. */
static int32_t shared_stream(const void *topology, uint32_t sender, uint32_t target, uint32_t recipient) {
  const struct groups *g = topology;
  return sender == recipient ? -1 : (int32_t)(sender * g->groups + target);
}
static uint32_t shared_recipient(const void *topology, uint32_t sender, uint32_t target, uint32_t i) {
  (void)topology;
  (void)target;
  return i + (i >= sender);
}

static struct ledger_plan star_plan(const struct star *star, uint64_t slots) {
  return (struct ledger_plan){.slots = slots,
      .senders = star->senders,
      .recipients = star->receivers,
      .targets = star->receivers,
      .streams = star->senders,
      .fan_out = 1,
      .stream = star_stream,
      .recipients_of = ring_recipients_of,
      .recipient = star_recipient,
      .topology = star};
}

static struct ledger_plan shared_plan(const struct groups *g, uint64_t slots) {
  return (struct ledger_plan){.slots = slots,
      .senders = g->senders,
      .recipients = g->size,
      .targets = g->groups,
      .streams = g->senders * g->groups,
      .fan_out = g->size - 1,
      .stream = shared_stream,
      .recipients_of = group_recipients_of,
      .recipient = shared_recipient,
      .topology = g};
}

static struct ledger_plan ring_plan(const uint32_t *members, uint64_t slots) {
  return (struct ledger_plan){.slots = slots,
      .senders = *members,
      .recipients = *members,
      .streams = 1,
      .fan_out = 1,
      .stream = ring_stream,
      .recipients_of = ring_recipients_of,
      .recipient = ring_recipient,
      .topology = members};
}

static struct ledger_plan group_plan(const struct groups *g, uint64_t slots) {
  return (struct ledger_plan){.slots = slots,
      .senders = g->groups * g->senders,
      .recipients = g->groups * g->size,
      .streams = g->senders,
      .fan_out = g->size - 1,
      .stream = group_stream,
      .recipients_of = group_recipients_of,
      .recipient = group_recipient,
      .topology = g};
}

struct mapped {
  struct ledger *ledger;
  void *memory;
  size_t size;
};

static struct mapped map(const struct ledger_plan *plan) {
  struct mapped mapped = {.size = ledger_size(plan)};
  assert_true(mapped.size != SIZE_MAX);
  assert_int_equal(shm_map(&mapped.memory, mapped.size, NULL), STATUS_OK);
  mapped.ledger = ledger_init(mapped.memory, plan);
  assert_non_null(mapped.ledger);
  ledger_start(mapped.ledger, T0);
  return mapped;
}

static void unmap(struct mapped *mapped) {
  shm_unmap(mapped->memory, mapped->size);
}

static void establish_all(struct ledger *ledger, uint32_t recipients) {
  for (uint32_t r = 0; r < recipients; r++)
    ledger_established(ledger, r, T0 - NS_PER_SEC);
}

static bool is_complete_at_last(struct ledger *ledger, bool has_acks, int calls) {
  for (int i = 0; i < calls; i++) {
    if (ledger_is_complete(ledger, has_acks)) return true;
  }
  return false;
}

/* Written just before, unless the test says otherwise. */
static enum delivery deliver(
    struct ledger *ledger, uint32_t recipient, uint32_t sender, uint32_t sequence, uint64_t now_ns) {
  const struct arrival arrival = {
      .recipient = recipient,
      .sender = sender,
      .sequence = sequence,
      .now_ns = now_ns,
      .late = now_ns >= END,
      .heard = true,
  };
  return ledger_delivered(ledger, &arrival);
}

/* The naive model: one plain record for every publish and every pair of it with a recipient. */
struct model_publish {
  int state; /* 0 never, 1 pending, 2 acked, 3 rejected, 4 timed out */
  uint64_t scheduled, written;
};
struct model_pair {
  bool seen, heard;
  uint64_t at;
};
struct model_hearing {
  uint64_t from, to;
};
#define MODEL_HEARINGS 16
struct model {
  const struct ledger_plan *plan;
  struct model_publish *publishes;
  struct model_pair *pairs; /* slot-major, one for each recipient */
  int64_t *highest;         /* by recipient, sender and target */
  struct model_hearing (*hearings)[MODEL_HEARINGS];
  uint32_t *hearing_count;
  uint32_t reconnects;
};

static void *zeroed(size_t count, size_t each) {
  void *memory = calloc(count ? count : 1, each);
  assert_non_null(memory);
  return memory;
}

static uint32_t targets_of(const struct ledger_plan *plan) {
  return plan->targets ? plan->targets : 1;
}

static uint32_t target_of(const struct ledger_plan *plan, uint64_t slot) {
  return (uint32_t)(slot / plan->senders % targets_of(plan));
}

static struct model model_make(const struct ledger_plan *plan) {
  struct model m = {.plan = plan};
  m.publishes = zeroed(plan->slots, sizeof *m.publishes);
  m.pairs = zeroed(plan->slots * plan->recipients, sizeof *m.pairs);
  size_t streams = (size_t)plan->senders * targets_of(plan) * plan->recipients;
  m.highest = zeroed(streams, sizeof *m.highest);
  m.hearings = zeroed(plan->recipients, sizeof *m.hearings);
  m.hearing_count = zeroed(plan->recipients, sizeof *m.hearing_count);
  for (size_t i = 0; i < streams; i++)
    m.highest[i] = -1;
  return m;
}

static void model_free(struct model *m) {
  free(m->publishes);
  free(m->pairs);
  free(m->highest);
  free(m->hearings);
  free(m->hearing_count);
}

static enum delivery model_delivered(
    struct model *m, uint32_t r, uint32_t s, uint32_t sequence, uint64_t now, bool heard) {
  uint64_t slot = (uint64_t)sequence * m->plan->senders + s;
  uint32_t target = target_of(m->plan, slot);
  if (slot >= m->plan->slots || m->plan->stream(m->plan->topology, s, target, r) < 0) return DELIVERY_UNEXPECTED;
  struct model_pair *pair = &m->pairs[slot * m->plan->recipients + r];
  if (pair->seen) return DELIVERY_DUPLICATE;
  *pair = (struct model_pair){true, heard, now};
  int64_t *highest = &m->highest[((size_t)s * targets_of(m->plan) + target) * m->plan->recipients + r];
  if (sequence < *highest) return DELIVERY_REORDERED;
  *highest = sequence;
  return DELIVERY_FIRST;
}

static bool model_hears(const struct model *m, uint32_t r, uint64_t written) {
  for (uint32_t i = 0; i < m->hearing_count[r]; i++) {
    const struct model_hearing *hearing = &m->hearings[r][i];
    if (written >= hearing->from && (hearing->to == 0 || written < hearing->to)) return true;
  }
  return false;
}

/* Between two of its hearings. */
static bool model_away(const struct model *m, uint32_t r, uint64_t written) {
  bool before = false, after = false;
  for (uint32_t i = 0; i < m->hearing_count[r]; i++) {
    if (m->hearings[r][i].from <= written) before = true;
    if (m->hearings[r][i].from > written) after = true;
  }
  return before && after;
}

static bool model_expects(const struct model *m, uint64_t slot, uint32_t r, bool has_acks) {
  const struct model_publish *p = &m->publishes[slot];
  uint32_t sender = (uint32_t)(slot % m->plan->senders);
  if (m->plan->stream(m->plan->topology, sender, target_of(m->plan, slot), r) < 0) return false;
  return (has_acks ? p->state == 2 : p->state != 0) && model_hears(m, r, p->written);
}

static void compare_shares(const struct model *m, const struct ledger *ledger, bool has_acks) {
  struct ledger_share *share = zeroed(m->plan->recipients, sizeof *share);
  ledger_share_out(ledger, has_acks, share);
  for (uint32_t r = 0; r < m->plan->recipients; r++) {
    uint64_t expected = 0, observed = 0;
    for (uint64_t slot = 0; slot < m->plan->slots; slot++) {
      if (!model_expects(m, slot, r, has_acks)) continue;
      expected++;
      observed += m->pairs[slot * m->plan->recipients + r].seen;
    }
    assert_int_equal(share[r].expected, expected);
    assert_int_equal(share[r].observed, observed);
  }
  free(share);
}

static void model_settle(
    const struct model *m, bool has_acks, struct tally *tally, struct histogram *first, struct histogram *complete) {
  for (uint64_t slot = 0; slot < m->plan->slots; slot++) {
    const struct model_publish *p = &m->publishes[slot];
    uint64_t expected = 0, observed = 0, from = UINT64_MAX, to = 0;
    for (uint32_t r = 0; r < m->plan->recipients; r++) {
      const struct model_pair *pair = &m->pairs[slot * m->plan->recipients + r];
      uint32_t sender = (uint32_t)(slot % m->plan->senders);
      bool addressed = m->plan->stream(m->plan->topology, sender, target_of(m->plan, slot), r) >= 0;
      bool counts = has_acks ? p->state == 2 : p->state != 0;
      if (pair->heard && pair->at < from) from = pair->at;
      if (pair->heard && pair->at > to) to = pair->at;
      if (model_expects(m, slot, r, has_acks)) {
        expected++;
        observed += pair->seen;
        tally->deliveries.late += pair->seen && pair->at >= END;
      } else if (pair->seen && addressed && counts && model_away(m, r, p->written)) {
        tally->deliveries.recovered++;
      } else if (pair->seen) {
        *(counts || p->state == 0 ? &tally->deliveries.unexpected : &tally->deliveries.unacked_delivered) += 1;
      }
    }
    tally->deliveries.expected += expected;
    tally->deliveries.observed += observed;
    tally->deliveries.lost += expected - observed;
    if (m->plan->fan_out == 1 || observed == 0 || to == 0) continue;
    histogram_record(first, (int64_t)(from - p->scheduled));
    if (expected == observed) histogram_record(complete, (int64_t)(to - p->scheduled));
  }
}

static void random_hearing(struct model *m, struct ledger *ledger, struct rng *rng, uint64_t now) {
  uint32_t r = (uint32_t)rng_below(rng, m->plan->recipients);
  uint32_t *count = &m->hearing_count[r];
  if (rng_below(rng, 2)) {
    ledger_dropped(ledger, r, now);
    if (*count && m->hearings[r][*count - 1].to == 0) m->hearings[r][*count - 1].to = now;
    return;
  }
  bool heard = *count && m->hearings[r][*count - 1].to == 0;
  bool again = *count && !heard;
  if (*count == MODEL_HEARINGS || (again && m->reconnects == m->plan->recipients)) return;
  ledger_established(ledger, r, now);
  if (heard) return;
  m->reconnects += again;
  m->hearings[r][(*count)++] = (struct model_hearing){now, 0};
}

static void random_answer(struct model *m, struct ledger *ledger, struct rng *rng, uint64_t slot) {
  int state = (int)(2 + (rng_below(rng, 10) < 8 ? 0 : rng_below(rng, 3)));
  bool taken = state == 2   ? ledger_acked(ledger, slot)
               : state == 3 ? ledger_rejected(ledger, slot)
                            : ledger_timed_out(ledger, slot);
  assert_int_equal(taken, m->publishes[slot].state == 1);
  if (taken) m->publishes[slot].state = state;
}

static void compare_delivery(
    struct model *m, struct ledger *ledger, uint32_t recipient, uint32_t sender, uint32_t sequence, uint64_t now) {
  uint64_t slot = (uint64_t)sequence * m->plan->senders + sender;
  uint64_t written = slot < m->plan->slots ? m->publishes[slot].written : 0;
  bool heard = model_hears(m, recipient, written);
  const struct arrival arrival = {recipient, sender, sequence, now, now >= END, heard};
  assert_int_equal(ledger_heard(ledger, recipient, written), heard);
  assert_int_equal(ledger_delivered(ledger, &arrival), model_delivered(m, recipient, sender, sequence, now, heard));
}

static void random_event(struct model *m, struct ledger *ledger, struct rng *rng, uint64_t now) {
  uint64_t slot = rng_below(rng, m->plan->slots);
  uint64_t kind = rng_below(rng, 100);
  if (kind < 25) {
    ledger_attempted(ledger, slot, now - 300, now);
    if (m->publishes[slot].state == 0) m->publishes[slot] = (struct model_publish){1, now - 300, now};
  } else if (kind < 50) {
    random_answer(m, ledger, rng, slot);
  } else if (kind < 96) {
    uint32_t sender = (uint32_t)(slot % m->plan->senders);
    uint32_t target = target_of(m->plan, slot);
    uint32_t count = m->plan->recipients_of(m->plan->topology, sender, target);
    uint32_t recipient = rng_below(rng, 10)
                             ? m->plan->recipient(m->plan->topology, sender, target, (uint32_t)rng_below(rng, count))
                             : (uint32_t)rng_below(rng, m->plan->recipients);
    uint32_t sequence = (uint32_t)(slot / m->plan->senders + (rng_below(rng, 50) == 0 ? 1 : 0));
    if (kind < 90 && m->publishes[slot].state == 0) return; /* mostly what was sent before */
    compare_delivery(m, ledger, recipient, sender, sequence, now);
  } else {
    random_hearing(m, ledger, rng, now);
  }
}

/* What a completion can mean in the model: every publish answered and none of the acked ones lost. */
static bool model_is_complete(const struct model *m, bool has_acks) {
  static struct histogram first, complete;
  struct tally tally = {0};
  for (uint64_t slot = 0; has_acks && slot < m->plan->slots; slot++) {
    if (m->publishes[slot].state == 1) return false;
  }
  model_settle(m, has_acks, &tally, &first, &complete);
  return tally.deliveries.lost == 0;
}

static void compare_settlements(const struct model *m, const struct ledger *ledger, bool has_acks) {
  static struct histogram first, complete, model_first, model_complete;
  struct tally tally = {0}, expected = {0};
  histogram_reset(&first);
  histogram_reset(&complete);
  histogram_reset(&model_first);
  histogram_reset(&model_complete);
  ledger_settle(ledger, has_acks, &tally, &first, &complete);
  model_settle(m, has_acks, &expected, &model_first, &model_complete);
  assert_memory_equal(&tally, &expected, sizeof tally);
  assert_memory_equal(&first, &model_first, sizeof first);
  assert_memory_equal(&complete, &model_complete, sizeof complete);
  struct tally again = {0};
  ledger_settle(ledger, has_acks, &again, NULL, NULL);
  assert_memory_equal(&again, &tally, sizeof tally);
  compare_shares(m, ledger, has_acks);
}

/* Random events, then a grace phase in which everything is answered and all that is missing comes or not. */
static void run_model(const struct ledger_plan *plan, uint64_t seed, bool has_acks) {
  struct rng rng;
  rng_seed(&rng, seed);
  struct model m = model_make(plan);
  struct mapped mapped = map(plan);
  uint64_t now = T0 + 1000;
  for (uint32_t r = 0; r < plan->recipients; r++) {
    if (rng_below(&rng, 10) == 0) continue;
    ledger_established(mapped.ledger, r, T0 - 5);
    m.hearings[r][m.hearing_count[r]++] = (struct model_hearing){T0 - 5, 0};
  }
  uint64_t events = plan->slots * (4 + plan->fan_out * 2);
  for (uint64_t i = 0; i < events; i++)
    random_event(&m, mapped.ledger, &rng, now += rng_below(&rng, 3)); /* often at the same instant */

  assert_int_equal(ledger_is_complete(mapped.ledger, has_acks), model_is_complete(&m, has_acks));
  for (uint64_t slot = 0; slot < plan->slots; slot++) {
    if (m.publishes[slot].state == 1) random_answer(&m, mapped.ledger, &rng, slot);
  }
  compare_settlements(&m, mapped.ledger, has_acks);
  for (uint64_t slot = plan->slots; slot-- > 0;) {
    for (uint32_t r = 0; r < plan->recipients; r++) {
      uint32_t sender = (uint32_t)(slot % plan->senders);
      if (m.publishes[slot].state == 0) continue;
      if (plan->stream(plan->topology, sender, target_of(plan, slot), r) < 0) continue;
      uint32_t sequence = (uint32_t)(slot / plan->senders);
      now++;
      compare_delivery(&m, mapped.ledger, r, sender, sequence, now);
    }
    if (slot % 8 == 0) {
      assert_int_equal(ledger_is_complete(mapped.ledger, has_acks), model_is_complete(&m, has_acks));
    }
  }
  assert_true(ledger_is_complete(mapped.ledger, has_acks));
  compare_settlements(&m, mapped.ledger, has_acks);
  unmap(&mapped);
  model_free(&m);
}

static void agrees_with_the_model_on_rings(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 24; seed++) {
    uint32_t members = (uint32_t)(1 + seed * 7 % 40);
    struct ledger_plan plan = ring_plan(&members, 40 + seed * 17);
    run_model(&plan, seed, seed % 4 != 0);
  }
}

static void agrees_with_the_model_on_groups(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 24; seed++) {
    struct groups g = {.groups = (uint32_t)(1 + seed % 3), .size = (uint32_t)(2 + seed * 5 % 12)};
    g.senders = 1 + (uint32_t)(seed % g.size);
    struct ledger_plan plan = group_plan(&g, 20 + seed * 11);
    run_model(&plan, 100 + seed, seed % 4 != 0);
  }
}

static void agrees_with_the_model_on_stars(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 24; seed++) {
    struct star star = {.senders = (uint32_t)(1 + seed % 5), .receivers = (uint32_t)(1 + seed * 3 % 11)};
    struct ledger_plan plan = star_plan(&star, 30 + seed * 13);
    run_model(&plan, 200 + seed, seed % 4 != 0);
  }
}

static void agrees_with_the_model_on_shared_groups(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 24; seed++) {
    struct groups g = {.groups = (uint32_t)(1 + seed % 4), .size = (uint32_t)(2 + seed * 5 % 9)};
    g.senders = 1 + (uint32_t)(seed % g.size);
    struct ledger_plan plan = shared_plan(&g, 20 + seed * 11);
    run_model(&plan, 300 + seed, seed % 4 != 0);
  }
}

/* A row holds a bit for each round only, so going round many targets costs no more than one. */
static void targets_cost_no_rows(void **state) {
  (void)state;
  const struct star one = {1, 1}, many = {1, 1000};
  struct ledger_plan to_one = star_plan(&one, 1000000), to_many = star_plan(&many, 1000000);
  assert_true(ledger_size(&to_many) < ledger_size(&to_one) + 300 * 1000);
}

static void answers_a_publish_once(void **state) {
  (void)state;
  uint32_t members = 2;
  struct ledger_plan plan = ring_plan(&members, 4);
  struct mapped mapped = map(&plan);
  assert_false(ledger_acked(mapped.ledger, 0));
  ledger_attempted(mapped.ledger, 0, T0 + 7, T0 + 9);
  assert_true(ledger_pending(mapped.ledger, 0));
  assert_true(ledger_rejected(mapped.ledger, 0));
  assert_false(ledger_pending(mapped.ledger, 0));
  assert_false(ledger_acked(mapped.ledger, 0));
  assert_false(ledger_timed_out(mapped.ledger, 0));
  assert_int_equal(ledger_scheduled_ns(mapped.ledger, 0), T0 + 7);
  assert_int_equal(ledger_written_ns(mapped.ledger, 0), T0 + 9);
  ledger_attempted(mapped.ledger, 0, T0 + 70, T0 + 90);
  assert_int_equal(ledger_written_ns(mapped.ledger, 0), T0 + 9);
  ledger_attempted(mapped.ledger, 1, T0 + 4 * 3600 * NS_PER_SEC, T0 + 4 * 3600 * NS_PER_SEC + 1);
  assert_int_equal(ledger_written_ns(mapped.ledger, 1), T0 + 4 * 3600 * NS_PER_SEC + 1);
  unmap(&mapped);
}

static void shrugs_off_numbers_beyond_the_plan(void **state) {
  (void)state;
  uint32_t members = 3;
  struct ledger_plan plan = ring_plan(&members, 7);
  struct mapped mapped = map(&plan);
  ledger_attempted(mapped.ledger, 7, T0, T0);
  assert_false(ledger_acked(mapped.ledger, 7));
  assert_false(ledger_pending(mapped.ledger, UINT64_MAX));
  assert_int_equal(deliver(mapped.ledger, 1, 3, 0, T0), DELIVERY_UNEXPECTED);
  assert_int_equal(deliver(mapped.ledger, 3, 0, 0, T0), DELIVERY_UNEXPECTED);
  assert_int_equal(deliver(mapped.ledger, 2, 1, 2, T0), DELIVERY_UNEXPECTED); /* slot 7 of 7 */
  assert_int_equal(deliver(mapped.ledger, 1, 0, 2, T0), DELIVERY_FIRST);      /* slot 6 */
  assert_int_equal(deliver(mapped.ledger, 1, 0, UINT32_MAX, T0), DELIVERY_UNEXPECTED);
  ledger_established(mapped.ledger, 3, T0);
  ledger_dropped(mapped.ledger, UINT32_MAX, T0);
  unmap(&mapped);
}

static void is_complete_while_nothing_was_sent(void **state) {
  (void)state;
  uint32_t members = 3;
  struct ledger_plan plan = ring_plan(&members, 0);
  struct mapped mapped = map(&plan);
  struct tally tally = {0};
  ledger_settle(mapped.ledger, true, &tally, NULL, NULL);
  assert_int_equal(tally.deliveries.expected, 0);
  assert_true(ledger_is_complete(mapped.ledger, true));
  unmap(&mapped);
}

static void sizes_what_it_says(void **state) {
  (void)state;
  uint32_t members = 10000;
  struct ledger_plan plan = ring_plan(&members, 20000000);
  assert_in_range(ledger_size(&plan), 322000000, 328000000);
  struct groups g = {.groups = 1, .size = 1000, .senders = 20};
  plan = group_plan(&g, 20000);
  assert_in_range(ledger_size(&plan), 5000000, 6500000);
  plan.slots = UINT64_MAX;
  assert_true(ledger_size(&plan) == SIZE_MAX);
  assert_null(ledger_init(NULL, &plan));
  plan.slots = (uint64_t)UINT32_MAX * 20;
  plan.recipients = plan.streams = UINT32_MAX;
  assert_true(ledger_size(&plan) == SIZE_MAX);
  plan.senders = 0;
  plan.slots = 1;
  assert_true(ledger_size(&plan) == SIZE_MAX);
}

/* With every place for earlier hearings used, a gap counts as heard: losses are then over-, never understated. */
static void overstates_rather_than_hides(void **state) {
  (void)state;
  uint32_t members = 1;
  struct ledger_plan plan = ring_plan(&members, 3);
  struct mapped mapped = map(&plan);
  for (uint64_t i = 0; i < 3; i++) {
    uint64_t from = T0 + i * 1000;
    ledger_established(mapped.ledger, 0, from);
    ledger_dropped(mapped.ledger, 0, from + 500);
    ledger_attempted(mapped.ledger, i, from + 700, from + 700); /* in the gap */
    ledger_acked(mapped.ledger, i);
  }
  ledger_established(mapped.ledger, 0, T0 + 3000);
  struct tally tally = {0};
  ledger_settle(mapped.ledger, true, &tally, NULL, NULL);
  assert_int_equal(tally.deliveries.lost, 2); /* only the first gap was kept apart */
  unmap(&mapped);
}

/* Loses every 999,983rd delivery, doubles every 1,000,003rd and checks that just these are reported. */
static void settle_big(const struct ledger_plan *plan, uint64_t pairs) {
  struct mapped mapped = map(plan);
  establish_all(mapped.ledger, plan->recipients);
  uint64_t lost = 0, duplicate = 0, pair = 0;
  for (uint64_t slot = 0; slot < plan->slots; slot++) {
    uint32_t sender = (uint32_t)(slot % plan->senders);
    ledger_attempted(mapped.ledger, slot, T0 + slot, T0 + slot + 1);
    uint32_t count = plan->recipients_of(plan->topology, sender, 0);
    for (uint32_t i = 0; i < count; i++) {
      uint32_t r = plan->recipient(plan->topology, sender, 0, i);
      uint32_t sequence = (uint32_t)(slot / plan->senders);
      if (++pair % 999983 == 0) {
        lost++;
        continue;
      }
      assert_true(deliver(mapped.ledger, r, sender, sequence, T0 + slot + 5 + i) == DELIVERY_FIRST);
      if (pair % 1000003 != 0) continue;
      assert_true(deliver(mapped.ledger, r, sender, sequence, T0 + slot + 6 + i) == DELIVERY_DUPLICATE);
      duplicate++;
    }
    assert_true(ledger_acked(mapped.ledger, slot));
  }
  assert_int_equal(pair, pairs);
  assert_true(lost > 0 && duplicate > 0);
  assert_false(is_complete_at_last(mapped.ledger, true, 20));

  static struct histogram complete;
  struct tally tally = {0};
  histogram_reset(&complete);
  ledger_settle(mapped.ledger, true, &tally, NULL, &complete);
  assert_int_equal(tally.deliveries.expected, pairs);
  assert_int_equal(tally.deliveries.lost, lost);
  assert_int_equal(tally.deliveries.observed, pairs - lost);
  assert_int_equal(tally.deliveries.unexpected + tally.deliveries.unacked_delivered, 0);
  if (plan->fan_out > 1) assert_int_equal(complete.count, plan->slots - lost);

  for (pair = 999983; pair <= pairs; pair += 999983) {
    uint64_t slot = (pair - 1) / plan->fan_out;
    uint32_t sender = (uint32_t)(slot % plan->senders);
    uint32_t r = plan->recipient(plan->topology, sender, 0, (uint32_t)((pair - 1) % plan->fan_out));
    assert_false(ledger_is_complete(mapped.ledger, true));
    deliver(mapped.ledger, r, sender, (uint32_t)(slot / plan->senders), T0 + NS_PER_SEC);
  }
  assert_true(is_complete_at_last(mapped.ledger, true, 20));
  unmap(&mapped);
}

static void is_exact_for_millions_of_ring_pairs(void **state) {
  (void)state;
  uint32_t members = 10000;
  struct ledger_plan plan = ring_plan(&members, BIG_PAIRS);
  settle_big(&plan, BIG_PAIRS);
}

static void is_exact_for_millions_of_group_pairs(void **state) {
  (void)state;
  struct groups g = {.groups = 1, .size = 1001, .senders = 20};
  struct ledger_plan plan = group_plan(&g, BIG_PAIRS / 1000);
  settle_big(&plan, BIG_PAIRS);
}

#define PROCESSES 2

/* A worker owns every second sender and recipient. Deliveries do not wait for attempts or acks of the others. */
static void work(struct ledger *ledger, const struct ledger_plan *plan, uint32_t worker) {
  for (uint32_t r = worker; r < plan->recipients; r += PROCESSES)
    ledger_established(ledger, r, T0 - 1);
  for (uint64_t slot = 0; slot < plan->slots; slot++) {
    uint32_t sender = (uint32_t)(slot % plan->senders);
    if (sender % PROCESSES == worker) {
      ledger_attempted(ledger, slot, T0 + slot, T0 + slot);
      ledger_acked(ledger, slot);
    }
    for (uint32_t i = 0; i < plan->recipients_of(plan->topology, sender, 0); i++) {
      uint32_t r = plan->recipient(plan->topology, sender, 0, i);
      if (r % PROCESSES != worker) continue;
      uint64_t delay = 1000 + (uint64_t)r * 100;
      deliver(ledger, r, sender, (uint32_t)(slot / plan->senders), T0 + slot + delay);
    }
  }
}

static void two_processes_write_one_ledger(void **state) {
  (void)state;
  struct groups g = {.groups = 2, .size = 33, .senders = 3};
  struct ledger_plan plan = group_plan(&g, 30000);
  struct mapped mapped = map(&plan);
  pid_t children[PROCESSES];
  for (uint32_t worker = 0; worker < PROCESSES; worker++) {
    children[worker] = fork();
    if (children[worker] == 0) {
      work(mapped.ledger, &plan, worker);
      _exit(0);
    }
  }
  for (uint32_t worker = 0; worker < PROCESSES; worker++) {
    int status = -1;
    assert_int_equal(waitpid(children[worker], &status, 0), children[worker]);
    assert_int_equal(status, 0);
  }
  static struct histogram first, complete;
  struct tally tally = {0};
  histogram_reset(&first);
  histogram_reset(&complete);
  ledger_settle(mapped.ledger, true, &tally, &first, &complete);
  assert_int_equal(tally.deliveries.expected, 30000 * 32);
  assert_int_equal(tally.deliveries.observed, 30000 * 32);
  assert_int_equal(first.count, 30000);
  assert_int_equal(complete.count, 30000);
  /* The first recipient of group 0 is member 0 or, where that one sends, member 1; the last of group 1 is 65. */
  assert_int_equal(first.min_ns, 1000);
  assert_int_equal(first.max_ns, 1000 + 34 * 100);
  assert_int_equal(complete.min_ns, 1000 + 32 * 100);
  assert_int_equal(complete.max_ns, 1000 + 65 * 100);
  assert_true(is_complete_at_last(mapped.ledger, true, 2));
  unmap(&mapped);
}

/* One queue whose consumers sit in two processes: both deliver every message, out of step, and each counts once. */
static uint64_t consume(struct ledger *ledger, const struct ledger_plan *plan, uint64_t from) {
  uint64_t first = 0;
  for (uint64_t i = 0; i < plan->slots; i++) {
    uint32_t sequence = (uint32_t)((from + i) % plan->slots);
    enum delivery delivery = deliver(ledger, 0, 0, sequence, T0 + 10);
    assert_true(delivery == DELIVERY_FIRST || delivery == DELIVERY_DUPLICATE);
    first += delivery == DELIVERY_FIRST;
  }
  return first;
}

static void a_queue_has_many_consumers(void **state) {
  (void)state;
  uint32_t members = 1;
  struct ledger_plan plan = ring_plan(&members, 200000);
  plan.shared_rows = true;
  struct mapped mapped = map(&plan);
  _Atomic uint64_t *first = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(first != MAP_FAILED);
  ledger_established(mapped.ledger, 0, T0);
  for (uint64_t slot = 0; slot < plan.slots; slot++) {
    ledger_attempted(mapped.ledger, slot, T0 + 1, T0 + 1);
    ledger_acked(mapped.ledger, slot);
  }
  pid_t child = fork();
  if (child == 0) {
    *first = consume(mapped.ledger, &plan, 500);
    _exit(0);
  }
  uint64_t own = consume(mapped.ledger, &plan, 0);
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(own + *first, plan.slots);
  ledger_dropped(mapped.ledger, 0, T0); /* one consumer that leaves is not the queue */
  struct tally tally = {0};
  ledger_settle(mapped.ledger, true, &tally, NULL, NULL);
  assert_int_equal(tally.deliveries.expected, plan.slots);
  assert_int_equal(tally.deliveries.observed, plan.slots);
  munmap((void *)first, 4096);
  unmap(&mapped);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_a_publish_once),
      cmocka_unit_test(shrugs_off_numbers_beyond_the_plan),
      cmocka_unit_test(is_complete_while_nothing_was_sent),
      cmocka_unit_test(sizes_what_it_says),
      cmocka_unit_test(overstates_rather_than_hides),
      cmocka_unit_test(agrees_with_the_model_on_rings),
      cmocka_unit_test(agrees_with_the_model_on_groups),
      cmocka_unit_test(agrees_with_the_model_on_stars),
      cmocka_unit_test(agrees_with_the_model_on_shared_groups),
      cmocka_unit_test(targets_cost_no_rows),
      cmocka_unit_test(two_processes_write_one_ledger),
      cmocka_unit_test(a_queue_has_many_consumers),
      cmocka_unit_test(is_exact_for_millions_of_ring_pairs),
      cmocka_unit_test(is_exact_for_millions_of_group_pairs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
