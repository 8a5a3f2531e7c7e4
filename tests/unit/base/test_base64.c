#include "base/base64.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/evp.h>

/* OpenSSL's encoder is the oracle; its alphabet is the standard one. */
static void standard_text(char *out, const uint8_t *data, size_t len) {
  EVP_EncodeBlock((unsigned char *)out, data, (int)len);
}

static void to_url_alphabet(char *text) {
  for (; *text; text++) {
    if (*text == '+') *text = '-';
    if (*text == '/') *text = '_';
  }
}

static void test_every_length_against_openssl(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 1);
  for (size_t len = 0; len < 200; len++) {
    uint8_t data[200], decoded[200];
    for (size_t i = 0; i < len; i++) {
      data[i] = (uint8_t)rng_next(&rng);
    }
    char want[300], got[300];
    standard_text(want, data, len);
    size_t size = base64_encoded_size(len), decoded_len;
    assert_int_equal(size, strlen(want));
    assert_true(base64_decode(BASE64_STANDARD, view_str(want), decoded, &decoded_len));
    assert_int_equal(decoded_len, len);
    if (len) assert_memory_equal(decoded, data, len);
    to_url_alphabet(want);
    assert_ptr_equal(base64_encode(BASE64_URL, got, data, len), got + size);
    assert_memory_equal(got, want, size);
    assert_true(base64_decode(BASE64_URL, view_of(got, size), decoded, &decoded_len));
    assert_int_equal(decoded_len, len);
    if (len) assert_memory_equal(decoded, data, len);
  }
}

static void assert_refused(enum base64_alphabet alphabet, const char *text) {
  uint8_t out[16];
  size_t len;
  if (base64_decode(alphabet, view_str(text), out, &len)) fail_msg("'%s' was accepted", text);
}

static void test_refusals(void **state) {
  (void)state;
  static const char *const never[] = {"A", "AA", "AAA", "AAAAA", "=AAA", "A===", "====", "AA=A", "AAAA====", "AA==AAAA",
      "AAA\n", "AA A", "AB==", "AAB=", "AA\xff=", "AAAA\r\n\r\n"};
  for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
    assert_refused(BASE64_URL, never[i]);
    assert_refused(BASE64_STANDARD, never[i]);
  }
  assert_refused(BASE64_URL, "AA+A");
  assert_refused(BASE64_URL, "AAA/");
  assert_refused(BASE64_STANDARD, "AA-A");
  assert_refused(BASE64_STANDARD, "AAA_");
}

/* Of the 256 possible characters exactly 64 are in an alphabet, and each of them gives its own value. */
static void test_alphabet_is_complete(void **state) {
  (void)state;
  for (int alphabet = BASE64_URL; alphabet <= BASE64_STANDARD; alphabet++) {
    uint64_t seen = 0;
    int accepted = 0;
    for (int character = 0; character < 256; character++) {
      uint8_t text[4] = {'A', 'A', 'A', (uint8_t)character}, out[3];
      size_t len;
      if (character == '=' || !base64_decode((enum base64_alphabet)alphabet, view_of(text, 4), out, &len)) continue;
      accepted++;
      seen |= UINT64_C(1) << out[2];
    }
    assert_int_equal(accepted, 64);
    assert_true(seen == UINT64_MAX);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_length_against_openssl),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_alphabet_is_complete),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
