/* Ranges of local addresses: what they stand for, and what is refused. */
#include "net/address_range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect_at(const struct address_ranges *ranges, uint32_t index, const char *expected) {
  struct address address = address_ranges_at(ranges, index);
  char text[64];
  address_text(&address, text, sizeof text);
  assert_string_equal(text, expected);
}

static void parse(const char *text, struct address_ranges *out) {
  struct err err = {0};
  if (address_ranges_parse(text, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static void lists_ranges_and_networks_are_walked(void **state) {
  (void)state;
  struct address_ranges ranges;
  parse("127.0.0.250-127.0.1.5,10.0.0.0/29,192.168.1.1", &ranges);
  assert_int_equal(ranges.count, 12 + 6 + 1);
  expect_at(&ranges, 0, "127.0.0.250:0");
  expect_at(&ranges, 5, "127.0.0.255:0");
  expect_at(&ranges, 6, "127.0.1.0:0");
  expect_at(&ranges, 11, "127.0.1.5:0");
  expect_at(&ranges, 12, "10.0.0.1:0");
  expect_at(&ranges, 17, "10.0.0.6:0");
  expect_at(&ranges, 18, "192.168.1.1:0");
  expect_at(&ranges, 19, "127.0.0.250:0");
  parse("10.0.0.7/32", &ranges);
  assert_int_equal(ranges.count, 1);
  expect_at(&ranges, 3, "10.0.0.7:0");
  parse("10.0.0.7/31", &ranges);
  assert_int_equal(ranges.count, 2);
  expect_at(&ranges, 0, "10.0.0.6:0");
}

static void ipv6_is_walked(void **state) {
  (void)state;
  struct address_ranges ranges;
  parse("::1", &ranges);
  assert_int_equal(ranges.count, 1);
  expect_at(&ranges, 0, "[::1]:0");
  parse("fd00::fffe-fd00::1:2", &ranges);
  assert_int_equal(ranges.count, 5);
  expect_at(&ranges, 2, "[fd00::1:0]:0");
  parse("fd00::/112", &ranges);
  assert_int_equal(ranges.count, 65536);
  expect_at(&ranges, 65535, "[fd00::ffff]:0");
}

static void loopback_goes_across_bytes(void **state) {
  (void)state;
  struct address_ranges ranges;
  address_ranges_loopback(&ranges, 300);
  expect_at(&ranges, 0, "127.1.0.1:0");
  expect_at(&ranges, 299, "127.1.1.44:0");
  assert_int_equal(address_ranges_check(&ranges, NULL), STATUS_OK);
}

static void what_is_wrong_is_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {"", "localhost", "127.0.0.1,", ",127.0.0.1", "127.0.0.9-127.0.0.1", "127.0.0.1-",
      "-127.0.0.1", "127.0.0.1-::1", "127.0.0.1,::1", "10.0.0.0/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x",
      "10.0.0.0/-1", "::/64", "10.0.0.0-10.255.0.0", "0.0.0.0-255.255.255.255", "1.2.3", "1.2.3.4.5",
      "10.0.0.0/17,10.1.0.0/17,10.2.0.0/17", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff-::"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    struct address_ranges ranges;
    struct err err = {0};
    if (address_ranges_parse(wrong[i], &ranges, &err) == STATUS_OK) fail_msg("\"%s\" passed", wrong[i]);
    assert_null(strchr(err.text, '\n'));
  }
  char many[1024] = "10.0.0.1";
  for (int i = 0; i < ADDRESS_RANGES_MAX; i++)
    strcat(many, ",10.0.0.1");
  struct address_ranges ranges;
  assert_int_equal(address_ranges_parse(many, &ranges, NULL), STATUS_USAGE);
}

static void foreign_addresses_are_found_before_the_run(void **state) {
  (void)state;
  struct address_ranges ranges;
  struct err err = {0};
  parse("127.0.0.1-127.0.0.3,192.0.2.1", &ranges); /* TEST-NET-1 */
  assert_int_equal(address_ranges_check(&ranges, &err), STATUS_USAGE);
  assert_non_null(strstr(err.text, "192.0.2.1"));
  assert_true(address_source_ports() > 0);
}

static void loopback_is_told_from_the_rest(void **state) {
  (void)state;
  struct address_ranges ranges;
  parse("127.0.0.1-127.0.0.9,127.4.0.0/24", &ranges);
  assert_true(address_ranges_are_loopback(&ranges));
  parse("127.0.0.1,192.0.2.1", &ranges);
  assert_false(address_ranges_are_loopback(&ranges));
  parse("127.255.255.255-128.0.0.0", &ranges);
  assert_false(address_ranges_are_loopback(&ranges));
  parse("::1", &ranges);
  assert_true(address_ranges_are_loopback(&ranges));
  parse("::1-::2", &ranges);
  assert_false(address_ranges_are_loopback(&ranges));
}

static void ports_are_read_back(void **state) {
  (void)state;
  const char *hosts[] = {"127.0.0.1", "::1"};
  for (int i = 0; i < 2; i++) {
    struct address address;
    assert_int_equal(address_resolve(hosts[i], 9003, &address, NULL), STATUS_OK);
    assert_int_equal(address_port(&address), 9003);
    address_set_port(&address, 40000);
    assert_int_equal(address_port(&address), 40000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lists_ranges_and_networks_are_walked),
      cmocka_unit_test(ipv6_is_walked),
      cmocka_unit_test(loopback_goes_across_bytes),
      cmocka_unit_test(what_is_wrong_is_refused),
      cmocka_unit_test(foreign_addresses_are_found_before_the_run),
      cmocka_unit_test(loopback_is_told_from_the_rest),
      cmocka_unit_test(ports_are_read_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
