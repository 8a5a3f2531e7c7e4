#include "base/base64.h"
#include "base/rng.h"
#include "unit/wire/vectors.h"
#include "wire/juggle_auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char secure_key[] = "abcdefghijklmnop";
static const char alice_token[] = "CghiZW5jaGFwcBoQxUUTN0KvwqD692ba434Daw==";

static void test_token_vector(void **state) {
  (void)state;
  struct juggle_token alice = {.app_key = "benchapp", .user_id = "alice", .time_ms = INT64_C(1700000000000)}, read;
  char text[JUGGLE_TOKEN_MAX], app_key[24];
  struct err err;
  assert_int_equal(juggle_token_make(&alice, secure_key, text, &err), STATUS_OK);
  assert_string_equal(text, alice_token);
  assert_int_equal(juggle_token_read(view_str(text), secure_key, &read, &err), STATUS_OK);
  assert_string_equal(read.app_key, "benchapp");
  assert_string_equal(read.user_id, "alice");
  assert_string_equal(read.device_id, "");
  assert_true(read.time_ms == INT64_C(1700000000000));
  assert_int_equal(read.user_type, JUGGLE_USER);
  assert_int_equal(juggle_token_app_key(view_str(text), app_key, sizeof app_key, &err), STATUS_OK);
  assert_string_equal(app_key, "benchapp");
}

static void fill_text(struct rng *rng, char *out, size_t size, size_t least) {
  size_t len = least + rng_below(rng, size - least);
  for (size_t i = 0; i < len; i++) {
    out[i] = (char)(1 + rng_below(rng, 255));
  }
  out[len] = '\0';
}

static void test_random_tokens(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 6);
  for (int round = 0; round < 2000; round++) {
    struct juggle_token in = {.time_ms = (int64_t)rng_next(&rng), .user_type = (int32_t)rng_below(&rng, 3)}, out;
    char text[JUGGLE_TOKEN_MAX], key[JUGGLE_SECURE_KEY_LEN + 1] = {0};
    fill_text(&rng, in.app_key, sizeof in.app_key, 0);
    fill_text(&rng, in.user_id, sizeof in.user_id, 1);
    fill_text(&rng, in.device_id, sizeof in.device_id, 0);
    for (int i = 0; i < JUGGLE_SECURE_KEY_LEN; i++) {
      key[i] = (char)('!' + rng_below(&rng, 90));
    }
    assert_int_equal(juggle_token_make(&in, key, text, NULL), STATUS_OK);
    assert_int_equal(juggle_token_read(view_str(text), key, &out, NULL), STATUS_OK);
    assert_string_equal(in.app_key, out.app_key);
    assert_string_equal(in.user_id, out.user_id);
    assert_string_equal(in.device_id, out.device_id);
    assert_true(in.time_ms == out.time_ms && in.user_type == out.user_type);
  }
}

static void test_longest_token_fits(void **state) {
  (void)state;
  struct juggle_token in = {.time_ms = -1, .user_type = -1}, out;
  memset(in.app_key, 'a', sizeof in.app_key - 1);
  memset(in.user_id, 'u', sizeof in.user_id - 1);
  memset(in.device_id, 'd', sizeof in.device_id - 1);
  char *text = malloc(JUGGLE_TOKEN_MAX);
  assert_non_null(text);
  assert_int_equal(juggle_token_make(&in, secure_key, text, NULL), STATUS_OK);
  assert_int_equal(juggle_token_read(view_str(text), secure_key, &out, NULL), STATUS_OK);
  assert_string_equal(in.device_id, out.device_id);
  free(text);
}

static void assert_refused(const char *text) {
  struct juggle_token out;
  struct err err = {0};
  enum status status = juggle_token_read(view_str(text), secure_key, &out, &err);
  if (status != STATUS_PROTOCOL) fail_msg("'%s' gave status %d", text, status);
  assert_true(err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
}

/* A wrap around a value of the given bytes as a token. */
static void wrap_token(const char *hex, char *out) {
  struct view wrap = bytes_of_hex(hex);
  *base64_encode(BASE64_URL, out, wrap.data, wrap.len) = '\0';
  free((void *)wrap.data);
}

static void test_malformed_tokens(void **state) {
  (void)state;
  assert_refused("");
  assert_refused("not a token");
  assert_refused("AAAA");
  assert_refused("CghiZW5jaGFwcBoQxUUTN0KvwqD692ba434Daw=");
  char text[JUGGLE_TOKEN_MAX];
  wrap_token("0a0862656e6368617070", text); /* no value */
  assert_refused(text);
  wrap_token("0a0862656e63686170701a0fc545133742afc2a0faf766dae37e03", text); /* 15 bytes: the original panics */
  assert_refused(text);
  wrap_token("0a0862656e63686170701a10c545133742afc2a0faf766dae37e036a", text); /* one bit wrong */
  assert_refused(text);
  wrap_token("080862656e63686170701a10c545133742afc2a0faf766dae37e036b", text); /* an app key that is a number */
  assert_refused(text);
  wrap_token("0a0862650063686170701a10c545133742afc2a0faf766dae37e036b", text); /* a NUL in the app key */
  assert_refused(text);
  char long_text[JUGGLE_TOKEN_MAX + 5];
  memset(long_text, 'A', sizeof long_text - 1);
  long_text[sizeof long_text - 1] = '\0';
  assert_refused(long_text);
}

static void test_other_key_and_no_user(void **state) {
  (void)state;
  struct juggle_token nobody = {.app_key = "benchapp", .time_ms = 1}, out;
  char text[JUGGLE_TOKEN_MAX];
  assert_int_equal(juggle_token_make(&nobody, secure_key, text, NULL), STATUS_OK);
  assert_refused(text);
  assert_int_equal(juggle_token_read(view_str(alice_token), "ponmlkjihgfedcba", &out, NULL), STATUS_PROTOCOL);
  assert_int_equal(juggle_token_read(view_str(alice_token), "short", &out, NULL), STATUS_USAGE);
  assert_int_equal(juggle_token_make(&nobody, "a key that is too long", text, NULL), STATUS_USAGE);
}

static void test_app_key_that_does_not_fit(void **state) {
  (void)state;
  char exact[9], small[8];
  assert_int_equal(juggle_token_app_key(view_str(alice_token), exact, sizeof exact, NULL), STATUS_OK);
  assert_int_equal(juggle_token_app_key(view_str(alice_token), small, sizeof small, NULL), STATUS_PROTOCOL);
}

/* Padding that says more than a block cannot be taken off, and a changed character never reads past the end. */
static void test_every_change_of_a_character(void **state) {
  (void)state;
  for (size_t i = 0; i < strlen(alice_token); i++) {
    for (int character = 1; character < 256; character++) {
      char text[sizeof alice_token];
      struct juggle_token out;
      memcpy(text, alice_token, sizeof text);
      text[i] = (char)character;
      enum status status = juggle_token_read(view_str(text), secure_key, &out, NULL);
      assert_true(status == STATUS_PROTOCOL || (status == STATUS_OK && out.user_id[0] != '\0'));
    }
  }
}

static void test_signatures(void **state) {
  (void)state;
  char out[41];
  juggle_signature(view_str("appsecret"), view_str("nonce"), view_str("1672568121910"), out);
  assert_string_equal(out, "2e639ae3600a48b6c595495dcf61fb88b76f485b");
  juggle_signature(view_str("0123456789abcdef"), view_str("a1b2c3d4e5f60718293a4b5c"), view_str("1700000000000"), out);
  assert_string_equal(out, "1573c44ab2a13ae97021ea5a27f3625462013ade");
  juggle_signature(view_of(NULL, 0), view_of(NULL, 0), view_of(NULL, 0), out);
  assert_string_equal(out, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_token_vector),
      cmocka_unit_test(test_random_tokens),
      cmocka_unit_test(test_longest_token_fits),
      cmocka_unit_test(test_malformed_tokens),
      cmocka_unit_test(test_other_key_and_no_user),
      cmocka_unit_test(test_app_key_that_does_not_fit),
      cmocka_unit_test(test_every_change_of_a_character),
      cmocka_unit_test(test_signatures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
