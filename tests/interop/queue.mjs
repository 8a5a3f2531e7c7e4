// Queues through a real broker, shared by the tests of the drivers that know them: each message to one of the consumers,
// something for every consumer, and what becomes of the messages that a consumer had when it was cut off.
import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { assertWhole, drive, sleep } from "./drive.mjs";

const SAID_MAX = 4096;
const PAYLOAD = 3000;
const CONSUMERS = 12;

// A TCP proxy in front of a server: what each connection said at first, how much it heard, and a way to end it.
export async function tap(port) {
  const connections = [];
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    const connection = { said: "", heard: 0, mute: false, cut: () => (near.destroy(), far.destroy()) };
    connections.push(connection);
    near.on("data", (data) => {
      if (connection.said.length < SAID_MAX) connection.said += data.toString("latin1");
      if (!connection.mute) far.write(data);
    });
    far.on("data", (data) => ((connection.heard += data.length), near.write(data)));
    for (const socket of [near, far]) socket.on("error", connection.cut).on("close", connection.cut);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => (server.close(), connections.forEach(({ cut }) => cut()));
  return { port: server.address().port, connections, close };
}

const population = ["--senders", "4", "--receivers", `${CONSUMERS}`, "--queues", "2", "--payload-bytes", `${PAYLOAD}`];

// at(port): the options that say the target. consumes: how a consumer's connection is known by what it says.
export async function checkQueues(program, port, at, consumes, { acks = true } = {}) {
  const between = await tap(port);
  const load = ["--rate", "200", "--warmup", "200ms", "--duration", "1s"];
  const result = await drive(program, "queue", [...population, ...at(between.port), ...load]);
  between.close();
  assertWhole(result, { acks, fanOut: 1 });
  const consumers = between.connections.filter(({ said }) => consumes.test(said));
  assert.equal(consumers.length, CONSUMERS, "every consumer is known");
  for (const { heard } of consumers) assert.ok(heard > PAYLOAD, "every consumer gets messages");
  return result;
}

// One consumer's words do not reach the server any more, its ACKs among them, and then it is gone. Messages that it had
// and did not acknowledge come to another consumer: they are duplicates where it had got them, and none is lost. A run
// ends when all has arrived, so the duration must be longer than the server waits before it sends again.
export async function checkLostConsumer(program, port, at, consumes, { redelivers, duration = "2s" }) {
  const between = await tap(port);
  const during = async () => {
    let victim;
    for (const until = Date.now() + 10000; !victim && Date.now() < until; await sleep(20)) {
      victim = between.connections.find(({ said, heard }) => consumes.test(said) && heard > PAYLOAD);
    }
    assert.ok(victim, "no consumer has got anything");
    victim.mute = true;
    await sleep(600);
    victim.cut();
  };
  const load = ["--rate", "200", "--warmup", "0s", "--duration", duration, "--delivery-grace", "9s"];
  const { code, report, text } = await drive(program, "queue", [...population, ...at(between.port), ...load], { during });
  between.close();
  assert.equal(code, 3, text);
  const { connections, deliveries } = report;
  assert.equal(connections.dropped, 1, text);
  assert.equal(deliveries.expected, deliveries.observed + deliveries.lost, text);
  if (redelivers) assert.equal(deliveries.lost, 0, text);
  if (redelivers) assert.ok(deliveries.duplicate > 0, text);
  if (!redelivers) assert.equal(deliveries.duplicate, 0, text);
  assert.equal(deliveries.unexpected + deliveries.corrupt, 0, text);
  return { ...deliveries, redelivered: report.server_counters?.redelivered };
}
