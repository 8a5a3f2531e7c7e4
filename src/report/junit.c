/* A report as JUnit XML, which CI servers show as a suite of tests. */
#include "report/formats.h"
#include "report/junit_parts.h"
#include "report/save.h"

static void put_property(FILE *file, const char *name, const char *value) {
  fputs("      <property", file);
  junit_put_attribute(file, "name", name);
  junit_put_attribute(file, "value", value);
  fputs("/>\n", file);
}

static struct junit_case case_of(const struct report *r, const char *name) {
  return (struct junit_case){.suite = r->workload.name, .name = name, .time_s = r->measure_s};
}

static void put_verdict(FILE *file, const struct report *r) {
  struct junit_case test = case_of(r, "verdict");
  char body[sizeof r->reason + REPORT_REASONS_MAX];
  size_t used = 0;
  for (uint32_t i = 0; i < r->reasons; i++)
    used += (size_t)snprintf(body + used, sizeof body - used, "%s%s", i ? "\n" : "", r->reason[i]);
  if (r->verdict != VERDICT_VALID) test.outcome = "error";
  test.type = "invalid";
  test.message = r->reasons ? r->reason[0] : "the run is invalid";
  if (r->reasons) test.body = body;
  junit_put_case(file, &test);
}

static void put_objective(FILE *file, const struct report *r, const struct report_objective *objective) {
  char name[OBJECTIVE_TEXT_MAX + 16], measured[40], message[OBJECTIVE_TEXT_MAX + 80];
  snprintf(name, sizeof name, "objective %s", objective->text);
  struct junit_case test = case_of(r, name);
  test.type = "objective";
  test.message = message;
  if (!objective->evaluable) {
    test.outcome = "error";
    snprintf(message, sizeof message, "%s could not be judged: too few samples, or no such clock", objective->text);
  } else if (!objective->held) {
    test.outcome = "failure";
    report_format_measured(measured, objective);
    snprintf(message, sizeof message, "%s is broken: measured %s", objective->text, measured);
  }
  junit_put_case(file, &test);
}

static const struct identity {
  const char *name;
  bool warm_up;
  enum status (*check)(const struct tally *tally, bool has_acks, struct err *err); /* NULL: of the storm */
} identities[] = {
    {"accounting of connections", false, tally_check_connections},
    {"accounting of publishes", false, tally_check_publishes},
    {"accounting of deliveries", false, tally_check_deliveries},
    {"accounting of warm-up publishes", true, tally_check_publishes},
    {"accounting of warm-up deliveries", true, tally_check_deliveries},
    {"accounting of the storm", false, NULL},
};

/* The last one is of storms only. */
static uint32_t identities_of(const struct report *r) {
  return (uint32_t)(sizeof identities / sizeof identities[0]) - !r->workload.storm;
}

static bool is_kept(const struct identity *identity, const struct report *r, struct err *err) {
  if (!identity->check) return report_storm_check(&r->storm, err) == STATUS_OK;
  return identity->check(identity->warm_up ? &r->warmup : &r->measure, r->has_acks, err) == STATUS_OK;
}

static void put_identity(FILE *file, const struct report *r, const struct identity *identity) {
  struct err err = {0};
  struct junit_case test = case_of(r, identity->name);
  test.type = "identity";
  test.message = err.text;
  if (!is_kept(identity, r, &err)) test.outcome = "error";
  junit_put_case(file, &test);
}

static void count(const struct report *r, struct junit_suite *suite) {
  struct err unused;
  suite->tests = 1 + r->objectives + identities_of(r);
  suite->errors = r->verdict != VERDICT_VALID;
  for (uint32_t i = 0; i < r->objectives; i++) {
    if (!r->objective[i].evaluable) suite->errors++;
    if (r->objective[i].evaluable && !r->objective[i].held) suite->failures++;
  }
  for (uint32_t i = 0; i < identities_of(r); i++)
    suite->errors += !is_kept(&identities[i], r, &unused);
}

static void open_suite(FILE *file, const struct report *r) {
  struct junit_suite suite = {.name = r->workload.name,
      .started_at = r->started_at,
      .hostname = r->environment.hostname,
      .time_s = r->measure_s};
  count(r, &suite);
  junit_open(file, &suite);
  fputs("    <properties>\n", file);
  put_property(file, "run_id", r->run_id);
  put_property(file, "target", r->target.url);
  put_property(file, "protocol", r->target.protocol);
  put_property(file, "server_version", r->target.server_version);
  fputs("    </properties>\n", file);
}

enum status report_write_junit(FILE *file, const struct report *report, struct err *err) {
  open_suite(file, report);
  put_verdict(file, report);
  for (uint32_t i = 0; i < report->objectives; i++)
    put_objective(file, report, &report->objective[i]);
  for (uint32_t i = 0; i < identities_of(report); i++)
    put_identity(file, report, &identities[i]);
  junit_close(file);
  return save_flush(file, "report", err);
}
