// A server that freezes for 3 s in a measure phase of 10 s. Open-loop theory: publishes keep falling due at an even
// rate, so of all messages the share (3 s - x) / 10 s waits longer than x; p99.9 must come out near 2.99 s and p75 at
// about 0.5 s. It must show in the scheduled clocks (ack, delivery), not in *_service alone.
import assert from 'node:assert/strict';
import { run, sleep, startMusterd, stop, target } from './lib.mjs';

const server = await startMusterd(['--no-rate-limits']);
const frozenMs = 3000;
let thawed;
const result = await run(
  'private',
  [...target(server), '--clients', '50', '--rate', '500', '--warmup', '1s', '--duration', '10s', '--delivery-grace', '5s'],
  {
    onStart: () => {
      thawed = (async () => {
        await sleep(4500);
        server.kill('SIGSTOP');
        const began = Date.now();
        await sleep(frozenMs);
        server.kill('SIGCONT');
        return Date.now() - began;
      })();
    },
  },
);
const lasted = await thawed;
assert.ok(result.report, `no report: ${result.out}${result.err}`);
const { latency, publishes, deliveries } = result.report;
console.log(`frozen for ${lasted} ms; ack p99.9 ${latency.ack.p99_9_ns / 1e6} ms, delivery p99.9 ${latency.delivery.p99_9_ns / 1e6} ms`);
assert.equal(publishes.scheduled, 5000);
assert.equal(publishes.attempted, 5000, 'the schedule does not slow down with the server');
assert.equal(publishes.acked, 5000);
assert.equal(deliveries.lost, 0);
for (const clock of ['ack', 'delivery']) {
  const { p99_9_ns: p999, p75_ns: p75, max_ns: max } = latency[clock];
  const theory = (lasted - 0.001 * 10000) * 1e6;
  assert.ok(Math.abs(p999 - theory) < 0.1 * theory, `${clock} p99.9 is ${p999 / 1e6} ms, theory ${theory / 1e6} ms`);
  const quarter = (lasted - 2500) * 1e6;
  assert.ok(p75 > 0.5 * quarter && p75 < quarter + 400e6, `${clock} p75 is ${p75 / 1e6} ms, theory ${quarter / 1e6} ms`);
  assert.ok(max >= latency[`${clock}_service`].max_ns, `${clock} is never shorter than its service time`);
}
await stop(server);
