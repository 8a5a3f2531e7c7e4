// Backlogs: receivers who were offline while everything was sent come back and read it, page after page, and each
// message counts once; what a server lost meanwhile shows as lost.
import assert from 'node:assert/strict';
import { run, sleep, startMusterd, stop, target } from './lib.mjs';

const machine = /clock gaps|schedule_lag p99|% busy/;
const others = (report) => report.verdict.reasons.filter((reason) => !machine.test(reason));

function show(what, { code, report, out, err, ms }) {
  assert.ok(report, `${what}: no report: ${out}${err}`);
  const { connections, publishes, deliveries, backlog, phases, verdict } = report;
  console.log(`${what}: ${JSON.stringify({ code, ms, connections, acked: publishes.acked, deliveries, backlog, phases, verdict })}`);
  return report;
}

// Of a schedule of `count` all fall due; how many can still be sent when the machine was busy is not the point here.
function ackedOf(report, count) {
  const { scheduled, attempted, unsent, acked, rejected } = report.publishes;
  assert.equal(scheduled, count);
  assert.equal(attempted + unsent, count);
  assert.equal(acked + rejected, attempted);
  assert.ok(acked > count / 4, `only ${acked} of ${count} acked`);
  return acked;
}

function checkWhole(report, receivers, messages, what) {
  const { connections, publishes, deliveries, backlog, latency } = report;
  assert.equal(publishes.acked, messages, what);
  assert.equal(deliveries.expected, messages, what);
  assert.equal(deliveries.observed, messages, what);
  for (const fault of ['lost', 'duplicate', 'reordered', 'corrupt', 'unexpected', 'late', 'unacked_delivered', 'recovered']) {
    assert.equal(deliveries[fault], 0, `${what}: ${fault}`);
  }
  assert.equal(connections.failed, 0, what);
  assert.equal(connections.established, report.workload.clients, what);
  assert.equal(report.workload.clients - report.workload.senders, receivers, what);
  assert.equal(backlog.receivers, receivers, what);
  assert.equal(backlog.returned, receivers, what);
  assert.equal(backlog.complete, receivers, what);
  assert.equal(latency.backlog_first.count, receivers, what);
  assert.equal(latency.backlog_complete.count, receivers, what);
  assert.ok(latency.backlog_first.max_ns <= latency.backlog_complete.max_ns, what);
  assert.equal(latency.connect.count, report.workload.senders, `${what}: connects of the senders`);
  assert.equal(latency.delivery, undefined, `${what}: no delivery clock`);
  assert.deepEqual(others(report), [], what);
}

// 450 messages for each of 20: three pages of 200, 200 and 50. Rounds, and an open loop.
const rounds = await run('backlog', ['--clients', '20', '--senders', '5', '--rounds', '90']);
checkWhole(show('rounds', rounds), 20, 9000, 'rounds');
const open = await run('backlog', ['--clients', '20', '--rate', '4500', '--count', '9000', '--connect-concurrency', '3']);
checkWhole(show('open loop', open), 20, ackedOf(open.report, 9000), 'open loop');
// A page that is full to the last message is not the last one.
const full = await run('backlog', ['--clients', '5', '--senders', '1', '--rounds', '200', '--plain', '--connect-rate', '20']);
checkWhole(show('full pages', full), 5, 1000, 'full pages');
// With the server's limits on, pulls are refused and tried again, and nothing is lost.
const limited = await run('backlog', [
  '--clients', '2', '--senders', '50', '--rate', '2500', '--count', '6000', '--payload-bytes', '100', '--rate-limits', 'on',
]);
checkWhole(show('rate limits', limited), 2, ackedOf(limited.report, 6000), 'rate limits');

// The server dies when everything was sent and acked, and few receivers are back: it is lost to those who come for it, and the run says so.
const server = await startMusterd(['--no-rate-limits']);
async function killWhenAllIsAcked(count) {
  for (;;) {
    const metrics = await (await fetch(`http://${server.ws}/metrics`)).json();
    if (metrics.musterd.core.acks >= count) break;
    await sleep(20);
  }
  await stop(server, 'SIGKILL');
}
const killing = killWhenAllIsAcked(400);
const dead = await run('backlog', [
  ...target(server), '--clients', '10', '--senders', '4', '--rate', '400', '--count', '400',
  '--delivery-grace', '1s', '--catch-up-timeout', '60s', '--connect-rate', '4',
]);
await killing;
const report = show('a server that dies before the catch-up', dead);
assert.equal(dead.code, 3);
assert.equal(report.publishes.acked, 400);
assert.equal(report.deliveries.expected, 400);
assert.equal(report.deliveries.expected, report.deliveries.observed + report.deliveries.lost);
assert.ok(report.deliveries.lost > 0);
assert.ok(report.backlog.returned < 10);
assert.equal(report.connections.attempted, report.connections.established + report.connections.failed);
assert.equal(report.connections.attempted, 14);
assert.equal(report.latency.backlog_complete.count, report.backlog.complete);
assert.ok(report.verdict.reasons.some((reason) => /of 10 receivers came back/.test(reason)), report.verdict.reasons.join('; '));
assert.ok(report.phases.catch_up_s < 60, 'who was refused is not waited for until the deadline');
