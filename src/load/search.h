/* Search for the border between loads that hold and loads that break: climb until something breaks, halve the gap until
 * it is narrow, then test both sides again at full length. Pure logic, without clock or I/O: the caller carries out
 * each step and feeds back what came of it.
 *
 * Real systems are random near their limit, so a load may hold once and break once. Such a load belongs to neither
 * side: the answer is the highest load that always held with nothing broken below it, and the lowest that always broke
 * with nothing held above it. A step that says nothing about the subject (invalid) is repeated, and ends the search
 * when it stays invalid: it never becomes part of an answer. */
#ifndef MUSTER_LOAD_SEARCH_H
#define MUSTER_LOAD_SEARCH_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SEARCH_LOADS_MAX 128
#define SEARCH_CONFIRMATIONS 2 /* tests that each side of the answer has passed, one at full length */
#define SEARCH_INVALID_RETRIES_MAX 2

struct search_settings {
  double from, to;    /* loads to search in; 0 < from <= to */
  double step;        /* climb by adding this much; 0: by doubling */
  double resolution;  /* width of the answer, as a share of its upper end: 0.001..0.5 */
  bool whole_numbers; /* loads are counts */
  uint32_t tests_max; /* the search ends after so many at the latest */
};

enum search_outcome { SEARCH_HELD, SEARCH_BROKEN, SEARCH_INVALID };

enum search_end {
  SEARCH_GOES_ON,
  SEARCH_FOUND,          /* [held, broken] is the answer */
  SEARCH_NONE_HELD,      /* no load held for good, not even `from`; broken is the lowest that broke for good */
  SEARCH_ALL_HELD,       /* even `to` held: held is to, broken is 0 */
  SEARCH_TOP_MIXED,      /* nothing broke for good up to `to`, but not everything held: held so far */
  SEARCH_STAYED_INVALID, /* the step at `invalid_at` said nothing, again and again; held and broken so far */
  SEARCH_TESTS_SPENT,    /* too random to end: held and broken so far */
};

struct search_load {
  double load;
  uint32_t held, broken, invalid; /* tests */
  bool held_full, broken_full;    /* one of them at full length */
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

/* What came of the step that search_next gave. */
void search_feed(struct search *search, enum search_outcome outcome);

#endif
