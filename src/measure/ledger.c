#include "measure/ledger.h"

#include <stdatomic.h>

#define ALIGNMENT 64
#define OFFSET_BITS 44 /* of nanoseconds: 4.8 hours */
#define OFFSET_MAX ((UINT64_C(1) << OFFSET_BITS) - 1)
#define SLOTS_STEP 4096                    /* so that workers seldom write the shared counter */
#define PAIRS_PER_CALL (UINT32_C(1) << 21) /* of ledger_is_complete: some ten milliseconds */

enum state { NEVER_SENT, PENDING, ACKED, REJECTED, TIMED_OUT };

struct slot {
  _Atomic uint64_t scheduled; /* state above, offset from t0 in the lower OFFSET_BITS */
  _Atomic uint64_t written;   /* offset from t0 */
};

/* Offsets from t0, plus one; 0: no delivery yet. */
struct span {
  _Atomic uint64_t first;
  _Atomic uint64_t last;
};

/* From established to dropped in clock_now_ns time; 0: not yet. */
struct hearing {
  _Atomic uint64_t from_ns;
  _Atomic uint64_t to_ns;
  _Atomic uint64_t earlier; /* 1 + index in the pool of the hearing before a reconnect; 0: none */
};

struct ledger {
  struct ledger_plan plan;
  uint64_t row_words;
  struct slot *slots;
  struct span *spans; /* NULL without fan-out */
  _Atomic uint64_t *rows;
  _Atomic uint64_t *late; /* rows of the same form, of what came late */
  uint32_t *highest;      /* 1 + the highest round seen on a stream */
  struct hearing *hearings;
  struct hearing *pool; /* as many as recipients */
  _Atomic uint64_t t0_ns;
  _Atomic uint64_t pool_used;
  _Atomic uint64_t slots_used; /* none at or beyond it was touched; moves in steps of SLOTS_STEP */
  /* Where ledger_is_complete goes on; only the control process touches it. */
  uint64_t checked_slots;
  uint32_t checked_recipients;
};

struct layout {
  size_t spans, slots, rows, late, highest, hearings, pool, total;
  uint64_t row_words;
};

/* Puts an array behind the ones before it; false when the address space ends. */
static bool place(size_t *total, size_t *offset, uint64_t count, uint64_t each) {
  size_t bytes;
  *offset = *total;
  if (__builtin_mul_overflow(count, each, &bytes)) return false;
  if (__builtin_add_overflow(bytes, (size_t)ALIGNMENT - 1, &bytes)) return false;
  return !__builtin_add_overflow(*total, bytes & ~((size_t)ALIGNMENT - 1), total);
}

static bool lay_out(const struct ledger_plan *plan, struct layout *out) {
  if (plan->slots && plan->senders == 0) return false;
  uint64_t sequences = plan->senders ? plan->slots / plan->senders + (plan->slots % plan->senders != 0) : 0;
  uint64_t rounds = plan->targets > 1 ? sequences / plan->targets + (sequences % plan->targets != 0) : sequences;
  uint64_t bits;
  uint64_t words;
  if (sequences > UINT32_MAX || __builtin_mul_overflow(rounds, (uint64_t)plan->streams, &bits)) return false;
  out->row_words = bits / 64 + (bits % 64 != 0);
  if (__builtin_mul_overflow(out->row_words, (uint64_t)plan->recipients, &words)) return false;
  uint64_t streams = (uint64_t)plan->recipients * plan->streams;
  size_t head;
  out->total = 0;
  return place(&out->total, &head, 1, sizeof(struct ledger)) &&
         place(&out->total, &out->slots, plan->slots, sizeof(struct slot)) &&
         place(&out->total, &out->spans, plan->fan_out > 1 ? plan->slots : 0, sizeof(struct span)) &&
         place(&out->total, &out->rows, words, sizeof(uint64_t)) &&
         place(&out->total, &out->late, words, sizeof(uint64_t)) &&
         place(&out->total, &out->highest, streams, sizeof(uint32_t)) &&
         place(&out->total, &out->hearings, plan->recipients, sizeof(struct hearing)) &&
         place(&out->total, &out->pool, plan->recipients, sizeof(struct hearing));
}

size_t ledger_size(const struct ledger_plan *plan) {
  struct layout layout;
  return lay_out(plan, &layout) ? layout.total : SIZE_MAX;
}

struct ledger *ledger_init(void *memory, const struct ledger_plan *plan) {
  struct layout layout;
  if (!lay_out(plan, &layout)) return NULL;
  struct ledger *ledger = memory;
  char *base = memory;
  ledger->plan = *plan;
  if (ledger->plan.targets == 0) ledger->plan.targets = 1;
  ledger->row_words = layout.row_words;
  ledger->slots = (struct slot *)(void *)(base + layout.slots);
  ledger->spans = plan->fan_out > 1 ? (struct span *)(void *)(base + layout.spans) : NULL;
  ledger->rows = (_Atomic uint64_t *)(void *)(base + layout.rows);
  ledger->late = (_Atomic uint64_t *)(void *)(base + layout.late);
  ledger->highest = (uint32_t *)(void *)(base + layout.highest);
  ledger->hearings = (struct hearing *)(void *)(base + layout.hearings);
  ledger->pool = (struct hearing *)(void *)(base + layout.pool);
  return ledger;
}

static uint64_t load(const _Atomic uint64_t *value) {
  return atomic_load_explicit(value, memory_order_acquire);
}

static void store(_Atomic uint64_t *value, uint64_t to) {
  atomic_store_explicit(value, to, memory_order_release);
}

void ledger_start(struct ledger *ledger, uint64_t t0_ns) {
  store(&ledger->t0_ns, t0_ns);
}

static uint64_t offset_of(const struct ledger *ledger, uint64_t ns) {
  uint64_t t0 = load(&ledger->t0_ns);
  if (ns <= t0) return 0;
  return ns - t0 < OFFSET_MAX ? ns - t0 : OFFSET_MAX;
}

static enum state state_of(const struct ledger *ledger, uint64_t slot) {
  return (enum state)(load(&ledger->slots[slot].scheduled) >> OFFSET_BITS);
}

/* Most of a plan's slots may stay unused: what walks all slots need not go beyond this. */
static uint64_t used_slots(const struct ledger *ledger) {
  uint64_t used = load(&ledger->slots_used);
  return used < ledger->plan.slots ? used : ledger->plan.slots;
}

static void use_slot(struct ledger *ledger, uint64_t slot) {
  uint64_t used = load(&ledger->slots_used);
  uint64_t needed = slot / SLOTS_STEP * SLOTS_STEP + SLOTS_STEP;
  while (used < needed && !atomic_compare_exchange_weak(&ledger->slots_used, &used, needed)) {
  }
}

void ledger_attempted(struct ledger *ledger, uint64_t slot, uint64_t scheduled_ns, uint64_t written_ns) {
  if (slot >= ledger->plan.slots || state_of(ledger, slot) != NEVER_SENT) return;
  use_slot(ledger, slot);
  store(&ledger->slots[slot].written, offset_of(ledger, written_ns));
  store(&ledger->slots[slot].scheduled, (uint64_t)PENDING << OFFSET_BITS | offset_of(ledger, scheduled_ns));
}

static bool answer(struct ledger *ledger, uint64_t slot, enum state state) {
  if (!ledger_pending(ledger, slot)) return false;
  uint64_t offset = load(&ledger->slots[slot].scheduled) & OFFSET_MAX;
  store(&ledger->slots[slot].scheduled, (uint64_t)state << OFFSET_BITS | offset);
  return true;
}

bool ledger_acked(struct ledger *ledger, uint64_t slot) {
  return answer(ledger, slot, ACKED);
}

bool ledger_rejected(struct ledger *ledger, uint64_t slot) {
  return answer(ledger, slot, REJECTED);
}

bool ledger_timed_out(struct ledger *ledger, uint64_t slot) {
  return answer(ledger, slot, TIMED_OUT);
}

uint64_t ledger_scheduled_ns(const struct ledger *ledger, uint64_t slot) {
  if (slot >= ledger->plan.slots) return 0;
  return load(&ledger->t0_ns) + (load(&ledger->slots[slot].scheduled) & OFFSET_MAX);
}

uint64_t ledger_written_ns(const struct ledger *ledger, uint64_t slot) {
  if (slot >= ledger->plan.slots) return 0;
  return load(&ledger->t0_ns) + load(&ledger->slots[slot].written);
}

bool ledger_pending(const struct ledger *ledger, uint64_t slot) {
  return slot < ledger->plan.slots && state_of(ledger, slot) == PENDING;
}

static void note_span(struct span *span, uint64_t offset) {
  uint64_t mark = offset + 1;
  uint64_t first = load(&span->first);
  while ((first == 0 || mark < first) && !atomic_compare_exchange_weak(&span->first, &first, mark)) {
  }
  uint64_t last = load(&span->last);
  while (mark > last && !atomic_compare_exchange_weak(&span->last, &last, mark)) {
  }
}

/* One message at one recipient: where its bit lies. */
struct place {
  uint32_t recipient;
  uint32_t round;
  int64_t stream; /* -1: not addressed */
};

static struct place place_of(const struct ledger *ledger, uint32_t sender, uint32_t sequence, uint32_t recipient) {
  const struct ledger_plan *plan = &ledger->plan;
  struct place place = {.recipient = recipient, .round = sequence / plan->targets, .stream = -1};
  if (recipient >= plan->recipients) return place;
  int32_t stream = plan->stream(plan->topology, sender, sequence % plan->targets, recipient);
  if (stream >= 0 && (uint32_t)stream < plan->streams) place.stream = stream;
  return place;
}

/* Streams lie interleaved in a row, so that a row is filled from its front as the phase goes on. */
static uint64_t bit_of(const struct ledger *ledger, const struct place *place) {
  return (uint64_t)place->round * ledger->plan.streams + (uint64_t)place->stream;
}

static bool has_bit(const struct ledger *ledger, const _Atomic uint64_t *rows, const struct place *place) {
  uint64_t bit = bit_of(ledger, place);
  const _Atomic uint64_t *row = rows + place->recipient * ledger->row_words;
  return load(&row[bit / 64]) >> bit % 64 & 1;
}

/* A row that is not shared has one writer, so a plain load and store will do. False when the bit was set. */
static bool set_bit(const struct ledger *ledger, _Atomic uint64_t *rows, const struct place *place) {
  uint64_t bit = bit_of(ledger, place);
  _Atomic uint64_t *word = rows + place->recipient * ledger->row_words + bit / 64;
  uint64_t old = load(word);
  uint64_t mask = UINT64_C(1) << bit % 64;
  if (old & mask) return false;
  if (ledger->plan.shared_rows) return !(atomic_fetch_or_explicit(word, mask, memory_order_acq_rel) & mask);
  store(word, old | mask);
  return true;
}

enum delivery ledger_delivered(struct ledger *ledger, const struct arrival *arrival) {
  uint32_t senders = ledger->plan.senders, streams = ledger->plan.streams;
  if (arrival->sender >= senders) return DELIVERY_UNEXPECTED;
  uint64_t slot = (uint64_t)arrival->sequence * senders + arrival->sender;
  if (slot >= ledger->plan.slots) return DELIVERY_UNEXPECTED;
  struct place place = place_of(ledger, arrival->sender, arrival->sequence, arrival->recipient);
  if (place.stream < 0) return DELIVERY_UNEXPECTED;
  use_slot(ledger, slot);
  if (!set_bit(ledger, ledger->rows, &place)) return DELIVERY_DUPLICATE;

  if (arrival->late) set_bit(ledger, ledger->late, &place);
  if (ledger->spans && arrival->heard) note_span(&ledger->spans[slot], offset_of(ledger, arrival->now_ns));
  if (ledger->plan.shared_rows) return DELIVERY_FIRST;
  uint32_t *highest = &ledger->highest[(uint64_t)arrival->recipient * streams + (uint64_t)place.stream];
  if (place.round < *highest) return DELIVERY_REORDERED;
  *highest = place.round + 1;
  return DELIVERY_FIRST;
}

/* Moves the ended hearing of a recipient to the pool; false when the pool is used up. */
static bool keep_earlier(struct ledger *ledger, struct hearing *hearing) {
  uint64_t place = atomic_fetch_add_explicit(&ledger->pool_used, 1, memory_order_relaxed);
  if (place >= ledger->plan.recipients) return false;
  struct hearing *kept = &ledger->pool[place];
  store(&kept->from_ns, load(&hearing->from_ns));
  store(&kept->to_ns, load(&hearing->to_ns));
  store(&kept->earlier, load(&hearing->earlier));
  store(&hearing->earlier, place + 1);
  return true;
}

void ledger_established(struct ledger *ledger, uint32_t recipient, uint64_t now_ns) {
  if (recipient >= ledger->plan.recipients) return;
  struct hearing *hearing = &ledger->hearings[recipient];
  uint64_t from = load(&hearing->from_ns);
  if (from && load(&hearing->to_ns) == 0) return;
  if (from && !keep_earlier(ledger, hearing)) {
    store(&hearing->to_ns, 0); /* the gap counts as heard: a loss may then be overstated, never hidden */
    return;
  }
  store(&hearing->from_ns, now_ns ? now_ns : 1);
  store(&hearing->to_ns, 0);
}

void ledger_dropped(struct ledger *ledger, uint32_t recipient, uint64_t now_ns) {
  if (recipient >= ledger->plan.recipients || ledger->plan.shared_rows) return;
  struct hearing *hearing = &ledger->hearings[recipient];
  if (load(&hearing->from_ns) == 0 || load(&hearing->to_ns) != 0) return;
  store(&hearing->to_ns, now_ns ? now_ns : 1);
}

bool ledger_heard(const struct ledger *ledger, uint32_t recipient, uint64_t written_ns) {
  if (recipient >= ledger->plan.recipients) return false;
  const struct hearing *hearing = &ledger->hearings[recipient];
  for (;;) {
    uint64_t from = load(&hearing->from_ns);
    uint64_t to = load(&hearing->to_ns);
    if (from && from <= written_ns && (to == 0 || written_ns < to)) return true;
    uint64_t earlier = load(&hearing->earlier);
    if (earlier == 0) return false;
    hearing = &ledger->pool[earlier - 1];
  }
}

/* Between two hearings. */
static bool was_away(const struct ledger *ledger, uint32_t recipient, uint64_t written_ns) {
  const struct hearing *hearing = &ledger->hearings[recipient];
  bool before = false, after = false;
  for (;;) {
    uint64_t from = load(&hearing->from_ns);
    before |= from && from <= written_ns;
    after |= from > written_ns;
    uint64_t earlier = load(&hearing->earlier);
    if (earlier == 0) return before && after;
    hearing = &ledger->pool[earlier - 1];
  }
}

/* One publish as the settlement sees it. */
struct publish {
  uint64_t slot;
  uint64_t written_ns;
  uint32_t sender, sequence, target;
  uint32_t recipients;
  enum state state;
  bool counts; /* its deliveries are expected */
};

static struct publish publish_of(const struct ledger *ledger, uint64_t slot, bool has_acks) {
  struct publish publish = {.slot = slot, .state = state_of(ledger, slot)};
  publish.counts = has_acks ? publish.state == ACKED : publish.state != NEVER_SENT;
  publish.written_ns = ledger_written_ns(ledger, slot);
  publish.sender = (uint32_t)(slot % ledger->plan.senders);
  publish.sequence = (uint32_t)(slot / ledger->plan.senders);
  publish.target = publish.sequence % ledger->plan.targets;
  publish.recipients = ledger->plan.recipients_of(ledger->plan.topology, publish.sender, publish.target);
  return publish;
}

/* What is known of one recipient of a publish. */
struct pair {
  bool addressed, seen, late, expected;
  bool recovered; /* came all the same to a recipient that was away */
};

static struct pair pair_of(const struct ledger *ledger, const struct publish *publish, uint32_t i) {
  struct pair pair = {0};
  uint32_t recipient = ledger->plan.recipient(ledger->plan.topology, publish->sender, publish->target, i);
  struct place place = place_of(ledger, publish->sender, publish->sequence, recipient);
  if (place.stream < 0) return pair;
  pair.addressed = true;
  pair.seen = has_bit(ledger, ledger->rows, &place);
  pair.late = pair.seen && has_bit(ledger, ledger->late, &place);
  pair.expected = publish->counts && ledger_heard(ledger, recipient, publish->written_ns);
  pair.recovered = pair.seen && publish->counts && !pair.expected && was_away(ledger, recipient, publish->written_ns);
  return pair;
}

static void record_mark(const struct ledger *ledger, uint64_t slot, uint64_t mark, struct histogram *out) {
  uint64_t scheduled = load(&ledger->slots[slot].scheduled) & OFFSET_MAX;
  if (out && mark > 0) histogram_record(out, (int64_t)(mark - 1) - (int64_t)scheduled);
}

void ledger_settle(const struct ledger *ledger, bool has_acks, struct tally *tally, struct histogram *first,
    struct histogram *complete) {
  uint64_t slots = used_slots(ledger);
  for (uint64_t slot = 0; slot < slots; slot++) {
    struct publish publish = publish_of(ledger, slot, has_acks);
    uint64_t expected = 0;
    uint64_t observed = 0;
    for (uint32_t i = 0; i < publish.recipients; i++) {
      struct pair pair = pair_of(ledger, &publish, i);
      if (pair.expected) {
        expected++;
        observed += pair.seen;
        tally->deliveries.late += pair.late;
      } else if (pair.recovered) {
        tally->deliveries.recovered++;
      } else if (pair.seen && !publish.counts && publish.state != NEVER_SENT) {
        tally->deliveries.unacked_delivered++;
      } else if (pair.seen) {
        tally->deliveries.unexpected++;
      }
    }
    tally->deliveries.expected += expected;
    tally->deliveries.observed += observed;
    tally->deliveries.lost += expected - observed;
    if (!ledger->spans || observed == 0) continue;
    record_mark(ledger, slot, load(&ledger->spans[slot].first), first);
    if (observed == expected) record_mark(ledger, slot, load(&ledger->spans[slot].last), complete);
  }
}

void ledger_share_out(const struct ledger *ledger, bool has_acks, struct ledger_share *out) {
  uint64_t slots = used_slots(ledger);
  for (uint64_t slot = 0; slot < slots; slot++) {
    struct publish publish = publish_of(ledger, slot, has_acks);
    for (uint32_t i = 0; i < publish.recipients; i++) {
      struct pair pair = pair_of(ledger, &publish, i);
      uint32_t recipient = ledger->plan.recipient(ledger->plan.topology, publish.sender, publish.target, i);
      if (!pair.expected || recipient >= ledger->plan.recipients) continue;
      out[recipient].expected++;
      out[recipient].observed += pair.seen;
    }
  }
}

bool ledger_is_complete(struct ledger *ledger, bool has_acks) {
  uint32_t budget = PAIRS_PER_CALL;
  uint64_t slots = used_slots(ledger);
  while (ledger->checked_slots < slots) {
    struct publish publish = publish_of(ledger, ledger->checked_slots, has_acks);
    if (has_acks && publish.state == PENDING) return false;
    uint32_t pairs = publish.counts ? publish.recipients : 0;
    while (ledger->checked_recipients < pairs) {
      struct pair pair = pair_of(ledger, &publish, ledger->checked_recipients);
      if (pair.expected && !pair.seen) return false;
      ledger->checked_recipients++;
      if (--budget == 0) return false;
    }
    ledger->checked_recipients = 0;
    ledger->checked_slots++;
    if (pairs == 0 && --budget == 0) return false;
  }
  return true;
}
