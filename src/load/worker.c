#include "load/worker.h"

#include "base/clock.h"
#include "net/tls.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define IDLE_TURN_NS (10 * NS_PER_MS) /* how late the control block may be noticed */
#define BURST 64                      /* publishes in one go before the loop looks at its sockets again */
#define SPIN_MAX_NS (50 * NS_PER_US)
#define SPIN_SHARE 10                /* at most one tenth of the interval between two slots is spun away */
#define OVERRUN_NS (500 * NS_PER_MS) /* how long after a phase its last slots may still be sent */
#define WORKER_NICE (-10)
#define GOOD_BYE_NS (300 * NS_PER_MS)
/* Larger populations leave by RST alone: a good-bye makes the server close first, and keep a TIME_WAIT for each. */
#define GOOD_BYE_CLIENTS 20000

/* --- connect --- */

static bool connecting_is_over(const struct worker *worker) {
  return worker->started == worker->connect_to && worker->in_progress == 0;
}

/* How many connects may have begun by now. */
static uint32_t connects_due(const struct worker *worker) {
  double per_sec = worker->plan->workload->connect_per_sec / worker->plan->workers;
  if (per_sec <= 0) return worker->connect_to;
  double due = (double)(clock_now_ns() - worker->connecting_ns) / (double)NS_PER_SEC * per_sec + 1;
  due += worker->connect_from;
  return due < worker->connect_to ? (uint32_t)due : worker->connect_to;
}

static void connect_more(struct worker *worker) {
  uint32_t due = connects_due(worker);
  while (worker->started < due && worker->in_progress < worker->in_progress_max) {
    client_connect(worker_client(worker, worker->started++));
  }
}

/* The deadline has passed: whoever was not even tried was not established in time either. */
static void give_up_connecting(struct worker *worker) {
  struct tally *tally = &worker->area->tally[TRAFFIC_MEASURE];
  uint32_t never = worker->connect_to - worker->started;
  tally->connections.attempted += never;
  if (never > 0) codes_add(&tally->connections.failed, CAUSE_CONNECT_TIMEOUT, never);
  worker->started = worker->connect_to;
}

static enum stage stage_of(const struct worker *worker) {
  return (enum stage)atomic_load_explicit(&worker->control->stage, memory_order_acquire);
}

static void set_state(struct worker *worker, enum worker_state state) {
  atomic_store_explicit(&worker->area->state, state, memory_order_release);
}

static void turn(struct worker *worker) {
  loop_turn(worker->loop, clock_now_ns() + IDLE_TURN_NS);
  loop_stats(worker->loop, &worker->area->live);
}

static uint32_t own_senders(const struct worker *worker) {
  uint32_t senders = worker->plan->topology.senders;
  return senders > worker->number ? (senders - worker->number + worker->plan->workers - 1) / worker->plan->workers : 0;
}

/* From now on the clients up to `to` connect. */
static void start_connecting(struct worker *worker, uint32_t to) {
  worker->connecting_ns = clock_now_ns();
  worker->connect_from = worker->started;
  worker->connect_to = to;
}

static void go_on_connecting(struct worker *worker) {
  if (clock_now_ns() >= worker->control->connect_deadline_ns) {
    give_up_connecting(worker);
  } else {
    connect_more(worker);
  }
}

static void connect_all(struct worker *worker) {
  worker->area->connect_started_ns = clock_now_ns();
  start_connecting(worker, worker->plan->workload->backlog ? own_senders(worker) : worker->count);
  while (stage_of(worker) == STAGE_CONNECT && !connecting_is_over(worker)) {
    go_on_connecting(worker);
    turn(worker);
  }
  worker->area->connect_ended_ns = clock_now_ns();
  if (worker->plan->run.tls) {
    snprintf(worker->area->tls, sizeof(worker->area->tls), "%s", tls_context_facts(worker->plan->run.tls));
  }
  set_state(worker, WORKER_CONNECTED);
  while (stage_of(worker) == STAGE_CONNECT)
    turn(worker);
}

/* --- traffic --- */

static bool pacing_is_over(const struct worker *worker) {
  return worker->phase == TRAFFIC_PHASES;
}

/* When the pacer's slot is due; UINT64_MAX when the phase has no more (or was cut short before it). */
static uint64_t slot_due_ns(const struct worker *worker) {
  if (worker->pacer.offset_ns == UINT64_MAX) return UINT64_MAX;
  uint64_t due_ns = worker->control->start_ns[worker->phase] + worker->pacer.offset_ns;
  return due_ns < worker->control->end_ns[worker->phase] ? due_ns : UINT64_MAX;
}

static void start_pacing(struct worker *worker, uint32_t phase) {
  worker->phase = phase;
  worker->kicked = 0;
  if (pacing_is_over(worker) || worker->plan->closed) return;
  pacer_start(&worker->pacer, &worker->plan->schedule[phase], worker->plan->topology.senders, worker->plan->workers,
      worker->number);
}

static void hand_out(struct worker *worker, uint64_t now_ns) {
  const struct pacer *pacer = &worker->pacer;
  struct load_client *client = worker_client(worker, pacer->sender / worker->plan->workers);
  enum traffic_phase phase = (enum traffic_phase)worker->phase;
  /* A generator so late that the phase is long over must not go on for ever. */
  bool is_over = now_ns > worker->control->end_ns[phase] + OVERRUN_NS;
  (is_over ? client_pass_over : client_due)(client, phase, pacer->sequence, pacer->offset_ns);
}

static void pace(struct pacer_hook *hook, uint64_t now_ns) {
  struct worker *worker = (struct worker *)((uint8_t *)hook - offsetof(struct worker, hook));
  for (int i = 0; i < BURST; i++) {
    uint64_t due_ns = pacing_is_over(worker) ? UINT64_MAX : slot_due_ns(worker);
    if (due_ns == UINT64_MAX) {
      hook->due_ns = UINT64_MAX;
      if (pacing_is_over(worker)) return;
      start_pacing(worker, worker->phase + 1);
      continue;
    }
    hook->due_ns = due_ns;
    if (due_ns > now_ns) return;
    hand_out(worker, now_ns);
    pacer_next(&worker->pacer);
    now_ns = clock_now_ns();
  }
}

/* Starts the closed loops of a phase; from then on answers keep them going. */
static void kick(struct pacer_hook *hook, uint64_t now_ns) {
  struct worker *worker = (struct worker *)((uint8_t *)hook - offsetof(struct worker, hook));
  hook->due_ns = UINT64_MAX;
  if (pacing_is_over(worker)) return;
  hook->due_ns = worker->control->start_ns[worker->phase];
  if (now_ns < hook->due_ns) return;
  for (int i = 0; i < BURST && worker->kicked < worker->count; i++)
    client_start_loop(worker_client(worker, worker->kicked++), (enum traffic_phase)worker->phase);
  if (worker->kicked < worker->count) return;
  start_pacing(worker, worker->phase + 1);
  hook->due_ns = pacing_is_over(worker) ? UINT64_MAX : worker->control->start_ns[worker->phase];
}

/* Spinning makes slots exact but takes the core from whatever else runs on it. */
static uint64_t spin_ns(const struct plan *plan) {
  struct rate_segment segment[WORKLOAD_STEPS_MAX];
  uint32_t segments = workload_segments(plan->workload, segment);
  double rate = 0;
  for (uint32_t i = 0; i < segments; i++)
    rate = fmax(rate, fmax(segment[i].from_per_sec, segment[i].to_per_sec));
  if (plan->closed || rate <= 0) return 0;
  double interval_ns = (double)NS_PER_SEC / rate * plan->workers;
  double spin = interval_ns / SPIN_SHARE;
  return spin > (double)SPIN_MAX_NS ? SPIN_MAX_NS : (uint64_t)spin;
}

/* What is sent to the receivers of a backlog run is theirs, whether they come for it or not. */
static bool is_owed(const struct worker *worker, const struct client *client) {
  bool waits = worker->plan->workload->backlog && client->index >= worker->plan->topology.senders;
  return waits || client->state == CLIENT_ESTABLISHED;
}

static void start_traffic(struct worker *worker) {
  for (uint32_t i = 0; i < worker->count; i++) {
    const struct client *client = &worker_client(worker, i)->base;
    if (!is_owed(worker, client)) continue;
    for (int phase = 0; phase < TRAFFIC_PHASES; phase++)
      ledger_established(worker->plan->shared.ledger[phase], topology_recipient(&worker->plan->topology, client->index),
          worker->control->start_ns[phase]);
  }
  worker->in_traffic = true;
  worker->unfinished = own_senders(worker);
  if (worker->unfinished == 0) worker->area->done_ns = worker->control->start_ns[TRAFFIC_MEASURE];
  start_pacing(worker, TRAFFIC_WARM_UP);
  worker->hook = (struct pacer_hook){worker->plan->closed ? kick : pace, 0};
  loop_set_pacer(worker->loop, &worker->hook, spin_ns(worker->plan));
}

bool worker_in_traffic(struct worker *worker) {
  if (worker->in_traffic) return true;
  enum stage stage = stage_of(worker);
  if (stage != STAGE_TRAFFIC && stage != STAGE_CATCH_UP) return false;
  start_traffic(worker);
  return true;
}

static uint64_t cpu_now_ns(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_SEC +
         (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

static uint64_t resident_bytes(void) {
  unsigned long total, resident;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file) return 0;
  int got = fscanf(file, "%lu %lu", &total, &resident); /* NOLINT(cert-err34-c): the kernel's own numbers */
  fclose(file);
  return got == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Pages that this process changed, and so has for itself; what it inherited from its parent is not among them. */
static uint64_t private_bytes(void) {
  char line[128];
  unsigned long long kib = 0;
  FILE *file = fopen("/proc/self/smaps_rollup", "re");
  if (!file) return 0;
  while (fgets(line, sizeof(line), file)) {
    if (sscanf(line, "Private_Dirty: %llu kB", &kib) == 1) break; /* NOLINT(cert-err34-c): the kernel's own numbers */
  }
  fclose(file);
  return kib * 1024;
}

/* What a worker keeps between the edges of the phases. */
struct window {
  bool started, ended, over;
  bool stormed;
  uint64_t started_ns, cpu_ns;
  uint64_t bytes_sent, bytes_received; /* by the driver, up to the last edge */
};

static void charge_bytes(struct worker *worker, struct window *window, enum traffic_phase phase) {
  uint64_t sent = worker->plan->run.bytes_sent;
  worker->area->tally[phase].bytes_sent += sent - window->bytes_sent;
  window->bytes_sent = sent;
  uint64_t received = worker->plan->run.bytes_received;
  worker->area->tally[phase].bytes_received += received - window->bytes_received;
  window->bytes_received = received;
}

/* Every client loses its connection, as when a gateway or a network dies. */
static void storm_if_due(struct worker *worker, struct window *window, uint64_t now_ns) {
  const struct workload *workload = worker->plan->workload;
  if (!workload->storm || workload->storm_by_server || window->stormed) return;
  if (now_ns < worker->control->start_ns[TRAFFIC_MEASURE] + workload->storm_at_ns) return;
  window->stormed = true;
  for (uint32_t i = 0; i < worker->count; i++)
    client_lose(worker_client(worker, i));
}

static void open_window(struct worker *worker, struct window *window, uint64_t now_ns) {
  window->started = true;
  charge_bytes(worker, window, TRAFFIC_WARM_UP);
  loop_stats_reset(worker->loop);
  window->started_ns = now_ns;
  window->cpu_ns = cpu_now_ns();
}

static void close_window(struct worker *worker, struct window *window, uint64_t now_ns) {
  struct worker_area *area = worker->area;
  window->ended = true;
  loop_stats(worker->loop, &area->measured);
  area->measured_ns = now_ns - window->started_ns;
  area->cpu_ns = cpu_now_ns() - window->cpu_ns;
  area->rss_bytes = resident_bytes();
}

/* Nothing more falls due, and what waits is not sent any more. */
static void end_sending(struct worker *worker) {
  for (uint32_t i = 0; i < worker->count; i++) {
    for (int phase = 0; phase < TRAFFIC_PHASES; phase++)
      client_give_up_backlog(worker_client(worker, i), (enum traffic_phase)phase, CAUSE_BLOCKED);
  }
  set_state(worker, WORKER_TRAFFIC_OVER);
}

/* What falls due in the course of the traffic, but for the publishes. */
static void keep_to_the_clock(struct worker *worker, struct window *window) {
  uint64_t now_ns = clock_now_ns();
  storm_if_due(worker, window, now_ns);
  if (!window->started && now_ns >= worker->control->start_ns[TRAFFIC_MEASURE]) open_window(worker, window, now_ns);
  if (now_ns < worker->control->end_ns[TRAFFIC_MEASURE]) return;
  if (window->started && !window->ended) {
    close_window(worker, window, now_ns);
    worker->area->private_bytes = private_bytes();
  }
  if (window->over || !pacing_is_over(worker)) return;
  window->over = true;
  end_sending(worker);
}

/* The receivers of a backlog run connect and read. */
static void catch_up(struct worker *worker) {
  start_connecting(worker, worker->count);
  while (stage_of(worker) == STAGE_CATCH_UP && !connecting_is_over(worker)) {
    go_on_connecting(worker);
    turn(worker);
  }
  if (connecting_is_over(worker)) set_state(worker, WORKER_CAUGHT_UP);
  while (stage_of(worker) == STAGE_CATCH_UP)
    turn(worker);
}

/* Warm-up, measure and grace, and what catches up with them; ends with the stage. */
static void carry_traffic(struct worker *worker) {
  const struct driver_run *driver_run = &worker->plan->run;
  struct window window = {.bytes_sent = driver_run->bytes_sent, .bytes_received = driver_run->bytes_received};
  if (!worker_in_traffic(worker)) return;
  while (stage_of(worker) == STAGE_TRAFFIC) {
    turn(worker);
    keep_to_the_clock(worker, &window);
  }
  if (stage_of(worker) == STAGE_CATCH_UP) catch_up(worker);
  charge_bytes(worker, &window, window.started ? TRAFFIC_MEASURE : TRAFFIC_WARM_UP);
  memcpy(worker->area->tally[TRAFFIC_MEASURE].extra, worker->plan->run.counted, sizeof(worker->plan->run.counted));
  if (window.started && !window.ended) close_window(worker, &window, clock_now_ns());
  worker->hook.due_ns = UINT64_MAX;
}

/* --- teardown --- */

static void tear_down(struct worker *worker) {
  bool abort = stage_of(worker) == STAGE_ABORT;
  bool good_bye = !abort && workload_online(worker->plan->workload) <= GOOD_BYE_CLIENTS;
  for (uint32_t i = 0; i < worker->started; i++)
    client_settle(worker_client(worker, i), abort ? CAUSE_INTERRUPTED : CAUSE_NO_ANSWER, good_bye);
  set_state(worker, WORKER_ENDED);
  /* Nothing is counted any more; the good-byes get a moment to leave. */
  uint64_t until_ns = clock_now_ns() + GOOD_BYE_NS;
  bool waiting = good_bye;
  while (waiting && clock_now_ns() < until_ns) {
    loop_turn(worker->loop, clock_now_ns() + IDLE_TURN_NS);
    waiting = false;
    for (uint32_t i = 0; i < worker->started && !waiting; i++)
      waiting = stream_pending(&worker_client(worker, i)->base.stream) > 0;
  }
  for (uint32_t i = 0; i < worker->started; i++)
    client_close(worker_client(worker, i));
}

/* --- the process --- */

/* Ends with its parent; leaves signals of the terminal to the control process; keeps none of its descriptors. */
static void become_worker(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGSEGV, SIG_DFL); /* a worker that crashes dies, whatever its parent does about its own crashes */
  signal(SIGBUS, SIG_DFL);
  close_range(3, ~0U, 0);
  /* A generator that waits for a core behind the server it measures would be late just when it matters. Without the
   * right to, it stays as it is, and the report says so. */
  setpriority(PRIO_PROCESS, 0, WORKER_NICE);
}

static enum status open_worker(struct worker *worker, struct err *err) {
  struct plan *plan = worker->plan;
  enum status status = loop_create(&worker->loop, err);
  if (status != STATUS_OK) return status;
  worker->area->nice = getpriority(PRIO_PROCESS, 0);
  worker->area->private_before_bytes = private_bytes();
  worker->stride = client_stride(plan->driver);
  worker->count = (workload_online(plan->workload) - worker->number + plan->workers - 1) / plan->workers;
  worker->clients = calloc(worker->count, worker->stride);
  if (!worker->clients) return err_set(err, STATUS_MEMORY, "out of memory for %u clients", worker->count);
  for (uint32_t i = 0; i < worker->count; i++) {
    struct load_client *client = worker_client(worker, i);
    client->worker = worker;
    client->base.index = worker->number + i * plan->workers;
    client->base.stream.watch.fd = -1;
  }
  worker->area->clients = worker->count;
  uint32_t share = plan->workload->connect_concurrency / plan->workers;
  worker->in_progress_max = share > 0 ? share : 1;
  rng_seed(&worker->rng, plan->workload->seed + 1000 + worker->number);
  return STATUS_OK;
}

void worker_main(struct plan *plan, uint32_t number) {
  become_worker();
  struct worker worker = {
      .plan = plan,
      .control = plan->shared.control,
      .area = &plan->shared.area[number],
      .series = plan->shared.series[number],
      .number = number,
  };
  struct err err = {0};
  if (open_worker(&worker, &err) != STATUS_OK) {
    snprintf(worker.area->error, sizeof(worker.area->error), "%.255s", err.text);
    return;
  }
  connect_all(&worker);
  if (stage_of(&worker) == STAGE_TRAFFIC) carry_traffic(&worker);
  tear_down(&worker);
  loop_destroy(worker.loop);
  free(worker.clients);
}
