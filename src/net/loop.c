#include "net/loop.h"

#include "base/clock.h"
#include "net/loop_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define BATCH 128
#define POOL_COUNT_MAX 1024
#define POOL_BYTES_MAX (4U * 1024 * 1024)
#define POOL_BUF_MAX (128U * 1024)
#define GAP_NS NS_PER_MS
/* A wait that found events within this time did not wait: it was the price of asking. */
#define ASKING_NS (5 * NS_PER_US)
#define FOREVER UINT64_MAX

struct deferred {
  void (*release)(void *memory);
  void *memory;
};

struct loop {
  int epoll_fd;
  int batch_count;
  int batch_at;
  uint64_t now_ns;
  struct wheel *wheel;
  struct pacer_hook *pacer;
  uint64_t spin_ns;
  struct stream *dirty;
  struct stream *failed; /* their closed is called at the end of a turn, at the latest of the next one */
  struct stream *ending; /* failed ones whose closed is called now */
  struct loop_hook *hooks;
  struct guard *guards;
  struct deferred *deferred;
  size_t deferred_count;
  size_t deferred_cap;
  uint8_t *plain; /* made by the first TLS stream */
  struct buf *pool;
  uint32_t pool_count;
  uint32_t pool_bytes;
  struct loop_stats stats;
  struct epoll_event batch[BATCH];
  uint8_t read[LOOP_READ_BYTES];
};

enum status loop_create(struct loop **out, struct err *err) {
  struct loop *loop = calloc(1, sizeof *loop);
  if (!loop) return err_set(err, STATUS_MEMORY, "out of memory for an event loop");
  loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (loop->epoll_fd < 0) {
    int error = errno;
    free(loop);
    return err_set(err, STATUS_IO, "cannot create an epoll set: %s%s", strerror(error),
        error == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
  }
  loop->now_ns = clock_now_ns();
  loop->wheel = wheel_create(loop->now_ns);
  loop->pool = calloc(POOL_COUNT_MAX, sizeof *loop->pool);
  if (!loop->wheel || !loop->pool) {
    loop_destroy(loop);
    return err_set(err, STATUS_MEMORY, "out of memory for an event loop");
  }
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  *out = loop;
  return STATUS_OK;
}

/* A release may defer again: that waits for the next turn. */
static void release_deferred(struct loop *loop) {
  size_t count = loop->deferred_count;
  for (size_t i = 0; i < count; i++) {
    struct deferred one = loop->deferred[i];
    one.release(one.memory);
  }
  loop->deferred_count -= count;
  if (loop->deferred_count)
    memmove(loop->deferred, loop->deferred + count, loop->deferred_count * sizeof *loop->deferred);
}

void loop_destroy(struct loop *loop) {
  if (!loop) return;
  while (loop->deferred_count)
    release_deferred(loop);
  for (uint32_t i = 0; i < loop->pool_count; i++)
    buf_free(&loop->pool[i]);
  free(loop->pool);
  free(loop->deferred);
  free(loop->plain);
  if (loop->wheel) wheel_destroy(loop->wheel);
  close(loop->epoll_fd);
  free(loop);
}

static enum status control(
    struct loop *loop, int operation, struct watch *watch, int fd, uint32_t epoll_events, struct err *err) {
  struct epoll_event event = {.events = epoll_events, .data.ptr = watch};
  if (epoll_ctl(loop->epoll_fd, operation, fd, &event) == 0) return STATUS_OK;
  return err_set(err, STATUS_IO, "epoll refuses descriptor %d: %s", fd, strerror(errno));
}

enum status loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t epoll_events, struct err *err) {
  enum status status = control(loop, EPOLL_CTL_ADD, watch, fd, epoll_events, err);
  watch->fd = status == STATUS_OK ? fd : -1;
  return status;
}

enum status loop_rewatch(struct loop *loop, struct watch *watch, uint32_t epoll_events, struct err *err) {
  return control(loop, EPOLL_CTL_MOD, watch, watch->fd, epoll_events, err);
}

void loop_unwatch(struct loop *loop, struct watch *watch) {
  if (watch->fd < 0) return;
  /* Explicitly, since a forked child that still holds the descriptor would keep it in the set after a close. */
  epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
  watch->fd = -1;
  for (int i = loop->batch_at; i < loop->batch_count; i++) {
    if (loop->batch[i].data.ptr == watch) loop->batch[i].data.ptr = NULL;
  }
}

void loop_set_pacer(struct loop *loop, struct pacer_hook *hook, uint64_t spin_ns) {
  loop->pacer = hook;
  loop->spin_ns = hook ? spin_ns : 0;
}

uint64_t loop_now_ns(const struct loop *loop) {
  return loop->now_ns;
}

struct wheel *loop_wheel(struct loop *loop) {
  return loop->wheel;
}

void loop_defer(struct loop *loop, void (*release)(void *memory), void *memory) {
  if (loop->deferred_count == loop->deferred_cap) {
    size_t cap = loop->deferred_cap ? loop->deferred_cap * 2 : 64;
    struct deferred *grown = realloc(loop->deferred, cap * sizeof *grown);
    /* Without memory for the note there is no safe time to free: keep what it names. */
    if (!grown) return;
    loop->deferred = grown;
    loop->deferred_cap = cap;
  }
  loop->deferred[loop->deferred_count++] = (struct deferred){release, memory};
}

uint8_t *loop_read_buffer(struct loop *loop) {
  return loop->read;
}

uint8_t *loop_plain_buffer(struct loop *loop) {
  if (!loop->plain) loop->plain = malloc(LOOP_READ_BYTES);
  return loop->plain;
}

struct buf loop_take_buf(struct loop *loop) {
  if (!loop->pool_count) return (struct buf){0};
  struct buf buf = loop->pool[--loop->pool_count];
  loop->pool_bytes -= buf.cap;
  return buf;
}

void loop_give_buf(struct loop *loop, struct buf *buf) {
  bool keep = buf->cap && buf->cap <= POOL_BUF_MAX && loop->pool_count < POOL_COUNT_MAX &&
              loop->pool_bytes + buf->cap <= POOL_BYTES_MAX;
  if (!keep) {
    buf_free(buf);
    return;
  }
  buf->len = 0;
  loop->pool[loop->pool_count++] = *buf;
  loop->pool_bytes += buf->cap;
  *buf = (struct buf){0};
}

struct stream **loop_dirty(struct loop *loop) {
  return &loop->dirty;
}

struct stream **loop_failed(struct loop *loop) {
  return &loop->failed;
}

struct guard **loop_guards(struct loop *loop) {
  return &loop->guards;
}

/* True when the pacer ran. */
static bool pace(struct loop *loop) {
  if (!loop->pacer) return false;
  loop->now_ns = clock_now_ns();
  if (loop->now_ns < loop->pacer->due_ns) return false;
  loop->pacer->run(loop->pacer, loop->now_ns);
  return true;
}

void loop_before_flush(struct loop *loop, struct loop_hook *hook) {
  if (hook->is_asked) return;
  hook->is_asked = true;
  hook->next = loop->hooks;
  loop->hooks = hook;
}

void loop_forget_hook(struct loop *loop, struct loop_hook *hook) {
  struct loop_hook **link = &loop->hooks;
  if (!hook->is_asked) return;
  while (*link != hook)
    link = &(*link)->next;
  *link = hook->next;
  hook->is_asked = false;
}

/* Those that ask again from within wait for the next time. */
static void run_hooks(struct loop *loop) {
  size_t count = 0;
  for (const struct loop_hook *hook = loop->hooks; hook; hook = hook->next)
    count++;
  while (count-- && loop->hooks) {
    struct loop_hook *oldest = loop->hooks;
    while (oldest->next)
      oldest = oldest->next;
    loop_forget_hook(loop, oldest);
    oldest->run(oldest);
  }
}

/* What the pacer writes meanwhile goes to the front of the list, so it leaves first. */
static void flush_dirty(struct loop *loop) {
  run_hooks(loop);
  while (loop->dirty) {
    struct stream *stream = loop->dirty;
    stream_leave_list(stream);
    stream_settle(stream);
    pace(loop);
  }
}

/* A stream that fails meanwhile (a reconnect that is refused at once) waits for the next turn, or this would not end.
 */
static void end_failed(struct loop *loop) {
  stream_move_list(&loop->failed, &loop->ending);
  while (loop->ending) {
    struct stream *stream = loop->ending;
    stream_leave_list(stream);
    stream_settle(stream);
    pace(loop);
  }
}

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static struct timespec timespec_of(uint64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC), .tv_nsec = (long)(ns % NS_PER_SEC)};
}

/* Negative when a signal came. */
static int poll_for(struct loop *loop, uint64_t timeout_ns) {
  struct timespec timeout = timespec_of(earlier(timeout_ns, 3600 * NS_PER_SEC));
  return epoll_pwait2(loop->epoll_fd, loop->batch, BATCH, &timeout, NULL);
}

static void record_gap(struct loop_stats *stats, uint64_t gap_ns) {
  stats->gaps++;
  stats->gap_ns += gap_ns;
  if (gap_ns > stats->longest_gap_ns) stats->longest_gap_ns = gap_ns;
}

/* Waits for events, at the latest until something is due. Sleeps, and spins through the last spin_ns before the pacer's
 * due time, serving readiness all the while. */
static void wait_for_events(struct loop *loop, uint64_t until_ns) {
  uint64_t pacer_ns = loop->pacer ? loop->pacer->due_ns : FOREVER;
  uint64_t other_ns = earlier(until_ns, wheel_next_ns(loop->wheel));
  uint64_t spin_from_ns = pacer_ns > loop->spin_ns ? pacer_ns - loop->spin_ns : 0;
  uint64_t sleep_until_ns = earlier(other_ns, pacer_ns == FOREVER ? FOREVER : spin_from_ns);
  if (loop->dirty || loop->failed || loop->deferred_count || loop->hooks) sleep_until_ns = other_ns = 0;
  for (;;) {
    uint64_t now_ns = loop->now_ns;
    bool sleeps = now_ns < sleep_until_ns;
    int count = poll_for(loop, sleeps ? sleep_until_ns - now_ns : 0);
    loop->batch_count = count > 0 ? count : 0;
    loop->now_ns = clock_now_ns();
    uint64_t took_ns = loop->now_ns - now_ns;
    if (!sleeps && took_ns > GAP_NS) record_gap(&loop->stats, took_ns);
    bool overslept = sleeps && count == 0 && loop->now_ns > sleep_until_ns;
    if (overslept && loop->now_ns - sleep_until_ns > GAP_NS) record_gap(&loop->stats, loop->now_ns - sleep_until_ns);
    bool waited = sleeps ? !loop->batch_count || took_ns > ASKING_NS : !loop->batch_count;
    if (waited) loop->stats.waited_ns += took_ns;
    if (count != 0 || loop->now_ns >= other_ns || loop->now_ns >= pacer_ns) return;
  }
}

static void dispatch(struct loop *loop) {
  loop->stats.events += (uint64_t)loop->batch_count;
  for (loop->batch_at = 0; loop->batch_at < loop->batch_count;) {
    struct epoll_event event = loop->batch[loop->batch_at++];
    struct watch *watch = event.data.ptr;
    if (watch) watch->ready(watch, event.events);
    if (pace(loop)) flush_dirty(loop);
  }
  loop->batch_at = loop->batch_count = 0;
}

void loop_turn(struct loop *loop, uint64_t until_ns) {
  uint64_t began_ns = loop->now_ns = clock_now_ns();
  uint64_t waited_before_ns = loop->stats.waited_ns;
  loop->stats.turns++;
  wait_for_events(loop, until_ns);
  if (pace(loop)) flush_dirty(loop);
  dispatch(loop);
  loop->now_ns = clock_now_ns();
  wheel_advance(loop->wheel, loop->now_ns);
  flush_dirty(loop);
  end_failed(loop);
  flush_dirty(loop);
  release_deferred(loop);
  loop->now_ns = clock_now_ns();
  loop->stats.busy_ns += loop->now_ns - began_ns - (loop->stats.waited_ns - waited_before_ns);
}

void loop_stats(const struct loop *loop, struct loop_stats *out) {
  *out = loop->stats;
}

void loop_stats_reset(struct loop *loop) {
  loop->stats = (struct loop_stats){0};
}

double loop_busy_share(struct loop_look *look, uint64_t busy_ns, uint64_t waited_ns) {
  bool reset = busy_ns < look->busy_ns || waited_ns < look->waited_ns;
  uint64_t busy = reset ? busy_ns : busy_ns - look->busy_ns, waited = reset ? waited_ns : waited_ns - look->waited_ns;
  look->busy_ns = busy_ns;
  look->waited_ns = waited_ns;
  if (busy + waited > 0) look->busy_share = (double)busy / (double)(busy + waited);
  return look->busy_share;
}
