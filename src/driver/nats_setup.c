/* The set-up of the NATS driver: settings, the login that all clients share, and with JetStream the stream and its
 * consumers, which go again with the run. */
#include "driver/dialogue.h"
#include "driver/nats_internal.h"
#include "driver/plans.h"
#include "driver/query.h"
#include "driver/target.h"

#include "base/clock.h"
#include "wire/nats.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX 1024 /* of a request to the API */
#define RELEASE_NS (2 * NS_PER_SEC)
#define ACK_WAIT_S 5 /* until JetStream sends again what was not acknowledged */
#define BATCH 100
#define BATCH_TEXT "100"
#define BATCH_MAX 10000
#define MAX_WAITING_SPARE 16
#define MODE_MAX 256

/* --- settings --- */

enum {
  SETTING_ACK,
  SETTING_HEADERS,
  SETTING_STORAGE,
  SETTING_CONSUME,
  SETTING_MAX_ACK_PENDING,
  SETTING_BATCH,
  SETTINGS
};

static const struct query_choice choices[] = {{"ack", "none|flush|jetstream"}, {"headers", "off|on"},
    {"storage", "file|memory"}, {"consume", "push|pull"}, {"max_ack_pending", NULL}, {"batch", NULL}, {NULL, NULL}};

/* Which of them have a meaning in such a run. */
static size_t settings_told(const struct driver_settings *settings, const unsigned chosen[SETTINGS]) {
  if (chosen[SETTING_ACK] != ACK_JETSTREAM) return SETTING_STORAGE;
  if (settings->queues == 0 && !settings->backlog) return SETTING_CONSUME;
  return chosen[SETTING_CONSUME] == 0 ? SETTING_BATCH : SETTINGS;
}

void nats_tell_settings(const struct driver_settings *settings, struct driver_facts *out) {
  char texts[SETTINGS][QUERY_TEXT_MAX] = {[SETTING_MAX_ACK_PENDING] = "server's", [SETTING_BATCH] = BATCH_TEXT};
  unsigned chosen[SETTINGS] = {0};
  if (query_read(&settings->url, choices, chosen, texts, NULL) != STATUS_OK) return;
  if (settings->backlog) chosen[SETTING_CONSUME] = 1;
  query_tell(choices, chosen, texts, settings_told(settings, chosen), &out->target);
  out->key = out->target;
}

/* Only a stream keeps anything for who is offline. */
static unsigned missing_of(enum nats_ack ack) {
  unsigned missing = ack == ACK_NONE ? CAPABILITY_ACKS : 0;
  return ack == ACK_JETSTREAM ? missing : missing | CAPABILITY_BACKLOG;
}

unsigned nats_without(const struct driver_settings *settings) {
  char texts[SETTINGS][QUERY_TEXT_MAX];
  unsigned chosen[SETTINGS] = {0};
  query_read(&settings->url, choices, chosen, texts, NULL);
  return missing_of((enum nats_ack)chosen[SETTING_ACK]);
}

static void describe_consumers(struct driver_run *run) {
  struct nats_plan *plan = run->population;
  char pending[40] = "";
  if (plan->max_ack_pending > 0) {
    snprintf(pending, sizeof pending, "; max_ack_pending %" PRIu32, plan->max_ack_pending);
  }
  snprintf(plan->delivery, sizeof plan->delivery,
      "durable JetStream consumer of %s: at least once, again after %d s without ACK%s",
      run->settings.backlog ? "each receiver, pulled"
      : plan->pulls         ? "a queue, pulled"
                            : "a queue, that pushes",
      ACK_WAIT_S, pending);
  run->delivery = plan->delivery;
}

static void describe(struct driver_run *run) {
  static const char *const meanings[] = {
      [ACK_NONE] = "none",
      [ACK_FLUSH] = "PONG to a PING behind the publish: the server has processed it",
      [ACK_JETSTREAM] = "PubAck: the JetStream stream has stored it; the server decides when it syncs",
  };
  const struct nats_plan *plan = run->population;
  run->ack_meaning = meanings[plan->ack];
  run->capabilities &= ~missing_of(plan->ack);
  run->title = plan->ack == ACK_JETSTREAM ? "NATS, published into a JetStream stream" : "NATS core";
  if (nats_has_consumers(run)) {
    describe_consumers(run);
    run->redelivers = true;
    return;
  }
  run->counters = NULL;
  if (run->settings.queues == 0) return;
  run->delivery = "queue group: to one of those who are connected, at most once; slow consumers are cut off";
}

static enum status read_consumers(
    struct driver_run *run, const unsigned chosen[SETTINGS], char texts[SETTINGS][QUERY_TEXT_MAX], struct err *err) {
  struct nats_plan *plan = run->population;
  plan->pulls = chosen[SETTING_CONSUME] == 1 || run->settings.backlog;
  plan->batch = BATCH;
  if (chosen[SETTING_BATCH] && !query_number(texts[SETTING_BATCH], BATCH_MAX, &plan->batch)) {
    return err_set(err, STATUS_USAGE, "--target: batch=%.20s: give a number of messages from 1 to %d",
        texts[SETTING_BATCH], BATCH_MAX);
  }
  if (chosen[SETTING_MAX_ACK_PENDING] &&
      !query_number(texts[SETTING_MAX_ACK_PENDING], INT32_MAX, &plan->max_ack_pending)) {
    return err_set(err, STATUS_USAGE, "--target: max_ack_pending=%.20s: give a number of messages from 1 on",
        texts[SETTING_MAX_ACK_PENDING]);
  }
  bool asked = chosen[SETTING_CONSUME] || chosen[SETTING_BATCH] || chosen[SETTING_MAX_ACK_PENDING];
  if (asked && !nats_has_consumers(run)) {
    return err_set(err, STATUS_USAGE,
        "--target: consume=, batch= and max_ack_pending= are about durable consumers: give ack=jetstream, and run "
        "queue "
        "or backlog");
  }
  if (chosen[SETTING_BATCH] && !plan->pulls) return err_set(err, STATUS_USAGE, "--target: batch= needs consume=pull");
  return STATUS_OK;
}

static enum status read_settings(struct driver_run *run, struct err *err) {
  struct nats_plan *plan = run->population;
  char texts[SETTINGS][QUERY_TEXT_MAX];
  unsigned chosen[SETTINGS] = {0};
  enum status status = query_read(&run->settings.url, choices, chosen, texts, err);
  if (status != STATUS_OK) return status;
  plan->ack = (enum nats_ack)chosen[SETTING_ACK];
  if (chosen[SETTING_HEADERS]) plan->headers = view_str("NATS/1.0\r\nContent-Type: application/octet-stream\r\n\r\n");
  plan->in_memory = chosen[SETTING_STORAGE];
  status = read_consumers(run, chosen, texts, err);
  if (status == STATUS_OK) describe(run);
  return status;
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
  uint64_t limit = (uint64_t)settings->payload_bytes + NATS_TEXT_LIMIT;
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
  enum status status = read_settings(run, err);
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
  if (nats_is_jetstream(run) && !info->jetstream) {
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
  if (nats_status(message->headers) == NATS_NO_RESPONDERS) {
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
    size_t read = nats_read(data + used, len - used, NATS_TEXT_LIMIT, &message);
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
  char inbox[NATS_NAME_BYTES];
  uint8_t command[BODY_MAX + NATS_NAME_BYTES * 4 + 128];
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
  char subject[NATS_NAME_BYTES], body[BODY_MAX];
  snprintf(subject, sizeof subject, "$JS.API.STREAM.CREATE.%s", plan->stream);
  snprintf(body, sizeof body,
      "{\"name\":\"%s\",\"subjects\":[\"%s.>\"],\"retention\":\"limits\",\"storage\":\"%s\",\"num_replicas\":1}",
      plan->stream, plan->prefix, plan->in_memory ? "memory" : "file");
  enum status status = ask_api(dialogue, subject, body, err);
  plan->stream_exists = status == STATUS_OK;
  return status;
}

/* Who pulls may ask all at once: beyond its max_waiting a consumer refuses. */
static void write_mode(const struct driver_run *run, uint32_t number, char *out, size_t size) {
  const struct nats_plan *plan = run->population;
  const struct driver_settings *settings = &run->settings;
  char to[NATS_NAME_BYTES];
  if (plan->pulls) {
    uint32_t pullers = settings->queues > 0 ? (settings->clients - settings->pure_senders) / settings->queues + 1 : 1;
    snprintf(out, size, "\"max_waiting\":%" PRIu32, pullers + MAX_WAITING_SPARE);
    return;
  }
  struct view pushed = nats_push_subject(plan, number, to);
  snprintf(out, size, "\"deliver_subject\":\"%.*s\",\"deliver_group\":\"" NATS_QUEUE_GROUP "\"", (int)pushed.len,
      (const char *)pushed.data);
}

static enum status create_consumer(struct dialogue *dialogue, uint32_t number, struct err *err) {
  const struct driver_run *run = dialogue->run;
  const struct nats_plan *plan = run->population;
  char subject[NATS_NAME_BYTES * 2], body[BODY_MAX], name[NATS_NAME_BYTES], from[NATS_NAME_BYTES], mode[MODE_MAX];
  char pending[40] = "";
  struct view durable = nats_consumer_name(run, number, name);
  struct view taken = name_numbered(from, plan->prefix, run->settings.queues > 0 ? ".queue." : ".client.", number);
  write_mode(run, number, mode, sizeof mode);
  if (plan->max_ack_pending > 0) {
    snprintf(pending, sizeof pending, ",\"max_ack_pending\":%" PRIu32, plan->max_ack_pending);
  }
  snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DURABLE.CREATE.%s.%.*s", plan->stream, (int)durable.len,
      (const char *)durable.data);
  snprintf(body, sizeof body,
      "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"%.*s\",%s,\"filter_subject\":\"%.*s\","
      "\"deliver_policy\":\"all\",\"ack_policy\":\"explicit\",\"ack_wait\":%" PRIu64
      ",\"replay_policy\":\"instant\"%s}}",
      plan->stream, (int)durable.len, (const char *)durable.data, mode, (int)taken.len, (const char *)taken.data,
      (uint64_t)(ACK_WAIT_S * NS_PER_SEC), pending);
  return ask_api(dialogue, subject, body, err);
}

static enum status create_consumers(struct dialogue *dialogue, struct err *err) {
  const struct driver_settings *settings = &dialogue->run->settings;
  bool of_queues = settings->queues > 0;
  uint32_t number = of_queues ? 0 : settings->pure_senders, end = of_queues ? settings->queues : settings->clients;
  enum status status = STATUS_OK;
  for (; number < end && status == STATUS_OK; number++)
    status = create_consumer(dialogue, number, err);
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
  if (nats_is_jetstream(run)) status = create_stream(&dialogue, err);
  if (status == STATUS_OK && nats_has_consumers(run)) status = create_consumers(&dialogue, err);
  dialogue_close(&dialogue);
  return status;
}

/* Takes the stream away again, and its consumers with it; a server that is gone keeps them. */
static void delete_stream(struct driver_run *run) {
  struct nats_plan *plan = run->population;
  struct dialogue dialogue;
  char subject[NATS_NAME_BYTES];
  run->settings.interrupted = NULL;
  snprintf(subject, sizeof subject, "$JS.API.STREAM.DELETE.%s", plan->stream);
  if (open_dialogue(&dialogue, run, clock_now_ns() + RELEASE_NS, NULL) != STATUS_OK) return;
  ask_api(&dialogue, subject, "", NULL);
  dialogue_close(&dialogue);
}

void nats_release(struct driver_run *run) {
  struct nats_plan *plan = run->population;
  if (plan && plan->stream_exists) delete_stream(run);
  target_release(run);
}

enum status nats_prepare(struct driver_run *run, struct err *err) {
  enum status status = nats_make_plan(run, err);
  if (status == STATUS_OK) status = talk_to_server(run, err);
  if (status != STATUS_OK) nats_release(run);
  return status;
}
