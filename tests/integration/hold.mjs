// Held connections and storms: more clients than one table of open files has room for on either side, clients that
// come back with what they missed, and a server that dies while it is holding.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, run, scratch, startMusterd, stop, target } from './lib.mjs';

const show = (what, { code, report, out, err }) => {
  assert.ok(report, `${what}: no report: ${out}${err}`);
  const { connections, deliveries, storm, memory, workers, verdict } = report;
  console.log(`${what}: ${JSON.stringify({ code, connections, deliveries, storm, memory, workers: workers.length, verdict })}`);
  return report;
};

// Only a machine whose cores are taken away for long can make such a run invalid.
const onlyTheMachine = (report) =>
  report.verdict.reasons.every((reason) => /clock gaps|busy|schedule_lag/.test(reason));

function checkHeld(what, result, clients) {
  const report = show(what, result);
  assert.ok(onlyTheMachine(report), JSON.stringify(report.verdict));
  assert.equal(report.connections.established, clients);
  assert.equal(report.connections.failed + report.connections.dropped, 0);
  assert.equal(report.publishes.scheduled, 0);
  assert.equal(report.deliveries.unexpected, 0);
  return report;
}

// Keep-alives of every client within the phase, and nobody dropped by them.
const held = checkHeld(
  'hold 2,000',
  await run('hold', ['--clients', '2000', '--duration', '4s', '--keep-alive', '1s', '--connect-rate', '4000']),
  2000,
);
assert.ok(held.phases.connect_s > 0.45, `2,000 at 4,000/s took ${held.phases.connect_s} s`);
assert.ok(held.bytes.sent > 2000 * 3 * 2, `3 keep-alives each: ${held.bytes.sent} bytes sent`);
assert.ok(held.memory.generator.held_bytes > held.memory.generator.before_bytes);
assert.ok(held.memory.server.held_bytes > held.memory.server.before_bytes);
assert.equal(held.workload.keep_alive_s, 1);

// 1,500 clients where one table of open files holds 600: several workers, several gateways.
const limited = await new Promise((resolve, reject) => {
  const file = join(scratch, 'limited.json');
  const command = `ulimit -n 600 && exec "$0" run hold --clients 1500 --duration 2s --quiet --output "${file}"`;
  const child = spawn('sh', ['-c', command, join(build, 'muster')], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.on('data', (data) => (text += data));
  child.stderr.on('data', (data) => (text += data));
  child.on('error', reject);
  child.on('close', (code) => {
    try {
      resolve({ code, report: JSON.parse(readFileSync(file, 'utf8')) });
    } catch (error) {
      reject(new Error(`code ${code}: ${text}`, { cause: error }));
    }
  });
});
const report = checkHeld('hold 1,500 under ulimit -n 600', limited, 1500);
assert.ok(report.workers.length >= 3);

// From given source addresses, which the server sees.
checkHeld(
  'hold from three addresses',
  await run('hold', ['--clients', '30', '--duration', '1s', '--local-addr', '127.0.0.2-127.0.0.4']),
  30,
);
const foreign = await run('hold', ['--clients', '30', '--local-addr', '192.0.2.1']);
assert.equal(foreign.code, 2, foreign.err);
assert.match(foreign.err, /192\.0\.2\.1/);

// To several addresses, of the embedded server and of one that listens on them; clients are spread evenly, so that where
// one address in four has no server a quarter is refused.
checkHeld(
  'hold to three addresses',
  await run('hold', ['--clients', '30', '--duration', '1s', '--target-addr', '127.0.0.2-127.0.0.4']),
  30,
);
const many = await startMusterd(['--no-rate-limits', '--host', '127.0.0.1,127.0.0.2-127.0.0.3']);
const spread = show('one address of four refuses', await run('hold', [
  ...target(many), '--clients', '48', '--duration', '1s', '--target-addr', '127.0.0.1-127.0.0.4', '--allow-partial',
  '--local-addr', '127.0.0.5-127.0.0.7',
]));
assert.deepEqual([spread.connections.established, spread.connections.failed], [36, 12]); // of 12 pairs
assert.deepEqual(spread.connections.failed_by_code.map(({ name }) => name), ['connect_refused']);
assert.equal(spread.workload.target_addresses, '127.0.0.1-127.0.0.4');
await stop(many);
const away = await run('hold', ['--clients', '30', '--target-addr', '192.0.2.1']);
assert.equal(away.code, 2, away.err);
assert.match(away.err, /--target-addr.*--allow-non-loopback/);

// A storm from the server's side: the same, but for whose end it was.
const ended = show('storm by the server', await run('storm', [
  '--clients', '60', '--rate', '300', '--warmup', '500ms', '--duration', '3s', '--storm-at', '1s', '--storm-by', 'server',
]));
assert.ok(onlyTheMachine(ended), JSON.stringify(ended.verdict));
assert.deepEqual([ended.storm.by, ended.storm.lost, ended.storm.returned], ['server', 60, 60]);
assert.equal(ended.connections.dropped, 0);
assert.equal(ended.deliveries.lost, 0);
assert.ok(ended.limitations.some((sentence) => sentence.includes('SIGUSR1')));
const elsewhere = await run('storm', ['--storm-by', 'server', '--target', 'ws://127.0.0.1:1']);
assert.equal(elsewhere.code, 2);
assert.match(elsewhere.err, /--storm-by server .* leave --target out/);

// A storm: everybody is back, and nothing that was sent meanwhile is lost to those who were away.
const storm = show('storm', await run('storm', [
  '--clients', '100', '--rate', '1000', '--warmup', '1s', '--duration', '6s', '--storm-at', '2s', '--backoff', '500ms',
]));
assert.ok(onlyTheMachine(storm), JSON.stringify(storm.verdict));
assert.equal(storm.storm.lost, 100);
assert.equal(storm.storm.returned, 100);
assert.equal(storm.storm.attempts, storm.storm.returned + storm.storm.failed);
assert.equal(storm.connections.reconnected, 100);
assert.equal(storm.connections.dropped, 0);
assert.equal(storm.latency.recover.count, 100);
assert.ok(storm.latency.recover.min_ns > 250e6 * 0.99, 'nobody is back before half of the backoff');
assert.ok(storm.storm.all_back_s >= storm.latency.recover.max_ns / 1e9 - 0.01);
const { publishes, deliveries } = storm;
const unsent = publishes.unsent_by_code.find((entry) => entry.name === 'not_connected')?.count ?? 0;
assert.ok(unsent > 0, 'senders that were away could not send');
assert.equal(publishes.unsent, unsent);
// Whoever came back first wrote to a neighbour that was still away: it has pulled that.
assert.ok(deliveries.recovered > 0, JSON.stringify(deliveries));
assert.equal(deliveries.lost, 0);
assert.equal(deliveries.duplicate, 0);
assert.equal(deliveries.unexpected, 0);
assert.equal(deliveries.expected + deliveries.recovered, publishes.acked);

// A server that dies while it holds: every client says why it ended, and the run is invalid.
const server = await startMusterd(['--no-rate-limits']);
const died = await run('hold', [...target(server), '--clients', '300', '--duration', '5s'], {
  onStart: () => setTimeout(() => server.kill('SIGKILL'), 3000),
});
const after = show('server killed', died);
assert.equal(died.code, 3);
assert.equal(after.connections.dropped, 300);
const causes = after.connections.dropped_by_code.map((entry) => entry.name);
assert.ok(causes.every((name) => name === 'reset' || name === 'closed_by_peer'), causes.join());
assert.equal(after.series.dropped.reduce((sum, count) => sum + count, 0), 300);
await stop(server);

// And in a storm nobody comes back to it: the attempts fail by their cause, and the run ends.
const doomed = await startMusterd(['--no-rate-limits']);
const gone = await run(
  'storm',
  [...target(doomed), '--clients', '50', '--warmup', '0s', '--duration', '4s', '--storm-at', '3s', '--delivery-grace', '2s'],
  { onStart: () => setTimeout(() => doomed.kill('SIGKILL'), 2500) },
);
const lonely = show('storm on a dead server', gone);
assert.equal(gone.code, 3);
assert.ok(lonely.storm.returned < lonely.storm.lost);
assert.equal(lonely.storm.all_back_s, null);
assert.equal(lonely.storm.attempts, lonely.storm.returned + lonely.storm.failed);
assert.ok(lonely.storm.failed_by_code.some((entry) => entry.name === 'connect_refused'));
