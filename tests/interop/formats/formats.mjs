// Every form of a report, live and made again from its JSON: the same both times, and what others' readers say of it.
// Usage: formats.mjs MUSTER REPORT_TOOL
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HistogramLogReader } from "hdr-histogram-js";

const [muster, tool] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "muster-formats-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const text = (name) => readFileSync(join(folder, name), "utf8");

function call(program, args, codes, input) {
  const run = spawnSync(program, args, { cwd: folder, encoding: "utf8", maxBuffer: 1 << 26, timeout: 60000, input });
  if (run.error) throw run.error;
  assert.ok(codes.includes(run.status), `${args.join(" ")}: exit ${run.status}: ${run.stderr}`);
  return run;
}

function refused(args, pattern, input) {
  const run = call(muster, args, [2], input);
  assert.match(run.stderr, pattern);
  assert.match(run.stderr, /^muster: [^\n]*\n$/, "one line");
  assert.equal(run.stdout, "");
}

function intervals(name) {
  const found = [];
  const reader = new HistogramLogReader(text(name));
  for (let one = reader.nextIntervalHistogram(); one; one = reader.nextIntervalHistogram()) found.push(one);
  return found;
}

const run = call(muster, ["run", "private", "--clients", "6", "--rate", "40", "--warmup", "100ms", "--duration", "2500ms",
  "--slo", "lost=0, duplicate<=1, ack.mean<1ns", "--quiet", "--output", "run.json", "--jsonl", "-", "--csv", "run.csv",
  "--junit", "run.junit", "--markdown", "run.markdown", "--hlog", "run.hlog", "--hlog-series", "series.hlog"], [1, 3]);
const report = JSON.parse(text("run.json"));
writeFileSync(join(folder, "run.jsonl"), run.stdout);
for (const form of ["csv", "junit", "markdown", "hlog", "jsonl", "json"]) {
  const again = call(muster, ["report", "run.json", "--as", form], [0]).stdout;
  assert.equal(again, text(`run.${form}`), `${form} made again`);
}
assert.match(call(muster, ["report", "-"], [0], text("run.json")).stdout, /^verdict +(valid|invalid)/m);

const lines = run.stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
const summary = lines.pop();
assert.equal(lines.length, report.series.rows);
assert.ok(lines.length >= 3);
lines.forEach((line, second) => {
  assert.equal(line.t_s, second);
  for (const key of ["scheduled", "acked", "delivered"]) assert.equal(line[key], report.series[key][second]);
});
assert.equal(summary.type, "summary");
for (const key of ["run_id", "publishes", "deliveries", "rates", "verdict"]) assert.deepEqual(summary[key], report[key]);
const rows = text("run.csv").trimEnd().split("\n").map((row) => row.split(","));
for (const row of rows) assert.equal(row.length, rows[0].length);
assert.deepEqual(rows.slice(1).map((row) => Number(row[rows[0].indexOf("publishes_acked")])), report.series.acked);
console.log(`${lines.length} seconds as JSON lines and CSV`);

for (const one of intervals("run.hlog")) {
  assert.equal(one.totalCount, report.latency[one.tag].count, one.tag);
  assert.equal(one.endTimeStampMsec - one.startTimeStampMsec, Math.round(report.phases.measure_s * 1000), one.tag);
}
const start = Date.parse(report.measure_started_at);
for (const tag of ["ack", "delivery", "schedule_lag"]) {
  const found = intervals("series.hlog").filter((one) => one.tag === tag);
  const counts = new Array(report.series.rows).fill(0);
  for (const one of found) counts[Math.round((one.startTimeStampMsec - start) / 1000)] += one.totalCount;
  assert.deepEqual(counts, report.series[tag].count, tag);
  assert.ok(counts.some((count) => count > 0));
  for (const one of found.filter((last) => last.startTimeStampMsec - start > 1500)) { // half a second was left for it
    assert.equal(one.endTimeStampMsec - one.startTimeStampMsec, 500, tag);
  }
}
console.log("histogram logs hold what the report says");

// JUnit through a real XML parser; the objective on the mean cannot hold.
function xpath(file, expression) {
  return call("xmllint", ["--nonet", "--xpath", expression, file], [0]).stdout.trim();
}
assert.equal(xpath("run.junit", "count(//testcase)"), xpath("run.junit", "string(/testsuites/@tests)"));
assert.equal(xpath("run.junit", "string(//testcase[failure]/@name)"), "objective ack.mean<1ns");
assert.equal(xpath("run.junit", "count(//testcase[@name='verdict']/error)"), report.verdict.result === "valid" ? "0" : "1");
const hostile = JSON.parse(call(tool, ["invalid"], [0]).stdout);
hostile.workload.name = "<a b=\"c\">&amp;\u0001\ufffe]]>'";
hostile.verdict.reasons[0] = "</error><error>";
writeFileSync(join(folder, "hostile.json"), JSON.stringify(hostile));
call(muster, ["report", "hostile.json", "--output", "hostile.xml"], [0]);
assert.equal(xpath("hostile.xml", "string(//testsuite/@name)"), "<a b=\"c\">&amp;\ufffd\ufffd]]>'");
assert.equal(xpath("hostile.xml", "count(//testcase[@name='verdict']/error)"), "1");
assert.match(xpath("hostile.xml", "string(//error)"), /^<\/error><error>/);
console.log("JUnit is XML");

// Several reports, folders, and what is refused.
call(muster, ["report", "run.json", "hostile.json", "--as", "html", "--output", "pages/"], [0]);
assert.ok(existsSync(join(folder, "pages/run.html")) && existsSync(join(folder, "pages/hostile.html")));
assert.equal(call(muster, ["report", "run.json", "hostile.json"], [0]).stdout.match(/^verdict /gm).length, 2);
const search = { kind: "find", schema_version: 1, result: { text: "<b>" } };
writeFileSync(join(folder, "find.json"), JSON.stringify(search));
assert.deepEqual(JSON.parse(call(muster, ["report", "find.json", "--as=json"], [0]).stdout), search);
assert.match(call(muster, ["report", "find.json", "--as", "html"], [0]).stdout, /^<!doctype html>/i);
const old = { ...report, schema_version: 1, latency: {} };
for (const [name, { histogram, ...rest }] of Object.entries(report.latency)) old.latency[name] = rest;
writeFileSync(join(folder, "old.json"), JSON.stringify(old));
assert.equal(call(muster, ["report", "old.json"], [0]).stdout, call(muster, ["report", "run.json"], [0]).stdout);
refused(["report", "old.json", "--as", "hlog"], /no histograms \(schema version 1\)/);
refused(["report", "find.json"], /^muster: find\.json: search: is missing: the file is no whole report of muster$/m);
refused(["report", "find.json", "--as", "csv"], /find.json: is a search, which has the forms text, json, markdown and html/);
refused(["report", "run.json", "--output", "run.pdf"], /run.pdf: .*--as/);
refused(["report", "run.json", "--output", "run.csv"], /run.csv exists already and is never overwritten/, undefined);
refused(["report"], /name a JSON report/);
refused(["report", "run.json", "--as", "pdf"], /--as pdf: give one of text\|json\|csv/);
refused(["report", "run.json", "old.json", "--as", "junit"], /several reports do not make one junit/);
refused(["report", "run.json", "--verbose"], /unknown option --verbose/);
refused(["report", "nowhere.json"], /nowhere.json: cannot open/);
refused(["report", "run.csv"], /run.csv: not JSON/);
refused(["report", "-"], /standard input: not JSON, or not whole/, text("run.json").slice(0, 3000));
refused(["report", "-"], /schema_version: the report has version 9 and this muster reads 1 to 2/,
  JSON.stringify({ ...report, schema_version: 9 }));
refused(["run", "private", "--jsonl", "-", "--json", "-"], /both want standard output/);
refused(["run", "private", "--junit", "run.junit"], /--junit: run.junit exists already/);
refused(["find", "private", "--csv", "x.csv"], /--csv belongs to one run/);
const failed = call(muster, ["run", "echo", "--target", "ws+json://127.0.0.1:1", "--clients", "2", "--jsonl", "gone.jsonl",
  "--quiet"], [4]);
assert.match(failed.stderr, /^muster: /);
assert.ok(!existsSync(join(folder, "gone.jsonl")), "a stream of no run is taken away");
console.log("refusals are one line each");
