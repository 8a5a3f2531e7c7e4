// The documents of `muster run --trials` and `muster compare` against docs/trials.schema.json and
// docs/compare.schema.json; none of their mutations does. Usage: compare.mjs DOCS_FOLDER MUSTER RECORDED_FOLDER
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv2020 from "ajv/dist/2020.js";

const [docs, muster, recorded] = process.argv.slice(2);
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
const schema = (name) => JSON.parse(readFileSync(join(docs, `${name}.schema.json`), "utf8"));
ajv.addSchema(schema("report"), "report.schema.json");
const validate = { trials: ajv.compile(schema("trials")), compare: ajv.compile(schema("compare")) };
const scratch = mkdtempSync(join(tmpdir(), "muster-compare-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));

function output(args, codes) {
  const run = spawnSync(muster, args, { encoding: "utf8", maxBuffer: 1 << 26, timeout: 60000, cwd: scratch });
  if (run.error) throw run.error;
  assert.ok(codes.includes(run.status), `muster ${args.join(" ")}: exit ${run.status}: ${run.stderr}`);
  return JSON.parse(run.stdout);
}

// Every key of the document's own parts: a wrong type, a missing and a surplus one are refused.
function mutate(kind, document, parts) {
  let tried = 0;
  const refused = (what) => assert.ok(!validate[kind](document), `a document with ${what} is accepted`);
  for (const part of parts) {
    part.surplus = 1;
    refused("a surplus key");
    delete part.surplus;
    for (const key of Object.keys(part)) {
      const before = part[key];
      const anything = "key" in part && (key === "base" || key === "candidate"); // values of a comparability key
      part[key] = typeof before === "object" && before !== null ? 7 : { wrong: true };
      if (!anything) refused(`a wrong type of ${key}`);
      delete part[key];
      refused(`no ${key}`);
      part[key] = before;
      tried += 2;
    }
  }
  assert.ok(validate[kind](document), "the mutations are undone");
  return tried;
}

function check(kind, document, parts) {
  assert.ok(validate[kind](document), `${kind}: ${JSON.stringify(validate[kind].errors)}`);
  console.log(`${kind}: valid, ${mutate(kind, document, parts)} mutations refused`);
}

// 3: a machine that is busy elsewhere may make a trial invalid; the summary must still keep the schema.
const short = ["--clients", "6", "--rate", "30", "--warmup", "100ms", "--duration", "500ms", "--quiet", "--json", "-"];
const trials = output(["run", "private", "--trials", "2", ...short], [0, 3]);
check("trials", trials, [trials, trials.verdict, trials.order, trials.trials[0], trials.method, ...trials.metrics.slice(0, 2)]);
const claimed = structuredClone(trials);
Object.assign(claimed.verdict, { result: "valid", reasons: ["trial 1 is invalid"] });
assert.ok(!validate.trials(claimed), "reasons and the result valid");

const sides = [join(recorded, "near.json"), "--", join(recorded, "far.json")];
const gates = ["--fail-on", "delivery.p50 +4%,delivery.p99.9 +4%"];
const compared = output(["compare", ...sides, ...gates, "--json", "-"], [3]);
const outcomes = new Set(compared.metrics.map((metric) => metric.outcome));
assert.ok(outcomes.has("slower") && outcomes.has("none_shown"));
assert.deepEqual(compared.gates.map((gate) => gate.result), ["broken", "undecided"]);
const { base, metrics } = compared;
check("compare", compared, [compared, compared.verdict, ...compared.gates, base, base.trials[0], metrics[0], metrics[0].base, compared.method]);
const other = [join(recorded, "near.json"), "--", join(recorded, "local.json")];
const refusal = spawnSync(muster, ["compare", ...other], { encoding: "utf8" });
assert.equal(refusal.status, 3);
const keys = /\(differing: ([^)]*)\)/.exec(refusal.stderr)[1].replaceAll(", ", ",");
const different = output(["compare", ...other, "--allow-different", keys, "--json", "-"], [0]);
assert.deepEqual(different.different.map((entry) => entry.key), keys.split(","));
check("compare", different, [different, different.different[0]]);
