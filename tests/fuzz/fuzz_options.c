// room: cli
/* The command line: numbers, times and rates alone, then the input as arguments behind a workload, one a line. */
#include "cli/muster_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARGUMENTS_MAX = 32, COUNT_MAX = 1000000 };

static void read_values(const char *text) {
  double rate;
  uint64_t value, again;
  char written[32];
  if (parse_rate(text, &rate) && !(isfinite(rate) && rate >= 0)) abort();
  parse_duration_ns(text, &value);
  if (!parse_count(text, COUNT_MAX, &value)) return;
  snprintf(written, sizeof written, "%llu", (unsigned long long)value);
  if (value > COUNT_MAX || !parse_count(written, COUNT_MAX, &again) || again != value) abort();
}

static void read_arguments(char *text) {
  char workload[] = "private";
  char *arguments[ARGUMENTS_MAX + 1] = {workload};
  int count = 1;
  for (char *rest = text, *line; count < ARGUMENTS_MAX && (line = strsep(&rest, "\n"));)
    arguments[count++] = line;
  static struct run_arguments out;
  struct err err = {0};
  memset(&out, 0, sizeof out);
  if (run_arguments_parse(count, arguments, &out, &err) != STATUS_OK && err.text[0] == '\0') abort();
  run_arguments_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  if (!text) abort();
  memcpy(text, data, size);
  text[size] = '\0';
  read_values(text);
  read_arguments(text);
  free(text);
  return 0;
}
