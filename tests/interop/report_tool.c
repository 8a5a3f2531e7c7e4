// Prints reports as JSON for the schema test: report_tool valid|invalid|no-acks makes one up, report_tool again FILE
// reads one and writes it again.
#include "../unit/report/sample.h"

#include "report/read.h"
#include "report/slo.h"

static int write_again(const char *path) {
  struct report r;
  struct err err = {0};
  enum status status = report_read_json(path, &r, &err);
  if (status == STATUS_OK) status = report_write_json(stdout, &r, &err);
  if (status != STATUS_OK) fprintf(stderr, "%s\n", err.text);
  report_free(&r);
  return status == STATUS_OK ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc > 2) return write_again(argv[2]);
  const char *kind = argc > 1 ? argv[1] : "";
  struct report r = strcmp(kind, "invalid") == 0 ? sample_primes() : sample_valid();
  if (strcmp(kind, "no-acks") == 0) {
    r.has_acks = false;
    r.measure.publishes.acked = 0;
    r.workload.target = r.target.url;
    r.workload.user = "somebody";
    facts_add_number(&r.workload.options, "qos", 0);
    facts_add(&r.workload.target_options, "ack", "none");
    r.workload.key = r.workload.options;
    r.target.embedded = false;
    snprintf(r.target.ack_policy, sizeof r.target.ack_policy, "unknown");
  }
  report_judge(&r);
  struct err err = {0};
  struct slo_list objectives = {0};
  if (slo_parse("ack.p99<250ms, lost<=0.1%, acks_per_second>=1k, fan_out>=1", &objectives, &err) != STATUS_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  if (strcmp(kind, "valid") == 0) {
    slo_judge(&objectives, &r);
    r.calibration.ceiling_per_sec = 12345;
    r.calibration.is_lower_bound = true;
    snprintf(r.calibration.measured_at, sizeof r.calibration.measured_at, "2026-12-01T09:00:00.000Z");
  }
  if (report_write_json(stdout, &r, &err) != STATUS_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  report_free(&r);
  return 0;
}
