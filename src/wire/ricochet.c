#include "wire/ricochet.h"

#include "base/base64.h"
#include "wire/json_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const char *const protocol_ids[RICOCHET_PROTOCOLS] = {
    [RICOCHET_SUBMIT] = "/sf-network/submit/1.0.0",
    [RICOCHET_SUBMIT_BATCH] = "/sf-network/submit/batch/1.0.0",
    [RICOCHET_ACCESS] = "/sf-network/access/1.0.0",
    [RICOCHET_ADMIN] = "/sf-network/admin/1.0.0",
    [RICOCHET_DOCUMENT] = "/ricochet/store/doc/1.0.0",
    [RICOCHET_FEED] = "/ricochet/store/feed/1.0.0",
    [RICOCHET_COLLECTION] = "/ricochet/store/collection/1.0.0",
    [RICOCHET_NOTIFY] = "/ricochet/mailbox-notify/1.0.0",
};

const char *ricochet_protocol_id(enum ricochet_protocol protocol) {
  return protocol < RICOCHET_PROTOCOLS ? protocol_ids[protocol] : NULL;
}

const char *ricochet_status_name(int32_t status) {
  static const struct {
    int32_t status;
    const char *name;
  } names[] = {
      {RICOCHET_OK, "ok"},
      {RICOCHET_CREATED, "created"},
      {RICOCHET_DELETED, "deleted"},
      {RICOCHET_NOT_MODIFIED, "not_modified"},
      {RICOCHET_BAD_REQUEST, "bad_request"},
      {RICOCHET_FORBIDDEN, "forbidden"},
      {RICOCHET_NOT_FOUND, "not_found"},
      {RICOCHET_CONFLICT, "conflict"},
      {RICOCHET_TOO_LARGE, "too_large"},
      {RICOCHET_RATE_LIMITED, "rate_limited"},
      {RICOCHET_INTERNAL, "internal_error"},
      {RICOCHET_OVERLOADED, "overloaded"},
      {RICOCHET_FULL, "mailbox_full"},
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (names[i].status == status) return names[i].name;
  }
  return NULL;
}

/* --- frames --- */

static uint32_t read_u32(const uint8_t *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void write_u32(uint8_t *at, uint32_t value) {
  at[0] = (uint8_t)(value >> 24);
  at[1] = (uint8_t)(value >> 16);
  at[2] = (uint8_t)(value >> 8);
  at[3] = (uint8_t)value;
}

enum ricochet_frame ricochet_read_frame(struct view bytes, struct view *body, size_t *used) {
  if (bytes.len < RICOCHET_HEAD_BYTES) return RICOCHET_FRAME_PARTIAL;
  uint32_t len = read_u32(bytes.data);
  if (len == 0 || len > RICOCHET_FRAME_MAX) return RICOCHET_FRAME_BAD;
  if (bytes.len - RICOCHET_HEAD_BYTES < len) return RICOCHET_FRAME_PARTIAL;
  *body = view_of(bytes.data + RICOCHET_HEAD_BYTES, len);
  *used = RICOCHET_HEAD_BYTES + (size_t)len;
  return RICOCHET_FRAME_OK;
}

/* What is longer than a frame is given up at once, however much is still to come. */
static bool has_room(const struct ricochet_writer *w, size_t len) {
  return !w->failed && w->out->len - w->start + len <= RICOCHET_HEAD_BYTES + (size_t)RICOCHET_FRAME_MAX;
}

static void append(struct ricochet_writer *w, const void *data, size_t len) {
  if (!has_room(w, len) || !buf_append(w->out, data, len)) w->failed = true;
}

struct ricochet_writer ricochet_begin(struct buf *out) {
  struct ricochet_writer w = {.out = out, .start = out->len};
  append(&w, "\0\0\0\0", RICOCHET_HEAD_BYTES);
  return w;
}

bool ricochet_end(struct ricochet_writer *w) {
  size_t len = w->failed ? 0 : w->out->len - w->start - RICOCHET_HEAD_BYTES;
  if (len == 0 || len > RICOCHET_FRAME_MAX) {
    w->out->len = (uint32_t)w->start;
    return false;
  }
  write_u32(w->out->data + w->start, (uint32_t)len);
  return true;
}

void ricochet_raw(struct ricochet_writer *w, struct view text) {
  append(w, text.data, text.len);
}

size_t ricochet_begin_part(struct ricochet_writer *w) {
  size_t part = w->out->len;
  append(w, "\0\0\0\0", RICOCHET_HEAD_BYTES);
  w->comma = false;
  return part;
}

void ricochet_end_part(struct ricochet_writer *w, size_t part) {
  if (!w->failed) write_u32(w->out->data + part, (uint32_t)(w->out->len - part - RICOCHET_HEAD_BYTES));
  w->comma = false;
}

/* --- JSON --- */

static void put_key(struct ricochet_writer *w, const char *key) {
  if (w->comma) append(w, ",", 1);
  w->comma = true;
  if (!key) return;
  append(w, "\"", 1);
  append(w, key, strlen(key));
  append(w, "\":", 2);
}

void ricochet_open(struct ricochet_writer *w, const char *key, char bracket) {
  put_key(w, key);
  append(w, &bracket, 1);
  w->comma = false;
}

void ricochet_close(struct ricochet_writer *w, char bracket) {
  append(w, &bracket, 1);
  w->comma = true;
}

/* Go escapes what HTML would take for markup, too. */
static bool is_plain(uint8_t byte) {
  return byte >= 0x20 && byte != '"' && byte != '\\' && byte != '<' && byte != '>' && byte != '&';
}

static void append_escape(struct ricochet_writer *w, uint8_t byte) {
  char text[8];
  const char *brief = byte == '"' ? "\\\"" : byte == '\\' ? "\\\\" : byte == '\n' ? "\\n" : byte == '\t' ? "\\t" : NULL;
  if (brief) {
    append(w, brief, 2);
    return;
  }
  snprintf(text, sizeof text, "\\u%04x", byte);
  append(w, text, 6);
}

void ricochet_put_text(struct ricochet_writer *w, const char *key, struct view text) {
  put_key(w, key);
  append(w, "\"", 1);
  for (size_t at = 0; at < text.len;) {
    size_t run = at;
    while (run < text.len && is_plain(text.data[run]))
      run++;
    append(w, text.data + at, run - at);
    if (run < text.len) append_escape(w, text.data[run++]);
    at = run;
  }
  append(w, "\"", 1);
}

void ricochet_put_int(struct ricochet_writer *w, const char *key, int64_t value) {
  char text[24];
  int len = snprintf(text, sizeof text, "%" PRId64, value);
  put_key(w, key);
  append(w, text, (size_t)len);
}

void ricochet_put_bool(struct ricochet_writer *w, const char *key, bool value) {
  put_key(w, key);
  append(w, value ? "true" : "false", value ? 4 : 5);
}

void ricochet_put_base64(struct ricochet_writer *w, const char *key, struct view bytes) {
  size_t len = base64_encoded_size(bytes.len);
  put_key(w, key);
  append(w, "\"", 1);
  uint8_t *at = has_room(w, len) ? buf_reserve(w->out, len + 1) : NULL;
  if (at) {
    base64_encode(BASE64_STANDARD, (char *)at, bytes.data, bytes.len);
    w->out->len += (uint32_t)len;
  } else {
    w->failed = true;
  }
  append(w, "\"", 1);
}

void ricochet_put_json(struct ricochet_writer *w, const char *key, struct view json) {
  put_key(w, key);
  append(w, json.data, json.len);
}

static void put_text_if(struct ricochet_writer *w, const char *key, struct view text) {
  if (text.len > 0) ricochet_put_text(w, key, text);
}

static void put_name_if(struct ricochet_writer *w, const char *key, const char *name) {
  if (name) ricochet_put_text(w, key, view_str(name));
}

static void put_int_if(struct ricochet_writer *w, const char *key, int64_t value) {
  if (value != 0) ricochet_put_int(w, key, value);
}

/* --- requests --- */

void ricochet_put_message(struct ricochet_writer *w, const struct ricochet_message *m) {
  ricochet_open(w, NULL, '{');
  ricochet_put_text(w, "messageId", m->message_id);
  ricochet_put_text(w, "recipientPeerId", m->recipient);
  ricochet_put_text(w, "senderPeerId", m->sender);
  ricochet_put_int(w, "priority", m->priority);
  ricochet_put_int(w, "expiryTimestamp", m->expiry_ms);
  ricochet_put_int(w, "hopCount", m->hop_count);
  ricochet_put_int(w, "flags", m->flags);
  ricochet_put_int(w, "createdTimestamp", m->created_ms);
  put_text_if(w, "folderPath", m->folder);
  put_int_if(w, "sequenceNumber", m->sequence);
  put_int_if(w, "messageFlags", m->message_flags);
  if (m->persistent) ricochet_put_bool(w, "persistent", true);
  ricochet_put_base64(w, "payload", m->payload);
  ricochet_close(w, '}');
}

bool ricochet_write_retrieve(struct buf *out, const struct ricochet_retrieve *request) {
  struct ricochet_writer w = ricochet_begin(out);
  ricochet_open(&w, NULL, '{');
  ricochet_put_text(&w, "peerId", request->owner);
  put_text_if(&w, "folderPath", request->folder);
  put_int_if(&w, "fromSequence", request->from_sequence);
  put_int_if(&w, "maxMessages", request->max_messages);
  ricochet_close(&w, '}');
  return ricochet_end(&w);
}

bool ricochet_write_admin(struct buf *out, const struct ricochet_admin *request) {
  struct ricochet_writer w = ricochet_begin(out);
  ricochet_open(&w, NULL, '{');
  ricochet_put_text(&w, "operationType", view_str(request->operation));
  put_text_if(&w, "ownerPeerId", request->owner);
  put_text_if(&w, "folderPath", request->folder);
  put_name_if(&w, "mailboxType", request->type);
  ricochet_close(&w, '}');
  return ricochet_end(&w);
}

bool ricochet_write_request(struct buf *out, const struct ricochet_store_request *request) {
  struct ricochet_writer w = ricochet_begin(out);
  ricochet_open(&w, NULL, '{');
  ricochet_put_text(&w, "operation", view_str(request->operation));
  ricochet_put_text(&w, "ownerPeerId", request->owner);
  put_text_if(&w, "path", request->path);
  put_text_if(&w, "key", request->key);
  if (request->if_match.len > 0) {
    ricochet_open(&w, "headers", '{');
    ricochet_put_text(&w, "If-Match", request->if_match);
    ricochet_close(&w, '}');
  }
  if (request->body.len > 0) ricochet_put_base64(&w, "body", request->body);
  put_name_if(&w, "title", request->title);
  put_name_if(&w, "description", request->description);
  put_name_if(&w, "name", request->name);
  put_name_if(&w, "entryType", request->entry_type);
  put_int_if(&w, "sequenceNumber", request->sequence);
  put_text_if(&w, "listCursor", request->cursor);
  if (request->sort_ascending) ricochet_put_bool(&w, "sortAsc", true);
  put_int_if(&w, "limit", request->limit);
  ricochet_close(&w, '}');
  return ricochet_end(&w);
}

struct ricochet_writer ricochet_open_batch_put(struct buf *out, struct view owner) {
  struct ricochet_writer w = ricochet_begin(out);
  ricochet_open(&w, NULL, '{');
  ricochet_put_text(&w, "operation", view_str("BATCH_PUT"));
  ricochet_put_text(&w, "ownerPeerId", owner);
  ricochet_open(&w, "batchDocuments", '[');
  return w;
}

void ricochet_put_batch_item(struct ricochet_writer *w, struct view path, struct view body) {
  ricochet_open(w, NULL, '{');
  ricochet_put_text(w, "path", path);
  ricochet_put_base64(w, "body", body);
  ricochet_close(w, '}');
}

struct ricochet_writer ricochet_open_batch_submit(struct buf *out) {
  struct ricochet_writer w = ricochet_begin(out);
  ricochet_open(&w, NULL, '{');
  ricochet_open(&w, "messages", '[');
  return w;
}

bool ricochet_close_batch(struct ricochet_writer *w) {
  ricochet_close(w, ']');
  ricochet_close(w, '}');
  return ricochet_end(w);
}

/* --- responses --- */

struct view ricochet_unquoted(struct view raw) {
  if (raw.len < 2 || raw.data[0] != '"') return (struct view){NULL, 0};
  return view_of(raw.data + 1, raw.len - 2);
}

/* Names match whatever their case, as Go's do; a name with escapes matches none. */
static bool is_named(struct view key, const char *name) {
  struct view text = ricochet_unquoted(key);
  return text.len == strlen(name) && strncasecmp((const char *)text.data, name, text.len) == 0;
}

struct view ricochet_member(struct view object, const char *name) {
  struct scan_walk walk = scan_object(object);
  struct view key, value;
  while (scan_next_member(&walk, &key, &value)) {
    if (is_named(key, name)) return value;
  }
  return (struct view){NULL, 0};
}

struct view ricochet_header(struct view headers, const char *name) {
  struct view value = ricochet_member(headers, name);
  struct view text = ricochet_unquoted(value);
  return text.data ? text : value;
}

bool ricochet_whole(struct view raw, int64_t *out) {
  char text[24], *end;
  if (raw.len == 0 || raw.len >= sizeof text) return false;
  memcpy(text, raw.data, raw.len);
  text[raw.len] = '\0';
  if (text[0] != '-' && (text[0] < '0' || text[0] > '9')) return false;
  *out = strtoll(text, &end, 10);
  return *end == '\0';
}

static bool take_bool(struct view raw, bool *out) {
  *out = view_is(raw, "true");
  return *out || view_is(raw, "false");
}

static struct ricochet_answer no_answer(void) {
  return (struct ricochet_answer){.retry_after_ms = -1};
}

/* A member that every response may have; false when it has the name of one but not its type. */
static bool take_common(struct ricochet_answer *answer, struct view key, struct view value) {
  int64_t number;
  if (is_named(key, "success")) return take_bool(value, &answer->success);
  if (is_named(key, "status")) {
    if (!ricochet_whole(value, &number) || number < 0 || number > 999) return false;
    answer->status = (int32_t)number;
  } else if (is_named(key, "retryAfterMs")) {
    if (!ricochet_whole(value, &number)) return false;
    answer->retry_after_ms = number < 0 ? -1 : number;
  } else if (is_named(key, "errorMessage") || is_named(key, "error")) {
    answer->error = ricochet_unquoted(value);
  }
  return true;
}

/* Walks over an object; others takes what is not common. */
static bool read_object(struct view body, struct ricochet_answer *answer,
    bool (*others)(void *out, struct view key, struct view value), void *out) {
  struct scan_walk walk = scan_object(body);
  struct view key, value;
  while (scan_next_member(&walk, &key, &value)) {
    if (!take_common(answer, key, value)) return false;
    if (others && !others(out, key, value)) return false;
  }
  return !walk.bad;
}

static bool take_ack(void *context, struct view key, struct view value) {
  struct ricochet_ack *out = context;
  if (is_named(key, "messageId")) out->message_id = ricochet_unquoted(value);
  return true;
}

bool ricochet_read_ack(struct view body, struct ricochet_ack *out) {
  *out = (struct ricochet_ack){.answer = no_answer()};
  return read_object(body, &out->answer, take_ack, out);
}

static bool take_acks(struct view list, struct ricochet_batch_ack *out) {
  struct scan_walk walk = scan_array(list);
  struct view element;
  while (scan_next_element(&walk, &element)) {
    struct ricochet_ack ack;
    if (!ricochet_read_ack(element, &ack)) return false;
    if (!ack.answer.success && out->answer.success) out->answer = ack.answer;
    out->acks++;
  }
  return !walk.bad;
}

static bool take_count(struct view value, uint32_t *out) {
  int64_t number;
  if (!ricochet_whole(value, &number) || number < 0 || number > UINT32_MAX) return false;
  *out = (uint32_t)number;
  return true;
}

bool ricochet_read_batch_ack(struct view body, struct ricochet_batch_ack *out) {
  *out = (struct ricochet_batch_ack){.answer = no_answer()};
  out->answer.success = true;
  struct scan_walk walk = scan_object(body);
  struct view key, value;
  while (scan_next_member(&walk, &key, &value)) {
    if (is_named(key, "acks") && !take_acks(value, out)) return false;
    if (is_named(key, "accepted") && !take_count(value, &out->accepted)) return false;
    if (is_named(key, "total") && !take_count(value, &out->total)) return false;
  }
  return !walk.bad && out->acks > 0;
}

bool ricochet_next_part(struct view *parts, struct view *part) {
  if (parts->len < RICOCHET_HEAD_BYTES) return false;
  uint32_t len = read_u32(parts->data);
  if (len > parts->len - RICOCHET_HEAD_BYTES) return false;
  *part = view_of(parts->data + RICOCHET_HEAD_BYTES, len);
  *parts = view_of(part->data + len, parts->len - RICOCHET_HEAD_BYTES - len);
  return true;
}

static bool take_page(void *context, struct view key, struct view value) {
  struct ricochet_page *out = context;
  if (is_named(key, "hasMore")) return take_bool(value, &out->has_more);
  if (is_named(key, "messageCount")) return take_count(value, &out->count);
  return true;
}

/* Each of the messages must be there, and nothing behind them. */
static bool is_complete(const struct ricochet_page *page) {
  struct view rest = page->messages, part;
  for (uint32_t i = 0; i < page->count; i++) {
    if (!ricochet_next_part(&rest, &part)) return false;
  }
  return rest.len == 0;
}

bool ricochet_read_page(struct view body, struct ricochet_page *out) {
  *out = (struct ricochet_page){.answer = no_answer()};
  if (body.len > 0 && body.data[0] == '{') return read_object(body, &out->answer, NULL, NULL);
  struct view rest = body, part;
  if (!ricochet_next_part(&rest, &part)) return false;
  out->answer.success = true;
  if (!read_object(part, &out->answer, take_page, out)) return false;
  out->messages = rest;
  return is_complete(out);
}

bool ricochet_read_admin(struct view body, struct ricochet_answer *out) {
  *out = no_answer();
  return read_object(body, out, NULL, NULL);
}

static bool take_response(void *context, struct view key, struct view value) {
  struct ricochet_response *out = context;
  if (is_named(key, "headers")) out->headers = value;
  if (is_named(key, "body")) out->body = ricochet_unquoted(value);
  if (is_named(key, "data")) out->data = value;
  return true;
}

bool ricochet_read_response(struct view body, struct ricochet_response *out) {
  int64_t hint;
  *out = (struct ricochet_response){.answer = no_answer()};
  if (!read_object(body, &out->answer, take_response, out) || out->answer.status == 0) return false;
  out->answer.success = out->answer.status >= 200 && out->answer.status < 300;
  struct view error = ricochet_header(out->headers, "Error");
  if (error.len > 0) out->answer.error = error;
  if (ricochet_whole(ricochet_header(out->headers, "Retry-After-Ms"), &hint) && hint >= 0) {
    out->answer.retry_after_ms = hint;
  }
  return true;
}
