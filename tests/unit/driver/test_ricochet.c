/* What the Ricochet driver takes for success: answers as a server gives them, and answers that only look like it. */
#include "base/base64.h"
#include "driver/ricochet_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define ANN "12D3KooWA4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeSB"
#define BEN "12D3KooWCKq9ZvccjmCqhBbPsrgpAKBHWQpgB61ruM19CyAvH1Cp"
#define HELLO_ETAG "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

static struct libp2p_identity identity = {.text = ANN};
static char recipient[1][PEER_ID_TEXT_BYTES] = {BEN};
static struct client client;

struct bench {
  struct ricochet_plan plan;
  struct ricochet_request request;
  uint8_t steps[STEPS_MAX];
};

static struct bench bench_of(enum ricochet_step step) {
  struct bench bench = {
      .plan =
          {
              .identity = &identity,
              .recipient = recipient,
              .scenario = ricochet_scenario_find("msa"),
              .payload = view_str("hello"),
              .payload_base64 = view_str("aGVsbG8="),
              .item = view_str("{\"data\":\"68656c6c6f\"}"),
              .payload_etag = HELLO_ETAG,
              .batch_size = 2,
              .documents = 3,
              .document_digits = 4,
              .clients = 1,
          },
      .request = {.client = &client, .counts = true, .number = 7},
      .steps = {(uint8_t)step},
  };
  rng_seed(&bench.plan.rng, 1);
  return bench;
}

/* The frame that a step writes. */
static struct view written(struct bench *bench) {
  struct view body;
  size_t used;
  bench->request.steps = bench->steps;
  assert_true(ricochet_step_write(&bench->plan, &bench->request));
  struct view frame = view_of(bench->plan.out.data, bench->plan.out.len);
  assert_int_equal(ricochet_read_frame(frame, &body, &used), RICOCHET_FRAME_OK);
  return body;
}

static void release(struct bench *bench) {
  buf_free(&bench->plan.out);
  buf_free(&bench->plan.scratch);
}

static int32_t judge(enum ricochet_step step, const char *answer) {
  struct bench bench = bench_of(step);
  struct ricochet_result result;
  written(&bench);
  ricochet_step_read(&bench.plan, &bench.request, view_str(answer), &result);
  assert_true(result.code == 0 || result.error.len > 0 || result.code >= 200);
  release(&bench);
  return result.code;
}

static void test_requests(void **state) {
  (void)state;
  struct bench bench = bench_of(STEP_PUT_ITEM);
  struct view body = written(&bench);
  assert_true(view_is(body, "{\"operation\":\"PUT\",\"ownerPeerId\":\"" ANN "\",\"path\":\"bench/coll-w0\","
                            "\"key\":\"item-7\",\"body\":\"eyJkYXRhIjoiNjg2NTZjNmM2ZiJ9\"}"));
  release(&bench);
  bench = bench_of(STEP_CREATE_MAILBOX);
  body = written(&bench);
  assert_true(view_is(body, "{\"operationType\":\"createMailbox\",\"ownerPeerId\":\"" ANN
                            "\",\"folderPath\":\"bench/mbox-w0-7\",\"mailboxType\":\"private\"}"));
  release(&bench);
  bench = bench_of(STEP_SUBMIT);
  body = written(&bench);
  assert_true(view_is(ricochet_unquoted(ricochet_member(body, "recipientPeerId")), BEN));
  assert_true(view_is(ricochet_unquoted(ricochet_member(body, "senderPeerId")), ANN));
  assert_int_equal(ricochet_unquoted(ricochet_member(body, "messageId")).len, UUID_TEXT);
  assert_int_equal(bench.request.message_id[14], '4');
  release(&bench);
}

static void test_statuses(void **state) {
  (void)state;
  assert_int_equal(judge(STEP_GET_DOCUMENT, "{\"status\":200,\"headers\":{},\"body\":\"aGVsbG8=\"}"), 0);
  assert_int_equal(judge(STEP_GET_DOCUMENT, "{\"status\":404}"), 404);
  assert_int_equal(judge(STEP_GET_DOCUMENT, "{\"status\":200,\"headers\":{},\"body\":\"aGVsbG9v\"}"), FINDING_CONTENT);
  assert_int_equal(judge(STEP_GET_DOCUMENT, "{\"status\":200}"), FINDING_CONTENT);
  assert_int_equal(judge(STEP_GET_DOCUMENT, "{\"body\":\"aGVsbG8=\"}"), FINDING_MALFORMED);
  assert_int_equal(judge(STEP_GET_DOCUMENT, "{"), FINDING_MALFORMED);
  assert_int_equal(judge(STEP_PUT_DOCUMENT, "{\"status\":201,\"headers\":{\"ETag\":\"" HELLO_ETAG "\"}}"), 0);
  assert_int_equal(judge(STEP_PUT_DOCUMENT, "{\"status\":201,\"headers\":{\"ETag\":\"sha256:0\"}}"), FINDING_CONTENT);
  assert_int_equal(judge(STEP_APPEND, "{\"status\":201,\"headers\":{\"X-Sequence\":3}}"), 0);
  assert_int_equal(judge(STEP_APPEND, "{\"status\":201,\"headers\":{}}"), FINDING_MALFORMED);
  assert_int_equal(judge(STEP_APPEND, "{\"status\":507,\"headers\":{\"Error\":\"feed is full\"}}"), 507);
  assert_int_equal(judge(STEP_CREATE_MAILBOX, "{\"success\":true}"), 0);
  assert_int_equal(judge(STEP_CREATE_MAILBOX, "{\"success\":false,\"errorMessage\":\"x\"}"), FINDING_NO_STATUS);
  assert_int_equal(judge(STEP_SUBMIT, "{\"messageId\":\"another\",\"success\":true}"), FINDING_CONTENT);
  assert_int_equal(judge(STEP_SUBMIT, "{\"messageId\":\"\",\"success\":false,\"status\":507}"), 507);
  assert_int_equal(
      judge(STEP_QUERY, "{\"status\":200,\"data\":{\"items\":[{\"content\":{\"data\":\"68656c6c6f\"}}]}}"), 0);
  assert_int_equal(
      judge(STEP_QUERY, "{\"status\":200,\"data\":{\"items\":[{\"content\":{\"data\":\"6\"}}]}}"), FINDING_CONTENT);
  assert_int_equal(judge(STEP_QUERY, "{\"status\":200,\"data\":{\"items\":[]}}"), FINDING_CONTENT);
  /* An empty page of a mailbox is success for the original, and none here. */
  struct bench bench = bench_of(STEP_RETRIEVE);
  struct ricochet_result result;
  written(&bench);
  static const char empty[] = "\0\0\0\x22{\"hasMore\":false,\"messageCount\":0}";
  ricochet_step_read(&bench.plan, &bench.request, view_of(empty, sizeof empty - 1), &result);
  assert_int_equal(result.code, FINDING_CONTENT);
  release(&bench);
}

static void test_hints(void **state) {
  (void)state;
  struct bench bench = bench_of(STEP_GET_DOCUMENT);
  struct ricochet_result result;
  written(&bench);
  ricochet_step_read(&bench.plan, &bench.request,
      view_str("{\"status\":503,\"headers\":{\"Error\":\"server at capacity\",\"Retry-After-Ms\":250}}"), &result);
  assert_int_equal(result.code, 503);
  assert_int_equal(result.hint_ms, 250);
  assert_true(view_is(result.error, "server at capacity"));
  release(&bench);
}

/* {"status":200,"headers":{...},"body":"<base64 of text>"} */
static void answer(char out[2048], const char *headers, const char *text) {
  char base64[1400];
  char *end = base64_encode(BASE64_STANDARD, base64, (const uint8_t *)text, strlen(text));
  snprintf(out, 2048, "{\"status\":200,\"headers\":{%s},\"body\":\"%.*s\"}", headers, (int)(end - base64), base64);
}

static void test_batches(void **state) {
  (void)state;
  char text[2048];
  struct bench bench = bench_of(STEP_WRITE_VAULT);
  struct ricochet_result result;
  written(&bench);
  answer(text, "", "{\"results\":[{\"path\":\"a\",\"status\":201},{\"path\":\"b\",\"status\":200}]}");
  assert_false(ricochet_step_read(&bench.plan, &bench.request, view_str(text), &result)); /* two of three */
  assert_int_equal(result.code, 0);
  assert_int_equal(result.items, 2);
  written(&bench);
  assert_int_equal(bench.request.batch, 1);
  answer(text, "", "{\"results\":[{\"path\":\"c\",\"status\":413}]}");
  assert_true(ricochet_step_read(&bench.plan, &bench.request, view_str(text), &result));
  assert_int_equal(result.code, 413);
  assert_int_equal(result.items, 0);
  answer(text, "", "{\"results\":[]}");
  ricochet_step_read(&bench.plan, &bench.request, view_str(text), &result);
  assert_int_equal(result.code, FINDING_CONTENT);
  release(&bench);
}

#define LISTED(number) "{\"path\":\"bench/sync/w0/p0/doc-000" number "\",\"contentHash\":\"" HELLO_ETAG "\"}"

static void test_lists(void **state) {
  (void)state;
  char text[2048];
  struct bench bench = bench_of(STEP_LIST_VAULT);
  struct ricochet_result result;
  written(&bench);
  answer(text, "\"Has-More\":true,\"Next-Cursor\":\"next\"", "[" LISTED("0") "," LISTED("1") "]");
  assert_false(ricochet_step_read(&bench.plan, &bench.request, view_str(text), &result));
  assert_int_equal(result.items, 2);
  assert_true(view_is(ricochet_unquoted(ricochet_member(written(&bench), "listCursor")), "next"));
  answer(text, "\"Has-More\":false", "[" LISTED("2") "]");
  assert_true(ricochet_step_read(&bench.plan, &bench.request, view_str(text), &result));
  assert_int_equal(result.code, 0);
  release(&bench);
  bench = bench_of(STEP_LIST_VAULT);
  written(&bench);
  answer(text, "\"Has-More\":false", "[" LISTED("0") "," LISTED("2") "]");
  assert_true(ricochet_step_read(&bench.plan, &bench.request, view_str(text), &result));
  assert_int_equal(result.code, FINDING_CONTENT);
  answer(text, "\"Has-More\":false", "[{\"path\":\"bench/sync/w0/p0/doc-0000\",\"contentHash\":\"sha256:0\"}]");
  assert_true(ricochet_step_read(&bench.plan, &bench.request, view_str(text), &result));
  assert_int_equal(result.code, FINDING_CONTENT);
  /* A server that always has more, and never anything new. */
  answer(text, "\"Has-More\":true,\"Next-Cursor\":\"x\"", "[]");
  assert_true(ricochet_step_read(&bench.plan, &bench.request, view_str(text), &result));
  assert_int_equal(result.code, FINDING_MALFORMED);
  release(&bench);
}

static void test_scenarios(void **state) {
  (void)state;
  static const char *const names[] = {"msa", "maa", "sda", "sfa", "sca", "mma", "mixed", "sda-batch", "msa-batch",
      "sync-cold", "sync-warm", "sync-noop"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    assert_non_null(ricochet_scenario_find(names[i]));
  assert_null(ricochet_scenario_find("private"));
  for (uint64_t i = 0; i < 12; i++)
    assert_int_not_equal(ricochet_scenario_mixed(i)->steps[0], STEP_END);
  for (int i = 0; i < OPERATIONS_KNOWN; i++)
    assert_non_null(operation_names[i].name);
  assert_null(operation_names[OPERATIONS_KNOWN].name);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_requests),
      cmocka_unit_test(test_statuses),
      cmocka_unit_test(test_hints),
      cmocka_unit_test(test_batches),
      cmocka_unit_test(test_lists),
      cmocka_unit_test(test_scenarios),
  };
  return cmocka_run_group_tests_name("driver.ricochet", tests, NULL, NULL);
}
