// muster's STOMP driver against RabbitMQ: TCP and WebSocket, TLS, every topology, receipts, users, heart-beats, and what
// goes wrong: a wrong password, missing permissions, a consumer that does not read, a server that is killed.
//   rabbitmq.mjs <muster> <scripts/servers/rabbitmq>
import assert from "node:assert/strict";
import { join } from "node:path";
import { assertWhole, checkKilled, checkSilent, countOf, drive, sleep, stopWorker } from "../drive.mjs";
import { checkLostConsumer, checkQueues } from "../queue.mjs";
import { startServer } from "../server.mjs";

const [program, script] = process.argv.slice(2);
assert.ok(script, "usage: rabbitmq.mjs <muster> <scripts/servers/rabbitmq>");
const PASSWORD = "not-to-be-seen-anywhere";
const SHORT = ["--rate", "200", "--warmup", "100ms", "--duration", "500ms", "--delivery-grace", "15s"];
const CONNECT = 2;
const ACCESS = 4;
const DESTINATION = 6;
const KEEP_ALIVE = -15;
const server = startServer(script, [], { RABBITMQ_TEST_PASSWORD: PASSWORD });
const at = (scheme = "stomp", settings = "") => {
  const port = { stomp: server.plain, "stomp+tls": server.tls, "stomp+ws": server.ws, "stomp+wss": server.wss }[scheme];
  return ["--target", `${scheme}://localhost:${port}${settings && "/?" + settings}`];
};

for (const scheme of ["stomp", "stomp+ws"]) {
  const plain = [...at(scheme), ...SHORT];
  const ring = await drive(program, "private", ["--clients", "10", ...plain]);
  assertWhole(ring, { fanOut: 1 });
  assert.match(ring.report.target.ack_meaning, /^RECEIPT/);
  assertWhole(await drive(program, "group", ["--clients", "6", ...plain]), { fanOut: 6 });
}
const tcp = [...at(), ...SHORT];
const star = await drive(program, "star", ["--senders", "3", "--receivers", "5", ...tcp]);
assertWhole(star, { fanOut: 1 });
assert.match(star.report.target.server_version, /^RabbitMQ\/[34]\./);
assertWhole(await drive(program, "broadcast", ["--clients", "8", ...tcp]), { fanOut: 8 });
assertWhole(await drive(program, "echo", ["--clients", "8", ...tcp]), { acks: false, fanOut: 1 });
const shared = ["--groups", "3", "--members", "4", "--shared-groups"];
assertWhole(await drive(program, "groups", [...shared, ...tcp]), { fanOut: 4 });
assertWhole(await drive(program, "private", ["--clients", "4", ...at("stomp", "receipts=off"), ...SHORT]), {
  acks: false,
  fanOut: 1,
});
const exchange = at("stomp", "prefix=/exchange/amq.topic/&vhost=%2F");
assertWhole(await drive(program, "group", ["--clients", "4", ...exchange, ...SHORT]), { fanOut: 4 });
console.log("ok - TCP and WebSocket: private, group, shared groups, star, broadcast, echo; other prefixes");

const reads = /SUBSCRIBE\nid:0\ndestination:\/queue\/muster/;
const queueAt = (settings) => (port) => ["--target", `stomp://localhost:${port}/?${settings}`];
for (const ack of ["individual", "auto"]) {
  const queue = await checkQueues(program, server.plain, queueAt(`ack=${ack}`), reads);
  assert.match(queue.report.target.delivery_semantics, /^queue with ack:/);
}
// What a consumer had and did not acknowledge comes to another.
const { duplicate, redelivered } = await checkLostConsumer(program, server.plain, queueAt("prefetch=50"), reads, { redelivers: true });
assert.ok(redelivered >= duplicate, "the broker says so too");
console.log(`ok - queues; of a consumer that is cut off ${duplicate} messages come again, none is lost`);

for (const scheme of ["stomp+tls", "stomp+wss"]) {
  const trusted = [...at(scheme), "--ca-file", join(server.folder, "ca.pem"), ...SHORT];
  const tls = await drive(program, "private", ["--clients", "4", ...trusted]);
  assertWhole(tls, { fanOut: 1 });
  assert.match(tls.report.target.tls, /^TLSv1\.3/);
  const unknown = await drive(program, "private", ["--clients", "4", ...at(scheme), ...SHORT]);
  assert.equal(unknown.code, 4, unknown.text);
  assert.match(unknown.text, /TLS handshake failed/);
}
console.log("ok - TLS");

const as = (user, password, scheme) => [
  ["--clients", "4", "--user", user, ...at(scheme), ...SHORT], { env: { MUSTER_PASSWORD: password } },
];
const welcome = await drive(program, "private", ...as("alice", PASSWORD));
assertWhole(welcome, { fanOut: 1 });
assert.equal(welcome.text.includes(PASSWORD), false, "the password is in no report");
const stranger = await drive(program, "private", ...as("alice", "wrong"));
assert.equal(stranger.code, 4, stranger.text);
assert.match(stranger.text, /Access refused for user 'alice'/);
const other = await drive(program, "private", ...as("alice", "wrong", "stomp+ws"));
assert.equal(other.code, 4, other.text);
assert.match(other.text, new RegExp(`Bad CONNECT \\(${CONNECT}\\)`));
const mute = await drive(program, "private", ...as("mute", PASSWORD));
assert.equal(mute.code, 3, mute.text);
assert.equal(countOf(mute.report.connections.dropped_by_code, ACCESS), 4, mute.text);
const nowhere = await drive(program, "private", ["--clients", "4", ...at("stomp", "prefix=/nowhere/"), ...SHORT]);
assert.equal(nowhere.code, 4, nowhere.text);
assert.match(nowhere.text, new RegExp(`\\(${DESTINATION}\\)`));
const noHost = await drive(program, "private", ["--clients", "4", ...at("stomp", "vhost=none"), ...SHORT]);
assert.equal(noHost.code, 4, noHost.text);
assert.match(noHost.text, /Virtual host 'none'/);
for (const wrong of ["receipts=maybe", "queue=a"]) {
  assert.equal((await drive(program, "private", ["--clients", "4", ...at("stomp", wrong), ...SHORT])).code, 2);
}
console.log("ok - users, a wrong password, missing permissions, unknown destinations and hosts");

// One of two workers does not read for longer than the broker waits for its heart-beats: the broker cuts it off.
const running = ["--clients", "10", "--warmup", "0s", "--workers", "2", "--keep-alive", "500ms", ...at()];
const slow = await drive(program, "group", [...running, "--rate", "20", "--duration", "5s"], {
  during: async (child) => (await sleep(1000), stopWorker(child, 3500)),
});
assert.equal(slow.code, 3, slow.text);
assert.ok(slow.report.connections.dropped >= 5, slow.text);
console.log(`ok - consumers that do not read: ${JSON.stringify(slow.report.connections.dropped_by_code)}`);

await checkSilent(program, running, server.pid, KEEP_ALIVE);
await checkKilled(program, at(), server.pid);
