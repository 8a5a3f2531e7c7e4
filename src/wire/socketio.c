#include "wire/socketio.h"

#include "base/put.h"
#include "wire/json_scan.h"

/* --- reading --- */

static bool read_number(struct view text, uint64_t max, uint64_t *out) {
  uint64_t value = 0;
  if (text.len == 0 || text.len > 18) return false;
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
    value = value * 10 + (text.data[i] - '0');
  }
  *out = value;
  return value <= max;
}

bool engineio_read(struct view text, struct engineio_packet *out) {
  if (text.len == 0 || text.data[0] < '0' || text.data[0] > '0' + ENGINEIO_NOOP) return false;
  out->type = (enum engineio_type)(text.data[0] - '0');
  out->data = view_of(text.data + 1, text.len - 1);
  return true;
}

bool engineio_read_open(struct view data, struct engineio_open *out) {
  struct scan_walk walk = scan_object(data);
  struct view key, value;
  uint64_t interval = 0, timeout = 0;
  bool has_session = false, sound = true;
  *out = (struct engineio_open){0};
  while (scan_next_member(&walk, &key, &value)) {
    if (scan_is(key, "sid")) has_session = scan_plain_string(value).len > 0;
    if (scan_is(key, "pingInterval")) sound = sound && read_number(value, UINT32_MAX, &interval);
    if (scan_is(key, "pingTimeout")) sound = sound && read_number(value, UINT32_MAX, &timeout);
    if (scan_is(key, "maxPayload")) sound = sound && read_number(value, UINT64_MAX, &out->max_payload);
  }
  out->ping_interval_ms = (uint32_t)interval;
  out->ping_timeout_ms = (uint32_t)timeout;
  return sound && has_session && !walk.bad;
}

static size_t digits_at(struct view text, size_t at) {
  size_t start = at;
  while (at < text.len && text.data[at] >= '0' && text.data[at] <= '9')
    at++;
  return at - start;
}

/* "N-" behind a binary type; false when it is missing or too many. */
static bool read_attachments(struct view data, size_t *at, uint32_t *out) {
  size_t digits = digits_at(data, *at);
  uint64_t count;
  if (*at + digits >= data.len || data.data[*at + digits] != '-') return false;
  if (!read_number(view_of(data.data + *at, digits), SOCKETIO_ATTACHMENTS_MAX, &count)) return false;
  *at += digits + 1;
  *out = (uint32_t)count;
  return true;
}

/* "/name,"; the comma may be missing where nothing follows. */
static bool read_namespace(struct view data, size_t *at, struct view *out) {
  *out = view_str("/");
  if (*at >= data.len || data.data[*at] != '/') return true;
  const uint8_t *comma = memchr(data.data + *at, ',', data.len - *at);
  size_t end = comma ? (size_t)(comma - data.data) : data.len;
  *out = view_of(data.data + *at, end - *at);
  *at = comma ? end + 1 : end;
  return out->len <= SOCKETIO_NAMESPACE_MAX;
}

bool socketio_read(struct view data, struct socketio_packet *out) {
  *out = (struct socketio_packet){0};
  if (data.len == 0 || data.data[0] < '0' || data.data[0] > '0' + SOCKETIO_BINARY_ACK) return false;
  out->type = (enum socketio_type)(data.data[0] - '0');
  size_t at = 1;
  bool binary = out->type == SOCKETIO_BINARY_EVENT || out->type == SOCKETIO_BINARY_ACK;
  if (binary && !read_attachments(data, &at, &out->attachments)) return false;
  if (!read_namespace(data, &at, &out->namespace)) return false;
  size_t digits = digits_at(data, at);
  uint64_t id;
  if (digits > 0) {
    if (!read_number(view_of(data.data + at, digits), UINT32_MAX, &id)) return false;
    out->has_id = true;
    out->id = (uint32_t)id;
    at += digits;
  }
  out->data = view_of(data.data + at, data.len - at);
  return true;
}

bool socketio_read_event(struct view data, struct view *name, struct view *content) {
  struct scan_walk walk = scan_array(data);
  struct view value;
  *content = (struct view){0};
  if (!scan_next_element(&walk, name) || name->data[0] != '"') return false;
  for (bool first = true; scan_next_element(&walk, &value); first = false) {
    if (first) *content = scan_plain_string(value);
  }
  return !walk.bad;
}

/* What an acknowledgement's object says. */
static bool read_result(struct view object, int32_t *code) {
  struct scan_walk walk = scan_object(object);
  struct view key, value;
  uint64_t number = 0;
  bool refused = false;
  while (scan_next_member(&walk, &key, &value)) {
    if (scan_is(key, "status") && !scan_is(value, "ok")) refused = true;
    if (scan_is(key, "error") && !view_is(value, "null") && !view_is(value, "false")) refused = true;
    if (scan_is(key, "code") && !read_number(value, INT32_MAX, &number)) number = 0;
  }
  *code = 0;
  if (refused) *code = number > 0 ? (int32_t)number : SOCKETIO_REFUSED;
  return !walk.bad;
}

bool socketio_read_ack(struct view data, int32_t *code) {
  struct scan_walk walk = scan_array(data);
  struct view first, other;
  *code = 0;
  if (!scan_next_element(&walk, &first)) return !walk.bad;
  if (first.data[0] == '{') {
    if (!read_result(first, code)) return false;
  } else if (!view_is(first, "null") && !view_is(first, "true")) {
    *code = SOCKETIO_REFUSED;
  }
  while (scan_next_element(&walk, &other))
    continue;
  return !walk.bad;
}

struct view socketio_read_error(struct view data) {
  struct scan_walk walk = scan_object(data);
  struct view key, value, message = {0};
  while (scan_next_member(&walk, &key, &value)) {
    bool is_text = value.len >= 2 && value.data[0] == '"';
    if (is_text && scan_is(key, "message")) message = view_of(value.data + 1, value.len - 2);
  }
  return walk.bad ? (struct view){0} : message;
}

/* --- writing --- */

static uint8_t *put_head(uint8_t *out, enum socketio_type type, struct view namespace) {
  *out++ = '0' + ENGINEIO_MESSAGE;
  *out++ = (uint8_t)('0' + type);
  if (namespace.len == 0 || view_is(namespace, "/")) return out;
  return put_text(put_view(out, namespace), ",");
}

uint8_t *socketio_write_connect(uint8_t *out, struct view namespace, struct view auth_json) {
  return put_view(put_head(out, SOCKETIO_CONNECT, namespace), auth_json);
}

uint8_t *socketio_write_disconnect(uint8_t *out, struct view namespace) {
  return put_head(out, SOCKETIO_DISCONNECT, namespace);
}

uint8_t *socketio_write_ack(uint8_t *out, struct view namespace, uint32_t id) {
  return put_text(put_number(put_head(out, SOCKETIO_ACK, namespace), id), "[]");
}

uint8_t *socketio_write_event(uint8_t *out, const struct socketio_event *event) {
  out = put_head(out, SOCKETIO_EVENT, event->namespace);
  if (event->has_id) out = put_number(out, event->id);
  out = put_view(put_text(out, "[\""), event->name);
  if (event->first.data) out = put_view(put_text(out, "\",\""), event->first);
  return put_text(out, "\",\"");
}

uint8_t *socketio_event_end(uint8_t *out) {
  return put_text(out, "\"]");
}
