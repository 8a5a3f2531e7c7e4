#include "server/inbox.h"
#include "server/recipients.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct inbox_limits limits_of(uint32_t per_inbox, uint64_t in_all) {
  return (struct inbox_limits){.entries_per_inbox = per_inbox, .entries_in_all = in_all};
}

static void entries_keep_full_numbers(void **state) {
  (void)state;
  struct inbox_limits limits = limits_of(64, 1000);
  struct inbox inbox = {0};
  /* Across the point where the low 32 bits start again. */
  int64_t time_ms = (INT64_C(400) << 32) - 10, id = (INT64_C(3) << 32) - 5;
  for (int i = 0; i < 20; i++) {
    struct inbox_entry entry = {time_ms + i, id + i, i};
    assert_true(inbox_append(&inbox, &limits, &entry, 0));
  }
  assert_int_equal(inbox.count, 20);
  for (uint32_t i = 0; i < 20; i++) {
    struct inbox_entry entry = inbox_at(&inbox, i);
    assert_int_equal(entry.time_ms, time_ms + i);
    assert_int_equal(entry.message_id, id + i);
    assert_int_equal(entry.unread_index, i);
    assert_int_equal(inbox_after(&inbox, entry.time_ms), i + 1);
    assert_int_equal(inbox_after(&inbox, entry.time_ms - 1), i);
  }
  assert_int_equal(inbox_after(&inbox, 0), 0);
  inbox_free(&inbox, &limits);
  assert_int_equal(limits.entries_held, 0);
}

static void a_full_ring_drops_the_oldest(void **state) {
  (void)state;
  struct inbox_limits limits = limits_of(16, 1000);
  struct inbox inbox = {0};
  for (int64_t i = 1; i <= 40; i++)
    assert_true(inbox_append(&inbox, &limits, &(struct inbox_entry){i, i, 0}, 0));
  assert_int_equal(inbox.count, 16);
  assert_int_equal(limits.entries_dropped, 24);
  assert_int_equal(inbox_at(&inbox, 0).message_id, 25);
  assert_int_equal(inbox_at(&inbox, 15).message_id, 40);
  assert_int_equal(inbox_after(&inbox, 30), 6);
  inbox_free(&inbox, &limits);
}

static void all_rings_share_a_budget(void **state) {
  (void)state;
  struct inbox_limits limits = limits_of(1024, 20);
  struct inbox first = {0}, second = {0};
  for (int64_t i = 1; i <= 100; i++)
    assert_true(inbox_append(&first, &limits, &(struct inbox_entry){i, i, 0}, 0));
  assert_int_equal(first.capacity, 16);
  /* A newcomer still gets its first few entries. */
  assert_true(inbox_append(&second, &limits, &(struct inbox_entry){1, 1, 0}, 0));
  assert_int_equal(limits.entries_held, 24);
  inbox_free(&first, &limits);
  inbox_free(&second, &limits);
}

static void expired_entries_leave(void **state) {
  (void)state;
  struct inbox_limits limits = limits_of(1024, 1000);
  struct inbox inbox = {0};
  for (int64_t i = 1; i <= 10; i++)
    assert_true(inbox_append(&inbox, &limits, &(struct inbox_entry){i, i, 0}, 0));
  assert_true(inbox_append(&inbox, &limits, &(struct inbox_entry){11, 11, 0}, 4));
  assert_int_equal(inbox.count, 7);
  assert_int_equal(inbox_at(&inbox, 0).time_ms, 5);
  inbox_expire(&inbox, &limits, 10);
  assert_int_equal(inbox.count, 1);
  inbox_expire(&inbox, &limits, 11);
  assert_int_equal(inbox.count, 0);
  assert_int_equal(limits.entries_held, 0);
  assert_int_equal(limits.entries_dropped, 0);
  assert_true(inbox_append(&inbox, &limits, &(struct inbox_entry){12, 12, 0}, 0));
  assert_int_equal(inbox_at(&inbox, 0).message_id, 12);
  inbox_free(&inbox, &limits);
}

static void recipients_round_trip(void **state) {
  (void)state;
  static const struct recipient all[] = {
      {5, 1000, 0}, {6, 1000, 7}, {4000000000, 2000, 7}, {1, 1000, (INT64_C(1) << 52) - 1}, {2, 999, 0}};
  enum { COUNT = sizeof all / sizeof *all };
  struct buf bytes = {0};
  struct recipients_writer writer = {.out = &bytes, .message_ms = 1000};
  for (int i = 0; i < COUNT; i++)
    assert_true(recipients_add(&writer, &all[i]));
  struct recipients_reader reader = recipients_of(view_of(bytes.data, bytes.len), 1000);
  struct recipient one;
  for (int i = 0; i < COUNT; i++) {
    assert_true(recipients_next(&reader, &one));
    assert_int_equal(one.user, all[i].user);
    assert_int_equal(one.time_ms, all[i].time_ms);
    assert_int_equal(one.unread_index, all[i].unread_index);
  }
  assert_false(recipients_next(&reader, &one));
  assert_true(recipients_find(view_of(bytes.data, bytes.len), 1000, 1, &one));
  assert_int_equal(one.unread_index, (INT64_C(1) << 52) - 1);
  assert_false(recipients_find(view_of(bytes.data, bytes.len), 1000, 3, &one));
  /* Cut anywhere, it ends instead of reading on. */
  for (uint32_t len = 0; len < bytes.len; len++) {
    int found = 0;
    reader = recipients_of(view_of(bytes.data, len), 1000);
    while (recipients_next(&reader, &one))
      found++;
    assert_true(found < COUNT);
  }
  buf_free(&bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entries_keep_full_numbers),
      cmocka_unit_test(a_full_ring_drops_the_oldest),
      cmocka_unit_test(all_rings_share_a_budget),
      cmocka_unit_test(expired_entries_leave),
      cmocka_unit_test(recipients_round_trip),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
