// muster's Socket.IO driver against npm's socket.io and the reference server of its contract: every topology, both
// meanings of a room, other names, namespaces, logins, TLS, refusals, and what goes wrong: binary events, a payload that
// is too large, slow clients, a server that is silent, killed or gone.
//   socketio.mjs <muster> <scripts/servers/socketio>
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { assertWhole, checkKilled, checkSilent, countOf, drive, sleep, stopWorker } from "../drive.mjs";
import { startServer } from "../server.mjs";

const [program, script] = process.argv.slice(2);
assert.ok(script, "usage: socketio.mjs <muster> <scripts/servers/socketio>");
const PASSWORD = "not-to-be-seen-anywhere";
const SHORT = ["--rate", "200", "--warmup", "100ms", "--duration", "500ms", "--delivery-grace", "15s"];
const KEEP_ALIVE = -15;
const NAMESPACE = 100001;
const BINARY = 100004;
const env = { SOCKETIO_TEST_PASSWORD: PASSWORD };
const server = startServer(script, [], env);
const at = (settings = "", port = server.plain, scheme = "socketio") => [
  "--target", `${scheme}://localhost:${port}${settings && "/?" + settings}`,
];

const ring = await drive(program, "private", ["--clients", "10", ...at(), ...SHORT]);
assertWhole(ring, { fanOut: 1 });
assert.match(ring.report.target.ack_meaning, /callback/);
assert.match(ring.report.target.delivery_semantics, /socket\.to/);
assertWhole(await drive(program, "group", ["--clients", "6", ...at(), ...SHORT]), { fanOut: 5 });
const shared = ["--groups", "3", "--members", "4", "--shared-groups"];
assertWhole(await drive(program, "groups", [...shared, ...at(), ...SHORT]), { fanOut: 3 });
assertWhole(await drive(program, "star", ["--senders", "3", "--receivers", "5", ...at(), ...SHORT]), { fanOut: 1 });
assertWhole(await drive(program, "private", ["--clients", "4", ...at("ack=off"), ...SHORT]), { acks: false, fanOut: 1 });
console.log("ok - socket.to: private, group, shared groups, star, without acknowledgements");

const echoing = [...at("nsp=/echo&echo=on"), ...SHORT];
const group = await drive(program, "group", ["--clients", "6", ...echoing]);
assertWhole(group, { fanOut: 6 });
assert.match(group.report.target.delivery_semantics, /io\.to/);
assertWhole(await drive(program, "broadcast", ["--clients", "8", ...echoing]), { fanOut: 8 });
assertWhole(await drive(program, "echo", ["--clients", "8", ...echoing]), { acks: false, fanOut: 1 });
for (const workload of ["broadcast", "echo"]) {
  const impossible = await drive(program, workload, ["--clients", "8", ...at(), ...SHORT]);
  assert.equal(impossible.code, 2, impossible.text);
}
// Who does not say what the server does sees it: the sender's own message is missing, or is one too many.
const missing = await drive(program, "group", ["--clients", "6", ...at("echo=on"), ...SHORT, "--delivery-grace", "2s"]);
assert.equal(missing.report.deliveries.lost, missing.report.publishes.acked);
const excess = await drive(program, "group", ["--clients", "6", ...at("nsp=/echo"), ...SHORT]);
assert.equal(excess.report.deliveries.unexpected, excess.report.publishes.acked);
console.log("ok - io.to: group, broadcast, echo; and what is said wrongly is seen");

const other = at("nsp=/chat&join=enter&publish=say&message=said");
assertWhole(await drive(program, "private", ["--clients", "4", ...other, ...SHORT]), { fanOut: 1 });
assertWhole(await drive(program, "private", ["--clients", "4", ...at("nsp=/asking"), ...SHORT]), { fanOut: 1 });
await sleep(100);
const asked = Math.max(...[...readFileSync(join(server.folder, "plain.log"), "utf8").matchAll(/^asked=(\d+)$/gm)].map((match) => Number(match[1])));
assert.ok(asked >= 100, "the recipients acknowledge what they are asked to");
const quota = await drive(program, "private", ["--clients", "4", ...at("nsp=/quota"), ...SHORT]);
const { publishes } = quota.report;
assert.equal(countOf(publishes.rejected_by_code, 429), publishes.attempted - publishes.acked, quota.text);
assert.ok(publishes.acked > 0 && publishes.acked < publishes.attempted);
assert.equal(quota.report.deliveries.lost, 0);
console.log("ok - other names, acknowledgements that the server asks for, refused publishes");

const locked = ["--clients", "4", "--user", "alice", ...at("nsp=/locked"), ...SHORT];
const welcome = await drive(program, "private", locked, { env: { MUSTER_PASSWORD: PASSWORD } });
assertWhole(welcome, { fanOut: 1 });
assert.equal(welcome.text.includes(PASSWORD), false, "the password is in no report");
const stranger = await drive(program, "private", locked, { env: { MUSTER_PASSWORD: "wrong" } });
assert.equal(stranger.code, 4, stranger.text);
assert.match(stranger.text, /CONNECT_ERROR/);
const nowhere = await drive(program, "private", ["--clients", "4", ...at("nsp=/none"), ...SHORT]);
assert.equal(nowhere.code, 4, nowhere.text);
assert.match(nowhere.text, new RegExp(`Invalid namespace.*\\(${NAMESPACE}\\)`));
const large = await drive(program, "private", ["--clients", "4", "--payload-bytes", "1000000", ...at(), ...SHORT]);
assert.equal(large.code, 4, large.text);
assert.match(large.text, /maxPayload/);
const binary = await drive(program, "private", ["--clients", "4", ...at("nsp=/binary"), ...SHORT, "--delivery-grace", "500ms"]);
assert.ok(countOf(binary.report.connections.dropped_by_code, BINARY) > 0, binary.text);
for (const wrong of ["echo=maybe", "nsp=chat", "message=", "room=a", "publish=%22", "join=a&join=b"]) {
  const { code, text } = await drive(program, "private", ["--clients", "4", ...at(wrong), ...SHORT]);
  assert.equal(code, 2, text);
}
console.log("ok - logins, an unknown namespace, maxPayload, binary events, settings that do not fit");

const trusted = [...at("", server.tls, "socketio+tls"), "--ca-file", join(server.folder, "ca.pem"), ...SHORT];
const tls = await drive(program, "private", ["--clients", "4", ...trusted]);
assertWhole(tls, { fanOut: 1 });
assert.match(tls.report.target.tls, /^TLSv1\.3/);
const unknown = await drive(program, "private", ["--clients", "4", ...at("", server.tls, "socketio+tls"), ...SHORT]);
assert.equal(unknown.code, 4, unknown.text);
assert.match(unknown.text, /TLS handshake failed/);
console.log("ok - TLS");

// Half of the clients do not answer pings for a while: the server ends their connections.
const impatient = startServer(script, ["500", "500"], env);
const load = ["--clients", "10", "--rate", "100", "--warmup", "0s", "--workers", "2", ...at("", impatient.plain)];
const slow = await drive(program, "private", [...load, "--duration", "4s"], {
  during: async (child) => (await sleep(1000), stopWorker(child, 2500)),
});
assert.equal(slow.code, 3, slow.text);
assert.ok(slow.report.connections.dropped >= 5, slow.text);
console.log(`ok - clients that do not answer: ${JSON.stringify(slow.report.connections.dropped_by_code)}`);

await checkSilent(program, load, impatient.pid, KEEP_ALIVE);
await checkKilled(program, at(), server.pid);
