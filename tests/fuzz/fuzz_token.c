// room: wire
/* Token texts, and the bytes of a token value under the right key, which a hostile tenant can choose freely. */
#include "base/base64.h"
#include "wire/juggle_auth.h"
#include "wire/pb.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char secure_key[] = "abcdefghijklmnop";

static void check(struct view text) {
  struct juggle_token token, again;
  struct err err;
  char app_key[32], made[JUGGLE_TOKEN_MAX];
  enum status status = juggle_token_app_key(text, app_key, sizeof app_key, &err);
  if (status == STATUS_OK && !memchr(app_key, 0, sizeof app_key)) abort();
  if (juggle_token_read(text, secure_key, &token, &err) != STATUS_OK) return;
  if (token.user_id[0] == '\0') abort();
  if (juggle_token_make(&token, secure_key, made, &err) != STATUS_OK) abort();
  if (juggle_token_read(view_str(made), secure_key, &again, &err) != STATUS_OK) abort();
  if (strcmp(token.user_id, again.user_id) != 0 || token.time_ms != again.time_ms) abort();
}

static void check_encrypted(const uint8_t *data, size_t size) {
  enum { VALUE_MAX = 320, TOKEN_VALUE = 3 };
  if (size > VALUE_MAX) return;
  uint8_t value[VALUE_MAX + 16], wrap[VALUE_MAX + 32];
  char text[JUGGLE_TOKEN_MAX];
  int len = 0, last = 0;
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  const uint8_t *key = (const uint8_t *)secure_key;
  if (!context || EVP_EncryptInit_ex(context, EVP_aes_128_cbc(), NULL, key, key) != 1) abort();
  if (EVP_EncryptUpdate(context, value, &len, data, (int)size) != 1) abort();
  if (EVP_EncryptFinal_ex(context, value + len, &last) != 1) abort();
  EVP_CIPHER_CTX_free(context);
  uint8_t *end = pb_write_bytes_field(wrap, TOKEN_VALUE, view_of(value, (size_t)len + (size_t)last));
  char *text_end = base64_encode(BASE64_URL, text, wrap, (size_t)(end - wrap));
  check(view_of(text, (size_t)(text_end - text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check(view_of(data, size));
  check_encrypted(data, size);
  return 0;
}
