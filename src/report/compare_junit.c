/* A comparison as JUnit XML: that both sides may be compared, and each gate. */
#include "report/compare.h"
#include "report/junit_parts.h"
#include "report/save.h"

#define SUITE "compare"

static void put_gate(FILE *file, const struct gate *gate, const struct compare_gate *outcome) {
  char name[GATE_TEXT_MAX + 8], message[GATE_TEXT_MAX + sizeof outcome->why + 64];
  struct junit_case test = {.suite = SUITE, .name = name, .type = "gate", .message = message};
  snprintf(name, sizeof name, "gate %s", gate->text);
  if (outcome->result == GATE_UNDECIDED) {
    test.outcome = "error";
    snprintf(message, sizeof message, "%s could not be decided: %s", gate->text, outcome->why);
  } else if (outcome->result == GATE_BROKEN) {
    test.outcome = "failure";
    snprintf(message, sizeof message, "%s is broken: changed by %+.1f %%, p %.3f", gate->text, outcome->change * 100,
        outcome->p_corrected);
  }
  junit_put_case(file, &test);
}

enum status compare_write_junit(FILE *file, const void *content, struct err *err) {
  const struct compare_junit *it = content;
  const struct comparison *c = it->comparison;
  uint32_t gates = it->refusal ? 0 : c->settings->gates.count;
  struct junit_suite suite = {.name = SUITE, .started_at = it->at, .tests = 1 + gates, .errors = it->refusal ? 1 : 0};
  for (uint32_t i = 0; i < gates; i++) {
    suite.errors += c->gate[i].result == GATE_UNDECIDED;
    suite.failures += c->gate[i].result == GATE_BROKEN;
  }
  junit_open(file, &suite);
  struct junit_case comparable = {.suite = SUITE, .name = "comparable", .type = "refused", .message = it->refusal};
  if (it->refusal) comparable.outcome = "error";
  junit_put_case(file, &comparable);
  for (uint32_t i = 0; i < gates; i++)
    put_gate(file, &c->settings->gates.gate[i], &c->gate[i]);
  junit_close(file);
  return save_flush(file, "comparison", err);
}
