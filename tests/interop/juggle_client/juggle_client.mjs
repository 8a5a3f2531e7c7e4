// musterd against a client that shares no code with it: npm's ws for the WebSocket, protobufjs for the messages (their
// shapes written down here once more), node's own crypto for signatures. Both modes of the envelope are used.
//   juggle_client.mjs <musterd>
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import protobuf from "protobufjs";
import WebSocket from "ws";

const APP = "interop";
const SECRET = "0123456789abcdef";
const LIMIT_MS = 5000;

const { root } = protobuf.parse(`
  syntax = "proto3";
  message Envelope { int32 version = 1; int32 cmd = 2; int32 qos = 3; bytes payload = 4;
    oneof body { Connect connect = 11; ConnectAck connectAck = 12; Disconnect disconnect = 13; Request publish = 14;
      PublishAck publishAck = 15; Request query = 16; QueryAck queryAck = 17; Confirm confirm = 18; } }
  message Connect { string protoId = 1; string sdkVersion = 2; string appkey = 3; string token = 4;
    string deviceId = 5; string platform = 6; }
  message ConnectAck { int32 code = 1; string userId = 2; string session = 3; int64 timestamp = 4; string ext = 5; }
  message Disconnect { int32 code = 1; int64 timestamp = 2; string ext = 3; }
  message Request { int32 index = 1; string topic = 2; string targetId = 3; int64 timestamp = 4; bytes data = 5; }
  message PublishAck { int32 index = 1; int32 code = 2; string msgId = 3; int64 timestamp = 4; int64 msgSeqNo = 5;
    int32 memberCount = 6; string clientMsgId = 7; }
  message QueryAck { int32 index = 1; int32 code = 2; int64 timestamp = 3; bytes data = 4; }
  message Confirm { int32 index = 1; }
  message UpMsg { string msgType = 1; bytes msgContent = 2; int32 flags = 3; string clientUid = 4; }
  message User { string userId = 1; string nickname = 2; }
  message DownMsg { string targetId = 1; int32 channelType = 2; string msgType = 3; string senderId = 4;
    string msgId = 5; int64 msgSeqNo = 6; bytes msgContent = 7; int64 msgTime = 8; int32 flags = 9; bool isSend = 10;
    string clientUid = 12; User targetUserInfo = 17; int32 memberCount = 21; int64 unreadIndex = 23;
    User senderInfo = 38; }
  message DownMsgSet { repeated DownMsg msgs = 1; int64 syncTime = 2; bool isFinished = 3; }
  message Notify { int32 type = 1; int64 syncTime = 2; }
  message SyncReq { int64 syncTime = 1; bool containsSendBox = 2; int64 sendBoxSyncTime = 3; }
`);
const encode = (type, fields) => {
  const message = root.lookupType(type);
  return message.encode(message.fromObject(fields)).finish();
};
const decode = (type, bytes) => {
  const message = root.lookupType(type);
  return message.toObject(message.decode(bytes), { longs: Number, defaults: true });
};

const BODIES = [
  ["connect", "Connect"],
  ["connectAck", "ConnectAck"],
  ["disconnect", "Disconnect"],
  ["publish", "Request"],
  ["publishAck", "PublishAck"],
  ["query", "Request"],
  ["queryAck", "QueryAck"],
  ["confirm", "Confirm"],
];
const [CONNECT, CONNECT_ACK, DISCONNECT, PUBLISH, PUBLISH_ACK, QUERY, QUERY_ACK, , PING, PONG] = Array(10).keys();

class Client {
  constructor(url, { obfuscated = false } = {}) {
    this.key = obfuscated ? randomBytes(8) : null;
    this.frames = [];
    this.waiting = [];
    this.index = 0;
    this.socket = new WebSocket(url, { perMessageDeflate: false });
    this.socket.on("message", (data, binary) => this.#received(data, binary));
    this.closed = new Promise((resolve) => this.socket.on("close", resolve));
    this.opened = new Promise((resolve, reject) => {
      this.socket.on("open", resolve);
      this.socket.on("error", reject);
    });
  }

  #xor(bytes) {
    return Uint8Array.from(bytes, (byte, i) => byte ^ this.key[i % 8]);
  }

  #received(data, binary) {
    assert.ok(binary, "the server sends binary frames");
    const envelope = decode("Envelope", data);
    assert.equal(envelope.version, 1);
    const [name, type] = BODIES[envelope.cmd] ?? [];
    const body = !name ? null : this.key ? decode(type, this.#xor(envelope.payload)) : envelope[name];
    const frame = { cmd: envelope.cmd, qos: envelope.qos, body };
    const i = this.waiting.findIndex(({ wants }) => wants(frame));
    if (i >= 0) this.waiting.splice(i, 1)[0].resolve(frame);
    else this.frames.push(frame);
  }

  // The next frame of that kind, also one that has come already.
  next(cmd, matches = () => true) {
    const wants = (frame) => frame.cmd === cmd && matches(frame.body);
    const i = this.frames.findIndex(wants);
    if (i >= 0) return Promise.resolve(this.frames.splice(i, 1)[0]);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no frame of command ${cmd} came`)), LIMIT_MS);
      this.waiting.push({
        wants,
        resolve: (frame) => {
          clearTimeout(timer);
          resolve(frame);
        },
      });
    });
  }

  send(cmd, qos, fields) {
    const [name, type] = BODIES[cmd] ?? [];
    if (!name) return this.socket.send(encode("Envelope", { version: 1, cmd, qos }));
    const body = this.key ? { payload: this.#xor(encode(type, fields)) } : { [name]: fields };
    return this.socket.send(encode("Envelope", { version: 1, cmd, qos, ...body }));
  }

  async login(token, platform = "Web") {
    await this.opened;
    this.send(CONNECT, 1, { protoId: "jug9le1m", sdkVersion: "1.0.1", appkey: APP, token, deviceId: "d", platform });
    return (await this.next(CONNECT_ACK)).body;
  }

  async publish(topic, targetId, text, clientUid) {
    const index = ++this.index;
    const content = Buffer.from(JSON.stringify({ content: text }));
    const data = encode("UpMsg", { msgType: "jg:text", msgContent: content, flags: 10, clientUid });
    this.send(PUBLISH, 1, { index, topic, targetId, data });
    return (await this.next(PUBLISH_ACK, (ack) => ack.index === index)).body;
  }

  async message() {
    const { body, qos } = await this.next(PUBLISH, (publish) => publish.topic === "msg");
    if (qos === 1) this.send(PUBLISH_ACK, 0, { index: body.index });
    const message = decode("DownMsg", body.data);
    return { ...message, qos, target: body.targetId, text: JSON.parse(Buffer.from(message.msgContent)).content };
  }

  async sync(owner, syncTime = 0, containsSendBox = false) {
    const index = ++this.index;
    const data = encode("SyncReq", { syncTime, containsSendBox, sendBoxSyncTime: syncTime });
    this.send(QUERY, 1, { index, topic: "sync_msgs", targetId: owner, data });
    const { body, qos } = await this.next(QUERY_ACK, (ack) => ack.index === index);
    assert.equal(body.code, 0);
    assert.equal(qos, 1);
    return decode("DownMsgSet", body.data);
  }
}

function startServer(program, dataDir) {
  const options = ["--data", dataDir, "--app-key", APP, "--push-window", "1", "--no-rate-limits"];
  for (const port of ["api", "navigator", "ws", "admin"]) options.push(`--${port}-port`, "0");
  const environment = { ...process.env, MUSTERD_APP_SECRET: SECRET };
  const child = spawn(program, options, { stdio: ["ignore", "pipe", "inherit"], env: environment });
  const ready = new Promise((resolve, reject) => {
    child.on("exit", (code) => reject(new Error(`musterd ended early with ${code}`)));
    createInterface(child.stdout).once("line", (line) => {
      const found = /^musterd ready: ws (\S+) api (\S+) navigator (\S+) .* ack durable$/.exec(line);
      if (found) resolve({ ws: `ws://${found[1]}/im`, api: `http://${found[2]}`, navigator: `http://${found[3]}` });
      else reject(new Error(`unexpected: ${line}`));
    });
  });
  return { child, ready };
}

function stopServer({ child }) {
  child.removeAllListeners("exit");
  const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));
  child.kill("SIGTERM");
  return ended;
}

async function post(api, path, body) {
  const nonce = randomBytes(8).toString("hex");
  const timestamp = String(Date.now());
  const signature = createHash("sha1").update(SECRET + nonce + timestamp).digest("hex");
  const headers = { appkey: APP, nonce, timestamp, signature, "content-type": "application/json" };
  const answer = await fetch(api + path, { method: "POST", headers, body: JSON.stringify(body) });
  assert.match(answer.headers.get("request-id"), /^api_.{11}$/);
  const { code, data } = await answer.json();
  assert.equal(code, 0, path);
  return data;
}

const tokenOf = async (api, user) =>
  (await post(api, "/apigateway/users/register", { user_id: user, nickname: user.toUpperCase() })).token;

async function privateMessages(at, { alice, bob }) {
  const first = await alice.publish("p_msg", "bob", "hello", "uid-1");
  assert.equal(first.code, 0);
  assert.match(first.msgId, /^[a-hj-np-z2-9]{16}$/);
  assert.equal(first.clientMsgId, "uid-1");
  const message = await bob.message();
  assert.equal(message.text, "hello");
  assert.equal(message.msgId, first.msgId);
  assert.equal(message.msgSeqNo, first.msgSeqNo);
  assert.equal(message.senderId, "alice");
  assert.equal(message.targetId, "alice");
  assert.equal(message.senderInfo.nickname, "ALICE");
  assert.equal(message.unreadIndex, 1);
  assert.equal(message.target, "bob");
  assert.equal(message.qos, 1);

  const again = await alice.publish("p_msg", "bob", "hello", "uid-1");
  assert.deepEqual({ ...again, index: 0 }, { ...first, index: 0 }, "a repeated publish gets the first answer");
  await alice.publish("p_msg", "bob", "second", "uid-2");
  assert.equal((await bob.message()).text, "second", "and is not delivered again");
  return message.msgTime;
}

async function groupMessages({ api }, { alice, bob, carol }) {
  await post(api, "/apigateway/groups/add", { group_id: "g", group_name: "G", member_ids: ["alice", "bob", "carol"] });
  const ack = await carol.publish("g_msg", "g", "to the group", "uid-3");
  assert.equal(ack.code, 0);
  assert.equal(ack.memberCount, 2);
  for (const member of [alice, bob]) {
    const message = await member.message();
    assert.equal(message.text, "to the group");
    assert.equal(message.targetId, "g");
    assert.equal(message.channelType, 2);
  }
}

// With a window of one: the first message is pushed, what comes before its ack is notified and pulled.
async function notifyMode({ alice, bob }) {
  const texts = ["n1", "n2", "n3", "n4"];
  for (const text of texts) assert.equal((await alice.publish("p_msg", "bob", text, `uid-${text}`)).code, 0);
  const pushed = await bob.next(PUBLISH, (publish) => publish.topic === "msg");
  const message = decode("DownMsg", pushed.body.data);
  const notice = await bob.next(PUBLISH, (publish) => publish.topic === "ntf");
  const notify = decode("Notify", notice.body.data);
  assert.equal(notify.type, 1);
  assert.ok(notify.syncTime > message.msgTime);
  const set = await bob.sync("bob", message.msgTime);
  assert.ok(set.isFinished);
  assert.deepEqual(
    set.msgs.map((msg) => JSON.parse(Buffer.from(msg.msgContent)).content),
    texts.slice(1),
  );
  await alice.publish("p_msg", "bob", "direct again", "uid-n5");
  assert.equal((await bob.message()).text, "direct again");
}

async function restart(program, dataDir, token) {
  const server = startServer(program, dataDir);
  const at = await server.ready;
  const bob = new Client(at.ws);
  assert.equal((await bob.login(token)).code, 0, "tokens stay valid");
  const set = await bob.sync("bob");
  assert.ok(set.isFinished);
  assert.equal(set.msgs.length, 8, "every acked message is still there");
  assert.equal(new Set(set.msgs.map((msg) => msg.msgId)).size, 8);
  bob.send(DISCONNECT, 0, { code: 0 });
  await bob.closed;
  assert.equal(await stopServer(server), 0);
}

async function run(program, dataDir) {
  const server = startServer(program, dataDir);
  let token;
  try {
    const at = await server.ready;
    const clients = {
      alice: new Client(at.ws),
      bob: new Client(at.ws, { obfuscated: true }),
      carol: new Client(at.ws, { obfuscated: true }),
    };
    for (const [user, client] of Object.entries(clients)) {
      const userToken = await tokenOf(at.api, user);
      if (user === "bob") token = userToken;
      const ack = await client.login(userToken);
      assert.equal(ack.code, 0);
      assert.equal(ack.userId, user);
      assert.match(ack.session, /^[\w-]{11}$/);
      client.send(PING, 1);
      await client.next(PONG);
    }
    const navigation = await fetch(`${at.navigator}/navigator/general`, {
      headers: { "x-appkey": APP, "x-token": token },
    });
    assert.equal(`ws://${(await navigation.json()).data.servers[0]}/im`, at.ws);
    await privateMessages(at, clients);
    await groupMessages(at, clients);
    await notifyMode(clients);
    const refused = new Client(at.ws, { obfuscated: true });
    assert.equal((await refused.login(token, "Amiga")).code, 11008);
    await refused.closed;
    await post(at.api, "/apigateway/users/kick", { user_id: "carol", ext: "out" });
    const { body } = await clients.carol.next(DISCONNECT);
    assert.equal(body.code, 11011);
    assert.equal(body.ext, "out");
    await clients.carol.closed;
    assert.equal(await stopServer(server), 0);
    await Promise.all([clients.alice.closed, clients.bob.closed]);
  } finally {
    server.child.kill("SIGKILL");
  }
  await restart(program, dataDir, token);
}

const [program] = process.argv.slice(2);
assert.ok(program, "usage: juggle_client.mjs <musterd>");
const dataDir = mkdtempSync(join(tmpdir(), "musterd-interop-"));
try {
  await run(program, dataDir);
  console.log("musterd speaks to an independent client");
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
