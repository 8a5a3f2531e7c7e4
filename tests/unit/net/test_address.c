/* Addresses: which are this machine's own. */
#include "net/address.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool is_own(const char *host) {
  struct address address;
  struct err err = {0};
  if (address_resolve(host, 80, &address, &err) != STATUS_OK) fail_msg("%s", err.text);
  return address_is_own(&address);
}

static void loopback_is_own_and_strangers_are_not(void **state) {
  (void)state;
  assert_true(is_own("127.0.0.1"));
  assert_true(is_own("127.3.2.1"));
  assert_true(is_own("::1"));
  assert_false(is_own("203.0.113.9"));
  assert_false(is_own("2001:db8::9"));
}

/* A machine without any interface but loopback shows nothing here: that is a skip. */
static void the_address_of_an_interface_is_own(void **state) {
  (void)state;
  struct ifaddrs *all = NULL;
  assert_int_equal(getifaddrs(&all), 0);
  int seen = 0;
  for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    struct address address = {.len = sizeof(struct sockaddr_in)};
    memcpy(&address.storage, one->ifa_addr, address.len);
    if (address_is_loopback(&address)) continue;
    assert_true(address_is_own(&address));
    seen++;
  }
  freeifaddrs(all);
  if (seen == 0) skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loopback_is_own_and_strangers_are_not),
      cmocka_unit_test(the_address_of_an_interface_is_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
