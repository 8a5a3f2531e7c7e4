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
#include "driver/fail.h"
#include "driver/target.h"
#include "driver/ws_client.h"

#include "base/clock.h"
#include "wire/shootout.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define TICK_NS (30 * NS_PER_SEC)
#define UNANSWERED_MAX 3
#define PROBE_LEN 21
#define CABLE_PROTOCOL "actioncable-v1-json"
#define CODE_REFUSED 1

enum step { STEP_WELCOME, STEP_JOIN, STEP_PROBE, STEP_READY };

struct shootout_client {
  struct ws_client ws;
  uint8_t step; /* enum step */
  uint8_t unanswered;
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
  if (status == STATUS_OK) status = target_open(run, tls, err);
  if (status != STATUS_OK) target_release(run);
  return status;
}

/* ---- Writing: each returns false when memory is out or the stream is over ---- */

static bool frame_begin(struct client *client, struct ws_frame *frame, size_t len) {
  uint8_t opcode = plan_of(client)->protocol == SHOOTOUT_BINARY ? WS_BINARY : WS_TEXT;
  return ws_frame_begin(&state_of(client)->ws, client, opcode, len, frame);
}

static bool write_view(struct client *client, struct view message) {
  struct ws_frame frame;
  if (!frame_begin(client, &frame, message.len)) return false;
  memcpy(frame.message, message.data, message.len);
  ws_frame_end(client, &frame);
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
  struct ws_frame frame;
  shootout_request(&text, plan_of(client)->protocol, &request);
  if (!frame_begin(client, &frame, text.len)) return false;
  memcpy(shootout_put(frame.message, &text), probe, PROBE_LEN);
  ws_frame_end(client, &frame);
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
  struct ws_frame frame;
  shootout_request(&text, plan_of(client)->protocol, &request);
  if (!frame_begin(client, &frame, text.len)) return PUBLISH_BLOCKED;
  payload_write(client->run->driver->payload_form, shootout_put(frame.message, &text), &publish->payload);
  ws_frame_end(client, &frame);
  return PUBLISH_WRITTEN;
}

/* ---- Reading: each handler returns false once it has failed the client ---- */

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
  if (event->kind == WS_EVENT_MESSAGE) return on_message(client, event);
  return ws_client_control(&state->ws, client, event, state->step == STEP_READY);
}

static bool on_upgraded(struct client *client, struct view subprotocol) {
  bool cable = plan_of(client)->protocol == SHOOTOUT_CABLE && view_is(subprotocol, CABLE_PROTOCOL);
  return subprotocol.len == 0 || cable ? register_client(client) : fail(client, CAUSE_UPGRADE);
}

static size_t shootout_received(struct client *client, uint8_t *data, size_t len) {
  static const struct ws_client_ops ops = {ws_client_message_limit, on_upgraded, on_event};
  return ws_client_received(&state_of(client)->ws, client, &ops, data, len);
}

/* ---- Life ---- */

static void shootout_opened(struct client *client) {
  const struct shootout_plan *plan = plan_of(client);
  ws_client_open(&state_of(client)->ws, client, plan->path, plan->headers);
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
  bool written =
      heartbeat.len ? write_view(client, heartbeat) : ws_client_write_control(&state->ws, client, WS_PING, NULL, 0);
  check_written(client, written);
}

static void shootout_closing(struct client *client) {
  if (state_of(client)->step != STEP_READY) return;
  ws_client_write_close(&state_of(client)->ws, client);
}

static void shootout_released(struct client *client) {
  ws_client_free(&state_of(client)->ws);
}

static const char *shootout_code_text(int32_t code) {
  return code == CODE_REFUSED ? "refused (an error reply, or the subscription was rejected)" : NULL;
}

#define ACK_MEANING "broadcastResult: the server says that it has issued the fan-out (an echo has no ACK)"
#define DELIVERY "pushed to every open connection, the sender's included; neither stored nor acknowledged"
#define OUTSTANDING_MAX 32768

static const struct driver_option options[] = {{"origin", NULL}, {"keep-alive", NULL},
    DRIVER_TLS_OPTIONS("wss,wss+json,wss+binary,wss+phoenix,wss+cable"), {NULL, NULL}};

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
    .options = options,
    .prepare = shootout_prepare,
    .release = target_release,
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
    .options = options,
    .prepare = shootout_prepare,
    .release = target_release,
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
    .options = options,
    .prepare = shootout_prepare,
    .release = target_release,
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
    .options = options,
    .prepare = shootout_prepare,
    .release = target_release,
    .opened = shootout_opened,
    .received = shootout_received,
    .publish = shootout_publish,
    .tick = shootout_tick,
    .closing = shootout_closing,
    .released = shootout_released,
    .code_text = shootout_code_text,
};
