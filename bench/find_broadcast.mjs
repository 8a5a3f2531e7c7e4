// How repeatable a capacity is, and whether two servers are told apart: `muster find broadcast` by number of clients,
// taking turns between an embedded musterd and a slow server made with npm's ws (tests/interop/shootout/slow_server.mjs:
// a broadcast costs it 20 us of waiting for each client). Prints each answer, then the spread of each server's.
// Usage: node bench/find_broadcast.mjs BUILD_FOLDER [REPEATS (5)] [further options of `muster find broadcast`]
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { muster, scratch } from '../tests/integration/lib.mjs';

const [repeats = '5', ...more] = process.argv.slice(3);
const delayUs = 20;
const options = [
  '--server-type', 'json', '--concurrent', '4', '--sample-size', '400', '--vary', 'clients', '--from', '64', '--to', '65536',
  '--limit-percentile', '95', '--limit-rtt', '50ms', '--payload-padding', '200', '--warmup', '200ms', '--quiet', ...more,
];
const say = (text) => process.stdout.write(`${text}\n`);

function startSlow() {
  const script = new URL('../tests/interop/shootout/slow_server.mjs', import.meta.url).pathname;
  const child = spawn('node', [script, String(delayUs)], { stdio: ['pipe', 'pipe', 'inherit'] });
  return new Promise((resolve, reject) => {
    child.on('exit', (code) => reject(new Error(`the slow server ended with ${code}`)));
    child.stdout.on('data', (data) => resolve({ child, url: /ready: (\S+)/.exec(data)[1] }));
  });
}

let searches = 0;
async function search(args) {
  const file = join(scratch, `search-${searches++}.json`);
  const { out, err, ms } = await muster(['find', 'broadcast', ...options, ...args, '--output', file], { deadlineMs: 900000 });
  try {
    return { ...JSON.parse(readFileSync(file, 'utf8')).result, ms };
  } catch {
    throw new Error(`no document: ${out}${err}`);
  }
}

const servers = [
  { name: 'musterd', find: () => search([]), answers: [] },
  {
    name: 'slow ws',
    answers: [],
    find: async () => {
      const { child, url } = await startSlow();
      const result = await search(['--target', url]);
      child.removeAllListeners('exit');
      child.stdin.end();
      return result;
    },
  },
];

const show = (value) => (value === null ? '-' : String(value));
for (let turn = 0; turn < Number(repeats); turn++) {
  for (const server of turn % 2 ? [...servers].reverse() : servers) {
    const answer = await server.find();
    server.answers.push(answer);
    say(`${server.name}  ${String(turn + 1).padStart(2)}  clients ${show(answer.highest_held)} held, ` +
      `${show(answer.lowest_broken)} broke: ${answer.end}, ${answer.tests} tests, ${(answer.ms / 1000).toFixed(0)} s`);
  }
}

let spoken = true;
for (const { name, answers } of servers) {
  const held = answers.map((answer) => answer.highest_held).filter((value) => value !== null).sort((a, b) => a - b);
  const middle = held[Math.floor(held.length / 2)];
  spoken &&= held.length === answers.length;
  if (middle === undefined) {
    say(`${name}  no answer in ${answers.length} searches`);
    continue;
  }
  say(`${name}  highest held: median ${middle}, ${held[0]} to ${held.at(-1)}: spread ` +
    `${((100 * (held.at(-1) - held[0])) / middle).toFixed(1)} % of the median, ${held.length} of ${answers.length} answered`);
}
process.exit(spoken ? 0 : 3);
