// muster's NATS driver against nats-server: core, flushed and JetStream publishes, every topology, TLS, users, and what
// goes wrong: a wrong password, missing permissions, a slow consumer, a server that is killed.
//   nats.mjs <muster> <scripts/servers/nats>
import assert from "node:assert/strict";
import { readFileSync, readdirSync, existsSync } from "node:fs";
import { join } from "node:path";
import { assertWhole, checkKilled, countOf, drive } from "../drive.mjs";
import { checkLostConsumer, checkQueues } from "../queue.mjs";
import { startServer } from "../server.mjs";

const [program, script] = process.argv.slice(2);
assert.ok(script, "usage: nats.mjs <muster> <scripts/servers/nats>");
const PASSWORD = "not-to-be-seen-anywhere";
const PERMISSIONS = 15;
const SHORT = ["--rate", "100", "--warmup", "200ms", "--duration", "1s"];
const env = { NATS_PASSWORD: PASSWORD };
const server = startServer(script, [], env);
const at = (settings = "", port = server.plain, scheme = "nats") => [
  "--target", `${scheme}://127.0.0.1:${port}${settings && "/?" + settings}`,
];

function streamsLeft() {
  const folder = join(server.folder, "jetstream", "jetstream", "$G", "streams");
  return existsSync(folder) ? readdirSync(folder) : [];
}

const meanings = { none: /^none$/, flush: /^PONG/, jetstream: /^PubAck/ };
for (const ack of Object.keys(meanings)) {
  const options = [...at(`ack=${ack}`), ...SHORT];
  const acks = ack !== "none";
  const ring = await drive(program, "private", ["--clients", "10", ...options]);
  assertWhole(ring, { acks, fanOut: 1 });
  assert.match(ring.report.target.ack_meaning, meanings[ack]);
  assert.match(ring.report.target.server_version, /^nats-server 2\./);
  assert.equal("server_counters" in ring.report, false);
  // echo:false: the publisher does not hear itself.
  assertWhole(await drive(program, "group", ["--clients", "6", ...options]), { acks, fanOut: 5 });
  assertWhole(await drive(program, "groups", ["--groups", "3", "--members", "4", ...options]), { acks, fanOut: 3 });
  console.log(`ok - ack=${ack}: private, group, groups`);
}
assert.deepEqual(streamsLeft(), [], "the streams of the runs are taken away again");

const flush = [...at("ack=flush"), ...SHORT];
assertWhole(await drive(program, "broadcast", ["--clients", "8", ...flush]), { fanOut: 8 });
assertWhole(await drive(program, "echo", ["--clients", "8", ...flush]), { acks: false, fanOut: 1 });
assertWhole(await drive(program, "star", ["--senders", "3", "--receivers", "5", ...flush]), { fanOut: 1 });
const shared = ["--groups", "3", "--members", "4", "--shared-groups"];
assertWhole(await drive(program, "groups", [...shared, ...flush]), { fanOut: 3 });
assertWhole(await drive(program, "private", ["--clients", "8", ...at("ack=jetstream&headers=on&storage=memory"), ...SHORT]), {
  fanOut: 1,
});
console.log("ok - broadcast, echo, star, shared groups, headers");

const shares = /SUB muster\.[0-9a-f]{16}\.queue\.\d+ consumers \d+\r\n/;
for (const ack of ["none", "flush"]) {
  const queue = await checkQueues(program, server.plain, (port) => at(`ack=${ack}`, port), shares, { acks: ack !== "none" });
  assert.match(queue.report.target.delivery_semantics, /^queue group/);
}
// Core NATS does not send again what a consumer had.
const core = await checkLostConsumer(program, server.plain, (port) => at("ack=flush", port), shares, { redelivers: false });
console.log(`ok - queues; of a consumer that is cut off ${core.lost} messages are lost`);

const pushed = /SUB _INBOX\.muster\.[0-9a-f]{16}\.queue\.\d+ consumers \d+\r\n/;
const jetstream = (port) => at("ack=jetstream", port);
const durable = await checkQueues(program, server.plain, jetstream, pushed);
assert.match(durable.report.target.delivery_semantics, /^durable JetStream consumer/);
// What a consumer had and did not acknowledge comes to another, 5 s later.
const again = await checkLostConsumer(program, server.plain, jetstream, pushed, { redelivers: true, duration: "7s" });
assert.ok(again.redelivered >= again.duplicate, "the server says so too");
console.log(`ok - queues with JetStream; of a consumer that is cut off ${again.duplicate} messages come again`);

const pulled = /SUB _INBOX\.muster\.[0-9a-f]{16}\.\d+\.pull \d+\r\n/;
const pull = (settings) => (port) => at(`ack=jetstream&consume=pull${settings}`, port);
const few = await checkQueues(program, server.plain, pull("&batch=9&max_ack_pending=20"), pulled);
assert.match(few.report.target.delivery_semantics, /pulled: at least once.*max_ack_pending 20$/);
assert.equal(few.report.server_counters.redelivered, 0);
const abandoned = await checkLostConsumer(program, server.plain, pull(""), pulled, { redelivers: true, duration: "7s" });
assert.ok(abandoned.redelivered >= abandoned.duplicate, "the server says so too");
console.log(`ok - pull consumers; of one that is cut off ${abandoned.duplicate} messages come again`);

const load = ["--clients", "10", "--senders", "2", "--rounds", "130"];
const backlog = await drive(program, "backlog", [...load, ...at("ack=jetstream")]);
assertWhole(backlog, { fanOut: 1 });
assert.deepEqual([backlog.report.backlog.returned, backlog.report.backlog.complete], [10, 10], backlog.text);
const nowhere = await drive(program, "backlog", [...load, ...at("ack=flush")]);
assert.equal(nowhere.code, 2, nowhere.text);
assert.match(nowhere.text, /keeps nothing for users who are offline/);
assert.deepEqual(streamsLeft(), [], "streams and consumers are taken away again");
console.log("ok - a backlog of durable consumers");

const tls = await drive(program, "private", [
  "--clients", "8", ...at("ack=flush", server.tls, "nats+tls"), "--ca-file", join(server.folder, "ca.pem"), ...SHORT,
]);
assertWhole(tls, { fanOut: 1 });
assert.match(tls.report.target.tls, /^TLSv1\.3/);
assert.equal(tls.report.latency.connect_tls.count, 8);
const unknown = await drive(program, "private", ["--clients", "8", ...at("", server.tls, "nats+tls"), ...SHORT]);
assert.equal(unknown.code, 4, unknown.text);
assert.match(unknown.text, /certificate verify failed/);
const demanded = await drive(program, "private", ["--clients", "8", ...at("", server.tls), ...SHORT]);
assert.equal(demanded.code, 4, demanded.text);
assert.match(demanded.text, /demands TLS/);
console.log("ok - TLS behind the greeting");

const alice = ["--user", "alice"];
const welcome = await drive(program, "private", ["--clients", "4", ...flush, ...alice], { env: { MUSTER_PASSWORD: PASSWORD } });
assertWhole(welcome, { fanOut: 1 });
assert.equal(welcome.text.includes(PASSWORD), false, "the password is in no report");
const stranger = await drive(program, "private", ["--clients", "4", ...flush, ...alice], { env: { MUSTER_PASSWORD: "wrong" } });
assert.equal(stranger.code, 4, stranger.text);
assert.match(stranger.text, /Authorization Violation/);
console.log("ok - users, a wrong password");

// Publishes that are not allowed: named at each publish where a PONG follows, at the connection's end otherwise.
const mute = ["--clients", "4", "--user", "mute", ...SHORT];
const refused = await drive(program, "private", [...at("ack=flush"), ...mute], { env: { MUSTER_PASSWORD: PASSWORD } });
assert.ok(refused.report, refused.text);
assert.equal(refused.report.publishes.acked, 0);
assert.equal(countOf(refused.report.publishes.rejected_by_code, PERMISSIONS), refused.report.publishes.attempted);
const cut = await drive(program, "private", [...at("ack=none"), ...mute], { env: { MUSTER_PASSWORD: PASSWORD } });
assert.equal(cut.code, 3, cut.text);
assert.equal(countOf(cut.report.connections.dropped_by_code, PERMISSIONS), 4);
console.log("ok - missing permissions");

const bad = await drive(program, "private", ["--clients", "4", ...at("ack=maybe"), ...SHORT]);
assert.equal(bad.code, 2, bad.text);
for (const settings of ["ack=flush&consume=pull", "ack=jetstream&batch=0&consume=pull", "ack=jetstream&batch=5"]) {
  const queue = ["--senders", "2", "--receivers", "2", "--queues", "1", ...at(settings), ...SHORT];
  const refused = await drive(program, "queue", queue);
  assert.equal(refused.code, 2, refused.text);
  assert.match(refused.text, /--target: (consume|batch)=/);
}
const closedLoop = await drive(program, "private", ["--clients", "4", ...at(), "--load", "closed", "--outstanding", "1", "--duration", "1s"]);
assert.equal(closedLoop.code, 2, closedLoop.text);
console.log("ok - settings that do not fit");

// 4 KiB may wait for a client, and a group of 20 senders sends 3 KiB each, all at once.
const narrow = startServer(script, ["max_payload: 4096", "max_pending: 4096"], env);
const slow = await drive(program, "group", [
  "--clients", "20", "--group-senders", "20", "--payload-bytes", "3000", "--rate", "4000", "--warmup", "0s", "--duration",
  "1s", "--target", `nats://127.0.0.1:${narrow.plain}/?ack=flush`,
]);
assert.equal(slow.code, 3, slow.text);
assert.ok(slow.report.connections.dropped > 0, "slow consumers are cut off");
assert.match(readFileSync(join(narrow.folder, "plain.log"), "utf8"), /Slow Consumer/);
console.log(`ok - slow consumers: ${JSON.stringify(slow.report.connections.dropped_by_code)}`);

await checkKilled(program, at("ack=jetstream"), server.pid);
