/* NATS: core publishes without an answer (ack=none), with a PING behind each (ack=flush), or into a JetStream stream
 * (ack=jetstream); the target's URL says which.
 *
 * Each client subscribes to a subject of its own, or to that of its group, room or broadcast, on its one connection.
 * Servers process one connection's operations in order, so a PONG says that everything before its PING was processed:
 * the subscriptions at the beginning, and a publish with ack=flush. An error between the two belongs to that publish.
 *
 * The consumers of a queue subscribe to its subject in one queue group, so that the server gives each message to one of
 * them; its senders subscribe to nothing.
 *
 * With groups and rooms the connection asks for echo:false, so that a publisher does not hear itself. With JetStream
 * the stream takes in all subjects of the run, its answers come to an inbox that ends in the publish's token, and the
 * recipients stay plain subscribers: the ACK is durable, the delivery is not. Only queues and the receivers of a
 * backlog have durable consumers, made by prepare, whose messages are acknowledged one by one. They push to the queue
 * group of a queue's consumers, or are pulled from: a client has one request under way, for a batch, and makes the next
 * when that has come or has run out. A backlog is read to its end when a request that does not wait brings nothing and
 * nothing was said to be left. */
#include "driver/fail.h"
#include "driver/nats_internal.h"
#include "driver/plans.h"
#include "driver/redelivered.h"
#include "driver/tokens.h"

#include "base/clock.h"
#include "wire/nats.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TICK_NS (30 * NS_PER_SEC)
#define UNANSWERED_MAX 3
#define OUTSTANDING_MAX 32768
#define TOKEN_KEEP_ALIVE UINT32_MAX
#define ACK_TEXT "+ACK"
#define CODE_BAD_PUBACK 500
#define STATUS_HEARTBEAT 100
#define STATUS_NO_MESSAGES 404
#define STATUS_TIMEOUT 408
#define CODE_PULL_ENDED 409
#define PULL_NS (5 * NS_PER_SEC)      /* how long a pull waits in the server */
#define PULL_MORE_NS (1 * NS_PER_SEC) /* for what is left of a backlog */

enum step { STEP_INFO, STEP_TLS, STEP_LOGIN, STEP_BACKLOG, STEP_READY };
enum { COUNTED_REDELIVERED };

struct nats_client {
  struct tokens pings; /* what each PONG to come answers */
  int32_t error;       /* came since the last PONG; 0: none */
  uint32_t asked;      /* messages of the pull under way that have not come */
  uint32_t left;       /* that the server had for us behind the last one */
  uint8_t step;        /* enum step */
  uint8_t unanswered;  /* keep-alives */
  bool came;           /* something of the pull under way */
};

static_assert(sizeof(struct client) + sizeof(struct nats_client) <= 256, "an idle client must stay small");

static struct nats_client *state_of(struct client *client) {
  return client_state(client);
}

static const struct nats_plan *plan_of(const struct client *client) {
  return client->run->population;
}

static bool is_flush(const struct client *client) {
  return plan_of(client)->ack == ACK_FLUSH;
}

/* --- what a client hears --- */

static bool has_consumer(const struct client *client) {
  return nats_has_consumers(client->run) && client->index >= client->run->settings.pure_senders;
}

static bool pulls(const struct client *client) {
  return has_consumer(client) && plan_of(client)->pulls;
}

/* "_INBOX.muster.RUN.INDEX" and what stands behind it. */
static struct view inbox_subject(const struct client *client, const char *behind, char out[NATS_NAME_BYTES]) {
  size_t at = name_text(out, 0, view_str("_INBOX."));
  at = name_text(out, at, view_str(plan_of(client)->prefix));
  at = name_number(out, name_text(out, at, view_str(".")), client->index);
  return view_of(out, name_text(out, at, view_str(behind)));
}

/* --- writing --- */

static bool write_raw(struct client *client, const void *data, size_t len) {
  if (!stream_write(&client->stream, data, len)) return false;
  client->run->bytes_sent += len;
  return true;
}

static bool write_ping(struct client *client, uint32_t token) {
  if (!tokens_push(&state_of(client)->pings, token)) return false;
  return write_raw(client, NATS_PING_TEXT, sizeof NATS_PING_TEXT - 1);
}

static bool write_subscribe(struct client *client, struct view subject, struct view queue_group, enum nats_sid sid) {
  uint8_t line[NATS_SUBJECT_MAX + 32];
  uint8_t *end = nats_write_subscribe(line, subject, queue_group, sid);
  return write_raw(client, line, (size_t)(end - line));
}

static struct view subscription_of(const struct client *client, char out[NATS_NAME_BYTES]) {
  const struct nats_plan *plan = plan_of(client);
  const struct driver_settings *settings = &client->run->settings;
  uint32_t queue;
  if (pulls(client)) return inbox_subject(client, ".pull", out);
  if (has_consumer(client) && driver_queue_of(settings, client->index, &queue)) {
    return nats_push_subject(plan, queue, out);
  }
  if (settings->groups > 0 && settings->shared_groups) return name_whole(out, plan->prefix, ".group.*");
  return name_of_subscription(out, plan->prefix, client, 0);
}

static bool subscribe_to_messages(struct client *client) {
  const struct driver_settings *settings = &client->run->settings;
  char subject[NATS_NAME_BYTES];
  uint32_t queue;
  bool shares = driver_queue_of(settings, client->index, &queue) && !pulls(client);
  if (settings->queues > 0 && client->index < settings->pure_senders) return true;
  struct view group = shares ? view_str(NATS_QUEUE_GROUP) : (struct view){0};
  return write_subscribe(client, subscription_of(client, subject), group, SID_MESSAGES);
}

static bool write_subscriptions(struct client *client) {
  char subject[NATS_NAME_BYTES];
  if (!subscribe_to_messages(client)) return false;
  if (!nats_is_jetstream(client->run) || has_consumer(client)) return true;
  return write_subscribe(client, inbox_subject(client, ".*", subject), (struct view){0}, SID_INBOX);
}

static bool start_login(struct client *client) {
  const struct nats_plan *plan = plan_of(client);
  state_of(client)->step = STEP_LOGIN;
  bool written = write_raw(client, plan->connect, plan->connect_len) && write_subscriptions(client) &&
                 write_ping(client, TOKEN_KEEP_ALIVE);
  return written || fail(client, CAUSE_RESET);
}

static enum publish_result nats_publish(struct client *client, const struct publish *publish) {
  char subject[NATS_NAME_BYTES], inbox[NATS_NAME_BYTES], token[NATS_NAME_BYTES];
  struct nats_client *state = state_of(client);
  const bool flush = is_flush(client);
  if (state->step != STEP_READY) return PUBLISH_BLOCKED;
  struct nats_publish message = {
      .subject = name_of_destination(subject, plan_of(client)->prefix, client, publish),
      .headers = plan_of(client)->headers,
      .payload_len = publish->payload.size,
  };
  if (nats_is_jetstream(client->run)) {
    token[name_numbered(token, "", ".", publish->token).len] = '\0';
    message.reply = inbox_subject(client, token, inbox);
  }
  uint8_t *out = stream_reserve(&client->stream, nats_publish_size(&message) + sizeof NATS_PING_TEXT);
  if (!out || (flush && !tokens_push(&state->pings, publish->token))) return PUBLISH_BLOCKED;
  uint8_t *at = nats_write_publish(out, &message);
  payload_write(PAYLOAD_BINARY, at, &publish->payload);
  at = nats_end(at + message.payload_len);
  if (flush) {
    memcpy(at, NATS_PING_TEXT, sizeof NATS_PING_TEXT - 1);
    at += sizeof NATS_PING_TEXT - 1;
  }
  stream_commit(&client->stream, (size_t)(at - out));
  client->run->bytes_sent += (uint64_t)(at - out);
  return PUBLISH_WRITTEN;
}

/* Small messages to the server itself. */
static bool write_text(struct client *client, struct view to, struct view reply, struct view text) {
  struct nats_publish message = {.subject = to, .reply = reply, .payload_len = text.len};
  uint8_t *out = stream_reserve(&client->stream, nats_publish_size(&message));
  if (!out) return false;
  uint8_t *at = nats_write_publish(out, &message);
  memcpy(at, text.data, text.len);
  at = nats_end(at + text.len);
  stream_commit(&client->stream, (size_t)(at - out));
  client->run->bytes_sent += (uint64_t)(at - out);
  return true;
}

/* Asks the client's durable consumer for a batch; wait_ns 0: for what is there. */
static bool write_pull(struct client *client, uint64_t wait_ns) {
  struct nats_client *state = state_of(client);
  const struct nats_plan *plan = plan_of(client);
  char subject[NATS_NAME_BYTES * 2], inbox[NATS_NAME_BYTES], name[NATS_NAME_BYTES], body[96];
  uint32_t number = client->index;
  driver_queue_of(&client->run->settings, client->index, &number);
  struct view consumer = nats_consumer_name(client->run, number, name);
  size_t at = name_text(subject, 0, view_str("$JS.API.CONSUMER.MSG.NEXT."));
  at = name_text(subject, name_text(subject, at, view_str(plan->stream)), view_str("."));
  at = name_text(subject, at, consumer);
  int len = wait_ns > 0
                ? snprintf(body, sizeof body, "{\"batch\":%" PRIu32 ",\"expires\":%" PRIu64 "}", plan->batch, wait_ns)
                : snprintf(body, sizeof body, "{\"batch\":%" PRIu32 ",\"no_wait\":true}", plan->batch);
  state->asked = plan->batch;
  state->came = false;
  return write_text(client, view_of(subject, at), inbox_subject(client, ".pull", inbox), view_of(body, (size_t)len));
}

/* --- reading: each handler returns false once it has failed the client --- */

static bool on_info(struct client *client, struct view text, bool is_last) {
  struct nats_client *state = state_of(client);
  struct nats_info info;
  if (state->step != STEP_INFO) return true; /* news of a cluster */
  if (!nats_read_info(text, &info)) return fail(client, CAUSE_PROTOCOL);
  if (!client->run->tls) return start_login(client);
  if (!is_last) return fail(client, CAUSE_PROTOCOL);
  state->step = STEP_TLS;
  enum status status = stream_start_tls(&client->stream, client->run->tls, client->run->server_name, NULL);
  return status == STATUS_OK || fail(client, CAUSE_TLS);
}

static bool establish(struct client *client) {
  state_of(client)->step = STEP_READY;
  client->hooks->established(client);
  return !pulls(client) || check_written(client, write_pull(client, PULL_NS));
}

static bool on_login(struct client *client) {
  if (!client->run->settings.backlog || !has_consumer(client)) return establish(client);
  state_of(client)->step = STEP_BACKLOG;
  return check_written(client, write_pull(client, 0));
}

static bool on_pong(struct client *client) {
  struct nats_client *state = state_of(client);
  uint32_t token;
  int32_t error = state->error;
  if (!tokens_pop(&state->pings, &token)) return fail(client, CAUSE_PROTOCOL);
  state->error = 0;
  if (token != TOKEN_KEEP_ALIVE) {
    client->hooks->acked(client, token, error);
    return true;
  }
  state->unanswered = 0;
  return state->step != STEP_LOGIN || on_login(client);
}

/* Some errors leave the connection open. In the flush variant such a one is a publish's, and the PONG behind it says
 * whose; without an answer to carry it, it ends the client, or nobody would ever see it. */
static bool on_error(struct client *client, struct view text) {
  struct nats_client *state = state_of(client);
  enum nats_error error = nats_error_of(text);
  bool lasting = error == NATS_ERROR_PERMISSIONS || error == NATS_ERROR_SUBJECT;
  if (!lasting || !is_flush(client) || state->step != STEP_READY) return fail(client, (int32_t)error);
  state->error = (int32_t)error;
  return true;
}

/* The token behind the last dot of an inbox's subject. */
static bool token_of(struct view subject, uint32_t *token) {
  uint64_t value = 0;
  size_t at = subject.len;
  while (at > 0 && subject.data[at - 1] != '.')
    at--;
  if (at == subject.len || subject.len - at > 10) return false;
  for (; at < subject.len; at++) {
    if (subject.data[at] < '0' || subject.data[at] > '9') return false;
    value = value * 10 + (subject.data[at] - '0');
  }
  *token = (uint32_t)value;
  return value <= UINT32_MAX;
}

static bool on_puback(struct client *client, const struct nats_message *message) {
  struct nats_puback ack;
  uint32_t token;
  bool ready = state_of(client)->step == STEP_READY;
  if (!ready || !token_of(message->subject, &token)) return fail(client, CAUSE_PROTOCOL);
  int32_t code = (int32_t)nats_status(message->headers);
  if (code == 0) code = nats_read_puback(message->payload, &ack) ? ack.error : CODE_BAD_PUBACK;
  client->hooks->acked(client, token, code);
  return true;
}

static bool pull_next(struct client *client) {
  struct nats_client *state = state_of(client);
  bool reads_backlog = state->step == STEP_BACKLOG;
  if (reads_backlog && !state->came && state->left == 0) return establish(client);
  uint64_t wait_ns = !reads_backlog ? PULL_NS : state->came ? 0 : PULL_MORE_NS;
  return check_written(client, write_pull(client, wait_ns));
}

/* A pull came to its end, or to nothing. */
static bool on_pull_status(struct client *client, uint32_t status) {
  if (status == STATUS_HEARTBEAT) return true;
  if (status == STATUS_NO_MESSAGES || status == STATUS_TIMEOUT) return pull_next(client);
  return fail(client, (int32_t)status);
}

/* A message of the client's durable consumer, which wants its ACK. */
static bool on_consumed(struct client *client, const struct nats_message *message) {
  struct nats_client *state = state_of(client);
  struct nats_delivery delivery;
  uint32_t status = message->reply.len == 0 ? nats_status(message->headers) : 0;
  if (pulls(client) && status > 0) return on_pull_status(client, status);
  if (!nats_read_delivery(message->reply, &delivery)) return fail(client, CAUSE_PROTOCOL);
  if (delivery.deliveries > 1) count_redelivered(client, message->payload, COUNTED_REDELIVERED);
  client->hooks->delivered(client, message->payload, false);
  if (!check_written(client, write_text(client, message->reply, (struct view){0}, view_str(ACK_TEXT)))) return false;
  state->left = delivery.left > UINT32_MAX ? UINT32_MAX : (uint32_t)delivery.left;
  state->came = true;
  return !pulls(client) || --state->asked > 0 || pull_next(client);
}

static bool on_msg(struct client *client, const struct nats_message *message) {
  if (state_of(client)->step < STEP_LOGIN) return fail(client, CAUSE_PROTOCOL);
  if (message->sid == SID_INBOX) return on_puback(client, message);
  if (has_consumer(client)) return on_consumed(client, message);
  client->hooks->delivered(client, message->payload, false);
  return true;
}

static bool on_message(struct client *client, const struct nats_message *message, bool is_last) {
  switch (message->kind) {
  case NATS_MSG:
    return on_msg(client, message);
  case NATS_INFO:
    return on_info(client, message->text, is_last);
  case NATS_PING:
    return write_raw(client, NATS_PONG_TEXT, sizeof NATS_PONG_TEXT - 1) || fail(client, CAUSE_RESET);
  case NATS_PONG:
    return on_pong(client);
  case NATS_ERROR:
    return on_error(client, message->text);
  default:
    return true;
  }
}

static size_t nats_received(struct client *client, uint8_t *data, size_t len) {
  uint32_t limit = plan_of(client)->payload_limit;
  size_t used = 0;
  while (used < len) {
    struct nats_message message;
    size_t read = nats_read(data + used, len - used, limit, &message);
    if (message.kind == NATS_BAD) fail(client, CAUSE_PROTOCOL);
    if (message.kind == NATS_BAD) return 0;
    if (read == 0) break;
    used += read;
    if (!on_message(client, &message, used == len)) return 0;
  }
  return used;
}

/* --- life --- */

static void nats_opened(struct client *client) {
  if (state_of(client)->step == STEP_TLS) start_login(client); /* before, the server speaks first */
}

static void nats_tick(struct client *client, uint64_t now_ns) {
  struct nats_client *state = state_of(client);
  (void)now_ns;
  if (state->step != STEP_READY) return;
  if (state->unanswered >= UNANSWERED_MAX) {
    fail(client, CAUSE_KEEP_ALIVE);
    return;
  }
  state->unanswered++;
  if (!write_ping(client, TOKEN_KEEP_ALIVE)) fail(client, CAUSE_RESET);
}

/* NATS knows no good-bye. */
static void nats_closing(struct client *client) {
  (void)client;
}

static void nats_released(struct client *client) {
  tokens_free(&state_of(client)->pings);
}

static const char *nats_code_text(int32_t code) {
  switch (code) {
  case NATS_NO_RESPONDERS:
    return "no responders: no stream takes the subject";
  case CODE_PULL_ENDED:
    return "JetStream ended a pull: consumer gone, or over its limits";
  case CODE_BAD_PUBACK:
    return "an answer that is no PubAck";
  case 10023:
    return "JetStream: insufficient resources";
  case 10039:
    return "JetStream is not enabled for the account";
  case 10047:
    return "JetStream: insufficient storage resources";
  case 10054:
    return "JetStream: message size exceeds the maximum allowed";
  case 10076:
    return "JetStream is not enabled";
  case 10077:
    return "JetStream: the stream could not store the message";
  default:
    return nats_error_text(code);
  }
}

static const struct driver_option options[] = {
    {"user", NULL}, {"keep-alive", NULL}, DRIVER_TLS_OPTIONS("nats+tls"), {NULL, NULL}};

const struct driver driver_nats = {
    .name = "nats",
    .schemes = "nats,nats+tls",
    .title = "NATS (core; JetStream with /?ack=jetstream)",
    .ack_meaning = "none; /?ack=flush: the server has processed it; /?ack=jetstream: a stream has stored it",
    .delivery = "core subscription: to whoever is connected, at most once; slow consumers are cut off",
    .capabilities = CAPABILITY_ACKS | CAPABILITY_PRIVATE | CAPABILITY_GROUP | CAPABILITY_ROOM | CAPABILITY_BROADCAST |
                    CAPABILITY_ECHO | CAPABILITY_QUEUE | CAPABILITY_BACKLOG,
    .default_port = 4222,
    .payload_form = PAYLOAD_BINARY,
    .payload_min_bytes = PAYLOAD_BINARY_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct nats_client),
    .options = options,
    .describe = nats_tell_settings,
    .starts_tls = true,
    .counters = {"redelivered"},
    .without = nats_without,
    .prepare = nats_prepare,
    .release = nats_release,
    .opened = nats_opened,
    .received = nats_received,
    .publish = nats_publish,
    .tick = nats_tick,
    .closing = nats_closing,
    .released = nats_released,
    .code_text = nats_code_text,
};
