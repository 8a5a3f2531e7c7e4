#include "wire/stomp.h"

#include "base/put.h"

#include <strings.h>

/* --- reading --- */

static size_t bad(struct stomp_frame *out) {
  *out = (struct stomp_frame){.kind = STOMP_BAD};
  return 0;
}

static size_t partial(struct stomp_frame *out) {
  *out = (struct stomp_frame){.kind = STOMP_PARTIAL};
  return 0;
}

/* The line at `at` without its end; *next is behind it, or 0 when the end is not there yet. */
static struct view read_line(const uint8_t *data, size_t len, size_t at, size_t *next) {
  const uint8_t *end = memchr(data + at, '\n', len - at);
  *next = 0;
  if (!end) return (struct view){0};
  struct view line = view_of(data + at, (size_t)(end - data) - at);
  *next = at + line.len + 1;
  if (line.len > 0 && line.data[line.len - 1] == '\r') line.len--;
  return line;
}

static bool is_escape(uint8_t c) {
  return c == 'r' || c == 'n' || c == 'c' || c == '\\';
}

/* A name, a colon, a value; where there are escapes, none but those of STOMP. */
static bool is_header(struct view line, bool escapes) {
  const uint8_t *colon = line.len > 0 ? memchr(line.data, ':', line.len) : NULL;
  if (!colon || colon == line.data || memchr(line.data, 0, line.len)) return false;
  if (!escapes || !memchr(line.data, '\\', line.len)) return true;
  for (size_t i = 0; i < line.len; i++) {
    if (line.data[i] != '\\') continue;
    i++;
    if (i == line.len || !is_escape(line.data[i])) return false;
  }
  return true;
}

static enum stomp_kind kind_of(struct view command) {
  if (view_is(command, "MESSAGE")) return STOMP_MESSAGE;
  if (view_is(command, "RECEIPT")) return STOMP_RECEIPT;
  if (view_is(command, "CONNECTED")) return STOMP_CONNECTED;
  return view_is(command, "ERROR") ? STOMP_ERROR : STOMP_BAD;
}

/* Whether what is there of a first line can still become a command. */
static bool may_become_command(const uint8_t *data, size_t len) {
  static const char *const commands[] = {"MESSAGE\r", "RECEIPT\r", "CONNECTED\r", "ERROR\r"};
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
    if (len <= strlen(commands[i]) && memcmp(data, commands[i], len) == 0) return true;
  }
  return false;
}

struct view stomp_header(const struct stomp_frame *frame, const char *name) {
  size_t name_len = strlen(name), at = 0, next;
  while (at < frame->headers.len) {
    struct view line = read_line(frame->headers.data, frame->headers.len, at, &next);
    if (next == 0) break;
    if (line.len > name_len && line.data[name_len] == ':' && memcmp(line.data, name, name_len) == 0) {
      return view_of(line.data + name_len + 1, line.len - name_len - 1);
    }
    at = next;
  }
  return (struct view){0};
}

/* The body from `at` on, by its length or up to the first NUL; returns what is behind the NUL. */
static size_t read_body(const uint8_t *data, size_t len, size_t at, uint32_t body_max, struct stomp_frame *out) {
  struct view stated = stomp_header(out, "content-length");
  size_t body_len;
  if (stated.data) {
    uint32_t number;
    if (!stomp_number(stated, &number) || number > body_max) return bad(out);
    body_len = number;
    if (len - at <= body_len) return partial(out);
    if (data[at + body_len] != 0) return bad(out);
  } else {
    const uint8_t *end = len > at ? memchr(data + at, 0, len - at) : NULL;
    body_len = end ? (size_t)(end - data) - at : len - at;
    if (body_len > body_max) return bad(out);
    if (!end) return partial(out);
  }
  out->body = view_of(data + at, body_len);
  return at + body_len + 1;
}

static size_t read_frame(const uint8_t *data, size_t len, uint32_t body_max, struct stomp_frame *out) {
  size_t head_len = len < STOMP_HEAD_MAX ? len : STOMP_HEAD_MAX, at, next;
  struct view command = read_line(data, head_len, 0, &at);
  if (at == 0) return may_become_command(data, head_len) ? partial(out) : bad(out);
  *out = (struct stomp_frame){.kind = kind_of(command)};
  if (out->kind == STOMP_BAD) return bad(out);
  size_t start = at;
  for (;;) {
    struct view line = read_line(data, head_len, at, &next);
    if (next == 0) return head_len == STOMP_HEAD_MAX ? bad(out) : partial(out);
    if (line.len == 0) break;
    if (!is_header(line, out->kind != STOMP_CONNECTED)) return bad(out);
    at = next;
  }
  out->headers = view_of(data + start, at - start);
  return read_body(data, len, next, body_max, out);
}

size_t stomp_read(const uint8_t *data, size_t len, uint32_t body_max, struct stomp_frame *out) {
  if (len == 0) return partial(out);
  if (data[0] != '\n' && data[0] != '\r') return read_frame(data, len, body_max, out);
  size_t used = data[0] == '\r' ? 2 : 1;
  if (used > len) return partial(out);
  if (data[used - 1] != '\n') return bad(out);
  *out = (struct stomp_frame){.kind = STOMP_BEAT};
  return used;
}

static uint8_t unescaped(uint8_t c) {
  switch (c) {
  case 'r':
    return '\r';
  case 'n':
    return '\n';
  case 'c':
    return ':';
  default:
    return c;
  }
}

size_t stomp_unescape(struct view raw, uint8_t *out) {
  size_t len = 0;
  for (size_t i = 0; i < raw.len; i++) {
    bool escape = raw.data[i] == '\\' && i + 1 < raw.len;
    if (escape) i++;
    out[len++] = escape ? unescaped(raw.data[i]) : raw.data[i];
  }
  return len;
}

bool stomp_number(struct view raw, uint32_t *out) {
  uint64_t value = 0;
  if (raw.len == 0 || raw.len > 10) return false;
  for (size_t i = 0; i < raw.len; i++) {
    if (raw.data[i] < '0' || raw.data[i] > '9') return false;
    value = value * 10 + (raw.data[i] - '0');
  }
  *out = (uint32_t)value;
  return value <= UINT32_MAX;
}

bool stomp_heart_beat(const struct stomp_frame *frame, uint32_t *sends_ms, uint32_t *wants_ms) {
  struct view text = stomp_header(frame, "heart-beat");
  *sends_ms = *wants_ms = 0;
  if (!text.data) return true;
  const uint8_t *comma = text.len > 0 ? memchr(text.data, ',', text.len) : NULL;
  if (!comma) return false;
  size_t first = (size_t)(comma - text.data);
  return stomp_number(view_of(text.data, first), sends_ms) &&
         stomp_number(view_of(comma + 1, text.len - first - 1), wants_ms);
}

/* --- writing --- */

static uint8_t *put_escaped(uint8_t *out, struct view text) {
  for (size_t i = 0; i < text.len; i++) {
    const char *escape = NULL;
    if (text.data[i] == '\r') escape = "\\r";
    if (text.data[i] == '\n') escape = "\\n";
    if (text.data[i] == ':') escape = "\\c";
    if (text.data[i] == '\\') escape = "\\\\";
    if (escape) {
      out = put_text(out, escape);
    } else {
      *out++ = text.data[i];
    }
  }
  return out;
}

static uint8_t *put_plain_header(uint8_t *out, const char *name, struct view value) {
  return put_text(put_view(put_text(out, name), value), "\n");
}

uint8_t *stomp_write_connect(uint8_t *out, const struct stomp_connect *connect) {
  out = put_text(out, "CONNECT\naccept-version:1.2\n");
  out = put_plain_header(out, "host:", connect->host);
  if (connect->login.data) out = put_plain_header(out, "login:", connect->login);
  if (connect->passcode.data) out = put_plain_header(out, "passcode:", connect->passcode);
  out = put_number(put_text(out, "heart-beat:"), connect->sends_ms);
  out = put_number(put_text(out, ","), connect->wants_ms);
  return put_text(out, "\n\n");
}

uint8_t *stomp_write_subscribe(uint8_t *out, const struct stomp_subscribe *subscribe) {
  out = put_number(put_text(out, "SUBSCRIBE\nid:"), subscribe->id);
  out = put_escaped(put_text(out, "\ndestination:"), subscribe->destination);
  out = put_text(out, subscribe->individual ? "\nack:client-individual" : "\nack:auto");
  if (subscribe->prefetch > 0) out = put_number(put_text(out, "\nprefetch-count:"), subscribe->prefetch);
  if (subscribe->auto_delete) out = put_text(out, "\nauto-delete:true");
  out = put_number(put_text(out, "\nreceipt:s"), subscribe->id);
  return put_text(out, "\n\n");
}

uint8_t *stomp_write_ack(uint8_t *out, struct view id) {
  return put_text(put_plain_header(put_text(out, "ACK\n"), "id:", id), "\n");
}

uint8_t *stomp_write_disconnect(uint8_t *out) {
  return put_text(out, "DISCONNECT\n\n");
}

uint8_t *stomp_write_send(uint8_t *out, const struct stomp_send *send) {
  out = put_escaped(put_text(out, "SEND\ndestination:"), send->destination);
  if (send->content_type.len > 0) out = put_escaped(put_text(out, "\ncontent-type:"), send->content_type);
  out = put_number(put_text(out, "\ncontent-length:"), send->body_len);
  if (send->auto_delete) out = put_text(out, "\nauto-delete:true");
  if (send->has_receipt) out = put_number(put_text(out, "\nreceipt:"), send->receipt);
  return put_text(out, "\n\n");
}

/* --- errors --- */

static const struct {
  enum stomp_error error;
  const char *text;
} errors[] = {
    {STOMP_ERROR_CONNECT, "Bad CONNECT"},
    {STOMP_ERROR_VERSION, "Version mismatch"},
    {STOMP_ERROR_ACCESS, "access_refused"},
    {STOMP_ERROR_ACCESS, "not_allowed"},
    {STOMP_ERROR_ACCESS, "User "}, /* ActiveMQ: "User name [x] or password is invalid.", "User x is not authorized" */
    {STOMP_ERROR_NOT_FOUND, "not_found"},
    {STOMP_ERROR_DESTINATION, "Unknown destination"},
    {STOMP_ERROR_DESTINATION, "Invalid destination"},
    {STOMP_ERROR_DESTINATION, "Missing destination"},
    {STOMP_ERROR_COMMAND, "Bad command"},
    {STOMP_ERROR_COMMAND, "Unknown STOMP action"},
    {STOMP_ERROR_FRAME, "Invalid frame"},
    {STOMP_ERROR_SUBSCRIPTION, "Duplicated subscription identifier"},
    {STOMP_ERROR_SUBSCRIPTION, "Subscription not found"},
    {STOMP_ERROR_PRECONDITION, "precondition_failed"},
    {STOMP_ERROR_LOCKED, "resource_locked"},
    {STOMP_ERROR_RESOURCE, "resource_error"},
    {STOMP_ERROR_PROCESSING, "Processing error"},
    {STOMP_ERROR_PROCESSING, "internal_error"},
    {STOMP_ERROR_FORCED, "connection_forced"},
};
#define ERRORS (sizeof errors / sizeof errors[0])

enum stomp_error stomp_error_of(struct view message) {
  for (size_t i = 0; i < ERRORS; i++) {
    size_t len = strlen(errors[i].text);
    if (message.len >= len && strncasecmp((const char *)message.data, errors[i].text, len) == 0) return errors[i].error;
  }
  return STOMP_ERROR_OTHER;
}

const char *stomp_error_text(int32_t error) {
  if (error == STOMP_ERROR_OTHER) return "another error of the server";
  for (size_t i = 0; i < ERRORS; i++) {
    if ((int32_t)errors[i].error == error) return errors[i].text;
  }
  return NULL;
}
