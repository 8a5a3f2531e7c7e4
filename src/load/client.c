#include "load/client.h"

#include "base/clock.h"
#include "load/bundle.h"
#include "load/worker.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Beyond it a client reads no more until its output has left. Publishes alone, of one MiB at most, stay below: they
 * wait for a blocked socket. */
#define OUTPUT_MAX (2u * 1024 * 1024)

static_assert(sizeof(struct load_client) - sizeof(struct client) <= 160, "512 bytes an idle client, with its driver");

#define RETURN_LIMIT_NS (10 * NS_PER_SEC) /* of one attempt to connect again */

static struct load_client *of_base(struct client *base) {
  return (struct load_client *)((uint8_t *)base - offsetof(struct load_client, base));
}

static struct load_client *of_stream(struct stream *stream) {
  return of_base((struct client *)((uint8_t *)stream - offsetof(struct client, stream)));
}

static struct load_client *of_tick(struct timer *timer) {
  return (struct load_client *)((uint8_t *)timer - offsetof(struct load_client, tick));
}

static struct load_client *of_answer(struct timer *timer) {
  return (struct load_client *)((uint8_t *)timer - offsetof(struct load_client, answer));
}

static const struct driver *driver_of(const struct load_client *client) {
  return client->worker->plan->driver;
}

static struct tally *tally_of(const struct load_client *client, enum traffic_phase phase) {
  return &client->worker->area->tally[phase];
}

/* Connections are counted with the measure phase. */
static struct tally *connections_of(const struct load_client *client) {
  return tally_of(client, TRAFFIC_MEASURE);
}

static void record(const struct load_client *client, enum report_clock clock, uint64_t from_ns, uint64_t to_ns) {
  histogram_record(&client->worker->area->clock[clock], (int64_t)(to_ns - from_ns));
}

/* The series is of the measure phase alone, which may end within a second: what comes later is in no row. */
static void count_second(const struct load_client *client, enum series_column column, uint64_t now_ns) {
  struct worker *worker = client->worker;
  if (now_ns < worker->control->end_ns[TRAFFIC_MEASURE]) series_count(worker->series, column, now_ns, 1);
}

static void record_second(
    const struct load_client *client, enum series_clock clock, uint64_t from_ns, uint64_t now_ns) {
  struct worker *worker = client->worker;
  if (now_ns >= worker->control->end_ns[TRAFFIC_MEASURE]) return;
  series_record(worker->series, clock, now_ns, (int64_t)(now_ns - from_ns));
}

static uint32_t recipient_of(const struct load_client *client) {
  return topology_recipient(&client->worker->plan->topology, client->base.index);
}

static struct ledger *ledger_of(const struct load_client *client, enum traffic_phase phase) {
  return client->worker->plan->shared.ledger[phase];
}

static uint64_t slot_of(const struct load_client *client, uint32_t sequence) {
  return (uint64_t)sequence * client->worker->plan->topology.senders + client->base.index;
}

static bool is_sender(const struct load_client *client) {
  return client->base.index < client->worker->plan->topology.senders;
}

/* Of a receiver of a backlog run; else NULL. */
static struct catch_up *catch_up_of(const struct load_client *client) {
  const struct plan *plan = client->worker->plan;
  if (!plan->shared.catch_up || is_sender(client)) return NULL;
  return &plan->shared.catch_up[client->base.index - plan->topology.senders];
}

/* --- what a sender owes --- */

static enum answer answer_of(const struct load_client *client) {
  return client->worker->plan->answer;
}

/* An echo that does not come is a lost delivery and no more: only its place becomes free. */
static void time_out(struct load_client *client, enum traffic_phase phase, uint32_t sequence, enum cause cause) {
  if (!ledger_timed_out(ledger_of(client, phase), slot_of(client, sequence))) return;
  if (answer_of(client) == ANSWER_ACK) codes_add(&tally_of(client, phase)->publishes.timed_out, cause, 1);
  client->sending[phase].outstanding--;
}

static void time_out_all(struct load_client *client, enum cause cause) {
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++) {
    struct sending *sending = &client->sending[phase];
    for (; sending->outstanding > 0 && sending->oldest < sending->backlog.sent; sending->oldest++) {
      if (ledger_pending(ledger_of(client, phase), slot_of(client, sending->oldest))) {
        time_out(client, phase, sending->oldest, cause);
      }
    }
  }
}

void client_give_up_backlog(struct load_client *client, enum traffic_phase phase, enum cause cause) {
  struct sending *sending = &client->sending[phase];
  uint32_t count = backlog_size(&sending->backlog);
  if (count == 0) return;
  codes_add(&tally_of(client, phase)->publishes.unsent, cause, count);
  /* What was never attempted is not pending, so `oldest` may walk over it. */
  sending->backlog.sent = sending->backlog.due;
}

static void arm_answer(struct load_client *client, uint64_t due_ns) {
  timer_arm(loop_wheel(client->worker->loop), &client->answer, due_ns);
}

/* Times out what has waited too long; *next_ns becomes the earliest moment at which more will have. */
static void sweep(struct load_client *client, enum traffic_phase phase, uint64_t now_ns, uint64_t *next_ns) {
  struct sending *sending = &client->sending[phase];
  const struct ledger *ledger = ledger_of(client, phase);
  for (; sending->outstanding > 0 && sending->oldest < sending->backlog.sent; sending->oldest++) {
    uint64_t slot = slot_of(client, sending->oldest);
    if (!ledger_pending(ledger, slot)) continue;
    uint64_t due_ns = ledger_written_ns(ledger, slot) + client->worker->plan->workload->ack_timeout_ns;
    if (due_ns > now_ns) {
      if (due_ns < *next_ns) *next_ns = due_ns;
      return;
    }
    time_out(client, phase, sending->oldest, CAUSE_NO_ANSWER);
  }
}

static void send_more(struct load_client *client);

static void on_answer_timer(struct timer *timer, uint64_t now_ns) {
  struct load_client *client = of_answer(timer);
  uint64_t next_ns = UINT64_MAX;
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++)
    sweep(client, (enum traffic_phase)phase, now_ns, &next_ns);
  if (next_ns != UINT64_MAX) arm_answer(client, next_ns);
  send_more(client);
}

static void count_attempt(
    struct load_client *client, enum traffic_phase phase, uint64_t slot, uint64_t scheduled_ns, uint64_t written_ns) {
  struct worker *worker = client->worker;
  ledger_attempted(ledger_of(client, phase), slot, scheduled_ns, written_ns);
  tally_of(client, phase)->publishes.attempted++;
  if (answer_of(client) != ANSWER_NONE) {
    client->sending[phase].outstanding++;
    if (!timer_armed(&client->answer)) arm_answer(client, written_ns + worker->plan->workload->ack_timeout_ns);
  }
  if (phase != TRAFFIC_MEASURE) return;
  record(client, CLOCK_SCHEDULE_LAG, scheduled_ns, written_ns);
  count_second(client, SERIES_ATTEMPTED, written_ns);
  record_second(client, SERIES_LAG, scheduled_ns, written_ns);
}

/* Sends the next message that the sender owes in a phase; false when it has to stay due. */
static bool send_next(struct load_client *client, enum traffic_phase phase, uint64_t offset_ns) {
  const struct plan *plan = client->worker->plan;
  struct sending *sending = &client->sending[phase];
  uint32_t outstanding = client->sending[TRAFFIC_WARM_UP].outstanding + client->sending[TRAFFIC_MEASURE].outstanding;
  if (stream_blocked(&client->base.stream) || outstanding >= plan->driver->outstanding_max) return false;

  uint32_t sequence = sending->backlog.sent;
  uint64_t scheduled_ns = client->worker->control->start_ns[phase] + offset_ns;
  struct topology_address address = topology_address(&plan->topology, client->base.index, sequence);
  struct publish publish = {
      .to = address.to,
      .recipient = address.recipient,
      .payload =
          {
              .run_id = plan->run.settings.run_id,
              .scheduled_ns = scheduled_ns,
              .written_ns = clock_now_ns(),
              .sender = client->base.index,
              .sequence = sequence,
              .size = plan->workload->payload_bytes,
              .phase = phase == TRAFFIC_WARM_UP ? PAYLOAD_WARM_UP : PAYLOAD_MEASURE,
          },
  };
  publish.token = publish_token(&publish.payload);
  bool operates = plan->topology.kind == TOPOLOGY_SELF;
  enum publish_result result = (operates ? plan->driver->operate : plan->driver->publish)(&client->base, &publish);
  if (result != PUBLISH_WRITTEN) return false;
  sending->backlog.sent++;
  count_attempt(client, phase, slot_of(client, sequence), scheduled_ns, publish.payload.written_ns);
  return true;
}

static bool is_returning(const struct load_client *client) {
  return client->lost_ns > client->returned_ns;
}

/* Before the traffic has begun a lost client stays lost: the run is not valid anyway. */
static bool returns(const struct load_client *client) {
  struct worker *worker = client->worker;
  return worker->plan->workload->storm && worker_in_traffic(worker);
}

/* The phase in which a closed loop publishes at a moment; TRAFFIC_PHASES: in none. */
static enum traffic_phase loop_phase(struct worker *worker, uint64_t now_ns) {
  const struct control *control = worker->control;
  if (!worker_in_traffic(worker) || now_ns < control->start_ns[TRAFFIC_WARM_UP]) return TRAFFIC_PHASES;
  if (now_ns < control->end_ns[TRAFFIC_WARM_UP]) return TRAFFIC_WARM_UP;
  bool measures = now_ns >= control->start_ns[TRAFFIC_MEASURE] && now_ns < control->end_ns[TRAFFIC_MEASURE];
  return measures ? TRAFFIC_MEASURE : TRAFFIC_PHASES;
}

/* A publish is due in the moment in which it gets a place, so it is never late; false when it has to wait. */
static bool send_looped(struct load_client *client, enum traffic_phase phase, uint64_t now_ns) {
  struct worker *worker = client->worker;
  struct sending *sending = &client->sending[phase];
  if (slot_of(client, sending->backlog.due) >= worker->plan->schedule[phase].slots) {
    if (phase == TRAFFIC_MEASURE && workload_limit(worker->plan->workload) == 0) worker->area->out_of_capacity = 1;
    return false;
  }
  sending->backlog.due++;
  tally_of(client, phase)->publishes.scheduled++;
  if (!send_next(client, phase, now_ns - worker->control->start_ns[phase])) {
    sending->backlog.due--;
    tally_of(client, phase)->publishes.scheduled--;
    return false;
  }
  if (phase == TRAFFIC_MEASURE) count_second(client, SERIES_SCHEDULED, now_ns);
  return true;
}

static void finish_loop(struct load_client *client) {
  struct worker *worker = client->worker;
  if (client->finished) return;
  client->finished = true;
  if (--worker->unfinished > 0) return;
  worker->area->done_ns = clock_now_ns();
  plan_end_loops(worker->plan); /* at once: what comes from now on is late */
}

/* Who was given up as away for too long is back before the others are through. */
static void resume_loop(struct load_client *client) {
  struct worker *worker = client->worker;
  if (!client->finished) return;
  client->finished = false;
  worker->unfinished++;
  worker->area->done_ns = 0;
}

static bool all_is_answered(const struct load_client *client) {
  const struct sending *sending = &client->sending[TRAFFIC_MEASURE];
  return sending->outstanding == 0 &&
         slot_of(client, sending->backlog.due) >= client->worker->plan->schedule[TRAFFIC_MEASURE].slots;
}

static void go_on(struct load_client *client) {
  const struct workload *workload = client->worker->plan->workload;
  const struct sending *sending = client->sending;
  if (!is_sender(client)) return;
  while (sending[TRAFFIC_WARM_UP].outstanding + sending[TRAFFIC_MEASURE].outstanding < workload->outstanding) {
    uint64_t now_ns = clock_now_ns();
    enum traffic_phase phase = loop_phase(client->worker, now_ns);
    if (phase == TRAFFIC_PHASES || !send_looped(client, phase, now_ns)) break;
  }
  if (workload_limit(workload) > 0 && all_is_answered(client)) finish_loop(client);
}

void client_start_loop(struct load_client *client, enum traffic_phase phase) {
  if (client->base.state == CLIENT_ESTABLISHED) {
    go_on(client);
  } else if (phase == TRAFFIC_MEASURE && is_sender(client) && !is_returning(client)) {
    finish_loop(client);
  }
}

/* There may be room again: closed loops go on, and what waits leaves, or is written off when its phase is over. */
static void send_more(struct load_client *client) {
  if (client->base.state != CLIENT_ESTABLISHED) return;
  if (client->worker->plan->closed) {
    go_on(client);
    return;
  }
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++) {
    struct sending *sending = &client->sending[phase];
    if (backlog_size(&sending->backlog) == 0) continue;
    if (clock_now_ns() >= client->worker->control->end_ns[phase]) {
      client_give_up_backlog(client, (enum traffic_phase)phase, CAUSE_BLOCKED);
      continue;
    }
    while (backlog_size(&sending->backlog) > 0) {
      uint64_t offset_ns =
          schedule_offset_ns(&client->worker->plan->schedule[phase], slot_of(client, sending->backlog.sent));
      if (!send_next(client, (enum traffic_phase)phase, offset_ns)) return;
    }
  }
}

static void note_due(struct load_client *client, enum traffic_phase phase, uint32_t sequence, uint64_t offset_ns) {
  tally_of(client, phase)->publishes.scheduled++;
  if (phase == TRAFFIC_MEASURE) {
    count_second(client, SERIES_SCHEDULED, client->worker->control->start_ns[phase] + offset_ns);
  }
  client->sending[phase].backlog.due = sequence + 1;
}

void client_due(struct load_client *client, enum traffic_phase phase, uint32_t sequence, uint64_t offset_ns) {
  const struct backlog *backlog = &client->sending[phase].backlog;
  note_due(client, phase, sequence, offset_ns);
  if (client->base.state != CLIENT_ESTABLISHED) {
    client_give_up_backlog(client, phase, CAUSE_NOT_CONNECTED);
    return;
  }
  bool alone = backlog_size(backlog) == 1 &&
               (phase == TRAFFIC_WARM_UP || backlog_size(&client->sending[TRAFFIC_WARM_UP].backlog) == 0);
  if (alone) {
    send_next(client, phase, offset_ns);
  } else {
    send_more(client);
  }
}

void client_pass_over(struct load_client *client, enum traffic_phase phase, uint32_t sequence, uint64_t offset_ns) {
  bool connected = client->base.state == CLIENT_ESTABLISHED;
  client_give_up_backlog(client, phase, CAUSE_BLOCKED); /* what was due in time and waited */
  note_due(client, phase, sequence, offset_ns);
  client_give_up_backlog(client, phase, connected ? CAUSE_GENERATOR_LATE : CAUSE_NOT_CONNECTED);
}

/* --- the end of a connection --- */

static void release(struct load_client *client) {
  struct wheel *wheel = loop_wheel(client->worker->loop);
  timer_cancel(wheel, &client->tick);
  timer_cancel(wheel, &client->answer);
  stream_close(&client->base.stream, true);
  client->linked = false;
  driver_of(client)->released(&client->base);
}

/* As long as the whole population may take to connect, and in the measure phase: its end is what this decides. */
static bool is_away_too_long(const struct load_client *client, uint64_t now_ns) {
  const struct worker *worker = client->worker;
  uint64_t from_ns = worker->control->start_ns[TRAFFIC_MEASURE];
  if (client->lost_ns > from_ns) from_ns = client->lost_ns;
  return now_ns >= from_ns + worker->plan->workload->connect_deadline_ns;
}

static void fail_to_return(struct load_client *client, int32_t code) {
  codes_add(&client->worker->area->storm.failed, code, 1);
  client->failures++;
  if (!client->worker->plan->closed || !is_sender(client)) return;
  if (is_away_too_long(client, clock_now_ns())) finish_loop(client);
}

static void end_before_established(struct load_client *client, int32_t code) {
  if (is_returning(client)) {
    fail_to_return(client, code);
    return;
  }
  codes_add(&connections_of(client)->connections.failed, code, 1);
  client->worker->in_progress--;
}

/* Nothing reaches the client from now on, and what it owes or awaits is written off. */
static void leave(struct load_client *client, uint64_t now_ns) {
  struct worker *worker = client->worker;
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++) {
    uint64_t start_ns = worker->control->start_ns[phase];
    ledger_dropped(
        ledger_of(client, (enum traffic_phase)phase), recipient_of(client), now_ns > start_ns ? now_ns : start_ns);
    client_give_up_backlog(client, (enum traffic_phase)phase, CAUSE_NOT_CONNECTED);
  }
  time_out_all(client, CAUSE_CONNECTION_LOST);
  bool goes_on = returns(client) && !all_is_answered(client);
  if (worker->plan->closed && is_sender(client) && !goes_on) finish_loop(client);
}

static void end_established(struct load_client *client, int32_t code) {
  struct worker *worker = client->worker;
  uint64_t now_ns = clock_now_ns();
  codes_add(&connections_of(client)->connections.dropped, code, 1);
  if (!worker_in_traffic(worker)) return;
  leave(client, now_ns);
  if (now_ns >= worker->control->start_ns[TRAFFIC_MEASURE]) count_second(client, SERIES_DROPPED, now_ns);
}

/* Twice as long after each failure, and less a random part, or all would come back at once, time and again. */
static uint64_t backoff_ns(const struct load_client *client) {
  struct worker *worker = client->worker;
  const struct workload *workload = worker->plan->workload;
  uint64_t wait_ns = workload->backoff_first_ns;
  for (uint32_t i = 0; i < client->failures && wait_ns < workload->backoff_max_ns; i++)
    wait_ns *= 2;
  if (wait_ns > workload->backoff_max_ns) wait_ns = workload->backoff_max_ns;
  return wait_ns - (uint64_t)((double)wait_ns * workload->backoff_jitter * rng_double(&worker->rng));
}

static void wait_to_return(struct load_client *client) {
  const struct driver *driver = driver_of(client);
  client->base.state = CLIENT_AWAY;
  if (driver->reconnecting) {
    driver->reconnecting(&client->base);
  } else {
    memset(client_state(&client->base), 0, driver->client_bytes);
  }
  timer_arm(loop_wheel(client->worker->loop), &client->tick, clock_now_ns() + backoff_ns(client));
}

static void count_loss(struct load_client *client, uint64_t now_ns) {
  struct report_storm *storm = &client->worker->area->storm;
  storm->lost++;
  if (storm->first_lost_ns == 0) storm->first_lost_ns = now_ns;
  client->lost_ns = now_ns;
  client->failures = 0;
}

void client_lose(struct load_client *client) {
  if (client->base.state != CLIENT_ESTABLISHED) return;
  uint64_t now_ns = clock_now_ns();
  client->base.state = CLIENT_AWAY; /* first, so that nothing is sent any more */
  count_loss(client, now_ns);
  leave(client, now_ns);
  release(client);
  wait_to_return(client);
}

/* What the server ends after it was asked to is the storm, once for each client, and no drop. */
static bool is_storm(const struct load_client *client) {
  struct worker *worker = client->worker;
  const struct workload *workload = worker->plan->workload;
  bool awaits = workload->storm_by_server && worker_in_traffic(worker) && client->lost_ns == 0;
  return awaits && clock_now_ns() >= worker->control->start_ns[TRAFFIC_MEASURE] + workload->storm_at_ns;
}

static void end(struct load_client *client, int32_t code) {
  if (client->base.state == CLIENT_ESTABLISHED && is_storm(client)) {
    client_lose(client);
    return;
  }
  uint8_t state = client->base.state;
  client->base.state = CLIENT_OVER;
  if (state == CLIENT_CONNECTING) {
    end_before_established(client, code);
  } else if (state == CLIENT_ESTABLISHED) {
    end_established(client, code);
    if (returns(client)) count_loss(client, clock_now_ns());
  }
  release(client);
  if (is_returning(client)) wait_to_return(client);
}

/* --- hooks: what the driver tells --- */

static void come_back(struct load_client *client, uint64_t now_ns) {
  struct worker *worker = client->worker;
  struct report_storm *storm = &worker->area->storm;
  storm->returned++;
  storm->last_returned_ns = now_ns;
  connections_of(client)->connections.reconnected++;
  record(client, CLOCK_RECOVER, client->lost_ns, now_ns);
  count_second(client, SERIES_ESTABLISHED, now_ns);
  client->returned_ns = now_ns;
  for (int phase = 0; phase < TRAFFIC_PHASES; phase++)
    ledger_established(ledger_of(client, (enum traffic_phase)phase), recipient_of(client), now_ns);
}

static void note_connect(const struct load_client *client, uint64_t now_ns) {
  struct catch_up *catch_up = catch_up_of(client);
  connections_of(client)->connections.established++;
  if (catch_up) { /* its connect took as long as its backlog, which has clocks of its own */
    catch_up->established_ns = now_ns;
    return;
  }
  if (client->linked) { /* how a transport of the driver's own comes about is not seen from here */
    record(client, CLOCK_CONNECT, client->started_ns, client->opened_ns > 0 ? client->opened_ns : now_ns);
    return;
  }
  record(client, CLOCK_CONNECT, client->started_ns, now_ns);
  record(client, CLOCK_CONNECT_TCP, client->started_ns, client->connected_ns);
  if (client->worker->plan->run.tls) record(client, CLOCK_CONNECT_TLS, client->connected_ns, client->opened_ns);
  record(client, CLOCK_CONNECT_PROTOCOL, client->opened_ns, now_ns);
}

static void on_established(struct client *base) {
  struct load_client *client = of_base(base);
  struct worker *worker = client->worker;
  uint64_t now_ns = clock_now_ns();
  base->state = CLIENT_ESTABLISHED;
  if (is_returning(client)) {
    come_back(client, now_ns);
    resume_loop(client);
    send_more(client);
  } else {
    worker->in_progress--;
    note_connect(client, now_ns);
  }
  uint64_t tick_ns = driver_tick_ns(base->run);
  timer_cancel(loop_wheel(worker->loop), &client->tick);
  /* A random phase, or the keep-alives of all clients would come as one burst. */
  if (tick_ns > 0) timer_arm(loop_wheel(worker->loop), &client->tick, now_ns + 1 + rng_below(&worker->rng, tick_ns));
}

static void on_logged_in(struct client *base) {
  of_base(base)->opened_ns = clock_now_ns();
}

static void on_failed(struct client *base, int32_t code) {
  end(of_base(base), code);
}

/* What an ACK or a rejection settles: nothing, when the publish had been given up before. */
static void take_answer(struct load_client *client, enum traffic_phase phase, uint64_t slot, int32_t code) {
  struct worker *worker = client->worker;
  struct ledger *ledger = ledger_of(client, phase);
  struct tally *tally = tally_of(client, phase);
  uint64_t now_ns = clock_now_ns();
  if (code != 0 ? !ledger_rejected(ledger, slot) : !ledger_acked(ledger, slot)) return;
  client->sending[phase].outstanding--;
  if (code != 0) {
    codes_add(&tally->publishes.rejected, code, 1);
    if (phase == TRAFFIC_MEASURE) count_second(client, SERIES_REJECTED, now_ns);
    return;
  }
  tally->publishes.acked++;
  if (now_ns >= worker->control->end_ns[phase]) tally->publishes.acked_late++;
  if (phase != TRAFFIC_MEASURE) return;
  uint64_t scheduled_ns = ledger_scheduled_ns(ledger, slot);
  record(client, CLOCK_ACK, scheduled_ns, now_ns);
  record(client, CLOCK_ACK_SERVICE, ledger_written_ns(ledger, slot), now_ns);
  count_second(client, SERIES_ACKED, now_ns);
  record_second(client, SERIES_ACK, scheduled_ns, now_ns);
}

static void on_acked(struct client *base, uint32_t token, int32_t code) {
  struct load_client *client = of_base(base);
  enum traffic_phase phase = token & 1 ? TRAFFIC_MEASURE : TRAFFIC_WARM_UP;
  /* Another client's token would be the slot of a publish that is not its own. */
  if (!is_sender(client)) return;
  if (answer_of(client) == ANSWER_ACK) take_answer(client, phase, slot_of(client, token >> 1), code);
  send_more(client); /* whatever it settled: the protocol's window has room again */
}

static enum traffic_phase phase_now(struct worker *worker, uint64_t now_ns) {
  return worker_in_traffic(worker) && now_ns >= worker->control->start_ns[TRAFFIC_MEASURE] ? TRAFFIC_MEASURE
                                                                                           : TRAFFIC_WARM_UP;
}

/* The phase of a payload of ours, or TRAFFIC_PHASES when it belongs to another run or to none of our phases. */
static enum traffic_phase phase_of(struct worker *worker, const struct payload *payload) {
  if (!worker_in_traffic(worker) || payload->run_id != worker->plan->run.settings.run_id ||
      payload->sender >= worker->plan->topology.senders) {
    return TRAFFIC_PHASES;
  }
  if (payload->phase == PAYLOAD_WARM_UP) return TRAFFIC_WARM_UP;
  return payload->phase == PAYLOAD_MEASURE ? TRAFFIC_MEASURE : TRAFFIC_PHASES;
}

/* The first arrival of what the recipient could hear when it was written. */
static void count_first(
    struct load_client *client, enum traffic_phase phase, const struct payload *payload, uint64_t now_ns) {
  struct catch_up *catch_up = catch_up_of(client);
  client->worker->area->delivered[phase]++;
  if (catch_up) {
    if (catch_up->first_ns == 0) catch_up->first_ns = now_ns;
    catch_up->last_ns = now_ns;
    return;
  }
  if (phase != TRAFFIC_MEASURE) return;
  record(client, CLOCK_DELIVERY, payload->scheduled_ns, now_ns);
  record(client, CLOCK_DELIVERY_SERVICE, payload->written_ns, now_ns);
  count_second(client, SERIES_DELIVERED, now_ns);
  record_second(client, SERIES_DELIVERY, payload->scheduled_ns, now_ns);
}

/* The sender's own message came back: where that is the answer, its place is free. */
static void on_echo(struct load_client *client, enum traffic_phase phase, const struct payload *payload) {
  if (answer_of(client) != ANSWER_ECHO || payload->sender != client->base.index) return;
  if (!ledger_acked(ledger_of(client, phase), slot_of(client, payload->sequence))) return;
  client->sending[phase].outstanding--;
  send_more(client);
}

static void on_delivered(struct client *base, struct view content, bool overlap) {
  struct load_client *client = of_base(base);
  struct worker *worker = client->worker;
  uint64_t now_ns = clock_now_ns();
  struct payload payload;
  if (base->state == CLIENT_OVER) return; /* settled: what comes during the good-bye belongs to no phase */
  enum payload_result result = payload_read(driver_of(client)->payload_form, content.data, content.len, &payload);
  if (result == PAYLOAD_CORRUPT) {
    tally_of(client, phase_now(worker, now_ns))->deliveries.corrupt++;
    return;
  }
  enum traffic_phase phase = result == PAYLOAD_OK ? phase_of(worker, &payload) : TRAFFIC_PHASES;
  if (phase == TRAFFIC_PHASES) {
    tally_of(client, phase_now(worker, now_ns))->deliveries.unexpected++;
    return;
  }
  struct tally *tally = tally_of(client, phase);
  const struct arrival arrival = {
      .recipient = recipient_of(client),
      .sender = payload.sender,
      .sequence = payload.sequence,
      .now_ns = now_ns,
      .heard = ledger_heard(ledger_of(client, phase), recipient_of(client), payload.written_ns),
      .late = !catch_up_of(client) && now_ns >= worker->control->end_ns[phase],
  };
  switch (ledger_delivered(ledger_of(client, phase), &arrival)) {
  case DELIVERY_REORDERED:
    tally->deliveries.reordered++;
    if (arrival.heard) count_first(client, phase, &payload, now_ns);
    on_echo(client, phase, &payload);
    break;
  case DELIVERY_FIRST:
    if (arrival.heard) count_first(client, phase, &payload, now_ns);
    on_echo(client, phase, &payload);
    break;
  case DELIVERY_DUPLICATE:
    *(overlap ? &tally->deliveries.overlap : &tally->deliveries.duplicate) += 1;
    break;
  case DELIVERY_UNEXPECTED:
    tally->deliveries.unexpected++;
    break;
  }
}

/* Operations are counted in the measure phase only, and never after the client was settled. */
static struct operations *operations_of(const struct load_client *client, uint32_t token) {
  bool counts = token & 1 && client->base.state == CLIENT_ESTABLISHED && worker_in_traffic(client->worker);
  return counts ? &client->worker->area->operations : NULL;
}

static void on_operation_started(struct client *base, uint32_t operation, uint32_t token) {
  struct operations *operations = operations_of(of_base(base), token);
  if (operations) operations->one[operation].attempted++;
}

static void on_operation_done(struct client *base, const struct operation_done *done) {
  struct load_client *client = of_base(base);
  struct operations *operations = operations_of(client, done->token);
  if (!operations) return;
  struct operation_tally *tally = &operations->one[done->operation];
  uint64_t now_ns = clock_now_ns();
  bool late = now_ns >= client->worker->control->end_ns[TRAFFIC_MEASURE];
  tally->items += done->items;
  if (late) tally->items_late += done->items;
  if (done->code != 0) {
    codes_add(&tally->failed, done->code, 1);
    refusals_add(&operations->refusals, done->error.len > 0 ? done->error : view_str("no text"), 1);
    return;
  }
  tally->succeeded++;
  tally->late += late;
  histogram_record(&tally->clock, (int64_t)(now_ns - done->started_ns));
}

static void on_operation_retried(struct client *base, uint32_t token, uint64_t wait_ns) {
  struct operations *operations = operations_of(of_base(base), token);
  if (!operations) return;
  operations->hints++;
  operations->waited_ns += wait_ns;
}

/* When a client that connects must be in. */
static uint64_t connect_limit_ns(const struct load_client *client) {
  if (is_returning(client)) return client->started_ns + RETURN_LIMIT_NS;
  return client->worker->control->connect_deadline_ns;
}

static void on_wake(struct client *base, uint64_t due_ns) {
  struct load_client *client = of_base(base);
  if (base->state == CLIENT_CONNECTING) {
    uint64_t deadline_ns = connect_limit_ns(client);
    if (due_ns > deadline_ns) due_ns = deadline_ns;
  }
  timer_arm(loop_wheel(client->worker->loop), &client->tick, due_ns);
}

static const struct client_hooks hooks = {
    .established = on_established,
    .logged_in = on_logged_in,
    .operation_started = on_operation_started,
    .operation_done = on_operation_done,
    .operation_retried = on_operation_retried,
    .failed = on_failed,
    .acked = on_acked,
    .delivered = on_delivered,
    .wake = on_wake,
};

static void open_connection(struct load_client *client);

static uint64_t next_tick_ns(const struct load_client *client, uint64_t now_ns) {
  const struct worker *worker = client->worker;
  return bundle_next_ns(now_ns, driver_tick_ns(client->base.run), worker->number, worker->plan->workers);
}

static void on_tick(struct timer *timer, uint64_t now_ns) {
  struct load_client *client = of_tick(timer);
  uint64_t next_ns = connect_limit_ns(client);
  if (client->base.state == CLIENT_AWAY) {
    client->worker->area->storm.attempts++;
    open_connection(client);
    return;
  }
  if (client->base.state == CLIENT_CONNECTING) {
    if (now_ns >= next_ns) {
      end(client, CAUSE_CONNECT_TIMEOUT);
      return;
    }
  } else {
    next_ns = next_tick_ns(client, now_ns);
  }
  timer_arm(loop_wheel(client->worker->loop), timer, next_ns); /* first: the driver may ask for an earlier one */
  driver_of(client)->tick(&client->base, now_ns);
}

/* --- the stream --- */

static void on_connected(struct stream *stream) {
  of_stream(stream)->connected_ns = clock_now_ns();
}

static void on_opened(struct stream *stream) {
  struct load_client *client = of_stream(stream);
  client->opened_ns = clock_now_ns();
  driver_of(client)->opened(&client->base);
}

/* Answers (Pongs, acks of pushes) that a server asks for and does not take must not gather without bound. */
static void bound_output(struct stream *stream) {
  if (stream_blocked(stream) && stream_pending(stream) > OUTPUT_MAX) stream_pause(stream);
}

static size_t on_received(struct stream *stream, uint8_t *data, size_t len) {
  struct load_client *client = of_stream(stream);
  size_t used = driver_of(client)->received(&client->base, data, len);
  bound_output(stream);
  if (worker_in_traffic(client->worker)) {
    tally_of(client, phase_now(client->worker, loop_now_ns(client->worker->loop)))->bytes_received += used;
  }
  return used;
}

static void on_drained(struct stream *stream) {
  stream_resume(stream);
  send_more(of_stream(stream));
}

static int32_t cause_of_end(const struct load_client *client, enum stream_end how, int error) {
  bool connecting = client->base.state == CLIENT_CONNECTING;
  switch (how) {
  case STREAM_END_REFUSED:
    return CAUSE_CONNECT_REFUSED;
  case STREAM_END_CONNECT:
    return error == ETIMEDOUT ? CAUSE_CONNECT_TIMEOUT : CAUSE_CONNECT_ERROR;
  case STREAM_END_TLS:
    return connecting ? CAUSE_TLS : CAUSE_RESET;
  case STREAM_END_MEMORY:
    return connecting ? CAUSE_CONNECT_ERROR : CAUSE_RESET;
  case STREAM_END_RESET:
    return connecting ? CAUSE_CLOSED_EARLY : CAUSE_RESET;
  default:
    return connecting ? CAUSE_CLOSED_EARLY : CAUSE_CLOSED_BY_PEER;
  }
}

static void on_closed(struct stream *stream, enum stream_end how, int error) {
  struct load_client *client = of_stream(stream);
  end(client, cause_of_end(client, how, error));
}

static const struct stream_ops stream_ops = {
    .connected = on_connected,
    .opened = on_opened,
    .received = on_received,
    .drained = on_drained,
    .closed = on_closed,
};

/* Client i takes source i % sources; each round of the sources begins one target further on. */
static struct address target_of(const struct load_client *client) {
  const struct plan *plan = client->worker->plan;
  if (plan->targets.count == 0) return plan->run.address;
  uint32_t sources = plan->sources.count ? plan->sources.count : 1, index = client->base.index;
  struct address to = address_ranges_at(&plan->targets, index % sources + index / sources);
  address_set_port(&to, address_port(&plan->run.address));
  return to;
}

static void open_connection(struct load_client *client) {
  struct worker *worker = client->worker;
  const struct address_ranges *sources = &worker->plan->sources;
  struct driver_run *run = &worker->plan->run;
  struct address from, to = target_of(client);
  if (sources->count > 0) from = address_ranges_at(sources, client->base.index);
  client->base.state = CLIENT_CONNECTING;
  client->started_ns = clock_now_ns();
  if (catch_up_of(client)) catch_up_of(client)->started_ns = client->started_ns;
  client->linked = run->driver->connect != NULL;
  client->opened_ns = 0;
  enum status status = client->linked ? run->driver->connect(&client->base, worker->loop)
                                      : stream_connect(&client->base.stream, worker->loop, &stream_ops, &to,
                                            sources->count > 0 ? &from : NULL,
                                            run->driver->starts_tls ? NULL : run->tls, run->server_name, NULL);
  if (status != STATUS_OK) {
    end(client, CAUSE_CONNECT_ERROR);
    return;
  }
  timer_arm(loop_wheel(worker->loop), &client->tick, connect_limit_ns(client));
}

void client_connect(struct load_client *client) {
  client->base.hooks = &hooks;
  client->base.run = &client->worker->plan->run;
  client->tick.fire = on_tick;
  client->answer.fire = on_answer_timer;
  connections_of(client)->connections.attempted++;
  client->worker->in_progress++;
  open_connection(client);
}

/* Gives up what was under way to come back. */
static void stay_away(struct load_client *client) {
  if (client->base.state == CLIENT_CONNECTING) codes_add(&client->worker->area->storm.failed, CAUSE_INTERRUPTED, 1);
  client->base.state = CLIENT_OVER;
  release(client);
}

void client_settle(struct load_client *client, enum cause cause, bool good_bye) {
  if (is_returning(client)) {
    stay_away(client);
    return;
  }
  if (client->base.state == CLIENT_CONNECTING) {
    end(client, CAUSE_INTERRUPTED);
    return;
  }
  if (client->base.state != CLIENT_ESTABLISHED) return;
  if (is_sender(client) && worker_in_traffic(client->worker)) {
    for (int phase = 0; phase < TRAFFIC_PHASES; phase++)
      client_give_up_backlog(client, (enum traffic_phase)phase, CAUSE_BLOCKED);
    time_out_all(client, cause);
  }
  client->base.state = CLIENT_OVER;
  if (good_bye) driver_of(client)->closing(&client->base);
}

void client_close(struct load_client *client) {
  if (!client->linked && !stream_is_open(&client->base.stream)) return;
  release(client);
}
