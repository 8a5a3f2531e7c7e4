/* The clocks of a report as an HdrHistogram log. */
#include "measure/hlog.h"
#include "report/formats.h"
#include "report/save.h"

#include <stdlib.h>
#include <time.h>

static double unix_seconds(const char *rfc3339) {
  struct tm tm = {0};
  const char *rest = strptime(rfc3339, "%Y-%m-%dT%H:%M:%S", &tm);
  if (!rest) return 0;
  double fraction = *rest == '.' ? strtod(rest, NULL) : 0;
  return (double)timegm(&tm) + fraction;
}

enum status hlog_write_report_head(FILE *file, const struct report *report, struct err *err) {
  char comment[96];
  snprintf(comment, sizeof comment, "muster run %s", report->run_id);
  const char *start = report->measure_started_at[0] ? report->measure_started_at : report->started_at;
  return hlog_write_head(file, unix_seconds(start), comment, err);
}

static bool has_histograms(const struct report *report) {
  bool summaries = false;
  for (int i = 0; i < REPORT_CLOCKS; i++) {
    if (report->clock[i]) return true;
    summaries |= report->summary[i] != NULL;
  }
  return !summaries;
}

enum status report_write_hlog(FILE *file, const struct report *report, struct err *err) {
  if (!has_histograms(report)) {
    return err_set(
        err, STATUS_USAGE, "the report has no histograms (schema version 1): run it again for a log of them");
  }
  enum status status = hlog_write_report_head(file, report, err);
  for (enum report_clock i = 0; i < REPORT_CLOCKS && status == STATUS_OK; i++) {
    if (!report->clock[i]) continue;
    status = hlog_write_interval(file, report_clock_name(i), 0, report->measure_s, report->clock[i], err);
  }
  return status == STATUS_OK ? save_flush(file, "report", err) : status;
}
