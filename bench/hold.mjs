// What it costs to hold connections: N authenticated clients against the embedded server, idle but for keep-alives.
// Usage: node bench/hold.mjs BUILD_FOLDER [CLIENTS (200000)] [DURATION (5m)] [further options of `muster run hold`]
// Prints how fast they came in, memory of a connection at both ends, CPU while holding, and drops by cause. Wants an
// otherwise idle machine: the kernel's slab is the whole machine's.
import { readFileSync } from 'node:fs';
import { run } from '../tests/integration/lib.mjs';

const [clients = '200000', duration = '5m', ...more] = process.argv.slice(3);
const ticksPerSecond = 100;
const say = (text) => process.stdout.write(`${text}\n`);
const whole = (number) => Math.round(number).toLocaleString('en-US');
const bytes = (part) => (part.per_connection_bytes === null ? 'unknown' : `${whole(part.per_connection_bytes)} B`);

// The embedded server is muster's first child.
function serverOf(pid) {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0];
}

function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

// The server's CPU time, once a second: [wall ms, seconds].
const samples = [];
function watch(child) {
  let server;
  const timer = setInterval(() => {
    try {
      server ??= serverOf(child.pid);
      if (server) samples.push([Date.now(), cpuSeconds(server)]);
    } catch {
      clearInterval(timer); // it has ended
    }
  }, 1000);
  timer.unref();
}

function serverCpu(report) {
  const from = Date.parse(report.measure_started_at);
  const to = Date.parse(report.measure_ended_at);
  const within = samples.filter(([at]) => at >= from && at <= to);
  if (within.length < 2) return NaN;
  const [first, last] = [within[0], within.at(-1)];
  return (last[1] - first[1]) / ((last[0] - first[0]) / 1000);
}

const { code, out, err, report } = await run('hold', ['--clients', clients, '--duration', duration, ...more], {
  onStart: watch,
  deadlineMs: 3 * 3600 * 1000,
});
if (!report) throw new Error(`no report: ${out}${err}`);
const { connections, latency, memory, phases, rates, verdict, workers } = report;
const codes = (list) => list.map((entry) => `${entry.count} ${entry.name}`).join(', ') || 'none';

say(`held        ${whole(connections.established - connections.dropped)} of ${whole(connections.attempted)} clients ` +
  `for ${phases.measure_s.toFixed(0)} s, ${workers.length} generator processes`);
say(`set-up      ${whole(report.workload.clients / phases.setup_s)} users/s (${phases.setup_s.toFixed(1)} s)`);
say(`connect     ${whole(rates.connections_per_second)} connections/s (${phases.connect_s.toFixed(1)} s), ` +
  `p50 ${(latency.connect.p50_ns / 1e6).toFixed(1)} ms, p99 ${(latency.connect.p99_ns / 1e6).toFixed(1)} ms`);
say(`user memory generator ${bytes(memory.generator)}, server ${bytes(memory.server)} a connection ` +
  `(registered users apart: ${whole(memory.server.before_bytes / report.workload.clients)} B each)`);
say(`kernel slab ${bytes(memory.kernel_slab)} a connection, both ends (whole machine)`);
say(`CPU         generator ${workers.reduce((sum, worker) => sum + worker.cpu_share, 0).toFixed(2)} cores, ` +
  `server ${serverCpu(report).toFixed(2)} cores while holding`);
say(`drops       ${codes(connections.dropped_by_code)}; failed: ${codes(connections.failed_by_code)}`);
say(`verdict     ${verdict.result}${verdict.reasons.map((reason) => `\n            ${reason}`).join('')}`);
process.exit(code);
