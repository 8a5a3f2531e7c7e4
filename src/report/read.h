/* Reading the JSON documents that muster writes, back into a struct report where it is a run's report. */
#ifndef MUSTER_REPORT_READ_H
#define MUSTER_REPORT_READ_H

#include "report/document.h"

#include <stddef.h>

struct json_t;

enum document_kind { DOCUMENT_RUN, DOCUMENT_FIND, DOCUMENT_CALIBRATE, DOCUMENT_TRIALS, DOCUMENT_COMPARE };
const char *document_kind_name(enum document_kind kind); /* "run report", "search" ... */

/* Longer files are refused. */
#define DOCUMENT_BYTES_MAX (32u << 20)

struct document {
  const char *name; /* of the file, for errors; borrowed */
  char *text;       /* as it stands in the file, NUL-terminated; owned */
  size_t len;
  struct json_t *root; /* owned; an object */
  enum document_kind kind;
};

/* Reads a file, "-" for standard input, and tells by its top-level keys which document it is. STATUS_USAGE for what is
 * no document of muster. Free *out afterwards, whatever came of it. */
enum status document_read(const char *path, struct document *out, struct err *err);
/* The same of a text in memory, which is copied. */
enum status document_parse(const char *name, const char *text, size_t len, struct document *out, struct err *err);
void document_free(struct document *document);

/* Fills *out (zeroed by this call; report_free it on OK) from a run report of schema version 1 or 2: written again, a
 * report of version 2 is the same byte for byte. One of version 1 has no histograms: its clocks have summaries. What
 * is derived from other figures (comparability, shares) is not read but made anew. */
enum status report_from_document(const struct document *document, struct report *out, struct err *err);

/* Both in one: the report in a file. */
enum status report_read_json(const char *path, struct report *out, struct err *err);

#endif
