#include "measure/hlog.h"

#include "base/buf.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINE_MAX_BYTES ((1u << 20) + 256)

static enum status write_failed(struct err *err) {
  return err_set(err, STATUS_IO, "cannot write the histogram log: %s", strerror(errno));
}

static void write_comment(FILE *file, const char *comment) {
  fputc('#', file);
  for (; *comment; comment++)
    fputc((unsigned char)*comment < ' ' ? ' ' : *comment, file);
  fputc('\n', file);
}

enum status hlog_write_head(FILE *file, double start_unix_s, const char *comment, struct err *err) {
  char date[64] = "";
  time_t seconds = (time_t)start_unix_s;
  struct tm utc;
  if (gmtime_r(&seconds, &utc)) strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &utc);
  if (comment && *comment) write_comment(file, comment);
  fputs("#[Histogram log format version 1.3]\n", file);
  fprintf(file, "#[StartTime: %.3f (seconds since epoch), %s]\n", start_unix_s, date);
  fprintf(file, "#[BaseTime: %.3f (seconds since epoch)]\n", start_unix_s);
  fputs("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n", file);
  return ferror(file) ? write_failed(err) : STATUS_OK;
}

static bool is_tag(const char *tag) {
  if (strlen(tag) >= sizeof((struct hlog_interval *)0)->tag) return false;
  for (; *tag; tag++) {
    if ((unsigned char)*tag <= ' ' || *tag == ',') return false;
  }
  return true;
}

enum status hlog_write_interval(
    FILE *file, const char *tag, double start_s, double length_s, const struct histogram *h, struct err *err) {
  if (tag && !is_tag(tag)) {
    return err_set(
        err, STATUS_USAGE, "a histogram log's tag has at most 31 characters, no comma and no space: %s", tag);
  }
  char *text;
  enum status status = histogram_encode(h, &text, err);
  if (status != STATUS_OK) return status;
  if (tag && *tag) fprintf(file, "Tag=%s,", tag);
  double max_ms = h->count ? (double)h->max_ns / (double)NS_PER_MS : 0;
  fprintf(file, "%.3f,%.3f,%.3f,%s\n", start_s, length_s, max_ms, text);
  free(text);
  return ferror(file) ? write_failed(err) : STATUS_OK;
}

static const char *line_failed(struct err *err, enum status status, const char *what) {
  err_set(err, status, "%s", what);
  return NULL;
}

/* One line without its end, NUL-terminated, in buf. NULL at the end of the log and, with err filled, on errors. */
static const char *read_line(FILE *file, struct buf *buf, struct err *err) {
  buf->len = 0;
  int c;
  while ((c = getc(file)) != EOF && c != '\n') {
    uint8_t byte = (uint8_t)c;
    if (c == 0) return line_failed(err, STATUS_PROTOCOL, "a NUL in a text");
    if (buf->len >= LINE_MAX_BYTES) return line_failed(err, STATUS_PROTOCOL, "longer than 1 MiB");
    if (!buf_append(buf, &byte, 1)) return line_failed(err, STATUS_MEMORY, "no memory for the line");
  }
  if (ferror(file)) return line_failed(err, STATUS_IO, strerror(errno));
  if (c == EOF && buf->len == 0) return NULL;
  if (buf->len && buf->data[buf->len - 1] == '\r') buf->len--;
  if (!buf_append(buf, "", 1)) return line_failed(err, STATUS_MEMORY, "no memory for the line");
  return (const char *)buf->data;
}

static bool holds_interval(const char *text) {
  return *text && *text != '#' && *text != '"' && strncmp(text, "Timestamp", 9) != 0;
}

/* A finite number and the comma behind it. */
static bool read_number(const char **text, double *number) {
  char *after;
  *number = strtod(*text, &after);
  if (after == *text || *after != ',' || !isfinite(*number)) return false;
  *text = after + 1;
  return true;
}

static enum status parse_interval(const char *text, struct hlog_interval *out, struct err *err) {
  if (strncmp(text, "Tag=", 4) == 0) {
    text += 4;
    size_t len = strcspn(text, ",");
    if (text[len] != ',' || len >= sizeof out->tag) {
      return err_set(err, STATUS_PROTOCOL, "a tag has at most 31 characters and a comma behind it");
    }
    memcpy(out->tag, text, len);
    text += len + 1;
  }
  double max_ms;
  if (!read_number(&text, &out->start_s) || !read_number(&text, &out->length_s) || !read_number(&text, &max_ms)) {
    return err_set(err, STATUS_PROTOCOL, "expected start, length and maximum as numbers, then a histogram");
  }
  return histogram_decode(text, strlen(text), &out->histogram, err);
}

/* Leaves err->status STATUS_OK at the end of the log. */
static enum status next_interval(
    FILE *file, struct buf *buf, unsigned *line, struct hlog_interval *out, bool *end, struct err *err) {
  for (;;) {
    ++*line;
    const char *text = read_line(file, buf, err);
    *end = !text && err->status == STATUS_OK;
    if (!text) return err->status;
    if (holds_interval(text)) return parse_interval(text, out, err);
  }
}

enum status hlog_read_interval(FILE *file, unsigned *line, struct hlog_interval *out, bool *end, struct err *err) {
  struct buf buf = {0};
  struct err inner = {0};
  memset(out, 0, sizeof *out);
  *end = false;
  enum status status = next_interval(file, &buf, line, out, end, &inner);
  buf_free(&buf);
  if (status != STATUS_OK) err_set(err, status, "histogram log, line %u: %s", *line, inner.text);
  return status;
}
