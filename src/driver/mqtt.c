/* MQTT 3.1.1 and 5 over TCP, TLS and WebSocket: CONNECT, one SUBSCRIBE for each topic, then publishes and deliveries.
 *
 * Topics: <prefix>/<run>/c/<index> is a client's own, .../g/<group> a group's, .../q/<queue> a queue's, .../all
 * everybody's. A client is established when every subscription was granted with the QoS that was asked. The consumers
 * of a queue subscribe to it as one share ($share/muster/...), its senders to nothing.
 *
 * An ACK is the PUBACK of QoS 1 and the PUBCOMP of QoS 2; QoS 0 has none. A broker sends a group's message back to a
 * publisher that subscribes to it too, unless version 5's No Local forbids it.
 *
 * A publish that is unanswered when its connection ends has failed and is not sent again, since the load room has
 * counted it so; its packet identifier stays unused as long as may be, and what QoS 2 has delivered is remembered.
 *
 * The receivers of a backlog visit before the run and subscribe, so that a session of each is in the broker; afterwards
 * they visit again and end it. MQTT does not say when a session's queue has been read to its end: a backlog counts as
 * read when a PINGREQ was answered and nothing came in between. */
#include "driver/fail.h"
#include "driver/plans.h"
#include "driver/redelivered.h"
#include "driver/target.h"
#include "driver/visit.h"
#include "driver/ws_client.h"

#include "base/clock.h"
#include "wire/mqtt.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS (40 * NS_PER_SEC)
#define UNANSWERED_MAX 3
#define SUBPROTOCOL "mqtt"
#define PREFIX_MAX 128
#define SHARE "$share/muster/"
#define TOPIC_MAX (PREFIX_MAX + 40)
#define CLIENT_ID_MAX 24
#define CREDENTIAL_MAX 65535
#define PACKET_OVERHEAD (256 * 1024) /* topic and properties around a payload */
#define WINDOW_MAX 65535
#define INFLIGHT_INLINE 4
#define INFLIGHT_MAX 65536
#define SESSION_EXPIRY_S 3600
#define RELEASE_NS (10 * NS_PER_SEC)
#define RELEASE_PER_CLIENT_NS (2 * NS_PER_MS)
#define RELEASE_MAX_NS (120 * NS_PER_SEC)
/* Beyond the standard's codes. */
#define CODE_NO_SESSION 0x100
#define CODE_KEEPS_NO_SESSIONS 0x101

enum { COUNTED_REDELIVERED, COUNTED_UNMATCHED };

enum step { STEP_CONNECT, STEP_SUBSCRIBE, STEP_BACKLOG, STEP_READY };

/* Packet identifiers in use; an identifier has its place, so that it is found at once. */
struct inflight_entry {
  uint32_t token;
  uint16_t id; /* 0: free */
};

struct inflight {
  struct inflight_entry *more; /* owned; NULL while the first will do */
  uint32_t size;               /* of more, a power of two */
  uint32_t used;
  struct inflight_entry first[INFLIGHT_INLINE];
};

struct mqtt_client {
  struct ws_client ws;
  struct buf gathered;            /* the beginning of a packet of which WebSocket messages brought parts */
  struct inflight sent, received; /* publishes without their answer; of QoS 2, without their PUBREL */
  uint32_t subscribed;            /* topics */
  uint32_t window;                /* publishes that the server takes without an answer */
  uint16_t last_id, subscribe_id;
  uint16_t ping_every_s; /* when the server wants it sooner than this run's ticks; 0: it does not */
  uint8_t step;          /* enum step */
  uint8_t unanswered;
  bool came; /* something of the backlog came since the last PINGREQ */
};

static_assert(sizeof(struct client) + sizeof(struct mqtt_client) <= 352, "leaves 160 bytes for the load room");

/* What all clients share. */
struct mqtt_plan {
  enum mqtt_version version;
  uint8_t qos;
  bool websocket;
  uint16_t keep_alive_s;
  uint32_t topics;         /* of one client that hears any */
  bool sessions_made;      /* some are in the broker that no good-bye ends */
  char prefix[PREFIX_MAX]; /* of every topic, with the run and a slash at its end */
  char title[128];
  char headers[WS_CLIENT_HEADERS_MAX]; /* of the upgrade */
};

static struct mqtt_client *state_of(struct client *client) {
  return client_state(client);
}

static const struct mqtt_plan *plan_of(const struct client *client) {
  return client->run->population;
}

static const struct mqtt_settings *asked_of(const struct client *client) {
  return &client->run->settings.mqtt;
}

static bool keeps_session(const struct client *client) {
  const struct driver_settings *settings = &client->run->settings;
  if (client->visit == VISIT_TO_BE_FORGOTTEN) return false;
  return settings->mqtt.keep_session || (settings->backlog && client->index >= settings->pure_senders);
}

static bool has_backlog(const struct client *client) {
  const struct driver_settings *settings = &client->run->settings;
  return settings->backlog && client->visit == VISIT_NONE && client->index >= settings->pure_senders;
}

/* --- names --- */

static char *put_text(char *at, const char *text) {
  while (*text)
    *at++ = *text++;
  return at;
}

static size_t write_topic(const struct mqtt_plan *plan, char kind, uint32_t index, char out[TOPIC_MAX]) {
  char *at = put_text(out, plan->prefix);
  if (kind == 'a') return (size_t)(put_text(at, "all") - out);
  char digits[10];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + index % 10);
    index /= 10;
  } while (index > 0);
  *at++ = kind;
  *at++ = '/';
  while (count > 0)
    *at++ = digits[--count];
  return (size_t)(at - out);
}

static uint32_t topics_of(const struct client *client) {
  const struct driver_settings *settings = &client->run->settings;
  uint32_t queue;
  bool only_sends = settings->queues > 0 && !driver_queue_of(settings, client->index, &queue);
  return only_sends ? 0 : plan_of(client)->topics;
}

/* The i-th topic that a client hears. */
static size_t write_heard(const struct client *client, uint32_t i, char out[TOPIC_MAX]) {
  const struct driver_settings *settings = &client->run->settings;
  const struct mqtt_plan *plan = plan_of(client);
  uint32_t queue;
  if (driver_queue_of(settings, client->index, &queue)) return write_topic(plan, 'q', queue, out);
  if (settings->broadcast) return write_topic(plan, 'a', 0, out);
  if (settings->groups == 0) return write_topic(plan, 'c', client->index, out);
  return write_topic(plan, 'g', settings->shared_groups ? i : client->index % settings->groups, out);
}

/* The filter with which it subscribes to that. */
static size_t write_filter(const struct client *client, uint32_t i, char out[TOPIC_MAX]) {
  size_t share = client->run->settings.queues > 0 ? (size_t)(put_text(out, SHARE) - out) : 0;
  return share + write_heard(client, i, out + share);
}

static size_t write_destination(const struct client *client, const struct publish *publish, char out[TOPIC_MAX]) {
  const struct mqtt_plan *plan = plan_of(client);
  switch (publish->to) {
  case PUBLISH_TO_GROUP:
    return write_topic(plan, 'g', publish->recipient, out);
  case PUBLISH_TO_QUEUE:
    return write_topic(plan, 'q', publish->recipient, out);
  case PUBLISH_TO_ALL:
    return write_topic(plan, 'a', 0, out);
  case PUBLISH_TO_SELF:
    return write_topic(plan, 'c', client->index, out);
  default:
    return write_topic(plan, 'c', publish->recipient, out);
  }
}

/* At most 23 letters and digits, which every server must take: 48 bits of the run, and the index. */
static size_t write_client_id(const struct client *client, char out[CLIENT_ID_MAX]) {
  uint64_t run = client->run->settings.run_id & UINT64_C(0xffffffffffff);
  return (size_t)snprintf(out, CLIENT_ID_MAX, "%012" PRIx64 "c%" PRIu32, run, client->index);
}

/* --- packet identifiers --- */

static struct inflight_entry *inflight_place(struct inflight *inflight, uint16_t id) {
  return inflight->more ? &inflight->more[id & (inflight->size - 1)] : &inflight->first[id & (INFLIGHT_INLINE - 1)];
}

static uint32_t inflight_size(const struct inflight *inflight) {
  return inflight->more ? inflight->size : INFLIGHT_INLINE;
}

/* Identifiers that had different places have them in a table of twice the size too. */
static bool inflight_grow(struct inflight *inflight) {
  uint32_t old_size = inflight_size(inflight), size = old_size * 2;
  if (size > INFLIGHT_MAX) return false;
  struct inflight_entry *old = inflight->more ? inflight->more : inflight->first;
  struct inflight_entry *more = calloc(size, sizeof *more);
  if (!more) return false;
  for (uint32_t i = 0; i < old_size; i++) {
    if (old[i].id != 0) more[old[i].id & (size - 1)] = old[i];
  }
  free(inflight->more);
  inflight->more = more;
  inflight->size = size;
  return true;
}

static bool inflight_has(struct inflight *inflight, uint16_t id) {
  return inflight_place(inflight, id)->id == id;
}

/* False when memory is out. */
static bool inflight_put(struct inflight *inflight, uint16_t id, uint32_t token) {
  while (inflight_place(inflight, id)->id != 0) {
    if (!inflight_grow(inflight)) return false;
  }
  *inflight_place(inflight, id) = (struct inflight_entry){token, id};
  inflight->used++;
  return true;
}

static bool inflight_take(struct inflight *inflight, uint16_t id, uint32_t *token) {
  struct inflight_entry *entry = inflight_place(inflight, id);
  if (entry->id != id) return false;
  *token = entry->token;
  entry->id = 0;
  inflight->used--;
  return true;
}

static void inflight_free(struct inflight *inflight) {
  free(inflight->more);
  *inflight = (struct inflight){0};
}

/* The next identifier whose place is free; the table grows only when it is half full, so that one publish which is
 * never answered does not make it. 0 when memory is out. */
static uint16_t next_id(struct mqtt_client *state) {
  struct inflight *sent = &state->sent;
  if (sent->used * 2 >= inflight_size(sent) && !inflight_grow(sent)) return 0;
  do {
    state->last_id++;
  } while (state->last_id == 0 || inflight_place(sent, state->last_id)->id != 0);
  return state->last_id;
}

/* --- set-up --- */

static bool is_field_text(const char *text) {
  for (; *text; text++) {
    if ((unsigned char)*text < ' ' || *text == 0x7f) return false;
  }
  return true;
}

static enum status read_version(struct mqtt_plan *plan, const struct mqtt_settings *asked, struct err *err) {
  bool is_5 = !asked->version || strcmp(asked->version, "5") == 0;
  plan->version = is_5 ? MQTT_5 : MQTT_3_1_1;
  if (!is_5 && strcmp(asked->version, "3.1.1") != 0) {
    return err_set(err, STATUS_USAGE, "--mqtt-version %.20s: give 3.1.1 or 5", asked->version);
  }
  if (asked->qos > 2) return err_set(err, STATUS_USAGE, "--qos %u: give 0, 1 or 2", asked->qos);
  plan->qos = (uint8_t)asked->qos;
  if (asked->receive_maximum > WINDOW_MAX) {
    return err_set(err, STATUS_USAGE, "--receive-maximum %u: 65535 is the most", asked->receive_maximum);
  }
  if (asked->receive_maximum > 0 && !is_5) {
    return err_set(err, STATUS_USAGE, "--receive-maximum needs --mqtt-version 5: 3.1.1 cannot say it");
  }
  return STATUS_OK;
}

static enum status write_prefix(struct mqtt_plan *plan, const struct driver_settings *settings, struct err *err) {
  const char *prefix = settings->mqtt.topic_prefix ? settings->mqtt.topic_prefix : "muster";
  if (!is_field_text(prefix) || strpbrk(prefix, "+#") || prefix[0] == '$') {
    return err_set(
        err, STATUS_USAGE, "--topic-prefix %.60s: a topic has no + and #, and does not begin with $", prefix);
  }
  int len = snprintf(plan->prefix, sizeof plan->prefix, "%s/%016" PRIx64 "/", prefix, settings->run_id);
  if (len < 0 || (size_t)len >= sizeof plan->prefix) {
    return err_set(err, STATUS_USAGE, "--topic-prefix is longer than 100 characters");
  }
  return STATUS_OK;
}

static enum status check_credentials(const struct driver_settings *settings, struct err *err) {
  bool too_long = (settings->user && strlen(settings->user) > CREDENTIAL_MAX) ||
                  (settings->password && strlen(settings->password) > CREDENTIAL_MAX);
  if (too_long) return err_set(err, STATUS_USAGE, "user name and password may have 65535 bytes each");
  return STATUS_OK;
}

/* The server closes after one and a half of it without a packet; what it is told leaves as much between two PINGREQs
 * as was asked for. */
static uint16_t keep_alive_s(const struct driver_run *run) {
  uint64_t told_ns = driver_tick_ns(run) * 3 / 2;
  uint64_t told_s = (told_ns + NS_PER_SEC - 1) / NS_PER_SEC;
  return told_s > UINT16_MAX ? UINT16_MAX : (uint16_t)told_s;
}

/* Version 5 has subscriptions that leave out what the client itself publishes. Nothing of QoS 0 has to wait for who is
 * offline. */
static unsigned without(const struct driver_settings *settings) {
  const char *version = settings->mqtt.version;
  unsigned less = !version || strcmp(version, "5") == 0 ? CAPABILITY_GROUP_ECHO : 0;
  return settings->mqtt.qos == 0 ? less | CAPABILITY_ACKS | CAPABILITY_BACKLOG : less;
}

static void describe(struct driver_run *run, struct mqtt_plan *plan, bool tls) {
  static const char *const meanings[] = {
      "none", "PUBACK: the broker has taken over the message (QoS 1)", "PUBCOMP: the handshake is through (QoS 2)"};
  static const char *const deliveries[] = {"at most once, to who is connected (QoS 0)",
      "at least once within the session, queued up to the broker's limits (QoS 1)",
      "exactly once within the session, queued up to the broker's limits (QoS 2)"};
  static const char *const shares[] = {"shared subscription: to one of those who are connected, at most once (QoS 0)",
      "shared subscription: to one of its members, at least once within that one's session (QoS 1)",
      "shared subscription: to one of its members, exactly once within that one's session (QoS 2)"};
  const struct mqtt_settings *asked = &run->settings.mqtt;
  snprintf(plan->title, sizeof plan->title, "MQTT %s over %s%s, QoS %u, %s session%s, keep alive %u s",
      plan->version == MQTT_5 ? "5" : "3.1.1", plan->websocket ? "WebSocket" : "TCP", tls ? " and TLS" : "", plan->qos,
      asked->keep_session || run->settings.backlog ? "kept" : "clean", asked->retain ? ", retained" : "",
      plan->keep_alive_s);
  run->title = plan->title;
  run->ack_meaning = meanings[plan->qos];
  run->delivery = run->settings.queues > 0 ? shares[plan->qos] : deliveries[plan->qos];
  run->redelivers = plan->qos > 0;
  run->capabilities &= ~without(&run->settings);
  static const char *const of_3_1_1[] = {"redelivered", NULL}; /* its PUBACK has no reason */
  if (plan->version == MQTT_3_1_1) run->counters = of_3_1_1;
  if (plan->qos == 0) run->counters = NULL;
}

static uint16_t default_port(bool tls, bool websocket) {
  if (websocket) return tls ? 443 : 80;
  return tls ? 8883 : 1883;
}

/* Everything that needs no server. */
enum status mqtt_make_plan(struct driver_run *run, struct err *err) {
  struct driver_settings *settings = &run->settings;
  struct url *url = &settings->url;
  struct mqtt_plan *plan = arena_alloc(&run->arena, sizeof *plan);
  if (!plan) return err_set(err, STATUS_MEMORY, "out of memory for the plan of the clients");
  run->population = plan;
  plan->websocket = strstr(url->scheme, "+ws");
  bool tls = strncmp(url->scheme, "mqtts", 5) == 0 || strstr(url->scheme, "+wss");
  if (url->port == 0) url->port = default_port(tls, plan->websocket);
  plan->keep_alive_s = keep_alive_s(run);
  plan->topics = settings->groups > 0 && settings->shared_groups && !settings->broadcast ? settings->groups : 1;
  enum status status = read_version(plan, &settings->mqtt, err);
  if (status == STATUS_OK) status = write_prefix(plan, settings, err);
  if (status == STATUS_OK) status = check_credentials(settings, err);
  if (status == STATUS_OK) status = ws_client_headers(plan->headers, settings, SUBPROTOCOL, err);
  if (status == STATUS_OK) status = target_open(run, tls, err);
  if (status == STATUS_OK) describe(run, plan, tls);
  return status;
}

/* Version 5 ends a kept session with its client's good-bye. */
static void forget_sessions(struct driver_run *run) {
  const struct driver_settings *settings = &run->settings;
  uint32_t first = settings->mqtt.keep_session ? 0 : settings->pure_senders;
  uint64_t limit_ns = RELEASE_NS + settings->clients * RELEASE_PER_CLIENT_NS;
  if (limit_ns > RELEASE_MAX_NS) limit_ns = RELEASE_MAX_NS;
  run->left_behind = visit_to_be_forgotten(run, first, settings->clients, clock_now_ns() + limit_ns);
}

static void mqtt_release(struct driver_run *run) {
  const struct mqtt_plan *plan = run->population;
  if (plan && plan->sessions_made) forget_sessions(run);
  target_release(run);
}

static enum status make_sessions(struct driver_run *run, struct err *err) {
  const struct driver_settings *settings = &run->settings;
  struct mqtt_plan *plan = run->population;
  bool stays = settings->mqtt.keep_session && plan->version == MQTT_3_1_1;
  plan->sessions_made = settings->backlog || stays;
  if (!settings->backlog) return STATUS_OK;
  return visit_to_be_known(run, settings->pure_senders, settings->clients, settings->deadline_ns, err);
}

static enum status mqtt_prepare(struct driver_run *run, struct err *err) {
  enum status status = mqtt_make_plan(run, err);
  if (status == STATUS_OK) status = make_sessions(run, err);
  if (status != STATUS_OK) mqtt_release(run);
  return status;
}

/* --- writing: each returns false when memory is out or the stream is over --- */

/* NULL over TCP. */
static struct ws_client *ws_of(struct client *client) {
  return plan_of(client)->websocket ? &state_of(client)->ws : NULL;
}

static struct view connect_properties(const struct client *client, uint8_t out[16]) {
  struct mqtt_property property[2];
  size_t count = 0;
  if (plan_of(client)->version != MQTT_5) return (struct view){0};
  if (keeps_session(client)) {
    property[count++] = (struct mqtt_property){.id = MQTT_SESSION_EXPIRY, .number = SESSION_EXPIRY_S};
  }
  uint32_t receive_maximum = asked_of(client)->receive_maximum;
  if (receive_maximum > 0) {
    property[count++] = (struct mqtt_property){.id = MQTT_RECEIVE_MAXIMUM_PROPERTY, .number = receive_maximum};
  }
  mqtt_write_properties(out, property, count);
  return view_of(out, mqtt_properties_size(property, count));
}

static bool write_connect(struct client *client) {
  const struct driver_settings *settings = &client->run->settings;
  char id[CLIENT_ID_MAX];
  uint8_t properties[16];
  struct mqtt_connect connect = {
      .version = plan_of(client)->version,
      .clean = !keeps_session(client),
      .keep_alive_s = plan_of(client)->keep_alive_s,
      .properties = connect_properties(client, properties),
      .client_id = view_of(id, write_client_id(client, id)),
      .has_user = settings->user,
      .has_password = settings->user && settings->password,
  };
  if (connect.has_user) connect.user = view_str(settings->user);
  if (connect.has_password) connect.password = view_str(settings->password);
  size_t len = mqtt_connect_size(&connect);
  struct ws_frame frame;
  if (!ws_frame_begin(ws_of(client), client, WS_BINARY, len, &frame)) return false;
  mqtt_write_connect(frame.message, &connect);
  ws_frame_end(client, &frame);
  return true;
}

static bool write_subscribe(struct client *client) {
  struct mqtt_client *state = state_of(client);
  const struct mqtt_plan *plan = plan_of(client);
  char topic[TOPIC_MAX];
  uint8_t encoded[TOPIC_MAX + 3];
  bool no_local = plan->version == MQTT_5 && client->run->settings.groups > 0;
  struct mqtt_filter filter = {
      .topic = view_of(topic, write_filter(client, state->subscribed, topic)),
      .options = (uint8_t)(plan->qos | (no_local ? MQTT_NO_LOCAL : 0)),
  };
  mqtt_write_filters(encoded, MQTT_SUBSCRIBE, &filter, 1);
  state->subscribe_id = next_id(state);
  struct mqtt_subscribe subscribe = {
      .id = state->subscribe_id, .filters = view_of(encoded, mqtt_filters_size(MQTT_SUBSCRIBE, &filter, 1))};
  size_t len = mqtt_subscribe_size(plan->version, &subscribe);
  struct ws_frame frame;
  if (subscribe.id == 0 || !ws_frame_begin(ws_of(client), client, WS_BINARY, len, &frame)) return false;
  mqtt_write_subscribe(frame.message, plan->version, MQTT_SUBSCRIBE, &subscribe);
  ws_frame_end(client, &frame);
  return true;
}

static bool write_ack(struct client *client, enum mqtt_type type, uint16_t id, uint8_t code) {
  enum mqtt_version version = plan_of(client)->version;
  struct mqtt_ack ack = {.id = id, .code = code};
  size_t len = mqtt_ack_size(version, &ack);
  struct ws_frame frame;
  if (!ws_frame_begin(ws_of(client), client, WS_BINARY, len, &frame)) return false;
  mqtt_write_ack(frame.message, version, type, &ack);
  ws_frame_end(client, &frame);
  return true;
}

static bool write_ping(struct client *client) {
  struct ws_frame frame;
  if (!ws_frame_begin(ws_of(client), client, WS_BINARY, MQTT_PING_BYTES, &frame)) return false;
  mqtt_write_ping(frame.message, MQTT_PINGREQ);
  ws_frame_end(client, &frame);
  return true;
}

/* Version 5 can end a kept session with it, so that the run leaves nothing behind; who visits comes back to it. */
static bool write_disconnect(struct client *client) {
  enum mqtt_version version = plan_of(client)->version;
  uint8_t encoded[8];
  struct mqtt_property property = {.id = MQTT_SESSION_EXPIRY, .number = 0};
  struct mqtt_notice notice = {0};
  if (version == MQTT_5 && keeps_session(client) && client->visit == VISIT_NONE) {
    mqtt_write_properties(encoded, &property, 1);
    notice.properties = view_of(encoded, mqtt_properties_size(&property, 1));
  }
  size_t len = mqtt_notice_size(version, &notice);
  struct ws_frame frame;
  if (!ws_frame_begin(ws_of(client), client, WS_BINARY, len, &frame)) return false;
  mqtt_write_notice(frame.message, version, MQTT_DISCONNECT, &notice);
  ws_frame_end(client, &frame);
  return true;
}

static enum publish_result mqtt_publish(struct client *client, const struct publish *publish) {
  struct mqtt_client *state = state_of(client);
  const struct mqtt_plan *plan = plan_of(client);
  bool answered = plan->qos > 0;
  if (state->step != STEP_READY) return PUBLISH_BLOCKED;
  if (answered && state->sent.used >= state->window) return PUBLISH_BLOCKED;
  char topic[TOPIC_MAX];
  struct mqtt_publish message = {
      .qos = plan->qos,
      .retain = asked_of(client)->retain,
      .id = answered ? next_id(state) : 0,
      .topic = view_of(topic, write_destination(client, publish, topic)),
      .payload = {NULL, publish->payload.size},
  };
  size_t len = mqtt_publish_size(plan->version, &message);
  struct ws_frame frame;
  if (answered && message.id == 0) return PUBLISH_BLOCKED;
  if (!ws_frame_begin(ws_of(client), client, WS_BINARY, len, &frame)) return PUBLISH_BLOCKED;
  if (answered && !inflight_put(&state->sent, message.id, publish->token)) return PUBLISH_BLOCKED;
  uint8_t *payload = mqtt_write_publish(frame.message, plan->version, &message);
  payload_write(client->run->driver->payload_form, payload, &publish->payload);
  ws_frame_end(client, &frame);
  return PUBLISH_WRITTEN;
}

/* --- reading: each handler returns false once it has failed the client --- */

/* When the server wants to hear from the client sooner than the run's ticks bring a PINGREQ. */
static void plan_next_ping(struct client *client, uint64_t now_ns) {
  uint16_t every_s = state_of(client)->ping_every_s;
  if (every_s > 0) client->hooks->wake(client, now_ns + every_s * NS_PER_SEC);
}

static bool establish(struct client *client) {
  state_of(client)->step = STEP_READY;
  client->hooks->established(client);
  plan_next_ping(client, clock_now_ns());
  return true;
}

static bool read_backlog(struct client *client) {
  struct mqtt_client *state = state_of(client);
  state->step = STEP_BACKLOG;
  state->came = false;
  return check_written(client, write_ping(client));
}

static bool subscribe_next(struct client *client) {
  struct mqtt_client *state = state_of(client);
  state->step = STEP_SUBSCRIBE;
  if (state->subscribed < topics_of(client)) return check_written(client, write_subscribe(client));
  return has_backlog(client) ? read_backlog(client) : establish(client);
}

/* The session was made and subscribed to by the visit; if it is gone, so is all that waited. */
static bool resume(struct client *client, bool session_present) {
  if (has_backlog(client)) return session_present ? read_backlog(client) : fail(client, CODE_NO_SESSION);
  return client->visit == VISIT_TO_BE_FORGOTTEN ? establish(client) : subscribe_next(client);
}

static uint32_t message_limit(const struct driver_settings *settings) {
  return settings->payload_bytes + PACKET_OVERHEAD;
}

/* What a server of version 5 says it cannot do, before it has to refuse it. */
static int32_t missing_of(const struct client *client, struct view properties) {
  const struct mqtt_plan *plan = plan_of(client);
  struct mqtt_publish largest = {
      .qos = plan->qos, .topic = {NULL, TOPIC_MAX}, .payload = {NULL, client->run->settings.payload_bytes}};
  if (mqtt_property_number(properties, MQTT_MAXIMUM_QOS, 2) < plan->qos) return MQTT_NO_QOS;
  if (asked_of(client)->retain && mqtt_property_number(properties, MQTT_RETAIN_AVAILABLE, 1) == 0) {
    return MQTT_NO_RETAIN;
  }
  bool shares = client->run->settings.queues > 0;
  if (shares && mqtt_property_number(properties, MQTT_SHARED_AVAILABLE, 1) == 0) return MQTT_NO_SHARED;
  uint32_t max_bytes = mqtt_property_number(properties, MQTT_MAXIMUM_PACKET_SIZE, UINT32_MAX);
  return mqtt_publish_size(plan->version, &largest) > max_bytes ? MQTT_PACKET_TOO_LARGE : 0;
}

/* A server of version 5 may keep sessions for less than it is asked to, and for nothing at all. */
static bool forgets_at_once(const struct client *client, struct view properties) {
  return keeps_session(client) && mqtt_property_number(properties, MQTT_SESSION_EXPIRY, SESSION_EXPIRY_S) == 0;
}

static void note_keep_alive(struct client *client, struct view properties) {
  uint32_t server_s = mqtt_property_number(properties, MQTT_SERVER_KEEP_ALIVE, 0);
  uint32_t every_s = server_s > 2 ? server_s * 2 / 3 : server_s;
  bool sooner = every_s > 0 && every_s * NS_PER_SEC < driver_tick_ns(client->run);
  state_of(client)->ping_every_s = sooner ? (uint16_t)every_s : 0;
}

static bool on_connack(struct client *client, const struct mqtt_packet *packet) {
  struct mqtt_client *state = state_of(client);
  struct mqtt_connack connack;
  bool awaited = state->step == STEP_CONNECT;
  if (!awaited || !mqtt_read_connack(plan_of(client)->version, packet, &connack)) return fail(client, CAUSE_PROTOCOL);
  if (connack.code != 0) return fail(client, connack.code);
  if (connack.session_present && !keeps_session(client)) return fail(client, CAUSE_PROTOCOL);
  if (forgets_at_once(client, connack.properties)) return fail(client, CODE_KEEPS_NO_SESSIONS);
  int32_t missing = missing_of(client, connack.properties);
  if (missing != 0) return fail(client, missing);
  if (!connack.session_present) inflight_free(&state->received);
  state->window = mqtt_property_number(connack.properties, MQTT_RECEIVE_MAXIMUM_PROPERTY, WINDOW_MAX);
  note_keep_alive(client, connack.properties);
  return resume(client, connack.session_present);
}

static bool on_suback(struct client *client, const struct mqtt_packet *packet) {
  struct mqtt_client *state = state_of(client);
  struct mqtt_suback suback;
  if (!mqtt_read_suback(plan_of(client)->version, packet, &suback)) return fail(client, CAUSE_PROTOCOL);
  bool awaited = state->step == STEP_SUBSCRIBE && suback.id == state->subscribe_id && suback.codes.len == 1;
  if (!awaited) return fail(client, CAUSE_PROTOCOL);
  uint8_t granted = suback.codes.data[0];
  if (granted >= MQTT_UNSPECIFIED) return fail(client, granted);
  if (granted < plan_of(client)->qos) return fail(client, MQTT_NO_QOS);
  state->subscribed++;
  return subscribe_next(client);
}

/* An empty message only takes a retained one away. */
static void deliver(struct client *client, const struct mqtt_publish *message) {
  state_of(client)->came = true;
  if (message->payload.len > 0) client->hooks->delivered(client, message->payload, message->retain);
}

static bool on_publish_twice(struct client *client, const struct mqtt_publish *message) {
  struct mqtt_client *state = state_of(client);
  if (inflight_has(&state->received, message->id)) return true;
  uint32_t most = asked_of(client)->receive_maximum;
  if (most > 0 && state->received.used >= most) return fail(client, CAUSE_PROTOCOL);
  if (!inflight_put(&state->received, message->id, 0)) return fail(client, CAUSE_RESET);
  deliver(client, message);
  return true;
}

static bool on_publish(struct client *client, const struct mqtt_packet *packet) {
  enum mqtt_version version = plan_of(client)->version;
  struct mqtt_publish message;
  bool early = state_of(client)->step < STEP_SUBSCRIBE;
  if (early || !mqtt_read_publish(version, packet, &message)) return fail(client, CAUSE_PROTOCOL);
  /* No client has allowed aliases. */
  if (message.properties.len > 0 && mqtt_property_number(message.properties, MQTT_TOPIC_ALIAS, 0) > 0) {
    return fail(client, CAUSE_PROTOCOL);
  }
  if (message.duplicate) count_redelivered(client, message.payload, COUNTED_REDELIVERED);
  if (message.qos == 2) {
    return on_publish_twice(client, &message) &&
           check_written(client, write_ack(client, MQTT_PUBREC, message.id, MQTT_SUCCESS));
  }
  deliver(client, &message);
  return message.qos == 0 || check_written(client, write_ack(client, MQTT_PUBACK, message.id, MQTT_SUCCESS));
}

static bool settle(struct client *client, const struct mqtt_ack *ack) {
  uint32_t token;
  if (!inflight_take(&state_of(client)->sent, ack->id, &token)) return true;
  client->hooks->acked(client, token, ack->code >= MQTT_UNSPECIFIED ? ack->code : 0);
  return true;
}

static bool on_pubrec(struct client *client, const struct mqtt_ack *ack) {
  if (ack->code >= MQTT_UNSPECIFIED) return settle(client, ack);
  bool known = inflight_has(&state_of(client)->sent, ack->id);
  return check_written(client, write_ack(client, MQTT_PUBREL, ack->id, known ? MQTT_SUCCESS : MQTT_ID_NOT_FOUND));
}

static bool on_pubrel(struct client *client, const struct mqtt_ack *ack) {
  uint32_t unused;
  bool known = inflight_take(&state_of(client)->received, ack->id, &unused);
  state_of(client)->came = true; /* its PUBCOMP may make room for more */
  return check_written(client, write_ack(client, MQTT_PUBCOMP, ack->id, known ? MQTT_SUCCESS : MQTT_ID_NOT_FOUND));
}

/* The server has taken over a message that it has nobody for. */
static void count_unmatched(struct client *client, const struct mqtt_ack *ack) {
  const struct inflight_entry *entry = inflight_place(&state_of(client)->sent, ack->id);
  bool measured = entry->id == ack->id && entry->token & 1;
  if (measured && ack->code == MQTT_NO_SUBSCRIBERS) client->run->counted[COUNTED_UNMATCHED]++;
}

static bool on_ack(struct client *client, const struct mqtt_packet *packet) {
  const struct mqtt_plan *plan = plan_of(client);
  struct mqtt_ack ack;
  if (state_of(client)->step < STEP_SUBSCRIBE || !mqtt_read_ack(plan->version, packet, &ack)) {
    return fail(client, CAUSE_PROTOCOL);
  }
  if (packet->type == MQTT_PUBREL) return on_pubrel(client, &ack);
  count_unmatched(client, &ack);
  if ((packet->type == MQTT_PUBACK) != (plan->qos == 1)) return fail(client, CAUSE_PROTOCOL);
  return packet->type == MQTT_PUBREC ? on_pubrec(client, &ack) : settle(client, &ack);
}

static bool on_pingresp(struct client *client) {
  struct mqtt_client *state = state_of(client);
  if (state->step != STEP_BACKLOG) return true;
  return state->came || state->received.used > 0 ? read_backlog(client) : establish(client);
}

static bool on_disconnect(struct client *client, const struct mqtt_packet *packet) {
  struct mqtt_notice notice;
  bool allowed = plan_of(client)->version == MQTT_5;
  if (!allowed || !mqtt_read_notice(MQTT_5, packet, &notice)) return fail(client, CAUSE_PROTOCOL);
  return fail(client, notice.code >= MQTT_UNSPECIFIED ? notice.code : CAUSE_KICKED);
}

static bool on_packet(struct client *client, const struct mqtt_packet *packet) {
  state_of(client)->unanswered = 0;
  switch (packet->type) {
  case MQTT_CONNACK:
    return on_connack(client, packet);
  case MQTT_SUBACK:
    return on_suback(client, packet);
  case MQTT_PUBLISH:
    return on_publish(client, packet);
  case MQTT_PUBACK:
  case MQTT_PUBREC:
  case MQTT_PUBREL:
  case MQTT_PUBCOMP:
    return on_ack(client, packet);
  case MQTT_PINGRESP:
    return packet->body.len == 0 ? on_pingresp(client) : fail(client, CAUSE_PROTOCOL);
  case MQTT_DISCONNECT:
    return on_disconnect(client, packet);
  default:
    return fail(client, CAUSE_PROTOCOL);
  }
}

/* Handles the whole packets at the front; *used is theirs. */
static bool read_packets(struct client *client, const uint8_t *data, size_t len, size_t *used) {
  uint32_t limit = message_limit(&client->run->settings);
  *used = 0;
  while (*used < len) {
    struct mqtt_packet packet;
    enum mqtt_result result = mqtt_read_packet(data + *used, len - *used, limit, &packet);
    if (result == MQTT_PARTIAL) return true;
    if (result != MQTT_OK) return fail(client, CAUSE_PROTOCOL);
    if (!on_packet(client, &packet)) return false;
    *used += packet.size;
  }
  return true;
}

/* --- WebSocket: packets need not end where messages do --- */

static bool on_message(struct client *client, const struct ws_event *event) {
  struct buf *gathered = &state_of(client)->gathered;
  size_t used;
  if (event->opcode != WS_BINARY) return fail(client, CAUSE_PROTOCOL);
  if (gathered->len == 0) {
    if (!read_packets(client, event->data, event->len, &used)) return false;
    if (used == event->len) return true;
    return buf_append(gathered, event->data + used, event->len - used) || fail(client, CAUSE_RESET);
  }
  if (!buf_append(gathered, event->data, event->len)) return fail(client, CAUSE_RESET);
  if (!read_packets(client, gathered->data, gathered->len, &used)) return false;
  buf_consume(gathered, used);
  if (gathered->len == 0) buf_free(gathered);
  return true;
}

static bool on_event(struct client *client, const struct ws_event *event) {
  struct mqtt_client *state = state_of(client);
  if (event->kind == WS_EVENT_MESSAGE) return on_message(client, event);
  return ws_client_control(&state->ws, client, event, state->step == STEP_READY);
}

static bool on_upgraded(struct client *client, struct view subprotocol) {
  if (!view_is(subprotocol, SUBPROTOCOL)) return fail(client, CAUSE_UPGRADE);
  return check_written(client, write_connect(client));
}

static size_t mqtt_received(struct client *client, uint8_t *data, size_t len) {
  static const struct ws_client_ops ops = {message_limit, on_upgraded, on_event};
  size_t used;
  if (plan_of(client)->websocket) return ws_client_received(&state_of(client)->ws, client, &ops, data, len);
  return read_packets(client, data, len, &used) ? used : 0;
}

/* --- life --- */

static void mqtt_opened(struct client *client) {
  const struct mqtt_plan *plan = plan_of(client);
  const char *path = client->run->settings.url.path;
  if (!plan->websocket) {
    check_written(client, write_connect(client));
    return;
  }
  if (path[0] == 0 || strcmp(path, "/") == 0) path = "/mqtt";
  ws_client_open(&state_of(client)->ws, client, path, plan->headers);
}

static void mqtt_tick(struct client *client, uint64_t now_ns) {
  struct mqtt_client *state = state_of(client);
  if (state->step != STEP_READY) return;
  if (state->unanswered >= UNANSWERED_MAX) {
    fail(client, CAUSE_KEEP_ALIVE);
    return;
  }
  state->unanswered++;
  if (check_written(client, write_ping(client))) plan_next_ping(client, now_ns);
}

/* Takes away what this client may have left behind as the last message of its topics. */
static void clear_retained(struct client *client) {
  enum mqtt_version version = plan_of(client)->version;
  char topic[TOPIC_MAX];
  for (uint32_t i = 0; i < topics_of(client); i++) {
    struct mqtt_publish empty = {.retain = true, .topic = view_of(topic, write_heard(client, i, topic))};
    size_t len = mqtt_publish_size(version, &empty);
    struct ws_frame frame;
    if (!ws_frame_begin(ws_of(client), client, WS_BINARY, len, &frame)) return;
    mqtt_write_publish(frame.message, version, &empty);
    ws_frame_end(client, &frame);
  }
}

static void mqtt_closing(struct client *client) {
  if (state_of(client)->step != STEP_READY) return;
  if (asked_of(client)->retain && client->visit == VISIT_NONE) clear_retained(client);
  if (write_disconnect(client) && plan_of(client)->websocket) ws_client_write_close(&state_of(client)->ws, client);
}

static void mqtt_released(struct client *client) {
  struct mqtt_client *state = state_of(client);
  ws_client_free(&state->ws);
  buf_free(&state->gathered);
  inflight_free(&state->sent);
  if (!keeps_session(client) || client->visit != VISIT_NONE) inflight_free(&state->received);
}

static void mqtt_reconnecting(struct client *client) {
  struct mqtt_client *state = state_of(client);
  *state = (struct mqtt_client){.received = state->received, .last_id = state->last_id};
}

static const char *mqtt_code_text(int32_t code) {
  if (code == CODE_NO_SESSION) return "the server has forgotten the session";
  return code == CODE_KEEPS_NO_SESSIONS ? "the server keeps no sessions" : mqtt_reason_name(code);
}

#define TLS_SCHEMES "mqtts,mqtts+ws,mqtt+wss,mqtts+wss"
#define WEBSOCKET_SCHEMES "mqtt+ws,mqtts+ws,mqtt+wss,mqtts+wss"

static const struct driver_option options[] = {{"mqtt-version", NULL}, {"qos", NULL}, {"clean-session", NULL},
    {"retain", NULL}, {"receive-maximum", NULL}, {"topic-prefix", NULL}, {"user", NULL}, {"keep-alive", NULL},
    {"setup-concurrency", NULL}, {"origin", WEBSOCKET_SCHEMES}, DRIVER_TLS_OPTIONS(TLS_SCHEMES), {NULL, NULL}};

static void tell_settings(const struct driver_settings *settings, struct driver_facts *out) {
  const struct mqtt_settings *mqtt = &settings->mqtt;
  const char *version = mqtt->version ? mqtt->version : "5";
  uint32_t window = mqtt->receive_maximum ? mqtt->receive_maximum : WINDOW_MAX;
  facts_add(&out->key, "mqtt-version", version);
  facts_add_number(&out->key, "qos", mqtt->qos);
  facts_add(&out->key, "clean-session", mqtt->keep_session || settings->backlog ? "false" : "true");
  facts_add(&out->key, "retain", mqtt->retain ? "true" : "false");
  if (strcmp(version, "5") == 0) facts_add_number(&out->key, "receive-maximum", window);
  out->options = out->key;
  facts_add(&out->key, "transport", strstr(settings->url.scheme, "+ws") ? "websocket" : "tcp");
  facts_add(&out->options, "topic-prefix", mqtt->topic_prefix ? mqtt->topic_prefix : "muster");
}

const struct driver driver_mqtt = {
    .name = "mqtt",
    .schemes = "mqtt,mqtts,mqtt+ws,mqtts+ws,mqtt+wss,mqtts+wss",
    .title = "MQTT 3.1.1 and 5 (TCP, TLS, WebSocket)",
    .ack_meaning = "PUBACK (QoS 1) or PUBCOMP (QoS 2): the broker has taken over the message; none at QoS 0",
    .delivery = "QoS 0 at most once, 1 at least once, 2 exactly once, each within the broker's queue limits",
    .capabilities = CAPABILITY_ACKS | CAPABILITY_PRIVATE | CAPABILITY_GROUP | CAPABILITY_BROADCAST | CAPABILITY_ECHO |
                    CAPABILITY_GROUP_ECHO | CAPABILITY_QUEUE | CAPABILITY_BACKLOG,
    .default_port = 1883,
    .payload_form = PAYLOAD_BINARY,
    .payload_min_bytes = PAYLOAD_BINARY_MIN,
    .outstanding_max = 32768,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct mqtt_client),
    .options = options,
    .describe = tell_settings,
    .counters = {"redelivered", "no_subscribers"},
    .without = without,
    .prepare = mqtt_prepare,
    .release = mqtt_release,
    .opened = mqtt_opened,
    .received = mqtt_received,
    .publish = mqtt_publish,
    .tick = mqtt_tick,
    .closing = mqtt_closing,
    .released = mqtt_released,
    .reconnecting = mqtt_reconnecting,
    .code_text = mqtt_code_text,
};
