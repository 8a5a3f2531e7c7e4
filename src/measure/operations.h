/* Operations: what clients asked a server for by name, beside the publishes of the tally: counters and a clock for each
 * operation, the texts of refusals, and retry hints that were honoured. Flat, without pointers: one per worker in
 * shared memory, of the measure phase, merged by addition. */
#ifndef MUSTER_MEASURE_OPERATIONS_H
#define MUSTER_MEASURE_OPERATIONS_H

#include "base/view.h"
#include "measure/histogram.h"
#include "measure/tally.h"

#define OPERATIONS_MAX 24

/* What clients can ask a server for, by its names in reports. */
struct operation_name {
  const char *name; /* "put_document"; NULL behind the last */
  const char *item; /* what one operation does many of, in the plural: "documents"; NULL: one thing only */
};
enum operation_kind {
  OPERATION_SUBMIT,
  OPERATION_BATCH_SUBMIT,
  OPERATION_RETRIEVE,
  OPERATION_MARK_DELIVERED,
  OPERATION_PUT_DOCUMENT,
  OPERATION_GET_DOCUMENT,
  OPERATION_BATCH_PUT,
  OPERATION_LIST,
  OPERATION_CREATE_FEED,
  OPERATION_APPEND,
  OPERATION_GET_ENTRY,
  OPERATION_CREATE_COLLECTION,
  OPERATION_PUT_ITEM,
  OPERATION_QUERY,
  OPERATION_CREATE_MAILBOX,
  OPERATION_DELETE_MAILBOX,
  OPERATIONS_KNOWN
};
extern const struct operation_name operation_names[OPERATIONS_KNOWN + 1];

#define REFUSALS_MAX 32
#define REFUSAL_TEXT_MAX 104

struct operation_tally {
  uint64_t attempted, succeeded;
  uint64_t late; /* of succeeded: answered after the phase, so that no rate counts them */
  uint64_t items, items_late;
  struct codes failed;
  struct histogram clock; /* of those that succeeded, from the moment they were written */
};

/* Distinct texts with their counts; when more come than fit, they are counted together in `others`. */
struct refusals {
  struct {
    char text[REFUSAL_TEXT_MAX];
    uint64_t count;
  } entry[REFUSALS_MAX];
  uint32_t used;
  uint64_t others;
};

struct operations {
  struct operation_tally one[OPERATIONS_MAX];
  struct refusals refusals;
  uint64_t hints;     /* Retry-After hints after which an operation was tried again */
  uint64_t waited_ns; /* for them */
};

/* Digits become '#', so that numbers in a text do not make it another one; what does not fit is cut off. */
void refusals_add(struct refusals *refusals, struct view text, uint64_t count);
void refusals_merge(struct refusals *into, const struct refusals *from);
void operation_tally_merge(struct operation_tally *into, const struct operation_tally *from);
/* Operations that were neither answered nor given up. */
uint64_t operation_unanswered(const struct operation_tally *tally);

#endif
