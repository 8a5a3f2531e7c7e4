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
 * recipients stay plain subscribers: the ACK is durable, the delivery is not. Only a queue has a durable consumer, made
 * by prepare: it pushes to the queue group of the queue's consumers, who acknowledge each message. */
#include "driver/dialogue.h"
#include "driver/fail.h"
#include "driver/name.h"
#include "driver/plans.h"
#include "driver/query.h"
#include "driver/target.h"
#include "driver/tokens.h"

#include "base/clock.h"
#include "wire/json_scan.h"
#include "wire/nats.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS (30 * NS_PER_SEC)
#define UNANSWERED_MAX 3
#define OUTSTANDING_MAX 32768
#define PREFIX_MAX 32
#define SUBJECT_MAX 80
#define CONNECT_MAX 2048
#define TEXT_MIN_LIMIT 65536 /* of the API's answers */
#define TOKEN_KEEP_ALIVE UINT32_MAX
#define BODY_MAX 640 /* of a request to the API */
#define RELEASE_NS (2 * NS_PER_SEC)
#define QUEUE_GROUP "consumers"
#define ACK_WAIT_S 5 /* until JetStream sends again what was not acknowledged */
#define ACK_TEXT "+ACK"
#define CODE_NO_RESPONDERS 503
#define CODE_BAD_PUBACK 500

enum sid { SID_MESSAGES = 1, SID_INBOX };
enum ack { ACK_NONE, ACK_FLUSH, ACK_JETSTREAM };
enum step { STEP_INFO, STEP_TLS, STEP_LOGIN, STEP_READY };

struct nats_client {
  struct tokens pings; /* what each PONG to come answers */
  int32_t error;       /* came since the last PONG; 0: none */
  uint8_t step;        /* enum step */
  uint8_t unanswered;  /* keep-alives */
};

static_assert(sizeof(struct client) + sizeof(struct nats_client) <= 256, "an idle client must stay small");

/* What all clients share. */
struct nats_plan {
  enum ack ack;
  char prefix[PREFIX_MAX]; /* of every subject: "muster.0123456789abcdef" */
  char stream[PREFIX_MAX]; /* its name */
  char connect[CONNECT_MAX];
  size_t connect_len;
  struct view headers; /* empty unless asked for */
  bool in_memory;      /* the stream's storage */
  bool stream_exists;
  uint32_t payload_limit;
  uint64_t max_payload; /* the server's */
};

static struct nats_client *state_of(struct client *client) {
  return client_state(client);
}

static const struct nats_plan *plan_of(const struct client *client) {
  return client->run->population;
}

static bool is_flush(const struct client *client) {
  return plan_of(client)->ack == ACK_FLUSH;
}

static bool is_jetstream(const struct driver_run *run) {
  const struct nats_plan *plan = run->population;
  return plan->ack == ACK_JETSTREAM;
}

/* --- subjects --- */

static size_t write_subject(char out[SUBJECT_MAX], const char *prefix, const char *kind, uint32_t number) {
  size_t at = name_text(out, name_text(out, 0, view_str(prefix)), view_str(kind));
  return name_number(out, at, number);
}

static struct view own_subject(const struct nats_plan *plan, uint32_t index, char out[SUBJECT_MAX]) {
  return view_of(out, write_subject(out, plan->prefix, ".client.", index));
}

static struct view group_subject(const struct nats_plan *plan, uint32_t group, char out[SUBJECT_MAX]) {
  return view_of(out, write_subject(out, plan->prefix, ".group.", group));
}

static struct view queue_subject(const struct nats_plan *plan, uint32_t queue, char out[SUBJECT_MAX]) {
  return view_of(out, write_subject(out, plan->prefix, ".queue.", queue));
}

static bool has_consumers(const struct driver_run *run) {
  return is_jetstream(run) && run->settings.queues > 0;
}

/* Where the durable consumer of a queue pushes to; outside the subjects that the stream takes in. */
static struct view push_subject(const struct nats_plan *plan, uint32_t queue, char out[SUBJECT_MAX]) {
  size_t at = name_text(out, name_text(out, 0, view_str("_INBOX.")), view_str(plan->prefix));
  return view_of(out, name_number(out, name_text(out, at, view_str(".queue.")), queue));
}

static struct view whole_subject(const struct nats_plan *plan, const char *kind, char out[SUBJECT_MAX]) {
  return view_of(out, (size_t)snprintf(out, SUBJECT_MAX, "%s%s", plan->prefix, kind));
}

/* "_INBOX.muster.RUN.INDEX" and what stands behind it. */
static struct view inbox_subject(const struct client *client, const char *behind, char out[SUBJECT_MAX]) {
  size_t at = name_text(out, 0, view_str("_INBOX."));
  at = name_text(out, at, view_str(plan_of(client)->prefix));
  at = name_number(out, name_text(out, at, view_str(".")), client->index);
  return view_of(out, name_text(out, at, view_str(behind)));
}

/* --- set-up --- */

enum { SETTING_ACK, SETTING_HEADERS, SETTING_STORAGE, SETTINGS };

static void say_what_acks_mean(struct driver_run *run, enum ack ack) {
  static const char *const meanings[] = {
      [ACK_NONE] = "none",
      [ACK_FLUSH] = "PONG to a PING behind the publish: the server has processed it",
      [ACK_JETSTREAM] = "PubAck: the JetStream stream has stored it; the server decides when it syncs",
  };
  run->ack_meaning = meanings[ack];
  if (ack == ACK_NONE) run->capabilities &= ~(unsigned)CAPABILITY_ACKS;
  if (ack == ACK_JETSTREAM) run->title = "NATS, published into a JetStream stream";
  if (ack != ACK_JETSTREAM) run->title = "NATS core";
  if (run->settings.queues > 0) {
    run->delivery = ack == ACK_JETSTREAM
                        ? "durable JetStream consumer that pushes to a queue group: to one of it, at least once; again "
                          "after 5 s without an ACK"
                        : "queue group: to one of those who are connected, at most once; slow consumers are cut off";
  }
}

static const struct query_choice choices[] = {
    {"ack", "none|flush|jetstream"}, {"headers", "off|on"}, {"storage", "file|memory"}, {NULL, NULL}};

static void tell_settings(const struct driver_settings *settings, struct driver_facts *out) {
  unsigned chosen[SETTINGS] = {0};
  if (query_read(&settings->url, choices, chosen, NULL, NULL) != STATUS_OK) return;
  query_tell(choices, chosen, NULL, SETTINGS - (chosen[SETTING_ACK] != ACK_JETSTREAM), &out->target);
  out->key = out->target;
}

static enum status read_settings(struct driver_run *run, struct nats_plan *plan, struct err *err) {
  unsigned chosen[SETTINGS] = {0};
  enum status status = query_read(&run->settings.url, choices, chosen, NULL, err);
  if (status != STATUS_OK) return status;
  plan->ack = (enum ack)chosen[SETTING_ACK];
  if (chosen[SETTING_HEADERS]) plan->headers = view_str("NATS/1.0\r\nContent-Type: application/octet-stream\r\n\r\n");
  plan->in_memory = chosen[SETTING_STORAGE];
  say_what_acks_mean(run, plan->ack);
  return STATUS_OK;
}

/* A password without a user is a token. */
static json_t *connect_object(const struct driver_run *run) {
  const struct driver_settings *settings = &run->settings;
  json_t *object = json_pack("{s:b, s:b, s:b, s:s, s:s, s:s, s:i, s:b, s:b, s:b}", "verbose", 0, "pedantic", 0,
      "tls_required", run->tls != NULL, "name", "muster", "lang", "c", "version", "muster", "protocol", 1, "echo",
      settings->groups == 0 && settings->room_members == 0, "headers", 1, "no_responders", 1);
  if (!object || !settings->password) return object;
  if (settings->user) json_object_set_new(object, "user", json_string(settings->user));
  json_object_set_new(object, settings->user ? "pass" : "auth_token", json_string(settings->password));
  return object;
}

static enum status write_connect(const struct driver_run *run, struct nats_plan *plan, struct err *err) {
  json_t *object = connect_object(run);
  char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
  json_decref(object);
  if (!text) return err_set(err, STATUS_USAGE, "the user or the password is no UTF-8 text");
  int len = snprintf(plan->connect, sizeof plan->connect, "CONNECT %s\r\n", text);
  free(text);
  if (len > 0 && (size_t)len < sizeof plan->connect) {
    plan->connect_len = (size_t)len;
    return STATUS_OK;
  }
  return err_set(err, STATUS_USAGE, "user and password together are too long");
}

static uint32_t payload_limit(const struct driver_settings *settings) {
  uint64_t limit = (uint64_t)settings->payload_bytes + TEXT_MIN_LIMIT;
  return limit > INT32_MAX ? INT32_MAX : (uint32_t)limit;
}

/* Everything that needs no server. */
enum status nats_make_plan(struct driver_run *run, struct err *err) {
  struct driver_settings *settings = &run->settings;
  bool tls = strcmp(settings->url.scheme, "nats+tls") == 0;
  if (settings->url.port == 0) settings->url.port = run->driver->default_port;
  if (settings->user && !settings->password) {
    return err_set(
        err, STATUS_USAGE, "--user %.60s: NATS takes no user without a password: set MUSTER_PASSWORD", settings->user);
  }
  struct nats_plan *plan = arena_alloc(&run->arena, sizeof *plan);
  if (!plan) return err_set(err, STATUS_MEMORY, "out of memory for the plan of the clients");
  run->population = plan;
  snprintf(plan->prefix, sizeof plan->prefix, "muster.%016" PRIx64, settings->run_id);
  snprintf(plan->stream, sizeof plan->stream, "muster-%016" PRIx64, settings->run_id);
  plan->payload_limit = payload_limit(settings);
  enum status status = read_settings(run, plan, err);
  if (status == STATUS_OK) status = target_open(run, tls, err);
  if (status == STATUS_OK) status = write_connect(run, plan, err);
  return status;
}

/* --- the dialogue of the set-up --- */

static void log_in(struct dialogue *dialogue) {
  struct nats_plan *plan = dialogue->run->population;
  stream_write(&dialogue->stream, plan->connect, plan->connect_len);
  stream_write(&dialogue->stream, NATS_PING_TEXT, sizeof NATS_PING_TEXT - 1);
}

static enum status check_info(struct driver_run *run, const struct nats_info *info, struct err *err) {
  const char *target = run->settings.target;
  struct nats_plan *plan = run->population;
  snprintf(run->server_version, sizeof run->server_version, "nats-server %s", info->version);
  plan->max_payload = info->max_payload;
  if (info->tls_required && !run->tls) {
    return err_set(
        err, STATUS_UNREACHABLE, "%s demands TLS: write %s+tls:// for its scheme", target, run->settings.url.scheme);
  }
  if (run->tls && !info->tls_required && !info->tls_available) {
    return err_set(err, STATUS_UNREACHABLE, "%s does not offer TLS", target);
  }
  if (info->max_payload > 0 && run->settings.payload_bytes + plan->headers.len > info->max_payload) {
    return err_set(err, STATUS_USAGE, "--payload-bytes %u: the server takes at most %" PRIu64 " with headers",
        run->settings.payload_bytes, info->max_payload);
  }
  if (plan->headers.len > 0 && !info->headers) return err_set(err, STATUS_USAGE, "%s knows no headers", target);
  if (is_jetstream(run) && !info->jetstream) {
    return err_set(err, STATUS_USAGE, "%s has no JetStream: start it with -js, or leave ack=jetstream out", target);
  }
  return STATUS_OK;
}

/* False when the dialogue is over. */
static bool on_setup_info(struct dialogue *dialogue, struct view text, bool is_last) {
  struct driver_run *run = dialogue->run;
  struct nats_info info;
  struct err err = {0};
  if (run->server_version[0]) return true; /* news of a cluster */
  if (!nats_read_info(text, &info)) {
    dialogue_fail(dialogue, STATUS_UNREACHABLE, "%s is no NATS server", run->settings.target);
    return false;
  }
  enum status status = check_info(run, &info, &err);
  if (status == STATUS_OK && run->tls) {
    if (!is_last) status = err_set(&err, STATUS_PROTOCOL, "%s goes on in the clear", run->settings.target);
    if (is_last) status = stream_start_tls(&dialogue->stream, run->tls, run->server_name, &err);
    dialogue->ready = log_in;
  } else if (status == STATUS_OK) {
    log_in(dialogue);
  }
  if (status != STATUS_OK) dialogue_fail(dialogue, status, "%s", err.text);
  return status == STATUS_OK;
}

static void on_setup_error(struct dialogue *dialogue, struct view text) {
  const char *hint = "";
  if (nats_error_of(text) == NATS_ERROR_AUTHORIZATION) {
    hint = ": MUSTER_PASSWORD is the password of --user, or a token where there is no user";
  }
  dialogue_fail(dialogue, STATUS_UNREACHABLE, "%s refuses us: %.*s%s", dialogue->run->settings.target,
      (int)(text.len < 120 ? text.len : 120), (const char *)text.data, hint);
}

/* An answer of JetStream's API; the text of an error goes to the caller through the dialogue. */
static void on_setup_answer(struct dialogue *dialogue, const struct nats_message *message) {
  json_t *root = json_loadb((const char *)message->payload.data, message->payload.len, 0, NULL);
  const json_t *error = json_object_get(root, "error");
  const char *description = json_string_value(json_object_get(error, "description"));
  if (nats_status(message->headers) == CODE_NO_RESPONDERS) {
    dialogue_fail(dialogue, STATUS_USAGE, "%s: this account has no JetStream", dialogue->run->settings.target);
  } else if (!root || error) {
    dialogue_fail(dialogue, STATUS_USAGE, "%s refuses to make stream or consumer: %.200s",
        dialogue->run->settings.target, description ? description : "it does not say why");
  } else {
    dialogue_done(dialogue);
  }
  json_decref(root);
}

static size_t setup_received(struct dialogue *dialogue, uint8_t *data, size_t len) {
  size_t used = 0;
  while (used < len && !dialogue->done) {
    struct nats_message message;
    size_t read = nats_read(data + used, len - used, TEXT_MIN_LIMIT, &message);
    used += read;
    switch (message.kind) {
    case NATS_PARTIAL:
      return used;
    case NATS_BAD:
      dialogue_fail(dialogue, STATUS_UNREACHABLE, "%s is no NATS server", dialogue->run->settings.target);
      return len;
    case NATS_INFO:
      if (!on_setup_info(dialogue, message.text, used == len)) return len;
      break;
    case NATS_ERROR:
      on_setup_error(dialogue, message.text);
      break;
    case NATS_PING:
      stream_write(&dialogue->stream, NATS_PONG_TEXT, sizeof NATS_PONG_TEXT - 1);
      break;
    case NATS_PONG:
      dialogue_done(dialogue);
      break;
    case NATS_MSG:
      on_setup_answer(dialogue, &message);
      break;
    default:
      break;
    }
  }
  return used;
}

static enum status ask_api(struct dialogue *dialogue, const char *subject, const char *body, struct err *err) {
  struct nats_plan *plan = dialogue->run->population;
  char inbox[SUBJECT_MAX];
  uint8_t command[BODY_MAX + SUBJECT_MAX * 4 + 128];
  snprintf(inbox, sizeof inbox, "_INBOX.%s.setup", plan->prefix);
  struct nats_publish publish = {.subject = view_str(subject), .reply = view_str(inbox), .payload_len = strlen(body)};
  uint8_t *at = nats_write_subscribe(command, view_str(inbox), (struct view){0}, SID_INBOX);
  at = nats_write_publish(at, &publish);
  memcpy(at, body, publish.payload_len);
  at = nats_end(at + publish.payload_len);
  dialogue_again(dialogue);
  if (!stream_write(&dialogue->stream, command, (size_t)(at - command))) {
    return err_set(err, STATUS_IO, "%s: the connection is gone", dialogue->run->settings.target);
  }
  return dialogue_wait(dialogue, err);
}

static enum status create_stream(struct dialogue *dialogue, struct err *err) {
  struct nats_plan *plan = dialogue->run->population;
  char subject[SUBJECT_MAX], body[BODY_MAX];
  snprintf(subject, sizeof subject, "$JS.API.STREAM.CREATE.%s", plan->stream);
  snprintf(body, sizeof body,
      "{\"name\":\"%s\",\"subjects\":[\"%s.>\"],\"retention\":\"limits\",\"storage\":\"%s\",\"num_replicas\":1}",
      plan->stream, plan->prefix, plan->in_memory ? "memory" : "file");
  enum status status = ask_api(dialogue, subject, body, err);
  plan->stream_exists = status == STATUS_OK;
  return status;
}

static enum status create_consumer(struct dialogue *dialogue, uint32_t queue, struct err *err) {
  const struct nats_plan *plan = dialogue->run->population;
  char subject[SUBJECT_MAX + 16], body[BODY_MAX], to[SUBJECT_MAX], from[SUBJECT_MAX];
  struct view pushed = push_subject(plan, queue, to), taken = queue_subject(plan, queue, from);
  snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DURABLE.CREATE.%s.queue-%" PRIu32, plan->stream, queue);
  snprintf(body, sizeof body,
      "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"queue-%" PRIu32
      "\",\"deliver_subject\":\"%.*s\",\"deliver_group\":\"" QUEUE_GROUP
      "\",\"filter_subject\":\"%.*s\",\"deliver_policy\":\"all\",\"ack_policy\":\"explicit\",\"ack_wait\":%" PRIu64
      ",\"replay_policy\":\"instant\"}}",
      plan->stream, queue, (int)pushed.len, (const char *)pushed.data, (int)taken.len, (const char *)taken.data,
      (uint64_t)(ACK_WAIT_S * NS_PER_SEC));
  return ask_api(dialogue, subject, body, err);
}

static enum status create_consumers(struct dialogue *dialogue, struct err *err) {
  enum status status = STATUS_OK;
  for (uint32_t queue = 0; queue < dialogue->run->settings.queues && status == STATUS_OK; queue++)
    status = create_consumer(dialogue, queue, err);
  return status;
}

static enum status open_dialogue(
    struct dialogue *dialogue, struct driver_run *run, uint64_t deadline_ns, struct err *err) {
  run->server_version[0] = '\0';
  *dialogue = (struct dialogue){.received = setup_received};
  enum status status = dialogue_open(dialogue, run, deadline_ns, err);
  if (status != STATUS_OK) return status;
  status = dialogue_wait(dialogue, err);
  if (status != STATUS_OK) dialogue_close(dialogue);
  return status;
}

static enum status talk_to_server(struct driver_run *run, struct err *err) {
  struct dialogue dialogue;
  enum status status = open_dialogue(&dialogue, run, run->settings.deadline_ns, err);
  if (status != STATUS_OK) return status;
  if (is_jetstream(run)) status = create_stream(&dialogue, err);
  if (status == STATUS_OK && is_jetstream(run)) status = create_consumers(&dialogue, err);
  dialogue_close(&dialogue);
  return status;
}

/* Takes the stream away again, and its consumers with it; a server that is gone keeps them. */
static void delete_stream(struct driver_run *run) {
  struct nats_plan *plan = run->population;
  struct dialogue dialogue;
  char subject[SUBJECT_MAX];
  run->settings.interrupted = NULL;
  snprintf(subject, sizeof subject, "$JS.API.STREAM.DELETE.%s", plan->stream);
  if (open_dialogue(&dialogue, run, clock_now_ns() + RELEASE_NS, NULL) != STATUS_OK) return;
  ask_api(&dialogue, subject, "", NULL);
  dialogue_close(&dialogue);
}

static void nats_release(struct driver_run *run) {
  struct nats_plan *plan = run->population;
  if (plan && plan->stream_exists) delete_stream(run);
  target_release(run);
}

static enum status nats_prepare(struct driver_run *run, struct err *err) {
  enum status status = nats_make_plan(run, err);
  if (status == STATUS_OK) status = talk_to_server(run, err);
  if (status != STATUS_OK) nats_release(run);
  return status;
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

static bool write_subscribe(struct client *client, struct view subject, struct view queue_group, enum sid sid) {
  uint8_t line[NATS_SUBJECT_MAX + 32];
  uint8_t *end = nats_write_subscribe(line, subject, queue_group, sid);
  return write_raw(client, line, (size_t)(end - line));
}

/* What a client hears that shares no queue. */
static struct view subscription_of(const struct client *client, char out[SUBJECT_MAX]) {
  const struct nats_plan *plan = plan_of(client);
  const struct driver_settings *settings = &client->run->settings;
  if (settings->broadcast) return whole_subject(plan, ".all", out);
  if (settings->room_members > 0) return whole_subject(plan, ".room", out);
  if (settings->groups == 0) return own_subject(plan, client->index, out);
  if (settings->shared_groups) return whole_subject(plan, ".group.*", out);
  return group_subject(plan, client->index % settings->groups, out);
}

static bool subscribe_to_messages(struct client *client) {
  const struct driver_settings *settings = &client->run->settings;
  char subject[SUBJECT_MAX];
  uint32_t queue;
  if (settings->queues == 0) {
    return write_subscribe(client, subscription_of(client, subject), (struct view){0}, SID_MESSAGES);
  }
  if (!driver_queue_of(settings, client->index, &queue)) return true;
  const struct nats_plan *plan = plan_of(client);
  struct view heard =
      has_consumers(client->run) ? push_subject(plan, queue, subject) : queue_subject(plan, queue, subject);
  return write_subscribe(client, heard, view_str(QUEUE_GROUP), SID_MESSAGES);
}

static bool write_subscriptions(struct client *client) {
  char subject[SUBJECT_MAX];
  uint32_t queue;
  if (!subscribe_to_messages(client)) return false;
  bool publishes = !driver_queue_of(&client->run->settings, client->index, &queue);
  if (!is_jetstream(client->run) || !publishes) return true;
  return write_subscribe(client, inbox_subject(client, ".*", subject), (struct view){0}, SID_INBOX);
}

static bool start_login(struct client *client) {
  const struct nats_plan *plan = plan_of(client);
  state_of(client)->step = STEP_LOGIN;
  bool written = write_raw(client, plan->connect, plan->connect_len) && write_subscriptions(client) &&
                 write_ping(client, TOKEN_KEEP_ALIVE);
  return written || fail(client, CAUSE_RESET);
}

static struct view destination_of(const struct client *client, const struct publish *publish, char out[SUBJECT_MAX]) {
  const struct nats_plan *plan = plan_of(client);
  switch (publish->to) {
  case PUBLISH_TO_ALL:
    return whole_subject(plan, ".all", out);
  case PUBLISH_TO_ROOM:
    return whole_subject(plan, ".room", out);
  case PUBLISH_TO_GROUP:
    return group_subject(plan, publish->recipient, out);
  case PUBLISH_TO_QUEUE:
    return queue_subject(plan, publish->recipient, out);
  case PUBLISH_TO_SELF:
    return own_subject(plan, client->index, out);
  default:
    return own_subject(plan, publish->recipient, out);
  }
}

static enum publish_result nats_publish(struct client *client, const struct publish *publish) {
  char subject[SUBJECT_MAX], inbox[SUBJECT_MAX], token[SUBJECT_MAX];
  struct nats_client *state = state_of(client);
  const bool flush = is_flush(client);
  if (state->step != STEP_READY) return PUBLISH_BLOCKED;
  struct nats_publish message = {
      .subject = destination_of(client, publish, subject),
      .headers = plan_of(client)->headers,
      .payload_len = publish->payload.size,
  };
  if (is_jetstream(client->run)) {
    token[write_subject(token, "", ".", publish->token)] = '\0';
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
  if (state->step != STEP_LOGIN) return true;
  state->step = STEP_READY;
  client->hooks->established(client);
  return true;
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

static bool write_ack(struct client *client, struct view reply) {
  struct nats_publish ack = {.subject = reply, .payload_len = sizeof ACK_TEXT - 1};
  uint8_t *out = stream_reserve(&client->stream, nats_publish_size(&ack));
  if (!out) return false;
  uint8_t *at = nats_write_publish(out, &ack);
  memcpy(at, ACK_TEXT, ack.payload_len);
  at = nats_end(at + ack.payload_len);
  stream_commit(&client->stream, (size_t)(at - out));
  client->run->bytes_sent += (uint64_t)(at - out);
  return true;
}

static bool on_msg(struct client *client, const struct nats_message *message) {
  bool asks = has_consumers(client->run);
  if (state_of(client)->step < STEP_LOGIN) return fail(client, CAUSE_PROTOCOL);
  if (message->sid == SID_INBOX) return on_puback(client, message);
  if (asks && message->reply.len == 0) return fail(client, CAUSE_PROTOCOL);
  client->hooks->delivered(client, message->payload, false);
  return !asks || check_written(client, write_ack(client, message->reply));
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
  case CODE_NO_RESPONDERS:
    return "no responders: no stream takes the subject";
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
                    CAPABILITY_ECHO | CAPABILITY_QUEUE,
    .default_port = 4222,
    .payload_form = PAYLOAD_BINARY,
    .payload_min_bytes = PAYLOAD_BINARY_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct nats_client),
    .options = options,
    .describe = tell_settings,
    .starts_tls = true,
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
