// Shared by the tests of muster against MQTT brokers: run it, read its report, and a raw client of a few packets.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, rmSync, mkdtempSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const LIMIT_MS = 60000;
export const scratch = mkdtempSync(join(tmpdir(), "muster-mqtt-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));

let runs = 0;

// Runs muster to its end; during(child) is called when it has started. text is everything that it said or saved.
export async function drive(program, workload, args, { env = {}, during } = {}) {
  const file = join(scratch, `report-${runs++}.json`);
  const child = spawn(program, ["run", workload, "--output", file, "--quiet", ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  child.stdout.on("data", (data) => (text += data));
  child.stderr.on("data", (data) => (text += data));
  const ended = new Promise((resolve) => child.once("close", resolve));
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  await during?.(child);
  const code = await ended;
  clearTimeout(timer);
  let report;
  try {
    const json = readFileSync(file, "utf8");
    text += json;
    report = JSON.parse(json);
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  return { code, text, report };
}

// What a busy test machine does to the generator is not the driver's fault; everything else that makes a run invalid is.
const NOISE = /schedule_lag|clock gaps|busy|achieved/;
export const faults = (report) => report.verdict.reasons.filter((reason) => !NOISE.test(reason));

// Nothing may be amiss: every publish answered (or, with acks false, none), every delivery there, once, in order.
export function assertWhole({ report, text }, { acks = true, fanOut } = {}) {
  assert.ok(report, text);
  assert.deepEqual(faults(report), [], text);
  const { connections, publishes, deliveries } = report;
  assert.equal(connections.established, connections.attempted);
  assert.ok(publishes.attempted > 0);
  assert.equal(publishes.acked, acks ? publishes.attempted : 0);
  assert.equal(deliveries.expected, publishes.attempted * fanOut);
  const { observed, lost, duplicate, reordered, corrupt, unexpected } = deliveries;
  assert.deepEqual(
    { observed, lost, duplicate, reordered, corrupt, unexpected },
    { observed: deliveries.expected, lost: 0, duplicate: 0, reordered: 0, corrupt: 0, unexpected: 0 },
    text,
  );
}

export const countOf = (list, code) => list.find((entry) => entry.code === code)?.count ?? 0;
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The second worker of a muster that runs does not run, and so does not read, for a while.
export async function stopWorker(child, forMs) {
  const worker = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").split(" ")[1]);
  process.kill(worker, "SIGSTOP");
  await sleep(forMs);
  process.kill(worker, "SIGCONT");
}

const text = (string) => Buffer.concat([Buffer.from([string.length >> 8, string.length & 255]), Buffer.from(string)]);
const packet = (first, ...parts) => {
  const body = Buffer.concat(parts);
  assert.ok(body.length < 128);
  return Buffer.concat([Buffer.from([first, body.length]), body]);
};

// Connects as clientId (version 5), with a subscription to filter where one is given. publishes: topics that came, with
// the retain flag. resumed: the broker had a session of it, which only who does not start clean is told.
export async function rawClient(port, clientId, filter, { clean = true } = {}) {
  const socket = createConnection({ host: "127.0.0.1", port });
  const client = { publishes: [], resumed: false, close: () => socket.destroy() };
  let buffer = Buffer.alloc(0);
  const granted = new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("data", (data) => {
      buffer = Buffer.concat([buffer, data]);
      for (;;) {
        let size = 0;
        let head = 1;
        for (; head < buffer.length && head < 5; head++) {
          size += (buffer[head] & 127) * 128 ** (head - 1);
          if (buffer[head] < 128) break;
        }
        head++;
        if (head > buffer.length || buffer.length < head + size) return;
        const body = buffer.subarray(head, head + size);
        const type = buffer[0] >> 4;
        if (type === 3) {
          client.publishes.push({
            topic: body.subarray(2, 2 + body.readUInt16BE(0)).toString(),
            retained: (buffer[0] & 1) === 1,
          });
        }
        if (type === 2) client.resumed = (body[0] & 1) === 1;
        if (type === (filter ? 9 : 2)) resolve();
        buffer = buffer.subarray(head + size);
      }
    });
  });
  socket.write(packet(0x10, text("MQTT"), Buffer.from([5, clean ? 2 : 0, 0, 60, 0]), text(clientId)));
  if (filter) socket.write(packet(0x82, Buffer.from([0, 1, 0]), text(filter), Buffer.from([0])));
  await granted;
  return client;
}
