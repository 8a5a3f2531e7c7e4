// What one delivery costs the generator: muster beside other load generators on the same broker, with the same number of
// connections, publishes and fan-out, taking turns. On mosquitto: muster, mosquitto_pub with one mosquitto_sub for each
// subscriber, and tsung. On npm's socket.io: muster and artillery, which knows no MQTT.
//   apt-get install mosquitto-clients tsung
//   npm install --prefix DIR --ignore-scripts artillery@2, then ARTILLERY=DIR/node_modules/.bin/artillery
// A tool that is not there is left out and counted. Each tool runs for a short and for a long time: the difference in CPU
// time divided by the difference in deliveries is free of start-up, connecting and the end.
// QoS 1 everywhere; muster speaks version 5, in which the sender does not hear itself, the others 3.1.1 or 3.1.
// Usage: node bench/side_by_side.mjs BUILD_FOLDER [ROUNDS (3)], or BENCH_SIDE_BY_SIDE=ROUNDS make bench
//   SIDE_BY_SIDE_SUBSCRIBERS (50), SIDE_BY_SIDE_RATE (200), SIDE_BY_SIDE_SECONDS (12) of the long run,
//   SIDE_BY_SIDE_VERBOSE: what the tools say
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [build = 'build/release', roundsText = '3'] = process.argv.slice(2);
const rounds = Number(roundsText);
const subscribers = Number(process.env.SIDE_BY_SIDE_SUBSCRIBERS ?? 50);
const perSecond = Number(process.env.SIDE_BY_SIDE_RATE ?? 200);
const [shortS, longS] = [2, Number(process.env.SIDE_BY_SIDE_SECONDS ?? 12)];
const payload = 'x'.repeat(256);
const startS = 4; // for the others' subscribers to be there
const deadlineMs = 120000;
const muster = join(build, 'muster');
const artillery = process.env.ARTILLERY ?? 'artillery';

const say = (text) => process.stdout.write(`${text}\n`);
const scratch = mkdtempSync(join(tmpdir(), 'muster-side-by-side-'));
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }));
const newFolder = () => mkdtempSync(join(scratch, 'run-'));
const has = (...command) => spawnSync(command[0], command.slice(1), { stdio: 'ignore' }).error === undefined;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function startServer(name) {
  const script = new URL(`../scripts/servers/${name}`, import.meta.url).pathname;
  const folder = join(scratch, `server-${name}`);
  const { status, stdout, stderr } = spawnSync(script, ['start', folder], { encoding: 'utf8' });
  if (status === 77) return undefined;
  if (status !== 0) throw new Error(stderr);
  process.prependListener('exit', () => spawnSync(script, ['stop', folder]));
  return Number(/^plain=(\d+)$/m.exec(stdout)[1]);
}

// Runs a shell text to its end; the CPU time of everything that it started, as its shell has waited for.
async function timed(text, { args = [], env = {}, during } = {}) {
  const child = spawn('bash', ['-c', `${text}\ncode=$?\ntimes >&3\nexit $code`, 'bash', ...args], {
    env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
  });
  let [said, times] = ['', ''];
  child.stdin.on('error', () => {});
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
  child.stdio[3].on('data', (data) => (times += data));
  const timer = setTimeout(() => child.kill('SIGKILL'), deadlineMs);
  const ended = new Promise((resolve) => child.once('close', resolve));
  await during?.(child.stdin);
  child.stdin.end();
  const code = await ended;
  clearTimeout(timer);
  const children = [...times.split('\n')[1].matchAll(/(\d+)m([\d.]+)s/g)];
  const cpuS = children.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0);
  return { code, said, cpuS };
}

// --- the tools: each runs for so many seconds, and returns CPU seconds, publishes and deliveries ---

async function runMuster(target, options, seconds) {
  const output = join(newFolder(), 'report.json');
  const result = await timed('"$@"', {
    args: [muster, 'run', 'group', '--target', target, '--clients', `${subscribers + 1}`, '--rate', `${perSecond}`,
      '--warmup', '0s', '--duration', `${seconds}s`, '--payload-bytes', `${payload.length}`, '--delivery-grace', '2s',
      '--output', output, '--quiet', ...options],
  });
  const { publishes, deliveries, verdict } = JSON.parse(readFileSync(output, 'utf8'));
  const odd = verdict.result === 'valid' ? '' : `it says itself: ${verdict.reasons.join('; ')}`;
  return { ...result, publishes: publishes.acked, deliveries: deliveries.observed, odd };
}

// One line for each publish, when it is due: mosquitto_pub does not pace by itself.
async function feed(stdin, publishes) {
  await sleep(startS * 1000);
  const begin = performance.now();
  for (let sent = 0; sent < publishes; await sleep(5)) {
    const due = Math.min(publishes, Math.floor(((performance.now() - begin) / 1000) * perSecond) + 1);
    stdin.write(`${payload}\n`.repeat(due - sent));
    sent = due;
  }
}

async function runMosquitto(port, seconds) {
  const folder = newFolder();
  const publishes = perSecond * seconds;
  const text = `for ((i = 0; i < $1; i++)); do
      mosquitto_sub -h 127.0.0.1 -p $2 -t bench -q 1 -C $3 -W $4 -F x >"$5/$i" &
    done
    mosquitto_pub -h 127.0.0.1 -p $2 -t bench -q 1 -l
    wait`;
  const result = await timed(text, {
    args: [subscribers, port, publishes, startS + seconds + 20, folder].map(String),
    during: (stdin) => feed(stdin, publishes),
  });
  const deliveries = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size / 2, 0);
  return { ...result, publishes, deliveries };
}

const tsungScenario = (port, seconds) => `<?xml version="1.0"?>
<!DOCTYPE tsung SYSTEM "/usr/share/tsung/tsung-1.0.dtd">
<tsung loglevel="warning" version="1.0">
  <clients><client host="localhost" use_controller_vm="true" maxusers="${subscribers + 10}"/></clients>
  <servers><server host="127.0.0.1" port="${port}" type="tcp"/></servers>
  <load>
    <user session="publisher" start_time="${startS}" unit="second"></user>
    <arrivalphase phase="1" duration="2" unit="second">
      <users maxnumber="${subscribers}" arrivalrate="${subscribers}" unit="second"/>
    </arrivalphase>
  </load>
  <sessions>
    <session name="subscriber" probability="100" type="ts_mqtt">
      <request><mqtt type="connect" clean_start="true" keepalive="60"></mqtt></request>
      <request><mqtt type="subscribe" topic="bench" qos="1"></mqtt></request>
      <request><mqtt type="waitForMessages" timeout="${startS + Math.ceil(seconds * 2) + 4}"></mqtt></request>
      <request><mqtt type="disconnect"></mqtt></request>
    </session>
    <session name="publisher" probability="0" type="ts_mqtt">
      <request><mqtt type="connect" clean_start="true" keepalive="60"></mqtt></request>
      <for from="1" to="${perSecond * seconds}" incr="1" var="i">
        <request><mqtt type="publish" topic="bench" qos="1" retained="false">${payload}</mqtt></request>
        <thinktime value="${1 / perSecond}" random="false"></thinktime>
      </for>
      <request><mqtt type="disconnect"></mqtt></request>
    </session>
  </sessions>
</tsung>
`;

// The last total of a counter in tsung's log: "stats: NAME in_this_period in_total".
function tsungTotal(folder, name) {
  const [run] = readdirSync(folder).filter((entry) => /^\d+-\d+$/.test(entry));
  const log = run ? readFileSync(join(folder, run, 'tsung.log'), 'utf8') : '';
  const totals = [...log.matchAll(new RegExp(`^stats: ${name} \\S+ (\\d+)`, 'gm'))];
  return Number(totals.at(-1)?.[1] ?? 0);
}

// Erlang's port mapper is a daemon: this run has its own, and ends it.
async function runTsung(port, seconds) {
  const folder = newFolder();
  const mapper = String(20000 + Math.floor(Math.random() * 10000));
  writeFileSync(join(folder, 'bench.xml'), tsungScenario(port, seconds));
  const result = await timed('tsung -n -f "$1/bench.xml" -l "$1" start', {
    args: [folder], env: { HOME: folder, ERL_EPMD_PORT: mapper, ERL_EPMD_ADDRESS: '127.0.0.1' },
  });
  spawnSync('epmd', ['-port', mapper, '-kill'], { stdio: 'ignore' });
  return {
    ...result, publishes: tsungTotal(folder, 'mqtt_published'), deliveries: tsungTotal(folder, 'mqtt_server_published'),
  };
}

// Every client publishes and hears the others, since artillery has no fixed roles; so does muster beside it.
const artilleryScenario = (port, eachPerSecond, seconds) => `config:
  target: http://127.0.0.1:${port}
  socketio: { transports: [websocket] }
  phases: [{ duration: 1, arrivalCount: ${subscribers + 1} }]
scenarios:
  - engine: socketio
    flow:
      - emit: { channel: join, data: bench }
      - think: ${startS}
      - loop:
          - emit: [publish, bench, ${payload}]
            acknowledge: { match: { json: $.0.status, value: ok } }
          - think: ${Math.round(1000 / eachPerSecond)}ms
        count: ${Math.round(eachPerSecond * seconds)}
      - think: 2
`;

async function runArtillery(port, seconds) {
  const folder = newFolder();
  const each = perSecond / (subscribers + 1);
  writeFileSync(join(folder, 'bench.yaml'), artilleryScenario(port, each, seconds));
  const result = await timed('"$1" run --quiet --output "$2/report.json" "$2/bench.yaml"', {
    args: [artillery, folder], env: { ARTILLERY_DISABLE_TELEMETRY: 'true', HOME: folder },
  });
  const { counters } = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')).aggregate;
  const publishes = counters['socketio.emit'] - (subscribers + 1);
  const odd = counters['vusers.failed'] ? `${counters['vusers.failed']} of its users failed` : '';
  return { ...result, publishes, deliveries: publishes * subscribers, odd };
}

// --- the table ---

const mqtt = startServer('mosquitto');
const socketio = startServer('socketio');
const everybodySends = ['--group-senders', `${subscribers + 1}`];
const tools = [
  {
    name: 'muster, MQTT 5',
    there: mqtt !== undefined,
    run: (seconds) => runMuster(`mqtt://127.0.0.1:${mqtt}`, ['--group-senders', '1', '--qos', '1'], seconds),
  },
  {
    name: 'mosquitto_pub + _sub',
    there: mqtt !== undefined && has('mosquitto_sub', '--help'),
    run: (seconds) => runMosquitto(mqtt, seconds),
    lacks: 'latencies, a schedule (the script feeds it), loss and repetition; a process for each connection',
  },
  {
    name: 'tsung, MQTT 3.1',
    there: mqtt !== undefined && has('tsung', '-v'),
    run: (seconds) => runTsung(mqtt, seconds),
    lacks: 'delivery latency, loss and repetition; its pace is a pause behind each answer: a slow broker is offered less',
  },
  {
    name: 'muster, Socket.IO',
    there: socketio !== undefined,
    run: (seconds) => runMuster(`socketio://127.0.0.1:${socketio}`, everybodySends, seconds),
  },
  {
    name: 'artillery, Socket.IO',
    there: socketio !== undefined && has(artillery, '--version'),
    run: (seconds) => runArtillery(socketio, seconds),
    lacks: 'deliveries at all (the figure is what the server sent to it), their latency, loss and repetition; '
      + 'its pace is a pause behind each answer',
  },
].map((tool) => ({ ...tool, results: [] }));

const missing = tools.filter((tool) => !tool.there);
const present = tools.filter((tool) => tool.there);
for (const { name } of missing) say(`skipped: ${name} (not installed here)`);
const calibration = () => execFileSync(join(build, 'bench', 'bench_prims'), { encoding: 'utf8' }).trim();
say(`MQTT: 1 sender to ${subscribers} subscribers; Socket.IO: ${subscribers + 1} clients to the others; `
  + `${perSecond} publishes/s of ${payload.length} bytes, ${shortS} s and ${longS} s`);
for (let round = 1; round <= rounds; round++) {
  say(`round ${round} of ${rounds}; ${calibration()}`);
  for (const tool of round % 2 ? present : [...present].reverse()) {
    const [few, many] = [await tool.run(shortS), await tool.run(longS)];
    const microseconds = ((many.cpuS - few.cpuS) * 1e6) / (many.deliveries - few.deliveries);
    const wanted = perSecond * longS * subscribers;
    tool.results.push({ microseconds, cpuS: many.cpuS, deliveries: many.deliveries });
    const whole = many.code === 0 && Math.abs(many.deliveries - wanted) < wanted * 0.03;
    const odd = many.odd || (whole ? '' : `exit code ${many.code}, ${wanted} deliveries wanted`);
    say(`  ${tool.name.padEnd(22)} ${many.publishes} publishes, ${many.deliveries} deliveries, `
      + `${many.cpuS.toFixed(2)} s of CPU${odd && ` (${odd})`}`);
    if (process.env.SIDE_BY_SIDE_VERBOSE) say(many.said);
  }
}

const middle = (list) => [...list].sort((a, b) => a - b)[(list.length - 1) >> 1];
say('\nCPU time of the generator for one delivery and its share of a publish, us: median (least..most)');
for (const { name, results } of present) {
  const costs = results.map(({ microseconds }) => microseconds);
  const range = `${Math.min(...costs).toFixed(1)}..${Math.max(...costs).toFixed(1)}`;
  const hidden = Math.min(...costs) <= 0 ? ', hidden by the spread of its start-up' : '';
  const all = middle(results.map(({ cpuS, deliveries }) => (cpuS * 1e6) / deliveries)).toFixed(1);
  say(`  ${name.padEnd(22)} ${middle(costs).toFixed(1).padStart(7)} (${range})${hidden}; start-up and end included ${all}`);
}
say('\nnot measured by');
for (const { name, lacks } of present) if (lacks) say(`  ${name}: ${lacks}`);
say(`${missing.length} skipped`);
