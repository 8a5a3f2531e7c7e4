/* STOMP 1.2: byte-exact frames of the specification and of RabbitMQ, each also split at every byte. */
#include "wire/stomp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define BODY_MAX 64
#define TEXT(literal) view_of(literal, sizeof(literal) - 1)

static void assert_view(struct view got, const char *want) {
  if (!view_is(got, want)) fail_msg("got \"%.*s\", want \"%s\"", (int)got.len, (const char *)got.data, want);
}

/* Reads a whole frame, after every shorter prefix (each in memory of its own size) was found partial. */
static struct stomp_frame read_whole(struct view text) {
  struct stomp_frame frame;
  for (size_t cut = 0; cut < text.len; cut++) {
    uint8_t *exact = malloc(cut ? cut : 1);
    assert_non_null(exact);
    memcpy(exact, text.data, cut);
    assert_int_equal(stomp_read(exact, cut, BODY_MAX, &frame), 0);
    if (frame.kind != STOMP_PARTIAL) fail_msg("cut at %zu: kind %d", cut, frame.kind);
    free(exact);
  }
  assert_int_equal(stomp_read(text.data, text.len, BODY_MAX, &frame), text.len);
  return frame;
}

static void test_connected(void **state) {
  (void)state;
  struct stomp_frame f = read_whole(TEXT("CONNECTED\nversion:1.1\n\n\0"));
  assert_int_equal(f.kind, STOMP_CONNECTED);
  assert_view(stomp_header(&f, "version"), "1.1");
  assert_int_equal(f.body.len, 0);
  uint32_t sends_ms = 1, wants_ms = 1;
  assert_true(stomp_heart_beat(&f, &sends_ms, &wants_ms));
  assert_int_equal(sends_ms, 0);
  assert_int_equal(wants_ms, 0);

  f = read_whole(
      TEXT("CONNECTED\r\nserver:RabbitMQ/3.10.8\r\nsession:a\\b:c\r\nheart-beat:1000,2500\r\nversion:1.2\r\n\r\n\0"));
  assert_view(stomp_header(&f, "server"), "RabbitMQ/3.10.8");
  assert_view(stomp_header(&f, "session"), "a\\b:c"); /* no escapes here */
  assert_view(stomp_header(&f, "version"), "1.2");
  assert_null(stomp_header(&f, "vers").data);
  assert_true(stomp_heart_beat(&f, &sends_ms, &wants_ms));
  assert_int_equal(sends_ms, 1000);
  assert_int_equal(wants_ms, 2500);
}

static void test_message(void **state) {
  (void)state;
  struct stomp_frame f = read_whole(TEXT("MESSAGE\nsubscription:0\nmessage-id:007\ndestination:/queue/a\n"
                                         "content-type:text/plain\n\nhello queue a\0"));
  assert_int_equal(f.kind, STOMP_MESSAGE);
  assert_view(stomp_header(&f, "message-id"), "007");
  assert_view(f.body, "hello queue a");

  /* NUL in a body that has a length; the first of repeated headers counts; the colon in a value is part of it. */
  f = read_whole(TEXT("MESSAGE\nfoo:World\nfoo:Hello\ncontent-length:5\nid:T_0@@s:1\n\na\0b\0c\0"));
  assert_int_equal(f.body.len, 5);
  assert_memory_equal(f.body.data, "a\0b\0c", 5);
  assert_view(stomp_header(&f, "foo"), "World");
  assert_view(stomp_header(&f, "id"), "T_0@@s:1");
}

static void test_escapes(void **state) {
  (void)state;
  uint8_t out[64];
  struct stomp_frame f = read_whole(TEXT("MESSAGE\nnote:a\\cb\\nc\\\\d\\re\n\n\0"));
  struct view raw = stomp_header(&f, "note");
  assert_view(view_of(out, stomp_unescape(raw, out)), "a:b\nc\\d\re");
  const struct view wrong[] = {
      TEXT("MESSAGE\nnote:a\\t\n\n\0"), TEXT("MESSAGE\nnote:a\\\n\n\0"), TEXT("ERROR\nno\\te:a\n\n\0")};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_int_equal(stomp_read(wrong[i].data, wrong[i].len, BODY_MAX, &f), 0);
    assert_int_equal(f.kind, STOMP_BAD);
  }
}

static void test_receipts_and_errors(void **state) {
  (void)state;
  uint32_t number = 0;
  struct stomp_frame f = read_whole(TEXT("RECEIPT\nreceipt-id:4294967295\n\n\0"));
  assert_int_equal(f.kind, STOMP_RECEIPT);
  assert_true(stomp_number(stomp_header(&f, "receipt-id"), &number));
  assert_int_equal(number, UINT32_MAX);
  assert_false(stomp_number(view_str("4294967296"), &number));
  assert_false(stomp_number(view_str("message-12345"), &number));
  assert_false(stomp_number(view_str(""), &number));

  f = read_whole(TEXT("ERROR\nreceipt-id:message-12345\ncontent-type:text/plain\ncontent-length:32\n"
                      "message:malformed frame received\n\nThe message:\n-----\nMESSAGE\n-----\0"));
  assert_int_equal(f.kind, STOMP_ERROR);
  assert_int_equal(f.body.len, 32);
  assert_int_equal(stomp_error_of(stomp_header(&f, "message")), STOMP_ERROR_OTHER);
  assert_int_equal(stomp_error_of(view_str("Bad CONNECT")), STOMP_ERROR_CONNECT);
  assert_int_equal(stomp_error_of(view_str("access_refused")), STOMP_ERROR_ACCESS);
  assert_int_equal(stomp_error_of(view_str("Access")), STOMP_ERROR_OTHER);
  for (int32_t error = STOMP_ERROR_OTHER; error <= STOMP_ERROR_FORCED; error++)
    assert_non_null(stomp_error_text(error));
  assert_null(stomp_error_text(0));
  assert_null(stomp_error_text(STOMP_ERROR_FORCED + 1));
}

static void test_heart_beats(void **state) {
  (void)state;
  assert_int_equal(read_whole(TEXT("\n")).kind, STOMP_BEAT);
  assert_int_equal(read_whole(TEXT("\r\n")).kind, STOMP_BEAT);
  struct stomp_frame f;
  assert_int_equal(stomp_read((const uint8_t *)"\rM", 2, BODY_MAX, &f), 0);
  assert_int_equal(f.kind, STOMP_BAD);
  static const char *const wrong[] = {"heart-beat:1000", "heart-beat:,", "heart-beat:-1,0", "heart-beat:1,2,3"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    uint32_t a, b;
    char line[64];
    size_t len = strlen(wrong[i]);
    memcpy(line, wrong[i], len);
    line[len] = '\n';
    f = (struct stomp_frame){.kind = STOMP_CONNECTED, .headers = view_of(line, len + 1)};
    assert_false(stomp_heart_beat(&f, &a, &b));
  }
}

static void test_hostile(void **state) {
  (void)state;
  const struct view wrong[] = {
      TEXT("HTTP/1.1 400"),
      TEXT("MESSAGES"),
      TEXT("message\n\n\0"),
      TEXT("SEND\ndestination:/queue/a\n\n\0"),
      TEXT("MESSAGE\nno colon\n\n\0"),
      TEXT("MESSAGE\n:value\n\n\0"),
      TEXT("MESSAGE\na:\0\n\n\0"),
      TEXT("MESSAGE\ncontent-length:65\n\n"),
      TEXT("MESSAGE\ncontent-length:x\n\n"),
      TEXT("MESSAGE\ncontent-length:-1\n\n"),
      TEXT("MESSAGE\ncontent-length:1\n\nab\0"),
      TEXT("MESSAGE\n\n12345678901234567890123456789012345678901234567890123456789012345"),
  };
  struct stomp_frame f;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_int_equal(stomp_read(wrong[i].data, wrong[i].len, BODY_MAX, &f), 0);
    if (f.kind != STOMP_BAD) fail_msg("case %zu is kind %d", i, f.kind);
  }
  /* A head without an end. */
  uint8_t *endless = malloc(STOMP_HEAD_MAX + 1);
  assert_non_null(endless);
  memset(endless, 'a', STOMP_HEAD_MAX + 1);
  memcpy(endless, "MESSAGE\n", 8);
  assert_int_equal(stomp_read(endless, STOMP_HEAD_MAX - 1, BODY_MAX, &f), 0);
  assert_int_equal(f.kind, STOMP_PARTIAL);
  assert_int_equal(stomp_read(endless, STOMP_HEAD_MAX + 1, BODY_MAX, &f), 0);
  assert_int_equal(f.kind, STOMP_BAD);
  free(endless);
}

static void assert_written(const uint8_t *out, const uint8_t *end, struct view want) {
  assert_int_equal(end - out, want.len);
  assert_memory_equal(out, want.data, want.len);
}

static void test_writing(void **state) {
  (void)state;
  uint8_t out[STOMP_WRITE_MAX];
  struct stomp_connect connect = {.host = view_str("stomp.github.org"), .sends_ms = 0, .wants_ms = 30000};
  uint8_t *end = stomp_end(stomp_write_connect(out, &connect));
  assert_written(out, end, TEXT("CONNECT\naccept-version:1.2\nhost:stomp.github.org\nheart-beat:0,30000\n\n\0"));
  connect.login = view_str("al:ice");
  connect.passcode = view_str("won\\der");
  end = stomp_end(stomp_write_connect(out, &connect));
  assert_written(out, end,
      TEXT("CONNECT\naccept-version:1.2\nhost:stomp.github.org\nlogin:al:ice\npasscode:won\\der\n"
           "heart-beat:0,30000\n\n\0"));

  struct stomp_subscribe subscribe = {.destination = view_str("/queue/foo")};
  end = stomp_end(stomp_write_subscribe(out, &subscribe));
  assert_written(out, end, TEXT("SUBSCRIBE\nid:0\ndestination:/queue/foo\nack:auto\nreceipt:s0\n\n\0"));
  subscribe = (struct stomp_subscribe){view_str("/queue/foo"), 7, true, true, 100};
  end = stomp_end(stomp_write_subscribe(out, &subscribe));
  assert_written(out, end,
      TEXT("SUBSCRIBE\nid:7\ndestination:/queue/foo\nack:client-individual\nprefetch-count:100\nauto-delete:true\n"
           "receipt:s7\n\n\0"));
  end = stomp_end(stomp_write_ack(out, view_str("T_0@@session-a\\cb@@1")));
  assert_written(out, end, TEXT("ACK\nid:T_0@@session-a\\cb@@1\n\n\0"));
  assert_written(out, stomp_end(stomp_write_disconnect(out)), TEXT("DISCONNECT\n\n\0"));

  struct stomp_send send = {.destination = view_str("/queue/a:b\\c\r\n"),
      .content_type = view_str("text/plain"),
      .body_len = 3,
      .has_receipt = true,
      .receipt = UINT32_MAX};
  end = stomp_write_send(out, &send);
  memcpy(end, "a\0b", 3);
  end = stomp_end(end + 3);
  assert_written(out, end,
      TEXT("SEND\ndestination:/queue/a\\cb\\\\c\\r\\n\ncontent-type:text/plain\ncontent-length:3\n"
           "receipt:4294967295\n\na\0b\0"));
  send = (struct stomp_send){.destination = view_str("/queue/a"), .body_len = 0};
  end = stomp_end(stomp_write_send(out, &send));
  assert_written(out, end, TEXT("SEND\ndestination:/queue/a\ncontent-length:0\n\n\0"));
  send.auto_delete = true;
  end = stomp_end(stomp_write_send(out, &send));
  assert_written(out, end, TEXT("SEND\ndestination:/queue/a\ncontent-length:0\nauto-delete:true\n\n\0"));
}

static void test_bounds_of_writing(void **state) {
  (void)state;
  char longest[STOMP_HEADER_MAX];
  memset(longest, ':', sizeof longest);
  struct view value = view_of(longest, sizeof longest);
  uint8_t *out = malloc(STOMP_WRITE_MAX); /* of its own size, for the sanitizer */
  assert_non_null(out);
  struct stomp_connect connect = {value, value, value, UINT32_MAX, UINT32_MAX};
  assert_true(stomp_write_connect(out, &connect) - out < STOMP_WRITE_MAX);
  struct stomp_send send = {value, value, UINT32_MAX, true, true, UINT32_MAX};
  struct stomp_subscribe subscribe = {value, UINT32_MAX, true, true, UINT32_MAX};
  assert_true(stomp_write_send(out, &send) - out < STOMP_WRITE_MAX);
  assert_true(stomp_write_subscribe(out, &subscribe) - out < STOMP_WRITE_MAX);
  assert_true(stomp_write_ack(out, value) - out < STOMP_WRITE_MAX);
  free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_connected),
      cmocka_unit_test(test_message),
      cmocka_unit_test(test_escapes),
      cmocka_unit_test(test_receipts_and_errors),
      cmocka_unit_test(test_heart_beats),
      cmocka_unit_test(test_hostile),
      cmocka_unit_test(test_writing),
      cmocka_unit_test(test_bounds_of_writing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
