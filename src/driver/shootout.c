/* The protocols of websocket-shootout: JSON, binary, Phoenix channels and ActionCable. They need no set-up: a client
 * connects, upgrades and, where there are channels, joins one.
 *
 * A server may put a connection into its broadcast set after the 101 (shared facts, section 2.8, 7), so a client counts
 * as established only when that is certain: Phoenix's join reply has status ok, ActionCable's subscription is
 * confirmed, and of the other two one echo, the probe, has come back.
 *
 * muster's payload is the `padding`; sendTime is filled as the original does. The result of a broadcast returns the
 * payload, so the ACK is found by the header inside it. An echo has no ACK: its one recipient is the sender, and what
 * comes back is the delivery. */
#include "driver/driver.h"

#include "base/clock.h"
#include "base/rng.h"
#include "net/http.h"
#include "net/tls.h"
#include "net/ws.h"
#include "wire/shootout.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define TICK_NS (30 * NS_PER_SEC)
#define UNANSWERED_MAX 3
#define UPGRADE_KEY_BYTES 25
#define PROBE_LEN 21
#define MESSAGE_OVERHEAD (64 * 1024) /* pretty printing and members that servers add */
#define CABLE_PROTOCOL "actioncable-v1-json"
#define CODE_REFUSED 1

enum step { STEP_UPGRADE, STEP_WELCOME, STEP_JOIN, STEP_PROBE, STEP_READY };

struct shootout_client {
  struct ws ws;
  uint32_t mask_state;
  uint8_t step; /* enum step */
  uint8_t unanswered;
  char upgrade_key[UPGRADE_KEY_BYTES];
};

static_assert(sizeof(struct client) + sizeof(struct shootout_client) <= 256, "an idle client must stay small");

/* What all clients share. */
struct shootout_plan {
  enum shootout_protocol protocol;
  const char *path;
  char headers[600]; /* of the upgrade */
};

static struct shootout_client *state_of(struct client *client) {
  return client_state(client);
}

static const struct shootout_plan *plan_of(const struct client *client) {
  return client->run->population;
}

/* ---- Set-up ---- */

struct variant {
  const struct driver *driver;
  enum shootout_protocol protocol;
  const char *path;
};

static const struct variant variants[] = {
    {&driver_shootout_json, SHOOTOUT_JSON, "/ws"},
    {&driver_shootout_binary, SHOOTOUT_BINARY, "/binary"},
    {&driver_shootout_phoenix, SHOOTOUT_PHOENIX, "/socket/websocket"},
    {&driver_shootout_actioncable, SHOOTOUT_CABLE, "/cable"},
};

static const struct variant *variant_of(const struct driver *driver) {
  const struct variant *variant = variants;
  while (variant->driver != driver)
    variant++;
  return variant;
}

static bool is_field_text(const char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < ' ' || *text == 0x7f) return false;
  }
  return true;
}

/* Without an origin asked for, that of a page of the server itself: what a browser would send. */
static enum status write_headers(
    struct shootout_plan *plan, const struct driver_settings *settings, bool tls, struct err *err) {
  char own[320];
  const char *origin = settings->origin;
  if (!origin) {
    bool literal = strchr(settings->url.host, ':');
    snprintf(own, sizeof own, "%s://%s%s%s:%u", tls ? "https" : "http", literal ? "[" : "", settings->url.host,
        literal ? "]" : "", settings->url.port);
    origin = own;
  }
  if (!is_field_text(origin)) return err_set(err, STATUS_USAGE, "--origin holds a control character");
  const char *subprotocol = plan->protocol == SHOOTOUT_CABLE ? "Sec-WebSocket-Protocol: " CABLE_PROTOCOL "\r\n" : "";
  int len = snprintf(plan->headers, sizeof plan->headers, "Origin: %s\r\n%s", origin, subprotocol);
  if (len > 0 && (size_t)len < sizeof plan->headers) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "--origin is longer than 500 characters");
}

static void shootout_release(struct driver_run *run) {
  tls_context_free(run->tls);
  run->tls = NULL;
  arena_free(&run->arena);
  run->population = NULL;
}

static enum status open_target(struct driver_run *run, bool tls, struct err *err) {
  struct driver_settings *settings = &run->settings;
  memcpy(run->server_name, settings->url.host, sizeof run->server_name);
  enum status status = address_resolve(settings->url.host, settings->url.port, &run->address, err);
  if (status != STATUS_OK || !tls) return status;
  return tls_client_context(&run->tls, settings->tls_verify, settings->tls_ca_file, err);
}

static enum status shootout_prepare(struct driver_run *run, struct err *err) {
  const struct variant *variant = variant_of(run->driver);
  struct url *url = &run->settings.url;
  bool tls = strncmp(url->scheme, "wss", 3) == 0;
  if (url->port == 0) url->port = run->driver->default_port;
  struct shootout_plan *plan = arena_alloc(&run->arena, sizeof *plan);
  if (!plan) return err_set(err, STATUS_MEMORY, "out of memory for the plan of the clients");
  run->population = plan;
  plan->protocol = variant->protocol;
  plan->path = url->path[0] ? url->path : variant->path;
  enum status status = write_headers(plan, &run->settings, tls, err);
  if (status == STATUS_OK) status = open_target(run, tls, err);
  if (status != STATUS_OK) shootout_release(run);
  return status;
}

/* ---- Writing: each returns false when memory is out or the stream is over ---- */

static void next_mask(struct shootout_client *state, uint8_t mask[4]) {
  uint32_t x = state->mask_state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  state->mask_state = x;
  memcpy(mask, &x, 4);
}

static bool write_raw(struct client *client, const void *data, size_t len) {
  if (!stream_write(&client->stream, data, len)) return false;
  client->run->bytes_sent += len;
  return true;
}

static bool write_control(struct client *client, uint8_t opcode, const void *data, size_t len) {
  uint8_t mask[4], frame[131];
  next_mask(state_of(client), mask);
  return write_raw(client, frame, ws_write_control(frame, opcode, data, len, mask));
}

struct frame {
  uint8_t *message;
  size_t header_len;
  uint8_t mask[4];
};

/* Reserves a whole frame and writes its header. */
static bool frame_begin(struct client *client, struct frame *frame, size_t len) {
  frame->header_len = ws_header_size(len, true);
  uint8_t *at = stream_reserve(&client->stream, frame->header_len + len);
  if (!at) return false;
  next_mask(state_of(client), frame->mask);
  ws_write_header(at, plan_of(client)->protocol == SHOOTOUT_BINARY ? WS_BINARY : WS_TEXT, len, frame->mask);
  frame->message = at + frame->header_len;
  return true;
}

static void frame_end(struct client *client, const struct frame *frame, size_t len) {
  ws_mask(frame->message, len, frame->mask, 0);
  stream_commit(&client->stream, frame->header_len + len);
  client->run->bytes_sent += frame->header_len + len;
}

static bool write_view(struct client *client, struct view message) {
  struct frame frame;
  if (!frame_begin(client, &frame, message.len)) return false;
  memcpy(frame.message, message.data, message.len);
  frame_end(client, &frame, message.len);
  return true;
}

static void write_probe_text(const struct client *client, char out[PROBE_LEN + 1]) {
  snprintf(out, PROBE_LEN + 1, "muster-probe-%08x", (unsigned)client->index);
}

static bool write_probe(struct client *client) {
  char probe[PROBE_LEN + 1];
  write_probe_text(client, probe);
  struct shootout_request request = {
      .kind = SHOOTOUT_ECHO, .send_time_ns = (uint64_t)clock_wall_ns(), .padding_len = PROBE_LEN};
  struct shootout_text text;
  struct frame frame;
  shootout_request(&text, plan_of(client)->protocol, &request);
  if (!frame_begin(client, &frame, text.len)) return false;
  memcpy(shootout_put(frame.message, &text), probe, PROBE_LEN);
  frame_end(client, &frame, text.len);
  return true;
}

static enum publish_result shootout_publish(struct client *client, const struct publish *publish) {
  if (state_of(client)->step != STEP_READY) return PUBLISH_BLOCKED;
  struct shootout_request request = {
      .kind = publish->to == PUBLISH_TO_SELF ? SHOOTOUT_ECHO : SHOOTOUT_BROADCAST,
      .send_time_ns = (uint64_t)clock_wall_ns(),
      .padding_len = publish->payload.size,
      .ref = publish->token,
      .has_ref = true,
  };
  struct shootout_text text;
  struct frame frame;
  shootout_request(&text, plan_of(client)->protocol, &request);
  if (!frame_begin(client, &frame, text.len)) return PUBLISH_BLOCKED;
  payload_write(client->run->driver->payload_form, shootout_put(frame.message, &text), &publish->payload);
  frame_end(client, &frame, text.len);
  return PUBLISH_WRITTEN;
}

/* ---- Reading: each handler returns false once it has failed the client ---- */

static bool fail(struct client *client, int32_t code) {
  client->hooks->failed(client, code);
  return false;
}

static bool check_written(struct client *client, bool written) {
  return written || fail(client, CAUSE_RESET);
}

static bool establish(struct client *client) {
  state_of(client)->step = STEP_READY;
  client->hooks->established(client);
  return true;
}

/* The upgrade is through: starts what makes sure that broadcasts reach this client. */
static bool register_client(struct client *client) {
  struct shootout_client *state = state_of(client);
  switch (plan_of(client)->protocol) {
  case SHOOTOUT_CABLE:
    state->step = STEP_WELCOME;
    return true;
  case SHOOTOUT_PHOENIX:
    state->step = STEP_JOIN;
    return check_written(client, write_view(client, shootout_join(SHOOTOUT_PHOENIX)));
  default:
    state->step = STEP_PROBE;
    return check_written(client, write_probe(client));
  }
}

static bool is_probe(const struct client *client, struct view padding) {
  char probe[PROBE_LEN + 1];
  write_probe_text(client, probe);
  return view_is(padding, probe);
}

static bool on_early_message(struct client *client, const struct shootout_message *message, struct view padding) {
  struct shootout_client *state = state_of(client);
  switch (message->kind) {
  case SHOOTOUT_WELCOME:
    if (state->step != STEP_WELCOME) return true;
    state->step = STEP_JOIN;
    return check_written(client, write_view(client, shootout_join(SHOOTOUT_CABLE)));
  case SHOOTOUT_JOINED:
    return state->step != STEP_JOIN || establish(client);
  case SHOOTOUT_ECHO:
    return state->step != STEP_PROBE || !is_probe(client, padding) || establish(client);
  case SHOOTOUT_REFUSED:
  case SHOOTOUT_ERROR:
    return fail(client, CODE_REFUSED);
  case SHOOTOUT_DISCONNECT:
    return fail(client, CAUSE_CLOSED_EARLY);
  default: /* somebody else's broadcast, perhaps: before this client was established, so not for it */
    return true;
  }
}

/* The sender's own broadcast is done; a result that belongs to no publish of this client and run is nobody's. */
static void on_result(struct client *client, struct view padding) {
  struct payload payload;
  enum payload_form form = client->run->driver->payload_form;
  if (payload_read(form, padding.data, padding.len, &payload) != PAYLOAD_OK) return;
  if (payload.run_id != client->run->settings.run_id || payload.sender != client->index) return;
  client->hooks->acked(client, publish_token(&payload), 0);
}

static bool on_ready_message(struct client *client, const struct shootout_message *message, struct view padding) {
  uint32_t token;
  switch (message->kind) {
  case SHOOTOUT_ECHO:
  case SHOOTOUT_BROADCAST:
    client->hooks->delivered(client, padding, false);
    return true;
  case SHOOTOUT_RESULT:
    on_result(client, padding);
    return true;
  case SHOOTOUT_REFUSED:
    if (shootout_ref_number(message->ref, &token)) client->hooks->acked(client, token, CODE_REFUSED);
    return true;
  case SHOOTOUT_DISCONNECT:
    return fail(client, CAUSE_KICKED);
  default:
    return true;
  }
}

static bool on_message(struct client *client, const struct ws_event *event) {
  enum shootout_protocol protocol = plan_of(client)->protocol;
  struct shootout_message message;
  bool binary = event->opcode == WS_BINARY;
  if (binary != (protocol == SHOOTOUT_BINARY)) return fail(client, CAUSE_PROTOCOL);
  if (!shootout_read_reply(protocol, event->data, event->len, &message)) return fail(client, CAUSE_PROTOCOL);
  struct view padding = {0};
  if (message.payload.len) padding = shootout_padding(protocol, message.payload);
  if (state_of(client)->step == STEP_READY) return on_ready_message(client, &message, padding);
  return on_early_message(client, &message, padding);
}

static bool on_event(struct client *client, const struct ws_event *event) {
  struct shootout_client *state = state_of(client);
  state->unanswered = 0;
  switch (event->kind) {
  case WS_EVENT_MESSAGE:
    return on_message(client, event);
  case WS_EVENT_PING:
    return check_written(client, write_control(client, WS_PONG, event->data, event->len));
  case WS_EVENT_CLOSE:
    return fail(client, state->step == STEP_READY ? CAUSE_CLOSED_BY_PEER : CAUSE_CLOSED_EARLY);
  case WS_EVENT_ERROR:
    return fail(client, CAUSE_PROTOCOL);
  default:
    return true;
  }
}

static bool subprotocol_fits(const struct client *client, const struct http_head *head) {
  struct view chosen = http_field(head, "sec-websocket-protocol");
  return chosen.len == 0 || (plan_of(client)->protocol == SHOOTOUT_CABLE && view_is(chosen, CABLE_PROTOCOL));
}

static uint32_t message_limit(const struct driver_settings *settings) {
  uint64_t limit = (uint64_t)settings->payload_bytes * 2 + MESSAGE_OVERHEAD;
  return limit > INT32_MAX ? INT32_MAX : (uint32_t)limit;
}

/* Reads the answer to the upgrade; *used stays 0 while more bytes are needed. */
static bool on_upgrade(struct client *client, const uint8_t *data, size_t len, size_t *used) {
  struct shootout_client *state = state_of(client);
  struct http_head head;
  enum http_result result = http_read_response(data, len, &head, used, NULL);
  if (result == HTTP_PARTIAL && len < HTTP_HEAD_MAX) {
    *used = 0;
    return true;
  }
  bool good = result == HTTP_COMPLETE && ws_check_response(&head, state->upgrade_key, NULL) == STATUS_OK &&
              subprotocol_fits(client, &head);
  if (!good) return fail(client, CAUSE_UPGRADE);
  ws_init(&state->ws, WS_CLIENT, message_limit(&client->run->settings));
  return register_client(client);
}

static size_t shootout_received(struct client *client, uint8_t *data, size_t len) {
  struct shootout_client *state = state_of(client);
  size_t used = 0;
  if (state->step == STEP_UPGRADE) {
    if (!on_upgrade(client, data, len, &used)) return 0;
    if (state->step == STEP_UPGRADE) return 0;
  }
  while (used < len) {
    struct ws_event event;
    size_t read = ws_read(&state->ws, data + used, len - used, &event);
    used += read;
    if (event.kind == WS_EVENT_NONE) {
      if (read == 0) break;
      continue;
    }
    if (!on_event(client, &event)) return 0;
  }
  return used;
}

/* ---- Life ---- */

static void shootout_opened(struct client *client) {
  struct shootout_client *state = state_of(client);
  const struct shootout_plan *plan = plan_of(client);
  char request[2048];
  ws_make_key(state->upgrade_key);
  random_bytes(&state->mask_state, sizeof state->mask_state);
  state->mask_state |= 1; /* xorshift must not start at 0 */
  size_t len = ws_write_request(request, sizeof request, client->run->server_name, client->run->settings.url.port,
      plan->path, state->upgrade_key, plan->headers);
  if (len == 0 || !write_raw(client, request, len)) fail(client, CAUSE_UPGRADE);
}

/* Phoenix drops a connection without a heartbeat for 60 s; the others get a WebSocket Ping. */
static void shootout_tick(struct client *client, uint64_t now_ns) {
  struct shootout_client *state = state_of(client);
  (void)now_ns;
  if (state->step != STEP_READY) return;
  if (state->unanswered >= UNANSWERED_MAX) {
    fail(client, CAUSE_KEEP_ALIVE);
    return;
  }
  state->unanswered++;
  struct view heartbeat = shootout_heartbeat(plan_of(client)->protocol);
  bool written = heartbeat.len ? write_view(client, heartbeat) : write_control(client, WS_PING, NULL, 0);
  check_written(client, written);
}

static void shootout_closing(struct client *client) {
  if (state_of(client)->step != STEP_READY) return;
  static const uint8_t normal[2] = {1000 >> 8, 1000 & 0xff};
  write_control(client, WS_CLOSE, normal, sizeof normal);
}

static void shootout_released(struct client *client) {
  ws_free(&state_of(client)->ws);
}

static const char *shootout_code_text(int32_t code) {
  return code == CODE_REFUSED ? "refused (an error reply, or the subscription was rejected)" : NULL;
}

#define ACK_MEANING "broadcastResult: the server says that it has issued the fan-out (an echo has no ACK)"
#define DELIVERY "pushed to every open connection, the sender's included; neither stored nor acknowledged"
#define OUTSTANDING_MAX 32768

const struct driver driver_shootout_json = {
    .name = "shootout-json",
    .schemes = "ws+json,wss+json",
    .title = "websocket-shootout, JSON",
    .ack_meaning = ACK_MEANING,
    .delivery = DELIVERY,
    .capabilities = CAPABILITY_ACKS | CAPABILITY_ECHO | CAPABILITY_BROADCAST,
    .default_port = 3000,
    .payload_form = PAYLOAD_BARE,
    .payload_min_bytes = PAYLOAD_BARE_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct shootout_client),
    .prepare = shootout_prepare,
    .release = shootout_release,
    .opened = shootout_opened,
    .received = shootout_received,
    .publish = shootout_publish,
    .tick = shootout_tick,
    .closing = shootout_closing,
    .released = shootout_released,
    .code_text = shootout_code_text,
};

const struct driver driver_shootout_binary = {
    .name = "shootout-binary",
    .schemes = "ws+binary,wss+binary",
    .title = "websocket-shootout, binary",
    .ack_meaning = ACK_MEANING,
    .delivery = DELIVERY,
    .capabilities = CAPABILITY_ACKS | CAPABILITY_ECHO | CAPABILITY_BROADCAST,
    .default_port = 3000,
    .payload_form = PAYLOAD_BINARY,
    .payload_min_bytes = PAYLOAD_BINARY_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct shootout_client),
    .prepare = shootout_prepare,
    .release = shootout_release,
    .opened = shootout_opened,
    .received = shootout_received,
    .publish = shootout_publish,
    .tick = shootout_tick,
    .closing = shootout_closing,
    .released = shootout_released,
    .code_text = shootout_code_text,
};

const struct driver driver_shootout_phoenix = {
    .name = "shootout-phoenix",
    .schemes = "ws+phoenix,wss+phoenix",
    .title = "websocket-shootout, Phoenix channels",
    .ack_meaning = ACK_MEANING,
    .delivery = DELIVERY,
    .capabilities = CAPABILITY_ACKS | CAPABILITY_ECHO | CAPABILITY_BROADCAST,
    .default_port = 4000,
    .payload_form = PAYLOAD_BARE,
    .payload_min_bytes = PAYLOAD_BARE_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct shootout_client),
    .prepare = shootout_prepare,
    .release = shootout_release,
    .opened = shootout_opened,
    .received = shootout_received,
    .publish = shootout_publish,
    .tick = shootout_tick,
    .closing = shootout_closing,
    .released = shootout_released,
    .code_text = shootout_code_text,
};

const struct driver driver_shootout_actioncable = {
    .name = "shootout-actioncable",
    .schemes = "ws+cable,wss+cable",
    .title = "websocket-shootout, ActionCable",
    .ack_meaning = ACK_MEANING,
    .delivery = DELIVERY,
    .capabilities = CAPABILITY_ACKS | CAPABILITY_ECHO | CAPABILITY_BROADCAST,
    .default_port = 3000,
    .payload_form = PAYLOAD_BARE,
    .payload_min_bytes = PAYLOAD_BARE_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct shootout_client),
    .prepare = shootout_prepare,
    .release = shootout_release,
    .opened = shootout_opened,
    .received = shootout_received,
    .publish = shootout_publish,
    .tick = shootout_tick,
    .closing = shootout_closing,
    .released = shootout_released,
    .code_text = shootout_code_text,
};
