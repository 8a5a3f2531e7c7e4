/* JuggleIM's WebSocket protocol: the envelope, its bodies, and the hot topic messages (shared/protocols/juggleim.md
 * sections 1 to 5). Readers hand out views into their input; writers fill memory that the caller has reserved.
 * Cold bodies (history, conversations, user infos, tokens) are protobuf-c structs from juggle.proto. */
#ifndef MUSTER_WIRE_JUGGLE_H
#define MUSTER_WIRE_JUGGLE_H

#include "base/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum juggle_cmd {
  JUGGLE_CONNECT = 0,
  JUGGLE_CONNECT_ACK = 1,
  JUGGLE_DISCONNECT = 2,
  JUGGLE_PUBLISH = 3,
  JUGGLE_PUBLISH_ACK = 4,
  JUGGLE_QUERY = 5,
  JUGGLE_QUERY_ACK = 6,
  JUGGLE_QUERY_CONFIRM = 7,
  JUGGLE_PING = 8,
  JUGGLE_PONG = 9
};

enum juggle_flag {
  JUGGLE_FLAG_COMMAND = 1,
  JUGGLE_FLAG_COUNT = 2,
  JUGGLE_FLAG_STATE = 4,
  JUGGLE_FLAG_STORE = 8,
  JUGGLE_FLAG_UNDISTURB = 64
};

enum juggle_channel { JUGGLE_PRIVATE = 1, JUGGLE_GROUP = 2, JUGGLE_CHATROOM = 3, JUGGLE_SYSTEM = 4 };

/* Codes of the fact sheet's appendix A that muster or musterd names in code. */
enum juggle_code {
  JUGGLE_OK = 0,
  JUGGLE_API_NO_APPKEY = 10001,
  JUGGLE_API_NO_NONCE = 10002,
  JUGGLE_API_NO_TIMESTAMP = 10003,
  JUGGLE_API_NO_SIGNATURE = 10004,
  JUGGLE_API_NO_APP = 10005,
  JUGGLE_API_BAD_SIGNATURE = 10006,
  JUGGLE_API_BAD_BODY = 10007,
  JUGGLE_API_TIMEOUT = 10008,
  JUGGLE_API_NO_PARAMETER = 10010,
  JUGGLE_API_BAD_PARAMETER = 10011,
  JUGGLE_USER_UNKNOWN = 10102,
  JUGGLE_CONNECT_DEFAULT = 11000,
  JUGGLE_APP_UNKNOWN = 11003,
  JUGGLE_TOKEN_ILLEGAL = 11004,
  JUGGLE_TOKEN_BAD = 11005,
  JUGGLE_TOKEN_EXPIRED = 11006,
  JUGGLE_PLATFORM_BAD = 11008,
  JUGGLE_KICKED = 11011,
  JUGGLE_LOGOUT = 11012,
  JUGGLE_TOPIC_UNSUPPORTED = 11013,
  JUGGLE_RATE_LIMIT = 11014,
  JUGGLE_TOPIC_MISSING = 11015,
  JUGGLE_HEARTBEAT = 11018,
  JUGGLE_DATA_ILLEGAL = 11019,
  JUGGLE_MSG_DEFAULT = 12000,
  JUGGLE_MSG_PARAMETER = 12004,
  JUGGLE_GROUP_UNKNOWN = 13001,
  JUGGLE_GROUP_NOT_MEMBER = 13002,
  JUGGLE_GROUP_FULL = 13005,
  JUGGLE_ROOM_DEFAULT = 14000,
  JUGGLE_ROOM_NOT_MEMBER = 14001,
  JUGGLE_ROOM_UNKNOWN = 14005,
  JUGGLE_ROOM_DELETED = 14006,
};
/* A short English text for a code ("not a group member"), or NULL when it is not in appendix A. */
const char *juggle_code_text(int32_t code);

#define JUGGLE_KEY_BYTES 8
#define JUGGLE_MSG_ID_LEN 16

struct juggle_key {
  uint8_t byte[JUGGLE_KEY_BYTES];
};

/* XORs data with the key, restarting at key byte 0 for data[0] (section 1.5). Its own inverse. */
void juggle_xor(uint8_t *data, size_t len, const struct juggle_key *key);
/* The key that a Connect frame's payload reveals; all zero when it has 8 bytes or fewer. */
void juggle_key_learn(struct view connect_payload, struct juggle_key *out);

/* An envelope as read. Exactly one of body (plain mode: oneof field 11..18 = body_field) and payload (obfuscated mode)
 * is normally there; both are absent for Ping and Pong. */
struct juggle_envelope {
  int32_t version, cmd, qos;
  uint32_t body_field; /* 0: none */
  struct view body, payload;
};
/* False when the bytes are no envelope. */
bool juggle_read_envelope(struct view bytes, struct juggle_envelope *out);

/* The oneof field that carries a command's body (11 for Connect ...), 0 for Ping and Pong. */
uint32_t juggle_body_field(int32_t cmd);

/* Envelope around a body of body_len bytes that the caller writes right behind it (and then XORs when key is used):
 * obfuscated mode writes field 4, plain mode the command's oneof field. */
size_t juggle_envelope_head_size(int32_t cmd, int32_t qos, size_t body_len, bool obfuscated);
uint8_t *juggle_write_envelope_head(uint8_t *at, int32_t cmd, int32_t qos, size_t body_len, bool obfuscated);

/* Bodies. Unknown fields are skipped; a reader returns false when the bytes are malformed. */
struct juggle_connect {
  struct view proto_id, sdk_version, appkey, token, device_id, platform, network_id, isp_num, client_ip, push_channel,
      package_name, ext, instance_id;
};
bool juggle_read_connect(struct view body, struct juggle_connect *out);
size_t juggle_connect_size(const struct juggle_connect *connect);
uint8_t *juggle_write_connect(uint8_t *at, const struct juggle_connect *connect);

struct juggle_connect_ack {
  int32_t code;
  struct view user_id, session, ext;
  int64_t timestamp_ms;
};
bool juggle_read_connect_ack(struct view body, struct juggle_connect_ack *out);
size_t juggle_connect_ack_size(const struct juggle_connect_ack *ack);
uint8_t *juggle_write_connect_ack(uint8_t *at, const struct juggle_connect_ack *ack);

struct juggle_disconnect {
  int32_t code;
  int64_t timestamp_ms;
  struct view ext;
};
bool juggle_read_disconnect(struct view body, struct juggle_disconnect *out);
size_t juggle_disconnect_size(const struct juggle_disconnect *disconnect);
uint8_t *juggle_write_disconnect(uint8_t *at, const struct juggle_disconnect *disconnect);

/* PublishMsgBody and QueryMsgBody. To write one around data that is not in one piece, write it with data.len set and
 * data.data NULL: it is the last field, and the caller writes data.len bytes behind the returned position. */
struct juggle_request {
  int32_t index;
  struct view topic, target;
  int64_t timestamp_ms;
  struct view data;
};
bool juggle_read_request(struct view body, struct juggle_request *out);
size_t juggle_request_size(const struct juggle_request *request);
uint8_t *juggle_write_request(uint8_t *at, const struct juggle_request *request);

struct juggle_publish_ack {
  int32_t index, code, member_count;
  struct view msg_id, client_msg_id;
  int64_t timestamp_ms, msg_seq_no;
};
bool juggle_read_publish_ack(struct view body, struct juggle_publish_ack *out);
size_t juggle_publish_ack_size(const struct juggle_publish_ack *ack);
uint8_t *juggle_write_publish_ack(uint8_t *at, const struct juggle_publish_ack *ack);

/* QueryAckMsgBody; data as in juggle_request. QueryConfirm is {index} alone. */
struct juggle_query_ack {
  int32_t index, code;
  int64_t timestamp_ms;
  struct view data;
};
bool juggle_read_query_ack(struct view body, struct juggle_query_ack *out);
size_t juggle_query_ack_size(const struct juggle_query_ack *ack);
uint8_t *juggle_write_query_ack(uint8_t *at, const struct juggle_query_ack *ack);

/* Topic messages on the hot path. Fields that only pass through (mention, push data, quoted message) are kept as the
 * raw bytes of that field's content. */
struct juggle_up_msg {
  struct view msg_type, content, client_uid, push_data, mention_info, refer_msg, merged_msgs, search_text, sub_channel;
  struct view to_user_ids; /* all raw bytes of the message, to be walked for field 8, when there is at least one */
  int32_t flags;
  int64_t life_time_ms, life_time_after_read_ms;
};
bool juggle_read_up_msg(struct view data, struct juggle_up_msg *out);
size_t juggle_up_msg_size(const struct juggle_up_msg *msg); /* without to_user_ids */
uint8_t *juggle_write_up_msg(uint8_t *at, const struct juggle_up_msg *msg);
/* Whether every client can decode it once it is passed on: texts in UTF-8, nested messages that are some. */
bool juggle_up_msg_is_sound(const struct juggle_up_msg *msg);

struct juggle_user {
  struct view user_id, nickname, portrait;
  int64_t updated_ms;
  int32_t user_type;
};
size_t juggle_user_size(const struct juggle_user *user);
uint8_t *juggle_write_user(uint8_t *at, const struct juggle_user *user);

/* DownMsg as a recipient needs it. */
struct juggle_down_msg {
  struct view target_id, msg_type, sender_id, msg_id, content, client_uid;
  int32_t channel, flags, member_count;
  int64_t msg_seq_no, msg_time_ms, unread_index;
  bool is_send;
};
bool juggle_read_down_msg(struct view data, struct juggle_down_msg *out);

enum juggle_notify_type { JUGGLE_NOTIFY_MSG = 1, JUGGLE_NOTIFY_ROOM_MSG = 2, JUGGLE_NOTIFY_ROOM_DESTROYED = 5 };

struct juggle_notify {
  int32_t type; /* enum juggle_notify_type; 0 counts as MSG */
  int64_t sync_time_ms;
  struct view room_id; /* of the room types */
};
bool juggle_read_notify(struct view data, struct juggle_notify *out);
size_t juggle_notify_size(const struct juggle_notify *notify);
uint8_t *juggle_write_notify(uint8_t *at, const struct juggle_notify *notify);

struct juggle_sync_request {
  int64_t sync_time_ms, send_box_sync_time_ms;
  bool contains_send_box;
};
bool juggle_read_sync_request(struct view data, struct juggle_sync_request *out);
size_t juggle_sync_request_size(const struct juggle_sync_request *request);
uint8_t *juggle_write_sync_request(uint8_t *at, const struct juggle_sync_request *request);

/* Chatrooms (section 4.8). ChatRoomReq of c_join and c_quit, SyncChatroomReq of c_sync_msgs; the answer to the latter
 * holds messages as a DownMsgSet does, without isFinished. */
struct juggle_room_request {
  struct view room_id, name;
  bool auto_create;
};
bool juggle_read_room_request(struct view data, struct juggle_room_request *out);
size_t juggle_room_request_size(const struct juggle_room_request *request);
uint8_t *juggle_write_room_request(uint8_t *at, const struct juggle_room_request *request);

struct juggle_room_sync {
  struct view room_id;
  int64_t sync_time_ms;
  int32_t count; /* 0: as many as there are */
};
bool juggle_read_room_sync(struct view data, struct juggle_room_sync *out);
size_t juggle_room_sync_size(const struct juggle_room_sync *sync);
uint8_t *juggle_write_room_sync(uint8_t *at, const struct juggle_room_sync *sync);

/* Walks a DownMsgSet: each message's raw bytes through *reader, isFinished at the end.
 *   struct juggle_set_reader r = juggle_set_reader_of(data);
 *   while (juggle_set_next(&r, &raw)) ...;  then r.bad, r.is_finished */
struct juggle_set_reader {
  const uint8_t *at, *end;
  bool bad, is_finished;
};
struct juggle_set_reader juggle_set_reader_of(struct view data);
bool juggle_set_next(struct juggle_set_reader *reader, struct view *down_msg);

/* Message ids (section 3.11): 16 characters, not NUL-terminated. target_crc: CRC-32 (IEEE) of the target string. */
void juggle_msg_id(
    char out[JUGGLE_MSG_ID_LEN], int64_t time_ms, uint32_t counter, int32_t channel, uint32_t target_crc);
uint32_t juggle_crc32(struct view text);

#endif
