// protobufjs reads src/wire/juggle.proto and judges the fact sheet's vectors, which the unit tests hold muster's own
// codec to: each must decode to the values below and encode from them byte for byte.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import protobuf from "protobufjs";

const here = (path) => new URL(path, import.meta.url).pathname;
const root = new protobuf.Root().loadSync(here("../../../src/wire/juggle.proto"), { keepCase: true });
const vectors = new Map(
  [...readFileSync(here("../../unit/wire/vectors.h"), "utf8").matchAll(/\{"(\w+)", (\d+), "([0-9a-f]*)"\}/g)].map(
    ([, name, length, hex]) => {
      assert.equal(hex.length, 2 * length, name);
      return [name, hex];
    },
  ),
);

const KEY = [1, 2, 3, 4, 5, 6, 7, 8];
const T = "1700000000456";
const PUSH = "1700000000460";
const TOKEN = "CghiZW5jaGFwcBoQxUUTN0KvwqD692ba434Daw==";
const PRIVATE_ID = "nm39uyvuaacfmugx";
const GROUP_ID = "nm39uyvuaaeldxlw";
const utf8 = (text) => Buffer.from(text);
const hexOf = (bytes) => Buffer.from(bytes).toString("hex");
const xor = (bytes) => Buffer.from(bytes).map((byte, i) => byte ^ KEY[i % KEY.length]);

function encode(type, fields) {
  const message = root.lookupType(`juggle.${type}`);
  assert.equal(message.verify(fields), null, `${type} ${JSON.stringify(fields)}`);
  return Buffer.from(message.encode(message.fromObject(fields)).finish());
}

// The fields that are on the wire, with 64-bit integers as text and bytes as hex, so that objects compare.
function plain(type, bytes) {
  const message = root.lookupType(`juggle.${type}`);
  return comparable(message.toObject(message.decode(bytes), { longs: String }));
}

function comparable(value) {
  if (value instanceof Uint8Array) return hexOf(value);
  if (Array.isArray(value)) return value.map(comparable);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, comparable(item)]));
}

let checked = 0;
function check(name, type, fields) {
  const hex = vectors.get(name);
  assert.ok(hex !== undefined, `there is a vector ${name}`);
  assert.equal(hexOf(encode(type, withLongs(fields))), hex, `${name} encoded`);
  assert.deepEqual(plain(type, Buffer.from(hex, "hex")), comparable(fields), `${name} decoded`);
  vectors.delete(name);
  checked++;
}

// 64-bit values stand as text in this file, and protobufjs wants its own type for them.
function withLongs(value) {
  if (Array.isArray(value)) return value.map(withLongs);
  if (value instanceof Uint8Array || value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, isLong(item) ? protobuf.util.Long.fromString(item) : withLongs(item)]),
  );
}

function isLong(item) {
  return typeof item === "string" && /^-?\d+$/.test(item);
}

const BODIES = {
  connect: "ConnectBody",
  connect_ack: "ConnectAckBody",
  disconnect: "DisconnectBody",
  publish: "PublishBody",
  publish_ack: "PublishAckBody",
  query: "QueryBody",
  query_ack: "QueryAckBody",
  query_confirm: "QueryConfirmBody",
};

function checkFrame(name, head, kind, body, obfuscated) {
  const carried = obfuscated ? { payload: xor(encode(BODIES[kind], withLongs(body))) } : { [kind]: body };
  check(name, "Envelope", { version: 1, ...head, ...carried });
}

const alice = { user_id: "alice", nickname: "Alice", updated_time: "1699999999000" };
const bob = { user_id: "bob", nickname: "Bob", updated_time: "1699999998000" };
const u1 = { msg_type: "jg:text", msg_content: utf8('{"content":"hello"}'), flags: 10, client_uid: "c-000001" };
const down = {
  msg_type: "jg:text",
  sender_id: "alice",
  msg_seq_no: "1",
  msg_content: u1.msg_content,
  msg_time: T,
  flags: 10,
  client_uid: "c-000001",
  target_user_info: alice,
  unread_index: "1",
  sender_info: alice,
};
const m1 = { ...down, target_id: "alice", channel_type: 1, msg_id: PRIVATE_ID, receiver_info: bob, sender_friend_info: {} };
const group = { group_id: "grp1", group_name: "G", updated_time: "1699999997000" };
const m2 = { ...down, target_id: "grp1", channel_type: 2, msg_id: GROUP_ID, group_info: group, member_count: 2 };

const connect = {
  proto_id: "jug9le1m",
  sdk_version: "1.0.1",
  appkey: "benchapp",
  token: TOKEN,
  device_id: "dev-alice",
  platform: "Web",
};
check("C0", "ConnectBody", connect);
checkFrame("C1", { qos: 1 }, "connect", connect);
checkFrame("C1o", { qos: 1 }, "connect", connect, true);
check("C1z", "Envelope", { version: 1, qos: 1, payload: encode("ConnectBody", connect) });
const ack = { user_id: "alice", session: "Abc123Def45", timestamp: "1700000000123" };
checkFrame("A1", { cmd: 1 }, "connect_ack", ack);
checkFrame("A1o", { cmd: 1 }, "connect_ack", ack, true);
checkFrame("A2", { cmd: 1 }, "connect_ack", { code: 11005, session: "Abc123Def45", timestamp: "1700000000123" });

check("PI", "Envelope", { version: 1, cmd: 8, qos: 1 });
check("PO", "Envelope", { version: 1, cmd: 9 });
checkFrame("D1", { cmd: 2 }, "disconnect", {});
check("D1o", "Envelope", { version: 1, cmd: 2 });
checkFrame("D2", { cmd: 2 }, "disconnect", { code: 11011, timestamp: PUSH });

check("U1", "UpMsg", u1);
const mention = { mention_type: 2, target_users: [{ user_id: "bob" }] };
check("U2", "UpMsg", { ...u1, msg_content: utf8('{"content":"@Bob hi"}'), client_uid: "c-000002", mention_info: mention });
check("U3", "UpMsg", { msg_type: "app:typing", msg_content: utf8("{}"), flags: 4, client_uid: "c-000003" });
const bench =
  '{"benchmark_id":"1700000000-0123abcd","phase":"measure","sequence":1,' +
  '"sent_at_unix_nano":1700000000456000000,"padding":"xxxxxx"}';
check("B1", "UpMsg", { msg_type: "jg:text", msg_content: utf8(bench), flags: 10 });

const publish = { index: 1, topic: "p_msg", target_id: "bob", data: encode("UpMsg", u1) };
checkFrame("P1", { cmd: 3, qos: 1 }, "publish", publish);
checkFrame("P1o", { cmd: 3, qos: 1 }, "publish", publish, true);
checkFrame("P2", { cmd: 3, qos: 1 }, "publish", { ...publish, index: 2, topic: "g_msg", target_id: "grp1" });
checkFrame("P5", { cmd: 3, qos: 1 }, "publish", { index: 6, topic: "p_msg", data: publish.data });

const r1 = { index: 1, msg_id: PRIVATE_ID, timestamp: T, msg_seq_no: "1", client_msg_id: "c-000001" };
checkFrame("R1", { cmd: 4 }, "publish_ack", r1);
checkFrame("R1o", { cmd: 4 }, "publish_ack", r1, true);
checkFrame("R2", { cmd: 4 }, "publish_ack", { ...r1, index: 2, msg_id: GROUP_ID, member_count: 2 });
checkFrame("R3", { cmd: 4 }, "publish_ack", { ...r1, index: 5, msg_seq_no: "-1", client_msg_id: "c-000003" });
checkFrame("R4", { cmd: 4 }, "publish_ack", { index: 3, code: 11014, timestamp: T });
checkFrame("R5", { cmd: 4 }, "publish_ack", { index: 6, code: 11015 });
checkFrame("K1", { cmd: 4 }, "publish_ack", { index: 1 });
checkFrame("K1o", { cmd: 4 }, "publish_ack", { index: 1 }, true);

check("M1", "DownMsg", m1);
check("M2", "DownMsg", m2);
const push = { index: 1, topic: "msg", target_id: "bob", timestamp: PUSH, data: encode("DownMsg", withLongs(m1)) };
checkFrame("S1", { cmd: 3, qos: 1 }, "publish", push);
checkFrame("S1o", { cmd: 3, qos: 1 }, "publish", push, true);
checkFrame("S2", { cmd: 3, qos: 1 }, "publish", { ...push, index: 2, data: encode("DownMsg", withLongs(m2)) });
const notify = { type: 1, sync_time: T };
check("N0", "Notify", notify);
const notification = { ...push, index: 2, topic: "ntf", data: encode("Notify", withLongs(notify)) };
checkFrame("N1", { cmd: 3, qos: 1 }, "publish", notification);

const cursor = "1700000000455";
const sync = { sync_time: cursor, contains_send_box: true, send_box_sync_time: cursor };
check("Y0", "SyncMsgReq", sync);
const query = (index, topic, target, data) => ({ index, topic, target_id: target, data });
checkFrame("Y1", { cmd: 5, qos: 1 }, "query", query(3, "sync_msgs", "bob", encode("SyncMsgReq", withLongs(sync))));
const answer = (fields) => ({ index: 3, timestamp: "1700000000465", data: encode("DownMsgSet", withLongs(fields)) });
checkFrame("Y2", { cmd: 6, qos: 1 }, "query_ack", answer({ msgs: [m1], is_finished: true }));
checkFrame("Y3", { cmd: 6, qos: 1 }, "query_ack", answer({ is_finished: true }));
checkFrame("Y4", { cmd: 7 }, "query_confirm", { index: 3 });
const history = encode("QryHisMsgsReq", { target_id: "bob", channel_type: 1, count: 20 });
checkFrame("H1", { cmd: 5, qos: 1 }, "query", query(4, "qry_hismsgs", "bob", history));
const join = encode("ChatRoomReq", { chat_id: "room1" });
checkFrame("J1", { cmd: 5, qos: 1 }, "query", query(7, "c_join", "room1", join));
checkFrame("J2", { cmd: 6 }, "query_ack", { index: 7, code: 11013, timestamp: T });
checkFrame("E1", { cmd: 5, qos: 1 }, "query", { index: 8, topic: "qry_convers" });
checkFrame("E2", { cmd: 6 }, "query_ack", { index: 8, code: 11015, timestamp: T });

const value = { user_id: "alice", token_time: "1700000000000" };
assert.equal(hexOf(encode("TokenValue", withLongs(value))), "0a05616c6963651880d095ffbc31");
const wrap = plain("TokenWrap", Buffer.from(TOKEN, "base64url"));
assert.deepEqual(wrap, { app_key: "benchapp", token_value: "c545133742afc2a0faf766dae37e036b" });

assert.deepEqual([...vectors.keys()], [], "every vector was checked");
assert.throws(() => plain("Envelope", Buffer.from("ff", "hex")));
console.log(`${checked} vectors agree with protobufjs, both ways`);
