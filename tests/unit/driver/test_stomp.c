/* The STOMP driver against a scripted broker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/driver_rig.h"

#include "driver/plans.h"

#define TEXT(literal) literal, sizeof(literal) - 1
#define CONNECT "CONNECT\naccept-version:1.2\nhost:/\nheart-beat:30000,20000\n\n\0"
#define OWN "/topic/" RIG_RUN ".client.7"
#define SUBSCRIBE "SUBSCRIBE\nid:0\ndestination:" OWN "\nack:auto\nreceipt:s0\n\n\0"
#define CONNECTED "CONNECTED\nversion:1.2\nheart-beat:20000,20000\n\n\0"
#define SUBSCRIBED "RECEIPT\nreceipt-id:s0\n\n\0"

static const struct driver_settings plain;

static struct rig *start(const char *url, const struct driver_settings *settings) {
  return rig_start(&driver_stomp, stomp_make_plan, url, settings);
}

static struct rig *established(const char *url) {
  struct rig *r = start(url, &plain);
  rig_takes(r, TEXT(CONNECT));
  rig_write(r, TEXT(CONNECTED));
  rig_takes(r, TEXT(SUBSCRIBE));
  assert_int_equal(r->established, 0);
  rig_write(r, TEXT(SUBSCRIBED));
  assert_int_equal(r->established, 1);
  return r;
}

/* The SEND that a publish must have become. */
static void takes_send(struct rig *r, const char *destination, const char *receipt, uint32_t sequence) {
  char want[512];
  int len = snprintf(want, sizeof want, "SEND\ndestination:%s\ncontent-type:text/plain\ncontent-length:%d%s\n\n%s",
      destination, RIG_SIZE, receipt, rig_content(sequence));
  rig_takes(r, want, (size_t)len + 1);
}

static void test_publish_and_receipt(void **state) {
  (void)state;
  struct rig *r = established("stomp://127.0.0.1");
  assert_int_equal(rig_publish(r, PUBLISH_TO_CLIENT, 12, 0), PUBLISH_WRITTEN);
  takes_send(r, "/topic/" RIG_RUN ".client.12", "\nreceipt:1", 0);
  assert_int_equal(rig_publish(r, PUBLISH_TO_ALL, 0, 1), PUBLISH_WRITTEN);
  takes_send(r, "/topic/" RIG_RUN ".all", "\nreceipt:3", 1);
  assert_int_equal(rig_publish(r, PUBLISH_TO_SELF, 0, 2), PUBLISH_WRITTEN);
  takes_send(r, OWN, "\nreceipt:5", 2);
  rig_write(r, TEXT("RECEIPT\nreceipt-id:3\n\n\0\nRECEIPT\nreceipt-id:1\n\n\0"));
  assert_int_equal(r->acked, 2);
  assert_int_equal(r->acked_token, 1);
  assert_int_equal(r->acked_code, 0);
  assert_int_equal(r->failed, 0);
  rig_stop(r);

  r = established("stomp://127.0.0.1/?receipts=off");
  assert_false(r->run.capabilities & CAPABILITY_ACKS);
  assert_string_equal(r->run.ack_meaning, "none");
  rig_publish(r, PUBLISH_TO_CLIENT, 12, 0);
  takes_send(r, "/topic/" RIG_RUN ".client.12", "", 0);
  rig_stop(r);
}

static void test_delivery_in_pieces(void **state) {
  (void)state;
  struct rig *r = established("stomp://127.0.0.1");
  char message[512];
  int len = snprintf(message, sizeof message, "MESSAGE\nsubscription:0\nmessage-id:1\ncontent-length:%d\n\n%s",
      RIG_SIZE, rig_content(5));
  for (int i = 0; i <= len; i++) {
    assert_int_equal(r->delivered, 0);
    rig_write(r, message + i, 1);
  }
  assert_int_equal(r->delivered, 1);
  assert_int_equal(r->payload_result, PAYLOAD_OK);
  assert_int_equal(r->payload.sequence, 5);
  rig_stop(r);
}

static void test_groups_and_prefixes(void **state) {
  (void)state;
  const struct driver_settings shared = {.groups = 2, .shared_groups = true};
  struct rig *r = start("stomp://127.0.0.1/?prefix=/exchange/amq.topic/&vhost=my%20host", &shared);
  rig_takes(r, TEXT("CONNECT\naccept-version:1.2\nhost:my host\nheart-beat:30000,20000\n\n\0"));
  rig_write(r, TEXT("CONNECTED\nversion:1.2\n\n\0"));
  rig_takes(
      r, TEXT("SUBSCRIBE\nid:0\ndestination:/exchange/amq.topic/" RIG_RUN ".group.0\nack:auto\nreceipt:s0\n\n\0"));
  rig_write(r, TEXT(SUBSCRIBED));
  assert_int_equal(r->established, 0);
  rig_takes(
      r, TEXT("SUBSCRIBE\nid:1\ndestination:/exchange/amq.topic/" RIG_RUN ".group.1\nack:auto\nreceipt:s1\n\n\0"));
  rig_write(r, TEXT("RECEIPT\nreceipt-id:s1\n\n\0"));
  assert_int_equal(r->established, 1);
  rig_stop(r);
}

/* Client 7 is the fourth consumer, of the second of two queues; then it is the last of eight senders. */
static void test_queues(void **state) {
  (void)state;
  struct driver_settings settings = {.queues = 2, .pure_senders = 4};
  struct rig *r = start("stomp://127.0.0.1", &settings);
  assert_non_null(strstr(r->run.delivery, "client-individual"));
  assert_true(r->run.redelivers);
  rig_takes(r, TEXT(CONNECT));
  rig_write(r, TEXT(CONNECTED));
  rig_takes(
      r, TEXT("SUBSCRIBE\nid:0\ndestination:/queue/" RIG_RUN ".queue.1\nack:client-individual\nprefetch-count:100\n"
              "auto-delete:true\nreceipt:s0\n\n\0"));
  rig_write(r, TEXT(SUBSCRIBED));
  assert_int_equal(r->established, 1);
  char message[512];
  int len = snprintf(
      message, sizeof message, "MESSAGE\nack:T_0@@a\\cb@@1\ncontent-length:%d\n\n%s", RIG_SIZE, rig_content(5));
  rig_write(r, message, (size_t)len + 1);
  assert_int_equal(r->delivered, 1);
  rig_takes(r, TEXT("ACK\nid:T_0@@a\\cb@@1\n\n\0"));
  rig_write(r, TEXT("MESSAGE\nmessage-id:1\n\n\0"));
  assert_int_equal(r->failed_code, CAUSE_PROTOCOL); /* nothing to acknowledge it by */
  rig_stop(r);

  r = start("stomp://127.0.0.1/?ack=auto&prefix=/amq/queue/", &settings);
  rig_takes(r, TEXT(CONNECT));
  rig_write(r, TEXT(CONNECTED));
  rig_takes(r, TEXT("SUBSCRIBE\nid:0\ndestination:/amq/queue/" RIG_RUN
                    ".queue.1\nack:auto\nauto-delete:true\nreceipt:s0\n\n\0"));
  rig_stop(r);

  settings.pure_senders = 8;
  r = start("stomp://127.0.0.1/?prefetch=1", &settings);
  rig_takes(r, TEXT(CONNECT));
  rig_write(r, TEXT(CONNECTED));
  assert_int_equal(r->established, 1);
  rig_publish(r, PUBLISH_TO_QUEUE, 1, 0);
  takes_send(r, "/queue/" RIG_RUN ".queue.1", "\nauto-delete:true\nreceipt:1", 0);
  rig_stop(r);
}

static void test_errors(void **state) {
  (void)state;
  struct rig *r = established("stomp://127.0.0.1");
  rig_publish(r, PUBLISH_TO_CLIENT, 12, 0);
  rig_write(r, TEXT("ERROR\nreceipt-id:1\nmessage:access_refused\n\nno\0"));
  assert_int_equal(r->acked, 1);
  assert_int_equal(r->acked_code, 4);
  assert_int_equal(r->failed_code, 4);
  rig_stop(r);

  static const struct {
    const char *text;
    size_t len;
    int32_t code;
  } answers[] = {
      {TEXT("ERROR\nmessage:Bad CONNECT\n\nAccess refused\0"), 2},
      {TEXT("CONNECTED\nversion:1.1\n\n\0"), CAUSE_PROTOCOL},
      {TEXT("CONNECTED\nversion:1.2\nheart-beat:x\n\n\0"), CAUSE_PROTOCOL},
      {TEXT(SUBSCRIBED), CAUSE_PROTOCOL},
      {TEXT("MESSAGE\n\nearly\0"), CAUSE_PROTOCOL},
      {TEXT("HTTP/1.1 400 Bad Request\r\n"), CAUSE_PROTOCOL},
      {TEXT(CONNECTED CONNECTED), CAUSE_PROTOCOL},
      {TEXT(CONNECTED "RECEIPT\nreceipt-id:s1\n\n\0"), CAUSE_PROTOCOL},
      {TEXT(CONNECTED "RECEIPT\nreceipt-id:1\n\n\0"), CAUSE_PROTOCOL},
  };
  for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
    r = start("stomp://127.0.0.1", &plain);
    rig_takes(r, TEXT(CONNECT));
    rig_write(r, answers[i].text, answers[i].len);
    assert_int_equal(r->established, 0);
    assert_int_equal(r->failed, 1);
    if (r->failed_code != answers[i].code) fail_msg("answer %zu: code %d", i, r->failed_code);
    rig_stop(r);
  }
}

static void test_heart_beats(void **state) {
  (void)state;
  struct rig *r = established("stomp://127.0.0.1");
  for (int i = 0; i < 10; i++) {
    driver_stomp.tick(r->client, 1);
    rig_takes(r, "\n", 1);
    rig_write(r, "\n", 1);
  }
  for (int i = 0; i < 3; i++)
    driver_stomp.tick(r->client, 1);
  assert_int_equal(r->failed, 0);
  driver_stomp.tick(r->client, 1);
  assert_int_equal(r->failed_code, CAUSE_KEEP_ALIVE);
  rig_stop(r);

  /* A server that promises none may be silent. */
  r = start("stomp://127.0.0.1", &plain);
  rig_write(r, TEXT("CONNECTED\nversion:1.2\n\n\0" SUBSCRIBED));
  assert_int_equal(r->established, 1);
  for (int i = 0; i < 100; i++)
    driver_stomp.tick(r->client, 1);
  assert_int_equal(r->failed, 0);
  rig_stop(r);
}

static void test_websocket(void **state) {
  (void)state;
  struct rig *r = start("stomp+ws://127.0.0.1", &plain);
  assert_int_equal(r->run.settings.url.port, 15674);
  rig_upgrade(r, "/ws", "Sec-WebSocket-Protocol: v12.stomp\r\n");
  assert_string_equal(rig_take_text(r), CONNECT);
  rig_write_frame(r, WS_BINARY, TEXT("CONNECTED\nversion:1.2\n\n\0\nRECEIPT\nrec"));
  assert_string_equal(rig_take_text(r), SUBSCRIBE);
  assert_int_equal(r->established, 0);
  rig_write_frame(r, WS_TEXT, TEXT("eipt-id:s0\n\n\0\n"));
  assert_int_equal(r->established, 1);
  rig_publish(r, PUBLISH_TO_ROOM, 0, 3);
  assert_non_null(strstr(rig_take_text(r), "SEND\ndestination:/topic/" RIG_RUN ".room\n"));
  driver_stomp.closing(r->client);
  assert_string_equal(rig_take_text(r), "DISCONNECT\n\n");
  rig_stop(r);

  r = start("stomp+wss://127.0.0.1/stomp?prefix=/topic/", &plain);
  assert_int_equal(r->run.settings.url.port, 15673);
  rig_upgrade(r, "/stomp", "Sec-WebSocket-Protocol: v11.stomp\r\n");
  assert_int_equal(r->failed_code, CAUSE_UPGRADE);
  rig_stop(r);
}

static void test_settings(void **state) {
  (void)state;
  struct driver_run run;
  struct err err = {0};
  static const char *const wrong[] = {"stomp://a/path", "stomp://127.0.0.1/?queue=a", "stomp://127.0.0.1/?receipts=no",
      "stomp://127.0.0.1/?vhost=a%0ab", "stomp://127.0.0.1/?vhost=%4", "stomp://127.0.0.1/?vhost=a&vhost=b",
      "stomp://127.0.0.1/?ack=auto", "stomp://127.0.0.1/?prefetch=5"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    assert_int_equal(rig_prepare(&run, &driver_stomp, stomp_make_plan, wrong[i], &plain, &err), STATUS_USAGE);
    assert_non_null(strstr(err.text, "--target"));
    driver_stomp.release(&run);
  }
  const struct driver_settings queues = {.queues = 1, .pure_senders = 1};
  for (const char *const *text = (const char *const[]){"0", "65536", "5&ack=auto", NULL}; *text; text++) {
    char url[80];
    snprintf(url, sizeof url, "stomp://127.0.0.1/?prefetch=%s", *text);
    assert_int_equal(rig_prepare(&run, &driver_stomp, stomp_make_plan, url, &queues, &err), STATUS_USAGE);
    driver_stomp.release(&run);
  }
  const struct driver_settings smuggler = {.user = "a\nb"};
  assert_int_equal(
      rig_prepare(&run, &driver_stomp, stomp_make_plan, "stomp://127.0.0.1", &smuggler, &err), STATUS_USAGE);
  driver_stomp.release(&run);

  struct driver_settings asked = {0};
  assert_int_equal(driver_stomp.without(&asked), 0);
  assert_int_equal(url_parse("stomp://a/?receipts=off", &asked.url, NULL), STATUS_OK);
  assert_int_equal(driver_stomp.without(&asked), CAPABILITY_ACKS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_publish_and_receipt),
      cmocka_unit_test(test_delivery_in_pieces),
      cmocka_unit_test(test_groups_and_prefixes),
      cmocka_unit_test(test_queues),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_heart_beats),
      cmocka_unit_test(test_websocket),
      cmocka_unit_test(test_settings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
