/* Peer ids and multiaddrs: the vectors of ../shared/protocols/ricochet.md 6.1, a published one, and refusals. */
#include "support/hex.h"
#include "wire/multiaddr.h"
#include "wire/peer_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
  const char *key, *text;
} peers[] = {
    {"03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",
        "12D3KooWA4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeSB"},
    {"29acbae141bccaf0b22e1a94d34d0bc7361e526d0bfe12c89794bc9322966dd7",
        "12D3KooWCd3eX8r5ihRvzK7P1yPq5aakaBJhG5GNj18YTztPhoCa"},
    {"2543b92ff1095511476adc8369db6ddc933665a11978dda1404ee1066ca9559d",
        "12D3KooWCKq9ZvccjmCqhBbPsrgpAKBHWQpgB61ruM19CyAvH1Cp"},
};

static void ed25519_ids_print_and_parse(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
    uint8_t key[ED25519_PUBLIC_BYTES];
    char text[PEER_ID_TEXT_BYTES];
    struct peer_id id, parsed;
    hex_bytes(peers[i].key, key);
    peer_id_of_ed25519(key, &id);
    peer_id_text(&id, text);
    assert_string_equal(text, peers[i].text);
    assert_true(peer_id_parse(view_str(text), &parsed));
    assert_true(peer_id_equal(&id, &parsed));
    assert_memory_equal(peer_id_ed25519(&parsed), key, sizeof key);
  }
}

static void an_id_is_made_step_by_step(void **state) {
  (void)state;
  uint8_t key[ED25519_PUBLIC_BYTES], whole[PEER_ID_MAX];
  struct peer_id id;
  hex_bytes(peers[0].key, key);
  hex_bytes("00240801122003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8", whole);
  peer_id_of_ed25519(key, &id);
  assert_int_equal(id.len, sizeof whole);
  assert_memory_equal(id.bytes, whole, sizeof whole);
}

static void hashed_ids_are_parsed(void **state) {
  (void)state;
  const char *published = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N";
  struct peer_id id;
  char text[PEER_ID_TEXT_BYTES];
  assert_true(peer_id_parse(view_str(published), &id));
  assert_int_equal(id.len, 34);
  assert_null(peer_id_ed25519(&id));
  peer_id_text(&id, text);
  assert_string_equal(text, published);
}

static void other_texts_are_no_ids(void **state) {
  (void)state;
  static const char *const texts[] = {"", "1", "11", "12D3KooW", "0OIl",
      "12D3KooWA4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeS0", "12D3KooWA4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeSBB",
      "2A4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeSB", "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5",
      "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
      "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"};
  struct peer_id id;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    assert_false(peer_id_parse(view_str(texts[i]), &id));
}

static void multiaddrs_parse_and_print(void **state) {
  (void)state;
  static const char *const texts[] = {"/ip4/127.0.0.1/udp/4001/udx", "/ip6/::1/tcp/9",
      "/dns/example.org/udp/4001/udx/p2p/12D3KooWCd3eX8r5ihRvzK7P1yPq5aakaBJhG5GNj18YTztPhoCa"};
  struct multiaddr address;
  char text[MULTIADDR_TEXT_BYTES];
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_int_equal(multiaddr_parse(texts[i], &address, NULL), STATUS_OK);
    multiaddr_text(&address, text);
    assert_string_equal(text, texts[i]);
  }
  assert_true(address.has_peer);
  assert_int_equal(address.port, 4001);
  assert_string_equal(address.host, "example.org");
}

static void bad_multiaddrs_are_refused_with_a_reason(void **state) {
  (void)state;
  static const char *const texts[] = {"", "127.0.0.1:4001", "/ip4/localhost/udp/1/udx", "/ip4/127.0.0.1",
      "/ip4//udp/1/udx", "/ip4/127.0.0.1/udp/65536/udx", "/ip4/127.0.0.1/udp/x/udx", "/ip4/127.0.0.1/udp/1/quic-v1",
      "/ip4/127.0.0.1/udp/1", "/ip4/127.0.0.1/tcp/1/ws", "/ip4/127.0.0.1/tcp/1/p2p/12D3", "/ip6/127.0.0.1/tcp/1",
      "/ip4/127.0.0.1/tcp/1/", "/ip4/127.0.0.1/tcp/1/p2p/QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N/x"};
  struct multiaddr address;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    struct err err = {0};
    assert_int_equal(multiaddr_parse(texts[i], &address, &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "multiaddr: "));
  }
}

static void multiaddrs_have_a_binary_form(void **state) {
  (void)state;
  static const uint8_t udx[] = {0x04, 127, 0, 0, 1, 0x91, 0x02, 0x0f, 0xa1, 0x80, 0x06};
  uint8_t out[MULTIADDR_BINARY_MAX];
  struct multiaddr address;
  assert_int_equal(multiaddr_parse("/ip4/127.0.0.1/udp/4001/udx", &address, NULL), STATUS_OK);
  assert_int_equal(multiaddr_write(&address, out), sizeof udx);
  assert_memory_equal(out, udx, sizeof udx);
  assert_int_equal(multiaddr_parse("/ip6/::1/tcp/4001", &address, NULL), STATUS_OK);
  assert_int_equal(multiaddr_write(&address, out), 1 + 16 + 3);
  assert_int_equal(multiaddr_parse("/dns/localhost/tcp/4001", &address, NULL), STATUS_OK);
  assert_int_equal(multiaddr_write(&address, out), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ed25519_ids_print_and_parse),
      cmocka_unit_test(an_id_is_made_step_by_step),
      cmocka_unit_test(hashed_ids_are_parsed),
      cmocka_unit_test(other_texts_are_no_ids),
      cmocka_unit_test(multiaddrs_parse_and_print),
      cmocka_unit_test(bad_multiaddrs_are_refused_with_a_reason),
      cmocka_unit_test(multiaddrs_have_a_binary_form),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
