// room: report
#include "report/gate.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever stands there, what is said about it is one line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct gate_list list = {0};
  struct err err = {0};
  char *text = malloc(size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  if (gate_parse(text, &list, &err) != STATUS_OK) {
    if (err.text[0] == '\0') abort();
    for (const char *at = err.text; *at; at++) {
      if ((unsigned char)*at < 0x20 || *at == 0x7f) abort();
    }
  }
  free(text);
  return 0;
}
