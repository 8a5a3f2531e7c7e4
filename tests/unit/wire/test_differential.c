/* The hand-written codec against protobuf-c: what one writes the other reads as the same, and bytes that protobuf-c
 * refuses in the fields that we read, we refuse as well. */
#include "base/arena.h"
#include "base/rng.h"
#include "unit/wire/codecs.h"
#include "unit/wire/vectors.h"
#include "wire/pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROUNDS = 300, MUTATIONS = 3000, MAX_DEPTH = 3 };

static uint8_t *exact_copy(struct view bytes) {
  uint8_t *copy = malloc(bytes.len ? bytes.len : 1);
  assert_non_null(copy);
  if (bytes.len) memcpy(copy, bytes.data, bytes.len);
  return copy;
}

static int64_t random_int(struct rng *rng) {
  int64_t value = (int64_t)(rng_next(rng) >> rng_below(rng, 64));
  return rng_below(rng, 4) ? value : -value;
}

static char *random_text(struct rng *rng, struct arena *arena) {
  size_t len = rng_below(rng, 10) ? rng_below(rng, 30) : rng_below(rng, 400);
  char *text = arena_alloc(arena, len + 1);
  assert_non_null(text);
  for (size_t i = 0; i < len; i++) {
    text[i] = (char)(1 + rng_below(rng, 255));
  }
  return text;
}

/* ---- Random messages of protobuf-c ---- */

static ProtobufCMessage *random_message(
    struct rng *rng, struct arena *arena, const ProtobufCMessageDescriptor *type, int depth);

static void fill_value(
    struct rng *rng, struct arena *arena, const ProtobufCFieldDescriptor *field, void *member, int depth) {
  switch (field->type) {
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_ENUM:
    *(int32_t *)member = (int32_t)random_int(rng);
    return;
  case PROTOBUF_C_TYPE_INT64:
    *(int64_t *)member = random_int(rng);
    return;
  case PROTOBUF_C_TYPE_BOOL:
    *(protobuf_c_boolean *)member = (protobuf_c_boolean)rng_below(rng, 2);
    return;
  case PROTOBUF_C_TYPE_STRING:
    *(char **)member = random_text(rng, arena);
    return;
  case PROTOBUF_C_TYPE_BYTES: {
    ProtobufCBinaryData *bytes = member;
    bytes->data = (uint8_t *)random_text(rng, arena);
    bytes->len = strlen((char *)bytes->data);
    return;
  }
  case PROTOBUF_C_TYPE_MESSAGE:
    *(ProtobufCMessage **)member = random_message(rng, arena, field->descriptor, depth + 1);
    return;
  default:
    fail_msg("juggle.proto has a field of a type that this test does not know: %s", field->name);
  }
}

static size_t size_of_value(ProtobufCType type) {
  if (type == PROTOBUF_C_TYPE_STRING || type == PROTOBUF_C_TYPE_MESSAGE) return sizeof(void *);
  if (type == PROTOBUF_C_TYPE_INT64) return sizeof(int64_t);
  return type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData) : sizeof(int32_t);
}

static void fill_field(
    struct rng *rng, struct arena *arena, const ProtobufCFieldDescriptor *field, ProtobufCMessage *message, int depth) {
  uint8_t *member = (uint8_t *)message + field->offset;
  if (rng_below(rng, 3) == 0 || (field->type == PROTOBUF_C_TYPE_MESSAGE && depth == MAX_DEPTH)) return;
  if (field->label != PROTOBUF_C_LABEL_REPEATED) {
    fill_value(rng, arena, field, member, depth);
    return;
  }
  size_t count = rng_below(rng, 4), value_size = size_of_value(field->type);
  uint8_t *values = arena_alloc(arena, count * value_size + 1);
  assert_non_null(values);
  for (size_t i = 0; i < count; i++) {
    fill_value(rng, arena, field, values + i * value_size, depth);
  }
  *(size_t *)((uint8_t *)message + field->quantifier_offset) = count;
  *(void **)member = values;
}

static ProtobufCMessage *random_message(
    struct rng *rng, struct arena *arena, const ProtobufCMessageDescriptor *type, int depth) {
  ProtobufCMessage *message = arena_alloc(arena, type->sizeof_message);
  assert_non_null(message);
  type->message_init(message);
  for (unsigned i = 0; i < type->n_fields; i++) {
    fill_field(rng, arena, &type->fields[i], message, depth);
  }
  return message;
}

static struct view packed(struct arena *arena, const ProtobufCMessage *message) {
  size_t len = protobuf_c_message_get_packed_size(message);
  uint8_t *bytes = arena_alloc(arena, len + 1);
  assert_non_null(bytes);
  assert_int_equal(protobuf_c_message_pack(message, bytes), len);
  return view_of(bytes, len);
}

/* ---- Comparison of one of our structs with protobuf-c's ---- */

static const ProtobufCFieldDescriptor *oracle_field(const struct codec *codec, const struct member *member) {
  const ProtobufCFieldDescriptor *field =
      protobuf_c_message_descriptor_get_field_by_name(codec->oracle, member->oracle_name);
  assert_non_null(field);
  return field;
}

static struct view oracle_view(struct arena *arena, const ProtobufCFieldDescriptor *field, const void *member) {
  if (field->type == PROTOBUF_C_TYPE_STRING) return view_str(*(char *const *)member);
  if (field->type == PROTOBUF_C_TYPE_BYTES) {
    const ProtobufCBinaryData *bytes = member;
    return view_of(bytes->data, bytes->len);
  }
  const ProtobufCMessage *message = *(ProtobufCMessage *const *)member;
  return message ? packed(arena, message) : (struct view){0};
}

static bool same_member(struct arena *arena, const struct member *member, const ProtobufCFieldDescriptor *field,
    const void *ours, const void *oracle) {
  switch (member->kind) {
  case MEMBER_INT32:
    return *(const int32_t *)ours == *(const int32_t *)oracle;
  case MEMBER_INT64:
    return *(const int64_t *)ours == *(const int64_t *)oracle;
  case MEMBER_BOOL:
    return *(const bool *)ours == (*(const protobuf_c_boolean *)oracle != 0);
  default:
    return view_equal(*(const struct view *)ours, oracle_view(arena, field, oracle));
  }
}

static void assert_same(
    struct arena *arena, const struct codec *codec, const void *ours, const ProtobufCMessage *oracle) {
  for (const struct member *member = codec->members; member->oracle_name; member++) {
    const ProtobufCFieldDescriptor *field = oracle_field(codec, member);
    const uint8_t *our_member = (const uint8_t *)ours + member->offset;
    if (!same_member(arena, member, field, our_member, (const uint8_t *)oracle + field->offset)) {
      fail_msg("%s.%s differs", codec->oracle->name, member->oracle_name);
    }
  }
}

/* ---- Ours to protobuf-c ---- */

static void fill_ours(struct rng *rng, struct arena *arena, const struct codec *codec, uint8_t *out) {
  for (const struct member *member = codec->members; member->oracle_name; member++) {
    const ProtobufCFieldDescriptor *field = oracle_field(codec, member);
    uint8_t *at = out + member->offset;
    if (rng_below(rng, 3) == 0) continue;
    if (member->kind == MEMBER_INT32) *(int32_t *)at = (int32_t)random_int(rng);
    if (member->kind == MEMBER_INT64) *(int64_t *)at = random_int(rng);
    if (member->kind == MEMBER_BOOL) *(bool *)at = rng_below(rng, 2) == 1;
    if (member->kind != MEMBER_VIEW) continue;
    *(struct view *)at = field->type == PROTOBUF_C_TYPE_MESSAGE
                             ? packed(arena, random_message(rng, arena, field->descriptor, 1))
                             : view_str(random_text(rng, arena));
  }
}

static void test_protobuf_c_reads_what_we_write(void **state) {
  (void)state;
  struct rng rng;
  struct arena arena = {0};
  rng_seed(&rng, 7);
  for (int round = 0; round < ROUNDS * CODECS; round++) {
    const struct codec *codec = &codecs[round % CODECS];
    if (!codec->write) continue;
    _Alignas(16) uint8_t ours[MAX_STRUCT] = {0};
    fill_ours(&rng, &arena, codec, ours);
    size_t len = codec->size(ours);
    uint8_t *bytes = malloc(len ? len : 1);
    assert_non_null(bytes);
    assert_ptr_equal(codec->write(bytes, ours), bytes + len);
    ProtobufCMessage *oracle = protobuf_c_message_unpack(codec->oracle, NULL, len, bytes);
    assert_non_null(oracle);
    assert_same(&arena, codec, ours, oracle);
    assert_true(view_equal(packed(&arena, oracle), view_of(bytes, len)));
    protobuf_c_message_free_unpacked(oracle, NULL);
    free(bytes);
    arena_reset(&arena);
  }
  arena_free(&arena);
}

/* ---- protobuf-c to ours ---- */

static void test_we_read_what_protobuf_c_writes(void **state) {
  (void)state;
  struct rng rng;
  struct arena arena = {0};
  rng_seed(&rng, 8);
  for (int round = 0; round < ROUNDS * CODECS; round++) {
    const struct codec *codec = &codecs[round % CODECS];
    if (!codec->read) continue;
    ProtobufCMessage *oracle = random_message(&rng, &arena, codec->oracle, 0);
    struct view bytes = packed(&arena, oracle);
    uint8_t *copy = exact_copy(bytes);
    _Alignas(16) uint8_t ours[MAX_STRUCT];
    assert_true(codec->read(view_of(copy, bytes.len), ours));
    assert_same(&arena, codec, ours, oracle);
    free(copy);
    arena_reset(&arena);
  }
  arena_free(&arena);
}

static void test_recipients_of_an_up_msg(void **state) {
  (void)state;
  Juggle__UpMsg msg = JUGGLE__UP_MSG__INIT;
  char *users[] = {(char *)"bob", (char *)"carol"};
  msg.to_user_ids = users;
  msg.n_to_user_ids = 2;
  struct arena arena = {0};
  struct view bytes = packed(&arena, &msg.base);
  struct juggle_up_msg read;
  assert_true(juggle_read_up_msg(bytes, &read));
  assert_true(view_equal(read.to_user_ids, bytes));
  struct pb_reader reader = pb_reader_of(read.to_user_ids);
  struct pb_field field;
  for (size_t i = 0; pb_next(&reader, &field); i++) {
    assert_int_equal(field.number, 8);
    assert_true(view_is(field.bytes, users[i]));
  }
  assert_true(juggle_up_msg_size(&read) == 0);
  arena_free(&arena);
}

/* ---- Envelopes ---- */

static void test_envelopes(void **state) {
  (void)state;
  static const enum codec_id body_codecs[] = {CODEC_CONNECT, CODEC_CONNECT_ACK, CODEC_DISCONNECT, CODEC_PUBLISH,
      CODEC_PUBLISH_ACK, CODEC_QUERY, CODEC_QUERY_ACK};
  struct rng rng;
  struct arena arena = {0};
  rng_seed(&rng, 9);
  for (int round = 0; round < 7 * ROUNDS; round++) {
    int32_t cmd = round % 7, qos = (int32_t)rng_below(&rng, 2);
    bool obfuscated = rng_below(&rng, 2) == 1;
    struct view body = packed(&arena, random_message(&rng, &arena, codecs[body_codecs[cmd]].oracle, 0));
    size_t head = juggle_envelope_head_size(cmd, qos, body.len, obfuscated);
    uint8_t *frame = malloc(head + body.len);
    assert_non_null(frame);
    assert_ptr_equal(juggle_write_envelope_head(frame, cmd, qos, body.len, obfuscated), frame + head);
    memcpy(frame + head, body.data, body.len);
    Juggle__Envelope *oracle = juggle__envelope__unpack(NULL, head + body.len, frame);
    assert_non_null(oracle);
    assert_int_equal(oracle->version, 1);
    assert_int_equal(oracle->cmd, cmd);
    assert_int_equal(oracle->qos, qos);
    assert_int_equal(oracle->body_case, obfuscated ? 0 : 11 + cmd);
    assert_true(view_equal(packed(&arena, &oracle->base), view_of(frame, head + body.len)));
    struct juggle_envelope ours;
    assert_true(juggle_read_envelope(view_of(frame, head + body.len), &ours));
    assert_true(view_equal(obfuscated ? ours.payload : ours.body, body));
    assert_int_equal(ours.body_field, oracle->body_case);
    juggle__envelope__free_unpacked(oracle, NULL);
    free(frame);
    arena_reset(&arena);
  }
  arena_free(&arena);
}

/* ---- Hostile bytes ---- */

/* A plain reading of protobuf's grammar, on purpose written differently from src/wire/pb.c: bytes of a varint. */
static size_t naive_varint(const uint8_t *at, size_t left, size_t most, uint64_t *value) {
  *value = 0;
  for (size_t i = 0; i < left && i < most; i++) {
    if (i < 9) *value += (uint64_t)(at[i] % 128) << 7 * i;
    if (at[i] < 128) return i + 1;
  }
  return 0;
}

static bool is_read(const struct codec *codec, uint64_t number) {
  for (const struct member *member = codec->members; member->oracle_name; member++) {
    const ProtobufCFieldDescriptor *field = oracle_field(codec, member);
    if (field->id == number) return field->type != PROTOBUF_C_TYPE_MESSAGE;
  }
  return false;
}

static size_t naive_value(const uint8_t *at, size_t left, uint64_t type) {
  uint64_t value;
  if (type == 0) return naive_varint(at, left, 10, &value);
  if (type == 1) return left >= 8 ? 8 : 0;
  if (type == 5) return left >= 4 ? 4 : 0;
  if (type != 2) return 0;
  size_t head = naive_varint(at, left, 5, &value);
  return head && value <= left - head ? head + (size_t)value : 0;
}

/* Copies the fields that we read and drops the rest; false when the grammar is broken. */
static bool keep_what_we_read(const struct codec *codec, struct view bytes, uint8_t *out, size_t *out_len) {
  size_t at = 0;
  *out_len = 0;
  while (at < bytes.len) {
    uint64_t key;
    size_t head = naive_varint(bytes.data + at, bytes.len - at, 5, &key);
    size_t value = head ? naive_value(bytes.data + at + head, bytes.len - at - head, key % 8) : 0;
    if (!value) return false;
    if (is_read(codec, key / 8)) {
      memcpy(out + *out_len, bytes.data + at, head + value);
      *out_len += head + value;
    }
    at += head + value;
  }
  return true;
}

static bool oracle_accepts(const struct codec *codec, struct view bytes) {
  uint8_t *kept = malloc(bytes.len + 1);
  size_t len;
  assert_non_null(kept);
  bool accepts = keep_what_we_read(codec, bytes, kept, &len);
  if (accepts) {
    ProtobufCMessage *message = protobuf_c_message_unpack(codec->oracle, NULL, len, kept);
    accepts = message != NULL;
    protobuf_c_message_free_unpacked(message, NULL);
  }
  free(kept);
  return accepts;
}

static struct view mutate(struct rng *rng, struct arena *arena, struct view bytes) {
  size_t room = bytes.len + 16, len = bytes.len;
  uint8_t *out = arena_alloc(arena, room);
  assert_non_null(out);
  if (len) memcpy(out, bytes.data, len);
  for (uint64_t edits = 1 + rng_below(rng, 4); edits > 0; edits--) {
    uint64_t kind = rng_below(rng, 5);
    if (kind == 0) len = rng_below(rng, len + 1);
    if (kind == 1 && len < room) out[len++] = (uint8_t)rng_next(rng);
    if (kind == 2 && len) out[rng_below(rng, len)] = (uint8_t)rng_next(rng);
    if (kind == 3 && len) out[rng_below(rng, len)] ^= (uint8_t)(1U << rng_below(rng, 8));
    if (kind == 4 && len) out[rng_below(rng, len)] |= 0x80;
  }
  return view_of(out, len);
}

static void test_we_refuse_what_protobuf_c_refuses(void **state) {
  (void)state;
  struct rng rng;
  struct arena arena = {0};
  unsigned accepted = 0, refused = 0;
  rng_seed(&rng, 10);
  for (int round = 0; round < MUTATIONS * CODECS; round++) {
    const struct codec *codec = &codecs[round % CODECS];
    if (!codec->read) continue;
    struct view bytes = packed(&arena, random_message(&rng, &arena, codec->oracle, MAX_DEPTH - 1));
    bytes = mutate(&rng, &arena, bytes);
    uint8_t *copy = exact_copy(bytes);
    _Alignas(16) uint8_t ours[MAX_STRUCT];
    bool we_accept = codec->read(view_of(copy, bytes.len), ours);
    if (we_accept && !oracle_accepts(codec, bytes)) fail_msg("%s: round %d", codec->oracle->name, round);
    accepted += we_accept;
    refused += !we_accept;
    free(copy);
    arena_reset(&arena);
  }
  assert_true(accepted > MUTATIONS && refused > MUTATIONS);
  arena_free(&arena);
}

static void test_random_bytes_as_everything(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 11);
  for (int round = 0; round < 20000; round++) {
    size_t len = rng_below(&rng, 40);
    uint8_t *bytes = malloc(len ? len : 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++) {
      bytes[i] = (uint8_t)(rng_next(&rng) >> rng_below(&rng, 8));
    }
    _Alignas(16) uint8_t ours[MAX_STRUCT];
    const struct codec *codec = &codecs[round % CODECS];
    if (codec->read && codec->read(view_of(bytes, len), ours)) {
      assert_true(oracle_accepts(codec, view_of(bytes, len)));
    }
    struct juggle_envelope envelope;
    if (juggle_read_envelope(view_of(bytes, len), &envelope)) assert_true(envelope.body.len <= len);
    struct juggle_set_reader set = juggle_set_reader_of(view_of(bytes, len));
    struct view raw;
    while (juggle_set_next(&set, &raw)) {
      assert_true(raw.data >= bytes && raw.data + raw.len <= bytes + len);
    }
    free(bytes);
  }
}

static void test_sets_against_protobuf_c(void **state) {
  (void)state;
  struct rng rng;
  struct arena arena = {0};
  rng_seed(&rng, 12);
  for (int round = 0; round < ROUNDS; round++) {
    Juggle__DownMsgSet *set =
        (Juggle__DownMsgSet *)random_message(&rng, &arena, &juggle__down_msg_set__descriptor, MAX_DEPTH - 2);
    struct view bytes = packed(&arena, &set->base), raw;
    uint8_t *copy = exact_copy(bytes);
    struct juggle_set_reader reader = juggle_set_reader_of(view_of(copy, bytes.len));
    size_t count = 0;
    while (juggle_set_next(&reader, &raw)) {
      struct juggle_down_msg ours;
      assert_true(count < set->n_msgs);
      assert_true(juggle_read_down_msg(raw, &ours));
      assert_same(&arena, &codecs[CODEC_DOWN_MSG], &ours, &set->msgs[count++]->base);
    }
    assert_int_equal(count, set->n_msgs);
    assert_false(reader.bad);
    assert_int_equal(reader.is_finished, set->is_finished != 0);
    free(copy);
    arena_reset(&arena);
  }
  arena_free(&arena);
}

static void test_xor_at_every_length(void **state) {
  (void)state;
  struct rng rng;
  struct juggle_key key;
  rng_seed(&rng, 13);
  for (size_t len = 0; len < 100; len++) {
    uint64_t random = rng_next(&rng);
    memcpy(key.byte, &random, sizeof key.byte);
    uint8_t *bytes = calloc(1, len ? len : 1);
    assert_non_null(bytes);
    juggle_xor(bytes, len, &key);
    for (size_t i = 0; i < len; i++) {
      assert_int_equal(bytes[i], key.byte[i % 8]);
    }
    juggle_xor(bytes, len, &key);
    for (size_t i = 0; i < len; i++) {
      assert_int_equal(bytes[i], 0);
    }
    free(bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_protobuf_c_reads_what_we_write),
      cmocka_unit_test(test_we_read_what_protobuf_c_writes),
      cmocka_unit_test(test_recipients_of_an_up_msg),
      cmocka_unit_test(test_envelopes),
      cmocka_unit_test(test_we_refuse_what_protobuf_c_refuses),
      cmocka_unit_test(test_random_bytes_as_everything),
      cmocka_unit_test(test_sets_against_protobuf_c),
      cmocka_unit_test(test_xor_at_every_length),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
