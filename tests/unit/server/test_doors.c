/* A port on several addresses: which ones, and whether each of them lets somebody in. */
#include "server/doors.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

static enum status read_addresses(const char *more, struct door_addresses *out) {
  return door_addresses_read("127.0.0.1", more, 0, out, NULL);
}

static void reads_each_address_once(void **state) {
  (void)state;
  struct door_addresses addresses;
  assert_int_equal(read_addresses(NULL, &addresses), STATUS_OK);
  assert_int_equal(addresses.count, 1);
  assert_int_equal(read_addresses("127.0.0.1-127.0.0.3,127.0.0.2,127.0.0.9", &addresses), STATUS_OK);
  assert_int_equal(addresses.count, 4);
  assert_int_equal(read_addresses("127.0.0.1-127.0.0.16", &addresses), STATUS_OK);
  assert_int_equal(addresses.count, DOORS_MAX);
  assert_int_equal(read_addresses("127.0.0.2-127.0.0.17", &addresses), STATUS_USAGE);
  assert_int_equal(read_addresses("somewhere", &addresses), STATUS_USAGE);
}

struct hall {
  struct doors doors; /* first */
  uint32_t guests;
};

static void let_in(struct doors *doors, int fd) {
  ((struct hall *)doors)->guests++;
  close(fd);
}

static int knock(const struct address *address) {
  int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(fd, (const struct sockaddr *)&address->storage, address->len), 0);
  return fd;
}

static void lets_in_at_every_address(void **state) {
  (void)state;
  struct loop *loop;
  struct door_addresses addresses;
  struct hall hall = {.doors.accepted = let_in};
  assert_int_equal(loop_create(&loop, NULL), STATUS_OK);
  assert_int_equal(read_addresses("127.0.0.2-127.0.0.4", &addresses), STATUS_OK);
  assert_int_equal(doors_open(&hall.doors, loop, &addresses, false, NULL), STATUS_OK);
  int fd[4];
  for (int i = 0; i < 4; i++) {
    assert_int_equal(address_port(&addresses.address[i]), address_port(&addresses.address[0]));
    fd[i] = knock(&addresses.address[i]);
  }
  uint64_t until_ns = clock_now_ns() + 10 * NS_PER_SEC;
  while (hall.guests < 4 && clock_now_ns() < until_ns)
    loop_turn(loop, clock_now_ns() + NS_PER_MS);
  assert_int_equal(hall.guests, 4);
  for (int i = 0; i < 4; i++)
    close(fd[i]);

  /* Somebody else listens there already: nothing is left open. */
  struct hall other = {.doors.accepted = let_in};
  struct door_addresses taken = addresses;
  taken.count = 1;
  assert_int_not_equal(doors_open(&other.doors, loop, &taken, false, NULL), STATUS_OK);
  assert_int_equal(other.doors.open, 0);
  doors_close(&hall.doors);
  assert_int_equal(doors_open(&other.doors, loop, &taken, false, NULL), STATUS_OK);
  doors_close(&other.doors);
  loop_destroy(loop);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_each_address_once),
      cmocka_unit_test(lets_in_at_every_address),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
