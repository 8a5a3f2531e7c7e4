/* The NATS driver against a scripted server: queues, whose consumers subscribe in a queue group, of core NATS and of a
 * JetStream consumer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/driver_rig.h"

#include "driver/plans.h"

#define TEXT(literal) literal, sizeof(literal) - 1
#define INFO "INFO {\"server_id\":\"a\",\"version\":\"2.9.10\",\"max_payload\":1048576}\r\n"
#define PING "PING\r\n"

/* Logs in; what the client says behind its CONNECT must be the text. */
static struct rig *logged_in(const char *url, const struct driver_settings *settings, const char *text) {
  struct rig *r = rig_start(&driver_nats, nats_make_plan, url, settings);
  rig_write(r, TEXT(INFO));
  rig_read(r);
  const uint8_t *end = memchr(r->in, '\n', r->in_len);
  assert_non_null(end);
  assert_memory_equal(r->in, "CONNECT {", 9);
  rig_drop(r, (size_t)(end + 1 - r->in));
  rig_takes(r, text, strlen(text));
  rig_write(r, TEXT("PONG\r\n"));
  assert_int_equal(r->established, 1);
  return r;
}

static void write_message(struct rig *r, const char *line) {
  uint8_t content[RIG_SIZE];
  struct payload payload = rig_payload(5);
  payload_write(PAYLOAD_BINARY, content, &payload);
  rig_write(r, line, strlen(line));
  rig_write(r, content, sizeof content);
  rig_write(r, TEXT("\r\n"));
}

/* Client 7 is the fourth consumer, of the second of two queues. */
static void test_consumer_of_a_queue(void **state) {
  (void)state;
  const struct driver_settings settings = {.queues = 2, .pure_senders = 4};
  struct rig *r = logged_in("nats://127.0.0.1", &settings, "SUB muster.1234567890abcdef.queue.1 consumers 1\r\n" PING);
  assert_non_null(strstr(r->run.delivery, "queue group"));
  assert_false(r->run.redelivers);
  write_message(r, "MSG muster.1234567890abcdef.queue.1 1 64\r\n");
  rig_is_silent(r);
  assert_int_equal(r->delivered, 1);
  assert_int_equal(r->payload_result, PAYLOAD_OK);
  assert_int_equal(r->payload.sequence, 5);
  rig_stop(r);
}

static void test_sender_to_queues(void **state) {
  (void)state;
  const struct driver_settings settings = {.queues = 2, .pure_senders = 8};
  struct rig *r = logged_in("nats://127.0.0.1", &settings, PING);
  assert_int_equal(rig_publish(r, PUBLISH_TO_QUEUE, 1, 0), PUBLISH_WRITTEN);
  rig_read(r);
  const char want[] = "PUB muster.1234567890abcdef.queue.1 64\r\n";
  assert_memory_equal(r->in, want, sizeof want - 1);
  assert_int_equal(r->in_len, sizeof want - 1 + RIG_SIZE + 2);
  rig_stop(r);
}

static void test_jetstream_consumer(void **state) {
  (void)state;
  const struct driver_settings settings = {.queues = 2, .pure_senders = 4};
  const char url[] = "nats://127.0.0.1/?ack=jetstream";
  const char subscribe[] = "SUB _INBOX.muster.1234567890abcdef.queue.1 consumers 1\r\n" PING;
  struct rig *r = logged_in(url, &settings, subscribe);
  assert_non_null(strstr(r->run.delivery, "durable JetStream consumer"));
  assert_true(r->run.redelivers);
  write_message(r, "MSG muster.1234567890abcdef.queue.1 1 $JS.ACK.s.queue-1.1.22.5.17.0 64\r\n");
  assert_int_equal(r->delivered, 1);
  rig_takes(r, TEXT("PUB $JS.ACK.s.queue-1.1.22.5.17.0 4\r\n+ACK\r\n"));
  write_message(r, "MSG muster.1234567890abcdef.queue.1 1 64\r\n");
  assert_int_equal(r->failed_code, CAUSE_PROTOCOL); /* nowhere to acknowledge it */
  rig_stop(r);
}

#define PULL "PUB $JS.API.CONSUMER.MSG.NEXT.muster-1234567890abcdef."
#define INBOX "_INBOX.muster.1234567890abcdef.7.pull"

static void test_pull_consumer(void **state) {
  (void)state;
  const struct driver_settings settings = {.queues = 2, .pure_senders = 4};
  const char url[] = "nats://127.0.0.1/?ack=jetstream&consume=pull&batch=2";
  struct rig *r = logged_in(url, &settings, "SUB " INBOX " 1\r\n" PING);
  assert_non_null(strstr(r->run.delivery, "pulled"));
  const char pull[] = PULL "queue-1 " INBOX " 32\r\n{\"batch\":2,\"expires\":5000000000}\r\n";
  rig_takes(r, TEXT(pull));
  write_message(r, "MSG muster.1234567890abcdef.queue.1 1 $JS.ACK.s.queue-1.1.22.5.17.9 64\r\n");
  rig_takes(r, TEXT("PUB $JS.ACK.s.queue-1.1.22.5.17.9 4\r\n+ACK\r\n"));
  assert_int_equal(r->run.counted[0], 0);
  /* The batch is complete with the second, which the server has sent before. */
  write_message(r, "MSG muster.1234567890abcdef.queue.1 1 $JS.ACK.s.queue-1.2.21.6.17.8 64\r\n");
  assert_int_equal(r->delivered, 2);
  assert_int_equal(r->run.counted[0], 1);
  char want[256];
  snprintf(want, sizeof want, "PUB $JS.ACK.s.queue-1.2.21.6.17.8 4\r\n+ACK\r\n%s", pull);
  rig_takes(r, want, strlen(want));
  /* It has waited for nothing; a heart-beat is no end; and at last the consumer is gone. */
  rig_write(r, TEXT("HMSG " INBOX " 1 16 16\r\nNATS/1.0 100\r\n\r\n\r\n"));
  rig_is_silent(r);
  rig_write(r, TEXT("HMSG " INBOX " 1 16 16\r\nNATS/1.0 408\r\n\r\n\r\n"));
  rig_takes(r, TEXT(pull));
  rig_write(r, TEXT("HMSG " INBOX " 1 16 16\r\nNATS/1.0 409\r\n\r\n\r\n"));
  assert_int_equal(r->failed_code, 409);
  assert_non_null(strstr(driver_nats.code_text(409), "pull"));
  rig_stop(r);
}

/* A backlog is over when a pull brings nothing and nothing is left. */
static void test_backlog(void **state) {
  (void)state;
  const struct driver_settings settings = {.backlog = true, .pure_senders = 4};
  struct rig *r = rig_start(&driver_nats, nats_make_plan, "nats://127.0.0.1/?ack=jetstream", &settings);
  const char pull[] = PULL "client-7 " INBOX " 28\r\n{\"batch\":100,\"no_wait\":true}\r\n";
  const char none[] = "HMSG " INBOX " 1 16 16\r\nNATS/1.0 404\r\n\r\n\r\n";
  const char wait[] = PULL "client-7 " INBOX " 34\r\n{\"batch\":100,\"expires\":1000000000}\r\n";
  rig_write(r, TEXT(INFO));
  rig_read(r);
  r->in_len = 0;
  rig_write(r, TEXT("PONG\r\n"));
  rig_takes(r, TEXT(pull));
  write_message(r, "MSG muster.1234567890abcdef.client.7 1 $JS.ACK.s.client-7.1.22.5.17.1 64\r\n");
  rig_read(r);
  r->in_len = 0;
  rig_write(r, TEXT(none));
  rig_takes(r, TEXT(pull)); /* something came */
  rig_write(r, TEXT(none));
  rig_takes(r, TEXT(wait)); /* nothing came, but one is left */
  write_message(r, "MSG muster.1234567890abcdef.client.7 1 $JS.ACK.s.client-7.1.23.6.17.0 64\r\n");
  rig_read(r);
  r->in_len = 0;
  rig_write(r, TEXT(none));
  rig_takes(r, TEXT(pull));
  assert_int_equal(r->established, 0);
  rig_write(r, TEXT(none));
  assert_int_equal(r->established, 1);
  assert_int_equal(r->delivered, 2);
  rig_stop(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_consumer_of_a_queue),
      cmocka_unit_test(test_sender_to_queues),
      cmocka_unit_test(test_jetstream_consumer),
      cmocka_unit_test(test_pull_consumer),
      cmocka_unit_test(test_backlog),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
