#include "base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* One line, whatever a peer or a file put into it, and nothing that a terminal obeys. */
static void tame(char *text) {
  for (; *text; text++) {
    bool is_c1 = (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xa0;
    if (is_c1) text[1] = '?';
    if ((unsigned char)*text < ' ' || *text == 0x7f || is_c1) *text = '?';
  }
}

enum status err_set(struct err *err, enum status status, const char *format, ...) {
  if (!err) return status;
  va_list args;
  va_start(args, format);
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  tame(err->text);
  err->status = status;
  return status;
}

enum status err_prefix(struct err *err, const char *format, ...) {
  char old[sizeof err->text];
  memcpy(old, err->text, sizeof old);
  va_list args;
  va_start(args, format);
  int used = vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  if (used >= 0 && (size_t)used < sizeof err->text) {
    int room = (int)sizeof err->text - used;
    snprintf(err->text + used, (size_t)room, ": %.*s", room > 3 ? room - 3 : 0, old);
  }
  tame(err->text);
  return err->status;
}
