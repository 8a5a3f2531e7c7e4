/* New files, whole or not at all. */
#ifndef MUSTER_REPORT_SAVE_H
#define MUSTER_REPORT_SAVE_H

#include "base/err.h"

#include <stdio.h>

/* Creates path (parent folders are made; an existing file is never overwritten) and lets write fill it; a file that
 * could not be written whole is removed again. */
enum status save_new_file(const char *path, enum status (*write)(FILE *file, const void *content, struct err *err),
    const void *content, struct err *err);

#endif
