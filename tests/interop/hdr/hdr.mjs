// muster's histograms against hdr-histogram-js, both ways: counts, percentiles and interval logs.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import hdr from "hdr-histogram-js";

const tool = process.argv[2];
const MAX_NS = 3.6e12;
const UNIT_NS = 512;
const PERCENTILES = [50, 75, 90, 95, 99, 99.9, 99.99, 100];

function muster(command, input) {
  const run = spawnSync(tool, [command], { input, encoding: "utf8", maxBuffer: 1 << 26 });
  if (run.error) throw run.error;
  assert.equal(run.status, 0, `hdr_tool ${command}: ${run.stderr}`);
  return run.stdout.trimEnd().split("\n");
}

// A linear congruential generator: the same values on every run.
function random(seed) {
  let state = seed;
  return () => (state = (state * 1664525 + 1013904223) % 4294967296) / 4294967296;
}

function values(count, draw) {
  const next = random(count + 1);
  return Array.from({ length: count }, () => Math.floor(draw(next)));
}

const distributions = {
  empty: [],
  zero: [0],
  "one value": [1234567],
  "one unit": [511, 512, 1023, 1024],
  "the maximum": [MAX_NS],
  uniform: values(20000, (next) => next() * 1e9),
  exponential: values(20000, (next) => -Math.log(1 - next()) * 250e3),
  "log-uniform over the range": values(20000, (next) => Math.exp(next() * Math.log(MAX_NS))),
  "two humps": values(20000, (next) => (next() < 0.97 ? 80e3 + next() * 40e3 : 2e9 + next() * 1e9)),
  "powers of two and neighbours": Array.from({ length: 41 }, (_, i) => [2 ** i - 1, 2 ** i, 2 ** i + 1]).flat(),
  "one in ten thousand": [...Array(99990).fill(100e3), ...Array(10).fill(30e9)],
};

function build(list, lowest = 1000, highest = MAX_NS) {
  const h = hdr.build({
    bitBucketSize: 64,
    lowestDiscernibleValue: lowest,
    highestTrackableValue: highest,
    numberOfSignificantValueDigits: 3,
  });
  for (const value of list) h.recordValue(value);
  return h;
}

// The counters in use by their lowest value, which does not depend on who numbers them.
function counters(h) {
  const out = [];
  for (let i = 0; i < h.countsArrayLength; i++) {
    const count = Number(h.getCountAtIndex(i));
    if (count) out.push([i, count]);
  }
  return out;
}

const decodeJs = (text) => hdr.decodeFromCompressedBase64(text, 64);

function close(ours, theirs, bound, what) {
  assert.ok(Math.abs(ours - theirs) <= bound, `${what}: muster ${ours}, hdr-histogram-js ${theirs}`);
}

// The oracle rounds a percentile up to the end of its bucket; muster stops at the exact maximum where it knows it.
function samePercentiles(facts, oracle) {
  if (facts.count === 0) return;
  PERCENTILES.forEach((percentile, i) => {
    const theirs = oracle.getValueAtPercentile(percentile);
    assert.equal(facts.percentiles[i], Math.min(theirs, facts.max), `p${percentile}`);
  });
}

const tests = [];
const test = (name, run) => tests.push({ name, run });

for (const [name, list] of Object.entries(distributions)) {
  test(`muster writes, the oracle reads: ${name}`, () => {
    const [line, text] = muster("encode", list.map((v) => `${v}\n`).join(""));
    const facts = JSON.parse(line);
    const read = decodeJs(text);
    assert.equal(facts.count, list.length);
    assert.equal(read.totalCount, list.length);
    assert.deepEqual(counters(read), counters(build(list)));
    if (!list.length) return;
    assert.equal(facts.max, Math.max(...list.slice(-50000)), "the maximum is exact");
    samePercentiles(facts, read);
    close(facts.mean, read.mean, read.mean * 0.001 + UNIT_NS, "mean");
    close(facts.stddev, read.stdDeviation, read.stdDeviation * 0.01 + UNIT_NS, "standard deviation");
  });

  test(`the oracle writes, muster reads: ${name}`, () => {
    const wrote = build(list);
    const [line, ...rest] = muster("decode", hdr.encodeIntoCompressedBase64(wrote));
    const facts = JSON.parse(line);
    assert.equal(facts.count, list.length);
    assert.equal(facts.overflow, 0);
    assert.deepEqual(rest.filter(Boolean).map((l) => l.split(" ").map(Number)), counters(wrote));
    samePercentiles(facts, wrote);
    if (list.length) close(facts.mean, wrote.mean, wrote.mean * 0.001 + UNIT_NS, "mean");
  });
}

test("values over the hour are counted at the maximum", () => {
  const [line, text] = muster("encode", `1000000\n${MAX_NS + 1}\n9000000000000000\n`);
  const facts = JSON.parse(line);
  assert.equal(facts.count, 3);
  assert.equal(facts.overflow, 2);
  assert.equal(facts.max, 9000000000000000);
  assert.deepEqual(counters(decodeJs(text)), counters(build([1000000, MAX_NS, MAX_NS])));
});

test("the oracle's values over the hour overflow in muster", () => {
  const facts = JSON.parse(muster("decode", hdr.encodeIntoCompressedBase64(build([5e6, 9e12], 1000, 1e13)))[0]);
  assert.equal(facts.count, 2);
  assert.equal(facts.overflow, 1);
});

for (const lowest of [1, 100, 4096, 1e6]) {
  test(`the oracle writes with lowest discernible value ${lowest}`, () => {
    const list = distributions.uniform;
    const wrote = build(list, lowest);
    const facts = JSON.parse(muster("decode", hdr.encodeIntoCompressedBase64(wrote))[0]);
    assert.equal(facts.count, list.length);
    PERCENTILES.forEach((percentile, i) => {
      const theirs = wrote.getValueAtPercentile(percentile);
      close(facts.percentiles[i], theirs, theirs * 0.002 + 2 * Math.max(lowest, UNIT_NS), `p${percentile}`);
    });
  });
}

test("muster's interval log is read by the oracle", () => {
  const lists = [distributions.uniform, distributions.empty, distributions["two humps"]];
  const log = muster("write-log", lists.map((l) => l.map((v) => `${v}\n`).join("")).join("-\n")).join("\n");
  assert.deepEqual(hdr.listTags(log), ["NO TAG", "ack", "delivery"]);
  const reader = new hdr.HistogramLogReader(log, 64);
  lists.forEach((list, i) => {
    const interval = reader.nextIntervalHistogram();
    assert.equal(interval.startTimeStampMsec, 1700000000250 + i * 1000);
    assert.equal(interval.endTimeStampMsec, 1700000000250 + (i + 1) * 1000);
    assert.deepEqual(counters(interval), counters(build(list)));
  });
  assert.equal(reader.nextIntervalHistogram(), null);
  const maximum = Number(log.split("\n").find((line) => line.startsWith("Tag=ack")).split(",")[3]);
  close(maximum, Math.max(...distributions.uniform) / 1e6, 0.001, "maximum in milliseconds");
});

test("the oracle's interval log is read by muster", () => {
  let log = "";
  const writer = new hdr.HistogramLogWriter((text) => (log += text));
  writer.outputLogFormatVersion();
  writer.outputComment("interop");
  writer.outputStartTime(1700000000000);
  writer.outputLegend();
  const tagged = build(distributions.exponential);
  tagged.tag = "ack";
  writer.outputIntervalHistogram(tagged, 1.5, 2.5, 1e6);
  writer.outputIntervalHistogram(build(distributions["one value"]), 2.5, 3.5, 1e6);
  const lines = muster("read-log", log);
  assert.equal(lines.length, 4);
  assert.equal(lines[0], "ack 1.500 1.000");
  samePercentiles(JSON.parse(lines[1]), tagged);
  assert.equal(lines[2], "- 2.500 1.000");
  assert.equal(JSON.parse(lines[3]).count, 1);
});

let failed = 0;
for (const { name, run } of tests) {
  try {
    run();
    console.log(`ok - ${name}`);
  } catch (error) {
    failed++;
    console.log(`not ok - ${name}: ${error.message}`);
  }
}
console.log(`${tests.length - failed} of ${tests.length} passed`);
process.exitCode = failed ? 1 : 0;
