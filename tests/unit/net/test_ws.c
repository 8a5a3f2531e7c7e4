/* WebSocket framing: RFC 6455's examples, what it forbids, cuts at every byte, and wslay as the oracle. */
#include "base/rng.h"
#include "net/ws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <wslay/wslay.h>

#define MESSAGE_MAX (1U << 20)

/* What a reader told, flattened: for each event its kind, opcode, code and data. */
struct record {
  struct buf bytes;
  int events;
  enum ws_event_kind last;
  uint16_t code;
};

static void note(struct record *record, uint8_t opcode, const void *data, size_t len) {
  uint32_t header[2] = {opcode, (uint32_t)len};
  assert_true(buf_append(&record->bytes, header, sizeof header));
  assert_true(buf_append(&record->bytes, data, len));
  record->events++;
}

static void note_event(struct record *record, const struct ws_event *event) {
  record->last = event->kind;
  record->code = event->close_code;
  if (event->kind == WS_EVENT_ERROR) {
    assert_non_null(event->text);
    return;
  }
  note(record, event->opcode, event->data, event->len);
}

/* Reads data as a stream would give it, in pieces; each call sees an exact heap copy. */
static void read_pieces(
    enum ws_role role, uint32_t max, const uint8_t *data, size_t len, size_t cut, struct record *record) {
  *record = (struct record){.last = WS_EVENT_NONE};
  struct ws ws;
  ws_init(&ws, role, max);
  struct buf tail = {0};
  bool ended = false;
  for (size_t at = 0; at < len && !ended;) {
    size_t piece = at == 0 && cut ? cut : len - at;
    assert_true(buf_append(&tail, data + at, piece));
    at += piece;
    uint8_t *copy = malloc(tail.len);
    assert_non_null(copy);
    memcpy(copy, tail.data, tail.len);
    size_t used = 0;
    struct ws_event event;
    do {
      used += ws_read(&ws, copy + used, tail.len - used, &event);
      assert_true(used <= tail.len);
      if (event.kind != WS_EVENT_NONE) note_event(record, &event);
      ended = event.kind == WS_EVENT_CLOSE || event.kind == WS_EVENT_ERROR;
    } while (event.kind != WS_EVENT_NONE && !ended);
    /* What was not used may have been changed in place only when it was used up. */
    assert_memory_equal(copy + used, tail.data + used, tail.len - used);
    buf_consume(&tail, used);
    free(copy);
  }
  if (!ended && !ws.message_opcode) assert_null(ws.fragments.data);
  buf_free(&tail);
  ws_free(&ws);
}

static void check_same(const struct record *a, const struct record *b) {
  assert_int_equal(a->events, b->events);
  assert_int_equal(a->bytes.len, b->bytes.len);
  if (a->bytes.len) assert_memory_equal(a->bytes.data, b->bytes.data, a->bytes.len);
}

static void expect(enum ws_role role, const uint8_t *data, size_t len, uint8_t opcode, const char *text) {
  struct record want = {0};
  note(&want, opcode, text, strlen(text));
  for (size_t cut = 0; cut < len; cut++) {
    struct record got;
    read_pieces(role, MESSAGE_MAX, data, len, cut, &got);
    check_same(&got, &want);
    buf_free(&got.bytes);
  }
  buf_free(&want.bytes);
}

#define EXPECT(role, opcode, text, ...)                                                                                \
  do {                                                                                                                 \
    const uint8_t vector[] = {__VA_ARGS__};                                                                            \
    expect(role, vector, sizeof vector, opcode, text);                                                                 \
  } while (0)

static void test_rfc_examples(void **state) {
  (void)state;
  EXPECT(WS_CLIENT, WS_TEXT, "Hello", 0x81, 0x05, 'H', 'e', 'l', 'l', 'o');
  EXPECT(WS_SERVER, WS_TEXT, "Hello", 0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58);
  EXPECT(WS_CLIENT, WS_TEXT, "Hello", 0x01, 0x03, 'H', 'e', 'l', 0x80, 0x02, 'l', 'o');
  EXPECT(WS_CLIENT, WS_PING, "Hello", 0x89, 0x05, 'H', 'e', 'l', 'l', 'o');
  EXPECT(WS_SERVER, WS_PONG, "Hello", 0x8a, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58);
  EXPECT(WS_CLIENT, WS_TEXT, "", 0x81, 0x00);
  EXPECT(WS_CLIENT, WS_TEXT, "", 0x01, 0x00, 0x00, 0x00, 0x80, 0x00);
  /* A character cut by a fragment border. */
  EXPECT(WS_CLIENT, WS_TEXT, "\xe2\x82\xac", 0x01, 0x01, 0xe2, 0x00, 0x01, 0x82, 0x80, 0x01, 0xac);
}

static void test_header_examples(void **state) {
  (void)state;
  uint8_t header[WS_HEADER_MAX];
  assert_int_equal(ws_write_header(header, WS_BINARY, 256, NULL), 4);
  assert_memory_equal(header, "\x82\x7e\x01\x00", 4);
  assert_int_equal(ws_write_header(header, WS_BINARY, 65536, NULL), 10);
  assert_memory_equal(header, "\x82\x7f\0\0\0\0\0\x01\0\0", 10);
  const uint8_t mask[4] = {1, 2, 3, 4};
  assert_int_equal(ws_write_header(header, WS_TEXT, 5, mask), 6);
  assert_memory_equal(header, "\x81\x85\x01\x02\x03\x04", 6);
  static const size_t lengths[] = {0, 1, 125, 126, 65535, 65536, 1U << 31};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    assert_int_equal(ws_write_header(header, WS_TEXT, lengths[i], NULL), ws_header_size(lengths[i], false));
    assert_int_equal(ws_write_header(header, WS_TEXT, lengths[i], mask), ws_header_size(lengths[i], true));
  }
}

static void test_control_inside_fragments(void **state) {
  (void)state;
  static const uint8_t data[] = {
      0x01, 0x03, 'H', 'e', 'l', 0x89, 0x01, 'p', 0x00, 0x00, 0x8a, 0x00, 0x80, 0x02, 'l', 'o', 0x82, 0x01, 'b'};
  struct record want = {0};
  note(&want, WS_PING, "p", 1);
  note(&want, WS_PONG, "", 0);
  note(&want, WS_TEXT, "Hello", 5);
  note(&want, WS_BINARY, "b", 1);
  for (size_t cut = 0; cut < sizeof data; cut++) {
    struct record got;
    read_pieces(WS_CLIENT, MESSAGE_MAX, data, sizeof data, cut, &got);
    check_same(&got, &want);
    buf_free(&got.bytes);
  }
  buf_free(&want.bytes);
}

static void refuse(enum ws_role role, const uint8_t *data, size_t len, uint16_t code) {
  for (size_t cut = 0; cut < len; cut++) {
    struct record got;
    read_pieces(role, 1000, data, len, cut, &got);
    assert_int_equal(got.last, WS_EVENT_ERROR);
    assert_int_equal(got.code, code);
    buf_free(&got.bytes);
  }
}

#define REFUSE(role, code, ...)                                                                                        \
  do {                                                                                                                 \
    const uint8_t vector[] = {__VA_ARGS__};                                                                            \
    refuse(role, vector, sizeof vector, code);                                                                         \
  } while (0)

static void test_protocol_errors(void **state) {
  (void)state;
  REFUSE(WS_CLIENT, 1002, 0xc1, 0x00);
  REFUSE(WS_CLIENT, 1002, 0xa1, 0x00);
  REFUSE(WS_CLIENT, 1002, 0x91, 0x00);
  for (uint8_t opcode = 0; opcode < 16; opcode++) {
    bool known = opcode <= WS_BINARY || (opcode >= WS_CLOSE && opcode <= WS_PONG);
    if (!known) REFUSE(WS_CLIENT, 1002, 0x80 | opcode, 0x00);
  }
  REFUSE(WS_CLIENT, 1002, 0x81, 0x80, 0, 0, 0, 0);
  REFUSE(WS_SERVER, 1002, 0x81, 0x01, 'a');
  REFUSE(WS_CLIENT, 1002, 0x09, 0x00);
  REFUSE(WS_CLIENT, 1002, 0x89, 0x7e, 0x00, 0x7e);
  REFUSE(WS_CLIENT, 1002, 0x80, 0x00);
  REFUSE(WS_CLIENT, 1002, 0x00, 0x00);
  REFUSE(WS_CLIENT, 1002, 0x01, 0x00, 0x81, 0x00);
  REFUSE(WS_CLIENT, 1002, 0x82, 0x7e, 0x00, 0x7d);
  REFUSE(WS_CLIENT, 1002, 0x82, 0x7f, 0, 0, 0, 0, 0, 0, 0xff, 0xff);
  REFUSE(WS_CLIENT, 1002, 0x82, 0x7f, 0x80, 0, 0, 0, 0, 1, 0, 0);
  REFUSE(WS_CLIENT, 1009, 0x82, 0x7e, 0x03, 0xe9);
  REFUSE(WS_CLIENT, 1009, 0x82, 0x7f, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
}

static void test_fragments_are_limited_together(void **state) {
  (void)state;
  uint8_t data[2 * (4 + 600)] = {0x02, 0x7e, 600 >> 8, 600 & 0xff};
  memcpy(data + 604, (uint8_t[]){0x80, 0x7e, 600 >> 8, 600 & 0xff}, 4);
  refuse(WS_CLIENT, data, sizeof data, 1009);
  struct record got;
  read_pieces(WS_CLIENT, 1200, data, sizeof data, 0, &got);
  assert_int_equal(got.events, 1);
  assert_int_equal(got.last, WS_EVENT_MESSAGE);
  buf_free(&got.bytes);
}

static void text_frame(const char *text, size_t len, bool good) {
  uint8_t frame[2 + 125] = {0x81, (uint8_t)len};
  memcpy(frame + 2, text, len);
  struct record got;
  read_pieces(WS_CLIENT, 1000, frame, 2 + len, 0, &got);
  assert_int_equal(got.last, good ? WS_EVENT_MESSAGE : WS_EVENT_ERROR);
  if (!good) assert_int_equal(got.code, 1007);
  buf_free(&got.bytes);
}

#define GOOD_TEXT(text) text_frame(text, sizeof(text) - 1, true)
#define BAD_TEXT(text) text_frame(text, sizeof(text) - 1, false)

static void test_utf8(void **state) {
  (void)state;
  GOOD_TEXT("\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5");
  GOOD_TEXT("\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
  GOOD_TEXT("plain text that is longer than a word\0with a zero");
  BAD_TEXT("\x80");
  BAD_TEXT("\xc0\x80");
  BAD_TEXT("\xc1\xbf");
  BAD_TEXT("\xe0\x9f\xbf");
  BAD_TEXT("\xed\xa0\x80");
  BAD_TEXT("\xf0\x8f\xbf\xbf");
  BAD_TEXT("\xf4\x90\x80\x80");
  BAD_TEXT("\xf5\x80\x80\x80");
  BAD_TEXT("\xff");
  BAD_TEXT("\xe2\x82");
  BAD_TEXT("\xc3\x28");
  BAD_TEXT("12345678\xf0\x9f\x98");
  BAD_TEXT("1234567\xf0"
           "89");
  REFUSE(WS_CLIENT, 1007, 0x01, 0x01, 0xe2, 0x80, 0x01, 0x82);
  /* Binary is not looked at. */
  EXPECT(WS_CLIENT, WS_BINARY, "\xff\xfe", 0x82, 0x02, 0xff, 0xfe);
}

static void test_close_codes(void **state) {
  (void)state;
  for (unsigned code = 0; code <= 65535; code++) {
    bool good = (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
                (code >= 3000 && code <= 4999);
    uint8_t frame[4] = {0x88, 2, (uint8_t)(code >> 8), (uint8_t)code};
    struct ws ws;
    struct ws_event event;
    ws_init(&ws, WS_CLIENT, 100);
    assert_int_equal(ws_read(&ws, frame, sizeof frame, &event), sizeof frame);
    assert_int_equal(event.kind, good ? WS_EVENT_CLOSE : WS_EVENT_ERROR);
    assert_int_equal(event.close_code, good ? code : 1002);
    ws_free(&ws);
  }
  REFUSE(WS_CLIENT, 1002, 0x88, 0x01, 0x03);
  REFUSE(WS_CLIENT, 1007, 0x88, 0x03, 0x03, 0xe8, 0xff);
  struct record got;
  read_pieces(WS_CLIENT, 100, (const uint8_t *)"\x88\x00", 2, 0, &got);
  assert_int_equal(got.last, WS_EVENT_CLOSE);
  assert_int_equal(got.code, 1005);
  buf_free(&got.bytes);
  read_pieces(WS_CLIENT, 100,
      (const uint8_t *)"\x88\x05\x03\xe9"
                       "bye",
      7, 0, &got);
  assert_int_equal(got.code, 1001);
  assert_memory_equal(got.bytes.data + 8, "bye", 3);
  buf_free(&got.bytes);
}

static void test_write_control(void **state) {
  (void)state;
  static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
  uint8_t out[131];
  assert_int_equal(ws_write_control(out, WS_PONG, "Hello", 5, mask), 11);
  assert_memory_equal(out, "\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
  assert_int_equal(ws_write_control(out, WS_PING, NULL, 0, NULL), 2);
  assert_int_equal(ws_write_close(out, 1000, NULL, NULL), 4);
  assert_memory_equal(out, "\x88\x02\x03\xe8", 4);
  char reason[200];
  memset(reason, 'r', sizeof reason);
  reason[199] = 0;
  assert_int_equal(ws_write_close(out, 1000, reason, mask), 131);
  memcpy(reason + 121, "\xe2\x82\xac", 3);
  assert_int_equal(ws_write_close(out, 1000, reason, NULL), 2 + 2 + 121);
  struct record got;
  read_pieces(WS_CLIENT, 1000, out, 2 + 2 + 121, 0, &got);
  assert_int_equal(got.last, WS_EVENT_CLOSE);
  buf_free(&got.bytes);
}

static void test_mask_in_parts(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 5);
  uint8_t plain[300];
  uint8_t masked[300];
  for (size_t i = 0; i < sizeof plain; i++)
    plain[i] = (uint8_t)rng_next(&rng);
  for (int round = 0; round < 2000; round++) {
    uint64_t random = rng_next(&rng);
    uint8_t key[4];
    memcpy(key, &random, sizeof key);
    size_t len = rng_below(&rng, sizeof plain + 1);
    size_t cut = rng_below(&rng, len + 1);
    memcpy(masked, plain, sizeof plain);
    ws_mask(masked, cut, key, 0);
    ws_mask(masked + cut, len - cut, key, cut);
    for (size_t i = 0; i < len; i++)
      assert_int_equal(masked[i], plain[i] ^ key[i % 4]);
    assert_memory_equal(masked + len, plain + len, sizeof plain - len);
  }
}

/* wslay on the other side of two byte buffers. */
struct oracle {
  wslay_event_context_ptr context;
  const uint8_t *input;
  size_t input_len;
  struct buf output;
  struct record record;
  struct rng *rng;
};

static ssize_t oracle_recv(wslay_event_context_ptr context, uint8_t *out, size_t room, int flags, void *user) {
  (void)flags;
  struct oracle *oracle = user;
  if (!oracle->input_len) {
    wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
    return -1;
  }
  size_t n = room < oracle->input_len ? room : oracle->input_len;
  memcpy(out, oracle->input, n);
  oracle->input += n;
  oracle->input_len -= n;
  return (ssize_t)n;
}

static ssize_t oracle_send(wslay_event_context_ptr context, const uint8_t *data, size_t len, int flags, void *user) {
  (void)context;
  (void)flags;
  struct oracle *oracle = user;
  return buf_append(&oracle->output, data, len) ? (ssize_t)len : -1;
}

static int oracle_mask(wslay_event_context_ptr context, uint8_t *out, size_t len, void *user) {
  (void)context;
  struct oracle *oracle = user;
  for (size_t i = 0; i < len; i++)
    out[i] = (uint8_t)rng_next(oracle->rng);
  return 0;
}

static void oracle_message(
    wslay_event_context_ptr context, const struct wslay_event_on_msg_recv_arg *message, void *user) {
  (void)context;
  struct oracle *oracle = user;
  if (message->opcode != WSLAY_CONNECTION_CLOSE) {
    note(&oracle->record, message->opcode, message->msg, message->msg_length);
    return;
  }
  size_t reason = message->msg_length >= 2 ? 2 : 0;
  note(&oracle->record, WS_CLOSE, message->msg + reason, message->msg_length - reason);
  oracle->record.code = message->status_code ? message->status_code : 1005;
}

static void make_oracle(struct oracle *oracle, enum ws_role role, struct rng *rng) {
  *oracle = (struct oracle){.rng = rng};
  const struct wslay_event_callbacks callbacks = {.recv_callback = oracle_recv,
      .send_callback = oracle_send,
      .genmask_callback = oracle_mask,
      .on_msg_recv_callback = oracle_message};
  int failed = role == WS_CLIENT ? wslay_event_context_client_init(&oracle->context, &callbacks, oracle)
                                 : wslay_event_context_server_init(&oracle->context, &callbacks, oracle);
  assert_int_equal(failed, 0);
}

static void free_oracle(struct oracle *oracle) {
  wslay_event_context_free(oracle->context);
  buf_free(&oracle->output);
  buf_free(&oracle->record.bytes);
}

static size_t random_length(struct rng *rng) {
  static const size_t borders[] = {0, 1, 124, 125, 126, 127, 65535, 65536, 70000};
  if (rng_below(rng, 8) == 0) return borders[rng_below(rng, sizeof borders / sizeof *borders)];
  return rng_below(rng, 300);
}

/* Valid UTF-8 for text, any bytes else. */
static void random_payload(struct rng *rng, struct buf *out, uint8_t opcode, size_t len) {
  static const char *const characters[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf"};
  out->len = 0;
  while (out->len < len) {
    uint8_t byte = (uint8_t)rng_next(rng);
    const char *character = characters[rng_below(rng, 5)];
    size_t size = strlen(character);
    bool fits = opcode == WS_TEXT && out->len + size <= len;
    if (opcode == WS_TEXT && !fits) character = "z", size = 1;
    assert_true(opcode == WS_TEXT ? buf_append(out, character, size) : buf_append(out, &byte, 1));
  }
}

static void write_frame(
    struct buf *out, struct rng *rng, bool masked, uint8_t first_byte, const uint8_t *data, size_t len) {
  uint8_t mask[4];
  uint8_t header[WS_HEADER_MAX];
  for (size_t i = 0; i < sizeof mask; i++)
    mask[i] = (uint8_t)rng_next(rng);
  size_t header_len = ws_write_header(header, 0, len, masked ? mask : NULL);
  header[0] = first_byte;
  assert_true(buf_append(out, header, header_len));
  size_t at = out->len;
  assert_true(buf_append(out, data, len));
  if (masked && len) ws_mask(out->data + at, len, mask, 0);
}

static void write_random_control(struct buf *out, struct rng *rng, bool masked, struct record *want) {
  uint8_t frame[131];
  uint8_t data[125];
  uint8_t mask[4] = {(uint8_t)rng_next(rng), 2, 3, (uint8_t)rng_next(rng)};
  size_t len = rng_below(rng, 126);
  for (size_t i = 0; i < len; i++)
    data[i] = (uint8_t)rng_next(rng);
  uint8_t opcode = rng_below(rng, 2) ? WS_PING : WS_PONG;
  size_t frame_len = ws_write_control(frame, opcode, data, len, masked ? mask : NULL);
  assert_true(buf_append(out, frame, frame_len));
  note(want, opcode, data, len);
}

/* A message in up to five fragments, with control frames between them. */
static void write_random_message(
    struct buf *out, struct buf *payload, struct rng *rng, bool masked, struct record *want) {
  uint8_t opcode = rng_below(rng, 2) ? WS_TEXT : WS_BINARY;
  random_payload(rng, payload, opcode, random_length(rng));
  size_t parts = 1 + rng_below(rng, 2) * rng_below(rng, 5);
  size_t at = 0;
  for (size_t part = 0; part < parts; part++) {
    bool last = part + 1 == parts;
    size_t len = last ? payload->len - at : rng_below(rng, payload->len - at + 1);
    uint8_t first_byte = (uint8_t)((last ? 0x80 : 0) | (part ? WS_CONTINUATION : opcode));
    write_frame(out, rng, masked, first_byte, payload->data + at, len);
    at += len;
    if (!last && rng_below(rng, 2)) write_random_control(out, rng, masked, want);
  }
  note(want, opcode, payload->data, payload->len);
}

static void test_wslay_reads_ours(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 11);
  struct buf payload = {0};
  assert_non_null(buf_reserve(&payload, 1));
  for (int round = 0; round < 300; round++) {
    enum ws_role reader = round % 2 ? WS_CLIENT : WS_SERVER;
    bool masked = reader == WS_SERVER;
    struct oracle oracle;
    struct buf out = {0};
    struct record want = {0};
    make_oracle(&oracle, reader, &rng);
    for (uint64_t i = rng_below(&rng, 20); i > 0; i--)
      write_random_message(&out, &payload, &rng, masked, &want);
    uint8_t frame[131];
    const uint8_t mask[4] = {9, 8, 7, 6};
    size_t len = ws_write_close(frame, 4000, "enough", masked ? mask : NULL);
    assert_true(buf_append(&out, frame, len));
    note(&want, WS_CLOSE, "enough", 6);

    oracle.input = out.data;
    oracle.input_len = out.len;
    assert_int_equal(wslay_event_recv(oracle.context), 0);
    check_same(&oracle.record, &want);
    assert_int_equal(oracle.record.code, 4000);

    /* And ours reads the same, cut anywhere. */
    struct record got;
    read_pieces(reader, MESSAGE_MAX, out.data, out.len, rng_below(&rng, out.len), &got);
    check_same(&got, &want);
    assert_int_equal(got.code, 4000);
    buf_free(&got.bytes);
    buf_free(&out);
    buf_free(&want.bytes);
    free_oracle(&oracle);
  }
  buf_free(&payload);
}

struct fragment_source {
  const struct buf *payload;
  size_t at;
  struct rng *rng;
};

static ssize_t read_fragment(wslay_event_context_ptr context, uint8_t *out, size_t room,
    const union wslay_event_msg_source *source, int *eof, void *user) {
  (void)context;
  (void)user;
  struct fragment_source *from = source->data;
  size_t left = from->payload->len - from->at;
  size_t n = rng_below(from->rng, left + 1);
  if (n > room) n = room;
  if (n == 0 && left) n = 1;
  memcpy(out, from->payload->data + from->at, n);
  from->at += n;
  *eof = from->at == from->payload->len;
  return (ssize_t)n;
}

static void queue_random_message(struct oracle *oracle, struct buf *payload, struct rng *rng, struct record *want) {
  uint8_t opcode = rng_below(rng, 2) ? WS_TEXT : WS_BINARY;
  random_payload(rng, payload, opcode, random_length(rng));
  if (rng_below(rng, 2) && payload->len) {
    struct fragment_source source = {.payload = payload, .rng = rng};
    struct wslay_event_fragmented_msg message = {
        .opcode = opcode, .source.data = &source, .read_callback = read_fragment};
    assert_int_equal(wslay_event_queue_fragmented_msg(oracle->context, &message), 0);
    assert_int_equal(wslay_event_send(oracle->context), 0);
  } else {
    struct wslay_event_msg message = {.opcode = opcode, .msg = payload->data, .msg_length = payload->len};
    assert_int_equal(wslay_event_queue_msg(oracle->context, &message), 0);
    assert_int_equal(wslay_event_send(oracle->context), 0);
  }
  note(want, opcode, payload->data, payload->len);
}

static void test_ours_reads_wslay(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 12);
  struct buf payload = {0};
  assert_non_null(buf_reserve(&payload, 1));
  for (int round = 0; round < 300; round++) {
    enum ws_role writer = round % 2 ? WS_CLIENT : WS_SERVER;
    struct oracle oracle;
    struct record want = {0};
    make_oracle(&oracle, writer, &rng);
    for (uint64_t i = 1 + rng_below(&rng, 20); i > 0; i--)
      queue_random_message(&oracle, &payload, &rng, &want);
    assert_int_equal(wslay_event_queue_close(oracle.context, 1001, (const uint8_t *)"away", 4), 0);
    assert_int_equal(wslay_event_send(oracle.context), 0);
    note(&want, WS_CLOSE, "away", 4);
    struct record got;
    read_pieces(writer == WS_CLIENT ? WS_SERVER : WS_CLIENT, MESSAGE_MAX, oracle.output.data, oracle.output.len,
        rng_below(&rng, oracle.output.len), &got);
    check_same(&got, &want);
    assert_int_equal(got.code, 1001);
    buf_free(&got.bytes);
    buf_free(&want.bytes);
    free_oracle(&oracle);
  }
  buf_free(&payload);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rfc_examples),
      cmocka_unit_test(test_header_examples),
      cmocka_unit_test(test_control_inside_fragments),
      cmocka_unit_test(test_protocol_errors),
      cmocka_unit_test(test_fragments_are_limited_together),
      cmocka_unit_test(test_utf8),
      cmocka_unit_test(test_close_codes),
      cmocka_unit_test(test_write_control),
      cmocka_unit_test(test_mask_in_parts),
      cmocka_unit_test(test_wslay_reads_ours),
      cmocka_unit_test(test_ours_reads_wslay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
