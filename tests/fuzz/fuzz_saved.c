// room: load
#include "load/find.h"
#include "report/compare.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum status write_search(FILE *file, const struct document *document, struct err *err) {
  static struct find find;
  enum status status = find_from_document(document, &find, err);
  return status == STATUS_OK ? find_write_text(file, &find, err) : status;
}

/* A saved search or comparison is printed, or refused in one line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct document document = {0};
  struct err err = {0};
  FILE *file = fopen("/dev/null", "w");
  if (!file) return 0;
  enum status status = document_parse("fuzz", (const char *)data, size, &document, &err);
  if (status == STATUS_OK) {
    status = document.kind == DOCUMENT_COMPARE ? compare_rewrite_text(file, &document, &err)
                                               : write_search(file, &document, &err);
  }
  if (status != STATUS_OK && (err.text[0] == '\0' || strchr(err.text, '\n'))) abort();
  document_free(&document);
  fclose(file);
  return 0;
}
