/* Live progress on standard error. A terminal gets one tidy view that refreshes itself and is gone at the end; a pipe
 * gets a line a second while there is traffic, and one in a while before. */
#ifndef MUSTER_CLI_MUSTER_PROGRESS_H
#define MUSTER_CLI_MUSTER_PROGRESS_H

#include "cli/muster_live.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct progress {
  FILE *file;
  bool is_terminal; /* and can move its cursor */
  uint32_t rows;    /* of the view that stands on the terminal now */
  double line_s;    /* when a pipe had its last line */
};

/* For standard error as it is. */
struct progress progress_open(void);

/* Shows what live says at at_s (its clock). */
void progress_show(struct progress *progress, const struct live *live, double at_s);

/* Removes the view from a terminal. */
void progress_clear(struct progress *progress);

/* One line, without an end; for pipes. */
void progress_line(char *out, size_t size, const struct live *live);

/* The view, PROGRESS_ROWS_MAX rows at most, each at most columns wide; returns how many there are. */
#define PROGRESS_ROWS_MAX 6
#define PROGRESS_COLUMNS_MAX 200
uint32_t progress_rows(char out[PROGRESS_ROWS_MAX][PROGRESS_COLUMNS_MAX], size_t columns, const struct live *live);

#endif
