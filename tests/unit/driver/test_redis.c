/* The Redis driver against a scripted server: queues, which are streams with a consumer group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/driver_rig.h"

#include "driver/plans.h"

#define TEXT(literal) literal, sizeof(literal) - 1
#define HELLO "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
#define WELCOME "%2\r\n+server\r\n+redis\r\n+version\r\n+7.0.15\r\n"
#define GROUP "$5\r\nGROUP\r\n$9\r\nconsumers\r\n$1\r\n7\r\n$5\r\nCOUNT\r\n$3\r\n100\r\n"
#define KEY "$31\r\n" RIG_RUN ".queue.1\r\n"
#define FIRST_READ "*9\r\n$10\r\nXREADGROUP\r\n" GROUP "$7\r\nSTREAMS\r\n" KEY "$1\r\n>\r\n"
#define READ "*11\r\n$10\r\nXREADGROUP\r\n" GROUP "$5\r\nBLOCK\r\n$5\r\n10000\r\n$7\r\nSTREAMS\r\n" KEY "$1\r\n>\r\n"

/* Client 7 is the fourth consumer, of the second of two queues. */
static const struct driver_settings consumer = {.queues = 2, .pure_senders = 4};
static const struct driver_settings sender = {.queues = 2, .pure_senders = 8};

static struct rig *consuming(void) {
  struct rig *r = rig_start(&driver_redis, redis_make_plan, "redis://127.0.0.1", &consumer);
  assert_non_null(strstr(r->run.delivery, "consumer group"));
  assert_null(r->run.counters);
  rig_takes(r, TEXT(HELLO));
  rig_write(r, TEXT(WELCOME));
  rig_takes(r, TEXT(FIRST_READ));
  assert_int_equal(r->established, 0);
  rig_write(r, TEXT("_\r\n"));
  rig_takes(r, TEXT(READ));
  assert_int_equal(r->established, 1);
  return r;
}

static size_t write_entry(char *out, const char *id, uint32_t sequence) {
  int len = sprintf(out, "*2\r\n$%zu\r\n%s\r\n*2\r\n$1\r\np\r\n$%d\r\n", strlen(id), id, RIG_SIZE);
  struct payload payload = rig_payload(sequence);
  payload_write(PAYLOAD_BINARY, (uint8_t *)out + len, &payload);
  out[len + RIG_SIZE] = '\r';
  out[len + RIG_SIZE + 1] = '\n';
  return (size_t)len + RIG_SIZE + 2;
}

static void test_entries_are_delivered_and_acknowledged(void **state) {
  (void)state;
  struct rig *r = consuming();
  char reply[1024];
  size_t len = (size_t)sprintf(reply, "%%1\r\n" KEY "*2\r\n");
  len += write_entry(reply + len, "1700000000000-0", 5);
  len += write_entry(reply + len, "1700000000000-1", 6);
  rig_write(r, reply, len);
  assert_int_equal(r->delivered, 2);
  assert_int_equal(r->payload_result, PAYLOAD_OK);
  assert_int_equal(r->payload.sequence, 6);
  rig_takes(r,
      TEXT("*5\r\n$4\r\nXACK\r\n" KEY "$9\r\nconsumers\r\n$15\r\n1700000000000-0\r\n$15\r\n1700000000000-1\r\n" READ));
  rig_write(r, TEXT(":2\r\n_\r\n"));
  rig_takes(r, TEXT(READ));
  assert_int_equal(r->failed, 0);
  rig_stop(r);
}

#define CLAIM(cursor, len)                                                                                             \
  "*8\r\n$10\r\nXAUTOCLAIM\r\n" KEY "$9\r\nconsumers\r\n$1\r\n7\r\n$7\r\n3600000\r\n$" len "\r\n" cursor               \
  "\r\n$5\r\nCOUNT\r\n$3\r\n100\r\n"

/* It looks for what others have abandoned, from one end to the other, and then reads on. */
static void test_abandoned_entries_are_claimed(void **state) {
  (void)state;
  struct rig *r = rig_start(&driver_redis, redis_make_plan, "redis://127.0.0.1/?claim_ms=3600000", &consumer);
  assert_non_null(strstr(r->run.delivery, "claimed by another after 3600000 ms"));
  assert_string_equal(r->run.counters[0], "redelivered");
  assert_true(r->run.redelivers);
  rig_takes(r, TEXT(HELLO));
  rig_write(r, TEXT(WELCOME));
  rig_takes(r, TEXT(FIRST_READ));
  rig_write(r, TEXT("_\r\n"));
  rig_takes(r, TEXT(CLAIM("0-0", "3")));
  char reply[1024];
  size_t len = (size_t)sprintf(reply, "*3\r\n$3\r\n5-1\r\n*1\r\n");
  len += write_entry(reply + len, "4-0", 5);
  len += (size_t)sprintf(reply + len, "*0\r\n");
  rig_write(r, reply, len);
  assert_int_equal(r->delivered, 1);
  assert_int_equal(r->run.counted[0], 1);
  rig_takes(r, TEXT("*4\r\n$4\r\nXACK\r\n" KEY "$9\r\nconsumers\r\n$3\r\n4-0\r\n" CLAIM("5-1", "3")));
  rig_write(r, TEXT(":1\r\n*3\r\n$3\r\n0-0\r\n*0\r\n*0\r\n"));
  rig_takes(r, TEXT(READ));
  rig_write(r, TEXT("*1\r\n*0\r\n"));
  assert_int_equal(r->failed_code, CAUSE_PROTOCOL);
  rig_stop(r);
}

/* A consumer of claim_ms that found nothing new and asks for what others left behind. */
static struct rig *start_claiming(void) {
  struct rig *r = rig_start(&driver_redis, redis_make_plan, "redis://127.0.0.1/?claim_ms=3600000", &consumer);
  rig_takes(r, TEXT(HELLO));
  rig_write(r, TEXT(WELCOME));
  rig_takes(r, TEXT(FIRST_READ));
  rig_write(r, TEXT("_\r\n"));
  rig_takes(r, TEXT(CLAIM("0-0", "3")));
  return r;
}

/* Version 6.2 says nil for what was claimed and is trimmed. */
static void test_claimed_entries_that_are_gone(void **state) {
  (void)state;
  struct rig *r = start_claiming();
  char reply[1024];
  size_t len = (size_t)sprintf(reply, "*2\r\n$3\r\n5-1\r\n*4\r\n_\r\n");
  len += write_entry(reply + len, "4-0", 5);
  len += (size_t)sprintf(reply + len, "$-1\r\n*-1\r\n");
  rig_write(r, reply, len);
  assert_int_equal(r->delivered, 1);
  rig_takes(r, TEXT("*4\r\n$4\r\nXACK\r\n" KEY "$9\r\nconsumers\r\n$3\r\n4-0\r\n" CLAIM("5-1", "3")));
  rig_write(r, TEXT(":1\r\n*2\r\n$3\r\n0-0\r\n*1\r\n_\r\n"));
  rig_takes(r, TEXT(READ));
  assert_int_equal(r->failed, 0);
  rig_stop(r);
}

static void test_claims_that_are_none(void **state) {
  (void)state;
  struct rig *r = start_claiming();
  rig_write(r, TEXT("*2\r\n:5\r\n*0\r\n"));
  assert_int_equal(r->failed_code, CAUSE_PROTOCOL);
  rig_stop(r);
}

/* Its read is the sign of life: no PING, which the server would not answer before. */
static void test_keep_alive_of_a_consumer(void **state) {
  (void)state;
  struct rig *r = consuming();
  for (int i = 0; i < 10; i++) {
    driver_redis.tick(r->client, 1);
    rig_is_silent(r);
    rig_write(r, TEXT("_\r\n"));
    rig_takes(r, TEXT(READ));
  }
  for (int i = 0; i < 3; i++)
    driver_redis.tick(r->client, 1);
  assert_int_equal(r->failed, 0);
  driver_redis.tick(r->client, 1);
  assert_int_equal(r->failed_code, CAUSE_KEEP_ALIVE);
  rig_stop(r);
}

static void test_answers_that_are_no_entries(void **state) {
  (void)state;
  static const char *const answers[] = {":1\r\n", "*0\r\n", "%1\r\n$1\r\na\r\n:1\r\n", "%1\r\n$1\r\na\r\n*1\r\n:1\r\n",
      "%1\r\n$1\r\na\r\n*1\r\n*2\r\n$1\r\n1\r\n*1\r\n$1\r\nb\r\n", "+OK\r\n"};
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    struct rig *r = consuming();
    rig_write(r, answers[i], strlen(answers[i]));
    assert_int_equal(r->failed_code, CAUSE_PROTOCOL);
    rig_stop(r);
  }
  struct rig *r = consuming();
  rig_write(r, TEXT("-NOGROUP No such key\r\n"));
  assert_int_equal(r->failed, 1);
  rig_stop(r);
}

static struct rig *sending(const char *url) {
  struct rig *r = rig_start(&driver_redis, redis_make_plan, url, &sender);
  rig_takes(r, TEXT(HELLO));
  rig_write(r, TEXT(WELCOME));
  assert_int_equal(r->established, 1);
  rig_is_silent(r);
  return r;
}

static void takes_entry(struct rig *r, const char *head) {
  assert_int_equal(rig_publish(r, PUBLISH_TO_QUEUE, 1, 0), PUBLISH_WRITTEN);
  rig_read(r);
  assert_int_equal(r->in_len, strlen(head) + RIG_SIZE + 2);
  assert_memory_equal(r->in, head, strlen(head));
  r->in_len = 0;
}

static void test_senders(void **state) {
  (void)state;
  struct rig *r = sending("redis://127.0.0.1");
  takes_entry(r, "*5\r\n$4\r\nXADD\r\n" KEY "$1\r\n*\r\n$1\r\np\r\n$64\r\n");
  rig_write(r, TEXT("$15\r\n1700000000000-0\r\n"));
  assert_int_equal(r->acked, 1);
  assert_int_equal(r->acked_code, 0);
  rig_publish(r, PUBLISH_TO_QUEUE, 0, 1);
  rig_write(r, TEXT("-OOM command not allowed\r\n"));
  assert_int_equal(r->acked, 2);
  assert_string_equal(driver_redis.code_text(r->acked_code), "OOM");
  rig_stop(r);

  r = sending("redis://127.0.0.1/?maxlen=5000");
  takes_entry(r, "*8\r\n$4\r\nXADD\r\n" KEY "$6\r\nMAXLEN\r\n$1\r\n~\r\n$4\r\n5000\r\n$1\r\n*\r\n$1\r\np\r\n$64\r\n");
  rig_stop(r);
}

static void test_settings(void **state) {
  (void)state;
  static const char *const wrong[] = {
      "redis://127.0.0.1/?maxlen=0", "redis://127.0.0.1/?maxlen=all", "redis://127.0.0.1/?maxlen=4294967296"};
  struct driver_run run;
  struct err err = {0};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_int_equal(rig_prepare(&run, &driver_redis, redis_make_plan, wrong[i], &sender, &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "maxlen"));
    driver_redis.release(&run);
  }
  const struct driver_settings plain = {0};
  assert_int_equal(
      rig_prepare(&run, &driver_redis, redis_make_plan, "redis://127.0.0.1/?maxlen=5", &plain, &err), STATUS_USAGE);
  driver_redis.release(&run);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_entries_are_delivered_and_acknowledged),
      cmocka_unit_test(test_abandoned_entries_are_claimed),
      cmocka_unit_test(test_claimed_entries_that_are_gone),
      cmocka_unit_test(test_claims_that_are_none),
      cmocka_unit_test(test_keep_alive_of_a_consumer),
      cmocka_unit_test(test_answers_that_are_no_entries),
      cmocka_unit_test(test_senders),
      cmocka_unit_test(test_settings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
