/* HdrHistogram interval logs, version 1.3 with V2 compressed payloads: what HdrHistogram's own plotters read.
 * A histogram is `varint counters -> zlib -> base64`, its cookie 0x1c849314 over 0x1c849313. */
#ifndef MUSTER_MEASURE_HLOG_H
#define MUSTER_MEASURE_HLOG_H

#include "base/err.h"
#include "measure/histogram.h"

#include <stddef.h>
#include <stdio.h>

/* Base64 of the V2 compressed form, NUL-terminated, malloc'd into *text (the caller frees). */
enum status histogram_encode(const struct histogram *h, char **text, struct err *err);

/* Reads a V2 base64 text made with 3 significant digits by any implementation; counters are recorded at
 * their bucket's middle, so that sum and mean are close, not exact; minimum and maximum are the ends of the outer
 * buckets (of another lowestDiscernibleValue: their middles). Values above HISTOGRAM_MAX_NS overflow. Malformed or
 * hostile text gives an error. */
enum status histogram_decode(const char *text, size_t len, struct histogram *out, struct err *err);

/* The head of a log file: version, start time (Unix seconds), legend. */
enum status hlog_write_head(FILE *file, double start_unix_s, const char *comment, struct err *err);

/* One line: Tag=<tag>,start,length,max(ms),payload. start_s counts from the start time of the head. tag may be NULL
 * for none; it has at most 31 characters, no comma and no space. */
enum status hlog_write_interval(
    FILE *file, const char *tag, double start_s, double length_s, const struct histogram *h, struct err *err);

struct hlog_interval {
  char tag[32];
  double start_s, length_s;
  struct histogram histogram;
};
/* Reads the next interval line of a log, at most 1 MiB long; *end is set at its end. *line starts at 0 and counts the
 * lines read; the error names it. */
enum status hlog_read_interval(FILE *file, unsigned *line, struct hlog_interval *out, bool *end, struct err *err);

#endif
