// A thousand clients against each real broker: the presets `SCHEME-private` (2,000 publishes a second in a ring) and
// `SCHEME-group` (20 a second to a group of a thousand), each at full size. Prints a line for each run. Exit code 1 when
// a run is invalid or lost something, 77 when no broker is installed. Wants an otherwise idle machine.
// Usage: node bench/brokers_1000.mjs BUILD_FOLDER [further options of `muster run`, as --duration 10s]
//   BROKERS=mqtt,nats: these alone
import { run, startBroker } from '../tests/integration/lib.mjs';

const known = ['mqtt', 'nats', 'redis', 'socketio', 'stomp'];
const brokers = process.env.BROKERS?.split(',') ?? known;
const more = process.argv.slice(3);
const strange = brokers.filter((name) => !known.includes(name));
if (strange.length > 0) {
  process.stderr.write(`BROKERS: ${strange.join(', ')}: choose from ${known.join(', ')}\n`);
  process.exit(2);
}

// Where the protocol has no ACK of its own accord, it is asked for one.
const queries = { nats: '/?ack=flush' };
const columns = [
  ['run', -18], ['verdict', -8], ['clients', 8], ['publishes', 10], ['acked', 10], ['expected', 11], ['lost', 8],
  ['duplicate', 10], ['ack p50', 9], ['ack p99', 9], ['deliv. p50', 11], ['deliv. p99', 11],
];
const say = (cells) => process.stdout.write(`${cells.map((cell, i) => (columns[i][1] < 0
  ? String(cell).padEnd(-columns[i][1]) : String(cell).padStart(columns[i][1]))).join(' ').trimEnd()}\n`);
const ms = (clock, key) => (clock && clock.count > 0 ? (clock[key] / 1e6).toFixed(3) : '-');

function show(name, { verdict, connections, publishes, deliveries, latency }) {
  say([name, verdict.result, connections.established, publishes.attempted, publishes.acked, deliveries.expected,
    deliveries.lost, deliveries.duplicate, ms(latency.ack, 'p50_ns'), ms(latency.ack, 'p99_ns'),
    ms(latency.delivery, 'p50_ns'), ms(latency.delivery, 'p99_ns')]);
  for (const reason of verdict.reasons) process.stdout.write(`  ${reason}\n`);
}

let wrong = 0;
let runs = 0;
say(columns.map(([title]) => title));
for (const broker of brokers) {
  const target = startBroker(broker);
  if (!target) process.stdout.write(`${broker}: its server is not installed, left out\n`);
  for (const kind of target ? ['private', 'group'] : []) {
    const name = `${broker}-${kind}`;
    const { report, out, err } = await run(name, ['--target', `${target}${queries[broker] ?? ''}`, ...more], { deadlineMs: 300000 });
    runs++;
    if (report) show(name, report);
    else process.stdout.write(`${name}: no report: ${out}${err}\n`);
    const good = report && report.verdict.result === 'valid' && report.deliveries.lost === 0;
    if (!good) wrong++;
  }
}
process.stdout.write(`${runs} runs, latencies in ms; ${wrong ? `${wrong} invalid or with losses` : 'all valid, nothing lost'}\n`);
if (runs === 0) process.exit(77);
process.exit(wrong ? 1 : 0);
