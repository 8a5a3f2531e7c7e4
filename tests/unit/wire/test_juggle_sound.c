/* What clients publish and the server passes on as it is: only what every recipient can decode. */
#include "wire/juggle.h"
#include "wire/pb.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool sound(struct juggle_up_msg msg) {
  return juggle_up_msg_is_sound(&msg);
}

static void texts_are_utf8(void **state) {
  (void)state;
  struct view good = view_str("gr\xc3\xbc\xc3\x9f dich"), bad = view_str("\xff");
  assert_true(sound((struct juggle_up_msg){0}));
  assert_true(sound((struct juggle_up_msg){good, bad, good, .search_text = good, .sub_channel = good}));
  assert_false(sound((struct juggle_up_msg){.msg_type = bad}));
  assert_false(sound((struct juggle_up_msg){.client_uid = bad}));
  assert_false(sound((struct juggle_up_msg){.search_text = bad}));
  assert_false(sound((struct juggle_up_msg){.sub_channel = bad}));
}

static void nested_messages_are_some(void **state) {
  (void)state;
  struct view no_message = view_str("\xff\xff\xff"), unknown = view_str("\xfa\x01\x01\xff"); /* field 31: one byte */
  assert_false(sound((struct juggle_up_msg){.push_data = no_message}));
  assert_false(sound((struct juggle_up_msg){.mention_info = no_message}));
  assert_false(sound((struct juggle_up_msg){.refer_msg = no_message}));
  assert_false(sound((struct juggle_up_msg){.merged_msgs = no_message}));
  assert_true(sound((struct juggle_up_msg){.push_data = unknown, .mention_info = unknown}));
  struct view title = view_str("\x0a\x02hi"), title_bad = view_str("\x0a\x02h\xff"),
              title_number = view_str("\x08\x01");
  assert_true(sound((struct juggle_up_msg){.push_data = title}));
  assert_false(sound((struct juggle_up_msg){.push_data = title_bad}));
  assert_false(sound((struct juggle_up_msg){.push_data = title_number}));
  /* MentionInfo.target_users.user_id */
  assert_true(sound((struct juggle_up_msg){.mention_info = view_str("\x08\x02\x12\x03\x0a\x01u")}));
  assert_false(sound((struct juggle_up_msg){.mention_info = view_str("\x08\x02\x12\x03\x0a\x01\xff")}));
}

/* quotes times a quoted message in a quoted message, around text as its type. */
static struct view quote(uint8_t *room, size_t size, int quotes, const char *text) {
  uint8_t *at = room + size - strlen(text) - 2;
  pb_write_bytes_field(at, 3, view_str(text));
  for (int i = 1; i < quotes; i++) {
    size_t len = (size_t)(room + size - at);
    at -= pb_bytes_head_size(16, len);
    pb_write_bytes_head(at, 16, len);
  }
  return view_of(at, (size_t)(room + size - at));
}

static void quoted_messages_are_followed(void **state) {
  (void)state;
  uint8_t room[4096];
  assert_true(sound((struct juggle_up_msg){.refer_msg = quote(room, sizeof room, 1, "jg:text")}));
  assert_true(sound((struct juggle_up_msg){.refer_msg = quote(room, sizeof room, 10, "jg:text")}));
  assert_false(sound((struct juggle_up_msg){.refer_msg = quote(room, sizeof room, 10, "\xff")}));
  assert_false(sound((struct juggle_up_msg){.refer_msg = quote(room, sizeof room, 1000, "jg:text")}));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(texts_are_utf8),
      cmocka_unit_test(nested_messages_are_some),
      cmocka_unit_test(quoted_messages_are_followed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
