// `muster find broadcast` tells two servers apart. The slow one has a known border: with 4 broadcasts in flight and
// 250 us a client, more than 25 clients cannot have their results within 25 ms. musterd holds more than that.
//   find.mjs <muster>
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [muster] = process.argv.slice(2);
const state = mkdtempSync(join(tmpdir(), "muster-state-"));
process.on("exit", () => rmSync(state, { recursive: true, force: true }));

const options = [
  "find", "broadcast", "--server-type", "json", "--concurrent", "4", "--sample-size", "200", "--vary", "clients", "--from", "4", "--to", "64",
  "--limit-percentile", "95", "--limit-rtt", "25ms", "--resolution", "0.2", "--warmup", "0s", "--quiet", "--json", "-",
];

function search(args) {
  const env = { ...process.env, XDG_STATE_HOME: state };
  const { status, stdout, stderr } = spawnSync(muster, [...options, ...args], {
    encoding: "utf8", maxBuffer: 1 << 26, timeout: 180000, env,
  });
  assert.ok([0, 1, 3].includes(status), `exit ${status}: ${stderr}`);
  return JSON.parse(stdout).result;
}

const slow = spawn("node", [new URL("slow_server.mjs", import.meta.url).pathname, "250"], { stdio: ["pipe", "pipe", "inherit"] });
process.on("exit", () => slow.kill("SIGKILL"));
const url = await new Promise((resolve) => slow.stdout.on("data", (data) => resolve(/ready: (\S+)/.exec(data)[1])));
const ofSlow = search(["--target", url]);
const ofMusterd = search([]);
console.log(JSON.stringify({ slow: ofSlow, musterd: ofMusterd }));
assert.ok(ofSlow.highest_held === null || ofSlow.highest_held <= 25, "the border of the slow server is known");
if (ofSlow.end === "stayed_invalid" || ofMusterd.end === "stayed_invalid") {
  console.log("this machine is too busy for a search: skipped");
  process.exit(77);
}
assert.ok(ofMusterd.highest_held > (ofSlow.highest_held ?? 0), "musterd holds more");
process.exit(0);
