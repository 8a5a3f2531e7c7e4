#include "report/junit_parts.h"

#include "report/characters.h"

void junit_put_attribute(FILE *file, const char *name, const char *value) {
  fprintf(file, " %s=\"", name);
  markup_write(file, value);
  fputc('"', file);
}

void junit_put_case(FILE *file, const struct junit_case *test) {
  fputs("    <testcase", file);
  junit_put_attribute(file, "classname", test->suite);
  junit_put_attribute(file, "name", test->name);
  fprintf(file, " time=\"%.3f\"", test->time_s);
  if (!test->outcome) {
    fputs("/>\n", file);
    return;
  }
  fprintf(file, ">\n      <%s", test->outcome);
  junit_put_attribute(file, "type", test->type);
  junit_put_attribute(file, "message", test->message);
  fputc('>', file);
  markup_write(file, test->body ? test->body : test->message);
  fprintf(file, "</%s>\n    </testcase>\n", test->outcome);
}

void junit_open(FILE *file, const struct junit_suite *suite) {
  char timestamp[20];
  snprintf(timestamp, sizeof timestamp, "%.19s", suite->started_at); /* without fraction and zone, as JUnit has it */
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", file);
  fprintf(file, "<testsuites name=\"muster\" tests=\"%u\" failures=\"%u\" errors=\"%u\" time=\"%.3f\">\n", suite->tests,
      suite->failures, suite->errors, suite->time_s);
  fputs("  <testsuite", file);
  junit_put_attribute(file, "name", suite->name);
  fprintf(file, " tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"0\" time=\"%.3f\"", suite->tests,
      suite->failures, suite->errors, suite->time_s);
  junit_put_attribute(file, "timestamp", timestamp);
  if (suite->hostname) junit_put_attribute(file, "hostname", suite->hostname);
  fputs(">\n", file);
}

void junit_close(FILE *file) {
  fputs("  </testsuite>\n</testsuites>\n", file);
}
