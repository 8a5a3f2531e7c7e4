#include "report/layout.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define CELL_GAP 2
#define CELL_LABEL 11 /* as wide as "connections": seven-digit deliveries then fit one row */

static bool is_continuation(char c) {
  return ((unsigned char)c & 0xc0) == 0x80;
}

/* Columns that a text takes: its code points. */
static size_t columns(const char *text) {
  size_t width = 0;
  for (; *text; text++)
    width += !is_continuation(*text);
  return width;
}

static void pad(FILE *file, size_t width) {
  fprintf(file, "%*s", (int)width, "");
}

/* Nothing that a terminal obeys, C1 (U+0080 to U+009F) included. */
static void tame(char *text) {
  for (; *text; text++) {
    bool is_c1 = (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xa0;
    if (is_c1) text[1] = '?';
    if ((unsigned char)*text < 0x20 || *text == 0x7f || is_c1) *text = '?';
  }
}

/* Bytes of text that fit into width columns, cut at the last blank where there is one. */
static size_t fitting(const char *text, size_t width) {
  size_t bytes = 0, blank = 0, used = 0;
  while (text[bytes]) {
    if (!is_continuation(text[bytes]) && used++ == width) break;
    if (text[bytes] == ' ') blank = bytes;
    bytes++;
  }
  if (!text[bytes]) return bytes;
  if (text[bytes] == ' ') return bytes;
  return blank ? blank : bytes;
}

void page_text(FILE *file, const char *label, const char *format, ...) {
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tame(text);
  fprintf(file, "%-*s", PAGE_LABEL, label);
  const char *at = text;
  for (;;) {
    size_t bytes = fitting(at, PAGE_COLUMNS - PAGE_LABEL);
    fprintf(file, "%.*s\n", (int)bytes, at);
    at += bytes;
    while (*at == ' ')
      at++;
    if (!*at) return;
    pad(file, PAGE_LABEL);
  }
}

static size_t cell_width(const struct page_cell *cell) {
  char text[32];
  format_count(text, cell->value);
  size_t name = columns(cell->name), value = strlen(text);
  return CELL_GAP + (name > value ? name : value);
}

/* How many of the cells stand beside each other. */
static size_t cells_in_row(const struct page_cell *cells, size_t count) {
  size_t width = CELL_LABEL, fit = 0;
  while (fit < count && width + cell_width(&cells[fit]) <= PAGE_COLUMNS)
    width += cell_width(&cells[fit++]);
  return fit;
}

void page_counts(FILE *file, const char *label, const struct page_cell *cells, size_t count) {
  fprintf(file, "%-*s", CELL_LABEL, label);
  while (count) {
    size_t row = cells_in_row(cells, count);
    for (size_t i = 0; i < row; i++)
      fprintf(file, "%*s", (int)cell_width(&cells[i]), cells[i].name);
    fputc('\n', file);
    pad(file, CELL_LABEL);
    for (size_t i = 0; i < row; i++) {
      char text[32];
      format_count(text, cells[i].value);
      fprintf(file, "%*s", (int)cell_width(&cells[i]), text);
    }
    fputc('\n', file);
    cells += row;
    count -= row;
    if (count) pad(file, CELL_LABEL);
  }
}

void format_count(char out[32], uint64_t value) {
  char digits[24];
  size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, value), at = 0;
  for (size_t i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0) out[at++] = ',';
    out[at++] = digits[i];
  }
  out[at] = '\0';
}

struct page_unit page_unit_for(int64_t typical_ns, int64_t max_ns) {
  static const struct page_unit units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  size_t i = 0;
  while (i < 2 && ((double)typical_ns >= 1000 * units[i].ns || (double)max_ns >= 1e7 * units[i].ns))
    i++;
  return units[i];
}

void format_latency(char out[16], double ns, struct page_unit unit) {
  double value = ns / unit.ns;
  int decimals = value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 9999.95 ? 1 : 0;
  snprintf(out, 16, "%.*f", decimals, value);
}

void format_bytes(char out[32], uint64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = (double)bytes;
  size_t i = 0;
  for (; i < 4 && value >= 1024; i++)
    value /= 1024;
  snprintf(out, 32, "%.*f %s", i ? 1 : 0, value, units[i]);
}
