/* Socket.IO 5 over Engine.IO 4, WebSocket only: the Engine.IO handshake, CONNECT to one namespace, one join for each
 * room, then publishes with acknowledgement callbacks.
 *
 * Socket.IO has no events of its own for any of this, so muster has a contract (docs/drivers.md): the client emits
 * join(room, callback) and publish(room, content, callback), the server emits message(content) to the room. The URL
 * gives other names. A client is established when each of its rooms was acknowledged.
 *
 * Rooms: muster.<run>.client.<n> is a client's own, ...group.<n> a group's, ...room and ...all the others'. Whether a
 * room's message comes back to its sender (io.to) or not (socket.to) is up to the server's code, and echo=on or off
 * says which it is.
 *
 * An acknowledgement's id is the token of its publish. The server pings; a client whose server was silent for the
 * interval and the timeout that it announced is lost. */
#include "driver/fail.h"
#include "driver/name.h"
#include "driver/query.h"
#include "driver/target.h"
#include "driver/ws_client.h"

#include "base/clock.h"
#include "wire/json_scan.h"
#include "wire/socketio.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS (30 * NS_PER_SEC)
#define DEFAULT_PATH "/socket.io/"
#define ENGINE_QUERY "?EIO=4&transport=websocket"
#define PATH_MAX_BYTES 256
#define NAME_MAX_BYTES 63 /* of an event: what scan_is compares */
#define ROOM_MAX 64
#define PREFIX_MAX 32
#define CONNECT_MAX 1536
#define EVENT_HEAD_MAX (SOCKETIO_EVENT_FIXED + SOCKETIO_NAMESPACE_MAX + NAME_MAX_BYTES + ROOM_MAX)
#define OUTSTANDING_MAX 32768

enum code {
  CODE_NAMESPACE = 100001,
  CODE_CONNECT_ERROR,
  CODE_MAX_PAYLOAD,
  CODE_BINARY,
};

enum step { STEP_OPEN, STEP_CONNECT, STEP_JOIN, STEP_READY };

struct socketio_client {
  struct ws_client ws;
  uint64_t heard_ns;    /* the handshake or the last ping */
  uint64_t patience_ns; /* without a ping; 0: the server announced none */
  uint32_t joined;      /* rooms */
  uint16_t attachments; /* binary messages that are still to come */
  uint8_t step;         /* enum step */
};

static_assert(sizeof(struct client) + sizeof(struct socketio_client) <= 352, "leaves 160 bytes for the load room");

/* What all clients share. */
struct socketio_plan {
  bool acks;
  uint32_t rooms;          /* of one client */
  uint64_t packet_max;     /* bytes of the largest publish */
  char prefix[PREFIX_MAX]; /* of every room: "muster.0123456789abcdef" */
  char namespace[QUERY_TEXT_MAX], join[QUERY_TEXT_MAX], publish[QUERY_TEXT_MAX], message[QUERY_TEXT_MAX];
  char path[PATH_MAX_BYTES + sizeof ENGINE_QUERY]; /* of the upgrade */
  char delivery[128];
  char headers[WS_CLIENT_HEADERS_MAX];
  uint8_t connect[CONNECT_MAX];
  size_t connect_len;
};

static struct socketio_client *state_of(struct client *client) {
  return client_state(client);
}

static const struct socketio_plan *plan_of(const struct client *client) {
  return client->run->population;
}

/* --- set-up --- */

enum { SETTING_ECHO, SETTING_ACK, SETTING_NAMESPACE, SETTING_JOIN, SETTING_PUBLISH, SETTING_MESSAGE, SETTINGS };

static enum status take_name(char *out, const char *setting, const char *text, struct err *err) {
  if (strlen(text) > NAME_MAX_BYTES || strpbrk(text, "\"\\")) {
    return err_set(err, STATUS_USAGE, "--target: %s=%s: an event's name has at most %d characters, no \" and no \\",
        setting, text, NAME_MAX_BYTES);
  }
  if (!text[0] && strcmp(setting, "join") != 0) {
    return err_set(err, STATUS_USAGE, "--target: %s= names no event", setting);
  }
  snprintf(out, QUERY_TEXT_MAX, "%s", text);
  return STATUS_OK;
}

static enum status take_names(struct socketio_plan *plan, char (*texts)[QUERY_TEXT_MAX], struct err *err) {
  const char *namespace = texts[SETTING_NAMESPACE];
  if (namespace[0] != '/' || strchr(namespace, ',')) {
    return err_set(err, STATUS_USAGE, "--target: nsp=%s: a namespace begins with / and has no comma", namespace);
  }
  snprintf(plan->namespace, sizeof plan->namespace, "%s", namespace);
  enum status status = take_name(plan->join, "join", texts[SETTING_JOIN], err);
  if (status == STATUS_OK) status = take_name(plan->publish, "publish", texts[SETTING_PUBLISH], err);
  if (status == STATUS_OK) status = take_name(plan->message, "message", texts[SETTING_MESSAGE], err);
  return status;
}

static const struct query_choice choices[] = {{"echo", "off|on"}, {"ack", "on|off"}, {"nsp", NULL}, {"join", NULL},
    {"publish", NULL}, {"message", NULL}, {NULL, NULL}};

static enum status read_query(const struct url *url, char *path, size_t size, unsigned chosen[SETTINGS],
    char (*texts)[QUERY_TEXT_MAX], struct err *err) {
  const char *query;
  if (query_split(url, path, size, &query)) return query_read_texts(query, choices, chosen, texts, err);
  return err_set(err, STATUS_USAGE, "--target: the path is longer than %zu characters", size - 1);
}

/* A server that leaves the sender out cannot send it anything by way of a room. */
static unsigned missing_of(const unsigned chosen[SETTINGS]) {
  unsigned missing = 0;
  if (chosen[SETTING_ECHO] == 0) missing |= CAPABILITY_GROUP_ECHO | CAPABILITY_BROADCAST | CAPABILITY_ECHO;
  if (chosen[SETTING_ACK] != 0) missing |= CAPABILITY_ACKS;
  return missing;
}

static unsigned socketio_without(const struct driver_settings *settings) {
  char texts[SETTINGS][QUERY_TEXT_MAX], path[PATH_MAX_BYTES];
  unsigned chosen[SETTINGS] = {0};
  read_query(&settings->url, path, sizeof path, chosen, texts, NULL);
  return missing_of(chosen);
}

static void tell_settings(const struct driver_settings *settings, struct driver_facts *out) {
  char texts[SETTINGS][QUERY_TEXT_MAX] = {
      [SETTING_NAMESPACE] = "/", [SETTING_JOIN] = "join", [SETTING_PUBLISH] = "publish", [SETTING_MESSAGE] = "message"};
  char path[PATH_MAX_BYTES];
  unsigned chosen[SETTINGS] = {0};
  if (read_query(&settings->url, path, sizeof path, chosen, texts, NULL) != STATUS_OK) return;
  query_tell(choices, chosen, texts, SETTINGS, &out->target);
  query_tell(choices, chosen, texts, SETTING_NAMESPACE, &out->key);
}

static void describe(struct driver_run *run, const unsigned chosen[SETTINGS]) {
  struct socketio_plan *plan = run->population;
  snprintf(plan->delivery, sizeof plan->delivery, "emitted to who is in the room, %s; at most once, kept nowhere",
      chosen[SETTING_ECHO] == 1 ? "the sender too (io.to)" : "but not to the sender (socket.to)");
  run->title =
      strstr(run->settings.url.scheme, "+tls") ? "Socket.IO 5 over WebSocket and TLS" : "Socket.IO 5 over WebSocket";
  run->delivery = plan->delivery;
  run->ack_meaning = plan->acks ? "the callback of the publish event: the server's code has called it" : "none";
  run->capabilities &= ~missing_of(chosen);
}

static enum status read_settings(struct driver_run *run, struct socketio_plan *plan, struct err *err) {
  char texts[SETTINGS][QUERY_TEXT_MAX] = {
      [SETTING_NAMESPACE] = "/", [SETTING_JOIN] = "join", [SETTING_PUBLISH] = "publish", [SETTING_MESSAGE] = "message"};
  unsigned chosen[SETTINGS] = {0};
  char path[PATH_MAX_BYTES];
  enum status status = read_query(&run->settings.url, path, sizeof path, chosen, texts, err);
  if (status == STATUS_OK) status = take_names(plan, texts, err);
  if (status != STATUS_OK) return status;
  bool has_path = strcmp(path, "") != 0 && strcmp(path, "/") != 0;
  snprintf(plan->path, sizeof plan->path, "%s" ENGINE_QUERY, has_path ? path : DEFAULT_PATH);
  plan->acks = chosen[SETTING_ACK] == 0;
  describe(run, chosen);
  return STATUS_OK;
}

/* A password without a user is a token. NULL with nobody to log in as, or when the texts are no UTF-8. */
static char *auth_text(const struct driver_settings *settings) {
  json_t *object = json_object();
  if (settings->user) json_object_set_new(object, "user", json_string(settings->user));
  if (settings->password) {
    json_object_set_new(object, settings->user ? "password" : "token", json_string(settings->password));
  }
  char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
  json_decref(object);
  return text;
}

static enum status write_connect(struct socketio_plan *plan, const struct driver_settings *settings, struct err *err) {
  bool logs_in = settings->user || settings->password;
  char *auth = logs_in ? auth_text(settings) : NULL;
  size_t auth_len = auth ? strlen(auth) : 0;
  bool fits = SOCKETIO_NAMESPACE_MAX + 8 + auth_len <= sizeof plan->connect;
  if (fits) {
    uint8_t *end = socketio_write_connect(plan->connect, view_str(plan->namespace), view_of(auth, auth_len));
    plan->connect_len = (size_t)(end - plan->connect);
  }
  free(auth);
  return fits ? STATUS_OK : err_set(err, STATUS_USAGE, "user and password together are too long");
}

static size_t write_publish_head(
    const struct socketio_plan *plan, struct view room, uint32_t token, uint8_t out[EVENT_HEAD_MAX]) {
  struct socketio_event event = {
      .namespace = view_str(plan->namespace),
      .name = view_str(plan->publish),
      .first = room,
      .has_id = plan->acks,
      .id = token,
  };
  return (size_t)(socketio_write_event(out, &event) - out);
}

static void measure_publish(const struct driver_settings *settings, struct socketio_plan *plan) {
  uint8_t head[EVENT_HEAD_MAX];
  char room[ROOM_MAX];
  uint32_t most = settings->clients > settings->groups ? settings->clients : settings->groups;
  plan->packet_max = write_publish_head(plan, name_numbered(room, plan->prefix, ".client.", most), UINT32_MAX, head);
  plan->packet_max += settings->payload_bytes + 2;
}

static enum status socketio_prepare(struct driver_run *run, struct err *err) {
  struct driver_settings *settings = &run->settings;
  struct socketio_plan *plan = arena_alloc(&run->arena, sizeof *plan);
  if (!plan) return err_set(err, STATUS_MEMORY, "out of memory for the plan of the clients");
  run->population = plan;
  bool tls = strstr(settings->url.scheme, "+tls");
  if (settings->url.port == 0) settings->url.port = tls ? 443 : run->driver->default_port;
  snprintf(plan->prefix, sizeof plan->prefix, "muster.%016" PRIx64, settings->run_id);
  enum status status = read_settings(run, plan, err);
  plan->rooms = plan->join[0] ? name_subscriptions(settings) : 0;
  if (status == STATUS_OK) status = write_connect(plan, settings, err);
  if (status == STATUS_OK) status = ws_client_headers(plan->headers, settings, NULL, err);
  if (status == STATUS_OK) status = target_open(run, tls, err);
  if (status == STATUS_OK) {
    measure_publish(settings, plan);
  } else {
    target_release(run);
  }
  return status;
}

/* --- writing: each returns false when memory is out or the stream is over --- */

static bool write_text(struct client *client, const void *text, size_t len) {
  struct ws_frame frame;
  if (!ws_frame_begin(&state_of(client)->ws, client, WS_TEXT, len, &frame)) return false;
  memcpy(frame.message, text, len);
  ws_frame_end(client, &frame);
  return true;
}

static bool write_pong(struct client *client, struct view data) {
  uint8_t text[64] = {'0' + ENGINEIO_PONG};
  if (data.len >= sizeof text) data.len = 0;
  if (data.len > 0) memcpy(text + 1, data.data, data.len);
  return write_text(client, text, 1 + data.len);
}

static bool write_join(struct client *client) {
  const struct socketio_plan *plan = plan_of(client);
  uint8_t text[EVENT_HEAD_MAX];
  char room[ROOM_MAX];
  struct view joined = name_of_subscription(room, plan->prefix, client, state_of(client)->joined);
  struct socketio_event event = {.namespace = view_str(plan->namespace),
      .name = view_str(plan->join),
      .has_id = true,
      .id = state_of(client)->joined};
  uint8_t *end = socketio_write_event(text, &event);
  memcpy(end, joined.data, joined.len);
  end = socketio_event_end(end + joined.len);
  return write_text(client, text, (size_t)(end - text));
}

static enum publish_result socketio_publish(struct client *client, const struct publish *publish) {
  char room[ROOM_MAX];
  uint8_t head[EVENT_HEAD_MAX];
  struct ws_frame frame;
  const struct socketio_plan *plan = plan_of(client);
  if (state_of(client)->step != STEP_READY) return PUBLISH_BLOCKED;
  size_t head_len =
      write_publish_head(plan, name_of_destination(room, plan->prefix, client, publish), publish->token, head);
  size_t len = head_len + publish->payload.size + 2;
  if (!ws_frame_begin(&state_of(client)->ws, client, WS_TEXT, len, &frame)) return PUBLISH_BLOCKED;
  memcpy(frame.message, head, head_len);
  payload_write(client->run->driver->payload_form, frame.message + head_len, &publish->payload);
  socketio_event_end(frame.message + head_len + publish->payload.size);
  ws_frame_end(client, &frame);
  return PUBLISH_WRITTEN;
}

/* --- reading: each handler returns false once it has failed the client --- */

/* Asks for a tick in the moment in which the server's silence is too long, where no regular one comes before. */
static void watch_silence(struct client *client, uint64_t now_ns) {
  const struct socketio_client *state = state_of(client);
  uint64_t due_ns = state->heard_ns + state->patience_ns;
  if (state->patience_ns > 0 && due_ns < now_ns + driver_tick_ns(client->run)) client->hooks->wake(client, due_ns);
}

static bool on_open(struct client *client, struct view data) {
  struct socketio_client *state = state_of(client);
  const struct socketio_plan *plan = plan_of(client);
  struct engineio_open open;
  if (state->step != STEP_OPEN || !engineio_read_open(data, &open)) return fail(client, CAUSE_PROTOCOL);
  if (open.max_payload > 0 && plan->packet_max > open.max_payload) return fail(client, CODE_MAX_PAYLOAD);
  if (open.ping_interval_ms > 0) {
    state->patience_ns = ((uint64_t)open.ping_interval_ms + open.ping_timeout_ms) * NS_PER_MS;
  }
  state->heard_ns = clock_now_ns();
  state->step = STEP_CONNECT;
  return check_written(client, write_text(client, plan->connect, plan->connect_len));
}

static bool join_next(struct client *client) {
  struct socketio_client *state = state_of(client);
  state->step = STEP_JOIN;
  if (state->joined < plan_of(client)->rooms) return check_written(client, write_join(client));
  state->step = STEP_READY;
  client->hooks->established(client);
  watch_silence(client, clock_now_ns());
  return true;
}

static bool on_ping(struct client *client, struct view data) {
  state_of(client)->heard_ns = clock_now_ns();
  return check_written(client, write_pong(client, data));
}

static bool on_ack(struct client *client, const struct socketio_packet *packet) {
  struct socketio_client *state = state_of(client);
  int32_t code;
  if (!packet->has_id || !socketio_read_ack(packet->data, &code)) return fail(client, CAUSE_PROTOCOL);
  if (state->step == STEP_READY) {
    client->hooks->acked(client, packet->id, code);
    return true;
  }
  if (state->step != STEP_JOIN || packet->id != state->joined) return fail(client, CAUSE_PROTOCOL);
  if (code != 0) return fail(client, code);
  state->joined++;
  return join_next(client);
}

static bool on_content(struct client *client, const struct socketio_packet *packet, struct view content) {
  uint8_t answer[SOCKETIO_NAMESPACE_MAX + 32];
  if (packet->type == SOCKETIO_BINARY_EVENT) return fail(client, CODE_BINARY);
  client->hooks->delivered(client, content, false);
  if (!packet->has_id) return true;
  uint8_t *end = socketio_write_ack(answer, packet->namespace, packet->id);
  return check_written(client, write_text(client, answer, (size_t)(end - answer)));
}

/* Other events are the server's own affair. */
static bool on_emitted(struct client *client, const struct socketio_packet *packet) {
  struct view name, content;
  if (state_of(client)->step < STEP_JOIN) return fail(client, CAUSE_PROTOCOL);
  if (!socketio_read_event(packet->data, &name, &content)) return fail(client, CAUSE_PROTOCOL);
  return !scan_is(name, plan_of(client)->message) || on_content(client, packet, content);
}

static bool on_connect_error(struct client *client, const struct socketio_packet *packet) {
  bool namespace = view_is(socketio_read_error(packet->data), "Invalid namespace");
  return fail(client, namespace ? CODE_NAMESPACE : CODE_CONNECT_ERROR);
}

static bool on_packet(struct client *client, const struct socketio_packet *packet) {
  switch (packet->type) {
  case SOCKETIO_CONNECT:
    return state_of(client)->step == STEP_CONNECT ? join_next(client) : fail(client, CAUSE_PROTOCOL);
  case SOCKETIO_CONNECT_ERROR:
    return on_connect_error(client, packet);
  case SOCKETIO_DISCONNECT:
    return fail(client, state_of(client)->step == STEP_READY ? CAUSE_KICKED : CAUSE_CLOSED_EARLY);
  case SOCKETIO_EVENT:
  case SOCKETIO_BINARY_EVENT:
    return on_emitted(client, packet);
  default:
    return on_ack(client, packet);
  }
}

static bool on_engine_message(struct client *client, struct view data) {
  struct socketio_client *state = state_of(client);
  struct socketio_packet packet;
  bool sound = state->step != STEP_OPEN && state->attachments == 0 && socketio_read(data, &packet);
  if (!sound) return fail(client, CAUSE_PROTOCOL);
  state->attachments = (uint16_t)packet.attachments;
  /* A server may speak of namespaces that this client is not in. */
  return !view_is(packet.namespace, plan_of(client)->namespace) || on_packet(client, &packet);
}

/* Attachments are let pass: what muster publishes and counts is text. */
static bool on_attachment(struct client *client) {
  struct socketio_client *state = state_of(client);
  if (state->attachments == 0) return fail(client, CAUSE_PROTOCOL);
  state->attachments--;
  return true;
}

static bool on_message(struct client *client, const struct ws_event *event) {
  struct engineio_packet packet;
  if (event->opcode == WS_BINARY) return on_attachment(client);
  if (!engineio_read(view_of(event->data, event->len), &packet)) return fail(client, CAUSE_PROTOCOL);
  switch (packet.type) {
  case ENGINEIO_OPEN:
    return on_open(client, packet.data);
  case ENGINEIO_CLOSE:
    return fail(client, state_of(client)->step == STEP_READY ? CAUSE_CLOSED_BY_PEER : CAUSE_CLOSED_EARLY);
  case ENGINEIO_PING:
    return on_ping(client, packet.data);
  case ENGINEIO_MESSAGE:
    return on_engine_message(client, packet.data);
  default:
    return true;
  }
}

static bool on_event(struct client *client, const struct ws_event *event) {
  struct socketio_client *state = state_of(client);
  if (event->kind == WS_EVENT_MESSAGE) return on_message(client, event);
  return ws_client_control(&state->ws, client, event, state->step == STEP_READY);
}

/* The server speaks first. */
static bool on_upgraded(struct client *client, struct view subprotocol) {
  return subprotocol.len == 0 || fail(client, CAUSE_UPGRADE);
}

static size_t socketio_received(struct client *client, uint8_t *data, size_t len) {
  static const struct ws_client_ops ops = {ws_client_message_limit, on_upgraded, on_event};
  return ws_client_received(&state_of(client)->ws, client, &ops, data, len);
}

/* --- life --- */

static void socketio_opened(struct client *client) {
  const struct socketio_plan *plan = plan_of(client);
  ws_client_open(&state_of(client)->ws, client, plan->path, plan->headers);
}

static void socketio_tick(struct client *client, uint64_t now_ns) {
  const struct socketio_client *state = state_of(client);
  if (state->step != STEP_READY || state->patience_ns == 0) return;
  if (now_ns >= state->heard_ns + state->patience_ns) {
    fail(client, CAUSE_KEEP_ALIVE);
    return;
  }
  watch_silence(client, now_ns);
}

static void socketio_closing(struct client *client) {
  uint8_t text[SOCKETIO_NAMESPACE_MAX + 8];
  if (state_of(client)->step != STEP_READY) return;
  uint8_t *end = socketio_write_disconnect(text, view_str(plan_of(client)->namespace));
  if (write_text(client, text, (size_t)(end - text))) ws_client_write_close(&state_of(client)->ws, client);
}

static void socketio_released(struct client *client) {
  ws_client_free(&state_of(client)->ws);
}

static const char *socketio_code_text(int32_t code) {
  switch (code) {
  case SOCKETIO_REFUSED:
    return "the callback says that it was refused";
  case CODE_NAMESPACE:
    return "Invalid namespace: check nsp= in the target";
  case CODE_CONNECT_ERROR:
    return "CONNECT_ERROR: the server's code refuses the client";
  case CODE_MAX_PAYLOAD:
    return "a publish is larger than the server's maxPayload (maxHttpBufferSize)";
  case CODE_BINARY:
    return "messages come as binary events, which muster does not read";
  default:
    return NULL;
  }
}

static const struct driver_option options[] = {
    {"user", NULL}, {"origin", NULL}, DRIVER_TLS_OPTIONS("socketio+tls"), {NULL, NULL}};

const struct driver driver_socketio = {
    .name = "socketio",
    .schemes = "socketio,socketio+tls",
    .title = "Socket.IO 5 over WebSocket (events join, publish, message; others by the URL)",
    .ack_meaning = "the callback of the publish event: the server's code has called it; none with /?ack=off",
    .delivery = "emitted to who is in the room, with /?echo=on to the sender too; at most once, kept nowhere",
    .capabilities = CAPABILITY_ACKS | CAPABILITY_PRIVATE | CAPABILITY_GROUP | CAPABILITY_ROOM | CAPABILITY_BROADCAST |
                    CAPABILITY_ECHO | CAPABILITY_GROUP_ECHO,
    .default_port = 3000,
    .payload_form = PAYLOAD_BARE,
    .payload_min_bytes = PAYLOAD_BARE_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct socketio_client),
    .options = options,
    .describe = tell_settings,
    .without = socketio_without,
    .prepare = socketio_prepare,
    .release = target_release,
    .opened = socketio_opened,
    .received = socketio_received,
    .publish = socketio_publish,
    .tick = socketio_tick,
    .closing = socketio_closing,
    .released = socketio_released,
    .code_text = socketio_code_text,
};
