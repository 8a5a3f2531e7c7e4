// room: report
#include "report/formats.h"
#include "report/read.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const struct report_format *format, const struct report *report) {
  char *text = NULL;
  size_t len = 0;
  FILE *file = open_memstream(&text, &len);
  struct err err = {0};
  if (!file) abort();
  enum status status = format->write(file, report, &err);
  fclose(file);
  if (status != STATUS_OK && strcmp(format->name, "hlog") != 0) abort();
  return text;
}

/* What was read is sound: every form can be written of it (the page only holds the JSON), and that comes back as
 * itself. */
static void check(const struct report *report) {
  struct document document;
  struct report back;
  struct err err = {0};
  for (const struct report_format *format = report_formats; format->name; format++) {
    if (strcmp(format->name, "html") != 0) free(written(format, report));
  }
  char *text = written(report_format_find("json"), report);
  if (document_parse("again", text, strlen(text), &document, &err) != STATUS_OK) abort();
  if (report_from_document(&document, &back, &err) != STATUS_OK) abort();
  char *again = written(report_format_find("json"), &back);
  if (strcmp(text, again) != 0) abort();
  report_free(&back);
  document_free(&document);
  free(text);
  free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct document document;
  struct report report;
  struct err err = {0};
  enum status status = document_parse("input", (const char *)data, size, &document, &err);
  if (status == STATUS_OK) status = report_from_document(&document, &report, &err);
  if (status == STATUS_OK) {
    check(&report);
    report_free(&report);
  } else if (err.text[0] == '\0' || strchr(err.text, '\n')) {
    abort();
  }
  document_free(&document);
  return 0;
}
