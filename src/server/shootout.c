#include "server/shootout.h"

#include "base/clock.h"
#include "server/metrics.h"
#include "server/shootout_room.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TURN_NS (100 * NS_PER_MS)
#define STOP_TURN_NS (2 * NS_PER_MS)
#define FLUSH_LIMIT_NS (2 * NS_PER_SEC)
#define CABLE_PING_NS (3 * NS_PER_SEC)

/* ---- The thread ---- */

static void woken(struct watch *watch, uint32_t events) {
  (void)events;
  struct shootout_loop *loop = (struct shootout_loop *)((char *)watch - offsetof(struct shootout_loop, wake));
  uint64_t count;
  if (read(watch->fd, &count, sizeof count) < 0 && errno != EAGAIN) return;
  shootout_take_notes(loop);
}

static void accepted(struct doors *doors, int fd) {
  shootout_accept((struct shootout_loop *)((char *)doors - offsetof(struct shootout_loop, doors)), fd);
}

/* Subscribed or not, every ActionCable connection is pinged. */
static void ping_cables(struct timer *timer, uint64_t now_ns) {
  struct shootout_loop *loop = (struct shootout_loop *)((char *)timer - offsetof(struct shootout_loop, cable_ping));
  struct shootout_text text;
  shootout_cable_ping(&text, (uint64_t)clock_wall_ms() / 1000);
  uint8_t frame[128];
  size_t len = shootout_frame_size(&text);
  shootout_write_frame(frame, SHOOTOUT_CABLE, &text);
  struct shootout_session *next;
  for (struct shootout_session *session = loop->sessions; session; session = next) {
    next = session->next;
    if (session->state == SHOOTOUT_OPEN && session->room == ROOM_CABLE) shootout_give(session, frame, len);
  }
  timer_arm(loop_wheel(loop->loop), timer, now_ns + CABLE_PING_NS);
}

/* Calls visit for every session; it may close the one it is given. */
static void for_each(struct shootout_loop *loop, void (*visit)(struct shootout_session *session)) {
  struct shootout_session *next;
  for (struct shootout_session *session = loop->sessions; session; session = next) {
    next = session->next;
    visit(session);
  }
}

static void stop_reading(struct shootout_session *session) {
  shootout_pause(session, SHOOTOUT_PAUSE_STOP);
}

static void good_bye(struct shootout_session *session) {
  shootout_finish(session, 1001, "the server stops");
}

static void close_now(struct shootout_session *session) {
  shootout_close(session, false);
}

static bool output_waits(const struct shootout_loop *loop) {
  for (const struct shootout_session *session = loop->sessions; session; session = session->next) {
    if (stream_pending(&session->stream)) return true;
  }
  return false;
}

/* In three steps, since a broadcast needs all threads: nobody reads any more; nothing is under way; all is written. */
static void stop(struct shootout_loop *loop) {
  struct shootout *house = loop->house;
  doors_close(&loop->doors);
  for_each(loop, stop_reading);
  atomic_fetch_add(&house->drained, 1);
  while (atomic_load(&house->drained) < house->count || atomic_load(&house->in_flight) > 0)
    loop_turn(loop->loop, clock_now_ns() + STOP_TURN_NS);
  for_each(loop, good_bye);
  uint64_t until_ns = clock_now_ns() + FLUSH_LIMIT_NS;
  do {
    loop_turn(loop->loop, clock_now_ns() + STOP_TURN_NS);
  } while (output_waits(loop) && clock_now_ns() < until_ns);
  for_each(loop, close_now);
  timer_cancel(loop_wheel(loop->loop), &loop->cable_ping);
  loop_turn(loop->loop, 0);
}

static void *run(void *context) {
  struct shootout_loop *loop = context;
  pthread_setname_np(pthread_self(), "shootout");
  while (!atomic_load(&loop->house->stopping))
    loop_turn(loop->loop, clock_now_ns() + TURN_NS);
  stop(loop);
  return NULL;
}

/* ---- Life ---- */

static enum status open_loop(struct shootout_loop *loop, struct door_addresses *addresses, struct err *err) {
  const struct server_config *config = loop->house->config;
  enum status status = loop_create(&loop->loop, err);
  if (status != STATUS_OK) return status;
  int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return err_set(err, STATUS_IO, "eventfd: %s", strerror(errno));
  loop->wake.ready = woken;
  status = loop_watch(loop->loop, &loop->wake, fd, EPOLLIN, err);
  if (status != STATUS_OK) {
    close(fd);
    return status;
  }
  if (config->tls_certificate) {
    status = tls_server_context(&loop->tls, config->tls_certificate, config->tls_key, err);
    if (status != STATUS_OK) return status;
  }
  loop->cable_ping.fire = ping_cables;
  timer_arm(loop_wheel(loop->loop), &loop->cable_ping, clock_now_ns() + CABLE_PING_NS);
  loop->doors.accepted = accepted;
  return doors_open(&loop->doors, loop->loop, addresses, loop->number > 0, err);
}

static enum status open_loops(struct shootout *house, uint16_t *port, struct err *err) {
  const struct server_config *config = house->config;
  struct door_addresses addresses;
  enum status status = door_addresses_read(config->bind_host, config->bind_more, *port, &addresses, err);
  for (uint32_t i = 0; status == STATUS_OK && i < house->count; i++)
    status = open_loop(&house->loops[i], &addresses, err);
  if (status == STATUS_OK) *port = address_port(&addresses.address[0]);
  return status;
}

static enum status start_threads(struct shootout *house, struct err *err) {
  for (uint32_t i = 0; i < house->count; i++) {
    struct shootout_loop *loop = &house->loops[i];
    int error = pthread_create(&loop->thread, NULL, run, loop);
    if (error) return err_set(err, STATUS_IO, "starting a shootout thread: %s", strerror(error));
    loop->started = true;
  }
  return STATUS_OK;
}

static void free_loop(struct shootout_loop *loop) {
  doors_close(&loop->doors);
  int fd = loop->wake.fd;
  if (fd >= 0) {
    loop_unwatch(loop->loop, &loop->wake);
    close(fd);
  }
  if (loop->loop) loop_destroy(loop->loop);
  tls_context_free(loop->tls);
  pthread_mutex_destroy(&loop->lock);
}

enum status shootout_start(struct shootout **out, const struct server_config *config, uint16_t *port, struct err *err) {
  struct shootout *house = calloc(1, sizeof *house + config->gateways * sizeof *house->loops);
  if (!house) return err_set(err, STATUS_MEMORY, "out of memory for the shootout server");
  house->config = config;
  house->count = config->gateways;
  for (uint32_t i = 0; i < house->count; i++) {
    struct shootout_loop *loop = &house->loops[i];
    loop->house = house;
    loop->number = i;
    loop->wake.fd = -1;
    loop->inbox_end = &loop->inbox;
    pthread_mutex_init(&loop->lock, NULL);
  }
  enum status status = open_loops(house, port, err);
  if (status == STATUS_OK) status = start_threads(house, err);
  if (status != STATUS_OK) {
    shootout_stop(house);
    return status;
  }
  *out = house;
  return STATUS_OK;
}

void shootout_stop(struct shootout *house) {
  if (!house) return;
  /* Where a thread could not be started, the others must not wait for it. */
  for (uint32_t i = 0; i < house->count; i++) {
    if (!house->loops[i].started) atomic_fetch_add(&house->drained, 1);
  }
  atomic_store(&house->stopping, true);
  for (uint32_t i = 0; i < house->count; i++) {
    if (house->loops[i].started) shootout_wake(&house->loops[i]);
  }
  for (uint32_t i = 0; i < house->count; i++) {
    if (house->loops[i].started) pthread_join(house->loops[i].thread, NULL);
  }
  for (uint32_t i = 0; i < house->count; i++)
    free_loop(&house->loops[i]);
  free(house);
}

/* ---- Metrics ---- */

struct counter {
  const char *name;
  size_t offset;
};

#define COUNTER(field)                                                                                                 \
  { #field, offsetof(struct shootout_stats, field) }
static const struct counter counters[] = {COUNTER(connections), COUNTER(members), COUNTER(accepted), COUNTER(upgraded),
    COUNTER(echoes), COUNTER(broadcasts), COUNTER(copies), COUNTER(results), COUNTER(pauses), COUNTER(protocol_errors),
    COUNTER(deadlines), COUNTER(slow_readers_dropped)};

static uint64_t total_of(const struct shootout *house, size_t offset) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < house->count; i++) {
    const char *stats = (const char *)&house->loops[i].stats;
    sum += atomic_load_explicit((const atomic_uint_fast64_t *)(stats + offset), memory_order_relaxed);
  }
  return sum;
}

void shootout_read(const struct shootout *house, struct shootout_totals *out) {
  *out = (struct shootout_totals){
      .connections = total_of(house, offsetof(struct shootout_stats, connections)),
      .echoes = total_of(house, offsetof(struct shootout_stats, echoes)),
      .broadcasts = total_of(house, offsetof(struct shootout_stats, broadcasts)),
      .copies = total_of(house, offsetof(struct shootout_stats, copies)),
      .slow_readers_dropped = total_of(house, offsetof(struct shootout_stats, slow_readers_dropped)),
  };
}

void shootout_metrics(const struct shootout *house, char *out, size_t size) {
  size_t at = 0;
  for (size_t i = 0; i < sizeof counters / sizeof *counters && at < size; i++) {
    uint64_t sum = total_of(house, counters[i].offset);
    int len = snprintf(out + at, size - at, "%s\"%s\":%llu", i ? "," : "{", counters[i].name, (unsigned long long)sum);
    at += len > 0 ? (size_t)len : 0;
  }
  if (at + 1 < size) snprintf(out + at, size - at, "}");
}
