#include "wire/nats.h"

#include "base/put.h"
#include "wire/json_scan.h"

#include <stdio.h>
#include <strings.h>

#define FIELDS_MAX 6

/* --- reading --- */

static bool is_blank(uint8_t c) {
  return c == ' ' || c == '\t';
}

/* Splits a line at its blanks; more fields than fit are as wrong as too few. */
static uint32_t split(struct view line, struct view field[FIELDS_MAX]) {
  uint32_t count = 0;
  size_t at = 0;
  while (at < line.len) {
    while (at < line.len && is_blank(line.data[at]))
      at++;
    size_t start = at;
    while (at < line.len && !is_blank(line.data[at]))
      at++;
    if (at == start) break;
    if (count == FIELDS_MAX) return FIELDS_MAX + 1;
    field[count++] = view_of(line.data + start, at - start);
  }
  return count;
}

static bool read_number(struct view text, uint64_t max, uint64_t *out) {
  uint64_t value = 0;
  if (text.len == 0 || text.len > 19) return false;
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    value = value * 10 + (text.data[i] - '0');
  }
  *out = value;
  return value <= max;
}

static bool word_is(struct view text, const char *word) {
  return text.len == strlen(word) && strncasecmp((const char *)text.data, word, text.len) == 0;
}

/* The line at data without its end; *used is 0 when the end is not there yet. */
static struct view read_line(const uint8_t *data, size_t len, size_t *used) {
  const uint8_t *end = memchr(data, '\n', len < NATS_LINE_MAX ? len : NATS_LINE_MAX);
  *used = 0;
  if (!end) return (struct view){0};
  size_t line_len = (size_t)(end - data);
  *used = line_len + 1;
  if (line_len > 0 && data[line_len - 1] == '\r') line_len--;
  return view_of(data, line_len);
}

static size_t bad(struct nats_message *out) {
  *out = (struct nats_message){.kind = NATS_BAD};
  return 0;
}

static size_t partial(struct nats_message *out) {
  *out = (struct nats_message){.kind = NATS_PARTIAL};
  return 0;
}

/* MSG subject sid [reply] size, HMSG subject sid [reply] header_size size. */
static bool read_msg_line(struct view line, bool has_headers, uint32_t payload_max, struct nats_message *out,
    size_t *header_len, size_t *all) {
  struct view field[FIELDS_MAX];
  uint32_t count = split(line, field);
  uint32_t fixed = has_headers ? 5 : 4;
  uint64_t sid, headers = 0, size;
  if (count != fixed && count != fixed + 1) return false;
  if (!read_number(field[2], UINT32_MAX, &sid)) return false;
  if (!read_number(field[count - 1], payload_max, &size)) return false;
  if (has_headers && !read_number(field[count - 2], size, &headers)) return false;
  out->subject = field[1];
  out->sid = (uint32_t)sid;
  if (count == fixed + 1) out->reply = field[3];
  *header_len = (size_t)headers;
  *all = (size_t)size;
  return true;
}

static size_t read_msg(const uint8_t *data, size_t len, struct view line, size_t used, bool has_headers,
    uint32_t payload_max, struct nats_message *out) {
  size_t header_len, all;
  *out = (struct nats_message){.kind = NATS_MSG};
  if (!read_msg_line(line, has_headers, payload_max, out, &header_len, &all)) return bad(out);
  if (len - used < all + 2) return partial(out);
  const uint8_t *body = data + used;
  if (body[all] != '\r' || body[all + 1] != '\n') return bad(out);
  out->headers = view_of(body, header_len);
  out->payload = view_of(body + header_len, all - header_len);
  return used + all + 2;
}

static struct view behind_word(struct view line, size_t word_len) {
  size_t at = word_len;
  while (at < line.len && is_blank(line.data[at]))
    at++;
  return view_of(line.data + at, line.len - at);
}

static struct view without_quotes(struct view text) {
  while (text.len > 0 && is_blank(text.data[text.len - 1]))
    text.len--;
  if (text.len < 2 || text.data[0] != '\'' || text.data[text.len - 1] != '\'') return text;
  return view_of(text.data + 1, text.len - 2);
}

size_t nats_read(const uint8_t *data, size_t len, uint32_t payload_max, struct nats_message *out) {
  static const struct {
    const char *word;
    enum nats_kind kind;
  } words[] = {{"MSG", NATS_MSG}, {"HMSG", NATS_MSG}, {"PING", NATS_PING}, {"PONG", NATS_PONG}, {"+OK", NATS_OK},
      {"-ERR", NATS_ERROR}, {"INFO", NATS_INFO}};
  size_t used;
  struct view line = read_line(data, len, &used);
  if (used == 0) return len >= NATS_LINE_MAX ? bad(out) : partial(out);
  size_t word_len = 0;
  while (word_len < line.len && !is_blank(line.data[word_len]))
    word_len++;
  struct view word = view_of(line.data, word_len);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    if (!word_is(word, words[i].word)) continue;
    if (words[i].kind == NATS_MSG) return read_msg(data, len, line, used, word_len == 4, payload_max, out);
    *out = (struct nats_message){.kind = words[i].kind, .text = behind_word(line, word_len)};
    if (out->kind == NATS_ERROR) out->text = without_quotes(out->text);
    return used;
  }
  return bad(out);
}

uint32_t nats_status(struct view headers) {
  static const char version[] = "NATS/1.0 ";
  uint64_t status;
  size_t at = sizeof version - 1;
  if (headers.len < at + 3 || memcmp(headers.data, version, at) != 0) return 0;
  if (!read_number(view_of(headers.data + at, 3), 999, &status)) return 0;
  return (uint32_t)status;
}

static void take_number(struct view value, uint64_t *out) {
  if (!read_number(value, UINT64_MAX, out)) *out = 0;
}

bool nats_read_info(struct view text, struct nats_info *out) {
  struct scan_walk walk = scan_object(text);
  struct view key, value;
  *out = (struct nats_info){0};
  while (scan_next_member(&walk, &key, &value)) {
    if (scan_is(key, "version")) {
      struct view version = scan_plain_string(value);
      snprintf(out->version, sizeof out->version, "%.*s", (int)(version.len < 31 ? version.len : 31),
          version.data ? (const char *)version.data : "");
    } else if (scan_is(key, "max_payload")) {
      take_number(value, &out->max_payload);
    } else if (scan_is(key, "tls_required")) {
      out->tls_required = view_is(value, "true");
    } else if (scan_is(key, "tls_available")) {
      out->tls_available = view_is(value, "true");
    } else if (scan_is(key, "auth_required")) {
      out->auth_required = view_is(value, "true");
    } else if (scan_is(key, "headers")) {
      out->headers = view_is(value, "true");
    } else if (scan_is(key, "jetstream")) {
      out->jetstream = view_is(value, "true");
    }
  }
  return !walk.bad;
}

/* --- writing --- */

#define PUBLISH_FIXED 56 /* "HPUB ", three blanks, two numbers, two line ends */

size_t nats_publish_size(const struct nats_publish *publish) {
  return PUBLISH_FIXED + publish->subject.len + publish->reply.len + publish->headers.len + publish->payload_len;
}

uint8_t *nats_write_publish(uint8_t *out, const struct nats_publish *publish) {
  out = put_text(out, publish->headers.len > 0 ? "HPUB " : "PUB ");
  out = put_view(out, publish->subject);
  *out++ = ' ';
  if (publish->reply.len > 0) {
    out = put_view(out, publish->reply);
    *out++ = ' ';
  }
  if (publish->headers.len > 0) {
    out = put_number(out, publish->headers.len);
    *out++ = ' ';
  }
  out = nats_end(put_number(out, publish->headers.len + publish->payload_len));
  return put_view(out, publish->headers);
}

uint8_t *nats_end(uint8_t *out) {
  return put_text(out, "\r\n");
}

uint8_t *nats_write_subscribe(uint8_t *out, struct view subject, struct view queue, uint32_t sid) {
  out = put_view(put_text(out, "SUB "), subject);
  if (queue.len > 0) out = put_view(put_text(out, " "), queue);
  return nats_end(put_number(put_text(out, " "), sid));
}

/* --- errors --- */

/* The longer of two that begin alike stands first. */
static const struct {
  enum nats_error error;
  const char *text;
} errors[] = {
    {NATS_ERROR_UNKNOWN_OPERATION, "Unknown Protocol Operation"},
    {NATS_ERROR_ROUTE_PORT, "Attempted To Connect To Route Port"},
    {NATS_ERROR_AUTHORIZATION, "Authorization Violation"},
    {NATS_ERROR_AUTHORIZATION_TIMEOUT, "Authorization Timeout"},
    {NATS_ERROR_AUTHORIZATION_TIMEOUT, "Authentication Timeout"},
    {NATS_ERROR_CLIENT_PROTOCOL, "Invalid Client Protocol"},
    {NATS_ERROR_CONTROL_LINE, "Maximum Control Line Exceeded"},
    {NATS_ERROR_PARSER, "Parser Error"},
    {NATS_ERROR_TLS_REQUIRED, "Secure Connection - TLS Required"},
    {NATS_ERROR_STALE_CONNECTION, "Stale Connection"},
    {NATS_ERROR_CONNECTIONS, "Maximum Connections Exceeded"},
    {NATS_ERROR_CONNECTIONS, "Maximum Account Active Connections Exceeded"},
    {NATS_ERROR_SLOW_CONSUMER, "Slow Consumer"},
    {NATS_ERROR_PAYLOAD, "Maximum Payload Violation"},
    {NATS_ERROR_SUBJECT, "Invalid Subject"},
    {NATS_ERROR_SUBJECT, "Invalid Publish Subject"},
    {NATS_ERROR_PERMISSIONS, "Permissions Violation"},
    {NATS_ERROR_AUTHENTICATION_EXPIRED, "User Authentication Expired"},
    {NATS_ERROR_AUTHENTICATION_EXPIRED, "Account Authentication Expired"},
    {NATS_ERROR_AUTHENTICATION_REVOKED, "User Authentication Revoked"},
    {NATS_ERROR_SUBSCRIPTIONS, "Maximum Subscriptions Exceeded"},
    {NATS_ERROR_SHUTDOWN, "Server Shutdown"},
};
#define ERRORS (sizeof errors / sizeof errors[0])

enum nats_error nats_error_of(struct view text) {
  for (size_t i = 0; i < ERRORS; i++) {
    size_t len = strlen(errors[i].text);
    if (text.len >= len && strncasecmp((const char *)text.data, errors[i].text, len) == 0) return errors[i].error;
  }
  return NATS_ERROR_OTHER;
}

const char *nats_error_text(int32_t error) {
  if (error == NATS_ERROR_OTHER) return "another error of the server";
  for (size_t i = 0; i < ERRORS; i++) {
    if ((int32_t)errors[i].error == error) return errors[i].text;
  }
  return NULL;
}

/* --- JetStream --- */

static bool read_puback_error(struct view text, struct nats_puback *out) {
  struct scan_walk walk = scan_object(text);
  struct view key, value;
  uint64_t code = 0, err_code = 0;
  while (scan_next_member(&walk, &key, &value)) {
    if (scan_is(key, "code") && !read_number(value, INT32_MAX, &code)) return false;
    if (scan_is(key, "err_code") && !read_number(value, INT32_MAX, &err_code)) return false;
  }
  out->error = (int32_t)(err_code ? err_code : code);
  return !walk.bad && out->error != 0;
}

bool nats_read_puback(struct view text, struct nats_puback *out) {
  struct scan_walk walk = scan_object(text);
  struct view key, value;
  bool stored = false;
  *out = (struct nats_puback){0};
  while (scan_next_member(&walk, &key, &value)) {
    if (scan_is(key, "error")) {
      if (!read_puback_error(value, out)) return false;
    } else if (scan_is(key, "seq")) {
      if (!read_number(value, UINT64_MAX, &out->sequence)) return false;
      stored = true;
    } else if (scan_is(key, "duplicate")) {
      out->duplicate = view_is(value, "true");
    }
  }
  return !walk.bad && (stored || out->error != 0);
}

/* --- subjects of ACKs --- */

#define ACK_PREFIX "$JS.ACK."
#define ACK_TOKENS 9      /* $JS.ACK.<stream>.<consumer>.<deliveries>.<sequences, 2>.<time>.<left> */
#define ACK_TOKENS_NEW 11 /* with the domain and the account behind ACK, and perhaps one more token at the end */

static bool number_of(struct view text, uint64_t *out) {
  *out = 0;
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    *out = *out * 10 + (uint64_t)(text.data[i] - '0');
  }
  return text.len > 0 && text.len < 20;
}

bool nats_read_delivery(struct view reply, struct nats_delivery *out) {
  struct view token[ACK_TOKENS_NEW + 1];
  size_t count = 0, from = 0;
  if (reply.len < sizeof ACK_PREFIX || memcmp(reply.data, ACK_PREFIX, sizeof ACK_PREFIX - 1) != 0) return false;
  for (size_t i = 0; i <= reply.len; i++) {
    if (i < reply.len && reply.data[i] != '.') continue;
    if (count > ACK_TOKENS_NEW) return false;
    token[count++] = view_of(reply.data + from, i - from);
    from = i + 1;
  }
  if (count < ACK_TOKENS || count == ACK_TOKENS + 1) return false;
  size_t at = count == ACK_TOKENS ? 4 : 6;
  return number_of(token[at], &out->deliveries) && number_of(token[at + 4], &out->left);
}
