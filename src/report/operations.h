/* The part of a report that only runs of operations have: what each operation did, the refusals by their texts, and
 * retry hints. */
#ifndef MUSTER_REPORT_OPERATIONS_H
#define MUSTER_REPORT_OPERATIONS_H

#include "report/document.h"
#include "report/json_reader.h"
#include "report/json_writer.h"
#include "report/latency.h"

/* Key "operations": an object, or null. */
void operations_write_json(struct json_writer *w, const struct report *report);
/* Key "operations" of the comparability key: what a request is made of; nothing for other runs. */
void operations_write_key(struct json_writer *w, const struct report *report);
/* From the root of a report; a file from before there were operations has none. */
void operations_read_json(const struct json_node *root, struct report *report);
/* Rows of the table of latencies, and the paragraphs of counts and refusals. */
void operations_write_clocks(FILE *file, const struct report *report, bool *any_marked);
void operations_write_text(FILE *file, const struct report *report);

/* Requests that failed or were not answered, of those attempted; and what operations did in a second of the phase. */
double operations_error_rate(const struct report *report);
double operations_per_second(const struct report *report, uint64_t all, uint64_t late);

/* The rates of one operation, by the report's names. */
enum operation_rate { OPERATION_RATE_SUCCEEDED, OPERATION_RATE_ITEMS, OPERATION_RATES };
extern const char *const operation_rate_names[OPERATION_RATES];
/* An operation that does one thing has no items. */
bool operation_has_rate(const struct operation_name *operation, enum operation_rate rate);
/* NULL: the run has none of that name. */
const struct report_operation *operations_find(const struct report *report, const char *name);

/* Of the rooms that the report's parts share. */
void report_read_codes(const struct json_node *object, const char *key, struct codes *codes, struct report *out);
void report_read_histogram(const struct json_node *clock, struct histogram *out);
void report_text_latency(FILE *file, const char *name, const struct report_latency *latency, bool *any_marked);

#endif
