#include "driver/visit.h"

#include "base/clock.h"
#include "net/loop.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define TURN_NS (50 * NS_PER_MS)
#define GOOD_BYE_NS (300 * NS_PER_MS) /* for the server to close; then we do */

struct visits {
  struct driver_run *run;
  struct loop *loop; /* owned */
  enum visit kind;
  uint32_t next, end;
  uint32_t made, failed; /* visits that are over */
  uint8_t *places;       /* owned: struct place, each with the driver's state behind it */
  uint32_t count;        /* of places */
  size_t stride;
  enum status status;
  struct err *err;
};

struct place {
  struct visits *all;
  uint64_t leave_ns; /* when the good-bye has had its time; 0: not said yet */
  bool taken;
  struct client client; /* last: the driver's state lies behind it */
};

static struct place *place_of(struct client *client) {
  return (struct place *)((uint8_t *)client - offsetof(struct place, client));
}

static struct place *place_at(const struct visits *visits, uint32_t i) {
  return (struct place *)(visits->places + i * visits->stride);
}

static void leave(struct place *place) {
  if (!place->taken) return;
  place->taken = false;
  stream_close(&place->client.stream, false);
  place->client.run->driver->released(&place->client);
}

/* --- hooks --- */

static const char *reason_of(const struct driver_run *run, int32_t code) {
  const char *text = run->driver->code_text ? run->driver->code_text(code) : NULL;
  return text ? text : cause_name(code) ? cause_name(code) : "for a reason without a name";
}

static void on_failed(struct client *client, int32_t code) {
  struct place *place = place_of(client);
  struct visits *all = place->all;
  all->failed++;
  if (all->kind == VISIT_TO_BE_KNOWN && all->status == STATUS_OK) {
    all->status = err_set(all->err, STATUS_UNREACHABLE, "%s does not let client %u in for the set-up: %s (%d)",
        all->run->settings.target, client->index, reason_of(all->run, code), code);
  }
  leave(place);
}

static void on_established(struct client *client) {
  place_of(client)->leave_ns = clock_now_ns() + GOOD_BYE_NS;
}

static void on_acked(struct client *client, uint32_t token, int32_t code) {
  (void)client, (void)token, (void)code;
}

static void on_delivered(struct client *client, struct view content, bool overlap) {
  (void)client, (void)content, (void)overlap;
}

static void on_wake(struct client *client, uint64_t due_ns) {
  (void)client, (void)due_ns;
}

static const struct client_hooks hooks = {
    .established = on_established, .failed = on_failed, .acked = on_acked, .delivered = on_delivered, .wake = on_wake};

/* --- the stream --- */

static struct client *client_of(struct stream *stream) {
  return (struct client *)((uint8_t *)stream - offsetof(struct client, stream));
}

static void on_opened(struct stream *stream) {
  struct client *client = client_of(stream);
  client->run->driver->opened(client);
}

static size_t on_received(struct stream *stream, uint8_t *data, size_t len) {
  struct client *client = client_of(stream);
  struct place *place = place_of(client);
  bool was_in = place->leave_ns > 0;
  if (was_in) return len; /* the good-bye is said: nothing matters any more */
  size_t used = client->run->driver->received(client, data, len);
  if (place->taken && place->leave_ns > 0) client->run->driver->closing(client);
  return used;
}

static void on_closed(struct stream *stream, enum stream_end end, int error) {
  struct client *client = client_of(stream);
  struct place *place = place_of(client);
  (void)error;
  if (place->leave_ns == 0) {
    int32_t cause = end == STREAM_END_REFUSED ? CAUSE_CONNECT_REFUSED
                    : end == STREAM_END_TLS   ? CAUSE_TLS
                                              : CAUSE_CLOSED_EARLY;
    on_failed(client, cause);
    return;
  }
  place->all->made++;
  leave(place);
}

static const struct stream_ops stream_ops = {.opened = on_opened, .received = on_received, .closed = on_closed};

/* --- the visits --- */

/* A set-up in which somebody is missing is none; of those to be forgotten each counts for itself. */
static enum status enter(struct visits *visits, struct place *place) {
  struct driver_run *run = visits->run;
  struct tls_context *tls = run->driver->starts_tls ? NULL : run->tls;
  memset(place, 0, visits->stride);
  place->all = visits;
  place->client.hooks = &hooks;
  place->client.run = run;
  place->client.index = visits->next++;
  place->client.visit = (uint8_t)visits->kind;
  place->client.stream.watch.fd = -1;
  enum status status = stream_connect(
      &place->client.stream, visits->loop, &stream_ops, &run->address, NULL, tls, run->server_name, visits->err);
  place->taken = status == STATUS_OK;
  if (place->taken || visits->kind == VISIT_TO_BE_KNOWN) return status;
  visits->failed++;
  return STATUS_OK;
}

static void tend(struct visits *visits, uint64_t now_ns) {
  for (uint32_t i = 0; i < visits->count && visits->status == STATUS_OK; i++) {
    struct place *place = place_at(visits, i);
    if (place->taken && place->leave_ns > 0 && now_ns >= place->leave_ns) {
      visits->made++;
      leave(place);
    }
    if (!place->taken && visits->next < visits->end) visits->status = enter(visits, place);
  }
}

/* The first signal ends the run, and what it left in the server is still taken away; the second one ends that too. */
static bool is_stopped(const struct visits *visits) {
  const volatile int *interrupted = visits->run->settings.interrupted;
  return interrupted && *interrupted > (visits->kind == VISIT_TO_BE_FORGOTTEN ? 1 : 0);
}

static enum status run_visits(struct visits *visits, uint32_t first, uint64_t deadline_ns) {
  const struct driver_settings *settings = &visits->run->settings;
  uint32_t all = visits->end - first;
  while (visits->status == STATUS_OK && visits->made + visits->failed < all) {
    uint64_t now_ns = clock_now_ns();
    if (is_stopped(visits)) return err_set(visits->err, STATUS_INTERRUPTED, "stopped during the set-up");
    if (now_ns >= deadline_ns) {
      return err_set(visits->err, STATUS_UNREACHABLE,
          "%s let %u of %u clients in before the set-up had to be over: raise --setup-timeout or --setup-concurrency",
          settings->target, visits->made, all);
    }
    tend(visits, now_ns);
    uint64_t until_ns = now_ns + TURN_NS;
    loop_turn(visits->loop, until_ns < deadline_ns ? until_ns : deadline_ns);
  }
  return visits->status;
}

static enum status carry_out(struct visits *visits, uint64_t deadline_ns) {
  struct driver_run *run = visits->run;
  uint32_t first = visits->next, all = visits->end - first;
  uint32_t wanted = run->settings.setup_concurrency > 0 ? run->settings.setup_concurrency : 1;
  visits->count = wanted < all ? wanted : all;
  visits->stride = (sizeof(struct place) + run->driver->client_bytes + 15) / 16 * 16;
  visits->places = calloc(visits->count, visits->stride);
  if (!visits->places) return err_set(visits->err, STATUS_MEMORY, "out of memory for the visits of the set-up");
  enum status status = loop_create(&visits->loop, visits->err);
  if (status == STATUS_OK) {
    status = run_visits(visits, first, deadline_ns);
    for (uint32_t i = 0; i < visits->count; i++)
      leave(place_at(visits, i));
    loop_destroy(visits->loop);
  }
  free(visits->places);
  return status;
}

enum status visit_to_be_known(
    struct driver_run *run, uint32_t first, uint32_t end, uint64_t deadline_ns, struct err *err) {
  struct visits visits = {.run = run, .kind = VISIT_TO_BE_KNOWN, .next = first, .end = end, .err = err};
  return first < end ? carry_out(&visits, deadline_ns) : STATUS_OK;
}

uint32_t visit_to_be_forgotten(struct driver_run *run, uint32_t first, uint32_t end, uint64_t deadline_ns) {
  struct visits visits = {.run = run, .kind = VISIT_TO_BE_FORGOTTEN, .next = first, .end = end};
  if (first >= end) return 0;
  carry_out(&visits, deadline_ns);
  return end - first - visits.made;
}
