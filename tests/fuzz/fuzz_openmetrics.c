// room: wire
/* Metrics pages: the first line is a selector, the others are read, and a sample's parts lie in its line. */
#include "wire/openmetrics.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct view part, struct view line) {
  if (part.len && (part.data < line.data || part.data + part.len > line.data + line.len)) abort();
}

static void read_line(struct view line, const struct openmetrics_series *selector) {
  struct openmetrics_series series;
  double value;
  if (openmetrics_read(line, &series, &value) != OPENMETRICS_SAMPLE) return;
  check_inside(series.name, line);
  check_inside(series.labels, line);
  if (selector) openmetrics_selects(selector, &series);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct openmetrics_series selector;
  bool has_selector = false;
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  for (size_t at = 0, line = 0; at < size; line++) {
    const uint8_t *end = memchr(copy + at, '\n', size - at);
    size_t len = end ? (size_t)(end - copy) - at : size - at;
    struct view text = view_of(copy + at, len), rest = text;
    if (line == 0) has_selector = openmetrics_take_series(&rest, &selector);
    if (line > 0) read_line(text, has_selector ? &selector : NULL);
    at += len + 1;
  }
  free(copy);
  return 0;
}
