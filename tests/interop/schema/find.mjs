// The documents of `muster find` and `muster calibrate` against docs/find.schema.json; none of their mutations does.
// Usage: find.mjs DOCS_FOLDER MUSTER
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv2020 from "ajv/dist/2020.js";

const [docs, muster] = process.argv.slice(2);
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
ajv.addSchema(JSON.parse(readFileSync(join(docs, "report.schema.json"), "utf8")), "report.schema.json");
const validate = ajv.compile(JSON.parse(readFileSync(join(docs, "find.schema.json"), "utf8")));
const state = mkdtempSync(join(tmpdir(), "muster-state-"));
process.on("exit", () => rmSync(state, { recursive: true, force: true }));

function search(args) {
  const env = { ...process.env, XDG_STATE_HOME: state };
  const common = ["--warmup", "200ms", "--duration", "1s", "--clients", "6", "--quiet", "--json", "-"];
  const run = spawnSync(muster, [...args, ...common], { encoding: "utf8", maxBuffer: 1 << 26, timeout: 120000, env });
  if (run.error) throw run.error;
  // 1 and 3: on a machine that is busy elsewhere nothing may hold; the document must still keep the schema.
  assert.ok([0, 1, 3].includes(run.status), `muster ${args.join(" ")}: exit ${run.status}: ${run.stderr}`);
  return JSON.parse(run.stdout);
}

function refused(document, what) {
  assert.ok(!validate(document), `a document with ${what} is accepted`);
}

// Every key of the search's own parts: a wrong type, a missing and a surplus one are refused.
function mutate(document) {
  let tried = 0;
  const parts = [document, document.result, document.search, document.loads[0], document.steps[0], document.below_capacity[0]];
  for (const part of [...parts, document.steps.find((step) => step.figures)?.figures].filter(Boolean)) {
    part.surplus = 1;
    refused(document, "a surplus key");
    delete part.surplus;
    for (const key of Object.keys(part)) {
      const before = part[key];
      part[key] = typeof before === "object" && before !== null ? 7 : { wrong: true };
      refused(document, `a wrong type of ${key}`);
      delete part[key];
      refused(document, `no ${key}`);
      part[key] = before;
      tried += 2;
    }
  }
  return tried;
}

const searches = {
  find: ["find", "private", "--from", "20", "--to", "40", "--slo", "lost=0,rejected=0"],
  calibrate: ["calibrate", "private", "--from", "50", "--to", "100"],
};
for (const [kind, args] of Object.entries(searches)) {
  const document = search(args);
  assert.ok(validate(document), `${kind}: ${JSON.stringify(validate.errors)}`);
  assert.equal(document.kind, kind);
  assert.equal(document.result.tests, document.steps.length);
  const tests = document.loads.reduce((sum, load) => sum + load.held + load.broken + load.invalid, 0);
  assert.equal(tests, document.steps.length, "every step is counted at its load");
  console.log(`${kind}: ${document.result.text}; ${mutate(document)} mutations refused`);
  const found = structuredClone(document);
  Object.assign(found.result, { end: "found", highest_held: 1, lowest_broken: null, invalid_at: null });
  refused(found, "an answer with one side only");
}
