/* Ledger: accounts for every expected delivery of one phase (methodology.md, Deliveries): exact, in memory that is
 * known before the run, in one mapping that all workers share.
 *
 * Publishes are numbered in schedule order: slot k belongs to sender k % senders and is that sender's sequence
 * number k / senders. A slot is a 16-byte record, written only by its sender's worker until the ledger is settled.
 * A recipient has a row of one bit per message of each sender that addresses it (its streams), and the highest
 * message seen on each; a row is written only by the recipient's worker, unless the plan says that rows are shared.
 * With fan-out each slot also keeps its first and last delivery (atomic minimum and maximum, since recipients of
 * several workers write there). Memory: 16 B a slot (+ 16 B with fan-out), 2 bits a pair (the second is touched only by
 * what comes late), 4 B a stream, 48 B a recipient; 20 million ring pairs take 327 MB, 20 million group pairs of 1,000
 * members 6 MB. A mapping belongs to one process and its forks. */
#ifndef MUSTER_MEASURE_LEDGER_H
#define MUSTER_MEASURE_LEDGER_H

#include "base/err.h"
#include "measure/histogram.h"
#include "measure/tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who is addressed by whom, as pure functions of indices, so that a ledger of any topology needs no lists.
 * Senders and recipients are numbered 0..n-1 each. A sender may go round several targets: its message `sequence`
 * addresses target sequence % targets. */
struct ledger_plan {
  uint64_t slots; /* publishes of the phase, 0 allowed */
  uint32_t senders;
  uint32_t recipients;
  uint32_t targets; /* that a sender goes round; 0 or 1: always the same one */
  uint32_t streams; /* pairs of a sender and a target that address one recipient, at most */
  uint32_t fan_out; /* recipients that one publish addresses, at most */
  /* A recipient is several clients, of whom any one gets a message (a queue): any worker may write its row, a second
   * delivery to whichever of them is a duplicate, and there is no order, and no gap while one of them is away. */
  bool shared_rows;
  /* The stream (0..streams-1) on which recipient hears what sender sends to target, or -1 when it is not addressed. */
  int32_t (*stream)(const void *topology, uint32_t sender, uint32_t target, uint32_t recipient);
  /* The i-th recipient of sender's target (0 <= i < count); count through *recipients_of. */
  uint32_t (*recipients_of)(const void *topology, uint32_t sender, uint32_t target);
  uint32_t (*recipient)(const void *topology, uint32_t sender, uint32_t target, uint32_t i);
  const void *topology;
};

struct ledger; /* opaque: lies wholly inside the memory given to ledger_init */

/* Bytes that ledger_init needs for a plan; SIZE_MAX when that does not fit an address space. */
size_t ledger_size(const struct ledger_plan *plan);

/* Lays a ledger out in zeroed, 64-byte aligned memory of ledger_size bytes; NULL when ledger_size is SIZE_MAX.
 * t0_ns: start of the phase; times in the ledger are offsets from it and may reach 4 hours. */
struct ledger *ledger_init(void *memory, const struct ledger_plan *plan);
void ledger_start(struct ledger *ledger, uint64_t t0_ns);

/* The sender's side. Each is called by the sender's worker only. A publish must be attempted before it is
 * acked, rejected or timed out, and settled into just one of these: a second answer returns false and changes
 * nothing. */
void ledger_attempted(struct ledger *ledger, uint64_t slot, uint64_t scheduled_ns, uint64_t written_ns);
bool ledger_acked(struct ledger *ledger, uint64_t slot);
bool ledger_rejected(struct ledger *ledger, uint64_t slot);
bool ledger_timed_out(struct ledger *ledger, uint64_t slot);
uint64_t ledger_scheduled_ns(const struct ledger *ledger, uint64_t slot);
uint64_t ledger_written_ns(const struct ledger *ledger, uint64_t slot);
/* True while the slot is attempted and not yet answered. */
bool ledger_pending(const struct ledger *ledger, uint64_t slot);

enum delivery { DELIVERY_FIRST, DELIVERY_REORDERED, DELIVERY_DUPLICATE, DELIVERY_UNEXPECTED };

/* One delivery of sender's sequence number, seen at now_ns by the recipient's worker. */
struct arrival {
  uint32_t recipient, sender, sequence;
  uint64_t now_ns;
  bool late;  /* the phase of the message was over */
  bool heard; /* ledger_heard when it was written: otherwise nobody waited for it */
};

/* The recipient's side.
 * FIRST and REORDERED set the bit (REORDERED: a later one of that sender and target came before); DUPLICATE: the bit
 * was set already; UNEXPECTED: not addressed to this recipient, or a sequence beyond the plan. */
enum delivery ledger_delivered(struct ledger *ledger, const struct arrival *arrival);

/* When a recipient could hear: from established to dropped, times and again. Set by its worker; a recipient that was
 * never established expects nothing, and none expects what was written before it was established or after a drop.
 * Reconnects are kept apart until there were as many as recipients; after that the gaps count as heard, so that a
 * loss may be overstated and is never hidden. */
void ledger_established(struct ledger *ledger, uint32_t recipient, uint64_t now_ns);
void ledger_dropped(struct ledger *ledger, uint32_t recipient, uint64_t now_ns);

/* Whether the recipient could hear at a moment, as far as is known now. */
bool ledger_heard(const struct ledger *ledger, uint32_t recipient, uint64_t written_ns);

/* After all workers have ended: walks every slot and every addressed recipient, and adds expected, observed, of
 * them late, lost and unacked_delivered to tally->deliveries. What a recipient got that was away when it was written,
 * between two hearings, is added to recovered: it was pulled after the return. Deliveries of publishes that were never
 * attempted, or to a recipient that could not hear them for another reason, are added to unexpected. Publishes still
 * unanswered must have been timed out before. With has_acks false, attempted publishes count as acked. With fan-out
 * (plan.fan_out above 1), scheduled to the first arrival that was heard is recorded in first, and, where every expected
 * delivery came, scheduled to the last one in complete; both may be NULL. */
void ledger_settle(const struct ledger *ledger, bool has_acks, struct tally *tally, struct histogram *first,
    struct histogram *complete);

/* After all workers have ended: adds to each recipient what ledger_settle counts as its expected and observed.
 * out: one for each recipient of the plan. */
struct ledger_share {
  uint64_t expected, observed;
};
void ledger_share_out(const struct ledger *ledger, bool has_acks, struct ledger_share *out);

/* For the grace phase, when nothing more is attempted: true when every attempted publish is answered (has_acks) and
 * every acked one has all its expected deliveries. Never true too early. Each call goes on where the last one
 * stopped, at the first missing delivery or after 2 million pairs (some ten milliseconds), so that all calls
 * together cost one walk; a phase of 20 million pairs is known to be complete after 10 calls. Called by the control
 * process only, always with the same has_acks. */
bool ledger_is_complete(struct ledger *ledger, bool has_acks);

#endif
