#include "net/http.h"

#include "base/rng.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define WS_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define WS_KEY_LEN 24

enum line_kind { LINE_REQUEST, LINE_RESPONSE };

static bool is_token_char(uint8_t c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
  return c && strchr("!#$%&'*+-.^_`|~", c);
}

static bool is_token(struct view text) {
  for (size_t i = 0; i < text.len; i++) {
    if (!is_token_char(text.data[i])) return false;
  }
  return text.len > 0;
}

/* Visible characters, blanks, tabs and the bytes above ASCII; no controls. */
static bool is_field_text(struct view text) {
  for (size_t i = 0; i < text.len; i++) {
    uint8_t c = text.data[i];
    if ((c < ' ' && c != '\t') || c == 0x7f) return false;
  }
  return true;
}

static bool is_blank(uint8_t c) {
  return c == ' ' || c == '\t';
}

static struct view trim(struct view text) {
  while (text.len && is_blank(text.data[0]))
    text = view_of(text.data + 1, text.len - 1);
  while (text.len && is_blank(text.data[text.len - 1]))
    text.len--;
  return text;
}

static bool same_ignoring_case(struct view text, const char *other) {
  return text.len == strlen(other) && (text.len == 0 || strncasecmp((const char *)text.data, other, text.len) == 0);
}

static enum http_result bad(struct err *err, const char *what) {
  err_set(err, STATUS_PROTOCOL, "HTTP head is malformed: %s", what);
  return HTTP_BAD;
}

/* Cuts what stands before the first blank off line; false when there is none. */
static bool cut_word(struct view *line, struct view *word) {
  const uint8_t *blank = line->len ? memchr(line->data, ' ', line->len) : NULL;
  if (!blank) return false;
  *word = view_of(line->data, (size_t)(blank - line->data));
  *line = view_of(blank + 1, line->len - word->len - 1);
  return true;
}

static bool read_version(struct view text, int *minor) {
  if (!view_is(text, "HTTP/1.0") && !view_is(text, "HTTP/1.1")) return false;
  *minor = text.data[7] - '0';
  return true;
}

static bool is_target(struct view text) {
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] <= ' ' || text.data[i] >= 0x7f) return false;
  }
  return text.len > 0;
}

static const char *read_request_line(struct view line, struct http_head *out) {
  if (!cut_word(&line, &out->method) || !is_token(out->method)) return "the method is missing or no token";
  if (!cut_word(&line, &out->target) || !is_target(out->target)) return "the request target is missing or not ASCII";
  if (!read_version(line, &out->minor_version)) return "the version is not HTTP/1.0 or HTTP/1.1";
  return NULL;
}

static const char *read_status_line(struct view line, struct http_head *out) {
  struct view version;
  if (!cut_word(&line, &version) || !read_version(version, &out->minor_version)) {
    return "it does not begin with HTTP/1.0 or HTTP/1.1";
  }
  if (line.len < 3 || (line.len > 3 && line.data[3] != ' ')) return "the status is not three digits";
  int status = 0;
  for (int i = 0; i < 3; i++) {
    if (line.data[i] < '0' || line.data[i] > '9') return "the status is not three digits";
    status = status * 10 + (line.data[i] - '0');
  }
  if (status < 100) return "the status is below 100";
  out->status = status;
  if (line.len > 4) out->reason = view_of(line.data + 4, line.len - 4);
  return is_field_text(out->reason) ? NULL : "the reason has a control character";
}

static const char *read_field_line(struct view line, struct http_head *out) {
  if (is_blank(line.data[0])) return "a folded field (obsolete)";
  if (out->count == HTTP_FIELDS_MAX) return "more than 64 fields";
  const uint8_t *colon = memchr(line.data, ':', line.len);
  if (!colon) return "a field without a colon";
  struct http_field field = {.name = view_of(line.data, (size_t)(colon - line.data))};
  field.value = trim(view_of(colon + 1, line.len - field.name.len - 1));
  if (!is_token(field.name)) return "a field name that is no token";
  if (!is_field_text(field.value)) return "a field value with a control character";
  out->field[out->count++] = field;
  return NULL;
}

/* The next line without its CRLF. */
static enum http_result next_line(const uint8_t *data, size_t len, size_t *at, struct view *line, struct err *err) {
  size_t limit = len < HTTP_HEAD_MAX ? len : HTTP_HEAD_MAX;
  const uint8_t *feed = *at < limit ? memchr(data + *at, '\n', limit - *at) : NULL;
  if (!feed) return len < HTTP_HEAD_MAX ? HTTP_PARTIAL : bad(err, "it is longer than 16 KiB");
  if (feed == data + *at || feed[-1] != '\r') return bad(err, "a line does not end in CRLF");
  *line = view_of(data + *at, (size_t)(feed - 1 - (data + *at)));
  *at = (size_t)(feed + 1 - data);
  return HTTP_COMPLETE;
}

static enum http_result read_head(
    enum line_kind kind, const uint8_t *data, size_t len, struct http_head *out, size_t *used, struct err *err) {
  out->method = out->target = out->reason = (struct view){NULL, 0};
  out->status = out->minor_version = 0;
  out->count = 0;
  size_t at = 0;
  struct view line;
  enum http_result result = next_line(data, len, &at, &line, err);
  if (result != HTTP_COMPLETE) return result;
  const char *wrong = kind == LINE_REQUEST ? read_request_line(line, out) : read_status_line(line, out);
  while (!wrong) {
    result = next_line(data, len, &at, &line, err);
    if (result != HTTP_COMPLETE) return result;
    if (line.len == 0) {
      *used = at;
      return HTTP_COMPLETE;
    }
    wrong = read_field_line(line, out);
  }
  return bad(err, wrong);
}

enum http_result http_read_request(
    const uint8_t *data, size_t len, struct http_head *out, size_t *used, struct err *err) {
  return read_head(LINE_REQUEST, data, len, out, used, err);
}

enum http_result http_read_response(
    const uint8_t *data, size_t len, struct http_head *out, size_t *used, struct err *err) {
  return read_head(LINE_RESPONSE, data, len, out, used, err);
}

struct view http_field(const struct http_head *head, const char *name) {
  for (uint32_t i = 0; i < head->count; i++) {
    if (same_ignoring_case(head->field[i].name, name)) return head->field[i].value;
  }
  return (struct view){NULL, 0};
}

static uint32_t count_fields(const struct http_head *head, const char *name) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < head->count; i++)
    count += same_ignoring_case(head->field[i].name, name);
  return count;
}

static bool list_has(struct view list, const char *token) {
  while (list.len) {
    const uint8_t *comma = memchr(list.data, ',', list.len);
    size_t len = comma ? (size_t)(comma - list.data) : list.len;
    if (same_ignoring_case(trim(view_of(list.data, len)), token)) return true;
    if (!comma) return false;
    list = view_of(comma + 1, list.len - len - 1);
  }
  return false;
}

bool http_has_token(const struct http_head *head, const char *name, const char *token) {
  for (uint32_t i = 0; i < head->count; i++) {
    const struct http_field *field = &head->field[i];
    if (same_ignoring_case(field->name, name) && list_has(field->value, token)) return true;
  }
  return false;
}

/* At most 18 digits, so that it cannot overflow; -2 otherwise. */
static int64_t read_decimal(struct view text) {
  if (text.len == 0 || text.len > 18) return -2;
  int64_t value = 0;
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return -2;
    value = value * 10 + (text.data[i] - '0');
  }
  return value;
}

int64_t http_content_length(const struct http_head *head) {
  int64_t length = -1;
  for (uint32_t i = 0; i < head->count; i++) {
    if (!same_ignoring_case(head->field[i].name, "content-length")) continue;
    int64_t value = read_decimal(head->field[i].value);
    if (value < 0 || (length >= 0 && value != length)) return -2;
    length = value;
  }
  if (length >= 0 && count_fields(head, "transfer-encoding")) return -2;
  return length;
}

void ws_make_key(char key[25]) {
  uint8_t nonce[16];
  random_bytes(nonce, sizeof nonce);
  EVP_EncodeBlock((unsigned char *)key, nonce, sizeof nonce);
}

void ws_accept_value(const char *key, size_t key_len, char accept[29]) {
  char text[128];
  uint8_t digest[SHA_DIGEST_LENGTH];
  if (key_len > sizeof text - sizeof WS_GUID) key_len = sizeof text - sizeof WS_GUID;
  memcpy(text, key, key_len);
  memcpy(text + key_len, WS_GUID, sizeof WS_GUID - 1);
  SHA1((const unsigned char *)text, key_len + sizeof WS_GUID - 1, digest);
  EVP_EncodeBlock((unsigned char *)accept, digest, sizeof digest);
}

size_t ws_write_request(
    char *out, size_t size, const char *host, uint16_t port, const char *path, const char *key, const char *extra) {
  if (!is_target(view_str(host)) || (path[0] && !is_target(view_str(path)))) return 0;
  const char *slash = path[0] == '/' ? "" : "/";
  bool literal = strchr(host, ':');
  char port_text[8] = "";
  if (port) snprintf(port_text, sizeof port_text, ":%u", (unsigned)port);
  int len = snprintf(out, size,
      "GET %s%s HTTP/1.1\r\nHost: %s%s%s%s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n%s\r\n",
      slash, path, literal ? "[" : "", host, literal ? "]" : "", port_text, key, extra ? extra : "");
  return len > 0 && (size_t)len < size ? (size_t)len : 0;
}

enum status ws_check_response(const struct http_head *head, const char *key, struct err *err) {
  if (head->status != 101) {
    struct view location = http_field(head, "location");
    return err_set(err, STATUS_PROTOCOL, "the server answered the WebSocket upgrade with %d %.*s%s%.*s", head->status,
        (int)(head->reason.len < 100 ? head->reason.len : 100),
        head->reason.data ? (const char *)head->reason.data : "", location.len ? ", Location: " : "",
        (int)(location.len < 200 ? location.len : 200), location.data ? (const char *)location.data : "");
  }
  if (!http_has_token(head, "upgrade", "websocket")) {
    return err_set(err, STATUS_PROTOCOL, "the WebSocket answer has no Upgrade: websocket");
  }
  if (!http_has_token(head, "connection", "upgrade")) {
    return err_set(err, STATUS_PROTOCOL, "the WebSocket answer has no Connection: Upgrade");
  }
  char accept[29];
  ws_accept_value(key, strlen(key), accept);
  if (!view_is(http_field(head, "sec-websocket-accept"), accept)) {
    return err_set(
        err, STATUS_PROTOCOL, "the WebSocket answer has a wrong Sec-WebSocket-Accept, it is for another key");
  }
  if (http_field(head, "sec-websocket-extensions").len) {
    return err_set(err, STATUS_PROTOCOL, "the WebSocket answer has a Sec-WebSocket-Extensions that was not offered");
  }
  return STATUS_OK;
}

static bool is_base64_char(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
}

/* 16 bytes in base64: 22 characters and "==". */
static bool is_ws_key(struct view key) {
  if (key.len != WS_KEY_LEN || memcmp(key.data + 22, "==", 2) != 0) return false;
  for (size_t i = 0; i < 22; i++) {
    if (!is_base64_char(key.data[i])) return false;
  }
  return true;
}

/* What keeps the request from being an upgrade; *status is how to answer. */
static const char *check_upgrade(const struct http_head *head, int *status) {
  *status = 400;
  if (!view_is(head->method, "GET")) return "the method is not GET";
  if (head->minor_version != 1) return "the version is not HTTP/1.1";
  if (count_fields(head, "host") != 1) return "there is not exactly one Host";
  if (!http_has_token(head, "upgrade", "websocket")) {
    *status = 426;
    return "it asks for no WebSocket";
  }
  if (!http_has_token(head, "connection", "upgrade")) return "there is no Connection: Upgrade";
  if (!view_is(http_field(head, "sec-websocket-version"), "13")) {
    *status = 426;
    return "Sec-WebSocket-Version is not 13";
  }
  if (count_fields(head, "sec-websocket-key") != 1 || !is_ws_key(http_field(head, "sec-websocket-key"))) {
    return "Sec-WebSocket-Key is not 16 bytes in base64";
  }
  return NULL;
}

enum status ws_answer_request_with(
    const struct http_head *head, const char *extra, char *out, size_t size, size_t *len, struct err *err) {
  int status;
  const char *wrong = check_upgrade(head, &status);
  int written;
  if (!wrong) {
    char accept[29];
    struct view key = http_field(head, "sec-websocket-key");
    ws_accept_value((const char *)key.data, key.len, accept);
    written = snprintf(out, size,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: %s\r\n%s\r\n",
        accept, extra);
  } else if (status == 426) {
    written = snprintf(out, size,
        "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n"
        "Sec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n");
  } else {
    written = snprintf(out, size, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  }
  *len = written > 0 && (size_t)written < size ? (size_t)written : 0;
  if (wrong) return err_set(err, STATUS_PROTOCOL, "no WebSocket upgrade: %s", wrong);
  return *len ? STATUS_OK : err_set(err, STATUS_USAGE, "no room for the WebSocket answer");
}

enum status ws_answer_request(const struct http_head *head, char *out, size_t size, size_t *len, struct err *err) {
  return ws_answer_request_with(head, "", out, size, len, err);
}
