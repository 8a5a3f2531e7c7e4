// kill -9 in mid-load: everything that was acked under `durable` is stored. muster records what was acked, a server
// started again on the same store answers for what it has.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { run, appKey, secret, startMusterd, stop, target } from './lib.mjs';

async function api(server, path) {
  const nonce = randomBytes(8).toString('hex');
  const timestamp = String(Date.now());
  const signature = createHash('sha1').update(secret + nonce + timestamp).digest('hex');
  const answer = await fetch(`http://${server.api}/apigateway${path}`, {
    headers: { appkey: appKey, nonce, timestamp, signature },
  });
  const body = await answer.json();
  assert.equal(body.code, 0, `${path}: ${JSON.stringify(body)}`);
  return body.data;
}

// The driver names its users after the first half of the run id's digits.
const userId = (runId, i) => `muster-${/[0-9a-f]{16}$/.exec(runId)[0].slice(0, 8)}-${i}`;

// All stored messages from one user to another, page by page.
async function stored(server, from, to) {
  let start = 0;
  let count = 0;
  for (;;) {
    const page = await api(
      server,
      `/hismsgs/query?channel_type=1&from_id=${from}&target_id=${to}&start=${start}&count=50&order=1`,
    );
    count += page.msgs.filter((msg) => msg.sender_id === from).length;
    if (page.is_finished) return count;
    start = page.msgs.at(-1).msg_time;
  }
}

for (let round = 0; round < 3; round++) {
  const server = await startMusterd(['--no-rate-limits', '--ack', 'durable']);
  const killAfterMs = 2500 + round * 700;
  const result = await run(
    'private',
    [...target(server), '--clients', '10', '--rate', '3000', '--warmup', '0s', '--duration', '6s', '--delivery-grace', '1s', '--seed', '7'],
    { onStart: () => setTimeout(() => server.kill('SIGKILL'), killAfterMs) },
  );
  assert.equal(result.code, 3, `a run whose server died is invalid: ${result.out}${result.err}`);
  const { publishes, run_id: runId } = result.report;
  assert.ok(publishes.acked > 500, `too few acked before the kill: ${publishes.acked}`);

  const again = await startMusterd(['--no-rate-limits'], { data: server.data });
  let total = 0;
  const users = [...Array(10).keys()].map((i) => userId(runId, i));
  for (let i = 0; i < 10; i++) total += await stored(again, users[i], users[(i + 1) % 10]);
  console.log(`round ${round}: acked ${publishes.acked}, attempted ${publishes.attempted}, stored ${total}`);
  assert.ok(total >= publishes.acked, `acked ${publishes.acked} but stored ${total}`);
  assert.ok(total <= publishes.attempted, `stored ${total} but attempted ${publishes.attempted}`);
  await stop(again);
}

// A clean stop in mid-load loses nothing acked either.
const server = await startMusterd(['--no-rate-limits']);
const result = await run(
  'private',
  [...target(server), '--clients', '10', '--rate', '3000', '--warmup', '0s', '--duration', '6s', '--delivery-grace', '1s'],
  { onStart: () => setTimeout(() => server.kill('SIGTERM'), 3000) },
);
const ended = await server.ended;
assert.equal(ended.code, 0, `musterd stops cleanly: ${server.err}`);
const again = await startMusterd(['--no-rate-limits'], { data: server.data });
let total = 0;
const users = [...Array(10).keys()].map((i) => userId(result.report.run_id, i));
for (let i = 0; i < 10; i++) total += await stored(again, users[i], users[(i + 1) % 10]);
console.log(`clean stop: acked ${result.report.publishes.acked}, stored ${total}`);
assert.ok(total >= result.report.publishes.acked);
await stop(again);
