#include "measure/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct tally sound(bool has_acks) {
  struct tally tally = {0};
  tally.connections.attempted = 10;
  tally.connections.established = 8;
  tally.connections.reconnected = 1;
  codes_add(&tally.connections.failed, CAUSE_TLS, 2);
  codes_add(&tally.connections.dropped, CAUSE_RESET, 9);
  tally.publishes.scheduled = 100;
  tally.publishes.attempted = 95;
  codes_add(&tally.publishes.unsent, CAUSE_NOT_CONNECTED, 5);
  if (has_acks) {
    tally.publishes.acked = 90;
    codes_add(&tally.publishes.rejected, 12003, 3);
    codes_add(&tally.publishes.timed_out, CAUSE_NO_ANSWER, 2);
  }
  tally.deliveries.expected = 900;
  tally.deliveries.observed = 880;
  tally.deliveries.lost = 20;
  tally.deliveries.unacked_delivered = 4;
  tally.deliveries.unexpected = 1;
  tally.deliveries.late = 880;
  tally.deliveries.reordered = 885;
  return tally;
}

static void accepts_sound_books(void **state) {
  (void)state;
  struct err err;
  for (int acks = 0; acks < 2; acks++) {
    struct tally tally = sound(acks);
    assert_int_equal(tally_check(&tally, acks, &err), STATUS_OK);
  }
  struct tally nothing = {0};
  assert_int_equal(tally_check(&nothing, true, NULL), STATUS_OK);
  assert_int_equal(tally_check(&nothing, false, NULL), STATUS_OK);
}

static void refuse(struct tally tally, bool has_acks, const char *part, const char *number) {
  struct err err;
  assert_int_not_equal(tally_check(&tally, has_acks, &err), STATUS_OK);
  assert_non_null(strstr(err.text, part));
  assert_non_null(strstr(err.text, number));
  assert_null(strchr(err.text, '\n'));
}

static void refuses_each_broken_identity(void **state) {
  (void)state;
  for (int acks = 0; acks < 2; acks++) {
    struct tally tally = sound(acks);
    tally.connections.attempted++;
    refuse(tally, acks, "connections attempted", "11");
    tally = sound(acks);
    codes_add(&tally.connections.failed, CAUSE_TLS, 1);
    refuse(tally, acks, "connections attempted", "failed 3");
    tally = sound(acks);
    codes_add(&tally.connections.dropped, CAUSE_KICKED, 1);
    refuse(tally, acks, "connections dropped", "10");
    tally = sound(acks);
    tally.publishes.scheduled--;
    refuse(tally, acks, "publishes scheduled", "99");
    tally = sound(acks);
    codes_add(&tally.publishes.unsent, CAUSE_BLOCKED, 1);
    refuse(tally, acks, "publishes scheduled", "unsent 6");
    tally = sound(acks);
    tally.deliveries.lost--;
    refuse(tally, acks, "deliveries expected", "lost 19");
    tally = sound(acks);
    tally.deliveries.observed++;
    refuse(tally, acks, "deliveries expected", "observed 881");
    tally = sound(acks);
    tally.deliveries.late++;
    refuse(tally, acks, "deliveries late", "881");
    tally = sound(acks);
    tally.deliveries.reordered++;
    refuse(tally, acks, "reordered", "886");
  }
  struct tally tally = sound(true);
  tally.publishes.acked++;
  refuse(tally, true, "publishes attempted", "acked 91");
  tally = sound(true);
  codes_add(&tally.publishes.rejected, 12003, 1);
  refuse(tally, true, "publishes attempted", "rejected 4");
  tally = sound(true);
  codes_add(&tally.publishes.timed_out, CAUSE_CONNECTION_LOST, 1);
  refuse(tally, true, "publishes attempted", "timed_out 3");
  tally = sound(true);
  tally.publishes.acked_late = 91;
  refuse(tally, true, "acked_late 91", "acked 90");
}

static void refuses_answers_without_acks(void **state) {
  (void)state;
  struct tally tally = sound(false);
  tally.publishes.acked = 95; /* a write taken for an ACK */
  refuse(tally, false, "no ACK", "acked 95");
  tally = sound(false);
  codes_add(&tally.publishes.rejected, 1, 1);
  refuse(tally, false, "no ACK", "rejected 1");
  tally = sound(false);
  codes_add(&tally.publishes.timed_out, CAUSE_NO_ANSWER, 1);
  refuse(tally, false, "no ACK", "timed_out 1");
}

static void refuses_expectations_of_nothing(void **state) {
  (void)state;
  struct tally tally = {.deliveries = {.expected = 1, .lost = 1}};
  refuse(tally, true, "no acked publish", "expected 1");
  refuse(tally, false, "no attempted publish", "expected 1");
}

static void counts_codes_and_the_rest(void **state) {
  (void)state;
  struct codes codes = {0};
  for (int32_t code = 0; code < CODES_MAX + 10; code++)
    codes_add(&codes, code, 2);
  codes_add(&codes, 3, 5);
  codes_add(&codes, 777, 0);
  assert_int_equal(codes.used, CODES_MAX);
  assert_int_equal(codes.entry[3].count, 7);
  assert_int_equal(codes.others, 20);
  assert_int_equal(codes_total(&codes), 2 * (CODES_MAX + 10) + 5);

  struct codes into = {0};
  codes_add(&into, -5, 1);
  codes_add(&into, 0, 1);
  codes_merge(&into, &codes);
  assert_int_equal(into.used, CODES_MAX);
  assert_int_equal(codes_total(&into), codes_total(&codes) + 2);
  assert_int_equal(into.entry[1].code, 0);
  assert_int_equal(into.entry[1].count, 3);
}

/* Every 64-bit counter of a tally is a distinct number, so that a counter which merge forgets shows. */
static void merges_every_counter(void **state) {
  (void)state;
  struct tally from = {0};
  uint64_t *const plain[] = {&from.connections.attempted, &from.connections.established, &from.connections.reconnected,
      &from.publishes.scheduled, &from.publishes.attempted, &from.publishes.acked, &from.publishes.acked_late,
      &from.deliveries.expected, &from.deliveries.observed, &from.deliveries.lost, &from.deliveries.duplicate,
      &from.deliveries.reordered, &from.deliveries.corrupt, &from.deliveries.unexpected, &from.deliveries.late,
      &from.deliveries.unacked_delivered, &from.deliveries.recovered, &from.deliveries.overlap, &from.bytes_sent,
      &from.bytes_received};
  struct codes *const codes[] = {&from.connections.failed, &from.connections.dropped, &from.publishes.unsent,
      &from.publishes.rejected, &from.publishes.timed_out};
  const size_t plain_count = sizeof plain / sizeof plain[0];
  const size_t codes_count = sizeof codes / sizeof codes[0];
  const size_t flags = sizeof(uint64_t); /* late_is_of_all, with what fills it up */
  assert_int_equal(
      sizeof from, (plain_count + TALLY_EXTRAS) * sizeof(uint64_t) + flags + codes_count * sizeof(struct codes));
  for (size_t i = 0; i < plain_count; i++)
    *plain[i] = i + 1;
  for (size_t i = 0; i < TALLY_EXTRAS; i++)
    from.extra[i] = 100 + i;
  for (size_t i = 0; i < codes_count; i++)
    codes_add(codes[i], -1, i + 1);

  struct tally into = {0};
  tally_merge(&into, &from);
  assert_memory_equal(&into, &from, sizeof into);
  tally_merge(&into, &from);
  for (size_t i = 0; i < plain_count; i++)
    *plain[i] *= 2;
  for (size_t i = 0; i < TALLY_EXTRAS; i++)
    from.extra[i] *= 2;
  for (size_t i = 0; i < codes_count; i++)
    codes[i]->entry[0].count *= 2;
  assert_memory_equal(&into, &from, sizeof into);
}

static void names_every_cause_once(void **state) {
  (void)state;
  for (int32_t code = CAUSE_GENERATOR_LATE; code <= CAUSE_CONNECT_REFUSED; code++) {
    assert_non_null(cause_name(code));
    for (int32_t earlier = CAUSE_GENERATOR_LATE; earlier < code; earlier++) {
      assert_string_not_equal(cause_name(code), cause_name(earlier));
    }
  }
  assert_null(cause_name(0));
  assert_null(cause_name(12003));
  assert_null(cause_name(CAUSE_GENERATOR_LATE - 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accepts_sound_books),
      cmocka_unit_test(refuses_each_broken_identity),
      cmocka_unit_test(refuses_answers_without_acks),
      cmocka_unit_test(refuses_expectations_of_nothing),
      cmocka_unit_test(counts_codes_and_the_rest),
      cmocka_unit_test(merges_every_counter),
      cmocka_unit_test(names_every_cause_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
