/* JUnit XML, piece by piece: one suite of test cases, whatever they are of. */
#ifndef MUSTER_REPORT_JUNIT_PARTS_H
#define MUSTER_REPORT_JUNIT_PARTS_H

#include <stdio.h>

struct junit_suite {
  const char *name, *started_at; /* RFC 3339 */
  const char *hostname;          /* NULL: not said */
  unsigned tests, failures, errors;
  double time_s;
};

struct junit_case {
  const char *suite, *name;
  double time_s;
  const char *outcome;        /* "error", "failure"; NULL: passed */
  const char *type, *message; /* of an outcome */
  const char *body;           /* NULL: as the message */
};

/* Begins the document with its one suite; junit_close ends it. Texts may hold anything. */
void junit_open(FILE *file, const struct junit_suite *suite);
void junit_put_case(FILE *file, const struct junit_case *test);
void junit_close(FILE *file);

void junit_put_attribute(FILE *file, const char *name, const char *value);

#endif
