#include "report/expression.h"

#include <ctype.h>
#include <string.h>

enum status expression_bad(const struct expression *expression, const char *at, const char *possible) {
  return err_set(expression->err, STATUS_USAGE, "%s '%s', character %d: %s", expression->noun, expression->text,
      (int)(at - expression->text) + 1, possible);
}

bool expression_copy(char *out, size_t size, const char *text, size_t len) {
  size_t used = 0;
  for (size_t i = 0; i < len; i++) {
    if (isspace((unsigned char)text[i])) continue;
    if (used + 1 >= size) return false;
    out[used++] = isprint((unsigned char)text[i]) ? text[i] : '?';
  }
  out[used] = '\0';
  return true;
}

bool expression_is_word(const char *word, size_t len, const char *name) {
  return strlen(name) == len && memcmp(word, name, len) == 0;
}

bool expression_find_clock(const char *word, size_t len, enum report_clock *out) {
  for (int i = 0; i < REPORT_CLOCKS; i++) {
    if (!expression_is_word(word, len, report_clock_name((enum report_clock)i))) continue;
    *out = (enum report_clock)i;
    return true;
  }
  return false;
}

bool expression_find_operation(const char *word, size_t len, enum operation_kind *out) {
  for (int i = 0; i < OPERATIONS_KNOWN; i++) {
    if (!expression_is_word(word, len, operation_names[i].name)) continue;
    *out = (enum operation_kind)i;
    return true;
  }
  return false;
}

void expression_list_add(char list[EXPRESSION_LIST_MAX], const char *word) {
  size_t used = strlen(list);
  snprintf(list + used, EXPRESSION_LIST_MAX - used, "%s%s", used ? " " : "", word);
}

void expression_list_clocks(char out[EXPRESSION_LIST_MAX]) {
  out[0] = '\0';
  for (int i = 0; i < REPORT_CLOCKS; i++)
    expression_list_add(out, report_clock_name((enum report_clock)i));
}

void expression_list_operations(char out[EXPRESSION_LIST_MAX]) {
  out[0] = '\0';
  for (int i = 0; i < OPERATIONS_KNOWN; i++)
    expression_list_add(out, operation_names[i].name);
}
