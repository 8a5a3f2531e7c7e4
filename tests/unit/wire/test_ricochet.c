/* The frames of Ricochet against byte-exact vectors, and answers of every kind. */
#include "wire/ricochet.h"

#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define CLIENT "12D3KooWA4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeSB"
#define RECIPIENT "12D3KooWCKq9ZvccjmCqhBbPsrgpAKBHWQpgB61ruM19CyAvH1Cp"
#define MESSAGE_ID "123e4567-e89b-42d3-a456-426614174000"
#define MESSAGE_HEAD                                                                                                   \
  "{\"messageId\":\"" MESSAGE_ID "\",\"recipientPeerId\":\"" RECIPIENT "\",\"senderPeerId\":\"" CLIENT                 \
  "\",\"priority\":1,\"expiryTimestamp\":1700604800000,\"hopCount\":0,\"flags\":0,"                                    \
  "\"createdTimestamp\":1700000000000,"

static const struct ricochet_message message = {
    .message_id = {(const uint8_t *)MESSAGE_ID, 36},
    .recipient = {(const uint8_t *)RECIPIENT, 52},
    .sender = {(const uint8_t *)CLIENT, 52},
    .priority = 1,
    .expiry_ms = 1700604800000,
    .created_ms = 1700000000000,
    .payload = {(const uint8_t *)"hello", 5},
};

static void assert_view(struct view got, const char *want) {
  if (!view_is(got, want)) fail_msg("got \"%.*s\", want \"%s\"", (int)got.len, (const char *)got.data, want);
}

/* The body of the one frame in a buffer. */
static struct view body_of(const struct buf *buf) {
  struct view body;
  size_t used;
  assert_int_equal(ricochet_read_frame(view_of(buf->data, buf->len), &body, &used), RICOCHET_FRAME_OK);
  assert_int_equal(used, buf->len);
  return body;
}

static void test_submit_vector(void **state) {
  (void)state;
  struct buf buf = {0};
  struct ricochet_writer w = ricochet_begin(&buf);
  ricochet_put_message(&w, &message);
  assert_true(ricochet_end(&w));
  assert_int_equal(buf.len, 321);
  assert_memory_equal(buf.data, "\0\0\x01\x3d", 4);
  assert_view(body_of(&buf), MESSAGE_HEAD "\"payload\":\"aGVsbG8=\"}");
  uint8_t digest[32];
  char hex[65];
  assert_int_equal(EVP_Digest(buf.data, buf.len, digest, NULL, EVP_sha256(), NULL), 1);
  for (int i = 0; i < 32; i++)
    snprintf(hex + 2 * i, 3, "%02x", digest[i]);
  assert_string_equal(hex, "2a6f56273592a5fbe4ebb0ba0c7f5d0633c03611e694365560aa63d927d58071");
  buf_free(&buf);
}

static void test_ack_vector(void **state) {
  (void)state;
  struct buf buf = {0};
  struct ricochet_ack ack;
  struct ricochet_writer w = ricochet_begin(&buf);
  ricochet_open(&w, NULL, '{');
  ricochet_put_text(&w, "messageId", message.message_id);
  ricochet_put_bool(&w, "success", true);
  ricochet_close(&w, '}');
  assert_true(ricochet_end(&w));
  assert_memory_equal(buf.data, "\0\0\0\x43{\"messageId\":\"123e", 22);
  assert_true(ricochet_read_ack(body_of(&buf), &ack));
  assert_true(ack.answer.success);
  assert_int_equal(ack.answer.status, 0);
  assert_view(ack.message_id, MESSAGE_ID);
  buf_free(&buf);
}

static void test_page_vector(void **state) {
  (void)state;
  struct buf buf = {0};
  struct ricochet_message kept = message;
  kept.sequence = 1;
  kept.folder = view_str("inbox");
  struct ricochet_writer w = ricochet_begin(&buf);
  size_t part = ricochet_begin_part(&w);
  ricochet_raw(&w, view_str("{\"hasMore\":false,\"messageCount\":1}"));
  ricochet_end_part(&w, part);
  part = ricochet_begin_part(&w);
  ricochet_put_message(&w, &kept);
  ricochet_end_part(&w, part);
  assert_true(ricochet_end(&w));
  assert_memory_equal(buf.data, "\0\0\x01\x8f\0\0\0\x22", 8);
  struct ricochet_page page;
  struct view text, rest;
  assert_true(ricochet_read_page(body_of(&buf), &page));
  assert_true(page.answer.success);
  assert_false(page.has_more);
  assert_int_equal(page.count, 1);
  rest = page.messages;
  assert_true(ricochet_next_part(&rest, &text));
  assert_int_equal(text.len, 357);
  assert_view(text, MESSAGE_HEAD "\"folderPath\":\"inbox\",\"sequenceNumber\":1,\"payload\":\"aGVsbG8=\"}");
  assert_false(ricochet_next_part(&rest, &text));
  /* A message less or more than was said, or half of one, is no page. */
  for (size_t cut = 1; cut < 395; cut++)
    assert_false(ricochet_read_page(view_of(buf.data + 4, cut), &page));
  buf_free(&buf);
}

static void test_frames(void **state) {
  (void)state;
  struct view body;
  size_t used;
  assert_int_equal(ricochet_read_frame(view_of("\0\0\0", 3), &body, &used), RICOCHET_FRAME_PARTIAL);
  assert_int_equal(ricochet_read_frame(view_of("\0\0\0\0", 4), &body, &used), RICOCHET_FRAME_BAD);
  assert_int_equal(ricochet_read_frame(view_of("\0\xa0\0\x01", 4), &body, &used), RICOCHET_FRAME_BAD);
  assert_int_equal(ricochet_read_frame(view_of("\0\xa0\0\0", 4), &body, &used), RICOCHET_FRAME_PARTIAL);
  assert_int_equal(ricochet_read_frame(view_of("\0\0\0\2{}x", 7), &body, &used), RICOCHET_FRAME_OK);
  assert_int_equal(used, 6);
  assert_view(body, "{}");
}

static void test_requests(void **state) {
  (void)state;
  struct buf buf = {0};
  struct ricochet_retrieve retrieve = {.owner = view_str("P"), .max_messages = 10};
  assert_true(ricochet_write_retrieve(&buf, &retrieve));
  assert_view(body_of(&buf), "{\"peerId\":\"P\",\"maxMessages\":10}");
  buf.len = 0;
  struct ricochet_admin admin = {"createMailbox", view_str("P"), view_str("a/b"), "private"};
  assert_true(ricochet_write_admin(&buf, &admin));
  assert_view(body_of(&buf), "{\"operationType\":\"createMailbox\",\"ownerPeerId\":\"P\",\"folderPath\":\"a/b\","
                             "\"mailboxType\":\"private\"}");
  buf.len = 0;
  struct ricochet_store_request put = {.operation = "PUT",
      .owner = view_str("P"),
      .path = view_str("a"),
      .body = view_str("hi"),
      .if_match = view_str("e")};
  assert_true(ricochet_write_request(&buf, &put));
  assert_view(body_of(&buf), "{\"operation\":\"PUT\",\"ownerPeerId\":\"P\",\"path\":\"a\","
                             "\"headers\":{\"If-Match\":\"e\"},\"body\":\"aGk=\"}");
  buf.len = 0;
  struct ricochet_writer w = ricochet_open_batch_put(&buf, view_str("P"));
  ricochet_put_batch_item(&w, view_str("x"), view_str("1"));
  ricochet_put_batch_item(&w, view_str("y"), view_str("2"));
  assert_true(ricochet_close_batch(&w));
  assert_view(body_of(&buf), "{\"operation\":\"BATCH_PUT\",\"ownerPeerId\":\"P\",\"batchDocuments\":["
                             "{\"path\":\"x\",\"body\":\"MQ==\"},{\"path\":\"y\",\"body\":\"Mg==\"}]}");
  buf.len = 0;
  w = ricochet_open_batch_submit(&buf);
  assert_true(ricochet_close_batch(&w));
  assert_view(body_of(&buf), "{\"messages\":[]}");
  buf_free(&buf);
}

static void test_escapes(void **state) {
  (void)state;
  struct buf buf = {0};
  struct ricochet_writer w = ricochet_begin(&buf);
  ricochet_put_text(&w, NULL, view_str("a\"\\\n<&>\x01z"));
  assert_true(ricochet_end(&w));
  assert_view(body_of(&buf), "\"a\\\"\\\\\\n\\u003c\\u0026\\u003e\\u0001z\"");
  buf_free(&buf);
}

static void test_refusals(void **state) {
  (void)state;
  struct ricochet_ack ack;
  struct ricochet_page page;
  struct ricochet_answer answer;
  assert_true(ricochet_read_ack(
      view_str("{\"messageId\":\"\",\"success\":false,\"errorMessage\":\"mailbox full\",\"status\":507}"), &ack));
  assert_false(ack.answer.success);
  assert_int_equal(ack.answer.status, RICOCHET_FULL);
  assert_int_equal(ack.answer.retry_after_ms, -1);
  assert_view(ack.answer.error, "mailbox full");
  assert_true(ricochet_read_page(view_str("{\"error\":\"busy\",\"status\":503,\"retryAfterMs\":1000}"), &page));
  assert_false(page.answer.success);
  assert_int_equal(page.answer.status, 503);
  assert_int_equal(page.answer.retry_after_ms, 1000);
  assert_true(ricochet_read_admin(view_str("{\"SUCCESS\":true}"), &answer));
  assert_true(answer.success);
  assert_false(ricochet_read_admin(view_str("{\"success\":1}"), &answer));
  assert_false(ricochet_read_admin(view_str("[]"), &answer));
  assert_false(ricochet_read_ack(view_str("{\"success\":true"), &ack));
}

static void test_batch_acks(void **state) {
  (void)state;
  struct ricochet_batch_ack ack;
  assert_true(ricochet_read_batch_ack(view_str("{\"acks\":[{\"messageId\":\"a\",\"success\":true},{\"messageId\":\"\","
                                               "\"success\":false,\"status\":507,\"errorMessage\":\"full\"}],"
                                               "\"accepted\":1,\"total\":2}"),
      &ack));
  assert_int_equal(ack.accepted, 1);
  assert_int_equal(ack.total, 2);
  assert_int_equal(ack.acks, 2);
  assert_false(ack.answer.success);
  assert_int_equal(ack.answer.status, 507);
  assert_false(ricochet_read_batch_ack(view_str("{\"acks\":[],\"accepted\":0,\"total\":0}"), &ack));
}

static void test_responses(void **state) {
  (void)state;
  struct ricochet_response r;
  int64_t number;
  assert_true(ricochet_read_response(
      view_str("{\"status\":200,\"headers\":{\"ETag\":\"sha256:00\",\"Version\":3},\"body\":\"aGk=\"}"), &r));
  assert_true(r.answer.success);
  assert_view(ricochet_header(r.headers, "etag"), "sha256:00");
  assert_true(ricochet_whole(ricochet_header(r.headers, "Version"), &number));
  assert_int_equal(number, 3);
  assert_view(r.body, "aGk=");
  assert_true(ricochet_read_response(
      view_str("{\"status\":503,\"headers\":{\"Error\":\"server at capacity\",\"Retry-After-Ms\":250}}"), &r));
  assert_false(r.answer.success);
  assert_int_equal(r.answer.retry_after_ms, 250);
  assert_view(r.answer.error, "server at capacity");
  assert_true(ricochet_read_response(view_str("{\"status\":404}"), &r));
  assert_false(r.answer.success);
  assert_false(ricochet_read_response(view_str("{\"body\":\"\"}"), &r));
}

static void test_names(void **state) {
  (void)state;
  assert_string_equal(ricochet_status_name(507), "mailbox_full");
  assert_null(ricochet_status_name(418));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_submit_vector),
      cmocka_unit_test(test_ack_vector),
      cmocka_unit_test(test_page_vector),
      cmocka_unit_test(test_frames),
      cmocka_unit_test(test_requests),
      cmocka_unit_test(test_escapes),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_batch_acks),
      cmocka_unit_test(test_responses),
      cmocka_unit_test(test_names),
  };
  return cmocka_run_group_tests_name("wire.ricochet", tests, NULL, NULL);
}
