/* New files, whole or not at all. */
#ifndef MUSTER_REPORT_SAVE_H
#define MUSTER_REPORT_SAVE_H

#include "base/err.h"

#include <stdio.h>

/* The folders that a path names before its last slash. */
enum status save_make_parents(const char *path, struct err *err);

/* What stands between a folder, given with or without a slash at its end, and a name in it: "/" or "". */
const char *save_slash(const char *folder);

/* Creates path (parent folders are made; an existing file is never overwritten) and lets write fill it; a file that
 * could not be written whole is removed again. */
enum status save_new_file(const char *path, enum status (*write)(FILE *file, const void *content, struct err *err),
    const void *content, struct err *err);

/* The same for a file that grows while a run goes on: save_close with what came of it removes a failed one. */
enum status save_open(const char *path, FILE **out, struct err *err);
enum status save_close(const char *path, FILE *file, enum status status, struct err *err);

/* The end of every writer: flushes, and names what could not be written ("report"), since the file may have no name. */
enum status save_flush(FILE *file, const char *what, struct err *err);

#endif
