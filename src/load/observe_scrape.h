/* Fetches a metrics page and picks the chosen series from it, without ever waiting for it: lines are read as they come,
 * nothing is kept of the others, and size and time are bounded. */
#ifndef MUSTER_LOAD_OBSERVE_SCRAPE_H
#define MUSTER_LOAD_OBSERVE_SCRAPE_H

#include "load/observe_spec.h"

#define SCRAPE_TIMEOUT_MS 5000
#define SCRAPE_BYTES_MAX (16u * 1024 * 1024)

struct scrape;

/* The target must outlive it. */
enum status scrape_new(struct scrape **out, const struct observe_target *target, struct err *err);
void scrape_free(struct scrape *scrape); /* NULL is harmless */

/* Begins to fetch the page; false when the fetch before is still under way. */
bool scrape_begin(struct scrape *scrape);

/* Goes on with a fetch; true once it has ended: *status is its outcome, and value holds one number for each series of
 * the target, the sum of all that it selects, NaN where there is none. */
bool scrape_turn(struct scrape *scrape, double value[OBSERVE_SERIES_MAX], enum status *status, struct err *err);

/* A whole fetch, for which the caller waits. */
enum status scrape_once(struct scrape *scrape, double value[OBSERVE_SERIES_MAX], struct err *err);

#endif
