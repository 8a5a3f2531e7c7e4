#include "base/base64.h"
#include "base/clock.h"
#include "driver/ricochet_internal.h"
#include "wire/json_scan.h"

#include <inttypes.h>
#include <stdio.h>

#define EXPIRY_MS INT64_C(604800000) /* seven days */
#define PATH_ROOM 96
#define RETRIEVE_MESSAGES 10

static const struct ricochet_scenario scenarios[] = {
    {"msa", {0}, {STEP_SUBMIT}, 0},
    {"maa", {STEP_SUBMIT_SELF}, {STEP_RETRIEVE}, 100},
    {"sda", {0}, {STEP_PUT_DOCUMENT, STEP_GET_DOCUMENT}, 0},
    {"sfa", {STEP_CREATE_FEED}, {STEP_APPEND, STEP_GET_ENTRY}, 0},
    {"sca", {STEP_CREATE_COLLECTION}, {STEP_PUT_ITEM, STEP_QUERY}, 0},
    {"mma", {0}, {STEP_CREATE_MAILBOX, STEP_DELETE_MAILBOX}, 0},
    {"mixed", {STEP_SUBMIT_SELF, STEP_CREATE_FEED, STEP_CREATE_COLLECTION}, {0}, 50},
    {"sda-batch", {0}, {STEP_BATCH_PUT}, 0},
    {"msa-batch", {0}, {STEP_BATCH_SUBMIT}, 0},
    {"sync-cold", {0}, {STEP_WRITE_VAULT}, 0},
    {"sync-warm", {STEP_WRITE_VAULT}, {STEP_REWRITE_VAULT}, 0},
    {"sync-noop", {STEP_WRITE_VAULT}, {STEP_LIST_VAULT}, 0},
    {"mail-cycle", {0}, {STEP_SUBMIT_SELF, STEP_RETRIEVE_ONE, STEP_MARK_DELIVERED}, 1},
};

const struct ricochet_scenario *ricochet_scenario_find(const char *name) {
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
    if (strcmp(scenarios[i].name, name) == 0) return &scenarios[i];
  }
  return NULL;
}

const struct ricochet_scenario *ricochet_scenario_mixed(uint64_t random) {
  return &scenarios[random % 6];
}

static const struct {
  enum operation_kind operation;
  enum ricochet_protocol protocol;
} steps[] = {
    [STEP_SUBMIT] = {OPERATION_SUBMIT, RICOCHET_SUBMIT},
    [STEP_SUBMIT_SELF] = {OPERATION_SUBMIT, RICOCHET_SUBMIT},
    [STEP_BATCH_SUBMIT] = {OPERATION_BATCH_SUBMIT, RICOCHET_SUBMIT_BATCH},
    [STEP_RETRIEVE] = {OPERATION_RETRIEVE, RICOCHET_ACCESS},
    [STEP_RETRIEVE_ONE] = {OPERATION_RETRIEVE, RICOCHET_ACCESS},
    [STEP_MARK_DELIVERED] = {OPERATION_MARK_DELIVERED, RICOCHET_ACCESS},
    [STEP_PUT_DOCUMENT] = {OPERATION_PUT_DOCUMENT, RICOCHET_DOCUMENT},
    [STEP_GET_DOCUMENT] = {OPERATION_GET_DOCUMENT, RICOCHET_DOCUMENT},
    [STEP_BATCH_PUT] = {OPERATION_BATCH_PUT, RICOCHET_DOCUMENT},
    [STEP_WRITE_VAULT] = {OPERATION_BATCH_PUT, RICOCHET_DOCUMENT},
    [STEP_REWRITE_VAULT] = {OPERATION_BATCH_PUT, RICOCHET_DOCUMENT},
    [STEP_LIST_VAULT] = {OPERATION_LIST, RICOCHET_DOCUMENT},
    [STEP_CREATE_FEED] = {OPERATION_CREATE_FEED, RICOCHET_FEED},
    [STEP_APPEND] = {OPERATION_APPEND, RICOCHET_FEED},
    [STEP_GET_ENTRY] = {OPERATION_GET_ENTRY, RICOCHET_FEED},
    [STEP_CREATE_COLLECTION] = {OPERATION_CREATE_COLLECTION, RICOCHET_COLLECTION},
    [STEP_PUT_ITEM] = {OPERATION_PUT_ITEM, RICOCHET_COLLECTION},
    [STEP_QUERY] = {OPERATION_QUERY, RICOCHET_COLLECTION},
    [STEP_CREATE_MAILBOX] = {OPERATION_CREATE_MAILBOX, RICOCHET_ADMIN},
    [STEP_DELETE_MAILBOX] = {OPERATION_DELETE_MAILBOX, RICOCHET_ADMIN},
};

enum operation_kind ricochet_step_operation(enum ricochet_step step) {
  return steps[step].operation;
}

enum ricochet_protocol ricochet_step_protocol(enum ricochet_step step) {
  return steps[step].protocol;
}

const char *ricochet_code_text(int32_t code) {
  static const char *const findings[] = {
      [FINDING_NO_STATUS] = "refused_without_status",
      [FINDING_CONTENT] = "wrong_content",
      [FINDING_MALFORMED] = "malformed_answer",
      [FINDING_STREAM_RESET] = "stream_reset",
      [FINDING_NO_PROTOCOL] = "protocol_not_spoken",
      [FINDING_TOO_LARGE] = "request_too_large",
      [FINDING_INSECURE] = "handshake_refused",
  };
  if (code > 0 && (size_t)code < sizeof findings / sizeof *findings) return findings[code];
  return ricochet_status_name(code);
}

/* --- writing --- */

static struct view self_of(const struct ricochet_plan *plan, const struct ricochet_request *request) {
  return view_str(plan->identity[request->client->index].text);
}

static void make_uuid(struct rng *rng, char out[UUID_TEXT + 1]) {
  uint64_t a = rng_next(rng), b = rng_next(rng);
  snprintf(out, UUID_TEXT + 1, "%08x-%04x-4%03x-%04x-%012" PRIx64, (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
      (unsigned)(a & 0xfff), (unsigned)(0x8000 | (b >> 48 & 0x3fff)), b & UINT64_C(0xffffffffffff));
}

static void put_message(
    struct ricochet_plan *plan, struct ricochet_request *request, struct ricochet_writer *w, struct view recipient) {
  int64_t now_ms = clock_wall_ms();
  make_uuid(&plan->rng, request->message_id);
  struct ricochet_message message = {
      .message_id = view_of(request->message_id, UUID_TEXT),
      .recipient = recipient,
      .sender = self_of(plan, request),
      .priority = 1,
      .expiry_ms = now_ms + EXPIRY_MS,
      .created_ms = now_ms,
      .payload = plan->payload,
  };
  ricochet_put_message(w, &message);
}

static bool write_submit(struct ricochet_plan *plan, struct ricochet_request *request, bool to_self) {
  struct view recipient = to_self ? self_of(plan, request) : view_str(plan->recipient[request->client->index]);
  struct ricochet_writer w = ricochet_begin(&plan->out);
  put_message(plan, request, &w, recipient);
  return ricochet_end(&w);
}

static bool write_batch_submit(struct ricochet_plan *plan, struct ricochet_request *request) {
  struct ricochet_writer w = ricochet_open_batch_submit(&plan->out);
  request->batch = plan->batch_size;
  for (uint32_t i = 0; i < request->batch; i++)
    put_message(plan, request, &w, view_str(plan->recipient[request->client->index]));
  return ricochet_close_batch(&w);
}

static bool write_mark_delivered(struct ricochet_plan *plan, struct ricochet_request *request) {
  struct ricochet_writer w = ricochet_begin(&plan->out);
  ricochet_open(&w, NULL, '{');
  ricochet_put_text(&w, "operationType", view_str("markDelivered"));
  ricochet_open(&w, "messageIds", '[');
  ricochet_put_text(&w, NULL, view_of(request->message_id, UUID_TEXT));
  ricochet_close(&w, ']');
  ricochet_close(&w, '}');
  return ricochet_end(&w);
}

static bool write_retrieve(struct ricochet_plan *plan, struct ricochet_request *request) {
  struct ricochet_retrieve retrieve = {.owner = self_of(plan, request), .max_messages = RETRIEVE_MESSAGES};
  return ricochet_write_retrieve(&plan->out, &retrieve);
}

static bool write_admin(struct ricochet_plan *plan, struct ricochet_request *request, bool create) {
  char folder[PATH_ROOM];
  snprintf(folder, sizeof folder, "bench/mbox-w%u-%" PRId64, request->client->index, request->number);
  struct ricochet_admin admin = {
      .operation = create ? "createMailbox" : "deleteMailbox",
      .owner = self_of(plan, request),
      .folder = view_str(folder),
      .type = create ? "private" : NULL,
  };
  return ricochet_write_admin(&plan->out, &admin);
}

/* The documents of a vault, or of one batch request. */
static bool write_documents(struct ricochet_plan *plan, struct ricochet_request *request, enum ricochet_step step) {
  char folder[PATH_ROOM - 24], path[PATH_ROOM];
  uint32_t worker = request->client->index, left = plan->documents - request->at;
  struct view body = plan->payload;
  int64_t pass = step == STEP_REWRITE_VAULT ? 0 : request->number;
  if (step == STEP_BATCH_PUT) {
    left = plan->batch_size;
    snprintf(folder, sizeof folder, "bench/batch/w%u/r%" PRId64, worker, request->number);
  } else {
    snprintf(folder, sizeof folder, "bench/sync/w%u/p%" PRId64, worker, pass);
  }
  if (step == STEP_REWRITE_VAULT) {
    plan->scratch.len = 0;
    if (!buf_append(&plan->scratch, body.data, body.len)) return false;
    plan->scratch.data[0] = (uint8_t)request->number;
    body = view_of(plan->scratch.data, plan->scratch.len);
  }
  request->batch = left < plan->batch_size ? left : plan->batch_size;
  struct ricochet_writer w = ricochet_open_batch_put(&plan->out, self_of(plan, request));
  for (uint32_t i = 0; i < request->batch; i++) {
    snprintf(path, sizeof path, "%s/doc-%0*u", folder, plan->document_digits, request->at + i);
    ricochet_put_batch_item(&w, view_str(path), body);
  }
  return ricochet_close_batch(&w);
}

/* Of documents, feeds and collections, one at a time. */
static bool write_request(struct ricochet_plan *plan, struct ricochet_request *request, enum ricochet_step step) {
  static const char *const operations[] = {
      [STEP_PUT_DOCUMENT] = "PUT",
      [STEP_GET_DOCUMENT] = "GET",
      [STEP_LIST_VAULT] = "LIST",
      [STEP_CREATE_FEED] = "CREATE",
      [STEP_APPEND] = "APPEND",
      [STEP_GET_ENTRY] = "GET",
      [STEP_CREATE_COLLECTION] = "CREATE",
      [STEP_PUT_ITEM] = "PUT",
      [STEP_QUERY] = "QUERY",
  };
  char path[PATH_ROOM], key[PATH_ROOM];
  uint32_t worker = request->client->index;
  bool document = ricochet_step_protocol(step) == RICOCHET_DOCUMENT;
  bool feed = ricochet_step_protocol(step) == RICOCHET_FEED;
  if (document) {
    snprintf(path, sizeof path, "bench/w%u/doc-%" PRId64, worker, request->number);
  } else {
    snprintf(path, sizeof path, feed ? "bench/feed-w%u" : "bench/coll-w%u", worker);
  }
  snprintf(key, sizeof key, "item-%" PRId64, request->number);
  struct ricochet_store_request r = {
      .operation = operations[step],
      .owner = self_of(plan, request),
      .path = step == STEP_LIST_VAULT ? (struct view){NULL, 0} : view_str(path),
      .cursor = step == STEP_LIST_VAULT ? view_str(request->cursor) : (struct view){NULL, 0},
      .sequence = step == STEP_GET_ENTRY ? request->entry : 0,
  };
  if (step == STEP_PUT_DOCUMENT || step == STEP_APPEND) r.body = plan->payload;
  if (step == STEP_APPEND) r.entry_type = "bench";
  if (step == STEP_CREATE_FEED) r.title = "Bench Feed", r.description = "stress test";
  if (step == STEP_CREATE_COLLECTION) r.name = "Bench Collection";
  if (step == STEP_PUT_ITEM) r.key = view_str(key), r.body = plan->item;
  return ricochet_write_request(&plan->out, &r);
}

bool ricochet_step_write(struct ricochet_plan *plan, struct ricochet_request *request) {
  enum ricochet_step step = (enum ricochet_step)request->steps[request->index];
  plan->out.len = 0;
  switch (step) {
  case STEP_SUBMIT:
  case STEP_SUBMIT_SELF:
    return write_submit(plan, request, step == STEP_SUBMIT_SELF);
  case STEP_BATCH_SUBMIT:
    return write_batch_submit(plan, request);
  case STEP_RETRIEVE:
  case STEP_RETRIEVE_ONE:
    return write_retrieve(plan, request);
  case STEP_MARK_DELIVERED:
    return write_mark_delivered(plan, request);
  case STEP_CREATE_MAILBOX:
  case STEP_DELETE_MAILBOX:
    return write_admin(plan, request, step == STEP_CREATE_MAILBOX);
  case STEP_BATCH_PUT:
  case STEP_WRITE_VAULT:
  case STEP_REWRITE_VAULT:
    return write_documents(plan, request, step);
  default:
    return write_request(plan, request, step);
  }
}

/* --- reading --- */

static void take_answer(struct ricochet_result *out, const struct ricochet_answer *answer) {
  out->hint_ms = answer->retry_after_ms;
  out->error = answer->error;
  if (answer->success) return;
  out->code = answer->status > 0 ? answer->status : FINDING_NO_STATUS;
}

static void find(struct ricochet_result *out, enum ricochet_finding finding, const char *text) {
  out->code = (int32_t)finding;
  out->error = view_str(text);
}

static void read_ack(const struct ricochet_request *request, struct view body, struct ricochet_result *out) {
  struct ricochet_ack ack;
  if (!ricochet_read_ack(body, &ack)) {
    find(out, FINDING_MALFORMED, "malformed submit ack");
    return;
  }
  take_answer(out, &ack.answer);
  if (out->code == 0 && !view_is(ack.message_id, request->message_id)) {
    find(out, FINDING_CONTENT, "ack of another message");
  }
}

static void read_batch_ack(const struct ricochet_request *request, struct view body, struct ricochet_result *out) {
  struct ricochet_batch_ack ack;
  if (!ricochet_read_batch_ack(body, &ack)) {
    find(out, FINDING_MALFORMED, "malformed batch ack");
    return;
  }
  take_answer(out, &ack.answer);
  out->items = ack.accepted <= request->batch ? ack.accepted : 0;
  if (out->code == 0 && (ack.accepted != request->batch || ack.acks != request->batch)) {
    find(out, FINDING_CONTENT, "batch ack that does not count every message");
  }
}

static void read_page(const struct ricochet_plan *plan, const struct ricochet_request *request, struct view body,
    bool one, struct ricochet_result *out) {
  struct ricochet_page page;
  struct view part;
  bool found = !one;
  if (!ricochet_read_page(body, &page)) {
    find(out, FINDING_MALFORMED, "malformed page of a mailbox");
    return;
  }
  take_answer(out, &page.answer);
  if (out->code != 0) return;
  while (ricochet_next_part(&page.messages, &part)) {
    bool same = view_equal(ricochet_unquoted(ricochet_member(part, "payload")), plan->payload_base64);
    found |= view_is(ricochet_unquoted(ricochet_member(part, "messageId")), request->message_id);
    out->items += same;
  }
  if (!one && out->items < RETRIEVE_MESSAGES) find(out, FINDING_CONTENT, "fewer messages than the mailbox holds");
  if (!found) find(out, FINDING_CONTENT, "the message is not in its mailbox");
}

static void read_count(struct view body, const char *name, struct ricochet_result *out) {
  struct ricochet_answer answer;
  if (!ricochet_read_admin(body, &answer)) {
    find(out, FINDING_MALFORMED, "malformed answer of the mailbox");
    return;
  }
  take_answer(out, &answer);
  if (out->code == 0 && name && !view_is(ricochet_member(body, name), "1")) {
    find(out, FINDING_CONTENT, "the message was not marked as delivered");
  }
}

/* The base64 body of a response, decoded into scratch. */
static bool decode(struct ricochet_plan *plan, struct view text, struct view *out) {
  size_t len;
  plan->scratch.len = 0;
  uint8_t *bytes = buf_reserve(&plan->scratch, text.len / 4 * 3 + 1);
  if (!bytes || !base64_decode(BASE64_STANDARD, text, bytes, &len)) return false;
  *out = view_of(bytes, len);
  return true;
}

/* Each of the documents has a status of its own. */
static void read_results(
    struct ricochet_plan *plan, const struct ricochet_request *request, struct view text, struct ricochet_result *out) {
  struct view body, element;
  uint32_t count = 0;
  int64_t status, failed = 0;
  if (!decode(plan, text, &body)) {
    find(out, FINDING_MALFORMED, "results of a batch that are no base64");
    return;
  }
  struct scan_walk walk = scan_array(ricochet_member(body, "results"));
  while (scan_next_element(&walk, &element)) {
    if (!ricochet_whole(ricochet_member(element, "status"), &status)) status = 0;
    bool fine = status == RICOCHET_OK || status == RICOCHET_CREATED;
    if (!fine && failed == 0) failed = status > 0 && status < 1000 ? status : FINDING_NO_STATUS;
    out->items += fine;
    count++;
  }
  if (failed != 0) {
    out->code = (int32_t)failed;
    out->error = view_str("a document of the batch was refused");
  } else if (walk.bad || count != request->batch) {
    find(out, FINDING_CONTENT, "a batch with other results than documents");
  }
}

/* A page of the own documents: each must be one of the vault's, in order, with its hash. */
static void read_list(struct ricochet_plan *plan, struct ricochet_request *request,
    const struct ricochet_response *response, struct ricochet_result *out) {
  struct view body, element, cursor = ricochet_header(response->headers, "Next-Cursor");
  char path[PATH_ROOM];
  if (!decode(plan, response->body, &body)) {
    find(out, FINDING_MALFORMED, "a list that is no base64");
    return;
  }
  struct scan_walk walk = scan_array(body);
  while (scan_next_element(&walk, &element)) {
    snprintf(path, sizeof path, "bench/sync/w%u/p0/doc-%0*u", request->client->index, plan->document_digits,
        request->at + out->items);
    if (!view_is(ricochet_unquoted(ricochet_member(element, "path")), path)) break;
    if (!view_is(ricochet_unquoted(ricochet_member(element, "contentHash")), plan->payload_etag)) break;
    out->items++;
  }
  request->at += out->items;
  bool more = view_is(ricochet_header(response->headers, "Has-More"), "true");
  snprintf(request->cursor, sizeof request->cursor, "%.*s", more ? (int)cursor.len : 0, (const char *)cursor.data);
  if (walk.bad || (more && (out->items == 0 || cursor.len == 0 || cursor.len >= CURSOR_MAX))) {
    find(out, FINDING_MALFORMED, "a list without an end");
  } else if (!more && request->at != plan->documents) {
    find(out, FINDING_CONTENT, "a list that lacks documents");
  }
}

/* Every item of the collection holds the same content. */
static void read_query(const struct ricochet_plan *plan, struct view data, struct ricochet_result *out) {
  struct scan_walk walk = scan_array(ricochet_member(data, "items"));
  struct view element, stored = ricochet_member(plan->item, "data");
  while (scan_next_element(&walk, &element)) {
    if (!view_equal(ricochet_member(ricochet_member(element, "content"), "data"), stored)) {
      find(out, FINDING_CONTENT, "content that is not what was stored");
      return;
    }
    out->items++;
  }
  if (walk.bad || out->items == 0) find(out, FINDING_CONTENT, "a query that found nothing");
}

static void check_content(struct ricochet_plan *plan, struct ricochet_request *request, enum ricochet_step step,
    const struct ricochet_response *r, struct ricochet_result *out) {
  switch (step) {
  case STEP_PUT_DOCUMENT:
    if (!view_is(ricochet_header(r->headers, "ETag"), plan->payload_etag)) {
      find(out, FINDING_CONTENT, "an ETag that is not the document's hash");
    }
    break;
  case STEP_GET_DOCUMENT:
  case STEP_GET_ENTRY:
    if (!view_equal(r->body, plan->payload_base64)) find(out, FINDING_CONTENT, "content that is not what was stored");
    break;
  case STEP_APPEND:
    if (!ricochet_whole(ricochet_header(r->headers, "X-Sequence"), &request->entry) || request->entry < 1) {
      find(out, FINDING_MALFORMED, "an entry without its sequence");
    }
    break;
  case STEP_BATCH_PUT:
  case STEP_WRITE_VAULT:
  case STEP_REWRITE_VAULT:
    read_results(plan, request, r->body, out);
    break;
  case STEP_LIST_VAULT:
    read_list(plan, request, r, out);
    break;
  case STEP_QUERY:
    read_query(plan, r->data, out);
    break;
  default:
    break;
  }
}

static void read_response(struct ricochet_plan *plan, struct ricochet_request *request, enum ricochet_step step,
    struct view body, struct ricochet_result *out) {
  struct ricochet_response response;
  if (!ricochet_read_response(body, &response)) {
    find(out, FINDING_MALFORMED, "malformed response");
    return;
  }
  take_answer(out, &response.answer);
  if (out->code == 0) check_content(plan, request, step, &response, out);
}

/* A step of several operations goes on until all is done. */
static bool is_over(const struct ricochet_plan *plan, struct ricochet_request *request, enum ricochet_step step) {
  switch (step) {
  case STEP_SUBMIT_SELF:
    return request->counts || ++request->at >= plan->scenario->setup_messages;
  case STEP_WRITE_VAULT:
  case STEP_REWRITE_VAULT:
    request->at += request->batch;
    return request->at >= plan->documents;
  case STEP_LIST_VAULT:
    return request->cursor[0] == '\0';
  default:
    return true;
  }
}

bool ricochet_step_read(
    struct ricochet_plan *plan, struct ricochet_request *request, struct view body, struct ricochet_result *out) {
  enum ricochet_step step = (enum ricochet_step)request->steps[request->index];
  *out = (struct ricochet_result){.hint_ms = -1};
  switch (ricochet_step_protocol(step)) {
  case RICOCHET_SUBMIT:
    read_ack(request, body, out);
    break;
  case RICOCHET_SUBMIT_BATCH:
    read_batch_ack(request, body, out);
    break;
  case RICOCHET_ACCESS:
    if (step == STEP_MARK_DELIVERED) {
      read_count(body, "updatedCount", out);
    } else {
      read_page(plan, request, body, step == STEP_RETRIEVE_ONE, out);
    }
    break;
  case RICOCHET_ADMIN:
    read_count(body, NULL, out);
    break;
  default:
    read_response(plan, request, step, body, out);
  }
  return out->code != 0 || is_over(plan, request, step);
}
