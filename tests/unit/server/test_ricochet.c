/* The Ricochet peer without a transport: requests as JSON, answers read as a client reads them. */
#include "base/base64.h"
#include "server/ricochet_service.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define ANN "12D3KooWA4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeSB"
#define BEN "12D3KooWCKq9ZvccjmCqhBbPsrgpAKBHWQpgB61ruM19CyAvH1Cp"
#define NOW_MS 1700000000000
#define HELLO_ETAG "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

struct house {
  char folder[64];
  struct ricochet_service service;
  struct ricochet_peer ann, ben;
  struct buf out;
  int64_t now_ms;
  char arrived[128], request[8192];
};

static void on_arrived(void *context, struct view owner, struct view folder) {
  struct house *house = context;
  snprintf(house->arrived, sizeof house->arrived, "%.*s %.*s", (int)owner.len, (const char *)owner.data,
      (int)folder.len, (const char *)folder.data);
}

static void open_store(struct house *house) {
  struct err err;
  if (ricochet_store_open(&house->service.store, house->folder, true, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static int set_up(void **state) {
  struct house *house = calloc(1, sizeof *house);
  assert_non_null(house);
  snprintf(house->folder, sizeof house->folder, "/tmp/muster-ricochet-XXXXXX");
  assert_non_null(mkdtemp(house->folder));
  open_store(house);
  ricochet_limits_defaults(&house->service.limits);
  house->service.arrived = on_arrived;
  house->service.context = house;
  house->now_ms = NOW_MS;
  snprintf(house->ann.id, sizeof house->ann.id, "%s", ANN);
  snprintf(house->ben.id, sizeof house->ben.id, "%s", BEN);
  *state = house;
  return 0;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info, (void)kind, (void)where;
  return remove(path);
}

static int tear_down(void **state) {
  struct house *house = *state;
  ricochet_store_close(house->service.store);
  nftw(house->folder, remove_entry, 4, FTW_DEPTH | FTW_PHYS);
  buf_free(&house->out);
  free(house);
  return 0;
}

/* The answer's body, which lives until the next call. */
static struct view ask_as(struct house *house, struct ricochet_peer *peer, enum ricochet_protocol protocol) {
  struct view body;
  size_t used;
  house->out.len = 0;
  ricochet_serve(&house->service, protocol, peer, view_str(house->request), house->now_ms, &house->out);
  assert_int_equal(ricochet_read_frame(view_of(house->out.data, house->out.len), &body, &used), RICOCHET_FRAME_OK);
  assert_int_equal(used, house->out.len);
  return body;
}

#define ASK(house, who, protocol, ...)                                                                                 \
  (snprintf((house)->request, sizeof(house)->request, __VA_ARGS__), ask_as(house, &(house)->who, protocol))
#define ask(house, protocol, ...) ASK(house, ann, protocol, __VA_ARGS__)
#define ask_ben(house, protocol, ...) ASK(house, ben, protocol, __VA_ARGS__)

static void assert_view(struct view got, const char *want) {
  if (!view_is(got, want)) fail_msg("got \"%.*s\", want \"%s\"", (int)got.len, (const char *)got.data, want);
}

/* Numbers of a response must be numbers: a typed client takes no texts for them. */
static void assert_holds(struct view json, const char *part) {
  if (json.len == 0 || !memmem(json.data, json.len, part, strlen(part)))
    fail_msg("\"%.*s\" does not hold \"%s\"", (int)json.len, (const char *)json.data, part);
}

static struct ricochet_response read_response(struct view body, int32_t status) {
  struct ricochet_response response;
  if (!ricochet_read_response(body, &response)) fail_msg("no response: %.*s", (int)body.len, (const char *)body.data);
  if (response.answer.status != status) {
    fail_msg("status %d, want %d: %.*s", response.answer.status, status, (int)body.len, (const char *)body.data);
  }
  return response;
}

static void assert_answered(const struct house *house, enum ricochet_protocol protocol, int32_t status, uint64_t want) {
  uint64_t count = 0;
  for (size_t i = 0; i < RICOCHET_OUTCOMES; i++) {
    if (ricochet_outcomes[i] == status) count += house->service.answered[protocol][i];
  }
  assert_int_equal(count, want);
}

static void assert_ack(struct view body, int32_t status) {
  struct ricochet_ack ack;
  assert_true(ricochet_read_ack(body, &ack));
  assert_int_equal(ack.answer.status, status);
  assert_int_equal(ack.answer.success, status == 0);
}

#define SUBMIT(id, recipient, more)                                                                                    \
  "{\"messageId\":\"" id "\",\"recipientPeerId\":\"" recipient "\",\"senderPeerId\":\"" ANN                            \
  "\",\"priority\":1,\"createdTimestamp\":1,\"payload\":\"aGVsbG8=\"" more "}"

static void test_mail(void **state) {
  struct house *house = *state;
  struct ricochet_page page;
  struct view part;
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("a", BEN, "")), 0);
  assert_string_equal(house->arrived, BEN " inbox");
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("b", BEN, ",\"persistent\":true")), 0);
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("b", BEN, "")), RICOCHET_INTERNAL); /* the id is taken */
  assert_true(ricochet_read_page(ask_ben(house, RICOCHET_ACCESS, "{\"peerId\":\"" BEN "\",\"maxMessages\":1}"), &page));
  assert_true(page.has_more);
  assert_int_equal(page.count, 1);
  assert_true(ricochet_next_part(&page.messages, &part));
  assert_view(ricochet_unquoted(ricochet_member(part, "messageId")), "a");
  assert_view(ricochet_member(part, "sequenceNumber"), "1");
  assert_view(ricochet_unquoted(ricochet_member(part, "payload")), "aGVsbG8=");
  /* Reading removes nothing; delivered ones go, persistent ones are seen. */
  assert_view(
      ask_ben(house, RICOCHET_ACCESS, "{\"operationType\":\"markDelivered\",\"messageIds\":[\"a\",\"b\",\"x\"]}"),
      "{\"success\":true,\"updatedCount\":2}");
  assert_true(ricochet_read_page(ask_ben(house, RICOCHET_ACCESS, "{\"peerId\":\"" BEN "\"}"), &page));
  assert_int_equal(page.count, 1);
  assert_true(ricochet_next_part(&page.messages, &part));
  assert_view(ricochet_member(part, "messageFlags"), "1");
  assert_view(ask_ben(house, RICOCHET_ACCESS, "{\"operationType\":\"updateFlags\",\"messageId\":\"b\",\"addFlags\":4}"),
      "{\"success\":true,\"newFlags\":5}");
  assert_view(
      ask_ben(house, RICOCHET_ACCESS, "{\"operationType\":\"expunge\"}"), "{\"success\":true,\"deletedCount\":1}");
  assert_view(ask(house, RICOCHET_ACCESS, "{\"operationType\":\"deleteMessages\",\"messageIds\":[\"b\"]}"),
      "{\"success\":true,\"deletedCount\":0}");
}

static void test_mail_is_refused(void **state) {
  struct house *house = *state;
  struct ricochet_page page;
  assert_ack(ask_ben(house, RICOCHET_SUBMIT, SUBMIT("a", BEN, "")), RICOCHET_FORBIDDEN); /* not the sender */
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("a", "nobody", "")), RICOCHET_INTERNAL);
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("a", BEN, ",\"expiryTimestamp\":5")), RICOCHET_BAD_REQUEST);
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("a", BEN, ",\"hopCount\":11")), RICOCHET_BAD_REQUEST);
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("a", BEN, ",\"folderPath\":\"a//b\"")), RICOCHET_BAD_REQUEST);
  assert_ack(ask(house, RICOCHET_SUBMIT, "{\"x\":"), RICOCHET_BAD_REQUEST);
  /* One's own absent mailbox is empty, another's is not there, and then not to be read. */
  assert_true(ricochet_read_page(ask(house, RICOCHET_ACCESS, "{\"peerId\":\"" ANN "\"}"), &page));
  assert_true(page.answer.success);
  assert_int_equal(page.count, 0);
  assert_true(ricochet_read_page(ask(house, RICOCHET_ACCESS, "{\"peerId\":\"" BEN "\"}"), &page));
  assert_int_equal(page.answer.status, RICOCHET_NOT_FOUND);
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("a", BEN, "")), 0);
  assert_true(ricochet_read_page(ask(house, RICOCHET_ACCESS, "{\"peerId\":\"" BEN "\"}"), &page));
  assert_int_equal(page.answer.status, RICOCHET_FORBIDDEN);
  assert_view(ask(house, RICOCHET_ACCESS, "{\"peerId\":\"?\"}"), "{\"error\":\"invalid peer ID\"}");
}

static void test_full_mailbox(void **state) {
  struct house *house = *state;
  house->service.limits.max_messages = 2;
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("a", BEN, ",\"expiryTimestamp\":1700000000500")), 0);
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("b", BEN, "")), 0);
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("c", BEN, "")), RICOCHET_FULL);
  house->now_ms += 1000; /* the first has expired and makes room */
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("c", BEN, "")), 0);
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("d", BEN, "")), RICOCHET_FULL);
  house->service.limits.mailboxes_each = 1;
  assert_ack(ask(house, RICOCHET_SUBMIT, SUBMIT("e", BEN, ",\"folderPath\":\"other\"")), RICOCHET_FULL);
}

static void test_batch(void **state) {
  struct house *house = *state;
  struct ricochet_batch_ack ack;
  assert_true(ricochet_read_batch_ack(
      ask(house, RICOCHET_SUBMIT_BATCH, "{\"messages\":[%s,%s,7]}", SUBMIT("a", BEN, ""), SUBMIT("a", BEN, "")), &ack));
  assert_int_equal(ack.total, 3);
  assert_int_equal(ack.accepted, 1);
  assert_int_equal(ack.acks, 3);
  assert_int_equal(ack.answer.status, RICOCHET_INTERNAL);
  assert_true(ricochet_read_batch_ack(ask(house, RICOCHET_SUBMIT_BATCH, "{\"messages\":[]}"), &ack));
  assert_int_equal(ack.total, 0);
  assert_false(ack.answer.success);
}

static void test_admin(void **state) {
  struct house *house = *state;
  struct ricochet_answer answer;
  struct ricochet_page page;
  const char *create = "{\"operationType\":\"createMailbox\",\"folderPath\":\"team\",\"mailboxType\":\"shared\"}";
  assert_view(ask(house, RICOCHET_ADMIN, "%s", create), "{\"success\":true}");
  assert_view(ask(house, RICOCHET_ADMIN, "%s", create), "{\"success\":true}");
  assert_true(
      ricochet_read_page(ask_ben(house, RICOCHET_ACCESS, "{\"peerId\":\"" ANN "\",\"folderPath\":\"team\"}"), &page));
  assert_int_equal(page.answer.status, RICOCHET_FORBIDDEN);
  assert_view(ask(house, RICOCHET_ADMIN,
                  "{\"operationType\":\"grantAccess\",\"folderPath\":\"team\",\"granteePeerId\":\"" BEN
                  "\",\"accessMode\":\"read_only\"}"),
      "{\"success\":true}");
  assert_true(
      ricochet_read_page(ask_ben(house, RICOCHET_ACCESS, "{\"peerId\":\"" ANN "\",\"folderPath\":\"team\"}"), &page));
  assert_true(page.answer.success);
  assert_view(ask(house, RICOCHET_ADMIN, "{\"operationType\":\"listMailboxes\"}"),
      "{\"success\":true,\"mailboxes\":[{\"folderPath\":\"team\",\"type\":\"shared\",\"maxMessages\":1000,"
      "\"retentionDays\":30,\"createdAt\":1700000000000}]}");
  assert_view(ask(house, RICOCHET_ADMIN, "{\"operationType\":\"listACL\",\"folderPath\":\"team\"}"),
      "{\"success\":true,\"acl\":[{\"peerId\":\"" BEN "\",\"accessMode\":\"readOnly\",\"grantedAt\":1700000000000}]}");
  struct view info = ask(house, RICOCHET_ADMIN, "{\"operationType\":\"getMailboxInfo\",\"folderPath\":\"team\"}");
  assert_holds(info, "\"createdAt\":1700000000000,\"lastAccessedAt\":1700000000000");
  assert_view(ask(house, RICOCHET_ADMIN, "{\"operationType\":\"deleteMailbox\",\"folderPath\":\"team\"}"),
      "{\"success\":true}");
  /* What is wrong with the arguments is refused without a status. */
  assert_view(ask(house, RICOCHET_ADMIN, "{\"operationType\":\"listACL\",\"folderPath\":\"team\"}"),
      "{\"success\":false,\"errorMessage\":\"mailbox not found\"}");
  assert_view(ask(house, RICOCHET_ADMIN, "{\"operationType\":\"createMailbox\"}"),
      "{\"success\":false,\"errorMessage\":\"folderPath is required\"}");
  assert_view(ask(house, RICOCHET_ADMIN, "{\"operationType\":\"createMailbox\",\"folderPath\":\"/team\"}"),
      "{\"success\":false,\"errorMessage\":\"invalid folder path\"}");
  assert_true(ricochet_read_admin(
      ask(house, RICOCHET_ADMIN, "{\"operationType\":\"deleteMailbox\",\"folderPath\":\"team\"}"), &answer));
  assert_int_equal(answer.status, RICOCHET_INTERNAL);
  assert_view(answer.error, "failed to delete mailbox: internal error");
  assert_true(ricochet_read_admin(
      ask(house, RICOCHET_ADMIN, "{\"operationType\":\"createMailbox\",\"ownerPeerId\":\"" BEN "\"}"), &answer));
  assert_int_equal(answer.status, RICOCHET_FORBIDDEN);
  house->service.limits.mailboxes_each = 0;
  assert_true(ricochet_read_admin(ask(house, RICOCHET_ADMIN, "%s", create), &answer));
  assert_int_equal(answer.status, RICOCHET_FULL);
  assert_answered(house, RICOCHET_ADMIN, 0, 3);
  assert_answered(house, RICOCHET_ADMIN, RICOCHET_OK, 7);
  assert_answered(house, RICOCHET_ADMIN, RICOCHET_FORBIDDEN, 1);
  assert_answered(house, RICOCHET_ADMIN, RICOCHET_INTERNAL, 1);
  assert_answered(house, RICOCHET_ADMIN, RICOCHET_FULL, 1);
  assert_answered(house, RICOCHET_ACCESS, RICOCHET_FORBIDDEN, 1);
}

#define DOC(operation, more) "{\"operation\":\"" operation "\",\"ownerPeerId\":\"" ANN "\"" more "}"

static void test_documents(void **state) {
  struct house *house = *state;
  struct ricochet_response r;
  r = read_response(ask(house, RICOCHET_DOCUMENT, DOC("PUT", ",\"path\":\"a/b\",\"body\":\"aGVsbG8=\"")), 201);
  assert_view(ricochet_header(r.headers, "ETag"), HELLO_ETAG);
  r = read_response(ask(house, RICOCHET_DOCUMENT, DOC("GET", ",\"path\":\"a/b\"")), 200);
  assert_view(r.body, "aGVsbG8=");
  assert_view(ricochet_header(r.headers, "Version"), "1");
  r = read_response(ask(house, RICOCHET_DOCUMENT, DOC("HEAD", ",\"path\":\"a/b\"")), 200);
  assert_holds(r.headers, "\"Content-Length\":5");
  read_response(
      ask(house, RICOCHET_DOCUMENT, DOC("GET", ",\"path\":\"a/b\",\"headers\":{\"If-None-Match\":\"" HELLO_ETAG "\"}")),
      304);
  /* Conditional: the wrong tag conflicts and says so, the right one replaces. */
  r = read_response(ask(house, RICOCHET_DOCUMENT,
                        DOC("PUT", ",\"path\":\"a/b\",\"body\":\"eA==\",\"headers\":{\"If-Match\":\"old\"}")),
      409);
  assert_view(ricochet_header(r.headers, "Actual-ETag"), HELLO_ETAG);
  read_response(ask(house, RICOCHET_DOCUMENT,
                    DOC("PUT", ",\"path\":\"a/b\",\"body\":\"e30=\",\"headers\":{\"if-match\":\"" HELLO_ETAG "\"}")),
      200);
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("PATCH", ",\"path\":\"a/b\",\"body\":\"eyJhIjoxfQ==\"")), 200);
  r = read_response(ask(house, RICOCHET_DOCUMENT, DOC("GET", ",\"path\":\"a/b\"")), 200);
  assert_view(r.body, "eyJhIjoxfQ==");
  read_response(ask_ben(house, RICOCHET_DOCUMENT, DOC("GET", ",\"path\":\"a/b\"")), 403);
  read_response(ask_ben(house, RICOCHET_DOCUMENT, DOC("PUT", ",\"path\":\"a/b\",\"body\":\"eA==\"")), 403);
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("PUT", ",\"path\":\"a.b\",\"body\":\"eA==\"")), 400);
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("PUT", ",\"path\":\"a\",\"body\":\"?\"")), 400);
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("DELETE", ",\"path\":\"a/b\"")), 204);
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("GET", ",\"path\":\"a/b\"")), 404);
}

static void test_document_lists(void **state) {
  struct house *house = *state;
  struct ricochet_response r = read_response(
      ask(house, RICOCHET_DOCUMENT,
          DOC("BATCH_PUT", ",\"batchDocuments\":[{\"path\":\"c\",\"body\":\"eA==\"},{\"path\":\".\",\"body\":\"\"},"
                           "{\"path\":\"b\",\"body\":\"eQ==\",\"visibility\":\"public\"}]")),
      200);
  assert_view(ricochet_header(r.headers, "Applied"), "2");
  assert_view(ricochet_header(r.headers, "Total"), "3");
  r = read_response(ask(house, RICOCHET_DOCUMENT, DOC("LIST", ",\"listLimit\":1")), 200);
  assert_view(ricochet_header(r.headers, "Has-More"), "true");
  assert_view(ricochet_header(r.headers, "Next-Cursor"), "b");
  r = read_response(ask(house, RICOCHET_DOCUMENT, DOC("LIST", ",\"listLimit\":1,\"listCursor\":\"b\"")), 200);
  assert_view(ricochet_header(r.headers, "Has-More"), "false");
  r = read_response(ask_ben(house, RICOCHET_DOCUMENT, DOC("LIST", ",\"listCursor\":\"b\"")), 200);
  assert_view(r.body, "W10="); /* []: only b is public */
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("BATCH_PUT", "")), 400);
}

static void test_feeds(void **state) {
  struct house *house = *state;
  struct ricochet_response r;
  read_response(ask(house, RICOCHET_FEED, DOC("APPEND", ",\"path\":\"f\",\"body\":\"eA==\"")), 404);
  read_response(ask(house, RICOCHET_FEED, DOC("CREATE", ",\"path\":\"f\",\"title\":\"T\"")), 201);
  r = read_response(
      ask(house, RICOCHET_FEED, DOC("APPEND", ",\"path\":\"f\",\"body\":\"aGVsbG8=\",\"entryType\":\"t\"")), 201);
  assert_view(ricochet_header(r.headers, "X-Sequence"), "1");
  assert_view(ricochet_header(r.headers, "ETag"), HELLO_ETAG);
  read_response(ask(house, RICOCHET_FEED, DOC("CREATE", ",\"path\":\"f\"")), 201); /* keeps the entries */
  r = read_response(ask_ben(house, RICOCHET_FEED, DOC("GET", ",\"path\":\"f\",\"sequenceNumber\":1")), 200);
  assert_view(r.body, "aGVsbG8=");
  assert_view(ricochet_header(r.headers, "X-Entry-Type"), "t");
  assert_holds(r.headers, "\"Created-At\":1700000000000");
  read_response(ask(house, RICOCHET_FEED, DOC("GET", ",\"path\":\"f\",\"sequenceNumber\":0")), 404);
  read_response(ask(house, RICOCHET_FEED, DOC("GET", ",\"path\":\"f\",\"sequenceNumber\":2")), 404);
  read_response(ask_ben(house, RICOCHET_FEED, DOC("APPEND", ",\"path\":\"f\",\"body\":\"eA==\"")), 403);
  house->service.limits.feed_entries = 2;
  read_response(ask(house, RICOCHET_FEED, DOC("APPEND", ",\"path\":\"f\",\"body\":\"eA==\"")), 201);
  read_response(ask(house, RICOCHET_FEED, DOC("APPEND", ",\"path\":\"f\",\"body\":\"eA==\"")), 507);
  r = read_response(ask(house, RICOCHET_FEED, DOC("GET", ",\"path\":\"f\",\"limit\":1")), 200);
  assert_view(ricochet_header(r.headers, "X-Has-More"), "true");
  assert_view(ricochet_header(r.headers, "X-Next-Sequence"), "2");
  r = read_response(ask(house, RICOCHET_FEED, DOC("GET", ",\"path\":\"f\",\"limit\":9,\"entryType\":\"t\"")), 200);
  assert_int_equal(ricochet_header(r.headers, "X-Next-Sequence").len, 0);
  uint8_t entries[512];
  size_t len;
  assert_true(base64_decode(BASE64_STANDARD, r.body, entries, &len));
  assert_view(view_of(entries, len),
      "{\"entries\":[{\"seq\":1,\"type\":\"t\",\"content\":\"aGVsbG8=\",\"hash\":\"" HELLO_ETAG
      "\",\"createdAt\":1700000000000,\"createdBy\":\"" ANN "\"}]}");
  read_response(ask(house, RICOCHET_FEED, DOC("LIST", "")), 200);
  read_response(ask(house, RICOCHET_FEED, DOC("DELETE", ",\"path\":\"f\"")), 204);
}

/* {"n":1}, {"n":2,"t":"Two"}, {"n":3} */
static void put_items(struct house *house) {
  static const char *const bodies[] = {"eyJuIjoxfQ==", "eyJuIjoyLCJ0IjoiVHdvIn0=", "eyJuIjozfQ=="};
  read_response(ask(house, RICOCHET_COLLECTION, DOC("CREATE", ",\"path\":\"c\",\"name\":\"C\"")), 201);
  for (int i = 0; i < 3; i++) {
    read_response(
        ask(house, RICOCHET_COLLECTION, DOC("PUT", ",\"path\":\"c\",\"key\":\"k%d\",\"body\":\"%s\""), i, bodies[i]),
        201);
  }
}

static void assert_keys(struct house *house, const char *filter, const char *body) {
  struct ricochet_response r =
      read_response(ask(house, RICOCHET_COLLECTION, DOC("LIST", ",\"path\":\"c\",\"filter\":%s"), filter), 200);
  assert_view(r.body, body);
}

static void test_collections(void **state) {
  struct house *house = *state;
  struct ricochet_response r;
  put_items(house);
  read_response(ask(house, RICOCHET_COLLECTION, DOC("CREATE", ",\"path\":\"c\"")), 500); /* not idempotent */
  r = read_response(ask(house, RICOCHET_COLLECTION, DOC("GET", ",\"path\":\"c\",\"key\":\"k1\"")), 200);
  assert_view(r.data, "{\"n\":2,\"t\":\"Two\"}");
  assert_holds(r.headers, "\"Created-At\":1700000000000");
  assert_holds(r.headers, "\"Updated-At\":1700000000000");
  r = read_response(ask(house, RICOCHET_COLLECTION, DOC("QUERY", ",\"path\":\"c\",\"limit\":2")), 200);
  assert_view(ricochet_header(r.headers, "X-Has-More"), "true");
  assert_view(ricochet_header(r.headers, "X-Total-Count"), "3");
  assert_view(ricochet_header(r.headers, "Next-Cursor"), "azE");
  assert_holds(r.data, "\"version\":1,\"updatedAt\":1700000000000}");
  r = read_response(ask(house, RICOCHET_COLLECTION, DOC("LIST", ",\"path\":\"c\",\"cursor\":\"azE\"")), 200);
  assert_view(r.body, "eyJrZXlzIjpbImsyIl19"); /* {"keys":["k2"]} */
  assert_int_equal(ricochet_header(r.headers, "X-Total-Count").len, 0);
  r = read_response(
      ask(house, RICOCHET_COLLECTION, DOC("PUT", ",\"path\":\"c\",\"key\":\"k1\",\"body\":\"MQ==\"")), 200);
  assert_view(ricochet_header(r.headers, "X-Version"), "2");
  read_response(ask(house, RICOCHET_COLLECTION, DOC("PUT", ",\"path\":\"c\",\"key\":\"k9\",\"body\":\"eA==\"")), 400);
  read_response(ask(house, RICOCHET_COLLECTION, DOC("PUT", ",\"path\":\"none\",\"key\":\"k\",\"body\":\"MQ==\"")), 404);
  read_response(ask_ben(house, RICOCHET_COLLECTION, DOC("QUERY", ",\"path\":\"c\"")), 403);
  read_response(ask(house, RICOCHET_COLLECTION, DOC("DELETE", ",\"path\":\"c\",\"key\":\"k1\"")), 204);
  r = read_response(ask(house, RICOCHET_COLLECTION, DOC("GET", ",\"path\":\"c\"")), 200);
  assert_view(ricochet_header(r.headers, "X-Record-Count"), "2");
  read_response(ask(house, RICOCHET_COLLECTION, DOC("DELETE", ",\"path\":\"c\"")), 204);
}

static void test_filters(void **state) {
  struct house *house = *state;
  put_items(house);
  assert_keys(house, "{}", "eyJrZXlzIjpbImswIiwiazEiLCJrMiJdfQ==");                     /* k0 k1 k2 */
  assert_keys(house, "{\"n\":2}", "eyJrZXlzIjpbImsxIl19");                              /* k1 */
  assert_keys(house, "{\"n\":{\"$gt\":1,\"$lte\":3}}", "eyJrZXlzIjpbImsxIiwiazIiXX0="); /* k1 k2 */
  assert_keys(house, "{\"t\":{\"$ilike\":\"%tW_\"}}", "eyJrZXlzIjpbImsxIl19");
  assert_keys(house, "{\"$or\":[{\"n\":1},{\"n\":{\"$gte\":3}}]}", "eyJrZXlzIjpbImswIiwiazIiXX0="); /* k0 k2 */
  assert_keys(house, "{\"$and\":[{\"n\":2},{\"t\":\"x\"}]}", "eyJrZXlzIjpbXX0=");                   /* none */
  read_response(ask(house, RICOCHET_COLLECTION, DOC("LIST", ",\"path\":\"c\",\"filter\":{\"n\":{\"$no\":1}}")), 400);
  read_response(ask(house, RICOCHET_COLLECTION, DOC("LIST", ",\"path\":\"c\",\"filter\":7")), 400);
  read_response(ask(house, RICOCHET_COLLECTION, DOC("LIST", ",\"path\":\"c\",\"sortField\":\"a'b\"")), 400);
  struct ricochet_response r = read_response(
      ask(house, RICOCHET_COLLECTION, DOC("LIST", ",\"path\":\"c\",\"sortField\":\"n\",\"sortAsc\":false")), 200);
  assert_view(r.body, "eyJrZXlzIjpbImsyIiwiazEiLCJrMCJdfQ==");
}

static void test_order_of_checks(void **state) {
  struct house *house = *state;
  struct ricochet_response r;
  struct ricochet_batch_ack acks;
  house->service.limits.rate_per_sec = 2;
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("LIST", "")), 200);
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("LIST", "")), 200);
  house->service.draining = true;
  r = read_response(ask(house, RICOCHET_DOCUMENT, DOC("LIST", "")), 429); /* before draining */
  assert_int_equal(r.answer.retry_after_ms, 500);
  house->now_ms += 500;
  r = read_response(ask(house, RICOCHET_DOCUMENT, DOC("LIST", "")), 503);
  assert_int_equal(r.answer.retry_after_ms, -1);
  house->service.draining = false;
  house->service.limits.rate_per_sec = 0;
  house->service.in_flight = house->service.limits.in_flight;
  r = read_response(ask(house, RICOCHET_DOCUMENT, "no JSON"), 503); /* malformed requests are shed too */
  assert_true(r.answer.retry_after_ms > 0);
  house->service.in_flight = 0;
  house->service.waiting_bytes = house->service.limits.waiting_bytes + 1;
  r = read_response(ask(house, RICOCHET_DOCUMENT, DOC("LIST", "")), 503);
  assert_true(r.answer.retry_after_ms > 0);
  house->service.waiting_bytes = 0;
  house->service.limits.storage_bytes = 1;
  house->service.calls = 0; /* looks at the file again */
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("PUT", ",\"path\":\"a\",\"body\":\"\"")), 507);
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("\\u0050UT", ",\"path\":\"a\",\"body\":\"\"")), 507);
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("GET", ",\"path\":\"a\"")), 404); /* reading goes on */
  assert_true(ricochet_read_batch_ack(ask(house, RICOCHET_SUBMIT_BATCH, "{\"messages\":[]}"), &acks));
  assert_int_equal(acks.answer.status, 507);
}

static void test_hostile_requests(void **state) {
  struct house *house = *state;
  static const char greedy[] = "{\"peerId\":\"" ANN "\",\"maxMessages\":-1,\"fromSequence\":-9223372036854775808}";
  static const char strange[] = DOC("LIST", ",\"listLimit\":1e9,\"filter\":[]");
  static const char *const requests[] = {"[]", "7", "\"x\"", "{}", "{\"operation\":7}", "{\"operation\":\"PUT\"}",
      "{\"operationType\":null}", "{\"messages\":{}}", "{\"messages\":[null]}",
      "{\"operation\":\"QUERY\",\"ownerPeerId\":[]}", greedy, "{\"messageIds\":[1,{}]}", "\x01\xff", strange};
  for (int protocol = 0; protocol < RICOCHET_NOTIFY; protocol++) {
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
      ask(house, (enum ricochet_protocol)protocol, "%s", requests[i]);
  }
  assert_false(ricochet_store_failed(house->service.store, NULL));
}

static void add(struct buf *text, const char *part, size_t times) {
  for (size_t i = 0; i < times; i++)
    assert_true(buf_append(text, part, strlen(part)));
}

/* Asks for front, the body in base64, and what closes it. */
static struct ricochet_response ask_with(
    struct house *house, const char *front, const struct buf *body, int32_t status) {
  struct buf request = {0};
  struct view answer;
  size_t used;
  add(&request, front, 1);
  char *at = (char *)buf_reserve(&request, base64_encoded_size(body->len) + 1);
  assert_non_null(at);
  request.len += (uint32_t)(base64_encode(BASE64_STANDARD, at, body->data, body->len) - at);
  add(&request, "\"}", 1);
  house->out.len = 0;
  ricochet_serve(&house->service, RICOCHET_COLLECTION, &house->ann, view_of(request.data, request.len), house->now_ms,
      &house->out);
  buf_free(&request);
  assert_int_equal(ricochet_read_frame(view_of(house->out.data, house->out.len), &answer, &used), RICOCHET_FRAME_OK);
  return read_response(answer, status);
}

#define PUT_ITEM(key)                                                                                                  \
  "{\"operation\":\"PUT\",\"ownerPeerId\":\"" ANN "\",\"path\":\"c\",\"key\":\"" key "\",\"body\":\""

/* SQLite's JSON functions follow fewer levels than jansson: an item that they cannot read would end the store. */
static void test_deep_items(void **state) {
  struct house *house = *state;
  put_items(house);
  for (size_t depth = 400; depth <= 1600; depth += 1200) {
    struct buf item = {0};
    add(&item, "[", depth);
    add(&item, "]", depth);
    ask_with(house, PUT_ITEM("deep"), &item, depth < 500 ? 201 : 400);
    buf_free(&item);
  }
  read_response(ask(house, RICOCHET_COLLECTION, DOC("LIST", ",\"path\":\"c\",\"sortField\":\"n\"")), 200);
  assert_false(ricochet_store_failed(house->service.store, NULL));
}

/* Millions of empty values in one request would take a hundred times its bytes. */
static void test_crowded_items(void **state) {
  struct house *house = *state;
  struct buf item = {0};
  put_items(house);
  add(&item, "[{}", 1);
  add(&item, ",{}", 600000);
  add(&item, "]", 1);
  ask_with(house, PUT_ITEM("crowd"), &item, 400);
  buf_free(&item);
}

/* What compares every element with every other ends before it holds all others up. */
static void test_costly_filters(void **state) {
  struct house *house = *state;
  struct buf item = {0}, filter = {0};
  put_items(house);
  add(&item, "{\"t\":\"", 1);
  add(&item, "a", 3000);
  add(&item, "\",\"n\":[0", 1);
  add(&item, ",0", 50000);
  add(&item, ",1]}", 1);
  ask_with(house, PUT_ITEM("big"), &item, 201);
  buf_free(&item);
  add(&filter, "[1", 1);
  add(&filter, ",1", 1500);
  add(&filter, "]", 1);
  read_response(ask(house, RICOCHET_COLLECTION, DOC("LIST", ",\"path\":\"c\",\"filter\":{\"n\":{\"$contains\":%.*s}}"),
                    (int)filter.len, (const char *)filter.data),
      400);
  buf_free(&filter);
  read_response(
      ask(house, RICOCHET_COLLECTION, DOC("LIST", ",\"path\":\"c\",\"filter\":{\"n\":{\"$contains\":[1]}}")), 200);
}

/* A message that fits into a request but into no page would close its mailbox for good. */
static void test_oversized_messages(void **state) {
  struct house *house = *state;
  struct buf request = {0};
  struct ricochet_ack ack;
  struct view body;
  size_t used;
  char id[300];
  memset(id, 'x', sizeof id);
  assert_ack(ask(house, RICOCHET_SUBMIT,
                 "{\"messageId\":\"%.*s\",\"recipientPeerId\":\"" ANN "\",\"senderPeerId\":\"" ANN "\"}", 257, id),
      400);
  add(&request, "{\"messageId\":\"m\",\"recipientPeerId\":\"" ANN "\",\"senderPeerId\":\"" ANN "\",\"payload\":\"", 1);
  add(&request, "QUFBQUFBQUFBQUFB", (RICOCHET_FRAME_MAX - 1024) / 16);
  add(&request, "\"}", 1);
  house->out.len = 0;
  ricochet_serve(
      &house->service, RICOCHET_SUBMIT, &house->ann, view_of(request.data, request.len), house->now_ms, &house->out);
  buf_free(&request);
  assert_int_equal(ricochet_read_frame(view_of(house->out.data, house->out.len), &body, &used), RICOCHET_FRAME_OK);
  assert_true(ricochet_read_ack(body, &ack));
  assert_int_equal(ack.answer.status, 413);
}

static void test_durable(void **state) {
  struct house *house = *state;
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("PUT", ",\"path\":\"a\",\"body\":\"eA==\"")), 201);
  assert_true(ricochet_store_pending(house->service.store));
  assert_int_equal(ricochet_store_commit(house->service.store), STATUS_OK);
  assert_false(ricochet_store_pending(house->service.store));
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("PUT", ",\"path\":\"b\",\"body\":\"eA==\"")), 201);
  struct ricochet_store *other;
  struct err err;
  assert_int_equal(ricochet_store_open(&other, house->folder, true, &err), STATUS_IO);
  assert_non_null(strstr(err.text, "another musterd"));
  ricochet_store_close(house->service.store);
  open_store(house); /* what was committed is there, the rest is not */
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("GET", ",\"path\":\"a\"")), 200);
  read_response(ask(house, RICOCHET_DOCUMENT, DOC("GET", ",\"path\":\"b\"")), 404);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_mail),
      TEST(test_mail_is_refused),
      TEST(test_full_mailbox),
      TEST(test_batch),
      TEST(test_admin),
      TEST(test_documents),
      TEST(test_document_lists),
      TEST(test_feeds),
      TEST(test_collections),
      TEST(test_filters),
      TEST(test_order_of_checks),
      TEST(test_hostile_requests),
      TEST(test_deep_items),
      TEST(test_crowded_items),
      TEST(test_costly_filters),
      TEST(test_oversized_messages),
      TEST(test_durable),
  };
  return cmocka_run_group_tests_name("server.ricochet", tests, NULL, NULL);
}
