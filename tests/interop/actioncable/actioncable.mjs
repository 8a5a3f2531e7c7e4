// muster's ActionCable driver against Rails' own server: Debian's ruby-actioncable in puma, on a free port of loopback.
// Every echo and every broadcast to every client, once. Rails hands the messages of one stream to a pool of threads, so
// their order is not its promise, and is printed instead of asserted.
//   actioncable.mjs <muster>
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { drive, faults, scratch } from "../drive.mjs";

const LIMIT_MS = 60000;
const CLIENTS = 20;
const [program] = process.argv.slice(2);
assert.ok(program, "usage: actioncable.mjs <muster>");

const ruby = spawnSync("ruby", ["-e", 'gem "actioncable"; gem "puma"; require "action_cable"'], { encoding: "utf8" });
if (ruby.error || ruby.status !== 0) {
  console.log("ruby, puma or actioncable is not installed on this machine");
  process.exit(77);
}

const config = fileURLToPath(new URL("config.ru", import.meta.url));
const args = ["--bind", "tcp://127.0.0.1:0", "--threads", "4:4", "--environment", "production", config];
const server = spawn("puma", args, { cwd: scratch, stdio: ["ignore", "pipe", "pipe"] });
process.prependListener("exit", () => server.kill("SIGKILL"));
let said = "";
const port = await new Promise((resolve, reject) => {
  const late = setTimeout(() => reject(new Error(`puma was not ready: ${said}`)), LIMIT_MS);
  const listen = (data) => {
    said += data;
    const address = /Listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(said);
    if (!address) return;
    clearTimeout(late);
    resolve(Number(address[1]));
  };
  server.stdout.on("data", listen);
  server.stderr.on("data", listen);
  server.once("error", reject);
  server.once("close", (code) => reject(new Error(`puma ended with ${code}: ${said}`)));
});

const target = ["--target", `ws+cable://127.0.0.1:${port}/cable`, "--clients", String(CLIENTS), "--delivery-grace", "10s"];
const unordered = /reordered|out of order/;

async function check(workload, options, { publishes, fanOut, acks }) {
  const { report, text } = await drive(program, workload, [...target, ...options]);
  assert.ok(report, text);
  assert.deepEqual(faults(report).filter((reason) => !unordered.test(reason)), [], text);
  assert.equal(report.connections.established, CLIENTS, text);
  assert.equal(report.publishes.attempted, publishes, text);
  assert.equal(report.publishes.acked, acks ? publishes : 0, text);
  const { expected, observed, lost, duplicate, corrupt, unexpected, reordered } = report.deliveries;
  const all = publishes * fanOut;
  assert.deepEqual(
    { expected, observed, lost, duplicate, corrupt, unexpected },
    { expected: all, observed: all, lost: 0, duplicate: 0, corrupt: 0, unexpected: 0 },
    text,
  );
  console.log(`ok - ${workload} ${options.join(" ")}: ${observed} deliveries, ${reordered} out of order`);
}

const open = ["--rate", "50", "--warmup", "200ms", "--duration", "2s"];
await check("echo", open, { publishes: 100, fanOut: 1, acks: false });
await check("broadcast", ["--senders", "4", ...open], { publishes: 100, fanOut: CLIENTS, acks: true });
// As websocket-bench is called.
target[1] = `ws://127.0.0.1:${port}/cable`;
const bench = ["--server-type", "actioncable", "-c", "4", "-s", "200", "--payload-padding", "200", "--warmup", "0s"];
await check("echo", bench, { publishes: 200, fanOut: 1, acks: false });
await check("broadcast", bench, { publishes: 200, fanOut: CLIENTS, acks: true });

const ended = new Promise((resolve) => server.once("close", resolve));
server.kill("SIGTERM");
const timer = setTimeout(() => server.kill("SIGKILL"), LIMIT_MS);
await ended;
clearTimeout(timer);
assert.doesNotMatch(said, /error|exception/i, "puma or the channel had nothing to complain of");
