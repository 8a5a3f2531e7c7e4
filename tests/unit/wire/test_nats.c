/* Byte-exact examples of the NATS client protocol's documentation, each also split at every byte. */
#include "wire/nats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PAYLOAD_MAX 1024

static void assert_view(struct view got, const char *want) {
  if (!view_is(got, want)) fail_msg("got \"%.*s\", want \"%s\"", (int)got.len, (const char *)got.data, want);
}

/* Reads a whole message, after every shorter prefix (each in memory of its own size) was found partial. */
static struct nats_message read_whole(const char *text) {
  size_t len = strlen(text);
  struct nats_message message;
  for (size_t cut = 0; cut < len; cut++) {
    uint8_t *copy = malloc(cut + 1);
    assert_non_null(copy);
    memcpy(copy, text, cut);
    uint8_t *exact = realloc(copy, cut ? cut : 1);
    assert_non_null(exact);
    assert_int_equal(nats_read(exact, cut, PAYLOAD_MAX, &message), 0);
    if (message.kind != NATS_PARTIAL) fail_msg("cut at %zu of \"%s\": kind %d", cut, text, message.kind);
    free(exact);
  }
  assert_int_equal(nats_read((const uint8_t *)text, len, PAYLOAD_MAX, &message), len);
  return message;
}

static void test_msg(void **state) {
  (void)state;
  struct nats_message m = read_whole("MSG FOO.BAR 9 11\r\nHello World\r\n");
  assert_int_equal(m.kind, NATS_MSG);
  assert_view(m.subject, "FOO.BAR");
  assert_int_equal(m.sid, 9);
  assert_int_equal(m.reply.len, 0);
  assert_int_equal(m.headers.len, 0);
  assert_view(m.payload, "Hello World");

  m = read_whole("MSG FOO.BAR 9 GREETING.34 11\r\nHello World\r\n");
  assert_view(m.reply, "GREETING.34");
  assert_view(m.payload, "Hello World");

  m = read_whole("msg\tNOTIFY  1 0\r\n\r\n");
  assert_int_equal(m.kind, NATS_MSG);
  assert_view(m.subject, "NOTIFY");
  assert_int_equal(m.payload.len, 0);
}

static void test_hmsg(void **state) {
  (void)state;
  struct nats_message m = read_whole("HMSG FOO.BAR 9 34 45\r\nNATS/1.0\r\nFoodGroup: vegetable\r\n\r\nHello World\r\n");
  assert_int_equal(m.kind, NATS_MSG);
  assert_view(m.headers, "NATS/1.0\r\nFoodGroup: vegetable\r\n\r\n");
  assert_view(m.payload, "Hello World");
  assert_int_equal(nats_status(m.headers), 0);

  m = read_whole("HMSG FOO.BAR 9 BAZ.69 34 45\r\nNATS/1.0\r\nFoodGroup: vegetable\r\n\r\nHello World\r\n");
  assert_view(m.reply, "BAZ.69");

  m = read_whole("HMSG _INBOX.1 3 16 16\r\nNATS/1.0 503\r\n\r\n\r\n");
  assert_int_equal(nats_status(m.headers), 503);
  assert_int_equal(m.payload.len, 0);
}

static void test_others(void **state) {
  (void)state;
  assert_int_equal(read_whole("PING\r\n").kind, NATS_PING);
  assert_int_equal(read_whole("PONG\r\n").kind, NATS_PONG);
  assert_int_equal(read_whole("+OK\r\n").kind, NATS_OK);
  struct nats_message m = read_whole("-ERR 'Unknown Protocol Operation'\r\n");
  assert_int_equal(m.kind, NATS_ERROR);
  assert_view(m.text, "Unknown Protocol Operation");
  m = read_whole("INFO {\"server_id\":\"Zk0GQ3\",\"version\":\"1.2.0\",\"proto\":1,\"go\":\"go1.10.3\",\"host\":"
                 "\"0.0.0.0\",\"port\":4222,\"max_payload\":1048576,\"client_id\":2392} \r\n");
  struct nats_info info;
  assert_int_equal(m.kind, NATS_INFO);
  assert_true(nats_read_info(m.text, &info));
  assert_string_equal(info.version, "1.2.0");
  assert_int_equal(info.max_payload, 1048576);
  assert_false(info.headers || info.jetstream || info.auth_required || info.tls_required);
  assert_true(nats_read_info(view_str("{\"headers\":true,\"jetstream\":true,\"auth_required\":true,"
                                      "\"tls_required\":true,\"tls_available\":true,\"connect_urls\":[\"a\",\"b\"]}"),
      &info));
  assert_true(info.headers && info.jetstream && info.auth_required && info.tls_required && info.tls_available);
  assert_false(nats_read_info(view_str("{\"headers\":true"), &info));
  assert_false(nats_read_info(view_str("no"), &info));
}

static void test_bad(void **state) {
  (void)state;
  static const char *const texts[] = {"HTTP/1.1 400 Bad Request\r\n", "\r\n", "MSG a 1\r\n", "MSG a 1 b c 5\r\n",
      "MSG a x 5\r\nHello\r\n", "MSG a 1 -5\r\n", "MSG a 1 1025\r\n", "MSG a 1 99999999999999999999\r\n",
      "MSG a 1 5\r\nHelloXX", "HMSG a 1 12 5\r\n", "HMSG a 1 5\r\n", "MSG a 4294967296 0\r\n\r\n",
      "MSG a b c d e f g\r\n", "+OKAY\r\n", "PUB a 1\r\nx\r\n"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    struct nats_message m;
    assert_int_equal(nats_read((const uint8_t *)texts[i], strlen(texts[i]), PAYLOAD_MAX, &m), 0);
    if (m.kind != NATS_BAD) fail_msg("taken: \"%s\"", texts[i]);
  }
  uint8_t *endless = malloc(NATS_LINE_MAX);
  struct nats_message m;
  assert_non_null(endless);
  memset(endless, 'a', NATS_LINE_MAX);
  nats_read(endless, NATS_LINE_MAX - 1, PAYLOAD_MAX, &m);
  assert_int_equal(m.kind, NATS_PARTIAL);
  nats_read(endless, NATS_LINE_MAX, PAYLOAD_MAX, &m);
  assert_int_equal(m.kind, NATS_BAD);
  free(endless);
}

static void assert_publish(struct nats_publish publish, const char *payload, const char *want) {
  publish.payload_len = strlen(payload);
  size_t room = nats_publish_size(&publish);
  uint8_t *out = malloc(room);
  assert_non_null(out);
  uint8_t *at = nats_write_publish(out, &publish);
  memcpy(at, payload, publish.payload_len);
  at = nats_end(at + publish.payload_len);
  assert_true((size_t)(at - out) <= room);
  assert_view(view_of(out, (size_t)(at - out)), want);
  free(out);
}

static void test_writing(void **state) {
  (void)state;
  assert_publish((struct nats_publish){.subject = view_str("FOO")}, "Hello NATS!", "PUB FOO 11\r\nHello NATS!\r\n");
  assert_publish((struct nats_publish){.subject = view_str("FRONT.DOOR"), .reply = view_str("JOKE.22")}, "Knock Knock",
      "PUB FRONT.DOOR JOKE.22 11\r\nKnock Knock\r\n");
  assert_publish((struct nats_publish){.subject = view_str("NOTIFY")}, "", "PUB NOTIFY 0\r\n\r\n");
  struct view bar = view_str("NATS/1.0\r\nBar: Baz\r\n\r\n");
  assert_publish((struct nats_publish){.subject = view_str("FOO"), .headers = bar}, "Hello NATS!",
      "HPUB FOO 22 33\r\nNATS/1.0\r\nBar: Baz\r\n\r\nHello NATS!\r\n");
  struct view breakfast = view_str("NATS/1.0\r\nBREAKFAST: donut\r\nLUNCH: burger\r\n\r\n");
  assert_publish(
      (struct nats_publish){.subject = view_str("FRONT.DOOR"), .reply = view_str("JOKE.22"), .headers = breakfast},
      "Knock Knock",
      "HPUB FRONT.DOOR JOKE.22 45 56\r\nNATS/1.0\r\nBREAKFAST: donut\r\nLUNCH: burger\r\n\r\nKnock Knock\r\n");

  uint8_t out[NATS_SUBJECT_MAX + 32];
  uint8_t *end = nats_write_subscribe(out, view_str("FOO"), (struct view){0}, 1);
  assert_view(view_of(out, (size_t)(end - out)), "SUB FOO 1\r\n");
  end = nats_write_subscribe(out, view_str("BAR"), view_str("G1"), 44);
  assert_view(view_of(out, (size_t)(end - out)), "SUB BAR G1 44\r\n");
}

static void test_errors(void **state) {
  (void)state;
  assert_int_equal(nats_error_of(view_str("Authorization Violation")), NATS_ERROR_AUTHORIZATION);
  assert_int_equal(nats_error_of(view_str("Slow Consumer")), NATS_ERROR_SLOW_CONSUMER);
  assert_int_equal(nats_error_of(view_str("maximum connections exceeded")), NATS_ERROR_CONNECTIONS);
  assert_int_equal(nats_error_of(view_str("Permissions Violation for Publish to \"a.b\"")), NATS_ERROR_PERMISSIONS);
  assert_int_equal(nats_error_of(view_str("Slow")), NATS_ERROR_OTHER);
  assert_int_equal(nats_error_of(view_str("")), NATS_ERROR_OTHER);
  assert_string_equal(nats_error_text(NATS_ERROR_SLOW_CONSUMER), "Slow Consumer");
  for (int32_t error = NATS_ERROR_OTHER; error <= NATS_ERROR_SHUTDOWN; error++)
    assert_non_null(nats_error_text(error));
  assert_null(nats_error_text(0));
  assert_null(nats_error_text(NATS_ERROR_SHUTDOWN + 1));
}

static void test_puback(void **state) {
  (void)state;
  struct nats_puback ack;
  assert_true(nats_read_puback(view_str("{\"stream\":\"ORDERS\",\"seq\":42}"), &ack));
  assert_int_equal(ack.sequence, 42);
  assert_int_equal(ack.error, 0);
  assert_false(ack.duplicate);
  assert_true(nats_read_puback(view_str("{\"stream\":\"ORDERS\",\"seq\":1,\"duplicate\":true}"), &ack));
  assert_true(ack.duplicate);
  assert_true(
      nats_read_puback(view_str("{\"error\":{\"code\":503,\"err_code\":10077,\"description\":\"maximum messages "
                                "exceeded\"},\"stream\":\"ORDERS\",\"seq\":0}"),
          &ack));
  assert_int_equal(ack.error, 10077);
  assert_true(nats_read_puback(view_str("{\"error\":{\"code\":503,\"description\":\"no\"}}"), &ack));
  assert_int_equal(ack.error, 503);
  assert_false(nats_read_puback(view_str("{\"stream\":\"ORDERS\"}"), &ack));
  assert_false(nats_read_puback(view_str("{\"error\":{}}"), &ack));
  assert_false(nats_read_puback(view_str("{\"error\":7}"), &ack));
  assert_false(nats_read_puback(view_str("-"), &ack));
  assert_false(nats_read_puback(view_str(""), &ack));
}

static void test_deliveries(void **state) {
  (void)state;
  struct nats_delivery delivery;
  assert_true(nats_read_delivery(view_str("$JS.ACK.orders.c-1.3.22.5.1700000000.17"), &delivery));
  assert_int_equal(delivery.deliveries, 3);
  assert_int_equal(delivery.left, 17);
  /* The newer form, with and without the token at its end. */
  assert_true(nats_read_delivery(view_str("$JS.ACK._.ACCOUNT.orders.c-1.2.22.5.1700000000.9.x"), &delivery));
  assert_int_equal(delivery.deliveries, 2);
  assert_int_equal(delivery.left, 9);
  assert_true(nats_read_delivery(view_str("$JS.ACK.hub.ACCOUNT.orders.c-1.1.22.5.1700000000.0"), &delivery));
  assert_int_equal(delivery.deliveries, 1);
  static const char *const others[] = {"", "$JS.ACK.", "_INBOX.a.b.c.d.e.f.g.h", "$JS.ACK.a.b.1.2.3.4",
      "$JS.ACK.a.b.1.2.3.4.5.6", "$JS.ACK.a.b.x.2.3.4.5", "$JS.ACK.a.b.1.2.3.4.", "$JS.ACK.a.b.1.2.3.4.5.6.7.8.9.10.11",
      "$JS.ACK.a.b.1.2.3.4.123456789012345678901"};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (nats_read_delivery(view_str(others[i]), &delivery)) fail_msg("%s", others[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_msg),
      cmocka_unit_test(test_hmsg),
      cmocka_unit_test(test_others),
      cmocka_unit_test(test_bad),
      cmocka_unit_test(test_writing),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_puback),
      cmocka_unit_test(test_deliveries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
