/* Observations in the reports: the member "observed", and one line for each source with what it used in the measure
 * phase (docs/observe.md). */
#ifndef MUSTER_REPORT_OBSERVED_H
#define MUSTER_REPORT_OBSERVED_H

#include "report/document.h"
#include "report/json_reader.h"
#include "report/json_writer.h"

/* Least, mean and greatest of one column over the rows whose time has its middle within from_s to to_s; count 0: it has
 * no value there. */
struct observed_summary {
  double min, mean, max;
  uint32_t count;
};
struct observed_summary observed_summary(
    const struct report_observed *observed, const char *column, double from_s, double to_s);

void observed_write_json(struct json_writer *writer, const struct report *report);
/* From the root of a report; a file from before there were observations has none. */
void observed_read_json(const struct json_node *root, struct report *report);
void observed_write_text(FILE *file, const struct report *report);

#endif
