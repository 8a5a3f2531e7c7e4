#include "wire/shootout.h"

#include "wire/json_scan.h"

#define CHANNEL_RAW "\"{\\\"channel\\\":\\\"BenchmarkChannel\\\"}\""
#define CHANNEL "{\"channel\":\"BenchmarkChannel\"}"
#define LOBBY "room:lobby"

enum { BINARY_TYPE = 1, BINARY_HEAD = 13, BINARY_TIME = 8 };

/* ---- Reading ---- */

/* Finds up to four members of an object by name; false when the text is no object. Later ones win over earlier. */
struct wanted {
  const char *name;
  struct view *value;
};

static bool find(struct view text, const struct wanted *wanted, size_t count) {
  struct scan_walk walk = scan_object(text);
  struct view key, value;
  while (scan_next_member(&walk, &key, &value)) {
    for (size_t i = 0; i < count; i++) {
      if (scan_is(key, wanted[i].name)) *wanted[i].value = value;
    }
  }
  return !walk.bad;
}

static bool is_string(struct view raw) {
  return raw.len >= 2 && raw.data[0] == '"';
}

static enum shootout_kind kind_of(struct view raw) {
  if (scan_is(raw, "broadcast")) return SHOOTOUT_BROADCAST;
  if (scan_is(raw, "echo")) return SHOOTOUT_ECHO;
  if (scan_is(raw, "broadcastResult")) return SHOOTOUT_RESULT;
  return SHOOTOUT_UNKNOWN;
}

static bool read_json(struct view text, struct shootout_message *out) {
  struct view type = {0};
  const struct wanted wanted[] = {{"type", &type}, {"payload", &out->payload}};
  if (!find(text, wanted, 2)) return false;
  if (scan_is(type, "error")) {
    out->kind = SHOOTOUT_ERROR;
  } else if (out->payload.len) {
    out->kind = kind_of(type);
  }
  return true;
}

static bool read_binary(struct view data, struct shootout_message *out) {
  if (data.len < BINARY_TYPE) return false;
  out->payload = view_of(data.data + BINARY_TYPE, data.len - BINARY_TYPE);
  switch (data.data[0]) {
  case 'e':
    out->kind = SHOOTOUT_ECHO;
    return true;
  case 'b':
    out->kind = SHOOTOUT_BROADCAST;
    return true;
  case 'r':
    out->kind = SHOOTOUT_RESULT;
    return true;
  default:
    return true;
  }
}

static bool is_ref(struct view raw) {
  return raw.len == 0 || is_string(raw) || view_is(raw, "null");
}

/* The parts of a Phoenix message; in version 2 they have fixed places in an array. */
static bool read_phoenix_frame(
    struct view text, bool version_2, struct shootout_message *out, struct view *event, struct view *payload) {
  if (version_2) {
    struct scan_walk walk = scan_array(text);
    struct view *const place[] = {&out->join_ref, &out->ref, &out->topic, event, payload};
    struct view value;
    size_t count = 0;
    while (scan_next_element(&walk, &value)) {
      if (count < 5) *place[count] = value;
      count++;
    }
    if (walk.bad || count != 5) return false;
  } else {
    const struct wanted wanted[] = {{"topic", &out->topic}, {"event", event}, {"payload", payload}, {"ref", &out->ref},
        {"join_ref", &out->join_ref}};
    if (!find(text, wanted, 5)) return false;
  }
  return is_string(out->topic) && is_string(*event) && is_ref(out->ref) && is_ref(out->join_ref);
}

static bool is_object(struct view raw) {
  return raw.len && raw.data[0] == '{';
}

static bool read_phoenix_request(struct view text, bool version_2, struct shootout_message *out) {
  struct view event = {0}, payload = {0};
  if (!read_phoenix_frame(text, version_2, out, &event, &payload)) return false;
  if (scan_is(event, "phx_join")) {
    out->kind = SHOOTOUT_JOIN;
  } else if (scan_is(event, "phx_leave")) {
    out->kind = SHOOTOUT_LEAVE;
  } else if (scan_is(event, "heartbeat") && scan_is(out->topic, "phoenix")) {
    out->kind = SHOOTOUT_HEARTBEAT;
  } else if (is_object(payload) && find(payload, &(struct wanted){"body", &out->payload}, 1) && out->payload.len) {
    out->kind = kind_of(event);
  }
  return true;
}

static void read_phoenix_reply_payload(struct view payload, struct shootout_message *out) {
  struct view status = {0}, response = {0}, type = {0};
  const struct wanted outer[] = {{"status", &status}, {"response", &response}};
  const struct wanted inner[] = {{"type", &type}, {"body", &out->payload}};
  if (!is_object(payload) || !find(payload, outer, 2)) return;
  if (!scan_is(status, "ok")) {
    out->kind = SHOOTOUT_REFUSED;
  } else if (scan_is(out->topic, "phoenix")) {
    out->kind = SHOOTOUT_HEARTBEAT;
  } else if (is_object(response) && find(response, inner, 2) && type.len) {
    out->kind = out->payload.len ? kind_of(type) : SHOOTOUT_UNKNOWN;
  } else {
    out->kind = SHOOTOUT_JOINED;
  }
}

static bool read_phoenix_reply(struct view text, bool version_2, struct shootout_message *out) {
  struct view event = {0}, payload = {0};
  if (!read_phoenix_frame(text, version_2, out, &event, &payload)) return false;
  if (scan_is(event, "phx_reply")) {
    read_phoenix_reply_payload(payload, out);
  } else if (scan_is(event, "phx_error") || scan_is(event, "phx_close")) {
    out->kind = SHOOTOUT_DISCONNECT;
  } else if (scan_is(event, "broadcast") && is_object(payload) &&
             find(payload, &(struct wanted){"body", &out->payload}, 1) && out->payload.len) {
    out->kind = SHOOTOUT_BROADCAST;
  }
  return true;
}

/* The action and payload of a channel message. */
static bool read_action(struct view text, struct shootout_message *out) {
  struct view action = {0};
  const struct wanted wanted[] = {{"action", &action}, {"payload", &out->payload}};
  if (!find(text, wanted, 2)) return false;
  if (out->payload.len) out->kind = kind_of(action);
  return true;
}

static bool read_cable_request(struct view text, uint8_t *bytes, struct shootout_message *out) {
  struct view command = {0}, data = {0};
  const struct wanted wanted[] = {{"command", &command}, {"identifier", &out->identifier}, {"data", &data}};
  if (!find(text, wanted, 3)) return false;
  if (!is_string(out->identifier)) return true;
  if (scan_is(command, "subscribe")) {
    out->kind = SHOOTOUT_JOIN;
  } else if (scan_is(command, "unsubscribe")) {
    out->kind = SHOOTOUT_LEAVE;
  } else if (scan_is(command, "message")) {
    if (data.len == 0) return false;
    /* Unescaping only shrinks, so the text fits its own place. */
    uint8_t *place = bytes + (data.data - text.data);
    size_t len;
    return scan_unescape(data, place, &len) && read_action(view_of(place, len), out);
  }
  return true;
}

static enum shootout_kind cable_kind(struct view type) {
  if (scan_is(type, "ping")) return SHOOTOUT_HEARTBEAT;
  if (scan_is(type, "welcome")) return SHOOTOUT_WELCOME;
  if (scan_is(type, "confirm_subscription")) return SHOOTOUT_JOINED;
  if (scan_is(type, "reject_subscription")) return SHOOTOUT_REFUSED;
  if (scan_is(type, "disconnect")) return SHOOTOUT_DISCONNECT;
  return SHOOTOUT_UNKNOWN;
}

static bool read_cable_reply(struct view text, struct shootout_message *out) {
  struct view type = {0}, message = {0};
  const struct wanted wanted[] = {{"type", &type}, {"identifier", &out->identifier}, {"message", &message}};
  if (!find(text, wanted, 3)) return false;
  out->kind = cable_kind(type);
  if (type.len || !is_object(message)) return true;
  return read_action(message, out);
}

bool shootout_read_request(enum shootout_protocol protocol, uint8_t *data, size_t len, struct shootout_message *out) {
  *out = (struct shootout_message){.kind = SHOOTOUT_UNKNOWN};
  struct view text = view_of(data, len);
  switch (protocol) {
  case SHOOTOUT_JSON:
    return read_json(text, out);
  case SHOOTOUT_BINARY:
    return read_binary(text, out);
  case SHOOTOUT_CABLE:
    return read_cable_request(text, data, out);
  default:
    return read_phoenix_request(text, protocol == SHOOTOUT_PHOENIX_2, out);
  }
}

bool shootout_read_reply(
    enum shootout_protocol protocol, const uint8_t *data, size_t len, struct shootout_message *out) {
  *out = (struct shootout_message){.kind = SHOOTOUT_UNKNOWN};
  struct view text = view_of(data, len);
  switch (protocol) {
  case SHOOTOUT_JSON:
    return read_json(text, out);
  case SHOOTOUT_BINARY:
    return read_binary(text, out);
  case SHOOTOUT_CABLE:
    return read_cable_reply(text, out);
  default:
    return read_phoenix_reply(text, protocol == SHOOTOUT_PHOENIX_2, out);
  }
}

struct view shootout_padding(enum shootout_protocol protocol, struct view payload) {
  if (protocol == SHOOTOUT_BINARY) {
    if (payload.len < BINARY_HEAD - BINARY_TYPE) return (struct view){0};
    return view_of(payload.data + BINARY_HEAD - BINARY_TYPE, payload.len - (BINARY_HEAD - BINARY_TYPE));
  }
  struct view padding = {0};
  if (!is_object(payload) || !find(payload, &(struct wanted){"padding", &padding}, 1)) return (struct view){0};
  return scan_plain_string(padding);
}

bool shootout_is_lobby(struct view topic) {
  return scan_is(topic, LOBBY);
}

bool shootout_is_benchmark_channel(struct view identifier) {
  return scan_is(identifier, CHANNEL);
}

bool shootout_ref_number(struct view ref, uint32_t *out) {
  struct view digits = scan_plain_string(ref);
  uint64_t value = 0;
  if (digits.len == 0 || digits.len > 10) return false;
  for (size_t i = 0; i < digits.len; i++) {
    if (digits.data[i] < '0' || digits.data[i] > '9') return false;
    value = value * 10 + (uint64_t)(digits.data[i] - '0');
  }
  *out = (uint32_t)value;
  return value <= UINT32_MAX;
}

/* ---- Writing ---- */

static void begin(struct shootout_text *text) {
  text->count = 0;
  text->len = 0;
}

static void add(struct shootout_text *text, struct view piece) {
  text->piece[text->count++] = piece;
  text->len += piece.len;
}

static void add_text(struct shootout_text *text, const char *piece) {
  add(text, view_str(piece));
}

/* Writes a number at the end of out and adds the digits. */
static void add_number(struct shootout_text *text, char *out, size_t size, uint64_t value) {
  size_t at = size;
  do {
    out[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  add(text, view_of(out + at, size - at));
}

uint8_t *shootout_put(uint8_t *out, const struct shootout_text *text) {
  uint8_t *hole = NULL;
  for (uint32_t i = 0; i < text->count; i++) {
    struct view piece = text->piece[i];
    if (!piece.data) {
      hole = out;
    } else {
      memcpy(out, piece.data, piece.len);
    }
    out += piece.len;
  }
  return hole;
}

static void put_big_endian(uint8_t *out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++)
    out[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

static void binary_request(struct shootout_text *text, const struct shootout_request *request) {
  text->binary[0] = request->kind == SHOOTOUT_ECHO ? 'e' : 'b';
  put_big_endian(text->binary + 1, BINARY_TIME + request->padding_len, 4);
  put_big_endian(text->binary + 5, request->send_time_ns, 8);
  add(text, view_of(text->binary, BINARY_HEAD));
  if (request->padding_len) add(text, view_of(NULL, request->padding_len));
}

/* What stands around the variable parts of a client's request: before the kind, before the time, around the padding
 * and behind the body. */
struct request_form {
  const char *head, *time, *padding, *padding_end, *end;
};

static const struct request_form request_forms[] = {
    [SHOOTOUT_JSON] = {"{\"type\":\"", "\",\"payload\":{\"sendTime\":\"", "\",\"padding\":\"", "\"", "}}"},
    [SHOOTOUT_PHOENIX] = {"{\"topic\":\"" LOBBY "\",\"event\":\"", "\",\"payload\":{\"body\":{\"sendTime\":\"",
        "\",\"padding\":\"", "\"", "}},\"ref\":\""},
    [SHOOTOUT_PHOENIX_2] = {"[null,null,\"" LOBBY "\",\"", "\",{\"body\":{\"sendTime\":\"", "\",\"padding\":\"", "\"",
        "}}]"},
    [SHOOTOUT_CABLE] = {"{\"command\":\"message\",\"identifier\":" CHANNEL_RAW ",\"data\":\"{\\\"action\\\":\\\"",
        "\\\",\\\"payload\\\":{\\\"sendTime\\\":\\\"", "\\\",\\\"padding\\\":\\\"", "\\\"", "}}\"}"},
};

void shootout_request(
    struct shootout_text *text, enum shootout_protocol protocol, const struct shootout_request *request) {
  begin(text);
  if (protocol == SHOOTOUT_BINARY) {
    binary_request(text, request);
    return;
  }
  const struct request_form *form = &request_forms[protocol];
  add_text(text, form->head);
  add_text(text, request->kind == SHOOTOUT_ECHO ? "echo" : "broadcast");
  add_text(text, form->time);
  add_number(text, text->time, sizeof text->time, request->send_time_ns);
  if (request->padding_len) {
    add_text(text, form->padding);
    add(text, view_of(NULL, request->padding_len));
  }
  add_text(text, form->padding_end);
  add_text(text, form->end);
  if (protocol != SHOOTOUT_PHOENIX) return;
  if (request->has_ref) add_number(text, text->ref, sizeof text->ref, request->ref);
  add_text(text, "\"}");
}

struct view shootout_join(enum shootout_protocol protocol) {
  switch (protocol) {
  case SHOOTOUT_PHOENIX:
    return view_str("{\"topic\":\"" LOBBY "\",\"event\":\"phx_join\",\"payload\":null,\"ref\":\"\"}");
  case SHOOTOUT_CABLE:
    return view_str("{\"command\":\"subscribe\",\"identifier\":" CHANNEL_RAW "}");
  default:
    return (struct view){0};
  }
}

struct view shootout_heartbeat(enum shootout_protocol protocol) {
  if (protocol != SHOOTOUT_PHOENIX) return (struct view){0};
  return view_str("{\"topic\":\"phoenix\",\"event\":\"heartbeat\",\"payload\":{},\"ref\":\"\"}");
}

static const char *kind_name(enum shootout_kind kind) {
  switch (kind) {
  case SHOOTOUT_ECHO:
    return "echo";
  case SHOOTOUT_BROADCAST:
    return "broadcast";
  default:
    return "broadcastResult";
  }
}

static struct view or_null(struct view raw) {
  return raw.len ? raw : view_str("null");
}

/* A Phoenix reply from its head up to where the payload's response starts; phoenix_reply_end closes it. */
static void phoenix_reply(struct shootout_text *text, bool version_2, const struct shootout_message *request) {
  if (version_2) {
    add_text(text, "[");
    add(text, or_null(request->join_ref));
    add_text(text, ",");
    add(text, or_null(request->ref));
    add_text(text, ",");
    add(text, request->topic);
    add_text(text, ",\"phx_reply\",{\"status\":");
  } else {
    add_text(text, "{\"topic\":");
    add(text, request->topic);
    add_text(text, ",\"event\":\"phx_reply\",\"payload\":{\"status\":");
  }
}

static void phoenix_reply_end(struct shootout_text *text, bool version_2, const struct shootout_message *request) {
  if (version_2) {
    add_text(text, "}]");
    return;
  }
  add_text(text, "},\"ref\":");
  add(text, or_null(request->ref));
  add_text(text, "}");
}

/* The start of a reply's response with a payload, for each kind. */
static const char *phoenix_response(enum shootout_kind kind) {
  return kind == SHOOTOUT_ECHO ? "\"ok\",\"response\":{\"type\":\"echo\",\"body\":"
                               : "\"ok\",\"response\":{\"type\":\"broadcastResult\",\"body\":";
}

static void phoenix_answer(
    struct shootout_text *text, bool version_2, enum shootout_kind kind, const struct shootout_message *request) {
  phoenix_reply(text, version_2, request);
  /* Ten pieces at most: the pieces of version 2 are 7 + 3. */
  add_text(text, phoenix_response(kind));
  add(text, request->payload);
  if (version_2) {
    add_text(text, "}}]");
    return;
  }
  add_text(text, "}},\"ref\":");
  add(text, or_null(request->ref));
  add_text(text, "}");
}

static void json_message(struct shootout_text *text, enum shootout_kind kind, struct view payload) {
  add_text(text, "{\"type\":\"");
  add_text(text, kind_name(kind));
  add_text(text, "\",\"payload\":");
  add(text, payload);
  add_text(text, "}");
}

static void binary_message(struct shootout_text *text, enum shootout_kind kind, struct view payload) {
  text->binary[0] = (uint8_t)kind_name(kind)[0];
  if (kind == SHOOTOUT_RESULT) text->binary[0] = 'r';
  add(text, view_of(text->binary, BINARY_TYPE));
  if (payload.len) add(text, payload);
}

static void cable_message(struct shootout_text *text, enum shootout_kind kind, struct view payload) {
  add_text(text, "{\"identifier\":" CHANNEL_RAW ",\"message\":{\"action\":\"");
  add_text(text, kind_name(kind));
  add_text(text, "\",\"payload\":");
  add(text, payload);
  add_text(text, "}}");
}

void shootout_answer(struct shootout_text *text, enum shootout_protocol protocol, enum shootout_kind kind,
    const struct shootout_message *request) {
  begin(text);
  switch (protocol) {
  case SHOOTOUT_JSON:
    json_message(text, kind, request->payload);
    break;
  case SHOOTOUT_BINARY:
    binary_message(text, kind, request->payload);
    break;
  case SHOOTOUT_CABLE:
    cable_message(text, kind, request->payload);
    break;
  default:
    phoenix_answer(text, protocol == SHOOTOUT_PHOENIX_2, kind, request);
  }
}

void shootout_fan_out(struct shootout_text *text, enum shootout_protocol protocol, struct view payload) {
  begin(text);
  switch (protocol) {
  case SHOOTOUT_JSON:
    json_message(text, SHOOTOUT_BROADCAST, payload);
    break;
  case SHOOTOUT_BINARY:
    binary_message(text, SHOOTOUT_BROADCAST, payload);
    break;
  case SHOOTOUT_CABLE:
    cable_message(text, SHOOTOUT_BROADCAST, payload);
    break;
  case SHOOTOUT_PHOENIX:
    add_text(text, "{\"topic\":\"" LOBBY "\",\"event\":\"broadcast\",\"payload\":{\"type\":\"broadcast\",\"body\":");
    add(text, payload);
    add_text(text, "},\"ref\":null}");
    break;
  case SHOOTOUT_PHOENIX_2:
    add_text(text, "[null,null,\"" LOBBY "\",\"broadcast\",{\"type\":\"broadcast\",\"body\":");
    add(text, payload);
    add_text(text, "}]");
    break;
  }
}

static void cable_verdict(struct shootout_text *text, struct view identifier, const char *type) {
  add_text(text, "{\"identifier\":");
  add(text, identifier);
  add_text(text, ",\"type\":\"");
  add_text(text, type);
  add_text(text, "\"}");
}

void shootout_confirm(
    struct shootout_text *text, enum shootout_protocol protocol, const struct shootout_message *request) {
  begin(text);
  if (protocol == SHOOTOUT_CABLE) {
    cable_verdict(text, request->identifier, "confirm_subscription");
    return;
  }
  bool version_2 = protocol == SHOOTOUT_PHOENIX_2;
  phoenix_reply(text, version_2, request);
  add_text(text, "\"ok\",\"response\":{}");
  phoenix_reply_end(text, version_2, request);
}

void shootout_refuse(struct shootout_text *text, enum shootout_protocol protocol,
    const struct shootout_message *request, const char *reason) {
  begin(text);
  if (protocol == SHOOTOUT_CABLE) {
    cable_verdict(text, request->identifier, "reject_subscription");
  } else if (protocol == SHOOTOUT_JSON) {
    add_text(text, "{\"type\":\"error\",\"payload\":\"");
    add_text(text, reason);
    add_text(text, "\"}");
  } else {
    bool version_2 = protocol == SHOOTOUT_PHOENIX_2;
    phoenix_reply(text, version_2, request);
    add_text(text, "\"error\",\"response\":{\"reason\":\"");
    add_text(text, reason);
    add_text(text, "\"}");
    phoenix_reply_end(text, version_2, request);
  }
}

struct view shootout_welcome(void) {
  return view_str("{\"type\":\"welcome\"}");
}

void shootout_cable_ping(struct shootout_text *text, uint64_t unix_seconds) {
  begin(text);
  add_text(text, "{\"type\":\"ping\",\"message\":");
  add_number(text, text->time, sizeof text->time, unix_seconds);
  add_text(text, "}");
}
