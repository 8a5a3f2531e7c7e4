// Shared by the tests of muster against real servers: run it and judge its report.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, rmSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const LIMIT_MS = 60000;
export const scratch = mkdtempSync(join(tmpdir(), "muster-interop-"));
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
const NOISE = /schedule_lag|clock gaps|busy/;
export const faults = (report) => report.verdict.reasons.filter((reason) => !NOISE.test(reason));

// Nothing may be amiss: all that was due was sent, every publish answered (or, with acks false, none), every delivery there, once, in order.
export function assertWhole({ report, text }, { acks = true, fanOut } = {}) {
  assert.ok(report, text);
  assert.deepEqual(faults(report), [], text);
  const { connections, publishes, deliveries } = report;
  assert.equal(connections.established, connections.attempted);
  assert.ok(publishes.attempted > 0);
  assert.equal(publishes.attempted, publishes.scheduled, text);
  assert.equal(publishes.unsent, 0, text);
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

// A server that answers nothing for longer than the clients wait: they leave. args: the options that say the target and
// how long that is; of ten clients in a ring. On a busy machine the server may have lost patience with some before.
export async function checkSilent(program, args, pid, keepAlive) {
  const silent = await drive(program, "private", [...args, "--rate", "100", "--duration", "40s", "--delivery-grace", "1s"], {
    during: async (child) => {
      await sleep(1500);
      process.kill(Number(pid), "SIGSTOP");
      await sleep(4000);
      child.kill("SIGINT");
      await sleep(500);
      process.kill(Number(pid), "SIGCONT");
    },
  });
  assert.equal(silent.code, 3, silent.text);
  assert.equal(silent.report.connections.dropped, 10, silent.text);
  assert.ok(countOf(silent.report.connections.dropped_by_code, keepAlive) > 0, silent.text);
  console.log("ok - a server that is silent is noticed");
}

// A server that is killed in the middle of a run, and then is not there for the next one. at: the options that say the
// target. How soon the first publishes come is the machine's affair, so the run is long and its end is a signal.
export async function checkKilled(program, at, pid) {
  const load = ["--rate", "200", "--warmup", "0s", "--duration", "40s", "--delivery-grace", "1s"];
  const killed = await drive(program, "private", ["--clients", "10", ...at, ...load], {
    during: async (child) => {
      await sleep(2000);
      process.kill(Number(pid), "SIGKILL");
      await sleep(1500);
      child.kill("SIGINT");
    },
  });
  assert.equal(killed.code, 3, killed.text);
  assert.ok(killed.report.publishes.acked > 0, killed.text);
  assert.ok(killed.report.publishes.unsent > 0, killed.text);
  assert.equal(killed.report.connections.dropped, 10, killed.text);
  assert.ok(faults(killed.report).some((reason) => /dropped/.test(reason)), killed.text);
  const gone = await drive(program, "private", ["--clients", "4", ...at, ...load]);
  assert.equal(gone.code, 4, gone.text);
  assert.match(gone.text, /nothing listens/);
  console.log("ok - a server that is killed, and one that is gone");
}
