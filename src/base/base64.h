/* Base64 in both RFC 4648 alphabets, always padded. */
#ifndef MUSTER_BASE_BASE64_H
#define MUSTER_BASE_BASE64_H

#include "base/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum base64_alphabet { BASE64_URL, BASE64_STANDARD };

/* Characters that len bytes become, padding included. */
size_t base64_encoded_size(size_t len);

/* Writes base64_encoded_size(len) characters, no NUL; returns the position behind them. */
char *base64_encode(enum base64_alphabet alphabet, char *out, const uint8_t *data, size_t len);

/* Writes at most text.len / 4 * 3 bytes and their number. False for foreign characters, missing padding, or bits left
 * over behind the last byte: every byte string has exactly one text. */
bool base64_decode(enum base64_alphabet alphabet, struct view text, uint8_t *out, size_t *len);

#endif
