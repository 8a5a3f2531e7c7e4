/* The fact sheet's byte vectors: each is written byte for byte and read back, plain and obfuscated. */
#include "unit/wire/codecs.h"
#include "unit/wire/vectors.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define T_MS INT64_C(1700000000456)
#define PUSH_MS INT64_C(1700000000460)
#define CONNECT_MS INT64_C(1700000000123)

static const struct juggle_key key = {{1, 2, 3, 4, 5, 6, 7, 8}};
static const char token[] = "CghiZW5jaGFwcBoQxUUTN0KvwqD692ba434Daw==";
static const char alice_bob_id[] = "nm39uyvuaacfmugx";
static const char group_id[] = "nm39uyvuaaeldxlw";

static struct view encode(enum codec_id id, const void *in) {
  size_t size = codecs[id].size(in);
  uint8_t *bytes = malloc(size ? size : 1);
  assert_non_null(bytes);
  assert_ptr_equal(codecs[id].write(bytes, in), bytes + size);
  return view_of(bytes, size);
}

static void release(struct view bytes) {
  free((void *)bytes.data);
}

static void assert_view(struct view got, const char *want) {
  if (!view_is(got, want)) fail_msg("got '%.*s', want '%s'", (int)got.len, (const char *)got.data, want);
}

static void assert_bytes(struct view got, struct view want) {
  assert_int_equal(got.len, want.len);
  if (want.len) assert_memory_equal(got.data, want.data, want.len);
}

static struct view frame_of(int32_t cmd, int32_t qos, struct view body, const struct juggle_key *xor_key) {
  size_t head = juggle_envelope_head_size(cmd, qos, body.len, xor_key != NULL);
  uint8_t *bytes = malloc(head + body.len);
  assert_non_null(bytes);
  uint8_t *at = juggle_write_envelope_head(bytes, cmd, qos, body.len, xor_key != NULL);
  assert_ptr_equal(at, bytes + head);
  if (body.len) memcpy(at, body.data, body.len);
  if (xor_key) juggle_xor(at, body.len, xor_key);
  return view_of(bytes, head + body.len);
}

/* The vector is exactly this frame, and reads back as it. */
static void assert_frame(
    const char *name, int32_t cmd, int32_t qos, struct view body, const struct juggle_key *xor_key) {
  struct view want = vector_bytes(name), got = frame_of(cmd, qos, body, xor_key);
  assert_bytes(got, want);
  struct juggle_envelope envelope;
  assert_true(juggle_read_envelope(want, &envelope));
  assert_int_equal(envelope.version, 1);
  assert_int_equal(envelope.cmd, cmd);
  assert_int_equal(envelope.qos, qos);
  struct view carried = xor_key ? envelope.payload : envelope.body;
  assert_int_equal(carried.len, body.len);
  if (xor_key) juggle_xor((uint8_t *)carried.data, carried.len, xor_key);
  assert_bytes(carried, body);
  assert_int_equal(envelope.body_field, xor_key ? 0 : juggle_body_field(cmd));
  assert_int_equal(xor_key ? envelope.body.len : envelope.payload.len, 0);
  release(want);
  release(got);
}

static void assert_body_frame(
    const char *name, int32_t cmd, int32_t qos, enum codec_id id, const void *in, const struct juggle_key *xor_key) {
  struct view body = encode(id, in);
  assert_frame(name, cmd, qos, body, xor_key);
  release(body);
}

static void test_connect(void **state) {
  (void)state;
  struct juggle_connect connect = {.proto_id = view_str("jug9le1m"),
      .sdk_version = view_str("1.0.1"),
      .appkey = view_str("benchapp"),
      .token = view_str(token),
      .device_id = view_str("dev-alice"),
      .platform = view_str("Web")};
  struct view body = encode(CODEC_CONNECT, &connect), want = vector_bytes("C0");
  assert_bytes(body, want);
  const struct juggle_key zero = {{0}};
  assert_frame("C1", JUGGLE_CONNECT, 1, body, NULL);
  assert_frame("C1o", JUGGLE_CONNECT, 1, body, &key);
  assert_frame("C1z", JUGGLE_CONNECT, 1, body, &zero);
  struct juggle_connect read;
  assert_true(juggle_read_connect(want, &read));
  assert_view(read.proto_id, "jug9le1m");
  assert_view(read.sdk_version, "1.0.1");
  assert_view(read.appkey, "benchapp");
  assert_view(read.token, token);
  assert_view(read.device_id, "dev-alice");
  assert_view(read.platform, "Web");
  assert_int_equal(read.ext.len + read.client_ip.len + read.instance_id.len, 0);
  release(body);
  release(want);
}

static void test_key_is_learnt_from_connect(void **state) {
  (void)state;
  struct juggle_envelope envelope;
  struct juggle_key learnt;
  struct view frame = vector_bytes("C1o");
  assert_true(juggle_read_envelope(frame, &envelope));
  juggle_key_learn(envelope.payload, &learnt);
  assert_memory_equal(learnt.byte, key.byte, sizeof key.byte);
  release(frame);
  const struct juggle_key zero = {{0}};
  frame = vector_bytes("C1z");
  assert_true(juggle_read_envelope(frame, &envelope));
  juggle_key_learn(envelope.payload, &learnt);
  assert_memory_equal(learnt.byte, zero.byte, sizeof zero.byte);
  juggle_key_learn(view_of(envelope.payload.data, JUGGLE_KEY_BYTES), &learnt);
  assert_memory_equal(learnt.byte, zero.byte, sizeof zero.byte);
  juggle_key_learn(view_str("12345678"), &learnt);
  assert_memory_equal(learnt.byte, zero.byte, sizeof zero.byte);
  juggle_key_learn(view_of(NULL, 0), &learnt);
  assert_memory_equal(learnt.byte, zero.byte, sizeof zero.byte);
  release(frame);
}

static void test_connect_ack(void **state) {
  (void)state;
  struct juggle_connect_ack ack = {
      .user_id = view_str("alice"), .session = view_str("Abc123Def45"), .timestamp_ms = CONNECT_MS};
  assert_body_frame("A1", JUGGLE_CONNECT_ACK, 0, CODEC_CONNECT_ACK, &ack, NULL);
  assert_body_frame("A1o", JUGGLE_CONNECT_ACK, 0, CODEC_CONNECT_ACK, &ack, &key);
  struct view body = encode(CODEC_CONNECT_ACK, &ack);
  struct juggle_connect_ack read;
  assert_true(juggle_read_connect_ack(body, &read));
  assert_int_equal(read.code, 0);
  assert_view(read.user_id, "alice");
  assert_view(read.session, "Abc123Def45");
  assert_true(read.timestamp_ms == CONNECT_MS);
  release(body);
  struct juggle_connect_ack refusal = {
      .code = JUGGLE_TOKEN_BAD, .session = view_str("Abc123Def45"), .timestamp_ms = CONNECT_MS};
  assert_body_frame("A2", JUGGLE_CONNECT_ACK, 0, CODEC_CONNECT_ACK, &refusal, NULL);
}

static void test_ping_pong_disconnect(void **state) {
  (void)state;
  struct view nothing = {0};
  assert_frame("PI", JUGGLE_PING, 1, nothing, NULL);
  assert_frame("PI", JUGGLE_PING, 1, nothing, &key);
  assert_frame("PO", JUGGLE_PONG, 0, nothing, NULL);
  assert_frame("PO", JUGGLE_PONG, 0, nothing, &key);
  assert_frame("D1", JUGGLE_DISCONNECT, 0, nothing, NULL);
  assert_frame("D1o", JUGGLE_DISCONNECT, 0, nothing, &key);
  struct juggle_disconnect kick = {.code = JUGGLE_KICKED, .timestamp_ms = PUSH_MS};
  assert_body_frame("D2", JUGGLE_DISCONNECT, 0, CODEC_DISCONNECT, &kick, NULL);
  struct juggle_disconnect read;
  assert_true(juggle_read_disconnect(nothing, &read));
  assert_int_equal(read.code, 0);
}

static struct juggle_up_msg hello(void) {
  return (struct juggle_up_msg){.msg_type = view_str("jg:text"),
      .content = view_str("{\"content\":\"hello\"}"),
      .flags = JUGGLE_FLAG_STORE | JUGGLE_FLAG_COUNT,
      .client_uid = view_str("c-000001")};
}

static void assert_up_msg(const char *name, const struct juggle_up_msg *msg) {
  struct view got = encode(CODEC_UP_MSG, msg), want = vector_bytes(name);
  assert_bytes(got, want);
  struct juggle_up_msg read;
  assert_true(juggle_read_up_msg(want, &read));
  assert_true(view_equal(read.msg_type, msg->msg_type));
  assert_true(view_equal(read.content, msg->content));
  assert_true(view_equal(read.client_uid, msg->client_uid));
  assert_true(view_equal(read.mention_info, msg->mention_info));
  assert_int_equal(read.flags, msg->flags);
  assert_int_equal(read.to_user_ids.len, 0);
  release(got);
  release(want);
}

static void test_up_msgs(void **state) {
  (void)state;
  struct juggle_up_msg u1 = hello();
  assert_up_msg("U1", &u1);
  static const uint8_t mention[] = {8, 2, 0x12, 5, 0x0a, 3, 'b', 'o', 'b'};
  struct juggle_up_msg u2 = hello();
  u2.content = view_str("{\"content\":\"@Bob hi\"}");
  u2.client_uid = view_str("c-000002");
  u2.mention_info = view_of(mention, sizeof mention);
  assert_up_msg("U2", &u2);
  struct juggle_up_msg u3 = {.msg_type = view_str("app:typing"),
      .content = view_str("{}"),
      .flags = JUGGLE_FLAG_STATE,
      .client_uid = view_str("c-000003")};
  assert_up_msg("U3", &u3);
  static const char content[] = "{\"benchmark_id\":\"1700000000-0123abcd\",\"phase\":\"measure\",\"sequence\":1,"
                                "\"sent_at_unix_nano\":1700000000456000000,\"padding\":\"xxxxxx\"}";
  struct juggle_up_msg b1 = {.msg_type = view_str("jg:text"), .content = view_str(content), .flags = 10};
  assert_up_msg("B1", &b1);
}

static void test_publish(void **state) {
  (void)state;
  struct juggle_up_msg msg = hello();
  struct view data = encode(CODEC_UP_MSG, &msg);
  struct juggle_request publish = {1, view_str("p_msg"), view_str("bob"), 0, data};
  assert_body_frame("P1", JUGGLE_PUBLISH, 1, CODEC_PUBLISH, &publish, NULL);
  assert_body_frame("P1o", JUGGLE_PUBLISH, 1, CODEC_PUBLISH, &publish, &key);
  publish = (struct juggle_request){2, view_str("g_msg"), view_str("grp1"), 0, data};
  assert_body_frame("P2", JUGGLE_PUBLISH, 1, CODEC_PUBLISH, &publish, NULL);
  publish = (struct juggle_request){6, view_str("p_msg"), {0}, 0, data};
  assert_body_frame("P5", JUGGLE_PUBLISH, 1, CODEC_PUBLISH, &publish, NULL);
  release(data);
}

/* The way the driver writes: the head of the request, then its data behind it. */
static void test_request_around_data_written_later(void **state) {
  (void)state;
  struct juggle_up_msg msg = hello();
  size_t data_len = juggle_up_msg_size(&msg);
  struct juggle_request publish = {1, view_str("p_msg"), view_str("bob"), 0, view_of(NULL, data_len)};
  size_t body_len = juggle_request_size(&publish);
  size_t len = juggle_envelope_head_size(JUGGLE_PUBLISH, 1, body_len, false) + body_len;
  uint8_t *bytes = malloc(len);
  assert_non_null(bytes);
  uint8_t *at = juggle_write_envelope_head(bytes, JUGGLE_PUBLISH, 1, body_len, false);
  at = juggle_write_up_msg(juggle_write_request(at, &publish), &msg);
  assert_ptr_equal(at, bytes + len);
  struct view want = vector_bytes("P1");
  assert_bytes(view_of(bytes, len), want);
  release(want);
  free(bytes);
}

static void test_publish_ack(void **state) {
  (void)state;
  struct juggle_publish_ack r1 = {.index = 1,
      .msg_id = view_str(alice_bob_id),
      .timestamp_ms = T_MS,
      .msg_seq_no = 1,
      .client_msg_id = view_str("c-000001")};
  assert_body_frame("R1", JUGGLE_PUBLISH_ACK, 0, CODEC_PUBLISH_ACK, &r1, NULL);
  assert_body_frame("R1o", JUGGLE_PUBLISH_ACK, 0, CODEC_PUBLISH_ACK, &r1, &key);
  struct juggle_publish_ack r2 = r1;
  r2.index = 2;
  r2.msg_id = view_str(group_id);
  r2.member_count = 2;
  assert_body_frame("R2", JUGGLE_PUBLISH_ACK, 0, CODEC_PUBLISH_ACK, &r2, NULL);
  struct juggle_publish_ack r3 = r1;
  r3.index = 5;
  r3.msg_seq_no = -1;
  r3.client_msg_id = view_str("c-000003");
  assert_body_frame("R3", JUGGLE_PUBLISH_ACK, 0, CODEC_PUBLISH_ACK, &r3, NULL);
  struct view body = encode(CODEC_PUBLISH_ACK, &r3);
  struct juggle_publish_ack read;
  assert_true(juggle_read_publish_ack(body, &read));
  assert_true(read.msg_seq_no == -1);
  release(body);
  struct juggle_publish_ack r4 = {.index = 3, .code = JUGGLE_RATE_LIMIT, .timestamp_ms = T_MS};
  assert_body_frame("R4", JUGGLE_PUBLISH_ACK, 0, CODEC_PUBLISH_ACK, &r4, NULL);
  struct juggle_publish_ack r5 = {.index = 6, .code = JUGGLE_TOPIC_MISSING};
  assert_body_frame("R5", JUGGLE_PUBLISH_ACK, 0, CODEC_PUBLISH_ACK, &r5, NULL);
  struct juggle_publish_ack k1 = {.index = 1};
  assert_body_frame("K1", JUGGLE_PUBLISH_ACK, 0, CODEC_PUBLISH_ACK, &k1, NULL);
  assert_body_frame("K1o", JUGGLE_PUBLISH_ACK, 0, CODEC_PUBLISH_ACK, &k1, &key);
}

static Juggle__UserInfo profile(const char *id, const char *nickname, int64_t updated) {
  Juggle__UserInfo user = JUGGLE__USER_INFO__INIT;
  user.user_id = (char *)id;
  user.nickname = (char *)nickname;
  user.updated_time = updated;
  return user;
}

static void assert_packs_as(const ProtobufCMessage *message, const char *name) {
  struct view want = vector_bytes(name);
  size_t len = protobuf_c_message_get_packed_size(message);
  uint8_t *bytes = malloc(len);
  assert_non_null(bytes);
  protobuf_c_message_pack(message, bytes);
  assert_bytes(view_of(bytes, len), want);
  free(bytes);
  release(want);
}

static Juggle__DownMsg down_hello(const char *id) {
  Juggle__DownMsg msg = JUGGLE__DOWN_MSG__INIT;
  msg.msg_type = (char *)"jg:text";
  msg.sender_id = (char *)"alice";
  msg.msg_id = (char *)id;
  msg.msg_seq_no = 1;
  msg.msg_content = (ProtobufCBinaryData){19, (uint8_t *)"{\"content\":\"hello\"}"};
  msg.msg_time = T_MS;
  msg.flags = 10;
  msg.client_uid = (char *)"c-000001";
  msg.unread_index = 1;
  return msg;
}

static void assert_down_hello(struct view bytes, const char *target, int32_t channel, const char *id) {
  struct juggle_down_msg read;
  assert_true(juggle_read_down_msg(bytes, &read));
  assert_view(read.target_id, target);
  assert_int_equal(read.channel, channel);
  assert_view(read.msg_type, "jg:text");
  assert_view(read.sender_id, "alice");
  assert_view(read.msg_id, id);
  assert_int_equal(read.msg_seq_no, 1);
  assert_view(read.content, "{\"content\":\"hello\"}");
  assert_true(read.msg_time_ms == T_MS);
  assert_int_equal(read.flags, 10);
  assert_false(read.is_send);
  assert_view(read.client_uid, "c-000001");
  assert_int_equal(read.member_count, channel == JUGGLE_GROUP ? 2 : 0);
  assert_int_equal(read.unread_index, 1);
}

static void test_down_msgs(void **state) {
  (void)state;
  Juggle__UserInfo alice = profile("alice", "Alice", INT64_C(1699999999000));
  Juggle__UserInfo bob = profile("bob", "Bob", INT64_C(1699999998000));
  Juggle__FriendInfo no_friend = JUGGLE__FRIEND_INFO__INIT;
  Juggle__GroupInfo group = JUGGLE__GROUP_INFO__INIT;
  group.group_id = (char *)"grp1";
  group.group_name = (char *)"G";
  group.updated_time = INT64_C(1699999997000);
  Juggle__DownMsg m1 = down_hello(alice_bob_id);
  m1.target_id = (char *)"alice";
  m1.channel_type = JUGGLE__CHANNEL_TYPE__PRIVATE;
  m1.target_user_info = m1.sender_info = &alice;
  m1.receiver_info = &bob;
  m1.sender_friend_info = &no_friend;
  assert_packs_as(&m1.base, "M1");
  Juggle__DownMsg m2 = down_hello(group_id);
  m2.target_id = (char *)"grp1";
  m2.channel_type = JUGGLE__CHANNEL_TYPE__GROUP;
  m2.target_user_info = m2.sender_info = &alice;
  m2.group_info = &group;
  m2.member_count = 2;
  assert_packs_as(&m2.base, "M2");
  struct view m1_bytes = vector_bytes("M1"), m2_bytes = vector_bytes("M2");
  assert_down_hello(m1_bytes, "alice", JUGGLE_PRIVATE, alice_bob_id);
  assert_down_hello(m2_bytes, "grp1", JUGGLE_GROUP, group_id);
  struct juggle_request push = {1, view_str("msg"), view_str("bob"), PUSH_MS, m1_bytes};
  assert_body_frame("S1", JUGGLE_PUBLISH, 1, CODEC_PUBLISH, &push, NULL);
  assert_body_frame("S1o", JUGGLE_PUBLISH, 1, CODEC_PUBLISH, &push, &key);
  push.index = 2;
  push.data = m2_bytes;
  assert_body_frame("S2", JUGGLE_PUBLISH, 1, CODEC_PUBLISH, &push, NULL);
  release(m1_bytes);
  release(m2_bytes);
}

/* From the socket's bytes to the message's content without a copy: every view points into the frame. */
static void test_delivery_is_read_in_place(void **state) {
  (void)state;
  struct view frame = vector_bytes("S1o");
  struct juggle_envelope envelope;
  struct juggle_request push;
  struct juggle_down_msg msg;
  assert_true(juggle_read_envelope(frame, &envelope));
  juggle_xor((uint8_t *)envelope.payload.data, envelope.payload.len, &key);
  assert_true(juggle_read_request(envelope.payload, &push));
  assert_view(push.topic, "msg");
  assert_view(push.target, "bob");
  assert_true(push.timestamp_ms == PUSH_MS);
  assert_true(juggle_read_down_msg(push.data, &msg));
  assert_true(msg.content.data > frame.data && msg.content.data + msg.content.len < frame.data + frame.len);
  assert_down_hello(push.data, "alice", JUGGLE_PRIVATE, alice_bob_id);
  release(frame);
}

static void test_notify(void **state) {
  (void)state;
  struct juggle_notify notify = {.type = 1, .sync_time_ms = T_MS}, read;
  struct view data = encode(CODEC_NOTIFY, &notify), want = vector_bytes("N0");
  assert_bytes(data, want);
  assert_true(juggle_read_notify(want, &read));
  assert_int_equal(read.type, 1);
  assert_true(read.sync_time_ms == T_MS);
  struct juggle_request push = {2, view_str("ntf"), view_str("bob"), PUSH_MS, data};
  assert_body_frame("N1", JUGGLE_PUBLISH, 1, CODEC_PUBLISH, &push, NULL);
  release(data);
  release(want);
}

static void test_sync_query(void **state) {
  (void)state;
  struct juggle_sync_request sync = {T_MS - 1, T_MS - 1, true}, read;
  struct view data = encode(CODEC_SYNC_REQUEST, &sync), want = vector_bytes("Y0");
  assert_bytes(data, want);
  assert_true(juggle_read_sync_request(want, &read));
  assert_true(read.contains_send_box && read.sync_time_ms == T_MS - 1 && read.send_box_sync_time_ms == T_MS - 1);
  struct juggle_request query = {3, view_str("sync_msgs"), view_str("bob"), 0, data};
  assert_body_frame("Y1", JUGGLE_QUERY, 1, CODEC_QUERY, &query, NULL);
  release(data);
  release(want);
}

static void test_query_ack_with_messages(void **state) {
  (void)state;
  struct view frame = vector_bytes("Y2"), m1 = vector_bytes("M1"), raw;
  struct juggle_envelope envelope;
  struct juggle_query_ack ack;
  assert_true(juggle_read_envelope(frame, &envelope));
  assert_true(juggle_read_query_ack(envelope.body, &ack));
  assert_int_equal(ack.index, 3);
  assert_int_equal(ack.code, 0);
  assert_true(ack.timestamp_ms == INT64_C(1700000000465));
  struct juggle_set_reader set = juggle_set_reader_of(ack.data);
  assert_true(juggle_set_next(&set, &raw));
  assert_bytes(raw, m1);
  assert_false(juggle_set_next(&set, &raw));
  assert_false(set.bad);
  assert_true(set.is_finished);
  assert_body_frame("Y2", JUGGLE_QUERY_ACK, 1, CODEC_QUERY_ACK, &ack, NULL);
  release(frame);
  release(m1);
}

static void test_query_ack_without_messages(void **state) {
  (void)state;
  static const uint8_t finished[] = {0x18, 1};
  struct juggle_query_ack y3 = {
      .index = 3, .timestamp_ms = INT64_C(1700000000465), .data = view_of(finished, sizeof finished)};
  assert_body_frame("Y3", JUGGLE_QUERY_ACK, 1, CODEC_QUERY_ACK, &y3, NULL);
  struct juggle_set_reader set = juggle_set_reader_of(y3.data);
  struct view raw;
  assert_false(juggle_set_next(&set, &raw));
  assert_true(set.is_finished && !set.bad);
  struct juggle_query_ack y4 = {.index = 3};
  assert_body_frame("Y4", JUGGLE_QUERY_CONFIRM, 0, CODEC_QUERY_ACK, &y4, NULL);
}

static void assert_query(
    const char *name, int32_t index, const char *topic, const char *target, const ProtobufCMessage *message) {
  size_t len = message ? protobuf_c_message_get_packed_size(message) : 0;
  uint8_t *data = malloc(len + 1);
  assert_non_null(data);
  if (message) protobuf_c_message_pack(message, data);
  struct juggle_request query = {index, view_str(topic), view_str(target), 0, view_of(data, len)};
  assert_body_frame(name, JUGGLE_QUERY, 1, CODEC_QUERY, &query, NULL);
  free(data);
}

static void test_cold_queries(void **state) {
  (void)state;
  Juggle__QryHisMsgsReq history = JUGGLE__QRY_HIS_MSGS_REQ__INIT;
  history.target_id = (char *)"bob";
  history.channel_type = JUGGLE__CHANNEL_TYPE__PRIVATE;
  history.count = 20;
  assert_query("H1", 4, "qry_hismsgs", "bob", &history.base);
  Juggle__ChatRoomReq join = JUGGLE__CHAT_ROOM_REQ__INIT;
  join.chat_id = (char *)"room1";
  assert_query("J1", 7, "c_join", "room1", &join.base);
  assert_query("E1", 8, "qry_convers", "", NULL);
  struct juggle_query_ack j2 = {.index = 7, .code = JUGGLE_TOPIC_UNSUPPORTED, .timestamp_ms = T_MS};
  assert_body_frame("J2", JUGGLE_QUERY_ACK, 0, CODEC_QUERY_ACK, &j2, NULL);
  struct juggle_query_ack e2 = {.index = 8, .code = JUGGLE_TOPIC_MISSING, .timestamp_ms = T_MS};
  assert_body_frame("E2", JUGGLE_QUERY_ACK, 0, CODEC_QUERY_ACK, &e2, NULL);
}

static void test_message_ids(void **state) {
  (void)state;
  char id[JUGGLE_MSG_ID_LEN];
  assert_int_equal(juggle_crc32(view_str("alice:bob")), 0x7ed5c8d5);
  assert_int_equal(juggle_crc32(view_str("grp1")), 0xae21d554);
  assert_int_equal(juggle_crc32(view_of(NULL, 0)), 0);
  juggle_msg_id(id, T_MS, 1, JUGGLE_PRIVATE, 0x7ed5c8d5);
  assert_memory_equal(id, alice_bob_id, sizeof id);
  juggle_msg_id(id, T_MS, 2, JUGGLE_GROUP, 0xae21d554);
  assert_memory_equal(id, group_id, sizeof id);
  char wrapped[JUGGLE_MSG_ID_LEN];
  juggle_msg_id(wrapped, T_MS, 2 + 4096, JUGGLE_GROUP, 0xae21d554);
  assert_memory_equal(id, wrapped, sizeof id);
}

static void test_negative_cases(void **state) {
  (void)state;
  struct juggle_envelope envelope;
  struct juggle_up_msg up;
  struct view ff = bytes_of_hex("ff"), cmd_1 = bytes_of_hex("08011001");
  assert_false(juggle_read_envelope(ff, &envelope));
  assert_false(juggle_read_up_msg(ff, &up));
  assert_true(juggle_read_envelope(cmd_1, &envelope));
  assert_int_equal(envelope.cmd, JUGGLE_CONNECT_ACK);
  assert_int_equal(envelope.body_field, 0);
  struct view empty = {0};
  assert_true(juggle_read_up_msg(empty, &up));
  assert_true(juggle_read_envelope(empty, &envelope));
  release(ff);
  release(cmd_1);
}

static void assert_set(const char *hex, size_t count, bool bad, bool is_finished) {
  struct view bytes = bytes_of_hex(hex), raw;
  struct juggle_set_reader set = juggle_set_reader_of(bytes);
  size_t seen = 0;
  while (juggle_set_next(&set, &raw)) {
    seen++;
  }
  assert_int_equal(seen, count);
  assert_int_equal(set.bad, bad);
  assert_int_equal(set.is_finished, is_finished);
  assert_false(juggle_set_next(&set, &raw));
  release(bytes);
}

static void test_sets_good_and_bad(void **state) {
  (void)state;
  assert_set("", 0, false, false);
  assert_set("0a000a001801", 2, false, true);
  assert_set("18010a00", 1, false, true);
  assert_set("180118000a00", 1, false, false);
  assert_set("0a0010c8d395ffbc312200", 1, false, false);
  assert_set("0a000801", 1, true, false);
  assert_set("1a00", 0, true, false);
  assert_set("0a000a05", 1, true, false);
}

static void test_last_value_of_a_field_counts(void **state) {
  (void)state;
  struct view bytes = bytes_of_hex("080108021201611201625a0272006a00");
  struct juggle_request request;
  struct juggle_envelope envelope;
  assert_true(juggle_read_request(bytes, &request));
  assert_int_equal(request.index, 2);
  assert_view(request.topic, "b");
  release(bytes);
  bytes = bytes_of_hex("5a0272006a00");
  assert_true(juggle_read_envelope(bytes, &envelope));
  assert_int_equal(envelope.body_field, 13);
  assert_int_equal(envelope.body.len, 0);
  release(bytes);
}

/* A frame cut anywhere is malformed or means less; it never reads as more than was there. */
static void test_truncated_vectors(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
    struct view whole = bytes_of_hex(vectors[i].hex);
    for (size_t len = 0; len < whole.len; len++) {
      uint8_t *cut = malloc(len ? len : 1);
      assert_non_null(cut);
      memcpy(cut, whole.data, len);
      struct juggle_envelope envelope;
      if (juggle_read_envelope(view_of(cut, len), &envelope)) {
        assert_true(envelope.body.len + envelope.payload.len <= len);
      }
      free(cut);
    }
    release(whole);
  }
}

static void test_code_texts(void **state) {
  (void)state;
  assert_string_equal(juggle_code_text(JUGGLE_OK), "success");
  assert_string_equal(juggle_code_text(JUGGLE_GROUP_NOT_MEMBER), "not a group member");
  assert_string_equal(juggle_code_text(16104), "call cancelled");
  assert_null(juggle_code_text(9999));
  assert_null(juggle_code_text(-1));
  int known = 0;
  for (int32_t code = 0; code < 20000; code++) {
    known += juggle_code_text(code) != NULL;
  }
  assert_int_equal(known, 102);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_connect),
      cmocka_unit_test(test_key_is_learnt_from_connect),
      cmocka_unit_test(test_connect_ack),
      cmocka_unit_test(test_ping_pong_disconnect),
      cmocka_unit_test(test_up_msgs),
      cmocka_unit_test(test_publish),
      cmocka_unit_test(test_request_around_data_written_later),
      cmocka_unit_test(test_publish_ack),
      cmocka_unit_test(test_down_msgs),
      cmocka_unit_test(test_delivery_is_read_in_place),
      cmocka_unit_test(test_notify),
      cmocka_unit_test(test_sync_query),
      cmocka_unit_test(test_query_ack_with_messages),
      cmocka_unit_test(test_query_ack_without_messages),
      cmocka_unit_test(test_cold_queries),
      cmocka_unit_test(test_message_ids),
      cmocka_unit_test(test_negative_cases),
      cmocka_unit_test(test_sets_good_and_bad),
      cmocka_unit_test(test_last_value_of_a_field_counts),
      cmocka_unit_test(test_truncated_vectors),
      cmocka_unit_test(test_code_texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
