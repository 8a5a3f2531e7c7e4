/* A report as JUnit XML, which CI servers show as a suite of tests. */
#include "report/characters.h"
#include "report/formats.h"
#include "report/save.h"

static void put_attribute(FILE *file, const char *name, const char *value) {
  fprintf(file, " %s=\"", name);
  markup_write(file, value);
  fputc('"', file);
}

static void put_property(FILE *file, const char *name, const char *value) {
  fputs("      <property", file);
  put_attribute(file, "name", name);
  put_attribute(file, "value", value);
  fputs("/>\n", file);
}

struct test_case {
  const char *name;
  const char *outcome; /* "error", "failure"; NULL: passed */
  const char *type, *message;
};

static void open_case(FILE *file, const struct report *r, const struct test_case *test) {
  fputs("    <testcase", file);
  put_attribute(file, "classname", r->workload.name);
  put_attribute(file, "name", test->name);
  fprintf(file, " time=\"%.3f\"", r->measure_s);
}

static void put_outcome(FILE *file, const struct test_case *test) {
  fprintf(file, "      <%s", test->outcome);
  put_attribute(file, "type", test->type);
  put_attribute(file, "message", test->message);
  fputc('>', file);
}

static void put_case(FILE *file, const struct report *r, const struct test_case *test) {
  open_case(file, r, test);
  if (!test->outcome) {
    fputs("/>\n", file);
    return;
  }
  fputs(">\n", file);
  put_outcome(file, test);
  markup_write(file, test->message);
  fprintf(file, "</%s>\n    </testcase>\n", test->outcome);
}

static void put_verdict(FILE *file, const struct report *r) {
  struct test_case test = {.name = "verdict", .type = "invalid"};
  if (r->verdict != VERDICT_VALID) test.outcome = "error";
  test.message = r->reasons ? r->reason[0] : "the run is invalid";
  if (!test.outcome || r->reasons < 2) {
    put_case(file, r, &test);
    return;
  }
  open_case(file, r, &test);
  fputs(">\n", file);
  put_outcome(file, &test);
  for (uint32_t i = 0; i < r->reasons; i++) {
    if (i) fputc('\n', file);
    markup_write(file, r->reason[i]);
  }
  fputs("</error>\n    </testcase>\n", file);
}

static void put_objective(FILE *file, const struct report *r, const struct report_objective *objective) {
  char name[OBJECTIVE_TEXT_MAX + 16], measured[40], message[OBJECTIVE_TEXT_MAX + 80];
  struct test_case test = {.name = name, .type = "objective", .message = message};
  snprintf(name, sizeof name, "objective %s", objective->text);
  if (!objective->evaluable) {
    test.outcome = "error";
    snprintf(message, sizeof message, "%s could not be judged: too few samples, or no such clock", objective->text);
  } else if (!objective->held) {
    test.outcome = "failure";
    report_format_measured(measured, objective);
    snprintf(message, sizeof message, "%s is broken: measured %s", objective->text, measured);
  }
  put_case(file, r, &test);
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
  struct test_case test = {.name = identity->name, .type = "identity", .message = err.text};
  if (!is_kept(identity, r, &err)) test.outcome = "error";
  put_case(file, r, &test);
}

struct totals {
  unsigned tests, failures, errors;
};

static struct totals count(const struct report *r) {
  struct err unused;
  struct totals totals = {.tests = 1 + r->objectives + identities_of(r), .errors = r->verdict != VERDICT_VALID};
  for (uint32_t i = 0; i < r->objectives; i++) {
    if (!r->objective[i].evaluable) totals.errors++;
    if (r->objective[i].evaluable && !r->objective[i].held) totals.failures++;
  }
  for (uint32_t i = 0; i < identities_of(r); i++)
    totals.errors += !is_kept(&identities[i], r, &unused);
  return totals;
}

static void open_suite(FILE *file, const struct report *r) {
  struct totals totals = count(r);
  char timestamp[20];
  snprintf(timestamp, sizeof timestamp, "%.19s", r->started_at); /* without fraction and zone, as JUnit has it */
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", file);
  fprintf(file, "<testsuites name=\"muster\" tests=\"%u\" failures=\"%u\" errors=\"%u\" time=\"%.3f\">\n", totals.tests,
      totals.failures, totals.errors, r->measure_s);
  fputs("  <testsuite", file);
  put_attribute(file, "name", r->workload.name);
  fprintf(file, " tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"0\" time=\"%.3f\"", totals.tests,
      totals.failures, totals.errors, r->measure_s);
  put_attribute(file, "timestamp", timestamp);
  put_attribute(file, "hostname", r->environment.hostname);
  fputs(">\n    <properties>\n", file);
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
  fputs("  </testsuite>\n</testsuites>\n", file);
  return save_flush(file, "report", err);
}
