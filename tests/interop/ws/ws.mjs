// npm's ws judges our WebSocket in both roles, over TCP and TLS: ws.mjs <ws_tool>.
// ws_tool echoes; the same battery runs against it as a server and as a client.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import WebSocket, { WebSocketServer } from 'ws';

const tool = process.argv[2];
const directory = mkdtempSync(join(tmpdir(), 'muster-ws-'));
const certificate = join(directory, 'cert.pem');
const key = join(directory, 'key.pem');

function makeCertificate() {
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
    '-keyout', key, '-out', certificate, '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost',
    '-days', '2'], { stdio: 'ignore' });
}

async function echoed(socket, data, send = () => socket.send(data)) {
  const answer = once(socket, 'message');
  send();
  const [got, binary] = await answer;
  const want = Buffer.from(data);
  assert.equal(binary, typeof data !== 'string');
  assert.ok(got.equals(want), `echo of ${want.length} bytes differs`);
}

function sendInPieces(socket, pieces) {
  pieces.forEach((piece, i) => {
    socket.send(piece, { fin: i === pieces.length - 1, binary: typeof piece !== 'string' });
    if (i === 0) socket.ping('between');
  });
}

async function battery(socket) {
  for (const size of [0, 1, 125, 126, 127, 65535, 65536, 1 << 20, 20 << 20]) {
    await echoed(socket, Buffer.alloc(size, 'ab'));
    await echoed(socket, 'é'.repeat(size / 2));
  }
  await echoed(socket, 'Grüße, 世界 🌍');
  const pong = once(socket, 'pong');
  socket.ping('are you there');
  assert.equal((await pong)[0].toString(), 'are you there');

  const between = once(socket, 'pong');
  const pieces = ['Gr', 'üße', '', ' 🌍'];
  await echoed(socket, pieces.join(''), () => sendInPieces(socket, pieces));
  assert.equal((await between)[0].toString(), 'between');
  const parts = [Buffer.alloc(70000, 1), Buffer.alloc(3, 2), Buffer.alloc(200, 3)];
  await echoed(socket, Buffer.concat(parts), () => sendInPieces(socket, parts));

  // Many at once: order and count.
  const got = [];
  const all = new Promise((resolve) => {
    socket.on('message', (data) => got.push(data.toString()) === 5000 && resolve());
  });
  for (let i = 0; i < 5000; i++) socket.send(`message ${i}`);
  await all;
  got.forEach((text, i) => assert.equal(text, `message ${i}`));
  socket.removeAllListeners('message');
}

async function closeWith(socket, code, reason) {
  const closed = once(socket, 'close');
  socket.close(code, reason);
  const [gotCode, gotReason] = await closed;
  assert.equal(gotCode, code);
  assert.equal(gotReason.toString(), reason);
}

// Raw bytes past ws's own checks; the tool must answer with that close code.
async function refused(url, options, bytes, code) {
  const socket = new WebSocket(url, options);
  await once(socket, 'open');
  const closed = once(socket, 'close');
  socket._socket.write(Buffer.from(bytes));
  assert.equal((await closed)[0], code);
}

async function asServer(tls) {
  const child = spawn(tool, tls ? ['server', certificate, key] : ['server'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const port = Number((await once(child.stdout, 'data'))[0].toString());
  const options = tls ? { ca: readFileSync(certificate) } : { family: 4 };
  const url = `${tls ? 'wss' : 'ws'}://localhost:${port}/chat`;
  const connect = async () => {
    const socket = new WebSocket(url, { ...options, family: 4 });
    await once(socket, 'open');
    return socket;
  };
  const socket = await connect();
  await battery(socket);
  await closeWith(socket, 1000, 'done');
  await closeWith(await connect(), 4321, 'own code');
  const mask = [0, 0, 0, 0];
  const raw = { ...options, family: 4 };
  await refused(url, raw, [0x81, 0x01, 0x41], 1002);
  await refused(url, raw, [0xc1, 0x80, ...mask], 1002);
  await refused(url, raw, [0x83, 0x80, ...mask], 1002);
  await refused(url, raw, [0x81, 0x81, ...mask, 0xff], 1007);
  await refused(url, raw, [0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, ...mask], 1009);
  child.stdin.end();
  assert.deepEqual(await exited, [0, null]);
}

async function asClient(tls) {
  const web = tls && https.createServer({ cert: readFileSync(certificate), key: readFileSync(key) });
  const server = new WebSocketServer(tls ? { server: web } : { host: '127.0.0.1', port: 0 });
  if (tls) web.listen(0, '127.0.0.1');
  await once(tls ? web : server, 'listening');
  const { port } = (tls ? web : server).address();
  const url = `${tls ? 'wss' : 'ws'}://localhost:${port}/chat?x=1`;
  for (const [code, reason] of [[1000, 'done'], [4321, 'own code']]) {
    const connection = once(server, 'connection');
    const child = spawn(tool, tls ? ['client', url, certificate] : ['client', url],
      { stdio: ['ignore', 'pipe', 'inherit'] });
    const exited = once(child, 'exit');
    const printed = once(child.stdout, 'data');
    const [socket, request] = await connection;
    assert.equal(request.url, '/chat?x=1');
    assert.equal(request.headers.host, `localhost:${port}`);
    await battery(socket);
    await closeWith(socket, code, reason);
    assert.equal((await printed)[0].toString(), `${code} ${reason}\n`);
    assert.deepEqual(await exited, [0, null]);
  }
  server.close();
  if (tls) web.close();
}

try {
  makeCertificate();
  for (const tls of [false, true]) {
    await asServer(tls);
    await asClient(tls);
  }
  console.log('ws: text, binary, fragments, ping, close codes and errors agree in both roles, plain and TLS');
} finally {
  rmSync(directory, { recursive: true });
}
