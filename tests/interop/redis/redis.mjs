// muster's Redis driver against redis-server: RESP3 and RESP2, every topology, TLS, users, what PUBLISH says of its
// receivers, and what goes wrong: a wrong password, missing permissions, a slow subscriber, a server that is killed.
//   redis.mjs <muster> <scripts/servers/redis>
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { assertWhole, checkKilled, drive, faults } from "../drive.mjs";
import { checkLostConsumer, checkQueues } from "../queue.mjs";
import { startServer } from "../server.mjs";

const [program, script] = process.argv.slice(2);
assert.ok(script, "usage: redis.mjs <muster> <scripts/servers/redis>");
const PASSWORD = "not-to-be-seen-anywhere";
const SHORT = ["--rate", "100", "--warmup", "200ms", "--duration", "1s"];
const env = { REDIS_TEST_PASSWORD: PASSWORD };
const server = startServer(script, [], env);
const at = (settings = "", port = server.plain, scheme = "redis", host = "127.0.0.1") => [
  "--target", `${scheme}://${host}:${port}${settings && "/?" + settings}`,
];

// The server's own count of receivers and what they observed are the same when nothing is lost.
function assertCounted(result, options) {
  assertWhole(result, options);
  assert.deepEqual(result.report.server_counters, { receivers: result.report.deliveries.observed });
}

const plain = [...at(), ...SHORT];
const ring = await drive(program, "private", ["--clients", "10", ...plain]);
assertCounted(ring, { fanOut: 1 });
assert.match(ring.report.target.server_version, /^redis [67]\./);
// A publisher that is subscribed hears itself, and the ledger expects it.
assertCounted(await drive(program, "group", ["--clients", "6", ...plain]), { fanOut: 6 });
assertCounted(await drive(program, "groups", ["--groups", "3", "--members", "4", ...plain]), { fanOut: 4 });
const shared = ["--groups", "3", "--members", "4", "--shared-groups"];
assertCounted(await drive(program, "groups", [...shared, ...plain]), { fanOut: 4 });
assertCounted(await drive(program, "broadcast", ["--clients", "8", ...plain]), { fanOut: 8 });
assertCounted(await drive(program, "echo", ["--clients", "8", ...plain]), { acks: false, fanOut: 1 });
assertCounted(await drive(program, "star", ["--senders", "3", "--receivers", "5", ...plain]), { fanOut: 1 });
console.log("ok - RESP3: private, groups, broadcast, echo, star");

const resp2 = [...at("resp=2"), ...SHORT];
const star = await drive(program, "star", ["--senders", "3", "--receivers", "5", ...resp2]);
assertCounted(star, { fanOut: 1 });
assert.match(star.report.target.protocol_title, /RESP2/);
const both = await drive(program, "private", ["--clients", "4", ...resp2]);
assert.equal(both.code, 2, both.text);
assert.match(both.text, /RESP2 connection that is subscribed cannot publish/);
console.log("ok - RESP2 where senders are no recipients");

const reads = /XREADGROUP\r\n/;
for (const settings of ["", "resp=2&maxlen=1000"]) {
  const queue = await checkQueues(program, server.plain, (port) => at(settings, port), reads);
  assert.match(queue.report.target.protocol_title, /^Redis streams/);
  assert.equal("server_counters" in queue.report, false);
}
// What a consumer had read and not acknowledged stays its own; it had it, so nothing is lost or comes twice.
const { lost } = await checkLostConsumer(program, server.plain, (port) => at("", port), reads, { redelivers: false });
// With claim_ms the others take over what it had: all of it comes, and what it had got comes twice.
for (const settings of ["claim_ms=1000", "resp=2&claim_ms=1000"]) {
  const claimed = await checkLostConsumer(program, server.plain, (port) => at(settings, port), reads, {
    redelivers: true,
    duration: "3s",
  });
  assert.ok(claimed.redelivered >= claimed.duplicate, "what was claimed is counted");
  console.log(`ok - ${settings}: ${claimed.redelivered} entries are claimed from a consumer that is gone`);
}
const needless = ["--clients", "4", ...at("claim_ms=5"), ...SHORT];
assert.equal((await drive(program, "private", needless)).code, 2, "nobody claims messages of channels");
const keys = spawnSync("redis-cli", ["-p", server.plain, "keys", "*"], { encoding: "utf8" });
if (keys.status === 0) assert.equal(keys.stdout.trim(), "", "the streams of the runs are taken away again");
console.log(`ok - streams; of a consumer that is cut off ${lost} messages are lost`);

const trusted = [...at("", server.tls, "rediss", "localhost"), "--ca-file", join(server.folder, "ca.pem"), ...SHORT];
const tls = await drive(program, "private", ["--clients", "8", ...trusted]);
assertCounted(tls, { fanOut: 1 });
assert.match(tls.report.target.tls, /^TLSv1\.3/);
const unknown = await drive(program, "private", ["--clients", "8", ...at("", server.tls, "rediss"), ...SHORT]);
assert.equal(unknown.code, 4, unknown.text);
assert.match(unknown.text, /certificate verify failed/);
console.log("ok - TLS");

const as = (user, password) => [["--clients", "4", "--user", user, ...plain], { env: { MUSTER_PASSWORD: password } }];
const welcome = await drive(program, "private", ...as("alice", PASSWORD));
assertCounted(welcome, { fanOut: 1 });
assert.equal(welcome.text.includes(PASSWORD), false, "the password is in no report");
const stranger = await drive(program, "private", ...as("alice", "wrong"));
assert.equal(stranger.code, 4, stranger.text);
assert.match(stranger.text, /WRONGPASS/);
const mute = await drive(program, "private", ...as("mute", PASSWORD));
assert.equal(mute.code, 4, mute.text);
assert.match(mute.text, /NOPERM/);
console.log("ok - users, a wrong password, missing permissions");

// Redis counts what waits for a subscriber behind the first 16 KiB: two messages of 12 KB at once are over 4 KiB of it.
const narrow = startServer(script, ["client-output-buffer-limit pubsub 4kb 4kb 1"], env);
const slow = await drive(program, "group", [
  "--clients", "10", "--group-senders", "10", "--payload-bytes", "24000", "--rate", "500", "--warmup", "0s", "--duration", "1s",
  ...at("", narrow.plain),
]);
assert.equal(slow.code, 3, slow.text);
assert.ok(slow.report.connections.dropped > 0, "slow subscribers are cut off");
assert.ok(faults(slow.report).some((reason) => /dropped/.test(reason)));
console.log(`ok - slow subscribers: ${JSON.stringify(slow.report.connections.dropped_by_code)}`);

await checkKilled(program, at(), server.pid);
