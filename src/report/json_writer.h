/* A streaming JSON writer: keys come out in the order of the calls, two-space indent, nothing is held in memory.
 * Write errors stay in the FILE (ferror) for the caller to see at the end. */
#ifndef MUSTER_REPORT_JSON_WRITER_H
#define MUSTER_REPORT_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer {
  FILE *file;
  unsigned depth;
  bool has_items; /* the open container has one already */
  bool flat;      /* the open container is an array on one line */
  bool compact;   /* everything on one line */
};

/* key is NULL inside an array and for the root. */
void json_open_object(struct json_writer *w, const char *key);
void json_close_object(struct json_writer *w);
void json_open_array(struct json_writer *w, const char *key);
void json_close_array(struct json_writer *w);
/* An array of scalars, on one line. */
void json_open_flat_array(struct json_writer *w, const char *key);

/* Bytes that are no UTF-8 come out as U+FFFD; NULL as null. */
void json_put_text(struct json_writer *w, const char *key, const char *text);
void json_put_uint(struct json_writer *w, const char *key, uint64_t value);
void json_put_int(struct json_writer *w, const char *key, int64_t value);
/* Enough digits to read back the same double; null when it is not finite. */
void json_put_double(struct json_writer *w, const char *key, double value);
void json_put_bool(struct json_writer *w, const char *key, bool value);
void json_put_null(struct json_writer *w, const char *key);

#endif
