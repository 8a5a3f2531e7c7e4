// room: wire
/* RESP values: what was measured must come apart to its end, each part inside it. */
#include "wire/resp.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(struct view rest, const uint8_t *end) {
  struct resp_value value;
  uint64_t parts = 0;
  while (rest.len > 0) {
    if (!resp_next(&rest, &value)) abort();
    if (value.text.len > 0 && value.text.data + value.text.len > end) abort();
    if (++parts > RESP_ELEMENTS_MAX) abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  size_t len, shorter;
  for (size_t at = 0; at < size; at += len) {
    enum resp_result result = resp_measure(copy + at, size - at, 4096, &len);
    if (result != RESP_COMPLETE) {
      if (len != 0) abort();
      break;
    }
    if (len == 0 || len > size - at) abort();
    if (resp_measure(copy + at, len - 1, 4096, &shorter) != RESP_PARTIAL) abort();
    struct view rest = view_of(copy + at, len);
    walk(rest, copy + at + len);
    resp_skip(&rest);
    if (rest.len != 0) abort();
    resp_error_of(view_of(copy + at, len));
  }
  free(copy);
  return 0;
}
