// Records the trials that test_compare.c judges, as compact trials documents beside this file:
//   local.json  the embedded musterd, a fresh one for each trial
//   near.json   a musterd behind a proxy that delays every delivery by 40 ms, taking turns with
//   far.json    one that delays by 42 ms: the same server, really 5 % slower
// The first 10 valid ones of 16 are kept, and of them only the metrics that the test needs. 
// Usage: node record.mjs BUILD_FOLDER [local|delayed] (about 3 minutes, on a machine that is quiet enough to be valid)
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { appKey, build, muster, scratch, start, startMusterd, stop } from '../../../integration/lib.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const kept = /^(.*_per_second|(delivery|ack)\.(mean|p50|p95|p99))$/;

function keep(folder, name, file) {
  const summary = readdirSync(folder).find((entry) => entry.endsWith(`-${name}-summary.json`));
  const document = JSON.parse(readFileSync(join(folder, summary), 'utf8'));
  const valid = document.trials.filter((trial) => trial.verdict?.result === 'valid').slice(0, 10);
  if (valid.length < 10) throw new Error(`${file}: only ${valid.length} valid trials: ${document.verdict.reasons.join('; ')}`);
  const of = (values) => valid.map((trial) => values[trial.number - 1]);
  const metrics = document.metrics.filter((metric) => kept.test(metric.name)).map(({ name, unit, better, values, few_samples }) => ({
    name, unit, better, values: of(values), few_samples: valid.flatMap((trial, i) => (few_samples.includes(trial.number) ? [i + 1] : [])),
  }));
  document.environment.hostname = 'recorded';
  document.workload.app_key = 'recorded';
  const lines = metrics.map((metric) => `    ${JSON.stringify(metric)}`).join(',\n');
  const trials = valid.map((trial, i) => `    ${JSON.stringify({ ...trial, number: i + 1, verdict: { result: 'valid', reasons: [] } })}`);
  document.verdict = { result: 'valid', reasons: [] };
  const head = { ...document, trials: 0, metrics: 0 };
  const text = Object.entries(head).map(([key, value]) => {
    if (key === 'metrics') return `  "metrics": [\n${lines}\n  ]`;
    if (key === 'trials') return `  "trials": [\n${trials.join(',\n')}\n  ]`;
    return `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`;
  });
  rmSync(join(here, file), { force: true });
  writeFileSync(join(here, file), `{\n${text.join(',\n')}\n}\n`);
  console.log(`${file}: ${metrics.length} metrics of ${valid.length} trials`);
}

async function trials(names, options, folder) {
  const result = await muster(['run', ...names, '--trials', '16', '--output', folder, '--quiet', ...options], { deadlineMs: 600000 });
  console.log(result.out);
  if (result.code !== 0 && result.code !== 3) throw new Error(`exit ${result.code}: ${result.err}`);
}

const [, , , only] = process.argv;
if (only !== 'local') await recordDelayed();
if (only !== 'delayed') await recordLocal();

async function recordDelayed() {
  const server = await startMusterd(['--ack', 'received']);
  const scenario = async (name, delayMs) => {
    const proxy = await start(join(build, 'fault_proxy'), [server.ws, 'delay=1', `delay_ms=${delayMs}`], /port (\d+)/);
    const file = join(scratch, `${name}.yaml`);
    const lines = [`name: ${name}`, `title: Deliveries ${delayMs} ms away`, 'description: Recorded for a test',
      'driver: juggle', 'topology:', '  kind: private', 'server:', `  target: ws://127.0.0.1:${proxy.ready[1]}`,
      `  api-url: http://${server.api}/apigateway`, `  app-key: ${appKey}`];
    writeFileSync(file, `${lines.join('\n')}\n`);
    return { proxy, file };
  };
  const near = await scenario('near', 40);
  const far = await scenario('far', 42);
  const wan = join(scratch, 'wan');
  await trials([near.file, far.file], ['--clients', '20', '--rate', '700', '--duration', '1500ms', '--warmup', '300ms'], wan);
  keep(wan, 'near', 'near.json');
  keep(wan, 'far', 'far.json');
  for (const child of [near.proxy, far.proxy, server]) await stop(child);
}

async function recordLocal() {
  const local = join(scratch, 'local');
  await trials(['private'], ['--clients', '20', '--rate', '1000', '--ack', 'received', '--duration', '1500ms', '--warmup', '300ms'], local);
  keep(local, 'private', 'local.json');
}
