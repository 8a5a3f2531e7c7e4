// Shared by the integration tests: start programs of the build on free ports, run muster, read its JSON report.
// Usage of each test: node <test>.mjs <build folder>
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { commandOf } from '../../web/command.js';

export const build = process.argv[2];
if (!build) throw new Error('usage: node test.mjs BUILD_FOLDER');

export const secret = '0123456789abcdef';
export const appKey = 'testapp';
export const scratch = mkdtempSync(join(tmpdir(), 'muster-test-'));

const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});

// Starts a program and waits for a line of its standard output that matches; the match is in child.ready.
export function start(file, args, pattern, { env = {}, deadlineMs = 10000 } = {}) {
  const child = spawn(file, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  child.out = '';
  child.err = '';
  child.stderr.on('data', (data) => (child.err += data));
  child.ended = new Promise((resolve) => {
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve({ code, signal });
    });
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${file} was not ready: ${child.out}${child.err}`)), deadlineMs);
    child.ended.then(() => reject(new Error(`${file} ended early: ${child.out}${child.err}`)));
    child.stdout.on('data', (data) => {
      child.out += data;
      const match = pattern && child.out.match(pattern);
      if (!match) return;
      clearTimeout(timer);
      child.ready = match;
      resolve(child);
    });
  });
}

export async function startMusterd(args = [], { data = join(scratch, `data-${children.size}-${Date.now()}`) } = {}) {
  const ports = ['--ws-port', '0', '--api-port', '0', '--navigator-port', '0', '--admin-port', '0'];
  const server = await start(
    join(build, 'musterd'),
    [...ports, '--data', data, '--app-key', appKey, ...args],
    /ready: wss? (\S+) api (\S+)/,
    { env: { MUSTERD_APP_SECRET: secret } },
  );
  server.ws = server.ready[1];
  server.api = server.ready[2];
  server.data = data;
  return server;
}

// Runs muster to its end; resolves to { code, out, err, ms }. Never rejects on a non-zero exit code.
export function muster(args, { env = {}, deadlineMs = 120000, onStart } = {}) {
  return new Promise((resolve, reject) => {
    const began = Date.now();
    const child = spawn(join(build, 'muster'), args, {
      env: { ...process.env, MUSTER_APP_SECRET: secret, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.add(child);
    const result = { out: '', err: '' };
    child.stdout.on('data', (data) => (result.out += data));
    child.stderr.on('data', (data) => (result.err += data));
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`muster ${args.join(' ')} hung: ${result.out}${result.err}`));
    }, deadlineMs);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      children.delete(child);
      resolve({ ...result, code, signal, ms: Date.now() - began });
    });
    onStart?.(child);
  });
}

function readJson(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

// Runs a workload with a JSON report and returns it with the result; the report is undefined when none was written.
let reports = 0;
export async function run(workload, args, options = {}) {
  const file = join(scratch, `report-${reports++}.json`);
  const result = await muster(['run', workload, '--output', file, '--quiet', ...args], options);
  result.report = readJson(file);
  return result;
}

// The same for `muster find` and `muster calibrate`: result.document is undefined when there is none.
let searches = 0;
export async function searchWith(command, args, options = {}) {
  const file = join(scratch, `search-${searches++}.json`);
  const result = await muster([command, ...args, '--output', file, '--quiet'], options);
  result.document = readJson(file);
  return result;
}

export const target = (server, ws = server.ws) => [
  '--target', `ws://${ws}`, '--api-url', `http://${server.api}/apigateway`, '--app-key', appKey,
];

// What a machine without a free core kept muster from sending in the phase.
export const generatorLate = ({ unsent_by_code: causes }) => causes.find(({ name }) => name === 'generator_late')?.count ?? 0;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function stop(child, signal = 'SIGTERM') {
  child.kill(signal);
  return child.ended;
}

const serverOf = { mqtt: 'mosquitto', stomp: 'rabbitmq' };

// Starts a real broker on a free port through scripts/servers; undefined where it is not installed.
export function startBroker(scheme) {
  const script = new URL(`../../scripts/servers/${serverOf[scheme] ?? scheme}`, import.meta.url).pathname;
  const folder = join(scratch, scheme);
  const { status, stdout, stderr } = spawnSync(script, ['start', folder], { encoding: 'utf8' });
  if (status === 77) return undefined;
  assert.equal(status, 0, stderr);
  process.prependListener('exit', () => spawnSync(script, ['stop', folder]));
  return `${scheme}://127.0.0.1:${/^plain=(\d+)$/m.exec(stdout)[1]}`;
}

// The words of the command that a report's page gives to repeat the run.
export const reproduceWords = (report) =>
  commandOf(report).match(/(?:[^\s']|'[^']*')+/g).map((word) => word.replaceAll("'", ''));
