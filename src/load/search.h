/* Search for the border between loads that hold and loads that break: climb until something breaks, halve the gap until
 * it is narrow, then test both sides again at full length. Pure logic, without clock or I/O: the caller carries out
 * each step and feeds back what came of it.
 *
 * Real systems and machines are random, so one break is not believed: it is repeated at once, and counts when the load
 * breaks a second time. A load that both held and broke belongs to the side with the majority of its tests, of the
 * full-length ones where it has any, and is tested on while they are even. So every load below the answer held and
 * every load above it broke, for the most part.
 *
 * A step that says nothing about the subject (invalid) is repeated, and ends the search when it stays invalid: it never
 * becomes part of an answer. A doubtful break, of a machine that was disturbed, is forgiven as many times as
 * SEARCH_DOUBTS_FORGIVEN says for each load: what comes back each time comes with the load. */
#ifndef MUSTER_LOAD_SEARCH_H
#define MUSTER_LOAD_SEARCH_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SEARCH_LOADS_MAX 128
#define SEARCH_CONFIRMATIONS 2 /* tests that each side of the answer has passed, one at full length */
#define SEARCH_BREAKS_MIN 2    /* of a load, before it narrows anything */
#define SEARCH_INVALID_RETRIES_MAX 2
#define SEARCH_DOUBTS_FORGIVEN 1

struct search_settings {
  double from, to;    /* loads to search in; 0 < from <= to */
  double step;        /* climb by adding this much; 0: by doubling */
  double resolution;  /* width of the answer, as a share of its upper end: 0.001..0.5 */
  bool whole_numbers; /* loads are counts */
  uint32_t tests_max; /* the search ends after so many at the latest */
};

enum search_outcome { SEARCH_HELD, SEARCH_BROKEN, SEARCH_INVALID, SEARCH_DOUBTFUL };

enum search_end {
  SEARCH_GOES_ON,
  SEARCH_FOUND,          /* [held, broken] is the answer */
  SEARCH_NONE_HELD,      /* not even `from` held: broken is from */
  SEARCH_ALL_HELD,       /* even `to` held: held is to, broken is 0 */
  SEARCH_STAYED_INVALID, /* the step at `invalid_at` said nothing, again and again; held and broken so far */
  SEARCH_TESTS_SPENT,    /* too random to end: held and broken so far */
};

struct search_load {
  double load;
  uint32_t held, broken, invalid;  /* tests; forgiven doubts are among the invalid ones */
  uint32_t held_full, broken_full; /* of them at full length */
  uint32_t doubtful;
};

struct search {
  struct search_settings settings;
  struct search_load load[SEARCH_LOADS_MAX]; /* ascending */
  uint32_t loads;
  uint32_t tests, invalid_in_a_row;
  enum search_end end;
  double held, broken; /* the answer so far; 0: there is none on that side */
  double invalid_at;
};

struct search_step {
  double load;
  bool full_length;
};

/* STATUS_USAGE with one line when the settings make no sense. */
enum status search_start(struct search *search, const struct search_settings *settings, struct err *err);

/* The next step to carry out, the same until it is fed; false when the search is over (search->end says how). */
bool search_next(const struct search *search, struct search_step *step);

/* What came of the step that search_next gave. Returns as what it counts: a doubt as broken or as invalid. */
enum search_outcome search_feed(struct search *search, enum search_outcome outcome);

/* The side that a load belongs to: SEARCH_HELD, SEARCH_BROKEN, or SEARCH_INVALID while its tests do not say. */
enum search_outcome search_side(const struct search_load *load);

#endif
