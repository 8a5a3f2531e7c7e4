// JSON reports against docs/report.schema.json: made-up ones and those of real runs validate; none of their mutations
// does. Usage: report.mjs SCHEMA REPORT_TOOL [MUSTER]
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";

const [schemaFile, tool, muster] = process.argv.slice(2);
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
const validate = ajv.compile(JSON.parse(readFileSync(schemaFile, "utf8")));

function print(program, args, codes, input) {
  const run = spawnSync(program, args, { encoding: "utf8", maxBuffer: 1 << 26, timeout: 60000, input });
  if (run.error) throw run.error;
  assert.ok(codes.includes(run.status), `${program} ${args.join(" ")}: exit ${run.status}: ${run.stderr}`);
  return run.stdout;
}

// Every report that muster writes can be read and written again, byte for byte.
function output(program, args, codes) {
  const text = print(program, args, codes);
  assert.equal(print(tool, ["again", "-"], [0], text), text, `${program} ${args.join(" ")}: read and written again`);
  return JSON.parse(text);
}

function explain() {
  return validate.errors?.map((error) => `${error.instancePath} ${error.message}`).join("; ");
}

// Every object and array of a report, with its path.
function* containers(value, path) {
  if (value === null || typeof value !== "object") return;
  yield { value, path };
  for (const [key, child] of Object.entries(value)) yield* containers(child, `${path}/${key}`);
}

function assertRefused(report, what) {
  assert.ok(!validate(report), `a report with ${what} is accepted`);
}

// Tries every single change of a kind, one at a time, and undoes it.
function mutate(report) {
  let tried = 0;
  for (const { value, path } of containers(report, "")) {
    if (!Array.isArray(value)) {
      value.surplus = 1;
      assertRefused(report, `a surplus key in ${path || "the root"}`);
      delete value.surplus;
      tried++;
    }
    for (const key of Object.keys(value)) {
      const before = value[key];
      value[key] = typeof before === "object" && before !== null ? 7 : { wrong: true };
      assertRefused(report, `a wrong type at ${path}/${key}`);
      const maySink = path.endsWith("_by_code") || /^\/observed\/\d+\/rows\//.test(path);
      if (typeof before === "number" && !maySink) {
        value[key] = -0.5;
        assertRefused(report, `a negative fraction at ${path}/${key}`);
      }
      value[key] = before;
      tried++;
      // A run need not have every clock, only some workloads and drivers have what these name, and older reports lack some.
      const optional = path === "/latency" || /options$/.test(path)
        || ["operations", "options", "target_options", "scenario", "user", "delivery_grace_asked", "overlap"].includes(key);
      if (Array.isArray(value) || optional) continue;
      delete value[key];
      assertRefused(report, `no ${path}/${key}`);
      value[key] = before;
      tried++;
    }
  }
  assert.ok(validate(report), "the mutations are undone");
  return tried;
}

function check(report, what) {
  assert.ok(validate(report), `${what}: ${explain()}`);
  console.log(`${what}: valid, ${mutate(report)} mutations refused`);
}

for (const kind of ["valid", "invalid", "no-acks"]) check(output(tool, [kind], [0]), `made-up ${kind} report`);

const invalid = output(tool, ["invalid"], [0]);
invalid.verdict.result = "valid";
assertRefused(invalid, "reasons and the result valid");
const valid = output(tool, ["valid"], [0]);
valid.verdict.result = "invalid";
assertRefused(valid, "no reasons and the result invalid");

if (muster) {
  const short = ["--clients", "6", "--rate", "30", "--warmup", "200ms", "--duration", "1s", "--quiet", "--json", "-"];
  // 3: a machine that is busy elsewhere may make a run invalid; its report must still keep the schema.
  check(output(muster, ["run", "private", ...short], [0, 3]), "muster run private");
  check(output(muster, ["run", "group", ...short], [0, 3]), "muster run group");
  // The other shapes and load models differ in few places: valid is enough.
  const brief = ["--warmup", "100ms", "--duration", "300ms", "--quiet", "--json", "-"];
  const lines = ["star --receivers-online 3", "groups --shared-groups", "room", "broadcast", "echo --outstanding 2",
    "private --steps 50,100", "private --rate 50 --ramp-to 90", "private --outstanding 1 --count 40"];
  for (const line of [...lines, "star --rounds 1 --interval 20ms"]) {
    const report = output(muster, ["run", ...line.split(" "), ...brief], [0, 3]);
    assert.ok(validate(report), `muster run ${line}: ${explain()}`);
  }
  const backlog = ["backlog", "--clients", "4", "--rounds", "2", "--quiet", "--json", "-"];
  check(output(muster, ["run", ...backlog], [0, 3]), "muster run backlog");
  const ricochet = ["-protocol", "sda-batch", "-n", "6", "-c", "2", "-batch-size", "5", "--quiet", "--json", "-"];
  const operations = output(muster, ["ricochet", ...ricochet], [0, 3]);
  assert.ok(validate(operations), `muster ricochet: ${explain()}`);
  delete operations.server_counters; // any names
  check(operations, "muster ricochet");
}
