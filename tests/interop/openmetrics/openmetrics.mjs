// musterd's metrics page before independent judges: promtool, the parser of Python's prometheus_client, and a Prometheus
// that scrapes it; then muster observes that Prometheus and, where it is installed, a node exporter.
// Usage: openmetrics.mjs MUSTER MUSTERD. Exit 77 (a counted skip) where a judge is missing.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [muster, musterd] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), "muster-openmetrics-"));
const children = [];
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(scratch, { recursive: true, force: true });
});

const python = "/usr/bin/python3";
const reader = `
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(sys.stdin.read()))
print(json.dumps({f.name: [f.type, f.unit, sum(s.value for s in f.samples)] for f in families}))
`;
const missing = [
  ["promtool", ["--version"]],
  ["prometheus", ["--version"]],
  [python, ["-c", "import prometheus_client"]],
].filter(([program, args]) => spawnSync(program, args).status !== 0);
if (missing.length > 0) {
  console.log(`not installed: ${missing.map(([program]) => program).join(", ")}`);
  process.exit(77);
}

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

function start(program, args, env = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  child.said = "";
  child.stderr.on("data", (chunk) => (child.said += chunk));
  children.push(child);
  return child;
}

async function until(what, check) {
  for (const end = Date.now() + 30000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100))) {
    const value = await check().catch(() => undefined);
    if (value) return value;
  }
  throw new Error(`${what} did not come`);
}

async function startMusterd() {
  const args = ["--ws-port", "0", "--api-port", "0", "--navigator-port", "0", "--admin-port", "0", "--shootout", "0",
    "--ricochet", "0"];
  const data = join(scratch, "data");
  const child = start(musterd, [...args, "--data", data, "--app-key", "testapp"], { MUSTERD_APP_SECRET: "0123456789abcdef" });
  let text = "";
  child.stdout.on("data", (chunk) => (text += chunk));
  const [, ws, api] = await until("musterd", async () => text.match(/ready: ws (\S+) api (\S+)/));
  return { ws, api };
}

async function startPrometheus(api) {
  const port = await freePort();
  const config = join(scratch, "prometheus.yml");
  const job = `{job_name: musterd, scrape_interval: 1s, static_configs: [{targets: ["${api}"]}]}`;
  writeFileSync(config, `scrape_configs: [${job}]\n`);
  start("prometheus", [`--config.file=${config}`, `--storage.tsdb.path=${join(scratch, "tsdb")}`,
    `--web.listen-address=127.0.0.1:${port}`, "--log.level=error"]);
  return `http://127.0.0.1:${port}`;
}

async function query(prometheus, expression) {
  const answer = await fetch(`${prometheus}/api/v1/query?query=${encodeURIComponent(expression)}`);
  const { data } = await answer.json();
  return data.result[0]?.value[1];
}

function run(server, observed) {
  const file = join(scratch, "report.json");
  const args = ["run", "groups", "--groups", "2", "--members", "8", "--rate", "40", "--warmup", "0s", "--duration", "3s",
    "--quiet", "--output", file, "--target", `ws://${server.ws}`, "--api-url", `http://${server.api}/apigateway`,
    "--app-key", "testapp", ...observed.flatMap((what) => ["--observe", what])];
  const child = start(muster, args, { MUSTER_APP_SECRET: "0123456789abcdef" });
  child.stdout.resume();
  return new Promise((resolve, reject) =>
    child.once("close", () => (existsSync(file) ? resolve(JSON.parse(readFileSync(file, "utf8"))) : reject(child.said))));
}

async function nodeExporter() {
  if (spawnSync("prometheus-node-exporter", ["--version"]).status !== 0) return undefined;
  const url = `http://127.0.0.1:${await freePort()}/metrics`;
  start("prometheus-node-exporter", [`--web.listen-address=${new URL(url).host}`, "--log.level=error"]);
  await until("the node exporter", async () => (await fetch(url)).ok);
  return url;
}

const server = await startMusterd();
const page = `http://${server.api}/metrics`;
const prometheus = await startPrometheus(server.api);
const exporter = await nodeExporter();
await until("prometheus", async () => (await fetch(`${prometheus}/-/ready`)).ok);

const observed = [`prometheus:${prometheus}/metrics;series=process_cpu_seconds_total,process_resident_memory_bytes`];
if (exporter) observed.push(`prometheus:${exporter};series=node_cpu_seconds_total,node_memory_MemFree_bytes`);
const report = await run(server, observed);
for (const source of report.observed.filter((one) => one.source.startsWith("prometheus:"))) {
  assert.equal(source.error, null);
  assert.ok(source.rows.length >= 2 && source.rows.at(-1).slice(1).every((value) => value > 0),
    `${source.source}: ${JSON.stringify(source.rows)}`);
}
assert.equal(report.observed.length, 2 + observed.length);

const text = await (await fetch(page, { headers: { Accept: "text/plain" } })).text();
const lint = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
assert.equal(lint.status, 0, lint.stderr + lint.stdout);
assert.equal(lint.stderr + lint.stdout, "");

const open = await fetch(page);
assert.match(open.headers.get("content-type"), /^application\/openmetrics-text; version=1.0.0/);
const parsed = spawnSync(python, ["-c", reader], { input: await open.text(), encoding: "utf8" });
assert.equal(parsed.status, 0, parsed.stderr);
const families = JSON.parse(parsed.stdout);
const { observed: delivered, duplicate } = report.deliveries;
assert.ok(delivered > 0);
assert.deepEqual(families.musterd_deliveries, ["counter", "", delivered + duplicate]);
assert.equal(families.musterd_commit_duration_seconds[0], "histogram");
assert.deepEqual(families.musterd_ricochet_connections, ["gauge", "", 0]);
assert.deepEqual(families.process_resident_memory_bytes.slice(0, 2), ["gauge", "bytes"]);

// The page that a real Prometheus stored is the same one.
const stored = await until("a scrape after the run", async () => {
  const value = await query(prometheus, "sum(musterd_deliveries_total)");
  return Number(value) === delivered + duplicate && value;
});
assert.equal(await query(prometheus, 'up{job="musterd"}'), "1");
console.log(`${Object.keys(families).length} families; ${stored} deliveries by musterd, Prometheus and muster` +
  `${exporter ? "; node exporter observed" : "; no node exporter here"}`);
process.exit(0);
