// A whole run over wss with a certificate that is checked, refused and waived; and one whose connect address comes from
// the navigator.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { appKey, run, scratch, startMusterd, stop } from './lib.mjs';

const key = join(scratch, 'key.pem');
const certificate = join(scratch, 'certificate.pem');
execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key,
  '-out', certificate, '-days', '2', '-subj', '/CN=muster test', '-addext', 'subjectAltName=IP:127.0.0.1'], { stdio: 'ignore' });

const small = ['--clients', '10', '--rate', '100', '--warmup', '500ms', '--duration', '2s', '--delivery-grace', '2s', '--connect-timeout', '5s'];

function exact({ code, report, out, err }, what, fanOut = 1) {
  assert.ok(report, `${what}: no report: ${out}${err}`);
  assert.ok(code === 0 || code === 3, `${what}: exit code ${code}: ${out}${err}`);
  assert.equal(report.publishes.acked, 200, what);
  assert.equal(report.deliveries.observed, 200 * fanOut, what);
  for (const name of ['lost', 'duplicate', 'corrupt', 'unexpected']) assert.equal(report.deliveries[name], 0, `${what}: ${name}`);
}

const secure = await startMusterd(['--no-rate-limits', '--tls-cert', certificate, '--tls-key', key]);
const wss = ['--target', `wss://${secure.ws}`, '--api-url', `http://${secure.api}/apigateway`, '--app-key', appKey, ...small];
const checked = await run('private', [...wss, '--ca-file', certificate]);
exact(checked, 'wss');
assert.match(checked.report.target.tls, /^TLSv1\.[23] /);
assert.equal(checked.report.latency.connect_tls.count, 10);
exact(await run('group', [...wss, '--insecure']), 'wss, any certificate', 9);

const refused = await run('private', wss);
assert.equal(refused.code, 4, refused.out + refused.err);
assert.match(refused.err, /TLS|certificate/i);
assert.equal(refused.err.trim().split('\n').length, 1, refused.err);
console.log(refused.err.trim());

const plain = await run('private', ['--target', `ws://${secure.ws}`, ...wss.slice(2)]);
assert.equal(plain.code, 4, plain.out + plain.err);
await stop(secure);

const server = await startMusterd(['--no-rate-limits']);
const navigator = /navigator (\S+)/.exec(server.out)[1];
exact(await run('private', ['--target', 'ws://127.0.0.1:1', '--navigator', `http://${navigator}`,
  '--api-url', `http://${server.api}/apigateway`, '--app-key', appKey, ...small]), 'navigator');
await stop(server);
process.exit(0);
