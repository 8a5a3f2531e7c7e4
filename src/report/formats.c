#include "report/formats.h"

#include "report/html.h"
#include "report/save.h"

#include <string.h>

const struct report_format report_formats[] = {
    {"text", report_write_text},
    {"json", report_write_json},
    {"csv", report_write_csv},
    {"jsonl", report_write_jsonl},
    {"hlog", report_write_hlog},
    {"junit", report_write_junit},
    {"markdown", report_write_markdown},
    {"html", report_write_html},
    {NULL, NULL},
};

const struct report_format *report_format_find(const char *name) {
  for (const struct report_format *format = report_formats; format->name; format++) {
    if (strcmp(format->name, name) == 0) return format;
  }
  return NULL;
}

struct saved {
  const struct report_format *format;
  const struct report *report;
};

static enum status write_saved(FILE *file, const void *content, struct err *err) {
  const struct saved *saved = content;
  return saved->format->write(file, saved->report, err);
}

enum status report_save(const char *path, const char *format, const struct report *report, struct err *err) {
  const struct saved saved = {report_format_find(format), report};
  return save_new_file(path, write_saved, &saved, err);
}
