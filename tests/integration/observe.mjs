// What a run observes: the embedded server and the generator by default, and every --observe; what vanishes is a gap
// with its reason. musterd's own count of deliveries is muster's.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { muster, run, scratch, startMusterd, stop, target } from './lib.mjs';

const short = ['--clients', '20', '--rate', '200', '--warmup', '1200ms', '--duration', '2s'];
const column = (source, name) => source.rows.map((row) => row[1 + source.columns.indexOf(name)]);
const of = (report, name) => {
  const found = report.observed.find((source) => source.source.startsWith(name) || source.label === name);
  assert.ok(found, `${name} is not observed`);
  return found;
};

// Rows from before the measure phase to behind it, and some value of each of these columns.
function assertSeen(report, name, columns) {
  const source = of(report, name);
  assert.ok(source.rows.length >= 3, `${name}: ${source.rows.length} rows`);
  assert.ok(source.rows[0][0] < 0 && source.rows.at(-1)[0] >= report.phases.measure_s - 1.5, `${name}: its times`);
  for (const row of source.rows) assert.equal(row.length, 1 + source.columns.length);
  for (const one of columns) assert.ok(column(source, one).some((value) => value > 0), `${name}: no ${one}`);
  return source;
}

const always = ['cpu_cores', 'rss_bytes', 'threads', 'voluntary_switches_per_second'];

async function ownProcesses() {
  const { report, err } = await run('private', short);
  assert.ok(report, err);
  const [server, workers, control] = report.observed;
  assert.deepEqual([server.role, server.label], ['server', 'musterd (embedded)']);
  assert.deepEqual([workers.source, workers.role], ['workers', 'generator']);
  assert.deepEqual([control.source, control.role], ['control', 'generator']);
  for (const source of [server, workers, control]) {
    assertSeen(report, source.source, always);
    assert.equal(source.error, null);
  }
  assert.ok(report.derived.server_cpu_s > 0);
}

// A page that answers three times (the check, the start, and once in the run) and then with an error.
async function startFaultyPage(onThird) {
  let asked = 0;
  const page = createServer((request, response) => {
    if (request.url !== '/m?x=1;y=2') asked = 100;
    response.statusCode = ++asked > 3 ? 503 : 200;
    if (asked === 3) onThird();
    response.end('# TYPE a counter\na_total{b="c"} 1\na_total{b="d"} 2\n# EOF\na_total{b="d"} 40\n');
  });
  await new Promise((resolve) => page.listen(0, '127.0.0.1', resolve));
  page.unref();
  return page.address().port;
}

async function everythingAskedFor() {
  const server = await startMusterd(['--no-rate-limits']);
  const brief = spawn('sleep', ['120'], { stdio: 'ignore' });
  const port = await startFaultyPage(() => brief.kill('SIGKILL'));
  const metrics = `http://${server.api}/metrics`;
  const series = 'musterd_deliveries_total,musterd_sessions,process_cpu_seconds_total,musterd_no_such_series';
  const { report, out, err } = await run('private', [
    ...short.slice(0, 4), '--warmup', '0s', '--duration', '4s', ...target(server),
    '--observe', `pid:${server.pid};label=the server`,
    '--observe', `pid:${brief.pid};role=other;label=brief`,
    '--observe', `prometheus:${metrics};series=${series}`,
    '--observe', `prometheus:http://127.0.0.1:${port}/m?x=1;y=2;series=a_total{b="d"},a_total;label=faulty`,
  ]);
  assert.ok(report, err);
  assertSeen(report, 'the server', always);
  assert.match(out, /the server: CPU [\d.]+ \/ [\d.]+ \/ [\d.]+ cores; memory /);
  const gone = of(report, 'brief');
  assert.equal(gone.role, 'other');
  assert.match(gone.error, /^\d+ of \d+ samples: the process has ended$/);
  assert.ok(column(gone, 'rss_bytes')[0] > 0 && column(gone, 'rss_bytes').at(-1) === null);

  const page = assertSeen(report, `prometheus:${metrics}`, ['musterd_deliveries_total', 'process_cpu_seconds_total']);
  assert.equal(Math.max(...column(page, 'musterd_sessions')), 20);
  assert.equal(page.error, 'the page never held musterd_no_such_series');
  const faulty = of(report, 'faulty');
  assert.deepEqual(faulty.rows[0].slice(1), [2, 3]);
  assert.match(faulty.error, /^\d+ of \d+ samples: it answers HTTP 503$/);
  await sameCounts(server, report);
  assert.equal((await stop(server)).code, 0);
}

const valueOf = (page, name) => {
  const lines = page.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  assert.ok(lines.length > 0, `the page has no ${name}`);
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
};

// Without a warm-up all traffic of this server is in the report.
async function sameCounts(server, report) {
  const page = await (await fetch(`http://${server.api}/metrics`)).text();
  const { publishes, deliveries } = report;
  assert.ok(deliveries.observed > 0);
  assert.equal(valueOf(page, 'musterd_deliveries_total'), deliveries.observed + deliveries.duplicate);
  assert.equal(valueOf(page, 'musterd_publish_acks_total'), publishes.acked);
  assert.equal(valueOf(page, 'musterd_commit_duration_seconds_bucket{le="+Inf"}'),
    valueOf(page, 'musterd_commit_duration_seconds_count'));
  assert.ok(valueOf(page, 'musterd_commit_duration_seconds_count') > 0);
}

async function broker() {
  const script = join(dirname(fileURLToPath(import.meta.url)), '../../scripts/servers/mosquitto');
  const folder = join(scratch, 'mosquitto');
  const started = spawnSync(script, ['start', folder], { encoding: 'utf8' });
  if (started.status === 77) {
    console.log('mosquitto is not installed: a broker is not observed');
    return;
  }
  assert.equal(started.status, 0, started.stderr);
  try {
    const ports = Object.fromEntries(started.stdout.trim().split('\n').map((line) => line.split('=')));
    const { report, err } = await run('private', [
      ...short, '--target', `mqtt://127.0.0.1:${ports.plain}`, '--observe', `pid:${ports.pid};label=mosquitto`,
    ]);
    assert.ok(report, err);
    assertSeen(report, 'mosquitto', always);
    assert.equal(of(report, 'mosquitto').role, 'server');
  } finally {
    spawnSync(script, ['stop', folder]);
  }
}

async function notThere() {
  const gone = spawnSync('true');
  for (const [what, code, says] of [
    [`pid:${gone.pid}`, 2, /^muster: --observe: pid:\d+: there is no such process\n$/],
    ['cgroup:/no/such', 2, /^muster: --observe: cgroup:\/no\/such: .+\n$/],
    ['prometheus:http://127.0.0.1:1/metrics', 4, /^muster: --observe: prometheus:.+\n$/],
    ['disk:1', 2, /^muster: --observe disk:1: .+\n$/],
  ]) {
    const result = await muster(['run', 'private', '--quiet', '--observe', what]);
    assert.equal(result.code, code, result.err);
    assert.match(result.err, says);
  }
}

await ownProcesses();
await everythingAskedFor();
await broker();
await notThere();
console.log('observed: own processes, a server, its metrics, a broker, and what vanishes');
process.exit(0);
