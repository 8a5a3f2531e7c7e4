/* What the HdrHistogram interop test asks of muster, on standard input and output.
 *   encode             values, one a line -> one line of facts, one line of base64
 *   decode             base64             -> one line of facts, then "index count" of each counter in use
 *   write-log          values of three intervals, divided by a line "-" -> an interval log
 *   read-log           an interval log    -> for each interval "tag start length" and a line of facts */
#include "measure/hlog.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const double percentiles[] = {50, 75, 90, 95, 99, 99.9, 99.99, 100};

static void print_facts(const struct histogram *h) {
  printf("{\"count\":%" PRIu64 ",\"overflow\":%" PRIu64 ",\"min\":%" PRId64 ",\"max\":%" PRId64
         ",\"mean\":%.17g,\"stddev\":%.17g,\"percentiles\":[",
      h->count, h->overflow, h->min_ns, h->max_ns, histogram_mean(h), histogram_stddev(h));
  for (size_t i = 0; i < sizeof percentiles / sizeof percentiles[0]; i++) {
    printf("%s%" PRId64, i ? "," : "", histogram_percentile(h, percentiles[i]));
  }
  puts("]}");
}

static int fail(const struct err *err) {
  fprintf(stderr, "%s\n", err->text);
  return 1;
}

/* Up to the end of input or a line "-". */
static void read_values(struct histogram *h) {
  char line[64];
  histogram_reset(h);
  while (fgets(line, sizeof line, stdin) && line[0] != '-')
    histogram_record(h, strtoll(line, NULL, 10));
}

static int encode(void) {
  static struct histogram h;
  struct err err;
  char *text;
  read_values(&h);
  if (histogram_encode(&h, &text, &err) != STATUS_OK) return fail(&err);
  print_facts(&h);
  puts(text);
  free(text);
  return 0;
}

static int decode(void) {
  static struct histogram h;
  static char text[1 << 20];
  struct err err;
  size_t len = fread(text, 1, sizeof text, stdin);
  if (histogram_decode(text, len, &h, &err) != STATUS_OK) return fail(&err);
  print_facts(&h);
  for (uint32_t i = 0; i < HISTOGRAM_COUNTERS; i++) {
    if (h.counters[i]) printf("%" PRIu32 " %" PRIu64 "\n", i, h.counters[i]);
  }
  return 0;
}

static int write_log(void) {
  static struct histogram h;
  static const char *const tags[] = {"ack", "delivery", NULL};
  struct err err;
  if (hlog_write_head(stdout, 1700000000.25, "interop", &err) != STATUS_OK) return fail(&err);
  for (int i = 0; i < 3; i++) {
    read_values(&h);
    if (hlog_write_interval(stdout, tags[i], i, 1, &h, &err) != STATUS_OK) return fail(&err);
  }
  return 0;
}

static int read_log(void) {
  static struct hlog_interval interval;
  struct err err;
  unsigned line = 0;
  for (;;) {
    bool end;
    if (hlog_read_interval(stdin, &line, &interval, &end, &err) != STATUS_OK) return fail(&err);
    if (end) return 0;
    printf("%s %.3f %.3f\n", *interval.tag ? interval.tag : "-", interval.start_s, interval.length_s);
    print_facts(&interval.histogram);
  }
}

int main(int argc, char **argv) {
  const char *command = argc == 2 ? argv[1] : "";
  if (strcmp(command, "encode") == 0) return encode();
  if (strcmp(command, "decode") == 0) return decode();
  if (strcmp(command, "write-log") == 0) return write_log();
  if (strcmp(command, "read-log") == 0) return read_log();
  fputs("usage: hdr_tool encode|decode|write-log|read-log\n", stderr);
  return 2;
}
