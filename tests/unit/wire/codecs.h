/* Every hot body beside its protobuf-c oracle, and which member holds which of the oracle's fields: what the vector and
 * differential tests walk through. */
#ifndef MUSTER_TESTS_WIRE_CODECS_H
#define MUSTER_TESTS_WIRE_CODECS_H

#include "wire/juggle.h"

#include "juggle.pb-c.h"

#include <stddef.h>

enum member_kind { MEMBER_INT32, MEMBER_INT64, MEMBER_BOOL, MEMBER_VIEW };

struct member {
  const char *oracle_name;
  enum member_kind kind;
  size_t offset;
};

enum { MAX_MEMBERS = 16, MAX_STRUCT = 512 };

struct codec {
  const ProtobufCMessageDescriptor *oracle;
  size_t (*size)(const void *in); /* NULL: read only */
  uint8_t *(*write)(uint8_t *at, const void *in);
  bool (*read)(struct view bytes, void *out); /* NULL: write only */
  struct member members[MAX_MEMBERS];         /* ends with a NULL name */
};

static inline size_t size_connect(const void *in) {
  return juggle_connect_size(in);
}
static inline uint8_t *write_connect(uint8_t *at, const void *in) {
  return juggle_write_connect(at, in);
}
static inline bool read_connect(struct view bytes, void *out) {
  return juggle_read_connect(bytes, out);
}
static inline size_t size_connect_ack(const void *in) {
  return juggle_connect_ack_size(in);
}
static inline uint8_t *write_connect_ack(uint8_t *at, const void *in) {
  return juggle_write_connect_ack(at, in);
}
static inline bool read_connect_ack(struct view bytes, void *out) {
  return juggle_read_connect_ack(bytes, out);
}
static inline size_t size_disconnect(const void *in) {
  return juggle_disconnect_size(in);
}
static inline uint8_t *write_disconnect(uint8_t *at, const void *in) {
  return juggle_write_disconnect(at, in);
}
static inline bool read_disconnect(struct view bytes, void *out) {
  return juggle_read_disconnect(bytes, out);
}
static inline size_t size_request(const void *in) {
  return juggle_request_size(in);
}
static inline uint8_t *write_request(uint8_t *at, const void *in) {
  return juggle_write_request(at, in);
}
static inline bool read_request(struct view bytes, void *out) {
  return juggle_read_request(bytes, out);
}
static inline size_t size_publish_ack(const void *in) {
  return juggle_publish_ack_size(in);
}
static inline uint8_t *write_publish_ack(uint8_t *at, const void *in) {
  return juggle_write_publish_ack(at, in);
}
static inline bool read_publish_ack(struct view bytes, void *out) {
  return juggle_read_publish_ack(bytes, out);
}
static inline size_t size_query_ack(const void *in) {
  return juggle_query_ack_size(in);
}
static inline uint8_t *write_query_ack(uint8_t *at, const void *in) {
  return juggle_write_query_ack(at, in);
}
static inline bool read_query_ack(struct view bytes, void *out) {
  return juggle_read_query_ack(bytes, out);
}
static inline size_t size_up_msg(const void *in) {
  return juggle_up_msg_size(in);
}
static inline uint8_t *write_up_msg(uint8_t *at, const void *in) {
  return juggle_write_up_msg(at, in);
}
static inline bool read_up_msg(struct view bytes, void *out) {
  return juggle_read_up_msg(bytes, out);
}
static inline bool read_down_msg(struct view bytes, void *out) {
  return juggle_read_down_msg(bytes, out);
}
static inline size_t size_user(const void *in) {
  return juggle_user_size(in);
}
static inline uint8_t *write_user(uint8_t *at, const void *in) {
  return juggle_write_user(at, in);
}
static inline size_t size_notify(const void *in) {
  return juggle_notify_size(in);
}
static inline uint8_t *write_notify(uint8_t *at, const void *in) {
  return juggle_write_notify(at, in);
}
static inline bool read_notify(struct view bytes, void *out) {
  return juggle_read_notify(bytes, out);
}
static inline size_t size_sync_request(const void *in) {
  return juggle_sync_request_size(in);
}
static inline uint8_t *write_sync_request(uint8_t *at, const void *in) {
  return juggle_write_sync_request(at, in);
}
static inline bool read_sync_request(struct view bytes, void *out) {
  return juggle_read_sync_request(bytes, out);
}
static inline size_t size_room_request(const void *in) {
  return juggle_room_request_size(in);
}
static inline uint8_t *write_room_request(uint8_t *at, const void *in) {
  return juggle_write_room_request(at, in);
}
static inline bool read_room_request(struct view bytes, void *out) {
  return juggle_read_room_request(bytes, out);
}
static inline size_t size_room_sync(const void *in) {
  return juggle_room_sync_size(in);
}
static inline uint8_t *write_room_sync(uint8_t *at, const void *in) {
  return juggle_write_room_sync(at, in);
}
static inline bool read_room_sync(struct view bytes, void *out) {
  return juggle_read_room_sync(bytes, out);
}

enum codec_id {
  CODEC_CONNECT,
  CODEC_CONNECT_ACK,
  CODEC_DISCONNECT,
  CODEC_PUBLISH,
  CODEC_QUERY,
  CODEC_PUBLISH_ACK,
  CODEC_QUERY_ACK,
  CODEC_UP_MSG,
  CODEC_DOWN_MSG,
  CODEC_USER,
  CODEC_NOTIFY,
  CODEC_SYNC_REQUEST,
  CODEC_ROOM_REQUEST,
  CODEC_ROOM_SYNC,
  CODECS
};

static const struct codec codecs[CODECS] = {
    [CODEC_CONNECT] = {&juggle__connect_body__descriptor, size_connect, write_connect, read_connect,
        {{"proto_id", MEMBER_VIEW, offsetof(struct juggle_connect, proto_id)},
            {"sdk_version", MEMBER_VIEW, offsetof(struct juggle_connect, sdk_version)},
            {"appkey", MEMBER_VIEW, offsetof(struct juggle_connect, appkey)},
            {"token", MEMBER_VIEW, offsetof(struct juggle_connect, token)},
            {"device_id", MEMBER_VIEW, offsetof(struct juggle_connect, device_id)},
            {"platform", MEMBER_VIEW, offsetof(struct juggle_connect, platform)},
            {"network_id", MEMBER_VIEW, offsetof(struct juggle_connect, network_id)},
            {"isp_num", MEMBER_VIEW, offsetof(struct juggle_connect, isp_num)},
            {"client_ip", MEMBER_VIEW, offsetof(struct juggle_connect, client_ip)},
            {"push_channel", MEMBER_VIEW, offsetof(struct juggle_connect, push_channel)},
            {"package_name", MEMBER_VIEW, offsetof(struct juggle_connect, package_name)},
            {"ext", MEMBER_VIEW, offsetof(struct juggle_connect, ext)},
            {"instance_id", MEMBER_VIEW, offsetof(struct juggle_connect, instance_id)}}},
    [CODEC_CONNECT_ACK] = {&juggle__connect_ack_body__descriptor, size_connect_ack, write_connect_ack, read_connect_ack,
        {{"code", MEMBER_INT32, offsetof(struct juggle_connect_ack, code)},
            {"user_id", MEMBER_VIEW, offsetof(struct juggle_connect_ack, user_id)},
            {"session", MEMBER_VIEW, offsetof(struct juggle_connect_ack, session)},
            {"timestamp", MEMBER_INT64, offsetof(struct juggle_connect_ack, timestamp_ms)},
            {"ext", MEMBER_VIEW, offsetof(struct juggle_connect_ack, ext)}}},
    [CODEC_DISCONNECT] = {&juggle__disconnect_body__descriptor, size_disconnect, write_disconnect, read_disconnect,
        {{"code", MEMBER_INT32, offsetof(struct juggle_disconnect, code)},
            {"timestamp", MEMBER_INT64, offsetof(struct juggle_disconnect, timestamp_ms)},
            {"ext", MEMBER_VIEW, offsetof(struct juggle_disconnect, ext)}}},
    [CODEC_PUBLISH] = {&juggle__publish_body__descriptor, size_request, write_request, read_request,
        {{"index", MEMBER_INT32, offsetof(struct juggle_request, index)},
            {"topic", MEMBER_VIEW, offsetof(struct juggle_request, topic)},
            {"target_id", MEMBER_VIEW, offsetof(struct juggle_request, target)},
            {"timestamp", MEMBER_INT64, offsetof(struct juggle_request, timestamp_ms)},
            {"data", MEMBER_VIEW, offsetof(struct juggle_request, data)}}},
    [CODEC_QUERY] = {&juggle__query_body__descriptor, size_request, write_request, read_request,
        {{"index", MEMBER_INT32, offsetof(struct juggle_request, index)},
            {"topic", MEMBER_VIEW, offsetof(struct juggle_request, topic)},
            {"target_id", MEMBER_VIEW, offsetof(struct juggle_request, target)},
            {"timestamp", MEMBER_INT64, offsetof(struct juggle_request, timestamp_ms)},
            {"data", MEMBER_VIEW, offsetof(struct juggle_request, data)}}},
    [CODEC_PUBLISH_ACK] = {&juggle__publish_ack_body__descriptor, size_publish_ack, write_publish_ack, read_publish_ack,
        {{"index", MEMBER_INT32, offsetof(struct juggle_publish_ack, index)},
            {"code", MEMBER_INT32, offsetof(struct juggle_publish_ack, code)},
            {"msg_id", MEMBER_VIEW, offsetof(struct juggle_publish_ack, msg_id)},
            {"timestamp", MEMBER_INT64, offsetof(struct juggle_publish_ack, timestamp_ms)},
            {"msg_seq_no", MEMBER_INT64, offsetof(struct juggle_publish_ack, msg_seq_no)},
            {"member_count", MEMBER_INT32, offsetof(struct juggle_publish_ack, member_count)},
            {"client_msg_id", MEMBER_VIEW, offsetof(struct juggle_publish_ack, client_msg_id)}}},
    [CODEC_QUERY_ACK] = {&juggle__query_ack_body__descriptor, size_query_ack, write_query_ack, read_query_ack,
        {{"index", MEMBER_INT32, offsetof(struct juggle_query_ack, index)},
            {"code", MEMBER_INT32, offsetof(struct juggle_query_ack, code)},
            {"timestamp", MEMBER_INT64, offsetof(struct juggle_query_ack, timestamp_ms)},
            {"data", MEMBER_VIEW, offsetof(struct juggle_query_ack, data)}}},
    [CODEC_UP_MSG] = {&juggle__up_msg__descriptor, size_up_msg, write_up_msg, read_up_msg,
        {{"msg_type", MEMBER_VIEW, offsetof(struct juggle_up_msg, msg_type)},
            {"msg_content", MEMBER_VIEW, offsetof(struct juggle_up_msg, content)},
            {"flags", MEMBER_INT32, offsetof(struct juggle_up_msg, flags)},
            {"client_uid", MEMBER_VIEW, offsetof(struct juggle_up_msg, client_uid)},
            {"push_data", MEMBER_VIEW, offsetof(struct juggle_up_msg, push_data)},
            {"mention_info", MEMBER_VIEW, offsetof(struct juggle_up_msg, mention_info)},
            {"refer_msg", MEMBER_VIEW, offsetof(struct juggle_up_msg, refer_msg)},
            {"merged_msgs", MEMBER_VIEW, offsetof(struct juggle_up_msg, merged_msgs)},
            {"search_text", MEMBER_VIEW, offsetof(struct juggle_up_msg, search_text)},
            {"life_time", MEMBER_INT64, offsetof(struct juggle_up_msg, life_time_ms)},
            {"life_time_after_read", MEMBER_INT64, offsetof(struct juggle_up_msg, life_time_after_read_ms)},
            {"sub_channel", MEMBER_VIEW, offsetof(struct juggle_up_msg, sub_channel)}}},
    [CODEC_DOWN_MSG] = {&juggle__down_msg__descriptor, NULL, NULL, read_down_msg,
        {{"target_id", MEMBER_VIEW, offsetof(struct juggle_down_msg, target_id)},
            {"channel_type", MEMBER_INT32, offsetof(struct juggle_down_msg, channel)},
            {"msg_type", MEMBER_VIEW, offsetof(struct juggle_down_msg, msg_type)},
            {"sender_id", MEMBER_VIEW, offsetof(struct juggle_down_msg, sender_id)},
            {"msg_id", MEMBER_VIEW, offsetof(struct juggle_down_msg, msg_id)},
            {"msg_seq_no", MEMBER_INT64, offsetof(struct juggle_down_msg, msg_seq_no)},
            {"msg_content", MEMBER_VIEW, offsetof(struct juggle_down_msg, content)},
            {"msg_time", MEMBER_INT64, offsetof(struct juggle_down_msg, msg_time_ms)},
            {"flags", MEMBER_INT32, offsetof(struct juggle_down_msg, flags)},
            {"is_send", MEMBER_BOOL, offsetof(struct juggle_down_msg, is_send)},
            {"client_uid", MEMBER_VIEW, offsetof(struct juggle_down_msg, client_uid)},
            {"member_count", MEMBER_INT32, offsetof(struct juggle_down_msg, member_count)},
            {"unread_index", MEMBER_INT64, offsetof(struct juggle_down_msg, unread_index)}}},
    [CODEC_USER] = {&juggle__user_info__descriptor, size_user, write_user, NULL,
        {{"user_id", MEMBER_VIEW, offsetof(struct juggle_user, user_id)},
            {"nickname", MEMBER_VIEW, offsetof(struct juggle_user, nickname)},
            {"user_portrait", MEMBER_VIEW, offsetof(struct juggle_user, portrait)},
            {"updated_time", MEMBER_INT64, offsetof(struct juggle_user, updated_ms)},
            {"user_type", MEMBER_INT32, offsetof(struct juggle_user, user_type)}}},
    [CODEC_NOTIFY] = {&juggle__notify__descriptor, size_notify, write_notify, read_notify,
        {{"type", MEMBER_INT32, offsetof(struct juggle_notify, type)},
            {"sync_time", MEMBER_INT64, offsetof(struct juggle_notify, sync_time_ms)},
            {"chatroom_id", MEMBER_VIEW, offsetof(struct juggle_notify, room_id)}}},
    [CODEC_SYNC_REQUEST] = {&juggle__sync_msg_req__descriptor, size_sync_request, write_sync_request, read_sync_request,
        {{"sync_time", MEMBER_INT64, offsetof(struct juggle_sync_request, sync_time_ms)},
            {"contains_send_box", MEMBER_BOOL, offsetof(struct juggle_sync_request, contains_send_box)},
            {"send_box_sync_time", MEMBER_INT64, offsetof(struct juggle_sync_request, send_box_sync_time_ms)}}},
    [CODEC_ROOM_REQUEST] = {&juggle__chat_room_req__descriptor, size_room_request, write_room_request,
        read_room_request,
        {{"chat_id", MEMBER_VIEW, offsetof(struct juggle_room_request, room_id)},
            {"chat_name", MEMBER_VIEW, offsetof(struct juggle_room_request, name)},
            {"is_auto_create", MEMBER_BOOL, offsetof(struct juggle_room_request, auto_create)}}},
    [CODEC_ROOM_SYNC] = {&juggle__sync_chatroom_req__descriptor, size_room_sync, write_room_sync, read_room_sync,
        {{"chatroom_id", MEMBER_VIEW, offsetof(struct juggle_room_sync, room_id)},
            {"sync_time", MEMBER_INT64, offsetof(struct juggle_room_sync, sync_time_ms)},
            {"count", MEMBER_INT32, offsetof(struct juggle_room_sync, count)}}},
};

#endif
