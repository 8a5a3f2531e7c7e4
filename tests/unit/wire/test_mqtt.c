/* MQTT packets byte for byte. Vectors marked with a figure or table are the examples of the OASIS standards (3.1.1 of
 * 2014, 5 of 2019); the others were written by hand from their text. */
#include "support/mqtt_rewrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct vector {
  const char *name;
  enum mqtt_version version;
  enum mqtt_type type;
  const char *hex;
};

static const struct vector vectors[] = {
    /* 3.1.1 figure 3.6: user name, password, will qos 1, clean session, keep alive 10; the payload by hand. */
    {"connect", MQTT_3_1_1, MQTT_CONNECT,
        "10 1f 0004 4d515454 04 ce 000a 0003 616263 0003 772f74 0002 6279 0001 75 0002 7077"},
    {"connect, plain", MQTT_3_1_1, MQTT_CONNECT, "10 0e 0004 4d515454 04 02 003c 0002 6331"},
    {"connect, session kept", MQTT_3_1_1, MQTT_CONNECT, "10 0e 0004 4d515454 04 00 003c 0002 6331"},
    /* 5 figure 3-6: the same with session expiry 10. */
    {"connect 5", MQTT_5, MQTT_CONNECT,
        "10 26 0004 4d515454 05 ce 000a 05 11 0000000a 0003 616263 00 0003 772f74 0002 6279 0001 75 0002 7077"},
    {"connect 5, will delay, receive maximum", MQTT_5, MQTT_CONNECT,
        "10 20 0004 4d515454 05 36 0000 03 21 0014 0001 61 05 18 00000005 0003 772f74 0002 6279"},
    {"connack", MQTT_3_1_1, MQTT_CONNACK, "20 02 01 00"},
    {"connack, refused", MQTT_3_1_1, MQTT_CONNACK, "20 02 00 05"},
    {"connack 5", MQTT_5, MQTT_CONNACK, "20 03 00 00 00"},
    {"connack 5, limits", MQTT_5, MQTT_CONNACK, "20 12 01 00 0f 21 0014 27 00010000 13 001e 24 01 25 00"},
    {"connack 5, refused", MQTT_5, MQTT_CONNACK, "20 09 00 87 06 1f 0003 6e6f21"},
    /* Figure 3.11 and 5 figure 3-9: topic a/b, packet identifier 10. */
    {"publish", MQTT_3_1_1, MQTT_PUBLISH, "32 0a 0003 612f62 000a 686921"},
    {"publish 5", MQTT_5, MQTT_PUBLISH, "32 0b 0003 612f62 000a 00 686921"},
    {"publish, qos 0", MQTT_3_1_1, MQTT_PUBLISH, "30 08 0003 612f62 686921"},
    {"publish, qos 2, again, retained", MQTT_3_1_1, MQTT_PUBLISH, "3d 07 0003 612f62 ffff"},
    {"publish 5, every property", MQTT_5, MQTT_PUBLISH,
        "30 32 0003 612f62 29 01 01 02 00000e10 23 0007 08 0001 72 09 0002 beef 0b 07 0b 8001 03 0001 74 "
        "26 0001 6b 0001 76 26 0001 6b 0000 686921"},
    {"publish 5, by its alias", MQTT_5, MQTT_PUBLISH, "30 08 0000 03 23 0007 6869"},
    {"puback", MQTT_3_1_1, MQTT_PUBACK, "40 02 000a"},
    {"puback 5", MQTT_5, MQTT_PUBACK, "40 02 000a"},
    {"puback 5, nobody listens", MQTT_5, MQTT_PUBACK, "40 03 000a 10"},
    {"puback 5, quota", MQTT_5, MQTT_PUBACK, "40 0a 000a 97 06 1f 0003 6e6f21"},
    {"pubrec", MQTT_3_1_1, MQTT_PUBREC, "50 02 000a"},
    {"pubrel", MQTT_3_1_1, MQTT_PUBREL, "62 02 000a"},
    {"pubrel 5, unknown", MQTT_5, MQTT_PUBREL, "62 03 000a 92"},
    {"pubcomp", MQTT_3_1_1, MQTT_PUBCOMP, "70 02 000a"},
    /* Figures 3.20 and 3.23: a/b with qos 1, c/d with qos 2. */
    {"subscribe", MQTT_3_1_1, MQTT_SUBSCRIBE, "82 0e 000a 0003 612f62 01 0003 632f64 02"},
    {"subscribe 5", MQTT_5, MQTT_SUBSCRIBE, "82 0f 000a 00 0003 612f62 01 0003 632f64 02"},
    {"subscribe 5, no local", MQTT_5, MQTT_SUBSCRIBE, "82 0c 000a 03 0b ff7f 0003 612f62 2d"},
    /* Figure 3.26: granted qos 0, granted qos 2, failure. */
    {"suback", MQTT_3_1_1, MQTT_SUBACK, "90 05 000a 00 02 80"},
    {"suback 5", MQTT_5, MQTT_SUBACK, "90 06 000a 00 00 02 80"},
    /* Figure 3.30. */
    {"unsubscribe", MQTT_3_1_1, MQTT_UNSUBSCRIBE, "a2 0c 000a 0003 612f62 0003 632f64"},
    {"unsubscribe 5", MQTT_5, MQTT_UNSUBSCRIBE, "a2 0d 000a 00 0003 612f62 0003 632f64"},
    {"unsuback", MQTT_3_1_1, MQTT_UNSUBACK, "b0 02 000a"},
    {"unsuback 5", MQTT_5, MQTT_UNSUBACK, "b0 05 000a 00 00 11"},
    {"pingreq", MQTT_3_1_1, MQTT_PINGREQ, "c0 00"},
    {"pingresp", MQTT_5, MQTT_PINGRESP, "d0 00"},
    {"disconnect", MQTT_3_1_1, MQTT_DISCONNECT, "e0 00"},
    {"disconnect 5", MQTT_5, MQTT_DISCONNECT, "e0 00"},
    {"disconnect 5, taken over", MQTT_5, MQTT_DISCONNECT, "e0 01 8e"},
    {"disconnect 5, session ends", MQTT_5, MQTT_DISCONNECT, "e0 07 00 05 11 00000000"},
    {"auth", MQTT_5, MQTT_AUTH, "f0 08 18 06 15 0003 746f6b"},
    /* Figure 1.1 of both: A and U+2A6D4. */
    {"a topic beyond the basic plane", MQTT_3_1_1, MQTT_PUBLISH, "30 07 0005 41f0aa9b94"},
};
#define VECTORS (sizeof vectors / sizeof vectors[0])

/* What a reader has to refuse. */
static const struct vector refused[] = {
    {"type 0", MQTT_5, 0, "00 00"},
    {"reserved flags of a PINGREQ", MQTT_5, MQTT_PINGREQ, "c1 00"},
    {"a PUBREL without its flags", MQTT_5, MQTT_PUBREL, "60 02 000a"},
    {"a length of five bytes", MQTT_5, MQTT_PUBLISH, "30 80808080 01"},
    {"a length that is longer than it must be", MQTT_5, MQTT_PINGREQ, "c0 8000"},
    {"a CONNECT of another protocol", MQTT_3_1_1, MQTT_CONNECT, "10 10 0006 4d5149736470 03 02 003c 0002 6331"},
    {"a CONNECT with the reserved flag", MQTT_3_1_1, MQTT_CONNECT, "10 0e 0004 4d515454 04 03 003c 0002 6331"},
    {"a CONNECT with will flags and no will", MQTT_3_1_1, MQTT_CONNECT, "10 0e 0004 4d515454 04 0a 003c 0002 6331"},
    {"a CONNECT with a password alone", MQTT_3_1_1, MQTT_CONNECT, "10 11 0004 4d515454 04 42 003c 0002 6331 0001 70"},
    {"a CONNECT with more behind it", MQTT_3_1_1, MQTT_CONNECT, "10 0f 0004 4d515454 04 02 003c 0002 6331 00"},
    {"a refusal with a session", MQTT_3_1_1, MQTT_CONNACK, "20 02 01 05"},
    {"a CONNACK with reserved flags", MQTT_3_1_1, MQTT_CONNACK, "20 02 02 00"},
    {"a receive maximum of 0", MQTT_5, MQTT_CONNACK, "20 06 00 00 03 21 0000"},
    {"a property twice", MQTT_5, MQTT_CONNACK, "20 09 00 00 06 21 0001 21 0001"},
    {"a property in the wrong packet", MQTT_5, MQTT_CONNACK, "20 06 00 00 03 23 0001"},
    {"an unknown property", MQTT_5, MQTT_CONNACK, "20 05 00 00 02 04 00"},
    {"a flag of 2", MQTT_5, MQTT_CONNACK, "20 05 00 00 02 25 02"},
    {"properties that are cut short", MQTT_5, MQTT_CONNACK, "20 05 00 00 02 21 00"},
    {"qos 3", MQTT_3_1_1, MQTT_PUBLISH, "36 07 0003 612f62 000a"},
    {"a repetition of qos 0", MQTT_3_1_1, MQTT_PUBLISH, "38 05 0003 612f62"},
    {"packet identifier 0", MQTT_3_1_1, MQTT_PUBLISH, "32 07 0003 612f62 0000"},
    {"a publish to a filter", MQTT_3_1_1, MQTT_PUBLISH, "30 05 0003 612f23"},
    {"a publish to nothing", MQTT_3_1_1, MQTT_PUBLISH, "30 02 0000"},
    {"a publish to nothing, version 5", MQTT_5, MQTT_PUBLISH, "30 03 0000 00"},
    {"a topic with the character 0", MQTT_3_1_1, MQTT_PUBLISH, "30 05 0003 610062"},
    {"a topic with a surrogate", MQTT_3_1_1, MQTT_PUBLISH, "30 05 0003 eda080"},
    {"a topic in overlong UTF-8", MQTT_3_1_1, MQTT_PUBLISH, "30 04 0002 c0af"},
    {"a topic that is cut short", MQTT_3_1_1, MQTT_PUBLISH, "30 04 0003 612f"},
    {"packet identifier 0 acked", MQTT_3_1_1, MQTT_PUBACK, "40 02 0000"},
    {"a reason in version 3.1.1", MQTT_3_1_1, MQTT_PUBACK, "40 03 000a 00"},
    {"a subscription to nothing", MQTT_3_1_1, MQTT_SUBSCRIBE, "82 02 000a"},
    {"a subscription with qos 3", MQTT_3_1_1, MQTT_SUBSCRIBE, "82 08 000a 0003 612f62 03"},
    {"no local in version 3.1.1", MQTT_3_1_1, MQTT_SUBSCRIBE, "82 08 000a 0003 612f62 05"},
    {"a filter that is cut short", MQTT_3_1_1, MQTT_SUBSCRIBE, "82 07 000a 0003 612f62"},
    {"a SUBACK without codes", MQTT_3_1_1, MQTT_SUBACK, "90 02 000a"},
    {"an AUTH in version 3.1.1", MQTT_3_1_1, MQTT_AUTH, "f0 00"},
    {"a PINGRESP with a body", MQTT_3_1_1, MQTT_PINGRESP, "d0 01 00"},
};
#define REFUSED (sizeof refused / sizeof refused[0])

static uint8_t bytes[4096];

static struct view from_hex(const char *hex) {
  size_t len = 0;
  for (; *hex; hex++) {
    if (*hex == ' ') continue;
    char digits[3] = {hex[0], hex[1], '\0'};
    bytes[len++] = (uint8_t)strtoul(digits, NULL, 16);
    hex++;
  }
  return view_of(bytes, len);
}

static void assert_bytes(const uint8_t *got, size_t len, const char *hex) {
  struct view want = from_hex(hex);
  assert_int_equal(len, want.len);
  assert_memory_equal(got, want.data, len);
}

static struct mqtt_packet packet_of(const char *hex) {
  struct view view = from_hex(hex);
  struct mqtt_packet packet;
  assert_int_equal(mqtt_read_packet(view.data, view.len, sizeof bytes, &packet), MQTT_OK);
  assert_int_equal(packet.size, view.len);
  return packet;
}

static void vectors_are_read_and_written(void **state) {
  (void)state;
  for (size_t i = 0; i < VECTORS; i++) {
    struct view view = from_hex(vectors[i].hex);
    struct mqtt_packet packet;
    if (mqtt_read_packet(view.data, view.len, sizeof bytes, &packet) != MQTT_OK) fail_msg("%s", vectors[i].name);
    assert_int_equal(packet.type, vectors[i].type);
    assert_int_equal(packet.size, view.len);
    uint8_t again[256];
    size_t len = mqtt_rewrite(vectors[i].version, &packet, again);
    if (len != view.len || memcmp(again, view.data, len) != 0) fail_msg("%s is not the same again", vectors[i].name);
  }
}

/* Each copy has its exact size, so that AddressSanitizer sees a read beyond it. */
static void packets_wait_for_each_byte(void **state) {
  (void)state;
  for (size_t i = 0; i < VECTORS; i++) {
    struct view view = from_hex(vectors[i].hex);
    for (size_t len = 0; len < view.len; len++) {
      uint8_t *part = malloc(len > 0 ? len : 1);
      assert_non_null(part);
      memcpy(part, view.data, len);
      struct mqtt_packet packet;
      assert_int_equal(mqtt_read_packet(part, len, sizeof bytes, &packet), MQTT_PARTIAL);
      free(part);
    }
  }
}

/* A body that ends too early and says so in its length: refused, or (where a tail may be left out) another packet. */
static void bodies_that_end_early_are_safe(void **state) {
  (void)state;
  for (size_t i = 0; i < VECTORS; i++) {
    struct view view = from_hex(vectors[i].hex);
    for (size_t len = 2; len < view.len; len++) {
      uint8_t *part = malloc(len), again[256];
      assert_non_null(part);
      memcpy(part, view.data, len);
      part[1] = (uint8_t)(len - 2);
      struct mqtt_packet packet;
      assert_int_equal(mqtt_read_packet(part, len, sizeof bytes, &packet), MQTT_OK);
      size_t written = mqtt_rewrite(vectors[i].version, &packet, again);
      assert_true(written <= len + 1); /* a CONNACK gets the empty properties that it lacked */
      free(part);
    }
  }
}

static void what_breaks_the_standard_is_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < REFUSED; i++) {
    struct view view = from_hex(refused[i].hex);
    struct mqtt_packet packet;
    uint8_t again[256];
    enum mqtt_result result = mqtt_read_packet(view.data, view.len, sizeof bytes, &packet);
    if (result == MQTT_BAD) continue;
    assert_int_equal(result, MQTT_OK);
    assert_int_equal(packet.size, view.len);
    if (mqtt_rewrite(refused[i].version, &packet, again) > 0) fail_msg("accepted: %s", refused[i].name);
  }
}

/* Table 2.4: the borders of the remaining length. */
static void lengths_have_their_sizes(void **state) {
  (void)state;
  static const struct {
    size_t body;
    const char *hex;
  } table[] = {
      {0, "30 00"},
      {127, "30 7f"},
      {128, "30 80 01"},
      {16383, "30 ff 7f"},
      {16384, "30 80 80 01"},
      {2097151, "30 ff ff 7f"},
      {2097152, "30 80 80 80 01"},
      {268435455, "30 ff ff ff 7f"},
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    struct view head = from_hex(table[i].hex);
    assert_int_equal(mqtt_packet_size(table[i].body), head.len + table[i].body);
    struct mqtt_packet packet;
    enum mqtt_result want = table[i].body == 0 ? MQTT_OK : MQTT_PARTIAL;
    assert_int_equal(mqtt_read_packet(head.data, head.len, UINT32_MAX, &packet), want);
    if (table[i].body == 0) continue;
    assert_int_equal(
        mqtt_read_packet(head.data, head.len, (uint32_t)(head.len + table[i].body - 1), &packet), MQTT_TOO_LARGE);
  }
  assert_int_equal(mqtt_packet_size(268435456), 0);
}

static void a_connect_is_taken_apart(void **state) {
  (void)state;
  struct mqtt_packet packet =
      packet_of("10 26 0004 4d515454 05 ce 000a 05 11 0000000a 0003 616263 00 0003 772f74 0002 6279 0001 75 0002 7077");
  struct mqtt_connect connect;
  assert_true(mqtt_read_connect(&packet, &connect));
  assert_int_equal(connect.version, MQTT_5);
  assert_true(connect.clean && connect.has_will && connect.has_user && connect.has_password);
  assert_int_equal(connect.keep_alive_s, 10);
  assert_int_equal(mqtt_property_number(connect.properties, MQTT_SESSION_EXPIRY, 0), 10);
  assert_int_equal(mqtt_property_number(connect.properties, MQTT_RECEIVE_MAXIMUM_PROPERTY, 65535), 65535);
  assert_true(view_is(connect.client_id, "abc"));
  assert_int_equal(connect.will.qos, 1);
  assert_false(connect.will.retain);
  assert_true(view_is(connect.will.topic, "w/t") && view_is(connect.will.message, "by"));
  assert_true(view_is(connect.user, "u") && view_is(connect.password, "pw"));
  assert_int_equal(mqtt_connect_size(&connect), packet.size);
}

static void a_publish_is_written_around_a_hole(void **state) {
  (void)state;
  struct mqtt_publish publish = {.qos = 1, .id = 10, .topic = view_str("a/b"), .payload = {NULL, 3}};
  uint8_t out[32] = {0};
  assert_int_equal(mqtt_publish_size(MQTT_5, &publish), 13);
  uint8_t *hole = mqtt_write_publish(out, MQTT_5, &publish);
  assert_ptr_equal(hole, out + 10);
  memcpy(hole, "hi!", 3);
  assert_bytes(out, 13, "32 0b 0003 612f62 000a 00 686921");
}

static void every_property_is_taken_apart(void **state) {
  (void)state;
  struct mqtt_packet packet = packet_of(vectors[14].hex);
  struct mqtt_publish publish;
  assert_true(mqtt_read_publish(MQTT_5, &packet, &publish));
  static const struct {
    uint8_t id;
    uint32_t number;
    const char *text, *value;
  } want[] = {
      {MQTT_PAYLOAD_FORMAT, 1, "", ""},
      {MQTT_MESSAGE_EXPIRY, 3600, "", ""},
      {MQTT_TOPIC_ALIAS, 7, "", ""},
      {MQTT_RESPONSE_TOPIC, 0, "r", ""},
      {MQTT_CORRELATION_DATA, 0, "\xbe\xef", ""},
      {MQTT_SUBSCRIPTION_ID, 7, "", ""},
      {MQTT_SUBSCRIPTION_ID, 128, "", ""},
      {MQTT_CONTENT_TYPE, 0, "t", ""},
      {MQTT_USER_PROPERTY, 0, "k", "v"},
      {MQTT_USER_PROPERTY, 0, "k", ""},
  };
  struct mqtt_property list[sizeof want / sizeof want[0]];
  struct view rest = publish.properties;
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
    assert_true(mqtt_property_next(&rest, &list[i]));
    assert_int_equal(list[i].id, want[i].id);
    assert_int_equal(list[i].number, want[i].number);
    assert_true(view_is(list[i].text, want[i].text) && view_is(list[i].value, want[i].value));
  }
  assert_int_equal(rest.len, 0);
  uint8_t again[64];
  size_t size = mqtt_properties_size(list, sizeof list / sizeof list[0]);
  assert_int_equal(size, publish.properties.len);
  assert_ptr_equal(mqtt_write_properties(again, list, sizeof list / sizeof list[0]), again + size);
  assert_memory_equal(again, publish.properties.data, size);
}

static void a_subscription_is_written(void **state) {
  (void)state;
  const struct mqtt_filter filters[] = {{view_str("a/b"), 1}, {view_str("c/d"), 2}};
  uint8_t list[16], out[32];
  struct mqtt_subscribe subscribe = {.id = 10, .filters = view_of(list, mqtt_filters_size(MQTT_SUBSCRIBE, filters, 2))};
  assert_ptr_equal(mqtt_write_filters(list, MQTT_SUBSCRIBE, filters, 2), list + subscribe.filters.len);
  size_t size = mqtt_subscribe_size(MQTT_3_1_1, &subscribe);
  assert_ptr_equal(mqtt_write_subscribe(out, MQTT_3_1_1, MQTT_SUBSCRIBE, &subscribe), out + size);
  assert_bytes(out, size, "82 0e 000a 0003 612f62 01 0003 632f64 02");
}

static void codes_have_the_names_of_the_standard(void **state) {
  (void)state;
  assert_string_equal(mqtt_reason_name(5), "not authorized");
  assert_string_equal(mqtt_reason_name(MQTT_NOT_AUTHORIZED), "not authorized");
  assert_string_equal(mqtt_reason_name(MQTT_SESSION_TAKEN_OVER), "session taken over");
  assert_string_equal(mqtt_reason_name(MQTT_QUOTA_EXCEEDED), "quota exceeded");
  assert_string_equal(mqtt_reason_name(0xa2), "wildcard subscriptions not supported");
  for (int32_t code = 0x80; code <= 0xa2; code++)
    assert_non_null(mqtt_reason_name(code));
  assert_null(mqtt_reason_name(0));
  assert_null(mqtt_reason_name(6));
  assert_null(mqtt_reason_name(0xa3));
  assert_null(mqtt_reason_name(-1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(vectors_are_read_and_written),
      cmocka_unit_test(packets_wait_for_each_byte),
      cmocka_unit_test(bodies_that_end_early_are_safe),
      cmocka_unit_test(what_breaks_the_standard_is_refused),
      cmocka_unit_test(lengths_have_their_sizes),
      cmocka_unit_test(a_connect_is_taken_apart),
      cmocka_unit_test(a_publish_is_written_around_a_hole),
      cmocka_unit_test(every_property_is_taken_apart),
      cmocka_unit_test(a_subscription_is_written),
      cmocka_unit_test(codes_have_the_names_of_the_standard),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
