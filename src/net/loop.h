/* The event loop: one epoll set, one timing wheel, one pacer, one read buffer and one pool of write buffers; one
 * loop per worker process or gateway thread. A turn waits, dispatches readiness, fires timers, and at its end flushes
 * each stream that was written to, so that all frames of a turn leave in one system call per connection. */
#ifndef MUSTER_NET_LOOP_H
#define MUSTER_NET_LOOP_H

#include "base/err.h"
#include "net/timer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOP_READ_BYTES (64 * 1024)

struct loop;

/* Something readable: a descriptor and what to do. Embedded in its owner, which sets ready before loop_watch. */
struct watch {
  void (*ready)(struct watch *watch, uint32_t epoll_events);
  int fd; /* -1 while not watched */
};

/* Work that is due at exact times. The loop looks at the clock after each event handler, so one burst of readiness
 * cannot delay it by more than one handler; before the due time it sleeps, then spins for the last spin_ns. */
struct pacer_hook {
  void (*run)(struct pacer_hook *hook, uint64_t now_ns); /* must move due_ns on */
  uint64_t due_ns;                                       /* UINT64_MAX: nothing due */
};

/* Also sets the calling thread's timer slack to 1 ns. */
enum status loop_create(struct loop **out, struct err *err);
void loop_destroy(struct loop *loop);

enum status loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t epoll_events, struct err *err);
enum status loop_rewatch(struct loop *loop, struct watch *watch, uint32_t epoll_events, struct err *err);
/* Forgets the descriptor without closing it; events of this turn that are still to come are dropped. */
void loop_unwatch(struct loop *loop, struct watch *watch);

/* One turn; returns at until_ns at the latest (0: do not wait), or when a signal came. spin_ns as above; 0 when no
 * pacer is set. */
void loop_turn(struct loop *loop, uint64_t until_ns);
void loop_set_pacer(struct loop *loop, struct pacer_hook *hook, uint64_t spin_ns);

/* The time read at the last event of this turn: good for time-outs, not for latencies. */
uint64_t loop_now_ns(const struct loop *loop);
struct wheel *loop_wheel(struct loop *loop);

/* Calls release(memory) at the end of the turn (or of the next, when called from a release), when no pending event can
 * point into it. */
void loop_defer(struct loop *loop, void (*release)(void *memory), void *memory);

/* Work for the moment before streams are flushed: at the end of a turn, and after the pacer ran. Embedded in its owner,
 * which sets run; the hook is forgotten before it runs and may ask again from within. */
struct loop_hook {
  void (*run)(struct loop_hook *hook);
  struct loop_hook *next;
  bool is_asked;
};
void loop_before_flush(struct loop *loop, struct loop_hook *hook);
/* Harmless when it was not asked for. */
void loop_forget_hook(struct loop *loop, struct loop_hook *hook);

/* What the loop saw of its own time, for the verdict: busy share and gaps (the clock jumped by more than 1 ms between
 * two readings of a spin, or a sleep lasted that much too long: the hypervisor or another process took the core). */
struct loop_stats {
  uint64_t turns, events;
  uint64_t busy_ns, waited_ns; /* waited: in epoll_wait; spinning counts as waited */
  uint64_t gaps, gap_ns, longest_gap_ns;
};
void loop_stats(const struct loop *loop, struct loop_stats *out);
void loop_stats_reset(struct loop *loop);

/* What somebody who looks at a loop's times now and then saw last. */
struct loop_look {
  uint64_t busy_ns, waited_ns;
  double busy_share;
};
/* The busy share of the time since the last look, or since a reset after it; the last one when no time went by. */
double loop_busy_share(struct loop_look *look, uint64_t busy_ns, uint64_t waited_ns);

#endif
