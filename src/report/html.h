/* The HTML form of any JSON document that muster writes: one page that needs nothing else (web/ holds its sources, the
 * build joins them). The page's script shows the document by its kind. */
#ifndef MUSTER_REPORT_HTML_H
#define MUSTER_REPORT_HTML_H

#include "base/err.h"
#include "report/document.h"

#include <stdio.h>

/* json_text is one JSON document; neither it nor the title can break out of its place, whatever strings they hold. */
enum status html_write(FILE *file, const char *title, const char *json_text, struct err *err);

/* The page of the JSON that write makes of content, as save_new_file's writers make it. */
enum status html_write_of(FILE *file, const char *title,
    enum status (*write)(FILE *file, const void *content, struct err *err), const void *content, struct err *err);

enum status report_write_html(FILE *file, const struct report *report, struct err *err);

#endif
