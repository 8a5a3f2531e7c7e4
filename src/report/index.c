#include "report/index.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static char *line_of(const char *file, const struct index_entry *entry) {
  json_t *line = json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:s, s:i, s:s?, s:o}", "file", file, "document",
      entry->document, "id", entry->id, "name", entry->name, "started_at", entry->started_at, "verdict", entry->verdict,
      "exit_code", entry->exit_code, "trials_id", entry->trials_id, "trial",
      entry->trial ? json_integer(entry->trial) : json_null());
  char *text = line ? json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
  json_decref(line);
  return text;
}

/* Someone who was killed may have left half a line: it stays one, and does not swallow the next. */
static bool ends_in_a_line(int fd) {
  char last;
  off_t end = lseek(fd, 0, SEEK_END);
  return end <= 0 || pread(fd, &last, 1, end - 1) != 1 || last == '\n';
}

static bool write_line(int fd, const char *text) {
  size_t len = strlen(text);
  char *line = malloc(len + 3);
  if (!line) return false;
  int written = snprintf(line, len + 3, "%s%s\n", ends_in_a_line(fd) ? "" : "\n", text);
  bool whole = write(fd, line, (size_t)written) == written;
  free(line);
  return whole;
}

enum status index_append(const char *path, const struct index_entry *entry, struct err *err) {
  char index[PATH_MAX];
  const char *slash = strrchr(path, '/');
  int folder = slash ? (int)(slash - path) + 1 : 0;
  int length = snprintf(index, sizeof index, "%.*s" INDEX_NAME, folder, path);
  if (length < 0 || (size_t)length >= sizeof index) {
    return err_set(err, STATUS_USAGE, "the path is too long: %.80s...", path);
  }
  int fd = open(index, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return err_set(err, STATUS_IO, "cannot write the index %.300s: %s", index, strerror(errno));
  char *text = line_of(slash ? slash + 1 : path, entry);
  errno = ENOMEM;
  bool whole = text && flock(fd, LOCK_EX) == 0 && write_line(fd, text);
  int reason = errno;
  free(text);
  close(fd);
  if (whole) return STATUS_OK;
  return err_set(err, STATUS_IO, "cannot write the index %.300s: %s", index, strerror(reason));
}
