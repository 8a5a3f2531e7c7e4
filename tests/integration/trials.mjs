// muster run --trials: workloads take turns there and back, every report is kept and listed, nothing is overwritten, also
// with two musters at once; an invalid trial makes the summary invalid; folders and summaries can be compared.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { muster, scratch } from './lib.mjs';

const short = ['--clients', '6', '--rate', '40', '--warmup', '0s', '--duration', '400ms', '--delivery-grace', '2s'];
const folder = join(scratch, 'kept');
const trials = (names, options = []) => muster(['run', ...names, ...short, '--output', folder, ...options], { deadlineMs: 60000 });
const index = () => readFileSync(join(folder, 'index.jsonl'), 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
const read = (file) => JSON.parse(readFileSync(join(folder, file), 'utf8'));
const contents = () => new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]));

// Two workloads, three rounds: A B, B A, A B.
const first = await trials(['private', 'group'], ['--trials', '3']);
assert.ok([0, 3].includes(first.code), first.err);
const lines = index();
const runs = lines.filter((line) => line.document === 'run');
assert.deepEqual(runs.map((run) => run.name), ['private', 'group', 'group', 'private', 'private', 'group']);
assert.deepEqual(runs.map((run) => run.trial), [1, 1, 2, 2, 3, 3]);
const summaries = lines.filter((line) => line.document === 'trials');
assert.deepEqual(summaries.map((line) => line.name), ['private', 'group']);
assert.equal(first.code, Math.max(...summaries.map((line) => line.exit_code)));
assert.deepEqual(new Set(readdirSync(folder)), new Set([...lines.map((line) => line.file), 'index.jsonl']));
assert.equal(new Set(runs.map((run) => read(run.file).workload.seed)).size, 6, 'what is random is so anew');
for (const { name, file, id } of summaries) {
  const summary = read(file);
  assert.equal(summary.document, 'trials');
  assert.deepEqual(summary.order, { rule: 'forth_and_back', workloads: ['private', 'group'] });
  const own = runs.filter((run) => run.trials_id === id);
  assert.deepEqual(summary.trials.map((trial) => trial.file), own.map((run) => run.file));
  assert.deepEqual(own.map((run) => run.name), [name, name, name]);
  const reports = own.map((run) => read(run.file));
  if (summary.verdict.valid === 0) continue; // a machine that is busy elsewhere: no medians of nothing
  const rate = summary.metrics.find((metric) => metric.name === 'deliveries_per_second');
  assert.deepEqual(rate.values, reports.map((report) => report.rates.deliveries_per_second));
  const p50 = summary.metrics.find((metric) => metric.name === 'delivery.p50');
  assert.deepEqual(p50.values, reports.map((report) => report.latency.delivery.p50_ns));
  const counted = summary.trials.flatMap((trial, i) => (trial.verdict.result === 'valid' ? [p50.values[i]] : []));
  counted.sort((a, b) => a - b);
  if (counted.length === 3) assert.deepEqual([p50.median, p50.min, p50.max, ...p50.interval], [1, 0, 2, 0, 2].map((i) => counted[i]));
}
assert.ok(first.out.split('\n').every((line) => line.length <= 100), 'at most 100 columns');

// Again into the same folder, two at once: nothing that was there changes, and the index has every line whole.
const before = contents();
const both = await Promise.all([trials(['private'], ['--trials', '2']), trials(['group'])]);
for (const result of both) assert.ok([0, 3].includes(result.code), result.err);
for (const [file, text] of before) {
  const now = readFileSync(join(folder, file), 'utf8');
  assert.ok(file === 'index.jsonl' ? now.startsWith(text) : now === text, `${file} was touched`);
}
assert.equal(index().length, 8 + 2 + 1 + 1, 'trials, their summary, and a single run');
assert.deepEqual(new Set(readdirSync(folder)), new Set([...index().map((line) => line.file), 'index.jsonl']));

// A trial that is invalid: its objective cannot be measured with so few values. Listed, in no median, no summary is valid.
const bad = await trials(['private'], ['--trials', '2', '--slo', 'ack.p99.9<60s', '--json', '-', '--quiet']);
assert.equal(bad.code, 3);
const summary = JSON.parse(bad.out);
assert.equal(summary.verdict.result, 'invalid');
assert.deepEqual([summary.verdict.asked, summary.verdict.listed, summary.verdict.valid], [2, 2, 0]);
assert.deepEqual(summary.trials.map((trial) => trial.exit_code), [3, 3]);
assert.match(summary.verdict.reasons[0], /^trial 1 is invalid: ./);
assert.ok(summary.trials[0].verdict.reasons.some((reason) => reason.includes('ack.p99.9')), 'its own reasons are all there');
assert.deepEqual(summary.metrics, []);
const refused = await muster(['compare', join(folder, index().at(-1).file), '--', join(folder, summaries[0].file)]);
assert.equal(refused.code, 3);
assert.match(refused.err, /trial 1 of the base is invalid/);

// An objective that breaks in a trial breaks the series.
const broken = await trials(['private'], ['--trials', '2', '--slo', 'ack.max<1ns', '--json', '-', '--quiet']);
const of = JSON.parse(broken.out);
assert.equal(broken.code, of.verdict.result === 'valid' ? 1 : 3);

// Interrupted: what there is is kept, and said to be too little.
let signalled = false;
const stopped = await muster(['run', 'private', ...short, '--duration', '30s', '--trials', '2', '--output', folder], {
  onStart: (child) => setTimeout(() => (signalled = child.kill('SIGINT')), 3000),
});
assert.ok(signalled);
assert.equal(stopped.code, 3);
const last = read(index().at(-1).file);
assert.equal(last.verdict.result, 'invalid');
assert.match(last.verdict.reasons.at(-1), /interrupted after 1 of 2 trials/);

// Folders: their run reports; a report twice, mixed workloads and no reports at all are refused.
const pick = (name, from, to) => {
  const path = join(scratch, name);
  mkdirSync(path);
  for (const run of runs.filter((entry) => entry.name === 'group').slice(from, to)) {
    const report = read(run.file);
    report.verdict = { ...report.verdict, result: 'valid', reasons: [] };
    writeFileSync(join(path, run.file), JSON.stringify(report));
  }
  return path;
};
const [one, two] = [pick('one', 0, 2), pick('two', 2, 3)];
writeFileSync(join(one, 'index.jsonl'), '');
const junit = join(scratch, 'gates.xml');
const compared = await muster(['compare', one, '--', two, '--fail-on', 'delivery.p50 +10%', '--junit', junit]);
assert.equal(compared.code, 3, 'two and one trials can decide no gate');
assert.match(compared.out, /no difference shown, and none could be|no difference shown \(though/);
assert.match(compared.out, /UNDECIDED: 2 \+ 1 trials/);
assert.match(readFileSync(junit, 'utf8'), /tests="2" failures="0" errors="1"[^]*<testcase [^>]*name="gate delivery.p50\+10%"[^]*<error /);
assert.ok(compared.out.split('\n').every((line) => line.length <= 100), 'at most 100 columns');

// Each trial has files of its own, and all of them one page.
const own = join(scratch, 'own');
const brief = ['--clients', '4', '--rate', '50', '--warmup', '0s', '--duration', '300ms', '--quiet', '--output', join(own, 'documents')];
await muster(['run', 'private', ...brief, '--trials', '2', '--hlog', join(own, 'x.hlog'), '--csv', join(own, 'a.b', 'c'), '--html', join(own, 'all.html')]);
assert.deepEqual(readdirSync(own).sort(), ['a.b', 'all.html', 'documents', 'x-1.hlog', 'x-2.hlog']);
assert.deepEqual(readdirSync(join(own, 'a.b')).sort(), ['c-1', 'c-2']);
assert.match(readFileSync(join(own, 'x-2.hlog'), 'utf8'), /^Tag=ack,/m);
assert.match(readFileSync(join(own, 'all.html'), 'utf8'), /"document": "trials"/);
await muster(['run', 'private', 'group', ...brief, '--trials', '1', '--jsonl', join(own, 'x.jsonl'), '--html', `${own}/pages/`]);
assert.deepEqual(readdirSync(own).filter((name) => name.endsWith('jsonl')).sort(), ['x-group-1.jsonl', 'x-private-1.jsonl']);
assert.equal(readdirSync(join(own, 'pages')).filter((name) => /-(private|group)-summary\.html$/.test(name)).length, 2);
writeFileSync(join(scratch, 'x-2.hlog'), '');

const file = join(scratch, 'comparison.json');
const saved = await muster(['compare', one, '--', two, '--output', file]);
assert.equal(saved.code, 0);
assert.equal(JSON.parse(readFileSync(file, 'utf8')).document, 'compare');
const over = await muster(['compare', one, '--', two, '--output', file]);
assert.equal(over.code, 3);
assert.match(over.err, /exists already and is never overwritten/);
for (const [args, code, says] of [
  [['compare', one, '--', one], 3, /is there twice/],
  [['compare', folder, '--', two], 3, /differ among themselves|is invalid/],
  [['compare', scratch, '--', two], 2, /holds no run reports/],
  [['compare', join(scratch, 'nowhere'), '--', two], 2, /cannot read .*nowhere/],
  [['compare', file, '--', two], 2, /is no run report/],
  [['compare', one, two], 2, /name both sides/],
  [['compare', one, '--', two, '--junit', junit], 2, /gates\.xml exists already/],
  [['compare', one, '--', two, '--fail-on', 'delivery.p99 10%'], 2, /character \d+: a change must follow/],
  [['compare', one, '--', two, '--fail-no', 'x'], 2, /did you mean --fail-on/],
  [['run', 'private', '--trials', '2', '--output', file], 2, /is a file: trials go into a folder/],
  [['run', 'private', '--trials', '2', '--ui', '0'], 2, /--ui follows one run: .*--html/],
  [['run', 'private', '--trials', '2', '--jsonl', '-'], 2, /--jsonl -: .*name a file/],
  [['run', 'private', '--trials', '2', '--hlog', join(scratch, 'x.hlog')], 2, /x-2\.hlog exists already/],
  [['run', 'private', 'group', '--trials', '1', '--html', join(scratch, 'a.html')], 2, /several workloads need a folder/],
  [['run', 'private', 'private'], 2, /two workloads are named private/],
  [['run', 'private', 'group', '--json', '-'], 2, /--json takes one summary/],
  [['run', 'private', '--trials', '0'], 2, /--trials 0/],
  [['find', 'private', '--trials', '2'], 2, /--trials belongs to `muster run`/],
  [['run', 'private', '--trials', '2', '--target', 'ws://127.0.0.1:9', '--app-key', 'k', '--output', join(scratch, 'none')], 4, /./],
]) {
  const result = await muster(args);
  assert.equal(result.code, code, `muster ${args.join(' ')}: ${result.out}${result.err}`);
  assert.match(result.err, says);
}
console.log(`${index().length} documents, none overwritten`);
