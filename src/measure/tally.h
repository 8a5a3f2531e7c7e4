/* Tally: every counter of methodology.md ("Events and counters") by its name in the JSON report, for one phase.
 * Flat, without pointers: one per worker and phase in shared memory, merged by addition. */
#ifndef MUSTER_MEASURE_TALLY_H
#define MUSTER_MEASURE_TALLY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Counts by code. Codes are the server's own numbers, or the negative ones of enum cause for what muster saw
 * itself. When more distinct codes come than fit, they are counted together in `others`. */
#define CODES_MAX 32
struct codes {
  struct {
    int32_t code;
    uint64_t count;
  } entry[CODES_MAX];
  uint32_t used;
  uint64_t others;
};

void codes_add(struct codes *codes, int32_t code, uint64_t count);
void codes_merge(struct codes *into, const struct codes *from);
uint64_t codes_count(const struct codes *codes, int32_t code);
uint64_t codes_total(const struct codes *codes);

/* What muster itself saw go wrong; never a server's code. */
enum cause {
  CAUSE_CONNECT_REFUSED = -1, /* TCP: nobody listens */
  CAUSE_CONNECT_TIMEOUT = -2, /* not established before the connect deadline */
  CAUSE_CONNECT_ERROR = -3,   /* TCP: any other error (unreachable, no port, no descriptor) */
  CAUSE_TLS = -4,             /* the TLS handshake failed */
  CAUSE_UPGRADE = -5,         /* the HTTP upgrade was answered by something else than 101 */
  CAUSE_CLOSED_EARLY = -6,    /* closed by the peer before it was established */
  CAUSE_PROTOCOL = -7,        /* the peer broke the protocol */
  CAUSE_NO_ANSWER = -8,       /* no ACK before the deadline */
  CAUSE_CONNECTION_LOST = -9, /* the connection ended while the answer was awaited */
  CAUSE_NOT_CONNECTED = -10,  /* due while the sender had no connection */
  CAUSE_BLOCKED = -11,        /* still due at the phase's end: the transport took no more */
  CAUSE_CLOSED_BY_PEER = -12, /* an established connection that the peer closed */
  CAUSE_RESET = -13,          /* an established connection that was reset */
  CAUSE_KICKED = -14,         /* an established connection that the server ended with a notice */
  CAUSE_KEEP_ALIVE = -15,     /* an established connection on which keep-alives were not answered */
  CAUSE_INTERRUPTED = -16,    /* the run was stopped first */
  CAUSE_GENERATOR_LATE = -17, /* the phase was over before muster itself came to it */
};

/* A short stable name for a negative code ("no_answer"), or NULL for a number that is no cause. */
const char *cause_name(int32_t code);

#define TALLY_EXTRAS 2

struct tally {
  struct {
    uint64_t attempted, established, reconnected;
    struct codes failed, dropped;
  } connections;
  struct {
    uint64_t scheduled, attempted, acked;
    uint64_t acked_late; /* of acked: those whose ACK came after the phase, so that no rate counts them */
    struct codes unsent, rejected, timed_out;
  } publishes;
  struct {
    uint64_t expected, observed, late, lost; /* filled by ledger_settle; late ones are among the observed */
    uint64_t duplicate, reordered, corrupt, unexpected, unacked_delivered, recovered, overlap;
    bool late_is_of_all; /* of a report from before overlap: late ones that nobody expected count too */
  } deliveries;
  uint64_t bytes_sent, bytes_received;
  uint64_t extra[TALLY_EXTRAS]; /* what only one protocol counts; the driver names them */
};

void tally_merge(struct tally *into, const struct tally *from);

/* Checks every identity of methodology.md; has_acks is false for a protocol without ACKs, where acked, rejected and
 * timed_out must be 0. Checks too that no more was dropped, late or reordered than there was.
 * A broken one is a bug in muster: the error spells it with its numbers. */
enum status tally_check(const struct tally *tally, bool has_acks, struct err *err);
/* The same by groups. */
enum status tally_check_connections(const struct tally *tally, bool has_acks, struct err *err);
enum status tally_check_publishes(const struct tally *tally, bool has_acks, struct err *err);
enum status tally_check_deliveries(const struct tally *tally, bool has_acks, struct err *err);

#endif
