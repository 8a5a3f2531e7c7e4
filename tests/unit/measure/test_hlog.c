#include "measure/hlog.h"

#include "base/base64.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

static struct histogram h, back;
static struct hlog_interval interval;

static void round_trip(void) {
  struct err err;
  char *text;
  assert_int_equal(histogram_encode(&h, &text, &err), STATUS_OK);
  assert_int_equal(histogram_decode(text, strlen(text), &back, &err), STATUS_OK);
  assert_int_equal(back.count, h.count);
  assert_int_equal(back.overflow, 0);
  assert_memory_equal(back.counters, h.counters, sizeof h.counters);
  if (h.count && !h.overflow) {
    assert_int_equal(histogram_index(back.min_ns), histogram_index(h.min_ns));
    assert_true(back.min_ns <= h.min_ns && back.max_ns >= h.max_ns);
    assert_true(fabs(histogram_mean(&back) - histogram_mean(&h)) <= 512 + 0.001 * histogram_mean(&h));
  }
  free(text);
}

static void keeps_every_counter(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 3);
  histogram_reset(&h);
  round_trip();
  for (int round = 0; round < 40; round++) {
    histogram_reset(&h);
    uint64_t values = 1 + rng_below(&rng, 3000);
    double range = 1 + rng_double(&rng) * 30;
    for (uint64_t i = 0; i < values; i++) {
      uint64_t times = UINT64_C(1) << rng_below(&rng, 48);
      histogram_record_many(&h, (int64_t)exp(rng_double(&rng) * range), times);
    }
    round_trip();
  }
}

static void keeps_the_largest_counts(void **state) {
  (void)state;
  struct err err;
  char *text;
  histogram_reset(&h);
  histogram_record_many(&h, 0, INT64_MAX - 2);
  histogram_record(&h, 700000);
  histogram_record(&h, HISTOGRAM_MAX_NS);
  round_trip();
  histogram_record(&h, 5);
  assert_int_equal(histogram_encode(&h, &text, &err), STATUS_USAGE);
  assert_null(text);
}

static void fills_every_counter(void **state) {
  (void)state;
  histogram_reset(&h);
  for (uint32_t i = 0; i <= histogram_index(HISTOGRAM_MAX_NS); i++) {
    histogram_record_many(&h, histogram_lowest(i), UINT64_C(1) << 48);
  }
  round_trip();
}

static void put(uint8_t *out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++)
    out[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

/* A text as another implementation would make it, with any head and counters. */
struct foreign {
  uint32_t outer_cookie, inner_cookie, digits;
  uint32_t counters_len; /* as claimed */
  uint64_t lowest;
  const uint8_t *counters;
  size_t counters_bytes; /* as there */
  size_t zlib_extra;     /* claimed beyond what is there */
};

static enum status decode(const struct foreign *f, struct err *err) {
  uint8_t *inner = calloc(1, 40 + f->counters_bytes);
  assert_non_null(inner);
  put(inner, f->inner_cookie, 4);
  put(inner + 4, f->counters_len, 4);
  put(inner + 12, f->digits, 4);
  put(inner + 16, f->lowest, 8);
  if (f->counters_bytes) memcpy(inner + 40, f->counters, f->counters_bytes);
  uLongf packed = compressBound(40 + f->counters_bytes);
  uint8_t *outer = calloc(1, 8 + packed);
  assert_non_null(outer);
  assert_int_equal(compress(outer + 8, &packed, inner, 40 + f->counters_bytes), Z_OK);
  put(outer, f->outer_cookie, 4);
  put(outer + 4, packed + f->zlib_extra, 4);
  char *text = malloc(base64_encoded_size(8 + packed) + 1);
  assert_non_null(text);
  *base64_encode(BASE64_STANDARD, text, outer, 8 + packed) = '\0';
  enum status status = histogram_decode(text, strlen(text), &back, err);
  free(text);
  free(outer);
  free(inner);
  return status;
}

static struct foreign foreign(const void *counters, size_t len) {
  return (struct foreign){.outer_cookie = 0x1c849314,
      .inner_cookie = 0x1c849313,
      .digits = 3,
      .counters_len = (uint32_t)len,
      .lowest = 1000,
      .counters = counters,
      .counters_bytes = len};
}

static void refuse(const struct foreign *f, const char *why) {
  struct err err = {0};
  assert_int_equal(decode(f, &err), STATUS_PROTOCOL);
  assert_non_null(strstr(err.text, why));
  assert_int_equal(back.count, 0);
}

static void reads_zigzag_and_zero_runs(void **state) {
  (void)state;
  /* 3 of 0, a run of 2 empty (-2), 1 of 3, 64 of 4 in two bytes. */
  struct foreign f = foreign("\x06\x03\x02\x80\x01", 5);
  assert_int_equal(decode(&f, NULL), STATUS_OK);
  assert_int_equal(back.counters[0], 3);
  assert_int_equal(back.counters[1] + back.counters[2], 0);
  assert_int_equal(back.counters[3], 1);
  assert_int_equal(back.counters[4], 64);
  assert_int_equal(back.count, 68);
  assert_int_equal(back.min_ns, 0);
  assert_int_equal(back.max_ns, 5 * 512 - 1);
  f.inner_cookie = 0x1c849303; /* the word size says nothing in V2 */
  f.outer_cookie = 0x1c849304;
  assert_int_equal(decode(&f, NULL), STATUS_OK);
  assert_int_equal(back.count, 68);
}

static void reads_other_units(void **state) {
  (void)state;
  struct foreign f = foreign("\x01\x02", 2); /* -1: one empty, then one value in [1, 2) units */
  f.lowest = UINT64_C(1) << 20;
  assert_int_equal(decode(&f, NULL), STATUS_OK);
  assert_int_equal(back.count, 1);
  assert_int_equal(back.max_ns, (1 << 20) + (1 << 19));
}

static void refuses_what_is_malformed(void **state) {
  (void)state;
  struct foreign f = foreign("\x06", 1);
  f.outer_cookie = 0x1c849301;
  refuse(&f, "unknown cookie");
  f = foreign("\x06", 1);
  f.inner_cookie = 0x1c849308;
  refuse(&f, "inner cookie");
  f = foreign("\x06", 1);
  f.digits = 2;
  refuse(&f, "3 significant digits");
  f = foreign("\x06", 1);
  f.lowest = 0;
  refuse(&f, "lowest discernible");
  f.lowest = UINT64_MAX;
  refuse(&f, "lowest discernible");
  f = foreign("\x06", 1);
  f.counters_len = 2;
  refuse(&f, "counters are cut off");
  f = foreign("\x06\x80", 2);
  refuse(&f, "counter is cut off");
  f = foreign("\x06", 1);
  f.zlib_extra = 1;
  refuse(&f, "zlib stream is cut off");
  f = foreign("\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9); /* a run of 2^63 */
  refuse(&f, "more counters");
  f = foreign("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10); /* 2^63 - 1 values and one more */
  refuse(&f, "more than 2^63");
  static uint8_t zeros[1 << 22]; /* shrinks to 4 KB: a bomb */
  f = foreign(zeros, sizeof zeros);
  refuse(&f, "zlib stream is broken or too long");
  f = foreign(zeros, 60000); /* small, and yet more counters than the range has */
  refuse(&f, "more counters");
}

static void survives_cuts_and_flips(void **state) {
  (void)state;
  char *text;
  histogram_reset(&h);
  for (int i = 0; i < 300; i++)
    histogram_record(&h, i * INT64_C(12345678));
  assert_int_equal(histogram_encode(&h, &text, NULL), STATUS_OK);
  size_t len = strlen(text);
  for (size_t cut = 0; cut < len; cut++) {
    struct err err = {0};
    assert_int_not_equal(histogram_decode(text, cut, &back, &err), STATUS_OK);
    assert_true(err.text[0] != '\0');
    assert_int_equal(back.count, 0);
  }
  struct rng rng;
  rng_seed(&rng, 5);
  for (int i = 0; i < 5000; i++) {
    size_t at = rng_below(&rng, len);
    char old = text[at];
    text[at] = (char)rng_next(&rng);
    uint64_t total = 0;
    if (histogram_decode(text, len, &back, NULL) == STATUS_OK) {
      for (uint32_t k = 0; k < HISTOGRAM_COUNTERS; k++)
        total += back.counters[k];
    }
    assert_int_equal(back.count, total);
    text[at] = old;
  }
  free(text);
}

static void reads_what_it_logs(void **state) {
  (void)state;
  FILE *file = tmpfile();
  assert_non_null(file);
  struct err err;
  assert_int_equal(hlog_write_head(file, 1700000000.5, "two\nlines", &err), STATUS_OK);
  for (int i = 0; i < 5; i++) {
    histogram_reset(&h);
    histogram_record_many(&h, 1000000 * (i + 1), (uint64_t)i);
    assert_int_equal(hlog_write_interval(file, i % 2 ? "ack" : NULL, i, 1, &h, &err), STATUS_OK);
  }
  rewind(file);
  unsigned line = 0;
  bool end = false;
  for (int i = 0; i < 5; i++) {
    assert_int_equal(hlog_read_interval(file, &line, &interval, &end, &err), STATUS_OK);
    assert_false(end);
    assert_int_equal(line, 6 + i);
    assert_string_equal(interval.tag, i % 2 ? "ack" : "");
    assert_true(interval.start_s == i && interval.length_s == 1);
    assert_int_equal(interval.histogram.count, i);
  }
  assert_int_equal(hlog_read_interval(file, &line, &interval, &end, &err), STATUS_OK);
  assert_true(end);
  fclose(file);
}

static void writes_the_lines_of_version_1_3(void **state) {
  (void)state;
  char text[4096] = "";
  FILE *file = fmemopen(text, sizeof text, "w");
  assert_non_null(file);
  histogram_reset(&h);
  histogram_record(&h, 1234567);
  assert_int_equal(hlog_write_head(file, 1700000000.5, "a", NULL), STATUS_OK);
  assert_int_equal(hlog_write_interval(file, "ack", 2.25, 1, &h, NULL), STATUS_OK);
  fclose(file);
  const char *head = "#a\n"
                     "#[Histogram log format version 1.3]\n"
                     "#[StartTime: 1700000000.500 (seconds since epoch), 2023-11-14 22:13:20 UTC]\n"
                     "#[BaseTime: 1700000000.500 (seconds since epoch)]\n"
                     "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
                     "Tag=ack,2.250,1.000,1.235,HISTFAAAA";
  assert_memory_equal(text, head, strlen(head));
}

static void refuses_tags_that_break_the_line(void **state) {
  (void)state;
  static const char *const bad[] = {"a,b", "a b", "a\nb", "12345678901234567890123456789012"};
  FILE *file = tmpfile();
  assert_non_null(file);
  histogram_reset(&h);
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(hlog_write_interval(file, bad[i], 0, 1, &h, NULL), STATUS_USAGE);
  }
  assert_int_equal(ftell(file), 0);
  assert_int_equal(hlog_write_interval(file, "1234567890123456789012345678901", 0, 1, &h, NULL), STATUS_OK);
  fclose(file);
}

static void says_when_the_disk_is_full(void **state) {
  (void)state;
  FILE *file = fopen("/dev/full", "w");
  assert_non_null(file);
  setvbuf(file, NULL, _IONBF, 0);
  struct err err;
  assert_int_equal(hlog_write_head(file, 0, NULL, &err), STATUS_IO);
  clearerr(file);
  histogram_reset(&h);
  assert_int_equal(hlog_write_interval(file, NULL, 0, 1, &h, &err), STATUS_IO);
  fclose(file);
}

static enum status read_text(const char *text, size_t len, unsigned *line, bool *end, struct err *err) {
  FILE *file = fmemopen((void *)text, len, "r");
  assert_non_null(file);
  *line = 0;
  enum status status = hlog_read_interval(file, line, &interval, end, err);
  fclose(file);
  return status;
}

static void refuses_lines_that_are_no_interval(void **state) {
  (void)state;
  static const char *const bad[] = {"1,2,3", "1,2,3,", "1,2,3,####", "x,2,3,HIST", "nan,1,1,HIST", "1,inf,1,HIST",
      "Tag=a", "Tag=12345678901234567890123456789012,1,1,1,HIST", "1 ,1,1,HIST", ",,,", "hello"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char text[200];
    snprintf(text, sizeof text, "#head\n\n%s\n", bad[i]);
    struct err err = {0};
    unsigned line;
    bool end;
    assert_int_equal(read_text(text, strlen(text), &line, &end, &err), STATUS_PROTOCOL);
    assert_non_null(strstr(err.text, "line 3"));
    assert_null(strchr(err.text, '\n'));
  }
  struct err err = {0};
  unsigned line;
  bool end;
  assert_int_equal(read_text("1,2\0,3\n", 7, &line, &end, &err), STATUS_PROTOCOL);
  assert_non_null(strstr(err.text, "NUL"));
}

static void refuses_endless_lines(void **state) {
  (void)state;
  size_t len = 3 << 20;
  char *text = malloc(len);
  assert_non_null(text);
  memset(text, '7', len);
  struct err err = {0};
  unsigned line;
  bool end;
  assert_int_equal(read_text(text, len, &line, &end, &err), STATUS_PROTOCOL);
  assert_non_null(strstr(err.text, "longer than 1 MiB"));
  free(text);
}

static void reads_foreign_habits(void **state) {
  (void)state;
  char *payload;
  histogram_reset(&h);
  histogram_record(&h, 5000);
  assert_int_equal(histogram_encode(&h, &payload, NULL), STATUS_OK);
  char text[1024];
  snprintf(text, sizeof text, "Timestamp,Length\r\n#x\r\n\r\nTag=t,0.127,1.007,2.769,%s\r\n", payload);
  unsigned line;
  bool end;
  struct err err;
  assert_int_equal(read_text(text, strlen(text), &line, &end, &err), STATUS_OK);
  assert_false(end);
  assert_string_equal(interval.tag, "t");
  assert_int_equal(interval.histogram.count, 1);
  snprintf(text, sizeof text, "0.127,1.007,2.769,%s", payload); /* no newline at the end */
  assert_int_equal(read_text(text, strlen(text), &line, &end, &err), STATUS_OK);
  assert_int_equal(interval.histogram.count, 1);
  free(payload);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keeps_every_counter),
      cmocka_unit_test(keeps_the_largest_counts),
      cmocka_unit_test(fills_every_counter),
      cmocka_unit_test(reads_zigzag_and_zero_runs),
      cmocka_unit_test(reads_other_units),
      cmocka_unit_test(refuses_what_is_malformed),
      cmocka_unit_test(survives_cuts_and_flips),
      cmocka_unit_test(reads_what_it_logs),
      cmocka_unit_test(writes_the_lines_of_version_1_3),
      cmocka_unit_test(refuses_tags_that_break_the_line),
      cmocka_unit_test(says_when_the_disk_is_full),
      cmocka_unit_test(refuses_lines_that_are_no_interval),
      cmocka_unit_test(refuses_endless_lines),
      cmocka_unit_test(reads_foreign_habits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
