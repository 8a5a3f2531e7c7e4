#include "server/gateway.h"

#include "base/clock.h"
#include "server/descriptors.h"
#include "server/session.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FLUSH_LIMIT_NS (5 * NS_PER_SEC)
#define TURN_NS (100 * NS_PER_MS)

enum status gateway_init(
    struct gateway *gateway, uint16_t number, const struct server_config *config, struct err *err) {
  *gateway = (struct gateway){.config = config, .number = number};
  gateway->port.event_fd = -1;
  sem_init(&gateway->opened, 0, 0);
  uint32_t room = descriptors_connections(descriptors_limit());
  gateway->own_table = config->max_connections > descriptors_shared(room);
  gateway->connections_max = gateway->own_table ? room : UINT32_MAX;
  gateway->control_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (gateway->control_fd < 0) return err_set(err, STATUS_IO, "eventfd: %s", strerror(errno));
  gateway->port_watch.fd = -1;
  gateway->control_watch.fd = -1;
  slab_init(&gateway->slab);
  uint64_t seed;
  random_bytes(&seed, sizeof seed);
  rng_seed(&gateway->rng, seed);
  gateway->request_interval_ns = NS_PER_SEC / (config->rate_limit_per_sec ? config->rate_limit_per_sec : 1);
  return gateway_port_open(&gateway->port, err);
}

/* ---- Results of the core ---- */

static struct session *find(struct gateway *gateway, uint32_t slot, uint32_t generation) {
  struct session *session = slab_at(&gateway->slab, slot);
  if (!session || session->generation != generation || session->state == SESSION_FREE) return NULL;
  return session;
}

static void fan_out(struct gateway *gateway, const struct out *out) {
  const struct fan_out_target *target = out_targets(out);
  for (uint32_t i = 0; i < out->targets; i++, target++) {
    struct session *session = find(gateway, target->slot, target->generation);
    if (session) session_push(session, out->message, target);
  }
}

static void dispatch(struct gateway *gateway, const struct out *out) {
  if (out->kind == OUT_FAN_OUT) {
    fan_out(gateway, out);
    return;
  }
  struct session *session = find(gateway, out->session.slot, out->session.generation);
  if (!session) return;
  switch (out->kind) {
  case OUT_CONNECTED:
    session_connected(session, out);
    return;
  case OUT_PUBLISH_ACK:
    session_publish_acked(session, out);
    return;
  case OUT_QUERY_ACK:
    session_query_acked(session, out);
    return;
  case OUT_KICK:
    session_kicked(session, out);
    return;
  case OUT_FAN_OUT:
    return;
  }
}

static void take_results(struct gateway *gateway) {
  struct out *out = gateway_port_take(&gateway->port);
  while (out) {
    struct out *next = out->next;
    dispatch(gateway, out);
    out_free(out);
    out = next;
  }
}

static void port_ready(struct watch *watch, uint32_t events) {
  (void)events;
  take_results((struct gateway *)((char *)watch - offsetof(struct gateway, port_watch)));
}

/* ---- Phases ---- */

static void for_each_session(struct gateway *gateway, void (*visit)(struct session *session)) {
  for (uint32_t i = 0; i < gateway->slab.used; i++) {
    struct session *session = slab_at(&gateway->slab, i);
    if (session->state != SESSION_FREE) visit(session);
  }
}

static void stop_reading(struct session *session) {
  if (session->state != SESSION_CLOSING) session_pause(session, PAUSE_DRAIN);
}

static void close_now(struct session *session) {
  session_close(session, false);
}

static void drain(struct gateway *gateway) {
  doors_close(&gateway->doors);
  for_each_session(gateway, stop_reading);
}

static void control_ready(struct watch *watch, uint32_t events) {
  (void)events;
  struct gateway *gateway = (struct gateway *)((char *)watch - offsetof(struct gateway, control_watch));
  uint64_t count;
  if (read(watch->fd, &count, sizeof count) < 0) return;
  if (atomic_exchange(&gateway->drops, false)) for_each_session(gateway, close_now);
  int phase = atomic_load(&gateway->phase);
  if (phase >= GATEWAY_DRAINING && gateway->reached < GATEWAY_DRAINING) drain(gateway);
  if (phase == GATEWAY_FLUSHING) gateway->flush_until_ns = clock_now_ns() + FLUSH_LIMIT_NS;
  atomic_store(&gateway->reached, phase);
}

static bool output_waits(struct gateway *gateway) {
  for (uint32_t i = 0; i < gateway->slab.used; i++) {
    struct session *session = slab_at(&gateway->slab, i);
    if (session->state != SESSION_FREE && stream_pending(&session->stream)) return true;
  }
  return false;
}

static void flush(struct gateway *gateway) {
  take_results(gateway);
  loop_turn(gateway->loop, 0);
  while (output_waits(gateway) && clock_now_ns() < gateway->flush_until_ns)
    loop_turn(gateway->loop, clock_now_ns() + 10 * NS_PER_MS);
  for_each_session(gateway, close_now);
  loop_turn(gateway->loop, 0);
}

static void wake(struct gateway *gateway) {
  uint64_t one = 1;
  if (!gateway->started) return;
  while (write(gateway->control_fd, &one, sizeof one) < 0 && errno == EINTR)
    ;
}

void gateway_enter(struct gateway *gateway, enum gateway_phase phase) {
  atomic_store(&gateway->phase, phase);
  wake(gateway);
}

void gateway_drop_sessions(struct gateway *gateway) {
  atomic_store(&gateway->drops, true);
  wake(gateway);
}

void gateway_wait(struct gateway *gateway, enum gateway_phase phase) {
  if (!gateway->started) return;
  if (phase == GATEWAY_FLUSHING) {
    pthread_join(gateway->thread, NULL);
    gateway->started = false;
    return;
  }
  while (atomic_load(&gateway->reached) < (int)phase)
    usleep(500);
}

/* ---- Life ---- */

static void accepted(struct doors *doors, int fd) {
  struct gateway *gateway = (struct gateway *)((char *)doors - offsetof(struct gateway, doors));
  if (atomic_load_explicit(&gateway->stats.connections, memory_order_relaxed) < gateway->connections_max) {
    session_accept(gateway, fd);
    return;
  }
  /* An answer at once; left in the backlog, the client would wait for somebody else to go. */
  struct linger linger = {.l_onoff = 1};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  close(fd);
  stat_add(&gateway->stats.refused, 1);
}

static enum status watch_events(struct gateway *gateway, struct err *err) {
  gateway->control_watch.ready = control_ready;
  gateway->port_watch.ready = port_ready;
  enum status status = loop_watch(gateway->loop, &gateway->control_watch, gateway->control_fd, EPOLLIN, err);
  if (status != STATUS_OK) return status;
  return loop_watch(gateway->loop, &gateway->port_watch, gateway->port.event_fd, EPOLLIN, err);
}

enum status gateway_open(struct gateway *gateway, struct err *err) {
  const struct server_config *config = gateway->config;
  const int keep[] = {gateway->control_fd, gateway->port.event_fd, core_wake_fd(gateway->core)};
  enum status status = STATUS_OK;
  if (gateway->own_table) status = descriptors_own(keep, sizeof keep / sizeof *keep, err);
  if (status == STATUS_OK) status = loop_create(&gateway->loop, err);
  if (status == STATUS_OK) status = watch_events(gateway, err);
  if (status == STATUS_OK && config->tls_certificate) {
    status = tls_server_context(&gateway->tls, config->tls_certificate, config->tls_key, err);
  }
  if (status != STATUS_OK) return status;
  gateway->doors.accepted = accepted;
  return doors_open(&gateway->doors, gateway->loop, gateway->addresses, gateway->number > 0, err);
}

void gateway_close(struct gateway *gateway) {
  doors_close(&gateway->doors);
  if (gateway->loop) {
    if (gateway->control_watch.fd >= 0) loop_unwatch(gateway->loop, &gateway->control_watch);
    if (gateway->port_watch.fd >= 0) loop_unwatch(gateway->loop, &gateway->port_watch);
    loop_destroy(gateway->loop);
  }
  gateway->loop = NULL;
  tls_context_free(gateway->tls);
  gateway->tls = NULL;
}

static void *run(void *context) {
  struct gateway *gateway = context;
  pthread_setname_np(pthread_self(), "gateway");
  enum status status = gateway_open(gateway, &gateway->err);
  gateway->status = status;
  sem_post(&gateway->opened);
  while (status == STATUS_OK && atomic_load(&gateway->reached) != GATEWAY_FLUSHING)
    loop_turn(gateway->loop, clock_now_ns() + TURN_NS);
  if (status == STATUS_OK) flush(gateway);
  gateway_close(gateway);
  return NULL;
}

enum status gateway_start(struct gateway *gateway, struct core *core, const struct metrics_source *metrics,
    struct door_addresses *addresses, struct err *err) {
  gateway->core = core;
  gateway->metrics = metrics;
  gateway->addresses = addresses;
  int error = pthread_create(&gateway->thread, NULL, run, gateway);
  if (error) return err_set(err, STATUS_IO, "starting a gateway thread: %s", strerror(error));
  while (sem_wait(&gateway->opened) != 0)
    ;
  gateway->addresses = NULL;
  if (gateway->status == STATUS_OK) {
    gateway->started = true;
    return STATUS_OK;
  }
  pthread_join(gateway->thread, NULL);
  if (err) *err = gateway->err;
  return gateway->status;
}

void gateway_free(struct gateway *gateway) {
  slab_free(&gateway->slab);
  if (gateway->port.event_fd >= 0) gateway_port_close(&gateway->port);
  gateway->port.event_fd = -1;
  if (gateway->control_fd >= 0) close(gateway->control_fd);
  gateway->control_fd = -1;
  sem_destroy(&gateway->opened);
}
