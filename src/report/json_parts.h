/* Parts of the JSON report that other documents of muster hold too, in the same form. */
#ifndef MUSTER_REPORT_JSON_PARTS_H
#define MUSTER_REPORT_JSON_PARTS_H

#include "report/document.h"
#include "report/json_writer.h"

#include <jansson.h>

/* Each writes one key with its object: "muster" (the tool), "workload", "target", "environment". */
void report_json_tool(struct json_writer *w);
void report_json_workload(struct json_writer *w, const struct workload *workload);
void report_json_target(struct json_writer *w, const struct report_target *target);
void report_json_environment(struct json_writer *w, const struct report_environment *environment);

/* The figures of a run without its series, histograms and settings, as members of the open object. */
void report_json_summary(struct json_writer *w, const struct report *report);

/* The list "objectives", each with what was measured. */
void report_json_objectives(struct json_writer *w, const struct report_objective *objectives, uint32_t count);

/* A list of codes with their names; the object of one clock (h NULL: without histogram). */
void report_json_codes(struct json_writer *w, const char *key, const struct codes *codes, const struct report *report);
void report_json_latency(
    struct json_writer *w, const char *name, const struct report_latency *latency, const struct histogram *h);

/* A value that was read from another document, as it was; NULL as null. */
void report_json_value(struct json_writer *w, const char *key, const json_t *value);

#endif
