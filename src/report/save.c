#include "report/save.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum status save_make_parents(const char *path, struct err *err) {
  char folder[PATH_MAX];
  if (strlen(path) >= sizeof folder) return err_set(err, STATUS_USAGE, "the path is too long: %.80s...", path);
  memcpy(folder, path, strlen(path) + 1);
  for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
      return err_set(err, STATUS_IO, "cannot make the folder %s: %s", folder, strerror(errno));
    }
    *slash = '/';
  }
  return STATUS_OK;
}

const char *save_slash(const char *folder) {
  size_t len = strlen(folder);
  return len > 0 && folder[len - 1] == '/' ? "" : "/";
}

enum status save_open(const char *path, FILE **out, struct err *err) {
  if (path[0] == '\0') return err_set(err, STATUS_USAGE, "an empty path cannot name a report file");
  enum status status = save_make_parents(path, err);
  if (status != STATUS_OK) return status;
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0 && errno == EEXIST) {
    return err_set(err, STATUS_IO, "%s exists already and is never overwritten: choose another name", path);
  }
  if (fd < 0) return err_set(err, STATUS_IO, "cannot create %s: %s", path, strerror(errno));
  *out = fdopen(fd, "w");
  if (*out) return STATUS_OK;
  close(fd);
  unlink(path);
  return err_set(err, STATUS_MEMORY, "cannot open %s: out of memory", path);
}

enum status save_close(const char *path, FILE *file, enum status status, struct err *err) {
  if (status == STATUS_OK && (fflush(file) != 0 || ferror(file))) {
    status = err_set(err, STATUS_IO, "cannot write: %s", strerror(errno));
  }
  if (fclose(file) != 0 && status == STATUS_OK) status = err_set(err, STATUS_IO, "cannot write: %s", strerror(errno));
  if (status == STATUS_OK) return status;
  unlink(path);
  return err_prefix(err, "%s", path);
}

enum status save_new_file(const char *path, enum status (*write)(FILE *file, const void *content, struct err *err),
    const void *content, struct err *err) {
  FILE *file = NULL;
  enum status status = save_open(path, &file, err);
  if (status != STATUS_OK) return status;
  return save_close(path, file, write(file, content, err), err);
}

enum status save_flush(FILE *file, const char *what, struct err *err) {
  if (!ferror(file)) errno = 0; /* else it is likely that of the write that failed */
  if (fflush(file) == 0 && !ferror(file)) return STATUS_OK;
  return err_set(err, STATUS_IO, "cannot write the %s: %s", what, errno ? strerror(errno) : "the output is broken");
}
