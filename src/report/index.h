/* The index of a results folder: index.jsonl, one JSON object a line for every document that muster put there. Lines
 * are only appended, whole, also by several musters at once. */
#ifndef MUSTER_REPORT_INDEX_H
#define MUSTER_REPORT_INDEX_H

#include "base/err.h"

#include <stdint.h>

#define INDEX_NAME "index.jsonl"

struct index_entry {
  const char *document; /* "run", "trials" */
  const char *id, *name, *started_at;
  const char *verdict; /* "valid", "invalid" */
  int exit_code;
  const char *trials_id; /* of the trials that a run belongs to, and its number among them; NULL and 0: none */
  uint32_t trial;
};

/* Adds a line for a file, which is there already, to the index of its folder. */
enum status index_append(const char *path, const struct index_entry *entry, struct err *err);

#endif
