/* The calibration line that stands beside every benchmark figure: what this machine's primitives cost right now, since
 * a small virtual machine drifts by tens of percent between minutes. Each is the median of nine rounds. */
#include "base/clock.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 9, REPEATS = 20000 };

static int pair[2];

static void read_clock(void) {
  (void)clock_now_ns();
}

static void empty_call(void) {
  syscall(SYS_getppid);
}

static void round_trip(void) {
  char data[256] = {0};
  if (send(pair[0], data, sizeof data, 0) != sizeof data || recv(pair[1], data, sizeof data, 0) != sizeof data) abort();
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_ns(void (*what)(void)) {
  double round[ROUNDS];
  for (int r = 0; r < ROUNDS; r++) {
    uint64_t start = clock_now_ns();
    for (int i = 0; i < REPEATS; i++)
      what();
    round[r] = (double)(clock_now_ns() - start) / REPEATS;
  }
  qsort(round, ROUNDS, sizeof round[0], compare);
  return round[ROUNDS / 2];
}

int main(void) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0) {
    perror("socketpair");
    return 1;
  }
  printf("calibration: clock read %.0f ns, system call %.0f ns, socketpair send+recv of 256 bytes %.0f ns\n",
      median_ns(read_clock), median_ns(empty_call), median_ns(round_trip));
  return 0;
}
