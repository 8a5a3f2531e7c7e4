/* The NATS driver against a scripted server: queues, whose consumers subscribe in a queue group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/driver_rig.h"

#include "driver/plans.h"

#define TEXT(literal) literal, sizeof(literal) - 1
#define INFO "INFO {\"server_id\":\"a\",\"version\":\"2.9.10\",\"max_payload\":1048576}\r\n"
#define PING "PING\r\n"

/* Logs in; what the client says behind its CONNECT must be the text. */
static struct rig *logged_in(const struct driver_settings *settings, const char *text) {
  struct rig *r = rig_start(&driver_nats, nats_make_plan, "nats://127.0.0.1", settings);
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

/* Client 7 is the fourth consumer, of the second of two queues. */
static void test_consumer_of_a_queue(void **state) {
  (void)state;
  const struct driver_settings settings = {.queues = 2, .pure_senders = 4};
  struct rig *r = logged_in(&settings, "SUB muster.1234567890abcdef.queue.1 consumers 1\r\n" PING);
  assert_non_null(strstr(r->run.delivery, "queue group"));
  uint8_t content[RIG_SIZE];
  struct payload payload = rig_payload(5);
  payload_write(PAYLOAD_BINARY, content, &payload);
  rig_write(r, TEXT("MSG muster.1234567890abcdef.queue.1 1 64\r\n"));
  rig_write(r, content, sizeof content);
  rig_write(r, TEXT("\r\n"));
  assert_int_equal(r->delivered, 1);
  assert_int_equal(r->payload_result, PAYLOAD_OK);
  assert_int_equal(r->payload.sequence, 5);
  rig_stop(r);
}

static void test_sender_to_queues(void **state) {
  (void)state;
  const struct driver_settings settings = {.queues = 2, .pure_senders = 8};
  struct rig *r = logged_in(&settings, PING);
  assert_int_equal(rig_publish(r, PUBLISH_TO_QUEUE, 1, 0), PUBLISH_WRITTEN);
  rig_read(r);
  const char want[] = "PUB muster.1234567890abcdef.queue.1 64\r\n";
  assert_memory_equal(r->in, want, sizeof want - 1);
  assert_int_equal(r->in_len, sizeof want - 1 + RIG_SIZE + 2);
  rig_stop(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_consumer_of_a_queue),
      cmocka_unit_test(test_sender_to_queues),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
