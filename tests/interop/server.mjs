// Starts real servers through scripts/servers/<name> and stops them when the test ends, before its folder goes.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { scratch } from "./drive.mjs";

const started = [];
process.prependListener("exit", () => started.forEach(({ script, folder }) => spawnSync(script, ["stop", folder])));

// The ports by their names, pid, and the folder; exits with 77 where the server is not installed.
export function startServer(script, lines = [], env = {}) {
  const folder = join(scratch, `server-${started.length}`);
  const result = spawnSync(script, ["start", folder, ...lines], { encoding: "utf8", env: { ...process.env, ...env } });
  if (result.status === 77) {
    console.log("the server is not installed on this machine");
    process.exit(77);
  }
  assert.equal(result.status, 0, result.stderr);
  started.push({ script, folder });
  return { ...Object.fromEntries(result.stdout.trim().split("\n").map((line) => line.split("="))), folder };
}
