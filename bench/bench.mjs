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

// Bytes on the wire of the frames that a run sends and receives, for the bare pair's write pattern.
const calm = ['--warmup', '1s', '--duration', '3s', '--delivery-grace', '3s'];

// Raises the rate by half until a step no longer holds; the last one that held is the answer.
async function climb(workload, args, first) {
  let best;
  for (let rate = first; rate < 4e6; rate *= 1.5) {
    const server = await startMusterd(['--no-rate-limits']);
    const before = cpuSeconds(server.pid);
    const { report } = await run(workload, [...target(server), ...args, ...calm, '--rate', String(Math.round(rate))]);
    const cpu = cpuSeconds(server.pid) - before;
    await stop(server);
    const holds = report && report.verdict.result === 'valid' && report.deliveries.lost === 0 &&
      report.latency.delivery.p99_ns < 250e6;
    if (!holds) return best;
    const generatorCpu = report.workers.reduce((sum, worker) => sum + worker.cpu_share, 0);
    best = {
      acks: report.rates.acks_per_second,
      deliveries: report.rates.deliveries_per_second,
      // set-up, warm-up and measure together, so a little too low
      deliveriesPerServerCore: (report.deliveries.observed + report.warmup.deliveries.observed) / cpu,
      acksPerServerCore: (report.publishes.acked + report.warmup.publishes.acked) / cpu,
      generatorCpu,
      p50: report.latency.delivery.p50_ns,
      p99: report.latency.delivery.p99_ns,
    };
  }
  return best;
}

const bareRate = (line) => Number(/(\d+) deliveries\/s/.exec(line)[1]);

async function throughput() {
  const seen = { bareRing: [], ring: [], bareFanOut: [], group: [] };
  let last;
  for (let round = 1; round <= rounds; round++) {
    say(`\nround ${round} of ${rounds}; ${tool('bench_prims')}`);
    let line = tool('bench_bare', 'ring', '1000', '3');
    seen.bareRing.push(bareRate(line));
    say(`  ${line}`);
    last = await climb('private', ['--clients', '1000'], 4000);
    if (!last) say('  muster private: not even the first step held');
    else {
      seen.ring.push(last.deliveries);
      say(`  muster private, 1,000 clients, durable: ${whole(last.acks)} acks/s = deliveries/s held, delivery p50 ${ms(last.p50)} p99 ${ms(last.p99)} ms; ` +
        `${whole(last.acksPerServerCore)} durable acks per server core-second, generator CPU ${last.generatorCpu.toFixed(2)}`);
    }
    line = tool('bench_bare', 'fanout', '1000', '3');
    seen.bareFanOut.push(bareRate(line));
    say(`  ${line}`);
    last = await climb('group', ['--clients', '1000', '--group-senders', '10'], 30);
    if (!last) say('  muster group: not even the first step held');
    else {
      seen.group.push(last.deliveries);
      say(`  muster group, 1,000 members, durable: ${whole(last.deliveries)} deliveries/s held, delivery p50 ${ms(last.p50)} p99 ${ms(last.p99)} ms; ` +
        `${whole(last.deliveriesPerServerCore)} deliveries per server core-second, generator CPU ${last.generatorCpu.toFixed(2)}`);
    }
  }
  say('\nmedian (lowest..highest) of the rounds');
  say(`  deliveries/s, ring:    bare pair ${spread(seen.bareRing)}, muster + musterd ${spread(seen.ring)}`);
  say(`  deliveries/s, fan-out: bare pair ${spread(seen.bareFanOut)}, muster + musterd ${spread(seen.group)}`);
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
