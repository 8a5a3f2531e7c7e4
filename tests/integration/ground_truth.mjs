// Ground truth: a proxy injects known faults into deliveries; muster's counters must equal them exactly.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { build, run, start, startMusterd, stop, target } from './lib.mjs';

const server = await startMusterd(['--no-rate-limits']);

async function inject(workload, faults, args) {
  const proxy = await start(join(build, 'tests/integration/fault_proxy'), [server.ws, ...faults], /port (\d+)/);
  const result = await run(workload, [...target(server, `127.0.0.1:${proxy.ready[1]}`), ...args]);
  await stop(proxy);
  assert.ok(result.report, `no report: ${result.out}${result.err}`);
  const truth = JSON.parse(proxy.out.split('\n').find((line) => line.startsWith('{')));
  return { truth, deliveries: result.report.deliveries, report: result.report };
}

function check({ truth, deliveries }, what) {
  assert.ok(truth.drop > 5 && truth.duplicate > 5 && truth.corrupt > 5, `${what}: too few faults: ${JSON.stringify(truth)}`);
  assert.equal(deliveries.lost, truth.drop + truth.corrupt, `${what}: lost`);
  assert.equal(deliveries.duplicate, truth.duplicate, `${what}: duplicate`);
  assert.equal(deliveries.reordered, truth.swap, `${what}: reordered`);
  assert.equal(deliveries.corrupt, truth.corrupt, `${what}: corrupt`);
  assert.equal(deliveries.unexpected, 0, `${what}: unexpected`);
  assert.equal(deliveries.expected, deliveries.observed + deliveries.lost, `${what}: identity`);
  console.log(`${what}: ${JSON.stringify(truth)}`);
}

const common = ['--warmup', '1s', '--duration', '5s', '--delivery-grace', '4s'];
const faults = ['drop=50', 'duplicate=50', 'swap=50', 'corrupt=50'];
check(await inject('private', faults, [...common, '--clients', '20', '--rate', '400']), 'private, obfuscated');
check(await inject('private', faults, [...common, '--clients', '20', '--rate', '400', '--plain']), 'private, plain');
check(await inject('group', faults, [...common, '--clients', '20', '--rate', '60', '--group-senders', '3']), 'group');

const delayed = await inject('private', ['delay=40', 'delay_ms=700'], [...common, '--clients', '50', '--rate', '200']);
assert.ok(delayed.truth.delay > 5);
assert.equal(delayed.deliveries.lost, 0);
assert.ok(delayed.report.latency.delivery.max_ns >= 700e6, 'a delayed delivery is seen late');
assert.ok(delayed.report.latency.delivery_service.max_ns >= 700e6);
console.log(`delay: ${JSON.stringify(delayed.truth)}`);

const clean = await inject('private', [], [...common, '--clients', '20', '--rate', '400']);
for (const name of ['lost', 'duplicate', 'reordered', 'corrupt', 'unexpected']) assert.equal(clean.deliveries[name], 0, name);
await stop(server);
