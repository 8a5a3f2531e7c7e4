#include "base/rng.h"
#include "wire/payload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static const size_t minimum[] = {
    [PAYLOAD_TEXT] = PAYLOAD_TEXT_MIN, [PAYLOAD_BINARY] = PAYLOAD_BINARY_MIN, [PAYLOAD_BARE] = PAYLOAD_BARE_MIN};
/* Shorter ones are nobody's. */
static const size_t recognized[] = {[PAYLOAD_TEXT] = 15, [PAYLOAD_BINARY] = 2, [PAYLOAD_BARE] = 3};

static struct payload sample(struct rng *rng, size_t size) {
  return (struct payload){.run_id = rng_next(rng),
      .scheduled_ns = rng_next(rng),
      .written_ns = rng_next(rng),
      .sender = (uint32_t)rng_next(rng),
      .sequence = (uint32_t)rng_next(rng),
      .size = (uint32_t)size,
      .phase = rng_below(rng, 2) ? PAYLOAD_WARM_UP : PAYLOAD_MEASURE};
}

static uint8_t *written(enum payload_form form, const struct payload *payload) {
  uint8_t *bytes = malloc(payload->size);
  assert_non_null(bytes);
  payload_write(form, bytes, payload);
  return bytes;
}

static void assert_equal(const struct payload *a, const struct payload *b) {
  assert_true(a->run_id == b->run_id && a->scheduled_ns == b->scheduled_ns && a->written_ns == b->written_ns);
  assert_true(a->sender == b->sender && a->sequence == b->sequence && a->size == b->size && a->phase == b->phase);
}

static void test_round_trip_at_many_sizes(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 2);
  for (int form = PAYLOAD_TEXT; form <= PAYLOAD_BARE; form++) {
    for (size_t extra = 0; extra < 3000; extra = extra < 300 ? extra + 1 : extra * 2) {
      struct payload in = sample(&rng, minimum[form] + extra), out;
      uint8_t *bytes = written((enum payload_form)form, &in);
      assert_int_equal(payload_read((enum payload_form)form, bytes, in.size, &out), PAYLOAD_OK);
      assert_equal(&in, &out);
      free(bytes);
    }
  }
}

/* The layout is a promise to everybody who reads such messages: it must not drift. */
static void test_layout(void **state) {
  (void)state;
  struct payload in = {.run_id = UINT64_C(0x1122334455667788),
      .scheduled_ns = 3,
      .written_ns = 4,
      .sender = 0x01020304,
      .sequence = 5,
      .size = 50,
      .phase = PAYLOAD_MEASURE};
  static const uint8_t want[40] = {'M', 'S', 1, 2, 4, 3, 2, 1, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 5, 0, 0,
      0, 50, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4};
  uint8_t *bytes = written(PAYLOAD_BINARY, &in);
  assert_memory_equal(bytes, want, sizeof want);
  assert_memory_equal(bytes + 48, "..", 2);
  free(bytes);
  in.size = PAYLOAD_TEXT_MIN + 3;
  bytes = written(PAYLOAD_TEXT, &in);
  assert_memory_equal(bytes, "{\"content\":\"TVMBAgQDAgGId2ZVRDMiEQUAAABRAAAA", 44);
  assert_memory_equal(bytes + 76, "...\"}", 5);
  free(bytes);
  in.size = PAYLOAD_BARE_MIN + 3;
  bytes = written(PAYLOAD_BARE, &in);
  assert_memory_equal(bytes, "TVMBAgQDAgGId2ZVRDMiEQUAAABDAAAA", 32);
  assert_memory_equal(bytes + 64, "...", 3);
  free(bytes);
}

static void test_text_form_is_json(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 3);
  for (size_t extra = 0; extra < 200; extra++) {
    struct payload in = sample(&rng, PAYLOAD_TEXT_MIN + extra);
    uint8_t *bytes = written(PAYLOAD_TEXT, &in);
    json_t *root = json_loadb((const char *)bytes, in.size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_int_equal(json_object_size(root), 1);
    assert_int_equal(json_string_length(json_object_get(root, "content")), 64 + extra);
    json_decref(root);
    free(bytes);
  }
}

static void assert_every_change_is_noticed(enum payload_form form, size_t size) {
  struct rng rng;
  rng_seed(&rng, size);
  struct payload in = sample(&rng, size), out;
  uint8_t *bytes = written(form, &in);
  for (size_t i = 0; i < size; i++) {
    for (unsigned change = 1; change < 256; change++) {
      bytes[i] ^= (uint8_t)change;
      enum payload_result result = payload_read(form, bytes, size, &out);
      bytes[i] ^= (uint8_t)change;
      if (result == PAYLOAD_OK) fail_msg("form %d: a change of %#x at byte %zu went unnoticed", form, change, i);
    }
  }
  assert_int_equal(payload_read(form, bytes, size, &out), PAYLOAD_OK);
  free(bytes);
}

static void test_every_change_of_a_byte_is_noticed(void **state) {
  (void)state;
  for (int form = PAYLOAD_TEXT; form <= PAYLOAD_BARE; form++) {
    assert_every_change_is_noticed((enum payload_form)form, minimum[form]);
    assert_every_change_is_noticed((enum payload_form)form, minimum[form] + 17);
    assert_every_change_is_noticed((enum payload_form)form, 400);
  }
}

static void test_cut_and_grown_payloads(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 4);
  for (int form = PAYLOAD_TEXT; form <= PAYLOAD_BARE; form++) {
    struct payload in = sample(&rng, 200), out;
    uint8_t *bytes = written((enum payload_form)form, &in);
    for (size_t len = 0; len < 200; len++) {
      uint8_t *cut = malloc(len ? len : 1);
      assert_non_null(cut);
      memcpy(cut, bytes, len);
      enum payload_result want = len < recognized[form] ? PAYLOAD_FOREIGN : PAYLOAD_CORRUPT;
      assert_int_equal(payload_read((enum payload_form)form, cut, len, &out), want);
      free(cut);
    }
    uint8_t grown[201] = {0};
    memcpy(grown, bytes, 200);
    assert_int_equal(payload_read((enum payload_form)form, grown, 201, &out), PAYLOAD_CORRUPT);
    free(bytes);
  }
}

static void test_foreign_messages(void **state) {
  (void)state;
  static const char *const foreign[] = {"", "{", "{\"content\":\"hello\"}", "{\"content\":\"TVN\"}",
      "{\"text\":\"TVMB\"}",
      "{\"content\":\"a text of a real person that is longer than a header of muster, which has 64 characters\"}"};
  struct payload out;
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
    const uint8_t *bytes = (const uint8_t *)foreign[i];
    assert_int_equal(payload_read(PAYLOAD_TEXT, bytes, strlen(foreign[i]), &out), PAYLOAD_FOREIGN);
    assert_int_equal(payload_read(PAYLOAD_BINARY, bytes, strlen(foreign[i]), &out), PAYLOAD_FOREIGN);
    assert_int_equal(payload_read(PAYLOAD_BARE, bytes, strlen(foreign[i]), &out), PAYLOAD_FOREIGN);
  }
  assert_int_equal(payload_read(PAYLOAD_TEXT, NULL, 0, &out), PAYLOAD_FOREIGN);
  assert_int_equal(payload_read(PAYLOAD_BINARY, NULL, 0, &out), PAYLOAD_FOREIGN);
  assert_int_equal(payload_read(PAYLOAD_BARE, NULL, 0, &out), PAYLOAD_FOREIGN);
}

static void test_other_version_and_phase_are_corrupt(void **state) {
  (void)state;
  struct rng rng;
  rng_seed(&rng, 5);
  struct payload in = sample(&rng, 64), out;
  in.phase = 3;
  uint8_t *bytes = written(PAYLOAD_BINARY, &in);
  assert_int_equal(payload_read(PAYLOAD_BINARY, bytes, in.size, &out), PAYLOAD_CORRUPT);
  bytes[3] = PAYLOAD_MEASURE;
  bytes[2] = 2;
  assert_int_equal(payload_read(PAYLOAD_BINARY, bytes, in.size, &out), PAYLOAD_CORRUPT);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip_at_many_sizes),
      cmocka_unit_test(test_layout),
      cmocka_unit_test(test_text_form_is_json),
      cmocka_unit_test(test_every_change_of_a_byte_is_noticed),
      cmocka_unit_test(test_cut_and_grown_payloads),
      cmocka_unit_test(test_foreign_messages),
      cmocka_unit_test(test_other_version_and_phase_are_corrupt),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
