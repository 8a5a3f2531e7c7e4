#include "report/characters.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

size_t utf8_length(const char *text) {
  return utf8_sequence((const uint8_t *)text, strnlen(text, 4));
}

/* --- markup --- */

/* XML 1.0 has no characters below 0x20 but tab and line ends, and neither U+FFFE nor U+FFFF. */
static bool is_xml(const char *text, size_t len) {
  unsigned char first = (unsigned char)*text;
  if (len == 3 && (memcmp(text, "\xef\xbf\xbe", 3) == 0 || memcmp(text, "\xef\xbf\xbf", 3) == 0)) return false;
  return len > 1 || first >= 0x20 || first == '\t' || first == '\n';
}

static void put_character(FILE *file, const char *text, size_t len) {
  switch (*text) {
  case '<':
    fputs("&lt;", file);
    break;
  case '>':
    fputs("&gt;", file);
    break;
  case '&':
    fputs("&amp;", file);
    break;
  case '"':
    fputs("&quot;", file);
    break;
  default:
    fwrite(text, 1, len, file);
  }
}

void markup_write(FILE *file, const char *text) {
  while (*text) {
    size_t len = utf8_length(text);
    if (len == 0 || !is_xml(text, len)) {
      fputs(REPLACEMENT, file);
      len = len ? len : 1;
    } else {
      put_character(file, text, len);
    }
    text += len;
  }
}
