/* A folder of a test's own with files in it, such as a /proc that says what the test wants. The including test brings
 * cmocka along. */
#ifndef MUSTER_TEST_SCRATCH_FOLDER_H
#define MUSTER_TEST_SCRATCH_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char scratch_folder[64];

/* 0, or -1 when it cannot be made: as cmocka's setup. */
static inline int scratch_make(void) {
  snprintf(scratch_folder, sizeof scratch_folder, "/tmp/muster-test-XXXXXX");
  return mkdtemp(scratch_folder) ? 0 : -1;
}

/* For cmocka's teardown. */
static inline int scratch_remove(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", scratch_folder);
  return system(command); // NOLINT(cert-env33-c): a folder that this test made
}

/* Writes a file, and makes the folders above it. name: from the folder on, as "/proc/7/stat". */
static inline void scratch_put(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s%s", scratch_folder, name);
  for (char *slash = strchr(path + strlen(scratch_folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    mkdir(path, 0755);
    *slash = '/';
  }
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

#endif
