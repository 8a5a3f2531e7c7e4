// The command that a report's page gives to repeat the run: for every workload, and every driver whose server is
// installed, it leads to the same workload, the same storm and the same key of comparability.
import assert from 'node:assert/strict';
import { reproduceWords, run, startBroker } from './lib.mjs';

const repeated = ({ workload, storm, comparability }) => ({
  // The name is that of the workload behind a preset; which publishes a closed loop comes to is up to the server.
  workload: { ...workload, name: undefined },
  storm: storm && { ...storm, lost: 0, returned: 0, attempts: 0, failed: 0, failed_by_code: 0, all_back_s: 0 },
  comparability,
});

// Returns the report of the first run.
async function check(line) {
  const [workload, ...args] = line.split(' ');
  const first = await run(workload, ['--warmup', '100ms', '--duration', '500ms', ...args]);
  assert.ok(first.report, `${line}: no report: ${first.out}${first.err}`);
  const command = reproduceWords(first.report);
  const again = await run(command[2], command.slice(3));
  assert.ok(again.report, `${command.join(' ')}: no report: ${again.out}${again.err}`);
  assert.deepEqual(repeated(again.report), repeated(first.report), line);
  console.log(`${line}: ${command.slice(0, 3).join(' ')} ...`);
  return first.report;
}

const lines = `private --clients 6 --rate 100 --plain --store-messages=false --arrivals poisson --ack received
pairs --clients 6 --outstanding 2 --count 50
star --senders 2 --receivers 5 --receivers-online 2 --rate 100
backlog --clients 5 --senders 2 --rounds 2 --warmup 0s
group --clients 6 --group-senders 2 --receivers-online 2 --rate 50 --rate-limits on
groups --groups 2 --members 4 --group-senders 2 --rate 50
groups --groups 3 --members 5 --group-senders 2 --shared-groups --receivers-online 1 --rounds 2
room --clients 5 --senders 2 --steps 50,100
broadcast --clients 5 --senders 2 --rate 50 --ramp-to 100
broadcast --clients 4 --concurrent 8 --count 40 --server-type binary
echo --clients 4 --concurrent 2 --count 40 --driver shootout-phoenix --keep-alive 2s
storm --clients 5 --rate 50 --storm-at 200ms --backoff 50ms --backoff-jitter 20 --storm-by server
msa --clients 3 --count 20 --warmup-requests 2
msa-batch --clients 2 --count 4 --batch-size 5
sync-cold --clients 1 --count 2 --docs 20 --batch-size 10 --payload-bytes 200
self --clients 2 --rate 20`;
for (const line of lines.split('\n')) await check(line);
const held = await check('hold --clients 20 --keep-alive 1s');
assert.equal(held.workload.keep_alive_s, 1);

const mqtt = startBroker('mqtt');
if (mqtt) {
  const strict = await check(`private --target ${mqtt} --clients 6 --rate 100 --qos 2 --mqtt-version 3.1.1 --retain --topic-prefix a`);
  assert.deepEqual(strict.workload.options,
    { 'mqtt-version': '3.1.1', qos: '2', 'clean-session': 'true', retain: 'true', 'topic-prefix': 'a' });
  const usual = await check(`private --target ${mqtt} --clients 6 --rate 100 --clean-session=false --receive-maximum 20`);
  assert.deepEqual(usual.comparability.options,
    { 'mqtt-version': '5', qos: '1', 'clean-session': 'false', retain: 'false', 'receive-maximum': '20', transport: 'tcp' });
  await check(`queue --target ${mqtt} --senders 2 --receivers 4 --queues 2 --rate 50`);
}
const nats = startBroker('nats');
if (nats) {
  const stored = await check(`group --target ${nats}/?ack=jetstream&storage=memory --clients 5 --rate 50`);
  assert.deepEqual(stored.workload.target_options, { ack: 'jetstream', headers: 'off', storage: 'memory' });
  const core = await check(`private --target ${nats} --clients 5 --rate 50`);
  assert.deepEqual(core.comparability.options, { ack: 'none', headers: 'off' });
}
const redis = startBroker('redis');
if (redis) {
  const bounded = await check(`queue --target ${redis}/?maxlen=500 --senders 2 --receivers 4 --rate 50`);
  assert.deepEqual(bounded.workload.target_options, { resp: '3', maxlen: '500', claim_ms: 'none' });
}
const socketio = startBroker('socketio');
if (socketio) {
  const named = await check(`private --target ${socketio}/?nsp=/ --clients 5 --rate 50 --origin http://127.0.0.1`);
  assert.equal(named.workload.target_options.nsp, '/');
  assert.deepEqual(named.comparability.options, { echo: 'off', ack: 'on' });
}
