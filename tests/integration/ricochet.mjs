// ricochet-bench's scenarios against musterd's Ricochet peer: all of them over UDX and one over TCP, closed and open;
// what a full mailbox and a rate limit look like; hostile bytes; a killed peer.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { statSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { muster, scratch, startMusterd, stop } from './lib.mjs';

async function startPeer(args = [], options = {}) {
  const server = await startMusterd(['--ricochet', '0', '--ack', 'received', ...args], options);
  const [, udx, tcp, peer] = server.out.match(/ ricochet (\S+) (\S+) peer (\S+)/);
  const port = (multiaddr) => Number(/(?:udp|tcp)\/(\d+)/.exec(multiaddr)[1]);
  return Object.assign(server, { udx, tcp, peer, udpPort: port(udx), tcpPort: port(tcp) });
}

let reports = 0;
async function bench(server, args, options = {}) {
  const file = join(scratch, `ricochet-${reports++}.json`);
  const place = options.place ?? server.udx.replace(/\/p2p\/.*/, '');
  const result = await muster(['ricochet', place, server.peer, '--quiet', '--output', file, ...args], options);
  try {
    result.report = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    result.report = undefined;
  }
  return result;
}

// Runs that say nothing about the machine: whether the generator had its core is not asked.
function assertSound(result, name) {
  assert.ok(result.report, `${name}: no report: ${result.out}${result.err}`);
  for (const reason of result.report.verdict.reasons) {
    assert.match(reason, /clock gaps|busy|schedule_lag|core/, `${name}: ${reason}`);
  }
}

const operation = (report, name) => report.operations.table.find((row) => row.name === name);

const scenarios = {
  msa: ['submit'],
  maa: ['retrieve'],
  sda: ['put_document', 'get_document'],
  sfa: ['append_entry', 'get_entry'],
  sca: ['put_item', 'query'],
  mma: ['create_mailbox', 'delete_mailbox'],
  mixed: [],
  'sda-batch': ['batch_put'],
  'msa-batch': ['batch_submit'],
  'sync-cold': ['batch_put'],
  'sync-warm': ['batch_put'],
  'sync-noop': ['list_documents'],
  'mail-cycle': ['submit', 'retrieve', 'mark_delivered'],
};

const server = await startPeer();
for (const [name, operations] of Object.entries(scenarios)) {
  const sync = name.startsWith('sync-');
  const n = sync ? 3 : 24;
  const args = ['-protocol', name, '-n', `${n}`, '-c', sync ? '2' : '3', '-warmup', '3',
    '-batch-size', '10', '-docs', '25'];
  const result = await bench(server, args);
  assertSound(result, name);
  const { report } = result;
  assert.equal(report.publishes.acked, n, `${name}: ${JSON.stringify(report.publishes)}`);
  assert.equal(report.operations.scenario, name);
  assert.equal(report.operations.error_rate, 0);
  assert.deepEqual(report.operations.errors, []);
  for (const row of report.operations.table) {
    assert.equal(row.succeeded, row.attempted, `${name}: ${row.name}`);
    assert.equal(row.latency.count, row.attempted);
  }
  for (const wanted of operations) assert.ok(operation(report, wanted), `${name}: no ${wanted}`);
  // A vault of 25 documents takes batches of 10, 10 and 5.
  if (sync && name !== 'sync-noop') assert.equal(operation(report, 'batch_put').attempted, 3 * n);
  if (sync) assert.equal(report.operations.table[0].items, 25 * n);
  if (name === 'sda-batch') assert.equal(operation(report, 'batch_put').items, 10 * n);
  if (name === 'maa') assert.equal(operation(report, 'retrieve').items, 10 * n);
}
console.log('all scenarios: every operation succeeded');

// Paths sort as texts, and a list of five-digit numbers must come in order too.
const large = await bench(server, ['-protocol', 'sync-noop', '-n', '1', '-c', '1', '-warmup', '0', '-docs', '10001']);
assert.equal(large.report.operations.error_rate, 0, JSON.stringify(large.report.operations.errors));
assert.equal(large.report.operations.table[0].items, 10001);

// What cannot be asked is said in one line.
for (const [args, why] of [
  [['-protocol', 'sync-code'], /no such scenario: did you mean sync-cold/],
  [['-protocol', 'x'], /no such scenario: `muster help ricochet`/],
  [['-c', '0'], /-c 0: give a whole number from 1 on/],
  [['-n'], /-n needs a value/],
  [['-docs', 'many'], /-docs many: give a whole number from 1 on/],
  [['-batch-size', '101', '-protocol', 'sda-batch'], /--batch-size 101/],
  [['/ip4/127.0.0.1/udp/1/udx'], /peer id is missing/],
  [['/ip4/127.0.0.1/udp/1/udx', 'x'], /no peer id/],
  [['/nowhere', server.peer], /nowhere/],
]) {
  const result = await muster(['ricochet', ...args]);
  assert.equal(result.code, 2, `${args}: ${result.err}`);
  assert.match(result.err, why);
  assert.match(result.err, /^muster: [^\n]+\n$/);
}

// Over TCP, with ADDR as the server prints it; messages to oneself are notified.
{
  const result = await bench(server, ['-protocol', 'mail-cycle', '-n=20', '-c=2', '-v'], { place: server.tcp });
  assertSound(result, 'tcp');
  assert.equal(result.report.publishes.acked, 20);
  assert.match(result.report.target.url, /^ricochet\+tcp:/);
  const told = result.report.server_counters.notifications;
  assert.ok(told > 0, `no notification came: ${JSON.stringify(result.report.server_counters)}`);
}

// An open loop, several requests of one client at once, and requests that several datagrams carry.
{
  const args = ['-protocol', 'sda', '-c', '2', '-duration', '1s', '-payload-size', '40000', '--rate', '100'];
  const result = await bench(server, args);
  assertSound(result, 'open loop');
  assert.equal(result.report.workload.load_model, 'open');
  assert.equal(result.report.publishes.acked, 100);
}

// As a workload of `muster run` against the URL.
{
  const file = join(scratch, 'run.json');
  const url = `ricochet://127.0.0.1:${server.udpPort}/${server.peer}`;
  const args = ['run', 'sfa', '--target', url, '--clients', '2', '--count', '10', '--warmup', '0s', '--quiet', '--json', file];
  const result = await muster(args);
  result.report = JSON.parse(readFileSync(file, 'utf8'));
  assertSound(result, 'run sfa');
  assert.equal(result.report.publishes.acked, 10);
  // Somebody else's peer id is not let in.
  const other = '12D3KooWA4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeSB';
  const refused = await muster(['ricochet', server.udx.replace(/\/p2p\/.*/, ''), other, '-n', '1', '--quiet']);
  assert.equal(refused.code, 4, refused.err);
  assert.match(refused.err, /handshake_refused/);
}

// A go-libp2p listener queues 16 connections and drops more: all workers together dial no more at once.
{
  const silent = createSocket('udp4');
  const dialed = new Set();
  silent.on('message', (packet) => dialed.add(packet.subarray(14, 22).toString('hex')));
  await new Promise((bound) => silent.bind(0, '127.0.0.1', bound));
  const url = `ricochet://127.0.0.1:${silent.address().port}`;
  const result = await muster(['run', 'msa', '--target', url, '--clients', '64', '--count', '64', '--workers', '4',
    '--connect-concurrency', '64', '--connect-timeout', '1s', '--quiet']);
  assert.equal(result.code, 4, result.err);
  assert.equal(dialed.size, 16);
  silent.close();
}

// musterd counts what it answers, by protocol and status.
{
  const api = /api (\S+)/.exec(server.out)[1];
  const page = await (await fetch(`http://${api}/metrics`)).text();
  const answered = (protocol, status) =>
    Number(page.match(`musterd_ricochet_requests_total{protocol="${protocol}",status="${status}"} (\\d+)`)?.[1]);
  assert.ok(answered('/sf-network/submit/1.0.0', 200) > 24);
  assert.ok(answered('/ricochet/store/doc/1.0.0', 201) >= 24);
  assert.match(page, /^musterd_ricochet_connections \d+$/m);
  assert.match(page, /^musterd_ricochet_streams \d+$/m);
}

// Bytes of no protocol at either port leave the peer as it was.
{
  const socket = createSocket('udp4');
  const junk = ['', '00', '00000003', '0000000308'.padEnd(200, 'f'), '00000003080102030405060708081112131415161718'.padEnd(120, '0')];
  for (const hex of junk) await new Promise((sent) => socket.send(Buffer.from(hex, 'hex'), server.udpPort, '127.0.0.1', sent));
  socket.close();
  for (const text of ['GET / HTTP/1.1\r\n\r\n', '\x13/multistream/1.0.0\n\x07/noise\n\xff\xff' + 'x'.repeat(70000), '\xff'.repeat(100)]) {
    await new Promise((done) => {
      const tcp = createConnection(server.tcpPort, '127.0.0.1', () => tcp.write(Buffer.from(text, 'latin1')));
      tcp.on('error', () => {}).on('close', done);
      setTimeout(() => tcp.destroy(), 200);
    });
  }
  const result = await bench(server, ['-protocol', 'mma', '-n', '5', '-c', '1']);
  assert.equal(result.report?.publishes.acked, 5, result.err);
}
assert.equal(statSync(join(server.data, 'ricochet.key')).mode & 0o777, 0o600);
await stop(server);

// The identity outlives the server. A mailbox of 10 messages is full then, and each refusal is counted as what it is.
const small = await startPeer(['--ricochet-mailbox-messages', '10'], { data: server.data });
assert.equal(small.peer, server.peer);
{
  const { report } = await bench(small, ['-protocol', 'msa', '-n', '30', '-c', '2', '-warmup', '0']);
  assert.equal(report.publishes.acked, 20);
  assert.equal(report.publishes.rejected, 10);
  const submit = operation(report, 'submit');
  assert.deepEqual(submit.failed_by_code, [{ code: 507, name: 'mailbox_full', count: 10 }]);
  assert.deepEqual(report.operations.errors, [{ text: 'mailbox full', count: 10 }]);
  assert.ok(Math.abs(report.operations.error_rate - 1 / 3) < 1e-9);
  const batch = await bench(small, ['-protocol', 'msa-batch', '-n', '2', '-c', '1', '-warmup', '0', '-batch-size', '8']);
  assert.equal(operation(batch.report, 'batch_submit').items, 10, 'messages of a batch that did fit');
  assert.equal(batch.report.publishes.rejected, 1);
}
await stop(small);

// A rate limit: each refusal's hint is waited for, and in the end all requests succeed.
const slow = await startPeer(['--ricochet-rate-limit', '4']);
{
  const { report, out, err } = await bench(slow, ['-protocol', 'mma', '-n', '5', '-c', '1', '-warmup', '0']);
  assert.equal(report?.publishes.acked, 5, out + err);
  const limited = report.operations.table.flatMap((row) => row.failed_by_code);
  const refusals = limited.reduce((sum, { count }) => sum + count, 0);
  assert.equal(report.operations.retry_hints_honoured, refusals, 'hints, one for each refusal');
  assert.ok(limited.length > 0 && limited.every((row) => row.name === 'rate_limited'), JSON.stringify(limited));
  assert.equal(report.operations.errors[0].text.replace(/#+/g, '#'), 'rate limit exceeded, retry after #ms');
}

// Killed in mid-run: there is a report, and it says so.
{
  const closed = await bench(slow, ['-protocol', 'sda', '-c', '3', '-n', '200000', '-warmup', '0'], {
    place: slow.tcp,
    onStart: () => setTimeout(() => slow.kill('SIGKILL'), 1500),
  });
  assert.ok(closed.report, closed.out + closed.err);
  assert.equal(closed.code, 3, closed.out);
  assert.equal(closed.report.connections.dropped, 3);
}
console.log('full mailboxes, rate limits, hostile bytes and a killed peer are told as they are');
