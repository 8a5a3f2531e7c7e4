/* Redis publish/subscribe, and streams for queues. Each client subscribes to a channel of its own, or to those of its
 * groups, its room or the broadcast, and publishes on the same connection: RESP3 allows that. In RESP2 a subscriber may
 * do nothing else, so
 * /?resp=2 is there only where senders are no recipients (a star).
 *
 * Replies come in the order of the commands; messages and confirmations of subscriptions are pushed between them. The
 * reply to PUBLISH is the ACK: the number of subscribers to whose buffers the message went, which is counted beside
 * what they observe. A publisher that is subscribed hears itself.
 *
 * A queue is a stream with one consumer group, both made by prepare. Senders add entries, and the entry's id is the
 * ACK. A consumer always has one read outstanding, which waits in the server; what it brings is delivered, acknowledged
 * and the next read sent along. Since the read holds back all other commands of its connection, its own end after
 * block_ms is the sign of life. With claim_ms a consumer also looks, between two reads, for entries that others have
 * read so long ago and not acknowledged (XAUTOCLAIM), from one end of those to the other. */
#include "driver/dialogue.h"
#include "driver/fail.h"
#include "driver/name.h"
#include "driver/plans.h"
#include "driver/query.h"
#include "driver/redelivered.h"
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
#define GROUP "consumers"
#define ENTRY_ID_MAX 41
#define ENTRIES_MAX 100             /* of one read */
#define ENTRIES_BYTES (1024 * 1024) /* of their payloads */
#define BLOCK_MAX_NS (10 * NS_PER_SEC)
#define RELEASE_NS (2 * NS_PER_SEC)
#define TEXT_MIN_LIMIT 65536
#define TOKEN_LOGIN UINT32_MAX
#define TOKEN_KEEP_ALIVE (UINT32_MAX - 1)
#define TOKEN_READ (UINT32_MAX - 2)
#define TOKEN_CLAIM (UINT32_MAX - 3)
#define TOKEN_DONE (UINT32_MAX - 4) /* XACK; all publishes have less */
#define CLAIM_MAX_MS 3600000
#define FROM_THE_START "0-0"

enum step { STEP_LOGIN, STEP_SUBSCRIBE, STEP_READY };
enum { COUNTED_RECEIVERS };
enum { COUNTED_REDELIVERED }; /* of streams */

struct redis_client {
  struct tokens replies; /* what each reply to come answers */
  uint32_t unconfirmed;  /* subscriptions */
  uint64_t claim_ns;     /* when it looks for abandoned entries next */
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
  /* Of streams. */
  uint32_t streams_made;
  uint32_t max_len; /* about how many entries a stream keeps; 0: all */
  uint32_t entries, block_ms;
  uint32_t claim_ms; /* after which an entry without an ACK is another's; 0: never */
  char delivery[128];
};

static bool has_streams(const struct driver_run *run) {
  return run->settings.queues > 0;
}

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
  case PUBLISH_TO_QUEUE:
    return channel(plan, ".queue.", publish->recipient, out);
  case PUBLISH_TO_SELF:
    return channel(plan, ".client.", client->index, out);
  default:
    return channel(plan, ".client.", publish->recipient, out);
  }
}

/* How many channels a client subscribes to, and the i-th of them. */
static uint32_t channels_of(const struct client *client) {
  const struct driver_settings *settings = &client->run->settings;
  if (settings->queues > 0) return 0;
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

enum { SETTING_RESP, SETTING_MAX_LEN, SETTING_CLAIM, SETTINGS };

static void describe(struct driver_run *run, struct redis_plan *plan) {
  static const char *const counters[] = {"redelivered", NULL};
  if (!has_streams(run)) {
    run->title = plan->resp2 ? "Redis publish/subscribe (RESP2)" : "Redis publish/subscribe (RESP3)";
    return;
  }
  run->title = plan->resp2 ? "Redis streams (RESP2)" : "Redis streams (RESP3)";
  run->ack_meaning = "reply to XADD: the entry is in the stream; the server decides when it is on disk";
  run->delivery =
      "consumer group of a stream: to one consumer, XACK behind it; what a lost one had taken stays its own";
  run->counters = NULL;
  if (plan->claim_ms == 0) return;
  run->redelivers = true;
  snprintf(plan->delivery, sizeof plan->delivery,
      "consumer group of a stream: at least once, XACK behind it; claimed by another after %" PRIu32 " ms without one",
      plan->claim_ms);
  run->delivery = plan->delivery;
  run->counters = counters;
}

static enum status read_stream_settings(const struct driver_run *run, const unsigned chosen[SETTINGS],
    char texts[SETTINGS][QUERY_TEXT_MAX], struct err *err) {
  struct redis_plan *plan = run->population;
  const char *max_len = texts[SETTING_MAX_LEN], *claim = texts[SETTING_CLAIM];
  if (chosen[SETTING_MAX_LEN] && !query_number(max_len, UINT32_MAX, &plan->max_len)) {
    return err_set(err, STATUS_USAGE, "--target: maxlen=%.20s: give a number of entries from 1 on", max_len);
  }
  if (chosen[SETTING_CLAIM] && !query_number(claim, CLAIM_MAX_MS, &plan->claim_ms)) {
    return err_set(err, STATUS_USAGE, "--target: claim_ms=%.20s: give milliseconds from 1 to 3600000", claim);
  }
  bool asked = chosen[SETTING_MAX_LEN] || chosen[SETTING_CLAIM];
  if (!asked || has_streams(run)) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "--target: maxlen= and claim_ms= are about streams, which only queue runs have");
}

static const struct query_choice choices[] = {{"resp", "3|2"}, {"maxlen", NULL}, {"claim_ms", NULL}, {NULL, NULL}};

static void tell_settings(const struct driver_settings *settings, struct driver_facts *out) {
  char texts[SETTINGS][QUERY_TEXT_MAX] = {[SETTING_MAX_LEN] = "none", [SETTING_CLAIM] = "none"};
  unsigned chosen[SETTINGS] = {0};
  if (query_read(&settings->url, choices, chosen, texts, NULL) != STATUS_OK) return;
  query_tell(choices, chosen, texts, settings->queues == 0 ? SETTING_MAX_LEN : SETTINGS, &out->target);
  out->key = out->target;
}

static enum status read_settings(struct driver_run *run, struct redis_plan *plan, struct err *err) {
  char texts[SETTINGS][QUERY_TEXT_MAX];
  unsigned chosen[SETTINGS] = {0};
  enum status status = query_read(&run->settings.url, choices, chosen, texts, err);
  if (status == STATUS_OK) status = read_stream_settings(run, chosen, texts, err);
  if (status != STATUS_OK) return status;
  plan->resp2 = chosen[SETTING_RESP];
  describe(run, plan);
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

/* An abandoned entry is another's within one and a half of claim_ms. */
static uint64_t claim_every_ns(const struct redis_plan *plan) {
  return plan->claim_ms * NS_PER_MS / 2;
}

/* A read that waits must come back often enough to count as the sign of life; its answer is held as a whole. */
static void plan_reads(const struct driver_run *run, struct redis_plan *plan) {
  uint64_t block_ns = driver_tick_ns(run) / 2, payload_bytes = run->settings.payload_bytes;
  if (block_ns > BLOCK_MAX_NS) block_ns = BLOCK_MAX_NS;
  if (plan->claim_ms > 0 && block_ns > claim_every_ns(plan)) block_ns = claim_every_ns(plan);
  plan->block_ms = block_ns > NS_PER_MS ? (uint32_t)(block_ns / NS_PER_MS) : 1;
  plan->entries = ENTRIES_MAX;
  if (payload_bytes * ENTRIES_MAX > ENTRIES_BYTES) plan->entries = (uint32_t)(ENTRIES_BYTES / payload_bytes);
  if (plan->entries == 0) plan->entries = 1;
}

/* Everything that needs no server. */
enum status redis_make_plan(struct driver_run *run, struct err *err) {
  struct driver_settings *settings = &run->settings;
  uint64_t bulk_max = (uint64_t)settings->payload_bytes + TEXT_MIN_LIMIT;
  if (settings->url.port == 0) settings->url.port = run->driver->default_port;
  if (settings->user && !settings->password) {
    return err_set(
        err, STATUS_USAGE, "--user %.60s: Redis takes no user without a password: set MUSTER_PASSWORD", settings->user);
  }
  struct redis_plan *plan = arena_alloc(&run->arena, sizeof *plan);
  if (!plan) return err_set(err, STATUS_MEMORY, "out of memory for the plan of the clients");
  run->population = plan;
  snprintf(plan->prefix, sizeof plan->prefix, "muster.%016" PRIx64, settings->run_id);
  plan->bulk_max = bulk_max > INT32_MAX ? INT32_MAX : (uint32_t)bulk_max;
  enum status status = read_settings(run, plan, err);
  plan_reads(run, plan);
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

static enum status log_in(struct dialogue *dialogue, struct driver_run *run, uint64_t deadline_ns, struct err *err) {
  const struct redis_plan *plan = run->population;
  *dialogue = (struct dialogue){.received = setup_received};
  enum status status = dialogue_open(dialogue, run, deadline_ns, err);
  if (status != STATUS_OK) return status;
  stream_write(&dialogue->stream, plan->login, plan->login_len);
  status = dialogue_wait(dialogue, err);
  if (status != STATUS_OK) dialogue_close(dialogue);
  return status;
}

static enum status ask(struct dialogue *dialogue, const struct view *argument, uint32_t count, struct err *err) {
  uint8_t command[512];
  uint8_t *at = resp_write_array(command, count);
  for (uint32_t i = 0; i < count; i++)
    at = resp_write_bulk(at, argument[i]);
  dialogue_again(dialogue);
  if (!stream_write(&dialogue->stream, command, (size_t)(at - command))) {
    return err_set(err, STATUS_IO, "%s: the connection is gone", dialogue->run->settings.target);
  }
  return dialogue_wait(dialogue, err);
}

static enum status make_streams(struct dialogue *dialogue, struct err *err) {
  struct redis_plan *plan = dialogue->run->population;
  enum status status = STATUS_OK;
  while (status == STATUS_OK && plan->streams_made < dialogue->run->settings.queues) {
    char name[CHANNEL_MAX];
    const struct view command[] = {view_str("XGROUP"), view_str("CREATE"),
        channel(plan, ".queue.", plan->streams_made, name), view_str(GROUP), view_str("$"), view_str("MKSTREAM")};
    status = ask(dialogue, command, 6, err);
    plan->streams_made += status == STATUS_OK;
  }
  return status;
}

static enum status talk_to_server(struct driver_run *run, struct err *err) {
  struct dialogue dialogue;
  enum status status = log_in(&dialogue, run, run->settings.deadline_ns, err);
  if (status != STATUS_OK) return status;
  status = make_streams(&dialogue, err);
  dialogue_close(&dialogue);
  return status;
}

/* A server that is gone keeps them. */
static void delete_streams(struct driver_run *run) {
  const struct redis_plan *plan = run->population;
  struct dialogue dialogue;
  run->settings.interrupted = NULL;
  if (log_in(&dialogue, run, clock_now_ns() + RELEASE_NS, NULL) != STATUS_OK) return;
  enum status status = STATUS_OK;
  for (uint32_t i = 0; i < plan->streams_made && status == STATUS_OK; i++) {
    char name[CHANNEL_MAX];
    const struct view command[] = {view_str("DEL"), channel(plan, ".queue.", i, name)};
    status = ask(&dialogue, command, 2, NULL);
  }
  dialogue_close(&dialogue);
}

static void redis_release(struct driver_run *run) {
  const struct redis_plan *plan = run->population;
  if (plan && plan->streams_made > 0) delete_streams(run);
  target_release(run);
}

static enum status redis_prepare(struct driver_run *run, struct err *err) {
  enum status status = redis_make_plan(run, err);
  if (status == STATUS_OK) status = talk_to_server(run, err);
  if (status != STATUS_OK) redis_release(run);
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

static uint8_t *write_number(uint8_t *out, uint32_t number) {
  char digits[10];
  return resp_write_bulk(out, view_of(digits, name_number(digits, 0, number)));
}

/* The first read does not wait: its answer says that this consumer may read. */
static uint8_t *write_read(struct client *client, struct view stream, uint8_t *out) {
  const struct redis_plan *plan = plan_of(client);
  bool waits = state_of(client)->step == STEP_READY;
  uint8_t *at = resp_write_bulk(resp_write_array(out, waits ? 11 : 9), view_str("XREADGROUP"));
  at = resp_write_bulk(resp_write_bulk(at, view_str("GROUP")), view_str(GROUP));
  at = write_number(at, client->index);
  at = write_number(resp_write_bulk(at, view_str("COUNT")), plan->entries);
  if (waits) at = write_number(resp_write_bulk(at, view_str("BLOCK")), plan->block_ms);
  at = resp_write_bulk(resp_write_bulk(at, view_str("STREAMS")), stream);
  return resp_write_bulk(at, view_str(">"));
}

/* cursor: behind the last entry that was looked at. */
static uint8_t *write_claim(struct client *client, struct view stream, struct view cursor, uint8_t *out) {
  const struct redis_plan *plan = plan_of(client);
  uint8_t *at = resp_write_bulk(resp_write_array(out, 8), view_str("XAUTOCLAIM"));
  at = resp_write_bulk(resp_write_bulk(at, stream), view_str(GROUP));
  at = write_number(write_number(at, client->index), plan->claim_ms);
  at = resp_write_bulk(resp_write_bulk(at, cursor), view_str("COUNT"));
  return write_number(at, plan->entries);
}

#define READ_MAX (12 * RESP_HEAD_MAX + CHANNEL_MAX + 128) /* or a claim */

static struct view stream_of(const struct client *client, char out[CHANNEL_MAX]) {
  uint32_t queue = 0;
  driver_queue_of(&client->run->settings, client->index, &queue);
  return channel(plan_of(client), ".queue.", queue, out);
}

static bool claim_is_due(struct client *client) {
  const struct redis_plan *plan = plan_of(client);
  struct redis_client *state = state_of(client);
  if (plan->claim_ms == 0 || state->step != STEP_READY) return false;
  uint64_t now_ns = clock_now_ns();
  if (now_ns < state->claim_ns) return false;
  state->claim_ns = now_ns + claim_every_ns(plan);
  return true;
}

/* What a consumer asks next: more of the entries that it claims (cursor not empty), those that are abandoned, or new
 * ones. out NULL when memory is out. */
static uint8_t *write_next(struct client *client, struct view stream, struct view cursor, uint8_t *out) {
  if (cursor.len == 0 && claim_is_due(client)) cursor = view_str(FROM_THE_START);
  bool claims = cursor.len > 0;
  if (!tokens_push(&state_of(client)->replies, claims ? TOKEN_CLAIM : TOKEN_READ)) return NULL;
  return claims ? write_claim(client, stream, cursor, out) : write_read(client, stream, out);
}

static bool ask_next(struct client *client, struct view cursor) {
  char name[CHANNEL_MAX];
  uint8_t *out = stream_reserve(&client->stream, READ_MAX);
  uint8_t *end = out ? write_next(client, stream_of(client, name), cursor, out) : NULL;
  return end && commit(client, out, end);
}

static bool establish(struct client *client) {
  state_of(client)->step = STEP_READY;
  client->hooks->established(client);
  return true;
}

static bool start_subscriptions(struct client *client) {
  uint32_t count = channels_of(client), queue;
  if (driver_queue_of(&client->run->settings, client->index, &queue)) {
    state_of(client)->step = STEP_SUBSCRIBE;
    return ask_next(client, (struct view){0}) || fail(client, CAUSE_RESET);
  }
  if (count == 0) return establish(client);
  state_of(client)->step = STEP_SUBSCRIBE;
  return write_subscribe(client, count) || fail(client, CAUSE_RESET);
}

/* PUBLISH channel, or XADD stream [MAXLEN ~ n] * p; the content is the last argument. */
static uint8_t *write_publish_head(const struct client *client, struct view to, uint8_t *out) {
  uint32_t max_len = plan_of(client)->max_len;
  if (!has_streams(client->run)) {
    return resp_write_bulk(resp_write_bulk(resp_write_array(out, 3), view_str("PUBLISH")), to);
  }
  uint8_t *at = resp_write_bulk(resp_write_array(out, max_len > 0 ? 8 : 5), view_str("XADD"));
  at = resp_write_bulk(at, to);
  if (max_len > 0) {
    at = resp_write_bulk(resp_write_bulk(at, view_str("MAXLEN")), view_str("~"));
    at = write_number(at, max_len);
  }
  return resp_write_bulk(resp_write_bulk(at, view_str("*")), view_str("p"));
}

#define PUBLISH_HEAD_MAX (8 * RESP_HEAD_MAX + CHANNEL_MAX + 64)

static enum publish_result redis_publish(struct client *client, const struct publish *publish) {
  char name[CHANNEL_MAX];
  struct redis_client *state = state_of(client);
  if (state->step != STEP_READY) return PUBLISH_BLOCKED;
  uint32_t size = publish->payload.size;
  uint8_t *out = stream_reserve(&client->stream, PUBLISH_HEAD_MAX + resp_bulk_size(size));
  if (!out || !tokens_push(&state->replies, publish->token)) return PUBLISH_BLOCKED;
  uint8_t *at = write_publish_head(client, destination_of(client, publish, name), out);
  at = resp_write_bulk_head(at, size);
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
  if (has_streams(client->run)) {
    if (reply->type != RESP_STRING) return fail(client, CAUSE_PROTOCOL);
    client->hooks->acked(client, token, 0);
    return true;
  }
  if (reply->type != RESP_INTEGER || reply->number < 0) return fail(client, CAUSE_PROTOCOL);
  if (token & 1) client->run->counted[COUNTED_RECEIVERS] += (uint64_t)reply->number;
  client->hooks->acked(client, token, 0);
  return true;
}

/* The entries that a read of one stream has brought. */
struct entries {
  struct view rest;
  int64_t left;
};

/* RESP3: {stream: [entry ...]}; RESP2: [[stream, [entry ...]]]. False for anything else. */
static bool entries_begin(const struct resp_value *reply, struct view rest, struct entries *out) {
  struct resp_value part;
  bool is_map = reply->type == RESP_MAP && reply->number == 2;
  if (!is_map && (reply->type != RESP_ARRAY || reply->number != 1)) return false;
  if (!is_map && (!resp_next(&rest, &part) || part.type != RESP_ARRAY || part.number != 2)) return false;
  if (!resp_next(&rest, &part) || part.type != RESP_STRING) return false;
  if (!resp_next(&rest, &part) || part.type != RESP_ARRAY || part.number > ENTRIES_MAX) return false;
  *out = (struct entries){rest, part.number};
  return true;
}

/* [id, [field, content]]; false for anything else. */
static bool entries_next(struct entries *entries, struct view *id, struct view *content) {
  struct resp_value part;
  if (!resp_next(&entries->rest, &part) || part.type != RESP_ARRAY || part.number != 2) return false;
  if (!resp_next(&entries->rest, &part) || part.type != RESP_STRING || part.text.len > ENTRY_ID_MAX) return false;
  *id = part.text;
  if (!resp_next(&entries->rest, &part) || part.type != RESP_ARRAY || part.number != 2) return false;
  resp_skip(&entries->rest);
  if (!resp_next(&entries->rest, &part) || part.type != RESP_STRING) return false;
  *content = part.text;
  entries->left--;
  return true;
}

/* Passes over the nils with which version 6.2 answers a claim of what was trimmed; false at the end. */
static bool entries_are_left(struct entries *entries) {
  struct view rest = entries->rest;
  struct resp_value part;
  for (; entries->left > 0 && resp_next(&rest, &part) && part.type == RESP_NULL; entries->left--)
    entries->rest = rest;
  return entries->left > 0;
}

/* XACK for all of them, of which count are there, and what comes next. */
static bool acknowledge(struct client *client, struct entries entries, uint32_t count, struct view cursor) {
  char name[CHANNEL_MAX];
  struct view stream = stream_of(client, name), id, content;
  uint8_t *out = stream_reserve(&client->stream, READ_MAX * 2 + count * resp_bulk_size(ENTRY_ID_MAX));
  if (!out || !tokens_push(&state_of(client)->replies, TOKEN_DONE)) return false;
  uint8_t *at = resp_write_bulk(resp_write_array(out, 3 + count), view_str("XACK"));
  at = resp_write_bulk(resp_write_bulk(at, stream), view_str(GROUP));
  while (entries_are_left(&entries) && entries_next(&entries, &id, &content))
    at = resp_write_bulk(at, id);
  uint8_t *end = write_next(client, stream, cursor, at);
  return end && commit(client, out, end);
}

/* The entries are delivered, then acknowledged; cursor: where to go on with a claim, or empty. */
static bool take_entries(struct client *client, struct entries entries, bool claimed, struct view cursor) {
  struct entries first = entries;
  struct view id, content;
  uint32_t count = 0;
  for (; entries_are_left(&entries); count++) {
    if (!entries_next(&entries, &id, &content)) return fail(client, CAUSE_PROTOCOL);
    if (claimed) count_redelivered(client, content, COUNTED_REDELIVERED);
    client->hooks->delivered(client, content, false);
  }
  bool written = count > 0 ? acknowledge(client, first, count, cursor) : ask_next(client, cursor);
  return written || fail(client, CAUSE_RESET);
}

/* Nothing came, or entries. */
static bool on_read(struct client *client, const struct resp_value *reply, struct view rest) {
  struct entries entries = {0};
  if (reply->type != RESP_NULL && !entries_begin(reply, rest, &entries)) return fail(client, CAUSE_PROTOCOL);
  if (state_of(client)->step == STEP_SUBSCRIBE) establish(client);
  return take_entries(client, entries, false, (struct view){0});
}

/* [cursor, [entry ...]] and, from version 7 on, the ids of entries that are gone. */
static bool on_claimed(struct client *client, const struct resp_value *reply, struct view rest) {
  struct resp_value cursor, part;
  bool good = reply->type == RESP_ARRAY && reply->number >= 2 && resp_next(&rest, &cursor) &&
              cursor.type == RESP_STRING && cursor.text.len <= ENTRY_ID_MAX && resp_next(&rest, &part) &&
              part.type == RESP_ARRAY && part.number <= ENTRIES_MAX;
  if (!good) return fail(client, CAUSE_PROTOCOL);
  if (view_is(cursor.text, FROM_THE_START)) cursor.text = (struct view){0};
  return take_entries(client, (struct entries){rest, part.number}, true, cursor.text);
}

static bool on_reply(struct client *client, const struct resp_value *reply, struct view rest) {
  struct redis_client *state = state_of(client);
  uint32_t token;
  if (!tokens_pop(&state->replies, &token)) {
    /* Unasked errors come before the end: too many clients, a subscription that is not allowed. */
    return fail(client, reply->type == RESP_ERROR ? (int32_t)resp_error_of(reply->text) : CAUSE_PROTOCOL);
  }
  if (token < TOKEN_DONE) return on_published(client, reply, token);
  if (reply->type == RESP_ERROR) return fail(client, (int32_t)resp_error_of(reply->text));
  if (token == TOKEN_LOGIN) return start_subscriptions(client);
  state->unanswered = 0;
  if (token == TOKEN_CLAIM) return on_claimed(client, reply, rest);
  return token != TOKEN_READ || on_read(client, reply, rest);
}

/* In RESP2 what is pushed to a subscriber, and the answer to its PING, are arrays like others. */
static bool is_pushed(const struct client *client, const struct resp_value *value, struct view rest) {
  struct resp_value kind;
  if (value->type == RESP_PUSH) return true;
  if (!plan_of(client)->resp2 || has_streams(client->run) || value->type != RESP_ARRAY) return false;
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
    bool alive = is_pushed(client, &value, rest) ? on_push(client, rest, value.number) : on_reply(client, &value, rest);
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
  uint32_t queue;
  if (driver_queue_of(&client->run->settings, client->index, &queue)) return;
  if (!write_raw(client, ping, sizeof ping - 1, TOKEN_KEEP_ALIVE)) fail(client, CAUSE_RESET);
}

/* The end of the connection is the good-bye. */
static void redis_closing(struct client *client) {
  (void)client;
}

static void redis_released(struct client *client) {
  tokens_free(&state_of(client)->replies);
}

static const struct driver_option options[] = {
    {"user", NULL}, {"keep-alive", NULL}, DRIVER_TLS_OPTIONS("rediss"), {NULL, NULL}};

const struct driver driver_redis = {
    .name = "redis",
    .schemes = "redis,rediss",
    .title = "Redis publish/subscribe, streams for queues (RESP3; RESP2 with /?resp=2)",
    .ack_meaning = "reply to PUBLISH: the message went into the buffers of so many subscribers",
    .delivery = "pushed to whoever is subscribed, the publisher too; at most once; slow subscribers are cut off",
    .capabilities = CAPABILITY_ACKS | CAPABILITY_PRIVATE | CAPABILITY_GROUP | CAPABILITY_ROOM | CAPABILITY_BROADCAST |
                    CAPABILITY_ECHO | CAPABILITY_GROUP_ECHO | CAPABILITY_QUEUE,
    .default_port = 6379,
    .payload_form = PAYLOAD_BINARY,
    .payload_min_bytes = PAYLOAD_BINARY_MIN,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct redis_client),
    .options = options,
    .describe = tell_settings,
    .counters = {"receivers"},
    .prepare = redis_prepare,
    .release = redis_release,
    .opened = redis_opened,
    .received = redis_received,
    .publish = redis_publish,
    .tick = redis_tick,
    .closing = redis_closing,
    .released = redis_released,
    .code_text = resp_error_text,
};
