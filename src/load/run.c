#include "load/run.h"

#include "base/clock.h"
#include "base/rng.h"
#include "load/client.h"
#include "load/describe.h"
#include "load/estimate.h"
#include "load/merge.h"
#include "load/observe.h"
#include "load/observe_read.h"
#include "load/settings.h"
#include "load/shared.h"
#include "load/worker.h"
#include "net/tls.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_TURN_MS 20
#define PROGRESS_NS (200 * NS_PER_MS)
#define LEAD_NS (50 * NS_PER_MS)          /* from the release to the first slot */
#define LEAD_PER_CLIENT_NS 500            /* workers note every established client before it */
#define WORKER_LAG_NS (3 * NS_PER_SEC)    /* how long a worker may be late before it counts as hung */
#define SECOND_LATE_NS NS_PER_SEC         /* a second's intervals are read that long after it is over */
#define STOPPED_GRACE_NS (2 * NS_PER_SEC) /* at most, of a storm that was interrupted */
#define SETTLE_NS (250 * NS_PER_MS)       /* a complete run waits that long for duplicates */

const char *run_phase_name(enum run_phase phase) {
  static const char *const names[] = {"setup", "connect", "warm-up", "measure", "grace", "catch-up", "teardown"};
  return names[phase];
}

struct process {
  pid_t pid;
  int pidfd;    /* -1 once reaped */
  bool settled; /* ended by itself with everything written */
};

struct run {
  const struct run_options *options;
  struct report *report;
  struct workload workload; /* with every default filled in */
  struct plan plan;
  struct process *process;
  bool *died;
  struct pollfd *poll;
  struct loop_look *look; /* at each worker, for the display */
  struct observer *observer;
  bool stormed;
  bool broken; /* a worker died: the run ends early */
  enum run_phase phase;
  uint64_t phase_started_ns, phase_length_ns, progress_ns;
  uint32_t seconds_taken;
  struct report_second shown; /* the last whole second, for the display */
  double fan_out;             /* deliveries that a publish should bring, on average */
  uint32_t shown_second;
  struct histogram clock[SERIES_CLOCKS]; /* of the second that was read last */
};

static int interrupted(const struct run *run) {
  return run->options->interrupted ? *run->options->interrupted : 0;
}

/* --- progress --- */

static uint64_t peek_codes(const struct codes *codes) {
  uint64_t sum = peek(&codes->others);
  for (uint32_t i = 0; i < CODES_MAX; i++)
    sum += peek(&codes->entry[i].count);
  return sum;
}

static void fill_counts(struct run *run, struct run_progress *progress) {
  int phase = run->phase >= RUN_MEASURE ? TRAFFIC_MEASURE : TRAFFIC_WARM_UP;
  for (uint32_t w = 0; run->plan.shared.memory && w < run->plan.workers; w++) {
    const struct worker_area *area = &run->plan.shared.area[w];
    const struct tally *connections = &area->tally[TRAFFIC_MEASURE];
    const struct tally *tally = &area->tally[phase];
    progress->established += peek(&connections->connections.established);
    progress->failed += peek_codes(&connections->connections.failed);
    progress->dropped += peek_codes(&connections->connections.dropped);
    progress->rejected += peek_codes(&tally->publishes.rejected);
    progress->timed_out += peek_codes(&tally->publishes.timed_out);
    progress->scheduled += peek(&tally->publishes.scheduled);
    progress->attempted += peek(&tally->publishes.attempted);
    progress->acked += peek(&tally->publishes.acked);
    progress->delivered += peek(&area->delivered[phase]);
    double share = loop_busy_share(&run->look[w], peek(&area->live.busy_ns), peek(&area->live.waited_ns));
    if (share > progress->worst_busy_share) progress->worst_busy_share = share;
  }
}

static void show(struct run *run, bool at_once) {
  uint64_t now_ns = clock_now_ns();
  if (!run->options->progress || (!at_once && now_ns < run->progress_ns + PROGRESS_NS)) return;
  run->progress_ns = now_ns;
  uint64_t elapsed_ns = now_ns > run->phase_started_ns ? now_ns - run->phase_started_ns : 0;
  struct run_progress progress = {
      .phase = run->phase,
      .phase_elapsed_s = (double)elapsed_ns / 1e9,
      .phase_length_s = (double)run->phase_length_ns / 1e9,
      .clients = run->phase < RUN_CATCH_UP ? workload_early(&run->workload) : workload_online(&run->workload),
      .has_acks = run->report->has_acks,
      .fan_out = run->fan_out,
      .ack_p50_ns = run->shown.ack.p50_ns,
      .ack_p99_ns = run->shown.ack.p99_ns,
      .delivery_p50_ns = run->shown.delivery.p50_ns,
      .delivery_p99_ns = run->shown.delivery.p99_ns,
  };
  fill_counts(run, &progress);
  run->options->progress(run->options->context, &progress);
}

static void enter(struct run *run, enum run_phase phase, uint64_t started_ns, uint64_t length_ns) {
  run->phase = phase;
  run->phase_started_ns = started_ns;
  run->phase_length_ns = length_ns;
  show(run, true);
}

/* --- workers --- */

static void reap(struct run *run, uint32_t i) {
  int status;
  struct process *process = &run->process[i];
  if (process->pidfd < 0 || waitpid(process->pid, &status, WNOHANG) != process->pid) return;
  close(process->pidfd);
  process->pidfd = -1;
  process->settled =
      WIFEXITED(status) && WEXITSTATUS(status) == 0 && atomic_load(&run->plan.shared.area[i].state) == WORKER_ENDED;
  if (process->settled) return;
  run->died[i] = true;
  run->broken = true;
}

/* Sleeps for a turn, or until a worker ends. */
static void control_turn(struct run *run) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < run->plan.workers; i++) {
    if (run->process[i].pidfd >= 0) run->poll[count++] = (struct pollfd){run->process[i].pidfd, POLLIN, 0};
  }
  const struct run_watch *watch = &run->options->watch;
  bool is_watched = watch->ready && watch->fd >= 0;
  if (is_watched) run->poll[count++] = (struct pollfd){watch->fd, POLLIN, 0};
  if (poll(run->poll, count, CONTROL_TURN_MS) > 0) {
    for (uint32_t i = 0; i < run->plan.workers; i++)
      reap(run, i);
    if (is_watched && run->poll[count - 1].revents) watch->ready(run->options->context);
  }
  observer_turn(run->observer, clock_now_ns());
  show(run, false);
}

static bool all_reached(const struct run *run, enum worker_state state) {
  for (uint32_t i = 0; i < run->plan.workers; i++) {
    if (!run->died[i] && atomic_load_explicit(&run->plan.shared.area[i].state, memory_order_acquire) < state) {
      return false;
    }
  }
  return true;
}

static void kill_workers(struct run *run, enum worker_state before) {
  for (uint32_t i = 0; i < run->plan.workers; i++) {
    struct process *process = &run->process[i];
    if (process->pidfd < 0 || atomic_load(&run->plan.shared.area[i].state) >= before) continue;
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
    close(process->pidfd);
    process->pidfd = -1;
    run->died[i] = true;
    run->broken = true;
  }
}

/* The measurement is settled in shared memory: what is left of the processes has nothing more to say. */
static void end_workers(struct run *run) {
  for (uint32_t i = 0; i < run->plan.workers; i++) {
    struct process *process = &run->process[i];
    if (process->pidfd < 0) continue;
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
    close(process->pidfd);
    process->pidfd = -1;
  }
}

static enum status fork_workers(struct run *run, struct err *err) {
  for (uint32_t i = 0; i < run->plan.workers; i++)
    run->process[i].pidfd = -1;
  for (uint32_t i = 0; i < run->plan.workers; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      worker_main(&run->plan, i);
      _exit(run->plan.shared.area[i].error[0] ? 1 : 0);
    }
    int pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
      int error = errno;
      if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
      }
      end_workers(run);
      return err_set(err, STATUS_IO, "cannot start worker %u of %u: %s", i + 1, run->plan.workers, strerror(error));
    }
    run->process[i] = (struct process){.pid = pid, .pidfd = pidfd};
  }
  return STATUS_OK;
}

static enum status observe(struct run *run, struct err *err) {
  pid_t *worker = calloc(run->plan.workers, sizeof *worker);
  if (!worker) return err_set(err, STATUS_MEMORY, "out of memory to observe the run");
  for (uint32_t i = 0; i < run->plan.workers; i++)
    worker[i] = run->process[i].pid;
  const struct observe_own own = {run->options->server_pid, worker, run->plan.workers};
  enum status status = observer_start(&run->observer, run->options->observe, &own, err);
  free(worker);
  if (status != STATUS_OK) end_workers(run);
  return status;
}

static void set_stage(struct run *run, enum stage stage) {
  atomic_store_explicit(&run->plan.shared.control->stage, stage, memory_order_release);
}

/* --- phases --- */

static double seconds_since(uint64_t from_ns, uint64_t to_ns) {
  return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static bool goes_on(const struct run *run) {
  return !run->broken && interrupted(run) == 0;
}

/* From the first worker's begin to the last worker's end; forks and this process's own turns are no connecting. */
static double connecting_s(const struct run *run) {
  uint64_t first_ns = UINT64_MAX, last_ns = 0;
  for (uint32_t i = 0; i < run->plan.workers; i++) {
    const struct worker_area *area = &run->plan.shared.area[i];
    uint64_t started_ns = peek(&area->connect_started_ns), ended_ns = peek(&area->connect_ended_ns);
    if (started_ns > 0 && started_ns < first_ns) first_ns = started_ns;
    if (ended_ns == 0) ended_ns = clock_now_ns();
    if (ended_ns > last_ns) last_ns = ended_ns;
  }
  return seconds_since(first_ns, last_ns);
}

static void connect_phase(struct run *run) {
  uint64_t limit_ns = run->plan.shared.control->connect_deadline_ns + WORKER_LAG_NS;
  while (goes_on(run) && !all_reached(run, WORKER_CONNECTED) && clock_now_ns() < limit_ns)
    control_turn(run);
  run->report->connect_s = connecting_s(run);
  if (goes_on(run)) kill_workers(run, WORKER_CONNECTED);
}

static uint64_t count_established(const struct run *run) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < run->plan.workers; i++)
    count += peek(&run->plan.shared.area[i].tally[TRAFFIC_MEASURE].connections.established);
  return count;
}

/* Traffic makes sense only with the population that was asked for, unless the user accepts less. */
static bool population_will_do(const struct run *run) {
  uint64_t established = count_established(run);
  return established == workload_early(&run->workload) || (run->workload.allow_partial && established > 0);
}

static void rfc3339(uint64_t at_ns, char *out, size_t size) {
  int64_t wall_ms = clock_wall_ms() - (int64_t)((clock_now_ns() - at_ns) / NS_PER_MS);
  time_t seconds = (time_t)(wall_ms / 1000);
  struct tm tm;
  char day[32];
  gmtime_r(&seconds, &tm);
  strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &tm);
  snprintf(out, size, "%s.%03dZ", day, (int)(wall_ms % 1000));
}

static void release_traffic(struct run *run) {
  struct control *control = run->plan.shared.control;
  uint64_t start_ns = clock_now_ns() + LEAD_NS + (uint64_t)workload_online(&run->workload) * LEAD_PER_CLIENT_NS;
  uint64_t measure_ns = start_ns + run->workload.warmup_ns;
  control->start_ns[TRAFFIC_WARM_UP] = start_ns;
  control->end_ns[TRAFFIC_WARM_UP] = measure_ns;
  control->start_ns[TRAFFIC_MEASURE] = measure_ns;
  control->end_ns[TRAFFIC_MEASURE] = measure_ns + run->workload.duration_ns;
  ledger_start(run->plan.shared.ledger[TRAFFIC_WARM_UP], start_ns);
  ledger_start(run->plan.shared.ledger[TRAFFIC_MEASURE], measure_ns);
  for (uint32_t i = 0; i < run->plan.workers; i++)
    series_start(run->plan.shared.series[i], measure_ns);
  observer_align(run->observer, measure_ns);
  set_stage(run, STAGE_TRAFFIC);
}

/* Hands a second on whose intervals were just read. */
static void tell_second(struct run *run, uint32_t second) {
  const struct run_seconds *seconds = &run->options->seconds;
  if (!seconds->over) return;
  const struct control *control = run->plan.shared.control;
  struct report *report = run->report;
  if (!report->measure_started_at[0]) {
    uint64_t start_ns = control->start_ns[TRAFFIC_MEASURE];
    rfc3339(start_ns, report->measure_started_at, sizeof(report->measure_started_at));
  }
  struct report_second figures = report->second[second];
  merge_counts(&run->plan, second, &figures);
  double left_s =
      seconds_since(control->start_ns[TRAFFIC_MEASURE] + second * NS_PER_SEC, control->end_ns[TRAFFIC_MEASURE]);
  const struct run_second told = {second, left_s < 1 ? left_s : 1, &figures, run->clock};
  seconds->over(seconds->context, report, &told);
}

/* Reads every second that is over for long enough, while the workers still hold it. */
static void take_seconds(struct run *run, uint64_t now_ns) {
  uint64_t start_ns = run->plan.shared.control->start_ns[TRAFFIC_MEASURE];
  struct report *report = run->report;
  while (run->seconds_taken < report->seconds &&
         now_ns >= start_ns + (run->seconds_taken + 1) * NS_PER_SEC + SECOND_LATE_NS) {
    uint32_t second = run->seconds_taken++;
    merge_second(&run->plan, second, run->clock, &report->second[second]);
    run->shown = report->second[second];
    uint64_t end_ns = run->plan.shared.control->end_ns[TRAFFIC_MEASURE];
    if (start_ns + second * NS_PER_SEC < end_ns) tell_second(run, second);
  }
}

static bool is_out_of_capacity(const struct run *run) {
  for (uint32_t i = 0; i < run->plan.workers; i++) {
    if (run->plan.shared.area[i].out_of_capacity) return true;
  }
  return false;
}

/* Closed loops end the measure phase when they are through, or when there is no room to account for more. */
static void end_loops(struct run *run) {
  struct control *control = run->plan.shared.control;
  if (plan_end_loops(&run->plan)) {
    run->report->ended_by = ENDED_BY_COUNT;
  } else if (is_out_of_capacity(run) && clock_now_ns() < control->end_ns[TRAFFIC_MEASURE]) {
    run->report->ended_by = ENDED_BY_CAPACITY;
    control->end_ns[TRAFFIC_MEASURE] = clock_now_ns();
  }
}

/* The server's part of a storm; the workers take it from there. */
static void storm_if_due(struct run *run) {
  const struct workload *workload = &run->workload;
  uint64_t due_ns = run->plan.shared.control->start_ns[TRAFFIC_MEASURE] + workload->storm_at_ns;
  if (!workload->storm_by_server || run->stormed || clock_now_ns() < due_ns) return;
  run->stormed = true;
  if (run->options->server_pid > 0) kill(run->options->server_pid, SIGUSR1);
}

/* Lets a phase run to its end, or cuts it short; the end moves to now, and what comes after it does not start. */
static void traffic_phase(struct run *run, enum traffic_phase phase) {
  struct control *control = run->plan.shared.control;
  uint64_t start_ns = control->start_ns[phase];
  enter(run, phase == TRAFFIC_WARM_UP ? RUN_WARM_UP : RUN_MEASURE, start_ns, control->end_ns[phase] - start_ns);
  while (goes_on(run) && clock_now_ns() < control->end_ns[phase]) {
    control_turn(run);
    take_seconds(run, clock_now_ns());
    if (phase == TRAFFIC_MEASURE) storm_if_due(run);
    if (phase == TRAFFIC_MEASURE && run->plan.closed) end_loops(run);
  }
  if (phase == TRAFFIC_MEASURE && run->plan.closed && goes_on(run)) end_loops(run); /* a worker may have ended it */
  if (goes_on(run)) return;
  run->report->ended_by = ENDED_BY_INTERRUPTION;
  uint64_t now_ns = clock_now_ns();
  for (int i = phase; i < TRAFFIC_PHASES; i++) {
    if (control->end_ns[i] > now_ns) control->end_ns[i] = now_ns;
  }
}

static bool everybody_is_back(const struct run *run) {
  uint64_t lost = 0, returned = 0;
  for (uint32_t i = 0; i < run->plan.workers; i++) {
    lost += peek(&run->plan.shared.area[i].storm.lost);
    returned += peek(&run->plan.shared.area[i].storm.returned);
  }
  return returned == lost;
}

/* Publishes that the server has answered, and those that it rejected or never answered. */
struct answers {
  uint64_t attempted, acked, failed;
};

static struct answers answers_of(const struct run *run, enum traffic_phase phase) {
  struct answers sum = {0};
  for (uint32_t i = 0; i < run->plan.workers; i++) {
    const struct tally *tally = &run->plan.shared.area[i].tally[phase];
    sum.attempted += peek(&tally->publishes.attempted);
    sum.acked += peek(&tally->publishes.acked);
    sum.failed += peek_codes(&tally->publishes.rejected) + peek_codes(&tally->publishes.timed_out);
  }
  return sum;
}

static bool everything_is_answered(const struct run *run) {
  if (!run->report->has_acks) return true;
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++) {
    struct answers answers = answers_of(run, (enum traffic_phase)phase);
    if (answers.acked + answers.failed < answers.attempted) return false;
  }
  return true;
}

/* All that is expected may have come and yet more come: again, or of a publish that was given up. Who asks for a grace
 * wants to see that. */
static bool more_may_come(const struct run *run) {
  if (!run->workload.grace_asked) return false;
  return run->plan.run.redelivers || answers_of(run, TRAFFIC_MEASURE).failed > 0;
}

static bool everything_came(const struct run *run) {
  if (!everybody_is_back(run) || !everything_is_answered(run)) return false;
  if (run->workload.backlog && run->phase < RUN_CATCH_UP) return true; /* nobody is there yet to whom it could come */
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++) {
    if (!ledger_is_complete(run->plan.shared.ledger[phase], run->report->has_acks)) return false;
  }
  return true;
}

/* The grace of a storm is long for those who are away; whoever stops the run does not want to wait for a dead server.
 */
static uint64_t grace_length_ns(const struct run *run) {
  bool hurries = run->report->interrupted && run->workload.storm && run->workload.grace_ns > STOPPED_GRACE_NS;
  return hurries ? STOPPED_GRACE_NS : run->workload.grace_ns;
}

/* Ends when everything came and no more is waited for (but a moment for duplicates), at the latest after the grace. */
static void grace_phase(struct run *run) {
  uint64_t started_ns = clock_now_ns(), length_ns = grace_length_ns(run);
  uint64_t end_ns = started_ns + length_ns, complete_ns = 0;
  enter(run, RUN_GRACE, started_ns, length_ns);
  while (!run->broken && interrupted(run) < 2 && clock_now_ns() < end_ns) {
    control_turn(run);
    take_seconds(run, clock_now_ns());
    bool complete = all_reached(run, WORKER_TRAFFIC_OVER) && everything_came(run) && !more_may_come(run);
    if (!complete) {
      complete_ns = 0;
    } else if (complete_ns == 0) {
      complete_ns = clock_now_ns();
    } else if (clock_now_ns() >= complete_ns + SETTLE_NS) {
      break;
    }
  }
  uint64_t late_ns = clock_now_ns() + WORKER_LAG_NS;
  while (!run->broken && interrupted(run) < 2 && !all_reached(run, WORKER_TRAFFIC_OVER) && clock_now_ns() < late_ns)
    control_turn(run);
  if (!run->broken && interrupted(run) < 2) kill_workers(run, WORKER_TRAFFIC_OVER);
  run->report->grace_s = seconds_since(started_ns, clock_now_ns());
}

/* Until every receiver has read to the end of what waited for it; whoever misses something then gets as long as the
 * grace for it. */
static void catch_up_phase(struct run *run) {
  uint64_t started_ns = clock_now_ns(), length_ns = run->workload.catch_up_deadline_ns;
  uint64_t limit_ns = started_ns + length_ns + WORKER_LAG_NS, end_ns = limit_ns, complete_ns = 0;
  run->plan.shared.control->connect_deadline_ns = started_ns + length_ns;
  enter(run, RUN_CATCH_UP, started_ns, length_ns);
  set_stage(run, STAGE_CATCH_UP);
  while (goes_on(run) && clock_now_ns() < end_ns) {
    control_turn(run);
    if (!all_reached(run, WORKER_CAUGHT_UP)) continue;
    uint64_t now_ns = clock_now_ns();
    if (end_ns == limit_ns) end_ns = now_ns + run->workload.grace_ns;
    if (complete_ns == 0 && everything_came(run) && !more_may_come(run)) end_ns = complete_ns = now_ns + SETTLE_NS;
  }
  if (goes_on(run)) kill_workers(run, WORKER_CAUGHT_UP);
  if (!all_reached(run, WORKER_CAUGHT_UP)) run->report->interrupted |= interrupted(run) > 0;
  run->report->catch_up_s = seconds_since(started_ns, clock_now_ns());
}

static void teardown_phase(struct run *run) {
  uint64_t deadline_ns = clock_now_ns() + run->workload.teardown_deadline_ns;
  enter(run, RUN_TEARDOWN, clock_now_ns(), run->workload.teardown_deadline_ns);
  set_stage(run, interrupted(run) >= 2 ? STAGE_ABORT : STAGE_TEARDOWN);
  bool running = true;
  while (running && clock_now_ns() < deadline_ns) {
    control_turn(run);
    if (interrupted(run) >= 2) set_stage(run, STAGE_ABORT);
    running = false;
    for (uint32_t i = 0; i < run->plan.workers; i++)
      running |= run->process[i].pidfd >= 0;
  }
  kill_workers(run, WORKER_ENDED);
  end_workers(run);
}

static void note_traffic_times(struct run *run) {
  const struct control *control = run->plan.shared.control;
  struct report *report = run->report;
  uint64_t start_ns = control->start_ns[TRAFFIC_MEASURE], end_ns = control->end_ns[TRAFFIC_MEASURE];
  report->warmup_s = seconds_since(control->start_ns[TRAFFIC_WARM_UP], control->end_ns[TRAFFIC_WARM_UP]);
  report->measure_s = seconds_since(start_ns, end_ns);
  if (report->measure_s <= 0) {
    report->seconds = 0;
    return;
  }
  if (!report->measure_started_at[0]) {
    rfc3339(start_ns, report->measure_started_at, sizeof(report->measure_started_at));
  }
  rfc3339(end_ns, report->measure_ended_at, sizeof(report->measure_ended_at));
  uint32_t seen = (uint32_t)ceil(report->measure_s);
  if (seen < report->seconds) report->seconds = seen;
}

/* The value of a "Name:   123 kB" line in bytes; 0: not there. */
static uint64_t kib_line_bytes(const char *path, const char *name) {
  char line[128];
  unsigned long long kib = 0;
  size_t len = strlen(name);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  while (kib == 0 && fgets(line, sizeof(line), file)) {
    if (strncmp(line, name, len) == 0 && line[len] == ':') kib = strtoull(line + len + 1, NULL, 10);
  }
  fclose(file);
  return kib * 1024;
}

static void sample_memory(struct run *run, bool before) {
  struct report_memory *memory = &run->report->memory;
  char path[64] = "";
  if (run->options->server_pid > 0) {
    snprintf(path, sizeof(path), "/proc/%ld/smaps_rollup", (long)run->options->server_pid);
  }
  uint64_t kernel = kib_line_bytes("/proc/meminfo", "Slab");
  uint64_t server = path[0] ? kib_line_bytes(path, "Private_Dirty") : 0;
  *(before ? &memory->kernel_before_bytes : &memory->kernel_held_bytes) = kernel;
  *(before ? &memory->server_before_bytes : &memory->server_held_bytes) = server;
}

/* A schedule that a number of publishes cut has that number of slots. */
static void note_end_by_count(struct run *run) {
  uint64_t limit = workload_limit(&run->workload);
  bool to_the_end = run->report->ended_by == ENDED_BY_TIME && !run->plan.closed;
  if (to_the_end && limit > 0 && run->plan.schedule[TRAFFIC_MEASURE].slots == limit) {
    run->report->ended_by = ENDED_BY_COUNT;
  }
}

static void run_phases(struct run *run) {
  connect_phase(run);
  run->report->interrupted = interrupted(run) > 0;
  if (goes_on(run) && population_will_do(run)) {
    release_traffic(run);
    traffic_phase(run, TRAFFIC_WARM_UP);
    double cpu_s = observe_process_cpu_s(run->options->server_pid);
    if (goes_on(run)) traffic_phase(run, TRAFFIC_MEASURE);
    note_end_by_count(run);
    sample_memory(run, false);
    run->report->interrupted = interrupted(run) > 0;
    grace_phase(run);
    run->report->server_cpu_s = observe_process_cpu_s(run->options->server_pid) - cpu_s;
    if (run->workload.backlog && goes_on(run)) catch_up_phase(run);
  }
  if (interrupted(run) >= 2) run->report->interrupted = true; /* 1 cuts neither the grace nor the teardown */
  observer_stop(run->observer, clock_now_ns());
  teardown_phase(run);
  note_traffic_times(run);
  for (uint32_t s = run->seconds_taken; s < run->report->seconds; s++) {
    merge_second(&run->plan, s, run->clock, &run->report->second[s]);
    tell_second(run, s);
  }
}

/* --- before and after --- */

static void raise_descriptor_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static uint64_t descriptor_limit(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

/* The length that a number of publishes gives to a schedule; it may be shorter than what was asked for. */
static enum status fill_duration(struct workload *workload, struct err *err) {
  if (workload_limit(workload) == 0 || workload_is_closed(workload)) return STATUS_OK;
  struct schedule schedule;
  enum status status = plan_schedule(workload, TRAFFIC_MEASURE, &schedule, err);
  if (status != STATUS_OK) return status;
  workload->duration_ns = schedule.length_ns;
  schedule_free(&schedule);
  return STATUS_OK;
}

static enum status fill_defaults(struct run *run, struct err *err) {
  struct workload *workload = &run->workload;
  *workload = *run->options->workload;
  workload->senders = topology_of(workload).senders;
  workload->workers = plan_workers(workload, descriptor_limit());
  if (workload->seed == 0) workload->seed = clock_now_ns() ^ (uint64_t)clock_wall_ms() << 20;
  settings_describe(workload, run->options->driver);
  if (workload_is_closed(workload)) workload->max_rate_per_sec = plan_max_rate(workload);
  return fill_duration(workload, err);
}

static void fill_settings(struct run *run) {
  const struct run_options *options = run->options;
  const struct workload *workload = &run->workload;
  struct driver_settings *settings = &run->plan.run.settings;
  uint64_t run_id;
  random_bytes(&run_id, sizeof(run_id));
  *settings = (struct driver_settings){
      .target = options->target,
      .app_key = options->app_key,
      .secret = options->secret,
      .api_url = options->api_url,
      .navigator_url = workload->navigator_url,
      .run_id = run_id,
      .clients = workload->clients,
      .workers = workload->workers,
      .groups = workload->topology == TOPOLOGY_GROUPS ? run->plan.topology.groups : 0,
      .shared_groups = workload->shared_groups,
      .room_members = workload->topology == TOPOLOGY_ROOM ? workload->clients : 0,
      .backlog = workload->backlog,
      .queues = workload->topology == TOPOLOGY_QUEUE ? topology_of(workload).groups : 0,
      .pure_senders =
          workload->topology == TOPOLOGY_STAR || workload->topology == TOPOLOGY_QUEUE ? workload->senders : 0,
      .broadcast = workload->topology == TOPOLOGY_BROADCAST,
      .setup_concurrency = workload->setup_concurrency,
      .keep_alive_ns = workload->keep_alive_ns,
      .payload_bytes = workload->payload_bytes,
      .deadline_ns = clock_now_ns() + workload->setup_deadline_ns,
      .store = workload->store,
      .count = workload->count,
      .obfuscate = workload->obfuscate,
      .tls_verify = !workload->tls_insecure,
      .tls_ca_file = workload->tls_ca_file,
      .origin = workload->origin,
      .tls_certificate_file = workload->tls_certificate_file,
      .tls_key_file = workload->tls_key_file,
      .user = workload->user,
      .password = options->password,
      .mqtt = settings_mqtt(workload),
      .ricochet = settings_ricochet(workload),
      .seed = workload->seed,
      .interrupted = options->interrupted,
  };
  snprintf(run->report->run_id, sizeof(run->report->run_id), "muster-%016" PRIx64, run_id);
}

static bool is_ipv4_loopback(const struct address *address) {
  return address->storage.ss_family == AF_INET && address_is_loopback(address);
}

/* A loopback target is reached from as many addresses as the population needs; any other one from what was given. */
static enum status choose_addresses(struct run *run, struct err *err) {
  struct address_ranges *sources = &run->plan.sources, *targets = &run->plan.targets;
  const struct workload *w = &run->workload;
  enum status status = w->target_addresses ? address_ranges_parse(w->target_addresses, targets, err) : STATUS_OK;
  if (status != STATUS_OK) return status;
  const struct address to = targets->count ? targets->range[0].first : run->plan.run.address;
  uint32_t needed = client_source_addresses(workload_online(w), targets->count ? targets->count : 1);
  if (!w->local_addresses) {
    if (needed > 1 && is_ipv4_loopback(&to)) address_ranges_loopback(sources, needed);
    return STATUS_OK;
  }
  status = address_ranges_parse(w->local_addresses, sources, err);
  if (status != STATUS_OK || sources->range[0].first.storage.ss_family == to.storage.ss_family) return status;
  return err_set(err, STATUS_USAGE, "--local-addr %.80s: the server's address is of the other family (IPv4, IPv6)",
      w->local_addresses);
}

static enum status set_up(struct run *run, struct err *err) {
  struct plan *plan = &run->plan;
  uint64_t started_ns = clock_now_ns();
  enter(run, RUN_SETUP, started_ns, run->workload.setup_deadline_ns);
  fill_settings(run);
  enum status status = url_parse(run->options->target, &plan->run.settings.url, err);
  if (status != STATUS_OK) return status;
  const struct driver *driver = plan->driver;
  plan->run.driver = driver;
  plan->run.capabilities = driver->capabilities;
  plan->run.title = driver->title;
  plan->run.counters = driver->counters;
  plan->run.ack_meaning = driver->ack_meaning;
  plan->run.delivery = driver->delivery;
  status = driver->prepare(&plan->run, err);
  run->report->setup_s = seconds_since(started_ns, clock_now_ns());
  if (status != STATUS_OK) return status;
  if (run->workload.allow_non_loopback || address_is_loopback(&plan->run.address)) return STATUS_OK;
  plan->driver->release(&plan->run);
  return err_set(
      err, STATUS_USAGE, "the clients would connect to another machine: give --allow-non-loopback if you may");
}

static enum status allocate(struct run *run, struct err *err) {
  uint32_t workers = run->plan.workers;
  struct report *report = run->report;
  report->seconds = plan_seconds(&run->workload);
  report->second = calloc(report->seconds, sizeof(*report->second));
  run->process = calloc(workers, sizeof(*run->process));
  run->died = calloc(workers, sizeof(*run->died));
  run->poll = calloc(workers + 1, sizeof(*run->poll)); /* the watched descriptor's too */
  run->look = calloc(workers, sizeof(*run->look));
  if (report->second && run->process && run->died && run->poll && run->look) return STATUS_OK;
  return err_set(err, STATUS_MEMORY, "out of memory for the run");
}

/* No client came in: the target is unreachable or refuses us, and the most frequent cause says why. */
static enum status check_reached(const struct run *run, struct err *err) {
  const struct report *report = run->report;
  const struct codes *failed = &report->measure.connections.failed;
  if (report->measure.connections.established > 0 || run->broken) return STATUS_OK;
  if (interrupted(run)) return err_set(err, STATUS_INTERRUPTED, "stopped before any client was connected");
  if (failed->used == 0) return STATUS_OK;
  return describe_unreached(&run->plan, report, err);
}

static enum status carry_out(struct run *run, struct err *err) {
  struct control *control = run->plan.shared.control;
  uint64_t now_ns = clock_now_ns();
  control->connect_deadline_ns = now_ns + run->workload.connect_deadline_ns;
  enum status status = choose_addresses(run, err);
  sample_memory(run, true);
  if (status == STATUS_OK) status = fork_workers(run, err);
  if (status == STATUS_OK) status = observe(run, err);
  if (status != STATUS_OK) return status;
  enter(run, RUN_CONNECT, now_ns, run->workload.connect_deadline_ns);
  run_phases(run);
  observer_finish(run->observer, run->report);
  describe_target(&run->plan, run->options->target, run->report);
  describe_limitations(&run->plan, run->report);
  status = merge_report(&run->plan, run->died, run->report, err);
  if (status != STATUS_OK) return status;
  describe_rejections(run->report);
  for (uint32_t i = 0; i < run->plan.workers; i++) {
    const char *error = run->plan.shared.area[i].error;
    if (error[0]) return err_set(err, STATUS_IO, "worker %u: %s", i, error);
  }
  if (interrupted(run) >= 2 && run->report->measure_s <= 0) {
    return err_set(err, STATUS_INTERRUPTED, "stopped before anything was measured");
  }
  return check_reached(run, err);
}

/* What the driver found out about this run decides who answers and who hears. */
static enum status settle_answers(struct run *run, struct err *err) {
  struct plan *plan = &run->plan;
  plan->topology = topology_with(&run->workload, plan->run.capabilities);
  plan->answer = topology_answer(&plan->topology, plan->run.capabilities);
  run->report->has_acks = plan->answer == ANSWER_ACK;
  if (topology_capability(plan->topology.kind) & ~plan->run.capabilities) {
    return err_set(err, STATUS_USAGE, "%s has no %s with the settings of this --target: see docs/drivers.md",
        plan->run.title, topology_messages(plan->topology.kind));
  }
  if (!plan->closed || plan->answer != ANSWER_NONE) return STATUS_OK;
  return err_set(err, STATUS_USAGE, "%s answers nothing, so there is no closed loop: give --rate", plan->run.title);
}

/* What one publish should bring, whatever makes publishes fall due. */
static double average_fan_out(const struct workload *workload, const struct driver *driver) {
  struct workload shape = *workload;
  struct totals totals;
  shape.load = LOAD_OPEN;
  shape.rate_per_sec = 10000;
  shape.ramp_to_per_sec = 0;
  shape.duration_ns = NS_PER_SEC;
  shape.steps = shape.rounds = shape.publishes = 0;
  estimate_totals(&shape, settings_capabilities(workload, driver), &totals);
  return totals.publishes > 0 ? (double)totals.deliveries / (double)totals.publishes : 0;
}

static enum status execute(struct run *run, struct err *err) {
  struct plan *plan = &run->plan;
  rfc3339(clock_now_ns(), run->report->started_at, sizeof(run->report->started_at));
  raise_descriptor_limit();
  enum status status = fill_defaults(run, err);
  if (status != STATUS_OK) return status;
  run->report->workload = run->workload;
  run->report->code_text = run->options->driver->code_text;
  run->report->server_counters = run->options->driver->counters;
  report_environment_read(&run->report->environment);
  plan->workload = &run->workload;
  plan->driver = run->options->driver;
  plan->topology = topology_of(&run->workload);
  plan->closed = workload_is_closed(&run->workload);
  plan->workers = run->workload.workers;
  status = allocate(run, err);
  if (status == STATUS_OK) status = observer_check(run->options->observe, err);
  if (status == STATUS_OK) status = set_up(run, err);
  if (status != STATUS_OK) return status;
  status = settle_answers(run, err);
  run->fan_out = average_fan_out(&run->workload, run->options->driver);
  if (status == STATUS_OK) status = plan_make(plan, err);
  if (status == STATUS_OK) status = carry_out(run, err);
  plan_free(plan);
  plan->driver->release(&plan->run);
  if (plan->run.left_behind > 0) describe_left_behind(run->report);
  return status;
}

enum status run_execute(const struct run_options *options, struct report *report, struct err *err) {
  struct err unread;
  if (!err) err = &unread;
  *report = (struct report){0};
  enum status status = run_check(options->workload, options->driver, err);
  if (status != STATUS_OK) return status;
  struct run *run = calloc(1, sizeof(*run));
  if (!run) return err_set(err, STATUS_MEMORY, "out of memory for the run");
  run->options = options;
  run->report = report;
  status = execute(run, err);
  free(run->process);
  free(run->died);
  free(run->look);
  free(run->poll);
  free(run);
  if (status != STATUS_OK) report_free(report);
  return status;
}
