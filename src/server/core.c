/* The core's thread: queue in, batch, commit, results out. */
#include "server/core_groups.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
  TICK_MS = 1000,
  POSITIONS_IN_BATCH = 256, /* written behind beside other work: about a millisecond */
  POSITIONS_WHEN_IDLE = 4096,
};

/* A core_call under way: shared by the caller, who may give up, and the core. */
enum call_state { CALL_WAITING, CALL_RUNNING, CALL_DONE, CALL_ABANDONED };
struct call {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  enum call_state state;
  uint32_t references;
  int32_t (*fn)(struct core *core, void *argument);
  void *argument;
  int32_t code;
  enum status status;
};

/* ---- Failure ---- */

void core_out_of_memory(struct core *core) {
  core->out_of_memory = true;
}

static void fail(struct core *core, const struct err *err) {
  pthread_mutex_lock(&core->failure_lock);
  if (!atomic_load(&core->failed)) core->failure = *err;
  pthread_mutex_unlock(&core->failure_lock);
  atomic_store(&core->failed, true);
}

bool core_failed(struct core *core, struct err *err) {
  if (!atomic_load(&core->failed)) return false;
  if (err) {
    pthread_mutex_lock(&core->failure_lock);
    *err = core->failure;
    pthread_mutex_unlock(&core->failure_lock);
  }
  return true;
}

int core_wake_fd(const struct core *core) {
  return core->wake_fd;
}

const struct core_stats *core_stats(const struct core *core) {
  return &core->stats;
}

/* ---- The queue ---- */

static void wake(struct core *core) {
  if (!atomic_load(&core->sleeping) || !atomic_exchange(&core->sleeping, false)) return;
  uint64_t one = 1;
  ssize_t put = write(core->wake_fd, &one, sizeof one);
  (void)put;
}

static struct request *request_new(
    enum request_kind kind, struct session_ref session, int32_t index, const struct view *parts, uint32_t count) {
  size_t size = sizeof(struct request);
  for (uint32_t i = 0; i < count; i++)
    size += parts[i].len;
  if (size > QUEUE_BYTES) return NULL;
  struct request *request = malloc(size);
  if (!request) return NULL;
  *request = (struct request){.kind = kind, .session = session, .index = index, .size = (uint32_t)size};
  uint8_t *at = request->bytes;
  for (uint32_t i = 0; i < count; i++) {
    if (parts[i].len) memcpy(at, parts[i].data, parts[i].len);
    request->part[i] = view_of(at, parts[i].len);
    at += parts[i].len;
  }
  return request;
}

static void push(struct core *core, struct request *request) {
  struct request *before = atomic_load_explicit(&core->newest, memory_order_relaxed);
  do
    request->next = before;
  while (!atomic_compare_exchange_weak(&core->newest, &before, request));
  wake(core);
}

static void count_in(struct core *core, uint32_t size) {
  atomic_fetch_add_explicit(&core->stats.queue_depth, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&core->queue_bytes, size, memory_order_relaxed);
}

static void count_out(struct core *core, uint32_t size) {
  atomic_fetch_sub_explicit(&core->stats.queue_depth, 1, memory_order_relaxed);
  atomic_fetch_sub_explicit(&core->queue_bytes, size, memory_order_relaxed);
}

/* Posts unless the queue is full; takes the request over only on OK. */
static enum status post(struct core *core, struct request *request) {
  if (!request) return STATUS_MEMORY;
  if (atomic_load_explicit(&core->failed, memory_order_relaxed)) return STATUS_IO;
  if (atomic_load_explicit(&core->stopping, memory_order_relaxed)) return STATUS_INTERRUPTED;
  count_in(core, request->size);
  bool full = atomic_load_explicit(&core->stats.queue_depth, memory_order_relaxed) > QUEUE_REQUESTS ||
              atomic_load_explicit(&core->queue_bytes, memory_order_relaxed) > QUEUE_BYTES;
  if (full) {
    count_out(core, request->size);
    return STATUS_MEMORY;
  }
  push(core, request);
  return STATUS_OK;
}

static enum status post_or_free(struct core *core, struct request *request) {
  enum status status = post(core, request);
  if (status != STATUS_OK) free(request);
  return status;
}

enum status core_post_login(struct core *core, const struct core_login *login) {
  const struct view parts[] = {login->app_key, login->token, login->platform, login->device_id};
  return post_or_free(core, request_new(REQUEST_LOGIN, login->session, 0, parts, 4));
}

/* Passes the bounds: it is what makes room. A lost one is made good by the slot's next login. */
static void post_ending(struct core *core, enum request_kind kind, struct session_ref session) {
  struct request *request = request_new(kind, session, 0, NULL, 0);
  if (!request) return;
  count_in(core, request->size);
  push(core, request);
}

void core_post_logout(struct core *core, struct session_ref session) {
  post_ending(core, REQUEST_LOGOUT, session);
}

void core_post_unseen(struct core *core, struct session_ref session) {
  post_ending(core, REQUEST_UNSEEN, session);
}

enum status core_post_publish(struct core *core, struct session_ref session, int32_t index, struct view topic,
    struct view target, struct view data) {
  return post_or_free(core, request_new(REQUEST_PUBLISH, session, index, (struct view[]){topic, target, data}, 3));
}

enum status core_post_query(struct core *core, struct session_ref session, int32_t index, struct view topic,
    struct view target, struct view data) {
  return post_or_free(core, request_new(REQUEST_QUERY, session, index, (struct view[]){topic, target, data}, 3));
}

/* Everything that has gathered, oldest first. */
static struct request *take_all(struct core *core) {
  struct request *request = atomic_exchange(&core->newest, NULL);
  struct request *oldest = NULL;
  while (request) {
    struct request *next = request->next;
    request->next = oldest;
    oldest = request;
    request = next;
  }
  return oldest;
}

/* ---- Calls ---- */

static void call_free(struct call *call) {
  pthread_cond_destroy(&call->changed);
  pthread_mutex_destroy(&call->lock);
  free(call);
}

static void call_release(struct call *call) {
  pthread_mutex_lock(&call->lock);
  bool last = --call->references == 0;
  pthread_mutex_unlock(&call->lock);
  if (last) call_free(call);
}

static struct call *call_new(int32_t (*fn)(struct core *core, void *argument), void *argument) {
  struct call *call = calloc(1, sizeof *call);
  if (!call) return NULL;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&call->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  pthread_mutex_init(&call->lock, NULL);
  call->references = 2;
  call->fn = fn;
  call->argument = argument;
  return call;
}

/* False when the caller has given up: its argument is gone then. */
static bool call_begin(struct call *call) {
  pthread_mutex_lock(&call->lock);
  bool wanted = call->state == CALL_WAITING;
  if (wanted) call->state = CALL_RUNNING;
  pthread_mutex_unlock(&call->lock);
  return wanted;
}

static void call_end(struct call *call, enum status status) {
  pthread_mutex_lock(&call->lock);
  call->status = status;
  if (call->state != CALL_ABANDONED) call->state = CALL_DONE;
  pthread_cond_signal(&call->changed);
  pthread_mutex_unlock(&call->lock);
  call_release(call);
}

/* A call that has begun is waited for to its end, since it uses the caller's argument. */
static enum status call_wait(struct call *call) {
  struct timespec deadline;
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += 5;
  pthread_mutex_lock(&call->lock);
  int late = 0;
  while (call->state == CALL_WAITING && !late)
    late = pthread_cond_timedwait(&call->changed, &call->lock, &deadline);
  if (call->state == CALL_WAITING) call->state = CALL_ABANDONED;
  while (call->state == CALL_RUNNING)
    pthread_cond_wait(&call->changed, &call->lock);
  enum status status = call->state == CALL_ABANDONED ? STATUS_TIMEOUT : call->status;
  pthread_mutex_unlock(&call->lock);
  return status;
}

enum status core_call(
    struct core *core, int32_t (*fn)(struct core *core, void *argument), void *argument, int32_t *code) {
  *code = JUGGLE_API_TIMEOUT;
  struct call *call = call_new(fn, argument);
  struct request *request = call ? request_new(REQUEST_CALL, (struct session_ref){0}, 0, NULL, 0) : NULL;
  if (request) request->call = call;
  enum status status = post_or_free(core, request);
  if (status != STATUS_OK) {
    if (call) call_free(call);
    return status;
  }
  status = call_wait(call);
  if (status == STATUS_OK) *code = call->code;
  call_release(call);
  return status;
}

/* ---- Written behind ---- */

/* Writes up to limit dirty positions; a round starts once a second, and its end moves the checkpoint. */
static void write_behind(struct core *core, uint32_t limit, bool now) {
  if (!core->round_last) {
    uint64_t now_ns = clock_now_ns();
    if (!core->dirty_first || (!now && now_ns - core->round_began_ns < TICK_MS * NS_PER_MS)) return;
    core->round_last = core->dirty_last;
    core->round_checkpoint = core->newest_message;
    core->round_began_ns = now_ns;
  }
  for (uint32_t i = 0; i < limit && core->round_last; i++) {
    struct position *position = core->dirty_first;
    core->dirty_first = position->next_dirty;
    if (!core->dirty_first) core->dirty_last = NULL;
    position->dirty = false;
    position_store(core, position);
    if (position != core->round_last) continue;
    core->round_last = NULL;
    core->checkpoint = core->round_checkpoint;
    store_put_checkpoint(core->store, core->checkpoint);
  }
}

static void write_all_behind(struct core *core) {
  do
    write_behind(core, UINT32_MAX, true);
  while (core->dirty_first);
  if (core->checkpoint == core->newest_message) return;
  core->checkpoint = core->newest_message;
  store_put_checkpoint(core->store, core->checkpoint);
}

/* Once a second: gives back the memory of inboxes whose entries have passed the window, for a part of the users. */
static void sweep(struct core *core) {
  if (core->now_ms - core->swept_ms < TICK_MS) return;
  core->swept_ms = core->now_ms;
  int64_t expired_ms = core->now_ms - OFFLINE_WINDOW_MS;
  for (uint32_t i = core->user_count / 256 + 1; i && core->user_count; i--) {
    core->sweep_at = core->sweep_at % core->user_count + 1;
    struct user *user = core->user_by_num[core->sweep_at];
    inbox_expire(&user->inbox, &core->inbox_limits, expired_ms);
    inbox_expire(&user->sent, &core->inbox_limits, expired_ms);
  }
}

/* ---- Batches ---- */

static void read_clock(struct core *core) {
  int64_t now_ms = clock_wall_ms();
  if (now_ms > core->now_ms) core->now_ms = now_ms;
}

const uint32_t core_commit_bound_us[CORE_COMMIT_BOUNDS] = {
    50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 1000000};

static void count_commit(struct core *core, uint64_t duration_ns) {
  int bucket = 0;
  while (bucket < CORE_COMMIT_BOUNDS && duration_ns > (uint64_t)core_commit_bound_us[bucket] * 1000)
    bucket++;
  atomic_fetch_add_explicit(&core->stats.commits, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&core->stats.commit_ns, duration_ns, memory_order_relaxed);
  atomic_fetch_add_explicit(&core->stats.commit_bucket[bucket], 1, memory_order_relaxed);
}

/* Commits what has been written; only then do results leave, unless acks need not wait. On failure nothing leaves. */
static bool commit_batch(struct core *core) {
  struct err err = {0};
  if (core->out_of_memory) {
    err_set(&err, STATUS_MEMORY, "the core is out of memory: give the server more or fewer users");
  } else if (!store_failed(core->store, &err)) {
    if (core->ack == ACK_RECEIVED) outs_release(core);
    bool pending = store_pending(core->store);
    uint64_t began_ns = clock_now_ns();
    if (store_commit(core->store) == STATUS_OK) {
      if (pending) count_commit(core, clock_now_ns() - began_ns);
      outs_release(core);
      return true;
    }
    store_failed(core->store, &err);
  }
  fail(core, &err);
  outs_discard(core);
  return false;
}

static void handle(struct core *core, struct request *request) {
  switch (request->kind) {
  case REQUEST_LOGIN:
    login_run(core, request);
    break;
  case REQUEST_LOGOUT: {
    struct session *session = core_session(core, request->session);
    if (session) session_forget(core, session);
    break;
  }
  case REQUEST_UNSEEN: {
    const struct session *session = core_session(core, request->session);
    if (session) session->user->pending = true;
    break;
  }
  case REQUEST_PUBLISH:
    publish_run(core, request);
    break;
  case REQUEST_QUERY:
    query_run(core, request);
    break;
  case REQUEST_CALL:
    if (call_begin(request->call)) request->call->code = request->call->fn(core, request->call->argument);
    break;
  }
}

/* Works through the front of the list and commits; returns the rest. */
static struct request *work(struct core *core, struct request *request) {
  struct request *calls = NULL;
  for (uint32_t i = 0; request && i < BATCH_REQUESTS && core->batch_bytes < BATCH_BYTES; i++) {
    struct request *next = request->next;
    count_out(core, request->size);
    read_clock(core);
    if (!atomic_load_explicit(&core->failed, memory_order_relaxed)) handle(core, request);
    if (request->kind == REQUEST_CALL) {
      request->next = calls;
      calls = request;
    } else {
      free(request);
    }
    request = next;
  }
  if (!atomic_load_explicit(&core->failed, memory_order_relaxed)) {
    sweep(core);
    write_behind(core, POSITIONS_IN_BATCH, false);
    commit_batch(core);
  }
  enum status status = atomic_load(&core->failed) ? STATUS_IO : STATUS_OK;
  while (calls) {
    struct request *next = calls->next;
    call_end(calls->call, status);
    free(calls);
    calls = next;
  }
  return request;
}

static void idle(struct core *core) {
  if (!atomic_load(&core->failed)) {
    read_clock(core);
    sweep(core);
    write_behind(core, POSITIONS_WHEN_IDLE, false);
    commit_batch(core);
  }
  if (core->round_last && !atomic_load(&core->failed)) return;
  atomic_store(&core->sleeping, true);
  if (!atomic_load(&core->newest) && !atomic_load(&core->stopping)) {
    struct pollfd waiting = {.fd = core->wake_fd, .events = POLLIN};
    poll(&waiting, 1, TICK_MS);
  }
  atomic_store(&core->sleeping, false);
  uint64_t count;
  ssize_t got = read(core->wake_fd, &count, sizeof count);
  (void)got;
}

static void *core_main(void *argument) {
  struct core *core = argument;
  struct request *rest = NULL;
  for (;;) {
    bool stopping = atomic_load(&core->stopping);
    if (!rest) rest = take_all(core);
    if (rest)
      rest = work(core, rest);
    else if (stopping)
      break;
    else
      idle(core);
  }
  if (!atomic_load(&core->failed)) {
    write_all_behind(core);
    commit_batch(core);
  }
  return NULL;
}

/* ---- Life ---- */

struct replay {
  struct core *core;
  int64_t window_ms;
  bool is_damaged;
  int64_t damaged_id; /* of a row that makes no sense */
};

static bool replay_one(void *context, const struct store_message *row) {
  struct replay *replay = context;
  if (!message_row_is_sound(replay->core, row)) {
    replay->is_damaged = true;
    replay->damaged_id = row->id;
    return false;
  }
  message_replay(replay->core, row, replay->window_ms);
  if (row->at_ms > replay->core->now_ms) replay->core->now_ms = row->at_ms;
  return !replay->core->out_of_memory;
}

/* Rebuilds what is not stored: everything within the offline window, and what lies behind the checkpoint. */
static enum status rebuild(struct core *core, struct err *err) {
  enum status status = people_load(core, err);
  if (status != STATUS_OK) return status;
  read_clock(core);
  struct replay replay = {.core = core, .window_ms = core->now_ms - OFFLINE_WINDOW_MS};
  core->newest_message = store_newest_message(core->store);
  core->checkpoint = store_checkpoint(core->store);
  int64_t before_window = store_message_before(core->store, replay.window_ms);
  store_replay(core->store, before_window < core->checkpoint ? before_window : core->checkpoint, replay_one, &replay);
  if (core->out_of_memory) return err_set(err, STATUS_MEMORY, "no memory to load the store");
  if (replay.is_damaged) {
    return err_set(err, STATUS_IO,
        "the stored message %lld makes no sense; restore the database from a backup or choose another data folder",
        (long long)replay.damaged_id);
  }
  return store_failed(core->store, err) ? STATUS_IO : STATUS_OK;
}

static enum status make_first_app(struct core *core, const struct server_config *config, struct err *err) {
  if (!config->app_key) return STATUS_OK;
  struct core_app app;
  bool created;
  struct view secret = config->app_secret ? view_str(config->app_secret) : view_of(NULL, 0);
  int32_t code = core_app_create(core, view_str(config->app_key), secret, view_of(NULL, 0), &app, &created);
  if (code != JUGGLE_OK)
    return err_set(err, STATUS_USAGE, "cannot make the app %s: its key may have up to %d characters, its secret 23",
        config->app_key, APP_KEY_MAX);
  if (store_commit(core->store) == STATUS_OK) return STATUS_OK;
  store_failed(core->store, err);
  return STATUS_IO;
}

static enum status open_parts(struct core *core, const struct server_config *config, struct err *err) {
  core->outboxes = calloc(core->gateways ? core->gateways : 1, sizeof *core->outboxes);
  core->sessions = calloc(core->gateways ? core->gateways : 1, sizeof *core->sessions);
  if (!core->outboxes || !core->sessions) return err_set(err, STATUS_MEMORY, "no memory to start the core");
  core->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (core->wake_fd < 0) return err_set(err, STATUS_IO, "cannot make an eventfd: %s", strerror(errno));
  enum status status = store_open(&core->store, config->data_dir, config->ack == ACK_DURABLE, err);
  if (status != STATUS_OK) return status;
  status = rebuild(core, err);
  if (status == STATUS_OK) status = make_first_app(core, config, err);
  return status;
}

static void core_free(struct core *core) {
  for (struct request *request = take_all(core); request;) {
    struct request *next = request->next;
    if (request->kind == REQUEST_CALL) call_end(request->call, STATUS_INTERRUPTED);
    free(request);
    request = next;
  }
  for (uint32_t i = 0; i < core->gateways; i++) {
    for (uint32_t slot = 0; core->sessions && slot < core->sessions[i].capacity; slot++)
      if (core->sessions[i].by_slot[slot]) session_forget(core, core->sessions[i].by_slot[slot]);
    if (core->sessions) free(core->sessions[i].by_slot);
    if (core->outboxes) free(core->outboxes[i].targets);
  }
  free(core->sessions);
  free(core->outboxes);
  store_close(core->store);
  if (core->wake_fd >= 0) close(core->wake_fd);
  dedup_free(&core->dedup);
  cache_free(core);
  people_free(core);
  buf_free(&core->down);
  buf_free(&core->reply);
  buf_free(&core->recipients);
  buf_free(&core->scratch);
  pthread_mutex_destroy(&core->failure_lock);
  free(core);
}

enum status core_start(struct core **out, const struct server_config *config, struct gateway_port *const *ports,
    uint32_t gateways, struct err *err) {
  *out = NULL;
  struct core *core = calloc(1, sizeof *core);
  if (!core) return err_set(err, STATUS_MEMORY, "no memory to start the core");
  core->ack = config->ack;
  core->room_history = config->chatroom_history ? config->chatroom_history : SERVER_CHATROOM_HISTORY;
  core->ports = ports;
  core->gateways = gateways;
  core->wake_fd = -1;
  core->inbox_limits =
      (struct inbox_limits){.entries_per_inbox = INBOX_ENTRIES, .entries_in_all = INBOX_ENTRIES_IN_ALL};
  pthread_mutex_init(&core->failure_lock, NULL);
  table_open(&core->apps);
  table_open(&core->conversations_by_key);
  dedup_open(&core->dedup);
  uint64_t seed;
  random_bytes(&seed, sizeof seed);
  rng_seed(&core->rng, seed);
  enum status status = open_parts(core, config, err);
  if (status == STATUS_OK) {
    int code = pthread_create(&core->thread, NULL, core_main, core);
    if (code) status = err_set(err, STATUS_IO, "cannot start the core's thread: %s", strerror(code));
  }
  if (status != STATUS_OK) {
    core_free(core);
    return status;
  }
  *out = core;
  return STATUS_OK;
}

void core_stop(struct core *core) {
  if (!core) return;
  atomic_store(&core->stopping, true);
  wake(core);
  pthread_join(core->thread, NULL);
  core_free(core);
}
