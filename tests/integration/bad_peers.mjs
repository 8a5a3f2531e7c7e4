// Broken and hostile servers: each run ends by its deadlines with one clear line or an honest report, and with the
// documented exit code; never a crash, a hang or a silent zero.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { createServer } from 'node:net';
import { appKey, muster, run, startMusterd, stop, target } from './lib.mjs';

const server = await startMusterd(['--no-rate-limits']);
const small = ['--clients', '4', '--rate', '20', '--warmup', '0s', '--duration', '1s', '--delivery-grace', '1s',
  '--connect-timeout', '2s'];

// A TCP server that does what `behave` does with each connection; resolves to host:port.
const fakes = [];
function fake(behave) {
  return new Promise((resolve) => {
    const peer = createServer((socket) => {
      socket.on('error', () => {});
      behave(socket);
    });
    fakes.push(peer);
    peer.listen(0, '127.0.0.1', () => resolve(`127.0.0.1:${peer.address().port}`));
  });
}

const oneLine = (text) => text.trim().split('\n').length === 1;

// Runs against a fake WebSocket port with the real API behind it.
async function against(what, ws, codes, pattern, args = []) {
  const result = await run('private', [...target(server, ws), ...small, ...args], { deadlineMs: 40000 });
  const text = result.out + result.err;
  assert.equal(result.signal, null, `${what}: crashed: ${text}`);
  assert.ok(codes.includes(result.code), `${what}: exit code ${result.code}, not ${codes}: ${text}`);
  assert.match(text, pattern, `${what}: says why`);
  if (result.code === 4 || result.code === 2) assert.ok(oneLine(result.err), `${what}: one line: ${result.err}`);
  console.log(`${what}: exit ${result.code} in ${result.ms} ms: ${(result.err || result.out).trim().split('\n').at(-1)}`);
  return result;
}

// Writes the first bytes, then the others for as long as somebody reads.
function flood(socket, first, bytes) {
  const more = () => { while (!socket.destroyed && socket.write(bytes)); };
  socket.on('drain', more);
  socket.write(first);
  more();
}

function upgrade(socket, then) {
  socket.once('data', (data) => {
    const key = /sec-websocket-key: *(\S+)/i.exec(data.toString('latin1'))?.[1];
    const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    then(socket);
  });
}

const closedPort = await fake(() => {});
const closed = fakes.pop();
await new Promise((resolve) => closed.close(resolve));
await against('nobody listens', closedPort, [4], /refused/i);
await against('accepts and says nothing', await fake(() => {}), [3, 4], /time|deadline|no answer/i);
await against('closes at once', await fake((socket) => socket.destroy()), [3, 4], /clos/i);
await against('resets in mid-handshake', await fake((socket) => socket.once('data', () => socket.resetAndDestroy())), [3, 4], /clos|reset/i);
await against('half an answer', await fake((socket) => socket.once('data', () => socket.end('HTTP/1.1 101 Swi'))), [3, 4], /clos/i);
await against('404', await fake((socket) => socket.once('data', () => socket.write('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n'))), [3, 4], /upgrade|404/i);
await against('not HTTP', await fake((socket) => socket.once('data', () => socket.write('220 mail.example ESMTP\r\n'))), [3, 4], /upgrade|HTTP|protocol/i);
await against('wrong accept key', await fake((socket) => socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n'))), [3, 4], /accept|upgrade/i);
await against('garbage frames', await fake((socket) => upgrade(socket, () => socket.write(Buffer.alloc(512, 0xff)))), [3, 4], /protocol/i);
await against('garbage envelope', await fake((socket) => upgrade(socket, () => socket.write(Buffer.from([0x82, 3, 0xff, 0xff, 0xff])))), [3, 4], /protocol/i);
await against('a frame of 2^62 bytes', await fake((socket) => upgrade(socket, () => socket.write(Buffer.from([0x82, 127, 0x40, 0, 0, 0, 0, 0, 0, 0])))), [3, 4], /protocol/i);
await against('a head without end', await fake((socket) => flood(socket, 'HTTP/1.1 101 X\r\nX: ', 'x'.repeat(65536))), [3, 4], /upgrade|HTTP/i);
await against('a redirect', await fake((socket) => socket.once('data', () => socket.write('HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n'))), [3, 4], /upgrade/i);
await against('a masked frame', await fake((socket) => upgrade(socket, () => socket.write(Buffer.from([0x82, 0x81, 1, 2, 3, 4, 5])))), [3, 4], /protocol/i);
await against('a Ping in pieces', await fake((socket) => upgrade(socket, () => socket.write(Buffer.from([0x09, 1, 0x78])))), [3, 4], /protocol/i);
await against('a fragmented message without end', await fake((socket) => upgrade(socket, () => flood(socket, Buffer.from([0x02, 0]), Buffer.alloc(65536)))), [3, 4], /time/i);
await against('upgraded, then silent', await fake((socket) => upgrade(socket, () => {})), [3, 4], /time|deadline|no answer/i);

// Other protocols' servers: the same rules.
async function other(what, scheme, behave, codes, pattern) {
  const speaksFirst = scheme === 'nats';
  const peer = await fake((socket) => (speaksFirst ? behave(socket) : socket.once('data', (data) => behave(socket, data))));
  const result = await muster(['run', 'private', '--quiet', ...small, '--target', `${scheme}://${peer}`], { deadlineMs: 60000 });
  const text = result.out + result.err;
  assert.equal(result.signal, null, `${what}: crashed: ${text}`);
  assert.ok(codes.includes(result.code), `${what}: exit code ${result.code}, not ${codes}: ${text}`);
  assert.match(text, pattern, what);
  assert.doesNotMatch(text, /[\x00-\x08\x0b-\x1f\x7f]/, `${what}: nothing that a terminal obeys`);
  if (result.code === 4) assert.ok(oneLine(result.err), `${what}: one line: ${result.err}`);
  console.log(`${what}: exit ${result.code} in ${result.ms} ms: ${(result.err || result.out).trim().split('\n').at(-1)}`);
}
const connected = 'CONNECTED\nversion:1.2\nserver:x\x1b[2J\n\n\0';
await other('STOMP: garbage', 'stomp', (socket) => socket.write(Buffer.alloc(4096, 0xff)), [4], /no STOMP/);
await other('STOMP: an ERROR with controls', 'stomp', (socket) => socket.end('ERROR\nmessage:Bad CONNECT\x1b[2J\n\none\ntwo\x07\0'), [4], /refuses us: Bad CONNECT/);
await other('STOMP: a header without end', 'stomp', (socket) => socket.write(`CONNECTED\nh:${'x'.repeat(200000)}`), [4], /no STOMP/);
await other('STOMP: a body of 4 GiB', 'stomp', (socket) => socket.write(`${connected}MESSAGE\ncontent-length:4294967295\n\n`), [4], /protocol/);
await other('Socket.IO: pings without end, reads nothing', 'socketio', (socket, data) => {
  const key = /sec-websocket-key: *(\S+)/i.exec(data.toString('latin1'))[1];
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  const head = `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
  flood(socket.pause(), head, Buffer.from('\x81\x012'.repeat(20000), 'latin1'));
}, [4], /time/);
await other('NATS: an INFO without end', 'nats', (socket) => flood(socket, 'INFO {"a":"', 'x'.repeat(65536)), [4], /NATS/i);
await other('Redis: nested arrays', 'redis', (socket) => socket.write('*1\r\n'.repeat(100000)), [4], /Redis|protocol/);
await other('Redis: an array of 2^31', 'redis', (socket) => socket.write('*2147483647\r\n'), [4], /Redis|protocol/);
await other('MQTT: the longest packet', 'mqtt', (socket) => flood(socket, Buffer.from([0x20, 0xff, 0xff, 0xff, 0x7f]), Buffer.alloc(65536)), [4], /protocol/);
await other('MQTT: one byte a second', 'mqtt', (socket) => {
  const timer = setInterval(() => socket.write(Buffer.from([0x20])), 1000);
  socket.on('close', () => clearInterval(timer));
}, [4], /time|protocol/);

// A broker of MQTT 5, QoS 1, whose behaviour in the load is what is asked for: the figures must say what it did.
function broker(misbehave) {
  const topics = new Map();
  let published = 0;
  const string = (bytes, at) => bytes.subarray(at + 2, at + 2 + bytes.readUInt16BE(at)).toString();
  const message = (topic, payload) => {
    const head = Buffer.concat([Buffer.from([topic.length >> 8, topic.length & 255]), Buffer.from(topic), Buffer.from([1, published & 255, 0])]);
    const length = head.length + payload.length;
    return Buffer.concat([Buffer.from([0x32, (length & 127) | 128, length >> 7]), head, payload]);
  };
  function packet(socket, type, body) {
    if (type >> 4 === 1) socket.write(Buffer.from([0x20, 3, 0, 0, 0]));
    if (type >> 4 === 8) {
      const granted = [];
      for (let at = 3; at < body.length; at += 3 + body.readUInt16BE(at)) {
        topics.set(string(body, at), socket);
        granted.push(1);
      }
      socket.write(Buffer.from([0x90, 3 + granted.length, body[0], body[1], 0, ...granted]));
    }
    if (type >> 4 !== 3) return;
    published++;
    const topic = string(body, 0);
    const id = body.subarray(2 + topic.length, 4 + topic.length);
    const content = body.subarray(5 + topic.length + body[4 + topic.length]);
    misbehave({ topics, topic, content, message, published, socket, ack: Buffer.from([0x40, 2, ...id]) });
  }
  return fake((socket) => {
    let waiting = Buffer.alloc(0);
    socket.on('data', (data) => {
      waiting = Buffer.concat([waiting, data]);
      for (;;) {
        let length = 0, at = 1;
        do length |= (waiting[at] & 127) << (7 * (at - 1)); while (waiting[at++] & 128);
        if (!(waiting.length >= at + length)) return;
        packet(socket, waiting[0], waiting.subarray(at, at + length));
        waiting = waiting.subarray(at + length);
      }
    });
  });
}

async function withBroker(what, misbehave, check) {
  const peer = await broker(misbehave);
  const { report, ...result } = await run('private', [...small, '--ack-timeout', '1s', '--target', `mqtt://${peer}`], { deadlineMs: 60000 });
  assert.equal(result.signal, null, `${what}: crashed: ${result.err}`);
  assert.ok(report, `${what}: a report: ${result.err}`);
  const { publishes, deliveries } = report;
  console.log(`${what}: exit ${result.code}: ${JSON.stringify(deliveries)}`);
  assert.equal(publishes.acked + publishes.rejected + publishes.timed_out, publishes.attempted, what);
  assert.equal(deliveries.observed + deliveries.lost, deliveries.expected, what);
  check(publishes, deliveries, report, result);
}
const send = ({ topics, topic, message }, content) => topics.get(topic).write(message(topic, content));
await withBroker('each ACK three times', (it) => {
  it.socket.write(Buffer.concat([it.ack, it.ack, it.ack]));
  send(it, it.content);
}, (publishes, deliveries) => {
  assert.equal(publishes.acked, publishes.attempted);
  assert.equal(deliveries.observed, publishes.acked);
});
await withBroker('ACKs of publishes that nobody sent', (it) => {
  it.socket.write(Buffer.from([0x40, 2, 0x7f, 0x7f]));
  send(it, it.content);
}, (publishes, deliveries, report, result) => {
  assert.equal(publishes.acked, 0);
  assert.equal(publishes.timed_out, publishes.attempted);
  assert.equal(deliveries.expected, 0);
  assert.equal(result.code, 3);
});
await withBroker('messages to the wrong client', (it) => {
  it.socket.write(it.ack);
  const wrong = [...it.topics].find(([topic]) => topic !== it.topic);
  wrong[1].write(it.message(it.topic, it.content));
}, (publishes, deliveries) => {
  assert.equal(deliveries.observed, 0);
  assert.equal(deliveries.unexpected, publishes.acked);
});
await withBroker('damaged contents', (it) => {
  it.socket.write(it.ack);
  const content = Buffer.from(it.content);
  content[content.length - 1] ^= 1;
  send(it, content);
}, (publishes, deliveries) => {
  assert.equal(deliveries.observed, 0);
  assert.equal(deliveries.corrupt, publishes.acked);
});
await withBroker('all messages twice', (it) => {
  it.socket.write(it.ack);
  send(it, it.content);
  send(it, it.content);
}, (publishes, deliveries) => {
  assert.equal(deliveries.observed, publishes.acked);
  assert.equal(deliveries.duplicate, publishes.acked);
});
await withBroker('resets all in the load', (it) => {
  it.socket.write(it.ack);
  if (it.published === 5) for (const socket of it.topics.values()) socket.resetAndDestroy();
  else send(it, it.content);
}, (publishes, deliveries, report, result) => {
  assert.equal(report.connections.dropped, 4);
  assert.equal(result.code, 3);
});

// The set-up API.
async function api(what, args, codes, pattern, env = {}) {
  const result = await muster(['run', 'private', '--quiet', ...small, ...args], { env, deadlineMs: 60000 });
  const text = result.out + result.err;
  assert.equal(result.signal, null, `${what}: crashed: ${text}`);
  assert.ok(codes.includes(result.code), `${what}: exit code ${result.code}, not ${codes}: ${text}`);
  assert.match(text, pattern, what);
  assert.ok(oneLine(result.err), `${what}: one line: ${result.err}`);
  console.log(`${what}: exit ${result.code} in ${result.ms} ms: ${result.err.trim()}`);
  assert.ok(!text.includes('wrongsecret00000'), `${what}: the secret is never printed`);
}
await api('wrong secret', target(server), [4], /10006|signature/i, { MUSTER_APP_SECRET: 'wrongsecret00000' });
await api('no secret', target(server), [2], /MUSTER_APP_SECRET/, { MUSTER_APP_SECRET: '' });
await api('unknown app', ['--target', `ws://${server.ws}`, '--api-url', `http://${server.api}/apigateway`, '--app-key', 'nosuchapp'], [4], /10005|app/i);
await api('API on a closed port', ['--target', `ws://${server.ws}`, '--api-url', `http://${closedPort}/apigateway`, '--app-key', appKey], [4], /refused|connect/i);
await api('API that is no API', ['--target', `ws://${server.ws}`, '--api-url', `http://${await fake((socket) => socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')))}/apigateway`, '--app-key', appKey], [4], /JSON|answer/i);
await api('not loopback', ['--target', 'ws://192.0.2.1:9003', '--app-key', appKey], [2], /--allow-non-loopback/);
await api('unknown scheme', ['--target', 'gopher://127.0.0.1:70', '--app-key', appKey], [2], /gopher/);

// Half of the population cannot connect: not published as a baseline unless that is accepted.
let accepted = 0;
const half = await fake((socket) => {
  if (accepted++ % 2) socket.destroy();
  else {
    const [host, port] = server.ws.split(':');
    import('node:net').then(({ connect }) => {
      const up = connect(Number(port), host);
      up.on('error', () => socket.destroy());
      socket.on('close', () => up.destroy());
      up.on('close', () => socket.destroy());
      socket.pipe(up).pipe(socket);
    });
  }
});
const refused = await against('half connected', half, [3], /connect/i);
assert.equal(refused.report.connections.established + refused.report.connections.failed, 4);
assert.ok(refused.report.connections.failed > 0);

// A server that dies in the middle.
const victim = await startMusterd(['--no-rate-limits']);
const dead = await run('private', [...target(victim), ...small, '--duration', '4s'], {
  onStart: () => setTimeout(() => victim.kill('SIGKILL'), 2500),
});
assert.equal(dead.code, 3, dead.out + dead.err);
assert.equal(dead.report.connections.dropped, 4);
assert.match(dead.out, /invalid/);

for (const peer of fakes) peer.close();
await stop(server);
process.exit(0);
