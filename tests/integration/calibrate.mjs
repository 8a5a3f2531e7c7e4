// muster calibrate over each protocol that the null peer speaks.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { scratch, searchWith } from './lib.mjs';

const state = { env: { XDG_STATE_HOME: join(scratch, 'state') } };

// Every protocol that the null peer speaks gets an answer, whatever the machine is doing.
for (const [driver, workload, ...more] of [
  ['mqtt', 'group', '--qos', '1'], ['nats', 'private', '--target', 'nats://127.0.0.1/?ack=flush'], ['redis', 'private'],
  ['nats', 'nats-group', '--scale', '0.01', '--group-senders', '2'], // whose objectives are about a server
  ['shootout-json', 'echo', '--payload-bytes', '200'], ['shootout-binary', 'broadcast', '--payload-bytes', '200'],
]) {
  const { document, code, err } = await searchWith('calibrate', [workload, '--driver', driver, ...more, '--clients', '5',
    '--from', '40', '--to', '40', '--duration', '1s', '--warmup', '100ms'], state);
  assert.ok(document, `${driver}: ${err}`);
  const [{ figures }] = document.steps;
  assert.ok(figures.attempts_per_second > 0 && figures.lost === 0, `${driver}: ${JSON.stringify(figures)}`);
  assert.ok([0, 1, 3].includes(code), `${driver}: ${code} ${err}`);
}
