#include "unit/wire/vectors.h"
#include "wire/pb.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_varint_sizes_at_every_border(void **state) {
  (void)state;
  uint8_t bytes[16];
  for (unsigned bit = 0; bit < 64; bit++) {
    uint64_t values[] = {UINT64_C(1) << bit, (UINT64_C(1) << bit) - 1};
    for (size_t i = 0; i < 2; i++) {
      size_t size = pb_varint_size(values[i]);
      assert_int_equal(pb_write_varint(bytes, values[i]) - bytes, size);
      uint8_t framed[16] = {0x08};
      memcpy(framed + 1, bytes, size);
      struct pb_reader reader = pb_reader_of(view_of(framed, size + 1));
      struct pb_field field;
      assert_true(pb_next(&reader, &field));
      assert_true(field.value == values[i]);
    }
  }
  assert_int_equal(pb_varint_size(0), 1);
  assert_int_equal(pb_varint_size(UINT64_MAX), 10);
}

static void test_every_type_is_walked(void **state) {
  (void)state;
  struct view bytes = bytes_of_hex("089601"
                                   "11f1debc9a78563412"
                                   "1a03616263"
                                   "2578563412"
                                   "aa0600");
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field;
  assert_true(pb_next(&reader, &field));
  assert_true(field.number == 1 && field.type == PB_VARINT && field.value == 150);
  assert_true(pb_next(&reader, &field));
  assert_true(field.number == 2 && field.type == PB_FIXED64 && field.value == UINT64_C(0x123456789abcdef1));
  assert_true(pb_next(&reader, &field));
  assert_true(field.number == 3 && field.type == PB_BYTES && view_is(field.bytes, "abc"));
  assert_true(pb_next(&reader, &field));
  assert_true(field.number == 4 && field.type == PB_FIXED32 && field.value == 0x12345678);
  assert_true(pb_next(&reader, &field));
  assert_true(field.number == 101 && field.type == PB_BYTES && field.bytes.len == 0);
  assert_false(pb_next(&reader, &field));
  assert_false(reader.bad);
  free((void *)bytes.data);
}

static void assert_malformed(const char *hex) {
  struct view bytes = bytes_of_hex(hex);
  struct pb_reader reader = pb_reader_of(bytes);
  struct pb_field field;
  while (pb_next(&reader, &field)) {
  }
  if (!reader.bad) fail_msg("%s was accepted", hex);
  assert_false(pb_next(&reader, &field));
  free((void *)bytes.data);
}

static void test_malformed_bytes(void **state) {
  (void)state;
  static const char *const malformed[] = {
      "ff",                       /* a key without an end */
      "08",                       /* no value */
      "08ff",                     /* half a value */
      "08ffffffffffffffffffff01", /* eleven bytes of value */
      "08ffffffffffffffffff02",   /* more than 64 bits */
      "00",                       /* field 0 */
      "88808080800001",           /* a key of six bytes */
      "888080801001",             /* field number past 2^29 - 1 */
      "0a",                       /* no length */
      "0a05616263",               /* shorter than its length */
      "0affffffffffffffffff01",   /* a length that would wrap */
      "0a81808080800061",         /* a length of six bytes */
      "0affffffff0f61",           /* a length of 4 GiB */
      "0b0c",                     /* a group */
      "0c",                       /* the end of a group */
      "0e",                       /* wire types that do not exist */
      "0f", "0901020304050607",   /* seven of eight bytes */
      "0d010203",                 /* three of four bytes */
  };
  for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
    assert_malformed(malformed[i]);
  }
}

static void test_nothing_is_a_message(void **state) {
  (void)state;
  struct pb_reader reader = pb_reader_of(view_of(NULL, 0));
  struct pb_field field;
  assert_false(pb_next(&reader, &field));
  assert_false(reader.bad);
}

static void test_default_values_are_left_out(void **state) {
  (void)state;
  uint8_t bytes[8];
  assert_int_equal(pb_uint_field_size(1, 0), 0);
  assert_int_equal(pb_bytes_field_size(1, 0), 0);
  assert_ptr_equal(pb_write_uint_field(bytes, 1, 0), bytes);
  assert_ptr_equal(pb_write_bytes_field(bytes, 1, view_of(NULL, 0)), bytes);
  assert_int_equal(pb_bytes_head_size(102, 0), 3);
  assert_ptr_equal(pb_write_bytes_head(bytes, 102, 0), bytes + 3);
  static const uint8_t empty_message[] = {0xb2, 0x06, 0x00};
  assert_memory_equal(bytes, empty_message, sizeof empty_message);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_varint_sizes_at_every_border),
      cmocka_unit_test(test_every_type_is_walked),
      cmocka_unit_test(test_malformed_bytes),
      cmocka_unit_test(test_nothing_is_a_message),
      cmocka_unit_test(test_default_values_are_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
