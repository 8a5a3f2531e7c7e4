/* Ricochet over libp2p: every operation is a stream of its own on the client's one connection, with one request frame
 * and one response frame. A request of the load room is the operations of a scenario, one after the other. */
#include "base/base64.h"
#include "base/clock.h"
#include "driver/ricochet_internal.h"

#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TICK_NS (5 * NS_PER_SEC)
#define REQUEST_LIMIT_NS (60 * NS_PER_SEC) /* then the stream is given up; the load room's time-out comes before */
#define RETRIES_MAX 16
#define RETRY_JITTER 0.25  /* of the hint, on top of it, so that not all come back at once */
#define OUTSTANDING_MAX 64 /* streams that every server of the kind lets one client have */
#define BATCH_BYTES_MAX (6u * 1024 * 1024)
#define DEFAULT_PORT 55223
#define LISTENER_QUEUE 16u /* connections that a go-libp2p listener has not taken yet; it drops more */
#define DIALS_MAX 8u       /* at once, of a process */

struct ricochet_client {
  struct libp2p_conn *conn; /* NULL: not connected, and not connecting */
  struct ricochet_request *requests;
  uint32_t warmups, warmups_failed;
  bool set_up;
};

static struct ricochet_client *state_of(struct client *client) {
  return client_state(client);
}

static struct ricochet_plan *plan_of(const struct client *client) {
  return client->run->population;
}

/* --- requests --- */

static struct ricochet_request *take_request(struct client *client) {
  struct ricochet_plan *plan = plan_of(client);
  struct ricochet_request *request = plan->spare;
  if (request) {
    plan->spare = request->next;
    *request = (struct ricochet_request){0};
  } else {
    request = calloc(1, sizeof *request);
    if (!request) return NULL;
  }
  request->client = client;
  request->next = state_of(client)->requests;
  state_of(client)->requests = request;
  return request;
}

static void drop_request(struct ricochet_request *request) {
  struct ricochet_plan *plan = plan_of(request->client);
  struct ricochet_request **link = &state_of(request->client)->requests;
  while (*link != request)
    link = &(*link)->next;
  *link = request->next;
  request->next = plan->spare;
  plan->spare = request;
}

static enum operation_kind operation_of(const struct ricochet_request *request) {
  return ricochet_step_operation((enum ricochet_step)request->steps[request->index]);
}

static void tell_done(const struct ricochet_request *request, int32_t code, uint32_t items, struct view error) {
  if (!request->counts) return;
  struct operation_done done = {
      .operation = operation_of(request),
      .token = request->token,
      .code = code,
      .items = items,
      .started_ns = request->started_ns,
      .error = error,
  };
  request->client->hooks->operation_done(request->client, &done);
}

static void go_on(struct client *client);

/* The request is over; the client may be gone afterwards. */
static void finish_request(struct ricochet_request *request, int32_t code) {
  struct client *client = request->client;
  struct ricochet_client *state = state_of(client);
  bool counts = request->counts;
  uint32_t token = request->token;
  drop_request(request);
  if (counts) {
    client->hooks->acked(client, token, code);
    return;
  }
  if (!state->set_up && code != 0) {
    client->hooks->failed(client, code);
    return;
  }
  if (state->set_up) {
    state->warmups++;
    state->warmups_failed += code != 0;
  }
  state->set_up = true;
  go_on(client);
}

static const struct libp2p_stream_ops stream_ops;

/* False when there is no stream for it, and nothing was sent. */
static bool start_step(struct ricochet_request *request) {
  struct client *client = request->client;
  struct ricochet_plan *plan = plan_of(client);
  enum ricochet_protocol protocol = ricochet_step_protocol((enum ricochet_step)request->steps[request->index]);
  struct ricochet_client *state = state_of(client);
  if (!state->conn || !ricochet_step_write(plan, request)) return false;
  struct libp2p_stream *stream = libp2p_open_stream(state->conn, ricochet_protocol_id(protocol), &stream_ops, request);
  if (!stream) return false;
  if (!libp2p_stream_write(stream, plan->out.data, plan->out.len)) {
    libp2p_stream_reset(stream);
    return false;
  }
  libp2p_stream_end(stream);
  client->run->bytes_sent += plan->out.len;
  request->stream = stream;
  request->due_ns = 0;
  request->started_ns = clock_now_ns();
  if (request->counts) client->hooks->operation_started(client, operation_of(request), request->token);
  return true;
}

/* Of a request under way; the client may be gone afterwards. */
static void go_on_with(struct ricochet_request *request) {
  if (!start_step(request)) finish_request(request, FINDING_STREAM_RESET);
}

/* --- retries --- */

static void wake(struct client *client) {
  uint64_t due_ns = UINT64_MAX;
  for (const struct ricochet_request *r = state_of(client)->requests; r; r = r->next) {
    if (r->due_ns > 0 && r->due_ns < due_ns) due_ns = r->due_ns;
  }
  if (due_ns != UINT64_MAX) client->hooks->wake(client, due_ns);
}

static bool may_retry(const struct ricochet_request *request, const struct ricochet_result *result) {
  return ricochet_is_retryable(result->code) && result->hint_ms >= 0 && request->retries < RETRIES_MAX;
}

static void wait_for_retry(struct ricochet_request *request, int64_t hint_ms) {
  struct client *client = request->client;
  double wait_ns = (double)hint_ms * (double)NS_PER_MS;
  wait_ns *= 1 + RETRY_JITTER * rng_double(&plan_of(client)->rng);
  request->retries++;
  request->due_ns = clock_now_ns() + (uint64_t)fmin(wait_ns, 3600e9) + 1;
  if (request->counts) client->hooks->operation_retried(client, request->token, (uint64_t)wait_ns);
  wake(client);
}

/* --- streams --- */

static void take_answer(struct ricochet_request *request, struct view body) {
  struct ricochet_result result;
  bool over = ricochet_step_read(plan_of(request->client), request, body, &result);
  tell_done(request, result.code, result.items, result.error);
  if (may_retry(request, &result)) {
    wait_for_retry(request, result.hint_ms);
    return;
  }
  if (result.code != 0) {
    finish_request(request, result.code);
    return;
  }
  if (over) {
    request->index++;
    request->at = 0;
  }
  if (request->index == STEPS_MAX || request->steps[request->index] == STEP_END) {
    finish_request(request, 0);
  } else {
    go_on_with(request);
  }
}

static void fail_step(struct ricochet_request *request, int32_t code, const char *text) {
  request->stream = NULL;
  tell_done(request, code, 0, view_str(text));
  finish_request(request, code);
}

static size_t on_received(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  struct ricochet_request *request = libp2p_stream_user(stream);
  struct view body;
  size_t used = 0;
  if (!request) return len;
  switch (ricochet_read_frame(view_of(data, len), &body, &used)) {
  case RICOCHET_FRAME_PARTIAL:
    if (len >= RICOCHET_HEAD_BYTES) {
      size_t whole = (size_t)data[0] << 24 | (size_t)data[1] << 16 | (size_t)data[2] << 8 | data[3];
      libp2p_stream_expect(stream, RICOCHET_HEAD_BYTES + whole);
    }
    return 0;
  case RICOCHET_FRAME_BAD:
    libp2p_stream_reset(stream);
    fail_step(request, FINDING_MALFORMED, "a frame of no length, or too long");
    return 0;
  case RICOCHET_FRAME_OK:
    break;
  }
  libp2p_stream_set_user(stream, NULL);
  request->stream = NULL;
  request->client->run->bytes_received += used;
  take_answer(request, body);
  return used;
}

static void on_stream_closed(struct libp2p_stream *stream, enum libp2p_stream_end end) {
  struct ricochet_request *request = libp2p_stream_user(stream);
  if (!request) return;
  switch (end) {
  case LIBP2P_STREAM_LOST: /* what the load room awaits it writes off itself, once the connection has told its end */
    request->stream = NULL;
    tell_done(request, CAUSE_CONNECTION_LOST, 0, view_str("connection lost"));
    break;
  case LIBP2P_STREAM_REFUSED:
    fail_step(request, FINDING_NO_PROTOCOL, "the server does not speak this protocol");
    break;
  case LIBP2P_STREAM_RESET:
    fail_step(request, FINDING_STREAM_RESET, "stream reset");
    break;
  default:
    fail_step(request, FINDING_MALFORMED, "stream ended without an answer");
  }
}

static const struct libp2p_stream_ops stream_ops = {.received = on_received, .closed = on_stream_closed};

/* --- notifications --- */

static size_t on_notified(struct libp2p_stream *stream, uint8_t *data, size_t len) {
  struct driver_run *run = libp2p_stream_user(stream);
  struct view body;
  size_t used = 0;
  enum ricochet_frame frame = ricochet_read_frame(view_of(data, len), &body, &used);
  if (frame == RICOCHET_FRAME_PARTIAL) return 0;
  if (frame == RICOCHET_FRAME_OK) run->counted[0]++;
  libp2p_stream_end(stream);
  return len;
}

static void on_notify_closed(struct libp2p_stream *stream, enum libp2p_stream_end end) {
  (void)stream, (void)end;
}

static void on_notify_accepted(struct libp2p_stream *stream, void *user) {
  libp2p_stream_set_user(stream, user);
}

static const struct libp2p_stream_ops notify_ops = {.received = on_notified, .closed = on_notify_closed};

/* --- connections --- */

static int32_t code_of(const struct client *client, enum libp2p_cause cause) {
  bool early = !state_of((struct client *)client)->set_up;
  switch (cause) {
  case LIBP2P_REFUSED:
    return CAUSE_CONNECT_REFUSED;
  case LIBP2P_UNREACHABLE:
  case LIBP2P_NO_MEMORY:
    return CAUSE_CONNECT_ERROR;
  case LIBP2P_TIMED_OUT:
    return early ? CAUSE_CONNECT_TIMEOUT : CAUSE_KEEP_ALIVE;
  case LIBP2P_INSECURE:
    return FINDING_INSECURE;
  case LIBP2P_NO_PROTOCOL:
  case LIBP2P_BROKEN:
    return CAUSE_PROTOCOL;
  case LIBP2P_RESET:
    return early ? CAUSE_CLOSED_EARLY : CAUSE_RESET;
  default:
    return early ? CAUSE_CLOSED_EARLY : CAUSE_CLOSED_BY_PEER;
  }
}

static void on_conn_closed(struct libp2p_conn *conn, const struct libp2p_end *end) {
  struct client *client = libp2p_conn_user(conn);
  state_of(client)->conn = NULL;
  client->hooks->failed(client, code_of(client, end->cause));
}

static void on_conn_opened(struct libp2p_conn *conn) {
  struct client *client = libp2p_conn_user(conn);
  client->hooks->logged_in(client);
  state_of(client)->set_up = plan_of(client)->scenario->setup[0] == STEP_END;
  go_on(client);
}

static const struct libp2p_conn_ops conn_ops = {.opened = on_conn_opened, .closed = on_conn_closed};

static const uint8_t *steps_of(struct ricochet_plan *plan) {
  const struct ricochet_scenario *scenario = plan->scenario;
  if (scenario->steps[0] == STEP_END) scenario = ricochet_scenario_mixed(rng_next(&plan->rng));
  return scenario->steps;
}

/* Warm-up request i belongs to client i % clients and has the number -(i + 1). */
static bool has_warmups(const struct client *client) {
  const struct ricochet_plan *plan = plan_of(client);
  uint32_t own = plan->warmup_requests / plan->clients + (client->index < plan->warmup_requests % plan->clients);
  return state_of((struct client *)client)->warmups < own;
}

/* Set-up, then warm-up, then the load room's own. */
static void go_on(struct client *client) {
  struct ricochet_client *state = state_of(client);
  struct ricochet_plan *plan = plan_of(client);
  if (state->set_up && !has_warmups(client)) {
    if (state->warmups > 0 && state->warmups_failed == state->warmups) {
      client->hooks->failed(client, FINDING_CONTENT);
    } else {
      client->hooks->established(client);
    }
    return;
  }
  struct ricochet_request *request = take_request(client);
  if (!request) {
    client->hooks->failed(client, CAUSE_CONNECT_ERROR);
    return;
  }
  request->steps = state->set_up ? steps_of(plan) : plan->scenario->setup;
  if (state->set_up) request->number = -(int64_t)(client->index + (uint64_t)state->warmups * plan->clients) - 1;
  go_on_with(request);
}

/* Of one of so many processes. */
static uint32_t dials_at_once(uint32_t workers) {
  uint32_t share = workers > 0 ? LISTENER_QUEUE / workers : DIALS_MAX;
  if (share < 1) return 1;
  return share < DIALS_MAX ? share : DIALS_MAX;
}

static enum status make_node(struct driver_run *run, struct loop *loop, struct err *err) {
  static const struct libp2p_protocol protocols[] = {
      {"/ricochet/mailbox-notify/1.0.0", &notify_ops, on_notify_accepted},
  };
  struct ricochet_plan *plan = run->population;
  struct libp2p_config config = {
      .identity = &plan->identity[0],
      .protocols = protocols,
      .protocol_count = 1,
      .user = run,
      .dials_at_once = dials_at_once(run->settings.workers),
  };
  /* Every process has numbers of its own: message ids must not come twice. */
  rng_seed(&plan->rng, run->settings.run_id ^ (uint64_t)getpid() << 32 ^ clock_now_ns());
  return libp2p_create(&plan->node, loop, &config, err);
}

static enum status ricochet_connect(struct client *client, struct loop *loop) {
  struct ricochet_plan *plan = plan_of(client);
  struct ricochet_client *state = state_of(client);
  struct err err;
  enum status status = plan->node ? STATUS_OK : make_node(client->run, loop, &err);
  if (status != STATUS_OK) return status;
  return libp2p_dial(plan->node, &plan->to, &client->run->address, &plan->identity[client->index], &conn_ops, client,
      &state->conn, &err);
}

static void ricochet_released(struct client *client) {
  struct ricochet_client *state = state_of(client);
  struct libp2p_conn *conn = state->conn;
  state->conn = NULL;
  while (state->requests) {
    struct ricochet_request *request = state->requests;
    if (request->stream && !conn) libp2p_stream_set_user(request->stream, NULL);
    drop_request(request);
  }
  if (conn) libp2p_disconnect(conn);
}

/* --- the load room's side --- */

static enum publish_result ricochet_operate(struct client *client, const struct publish *publish) {
  struct ricochet_plan *plan = plan_of(client);
  struct ricochet_request *request = take_request(client);
  if (!request) return PUBLISH_BLOCKED;
  request->steps = steps_of(plan);
  request->number = publish->payload.sequence;
  request->token = publish->token;
  request->counts = true;
  if (start_step(request)) return PUBLISH_WRITTEN;
  drop_request(request);
  return PUBLISH_BLOCKED;
}

/* One request that is due again, or has waited beyond hope; NULL: none. */
static struct ricochet_request *find_due(struct client *client, uint64_t now_ns) {
  struct ricochet_request *r = state_of(client)->requests;
  for (; r; r = r->next) {
    if (r->due_ns > 0 && r->due_ns <= now_ns) return r;
    if (r->stream && now_ns > r->started_ns + REQUEST_LIMIT_NS) return r;
  }
  return NULL;
}

static void ricochet_tick(struct client *client, uint64_t now_ns) {
  struct ricochet_request *request;
  /* What one of them starts is not due, so that this comes to an end; the client may be gone after each. */
  while ((request = find_due(client, now_ns))) {
    if (request->due_ns > 0) {
      request->due_ns = 0;
      go_on_with(request);
    } else {
      libp2p_stream_reset(request->stream);
      fail_step(request, CAUSE_NO_ANSWER, "no answer");
    }
  }
  wake(client);
}

static void ricochet_closing(struct client *client) {
  (void)client;
}

/* --- before the run --- */

static void ricochet_release(struct driver_run *run) {
  struct ricochet_plan *plan = run->population;
  if (plan) {
    buf_free(&plan->out);
    buf_free(&plan->scratch);
  }
  arena_free(&run->arena);
  run->population = NULL;
}

/* "ricochet://HOST:PORT/PEER"; without a peer the server may be anybody. */
static enum status read_target(struct driver_run *run, struct ricochet_plan *plan, struct err *err) {
  struct url *url = &run->settings.url;
  if (url->port == 0) url->port = DEFAULT_PORT;
  plan->to.transport = strcmp(url->scheme, "ricochet+tcp") == 0 ? MULTIADDR_TCP : MULTIADDR_UDX;
  snprintf(plan->to.host, sizeof plan->to.host, "%s", url->host);
  plan->to.port = url->port;
  const char *peer = url->path[0] == '/' ? url->path + 1 : url->path;
  plan->to.has_peer = peer[0] != '\0';
  if (plan->to.has_peer && !peer_id_parse(view_str(peer), &plan->to.peer)) {
    return err_set(
        err, STATUS_USAGE, "--target: \"%.80s\" is no peer id: give it as musterd or ricochet prints it", peer);
  }
  memcpy(run->server_name, url->host, sizeof run->server_name);
  return address_resolve(url->host, url->port, &run->address, err);
}

static enum status read_settings(struct driver_run *run, struct ricochet_plan *plan, struct err *err) {
  const struct ricochet_settings *settings = &run->settings.ricochet;
  const char *name = settings->scenario ? settings->scenario : "mixed";
  plan->scenario = ricochet_scenario_find(name);
  plan->batch_size = settings->batch_size ? settings->batch_size : 100;
  plan->documents = settings->documents ? settings->documents : 500;
  plan->document_digits = snprintf(NULL, 0, "%04u", plan->documents - 1);
  plan->warmup_requests = settings->warmup_requests;
  plan->clients = run->settings.clients;
  if (!plan->scenario) return err_set(err, STATUS_USAGE, "\"%.40s\" is no scenario of Ricochet", name);
  if (plan->batch_size > RICOCHET_BATCH_MAX) {
    return err_set(err, STATUS_USAGE, "--batch-size %u: servers take %u at most", plan->batch_size, RICOCHET_BATCH_MAX);
  }
  bool batches = strchr(name, '-') && strcmp(name, "mail-cycle") != 0;
  if (!batches || (uint64_t)plan->batch_size * run->settings.payload_bytes <= BATCH_BYTES_MAX) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "--batch-size %u of %u bytes each: servers take 6 MiB in all: lower one of them",
      plan->batch_size, run->settings.payload_bytes);
}

/* The payload in every form in which it is sent and compared. */
static enum status make_payload(struct driver_run *run, struct ricochet_plan *plan, struct err *err) {
  size_t len = run->settings.payload_bytes;
  size_t base64_len = base64_encoded_size(len), item_len = len * 2 + 11;
  uint8_t *bytes = arena_alloc(&run->arena, len), digest[32] = {0};
  char *base64 = arena_alloc(&run->arena, base64_len), *item = arena_alloc(&run->arena, item_len + 1);
  struct rng rng;
  if (!bytes || !base64 || !item) return err_set(err, STATUS_MEMORY, "out of memory for the payload");
  rng_seed(&rng, run->settings.seed);
  for (size_t i = 0; i < len; i++)
    bytes[i] = (uint8_t)rng_next(&rng);
  base64_encode(BASE64_STANDARD, base64, bytes, len);
  size_t at = (size_t)snprintf(item, item_len, "{\"data\":\"");
  for (size_t i = 0; i < len; i++, at += 2)
    snprintf(item + at, 3, "%02x", bytes[i]);
  snprintf(item + at, item_len + 1 - at, "\"}");
  EVP_Digest(bytes, len, digest, NULL, EVP_sha256(), NULL);
  at = (size_t)snprintf(plan->payload_etag, sizeof plan->payload_etag, "sha256:");
  for (size_t i = 0; i < sizeof digest; i++, at += 2)
    snprintf(plan->payload_etag + at, 3, "%02x", digest[i]);
  plan->payload = view_of(bytes, len);
  plan->payload_base64 = view_of(base64, base64_len);
  plan->item = view_of(item, item_len);
  return STATUS_OK;
}

/* Everybody is new to the server, so that a run never meets what an earlier one left. */
static enum status make_people(struct driver_run *run, struct ricochet_plan *plan, struct err *err) {
  uint32_t clients = run->settings.clients;
  plan->identity = arena_alloc(&run->arena, (size_t)clients * sizeof *plan->identity);
  plan->recipient = arena_alloc(&run->arena, (size_t)clients * sizeof *plan->recipient);
  if (!plan->identity || !plan->recipient) return err_set(err, STATUS_MEMORY, "out of memory for the identities");
  for (uint32_t i = 0; i < clients; i++) {
    uint8_t key[ED25519_PUBLIC_BYTES];
    struct peer_id recipient;
    enum status status = libp2p_identity_make(&plan->identity[i], NULL, err);
    if (status != STATUS_OK) return status;
    random_bytes(key, sizeof key);
    peer_id_of_ed25519(key, &recipient);
    peer_id_text(&recipient, plan->recipient[i]);
  }
  return STATUS_OK;
}

static enum status ricochet_prepare(struct driver_run *run, struct err *err) {
  struct ricochet_plan *plan = arena_alloc(&run->arena, sizeof *plan);
  if (!plan) return err_set(err, STATUS_MEMORY, "out of memory for the plan of the clients");
  run->population = plan;
  enum status status = read_settings(run, plan, err);
  if (status == STATUS_OK) status = read_target(run, plan, err);
  if (status == STATUS_OK) status = make_payload(run, plan, err);
  if (status == STATUS_OK) status = make_people(run, plan, err);
  if (status != STATUS_OK) ricochet_release(run);
  return status;
}

static const struct driver_option options[] = {
    {"batch-size", NULL}, {"docs", NULL}, {"warmup-requests", NULL}, {"ack", NULL}, {NULL, NULL}};

/* Only what this scenario makes use of; what one request is makes up a key of its own. */
static void tell_settings(const struct driver_settings *settings, struct driver_facts *out) {
  const struct ricochet_settings *asked = &settings->ricochet;
  const char *name = asked->scenario ? asked->scenario : "mixed", *end = strrchr(name, '-');
  bool syncs = strncmp(name, "sync-", 5) == 0, batches = end && strcmp(end, "-batch") == 0;
  if (syncs || batches) facts_add_number(&out->options, "batch-size", asked->batch_size);
  if (syncs) facts_add_number(&out->options, "docs", asked->documents);
  facts_add_number(&out->options, "warmup-requests", asked->warmup_requests);
  facts_add(&out->key, "transport", strcmp(settings->url.scheme, "ricochet+tcp") == 0 ? "tcp" : "udx");
}

const struct driver driver_ricochet = {
    .name = "ricochet",
    .schemes = "ricochet,ricochet+tcp",
    .title = "Ricochet (JSON over libp2p: UDX or TCP, Noise, yamux)",
    .ack_meaning = "every operation of the request was answered with success, and what came was what was stored",
    .delivery = "stored until it is read; operations answer to the client that asked",
    .capabilities = CAPABILITY_ACKS | CAPABILITY_OPERATIONS,
    .default_port = DEFAULT_PORT,
    .payload_min_bytes = 1,
    .outstanding_max = OUTSTANDING_MAX,
    .tick_ns = TICK_NS,
    .client_bytes = sizeof(struct ricochet_client),
    .options = options,
    .describe = tell_settings,
    .operations = operation_names,
    .counters = {"notifications"},
    .prepare = ricochet_prepare,
    .release = ricochet_release,
    .connect = ricochet_connect,
    .operate = ricochet_operate,
    .tick = ricochet_tick,
    .closing = ricochet_closing,
    .released = ricochet_released,
    .code_text = ricochet_code_text,
};
