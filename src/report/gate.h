/* Gates: changes of a metric that a comparison must not show, as in
 *   delivery.p99 +10%   deliveries_per_second -5%
 * The first breaks when the candidate's median is at least a tenth above the base's, the second when it is at least
 * a twentieth below. */
#ifndef MUSTER_REPORT_GATE_H
#define MUSTER_REPORT_GATE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define GATES_MAX 16
#define GATE_TEXT_MAX 80

struct gate {
  char text[GATE_TEXT_MAX]; /* as given, without blanks */
  size_t metric;
  double change; /* 0.1 for +10%, -0.05 for -5% */
};

struct gate_list {
  struct gate gate[GATES_MAX];
  uint32_t count;
};

/* Adds one or several gates, separated by commas, to the list. STATUS_USAGE with one line: which, at which character,
 * and what is possible there. */
enum status gate_parse(const char *text, struct gate_list *list, struct err *err);

#endif
