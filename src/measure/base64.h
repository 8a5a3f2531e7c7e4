/* Base64 of RFC 4648 with padding, as HdrHistogram logs hold it. */
#ifndef MUSTER_MEASURE_BASE64_H
#define MUSTER_MEASURE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters that base64_write writes for len bytes, without the NUL. */
size_t base64_text_len(size_t len);
/* Writes base64_text_len(len) characters and a NUL. */
void base64_write(char *text, const uint8_t *data, size_t len);
/* Reads text into data, which has room for len / 4 * 3 bytes; false when it is not base64. */
bool base64_read(const char *text, size_t len, uint8_t *data, size_t *data_len);

#endif
