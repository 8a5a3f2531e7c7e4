// room: wire
/* What a Ricochet server answers: frames one after the other, each read as every kind of response. */
#include "wire/ricochet.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(struct view whole, struct view part) {
  if (part.len > 0 && (part.data < whole.data || part.data + part.len > whole.data + whole.len)) abort();
}

static void read_all(struct view body) {
  struct ricochet_ack ack;
  struct ricochet_batch_ack acks;
  struct ricochet_answer answer;
  struct ricochet_response response;
  struct ricochet_page page;
  struct view part;
  if (ricochet_read_ack(body, &ack)) check_inside(body, ack.message_id);
  if (ricochet_read_batch_ack(body, &acks) && acks.acks == 0) abort();
  if (ricochet_read_admin(body, &answer)) check_inside(body, answer.error);
  if (ricochet_read_response(body, &response)) {
    if (response.answer.status == 0) abort();
    check_inside(body, response.body);
    check_inside(body, response.data);
    check_inside(body, ricochet_header(response.headers, "ETag"));
  }
  if (!ricochet_read_page(body, &page)) return;
  uint32_t count = 0;
  while (ricochet_next_part(&page.messages, &part)) {
    check_inside(body, part);
    check_inside(part, ricochet_member(part, "payload"));
    count++;
  }
  if (page.answer.success && count != page.count) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  if (size) memcpy(copy, data, size);
  struct view rest = view_of(copy, size), body;
  size_t used;
  while (ricochet_read_frame(rest, &body, &used) == RICOCHET_FRAME_OK) {
    if (used > rest.len) abort();
    read_all(body);
    rest = view_of(rest.data + used, rest.len - used);
  }
  free(copy);
  return 0;
}
