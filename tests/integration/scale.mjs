// The size that the foundation promises: 1,000 clients at 5,000 publishes/s in a ring, and a group of 200 members, both
// valid with nothing lost and nothing twice, against the embedded server.
import assert from 'node:assert/strict';
import { generatorLate, run } from './lib.mjs';

async function check(workload, args, expected) {
  const { code, out, err, report } = await run(workload, args);
  assert.ok(report, `no report: ${out}${err}`);
  const { publishes, deliveries, verdict } = report;
  console.log(`${workload}: ${JSON.stringify({ publishes, deliveries, verdict })}`);
  assert.equal(publishes.scheduled, expected.publishes);
  const late = generatorLate(publishes);
  const sent = expected.publishes - late;
  assert.equal(publishes.acked, sent);
  assert.equal(deliveries.expected, sent * expected.fanOut);
  assert.equal(deliveries.observed, sent * expected.fanOut);
  for (const name of ['lost', 'duplicate', 'reordered', 'corrupt', 'unexpected']) assert.equal(deliveries[name], 0, name);
  return { isWhole: code === 0 && late === 0, verdict };
}

// Only a machine whose cores are taken away for long can make such a run invalid; then it is tried again.
const machine = /clock gaps|schedule_lag p99|% busy|the generator did not come/;
const notShown = [];
async function checkValid(...args) {
  let last;
  for (let attempt = 0; attempt < 3; attempt++) {
    last = await check(...args);
    if (last.isWhole) return;
    const others = last.verdict.reasons.filter((reason) => !machine.test(reason));
    assert.deepEqual(others, [], 'only the machine may be in the way');
  }
  notShown.push(args[0]);
}

await checkValid('private', ['--clients', '1000', '--rate', '5000', '--warmup', '2s', '--duration', '5s'], {
  publishes: 25000,
  fanOut: 1,
});
await checkValid('group', ['--clients', '200', '--rate', '200', '--group-senders', '4', '--warmup', '2s', '--duration', '5s'], {
  publishes: 1000,
  fanOut: 199,
});

if (notShown.length > 0) {
  console.log(`this machine is too busy to tell whether such runs are valid: ${notShown.join(', ')}: skipped`);
  process.exit(77);
}
