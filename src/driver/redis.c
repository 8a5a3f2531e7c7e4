/* Redis publish/subscribe. Each client subscribes to a channel of its own, or to those of its groups, its room or the
 * broadcast, and publishes on the same connection: RESP3 allows that. In RESP2 a subscriber may do nothing else, so
 * /?resp=2 is there only where senders are no recipients (a star).
 *
 * Replies come in the order of the commands; messages and confirmations of subscriptions are pushed between them. The
 * reply to PUBLISH is the ACK: the number of subscribers to whose buffers the message went, which is counted beside
 * what they observe. A publisher that is subscribed hears itself. */
#include "driver/dialogue.h"
#include "driver/fail.h"
#include "driver/name.h"
#include "driver/plans.h"
#include "driver/query.h"
#include "driver/target.h"
#include "driver/tokens.h"

#include "base/clock.h"
#include "wire/resp.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TICK_NS (30 * NS_PER_SEC)
#define UNANSWERED_MAX 3
#define OUTSTANDING_MAX 32768
#define CHANNEL_MAX 64
#define LOGIN_MAX 1200
#define TEXT_MIN_LIMIT 65536
#define TOKEN_LOGIN UINT32_MAX
#define TOKEN_KEEP_ALIVE (UINT32_MAX - 1)

enum step { STEP_LOGIN, STEP_SUBSCRIBE, STEP_READY };
enum { COUNTED_RECEIVERS };

struct redis_client {
  struct tokens replies; /* what each reply to come answers */
  uint32_t unconfirmed;  /* subscriptions */
  uint8_t step;          /* enum step */
  uint8_t unanswered;    /* keep-alives */
};

static_assert(sizeof(struct client) + sizeof(struct redis_client) <= 256, "an idle client must stay small");

/* What all clients share. */
struct redis_plan {
  char prefix[32]; /* of every channel: "muster.0123456789abcdef" */
  uint8_t login[LOGIN_MAX];
  size_t login_len;
  bool resp2;
  uint32_t bulk_max;
};

static struct redis_client *state_of(struct client *client) {
  return client_state(client);
}

static const struct redis_plan *plan_of(const struct client *client) {
  return client->run->population;
}

/* --- channels --- */

static struct view channel(const struct redis_plan *plan, const char *kind, uint32_t number, char out[CHANNEL_MAX]) {
  size_t at = name_text(out, name_text(out, 0, view_str(plan->prefix)), view_str(kind));
  return view_of(out, name_number(out, at, number));
}

static struct view destination_of(const struct client *client, const struct publish *publish, char out[CHANNEL_MAX]) {
  const struct redis_plan *plan = plan_of(client);
  switch (publish->to) {
  case PUBLISH_TO_ALL:
    return channel(plan, ".all.", 0, out);
  case PUBLISH_TO_ROOM:
    return channel(plan, ".room.", 0, out);
  case PUBLISH_TO_GROUP:
    return channel(plan, ".group.", publish->recipient, out);
  case PUBLISH_TO_SELF:
    return channel(plan, ".client.", client->index, out);
  default:
    return channel(plan, ".client.", publish->recipient, out);
  }
}

/* How many channels a client subscribes to, and the i-th of them. */
static uint32_t channels_of(const struct client *client) {
  const struct driver_settings *settings = &client->run->settings;
  if (plan_of(client)->resp2 && client->index < settings->pure_senders) return 0;
  return settings->shared_groups ? settings->groups : 1;
}

static struct view channel_of(const struct client *client, uint32_t i, char out[CHANNEL_MAX]) {
  const struct redis_plan *plan = plan_of(client);
  const struct driver_settings *settings = &client->run->settings;
  if (settings->broadcast) return channel(plan, ".all.", 0, out);
  if (settings->room_members > 0) return channel(plan, ".room.", 0, out);
  if (settings->groups == 0) return channel(plan, ".client.", client->index, out);
  return channel(plan, ".group.", settings->shared_groups ? i : client->index % settings->groups, out);
}

/* --- set-up --- */

enum { SETTING_RESP, SETTINGS };

static enum status read_settings(struct driver_run *run, struct redis_plan *plan, struct err *err) {
  static const struct query_choice choices[] = {{"resp", "3|2"}, {NULL, NULL}};
  unsigned chosen[SETTINGS] = {0};
  enum status status = query_read(&run->settings.url, choices, chosen, err);
  if (status != STATUS_OK) return status;
  plan->resp2 = chosen[SETTING_RESP];
  run->title = plan->resp2 ? "Redis publish/subscribe (RESP2)" : "Redis publish/subscribe (RESP3)";
  if (!plan->resp2 || run->settings.pure_senders > 0) return STATUS_OK;
  return err_set(err, STATUS_USAGE,
      "resp=2: a RESP2 connection that is subscribed cannot publish, and here senders are recipients too: leave resp=2 "
      "out, or run a star");
}

/* HELLO 3 [AUTH user password], or for RESP2 AUTH [user] password, or PING where there is nothing to say. */
static enum status write_login(const struct driver_settings *settings, struct redis_plan *plan, struct err *err) {
  struct view argument[5];
  uint32_t count = 0;
  if (!plan->resp2) {
    argument[count++] = view_str("HELLO");
    argument[count++] = view_str("3");
  }
  if (settings->password) {
    argument[count++] = view_str("AUTH");
    if (settings->user || !plan->resp2) argument[count++] = view_str(settings->user ? settings->user : "default");
    argument[count++] = view_str(settings->password);
  }
  if (count == 0) argument[count++] = view_str("PING");
  size_t size = RESP_HEAD_MAX;
  for (uint32_t i = 0; i < count; i++)
    size += resp_bulk_size(argument[i].len);
  if (size > sizeof plan->login) return err_set(err, STATUS_USAGE, "user and password together are too long");
  uint8_t *at = resp_write_array(plan->login, count);
  for (uint32_t i = 0; i < count; i++)
    at = resp_write_bulk(at, argument[i]);
  plan->login_len = (size_t)(at - plan->login);
  return STATUS_OK;
}

/* Everything that needs no server. */
enum status redis_make_plan(struct driver_run *run, struct err *err) {
  struct driver_settings *settings = &run->settings;
  uint64_t bulk_max = (uint64_t)settings->payload_bytes + TEXT_MIN_LIMIT;
  if (settings->url.port == 0) settings->url.port = run->driver->default_port;
  struct redis_plan *plan = arena_alloc(&run->arena, sizeof *plan);
  if (!plan) return err_set(err, STATUS_MEMORY, "out of memory for the plan of the clients");
  run->population = plan;
  snprintf(plan->prefix, sizeof plan->prefix, "muster.%016" PRIx64, settings->run_id);
  plan->bulk_max = bulk_max > INT32_MAX ? INT32_MAX : (uint32_t)bulk_max;
  enum status status = read_settings(run, plan, err);
  if (status == STATUS_OK) status = target_open(run, strcmp(settings->url.scheme, "rediss") == 0, err);
  if (status == STATUS_OK) status = write_login(settings, plan, err);
  return status;
}

static void on_setup_error(struct dialogue *dialogue, struct view text) {
  const char *hint = "";
  enum resp_error error = resp_error_of(text);
  if (error == RESP_ERROR_NOAUTH || error == RESP_ERROR_WRONGPASS) {
    hint = ": MUSTER_PASSWORD is the password of --user, or of the default user";
  } else if (error == RESP_ERROR_NOPROTO) {
    hint = ": it knows no RESP3, try /?resp=2 with a star";
  }
  dialogue_fail(dialogue, STATUS_UNREACHABLE, "%s refuses us: %.*s%s", dialogue->run->settings.target,
      (int)(text.len < 120 ? text.len : 120), (const char *)text.data, hint);
}

/* HELLO's answer is a map with the server's name and version. */
static void note_version(struct driver_run *run, struct view rest, int64_t members) {
  struct resp_value key, value;
  for (int64_t i = 0; i + 1 < members && resp_next(&rest, &key); i += 2) {
    if (key.type != RESP_STRING || !view_is(key.text, "version")) {
      resp_skip(&rest);
    } else if (resp_next(&rest, &value) && value.type == RESP_STRING) {
      int len = (int)(value.text.len < 40 ? value.text.len : 40);
      snprintf(run->server_version, sizeof run->server_version, "redis %.*s", len, (const char *)value.text.data);
    }
  }
}

static size_t setup_received(struct dialogue *dialogue, uint8_t *data, size_t len) {
  struct resp_value value;
  size_t size;
  enum resp_result result = resp_measure(data, len, TEXT_MIN_LIMIT, &size);
  if (result == RESP_PARTIAL) return 0;
  struct view rest = view_of(data, size);
  if (result == RESP_BAD || !resp_next(&rest, &value)) {
    dialogue_fail(dialogue, STATUS_UNREACHABLE, "%s is no Redis server", dialogue->run->settings.target);
    return len;
  }
  if (value.type == RESP_ERROR) {
    on_setup_error(dialogue, value.text);
    return size;
  }
  if (value.type == RESP_MAP) note_version(dialogue->run, rest, value.number);
  dialogue_done(dialogue);
  return size;
}

static enum status talk_to_server(struct driver_run *run, struct err *err) {
  const struct redis_plan *plan = run->population;
  struct dialogue dialogue = {.received = setup_received};
  enum status status = dialogue_open(&dialogue, run, run->settings.deadline_ns, err);
  if (status != STATUS_OK) return status;
  stream_write(&dialogue.stream, plan->login, plan->login_len);
  status = dialogue_wait(&dialogue, err);
  dialogue_close(&dialogue);
  return status;
}

static enum status redis_prepare(struct driver_run *run, struct err *err) {
  enum status status = redis_make_plan(run, err);
  if (status == STATUS_OK) status = talk_to_server(run, err);
  if (status != STATUS_OK) target_release(run);
  return status;
}

/* --- writing --- */

static bool commit(struct client *client, const uint8_t *from, const uint8_t *to) {
  stream_commit(&client->stream, (size_t)(to - from));
  client->run->bytes_sent += (uint64_t)(to - from);
  return true;
}

static bool write_raw(struct client *client, const void *data, size_t len, uint32_t token) {
  if (!tokens_push(&state_of(client)->replies, token)) return false;
  if (!stream_write(&client->stream, data, len)) return false;
  client->run->bytes_sent += len;
  return true;
}

/* Subscriptions are confirmed one by one, by pushes and not by replies. */
static bool write_subscribe(struct client *client, uint32_t count) {
  char name[CHANNEL_MAX];
  size_t size = RESP_HEAD_MAX + resp_bulk_size(9) + (size_t)count * resp_bulk_size(CHANNEL_MAX);
  uint8_t *out = stream_reserve(&client->stream, size);
  if (!out) return false;
  uint8_t *at = resp_write_bulk(resp_write_array(out, count + 1), view_str("SUBSCRIBE"));
  for (uint32_t i = 0; i < count; i++)
    at = resp_write_bulk(at, channel_of(client, i, name));
  state_of(client)->unconfirmed = count;
  return commit(client, out, at);
}

static bool establish(struct client *client) {
  state_of(client)->step = STEP_READY;
  client->hooks->established(client);
  return true;
}

static bool start_subscriptions(struct client *client) {
  uint32_t count = channels_of(client);
  if (count == 0) return establish(client);
  state_of(client)->step = STEP_SUBSCRIBE;
  return write_subscribe(client, count) || fail(client, CAUSE_RESET);
}

static enum publish_result redis_publish(struct client *client, const struct publish *publish) {
  char name[CHANNEL_MAX];
  struct redis_client *state = state_of(client);
  if (state->step != STEP_READY) return PUBLISH_BLOCKED;
  struct view to = destination_of(client, publish, name);
  uint32_t size = publish->payload.size;
  uint8_t *out = stream_reserve(
      &client->stream, RESP_HEAD_MAX + resp_bulk_size(7) + resp_bulk_size(to.len) + resp_bulk_size(size));
  if (!out || !tokens_push(&state->replies, publish->token)) return PUBLISH_BLOCKED;
  uint8_t *at = resp_write_bulk(resp_write_array(out, 3), view_str("PUBLISH"));
  at = resp_write_bulk_head(resp_write_bulk(at, to), size);
  payload_write(PAYLOAD_BINARY, at, &publish->payload);
  commit(client, out, resp_end(at + size));
  return PUBLISH_WRITTEN;
}

/* --- reading: each handler returns false once it has failed the client --- */

static bool on_confirmed(struct client *client) {
  struct redis_client *state = state_of(client);
  if (state->step != STEP_SUBSCRIBE || state->unconfirmed == 0) return fail(client, CAUSE_PROTOCOL);
  return --state->unconfirmed > 0 || establish(client);
}

/* "message" channel content; "subscribe" channel count; other pushes are news that nobody asked for. */
static bool on_push(struct client *client, struct view rest, int64_t members) {
  struct resp_value kind, value;
  if (members < 1 || !resp_next(&rest, &kind) || kind.type != RESP_STRING) return fail(client, CAUSE_PROTOCOL);
  if (view_is(kind.text, "subscribe")) return on_confirmed(client);
  if (!view_is(kind.text, "message")) return true;
  if (members != 3) return fail(client, CAUSE_PROTOCOL);
  resp_skip(&rest);
  if (!resp_next(&rest, &value) || value.type != RESP_STRING) return fail(client, CAUSE_PROTOCOL);
  client->hooks->delivered(client, value.text, false);
  return true;
}

static bool on_published(struct client *client, const struct resp_value *reply, uint32_t token) {
  if (reply->type == RESP_ERROR) {
    client->hooks->acked(client, token, (int32_t)resp_error_of(reply->text));
    return true;
  }
  if (reply->type != RESP_INTEGER || reply->number < 0) return fail(client, CAUSE_PROTOCOL);
  if (token & 1) client->run->counted[COUNTED_RECEIVERS] += (uint64_t)reply->number;
  client->hooks->acked(client, token, 0);
  return true;
}

static bool on_reply(struct client *client, const struct resp_value *reply) {
  struct redis_client *state = state_of(client);
  uint32_t token;
  if (!tokens_pop(&state->replies, &token)) {
    /* Unasked errors come before the end: too many clients, a subscription that is not allowed. */
    return fail(client, reply->type == RESP_ERROR ? (int32_t)resp_error_of(reply->text) : CAUSE_PROTOCOL);
  }
  if (token < TOKEN_KEEP_ALIVE) return on_published(client, reply, token);
  if (reply->type == RESP_ERROR) return fail(client, (int32_t)resp_error_of(reply->text));
  if (token == TOKEN_LOGIN) return start_subscriptions(client);
  state->unanswered = 0;
  return true;
}

/* In RESP2 what is pushed, and the answer to a subscriber's PING, are arrays like others. */
static bool is_pushed(const struct client *client, const struct resp_value *value, struct view rest) {
  struct resp_value kind;
  if (value->type == RESP_PUSH) return true;
  if (!plan_of(client)->resp2 || value->type != RESP_ARRAY) return false;
  return resp_next(&rest, &kind) && kind.type == RESP_STRING && !view_is(kind.text, "pong");
}

static size_t redis_received(struct client *client, uint8_t *data, size_t len) {
  uint32_t bulk_max = plan_of(client)->bulk_max;
  size_t used = 0;
  while (used < len) {
    struct resp_value value;
    size_t size;
    enum resp_result result = resp_measure(data + used, len - used, bulk_max, &size);
    if (result == RESP_PARTIAL) break;
    struct view rest = view_of(data + used, size);
    if (result == RESP_BAD || !resp_next(&rest, &value)) {
      fail(client, CAUSE_PROTOCOL);
      return 0;
    }
    used += size;
    bool alive = is_pushed(client, &value, rest) ? on_push(client, rest, value.number) : on_reply(client, &value);
    if (!alive) return 0;
  }
  return used;
}

/* --- life --- */

static void redis_opened(struct client *client) {
  const struct redis_plan *plan = plan_of(client);
  if (!write_raw(client, plan->login, plan->login_len, TOKEN_LOGIN)) fail(client, CAUSE_RESET);
}

static void redis_tick(struct client *client, uint64_t now_ns) {
  static const char ping[] = "*1\r\n$4\r\nPING\r\n";
  struct redis_client *state = state_of(client);
  (void)now_ns;
  if (state->step != STEP_READY) return;
  if (state->unanswered >= UNANSWERED_MAX) {
    fail(client, CAUSE_KEEP_ALIVE);
    return;
  }
  state->unanswered++;
  if (!write_raw(client, ping, sizeof ping - 1, TOKEN_KEEP_ALIVE)) fail(client, CAUSE_RESET);
}

/* The end of the connection is the good-bye. */
static void redis_closing(struct client *client) {
  (void)client;
}

static void redis_released(struct client *client) {
  tokens_free(&state_of(client)->replies);
}

const struct driver driver_redis = {
    .name = "redis",
    .schemes = "redis,rediss",
    .title = "Redis publish/subscribe (RESP3; RESP2 with /?resp=2)",
    .ack_meaning = "reply to PUBLISH: the message went into the buffers of so many subscribers",
    .delivery = "pushed to whoever is subscribed, the publisher too; at most once; slow subscribers are cut off",
    .capabilities = CAPABILITY_ACKS | CAPABILITY_PRIVATE | CAPABILITY_GROUP | CAPABILITY_ROOM | CAPABILITY_BROADCAST |
                    CAPABILITY_ECHO | CAPABILITY_GROUP_ECHO,
    .default_port = 6379,
    .payload_form = PAYLOAD_BINARY,
    .payload_min_bytes = PAYLOAD_BINARY_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct redis_client),
    .counters = {"receivers"},
    .prepare = redis_prepare,
    .release = target_release,
    .opened = redis_opened,
    .received = redis_received,
    .publish = redis_publish,
    .tick = redis_tick,
    .closing = redis_closing,
    .released = redis_released,
    .code_text = resp_error_text,
};
