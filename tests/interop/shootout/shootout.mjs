// musterd --shootout against clients that share no code with it: npm's ws for JSON and binary, Phoenix's own client
// (frames of version 2 and 1) and Rails' own ActionCable client. Each protocol: echo, then broadcasts of several senders
// to all clients: no loss, no repetition, each sender's order, the result after the sender's own copy.
// Then muster's drivers (shootout_tool) against musterd and against servers made with npm's ws, which print, order and
// time their messages as differently as the suite's own servers do.
//   shootout.mjs <musterd> <shootout_tool>
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Socket } from "phoenix";
import WebSocket, { WebSocketServer } from "ws";

const CLIENTS = 50;
const SENDERS = 5;
const MESSAGES = 20;
const LIMIT_MS = 20000;

const [program, tool] = process.argv.slice(2);
assert.ok(tool, "usage: shootout.mjs <musterd> <shootout_tool>");

const within = (promise, what) => {
  let timer;
  const late = new Promise((resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing for ${LIMIT_MS} ms`)), LIMIT_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

// Every client of a test is one of these: sink is told of each broadcast's content, echo and broadcast resolve with the
// content that came back to the sender.
class Answers {
  waiting = [];
  expect() {
    return within(new Promise((resolve) => this.waiting.push(resolve)), "an answer");
  }
  came(content) {
    this.waiting.shift()(content);
  }
}

const openSocket = (url, options) =>
  within(
    new Promise((resolve, reject) => {
      const socket = new WebSocket(url, { perMessageDeflate: false, ...options });
      socket.on("open", () => resolve(socket));
      socket.on("error", reject);
    }),
    `opening ${url}`,
  );

async function jsonClient(base, sink, path = "/ws") {
  const socket = await openSocket(base + path);
  const echoes = new Answers();
  const results = new Answers();
  socket.on("message", (data, binary) => {
    assert.equal(binary, false);
    const { type, payload } = JSON.parse(data);
    if (type === "echo") echoes.came(payload.padding);
    else if (type === "broadcast") sink(payload.padding);
    else if (type === "broadcastResult") results.came(payload.padding);
    else assert.fail(`a message of type ${type}`);
  });
  const send = (type, padding) =>
    socket.send(JSON.stringify({ type, payload: { sendTime: `${Date.now()}000000`, padding } }));
  return {
    echo: (content) => (send("echo", content), echoes.expect()),
    broadcast: (content) => (send("broadcast", content), results.expect()),
    close: () => socket.close(),
  };
}

async function binaryClient(base, sink) {
  const socket = await openSocket(`${base}/binary`);
  const echoes = new Answers();
  const results = new Answers();
  socket.on("message", (data, binary) => {
    assert.equal(binary, true);
    assert.equal(data.readUInt32BE(1), data.length - 5);
    const content = data.subarray(13).toString();
    const type = String.fromCharCode(data[0]);
    if (type === "e") echoes.came(content);
    else if (type === "b") sink(content);
    else if (type === "r") results.came(content);
    else assert.fail(`a message of type ${type}`);
  });
  const send = (type, content) => {
    const padding = Buffer.from(content);
    const head = Buffer.alloc(13);
    head.write(type, 0);
    head.writeUInt32BE(8 + padding.length, 1);
    head.writeBigUInt64BE(BigInt(Date.now()) * 1000000n, 5);
    socket.send(Buffer.concat([head, padding]));
  };
  return {
    echo: (content) => (send("e", content), echoes.expect()),
    broadcast: (content) => (send("b", content), results.expect()),
    close: () => socket.close(),
  };
}

const version1 = {
  vsn: "1.0.0",
  encode: ({ topic, event, payload, ref }, callback) => callback(JSON.stringify({ topic, event, payload, ref })),
  decode: (text, callback) => callback({ join_ref: null, ...JSON.parse(text) }),
};

const phoenixClient = (options) => async (base, sink) => {
  const socket = new Socket(`${base}/socket`, {
    transport: WebSocket,
    heartbeatIntervalMs: 500,
    reconnectAfterMs: () => 3600000,
    ...options,
  });
  socket.connect();
  const channel = socket.channel("room:lobby", {});
  const answer = (push, what) =>
    within(
      new Promise((resolve, reject) => {
        push.receive("ok", resolve);
        push.receive("error", (reason) => reject(new Error(`${what}: ${JSON.stringify(reason)}`)));
      }),
      what,
    );
  await answer(channel.join(), "joining");
  channel.on("broadcast", ({ type, body }) => {
    assert.equal(type, "broadcast");
    sink(body.padding);
  });
  const ask = async (event, padding, type) => {
    const response = await answer(channel.push(event, { body: { sendTime: "1", padding } }), event);
    assert.equal(response.type, type);
    return response.body.padding;
  };
  return {
    echo: (content) => ask("echo", content, "echo"),
    broadcast: (content) => ask("broadcast", content, "broadcastResult"),
    refused: () => answer(socket.channel("room:cellar", {}).join(), "joining the cellar"),
    unknown: () => answer(channel.push("sing", {}), "singing"),
    heartbeat: () => within(new Promise((resolve) => socket.ping(resolve)), "a heartbeat"),
    leave: () => answer(channel.leave(), "leaving"),
    close: () => socket.disconnect(),
  };
};

// Rails' client is made for pages.
globalThis.addEventListener = globalThis.removeEventListener = () => {};
globalThis.document = { visibilityState: "visible" };
const { default: ActionCable } = await import("@rails/actioncable");
ActionCable.adapters.WebSocket = WebSocket;

async function cableClient(base, sink) {
  const consumer = ActionCable.createConsumer(`${base}/cable`);
  const echoes = new Answers();
  const results = new Answers();
  const received = ({ action, payload }) => {
    if (action === "echo") echoes.came(payload.padding);
    else if (action === "broadcast") sink(payload.padding);
    else if (action === "broadcastResult") results.came(payload.padding);
    else assert.fail(`action ${action}`);
  };
  const subscribe = (channel) =>
    within(
      new Promise((resolve, reject) => {
        const subscription = consumer.subscriptions.create(channel, {
          connected: () => resolve(subscription),
          rejected: () => reject(new Error("rejected")),
          received,
        });
      }),
      `subscribing to ${channel}`,
    );
  const subscription = await subscribe("BenchmarkChannel");
  const perform = (action, padding) => subscription.perform(action, { payload: { sendTime: "1", padding } });
  return {
    echo: (content) => (perform("echo", content), echoes.expect()),
    broadcast: (content) => (perform("broadcast", content), results.expect()),
    refused: () => subscribe("OtherChannel"),
    protocol: () => consumer.connection.getProtocol(),
    pingedAt: () => consumer.connection.monitor.pingedAt,
    close: () => consumer.disconnect(),
  };
}

async function startServer(dataDir) {
  const args = ["--data", dataDir, "--gateways", "2", "--shootout", "0"];
  for (const port of ["--api-port", "--navigator-port", "--ws-port", "--admin-port"]) args.push(port, "0");
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  const line = await within(
    new Promise((resolve, reject) => {
      createInterface(child.stdout).once("line", resolve);
      child.once("exit", (code) => reject(new Error(`musterd ended with ${code}`)));
    }),
    "starting musterd",
  );
  const address = /shootout (\S+)/.exec(line)?.[1];
  assert.ok(address, `no shootout address in: ${line}`);
  return { child, address };
}

const metrics = async (address) => (await fetch(`http://${address}/metrics`)).json();

async function broadcasts(address, makeClient) {
  const before = await metrics(address);
  const clients = [];
  const seen = [];
  let count = 0;
  let allSeen;
  const complete = within(new Promise((resolve) => (allSeen = resolve)), "the broadcasts");
  for (let i = 0; i < CLIENTS; i++) {
    const next = new Array(SENDERS).fill(0);
    seen.push(next);
    const sink = (content) => {
      const [sender, number] = content.split(":").map(Number);
      assert.equal(number, next[sender], `client ${i}, sender ${sender}: lost, repeated or out of order`);
      next[sender]++;
      if (++count === CLIENTS * SENDERS * MESSAGES) allSeen();
    };
    clients.push(await makeClient(`ws://${address}`, sink));
  }
  assert.equal(await clients[7].echo("an \"echo\", \u00e9\u20ac"), "an \"echo\", \u00e9\u20ac");
  await Promise.all(
    clients.slice(0, SENDERS).map(async (client, sender) => {
      for (let number = 0; number < MESSAGES; number++) {
        const content = `${sender}:${number}`;
        assert.equal(await client.broadcast(content), content);
        assert.ok(seen[sender][sender] > number, "the result came before the sender's own copy");
      }
    }),
  );
  const after = await metrics(address);
  assert.equal(after.copies - before.copies, CLIENTS * SENDERS * MESSAGES, "a result came before the fan-out was done");
  await complete;
  for (const next of seen) assert.deepEqual(next, new Array(SENDERS).fill(MESSAGES));
  for (const client of clients) client.close();
}

// Byte for byte what the fact sheet holds.
async function vectors(address) {
  const socket = await openSocket(`ws://${address}/json`);
  const next = () => within(new Promise((resolve) => socket.once("message", (data) => resolve(data.toString()))), "a frame");
  const text = '{"type":"echo","payload":{"sendTime":"1476547890123456789"}}';
  let answer = next();
  socket.send(text);
  assert.equal(await answer, text);
  answer = next();
  socket.send('{"type":"sing","payload":1}');
  assert.deepEqual(JSON.parse(await answer), { type: "error", payload: "unknown message type" });
  answer = new Promise((resolve) => socket.once("close", resolve));
  socket.send("garbage");
  assert.equal(await within(answer, "the close"), 1007);
}

async function phoenixManners(address) {
  const client = await phoenixClient({})(`ws://${address}`, () => {});
  await assert.rejects(client.refused(), /unmatched topic/);
  await assert.rejects(client.unknown(), /unknown message type/);
  await client.heartbeat();
  await client.leave();
  client.close();
}

async function cableManners(address) {
  const client = await cableClient(`ws://${address}`, () => {});
  assert.equal(client.protocol(), "actioncable-v1-json");
  await assert.rejects(client.refused(), /rejected/);
  const first = client.pingedAt();
  for (const until = Date.now() + 8000; client.pingedAt() === first && Date.now() < until; )
    await new Promise((resolve) => setTimeout(resolve, 50));
  assert.notEqual(client.pingedAt(), first, "no ping");
  client.close();
}

async function drive(url, { early = 0 } = {}) {
  const child = spawn(tool, [url, CLIENTS, MESSAGES].map(String), { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("close", resolve));
  let text = "";
  child.stdout.on("data", (data) => (text += data));
  try {
    await within(ended, `driving ${url}`);
  } finally {
    child.kill("SIGKILL");
  }
  const want = { established: CLIENTS, failed: 0, failed_code: 0, echoes: CLIENTS, acked: MESSAGES };
  const got = JSON.parse(text);
  assert.ok(got.early_results === 0 || early, `${url}: ${text}`);
  delete got.early_results;
  assert.deepEqual(got, { ...want, deliveries: CLIENTS * MESSAGES, unexpected: 0 }, url);
}

// The channel servers, as their frameworks' documents and the fact sheet describe the frames.
const LOBBY = "room:lobby";
const CHANNEL = JSON.stringify({ channel: "BenchmarkChannel" });
const strangers = {
  // Registers each connection only some time after its 101, as half of the suite's servers may.
  json(socket, everybody) {
    const backlog = [];
    let registered = false;
    const handle = (data) => {
      const { type, payload } = JSON.parse(data);
      const write = (to, kind, extra) => to.send(JSON.stringify({ ...extra, payload, type: kind }, null, "\t"));
      if (type === "echo") return write(socket, "echo");
      for (const other of everybody) write(other, "broadcast");
      return write(socket, "broadcastResult", { listenCount: everybody.size });
    };
    socket.on("message", (data) => (registered ? handle(data) : backlog.push(data)));
    setTimeout(() => {
      registered = true;
      everybody.add(socket);
      backlog.forEach(handle);
    }, 20);
  },
  binary(socket, everybody) {
    everybody.add(socket);
    socket.on("message", (data) => {
      if (data[0] === 0x65) return socket.send(data);
      for (const other of everybody) other.send(data);
      data[0] = 0x72;
      return socket.send(data);
    });
  },
  phoenix(socket, everybody) {
    socket.on("message", (data) => {
      const { topic, event, payload, ref } = JSON.parse(data);
      const reply = (response) =>
        socket.send(JSON.stringify({ topic, ref, payload: { status: "ok", response }, event: "phx_reply" }));
      assert.equal(topic, LOBBY);
      if (event === "phx_join") {
        everybody.add(socket);
        socket.send(JSON.stringify({ topic, ref: null, payload: {}, event: "presence_state" }));
        return reply({});
      }
      const { body } = payload;
      if (event === "echo") return reply({ body, type: "echo" });
      const all = { topic, ref: null, payload: { body, type: "broadcast" }, event: "broadcast" };
      for (const other of everybody) other.send(JSON.stringify(all));
      return reply({ body, type: "broadcastResult" });
    });
  },
  // The result rides another road than the data and comes first.
  cable(socket, everybody) {
    assert.equal(socket.protocol, "actioncable-v1-json");
    setTimeout(() => socket.send('{"type":"welcome"}'), 10);
    socket.on("message", (text) => {
      const { command, identifier, data } = JSON.parse(text);
      assert.equal(identifier, CHANNEL);
      if (command === "subscribe") {
        everybody.add(socket);
        return socket.send(JSON.stringify({ type: "confirm_subscription", identifier }));
      }
      const { action, payload } = JSON.parse(data);
      const write = (to, kind) => to.send(JSON.stringify({ identifier, message: { payload, action: kind } }));
      socket.send(JSON.stringify({ type: "ping", message: 1 }));
      if (action === "echo") return write(socket, "echo");
      write(socket, "broadcastResult");
      for (const other of everybody) write(other, "broadcast");
      return undefined;
    });
  },
};

async function driveStrangers() {
  for (const [scheme, serve] of Object.entries(strangers)) {
    const everybody = new Set();
    const server = new WebSocketServer({
      host: "127.0.0.1",
      port: 0,
      perMessageDeflate: false,
      handleProtocols: (protocols) => [...protocols][0],
    });
    server.on("connection", (socket) => {
      socket.on("close", () => everybody.delete(socket));
      serve(socket, everybody);
    });
    await within(new Promise((resolve) => server.once("listening", resolve)), "listening");
    try {
      await drive(`ws+${scheme}://127.0.0.1:${server.address().port}`, { early: scheme === "cable" });
    } finally {
      for (const socket of server.clients) socket.terminate();
      server.close();
    }
    console.log(`ok - the driver of ws+${scheme} against a stranger`);
  }
}

const dataDir = mkdtempSync(join(tmpdir(), "musterd-shootout-"));
const server = await startServer(dataDir);
try {
  const { address } = server;
  await vectors(address);
  for (const [name, makeClient] of Object.entries({
    json: jsonClient,
    binary: binaryClient,
    "phoenix 2.0.0": phoenixClient({}),
    "phoenix 1.0.0": phoenixClient(version1),
    actioncable: cableClient,
  })) {
    await broadcasts(address, makeClient);
    console.log(`ok - ${name}: ${SENDERS * MESSAGES} broadcasts to ${CLIENTS} clients`);
  }
  await phoenixManners(address);
  await cableManners(address);
  for (const scheme of Object.keys(strangers)) {
    await drive(`ws+${scheme}://${address}`);
    console.log(`ok - the driver of ws+${scheme} against musterd`);
  }
  await driveStrangers();
  const { slow_readers_dropped, protocol_errors } = await metrics(address);
  assert.equal(slow_readers_dropped, 0);
  assert.equal(protocol_errors, 3); // sing and garbage as JSON, sing to Phoenix
  const ended = new Promise((resolve) => server.child.once("exit", resolve));
  server.child.kill("SIGTERM");
  assert.equal(await within(ended, "stopping musterd"), 0);
  console.log("the shootout server speaks to everybody's clients");
} finally {
  server.child.kill("SIGKILL");
  rmSync(dataDir, { recursive: true, force: true });
}
