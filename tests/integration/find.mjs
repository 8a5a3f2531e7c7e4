// muster find against a musterd whose capacity is known: its rate limit. 10 clients may publish 20/s each and six at
// once, so 200 publishes/s hold for ever and more than 10 * (20 + 6 / 3 s) = 220 cannot hold for the 3 s of a test.
// Then: an answer is never made from tests whose generator was the limit; a calibration shows in later reports.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { muster, run, scratch, searchWith, sleep, startMusterd, stop, target } from './lib.mjs';

const state = { env: { XDG_STATE_HOME: join(scratch, 'state') } };
const search = (command, args, onStart) => searchWith(command, args, { ...state, onStart });

// What must be true of every search, on however busy a machine.
function checkConsistent({ document, out, code }) {
  const { result, loads, steps } = document;
  const shown = steps.length + document.below_capacity.length;
  assert.equal(out.split('\n').filter((line) => /^ *\d+ .* (held|broken|invalid) /.test(line)).length, shown, out);
  for (const { load, held, broken } of loads) {
    if (held + broken === 0) continue; // it stayed invalid
    if (result.highest_held !== null && load <= result.highest_held) assert.ok(held > 0, `${load} never held`);
    if (result.lowest_broken !== null && load >= result.lowest_broken) assert.ok(broken > 1, `${load} broke ${broken} times`);
  }
  for (const step of steps) assert.equal(step.why === null, step.outcome === 'held');
  const ends = { found: 0, all_held: 0, none_held: 1, stayed_invalid: 3, tests_spent: 3 };
  assert.equal(code, ends[result.end], `exit code of ${result.end}`);
}

const server = await startMusterd(['--rate-limit', '20', '--rate-burst', '6']);
const known = [
  'private', ...target(server), '--clients', '10', '--from', '50', '--to', '1600', '--duration', '2s', '--warmup', '1s',
  '--delivery-grace', '1s', '--slo', 'rejected=0,lost=0',
];

// A machine that is busy elsewhere makes the generator late, and then there is rightly no answer: try again.
let found;
for (let attempt = 0; attempt < 4 && !found; attempt++) {
  const result = await search('find', known);
  assert.ok(result.document, `no document: ${result.out}${result.err}`);
  console.log(result.out);
  checkConsistent(result);
  const { end } = result.document.result;
  if (end === 'found') found = result.document;
  else assert.equal(end, 'stayed_invalid', 'the limit is there to be found');
}
if (!found) {
  console.log('this machine is too busy for a search: skipped');
  process.exit(77);
}
const { highest_held: held, lowest_broken: broken } = found.result;
assert.ok(held <= 220 && broken > 200, `the answer [${held}, ${broken}] excludes the known limit`);
assert.deepEqual(found.below_capacity.map(({ load }) => load / held), [0.5, 0.9]);
for (const { load, full_length: full, figures } of found.below_capacity) {
  assert.ok(full);
  assert.ok(Math.abs(figures.attempts_per_second - load) < 0.1 * load, `${load}: ${figures.attempts_per_second}`);
}
const mixed = found.loads.some((load) => load.held && load.broken);
assert.ok(mixed || broken - held <= 0.05 * broken, `[${held}, ${broken}] is wider than 5 %`);
for (const [load, side] of [[held, 'held'], [broken, 'broken']]) {
  const tests = found.steps.filter((step) => step.load === load && step.outcome === side);
  assert.ok(tests.length >= 2 && tests.some((step) => step.full_length), `${load} ${side} is confirmed at full length`);
}

const none = await search('find', [...known, '--from', '600', '--to', '800']);
checkConsistent(none);
if (none.document.result.end !== 'stayed_invalid') {
  assert.equal(none.document.result.end, 'none_held');
  assert.match(none.out, /not even 600 publishes\/s held/);
  assert.match(none.out, /rejected=0/);
}

// Whoever keeps stopping the generator's worker makes it late: that says nothing about the server.
const children = (pid) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
const signal = (pid, name) => {
  try {
    process.kill(pid, name);
  } catch {
    // the worker ended meanwhile
  }
};
let stopping = true;
async function disturb(generator) {
  while (stopping && generator.exitCode === null && generator.signalCode === null) {
    let workers = [];
    try {
      workers = children(generator.pid);
    } catch {
      // the generator ended meanwhile
    }
    for (const pid of workers) signal(pid, 'SIGSTOP');
    await sleep(60);
    for (const pid of workers) signal(pid, 'SIGCONT');
    await sleep(90);
  }
}
let disturbed;
const limited = await search('find', [...known, '--workers', '1'], (child) => (disturbed = disturb(child)));
stopping = false;
await disturbed;
await stop(server);
assert.ok(limited.document, limited.out + limited.err);
console.log(limited.out);
checkConsistent(limited);
assert.equal(limited.document.result.end, 'stayed_invalid');
assert.equal(limited.document.result.highest_held, null);
assert.equal(limited.document.result.lowest_broken, null);
assert.equal(limited.document.result.tests, 3, 'retried twice, then given up');
assert.match(limited.out, /the\s+generator\s+or\s+its\s+machine,\s+not\s+the\s+server,\s+was\s+the\s+limit/);

// The objective of a run decides its exit code, but only when it can be measured.
const short = ['--clients', '10', '--rate', '100', '--duration', '2s', '--warmup', '200ms'];
const unmeasurable = await run('private', [...short, '--slo', 'ack.p99.9<60s'], state);
assert.equal(unmeasurable.code, 3);
assert.equal(unmeasurable.report.verdict.objectives[0].held, null);
assert.equal(unmeasurable.report.calibration, null, 'nothing is calibrated yet');
const broke = await run('private', [...short, '--slo', 'ack.max<1ns', '--slo', 'lost=0'], state);
assert.deepEqual(broke.report.verdict.objectives.map((objective) => objective.held), [false, true]);
assert.equal(broke.code, broke.report.verdict.result === 'valid' ? 1 : 3);
const bad = await muster(['run', 'private', '--slo', 'delivery.p99<250'], state);
assert.equal(bad.code, 2);
assert.match(bad.err, /character 17: a time needs its unit/);

// A calibration is found again by a run of the same shape, and by no other.
const calibrated = await search('calibrate', [
  'private', '--clients', '10', '--from', '50', '--to', '100', '--duration', '1s', '--warmup', '200ms',
]);
assert.ok(calibrated.document, calibrated.out + calibrated.err);
console.log(calibrated.out);
if (calibrated.code === 0) {
  const shown = await muster(['calibrate', '--show'], state);
  assert.match(shown.out, /ring, 10 clients/);
  const same = await run('private', short, state);
  const { calibration, rates } = same.report;
  assert.equal(calibration.ceiling_publishes_per_second, calibrated.document.result.highest_held);
  assert.equal(calibration.is_lower_bound, calibrated.document.result.end === 'all_held');
  assert.ok(Math.abs(calibration.load_share - rates.attempts_per_second / calibration.ceiling_publishes_per_second) < 1e-9);
  assert.match(same.out, /of the generator's calibrated ceiling/);
  const other = await run('private', [...short, '--payload-bytes', '300'], state);
  assert.equal(other.report.calibration, null);
} else {
  console.log('this machine is too busy to calibrate');
}

// websocket-bench's options: clients grow, what is in flight does not.
const spelt = await search('find', [
  'broadcast', '--server-type', 'binary', '-c', '4', '-s', '200', '--payload-padding', '200', '--initial-clients', '4',
  '--step-size', '4', '--to', '8', '--limit-percentile', '95', '--limit-rtt', '60s', '--warmup', '0s',
]);
assert.ok(spelt.document, spelt.out + spelt.err);
console.log(spelt.out);
checkConsistent(spelt);
const { search: asked, steps, workload, target: bench } = spelt.document;
assert.deepEqual([asked.vary, asked.from, asked.step_size, asked.to], ['clients', 4, 4, 8]);
assert.deepEqual(asked.objectives, ['broadcast_result.p95<=60000000000ns']);
assert.deepEqual([workload.publishes, workload.payload_bytes, workload.senders], [200, 200, 4]);
assert.equal(bench.protocol, 'shootout-binary');
for (const { clients, figures } of steps) {
  assert.ok(clients === 4 || clients === 8);
  const fanOut = figures.deliveries_per_second / figures.attempts_per_second;
  // The phase ends with the last result frame: what the last few broadcasts still bring is late, and in no rate.
  assert.ok(fanOut > clients * 0.9 && fanOut < clients + 1e-6, `${clients} clients: ${fanOut} deliveries of a broadcast`);
  assert.equal(figures.lost, 0);
}
