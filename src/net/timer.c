#include "net/timer.h"

#include "base/clock.h"

#include <stddef.h>
#include <stdlib.h>

/* A timer waits in the level of the highest base-64 digit in which its tick differs from the present one, in the slot
 * of that digit. Eight levels hold every tick that 64 bits of nanoseconds can express. */
#define LEVEL_BITS 6
#define LEVELS 8
#define SLOTS 64

struct wheel {
  uint64_t origin_ns;
  uint64_t now_tick;
  uint64_t target_tick;      /* of the last advance; beyond now_tick while it runs */
  uint64_t occupied[LEVELS]; /* one bit for each slot that is not empty */
  struct timer *slot[LEVELS * SLOTS];
  struct timer *overdue; /* armed for a time already past: for the next advance */
  struct timer *firing;  /* taken out of its slot by the advance that runs now */
};

struct wheel *wheel_create(uint64_t now_ns) {
  struct wheel *wheel = calloc(1, sizeof *wheel);
  if (wheel) wheel->origin_ns = now_ns;
  return wheel;
}

void wheel_destroy(struct wheel *wheel) {
  free(wheel);
}

static uint64_t tick_ns(const struct wheel *wheel, uint64_t tick) {
  return wheel->origin_ns + tick * NS_PER_MS;
}

/* Rounded up, so that no timer fires before its time. */
static uint64_t due_tick_of(const struct wheel *wheel, uint64_t due_ns) {
  if (due_ns <= wheel->origin_ns) return 0;
  uint64_t since_ns = due_ns - wheel->origin_ns;
  return since_ns / NS_PER_MS + (since_ns % NS_PER_MS != 0);
}

static void push(struct timer **head, struct timer *timer) {
  timer->next = *head;
  timer->link = head;
  if (timer->next) timer->next->link = &timer->next;
  *head = timer;
}

static void unlink_timer(struct timer *timer) {
  *timer->link = timer->next;
  if (timer->next) timer->next->link = timer->link;
  timer->link = NULL;
  timer->next = NULL;
}

static void insert(struct wheel *wheel, struct timer *timer) {
  uint64_t differing = timer->due_tick ^ wheel->now_tick;
  unsigned level = differing ? (63U - (unsigned)__builtin_clzll(differing)) / LEVEL_BITS : 0;
  unsigned slot = (unsigned)(timer->due_tick >> (level * LEVEL_BITS)) % SLOTS;
  push(&wheel->slot[level * SLOTS + slot], timer);
  wheel->occupied[level] |= UINT64_C(1) << slot;
}

void timer_arm(struct wheel *wheel, struct timer *timer, uint64_t due_ns) {
  timer_cancel(wheel, timer);
  timer->due_tick = due_tick_of(wheel, due_ns);
  /* Also what became due during this advance, so that a handler that re-arms for now does not hold it up for ever. */
  if (timer->due_tick <= wheel->target_tick) {
    push(&wheel->overdue, timer);
    return;
  }
  insert(wheel, timer);
}

void timer_cancel(struct wheel *wheel, struct timer *timer) {
  struct timer **link = timer->link;
  if (!link) return;
  unlink_timer(timer);
  /* When that left a slot empty, its bit goes too. */
  uintptr_t offset = (uintptr_t)link - (uintptr_t)wheel->slot;
  if (*link || offset >= sizeof wheel->slot) return;
  size_t index = (size_t)(link - wheel->slot);
  wheel->occupied[index / SLOTS] &= ~(UINT64_C(1) << (index % SLOTS));
}

static void take_list(struct timer **from, struct timer **to) {
  *to = *from;
  *from = NULL;
  if (*to) (*to)->link = to;
}

static void fire_list(struct wheel *wheel, uint64_t now_ns) {
  while (wheel->firing) {
    struct timer *timer = wheel->firing;
    unlink_timer(timer);
    timer->fire(timer, now_ns);
  }
}

/* The occupied slot that begins first; false when there is none. Lower levels always come before higher ones. */
static bool first_slot(const struct wheel *wheel, unsigned *level_out, unsigned *slot_out, uint64_t *tick_out) {
  for (unsigned level = 0; level < LEVELS; level++) {
    if (!wheel->occupied[level]) continue;
    unsigned shift = level * LEVEL_BITS;
    unsigned slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);
    *level_out = level;
    *slot_out = slot;
    *tick_out = (wheel->now_tick >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS)) | ((uint64_t)slot << shift);
    return true;
  }
  return false;
}

static void cascade(struct wheel *wheel) {
  while (wheel->firing) {
    struct timer *timer = wheel->firing;
    unlink_timer(timer);
    insert(wheel, timer);
  }
}

void wheel_advance(struct wheel *wheel, uint64_t now_ns) {
  uint64_t target = now_ns > wheel->origin_ns ? (now_ns - wheel->origin_ns) / NS_PER_MS : 0;
  if (target > wheel->target_tick) wheel->target_tick = target;
  take_list(&wheel->overdue, &wheel->firing);
  fire_list(wheel, now_ns);
  unsigned level;
  unsigned slot;
  uint64_t tick;
  while (first_slot(wheel, &level, &slot, &tick) && tick <= target) {
    wheel->now_tick = tick;
    wheel->occupied[level] &= ~(UINT64_C(1) << slot);
    take_list(&wheel->slot[level * SLOTS + slot], &wheel->firing);
    if (level > 0) {
      cascade(wheel);
    } else {
      fire_list(wheel, now_ns);
    }
  }
  if (target > wheel->now_tick) wheel->now_tick = target;
}

uint64_t wheel_next_ns(const struct wheel *wheel) {
  if (wheel->overdue || wheel->firing) return tick_ns(wheel, wheel->now_tick);
  unsigned level;
  unsigned slot;
  uint64_t tick;
  return first_slot(wheel, &level, &slot, &tick) ? tick_ns(wheel, tick) : UINT64_MAX;
}
