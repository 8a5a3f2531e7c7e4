// room: measure
#include "base/base64.h"
#include "measure/hlog.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read must be sound: the counters add up, and it survives a round trip. */
static void check(const struct histogram *h) {
  static struct histogram back;
  uint64_t total = 0;
  for (uint32_t i = 0; i < HISTOGRAM_COUNTERS; i++)
    total += h->counters[i];
  char *text;
  if (total != h->count || histogram_encode(h, &text, NULL) != STATUS_OK) abort();
  if (histogram_decode(text, strlen(text), &back, NULL) != STATUS_OK || back.count != h->count) abort();
  free(text);
}

static void read_log(const uint8_t *data, size_t size) {
  static struct hlog_interval interval;
  if (size == 0) return;
  FILE *file = fmemopen((void *)(uintptr_t)data, size, "r");
  if (!file) abort();
  unsigned line = 0;
  bool end = false;
  while (!end && hlog_read_interval(file, &line, &interval, &end, NULL) == STATUS_OK) {
    if (!end) check(&interval.histogram);
  }
  fclose(file);
}

static void decode(const char *text, size_t len) {
  static struct histogram h;
  if (histogram_decode(text, len, &h, NULL) == STATUS_OK) check(&h);
}

/* Mutations do not get past a checksum, so this packs the bytes and lets them reach the reader of counters. */
static void decode_packed(const uint8_t *inner, size_t size) {
  uLongf packed = compressBound(size);
  uint8_t *outer = malloc(8 + packed);
  char *text = malloc(base64_encoded_size(8 + packed) + 1);
  if (!outer || !text || compress2(outer + 8, &packed, inner, size, 1) != Z_OK) abort();
  const uint8_t head[8] = {0x1c, 0x84, 0x93, 0x14, (uint8_t)(packed >> 24), (uint8_t)(packed >> 16),
      (uint8_t)(packed >> 8), (uint8_t)packed};
  memcpy(outer, head, sizeof head);
  *base64_encode(BASE64_STANDARD, text, outer, 8 + packed) = '\0';
  decode(text, strlen(text));
  free(text);
  free(outer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size && data[0] == 1) {
    decode_packed(data + 1, size - 1);
    return 0;
  }
  decode((const char *)data, size);
  read_log(data, size);
  return 0;
}
