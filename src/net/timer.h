/* Hierarchical timing wheel: a million keep-alives at a constant cost each. Ticks of 1 ms; a timer fires at or up to
 * one tick after its due time, never before. Intrusive: the owner embeds struct timer (32 bytes). */
#ifndef MUSTER_NET_TIMER_H
#define MUSTER_NET_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct timer {
  struct timer *next;
  struct timer **link; /* NULL while not armed */
  uint64_t due_tick;
  void (*fire)(struct timer *timer, uint64_t now_ns);
};

struct wheel;

struct wheel *wheel_create(uint64_t now_ns); /* NULL: out of memory */
void wheel_destroy(struct wheel *wheel);

/* Arms or re-arms; fire must be set. A due time in the past fires at the next advance. */
void timer_arm(struct wheel *wheel, struct timer *timer, uint64_t due_ns);
/* Harmless when not armed. */
void timer_cancel(struct wheel *wheel, struct timer *timer);
static inline bool timer_armed(const struct timer *timer) {
  return timer->link != 0;
}

/* Fires what is due; handlers may arm and cancel any timer, their own included. */
void wheel_advance(struct wheel *wheel, uint64_t now_ns);
/* A time before which nothing is due (not later than the earliest timer); UINT64_MAX when none is armed. */
uint64_t wheel_next_ns(const struct wheel *wheel);

#endif
