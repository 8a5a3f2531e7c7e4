/* What the small languages of a report's figures share (objectives in slo.h, gates in gate.h): a bare copy of the
 * text, and one line that says which expression is wrong, at which character, and what is possible there. */
#ifndef MUSTER_REPORT_EXPRESSION_H
#define MUSTER_REPORT_EXPRESSION_H

#include "base/err.h"
#include "report/document.h"

#include <stdbool.h>
#include <stddef.h>

struct expression {
  const char *noun; /* "objective" */
  const char *text; /* without blanks */
  struct err *err;
};

/* at points into the text. */
enum status expression_bad(const struct expression *expression, const char *at, const char *possible);

/* Copies without blanks; false when it does not fit into size bytes. */
bool expression_copy(char *out, size_t size, const char *text, size_t len);

bool expression_is_word(const char *word, size_t len, const char *name);
bool expression_find_clock(const char *word, size_t len, enum report_clock *out);
bool expression_find_operation(const char *word, size_t len, enum operation_kind *out);
/* A list for a person: puts the word behind what is there and a blank, as far as there is room. */
#define EXPRESSION_LIST_MAX 640
void expression_list_add(char list[EXPRESSION_LIST_MAX], const char *word);
/* All clocks, and all operations, as such lists. */
void expression_list_clocks(char out[EXPRESSION_LIST_MAX]);
void expression_list_operations(char out[EXPRESSION_LIST_MAX]);

#endif
