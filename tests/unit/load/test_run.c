// parts: traffic losses failures returns loops
/* Whole runs against a small server of this test that breaks what it is told to break, in exact numbers: every fault
 * must come back in the report as just the counter that names it, and nothing else may move. */
#include "base/clock.h"
#include "load/run.h"
#include "unit/load/faulty_server.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* How long a run waits for what never comes: the server may be without a core as long and nothing else is lost. */
#define PATIENCE_NS (3 * NS_PER_SEC)
#define IN_TIME_NS (20 * NS_PER_SEC) /* a deadline that nothing waits for */

/* --- the runs --- */

struct trial {
  struct workload workload;
  struct faults faults;
  /* What happens to the run as it goes on, told by the progress display; what it waits for are counts, not moments. */
  void (*step)(struct trial *trial, const struct run_progress *progress);
  bool stopped, resumed;    /* the server, by the step */
  uint32_t outstanding_max; /* 0: the driver's */
  bool windowed;            /* the driver takes one publish at a time */
  bool slow;                /* it takes 10 ms for each */
  volatile int interrupted;
  pid_t server;
  struct report report;
  struct err err;
};

static pid_t a_worker(pid_t not_this) {
  char path[64];
  int pid, found = 0;
  snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
  FILE *file = fopen(path, "re");
  assert_non_null(file);
  while (fscanf(file, "%d", &pid) == 1) {
    if (pid != not_this) found = pid;
  }
  fclose(file);
  return found;
}

static void on_progress(void *context, const struct run_progress *progress) {
  struct trial *trial = context;
  if (trial->step) trial->step(trial, progress);
}

static void stop_the_server(struct trial *trial) {
  trial->stopped = true;
  kill(trial->server, SIGSTOP);
}

static void resume_the_server(struct trial *trial) {
  trial->resumed = true;
  kill(trial->server, SIGCONT);
}

static struct trial *trial_of(enum topology_kind topology) {
  struct trial *trial = calloc(1, sizeof(*trial));
  trial->faults.refuse_client = -1;
  trial->workload = (struct workload){
      .name = "test",
      .target = "test://127.0.0.1:1",
      .topology = topology,
      .clients = CLIENTS,
      .senders = 3,
      .rate_per_sec = 500,
      .warmup_ns = 200 * NS_PER_MS,
      .duration_ns = NS_PER_SEC,
      .grace_ns = IN_TIME_NS,
      .setup_deadline_ns = IN_TIME_NS,
      .connect_deadline_ns = IN_TIME_NS,
      .ack_timeout_ns = IN_TIME_NS,
      .teardown_deadline_ns = IN_TIME_NS,
      .payload_bytes = PAYLOAD,
      .connect_concurrency = 4,
      .setup_concurrency = 1,
      .workers = 2,
      .seed = 1,
  };
  return trial;
}

static enum status carry_out(struct trial *trial) {
  int ready[2];
  struct address bound;
  assert_int_equal(pipe(ready), 0);
  assert_int_equal(address_resolve("127.0.0.1", 0, &server_address, NULL), STATUS_OK);
  trial->server = fork();
  if (trial->server == 0) serve(&trial->faults, ready[1]);
  assert_int_equal(read(ready[0], &bound, sizeof(bound)), sizeof(bound));
  server_address = bound;
  close(ready[0]);
  close(ready[1]);
  struct driver driver = test_driver;
  if (trial->outstanding_max > 0) driver.outstanding_max = trial->outstanding_max;
  if (trial->windowed) driver.publish = publish_in_window;
  if (trial->slow) driver.publish = publish_slowly;
  struct run_options options = {
      .workload = &trial->workload,
      .driver = &driver,
      .target = trial->workload.target,
      .interrupted = &trial->interrupted,
      .progress = on_progress,
      .context = trial,
  };
  enum status status = run_execute(&options, &trial->report, &trial->err);
  kill(trial->server, SIGKILL);
  waitpid(trial->server, NULL, 0);
  assert_int_equal(a_worker(0), 0); /* no process is left behind */
  if (status == STATUS_OK) {
    assert_int_equal(tally_check(&trial->report.measure, trial->report.has_acks, NULL), STATUS_OK);
    assert_int_equal(tally_check(&trial->report.warmup, trial->report.has_acks, NULL), STATUS_OK);
  }
  return status;
}

static void end(struct trial *trial) {
  report_free(&trial->report);
  free(trial);
}

struct wanted {
  uint64_t attempted, acked, rejected, timed_out, expected, observed, lost, duplicate, reordered, corrupt, unexpected,
      unacked_delivered;
};

/* Runs and compares; N publishes to one recipient each, unless said otherwise. */
static void check(struct trial *trial, const struct wanted *wanted) {
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(measure->connections.established, CLIENTS);
  assert_int_equal(codes_total(&measure->connections.dropped), 0);
  assert_int_equal(measure->publishes.scheduled, 500);
  assert_int_equal(measure->publishes.attempted, wanted->attempted);
  assert_int_equal(measure->publishes.acked, wanted->acked);
  assert_int_equal(codes_total(&measure->publishes.rejected), wanted->rejected);
  assert_int_equal(codes_total(&measure->publishes.timed_out), wanted->timed_out);
  assert_int_equal(measure->deliveries.expected, wanted->expected);
  assert_int_equal(measure->deliveries.observed, wanted->observed);
  assert_int_equal(measure->deliveries.lost, wanted->lost);
  assert_int_equal(measure->deliveries.duplicate, wanted->duplicate);
  assert_int_equal(measure->deliveries.reordered, wanted->reordered);
  assert_int_equal(measure->deliveries.corrupt, wanted->corrupt);
  assert_int_equal(measure->deliveries.unexpected, wanted->unexpected);
  assert_int_equal(measure->deliveries.unacked_delivered, wanted->unacked_delivered);
  const struct tally *warmup = &trial->report.warmup;
  assert_int_equal(warmup->publishes.acked, 100);
  assert_int_equal(warmup->deliveries.observed, warmup->deliveries.expected);
  end(trial);
}

static void test_clean_ring(void **state) {
  (void)state;
  check(trial_of(TOPOLOGY_RING), &(struct wanted){.attempted = 500, .acked = 500, .expected = 500, .observed = 500});
}

static void test_clean_group(void **state) {
  (void)state;
  check(
      trial_of(TOPOLOGY_GROUPS), &(struct wanted){.attempted = 500, .acked = 500, .expected = 4500, .observed = 4500});
}

static void test_loss(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.lose = 10;
  trial->workload.grace_ns = PATIENCE_NS;
  check(trial, &(struct wanted){.attempted = 500, .acked = 500, .expected = 500, .observed = 450, .lost = 50});
}

static void test_loss_in_a_group(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_GROUPS);
  trial->faults.lose = 100;
  trial->workload.grace_ns = PATIENCE_NS;
  check(trial, &(struct wanted){.attempted = 500, .acked = 500, .expected = 4500, .observed = 4455, .lost = 45});
}

static void test_duplicates(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.duplicate = 25;
  check(trial, &(struct wanted){.attempted = 500, .acked = 500, .expected = 500, .observed = 500, .duplicate = 20});
}

static void test_overlaps_are_no_duplicates(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.duplicate = 25;
  overlaps = true;
  assert_int_equal(carry_out(trial), STATUS_OK);
  overlaps = false;
  assert_int_equal(trial->report.measure.deliveries.observed, 500);
  assert_int_equal(trial->report.measure.deliveries.duplicate, 0);
  assert_int_equal(trial->report.measure.deliveries.overlap, 20);
  end(trial);
}

static void test_corruption(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.corrupt = 50;
  trial->workload.grace_ns = PATIENCE_NS;
  check(trial,
      &(struct wanted){.attempted = 500, .acked = 500, .expected = 500, .observed = 490, .lost = 10, .corrupt = 10});
}

static void test_reordering(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.hold = 12; /* of the 50 of each sender; the last held one, the 48th, still has a follower */
  check(trial, &(struct wanted){.attempted = 500, .acked = 500, .expected = 500, .observed = 500, .reordered = 40});
}

static void test_rejections(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.reject = 5;
  check(trial, &(struct wanted){.attempted = 500, .acked = 400, .rejected = 100, .expected = 400, .observed = 400});
}

static void test_delivered_though_rejected(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.reject_but_deliver = 5;
  check(trial,
      &(struct wanted){
          .attempted = 500, .acked = 400, .rejected = 100, .expected = 400, .observed = 400, .unacked_delivered = 100});
}

static void test_no_answers(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.no_answer = 20;
  trial->workload.ack_timeout_ns = PATIENCE_NS;
  check(trial,
      &(struct wanted){
          .attempted = 500, .acked = 475, .timed_out = 25, .expected = 475, .observed = 475, .unacked_delivered = 25});
}

/* What comes again a second after all is over, or of publishes that were rejected. */
static void check_grace(bool asked, bool redelivers, uint32_t reject, uint64_t duplicate, uint64_t unacked_delivered) {
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.reject = reject;
  trial->faults.repeat_after = 500;
  trial->workload.grace_ns = PATIENCE_NS;
  trial->workload.grace_asked = asked;
  server_redelivers = redelivers;
  assert_int_equal(carry_out(trial), STATUS_OK);
  server_redelivers = false;
  assert_int_equal(trial->report.measure.deliveries.duplicate, duplicate);
  assert_int_equal(trial->report.measure.deliveries.unacked_delivered, unacked_delivered);
  end(trial);
}

static void test_a_grace_that_was_asked_for_is_kept(void **state) {
  (void)state;
  check_grace(true, true, 0, 500, 0);
  check_grace(true, false, 5, 400, 100);
  check_grace(true, false, 0, 0, 0); /* nothing more may come */
  check_grace(false, true, 5, 0, 0);
}

/* A client that publishes nothing has no ACK to get: one that reaches it must not settle another's publish. */
static void test_acks_for_somebody_else(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_GROUPS);
  trial->faults.ack_elsewhere = true;
  trial->workload.grace_ns = PATIENCE_NS;
  check(trial, &(struct wanted){.attempted = 500,
                   .acked = 334,
                   .timed_out = 166,
                   .expected = (uint64_t)334 * (CLIENTS - 1),
                   .observed = (uint64_t)334 * (CLIENTS - 1)});
}

static void test_replies_that_nobody_reads_do_not_gather(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.deaf_client = 1;
  trial->workload.workers = 1;
  trial->workload.ack_timeout_ns = 300 * NS_PER_MS;
  trial->workload.grace_ns = PATIENCE_NS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_true(trial->report.worker[0].rss_bytes > 0);
  assert_true(trial->report.worker[0].rss_bytes < UINT64_C(128) << 20);
  end(trial);
}

static void test_foreign_messages(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.foreign = 50;
  check(trial, &(struct wanted){.attempted = 500, .acked = 500, .expected = 500, .observed = 500, .unexpected = 10});
}

static void test_partial_population_gets_no_traffic(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.refuse_client = 4;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(measure->connections.attempted, CLIENTS);
  assert_int_equal(measure->connections.established, CLIENTS - 1);
  assert_int_equal(codes_count(&measure->connections.failed, CAUSE_CLOSED_EARLY), 1);
  assert_int_equal(measure->publishes.scheduled, 0);
  report_judge(&trial->report);
  assert_int_equal(trial->report.verdict, VERDICT_INVALID);
  end(trial);
}

static void test_accepted_partial_population(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.refuse_client = 4;
  trial->workload.allow_partial = true;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(measure->publishes.scheduled, 500);
  assert_int_equal(codes_count(&measure->publishes.unsent, CAUSE_NOT_CONNECTED), 50);
  assert_int_equal(measure->publishes.acked, 450);
  assert_int_equal(measure->deliveries.expected, 400); /* nobody expects what goes to client 4 */
  assert_int_equal(measure->deliveries.observed, 400);
  end(trial);
}

static void test_nobody_is_let_in(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.refuse_all = true;
  assert_int_equal(carry_out(trial), STATUS_UNREACHABLE);
  assert_non_null(strstr(trial->err.text, "closed_early"));
  end(trial);
}

static void test_silent_server(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.silent = true;
  trial->workload.connect_deadline_ns = NS_PER_SEC;
  assert_int_equal(carry_out(trial), STATUS_UNREACHABLE);
  assert_non_null(strstr(trial->err.text, "connect_timeout"));
  end(trial);
}

/* What client 4 had written and got no answer to is lost with its connection, what fell due later is unsent. */
static void test_dropped_connection(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.hang_up_at = 10;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  uint64_t lost = codes_count(&measure->publishes.timed_out, CAUSE_CONNECTION_LOST);
  uint64_t unsent = codes_count(&measure->publishes.unsent, CAUSE_NOT_CONNECTED);
  assert_int_equal(codes_total(&measure->connections.dropped), 1);
  assert_int_equal(measure->publishes.scheduled, 500);
  assert_int_equal(measure->publishes.acked + lost + unsent, 500);
  assert_true(lost >= 1);
  assert_in_range(lost + unsent, 50 - 9, 50);
  report_judge(&trial->report);
  assert_int_equal(trial->report.verdict, VERDICT_INVALID);
  end(trial);
}

static void stop_at_once(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase == RUN_MEASURE && !trial->stopped) stop_the_server(trial);
}

static void test_stopped_server_is_reported(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->step = stop_at_once;
  trial->workload.grace_ns = 300 * NS_PER_MS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_true(trial->stopped);
  assert_int_equal(measure->publishes.scheduled, 500); /* the schedule takes no notice */
  assert_int_equal(measure->publishes.attempted, 500);
  assert_true(codes_count(&measure->publishes.timed_out, CAUSE_NO_ANSWER) > 0);
  end(trial);
}

static void stop_until_the_grace(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase == RUN_GRACE && !trial->resumed) resume_the_server(trial);
  if (progress->phase != RUN_MEASURE) return;
  if (!trial->stopped && progress->acked >= 50) stop_the_server(trial);
  if (trial->stopped && progress->attempted >= progress->acked + 100) trial->interrupted = 1;
}

/* A server that catches up in the grace answers everything, and has yet not kept up with the rate. */
static void test_rates_end_with_the_phase(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  trial->step = stop_until_the_grace;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  uint64_t attempted = measure->publishes.attempted;
  assert_true(trial->resumed);
  assert_int_equal(measure->publishes.acked, attempted);
  assert_int_equal(measure->deliveries.observed, attempted);
  assert_in_range(measure->publishes.acked_late, 100, attempted - 50);
  assert_in_range(measure->deliveries.late, 100, attempted - 1);
  struct report_second all = {0};
  for (uint32_t s = 0; s < trial->report.seconds; s++) {
    all.attempted += trial->report.second[s].attempted;
    all.acked += trial->report.second[s].acked;
    all.delivered += trial->report.second[s].delivered;
    all.ack.count += trial->report.second[s].ack.count;
  }
  assert_int_equal(all.attempted, attempted);
  assert_int_equal(all.acked, attempted - measure->publishes.acked_late);
  assert_int_equal(all.delivered, attempted - measure->deliveries.late);
  assert_int_equal(all.ack.count, all.acked);
  report_judge(&trial->report);
  assert_true(trial->report.acks_per_second < trial->report.attempts_per_second);
  assert_true(trial->report.deliveries_per_second < trial->report.attempts_per_second);
  end(trial);
}

/* Before the first message, where there is no warm-up. */
static void stop_before_the_start(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase == RUN_WARM_UP && !trial->stopped) stop_the_server(trial);
}

static void stop_until_much_timed_out(struct trial *trial, const struct run_progress *progress) {
  stop_before_the_start(trial, progress);
  if (progress->phase == RUN_GRACE && !trial->resumed) resume_the_server(trial);
  if (progress->phase == RUN_MEASURE && progress->timed_out >= 50) trial->interrupted = 1;
}

/* What comes late of publishes that were given up is no late delivery: it is none that was expected. */
static void test_late_ones_are_among_the_observed(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->workload.warmup_ns = 0;
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  trial->workload.ack_timeout_ns = 500 * NS_PER_MS;
  trial->step = stop_until_much_timed_out;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_true(measure->deliveries.unacked_delivered >= 50);
  assert_int_equal(measure->deliveries.observed + measure->deliveries.unacked_delivered, measure->publishes.attempted);
  assert_int_equal(measure->deliveries.late, measure->deliveries.observed);
  end(trial);
}

/* Stops the server, lets a hundred publishes wait for it, and ends the phase when all of them have left. */
static void pause_for_a_backlog(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase != RUN_MEASURE) return;
  uint64_t waiting = progress->scheduled - progress->attempted;
  if (!trial->stopped && progress->acked >= 50) {
    stop_the_server(trial);
  } else if (trial->stopped && !trial->resumed && waiting >= 100) {
    resume_the_server(trial);
  } else if (trial->resumed && waiting < 10) {
    trial->interrupted = 1;
  }
}

/* A pause of the server with one publish outstanding per sender: what falls due meanwhile waits, keeps its scheduled
 * time, and leaves in order when the server goes on. */
static void check_backlog(enum arrivals arrivals) {
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->step = pause_for_a_backlog;
  trial->outstanding_max = 1;
  trial->workload.arrivals = arrivals;
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(trial->interrupted, 1);
  uint64_t unsent = codes_count(&measure->publishes.unsent, CAUSE_BLOCKED); /* in the moment of the interruption */
  assert_int_equal(measure->publishes.attempted + unsent, measure->publishes.scheduled);
  assert_int_equal(measure->publishes.acked, measure->publishes.attempted);
  assert_int_equal(measure->deliveries.observed, measure->publishes.attempted);
  assert_int_equal(measure->deliveries.reordered, 0);
  /* The stall shows in what the user would feel, and not in what the server did for one message. */
  assert_true(trial->report.clock[CLOCK_SCHEDULE_LAG]->max_ns > (int64_t)(100 * NS_PER_MS));
  assert_true(trial->report.clock[CLOCK_ACK]->sum_ns > trial->report.clock[CLOCK_ACK_SERVICE]->sum_ns * 2);
  end(trial);
}

static void test_backlog_leaves_in_order(void **state) {
  (void)state;
  check_backlog(ARRIVALS_CONSTANT);
  check_backlog(ARRIVALS_POISSON);
}

/* What a generator does not come to, no server held up. */
static void test_an_overloaded_generator_takes_the_blame(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->slow = true;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(measure->publishes.scheduled, 500);
  assert_true(codes_count(&measure->publishes.unsent, CAUSE_GENERATOR_LATE) > 0);
  assert_int_equal(codes_count(&measure->publishes.unsent, CAUSE_BLOCKED), 0);
  report_judge(&trial->report);
  assert_int_equal(trial->report.verdict, VERDICT_INVALID);
  for (uint32_t i = 0; i < trial->report.reasons; i++)
    assert_int_not_equal(trial->report.blame[i], BLAME_SERVER);
  end(trial);
}

static void interrupt_when_acked(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase == RUN_MEASURE && progress->acked >= 100) trial->interrupted = 1;
}

static void test_interrupted_run_reports(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->step = interrupt_when_acked;
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report *report = &trial->report;
  assert_true(report->interrupted);
  assert_true(report->measure_s > 0.1 && report->measure_s < 60);
  assert_true(report->measure.publishes.acked >= 100);
  assert_int_equal(report->measure.deliveries.lost, 0);
  assert_int_equal(report->seconds, (uint32_t)report->measure_s + 1);
  end(trial);
}

static void give_up_when_acked(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase == RUN_MEASURE && progress->acked > 0) trial->interrupted = 2;
}

static void test_given_up_run_ends(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->step = give_up_when_acked;
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  assert_int_equal(carry_out(trial), STATUS_OK); /* something was measured */
  assert_true(trial->report.interrupted);
  end(trial);
}

static void kill_a_worker(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase != RUN_MEASURE || trial->stopped) return;
  trial->stopped = true;
  kill(a_worker(trial->server), SIGKILL);
}

static void test_dead_worker_is_reported(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->step = kill_a_worker;
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report *report = &trial->report;
  assert_true(report->measure_s < 60);
  assert_int_equal(report->worker[0].died + report->worker[1].died, 1);
  report_judge(&trial->report);
  assert_int_equal(trial->report.verdict, VERDICT_INVALID);
  end(trial);
}

/* A worker that does not come to look whether the traffic has begun finds messages of it first. */
static void test_late_worker_invents_no_losses(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_RING);
  trial->faults.hold_a_worker = true;
  trial->workload.warmup_ns = 0;
  trial->workload.duration_ns = 3 * NS_PER_SEC; /* so that nothing falls due after it */
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(measure->publishes.acked, 1500);
  assert_int_equal(measure->deliveries.observed, 1500);
  assert_int_equal(trial->report.warmup.deliveries.unexpected, 0);
  assert_int_equal(measure->deliveries.unexpected, 0);
  end(trial);
}

static void test_seconds_add_up(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_GROUPS);
  trial->workload.duration_ns = 2500 * NS_PER_MS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report *report = &trial->report;
  assert_int_equal(report->seconds, 3);
  uint64_t scheduled = 0, acked = 0, delivered = 0, ack_samples = 0;
  for (uint32_t s = 0; s < report->seconds; s++) {
    scheduled += report->second[s].scheduled;
    acked += report->second[s].acked;
    delivered += report->second[s].delivered;
    ack_samples += report->second[s].ack.count;
  }
  assert_int_equal(report->second[0].scheduled, 500);
  assert_int_equal(scheduled, 1250);
  assert_int_equal(acked + report->measure.publishes.acked_late, report->measure.publishes.acked);
  assert_int_equal(delivered + report->measure.deliveries.late, report->measure.deliveries.observed);
  assert_int_equal(ack_samples, acked);
  assert_int_equal(report->clock[CLOCK_FANOUT_COMPLETE]->count, 1250);
  assert_int_equal(report->clock[CLOCK_SCHEDULE_LAG]->count, 1250);
  assert_int_equal(report->clock[CLOCK_CONNECT]->count, CLIENTS);
  assert_null(report->clock[CLOCK_CONNECT_TLS]);
  end(trial);
}

/* --- closed loops, echoes, absent receivers --- */

static struct trial *closed_trial(enum topology_kind topology, uint32_t publishes) {
  struct trial *trial = trial_of(topology);
  trial->workload.load = LOAD_CLOSED;
  trial->workload.rate_per_sec = 0;
  trial->workload.outstanding = 2;
  trial->workload.publishes = publishes;
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  return trial;
}

static void test_closed_loop_makes_its_number(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_RING, 305); /* five senders owe one more than the others */
  trial->workload.warmup_ns = NS_PER_SEC;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report *report = &trial->report;
  assert_int_equal(report->ended_by, ENDED_BY_COUNT);
  assert_true(report->measure_s < 60);
  assert_int_equal(report->measure.publishes.scheduled, 305);
  assert_int_equal(report->measure.publishes.acked, 305);
  assert_int_equal(report->measure.deliveries.observed, 305);
  assert_int_equal(report->measure.deliveries.reordered, 0);
  assert_true(report->warmup.publishes.acked > 0);
  assert_int_equal(report->warmup.deliveries.lost, 0);
  assert_true(report_asked_rate(report) == 0);
  end(trial);
}

static void test_closed_loop_outlives_bad_answers(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_GROUPS, 300);
  trial->faults.reject = 7;
  trial->faults.no_answer = 50;
  trial->workload.ack_timeout_ns = PATIENCE_NS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(trial->report.ended_by, ENDED_BY_COUNT);
  assert_int_equal(measure->publishes.attempted, 300);
  assert_int_equal(codes_total(&measure->publishes.rejected), 42);
  assert_int_equal(codes_count(&measure->publishes.timed_out, CAUSE_NO_ANSWER), 6);
  assert_int_equal(measure->publishes.acked, 252);
  assert_int_equal(measure->deliveries.observed, 252 * 9);
  end(trial);
}

/* The phase ends with the last answer, and not when somebody notices: whatever comes a moment later is late. */
static void test_closed_loop_ends_with_its_last_answer(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_STAR, 60);
  trial->faults.deliver_after = 60;
  trial->workload.workers = 1;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_int_equal(trial->report.ended_by, ENDED_BY_COUNT);
  assert_int_equal(trial->report.measure.deliveries.observed, 60);
  assert_int_equal(trial->report.measure.deliveries.late, 60);
  end(trial);
}

static void stop_until_something_timed_out(struct trial *trial, const struct run_progress *progress) {
  stop_before_the_start(trial, progress);
  if (trial->stopped && !trial->resumed && progress->timed_out >= 5) resume_the_server(trial);
}

/* An answer that comes too late for its publish still opens the window for the next one. */
static void test_closed_loop_outlives_late_answers(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_RING, 300);
  trial->windowed = true;
  trial->workload.warmup_ns = 0;
  trial->workload.ack_timeout_ns = 300 * NS_PER_MS;
  trial->step = stop_until_something_timed_out;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_true(trial->resumed);
  assert_int_equal(trial->report.ended_by, ENDED_BY_COUNT);
  assert_int_equal(trial->report.measure.publishes.attempted, 300);
  end(trial);
}

static void test_closed_loop_without_a_sender_ends(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_RING, 300);
  trial->faults.hang_up_at = 5;
  trial->workload.grace_ns = PATIENCE_NS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_true(trial->report.measure_s < 60);
  assert_true(trial->report.measure.publishes.attempted < 300);
  report_judge(&trial->report);
  assert_int_equal(trial->report.verdict, VERDICT_INVALID);
  end(trial);
}

static void kill_in_the_warm_up(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase == RUN_WARM_UP) kill(trial->server, SIGKILL);
}

static void test_closed_loop_ends_when_all_are_lost_before_it(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_RING, 100000);
  trial->workload.warmup_ns = NS_PER_SEC;
  trial->step = kill_in_the_warm_up;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_true(trial->report.measure_s < 60);
  assert_int_equal(trial->report.measure.publishes.attempted, 0);
  report_judge(&trial->report);
  assert_int_equal(trial->report.verdict, VERDICT_INVALID);
  end(trial);
}

static void test_closed_loop_ends_with_its_room(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_RING, 0);
  trial->workload.max_rate_per_sec = 1;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report *report = &trial->report;
  assert_int_equal(report->ended_by, ENDED_BY_CAPACITY);
  assert_true(report->measure_s < 60);
  assert_true(report->measure.publishes.attempted >= 64);
  assert_true(report->measure.publishes.attempted <= 10 * 64);
  assert_int_equal(report->measure.deliveries.lost, 0);
  end(trial);
}

static void test_closed_loop_ends_in_time(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_GROUPS, 0);
  trial->workload.duration_ns = NS_PER_SEC;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(trial->report.ended_by, ENDED_BY_TIME);
  assert_true(measure->publishes.acked > 0);
  assert_int_equal(measure->publishes.acked, measure->publishes.scheduled);
  assert_int_equal(measure->deliveries.observed, measure->publishes.acked * 9);
  end(trial);
}

static void test_rounds_visit_every_target(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_STAR, 0);
  trial->workload.load = LOAD_ROUNDS;
  trial->workload.rounds = 4;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_int_equal(trial->report.ended_by, ENDED_BY_COUNT);
  assert_int_equal(trial->report.measure.publishes.acked, 3 * 7 * 4);
  assert_int_equal(trial->report.measure.deliveries.observed, 3 * 7 * 4);
  end(trial);
}

static void test_echoes_have_no_acks(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_ECHO);
  trial->faults.lose = 25;
  trial->workload.grace_ns = PATIENCE_NS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_false(trial->report.has_acks);
  assert_null(trial->report.clock[CLOCK_ACK]);
  assert_int_equal(measure->publishes.attempted, 500);
  assert_int_equal(measure->publishes.acked, 0); /* though this server sends some */
  assert_int_equal(codes_total(&measure->publishes.timed_out), 0);
  assert_int_equal(measure->deliveries.expected, 500);
  assert_int_equal(measure->deliveries.lost, 20);
  end(trial);
}

static void stop_until_echoes_are_given_up(struct trial *trial, const struct run_progress *progress) {
  stop_before_the_start(trial, progress);
  if (progress->phase == RUN_MEASURE && !trial->resumed && progress->attempted > 2 * 2 * CLIENTS) {
    resume_the_server(trial);
  }
}

/* Its place is free after the time-out, and yet it is there when it comes. */
static void test_a_late_echo_is_not_lost(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_ECHO, 200);
  trial->step = stop_until_echoes_are_given_up;
  trial->workload.warmup_ns = 0;
  trial->workload.ack_timeout_ns = 300 * NS_PER_MS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_true(trial->resumed);
  assert_int_equal(trial->report.ended_by, ENDED_BY_COUNT);
  assert_int_equal(trial->report.measure.publishes.attempted, 200);
  assert_int_equal(trial->report.measure.deliveries.observed, 200);
  end(trial);
}

static void test_a_lost_echo_does_not_stop_its_loop(void **state) {
  (void)state;
  struct trial *trial = closed_trial(TOPOLOGY_ECHO, 200);
  trial->faults.lose = 50;
  trial->workload.grace_ns = PATIENCE_NS;
  trial->workload.ack_timeout_ns = 300 * NS_PER_MS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(trial->report.ended_by, ENDED_BY_COUNT);
  assert_int_equal(measure->publishes.attempted, 200);
  assert_int_equal(measure->deliveries.observed, 196);
  assert_int_equal(measure->deliveries.lost, 4);
  end(trial);
}

static void test_absent_receivers_expect_nothing(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_STAR);
  trial->workload.offline = 4;
  uint64_t expected = 0;
  for (uint32_t slot = 0; slot < 500; slot++)
    expected += (slot % 3 + slot / 3) % 7 < 3; /* receivers 0, 1 and 2 of 7 are online */
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(measure->connections.established, 6);
  assert_int_equal(measure->publishes.acked, 500);
  assert_int_equal(measure->deliveries.expected, expected);
  assert_int_equal(measure->deliveries.observed, expected);
  end(trial);
}

/* 3 senders to 7 receivers who come when all was sent; 500 publishes, so that the receivers get 71 or 72 each. */
static struct trial *backlog_of(void) {
  struct trial *trial = trial_of(TOPOLOGY_STAR);
  trial->faults.keep = true;
  trial->workload.backlog = true;
  trial->workload.warmup_ns = 0;
  trial->workload.catch_up_deadline_ns = IN_TIME_NS;
  return trial;
}

/* What a sender's message `slot` goes to, in a star of 3 and 7. */
static uint64_t sent_to(uint32_t receiver) {
  uint64_t count = 0;
  for (uint32_t slot = 0; slot < 500; slot++)
    count += (slot % 3 + slot / 3) % 7 == receiver;
  return count;
}

static void test_a_backlog_waits_for_its_receivers(void **state) {
  (void)state;
  struct trial *trial = backlog_of();
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report *report = &trial->report;
  const struct tally *measure = &report->measure;
  assert_int_equal(measure->connections.established, CLIENTS);
  assert_int_equal(measure->publishes.acked, 500);
  assert_int_equal(measure->deliveries.expected, 500);
  assert_int_equal(measure->deliveries.observed, 500);
  assert_int_equal(measure->deliveries.lost + measure->deliveries.duplicate + measure->deliveries.reordered, 0);
  assert_int_equal(measure->deliveries.unexpected + measure->deliveries.late, 0);
  assert_int_equal(report->backlog.returned, 7);
  assert_int_equal(report->backlog.complete, 7);
  assert_int_equal(report->clock[CLOCK_BACKLOG_FIRST]->count, 7);
  assert_int_equal(report->clock[CLOCK_BACKLOG_COMPLETE]->count, 7);
  assert_true(report->clock[CLOCK_BACKLOG_FIRST]->min_ns > 0);
  assert_true(report->clock[CLOCK_BACKLOG_COMPLETE]->max_ns >= report->clock[CLOCK_BACKLOG_FIRST]->max_ns);
  assert_true(report->backlog.read_ns >= (uint64_t)report->clock[CLOCK_BACKLOG_COMPLETE]->max_ns);
  assert_int_equal(report->clock[CLOCK_CONNECT]->count, 3); /* of the senders */
  assert_null(report->clock[CLOCK_DELIVERY]);
  assert_true(report->grace_s < 20); /* nobody waits in it for what cannot come yet */
  end(trial);
}

static void test_a_backlog_with_a_hole_is_not_complete(void **state) {
  (void)state;
  struct trial *trial = backlog_of();
  trial->faults.forget_from = 11;
  trial->workload.grace_ns = PATIENCE_NS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(measure->deliveries.expected, 500);
  assert_int_equal(measure->deliveries.lost, sent_to(6) - 10);
  assert_int_equal(trial->report.backlog.returned, 7);
  assert_int_equal(trial->report.backlog.complete, 6);
  assert_int_equal(trial->report.clock[CLOCK_BACKLOG_FIRST]->count, 7);
  assert_int_equal(trial->report.clock[CLOCK_BACKLOG_COMPLETE]->count, 6);
  end(trial);
}

/* On a busy machine the generator's own doubts may stand before it. */
static void assert_reason(const struct report *report, const char *text) {
  for (uint32_t i = 0; i < report->reasons; i++) {
    if (strstr(report->reason[i], text)) return;
    print_message("another reason: %s\n", report->reason[i]);
  }
  fail_msg("no reason says: %s", text);
}

static void test_a_receiver_who_is_not_let_in_loses_its_backlog(void **state) {
  (void)state;
  struct trial *trial = backlog_of();
  trial->faults.refuse_client = 5;
  trial->workload.grace_ns = PATIENCE_NS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(measure->connections.attempted, CLIENTS);
  assert_int_equal(codes_count(&measure->connections.failed, CAUSE_CLOSED_EARLY), 1);
  assert_int_equal(measure->deliveries.expected, 500);
  assert_int_equal(measure->deliveries.lost, sent_to(2));
  assert_int_equal(trial->report.backlog.returned, 6);
  report_judge(&trial->report);
  assert_int_equal(trial->report.verdict, VERDICT_INVALID);
  assert_reason(&trial->report, "6 of 7 receivers");
  end(trial);
}

/* It had everything, but the server never said that this was the end. */
static void test_a_receiver_who_is_closed_while_it_reads(void **state) {
  (void)state;
  struct trial *trial = backlog_of();
  trial->faults.hang_up_on = 4 + 1;
  trial->workload.grace_ns = PATIENCE_NS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(codes_total(&measure->connections.failed), 1);
  assert_int_equal(measure->deliveries.observed + measure->deliveries.lost, 500);
  assert_int_equal(trial->report.backlog.returned, 6);
  assert_int_equal(trial->report.backlog.complete, 6);
  end(trial);
}

static void stop_before_the_catch_up(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase == RUN_CATCH_UP && !trial->stopped) stop_the_server(trial);
}

/* Nobody is let in any more: all is lost, and the run ends at the catch-up's deadline at the latest. */
static void test_a_server_that_hangs_before_the_catch_up(void **state) {
  (void)state;
  struct trial *trial = backlog_of();
  trial->workload.catch_up_deadline_ns = 500 * NS_PER_MS;
  trial->step = stop_before_the_catch_up;
  trial->workload.grace_ns = PATIENCE_NS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(measure->publishes.acked, 500);
  assert_int_equal(codes_count(&measure->connections.failed, CAUSE_CONNECT_TIMEOUT), 7);
  assert_int_equal(measure->deliveries.expected, 500);
  assert_int_equal(measure->deliveries.lost, 500);
  assert_int_equal(trial->report.backlog.returned, 0);
  assert_int_equal(trial->report.clock[CLOCK_BACKLOG_FIRST]->count, 0);
  end(trial);
}

static struct trial *storm_of(enum topology_kind topology) {
  struct trial *trial = trial_of(topology);
  trial->workload.storm = true;
  trial->workload.storm_at_ns = 300 * NS_PER_MS;
  trial->workload.backoff_first_ns = 50 * NS_PER_MS;
  trial->workload.backoff_max_ns = 100 * NS_PER_MS;
  trial->workload.backoff_jitter = 0.5;
  return trial;
}

/* Some publishes fell due while their senders were away. */
static void interrupt_when_unsent(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase == RUN_MEASURE && progress->scheduled >= progress->attempted + 5) trial->interrupted = 1;
}

/* What was sent to those who were away is neither expected nor lost: this server keeps nothing for them. */
static void test_storm_brings_everybody_back(void **state) {
  (void)state;
  struct trial *trial = storm_of(TOPOLOGY_RING);
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  trial->step = interrupt_when_unsent;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report_storm *storm = &trial->report.storm;
  const struct tally *measure = &trial->report.measure;
  assert_int_equal(storm->lost, CLIENTS);
  assert_int_equal(storm->returned, CLIENTS);
  assert_int_equal(storm->attempts, CLIENTS);
  assert_int_equal(codes_total(&storm->failed), 0);
  assert_true(storm->last_returned_ns > storm->first_lost_ns);
  assert_int_equal(measure->connections.established, CLIENTS);
  assert_int_equal(measure->connections.reconnected, CLIENTS);
  assert_int_equal(codes_total(&measure->connections.dropped), 0);
  const struct histogram *recover = trial->report.clock[CLOCK_RECOVER];
  assert_int_equal(recover->count, CLIENTS);
  assert_true(recover->min_ns >= (int64_t)(25 * NS_PER_MS));
  assert_int_equal(trial->report.clock[CLOCK_CONNECT]->count, CLIENTS); /* of the first connections alone */
  uint64_t away = codes_count(&measure->publishes.unsent, CAUSE_NOT_CONNECTED);
  assert_int_equal(trial->interrupted, 1);
  assert_true(away >= 5);
  assert_int_equal(measure->publishes.attempted + away, measure->publishes.scheduled);
  /* On a busy machine the server reads some of what was sent to them only when they are back: that is recovered. */
  assert_int_equal(measure->deliveries.unexpected, 0);
  end(trial);
}

static void test_refused_returns_are_tried_again(void **state) {
  (void)state;
  struct trial *trial = storm_of(TOPOLOGY_RING);
  trial->faults.refuse_returns = 15;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report_storm *storm = &trial->report.storm;
  assert_int_equal(storm->returned, CLIENTS);
  assert_int_equal(storm->attempts, CLIENTS + 15);
  assert_int_equal(codes_count(&storm->failed, CAUSE_CLOSED_EARLY), 15);
  assert_int_equal(codes_total(&trial->report.measure.connections.failed), 0);
  end(trial);
}

static void test_nobody_returns(void **state) {
  (void)state;
  struct trial *trial = storm_of(TOPOLOGY_RING);
  trial->faults.refuse_every_return = true;
  trial->workload.grace_ns = PATIENCE_NS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report_storm *storm = &trial->report.storm;
  assert_int_equal(storm->lost, CLIENTS);
  assert_int_equal(storm->returned, 0);
  assert_true(storm->attempts > CLIENTS);
  assert_int_equal(storm->attempts, codes_total(&storm->failed));
  report_judge(&trial->report);
  assert_int_equal(trial->report.verdict, VERDICT_INVALID);
  end(trial);
}

/* A storm interrupts a closed loop and does not end it: who is back makes the rest of its publishes. */
static void test_closed_loop_outlives_a_storm(void **state) {
  (void)state;
  struct trial *trial = storm_of(TOPOLOGY_RING);
  trial->workload.load = LOAD_CLOSED;
  trial->workload.rate_per_sec = 0;
  trial->workload.outstanding = 1;
  trial->workload.publishes = 3000;
  trial->workload.storm_at_ns = 1; /* long before all is sent */
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_int_equal(trial->report.storm.returned, CLIENTS);
  assert_int_equal(trial->report.ended_by, ENDED_BY_COUNT);
  assert_int_equal(trial->report.measure.publishes.attempted, 3000);
  end(trial);
}

static struct trial *counted_storm_without_return(void) {
  struct trial *trial = storm_of(TOPOLOGY_RING);
  trial->workload.load = LOAD_CLOSED;
  trial->workload.rate_per_sec = 0;
  trial->workload.outstanding = 1;
  trial->workload.publishes = 3000;
  trial->workload.storm_at_ns = 1;
  trial->workload.duration_ns = 3600 * NS_PER_SEC;
  trial->faults.refuse_every_return = true;
  return trial;
}

/* What a dead server will never answer does not keep the run for as long as a count may take. */
static void test_counted_loop_gives_up_who_stays_away(void **state) {
  (void)state;
  struct trial *trial = counted_storm_without_return();
  trial->workload.connect_deadline_ns = NS_PER_SEC;
  trial->workload.grace_ns = 100 * NS_PER_MS;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_int_equal(trial->report.storm.lost, CLIENTS);
  assert_int_equal(trial->report.storm.returned, 0);
  assert_true(trial->report.storm.attempts > CLIENTS);
  assert_true(trial->report.measure.publishes.attempted < 3000);
  report_judge(&trial->report);
  assert_int_equal(trial->report.verdict, VERDICT_INVALID);
  end(trial);
}

static void interrupt_when_away(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase == RUN_MEASURE && progress->phase_elapsed_s > 0.3) trial->interrupted = 1;
}

static void test_interrupted_storm_does_not_wait_for_long(void **state) {
  (void)state;
  struct trial *trial = counted_storm_without_return();
  trial->workload.connect_deadline_ns = 3600 * NS_PER_SEC;
  trial->workload.grace_ns = 3600 * NS_PER_SEC;
  trial->step = interrupt_when_away;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_true(trial->report.interrupted);
  assert_int_equal(trial->report.storm.returned, 0);
  end(trial);
}

static void kill_a_worker_when_unsent(struct trial *trial, const struct run_progress *progress) {
  if (progress->scheduled >= progress->attempted + 5) kill_a_worker(trial, progress);
}

/* Its clients were on their way back: these attempts failed with it. */
static void test_dead_worker_in_a_storm(void **state) {
  (void)state;
  struct trial *trial = storm_of(TOPOLOGY_RING);
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  trial->workload.grace_ns = 300 * NS_PER_MS;
  trial->faults.ignore_returns = true;
  trial->step = kill_a_worker_when_unsent;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report_storm *storm = &trial->report.storm;
  assert_true(trial->stopped);
  assert_int_equal(storm->lost, CLIENTS);
  assert_true(storm->attempts > 0);
  assert_int_equal(storm->attempts, storm->returned + codes_total(&storm->failed));
  end(trial);
}

static void interrupt_when_dropped(struct trial *trial, const struct run_progress *progress) {
  if (progress->phase == RUN_MEASURE && progress->dropped > 0) trial->interrupted = 1;
}

/* Whom the server drops in a storm run comes back as well: a drop, and one more loss. */
static void test_dropped_in_a_storm(void **state) {
  (void)state;
  struct trial *trial = storm_of(TOPOLOGY_RING);
  trial->workload.duration_ns = 60 * NS_PER_SEC;
  trial->faults.hang_up_on_return = true;
  trial->workload.grace_ns = PATIENCE_NS;
  trial->step = interrupt_when_dropped;
  assert_int_equal(carry_out(trial), STATUS_OK);
  assert_int_equal(codes_total(&trial->report.measure.connections.dropped), 1);
  assert_int_equal(trial->report.storm.lost, CLIENTS + 1);
  assert_int_equal(trial->report.storm.returned, CLIENTS + 1);
  assert_int_equal(trial->report.measure.connections.reconnected, CLIENTS + 1);
  end(trial);
}

static void test_held_connections(void **state) {
  (void)state;
  struct trial *trial = trial_of(TOPOLOGY_HOLD);
  trial->workload.senders = 0;
  trial->workload.rate_per_sec = 0;
  trial->workload.connect_per_sec = 50;
  assert_int_equal(carry_out(trial), STATUS_OK);
  const struct report *report = &trial->report;
  assert_int_equal(report->measure.connections.established, CLIENTS);
  assert_int_equal(report->measure.publishes.scheduled, 0);
  assert_true(report->connect_s >= 0.07); /* 5 each in 2 workers at 25 a second: the last begins after 160 ms */
  assert_true(report->worker[0].private_bytes > 0);
  assert_true(report->memory.kernel_held_bytes > 0);
  assert_null(report->clock[CLOCK_ACK]);
  assert_int_equal(report->clock[CLOCK_CONNECT]->count, CLIENTS);
  end(trial);
}

#define COUNT(tests) (sizeof(tests) / sizeof(tests)[0])

/* One part by its name, or all of them: each waits for most of its time, so that they can run side by side. */
int main(int argc, char **argv) {
  const struct CMUnitTest traffic[] = {
      cmocka_unit_test(test_clean_ring),
      cmocka_unit_test(test_clean_group),
      cmocka_unit_test(test_duplicates),
      cmocka_unit_test(test_overlaps_are_no_duplicates),
      cmocka_unit_test(test_reordering),
      cmocka_unit_test(test_rejections),
      cmocka_unit_test(test_delivered_though_rejected),
      cmocka_unit_test(test_foreign_messages),
  };
  const struct CMUnitTest losses[] = {
      cmocka_unit_test(test_loss),
      cmocka_unit_test(test_loss_in_a_group),
      cmocka_unit_test(test_corruption),
      cmocka_unit_test(test_no_answers),
      cmocka_unit_test(test_a_grace_that_was_asked_for_is_kept),
      cmocka_unit_test(test_acks_for_somebody_else),
      cmocka_unit_test(test_replies_that_nobody_reads_do_not_gather),
  };
  const struct CMUnitTest failures[] = {
      cmocka_unit_test(test_partial_population_gets_no_traffic),
      cmocka_unit_test(test_accepted_partial_population),
      cmocka_unit_test(test_nobody_is_let_in),
      cmocka_unit_test(test_silent_server),
      cmocka_unit_test(test_dropped_connection),
      cmocka_unit_test(test_stopped_server_is_reported),
      cmocka_unit_test(test_rates_end_with_the_phase),
      cmocka_unit_test(test_late_ones_are_among_the_observed),
      cmocka_unit_test(test_an_overloaded_generator_takes_the_blame),
      cmocka_unit_test(test_backlog_leaves_in_order),
      cmocka_unit_test(test_interrupted_run_reports),
      cmocka_unit_test(test_given_up_run_ends),
      cmocka_unit_test(test_dead_worker_is_reported),
      cmocka_unit_test(test_late_worker_invents_no_losses),
      cmocka_unit_test(test_seconds_add_up),
  };
  const struct CMUnitTest returns[] = {
      cmocka_unit_test(test_a_backlog_waits_for_its_receivers),
      cmocka_unit_test(test_a_backlog_with_a_hole_is_not_complete),
      cmocka_unit_test(test_a_receiver_who_is_not_let_in_loses_its_backlog),
      cmocka_unit_test(test_a_receiver_who_is_closed_while_it_reads),
      cmocka_unit_test(test_a_server_that_hangs_before_the_catch_up),
      cmocka_unit_test(test_storm_brings_everybody_back),
      cmocka_unit_test(test_refused_returns_are_tried_again),
      cmocka_unit_test(test_nobody_returns),
      cmocka_unit_test(test_closed_loop_outlives_a_storm),
      cmocka_unit_test(test_counted_loop_gives_up_who_stays_away),
      cmocka_unit_test(test_interrupted_storm_does_not_wait_for_long),
      cmocka_unit_test(test_dead_worker_in_a_storm),
      cmocka_unit_test(test_dropped_in_a_storm),
      cmocka_unit_test(test_held_connections),
  };
  const struct CMUnitTest loops[] = {
      cmocka_unit_test(test_closed_loop_makes_its_number),
      cmocka_unit_test(test_closed_loop_outlives_bad_answers),
      cmocka_unit_test(test_closed_loop_ends_with_its_last_answer),
      cmocka_unit_test(test_closed_loop_outlives_late_answers),
      cmocka_unit_test(test_closed_loop_without_a_sender_ends),
      cmocka_unit_test(test_closed_loop_ends_when_all_are_lost_before_it),
      cmocka_unit_test(test_closed_loop_ends_with_its_room),
      cmocka_unit_test(test_closed_loop_ends_in_time),
      cmocka_unit_test(test_rounds_visit_every_target),
      cmocka_unit_test(test_echoes_have_no_acks),
      cmocka_unit_test(test_a_late_echo_is_not_lost),
      cmocka_unit_test(test_a_lost_echo_does_not_stop_its_loop),
      cmocka_unit_test(test_absent_receivers_expect_nothing),
  };
  const struct {
    const char *name;
    const struct CMUnitTest *tests;
    size_t count;
  } parts[] = {
      {"traffic", traffic, COUNT(traffic)},
      {"losses", losses, COUNT(losses)},
      {"failures", failures, COUNT(failures)},
      {"returns", returns, COUNT(returns)},
      {"loops", loops, COUNT(loops)},
  };
  const char *asked = argc > 1 ? argv[1] : NULL;
  int failed = 0, known = 0;
  for (size_t i = 0; i < COUNT(parts); i++) {
    if (asked && strcmp(asked, parts[i].name) != 0) continue;
    failed += _cmocka_run_group_tests(parts[i].name, parts[i].tests, parts[i].count, NULL, NULL);
    known++;
  }
  return known == 0 || failed > 0;
}
