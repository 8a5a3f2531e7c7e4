// The ceilings: what muster + musterd reach beside a bare epoll pair of the same write pattern, interleaved round by
// round in one session; and what a connection and a publish cost. Every figure is printed with its spread over rounds.
//   BENCH_ROUNDS (3): rounds of the interleaved part
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, run, startMusterd, stop, target } from '../tests/integration/lib.mjs';

const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const ticksPerSecond = 100;

const say = (text) => process.stdout.write(`${text}\n`);
const sayBelow = (text) => say(`  ${text}`);
const tool = (name, ...args) => execFileSync(join(build, 'bench', name), args, { encoding: 'utf8' }).trim();
const whole = (number) => Math.round(number).toLocaleString('en-US');
const ms = (ns) => (ns / 1e6).toFixed(2);

function spread(list) {
  const sorted = [...list].sort((a, b) => a - b);
  return `${whole(sorted[(sorted.length - 1) >> 1])} (${whole(sorted[0])}..${whole(sorted.at(-1))})`;
}

function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

const privateBytes = (pid) =>
  Number(/^Private_Dirty: +(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]) * 1024;

const calm = ['--warmup', '1s', '--duration', '3s', '--delivery-grace', '3s'];

// What a target must be given besides the load: musterd's own ports, or the embedded server.
const standalone = { start: () => startMusterd(['--no-rate-limits']), target };
const shootout = {
  start: async () => {
    const server = await startMusterd(['--no-rate-limits', '--shootout', '0']);
    server.shootout = /shootout (\S+)/.exec(server.out)[1];
    return server;
  },
  target: (server) => ['--target', `ws+binary://${server.shootout}`],
};

async function measure(kind, workload, args) {
  const server = await kind.start();
  const before = cpuSeconds(server.pid);
  const { report } = await run(workload, [...kind.target(server), ...args, ...calm]);
  const cpu = cpuSeconds(server.pid) - before;
  await stop(server);
  if (!report) return undefined;
  return {
    holds: report.verdict.result === 'valid' && report.deliveries.lost === 0 && report.latency.delivery.p99_ns < 250e6,
    acks: report.rates.acks_per_second,
    deliveries: report.rates.deliveries_per_second,
    // set-up, warm-up and measure together, so a little too low
    deliveriesPerServerCore: (report.deliveries.observed + report.warmup.deliveries.observed) / cpu,
    acksPerServerCore: (report.publishes.acked + report.warmup.publishes.acked) / cpu,
    generatorCpu: report.workers.reduce((sum, worker) => sum + worker.cpu_share, 0),
    p50: report.latency.delivery.p50_ns,
    p99: report.latency.delivery.p99_ns,
  };
}

// Raises the rate by half until a step no longer holds (each gets a second try); the last one that held is the answer.
async function climb(kind, workload, args, first) {
  let best;
  for (let rate = first; rate < 4e6; rate *= 1.5) {
    const step = [...args, '--rate', String(Math.round(rate))];
    let seen = await measure(kind, workload, step);
    if (!seen?.holds) seen = await measure(kind, workload, step);
    if (!seen?.holds) return best;
    best = seen;
  }
  return best;
}

const bareRate = (line) => Number(/(\d+) deliveries\/s/.exec(line)[1]);

// One line of the interleaved part: the bare pair, then muster + musterd.
const pairs = [
  {
    name: 'ring of 1,000', bare: ['ring', '1000'],
    muster: () => climb(standalone, 'private', ['--clients', '1000'], 4000),
    tell: (m) => `${whole(m.acksPerServerCore)} durable acks per server core-second`,
  },
  {
    name: 'echo of 1,000, one outstanding each', bare: ['echo', '1000'],
    muster: () => measure(shootout, 'echo', ['--clients', '1000', '--outstanding', '1']),
    tell: () => 'closed loop, binary shootout protocol',
  },
  {
    name: 'group of 1,000', bare: ['fanout', '1000'],
    muster: () => climb(standalone, 'group', ['--clients', '1000', '--group-senders', '10'], 60),
    tell: (m) => `${whole(m.deliveriesPerServerCore)} deliveries per server core-second, durable`,
  },
  {
    name: 'broadcast to 1,000', bare: ['fanout', '1000'],
    muster: () => climb(shootout, 'broadcast', ['--clients', '1000'], 60),
    tell: (m) => `${whole(m.deliveriesPerServerCore)} deliveries per server core-second`,
  },
  {
    name: 'broadcast to 5,000', bare: ['fanout', '5000'],
    muster: () => climb(shootout, 'broadcast', ['--clients', '5000', '--connect-concurrency', '200'], 12),
    tell: (m) => `${whole(m.deliveriesPerServerCore)} deliveries per server core-second`,
  },
];

async function throughput() {
  const seen = pairs.map(() => ({ bare: [], muster: [] }));
  for (let round = 1; round <= rounds; round++) {
    say(`\nround ${round} of ${rounds}; ${tool('bench_prims')}`);
    for (const [i, pair] of pairs.entries()) {
      const line = tool('bench_bare', ...pair.bare, '3');
      seen[i].bare.push(bareRate(line));
      sayBelow(line);
      const best = await pair.muster();
      if (!best) {
        sayBelow(`muster ${pair.name}: not even the first step held`);
        continue;
      }
      seen[i].muster.push(best.deliveries);
      sayBelow(`muster ${pair.name}: ${whole(best.deliveries)} deliveries/s, delivery p50 ${ms(best.p50)} p99 ${ms(best.p99)} ms; ` +
        `${pair.tell(best)}, generator ${best.generatorCpu.toFixed(2)} cores`);
    }
  }
  say('\ndeliveries/s, median (lowest..highest) of the rounds');
  for (const [i, pair] of pairs.entries()) {
    sayBelow(`${pair.name}: bare pair ${spread(seen[i].bare)}, muster + musterd ${seen[i].muster.length ? spread(seen[i].muster) : 'none held'}`);
  }
}

// The slope of memory over connections, so that what a process has anyway does not count.
async function idleMemory() {
  const sizes = [5000, 15000]; // both beyond where pools of buffers stop growing
  const seen = [];
  for (const clients of sizes) {
    const server = await startMusterd(['--no-rate-limits']);
    let serverBytes = 0;
    const timer = setInterval(() => (serverBytes = Math.max(serverBytes, privateBytes(server.pid))), 200);
    const { report, out, err } = await run('private', [...target(server), '--clients', String(clients), '--rate', '1',
      '--warmup', '0s', '--duration', '12s', '--delivery-grace', '1s', '--connect-concurrency', '200', '--setup-concurrency', '50']);
    clearInterval(timer);
    await stop(server);
    if (!report) throw new Error(out + err);
    seen.push({
      generator: report.workers.reduce((sum, worker) => sum + worker.private_bytes, 0),
      server: serverBytes,
      perSecond: report.rates.connections_per_second,
    });
  }
  const slope = (name) => (seen[1][name] - seen[0][name]) / (sizes[1] - sizes[0]);
  say(`\nuser-space bytes per idle authenticated connection: generator ${whole(slope('generator'))} (budget 512), ` +
    `musterd ${whole(slope('server'))} (user, session and token state included); ${whole(seen[1].perSecond)} connections/s`);
}

async function pacing() {
  for (const rate of [1000, 5000]) {
    const { report } = await run('private', ['--clients', '100', '--rate', String(rate), '--warmup', '1s', '--duration', '5s']);
    const lag = report.latency.schedule_lag;
    const gaps = report.workers.reduce((sum, worker) => sum + worker.clock_gaps, 0);
    say(`schedule_lag at ${whole(rate)} publishes/s: p50 ${(lag.p50_ns / 1e3).toFixed(1)} us, p99 ${(lag.p99_ns / 1e3).toFixed(1)} us, ` +
      `max ${ms(lag.max_ns)} ms; ${gaps} clock gaps; ack p50 ${ms(report.latency.ack.p50_ns)} p99 ${ms(report.latency.ack.p99_ns)} ms`);
  }
}

say(tool('bench_prims'));
await pacing();
await idleMemory();
await throughput();
