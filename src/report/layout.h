/* Text layout for reports: word wrap, tables of named counts and number formats, never wider than PAGE_COLUMNS.
 * Control characters in texts that came from elsewhere are shown as '?'. */
#ifndef MUSTER_REPORT_LAYOUT_H
#define MUSTER_REPORT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PAGE_COLUMNS 100
#define PAGE_LABEL 12 /* width of the label column */

/* "label        text", wrapped at words (an overlong word is cut) and continued under the text. */
void page_text(FILE *file, const char *label, const char *format, ...) __attribute__((format(printf, 3, 4)));

struct page_cell {
  const char *name;
  uint64_t value;
};
/* Names over values, right-aligned; as many rows of both as the width asks for. */
void page_counts(FILE *file, const char *label, const struct page_cell *cells, size_t count);

/* 1234567 as "1,234,567". */
void format_count(char out[32], uint64_t value);

/* Units for a row of latencies. */
struct page_unit {
  const char *name;
  double ns;
};
/* The unit in which typical_ns reads well and max_ns still fits a column. */
struct page_unit page_unit_for(int64_t typical_ns, int64_t max_ns);
/* Four significant digits up to 9,999, whole numbers above: at most 8 characters. */
void format_latency(char out[16], double ns, struct page_unit unit);
/* "512 B", "196.0 KiB", "7.8 GiB". */
void format_bytes(char out[32], uint64_t bytes);

#endif
