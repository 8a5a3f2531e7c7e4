#include "wire/juggle_auth.h"

#include "base/base64.h"
#include "wire/pb.h"

#include <openssl/err.h>
#include <openssl/evp.h>

enum {
  AES_BLOCK = 16,
  DECODED_MAX = JUGGLE_TOKEN_MAX / 4 * 3,
  WRAP_APP_KEY = 1,
  WRAP_VALUE = 3,
  VALUE_USER_ID = 1,
  VALUE_DEVICE_ID = 2,
  VALUE_TIME = 3,
  VALUE_USER_TYPE = 4,
};

static enum status cipher(bool encrypt, struct view in, const char *secure_key, uint8_t *out, size_t *out_len) {
  const uint8_t *key = (const uint8_t *)secure_key;
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  if (!context) return STATUS_MEMORY;
  int len = 0, last = 0;
  bool ok = EVP_CipherInit_ex(context, EVP_aes_128_cbc(), NULL, key, key, encrypt) == 1 &&
            EVP_CipherUpdate(context, out, &len, in.data, (int)in.len) == 1 &&
            EVP_CipherFinal_ex(context, out + len, &last) == 1;
  EVP_CIPHER_CTX_free(context);
  /* A refused token must not look like a failure of some TLS connection of this thread. */
  if (!ok) ERR_clear_error();
  *out_len = (size_t)len + (size_t)last;
  return ok ? STATUS_OK : STATUS_PROTOCOL;
}

static bool is_secure_key(const char *secure_key) {
  return strnlen(secure_key, JUGGLE_SECURE_KEY_LEN + 1) == JUGGLE_SECURE_KEY_LEN;
}

static size_t write_value(uint8_t *out, const struct juggle_token *token) {
  uint8_t *at = pb_write_bytes_field(out, VALUE_USER_ID, view_str(token->user_id));
  at = pb_write_bytes_field(at, VALUE_DEVICE_ID, view_str(token->device_id));
  at = pb_write_uint_field(at, VALUE_TIME, (uint64_t)token->time_ms);
  at = pb_write_uint_field(at, VALUE_USER_TYPE, (uint64_t)(int64_t)token->user_type);
  return (size_t)(at - out);
}

enum status juggle_token_make(
    const struct juggle_token *token, const char *secure_key, char out[JUGGLE_TOKEN_MAX], struct err *err) {
  _Static_assert(sizeof token->app_key + sizeof token->user_id + sizeof token->device_id + 3 * AES_BLOCK <= DECODED_MAX,
      "the longest token fits into JUGGLE_TOKEN_MAX");
  if (!is_secure_key(secure_key)) {
    return err_set(err, STATUS_USAGE, "the secure key of app '%s' is not 16 characters long", token->app_key);
  }
  uint8_t value[DECODED_MAX], encrypted[DECODED_MAX], wrap[DECODED_MAX];
  size_t encrypted_len;
  struct view plain = view_of(value, write_value(value, token));
  enum status status = cipher(true, plain, secure_key, encrypted, &encrypted_len);
  if (status != STATUS_OK) return err_set(err, STATUS_MEMORY, "cannot encrypt a token: OpenSSL is out of memory");
  uint8_t *at = pb_write_bytes_field(wrap, WRAP_APP_KEY, view_str(token->app_key));
  at = pb_write_bytes_field(at, WRAP_VALUE, view_of(encrypted, encrypted_len));
  *base64_encode(BASE64_URL, out, wrap, (size_t)(at - wrap)) = '\0';
  return STATUS_OK;
}

/* Copies text and a NUL; false when it does not fit or holds a NUL, which would make two names equal. */
static bool copy_text(struct view text, char *out, size_t size) {
  if (text.len >= size || (text.len && memchr(text.data, 0, text.len))) return false;
  if (text.len) memcpy(out, text.data, text.len);
  out[text.len] = '\0';
  return true;
}

struct wrap {
  struct view app_key, value;
};

static bool read_wrap(struct view bytes, struct wrap *out) {
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field;
  *out = (struct wrap){0};
  while (pb_next(&reader, &field)) {
    if (field.number != WRAP_APP_KEY && field.number != WRAP_VALUE) continue;
    if (field.type != PB_BYTES) return false;
    *(field.number == WRAP_APP_KEY ? &out->app_key : &out->value) = field.bytes;
  }
  return !reader.bad;
}

/* Decodes text into decoded and reads the wrap, whose views point there. */
static enum status open_wrap(struct view text, uint8_t decoded[DECODED_MAX], struct wrap *out, struct err *err) {
  size_t len;
  if (!text.len || text.len > JUGGLE_TOKEN_MAX) {
    return err_set(
        err, STATUS_PROTOCOL, "a token of %zu characters is not one of ours (1 to %d)", text.len, JUGGLE_TOKEN_MAX);
  }
  if (!base64_decode(BASE64_URL, text, decoded, &len) && !base64_decode(BASE64_STANDARD, text, decoded, &len)) {
    return err_set(err, STATUS_PROTOCOL, "the token is not base64");
  }
  if (!read_wrap(view_of(decoded, len), out)) return err_set(err, STATUS_PROTOCOL, "the token holds no TokenWrap");
  return STATUS_OK;
}

enum status juggle_token_app_key(struct view text, char *out, size_t size, struct err *err) {
  uint8_t decoded[DECODED_MAX];
  struct wrap wrap = {0};
  enum status status = open_wrap(text, decoded, &wrap, err);
  if (status != STATUS_OK) return status;
  if (!copy_text(wrap.app_key, out, size)) return err_set(err, STATUS_PROTOCOL, "the token's app key is malformed");
  return STATUS_OK;
}

static bool read_value_field(const struct pb_field *field, struct juggle_token *out) {
  switch (field->number) {
  case VALUE_USER_ID:
    return field->type == PB_BYTES && copy_text(field->bytes, out->user_id, sizeof out->user_id);
  case VALUE_DEVICE_ID:
    return field->type == PB_BYTES && copy_text(field->bytes, out->device_id, sizeof out->device_id);
  case VALUE_TIME:
    out->time_ms = (int64_t)field->value;
    return field->type == PB_VARINT;
  case VALUE_USER_TYPE:
    out->user_type = (int32_t)(uint32_t)field->value;
    return field->type == PB_VARINT;
  default:
    return true;
  }
}

static bool read_value(struct view bytes, struct juggle_token *out) {
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field = {0};
  while (pb_next(&reader, &field)) {
    if (!read_value_field(&field, out)) return false;
  }
  return !reader.bad && out->user_id[0] != '\0';
}

enum status juggle_token_read(struct view text, const char *secure_key, struct juggle_token *out, struct err *err) {
  uint8_t decoded[DECODED_MAX], value[DECODED_MAX + AES_BLOCK];
  struct wrap wrap = {0};
  size_t value_len;
  *out = (struct juggle_token){0};
  enum status status = open_wrap(text, decoded, &wrap, err);
  if (status != STATUS_OK) return status;
  if (!is_secure_key(secure_key)) return err_set(err, STATUS_USAGE, "the secure key is not 16 characters long");
  if (!copy_text(wrap.app_key, out->app_key, sizeof out->app_key)) {
    return err_set(err, STATUS_PROTOCOL, "the token's app key is malformed");
  }
  if (!wrap.value.len || wrap.value.len % AES_BLOCK) {
    return err_set(
        err, STATUS_PROTOCOL, "the token's value has %zu bytes, no multiple of %d", wrap.value.len, AES_BLOCK);
  }
  status = cipher(false, wrap.value, secure_key, value, &value_len);
  if (status == STATUS_MEMORY) return err_set(err, status, "cannot decrypt a token: OpenSSL is out of memory");
  if (status != STATUS_OK || !read_value(view_of(value, value_len), out)) {
    return err_set(err, STATUS_PROTOCOL, "the token was not made with this app's secure key");
  }
  return STATUS_OK;
}

void juggle_signature(struct view secret, struct view nonce, struct view timestamp, char out[41]) {
  static const char hex[] = "0123456789abcdef";
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned len = 0;
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  bool ok = context && EVP_DigestInit_ex(context, EVP_sha1(), NULL) == 1 &&
            EVP_DigestUpdate(context, secret.data, secret.len) == 1 &&
            EVP_DigestUpdate(context, nonce.data, nonce.len) == 1 &&
            EVP_DigestUpdate(context, timestamp.data, timestamp.len) == 1 &&
            EVP_DigestFinal_ex(context, digest, &len) == 1;
  EVP_MD_CTX_free(context);
  for (unsigned i = 0; ok && i < len; i++) {
    out[2 * i] = hex[digest[i] >> 4];
    out[2 * i + 1] = hex[digest[i] & 15];
  }
  out[ok ? 2 * len : 0] = '\0';
}
