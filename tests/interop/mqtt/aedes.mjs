// muster's MQTT driver against npm's aedes, which shares no code with mosquitto: version 3.1.1 over TCP and WebSocket,
// every QoS, private and in groups; a login that it refuses; and a subscription that it refuses.
//   aedes.mjs <muster>
import assert from "node:assert/strict";
import { createServer as createHttp } from "node:http";
import { createServer } from "node:net";
import { Aedes } from "aedes";
import { WebSocketServer, createWebSocketStream } from "ws";
import { assertWhole, drive } from "../drive.mjs";

const [program] = process.argv.slice(2);
assert.ok(program, "usage: aedes.mjs <muster>");
const PASSWORD = "not-to-be-seen-anywhere";

const broker = await Aedes.createBroker({
  authenticate: (client, user, password, done) => done(null, !user || password?.toString() === PASSWORD),
  authorizeSubscribe: (client, filter, done) => done(null, filter.topic.startsWith("forbidden/") ? null : filter),
});

const listen = (server) =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));
const tcp = createServer(broker.handle);
const http = createHttp();
const sockets = new WebSocketServer({ server: http, handleProtocols: (names) => (names.has("mqtt") ? "mqtt" : false) });
sockets.on("connection", (socket, request) => broker.handle(createWebSocketStream(socket), request));
const targets = {
  TCP: `mqtt://127.0.0.1:${await listen(tcp)}`,
  WebSocket: `mqtt+ws://127.0.0.1:${await listen(http)}/mqtt`,
};

const options = ["--mqtt-version", "3.1.1", "--rate", "100", "--warmup", "200ms", "--duration", "1s"];
for (const [name, target] of Object.entries(targets)) {
  for (const qos of [0, 1, 2]) {
    const all = ["--target", target, "--qos", `${qos}`, ...options];
    const acks = qos > 0;
    assertWhole(await drive(program, "private", ["--clients", "10", ...all]), { acks, fanOut: 1 });
    assertWhole(await drive(program, "groups", ["--groups", "2", "--members", "5", ...all]), { acks, fanOut: 5 });
  }
  console.log(`ok - ${name}, QoS 0, 1 and 2, private and in groups`);
}

const login = ["--clients", "5", "--target", targets.TCP, "--user", "alice", ...options];
assertWhole(await drive(program, "private", login, { env: { MUSTER_PASSWORD: PASSWORD } }), { fanOut: 1 });
const wrong = await drive(program, "private", login, { env: { MUSTER_PASSWORD: `${PASSWORD}-wrong` } });
assert.equal(wrong.code, 4, wrong.text);
assert.match(wrong.text, /not authorized|bad user name or password/);
assert.ok(!wrong.text.includes(PASSWORD));
console.log("ok - the right password, and the wrong one");

const forbidden = ["--clients", "5", "--target", targets.TCP, "--topic-prefix", "forbidden", ...options];
const refused = await drive(program, "private", forbidden);
assert.equal(refused.code, 4, refused.text);
assert.match(refused.text, /unspecified error/);
console.log("ok - a subscription that is refused");

sockets.close();
http.closeAllConnections();
http.close();
tcp.close();
broker.close();
console.log("muster speaks to aedes");
process.exit(0);
