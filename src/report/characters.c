#include "report/characters.h"

size_t utf8_length(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  if (at[0] < 0x80) return 1;
  size_t len = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
  if (at[0] < 0xc2 || at[0] > 0xf4) return 0;
  for (size_t i = 1; i < len; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  if (at[0] == 0xe0 && at[1] < 0xa0) return 0;
  if (at[0] == 0xed && at[1] > 0x9f) return 0;
  if (at[0] == 0xf0 && at[1] < 0x90) return 0;
  if (at[0] == 0xf4 && at[1] > 0x8f) return 0;
  return len;
}
