#include "server/metrics.h"
#include "server/shootout_room.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One broadcast, immutable but for `pending`: the frames that all recipients share (version 1 and 2 differ in Phoenix
 * only) and the sender's result. Owned by the sender's thread in the end. */
struct shootout_broadcast {
  struct shootout_session *sender;
  struct shootout_loop *home;
  atomic_uint pending; /* threads that have not written it yet */
  uint8_t room;
  const uint8_t *frame[2], *result;
  size_t frame_len[2], result_len, bytes; /* bytes: of all of it */
  struct shootout_note notes[];           /* one for each thread; the sender's own carries the word that it is done */
};

static uint8_t opcode_of(enum shootout_protocol protocol) {
  return protocol == SHOOTOUT_BINARY ? WS_BINARY : WS_TEXT;
}

size_t shootout_frame_size(const struct shootout_text *text) {
  return ws_header_size(text->len, false) + text->len;
}

void shootout_write_frame(uint8_t *out, enum shootout_protocol protocol, const struct shootout_text *text) {
  uint8_t header[WS_HEADER_MAX];
  size_t header_len = ws_write_header(header, opcode_of(protocol), text->len, NULL);
  memcpy(out, header, header_len);
  shootout_put(out + header_len, text);
}

static struct shootout_broadcast *make(
    struct shootout_session *sender, enum shootout_protocol protocol, const struct shootout_message *request) {
  struct shootout_loop *home = sender->loop;
  bool phoenix = sender->room == ROOM_PHOENIX;
  struct shootout_text first, second, result;
  shootout_fan_out(&first, phoenix ? SHOOTOUT_PHOENIX : protocol, request->payload);
  shootout_fan_out(&second, phoenix ? SHOOTOUT_PHOENIX_2 : protocol, request->payload);
  shootout_answer(&result, protocol, SHOOTOUT_RESULT, request);
  size_t notes_size = home->house->count * sizeof(struct shootout_note);
  size_t first_len = shootout_frame_size(&first), result_len = shootout_frame_size(&result);
  size_t second_len = phoenix ? shootout_frame_size(&second) : 0;
  size_t bytes = sizeof(struct shootout_broadcast) + notes_size + first_len + second_len + result_len;
  struct shootout_broadcast *broadcast = malloc(bytes);
  if (!broadcast) return NULL;
  uint8_t *at = (uint8_t *)broadcast->notes + notes_size;
  *broadcast = (struct shootout_broadcast){.sender = sender,
      .home = home,
      .room = sender->room,
      .frame = {at, phoenix ? at + first_len : at},
      .frame_len = {first_len, phoenix ? second_len : first_len},
      .result = at + first_len + second_len,
      .result_len = result_len,
      .bytes = bytes};
  atomic_init(&broadcast->pending, home->house->count);
  shootout_write_frame(at, protocol, &first);
  if (phoenix) shootout_write_frame(at + first_len, protocol, &second);
  shootout_write_frame(at + first_len + second_len, protocol, &result);
  return broadcast;
}

void shootout_wake(struct shootout_loop *loop) {
  uint64_t one = 1;
  /* A full counter is awake enough. */
  if (write(loop->wake.fd, &one, sizeof one) < 0) return;
}

static void post(struct shootout_loop *to, struct shootout_broadcast *broadcast, bool done) {
  struct shootout_note *note = &broadcast->notes[to->number];
  *note = (struct shootout_note){.broadcast = broadcast, .done = done};
  pthread_mutex_lock(&to->lock);
  bool was_empty = to->inbox == NULL;
  *to->inbox_end = note;
  to->inbox_end = &note->next;
  pthread_mutex_unlock(&to->lock);
  if (was_empty) shootout_wake(to);
}

static void complete(struct shootout_broadcast *broadcast) {
  struct shootout *house = broadcast->home->house;
  shootout_result(broadcast->sender, broadcast->bytes, broadcast->result, broadcast->result_len);
  free(broadcast);
  atomic_fetch_sub(&house->in_flight, 1);
}

/* Writes it to this thread's members; the last thread sends word home. That word goes through the inbox even when the
 * last thread is the sender's own, or it would overtake the word of an earlier broadcast. */
static void deliver(struct shootout_loop *loop, struct shootout_broadcast *broadcast) {
  uint64_t copies = 0;
  struct shootout_session *next;
  for (struct shootout_session *member = loop->members[broadcast->room]; member; member = next) {
    next = member->next_member;
    int form = member->protocol == SHOOTOUT_PHOENIX_2;
    copies += shootout_give(member, broadcast->frame[form], broadcast->frame_len[form]);
  }
  stat_add(&loop->stats.copies, copies);
  if (atomic_fetch_sub(&broadcast->pending, 1) != 1) return;
  if (loop->house->count == 1) {
    complete(broadcast);
  } else {
    post(broadcast->home, broadcast, true);
  }
}

bool shootout_broadcast(
    struct shootout_session *sender, enum shootout_protocol protocol, const struct shootout_message *request) {
  struct shootout_loop *home = sender->loop;
  struct shootout *house = home->house;
  struct shootout_broadcast *broadcast = make(sender, protocol, request);
  if (!broadcast) return false;
  sender->awaited++;
  sender->awaited_bytes += broadcast->bytes;
  atomic_fetch_add(&house->in_flight, 1);
  stat_add(&home->stats.broadcasts, 1);
  for (uint32_t i = 0; i < house->count; i++) {
    if (&house->loops[i] != home) post(&house->loops[i], broadcast, false);
  }
  deliver(home, broadcast);
  return true;
}

void shootout_take_notes(struct shootout_loop *loop) {
  pthread_mutex_lock(&loop->lock);
  struct shootout_note *note = loop->inbox;
  loop->inbox = NULL;
  loop->inbox_end = &loop->inbox;
  pthread_mutex_unlock(&loop->lock);
  while (note) {
    struct shootout_note *next = note->next; /* the broadcast may be freed below */
    if (note->done) {
      complete(note->broadcast);
    } else {
      deliver(loop, note->broadcast);
    }
    note = next;
  }
}
