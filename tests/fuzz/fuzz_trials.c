// room: report
#include "report/compare.h"
#include "report/read.h"
#include "report/trials.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_all(const struct trial_list *all) {
  static struct comparison comparison;
  static const struct compare_settings settings;
  struct err err = {0};
  struct trial_list base = {all->trial, all->count / 2};
  struct trial_list candidate = {all->trial + base.count, all->count - base.count};
  struct trials trials = {.name = "fuzz", .asked = 2, .list = *all};
  FILE *file = fopen("/dev/null", "w");
  if (!file) return;
  trials_write_row(file, "fuzz", 1, &all->trial[0]);
  trials_write_summary(file, &trials, &err);
  trials_write_json(file, &trials, &err);
  if (compare_trials(&base, &candidate, &settings, &comparison, &err) == STATUS_OK) {
    compare_write_text(file, &comparison, &err);
    compare_write_json(file, &comparison, &err);
  }
  fclose(file);
}

/* A document that is taken can be summed up, compared and written. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct document document = {0};
  struct trial_list list = {0};
  struct err err = {0};
  enum status status = document_parse("fuzz", (const char *)data, size, &document, &err);
  if (status == STATUS_OK) status = trial_list_add_document(&list, &document, &err);
  if (status == STATUS_OK) write_all(&list);
  if (status != STATUS_OK && (err.text[0] == '\0' || strchr(err.text, '\n'))) abort();
  trial_list_free(&list);
  document_free(&document);
  return 0;
}
