/* Noise and the secure channel: the published vector of the pattern, the byte-exact handshake of
 * ../shared/protocols/ricochet.md 6.3, both ways to agree on the muxer, and peers that lie. */
#include "net/libp2p/channel.h"
#include "support/hex.h"
#include "wire/noise_payload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* NOISE_KEY_BYTES bytes that count up from first. */
static const uint8_t *counting(uint8_t first) {
  static uint8_t keys[8][NOISE_KEY_BYTES];
  static unsigned next;
  uint8_t *key = keys[next++ % 8];
  for (size_t i = 0; i < NOISE_KEY_BYTES; i++)
    key[i] = (uint8_t)(first + i);
  return key;
}

static void client_identity(struct libp2p_identity *out) {
  assert_int_equal(libp2p_identity_make_fixed(out, counting(0x00), counting(0x40), NULL), STATUS_OK);
}

static void server_identity(struct libp2p_identity *out) {
  assert_int_equal(libp2p_identity_make_fixed(out, counting(0x20), counting(0x60), NULL), STATUS_OK);
}

static void expect(const void *data, const char *hex) {
  uint8_t bytes[512];
  size_t len = hex_bytes(hex, bytes);
  assert_memory_equal(data, bytes, len);
}

static void the_pattern_matches_the_published_vector(void **state) {
  (void)state;
  struct noise_handshake initiator, responder;
  struct libp2p_identity keys;
  uint8_t message[256];
  struct view payload;
  assert_int_equal(libp2p_identity_make_fixed(&keys, counting(0), counting(0x00), NULL), STATUS_OK);
  noise_begin(&initiator, true, counting(0x00), keys.noise_public, counting(0x20));
  assert_int_equal(libp2p_identity_make_fixed(&keys, counting(0), counting(0x01), NULL), STATUS_OK);
  noise_begin(&responder, false, counting(0x01), keys.noise_public, counting(0x41));
  size_t len = noise_write(&initiator, (struct view){0}, message);
  assert_int_equal(len, 32);
  expect(message, "358072d6365880d1aeea329adf9121383851ed21a28e3b75e965d0d2cd166254");
  assert_true(noise_read(&responder, message, len, &payload));
  len = noise_write(&responder, (struct view){0}, message);
  assert_int_equal(len, 96);
  assert_true(noise_read(&initiator, message, len, &payload));
  len = noise_write(&initiator, (struct view){0}, message);
  assert_int_equal(len, 64);
  expect(message, "87f864c11ba449f4");
  assert_true(noise_read(&responder, message, len, &payload));
  assert_true(noise_is_done(&initiator) && noise_is_done(&responder));
  assert_memory_equal(initiator.hash, responder.hash, sizeof initiator.hash);
}

static void identities_sign_their_noise_key(void **state) {
  (void)state;
  struct libp2p_identity client, server;
  client_identity(&client);
  server_identity(&server);
  assert_string_equal(client.text, "12D3KooWA4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeSB");
  assert_string_equal(server.text, "12D3KooWCd3eX8r5ihRvzK7P1yPq5aakaBJhG5GNj18YTztPhoCa");
  expect(client.noise_public, "79a631eede1bf9c98f12032cdeadd0e7a079398fc786b88cc846ec89af85a51a");
  expect(server.noise_public, "675dd574ed7789310b3d2e7681f3790b466c773b1521fecf36577958371ea52f");
  expect(client.noise_signature, "f8523b76df7c27b21d62a201e51353822217ec94e980b001fe13c295abc644446"
                                 "17d12814db2ba224afa0bf67c5f479e952e6bdd3aeedd0b8ea79369b5a6ae04");
  expect(server.noise_signature, "b220547e1d9985b5fa50604053d85ab17248112ac3a26c3222ab6d63e9fc13a4"
                                 "df5bf03b294388e389921944222b007b02127594d937f17fed6c5da6b2bd8505");
  struct view signature = view_of(client.noise_signature, sizeof client.noise_signature);
  const uint8_t *key = peer_id_ed25519(&client.peer);
  assert_true(libp2p_identity_verify(key, client.noise_public, signature));
  assert_false(libp2p_identity_verify(key, server.noise_public, signature));
  client.noise_signature[0] ^= 1;
  assert_false(libp2p_identity_verify(key, client.noise_public, signature));
}

static void payloads_are_those_of_the_vectors(void **state) {
  (void)state;
  uint8_t out[NOISE_PAYLOAD_MAX], key[PUBLIC_KEY_MESSAGE_BYTES];
  struct libp2p_identity client;
  client_identity(&client);
  public_key_write(key, peer_id_ed25519(&client.peer));
  struct noise_payload payload = {.identity_key = view_of(key, sizeof key),
      .signature = view_of(client.noise_signature, sizeof client.noise_signature),
      .has_yamux = true};
  assert_int_equal(noise_payload_write(out, &payload), 120);
  expect(out, "0a24 0801122003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
              "1240 f8523b76df7c27b21d62a201e51353822217ec94e980b001fe13c295abc64444"
              "617d12814db2ba224afa0bf67c5f479e952e6bdd3aeedd0b8ea79369b5a6ae04"
              "220e 120c 2f79616d75782f312e302e30");
  struct noise_payload read;
  assert_true(noise_payload_read(view_of(out, 120), &read));
  assert_true(read.has_muxers && read.has_yamux);
  assert_true(noise_payload_read(view_of(out, 104), &read));
  assert_false(read.has_muxers);
  for (size_t len = 0; len < 104; len++)
    assert_false(noise_payload_read(view_of(out, len), &read));
}

/* One side with what it wrote. */
struct end {
  struct channel channel;
  struct buf out;
  struct buf plain; /* all that came */
  enum channel_result failed;
  bool established;
};

static void begin(struct end *end, bool is_dialer, const struct libp2p_identity *identity,
    const struct peer_id *expected, uint8_t ephemeral, bool without_early_muxer) {
  *end = (struct end){0};
  assert_true(channel_begin_fixed(
      &end->channel, is_dialer, identity, expected, counting(ephemeral), without_early_muxer, &end->out));
}

static void finish(struct end *end) {
  channel_free(&end->channel);
  buf_free(&end->out);
  buf_free(&end->plain);
}

static void feed(struct end *end, uint8_t *data, size_t len, size_t *used) {
  struct view plain;
  enum channel_result result;
  *used = 0;
  do {
    size_t step;
    result = channel_received(&end->channel, data + *used, len - *used, &step, &plain, &end->out);
    *used += step;
    if (result == CHANNEL_ESTABLISHED) {
      assert_false(end->established);
      end->established = true;
    }
    if (plain.len) assert_true(buf_append(&end->plain, plain.data, plain.len));
  } while (result == CHANNEL_PLAIN || result == CHANNEL_ESTABLISHED);
  if (result != CHANNEL_MORE) end->failed = result;
}

/* Carries what one side wrote to the other, in pieces of at most `piece` bytes. */
static void carry(struct end *from, struct end *to, size_t piece) {
  struct buf tail = {0};
  while (from->out.len && !to->failed) {
    size_t len = from->out.len < piece ? from->out.len : piece, used;
    assert_true(buf_append(&tail, from->out.data, len));
    buf_consume(&from->out, len);
    feed(to, tail.data, tail.len, &used);
    buf_consume(&tail, used);
  }
  if (!to->failed) assert_int_equal(tail.len, 0);
  buf_free(&tail);
  from->out.len = 0;
}

static void expect_out(const struct end *end, size_t at, const char *hex) {
  uint8_t bytes[1024];
  size_t len = hex_bytes(hex, bytes);
  assert_true(end->out.len >= at + len);
  assert_memory_equal(end->out.data + at, bytes, len);
}

static void expect_seal(struct end *end, const char *plain_hex, const char *sealed_hex) {
  uint8_t plain[64], sealed[128], expected[128];
  size_t len = hex_bytes(plain_hex, plain), sealed_len = hex_bytes(sealed_hex, expected);
  assert_int_equal(sealed_len, len + CHANNEL_OVERHEAD);
  channel_seal(&end->channel, sealed, plain, len);
  assert_memory_equal(sealed, expected, sealed_len);
}

#define HEADER "132f6d756c746973747265616d2f312e302e300a"
#define NOISE "072f6e6f6973650a"

static void the_handshake_is_that_of_the_vectors(void **state) {
  (void)state;
  struct libp2p_identity client_keys, server_keys;
  struct end client, server;
  client_identity(&client_keys);
  server_identity(&server_keys);
  begin(&client, true, &client_keys, &server_keys.peer, 0x80, false);
  begin(&server, false, &server_keys, NULL, 0xa0, false);
  assert_int_equal(client.out.len, 28 + 34);
  expect_out(&client, 0, HEADER NOISE "0020493e82fc74464a59268817623d2053c5eb8e2cc4a988b4fee179ec6b010d531d");
  carry(&client, &server, SIZE_MAX);
  assert_int_equal(server.out.len, 28 + 218);
  expect_out(&server, 0,
      HEADER NOISE "00d8 605a725d2a4adfeeb1a29e17edd621c1b7593ee8cdbc44ac6c4ab6e2f805d23c"
                   "6b0e173c7c7af5198345a35f7935b2416574d31f81b81848ed02dc9de76d3e12a3220487"
                   "faf57ef04163648b495eda4b7298162b7bbd0ec71e2a3a4da6360d41a2c21e7f4bed4fa1"
                   "9537d502362d4a3025105d21d7ba7502e1550885afc9252406532c4f6850a3db3e0e7159"
                   "d013b3b5631c910adbae1d06dc4156141705baa5ede81ea3dede35f2e82070ddc66729f8"
                   "079b8c34591e67de40953eb7438b177a61e2c66a69bb8d1971c4a4eb795081121eedac25"
                   "bfe3099f");
  carry(&server, &client, SIZE_MAX);
  assert_true(client.established);
  expect_out(&client, 0,
      "00b8 379d0acee9a3e3165c66a8e866476229ae67f5b017a18c743579698e09d76932"
      "e48faf892a4ce2540ed12d94a3d517c8625b76a4fd61eddab20b93f8b6b2fefb3844e73a"
      "0ee7b09fa7f0100cbcbb3dd802790a7007c8c68ac558632c1589cc929c2d14cd1225cff7"
      "2f7d6c7982465c085716998fe74853f7b3b40ec822942a2b6c403f0099eba1ca7cb59c32"
      "af3270b5b5c8b40bf8be4dcba22c6830bcc316283d77ad64d49beccdfd9682f5552aa3d4"
      "a57a8febf389c68d");
  carry(&client, &server, SIZE_MAX);
  assert_true(server.established);
  assert_true(peer_id_equal(&client.channel.peer, &server_keys.peer));
  assert_true(peer_id_equal(&server.channel.peer, &client_keys.peer));
  expect(client.channel.send.key, "1ac891358ca40143693977005e7c00c8988e46861fdce6521dea5d293534761c");
  expect(client.channel.receive.key, "d213ab114c2048d4f0dd9de524b5a4f7b7854d6978104e8ff3b175033d5aa7ea");
  expect_seal(&client, "000100010000000100000000", "001c e999d713deb2a9dea4318a82281b52fa89a95cf63135cacf6e277115");
  expect_seal(&server, "000200010000000000000000", "001c 0c27b637aaa6a222fd572291ba667d4ec37d011ae4272553f92c5c8e");
  finish(&client);
  finish(&server);
}

/* Data both ways after a handshake that goes in pieces. */
static void open_in_pieces(size_t piece, bool client_is_late, bool server_is_late) {
  struct libp2p_identity client_keys, server_keys;
  struct end client, server;
  client_identity(&client_keys);
  server_identity(&server_keys);
  begin(&client, true, &client_keys, NULL, 0x80, client_is_late);
  begin(&server, false, &server_keys, NULL, 0xa0, server_is_late);
  for (int i = 0; i < 6; i++) {
    carry(&client, &server, piece);
    carry(&server, &client, piece);
  }
  assert_true(client.established && server.established);
  uint8_t *room = buf_reserve(&client.out, 5 + CHANNEL_OVERHEAD);
  channel_seal(&client.channel, room, (const uint8_t *)"hello", 5);
  client.out.len += 5 + CHANNEL_OVERHEAD;
  carry(&client, &server, piece);
  assert_int_equal(server.plain.len, 5);
  assert_memory_equal(server.plain.data, "hello", 5);
  finish(&client);
  finish(&server);
}

static void channels_open_whatever_the_pieces(void **state) {
  (void)state;
  static const size_t pieces[] = {1, 2, 7, 100, SIZE_MAX};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    open_in_pieces(pieces[i], false, false);
    open_in_pieces(pieces[i], true, true);
    open_in_pieces(pieces[i], true, false);
    open_in_pieces(pieces[i], false, true);
  }
}

static void another_peer_than_expected_is_refused(void **state) {
  (void)state;
  struct libp2p_identity client_keys, server_keys;
  struct end client, server;
  client_identity(&client_keys);
  server_identity(&server_keys);
  begin(&client, true, &client_keys, &client_keys.peer, 0x80, false);
  begin(&server, false, &server_keys, NULL, 0xa0, false);
  carry(&client, &server, SIZE_MAX);
  carry(&server, &client, SIZE_MAX);
  assert_int_equal(client.failed, CHANNEL_INSECURE);
  assert_non_null(strstr(client.channel.failure, "another peer id"));
  finish(&client);
  finish(&server);
}

static void a_stolen_identity_is_refused(void **state) {
  (void)state;
  struct libp2p_identity client_keys, server_keys;
  struct end client, server;
  client_identity(&client_keys);
  server_identity(&server_keys);
  server_keys.noise_signature[5] ^= 1;
  begin(&client, true, &client_keys, NULL, 0x80, false);
  begin(&server, false, &server_keys, NULL, 0xa0, false);
  carry(&client, &server, SIZE_MAX);
  carry(&server, &client, SIZE_MAX);
  assert_int_equal(client.failed, CHANNEL_INSECURE);
  assert_non_null(strstr(client.channel.failure, "not signed"));
  finish(&client);
  finish(&server);
}

/* Every byte of the handshake but the cleartext of the negotiation is protected, sooner or later. */
static void changed_bytes_are_noticed(void **state) {
  (void)state;
  for (size_t at = 28 + 2; at < 28 + 218; at++) {
    struct libp2p_identity client_keys, server_keys;
    struct end client, server;
    client_identity(&client_keys);
    server_identity(&server_keys);
    begin(&client, true, &client_keys, NULL, 0x80, false);
    begin(&server, false, &server_keys, NULL, 0xa0, false);
    carry(&client, &server, SIZE_MAX);
    server.out.data[at] ^= 0x20;
    carry(&server, &client, SIZE_MAX);
    assert_int_equal(client.failed, CHANNEL_INSECURE);
    finish(&client);
    finish(&server);
  }
}

static void other_protocols_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *hex;
    bool to_dialer;
    enum channel_result result;
  } cases[] = {
      {HEADER "036e610a", true, CHANNEL_NO_PROTOCOL},
      {HEADER "0d2f79616d75782f312e302e300a", true, CHANNEL_NO_PROTOCOL},
      {"05476574200a", true, CHANNEL_BROKEN},
      {"ffffff", true, CHANNEL_BROKEN},
      {"00", false, CHANNEL_BROKEN},
      {HEADER "022f0a 022f0a 022f0a 022f0a 022f0a 022f0a 022f0a 022f0a", false, CHANNEL_NO_PROTOCOL},
  };
  struct libp2p_identity keys;
  client_identity(&keys);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct end end;
    uint8_t bytes[128];
    size_t used;
    begin(&end, cases[i].to_dialer, &keys, NULL, 0x80, false);
    feed(&end, bytes, hex_bytes(cases[i].hex, bytes), &used);
    assert_int_equal(end.failed, cases[i].result);
    assert_non_null(end.channel.failure);
    finish(&end);
  }
}

static void a_listener_says_na_and_waits_for_a_better_proposal(void **state) {
  (void)state;
  struct libp2p_identity keys;
  struct end end;
  uint8_t bytes[128];
  size_t used;
  server_identity(&keys);
  begin(&end, false, &keys, NULL, 0x80, false);
  feed(&end, bytes, hex_bytes(HEADER "0b2f746c732f312e302e300a" NOISE, bytes), &used);
  assert_int_equal(end.out.len, 20 + 4 + 8);
  expect_out(&end, 0, HEADER "036e610a" NOISE);
  finish(&end);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_pattern_matches_the_published_vector),
      cmocka_unit_test(identities_sign_their_noise_key),
      cmocka_unit_test(payloads_are_those_of_the_vectors),
      cmocka_unit_test(the_handshake_is_that_of_the_vectors),
      cmocka_unit_test(channels_open_whatever_the_pieces),
      cmocka_unit_test(another_peer_than_expected_is_refused),
      cmocka_unit_test(a_stolen_identity_is_refused),
      cmocka_unit_test(changed_bytes_are_noticed),
      cmocka_unit_test(other_protocols_are_refused),
      cmocka_unit_test(a_listener_says_na_and_waits_for_a_better_proposal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
