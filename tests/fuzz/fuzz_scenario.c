// room: cli
#include "cli/muster_scenario.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever a file holds, what is said about it is one line that names it. */
static void check(enum status status, const struct err *err) {
  if (status == STATUS_OK || status == STATUS_MEMORY) return;
  if (status != STATUS_USAGE || strncmp(err->text, "fuzz:", 5) != 0) abort();
  for (const char *at = err->text; *at; at++) {
    if ((unsigned char)*at < 0x20 || *at == 0x7f) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct run_arguments arguments;
  memset(&arguments, 0, sizeof arguments);
  arguments.scale = 0.5;
  struct err err = {0};
  enum status status = scenario_parse(view_of(data, size), "fuzz", &arguments.scenario, &err);
  check(status, &err);
  if (status != STATUS_OK) return 0;
  status = scenario_apply(&arguments.scenario, &arguments, &err);
  check(status, &err);
  if (status == STATUS_OK) scenario_scale(&arguments.scenario, &arguments, &err);
  run_arguments_free(&arguments);
  return 0;
}
