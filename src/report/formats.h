/* Forms of a run's report beside text (document.h), JSON (document.h) and HTML (html.h): for spreadsheets, log
 * processors, plotters, CI servers and pull requests (docs/reports.md). */
#ifndef MUSTER_REPORT_FORMATS_H
#define MUSTER_REPORT_FORMATS_H

#include "report/document.h"

#include <stdio.h>

/* A row for each second of the measure phase under a head that names each column with its unit. */
enum status report_write_csv(FILE *file, const struct report *report, struct err *err);

/* JSON lines: an object for each second, then one with the figures of the whole run. */
enum status report_write_jsonl(FILE *file, const struct report *report, struct err *err);
void jsonl_write_second(FILE *file, uint32_t second, const struct report_second *figures);
void jsonl_write_summary(FILE *file, const struct report *report);

/* HdrHistogram log with the whole-run histogram of each clock; a report without any is refused. */
enum status report_write_hlog(FILE *file, const struct report *report, struct err *err);
/* The same log's head, for intervals of the measure phase. */
enum status hlog_write_report_head(FILE *file, const struct report *report, struct err *err);

/* A test suite: the verdict (invalid: an error), each objective (broken: a failure) and each group of identities. */
enum status report_write_junit(FILE *file, const struct report *report, struct err *err);

/* For a pull request: verdict, objectives, counters and the main latencies in tables, the text report folded away. */
enum status report_write_markdown(FILE *file, const struct report *report, struct err *err);

struct report_format {
  const char *name;
  enum status (*write)(FILE *file, const struct report *report, struct err *err);
};
/* Every form of a run's report, text first; the last name is NULL. */
extern const struct report_format report_formats[];
const struct report_format *report_format_find(const char *name); /* NULL: none */

/* Into a new file, as save_new_file; format is the name of one. */
enum status report_save(const char *path, const char *format, const struct report *report, struct err *err);

#endif
