#include "report/gate.h"

#include "report/expression.h"
#include "report/metrics.h"

#include <stdlib.h>
#include <string.h>

static enum status unknown_metric(const struct expression *expression) {
  return expression_bad(expression, expression->text,
      "name a clock's percentile as delivery.p99, or a rate as deliveries_per_second: `muster help compare` lists "
      "them");
}

static enum status parse_one(struct gate *gate, struct err *err) {
  struct expression expression = {"gate", gate->text, err};
  const char *sign = gate->text + strcspn(gate->text, "+-");
  gate->metric = metric_find(gate->text, (size_t)(sign - gate->text));
  if (gate->metric == METRIC_NONE && *sign) return unknown_metric(&expression);
  if (!*sign) return expression_bad(&expression, sign, "a change must follow, with its sign, as +10% or -10%");
  size_t digits = strspn(sign + 1, "0123456789.");
  char *end;
  double percent = strtod(sign + 1, &end);
  if (digits == 0 || (size_t)(end - sign - 1) != digits) {
    return expression_bad(&expression, sign + 1, "give a number, as 10 or 2.5");
  }
  if (!(percent > 0) || percent > 100000) {
    return expression_bad(&expression, sign + 1, "give a change above 0 % and up to 100000 %");
  }
  if (*sign == '-' && percent >= 100) {
    return expression_bad(&expression, sign + 1, "nothing falls by 100 % or more: give less");
  }
  if (strcmp(end, "%") != 0) return expression_bad(&expression, end, "a change ends in %");
  gate->change = (*sign == '-' ? -percent : percent) / 100;
  return STATUS_OK;
}

enum status gate_parse(const char *text, struct gate_list *list, struct err *err) {
  for (const char *at = text;; at++) {
    size_t len = strcspn(at, ",");
    struct gate gate = {0};
    if (list->count == GATES_MAX) return err_set(err, STATUS_USAGE, "more than %d gates: leave some out", GATES_MAX);
    if (!expression_copy(gate.text, sizeof gate.text, at, len)) {
      return err_set(err, STATUS_USAGE, "gate '%.40s...' is longer than %d characters: separate several by commas", at,
          GATE_TEXT_MAX - 1);
    }
    if (gate.text[0] == '\0') return err_set(err, STATUS_USAGE, "a gate is empty: write one as 'delivery.p99 +10%%'");
    enum status status = parse_one(&gate, err);
    if (status != STATUS_OK) return status;
    list->gate[list->count++] = gate;
    at += len;
    if (*at == '\0') return STATUS_OK;
  }
}
