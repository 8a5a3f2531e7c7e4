// npm's libp2p judges our libp2p in both roles, over TCP: libp2p.mjs <libp2p_tool>. Either side echoes; the other sends
// messages of many sizes on many streams at once, is refused a protocol, and breaks a stream off.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { noise } from '@chainsafe/libp2p-noise';
import { yamux } from '@chainsafe/libp2p-yamux';
import { identify } from '@libp2p/identify';
import { tcp } from '@libp2p/tcp';
import { multiaddr } from '@multiformats/multiaddr';
import { createLibp2p } from 'libp2p';

const tool = process.argv[2];
const ECHO = '/muster/echo/1.0.0';
const STRANGER = '12D3KooWA4Xop1JaT3MHxwYMkCepYsv4iPVopMXwCz5iHYdBfeSB';

// A part of Node 22 that these packages use and 20 lacks.
Promise.withResolvers ??= () => {
  let resolve, reject;
  const promise = new Promise((a, b) => ([resolve, reject] = [a, b]));
  return { promise, resolve, reject };
};

function makeNode(services = {}) {
  return createLibp2p({
    addresses: { listen: ['/ip4/127.0.0.1/tcp/0'] },
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [yamux()],
    services,
  });
}

function bytes(length) {
  return Uint8Array.from({ length }, (_, i) => (i * 31 + length) & 255);
}

async function write(stream, data) {
  for (let at = 0; at < data.length; at += 16384) {
    if (!stream.send(data.subarray(at, at + 16384))) await stream.onDrain();
  }
  await stream.close();
}

async function read(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part.subarray());
  return Buffer.concat(parts);
}

async function echoed(node, to, length) {
  const stream = await node.dialProtocol(to, ECHO);
  const data = bytes(length);
  const [got] = await Promise.all([read(stream), write(stream, data)]);
  assert.ok(got.equals(data), `echo of ${length} bytes differs: ${got.length} came`);
}

// Our listener; npm dials.
async function weListen() {
  const child = spawn(tool, ['listen', 'tcp'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  const to = multiaddr(line.toString().trim());
  const node = await makeNode({ identify: identify() });
  const identified = once(node, 'peer:identify');
  const connection = await node.dial(to);
  assert.equal(connection.remotePeer.toString(), to.toString().split('/p2p/')[1]);
  const [event] = await identified;
  assert.deepEqual(event.detail.protocols, [ECHO, '/ipfs/id/1.0.0']);
  assert.equal(event.detail.agentVersion, 'muster');

  await Promise.all(Array.from({ length: 50 }, (_, i) => echoed(node, to, i * 97)));
  await Promise.all([echoed(node, to, 3 << 20), echoed(node, to, 1 << 20)]);
  await assert.rejects(node.dialProtocol(to, '/nobody/speaks/this'), /protocol/i);
  (await node.dialProtocol(to, ECHO)).abort(new Error('broken off'));
  await setTimeout(1500); // pings of both sides go on meanwhile
  await echoed(node, to, 5);
  assert.equal(node.getConnections().length, 1);
  assert.equal(node.getConnections()[0].id, connection.id);

  const closed = once(node, 'connection:close');
  child.stdin.end();
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
  await closed;
  await node.stop();
}

// npm listens; we dial.
async function npmListens() {
  const node = await makeNode();
  let streams = 0;
  await node.handle(ECHO, async (stream) => {
    streams++;
    stream.addEventListener('message', (event) => stream.send(event.data));
    // Looked at rather than waited for: libp2p 3 may tell the end before a handler can listen.
    while (stream.remoteWriteStatus !== 'closed') await setTimeout(5);
    await setTimeout(20);
    await stream.close();
  }, { maxInboundStreams: 256 });
  const to = node.getMultiaddrs()[0].toString();
  const { code, out, err } = await runTool(to);
  assert.equal(code, 0, err);
  assert.equal(out, '102 echoed, 1 refused\n');
  assert.ok(streams >= 102);

  const wrong = await runTool(to.replace(/\/p2p\/.*/, `/p2p/${STRANGER}`));
  assert.equal(wrong.code, 1);
  assert.match(wrong.err, /not secure: the peer has another peer id/);
  await node.stop();
}

async function runTool(to) {
  const child = spawn(tool, ['dial', to]);
  let out = '', err = '';
  child.stdout.on('data', (data) => (out += data));
  child.stderr.on('data', (data) => (err += data));
  const [code] = await once(child, 'close');
  return { code, out, err };
}

await weListen();
await npmListens();
console.log('npm libp2p talks to us in both roles');
process.exit(0);
