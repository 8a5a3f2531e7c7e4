#include "report/html.h"

#include "report/characters.h"
#include "report/save.h"

#include <stdlib.h>
#include <string.h>

/* The page as the build joined it (cmake/page.cmake). */
extern const char html_page[], html_page_end[];

static const char title_marker[] = "@MUSTER_TITLE@";
static const char document_marker[] = "@MUSTER_DOCUMENT@";

/* In JSON a '<' stands inside strings only, where it may be written as an escape: then no tag, no comment and no end
 * of the script element can begin. */
static void write_document(FILE *file, const char *text) {
  for (;;) {
    size_t plain = strcspn(text, "<");
    fwrite(text, 1, plain, file);
    if (text[plain] == '\0') return;
    fputs("\\u003c", file);
    text += plain + 1;
  }
}

/* Writes the page up to the marker and returns what follows it; the build made sure that it is there. */
static const char *write_until(FILE *file, const char *from, const char *marker) {
  const char *at = memmem(from, (size_t)(html_page_end - from), marker, strlen(marker));
  fwrite(from, 1, (size_t)(at - from), file);
  return at + strlen(marker);
}

enum status html_write(FILE *file, const char *title, const char *json_text, struct err *err) {
  const char *rest = write_until(file, html_page, title_marker);
  markup_write(file, title);
  rest = write_until(file, rest, document_marker);
  write_document(file, json_text);
  fwrite(rest, 1, (size_t)(html_page_end - rest), file);
  return save_flush(file, "HTML report", err);
}

enum status html_write_of(FILE *file, const char *title,
    enum status (*write)(FILE *file, const void *content, struct err *err), const void *content, struct err *err) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  if (!memory) return err_set(err, STATUS_MEMORY, "out of memory for the HTML report");
  enum status status = write(memory, content, err);
  if (fclose(memory) != 0 && status == STATUS_OK) {
    status = err_set(err, STATUS_MEMORY, "out of memory for the HTML report");
  }
  if (status == STATUS_OK) status = html_write(file, title, text, err);
  free(text);
  return status;
}

static enum status write_json(FILE *file, const void *content, struct err *err) {
  return report_write_json(file, content, err);
}

enum status report_write_html(FILE *file, const struct report *report, struct err *err) {
  char title[160];
  snprintf(title, sizeof title, "%.80s, %s, %s - muster", report->workload.name,
      report->verdict == VERDICT_VALID ? "valid" : "invalid", report->started_at);
  return html_write_of(file, title, write_json, report, err);
}
