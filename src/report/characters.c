#include "report/characters.h"

#include "base/utf8.h"

size_t utf8_length(const char *text) {
  return utf8_sequence((const uint8_t *)text, strnlen(text, 4));
}
