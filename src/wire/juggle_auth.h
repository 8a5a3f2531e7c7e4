/* JuggleIM's tokens (section 2.3) and API signatures (section 6.1). */
#ifndef MUSTER_WIRE_JUGGLE_AUTH_H
#define MUSTER_WIRE_JUGGLE_AUTH_H

#include "base/err.h"
#include "base/view.h"

#include <stddef.h>
#include <stdint.h>

enum juggle_user_type { JUGGLE_USER = 0, JUGGLE_BOT = 1, JUGGLE_ADMIN = 2 };

#define JUGGLE_SECURE_KEY_LEN 16
#define JUGGLE_TOKEN_MAX 512

struct juggle_token {
  char app_key[64];  /* from the wrap */
  char user_id[128]; /* the rest from the encrypted value */
  char device_id[128];
  int64_t time_ms;
  int32_t user_type;
};

/* Writes the token text for token into out, NUL-terminated. secure_key: 16 characters (AES-128 key and IV). */
enum status juggle_token_make(
    const struct juggle_token *token, const char *secure_key, char out[JUGGLE_TOKEN_MAX], struct err *err);

/* The app key of a token text without decrypting it, NUL-terminated. STATUS_PROTOCOL: not base64 of a TokenWrap, or an
 * app key that does not fit. */
enum status juggle_token_app_key(struct view text, char *out, size_t size, struct err *err);

/* Decrypts; STATUS_PROTOCOL for anything that is not a whole token under this key (also cipher text that is no
 * multiple of 16 bytes, on which the original panics), and for a token without a user. */
enum status juggle_token_read(struct view text, const char *secure_key, struct juggle_token *out, struct err *err);

/* Lower-case hex SHA-1 of secret, nonce and timestamp; "" when OpenSSL is out of memory. */
void juggle_signature(struct view secret, struct view nonce, struct view timestamp, char out[41]);

#endif
