/* UDX packets and frames, yamux headers and multistream messages, byte for byte as in
 * ../shared/protocols/ricochet.md 6.2, 6.4 and 6.5, and what is refused. */
#include "support/hex.h"
#include "wire/multistream.h"
#include "wire/udx.h"
#include "wire/yamux.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TO_SERVER "00000003 08 0102030405060708 08 1112131415161718 "

static struct udx_packet read_packet(const char *hex, uint8_t bytes[2048]) {
  struct udx_packet packet;
  assert_true(udx_read_packet(bytes, hex_bytes(hex, bytes), &packet));
  return packet;
}

static struct udx_frame only_frame(const char *hex, uint8_t bytes[2048]) {
  struct udx_packet packet = read_packet(hex, bytes);
  struct udx_frame frame, none;
  assert_true(udx_next_frame(&packet.frames, &frame));
  assert_false(udx_next_frame(&packet.frames, &none));
  return frame;
}

static void go_packets_are_read(void **state) {
  (void)state;
  uint8_t bytes[2048];
  struct udx_packet packet = read_packet(TO_SERVER "00000001 00000000 00000001 03 02 0000000000000000 0011"
                                                   "68656c6c6f2066726f6d20676f2d756478",
      bytes);
  assert_int_equal(packet.sequence, 1);
  assert_int_equal(packet.to_stream, 0);
  assert_int_equal(packet.from_stream, 1);
  struct udx_frame frame;
  bool syn;
  assert_true(udx_bears_data(packet.frames, &syn) && syn);
  assert_true(udx_next_frame(&packet.frames, &frame));
  assert_true(view_is(frame.data, "hello from go-udx"));
  frame = only_frame(TO_SERVER "0000000a 00000002 00000001 0301000000000001e2400000", bytes);
  assert_int_equal(frame.flags, UDX_FIN);
  assert_int_equal(frame.offset, 123456);
  assert_int_equal(frame.data.len, 0);
}

static void expect_ranges(const struct udx_frame *ack, const struct udx_range *ranges, size_t count) {
  struct udx_ack_walk walk = udx_ack_begin(ack);
  uint32_t low, high;
  for (size_t i = 0; i < count; i++) {
    assert_true(udx_ack_next(&walk, &low, &high));
    assert_int_equal(low, ranges[i].low);
    assert_int_equal(high, ranges[i].high);
  }
  assert_false(udx_ack_next(&walk, &low, &high));
}

static void acks_are_read_and_written(void **state) {
  (void)state;
  static const char *const with_gaps = "02 00000064 0019 02 0000000a 02 00000005 01 00000050";
  static const struct udx_range ranges[] = {{91, 100}, {84, 88}, {3, 82}};
  uint8_t bytes[2048], out[64], expected[64];
  char packet[256] = TO_SERVER "00000000 00000001 00000000 ";
  strcat(packet, with_gaps);
  struct udx_frame frame = only_frame(packet, bytes);
  assert_int_equal(frame.delay_ms, 25);
  expect_ranges(&frame, ranges, 3);
  assert_int_equal(udx_write_ack(out, ranges, 3, 25) - out, hex_bytes(with_gaps, expected));
  assert_memory_equal(out, expected, 22);
  frame = only_frame(TO_SERVER "00000000 00000001 00000000 02 00000029 0003 00 0000002a", bytes);
  expect_ranges(&frame, &(struct udx_range){0, 41}, 1);
  /* A gap that does not fit ends what is told. */
  static const struct udx_range far[] = {{1000, 1000}, {10, 20}};
  assert_int_equal(udx_write_ack(out, far, 2, 0) - out, 12);
  /* Ranges below 0 are not told, nor those of a hostile count. */
  frame = only_frame(TO_SERVER "00000000 00000001 00000000 02 00000005 0000 01 00000002 01 00000009", bytes);
  expect_ranges(&frame, &(struct udx_range){4, 5}, 1);
  frame = only_frame(TO_SERVER "00000000 00000001 00000000 02 ffffffff 0000 00 ffffffff", bytes);
  expect_ranges(&frame, &(struct udx_range){1, UINT32_MAX}, 1);
}

static void other_packets_are_refused(void **state) {
  (void)state;
  static const char *const bad[] = {
      "",
      "00000002 00 00 00000000 00000000 00000000",               /* version 2 */
      "00000003 15 0102030405060708091011121314151617181920 00", /* an id of 21 bytes */
      "00000003 00 00 00000000 00000000 000000",                 /* cut short */
      "00000003 00 00 00000000 00000000 00000000 0c",            /* an unknown frame */
      "00000003 00 00 00000000 00000000 00000000 12",            /* another */
      "00000003 00 00 00000000 00000000 00000000 02 00000000",   /* a frame cut short */
      "00000003 00 00 00000000 00000000 00000000 02 00000001 0000 01 00000001",
      "00000003 00 00 00000000 00000000 00000000 03 00 0000000000000000 0002 61",
      "00000003 00 00 00000000 00000000 00000000 0b 00000000 00000000 0001",
      "00000003 00 00 00000000 00000000 00000000 10 0000000000000000 0000000000000000 ff",
  };
  uint8_t bytes[128];
  struct udx_packet packet;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_false(udx_read_packet(bytes, hex_bytes(bad[i], bytes), &packet));
  assert_true(udx_read_packet(bytes, hex_bytes("00000003 00 00 00000000 00000000 00000000", bytes), &packet));
}

static void every_frame_is_read_to_its_end(void **state) {
  (void)state;
  uint8_t bytes[2048];
  struct udx_packet packet = read_packet(TO_SERVER
      "00000000 00000000 00000000 00 01 02 00000001 0000 00 00000001 03 00 0000000000000000 0001 61 04 00020000"
      "05 0000000000000001 06 00000002 07 00000003 09 0102030405060708 0a 0102030405060708 0b 00000001 00000000 0002 "
      "6869"
      "0d 00000001 00000004 0e 0000000000000005 0f 00000001 0000000000000006"
      "10 0000000000000007 0000000000000000 02 6162 000102030405060708090a0b0c0d0e0f 11 0000000000000008 08 000000",
      bytes);
  static const uint8_t types[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 15, 16, 17, 8};
  struct udx_frame frame;
  for (size_t i = 0; i < sizeof types; i++) {
    assert_true(udx_next_frame(&packet.frames, &frame));
    assert_int_equal(frame.type, types[i]);
  }
  assert_false(udx_next_frame(&packet.frames, &frame));
}

static void yamux_headers_are_read_and_written(void **state) {
  (void)state;
  static const struct {
    struct yamux_header header;
    const char *hex;
  } cases[] = {
      {{YAMUX_WINDOW_UPDATE, YAMUX_SYN, 1, 0}, "000100010000000100000000"},
      {{YAMUX_WINDOW_UPDATE, YAMUX_ACK, 1, 0}, "000100020000000100000000"},
      {{YAMUX_DATA, 0, 1, 367}, "00000000000000010000016f"},
      {{YAMUX_WINDOW_UPDATE, YAMUX_FIN, 1, 0}, "000100040000000100000000"},
      {{YAMUX_WINDOW_UPDATE, YAMUX_RST, 1, 0}, "000100080000000100000000"},
      {{YAMUX_WINDOW_UPDATE, 0, 1, 262144}, "000100000000000100040000"},
      {{YAMUX_PING, YAMUX_SYN, 0, 0x01020304}, "000200010000000001020304"},
      {{YAMUX_PING, YAMUX_ACK, 0, 0x01020304}, "000200020000000001020304"},
      {{YAMUX_GO_AWAY, 0, 0, YAMUX_NORMAL}, "000300000000000000000000"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t expected[YAMUX_HEADER_BYTES], out[YAMUX_HEADER_BYTES];
    struct yamux_header read;
    assert_int_equal(hex_bytes(cases[i].hex, expected), sizeof expected);
    yamux_write_header(out, &cases[i].header);
    assert_memory_equal(out, expected, sizeof out);
    assert_true(yamux_read_header(expected, &read));
    assert_int_equal(read.type, cases[i].header.type);
    assert_int_equal(read.flags, cases[i].header.flags);
    assert_int_equal(read.stream, cases[i].header.stream);
    assert_int_equal(read.length, cases[i].header.length);
  }
}

static void multistream_messages_are_read_and_written(void **state) {
  (void)state;
  static const struct {
    const char *text, *hex;
  } cases[] = {
      {"/multistream/1.0.0", "132f6d756c746973747265616d2f312e302e300a"},
      {"/noise", "072f6e6f6973650a"},
      {"/yamux/1.0.0", "0d2f79616d75782f312e302e300a"},
      {"na", "036e610a"},
      {"/sf-network/submit/1.0.0", "192f73662d6e6574776f726b2f7375626d69742f312e302e300a"},
      {"/sf-network/submit/batch/1.0.0", "1f2f73662d6e6574776f726b2f7375626d69742f62617463682f312e302e300a"},
      {"/sf-network/access/1.0.0", "192f73662d6e6574776f726b2f6163636573732f312e302e300a"},
      {"/sf-network/admin/1.0.0", "182f73662d6e6574776f726b2f61646d696e2f312e302e300a"},
      {"/ricochet/store/doc/1.0.0", "1a2f7269636f636865742f73746f72652f646f632f312e302e300a"},
      {"/ricochet/store/feed/1.0.0", "1b2f7269636f636865742f73746f72652f666565642f312e302e300a"},
      {"/ricochet/store/collection/1.0.0", "212f7269636f636865742f73746f72652f636f6c6c656374696f6e2f312e302e300a"},
      {"/ricochet/mailbox-notify/1.0.0", "1f2f7269636f636865742f6d61696c626f782d6e6f746966792f312e302e300a"},
      {"/ipfs/id/1.0.0", "0f2f697066732f69642f312e302e300a"},
      {"/ipfs/id/push/1.0.0", "142f697066732f69642f707573682f312e302e300a"},
      {"/ipfs/ping/1.0.0", "112f697066732f70696e672f312e302e300a"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t expected[64], out[64];
    struct view text;
    size_t len = hex_bytes(cases[i].hex, expected), used;
    assert_int_equal(multistream_size(strlen(cases[i].text)), len);
    assert_int_equal(multistream_write(out, view_str(cases[i].text)) - out, len);
    assert_memory_equal(out, expected, len);
    assert_int_equal(multistream_read(view_of(out, len), &text, &used), MULTISTREAM_COMPLETE);
    assert_true(view_is(text, cases[i].text) && used == len);
    for (size_t cut = 0; cut < len; cut++)
      assert_int_equal(multistream_read(view_of(out, cut), &text, &used), MULTISTREAM_PARTIAL);
  }
}

static void long_multistream_messages_have_an_end(void **state) {
  (void)state;
  uint8_t out[MULTISTREAM_MESSAGE_MAX];
  char longest[MULTISTREAM_TEXT_MAX + 1];
  struct view text;
  size_t used;
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = 0;
  assert_int_equal(multistream_write(out, view_str(longest)) - out, sizeof out);
  assert_int_equal(multistream_read(view_of(out, sizeof out), &text, &used), MULTISTREAM_COMPLETE);
  assert_true(view_is(text, longest));
  static const uint8_t bad[][3] = {{0x81, 0x08, 0}, {0xff, 0xff, 0x01}, {0, 0, 0}, {1, '\n', 0}, {2, 'a', 'b'}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_int_equal(multistream_read(view_of(bad[i], 3), &text, &used), MULTISTREAM_BAD);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(go_packets_are_read),
      cmocka_unit_test(acks_are_read_and_written),
      cmocka_unit_test(other_packets_are_refused),
      cmocka_unit_test(every_frame_is_read_to_its_end),
      cmocka_unit_test(yamux_headers_are_read_and_written),
      cmocka_unit_test(multistream_messages_are_read_and_written),
      cmocka_unit_test(long_multistream_messages_have_an_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
