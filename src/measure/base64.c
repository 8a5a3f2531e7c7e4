#include "measure/base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_text_len(size_t len) {
  return (len + 2) / 3 * 4;
}

void base64_write(char *text, const uint8_t *data, size_t len) {
  for (size_t i = 0; i < len; i += 3) {
    uint32_t group = (uint32_t)data[i] << 16;
    if (i + 1 < len) group |= (uint32_t)data[i + 1] << 8;
    if (i + 2 < len) group |= data[i + 2];
    *text++ = digits[group >> 18];
    *text++ = digits[group >> 12 & 63];
    *text++ = i + 1 < len ? digits[group >> 6 & 63] : '=';
    *text++ = i + 2 < len ? digits[group & 63] : '=';
  }
  *text = '\0';
}

static int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

bool base64_read(const char *text, size_t len, uint8_t *data, size_t *data_len) {
  if (len % 4 != 0) return false;
  size_t padding = 0;
  while (padding < 2 && padding < len && text[len - 1 - padding] == '=')
    padding++;
  size_t out = 0;
  for (size_t i = 0; i < len; i += 4) {
    uint32_t group = 0;
    for (size_t k = i; k < i + 4; k++) {
      int digit = k >= len - padding ? 0 : digit_of(text[k]);
      if (digit < 0) return false;
      group = group << 6 | (uint32_t)digit;
    }
    data[out++] = (uint8_t)(group >> 16);
    data[out++] = (uint8_t)(group >> 8);
    data[out++] = (uint8_t)group;
  }
  *data_len = out - padding;
  return true;
}
