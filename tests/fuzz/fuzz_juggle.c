// room: wire
/* Everything that a peer can send over JuggleIM's protocol: the envelope, each body and topic message that is read in
 * place, and the cold messages under a memory budget. */
#include "base/arena.h"
#include "wire/juggle.h"
#include "wire/pb_arena.h"

#include "juggle.pb-c.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
  if (!condition) abort();
}

static void require_inside(struct view outer, struct view inner) {
  require(inner.len == 0 || (inner.data >= outer.data && inner.data + inner.len <= outer.data + outer.len));
}

/* What was read is written again in canonical form and means the same when it is read once more. */
static void round_trip_request(struct view body) {
  struct juggle_request first, second;
  if (!juggle_read_request(body, &first)) return;
  require_inside(body, first.data);
  size_t size = juggle_request_size(&first);
  uint8_t *bytes = malloc(size + 1);
  require(bytes && juggle_write_request(bytes, &first) == bytes + size);
  require(juggle_read_request(view_of(bytes, size), &second));
  require(first.index == second.index && first.timestamp_ms == second.timestamp_ms);
  require(view_equal(first.topic, second.topic) && view_equal(first.target, second.target));
  require(view_equal(first.data, second.data));
  free(bytes);
}

static void round_trip_publish_ack(struct view body) {
  struct juggle_publish_ack first, second;
  if (!juggle_read_publish_ack(body, &first)) return;
  size_t size = juggle_publish_ack_size(&first);
  uint8_t *bytes = malloc(size + 1);
  require(bytes && juggle_write_publish_ack(bytes, &first) == bytes + size);
  require(juggle_read_publish_ack(view_of(bytes, size), &second));
  require(first.index == second.index && first.code == second.code && first.msg_seq_no == second.msg_seq_no);
  require(view_equal(first.msg_id, second.msg_id) && view_equal(first.client_msg_id, second.client_msg_id));
  free(bytes);
}

static void round_trip_up_msg(struct view data) {
  struct juggle_up_msg first, second;
  if (!juggle_read_up_msg(data, &first)) return;
  require_inside(data, first.content);
  size_t size = juggle_up_msg_size(&first);
  uint8_t *bytes = malloc(size + 1);
  require(bytes && juggle_write_up_msg(bytes, &first) == bytes + size);
  require(juggle_read_up_msg(view_of(bytes, size), &second));
  require(first.flags == second.flags && view_equal(first.content, second.content));
  free(bytes);
}

static void read_small_bodies(struct view body) {
  struct juggle_connect connect;
  struct juggle_connect_ack connect_ack;
  struct juggle_disconnect disconnect;
  struct juggle_query_ack query_ack;
  struct juggle_notify notify;
  struct juggle_sync_request sync;
  if (juggle_read_connect(body, &connect)) require_inside(body, connect.token);
  if (juggle_read_connect_ack(body, &connect_ack)) require_inside(body, connect_ack.user_id);
  if (juggle_read_disconnect(body, &disconnect)) require_inside(body, disconnect.ext);
  if (juggle_read_query_ack(body, &query_ack)) require_inside(body, query_ack.data);
  struct juggle_room_request room;
  struct juggle_room_sync room_sync;
  if (juggle_read_notify(body, &notify)) require_inside(body, notify.room_id);
  if (juggle_read_room_request(body, &room)) require_inside(body, room.name);
  if (juggle_read_room_sync(body, &room_sync)) require_inside(body, room_sync.room_id);
  if (juggle_read_sync_request(body, &sync)) require(juggle_sync_request_size(&sync) <= 24);
}

static void read_set(struct view data) {
  struct juggle_set_reader set = juggle_set_reader_of(data);
  struct view raw;
  struct juggle_down_msg msg;
  while (juggle_set_next(&set, &raw)) {
    require_inside(data, raw);
    if (juggle_read_down_msg(raw, &msg)) require_inside(raw, msg.content);
  }
  require(set.bad || set.at == set.end);
}

static void read_body(struct view body) {
  struct juggle_down_msg msg;
  round_trip_request(body);
  round_trip_publish_ack(body);
  round_trip_up_msg(body);
  read_small_bodies(body);
  read_set(body);
  if (juggle_read_down_msg(body, &msg)) require_inside(body, msg.content);
}

static const ProtobufCMessageDescriptor *const cold[] = {
    &juggle__envelope__descriptor,
    &juggle__down_msg_set__descriptor,
    &juggle__qry_his_msgs_req__descriptor,
    &juggle__qry_his_msg_by_ids_req__descriptor,
    &juggle__qry_first_unread_msg_req__descriptor,
    &juggle__qry_conversations_req__descriptor,
    &juggle__sync_conversations_req__descriptor,
    &juggle__qry_conversations_resp__descriptor,
    &juggle__qry_conver_req__descriptor,
    &juggle__clear_unread_req__descriptor,
    &juggle__qry_total_unread_count_req__descriptor,
    &juggle__mark_read_req__descriptor,
    &juggle__recall_msg_req__descriptor,
    &juggle__user_id_req__descriptor,
    &juggle__user_online_status_req__descriptor,
    &juggle__user_info__descriptor,
};

static void read_cold(struct view data) {
  struct arena arena = {0};
  for (size_t i = 0; i < sizeof cold / sizeof cold[0]; i++) {
    struct pb_arena pb;
    pb_arena_init(&pb, &arena, 256 * 1024);
    ProtobufCMessage *message = protobuf_c_message_unpack(cold[i], &pb.allocator, data.len, data.data);
    if (message) require(protobuf_c_message_get_packed_size(message) <= 16 * data.len + 64);
    arena_reset(&arena);
  }
  arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct view bytes = view_of(data, size);
  struct juggle_envelope envelope;
  struct juggle_request request;
  if (juggle_read_envelope(bytes, &envelope)) {
    struct view body = envelope.payload.len ? envelope.payload : envelope.body;
    struct juggle_key key;
    require_inside(bytes, body);
    juggle_key_learn(envelope.payload, &key);
    read_body(body);
    if (juggle_read_request(body, &request)) read_body(request.data);
  }
  read_body(bytes);
  read_cold(bytes);
  return 0;
}
