// The documents of `muster plan --json -` against docs/plan.schema.json; none of their mutations does.
// Usage: plan.mjs DOCS_FOLDER MUSTER
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv2020 from "ajv/dist/2020.js";

const [docs, muster] = process.argv.slice(2);
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true });
ajv.addSchema(JSON.parse(readFileSync(join(docs, "report.schema.json"), "utf8")), "report.schema.json");
const validate = ajv.compile(JSON.parse(readFileSync(join(docs, "plan.schema.json"), "utf8")));

function plan(args) {
  const run = spawnSync(muster, ["plan", ...args, "--json", "-"], { encoding: "utf8", timeout: 60000 });
  if (run.error) throw run.error;
  const document = JSON.parse(run.stdout);
  assert.equal(run.status === 0, document.fits, `muster plan ${args.join(" ")}: exit ${run.status}: ${run.stderr}`);
  return document;
}

function refused(document, what) {
  assert.ok(!validate(document), `a document with ${what} is accepted`);
}

function mutate(document) {
  let tried = 0;
  for (const part of [document, document.traffic, document.needs]) {
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
  assert.ok(validate(document));
  return tried;
}

const names = spawnSync(muster, ["scenarios"], { encoding: "utf8" }).stdout.match(/^[a-z][a-z0-9-]+(?= )/gm);
assert.ok(names?.length >= 14, `presets: ${names}`);
for (const name of names) {
  // What only one setting of its driver can do says so by its target.
  const target = name === "nats-backlog" ? ["--target", "nats://127.0.0.1:4222/?ack=jetstream"] : [];
  const document = plan([name, "--scale", "0.1", ...target]);
  assert.ok(validate(document), `${name}: ${JSON.stringify(validate.errors)}`);
}
const plain = plan(["private"]);
assert.ok(validate(plain), JSON.stringify(validate.errors));
const tried = mutate(plain);

const far = plan(["private", "--target", "ws://127.0.0.1:1", "--api-url", "http://127.0.0.1:2", "--app-key", "a",
  "--local-addr", "127.0.0.1", "--clients", "100000"]);
assert.ok(validate(far), JSON.stringify(validate.errors));
assert.equal(far.needs.server_bytes, 0);
if (!far.fits) refused({ ...far, refusal: null }, "no reason to refuse");
refused({ ...far, fits: !far.fits }, "a verdict that its refusal contradicts");
console.log(`plans of ${names.length} presets and 2 others keep the schema; ${tried} mutations refused`);
