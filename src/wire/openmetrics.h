/* Metrics pages: the text formats of Prometheus (0.0.4) and OpenMetrics (1.0), read line by line, and selectors that
 * pick series of them, as http_requests_total{code="200"}. Nothing is copied: views point into the caller's text. */
#ifndef MUSTER_WIRE_OPENMETRICS_H
#define MUSTER_WIRE_OPENMETRICS_H

#include "base/view.h"

#define OPENMETRICS_LINE_MAX 16384 /* a longer line is nobody's sample */

/* A name with labels. The labels are what stands between the braces, known to be well-formed. */
struct openmetrics_series {
  struct view name, labels;
};

enum openmetrics_line {
  OPENMETRICS_SAMPLE,
  OPENMETRICS_COMMENT, /* HELP, TYPE, UNIT, anything after a '#', or an empty line */
  OPENMETRICS_END,     /* "# EOF": the page is complete */
  OPENMETRICS_BAD
};

/* Reads one line, without its newline. series and value are set for a sample only; its time and exemplar are left
 * out. */
enum openmetrics_line openmetrics_read(struct view line, struct openmetrics_series *series, double *value);

/* Takes a selector from the front of *text: false, with nothing taken, when there is none. */
bool openmetrics_take_series(struct view *text, struct openmetrics_series *out);

/* True when the names are equal and the series has every label of the selector with the same value. */
bool openmetrics_selects(const struct openmetrics_series *selector, const struct openmetrics_series *series);

#endif
