#include "server/ricochet_service.h"

#include "base/base64.h"
#include "server/metrics.h"
#include "server/ricochet_call.h"
#include "wire/peer_id.h"

#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#define STORE_SAMPLE_CALLS 256 /* the file's size is looked up once in so many */
#define SHED_HINT_MS 50

const int32_t ricochet_outcomes[RICOCHET_OUTCOMES] = {0, RICOCHET_OK, RICOCHET_CREATED, RICOCHET_DELETED,
    RICOCHET_NOT_MODIFIED, RICOCHET_BAD_REQUEST, RICOCHET_FORBIDDEN, RICOCHET_NOT_FOUND, RICOCHET_CONFLICT,
    RICOCHET_TOO_LARGE, RICOCHET_RATE_LIMITED, RICOCHET_INTERNAL, RICOCHET_OVERLOADED, RICOCHET_FULL};

void ricochet_limits_defaults(struct ricochet_limits *out) {
  *out = (struct ricochet_limits){
      .max_messages = 1000,
      .retention_days = 30,
      .mailboxes_each = 100,
      .mailboxes = 100000,
      .feed_entries = 10000,
      .in_flight = 1000,
      .storage_bytes = UINT64_C(10) * 1000 * 1000 * 1000,
      .waiting_bytes = UINT64_C(256) << 20,
  };
}

/* --- fields --- */

json_t *ricochet_field(const json_t *object, const char *name) {
  json_t *value = json_object_get(object, name);
  const char *key;
  if (value || !object) return value;
  json_object_foreach((json_t *)object, key, value) {
    if (strcasecmp(key, name) == 0) return value;
  }
  return NULL;
}

static struct view text_of(const json_t *value) {
  if (!json_is_string(value)) return (struct view){NULL, 0};
  return view_of(json_string_value(value), json_string_length(value));
}

struct view ricochet_text(const json_t *object, const char *name) {
  return text_of(ricochet_field(object, name));
}

int64_t ricochet_number(const json_t *object, const char *name, int64_t otherwise) {
  const json_t *value = ricochet_field(object, name);
  return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool ricochet_truth(const json_t *object, const char *name) {
  return json_is_true(ricochet_field(object, name));
}

bool ricochet_bytes(struct ricochet_call *call, const json_t *object, const char *name, struct view *out) {
  struct view text = ricochet_text(object, name);
  size_t len = 0;
  *out = (struct view){NULL, 0};
  uint8_t *bytes = arena_alloc(&call->arena, text.len / 4 * 3 + 1);
  if (!bytes || !base64_decode(BASE64_STANDARD, text, bytes, &len)) return false;
  *out = view_of(bytes, len);
  return true;
}

struct view ricochet_request_header(const struct ricochet_call *call, const char *name) {
  return ricochet_text(ricochet_field(call->request, "headers"), name);
}

struct view ricochet_keep(struct ricochet_call *call, struct view text) {
  const char *copy = arena_text(&call->arena, text.data ? (const void *)text.data : "", text.len);
  return copy ? view_of(copy, text.len) : (struct view){NULL, 0};
}

/* The byte behind a string that begins at `at`; len when it has no end. */
static size_t behind_string(struct view json, size_t at) {
  for (at++; at < json.len && json.data[at] != '"'; at++) {
    if (json.data[at] == '\\') at++;
  }
  return at < json.len ? at + 1 : json.len;
}

bool ricochet_is_modest(struct view json) {
  size_t depth = 0, values = 1;
  for (size_t at = 0; at < json.len;) {
    uint8_t c = json.data[at];
    at = c == '"' ? behind_string(json, at) : at + 1;
    if (c == '[' || c == '{') depth++;
    if ((c == ']' || c == '}') && depth > 0) depth--;
    values += c == '[' || c == '{' || c == ',';
    if (depth > RICOCHET_JSON_DEPTH_MAX || values > RICOCHET_JSON_VALUES_MAX) return false;
  }
  return true;
}

bool ricochet_is_peer_id(struct view text) {
  struct peer_id id;
  return peer_id_parse(text, &id);
}

bool ricochet_is_path(struct view path) {
  if (path.len == 0 || path.len > 256 || path.data[0] == '/') return false;
  for (size_t i = 0; i < path.len; i++) {
    uint8_t c = path.data[i];
    bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!fine && c != '-' && c != '_' && c != '/') return false;
  }
  return true;
}

void ricochet_etag(struct view content, char out[RICOCHET_ETAG_BYTES]) {
  uint8_t digest[32] = {0};
  EVP_Digest(content.data ? content.data : (const uint8_t *)"", content.len, digest, NULL, EVP_sha256(), NULL);
  int at = snprintf(out, RICOCHET_ETAG_BYTES, "sha256:");
  for (size_t i = 0; i < sizeof digest; i++)
    at += snprintf(out + at, RICOCHET_ETAG_BYTES - (size_t)at, "%02x", digest[i]);
}

void ricochet_time(int64_t ms, char out[40]) {
  time_t seconds = (time_t)(ms / 1000);
  struct tm tm;
  char day[24];
  gmtime_r(&seconds, &tm);
  strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(out, 40, "%s.%03dZ", day, (int)(ms % 1000));
}

/* --- responses --- */

void ricochet_put_ack(
    struct ricochet_writer *w, struct view message_id, int32_t status, const char *text, int64_t hint_ms) {
  ricochet_open(w, NULL, '{');
  ricochet_put_text(w, "messageId", message_id);
  ricochet_put_bool(w, "success", text == NULL);
  if (text) ricochet_put_text(w, "errorMessage", view_str(text));
  if (text && status) ricochet_put_int(w, "status", status);
  if (hint_ms >= 0) ricochet_put_int(w, "retryAfterMs", hint_ms);
  ricochet_close(w, '}');
}

static void refuse_mail(struct ricochet_writer *w, bool access, int32_t status, const char *text, int64_t hint_ms) {
  ricochet_open(w, NULL, '{');
  if (!access) ricochet_put_bool(w, "success", false);
  ricochet_put_text(w, access ? "error" : "errorMessage", view_str(text));
  if (status) ricochet_put_int(w, "status", status);
  if (hint_ms >= 0) ricochet_put_int(w, "retryAfterMs", hint_ms);
  ricochet_close(w, '}');
}

static void refuse_store(struct ricochet_writer *w, int32_t status, const char *text, int64_t hint_ms) {
  ricochet_open(w, NULL, '{');
  ricochet_put_int(w, "status", status);
  if (text || hint_ms >= 0) {
    ricochet_open(w, "headers", '{');
    if (text) ricochet_put_text(w, "Error", view_str(text));
    if (hint_ms >= 0) ricochet_put_int(w, "Retry-After-Ms", hint_ms);
    ricochet_close(w, '}');
  }
  ricochet_close(w, '}');
}

void ricochet_refuse(struct ricochet_call *call, int32_t status, const char *text, int64_t hint_ms) {
  struct ricochet_writer w = ricochet_begin(call->out);
  call->status = status;
  switch (call->protocol) {
  case RICOCHET_SUBMIT:
    ricochet_put_ack(&w, (struct view){NULL, 0}, status, text, hint_ms);
    break;
  case RICOCHET_SUBMIT_BATCH:
    ricochet_open(&w, NULL, '{');
    ricochet_open(&w, "acks", '[');
    ricochet_put_ack(&w, (struct view){NULL, 0}, status, text, hint_ms);
    ricochet_close(&w, ']');
    ricochet_put_int(&w, "accepted", 0);
    ricochet_put_int(&w, "total", 0);
    ricochet_close(&w, '}');
    break;
  case RICOCHET_ACCESS:
  case RICOCHET_ADMIN:
    refuse_mail(&w, call->protocol == RICOCHET_ACCESS, status, text, hint_ms);
    break;
  default:
    refuse_store(&w, status, text, hint_ms);
  }
  ricochet_end(&w);
}

struct ricochet_writer ricochet_respond(struct ricochet_call *call, int32_t status) {
  struct ricochet_writer w = ricochet_begin(call->out);
  call->status = status;
  ricochet_open(&w, NULL, '{');
  ricochet_put_int(&w, "status", status);
  ricochet_open(&w, "headers", '{');
  return w;
}

void ricochet_finish(struct ricochet_call *call, struct ricochet_writer *w) {
  ricochet_close(w, '}');
  ricochet_close(w, '}');
  if (!ricochet_end(w)) ricochet_refuse(call, RICOCHET_INTERNAL, "internal error", -1);
}

void ricochet_finish_body(struct ricochet_call *call, struct ricochet_writer *w, struct view body) {
  ricochet_close(w, '}');
  ricochet_put_base64(w, "body", body);
  ricochet_close(w, '}');
  if (!ricochet_end(w)) ricochet_refuse(call, RICOCHET_INTERNAL, "internal error", -1);
}

void ricochet_finish_data(struct ricochet_call *call, struct ricochet_writer *w, struct view json) {
  ricochet_close(w, '}');
  ricochet_put_json(w, "data", json);
  ricochet_close(w, '}');
  if (!ricochet_end(w)) ricochet_refuse(call, RICOCHET_INTERNAL, "internal error", -1);
}

/* --- the order of checks --- */

/* Milliseconds until the peer may ask again; 0: now. */
static int64_t rate_wait_ms(struct ricochet_call *call, struct ricochet_peer *peer) {
  double rate = call->service->limits.rate_per_sec;
  if (rate <= 0) return 0;
  if (peer->refilled_ms == 0) peer->tokens = rate;
  double since_s = (double)(call->now_ms - peer->refilled_ms) / 1000;
  if (peer->refilled_ms != 0 && since_s > 0) peer->tokens = fmin(rate, peer->tokens + since_s * rate);
  peer->refilled_ms = call->now_ms;
  if (peer->tokens >= 1) {
    peer->tokens -= 1;
    return 0;
  }
  return (int64_t)ceil((1 - peer->tokens) / rate * 1000);
}

static const char *const writing_operations[] = {"PUT", "PATCH", "CREATE", "APPEND", "BATCH_PUT"};
#define WRITING_OPERATIONS (sizeof writing_operations / sizeof *writing_operations)

/* By the raw text, as the request is not parsed yet. */
static bool is_write(enum ricochet_protocol protocol, struct view body) {
  if (protocol == RICOCHET_SUBMIT || protocol == RICOCHET_SUBMIT_BATCH) return true;
  if (protocol == RICOCHET_ACCESS || protocol == RICOCHET_ADMIN) return false;
  for (size_t i = 0; i < WRITING_OPERATIONS; i++) {
    char word[16];
    int len = snprintf(word, sizeof word, "\"%s\"", writing_operations[i]);
    if (memmem(body.data, body.len, word, (size_t)len)) return true;
  }
  return false;
}

/* One whose operation was spelt with escapes is found after parsing. */
static bool is_write_in_disguise(const struct ricochet_call *call) {
  struct view operation = ricochet_text(call->request, "operation");
  if (call->service->store_bytes <= call->service->limits.storage_bytes) return false;
  for (size_t i = 0; i < WRITING_OPERATIONS; i++) {
    if (view_is(operation, writing_operations[i])) return true;
  }
  return false;
}

static bool is_over_budget(struct ricochet_service *service) {
  if (service->calls++ % STORE_SAMPLE_CALLS == 0) service->store_bytes = ricochet_store_bytes(service->store);
  return service->store_bytes > service->limits.storage_bytes;
}

/* True when the request was answered already. */
static bool is_refused(struct ricochet_call *call, struct ricochet_peer *peer, struct view body) {
  struct ricochet_service *service = call->service;
  char text[96];
  int64_t wait_ms = rate_wait_ms(call, peer);
  if (wait_ms > 0) {
    snprintf(text, sizeof text, "rate limit exceeded, retry after %lldms", (long long)wait_ms);
    ricochet_refuse(call, RICOCHET_RATE_LIMITED, text, wait_ms);
  } else if (service->draining) {
    ricochet_refuse(call, RICOCHET_OVERLOADED, "server is draining", -1);
  } else if (service->in_flight >= service->limits.in_flight) {
    snprintf(text, sizeof text, "server at capacity: %u requests in flight, retry after %dms", service->in_flight,
        SHED_HINT_MS);
    ricochet_refuse(call, RICOCHET_OVERLOADED, text, SHED_HINT_MS);
  } else if (service->waiting_bytes > service->limits.waiting_bytes) {
    ricochet_refuse(call, RICOCHET_OVERLOADED, "server at capacity: too many bytes wait to be read", SHED_HINT_MS);
  } else if (is_over_budget(service) && is_write(call->protocol, body)) {
    ricochet_refuse(call, RICOCHET_FULL, "storage budget exhausted", -1);
  } else {
    return false;
  }
  return true;
}

static void dispatch(struct ricochet_call *call) {
  static void (*const serve[RICOCHET_NOTIFY])(struct ricochet_call *) = {
      [RICOCHET_SUBMIT] = ricochet_serve_submit,
      [RICOCHET_SUBMIT_BATCH] = ricochet_serve_batch,
      [RICOCHET_ACCESS] = ricochet_serve_access,
      [RICOCHET_ADMIN] = ricochet_serve_admin,
      [RICOCHET_DOCUMENT] = ricochet_serve_document,
      [RICOCHET_FEED] = ricochet_serve_feed,
      [RICOCHET_COLLECTION] = ricochet_serve_collection,
  };
  serve[call->protocol](call);
}

static void parse_and_dispatch(struct ricochet_call *call, struct view body) {
  if (ricochet_is_modest(body)) {
    call->request = json_loadb((const char *)body.data, body.len, JSON_ALLOW_NUL, NULL);
  }
  if (json_is_object(call->request) && is_write_in_disguise(call)) {
    ricochet_refuse(call, RICOCHET_FULL, "storage budget exhausted", -1);
  } else if (json_is_object(call->request)) {
    dispatch(call);
  } else {
    bool batch = call->protocol == RICOCHET_SUBMIT_BATCH;
    ricochet_refuse(call, batch ? 0 : RICOCHET_BAD_REQUEST, "malformed request", -1);
  }
  json_decref(call->request);
  arena_free(&call->arena);
}

static void count_answer(const struct ricochet_call *call) {
  for (size_t i = 0; i < RICOCHET_OUTCOMES; i++) {
    if (ricochet_outcomes[i] == call->status) stat_add(&call->service->answered[call->protocol][i], 1);
  }
}

void ricochet_serve(struct ricochet_service *service, enum ricochet_protocol protocol, struct ricochet_peer *peer,
    struct view body, int64_t now_ms, struct buf *out) {
  struct ricochet_call call = {
      .service = service,
      .store = service->store,
      .protocol = protocol,
      .peer = view_str(peer->id),
      .now_ms = now_ms,
      .status = RICOCHET_OK,
      .out = out,
  };
  if (protocol >= RICOCHET_NOTIFY) return;
  if (!is_refused(&call, peer, body)) parse_and_dispatch(&call, body);
  count_answer(&call);
}
