// Every topology and load model against the embedded musterd, small: exact counts, and nothing lost. The verdict also
// judges the machine (clock gaps, lateness), which other programs disturb, so its reasons are read, not its result.
import assert from 'node:assert/strict';
import { run } from './lib.mjs';

const quick = ['--warmup', '300ms', '--delivery-grace', '5s', '--connect-timeout', '20s'];
const machine = /clock gaps|schedule_lag p99|% busy/;

function checkClean(report, what) {
  const { publishes, deliveries, warmup } = report;
  for (const name of ['lost', 'duplicate', 'reordered', 'corrupt', 'unexpected', 'unacked_delivered']) {
    assert.equal(deliveries[name], 0, `${what}: ${name}`);
    assert.equal(warmup.deliveries[name], 0, `${what}: ${name} in the warm-up`);
  }
  assert.equal(publishes.attempted, publishes.scheduled, `${what}: unsent`);
  if (report.has_acks) assert.equal(publishes.acked, publishes.attempted, `${what}: acked`);
  assert.equal(deliveries.observed, deliveries.expected, `${what}: observed`);
  const reasons = report.verdict.reasons.filter((reason) => !machine.test(reason));
  assert.deepEqual(reasons, [], `${what}: verdict`);
}

// expect: publishes (a number, or undefined where the pace decides), fanOut, and what else must hold.
async function check(line, expect) {
  const [workload, ...args] = line.split(' ');
  const result = await run(workload, [...quick, ...args]);
  assert.ok([0, 3].includes(result.code), `${line}: exit ${result.code}: ${result.err}`);
  const { report } = result;
  assert.ok(report, `${line}: no report: ${result.out}${result.err}`);
  checkClean(report, line);
  const { publishes, deliveries } = report;
  if (expect.publishes !== undefined) assert.equal(publishes.attempted, expect.publishes, `${line}: publishes`);
  assert.ok(publishes.attempted > 0, line);
  assert.equal(deliveries.observed, publishes.attempted * expect.fanOut, `${line}: deliveries`);
  assert.equal(report.phases.ended_by, expect.endedBy ?? 'time', `${line}: ended by`);
  for (const [name, value] of Object.entries(expect.workload ?? {})) {
    assert.deepEqual(report.workload[name], value, `${line}: workload.${name}`);
  }
  for (const clock of expect.clocks ?? []) {
    assert.equal(report.latency[clock].count, publishes.attempted, `${line}: ${clock}`);
  }
  console.log(`${line}: ${publishes.attempted} publishes, ${deliveries.observed} deliveries`);
  return report;
}

const second = '--duration 1s --rate 100';
const fanOutClocks = ['fanout_first', 'fanout_complete'];

// Topologies, open loop.
await check(`private --clients 10 ${second}`, { publishes: 100, fanOut: 1, clocks: ['ack', 'delivery'] });
await check(`pairs --clients 10 ${second}`, { publishes: 100, fanOut: 1, workload: { topology: 'pairs', senders: 10 } });
await check(`star --senders 3 --receivers 7 ${second}`, { publishes: 100, fanOut: 1, workload: { clients: 10, senders: 3 } });
await check(`star --senders 3 --receivers 7 --receivers-online 0 ${second}`, {
  publishes: 100, fanOut: 0, workload: { offline: 7 },
});
await check(`group --clients 12 --group-senders 3 ${second}`, { publishes: 100, fanOut: 11, clocks: fanOutClocks });
await check(`group --clients 12 --group-senders 3 --receivers-online 2 ${second}`, { publishes: 100, fanOut: 4 });
await check(`groups --groups 3 --members 5 --group-senders 2 ${second}`, {
  publishes: 100, fanOut: 4, workload: { topology: 'groups', clients: 15, senders: 6, groups: 3 },
});
await check(`groups --groups 4 --members 6 --group-senders 2 --shared-groups ${second}`, {
  publishes: 100, fanOut: 5, workload: { clients: 6, senders: 2, shared_groups: true },
});
await check(`room --clients 8 --senders 2 ${second}`, { publishes: 100, fanOut: 7 });
for (const driver of ['shootout-json', 'shootout-binary', 'shootout-phoenix', 'shootout-actioncable']) {
  const report = await check(`broadcast --clients 6 --senders 2 --driver ${driver} ${second}`, {
    publishes: 100, fanOut: 6, clocks: ['ack', 'broadcast_result', ...fanOutClocks],
  });
  assert.deepEqual(report.latency.broadcast_result, report.latency.ack);
  const echo = await check(`echo --clients 6 --driver ${driver} ${second}`, { publishes: 100, fanOut: 1, clocks: ['delivery'] });
  assert.equal(echo.has_acks, false);
  assert.equal(echo.latency.ack, undefined);
  assert.equal(echo.rates.acks_per_second, null);
}

// Load models.
await check('private --clients 10 --steps 50,100,150 --duration 1500ms', { publishes: 150, fanOut: 1 });
await check('private --clients 10 --steps 50@400ms,100@600ms', { publishes: 80, fanOut: 1, workload: { duration_s: 1 } });
await check('private --clients 10 --rate 50 --ramp-to 150 --duration 1s', { publishes: 100, fanOut: 1 });
await check('private --clients 10 --rate 200 --count 77', { publishes: 77, fanOut: 1, endedBy: 'count' });
await check('private --clients 10 --rate 200 --count 77 --arrivals poisson', { publishes: 77, fanOut: 1, endedBy: 'count' });
const closed = await check('private --clients 10 --outstanding 2 --duration 1s', {
  fanOut: 1, workload: { load_model: 'closed', rate_per_second: null, outstanding: 2, arrivals: null },
});
assert.equal(closed.rates.asked_publishes_per_second, null);
assert.ok(closed.limitations.some((sentence) => sentence.startsWith('A closed loop')));
await check('group --clients 5 --group-senders 2 --outstanding 1 --count 41', { publishes: 41, fanOut: 4, endedBy: 'count' });
await check('echo --clients 4 --outstanding 3 --count 500', { publishes: 500, fanOut: 1, endedBy: 'count' });
await check('broadcast --clients 6 --senders 4 --outstanding 1 --count 120', { publishes: 120, fanOut: 6, endedBy: 'count' });
// As websocket-bench spells them: -c is of all clients together.
const twoHundred = '-s 200 --payload-padding 200 --local-addr 127.0.0.2';
for (const type of ['json', 'binary', 'phoenix', 'actioncable']) {
  const spelt = await check(`broadcast --clients 6 --server-type ${type} -c 4 ${twoHundred}`, {
    publishes: 200, fanOut: 6, endedBy: 'count',
    workload: { senders: 4, outstanding: 1, payload_bytes: 200, load_model: 'closed' },
  });
  assert.equal(spelt.target.protocol, `shootout-${type}`);
  await check(`echo --clients 6 --server-type ${type} --concurrent 3 --sample-size 100`, {
    publishes: 100, fanOut: 1, endedBy: 'count', workload: { clients: 6, senders: 3, outstanding: 1 },
  });
}
await check('echo --clients 3 --concurrent 6 --sample-size 100', {
  publishes: 100, fanOut: 1, endedBy: 'count', workload: { senders: 3, outstanding: 2 },
});
await check('private --clients 4 --outstanding 4 --max-rate 2 --duration 60s', { fanOut: 1, endedBy: 'capacity' });
await check('star --senders 3 --receivers 5 --rounds 4', {
  publishes: 60, fanOut: 1, endedBy: 'count', workload: { load_model: 'rounds' },
});
await check('star --senders 3 --receivers 5 --rounds 2 --interval 20ms', {
  publishes: 30, fanOut: 1, endedBy: 'count', workload: { interval_s: 0.02, duration_s: 0.2 },
});
await check('groups --shared-groups --groups 6 --members 5 --group-senders 3 --rounds 2', {
  publishes: 36, fanOut: 4, endedBy: 'count',
});
