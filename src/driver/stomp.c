/* STOMP 1.2 over TCP, TLS and WebSocket: CONNECT, one SUBSCRIBE with a receipt for each destination, then SENDs whose
 * receipt is the ACK (receipts=off: without one, and without ACKs).
 *
 * Destinations: <prefix>muster.<run>.client.<n> is a client's own, ...group.<n> a group's, ...room and ...all the
 * others'. A topic's message goes to all its subscribers, the sender included where it is one. In a queue run they are
 * queues, ...queue.<n>, to which only consumers subscribe; they acknowledge each message when it is delivered.
 *
 * A receipt's id is the token of its publish, so answers may come in any order. Heart-beats: the client promises one
 * and a half of the interval in which it sends them, and counts a server as gone that was silent for two of the
 * intervals that were agreed.
 *
 * RabbitMQ sends WebSocket messages as text, which must be UTF-8, so the payload is text on every transport. */
#include "driver/dialogue.h"
#include "driver/fail.h"
#include "driver/name.h"
#include "driver/plans.h"
#include "driver/query.h"
#include "driver/redelivered.h"
#include "driver/target.h"
#include "driver/ws_client.h"

#include "base/clock.h"
#include "wire/stomp.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TICK_NS (20 * NS_PER_SEC)
#define SUBPROTOCOL "v12.stomp"
#define WS_PATH "/ws"
#define PATH_MAX_BYTES 256
#define NAME_MAX_BYTES 48 /* of a destination behind its prefix */
#define DESTINATION_MAX (QUERY_TEXT_MAX + NAME_MAX_BYTES)
#define CREDENTIAL_MAX 255
#define PREFETCH 100
#define PREFETCH_MAX 65535
#define HEAD_ROOM 65536 /* of what is read: an ERROR's text, headers that a broker adds */
#define OUTSTANDING_MAX 32768
#define SUBSCRIPTION_MARK 's'
#define INTERVAL_MAX_MS 1000000000

static_assert(DESTINATION_MAX <= STOMP_HEADER_MAX && CREDENTIAL_MAX <= STOMP_HEADER_MAX, "headers fit what they get");

enum { COUNTED_REDELIVERED };

enum step { STEP_CONNECT, STEP_SUBSCRIBE, STEP_READY };

struct stomp_client {
  struct ws_client ws;
  struct buf gathered;    /* the beginning of a frame of which WebSocket messages brought parts */
  uint32_t subscribed;    /* destinations */
  uint32_t silence_ticks; /* without a byte that the server may let pass; 0: it sends no heart-beats */
  uint32_t silent_ticks;
  uint8_t step; /* enum step */
};

static_assert(sizeof(struct client) + sizeof(struct stomp_client) <= 352, "leaves 160 bytes for the load room");

/* What all clients share. */
struct stomp_plan {
  bool websocket, receipts;
  bool individual;       /* consumers of queues acknowledge each message */
  uint32_t prefetch;     /* of theirs */
  uint32_t interval_ms;  /* of ticks */
  uint32_t destinations; /* of one client that hears any */
  uint32_t body_max;
  char prefix[DESTINATION_MAX]; /* "/topic/muster.0123456789abcdef" */
  char path[PATH_MAX_BYTES];    /* of the upgrade */
  char title[128];
  char headers[WS_CLIENT_HEADERS_MAX];
  uint8_t connect[STOMP_WRITE_MAX];
  size_t connect_len;
};

static struct stomp_client *state_of(struct client *client) {
  return client_state(client);
}

static const struct stomp_plan *plan_of(const struct client *client) {
  return client->run->population;
}

static uint32_t destinations_of(const struct client *client) {
  const struct driver_settings *settings = &client->run->settings;
  uint32_t queue;
  bool only_sends = settings->queues > 0 && !driver_queue_of(settings, client->index, &queue);
  return only_sends ? 0 : plan_of(client)->destinations;
}

/* --- set-up --- */

enum { SETTING_RECEIPTS, SETTING_PREFIX, SETTING_VHOST, SETTING_ACK, SETTING_PREFETCH, SETTINGS };

static bool is_header_value(const char *text) {
  return !text || (strlen(text) <= CREDENTIAL_MAX && !strpbrk(text, "\r\n"));
}

static enum status write_connect(
    struct stomp_plan *plan, const struct driver_settings *settings, const char *vhost, struct err *err) {
  struct stomp_connect connect = {
      .host = view_str(vhost), .sends_ms = plan->interval_ms / 2 * 3, .wants_ms = plan->interval_ms};
  if (!is_header_value(settings->user) || !is_header_value(settings->password)) {
    return err_set(err, STATUS_USAGE, "user and password: at most %d bytes each, on one line", CREDENTIAL_MAX);
  }
  if (settings->user) connect.login = view_str(settings->user);
  if (settings->user && settings->password) connect.passcode = view_str(settings->password);
  uint8_t *end = stomp_end(stomp_write_connect(plan->connect, &connect));
  plan->connect_len = (size_t)(end - plan->connect);
  return STATUS_OK;
}

static const struct query_choice choices[] = {{"receipts", "on|off"}, {"prefix", NULL}, {"vhost", NULL},
    {"ack", "individual|auto"}, {"prefetch", NULL}, {NULL, NULL}};

static enum status read_query(const struct url *url, char path[PATH_MAX_BYTES], unsigned chosen[SETTINGS],
    char (*texts)[QUERY_TEXT_MAX], struct err *err) {
  const char *query;
  if (query_split(url, path, PATH_MAX_BYTES, &query)) return query_read_texts(query, choices, chosen, texts, err);
  return err_set(err, STATUS_USAGE, "--target: the path is longer than %d characters", PATH_MAX_BYTES - 1);
}

static unsigned stomp_without(const struct driver_settings *settings) {
  char texts[SETTINGS][QUERY_TEXT_MAX], path[PATH_MAX_BYTES];
  unsigned chosen[SETTINGS] = {0};
  read_query(&settings->url, path, chosen, texts, NULL);
  return chosen[SETTING_RECEIPTS] == 0 ? 0 : CAPABILITY_ACKS;
}

static enum status read_queue_settings(const struct driver_settings *settings, struct stomp_plan *plan,
    const unsigned chosen[SETTINGS], const char *prefetch, struct err *err) {
  if (settings->queues == 0 && (chosen[SETTING_ACK] || chosen[SETTING_PREFETCH])) {
    return err_set(err, STATUS_USAGE, "--target: ack= and prefetch= are of the consumers of a queue run");
  }
  plan->individual = settings->queues > 0 && chosen[SETTING_ACK] == 0;
  plan->prefetch = plan->individual ? PREFETCH : 0;
  if (!chosen[SETTING_PREFETCH]) return STATUS_OK;
  if (plan->individual && query_number(prefetch, PREFETCH_MAX, &plan->prefetch)) return STATUS_OK;
  return err_set(
      err, STATUS_USAGE, "--target: prefetch=%.20s: give 1 to %d, and not with ack=auto", prefetch, PREFETCH_MAX);
}

static enum status read_settings(struct driver_run *run, struct stomp_plan *plan, struct err *err) {
  const struct driver_settings *settings = &run->settings;
  char texts[SETTINGS][QUERY_TEXT_MAX] = {[SETTING_PREFIX] = "/topic/", [SETTING_VHOST] = "/"};
  unsigned chosen[SETTINGS] = {0};
  if (settings->queues > 0) strcpy(texts[SETTING_PREFIX], "/queue/");
  enum status status = read_query(&settings->url, plan->path, chosen, texts, err);
  if (status == STATUS_OK) status = read_queue_settings(settings, plan, chosen, texts[SETTING_PREFETCH], err);
  if (status != STATUS_OK) return status;
  bool has_path = strcmp(plan->path, "") != 0 && strcmp(plan->path, "/") != 0;
  if (has_path && !plan->websocket) {
    return err_set(err, STATUS_USAGE, "--target: STOMP over TCP has no paths, only settings as /?prefix=/topic/");
  }
  if (!has_path) memcpy(plan->path, WS_PATH, sizeof WS_PATH);
  plan->receipts = chosen[SETTING_RECEIPTS] == 0;
  snprintf(plan->prefix, sizeof plan->prefix, "%smuster.%016" PRIx64, texts[SETTING_PREFIX], settings->run_id);
  return write_connect(plan, settings, texts[SETTING_VHOST], err);
}

/* Where the virtual host is called otherwise, messages go the same way. */
static void tell_settings(const struct driver_settings *settings, struct driver_facts *out) {
  char texts[SETTINGS][QUERY_TEXT_MAX] = {[SETTING_PREFIX] = "/topic/", [SETTING_VHOST] = "/"}, path[PATH_MAX_BYTES];
  unsigned chosen[SETTINGS] = {0};
  if (settings->queues > 0) strcpy(texts[SETTING_PREFIX], "/queue/");
  if (read_query(&settings->url, path, chosen, texts, NULL) != STATUS_OK) return;
  if (!chosen[SETTING_PREFETCH]) snprintf(texts[SETTING_PREFETCH], QUERY_TEXT_MAX, "%d", PREFETCH);
  if (chosen[SETTING_ACK]) strcpy(texts[SETTING_PREFETCH], "none");
  query_tell(choices, chosen, texts, settings->queues > 0 ? SETTINGS : SETTING_ACK, &out->target);
  for (uint32_t i = 0; i < out->target.count; i++) {
    if (i != SETTING_VHOST) facts_add(&out->key, out->target.fact[i].name, out->target.fact[i].value);
  }
  facts_add(&out->key, "transport", strstr(settings->url.scheme, "+ws") ? "websocket" : "tcp");
}

static void describe(struct driver_run *run, struct stomp_plan *plan, bool tls) {
  snprintf(plan->title, sizeof plan->title, "STOMP 1.2 over %s%s, heart-beats every %.3g s",
      plan->websocket ? "WebSocket" : "TCP", tls ? " and TLS" : "", plan->interval_ms / 1e3);
  run->title = plan->title;
  run->redelivers = plan->individual;
  if (!plan->individual) run->counters = NULL;
  if (run->settings.queues > 0) {
    run->delivery = plan->individual ? "queue with ack:client-individual: to one consumer, at least once; to another "
                                       "when its connection ends before its ACK"
                                     : "queue with ack:auto: to one consumer, at most once";
  }
  if (plan->receipts) {
    run->ack_meaning = "RECEIPT: the broker has processed the SEND (RabbitMQ: after its publisher confirm)";
  } else {
    run->ack_meaning = "none";
    run->capabilities &= ~(unsigned)CAPABILITY_ACKS;
  }
}

static uint16_t default_port(bool tls, bool websocket) {
  if (websocket) return tls ? 15673 : 15674;
  return tls ? 61614 : 61613;
}

static uint32_t interval_ms(const struct driver_run *run) {
  uint64_t ms = driver_tick_ns(run) / NS_PER_MS;
  if (ms > INTERVAL_MAX_MS) return INTERVAL_MAX_MS;
  return ms > 0 ? (uint32_t)ms : 1;
}

static uint32_t body_limit(const struct driver_settings *settings) {
  uint64_t limit = (uint64_t)settings->payload_bytes + HEAD_ROOM;
  return limit > INT32_MAX ? INT32_MAX : (uint32_t)limit;
}

/* Everything that needs no server. */
enum status stomp_make_plan(struct driver_run *run, struct err *err) {
  struct driver_settings *settings = &run->settings;
  struct url *url = &settings->url;
  struct stomp_plan *plan = arena_alloc(&run->arena, sizeof *plan);
  if (!plan) return err_set(err, STATUS_MEMORY, "out of memory for the plan of the clients");
  run->population = plan;
  plan->websocket = strstr(url->scheme, "+ws");
  bool tls = strstr(url->scheme, "+tls") || strstr(url->scheme, "+wss");
  if (url->port == 0) url->port = default_port(tls, plan->websocket);
  plan->interval_ms = interval_ms(run);
  plan->destinations = name_subscriptions(settings);
  plan->body_max = body_limit(settings);
  enum status status = read_settings(run, plan, err);
  if (status == STATUS_OK) status = ws_client_headers(plan->headers, settings, SUBPROTOCOL, err);
  if (status == STATUS_OK) status = target_open(run, tls, err);
  if (status == STATUS_OK) describe(run, plan, tls);
  return status;
}

/* --- the dialogue of the set-up: only over TCP, where it costs one connection --- */

static void say_server(struct driver_run *run, const struct stomp_frame *frame) {
  struct view server = stomp_header(frame, "server");
  int len = (int)(server.len < sizeof run->server_version ? server.len : sizeof run->server_version - 1);
  snprintf(run->server_version, sizeof run->server_version, "%.*s", len, len > 0 ? (const char *)server.data : "");
}

static int first_line(struct view text) {
  size_t len = 0;
  while (len < text.len && len < 200 && text.data[len] >= ' ')
    len++;
  return (int)len;
}

static void on_setup_error(struct dialogue *dialogue, const struct stomp_frame *frame) {
  struct view message = stomp_header(frame, "message");
  bool connect = stomp_error_of(message) == STOMP_ERROR_CONNECT;
  dialogue_fail(dialogue, STATUS_UNREACHABLE, "%s refuses us: %.*s: %.*s%s", dialogue->run->settings.target,
      first_line(message), message.len ? (const char *)message.data : "", first_line(frame->body),
      frame->body.len ? (const char *)frame->body.data : "",
      connect ? ": check --user, MUSTER_PASSWORD and vhost= in the target" : "");
}

static size_t setup_received(struct dialogue *dialogue, uint8_t *data, size_t len) {
  size_t used = 0;
  while (used < len && !dialogue->done) {
    struct stomp_frame frame;
    used += stomp_read(data + used, len - used, HEAD_ROOM, &frame);
    if (frame.kind == STOMP_PARTIAL) return used;
    if (frame.kind == STOMP_BEAT) continue;
    if (frame.kind == STOMP_ERROR) {
      on_setup_error(dialogue, &frame);
    } else if (frame.kind == STOMP_CONNECTED && view_is(stomp_header(&frame, "version"), "1.2")) {
      say_server(dialogue->run, &frame);
      dialogue_done(dialogue);
    } else {
      dialogue_fail(dialogue, STATUS_UNREACHABLE, "%s speaks no STOMP 1.2", dialogue->run->settings.target);
    }
  }
  return len;
}

static enum status talk_to_server(struct driver_run *run, struct err *err) {
  const struct stomp_plan *plan = run->population;
  uint8_t good_bye[32];
  struct dialogue dialogue = {.received = setup_received};
  enum status status = dialogue_open(&dialogue, run, run->settings.deadline_ns, err);
  if (status != STATUS_OK) return status;
  stream_write(&dialogue.stream, plan->connect, plan->connect_len);
  status = dialogue_wait(&dialogue, err);
  uint8_t *end = stomp_end(stomp_write_disconnect(good_bye));
  if (status == STATUS_OK) stream_write(&dialogue.stream, good_bye, (size_t)(end - good_bye));
  dialogue_close(&dialogue);
  return status;
}

static enum status stomp_prepare(struct driver_run *run, struct err *err) {
  enum status status = stomp_make_plan(run, err);
  const struct stomp_plan *plan = run->population;
  if (status == STATUS_OK && !plan->websocket) status = talk_to_server(run, err);
  if (status != STATUS_OK) target_release(run);
  return status;
}

/* --- writing: each returns false when memory is out or the stream is over --- */

/* NULL over TCP. */
static struct ws_client *ws_of(struct client *client) {
  return plan_of(client)->websocket ? &state_of(client)->ws : NULL;
}

static bool write_whole(struct client *client, const uint8_t *data, size_t len) {
  struct ws_frame frame;
  if (!ws_frame_begin(ws_of(client), client, WS_TEXT, len, &frame)) return false;
  memcpy(frame.message, data, len);
  ws_frame_end(client, &frame);
  return true;
}

static bool write_connect_frame(struct client *client) {
  return write_whole(client, plan_of(client)->connect, plan_of(client)->connect_len);
}

static bool write_subscribe(struct client *client) {
  uint32_t id = state_of(client)->subscribed;
  char destination[DESTINATION_MAX];
  uint8_t text[STOMP_WRITE_MAX];
  const struct stomp_plan *plan = plan_of(client);
  struct stomp_subscribe subscribe = {
      .destination = name_of_subscription(destination, plan->prefix, client, id),
      .id = id,
      .individual = plan->individual,
      .auto_delete = client->run->settings.queues > 0,
      .prefetch = plan->prefetch,
  };
  uint8_t *end = stomp_end(stomp_write_subscribe(text, &subscribe));
  return write_whole(client, text, (size_t)(end - text));
}

static bool write_ack(struct client *client, struct view id) {
  uint8_t text[STOMP_WRITE_MAX];
  uint8_t *end = stomp_end(stomp_write_ack(text, id));
  return write_whole(client, text, (size_t)(end - text));
}

static enum publish_result stomp_publish(struct client *client, const struct publish *publish) {
  char destination[DESTINATION_MAX];
  uint8_t head[STOMP_WRITE_MAX];
  struct ws_frame frame;
  if (state_of(client)->step != STEP_READY) return PUBLISH_BLOCKED;
  struct stomp_send send = {
      .destination = name_of_destination(destination, plan_of(client)->prefix, client, publish),
      .content_type = view_str("text/plain"),
      .body_len = publish->payload.size,
      .auto_delete = publish->to == PUBLISH_TO_QUEUE,
      .has_receipt = plan_of(client)->receipts,
      .receipt = publish->token,
  };
  size_t head_len = (size_t)(stomp_write_send(head, &send) - head);
  if (!ws_frame_begin(ws_of(client), client, WS_TEXT, head_len + send.body_len + 1, &frame)) return PUBLISH_BLOCKED;
  memcpy(frame.message, head, head_len);
  payload_write(client->run->driver->payload_form, frame.message + head_len, &publish->payload);
  stomp_end(frame.message + head_len + send.body_len);
  ws_frame_end(client, &frame);
  return PUBLISH_WRITTEN;
}

/* --- reading: each handler returns false once it has failed the client --- */

/* The server sends a heart-beat as often as it can and we want; it may be late by as much again, and ticks are not
 * aligned with it. */
static uint32_t silence_ticks(const struct stomp_plan *plan, uint32_t sends_ms) {
  if (sends_ms == 0) return 0;
  uint64_t interval_ms = sends_ms > plan->interval_ms ? sends_ms : plan->interval_ms;
  return (uint32_t)((2 * interval_ms + plan->interval_ms - 1) / plan->interval_ms + 1);
}

static bool subscribe_next(struct client *client) {
  struct stomp_client *state = state_of(client);
  state->step = STEP_SUBSCRIBE;
  if (state->subscribed < destinations_of(client)) return check_written(client, write_subscribe(client));
  state->step = STEP_READY;
  client->hooks->established(client);
  return true;
}

static bool on_connected(struct client *client, const struct stomp_frame *frame) {
  struct stomp_client *state = state_of(client);
  uint32_t sends_ms, wants_ms;
  bool awaited = state->step == STEP_CONNECT && view_is(stomp_header(frame, "version"), "1.2");
  if (!awaited || !stomp_heart_beat(frame, &sends_ms, &wants_ms)) return fail(client, CAUSE_PROTOCOL);
  state->silence_ticks = silence_ticks(plan_of(client), sends_ms);
  return subscribe_next(client);
}

static bool on_receipt(struct client *client, const struct stomp_frame *frame) {
  struct stomp_client *state = state_of(client);
  struct view id = stomp_header(frame, "receipt-id");
  bool of_subscription = id.len > 0 && id.data[0] == SUBSCRIPTION_MARK;
  if (of_subscription) id = view_of(id.data + 1, id.len - 1);
  uint32_t number;
  if (!stomp_number(id, &number)) return fail(client, CAUSE_PROTOCOL);
  if (!of_subscription) {
    if (state->step != STEP_READY) return fail(client, CAUSE_PROTOCOL);
    client->hooks->acked(client, number, 0);
    return true;
  }
  if (state->step != STEP_SUBSCRIBE || number != state->subscribed) return fail(client, CAUSE_PROTOCOL);
  state->subscribed++;
  return subscribe_next(client);
}

/* The end of the connection; where the server says which publish it was, that one is rejected first. */
static bool on_error(struct client *client, const struct stomp_frame *frame) {
  int32_t code = (int32_t)stomp_error_of(stomp_header(frame, "message"));
  uint32_t token;
  bool of_publish = stomp_number(stomp_header(frame, "receipt-id"), &token);
  if (of_publish && state_of(client)->step == STEP_READY) client->hooks->acked(client, token, code);
  return fail(client, code);
}

static bool on_delivery(struct client *client, const struct stomp_frame *frame) {
  struct view id = stomp_header(frame, "ack");
  bool individual = plan_of(client)->individual;
  bool can_be_acked = id.len > 0 && id.len <= STOMP_HEADER_MAX;
  if (state_of(client)->step < STEP_SUBSCRIBE || (individual && !can_be_acked)) return fail(client, CAUSE_PROTOCOL);
  if (individual && view_is(stomp_header(frame, "redelivered"), "true")) {
    count_redelivered(client, frame->body, COUNTED_REDELIVERED);
  }
  client->hooks->delivered(client, frame->body, false);
  return !individual || check_written(client, write_ack(client, id));
}

static bool on_frame(struct client *client, const struct stomp_frame *frame) {
  switch (frame->kind) {
  case STOMP_BEAT:
    return true;
  case STOMP_MESSAGE:
    return on_delivery(client, frame);
  case STOMP_RECEIPT:
    return on_receipt(client, frame);
  case STOMP_CONNECTED:
    return on_connected(client, frame);
  case STOMP_ERROR:
    return on_error(client, frame);
  default:
    return fail(client, CAUSE_PROTOCOL);
  }
}

/* Handles the whole frames at the front; *used is theirs. */
static bool read_frames(struct client *client, const uint8_t *data, size_t len, size_t *used) {
  uint32_t body_max = plan_of(client)->body_max;
  *used = 0;
  state_of(client)->silent_ticks = 0;
  while (*used < len) {
    struct stomp_frame frame;
    size_t read = stomp_read(data + *used, len - *used, body_max, &frame);
    if (frame.kind == STOMP_PARTIAL) return true;
    if (!on_frame(client, &frame)) return false;
    *used += read;
  }
  return true;
}

/* --- WebSocket: frames need not end where messages do --- */

static bool on_message(struct client *client, const struct ws_event *event) {
  struct buf *gathered = &state_of(client)->gathered;
  size_t used;
  if (gathered->len == 0) {
    if (!read_frames(client, event->data, event->len, &used)) return false;
    if (used == event->len) return true;
    return buf_append(gathered, event->data + used, event->len - used) || fail(client, CAUSE_RESET);
  }
  if (!buf_append(gathered, event->data, event->len)) return fail(client, CAUSE_RESET);
  if (!read_frames(client, gathered->data, gathered->len, &used)) return false;
  buf_consume(gathered, used);
  if (gathered->len == 0) buf_free(gathered);
  return true;
}

static bool on_event(struct client *client, const struct ws_event *event) {
  struct stomp_client *state = state_of(client);
  if (event->kind == WS_EVENT_MESSAGE) return on_message(client, event);
  return ws_client_control(&state->ws, client, event, state->step == STEP_READY);
}

/* A server that names no subprotocol may still speak 1.2: its CONNECTED says so. */
static bool on_upgraded(struct client *client, struct view subprotocol) {
  if (subprotocol.len > 0 && !view_is(subprotocol, SUBPROTOCOL)) return fail(client, CAUSE_UPGRADE);
  return check_written(client, write_connect_frame(client));
}

static uint32_t message_limit(const struct driver_settings *settings) {
  return body_limit(settings);
}

static size_t stomp_received(struct client *client, uint8_t *data, size_t len) {
  static const struct ws_client_ops ops = {message_limit, on_upgraded, on_event};
  size_t used;
  if (plan_of(client)->websocket) return ws_client_received(&state_of(client)->ws, client, &ops, data, len);
  return read_frames(client, data, len, &used) ? used : 0;
}

/* --- life --- */

static void stomp_opened(struct client *client) {
  const struct stomp_plan *plan = plan_of(client);
  if (plan->websocket) {
    ws_client_open(&state_of(client)->ws, client, plan->path, plan->headers);
  } else {
    check_written(client, write_connect_frame(client));
  }
}

static void stomp_tick(struct client *client, uint64_t now_ns) {
  static const uint8_t beat[] = {'\n'};
  struct stomp_client *state = state_of(client);
  (void)now_ns;
  if (state->step != STEP_READY) return;
  if (state->silence_ticks > 0 && ++state->silent_ticks > state->silence_ticks) {
    fail(client, CAUSE_KEEP_ALIVE);
    return;
  }
  check_written(client, write_whole(client, beat, sizeof beat));
}

static void stomp_closing(struct client *client) {
  uint8_t text[32];
  if (state_of(client)->step != STEP_READY) return;
  uint8_t *end = stomp_end(stomp_write_disconnect(text));
  bool written = write_whole(client, text, (size_t)(end - text));
  if (written && plan_of(client)->websocket) ws_client_write_close(&state_of(client)->ws, client);
}

static void stomp_released(struct client *client) {
  ws_client_free(&state_of(client)->ws);
  buf_free(&state_of(client)->gathered);
}

static const struct driver_option options[] = {{"user", NULL}, {"keep-alive", NULL}, {"origin", "stomp+ws,stomp+wss"},
    DRIVER_TLS_OPTIONS("stomp+tls,stomp+wss"), {NULL, NULL}};

const struct driver driver_stomp = {
    .name = "stomp",
    .schemes = "stomp,stomp+tls,stomp+ws,stomp+wss",
    .title = "STOMP 1.2 (TCP, TLS, WebSocket)",
    .ack_meaning = "RECEIPT: the broker has processed the SEND (RabbitMQ: after its publisher confirm); none with "
                   "/?receipts=off",
    .delivery = "topic with ack:auto: to whoever is subscribed, the publisher too; at most once",
    .capabilities = CAPABILITY_ACKS | CAPABILITY_PRIVATE | CAPABILITY_GROUP | CAPABILITY_ROOM | CAPABILITY_BROADCAST |
                    CAPABILITY_ECHO | CAPABILITY_GROUP_ECHO | CAPABILITY_QUEUE,
    .default_port = 61613,
    .payload_form = PAYLOAD_BARE,
    .payload_min_bytes = PAYLOAD_BARE_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct stomp_client),
    .options = options,
    .describe = tell_settings,
    .counters = {"redelivered"},
    .without = stomp_without,
    .prepare = stomp_prepare,
    .release = target_release,
    .opened = stomp_opened,
    .received = stomp_received,
    .publish = stomp_publish,
    .tick = stomp_tick,
    .closing = stomp_closing,
    .released = stomp_released,
    .code_text = stomp_error_text,
};
